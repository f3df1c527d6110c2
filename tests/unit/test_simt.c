/*
 * Emulated warps: a kernel gives what its vectors say, lanes meet where a cell
 * changes hands, and the emulator finds it when they do not. Devices of the API.
 */
#include "kern_run.h"
#include "turned_text.h"
#include "run_kernels.h"
#include "unit.h"

#include "tenon.h"

#include <math.h>

/* Lane l writes cell l, and reads cell l + 1, which the next lane has written. */
static const char shift[] = "kernel 0 shift {\n"
			    "  param p0: f32[80] out\n"
			    "  param p1: f32[64] in\n"
			    "  phase of 1 chunks {\n"
			    "    %1: f32x32 = load p1[0]\n"
			    "    store p0[0] = %1\n"
			    "    %2: f32x16 = load p0[1]\n"
			    "    store p0[32] = %2\n"
			    "    %3: f32x16 = load p0[0]\n"
			    "    %4: f32x32 = shuffle %2, %3, [0, 16, 1, 17, 2, 18, 3, 19, 4, "
			    "20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, "
			    "13, 29, 14, 30, 15, 31]\n"
			    "    store p0[48] = %4\n"
			    "  }\n"
			    "}\n";
/* In a loop: this iteration reads what the last one wrote. */
static const char chain[] = "kernel 0 chain {\n"
			    "  param p0: f32[80] out\n"
			    "  param p1: f32[64] in\n"
			    "  phase of 1 chunks {\n"
			    "    %1: f32x32 = load p1[0]\n"
			    "    store p0[0] = %1\n"
			    "    for %2 = 0 .. 3 {\n"
			    "      %3: f32x32 = load p0[%2 + 1]\n"
			    "      store p0[%2 + 2] = %3\n"
			    "    }\n"
			    "  }\n"
			    "}\n";
/* Elements of their own: no lane waits for another one. */
static const char alone[] = "kernel 0 alone {\n"
			    "  param p0: f32[80] out\n"
			    "  param p1: f32[64] in\n"
			    "  phase of 1 chunks {\n"
			    "    for %1 = 0 .. 64 step 32 {\n"
			    "      %2: f32x32 = load p1[%1]\n"
			    "      store p0[%1] = %2\n"
			    "      %3: f32x32 = load p0[%1]\n"
			    "      %4: f32x32 = add %3, %2\n"
			    "      store p0[%1] = %4\n"
			    "    }\n"
			    "  }\n"
			    "}\n";

/* Two warps, each of which reads what the other one wrote. */
static const char block[] = "kernel 0 block {\n"
			    "  param p0: f32[80] out\n"
			    "  param p1: f32[64] in\n"
			    "  local b0: f32[64] at 0\n"
			    "  bytes scratch 0, local 256\n"
			    "  phase of 1 chunks by 2 warps {\n"
			    "    for %1 = 0 .. 64 step 32 by warp {\n"
			    "      store b0[%1] = f32x32 load p1[%1]\n"
			    "    }\n"
			    "    barrier\n"
			    "    for %2 = 0 .. 64 step 32 by warp {\n"
			    "      store p0[%2] = f32x32 load b0[-%2 + 32]\n"
			    "    }\n"
			    "  }\n"
			    "}\n";

/* Two warps turn the order of halves of 16 elements, while the next 16 are copied. */
static const char stages[] =
	"kernel 0 stages {\n"
	"  param p0: f32[64] out\n"
	"  param p1: f32[64] in\n"
	"  local b0: f32[16] at 0\n"
	"  local b1: f32[16] at 64\n"
	"  bytes scratch 0, local 128\n"
	"  phase of 1 chunks by 2 warps {\n"
	"    for %i0 = 0 .. 16 step 8 by warp {\n"
	"      async b0[%i0] rows 4 = p1[%i0] rows 4, 2 by 4\n"
	"    }\n"
	"    commit\n"
	"    for %i1 = 0 .. 64 step 32 {\n"
	"      wait 0\n"
	"      barrier\n"
	"      for %i2 = 0 .. 16 step 8 by warp {\n"
	"        async b1[%i2] rows 4 = p1[%i1 + %i2 + 16] rows 4, 2 by 4\n"
	"      }\n"
	"      commit\n"
	"      for %i3 = 0 .. 16 step 8 by warp {\n"
	"        store p0[%i1 + %i3] = f32x8 load b0[-%i3 + 8]\n"
	"      }\n"
	"      wait 0\n"
	"      barrier\n"
	"      %4: bool = inside %i1, *, 32\n"
	"      if %4 {\n"
	"        for %i5 = 0 .. 16 step 8 by warp {\n"
	"          async b0[%i5] rows 4 = p1[%i1 + %i5 + 32] rows 4, 2 by 4\n"
	"        }\n"
	"      }\n"
	"      commit\n"
	"      for %i6 = 0 .. 16 step 8 by warp {\n"
	"        store p0[%i1 + %i6 + 16] = f32x8 load b1[-%i6 + 8]\n"
	"      }\n"
	"    }\n"
	"    wait 0\n"
	"  }\n"
	"}\n";

/* Each lane takes four neighbours at once, and stores their squares. */
static const char wide[] = "kernel 0 wide {\n"
			   "  param p0: f32[256] out\n"
			   "  param p1: f32[256] in\n"
			   "  phase of 1 chunks {\n"
			   "    for %i0 = 0 .. 256 step 128 {\n"
			   "      together 4 %1: f32x32 = load p1[%i0] step 4\n"
			   "      %2: f32x32 = load p1[%i0 + 1] step 4\n"
			   "      %3: f32x32 = load p1[%i0 + 2] step 4\n"
			   "      %4: f32x32 = load p1[%i0 + 3] step 4\n"
			   "      %5: f32x32 = mul %1, %1\n"
			   "      %6: f32x32 = mul %2, %2\n"
			   "      %7: f32x32 = mul %3, %3\n"
			   "      %8: f32x32 = mul %4, %4\n"
			   "      together 4 store p0[%i0] step 4 = %5\n"
			   "      store p0[%i0 + 1] step 4 = %6\n"
			   "      store p0[%i0 + 2] step 4 = %7\n"
			   "      store p0[%i0 + 3] step 4 = %8\n"
			   "    }\n"
			   "  }\n"
			   "}\n";

/* 16 x 32 times 32 x 32 */
static const char mma[] =
	"kernel 0 mma {\n"
	"  param p0: f32[512] out\n"
	"  param p1: bf16[512] in\n"
	"  param p2: bf16[1024] in\n"
	"  local b0: bf16[768] at 0\n"
	"  local b1: bf16[2304] at 1536\n"
	"  bytes scratch 0, local 6144\n"
	"  phase of 1 chunks by 2 warps {\n"
	"    for %i0 = 0 .. 16 by warp {\n"
	"      store b0[40*%i0] = bf16x32 load p1[32*%i0]\n"
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
	"      for %i11 = 0 .. 32 step 16 {\n"
	"        mma bf16 %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10 of b0[%i11] rows 40, b1[40*%i11 + %i2] rows 40\n"
	"      }\n"
	"      give p0[%i2] rows 32 = %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10\n"
	"    }\n"
	"  }\n"
	"}\n";

/* Twice the columns from 16 on, two times, by one warp, which writes a factor again that its
 * instructions have read beside another one. */
static const char again[] =
	"kernel 0 again {\n"
	"  param p0: f32[512] out\n"
	"  param p1: bf16[512] in\n"
	"  param p2: bf16[1024] in\n"
	"  local b0: bf16[768] at 0\n"
	"  local b1: bf16[768] at 1536\n"
	"  bytes scratch 0, local 3072\n"
	"  phase of 1 chunks {\n"
	"    var %r0: f32x32 = zero\n"
	"    var %r1: f32x32 = zero\n"
	"    var %r2: f32x32 = zero\n"
	"    var %r3: f32x32 = zero\n"
	"    var %r4: f32x32 = zero\n"
	"    var %r5: f32x32 = zero\n"
	"    var %r6: f32x32 = zero\n"
	"    var %r7: f32x32 = zero\n"
	"    for %i8 = 0 .. 2 {\n"
	"      for %i9 = 0 .. 16 {\n"
	"        store b0[40*%i9] = bf16x32 load p1[32*%i9]\n"
	"      }\n"
	"      for %i10 = 0 .. 32 step 16 {\n"
	"        for %i11 = 0 .. 16 {\n"
	"          store b1[40*%i11] = bf16x16 load p2[32*%i10 + 32*%i11 + 16]\n"
	"        }\n"
	"        mma bf16 %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7 of b0[%i10] rows 40, b1[0] rows 40\n"
	"      }\n"
	"    }\n"
	"    give p0[0] rows 32 = %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7\n"
	"    give p0[16] rows 32 = %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7\n"
	"  }\n"
	"}\n";

/* 13 x 21 times 21 x 32, parts of matrix instructions; the last five terms are for 15 of
 * 16 columns only */
static const char tail[] =
	"kernel 0 tail {\n"
	"  param p0: f32[416] out\n"
	"  param p1: bf16[273] in\n"
	"  param p2: bf16[672] in\n"
	"  local b0: bf16[768] at 0\n"
	"  local b1: bf16[2304] at 1536\n"
	"  bytes scratch 0, local 6144\n"
	"  phase of 1 chunks by 2 warps {\n"
	"    for %i0 = 0 .. 13 by warp {\n"
	"      store b0[40*%i0] = bf16x16 load p1[21*%i0]\n"
	"      store b0[40*%i0 + 16] part 5 = bf16x8 load p1[21*%i0 + 16] part 5\n"
	"    }\n"
	"    for %i1 = 0 .. 21 by warp {\n"
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
	"      mma bf16 %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10 of b0[0] rows 40, b1[%i2] rows 40 part 13 by 16 by 16\n"
	"      mma bf16 %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10 of b0[16] rows 40, b1[%i2 + 640] rows 40 part 13 by 15 by 5\n"
	"      give p0[%i2] rows 32 part 13 by 16 = %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10\n"
	"    }\n"
	"  }\n"
	"}\n";

struct warp {
	const char *text, *from, *to; /* of the unit, in the kernel's body */
	int64_t n_syncs;	      /* in the body; the last one ends it */
	int64_t err;
	int32_t at;   /* of the input, in elements, from 16 bytes */
	int32_t late; /* copies take place 1: at once, 2: at their wait */
	float out[80];
};

static const char *edited(
	arena *a, const char *unit, const char *from, const char *to)
{
	const char *body = strstr(unit, "KERNEL(k_"), *at;

	assert_non_null(body);
	at = strstr(body, from);
	assert_non_null(at);
	return arena_printf(a, "%.*s%s%s", (int)(at - unit), unit, to,
		at + strlen(from));
}

static int64_t count(const char *text, const char *what)
{
	const char *body = strstr(text, "KERNEL(k_");
	int64_t n = 0;

	while ((body = strstr(body, what)) != NULL) {
		body++;
		n++;
	}
	return n;
}

static void run_warp(arena *a, void *arg)
{
	struct warp *w = arg;
	kern_kernel *k = kern_parse(a, w->text, strlen(w->text), "t.kern");
	c_kernel *c = simt_print(a, k);
	_Alignas(16) float room[68], *in = room + w->at;
	void *p[2] = {w->out, in}, *local = run_array(a, c->local_bytes), *sym;
	str unit = str_new(a);
	run_fn *fn;
	void *lib;

	for (int32_t i = 0; i < 64; i++)
		in[i] = (float)(i + 1);
	for (int32_t i = 0; i < 80; i++)
		w->out[i] = 0;
	if (w->late > 0)
		str_printf(&unit, "#define SIMT_LATE %d\n", w->late - 1);
	simt_unit(&unit, (const c_kernel *const *)&c, 1);
	w->n_syncs = count(unit.at, "SYNC();");
	lib = run_load(w->from == NULL
			? unit.at
			: edited(a, unit.at, w->from, w->to), NULL);
	sym = dlsym(lib, c->phase[0].fn);
	memcpy(&fn, &sym, sizeof fn);
	w->err = 0;
	fn(p, NULL, local, 0, &w->err);
	dlclose(lib);
}

static void run_ok(struct warp *w)
{
	tn_diag d = {0};

	if (unit_run(run_warp, w, 0, &d) != TN_OK)
		fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
}

static void test_values(void **state)
{
	struct warp w = {.text = shift};

	(void)state;
	run_ok(&w);
	assert_int_equal(w.err, 0);
	for (int32_t i = 0; i < 16; i++) {
		assert_true(w.out[32 + i] == (float)(i + 2));
		assert_true(w.out[48 + 2 * i] == (float)(i + 2));
		assert_true(w.out[49 + 2 * i] == (float)(i + 1));
	}
	w = (struct warp){.text = chain};
	run_ok(&w);
	assert_int_equal(w.err, 0);
	for (int32_t i = 0; i < 28; i++)
		assert_true(w.out[i + 4] == (float)(i + 2));
	w = (struct warp){.text = alone};
	run_ok(&w);
	assert_int_equal(w.err, 0);
	assert_int_equal(w.n_syncs, 1); /* at the end of the chunk */
	for (int32_t i = 0; i < 64; i++)
		assert_true(w.out[i] == 2 * (float)(i + 1));
}

/* Each meeting of lanes is needed: without it two lanes race. */
static void test_races(void **state)
{
	static const char *const texts[] = {shift, chain};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct warp w = {texts[i], "SYNC();", ";", 0, 0, 0, 0, {0}};
		int64_t line;

		run_ok(&w);
		assert_true(w.n_syncs >= 2 && w.err < 0);
		assert_non_null(strstr(simt_failure(w.err, &line), "one cell"));
		assert_true(line > 100);
	}
}

/* Warps that share memory: what they compute, and a barrier that is missing, is
 * left out by one of them, or is another one. */
static void test_block(void **state)
{
	static const char *const edits[][3] = {
		{"BLOCK_SYNC();", "SYNC();", "two warps"},
		{"BLOCK_SYNC();", "if (warp == 0)\n BLOCK_SYNC();", "barrier"},
		{"BLOCK_SYNC();",
			"if (warp == 0)\n BLOCK_SYNC();\n else\n BLOCK_SYNC();",
			"same barrier"}};
	struct warp w = {.text = block};
	int64_t line;

	(void)state;
	run_ok(&w);
	assert_int_equal(w.err, 0);
	for (int32_t i = 0; i < 64; i++)
		assert_true(w.out[i] == (float)((i + 32) % 64 + 1));
	for (size_t i = 0; i < 3; i++) {
		w = (struct warp){
			block, edits[i][0], edits[i][1], 0, 0, 0, 0, {0}};
		run_ok(&w);
		assert_true(w.err < 0);
		assert_non_null(strstr(simt_failure(w.err, &line), edits[i][2]));
		assert_true(line > 100);
	}
}

/* Copies that go on meanwhile; a wait or a barrier less is found, early and late;
 * memory that begins anywhere is copied element by element. */
static void test_stages(void **state)
{
	static const char *const edits[][2] = {{"COPY_WAIT(0);", ";"},
		{"COPY_WAIT(0);", "COPY_WAIT(1);"}, {"COPY_COMMIT();", ";"},
		{"COPY_WAIT(0);\n\t\t\tBLOCK_SYNC();",
			"BLOCK_SYNC();\n\t\t\tCOPY_WAIT(0);"},
		{"BLOCK_SYNC();", ";"}};
	struct warp w = {.text = stages};

	(void)state;
	for (int32_t at = 0; at < 2; at++) {
		w.at = at;
		run_ok(&w);
		assert_int_equal(w.err, 0);
		for (int32_t i = 0; i < 64; i++)
			assert_true(w.out[i] ==
				    (float)(i / 16 * 16 + (i % 16 + 8) % 16 + 1));
	}
	for (size_t i = 0; i < 10; i++) {
		w = (struct warp){.text = stages,
			.from = edits[i / 2][0],
			.to = edits[i / 2][1],
			.late = 1 + i % 2};
		run_ok(&w);
		if (w.err >= 0)
			fail_msg("%s -> %s, late %d: nothing was found",
				w.from, w.to, w.late - 1);
	}
}

struct wide_call {
	int32_t offset[2]; /* of the arrays, in elements, from 16 bytes */
	const char *from, *to;
	int64_t err;
	bool cpu; /* as C, one thread */
};

static void run_wide(arena *a, void *arg)
{
	struct wide_call *w = arg;
	static _Alignas(16) float out[300], in[300];
	kern_kernel *k = kern_parse(a, wide, sizeof wide - 1, "t.kern");
	void *p[2] = {out + w->offset[0], in + w->offset[1]}, *local, *sym, *lib;
	str unit = str_new(a);
	c_kernel *c;
	run_fn *fn;

	kern_verify(k);
	c = (w->cpu ? c_print : simt_print)(a, k);
	(w->cpu ? c_unit : simt_unit)(&unit, (const c_kernel *const *)&c, 1);
	if (!w->cpu) {
		assert_int_equal(count(unit.at, "LD4("), 1);
		assert_int_equal(count(unit.at, "ST4("), 1);
		assert_int_equal(count(unit.at, "SYNC();"), 1); /* of the chunk */
	}
	for (int32_t i = 0; i < 300; i++) {
		in[i] = (float)i;
		out[i] = -1;
	}
	lib = run_load(w->from == NULL
			? unit.at
			: edited(a, unit.at, w->from, w->to), NULL);
	sym = dlsym(lib, c->phase[0].fn);
	memcpy(&fn, &sym, sizeof fn);
	local = run_array(a, c->local_bytes);
	w->err = 0;
	fn(p, NULL, local, 0, &w->err);
	dlclose(lib);
	for (int32_t i = 0; i < 300; i++) {
		int32_t e = i - w->offset[0];
		float x = (float)(e + w->offset[1]);

		assert_true(out[i] == (e < 0 || e >= 256 ? -1 : x * x));
	}
}

/* Arrays that begin anywhere are accessed one by one; an access of several elements
 * that is not aligned is found. */
static void test_wide(void **state)
{
	struct wide_call calls[] = {{{0, 0}, NULL, NULL, 0, false},
		{{4, 8}, NULL, NULL, 0, false}, {{1, 2}, NULL, NULL, 0, false},
		{{0, 3}, NULL, NULL, 0, false}, {{1, 2}, NULL, NULL, 0, true},
		{{0, 1}, "ALIGNED(p1)", "1", 0, false},
		{{2, 0}, "ALIGNED(p0)", "1", 0, false}};

	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		tn_diag d = {0};
		int64_t line;

		if (unit_run(run_wide, &calls[i], 0, &d) != TN_OK)
			fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
		if (calls[i].from == NULL) {
			assert_int_equal(calls[i].err, 0);
			continue;
		}
		assert_true(calls[i].err < 0);
		assert_non_null(strstr(simt_failure(calls[i].err, &line),
			"several elements at once"));
		assert_true(line > 100);
	}
}

struct product {
	const char *text;
	int32_t m, n, k;
};

/* Matrix instructions give what the interpreter says, bit by bit. */
static void run_mma(arena *a, void *arg)
{
	const struct product *q = arg;
	kern_kernel *k = kern_parse(a, q->text, strlen(q->text), "t.kern");
	c_kernel *c;
	static float out[2][512];
	static uint16_t y[1024];
	static float x[512];
	void *p[3] = {out[0], x, y}, *local, *sym, *lib;
	int64_t err = 0;
	str unit = str_new(a);
	run_fn *fn;

	kern_verify(k);
	memset(out, 0, sizeof out);
	for (int32_t i = 0; i < q->m * q->k; i++)
		dtype_store_f64(k->array.at[1].dtype, x, i,
			q->text == bytes ? i * 37 % 256
					 : (i * 37 % 101 - 50) / 16.0 *
						   (1 + i / 4096.0));
	for (int32_t i = 0; i < q->k * q->n; i++)
		dtype_store_f64(k->array.at[2].dtype, y, i,
			(i * 53 % 97 - 48) / (q->text == bytes ? 0.5 : 32.0));
	assert_int_equal(kern_run(a, k, p, 1), 0);
	c = simt_print(a, k);
	simt_unit(&unit, (const c_kernel *const *)&c, 1);
	lib = run_load(unit.at, NULL);
	sym = dlsym(lib, c->phase[0].fn);
	memcpy(&fn, &sym, sizeof fn);
	local = run_array(a, c->local_bytes);
	p[0] = out[1];
	fn(p, NULL, local, 0, &err);
	dlclose(lib);
	assert_int_equal(err, 0);
	assert_memory_equal(out[0], out[1], sizeof out[0]);
}

static void test_mma(void **state)
{
	static struct product products[] = {{mma, 16, 32, 32}, {tail, 13, 32, 21},
		{again, 16, 32, 32},
		{turned, 16, 32, 32}, {parts, 16, 32, 32},
		{bytes, 16, 32, 32}};

	(void)state;
	for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
		tn_diag d = {0};

		if (unit_run(run_mma, &products[i], 0, &d) != TN_OK)
			fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
	}
}

/* A barrier that only some lanes reach; a value that some do not show. */
static void test_bad_barrier(void **state)
{
	static const char *const edits[][2] = {
		{"SYNC();", "if (lane32 < 16)\n SYNC();"},
		{"= both_f32(", "= lane32 < 3 ? 0 : both_f32("}};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct warp w = {
			shift, edits[i][0], edits[i][1], 0, 0, 0, 0, {0}};
		int64_t line;

		run_ok(&w);
		assert_true(w.err < 0);
		assert_non_null(strstr(simt_failure(w.err, &line), "meet"));
	}
}

/* ---- devices ---- */

static const char program[] = "program { x: f32[7,100]  i: i32[3]\n"
			      "  s = softmax(x, axis=1)\n"
			      "  t = take(s, i, axis=0)\n"
			      "  return t }\n";

static tn_status run_on(const tn_options *o, const int32_t *index, float *out,
	char *message)
{
	tn_context *c = NULL;
	tn_program *p = NULL;
	float x[700];
	const void *in[2] = {x, index};
	void *to[1] = {out};
	tn_status s = tn_context_new(&c, o);

	for (int32_t i = 0; i < 700; i++)
		x[i] = (float)(i % 13) / 4;
	if (s == TN_OK)
		s = tn_program_parse(&p, c, program, sizeof program - 1, "t.tn");
	if (s == TN_OK)
		s = tn_program_run(p, in, to);
	snprintf(message, 1024, "%s", tn_context_diag(c)->text);
	tn_program_free(p);
	tn_context_free(c);
	return s;
}

static void test_device(void **state)
{
	static const int32_t good[3] = {6, 0, 3}, bad[3] = {6, 7, 3};
	tn_options o = TN_OPTIONS_INIT;
	float cpu[300], simt[300];
	char m[1024];

	(void)state;
	assert_int_equal(run_on(&o, good, cpu, m), TN_OK);
	o.device = "simt";
	assert_int_equal(run_on(&o, good, simt, m), TN_OK);
	for (int32_t i = 0; i < 300; i++)
		assert_true(cpu[i] - simt[i] < 1e-6f && simt[i] - cpu[i] < 1e-6f);
	assert_int_equal(run_on(&o, bad, simt, m), TN_ERANGE);
	assert_non_null(strstr(m, "i[1] is 7"));
	o.device = "tpu";
	assert_int_equal(run_on(&o, good, simt, m), TN_EINVAL);
	assert_non_null(strstr(m, "accepted are cpu, simt"));
	o.device = NULL;
	o.target = "cuda/sm_90";
	assert_int_equal(run_on(&o, good, simt, m), TN_EINVAL);
	assert_non_null(strstr(m, "can be explained, not run"));
	o.target = "cuda/sm_10";
	assert_int_equal(run_on(&o, good, simt, m), TN_EINVAL);
	assert_non_null(strstr(m, "cuda/sm_80, cuda/sm_90"));
	o.target = "c/plain";
	assert_int_equal(run_on(&o, good, simt, m), TN_OK);
}

enum { ROWS = 33, TERMS = 40, COLUMNS = 24 };

static float rounded(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof u);
	u = (u + 0x1000) & 0xffffe000;
	memcpy(&x, &u, sizeof x);
	return x;
}

static void product_on(const tn_options *o, const float *x, const float *w, float *y)
{
	static const char text[] = "program { x: f32[33,40]  w: f32[40,24]\n"
				   "  y = matmul(x, w)\n  return y }\n";
	const void *in[2] = {x, w};
	void *out[1] = {y};
	tn_context *c = NULL;
	tn_program *p = NULL;

	assert_int_equal(tn_context_new(&c, o), TN_OK);
	assert_int_equal(
		tn_program_parse(&p, c, text, sizeof text - 1, "t.tn"), TN_OK);
	assert_int_equal(tn_program_run(p, in, out), TN_OK);
	tn_program_free(p);
	tn_context_free(c);
}

/* The option tf32: factors have 10 bits on the warps of a GPU, and all bits elsewhere and
 * in the next context. */
static void test_tf32(void **state)
{
	static float x[ROWS * TERMS], w[TERMS * COLUMNS], y[4][ROWS * COLUMNS];
	tn_options o = TN_OPTIONS_INIT;
	double apart = 0;

	(void)state;
	for (int32_t i = 0; i < ROWS * TERMS; i++)
		x[i] = 1 + (float)(i % 97) / 97;
	for (int32_t i = 0; i < TERMS * COLUMNS; i++)
		w[i] = 1 - (float)(i % 89) / 89;
	for (int32_t i = 0; i < 4; i++) {
		o.device = i < 3 ? "simt" : "cpu";
		o.tf32 = i % 2 == 1;
		product_on(&o, x, w, y[i]);
	}
	assert_memory_equal(y[0], y[2], sizeof y[0]);
	for (int32_t i = 0; i < ROWS; i++)
		for (int32_t j = 0; j < COLUMNS; j++) {
			double exact = 0, of = 0;

			for (int32_t k = 0; k < TERMS; k++) {
				float a = x[i * TERMS + k], b = w[k * COLUMNS + j];

				exact += (double)a * b;
				of += (double)rounded(a) * rounded(b);
			}
			assert_true(fabs(y[0][i * COLUMNS + j] - exact) < 2e-5);
			assert_true(fabs(y[3][i * COLUMNS + j] - exact) < 2e-5);
			assert_true(fabs(y[1][i * COLUMNS + j] - of) < 2e-5);
			apart += fabs(of - exact);
		}
	assert_true(apart > 1e-3 * ROWS * COLUMNS);
}

/* One program: a run, one that fails, and the first again. The parameter, which
 * is written in place, is as it was before the run that failed. */
static void test_after_error(void **state)
{
	static const char text[] = "program { param p: f32[40]  i: i64[2]\n"
				   "  q = mul(p, 2.0)\n"
				   "  p1 = write(p, q)\n"
				   "  t = take(p1, i, axis=0)\n"
				   "  return t }\n";
	static const int64_t good[2] = {39, 1}, bad[2] = {1, 40};
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c = NULL;
	tn_program *p = NULL;
	float param[40], out[2];
	void *to[1] = {out};
	int64_t factor = 1;

	(void)state;
	o.device = "simt";
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	assert_int_equal(
		tn_program_parse(&p, c, text, sizeof text - 1, "t.tn"), TN_OK);
	for (int32_t i = 0; i < 40; i++)
		param[i] = (float)(i + 1);
	for (int32_t run = 0; run < 5; run++) {
		bool fails = run % 2 == 1;
		const void *in[2] = {param, fails ? bad : good};
		tn_status s = tn_program_run(p, in, to);

		assert_int_equal(s, fails ? TN_ERANGE : TN_OK);
		factor *= fails ? 1 : 2;
		for (int32_t i = 0; i < 40; i++)
			assert_true(param[i] == (float)(factor * (i + 1)));
		if (!fails)
			assert_true(out[0] == (float)(factor * 40) &&
				    out[1] == (float)(factor * 2));
	}
	tn_program_free(p);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_races),
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_stages),
		cmocka_unit_test(test_wide),
		cmocka_unit_test(test_mma),
		cmocka_unit_test(test_bad_barrier),
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_tf32),
		cmocka_unit_test(test_after_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
