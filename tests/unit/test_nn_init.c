/*
 * nn/: layers of other dtypes; dropout; initialisers; what is refused.
 */
#include "nn_set.h"

#include <math.h>
#include <stdlib.h>

/* ---- other dtypes ---- */

/* Every layer in t on data that t has exactly: near what f64 gives. */
static void dtype(tn_dtype t, double tolerance)
{
	tn_nn_linear_options lo = TN_NN_LINEAR_OPTIONS_INIT;
	tn_nn_norm_options no = TN_NN_NORM_OPTIONS_INIT;
	tn_nn_conv2d_options co = TN_NN_CONV2D_OPTIONS_INIT;
	tn_nn_attention_options ao = TN_NN_ATTENTION_OPTIONS_INIT;
	int64_t shape[] = {2, 2, 4, 4}, flat[] = {4, 4, 4}, n;
	tn_context *c = context(true);
	double got[2][ROOM], v[ROOM];

	for (int kind = 0; kind < 6; kind++)
		for (int i = 0; i < 2; i++) {
			tn_params *p = set(c);
			tn_tensor *x, *y;
			tn_layer *l;

			lo.dtype = no.dtype = co.dtype = ao.dtype =
				i == 0 ? TN_F64 : t;
			l = kind == 0	? tn_nn_linear(p, "l", 4, 3, &lo)
			    : kind == 1 ? tn_nn_layer_norm(p, "l", 4, &no)
			    : kind == 2 ? tn_nn_rms_norm(p, "l", 4, &no)
			    : kind == 3 ? tn_nn_conv2d(p, "l", 2, 2, 2, 2, &co)
			    : kind == 4
				    ? tn_nn_attention(p, "l", 4, 2, &ao)
				    : tn_nn_batch_norm(p, "l", 2, &no);
			for (int32_t k = 0; k < tn_params_n(p); k++) {
				x = tn_params_at(p, k);
				n = tn_tensor_n_elems(x);
				for (int64_t e = 0; e < n; e++)
					tn_set_f64(lo.dtype, v, e,
						(double)((e * 5 + k) % 7) / 4);
				tn_set_data(x, v, (size_t)n *
						tn_dtype_bytes(lo.dtype));
			}
			for (int64_t e = 0; e < 64; e++)
				tn_set_f64(lo.dtype, v, e,
					(double)(e * 11 % 17) / 8 - 1);
			x = tn_tensor_new(c, lo.dtype, 4, shape, v);
			if (kind == 4)
				x = tn_reshape(x, flat, 3);
			y = tn_nn_forward(l, x);
			if (!tn_is_valid(y))
				fail_msg("%s", tn_context_diag(c)->text);
			assert_int_equal(tn_tensor_dtype(y), lo.dtype);
			n = tn_tensor_n_elems(y);
			assert_true(n > 0 && n <= ROOM);
			assert_int_equal(tn_read(tn_cast(y, TN_F64), got[i],
						 (size_t)n * sizeof(double)),
				TN_OK);
			for (int64_t e = 0; i == 1 && e < n; e++)
				if (!(fabs(got[1][e] - got[0][e]) <= tolerance *
					    (1 + fabs(got[0][e]))))
					fail_msg("kind %d %s: %g, not %g", kind,
						tn_dtype_name(t), got[1][e],
						got[0][e]);
			tn_params_free(p);
		}
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_context_free(c);
}

static void test_dtypes(void **state)
{
	(void)state;
	dtype(TN_F32, 1e-5);
	dtype(TN_F16, 0.02);
	dtype(TN_BF16, 0.15);
}

/* ---- dropout, initialisers ---- */

static void test_dropout(void **state)
{
	enum { MANY = 4000 };
	static float xd[MANY], y[MANY], z[MANY];
	tn_context *c = context(true);
	int64_t n = MANY;
	int zeros = 0, alike = 0;
	tn_tensor *x;

	(void)state;
	for (int i = 0; i < MANY; i++)
		xd[i] = 3;
	x = tn_tensor_new(c, TN_F32, 1, &n, xd);
	assert_ptr_equal(tn_nn_dropout(x, 0.25, false), x);
	assert_ptr_equal(tn_nn_dropout(x, 0, true), x);
	tn_read(tn_nn_dropout(x, 0.25, true), y, sizeof y);
	tn_read(tn_nn_dropout(x, 0.25, true), z, sizeof z);
	for (int i = 0; i < MANY; i++) {
		assert_true(y[i] == 0 || y[i] == 4);
		zeros += y[i] == 0;
		alike += (y[i] == 0) == (z[i] == 0);
	}
	assert_true(zeros > MANY / 4 - 150 && zeros < MANY / 4 + 150);
	assert_true(alike < MANY * 3 / 4); /* 5/8 by chance */
	assert_null(tn_nn_dropout(x, 1, true));
	assert_string_equal(tn_context_diag(c)->rule, "nn.dropout");
	tn_context_free(c);
}

static void moments(tn_tensor *x, double *mean, double *deviation,
	double *least, double *most)
{
	int64_t n = tn_tensor_n_elems(x);
	float *v = malloc((size_t)n * sizeof *v);

	assert_non_null(v);
	assert_int_equal(tn_read(x, v, (size_t)n * sizeof *v), TN_OK);
	*mean = *deviation = 0;
	*least = *most = (double)v[0];
	for (int64_t i = 0; i < n; i++) {
		*mean += (double)v[i] / (double)n;
		*least = fmin(*least, (double)v[i]);
		*most = fmax(*most, (double)v[i]);
	}
	for (int64_t i = 0; i < n; i++)
		*deviation += pow((double)v[i] - *mean, 2) / (double)n;
	*deviation = sqrt(*deviation);
	free(v);
}

/* (out, in, 3, 3): fan in 20 * 9 = 180, fan out 30 * 9 = 270 */
static void test_initialisers(void **state)
{
	int64_t shape[] = {30, 20, 3, 3};
	tn_context *c = context(true);
	tn_tensor *x = tn_parameter(c, "x", TN_F32, 4, shape, NULL), *y;
	double mean, dev, lo, hi, first, want[7];
	const double of_uniform = 1 / sqrt(3);

	(void)state;
	want[0] = 2 * of_uniform;
	want[1] = 0.5;
	want[2] = sqrt(2.0 / 180);
	want[3] = sqrt(2.0 / 180);
	want[4] = 3 * sqrt(2.0 / 450);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(i == 0 ? tn_init_uniform(x, -1, 3)
				: i == 1 ? tn_init_normal(x, 1, 0.5)
				: i == 2 ? tn_init_kaiming_uniform(x, sqrt(2))
				: i == 3 ? tn_init_kaiming_normal(x, sqrt(2))
					 : tn_init_xavier_uniform(x, 3),
			TN_OK);
		moments(x, &mean, &dev, &lo, &hi);
		assert_true(fabs(dev - want[i]) < 0.03 * want[i]);
		assert_true(fabs(mean - (i < 2)) < 0.05 * want[i]);
		if (i == 0)
			assert_true(lo >= -1 && lo < -0.99 && hi > 2.99 &&
				hi <= 3);
		if (i == 1 || i == 3) /* it has tails */
			assert_true(hi - mean > 3 * dev && hi - mean < 6 * dev);
		if (i == 2 || i == 4)
			assert_true(hi < 1.7321 * want[i] &&
				hi > 1.72 * want[i]);
	}
	tn_init_ones(x);
	moments(x, &mean, &dev, &lo, &hi);
	assert_true(lo == 1 && hi == 1);
	tn_init_zeros(x);
	moments(x, &mean, &dev, &lo, &hi);
	assert_true(lo == 0 && hi == 0);
	/* the same seed, the same values; another key, others */
	tn_set_seed(c, 7);
	tn_init_normal(x, 0, 1);
	moments(x, &first, &dev, &lo, &hi);
	tn_init_normal(x, 0, 1);
	moments(x, &mean, &dev, &lo, &hi);
	assert_true(mean != first);
	tn_set_seed(c, 7);
	tn_init_normal(x, 0, 1);
	moments(x, &mean, &dev, &lo, &hi);
	assert_true(mean == first);
	assert_int_equal(tn_context_status(c), TN_OK);
	y = tn_parameter(c, "y", TN_F32, 1, shape, NULL);
	assert_true(tn_init_kaiming_uniform(y, 1) < 0);
	assert_string_equal(tn_context_diag(c)->rule, "init.rank");
	tn_context_clear(c);
	y = tn_parameter(c, "y", TN_I32, 2, shape, NULL);
	assert_true(tn_init_kaiming_uniform(y, 1) < 0);
	assert_string_equal(tn_context_diag(c)->rule, "init.dtype");
	tn_context_clear(c);
	assert_int_equal(tn_init_constant(y, 3), TN_OK);
	assert_true(tn_item(tn_reduce_max(y, NULL, 0, false)) == 3);
	tn_context_free(c);
}

/* ---- refusals ---- */

static void refused(tn_context *c, tn_layer *l, const char *rule, int line)
{
	assert_null(l);
	assert_string_equal(tn_context_diag(c)->rule, rule);
	assert_int_equal(tn_context_diag(c)->line, line);
	tn_context_clear(c);
}

/* Large ones are drawn by several threads: each element is what it would be. */
static void test_large(void **state)
{
	static float v[(1 << 19) + 777];
	int64_t n = (1 << 19) + 777, key;
	tn_context *c = context(true);
	tn_tensor *x;

	(void)state;
	tn_set_seed(c, 5);
	assert_int_equal(tn_read(tn_random_key(c), &key, sizeof key), TN_OK);
	tn_set_seed(c, 5);
	x = tn_parameter(c, "x", TN_F32, 1, &n, NULL);
	assert_int_equal(tn_init_uniform(x, -2, 3), TN_OK);
	assert_int_equal(tn_read(x, v, sizeof v), TN_OK);
	for (int64_t i = 0; i < n; i++) {
		static double u[512];

		if (i % 256 == 0)
			tn_fill_random(TN_F64, u, 512,
				(uint64_t)(key + i / 256), 0, 0);
		assert_true(fabs(v[i] - (2.5 * u[2 * (i % 256)] + 0.5)) < 1e-6);
	}
	tn_context_free(c);
}

static void test_refusals(void **state)
{
	tn_nn_linear_options lo = TN_NN_LINEAR_OPTIONS_INIT;
	tn_nn_conv2d_options co = TN_NN_CONV2D_OPTIONS_INIT;
	tn_nn_attention_options ao = TN_NN_ATTENTION_OPTIONS_INIT;
	int64_t shape[] = {2, 5};
	tn_context *c = context(true);
	tn_params *p = set(c);
	tn_tensor *x = tn_parameter(c, "x", TN_F32, 2, shape, NULL), *y;
	tn_layer *l = tn_nn_linear(p, "fc", 4, 3, NULL);

	(void)state;
	lo.n_bytes--;
	refused(c, tn_nn_linear(p, "a", 4, 3, &lo), "nn.options", __LINE__);
	refused(c, tn_nn_linear(p, "a", 0, 3, NULL), "nn.extent", __LINE__);
	refused(c, tn_nn_linear(p, "fc", 4, 3, NULL), "params.name", __LINE__);
	refused(c, tn_nn_linear(p, "", 4, 3, NULL), "params.name", __LINE__);
	refused(c, tn_nn_embedding(p, "e", 4, -3, NULL), "nn.extent", __LINE__);
	refused(c, tn_nn_batch_norm(p, "b", 0, NULL), "nn.extent", __LINE__);
	co.groups = 2;
	refused(c, tn_nn_conv2d(p, "c", 4, 3, 1, 1, &co), "nn.groups",
		__LINE__ - 1);
	co.groups = 1;
	co.stride[1] = 0;
	refused(c, tn_nn_conv2d(p, "c", 4, 3, 1, 1, &co), "nn.extent",
		__LINE__ - 1);
	refused(c, tn_nn_attention(p, "d", 6, 4, NULL), "nn.heads", __LINE__);
	ao.kv_heads = 3;
	refused(c, tn_nn_attention(p, "d", 8, 4, &ao), "nn.heads", __LINE__);
	assert_int_equal(tn_params_n(p), 2); /* nothing is left of them */
	assert_non_null(tn_params_make(p, "w", TN_F32, 1, shape, true));
	assert_string_equal(tn_params_name(p, 2), "w"); /* nor a prefix */

	y = tn_nn_forward(l, x);
	assert_false(tn_is_valid(y));
	assert_string_equal(tn_context_diag(c)->rule, "linear.k");
	assert_int_equal(tn_context_diag(c)->line, __LINE__ - 3);
	tn_context_clear(c);
	assert_null(tn_nn_forward(NULL, x));
	assert_string_equal(tn_context_diag(c)->rule, "nn.layer");
	tn_context_clear(c);
	l = tn_nn_attention(p, "d", 8, 4, NULL);
	y = tn_select(x, 0, 0);
	assert_null(tn_nn_forward(l, y));
	assert_string_equal(tn_context_diag(c)->rule, "nn.rank");
	assert_null(tn_nn_forward(NULL, tn_nn_forward(NULL, NULL)));
	tn_params_free(p);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dtypes),
		cmocka_unit_test(test_dropout),
		cmocka_unit_test(test_initialisers),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
