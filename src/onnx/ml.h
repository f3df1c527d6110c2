/* ml.h: private to onnx/: what the operators of ai.onnx.ml share (op_ml.c). */
#ifndef ONNX_ML_H
#define ONNX_ML_H

#include "onnx/import.h"

typedef struct reals {
	int32_t n;
	const double *at;
} reals;

/*
 * The numbers of attribute `name`, or of the tensor `name` with _as_tensor
 * behind it; none: n is 0.
 */
reals ml_reals(node *d, const char *name);
/* The numbers of a tensor that is an attribute, which must be there. */
reals ml_tensor(node *d, const char *name);
/* Input i as floats [n, features]; a list is one row. */
int32_t ml_rows(node *d, int32_t i);
/* Scores [n, c] after NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT. */
int32_t ml_transform(node *d, int32_t scores, const char *name);
/* The labels of classes, at least two: ints, or numbers of strings. */
list ml_labels(node *d, const char *ints, const char *strings);
/* [n]: the label of the largest score of each row. */
int32_t ml_label(node *d, int32_t scores, list labels);
/* Output 0: labels, which are strings if that attribute is there. */
void ml_set_label(node *d, int32_t v, const char *strings);

#endif
