/*
 * In-place cases on tensors, uncompiled: values and gradients over three steps
 * in a row, each against its formula. The numbers are those of the list of
 * cases that the alias model was made for.
 */
#include "unit.h"

#include <math.h>

enum { N = 4 };

static const double start[N] = {0.5, -1, 2, -0.25};

typedef struct at {
	tn_context *c;
	tn_tensor *p, *q; /* parameters (2, 2); q = p + 1 */
} at;

/* Records the case; its loss. want_p, want_q: gradients, by p's elements. */
typedef struct inplace_case {
	const char *name;
	tn_tensor *(*loss)(const at *a);
	double (*value)(const double *p, const double *q);
	double (*grad)(const double *p, const double *q, int i, bool of_q);
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
	{"2", loss_2, value_2, grad_2},
	{"7", loss_7, value_7, grad_7},
	{"8", loss_8, value_8, grad_8},
	{"9", loss_9, value_9, grad_9},
	{"10", loss_10, value_10, grad_10},
	{"11", loss_11, value_11, grad_11},
	{"15", loss_15, value_15, grad_15},
	{"17", loss_17, value_17, grad_17},
	{"19", loss_19, value_19, grad_19},
	{"21", loss_21, value_21, grad_21},
};

static void near(const char *name, const char *what, int step, double got,
	double want)
{
	if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want))))
		fail_msg("case %s, step %d: %s is %.12g, not %.12g", name, step,
			what, got, want);
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

static void run_case(const inplace_case *k, bool interp)
{
	tn_options o = TN_OPTIONS_INIT;
	int64_t shape[] = {2, 2};
	double p[N], q[N], old[N];
	at a;

	o.interp = interp;
	assert_int_equal(tn_context_new(&a.c, &o), TN_OK);
	for (int i = 0; i < N; i++) {
		p[i] = start[i];
		q[i] = start[i] + 1;
	}
	a.p = tn_parameter(a.c, "p", TN_F64, 2, shape, p);
	a.q = tn_parameter(a.c, "q", TN_F64, 2, shape, q);
	for (int step = 0; step < 3; step++) {
		tn_tensor *loss;

		tn_scope_enter(a.c);
		loss = k->loss(&a);
		tn_backward(loss, NULL);
		tn_keep(loss);
		near(k->name, "the loss", step, tn_item(loss), k->value(p, q));
		check_gradient(k, step, a.p, p, q, false);
		check_gradient(k, step, a.q, p, q, true);
		/* a step of descent: the next one starts elsewhere */
		tn_no_grad_enter(a.c);
		memcpy(old, p, sizeof p);
		for (int i = 0; i < N; i++)
			p[i] -= 0.01 * k->grad(old, q, i, false);
		tn_sub_(a.p, tn_mul(tn_gradient(a.p), number(&a, 0.01)));
		tn_zero_grad(a.p);
		tn_zero_grad(a.q);
		tn_no_grad_leave(a.c);
		tn_scope_leave(a.c);
		tn_drop(loss);
	}
	if (tn_context_status(a.c) != TN_OK)
		fail_msg("case %s: [%s] %s", k->name,
			tn_context_diag(a.c)->rule, tn_context_diag(a.c)->text);
	tn_context_free(a.c);
}

static void all_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		run_case(&cases[i], true);
		run_case(&cases[i], false);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_cases)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
