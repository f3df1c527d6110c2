/*
 * test_bodies.c: bodies of functions, conditions and loops that leave something
 * open, leave what is not theirs, keep what ends with them, or end the function
 * that is recorded; and optimisers of what has ended. The caller finds everything
 * as it was.
 */
#include "tenon.h"
#include "unit.h"

#include <string.h>

static const int64_t n3[1] = {3};
static const float one23[3] = {1, 2, 3};

enum { SCOPE, NO_GRAD, STEP, N_STATES };
enum { FUNCTION, BRANCH, LOOP, TEST, SCAN, N_PLACES };

struct odd {
	int32_t state, by; /* entered (1) or left (-1) once too often; 0: not */
	bool keeps, frees;
	tn_function *f;
	tn_tensor *kept, *w;
};

static tn_status nest(tn_context *c, int32_t state, int32_t by)
{
	switch (state) {
	case SCOPE:
		return by > 0 ? tn_scope_enter(c) : tn_scope_leave(c);
	case NO_GRAD:
		return by > 0 ? tn_no_grad_enter(c) : tn_no_grad_leave(c);
	default:
		return by > 0 ? tn_step_enter(c) : tn_step_leave(c);
	}
}

static tn_status body(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	struct odd *o = user;

	if (o->w != NULL)
		tn_copy_(o->w, tn_mul(o->w, o->w));
	if (o->by != 0)
		(void)nest(c, o->state, o->by);
	if (o->keeps)
		o->kept = tn_keep(tn_keep(tn_neg(in[0])));
	if (o->frees)
		tn_function_free(o->f);
	out[0] = tn_mul(in[0], in[0]);
	return TN_OK;
}

static tn_status test(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	struct odd *o = user;

	if (o->by != 0)
		(void)nest(c, o->state, o->by);
	out[0] = tn_lt(tn_reduce_sum(in[0], NULL, 0, false),
		tn_scalar(c, TN_F32, 9));
	return TN_OK;
}

static tn_status call(
	tn_context *c, int32_t place, struct odd *o, tn_tensor *x, tn_tensor **y)
{
	tn_status s;

	switch (place) {
	case FUNCTION:
		s = tn_compile(&o->f, c, body, o, 1, 1, "odd");
		if (s < 0)
			return s;
		s = tn_function_call(o->f, &x, y);
		if (!o->frees)
			tn_function_free(o->f);
		return s;
	case BRANCH:
		return tn_cond(c, tn_scalar(c, TN_BOOL, 1), body, body, o, 1, &x,
			1, y);
	case LOOP:
		return tn_while(c, test, body, o, 2, 1, &x, y);
	case TEST:
		o->w = NULL;
		return tn_while(c, test, body, o, 2, 1, &x, y);
	default:
		return tn_scan(c, body, o, 2, 1, 0, &x, 0, y);
	}
}

static tn_context *context(void)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = true;
	o.threads = 1;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

static void holds(tn_tensor *x, float a, float b, float c)
{
	float got[3] = {0};

	assert_int_equal(tn_read(x, got, sizeof got), TN_OK);
	assert_true(got[0] == a && got[1] == b && got[2] == c);
}

/* The caller is inside of one of each state, which stays open. */
static void balance(void **unused)
{
	static const char *const rules[N_STATES] = {
		"tensor.scope", "grad.scope", "step.scope"};

	(void)unused;
	for (int32_t k = 0; k < N_PLACES * N_STATES * 2; k++) {
		struct odd o = {.state = k / 2 % N_STATES, .by = k % 2 ? 1 : -1};
		int32_t place = k / 2 / N_STATES;
		tn_context *c = context();
		tn_tensor *w, *x, *mine, *y = NULL;

		w = tn_parameter(c, "w", TN_F32, 1, n3, one23);
		o.w = w;
		for (int32_t i = 0; i < N_STATES; i++)
			assert_int_equal(nest(c, i, 1), TN_OK);
		x = tn_tensor_new(c, TN_F32, 1, n3, one23);
		mine = tn_neg(x);
		assert_true(call(c, place, &o, x, &y) < 0);
		assert_string_equal(tn_context_diag(c)->rule,
			o.by > 0 ? "compile.scope" : rules[o.state]);
		tn_context_clear(c);
		assert_true(tn_is_valid(x) && tn_is_valid(mine));
		holds(w, 1, 2, 3);
		holds(mine, -1, -2, -3);
		for (int32_t i = N_STATES - 1; i >= 0; i--)
			assert_int_equal(nest(c, i, -1), TN_OK);
		assert_false(tn_is_valid(x));
		for (int32_t i = 0; i < N_STATES; i++) {
			assert_true(nest(c, i, -1) < 0);
			assert_string_equal(
				tn_context_diag(c)->rule, rules[i]);
			tn_context_clear(c);
		}
		tn_context_free(c);
	}
}

/* What a body makes ends with it, and is said to have ended. */
static void kept(void **unused)
{
	(void)unused;
	for (int32_t place = 0; place < N_PLACES; place++) {
		struct odd o = {.keeps = true};
		tn_context *c = context();
		tn_tensor *x = tn_tensor_new(c, TN_F32, 1, n3, one23), *y;
		float got[3];

		assert_int_equal(call(c, place, &o, x, &y), TN_OK);
		assert_false(tn_is_valid(o.kept));
		assert_true(tn_read(o.kept, got, sizeof got) < 0);
		assert_string_equal(tn_context_diag(c)->rule, "tensor.handle");
		tn_context_clear(c);
		assert_int_equal(tn_eval(&y, 1), TN_OK);
		tn_context_free(c);
	}
}

/* A body ends its own function: the call that records it goes on. */
static void freed(void **unused)
{
	struct odd o = {.frees = true};
	tn_context *c = context();
	tn_tensor *x = tn_parameter(c, "x", TN_F32, 1, n3, one23), *y;

	(void)unused;
	assert_int_equal(call(c, FUNCTION, &o, x, &y), TN_OK);
	holds(y, 1, 4, 9);
	assert_int_equal(
		tn_backward(tn_reduce_sum(y, NULL, 0, false), NULL), TN_OK);
	holds(tn_gradient(x), 2, 4, 6);
	tn_context_free(c);
}

/*
 * A step of an optimiser whose parameter was dropped is refused before anything
 * is written; its states end with it, also the master of a dropped parameter.
 */
static void dropped(void **unused)
{
	tn_context *c = context();
	tn_tensor *w = tn_parameter(c, "w", TN_F32, 1, n3, one23);
	tn_tensor *p = tn_parameter(c, "p", TN_BF16, 1, n3, NULL);
	tn_optimizer *o;
	tn_stats before, after;

	(void)unused;
	tn_context_stats(c, &before);
	assert_int_equal(tn_optimizer_new(&o, c, "adamw", NULL), TN_OK);
	assert_int_equal(tn_optimizer_add(o, tn_tensor_new(c, TN_I64, 1, n3, NULL)),
		TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "optimizer.dtype");
	tn_context_clear(c);
	assert_int_equal(tn_optimizer_add(o, w), TN_OK);
	assert_int_equal(tn_optimizer_add(o, p), TN_OK);
	tn_scope_enter(c);
	tn_backward(tn_reduce_sum(tn_mul(w, w), NULL, 0, false), NULL);
	tn_scope_leave(c);
	tn_drop(p);
	assert_int_equal(tn_optimizer_step(o), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "tensor.handle");
	assert_non_null(strstr(tn_context_diag(c)->text, "parameter 1"));
	tn_context_clear(c);
	assert_int_equal(tn_optimizer_steps(o), 0);
	holds(w, 1, 2, 3);
	holds(tn_gradient(w), 2, 4, 6);
	tn_zero_grad(w);
	tn_optimizer_free(o);
	tn_context_stats(c, &after);
	/* those of the integers, of p and of the gradient that was read */
	assert_int_equal(after.n_tensors, before.n_tensors - 1 + 1 + 1);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(balance),
		cmocka_unit_test(kept),
		cmocka_unit_test(freed),
		cmocka_unit_test(dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
