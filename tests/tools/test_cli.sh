#!/usr/bin/env bash
# test_cli.sh BUILD: the command line as people use it: what is mistyped, what
# cannot be written, how a run ends that is interrupted, names of outputs.
set -u
tenon=$1/tenon
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
export XDG_CACHE_HOME=$tmp/cache
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
	[ $rc -eq "$status" ] && [[ "$out" == *"$text"* ]] ||
		fail "expected $status and \"$text\", got $rc from $*: $out"
}

# ---- words that are none ----
expect 2 'did you mean train?' "$tenon" trian
expect 2 'did you mean explain?' "$tenon" explian
expect 2 'did you mean version?' "$tenon" vers
expect 2 'no command "zzz"; the commands are train, generate' "$tenon" zzz
expect 2 'no option --repaet (did you mean --repeat?)' "$tenon" run --repaet 2
expect 2 '(did you mean --steps?)' "$tenon" train --step=3
expect 2 'no option --zzzz; tenon run --help' "$tenon" run --zzzz
expect 1 'did you mean relu?' "$tenon" ops rleu
expect 0 'o[i..] = relu(x[i..])' "$tenon" ops relu
expect 0 'tenon ' "$tenon" version
[ "$("$tenon" version)" = "$("$tenon" --version)" ] || fail "two versions"
[ "$("$tenon" --help | grep -c '^  train ')" -eq 1 ] || fail "train is listed once"

# ---- devices ----
expect 0 'simt     warps of a GPU' "$tenon" info --devices
expect 0 '"devices":[{"name":"cpu"}' "$tenon" info --devices --json
echo 'program { x: f32[3]  y = exp(x)  return y }' >e.tn
for driver in /nowhere/libcuda.so.1 "$tmp/e.tn"; do
	export TENON_CUDA_DRIVER=$driver
	expect 0 "not usable: the driver of NVIDIA GPUs is not found: $driver" "$tenon" info --devices
	for command in 'run e.tn' 'train --steps 1' generate; do
		expect 1 "error[cuda.driver]: the driver of NVIDIA GPUs is not found: $driver" \
			"$tenon" $command --device cuda
		TENON_DEVICE=cuda:1 expect 1 'error[cuda.driver]' "$tenon" $command
	done
done
unset TENON_CUDA_DRIVER
expect 1 'error[device.name]: there is no device "gpu": accepted are cpu, simt' \
	"$tenon" run --device gpu e.tn

# ---- completion ----
for shell in bash zsh fish; do
	"$tenon" completion $shell >completion.$shell || fail "completion $shell"
	if command -v $shell >/dev/null; then
		$shell -n completion.$shell || fail "$shell reads its completion"
	else
		echo "skipped: $shell, which would read its completion, is not installed"
	fi
	"$tenon" --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p' |
		while read -r c; do
			grep -q -- "$c" completion.$shell ||
				echo "completion.$shell lacks $c"
		done >lacks
	[ ! -s lacks ] || fail "$(cat lacks)"
done
expect 2 'give bash, zsh or fish, not csh' "$tenon" completion csh
# shellcheck disable=SC1091
(
	. ./completion.bash
	COMP_WORDS=(tenon run --re) COMP_CWORD=2
	_tenon && [ "${COMPREPLY[*]}" = --repeat ] || exit 1
	COMP_WORDS=(tenon com) COMP_CWORD=1
	_tenon && [ "${COMPREPLY[*]}" = completion ]
) || fail "bash completes"

# ---- the environment ----
expect 1 'error[context.run]: TENON_RUN is "compiled": interp is accepted' \
	env TENON_RUN=compiled "$tenon" ops relu
expect 2 '--profile and --trace cannot be used with TENON_RUN=interp' \
	env TENON_RUN=interp "$tenon" run --profile "$root/examples/softmax.tn"
expect 0 '[[' env TENON_RUN=interp TENON_CC=/nowhere "$tenon" run \
	"$root/examples/softmax.tn"
expect 1 'error[context.dump]: TENON_DUMP: there is no pass "fused"' \
	env TENON_DUMP=loops,fused "$tenon" ops relu
# the names that the message accepts are those that the help lists
TENON_DUMP=zzz "$tenon" ops relu 2>&1 | sed 's/.*with commas: //' |
	tr -d ' ' | tr , '\n' | sort >passes
"$tenon" explain --help | tr '\n' ' ' | sed 's/.* are: //' |
	sed 's/([^)]*)//g' | tr -c 'a-z0-9\n' '\n' | sed '/^$/d' | sort >passes.help
cmp passes passes.help || fail "help and passes: $(diff passes passes.help)"
for pass in $(cat passes); do
	grep -q "\b$pass\b" <(sed -n '/^.B TENON_DUMP$/,/^.B TENON_DUMP_DIR/p' \
		"$root/man/tenon.1") || fail "man/tenon.1 lacks TENON_DUMP=$pass"
done
TENON_DUMP=program,fuse "$tenon" run "$root/examples/softmax.tn" 2>dumped >/dev/null ||
	fail "a run that prints passes"
[ "$(grep -c '^== ' dumped)" -eq 2 ] && grep -q '^== fuse, program 1 ==' dumped &&
	grep -q '^kernel 0' dumped || fail "printed passes: $(cat dumped)"
# the text of a pass is read by what reads that level
TENON_DUMP=program,schedule TENON_DUMP_DIR=dumps "$tenon" run \
	"$root/examples/softmax.tn" >plain 2>/dev/null || fail "passes in files"
"$tenon" run dumps/*-0001-program.txt --schedule dumps/*-0001-schedule.txt \
	>again 2>/dev/null || fail "the texts of passes are read again"
cmp -s plain again || fail "the texts of passes mean the same"
expect 1 'which is not a folder' env TENON_DUMP=all TENON_DUMP_DIR=passes \
	"$tenon" ops relu

# ---- schedules of programs that a command makes ----
bench() {
	"$tenon" bench estimate "$root/examples/add_reduce.tn" --repeat 1 "$@"
}
"$tenon" explain "$root/examples/add_reduce.tn" --level=schedule >schedule
expect 0 '1 distinct kernels' bench --schedule schedule
sed '1s/.*/schedule c\/other/' schedule >other
expect 1 'other:1:10: error[schedule.machine]' bench --schedule other
sed 's/^kernel 0 /kernel 0 no_/' schedule >other
expect 1 'other: error[schedule.kernel]: no program here has' \
	bench --schedule other
expect 1 'nowhere: error[file.read]' bench --schedule nowhere
expect 2 '--schedule takes a file here' bench --schedule -
# an error stands alone: there is no table of no rows
echo 'program { x: f32[2] return y }' >broken.tn
for i in estimate merges; do
	expect 1 'broken.tn:1:' "$tenon" bench $i broken.tn
	[ -z "$("$tenon" bench $i broken.tn 2>/dev/null)" ] ||
		fail "bench $i of a broken file prints a table"
done
cp "$root"/tests/golden/cli/data/train/* .
expect 1 'other: error[schedule.kernel]: no program here has' \
	"$tenon" train small.onnx --data shapes.npz --batch 6 --steps 1 \
	--out learnt.onnx --schedule other

# ---- outputs are files of their own ----
cp "$root/tests/golden/cli/data/onnx/mul/model.onnx" mul.onnx
cat >three.tn <<'END'
program {
  x: f32[2]
  a_b = add(x, 1)
  aQb = add(x, 2)
  aRb = add(x, 3)
  return a_b, aQb, aRb
}
END
"$tenon" export three.tn -o three.onnx || fail "export"
LC_ALL=C sed 's|aQb|a/b|g; s|aRb|a?b|g' three.onnx >names.onnx
"$tenon" run names.onnx --output names 2>/dev/null || fail "names of outputs"
[ "$(ls names | tr '\n' ' ')" = 'a%2Fb.npy a%3Fb.npy a_b.npy ' ] ||
	fail "a file for each output: $(ls names)"
printf 'program {\n  x: f32[2]\n  y = neg(x)\n  return y, y\n}\n' >twice.tn
expect 1 'outputs 1 and 2 are both "y": they would be one file' \
	"$tenon" run twice.tn --output twice
[ ! -e twice ] || fail "nothing is made for what is refused"
[ "$(cmp -s names/a_b.npy names/a%2Fb.npy || echo differ)" = differ ] ||
	fail "two outputs have one value"
"$tenon" run "$root/examples/add_reduce.tn" --output out 2>/dev/null || fail "--output"
[ -s out/out.npy ] || fail "out.npy: $(ls out)"

# ---- what cannot be written is said before any work ----
expect 1 'missing/t.json: error[file.write]' "$tenon" run \
	"$root/examples/add_reduce.tn" --trace missing/t.json
seq 1 3000 >text
tiny=(--text text --layers 1 --heads 1 --width 8 --context 8 --batch 1
	--steps 4 --every 2 --sample 0 --threads 1 --interp)
expect 1 'missing/r.html: error[report.write]' "$tenon" train "${tiny[@]}" \
	--out m1 --report missing/r.html
expect 1 'missing/t.json: error[file.write]' "$tenon" train "${tiny[@]}" \
	--out m1 --trace missing/t.json
[ ! -e m1 ] || fail "nothing was begun: $(ls m1)"
expect 1 'missing/o.onnx: error[onnx.write]' "$tenon" train mul.onnx \
	--data text --out missing/o.onnx

# ---- longer than it was begun for ----
"$tenon" train "${tiny[@]}" --out m2 >/dev/null || fail "four steps"
expect 0 'the run was started for 4 steps and continues to step 6' "$tenon" train \
	--text text --out m2 --resume --steps 6 --sample 0 --threads 1 --interp
[ -e m2/step-00000006.safetensors ] || fail "six steps: $(ls m2)"
expect 1 'the run has done 6 steps already, and --steps 5 is less' "$tenon" train \
	--text text --out m2 --resume --steps 5 --sample 0 --interp

# ---- interrupted; BUS: a mapped file became shorter ----
for signal in INT TERM BUS; do
	rm -rf m3
	# a shell lets what is in the background ignore SIGINT: not env
	env --default-signal=INT "$tenon" train --text text --layers 1 \
		--heads 1 --width 8 --context 8 --batch 1 --steps 1000000 \
		--every 500000 --sample 0 --threads 1 --interp --out m3 \
		>/dev/null 2>why &
	pid=$!
	for _ in $(seq 600); do
		[ -e m3/step-00000000.safetensors ] && break
		sleep 0.05
	done
	kill -$signal $pid
	wait $pid
	rc=$?
	if [ $signal = BUS ]; then
		[ $rc -eq 1 ] && grep -q 'error\[file.changed\]' why ||
			fail "$signal: exit status $rc, $(cat why)"
		continue
	fi
	[ $rc -eq $((128 + $(kill -l $signal))) ] || fail "$signal: exit status $rc"
	[ "$(ls m3 | grep -c '^step-')" -ge 1 ] || fail "$signal: no checkpoint"
done

# ---- the folder of train is generate's, too ----
mv m2 tenon-model
expect 0 '' "$tenon" generate --tokens 3 --interp
"$tenon" generate --tokens 6 --interp --stats 2>&1 | grep -q ' -[0-9]' &&
	fail "negative bytes"

# ---- dimensions ----
expect 1 'the model has no dimension "nn"; it has' "$tenon" run mul.onnx --dim nn=3

# ---- terminals ----
if script -qec true /dev/null >/dev/null 2>&1; then
	for set in TERM=dumb NO_COLOR=1; do
		env TERM=xterm "$set" script -qec "$tenon ops rleu" /dev/null |
			grep -q $'\033' && fail "$set: escapes"
	done
	env -u NO_COLOR TERM=xterm script -qec "$tenon ops rleu" /dev/null |
		grep -q $'\033' || fail "colours on a terminal"
	TERM=dumb script -qec "$tenon run $root/examples/add_reduce.tn" \
		/dev/null | grep -q $'\033' && fail "TERM=dumb: progress"
else
	echo "skipped: script (of bsdutils) gets no terminal here"
fi

[ $fails -eq 0 ] && echo "all as it should be"
exit $((fails > 0))
