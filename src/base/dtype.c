/*
 * dtype.c: sizes, names and conversions of element types, and checked integer
 * arithmetic. dtype.def is the list of element types.
 *
 *     dtype_store_f64(TN_I8, data, 0, 300.7)    300.7 -> 300 -> wraps to 44
 *
 * Conversion to an integer truncates towards zero; NaN gives 0; values outside
 * of int64 become its nearest limit; then the value wraps to the type. Values
 * above the greatest u64 become that one in u64.
 * Conversion to bool gives x != 0, so NaN is true. A double is rounded to f16
 * or bf16 once, not through f32; to floats of a byte or less it is through f32,
 * as in generated code.
 */
#include "base/base.h"

#include <math.h>

static const struct {
	const char *name;
	uint8_t size, bits;
	char class;
	tn_dtype wide, acc;
} types[] = {
#define DTYPE(id, name, class, bits, wide, acc, ...)                           \
	[TN_##id] = {name, ((bits) + 7) / 8, bits, class, TN_##wide, TN_##acc},
#include "base/dtype.def"
#undef DTYPE
};
_Static_assert(sizeof types / sizeof types[0] == TN_N_DTYPES, "dtype.def");

size_t dtype_size(tn_dtype t)
{
	return types[t].size;
}

const char *dtype_name(tn_dtype t)
{
	return types[t].name;
}

bool dtype_parse(const char *s, size_t n, tn_dtype *out)
{
	for (int t = 0; t < TN_N_DTYPES; t++)
		if (strlen(types[t].name) == n &&
			memcmp(types[t].name, s, n) == 0) {
			*out = (tn_dtype)t;
			return true;
		}
	return false;
}

bool dtype_is_float(tn_dtype t)
{
	return types[t].class == 'f';
}

tn_dtype dtype_wide(tn_dtype t)
{
	return types[t].wide;
}

bool dtype_is_narrow(tn_dtype t)
{
	return types[t].wide != t;
}

int32_t dtype_bits(tn_dtype t)
{
	return types[t].bits;
}

bool dtype_is_int(tn_dtype t)
{
	return types[t].class == 'i' || types[t].class == 'u';
}

bool dtype_is_unsigned(tn_dtype t)
{
	return types[t].class == 'u';
}

tn_dtype dtype_acc(tn_dtype t)
{
	return types[t].acc;
}

/* ---- bits ---- */

static uint32_t bits_of(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof u);
	return u;
}

static float float_of(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof f);
	return f;
}

/* f16: 1 sign, 5 exponent (bias 15), 10 mantissa bits */
float f16_to_f32(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16;
	uint32_t e = (h >> 10) & 0x1f, m = h & 0x3ff;

	if (e == 0x1f)
		return float_of(sign | 0x7f800000 | m << 13);
	if (e == 0) /* zero and subnormals: m * 2^-24, exact in f32 */
		return float_of(sign | bits_of((float)m * 0x1p-24f));
	return float_of(sign | (e + 112) << 23 | m << 13);
}

uint16_t f32_to_f16(float f)
{
	uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
	uint32_t lost, half, m;
	int32_t shift;

	if (a > 0x7f800000) /* NaN: quiet, with the upper bits of the payload */
		return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x3ff));
	if (a >= 0x477ff000) /* 65520 and above round to infinity */
		return (uint16_t)(sign | 0x7c00);
	if (a < 0x33000000) /* below half of the least subnormal */
		return (uint16_t)sign;
	if (a >= 0x38800000) { /* normal: rebias, drop 13 bits */
		shift = 13;
		m = a - (112u << 23);
	} else { /* subnormal: units of 2^-24 */
		shift = 126 - (int32_t)(a >> 23);
		m = (a & 0x7fffff) | 0x800000;
	}
	lost = m & ((1u << shift) - 1);
	half = 1u << (shift - 1);
	m >>= shift;
	/* a carry into the exponent is correct */
	m += lost > half || (lost == half && (m & 1));
	return (uint16_t)(sign | m);
}

float bf16_to_f32(uint16_t h)
{
	return float_of((uint32_t)h << 16);
}

uint16_t f32_to_bf16(float f)
{
	uint32_t u = bits_of(f);

	if ((u & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

/*
 * The float next to v towards zero, its last bit set if v is not exact
 * ("round to odd"). Rounding that to 11 or fewer bits equals rounding v.
 */
static float round_to_odd(double v)
{
	float f = (float)v;
	uint32_t u;

	if (isnan(v) || (double)f == v)
		return f;
	u = bits_of(f);
	/* rounded up: step towards zero; from infinity to the largest number */
	if (fabs((double)f) > fabs(v))
		u--;
	return float_of(u | 1);
}

/* ---- floats of a byte or less ---- */

static const struct small {
	int32_t sign, digits, bias, most, nan;
	char kind;
} smalls[TN_N_DTYPES] = {
#define SMALL_FLOAT(id, name, sign, digits, bias, most, nan, kind)             \
	[TN_##id] = {sign, digits, bias, most, nan, kind},
#include "base/dtype.def"
#undef SMALL_FLOAT
};

static float e8m0_to_f32(uint8_t bits)
{
	return bits == 0xff ? NAN : ldexpf(1, bits - 127);
}

/* The least power of two that is not below |f|. */
static uint8_t f32_to_e8m0(float f)
{
	int e;

	if (isnan(f))
		return 0xff;
	if (isinf(f))
		return 0xfe;
	if (f == 0 || (frexpf(fabsf(f), &e) == 0.5f ? --e : e) < -127)
		return 0;
	return e > 127 ? 0xfe : (uint8_t)(e + 127);
}

static float small_to_f32(tn_dtype t, uint8_t bits)
{
	const struct small *s = &smalls[t];
	int32_t a = bits & (s->sign - 1), e = a >> s->digits;
	float f;

	if (t == TN_F8E8M0)
		return e8m0_to_f32(bits);
	if (s->kind == 'i' && a == s->most + 1)
		f = INFINITY;
	else if (a > s->most || (s->kind == 'z' && bits == s->sign))
		f = NAN;
	else if (e == 0)
		f = ldexpf((float)a, 1 - s->bias - s->digits);
	else
		f = ldexpf((float)(a - ((e - 1) << s->digits)),
			e - s->bias - s->digits);
	return bits & s->sign ? -f : f;
}

static uint8_t f32_to_small(tn_dtype t, float f)
{
	const struct small *s = &smalls[t];
	int32_t least = 1 - s->bias, e, a, sign = signbit(f) ? s->sign : 0;

	if (t == TN_F8E8M0)
		return f32_to_e8m0(f);
	if (isnan(f))
		return (uint8_t)(s->nan | (s->nan < s->sign ? sign : 0));
	if (isinf(f))
		return (uint8_t)(s->most | sign);
	frexpf(f, &e);
	e = f == 0 || e - 1 < least ? least : e - 1; /* 2^e: of the first digit */
	if (e - least > s->most)
		return (uint8_t)(s->most | sign);
	a = (int32_t)rintf(ldexpf(fabsf(f), s->digits - e));
	a += (e - least) << s->digits; /* a carry into the exponent is correct */
	if (a > s->most)
		a = s->most;
	return (uint8_t)(a | (a == 0 && s->kind == 'z' ? 0 : sign));
}

static int64_t to_i64(double v)
{
	if (isnan(v))
		return 0;
	if (v >= 0x1p63)
		return INT64_MAX;
	if (v < -0x1p63)
		return INT64_MIN;
	return (int64_t)v;
}

static uint64_t to_u64(double v)
{
	if (v >= 0x1p64)
		return UINT64_MAX;
	return v >= 0x1p63 ? (uint64_t)v : (uint64_t)to_i64(v);
}

/* An integer of fewer bits than a byte. */
static int64_t few_bits(tn_dtype t, int64_t v)
{
	int32_t off = 64 - types[t].bits;
	uint64_t u = (uint64_t)v << off;

	return types[t].class == 'i' ? (int64_t)u >> off : (int64_t)(u >> off);
}

/* ---- elements: memcpy, because data may be unaligned ---- */

#define LOAD(T)                                                        \
	do {                                                           \
		T v;                                                   \
		memcpy(&v, (const char *)data + i * (int64_t)sizeof v, \
			sizeof v);                                     \
		return AS(v);                                          \
	} while (0)
#define LOAD_HALF(convert)                                 \
	do {                                               \
		uint16_t h;                                \
		memcpy(&h, (const char *)data + i * 2, 2); \
		return AS(convert(h));                     \
	} while (0)
#define LOAD_INTEGERS                                                       \
	case TN_I8:                                                         \
		LOAD(int8_t);                                               \
	case TN_I16:                                                        \
		LOAD(int16_t);                                              \
	case TN_I32:                                                        \
		LOAD(int32_t);                                              \
	case TN_I64:                                                        \
		LOAD(int64_t);                                              \
	case TN_U8:                                                         \
		LOAD(uint8_t);                                              \
	case TN_BOOL:                                                       \
		return ((const uint8_t *)data)[i] != 0;                     \
	case TN_U16:                                                        \
		LOAD(uint16_t);                                             \
	case TN_U32:                                                        \
		LOAD(uint32_t);                                             \
	case TN_U64:                                                        \
		LOAD(uint64_t);                                             \
	case TN_I4:                                                         \
	case TN_U4:                                                         \
	case TN_I2:                                                         \
	case TN_U2:                                                         \
		return AS(few_bits(t, ((const uint8_t *)data)[i]));
#define CASE_SMALL                                                          \
	case TN_F8E4M3FN:                                                   \
	case TN_F8E4M3FNUZ:                                                 \
	case TN_F8E5M2:                                                     \
	case TN_F8E5M2FNUZ:                                                 \
	case TN_F8E8M0:                                                     \
	case TN_F4E2M1:
#define STORE(T, value)                                                     \
	do {                                                                \
		T w = (T)(value);                                           \
		memcpy((char *)data + i * (int64_t)sizeof w, &w, sizeof w); \
		return;                                                     \
	} while (0)

#define AS(v) (double)(v)
double dtype_load_f64(tn_dtype t, const void *data, int64_t i)
{
	switch (t) {
	case TN_F32:
		LOAD(float);
	case TN_F64:
		LOAD(double);
	case TN_F16:
		LOAD_HALF(f16_to_f32);
	case TN_BF16:
		LOAD_HALF(bf16_to_f32);
	CASE_SMALL
		return (double)small_to_f32(t, ((const uint8_t *)data)[i]);
	LOAD_INTEGERS
	}
	return 0;
}
#undef AS

#define AS(v) (int64_t)(v)
int64_t dtype_load_i64(tn_dtype t, const void *data, int64_t i)
{
	switch (t) {
	case TN_F32:
	case TN_F64:
	case TN_F16:
	case TN_BF16:
	CASE_SMALL
		return to_i64(dtype_load_f64(t, data, i));
	LOAD_INTEGERS
	}
	return 0;
}
#undef AS

void dtype_store_f64(tn_dtype t, void *data, int64_t i, double v)
{
	switch (t) {
	case TN_F32:
		STORE(float, v);
	case TN_F64:
		STORE(double, v);
	case TN_F16:
		STORE(uint16_t, f32_to_f16(round_to_odd(v)));
	case TN_BF16:
		STORE(uint16_t, f32_to_bf16(round_to_odd(v)));
	CASE_SMALL
		STORE(uint8_t, f32_to_small(t, (float)v));
	case TN_I8:
	case TN_I16:
	case TN_I32:
	case TN_I64:
	case TN_U8:
	case TN_U16:
	case TN_U32:
	case TN_I4:
	case TN_U4:
	case TN_I2:
	case TN_U2:
		dtype_store_i64(t, data, i, to_i64(v));
		return;
	case TN_U64:
		STORE(uint64_t, to_u64(v));
	case TN_BOOL:
		STORE(uint8_t, v != 0);
	}
}

/*
 * Conversion to f16 and bf16 goes through double, which is exact up to 2^53;
 * beyond that f16 is infinite, and bf16 rounds within its own precision.
 */
void dtype_store_i64(tn_dtype t, void *data, int64_t i, int64_t v)
{
	switch (t) {
	case TN_F32:
		STORE(float, v);
	case TN_F64:
		STORE(double, v);
	case TN_F16:
	case TN_BF16:
	CASE_SMALL
		dtype_store_f64(t, data, i, (double)v);
		return;
	case TN_I8:
		STORE(int8_t, v);
	case TN_I16:
		STORE(int16_t, v);
	case TN_I32:
		STORE(int32_t, v);
	case TN_I64:
		STORE(int64_t, v);
	case TN_U8:
		STORE(uint8_t, v);
	case TN_BOOL:
		STORE(uint8_t, v != 0);
	case TN_U16:
		STORE(uint16_t, v);
	case TN_U32:
		STORE(uint32_t, v);
	case TN_U64:
		STORE(uint64_t, v);
	case TN_I4:
	case TN_U4:
	case TN_I2:
	case TN_U2:
		STORE(uint8_t, few_bits(t, v));
	}
}

/* ---- integers ---- */

int64_t gcd_i64(int64_t a, int64_t b)
{
	uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a;
	uint64_t y = b < 0 ? -(uint64_t)b : (uint64_t)b;

	while (y != 0) {
		uint64_t r = x % y;

		x = y;
		y = r;
	}
	return x > INT64_MAX ? INT64_MAX : (int64_t)x;
}

int64_t shape_numel(const int64_t *shape, int32_t rank)
{
	int64_t n = 1;
	bool is_empty = false;

	for (int32_t i = 0; i < rank; i++) {
		if (shape[i] < 0)
			return -1;
		if (shape[i] == 0)
			is_empty = true;
		else if (!mul_ok(n, shape[i], &n) || n > INT64_C(1) << 48)
			return -1;
	}
	return is_empty ? 0 : n;
}
