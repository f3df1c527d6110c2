/*
 * op_quant.c: numbers as integers, a scale and a zero point.
 *
 *     DequantizeLinear(x, s, z)   (x - z) * s
 *     QuantizeLinear(x, s, z)     round(x / s) + z, limited to the type
 *
 * A scale is one number, or one for each index of an axis, or one for each block
 * of indices; so is a zero point, whose type is that of the integers.
 */
#include "onnx/ops.h"
#include "onnx/quant.h"
#include "onnx/scaled.h"

/* ---- parameters ---- */

static const char *shape_text(node *d, int32_t v)
{
	str s = str_new(d->x->a);

	str_addc(&s, '[');
	for (int32_t i = 0; i < on_rank_of(d, v); i++)
		str_printf(&s, "%s%lld", i > 0 ? "," : "",
			(long long)on_ty(d, v)->shape[i]);
	str_addc(&s, ']');
	return s.at;
}

int32_t quant_param(node *d, int32_t i, int32_t axis, int32_t r, int64_t n)
{
	int32_t v = on_in(d, i);

	if (on_numel(d, v) == 1 && on_rank_of(d, v) <= 1)
		return on_reshape(d, v, on_list_new(d, 0, 0));
	if (r <= 0 || on_rank_of(d, v) != 1 || on_numel(d, v) != n)
		on_fail(d, "onnx.shape", "input %d, a scale or zero point, has "
			"the shape %s; accepted is one number%s", (int)i,
			shape_text(d, v), r <= 0 ? "" : arena_printf(d->x->a,
				", or %lld, one for each index of the axis",
				(long long)n));
	return on_along(d, v, on_axis(d, axis, r), r);
}

/* Refuses a scale that is no float. */
static void check_scale(node *d, int32_t i)
{
	tn_dtype t = on_dt(d, on_in(d, i));

	if (!dtype_is_float(t))
		on_fail(d, "onnx.elem", "input %d, a scale, has elements of "
			"type %s; accepted are floats", (int)i, dtype_name(t));
}

/* Refuses a zero point of another type than the integers that it moves. */
static void check_zero(node *d, int32_t i, tn_dtype t)
{
	tn_dtype zero = on_dt(d, on_in(d, i));

	if (zero != t)
		on_fail(d, "onnx.elem", "input %d, a zero point, has elements "
			"of type %s; accepted is %s, the type of what it moves",
			(int)i, dtype_name(zero), dtype_name(t));
}

int32_t quant_scale(node *d, int32_t i)
{
	check_scale(d, i);
	return quant_param(d, i, 0, 0, 0);
}

int32_t quant_along(node *d, int32_t i, int32_t x, int32_t axis, int32_t r)
{
	int32_t at = on_rank_of(d, x) + axis;

	check_scale(d, i);
	return quant_param(d, i, axis, at < 0 ? 0 : r,
		at < 0 ? 0 : on_extent(d, x, at));
}

/* A zero point of as many axes as x: each extent is 1 or that of x. */
static int32_t zero_like(node *d, int32_t i, int32_t x)
{
	int32_t z = on_in(d, i), r = on_rank_of(d, z);

	for (int32_t k = 0; k < r; k++)
		if (r != on_rank_of(d, x) || (on_extent(d, z, k) != 1 &&
				on_extent(d, z, k) != on_extent(d, x, k)))
			on_fail(d, "onnx.shape", "input %d, a zero point, has "
				"the shape %s, and what it moves %s", (int)i,
				shape_text(d, z), shape_text(d, x));
	return z;
}

int32_t quant_less(node *d, int32_t x, int32_t zero)
{
	return row(d, "sub", A(on_cast_to(d, x, TN_I32),
				    on_cast_to(d, zero, TN_I32)));
}

/*
 * The zero point, if it is one number that the model gives: a product then has factors
 * of as few bits as the integers. More than one are a parameter, which may be set to
 * others. false: it is not known.
 */
static bool known_zero(node *d, int32_t zero, int64_t *is)
{
	int32_t v = on_in(d, zero);
	const fact *f = onnx_fact(d->x, v);

	if (f->data == NULL || f->is_free || on_numel(d, v) != 1 ||
		!dtype_is_int(on_dt(d, v)))
		return false;
	*is = dtype_load_i64(on_dt(d, v), f->data, 0);
	return true;
}

/* The integers x less the zero point z of input `zero`, in i32. */
static int32_t less_zero(node *d, int32_t x, int32_t zero, int32_t z)
{
	int64_t is;

	if (!known_zero(d, zero, &is))
		return quant_less(d, x, z);
	return is == 0 ? on_cast_to(d, x, TN_I32)
		       : quant_less(d, x, on_scalar(d, TN_I32, (double)is));
}

int32_t quant_centred(node *d, int32_t i, int32_t zero, int32_t axis)
{
	int32_t x = on_in(d, i), r = on_rank_of(d, x), z;

	if (!on_has(d, zero))
		return on_cast_to(d, x, TN_I32);
	check_zero(d, zero, on_dt(d, x));
	if (on_rank_of(d, on_in(d, zero)) > 1)
		z = zero_like(d, zero, x);
	else if (r + axis < 0 || axis >= r) /* a vector has no rows */
		z = quant_param(d, zero, 0, 0, 0);
	else
		z = quant_param(d, zero, axis, r,
			on_extent(d, x, on_axis(d, axis, r)));
	return less_zero(d, x, zero, z);
}

/* ---- conversion ---- */

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

int32_t quant_scaled(node *d, int32_t sum, int32_t scale_x, int32_t scale_w)
{
	int32_t s = row(d, "mul", A(exactly(d, scale_x), exactly(d, scale_w)));

	return row(d, "mul", A(on_cast_to(d, sum, on_dt(d, s)), s));
}

int32_t quant_rescale(node *d, int32_t sum, int32_t scale_x, int32_t scale_w,
	int32_t y)
{
	int32_t s = quant_scaled(d, sum, scale_x, scale_w);
	int32_t scale_y = exactly(d, quant_scale(d, y));

	s = row(d, "div", A(s, on_cast_to(d, scale_y, on_dt(d, s))));
	return rounded(d, s, quant_param(d, y + 1, 0, 0, 0),
		on_dt(d, on_in(d, y + 1)));
}

int32_t quant_float(node *d, int32_t i, int32_t scale, int32_t zero)
{
	int32_t s = exactly(d, quant_scale(d, scale));
	int32_t x = quant_centred(d, i, zero, TN_MAX_RANK);

	return row(d, "mul", A(on_cast_to(d, x, on_dt(d, s)), s));
}

int32_t quant_ints(node *d, int32_t x, int32_t scale, tn_dtype to)
{
	int32_t s = exactly(d, quant_scale(d, scale)), zero = -1;

	if (on_has(d, scale + 1)) {
		check_zero(d, scale + 1, to);
		zero = quant_param(d, scale + 1, 0, 0, 0);
	}
	x = row(d, "div", A(on_cast_to(d, x, on_dt(d, s)), s));
	return rounded(d, x, zero, to);
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
static int32_t per_axis(node *d, int32_t i, int32_t x)
{
	int32_t r = on_rank_of(d, x), v = on_in(d, i), axis = 0;
	int64_t block = on_int(d, "block_size", 0), given = on_int(d, "axis", 1);

	on_ignore(d, "saturate"); /* quant_cast reads it */
	if (block != 0)
		return per_block(d, v, x, on_axis(d, given, r), block);
	if (on_rank_of(d, v) == 1 && on_numel(d, v) != 1 && r > 0)
		axis = on_axis(d, given, r);
	return quant_param(d, i, axis, r, r > 0 ? on_extent(d, x, axis) : 0);
}

/* Zero points of x, one for each scale; -1: they are not given. */
static int32_t zeros_of(node *d, int32_t x, tn_dtype t)
{
	if (!on_has(d, 2))
		return -1;
	check_zero(d, 2, t);
	if (on_numel(d, on_in(d, 2)) != on_numel(d, on_in(d, 1)))
		on_fail(d, "onnx.shape", "there are %lld zero points for %lld "
			"scales; there must be as many",
			(long long)on_numel(d, on_in(d, 2)),
			(long long)on_numel(d, on_in(d, 1)));
	return per_axis(d, 2, x);
}

void onnx_quantize(node *d)
{
	int32_t x = on_in(d, 0), s = per_axis(d, 1, x), zero;
	int64_t elem = on_int(d, "output_dtype", 0);
	tn_dtype to = TN_U8;

	check_scale(d, 1);
	on_ignore(d, "precision"); /* computed in f32 or more */
	if (elem != 0)
		to = on_elem_dtype(d, elem);
	else if (on_has(d, 2))
		to = on_dt(d, on_in(d, 2));
	zero = zeros_of(d, x, to);
	s = exactly(d, s);
	x = row(d, "div", A(on_cast_to(d, x, on_dt(d, s)), s));
	on_set(d, 0, rounded(d, x, zero, to));
}

/* No element of x, less its zero point, has a greater magnitude. */
static int64_t greatest_of(node *d, int32_t x)
{
	int64_t lo = ir_int_least(on_dt(d, x)), z;
	int64_t hi = ir_int_greatest(on_dt(d, x));

	if (!on_has(d, 2))
		return hi > -lo ? hi : -lo;
	if (!known_zero(d, 2, &z))
		return hi - lo;
	return hi - z > z - lo ? hi - z : z - lo;
}

/* Notes that y is the integers i times the scale, so that sums can be exact. */
static void note_scaled(node *d, int32_t y, int32_t i)
{
	int32_t x = on_in(d, 0), s = on_in(d, 1), r = on_rank_of(d, x), axis = -1;

	if (!dtype_is_int(on_dt(d, x)) || dtype_size(on_dt(d, x)) > 2 ||
		on_rank_of(d, s) > 1)
		return;
	if (on_numel(d, s) > 1)
		axis = on_axis(d, on_int(d, "axis", 1), r);
	onnx_scaled_note(d->x, y, i, greatest_of(d, x), s, axis);
}

void onnx_dequantize(node *d)
{
	int32_t x = on_in(d, 0), s = per_axis(d, 1, x), i, y, zero;
	int64_t to = on_int(d, "output_dtype", 0);
	tn_dtype t = to != 0 ? on_elem_dtype(d, to) : on_dt(d, s), wide;

	check_scale(d, 1);
	wide = dtype_is_float(on_dt(d, x)) ? TN_F32 : TN_I32;
	i = on_cast_to(d, x, wide);
	zero = zeros_of(d, x, on_dt(d, x));
	if (zero >= 0 && wide == TN_I32)
		i = less_zero(d, x, 2, zero);
	else if (zero >= 0)
		i = row(d, "sub", A(i, on_cast_to(d, zero, wide)));
	s = exactly(d, s);
	y = row(d, "mul", A(on_cast_to(d, i, on_dt(d, s)), s));
	y = on_cast_to(d, y, t);
	note_scaled(d, y, i);
	on_set(d, 0, y);
}

/*
 * Computes a scale and a zero point that map the range of x, extended to
 * contain 0, to 0 .. 255; of zeros the scale is 1.
 */
void quant_dynamic(node *d, int32_t x, struct quantised *q)
{
	int32_t lo, hi, s, zero;
	tn_dtype t = on_dt(d, x);

	zero = on_scalar(d, t, 0);
	lo = row(d, "min", A(row(d, "reduce_min", A(x)), zero));
	hi = row(d, "max", A(row(d, "reduce_max", A(x)), zero));
	s = row(d, "div", A(row(d, "sub", A(hi, lo)), on_scalar(d, t, 255)));
	s = row(d, "where", A(row(d, "eq", A(hi, lo)), on_scalar(d, t, 1), s));
	q->scale = s;
	q->zero = rounded(d, row(d, "div", A(row(d, "neg", A(lo)), s)), -1,
		TN_U8);
	q->ints = rounded(d, row(d, "div", A(x, s)), q->zero, TN_U8);
}

void onnx_dynamic_quantize(node *d)
{
	struct quantised q;

	quant_dynamic(d, on_in(d, 0), &q);
	on_set(d, 0, q.ints);
	on_set(d, 1, q.scale);
	on_set(d, 2, q.zero);
}
