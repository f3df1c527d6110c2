/*
 * test_rows.c: every row of the op table against values that do not come from
 * Tenon: recorded ones or straightforward C. The cases are in test_rows_*.c by
 * topic; a row without a case fails the test.
 */
#include "rows.h"

#include <stdio.h>

static const row_cases *const topics[] = {&rows_scalar, &rows_elementwise,
	&rows_reduce, &rows_make, &rows_move, &rows_gather, &rows_contract,
	&rows_conv, &rows_scan, &rows_norm, &rows_loss, &rows_attention,
	&rows_random, &rows_opaque, &rows_builder};

enum { N_TOPICS = (int)(sizeof topics / sizeof topics[0]) };

static void run_topic(void **state)
{
	const row_cases *topic = *state;

	for (size_t i = 0; i < topic->n; i++)
		row_case_run(&topic->at[i]);
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

int main(void)
{
	struct CMUnitTest tests[N_TOPICS + 1];

	for (int32_t i = 0; i < N_TOPICS; i++) {
		const void *topic = topics[i];

		tests[i] = (struct CMUnitTest){topics[i]->topic, run_topic,
			NULL, NULL, NULL};
		memcpy(&tests[i].initial_state, &topic, sizeof topic);
	}
	tests[N_TOPICS] = (struct CMUnitTest)cmocka_unit_test(
		test_every_row_has_a_case);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
