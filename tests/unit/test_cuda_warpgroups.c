/*
 * Matrix instructions that four warps execute together: on emulated warps and on the
 * driver that needs no GPU, what a program gives is what instructions of one warp give,
 * call after call, with a refused one in between.
 */
#include "cuda.h"
#include "halves.h"

enum { HEADS = 2, KEYS = 256, WIDTH = 64, N = HEADS * KEYS * WIDTH, LANES = 8 };

/* scores by keys whose elements adjoin, and values whose columns do; rows that are looked up */
static const char text[] = "program { q: f16[2,256,64]  k: f16[2,256,64]  v: f16[2,256,64]\n"
			   "  i: i64[8]\n"
			   "  o = attention(q, k, v, scale=0.125)\n"
			   "  r = take(o, i, axis=1)\n"
			   "  return o, r }\n";

struct calls {
	const char *device, *machine;
	uint16_t q[N], k[N], v[N], o[3][N];
	bool together;
};

static bool uses_warpgroups(tn_program *p)
{
	char *s;
	bool is;

	assert_int_equal(tn_program_explain(&s, p, TN_LEVEL_SCHEDULE, 0), TN_OK);
	is = strstr(s, "matrix by 4 warps") != NULL && strstr(s, " swizzled ") != NULL &&
	     strstr(s, " in bulk {") != NULL;
	tn_text_free(s);
	return is;
}

/* A call, one with an index out of range, the call again, and one with other keys. */
static void make(struct calls *c)
{
	tn_options opt = TN_OPTIONS_INIT;
	int64_t at[LANES] = {0, 255, 7, 100, 3, 3, 64, 128};
	uint16_t rows[HEADS * LANES * WIDTH];
	tn_context *x = NULL;
	tn_program *p = NULL;

	opt.device = c->device;
	if (c->machine != NULL)
		setenv("TENON_MACHINE", c->machine, 1);
	else
		unsetenv("TENON_MACHINE");
	assert_int_equal(tn_context_new(&x, &opt), TN_OK);
	assert_int_equal(tn_program_parse(&p, x, text, sizeof text - 1, "t.tn"), TN_OK);
	halves_fill(c->q, N, 1), halves_fill(c->k, N, 2), halves_fill(c->v, N, 3);
	for (int32_t n = 0; n < 3; n++) {
		const void *in[] = {c->q, c->k, c->v, at};
		void *out[] = {c->o[n], rows};

		if (n == 2)
			halves_fill(c->k, N, 5);
		at[2] = n == 1 ? KEYS : 7;
		if (n == 1)
			assert_int_equal(tn_program_run(p, in, out), TN_ERANGE);
		at[2] = 7;
		assert_int_equal(tn_program_run(p, in, out), TN_OK);
		for (int32_t h = 0; h < HEADS; h++)
			for (int32_t i = 0; i < LANES; i++)
				assert_memory_equal(rows + (h * LANES + i) * WIDTH,
					c->o[n] + (h * KEYS + at[i]) * WIDTH,
					WIDTH * sizeof *rows);
	}
	c->together = uses_warpgroups(p);
	tn_program_free(p);
	tn_context_free(x);
	unsetenv("TENON_MACHINE");
}

static double value(uint16_t h)
{
	double m = h & 0x3ff, e = h >> 10 & 31;

	m = e > 0 ? ldexp(m + 1024, (int)e - 25) : ldexp(m, -24);
	return h >> 15 ? -m : m;
}

static void test_values(void **state)
{
	static struct calls cpu = {.device = "cpu"}, one = {.device = "simt"},
		four = {.device = "simt", .machine = "cuda/sm_90a"},
		card = {.device = "cuda", .machine = "cuda/sm_90a"},
		early = {.device = "cuda", .machine = "cuda/sm_90a"};

	(void)state;
	make(&cpu), make(&one), make(&four), make(&card);
	setenv("FAKE_CUDA_EARLY", "1", 1);
	make(&early);
	assert_false(one.together);
	assert_true(four.together && card.together);
	assert_memory_equal(four.o[0], four.o[1], sizeof four.o[0]);
	assert_memory_not_equal(four.o[0], four.o[2], sizeof four.o[0]);
	for (int32_t n = 0; n < 3; n++) {
		assert_memory_equal(one.o[n], four.o[n], sizeof one.o[n]);
		assert_memory_equal(one.o[n], card.o[n], sizeof one.o[n]);
		assert_memory_equal(one.o[n], early.o[n], sizeof one.o[n]);
		for (int32_t i = 0; i < N; i++)
			assert_true(fabs(value(cpu.o[n][i]) - value(four.o[n][i])) < 4e-3);
	}
}

/* A machine that is not there, and one that the GPU is not. */
static void test_refused(void **state)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c = NULL;

	(void)state;
	o.device = "simt";
	setenv("TENON_MACHINE", "cuda/sm_10", 1);
	assert_int_equal(tn_context_new(&c, &o), TN_EINVAL);
	assert_non_null(strstr(tn_context_diag(NULL)->text, "cuda/sm_90, cuda/sm_90a"));
	o.device = "cuda";
	setenv("TENON_MACHINE", "cuda/sm_90a", 1);
	setenv("FAKE_CUDA_COMPUTE", "80", 1);
	assert_int_equal(tn_context_new(&c, &o), TN_EINVAL);
	assert_string_equal(tn_context_diag(NULL)->rule, "device.target");
	assert_non_null(strstr(tn_context_diag(NULL)->text,
		"compute capability 8.0: kernels for cuda/sm_90a run on those of 9.0 alone"));
	o.target = "cuda/sm_80"; /* what the caller says counts */
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	tn_context_free(c);
	unsetenv("TENON_MACHINE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_values, begin, end),
		cmocka_unit_test_setup_teardown(test_refused, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
