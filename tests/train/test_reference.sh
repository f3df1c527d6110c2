#!/usr/bin/env bash
# test_reference.sh BUILD: the losses of 20 steps are those of the interpreter
# in f64 (reference.txt): compiled f64 to 1e-7, f32 to 1e-5 of
# each, bf16 to 3e-3. A step
# that is wrong in one gradient is off by more than 1e-2 at the end.
set -u
tenon=$1/tenon
reference=$(cd "$(dirname "$0")" && pwd)/reference.txt
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
for i in {1..120}; do
	echo "line $i: what is $((i * i % 97)) times $((i * 7 % 31))?"
done >text

fails=0
compare() { # compare TOLERANCE ARGUMENT...
	local tolerance=$1
	shift
	rm -rf model
	"$tenon" train --text text --layers 2 --heads 2 --width 16 \
		--context 16 --batch 3 --steps 20 --warmup 4 --every 10 \
		--lr 0.01 --seed 7 --sample 0 --json --out model "$@" |
		sed -n 's/.*"step": \([0-9]*\), "loss": \([0-9.]*\),.*/\1 \2/p' >losses
	grep -v '^#' "$reference" | paste -d ' ' - losses | awk -v t="$tolerance" '
		{ d = ($4 - $2) / $2; d = d < 0 ? -d : d; if (d > most) most = d }
		$1 != $3 { bad = 1 }
		END { print "largest difference", most + 0, "of", NR, "losses"
			exit bad || NR != 20 || most > t }' || {
		echo "FAILED: $*"
		fails=$((fails + 1))
	}
}
compare 1e-7 --dtype f64
compare 1e-5 --dtype f32
compare 1e-5 --dtype f32 --threads 1
compare 3e-3 --dtype bf16
exit $((fails > 0))
