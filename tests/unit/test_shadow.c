/*
 * test_shadow.c: the bounds that random programs are held to (tests/prop): 0
 * where nothing may round, as large as another order of summation can be off,
 * and no larger than a few of that.
 */
#include "unit.h"

#include "../prop/prop.h"
#include "interp/interp.h"

#include <math.h>

enum { N = 64 };

static const struct {
	const char *name, *body, *in;
	double from, step; /* input: from + step * i, in f64, then rounded */
	double least, most; /* the bound of each element of o */
} cases[] = {
	{"moves", "o = flip(x, axes=[0])", "f32[64]", 0.1, 0.37, 0, 0},
	{"one operation", "o = add(x, x)", "f32[64]", 0.1, 0.37, 0, 0},
	{"exact sum", "o = reduce_sum(x)", "f32[64]", -3, 0.25, 0, 0},
	{"sum", "o = reduce_sum(x)", "f32[64]", 0.1, 0.37, 1e-4, 1e-2},
	{"sum in f64", "o = reduce_sum(x)", "f64[64]", 0.1, 0.37, 1e-13, 1e-10},
	{"maximum", "o = reduce_max(x)", "f32[64]", 0.1, 0.37, 0, 0},
	{"exp", "o = exp(x)", "f32[64]", 0, 0.01, 5e-8, 3e-6},
	{"argmax", "o = argmax(x)", "f32[64]", 0, 0.1, 0, 0},
	{"argmax of equals", "t = exp(x)\n o = argmax(t)", "f32[64]", 1, 0, 60, 80},
	{"a step between", "t = exp(x)\n o = floor(t)", "f32[64]", 0.5, 0, 0, 1e-5},
	{"a step within", "t = exp(x)\n o = floor(t)", "f32[64]", 0, 0, 1, 2},
	{"compared with itself", "t = exp(x)\n o = lt(t, t)", "f32[64]", 1, 0, 1, 1},
	{"far apart", "t = exp(x)\n o = lt(t, x)", "f32[64]", 1, 0.1, 0, 0},
	{"rounded to f16", "t = exp(x)\n o = cast(t, to=f16)", "f32[64]", 0.3, 0,
		0, 0},
	{"weight rounded to f16", "t = exp(x)\n o = cast(t, to=f16)", "f32[64]", -0.3, 0,
		0.0004, 0.0012},
	{"integers", "o = reduce_sum(x)", "i8[64]", -3, 2, 0, 0},
	{"variance", "o = reduce_var(x)", "f32[64]", 1, 0.37, 1e-5, 1},
	{"product of powers of two", "o = reduce_prod(x)", "f32[64]", 2, 0, 0,
		0},
	{"cancellation", "t = exp(x)\n u = sub(t, x)", "f32[64]", 0, 0.01, 0, 1},
	{"nothing known", "t = exp(x)\n u = floor(t)\n k = cast(u, to=i64)"
			  "\n o = take(x, k)",
		"f32[64]", 0, 0, INFINITY, INFINITY},
	{"outside, not needed", "k = cast(x, to=i64)\n t = take(x, k)"
				"\n o = neg(x)",
		"f32[64]", 1000, 1, 0, 0},
	{"outside, needed for nothing",
		"k = cast(x, to=i64)\n t = take(x, k)"
		"\n u = narrow(t, axis=0, start=0, count=0)\n o = neg(x)",
		"f32[64]", 1000, 1, 0, 0},
};

static void run_one(arena *a, void *arg)
{
	size_t c = *(size_t *)arg;
	bool ends = strstr(cases[c].body, "o =") != NULL;
	char *text = arena_printf(a, "program {\n x: %s\n %s\n return %s%s\n}",
		cases[c].in, cases[c].body, ends ? "o" : "u",
		strstr(cases[c].body, "count=0") != NULL ? ", u" : "");
	ir_program *p = ir_program_parse(a, text, strlen(text), NULL, interp_loop);
	tn_dtype t = p->value.at[0].type.dtype;
	const ir_type *out = &p->value.at[p->output.at[0]].type;
	void *x = arena_alloc(a, N, 8);
	const void *in = x;
	shadow_run r;

	for (int32_t i = 0; i < N; i++)
		dtype_store_f64(
			t, x, i, cases[c].from + cases[c].step * i);
	shadow_program(a, p, &in, &r);
	for (int64_t i = 0; i < type_numel(out); i++) {
		double e = r.value[p->output.at[0]][i].e;

		if (e < cases[c].least || e > cases[c].most)
			fail_msg("%s: bound %g is not in %g .. %g",
				cases[c].name, e, cases[c].least,
				cases[c].most);
	}
}

static void test_bounds(void **state)
{
	(void)state;
	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		tn_diag d;

		if (unit_run(run_one, &c, 0, &d) != TN_OK)
			fail_msg("%s: [%s] %s", cases[c].name, d.rule, d.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
