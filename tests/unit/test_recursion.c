/*
 * test_recursion.c: functions and regions whose recording would have no end are
 * refused, leave everything as it was, and can be called when they have one.
 */
#include "tenon.h"
#include "unit.h"

#include <string.h>

static const int64_t n3[1] = {3};
static const double one23[3] = {1, 2, 3};

enum { STRAIGHT, THROUGH_ANOTHER, IN_A_BRANCH, IN_A_LOOP, IN_A_SCAN, N_WAYS };

/* f calls itself while left > 0, in some way */
struct self {
	tn_function *f, *g;
	tn_tensor *w;
	int32_t way, left, calls;
};

static tn_status again(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	struct self *s = user;

	(void)c;
	return tn_function_call(s->f, in, out);
}

static tn_status as_it_is(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c;
	(void)user;
	out[0] = tn_neg(in[0]);
	return TN_OK;
}

static tn_status below(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)user;
	out[0] = tn_lt(tn_reduce_sum(in[0], NULL, 0, false),
		tn_scalar(c, TN_F64, 9));
	return TN_OK;
}

static tn_status calls_itself(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	struct self *s = user;

	s->calls++;
	tn_copy_(s->w, tn_add(s->w, in[0]));
	if (s->left-- <= 0) {
		out[0] = tn_mul(in[0], s->w);
		return TN_OK;
	}
	switch (s->way) {
	case STRAIGHT:
		return tn_function_call(s->f, in, out);
	case THROUGH_ANOTHER:
		return tn_function_call(s->g, in, out);
	case IN_A_BRANCH:
		return tn_cond(c, tn_scalar(c, TN_BOOL, 1), as_it_is, again, s,
			1, in, 1, out);
	case IN_A_LOOP:
		return tn_while(c, below, again, s, 4, 1, in, out);
	default:
		return tn_scan(c, again, s, 4, 1, 0, in, 0, out);
	}
}

static void refused(tn_context *c, const char *rule)
{
	assert_int_equal(tn_context_status(c), TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, rule);
	tn_context_clear(c);
}

static void itself(void **state)
{
	(void)state;
	for (int32_t way = 0; way < N_WAYS; way++) {
		struct self s = {.way = way};
		tn_options o = TN_OPTIONS_INIT;
		tn_tensor *x, *y;
		tn_context *c;
		double got[3];

		o.interp = true;
		assert_int_equal(tn_context_new(&c, &o), TN_OK);
		tn_no_grad_enter(c);
		s.w = tn_parameter(c, "w", TN_F64, 1, n3, one23);
		tn_no_grad_leave(c);
		x = tn_tensor_new(c, TN_F64, 1, n3, one23);
		assert_int_equal(tn_compile(&s.f, c, calls_itself, &s, 1, 1,
			"f"), TN_OK);
		assert_int_equal(
			tn_compile(&s.g, c, again, &s, 1, 1, "g"), TN_OK);
		for (int32_t k = 0; k < 2; k++) { /* and again */
			s.left = INT32_MAX;
			assert_int_equal(tn_function_call(s.f, &x, &y),
				TN_EINVAL);
			assert_false(tn_is_valid(y));
			assert_true(s.calls == k + 1);
			refused(c, "compile.recursion");
			assert_int_equal(
				tn_read(s.w, got, sizeof got), TN_OK);
			assert_memory_equal(got, one23, sizeof got);
		}
		s.left = 0;
		assert_int_equal(tn_function_call(s.f, &x, &y), TN_OK);
		assert_int_equal(tn_read(y, got, sizeof got), TN_OK);
		for (int32_t i = 0; i < 3; i++)
			assert_true(got[i] == 2 * one23[i] * one23[i]);
		tn_function_free(s.f);
		tn_function_free(s.g);
		tn_context_free(c);
	}
}

/* ---- bodies of regions that make regions, without a compiled function ---- */

struct deep {
	int32_t way, left;
};

static tn_status deeper(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	struct deep *d = user;

	if (d->left-- <= 0) {
		out[0] = tn_add(in[0], in[0]);
		return TN_OK;
	}
	if (d->way == 0)
		return tn_cond(c, tn_scalar(c, TN_BOOL, 1), deeper, as_it_is,
			user, 1, in, 1, out);
	if (d->way == 1)
		return tn_while(c, below, deeper, user, 1, 1, in, out);
	return tn_scan(c, deeper, user, 1, 1, 0, in, 0, out);
}

static void regions(void **state)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;
	tn_tensor *x, *y;

	(void)state;
	o.interp = true;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	x = tn_tensor_new(c, TN_F64, 1, n3, one23);
	for (int32_t way = 0; way < 3; way++) {
		struct deep d = {way, INT32_MAX};
		double got[3];

		assert_int_equal(deeper(c, &d, &x, &y), TN_EINVAL);
		refused(c, "compile.depth");
		d.left = 5;
		assert_int_equal(deeper(c, &d, &x, &y), TN_OK);
		assert_int_equal(tn_read(y, got, sizeof got), TN_OK);
		for (int32_t i = 0; i < 3; i++)
			assert_true(got[i] == 2 * one23[i]);
	}
	assert_int_equal(tn_context_status(c), TN_OK);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(itself),
		cmocka_unit_test(regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
