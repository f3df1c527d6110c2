#!/usr/bin/env bash
# tidy.sh BUILD: clang-tidy over src/, by what BUILD compiles. Every warning is a
# failure. Without clang-analyzer, which takes minutes; attributes that only gcc
# knows are not its concern.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:?usage: tools/tidy.sh BUILD}
out=$(mktemp) || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$out" "$tmp"' EXIT
# Texts that stand one behind the other are one file.
behind="src/target/simt/matrix.c src/target/simt/bulk.c"
cat src/target/simt/prelude.c $behind >"$tmp/simt_prelude.c" || exit 1
{
	find src -name '*.c' ! -path src/target/simt/matrix.c ! -path src/target/simt/bulk.c \
		! -path src/target/simt/prelude.c | sort
	echo "$tmp/simt_prelude.c"
} |
	xargs -P "$(nproc)" -n 8 clang-tidy -p "$build" --quiet \
		--config-file=.clang-tidy \
		--extra-arg=-Wno-error --extra-arg=-Wno-ignored-attributes \
		--checks='-clang-analyzer-*' --warnings-as-errors='*' \
		>"$out" 2>/dev/null
rc=$?
grep -E '(warning|error):' "$out" | sort -u
n=$(find src -name '*.c' | wc -l)
[ "$rc" -eq 0 ] && echo "tidy: $n files, nothing to say"
exit "$rc"
