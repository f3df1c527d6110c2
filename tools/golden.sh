#!/usr/bin/env bash
# golden.sh [--update] [FILE or FOLDER]...: each file of tests/golden/ is a test:
#
#     # run: tenon explain %s --level=loops
#     # exit: 1                         (only when not 0)
#     program { ...                     the input
#     # >>>
#     what the command prints, both streams, to the end
#
# The command runs by sh in an empty folder that holds the input alone (all
# lines before the >>>, so that line numbers in messages are those of the
# file); %s is its name, %r the root of the repository. tenon is build/tenon,
# or that of $BUILD. --update rewrites the expected output; an exit status that
# differs stays a failure. Folders named data are not tests.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1

one() { # one UPDATE FILE DIR: prints a diff on failure, and leaves DIR/ok or DIR/bad
	local update=$1 file=$2 dir=$3 name want_rc rc command
	name=$(basename "$file")
	mkdir -p "$dir/in" || exit 1
	command=$(sed -n '1s/^# run: *//p' "$file")
	if [ -z "$command" ] || ! grep -qx '# >>>' "$file"; then
		echo "$file: no '# run:' in line 1, or no '# >>>'" >"$dir/bad"
		return
	fi
	want_rc=$(sed -n '2s/^# exit: *//p' "$file")
	sed '/^# >>>$/,$d' "$file" >"$dir/in/$name"
	sed '1,/^# >>>$/d' "$file" >"$dir/want"
	command=${command//%s/$name}
	command=${command//%r/$root}
	(cd "$dir/in" && timeout 120 sh -c "$command") >"$dir/got" 2>&1 </dev/null
	rc=$?
	if [ "$rc" -ne "${want_rc:-0}" ]; then
		{
			echo "$file: exit status $rc, expected ${want_rc:-0}"
			head -n 30 "$dir/got"
		} >"$dir/bad"
	elif cmp -s "$dir/want" "$dir/got"; then
		: >"$dir/ok"
	elif [ "$update" = 1 ]; then
		{
			cat "$dir/in/$name"
			echo '# >>>'
			cat "$dir/got"
		} >"$dir/new" && cat "$dir/new" >"$file" && echo "updated $file" >"$dir/ok"
	else
		diff -u --label "$file" --label "printed now" "$dir/want" \
			"$dir/got" >"$dir/bad"
	fi
}
if [ "${1:-}" = --one ]; then
	one "$2" "$4" "$5/$3"
	exit 0
fi

update=0
[ "${1:-}" = --update ] && update=1 && shift
[ $# -eq 0 ] && set -- "$root/tests/golden"
build=$(cd "$root" && cd "${BUILD:-build}" 2>/dev/null && pwd) ||
	{ echo "golden: there is no build: make build" >&2; exit 1; }
export PATH="$build:$PATH" XDG_CACHE_HOME="$build/cache" LC_ALL=C
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

find "$@" -name data -prune -o -type f -print | sort >"$tmp/list"
[ -s "$tmp/list" ] || { echo "golden: no tests in $*"; exit 1; }
awk '{ printf "%06d%c%s%c", NR, 0, $0, 0 }' "$tmp/list" |
	xargs -0 -n 2 -P "$(nproc)" sh -c 'exec "$0" --one "$1" "$3" "$4" "$2"' \
		"$root/tools/golden.sh" $update "$tmp"
cat "$tmp"/*/bad "$tmp"/*/ok 2>/dev/null
n=$(wc -l <"$tmp/list")
passed=$(ls "$tmp"/*/ok 2>/dev/null | wc -l)
echo "golden: $passed passed, $((n - passed)) failed"
[ "$passed" -eq "$n" ]
