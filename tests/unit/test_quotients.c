/*
 * eqn/quotient.c: a softmax in front of a product divides the sums of the product, with
 * the same values; quotients that others read, that are no weights of such a row, or
 * of rows that are short stay as they are.
 */
#include "unit.h"

#include "eval_system.h"

#include "eqn/eqn.h"

#include <math.h>

enum { KEYS = 24 };

struct job {
	const char *text;
	bool changes; /* then quotients of all keys are gone */
	int64_t least; /* keys */
};

/* Elements that equations compute. */
static int64_t results_of(const ir_system *s)
{
	int64_t n = 0;

	for (int32_t i = 0; i < s->eqn.n; i++)
		n += s->tensor.at[s->eqn.at[i].out[0]].numel;
	return n;
}

static void agrees(arena *a, void *arg)
{
	const struct job *j = arg;
	ir_program *p;
	ir_system *s = eval_lowered(a, j->text, &p), *t = eval_lowered(a, j->text, &p);
	const void **input = eval_random(a, p, 4);
	int64_t before = results_of(s);

	t = eqn_divide_sums(t, j->least);
	ir_system_verify(t);
	if (j->changes ? results_of(t) >= before : results_of(t) != before)
		fail_msg("%lld elements, %lld before, of\n%s",
			(long long)results_of(t), (long long)before, j->text);
	for (int32_t i = 0; i < s->output.n; i++) {
		int32_t o = s->output.at[i];
		const float *x = eval_system(a, s, input)[o];
		const float *y = eval_system(a, t, input)[t->output.at[i]];

		for (int64_t k = 0; k < s->tensor.at[o].numel; k++)
			if (!(fabsf(x[k] - y[k]) <= 2e-6f * (1 + fabsf(x[k]))))
				fail_msg("element %d: %g and %g, of\n%s", (int)k,
					(double)x[k], (double)y[k], j->text);
	}
}

static void check(const struct job *j)
{
	struct job own = *j;
	tn_diag d = {0};

	if (unit_run(agrees, &own, 0, &d) != TN_OK)
		fail_msg("%s %s", d.rule, d.text);
}

#define INPUTS "program { x: f32[2,3,24] v: f32[2,24,5] u: f32[2,24,4] z: f32[2,3]\n"

static void test_rows(void **state)
{
	static const struct job jobs[] = {
		{INPUTS " p = softmax(x, axis=2)\n o = matmul(p, v)\n return o }", true,
			KEYS},
		/* two products */
		{INPUTS " p = softmax(x, axis=2)\n o = matmul(p, v)\n"
			" q = matmul(p, u)\n return o, q }", true, KEYS},
		/* rows and keys in one axis of the reader */
		{"op f(p[b, t, u], v[b, u, e]) -> o {"
		 " o[b, t, e] += p[b, t, u] * v[b, u, e] where u <= t + 20 else 0 }\n"
			INPUTS " p = softmax(x, axis=2)\n o = f(p, v)\n return o }", true,
			KEYS},
		/* keys walked backwards and rows in another order */
		{"op f(p[b, t, u], v[b, u, e]) -> o {"
		 " o[e, b, t] += p[b, t, u] * v[b, 23 - u, e] }\n"
			INPUTS " p = softmax(x, axis=2)\n o = f(p, v)\n return o }", true,
			KEYS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
		struct job less = jobs[i];

		check(&jobs[i]);
		less.least = KEYS + 1; /* the row is short: nothing changes */
		less.changes = false;
		check(&less);
	}
}

static void test_others(void **state)
{
	static const char *const texts[] = {
		/* the weights are wanted, or read by something else */
		INPUTS " p = softmax(x, axis=2)\n o = matmul(p, v)\n return o, p }",
		INPUTS " p = softmax(x, axis=2)\n o = matmul(p, v)\n"
		       " l = reduce_max(p, axes=[1])\n return o, l }",
		/* the sum is not linear in them */
		"op f(p[b, t, u], v[b, u, e]) -> o {"
		" o[b, t, e] += p[b, t, u] * p[b, t, u] * v[b, u, e] }\n"
		INPUTS " p = softmax(x, axis=2)\n o = f(p, v)\n return o }",
		"op f(p[b, t, u], v[b, u, e]) -> o {"
		" o[b, t, e] += exp(p[b, t, u]) * v[b, u, e] }\n"
		INPUTS " p = softmax(x, axis=2)\n o = f(p, v)\n return o }",
		/* it sums over rows, so their divisors differ */
		"op f(p[b, t, u], v[b, u, e]) -> o {"
		" o[b, u, e] += p[b, t, u] * v[b, u, e] }\n"
		INPUTS " p = softmax(x, axis=2)\n o = f(p, v)\n return o }",
		/* the divisor is no sum of the weights */
		"op f(x[b, t, u], z[b, t]) -> p { p[b, t, u] = x[b, t, u] / z[b, t] }\n"
		INPUTS " p = f(x, z)\n o = matmul(p, v)\n return o }",
		/* what is divided may be large */
		"op f(x[b, t, u]) -> p { e[b, t, u] = exp(x[b, t, u]);"
		" z[b, t] += e[b, t, u]; p[b, t, u] = e[b, t, u] / z[b, t] }\n"
		INPUTS " p = f(x)\n o = matmul(p, v)\n return o }",
		/* a maximum, not a sum */
		"op f(p[b, t, u], v[b, u, e]) -> o {"
		" o[b, t, e] max= p[b, t, u] * v[b, u, e] }\n"
		INPUTS " p = softmax(x, axis=2)\n o = f(p, v)\n return o }",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		check(&(struct job){.text = texts[i], .least = 2});
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
