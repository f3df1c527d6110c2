/*
 * op_cast.c: conversions between element types.
 *
 * To the floats of a byte and less there are two ways: what is too large becomes
 * the greatest number, as the row `cast` does it, or with saturate = 0 infinity,
 * or NaN where there is none. To float8e8m0, powers of two, a number is rounded
 * up, as by `cast`, down, or to the nearest, halves up.
 */
#include "onnx/ops.h"
#include "onnx/quant.h"
#include "onnx/texts.h"

#include <math.h>

/* What the patterns of a float of 8 bits mean: found by looking at each. */
struct patterns {
	double most;  /* the greatest number */
	double limit; /* from here on numbers are rounded to what is behind it */
	bool open;    /* .. but not the limit itself */
	uint8_t over; /* pattern of inf, or of NaN */
};

static struct patterns patterns_of(tn_dtype t)
{
	struct patterns p = {.most = 0};
	double before = 0;
	bool has_inf = false;

	for (int32_t i = 0; i < 256; i++) {
		uint8_t bits = (uint8_t)i;
		double v = dtype_load_f64(t, &bits, 0);

		if (isfinite(v) && v > p.most) {
			before = p.most;
			p.most = v;
			p.open = (i & 1) == 0; /* a half goes to the even one */
		}
		if ((isnan(v) && !has_inf) || (isinf(v) && v > 0))
			p.over = bits;
		has_inf |= isinf(v) && v > 0;
	}
	p.limit = p.most + (p.most - before) / 2;
	if (t == TN_F8E8M0) { /* rounded before: to a power, or up */
		p.limit = p.most;
		p.open = true;
	}
	return p;
}

/* As cast, but what is too large becomes infinity or NaN. */
static int32_t not_saturated(node *d, int32_t x, tn_dtype to)
{
	struct patterns p = patterns_of(to);
	int32_t y = rowa(d, "bit_cast", A(on_cast_to(d, x, to)),
		DTYPE("dtype", TN_U8));
	int32_t over = on_scalar(d, TN_U8, p.over), is_over, minus;
	tn_dtype t = on_dt(d, x) == TN_F64 ? TN_F64 : TN_F32;

	x = on_cast_to(d, x, t);
	is_over = row(d, p.open ? "gt" : "ge",
		A(row(d, "abs", A(x)), on_scalar(d, t, p.limit)));
	if (p.over < 128 && to != TN_F8E8M0) {
		minus = row(d, "lt", A(x, on_scalar(d, t, 0)));
		over = row(d, "where", A(minus,
					       on_scalar(d, TN_U8, p.over + 128),
					       over));
	}
	y = row(d, "where", A(is_over, over, y));
	return rowa(d, "bit_cast", A(y), DTYPE("dtype", to));
}

/*
 * |x| as a power of two, by the bits of an f64, in which even the least power of
 * the type is a normal number.
 */
static int32_t to_power(node *d, int32_t x, bool nearest)
{
	int32_t v = on_cast_to(d, x, TN_F64), bits, is_nan;

	is_nan = row(d, "isnan", A(v));
	bits = rowa(d, "bit_cast", A(row(d, "abs", A(v))),
		DTYPE("dtype", TN_I64));
	if (nearest) /* half of the first bit of the fraction */
		bits = row(d, "add", A(bits, on_scalar(d, TN_I64, 0x1p51)));
	bits = row(d, "bit_and",
		A(bits, on_scalar(d, TN_I64, 0x1p63 - 0x1p52)));
	bits = rowa(d, "bit_cast", A(bits), DTYPE("dtype", TN_F64));
	return row(d, "where", A(is_nan, v, bits));
}

int32_t quant_cast(node *d, int32_t x, tn_dtype to)
{
	bool saturate = on_int(d, "saturate", 1) != 0;
	const char *round = on_text(d, "round_mode", "up");
	bool is_small = dtype_is_float(to) && dtype_size(to) == 1;

	if (strcmp(round, "up") != 0 && strcmp(round, "down") != 0 &&
		strcmp(round, "nearest") != 0)
		on_fail(d, "onnx.attr", "attribute round_mode is \"%.40s\"; "
			"accepted are up, down, nearest", round);
	if (to == TN_F8E8M0 && strcmp(round, "up") != 0)
		x = to_power(d, x, strcmp(round, "nearest") == 0);
	if (!is_small || saturate || dtype_bits(to) < 8 || on_dt(d, x) == to)
		return on_cast_to(d, x, to);
	return not_saturated(d, x, to);
}

/* Strings are the same, numbers become them, or they become numbers. */
static void cast_to(node *d, int64_t to)
{
	bool is_string = on_elem(d, 0) == ONNX_STRING;

	if (to == ONNX_STRING)
		on_set_elem(d, 0, is_string ? on_in(d, 0) : string_of_numbers(d, 0),
			ONNX_STRING);
	else if (is_string)
		on_set(d, 0, numbers_of_string(d, 0, on_elem_dtype(d, to)));
	else
		on_set(d, 0, quant_cast(d, on_in(d, 0), on_elem_dtype(d, to)));
}

void onnx_cast(node *d)
{
	if (!on_has_attr(d, "to"))
		on_fail(d, "onnx.attr", "attribute to is missing");
	cast_to(d, on_int(d, "to", 0));
}

void onnx_cast_like(node *d)
{
	on_in(d, 1); /* it must be there */
	cast_to(d, on_elem(d, 1));
}

void onnx_bit_cast(node *d)
{
	int64_t to = on_int(d, "to", 0);
	int32_t x = on_in(d, 0);
	tn_dtype t = on_dt(d, x), u = on_elem_dtype(d, to);

	if (dtype_bits(t) != dtype_bits(u))
		on_fail(d, "onnx.attr", "elements of %d bits cannot be read as "
			"%s of %d bits", (int)dtype_bits(t),
			onnx_elem_name((int32_t)to), (int)dtype_bits(u));
	if (t != u)
		x = rowa(d, "bit_cast", A(x), DTYPE("dtype", u));
	on_set(d, 0, x);
}
