/*
 * rows_main.c: all cases of test_rows_*.c by topic, interpreted or compiled;
 * a row of the table without a case fails the test.
 */
#include "part.h"
#include "rows.h"

#include <stdio.h>

static const row_cases *const topics[] = {&rows_scalar, &rows_elementwise,
	&rows_reduce, &rows_make, &rows_move, &rows_gather, &rows_contract,
	&rows_conv, &rows_scan, &rows_norm, &rows_loss, &rows_attention,
	&rows_random, &rows_opaque, &rows_builder, &rows_train};

enum { N_TOPICS = (int)(sizeof topics / sizeof topics[0]) };

enum { MAX_CASES = 2000 };

struct job {
	const row_case *c;
	bool compiled;
};

static void run_case(void **state)
{
	const struct job *job = *state;

	row_case_run(job->c, job->compiled);
}

/* Does a case that expects values call the row? */
static bool is_tested(const char *name)
{
	size_t n = strlen(name);

	for (int32_t k = 0; k < N_TOPICS; k++)
		for (size_t i = 0; i < topics[k]->n; i++) {
			const row_case *c = &topics[k]->at[i];

			if (c->out[0][0] != '!' &&
				strncmp(c->call, name, n) == 0 &&
				c->call[n] == '(')
				return true;
		}
	return false;
}

static void list_rows(arena *a, void *arg)
{
	ir_table *t = ir_table_new(a);
	str missing = str_new(a);

	(void)arg;
	assert_true(ir_table_n(t) >= 150);
	for (int32_t i = 0; i < ir_table_n(t); i++)
		if (!is_tested(ir_row_name(ir_table_at(t, i))))
			str_printf(&missing, " %s",
				ir_row_name(ir_table_at(t, i)));
	if (missing.n > 0)
		fail_msg("rows without a case:%s", missing.at);
}

static void test_every_row_has_a_case(void **state)
{
	tn_diag d;

	(void)state;
	if (unit_run(list_rows, NULL, 0, &d) != TN_OK)
		fail_msg("%s", d.text);
}

enum { PARTS = 4 }; /* of the compiled cases: see part.h */

/* Each case is a test of its own: one that fails hides no other. */
int rows_main(bool compiled)
{
	struct CMUnitTest test[MAX_CASES];
	struct job job[MAX_CASES];
	int64_t part = compiled ? part_now(PARTS) : -1, number = 0;
	size_t n = 0;

	for (int32_t k = 0; k < N_TOPICS; k++)
		for (size_t i = 0; i < topics[k]->n && n < MAX_CASES - 1; i++) {
			const row_case *c = &topics[k]->at[i];

			if (!part_has(PARTS, part, number++))
				continue;
			job[n] = (struct job){c, compiled};
			test[n] = (struct CMUnitTest){
				c->call, run_case, NULL, NULL, &job[n]};
			n++;
		}
	test[n++] = (struct CMUnitTest)cmocka_unit_test(
		test_every_row_has_a_case);
	return _cmocka_run_group_tests("rows", test, n, NULL, NULL);
}
