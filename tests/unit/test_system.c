/* expr.c, subst.c, system*.c: making, printing, parsing, substituting. */
#include "unit.h"
#include "system_parse.h"

#include "eval_system.h"

/* Texts as they are printed; each is parsed, verified and printed again. */
static const char *const texts[] = {
	"system {\n"
	"  x: f32[4,8] input 0\n"
	"  m: f32[4]\n"
	"  o: f32[4,8]\n"
	"  softmax.m softmax#0: m[i:4] max= x[8*i + j] for j:8\n"
	"  softmax.o softmax#0: o[i:4, j:8] = exp(x[8*i + j] - m[i])\n"
	"  return o\n"
	"}\n",
	/* tuple, init, dtypes, literals, operators of every strength */
	"system {\n"
	"  x: f16[6] input 1\n"
	"  ids: i32[6] input 0\n"
	"  v: f16[]\n"
	"  k: i64[]\n"
	"  y: f64[2,3]\n"
	"  z: i8[6]\n"
	"  _ argmax#1: (v, k)[] argmax= (cast(x[i], f32), index(i)) for i:6\n"
	"  _ _#2: y[i:2, j:3] = f64(0.1) * (f64(1) - cast(x[3*i + j], f64)) "
	"/ f64(-inf)\n"
	"  _ _#3: z[i:6] = sel(inside(ids[i in 0..9] - 2, 0, 3) or "
	"ids[i] == i32(3) and true, i8(-128), cast(k[0], i8))\n"
	"  return y, z, y, x\n"
	"}\n",
	/* scan, push, digits, floors, clamp */
	"system {\n"
	"  x: f32[24] input 0\n"
	"  ids: i64[4] input 1\n"
	"  c: f32[24]\n"
	"  p: f32[24] storage 3\n"
	"  d: f32[24]\n"
	"  cumsum cumsum#0: c[i:4, t:6 down] = x[6*i + t] + "
	"sel(inside(t, 0, 5), c[6*i + t + 1], 0)\n"
	"  _ scatter#1: p{k + 6*ids[j in 0..4]}[k:6] += x[k + 6*j] for j:4 "
	"from x[at] * 2\n"
	"  _ _#2: d[i:24] = x[i/4%3] + x[clamp(i, 3, 23) - 3] + "
	"x[(i + 3)/4] - 0.1\n"
	"  return c, p, d\n"
	"}\n",
	"system {\n"
	"  a: f32[0,3] input 0\n"
	"  b: f32[0,3]\n"
	"  s: f32[]\n"
	"  _ _#0: s[] = 0\n"
	"  return b, s\n"
	"}\n",
	/* C functions, with and without attributes and a batch */
	"system {\n  x: f32[3,4,4] input 0\n  d: f32[3]\n  o: f32[3,4,4]\n"
	"  k: i64[3,4,4]\n  n: i64[48,3]\n  m: i64[]\n"
	"  det det#0: d = opaque det(x; each (0, 0))\n"
	"  sort sort#1: (o, k) = opaque sort(x; 1, 0; each (0, 0, 0), "
	"(2, 2, 2))\n"
	"  nonzero nonzero#2: (n, m) = opaque nonzero(x)\n"
	"  return d, o, k, n, m\n}\n",
	/* a label that is an operator, behind an expression */
	"system {\n  x: bool[2] input 0\n  y: bool[2]\n  z: bool[2]\n"
	"  not not#0: y[i:2] = not(x[i])\n"
	"  or or#1: z[i:2] = y[i] or x[i]\n  return z\n}\n",
};

static void round_trip(arena *a, void *arg)
{
	const char *text = arg;
	str out = str_new(a);
	ir_system *s = ir_system_parse(
		a, ix_new(a), text, strlen(text), "t.tn");

	ir_system_verify(s);
	ir_system_print(&out, s);
	assert_string_equal(out.at, text);
}

static void test_round_trip(void **state)
{
	tn_diag d = {0};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (unit_run(round_trip, (void *)(uintptr_t)texts[i], 0, &d) !=
			TN_OK)
			fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
	unit_each_alloc_fails(round_trip, (void *)(uintptr_t)texts[0]);
}

#define HEAD "system {\n x: f32[4] input 0\n o: f32[4]\n n: i32[4] input 1\n"

static void test_errors(void **state)
{
	static const struct {
		const char *text, *rule;
		int32_t line, column;
	} cases[] = {
		{"", "system.syntax", 1, 1},
		{"system {", "system.syntax", 1, 9},
		{HEAD "return q }", "system.name", 5, 8},
		{HEAD "_ _#0: o[i:4] = y[i] return o }", "system.name", 5, 17},
		{HEAD "_ _#0: o[i:4] = x[k] return o }", "system.name", 5, 19},
		{HEAD "_ _#0: o[i:4] = exp(n[i]) return o }", "system.dtype", 5,
			17},
		{HEAD "_ _#0: o[i:4] = x[i] + n[i] return o }", "system.dtype",
			5, 22},
		{HEAD "_ _#0: o[i:0] = x[i] return o }", "system.axes", 5, 10},
		{HEAD "_ _#0: o[i:4, i:2] = x[i] return o }", "system.axes", 5,
			15},
		{HEAD "_ _#0: x[i:4] = x[i] return x }", "system.name", 5, 8},
		{HEAD "_ _#0: o[i:3] = x[i] return o }", "system.verify", 0, 0},
		{HEAD "_ _#0: o[i:4] = n[i] return o }", "system.verify", 0, 0},
		{HEAD "_ _#0: o[i:4] = o[i] return o }", "system.verify", 0, 0},
		{HEAD "_ _#0: o[i:4] = x[i/0] return o }", "system.number", 5,
			21},
		{HEAD "_ _#0: o[i:4] = x[99999999999999999999] return o }",
			"system.number", 5, 19},
		{HEAD "return o }", "system.verify", 0, 0},
		{HEAD "_ _#0: o = opaque argsort(x; each (0, 1)) return o }",
			"system.axes", 5, 39},
		{HEAD "_ _#0: o = opaque argsort(x; each (0)) return o }",
			"system.syntax", 5, 37},
		{HEAD "_ _#0: o = opaque argsort(x; each (0, 0), (0, 0)) "
		      "return o }", "system.verify", 0, 0},
		{HEAD "x: f32[] return o }", "system.name", 5, 1},
		{HEAD "z: f32[281474976710656,4096] return o }",
			"system.shape", 5, 1},
		{HEAD "_ _#0: o[i:4] = $ return o }", "system.character", 5,
			17},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		tn_diag d = {0};

		assert_int_equal(unit_run(round_trip,
					 (void *)(uintptr_t)cases[i].text, 0,
					 &d),
			TN_EINVAL);
		if (strcmp(d.rule, cases[i].rule) != 0 ||
			d.line != cases[i].line || d.column != cases[i].column)
			fail_msg("%s: %s %d:%d %s", cases[i].text, d.rule,
				d.line, d.column, d.text);
	}
}

static void deep(arena *a, void *arg)
{
	str s = str_new(a);

	(void)arg;
	str_add(&s, HEAD "_ _#0: o[i:4] = ");
	for (int i = 0; i < 100000; i++)
		str_addc(&s, '(');
	ir_system_parse(a, ix_new(a), s.at, s.n, NULL);
}

static void test_deep(void **state)
{
	tn_diag d = {0};

	(void)state;
	assert_int_equal(unit_run(deep, NULL, 0, &d), TN_EINVAL);
	assert_string_equal(d.rule, "system.depth");
}

/* ---- substitution ---- */

static void substitutes(arena *a, void *arg)
{
	static const char text[] =
		"system {\n"
		"  x: f32[9] input 0\n"
		"  o: f32[11]\n"
		"  pad pad#0: o[i:11] = sel(inside(i - 1, 0, 9), x[i - 1], 0)\n"
		"  return o\n"
		"}\n";
	ix *x = ix_new(a);
	ir_system *s = ir_system_parse(a, x, text, sizeof text - 1, NULL);
	const expr *body = s->eqn.at[0].body[0], *r;
	int64_t nine = 9, eleven = 11;
	ix_dom d = {.box = {.n = 1, .extent = &nine}};
	const ix_form *at = ix_addc(x, ix_axis(x, &d, 0), 1);
	ex_reads reads = ex_list_reads(s, body);

	(void)arg;
	assert_int_equal(reads.n, 1);
	assert_int_equal(reads.at[0].tensor, 0);
	assert_false(reads.at[0].is_index);
	assert_int_equal(ex_flops(body), 2);
	/* inside the padding the guard is true and goes away */
	r = ex_subst(s, &d, body, 1, &eleven, &at, NULL, NULL);
	assert_ptr_equal(r, ex_read(s, 0, ix_axis(x, &d, 0)));
	/* equal trees are one pointer, constants fold */
	assert_ptr_equal(ex_call(s, ir_scalar_find("add", 3),
				 (const expr *[]){ex_const_f(s, TN_F32, 0.25),
					 ex_const_f(s, TN_F32, 0.5)}),
		ex_const_f(s, TN_F32, 0.75));
	assert_ptr_equal(ex_cast(s, TN_I8, ex_const_i(s, TN_I64, 300)),
		ex_const_i(s, TN_I8, 44));
}

static void test_subst(void **state)
{
	tn_diag d = {0};

	(void)state;
	if (unit_run(substitutes, NULL, 0, &d) != TN_OK)
		fail_msg("%s: %s", d.rule, d.text);
}

/* ---- the evaluator of the tests itself ---- */

static void evaluates(arena *a, void *arg)
{
	static const float x[24] = {1, 2, 3, 4, 5, 6, 1, 1, 1, 1, 1, 1, 2};
	static const int64_t ids[4] = {3, 0, 3, 1};
	const void *input[] = {x, ids};
	ir_system *s = ir_system_parse(
		a, ix_new(a), texts[2], strlen(texts[2]), NULL);
	void **data = eval_system(a, s, input);
	const float *c = data[s->output.at[0]], *p = data[s->output.at[1]];

	(void)arg;
	assert_true(c[0] == 21 && c[5] == 6 && c[6] == 6 && c[11] == 1);
	/* rows: 0 gets row 1, 1 row 3, 3 rows 0 and 2; onto twice x */
	assert_true(p[0] == 2 * 1 + 1 && p[18] == 0 + 1 + 2 && p[12] == 4);
}

static void test_eval(void **state)
{
	tn_diag d = {0};

	(void)state;
	if (unit_run(evaluates, NULL, 0, &d) != TN_OK)
		fail_msg("%s: %s", d.rule, d.text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_subst),
		cmocka_unit_test(test_eval),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
