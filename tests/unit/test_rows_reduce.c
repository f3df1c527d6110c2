/*
 * test_rows_reduce.c: reductions and rows that make tensors. The references
 * reduce the middle axis of (A, B, C) in two passes over doubles.
 */
#include "rows.h"

#include <math.h>

enum { A = 3, B = 5, C = 4 };

static double at(const ten *x, int64_t a, int64_t b, int64_t c)
{
	return x->at[(a * B + b) * C + c];
}

static double mean_of(const ten *x, int64_t a, int64_t c)
{
	double s = 0;

	for (int64_t b = 0; b < B; b++)
		s += at(x, a, b, c);
	return s / B;
}

static double var_of(const ten *x, int64_t a, int64_t c)
{
	double s = 0, mean = mean_of(x, a, c);

	for (int64_t b = 0; b < B; b++)
		s += (at(x, a, b, c) - mean) * (at(x, a, b, c) - mean);
	return s / B;
}

static double lse_of(const ten *x, int64_t a, int64_t c)
{
	double s = 0;

	for (int64_t b = 0; b < B; b++)
		s += exp(at(x, a, b, c));
	return log(s);
}

static double l3_of(const ten *x, int64_t a, int64_t c)
{
	double s = 0;

	for (int64_t b = 0; b < B; b++)
		s += pow(fabs(at(x, a, b, c)), 3);
	return pow(s, 1.0 / 3);
}

static double std1_of(const ten *x, int64_t a, int64_t c)
{
	return sqrt(var_of(x, a, c) * B / (B - 1));
}

#define MIDDLE(name)                                                           \
	static void want_##name(const ten *in, ten *out)                       \
	{                                                                      \
		for (int64_t a = 0; a < A; a++)                                \
			for (int64_t c = 0; c < C; c++)                        \
				out->at[a * C + c] = name##_of(in, a, c);      \
	}
MIDDLE(mean)
MIDDLE(var)
MIDDLE(lse)
MIDDLE(l3)
MIDDLE(std1)

static void want_moments(const ten *in, ten *out)
{
	want_mean(in, out);
	want_var(in, out + 1);
}

#define X "T[3,5,4] ~11"
#define R "T[3,4]"
#define M "f64[2,3] 3 nan 1 -5 2 2"
#define FLOATS "f32 f64 f16 bf16"
#define NUMBERS "f32 f64 f16 bf16 i8 i16 i32 i64 u8"

/* clang-format off */
static const row_case cases[] = {
	{"reduce_sum(a)", {"T[2,3] 1 2 3 4 5 6"}, {"T[] 21"}, .types = NUMBERS},
	{"reduce_sum(a, axes=[0])", {"T[2,3] 1 2 3 4 5 6"}, {"T[3] 5 7 9"}, .types = NUMBERS},
	{"reduce_sum(a, axes=[-1], keep=true)", {"T[2,3] 1 2 3 4 5 6"}, {"T[2,1] 6 15"}, .types = NUMBERS},
	{"reduce_sum(a, axes=[2,0])", {"i32[2,2,2] 1 2 3 4 5 6 7 8"}, {"i32[2] 14 22"}},
	{"reduce_sum(a, axes=[])", {"f32[2] 1 2"}, {"f32[2] 1 2"}},
	{"reduce_sum(a)", {"f32[] 3"}, {"f32[] 3"}},
	{"reduce_sum(a, axes=[1])", {"T[2,0]"}, {"T[2] 0 0"}, .types = NUMBERS},
	{"reduce_sum(a, axes=[0])", {"f32[2,0]"}, {"f32[0]"}},
	{"reduce_sum(a)", {"i8[3] 100 100 100"}, {"i8[] 44"}},
	{"reduce_sum(a)", {"f16[3000] *1"}, {"f16[] 3000"}},
	{"reduce_sum(a)", {"bf16[1000] *1"}, {"bf16[] 1000"}},
	{"reduce_sum(a)", {"f32[3] inf -inf 1"}, {"f32[] nan"}},
	{"reduce_sum(a, axes=[0,-2])", {"f32[2,3] ~1"}, {"!reduce_sum.axes", "axes"}},
	{"reduce_sum(a, axes=[2])", {"f32[2,3] ~1"}, {"!reduce_sum.axes", "axes"}},
	{"reduce_prod(a, axes=[1])", {"T[2,3] 1 2 3 4 5 2"}, {"T[2] 6 40"}, .types = NUMBERS},
	{"reduce_prod(a)", {"T[0]"}, {"T[] 1"}, .types = NUMBERS},
	{"reduce_prod(a)", {"i8[2] 16 16"}, {"i8[] 0"}},
	{"reduce_max(a, axes=[1])", {M}, {"f64[2] nan 2"}},
	{"reduce_max(a)", {"T[4] 3 9 4 9"}, {"T[] 9"}, .types = NUMBERS},
	{"reduce_max(a)", {"T[0]"}, {"T[] -inf"}, .types = FLOATS},
	{"reduce_max(a)", {"i8[0]"}, {"i8[] -128"}},
	{"reduce_max(a)", {"u8[0]"}, {"u8[] 0"}},
	{"reduce_max(a)", {"i64[0]"}, {"i64[] -9223372036854775808"}},
	{"reduce_max(a)", {"i64[2] -9223372036854775807 -9223372036854775808"}, {"i64[] -9223372036854775807"}},
	{"reduce_min(a, axes=[1])", {M}, {"f64[2] nan -5"}},
	{"reduce_min(a)", {"T[4] 3 9 2 9"}, {"T[] 2"}, .types = NUMBERS},
	{"reduce_min(a)", {"i16[0]"}, {"i16[] 32767"}},
	{"reduce_mean(a, axes=[1])", {X}, {R}, want_mean, FLOATS},
	{"reduce_mean(a)", {"f32[0]"}, {"f32[] nan"}},
	{"reduce_mean(a)", {"f16[4096] *60"}, {"f16[] 60"}},
	{"reduce_mean(a)", {"i32[2] 1 2"}, {"!reduce_mean.dtype", ""}},
	{"reduce_all(a, axes=[1])", {"bool[2,2] 1 1 1 0"}, {"bool[2] 1 0"}},
	{"reduce_all(a)", {"bool[0]"}, {"bool[] 1"}},
	{"reduce_any(a, axes=[1])", {"bool[2,2] 0 0 1 0"}, {"bool[2] 0 1"}},
	{"reduce_any(a)", {"bool[0]"}, {"bool[] 0"}},
	{"count_nonzero(a)", {"f32[5] 0 -0.0 nan 1 2"}, {"i64[] 3"}},
	{"count_nonzero(a, axes=[0])", {"u8[2,2] 0 1 0 1"}, {"i64[2] 0 2"}},
	{"reduce_l1(a, axes=[1])", {"T[2,2] -1 2 3 -4"}, {"T[2] 3 7"}, .types = "f32 f16 i32"},
	{"reduce_l2(a, axes=[1])", {"T[2,2] 3 4 0 0"}, {"T[2] 5 0"}, .types = FLOATS},
	{"reduce_l2(a)", {"f16[2] 300 400"}, {"f16[] 500"}},
	{"reduce_lp(a, p=3, axes=[1])", {X}, {R}, want_l3, FLOATS},
	{"reduce_sumsq(a, axes=[0])", {"T[2,2] -1 2 3 -4"}, {"T[2] 10 20"}, .types = "f32 f64 f16 bf16 i8 i64"},
	{"reduce_logsum(a)", {"f64[2] 1 1.718281828459045"}, {"f64[] 1"}},
	{"reduce_logsum(a)", {"f32[0]"}, {"f32[] -inf"}},
	{"logsumexp(a, axes=[1])", {X}, {R}, want_lse, FLOATS},
	{"logsumexp(a, axes=[1])", {"f64[4,2] -inf -inf 1000 1000 inf 1 nan 1"},
		{"f64[4] -inf 1000.6931471805599 inf nan"}},
	{"logsumexp(a)", {"f32[0]"}, {"f32[] -inf"}},
	{"logsumexp(a, keep=true)", {"f64[1,1] 5"}, {"f64[1,1] 5"}},
	{"logsumexp_online(a, axes=[1])", {X}, {R}, want_lse, FLOATS},
	{"logsumexp_online(a, axes=[1])", {"f64[4,2] -inf -inf 1000 1000 inf 1 nan 1"},
		{"f64[4] -inf 1000.6931471805599 inf nan"}},
	{"logsumexp_online(a, axes=[1])", {"f64[1,3] -inf 0 0"}, {"f64[1] 0.6931471805599453"}},
	{"reduce_var(a, axes=[1])", {X}, {R}, want_var, FLOATS},
	{"reduce_var(a, ddof=1)", {"f32[1] 3"}, {"f32[] nan"}},
	{"reduce_var(a)", {"f32[4] 10001 10002 10003 10004"}, {"f32[] 1.25"}},
	{"reduce_std(a, axes=[1], ddof=1)", {X}, {R}, want_std1, FLOATS},
	{"moments(a, axes=[1])", {X}, {R, R}, want_moments, FLOATS},
	{"moments(a)", {"f32[0]"}, {"f32[] nan", "f32[] nan"}},
	{"argmax(a, axis=1)", {M}, {"i64[2] 1 1"}},
	{"argmax(a)", {"T[4] 3 9 4 9"}, {"i64[] 1"}, .types = NUMBERS},
	{"argmax(a, axis=-1, keep=true)", {"f32[2,3] nan nan 1 -inf -inf -inf"}, {"i64[2,1] 0 0"}},
	{"argmax(a)", {"i64[2] -9223372036854775808 -9223372036854775808"}, {"i64[] 0"}},
	{"argmax(a)", {"f32[0,3]"}, {"!argmax.check", ""}},
	{"argmax(a, axis=1)", {"f32[0,3]"}, {"i64[0]"}},
	{"argmax(a)", {"f32[] 1"}, {"!argmax.axis", ""}},
	{"argmin(a, axis=1)", {M}, {"i64[2] 1 0"}},
	{"argmin(a)", {"T[4] 3 2 4 2"}, {"i64[] 1"}, .types = NUMBERS},
	{"max_with_index(a, axis=1)", {"T[2,3] 1 5 5 7 2 1"}, {"T[2] 5 7", "i64[2] 1 0"}, .types = NUMBERS},
	{"min_with_index(a, axis=0)", {"T[2,3] 1 5 5 7 2 1"}, {"T[3] 1 2 1", "i64[3] 0 1 1"}, .types = NUMBERS},
	{"min_with_index(a)", {"f32[3] 1 nan 0"}, {"f32[] nan", "i64[] 1"}},
	{"logsumexp(a, axes=[1])", {"f32[2,2] -100 -101 200 200"}, {"f32[2] -99.68673831 200.6931472"}},
	{"reduce_std(a)", {"f32[2] 1 3"}, {"f32[] 1"}},
	{"argmin(a)", {"f32[0,3]"}, {"!argmin.check", ""}},
	{"argmin(a)", {"f32[1,2] 4 3"}, {"i64[2] 0 0"}},
	{"argmax(a)", {"f32[1] nan"}, {"i64[] 0"}},
	{"max_with_index(a)", {"f32[0,3]"}, {"!max_with_index.check", ""}},
	{"max_with_index(a)", {"f32[1,2] 4 3"}, {"f32[2] 4 3", "i64[2] 0 0"}},
	{"min_with_index(a)", {"f32[0,3]"}, {"!min_with_index.check", ""}},
	{"min_with_index(a)", {"f32[1,2] 4 3"}, {"f32[2] 4 3", "i64[2] 0 0"}},
	{"logsumexp(a)", {"f32[2] 0 1000"}, {"f32[] 1000"}},
};

static const row_case makes[] = {
	{"fill(shape=[2,2], value=1.5)", {0}, {"f32[2,2] *1.5"}},
	{"fill(shape=[], value=-inf, dtype=f64)", {0}, {"f64[] -inf"}},
	{"fill(shape=[3], value=7, dtype=i64)", {0}, {"i64[3] *7"}},
	{"fill(shape=[2,0], value=1, dtype=bool)", {0}, {"bool[2,0]"}},
	{"fill(shape=[-1], value=1)", {0}, {"!fill.i", ""}},
	{"fill(shape=[1,1,1,1,1,1,1,1,1], value=1)", {0}, {"!fill.i", ""}},
	{"fill(shape=[4294967296,4294967296], value=1)", {0}, {"!fill.size", ""}},
	{"fill_like(a, value=3)", {"T[2,1] 5 5"}, {"T[2,1] 3 3"}, .types = "f32 f16 i8 i64"},
	{"iota(shape=[2,3], axis=1)", {0}, {"i64[2,3] 0 1 2 0 1 2"}},
	{"iota(shape=[2,3], dtype=f32)", {0}, {"f32[2,3] 0 0 0 1 1 1"}},
	{"arange(n=4, start=5, step=-2)", {0}, {"i64[4] 5 3 1 -1"}},
	{"arange(n=3, dtype=f16)", {0}, {"f16[3] 0 1 2"}},
	{"arange(n=0)", {0}, {"i64[0]"}},
	{"linspace(start=1, stop=2, n=5)", {0}, {"f32[5] 1 1.25 1.5 1.75 2"}},
	{"linspace(start=1, stop=2, n=1, dtype=f64)", {0}, {"f64[1] 1"}},
	{"eye(n=2, m=3)", {0}, {"f32[2,3] 1 0 0 0 1 0"}},
	{"eye(n=3, m=2, k=-1, dtype=i8)", {0}, {"i8[3,2] 0 0 1 0 0 1"}},
	{"one_hot(a, depth=3)", {"i64[4] 2 0 3 -1"},
		{"f32[4,3] 0 0 1 1 0 0 0 0 0 0 0 0"}},
	{"one_hot(a, depth=2, dtype=bool)", {"u8[] 1"}, {"bool[2] 0 1"}},
	{"along_axis(a, shape=[2,3], axis=1)", {"f32[3] 5 6 7"}, {"f32[2,3] 5 6 7 5 6 7"}},
	{"along_axis(a, shape=[2,3], axis=0)", {"f32[2] 5 6"}, {"f32[2,3] 5 5 5 6 6 6"}},
	{"linspace(start=3, stop=7, n=2)", {0}, {"f32[2] 3 7"}},
	{"along_axis(a, shape=[2,3], axis=1)", {"f32[4] 5 6 7 8"}, {"!along_axis.check", ""}},
};
/* clang-format on */

ROW_CASES(rows_reduce, cases);
ROW_CASES(rows_make, makes);
