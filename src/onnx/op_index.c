/*
 * op_index.c: gathers, scatters, and operators whose results are indices.
 *
 * Negative indices count from the end: a `where` converts them, unless they are
 * known not to occur. The number of results of NonZero, Compress, Unique and
 * NonMaxSuppression depends on data, and is computed during the import: the row
 * gives the longest possible result, and a `narrow` shortens it.
 */
#include "onnx/ops.h"

#include <math.h>

void onnx_gather(node *d)
{
	int32_t x = on_in(d, 0), ids = on_in(d, 1);
	int32_t axis = on_axis(d, on_int(d, "axis", 0), on_rank_of(d, x));

	ids = on_wrap_index(d, ids, on_extent(d, x, axis));
	on_set(d, 0, rowa(d, "take", A(x, ids), INT("axis", axis)));
}

/* x cut to the extents of ids along all axes but one, as take_along needs. */
static int32_t cut_to(node *d, int32_t x, int32_t ids, int32_t axis)
{
	if (on_rank_of(d, x) != on_rank_of(d, ids))
		on_fail(d, "onnx.shape", "data and indices have %d and %d axes",
			(int)on_rank_of(d, x), (int)on_rank_of(d, ids));
	for (int32_t i = 0; i < on_rank_of(d, x); i++) {
		if (i == axis)
			continue;
		if (on_extent(d, ids, i) > on_extent(d, x, i))
			on_fail(d, "onnx.shape", "axis %d of the indices is "
				"longer than that of the data", (int)i);
		x = on_narrow(d, x, i, 0, on_extent(d, ids, i));
	}
	return x;
}

void onnx_gather_elements(node *d)
{
	int32_t x = on_in(d, 0), ids = on_in(d, 1);
	int32_t axis = on_axis(d, on_int(d, "axis", 0), on_rank_of(d, x));

	x = cut_to(d, x, ids, axis);
	ids = on_wrap_index(d, ids, on_extent(d, x, axis));
	on_set(d, 0, rowa(d, "take_along", A(x, ids), INT("axis", axis)));
}

/*
 * Makes the indices nonnegative. The last axis of ids lists indices of axes
 * `first` and later of x.
 */
static int32_t wrap_tuples(node *d, int32_t ids, int32_t x, int32_t first)
{
	int32_t last = on_rank_of(d, ids) - 1, negative;
	int64_t n = last < 0 ? 0 : on_extent(d, ids, last);
	list size;

	if (last < 0 || first + n > on_rank_of(d, x))
		on_fail(d, "onnx.shape", "the indices select %lld axes, but "
			"the data has %d",
			(long long)n, (int)on_rank_of(d, x));
	size = on_list_from(d, (int32_t)n, on_ty(d, x)->shape + first);
	ids = on_cast_to(d, ids, TN_I64);
	negative = row(d, "lt", A(ids, on_scalar(d, TN_I64, 0)));
	return row(d, "where", A(negative,
				       row(d, "add", A(ids, on_const_ints(d,
								      size))),
				       ids));
}

/*
 * Batch axes become indices, too: the index along each of them is prepended to
 * the tuples.
 */
void onnx_gather_nd(node *d)
{
	int32_t x = on_in(d, 0), ids = on_in(d, 1), last;
	int32_t rank = on_rank_of(d, x);
	int64_t n_batch = on_bound(d, "batch_dims", on_int(d, "batch_dims", 0),
		0, rank > 0 ? rank - 1 : 0);
	list shape;

	ids = wrap_tuples(d, ids, x, (int32_t)n_batch);
	last = on_rank_of(d, ids) - 1;
	on_bound(d, "batch_dims", n_batch, 0, last);
	shape = on_shape_of(d, ids);
	shape.at[last] = 1;
	for (int32_t i = (int32_t)n_batch - 1; i >= 0; i--) {
		int32_t at = rowa(d, "iota", NO_ARGS, INTS("shape", shape),
			INT("axis", i), DTYPE("dtype", TN_I64));

		ids = rowa(d, "concat", A(at, ids), INT("axis", last));
	}
	on_set(d, 0, row(d, "gather_nd", A(ids, x)));
}

/* ---- scatter ---- */

/* The reduction, as the end of the row's name: add, mul, ...; "" for none. */
static const char *reduction(node *d)
{
	const char *r = on_text(d, "reduction", "none");

	if (strcmp(r, "none") != 0 && strcmp(r, "add") != 0 &&
		strcmp(r, "mul") != 0 && strcmp(r, "max") != 0 &&
		strcmp(r, "min") != 0)
		on_fail(d, "onnx.attr", "reduction \"%.50s\" is not "
			"supported; accepted are none, add, mul, max and min",
			r);
	return r;
}

/*
 * Each scatter is a scatter of slices into a matrix: x (n, r), ids (j), u (j,
 * r). Its row is one for set, add, mul, max or min.
 */
static int32_t scatter_rows(
	node *d, const char *how, int32_t x, int32_t ids, int32_t u)
{
	const char *name = arena_printf(d->x->a, "scatter_%s",
		strcmp(how, "none") == 0 ? "set" : how);

	return row(d, name, A(x, ids, u));
}

/* The element number in x of each element that ids selects along one axis. */
static int32_t flat_places(node *d, int32_t x, int32_t ids, int32_t axis)
{
	list shape = on_shape_of(d, ids);
	int64_t stride = 1;
	int32_t sum = -1;

	for (int32_t i = on_rank_of(d, x) - 1; i >= 0; i--) {
		int32_t at = i == axis
			? ids
			: rowa(d, "iota", NO_ARGS, INTS("shape", shape),
				  INT("axis", i), DTYPE("dtype", TN_I64));
		int32_t part = row(d, "mul",
			A(at, on_scalar(d, TN_I64, (double)stride)));

		sum = sum < 0 ? part : row(d, "add", A(sum, part));
		stride *= on_extent(d, x, i);
	}
	return sum;
}

void onnx_scatter_elements(node *d)
{
	int32_t x = on_in(d, 0), ids = on_in(d, 1), u = on_in(d, 2), v;
	int32_t axis = on_axis(d, on_int(d, "axis", 0), on_rank_of(d, x));
	list n = LIST(d, on_numel(d, ids)), all = LIST(d, on_numel(d, x));

	cut_to(d, x, ids, axis);
	ids = on_cast_to(d, on_wrap_index(d, ids, on_extent(d, x, axis)), TN_I64);
	ids = on_reshape(d, flat_places(d, x, ids, axis), n);
	v = scatter_rows(d, reduction(d), on_reshape(d, x, all), ids,
		on_reshape(d, u, n));
	on_set(d, 0, on_reshape(d, v, on_shape_of(d, x)));
}

void onnx_scatter_nd(node *d)
{
	int32_t x = on_in(d, 0), ids = on_in(d, 1), u = on_in(d, 2), v;
	int32_t k, last;
	int64_t places = 1, rest = 1, count = 1;
	list stride;

	ids = wrap_tuples(d, ids, x, 0);
	last = on_rank_of(d, ids) - 1;
	k = (int32_t)on_extent(d, ids, last);
	stride = on_list_new(d, k, 1);
	for (int32_t i = k - 1; i >= 0; i--) {
		stride.at[i] = places;
		places *= on_extent(d, x, i);
	}
	for (int32_t i = k; i < on_rank_of(d, x); i++)
		rest *= on_extent(d, x, i);
	for (int32_t i = 0; i < last; i++)
		count *= on_extent(d, ids, i);
	ids = row(d, "mul", A(ids, on_const_ints(d, stride)));
	ids = rowa(d, "reduce_sum", A(ids), INTS("axes", LIST(d, last)));
	v = scatter_rows(d, reduction(d), on_reshape(d, x, LIST(d, places, rest)),
		on_reshape(d, ids, LIST(d, count)),
		on_reshape(d, u, LIST(d, count, rest)));
	on_set(d, 0, on_reshape(d, v, on_shape_of(d, x)));
}

/* ---- one-hot, running sums ---- */

void onnx_one_hot(node *d)
{
	int32_t ids = on_in(d, 0), values = on_in(d, 2), hot, off, on;
	double given = on_host_real(d, 1); /* the standard allows any type */
	int64_t depth = given >= 0 && given < 0x1p33 ? (int64_t)given : -1;
	int32_t r = on_rank_of(d, ids) + 1;
	int32_t axis = on_axis(d, on_int(d, "axis", -1), r);
	list none = on_list_new(d, 0, 0);

	on_bound(d, "depth", depth, 0, INT64_C(1) << 32);
	ids = on_wrap_index(d, on_cast_to(d, ids, TN_I64), depth);
	hot = rowa(d, "one_hot", A(ids), INT("depth", depth),
		DTYPE("dtype", TN_BOOL));
	hot = on_move_axis(d, hot, r - 1, axis);
	off = on_reshape(d, on_narrow(d, values, 0, 0, 1), none);
	on = on_reshape(d, on_narrow(d, values, 0, 1, 1), none);
	on_set_elem(d, 0, row(d, "where", A(hot, on, off)), on_elem(d, 2));
}

void onnx_cumsum(node *d)
{
	static const char *const rows[] = {"cumsum", "cumsum_exclusive",
		"cumsum_reverse", "cumsum_reverse_exclusive"};
	int32_t x = on_in(d, 0);
	int32_t axis = on_axis(d, on_host_int(d, 1), on_rank_of(d, x));
	int32_t which = (on_int(d, "exclusive", 0) != 0 ? 1 : 0) +
		(on_int(d, "reverse", 0) != 0 ? 2 : 0);

	on_set(d, 0, rowa(d, rows[which], A(x), INT("axis", axis)));
}

/* exclusive: behind a 1, without the last element */
void onnx_cumprod(node *d)
{
	int32_t x = on_in(d, 0), r = on_rank_of(d, x);
	int32_t axis = on_axis(d, on_host_int(d, 1), r);
	bool back = on_int(d, "reverse", 0) != 0;
	bool exclusive = on_int(d, "exclusive", 0) != 0;
	int64_t n = on_extent(d, x, axis);

	if (back)
		x = rowa(d, "flip", A(x), INTS("axes", LIST(d, axis)));
	if (exclusive && n > 0) {
		list lo = on_list_new(d, r, 0), hi = on_list_new(d, r, 0);

		lo.at[axis] = 1;
		x = rowa(d, "pad", A(on_narrow(d, x, axis, 0, n - 1)),
			INTS("lo", lo), INTS("hi", hi), REAL("value", 1));
	}
	x = rowa(d, "cumprod", A(x), INT("axis", axis));
	if (back)
		x = rowa(d, "flip", A(x), INTS("axes", LIST(d, axis)));
	on_set(d, 0, x);
}

/* Writes steps of a sequence into a cache, from an index of each of the batch. */
void onnx_tensor_scatter(node *d)
{
	int32_t x = on_in(d, 0), u = on_in(d, 1), r = on_rank_of(d, x), at;
	int32_t axis = on_axis(d, on_int(d, "axis", -2), r);
	const char *mode = on_text(d, "mode", "linear");
	bool around = !strcmp(mode, "circular");

	if (!around && strcmp(mode, "linear") != 0)
		on_fail(d, "onnx.attr", "mode is \"%.50s\"; accepted are linear "
			"and circular", mode);
	if (axis == 0 || on_rank_of(d, u) != r)
		on_fail(d, "onnx.shape", "the axis %d of a cache of %d axes and an "
			"update of %d: the first axis is the batch",
			(int)axis, (int)r, (int)on_rank_of(d, u));
	at = rowa(d, "iota", NO_ARGS, INTS("shape", on_shape_of(d, u)),
		INT("axis", axis), DTYPE("dtype", TN_I64));
	if (on_has(d, 2))
		at = row(d, "add", A(at, on_along(d, on_cast_to(d, on_in(d, 2),
							TN_I64), 0, r)));
	if (around)
		at = row(d, "mod", A(at, on_scalar(d, TN_I64,
					   (double)on_extent(d, x, axis))));
	on_set(d, 0, rowa(d, "put_along", A(x, at, u), INT("axis", axis)));
}

/* Step t of a sequence of length n is step n - 1 - t of the input. */
void onnx_reverse_sequence(node *d)
{
	int32_t x = on_in(d, 0), n = on_cast_to(d, on_in(d, 1), TN_I64);
	int32_t r = on_rank_of(d, x), at, back;
	int32_t batch = on_axis(d, on_int(d, "batch_axis", 1), r);
	int32_t time = on_axis(d, on_int(d, "time_axis", 0), r);

	at = rowa(d, "iota", NO_ARGS, INTS("shape", on_shape_of(d, x)),
		INT("axis", time), DTYPE("dtype", TN_I64));
	n = on_along(d, n, batch, r);
	back = row(d, "sub", A(row(d, "sub", A(n, on_scalar(d, TN_I64, 1))), at));
	at = row(d, "where", A(row(d, "lt", A(at, n)), back, at));
	on_set(d, 0, rowa(d, "take_along", A(x, at), INT("axis", time)));
}

/* ---- sorting and selecting ---- */

void onnx_topk(node *d)
{
	int32_t x = on_in(d, 0), v;
	int32_t axis = on_axis(d, on_int(d, "axis", -1), on_rank_of(d, x));
	int64_t k = on_has(d, 1) ? on_host_int(d, 1) : on_int(d, "k", 0);
	int64_t largest = on_int(d, "largest", 1) != 0;

	/* if it is false, any order is allowed */
	on_ignore(d, "sorted");
	on_bound(d, "k", k, 0, on_extent(d, x, axis));
	v = rowa(d, "topk", A(x), INT("axis", axis), INT("count", k),
		INT("largest", largest));
	on_set(d, 0, v);
	on_set_elem(d, 1, on_result(d, v, 1), onnx_dtype_elem(TN_I64));
}

/* Reads a count that determines a shape. */
static int64_t count_of(node *d, int32_t v)
{
	return on_host_ints(d, v).at[0];
}

/* (count, rank): the indices of the elements that are not 0 */
static int32_t nonzero(node *d, int32_t x)
{
	int32_t k = row(d, "nonzero", A(x));

	return on_narrow(d, k, 0, 0, count_of(d, on_result(d, k, 1)));
}

void onnx_nonzero(node *d)
{
	int32_t k = nonzero(d, on_in(d, 0));

	on_set_elem(d, 0, on_transpose(d, k, LIST(d, 1, 0)),
		onnx_dtype_elem(TN_I64));
}

void onnx_compress(node *d)
{
	int32_t x = on_in(d, 0), which = on_in(d, 1), axis = 0;
	int32_t places;

	if (on_has_attr(d, "axis"))
		axis = on_axis(d, on_int(d, "axis", 0), on_rank_of(d, x));
	else
		x = on_reshape(d, x, LIST(d, on_numel(d, x)));
	places = nonzero(d, which);
	places = on_reshape(d, places, LIST(d, on_extent(d, places, 0)));
	on_set(d, 0, rowa(d, "take", A(x, places), INT("axis", axis)));
}

void onnx_unique(node *d)
{
	int32_t x = on_in(d, 0), v, part[4], order;
	bool by_axis = on_has_attr(d, "axis");
	int32_t axis = 0;
	int64_t n;

	if (by_axis) {
		axis = on_axis(d, on_int(d, "axis", 0), on_rank_of(d, x));
		v = rowa(d, "unique_slices", A(x), INT("axis", axis));
	} else {
		x = on_reshape(d, x, LIST(d, on_numel(d, x)));
		v = row(d, "unique", A(x));
	}
	n = count_of(d, on_result(d, v, by_axis ? 3 : 4));
	for (int32_t i = 0; i < 3; i++)
		part[i + 1] = on_result(d, v, by_axis ? i : i + 1);
	part[1] = on_narrow(d, part[1], 0, 0, n);
	part[3] = on_narrow(d, part[3], 0, 0, n);
	if (on_int(d, "sorted", 1) == 0) {
		/* in order of first occurrence */
		int32_t place, rank;

		order = rowa(d, "argsort", A(part[1]), INT("axis", 0));
		rank = rowa(d, "argsort", A(order), INT("axis", 0));
		part[1] = rowa(d, "take", A(part[1], order), INT("axis", 0));
		part[3] = rowa(d, "take", A(part[3], order), INT("axis", 0));
		place = rowa(d, "take", A(rank, part[2]), INT("axis", 0));
		part[2] = place;
	}
	part[0] = rowa(d, "take", A(x, part[1]), INT("axis", axis));
	on_set(d, 0, part[0]);
	for (int32_t i = 1; i < 4; i++)
		on_set_elem(d, i, part[i], onnx_dtype_elem(TN_I64));
}

void onnx_nms(node *d)
{
	int32_t boxes = on_in(d, 0), scores = on_in(d, 1), k, iou, least;
	int64_t most = on_has(d, 2) ? on_host_int(d, 2) : 0;
	list none = on_list_new(d, 0, 0);
	tn_dtype t = on_dt(d, boxes);

	iou = on_has(d, 3) ? on_reshape(d, on_in(d, 3), none) : on_scalar(d, t, 0);
	/* the default is below every score */
	least = on_has(d, 4) ? on_reshape(d, on_in(d, 4), none)
			     : on_scalar(d, t, -(double)INFINITY);
	on_bound(d, "max_output_boxes_per_class", most, 0, INT64_MAX);
	/* at most the number of boxes: exporters write 2^63 - 1 for "all" */
	if (on_rank_of(d, boxes) == 3 && most > on_extent(d, boxes, 1))
		most = on_extent(d, boxes, 1);
	k = rowa(d, "non_max_suppression", A(boxes, scores, iou, least),
		INT("most", most),
		INT("center", on_int(d, "center_point_box", 0) != 0));
	on_set_elem(d, 0, on_narrow(d, k, 0, 0, count_of(d, on_result(d, k, 1))),
		onnx_dtype_elem(TN_I64));
}
