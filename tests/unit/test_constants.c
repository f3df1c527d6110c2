/*
 * test_constants.c: the copy of a parameter that a product makes is made once,
 * and again when its elements, or the parameter, are others.
 */
#include "tenon.h"
#include "unit.h"

#include "onnx_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* rows of w a power of two apart: they are copied */
enum { ROWS = 64, LONG = 1024, COLUMNS = 256 };

static float *numbers(int64_t n, uint64_t seed)
{
	float *x = malloc((size_t)n * sizeof *x);

	assert_non_null(x);
	tn_fill_random(TN_F32, x, n, seed, 0, 0);
	return x;
}

/* With vectors of 64 bytes these factors are copied; smaller tiles read them in
 * place. */
static bool has_copies(void)
{
#ifdef __x86_64__
	return __builtin_cpu_supports("avx512f");
#else
	return false;
#endif
}

static tn_context *context(void)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

static int64_t copies(const tn_context *c)
{
	tn_stats s;

	tn_context_stats(c, &s);
	return s.n_kept_copies;
}

/* times w x, at some places */
static void right(const float *y, const float *w, double times, const float *x)
{
	for (int i = 0; i < ROWS; i += 7)
		for (int j = 0; j < COLUMNS; j += 13) {
			double want = 0, size = 0, have = y[COLUMNS * i + j];

			for (int k = 0; k < LONG; k++) {
				double p = times * (double)w[LONG * i + k] *
					   (double)x[COLUMNS * k + j];

				want += p;
				size += fabs(p);
			}
			if (fabs(have - want) > size * 0x1p-24 * LONG)
				fail_msg("%d, %d: %g, not %g", i, j, have, want);
		}
}

static void product(tn_tensor *w, const float *data, double times,
	tn_tensor *x, const float *xs)
{
	static float y[ROWS * COLUMNS];

	assert_int_equal(tn_read(tn_matmul(w, x), y, sizeof y), TN_OK);
	right(y, data, times, xs);
}

static tn_tensor *parameter(tn_context *c, const char *name, const float *data)
{
	const int64_t shape[] = {ROWS, LONG};
	tn_tensor *w = tn_parameter(c, name, TN_F32, 2, shape, data);

	assert_true(tn_is_valid(w));
	return w;
}

static void test_parameter(void **state)
{
	const int64_t shape[] = {LONG, COLUMNS};
	const int64_t two[] = {2 * ROWS, LONG};
	const size_t n_bytes = (size_t)ROWS * LONG * sizeof(float);
	float *a = numbers(2 * ROWS * LONG, 1), *b = a + ROWS * LONG;
	float *xs = numbers(LONG * COLUMNS, 3);
	tn_context *c = context(), *d = context();
	tn_tensor *w, *v, *both, *x, *there, *x_there;
	tn_stats s;

	(void)state;
	tn_no_grad_enter(c);
	tn_no_grad_enter(d);
	w = parameter(c, "w", a);
	v = parameter(c, "v", b);
	both = tn_parameter(c, "both", TN_F32, 2, two, a);
	x = tn_tensor_new(c, TN_F32, 2, shape, xs);
	there = parameter(d, "w", b);
	x_there = tn_tensor_new(d, TN_F32, 2, shape, xs);
	for (int i = 0; i < 3; i++)
		product(w, a, 1, x, xs);
	assert_int_equal(copies(c), 1);
	tn_context_stats(c, &s);
	assert_true(s.bytes_kept_copies >= (int64_t)n_bytes);
	assert_true(s.bytes_plans >= s.bytes_kept_copies);
	/* other elements */
	assert_int_equal(tn_set_data(w, b, n_bytes), TN_OK);
	product(w, b, 1, x, xs);
	product(w, b, 1, x, xs);
	assert_int_equal(copies(c), 2);
	/* written in place by a program */
	tn_mul_(w, tn_scalar(c, TN_F32, 2));
	assert_int_equal(tn_eval(&w, 1), TN_OK);
	product(w, b, 2, x, xs);
	product(w, b, 2, x, xs);
	assert_int_equal(copies(c), 3);
	/* the same program with another parameter, and back */
	product(v, b, 1, x, xs);
	product(w, b, 2, x, xs);
	assert_int_equal(copies(c), 5);
	/* two parts of one parameter, by the same program */
	for (int64_t i = 0; i < 2 * ROWS; i += ROWS)
		product(tn_narrow(both, 0, i, ROWS), i > 0 ? b : a, 1, x, xs);
	product(w, b, 2, x, xs);
	assert_int_equal(copies(c), 7);
	/* what another context does is nothing to this one */
	product(there, b, 1, x_there, xs);
	product(w, b, 2, x, xs);
	assert_int_equal(copies(c), 7);
	assert_int_equal(copies(d), 1);
	tn_context_free(c);
	tn_context_free(d);
	free(a);
	free(xs);
}

/* ---- weights of two bytes, which are copied in groups of terms ---- */

enum { WIDE = 320 };

/* bf16 near them, and these as f32 */
static uint16_t *shortened(float *x, int64_t n)
{
	uint16_t *out = malloc((size_t)n * sizeof *out);

	assert_non_null(out);
	for (int64_t i = 0; i < n; i++) {
		uint32_t bits;

		memcpy(&bits, &x[i], sizeof bits);
		out[i] = (uint16_t)(bits >> 16);
		bits &= 0xffff0000;
		memcpy(&x[i], &bits, sizeof bits);
	}
	return out;
}

static void short_product(tn_tensor *x, tn_tensor *w, const float *xs,
	const float *ws, double times)
{
	static uint16_t y[ROWS * WIDE];

	assert_int_equal(tn_read(tn_matmul(x, w), y, sizeof y), TN_OK);
	for (int i = 0; i < ROWS; i += 7)
		for (int j = 0; j < WIDE; j += 13) {
			double want = 0, size = 0;
			uint32_t bits = (uint32_t)y[WIDE * i + j] << 16;
			float have;

			memcpy(&have, &bits, sizeof have);
			for (int k = 0; k < LONG; k++) {
				double p = times * (double)xs[LONG * i + k] *
					   (double)ws[WIDE * k + j];

				want += p;
				size += fabs(p);
			}
			if (fabs(have - want) > fabs(want) * 0x1p-8 + size * 0x1p-14)
				fail_msg("%d, %d: %g, not %g", i, j, (double)have, want);
		}
}

static void test_short(void **state)
{
	const int64_t rows[] = {ROWS, LONG}, columns[] = {LONG, WIDE};
	const int64_t n = LONG * WIDE;
	float *a = numbers(n, 1), *b = numbers(n, 2), *xs = numbers(ROWS * LONG, 3);
	uint16_t *sa = shortened(a, n), *sb = shortened(b, n);
	uint16_t *sx = shortened(xs, ROWS * LONG);
	tn_context *c = context();
	tn_tensor *w, *x;
	int64_t before;

	(void)state;
	tn_no_grad_enter(c);
	w = tn_parameter(c, "w", TN_BF16, 2, columns, sa);
	x = tn_tensor_new(c, TN_BF16, 2, rows, sx);
	short_product(x, w, xs, a, 1);
	before = copies(c);
	short_product(x, w, xs, a, 1);
	short_product(x, w, xs, a, 1);
	assert_int_equal(copies(c), before);
	/* other elements; then written in place by a program */
	assert_int_equal(tn_set_data(w, sb, (size_t)n * sizeof *sb), TN_OK);
	short_product(x, w, xs, b, 1);
	short_product(x, w, xs, b, 1);
	tn_mul_(w, tn_scalar(c, TN_BF16, 2));
	assert_int_equal(tn_eval(&w, 1), TN_OK);
	short_product(x, w, xs, b, 2);
	assert_int_equal(copies(c), 3 * before);
	tn_context_free(c);
	free(a);
	free(b);
	free(xs);
	free(sa);
	free(sb);
	free(sx);
}

/* Memory that others see may change behind our back. */
static void test_lent(void **state)
{
	const int64_t shape[] = {LONG, COLUMNS};
	float *a = numbers(ROWS * LONG, 1), *xs = numbers(LONG * COLUMNS, 3);
	tn_context *c = context();
	tn_tensor *w, *x;
	tn_dl_managed *view;
	float *seen;

	(void)state;
	tn_no_grad_enter(c);
	w = parameter(c, "w", a);
	x = tn_tensor_new(c, TN_F32, 2, shape, xs);
	product(w, a, 1, x, xs);
	assert_int_equal(tn_dlpack_export(w, &view), TN_OK);
	seen = view->tensor.data;
	product(w, a, 1, x, xs);
	for (int i = 0; i < ROWS * LONG; i++)
		seen[i] = a[i] = -3 * a[i];
	product(w, a, 1, x, xs);
	view->deleter(view);
	tn_context_free(c);
	free(a);
	free(xs);
}

/* Weights of a model; those that the caller puts in their place. */
static void test_model(void **state)
{
	char path[] = "/tmp/tenon_onnx_XXXXXX";
	env *e = env_new();
	arena *a = arena_new(e);
	pb bytes = onnx_write(a, "opset 13; in x float [1024,256]; out y;"
		"init s int64 [2] 64 1024; node ConstantOfShape s > w;"
		"node MatMul w x > y;");
	float *xs = numbers(LONG * COLUMNS, 3), *own = numbers(ROWS * LONG, 4);
	static float y[ROWS * COLUMNS], zero[ROWS * LONG];
	static _Alignas(64) float mine[ROWS * LONG];
	const void *in = xs;
	void *out = y;
	tn_context *c = context();
	tn_onnx *m;
	tn_program *p;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes.s.at, bytes.s.n), bytes.s.n);
	close(fd);
	assert_int_equal(tn_onnx_open(&m, c, path), TN_OK);
	tn_onnx_fold(m, 2);
	assert_int_equal(tn_onnx_build(&p, m), TN_OK);
	assert_int_equal(tn_program_n_params(p), 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(tn_program_run(p, &in, &out), TN_OK);
	right(y, zero, 1, xs);
	assert_int_equal(copies(c), 1);
	memcpy(mine, own, sizeof mine);
	assert_int_equal(tn_program_set_param(p, 0, mine), TN_OK);
	assert_int_equal(tn_program_run(p, &in, &out), TN_OK);
	right(y, own, 1, xs);
	/* it is the caller's, who writes to it */
	for (int i = 0; i < ROWS * LONG; i++)
		mine[i] *= 2;
	assert_int_equal(tn_program_run(p, &in, &out), TN_OK);
	right(y, own, 2, xs);
	tn_program_free(p);
	tn_onnx_free(m);
	tn_context_free(c);
	unlink(path);
	arena_free(a);
	env_free(e);
	free(xs);
	free(own);
}

/*
 * Pixels that leave lanes empty: channels have them, by a copy of the weights
 * that is made once; weights that are no parameter are read as they lie.
 */
enum { IMAGES = 2, CHANNELS = 12, SIDE = 7, FILTERS = 48, WINDOW = 3 };

static double pixel(const float *x, const float *w, int n, int f, int at,
	double *size)
{
	double sum = 0;

	for (int i = 0; i < CHANNELS * WINDOW * WINDOW; i++) {
		int c = i / (WINDOW * WINDOW);
		int h = at / SIDE + i / WINDOW % WINDOW - 1;
		int v = at % SIDE + i % WINDOW - 1;
		double p;

		if (h < 0 || h >= SIDE || v < 0 || v >= SIDE)
			continue;
		p = (double)x[((n * CHANNELS + c) * SIDE + h) * SIDE + v] *
		    (double)w[f * CHANNELS * WINDOW * WINDOW + i];
		sum += p;
		*size += fabs(p);
	}
	return sum;
}

static void filter(tn_tensor *x, tn_tensor *w, const float *xs, const float *ws)
{
	enum { PIXELS = SIDE * SIDE, ALL = IMAGES * FILTERS * PIXELS };
	static float y[ALL];
	const int64_t one[] = {1, 1};

	assert_int_equal(tn_read(tn_conv(x, w, 1, one, 2, one, 2, one, 2, one,
					 2),
				 y, sizeof y),
		TN_OK);
	for (int i = 0; i < ALL; i++) {
		double size = 0, want = pixel(xs, ws, i / (FILTERS * PIXELS),
					 i / PIXELS % FILTERS, i % PIXELS,
					 &size);

		if (fabs(y[i] - want) > size * 0x1p-20)
			fail_msg("%d: %g, not %g", i, y[i], want);
	}
}

static void test_small_images(void **state)
{
	const int64_t xn[] = {IMAGES, CHANNELS, SIDE, SIDE};
	const int64_t wn[] = {FILTERS, CHANNELS, WINDOW, WINDOW};
	float *xs = numbers(IMAGES * CHANNELS * SIDE * SIDE, 1);
	float *ws = numbers(FILTERS * CHANNELS * WINDOW * WINDOW, 2);
	tn_context *c = context();
	tn_tensor *x, *w, *plain;

	(void)state;
	tn_no_grad_enter(c);
	x = tn_tensor_new(c, TN_F32, 4, xn, xs);
	w = tn_parameter(c, "w", TN_F32, 4, wn, ws);
	plain = tn_tensor_new(c, TN_F32, 4, wn, ws);
	filter(x, plain, xs, ws);
	assert_int_equal(copies(c), 0);
	for (int i = 0; i < 3; i++)
		filter(x, w, xs, ws);
	assert_int_equal(copies(c), 1);
	tn_context_free(c);
	free(xs);
	free(ws);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parameter),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_lent),
		cmocka_unit_test(test_model),
		cmocka_unit_test(test_small_images),
	};
	static const struct CMUnitTest lent[] = {
		cmocka_unit_test(test_lent),
	};

	if (has_copies())
		return cmocka_run_group_tests(tests, NULL, NULL);
	puts("skipped: 4 tests of copies, which this machine's products do without");
	return cmocka_run_group_tests(lent, NULL, NULL);
}
