#!/usr/bin/env bash
# gpu.sh [--small] [FOLDER]: all that has to be seen on a machine with a GPU, in
# under nine minutes (then what is left is skipped): what the machine is; the tests that run on devices; random
# programs; ONNX's tests; NVIDIA's compute-sanitizer; every case of `tenon bench
# gpu` beside PyTorch and cuBLAS, with the machine code of those that miss
# their goals; training of GPT-2. Output files go to FOLDER
# (gpu-results). What cannot be done is skipped, with the reason. --small: extents
# for a GPU that is emulated, as tests/tools/test_gpu.sh tries this script.
# The last line is `N passed, N failed, N skipped`; exit status 1 if one failed.
# BUILD names a build folder; without it, one is made (build-gpu).
set -u
cd "$(dirname "$0")/.." || exit 1
small=
[ "${1:-}" = --small ] && small=--small && shift
out=${1:-gpu-results}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd) || exit 1
passed=0 failed=0 skipped=0
export TENON_DEVICE=cuda

skip() { # skip NAME WHY
	echo "-- $1: skipped: $2"
	skipped=$((skipped + 1))
}
stage() { # stage NAME SECONDS COMMAND...: its output is in FOLDER/NAME.txt
	local name=$1 limit=$2 rc began=$SECONDS left=$((530 - SECONDS))
	shift 2
	[ $left -ge 10 ] || { skip "$name" "nine minutes are over"; return; }
	[ "$limit" -le $left ] || limit=$left
	timeout "$limit" "$@" >"$out/$name.txt" 2>&1 </dev/null
	rc=$?
	case $rc in
	0)
		echo "-- $name: passed ($((SECONDS - began)) s)"
		passed=$((passed + 1))
		;;
	77)
		skip "$name" "$(tail -n 1 "$out/$name.txt")"
		;;
	*)
		[ $rc -eq 124 ] && echo "it took over $limit seconds" >>"$out/$name.txt"
		echo "-- $name: FAILED ($rc)"
		tail -n 8 "$out/$name.txt" | sed 's/^/   /'
		failed=$((failed + 1))
		;;
	esac
}

if [ -z "${BUILD:-}" ]; then
	BUILD=build-gpu
	[ -f $BUILD/build.ninja ] || meson setup $BUILD >"$out/build.txt" 2>&1 ||
		{ cat "$out/build.txt"; exit 1; }
	ninja -C $BUILD >>"$out/build.txt" 2>&1 ||
		{ tail -n 20 "$out/build.txt"; exit 1; }
fi
BUILD=$(cd "$BUILD" && pwd) || exit 1
tenon=$BUILD/tenon

# A shell of its own calls it.
# shellcheck disable=SC2317
machine() {
	date -u +%Y-%m-%d
	git rev-parse HEAD 2>/dev/null
	"$1" info --devices
	command -v nvidia-smi >/dev/null && nvidia-smi
	"$1" info --devices --json | grep -q '"cuda:0"'
}
export -f machine
# shellcheck disable=SC2016
stage machine 60 bash -c 'machine "$0"' "$tenon"
if [ $failed -gt 0 ]; then
	cat "$out/machine.txt"
	echo "$passed passed, $failed failed, $skipped skipped"
	exit 1
fi

# ---- right ----
for t in backward function inplace nn onnx_api onnx_loop params region; do
	stage "test_$t" 60 "$BUILD/tests/unit/test_$t"
done
count=${small:+20}
stage tensor_prop 60 "$BUILD/tests/prop/tensor_prop" --seed 11 \
	--count "${count:-400}" --compile 10
stage function_prop 60 "$BUILD/tests/prop/function_prop" --seed 12 \
	--count "${count:-200}" --compile 10
if [ -d "${ONNX_NODE_TESTS:-}" ]; then
	stage onnx 90 "$tenon" check "$ONNX_NODE_TESTS"
else
	skip onnx "ONNX_NODE_TESTS names no folder of ONNX's node tests"
fi
# ---- fast ----
if command -v python3 >/dev/null; then
	stage table 300 python3 bench/peers/gpu.py "$tenon" --seconds 200 \
		--sass "$out" $small
else
	stage table 200 "$tenon" bench gpu $small
fi
if [ -n "$small" ]; then
	skip train "extents are small"
else
	stage train 90 "$tenon" bench train --case 124m_256 --repeat 5
fi
# ---- races, and accesses out of bounds ----
if command -v compute-sanitizer >/dev/null; then
	for tool in memcheck racecheck synccheck; do
		stage $tool 60 compute-sanitizer --tool $tool --error-exitcode 1 \
			"$tenon" bench gpu --small --repeat 1
	done
else
	skip sanitizer "compute-sanitizer is not installed"
fi

cat "$out/table.txt"
[ -f "$out/train.txt" ] && cat "$out/train.txt"
echo "$passed passed, $failed failed, $skipped skipped"
exit $((failed > 0))
