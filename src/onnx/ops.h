/* ops.h: private to onnx/: the builders that onnx_ops.def names. */
#ifndef ONNX_OPS_H
#define ONNX_OPS_H

#include "onnx/import.h"

/* Several rows may name one builder: declared as often, which C allows. */
#define OP(name, since, builder, text) void onnx_##builder(node *d);
#define MOVES(name, since, builder, text, of) OP(name, since, builder, text)
#define READS OP
#define DOMAIN(name)
#include "onnx/onnx_ops.def"
#undef OP
#undef MOVES
#undef READS
#undef DOMAIN

#endif
