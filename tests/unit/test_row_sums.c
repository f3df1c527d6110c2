/*
 * test_row_sums.c: the sum of an instance over rows of its operands is one
 * instance (program/rows.c): its text, and its values against a call for each row.
 */
#include "unit.h"

#include "interp/interp.h"
#include "program/program.h"

#include <math.h>

typedef struct sum_case {
	const char *call; /* on types */
	int32_t result;
	const char *rows; /* by operand: r has rows, - has not */
	const char *text; /* NULL: there is no such instance */
} sum_case;

static const sum_case table[] = {
	{"matmul(f32[2,3], f32[3,4])", 0, "rr",
		"f(x[5,2,3], y[5,3,4]) -> o {\n  o[m, n] += mul(x[round, m, k], "
		"y[round, k, n]) for m < 2, n < 4, k < 3, round < 5 }"},
	/* the same y in every row */
	{"matmul(f32[2,3], f32[3,4])", 0, "r-",
		"f(x[5,2,3], y[3,4]) -> o {\n  o[m, n] += mul(x[round, m, k], "
		"y[k, n]) for m < 2, n < 4, k < 3, round < 5 }"},
	{"relu(f32[4])", 0, "r",
		"f(x[5,4]) -> o {\n  o[i_0] += relu(x[round, i_0]) for i_0 < 4, "
		"round < 5 }"},
	/* an equation before the last: each row has its own */
	{"softmax(f32[2,3])", 0, "r", NULL}, /* as large as the result */
	{"reduce_mean(f32[2,3], axes=[0,1])", 0, "r", NULL},
	/* nothing has rows */
	{"relu(f32[4])", 0, "-", NULL},
	/* a function in C, a scan */
	{"sort(f32[4])", 0, "r", NULL},
	{"cumsum(f32[4], axis=0)", 0, "r", NULL},
	/* a result that is not made by one equation */
	{"scatter_add(f32[4], i64[3], f32[3])", 0, "r-r", NULL},
	/* only the operands that are read */
	{"split(f32[2,3], axis=0, sizes=[1,1])", 1, "r",
		"f(x[5,2,3]) -> o1 {\n  o1[t1, b_0] += x[round, (t1 + 1), b_0] "
		"for t1 < 1, b_0 < 3, round < 5 }"},
	/* no room for an axis */
	{"relu(f32[1,1,1,1,1,1,1,2])", 0, "r", NULL},
};

static ir_inst *sum_of(arena *a, const sum_case *c, const ir_inst **inst,
	int32_t *operand)
{
	const ir_row *row;
	bool is_row[8] = {false};

	*inst = ir_call_parse(a, ir_table_new(a), c->call, strlen(c->call), &row);
	for (int32_t i = 0; c->rows[i] != '\0'; i++)
		is_row[i] = c->rows[i] == 'r';
	return ir_inst_sum_rows(a, *inst, c->result, is_row, 5, operand);
}

static void texts(arena *a, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const ir_inst *inst;
		int32_t operand[8];
		ir_inst *sum = sum_of(a, &table[i], &inst, operand);
		str s = str_new(a);

		if (sum != NULL)
			ir_inst_print(&s, sum, "f");
		if ((sum == NULL) != (table[i].text == NULL) ||
			(sum != NULL && strcmp(s.at, table[i].text) != 0))
			fail_msg("%s:\n%s", table[i].call, s.at);
	}
}

static void test_texts(void **state)
{
	tn_diag d = {0};

	(void)state;
	if (unit_run(texts, NULL, 0, &d) != TN_OK)
		fail_msg("%s: %s", d.rule, d.text);
}

/* One call on all rows against the sum of calls on each. */
static void run(arena *a, const ir_inst *inst, const float *const *in,
	float *out)
{
	ir_program *p = ir_program_new(a, ir_table_new(a));
	int32_t arg[8], n = 0, call;
	void *to[8];

	for (; inst->tensor[n].operand >= 0; n++)
		arg[n] = ir_program_input(p, arena_printf(a, "x%d", (int)n),
			inst->tensor[n].type, (loc){0});
	call = ir_program_inst(p, inst, n, arg, NULL, (loc){0});
	ir_program_output(p, p->call.at[call].result[0]);
	ir_program_verify(p);
	to[0] = out;
	interp_run(arena_env(a), p, (const void *const *)in, to);
}

static void values(arena *a, void *arg)
{
	const sum_case *c = &table[0];
	const ir_inst *inst;
	int32_t operand[8];
	ir_inst *sum = sum_of(a, c, &inst, operand);
	float x[5 * 6], y[5 * 12], all[8], one[8], want[8] = {0};
	const float *in[2] = {x, y};

	(void)arg;
	for (int32_t i = 0; i < 60; i++) {
		x[i % 30] = (float)(i * 7 % 11) - 5;
		y[i] = (float)(i * 5 % 13) - 6;
	}
	run(a, sum, in, all);
	for (int32_t r = 0; r < 5; r++) {
		in[0] = x + 6 * r;
		in[1] = y + 12 * r;
		run(a, inst, in, one);
		for (int32_t i = 0; i < 8; i++)
			want[i] += one[i];
	}
	assert_memory_equal(all, want, sizeof all);
}

static void test_values(void **state)
{
	tn_diag d = {0};

	(void)state;
	if (unit_run(values, NULL, 0, &d) != TN_OK)
		fail_msg("%s: %s", d.rule, d.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
