#!/usr/bin/env bash
# test_simt.sh BUILD LOGITS SAME: a GPT on emulated warps of a GPU. Its losses are
# those of the interpreter in f64 (reference.txt) as test_reference.sh has it for
# the CPU: f64 to 1e-7, f32 to 1e-5, bf16 to 3e-3 of each; its logits are those
# of the interpreter in f32, and it writes the same tokens. In make check one of
# the three types, 3 steps; without TN_PART all of them, 20 steps.
set -u
tenon=$1/tenon logits=$2 same=$3
reference=$(cd "$(dirname "$0")" && pwd)/reference.txt
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
for i in {1..120}; do
	echo "line $i: what is $((i * i % 97)) times $((i * 7 % 31))?"
done >text

fails=0
fail() {
	echo "FAILED: $*"
	fails=$((fails + 1))
}
train() { # train OUT ARGUMENT...
	local out=$1
	shift
	rm -rf "$out"
	"$tenon" train --text text --layers 2 --heads 2 --width 16 \
		--context 16 --batch 3 --warmup 4 --every 10 \
		--lr 0.01 --seed 7 --sample 0 --json --out "$out" "$@"
}
steps() { # steps N TYPE TOLERANCE
	TENON_DEVICE=simt train model --steps "$1" --dtype "$2" |
		sed -n 's/.*"step": \([0-9]*\), "loss": \([0-9.]*\),.*/\1 \2/p' >losses
	grep -v '^#' "$reference" | head -n "$1" | paste -d ' ' - losses |
		awk -v t="$3" -v n="$1" -v what="$2" '
		{ d = ($4 - $2) / $2; d = d < 0 ? -d : d; if (d > most) most = d }
		$1 != $3 { bad = 1 }
		END { print what ": largest difference", most + 0, "of", NR, "losses"
			exit bad || NR != n || most > t }' ||
		fail "$1 steps, $2"
}
write() { # write: text of the model in `written`
	"$tenon" generate --model written --prompt "line 7: what" --tokens 12 \
		--temperature 1 --seed 3 "$@"
}

n=20 types=(f64 f32 bf16) tolerances=(1e-7 1e-5 3e-3)
[ -z "${TN_PART:-}" ] || n=3
for i in 0 1 2; do
	[ -n "${TN_PART:-}" ] && [ $((TN_PART % 3)) -ne $i ] && continue
	steps "$n" "${types[i]}" "${tolerances[i]}"
done

train written --steps 4 --dtype f32 >/dev/null || fail "it was not trained"
write --interp >want || fail "the interpreter does not write"
TENON_DEVICE=simt write >got || fail "emulated warps do not write"
cmp want got || fail "other tokens: $(cat want) and: $(cat got)"
echo "program { x: f32[2,9] s = mul(x, x) h = fill(shape=[], value=255.0, dtype=f32)
	m = mul(s, h) ids = cast(m, to=i64) return ids }" >ids.tn
"$tenon" run ids.tn --interp --seed 5 --output in 2>/dev/null || fail "no ids"
TENON_RUN=interp "$logits" written/best.safetensors in/ids.npy want.npy &&
	TENON_DEVICE=simt "$logits" written/best.safetensors in/ids.npy got.npy &&
	"$same" same want.npy got.npy || fail "other logits"
exit $((fails > 0))
