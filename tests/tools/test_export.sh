#!/usr/bin/env bash
# test_export.sh BUILD: tenon export --c: programs, models and a loop as C, compiled
# by gcc and by clang with all warnings, with sanitizers, on threads, without vectors,
# on other processors where a compiler and an emulator for them are installed; what fails
# leaves params as they were; weights as array, file and assembly; refusals; two
# exports are equal. Then a sample of ONNX's node tests, one of 80 parts.
set -u
build=$(realpath "$1")
tenon=$build/tenon
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
fails=0
warn="-std=c99 -pedantic -Wall -Wextra -Werror"

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
check() { # check DIR CC FLAGS: the exported test passes, with the library's bits
	make -s -C "$1" clean
	expect 0 'passed, with the bits of the library' \
		make -s -C "$1" CC="$2" CFLAGS="$warn $3" check
}

# ---- programs, threads, sanitizers ----
export_c() { # export_c NAME FILE OPTION...
	local name=$1 file=$2
	shift 2
	expect 0 '' "$tenon" export --c "$tmp/$name" --name "$name" "$file" "$@"
}
cd "$tmp" || exit 1
cat >loop.tn <<'END'
program {
  s0: f32[2,4]
  xs: f32[3,2,4]
  w: f32[4,4]
  s, ys = loop(s0, xs, w, rounds=3) {
    carried h: f32[2,4]
    row x: f32[2,4]
    w: f32[4,4]
    t = matmul(h, w)
    a = add(t, x)
    h1 = tanh(a)
    return h1, t
  }
  return s, ys
}
END
cat >keep.tn <<'END'
program {
  param w: f32[64,64]
  ids: i64[3]
  m = matmul(w, w)
  w1 = write(w, m)
  t = matmul(w1, w1)
  y = take(t, ids, axis=0)
  return y
}
END
export_c blur "$root/examples/blur.tn" --threads pthread
export_c reduce "$root/examples/add_reduce.tn" --threads callback
export_c keep keep.tn
export_c loop loop.tn --threads pthread
san="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
for cc in gcc clang; do
	if ! command -v $cc >/dev/null; then
		echo "skipped: $cc is not there"
		continue
	fi
	check blur $cc -O2
	check keep $cc -O2
	check loop $cc "$san"
	check reduce $cc -O2
	check keep $cc "$san"
done
for name in blur reduce keep loop; do
	other=$(nm -u $name/$name.o | awk '$1 == "U" && $2 !~ /^(memcpy|memset)$/ && $2 !~ /san_/')
	[ -z "$other" ] || fail "$name.c calls $other"
done
# The header is C++ as well.
if command -v c++ >/dev/null; then
	echo '#include "blur/blur_threads.h"' >use.cc
	expect 0 '' c++ -Wall -Wextra -Werror -fsyntax-only use.cc
fi

# The example.
make -s -C blur clean
make -s -C blur CC=gcc libblur.a
expect 0 '' gcc -Wall -Wextra -Werror -O2 -Iblur "$root/examples/export_loop.c" \
	blur/libblur.a -lpthread -o example
expect 0 'the strongest edge is 0.' ./example

# ---- what fails leaves all as it was ----
cat >main.c <<'END'
#include "keep/keep.h"
#include <stdio.h>
#include <string.h>
static unsigned char arena[KEEP_ARENA_BYTES] __attribute__((aligned(64)));
int main(void)
{
	float w[KEEP_IO_W_ELEMS], was[KEEP_IO_W_ELEMS], y[KEEP_OUT_Y_ELEMS];
	int64_t ids[3] = { 0, 64, 1 };
	void *volatile odd_at = (char *)w + 1;
	int i, bad, good, late, odd;
	keep_net n;

	for (i = 0; i < 4096; i++)
		w[i] = was[i] = i / 64 == i % 64 ? 2 : 0;
	if (keep_init(&n, arena, sizeof arena, NULL, 0) != KEEP_OK)
		return 2;
	bad = keep_run(&n, w, ids, y);
	if (memcmp(w, was, sizeof w) != 0)
		return 3;
	late = keep_run_some(&n, 1);
	odd = keep_run(&n, (float *)odd_at, ids, y);
	ids[1] = 63;
	good = keep_run(&n, w, ids, y);
	printf("%d %d %d %d %g %g %s\n", bad, late, odd, good, w[0], y[0], keep_error(bad));
	return 0;
}
END
make -s -C keep clean
make -s -C keep CC=gcc libkeep.a
expect 0 '' gcc -Wall -Wextra -Werror -O1 main.c keep/libkeep.a -o main
expect 0 '-5 -7 -4 0 4 16 an index in an input is out of range' ./main
# Arrays that are too short are seen by the compiler.
sed 's/y\[KEEP_OUT_Y_ELEMS\]/y[2]/' main.c >short.c
expect 1 'accessing 768 bytes in a region of size 8' gcc -Wall -Wextra -Werror -O1 -c short.c

# ---- weights ----
model=$root/tests/golden/cli/data/train/small.onnx
size="--dim N=3"
for form in array file incbin; do
	rm -rf net
	# shellcheck disable=SC2086 # two words
	export_c net "$model" --weights $form $size
	check net gcc -O1
done
printf 'damaged!' | dd of=net/net.weights bs=1 seek=72 conv=notrunc 2>/dev/null
make -s -C net clean
expect 2 'the weights are damaged' make -s -C net CC=gcc check
# Weights of another program are refused, whatever their length.
rm -rf net other
export_c net "$model" --weights file $size
cp net/net.weights kept
printf 'x' | dd of=net/net.weights bs=1 seek=24 conv=notrunc 2>/dev/null
expect 2 'damaged' make -s -C net CC=gcc check

# ---- the same twice, and what is refused ----
export_c net "$model" --weights file $size
cmp -s net/net.weights kept || fail "weights differ between exports"
mv net other
export_c net "$model" --weights file $size
rm -f other/*.o other/*.a other/net_test
diff -r net other >/dev/null || fail "two exports differ"
expect 2 'give PROGRAM.tn, and either' "$tenon" export --c x -o y.onnx $size "$model"
expect 2 '--name, --weights' "$tenon" export -o y.onnx --name x $size "$model"
expect 2 'there are array, file and incbin' "$tenon" export --c x --weights all $size "$model"
expect 1 'error[export.options]' "$tenon" export --c x --name 1x $size "$model"
expect 1 'error[export.device]' env TENON_DEVICE=simt "$tenon" export --c x $size "$model"
expect 1 'error[export.write]' "$tenon" export --c /dev/null/x $size "$model"
cat >sort.tn <<'END'
program {
  x: f32[5]
  y, k = sort(x, axis=0)
  return y
}
END
expect 1 'error[export.opaque]: the row sort' "$tenon" export --c x sort.tn
[ ! -e x ] || fail "a refused export has made its folder"

# ---- lanes; other processors ----
small=$root/tests/golden/cli/data/train/small.onnx
cross() { # cross NAME COMMAND RUN FLAGS: of what can compile and run
	local name=$1 cc=$2 run=$3 flags=$4
	echo 'int main(void) { return 0; }' >empty.c
	# shellcheck disable=SC2086 # flags and commands are words
	if ! $cc $flags -x c empty.c -o empty 2>/dev/null || ! $run ./empty 2>/dev/null; then
		echo "skipped: no compiler, C library or emulator for $name"
		return
	fi
	for dir in lanes1 lanes4 plain plain_small cross_net cross_step; do
		make -s -C $dir clean
		expect 0 '' make -s -C $dir CC="$cc" ARCH="$flags" \
			CFLAGS="$warn -O1" soft_test
		# shellcheck disable=SC2086 # no command at all, or one
		expect 0 'passed, with the bits of the library' $run $dir/soft_test
	done
}
for n in 1 4; do
	expect 0 '' "$tenon" export --c lanes$n --name soft --lanes $n --no-fma \
		"$root/examples/softmax.tn"
	check lanes$n gcc -O1
done
# A net, and a step of its training.
for name in net step; do
	options=$size
	[ $name = net ] || options="--train --batch 4 --optimizer sgd_momentum"
	# shellcheck disable=SC2086 # options are words
	expect 0 '' "$tenon" export --c cross_$name --name soft --lanes 4 --no-fma \
		$options "$small"
	check cross_$name gcc -O1
done
grep -q vector_size lanes1/soft.c && fail "vectors with --lanes 1"
# C99 alone: no word of GNU C; what it calls is named; small code.
plain() { # plain NAME FILE OPTION...
	local name=$1 file=$2 cc other
	shift 2
	expect 0 '' "$tenon" export --c "$name" --name soft --dialect c99 "$@" "$file"
	! grep -n '__[a-z]*\(builtin\|attribute\|vector\|TYPE\)' "$name"/soft*.[ch] ||
		fail "$name has extensions"
	for cc in gcc clang; do
		command -v $cc >/dev/null || continue
		check "$name" $cc -O2
		check "$name" $cc "$san"
		make -s -C "$name" clean
		expect 0 '' make -s -C "$name" CC=$cc CFLAGS="$warn -O0" soft.o
		other=$(nm -u "$name/soft.o" | awk '$1 == "U" {print $2}' |
			grep -vxE "memcpy|memset|$(sed -n 's/.*"libm":\[\([^]]*\)\].*/\1/p' "$name/soft.json" | tr -d '"' | tr , '|')")
		[ -z "$other" ] || fail "$name by $cc calls $other"
	done
}
plain plain "$root/examples/softmax.tn"
plain plain_small "$root/examples/softmax.tn" --small
cat >half.tn <<'END'
program {
  x: f32[3,7]
  y: f32[3,7]
  h = cast(x, to=f16)
  b = cast(y, to=bf16)
  s = sqrt(h)
  e = fmod(y, x)
  c = sin(x)
  return s, b, e, c
}
END
plain plain_half half.tn
plain plain_net "$small" $size --weights file
plain plain_loop loop.tn --threads callback
plain plain_step "$small" --train --batch 4 --small
expect 2 'leave --lanes out' "$tenon" export --c x --dialect c99 --lanes 4 "$model"
expect 2 'there are gnu and c99' "$tenon" export --c x --dialect c11 "$model"
expect 1 'error[export.options]: C99 without' "$tenon" export --c x --dialect c99 --weights incbin $size "$model"
bytes_of() { size "$1" | awk 'NR == 2 {print $1}'; }
expect 0 '' "$tenon" export --c wide --name soft $size "$small"
for dir in wide plain_net plain_step; do
	make -s -C $dir clean
	make -s -C $dir CC=gcc ARCH= CFLAGS=-Os soft.o
done
[ "$(bytes_of plain_step/soft.o)" -lt 12288 ] ||
	fail "a step of $(bytes_of plain_step/soft.o) bytes with --small -Os"

cross 'processors without FMA' gcc '' -march=x86-64
cross '32 bits' gcc '' '-m32 -msse2 -mfpmath=sse'
cross AArch64 aarch64-linux-gnu-gcc qemu-aarch64 -static
cross '32-bit Arm' arm-linux-gnueabihf-gcc qemu-arm -static
# A step of training on a board with a Cortex-M3, which has no floats.
board() {
	local cc="arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb --specs=rdimon.specs"
	local here=$root/examples/cortex_m needed
	echo 'int main(void) { return 0; }' >empty.c
	if ! command -v qemu-system-arm >/dev/null ||
		! $cc empty.c -o empty 2>/dev/null; then
		echo "skipped: no compiler, C library or emulator for Cortex-M"
		return
	fi
	expect 0 '' "$tenon" export --c board --name soft --dialect c99 --small \
		--train --batch 4 --optimizer sgd_momentum "$small"
	needed=$(sed -n 's/^NEEDED = //p' board/Makefile)
	# shellcheck disable=SC2086 # flags are words
	$cc $warn -O2 $needed -c board/soft.c board/soft_weights.c board/soft_test.c &&
		$cc -c "$here/vectors.c" &&
		$cc -T "$here/mps2.ld" vectors.o soft.o soft_weights.o soft_test.o \
			-lm -o board.elf 2>board.log || fail "for a board: $(cat board.log)"
	expect 0 'passed, with the bits of the library' timeout 100 \
		qemu-system-arm -M mps2-an385 -nographic -semihosting \
		-kernel board.elf
}
board
expect 2 'there are 1, 4, 8 and 16' "$tenon" export --c x --lanes 3 "$model"

# ---- steps of training ----
step_c() { # step_c NAME OPTION...
	local name=$1
	shift
	expect 0 '' "$tenon" export --c "$name" --name step --train "$@"
}
step_c learn --batch 4 "$small"
step_c other_rule --batch 4 --loss mse --optimizer sgd_momentum --lr 0.1 \
	--decay 0.01 --clip 1 --freeze '*b*' --threads pthread --weights file "$small"
step_c lanes --batch 4 --lanes 1 --no-fma "$small"
for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	check learn $cc -O2
	check other_rule $cc "$san"
	check lanes $cc -O1
done
grep -q 'int step_step(' learn/step.h || fail "there is no NAME_step"
grep -q 'STEP_STATE_LR(n)' learn/step.h || fail "the rate is not kept"
step_c twice --batch 4 "$small"
make -s -C learn clean
diff -r learn twice || fail "two exports of a step differ"
# Stack: no function has 2 KB of it.
for dir in learn other_rule plain_net plain_step wide; do
	file=$(ls $dir/s???.c)
	gcc -std=c99 -O2 -march=native -fno-tree-vectorize -fstack-usage -c \
		"$file" -o stack.o 2>/dev/null
	awk -v of=$dir '$2 >= 2048 {print "FAILED: " of ": " $0; bad = 1} END {exit bad || NR == 0}' \
		stack.su || fail "stack of $dir"
done
# The example.
expect 0 '' "$tenon" export --c net_step --name net --train --batch 4 --lr 0.02 "$small"
make -s -C net_step CC=gcc libnet.a
expect 0 '' gcc -std=c99 -Wall -Wextra -Werror -O2 -Inet_step \
	"$root/examples/export_step.c" net_step/libnet.a -lm -o learns
expect 0 'after 400 steps' ./learns
# What is frozen is a constant.
kept=$(grep -c '"at":' learn/step.json)
less=$(grep -c '"at":' other_rule/step.json)
[ "$less" -lt "$kept" ] || fail "$less tensors are kept with some frozen, $kept without"
expect 2 'belong to --train' "$tenon" export --c x --batch 4 "$small"
expect 2 '--loss must be' "$tenon" export --c x --train --loss none "$small"
expect 2 '--train takes --c' "$tenon" export --c x --train sort.tn
expect 1 'error[train.frozen]' "$tenon" export --c x --train --freeze '*' "$small"
expect 1 'error[optimizer.name]' "$tenon" export --c x --train --optimizer none "$small"
[ ! -e x ] || fail "a refused step has made its folder"

# ---- ONNX ----
out=$("$root/tools/conform_export.sh" --parts 7,80 "$build") || {
	[ $? -eq 77 ] || fail "conform_export.sh: $out"
}
echo "${out##*$'\n'}"
# Values that make an input are no values of it.
mkdir given
cp -r "${TN_ONNX_TESTS:-/usr/share/libonnx-testdata/data/node}"/test_identity_opt \
	"${TN_ONNX_TESTS:-/usr/share/libonnx-testdata/data/node}"/test_loop16_seq_none \
	given 2>/dev/null && {
	"$root/tools/conform_export.sh" "$build" "$tmp/given" ||
		fail "models whose inputs are given"
}
out=$(EXPORT="--dialect c99" "$root/tools/conform_export.sh" --parts 3,120 "$build") || {
	[ $? -eq 77 ] || fail "conform_export.sh: $out"
}
echo "${out##*$'\n'}, as C99"
[ $fails -eq 0 ] && echo passed
exit $((fails > 0))
