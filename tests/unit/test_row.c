/* row_parse.c, row_check.c, table.c: texts that parse, texts that do not. */
#include "unit.h"

#include "program/program.h"
#include "interp/interp.h"

#include <stdio.h>
#include <stdlib.h>

static void define(arena *a, void *arg)
{
	ir_table *t = ir_table_new(a);
	const char *text = arg;

	ir_table_define(t, text, strlen(text),
		(loc){.file = "u.tn", .line = 3, .column = 4});
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *rule;
		int32_t column; /* of the text; it begins at 4 */
	} cases[] = {
		{"", "notation.syntax", 1},
		{"f", "notation.syntax", 2},
		{"f(x[i..]) -> o { o[i..] = x[i..] } x", "notation.syntax", 36},
		{"f(x[i..]) -> o { o[i..] x[i..] }", "notation.syntax", 25},
		{"f(x[i..]) -> o { o[i..] = }", "notation.syntax", 27},
		{"f(x[i..]) -> o { o[i..] = x[i..] where 1 }",
			"notation.syntax", 42},
		{"f(x[i) -> o { o[i] = x[i] }", "notation.syntax", 6},
		{"f(x[i]:number) -> o { o[i] = x[i] }", "notation.class", 8},
		{"f(x[i], a: integer) -> o { o[i] = x[i] }", "notation.kind",
			12},
		{"f(x[i], a: int@b) -> o { o[i] = x[i] }", "notation.kind", 12},
		{"f(x[i], a: ints@b) -> o { o[i] = x[i] }", "notation.name", 9},
		{"f(x[i]) -> o { o[i] = x[j] }", "notation.letter", 25},
		{"f(x[i]) -> o { o[i] = x[i..] }", "notation.letter", 25},
		{"f(x[i..]) -> o { o[i..] = x[i] }", "notation.letter", 29},
		{"f(x[i]) -> o { o[i] = y[i] }", "notation.tensor", 23},
		{"f(x[i]) -> o { o[i] = y[i]; y[i] = x[i] }",
			"notation.tensor", 23},
		{"f(x[i]) -> o { o[i] = g(x[i]) }", "notation.call", 23},
		{"f(x[i]) -> o { o[i] = exp(x[i], 1) }", "notation.arity", 23},
		{"f(x[i]) -> o { o[i] argmax= x[i] }", "notation.arity", 21},
		{"f(x[i]) -> o { (o, k)[] argmax= x[i] }", "notation.arity",
			33},
		{"f(x[i], i: int) -> o { o[i] = x[i] }", "notation.name", 9},
		{"f(x[i], x[i]) -> o { o[i] = x[i] }", "notation.name", 9},
		{"f(x[i], y[i..]) -> o { o[i] = x[i] }", "notation.name", 11},
		{"f(x[i]) -> o { let i = 2; o[i] = x[i] }", "notation.name",
			16},
		{"f(x[i]) -> o, o { o[i] = x[i] }", "notation.name", 15},
		{"f(x[i]) -> o, p { o[i] = x[i] }", "notation.result", 15},
		{"f(x[i]) -> o { o[i] = x[i] else skip }", "notation.syntax",
			28},
		{"f(x[i]) -> o { o[i] = inside(i) }", "notation.call", 30},
		{"f(x[i]) -> o { o[i] = cast(x[i], f99) }", "notation.dtype",
			34},
		{"f(x[i]) -> o { o[i] = 12ab }", "notation.number", 23},
		{"f(x[i]) -> o { o[i] = 99999999999999999999 }",
			"notation.number", 23},
		{"f(x[i]) -> o { o[i] = x[i] $ }", "notation.character", 28},
		{"exp(x[i]) -> o { o[i] = x[i] }", "notation.name", 1},
		{"opaque f(x[i]) -> o[i] { }", "notation.opaque", 1},
		{"opaque sort(x[i], to: int) -> o[i]: to { }", "notation.dtype",
			31},
		{"opaque f(x[i]) -> o[i] { o[i] = x[i] }", "notation.syntax",
			31},
		{"f(x[i], s: string) -> o { o[i] = x[i] }", "notation.kind", 9},
		{"f(x[i]) -> o { o[i] = x[i] grad { gx[i] += gp[i] } }",
			"notation.tensor", 44},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		tn_diag d = {0};
		tn_status status = unit_run(define,
			(void *)(uintptr_t)cases[i].text, 0, &d);

		if (status != TN_EINVAL || strcmp(d.rule, cases[i].rule) != 0 ||
			d.line != 3 || d.column != cases[i].column + 3)
			fail_msg("%s: %d %s %d:%d %s\n%s", cases[i].text,
				status, d.rule, d.line, d.column - 3, d.text,
				d.extra);
		assert_string_equal(d.file, "u.tn");
	}
}

static void test_caret(void **state)
{
	tn_diag d = {0};
	static const char text[] =
		"f(x[i]) -> o {\n"
		"  o[i] = x[i] + y[i] }";

	(void)state;
	assert_int_equal(unit_run(define, (void *)(uintptr_t)text, 0, &d),
		TN_EINVAL);
	assert_int_equal(d.line, 4);
	assert_int_equal(d.column, 17);
	assert_string_equal(d.extra,
		"  o[i] = x[i] + y[i] }\n"
		"                ^");
}

static void test_good(void **state)
{
	static const char *const texts[] = {
		"f(x[i]) -> o { o[i] = x[i] }",
		"f(x[i]) -> x' { x'[i] = x[i] }",
		"f() -> o { o[] = cast(1, f32) }",
		"f(x[i]) -> o { o[] += x[i] where 0 <= i < 3 else 0 }",
		"f(pos[i], pos: int = 2) -> o { o[i] = pos[i] }",
		"f(and[i]:bool) -> o { o[i] = and(and[i], not(and[i])) }",
		"f(x[i, (a=2, b), c..(len([1, 2]))]) -> o { // comment\n"
		" let z = [1, 2]; check z > 0; o[i, (b, a)] += "
		"x[i, (a, b), c..]; }",
		"f(x[i]) -> o { o[i] = x[i] grad { gx[i] += go[i] } }",
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		tn_diag d = {0};

		if (unit_run(define, (void *)(uintptr_t)texts[i], 0, &d) !=
			TN_OK)
			fail_msg("%s: %s %s\n%s", texts[i], d.rule, d.text,
				d.extra);
	}
	unit_each_alloc_fails(define, (void *)(uintptr_t)texts[6]);
}

static void deep(arena *a, void *arg)
{
	str s = str_new(a);

	(void)arg;
	str_add(&s, "f(x[i]) -> o { o[i] = ");
	for (int i = 0; i < 200000; i++)
		str_add(&s, "-(");
	define(a, s.at);
}

static void test_deep(void **state)
{
	tn_diag d = {0};

	(void)state;
	assert_int_equal(unit_run(deep, NULL, 0, &d), TN_EINVAL);
	assert_string_equal(d.rule, "notation.depth");
}

/* ---- the table ---- */

static void all_rows(arena *a, void *arg)
{
	ir_table *t = ir_table_new(a);
	const ir_row *r;

	(void)arg;
	assert_true(ir_table_n(t) >= 200);
	for (int32_t i = 0; i < ir_table_n(t); i++) {
		r = ir_table_at(t, i);
		assert_ptr_equal(ir_table_find(t, ir_row_name(r)), r);
		assert_true(strlen(ir_row_doc(r)) > 0);
		assert_true(strlen(ir_row_text(r)) > 0);
		assert_true(ir_row_n_results(r) != 0);
		for (int32_t k = 0; k < ir_row_n_params(r); k++)
			assert_non_null(ir_row_param(r, k)->name);
	}
	assert_null(ir_table_find(t, "nosuch"));
	r = ir_table_find(t, "exp");
	assert_string_equal(ir_row_text(r),
		"exp(x[~i..]:float) -> o { o[i..] = exp(x[i..]) }");
	r = ir_table_find(t, "reduce_sum");
	assert_int_equal(ir_row_n_params(r), 3);
	assert_true(ir_row_param(r, 0)->is_operand);
	assert_string_equal(ir_row_param(r, 0)->pattern, "i..");
	assert_string_equal(ir_row_param(r, 0)->dtype_class, "num");
	assert_string_equal(ir_row_param(r, 1)->kind, "axes");
	assert_string_equal(ir_row_param(r, 1)->default_text, "all");
	assert_true(ir_row_is_variadic(ir_table_find(t, "concat")));
	assert_int_equal(ir_row_n_results(ir_table_find(t, "split")), -1);
}

static void test_table(void **state)
{
	tn_diag d = {0};

	(void)state;
	if (unit_run(all_rows, NULL, 0, &d) != TN_OK)
		fail_msg("%s: %s\n%s", d.rule, d.text, d.extra);
}

/* ---- the examples of docs/notation.md ---- */

static void lower(arena *a, void *arg)
{
	const char *text = arg;

	ir_lower(a, ix_new(a),
		ir_program_parse(a, text, strlen(text), "doc.tn", interp_loop));
}

/* the last line is the rule and the text */
static void check_error(char *text)
{
	char *last = strrchr(text, '\n');
	tn_diag d = {0};
	char got[1200];

	assert_non_null(last);
	*last++ = '\0';
	assert_int_equal(unit_run(lower, text, 0, &d), TN_EINVAL);
	snprintf(got, sizeof got, "%s: %s", d.rule, d.text);
	assert_string_equal(got, last);
}

static void check_block(const char *kind, char *text)
{
	tn_diag d = {0};
	tn_status status = TN_OK;
	char other[8200]; /* by another name than the table's */

	snprintf(other, sizeof other, "my_%s", text);
	if (strcmp(kind, "error") == 0)
		check_error(text);
	else if (strcmp(kind, "row") == 0)
		status = unit_run(define, other, 0, &d);
	else
		status = unit_run(lower, text, 0, &d);
	if (status != TN_OK)
		fail_msg("%s\n%s: %s\n%s", text, d.rule, d.text, d.extra);
}

static void test_document(void **state)
{
	char path[4096], line[4096], text[8192] = "", kind[16] = "";
	const char *root = getenv("TN_SOURCE_ROOT");
	int blocks = 0;
	FILE *f;

	(void)state;
	snprintf(path, sizeof path, "%s/docs/notation.md",
		root != NULL ? root : ".");
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f) != NULL) {
		if (strncmp(line, "```", 3) != 0) {
			if (kind[0] != '\0')
				strncat(text, line,
					sizeof text - strlen(text) - 1);
			continue;
		}
		if (kind[0] == '\0') {
			snprintf(kind, sizeof kind, "%.*s",
				(int)strcspn(line + 3, "\n"), line + 3);
			continue;
		}
		text[strlen(text) - 1] = '\0'; /* the last line end */
		check_block(kind, text);
		blocks++;
		kind[0] = text[0] = '\0';
	}
	fclose(f);
	assert_true(blocks > 10);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_caret),
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_document),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
