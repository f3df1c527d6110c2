/* Gradients of tenon.h: through views, writes, leaves, twice; and refusals. */
#include "unit.h"

#include <math.h>

static tn_context *context(void)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

static void ok(tn_context *c)
{
	if (tn_context_status(c) != TN_OK)
		fail_msg("[%s] %s", tn_context_diag(c)->rule,
			tn_context_diag(c)->text);
}

static void expect(tn_context *c, tn_tensor *x, int n, const double *want)
{
	double got[16];

	ok(c);
	assert_non_null(x);
	assert_int_equal(tn_read(x, got, (size_t)n * sizeof *got), TN_OK);
	for (int i = 0; i < n; i++)
		if (fabs(got[i] - want[i]) > 1e-9 * (1 + fabs(want[i])))
			fail_msg("element %d is %.12g, not %.12g", i, got[i],
				want[i]);
}

static const double four[] = {1, 2, 3, 4};

static tn_tensor *vector(tn_context *c, const char *name)
{
	int64_t n = 4;

	return name != NULL ? tn_parameter(c, name, TN_F64, 1, &n, four)
			    : tn_tensor_new(c, TN_F64, 1, &n, four);
}

static tn_tensor *sum(tn_tensor *x)
{
	return tn_reduce_sum(x, NULL, 0, false);
}

/* A slice and a flip of x, each used; and x itself. */
static void through_views(void **state)
{
	tn_context *c = context();
	tn_tensor *x = vector(c, "x");
	const int64_t start = 1, two = 2, flip = 0;
	tn_tensor *s = tn_slice(x, NULL, 0, &start, 1, &two, 1, NULL, 0);
	tn_tensor *f = tn_flip(x, &flip, 1);

	(void)state;
	tn_backward(sum(tn_add(tn_mul(x, f), x)), NULL);
	tn_backward(sum(tn_mul(s, s)), NULL);
	/* 2 f + 1, then 2 x at the slice */
	expect(c, tn_gradient(x), 4, (double[]){9, 7 + 4, 5 + 6, 3});
	expect(c, tn_gradient(s), 2, (double[]){11, 11});
	tn_zero_grad(x);
	assert_null(tn_gradient(x));
	tn_context_free(c);
}

/* y = exp(x); x.mul_(2): the gradient is that of the old x. */
static void write_after_use(void **state)
{
	tn_context *c = context();
	tn_tensor *x = vector(c, NULL), *y, *loss;

	(void)state;
	tn_requires_grad(x);
	y = tn_exp(x);
	tn_mul_(x, tn_scalar(c, TN_F64, 2)); /* x is tracked through this */
	loss = sum(tn_add(y, x));
	tn_backward(loss, NULL);
	ok(c);
	{
		double want[4];

		for (int i = 0; i < 4; i++)
			want[i] = exp(four[i]) + 2;
		expect(c, tn_gradient(x), 4, want);
	}
	tn_context_free(c);
}

/* A write through a view: what was there before gets no gradient there. */
static void write_through_view(void **state)
{
	tn_context *c = context();
	tn_tensor *p = vector(c, "p"), *q = vector(c, "q"), *x;
	const int64_t start = 1, two = 2;
	tn_tensor *xs, *qs;

	(void)state;
	x = tn_mul(p, tn_scalar(c, TN_F64, 3));
	xs = tn_slice(x, NULL, 0, &start, 1, &two, 1, NULL, 0);
	qs = tn_slice(q, NULL, 0, &start, 1, &two, 1, NULL, 0);
	tn_copy_(xs, tn_mul(qs, qs));
	tn_backward(sum(tn_mul(x, x)), NULL);
	/* x = 3p outside, q^2 inside; d = 2x */
	expect(c, tn_gradient(p), 4, (double[]){18, 0, 0, 72});
	expect(c, tn_gradient(q), 4, (double[]){0, 32, 108, 0});
	tn_context_free(c);
}

/* Twelve writes in a chain. */
static void chain_of_writes(void **state)
{
	tn_context *c = context();
	tn_tensor *p = vector(c, "p"), *h = tn_copy(p);
	double want[4], v[4];

	(void)state;
	for (int i = 0; i < 12; i++)
		tn_add_(h, tn_mul(h, tn_scalar(c, TN_F64, 0.1)));
	tn_backward(sum(tn_mul(h, h)), NULL);
	for (int i = 0; i < 4; i++) {
		v[i] = four[i] * pow(1.1, 12);
		want[i] = 2 * v[i] * pow(1.1, 12);
	}
	expect(c, tn_gradient(p), 4, want);
	tn_context_free(c);
}

/* Half a parameter is written without a gradient between two uses. */
static void leaf_rule(void **state)
{
	tn_context *c = context();
	tn_tensor *p = vector(c, "p"), *half, *a;
	const int64_t start = 0, two = 2;

	(void)state;
	a = tn_mul(p, p); /* 2 p of the old p everywhere */
	half = tn_slice(p, NULL, 0, &start, 1, &two, 1, NULL, 0);
	tn_no_grad_enter(c);
	tn_mul_(half, tn_scalar(c, TN_F64, 10));
	tn_no_grad_leave(c);
	tn_backward(sum(tn_add(a, tn_mul(p, p))), NULL);
	/* the new half is a leaf of its own: 2 * 10 p, and 2 p; else 4 p */
	expect(c, tn_gradient(p), 4,
		(double[]){2 + 20, 4 + 40, 12, 16});
	tn_context_free(c);
}

static void accumulates(void **state)
{
	tn_context *c = context();
	tn_tensor *p = vector(c, "p"), *y = tn_mul(p, p), *l = sum(y);

	(void)state;
	tn_backward_keep(l, NULL);
	tn_backward(sum(tn_mul(y, y)), NULL);
	/* 2 p + 4 p^3 */
	expect(c, tn_gradient(p), 4, (double[]){6, 36, 114, 264});
	assert_int_equal(tn_backward(l, NULL), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "grad.freed");
	tn_context_free(c);
}

static tn_status sines(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c;
	(void)user;
	out[0] = tn_sin(in[0]);
	out[1] = tn_sin(in[1]);
	return TN_OK;
}

/* user: what the loss reads beside the argument */
static tn_status steps_with(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	out[0] = tn_add(sum(tn_mul(in[0], in[0])), sum(tn_sin(user)));
	(void)c;
	return tn_backward(out[0], NULL);
}

static void refuses(tn_context *c, tn_tensor *loss, const char *rule)
{
	assert_int_equal(tn_backward(loss, NULL), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, rule);
	tn_context_clear(c);
}

/*
 * A compiled step reads a tensor from outside: first one without a history, then one
 * whose history has ended, then one without a history again.
 */
static void freed_outside(void **state)
{
	tn_context *c = context();
	tn_tensor *p = vector(c, "p"), *h, *y, *out[1] = {NULL};
	tn_function *f;

	(void)state;
	h = tn_tensor_new(c, TN_F64, 1, &(int64_t){4}, NULL);
	tn_copy_(h, tn_detach(p));
	assert_int_equal(tn_compile(&f, c, steps_with, h, 1, 1, "f"), TN_OK);
	for (int k = 0; k < 3; k++) {
		tn_zero_grad(p);
		if (k == 1) {
			y = tn_exp(p);
			tn_copy_(h, y);
			assert_int_equal(tn_backward(sum(h), NULL), TN_OK);
			assert_int_equal(tn_function_call(f, &p, out),
				TN_EINVAL);
			assert_string_equal(
				tn_context_diag(c)->rule, "grad.freed");
			tn_context_clear(c);
			tn_copy_(h, tn_detach(p));
			continue;
		}
		assert_int_equal(tn_function_call(f, &p, out), TN_OK);
		expect(c, tn_gradient(p), 4, (double[]){2, 4, 6, 8});
		tn_drop(out[0]);
	}
	tn_function_free(f);
	tn_context_free(c);
}

/*
 * What is made of a value whose history has ended has none either, however many
 * calls later: its part of a gradient is not left out.
 */
static void freed_later(void **state)
{
	tn_context *c = context();
	tn_tensor *p = vector(c, "p"), *y = tn_mul(p, p), *l = sum(p), *z, *out[2];
	tn_function *f;

	(void)state;
	tn_backward(sum(y), NULL);
	tn_zero_grad(p);
	refuses(c, tn_add(l, sum(y)), "grad.freed");
	refuses(c, sum(tn_sin(y)), "grad.freed");
	refuses(c, tn_add(l, sum(tn_narrow(tn_sin(y), 0, 1, 2))), "grad.freed");
	z = tn_tensor_new(c, TN_F64, 1, &(int64_t){4}, NULL);
	tn_copy_(z, tn_exp(y));
	refuses(c, tn_add(l, sum(z)), "grad.freed");
	tn_copy_(z, p); /* all of it */
	assert_int_equal(tn_backward_keep(tn_add(l, sum(z)), NULL), TN_OK);
	expect(c, tn_gradient(p), 4, (double[]){2, 2, 2, 2});
	/* a compiled function keeps its results apart */
	assert_int_equal(tn_compile(&f, c, sines, NULL, 2, 2, "f"), TN_OK);
	tn_function_call(f, (tn_tensor *[]){y, p}, out);
	refuses(c, tn_add(l, sum(out[0])), "grad.freed");
	tn_function_call(f, (tn_tensor *[]){y, tn_detach(p)}, out);
	refuses(c, tn_add(l, sum(tn_sin(out[0]))), "grad.freed");
	tn_zero_grad(p);
	assert_int_equal(
		tn_backward_keep(tn_add(l, sum(tn_sin(out[1]))), NULL), TN_OK);
	expect(c, tn_gradient(p), 4, (double[]){1, 1, 1, 1});
	tn_function_free(f);
	/* where no gradient goes through, there is nothing to lose */
	tn_zero_grad(p);
	z = tn_mul(p, tn_detach(tn_sin(y)));
	tn_no_grad_enter(c);
	z = tn_add(z, tn_mul(y, y));
	tn_no_grad_leave(c);
	assert_int_equal(tn_backward(tn_add(l, sum(z)), NULL), TN_OK);
	expect(c, tn_gradient(p), 4, (double[]){1, 1, 1, 1});
	tn_context_free(c);
}

/* d/dx of sum (d/dx sum x^3)^2 = d/dx sum 9 x^4 = 36 x^3 */
static void twice(void **state)
{
	tn_context *c = context();
	tn_tensor *x = vector(c, "x"), *g, *h, *l;

	(void)state;
	l = sum(tn_mul(tn_mul(x, x), x));
	assert_int_equal(tn_grad(1, &l, NULL, 1, &x, &g), TN_OK);
	expect(c, g, 4, (double[]){3, 12, 27, 48});
	l = sum(tn_mul(g, g));
	assert_int_equal(tn_grad(1, &l, NULL, 1, &x, &h), TN_OK);
	expect(c, h, 4, (double[]){36, 288, 972, 2304});
	tn_context_free(c);
}

/* A seed; a gradient of nothing is zero; gather and its scatter. */
static void seeds(void **state)
{
	tn_context *c = context();
	tn_tensor *x = vector(c, "x"), *y = vector(c, "y"), *seed, *out, *g[2];
	tn_tensor *in[] = {x, y};
	const int64_t three = 3, ids[] = {2, 0, 2};

	(void)state;
	seed = tn_tensor_new(c, TN_F64, 1, &three, four);
	out = tn_take(x, tn_tensor_new(c, TN_I64, 1, &three, ids), 0);
	assert_int_equal(tn_grad(1, &out, &seed, 2, in, g), TN_OK);
	expect(c, g[0], 4, (double[]){2, 0, 4, 0});
	expect(c, g[1], 4, (double[]){0, 0, 0, 0});
	tn_context_free(c);
}

/*
 * A result that the adjoint of another one reads: sort's places. Dropped before
 * the sort has run, after it, or when nobody wants a gradient any more.
 */
static void dropped_results(void **state)
{
	const int64_t n = 4;
	const double data[] = {3, 1, 2, 5};

	(void)state;
	for (int when = 0; when < 4; when++) {
		tn_context *c = context();
		tn_tensor *p = tn_parameter(c, "p", TN_F64, 1, &n, data);
		tn_stats first = {0}, last;

		for (int i = 0; i < 3; i++) {
			tn_tensor *x, *out[2], *l;

			tn_scope_enter(c);
			x = tn_mul(p, p);
			assert_int_equal(tn_sort(x, 0, false, out), TN_OK);
			tn_drop(x);
			if (when == 0)
				tn_drop(out[1]);
			l = tn_reduce_sum(tn_mul(out[0], tn_tensor_new(c,
				TN_F64, 1, &n, four)), NULL, 0, false);
			assert_true(tn_item(l) == 1 + 2 * 4 + 3 * 9 + 4 * 25);
			if (when == 1)
				tn_drop(out[1]);
			if (when < 3) {
				tn_backward(l, NULL);
				expect(c, tn_gradient(p), 4, (double[]){
					2 * 3 * 3, 2, 2 * 2 * 2, 2 * 5 * 4});
			}
			tn_zero_grad(p);
			tn_scope_leave(c);
			tn_context_stats(c, i == 0 ? &first : &last);
		}
		assert_int_equal(last.bytes_live, first.bytes_live);
		assert_int_equal(last.bytes_live, 64);
		tn_context_free(c);
	}
}

static void refusals(void **state)
{
	tn_context *c = context();
	tn_tensor *x = vector(c, "x"), *k = vector(c, NULL);
	int64_t n = 4;

	(void)state;
	assert_int_equal(tn_backward(tn_exp(x), NULL), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "grad.seed");
	tn_context_clear(c);
	assert_int_equal(tn_backward(sum(k), NULL), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "grad.untracked");
	tn_context_clear(c);
	assert_int_equal(tn_requires_grad(tn_tensor_new(c, TN_I64, 1, &n, NULL)),
		TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "grad.dtype");
	tn_context_clear(c);
	tn_no_grad_enter(c);
	assert_int_equal(tn_backward(sum(x), NULL), TN_EINVAL);
	tn_no_grad_leave(c);
	tn_context_clear(c);
	assert_int_equal(tn_no_grad_leave(c), TN_EINVAL);
	tn_context_clear(c);
	/* after all this it still works */
	tn_backward(sum(tn_mul(x, x)), NULL);
	expect(c, tn_gradient(x), 4, (double[]){2, 4, 6, 8});
	tn_context_free(c);
}

/* Steps of gradient descent: one plan, no copy, flat memory. */
static void descent(void **state)
{
	tn_context *c = context();
	tn_tensor *w = vector(c, "w");
	tn_stats s, later;
	double last = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		tn_tensor *loss;

		tn_scope_enter(c);
		loss = sum(tn_mul(w, w));
		tn_backward(loss, NULL);
		tn_no_grad_enter(c);
		tn_sub_(w, tn_mul(tn_gradient(w), tn_scalar(c, TN_F64, 0.01)));
		tn_zero_grad(w);
		tn_no_grad_leave(c);
		tn_keep(loss);
		tn_scope_leave(c);
		last = tn_item(loss);
		tn_drop(loss);
		tn_eval(&w, 1);
		if (i == 3)
			tn_context_stats(c, &s);
	}
	ok(c);
	tn_context_stats(c, &later);
	assert_true(last < 1e-10);
	assert_int_equal(later.n_plan_misses, s.n_plan_misses);
	assert_int_equal(later.n_copies, s.n_copies);
	assert_int_equal(later.bytes_peak, s.bytes_peak);
	assert_int_equal(later.n_tensors, 1);
	tn_context_free(c);
}

/* Slopes far out, where a square would be infinite or 0. */
static void far_out(void **state)
{
	static const struct {
		const char *row;
		double x, y, slope; /* y: a second operand; 0: none */
	} cases[] = {
		{"asinh", 1e200, 0, 1e-200}, {"asinh", -1e200, 0, 1e-200},
		{"asinh", 1e30, 0, 1e-30}, {"asinh", -1e30, 0, 1e-30},
		{"asinh", 0, 0, 1}, {"asinh", 1e-200, 0, 1},
		{"asinh", 0.75, 0, 0.8}, {"acosh", 1e200, 0, 1e-200},
		{"acosh", 1e30, 0, 1e-30}, {"acosh", 1.25, 0, 4.0 / 3},
		{"acosh", 1 + 0x1p-20, 0, 724.0771713015948},
		{"atan", 1e160, 0, 1e-320}, {"atan", 1e18, 0, 1e-36},
		{"atan", -1e17, 0, 1e-34}, {"atan", 0.5, 0, 0.8},
		{"asin", 0.6, 0, 1.25}, {"acos", 0.6, 0, -1.25},
		{"asin", 1 - 0x1p-20, 0, 724.0775165685778}, {"atanh", 0.5, 0, 4.0 / 3},
		{"atanh", 1 - 0x1p-20, 0, 524288.2500001192},
		{"atan2", 1e200, 1e200, 5e-201}, {"atan2", 3e-200, 4e-200, 1.6e199},
		{"atan2", 3e30, 4e30, 1.6e-31}, {"atan2", 3, 4, 0.16},
		{"atan2", 1e-30, 1e30, 1e-30}, {"atan2", 1e20, 0.5, 5e-41},
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
		double x = cases[i / 2].x, slope = cases[i / 2].slope, got;
		bool wide = i % 2 == 0, two = cases[i / 2].y != 0;
		tn_dtype t = wide ? TN_F64 : TN_F32;
		tn_context *c = context();
		char data[8] = {0};
		tn_tensor *in[2], *y = NULL;

		if (!wide && (x > 1e38 || x < -1e38 || slope > 1e38 ||
			(slope < 1e-37 && slope > 0)))  {
			tn_context_free(c);
			continue;
		}
		tn_set_f64(t, data, 0, x);
		in[0] = tn_parameter(c, "x", t, 0, NULL, data);
		in[1] = tn_scalar(c, t, cases[i / 2].y);
		assert_int_equal(tn_call(c, cases[i / 2].row, 1 + two, in, 0,
			NULL, 1, &y), TN_OK);
		assert_int_equal(tn_backward(y, NULL), TN_OK);
		got = tn_item(tn_gradient(in[0]));
		if (!(fabs(got / slope - 1) < (wide ? 1e-12 : 1e-6)) &&
			!(slope < 1e-300 && fabs(got / slope - 1) < 1e-3))
			fail_msg("%s at %g: %.17g, not %.17g", cases[i / 2].row,
				x, got, slope);
		tn_context_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(through_views),
		cmocka_unit_test(write_after_use),
		cmocka_unit_test(write_through_view),
		cmocka_unit_test(chain_of_writes),
		cmocka_unit_test(leaf_rule),
		cmocka_unit_test(accumulates),
		cmocka_unit_test(freed_later),
		cmocka_unit_test(freed_outside),
		cmocka_unit_test(twice),
		cmocka_unit_test(seeds),
		cmocka_unit_test(dropped_results),
		cmocka_unit_test(refusals),
		cmocka_unit_test(descent),
		cmocka_unit_test(far_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
