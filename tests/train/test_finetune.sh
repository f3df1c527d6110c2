#!/usr/bin/env bash
# test_finetune.sh BUILD HELPER: an imported SqueezeNet learns 10 classes: the
# loss falls, what is written is the net that has learnt, and written again as
# another model it gives the same. With the net that the ONNX project publishes,
# too, where it is (TN_ONNX_NETS, or data/onnx-light beside the checkout).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
tenon=$1/tenon helper=$2
nets=("${TN_ONNX_NETS:-}" "$root"/../*/data/onnx-light)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

fail() {
	echo "FAILED: $*"
	exit 1
}
below() { # below A B FACTOR: A is less than B times it
	awk -v a="$1" -v b="$2" -v f="$3" 'BEGIN { exit !(a < b * f) }'
}

mkdir data
"$helper" write net.onnx data || fail "no model was written"

# learns NET BATCH STEPS ARGUMENTS...: into learnt.onnx, its losses into log
learns() {
	local net=$1 batch=$2 steps=$3
	shift 3
	"$tenon" train "$net" --data data --classes 10 --batch "$batch" \
		--steps "$steps" --json --out learnt.onnx "$@" >log ||
		fail "it was not trained"
	first=$(sed -n '1s/.*"loss":\([^,]*\),.*/\1/p' log)
	last=$(sed -n '$s/.*"loss":\([^,]*\),.*/\1/p' log)
	echo "loss $first, after $steps steps $last"
}

learns net.onnx 10 60 --lr 0.0003
below "$last" "$first" 0.8 || fail "the loss did not fall"
"$tenon" info learnt.onnx | grep -q 'operator "Dropout": 1' ||
	fail "dropout is gone"
"$tenon" info learnt.onnx | grep -q '"class": tensor(float)\[N,10,1,1\]' ||
	fail "it has not 10 classes"

"$tenon" run learnt.onnx --input picture=data/picture.npy --output one \
	2>&1 || fail "what was learnt does not run"
now=$("$helper" loss one/class.npy data/y.npy)
echo "loss of the written net on all pictures, nothing dropped: $now"
below "$now" "$first" 0.8 || fail "the file is not what has learnt"

"$tenon" export learnt.onnx -o again.onnx --dim N=20 || fail "no export"
"$tenon" run again.onnx --input picture=data/picture.npy --output two ||
	fail "what was exported does not run"
"$helper" same one/class.npy two/class.npy || fail "another result"

for dir in "${nets[@]}"; do
	net=$dir/light_squeezenet.onnx
	[ -n "$dir" ] && [ -f "$net" ] || continue
	echo "the published net:"
	rm -rf data/picture.npy one two
	# random pictures: by heart
	printf 'program { x: f32[20,3,224,224] return x }' >x.tn
	"$tenon" run x.tn --output data 2>/dev/null || fail "no pictures"
	learns "$net" 5 8 --fresh --lr 0.0003
	below "$last" "$first" 1 || fail "the loss did not fall"
	"$tenon" export learnt.onnx -o again.onnx || fail "no export"
	for m in learnt again; do
		"$tenon" run $m.onnx --output $m 2>/dev/null || fail "$m.onnx"
	done
	"$helper" same learnt/*.npy again/*.npy || fail "another result"
	exit 0
done
echo "the published net is not here: TN_ONNX_NETS names no folder with light_squeezenet.onnx"
