/* map.c: finds what was put in, in the order in which it came. */
#include "unit.h"

#include <stdio.h>

enum { N = 1000 };

static void fills(arena *a, void *arg)
{
	map *m = map_new(a);
	char key[32];
	size_t n;

	(void)arg;
	assert_int_equal(map_n(m), 0);
	assert_int_equal(map_get_str(m, "k", -7), -7);
	for (int32_t i = 0; i < N; i++) {
		snprintf(key, sizeof key, "k%d", i * 7919 % N);
		map_set_str(m, key, i);
	}
	assert_int_equal(map_n(m), N);
	for (int32_t i = 0; i < N; i += 2) { /* replacing moves nothing */
		snprintf(key, sizeof key, "k%d", i * 7919 % N);
		map_set_str(m, key, -i);
	}
	assert_int_equal(map_n(m), N);
	for (int32_t i = 0; i < N; i++) {
		const char *k = map_key(m, i, &n);

		snprintf(key, sizeof key, "k%d", i * 7919 % N);
		assert_int_equal(n, strlen(key));
		assert_memory_equal(k, key, n);
		assert_int_equal(map_value(m, i), i % 2 == 0 ? -i : i);
		assert_int_equal(map_get_str(m, key, 9), map_value(m, i));
		snprintf(key, sizeof key, "m%d", i);
		assert_int_equal(map_get_str(m, key, -1), -1);
	}
}

static void test_many(void **state)
{
	(void)state;
	unit_each_alloc_fails(fills, NULL);
}

/* Keys that differ in length, in a zero byte, in one byte anywhere. */
static void fills_bytes(arena *a, void *arg)
{
	map *m = map_new(a);
	char key[40] = {0};

	(void)arg;
	for (size_t n = 0; n <= 40; n++)
		map_set(m, key, n, (int64_t)n);
	for (size_t i = 0; i < 40; i++) {
		key[i] = 1;
		map_set(m, key, 40, 100 + (int64_t)i);
		key[i] = 0;
	}
	assert_int_equal(map_n(m), 81);
	for (size_t n = 0; n <= 40; n++)
		assert_int_equal(map_get(m, key, n, -1), n);
	assert_int_equal(map_get(m, NULL, 0, -1), 0);
	key[17] = 1;
	assert_int_equal(map_get(m, key, 40, -1), 117);
}

static void test_bytes(void **state)
{
	(void)state;
	unit_each_alloc_fails(fills_bytes, NULL);
}

/* One flipped bit of key or seed flips about half of the 64. */
static void test_hash(void **state)
{
	unsigned char key[24] = "some twenty-four bytes!";
	uint64_t h = hash_bytes(key, 24, 0);

	(void)state;
	assert_int_equal(h, hash_bytes(key, 24, 0));
	for (size_t bit = 0; bit < 24 * 8; bit++) {
		int n;

		key[bit / 8] ^= (unsigned char)(1u << bit % 8);
		n = __builtin_popcountll(h ^ hash_bytes(key, 24, 0));
		assert_in_range(n, 12, 52);
		key[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	assert_in_range(
		__builtin_popcountll(h ^ hash_bytes(key, 24, 1)), 12, 52);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
