#!/usr/bin/env bash
# conform_nets.sh PROGRAM NAME: one of the nine nets that the ONNX project
# publishes (light_NAME.onnx), compiled for batches of 1 and 4, against plain
# loops (tests/conform/nets.c). TN_ONNX_NETS names the folder; without it, the
# two small ones are taken from a folder data/onnx-light beside the checkout.
# Exit status 77: it is not there, or not asked for.
set -u
program=$1 name=$2 dirs=("${TN_ONNX_NETS:-}")
cd "$(dirname "$0")/.." || exit 1
case $name in
squeezenet | shufflenet) dirs+=(../*/data/onnx-light) ;;
esac
for dir in "${dirs[@]}"; do
	[ -n "$dir" ] && [ -f "$dir/light_$name.onnx" ] &&
		exec "$program" "$dir" "$name"
done
echo "skipped: TN_ONNX_NETS names no folder with light_$name.onnx"
exit 77
