/* scaled.h: private to onnx/: values that are integers times a scale. */
#ifndef ONNX_SCALED_H
#define ONNX_SCALED_H

#include "onnx/import.h"

/* The f32 value is ints * scale, each element rounded. */
typedef struct scaled {
	int32_t ints;  /* i32, of the same shape */
	int64_t most;  /* no element of ints has a greater magnitude */
	int32_t scale; /* f32: one number, or one for each index of an axis */
	int32_t axis;  /* that axis; -1: one number */
	double least, greatest; /* magnitudes of scales; normal numbers */
} scaled;

/*
 * Notes that v is ints * scale, if all scales are known now and are normal numbers.
 */
void onnx_scaled_note(onnx_import *x, int32_t v, int32_t ints, int64_t most,
	int32_t scale, int32_t axis);

/*
 * After a call of the row `name` that made v: v, or what is computed in its place,
 * a sum of products of integers that is then scaled. A result to which the row only
 * moves scaled values is itself noted.
 */
int32_t onnx_scaled_call(onnx_import *x, const char *name, int32_t v);

#endif
