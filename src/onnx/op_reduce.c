/*
 * op_reduce.c: reductions. The axes are an attribute or, in later opsets, an
 * input.
 *
 *     ReduceSum(x, axes=[1], keepdims=1)   reduce_sum(x, axes=[1], keep=1)
 *
 * The text names the row, and the row for booleans if there is one.
 */
#include "onnx/ops.h"

/* Does the row accept only floats? Then integers are computed as f64. */
static bool wants_floats(const node *d, const char *name)
{
	const ir_row *r = ir_table_find(d->x->p->table, name);

	return strcmp(ir_row_param(r, 0)->dtype_class, "float") == 0;
}

static int32_t reduced(node *d, int32_t x, list axes, int64_t keep)
{
	const char *text = d->op->text, *second = strchr(text, ' ');
	const char *name = arena_strndup(d->x->a, text, strcspn(text, " "));
	tn_dtype t = on_dt(d, x);

	if (second != NULL && t == TN_BOOL)
		name = second + 1;
	if (!dtype_is_float(t) && t != TN_BOOL && wants_floats(d, name))
		x = on_cast_to(d, x, TN_F64);
	x = rowa(d, name, A(x), INTS("axes", axes), INT("keep", keep));
	return on_cast_to(d, x, t);
}

/* Without axes each element is reduced by itself: |x|, x * x, log(x) .. */
static int32_t each_alone(node *d, int32_t x)
{
	list shape = on_shape_of(d, x);

	x = on_reshape(d, x, LIST(d, on_numel(d, x), 1));
	return on_reshape(d, reduced(d, x, LIST(d, 1), 0), shape);
}

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
		on_set(d, 0, each_alone(d, x));
		return;
	}
	if (axes.n == 0)
		axes = on_list_iota(d, r);
	for (int32_t i = 0; i < axes.n; i++)
		axes.at[i] = on_axis(d, axes.at[i], r);
	on_set(d, 0, reduced(d, x, axes, keep));
}

/*
 * select_last_index: the last of equal elements is the first along the reversed
 * axis.
 */
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
	on_set_elem(d, 0, k, onnx_dtype_elem(TN_I64));
}
