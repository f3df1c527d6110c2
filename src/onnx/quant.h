/* quant.h: private to onnx/: what quantised operators share. */
#ifndef ONNX_QUANT_H
#define ONNX_QUANT_H

#include "onnx/import.h"

/* x as `to`, by the attributes saturate and round_mode (op_cast.c) */
int32_t quant_cast(node *d, int32_t x, tn_dtype to);

/* ---- op_quant.c ---- */

/*
 * Input i, a scale or zero point: one number, without axes, or n numbers, which
 * lie along an axis of r axes; r is 0: only one. Else [onnx.shape].
 */
int32_t quant_param(node *d, int32_t i, int32_t axis, int32_t r, int64_t n);
/* The same of a scale, which is one number. */
int32_t quant_scale(node *d, int32_t i);
/* .. or one for each index of an axis of matrix x, for a product of r axes */
int32_t quant_along(node *d, int32_t i, int32_t x, int32_t axis, int32_t r);

/*
 * Input i as i32, less its zero point (input `zero`): one number, or along an
 * axis if x has it, or of as many axes as x.
 */
int32_t quant_centred(node *d, int32_t i, int32_t zero, int32_t axis);
int32_t quant_less(node *d, int32_t x, int32_t zero);
/* Input i as floats, by a scale and a zero point of one number each. */
int32_t quant_float(node *d, int32_t i, int32_t scale, int32_t zero);
/*
 * x as integers, by input `scale`, and a zero point behind it that may be
 * missing.
 */
int32_t quant_ints(node *d, int32_t x, int32_t scale, tn_dtype to);

/* sums of products of integers times both scales, which broadcast */
int32_t quant_scaled(node *d, int32_t sum, int32_t scale_x, int32_t scale_w);
/* .. as integers by input y, a scale, and the zero point behind it */
int32_t quant_rescale(node *d, int32_t sum, int32_t scale_x, int32_t scale_w,
	int32_t y);

/* Floats as u8, by a scale and a zero point that are computed from them. */
struct quantised {
	int32_t ints, scale, zero;
};
void quant_dynamic(node *d, int32_t x, struct quantised *q);

#endif
