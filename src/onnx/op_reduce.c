/*
 * op_reduce.c: reductions over axes, which are an attribute or, in later
 * opsets, an input.
 *
 *     ReduceSum(x, axes=[1], keepdims=1)   reduce_sum(x, axes=[1], keep=1)
 */
#include "onnx/ops.h"

void onnx_reduce(node *d)
{
	int32_t x = on_in(d, 0), r = on_rank_of(d, x);
	int64_t keep = on_int(d, "keepdims", 1) != 0;
	bool noop = on_int(d, "noop_with_empty_axes", 0) != 0;
	bool given = on_has(d, 1);
	list axes = on_list_new(d, 0, 0);

	if (given)
		axes = on_ints(d, 1);
	else
		given = on_list(d, "axes", &axes);
	if (axes.n == 0 && noop) {
		on_set(d, 0, row(d, "identity", A(x)));
		return;
	}
	if (axes.n == 0)
		axes = on_list_iota(d, r);
	for (int32_t i = 0; i < axes.n; i++)
		axes.at[i] = on_axis(d, axes.at[i], r);
	on_set(d, 0, rowa(d, d->op->text, A(x), INTS("axes", axes),
			     INT("keep", keep)));
}

/* The last of equals: the first one of the reversed axis. */
void onnx_arg_extreme(node *d)
{
	int32_t x = on_in(d, 0);
	int32_t axis = on_axis(d, on_int(d, "axis", 0), on_rank_of(d, x));
	int64_t keep = on_int(d, "keepdims", 1) != 0;
	bool last = on_int(d, "select_last_index", 0) != 0;
	int32_t k;

	if (last)
		x = rowa(d, "flip", A(x), INTS("axes", LIST(d, axis)));
	k = rowa(d, d->op->text, A(x), INT("axis", axis), INT("keep", keep));
	if (last)
		k = row(d, "sub", A(on_scalar(d, TN_I64,
					    (double)on_extent(d, x, axis) - 1),
					  k));
	on_set(d, 0, k);
}
