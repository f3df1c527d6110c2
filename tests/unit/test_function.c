/*
 * test_function.c: compiled functions: in-place cases called three steps and
 * more, kinds of arguments, whole training steps, and what is refused.
 */
#include "tenon.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>

static const int64_t n3[1] = {3}, n8[1] = {8}, n13[2] = {1, 3};

static tn_context *context(bool interp)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = interp;
	o.threads = 1;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

static tn_function *compiled(tn_context *c, tn_body *b, void *user,
	int32_t n_in, int32_t n_out)
{
	tn_function *f;

	assert_int_equal(
		tn_compile(&f, c, b, user, n_in, n_out, "f"), TN_OK);
	return f;
}

static void near(double x, double y)
{
	assert_true(fabs(x - y) <= 1e-9 * (1 + fabs(y)));
}

static void expect(tn_tensor *x, int32_t n, const double *want)
{
	double v[16];

	assert_true(tn_is_valid(x));
	assert_int_equal(tn_read(x, v, (size_t)n * sizeof *v), TN_OK);
	for (int32_t i = 0; i < n; i++)
		near(v[i], want[i]);
}

static int64_t copies(tn_context *c)
{
	tn_stats s;

	tn_context_stats(c, &s);
	return s.n_copies;
}

/* ---- outputs that are storages: cases 3, 4, 5, 6, 11 ---- */

static tn_status several(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	tn_tensor *p = user;

	(void)c;
	(void)tn_copy_(in[0], tn_relu(in[0]));
	out[0] = in[0];				    /* the argument */
	out[1] = in[0];
	out[2] = p;				    /* a parameter */
	out[3] = tn_copy(p);			    /* elements of its own */
	return TN_OK;
}

static void run_outputs(bool interp)
{
	static const double x[3] = {-1, 2, -3}, y[3] = {0, 2, 0};
	static const double w[3] = {1, 2, 3}, zero[3] = {0};
	tn_context *c = context(interp);
	tn_tensor *p = tn_parameter(c, "p", TN_F64, 1, n3, w), *out[4];
	tn_tensor *a;
	tn_function *f;

	f = compiled(c, several, p, 1, 4);
	for (int32_t k = 0; k < 3; k++) {
		tn_scope_enter(c);
		a = tn_tensor_new(c, TN_F64, 1, n3, x);
		assert_int_equal(tn_function_call(f, &a, out), TN_OK);
		expect(a, 3, y); /* as the caller sees it */
		expect(out[0], 3, y);
		/* one storage: a write to one is seen by the other */
		(void)tn_fill_(out[0], 7);
		expect(out[1], 3, (double[3]){7, 7, 7});
		expect(a, 3, (double[3]){7, 7, 7});
		tn_no_grad_enter(c);
		(void)tn_fill_(out[3], 0); /* not the parameter */
		expect(p, 3, w);
		expect(out[3], 3, zero);
		(void)tn_fill_(out[2], 5);
		expect(p, 3, (double[3]){5, 5, 5});
		tn_set_data(p, w, sizeof w);
		tn_no_grad_leave(c);
		tn_scope_leave(c);
	}
	assert_int_equal(tn_function_n_recorded(f), 1);
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_function_free(f);
	tn_context_free(c);
}

static void test_outputs(void **state)
{
	(void)state;
	run_outputs(true);
	run_outputs(false);
}

/* What its report says holds these texts. */
static void reports(tn_function *f, const char *one, const char *two)
{
	char *text;

	assert_int_equal(tn_function_text(&text, f, false), TN_OK);
	if (strstr(text, one) == NULL || strstr(text, two) == NULL)
		fail_msg("neither \"%s\" nor \"%s\" may lack in\n%s", one, two,
			text);
	tn_text_free(text);
}

/* ---- two functions share a parameter: case 13 ---- */

static tn_status writes_p(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	tn_tensor *p = user;

	tn_no_grad_enter(c);
	(void)tn_copy_(p, tn_add(p, in[0]));
	tn_no_grad_leave(c);
	out[0] = p;
	return TN_OK;
}

static tn_status reads_p(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	out[0] = tn_mul(tn_mul(user, user), in[0]);
	return TN_OK;
}

static void test_shared(void **state)
{
	static const double x[3] = {1, 2, 3};
	tn_context *c = context(false);
	tn_tensor *p = tn_parameter(c, "p", TN_F64, 1, n3, x);
	tn_function *f = compiled(c, writes_p, p, 1, 1);
	tn_function *g = compiled(c, reads_p, p, 1, 1);

	(void)state;
	for (int32_t k = 0; k < 4; k++) {
		double at = k + 2, want[3], slope[3];
		tn_tensor *a, *y;

		tn_scope_enter(c);
		a = tn_tensor_new(c, TN_F64, 1, n3, x);
		assert_int_equal(tn_function_call(f, &a, &y), TN_OK);
		assert_int_equal(tn_function_call(g, &a, &y), TN_OK);
		assert_int_equal(tn_backward(tn_reduce_sum(y, NULL, 0, false),
			NULL), TN_OK);
		for (int32_t i = 0; i < 3; i++) {
			want[i] = at * x[i] * at * x[i] * x[i];
			slope[i] = 2 * at * x[i] * x[i];
		}
		expect(y, 3, want);
		expect(tn_gradient(p), 3, slope);
		tn_zero_grad(p);
		tn_scope_leave(c);
	}
	assert_int_equal(copies(c), 0);
	reports(f, "param p                f64[3]          version 0 -> 1",
		"slot 1, version 1");
	reports(g, "param p                f64[3]          version 0\n",
		"slot 1, version 0, 0 bytes");
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_function_free(f);
	tn_function_free(g);
	tn_context_free(c);
}

/* ---- kinds of arguments: case 14 ---- */

static tn_status add_into(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	(void)user;
	(void)tn_copy_(in[0], tn_add(in[0], in[1]));
	out[0] = tn_mul(in[0], in[1]);
	return TN_OK;
}

static void test_kinds(void **state)
{
	static const double v[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	tn_context *c = context(true);
	tn_function *f = compiled(c, add_into, NULL, 2, 1);
	tn_tensor *s = tn_tensor_new(c, TN_F64, 1, n8, v);
	tn_tensor *b = tn_tensor_new(c, TN_F64, 1, n3, v), *in[2], *out;

	(void)state;
	/* eight places of one storage, and another tensor: one kind */
	for (int64_t i = 0; i < 6; i++) {
		in[0] = tn_narrow(s, 0, i, 3);
		in[1] = b;
		assert_int_equal(tn_function_call(f, in, &out), TN_OK);
	}
	expect(s, 8, (double[8]){2, 5, 9, 10, 11, 12, 12, 11});
	assert_int_equal(tn_function_n_recorded(f), 1);
	/* neighbours of one storage that do not overlap: the same kind */
	in[0] = tn_narrow(s, 0, 0, 3);
	in[1] = tn_narrow(s, 0, 3, 3);
	assert_int_equal(tn_function_call(f, in, &out), TN_OK);
	expect(s, 8, (double[8]){12, 16, 21, 10, 11, 12, 12, 11});
	assert_int_equal(tn_function_n_recorded(f), 1);
	/* they overlap, and one is written: another kind */
	in[1] = tn_narrow(s, 0, 1, 3);
	assert_int_equal(tn_function_call(f, in, &out), TN_OK);
	expect(s, 8, (double[8]){28, 37, 31, 10, 11, 12, 12, 11});
	expect(out, 3, (double[3]){28 * 37, 37 * 31, 31 * 10});
	assert_int_equal(tn_function_n_recorded(f), 2);
	reports(f, "argument a0            f64[3]          version 0 -> 1",
		"storage of argument a0 f64[8]          version 0 -> 1");
	/* the same again: known */
	assert_int_equal(tn_function_call(f, in, &out), TN_OK);
	assert_int_equal(tn_function_n_recorded(f), 2);
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_function_free(f);
	tn_context_free(c);
}

/* Batches of one tensor are one program, wherever they begin. */
static void test_batches(void **state)
{
	tn_context *c = context(false);
	tn_function *f = compiled(c, add_into, NULL, 2, 1);
	const int64_t shape[2] = {8, 4}, part[2] = {2, 4};
	tn_tensor *x, *y, *in[2];
	double v[32];
	tn_stats a, b;

	(void)state;
	for (int32_t i = 0; i < 32; i++)
		v[i] = i;
	x = tn_tensor_new(c, TN_F64, 2, shape, v);
	for (int32_t k = 0; k < 4; k++) {
		double want[8], sum[8];

		tn_scope_enter(c);
		in[0] = tn_tensor_new(c, TN_F64, 2, part, NULL);
		in[1] = tn_narrow(x, 0, 2 * k, 2);
		assert_int_equal(tn_function_call(f, in, &y), TN_OK);
		for (int32_t i = 0; i < 8; i++) {
			sum[i] = v[8 * k + i];
			want[i] = sum[i] * sum[i];
		}
		expect(y, 8, want);
		expect(in[0], 8, sum);
		/* a row in the middle of one, too */
		expect(tn_mul(tn_select(in[1], 0, 1), tn_select(x, 0, 7)), 4,
			(double[4]){v[8 * k + 4] * 28, v[8 * k + 5] * 29,
				v[8 * k + 6] * 30, v[8 * k + 7] * 31});
		tn_scope_leave(c);
		if (k == 1)
			tn_context_stats(c, &a);
	}
	tn_context_stats(c, &b);
	assert_int_equal(a.n_programs, b.n_programs);
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_function_free(f);
	tn_context_free(c);
}

/* ---- a statistic that is written twice: case 1 ---- */

struct norm {
	tn_tensor *mean, *w;
};

static tn_tensor *norm(struct norm *m, tn_tensor *x)
{
	tn_tensor *y = tn_mul(tn_sub(x, m->mean), m->w);
	tn_tensor *half = tn_scalar(tn_tensor_context(x), TN_F64, 0.5);

	(void)tn_copy_(m->mean,
		tn_add(tn_mul(m->mean, half), tn_mul(tn_detach(x), half)));
	return y;
}

static tn_status twice(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	out[0] = tn_add(norm(user, in[0]), norm(user, in[0]));
	return TN_OK;
}

static void steps_of(tn_context *c, bool is_compiled, double *figure)
{
	static const double x[3] = {0.5, -1, 2}, one[3] = {1, 2, 3};
	struct norm m;
	tn_function *f;
	int32_t n = 0;

	tn_no_grad_enter(c);
	m.mean = tn_parameter(c, "mean", TN_F64, 1, n3, NULL);
	tn_no_grad_leave(c);
	m.w = tn_parameter(c, "w", TN_F64, 1, n3, one);
	f = compiled(c, twice, &m, 1, 1);
	for (int32_t k = 0; k < 4; k++) {
		tn_tensor *a, *y, *loss;
		double v[3];

		tn_scope_enter(c);
		a = tn_tensor_new(c, TN_F64, 1, n3, x);
		if (is_compiled)
			assert_int_equal(tn_function_call(f, &a, &y), TN_OK);
		else
			assert_int_equal(twice(c, &m, &a, &y), TN_OK);
		loss = tn_reduce_sum(tn_mul(y, y), NULL, 0, false);
		/* the caller overwrites what the backward reads */
		tn_no_grad_enter(c);
		(void)tn_copy_(m.mean, tn_mul(m.mean, m.mean));
		tn_no_grad_leave(c);
		assert_int_equal(tn_backward(loss, NULL), TN_OK);
		figure[n++] = tn_item(loss);
		assert_int_equal(
			tn_read(tn_gradient(m.w), v, sizeof v), TN_OK);
		for (int32_t i = 0; i < 3; i++)
			figure[n++] = v[i];
		assert_int_equal(tn_read(m.mean, v, sizeof v), TN_OK);
		for (int32_t i = 0; i < 3; i++)
			figure[n++] = v[i];
		tn_scope_leave(c);
	}
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_function_free(f);
}

static void test_statistic(void **state)
{
	double plain[28], with[28];

	(void)state;
	for (int32_t i = 0; i < 2; i++) {
		tn_context *c = context(i == 0), *d = context(i == 0);

		steps_of(c, false, plain);
		steps_of(d, true, with);
		for (int32_t k = 0; k < 28; k++)
			near(plain[k], with[k]);
		tn_context_free(c);
		tn_context_free(d);
	}
}

/* ---- a whole training step: case 12 ---- */

static tn_status step(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	tn_tensor *w = user, *y = tn_sub(tn_mul(w, in[0]), in[1]);
	tn_tensor *loss = tn_reduce_sum(tn_mul(y, y), NULL, 0, false);
	tn_status s = tn_backward(loss, NULL);

	if (s < 0)
		return s;
	tn_no_grad_enter(c);
	(void)tn_copy_(w, tn_sub(w, tn_mul(tn_gradient(w), in[2])));
	tn_no_grad_leave(c);
	tn_zero_grad(w);
	out[0] = tn_detach(loss);
	return TN_OK;
}

static void test_step(void **state)
{
	static const double x[3] = {1, 2, 3}, y[3] = {2, 2, 2};
	tn_context *c = context(false);
	tn_tensor *w = tn_parameter(c, "w", TN_F64, 1, n3, x), *loss;
	tn_function *f = compiled(c, step, w, 3, 1);
	double v[3] = {1, 2, 3};
	tn_stats a, b;

	(void)state;
	for (int32_t k = 0; k < 10; k++) {
		tn_tensor *in[3];
		double sum = 0, r;

		tn_scope_enter(c);
		in[0] = tn_tensor_new(c, TN_F64, 1, n3, x);
		in[1] = tn_tensor_new(c, TN_F64, 1, n3, y);
		in[2] = tn_scalar(c, TN_F64, 0.01 * (k + 1));
		assert_int_equal(tn_function_call(f, in, &loss), TN_OK);
		for (int32_t i = 0; i < 3; i++) {
			r = v[i] * x[i] - y[i];
			sum += r * r;
			v[i] -= 2 * r * x[i] * 0.01 * (k + 1);
		}
		near(tn_item(loss), sum);
		expect(w, 3, v);
		assert_null(tn_gradient(w));
		tn_scope_leave(c);
		if (k == 1)
			tn_context_stats(c, &a);
	}
	tn_context_stats(c, &b);
	assert_int_equal(b.n_programs, a.n_programs); /* compiled once */
	assert_int_equal(copies(c), 0);		      /* w is where it was */
	assert_int_equal(tn_function_n_recorded(f), 1);
	tn_function_free(f);
	tn_context_free(c);
}

/* ---- a step with an optimiser in it ---- */

struct training {
	tn_tensor *w;
	tn_optimizer *o;
};

static tn_status adamw_step(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	struct training *m = user;
	tn_tensor *y = tn_sub(tn_mul(m->w, in[0]), in[1]);
	tn_status s;

	(void)c;
	out[0] = tn_reduce_sum(tn_mul(y, y), NULL, 0, false);
	s = tn_backward(out[0], NULL);
	return s < 0 ? s : tn_optimizer_step(m->o);
}

static void train(bool is_compiled, double *figure)
{
	static const double x[3] = {1, 2, 3}, y[3] = {2, 2, 2};
	tn_optimizer_options oo = TN_OPTIMIZER_OPTIONS_INIT;
	tn_context *c = context(true);
	struct training m;
	tn_function *f;
	int32_t n = 0;

	oo.clip_norm = 1;
	m.w = tn_parameter(c, "w", TN_F64, 1, n3, x);
	assert_int_equal(tn_optimizer_new(&m.o, c, "adamw", &oo), TN_OK);
	assert_int_equal(tn_optimizer_add(m.o, m.w), TN_OK);
	f = compiled(c, adamw_step, &m, 2, 1);
	for (int32_t k = 0; k < 8; k++) {
		tn_tensor *in[2], *loss;
		double v[3];

		tn_scope_enter(c);
		tn_optimizer_set_lr(m.o, 0.1 / (k + 1));
		in[0] = tn_tensor_new(c, TN_F64, 1, n3, x);
		in[1] = tn_tensor_new(c, TN_F64, 1, n3, y);
		if (is_compiled)
			assert_int_equal(
				tn_function_call(f, in, &loss), TN_OK);
		else
			assert_int_equal(
				adamw_step(c, &m, in, &loss), TN_OK);
		figure[n++] = tn_item(loss);
		assert_int_equal(tn_read(m.w, v, sizeof v), TN_OK);
		for (int32_t i = 0; i < 3; i++)
			figure[n++] = v[i];
		assert_int_equal(tn_optimizer_steps(m.o), k + 1);
		tn_scope_leave(c);
	}
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_function_free(f);
	tn_optimizer_free(m.o);
	tn_context_free(c);
}

static void test_training(void **state)
{
	double plain[32], with[32];

	(void)state;
	train(false, plain);
	train(true, with);
	for (int32_t k = 0; k < 32; k++)
		near(plain[k], with[k]);
	assert_true(plain[28] < plain[0]);
}

/* ---- random numbers, and functions in functions ---- */

static tn_status noise(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)user;
	out[0] = tn_add(in[0],
		tn_uniform(tn_random_key(c), n3, 1, 0, 1, TN_F64));
	return TN_OK;
}

static tn_status outer(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	tn_tensor *x = tn_mul(in[0], in[0]), *y;
	tn_status s = tn_function_call((tn_function *)user, &x, &y);

	(void)c;
	out[0] = tn_mul(y, y);
	return s;
}

static tn_status square_into(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	(void)user;
	(void)tn_copy_(in[0], tn_mul(in[0], in[0]));
	out[0] = tn_add(in[0], in[0]);
	return TN_OK;
}

static void test_inside(void **state)
{
	static const double x[3] = {1, 2, 3};
	tn_context *c = context(true);
	tn_tensor *a = tn_tensor_new(c, TN_F64, 1, n3, x), *y, *loss;
	tn_function *f = compiled(c, noise, NULL, 1, 1);
	tn_function *g = compiled(c, square_into, NULL, 1, 1);
	tn_function *h = compiled(c, outer, g, 1, 1);
	double first[3], second[3];

	(void)state;
	assert_int_equal(tn_function_call(f, &a, &y), TN_OK);
	assert_int_equal(tn_read(y, first, sizeof first), TN_OK);
	assert_int_equal(tn_function_call(f, &a, &y), TN_OK);
	assert_int_equal(tn_read(y, second, sizeof second), TN_OK);
	assert_true(first[0] != second[0]);
	/* h(a) = (2 (a^2)^2)^2 = 4 a^8 */
	(void)tn_requires_grad(a);
	for (int32_t k = 0; k < 3; k++) {
		tn_zero_grad(a);
		assert_int_equal(tn_function_call(h, &a, &y), TN_OK);
		loss = tn_reduce_sum(y, NULL, 0, false);
		assert_int_equal(tn_backward(loss, NULL), TN_OK);
		expect(y, 3, (double[3]){4, 1024, 26244});
		expect(tn_gradient(a), 3, (double[3]){32, 4096, 69984});
	}
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_function_free(h);
	tn_function_free(g);
	tn_function_free(f);
	tn_context_free(c);
}

/* ---- memory ---- */

static tn_status chain(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	tn_tensor *p = user, *h = tn_sin(tn_mul(in[0], p));

	(void)c;
	out[0] = tn_mul(tn_exp(h), h);
	return TN_OK;
}

/* Under a limit the calls between are made again: the same gradient. */
static void test_limit(void **state)
{
	static const double x[3] = {0.5, -1, 2};
	double g[2][3];

	(void)state;
	for (int32_t k = 0; k < 2; k++) {
		tn_options o = TN_OPTIONS_INIT;
		tn_tensor *p, *a, *y;
		tn_function *f;
		tn_context *c;
		char *text;

		o.interp = true;
		o.memory_limit = k == 0 ? -1 : 0;
		assert_int_equal(tn_context_new(&c, &o), TN_OK);
		p = tn_parameter(c, "p", TN_F64, 1, n3, x);
		a = tn_tensor_new(c, TN_F64, 1, n3, x);
		f = compiled(c, chain, p, 1, 1);
		assert_int_equal(tn_function_call(f, &a, &y), TN_OK);
		assert_int_equal(tn_function_text(&text, f, false), TN_OK);
		assert_true((strstr(text, "  0 bytes are kept") != NULL) ==
			(k == 1));
		assert_true((strstr(text, "made again") != NULL) == (k == 1));
		tn_text_free(text);
		assert_int_equal(tn_backward(tn_reduce_sum(y, NULL, 0, false),
			NULL), TN_OK);
		assert_int_equal(
			tn_read(tn_gradient(p), g[k], sizeof g[k]), TN_OK);
		tn_function_free(f);
		tn_context_free(c);
	}
	for (int32_t i = 0; i < 3; i++)
		near(g[1][i], g[0][i]);
}

static tn_status noisy(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)user;
	out[0] = tn_mul(in[0], tn_uniform(tn_random_key(c), n3, 1, 0, 1, TN_F64));
	return TN_OK;
}

/* Keys that calls are given are let go with them; each call has its own. */
static void test_keys(void **state)
{
	static const double x[3] = {1, 2, 3};
	tn_context *c = context(true);
	tn_function *f = compiled(c, noisy, NULL, 1, 1);
	tn_tensor *a = tn_tensor_new(c, TN_F64, 1, n3, x), *y;
	double last = -1, v[3];
	int64_t live = 0;
	tn_stats s;

	(void)state;
	for (int32_t k = 0; k < 6; k++) {
		tn_scope_enter(c);
		assert_int_equal(tn_function_call(f, &a, &y), TN_OK);
		assert_int_equal(tn_read(y, v, sizeof v), TN_OK);
		tn_scope_leave(c);
		assert_true(v[0] != last);
		last = v[0];
		tn_context_stats(c, &s);
		if (k == 2)
			live = s.bytes_live;
	}
	assert_int_equal(s.bytes_live, live);
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_function_free(f);
	tn_context_free(c);
}

/* ---- donation ---- */

static tn_status grow(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	(void)user;
	out[0] = in[0]; /* in its own memory */
	return tn_add_(in[0], in[1]);
}

static const char *rule_of(tn_context *c)
{
	static char rule[64];

	snprintf(rule, sizeof rule, "%s", tn_context_diag(c)->rule);
	tn_context_clear(c);
	return rule;
}

static void test_donated(void **state)
{
	static const double x[3] = {1, 2, 3};
	static const bool first[2] = {true, false}, both[2] = {true, true};
	tn_context *c = context(false);
	tn_function *f = compiled(c, grow, NULL, 2, 1);
	tn_tensor *in[2], *out, *view;

	(void)state;
	in[0] = tn_tensor_new(c, TN_F64, 1, n3, x);
	in[1] = tn_tensor_new(c, TN_F64, 1, n3, x);
	for (int32_t k = 0; k < 4; k++) { /* a state that goes round */
		assert_int_equal(tn_function_donate(f, in, first, &out), TN_OK);
		assert_false(tn_is_valid(in[0]));
		expect(out, 3, (double[3]){k + 2, 2 * (k + 2), 3 * (k + 2)});
		tn_drop(in[0]);
		in[0] = out;
	}
	assert_int_equal(copies(c), 0);
	/* what is gone says so, and takes nothing else with it */
	assert_int_equal(tn_function_donate(f, in, first, &out), TN_OK);
	assert_true(tn_fill_(in[0], 0) < 0);
	assert_string_equal(rule_of(c), "tensor.donated");
	expect(out, 3, (double[3]){6, 12, 18});
	/* twice, seen by another, overlapping another argument */
	in[0] = in[1] = out;
	assert_true(tn_function_donate(f, in, both, &out) < 0);
	assert_string_equal(rule_of(c), "compile.donate");
	view = tn_narrow(in[0], 0, 1, 2);
	in[1] = tn_tensor_new(c, TN_F64, 1, n3, x);
	assert_true(tn_function_donate(f, in, first, &out) < 0);
	assert_string_equal(rule_of(c), "compile.donate");
	tn_drop(view);
	assert_int_equal(tn_function_donate(f, in, first, &out), TN_OK);
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_function_free(f);
	tn_context_free(c);
}

/* ---- what is refused ---- */

static tn_status bad(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	int32_t what = *(int32_t *)user;

	out[0] = tn_add(in[0], in[0]);
	if (what == 0)
		(void)tn_item(tn_reduce_sum(in[0], NULL, 0, false));
	if (what == 1)
		out[0] = tn_scalar(c, TN_F64, 1);
	if (what == 2)
		tn_drop(out[0]);
	if (what == 3)
		(void)tn_scope_enter(c);
	if (what == 4)
		return TN_EIO;
	if (what == 5)
		out[0] = tn_matmul(in[0], tn_scalar(c, TN_F32, 1));
	return TN_OK;
}

static void test_refused(void **state)
{
	static const struct {
		int32_t what;
		const char *rule;
	} cases[] = {{0, "compile.read"}, {1, "compile.output"},
		{2, "compile.output"}, {3, "compile.scope"},
		{4, "compile.body"}, {5, "matmul."}};
	static const double x[3] = {1, 2, 3};
	tn_context *c = context(true);
	tn_tensor *a = tn_tensor_new(c, TN_F64, 1, n3, x), *y;
	tn_tensor *m = tn_tensor_new(c, TN_F64, 2, n13, x);
	int32_t what;
	tn_function *f;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		what = cases[i].what;
		f = compiled(c, bad, &what, 1, 1);
		assert_true(tn_function_call(f, &a, &y) < 0);
		assert_false(tn_is_valid(y));
		assert_memory_equal(tn_context_diag(c)->rule, cases[i].rule,
			strlen(cases[i].rule));
		tn_context_clear(c);
		/* nothing is left of it: the next recording is right */
		what = 9;
		assert_int_equal(tn_function_call(f, &a, &y), TN_OK);
		expect(y, 3, (double[3]){2, 4, 6});
		expect(a, 3, x);
		tn_function_free(f);
	}
	f = compiled(c, bad, &what, 1, 1);
	assert_int_equal(tn_function_call(f, &a, &y), TN_OK);
	assert_true(tn_function_call(f, &m, &y) < 0);
	assert_string_equal(tn_context_diag(c)->rule, "compile.rank");
	tn_function_free(f);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outputs),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_statistic),
		cmocka_unit_test(test_step),
		cmocka_unit_test(test_training),
		cmocka_unit_test(test_inside),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_donated),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
