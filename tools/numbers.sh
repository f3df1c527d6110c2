#!/usr/bin/env bash
# numbers.sh: the library reads and writes floating-point numbers as text by
# text_f64 and text_print alone (src/base/number.c), whatever the locale of its
# host. Here: no other strtod, atof, vsnprintf; no printf of the C library with
# %g, %f, %e, %a. src/cli, src/bench and src/apps are a process of their own, which stays
# in the locale "C": nothing in src/ calls setlocale.
set -u
cd "$(dirname "$0")/.." || exit 1
export LC_ALL=C
library() {
	find src -name '*.[ch]' ! -path 'src/cli/*' ! -path 'src/bench/*' ! -path 'src/apps/*' \
		! -path src/base/number.c
}
fails=0
no() { # no WHY PATTERN FILES...
	local why=$1 pattern=$2
	shift 2
	if grep -nE "(^|[^A-Za-z0-9_])($pattern)[[:space:]]*\\(" "$@"; then
		echo "numbers: $why"
		fails=1
	fi
}
no "text_f64 reads numbers" 'strtod|strtof|strtold|atof|f?scanf|sscanf|strtod_l' $(library)
no "text_vprint prints formats" 'vf?printf|vsn?printf|vasprintf|vdprintf' $(library)
no "nothing here chooses a locale" 'setlocale|localeconv|uselocale|newlocale' \
	$(find src -name '*.[ch]' ! -path src/base/number.c)

# A call over several lines: from its name to its end. PRId64 and its like
# stand outside of the strings.
if awk '
	FNR == 1 { call = "" }
	{
		line = $0
		if (call == "" && match(line, /(^|[^A-Za-z0-9_])(f|s|sn|d|as)?printf[ \t]*\(/)) {
			call = substr(line, RSTART)
			at = FILENAME ":" FNR
		} else if (call != "") {
			call = call " " line
		}
		if (call != "" && line ~ /;[ \t]*(\/\*.*)?$/) {
			gsub(/%%/, "", call)
			if (call ~ /%[-+ #0]*[0-9*]*(\.[0-9*]*)?[lL]?[aefgAEFG]/) {
				print at ": " call
				n++
			}
			call = ""
		}
	}
	END { exit n > 0 ? 0 : 1 }' $(library); then
	echo "numbers: text_print writes floating-point numbers"
	fails=1
fi
[ $fails -eq 0 ] && echo "numbers: $(library | wc -l) files, one reader and one writer"
exit $fails
