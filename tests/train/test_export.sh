#!/usr/bin/env bash
# test_export.sh BUILD LOGITS SAME: a model that tenon train has made of a text,
# exported, gives the logits of its own layers, at its length and at another; as C,
# too, and as a step of training in C.
set -u
tenon=$1/tenon logits=$2 same=$3
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

fail() {
	echo "FAILED: $*"
	exit 1
}

for i in {1..120}; do
	echo "line $i: what is $((i * i % 97)) times $((i * 7 % 31))?"
done >text
"$tenon" train --text text --layers 2 --heads 2 --width 16 --context 16 \
	--batch 2 --steps 4 --warmup 2 --every 4 --sample 0 --threads 1 \
	--out model >/dev/null || fail "it was not trained"
for dim in "" batch=2,length=7; do
	b=1 t=16 args=()
	[ -z "$dim" ] || { b=2 t=7 && args=(--dim batch=2 --dim length=7); }
	printf 'program { x: f32[%d,%d] s = mul(x, x) h = fill(shape=[], value=255.0, dtype=f32) m = mul(s, h) ids = cast(m, to=i64) return ids }' \
		"$b" "$t" >ids.tn
	"$tenon" run ids.tn --interp --seed 5 --output in 2>/dev/null ||
		fail "no ids"
	"$tenon" export model/best.safetensors -o m.onnx "${args[@]}" ||
		fail "no export $dim"
	"$tenon" run m.onnx --interp --input ids=in/ids.npy --output got ||
		fail "it does not run"
	"$logits" model/best.safetensors in/ids.npy want.npy ||
		fail "the checkpoint does not run"
	"$same" same want.npy got/logits.npy || fail "other logits, $dim"
done
"$tenon" info m.onnx | grep -q '^output  "logits": tensor(float)\[2,7,256\]' ||
	fail "its output is not as it should be"
grep -aq 'block1.attention.query.weight' m.onnx || fail "names are not kept"
"$tenon" export model/best.safetensors -o m.onnx --dim length=17 2>&1 |
	grep -q 'export.dim' || fail "a length beyond the context"
# As C: the interpreter's logits, and a step of training.
command -v "${CC:-cc}" >/dev/null && command -v make >/dev/null || exit 0
"$tenon" export model/best.safetensors --c gpt --name gpt --dim batch=2 --dim length=7 \
	--input ids=in/ids.npy || fail "no C"
"$tenon" export model/best.safetensors --c learn --name gpt --train --batch 2 \
	--freeze '*norm*' || fail "no C of a step"
"$tenon" export model/best.safetensors --c no --train --dim length=7 2>&1 |
	grep -q 'export.dim' || fail "a step of another length"
for dir in gpt learn; do
	make -s -C $dir CFLAGS='-std=c99 -pedantic -Wall -Wextra -Werror -O2' check |
		grep -q 'passed, with the bits of the library' || fail "$dir as C"
done
for dir in gpt learn; do # memory: that of the plan and the state
	python3 -c 'import json,sys; j=json.load(open(sys.argv[1])); sys.exit(j["arena_bytes"] > 1.02 * (j["plan_bytes"] + j["state_bytes"]))' \
		$dir/gpt.json || fail "the arena of $dir is larger than its plan"
done
grep -q 'GPT_STATE_BLOCK0_UP_WEIGHT(n)' learn/gpt.h || fail "a weight is no state"
grep -q 'NORM1_WEIGHT(n)' learn/gpt.h && fail "what is frozen is a state"
head -c 400 model/best.safetensors >cut.safetensors
"$tenon" export cut.safetensors -o no.onnx 2>/dev/null && fail "half a file"
[ ! -e no.onnx ] || fail "half a file became a model"
