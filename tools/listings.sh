#!/usr/bin/env bash
# listings.sh [--update] FILE.md...: listings in documents are what the commands
# print. A line
#
#     <!-- $ tenon explain examples/add_reduce.tn --level=loops -->
#
# stands in front of a fenced block with the output of that command, run by sh
# at the root of the repository with build/tenon (or that of $BUILD) in PATH.
# --update rewrites the blocks.
set -u
root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
update=0
[ "${1:-}" = --update ] && update=1 && shift
[ $# -gt 0 ] || { echo "usage: tools/listings.sh [--update] FILE.md..." >&2; exit 2; }
build=$(cd "$root" && cd "${BUILD:-build}" 2>/dev/null && pwd) ||
	{ echo "listings: there is no build: make build" >&2; exit 1; }
export PATH="$build:$PATH" XDG_CACHE_HOME="$build/cache" LC_ALL=C TENON_TARGET=x86-64-v3
tmp=$(mktemp) || exit 1
trap 'rm -f "$tmp"' EXIT
fails=0

skip_block() { # reads standard input past the closing fence
	while IFS= read -r line; do
		[ "$line" = '```' ] && return
	done
}

printed() { # the document on standard input with its listings made now
	local line command=
	while IFS= read -r line || [ -n "$line" ]; do
		printf '%s\n' "$line"
		case $line in
		'<!-- $ '*' -->')
			command=${line#'<!-- $ '}
			command=${command%' -->'}
			;;
		'```'*)
			[ -n "$command" ] || continue
			skip_block
			(cd "$root" && sh -c "$command") 2>&1 </dev/null
			printf '```\n'
			command=
			;;
		esac
	done
}

for file in "$@"; do
	printed <"$file" >"$tmp"
	if cmp -s "$tmp" "$file"; then
		:
	elif [ $update = 1 ]; then
		cat "$tmp" >"$file"
		echo "updated $file"
	else
		diff -u --label "$file" --label "printed now" "$file" "$tmp"
		fails=1
	fi
done
[ $fails = 0 ] && echo "listings: $# documents are as printed now"
exit $fails
