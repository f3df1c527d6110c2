/* dtype.c: every half exactly, roundings against plain arithmetic, wraps. */
#include "unit.h"

#include <math.h>

static void test_names(void **state)
{
	static const struct {
		tn_dtype t, acc;
		const char *name;
		size_t size;
		bool is_float, is_int;
	} cases[] = {
		{TN_F32, TN_F32, "f32", 4, true, false},
		{TN_F64, TN_F64, "f64", 8, true, false},
		{TN_F16, TN_F32, "f16", 2, true, false},
		{TN_BF16, TN_F32, "bf16", 2, true, false},
		{TN_I8, TN_I64, "i8", 1, false, true},
		{TN_I16, TN_I64, "i16", 2, false, true},
		{TN_I32, TN_I64, "i32", 4, false, true},
		{TN_I64, TN_I64, "i64", 8, false, true},
		{TN_U8, TN_I64, "u8", 1, false, true},
		{TN_BOOL, TN_BOOL, "bool", 1, false, false},
		{TN_U16, TN_I64, "u16", 2, false, true},
		{TN_U32, TN_I64, "u32", 4, false, true},
		{TN_U64, TN_U64, "u64", 8, false, true},
		{TN_F8E4M3FN, TN_F32, "f8e4m3fn", 1, true, false},
		{TN_F8E4M3FNUZ, TN_F32, "f8e4m3fnuz", 1, true, false},
		{TN_F8E5M2, TN_F32, "f8e5m2", 1, true, false},
		{TN_F8E5M2FNUZ, TN_F32, "f8e5m2fnuz", 1, true, false},
		{TN_F8E8M0, TN_F32, "f8e8m0", 1, true, false},
		{TN_F4E2M1, TN_F32, "f4e2m1", 1, true, false},
		{TN_I4, TN_I64, "i4", 1, false, true},
		{TN_U4, TN_I64, "u4", 1, false, true},
		{TN_I2, TN_I64, "i2", 1, false, true},
		{TN_U2, TN_I64, "u2", 1, false, true},
	};
	tn_dtype t;

	(void)state;
	assert_int_equal(sizeof cases / sizeof *cases, TN_N_DTYPES);
	for (size_t i = 0; i < TN_N_DTYPES; i++) {
		const char *name = cases[i].name;

		assert_string_equal(dtype_name(cases[i].t), name);
		assert_int_equal(dtype_size(cases[i].t), cases[i].size);
		assert_int_equal(dtype_is_float(cases[i].t), cases[i].is_float);
		assert_int_equal(dtype_is_int(cases[i].t), cases[i].is_int);
		assert_int_equal(dtype_acc(cases[i].t), cases[i].acc);
		assert_true(dtype_parse(name, strlen(name), &t));
		assert_int_equal(t, cases[i].t);
		assert_false(dtype_parse(name, strlen(name) - 1, &t));
	}
	assert_false(dtype_parse("f128", 4, &t));
}

/* Value of a half from its definition; e_bits exponent bits. */
static double half_value(uint16_t h, int e_bits)
{
	int m_bits = 15 - e_bits, bias = (1 << (e_bits - 1)) - 1;
	int e = h >> m_bits & ((1 << e_bits) - 1), m = h & ((1 << m_bits) - 1);
	double v;

	if (e == (1 << e_bits) - 1)
		v = m != 0 ? NAN : INFINITY;
	else if (e == 0)
		v = ldexp(m, 1 - bias - m_bits);
	else
		v = ldexp(m + (1 << m_bits), e - bias - m_bits);
	return h & 0x8000 ? -v : v;
}

static uint16_t to_half(tn_dtype t, double v)
{
	uint16_t h;

	dtype_store_f64(t, &h, 0, v);
	return h;
}

/* All 65,536 values, and the doubles around each midpoint of neighbours. */
static void check_half(tn_dtype t, int e_bits, float (*load)(uint16_t),
	uint16_t (*store)(float))
{
	for (uint32_t u = 0; u < 0x10000; u++) {
		uint16_t h = (uint16_t)u, even = h & 1 ? h + 1 : h;
		double v = half_value(h, e_bits), next, mid;

		if (isnan(v)) {
			assert_true(isnan(load(h)));
			assert_true(isnan(load(store(load(h)))));
			assert_true(isnan(load(to_half(t, v))));
			continue;
		}
		assert_true((double)load(h) == v);
		assert_true(!signbit(load(h)) == !signbit(v));
		assert_int_equal(store(load(h)), h);
		assert_int_equal(to_half(t, v), h);
		if (isinf(v))
			continue;
		next = half_value((uint16_t)(h + 1), e_bits);
		if (isinf(next)) /* where the next would be, had it room */
			next = v + (v - half_value((uint16_t)(h - 1), e_bits));
		mid = v + (next - v) / 2;
		assert_int_equal(to_half(t, mid), even);
		assert_int_equal(to_half(t, nextafter(mid, v)), h);
		assert_int_equal(to_half(t, nextafter(mid, next)), h + 1);
		if ((double)(float)mid == mid) {
			assert_int_equal(store((float)mid), even);
			assert_int_equal(
				store(nextafterf((float)mid, (float)v)), h);
			assert_int_equal(
				store(nextafterf((float)mid, (float)next)),
				h + 1);
		}
	}
	assert_true(isinf(load(to_half(t, 1e300))));
	assert_int_equal(to_half(t, -1e-300), 0x8000);
}

static void test_halves(void **state)
{
	(void)state;
	check_half(TN_F16, 5, f16_to_f32, f32_to_f16);
	check_half(TN_BF16, 8, bf16_to_f32, f32_to_bf16);
}

static const struct {
	tn_dtype t;
	double v, f64;
	int64_t i64;
} converted[] = {
	{TN_F32, 0.1, 0.1f, 0},
	{TN_F32, -2.9, -2.9f, -2},
	{TN_F64, -0.1, -0.1, 0},
	{TN_F64, 1e300, 1e300, INT64_MAX},
	{TN_F64, -1e300, -1e300, INT64_MIN},
	{TN_F64, INFINITY, INFINITY, INT64_MAX},
	{TN_F16, 2.9, 2.900390625, 2},
	{TN_BF16, -7.0, -7.0, -7},
	{TN_I8, 127.9, 127, 127},
	{TN_I8, 128, -128, -128},
	{TN_I8, 300.7, 44, 44},
	{TN_I8, -129, 127, 127},
	{TN_I16, 40000, -25536, -25536},
	{TN_I32, 4294967297.0, 1, 1},
	{TN_I64, 1e19, 9223372036854775807.0, INT64_MAX},
	{TN_I64, -1e19, -9223372036854775808.0, INT64_MIN},
	{TN_I64, NAN, 0, 0},
	{TN_I8, NAN, 0, 0},
	{TN_U8, 255.5, 255, 255},
	{TN_U8, -1, 255, 255},
	{TN_U8, 256, 0, 0},
	{TN_U16, 65536.5, 0, 0},
	{TN_U16, -2, 65534, 65534},
	{TN_U32, 4294967295.0, 4294967295.0, 4294967295},
	{TN_U32, -1, 4294967295.0, 4294967295},
	{TN_U64, 0x1p63, 0x1p63, INT64_MIN},
	{TN_U64, -1, 0x1p64, -1},
	{TN_U64, 1e30, 0x1p64, -1},
	{TN_U64, NAN, 0, 0},
	{TN_F8E4M3FN, 1000, 448, 448},
	{TN_F8E4M3FN, -INFINITY, -448, -448},
	{TN_F8E4M3FN, 464, 448, 448},
	{TN_F8E4M3FNUZ, 1e-9, 0, 0},
	{TN_F8E5M2, 61440, 57344, 57344},
	{TN_F8E5M2, 0x1p-17, 0, 0},
	{TN_F8E5M2, 0x1.01p-17, 0x1p-16, 0},
	{TN_F8E8M0, 1.5, 2, 2},
	{TN_F8E8M0, 0, 0x1p-127, 0},
	{TN_F8E8M0, -0x1.00001p-140, 0x1p-127, 0},
	{TN_F8E8M0, INFINITY, 0x1p127, INT64_MAX},
	{TN_F4E2M1, 2.5, 2, 2},
	{TN_F4E2M1, -5, -4, -4},
	{TN_F4E2M1, -100, -6, -6},
	{TN_I4, 8, -8, -8},
	{TN_U4, -1, 15, 15},
	{TN_I2, 2, -2, -2},
	{TN_U2, 7.9, 3, 3},
	{TN_BOOL, 0.5, 1, 1},
	{TN_BOOL, -0.0, 0, 0},
	{TN_BOOL, NAN, 1, 1},
};

static void test_convert(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof converted / sizeof *converted; i++) {
		/* element 3 of unaligned data, with its neighbours watched */
		unsigned char data[1 + 8 * 8];
		size_t size = dtype_size(converted[i].t);

		memset(data, 0xa5, sizeof data);
		dtype_store_f64(converted[i].t, data + 1, 3, converted[i].v);
		assert_true(dtype_load_f64(converted[i].t, data + 1, 3) ==
			    converted[i].f64);
		assert_int_equal(
			dtype_load_i64(converted[i].t, data + 1, 3), converted[i].i64);
		for (size_t j = 0; j < sizeof data; j++)
			if (j < 1 + 3 * size || j >= 1 + 4 * size)
				assert_int_equal(data[j], 0xa5);
	}
}

static void test_integers(void **state)
{
	static const struct {
		tn_dtype t;
		int64_t v, i64;
	} stored[] = {
		{TN_I64, INT64_MIN, INT64_MIN},
		{TN_I64, (INT64_C(1) << 53) + 1, (INT64_C(1) << 53) + 1},
		{TN_I32, INT64_C(1) << 32 | 5, 5},
		{TN_I8, -1, -1},
		{TN_U8, -1, 255},
		{TN_U16, -1, 65535},
		{TN_U32, -1, 4294967295},
		{TN_U64, -1, -1},
		{TN_BOOL, 256, 1},
		{TN_F32, 16777217, 16777216},
		{TN_F64, (INT64_C(1) << 53) + 1, INT64_C(1) << 53},
		{TN_F16, 2049, 2048},
		{TN_BF16, 257, 256},
	};
	static const int64_t gcds[][3] = {
		{12, 18, 6},
		{0, 5, 5},
		{-4, 6, 2},
		{0, 0, 0},
		{INT64_MIN, 48, 16},
		{INT64_MIN, -1, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof stored / sizeof *stored; i++) {
		int64_t data[2];

		dtype_store_i64(stored[i].t, data, 1, stored[i].v);
		assert_int_equal(
			dtype_load_i64(stored[i].t, data, 1), stored[i].i64);
	}
	for (size_t i = 0; i < sizeof gcds / sizeof *gcds; i++)
		assert_int_equal(gcd_i64(gcds[i][0], gcds[i][1]), gcds[i][2]);
	for (int64_t a = -13; a <= 13; a++)
		for (int64_t m = 1; m <= 5; m++) {
			assert_int_equal(
				floor_div(a, m) * m + floor_mod(a, m), a);
			assert_in_range(floor_mod(a, m), 0, m - 1);
		}
}

static void test_numel(void **state)
{
	static const struct {
		int32_t rank;
		int64_t shape[3], numel;
	} cases[] = {
		{0, {0}, 1},
		{3, {2, 3, 4}, 24},
		{3, {2, 0, 4}, 0},
		{1, {INT64_C(1) << 48}, INT64_C(1) << 48},
		{2, {INT64_C(1) << 48, 2}, -1},
		{3, {INT64_C(1) << 40, 0, INT64_C(1) << 40}, -1},
		{2, {INT64_MAX, INT64_MAX}, -1},
		{2, {2, -1}, -1},
		{2, {0, -1}, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(shape_numel(cases[i].shape, cases[i].rank),
			cases[i].numel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_halves),
		cmocka_unit_test(test_convert),
		cmocka_unit_test(test_integers),
		cmocka_unit_test(test_numel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
