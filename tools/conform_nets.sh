#!/usr/bin/env bash
# conform_nets.sh PROGRAM NAME: one of the nine nets that the ONNX project
# publishes (light_NAME.onnx), compiled for batches of 1 and 4, against plain
# loops (tests/conform/nets.c). TN_ONNX_NETS names the folder; without it, a
# folder data/onnx-light beside the checkout. Exit status 77: it is not there.
set -u
program=$1 name=$2
cd "$(dirname "$0")/.." || exit 1
for dir in "${TN_ONNX_NETS:-}" ../*/data/onnx-light ../../*/data/onnx-light; do
	[ -n "$dir" ] && [ -f "$dir/light_$name.onnx" ] &&
		exec "$program" "$dir" "$name"
done
echo "skipped: no folder with light_$name.onnx; TN_ONNX_NETS may name one"
exit 77
