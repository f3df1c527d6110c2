/*
 * test_contract.c: causal attention with its gradient on long rows: right, the same
 * bits by one thread and by two, and no square of scores in memory; a long sum
 * with few rows and columns, in pieces, the same.
 */
#include "tenon.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

enum { HEADS = 8, T = 1024, D = 8, N = HEADS * T * D };

struct result {
	float *o, *g[3]; /* (HEADS, T, D) each */
	int64_t bytes; /* that programs work in, beside values */
};

static float *data(int seed)
{
	float *x = malloc(N * sizeof *x);

	assert_non_null(x);
	tn_fill_random(TN_F32, x, N, (uint64_t)seed, 0, 0);
	return x;
}

static tn_tensor *input(tn_context *c, int seed)
{
	const int64_t shape[] = {1, HEADS, T, D};
	float *x = data(seed);
	tn_tensor *t = tn_tensor_new(c, TN_F32, 4, shape, x);

	free(x);
	assert_true(tn_is_valid(t));
	return t;
}

static float *values(tn_tensor *t)
{
	float *x = malloc(N * sizeof *x);

	assert_non_null(x);
	assert_int_equal(tn_read(t, x, N * sizeof *x), TN_OK);
	return x;
}

static struct result run(int threads)
{
	tn_options o = TN_OPTIONS_INIT;
	struct result r = {0};
	tn_tensor *in[3], *out, *grad[3];
	tn_stats s;
	tn_context *c;

	o.threads = threads;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	assert_int_equal(tn_scope_enter(c), TN_OK);
	for (int i = 0; i < 3; i++) {
		in[i] = input(c, i + 1);
		assert_int_equal(tn_requires_grad(in[i]), TN_OK);
	}
	out = tn_attention(in[0], in[1], in[2], true, 0.25);
	r.o = values(out);
	assert_int_equal(tn_backward(out, input(c, 4)), TN_OK);
	for (int i = 0; i < 3; i++)
		grad[i] = tn_gradient(in[i]);
	assert_int_equal(tn_eval(grad, 3), TN_OK);
	for (int i = 0; i < 3; i++)
		r.g[i] = values(grad[i]);
	tn_context_stats(c, &s);
	r.bytes = s.bytes_plans;
	assert_int_equal(tn_scope_leave(c), TN_OK);
	tn_context_free(c);
	return r;
}

static void free_result(struct result *r)
{
	free(r->o);
	for (int i = 0; i < 3; i++)
		free(r->g[i]);
}

static double dot(const float *x, const float *y)
{
	double s = 0;

	for (int i = 0; i < D; i++)
		s += (double)x[i] * y[i];
	return s;
}

static void add(double *to, double a, const float *x)
{
	for (int i = 0; i < D; i++)
		to[i] += a * x[i];
}

/* One row of one head, in doubles. */
static void row(int t, int n, float *const *x, double *o, double *const *g)
{
	static double p[T], gp[T];
	double m = -INFINITY, z = 0, r = 0;

	for (int u = 0; u < n; u++) {
		p[u] = 0.25 * dot(x[0] + t * D, x[1] + u * D);
		m = p[u] > m ? p[u] : m;
	}
	for (int u = 0; u < n; u++)
		z += p[u] = exp(p[u] - m);
	for (int u = 0; u < n; u++) {
		p[u] /= z;
		gp[u] = dot(x[3] + t * D, x[2] + u * D);
		r += p[u] * gp[u];
		add(o + t * D, p[u], x[2] + u * D);
		add(g[2] + u * D, p[u], x[3] + t * D);
	}
	for (int u = 0; u < n; u++) {
		double gs = 0.25 * p[u] * (gp[u] - r);

		add(g[0] + t * D, gs, x[1] + u * D);
		add(g[1] + u * D, gs, x[0] + t * D);
	}
}

static void near(const float *have, const double *want)
{
	for (int i = 0; i < N; i++)
		if (!(fabs(have[i] - want[i]) <= 2e-5 * (1 + fabs(want[i]))))
			fail_msg("element %d is %.9g, not %.9g", i,
				(double)have[i], want[i]);
}

static void right(const struct result *r)
{
	double *want[4];
	float *x[4];

	for (int i = 0; i < 4; i++) {
		x[i] = data(i + 1);
		want[i] = calloc(N, sizeof **want);
		assert_non_null(want[i]);
	}
	for (int h = 0; h < HEADS; h++) {
		float *xh[4];
		double *g[3];

		for (int i = 0; i < 4; i++)
			xh[i] = x[i] + h * T * D;
		for (int i = 0; i < 3; i++)
			g[i] = want[i + 1] + h * T * D;
		for (int t = 0; t < T; t++)
			row(t, t + 1, xh, want[0] + h * T * D, g);
	}
	near(r->o, want[0]);
	for (int i = 0; i < 3; i++)
		near(r->g[i], want[i + 1]);
	for (int i = 0; i < 4; i++) {
		free(x[i]);
		free(want[i]);
	}
}

static void test_attention(void **state)
{
	struct result one = run(1), two = run(2);

	(void)state;
	right(&one);
	assert_memory_equal(one.o, two.o, N * sizeof *one.o);
	for (int i = 0; i < 3; i++)
		assert_memory_equal(one.g[i], two.g[i], N * sizeof *one.o);
	/* a square of scores of one head, for one thread, would be more */
	assert_true(one.bytes < (int64_t)T * T * (int64_t)sizeof(float));
	free_result(&one);
	free_result(&two);
}

/* ---- a sum in pieces ---- */

enum { ROWS = 20, COLUMNS = 24, LONG = 40009 };

static void product(int threads, const float *x, const float *y, float *o)
{
	const int64_t xs[] = {ROWS, LONG}, ys[] = {LONG, COLUMNS};
	tn_options opt = TN_OPTIONS_INIT;
	tn_context *c;

	opt.threads = threads;
	assert_int_equal(tn_context_new(&c, &opt), TN_OK);
	assert_int_equal(tn_scope_enter(c), TN_OK);
	for (int again = 0; again < 2; again++) /* scratch is used already */
		assert_int_equal(
			tn_read(tn_relu(tn_matmul(tn_tensor_new(c, TN_F32, 2,
							  xs, x),
					tn_tensor_new(c, TN_F32, 2, ys, y))),
				o, ROWS * COLUMNS * sizeof *o),
			TN_OK);
	assert_int_equal(tn_scope_leave(c), TN_OK);
	tn_context_free(c);
}

static void test_long_sum(void **state)
{
	float *x = malloc(ROWS * LONG * sizeof *x);
	float *y = malloc(LONG * COLUMNS * sizeof *y);
	float one[ROWS * COLUMNS], two[ROWS * COLUMNS];

	(void)state;
	assert_true(x != NULL && y != NULL);
	tn_fill_random(TN_F32, x, ROWS * LONG, 1, 0, 0);
	tn_fill_random(TN_F32, y, LONG * COLUMNS, 2, 0, 0);
	product(1, x, y, one);
	product(2, x, y, two);
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++) {
			double want = 0, size = 0, have = one[COLUMNS * i + j];

			for (int k = 0; k < LONG; k++) {
				double p = (double)x[LONG * i + k] *
					   (double)y[COLUMNS * k + j];

				want += p;
				size += fabs(p);
			}
			want = want > 0 ? want : 0;
			/* a piece of a sixteenth, and what joins them */
			if (fabs(have - want) > size * 0x1p-24 * (LONG / 16 + 64))
				fail_msg("%d, %d: %g, not %g", i, j, have, want);
		}
	assert_memory_equal(one, two, sizeof one);
	free(x);
	free(y);
}

/* ---- rows of keys in blocks ---- */

/* So many queries that what lies between the steps is no matter of the caches:
 * then they are one kernel. */
enum { QUERIES = 384, KEYS = 32768 };

static int64_t long_rows(int threads, float *const *x, float *o)
{
	const int64_t qs[] = {1, 1, QUERIES, D}, ks[] = {1, 1, KEYS, D};
	tn_options opt = TN_OPTIONS_INIT;
	tn_tensor *in[3];
	tn_context *c;
	tn_stats s;

	opt.threads = threads;
	assert_int_equal(tn_context_new(&c, &opt), TN_OK);
	assert_int_equal(tn_scope_enter(c), TN_OK);
	for (int i = 0; i < 3; i++)
		in[i] = tn_tensor_new(c, TN_F32, 4, i == 0 ? qs : ks, x[i]);
	assert_int_equal(
		tn_read(tn_attention(in[0], in[1], in[2], false, 0.25), o,
			QUERIES * D * sizeof *o),
		TN_OK);
	tn_context_stats(c, &s);
	assert_int_equal(tn_scope_leave(c), TN_OK);
	tn_context_free(c);
	return s.bytes_plans;
}

/* Maxima that come late, and scores that weigh nothing. */
static void long_data(float **x)
{
	for (int i = 0; i < 3; i++) {
		x[i] = malloc((size_t)KEYS * D * sizeof **x);
		assert_non_null(x[i]);
		tn_fill_random(TN_F32, x[i], KEYS * D, (uint64_t)i + 7, 0, 0);
	}
	for (int u = 0; u < KEYS; u++)
		for (int i = 0; i < D; i++)
			x[1][D * u + i] *= 1 + 8 * (float)u / KEYS;
}

static void test_long_rows(void **state)
{
	float one[QUERIES * D], two[QUERIES * D], *x[3];
	int64_t bytes;

	(void)state;
	long_data(x);
	bytes = long_rows(1, x, one);
	long_rows(2, x, two);
	assert_memory_equal(one, two, sizeof one);
	/* scores and weights of four of the rows would be as much */
	assert_true(bytes < 4 * 2 * KEYS * (int64_t)sizeof(float));
	for (int t = 0; t < QUERIES; t++) {
		double m = -INFINITY, z = 0, o[D] = {0};

		for (int u = 0; u < KEYS; u++)
			m = fmax(m, 0.25 * dot(x[0] + t * D, x[1] + u * D));
		for (int u = 0; u < KEYS; u++) {
			double p = exp(0.25 * dot(x[0] + t * D, x[1] + u * D) -
				       m);

			z += p;
			add(o, p, x[2] + u * D);
		}
		for (int i = 0; i < D; i++)
			if (!(fabs(one[D * t + i] - o[i] / z) <= 1e-4))
				fail_msg("row %d: %.9g, not %.9g", t,
					(double)one[D * t + i], o[i] / z);
	}
	for (int i = 0; i < 3; i++)
		free(x[i]);
}

/* Products too small for tiles: the rows stay as they were. */
enum { BATCH = 40, FEW = 3, MANY = 5000, E = 6 };

static void row_of(const float *q, const float *k, const float *v, double *o)
{
	double m = -INFINITY, z = 0, a[MANY];

	for (int u = 0; u < MANY; u++) {
		a[u] = 0;
		for (int e = 0; e < E; e++)
			a[u] += 0.25 * (double)(q[e] * k[E * u + e]);
		m = fmax(m, a[u]);
	}
	memset(o, 0, E * sizeof *o);
	for (int u = 0; u < MANY; u++) {
		z += exp(a[u] - m);
		for (int e = 0; e < E; e++)
			o[e] += exp(a[u] - m) * (double)v[E * u + e];
	}
	for (int e = 0; e < E; e++)
		o[e] /= z;
}

static void test_long_rows_alone(void **state)
{
	const int64_t qs[] = {BATCH, 1, FEW, E}, ks[] = {BATCH, 1, MANY, E};
	float *x[3], o[BATCH * FEW * E];
	tn_tensor *in[3];
	tn_context *c;

	(void)state;
	assert_int_equal(tn_context_new(&c, NULL), TN_OK);
	assert_int_equal(tn_scope_enter(c), TN_OK);
	for (int i = 0; i < 3; i++) {
		x[i] = malloc(sizeof **x * BATCH * MANY * E);
		assert_non_null(x[i]);
		tn_fill_random(TN_F32, x[i], BATCH * MANY * E, (uint64_t)i, 0,
			0);
		in[i] = tn_tensor_new(c, TN_F32, 4, i == 0 ? qs : ks, x[i]);
	}
	assert_int_equal(tn_read(tn_attention(in[0], in[1], in[2], false, 0.25),
				 o, sizeof o),
		TN_OK);
	for (int r = 0; r < BATCH * FEW; r++) {
		int64_t h = r / FEW * MANY * E;
		double want[E];

		row_of(x[0] + r * E, x[1] + h, x[2] + h, want);
		for (int e = 0; e < E; e++)
			if (!(fabs(o[r * E + e] - want[e]) <= 1e-4))
				fail_msg("row %d: %.9g, not %.9g", r,
					(double)o[r * E + e], want[e]);
	}
	for (int i = 0; i < 3; i++)
		free(x[i]);
	assert_int_equal(tn_scope_leave(c), TN_OK);
	tn_context_free(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attention),
		cmocka_unit_test(test_long_sum),
		cmocka_unit_test(test_long_rows),
		cmocka_unit_test(test_long_rows_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
