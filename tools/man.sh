#!/bin/sh
# man.sh [BUILD]: every command that `tenon --help` lists has a section in
# man/tenon.1, and no other has one; each section has the options that
# `tenon COMMAND --help` has, and the names that stand at the start of its
# lines (of `tenon bench`), no more and no fewer.
set -u
build=${1:-build}
page=$(dirname "$0")/../man/tenon.1
tenon=$build/tenon
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
bad=0

differ() { # differ WHAT: lines of $dir/help and of $dir/man
	sort -u "$dir/help" >"$dir/help.sorted"
	sort -u "$dir/man" >"$dir/man.sorted"
	comm -23 "$dir/help.sorted" "$dir/man.sorted" |
		sed "s|^|man/tenon.1 lacks, $1: |" >"$dir/said"
	comm -13 "$dir/help.sorted" "$dir/man.sorted" |
		sed "s|^|only man/tenon.1 has, $1: |" >>"$dir/said"
	[ ! -s "$dir/said" ] || bad=1
	cat "$dir/said"
}
words() { # -o, --option, --option=value
	grep -oE -- '(^|[^-a-zA-Z0-9])-(-[a-z][a-z-]*(=[a-z]+)?|[a-z]\>)' |
		sed 's/^[^-]*//' | grep -v '^--help$'
}
lines() { # names that lines of help explain
	sed -n 's/^  \([a-z][a-z]*\)   .*/\1/p'
}

"$tenon" --help | sed -n 's/^  \([a-z][a-z-]*\)   *[a-z.].*/\1/p' |
	sort -u >"$dir/commands"
[ -s "$dir/commands" ] || { echo "tenon --help lists no commands"; exit 1; }
cp "$dir/commands" "$dir/help"
sed 's/\\-/-/g; s/\\f.//g; s/\\c$//' "$page" >"$dir/page"
sed -n 's/^\.SH "TENON \(.*\)"$/\1/p' "$dir/page" | tr A-Z a-z >"$dir/man"
differ "commands"
while read -r c; do
	"$tenon" "$c" --help >"$dir/text"
	[ "$c" != train ] || "$tenon" train MODEL.onnx --help >>"$dir/text"
	words <"$dir/text" >"$dir/help"
	lines <"$dir/text" | sed 's/^/name /' >>"$dir/help"
	sed -n "/^\.SH \"TENON $(echo "$c" | tr a-z A-Z)\"/,/^\.SH/p" \
		"$dir/page" >"$dir/text"
	words <"$dir/text" >"$dir/man"
	sed -n 's/^\.B \([a-z]*\)$/name \1/p' "$dir/text" >>"$dir/man"
	differ "tenon $c"
done <"$dir/commands"
[ $bad -eq 0 ] && echo "$(wc -l <"$dir/commands") commands"
exit $bad
