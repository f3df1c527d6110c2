#!/usr/bin/env bash
# locale.sh PROGRAM...: runs each test program in a host that speaks German,
# where 1.5 is written 1,5: the locale is made with localedef in a folder of
# its own, and the programs call setlocale (tests/unit/unit.h). Exit status 77,
# with the reason, where it cannot be made.
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
if ! command -v localedef >/dev/null; then
	echo "locale: skipped: localedef is not installed"
	exit 77
fi
if ! localedef -i de_DE -f UTF-8 "$dir/de_DE.UTF-8" >"$dir/log" 2>&1 &&
	[ ! -d "$dir/de_DE.UTF-8" ]; then
	echo "locale: skipped: no German locale can be made (Debian: apt install locales)"
	exit 77
fi
export LOCPATH=$dir TN_LOCALE=de_DE.UTF-8
fails=0
for program in "$@"; do
	if ! "$program" >"$dir/log" 2>&1; then
		echo "== $program"
		cat "$dir/log"
		fails=$((fails + 1))
	fi
done
echo "locale: $# programs, $fails failed"
[ $fails -eq 0 ]
