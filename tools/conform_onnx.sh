#!/usr/bin/env bash
# conform_onnx.sh [BUILD]: ONNX's own tests (Debian: libonnx-testdata), through
# the interpreter and through compiled code. Exit status 77: they are not there.
# TN_ONNX_TESTS names their folder; TN_ONNX_JOBS how many run at a time.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build}
data=${TN_ONNX_TESTS:-/usr/share/libonnx-testdata/data}
if [ ! -d "$data" ]; then
	echo "$data is not there: install libonnx-testdata"
	exit 77
fi
exec "$build/tenon" check --known tests/conform/onnx_known.txt \
	--jobs "${TN_ONNX_JOBS:-$(nproc)}" "$data"
