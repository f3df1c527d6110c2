/*
 * test_interp.c: what the interpreter alone decides: rounding, order, guards,
 * laziness, ranges. Each case is an op of one's own on one input; the values
 * are worked out by hand.
 */
#include "unit.h"

#include "interp/interp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct interp_case {
	const char *why, *op, *call;
	tn_dtype dtype;
	int32_t n_in;
	double in[6]; /* x: [n_in] */
	tn_dtype out_dtype;
	int32_t n_out;
	double out[6];
	const char *rule; /* expected error */
} interp_case;

static const interp_case cases[] = {
	{"the branch not taken is not evaluated",
		"f(x[i]) -> o { o[i] = x[i + 1] where i < #i - 1 else 7 }",
		"f(x)", TN_F32, 3, {1, 2, 3}, TN_F32, 3, {2, 3, 7}, NULL},
	{"E else F: one read outside is enough",
		"f(x[i]:num) -> o { o[i] = x[i - 1] * x[i + 1] else -1 }",
		"f(x)", TN_I32, 4, {1, 2, 3, 4}, TN_I32, 4, {-1, 3, 8, -1},
		NULL},
	{"an inner else is not the outer one's",
		"f(x[i]:num) -> o { o[i] = (x[i - 1] else 10) * x[i + 1] else "
		"-1 }",
		"f(x)", TN_I32, 3, {1, 2, 3}, TN_I32, 3, {20, 3, -1}, NULL},
	{"else, when a data index is outside",
		"f(x[i]:int) -> o { o[i] = x[x[i]] else -1 }", "f(x)", TN_I64,
		3, {2, 9, 0}, TN_I64, 3, {0, -1, 2}, NULL},
	{"a data index that is read outside is outside",
		"f(x[i]:int) -> o { o[i] = x[x[i + 1]] else -1 }", "f(x)",
		TN_I64, 3, {5, 0, 1}, TN_I64, 3, {5, 0, -1}, NULL},
	{"inside is about its own read",
		"f(x[i]:num) -> o { o[i] = cast(inside(x[i - 1]), x) + x[i] }",
		"f(x)", TN_F32, 2, {5, 6}, TN_F32, 2, {5, 7}, NULL},
	{"else skip drops by the left side",
		"f(x[i]:num) -> o { o[i] = x[i]; o[2 * i - 1] += x[i] else "
		"skip }",
		"f(x)", TN_F32, 3, {1, 2, 3}, TN_F32, 3, {1, 4, 3}, NULL},
	{"an update by max starts from what is there",
		"f(x[i]:num) -> o { o[i] = cast(2, x); o[0] max= x[i] }",
		"f(x)", TN_F32, 3, {1, 5, 3}, TN_F32, 3, {5, 2, 2}, NULL},
	{"a scan that looks two back",
		"f(x[i]:num) -> o { o[i] = x[i] + (o[i - 1] else 0)"
		" + (o[i - 2] else 0) }",
		"f(x)", TN_I64, 6, {1, 0, 0, 0, 0, 0}, TN_I64, 6,
		{1, 1, 2, 3, 5, 8}, NULL},
	{"a scan that looks ahead runs backwards",
		"f(x[i]:num) -> o { o[i] = x[i] - (o[i + 1] else 0) }", "f(x)",
		TN_I64, 4, {1, 2, 3, 4}, TN_I64, 4, {-2, 3, -1, 4}, NULL},
	{"f32 is rounded after every operation",
		"f(x[i]:num) -> o { o[i] = x[i] + 1 - x[i] }", "f(x)", TN_F32,
		1, {16777216}, TN_F32, 1, {0}, NULL},
	{"f16 is computed in f32 and rounded once",
		"f(x[i]:num) -> o { o[i] = x[i] + 1 - x[i] }", "f(x)", TN_F16,
		1, {2048}, TN_F16, 1, {1}, NULL},
	{"f16 does not overflow on the way",
		"f(x[i]:num) -> o { o[i] = x[i] * x[i] / x[i] }", "f(x)",
		TN_F16, 1, {1024}, TN_F16, 1, {1024}, NULL},
	{"f16 is rounded where an equation ends",
		"f(x[i]:num) -> o { t[i] = x[i] + 1; o[i] = t[i] - x[i] }",
		"f(x)", TN_F16, 1, {2048}, TN_F16, 1, {0}, NULL},
	{"integers wrap after every operation",
		"f(x[i]:num) -> o { o[i] = x[i] + x[i] < x[i] }", "f(x)", TN_I8,
		2, {100, 3}, TN_BOOL, 2, {1, 0}, NULL},
	{"sums accumulate wide and round once",
		"f(x[i]:num) -> o { o[] += x[i] }", "f(x)", TN_F32, 4,
		{16777216, 1, 1, 1}, TN_F32, 1, {16777220}, NULL},
	{"min of nothing under an update is the identity",
		"f(x[i]:num) -> o { o[j] min= x[i] where i < j else inf"
		" for j < 3 }",
		"f(x)", TN_F32, 2, {4, 3}, TN_F32, 3, {HUGE_VAL, 4, 3}, NULL},
	{"letters have the values of the loops",
		"f(x[i]:num) -> o { o[i, j] = 10 * i + j + x[i] for j < 2 }",
		"f(x)", TN_I64, 3, {0, 1, 2}, TN_I64, 6, {0, 1, 11, 12, 22, 23},
		NULL},
	{"pos is the row-major place on the left",
		"f(x[i]) -> o { o[j, i] = cast(pos, f64) for j < 2 }", "f(x)",
		TN_F32, 3, {0, 0, 0}, TN_F64, 6, {0, 1, 2, 3, 4, 5}, NULL},
	{"index division is floor division",
		"f(x[i]) -> o { o[i] = x[(i - 3) / 2 + 2] }", "f(x)", TN_F32, 4,
		{1, 2, 3, 4}, TN_F32, 4, {1, 2, 2, 3}, NULL},
	{"index modulus is not negative",
		"f(x[i]) -> o { o[i] = x[(i - 3) % #i] }", "f(x)", TN_F32, 4,
		{1, 2, 3, 4}, TN_F32, 4, {2, 3, 4, 1}, NULL},
	{"a data index outside, unguarded",
		"f(x[i]:int) -> o { o[i] = x[x[i]] }", "f(x)", TN_I64, 2,
		{0, 2}, TN_I64, 2, {0}, "index.range"},
	{"a data index outside on the left",
		"f(x[i]:int) -> o { o[i] = x[i]; o[x[i]] += 1 }", "f(x)",
		TN_I64, 2, {0, -1}, TN_I64, 2, {0}, "index.range"},
};

enum { N_CASES = (int)(sizeof cases / sizeof cases[0]) };

static void run(arena *a, void *arg)
{
	const interp_case *c = arg;
	str s = str_new(a);
	ir_program *p;
	void *in = arena_alloc(a, 6, 8), *out = arena_alloc(a, 6, 8);
	const ir_type *t;

	str_printf(&s, "op %s\nprogram { x: %s[%d] o = %s return o }", c->op,
		dtype_name(c->dtype), c->n_in, c->call);
	p = ir_program_parse(a, s.at, s.n, "case.tn", interp_loop);
	t = &p->value.at[p->output.at[0]].type;
	assert_int_equal(t->dtype, c->out_dtype);
	assert_int_equal(shape_numel(t->shape, t->rank), c->n_out);
	for (int32_t i = 0; i < c->n_in; i++)
		dtype_store_f64(c->dtype, in, i, c->in[i]);
	interp_run(arena_env(a), p, (const void *[]){in}, (void *[]){out});
	for (int32_t i = 0; i < c->n_out; i++)
		if (dtype_load_f64(c->out_dtype, out, i) != c->out[i])
			fail_msg("%s: o[%d] is %g, not %g", c->why, i,
				dtype_load_f64(c->out_dtype, out, i),
				c->out[i]);
}

static void test_cases(void **state)
{
	(void)state;
	for (int32_t i = 0; i < N_CASES; i++) {
		interp_case c = cases[i];
		tn_diag d;
		tn_status status = unit_run(run, &c, 0, &d);

		if (c.rule != NULL ? strcmp(d.rule, c.rule) != 0 :
				     status != TN_OK)
			fail_msg("%s: [%s] %s", c.why, d.rule, d.text);
		if (c.rule != NULL)
			assert_int_equal(status, TN_ERANGE);
	}
}

/* The interpreter owns what it allocates: nothing is lost when it cannot. */
static void test_no_memory(void **state)
{
	interp_case c = cases[0];

	(void)state;
	unit_each_alloc_fails(run, &c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
