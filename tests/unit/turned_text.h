/*
 * turned_text.h: 16 x 32 times 32 x 32, by matrix instructions of two warps, of
 * factors that lie in memory the other way round.
 */
#ifndef TESTS_UNIT_TURNED_TEXT_H
#define TESTS_UNIT_TURNED_TEXT_H

static const char turned[] =
	"kernel 0 turned {\n"
	"  param p0: f32[512] out\n"
	"  param p1: bf16[512] in\n"
	"  param p2: bf16[1024] in\n"
	"  local b0: bf16[768] at 0\n"
	"  local b1: bf16[2304] at 1536\n"
	"  bytes scratch 0, local 6144\n"
	"  phase of 1 chunks by 2 warps {\n"
	"    for %i0 = 0 .. 32 by warp {\n"
	"      store b0[24*%i0] = bf16x16 load p1[16*%i0]\n"
	"    }\n"
	"    for %i1 = 0 .. 32 by warp {\n"
	"      store b1[40*%i1] = bf16x32 load p2[32*%i1]\n"
	"    }\n"
	"    barrier\n"
	"    for %i2 = 0 .. 32 step 16 by warp {\n"
	"      var %r3: f32x32 = zero\n"
	"      var %r4: f32x32 = zero\n"
	"      var %r5: f32x32 = zero\n"
	"      var %r6: f32x32 = zero\n"
	"      var %r7: f32x32 = zero\n"
	"      var %r8: f32x32 = zero\n"
	"      var %r9: f32x32 = zero\n"
	"      var %r10: f32x32 = zero\n"
	"      mma bf16 %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10 of b0[0] columns 24, b1[40*%i2] columns 40\n"
	"      mma bf16 %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10 of b0[384] columns 24, b1[40*%i2 + 16] columns 40 part 16 by 16 by 16\n"
	"      give p0[%i2] rows 32 = %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10\n"
	"    }\n"
	"  }\n"
	"}\n";

/* The same of rows in f32, and without the last three terms. */
static const char parts[] =
	"kernel 0 parts {\n"
	"  param p0: f32[512] out\n"
	"  param p1: f32[512] in\n"
	"  param p2: bf16[1024] in\n"
	"  local b0: f32[768] at 0\n"
	"  local b1: bf16[2304] at 3072\n"
	"  bytes scratch 0, local 7680\n"
	"  phase of 1 chunks by 2 warps {\n"
	"    for %i0 = 0 .. 32 by warp {\n"
	"      store b0[24*%i0] = f32x16 load p1[16*%i0]\n"
	"    }\n"
	"    for %i1 = 0 .. 32 by warp {\n"
	"      store b1[40*%i1] = bf16x32 load p2[32*%i1]\n"
	"    }\n"
	"    barrier\n"
	"    for %i2 = 0 .. 32 step 16 by warp {\n"
	"      var %r3: f32x32 = zero\n"
	"      var %r4: f32x32 = zero\n"
	"      var %r5: f32x32 = zero\n"
	"      var %r6: f32x32 = zero\n"
	"      var %r7: f32x32 = zero\n"
	"      var %r8: f32x32 = zero\n"
	"      var %r9: f32x32 = zero\n"
	"      var %r10: f32x32 = zero\n"
	"      mma bf16 %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10 of b0[0] columns 24, b1[40*%i2] columns 40\n"
	"      mma bf16 %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10 of b0[384] columns 24, b1[40*%i2 + 16] columns 40 part 16 by 16 by 13\n"
	"      give p0[%i2] rows 32 = %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10\n"
	"    }\n"
	"  }\n"
	"}\n";

#endif
