/*
 * test_ops_md.c: docs/ops.md is what the table says today. After a change of
 * the table: build/tenon ops --md >docs/ops.md
 */
#include "unit.h"

#include "program/program.h"

#include <stdio.h>
#include <stdlib.h>

static char *read_file(arena *a, const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *text = arena_alloc(a, 1 << 20, 1);

	if (f == NULL)
		fail_msg("cannot open %s", path);
	*n = fread(text, 1, 1 << 20, f);
	fclose(f);
	return text;
}

/* The first line that differs. */
static void compare(const char *old, const char *now)
{
	int line = 1;

	for (; *old == *now && *now != '\0'; old++, now++)
		line += *now == '\n';
	if (*old != *now)
		fail_msg("docs/ops.md differs from the table from line %d on; "
			 "write it anew: build/tenon ops --md >docs/ops.md",
			line);
}

static void fresh(arena *a, void *arg)
{
	str now = str_new(a);
	size_t n;
	const char *root = getenv("TN_SOURCE_ROOT"), *old;

	(void)arg;
	ir_ops_md(&now, ir_table_new(a));
	if (root == NULL)
		fail_msg("TN_SOURCE_ROOT is not set");
	old = read_file(a, arena_printf(a, "%s/docs/ops.md", root), &n);
	compare(old, now.at);
}

static void test_fresh(void **state)
{
	tn_diag d;

	(void)state;
	if (unit_run(fresh, NULL, 0, &d) != TN_OK)
		fail_msg("[%s] %s", d.rule, d.text);
}

/* Every row has its heading, results with their shapes, attributes. */
static void contents(arena *a, void *arg)
{
	ir_table *t = ir_table_new(a);
	const char *row = "twice(x[i..]:num) -> o { o[i..] = 2 * x[i..] }";
	str s = str_new(a);

	(void)arg;
	ir_table_define(t, row, strlen(row), (loc){0});
	ir_ops_md(&s, t);
	for (int32_t i = 0; i < ir_table_n(t); i++)
		if (strstr(s.at, arena_printf(a, "\n### %s\n",
				 ir_row_name(ir_table_at(t, i)))) == NULL)
			fail_msg("%s is missing",
				ir_row_name(ir_table_at(t, i)));
	assert_non_null(strstr(s.at, "## Defined here\n\n### twice\n"));
	assert_non_null(strstr(s.at, "Results: `o[b.., m, n]`.\n"));
	assert_non_null(strstr(s.at, "`m[i..\\axis:keep]`, `o[i..\\axis:keep]`"));
	assert_non_null(strstr(s.at, "Attributes: `axis` axis = -1.\n"));
	assert_non_null(strstr(s.at, "`o[n, c, y..]` with `k.. < kernel, y.. <"));
}

static void test_contents(void **state)
{
	tn_diag d;

	(void)state;
	if (unit_run(contents, NULL, 0, &d) != TN_OK)
		fail_msg("[%s] %s", d.rule, d.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fresh),
		cmocka_unit_test(test_contents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
