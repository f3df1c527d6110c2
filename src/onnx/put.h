/*
 * put.h: private to onnx/: protobuf messages as they are written.
 *
 *     put_text(&node, 4, "Relu"); put_part(&graph, 1, &node);
 */
#ifndef ONNX_PUT_H
#define ONNX_PUT_H

#include "base/base.h"

void put_int(str *to, uint32_t field, int64_t v);
void put_float(str *to, uint32_t field, float v);
/* The tag and length of a field of n bytes. */
void put_head(str *to, uint32_t field, size_t n);
void put_text(str *to, uint32_t field, const char *text);
void put_part(str *to, uint32_t field, const str *part);
/* A ValueInfoProto: "name: tensor(elem)[shape]" */
void put_port(str *to, uint32_t field, const char *name, int32_t elem,
	int32_t rank, const int64_t *shape);

#endif
