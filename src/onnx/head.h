/* head.h: private to onnx/: a model written with other shapes (save.c). */
#ifndef ONNX_HEAD_H
#define ONNX_HEAD_H

#include "onnx/model.h"

/* Extents of the first output that are `old` become `new`. */
typedef struct onnx_resize {
	int64_t old, new;
	int32_t n_written; /* outputs so far */
} onnx_resize;

/* The bytes of the model with these initialisers, of any shape. */
onnx_bytes onnx_resized(arena *a, onnx_model *m, int32_t n,
	const onnx_new *new, onnx_resize *resize);

#endif
