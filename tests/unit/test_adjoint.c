/* tn_ops_adjoint: the gradient of an operation as rows, or why there is none. */
#include "unit.h"

#include "notation/notation.h"

#include <tenon.h>

static tn_context *context(void)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c = NULL;

	o.cache_dir = "";
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

/* The text as rows of a program, which must be read. */
static void reads_back(tn_context *c, const char *op, const char *text)
{
	size_t n = strlen(text) + 80;
	char *all = malloc(n);
	tn_program *p = NULL;

	assert_non_null(all);
	/* comments stand in front of rows here, not inside of programs */
	snprintf(all, n, "%s\nprogram { x: f32[1]\n return x }\n", text);
	if (tn_program_parse(&p, c, all, strlen(all), NULL) < 0)
		fail_msg("%s: %s\n%s", op, tn_context_diag(c)->text, all);
	tn_program_free(p);
	free(all);
}

static int32_t count(const char *text, const char *word)
{
	int32_t n = 0;

	for (; (text = strstr(text, word)) != NULL; text += strlen(word))
		n++;
	return n;
}

/* Every row of the table by its name alone. */
static void all_rows(arena *a, void *arg)
{
	ir_table *t = ir_table_new(a);
	tn_context *c = arg;
	int32_t n_shown = 0, n_rows = 0, n_none = 0, n_unknown = 0;
	str unknown = str_new(a);

	for (int32_t i = 0; i < ir_table_n(t); i++) {
		const ir_row *r = ir_table_at(t, i);
		char *text = NULL;
		tn_status s = tn_ops_adjoint(
			&text, c, ir_row_name(r), NULL, false);

		if (s < 0) {
			assert_string_equal(tn_context_diag(c)->rule,
				"adjoint.shapes");
			str_printf(&unknown, " %s", ir_row_name(r));
			n_unknown++;
			continue;
		}
		n_shown++;
		n_rows += count(text, "\nop ");
		n_none += count(text, " has no gradient: ");
		reads_back(c, ir_row_name(r), text);
		tn_text_free(text);
	}
	/* these need shapes from the user; a new row is not to be one of them */
	if (n_unknown > 12)
		fail_msg("no shapes were found for%s", unknown.at);
	assert_true(n_shown > 250);
	assert_true(n_rows > 250);
	assert_true(n_none > 50);
}

static void every_row_is_shown(void **state)
{
	tn_context *c = context();
	tn_diag d;

	(void)state;
	if (unit_run(all_rows, c, 0, &d) < 0)
		fail_msg("%s", d.text);
	tn_context_free(c);
}

static void says_why_there_is_none(void **state)
{
	static const struct {
		const char *call, *text;
	} cases[] = {
		{"add(i64[3], i64[3])", "x has no gradient: it is not a float"},
		{"argmax", "x has no gradient: no result of the row is a float"},
		{"unique", "x has no gradient: the row is opaque"},
		{"floor", "x has no gradient: results depend on it only"},
		{"stop_gradient", "x has no gradient: results depend on it"},
		{"embedding", "ids has no gradient: it is not a float"},
		{"sort(f32[4])", "the gradient of x, from the row's grad block"},
		{"matmul(f32[2,3], f32[3,4])", "the gradient of y, derived:\n"
			"op matmul_grad_y(x[2,3], d_o[2,4]) -> gy {"},
		{"softmax(f64[2,3], axis=0)", "// softmax(x: f64[2,3], axis=0)"
			" -> o: f64[2,3]\n"},
		{"concat(f32[2], f32[3], axis=0)", "op concat_grad_"},
		{"einsum(f32[2,3], f32[3,4], equation=\"ij,jk->ik\")",
			"op einsum_grad_"},
	};
	tn_context *c = context();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char *text = NULL;

		if (tn_ops_adjoint(&text, c, cases[i].call, NULL, false) < 0)
			fail_msg("%s: %s", cases[i].call,
				tn_context_diag(c)->text);
		if (strstr(text, cases[i].text) == NULL)
			fail_msg("%s is not in\n%s", cases[i].text, text);
		reads_back(c, cases[i].call, text);
		tn_text_free(text);
	}
	tn_context_free(c);
}

static void refuses(void **state)
{
	static const struct {
		const char *call, *rule;
	} cases[] = {
		{"", "tn.syntax"},
		{"rleu", "tn.unknown_op"},
		{"matmul(", "tn.syntax"},
		{"matmul(f32[2,3], f32[4,4])", "matmul.k"},
		{"matmul(f32[2,3])", "tn.arity"},
		{"softmax(f32[2], axis=0) x", "tn.syntax"},
		{"softmax(f32[2], axes=0)", "tn.attr"},
		{"softmax(f32[2], q32[3])", "tn.syntax"},
		{"softmax(f32[-1])", "tn.extent"},
		{"einsum", "adjoint.shapes"},
	};
	tn_context *c = context();
	char *text = (char *)&c;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		if (tn_ops_adjoint(&text, c, cases[i].call, NULL, false) >= 0)
			fail_msg("%s is accepted", cases[i].call);
		assert_null(text);
		assert_string_equal(tn_context_diag(c)->rule, cases[i].rule);
	}
	assert_int_equal(tn_ops_adjoint(&text, c, NULL, NULL, false),
		TN_EINVAL);
	assert_string_equal(tn_context_diag(c)->rule, "api.null");
	assert_int_equal(tn_ops_adjoint(&text, NULL, "relu", NULL, false),
		TN_EINVAL);
	/* and then it works */
	assert_int_equal(tn_ops_adjoint(&text, c, "relu", NULL, false), TN_OK);
	tn_text_free(text);
	tn_context_free(c);
}

static const char rows[] =
	"op gate(x[i..]:float, k: real) -> o { o[i..] = k * x[i..]\n"
	"  grad { gx[i..] += 3 * go[i..] } }\n"
	"op top(x[i]:float, y[j]:float, k[j]:int) -> o {\n"
	"  o[i] = x[i]; o[k[j]] max= y[j] }\n"
	"program {\n"
	"  x: f64[5]\n"
	"  y = gate(x, k=2)\n"
	"  return y\n"
	"}\n";

/* A program's rows, on the shapes of its calls. */
static void rows_of_the_user(void **state)
{
	tn_context *c = context();
	tn_program *p = NULL;
	char *text = NULL;

	(void)state;
	assert_int_equal(tn_program_parse(&p, c, rows, sizeof rows - 1, NULL),
		TN_OK);
	assert_int_equal(tn_ops_adjoint(&text, c, "gate", p, false), TN_OK);
	assert_non_null(strstr(text, "// gate(x: f64[5], k=2) -> o: f64[5]\n"));
	assert_non_null(strstr(text, "from the row's grad block:\n"
				     "op gate_grad_x(go[5]) -> gx {"));
	tn_text_free(text);
	/* what cannot be undone */
	assert_int_equal(tn_ops_adjoint(&text, c, "top", p, false), TN_OK);
	assert_non_null(strstr(text, "x has no gradient: "));
	assert_null(strstr(text, "depend on it only"));
	tn_text_free(text);
	/* JSON, with the same */
	assert_int_equal(tn_ops_adjoint(&text, c, "gate", p, true), TN_OK);
	assert_non_null(strstr(text, "{\"op\": \"gate\", \"gradient\": "
		"\"from the row's grad block\", \"operands\": [{\"name\": "
		"\"x\", \"type\": \"f64[5]\", \"row\": \"gate_grad_x(go[5])"));
	tn_text_free(text);
	tn_program_free(p);
	/* rows of tn_op_define */
	assert_int_equal(tn_ops_adjoint(&text, c, "halve", NULL, false),
		TN_EINVAL);
	tn_op_define(c, "halve(x[i]:float) -> o { o[i] = x[i] / 2 }");
	assert_int_equal(tn_ops_adjoint(&text, c, "halve", NULL, false), TN_OK);
	assert_non_null(strstr(text, "op halve_grad_x(d_o[2]) -> gx {"));
	tn_text_free(text);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_is_shown),
		cmocka_unit_test(says_why_there_is_none),
		cmocka_unit_test(refuses),
		cmocka_unit_test(rows_of_the_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
