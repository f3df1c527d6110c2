/*
 * Emulated blocks of warps: shared memory, barriers, copies that end later. Each
 * fault that is planted in a kernel is found, and it is said what it is.
 */
#include "run_kernels.h"
#include "unit.h"

enum { WARPS = 4, THREADS = 32 * WARPS, SHARED = 2 * 16 * THREADS, ROUNDS = 6 };

#define HEAD \
	"KERNEL(k_block)(float *out, const float *in)\n{\n" \
	"	float *const s = (float *)SHARED();\n" \
	"	const int n = (int)blockDim.x, t = (int)threadIdx.x;\n" \
	"	(void)n, (void)out;\n"

/* Thread t writes a cell, and reads that of thread n - 1 - t. */
static const char turned[] = HEAD "	ST(s[t], LD(in[t]));\n"
				  "	BLOCK_SYNC();\n"
				  "	ST(out[t], LD(s[n - 1 - t]));\n"
				  "	BLOCK_SYNC();	/* again */\n"
				  "	ST(s[t], 0);\n}\n";
/* Through global memory. */
static const char global[] = HEAD "	(void)s;\n"
				  "	ST(out[n + t], LD(in[t]));\n"
				  "	BLOCK_SYNC();\n"
				  "	ST(out[t], LD(out[n + n - 1 - t]));\n}\n";
static const char copied[] = HEAD "	COPY_ASYNC(&s[t], &in[t], 4);\n"
				  "	COPY_COMMIT();\n"
				  "	COPY_WAIT(0);\n"
				  "	BLOCK_SYNC();\n"
				  "	ST(out[t], LD(s[n - 1 - t]));\n}\n";
/* The next stage is on its way while this one is used. */
static const char stages[] =
	HEAD "	float sum = 0;\n"
	     "	COPY_ASYNC(&s[4 * t], &in[4 * t], 16);\n"
	     "	COPY_COMMIT();\n"
	     "	for (int k = 0; k < 6; k++) {\n"
	     "		float *const now = s + k % 2 * 4 * n;\n"
	     "		float *const next = s + (k + 1) % 2 * 4 * n;\n"
	     "		if (k + 1 < 6)\n"
	     "			COPY_ASYNC(&next[4 * t], &in[(k + 1) * 4 * n + 4 * t], 16);\n"
	     "		COPY_COMMIT();\n"
	     "		COPY_WAIT(1);\n"
	     "		BLOCK_SYNC();\n"
	     "		for (int i = 0; i < 4; i++)\n"
	     "			sum += LD(now[4 * (n - 1 - t) + i]);\n"
	     "		BLOCK_SYNC();	/* again */\n"
	     "	}\n"
	     "	ST(out[t], sum);\n}\n";

struct block {
	const char *text, *from, *to; /* an edit; NULL: none */
	const char *what;	      /* goes wrong; NULL: nothing */
};

/* Of one unit; in mode 0 copies end early, in mode 1 late. */
struct blocks {
	const struct block *at;
	size_t n;
	void (*check)(const struct block *b, int mode, int64_t err,
		const float *out);
};

static void print_block(arena *a, str *unit, const struct block *b, size_t i)
{
	const char *from = b->from != NULL ? b->from : "", *to = "";
	const char *at = strstr(b->text, from);

	if (b->to != NULL)
		to = b->to;
	assert_non_null(at);
	str_printf(unit, "#define k_block_lane k_block%zu_lane\n%s%s%s#undef k_block_lane\n",
		i, arena_strndup(a, b->text, (size_t)(at - b->text)), to,
		at + strlen(from));
	str_printf(unit,
		"static void thread%zu(const struct simt_call *c)\n{\n"
		"	k_block%zu_lane(c->p[0], c->p[1]);\n}\n"
		"void run%zu(void *const *p, void *scratch, void *local, "
		"simt_int chunk,\n	simt_int *err)\n{\n"
		"	struct simt_call c = { p, scratch, local, chunk, err };\n"
		"	simt_run_block(thread%zu, &c, local, %d, %d);\n}\n",
		i, i, i, i, WARPS, SHARED);
}

static void run_block(arena *a, void *lib, const struct blocks *all, size_t i)
{
	float *in = run_array(a, ROUNDS * 16 * THREADS), out[2 * THREADS];
	void *p[2] = {out, in};
	void *local = run_array(a, simt_memory(WARPS, SHARED));
	void *sym = dlsym(lib, arena_printf(a, "run%zu", i));
	run_fn *fn;

	memcpy(&fn, &sym, sizeof fn);
	for (int32_t k = 0; k < ROUNDS * 4 * THREADS; k++)
		in[k] = (float)(k % 251);
	for (int mode = 0; mode < 2; mode++) {
		int64_t err = 0;

		for (int32_t k = 0; k < 2 * THREADS; k++)
			out[k] = -1;
		fn(p, NULL, local, mode, &err);
		all->check(&all->at[i], mode, err, out);
	}
}

static void run_blocks(arena *a, void *arg)
{
	const struct blocks *all = arg;
	str unit = str_new(a);
	void *lib;

	str_add(&unit, "#define SIMT_LATE (call->chunk % 2)\n");
	simt_unit(&unit, NULL, 0);
	for (size_t i = 0; i < all->n; i++)
		print_block(a, &unit, &all->at[i], i);
	lib = run_load(unit.at, NULL);
	for (size_t i = 0; i < all->n; i++)
		run_block(a, lib, all, i);
	dlclose(lib);
}

static void run_all(struct blocks *all)
{
	tn_diag d = {0};

	if (unit_run(run_blocks, all, 0, &d) != TN_OK)
		fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
}

static float sum_of(int32_t t)
{
	float sum = 0;

	for (int32_t k = 0; k < ROUNDS; k++)
		for (int32_t i = 0; i < 4; i++)
			sum += (float)((4 * (k * THREADS + THREADS - 1 - t) + i) %
				       251);
	return sum;
}

static void check_values(
	const struct block *b, int mode, int64_t err, const float *out)
{
	(void)mode;
	assert_int_equal(err, 0);
	for (int32_t t = 0; t < THREADS; t++)
		assert_true(out[t] == (b->text == stages
						      ? sum_of(t)
						      : (float)(THREADS - 1 - t)));
}

static void test_values(void **state)
{
	static const struct block at[] = {
		{.text = turned}, {.text = global}, {.text = copied}, {.text = stages}};

	(void)state;
	run_all(&(struct blocks){at, sizeof at / sizeof *at, check_values});
}

static void check_fault(
	const struct block *b, int mode, int64_t err, const float *out)
{
	int64_t line = 1000;
	const char *what = err < 0 ? simt_failure(err, &line) : "nothing";

	(void)out;
	if (b->what == NULL ? err != 0 : strstr(what, b->what) == NULL)
		fail_msg("%s instead of %s, mode %d: %s", b->to, b->from, mode,
			what);
	assert_true(line > 100);
}

/* What is wrong, in the order of the table, is found in both modes. */
static void test_faults(void **state)
{
	static const struct block at[] = {
		/* races */
		{turned, "BLOCK_SYNC();", ";", "two warps"},
		{turned, "BLOCK_SYNC();", "SYNC();", "two warps"},
		{turned, "BLOCK_SYNC();	/*", "/*", "two warps"},
		{turned, "LD(s[n - 1 - t])", "LD(s[t])", NULL},
		{turned, "s[n - 1 - t]", "s[t ^ 1]", NULL},
		{turned, "BLOCK_SYNC();\n	ST(out[t], LD(s[n - 1 - t]))",
			"ST(out[t], LD(s[t ^ 1]))", "two lanes"},
		{turned, "BLOCK_SYNC();\n	ST(out[t], LD(s[n - 1 - t]))",
			"SYNC();\n	ST(out[t], LD(s[t ^ 1]))", NULL},
		{turned, "s[t], LD", "s[t / 2], LD", "two lanes"},
		{turned, "s[t], LD", "s[t % 96], LD", "two warps"},
		{global, "BLOCK_SYNC();", "SYNC();", "two warps"},
		{stages, "BLOCK_SYNC();", "SYNC();", "two warps"},
		{stages, "BLOCK_SYNC();	/*", "/*", "cell"},
		/* barriers that not all reach */
		{turned, "BLOCK_SYNC();", "if (t < 64)\n BLOCK_SYNC();",
			"the warps of a block"},
		{turned, "BLOCK_SYNC();",
			"if (t < 64)\n BLOCK_SYNC();\nelse\n BLOCK_SYNC();",
			"the warps of a block"},
		{turned, "BLOCK_SYNC();", "if (t % 2)\n BLOCK_SYNC();",
			"the lanes of a warp"},
		{turned, "BLOCK_SYNC();", "if (t < 16)\n SYNC();",
			"the lanes of a warp"},
		{turned, "ST(s[t], LD", "if (t == 77)\n return;\nST(s[t], LD",
			"the lanes of a warp"},
		{turned, "ST(s[t], LD", "if (t > 95)\n return;\nST(s[t], LD",
			"the warps of a block"},
		/* waits */
		{copied, "COPY_WAIT(0);", ";", "before the copy"},
		{copied, "COPY_WAIT(0);", "COPY_WAIT(1);", "before the copy"},
		{copied, "COPY_COMMIT();", ";", "before the copy"},
		{copied, "COPY_WAIT(0);\n	BLOCK_SYNC();",
			"BLOCK_SYNC();\n	COPY_WAIT(0);", "cell"},
		{copied, "LD(s[n - 1 - t])", "LD(s[t])", NULL},
		{copied, "COPY_WAIT(0);\n	BLOCK_SYNC();\n	ST(out[t], "
			 "LD(s[n - 1 - t]))",
			"ST(out[t], LD(s[t]))", "before the copy"},
		{copied, "COPY_WAIT(0);\n	BLOCK_SYNC();\n	ST(out[t], "
			 "LD(s[n - 1 - t]))",
			"ST(s[t], 1)", "before the copy"},
		{copied, "COPY_WAIT(0);\n	BLOCK_SYNC();\n	ST(out[t], "
			 "LD(s[n - 1 - t]))",
			"ST(out[t], LD(in[t]))", "the kernel ends"},
		{stages, "COPY_WAIT(1);", "COPY_WAIT(2);", "before the copy"},
		{stages, "COPY_COMMIT();\n		COPY", "COPY",
			"before the copy"},
		/* copies that no GPU makes */
		{copied, "&in[t], 4", "&in[t], 2", "another size"},
		{copied, "&in[t], 4", "&in[t], 8", "not a multiple"},
		{copied, "COPY_ASYNC(&s[t], ", "COPY_ASYNC(&out[t], ",
			"other memory than shared"},
		{copied, "COPY_ASYNC(&s[t], &in[t], 4);",
			"for (int i = 0; i < 65; i++)\n"
			"COPY_ASYNC(&s[t + i % 8 * n], &in[t], 4);\n",
			"before the copy"},
	};

	(void)state;
	run_all(&(struct blocks){at, sizeof at / sizeof *at, check_fault});
}

static void check_late(
	const struct block *b, int mode, int64_t err, const float *out)
{
	(void)b;
	assert_true(err < 0);
	for (int32_t t = 0; t < THREADS; t++)
		assert_true(mode != 0 ? out[t] != out[t]
				      : out[t] == (float)(THREADS - 1 - t));
}

/* Without the wait, and early, all values are right by chance: late, none is. */
static void test_late(void **state)
{
	static const struct block at[] = {{copied, "COPY_WAIT(0);", ";", NULL}};

	(void)state;
	run_all(&(struct blocks){at, 1, check_late});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
