#!/usr/bin/env bash
# conform_nets_simt.sh PROGRAM: the nine nets of conform_nets.sh with fewer
# channels (tests/conform/small_net.py), drawn weights and two pictures, on
# emulated warps of a GPU, against plain loops. With TN_PART one of them. The
# files are looked for in TN_ONNX_NETS, and in a folder data/onnx-light beside the
# checkout. Exit status 77: they are not there.
set -u
program=$1
cd "$(dirname "$0")/.." || exit 1
nets=(bvlc_alexnet/8 densenet121/16 inception_v1/8 inception_v2/8 resnet50/8
	shufflenet/2 squeezenet/8 vgg19/8 zfnet512/8)
[ -z "${TN_PART:-}" ] || nets=("${nets[TN_PART % ${#nets[@]}]}")
found=
for dir in "${TN_ONNX_NETS:-}" ../*/data/onnx-light; do
	[ -n "$found" ] || { [ -n "$dir" ] && [ -f "$dir/light_squeezenet.onnx" ] &&
		found=$dir; }
done
if [ -z "$found" ]; then
	echo "skipped: TN_ONNX_NETS names no folder with light_squeezenet.onnx"
	exit 77
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
fails=0
for net in "${nets[@]}"; do
	name=${net%/*}
	tests/conform/small_net.py "$found/light_$name.onnx" \
		"$tmp/light_$name.onnx" "${net#*/}" &&
		TENON_DEVICE=simt "$program" --drawn "$tmp" "$name" || {
		echo "FAILED: $name"
		fails=$((fails + 1))
	}
done
exit $((fails > 0))
