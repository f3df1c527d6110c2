/* Parts of a long run: together they are the whole, each number once. */
#include "part.h"
#include "unit.h"

static void test_parts_are_the_whole(void **state)
{
	enum { NUMBERS = 2048 };

	(void)state;
	for (int64_t parts = 1; parts <= 9; parts++)
		for (int64_t k = 0; k < NUMBERS; k++) {
			int32_t n = 0;

			for (int64_t part = 0; part < parts; part++)
				n += part_has(parts, part, k);
			assert_int_equal(n, 1);
			assert_true(part_has(parts, -1, k));
		}
}

static void test_the_environment_says_which(void **state)
{
	(void)state;
	assert_int_equal(unsetenv("TN_PART"), 0);
	assert_int_equal(part_now(8), -1);
	assert_int_equal(setenv("TN_PART", "", 1), 0);
	assert_int_equal(part_now(8), -1);
	for (int64_t k = 0; k < 24; k++) {
		char text[32];

		snprintf(text, sizeof text, "%d", (int)k);
		assert_int_equal(setenv("TN_PART", text, 1), 0);
		assert_int_equal(part_now(8), k % 8);
		assert_int_equal(part_now(1), 0);
	}
	assert_int_equal(unsetenv("TN_PART"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts_are_the_whole),
		cmocka_unit_test(test_the_environment_says_which)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
