/* Adjoints of rows: what they read, what they give at points, their text. */
#include "row_call.h"

#include "grad/grad.h"
#include "interp/interp.h"

static const uint64_t ALL = UINT64_MAX;

static const ir_inst *call_of(arena *a, ir_table *t, const char *row,
	const char *types, const char *attrs)
{
	return row_call(a, t, row, types, attrs);
}

/* "x o d_o": what the adjoint reads of the call, in order; [x]: its shape. */
static const char *reads(arena *a, const ir_inst *fwd, const grad_rule *g)
{
	static const char *const prefix[] = {"", "", "d_"};
	str s = str_new(a);

	for (int32_t k = 0; k < g->n_operands; k++) {
		const struct grad_operand *o = &g->operand[k];

		for (int32_t i = 0; i < fwd->n_tensors; i++) {
			const in_tensor *t = &fwd->tensor[i];

			if ((o->from == GRAD_OPERAND ? t->operand
						     : t->result) == o->i)
				str_printf(&s, o->is_shape ? "%s[%s%s]"
							   : "%s%s%s",
					k > 0 ? " " : "", prefix[o->from],
					t->name);
		}
	}
	return s.n > 0 ? s.at : "";
}

static void reads_only_what_it_needs(arena *a, void *arg)
{
	static const struct {
		const char *row, *types, *attrs;
		uint64_t wanted;
		const char *reads;
	} cases[] = {
		{"add", "f32[2] f32[2]", "", 3, "d_o"},
		{"exp", "f32[2]", "", 1, "o d_o"},
		{"tanh", "f32[2]", "", 1, "o d_o"},
		{"relu", "f32[2]", "", 1, "o d_o"},
		{"copy", "f32[2]", "", 1, "[x] d_o"},
		{"pad", "f32[2]", "lo=[1] hi=[1]", 1, "[x] d_o"},
		{"matmul", "f32[2,3] f32[3,4]", "", 3, "x y d_o"},
		{"matmul", "f32[2,3] f32[3,4]", "", 1, "y d_o"},
		{"matmul", "f32[2,3] f32[3,4]", "", 2, "x d_o"},
		{"transpose", "f32[2,3]", "perm=[1,0]", 1, "d_o"},
		{"embedding", "i64[2] f32[3,4]", "", 3, "ids d_o"},
		{"clip", "f32[2]", "lo=0.5", 1, "x d_o"},
		{"reduce_l2", "f32[2]", "", 1, "x o d_o"},
		{"sort", "f32[2,3]", "", 1, "k d_o"},
	};
	ir_table *t = ir_table_new(a);

	(void)arg;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const ir_inst *f = call_of(a, t, cases[i].row, cases[i].types,
			cases[i].attrs);
		const grad_rule *g =
			grad_adjoint(a, t, f, cases[i].wanted, ALL);

		assert_non_null(g);
		if (strcmp(reads(a, f, g), cases[i].reads) != 0)
			fail_msg("%s reads %s, not %s", cases[i].row,
				reads(a, f, g), cases[i].reads);
	}
}

static void none_where_there_is_none(arena *a, void *arg)
{
	static const struct {
		const char *row, *types, *attrs;
		uint64_t wanted, seeded;
	} cases[] = {
		{"argmax", "f32[3]", "", 1, 1},
		{"argsort", "f32[3]", "", 1, 1},
		{"stop_gradient", "f32[3]", "", 1, 1},
		{"add", "i64[3] i64[3]", "", 3, 1},
		{"add", "f32[3] f32[3]", "", 0, 1},
		{"add", "f32[3] f32[3]", "", 3, 0},
		{"sort", "f32[3]", "", 1, 2}, /* the indices only */
		{"sort", "f32[3]", "", 0, 1},
		{"unique", "f32[3]", "", 1, 1},
		{"clip", "f32[3]", "lo=0.5", 1, 0},
		{"clip", "i64[3]", "lo=1.0", 1, 1},
		{"sort", "i64[3]", "", 1, 3},
		{"embedding", "i64[2] f32[3,4]", "", 1, 1},
	};
	ir_table *t = ir_table_new(a);

	(void)arg;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (grad_adjoint(a, t,
			    call_of(a, t, cases[i].row, cases[i].types,
				    cases[i].attrs),
			    cases[i].wanted, cases[i].seeded) != NULL)
			fail_msg("%s has a gradient", cases[i].row);
}

/* Its older version would have to be known. */
static void update_by_max(arena *a, void *arg)
{
	static const char text[] =
		"top(x[i]:float, y[j]:float, k[j]:int) -> o { o[i] = x[i];"
		" o[k[j]] max= y[j] }";
	ir_table *t = ir_table_new(a);
	const uint64_t *wanted = arg;

	ir_table_define(t, text, sizeof text - 1, (loc){0});
	grad_adjoint(a, t,
		call_of(a, t, "top", "f32[3] f32[2] i64[2]", ""), *wanted, 1);
}

static void refuses(void **state)
{
	/* all; x, whose elements the update hides; y, which it reads */
	uint64_t wanted[] = {3, 1, 2};
	tn_diag d;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_not_equal(
			unit_run(update_by_max, &wanted[i], 0, &d), TN_OK);
		assert_string_equal(d.rule, "grad.none");
	}
}

/* ---- values ---- */

/* The gradient of a row's first operand, all cotangents 1; f64. */
static void expect(arena *a, ir_table *t, const char *row, const char *types,
	const char *attrs, const double *x, int32_t n, const double *want)
{
	const ir_inst *f = call_of(a, t, row, types, attrs);
	const grad_rule *g = grad_adjoint(a, t, f, 1, 1);
	void **fwd = arena_array(a, void *, f->n_tensors + 1);
	void **bwd = arena_array(a, void *, g->inst->n_tensors + 1);
	double *one = arena_array(a, double, 64), *got;

	for (int32_t i = 0; i < 64; i++)
		one[i] = 1;
	for (int32_t i = 0; i < f->n_tensors; i++)
		fwd[i] = arena_alloc(a, 512, 16);
	for (int32_t i = 0; i < g->inst->n_tensors; i++)
		bwd[i] = arena_alloc(a, 512, 16);
	memcpy(fwd[0], x, (size_t)n * sizeof *x);
	interp_inst(arena_env(a), f, fwd);
	for (int32_t k = 0; k < g->n_operands; k++)
		bwd[k] = g->operand[k].from == GRAD_OPERAND ? fwd[0]
			: g->operand[k].from == GRAD_RESULT
			? fwd[f->result[g->operand[k].i]]
			: (void *)one;
	interp_inst(arena_env(a), g->inst, bwd);
	got = bwd[g->inst->result[0]];
	for (int32_t i = 0; i < n; i++)
		if (!(got[i] == want[i]))
			fail_msg("%s: element %d is %.17g, not %.17g", row, i,
				got[i], want[i]);
}

/* Conventions where the function is not smooth, and rows that say theirs. */
static void at_points(arena *a, void *arg)
{
	const double x[] = {0.5, 1, 2, 3}, zero[4] = {0};
	static const char gate[] =
		"gate(x[i..]:float) -> o { o[i..] = x[i..] * x[i..]"
		" grad { t[i..] = go[i..] * 3; gx[i..] += t[i..];"
		" gx[i..] += o[i..] } }";
	const double ties[] = {2, 5, 5, 1}, mixed[] = {3, 0, 2, 4};
	ir_table *t = ir_table_new(a);

	(void)arg;
	expect(a, t, "clip", "f64[4]", "lo=1.0, hi=2.0", x, 4,
		(double[]){0, 1, 1, 0});
	expect(a, t, "reduce_l2", "f64[4]", "", zero, 4, zero);
	expect(a, t, "relu", "f64[4]", "", zero, 4, zero);
	expect(a, t, "abs", "f64[4]", "", zero, 4, zero);
	expect(a, t, "reduce_max", "f64[4]", "", ties, 4,
		(double[]){0, 0.5, 0.5, 0});
	/* one zero: the product of the others; two: nothing */
	expect(a, t, "reduce_prod", "f64[4]", "", mixed, 4,
		(double[]){0, 24, 0, 0});
	expect(a, t, "reduce_prod", "f64[4]", "", zero, 4, zero);
	expect(a, t, "cumprod", "f64[4]", "", mixed, 4,
		(double[]){1, 3 + 3 * 2 + 3 * 2 * 4, 0, 0});
	expect(a, t, "topk", "f64[4]", "count=2", ties, 4,
		(double[]){0, 1, 1, 0});
	ir_table_define(t, gate, sizeof gate - 1, (loc){0});
	expect(a, t, "gate", "f64[4]", "", x, 4,
		(double[]){3.25, 4, 7, 12});
}

/* ---- text ---- */

static const char program[] =
	"program {\n"
	"  x: f32[2,8]\n"
	"  d: f32[2,3]\n"
	"  ids: i64[2]\n"
	"  s = slice(x, axes=[1], start=[1], count=[3], step=[2])\n"
	"  r = reduce_max(x, axes=[0])\n"
	"  e = embedding(ids, x)\n"
	"  p = reduce_prod(x, axes=[1])\n"
	"  return s, r, e, p\n"
	"}\n";

/* A program with adjoints in it is read back as it was printed. */
static void prints(arena *a, void *arg)
{
	ir_program *p = ir_program_parse(a, program, sizeof program - 1, "t", interp_loop);
	int32_t n = p->call.n;
	str text = str_new(a), again = str_new(a);

	(void)arg;
	for (int32_t i = 0; i < 2 * n; i++) {
		const ir_call c = p->call.at[i % n];
		const grad_rule *g =
			grad_adjoint(a, p->table, c.inst, ALL, ALL);
		int32_t from[8], call;

		for (int32_t k = 0; k < g->n_operands; k++)
			from[k] = g->operand[k].from == GRAD_OPERAND
				? c.arg[g->operand[k].i]
				: c.result[g->operand[k].i];
		call = ir_program_inst(
			p, g->inst, g->n_operands, from, NULL, (loc){0});
		ir_program_output(p, p->call.at[call].result[0]);
	}
	/* an instance that the table made goes by its name */
	ir_program_output(p,
		p->call.at[ir_program_inst(p, p->call.at[0].inst, 1,
				   p->call.at[0].arg, NULL, (loc){0})]
			.result[0]);
	ir_program_print(&text, p);
	ir_program_print(&again,
		ir_program_parse(a, text.at, text.n, "again", interp_loop));
	assert_string_equal(text.at, again.at);
	assert_non_null(strstr(text.at, "op slice_grad("));
	assert_non_null(strstr(text.at, "= slice(x, axes=[1]"));
	/* equal instances are one row */
	assert_null(strstr(text.at, "op slice_grad_1("));
}

static void cannot_print(arena *a, void *arg)
{
	ir_table *t = ir_table_new(a);
	str s = str_new(a);

	(void)arg;
	ir_inst_print(&s, call_of(a, t, "sort", "f32[3]", ""), "x");
}

static void refuses_to_print(void **state)
{
	tn_diag d;

	(void)state;
	assert_int_not_equal(unit_run(cannot_print, NULL, 0, &d), TN_OK);
	assert_string_equal(d.rule, "print.instance");
}

static void run(void **state, void (*fn)(arena *a, void *arg))
{
	tn_diag d;

	(void)state;
	if (unit_run(fn, NULL, 0, &d) != TN_OK)
		fail_msg("[%s] %s", d.rule, d.text);
}

static void test_reads(void **state)
{
	run(state, reads_only_what_it_needs);
}

static void test_none(void **state)
{
	run(state, none_where_there_is_none);
}

static void test_points(void **state)
{
	run(state, at_points);
}

static void test_text(void **state)
{
	run(state, prints);
}

static void test_memory(void **state)
{
	(void)state;
	unit_each_alloc_fails(none_where_there_is_none, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_none),
		cmocka_unit_test(refuses),
		cmocka_unit_test(test_points),
		cmocka_unit_test(test_text),
		cmocka_unit_test(refuses_to_print),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
