/*
 * test_program.c: .tn text: what is accepted prints as itself, what is not is
 * refused with its rule, place and caret. Builds the same by calls.
 */
#include "unit.h"

#include "base/random.h"
#include "interp/interp.h"

#include <stdio.h>

typedef struct work {
	const char *text;
	size_t n;
	const char *printed; /* expected; NULL: not compared */
} work;

static void parse(arena *a, void *arg)
{
	work *w = arg;
	ir_program *p = ir_program_parse(a, w->text, w->n, "x.tn", interp_loop);
	str one = str_new(a), two = str_new(a);

	ir_program_verify(p);
	ir_program_print(&one, p);
	p = ir_program_parse(a, one.at, one.n, "printed", interp_loop);
	ir_program_verify(p);
	ir_program_print(&two, p);
	assert_string_equal(one.at, two.at);
	if (w->printed != NULL)
		assert_string_equal(one.at, w->printed);
}

/* ---- what is accepted ---- */

static const struct {
	const char *text, *printed;
} good[] = {
	{"program {\n  x: f32[2,1024,1024]\n  y: f32[2,1024,1024]\n"
	 "  t = add(x, y)\n  out = reduce_sum(t, axes=[0])\n  return out\n}\n",
		"program {\n  x: f32[2,1024,1024]\n  y: f32[2,1024,1024]\n"
		"  t = add(x, y)\n  out = reduce_sum(t, axes=[0])\n"
		"  return out\n}\n"},
	/* one line, comments, a scalar, an input behind a call */
	{"# first\nprogram { x: f64 ; // note\n y = exp(x); z: i8[0]; return y, "
	 "x, y }",
		"program {\n  x: f64[]\n  y = exp(x)\n  z: i8[0]\n"
		"  return y, x, y\n}\n"},
	/* literals become fills; their names avoid those of the text */
	{"program { v0: i32[2] k = add(v0, 3) return k }",
		"program {\n  v0: i32[2]\n"
		"  v1 = fill(shape=[], value=3, dtype=i32)\n"
		"  k = add(v0, v1)\n  return k\n}\n"},
	{"program { c: bool[2] x: f16[2] k = where(c, -inf, x) return k }",
		"program {\n  c: bool[2]\n  x: f16[2]\n"
		"  v0 = fill(shape=[], value=-inf, dtype=f16)\n"
		"  k = where(c, v0, x)\n  return k\n}\n"},
	{"program { r = uniform(7, shape=[2]) return r }",
		"program {\n  v0 = fill(shape=[], value=7, dtype=i64)\n"
		"  r = uniform(v0, shape=[2])\n  return r\n}\n"},
	/* every kind of attribute */
	{"program { x: f32[2,4] a, b = split(x, axis=1, sizes=[1,3])\n"
	 "c = leaky_relu(a, alpha=2) d = cast(b, to=bf16)\n"
	 "e = einsum(x, equation=\"ij->ji\") f = reduce_sum(x, keep=true)\n"
	 "g = clip(x, lo=-inf, hi=1e3) return c, d, e, f, g }",
		"program {\n  x: f32[2,4]\n  a, b = split(x, axis=1, "
		"sizes=[1,3])\n  c = leaky_relu(a, alpha=2)\n"
		"  d = cast(b, to=bf16)\n  e = einsum(x, equation=\"ij->ji\")\n"
		"  f = reduce_sum(x, keep=1)\n  g = clip(x, lo=-inf, "
		"hi=1000)\n  return c, d, e, f, g\n}\n"},
	/* loops, in each other; their bodies have rows of the user, and names
	 * of their own */
	{"op twice(x[i..]:num) -> o { o[i..] = x[i..] + x[i..] }\n"
	 "program { s: f32[2] x: f32[5,2] loop: f32[3]\n"
	 "a, b = loop(s, x, loop, rounds=5) { carried s: f32[2]; row row: f32[2]\n"
	 "loop: f32[3] n = loop(s, row, rounds=2) { carried s: f32[2] x: f32[2]\n"
	 "y = add(s, x) z = twice(y) return z } k = mul(n, 2) return n, k }\n"
	 "return a, b }",
		"op twice(x[i..]:num) -> o { o[i..] = x[i..] + x[i..] }\n"
		"program {\n  s: f32[2]\n  x: f32[5,2]\n  loop: f32[3]\n"
		"  a, b = loop(s, x, loop, rounds=5) {\n    carried s: f32[2]\n"
		"    row row: f32[2]\n    loop: f32[3]\n"
		"    n = loop(s, row, rounds=2) {\n      carried s: f32[2]\n"
		"      x: f32[2]\n      y = add(s, x)\n      z = twice(y)\n"
		"      return z\n    }\n"
		"    v0 = fill(shape=[], value=2, dtype=f32)\n"
		"    k = mul(n, v0)\n    return n, k\n  }\n"
		"  return a, b\n}\n"},
	/* a row of the user that has the name */
	{"op loop(x[i..]:num) -> o { o[i..] = x[i..] }\n"
	 "program { x: f32[2] y = loop(x) return y }",
		NULL},
	/* user's rows, with comments and # as extent in them */
	{"op half(x[n]) -> o { // the } first\n o[i] = x[i] for i < #n / 2 }\n"
	 "op twice(x[i..]:num) -> o { o[i..] = x[i..] + x[i..] }\n"
	 "program { x: f32[4] y = half(x) z = twice(y) return z }",
		NULL},
};

static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		work w = {good[i].text, strlen(good[i].text), good[i].printed};
		tn_diag d;

		if (unit_run(parse, &w, 0, &d) != TN_OK)
			fail_msg("%s\n[%s] %s\n%s", w.text, d.rule, d.text,
				d.extra);
	}
}

/* ---- what is refused ---- */

static const struct {
	const char *text, *rule;
	int32_t line, column;
	const char *says;
} bad[] = {
	{"", "tn.syntax", 1, 1, "expected op or program, found the end"},
	{"prog {", "tn.syntax", 1, 1, "'prog'"},
	{"program { x: f32[2] }", "tn.syntax", 1, 21, "return"},
	{"program { x: f32[2]\n return x", "tn.syntax", 2, 10, "'}'"},
	{"program { x: f32[2] return x } y", "tn.syntax", 1, 32, "'y'"},
	{"program { x: f32[2] return x y }", "tn.syntax", 1, 30, "'}'"},
	{"program { x: f31[2] return x }", "tn.dtype", 1, 14, "f32, f64"},
	{"program { x: f32[-1] return x }", "tn.extent", 1, 18, "negative"},
	{"program { x: f32[a] return x }", "tn.syntax", 1, 18, "an extent"},
	{"program { x: f32[1,1,1,1,1,1,1,1,1] return x }", "tn.rank", 1, 34,
		"8 axes"},
	{"program { x: f32[4294967296,4294967296] return x }", "tn.extent", 1,
		11, "2^48"},
	{"program { x: f32[99999999999999999999] return x }", "tn.number", 1,
		18, "64 bits"},
	{"program { x: f32[0,1000] y: f32[2,"
	 "9223372036854775807] return x }",
		"tn.extent", 1, 26, "2^48"},
	{"program {\n x: f32[2]\n x: f32[2]\n return x }", "tn.duplicate", 3, 2,
		"line 2"},
	{"program {\n x: f32[2]\n x = exp(x)\n return x }", "tn.duplicate", 3,
		2, "line 2"},
	{"program { x: f32[2] y = exp(z) return y }", "tn.undefined", 1, 29,
		"z is not defined"},
	{"program { x: f32[2] return q }", "tn.undefined", 1, 28, "q"},
	{"program { x: f32[2] y = sofmax(x) return y }", "tn.unknown_op", 1, 25,
		"softmax"},
	{"program { x: f32[2] y = qqqqqqqqqqqqqqq(x) return y }",
		"tn.unknown_op", 1, 25, "tenon ops"},
	{"program { x: f32[2] y = add(x) return y }", "tn.arity", 1, 25,
		"2 operands (x, y), not 1"},
	{"program { x: f32[2] y, z = exp(x) return y }", "tn.arity", 1, 28,
		"1 result, not 2"},
	{"program { x: f32[2] y = sort(x) return y }", "tn.arity", 1, 25,
		"2 results, not 1"},
	{"program { x: f32[2] y, y = sort(x) return y }", "tn.duplicate", 1, 28,
		"y"},
	{"program { x: f32[2]\n y = softmax(x, axs=1) return y }", "tn.attr", 2,
		17, "axis: axis"},
	{"program { x: f32[2] y = exp(x, k=1) return y }", "tn.attr", 1, 32,
		"none"},
	{"program { x: f32[2] y = softmax(x, axis=0, axis=0) return y }",
		"tn.attr", 1, 44, "twice"},
	{"program { x: f32[2] y = softmax(x, axis=[0]) return y }", "tn.attr",
		1, 36, "kind axis"},
	{"program { x: f32[2] y = reduce_sum(x, keep=2) return y }", "tn.attr",
		1, 39, "kind flag"},
	{"program { x: f32[2] y = reshape(x) return y }", "tn.attr", 1, 25,
		"needs attribute shape"},
	{"program { x: f32[2] y = cast(x, to=f33) return y }", "tn.dtype", 1,
		36, "f33"},
	{"program { x: f32[2] y = softmax(axis=0, x) return y }", "tn.syntax",
		1, 41, "before attributes"},
	{"program { x: f32[2] y = add(x, 1.2.3) return y }", "tn.number", 1, 32,
		"1.2.3"},
	{"program { x: f32[2] y = add(x, 12abc) return y }", "tn.number", 1, 32,
		"12"},
	{"program { x: i64[2] y = add(x, 9007199254740993) return y }",
		"tn.number", 1, 32, "2^53"},
	{"program { x: f32[2] y = einsum(x, equation=\"i\n\") return y }",
		"tn.syntax", 1, 44, "string"},
	{"program { x: f32[2] return: f32 }", "tn.syntax", 1, 27, "a value"},
	{"program { inf: f32[2] return inf }", "tn.syntax", 1, 11, "'inf'"},
	{"op f(x[i]) -> o { o[i] = x[i]", "tn.syntax", 1, 4, "closing"},
	{"program { x: f32[2] @ }", "tn.syntax", 1, 21, "'@'"},
	/* loops */
	{"program { x: f32[2] y = loop(x) { carried a: f32[2] return a }\n"
	 "return y }", "tn.attr", 1, 25, "rounds=N"},
	{"program { x: f32[2] y = loop(x, rounds=0) { carried a: f32[2]\n"
	 "return a } return y }", "tn.loop", 1, 25, "one round, not 0"},
	{"program { x: f32[2] y = loop(x, rounds=3) return y }", "tn.syntax",
		1, 43, "'{'"},
	{"program { x: f32[2] y = loop(x, rounds=3) { carried a: f32[2]\n"
	 "b = exp(x) return b } return y }", "tn.undefined", 2, 9,
		"its own inputs only"},
	{"program { x: f32[2] y = loop(x, x, rounds=3) { carried a: f32[2]\n"
	 "return a } return y }", "tn.loop", 1, 25,
		"2 operands, but its body 1 inputs"},
	{"program { x: f32[2] y = loop(x, rounds=3) { row a: f32[2]\n"
	 "return a } return y }", "tn.loop", 1, 25,
		"operand 0 of the loop is f32[2], but the body needs f32[3,2]"},
	{"program { x: f32[2] y = loop(x, rounds=3) { carried a: f32[2]\n"
	 "b = reduce_sum(a) return b } return y }", "tn.loop", 1, 25,
		"returned value 0 of the loop is f32[], but the body needs f32[2]"},
	{"program { x: f32[2] y = loop(x, rounds=3) { a: f32[2]\n"
	 "carried b: f32[2] return b } return y }", "tn.loop", 2, 1,
		"stands first"},
	{"program { x: f32[2] y, z = loop(x, rounds=3) { carried a: f32[2]\n"
	 "return a } return y }", "tn.arity", 1, 28,
		"returns 1 values, but 2 results"},
	{"program { x: f32[2] y = loop(x, rounds=3) { param a: f32[2]\n"
	 "return a } return y }", "tn.loop", 1, 45, "no params"},
	{"program { x: f32[2] y = loop(x, rounds=3) { carried a: f32[2]\n"
	 "b = relu_(a) return b } return y }", "tn.loop", 2, 5,
		"writes nothing"},
	{"program { row x: f32[2] return x }", "tn.loop", 1, 11,
		"inputs of a loop's body"},
	{"program { x: f32[2] y = loop(1, rounds=3) { carried a: f32[]\n"
	 "return a } return y }", "tn.loop", 1, 30, "are values"},
	{"program { x: f32[2] y = loop(x, rounds=281474976710656) { a: f32[2]\n"
	 "return a } return y }", "tn.extent", 1, 25, "too many elements"},
	{"program { x: f32[1,1,1,1,1,1,1,1] y = loop(x, rounds=2) {\n"
	 "a: f32[1,1,1,1,1,1,1,1] return a } return y }", "tn.loop", 1, 39,
		"at most 7 axes"},
	{"program { x: f32[2] y = loop(x, rounds=2) { a: f32[2] return }\n"
	 "return y }", "tn.syntax", 1, 62, "a value"},
	/* what comes from a row carries the place of the call */
	{"program {\n x: f32[2,16]\n y: f32[32,4]\n\tz = matmul(x, y)\n"
	 " return z }",
		"matmul.k", 4, 6,
		"matmul: k is 16 in x: f32[2,16] but 32 in y: f32[32,4]"},
	/* it names what the program has, not what the row calls it */
	{"program { foo: f32[2,3] bar: f32[4,5] z = matmul(foo, bar) return z }",
		"matmul.k", 1, 43,
		"matmul: k is 3 in foo: f32[2,3] but 4 in bar: f32[4,5]"},
	{"program { foo: f32[2,3] z = matmul(foo, foo) return z }", "matmul.k",
		1, 29,
		"matmul: k is 3 in foo: f32[2,3] (operand x) but 2 in foo: "
		"f32[2,3] (operand y)"},
	{"program { foo: f32[2,3] z = matmul(foo, 2) return z }", "matmul.y", 1,
		29, "matmul: operand y: f32[] has rank 0, but at least rank 2"},
	{"program { m: bool[3] foo: f32[1,3] bar: f32[4]\n"
	 "z = where(m, foo, bar) return z }",
		"where.i", 2, 5,
		"where: m: bool[3] and bar: f32[4] do not broadcast: i..[1] is "
		"3 in the one, 4 in the other"},
	{"program { foo: f32[2,3] z = broadcast_to(foo, shape=[2,4]) return z }",
		"broadcast_to.b", 1, 29,
		"broadcast_to: extents 3 and 4 of b..[1] do not broadcast (foo: "
		"f32[2,3])"},
	{"program { foo: f32[2] bar: i32[2] z = add(foo, bar) return z }",
		"add.dtype", 1, 39,
		"add: foo: f32[2] and bar: i32[2] differ in dtype"},
	{"program { foo: f32[2] bar: f32[3] z = einsum(foo, bar, "
	 "equation=\"ij,j->i\") return z }",
		"einsum.rank", 1, 39,
		"einsum: foo: f32[2] has rank 1, but its term has 2 letters"},
	{"program { foo: f32[2,3] bar: f32[3,3]\n"
	 "z = concat(foo, bar, axis=1) return z }",
		"concat.a", 2, 5,
		"concat: a..[0] is 2 in foo: f32[2,3] but 3 in bar: f32[3,3]"},
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		work w = {bad[i].text, strlen(bad[i].text), NULL};
		tn_diag d;
		tn_status status = unit_run(parse, &w, 0, &d);

		if (status != TN_EINVAL || strcmp(d.rule, bad[i].rule) != 0 ||
			d.line != bad[i].line || d.column != bad[i].column ||
			strstr(d.text, bad[i].says) == NULL)
			fail_msg("%s\n%s:%d:%d [%s] %s", w.text, d.file, d.line,
				d.column, d.rule, d.text);
		assert_string_equal(d.file, "x.tn");
		assert_true(strchr(d.extra, '^') != NULL);
	}
}

static void test_caret(void **state)
{
	const char *text = "program {\n  x: f32[2]\n  y = sofmax(x)\n}";
	work w = {text, strlen(text), NULL};
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(parse, &w, 0, &d), TN_EINVAL);
	assert_string_equal(d.extra, "  y = sofmax(x)\n      ^");
}

/* A fault in a user's row is shown at its place in the file. */
static void test_bad_row(void **state)
{
	const char *text = "// rows\nop f(x[i]) -> o {\n  o[i] = x[i] + ;\n}\n"
			   "program { x: f32[2] return x }";
	work w = {text, strlen(text), NULL};
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(parse, &w, 0, &d), TN_EINVAL);
	assert_int_equal(d.line, 3);
	assert_int_equal(d.column, 17);
	assert_string_equal(d.extra, "  o[i] = x[i] + ;\n                ^");
}

/* ---- hostile text ---- */

/* Cut anywhere, or one byte changed: a program or a diagnosis, never a crash. */
static void test_damaged(void **state)
{
	char text[900];
	work w = {text, 0, NULL};

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		size_t n = strlen(good[i].text);

		for (size_t cut = 0; cut < n; cut += 3) {
			tn_diag d;

			assert_true(n < sizeof text);
			memcpy(text, good[i].text, n);
			w.n = cut;
			assert_int_equal(unit_run(parse, &w, 0, &d), TN_EINVAL);
			w.n = n;
			text[cut] = (char)(base_mix64(i * 977 + cut) & 0xff);
			unit_run(parse, &w, 0, &d);
			assert_int_not_equal(d.status, TN_EINTERNAL);
		}
	}
}

/* Loops in loops, too deep for the parser. */
static void test_deep(void **state)
{
	char text[2000] = "program { x: f32[2]";
	work w = {text, 0, NULL};
	tn_diag d;

	(void)state;
	for (int32_t i = 0; i < 17; i++)
		strcat(text, "\ny = loop(x, rounds=2) { carried x: f32[2]");
	strcat(text, " return x }");
	w.n = strlen(text);
	assert_int_equal(unit_run(parse, &w, 0, &d), TN_EINVAL);
	assert_string_equal(d.rule, "tn.loop");
	assert_int_equal(d.line, 18);
	assert_non_null(strstr(d.text, "16 deep"));
}

static void test_no_memory(void **state)
{
	work w = {good[0].text, strlen(good[0].text), NULL};

	(void)state;
	for (int64_t n = 1; n < 40; n++) {
		tn_diag d;

		unit_run(parse, &w, n, &d);
		assert_true(d.status == TN_OK || d.status == TN_ENOMEM);
	}
}

/* Many statements: nothing in the parser is quadratic or recursive. */
static void parse_long(arena *a, void *arg)
{
	str s = str_new(a);

	(void)arg;
	str_add(&s, "program {\n  x0: f32[4]\n");
	for (int i = 1; i <= 3000; i++)
		str_printf(&s, "  x%d = add(x%d, x%d)\n", i, i - 1, i / 2);
	str_add(&s, "  return x3000\n}\n");
	assert_int_equal(
		ir_program_parse(a, s.at, s.n, "long.tn", interp_loop)->call.n, 3000);
	s = str_new(a);
	str_add(&s, "program { x: f32[");
	for (int i = 0; i < 100000; i++)
		str_add(&s, "((((");
	ir_program_parse(a, s.at, s.n, "deep.tn", interp_loop);
}

static void test_long(void **state)
{
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(parse_long, NULL, 0, &d), TN_EINVAL);
	assert_string_equal(d.file, "deep.tn");
}

/* ---- by calls, and run ---- */

static void build(arena *a, void *arg)
{
	ir_program *p = ir_program_new(a, ir_table_new(a));
	int64_t axes[] = {0};
	ir_attr attr = {
		.name = "axes", .kind = ATTR_INTS, .n = 1, .ints = axes};
	const char *names[] = {"t"};
	ir_type type = {TN_F32, 2, {2, 3}};
	int32_t x = ir_program_input(p, "x", type, (loc){0}), t, args[2];
	float data[6] = {1, 2, 3, 4, 5, 6}, sum[3];
	str s = str_new(a);

	(void)arg;
	args[0] = args[1] = x;
	t = ir_program_call(p, "add", 2, args, 0, NULL, names, (loc){0});
	args[0] = p->call.at[t].result[0];
	t = ir_program_call(p, "reduce_sum", 1, args, 1, &attr, NULL, (loc){0});
	axes[0] = 99; /* the program has its own copy */
	ir_program_output(p, p->call.at[t].result[0]);
	ir_program_verify(p);
	ir_program_print(&s, p);
	assert_string_equal(s.at,
		"program {\n  x: f32[2,3]\n  t = add(x, x)\n"
		"  v0 = reduce_sum(t, axes=[0])\n  return v0\n}\n");
	interp_run(arena_env(a), p, (const void *[]){data}, (void *[]){sum});
	assert_true(sum[0] == 10 && sum[1] == 14 && sum[2] == 18);
}

static void test_build(void **state)
{
	tn_diag d;

	(void)state;
	if (unit_run(build, NULL, 0, &d) != TN_OK)
		fail_msg("[%s] %s", d.rule, d.text);
}

/* The verifier sees a program that was tampered with. */
static void tamper(arena *a, void *arg)
{
	const char *text = good[0].text;
	ir_program *p = ir_program_parse(a, text, strlen(text), "x.tn", interp_loop);

	switch (*(int *)arg) {
	case 0:
		p->value.at[2].type.shape[0] = 7;
		break;
	case 1:
		p->value.at[3].call = 0;
		break;
	case 2:
		p->value.at[0].name = "y";
		break;
	case 3:
		p->output.at[0] = 99;
		break;
	case 4:
		p->call.n = 1;
		break;
	default:
		p->input.at[1] = 2;
		break;
	}
	ir_program_verify(p);
}

static void test_verify(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++) {
		tn_diag d;

		assert_int_equal(unit_run(tamper, &i, 0, &d), TN_EINTERNAL);
		assert_string_equal(d.rule, "ir_program_verify");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_caret),
		cmocka_unit_test(test_bad_row),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_build),
		cmocka_unit_test(test_verify),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
