#!/usr/bin/env bash
# gpu.sh [--small] [FOLDER]: all that has to be seen on a machine with a GPU, in
# under nine minutes (then what is left is skipped): what the machine is; every case
# of `tenon bench gpu`, then beside PyTorch and cuBLAS, with the machine code of those that miss
# their goals; training of GPT-2; the tests that run on devices; random
# programs; ONNX's tests; NVIDIA's compute-sanitizer. Output files go to FOLDER
# (gpu-results). The table comes first, and each part has a limit, after which it is
# killed: whatever fails or hangs, the others are done. What cannot be done is skipped,
# with the reason. --small: extents
# for a GPU that is emulated, as tests/tools/test_gpu.sh tries this script.
# The last line is `N passed, N failed, N skipped`; exit status 1 if one failed.
# BUILD names a build folder; without it, one is made (build-gpu), of what is used here.
# SECONDS_IN_ALL (520) is when no further part begins.
set -u
cd "$(dirname "$0")/.." || exit 1
small=
[ "${1:-}" = --small ] && small=--small && shift
out=${1:-gpu-results}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd) || exit 1
rm -f "$out/table.txt" "$out/train.txt"
passed=0 failed=0 skipped=0
all=${SECONDS_IN_ALL:-520}
export TENON_DEVICE=cuda
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
# kernels are compiled here, not found in what was compiled before
export XDG_CACHE_HOME=$tmp/cache

skip() { # skip NAME WHY
	echo "-- $1: skipped: $2"
	skipped=$((skipped + 1))
}
# Runs COMMAND for SECONDS at most; its exit status, 124 if it was killed. What
# does not even die then, waiting for a driver, is left behind.
limited() { # limited SECONDS COMMAND...
	local limit=$1 end=$((SECONDS + $1 + 8)) rc
	rc=$tmp/rc.$passed.$failed.$skipped
	shift
	{
		timeout -k 5 "$limit" "$@"
		echo $? >"$rc.now"
		mv "$rc.now" "$rc"
	} &
	while [ ! -f "$rc" ]; do
		[ $SECONDS -le $end ] || return 124
		sleep 0.1
	done
	wait $!
	[ "$(cat "$rc")" -ne 137 ] || return 124
	return "$(cat "$rc")"
}
stage() { # stage NAME SECONDS COMMAND...: its output is in FOLDER/NAME.txt
	local name=$1 limit=$2 rc began=$SECONDS left=$((all - SECONDS))
	shift 2
	[ $left -ge 10 ] || { skip "$name" "nine minutes are over"; return; }
	[ "$limit" -le $left ] || limit=$left
	limited "$limit" "$@" >"$out/$name.txt" 2>&1 </dev/null
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
finish() {
	for t in table train; do
		[ -f "$out/$t.txt" ] && cat "$out/$t.txt"
	done
	echo "$passed passed, $failed failed, $skipped skipped"
	exit $((failed > 0))
}

units="backward function inplace nn onnx_api onnx_loop params region"
if [ -z "${BUILD:-}" ]; then
	BUILD=build-gpu
	targets=(tenon tests/prop/tensor_prop tests/prop/function_prop)
	for t in $units; do
		targets+=("tests/unit/test_$t")
	done
	# shellcheck disable=SC2016
	stage build 240 sh -c '[ -f "$0/build.ninja" ] || meson setup "$0" || exit 1
		exec ninja -C "$0" "$@"' $BUILD "${targets[@]}"
	[ $failed -eq 0 ] || finish
fi
BUILD=$(cd "$BUILD" && pwd) || exit 1
tenon=$BUILD/tenon

# A shell of its own calls it.
# shellcheck disable=SC2317
machine() {
	date -u +%Y-%m-%d
	git rev-parse HEAD 2>/dev/null
	"$1" info --devices
	command -v nvidia-smi >/dev/null && timeout -k 2 15 nvidia-smi
	"$1" info --devices --json | grep -q '"cuda:0"'
}
export -f machine
# shellcheck disable=SC2016
stage machine 60 bash -c 'machine "$0"' "$tenon"
if [ $failed -gt 0 ]; then
	cat "$out/machine.txt"
	finish
fi

# ---- fast ----
if command -v python3 >/dev/null; then
	stage table 260 python3 bench/peers/gpu.py "$tenon" --seconds 230 \
		--sass "$out" $small
else
	stage table 120 "$tenon" bench gpu $small
fi
# instructions of several warps, which only these GPUs have
if grep -q 'compute capability 9.0' "$out/machine.txt"; then
	TENON_MACHINE=cuda/sm_90a stage table_sm_90a 60 "$tenon" bench gpu \
		--case f16 --repeat 5 $small
else
	skip table_sm_90a "the GPU has no matrix instructions of several warps"
fi
if [ -n "$small" ]; then
	skip train "extents are small"
else
	stage train 90 "$tenon" bench train --case 124m_256 --repeat 5
fi
# ---- right ----
for t in $units; do
	stage "test_$t" 30 "$BUILD/tests/unit/test_$t"
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
# ---- races, and accesses out of bounds ----
if command -v compute-sanitizer >/dev/null; then
	for tool in memcheck racecheck synccheck; do
		stage $tool 60 compute-sanitizer --tool $tool --error-exitcode 1 \
			"$tenon" bench gpu --small --repeat 1
	done
else
	skip sanitizer "compute-sanitizer is not installed"
fi

finish
