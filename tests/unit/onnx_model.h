/*
 * onnx_model.h: parses models of onnx_writer.h.
 */
#ifndef ONNX_MODEL_H
#define ONNX_MODEL_H

#include "unit.h"

#include "onnx_writer.h"

#include "onnx/onnx.h"

#include <stdlib.h>

/* bytes in a block of their own, so that ASan sees an overrun */
static inline onnx_model *parse_model(arena *a, const pb *bytes, const char *folder)
{
	unsigned char *copy = malloc(bytes->s.n > 0 ? bytes->s.n : 1);

	assert_non_null(copy);
	arena_defer(a, free, copy);
	memcpy(copy, bytes->s.at, bytes->s.n);
	return onnx_parse(a, "m.onnx", folder, copy, bytes->s.n);
}

#endif
