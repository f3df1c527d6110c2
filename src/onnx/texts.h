/* texts.h: private to onnx/: what operators on characters share (op_string.c). */
#ifndef ONNX_TEXTS_H
#define ONNX_TEXTS_H

#include "onnx/import.h"

/* A tensor of strings whose elements are known. */
typedef struct texts {
	ir_type type;
	int64_t n;
	const int32_t *at; /* [n]: numbers */
} texts;
texts texts_in(node *d, int32_t i); /* [onnx.type] [onnx.string] */
/* The string of element i; counts its bytes as steps: [onnx.size] */
onnx_bytes text_at(const node *d, const texts *t, int64_t i);
/* Counts steps of evaluation: [onnx.size] beyond 2^31 of the model. */
void texts_count(const node *d, int64_t steps);

/* Input i as strings, or its strings as numbers: i32 of the strings' numbers, or
 * of element type to. Throws [onnx.elem] for bools, [onnx.string]. */
int32_t string_of_numbers(node *d, int32_t i);
int32_t numbers_of_string(node *d, int32_t i, tn_dtype to);

#endif
