/*
 * net_ref.h: a net of ONNX, computed picture by picture with plain loops: what
 * compiled nets are compared with. Of Tenon it uses the file reader alone.
 *
 *     net_ref *r = net_ref_new(a, model, true);   weights are drawn
 *     const net_array *y = net_ref_run(r, picture);
 *     net_ref_const(r, "conv1_w")->data          a weight, by its name
 *
 * A ConstantOfShape of two and more elements is a weight: filters are drawn
 * around 0 so that values keep their size from layer to layer, vectors between
 * 0.5 and 1.5. A Softmax that makes the output of the net is left out.
 */
#ifndef NET_REF_H
#define NET_REF_H

#include "onnx/model.h"

typedef struct net_array {
	int32_t rank;
	int64_t shape[TN_MAX_RANK], n;
	float *data;
	bool is_const;
} net_array;

typedef struct net_ref net_ref;

/* drawn false: constants are what the file says, and Softmax is computed. */
net_ref *net_ref_new(arena *a, onnx_model *m, bool drawn);
/* The output for one picture; borrowed until the next run. */
const net_array *net_ref_run(net_ref *r, const float *picture);
/* NULL: there is no such constant (known after the first run). */
const net_array *net_ref_const(net_ref *r, const char *name);

#endif
