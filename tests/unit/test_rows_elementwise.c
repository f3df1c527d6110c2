/*
 * test_rows_elementwise.c: elementwise rows and activations. References are
 * C's double functions in the textbook form, also where the row's form differs.
 */
#include "rows.h"

#include <math.h>

/* one reference: each element of the result from that of the first operand */
static void each(const ten *in, ten *out, double (*f)(double))
{
	for (int64_t i = 0; i < out->n; i++)
		out->at[i] = f(in->at[i]);
}

#define EACH(name, expression)                                                 \
	static double f_##name(double x)                                       \
	{                                                                      \
		return expression;                                             \
	}                                                                      \
	static void want_##name(const ten *in, ten *out)                       \
	{                                                                      \
		each(in, out, f_##name);                                       \
	}

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

EACH(square, x *x)
EACH(affine, 2 * x - 3)
EACH(gelu, x *erfc(-x / sqrt(2)) / 2)
EACH(gelu_tanh,
	x *sigmoid(2 * sqrt(2 / 3.141592653589793) * (x + 0.044715 * x * x * x)))
EACH(gelu_sigmoid, x / (1 + exp(-1.702 * x)))
EACH(silu, x *sigmoid(x))
EACH(mish, x *tanh(log(1 + exp(x))))
EACH(elu, x > 0 ? x : 2 * (exp(x) - 1))
EACH(celu, x > 0 ? x : 2 * (exp(x / 2) - 1))
EACH(selu,
	1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * (exp(x) - 1)))
EACH(leaky, x > 0 ? x : 0.1 * x)
EACH(thresholded, x > 1 ? x : 0)
EACH(hard_sigmoid, fmin(1, fmax(0, 0.2 * x + 0.5)))
EACH(hard_swish, x *fmin(6, fmax(0, x + 3)) / 6)
EACH(softsign, x / (1 + fabs(x)))
EACH(shrink, x > 1 ? x - 0.25 : x < -1 ? x + 0.25 : 0)
EACH(tanh_shrink, x - tanh(x))
EACH(log_sigmoid, log(sigmoid(x)))
EACH(logit, log(x / (1 - x)))

static void want_glu(const ten *in, ten *out) /* (3, 4) -> (3, 2) */
{
	for (int64_t i = 0; i < 3; i++)
		for (int64_t j = 0; j < 2; j++)
			out->at[2 * i + j] = in->at[4 * i + j] *
				sigmoid(in->at[4 * i + 2 + j]);
}

static void want_swiglu(const ten *in, ten *out) /* (4, 3) -> (2, 3) */
{
	for (int64_t i = 0; i < 6; i++)
		out->at[i] = in->at[i] * sigmoid(in->at[i]) * in->at[6 + i];
}

#define X "T[2,5,7] ~3"
#define SPECIAL "f64[8] -inf -1000 -1 -0.0 0 1 1000 inf"
#define FLOATS "f32 f64 f16 bf16"

/* clang-format off */
static const row_case cases[] = {
	{"where(a, b, c)", {"bool[2,1] 1 0", "T[2,3] 1 2 3 4 5 6", "T[3] 7 8 9"},
		{"T[2,3] 1 2 3 7 8 9"},
		.types = "f32 f64 f16 bf16 i8 i16 i32 i64 u8 bool"},
	{"where(a, b, c)", {"bool[] 1", "f32[] nan", "f32[] 2"}, {"f32[] nan"}},
	{"where(a, b, 0)", {"bool[2] 0 1", "f32[2] inf inf"}, {"f32[2] 0 inf"}},
	{"masked_fill(a, b, value=-inf)", {"f32[2,2] 1 2 3 4", "bool[2] 1 0"},
		{"f32[2,2] -inf 2 -inf 4"}},
	{"clip(a, lo=-1, hi=2)", {"T[4] -5 0 2 9"}, {"T[4] -1 0 2 2"},
		.types = "f32 f64 f16 bf16 i8 i16 i32 i64"},
	{"clip(a)", {"f32[3] -inf nan inf"}, {"f32[3] -inf nan inf"}},
	{"clip(a, hi=2)", {"i32[3] -5 2 3"}, {"i32[3] -5 2 2"}},
	{"cast(a, to=i8)", {"f32[4] 1.9 -1.9 0.5 -0.5"}, {"i8[4] 1 -1 0 0"}},
	{"cast(a, to=i8)", {"i32[3] 300 -129 127"}, {"i8[3] 44 127 127"}},
	{"cast(a, to=u8)", {"i32[3] 256 -1 7"}, {"u8[3] 0 255 7"}},
	{"cast(a, to=bool)", {"f32[4] 0 -0.0 0.5 nan"}, {"bool[4] 0 0 1 1"}},
	{"cast(a, to=f16)", {"f32[4] 65520 1.00048828125 nan 1e-8"},
		{"f16[4] inf 1 nan 0"}},
	{"cast(a, to=bf16)", {"f32[2] 1.00390625 1.01171875"},
		{"bf16[2] 1 1.015625"}},
	{"cast(a, to=f32)", {"bool[2] 1 0"}, {"f32[2] 1 0"}},
	{"cast(a, to=f32)", {"i64[1] 16777217"}, {"f32[1] 16777216"}},
	{"identity(a)", {"T[2,0]"}, {"T[2,0]"}, .types = "f32 i64 bool"},
	{"identity(a)", {"bf16[2] 1 nan"}, {"bf16[2] 1 nan"}},
	{"copy(a)", {"T[2] 1 0"}, {"T[2] 1 0"}, .types = "f32 i64 bool"},
	{"write(a, b)", {"f32[2] 1 2", "f32[2] 3 nan"}, {"f32[2] 3 nan"}},
	{"write(a, b)", {"T[0]", "T[0]"}, {"T[0]"}, .types = "f32 bool"},
	{"stop_gradient(a)", {"f32[2] 1 2"}, {"f32[2] 1 2"}},
	{"square(a)", {X}, {"T[2,5,7]"}, want_square, FLOATS},
	{"square(a)", {"i8[2] 5 12"}, {"i8[2] 25 -112"}},
	{"squared_difference(a, b)", {"T[2,1] 3 5", "T[2] 1 4"},
		{"T[2,2] 4 1 16 1"}, .types = "f32 f16 i32"},
	{"affine(a, alpha=2, beta=-3)", {X}, {"T[2,5,7]"}, want_affine, FLOATS},
	{"addcmul(a, b, c, value=2)", {"f32[2] 1 2", "f32[2] 3 4", "f32[] 5"},
		{"f32[2] 31 42"}},
	{"addcdiv(a, b, c, value=2)", {"f32[2] 1 2", "f32[2] 3 4", "f32[] 8"},
		{"f32[2] 1.75 3"}},
	{"lerp(a, b, c)", {"f32[2] 0 10", "f32[2] 8 30", "f32[] 0.25"},
		{"f32[2] 2 15"}},
	{"logaddexp(a, b)",
		{"f64[6] 0 1000 -inf inf -1 nan", "f64[6] 0 1000 -inf inf -inf 1"},
		{"f64[6] 0.6931471805599453 1000.6931471805599 -inf inf -1 nan"}},
	{"xlogy(a, b)", {"f64[5] 0 0 2 1 nan", "f64[5] 0 nan 2.718281828459045 0 1"},
		{"f64[5] 0 0 2 -inf nan"}},
	{"logit(a)", {"f64[3] 0.25 0.5 0.875"}, {"f64[3]"}, want_logit},
	{"logit(a)", {"f64[2] 0 1"}, {"f64[2] -inf inf"}},
	{"logit(a, eps=0.5)", {"f64[2] 0 1"}, {"f64[2] 0 0"}},
	{"isclose(a, b)", {"f64[6] 1 1 inf -inf nan 0", "f64[6] 1.00001 1.1 inf inf nan 1e-9"},
		{"bool[6] 1 0 1 0 0 1"}},
	{"nan_to_num(a, value=5)", {"f32[4] nan inf -inf 1"},
		{"f32[4] 5 3.4028234663852886e38 -3.4028234663852886e38 1"}},
	{"bucketize(a, b)", {"f32[5] 0 1 1.5 3 9", "f32[3] 1 2 3"},
		{"i64[5] 0 0 1 2 3"}},
	{"bucketize(a, b, right=true)", {"i32[2,2] 0 1 3 9", "i32[3] 1 2 3"},
		{"i64[2,2] 0 1 3 3"}},
	{"bucketize(a, b)", {"f32[2] 0 1", "f32[0]"}, {"i64[2] 0 0"}},
	{"isin(a, b)", {"i64[2,2] 1 2 3 4", "i64[3] 4 1 1"}, {"bool[2,2] 1 0 0 1"}},
	{"isin(a, b)", {"f32[2] nan 1", "f32[2] nan 1"}, {"bool[2] 0 1"}},
	{"quantize_linear(a, b, c)",
		{"f32[2,3] 1 2.5 -3 100 -100 0.25", "f32[2] 0.5 0.25", "i8[2] 0 10"},
		{"i8[2,3] 2 5 -6 127 -128 11"}},
	{"quantize_linear(a, b, c, axis=-1, lo=0, hi=255)",
		{"f32[2,2] 1 1.5 -3 300", "f32[2] 0.5 1", "u8[2] 1 128"},
		{"u8[2,2] 3 130 0 255"}},
	{"dequantize_linear(a, b, c, axis=1)",
		{"u8[2,2] 0 255 3 128", "f32[2] 0.5 0.25", "u8[2] 1 128"},
		{"f32[2,2] -0.5 31.75 1 0"}},
	{"gelu(a)", {X}, {"T[2,5,7]"}, want_gelu, FLOATS},
	{"gelu(a)", {SPECIAL}, {"f64[8] nan -0 -0.15865525393145705 -0 0 0.8413447460685429 1000 inf"}},
	{"gelu_tanh(a)", {X}, {"T[2,5,7]"}, want_gelu_tanh, FLOATS},
	{"gelu_sigmoid(a)", {X}, {"T[2,5,7]"}, want_gelu_sigmoid, FLOATS},
	{"silu(a)", {X}, {"T[2,5,7]"}, want_silu, FLOATS},
	{"silu(a)", {SPECIAL}, {"f64[8] nan 0 -0.2689414213699951 0 0 0.7310585786300049 1000 inf"}},
	{"mish(a)", {X}, {"T[2,5,7]"}, want_mish, FLOATS},
	{"elu(a, alpha=2)", {X}, {"T[2,5,7]"}, want_elu, FLOATS},
	{"elu(a)", {SPECIAL}, {"f64[8] -1 -1 -0.6321205588285577 0 0 1 1000 inf"}},
	{"celu(a, alpha=2)", {X}, {"T[2,5,7]"}, want_celu, FLOATS},
	{"celu(a)", {"f64[3] 1000 -inf nan"}, {"f64[3] 1000 -1 nan"}},
	{"selu(a)", {X}, {"T[2,5,7]"}, want_selu, FLOATS},
	{"leaky_relu(a, alpha=0.1)", {X}, {"T[2,5,7]"}, want_leaky, FLOATS},
	{"thresholded_relu(a)", {X}, {"T[2,5,7]"}, want_thresholded, FLOATS},
	{"hard_sigmoid(a)", {X}, {"T[2,5,7]"}, want_hard_sigmoid, FLOATS},
	{"hard_sigmoid(a)", {"f32[3] -9 nan inf"}, {"f32[3] 0 nan 1"}},
	{"hard_swish(a)", {"f64[9] -4 -3 -2 -1 0 1 2 3 4"}, {"f64[9]"}, want_hard_swish},
	{"softsign(a)", {X}, {"T[2,5,7]"}, want_softsign, FLOATS},
	{"prelu(a, b)", {"f32[2,2] -1 2 -3 4", "f32[2] 0.5 9"},
		{"f32[2,2] -0.5 2 -1.5 4"}},
	{"shrink(a, lambd=1, bias=0.25)", {X}, {"T[2,5,7]"}, want_shrink, FLOATS},
	{"tanh_shrink(a)", {X}, {"T[2,5,7]"}, want_tanh_shrink, FLOATS},
	{"log_sigmoid(a)", {X}, {"T[2,5,7]"}, want_log_sigmoid, FLOATS},
	{"log_sigmoid(a)", {"f64[2] -1000 1000"}, {"f64[2] -1000 0"}},
	{"glu(a)", {"T[3,4] ~5"}, {"T[3,2]"}, want_glu, FLOATS},
	{"glu(a)", {"f32[3,5] ~5"}, {"!glu.n", "divisible"}},
	{"swiglu(a, axis=0)", {"T[4,3] ~6"}, {"T[2,3]"}, want_swiglu, FLOATS},
	{"gelu(a)", {"f32[3,0]"}, {"f32[3,0]"}},
	{"gelu(a)", {"f32[] 0"}, {"f32[] 0"}},
	/* the defaults */
	{"affine(a)", {"f32[1] 3"}, {"f32[1] 3"}},
	{"addcmul(a, b, c)", {"f32[] 1", "f32[] 2", "f32[] 3"}, {"f32[] 7"}},
	{"addcdiv(a, b, c)", {"f32[] 1", "f32[] 6", "f32[] 3"}, {"f32[] 3"}},
	{"nan_to_num(a)", {"f32[] nan"}, {"f32[] 0"}},
	{"dequantize_linear(a, b, c)", {"i8[2,1] 3 4", "f32[2] 1 2", "i8[2] 1 1"}, {"f32[2,1] 2 6"}},
	{"leaky_relu(a)", {"f32[] -3"}, {"f32[] -0.03"}},
	{"prelu(a, b)", {"f32[] 0.5", "f32[] 9"}, {"f32[] 0.5"}},
	{"shrink(a)", {"f32[3] 0.5 0.75 -0.75"}, {"f32[3] 0 0.75 -0.75"}},
	{"swiglu(a)", {"f64[1,2] 1 2"}, {"f64[1,1] 1.4621171572600098"}},
};
/* clang-format on */

ROW_CASES(rows_elementwise, cases);
