/* quant.h: private to onnx/: what quantised operators share. */
#ifndef ONNX_QUANT_H
#define ONNX_QUANT_H

#include "onnx/import.h"

/* x as `to`, by the attributes saturate and round_mode (op_cast.c) */
int32_t quant_cast(node *d, int32_t x, tn_dtype to);
/* op_matrix.c: */
/* Input i as i32, less its zero point (input `zero`, along an axis if many). */
int32_t quant_centred(node *d, int32_t i, int32_t zero, int32_t axis);
/* a sum of products as the result's integers; all but sum broadcast */
int32_t quant_rescale(node *d, int32_t sum, int32_t scale_x, int32_t scale_w,
	int32_t scale_y, int32_t zero_y, tn_dtype to);

#endif
