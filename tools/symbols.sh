#!/usr/bin/env bash
# symbols.sh [LIBRARY]: the library ends no process and prints nothing, and it
# exports nothing but tn_ names. Asks nm, not the source. (engine/dump.c writes
# to standard error where TENON_DUMP asks for it, by write(), and nothing else
# does: the source is asked for that.)
set -u
cd "$(dirname "$0")/.." || exit 1
lib=${1:-build/libtenon.so}
fails=0

undefined=$(nm -D --undefined-only "$lib" | awk '{ sub(/@.*/, "", $2); print $2 }') || exit 1
exported=$(nm -D --defined-only "$lib" | awk '{ print $3 }') || exit 1
[ -n "$undefined" ] || { echo "symbols: nm shows nothing of $lib"; exit 1; }

ends='exit|_exit|_Exit|quick_exit|abort|__assert_fail|raise|kill'
prints='(__)?v?printf(_chk)?|puts|putchar|perror|psignal|v?(err|warn)x?|stdout|stderr|syslog'
if found=$(grep -xE "$ends|$prints" <<<"$undefined"); then
	echo "symbols: $lib calls" $found
	fails=1
fi
if found=$(grep -vE '^(tn_|_init$|_fini$)' <<<"$exported" | grep .); then
	echo "symbols: $lib exports" $found
	fails=1
fi
if found=$(grep -rlE 'STD(OUT|ERR)_FILENO|write\([12],' src --include='*.[ch]' |
	grep -vE '^src/((cli|bench|apps)/|engine/dump\.c)'); then
	echo "symbols: these write to a standard stream:" $found
	fails=1
fi
[ $fails -eq 0 ] && echo "symbols: $(wc -l <<<"$undefined") calls out, none ends or prints"
exit $fails
