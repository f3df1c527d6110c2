/*
 * nn/: each layer against plain loops, compiled and interpreted; gradients
 * against difference quotients; batch norm's running statistics.
 */
#include "nn_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Elements of a parameter, as doubles. */
static const double *values(tn_params *p, const char *name, double *to)
{
	tn_tensor *x = tn_params_get(p, name);
	int64_t n = tn_tensor_n_elems(x);

	assert_non_null(x);
	assert_int_equal(tn_tensor_dtype(x), TN_F64);
	assert_true(n <= ROOM);
	assert_int_equal(
		tn_read(x, to, (size_t)n * sizeof *to), TN_OK);
	return to;
}

/* Everything random, biases and norms too. */
static void scramble(tn_params *p)
{
	double v[ROOM];

	for (int32_t i = 0; i < tn_params_n(p); i++) {
		tn_tensor *x = tn_params_at(p, i);
		int64_t n = tn_tensor_n_elems(x);

		tn_fill_random(TN_F64, v, n, 900 + (uint64_t)i, 0, 0);
		for (int64_t k = 0; k < n; k++)
			if (strstr(tn_params_name(p, i), "var") != NULL)
				v[k] = 1.5 + v[k]; /* a variance is positive */
		assert_int_equal(
			tn_set_data(x, v, (size_t)n * sizeof *v), TN_OK);
	}
}

static tn_tensor *input(
	tn_context *c, double *data, int32_t rank, const int64_t *shape)
{
	int64_t n = 1;

	for (int32_t i = 0; i < rank; i++)
		n *= shape[i];
	assert_true(n <= ROOM);
	tn_fill_random(TN_F64, data, n, 77, 0, 0);
	return tn_parameter(c, "x", TN_F64, rank, shape, data);
}

static void same(tn_context *c, tn_tensor *y, int64_t n, const double *want)
{
	double got[ROOM];

	if (!tn_is_valid(y))
		fail_msg("%s", tn_context_diag(c)->text);
	assert_int_equal(tn_tensor_n_elems(y), n);
	if (tn_read(y, got, (size_t)n * sizeof *got) < 0)
		fail_msg("%s", tn_context_diag(c)->text);
	for (int64_t i = 0; i < n; i++)
		if (!(fabs(got[i] - want[i]) <= 1e-12 * (1 + fabs(want[i]))))
			fail_msg("element %d: %.17g, not %.17g", (int)i,
				got[i], want[i]);
}

/* ---- gradients ---- */

static double loss_of(tn_layer *l, tn_tensor *x, tn_tensor *seed)
{
	tn_context *c = tn_tensor_context(x);
	tn_tensor *s;
	double v;

	tn_scope_enter(c);
	tn_no_grad_enter(c);
	s = tn_reduce_sum(tn_mul(tn_nn_forward(l, x), seed), NULL, 0, false);
	v = tn_item(s);
	tn_no_grad_leave(c);
	tn_scope_leave(c);
	return v;
}

static void check_gradient(tn_layer *l, tn_tensor *x, tn_tensor *seed,
	tn_tensor *q, const char *name)
{
	const double h = 1e-5;
	double v[ROOM], g[ROOM];
	int64_t n = tn_tensor_n_elems(q);
	size_t n_bytes = (size_t)n * sizeof *v;

	assert_true(n <= ROOM);
	assert_int_equal(tn_read(q, v, n_bytes), TN_OK);
	assert_non_null(tn_gradient(q));
	assert_int_equal(tn_read(tn_gradient(q), g, n_bytes), TN_OK);
	for (int64_t i = 0; i < n; i++) {
		double old = v[i], up, down, want;

		v[i] = old + h;
		tn_set_data(q, v, n_bytes);
		up = loss_of(l, x, seed);
		v[i] = old - h;
		tn_set_data(q, v, n_bytes);
		down = loss_of(l, x, seed);
		v[i] = old;
		tn_set_data(q, v, n_bytes);
		want = (up - down) / (2 * h);
		if (!(fabs(g[i] - want) <= 1e-6 * (1 + fabs(want))))
			fail_msg("gradient of %s[%d]: %g, not %g", name,
				(int)i, g[i], want);
	}
}

/* With respect to x and all that is trained. */
static void check_gradients(tn_params *p, tn_layer *l, tn_tensor *x)
{
	tn_context *c = tn_params_context(p);
	tn_tensor *y = tn_nn_forward(l, x), *seed;
	double v[ROOM];

	assert_true(tn_tensor_n_elems(y) <= ROOM);
	tn_fill_random(TN_F64, v, tn_tensor_n_elems(y), 5, 0, 0);
	seed = tn_tensor_new(
		c, TN_F64, tn_tensor_rank(y), tn_tensor_shape(y), v);
	tn_backward(y, seed);
	if (tn_context_status(c) < 0)
		fail_msg("%s", tn_context_diag(c)->text);
	if (tn_tensor_dtype(x) == TN_F64)
		check_gradient(l, x, seed, x, "x");
	for (int32_t i = 0; i < tn_params_n(p); i++)
		if (tn_params_is_trained(p, i))
			check_gradient(l, x, seed, tn_params_at(p, i),
				tn_params_name(p, i));
		else
			assert_null(tn_gradient(tn_params_at(p, i)));
	assert_int_equal(tn_context_status(c), TN_OK);
}

/* ---- linear, embedding ---- */

enum { B = 4, IN = 3, OUT = 5 };

static void linear(bool interp)
{
	tn_nn_linear_options o = TN_NN_LINEAR_OPTIONS_INIT;
	tn_context *c = context(interp);
	tn_params *p = set(c);
	double xd[ROOM], w[ROOM], b[ROOM], want[B * OUT], bare[B * OUT];
	tn_tensor *x = input(c, xd, 3, (int64_t[]){2, B / 2, IN});
	tn_layer *l, *no_bias;

	o.dtype = TN_F64;
	l = tn_nn_linear(p, "fc", IN, OUT, &o);
	o.no_bias = true;
	no_bias = tn_nn_linear(p, "bare", IN, OUT, &o);
	assert_int_equal(tn_params_n(p), 3);
	scramble(p);
	values(p, "fc.weight", w);
	values(p, "fc.bias", b);
	for (int i = 0; i < B; i++)
		for (int f = 0; f < OUT; f++) {
			want[i * OUT + f] = b[f];
			for (int k = 0; k < IN; k++)
				want[i * OUT + f] +=
					xd[i * IN + k] * w[f * IN + k];
		}
	values(p, "bare.weight", w);
	for (int i = 0; i < B; i++)
		for (int f = 0; f < OUT; f++) {
			bare[i * OUT + f] = 0;
			for (int k = 0; k < IN; k++)
				bare[i * OUT + f] +=
					xd[i * IN + k] * w[f * IN + k];
		}
	same(c, tn_nn_forward(l, x), B * OUT, want);
	same(c, tn_nn_forward(no_bias, x), B * OUT, bare);
	tn_params_free(p);
	tn_context_free(c);
}

static void embedding(bool interp)
{
	static const int64_t ids[] = {4, 0, 4, 2};
	tn_nn_embedding_options o = TN_NN_EMBEDDING_OPTIONS_INIT;
	tn_context *c = context(interp);
	tn_params *p = set(c);
	double w[ROOM], want[4 * 3];
	tn_tensor *x = tn_tensor_new(c, TN_I64, 2, ((int64_t[]){2, 2}), ids);
	tn_layer *l;

	o.dtype = TN_F64;
	l = tn_nn_embedding(p, "tok", 5, 3, &o);
	values(p, "tok.weight", w);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 3; k++)
			want[i * 3 + k] = w[ids[i] * 3 + k];
	same(c, tn_nn_forward(l, x), 12, want);
	if (interp)
		check_gradients(p, l, x);
	tn_params_free(p);
	tn_context_free(c);
}

static void test_linear(void **state)
{
	(void)state;
	for (int interp = 0; interp < 2; interp++) {
		linear(interp);
		embedding(interp);
	}
}

/* ---- norms ---- */

enum { N = 6 };

static void row_norms(bool interp)
{
	tn_nn_norm_options o = TN_NN_NORM_OPTIONS_INIT;
	tn_context *c = context(interp);
	tn_params *p = set(c);
	double xd[ROOM], w[ROOM], b[ROOM], want[B * N], rms[B * N];
	tn_tensor *x = input(c, xd, 3, (int64_t[]){2, B / 2, N});
	tn_layer *l, *r;

	o.dtype = TN_F64;
	o.eps = 1e-3;
	l = tn_nn_layer_norm(p, "ln", N, &o);
	same(c, tn_params_get(p, "ln.weight"), N,
		(const double[N]){1, 1, 1, 1, 1, 1});
	same(c, tn_params_get(p, "ln.bias"), N, (const double[N]){0});
	r = tn_nn_rms_norm(p, "rms", N, &o);
	assert_int_equal(tn_params_n(p), 3);
	scramble(p);
	values(p, "ln.weight", w);
	values(p, "ln.bias", b);
	for (int i = 0; i < B; i++) {
		const double *v = &xd[i * N];
		double mean = 0, var = 0, sq = 0, g[N];

		for (int k = 0; k < N; k++) {
			mean += v[k] / N;
			sq += v[k] * v[k] / N;
		}
		for (int k = 0; k < N; k++)
			var += (v[k] - mean) * (v[k] - mean) / N;
		for (int k = 0; k < N; k++) {
			want[i * N + k] =
				(v[k] - mean) / sqrt(var + 1e-3) * w[k] + b[k];
			values(p, "rms.weight", g);
			rms[i * N + k] = v[k] / sqrt(sq + 1e-3) * g[k];
		}
	}
	same(c, tn_nn_forward(l, x), B * N, want);
	same(c, tn_nn_forward(r, x), B * N, rms);
	tn_params_free(p);
	tn_context_free(c);
}

enum { CH = 3, S = 2 };

/* x (B, CH, S, S); out NULL: statistics alone, which move by momentum 1/4. */
static void plain_batch_norm(const double *x, const double *w,
	const double *b, double *mean, double *var, double *out, bool training)
{
	for (int k = 0; k < CH; k++) {
		double m = 0, v = 0, n = B * S * S;

		for (int i = 0; i < B; i++)
			for (int s = 0; s < S * S; s++)
				m += x[(i * CH + k) * S * S + s] / n;
		for (int i = 0; i < B; i++)
			for (int s = 0; s < S * S; s++)
				v += pow(x[(i * CH + k) * S * S + s] - m, 2) /
					n;
		if (!training) {
			m = mean[k];
			v = var[k];
		}
		for (int i = 0; i < B * S * S; i++) {
			int at = (i / (S * S) * CH + k) * S * S + i % (S * S);

			out[at] = (x[at] - m) / sqrt(v + 1e-5) * w[k] + b[k];
		}
		if (training) {
			mean[k] += (m - mean[k]) / 4;
			var[k] += (v - var[k]) / 4;
		}
	}
}

static void batch_norm(bool interp)
{
	tn_nn_norm_options o = TN_NN_NORM_OPTIONS_INIT;
	int64_t shape[] = {B, CH, S, S};
	tn_context *c = context(interp);
	tn_params *p = set(c);
	double xd[ROOM], w[ROOM], b[ROOM], want[B * CH * S * S];
	double mean[CH] = {0}, var[CH] = {1, 1, 1};
	tn_layer *l;

	o.dtype = TN_F64;
	o.momentum = 0.25;
	l = tn_nn_batch_norm(p, "bn", CH, &o);
	assert_int_equal(tn_params_n(p), 4);
	assert_false(tn_params_is_trained(p, 2));
	assert_string_equal(tn_params_name(p, 3), "bn.running_var");
	same(c, tn_params_get(p, "bn.running_mean"), CH, mean);
	same(c, tn_params_get(p, "bn.running_var"), CH, var);
	tn_init_uniform(tn_params_get(p, "bn.weight"), 0.5, 2);
	tn_init_normal(tn_params_get(p, "bn.bias"), 0, 1);
	values(p, "bn.weight", w);
	values(p, "bn.bias", b);
	for (int step = 0; step < 5; step++) {
		bool training = step < 3; /* then twice without */
		tn_tensor *x;

		tn_scope_enter(c);
		tn_fill_random(TN_F64, xd, B * CH * S * S,
			50 + (uint64_t)step, 0, 0);
		x = tn_tensor_new(c, TN_F64, 4, shape, xd);
		tn_params_set_training(p, training);
		plain_batch_norm(xd, w, b, mean, var, want, training);
		same(c, tn_nn_forward(l, x), B * CH * S * S, want);
		same(c, tn_params_get(p, "bn.running_mean"), CH, mean);
		same(c, tn_params_get(p, "bn.running_var"), CH, var);
		tn_scope_leave(c);
	}
	tn_params_free(p);
	tn_context_free(c);
}

static void test_norms(void **state)
{
	(void)state;
	for (int interp = 0; interp < 2; interp++) {
		row_norms(interp);
		batch_norm(interp);
	}
}

/* ---- convolution ---- */

/* x (2, 4, 5, 6), kernels 3 x 2, stride (2, 1), padding (1, 2), dilation
 * (1, 2), two groups: y (2, 6, 3, 8) */
enum { CI = 4, CO = 6, H = 5, W = 6, KH = 3, KW = 2, G = 2, HO = 3, WO = 8 };

static double plain_conv(const double *x, const double *w, int i, int f, int r,
	int q)
{
	int cg = CI / G, g = f / (CO / G);
	double s = 0;

	for (int k = 0; k < cg; k++)
		for (int a = 0; a < KH; a++)
			for (int b = 0; b < KW; b++) {
				int y = 2 * r + a - 1, z = q + 2 * b - 2;

				if (y >= 0 && y < H && z >= 0 && z < W)
					s += x[((i * CI + g * cg + k) * H + y) *
							     W +
						     z] *
					     w[((f * cg + k) * KH + a) * KW +
						     b];
			}
	return s;
}

static void conv2d(bool interp)
{
	tn_nn_conv2d_options o = TN_NN_CONV2D_OPTIONS_INIT;
	tn_context *c = context(interp);
	tn_params *p = set(c);
	double xd[ROOM], w[ROOM], b[ROOM];
	static double want[2 * CO * HO * WO], bare[2 * CO * HO * WO];
	tn_tensor *x = input(c, xd, 4, (int64_t[]){2, CI, H, W});
	tn_layer *l, *no_bias;
	int at = 0;

	o.dtype = TN_F64;
	o.stride[0] = 2;
	o.padding[0] = 1;
	o.padding[1] = 2;
	o.dilation[1] = 2;
	o.groups = G;
	l = tn_nn_conv2d(p, "conv", CI, CO, KH, KW, &o);
	o.no_bias = true;
	no_bias = tn_nn_conv2d(p, "bare", CI, CO, KH, KW, &o);
	assert_int_equal(tn_params_n(p), 3);
	scramble(p);
	values(p, "conv.weight", w);
	values(p, "conv.bias", b);
	for (int i = 0; i < 2; i++)
		for (int f = 0; f < CO; f++)
			for (int r = 0; r < HO; r++)
				for (int q = 0; q < WO; q++)
					want[at++] = b[f] +
						plain_conv(xd, w, i, f, r, q);
	values(p, "bare.weight", w);
	at = 0;
	for (int i = 0; i < 2; i++)
		for (int f = 0; f < CO; f++)
			for (int r = 0; r < HO; r++)
				for (int q = 0; q < WO; q++)
					bare[at++] =
						plain_conv(xd, w, i, f, r, q);
	same(c, tn_nn_forward(l, x), at, want);
	same(c, tn_nn_forward(no_bias, x), at, bare);
	tn_params_free(p);
	tn_context_free(c);
}

static void test_conv2d(void **state)
{
	(void)state;
	conv2d(false);
	conv2d(true);
}

/* ---- attention ---- */

enum { T = 4, HEADS = 4, D = 2, WIDTH = HEADS * D };

/* y (n, out) = x (n, in) w (out, in)' + b */
static void plain_linear(const double *x, const double *w, const double *b,
	int n, int in, int out, double *y)
{
	for (int i = 0; i < n; i++)
		for (int f = 0; f < out; f++) {
			y[i * out + f] = b[f];
			for (int k = 0; k < in; k++)
				y[i * out + f] += x[i * in + k] * w[f * in + k];
		}
}

/* One head h on one sequence: o (T, WIDTH) at its columns. */
static void plain_head(const double *q, const double *k, const double *v,
	int kv, int h, bool causal, double *o)
{
	int width = kv * D, from = h / (HEADS / kv) * D;

	for (int t = 0; t < T; t++) {
		int last = causal ? t : T - 1;
		double e[T], z = 0;

		for (int u = 0; u <= last; u++) {
			double s = 0;

			for (int d = 0; d < D; d++)
				s += q[t * WIDTH + h * D + d] *
					k[u * width + from + d];
			e[u] = exp(s / sqrt(D));
			z += e[u];
		}
		for (int d = 0; d < D; d++) {
			double s = 0;

			for (int u = 0; u <= last; u++)
				s += e[u] / z * v[u * width + from + d];
			o[t * WIDTH + h * D + d] = s;
		}
	}
}

static void attention(bool interp, bool causal, int kv)
{
	tn_nn_attention_options o = TN_NN_ATTENTION_OPTIONS_INIT;
	tn_context *c = context(interp);
	tn_params *p = set(c);
	double xd[ROOM], w[ROOM], b[ROOM], want[B * T * WIDTH];
	double q[T * WIDTH], k[T * WIDTH], v[T * WIDTH], out[T * WIDTH];
	tn_tensor *x = input(c, xd, 3, (int64_t[]){B, T, WIDTH}), *one;
	tn_layer *l;

	o.dtype = TN_F64;
	o.causal = causal;
	o.kv_heads = kv;
	l = tn_nn_attention(p, "a", WIDTH, HEADS, &o);
	assert_int_equal(tn_params_n(p), 8);
	scramble(p);
	for (int i = 0; i < B; i++) {
		const double *xi = &xd[i * T * WIDTH];

		plain_linear(xi, values(p, "a.query.weight", w),
			values(p, "a.query.bias", b), T, WIDTH, WIDTH, q);
		plain_linear(xi, values(p, "a.key.weight", w),
			values(p, "a.key.bias", b), T, WIDTH, kv * D, k);
		plain_linear(xi, values(p, "a.value.weight", w),
			values(p, "a.value.bias", b), T, WIDTH, kv * D, v);
		for (int h = 0; h < HEADS; h++)
			plain_head(q, k, v, kv, h, causal, out);
		plain_linear(out, values(p, "a.out.weight", w),
			values(p, "a.out.bias", b), T, WIDTH, WIDTH,
			&want[i * T * WIDTH]);
	}
	same(c, tn_nn_forward(l, x), B * T * WIDTH, want);
	one = tn_select(x, 0, 1); /* without a batch */
	same(c, tn_nn_forward(l, one), T * WIDTH, &want[T * WIDTH]);
	tn_params_free(p);
	tn_context_free(c);
}

static void test_attention(void **state)
{
	(void)state;
	for (int interp = 0; interp < 2; interp++) {
		attention(interp, true, HEADS);
		attention(interp, true, 2);
	}
	attention(true, false, HEADS);
	attention(true, false, 1);
}

/* ---- gradients of all ---- */

static void test_gradients(void **state)
{
	tn_nn_linear_options lo = TN_NN_LINEAR_OPTIONS_INIT;
	tn_nn_norm_options no = TN_NN_NORM_OPTIONS_INIT;
	tn_nn_conv2d_options co = TN_NN_CONV2D_OPTIONS_INIT;
	tn_nn_attention_options ao = TN_NN_ATTENTION_OPTIONS_INIT;
	int64_t flat[] = {3, 4}, pictures[] = {2, 2, 4, 3};

	(void)state;
	lo.dtype = no.dtype = co.dtype = ao.dtype = TN_F64;
	co.stride[0] = 2;
	co.padding[1] = 1;
	ao.causal = true;
	ao.kv_heads = 1;
	for (int kind = 0; kind < 7; kind++) {
		tn_context *c = context(true);
		tn_params *p = set(c);
		double xd[ROOM];
		bool is_flat = kind < 4;
		tn_tensor *x = input(c, xd, is_flat ? 2 : 4,
			is_flat ? flat : pictures);
		tn_layer *l = kind == 0   ? tn_nn_linear(p, "l", 4, 3, &lo)
			      : kind == 1 ? tn_nn_layer_norm(p, "l", 4, &no)
			      : kind == 2 ? tn_nn_rms_norm(p, "l", 4, &no)
			      : kind == 3 ? tn_nn_attention(p, "l", 4, 2, &ao)
			      : kind == 4
				      ? tn_nn_conv2d(p, "l", 2, 3, 2, 2, &co)
				      : tn_nn_batch_norm(p, "l", 2, &no);

		scramble(p);
		tn_params_set_training(p, kind != 6);
		check_gradients(p, l, x);
		tn_params_free(p);
		tn_context_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linear),
		cmocka_unit_test(test_norms),
		cmocka_unit_test(test_conv2d),
		cmocka_unit_test(test_attention),
		cmocka_unit_test(test_gradients),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
