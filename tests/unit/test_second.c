/*
 * test_second.c: gradients of gradients through compiled functions: what plain
 * calls give, for one function and more in each other, with writes, second and
 * third order, in training loops, with and without memory for gradients; and
 * what is said of those through regions.
 */
#include "tenon.h"
#include "unit.h"

#include <math.h>

enum { N = 3, STEPS = 4, MAX = 256 };

static const int64_t n_[1] = {N}, nn[2] = {N, N};

typedef struct world {
	tn_context *c;
	tn_tensor *w, *b;
	tn_function *f, *g; /* NULL: plain */
	int32_t which;
} world;

static tn_tensor *sum(tn_tensor *x)
{
	return tn_reduce_sum(x, NULL, 0, false);
}

static tn_tensor *row(tn_tensor *x)
{
	static const int64_t shape[2] = {1, N};

	return tn_reshape(x, shape, 2);
}

/* ---- functions of x: out[0] a vector ---- */

static tn_tensor *smooth(world *k, tn_tensor *x)
{
	return tn_reshape(tn_tanh(tn_matmul(row(x), k->w)), n_, 1);
}

static tn_tensor *product(world *k, tn_tensor *x)
{
	tn_tensor *e = tn_exp(x), *s = tn_sin(tn_mul(e, x));

	(void)k;
	return tn_div(tn_mul(s, e), tn_add(tn_square(x), e));
}

/* versions in between, and state that is written without a gradient */
static tn_tensor *written(world *k, tn_tensor *x)
{
	tn_tensor *h = tn_copy(x);

	tn_mul_(h, tn_sin(x));
	tn_add_(tn_narrow(h, 0, 1, 2), tn_exp(tn_narrow(h, 0, 0, 2)));
	tn_no_grad_enter(k->c);
	tn_copy_(k->b, tn_add(k->b, h));
	tn_no_grad_leave(k->c);
	tn_mul_(h, h);
	return tn_mul(h, x);
}

static tn_status inner(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c;
	out[0] = smooth(user, in[0]);
	return TN_OK;
}

/* a function in a function, twice */
static tn_tensor *nested(world *k, tn_tensor *x)
{
	tn_tensor *y;

	if (k->g != NULL) {
		tn_function_call(k->g, &x, &y);
		y = tn_mul(y, x);
		tn_function_call(k->g, &y, &y);
	} else {
		y = smooth(k, tn_mul(smooth(k, x), x));
	}
	return tn_square(y);
}

/* several results, of which one is not used by the loss: y, y * x */
static tn_tensor *pieces(world *k, tn_tensor *x)
{
	tn_tensor *p[3];

	(void)k;
	tn_unbind(x, 0, p);
	p[0] = tn_mul(p[0], tn_mul(p[1], p[2]));
	p[1] = tn_exp(tn_mul(p[1], p[0]));
	return tn_mul(tn_stack(p, 3, 0), x);
}

/* the function takes a gradient itself */
static tn_tensor *gradient_in(world *k, tn_tensor *x)
{
	tn_tensor *y, *s, *g;

	if (k->g != NULL)
		tn_function_call(k->g, &x, &y);
	else
		y = smooth(k, x);
	s = sum(tn_square(y));
	tn_grad(1, &s, NULL, 1, &x, &g);
	return tn_add(tn_mul(g, g), y);
}

static tn_tensor *(*const functions[])(world *, tn_tensor *) = {
	smooth, product, written, nested, pieces, gradient_in};
enum { N_FUNCTIONS = sizeof functions / sizeof functions[0] };

static tn_status outer(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	world *k = user;

	(void)c;
	out[0] = functions[k->which](k, in[0]);
	out[1] = tn_mul(out[0], in[0]);
	return TN_OK;
}

static tn_tensor *value(world *k, tn_tensor *x)
{
	tn_tensor *out[2];

	if (k->f != NULL)
		tn_function_call(k->f, &x, out);
	else
		outer(k->c, k, &x, out);
	tn_drop(out[1]);
	return out[0];
}

/* ---- runs ---- */

typedef struct record {
	double at[MAX];
	int32_t n;
} record;

static void note(record *r, tn_tensor *x)
{
	int32_t n = (int32_t)tn_tensor_n_elems(x);

	assert_true(r->n + n <= MAX);
	(void)tn_read(x, r->at + r->n, (size_t)n * sizeof *r->at);
	r->n += n;
}

/* d sum(d^k f / dx^k) / dx, k = 0, 1, 2 */
static void orders(world *k, record *r, bool looks)
{
	static const double at[N] = {0.3, -0.5, 0.8};
	tn_tensor *x = tn_tensor_new(k->c, TN_F64, 1, n_, at), *y, *g;

	tn_requires_grad(x);
	y = value(k, x);
	for (int32_t i = 0; i < 3; i++) {
		tn_tensor *s = sum(y), *of[2] = {x, k->w}, *grad[2];

		if (looks) /* calls have run when the gradient is taken */
			note(r, y);
		tn_grad(1, &s, NULL, 2, of, grad);
		g = tn_add(grad[0], tn_reduce_sum(grad[1], (int64_t[]){0}, 1,
			false));
		note(r, g);
		y = g;
	}
	tn_backward(sum(tn_square(y)), NULL);
	note(r, tn_gradient(x));
	note(r, k->b);
}

/* a gradient penalty: w goes down the loss and the norm of its gradient */
static void penalty(world *k, record *r)
{
	for (int32_t i = 0; i < STEPS; i++) {
		double at[N] = {0.1 * i, 0.4, -0.3 * i};
		tn_tensor *x, *s, *g, *rate;

		tn_scope_enter(k->c);
		x = tn_tensor_new(k->c, TN_F64, 1, n_, at);
		tn_requires_grad(x);
		s = sum(tn_square(value(k, x)));
		tn_grad(1, &s, NULL, 1, &x, &g);
		tn_backward(tn_add(s, sum(tn_square(g))), NULL);
		rate = tn_scalar(k->c, TN_F64, 0.02);
		if (tn_gradient(k->w) != NULL) {
			tn_no_grad_enter(k->c);
			tn_sub_(k->w, tn_mul(tn_gradient(k->w), rate));
			tn_no_grad_leave(k->c);
		}
		tn_zero_grad(k->w);
		note(r, s);
		note(r, g);
		note(r, k->w);
		note(r, k->b);
		tn_scope_leave(k->c);
	}
}

static void run(int32_t which, bool is_compiled, int64_t limit, bool looks,
	record *r)
{
	double v[N * N];
	world k = {.which = which};
	tn_options o = TN_OPTIONS_INIT;

	o.interp = true;
	o.threads = 1;
	o.memory_limit = limit;
	assert_int_equal(tn_context_new(&k.c, &o), TN_OK);
	for (int32_t i = 0; i < N * N; i++)
		v[i] = cos(1.1 * i);
	k.w = tn_parameter(k.c, "w", TN_F64, 2, nn, v);
	k.b = tn_tensor_new(k.c, TN_F64, 1, n_, NULL);
	if (is_compiled) {
		assert_int_equal(tn_compile(&k.g, k.c, inner, &k, 1, 1, "g"),
			TN_OK);
		assert_int_equal(tn_compile(&k.f, k.c, outer, &k, 1, 2, "f"),
			TN_OK);
	}
	r->n = 0;
	orders(&k, r, looks);
	penalty(&k, r);
	if (tn_context_status(k.c) < 0)
		fail_msg("function %d, %s, limit %d%s: [%s] %s", (int)which,
			is_compiled ? "compiled" : "plain", (int)limit,
			looks ? ", looked at" : "", tn_context_diag(k.c)->rule,
			tn_context_diag(k.c)->text);
	tn_function_free(k.f);
	tn_function_free(k.g);
	tn_context_free(k.c);
}

static void as_plain_calls(void **state)
{
	static record want, got;

	(void)state;
	for (int32_t which = 0; which < N_FUNCTIONS; which++)
		for (int32_t how = 0; how < 4; how++) {
			int64_t limit = how % 2 ? 0 : -1;

			run(which, false, limit, how > 1, &want);
			run(which, true, limit, how > 1, &got);
			assert_int_equal(got.n, want.n);
			for (int32_t i = 0; i < got.n; i++)
				if (!(fabs(got.at[i] - want.at[i]) <=
					    1e-9 * (1 + fabs(want.at[i]))))
					fail_msg("function %d, way %d, element "
						 "%d: %.12g, plain %.12g",
						(int)which, (int)how, (int)i,
						got.at[i], want.at[i]);
		}
}

/* ---- through regions: said, never left out ---- */

static tn_status cubed(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c;
	(void)user;
	out[0] = tn_mul(tn_square(in[0]), in[0]);
	return TN_OK;
}

static tn_status branch(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	return tn_cond(c, tn_scalar(c, TN_BOOL, 1), cubed, cubed, user, 1, in,
		1, out);
}

static void refused(tn_context *c)
{
	assert_int_equal(tn_context_status(c), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "grad.second");
	tn_context_clear(c);
}

static void through_regions(void **state)
{
	static const double at[N] = {1, 2, 3};
	tn_options o = TN_OPTIONS_INIT;

	(void)state;
	o.interp = true;
	for (int32_t way = 0; way < 3; way++) {
		tn_context *c;
		tn_function *f = NULL;
		tn_tensor *x, *y, *s, *g, *h;
		double got[N];

		assert_int_equal(tn_context_new(&c, &o), TN_OK);
		x = tn_tensor_new(c, TN_F64, 1, n_, at);
		tn_requires_grad(x);
		if (way == 0)
			assert_int_equal(tn_compile(&f, c, branch, NULL, 1, 1,
				"f"), TN_OK);
		if (way == 0)
			tn_function_call(f, &x, &y);
		else if (way == 1)
			branch(c, NULL, &x, &y);
		else
			tn_scan(c, cubed, NULL, 1, 1, 0, &x, 0, &y);
		s = sum(y);
		tn_grad(1, &s, NULL, 1, &x, &g);
		assert_int_equal(tn_context_status(c), TN_OK);
		h = sum(tn_square(g));
		assert_int_equal(tn_backward(h, NULL), TN_EINVAL);
		refused(c);
		assert_int_equal(tn_backward(tn_add(s, h), NULL), TN_EINVAL);
		refused(c);
		/* a constant from here on */
		h = sum(tn_mul(tn_detach(g), x));
		assert_int_equal(tn_backward(h, NULL), TN_OK);
		assert_int_equal(tn_read(tn_gradient(x), got, sizeof got),
			TN_OK);
		for (int32_t i = 0; i < N; i++)
			assert_true(got[i] == 3 * at[i] * at[i]);
		assert_int_equal(tn_context_status(c), TN_OK);
		tn_function_free(f);
		tn_context_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_plain_calls),
		cmocka_unit_test(through_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
