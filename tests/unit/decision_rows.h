/*
 * decision_rows.h: for test_decisions.c: a small program for each kind of decision.
 */
#ifndef DECISION_ROWS_H
#define DECISION_ROWS_H

#include "schedule/decision.h"

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
	{DECIDE_TILE_ALONG, 2, 4, "op p(x[i, s], y[j, s]) -> o { o[i, j] += x[i, s] * y[j, s] }\n"
		"program { x: f32[2,1024]  y: f32[1024,1024]\n"
		" o = p(x, y)\n return o }", NULL},
	{DECIDE_TILE_PHASES, 9, 8, "program { h0: f32[1,64]  w: f32[8,64,64]\n"
		" l = loop(h0, w, rounds=9) {\n"
		" carried h: f32[1,64]\n v: f32[8,64,64]\n"
		" v0 = select(v, axis=0, index=0)\n v1 = select(v, axis=0, index=1)\n"
		" v2 = select(v, axis=0, index=2)\n v3 = select(v, axis=0, index=3)\n"
		" v4 = select(v, axis=0, index=4)\n v5 = select(v, axis=0, index=5)\n"
		" v6 = select(v, axis=0, index=6)\n v7 = select(v, axis=0, index=7)\n"
		" x0 = matmul(h, v0)\n x1 = matmul(h, v1)\n"
		" x2 = matmul(h, v2)\n x3 = matmul(h, v3)\n"
		" x4 = matmul(h, v4)\n x5 = matmul(h, v5)\n"
		" x6 = matmul(h, v6)\n x7 = matmul(h, v7)\n"
		" y0 = add(x0, x1)\n y1 = add(x2, x3)\n y2 = add(x4, x5)\n"
		" y3 = add(x6, x7)\n z0 = add(y0, y1)\n z1 = add(y2, y3)\n"
		" z = add(z0, z1)\n return z }\n return l }", NULL},
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
	{DECIDE_CUT_TILED, -1, 0, "program { x: bf16[64,4096]  y: bf16[4096,64]\n"
		" o = matmul(x, y)\n return o }", "c/avx512-amx"},
	{DECIDE_CUT_INSIDE, -1, -1, "program { x: f32[64,64]  y: f32[64,64]\n"
		" a = matmul(x, y)\n e = exp(a)\n o = matmul(e, y)\n return o }",
		NULL},
	{DECIDE_CUT_COST, -1, -1, "program { x: f32[2048,64]  y: f32[64,2048]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_OWN_TAKEN, 16, 64, "program { q: bf16[2,256,64]  k: bf16[2,256,64]\n"
		" v: bf16[2,256,64]\n o = attention(q, k, v, scale=0.125)\n return o }",
		"cuda/sm_90"},
	{DECIDE_OWN_SHAPE, -1, -1, "program { q: f32[4,12,8]  k: f32[4,32,8]\n"
		" v: f32[4,32,8]\n o = attention(q, k, v, scale=0.125)\n return o }",
		"cuda/sm_90"},
	{DECIDE_HALVE_TAKEN, 3, -1, "program { x: f32[50,192]  y: f32[192,768]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_HALVE_COST, 1, 2112, "program { x: f32[4,16]  y: f32[16,32]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_TURN_TAKEN, 100, 76, "program { x: f32[1,64,7,7]\n"
		" param w: f32[64,64,1,1]\n o = conv(x, w)\n return o }", NULL},
	{DECIDE_TURN_SLIDE, 28, 64, "program { x: f32[1,64,28,28]\n"
		" param w: f32[64,64,3,3]\n"
		" o = conv(x, w, lo=[1,1], hi=[1,1])\n return o }", NULL},
	{DECIDE_DIVIDE_ROWS, 51840, 1863, "program { x: f32[1,64,14,14]\n"
		" w: f32[384,64,1,1]\n o = conv(x, w)\n return o }", NULL},
	{DECIDE_DIVIDE_COLUMNS, 8640, 11182, "program { x: f32[1,384,14,14]\n"
		" w: f32[64,384,1,1]\n o = conv(x, w)\n return o }", NULL},
	{DECIDE_TURN_FEW, 16, 32, "program { x: f32[16,1040]\n"
		" w: f32[1000,1040]\n"
		" o = linear_nobias(x, w)\n return o }", NULL},
	{DECIDE_TURN_FILLED, 62, 76, "program { x: f32[1,64,7,7]\n"
		" param w: f32[20,64,3,3]\n"
		" o = conv(x, w, lo=[1,1], hi=[1,1])\n return o }", NULL},
	{DECIDE_TURN_SHAPE, -1, -1, "system {\n x: f32[64,49] input 0\n"
		" w: f32[64,64] input 1\n b: f32[64] input 2\n o: f32[64,49]\n"
		" a o#0: o[f:64, z:49] += w[64*f + k] * x[49*k + z] * b[f] "
		"for k:64\n return o\n}\n", NULL},
	{DECIDE_TURN_WARPS, -1, -1, "program { x: f32[1,64,7,7]\n"
		" param w: f32[64,64,1,1]\n o = conv(x, w)\n return o }",
		"cuda/sm_80"},
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
	{DECIDE_RESIDUES_LANES, 2, -1, "system {\n x: f32[4,32] input 0\n"
		" o: f32[4,64]\n a o#0: o[n:4, j:64] += sel(inside(j + "
		"2*k - 2*((j + 1)/2) + 1, 0, 3) and inside((j + 1)/2 - k, 0, 32), "
		"x[32*n + (j + 1)/2 - k], 0) for k:2\n return o\n}\n", NULL},
	{DECIDE_JOIN_TAKEN, 196, -1, "program { x: f32[1,64,14,14]\n"
		" w: f32[64,64,3,3]\n"
		" o = conv(x, w, lo=[1,1], hi=[1,1])\n return o }", NULL},
	{DECIDE_JOIN_COST, -1, -1, "op g(x[n,c,i,j], d[n,f,y,z]) -> o {\n"
		" o[f,c,k,l] += (d[n,f,y,z] * x[n,c,y+k-1,z+l-1] else 0) for k < 3, l < 3 }\n"
		"program { x: f32[2,64,56,56]  d: f32[2,64,56,56]\n"
		" o = g(x, d)\n return o }", NULL},
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
	{DECIDE_SQUARES_TILES, -1, -1, "program { x: f32[576,256]\n"
		" w: f32[256,256]  r: f32[256,576]\n m = matmul(x, w)\n"
		" t = transpose(r, perm=[1,0])\n o = add(m, t)\n return o }",
		"cuda/sm_90"},
	{DECIDE_SQUARES_SUMS, 16, -1, "program { x: f32[1,64,112,112]\n"
		" param w: f32[128,64,3,3]  b: f32[1,128,1,1]\n"
		" y = conv(x, w, lo=[1,1], hi=[1,1])\n o = add(y, b)\n return o }", NULL},
	{DECIDE_SQUARES_FEW, 28, 64, "program { x: f32[4,256,56,56]\n"
		" param w: f32[512,256,1,1]  b: f32[1,512,1,1]\n"
		" y = conv(x, w, stride=[2,2])\n o = add(y, b)\n return o }", NULL},
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
	{DECIDE_KEEP_LATE, -1, -1, "program { a: f32[3,25,24]  b: f32[3,25,24]\n"
		" m: bool[3,25,24]  t: f32[3]\n r = linear_recurrence(a, b)\n"
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
	{DECIDE_CLIPS_TAKEN, 2, 3, "program { x: f32[1,8,17,17]  w: f32[8,1,3,3]\n"
		" o = conv(x, w, groups=8, lo=[1,1], hi=[1,1])\n return o }", NULL},
	{DECIDE_CLIPS_ONE, 1, 3, "program { x: f32[1,8,58,58]  w: f32[8,1,3,3]\n"
		" o = conv(x, w, groups=8, stride=[2,2], lo=[1,1], hi=[1,1])\n"
		" return o }", NULL},
	{DECIDE_CLIPS_LANES, 2, 3, "program { x: f32[1,8,14,14]  w: f32[8,1,3,3]\n"
		" o = conv(x, w, groups=8, lo=[0,1], hi=[0,1])\n return o }", NULL},
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
	{DECIDE_DOT_SHAPE, -1, -1, "op p(x[c, a, d], y[a, d, b]) -> o {\n"
		" o[c, b] += x[c, a, d] * y[a, d, b] where a <= c else cast(0, x) }\n"
		"program { x: bf16[64,64,16]  y: bf16[64,16,64]\n"
		" o = p(x, y)\n return o }", "c/avx512-bf16"},
	{DECIDE_TILES_TAKEN, 32, 32, "program { x: bf16[64,64]  y: bf16[64,64]\n"
		" o = matmul(x, y)\n return o }", "c/avx512-amx"},
	{DECIDE_TILES_DTYPE, -1, -1,
		"op p(x[c, a], y[a, b]) -> o { o[c, b] += cast(x[c, a], i32) * cast(y[a, b], i32) }\n"
		"program { x: i16[64,64]  y: i16[64,64]\n"
		" o = p(x, y)\n return o }", "c/avx512-amx"},
	{DECIDE_TILES_CYCLES, -1, -1, "program { x: bf16[64,8]  y: bf16[8,64]\n"
		" o = matmul(x, y)\n return o }", "c/avx512-amx"},
	{DECIDE_MATRIX_TAKEN, 16, 16, "program { x: bf16[64,64]  y: bf16[64,64]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_80"},
	{DECIDE_MATRIX_DTYPE, -1, -1, "program { x: f32[64,64]  y: f32[64,64]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_80"},
	{DECIDE_MATRIX_SHAPE, -1, -1, "program { x: bf16[32,65536]\n"
		" y: bf16[65536,32]\n o = matmul(x, y)\n return o }", "cuda/sm_80"},
	{DECIDE_MATRIX_ROWS, -1, -1,
		"op p(x[a, k], y[b, k]) -> o { o[a, b] += cast(x[a, k], f32) * cast(y[b, k], f32) }\n"
		"program { x: f16[140000,390]  y: f16[31,390]  z: f32[140000,31]\n"
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
	{DECIDE_WARPS_LOOPS, -1, -1, "fusion/31d_rows_in_blocks.tn",
		"kernels of a CPU"},
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
	{DECIDE_WARPS_FEW, 1, -1, "program { x: f32[4096,16,64]  y: f32[4096,64,64]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_HOLD_TAKEN, 16, 64, "program { x: f32[2048,256]  y: f32[256,2048]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_HOLD_WHOLE, -1, -1, "program { x: f32[64,64]  y: f32[64,64]\n"
		" o = matmul(x, y)\n return o }", NULL},
	{DECIDE_HOLD_OPS, 17, 8, "program { x: f32[64,64]  y: f32[64,64]\n"
		" o = matmul(x, y)\n r = sigmoid(o)\n return r }", NULL},
	{DECIDE_HOLD_READ, -1, -1, "program { x: f32[64,64]  y: f32[64,64]\n"
		" o = matmul(x, y)\n r = softmax(o, axis=1)\n return r }", NULL},
	{DECIDE_HOLD_TILES, -1, -1, "program { x: f32[1,64,14,14]\n"
		" w: f32[64,64,3,3]\n o = conv(x, w, lo=[1,1], hi=[1,1])\n"
		" return o }", "cuda/sm_90"},
	{DECIDE_HOLD_WARPS, -1, -1, "program { x: f32[4096,16,64]  y: f32[4096,64,64]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_STAGES_TAKEN, 32, -1, "program { x: f32[2048,256]  y: f32[256,2048]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_STAGES_COPIES, -1, -1, "program { x: f32[2048,256]  y: f32[256,2050]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_STAGES_FEW, 1, 2, "program { x: bf16[256,64]  y: bf16[64,256]\n"
		" o = matmul(x, y)\n return o }", "cuda/sm_90"},
	{DECIDE_STAGES_LARGE, -1, 20 << 10, "program { x: f32[2048,256]\n"
		" y: f32[256,2048]\n o = matmul(x, y)\n return o }",
		"tight blocks"},
	{DECIDE_STAGES_COST, -1, -1, "program { x: bf16[1280,256]\n"
		" y: bf16[256,1280]\n o = matmul(x, y)\n return o }",
		"slow barriers"},
	{DECIDE_WARPGROUP_TAKEN, 4, -1, "program { q: bf16[8,1024,64]\n"
		" k: bf16[8,1024,64]\n v: bf16[8,1024,64]\n"
		" o = attention(q, k, v, scale=0.125)\n return o }",
		"cuda/sm_90a"},
	{DECIDE_WARPGROUP_MEMORY, 4, -1, "program { x: bf16[4096,256]\n"
		" y: bf16[256,4096]\n o = matmul(x, y)\n return o }",
		"cuda/sm_90a"},
	{DECIDE_WARPGROUP_SHAPE, -1, -1, "program { x: bf16[4096,256]\n"
		" y: bf16[256,4104]\n o = matmul(x, y)\n return o }",
		"cuda/sm_90a"},
	{DECIDE_WARPGROUP_COST, -1, -1, "program { x: bf16[4096,256]\n"
		" y: bf16[256,4096]\n o = matmul(x, y)\n return o }",
		"slow warpgroups"},
	{DECIDE_BULK_TAKEN, -1, -1, "program { x: bf16[4096,256]\n"
		" y: bf16[256,4096]\n o = matmul(x, y)\n return o }",
		"cuda/sm_90a"},
	{DECIDE_BULK_SHAPE, -1, -1, "program { x: bf16[4096,256]\n"
		" y: bf16[256,4096]\n o = matmul(x, y)\n return o }",
		"slow warpgroups"},
	{DECIDE_BULK_COST, -1, -1, "program { x: bf16[4096,256]\n"
		" y: bf16[256,4096]\n o = matmul(x, y)\n return o }",
		"slow bulk"},
	{DECIDE_PIXELS_TAKEN, 28, -1, "program { x: f32[1,256,14,14]\n"
		" param w: f32[256,256,3,3]\n"
		" o = conv(x, w, lo=[1,1], hi=[1,1])\n return o }", NULL},
	{DECIDE_PIXELS_NEAR, 4 * 128 * 49, -1, "program { x: f32[1,128,7,7]\n"
		" param w: f32[256,128,1,1]\n o = conv(x, w)\n return o }", NULL},
	{DECIDE_RESULTS_TAKEN, 8, -1, "program { x: f32[1,3,225,225]  w: f32[64,3,3,3]\n"
		" b: f32[1,64,1,1]\n y = conv(x, w, stride=[2,2])\n"
		" o = add(y, b)\n return o }", NULL},
	{DECIDE_RESULTS_NEAR, 4 * 8 * 256, -1, "program { x: f32[1,3,33,33]  w: f32[8,3,3,3]\n"
		" b: f32[1,8,1,1]\n y = conv(x, w, stride=[2,2])\n"
		" o = add(y, b)\n return o }", NULL},
	{DECIDE_RESULTS_TERMS, 144, 128, "program { x: f32[1,144,56,56]  w: f32[64,144,1,1]\n"
		" b: f32[1,64,1,1]\n y = conv(x, w)\n"
		" o = add(y, b)\n return o }", NULL},
	{DECIDE_RESULTS_FEW, 2, 3, "program { x: f32[1,2,224,224]  w: f32[64,2,2,2]\n"
		" b: f32[1,64,1,1]\n y = conv(x, w)\n"
		" o = add(y, b)\n return o }", NULL},
	{DECIDE_RESULTS_ROW, 4, -1, "program { x: f32[1,3,224,224]  w: f32[64,3,7,7]\n"
		" b: f32[1,64,1,1]\n y = conv(x, w, stride=[2,2], lo=[3,3], hi=[3,3])\n"
		" o = add(y, b)\n return o }", NULL},
	{DECIDE_RESULTS_FORESEEN, 112, -1, "program { x: f32[1,128,112,112]\n"
		" param w: f32[128,128,3,3]  b: f32[1,128,1,1]\n"
		" y = conv(x, w, lo=[1,1], hi=[1,1])\n o = add(y, b)\n return o }", NULL},
	{DECIDE_RESULTS_SHORT, 112, 256, "program { x: f32[4,256,56,56]\n"
		" param w: f32[512,256,1,1]  b: f32[1,512,1,1]\n"
		" y = conv(x, w, stride=[2,2])\n o = add(y, b)\n return o }", NULL},
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
	{DECIDE_ABREAST_TAKEN, 8, -1, "program { x: f32[4096,300]\n"
		" o = reduce_sum(x, axes=[1])\n return o }", NULL},
	{DECIDE_ABREAST_WINDOW, 7, -1, "program { x: f32[1,8,28,28]  w: f32[8,1,3,3]\n"
		" o = conv(x, w, groups=8, lo=[1,1], hi=[1,1])\n return o }", NULL},
	{DECIDE_ABREAST_SHARE, 2, -1, "program { x: f32[1,8,68,68]  w: f32[8,1,3,3]\n"
		" o = conv(x, w, groups=8, stride=[2,2], lo=[1,1], hi=[1,1])\n"
		" return o }", NULL},
	{DECIDE_ABREAST_NEAR, 25600, 32768, "program { x: f32[64,100]\n"
		" o = reduce_sum(x, axes=[1])\n return o }", NULL},
	{DECIDE_ABREAST_SHORT, 20, -1, "program { x: f32[65536,20]\n"
		" o = reduce_sum(x, axes=[1])\n return o }", NULL},
	{DECIDE_ABREAST_OPS, -1, 8, "program { x: f32[4096,300]\n"
		" e = exp(x)\n o = reduce_sum(e, axes=[1])\n return o }", NULL},
	{DECIDE_ABREAST_WHOLE, 3, -1, "program { x: f32[3,10000]\n"
		" o = reduce_sum(x, axes=[1])\n return o }", NULL},
	{DECIDE_ABREAST_FAR, 1200, 4096, "program { x: f32[65536,300]\n"
		" o = reduce_sum(x, axes=[1])\n return o }", NULL},
	{DECIDE_ABREAST_FEW, 5, 8, "program { x: f32[4096,300]\n"
		" y = mul(x, x)\n a = reduce_sum(x, axes=[1])\n"
		" b = reduce_max(x, axes=[1])\n c = reduce_min(x, axes=[1])\n"
		" d = reduce_sum(y, axes=[1])\n e = reduce_prod(x, axes=[1])\n"
		" return a, b, c, d, e }", NULL},
	{DECIDE_INDICES_TAKEN, -1, INT32_MAX, "program { x: f32[1000,1000]\n"
		" o = exp(x)\n return o }", "cuda/sm_90"},
	{DECIDE_INDICES_LARGE, -1, INT32_MAX, "program { x: f32[50000,50000]\n"
		" o = exp(x)\n return o }", "cuda/sm_90"},
	{DECIDE_STREAM_READ, -1, -1, "program { x: f32[16777216]\n"
		" o = exp(x)\n s = reduce_sum(o, axes=[0])\n return o, s }", NULL},
};

/* Kinds that need a kernel which no small program here leads to. */
static const decide_kind hard[] = {DECIDE_TILE_SELF, DECIDE_TILE_OUTER,
	DECIDE_CUT_LOOPS, DECIDE_INDICES_DATA};

#endif
