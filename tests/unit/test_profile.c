/*
 * The profile: a time for every kernel, of kernels launched together too, and
 * names that tell equal kernels and equations apart.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <tenon_train.h>

enum { N = 48, RUNS = 3 };

/* Two products that are independent, then two that follow one another. */
static const char text[] = "program {\n"
			   "  x: f32[48,48]\n"
			   "  y: f32[48,48]\n"
			   "  a = matmul(x, x)\n"
			   "  b = matmul(y, y)\n"
			   "  c = matmul(a, b)\n"
			   "  d = softmax(c, axis=1)\n"
			   "  e = matmul(d, d)\n"
			   "  return e\n"
			   "}\n";

static int count(const char *s, const char *what)
{
	int n = 0;

	for (; (s = strstr(s, what)) != NULL; s += strlen(what))
		n++;
	return n;
}

/* Number behind the next "key": of *s, which moves on; false: no more. */
static bool next_number(const char **s, const char *key, double *v)
{
	char *end;

	*s = strstr(*s, key);
	if (*s == NULL)
		return false;
	*s += strlen(key);
	*v = strtod(*s, &end);
	assert_true(end > *s);
	return true;
}

static void run(tn_program *p, int times)
{
	static float x[N * N], y[N * N], z[N * N];

	for (int i = 0; i < N * N; i++)
		x[i] = y[i] = (float)(i % 7) / 7;
	for (int i = 0; i < times; i++)
		assert_int_equal(tn_program_run(p, (const void *[]){x, y},
			(void *[]){z}), TN_OK);
}

static tn_program *program(tn_context *c)
{
	tn_program *p;

	assert_int_equal(tn_program_parse(&p, c, text, strlen(text), "t.tn"),
		TN_OK);
	return p;
}

static void test_each_kernel_has_its_time(void **state)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;
	tn_program *p;
	char *json, *of_one, *table;
	const char *s;
	double all, seconds, sum = 0;
	int n = 0;

	(void)state;
	o.no_fusion = true; /* a kernel for each equation */
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	assert_int_equal(tn_profile_start(c), TN_OK);
	p = program(c);
	run(p, RUNS);
	assert_int_equal(tn_profile_text(&json, c, false), TN_OK);
	assert_non_null(strstr(json, "{\"runs\":3,"));
	s = json;
	assert_true(next_number(&s, "\"seconds\":", &all));
	for (; next_number(&s, "\"seconds\":", &seconds); n++) {
		assert_true(seconds > 0);
		sum += seconds;
	}
	assert_true(n >= 4);
	assert_int_equal(n, count(json, "\"step\":"));
	assert_true(sum > 0.999 * all && sum < 1.001 * all);

	/* calls of one operation are told apart */
	assert_true(count(json, "\"matmul_0\"") > 0);
	assert_true(count(json, "\"matmul_1\"") > 0);
	assert_true(count(json, "\"matmul_4\"") > 0);
	assert_int_equal(count(json, "\"matmul\""), 0);
	assert_int_equal(count(json, "\"loops\":"),
		count(json, "\"uses\":"));
	assert_int_equal(count(json, "\"producer\":"),
		count(json, "\"producer_kernel\":"));

	/* the same for the program alone */
	assert_int_equal(tn_program_profile(&of_one, p), TN_OK);
	assert_string_equal(of_one, json);
	assert_int_equal(tn_profile_table(&table, c), TN_OK);
	assert_int_equal(count(table, "\n"), n + 1);
	tn_text_free(table);
	tn_text_free(of_one);
	tn_text_free(json);
	tn_program_free(p);
	tn_context_free(c);
}

static void test_without_a_profile(void **state)
{
	tn_context *c;
	tn_program *p;
	char *json;

	(void)state;
	assert_int_equal(tn_context_new(&c, NULL), TN_OK);
	assert_int_equal(tn_profile_text(&json, c, false), TN_EINVAL);
	assert_null(json);
	assert_string_equal(tn_context_diag(c)->rule, "profile.start");
	p = program(c);
	assert_int_equal(tn_program_profile(&json, p), TN_OK);
	assert_non_null(strstr(json, "{\"runs\":0,"));
	tn_text_free(json);
	tn_program_free(p);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_kernel_has_its_time),
		cmocka_unit_test(test_without_a_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
