/*
 * Schedules as text: what is printed is read back, and each kind of edit that
 * would change what a kernel computes, or let chunks race, is refused by a rule.
 */
#include "unit.h"

#include "engine/engine.h"
#include "interp/interp.h"

#include <stdio.h>

/* ---- programs ---- */

static const char sum[] = "program { x: f32[65536,4]\n"
			  "  y = exp(x)\n"
			  "  s = reduce_sum(y, axes=[0,1])\n"
			  "  return s }";
static const char turn[] = "program { x: f32[512,384]\n"
			   "  y = transpose(x, perm=[1,0])\n"
			   "  z = add(y, 1.0)\n"
			   "  return z }";
static const char conv[] = "program { x: f32[1,8,12,12]  w: f32[16,8,3,3]\n"
			   "  y = conv(x, w, lo=[1,1], hi=[1,1])\n"
			   "  z = relu(y)\n"
			   "  return z }";
/* each warp has 16 rows, from their scores to their sums */
static const char own[] = "program { q: bf16[2,128,32]  k: bf16[2,128,32]\n"
			  "  v: bf16[2,128,32]\n"
			  "  o = attention(q, k, v, causal=true, scale=1)\n"
			  "  return o }";
#define SQUARES "              turn stage#4 along i_0 against i_2 lanes 16\n"
#define TURNED \
	"              for i_0 < 128 {\n" \
	"                for i_2 < 112 lanes 16 unroll 1 ahead(z, 336*i_0 + 112*i_1 + i_2 + 1344) {\n" \
	"                  do add#1\n                }\n              }\n"
#define SCALED "sel(was.8[128*i_0 + i_1] == -inf, 0, x0 * rescale.11[128*i_0 + i_1])\n"
#define SCALE_Z \
	"            for i_1 < 128 lanes 16 unroll 1 {\n" \
	"              scale attention.z#5 to " SCALED "            }\n"
#define SCALE_W \
	"            for i_1 < 128 held attention.w#6 {\n" \
	"              for i_5 < 32 lanes 32 unroll 1 held attention.w#6 {\n" \
	"                scale attention.w#6 to " SCALED "              }\n            }\n"
#define WEIGHTS \
	"            for i_1 < 128 held attention.s#0 {\n" \
	"              for i_2 < 128 lanes 32 unroll 1 held attention.s#0 {\n" \
	"                do attention.p#4\n                do attention.z#5\n" \
	"                do pack#12\n              }\n            }\n"
/* pixels are rows of tiles */
static const char slid[] = "program { x: f32[1,64,56,56]  param w: f32[64,64,3,3]\n"
			   "  y = conv(x, w, stride=2, lo=[1,1], hi=[1,1])\n"
			   "  z = relu(y)\n"
			   "  return z }";
/* rows of 14 pixels, without what is outside */
static const char clipped[] = "program { x: f32[1,32,14,14]  param w: f32[48,32,3,3]\n"
			      "  y = conv(x, w, lo=[1,1], hi=[1,1])\n"
			      "  return y }";
/* .. which the first cache does not hold: the next rows are prefetched */
static const char pixels[] = "program { x: f32[1,256,14,14]  param w: f32[256,256,3,3]\n"
			     "  y = conv(x, w, lo=[1,1], hi=[1,1])\n"
			     "  return y }";
/* .. whose sums are turned for what follows, and whose results are prefetched */
static const char behind[] = "program { x: f32[1,64,3,112]  param w: f32[128,64,3,3]\n"
			     "  b: f32[128,1,1]\n"
			     "  y = conv(x, w, lo=[1,1], hi=[1,1])\n"
			     "  z = add(y, b)\n"
			     "  return z }";
/* sums of few terms, whose results are prefetched to be written */
static const char stem[] = "program { x: f32[1,3,225,225]  w: f32[64,3,3,3]\n"
			   "  b: f32[1,64,1,1]\n"
			   "  y = conv(x, w, stride=2)\n"
			   "  z = add(y, b)\n"
			   "  return z }";
/* weights in panels, which the tiles of 13 rows prefetch */
static const char panels[] = "program { x: f32[1,256,7,7]  param w: f32[512,256,1,1]\n"
			     "  y = conv(x, w)\n"
			     "  return y }";
/* .. of which a copy is kept, for few rows */
static const char few[] = "program { x: f32[16,768]  param w: f32[768,3072]\n"
			  "  y = matmul(x, w)\n"
			  "  return y }";
/* .. in place: rows of them */
static const char in_place[] = "program { x: f32[1,384,28,28]  param w: f32[40,384,3,3]\n"
			       "  y = conv(x, w, lo=[1,1], hi=[1,1])\n"
			       "  return y }";
static const char whole_rows[] = "program { x: f32[1,128,28,28]  param w: f32[512,128,1,1]\n"
				 "  y = conv(x, w)\n"
				 "  return y }";
static const char scan[] = "program { x: f32[64,100]\n"
			   "  y = cumsum(x, axis=1)\n"
			   "  z = mul(y, 2.0)\n"
			   "  return z }";
static const char norm[] = "program { x: f32[300,40000]\n"
			   "  m = reduce_mean(x, axes=[0], keep=true)\n"
			   "  d = sub(x, m)\n"
			   "  e = exp(d)\n"
			   "  return e }";
static const char late[] = "program { param x: i32[12]\n"
			   "  v = narrow(x, axis=0, start=2, count=6)\n"
			   "  a = mul(v, 2)\n"
			   "  x1 = write(v, a)\n"
			   "  s = reduce_sum(x1, axes=[0])\n"
			   "  o = mul(x, s)\n"
			   "  return o }";
static const char half[] = "program { param p: f32[4,3]  x: f32[2,3]\n"
			   "  a = narrow(p, axis=0, start=0, count=2)\n"
			   "  b = narrow(p, axis=0, start=2, count=2)\n"
			   "  y = mul(a, x)\n"
			   "  p1 = write(b, y)\n"
			   "  s = reduce_sum(y, axes=[0,1])\n"
			   "  return s }";
static const char mask[] = "program { q: f32[2,4,64,16]  k: f32[2,4,64,16]\n"
			   "  v: f32[2,4,64,16]\n"
			   "  o = attention(q, k, v, scale=0.25, causal=true)\n"
			   "  return o }";
static const char keys[] = "program { q: f32[1,2,256,64]  k: f32[1,2,32768,64]\n"
			   "  v: f32[1,2,32768,64]\n"
			   "  o = attention(q, k, v, scale=0.125)\n"
			   "  return o }";
/* on a GPU */
static const char held[] = "program { x: bf16[64,64]  w: bf16[64,64]\n"
			   "  y = matmul(x, w)\n"
			   "  z = relu(y)\n"
			   "  return z }";
/* on a machine whose warps multiply together */
static const char groups[] = "program { x: bf16[4096,256]  w: bf16[256,4096]\n"
			     "  y = matmul(x, w)\n"
			     "  return y }";
/* on a machine that adds up neighbours */
static const char dots[] = "op mm(x[m, k]:int, y[k, n]:int) -> o {\n"
			   " o[m, n] += (cast(x[m, k], i32) - 9) * "
			   "cast(y[k, n], i32) }\n"
			   "program { x: u8[64,64]  y: i8[64,64]\n"
			   "  o = mm(x, y)\n"
			   "  return o }";
/* .. in tile registers */
static const char bytes[] = "op mm(x[m, k]:int, y[k, n]:int) -> o {\n"
			    " o[m, n] += cast(x[m, k], i32) * cast(y[k, n], i32) }\n"
			    "program { x: i8[64,64]  y: i8[64,64]\n"
			    "  o = mm(x, y)\n"
			    "  return o }";
static const char longer[] = "program { x: bf16[512,2048]  w: bf16[2048,64]\n"
			     "  y = matmul(x, w)\n"
			     "  return y }";
static const char rows[] = "program { x: f32[4096,300]\n"
			   "  y = reduce_sum(x, axes=[1])\n"
			   "  return y }";
/* of whose window two rows may be outside */
static const char window[] = "program { x: f32[1,32,19,19]  w: f32[32,1,3,3]\n"
			     "  y = conv(x, w, groups=32, lo=[1,1], hi=[1,1])\n"
			     "  return y }";
static const char abreast[] = "program { x: f32[1,32,28,28]  w: f32[32,1,3,3]\n"
			      "  y = conv(x, w, groups=32, lo=[1,1], hi=[1,1])\n"
			      "  z = relu(y)\n"
			      "  return z }";
static const char both[] = "program { x: f32[64,256]  w: f32[256,64]\n"
			   "  y = matmul(x, w)\n"
			   "  s = softmax(y, axis=1)\n"
			   "  return s }";

/* on a core, whose registers have the sums of a tile until what follows is computed */
static const char near[] = "program { x: f32[64,64]  w: f32[64,64]  b: f32[64]\n"
			   "  y = matmul(x, w)\n  z = add(y, b)\n"
			   "  r = relu(z)\n  return r }";

static const struct edit {
	const char *name, *program, *from, *to, *rule;
} edits[] = {
	{"another machine", sum, "schedule c/avx512", "schedule c/avx2",
		"machine"},
	{"another kernel", sum, "fn_exp_0", "fn_log_0", "kernel"},
	{"a kernel that is not there", sum, "kernel 0 ", "kernel 3 ", "kernel"},
	{"no keyword", sum, "  part ", "  parts ", "syntax"},
	{"no equation", sum, "part reduce_sum#1", "part reduce_sum#7", "name"},
	{"another equation's label", sum, "do exp#0", "do exp#1", "name"},
	{"a bound that is wider", sum, "for i_0 < 262144", "for i_0 < 262145",
		"bound"},
	{"fewer chunks than pieces", sum, "of 16 chunks", "of 15 chunks",
		"chunk"},
	{"pieces that are no chunks", sum, "by 16384 parallel", "by 16384",
		"chunk"},
	{"a piece that is stored nowhere", sum, "      part reduce_sum#1\n", "",
		"chunk"},
	{"pieces that nobody combines", sum, "    combine reduce_sum#1\n",
		"    do exp#0\n", "part"},
	{"a sum that starts with what was there", sum,
		"      init reduce_sum#1\n", "", "start"},
	{"a sum that starts in its own loop", both,
		"        init softmax.s#3\n"
		"        for i_3 < 64 lanes 16 unroll 2 {\n",
		"        for i_3 < 64 lanes 16 unroll 2 {\n"
		"        init softmax.s#3\n",
		"start"},
	{"twice as many lanes", sum, "lanes 16", "lanes 32", "lanes"},
	{"lanes that take several elements of a CPU", sum, "unroll 2",
		"unroll 2 wide", "lanes"},
	{"too many sums side by side", sum, "unroll 2", "unroll 32", "lanes"},
	{"rows abreast in blocks that are shorter", rows, "block i_0 < 4096 by 8",
		"block i_0 < 4096 by 4", "lanes"},
	{"rows abreast, and not all of the last block", rows,
		"block i_0 < 4096 by 8", "block i_0 < 4096 by 9", "lanes"},
	{"rows abreast that add up one after the other", rows,
		"lanes 16 unroll 1 {\n          for i_0 < 4096 unroll 8",
		"lanes 16 unroll 1 {\n          for i_0 < 4096", "lanes"},
	{"read before it is made", sum,
		"        do exp#0\n        do reduce_sum#1\n",
		"        do reduce_sum#1\n        do exp#0\n", "order"},
	{"added up twice", sum, "        do reduce_sum#1\n",
		"        do reduce_sum#1\n        do reduce_sum#1\n", "once"},
	{"not done", both, "          do softmax.o#4\n",
		"          do softmax.e#2\n", "once"},
	{"a loop too few", both, "for i_4 < 64 lanes 16 unroll 1",
		"span i_4 < 64 in 0..64", "cover"},
	{"read before the sum is complete", both,
		"for i_3 < 64 lanes 16 unroll 2 {\n          do softmax.e#2\n"
		"          do softmax.s#3\n        }\n",
		"for i_3 < 64 {\n          do softmax.e#2\n"
		"          do softmax.s#3\n"
		"          for i_4 < 64 { do softmax.o#4 }\n        }\n",
		"order"},
	{"another location", sum, "y: register", "y: local", "location"},
	{"a phase that does more than copy", sum, "of 16 chunks {",
		"of 16 chunks, copies x {", "copies"},
	{"a loop around itself", scan, "for i_1 < 100", "for i_0 < 64", "loop"},
	{"lanes along a scan", scan, "for i_1 < 100", "for i_1 < 100 lanes 4",
		"lanes"},
	{"a scan from the other end", scan, "for i_1 < 100",
		"for i_1 < 100 backward", "order"},
	{"chunks along a scan", scan,
		"of 1 chunks {\n    for i_0 < 64 {\n      for i_1 < 100",
		"of 6400 chunks {\n    for i_0 < 64 parallel {\n"
		"      for i_1 < 100 parallel",
		"chunk"},
	{"another square", turn, "along i_0", "along i_1 against i_0", "turn"},
	{"a square whose copy nobody reads in lanes", turn,
		"for i_1 < 512 lanes 16 unroll 1", "for i_1 < 512", "turn"},
	{"no square", turn, "        turn stage#1 along i_0 lanes 16\n", "",
		"once"},
	{"another tensor kept", turn, "at i_0 + 384*i_1",
		"at i_0 + 384*i_1 + 1", "change"},
	{"sums turned the other way", behind, "turn stage#4 along i_0 against i_2",
		"turn stage#4 along i_2 against i_0", "turn"},
	{"no square of sums", behind, "              turn stage#4 along i_0 against i_2 lanes 16\n",
		"", "once"},
	{"squares behind what reads them", behind, SQUARES TURNED, TURNED SQUARES, "order"},
	{"more columns read than turned", behind, SQUARES,
		"              block i_0 < 128 by 16 {\n" SQUARES "              }\n", "order"},
	{"sums copied one by one", behind, SQUARES,
		"              for i_0 < 128 {\n                for i_2 < 112 {\n"
		"                  do stage#4\n                }\n              }\n", "turn"},
	{"other sums kept", behind, "keep y at 336*i_0 + 112*i_1",
		"keep y at 336*i_0 + 112*i_1 + 1", "change"},
	{"a result kept", behind, "keep y at", "keep z at", "change"},
	{"sums kept twice", behind, "keep y at 336*i_0 + 112*i_1 + i_2\n",
		"keep y at 336*i_0 + 112*i_1 + i_2\n  keep y at 336*i_0 + 112*i_1 + i_2\n",
		"change"},
	{"axes that are not one", conv, "join i_1, i_2", "join i_2, i_1",
		"change"},
	{"a guard dropped", conv, "inside(i_5 + i_6%12 - 1, 0, 12)",
		"inside(i_5 + i_6%12 - 1, 0, 13)", "tile"},
	{"another factor", conv, "(w[72*i_0", "(w[71*i_0", "tile"},
	{"less rows than the block", conv, "rows i_0 by 8", "rows i_0 by 4",
		"tile"},
	{"half a vector", conv, "columns i_6 lanes 16", "columns i_6 lanes 8",
		"lanes"},
	{"not checked", conv, " start checked", " start", "tile"},
	{"a tile that starts nowhere", conv, " start checked", " checked",
		"start"},
	{"a sum left out", conv, "sums i_3, i_4, i_5", "sums i_3, i_4",
		"cover"},
	{"a sum twice", conv, "sums i_3, i_4, i_5", "sums i_3, i_4, i_5, i_5",
		"tile"},
	{"kept behind its reader", norm,
		"          do stage#3\n          do reduce_mean.s#0\n",
		"          do reduce_mean.s#0\n          do stage#3\n",
		"order"},
	{"chunks that write the same", norm, "of 625 chunks {\n    block i_0",
		"of 300 chunks {\n    for i_2 < 300 parallel {\n    block i_0",
		"syntax"},
	{"a gap between spans", late, "in 0..4", "in 0..3", "span"},
	{"spans that meet", late, "in 4..6", "in 3..6", "span"},
	{"written before it is kept", late,
		"          do keep#1\n          do write#2\n"
		"          do reduce_sum#3\n        }\n      }\n"
		"      span i_2 < 6 in 4..6 {\n"
		"        for i_2 < 6 lanes 4 unroll 4 {\n"
		"          do keep#1\n          do write#2\n",
		"          do write#2\n          do keep#1\n"
		"          do reduce_sum#3\n        }\n      }\n"
		"      span i_2 < 6 in 4..6 {\n"
		"        for i_2 < 6 lanes 4 unroll 4 {\n"
		"          do write#2\n          do keep#1\n",
		"write"},
	{"a clip that is narrower", half, "clip(i_2 - 2, 0, 2)",
		"clip(i_2 - 2, 0, 1)", "guard"},
	{"rows of a window left out", window, "clip(i_1 + i_3 - 1, 0, 19)",
		"clip(i_1 + i_3 - 1, 0, 18)", "guard"},
	{"a piece with more rows than its registers", abreast,
		"in 7..21 {\n          block i_1 < 28 by 7 {",
		"in 7..21 {\n          block i_1 < 28 by 14 {", "once"},
	{"a clip that lanes do not share", window, "for i_4 < 3 unroll 3",
		"for i_4 < 3 clip(i_2 + i_4 - 1, 0, 19)", "guard"},
	{"stored nowhere", half, "    done reduce_sum#2\n", "", "done"},
	{"stored before it is complete", half, "        do reduce_sum#2\n",
		"        do reduce_sum#2\n        done reduce_sum#2\n",
		"order"},
	{"phases that do not wait", sum, "    }\n  }\n  phase of 1 chunks {\n",
		"    }\n", "chunk"},
	{"less copied than is read", mask,
		"against i_2 lanes 16 needs(-i_1 + i_2, *, 1)",
		"against i_2 lanes 16 needs(-i_1 + i_2, *, 0)", "guard"},
	{"a guard that is narrower", mask, "needs(-i_1 + i_2, *, 1) near fills",
		"needs(-i_1 + i_2, *, 0) near fills", "guard"},
	{"a tile without its guard", mask, "start needs(-i_1 + i_2, *, 1) of",
		"start of", "guard"},
	{"a sum that is not scaled", keys, "            scale attention.z#5",
		"            do was#8 // scale attention.z#5", "scale"},
	{"scaled by something else", keys, "0, x0 * rescale", "1, x0 * rescale",
		"scale"},
	{"another weight", keys, "attention.m#2 = exp_weight(",
		"attention.m#2 = tanh(", "scale"},
	{"a prefetch of what is in registers", conv, " start checked",
		" start checked ahead(y, 16*i_0)", "name"},
	{"more lines than a tile prefetches", conv, " start checked",
		" start checked lines 65 ahead 0", "bound"},
	{"a prefetch beyond all memory", conv, " start checked",
		" start checked ahead(w, 9223372036854775807*i_0)", "bound"},
	{"lines beyond all memory", conv, " start checked",
		" start checked lines 1 ahead -1099511627777", "bound"},
	{"prefetches that are all of one element", conv, " start checked",
		" start checked ahead(w, 72*i_0, 8 by 0)", "bound"},
	{"matrix instructions of another machine", conv, " start checked",
		" matrix start checked", "tile"},
	{"a loop by warp without warps", scan, "for i_0 < 64", "for i_0 < 64 by warp",
		"warp"},
	{"warps without a loop that is dealt", scan, "of 1 chunks",
		"of 1 chunks by 4 warps", "warp"},
	{"a scan that is dealt to warps", scan,
		"of 1 chunks {\n    for i_0 < 64 {\n      for i_1 < 100",
		"of 1 chunks by 4 warps {\n    for i_0 < 64 {\n"
		"      for i_1 < 100 by warp",
		"warp"},
	{"dealt out twice", both,
		"of 4 chunks {\n    block i_0 < 64 by 16 parallel {\n"
		"      block i_1 < 64 by 32 {\n        block i_0 < 64 by 8 {",
		"of 4 chunks by 2 warps {\n    block i_0 < 64 by 16 parallel {\n"
		"      block i_1 < 64 by 32 by warp {\n"
		"        block i_0 < 64 by 8 by warp {",
		"warp"},
	{"stages without warps that copy", both, "block i_1 < 64 by 32 {",
		"block i_1 < 64 by 32 stages 2 {", "pieces"},
	{"more stages than a buffer has", both, "block i_1 < 64 by 32 {",
		"block i_1 < 64 by 32 stages 9 {", "bound"},
	{"sums that are held and read in other loops", held,
		"for i_0 < 64 held matmul#0 {\n            for i_1 < 64 lanes 32 unroll 1 held matmul#0",
		"for i_0 < 64 {\n            for i_1 < 64 lanes 32 unroll 1", "held"},
	{"loops that walk sums that nobody holds", held, "matrix start held",
		"matrix start", "held"},
	{"half of the loops that walk sums", held, "for i_0 < 64 held matmul#0",
		"for i_0 < 64", "held"},
	{"sums of rows of which a warp has two", held,
		"of 2 chunks by 4 warps", "of 2 chunks by 2 warps", "held"},
	{"columns that walk sums by another block", held,
		"        block i_0 < 64 by 16 by warp {\n          for",
		"        block i_0 < 64 by 8 by warp {\n          for", "held"},
	{"warps together, on a machine whose warps do not", held, "matrix start",
		"matrix by 4 warps start", "warp"},
	{"other warps together than the machine has", groups, "matrix by 4 warps",
		"matrix by 2 warps", "warp"},
	{"warps together whose columns are not copied ahead", groups, " stages 2 {",
		" {", "bulk"},
	{"warps together, some of which have no rows", groups, "by 8 warps {",
		"by 16 warps {", "warp"},
	{"warps together that do not hold their sums", groups,
		"matrix by 4 warps in memory start held", "matrix by 4 warps in memory start",
		"warp"},
	{"warps together that take rows of 64 bytes from memory", groups,
		"block i_2 < 256 by 64 stages", "block i_2 < 256 by 32 stages", "warp"},
	{"rows that lie as they are counted, in bulk", groups, "by 4 warps in memory",
		"by 4 warps", "bulk"},
	{"columns of a copy in bulk", groups, "for i_1 < 4096 lanes 32 unroll 1 {\n                do pack",
		"for i_1 < 4096 in bulk {\n                do pack", "pieces"},
	{"a copy in bulk, on a machine that has none", held, "for i_2 < 64 by warp",
		"for i_2 < 64 in bulk", "bulk"},
	{"columns that lie as they are counted", groups, " swizzled", "", "location"},
	{"terms that count, but where the mask leaves them out", own,
		" within inside(-i_1 + i_2, -127, 1)", "", "tile"},
	{"terms that count elsewhere", own, "within inside(-i_1 + i_2, -127, 1)",
		"within inside(-i_1 + i_2, -127, 2)", "tile"},
	{"a condition of terms that all count", own, "matrix start held needs",
		"matrix start held within inside(-i_1 + i_2, -127, 1) needs", "tile"},
	{"rows of warps that leave out keys that count", own,
		"by warp needs(-i_1 + i_2, *, 1)", "by warp needs(-i_1 + i_2, *, 0)", "guard"},
	{"rows of warps that leave out results", own,
		"by 16 by warp {\n          for i_1 < 128 held",
		"by 16 by warp needs(-i_1 + i_2, *, 1) {\n          for i_1 < 128 held", "guard"},
	{"scores of rows of warps, read by loops that are not held", own,
		"for i_1 < 128 held attention.s#0 {\n              for i_2 < 128 lanes 32 unroll 1 held attention.s#0",
		"for i_1 < 128 {\n              for i_2 < 128 lanes 32 unroll 1", "held"},
	{"rows of which a warp has two", own, "of 2 chunks by 8 warps",
		"of 2 chunks by 4 warps", "held"},
	{"sums of rows that are scaled when terms are added", own,
		SCALE_Z SCALE_W WEIGHTS, SCALE_W WEIGHTS SCALE_Z, "scale"},
	{"sums that a core holds, read by loops that are not held", near,
		"for i_0 < 64 held matmul#0 {\n              for i_1 < 64 lanes 16 unroll 1 held matmul#0",
		"for i_0 < 64 {\n              for i_1 < 64 lanes 16 unroll 1", "held"},
	{"loops that walk sums that no core holds", near, "start held of", "start of",
		"held"},
	{"sums that a core holds, in other lanes", near, "lanes 16 unroll 1 held",
		"lanes 8 unroll 1 held", "held"},
	{"sums that a core holds, and may compute again", near, "start held of",
		"start held checked of", "tile"},
	{"rows that walk sums in another block", near,
		"            for i_0 < 64 held matmul#0 {\n",
		"            for i_2 < 64 held matmul#0 {\n", "cover"},
	{"scaled before the maximum", keys, "do was#8", "do attention.c#3",
		"scale"},
	{"factors less another number", dots, "less -9, 0", "less -8, 0",
		"tile"},
	{"a slide that begins elsewhere", slid, "slide 2*i_1 + i_4 as",
		"slide 2*i_1 + i_4 + 1 as", "change"},
	{"a slide of one that slides", slid, "slide 2*i_2 + i_5 as",
		"slide i_6 + i_5 as", "change"},
	{"a slide of a digit", slid, "slide 2*i_2 + i_5 as",
		"slide i_2/2 + i_5 as", "change"},
	{"another stride of the slide", slid, "slide 2*i_2 + i_5 as",
		"slide i_2 + i_5 as", "bound"},
	{"an image that is one pixel away", slid, "56*i_6 + i_7 - 57]",
		"56*i_6 + i_7 - 56]", "tile"},
	{"a border that is too wide", slid, "inside(i_7 - 1, 0, 56)",
		"inside(i_7 - 1, 0, 55)", "tile"},
	{"a window that reads beside it", slid, "+ 57*i_4 + i_5],",
		"+ 57*i_4 + i_5 + 1],", "tile"},
	{"rows of an image that are not copied", slid, "for i_6 < 57 {",
		"for i_6 < 57 needs (i_6, 0, 56) {", "guard"},
	{"a clip that leaves out a row of the image", clipped,
		"clip(i_1 + i_4 - 1, 0, 14)", "clip(i_1 + i_4 - 1, 0, 13)", "tile"},
	{"a clip that is no border", clipped, " clip(i_1 + i_4 - 1, 0, 14)",
		" clip(i_1 + i_4 - 1, 0, 14) clip(i_3 + i_4, 0, 34)", "tile"},
	{"an image in place, and a border that is not clipped", clipped,
		" clip(i_2 + i_5 - 1, 0, 14)", "", "tile"},
	{"clipped pixels of which a tile has some", clipped,
		"block i_2 < 14 by 14 {\n                tile conv#0 rows i_2 by 14",
		"block i_2 < 14 by 7 {\n                tile conv#0 rows i_2 by 7",
		"tile"},
	{"a clip without an end", clipped, "clip(i_1 + i_4 - 1, 0, 14)",
		"clip(i_1 + i_4 - 1, 0, *)", "bound"},
	{"pairs of bytes", dots, "dot 4", "dot 2", "tile"},
	{"a copy in other groups", dots, "group 4 of", "group 2 of", "lanes"},
	{"a copy that is in no groups", dots, " group 4 of i_2", "", "turn"},
	{"groups that are copied along columns", dots,
		"turn pack#1 along i_2 against i_1",
		"turn pack#1 along i_1 against i_2", "turn"},
	{"vectors that are tile registers elsewhere", dots, "dot 4 less -9, 0",
		"dot 4 tiled less -9, 0", "tile"},
	{"blocks of the sum that end inside of an instruction", longer,
		"block i_2 < 2048 by 256", "block i_2 < 2048 by 250", "tile"},
	{"panels that end inside of tile registers", longer, "panel 32 group",
		"panel 48 group", "tile"},
	{"panels that end inside of a vector", panels, " panel ", " panel 7", "tile"},
	{"the same bytes less nothing", bytes, "dot 4 tiled", "dot 4", "tile"},
	{"bytes of which some is missing", bytes, "dot 4 tiled",
		"dot 4 tiled less 1, 0", "tile"},
	{"pairs of bytes in tile registers", bytes, "dot 4 tiled", "dot 2 tiled",
		"tile"},
	{"tile registers without groups", bytes, "dot 4 tiled", "tiled", "tile"},
	{"more rows than tile registers have", bytes, "by 32 columns",
		"by 33 columns", "tile"},
	{"half a vector of groups", dots, "against i_1 lanes 16",
		"against i_1 lanes 8", "lanes"},
};

struct pinned {
	const char *program, *from, *to;
	compile_options o;
	const char *code[2], *text[2]; /* as chosen, as read */
	const char *has[2]; /* what both texts have, or NULL */
};

static compilation *made(
	arena *a, const struct pinned *p, compile_options o, tn_level last)
{
	ir_program *q = ir_program_parse(
		a, p->program, strlen(p->program), "t", interp_loop);
	compilation *c;

	/* as if the program were run again and again */
	for (int32_t i = 0; i < q->input.n; i++)
		q->value.at[q->input.at[i]].steady =
			q->value.at[q->input.at[i]].is_param;
	c = compile_new(a, q, &o);
	compile_to(c, last);
	return c;
}

static const char *level(arena *a, compilation *c, tn_level l)
{
	str s = str_new(a);

	compile_explain(&s, c, l, 0);
	return s.at;
}

static void pin(arena *a, void *arg)
{
	struct pinned *p = arg;
	bool gpu = p->program == held || p->program == own || p->program == groups;
	const machine *m = machine_find(p->program == groups ? "cuda/sm_90a"
					: gpu		     ? "cuda/sm_90"
					: p->program == dots
						? "c/avx512-bf16"
					: p->program == bytes || p->program == longer
						? "c/avx512-amx"
						: "c/avx512");
	tn_level last = gpu ? TN_LEVEL_KERN : TN_LEVEL_C;
	compile_options o = compile_options_default(m);
	compilation *c = made(a, p, o, last);
	str s = str_new(a);

	p->text[0] = level(a, c, TN_LEVEL_SCHEDULE);
	p->code[0] = level(a, c, last);
	for (int32_t i = 0; i < 2 && p->has[i] != NULL; i++)
		if (strstr(i == 0 ? p->text[0] : p->code[0], p->has[i]) == NULL)
			env_bug(arena_env(a), "has", "no \"%s\" in\n%s", p->has[i],
				i == 0 ? p->text[0] : p->code[0]);
	if (p->from != NULL) {
		const char *at = strstr(p->text[0], p->from);

		if (at == NULL)
			env_bug(arena_env(a), "edit", "no \"%s\" in\n%s",
				p->from, p->text[0]);
		str_addn(&s, p->text[0], (size_t)(at - p->text[0]));
		str_add(&s, p->to);
		str_add(&s, at + strlen(p->from));
	} else {
		str_add(&s, p->text[0]);
	}
	o.schedule = (compile_text){s.at, "pinned", s.n, NULL};
	c = made(a, p, o, last);
	p->text[1] = level(a, c, TN_LEVEL_SCHEDULE);
	p->code[1] = level(a, c, last);
	if (p->from != NULL)
		return;
	assert_string_equal(p->text[0], p->text[1]);
	assert_string_equal(p->code[0], p->code[1]);
}

static void reads_back(void **state)
{
	const char *const all[] = {sum, turn, conv, scan, norm, late, half,
		mask, keys, both, held, own, near, panels, in_place, whole_rows, slid, clipped, few, behind};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct pinned p = {.program = all[i]};
		tn_diag d = {0};

		if (unit_run(pin, &p, 0, &d) != TN_OK)
			fail_msg("%s: %s:%d %s\n%s", d.rule, d.file, d.line,
				d.text, d.extra);
	}
}

static void refuses(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
		const struct edit *e = &edits[i];
		struct pinned p = {.program = e->program, .from = e->from,
			.to = e->to};
		tn_diag d = {0};
		tn_status s = unit_run(pin, &p, 0, &d);

		if (s != TN_EINVAL || strncmp(d.rule, "schedule.", 9) != 0 ||
			strcmp(d.rule + 9, e->rule) != 0) {
			print_error("%s: status %d, rule %s, wanted schedule.%s: %s\n",
				e->name, s, d.rule, e->rule, d.text);
			bad++;
		} else if (d.line < 1 && strcmp(e->rule, "once") != 0 &&
			strcmp(e->rule, "done") != 0 &&
			strcmp(e->rule, "scale") != 0) {
			print_error("%s: no line: %s\n", e->name, d.text);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
}

/* What tiles prefetch of weights, of rows, and of results, to write them; what they load
 * again, because the sums leave no registers. */
static void prefetches(void **state)
{
	static const struct {
		const char *program, *text, *code;
	} all[] = {
		{panels, " lines 1 ahead 688*(i_1/13) - 24*(i_2%86) + 2752 ahead(x, i_1 + 49*i_2 + 26) of",
			"__builtin_prefetch(&q0["},
		{clipped, " clip(i_2 + i_5 - 1, 0, 14) of",
			"__asm__ __volatile__(\"\" : : : \"memory\");"},
		{few, " phase of 16 chunks, copies w {", "__builtin_prefetch(&q0["},
		{in_place, " ahead(w, 3456*i_0 + 9*i_3 + 34560, 10 by 3456) of",
			"__builtin_prefetch(&p2["},
		{whole_rows, " ahead(w, 128*i_0 + 8*i_2 + 1024) of",
			"__builtin_prefetch(&p2["},
		{pixels, " ahead(x, 14*i_1 + i_2 + 196*i_3 + 43) of",
			"__builtin_prefetch(&p1["},
		{behind, " unroll 1 ahead(z, 336*i_0 + 112*i_1 + i_2 + 1344) {",
			"], 1, 3);"},
		{stem, " held ahead(z, 12544*i_0 + 112*i_1 + i_2 + 16*(i_3%2) + 100352, 8 by 12544) of",
			"], 1, 3);"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct pinned p = {.program = all[i].program,
			.has = {all[i].text, all[i].code}};
		tn_diag d = {0};

		if (unit_run(pin, &p, 0, &d) != TN_OK)
			fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
	}
}

/* Other schedules than ours are as good. */
static void accepts(void **state)
{
	static const struct {
		const char *program, *from, *to;
	} good[] = {
		{sum, "lanes 16 unroll 2", "lanes 8 unroll 4"},
		{turn, "lanes 16 unroll 1", "lanes 16 unroll 2"},
		{scan, "of 1 chunks {\n    for i_0 < 64",
			"of 64 chunks {\n    for i_0 < 64 parallel"},
		{both, "for i_1 < 64 lanes 16 unroll 4", "for i_1 < 64"},
		{half, " clip(i_2 - 2, 0, 2)", ""},
		{window, " clip(i_1 + i_3 - 1, 0, 19)", ""},
		{slid, " clip(2*i_1 + i_4 - 1, 0, 56)", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct pinned p = {.program = good[i].program,
			.from = good[i].from, .to = good[i].to};
		tn_diag d = {0};

		if (unit_run(pin, &p, 0, &d) != TN_OK)
			fail_msg("%s -> %s: %s: %s\n%s", p.from, p.to, d.rule,
				d.text, d.extra);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_back),
		cmocka_unit_test(prefetches),
		cmocka_unit_test(refuses),
		cmocka_unit_test(accepts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
