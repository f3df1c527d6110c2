/* What a backward keeps: by hand, and against all choices on small graphs. */
#include "unit.h"

#include "grad/cut.h"

enum { MOST = 9 };

static uint64_t next(uint64_t *s)
{
	*s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *s >> 33;
}

/* Cost of computing `again` anew; -1: it cannot be done so. */
static int64_t cost(int32_t n, const cut_value *v, uint32_t again,
	int64_t price, int64_t *bytes)
{
	uint32_t need = 0;
	int64_t sum = 0;

	*bytes = 0;
	for (int32_t i = n - 1; i >= 0; i--) {
		if (v[i].is_read)
			need |= 1u << i;
		if ((again >> i & 1) == 0)
			continue;
		if (v[i].is_fixed)
			return -1;
		sum += price * v[i].work;
		for (int32_t k = 0; k < v[i].n_sources; k++)
			need |= 1u << v[i].source[k];
	}
	for (int32_t i = 0; i < n; i++)
		if ((need >> i & 1) != 0 && (again >> i & 1) == 0 &&
			!v[i].is_there)
			*bytes += v[i].bytes;
	return (again & ~need) != 0 ? -1 : sum + *bytes;
}

static void draw(uint64_t *s, int32_t n, cut_value *v, int32_t (*from)[2])
{
	for (int32_t i = 0; i < n; i++) {
		v[i] = (cut_value){.bytes = (int64_t)(next(s) % 20),
			.work = (int64_t)(next(s) % 6),
			.is_there = next(s) % 6 == 0,
			.is_read = next(s) % 3 == 0,
			.source = from[i]};
		v[i].n_sources = i == 0 ? 0 : (int32_t)(next(s) % 3);
		/* without sources: an input */
		v[i].is_fixed = v[i].n_sources == 0 || next(s) % 8 == 0;
		for (int32_t k = 0; k < v[i].n_sources; k++)
			from[i][k] = (int32_t)(next(s) % (uint64_t)i);
	}
}

static uint32_t mask(int32_t n, const bool *b)
{
	uint32_t m = 0;

	for (int32_t i = 0; i < n; i++)
		m |= b[i] ? 1u << i : 0;
	return m;
}

static void against_all(arena *a, void *arg)
{
	uint64_t s = 7;

	(void)arg;
	for (int32_t round = 0; round < 3000; round++) {
		int32_t n = 1 + (int32_t)(next(&s) % MOST);
		cut_value v[MOST];
		int32_t from[MOST][2];
		int64_t price = (int64_t)(next(&s) % 4), best = -1;
		int64_t limit = (int64_t)(next(&s) % 40), bytes;
		int64_t least = INT64_MAX, mine;
		cut_options o = {.bytes_per_work = (double)price, .limit = -1};
		cut_result r;

		draw(&s, n, v, from);
		for (uint32_t m = 0; m < 1u << n; m++) {
			int64_t c = cost(n, v, m, price, &bytes);

			if (c >= 0 && (best < 0 || c < best))
				best = c;
			if (c >= 0 && bytes < least)
				least = bytes;
		}
		r = cut_choose(a, n, v, &o);
		mine = cost(n, v, mask(n, r.again), price, &bytes);
		assert_int_equal(mine, best);
		assert_int_equal(r.bytes, bytes);
		assert_true(r.fits);
		for (int32_t i = 0; i < n; i++)
			assert_false(r.keep[i] && (r.again[i] || v[i].is_there));
		o.limit = limit;
		r = cut_choose(a, n, v, &o);
		assert_true(cost(n, v, mask(n, r.again), price, &bytes) >= best);
		assert_int_equal(r.bytes, bytes);
		assert_int_equal(r.fits, least <= limit);
		assert_true(r.fits ? bytes <= limit : bytes == least);
	}
}

/* x (there) -> y = exp x -> z = sum of y over rows: read are y and z. */
static void by_hand(arena *a, void *arg)
{
	static const int32_t zero = 0, one = 1;
	cut_value v[] = {
		{.bytes = 400, .is_there = true, .is_fixed = true},
		{.bytes = 400, .work = 100, .is_read = true, .n_sources = 1,
			.source = &zero},
		{.bytes = 4, .work = 100, .is_read = true, .n_sources = 1,
			.source = &one},
	};
	cut_options cheap = {.bytes_per_work = 0.1, .limit = -1};
	cut_options dear = {.bytes_per_work = 10, .limit = -1};
	cut_options limited = {.bytes_per_work = 10, .limit = 100};
	cut_result r = cut_choose(a, 3, v, &cheap);

	(void)arg;
	/* exp again, but a sum is small: kept */
	assert_true(r.again[1] && r.keep[2] && !r.keep[1] && !r.again[2]);
	assert_int_equal(r.bytes, 4);
	assert_int_equal(r.work, 100);
	r = cut_choose(a, 3, v, &dear);
	assert_true(r.keep[1] && r.keep[2]);
	assert_int_equal(r.bytes, 404);
	r = cut_choose(a, 3, v, &limited);
	assert_true(r.fits && r.again[1] && r.bytes <= 100);
	v[1].is_fixed = true;
	r = cut_choose(a, 3, v, &limited);
	assert_false(r.fits);
	assert_int_equal(r.bytes, 400); /* z from y, which is kept anyway */
	r = cut_choose(a, 0, v, &dear);
	assert_int_equal(r.bytes, 0);
}

/* Ten equal layers, room for three and a half: three, and not side by side. */
static void equal_layers(arena *a, void *arg)
{
	enum { N = 11 };
	static const int32_t below[N] = {0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
	cut_value v[N] = {{.bytes = 8, .is_there = true, .is_fixed = true}};
	cut_options o = {.bytes_per_work = 10, .limit = 350};
	cut_result r;
	int32_t n = 0;

	(void)arg;
	for (int32_t i = 1; i < N; i++)
		v[i] = (cut_value){.bytes = 100,
			.work = 50,
			.is_read = true,
			.n_sources = 1,
			.source = &below[i]};
	r = cut_choose(a, N, v, &o);
	for (int32_t i = 1; i < N; i++) {
		n += r.keep[i];
		assert_false(r.keep[i] && r.keep[i - 1]);
	}
	assert_int_equal(n, 3);
	assert_int_equal(r.bytes, 300);
	assert_true(r.fits);
}

static void test_equal_layers(void **state)
{
	(void)state;
	assert_int_equal(unit_run(equal_layers, NULL, 0, NULL), TN_OK);
}

static void test_by_hand(void **state)
{
	(void)state;
	assert_int_equal(unit_run(by_hand, NULL, 0, NULL), TN_OK);
}

static void test_against_all(void **state)
{
	(void)state;
	assert_int_equal(unit_run(against_all, NULL, 0, NULL), TN_OK);
}

static void test_memory(void **state)
{
	(void)state;
	unit_each_alloc_fails(by_hand, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_equal_layers),
		cmocka_unit_test(test_against_all),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
