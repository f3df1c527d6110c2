/*
 * test_casts.c: casts between all pairs of types, of all bit patterns of 8 and
 * 16 bits and of chosen ones of more, compiled and as the interpreter does it,
 * against a reference that knows the types by their definition only: the value
 * of a pattern is summed from its bits, and a value is rounded by searching all
 * patterns of the type for the nearest.
 */
#include "unit.h"

#include "notation/notation.h"
#include "tenon.h"

#include <math.h>

/* ---- types by their definition ---- */

typedef enum meaning { SIGNED, UNSIGNED, TRUTH, BINARY, WIDE, POWER } meaning;

/* What the patterns behind the greatest number are, and that of -0. */
typedef enum special {
	INFINITE,   /* as IEEE 754 has it */
	SATURATED,  /* the same, but nothing is rounded to infinity */
	ONE_NAN,    /* all ones */
	MINUS_ZERO, /* NaN in the place of -0 */
	NO_NAN
} special;

static const struct kind {
	tn_dtype t;
	meaning m;
	int bits, exponent; /* exponent bits of a float */
	int shift;	    /* how far its bias is from the usual one */
	special s;
} kinds[TN_N_DTYPES] = {
	{TN_F32, WIDE, 32, 8, 0, INFINITE},
	{TN_F64, WIDE, 64, 11, 0, INFINITE},
	{TN_F16, BINARY, 16, 5, 0, INFINITE},
	{TN_BF16, BINARY, 16, 8, 0, INFINITE},
	{TN_I8, SIGNED, 8, 0, 0, INFINITE},
	{TN_I16, SIGNED, 16, 0, 0, INFINITE},
	{TN_I32, SIGNED, 32, 0, 0, INFINITE},
	{TN_I64, SIGNED, 64, 0, 0, INFINITE},
	{TN_U8, UNSIGNED, 8, 0, 0, INFINITE},
	{TN_BOOL, TRUTH, 1, 0, 0, INFINITE},
	{TN_U16, UNSIGNED, 16, 0, 0, INFINITE},
	{TN_U32, UNSIGNED, 32, 0, 0, INFINITE},
	{TN_U64, UNSIGNED, 64, 0, 0, INFINITE},
	{TN_F8E4M3FN, BINARY, 8, 4, 0, ONE_NAN},
	{TN_F8E4M3FNUZ, BINARY, 8, 4, 1, MINUS_ZERO},
	{TN_F8E5M2, BINARY, 8, 5, 0, SATURATED},
	{TN_F8E5M2FNUZ, BINARY, 8, 5, 1, MINUS_ZERO},
	{TN_F8E8M0, POWER, 8, 8, 0, INFINITE},
	{TN_F4E2M1, BINARY, 4, 2, 0, NO_NAN},
	{TN_I4, SIGNED, 4, 0, 0, INFINITE},
	{TN_U4, UNSIGNED, 4, 0, 0, INFINITE},
	{TN_I2, SIGNED, 2, 0, 0, INFINITE},
	{TN_U2, UNSIGNED, 2, 0, 0, INFINITE},
};

/* Exact: 113 or 64 bits of significand hold every integer and double. */
typedef long double number;

static number value_of(const struct kind *k, uint64_t bits)
{
	int m_bits = k->bits - 1 - k->exponent;
	int bias = (1 << (k->exponent > 0 ? k->exponent - 1 : 0)) - 1 + k->shift;
	int e;
	uint64_t m;
	number v;

	if (k->m == SIGNED)
		return (number)bits -
		       (bits >> (k->bits - 1) & 1 ? ldexpl(1, k->bits) : 0);
	if (k->m == UNSIGNED || k->m == TRUTH)
		return (number)bits;
	if (k->m == POWER)
		return bits == 255 ? (number)NAN : ldexpl(1, (int)bits - 127);
	e = (int)(bits >> m_bits & ((1u << k->exponent) - 1));
	m = bits & ((UINT64_C(1) << m_bits) - 1);
	if (k->s == MINUS_ZERO && bits == UINT64_C(1) << (k->bits - 1))
		return (number)NAN;
	if (k->s == ONE_NAN && bits << (65 - k->bits) == UINT64_MAX << (65 - k->bits))
		return (number)NAN;
	if (e == (1 << k->exponent) - 1 && k->s <= SATURATED)
		v = m != 0 ? (number)NAN : (number)INFINITY;
	else if (e == 0)
		v = ldexpl((number)m, 1 - bias - m_bits);
	else
		v = ldexpl((number)m + ldexpl(1, m_bits), e - bias - m_bits);
	return bits >> (k->bits - 1) & 1 ? -v : v;
}

/* The magnitude's pattern, by halving the interval: patterns grow with values. */
static uint64_t nearest(const struct kind *k, number v)
{
	int m_bits = k->bits - 1 - k->exponent;
	uint64_t lo = 0, hi = (((UINT64_C(1) << k->exponent) - 1) << m_bits) - 1;
	number top, next;

	if (k->s > SATURATED) /* all patterns, or all but one, are numbers */
		hi = (UINT64_C(1) << (k->bits - 1)) - 1 - (k->s == ONE_NAN);
	if (isnan(v))
		return k->s == MINUS_ZERO ? UINT64_C(1) << (k->bits - 1)
		       : k->s == NO_NAN	  ? UINT64_C(1) << (k->bits - 1)
		       : k->s == ONE_NAN  ? hi + 1
					  : hi + 2;
	if (v >= value_of(k, hi) && k->s != INFINITE)
		return hi;
	top = value_of(k, hi);
	next = top + (top - value_of(k, hi - 1)); /* as if there were one more */
	if (v >= next - (next - top) / 2)
		return hi + 1; /* infinity */
	while (hi - lo > 1) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (value_of(k, mid) <= v)
			lo = mid;
		else
			hi = mid;
	}
	if (value_of(k, hi) - v == v - value_of(k, lo))
		return lo & 1 ? hi : lo;
	return value_of(k, hi) - v < v - value_of(k, lo) ? hi : lo;
}

/* Of powers of two: the least one that is not below. */
static uint64_t power(number v)
{
	int bits;

	if (isnan(v))
		return 255;
	if (isinf(v) || v <= 0x1p-127L)
		return isinf(v) ? 254 : 0;
	bits = ilogbl(v) + 127;
	while (bits < 254 && ldexpl(1, bits - 127) < v)
		bits++;
	return (uint64_t)bits;
}

/* The whole part, modulo 2^bits. */
static uint64_t wrapped(const struct kind *k, number v)
{
	uint64_t bits;

	if (isnan(v))
		return 0;
	v = truncl(v);
	if (k->t == TN_U64 && v >= 0x1p64L)
		bits = UINT64_MAX;
	else if (k->t == TN_U64 && v >= 0)
		bits = (uint64_t)v;
	else if (v >= 0x1p63L)
		bits = INT64_MAX;
	else
		bits = v <= -0x1p63L ? (uint64_t)INT64_MIN
				     : (uint64_t)(int64_t)v;
	return k->bits == 64 ? bits : bits & ((UINT64_C(1) << k->bits) - 1);
}

static uint64_t load(tn_dtype t, const void *data, int64_t i)
{
	uint64_t bits = 0;
	size_t n = dtype_size(t);

	memcpy(&bits, (const char *)data + (size_t)i * n, n);
	if (dtype_bits(t) < 8) /* the sign is repeated in the byte */
		bits &= (UINT64_C(1) << dtype_bits(t)) - 1;
	return bits;
}

/* An integer that comes from an integer wraps; there are no ends. */
static uint64_t expected(const struct kind *to, const struct kind *from,
	uint64_t bits)
{
	number v = value_of(from, bits);
	bool minus = signbit(v) != 0;
	float f = (float)v;
	double d = (double)v;

	if (to->m == TRUTH)
		return !(v == 0);
	if ((to->m == SIGNED || to->m == UNSIGNED) &&
		(from->m == SIGNED || from->m == UNSIGNED)) {
		uint64_t w = from->m == SIGNED ? (uint64_t)(int64_t)v
					       : bits;

		return to->bits == 64 ? w : w & ((UINT64_C(1) << to->bits) - 1);
	}
	if (to->m == SIGNED || to->m == UNSIGNED)
		return wrapped(to, v);
	if (to->t == TN_F32)
		return load(TN_F32, &f, 0);
	if (to->t == TN_F64)
		return load(TN_F64, &d, 0);
	if (to->bits <= 8) /* by way of f32 */
		v = (number)f;
	if (to->m == POWER)
		return power(fabsl(v));
	if (isnan(v) || (to->s == MINUS_ZERO && nearest(to, fabsl(v)) == 0))
		return nearest(to, fabsl(v));
	return nearest(to, fabsl(v)) |
	       (minus ? UINT64_C(1) << (to->bits - 1) : 0);
}

static bool same(const struct kind *k, uint64_t x, uint64_t y)
{
	return x == y || ((k->m == BINARY || k->m == WIDE) && k->s != NO_NAN &&
				 isnan(value_of(k, x)) && isnan(value_of(k, y)));
}

/* ---- the library ---- */

static const uint64_t wide[] = {0, 1, 2, 127, 128, 255, 256, 32767, 32768, 65535,
	65536, 0x7fffff, 0x800000, 0x1000001, 0x7fffffff, 0x80000000, 0xffffffff,
	0x100000000, 0x1ffffffffffff, 0x20000000000001, 0x7fffffffffffffff,
	0x8000000000000000, 0x8000000000000401, 0xc000000000000000,
	0xfffffffffffff000, 0xffffffffffffffff, 0x3f800000, 0x5f000000,
	0x5f800000, 0xdf000001, 0x7f800000, 0xff800000, 0x7fc00000, 0x477fefff,
	0x477ff000, 0x33000000, 0x33000001, 0x4effffff, 0xbf000000, 0x43700000,
	0x3ff0000000000000, 0x43e0000000000000, 0x43f0000000000000,
	0x43efffffffffffff, 0xc3e0000000000001, 0x7ff0000000000000,
	0xfff0000000000000, 0x7ff8000000000000, 0x40effe0000000000,
	0x3e70000000000001, 0x406fe00000000000};

/* Patterns of 32 and 64 bits: the list, then any. */
static int64_t fill(const struct kind *k, void *data)
{
	int64_t n = k->bits <= 16 ? INT64_C(1) << k->bits : 4096;
	size_t size = dtype_size(k->t);
	uint64_t r = 1;

	for (int64_t i = 0; i < n; i++) {
		uint64_t bits = (uint64_t)i;

		r = r * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		if (k->bits > 16)
			bits = (size_t)i < sizeof wide / sizeof wide[0] ? wide[i]
				: r ^ r >> 29;
		memcpy((char *)data + (size_t)i * size, &bits, size);
	}
	return n;
}

static uint64_t wanted[TN_N_DTYPES][1 << 16];

/* Of element i, whose bits are in. */
static void check(const struct kind *to, const struct kind *from, int64_t i,
	uint64_t in, uint64_t out, const char *who)
{
	uint64_t want = wanted[to->t][i];

	if (!same(to, want, out))
		fail_msg("%s: %s of 0x%llx (%Lg) to %s: 0x%llx, expected 0x%llx",
			who, dtype_name(from->t), (unsigned long long)in,
			value_of(from, in), dtype_name(to->t),
			(unsigned long long)out, (unsigned long long)want);
}

static void check_interpreter(const struct kind *from, const void *data,
	int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		ir_number v = {0};

		if (dtype_is_float(from->t))
			v.f = dtype_load_f64(from->t, data, i);
		else
			v.i = dtype_load_i64(from->t, data, i);
		for (int32_t k = 0; k < TN_N_DTYPES; k++) {
			tn_dtype t = kinds[k].t;
			ir_number w = ir_cast(t, from->t, v);
			uint64_t cell = 0;

			if (dtype_is_float(t))
				dtype_store_f64(t, &cell, 0, w.f);
			else
				dtype_store_i64(t, &cell, 0, w.i);
			check(&kinds[k], from, i, load(from->t, data, i),
				load(t, &cell, 0), "the interpreter");
		}
	}
}

static void check_compiled(tn_context *c, const struct kind *from,
	const void *data, int64_t n)
{
	static uint64_t room[TN_N_DTYPES][1 << 16];
	const void *in[1] = {data};
	void *out[TN_N_DTYPES];
	char text[4000];
	size_t at = 0;
	tn_program *p;

	at += (size_t)snprintf(text, sizeof text, "program {\n  x: %s[%lld]\n",
		dtype_name(from->t), (long long)n);
	for (int32_t k = 0; k < TN_N_DTYPES; k++)
		at += (size_t)snprintf(text + at, sizeof text - at,
			"  y%d = cast(x, to=%s)\n", k, dtype_name(kinds[k].t));
	at += (size_t)snprintf(text + at, sizeof text - at, "  return y0");
	for (int32_t k = 1; k < TN_N_DTYPES; k++)
		at += (size_t)snprintf(text + at, sizeof text - at, ", y%d", k);
	snprintf(text + at, sizeof text - at, "\n}\n");
	for (int32_t k = 0; k < TN_N_DTYPES; k++)
		out[k] = room[k];
	if (tn_program_parse(&p, c, text, strlen(text), "casts") != TN_OK ||
		tn_program_run(p, in, out) != TN_OK)
		fail_msg("%s", tn_context_diag(c)->text);
	for (int64_t i = 0; i < n; i++)
		for (int32_t k = 0; k < TN_N_DTYPES; k++)
			check(&kinds[k], from, i, load(from->t, data, i),
				load(kinds[k].t, out[k], i), "compiled");
	tn_program_free(p);
}

static void test_casts(void **state)
{
	static uint64_t data[1 << 16];
	tn_context *c;

	(void)state;
	assert_int_equal(tn_context_new(&c, NULL), TN_OK);
	for (int32_t k = 0; k < TN_N_DTYPES; k++) {
		int64_t n = fill(&kinds[k], data);

		assert_int_equal(kinds[k].t, k);
		for (int32_t to = 0; to < TN_N_DTYPES; to++)
			for (int64_t i = 0; i < n; i++)
				wanted[to][i] = expected(&kinds[to], &kinds[k],
					load(kinds[k].t, data, i));
		check_interpreter(&kinds[k], data, n);
		check_compiled(c, &kinds[k], data, n);
	}
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_casts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
