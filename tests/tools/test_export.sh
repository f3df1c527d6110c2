#!/usr/bin/env bash
# test_export.sh BUILD: tenon export --c: programs, models and a loop as C, compiled
# by gcc and by clang with all warnings, with sanitizers, on threads, without vectors, for
# several processors in one file, and on others where a compiler and an emulator for them
# are installed; what fails leaves params as they were; weights as array, file and
# assembly; refusals; two exports are equal. Then a sample of ONNX's node tests, one of 80 parts.
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
# A file that cannot be written whole: the one from before is still there.
cp other/net.c before
expect 1 'net.c: error[export.write]: cannot be written: File too large' \
	bash -c 'ulimit -f 8; exec "$@"' limited \
	"$tenon" export --c other --name net --test none --weights file $size "$model"
cmp -s before other/net.c || fail "an export that failed has changed a file"
[ ! -e x ] || fail "a refused export has made its folder"

# ---- rows without equations, on all types; while, if ----
python3 - <<'END'
kinds = """f32 f64 f16 bf16 i8 i16 i32 i64 u8 bool u16 u32 u64 f8e4m3fn f8e4m3fnuz
f8e5m2 f8e5m2fnuz f8e8m0 f4e2m1 i4 u4 i2 u2""".split()
text = ["  x_%s: %s[300]" % (k, k) for k in kinds]
text += ["  m_%s: %s[20,3,3]" % (k, k) for k in kinds if k[0] in "bf" and k != "bool"]
out = []
for k in kinds:
    text.append("  s_%s, k_%s = sort(x_%s, axis=0)" % (k, k, k))
    out += ["s_" + k, "k_" + k]
    if "  m_%s: %s[20,3,3]" % (k, k) in text:
        text.append("  d_%s = det(m_%s)" % (k, k))
        out.append("d_" + k)
print("program {", *text, "  return " + ", ".join(out), "}", sep="\n",
      file=open("kinds.tn", "w"))
END
cat >rows.tn <<'END'
program {
  boxes: f32[2,9,4]
  scores: f32[2,3,9]
  iou: f32[]
  least: f32[]
  x: f16[4,6]
  u: i16[9]
  k, n = non_max_suppression(boxes, scores, iou, least, most=4)
  f, i, c, m = unique_slices(x, axis=1)
  a = argsort(x, axis=0)
  t, p = topk(x, axis=1, count=3)
  o, r, s, d, e = unique(u)
  z, q = nonzero(x)
  b = bit_cast(x, dtype=u16)
  h = bit_cast(b, dtype=bf16)
  return k, n, f, i, c, m, a, t, p, o, r, s, d, e, z, q, b, h
}
END
cat >while.tn <<'END'
program {
  go: i32[]
  no: bool[1]
  n0: i64[]
  x: f32[8,8]
  w: f32[8,8]
  g, n, y = loop(go, n0, x, w, rounds=9223372036854775807, while=0) {
    carried g0: i32[]
    carried n0: i64[]
    carried h: f32[8,8]
    w: f32[8,8]
    gi, hi = loop(g0, h, w, rounds=2, while=0) {
      carried g0: i32[]
      carried h: f32[8,8]
      w: f32[8,8]
      t = matmul(h, w)
      h1 = tanh(t)
      z = sub(g0, g0)
      return z, h1
    }
    n1 = add(n0, 1)
    l = lt(n1, 7)
    g1 = cast(l, to=i32)
    return g1, n1, hi
  }
  g2, z = loop(no, y, w, rounds=1, while=0) {
    carried g0: bool[1]
    carried h: f32[8,8]
    w: f32[8,8]
    t = add(h, w)
    e = not(g0)
    return e, t
  }
  s, k = sort(z, axis=0)
  return n, y, g2, s, k
}
END
for name in kinds rows while; do
	export_c $name $name.tn
	"$tenon" export --c ${name}_c99 --name $name --dialect c99 --small $name.tn ||
		fail "$name as C99"
	for cc in gcc clang; do
		command -v $cc >/dev/null || continue
		check $name $cc "$san"
		check ${name}_c99 $cc "$san"
	done
done
for seed in 1 2 3; do # the condition is what is drawn
	export_c while while.tn --seed $seed
	check while gcc -O1
done
grep -q 'while (i < end' while/while.c || fail "a loop with a test is no while"
grep -q 'if (\*(const uint8_t' while/while.c || fail "one round or none is no if"
expect 1 'error[tn.loop]: while=3: the loop carries values 0 to 1' "$tenon" export --c x - <<'END'
program {
  a: bool[]
  b: f32[2]
  g, y = loop(a, b, rounds=2, while=3) {
    carried g: bool[]
    carried y: f32[2]
    return g, y
  }
  return y
}
END

# ---- several processors in one file; indices of 32 bits ----
isa() { # isa NAME FILE OPTION...
	local name=$1 file=$2 cc
	shift 2
	"$tenon" export --c "$name" --name soft --isa sse,avx2,avx512 "$@" "$file" ||
		fail "$name is not exported"
	for cc in gcc clang; do
		command -v $cc >/dev/null || continue
		check "$name" $cc -O1
	done
}
isa isa_soft "$root/examples/softmax.tn"
isa isa_loop loop.tn --threads pthread
# What is done rarely is a function with attributes.
printf 'program {\n  x: f32[100]\n  y = sin(x)\n  return y\n}\n' > sine.tn
isa isa_sine sine.tn
isa isa_step "$root/tests/golden/cli/data/train/small.onnx" --train --batch 4
# On a processor that has none of them; and the bits are those of --lanes 4 --no-fma.
if command -v qemu-x86_64 >/dev/null; then
	make -s -C isa_soft CC=gcc soft_test
	expect 0 'there is no avx2 here' qemu-x86_64 -cpu Nehalem isa_soft/soft_test
fi
expect 1 'error[export.options]: instructions "avx2,sse"' "$tenon" export --c x --isa avx2,sse "$root/examples/softmax.tn"
expect 1 'error[export.options]: instructions "sse"' "$tenon" export --c x --isa sse "$root/examples/softmax.tn"
expect 2 'leave --lanes' "$tenon" export --c x --isa sse,avx2 --lanes 4 "$root/examples/softmax.tn"
for options in "" "--lanes 4 --no-fma" "--dialect c99 --small"; do
	rm -rf int32
	# shellcheck disable=SC2086 # options are words
	"$tenon" export --c int32 --name soft --int-size 32 $options \
		"$root/examples/softmax.tn" || fail "no indices of 32 bits"
	check int32 gcc -O1
	! grep -n 'i64 x[0-9]* = ' int32/soft.c || fail "loops of 64 bits"
done
cat >large.tn <<'END'
program {
  x: u8[3000000000]
  y = not_bits(x)
  return y
}
END
sed -i 's/not_bits/relu/; s/u8/f32/' large.tn
expect 1 'error[export.indices]: indices of the kernel' "$tenon" export --c x --int-size 32 --test none large.tn
expect 2 'there are 64 and 32' "$tenon" export --c x --int-size 16 large.tn

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
# The arena is the memory of the plan, the state, and copies of params.
for dir in learn other_rule plain_net plain_step wide isa_step; do
	python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
least = j["plan_bytes"] + j["state_bytes"] + j["saved_bytes"]
sys.exit(j["arena_bytes"] > 1.02 * least and "%s: %d bytes for %d" % (
    sys.argv[1], j["arena_bytes"], least))' $dir/s???.json || fail "memory of $dir"
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
expect 2 '--train takes --c' "$tenon" export -o x.onnx --train "$small"
expect 1 'error[train.input]' "$tenon" export --c x --train loop.tn
expect 2 '--memory-limit must be' "$tenon" export --c x --train --memory-limit -1 "$small"
expect 2 'belong to --train' "$tenon" export --c x --memory-limit 1 "$small"
# A program in text: its params are trained, from files or from random numbers.
cat >learn.tn <<'END'
program {
  x: f32[8,6]
  param w1: f32[6,16]
  param b1: f32[16]
  param w2: f32[16,4]
  m = matmul(x, w1)
  a = add(m, b1)
  h = tanh(a)
  y = matmul(h, w2)
  return y
}
END
python3 -c 'import struct, sys
head = b"{\x27descr\x27: \x27<f4\x27, \x27fortran_order\x27: False, \x27shape\x27: (16,), }"
head += b" " * (117 - len(head)) + b"\n"
sys.stdout.buffer.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) +
                        head + struct.pack("<16f", *[0.5] * 16))' >b1.npy
step_c text --input b1=b1.npy learn.tn
check text gcc -O1
grep -q 'STEP_STATE_W1(n)' text/step.h || fail "a param is not kept"
grep -q 'in_w1' text/step.h && fail "a param is an argument"
expect 1 'error[train.batch]' "$tenon" export --c x --train --batch 3 learn.tn
# Memory against work: four limits, and the bits of the same step.
step_c limited --batch 64 --memory-limit 0 --lr 0.02 "$small"
check limited gcc -O1
step_c whole --batch 64 --lr 0.02 "$small"
python3 - <<'END' || fail "sizes for limits of memory"
import json
all = [json.load(open(d + "/step.json")) for d in ("limited", "whole")]
sizes = [{s["memory_limit"]: s for s in j["sizes"]} for j in all]
assert sizes[0] == sizes[1] and len(sizes[0]) == 4, sizes
assert all[0]["sizes"][0]["memory_limit"] == 0 and all[1]["sizes"][0]["memory_limit"] == -1
assert sizes[0][0]["flops"] > sizes[0][-1]["flops"], sizes
for j, s in zip(all, sizes):
    assert j["arena_bytes"] == j["sizes"][0]["arena_bytes"]
END
# What is made again is not made early: half of what a step takes is kept, and the step
# takes less. Large activations, small weights.
cat >deep.tn <<'END'
program {
  x: f32[16,3,32,32]
  param w0: f32[16,3,3,3]
  param w1: f32[16,16,3,3]
  param w2: f32[16,16,3,3]
  param w3: f32[16,16,3,3]
  param v: f32[16,4]
  c0 = conv(x, w0, lo=[1,1], hi=[1,1])
  h0 = silu(c0)
  c1 = conv(h0, w1, lo=[1,1], hi=[1,1])
  h1 = silu(c1)
  c2 = conv(h1, w2, lo=[1,1], hi=[1,1])
  h2 = silu(c2)
  c3 = conv(h2, w3, lo=[1,1], hi=[1,1])
  h3 = silu(c3)
  m = reduce_mean(h3, axes=[2,3])
  y = matmul(m, v)
  return y
}
END
step_c deep deep.tn
python3 - <<'END' || fail "a limit of memory saves none"
import json
j = json.load(open("deep/step.json"))
size = [s["arena_bytes"] - j["state_bytes"] for s in j["sizes"]]
print("arena without a limit, with half, a quarter, 0:", *size)
assert min(size) < 0.75 * size[0], size
END
bits_of() { sed -n '/^state\[\] = {/,/^};/p' "$1/step_test.c" | grep -o '"[a-z_0-9]*"'; }
[ -n "$(bits_of whole)" ] && [ "$(bits_of whole)" = "$(bits_of limited)" ] ||
	fail "another state with a limit of memory"
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
