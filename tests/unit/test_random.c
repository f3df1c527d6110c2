/*
 * base_u01: values that must never change, and statistics of the sequences
 * that are used: counters of one key, one counter of many keys, strides.
 * Thresholds are 5 sigma; the draws are fixed, so nothing here is by chance.
 */
#include "unit.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>

#define N (1 << 18)

typedef float draw(int64_t i, int64_t j); /* j-th sequence */

static float by_counter(int64_t i, int64_t j)
{
	return base_u01(j, i);
}

static float by_key(int64_t i, int64_t j)
{
	return base_u01(i, j);
}

static float by_even_counter(int64_t i, int64_t j)
{
	return base_u01(j, 2 * i);
}

static float by_power(int64_t i, int64_t j)
{
	return base_u01(j, i << 20);
}

static float by_minus(int64_t i, int64_t j)
{
	return base_u01(-j, -i);
}

static float by_both(int64_t i, int64_t j)
{
	return base_u01(i, i + j);
}

static draw *const draws[] = {
	by_counter, by_key, by_even_counter, by_power, by_minus, by_both};
#define N_DRAWS 6

static void test_values(void **state)
{
	static const struct {
		int64_t key, counter;
		float v;
	} cases[] = {
		{0, 0, 0x1.2086080000000p-2f},
		{0, 1, 0x1.4e0dba0000000p-1f},
		{1, 0, 0x1.b9c8460000000p-1f},
		{42, 7, 0x1.9014780000000p-3f},
		{-1, -1, 0x1.6ff0d00000000p-3f},
		{INT64_MIN, INT64_MAX, 0x1.f8b8e00000000p-4f},
		{123456789, INT64_C(1) << 40, 0x1.75a4420000000p-1f},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_true(
			base_u01(cases[i].key, cases[i].counter) == cases[i].v);
}

/* chi-square of n_bins equal bins, in sigmas from what is expected */
static double deviation(const int32_t *bin, int32_t n_bins, double n)
{
	double want = n / n_bins, x = 0;
	int32_t i;

	for (i = 0; i < n_bins; i++)
		x += (bin[i] - want) * (bin[i] - want) / want;
	return (x - (n_bins - 1)) / sqrt(2.0 * (n_bins - 1));
}

static void test_uniform(void **state)
{
	static const int32_t shift[] = {0, 8, 16}; /* high, middle, low bits */
	int32_t d, s, j, i;

	(void)state;
	for (d = 0; d < N_DRAWS; d++)
		for (j = 0; j < 4; j++)
			for (s = 0; s < 3; s++) {
				int32_t bin[256] = {0};

				for (i = 0; i < N; i++) {
					float v = draws[d](i, j);
					uint32_t b = (uint32_t)(v * 0x1p24f);

					assert_true(v >= 0 && v < 1);
					bin[(b << shift[s] >> 16) & 255]++;
				}
				assert_true(fabs(deviation(bin, 256, N)) < 5);
			}
}

/* pairs (v[i], v[i + lag]) fill the square evenly */
static void test_pairs(void **state)
{
	static const int32_t lags[] = {1, 2, 3, 16, 64, 1024};
	int32_t d, l, i;

	(void)state;
	for (d = 0; d < N_DRAWS; d++)
		for (l = 0; l < 6; l++) {
			int32_t bin[1024] = {0};

			for (i = 0; i < N; i++) {
				int a = (int)(draws[d](i, 7) * 32);
				int b = (int)(draws[d](i + lags[l], 7) * 32);

				bin[a * 32 + b]++;
			}
			assert_true(fabs(deviation(bin, 1024, N)) < 5);
		}
}

/* two keys, as near each other as can be, say nothing about each other */
static void test_keys(void **state)
{
	static const int64_t keys[][2] = {{0, 1}, {1, 2}, {0, -1}, {5, 1029},
		{0, INT64_MIN}, {1 << 30, INT64_C(1) << 62}};
	int32_t k, i;

	(void)state;
	for (k = 0; k < 6; k++) {
		double sum = 0;
		int32_t bin[1024] = {0}, equal = 0;

		for (i = 0; i < N; i++) {
			float a = base_u01(keys[k][0], i);
			float b = base_u01(keys[k][1], i);

			sum += ((double)a - 0.5) * ((double)b - 0.5);
			bin[(int)(a * 32) * 32 + (int)(b * 32)]++;
			equal += a == b;
		}
		assert_true(fabs(sum * 12 / sqrt(N)) < 5);
		assert_true(fabs(deviation(bin, 1024, N)) < 5);
		assert_true(equal < 3); /* 1/64 expected */
	}
}

/* one bit of the counter or of the key turned: half of the result turns */
static void test_avalanche(void **state)
{
	int32_t bit, i, n = 4096;

	(void)state;
	for (bit = 0; bit < 128; bit++) {
		int64_t turned = 0;

		for (i = 0; i < n; i++) {
			int64_t key = 1234567 * (int64_t)i, counter = i;
			int64_t one = (int64_t)(UINT64_C(1) << bit % 64);
			uint32_t a, b;

			a = (uint32_t)(base_u01(key, counter) * 0x1p24f);
			if (bit < 64)
				key ^= one;
			else
				counter ^= one;
			b = (uint32_t)(base_u01(key, counter) * 0x1p24f);
			turned += __builtin_popcount(a ^ b);
		}
		/* 12 of 24 bits, each with variance 1/4 */
		assert_true(
			fabs((double)turned - 12.0 * n) < 5 * sqrt(6.0 * n));
	}
}

static int by_value(const void *p, const void *q)
{
	float a = *(const float *)p, b = *(const float *)q;

	return (a > b) - (a < b);
}

/* as many repetitions among 2^14 draws of 2^24 as chance would have */
static void test_repetitions(void **state)
{
	enum { n = 1 << 14 };
	static float v[n];
	int32_t d, j, i, equal = 0;

	(void)state;
	for (d = 0; d < N_DRAWS; d++)
		for (j = 0; j < 16; j++) {
			for (i = 0; i < n; i++)
				v[i] = draws[d](i, j);
			qsort(v, n, sizeof *v, by_value);
			for (i = 1; i < n; i++)
				equal += v[i] == v[i - 1];
		}
	/* 96 sets of n^2 / 2^25 = 8 */
	assert_true(fabs(equal - 96 * 8.0) < 5 * sqrt(96 * 8.0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_uniform),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_avalanche),
		cmocka_unit_test(test_repetitions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
