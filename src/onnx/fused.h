/* fused.h: private to onnx/: what operators that optimisers write share. */
#ifndef ONNX_FUSED_H
#define ONNX_FUSED_H

#include "onnx/import.h"

/* x after what the attribute activation names; without it: x (op_fused.c) */
int32_t fused_activation(node *d, int32_t x);
/*
 * Product of matrices; vectors become matrices, and the result loses their axis
 * again (op_matrix.c).
 */
int32_t on_product(node *d, int32_t x, int32_t y);

#endif
