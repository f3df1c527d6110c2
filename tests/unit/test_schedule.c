/*
 * What schedules decide, seen in the C: a system, what its text must have and
 * what it must not. That the results are right is for test_kernels and the
 * property test; here it is seen that a decision is taken at all.
 */
#include "unit.h"
#include "system_parse.h"

#include "fuse/fuse.h"
#include "schedule/schedule.h"
#include "target/c/c.h"

struct seen {
	const char *name, *system;
	const char *has[4], *has_not[4];
};

#define ROW "x: f32[4096,4096] input 0\n m: f32[4096]\n e: f32[4096,4096]\n "
static const struct seen seen[] = {
	/* the pass that computes most asks for the next row */
	{"rows ahead",
		"system {\n " ROW "s: f32[4096]\n"
		" a m#0: m[i:4096] max= x[4096*i + j] for j:4096\n"
		" a e#0: e[i:4096, j:4096] = exp(x[4096*i + j] - m[i])\n"
		" a s#0: s[i:4096] += e[4096*i + j] for j:4096\n"
		" return s\n}\n",
		{"__builtin_prefetch(&p1[x + 4096 * x + 4096], 0, 2);\n"
		 "\t\t\t\t\t/* a */\n"
		 "\t\t\t\t\tconst f32x16 v = load_f32x16(&p1[x + 4096 * x]);\n"
		 "\t\t\t\t\tconst f32x16 v = splat_f32x16(r);\n"},
		{"], 0, 2);\n\t\t\t\t\t/* a */\n"
		 "\t\t\t\t\tconst f32x16 v = load_f32x16(&p1[x + 4096 * x]);\n"
		 "\t\t\t\t\tr = max_f32x16(",
			"+ 512], 0, 3"}},
	/* a long computation asks for what it reads soon; a short one does not */
	{"streams ahead",
		"system {\n x: f32[8388608] input 0\n o: f32[8388608]\n"
		" a o#0: o[i:8388608] = exp(exp(x[i]))\n return o\n}\n",
		{"__builtin_prefetch(&p1[x + 512], 0, 3);", "stream_f32x16("},
		{NULL}},
	{"short streams",
		"system {\n x: f32[8388608] input 0\n o: f32[8388608]\n"
		" a o#0: o[i:8388608] = x[i] + 1\n return o\n}\n",
		{"stream_f32x16("}, {"prefetch"}},
	/* the tile below this one */
	{"tiles ahead",
		"system {\n x: f32[2048,2048] input 0\n o: f32[2048,2048]\n"
		" a o#0: o[i:2048, j:2048] = x[2048*j + i] + 1\n"
		" return o\n}\n",
		{"__builtin_prefetch(&p1[2048 * x + x + 2048 * x + 262144], "
		 "0, 2);"},
		{NULL}},
	/* indices in 32 bits; none is compared with one before it */
	{"argmax",
		"system {\n x: f32[64,512] input 0\n v: f32[64]\n"
		" o: i64[64]\n a o#0: (v, o)[i:64] argmax= (x[512*i + j],"
		" index(j)) for j:512\n return o\n}\n",
		{"i32x16 r", "lt_i32x16(r, v"}, {"i64x16", "i64x8"}},
	/* rows are read before columns would be copied: so they are not */
	{"rows, then columns",
		"system {\n x: f32[16,128,128] input 0\n"
		" g: f32[16,128,8] input 1\n r: f32[16,128]\n"
		" v: f32[16,128,8]\n w: f32[16,128]\n"
		" s: f32[16,128,128]\n k: f32[16,128,8]\n"
		" a r#0: r[i:16, t:128] += x[16384*i + 128*t + u] for u:128\n"
		" a v#0: v[i:16, u:128, e:8] += abs(g[1024*i + 8*t + e] * "
		"exp(x[16384*i + 128*t + u] - r[128*i + t])) for t:128\n"
		" a w#0: w[i:16, u:128] += v[1024*i + 8*u + e] for e:8\n"
		" a s#0: s[i:16, t:128, u:128] = exp(x[16384*i + 128*t + u] - "
		"w[128*i + u])\n"
		" a k#0: k[i:16, u:128, e:8] += abs(s[16384*i + 128*t + u] * "
		"g[1024*i + 8*t + e]) for t:128\n return v, k\n}\n",
		{"/* a */"}, {"/* stage */"}},
	/* what is unrolled is known: constants are added up, guards decided */
	{"window",
		"system {\n x: f32[4098] input 0\n o: f32[4096]\n"
		" a o#0: o[i:4096] += x[i + k] for k:3\n return o\n}\n",
		{"load_f32x16(&p1[x]", "load_f32x16(&p1[x + 2])"},
		{"(0 + ", " + 0"}},
	/* .. overlapping vectors are put together, where there is room */
	{"overlap",
		"system {\n x: f32[4128] input 0\n o: f32[4096]\n"
		" a o#0: o[i:4096] += x[i + k + 7] for k:3\n return o\n}\n",
		{"__builtin_shufflevector(r, r, 9, 10,", "r = r;",
			"r = load_f32x16(&p1[x + 16]);"},
		{"&p1[x + 32]", "clamp"}},
	{"a row before the first one",
		"system {\n x: f32[4101,64] input 0\n o: f32[4099,64]\n"
		" a o#0: o[i:4099, j:64] += sel(inside(i + k - 1, 0, 4101),"
		" x[64*i + 64*k + j - 64], 0) for k:3\n return o\n}\n",
		{">= 0);"}, {" < 4101", ">= 0) &"}},
	{"rows before and behind",
		"system {\n x: f32[4099,64] input 0\n o: f32[4099,64]\n"
		" a o#0: o[i:4099, j:64] += sel(inside(i + k - 1, 0, 4099),"
		" x[64*i + 64*k + j - 64], 0) for k:3\n return o\n}\n",
		{"later_i64(0, -x + 1);", "sooner_i64(3, -x + 4100);"}, {">= 0)"}},
	/* 29 rows: 10 and 9; 50 columns: 32 and 18, of which 2 in a part */
	{"tiles of a product",
		"system {\n x: f32[29,70] input 0\n y: f32[70,50] input 1\n"
		" o: f32[29,50]\n a o#0: o[i:29, j:50] += x[70*i + k] * "
		"y[50*k + j] for k:70\n return o\n}\n",
		{"== 10)", "== 9)", "== 18)", ", r, 2);"},
		{"for (i64 x = 0; x < 2; x += 1)"}},
	/* 27 rows: 9 each time, with one text */
	{"tiles of one height",
		"system {\n x: f32[27,70] input 0\n y: f32[70,32] input 1\n"
		" o: f32[27,32]\n a o#0: o[i:27, j:32] += x[70*i + k] * "
		"y[32*k + j] for k:70\n return o\n}\n",
		{"x += 9)"}, {" == "}},
	/* what computes a tile term by term, which is done rarely, is a function */
	{"a function of its own",
		"system {\n x: f32[1,96,20] input 0\n w: f32[32,96,3] input 1\n"
		" y: f32[1,32,20]\n conv a#0: y[f:32, z:20] += "
		"sel(inside(z - k + 1, 0, 20), x[z + 20*c - k + 1] * "
		"w[288*f + 3*c + k], 0) for c:96, k:3\n return y\n}\n",
		{"rarely_", "(err, "}, {NULL}},
	/* a panel that takes little of the second cache is read with all terms */
	{"a panel of all terms",
		"system {\n x: f32[128,700] input 0\n y: f32[700,196] input 1\n"
		" s: f32[128,196]\n o: f32[128,196]\n"
		" a s#0: s[i:128, j:196] += x[700*i + k] * y[196*k + j] for k:700\n"
		" a o#1: o[i:128, j:196] = max(s[196*i + j], 0)\n return o\n}\n",
		{"for (i64 x = 0; x < 700; x += 1)"}, {"x += 350", "== 0)"}},
	/* few rows and columns, a long sum: pieces of it, and what joins them */
	{"sum in pieces",
		"system {\n x: f32[32768,32] input 0\n y: f32[32768,48] input 1\n"
		" s: f32[32,48]\n o: f32[32,48]\n"
		" a s#0: s[i:32, j:48] += x[32*k + i] * y[48*k + j] for k:32768\n"
		" a o#1: o[i:32, j:48] = max(s[48*i + j], 0)\n"
		" return o\n}\n",
		{"x = 2048 * chunk; x < 2048 * chunk + 2048;", "/* part */",
			"x < 16; x += 1", "((x - 2048 * chunk) == 0)"},
		{NULL}},
	/* .. rows and columns enough: the sum stays whole */
	{"whole sum",
		"system {\n x: f32[4096,256] input 0\n y: f32[4096,1024] input 1\n"
		" o: f32[256,1024]\n"
		" a o#0: o[i:256, j:1024] += x[256*k + i] * y[1024*k + j] for "
		"k:4096\n return o\n}\n",
		{"mad_f32x16("}, {"/* part */"}},
	/* lanes walk what lies two apart, not what is read one by one */
	{"pooling in front of a product",
		"system {\n x: f32[64,111,111] input 0\n w: f32[16,64] input 1\n"
		" p: f32[64,55,55]\n o: f32[16,55,55]\n"
		" a p#0: p[c:64, y:55, x:55] max= x[12321*c + 222*y + 2*x + "
		"111*u + v] for u:3, v:3\n"
		" a o#1: o[f:16, y:55, x:55] += w[64*f + k] * "
		"p[3025*k + 55*y + x] for k:64\n return o\n}\n",
		{"__builtin_shufflevector(v, v, 0, 2, 4,", "mad_f32x16("},
		{"] = p1["}},
	/* a window inside a longer loop is a sum in registers; one block has
	 * ends that are known, and the last 12 are a part of a vector */
	{"windows of all channels",
		"system {\n x: f32[192,30,30] input 0\n z: f32[30,30] input 1\n"
		" q: f32[28,28]\n s: f32[192,28,28]\n o: f32[192,28,28]\n"
		" a q#0: q[y:28, x:28] += z[30*y + x + 30*u + v] for u:3, v:3\n"
		" a s#1: s[c:192, y:28, x:28] += x[900*c + 30*y + x + 30*u + v]"
		" for u:3, v:3\n"
		" a o#1: o[c:192, y:28, x:28] = s[784*c + 28*y + x] / "
		"q[28*y + x]\n return o\n}\n",
		{"f32x16 r", "x < 16; x += 16", "store_part_f32x16("},
		{"clamp"}},
	/* two products on one row: 40 rows as one block, tiles of both, and the
	 * softmax between them as plain loops over the block */
	{"products of a block",
		"system {\n q: f32[512,32] input 0\n y: f32[32,64] input 1\n"
		" v: f32[64,32] input 2\n s: f32[512,64]\n m: f32[512]\n"
		" e: f32[512,64]\n o: f32[512,32]\n"
		" a s#0: s[i:512, j:64] += q[32*i + k] * y[64*k + j] for k:32\n"
		" a m#1: m[i:512] max= s[64*i + j] for j:64\n"
		" a e#2: e[i:512, j:64] = exp(s[64*i + j] - m[i])\n"
		" a o#3: o[i:512, d:32] += e[64*i + j] * v[32*j + d] for j:64\n"
		" return o\n}\n",
		{"x = 64 * chunk; x < 64 * chunk + 64;",
			"r = mad_f32x16(v, v, r);", "max_f32x16("},
		{NULL}},
	/* rows 4 KB apart, which all chunks of columns need: copied once */
	{"a factor copied once",
		"system {\n x: f32[256,1024] input 0\n y: f32[1024,512] input 1\n"
		" o: f32[256,512]\n a o#0: o[i:256, j:512] += x[1024*i + k] * "
		"y[512*k + j] for k:1024\n return o\n}\n",
		{"(void *)((char *)p[3] + 0);", "q0[x + 1040 * x]", "_1(void"},
		{NULL}},
	/* pixels of two axes as one: digits of the lanes in front of the sum,
	 * the mask in front of the channels */
	{"masks in front",
		"system {\n x: f32[16,14,14] input 0\n w: f32[32,16,3] input 1\n"
		" o: f32[32,14,14]\n a o#0: o[f:32, y:14, z:14] += "
		"sel(inside(z + k - 1, 0, 14), w[48*f + 3*c + k] * "
		"x[196*c + 14*y + z + k - 1], 0) for c:16, k:3\n return o\n}\n",
		{"v_0 = splat_i32x16((i32)((x) % 14))",
			"& splat_i32x16(14));\n\t\t\t\tfor (i64 x = 0; x < 3;",
			"\t\t\t\t\tconst i32x16 v = (v & v);\n"
			"\t\t\t\t\tfor (i64 x = 0; x < 16;"},
		{NULL}},
	/* what jumps least is not all: four lanes do a quarter of the work */
	{"wide lanes",
		"system {\n x: f32[16,64] input 0\n o: f32[32,4,2]\n"
		" a o#0: o[i:32, j:4, q:2] = x[200*j + 64*q + 2*i]\n"
		" return o\n}\n",
		{"x < 32; x += 16", "__builtin_shufflevector("}, {"f32x4"}},
	/* tiles run along the pixels: so one image at a time may stay near */
	{"an image of four",
		"system {\n x: f32[4,4,34,784] input 0\n"
		" w: f32[4,34,34] input 1\n v: f32[4,34,34] input 2\n"
		" a: f32[4,4,34,784]\n b: f32[4,4,34,784]\n"
		" o: f32[4,4,34,784]\n"
		" a o#0: a[n:4, g:4, c:34, p:784] += x[106624*n + 26656*g + "
		"784*d + p] * w[1156*g + 34*c + d] for d:34\n"
		" a o#1: b[n:4, g:4, c:34, p:784] = relu(a[106624*n + 26656*g +"
		" 784*c + p])\n"
		" a o#2: o[n:4, g:4, c:34, p:784] += b[106624*n + 26656*g + "
		"784*d + p] * v[1156*g + 34*c + d] for d:34\n"
		" return o\n}\n",
		{"v = v % 2;"}, {NULL}},
	/* inside, a window over channels in another order reads rows */
	{"a window through a reshape",
		"system {\n x: f32[4,136,28,28] input 0\n"
		" w: f32[136,3,3] input 1\n a: f32[4,136,28,28]\n"
		" o: f32[4,136,28,28]\n"
		" a a#0: a[n:4, c:136, y:28, z:28] = "
		"relu(x[106624*n + 784*c + 28*y + z])\n"
		" a o#0: o[n:4, g:136, y:28, z:28] += sel(inside(y + k - 1, 0, 28)"
		" and inside(z + l - 1, 0, 28), a[106624*n + 26656*(g%4) + "
		"784*(g/4) + 28*y + z + 28*k + l - 29] * w[9*g + 3*k + l], 0) "
		"for k:3, l:3\n"
		" return o\n}\n",
		{"load_f32x16(&b"}, {"/ 106624", "/ 784", "/ 28"}},
	/* 28 = 16 + 8 + 4: an idle lane may not divide */
	{"shorter vectors",
		"system {\n x: i32[64,60] input 0\n o: i32[64,28]\n"
		" a o#0: o[i:64, j:28] max= 7 / x[60*i + 2*j + k] for k:3\n"
		" return o\n}\n",
		{"x < 16; x += 16", "x < 24; x += 8", "x < 28; x += 4"},
		{"x < 28; x += 1", "_part_"}},
	/* 28 = 16 + 12 of 16 */
	{"a part of a vector",
		"system {\n x: f32[64,60] input 0\n o: f32[64,28]\n"
		" a o#0: o[i:64, j:28] max= x[60*i + 2*j + k] for k:3\n"
		" return o\n}\n",
		{"x < 16; x += 16", "store_part_f32x16(", ", 12);", "load_part_f32x16("},
		{"x < 28; x += 1", "x += 8"}},
	/* rows of 14 pixels: one vector, its window by masks */
	{"a row that is less than a vector",
		"system {\n x: f32[384,14,14] input 0\n w: f32[384,3,3] input 1\n"
		" o: f32[384,14,14]\n"
		" a o#0: o[c:384, y:14, z:14] += sel(inside(y + k - 1, 0, 14) "
		"and inside(z + l - 1, 0, 14), x[196*c + 14*y + z + 14*k + l - 15]"
		" * w[9*c + 3*k + l], 0) for k:3, l:3\n"
		" return o\n}\n",
		{"load_mask_f32x16(", "store_part_f32x16(", ", 14);"},
		{"] = r;", "f32x8"}},
	/* two windows under their channels: lanes are pixels, not channels */
	{"windows side by side",
		"system {\n x: f32[480,28,29] input 0\n p: f32[480,14,14]\n"
		" q: f32[480,14,14]\n"
		" a p#0: p[c:480, y:14, z:14] max= sel(inside(2*y + k, 0, 28), "
		"x[812*c + 58*y + 2*z + 29*k + l], -1) for k:3, l:3\n"
		" a q#0: q[c:480, y:14, z:14] max= sel(inside(y + k - 1, 0, 14) "
		"and inside(z + l - 1, 0, 14), p[196*c + 14*y + z + 14*k + l - 15]"
		", -1) for k:3, l:3\n"
		" return p, q\n}\n",
		{"max_f32x16("}, {"max_f32("}},
	/* a factor that walks neither rows nor columns alone is no matrix */
	{"no product of matrices",
		"system {\n x: f32[64,64] input 0\n y: f32[64,64] input 1\n"
		" o: f32[64,64]\n a o#0: o[i:64, j:64] += x[64*i + j] * "
		"y[64*k + j] for k:64\n return o\n}\n",
		{NULL}, {"mad_f32x16("}},
	/* more than 8 MB, but all of it stays in the last cache */
	{"no streams",
		"system {\n x: f32[3145728] input 0\n o: f32[3145728]\n"
		" a o#0: o[i:3145728] = x[i] + 1\n return o\n}\n",
		{"store_f32x16("}, {"stream_f32x16("}},
};

/* The text without the numbers of values (v), registers (r), variables (x). */
static void no_numbers(char *text)
{
	char *to = text, before = ' ';

	for (const char *p = text; *p != '\0'; p++) {
		bool starts = (before < 'a' || before > 'z') &&
			      (before < '0' || before > '9') && before != '_';

		*to++ = before = *p;
		if (!starts || (*p != 'v' && *p != 'r' && *p != 'x'))
			continue;
		while (p[1] >= '0' && p[1] <= '9')
			p++;
	}
	*to = '\0';
}

static void one(arena *a, void *arg)
{
	const struct seen *c = arg;
	ir_system *s = ir_system_parse(
		a, ix_new(a), c->system, strlen(c->system), "t");
	fuse_options fo = {0};
	fuse_plan *p = fuse_partition(a, s, machine_at(0), &fo);
	const machine *m = machine_find("c/avx512");
	str text = str_new(a);

	for (int32_t i = 0; i < p->kernel.n; i++) {
		loop_kernel *k = loop_build(a, s, p->kernel.at[i], false);

		loop_schedule(k, m);
		loop_verify(k);
		loop_verify_schedule(k);
		str_add(&text, c_print(a, kern_lower(a, k))->c);
	}
	no_numbers(text.at);
	for (int i = 0; i < 4; i++) {
		if (c->has[i] != NULL && strstr(text.at, c->has[i]) == NULL)
			fail_msg("%s: no \"%s\" in\n%s", c->name, c->has[i],
				text.at);
		if (c->has_not[i] != NULL &&
			strstr(text.at, c->has_not[i]) != NULL)
			fail_msg("%s: \"%s\" in\n%s", c->name, c->has_not[i],
				text.at);
	}
}

static void test_seen(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
		struct seen c = seen[i];
		tn_diag d = {0};

		if (unit_run(one, &c, 0, &d) != TN_OK)
			fail_msg("%s: %s: %s\n%s", c.name, d.rule, d.text,
				d.extra);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_seen)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
