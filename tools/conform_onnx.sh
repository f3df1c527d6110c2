#!/usr/bin/env bash
# conform_onnx.sh [--simt] [BUILD]: ONNX's own tests (Debian: libonnx-testdata),
# through the interpreter and through compiled code; --simt: compiled for
# emulated warps of a GPU, of PARTS parts the one that TN_PART says, or all
# without it. Exit status 77: they are not there. TN_ONNX_TESTS names their
# folder; TN_ONNX_JOBS how many run at a time.
set -u
cd "$(dirname "$0")/.." || exit 1
PARTS=40
arguments=()
[ "${1:-}" = --simt ] && {
	shift
	export TENON_DEVICE=simt
	arguments=(--mode=compiled)
}
build=${1:-build}
data=${TN_ONNX_TESTS:-/usr/share/libonnx-testdata/data}
if [ ! -d "$data" ]; then
	echo "$data is not there: install libonnx-testdata"
	exit 77
fi
tests=("$data")
[ "${TENON_DEVICE:-}" = simt ] && [ -n "${TN_PART:-}" ] &&
	mapfile -t tests < <(find "$data" -name model.onnx -printf '%h\n' | sort |
		awk -v n=$PARTS -v k="$TN_PART" 'NR % n == k % n')
exec "$build/tenon" check --known tests/conform/onnx_known.txt \
	--jobs "${TN_ONNX_JOBS:-$(nproc)}" "${arguments[@]}" "${tests[@]}"
