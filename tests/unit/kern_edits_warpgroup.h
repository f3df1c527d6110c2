/*
 * kern_edits_warpgroup.h: as kern_edits.h, matrix instructions that four warps execute
 * together.
 */
#ifndef KERN_EDITS_WARPGROUP_H
#define KERN_EDITS_WARPGROUP_H

#include "kern_edits_lanes.h"

/* the sums of a warp: 16 rows of 64 columns */
#define SUMS \
	"%r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, " \
	"%r11, %r12, %r13, %r14, %r15, %r16, %r17, %r18, " \
	"%r19, %r20, %r21, %r22, %r23, %r24, %r25, %r26, " \
	"%r27, %r28, %r29, %r30, %r31, %r32, %r33, %r34"
#define MULTIPLY \
	"      mma bf16 " SUMS " of b0[72*%i2] rows 72, b1[0] rows 64, 64 terms by 4 warps\n"

/* 64 x 64 times 64 x 64 */
static const char four_warps[] =
	"kernel 0 four_warps {\n"
	"  param p0: f32[4096] out\n"
	"  param p1: bf16[4096] in\n"
	"  param p2: bf16[4096] in\n"
	"  local b0: bf16[4608] at 8192\n"
	"  local b1: bf16[4096] swizzled 64 at 0\n"
	"  bytes scratch 0, local 18432\n"
	"  phase of 1 chunks by 4 warps {\n"
	"    for %i0 = 0 .. 64 step 4 by warp {\n"
	"      async b0[72*%i0] rows 72 = p1[64*%i0] rows 64, 4 by 64\n"
	"    }\n"
	"    for %i1 = 0 .. 64 step 4 by warp {\n"
	"      async b1[64*%i1] rows 64 = p2[64*%i1] rows 64, 4 by 64\n"
	"    }\n"
	"    commit\n"
	"    wait 0\n"
	"    barrier\n"
	"    for %i2 = 0 .. 64 step 16 by warp {\n"
	"      var %r3: f32x32 = zero\n"
	"      var %r4: f32x32 = zero\n"
	"      var %r5: f32x32 = zero\n"
	"      var %r6: f32x32 = zero\n"
	"      var %r7: f32x32 = zero\n"
	"      var %r8: f32x32 = zero\n"
	"      var %r9: f32x32 = zero\n"
	"      var %r10: f32x32 = zero\n"
	"      var %r11: f32x32 = zero\n"
	"      var %r12: f32x32 = zero\n"
	"      var %r13: f32x32 = zero\n"
	"      var %r14: f32x32 = zero\n"
	"      var %r15: f32x32 = zero\n"
	"      var %r16: f32x32 = zero\n"
	"      var %r17: f32x32 = zero\n"
	"      var %r18: f32x32 = zero\n"
	"      var %r19: f32x32 = zero\n"
	"      var %r20: f32x32 = zero\n"
	"      var %r21: f32x32 = zero\n"
	"      var %r22: f32x32 = zero\n"
	"      var %r23: f32x32 = zero\n"
	"      var %r24: f32x32 = zero\n"
	"      var %r25: f32x32 = zero\n"
	"      var %r26: f32x32 = zero\n"
	"      var %r27: f32x32 = zero\n"
	"      var %r28: f32x32 = zero\n"
	"      var %r29: f32x32 = zero\n"
	"      var %r30: f32x32 = zero\n"
	"      var %r31: f32x32 = zero\n"
	"      var %r32: f32x32 = zero\n"
	"      var %r33: f32x32 = zero\n"
	"      var %r34: f32x32 = zero\n"
	MULTIPLY
	"      give p0[64*%i2] rows 64 = " SUMS "\n"
	"    }\n"
	"  }\n"
	"}\n";

#define IN_BULK "      async b0[0] rows 64 = p1[%i0] rows 128, 64 by 64 in bulk\n"

/* the left and the right half of 64 rows of 128, one after the other */
static const char in_bulk[] =
	"kernel 0 in_bulk {\n"
	"  param p0: f32[64] out\n"
	"  param p1: bf16[8192] in\n"
	"  local b0: bf16[4096] swizzled 64 at 0\n"
	"  local b1: bf16[4096] at 8192\n"
	"  bytes scratch 0, local 16384\n"
	"  phase of 1 chunks by 4 warps {\n"
	"    for %i0 = 0 .. 128 step 64 {\n"
	"      barrier\n"
	IN_BULK
	"      commit\n"
	"      wait 0\n"
	"    }\n"
	"    for %i1 = 0 .. 64 by warp {\n"
	"      store p0[%i1] = f32(0)\n"
	"    }\n"
	"  }\n"
	"}\n";

static const struct kern_edit warpgroup_cases[] = {
	{"an instruction of four warps, of which there are two", four_warps,
		"chunks by 4 warps", "chunks by 2 warps", "warp"},
	{"an instruction to which three warps of four come", four_warps,
		"for %i2 = 0 .. 64", "for %i2 = 0 .. 48", "warp"},
	{"an instruction of four warps, for some of them", four_warps, MULTIPLY,
		"      if inside %i2, 0, 32 {\n" MULTIPLY "      }\n", "warp"},
	{"an instruction that some warps execute more often", four_warps, MULTIPLY,
		"      for %i99 = 0 .. %i2 step 16 {\n" MULTIPLY "      }\n", "warp"},
	{"columns of each warp for itself", four_warps, "b1[0] rows 64, 64 terms",
		"b1[32*%i2] rows 64, 32 terms", "warp"},
	{"factors of another dtype", four_warps, "mma bf16", "mma f16", "type"},
	{"more terms than an instruction of four warps takes", four_warps, "64 terms",
		"65 terms", "number"},
	{"terms that are no whole instructions", four_warps, "64 terms", "40 terms",
		"swizzled"},
	{"columns that do not begin with eight rows", four_warps, "b1[0] rows 64, 64",
		"b1[256] rows 64, 32", "swizzled"},
	{"columns that are further apart than rows", four_warps, "b1[0] rows 64, 64",
		"b1[0] rows 128, 16", "swizzled"},
	{"terms that adjoin, but not all of a row", four_warps, "b1[0] rows 64, 64",
		"b1[0] columns 64, 32", "swizzled"},
	{"columns of an array that is not swizzled", four_warps, "swizzled 64 ", "",
		"swizzled"},
	{"a swizzled array that begins anywhere", four_warps, "swizzled 64 at 0",
		"swizzled 64 at 512", "swizzled"},
	{"swizzled rows of another length", four_warps, "swizzled 64", "swizzled 96",
		"swizzled"},
	{"swizzled rows that are not eight", four_warps, "bf16[4096] swizzled",
		"bf16[4032] swizzled", "swizzled"},
	{"a swizzled array in another one's memory", four_warps, "bf16[4608] at 8192",
		"bf16[4608] at 4096", "swizzled"},
	{"half a row into a swizzled array", four_warps,
		"b1[64*%i1] rows 64 = p2[64*%i1] rows 64, 4 by 64",
		"b1[64*%i1] rows 64 = p2[64*%i1] rows 64, 4 by 32", "swizzled"},
	{"rows from a swizzled array, element by element", four_warps,
		"      give p0[64*%i2]",
		"      %98: bf16 = load b1[0]\n      give p0[64*%i2]", "swizzled"},
	{"rows of one warp from a swizzled array", four_warps, MULTIPLY,
		"      mma bf16 " SUMS " of b1[64*%i2] rows 64, b0[0] rows 72\n", "swizzled"},
	{"rows in memory that are the same for all warps", four_warps,
		"of b0[72*%i2] rows 72", "of b1[0] rows 64", "swizzled"},
	{"rows in memory, of which two warps have some in common", four_warps,
		"of b0[72*%i2] rows 72", "of b1[32*%i2] rows 64", "swizzled"},
	{"rows in memory whose terms do not adjoin", four_warps,
		"of b0[72*%i2] rows 72", "of b1[64*%i2] columns 64", "swizzled"},
	{"columns that are read before they have arrived", four_warps,
		"    wait 0\n    barrier\n", "    barrier\n    wait 0\n", "wait"},
	{"a copy in bulk of each warp", in_bulk, IN_BULK,
		"      for %i9 = 0 .. 4 by warp {\n" IN_BULK "      }\n", "warp"},
	{"a copy in bulk that writes over itself", in_bulk, "      barrier\n", "",
		"barrier"},
	{"a copy in bulk that nobody waits for", in_bulk, "      wait 0\n", "", "wait"},
	{"a copy in bulk into an array that is not swizzled", in_bulk, "async b0[0]",
		"async b1[0]", "bulk"},
	{"a copy in bulk of rows that are no eights", in_bulk, "64 by 64 in bulk",
		"60 by 64 in bulk", "bulk"},
	{"a copy in bulk to the fourth of eight rows", in_bulk,
		"b0[0] rows 64 = p1[%i0] rows 128, 64 by", "b0[256] rows 64 = p1[%i0] rows 128, 32 by",
		"bulk"},
	{"a copy in bulk of more rows than there may be", in_bulk,
		IN_BULK, "      async b0[0] rows 64 = p1[%i0] rows 64, 264 by 64 in bulk\n",
		"bounds"},
	{"a copy in bulk of half a row", in_bulk, "64 by 64 in bulk", "64 by 32 in bulk",
		"swizzled"},
	{"a copy in bulk that reaches into the next row", in_bulk, "p1[%i0] rows 128, 64 by",
		"p1[%i0 + 32] rows 128, 32 by", "bulk"},
	{"a copy in bulk of rows that overlap", in_bulk, "p1[%i0] rows 128", "p1[%i0] rows 32",
		"bulk"},
	{"a copy in bulk of rows that begin anywhere", in_bulk,
		"p1[%i0] rows 128", "p1[%i0] rows 100", "lanes"},
	{"a copy in bulk from a matrix with half a row", in_bulk, "bf16[8192] in",
		"bf16[8256] in", "bulk"},
	{"a copy in bulk that a condition of warps may leave out", in_bulk,
		"    for %i0 = 0 .. 128 step 64 {\n", "    for %i0 = 0 .. 128 step 64 by warp {\n",
		"warp"},
	{"groups with copies in bulk that a warp may be behind with", in_bulk,
		"      barrier\n" IN_BULK "      commit\n      wait 0\n",
		"      barrier\n" IN_BULK "      commit\n      wait 0\n"
		"      for %i9 = 0 .. 8 {\n        commit\n        wait 0\n      }\n", "wait"},
	{"more groups with copies in bulk than there are barriers", in_bulk,
		"      commit\n", "      commit\n      commit\n      commit\n      commit\n"
		"      commit\n      commit\n      commit\n      commit\n", "wait"},
};

#endif
