#!/usr/bin/env bash
# fuzz.sh TARGET [SECONDS [ARGUMENTS...]]: libFuzzer on tests/fuzz/fuzz_TARGET.c
# with AddressSanitizer and UBSan, for SECONDS (default: 60).
#
#     tools/fuzz.sh onnx 3600
#     tools/fuzz.sh onnx 0 FILE        runs one input, as a finding is
#
# Needs clang with compiler-rt (Debian: clang, libclang-rt-14-dev). Builds into
# build-fuzz/; the corpus begins as that of the tests and grows in
# build-fuzz/corpus/TARGET; a finding is build-fuzz/TARGET-crash-..., and belongs,
# mended, into the test's corpus. Exit status 0: nothing found.
set -eu
cd "$(dirname "$0")/.."
target=${1:?usage: tools/fuzz.sh TARGET [SECONDS [ARGUMENTS...]]}
seconds=${2:-60}
shift $(($# < 2 ? $# : 2))
clang=${CLANG:-clang}
source=tests/fuzz/fuzz_$target.c
if [ ! -f "$source" ]; then
	echo "fuzz.sh: no $source" >&2
	exit 2
fi
build=build-fuzz
flags='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all'
flags="$flags -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION" # small limits
if [ ! -f $build/build.ninja ]; then
	CC=$clang meson setup $build -Dbuildtype=debugoptimized \
		-Db_lundef=false "-Dc_args=$flags -g -fno-omit-frame-pointer" \
		"-Dc_link_args=$flags" >/dev/null
fi
ninja -C $build libtenon_internal.a libtenon_ops.a
# shellcheck disable=SC2086
"$clang" $flags -fsanitize=fuzzer -std=gnu11 -g -O1 -Iinclude -Isrc \
	-Itests/lib "$source" tests/lib/*.c $build/libtenon_ops.a $build/libtenon_internal.a -lm -ldl \
	-lpthread -o "$build/fuzz_$target"

if [ "$seconds" -eq 0 ]; then
	exec "$build/fuzz_$target" -rss_limit_mb=2048 -timeout=120 "$@"
fi
corpus=$build/corpus/$target
mkdir -p "$corpus"
seed=$(sed -n "s/^ *\['$target', *'[0-9]*', *'\(.*\)'\].*/\1/p" \
	tests/fuzz/meson.build)
case $seed in
*.py)
	python3 "tests/fuzz/$seed" "$build/$target.stamp"
	seed=$build/$target
	;;
*) seed=tests/fuzz/$seed ;;
esac

# ONNX: words for the changes, and ONNX's own small models where they are
data=${TN_ONNX_TESTS:-/usr/share/libonnx-testdata/data}
if [ "$target" = onnx ]; then
	sed -n 's/^[A-Z]*(\("[A-Za-z][A-Za-z]*"\),.*/\1/p' src/onnx/onnx_ops.def |
		sort -u >"$build/onnx.dict"
	sed -n 's/^.*"\([a-z_][a-z_]*\)", *[a-zA-Z0-9.-]*).*/"\1"/p' \
		src/onnx/op_*.c | sort -u >>"$build/onnx.dict"
	set -- "-dict=$build/onnx.dict" "$@"
	if [ -d "$data" ]; then
		find "$data" -name model.onnx -size -5k | sort |
			while read -r file; do
				cp "$file" "$seed/$(basename "$(dirname "$file")")"
			done
	fi
fi
exec "$build/fuzz_$target" -max_total_time="$seconds" -rss_limit_mb=2048 \
	-malloc_limit_mb=2048 -timeout=120 -print_final_stats=1 \
	-artifact_prefix="$build/$target-" "$@" "$corpus" "$seed"
