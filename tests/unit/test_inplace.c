/*
 * In-place cases on tensors, uncompiled: values, gradients and copies over
 * three steps in a row, each against its formula. The numbers are those of the
 * list of cases that the alias model was made for.
 */
#include "unit.h"

#include <math.h>

enum { N = 4 };

static const double start[N] = {0.5, -1, 2, -0.25};

typedef struct at {
	tn_context *c;
	tn_tensor *p, *q; /* parameters (2, 2); q = p + 1 */
	int step;
} at;

/*
 * Records the case; its loss. grad: by elements, of p or q. p[N] is the number
 * of the step.
 */
typedef struct inplace_case {
	const char *name;
	tn_tensor *(*loss)(const at *a);
	double (*value)(const double *p, const double *q);
	double (*grad)(const double *p, const double *q, int i, bool of_q);
	/* what the case itself makes of p; NULL: p stays */
	double (*after)(double p, double q);
	int copies; /* in each step: older values of p that are kept */
	bool late;  /* what a write overwrites is read later, inside a program */
} inplace_case;

static tn_tensor *sum(tn_tensor *x)
{
	return tn_reduce_sum(x, NULL, 0, false);
}

static tn_tensor *number(const at *a, double v)
{
	return tn_scalar(a->c, TN_F64, v);
}

static const int64_t one_axis[] = {0}, swapped[] = {1, 0}, flat[] = {N};

static double sig(double x)
{
	return 1 / (1 + exp(-x));
}

/* 2: y = sigmoid_(x); z = sigmoid_(x); y + z: both are x */
static tn_tensor *loss_2(const at *a)
{
	tn_tensor *x = tn_copy(a->p);

	tn_sigmoid_(x);
	tn_sigmoid_(x);
	return sum(tn_add(x, x));
}
static double value_2(const double *p, const double *q)
{
	double s = 0;

	(void)q;
	for (int i = 0; i < N; i++)
		s += 2 * sig(sig(p[i]));
	return s;
}
static double grad_2(const double *p, const double *q, int i, bool of_q)
{
	double a = sig(p[i]), b = sig(a);

	(void)q;
	return of_q ? 0 : 2 * b * (1 - b) * a * (1 - a);
}

/* 3: p.copy_(p + q) is returned: it is the parameter itself */
static tn_tensor *assign_(tn_tensor *p, tn_tensor *v)
{
	tn_copy_(p, v);
	return p;
}
static tn_tensor *loss_3(const at *a)
{
	tn_tensor *out = assign_(a->p, tn_add(a->p, a->q));

	assert_ptr_equal(out, a->p);
	return sum(tn_mul(tn_reshape(out, flat, 1),
		tn_reshape(a->p, flat, 1)));
}
static double value_3(const double *p, const double *q)
{
	double s = 0;

	for (int i = 0; i < N; i++)
		s += (p[i] + q[i]) * (p[i] + q[i]);
	return s;
}
static double grad_3(const double *p, const double *q, int i, bool of_q)
{
	(void)of_q;
	return 2 * (p[i] + q[i]);
}
static double after_3(double p, double q)
{
	return p + q;
}

/* 3 with the old p in the gradient: that one is kept, by one copy */
static tn_tensor *loss_3b(const at *a)
{
	return sum(tn_mul(
		assign_(a->p, tn_mul(a->p, a->q)), a->p));
}
static double value_3b(const double *p, const double *q)
{
	double s = 0;

	for (int i = 0; i < N; i++)
		s += p[i] * q[i] * p[i] * q[i];
	return s;
}
static double grad_3b(const double *p, const double *q, int i, bool of_q)
{
	return of_q ? 2 * p[i] * p[i] * q[i] : 2 * p[i] * q[i] * q[i];
}
static double after_3b(double p, double q)
{
	return p * q;
}

/* 4: return p: a view of all of it is the parameter */
static tn_tensor *loss_4(const at *a)
{
	const int64_t whole[] = {2, 2};
	tn_tensor *out = tn_reshape(a->p, whole, 2);

	tn_mul_(out, number(a, 3));
	return sum(tn_mul(a->p, a->q));
}
static double value_4(const double *p, const double *q)
{
	double s = 0;

	for (int i = 0; i < N; i++)
		s += 3 * p[i] * q[i];
	return s;
}
static double grad_4(const double *p, const double *q, int i, bool of_q)
{
	return of_q ? 3 * p[i] : 3 * q[i];
}
static double after_4(double p, double q)
{
	(void)q;
	return 3 * p;
}

/* 5: return assign(p): a copy, which does not see what p becomes */
static tn_tensor *loss_5(const at *a)
{
	tn_tensor *out = tn_copy(a->p);

	tn_mul_(a->p, number(a, 2));
	return sum(tn_mul(out, tn_mul(a->p, a->q)));
}
static double value_5(const double *p, const double *q)
{
	double s = 0;

	for (int i = 0; i < N; i++)
		s += 2 * p[i] * p[i] * q[i];
	return s;
}
static double grad_5(const double *p, const double *q, int i, bool of_q)
{
	return of_q ? 2 * p[i] * p[i] : 4 * p[i] * q[i];
}
static double after_5(double p, double q)
{
	(void)q;
	return 2 * p;
}

/* 6: return x: what is written to the output is written to the input */
static tn_tensor *loss_6(const at *a)
{
	int64_t n = N;
	tn_tensor *x = tn_tensor_new(a->c, TN_F64, 1, &n, start);
	tn_tensor *out = tn_reshape(x, flat, 1);

	tn_add_(out, tn_reshape(a->p, flat, 1));
	return sum(tn_mul(x, tn_reshape(a->q, flat, 1)));
}
static double value_6(const double *p, const double *q)
{
	double s = 0;

	for (int i = 0; i < N; i++)
		s += (start[i] + p[i]) * q[i];
	return s;
}
static double grad_6(const double *p, const double *q, int i, bool of_q)
{
	return of_q ? start[i] + p[i] : q[i];
}

/* 7: v = x[1:]; v.add_(1); v.mul_(v); sum of x */
static tn_tensor *loss_7(const at *a)
{
	tn_tensor *x = tn_reshape(tn_copy(a->p), flat, 1);
	const int64_t from = 1, n = N - 1;
	tn_tensor *v = tn_slice(x, NULL, 0, &from, 1, &n, 1, NULL, 0);

	tn_add_(v, number(a, 1));
	tn_mul_(v, v);
	return sum(x);
}
static double value_7(const double *p, const double *q)
{
	double s = p[0];

	(void)q;
	for (int i = 1; i < N; i++)
		s += (p[i] + 1) * (p[i] + 1);
	return s;
}
static double grad_7(const double *p, const double *q, int i, bool of_q)
{
	(void)q;
	return of_q ? 0 : i == 0 ? 1 : 2 * (p[i] + 1);
}

/* 8: a view and a transposed one both see a write */
static tn_tensor *loss_8(const at *a)
{
	tn_tensor *x = tn_copy(a->p);
	tn_tensor *r = tn_reshape(x, flat, 1);
	tn_tensor *t = tn_reshape(tn_transpose(x, swapped, 2), flat, 1);

	tn_mul_(r, number(a, 2));
	return sum(tn_mul(r, t));
}
static double value_8(const double *p, const double *q)
{
	(void)q;
	return 4 * (p[0] * p[0] + 2 * p[1] * p[2] + p[3] * p[3]);
}
static double grad_8(const double *p, const double *q, int i, bool of_q)
{
	static const int other[] = {0, 2, 1, 3};

	(void)q;
	return of_q ? 0 : 8 * p[other[i]];
}

/* 9: y = exp(x); x.mul_(2); both are used */
static tn_tensor *loss_9(const at *a)
{
	tn_tensor *x = tn_copy(a->p), *y = tn_exp(x);

	tn_mul_(x, number(a, 2));
	return sum(tn_add(y, x));
}
static double value_9(const double *p, const double *q)
{
	double s = 0;

	(void)q;
	for (int i = 0; i < N; i++)
		s += exp(p[i]) + 2 * p[i];
	return s;
}
static double grad_9(const double *p, const double *q, int i, bool of_q)
{
	(void)q;
	return of_q ? 0 : exp(p[i]) + 2;
}

/* 10: t = p q; p.add_(t); the loss uses both (on a copy of p) */
static tn_tensor *loss_10(const at *a)
{
	tn_tensor *x = tn_copy(a->p), *t = tn_mul(x, a->q);

	tn_add_(x, t);
	return sum(tn_mul(x, t));
}
static double value_10(const double *p, const double *q)
{
	double s = 0;

	for (int i = 0; i < N; i++)
		s += p[i] * p[i] * q[i] * (1 + q[i]);
	return s;
}
static double grad_10(const double *p, const double *q, int i, bool of_q)
{
	return of_q ? p[i] * p[i] * (1 + 2 * q[i])
		    : 2 * p[i] * q[i] * (1 + q[i]);
}

/* 11: out1 = relu_(x); out2 = x: one storage, returned twice */
static tn_tensor *loss_11(const at *a)
{
	tn_tensor *x = tn_copy(a->p), *out1 = tn_reshape(x, flat, 1);

	tn_relu_(out1);
	return tn_add(sum(tn_mul(out1, number(a, 2))), sum(x));
}
static double value_11(const double *p, const double *q)
{
	double s = 0;

	(void)q;
	for (int i = 0; i < N; i++)
		s += 3 * (p[i] > 0 ? p[i] : 0);
	return s;
}
static double grad_11(const double *p, const double *q, int i, bool of_q)
{
	(void)q;
	return of_q || p[i] <= 0 ? 0 : 3;
}

/* 15: v = x.flip(0); v.copy_(x): as if the right side had been copied */
static tn_tensor *loss_15(const at *a)
{
	tn_tensor *x = tn_reshape(tn_copy(a->p), flat, 1);

	tn_copy_(tn_flip(x, one_axis, 1), x);
	return sum(tn_mul(x, tn_reshape(a->q, flat, 1)));
}
static double value_15(const double *p, const double *q)
{
	double s = 0;

	for (int i = 0; i < N; i++)
		s += p[N - 1 - i] * q[i];
	return s;
}
static double grad_15(const double *p, const double *q, int i, bool of_q)
{
	return of_q ? p[N - 1 - i] : q[N - 1 - i];
}

/* 16: x.expand(..).add_(1) is refused, and names the axis; x stays as it was */
static tn_tensor *loss_16(const at *a)
{
	const int64_t shape[] = {3, N};
	tn_tensor *x = tn_reshape(tn_copy(a->p), flat, 1);
	tn_tensor *wide = tn_broadcast_to(x, shape, 2);
	tn_tensor *narrow = tn_narrow(x, 0, 0, 1); /* (1) */

	assert_int_equal(tn_context_status(a->c), TN_OK);
	tn_add_(wide, number(a, 1));
	assert_string_equal(tn_context_diag(a->c)->rule, "write.repeats");
	assert_non_null(strstr(tn_context_diag(a->c)->text, "axis 0"));
	tn_context_clear(a->c);
	/* of one element, too; and with an axis in front */
	tn_fill_(tn_broadcast_to(narrow, shape, 2), 0);
	assert_string_equal(tn_context_diag(a->c)->rule, "write.repeats");
	assert_non_null(strstr(tn_context_diag(a->c)->text, "axis "));
	tn_context_clear(a->c);
	return sum(tn_mul(wide, tn_reshape(a->q, flat, 1)));
}
static double value_16(const double *p, const double *q)
{
	double s = 0;

	for (int i = 0; i < N; i++)
		s += 3 * p[i] * q[i];
	return s;
}
static double grad_16(const double *p, const double *q, int i, bool of_q)
{
	return 3 * (of_q ? p[i] : q[i]);
}

/* 17: s = x.diagonal(); s.zero_(); x @ x */
static tn_tensor *loss_17(const at *a)
{
	tn_tensor *x = tn_copy(a->p);

	tn_fill_(tn_diagonal(x, 0), 0);
	return sum(tn_matmul(x, tn_add(x, a->q)));
}
static double value_17(const double *p, const double *q)
{
	/* [0 b; c 0] times [q0 b+q1; c+q2 q3] */
	return p[1] * (p[2] + q[2]) + p[1] * q[3] + p[2] * q[0] +
	       p[2] * (p[1] + q[1]);
}
static double grad_17(const double *p, const double *q, int i, bool of_q)
{
	static const int row[] = {2, 2, 1, 1};

	if (of_q)
		return p[row[i]];
	return i == 1	? 2 * p[2] + q[2] + q[3]
	       : i == 2 ? 2 * p[1] + q[0] + q[1]
			: 0;
}

/* 18: cache[t] = k, t known only when it runs; the loss reads all of it */
static tn_tensor *loss_18(const at *a)
{
	tn_tensor *cache = tn_reshape(tn_copy(a->p), flat, 1);
	tn_tensor *t = tn_scalar(a->c, TN_I64, a->step);
	tn_tensor *k = tn_dynamic_narrow(
		tn_reshape(a->q, flat, 1), t, 0, 1);

	tn_copy_(tn_dynamic_narrow(cache, t, 0, 1), tn_mul(k, k));
	return tn_add(sum(tn_mul(cache, cache)), number(a, a->step));
}
static double value_18(const double *p, const double *q)
{
	double s = p[N];

	for (int i = 0; i < N; i++)
		s += i == (int)p[N] ? pow(q[i], 4) : p[i] * p[i];
	return s;
}
static double grad_18(const double *p, const double *q, int i, bool of_q)
{
	return of_q != (i == (int)p[N]) ? 0
		: of_q			? 4 * pow(q[i], 3)
					: 2 * p[i];
}

/* 19: h = x; twelve times h.add_(f(h)) */
static tn_tensor *loss_19(const at *a)
{
	tn_tensor *h = tn_copy(a->p);

	for (int i = 0; i < 12; i++)
		tn_add_(h, tn_mul(h, number(a, 0.25)));
	return sum(tn_mul(h, h));
}
static double value_19(const double *p, const double *q)
{
	double s = 0;

	(void)q;
	for (int i = 0; i < N; i++)
		s += p[i] * p[i] * pow(1.25, 24);
	return s;
}
static double grad_19(const double *p, const double *q, int i, bool of_q)
{
	(void)q;
	return of_q ? 0 : 2 * p[i] * pow(1.25, 24);
}

/* 21: y is needed for its shape alone */
static tn_tensor *loss_21(const at *a)
{
	const int64_t shape[] = {3, 2, 2};

	return sum(tn_mul(tn_broadcast_to(a->p, shape, 3),
		number(a, 0.5)));
}
static double value_21(const double *p, const double *q)
{
	(void)q;
	return 1.5 * (p[0] + p[1] + p[2] + p[3]);
}
static double grad_21(const double *p, const double *q, int i, bool of_q)
{
	(void)p;
	(void)q;
	(void)i;
	return of_q ? 0 : 1.5;
}

static const inplace_case cases[] = {
	{"2", loss_2, value_2, grad_2, NULL, 0, false},
	{"3", loss_3, value_3, grad_3, after_3, 0, false},
	{"3, old p in the gradient", loss_3b, value_3b, grad_3b, after_3b, 1, false},
	{"4", loss_4, value_4, grad_4, after_4, 0, false},
	{"5", loss_5, value_5, grad_5, after_5, 0, true},
	{"6", loss_6, value_6, grad_6, NULL, 0, false},
	{"7", loss_7, value_7, grad_7, NULL, 0, true},
	{"8", loss_8, value_8, grad_8, NULL, 0, false},
	{"9", loss_9, value_9, grad_9, NULL, 0, false},
	{"10", loss_10, value_10, grad_10, NULL, 0, true},
	{"11", loss_11, value_11, grad_11, NULL, 0, false},
	{"15", loss_15, value_15, grad_15, NULL, 0, true},
	{"16", loss_16, value_16, grad_16, NULL, 0, false},
	{"17", loss_17, value_17, grad_17, NULL, 0, false},
	{"18", loss_18, value_18, grad_18, NULL, 0, false},
	{"19", loss_19, value_19, grad_19, NULL, 0, false},
	{"21", loss_21, value_21, grad_21, NULL, 0, false},
};

static void near(const char *name, const char *what, int step, double got,
	double want)
{
	if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want))))
		fail_msg("case %s, step %d: %s is %.12g, not %.12g", name, step,
			what, got, want);
}

static void sound(const inplace_case *k, const tn_context *c)
{
	if (tn_context_status(c) != TN_OK)
		fail_msg("case %s: [%s] %s", k->name, tn_context_diag(c)->rule,
			tn_context_diag(c)->text);
}

static void check_gradient(const inplace_case *k, int step, tn_tensor *x,
	const double *p, const double *q, bool of_q)
{
	tn_tensor *g = tn_gradient(x);
	double got[N] = {0};

	if (g != NULL)
		assert_int_equal(tn_read(g, got, sizeof got), TN_OK);
	for (int i = 0; i < N; i++)
		near(k->name, of_q ? "gradient of q" : "gradient of p", step,
			got[i], k->grad(p, q, i, of_q));
}

/*
 * One step of a case, and of descent: the next one starts elsewhere. early:
 * the loss is looked at before its gradient is asked for.
 */
static void one_step(const inplace_case *k, at *a, double *p, const double *q,
	bool early)
{
	tn_tensor *loss;
	double old[N + 1], value;

	tn_scope_enter(a->c);
	loss = k->loss(a);
	if (early)
		near(k->name, "the early loss", a->step, tn_item(loss),
			k->value(p, q));
	tn_backward(loss, NULL);
	tn_keep(loss);
	value = tn_item(loss);
	sound(k, a->c);
	near(k->name, "the loss", a->step, value, k->value(p, q));
	check_gradient(k, a->step, a->p, p, q, false);
	check_gradient(k, a->step, a->q, p, q, true);
	tn_no_grad_enter(a->c);
	memcpy(old, p, sizeof old);
	for (int i = 0; i < N; i++)
		p[i] = (k->after != NULL ? k->after(old[i], q[i]) : old[i]) -
			0.01 * k->grad(old, q, i, false);
	if (tn_gradient(a->p) != NULL)
		tn_sub_(a->p, tn_mul(tn_gradient(a->p), number(a, 0.01)));
	tn_zero_grad(a->p);
	tn_zero_grad(a->q);
	tn_no_grad_leave(a->c);
	tn_scope_leave(a->c);
	tn_drop(loss);
}

static void run_case(const inplace_case *k, bool interp, bool early)
{
	tn_options o = TN_OPTIONS_INIT;
	int64_t shape[] = {2, 2};
	double p[N + 1], q[N + 1], got[N];
	tn_stats stats;
	at a;

	o.interp = interp;
	assert_int_equal(tn_context_new(&a.c, &o), TN_OK);
	for (int i = 0; i < N; i++) {
		p[i] = start[i];
		q[i] = start[i] + 1;
	}
	a.p = tn_parameter(a.c, "p", TN_F64, 2, shape, p);
	a.q = tn_parameter(a.c, "q", TN_F64, 2, shape, q);
	for (a.step = 0; a.step < 4; a.step++) {
		p[N] = q[N] = a.step;
		one_step(k, &a, p, q, early);
		tn_context_stats(a.c, &stats);
		if (stats.n_copies != (a.step + 1) * k->copies)
			fail_msg("case %s, step %d: %d copies", k->name,
				a.step, (int)stats.n_copies);
		if (stats.n_inner_copies > (k->late ? a.step + 1 : 0))
			fail_msg("case %s, step %d: %d copies in programs",
				k->name, a.step, (int)stats.n_inner_copies);
	}
	/* the parameter ends with its last version, in its own memory */
	assert_int_equal(tn_read(a.p, got, sizeof got), TN_OK);
	for (int i = 0; i < N; i++)
		near(k->name, "the parameter", a.step, got[i], p[i]);
	sound(k, a.c);
	tn_context_free(a.c);
}

static void all_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		for (int how = 0; how < 4; how++)
			run_case(&cases[i], how % 2, how / 2);
	}
}

/*
 * 18 as it is decoded: cache[:, t] = k for 64 steps, each of which reads all of
 * the cache: never copied, compiled once.
 */
static void decode(void **state)
{
	enum { T = 64, D = 4 };
	tn_options o = TN_OPTIONS_INIT;
	const int64_t shape[] = {D, T};
	const int64_t row = 0;
	tn_stats first = {0}, last;
	double k[D], sums[D] = {0}, got[D];
	tn_context *c;
	tn_tensor *cache;

	(void)state;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	cache = tn_parameter(c, "cache", TN_F64, 2, shape, NULL); /* (D, T) */
	tn_no_grad_enter(c);
	for (int t = 0; t < T; t++) {
		const int64_t one[] = {D, 1}, axis = 1;
		tn_tensor *y, *x;

		tn_scope_enter(c);
		for (int i = 0; i < D; i++) {
			k[i] = start[i] * (t + 1);
			sums[i] += 2 * k[i];
		}
		x = tn_tensor_new(c, TN_F64, 2, one, k);
		tn_copy_(tn_dynamic_narrow(
				 cache, tn_scalar(c, TN_I64, t), 1, 1),
			tn_add(x, x));
		y = tn_reduce_sum(cache, &axis, 1, false); /* (D) */
		tn_keep(y);
		tn_scope_leave(c);
		assert_int_equal(tn_read(y, got, sizeof got), TN_OK);
		for (int i = 0; i < D; i++)
			near("18", "the sum of the cache", t, got[i], sums[i]);
		tn_drop(y);
		tn_context_stats(c, &last);
		assert_int_equal(last.n_copies, 0);
		assert_int_equal(last.n_inner_copies, 0);
		if (t == 0)
			first = last;
		assert_int_equal(last.n_plan_misses, first.n_plan_misses);
		assert_int_equal(last.bytes_live, first.bytes_live);
	}
	assert_int_equal(first.n_plan_misses, 1);
	/* beyond the end it is refused */
	tn_copy_(tn_dynamic_narrow(cache, tn_scalar(c, TN_I64, T), 1, 1),
		tn_dynamic_narrow(cache, tn_scalar(c, TN_I64, row), 1, 1));
	assert_int_equal(tn_eval(&cache, 1), TN_ERANGE);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_cases),
		cmocka_unit_test(decode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
