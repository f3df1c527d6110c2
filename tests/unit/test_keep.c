/*
 * What is kept for a gradient and what is made again: bytes, limits, and
 * gradients that are the same whatever was chosen.
 */
#include "unit.h"

#include <math.h>

enum { B = 4, H = 8, LAYERS = 6 };

static tn_context *context(int64_t limit)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.memory_limit = limit;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

static tn_stats stats(const tn_context *c)
{
	tn_stats s;

	if (tn_context_status(c) != TN_OK)
		fail_msg("[%s] %s", tn_context_diag(c)->rule,
			tn_context_diag(c)->text);
	tn_context_stats(c, &s);
	return s;
}

static tn_tensor *matrix(tn_context *c, int64_t n, int64_t m, bool param)
{
	const int64_t shape[] = {n, m};
	double data[H * H];

	for (int i = 0; i < n * m; i++)
		data[i] = 0.3 * cos(1.7 * i + 0.2 * (double)n);
	return param ? tn_parameter(c, "w", TN_F64, 2, shape, data)
		     : tn_tensor_new(c, TN_F64, 2, shape, data);
}

static tn_tensor *sum(tn_tensor *x)
{
	return tn_reduce_sum(x, NULL, 0, false);
}

/* h = tanh-like layers on x; temporaries end before the loss is looked at */
static tn_tensor *loss_of(tn_context *c, tn_tensor *w, bool random)
{
	tn_tensor *x, *h, *loss;

	tn_scope_enter(c);
	x = matrix(c, B, H, false); /* (B, H) */
	h = x;
	for (int i = 0; i < LAYERS; i++) {
		h = tn_matmul(h, w);
		h = i % 2 ? tn_relu(tn_add(h, x)) : tn_sin(h);
	}
	if (random)
		h = tn_dropout(h, tn_random_key(c), 0.4);
	loss = tn_keep(sum(tn_mul(h, h)));
	tn_scope_leave(c);
	return loss;
}

enum { N_SETTINGS = 4 };
/* -2: nothing is evaluated before the gradient */
static const int64_t settings[N_SETTINGS] = {-2, -1, 0, 800};

static void gradient(double *g, int64_t setting, bool random, tn_stats *held)
{
	tn_context *c = context(setting < -1 ? -1 : setting);
	tn_tensor *w = matrix(c, H, H, true), *loss = loss_of(c, w, random);

	if (setting > -2)
		tn_item(loss);
	*held = stats(c);
	tn_backward(loss, NULL);
	assert_int_equal(tn_read(tn_gradient(w), g, H * H * sizeof *g), TN_OK);
	held->n_again = stats(c).n_again;
	tn_drop(loss);
	tn_zero_grad(w);
	/* nothing is left of it but w, and the gradient's handle */
	assert_int_equal(stats(c).bytes_kept, 0);
	assert_int_equal(stats(c).bytes_live, 2 * H * H * 8);
	tn_context_free(c);
}

static void same_gradients(void **state)
{
	(void)state;
	for (int random = 0; random < 2; random++) {
		double want[H * H], got[H * H];
		tn_stats s[N_SETTINGS];

		gradient(want, settings[0], random, &s[0]);
		for (int k = 1; k < N_SETTINGS; k++) {
			gradient(got, settings[k], random, &s[k]);
			for (int i = 0; i < H * H; i++)
				if (fabs(got[i] - want[i]) >
					1e-12 * (1 + fabs(want[i])))
					fail_msg("limit %d, element %d: %g, %g",
						(int)settings[k], i, got[i],
						want[i]);
		}
		assert_int_equal(s[0].n_again, 0);
		/* of each layer one value of two or three, or less */
		assert_true(s[1].bytes_kept > 0);
		assert_true(s[1].bytes_kept <= (LAYERS + 2) * B * H * 8);
		/* x, whose handle has ended: all else is made from it; a key */
		assert_true(s[2].bytes_kept >= B * H * 8);
		assert_true(s[2].bytes_kept <= B * H * 8 + 8);
		assert_true(s[2].n_again > s[3].n_again);
		assert_true(s[3].bytes_kept <= 800);
		assert_true(s[3].bytes_kept > s[2].bytes_kept);
	}
}

/* relu(m + b): m + b alone is kept for both, or relu's result */
static void one_of_a_layer(void **state)
{
	tn_context *c = context(-1);
	tn_tensor *w = matrix(c, H, H, true), *x = matrix(c, B, H, false);
	tn_tensor *h, *l;

	(void)state;
	tn_scope_enter(c);
	h = tn_relu(tn_add(tn_matmul(x, w), x)); /* (B, H) */
	l = tn_keep(sum(tn_matmul(tn_square(h), w)));
	tn_scope_leave(c);
	tn_item(l);
	/* square(h) is read by matmul, h by square and by relu */
	assert_int_equal(stats(c).bytes_kept, B * H * 8);
	tn_backward(l, NULL);
	h = tn_gradient(w);
	assert_int_equal(tn_eval(&h, 1), TN_OK);
	assert_int_equal(stats(c).n_again, 1);
	tn_context_free(c);
}

/* Steps with a limit: the same programs, the same memory. */
static void steps(void **state)
{
	tn_context *c = context(0);
	tn_tensor *w = matrix(c, H, H, true);
	tn_stats first = {0}, last;

	(void)state;
	for (int i = 0; i < 200; i++) {
		tn_tensor *loss = loss_of(c, w, true);

		tn_item(loss);
		tn_scope_enter(c);
		tn_backward(loss, NULL);
		tn_no_grad_enter(c);
		tn_sub_(w, tn_mul(tn_gradient(w), tn_scalar(c, TN_F64, 0.01)));
		tn_zero_grad(w);
		tn_no_grad_leave(c);
		tn_drop(loss);
		tn_scope_leave(c);
		tn_eval(&w, 1);
		last = stats(c);
		if (i == 1)
			first = last;
	}
	assert_int_equal(last.n_plan_misses, first.n_plan_misses);
	assert_int_equal(last.bytes_live, first.bytes_live);
	assert_int_equal(last.bytes_peak, first.bytes_peak);
	assert_int_equal(last.n_copies, 0);
	assert_int_equal(last.bytes_kept, 0);
	tn_context_free(c);
}

static const double four[] = {0.5, 1, 1.5, 2};

static void expect(const tn_context *c, tn_tensor *x, const double *want)
{
	double got[4];

	(void)stats(c);
	assert_int_equal(tn_read(x, got, sizeof got), TN_OK);
	for (int i = 0; i < 4; i++)
		if (fabs(got[i] - want[i]) > 1e-9 * (1 + fabs(want[i])))
			fail_msg("element %d is %.12g, not %.12g", i, got[i],
				want[i]);
}

/*
 * y = exp(p) is made again; what was made without a gradient is made again
 * without one: of second order, with m = exp(p) as a constant,
 *
 *     l = sum m p^2,  g = 2 m p,  sum g^2 = 4 m^2 p^2,  its gradient 8 m^2 p
 */
static void second_order(void **state)
{
	tn_context *c = context(0);
	const int64_t n = 4;
	tn_tensor *p = tn_parameter(c, "p", TN_F64, 1, &n, four);
	tn_tensor *l, *g, *h, *m, *k;
	double want[4];

	(void)state;
	tn_scope_enter(c);
	l = tn_keep(sum(tn_exp(p)));
	tn_scope_leave(c);
	tn_item(l);
	assert_int_equal(tn_grad(1, &l, NULL, 1, &p, &g), TN_OK);
	for (int i = 0; i < 4; i++)
		want[i] = exp(four[i]);
	expect(c, g, want);
	assert_int_equal(stats(c).n_again, 1);
	l = sum(tn_mul(g, g));
	tn_item(l);
	assert_int_equal(tn_grad(1, &l, NULL, 1, &p, &h), TN_OK);
	for (int i = 0; i < 4; i++)
		want[i] = 2 * exp(2 * four[i]);
	expect(c, h, want);

	tn_scope_enter(c);
	tn_no_grad_enter(c);
	m = tn_exp(p);
	tn_no_grad_leave(c);
	l = tn_keep(sum(tn_mul(m, tn_mul(p, p))));
	tn_scope_leave(c);
	tn_item(l);
	assert_int_equal(tn_grad(1, &l, NULL, 1, &p, &g), TN_OK);
	tn_scope_enter(c);
	k = tn_keep(sum(tn_mul(g, g)));
	tn_scope_leave(c);
	tn_item(k);
	assert_int_equal(tn_grad(1, &k, NULL, 1, &p, &h), TN_OK);
	for (int i = 0; i < 4; i++)
		want[i] = 8 * exp(2 * four[i]) * four[i];
	expect(c, h, want);

	tn_context_free(c);
}

/*
 * Half of k = p is written without a gradient, q = p^2: a leaf, that has none
 * of second order either.
 *
 *     l = sum k^2 flip(k)^2 = 2 (k0^2 k3^2 + k1^2 k2^2), k2 and k3 constant
 *     g0 = 4 p0 q3^2,  g1 = 4 p1 q2^2,  sum g^2: 32 p0 q3^4, 32 p1 q2^4
 */
static void leaf_within(void **state)
{
	tn_context *c = context(0);
	const int64_t n = 4, two = 2, axis = 0;
	tn_tensor *p = tn_parameter(c, "p", TN_F64, 1, &n, four);
	tn_tensor *k, *q, *l, *g, *h;

	(void)state;
	tn_scope_enter(c);
	k = tn_copy(p);
	q = tn_mul(p, p);
	tn_no_grad_enter(c);
	tn_copy_(tn_narrow(k, 0, two, two), tn_narrow(q, 0, two, two));
	tn_no_grad_leave(c);
	l = tn_mul(tn_square(k), tn_square(tn_flip(k, &axis, 1)));
	l = tn_keep(sum(l));
	tn_scope_leave(c);
	tn_item(l);
	assert_int_equal(tn_grad(1, &l, NULL, 1, &p, &g), TN_OK);
	expect(c, g, (double[]){4 * four[0] * pow(four[3], 4),
		4 * four[1] * pow(four[2], 4), 0, 0});
	l = sum(tn_mul(g, g));
	assert_int_equal(tn_grad(1, &l, NULL, 1, &p, &h), TN_OK);
	expect(c, h, (double[]){32 * four[0] * pow(four[3], 8),
		32 * four[1] * pow(four[2], 8), 0, 0});
	tn_context_free(c);
}

/* Twelve writes in a chain, made again; twice, as the first one keeps. */
static void chain_of_writes(void **state)
{
	tn_context *c = context(0);
	const int64_t n = 4, at = 1, two = 2;
	tn_tensor *p = tn_parameter(c, "p", TN_F64, 1, &n, four), *h, *l;
	double want[4], v[4], d[4];

	(void)state;
	tn_scope_enter(c);
	h = tn_copy(p);
	for (int i = 0; i < 12; i++) {
		tn_mul_(h, tn_sin(h));
		tn_add_(tn_narrow(h, 0, at, two), tn_narrow(h, 0, at, two));
	}
	l = tn_keep(sum(tn_mul(h, h)));
	tn_scope_leave(c);
	for (int i = 0; i < 4; i++) {
		v[i] = four[i];
		d[i] = 1;
		for (int k = 0; k < 12; k++) {
			double f = i == 1 || i == 2 ? 2 : 1;

			d[i] *= f * (sin(v[i]) + v[i] * cos(v[i]));
			v[i] *= f * sin(v[i]);
		}
		want[i] = 2 * v[i] * d[i];
	}
	tn_item(l);
	assert_int_equal(stats(c).bytes_kept, 0);
	tn_backward_keep(l, NULL);
	expect(c, tn_gradient(p), want);
	tn_backward(l, NULL);
	for (int i = 0; i < 4; i++)
		want[i] *= 2;
	expect(c, tn_gradient(p), want);
	assert_int_equal(tn_backward(l, NULL), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "grad.freed");
	tn_context_free(c);
}

/* What is made again has been freed for one loss, and serves another. */
static void two_losses(void **state)
{
	tn_context *c = context(0);
	const int64_t n = 4;
	tn_tensor *p = tn_parameter(c, "p", TN_F64, 1, &n, four);
	tn_tensor *q = tn_parameter(c, "q", TN_F64, 1, &n, four), *a, *b, *h, *both[2];
	double want[4];

	(void)state;
	tn_scope_enter(c);
	h = tn_exp(p);
	a = tn_keep(sum(tn_mul(h, h)));
	b = tn_keep(sum(tn_mul(tn_stop_gradient(h), tn_mul(q, q))));
	tn_scope_leave(c);
	both[0] = a;
	both[1] = b;
	tn_eval(both, 2);
	tn_backward(a, NULL);
	tn_backward(b, NULL);
	for (int i = 0; i < 4; i++)
		want[i] = 2 * exp(four[i]) * four[i];
	expect(c, tn_gradient(q), want);
	for (int i = 0; i < 4; i++)
		want[i] = 2 * exp(2 * four[i]);
	expect(c, tn_gradient(p), want);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_gradients),
		cmocka_unit_test(one_of_a_layer),
		cmocka_unit_test(steps),
		cmocka_unit_test(second_order),
		cmocka_unit_test(leaf_within),
		cmocka_unit_test(chain_of_writes),
		cmocka_unit_test(two_losses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
