/*
 * tape.h: interface of tape/: gradients of tensors, by a walk from cotangents to
 * the leaves over the calls that were recorded.
 */
#ifndef TAPE_H
#define TAPE_H

#include "value/value.h"

/* Makes x a leaf: gradients with respect to it are collected. */
void tensor_requires_grad(tensors *t, tensor *x);
/*
 * Adds to the gradient of every leaf that x depends on. seed NULL: 1, if x is a
 * single number. Unless keep, frees what is needed only for this gradient.
 */
void tensor_backward(tensors *t, tensor *x, tensor *seed, bool keep);
/* grad[i]: gradient of the sum of out * seed with respect to in[i]; it can be
 * differentiated again. */
void tensor_gradients(tensors *t, int32_t n, tensor *const *out,
	tensor *const *seed, int32_t m, tensor *const *in, tensor **grad);
tensor *tensor_grad(tensors *t, tensor *x); /* NULL: no gradient was collected */
void tensor_zero_grad(tensors *t, tensor *x);
void tensor_no_grad(tensors *t, int32_t step); /* 1: enter, -1: leave */

#endif
