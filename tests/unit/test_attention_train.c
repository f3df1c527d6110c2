/*
 * test_attention_train.c: attention and its gradient where no kernel stores scores: each
 * kernel computes those that it reads, keys go by in blocks, and on GPUs each warp has
 * rows of its own. Against doubles, one row after the other, in f32 and bf16, with and
 * without a causal mask, and with lengths that fill no block.
 */
#include "tenon.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

enum { Q, K, V, G, N_IN };

struct job {
	const char *device;
	tn_dtype dtype;
	int heads, t, u, d;
	bool causal;
	double error; /* root of the mean square, in parts of that of the values */
};

static double scale_of(const struct job *j)
{
	return 1 / sqrt(j->d);
}

static int64_t size_of(const struct job *j, int i)
{
	return (int64_t)j->heads * (i == Q || i == G ? j->t : j->u) * j->d;
}

/* An input that has values of the dtype, in f32: for the gradient, and what they are. */
static tn_tensor *input(tn_context *c, const struct job *j, int i, float *x)
{
	const int64_t shape[] = {1, j->heads, i == Q || i == G ? j->t : j->u, j->d};
	int64_t n = size_of(j, i);
	tn_tensor *t;

	tn_fill_random(TN_F32, x, n, (uint64_t)(i + 1), 0, 0);
	t = tn_tensor_new(c, TN_F32, 4, shape, x);
	t = tn_cast(tn_cast(t, j->dtype), TN_F32);
	assert_int_equal(tn_read(t, x, (size_t)n * sizeof *x), TN_OK);
	return tn_tensor_new(c, TN_F32, 4, shape, x);
}

static void read_into(tn_tensor *t, float *x, int64_t n)
{
	assert_int_equal(tn_read(tn_cast(t, TN_F32), x, (size_t)n * sizeof *x), TN_OK);
}

/* out: the result, and the gradients of Q, K, V */
static void run(const struct job *j, float *const *x, float *const *out)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_tensor *in[N_IN], *result, *grad[3];
	tn_context *c;

	o.threads = 2;
	o.device = j->device;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	assert_int_equal(tn_scope_enter(c), TN_OK);
	for (int i = 0; i < N_IN; i++)
		in[i] = input(c, j, i, x[i]);
	for (int i = 0; i < G; i++)
		assert_int_equal(tn_requires_grad(in[i]), TN_OK);
	result = tn_attention(tn_cast(in[Q], j->dtype), tn_cast(in[K], j->dtype),
		tn_cast(in[V], j->dtype), j->causal, scale_of(j));
	assert_int_equal(tn_backward(result, tn_cast(in[G], j->dtype)), TN_OK);
	for (int i = 0; i < 3; i++)
		grad[i] = tn_gradient(in[i]);
	assert_int_equal(tn_eval(grad, 3), TN_OK);
	read_into(result, out[0], size_of(j, Q));
	for (int i = 0; i < 3; i++)
		read_into(grad[i], out[i + 1], size_of(j, i));
	assert_int_equal(tn_scope_leave(c), TN_OK);
	tn_context_free(c);
}

static double dot(const struct job *j, const float *x, const float *y)
{
	double s = 0;

	for (int i = 0; i < j->d; i++)
		s += (double)x[i] * (double)y[i];
	return s;
}

static void add(const struct job *j, double *to, double a, const float *x)
{
	for (int i = 0; i < j->d; i++)
		to[i] += a * (double)x[i];
}

/* One row of one head, in doubles; p, gp: room for a row. */
static void row(const struct job *j, int t, float *const *x, double *const *want,
	double *p, double *gp)
{
	int n = j->causal && t + 1 < j->u ? t + 1 : j->u, d = j->d;
	double m = -INFINITY, z = 0, r = 0;

	for (int u = 0; u < n; u++) {
		p[u] = scale_of(j) * dot(j, x[Q] + t * d, x[K] + u * d);
		m = p[u] > m ? p[u] : m;
	}
	for (int u = 0; u < n; u++)
		z += p[u] = exp(p[u] - m);
	for (int u = 0; u < n; u++) {
		p[u] /= z;
		gp[u] = dot(j, x[G] + t * d, x[V] + u * d);
		r += p[u] * gp[u];
		add(j, want[0] + t * d, p[u], x[V] + u * d);
		add(j, want[3] + u * d, p[u], x[G] + t * d);
	}
	for (int u = 0; u < n; u++) {
		double gs = scale_of(j) * p[u] * (gp[u] - r);

		add(j, want[1] + t * d, gs, x[K] + u * d);
		add(j, want[2] + u * d, gs, x[Q] + t * d);
	}
}

static void compute(const struct job *j, float *const *x, double *const *want)
{
	double *p = calloc((size_t)j->u, sizeof *p), *gp = calloc((size_t)j->u, sizeof *gp);

	assert_true(p != NULL && gp != NULL);
	for (int h = 0; h < j->heads; h++) {
		const int64_t of_q = (int64_t)h * j->t * j->d, of_k = (int64_t)h * j->u * j->d;
		float *xh[] = {x[Q] + of_q, x[K] + of_k, x[V] + of_k, x[G] + of_q};
		double *w[] = {want[0] + of_q, want[1] + of_q, want[2] + of_k, want[3] + of_k};

		for (int t = 0; t < j->t; t++)
			row(j, t, xh, w, p, gp);
	}
	free(p);
	free(gp);
}

static void near(const struct job *j, int of, const float *have, const double *want,
	int64_t n)
{
	double square = 0, error = 0;

	for (int64_t i = 0; i < n; i++) {
		double e = (double)have[i] - want[i];

		square += want[i] * want[i];
		error += e * e;
	}
	if (!(sqrt(error) <= j->error * sqrt(square)))
		fail_msg("result %d on %s, %d x %d of %d: an error of %g", of,
			j->device != NULL ? j->device : "cpu", j->t, j->u, j->d,
			sqrt(error / square));
}

static void check(const struct job *j)
{
	float *x[N_IN], *out[4];
	double *want[4];
	const int like[] = {Q, Q, K, V};

	for (int i = 0; i < N_IN; i++) {
		x[i] = calloc((size_t)size_of(j, i), sizeof **x);
		out[i] = calloc((size_t)size_of(j, like[i]), sizeof **out);
		want[i] = calloc((size_t)size_of(j, like[i]), sizeof **want);
		assert_true(x[i] != NULL && out[i] != NULL && want[i] != NULL);
	}
	run(j, x, out);
	compute(j, x, want);
	for (int i = 0; i < 4; i++)
		near(j, i, out[i], want[i], size_of(j, like[i]));
	for (int i = 0; i < N_IN; i++) {
		free(x[i]);
		free(out[i]);
		free(want[i]);
	}
}

static void test_cpu(void **state)
{
	static const struct job jobs[] = {
		{NULL, TN_F32, 2, 1200, 1100, 16, true, 1e-5},
		{NULL, TN_F32, 1, 1100, 1300, 24, false, 1e-5},
		{NULL, TN_BF16, 2, 1200, 1100, 16, true, 0.015},
		{NULL, TN_F16, 1, 1100, 1200, 16, false, 0.002},
		{NULL, TN_F32, 8, 200, 150, 16, true, 1e-5}, /* scores are stored */
	};

	(void)state;
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
		check(&jobs[i]);
}

static void test_warps(void **state)
{
	static const struct job jobs[] = {
		{"simt", TN_BF16, 32, 128, 128, 32, false, 0.015},
		{"simt", TN_BF16, 16, 200, 168, 32, true, 0.015},
		{"simt", TN_F32, 2, 100, 70, 16, true, 1e-5},
	};

	(void)state;
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
		check(&jobs[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu),
		cmocka_unit_test(test_warps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
