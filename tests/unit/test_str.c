/* str.c: growing text, JSON, numbers that read back. */
#include "unit.h"

#include <locale.h>
#include <math.h>

static void builds(arena *a, void *arg)
{
	str s = str_new(a);
	int64_t shape[] = {2, 3, 1024};

	(void)arg;
	assert_string_equal(s.at, "");
	str_add(&s, "x: f32");
	str_shape(&s, shape, 3);
	str_shape(&s, shape, 0);
	str_addc(&s, ' ');
	str_addn(&s, "abcdef", 3);
	str_printf(&s, "%d%*d|", 5, 200, 6);
	assert_int_equal(s.n, strlen(s.at));
	assert_int_equal(s.n, 6 + 10 + 2 + 1 + 3 + 202);
	assert_memory_equal(s.at, "x: f32[2,3,1024][] abc5    ", 27);
	assert_string_equal(s.at + s.n - 3, " 6|");
	for (int i = 0; i < 1000; i++)
		str_printf(&s, "%03d", i);
	assert_int_equal(s.n, 224 + 3000);
	assert_string_equal(s.at + s.n - 6, "998999");
}

static void test_build(void **state)
{
	(void)state;
	unit_each_alloc_fails(builds, NULL);
}

static void writes_json(arena *a, void *arg)
{
	str s = str_new(a);

	(void)arg;
	str_json(&s, "a\"b\\c\n\t\r\b\f\x01\x1f\x7f\xc3\xa4/");
	assert_string_equal(s.at, "\"a\\\"b\\\\c\\n\\t\\r\\b\\f\\u0001\\u001f"
				  "\\u007f\xc3\xa4/\"");
}

static void test_json(void **state)
{
	(void)state;
	unit_each_alloc_fails(writes_json, NULL);
}

static void writes_doubles(arena *a, void *arg)
{
	static const struct {
		double v;
		const char *text;
	} cases[] = {
		{0, "0"},
		{-0.0, "-0"},
		{1, "1"},
		{0.1, "0.1"},
		{-2.5, "-2.5"},
		{1.0 / 3, "0.3333333333333333"},
		{0.1 + 0.2, "0.30000000000000004"},
		{1e22, "1e+22"},
		{5e-324, "5e-324"},
		{1.7976931348623157e308, "1.7976931348623157e+308"},
		{INFINITY, "inf"},
		{-INFINITY, "-inf"},
		{NAN, "nan"},
	};
	uint64_t u = 12345;

	(void)arg;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		str s = str_new(a);

		str_double(&s, cases[i].v);
		assert_string_equal(s.at, cases[i].text);
	}
	for (int i = 0; i < 2000; i++) {
		str s = str_new(a);
		double v, back;
		char *end;

		u = u * 6364136223846793005u + 1442695040888963407u;
		memcpy(&v, &u, sizeof v);
		str_double(&s, v);
		if (isnan(v) || isinf(v))
			continue;
		back = text_f64(s.at, &end);
		assert_ptr_equal(end, s.at + s.n);
		assert_memory_equal(&back, &v, sizeof v);
	}
}

static void test_double(void **state)
{
	(void)state;
	assert_int_equal(unit_run(writes_doubles, NULL, 0, NULL), TN_OK);
}

/* A program that speaks German, where 0.1 is 0,1, gets the same text. */
static void test_locale(void **state)
{
	(void)state;
	if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL)
		unit_skip("the locale de_DE.UTF-8 is not installed");
	assert_string_equal(localeconv()->decimal_point, ",");
	assert_int_equal(unit_run(writes_doubles, NULL, 0, NULL), TN_OK);
	setlocale(LC_NUMERIC, "C");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_build),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_double),
		cmocka_unit_test(test_locale),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
