/*
 * op_matrix.c: products of matrices and of quantised matrices, quantisation.
 *
 *     Gemm(a, b, c, transB=1, alpha=2)   add(mul(matmul(a, b'), 2), c)
 *     MatMulInteger(a, b, za, zb)        matmul(i32(a) - za, i32(b) - zb)
 */
#include "onnx/ops.h"
#include "onnx/quant.h"

/*
 * Matrix product; vectors become matrices, and the result loses their axis
 * again.
 */
static int32_t product(node *d, int32_t x, int32_t y)
{
	bool left = on_rank_of(d, x) == 1, right = on_rank_of(d, y) == 1;
	int32_t o;

	if (left)
		x = on_unsqueeze(d, x, 0);
	if (right)
		y = on_unsqueeze(d, y, 1);
	o = row(d, "matmul", A(x, y));
	if (left)
		o = on_drop_axis(d, o, on_rank_of(d, o) - 2);
	if (right)
		o = on_drop_axis(d, o, on_rank_of(d, o) - 1);
	return o;
}

void onnx_matmul(node *d)
{
	on_set(d, 0, product(d, on_in(d, 0), on_in(d, 1)));
}

static int32_t turned(node *d, int32_t x, const char *attr)
{
	if (on_rank_of(d, x) != 2)
		on_fail(d, "onnx.shape", "an operand has %d axes, not 2",
			(int)on_rank_of(d, x));
	return on_int(d, attr, 0) != 0 ? on_transpose(d, x, LIST(d, 1, 0)) : x;
}

static int32_t scaled(node *d, int32_t x, double by)
{
	return by == 1 ? x : row(d, "mul", A(x, on_scalar(d, on_dt(d, x), by)));
}

void onnx_gemm(node *d)
{
	int32_t x = turned(d, on_in(d, 0), "transA");
	int32_t y = turned(d, on_in(d, 1), "transB");
	double beta = on_real(d, "beta", 1);
	int32_t o = row(d, "matmul", A(x, y));

	on_ignore(d, "broadcast"); /* always done, as from opset 7 on */
	o = scaled(d, o, on_real(d, "alpha", 1));
	if (on_has(d, 2))
		o = row(d, "add", A(o, scaled(d, on_in(d, 2), beta)));
	on_set(d, 0, o);
}

void onnx_einsum(node *d)
{
	const char *equation = on_text(d, "equation", "");
	int32_t *v = arena_array(d->x->a, int32_t, d->n_in + 1);
	str s = str_new(d->x->a);

	for (int32_t i = 0; i < d->n_in; i++)
		v[i] = on_in(d, i);
	for (; *equation != '\0'; equation++)
		if (*equation != ' ')
			str_addc(&s, *equation);
	on_set(d, 0, rowa(d, "einsum", VALUES(d->n_in, v),
			     TEXT("equation", s.at)));
}

/* ---- quantised (quant.h) ---- */

int32_t quant_centred(node *d, int32_t i, int32_t zero, int32_t axis)
{
	int32_t x = on_cast_to(d, on_in(d, i), TN_I32), z;

	if (!on_has(d, zero))
		return x;
	z = on_cast_to(d, on_in(d, zero), TN_I32);
	if (on_rank_of(d, z) == 1 && on_numel(d, z) > 1)
		z = on_along(d, z, on_axis(d, axis, on_rank_of(d, x)),
			on_rank_of(d, x));
	else if (on_rank_of(d, z) <= 1)
		z = on_reshape(d, z, on_list_new(d, 0, 0));
	return row(d, "sub", A(x, z));
}

/*
 * Converts f16 and bf16, which cannot hold all integers up to a few thousand,
 * to f32.
 */
static int32_t exactly(node *d, int32_t x)
{
	return on_cast_to(d, x, dtype_acc(on_dt(d, x)));
}

/* x rounded, moved by zero (-1: not), limited to what `to` holds */
static int32_t rounded(node *d, int32_t x, int32_t zero, tn_dtype to)
{
	double lo, hi;

	if (dtype_is_float(to) && dtype_size(to) == 1)
		return quant_cast(d, x, to);
	if (!dtype_is_int(to) || dtype_size(to) > 4)
		on_fail(d, "onnx.elem", "quantisation to %s is not supported",
			onnx_elem_name(onnx_dtype_elem(to)));
	lo = (double)ir_int_least(to);
	hi = (double)ir_int_greatest(to);
	x = row(d, "round", A(exactly(d, x)));
	if (hi > 1 << 24) /* f32 cannot hold the largest of them */
		x = on_cast_to(d, x, TN_F64);
	if (zero >= 0)
		x = row(d, "add", A(x, on_cast_to(d, zero, on_dt(d, x))));
	x = row(d, "max", A(x, on_scalar(d, on_dt(d, x), lo)));
	x = row(d, "min", A(x, on_scalar(d, on_dt(d, x), hi)));
	return on_cast_to(d, x, to);
}

int32_t quant_rescale(node *d, int32_t sum, int32_t scale_x, int32_t scale_w,
	int32_t scale_y, int32_t zero_y, tn_dtype to)
{
	int32_t s = row(d, "mul", A(exactly(d, scale_x), exactly(d, scale_w)));

	s = row(d, "mul", A(on_cast_to(d, sum, on_dt(d, s)), s));
	s = row(d, "div", A(s, on_cast_to(d, scale_y, on_dt(d, s))));
	return rounded(d, s, zero_y, to);
}

void onnx_matmul_integer(node *d)
{
	int32_t x = quant_centred(d, 0, 2, -2), y = quant_centred(d, 1, 3, -1);

	on_set(d, 0, product(d, x, y));
}

/*
 * Reshapes a scale to broadcast with the product: a scale per row of the left
 * operand is along axis r - 2.
 */
static int32_t scale_of(node *d, int32_t i, int32_t axis, int32_t r)
{
	int32_t s = on_in(d, i);

	return on_rank_of(d, s) == 1 && on_numel(d, s) > 1
		? on_along(d, s, on_axis(d, axis, r), r)
		: on_reshape(d, s, on_list_new(d, 0, 0));
}

void onnx_qlinear_matmul(node *d)
{
	int32_t x = quant_centred(d, 0, 2, -2), y = quant_centred(d, 3, 5, -1);
	int32_t sum = product(d, x, y), r = on_rank_of(d, sum);
	list none = on_list_new(d, 0, 0);

	on_set(d, 0, quant_rescale(d, sum, scale_of(d, 1, -2, r),
			     scale_of(d, 4, -1, r),
			     on_reshape(d, on_in(d, 6), none),
			     on_reshape(d, on_in(d, 7), none),
			     on_dt(d, on_in(d, 7))));
}

/*
 * Repeats a number for each block along an axis; the last block may be shorter.
 */
static int32_t per_block(
	node *d, int32_t v, int32_t x, int32_t axis, int64_t block)
{
	int64_t n = on_extent(d, x, axis), places;

	on_bound(d, "block_size", block, 1, INT64_C(1) << 32);
	places = n / block + (n % block != 0);
	if (on_rank_of(d, v) != on_rank_of(d, x) ||
		on_extent(d, v, axis) != places)
		on_fail(d, "onnx.shape", "blocks of %lld along axis %d of "
			"extent %lld need %lld scales there",
			(long long)block, (int)axis, (long long)n,
			(long long)places);
	v = rowa(d, "repeat", A(v), INT("axis", axis), INT("reps", block));
	return on_narrow(d, v, axis, 0, n);
}

/*
 * Reshapes a scale or zero point, which is one number, or one for each index of
 * an axis, or one for each block of indices.
 */
static int32_t per_axis(node *d, int32_t v, int32_t x)
{
	int32_t r = on_rank_of(d, x);
	int64_t axis = on_int(d, "axis", 1);
	int64_t block = on_int(d, "block_size", 0);

	on_ignore(d, "saturate"); /* quant_cast reads it */
	if (block != 0)
		return per_block(d, v, x, on_axis(d, axis, r), block);
	if (on_rank_of(d, v) == 1 && r > 0 && on_numel(d, v) > 1)
		return on_along(d, v, on_axis(d, axis, r), r);
	return on_rank_of(d, v) == 1 ? on_reshape(d, v, on_list_new(d, 0, 0)) : v;
}

void onnx_quantize(node *d)
{
	int32_t x = on_in(d, 0), s = per_axis(d, on_in(d, 1), x), zero = -1;
	int64_t elem = on_int(d, "output_dtype", 0);
	tn_dtype to = elem != 0 ? on_elem_dtype(d, elem) : TN_U8;

	on_ignore(d, "precision"); /* computed in f32 or more */
	if (on_has(d, 2)) {
		to = on_dt(d, on_in(d, 2));
		zero = per_axis(d, on_in(d, 2), x);
	}
	s = exactly(d, s);
	x = row(d, "div", A(on_cast_to(d, x, on_dt(d, s)), s));
	on_set(d, 0, rounded(d, x, zero, to));
}

void onnx_dequantize(node *d)
{
	int32_t x = on_in(d, 0), s = per_axis(d, on_in(d, 1), x), y;
	int64_t to = on_int(d, "output_dtype", 0);
	tn_dtype t = to != 0 ? on_elem_dtype(d, to) : on_dt(d, s), wide;

	wide = dtype_is_float(on_dt(d, x)) ? TN_F32 : TN_I32;
	y = on_cast_to(d, x, wide);
	if (on_has(d, 2))
		y = row(d, "sub", A(y, on_cast_to(d, per_axis(d, on_in(d, 2), x),
					      wide)));
	s = exactly(d, s);
	y = row(d, "mul", A(on_cast_to(d, y, on_dt(d, s)), s));
	on_set(d, 0, on_cast_to(d, y, t));
}

/*
 * Computes a scale and a zero point that map the range of x, extended to
 * contain 0, to 0 .. 255.
 */
void onnx_dynamic_quantize(node *d)
{
	int32_t x = on_in(d, 0), lo, hi, s, zero, z;
	tn_dtype t = on_dt(d, x);

	zero = on_scalar(d, t, 0);
	lo = row(d, "min", A(row(d, "reduce_min", A(x)), zero));
	hi = row(d, "max", A(row(d, "reduce_max", A(x)), zero));
	s = row(d, "div", A(row(d, "sub", A(hi, lo)), on_scalar(d, t, 255)));
	z = rounded(d, row(d, "div", A(row(d, "neg", A(lo)), s)), -1, TN_U8);
	on_set(d, 0, rounded(d, row(d, "div", A(x, s)), z, TN_U8));
	on_set(d, 1, s);
	on_set(d, 2, z);
}
