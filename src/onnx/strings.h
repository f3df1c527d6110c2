/*
 * strings.h: private to onnx/: the strings of a model.
 *
 *     "a", "b", "a"  ->  0, 1, 0
 *
 * A tensor of strings is one of i32: the numbers of its strings, each of which is
 * kept once. Equal strings have equal numbers, so what moves or compares strings is
 * what moves or compares numbers, and kernels know nothing of strings. What
 * looks at characters is computed while a program is built.
 */
#ifndef ONNX_STRINGS_H
#define ONNX_STRINGS_H

#include "onnx/wire.h"

enum { ONNX_STRING = 8 }; /* ONNX's number of the element type */

typedef struct onnx_strings onnx_strings;
onnx_strings *onnx_strings_new(arena *a);
/* The number of a string, which is copied. Throws [onnx.string]: it is not UTF-8;
 * [onnx.size]: there are too many. */
int32_t onnx_string(onnx_strings *s, const char *file, onnx_bytes text);
int32_t onnx_string_n(const onnx_strings *s);
/* A byte 0 follows it. */
onnx_bytes onnx_string_at(const onnx_strings *s, int32_t number);

/* The next character of valid UTF-8; moves *at behind it. */
uint32_t onnx_utf8(const uint8_t **at);

#endif
