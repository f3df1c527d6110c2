/*
 * wire.h: private to onnx/: the protobuf wire format, read in place.
 *
 * A message is a run of fields (number, wire type, value). Nothing is copied:
 * a field of bytes points into the file. Every length is checked against what
 * is left before it is used, so no byte outside the message is ever read.
 *
 *     wire w = wire_of(x, bytes);
 *     wire_field f;
 *     while (wire_next(&w, &f))
 *             if (f.number == 1)
 *                     name = wire_text(&w, &f);      fields not asked for
 *                                                    are skipped
 */
#ifndef ONNX_WIRE_H
#define ONNX_WIRE_H

#include "base/base.h"

/* A part of a file; borrowed. */
typedef struct onnx_bytes {
	const uint8_t *at;
	size_t n;
} onnx_bytes;

typedef struct wire {
	arena *a;
	const char *file; /* for messages */
	const uint8_t *at, *end, *start;
} wire;

typedef struct wire_field {
	uint32_t number;
	uint32_t type;	  /* 0 varint, 1 eight bytes, 2 bytes, 5 four bytes */
	uint64_t value;	  /* of 0, 1 and 5 */
	onnx_bytes bytes; /* of 2 */
} wire_field;

wire wire_of(arena *a, const char *file, onnx_bytes b);
/* False at the end. Throws [onnx.wire] if there is not a valid field. */
bool wire_next(wire *w, wire_field *f);

/* The value as what the schema says; [onnx.wire] if it is of another kind. */
onnx_bytes wire_bytes(const wire *w, const wire_field *f);
const char *wire_text(const wire *w, const wire_field *f); /* [onnx.text] */
int64_t wire_int(const wire *w, const wire_field *f);
int32_t wire_int32(const wire *w, const wire_field *f);
float wire_float(const wire *w, const wire_field *f);

/* A growing list of numbers: fields one by one, or packed into bytes. */
typedef struct wire_ints {
	VEC(int64_t) v;
} wire_ints;
typedef struct wire_floats {
	VEC(float) v;
} wire_floats;
typedef struct wire_doubles {
	VEC(double) v;
} wire_doubles;
void wire_add_ints(const wire *w, const wire_field *f, wire_ints *to);
void wire_add_floats(const wire *w, const wire_field *f, wire_floats *to);
void wire_add_doubles(const wire *w, const wire_field *f, wire_doubles *to);

#endif
