/*
 * test_host.c: what the process around the library has chosen changes nothing:
 * its locale (tools/locale.sh runs this where 1.5 is written 1,5), how it
 * rounds, whether it flushes subnormals, what it traps. And the library leaves
 * all of that as it was.
 */
#define _GNU_SOURCE /* feenableexcept */
#include "unit.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static tn_context *context(bool interp, int32_t threads)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = interp;
	o.threads = threads;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

/* ---- the locale ---- */

static const char program[] =
	"op half(x[i..]:float, by: real = 0.5) -> o { o[i..] = x[i..] * by "
	"+ 0.125 }\n"
	"program {\n  x: f32[3]\n  a = affine(x, alpha=1.5, beta=-0.25)\n"
	"  b = half(a)\n  c = gelu(b)\n  d = leaky_relu(c, alpha=0.75)\n"
	"  m = reduce_max(d, axes=[0])\n  return d, m\n}\n";

/* All levels of the program, one after the other. */
static char *levels(tn_context *c)
{
	size_t n = 0;
	char *all = calloc(1, 1 << 20);
	tn_program *p;

	assert_non_null(all);
	if (tn_program_parse(&p, c, program, strlen(program), "host.tn") < 0)
		fail_msg("%s", tn_context_diag(c)->text);
	for (int level = TN_LEVEL_PROGRAM; level <= TN_LEVEL_C; level++)
		for (uint32_t json = 0; json <= TN_EXPLAIN_JSON;
			json += TN_EXPLAIN_JSON) {
			char *text;

			assert_int_equal(tn_program_explain(&text, p,
				(tn_level)level, json), TN_OK);
			assert_true(n + strlen(text) + 1 < 1 << 20);
			memcpy(all + n, text, strlen(text) + 1);
			n += strlen(text);
			tn_text_free(text);
		}
	tn_program_free(p);
	return all;
}

static char *in_locale(const char *name)
{
	tn_context *c = context(false, 1);
	char *text;

	assert_non_null(setlocale(LC_ALL, name));
	text = levels(c);
	tn_context_free(c);
	return text;
}

static void same_text(void **state)
{
	const char *name = getenv("TN_LOCALE");
	char *here, *there;

	(void)state;
	if (name == NULL) {
		print_message("run by tools/locale.sh\n");
		skip();
	}
	assert_string_equal(localeconv()->decimal_point, ",");
	here = in_locale("C");
	there = in_locale(name);
	assert_string_equal(localeconv()->decimal_point, ",");
	assert_string_equal(here, there);
	free(here);
	free(there);
}

/* Right in the locale at hand, whichever it is. */
static void same_numbers(void **state)
{
	static const float in[] = {1, -1, 0.5f};
	const int64_t n = 3;
	float got[3];

	(void)state;
	for (int k = 0; k < 2; k++) {
		tn_context *c = context(k, 1);
		tn_tensor *x = tn_tensor_new(c, TN_F32, 1, &n, in), *y = x;
		tn_attr slope = {.name = "alpha", .kind = TN_ATTR_REAL,
			.f = 0.25};
		char *text;

		assert_int_equal(tn_read(tn_gelu(x), got, sizeof got), TN_OK);
		assert_true(fabsf(got[0] - 0.8413447f) < 1e-6f);
		assert_int_equal(tn_call(c, "leaky_relu", 1, &x, 1, &slope, 1,
			&y), TN_OK);
		assert_int_equal(tn_read(y, got, sizeof got), TN_OK);
		assert_true(got[1] == -0.25f);
		assert_int_equal(tn_op_define(c,
			"more(x[i]:float) -> o { o[i] = x[i] * 1.5 }"), TN_OK);
		assert_int_equal(
			tn_call(c, "more", 1, &x, 0, NULL, 1, &y), TN_OK);
		assert_int_equal(tn_read(y, got, sizeof got), TN_OK);
		assert_true(got[2] == 0.75f);
		assert_int_equal(tn_text(x, &text), TN_OK);
		assert_non_null(strstr(text, "0.5"));
		tn_text_free(text);
		tn_context_free(c);
	}
}

/* ---- the floating-point environment ---- */

enum { N = 3000, N_OUT = 4 };

struct seen {
	float at[N_OUT][N];
	int rounding; /* in a body */
};

static tn_status body(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	struct seen *s = user;

	s->rounding = fegetround();
	out[0] = tn_div(tn_exp(in[0]), tn_scalar(c, TN_F32, 3));
	return TN_OK;
}

/* Rounded, subnormal, folded and interpreted numbers. */
static void compute(struct seen *s, bool interp, int32_t threads)
{
	tn_context *c = context(interp, threads);
	int64_t n = interp ? 40 : N, square[] = {interp ? 6 : 50, 0};
	float *data = malloc(N * sizeof *data);
	tn_tensor *x, *m, *y[N_OUT];
	tn_function *f;

	assert_non_null(data);
	memset(s, 0, sizeof *s);
	square[1] = square[0];
	tn_fill_random(TN_F32, data, N, 7, 0, 0);
	x = tn_tensor_new(c, TN_F32, 1, &n, data);
	m = tn_tensor_new(c, TN_F32, 2, square, data);
	assert_int_equal(tn_compile(&f, c, body, s, 1, 1, "third"), TN_OK);
	assert_int_equal(tn_function_call(f, &x, &y[0]), TN_OK);
	y[1] = tn_mul(x, tn_scalar(c, TN_F32, 1e-39)); /* subnormals */
	y[2] = tn_matmul(m, m);
	y[3] = tn_affine(tn_div(tn_scalar(c, TN_F32, 0.1),
		tn_mul(x, tn_scalar(c, TN_F32, 0))), 0.7, 1e-40);
	for (int i = 0; i < N_OUT; i++)
		assert_int_equal(tn_read(y[i], s->at[i],
			(size_t)tn_tensor_n_elems(y[i]) * sizeof(float)),
			TN_OK);
	tn_function_free(f);
	tn_context_free(c);
	free(data);
}

#if defined(__x86_64__)
enum { FLUSH = 0x8040 }; /* flush to zero, subnormals are zero */
static unsigned flush(unsigned on)
{
	unsigned csr = __builtin_ia32_stmxcsr();

	__builtin_ia32_ldmxcsr((csr & ~(unsigned)FLUSH) | on);
	return csr & FLUSH;
}
#else
enum { FLUSH = 0 };
static unsigned flush(unsigned on)
{
	(void)on;
	return 0;
}
#endif

static void same_bits(void **state)
{
	static const struct {
		int rounding;
		unsigned flush;
		int traps;
	} hosts[] = {{FE_UPWARD, 0, 0}, {FE_DOWNWARD, 0, 0},
		{FE_TOWARDZERO, FLUSH, 0}, {FE_TONEAREST, FLUSH, 0},
		{FE_TONEAREST, 0, FE_DIVBYZERO | FE_OVERFLOW}};
	struct seen *want = malloc(sizeof *want), *got = malloc(sizeof *got);

	(void)state;
	assert_true(want != NULL && got != NULL);
	for (int interp = 0; interp < 2; interp++) {
		compute(want, interp, 1);
		assert_true(want->at[1][0] != 0 &&
			fabsf(want->at[1][0]) < 1e-38f);
		for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
			for (int32_t threads = 1; threads <= 2; threads++) {
				unsigned kept;
				int rounding;

				fesetround(hosts[i].rounding);
				flush(hosts[i].flush);
				feclearexcept(FE_ALL_EXCEPT);
				feenableexcept(hosts[i].traps);
				compute(got, interp, threads);
				kept = flush(0);
				rounding = fegetround();
				assert_int_equal(
					fedisableexcept(FE_ALL_EXCEPT),
					hosts[i].traps);
				fesetround(FE_TONEAREST);
				assert_int_equal(kept, hosts[i].flush);
				assert_int_equal(rounding, hosts[i].rounding);
				assert_int_equal(
					got->rounding, hosts[i].rounding);
				for (int k = 0; k < N_OUT; k++)
					if (memcmp(want->at[k], got->at[k],
						    sizeof want->at[k]) != 0)
						fail_msg("output %d, host %d, "
							 "%d threads%s", k,
							(int)i, (int)threads,
							interp ? ", interp" : "");
			}
	}
	free(want);
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_text),
		cmocka_unit_test(same_numbers),
		cmocka_unit_test(same_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
