#!/usr/bin/env bash
# test_train.sh BUILD PART: tenon train and tenon generate as they are used; PART
# is runs, killed, pairs, files, refused, writes or schedules. A run that is broken
# off and goes on ends with the same bits, however it was broken off; what cannot
# be is refused with its reason. TN_KILLS: the number of runs that are killed (3).
set -u
tenon=$1/tenon
part=$2
kills=${TN_KILLS:-3}
tmp=$(mktemp -d) || exit 1
pid= # of a run beside this one; it must not outlive it
trap '[ -z "$pid" ] || kill -9 $pid 2>/dev/null; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
fails=0

fail() {
	printf 'FAILED: %s\n' "$*"
	fails=$((fails + 1))
}
expect() { # expect STATUS TEXT COMMAND...: the output has TEXT in it
	local status=$1 text=$2 out rc
	shift 2
	out=$("$@" 2>&1)
	rc=$?
	if [ $rc -ne "$status" ] || [[ "$out" != *"$text"* ]]; then
		fail "expected $status and \"$text\", got $rc from $*:"
		printf '%s\n' "$out" | tail -n 5
	fi
}
same() { # same A B: checkpoints with the same bits
	cmp "$1" "$2" >&2 || fail "$1 and $2 differ"
}

for i in {1..120}; do
	echo "line $i: what is $((i * i % 97)) times $((i * 7 % 31))?"
done >text
tiny=(--text text --layers 1 --heads 2 --width 16 --context 16 --batch 2
	--accumulate 2 --steps 24 --warmup 2 --every 4 --dropout 0.1 --seed 3
	--sample 0 --threads 1)
train() {
	"$tenon" train "${tiny[@]}" "$@"
}

end=step-00000024.safetensors

# The run that the others are compared with.
train --out whole --json >log || fail "a whole run"
in_parts() {
	train --out parts --until 9 >/dev/null || fail "a run until 9"
	train --out parts --resume --until 10 --threads 2 >/dev/null ||
		fail "until 10"
	train --out parts --resume >/dev/null || fail "to the end"
}

# ---- whole, and in parts ----
test_runs() {
	[ "$(grep -c '"event": "step"' log)" -eq 24 ] || fail "a line for each step"
	loss() { sed -n "s/.*\"step\": $1,.*\"loss\": \([0-9.]*\),.*/\1/p" log; }
	awk -v a="$(loss 1)" -v b="$(loss 24)" 'BEGIN { exit !(b < a - 0.3) }' ||
		fail "the loss falls: $(loss 1) to $(loss 24)"
	live() { sed -n "s/.*\"step\": $1,.*\"live_bytes\": \([0-9]*\).*/\1/p" log; }
	[ "$(live 12)" -gt 0 ] && [ "$(live 12)" -eq "$(live 24)" ] ||
		fail "a step leaves memory behind: $(live 12), then $(live 24)"
	[ "$(ls whole | wc -l)" -eq 3 ] || fail "two checkpoints and the best: $(ls whole)"
	in_parts
	same whole/$end parts/$end
	same whole/best.safetensors parts/best.safetensors


	# bf16, with masters in the checkpoint
	train --dtype bf16 --out small >/dev/null || fail "bf16"
	train --dtype bf16 --out small2 --until 9 >/dev/null || fail "bf16 until 9"
	train --out small2 --resume --threads 2 >/dev/null || fail "bf16 to the end"
	same small/$end small2/$end
	cmp -s small/$end whole/$end && fail "bf16 is f32"
	"$tenon" generate --model small --tokens 40 --prompt 'line 10: what' >a &&
		[ "$(wc -c <a)" -gt 50 ] || fail "writes in bf16"

	# one run a folder
	# it is waited for by a file that stays: of the steps only two are kept, and
	# on a busy machine they come and go unseen
	"$tenon" train "${tiny[@]}" --out locked --steps 20000 --every 4 \
		>/dev/null 2>&1 &
	pid=$!
	while kill -0 $pid 2>/dev/null && [ ! -e locked/best.safetensors ]; do
		sleep 0.01
	done
	expect 1 "error[train.locked]: process $pid is training in this folder" \
		"$tenon" train "${tiny[@]}" --steps 20000 --out locked --resume
	kill -9 $pid
	wait $pid 2>/dev/null
	pid=
	"$tenon" train --text text --out locked --resume --until 1 --sample 0 \
		--threads 1 >/dev/null || fail "a lock ends with its process"

	# asked to stop: goes on with the same bits
	"$tenon" train "${tiny[@]}" --out asked --every 24 >/dev/null 2>&1 &
	pid=$!
	while kill -0 $pid 2>/dev/null && [ ! -e asked/step-00000000.safetensors ]; do
		sleep 0.01
	done
	kill -TERM $pid 2>/dev/null
	wait $pid
	pid=
	[ -e asked/$end ] || train --out asked --resume --every 24 >/dev/null ||
		fail "goes on after it was asked to stop"
	for f in whole asked; do # all but the metadata, which tell of --every
		"$tenon" generate --model $f/$end --prompt "line 1" --tokens 20 >$f.out ||
			fail "generate from $f"
	done
	cmp whole.out asked.out || fail "asked to stop: other parameters"
}

# ---- killed ----
test_killed() {
	# so fast that most of the time goes into checkpoints: one for each step
	for ((i = 0; i < kills; i++)); do
		rm -rf killed
		"$tenon" train "${tiny[@]}" --out killed --every 1 >/dev/null 2>&1 &
		pid=$!
		sleep "0.$(printf '%03d' $((RANDOM % 600)))"
		kill -9 $pid 2>/dev/null
		wait $pid 2>/dev/null
		pid=
		how=--resume
		[ -n "$(find killed -name 'step-*.safetensors' 2>/dev/null)" ] || how=
		train --out killed --every 1 $how >out 2>&1 || {
			fail "killed run $i does not go on"
			cat out
		}
		[ -e all1 ] || train --out all1 --every 1 >/dev/null || fail "every 1"
		same all1/$end killed/$end
		[ -z "$(find killed -name '*.tmp')" ] || fail "left over: $(ls killed)"
	done
}

# ---- a vocabulary of pairs: learned once, kept beside, the same bits ----
test_pairs() {
	pairs() {
		train --vocab 300 "$@"
	}
	pairs --out pairs >log || fail "a vocabulary"
	grep -q 'tokens 300 different, [2-9]' log || fail "tokens: $(cat log)"
	pairs --out pairs2 --until 9 >/dev/null || fail "pairs until 9"
	train --out pairs2 --resume --threads 2 >/dev/null || fail "pairs to the end"
	same pairs/$end pairs2/$end
	same pairs/tokenizer.json pairs2/tokenizer.json
	"$tenon" generate --model pairs --tokens 30 --prompt 'what is ä' --stats \
		>a 2>err || fail "writes with pairs"
	"$tenon" generate --model pairs --tokens 30 --prompt 'what is ä' --uncached >b
	cmp a b || fail "pairs: what is kept"
	[ "$(head -c 10 a)" = 'what is ä' ] || fail "the prompt"
	[ "$(wc -c <a)" -gt 42 ] || fail "tokens are more than bytes"
	grep -q ' 0 programs were compiled' err || fail "pairs: $(cat err)"
	sed 's/116/115/' pairs/tokenizer.json >pairs2/tokenizer.json
	expect 1 'this vocabulary is not the one of' pairs --out pairs2 --resume
	expect 1 'this vocabulary is not the one of' "$tenon" generate --model pairs2
	echo '{"format": "tenon byte pairs 1", "merges": [[99999, 1]]}' \
		>pairs2/tokenizer.json
	expect 1 'pairs2/tokenizer.json:1: error[train.vocab]' \
		"$tenon" generate --model pairs2
	rm pairs2/tokenizer.json
	expect 1 'the vocabulary cannot be opened' pairs --out pairs2 --resume
	expect 1 'was started with --vocab 300, not 256' \
		train --vocab 256 --out pairs --resume
	expect 1 'error[train.vocab]: the text has too few pairs for' \
		train --vocab 60000 --out x
	expect 2 'not an integer from 256 to 65536' train --vocab 255 --out x
	mkdir -p away && train --from pairs/step-00000020.safetensors --out away \
		>/dev/null || fail "pairs from another folder"
	same away/$end pairs/$end
	"$tenon" generate --model away >/dev/null || fail "its vocabulary"
}

# ---- checkpoints that are none ----
test_files() {
	in_parts
	newest=parts/$end older=parts/step-00000020.safetensors
	head -c 5000 whole/$end >$newest
	expect 1 'safetensors' train --out parts --resume
	expect 1 'the checkpoint before it: --from parts/step-00000020' train --out parts --resume
	train --out parts --from $older >/dev/null || fail "the older one"
	same whole/$end $newest
	head -c 300 whole/$end >$newest
	expect 1 'error[safetensors' train --out parts --resume
	: >$newest
	expect 1 'error[safetensors' train --out parts --resume
	printf '\002\000\000\000\000\000\000\000{}' >$newest
	expect 1 'not a checkpoint of tenon train' train --out parts --resume
	expect 1 'holds only parameters' train --out parts --from whole/best.safetensors
	expect 1 'was started with --width 16, not 32' train --out whole --resume --width 32
	# one flipped bit anywhere is found; a file without a checksum is read
	flip() { # flip FILE BYTE BIT
		local b
		b=$(od -An -tu1 -j "$2" -N 1 "$1")
		printf "\\$(printf %o $((b ^ (1 << $3))))" |
			dd of="$1" bs=1 seek="$2" conv=notrunc status=none
	}
	bytes=$(stat -c %s whole/$end)
	for i in $(seq 0 24); do
		cp whole/$end flipped.safetensors
		flip flipped.safetensors $(((bytes - 1) * i / 24)) $((i % 8))
		expect 1 'flipped.safetensors' \
			train --out parts --from flipped.safetensors
	done
	cp whole/$end flipped.safetensors
	flip flipped.safetensors $((bytes - 9)) 3
	expect 1 'error[safetensors.checksum]' \
		train --out parts --from flipped.safetensors
	cp whole/best.safetensors flipped.safetensors
	flip flipped.safetensors $(($(stat -c %s flipped.safetensors) - 9)) 3
	expect 1 'error[safetensors.checksum]' \
		"$tenon" generate --model flipped.safetensors --tokens 2
	LC_ALL=C sed 's/"tenon.train":"3"/"tenon.train":"2"/' whole/$end >old.safetensors
	expect 1 'error[safetensors.checksum]' train --out old --from old.safetensors
	LC_ALL=C sed 's/"tenon.train":"3"/"tenon.train":"2"/
		s/"tenon.sha256"/"tenon.sha-no"/' whole/$end >old.safetensors
	train --out old --from old.safetensors >/dev/null 2>err || fail "$(cat err)"
	grep -q 'no checksum' err || fail "a note for an old one: $(cat err)"
	echo more >more
	expect 1 'the run was started with another text' train --out whole --resume --text more
	expect 1 '--resume continues from it' train --out whole
	expect 1 'no checkpoint in this folder' train --out nothing --resume
}

# ---- what cannot be ----
test_refused() {
	: >empty
	expect 1 'is empty' "$tenon" train --text empty --out x
	expect 1 'cannot be opened' "$tenon" train --text nowhere --out x
	mkdir -p folder && printf 'a\0b' >folder/binary
	expect 1 'no text file in this folder' "$tenon" train --text folder --out x
	expect 1 'too short for a context of 5000' train --out x --context 5000
	expect 1 '--heads 3 must divide --width 16' train --out x --heads 3
	expect 1 'error[train.memory]' train --out x --layers 512 --width 65536 --heads 1
	expect 1 'and this machine has' train --out x --layers 512 --width 65536 --heads 1
	expect 2 'not an integer' train --out x --layers x
	expect 2 'not an integer' train --out x --layers 0
	expect 1 'cannot be made' train --out /dev/null/x
	[ ! -e x ] || rm -rf x
	expect 1 'error[train.diverged]' train --out far --lr 1e30 --every 1
	expect 1 'parameters are not finite' \
		train --out far2 --lr 1e30
	"$tenon" generate --model far/step-00000000.safetensors --tokens 2 >/dev/null ||
		fail "the last good checkpoint is there"

	# a disk that is full: a file that may not grow, at the second checkpoint
	train --out full --until 4 >/dev/null || fail "until 4"
	cp full/step-00000004.safetensors good
	expect 1 'error[safetensors.write]' bash -c "ulimit -f 8; exec '$tenon' train \
		${tiny[*]} --out full --resume"
	same good full/step-00000004.safetensors
	train --out full --resume >/dev/null || fail "goes on with room again"
	same whole/$end full/$end
}

# ---- writing ----
test_writes() {
	write() {
		"$tenon" generate --model whole --prompt 'line ' --tokens 30 "$@"
	}
	write --seed 1 >a && write --seed 1 >b && cmp a b || fail "the same seed"
	write --seed 2 >b
	cmp -s a b && fail "another seed writes the same"
	write --temperature 0 >a && write --top-k 1 --seed 5 >b && cmp a b ||
		fail "the likeliest"
	write --temperature 0 --interp >b && cmp a b || fail "the interpreter writes"
	[ "$(wc -c <a)" -eq 36 ] || fail "30 bytes, not $(wc -c <a) - 6"
	# with keys and values kept, the same tokens as without: within a context,
	# beyond it (16), after a prompt that is read at once; nothing is compiled
	for a in '--temperature 0' '--seed 3' '--seed 4 --temperature 2 --threads 2'; do
		for p in l 'line 10: what is' 'line 10: what is 10 times 7?'; do
			# shellcheck disable=SC2086
			for how in --stats --uncached; do
				"$tenon" generate --model whole --prompt "$p" \
					--tokens 60 $a $how >a$how 2>err$how ||
					fail "generate $how"
			done
			[ "$(wc -c <a--stats)" -gt 61 ] && cmp a--stats a--uncached || fail "what is kept: $p, $a"
			grep -q 'half, 30 tokens, 0 programs were compiled, \(0\|-[0-9]*\) bytes' \
				err--stats || fail "each token: $(cat err--stats)"
			grep -q ', 0 copied' err--stats || fail "copies: $(cat err--stats)"
		done
	done
	# prompts of several blocks, with more keys than the first 256, the last block
	# of a context that begins earlier, and one that has moved
	train --out long --context 300 --steps 1 >/dev/null || fail "a long context"
	for n in 3 18 130 257 299 310; do
		p=$(seq -s ' ' 400 | head -c $n)
		for how in --stats --uncached; do
			"$tenon" generate --model long --prompt "$p" --tokens 4 \
				--seed 5 $how >a$how 2>err$how || fail "$n: $how"
		done
		cmp a--stats a--uncached || fail "a prompt of $n"
	done
	expect 1 'cannot be' "$tenon" generate --model nothing
	expect 1 'tenon-model' "$tenon" generate --tokens 2
}

# ---- schedules ----
test_schedules() {
	local step
	TENON_DUMP=schedule TENON_DUMP_DIR=dumps train --out dumped >/dev/null ||
		fail "schedules are printed"
	same whole/$end dumped/$end
	step=$(ls -S dumps/*-schedule.txt | head -n 1)
	train --out pinned --schedule "$step" >/dev/null ||
		fail "the step with its own schedules"
	same whole/$end pinned/$end
	sed '1s/.*/schedule c\/other/' "$step" >other
	expect 1 'other:1:10: error[schedule.machine]: this schedule is for the machine c/other' \
		train --out refused --schedule other
	sed 's/^kernel 0 /kernel 0 no_/' "$step" >other
	expect 1 'other: error[schedule.kernel]: no program here has kernels' \
		train --out nobody --schedule other
	sed 's/\(for .* < [0-9]* \).*{/\1lanes 99 {/' "$step" >other
	expect 1 'error[schedule.' train --out refused2 --schedule other
	expect 1 'nowhere: error[file.read]' train --out x --schedule nowhere
	expect 2 '--schedule takes a file here' train --out x --schedule -
}

"test_$part" || fail "test_train.sh has no part $part"
[ $fails -eq 0 ] && echo "all as it should be"
exit $((fails > 0))
