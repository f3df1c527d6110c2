/*
 * kern/verify.c: kernels that are right, each by another proof, and one edit of
 * each that makes it wrong; and programs whose kernels are right.
 */
#include "unit.h"

#include "engine/engine.h"
#include "kern/kern.h"

static const struct {
	const char *name, *text;
	const char *from, *to, *rule; /* the edit, and what refuses it */
} cases[] = {
	{"digits of the chunk, the largest of them by its own quotient",
		"kernel 0 kron {\n"
		"  param p0: f32[1980] out\n"
		"  param p1: f32[165] in\n"
		"  phase of 660 chunks {\n"
		"    %0: i64 = idiv chunk, 20\n"
		"    %1: i64 = idiv chunk, 5\n"
		"    %2: i64 = imod %1, 4\n"
		"    %3: i64 = imod chunk, 5\n"
		"    %4: f32 = load p1[5*%0 + %3]\n"
		"    %5: f32x4 = splat %4\n"
		"    store p0[60*%0 + 15*%2 + 3*%3] part 3 = %5\n"
		"  }\n"
		"}\n",
		"idiv chunk, 20", "idiv chunk, 40", "race"},
	{"a digit that a condition makes a number",
		"kernel 0 triu {\n"
		"  param p0: f32[555] out\n"
		"  param p1: f32[555] in\n"
		"  phase of 45 chunks {\n"
		"    %0: i64 = idiv chunk, 3\n"
		"    %1: i64 = imod chunk, 3\n"
		"    %2: i64 = imin 16*%1 + 16, 37\n"
		"    %3: i64 = imax 16*%1, 0\n"
		"    %4: i64 = imin %2, 16\n"
		"    if inside %3 - %4, *, 0 {\n"
		"      for %i5 = %3 .. %4 step 16 whole after %e6 {\n"
		"        store p0[37*%0 + %i5] = f32x16 load p1[37*%0 + %i5]\n"
		"      }\n"
		"    }\n"
		"  }\n"
		"}\n",
		"store p0[37*%0", "store p0[15*%0", "race"},
	{"the cases of a clamp",
		"kernel 0 pad_reflect {\n"
		"  param p0: f64[13] out\n"
		"  param p1: f64[9] in\n"
		"  phase of 1 chunks {\n"
		"    for %i0 = 0 .. 13 {\n"
		"      %1: i64 = idiv %i0 + 13, 16\n"
		"      %2: i64 = iclamp %i0 - 16*%1, -13, -5\n"
		"      store p0[%i0] = f64 load p1[-%i0 + 16*%1 + 2*%2 + 13]\n"
		"    }\n"
		"  }\n"
		"}\n",
		"-13, -5", "-13, -4", "bounds"},
	{"a value that a later one bounds",
		"kernel 0 diag_embed {\n"
		"  param p0: f32[1] out\n"
		"  param p1: f32[2] in\n"
		"  phase of 1 chunks {\n"
		"    var %r0: f32 = zero\n"
		"    for %i1 = 0 .. 5 {\n"
		"      for %i2 = 0 .. 5 {\n"
		"        %3: bool = inside -%i1 + %i2 - 3, 0, 1\n"
		"        %4: f32 = load p1[%i1] mask %3\n"
		"        set %r0 = add %r0, %4\n"
		"      }\n"
		"    }\n"
		"    store p0[0] = %r0\n"
		"  }\n"
		"}\n",
		"%i2 - 3, 0, 1", "%i2 - 3, -1, 1", "bounds"},
	{"what only a selection looks at is not yet written",
		"kernel 0 cumsum {\n"
		"  param p0: f32[2] out\n"
		"  param p1: f32[2] in\n"
		"  phase of 1 chunks {\n"
		"    for %i0 = 0 .. 2 {\n"
		"      %1: f32 = load p1[%i0]\n"
		"      %2: bool = inside %i0 - 1, 0, *\n"
		"      %3: f32 = load p0[0]\n"
		"      %4: f32 = sel %2, %3, f32(0)\n"
		"      store p0[%i0] = f32 add %1, %4\n"
		"    }\n"
		"  }\n"
		"}\n",
		"sel %2, %3, f32(0)", "add %3, f32(0)", "order"},
	{".. in a register, lane by lane",
		"kernel 0 cumsum_rows {\n"
		"  param p0: f32[8] out\n"
		"  param p1: f32[8] in\n"
		"  phase of 1 chunks {\n"
		"    for %i0 = 0 .. 2 {\n"
		"      var %r1: f32x4 = zero\n"
		"      for %i2 = 0 .. 4 {\n"
		"        set %r1[%i2] = f32 load p0[2*%i2]\n"
		"      }\n"
		"      %3: bool = inside %i0 - 1, 0, *\n"
		"      %4: f32x4 = splat f32(0)\n"
		"      %5: f32x4 = sel %3, %r1, %4\n"
		"      for %i6 = 0 .. 4 {\n"
		"        store p0[%i0 + 2*%i6] = f32 lane %5, %i6\n"
		"      }\n"
		"    }\n"
		"  }\n"
		"}\n",
		"sel %3, %r1, %4", "add %r1, %4", "order"},
	{"not both, and one of them is",
		"kernel 0 concat {\n"
		"  param p0: f32[6] out\n"
		"  param p1: f32[2] in\n"
		"  phase of 1 chunks {\n"
		"    %0: i32x8 = lanes [-2, -1, 0, 1, 2, 3, 4, 5]\n"
		"    %1: i32x8 = splat i32(0)\n"
		"    %2: i32x8 = splat i32(2)\n"
		"    %3: m4x8 = ge %0, %1\n"
		"    %4: m4x8 = lt %0, %2\n"
		"    %5: m4x8 = and %3, %4\n"
		"    %6: m4x8 = not %5\n"
		"    %7: m4x8 = and %3, %6\n"
		"    %8: f32x8 = load p1[-4] part 6 mask %7\n"
		"    store p0[0] part 6 = %8\n"
		"  }\n"
		"}\n",
		"and %3, %6", "and %3, %4", "bounds"},
	{"a quotient beside what is divided",
		"kernel 0 pack {\n"
		"  param p0: f32[64] out\n"
		"  param p1: f32[98304] in\n"
		"  scratch q0: f32[98304] at 0\n"
		"  bytes scratch 393216, local 0\n"
		"  phase of 128 chunks {\n"
		"    for %i0 = 0 .. 768 step 16 {\n"
		"      %1: i64 = idiv %i0, 32\n"
		"      %2: f32x16 = load p1[768*chunk + %i0]\n"
		"      store q0[32*chunk + %i0 + 4064*%1] = %2\n"
		"    }\n"
		"  }\n"
		"  phase of 1 chunks {\n"
		"    for %i3 = 0 .. 64 {\n"
		"      store p0[%i3] = f32 load q0[%i3]\n"
		"    }\n"
		"  }\n"
		"}\n",
		"idiv %i0, 32", "idiv %i0, 48", "race"},
	{"lanes of other chunks that no shuffle takes",
		"kernel 0 every_other {\n"
		"  param p0: f32[32] out\n"
		"  param p1: f32[32] out\n"
		"  param p2: f32[32] in\n"
		"  phase of 2 chunks {\n"
		"    for %i0 = 0 .. 16 {\n"
		"      store p0[chunk + 2*%i0] = f32 load p2[chunk + 2*%i0]\n"
		"    }\n"
		"    %1: f32x8 = load p0[chunk]\n"
		"    %2: f32x8 = load p0[chunk + 7]\n"
		"    %3: f32x8 = shuffle %1, %2, [0, 2, 4, 6, 9, 11, 13, 15]\n"
		"    for %i4 = 0 .. 8 {\n"
		"      store p1[chunk + 2*%i4] = f32 lane %3, %i4\n"
		"    }\n"
		"  }\n"
		"}\n",
		"[0, 2, 4, 6, 9", "[0, 2, 4, 7, 9", "race"},
	{"lanes of other chunks that no mask has",
		"kernel 0 pad {\n"
		"  param p0: f32[45] out\n"
		"  param p1: f32[65] out\n"
		"  param p2: f32[45] in\n"
		"  phase of 5 chunks {\n"
		"    for %i0 = 0 .. 9 {\n"
		"      store p0[9*chunk + %i0] = f32 load p2[9*chunk + %i0]\n"
		"    }\n"
		"    %1: i32x8 = lanes [8, 9, 10, 11, 12, 13, 14, 15]\n"
		"    %2: i32x8 = splat i32(9)\n"
		"    %3: m4x8 = lt %1, %2\n"
		"    %4: bool = inside 9*chunk + 8, 0, 41\n"
		"    %5: f32x8 = load p0[9*chunk + 8] part 5 mask %3 whole %4\n"
		"    %6: f32x8 = splat f32(0)\n"
		"    store p1[13*chunk + 8] part 5 = f32x8 sel %3, %5, %6\n"
		"  }\n"
		"}\n",
		"splat i32(9)", "splat i32(10)", "bounds"},
	{"an index that is checked to be anything, and then bounded",
		"kernel 0 sample {\n"
		"  param p0: f32[8] out\n"
		"  param p1: i64[8] in\n"
		"  param p2: f32[12] in\n"
		"  check 1: at in -4611686018427387904 .. 4611686018427387904\n"
		"  phase of 1 chunks {\n"
		"    for %i0 = 0 .. 8 step 4 {\n"
		"      array t0: i64[4]\n"
		"      for %i1 = 0 .. 4 {\n"
		"        %2: i64 = load p1[%i0 + %i1]\n"
		"        %3: i64 = check %2, 1\n"
		"        store t0[%i1] = %3\n"
		"      }\n"
		"      var %r4: i64x4 = zero\n"
		"      for %i5 = 0 .. 4 {\n"
		"        %6: i64 = load t0[%i5]\n"
		"        set %r4[%i5] = i64 index %6 + 1\n"
		"      }\n"
		"      %7: i64x4 = splat i64(0)\n"
		"      %8: m8x4 = ge %r4, %7\n"
		"      %9: i64x4 = splat i64(3)\n"
		"      %10: m8x4 = lt %r4, %9\n"
		"      %11: m8x4 = and %8, %10\n"
		"      var %r12: f32x4 = zero\n"
		"      for %i13 = 0 .. 4 {\n"
		"        if lane %11, %i13 {\n"
		"          %14: i64 = load t0[%i13]\n"
		"          set %r12[%i13] = f32 load p2[4*%14 + 5]\n"
		"        }\n"
		"      }\n"
		"      store p0[%i0] = %r12\n"
		"    }\n"
		"  }\n"
		"}\n",
		"4*%14 + 5", "4*%14 + 3", "bounds"},
	{"lanes that a quotient of numbers rules out",
		"kernel 0 pack {\n"
		"  param p0: f32[8] out\n"
		"  param p1: f32[12] in\n"
		"  phase of 1 chunks {\n"
		"    %0: i32x8 = idiv 8, 3\n"
		"    %1: i32x8 = splat i32(4)\n"
		"    %2: m4x8 = lt %0, %1\n"
		"    %3: f32x8 = load p1[8] part 7 mask %2\n"
		"    %4: f32x8 = splat f32(0)\n"
		"    store p0[0] = f32x8 sel %2, %3, %4\n"
		"  }\n"
		"}\n",
		"splat i32(4)", "splat i32(5)", "bounds"},
	{"indices from data, of which conditions leave few",
		"kernel 0 pixels {\n"
		"  param p0: f32[8] out\n"
		"  param p1: i64[8] in\n"
		"  param p2: f32[16] in\n"
		"  check 1: at in -4611686018427387904 .. 4611686018427387904\n"
		"  phase of 1 chunks {\n"
		"    for %i0 = 0 .. 8 {\n"
		"      %1: i64 = load p1[%i0]\n"
		"      %2: i64 = check %1, 1\n"
		"      %3: bool = inside %2, 0, 16\n"
		"      %4: i64 = ifloor %2, 4\n"
		"      %5: f32 = load p2[4*%2 - 15*%4] mask %3\n"
		"      store p0[%i0] = f32 sel %3, %5, f32(0)\n"
		"    }\n"
		"  }\n"
		"}\n",
		"15*%4", "14*%4", "bounds"},
	{"a condition on a loop that walks what a digit says",
		"kernel 0 triu {\n"
		"  param p0: f32[24] out\n"
		"  param p1: f32[8] out\n"
		"  param p2: f32[24] in\n"
		"  phase of 8 chunks {\n"
		"    %0: i64 = idiv chunk, 2\n"
		"    %1: i64 = imod chunk, 2\n"
		"    for %i2 = 2*%1 .. 2*%1 + 2 {\n"
		"      store p0[6*%0 + 3*%1] part 3 = f32x4 load p2[6*%0 + 3*%1] part 3\n"
		"      for %i3 = 0 .. 3 {\n"
		"        if inside -%i2 + %i3 - 2, 0, * {\n"
		"          store p1[chunk] = f32 load p0[6*%0 + 2]\n"
		"        }\n"
		"      }\n"
		"    }\n"
		"  }\n"
		"}\n",
		"%i3 - 2, 0, *", "%i3, 0, *", "race"},
	{"lanes of other chunks that the opposite of a mask has",
		"kernel 0 concat {\n"
		"  param p0: f32[756] out\n"
		"  param p1: f32[252] out\n"
		"  param p2: f32[756] in\n"
		"  phase of 252 chunks {\n"
		"    store p0[3*chunk] part 3 = f32x4 load p2[3*chunk] part 3\n"
		"    %0: i64x4 = lanes [0, 1, 2, 3]\n"
		"    %1: i64x4 = splat i64(3)\n"
		"    %2: m8x4 = lt %0, %1\n"
		"    %3: bool = inside 3*chunk - 3, 0, 753\n"
		"    var %r4: f32x4 = zero\n"
		"    if %3 {\n"
		"      set %r4 = load p0[3*chunk - 3]\n"
		"    } else {\n"
		"      for %i5 = 0 .. 4 {\n"
		"        %6: bool = lane %2, %i5\n"
		"        if not %6 {\n"
		"          set %r4[%i5] = f32 load p0[3*chunk + %i5 - 3]\n"
		"        }\n"
		"      }\n"
		"    }\n"
		"    store p1[chunk] = f32 lane %r4, 3\n"
		"  }\n"
		"}\n",
		"splat i64(3)", "splat i64(2)", "bounds"},
	{"lanes of other chunks that a mask has, where one thing holds for all",
		"kernel 0 concat {\n"
		"  param p0: f32[756] out\n"
		"  param p1: f32[252] out\n"
		"  param p2: f32[756] in\n"
		"  phase of 252 chunks {\n"
		"    store p0[3*chunk] part 3 = f32x4 load p2[3*chunk] part 3\n"
		"    %0: i64x4 = lanes [0, 1, 2, 3]\n"
		"    %1: i64x4 = splat i64(3)\n"
		"    %2: m8x4 = lt %0, %1\n"
		"    %3: bool = inside 3*chunk - 3, 0, 753\n"
		"    %4: bool = inside chunk, 0, 251\n"
		"    var %r5: f32x4 = zero\n"
		"    if %3 {\n"
		"      set %r5 = load p0[3*chunk - 3]\n"
		"    } else {\n"
		"      for %i6 = 0 .. 4 {\n"
		"        %7: bool = lane %2, %i6\n"
		"        %8: bool = not %7\n"
		"        if and %8, %4 {\n"
		"          set %r5[%i6] = f32 load p0[3*chunk + %i6 - 3]\n"
		"        }\n"
		"      }\n"
		"    }\n"
		"    store p1[chunk] = f32 lane %r5, 3\n"
		"  }\n"
		"}\n",
		"splat i64(3)", "splat i64(2)", "bounds"},
	{"a bound of lanes beside a condition on data",
		"kernel 0 segment_max {\n"
		"  param p0: i16[405] out\n"
		"  param p1: i64[5] in\n"
		"  param p2: i16[20] in\n"
		"  phase of 90 chunks {\n"
		"    %0: i64 = idiv chunk, 18\n"
		"    %1: i64 = idiv chunk, 2\n"
		"    %2: i64 = imod %1, 9\n"
		"    %3: i64 = imod chunk, 2\n"
		"    %4: i64 = imin 6*%3 + 6, 9\n"
		"    %5: i64 = imax 6*%3, 0\n"
		"    %6: i64 = imin %4, 4\n"
		"    %7: i64 = imax 6*%3, 4\n"
		"    %8: i64 = imin %4, 6\n"
		"    if inside %7 - %8, *, 0 {\n"
		"      block {\n"
		"        for %i9 = %7 .. %8 step 2 whole after %e10 {\n"
		"          var %r11: i16x2 = zero\n"
		"          block {\n"
		"            note segment_max;\n"
		"            %12: i64 = load p1[3]\n"
		"            %13: bool = eq %12, %0\n"
		"            %14: i64 = index -%2 + %i9 - 5\n"
		"            %15: i64x2 = splat %14\n"
		"            %16: i64x2 = lanes [0, 1]\n"
		"            %17: i64x2 = add %15, %16\n"
		"            %18: i64x2 = splat i64(0)\n"
		"            %19: m8x2 = ge %17, %18\n"
		"            var %r20: i16x2 = zero\n"
		"            if %13 {\n"
		"              for %i21 = 0 .. 2 {\n"
		"                %22: bool = lane %19, %i21\n"
		"                if and %13, %22 {\n"
		"                  set %r20[%i21] = i16 load p2[%2 + 12]\n"
		"                }\n"
		"              }\n"
		"            }\n"
		"          }\n"
		"        }\n"
		"      }\n"
		"    }\n"
		"  }\n"
		"}\n",
		"load p2[%2 + 12]", "load p2[%2 + 20]", "check"},
	{"a lane's condition on what no loop there loads",
		"kernel 0 boxes {\n"
		"  param p0: f32[4] out\n"
		"  param p1: i64[4] in\n"
		"  param p2: f32[5] in\n"
		"  check 1: at in 0 .. 6\n"
		"  phase of 1 chunks {\n"
		"    %0: i64 = load p1[0]\n"
		"    %1: i64 = check %0, 1\n"
		"    array t0: i64[4]\n"
		"    for %i2 = 0 .. 4 {\n"
		"      %3: i64 = load p1[%i2]\n"
		"      %4: i64 = check %3, 1\n"
		"      store t0[%i2] = %4\n"
		"    }\n"
		"    var %r5: i64x4 = zero\n"
		"    for %i6 = 0 .. 4 {\n"
		"      %7: i64 = load t0[%i6]\n"
		"      set %r5[%i6] = i64 index -%1 + %7 - 1\n"
		"    }\n"
		"    %8: i64x4 = splat i64(0)\n"
		"    %9: m8x4 = ge %r5, %8\n"
		"    var %r10: f32x4 = zero\n"
		"    for %i11 = 0 .. 4 {\n"
		"      if lane %9, %i11 {\n"
		"        set %r10[%i11] = f32 load p2[%1]\n"
		"      }\n"
		"    }\n"
		"    store p0[0] = %r10\n"
		"  }\n"
		"}\n",
		"%7 - 1", "%7", "bounds"},
	{"a multiple of an index that is checked to be anything",
		"kernel 0 resized {\n"
		"  param p0: f32[8] out\n"
		"  param p1: i64[8] in\n"
		"  param p2: f32[2] in\n"
		"  check 1: at in -4611686018427387904 .. 4611686018427387904\n"
		"  phase of 1 chunks {\n"
		"    for %i0 = 0 .. 8 {\n"
		"      %1: i64 = load p1[%i0]\n"
		"      %2: i64 = check %1, 1\n"
		"      %3: bool = inside %2, 0, 3\n"
		"      %4: i64 = ifloor 2*%2, 3\n"
		"      %5: f32 = load p2[%4] mask %3\n"
		"      store p0[%i0] = f32 sel %3, %5, f32(0)\n"
		"    }\n"
		"  }\n"
		"}\n",
		"%2, 0, 3", "%2, 0, 4", "bounds"},
	{"elements of a sum, each by a chunk",
		"kernel 0 split {\n"
		"  param p0: f32[1] out\n"
		"  param p1: f32[4] in\n"
		"  scratch q0: f32[4] at 0\n"
		"  bytes scratch 16, local 0\n"
		"  phase of 4 chunks {\n"
		"    store q0[chunk] = f32 load p1[chunk]\n"
		"  }\n"
		"  phase of 1 chunks {\n"
		"    var %r0: f32 = f32(0)\n"
		"    for %i1 = 0 .. 4 {\n"
		"      %2: f32 = load q0[%i1]\n"
		"      set %r0 = add %r0, %2\n"
		"    }\n"
		"    store p0[0] = %r0\n"
		"  }\n"
		"}\n",
		"phase of 4 chunks", "phase of 3 chunks", "order"},
	{"rows in the memory of the worker",
		"kernel 0 rows {\n"
		"  param p0: f32[320] out\n"
		"  param p1: f32[320] in\n"
		"  local b0: f32[80] at 0\n"
		"  bytes scratch 0, local 320\n"
		"  phase of 4 chunks {\n"
		"    for %i0 = 0 .. 5 {\n"
		"      store b0[16*%i0] = f32x16 load p1[80*chunk + 16*%i0]\n"
		"    }\n"
		"    for %i1 = 0 .. 80 {\n"
		"      store p0[80*chunk + %i1] = f32 load b0[%i1]\n"
		"    }\n"
		"  }\n"
		"}\n",
		"%i0 = 0 .. 5", "%i0 = 1 .. 5", "order"},
	{"columns behind those of a panel, which no result has",
		"kernel 0 panel {\n"
		"  param p0: f32[24] out\n"
		"  param p1: f32[24] in\n"
		"  local b0: f32[32] at 0\n"
		"  bytes scratch 0, local 128\n"
		"  phase of 1 chunks {\n"
		"    for %i0 = 0 .. 2 {\n"
		"      for %i1 = 0 .. 12 {\n"
		"        store b0[16*%i0 + %i1] = f32 load p1[12*%i0 + %i1]\n"
		"      }\n"
		"    }\n"
		"    for %i2 = 0 .. 2 {\n"
		"      %3: f32x16 = load b0[16*%i2]\n"
		"      store p0[12*%i2] part 12 = f32x16 relu %3\n"
		"    }\n"
		"  }\n"
		"}\n",
		"%i1 = 0 .. 12", "%i1 = 0 .. 11", "order"},
	{"indices in an array of a block",
		"kernel 0 take {\n"
		"  param p0: f32[8] out\n"
		"  param p1: i64[8] in\n"
		"  param p2: f32[5] in\n"
		"  check 1: at in 0 .. 5\n"
		"  phase of 2 chunks {\n"
		"    array t0: i64[4]\n"
		"    for %i0 = 0 .. 4 {\n"
		"      %1: i64 = load p1[4*chunk + %i0]\n"
		"      %2: i64 = check %1, 1\n"
		"      store t0[%i0] = %2\n"
		"    }\n"
		"    for %i3 = 0 .. 4 {\n"
		"      %4: i64 = load t0[%i3]\n"
		"      store p0[4*chunk + %i3] = f32 load p2[%4]\n"
		"    }\n"
		"  }\n"
		"}\n",
		"%i0 = 0 .. 4", "%i0 = 0 .. 3", "order"},
	{"both sides of a condition on data",
		"kernel 0 sides {\n"
		"  param p0: f32[8] out\n"
		"  param p1: f32[8] in\n"
		"  phase of 1 chunks {\n"
		"    array t0: f32[8]\n"
		"    for %i0 = 0 .. 8 {\n"
		"      %1: f32 = load p1[%i0]\n"
		"      if gt %1, f32(0) {\n"
		"        store t0[%i0] = %1\n"
		"      } else {\n"
		"        store t0[%i0] = f32(0)\n"
		"      }\n"
		"    }\n"
		"    for %i2 = 0 .. 8 step 8 {\n"
		"      store p0[%i2] = f32x8 load t0[%i2]\n"
		"    }\n"
		"  }\n"
		"}\n",
		"store t0[%i0] = f32(0)", "note nothing;", "order"},
	{"what a loop has written before, where it has",
		"kernel 0 sums {\n"
		"  param p0: f32[5] out\n"
		"  param p1: f32[5] in\n"
		"  local b0: f32[5] at 0\n"
		"  bytes scratch 0, local 20\n"
		"  phase of 1 chunks {\n"
		"    for %i0 = 0 .. 5 {\n"
		"      %1: bool = inside %i0, 2, *\n"
		"      %2: f32 = load b0[%i0 - 2] mask %1\n"
		"      %3: f32 = load p1[%i0]\n"
		"      store b0[%i0] = f32 add %2, %3\n"
		"    }\n"
		"    for %i4 = 0 .. 5 {\n"
		"      store p0[%i4] = f32 load b0[%i4]\n"
		"    }\n"
		"  }\n"
		"}\n",
		"load b0[%i0 - 2] mask %1", "load b0[%i0]", "order"},
	{"a square that is turned whole",
		"kernel 0 turned {\n"
		"  param p0: f32[16] out\n"
		"  param p1: f32[16] in\n"
		"  local b0: f32[16] at 0\n"
		"  local b1: f32[16] at 64\n"
		"  bytes scratch 0, local 128\n"
		"  phase of 1 chunks {\n"
		"    for %i0 = 0 .. 16 step 4 {\n"
		"      store b0[%i0] = f32x4 load p1[%i0]\n"
		"    }\n"
		"    turn f32x4 b1[0] rows 4 = b0[0] rows 4\n"
		"    for %i1 = 0 .. 16 step 4 {\n"
		"      store p0[%i1] = f32x4 load b1[%i1]\n"
		"    }\n"
		"  }\n"
		"}\n",
		"%i0 = 0 .. 16 step 4", "%i0 = 0 .. 12 step 4", "order"},
	{"pieces of a loop and its rest",
		"kernel 0 rest {\n"
		"  param p0: f32[84] out\n"
		"  param p1: f32[84] in\n"
		"  local b0: f32[44] at 0\n"
		"  bytes scratch 0, local 176\n"
		"  phase of 2 chunks {\n"
		"    %0: i64 = imin 44*chunk + 44, 84\n"
		"    for %i1 = 44*chunk .. %0 step 16 whole after %e2 {\n"
		"      store b0[-44*chunk + %i1] = f32x16 load p1[%i1]\n"
		"    }\n"
		"    for %i3 = %e2 .. %0 {\n"
		"      store b0[-44*chunk + %i3] = f32 load p1[%i3]\n"
		"    }\n"
		"    for %i4 = 44*chunk .. %0 {\n"
		"      store p0[%i4] = f32 load b0[-44*chunk + %i4]\n"
		"    }\n"
		"  }\n"
		"}\n",
		"%i3 = %e2 .. %0", "%i3 = %e2 .. %0 step 2", "order"},
	{"half of a result in each phase",
		"kernel 0 halves {\n"
		"  param p0: f32[8] out\n"
		"  param p1: f32[8] out\n"
		"  param p2: f32[8] in\n"
		"  phase of 4 chunks {\n"
		"    store p0[chunk] = f32 load p2[chunk]\n"
		"  }\n"
		"  phase of 4 chunks {\n"
		"    store p0[chunk + 4] = f32 load p2[chunk + 4]\n"
		"  }\n"
		"  phase of 8 chunks {\n"
		"    store p1[chunk] = f32 load p0[chunk]\n"
		"  }\n"
		"}\n",
		"store p0[chunk + 4] =", "store p0[2*chunk] =", "order"},
	{"a register that a selection takes from",
		"kernel 0 chosen {\n"
		"  param p0: f32[4] out\n"
		"  param p1: f32[4] in\n"
		"  local b0: f32[4] at 0\n"
		"  bytes scratch 0, local 16\n"
		"  phase of 1 chunks {\n"
		"    for %i0 = 0 .. 4 {\n"
		"      var %r1: f32 = zero\n"
		"      set %r1 = load b0[0]\n"
		"      %2: bool = inside %i0, 1, *\n"
		"      %3: f32 = load p1[%i0]\n"
		"      %4: f32 = sel %2, %r1, %3\n"
		"      store b0[0] = f32 add %3, %4\n"
		"      store p0[%i0] = %4\n"
		"    }\n"
		"  }\n"
		"}\n",
		"inside %i0, 1, *", "inside %i0, 0, *", "order"},
	{"parts of an address that have nothing to do with each other",
		"kernel 0 pad_reflect {\n"
		"  param p0: f32[1040] out\n"
		"  param p1: f32[729] in\n"
		"  phase of 1 chunks {\n"
		"    for %i0 = 0 .. 13 {\n"
		"      for %i1 = 0 .. 80 {\n"
		"        for %i2 = 0 .. 80 {\n"
		"          %3: i64 = idiv %i0 + 13, 16\n"
		"          %4: i64 = iclamp %i0 - 16*%3, -13, -5\n"
		"          %5: i64 = imod %i1, 9\n"
		"          %6: i64 = imod %i2, 9\n"
		"          store p0[80*%i0 + %i1] = f32 load p1[-81*%i0 + 1296*%3 + 162*%4 + 9*%5 + %6 + 1053]\n"
		"        }\n"
		"      }\n"
		"    }\n"
		"  }\n"
		"}\n",
		"-13, -5", "-13, -4", "bounds"},
};

struct read {
	size_t number;
	bool edited;
};

static void verify(arena *a, void *arg)
{
	const struct read *r = arg;
	const char *text = cases[r->number].text, *at;
	str s = str_new(a);
	str back = str_new(a);
	kern_kernel *k;

	at = strstr(text, cases[r->number].from);
	assert_non_null(at);
	str_addn(&s, text, (size_t)(at - text));
	str_add(&s, r->edited ? cases[r->number].to : cases[r->number].from);
	str_add(&s, at + strlen(cases[r->number].from));
	k = kern_parse(a, s.at, s.n, "text");
	kern_verify(k);
	kern_print(&back, k, 0);
	assert_string_equal(back.at, s.at);
}

static void accepts(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct read r = {.number = i};
		tn_diag d = {0};

		if (unit_run(verify, &r, 0, &d) != TN_OK)
			fail_msg("%s: %s: line %d %s\n%s", cases[i].name,
				d.rule, d.line, d.text, d.extra);
	}
}

static void refuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct read r = {.number = i, .edited = true};
		tn_diag d = {0};

		if (unit_run(verify, &r, 0, &d) == TN_OK ||
			strncmp(d.rule, "kern.", 5) != 0 ||
			strcmp(d.rule + 5, cases[i].rule) != 0)
			fail_msg("%s: %s instead of %s: %s", cases[i].to,
				d.rule, cases[i].rule, d.text);
	}
}

/* Programs whose kernels, in small chunks, read what other chunks write, if a
 * load does not ask for the condition under which it is selected. */
static const char *const programs[] = {
	/* an element that the condition makes a number */
	"program {\n"
	"  x: f32[65,1]\n"
	"  a = round(x)\n"
	"  b = triu(a)\n"
	"  c = attention_online(b, x, x, scale=2)\n"
	"  return a, c\n"
	"}\n",
	"program {\n"
	"  x: bf16[6,5,12,6]\n"
	"  a = pixel_unshuffle(x, r=2)\n"
	"  b = triu(a, k=2)\n"
	"  return a, b\n"
	"}\n",
	/* the row before the first one, in a copy that is not the first */
	"program {\n"
	"  x: f32[4,7]\n"
	"  m: bool[4,7]\n"
	"  l = log_sigmoid(x)\n"
	"  a = diag_embed(x)\n"
	"  b = tile(a, reps=[2,1,1])\n"
	"  c = affine(b, alpha=2, beta=0.125)\n"
	"  d = linear_recurrence(b, c)\n"
	"  f = masked_fill(l, m, value=-0.5)\n"
	"  return d, f\n"
	"}\n",
	/* loops over a scan's variable that change places */
	"program {\n"
	"  x: u8[5,3,4]\n"
	"  i: i64[5]\n"
	"  a = cumsum_reverse_exclusive(x, axis=1)\n"
	"  b = segment_max(a, i, count=4)\n"
	"  c, d = split(a, axis=1, sizes=[1,2])\n"
	"  return b, c\n"
	"}\n",
	/* a sliding window, then what is wider, in one loop in lanes */
	"program {\n"
	"  x: f32[9,8]\n"
	"  i: i32[4,3]\n"
	"  u: f32[4,3,8]\n"
	"  a = scatter_mul(x, i, u)\n"
	"  b = diff(a, axis=0)\n"
	"  k: u8[5]\n"
	"  y: f32[9,5]\n"
	"  c = index_set(a, k, y, axis=-1)\n"
	"  return b, c\n"
	"}\n",
};

static void compile(arena *a, void *arg)
{
	static const char *const machines[] = {"c/avx512", "c/avx2", "c/sse"};
	const char *text = *(const char **)arg;

	for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
		machine m = *machine_find(machines[i]);
		compile_options o = compile_options_default(&m);
		ir_program *p =
			ir_program_parse(a, text, strlen(text), "case.tn");

		m.schedule.chunk_elems = 4;
		o.verify_kern = true;
		compile_to(compile_new(a, p, &o), TN_LEVEL_KERN);
	}
}

static void accepts_lowered(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
		const char *text = programs[i];
		tn_diag d = {0};

		if (unit_run(compile, &text, 0, &d) != TN_OK)
			fail_msg("%s%s: %s", text, d.rule, d.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts),
		cmocka_unit_test(refuses),
		cmocka_unit_test(accepts_lowered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
