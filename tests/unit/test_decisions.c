/*
 * Decisions of schedules: each kind of decision.def on a small program that
 * leads to it, with its figures; and what is said is compared with the trees
 * that were made, by other means than those of the passes.
 */
#include "unit.h"
#include "system_parse.h"
#include "interp/interp.h"

#include "engine/engine.h"
#include "loop/tree.h"
#include "schedule/decision.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#define MACHINE "c/avx512"

/* By kind: does it say that something was done? */
static const bool is_taken[] = {
#define DECISION(id, pass, taken, sentence) taken,
#include "schedule/decision.def"
};

/* ---- one small program for each kind ---- */

static const struct row {
	decide_kind kind;
	int64_t a, b;	     /* -1: not looked at */
	const char *program; /* ".tn" text, text of a system, or a golden's name */
	const char *machine; /* NULL: c/avx512; see machine_named */
} rows[] = {
	{DECIDE_TILE_TAKEN, 8, 32, "program { x: f32[64,64]  y: f32[64,64]\n"
		" o = matmul(x, y)\n return o }", NULL},
	{DECIDE_TILE_PIECES, -1, -1, "program { x: f32[32,65536]\n"
		" y: f32[65536,32]\n o = matmul(x, y)\n return o }", NULL},
	{DECIDE_TILE_PLAIN, -1, -1, "program { x: f32[64,64]  y: f32[64,64]\n"
		" o = matmul(x, y)\n return o }", "none"},
	{DECIDE_TILE_SCATTER, -1, -1, "inplace/29_two_steps.tn", NULL},
	{DECIDE_TILE_TAIL, -1, -1, "program { x: f32[64,8]  y: f32[8,64]\n"
		" m = matmul(x, y)\n s = reduce_sum(m, axes=[1])\n"
		" q = reduce_sum(s, axes=[0])\n r = div(q, q)\n"
		" return m, r }", NULL},
	{DECIDE_TILE_AROUND, -1, -1, "fusion/29b_layer_norm_gradient.tn", NULL},
	{DECIDE_TILE_DTYPE, -1, -1, "program { x: i64[64,64]  y: i64[64,64]\n"
		" o = matmul(x, y)\n return o }", NULL},
	{DECIDE_TILE_FACTORS, -1, 8, "system {\n x: f32[64,64] input 0\n"
		" y: f32[64,64] input 1\n o: f32[64,64]\n"
		" a o#0: o[i:64, j:64] += x[64*i + k] * x[64*i + k] * "
		"x[64*i + k] * x[64*i + k] * x[64*i + k] * x[64*i + k] * "
		"x[64*i + k] * x[64*i + k] * y[64*k + j] for k:64\n"
		" return o\n}\n", NULL},
	{DECIDE_TILE_DIVIDE, -1, -1, "program { x: f32[1,8,30,30]\n"
		" w: f32[8,1,3,3]\n o = conv(x, w, groups=8)\n return o }", NULL},
	{DECIDE_TILE_SCALE, -1, -1, "system {\n x: f32[64,64] input 0\n"
		" y: f32[64,64] input 1\n z: f32[63] input 2\n o: f32[64,64]\n"
		" a o#0: o[i:64, j:64] += sel(inside(i - 1, 0, 63), x[64*i + k]"
		" * y[64*k + j] * z[i - 1], 0) for k:64\n return o\n}\n", NULL},
	{DECIDE_TILE_COLUMNS, 8, 16, "program { x: f32[8,64]  y: f32[64,8]\n"
		" o = matmul(x, y)\n return o }", NULL},
	{DECIDE_TILE_NO_COLUMNS, -1, -1, "op p(x[c, a], y[a, b], z[c, b]) -> o {\n"
		" o[c, b] += (x[c, a - 1] else 0) * (y[a, b - 1] else 0) "
		"where c <= b else cast(0, x) }\n"
		"program { x: f32[3,8]  y: f32[8,3]  z: f32[3,3]\n"
		" o = p(x, y, z)\n u = add(o, z)\n v = mul(u, z)\n"
		" return u, v }", NULL},
	{DECIDE_TILE_NO_ROWS, -1, -1, "op p(x[c, a], y[a, b], z[c, b]) -> o {\n"
		" o[c, b] += x[c, a] * y[a, b] where c <= b else cast(0, x) }\n"
		"program { x: i32[4,8]  y: i32[8,40]  z: i32[4,40]\n"
		" o = p(x, y, z)\n return o }", NULL},
	{DECIDE_TILE_ROWS, 4, 8, "program { x: f32[4,64]  y: f32[64,64]\n"
		" o = matmul(x, y)\n return o }", "tall tiles"},
	{DECIDE_TILE_MANY, 1, 4, "program { x: f32[64,64]  y: f32[64,64]\n"
		" o = matmul(x, y)\n return o }", "small kernels"},
	{DECIDE_TILE_SCAN, -1, -1, "program { x: f32[64,8]\n"
		" c = cumsum(x, axis=1)\n s = vecdot(x, c)\n return s }", NULL},
	{DECIDE_TILE_SUMS, 4, 8, "program { x: f32[64,4]  y: f32[4,64]\n"
		" o = matmul(x, y)\n return o }", NULL},
	{DECIDE_TILE_NO_SUM, -1, -1, "system {\n x: f32[64,64] input 0\n"
		" y: f32[64,64] input 1\n o: f32[64,64]\n"
		" a o#0: o[i:64, j:64] += x[64*i + k] * y[64*j + l] for k:64, "
		"l:64\n return o\n}\n", NULL},
	{DECIDE_TILE_VECTOR, -1, -1, "program { x: f64[64,64]  y: f64[64,64]\n"
		" o = matmul(x, y)\n return o }", "c/plain"},
	{DECIDE_CUT_TAKEN, 4096, 16, "program { x: f32[32,65536]\n"
		" y: f32[65536,32]\n o = matmul(x, y)\n return o }", NULL},
	{DECIDE_CUT_PIECES, -1, 8, "program { x: f32[512,64]  y: f32[64,512]\n"
		" o = matmul(x, y)\n return o }", NULL},
	{DECIDE_CUT_SHORT, 64, 0, "program { x: f32[64,64]  y: f32[64,64]\n"
		" o = matmul(x, y)\n return o }", NULL},
	{DECIDE_CUT_INSIDE, -1, -1, "program { x: f32[64,64]  y: f32[64,64]\n"
		" a = matmul(x, y)\n e = exp(a)\n o = matmul(e, y)\n return o }",
		NULL},
	{DECIDE_TURN_TAKEN, 100, 76, "program { x: f32[1,64,7,7]\n"
		" param w: f32[64,64,3,3]\n"
		" o = conv(x, w, lo=[1,1], hi=[1,1])\n return o }", NULL},
	{DECIDE_TURN_FILLED, 62, 76, "program { x: f32[1,64,7,7]\n"
		" param w: f32[20,64,3,3]\n"
		" o = conv(x, w, lo=[1,1], hi=[1,1])\n return o }", NULL},
	{DECIDE_TURN_SHAPE, -1, -1, "system {\n x: f32[64,49] input 0\n"
		" w: f32[64,64] input 1\n b: f32[64] input 2\n o: f32[64,49]\n"
		" a o#0: o[f:64, z:49] += w[64*f + k] * x[49*k + z] * b[f] "
		"for k:64\n return o\n}\n", NULL},
	{DECIDE_TURN_SUM, 32, 64, "program { x: f32[1,32,7,7]\n"
		" param w: f32[64,32,1,1]\n o = conv(x, w)\n return o }", NULL},
	{DECIDE_TURN_LARGE, -1, 4 << 20, "program { x: f32[1,512,7,7]\n"
		" param w: f32[1024,512,3,3]\n"
		" o = conv(x, w, lo=[1,1], hi=[1,1])\n return o }", NULL},
	{DECIDE_TURN_STEADY, -1, -1, "program { x: f32[1,64,7,7]\n"
		" w: f32[64,64,3,3]\n"
		" o = conv(x, w, lo=[1,1], hi=[1,1])\n return o }", NULL},
	{DECIDE_COPY_WHOLE, -1, -1, "program { x: f32[256,1024]\n"
		" y: f32[1024,512]\n o = matmul(x, y)\n return o }", NULL},
	{DECIDE_COPY_TAKEN, -1, -1, "program { x: f32[256,1024]\n"
		" y: f32[1024,512]\n o = matmul(x, y)\n return o }", NULL},
	{DECIDE_COPY_IN_PLACE, -1, -1, "program { x: f32[64,64]  y: f32[64,64]\n"
		" o = matmul(x, y)\n return o }", NULL},
	{DECIDE_RESIDUES_TAKEN, 2, -1, "system {\n x: f32[4,64,7] input 0\n"
		" w: f32[64,32,3] input 1\n"
		" o: f32[4,32,14]\n a o#0: o[n:4, f:32, j:14] += sel(inside(j + "
		"2*k - 2*((j + 1)/2) + 1, 0, 3) and inside((j + 1)/2 - k, 0, 7), "
		"x[448*n + 7*c + (j + 1)/2 - k] * w[96*c + 3*f + j - "
		"2*((j + 1)/2) + 2*k + 1], 0) for c:64, k:2\n return o\n}\n", NULL},
	{DECIDE_RESIDUES_LANES, 2, -1, "system {\n x: f32[4,32] input 0\n"
		" o: f32[4,64]\n a o#0: o[n:4, j:64] += sel(inside(j + "
		"2*k - 2*((j + 1)/2) + 1, 0, 3) and inside((j + 1)/2 - k, 0, 32), "
		"x[32*n + (j + 1)/2 - k], 0) for k:2\n return o\n}\n", NULL},
	{DECIDE_JOIN_TAKEN, 196, -1, "program { x: f32[1,64,14,14]\n"
		" w: f32[64,64,3,3]\n"
		" o = conv(x, w, lo=[1,1], hi=[1,1])\n return o }", NULL},
	{DECIDE_JOIN_TORN, -1, -1, "program { x: f32[2,4,19,21]\n"
		" w: f32[20,4,2,4]  b: f32[20]\n"
		" y = conv(x, w, lo=[2,2])\n z = add(y, b)\n return z }", NULL},
	{DECIDE_ROWS_TAKEN, 64, -1, "program { x: f32[100000,64]\n"
		" s = reduce_sum(x, axes=[0])\n return s }", NULL},
	{DECIDE_ROWS_LONG, 40000, 4096, "program { x: f32[1000,40000]\n"
		" s = reduce_sum(x, axes=[0])\n return s }", NULL},
	{DECIDE_PARTS_TAKEN, -1, -1, "program { x: f32[1048576]\n"
		" s = reduce_sum(x, axes=[0])\n return s }", NULL},
	{DECIDE_PARTS_PIECES, -1, 16, "program { x: f32[64,65536]\n"
		" s = reduce_sum(x, axes=[1])\n return s }", NULL},
	{DECIDE_PARTS_COST, 8192, -1, "program { x: f32[128,262144]\n"
		" s = reduce_sum(x, axes=[0])\n return s }", "cuda/sm_90"},
	{DECIDE_PARTS_READ, -1, -1, "program { a: f32[100000,8]  r: i64[50000]\n"
		" n: f32[50000,8]\n o = scatter_add(a, r, n)\n return o }", NULL},
	{DECIDE_PARTS_FEW, -1, -1, "program { x: f32[100,4096]\n"
		" s = reduce_sum(x, axes=[0])\n return s }", NULL},
	{DECIDE_PARTS_LITTLE, -1, 65536, "program { x: f32[64,64]\n"
		" s = reduce_sum(x, axes=[1])\n return s }", NULL},
	{DECIDE_APART_TAKEN, -1, -1, "schedule/sums_behind_windows.tn", NULL},
	{DECIDE_APART_LANES, -1, -1, "schedule/statements_before_sums.tn", "c/avx2"},
	{DECIDE_APART_IN_PLACE, -1, -1, "program { x: f32[7,1]  b: f32[7,7]\n"
		" i: i32[]  u: f32[1]  param g: f32[7,1]  m: f32[7,1]\n"
		" r: f32[]  t: f32[1,1]\n a = attention_bias(x, x, x, b, scale=1)\n"
		" c = scatter_mul(a, i, u)\n"
		" p, w = sgd_momentum(c, g, m, r, momentum=3)\n"
		" l = l1_loss(w, t)\n n = write(g, w)\n return p, l }", NULL},
	{DECIDE_APART_LARGE, -1, 128, "schedule/sums_behind_windows.tn",
		"small caches"},
	{DECIDE_LANES_TAKEN, 16, -1, "program { x: f32[64]\n o = exp(x)\n"
		" return o }", NULL},
	{DECIDE_LANES_SHORT, 2, 4, "program { x: f32[2]\n o = exp(x)\n"
		" return o }", NULL},
	{DECIDE_LANES_SCAN, -1, -1, "program { x: f32[100]\n"
		" o = cumsum(x, axis=0)\n return o }", NULL},
	{DECIDE_LANES_SCATTER, -1, -1, "inplace/29_two_steps.tn",
		NULL},
	{DECIDE_LANES_WIDE, -1, -1, "program { x: f64[64]\n o = exp(x)\n"
		" return o }", "c/plain"},
	{DECIDE_LANES_PLAIN, -1, -1, "program { x: f32[64]\n o = exp(x)\n"
		" return o }", "none"},
	{DECIDE_LANES_TAIL, -1, -1, "fusion/46b_tail_of_column_sums.tn",
		NULL},
	{DECIDE_SQUARES_TAKEN, 16, -1, "program { x: f32[512,384]\n"
		" y = transpose(x, perm=[1,0])\n z = add(y, 1.0)\n return z }",
		NULL},
	{DECIDE_SQUARES_SHARED, 32, 8, "program { x: f32[512,384]\n"
		" y = transpose(x, perm=[1,0])\n z = add(y, 1.0)\n return z }",
		"cuda/sm_90"},
	{DECIDE_SQUARES_SMALL, 4096, -1, "program { x: f32[32,32]\n"
		" y = transpose(x, perm=[1,0])\n z = add(y, 1.0)\n return z }",
		NULL},
	{DECIDE_SQUARES_SHORT, 12, 16, "program { x: f32[12,4000]\n"
		" y = transpose(x, perm=[1,0])\n z = add(y, 1.0)\n return z }",
		NULL},
	{DECIDE_SQUARES_DTYPE, 2, -1, "program { x: f16[512,384]\n"
		" y = transpose(x, perm=[1,0])\n z = add(y, 1.0)\n return z }",
		NULL},
	{DECIDE_SQUARES_PART, -1, -1, "program { x: f32[512,384]\n"
		" y = transpose(x, perm=[1,0])\n"
		" v = slice(y, start=[0,0], count=[300,500])\n"
		" z = add(v, 1.0)\n return z }", NULL},
	{DECIDE_KEEP_TAKEN, -1, -1, "program { x: f32[1000,512]\n"
		" m = reduce_mean(x, axes=[0], keep=true)\n d = sub(x, m)\n"
		" e = exp(d)\n return e }", NULL},
	{DECIDE_KEEP_LARGE, -1, 1 << 20, "program { x: f32[30000,4000]\n"
		" m = reduce_mean(x, axes=[0], keep=true)\n d = sub(x, m)\n"
		" e = exp(d)\n return e }", NULL},
	{DECIDE_KEEP_LATE, -1, -1, "program { a: f32[3,25,4]  b: f32[3,25,4]\n"
		" m: bool[3,25,4]  t: f32[3]\n r = linear_recurrence(a, b)\n"
		" c = cumsum(r, axis=-3)\n s = masked_softmax(c, m, axis=0)\n"
		" i = isin(c, t)\n return s, i }", NULL},
	{DECIDE_CHUNKS_TAKEN, -1, -1, "program { x: f32[1048576]\n o = exp(x)\n"
		" return o }", NULL},
	{DECIDE_CHUNKS_LITTLE, 64, 32768, "program { x: f32[64]\n o = exp(x)\n"
		" return o }", NULL},
	{DECIDE_CHUNKS_BLOCKS, -1, -1, "program { x: f32[8,64]  y: f32[64,32]\n"
		" o = matmul(x, y)\n return o }", NULL},
	{DECIDE_CHUNKS_LOOP, -1, -1, "program { x: f32[100]\n"
		" o = cumsum(x, axis=0)\n return o }", NULL},
	{DECIDE_CHUNKS_ROOTS, -1, -1, "program { x: f32[100,100]\n"
		" s = reduce_sum(x, axes=[0])\n return s }", NULL},
	{DECIDE_CHUNKS_NONE, -1, -1, "program { x: f32[]\n o = exp(x)\n"
		" return o }", NULL},
	{DECIDE_CHUNKS_PLAIN, -1, -1, "program { x: f32[64]\n o = exp(x)\n"
		" return o }", "none"},
	{DECIDE_GUARDS_TAKEN, 3, -1, "program { x: f32[4096]\n"
		" y = pad(x, lo=[40], hi=[40])\n o = exp(y)\n return o }", NULL},
	{DECIDE_GUARDS_MANY, -1, 6, "program { a: f32[50]  b: f32[50]\n"
		" c: f32[50]  d: f32[50]  e: f32[50]  f: f32[50]  g: f32[50]\n"
		" h: f32[50]\n y = concat(a, b, c, d, e, f, g, h, axis=0)\n"
		" o = exp(y)\n return o }", NULL},
	{DECIDE_DOT_TAKEN, 2, 2, "program { x: bf16[64,64]  y: bf16[64,64]\n"
		" o = matmul(x, y)\n return o }", "c/avx512-bf16"},
	{DECIDE_DOT_DTYPE, -1, -1, "program { x: f32[64,64]  y: f32[64,64]\n"
		" o = matmul(x, y)\n return o }", "c/avx512-vnni"},
	{DECIDE_DOT_SHAPE, -1, -1, "op p(x[c, a], y[a, b]) -> o {\n"
		" o[c, b] += x[c, a] * y[a, b] where a <= c else cast(0, x) }\n"
		"program { x: bf16[64,64]  y: bf16[64,64]\n"
		" o = p(x, y)\n return o }", "c/avx512-bf16"},
	{DECIDE_MATRIX_TAKEN, 16, 16, "program { x: bf16[64,64]  y: bf16[64,64]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_80"},
	{DECIDE_MATRIX_DTYPE, -1, -1, "program { x: f32[64,64]  y: f32[64,64]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_80"},
	{DECIDE_MATRIX_SHAPE, -1, -1, "program { x: bf16[32,65536]\n"
		" y: bf16[65536,32]\n o = matmul(x, y)\n return o }", "cuda/sm_80"},
	{DECIDE_MATRIX_ROWS, -1, -1,
		"op p(x[a, k], y[b, k]) -> o { o[a, b] += cast(x[a, k], f32) * cast(y[b, k], f32) }\n"
		"program { x: f16[33,390]  y: f16[31,390]  z: f32[33,31]\n"
		" s = p(x, y)\n o = add(s, z)\n return s, o }", "cuda/sm_80"},
	{DECIDE_JOIN_SUM, 576, -1, "program { x: f16[1,64,20,20]\n"
		" w: f16[64,64,3,3]\n o = conv(x, w)\n return o }", "cuda/sm_80"},
	{DECIDE_WARPS_TAKEN, 8, -1, "program { x: f32[256,256]  y: f32[256,256]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_OWNERS_TAKEN, 938, 32, "program { x: f32[30000]  i: i64[65536]\n"
		" u: f32[65536]\n o = scatter_add(x, i, u)\n return o }",
		"cuda/sm_90"},
	{DECIDE_OWNERS_PIECES, 2048, 2112, "program { x: f32[100,262144]\n"
		" i: i64[300]  u: f32[300,262144]\n o = scatter_add(x, i, u)\n"
		" return o }", "cuda/sm_90"},
	{DECIDE_OWNERS_LITTLE, 63, 64, "program { x: f32[100]  i: i64[63]\n"
		" u: f32[63]\n o = scatter_add(x, i, u)\n return o }", "cuda/sm_90"},
	{DECIDE_OWNERS_ADDRESS, -1, -1, "op s(x[a, n], i[a, k]:int, u[a, k]) -> o {\n"
		" o[a, n] = x[a, n]; o[a, i[a, k]] += u[a, k] }\n"
		"program { x: f32[64,100]  i: i64[64,200]  u: f32[64,200]\n"
		" o = s(x, i, u)\n return o }", "cuda/sm_90"},
	{DECIDE_OWNERS_FUSED, -1, -1, "inplace/29_two_steps.tn", "cuda/sm_90"},
	{DECIDE_WARPS_LOOPS, -1, -1, "fusion/31d_rows_in_blocks.tn", "cuda/sm_90"},
	{DECIDE_WARPS_ROW_TAKEN, 8, -1, "program { x: f32[256,8192]\n"
		" o = reduce_sum(x, axes=[1])\n return o }", "cuda/sm_90"},
	{DECIDE_WARPS_ROW_LOOPS, -1, -1, "program { x: f32[256,8192]\n"
		" o, i = max_with_index(x, axis=1)\n return o, i }", "cuda/sm_90"},
	{DECIDE_WARPS_ROW_SHORT, -1, -1, "program { x: f32[512,200]\n"
		" o = reduce_sum(x, axes=[1])\n return o }", "cuda/sm_90"},
	{DECIDE_WARPS_ROW_COST, 100000, -1, "program { x: f32[100000,4096]\n"
		" o = reduce_sum(x, axes=[1])\n return o }", "cuda/sm_90"},
	{DECIDE_WARPS_LARGE, -1, 1024, "program { x: f32[256,256]  y: f32[256,256]\n"
		" o = matmul(x, y)\n return o }", "small blocks"},
	{DECIDE_WARPS_FEW, 1, -1, "program { x: f32[16,256]  y: f32[256,256]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_HOLD_TAKEN, 16, 64, "program { x: f32[256,256]  y: f32[256,256]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_HOLD_TILES, -1, -1, "program { x: f32[1,64,14,14]\n"
		" w: f32[64,64,3,3]\n o = conv(x, w, lo=[1,1], hi=[1,1])\n"
		" return o }", "cuda/sm_90"},
	{DECIDE_HOLD_WARPS, -1, -1, "program { x: f32[16,256]  y: f32[256,256]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_STAGES_TAKEN, 32, -1, "program { x: f32[256,256]  y: f32[256,256]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_STAGES_COPIES, -1, -1, "program { x: f32[256,256]  y: f32[256,250]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_STAGES_FEW, 1, 2, "program { x: bf16[256,64]  y: bf16[64,256]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_STAGES_LARGE, -1, 20 << 10, "program { x: f32[256,256]\n"
		" y: f32[256,256]\n o = matmul(x, y)\n return o }",
		"tight blocks"},
	{DECIDE_STAGES_COST, -1, -1, "program { x: bf16[256,256]\n"
		" y: bf16[256,256]\n o = matmul(x, y)\n return o }",
		"slow barriers"},
	{DECIDE_STREAM_TAKEN, 64 << 20, -1, "program { x: f32[16777216]\n"
		" o = exp(x)\n return o }", NULL},
	{DECIDE_WIDE_TAKEN, 8, 2, "program { x: bf16[1000,1000]\n"
		" o = exp(x)\n return o }", "cuda/sm_90"},
	{DECIDE_WIDE_INDEX, -1, -1, "fusion/10_concat.tn", "cuda/sm_90"},
	{DECIDE_WIDE_DATA, -1, -1, "op g(x[a, c], i[a, b]:int) -> o { o[a, b] = x[a, i[a, b]] }\n"
		"program { x: f32[64,512]  i: i64[64,512]\n o = g(x, i)\n return o }", "cuda/sm_90"},
	{DECIDE_WIDE_APART, 4, -1, "program { x: f32[100,1002]\n"
		" o = reduce_sum(x, axes=[1])\n return o }", "cuda/sm_90"},
	{DECIDE_WIDE_SHORT, 100, 128, "program { x: f32[64,100]\n"
		" o = reduce_sum(x, axes=[1])\n return o }", "cuda/sm_90"},
	{DECIDE_INDICES_TAKEN, -1, INT32_MAX, "program { x: f32[1000,1000]\n"
		" o = exp(x)\n return o }", "cuda/sm_90"},
	{DECIDE_INDICES_LARGE, -1, INT32_MAX, "program { x: f32[50000,50000]\n"
		" o = exp(x)\n return o }", "cuda/sm_90"},
	{DECIDE_STREAM_READ, -1, -1, "program { x: f32[16777216]\n"
		" o = exp(x)\n s = reduce_sum(o, axes=[0])\n return o, s }", NULL},
};

/* Kinds that need a kernel which no small program here leads to. */
static const decide_kind hard[] = {DECIDE_TILE_SELF, DECIDE_TILE_OUTER,
	DECIDE_CUT_LOOPS, DECIDE_HOLD_READ, DECIDE_INDICES_DATA};

/* ---- what the trees say ---- */

struct facts {
	const loop_kernel *k;
	loop_set wide[64]; /* by first equation: variables of wide loops */
	loop_set tiled;	   /* equations with a tile */
	loop_set lanes[64]; /* by equation: variables that lanes walk */
	loop_set parts, spans; /* variables */
	loop_set turned, kept; /* stages */
	loop_set staged;       /* phases */
	const loop_node *tile[64]; /* by equation */
};

static void gather(struct facts *f, const loop_node *n, loop_set lanes)
{
	if (n->kind == LOOP_FOR && n->lanes > 1)
		lanes |= BIT(n->var);
	if (n->wide)
		f->wide[n->child[0]->eqn] |= BIT(n->var);
	if (n->kind == LOOP_SPAN)
		f->spans |= BIT(n->var);
	if (n->kind == LOOP_TILE) {
		f->tiled |= BIT(n->eqn);
		f->tile[n->eqn] = n;
	}
	if (n->kind == LOOP_STAGE && f->k->eqn[n->eqn].stage)
		f->turned |= BIT(n->eqn);
	if (n->kind == LOOP_STMT && f->k->eqn[n->eqn].stage)
		f->kept |= BIT(n->eqn);
	if (n->kind == LOOP_BLOCK && n->parallel && n->child[n->n_child - 1] != NULL &&
		n->number < 0)
		for (int32_t i = 0; i < n->n_child; i++) {
			const loop_node *c = n->child[i];

			while (loop_is_loop(c))
				c = c->child[c->n_child - 1];
			if (c->kind == LOOP_PART)
				f->parts |= BIT(n->var);
		}
	if (!loop_is_loop(n))
		f->lanes[n->eqn] |= lanes;
	for (int32_t i = 0; i < n->n_child; i++)
		gather(f, n->child[i], lanes);
}

static bool has_stages(const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (has_stages(n->child[i]))
			return true;
	return n->stages > 1;
}

static struct facts facts_of(const loop_kernel *k)
{
	struct facts f = {.k = k};

	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			gather(&f, k->phase[p].root[i], 0),
			f.staged |= has_stages(k->phase[p].root[i]) ? BIT(p) : 0;
	return f;
}

static bool has_change(
	const loop_kernel *k, loop_change_kind kind, int32_t eqn, int32_t var)
{
	for (int32_t i = 0; i < k->change.n; i++) {
		const loop_change *c = &k->change.at[i];

		if (c->kind == kind && (eqn < 0 || c->eqn == eqn) &&
			(var < 0 || c->var == var))
			return true;
	}
	return false;
}

/* Is there a stage of the tensor among these? */
static bool stages(const loop_kernel *k, loop_set of, int32_t tensor)
{
	for (int32_t i = 0; i < k->n_eqns; i++)
		if ((of & BIT(i)) != 0 && k->eqn[i].e->out[0] == tensor)
			return true;
	return false;
}

static bool copies(const loop_kernel *k, int32_t tensor, bool whole)
{
	for (int32_t p = 0; p < k->n_phases && whole; p++)
		if (k->phase[p].copies > 0 &&
			k->param[k->phase[p].copies - 1] == tensor)
			return true;
	for (int32_t i = 0; i < k->n_eqns && !whole; i++)
		if (k->eqn[i].pack && k->eqn[i].body[0]->kind == EX_READ &&
			k->eqn[i].body[0]->tensor == tensor)
			return true;
	return false;
}

/* Is a factor of the tile of eqn a read of this tensor? */
static bool reads_in_place(const struct facts *f, int32_t eqn, int32_t tensor)
{
	const loop_node *t = f->tile[eqn];

	for (int i = 0; i < 2 && t != NULL; i++)
		if (t->factor[i]->kind == EX_READ &&
			t->factor[i]->tensor == tensor)
			return true;
	return false;
}

/* Do chunks walk a block of a variable that the updates of the scatter lack? */
static bool has_owners(const loop_kernel *k, int32_t eqn)
{
	const loop_eqn *e = &k->eqn[eqn];
	const loop_node *n = k->phase[0].root[0];

	return n->kind == LOOP_BLOCK && n->parallel && e->push &&
	       ((e->left | e->reduced) & BIT(n->var)) == 0;
}

/* Are rows and columns exchanged? Sums that warps hold are apart, too. */
static bool is_turned(const struct facts *f, int32_t eqn)
{
	return f->k->eqn[eqn].apart &&
	       (f->tile[eqn] == NULL || f->tile[eqn]->held == 0);
}

/* Was done what the pass says, as far as the trees show? */
static bool is_done(const struct facts *f, const loop_decision *d)
{
	const loop_kernel *k = f->k;

	switch (decide_pass_of(d->kind)) {
	case DECIDE_PASS_TILE:
		return (f->tiled & BIT(d->of)) != 0;
	case DECIDE_PASS_CUT:
		return has_change(k, LOOP_CHANGE_CUT, d->of, -1);
	case DECIDE_PASS_TURN:
		return is_turned(f, d->of);
	case DECIDE_PASS_COPY:
		if (d->with < 0 || is_turned(f, d->of))
			return is_taken[d->kind];
		if (d->kind == DECIDE_COPY_IN_PLACE)
			return !reads_in_place(f, d->of, d->with);
		return copies(k, d->with, d->kind == DECIDE_COPY_WHOLE);
	case DECIDE_PASS_RESIDUES:
		return has_change(k, LOOP_CHANGE_SPLIT, -1, d->of);
	case DECIDE_PASS_JOIN:
		return has_change(k, LOOP_CHANGE_JOIN, -1, d->of);
	case DECIDE_PASS_PARTS:
		return (f->parts & BIT(d->of)) != 0;
	case DECIDE_PASS_LANES:
		/* another nest of the same statement may have them */
		return is_taken[d->kind] && d->with >= 0 &&
		       (f->lanes[d->with] & BIT(d->of)) != 0;
	case DECIDE_PASS_SQUARES:
		return stages(k,
			d->kind == DECIDE_SQUARES_SHARED ? f->kept : f->turned,
			d->of);
	case DECIDE_PASS_KEEP:
		return stages(k, f->kept, d->of);
	case DECIDE_PASS_OWNERS:
		return has_owners(k, d->of);
	case DECIDE_PASS_CHUNKS:
		return k->phase[d->of].n_chunks > 1;
	case DECIDE_PASS_MATRIX:
		return f->tile[d->of] != NULL && f->tile[d->of]->matrix;
	case DECIDE_PASS_DOT:
		return f->tile[d->of] != NULL && f->tile[d->of]->dot > 0;
	case DECIDE_PASS_WARPS:
		return k->phase[d->of].warps > 1;
	case DECIDE_PASS_HOLD:
		return f->tile[d->of] != NULL && f->tile[d->of]->held > 0;
	case DECIDE_PASS_STAGES:
		return (f->staged & BIT(d->of)) != 0;
	case DECIDE_PASS_WIDE:
		return (f->wide[d->with] & BIT(d->of)) != 0;
	case DECIDE_PASS_GUARDS:
		return (f->spans & BIT(d->of)) != 0;
	case DECIDE_PASS_STREAM:
		for (int32_t p = 0; p < k->n_outputs; p++)
			if (k->param[p] == d->of)
				return k->stream[p];
		return false;
	case DECIDE_PASS_ROWS:
	case DECIDE_PASS_APART:
	case DECIDE_PASS_INDICES: /* the kernel has it: `one` */
	case DECIDE_N_PASSES:
		break;
	}
	return is_taken[d->kind];
}

/* A sum of something times something. */
static bool is_product(const loop_eqn *e)
{
	const expr *b = e->body[0];

	while (b->kind == EX_CAST ||
		(b->kind == EX_SELECT && b->arg[2]->kind == EX_CONST))
		b = b->arg[b->kind == EX_SELECT];
	return e->e->monoid == IR_SUM && e->e->n_out == 1 && e->reduced != 0 &&
	       !e->part && b->kind == EX_CALL &&
	       !strcmp(ir_scalar_at(b->fn)->name, "mul");
}

static const loop_decision *find(
	const loop_kernel *k, decide_pass pass, int32_t of, int32_t with)
{
	for (int32_t i = 0; i < k->decision.n; i++) {
		const loop_decision *d = &k->decision.at[i];

		if (decide_pass_of(d->kind) == pass && d->of == of &&
			(with < 0 || d->with == with))
			return d;
	}
	return NULL;
}

static int32_t first_leaf(const loop_node *n)
{
	while (loop_is_loop(n))
		n = n->child[0];
	return n->eqn;
}

/* Each loop at the bottom that nobody walks in lanes has a reason. */
static void check_loops(loop_kernel *k, const loop_node *n, bool in_lanes)
{
	bool bottom = n->kind == LOOP_FOR;

	in_lanes |= n->lanes > 1;
	for (int32_t i = 0; i < n->n_child; i++) {
		bottom &= !loop_is_loop(n->child[i]) &&
			  n->child[i]->kind != LOOP_STAGE &&
			  n->child[i]->kind != LOOP_TILE &&
			  n->child[i]->kind != LOOP_DONE;
		check_loops(k, n->child[i], in_lanes);
	}
	if (!bottom || in_lanes)
		return;
	if (find(k, DECIDE_PASS_LANES, n->var, first_leaf(n)) == NULL)
		fail_msg("%s: no reason why %s of %s has no lanes", k->name,
			k->var[n->var].name,
			loop_label(&k->eqn[first_leaf(n)]));
}

static void check_kernel(loop_kernel *k)
{
	struct facts f = facts_of(k);

	for (int32_t i = 0; i < k->decision.n; i++) {
		const loop_decision *d = &k->decision.at[i];
		str s = str_new(k->a);

		if (is_done(&f, d) == is_taken[d->kind])
			continue;
		decide_subject(&s, k, d);
		str_add(&s, ": ");
		decide_sentence(&s, k, d);
		fail_msg("%s: %s: the trees say otherwise: %s", k->name,
			decide_name(d->kind), s.at);
	}
	for (int32_t i = 0; i < k->n_eqns; i++) {
		const loop_decision *d = find(k, DECIDE_PASS_TILE, i, -1);

		if (is_product(&k->eqn[i]) && d == NULL)
			fail_msg("%s: no decision about the product %s#%d",
				k->name, loop_label(&k->eqn[i]), i);
	}
	for (int32_t p = 0; p < k->n_phases; p++) {
		if (find(k, DECIDE_PASS_CHUNKS, p, -1) == NULL &&
			k->phase[p].n_chunks == 1 && p + 1 < k->n_phases)
			fail_msg("%s: no reason why phase %d is one chunk",
				k->name, p);
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			check_loops(k, k->phase[p].root[i], false);
	}
}

/* ---- programs ---- */

struct call {
	const struct row *row;
	const char *file; /* or of this file */
	bool found;
	char said[4000];
};

static const char *read_file(arena *a, const char *name)
{
	const char *root = getenv("TN_SOURCE_ROOT");
	char path[1000], part[4096];
	str s = str_new(a);
	FILE *f;
	size_t n;

	snprintf(path, sizeof path, "%s/tests/golden/%s",
		root != NULL ? root : ".", name);
	f = fopen(path, "r");
	assert_non_null(f);
	while ((n = fread(part, 1, sizeof part, f)) > 0)
		str_addn(&s, part, n);
	fclose(f);
	*(strstr(s.at, "\n# >>>") + 1) = '\0';
	return s.at;
}

/* The machine of that name, or c/avx512 with another limit. */
static const machine *machine_named(arena *a, const char *name)
{
	machine *m = arena_make(a, machine);

	*m = *machine_find(MACHINE);
	if (name == NULL)
		return m;
	if (!strcmp(name, "none"))
		m->unscheduled = true;
	else if (!strcmp(name, "tall tiles"))
		m->product.least_rows = 8;
	else if (!strcmp(name, "small kernels"))
		m->product.most_equations = 4;
	else if (!strcmp(name, "small blocks")) {
		*m = *machine_find("cuda/sm_90");
		m->block.shared_bytes = 1024;
	} else if (!strcmp(name, "tight blocks")) {
		*m = *machine_find("cuda/sm_90");
		m->block.shared_bytes = 20 << 10;
		m->block.sum_terms = 16;
	} else if (!strcmp(name, "slow barriers")) {
		*m = *machine_find("cuda/sm_90");
		m->block.meet_cycles = 1e5;
		m->block.shared_bytes = 40 << 10; /* so pieces are cut */
	} else if (!strcmp(name, "small caches"))
		m->memory[MACHINE_L2].bytes = 256;
	else
		return machine_find(name);
	return m;
}

static compilation *compiled(arena *a, const char *text, const char *name)
{
	const machine *m = machine_named(a, name);
	compile_options o;
	ir_program *p;

	o = compile_options_default(m);
	if (strncmp(text, "system {", 8) == 0)
		return compile_new_system(a,
			ir_system_parse(a, ix_new(a), text, strlen(text), "t"),
			&o);
	if (strchr(text, '\n') == NULL)
		text = read_file(a, text);
	p = ir_program_parse(a, text, strlen(text), "t", interp_loop);
	/* as if the program were run again and again */
	for (int32_t i = 0; i < p->input.n; i++)
		p->value.at[p->input.at[i]].steady =
			p->value.at[p->input.at[i]].is_param;
	return compile_new(a, p, &o);
}

/* What is decided when the kernel is there. */
static void check_indices(compilation *c, int32_t i)
{
	const loop_decision *d;

	compile_to(c, TN_LEVEL_KERN);
	d = loop_decided(c->loops[i], DECIDE_PASS_INDICES, -1);
	assert_true((d != NULL) == c->o.machine->narrow_indices);
	assert_true(c->kernels[i]->narrow == (d != NULL && is_taken[d->kind]));
	kern_verify(c->kernels[i]);
}

static void one(arena *a, void *arg)
{
	struct call *q = arg;
	const struct row *r = q->row;
	compilation *c = compiled(a, r != NULL ? r->program : q->file,
		r != NULL ? r->machine : NULL);
	str all = str_new(a);

	compile_to(c, TN_LEVEL_SCHEDULE);
	for (int32_t i = 0; i < c->groups->kernel.n; i++) {
		loop_kernel *k = c->loops[i];

		if (k == NULL)
			continue;
		check_kernel(k);
		if (c->o.machine->narrow_indices)
			check_indices(c, i);
		loop_text_decisions(&all, k);
		for (int32_t j = 0; j < k->decision.n && r != NULL; j++) {
			const loop_decision *d = &k->decision.at[j];

			q->found |= d->kind == (int32_t)r->kind &&
				    (r->a < 0 || d->a == r->a) &&
				    (r->b < 0 || d->b == r->b);
		}
	}
	snprintf(q->said, sizeof q->said, "%s", all.at);
}

static void each_kind(void **state)
{
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct call q = {.row = &rows[i]};
		tn_diag d = {0};

		if (unit_run(one, &q, 0, &d) != TN_OK) {
			print_error("%s: %s: %s\n%s", decide_name(rows[i].kind),
				d.rule, d.text, d.extra);
			bad++;
		} else if (!q.found) {
			print_error("%s: not said:\n%s",
				decide_name(rows[i].kind), q.said);
			bad++;
		}
	}
	assert_int_equal(bad, 0);
}

/* No kind without a program, but those that are named as such. */
static void all_kinds(void **state)
{
	int bad = 0;

	(void)state;
	for (int32_t k = 0; k < DECIDE_N_KINDS; k++) {
		int n = 0;

		for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
			n += rows[i].kind == (decide_kind)k;
		for (size_t i = 0; i < sizeof hard / sizeof *hard; i++)
			n += hard[i] == (decide_kind)k;
		if (n != 1)
			print_error("%s: %d programs\n", decide_name(k), n);
		bad += n != 1;
	}
	assert_int_equal(bad, 0);
}

/* What is said of the programs of the goldens holds, and nothing is left out. */
static void all_goldens(void **state)
{
	static const char *const folders[] = {"fusion", "inplace", "split"};
	int n = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		const char *root = getenv("TN_SOURCE_ROOT");
		char path[1000];
		struct dirent *e;
		DIR *d;

		snprintf(path, sizeof path, "%s/tests/golden/%s",
			root != NULL ? root : ".", folders[i]);
		d = opendir(path);
		assert_non_null(d);
		while ((e = readdir(d)) != NULL) {
			struct call q = {.file = path};
			tn_diag said = {0};

			if (strstr(e->d_name, ".tn") == NULL)
				continue;
			snprintf(path, sizeof path, "%s/%s", folders[i],
				e->d_name);
			n += unit_run(one, &q, 0, &said) == TN_OK;
		}
		closedir(d);
	}
	assert_true(n > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kinds),
		cmocka_unit_test(each_kind),
		cmocka_unit_test(all_goldens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
