/*
 * op_shape.c: operators that move elements, and those that compute shapes.
 *
 *     Shape(x) of f32[2,3]         the constant [2,3]; does not read x
 *     Reshape(x, [0,-1])           reshape(x, shape=[2,3])
 *     Slice(x, [1], [-1], [0])     slice(x, axes=[0], start=[1], count=[n-2])
 */
#include "onnx/ops.h"

/* ---- shapes as values ---- */

void onnx_shape(node *d)
{
	list s = on_shape_of(d, on_in(d, 0));
	int64_t start = on_int(d, "start", 0), end = on_int(d, "end", s.n);

	start = start < 0 ? start + s.n : start;
	end = end < 0 ? end + s.n : end;
	start = start < 0 ? 0 : start > s.n ? s.n : start;
	end = end < start ? start : end > s.n ? s.n : end;
	on_set_elem(d, 0,
		on_const_ints(d, on_list_from(d, (int32_t)(end - start),
				      s.at + start)),
		onnx_dtype_elem(TN_I64));
}

void onnx_size(node *d)
{
	int64_t *n = on_list_new(d, 1, on_numel(d, on_in(d, 0))).at;

	on_set_elem(d, 0, on_constant(d, TN_I64, on_list_new(d, 0, 0), n),
		onnx_dtype_elem(TN_I64));
}

static int32_t tensor_const(node *d, const onnx_tensor *t)
{
	onnx_array x = onnx_model_array(d->x->m, d->x->where, t);

	return onnx_const(d->x, &x.type, x.data);
}

void onnx_constant(node *d)
{
	const onnx_tensor *t = on_tensor(d, "value");
	const wire_floats *reals = on_reals(d, "value_floats");
	list none = on_list_new(d, 0, 0), ints;

	if (t != NULL) {
		on_set_elem(d, 0, tensor_const(d, t), t->elem);
	} else if (on_list(d, "value_ints", &ints)) {
		on_set(d, 0, on_const_ints(d, ints));
	} else if (on_has_attr(d, "value_int")) {
		ints = LIST(d, on_int(d, "value_int", 0));
		on_set(d, 0, on_constant(d, TN_I64, none, ints.at));
	} else if (reals != NULL) {
		on_set(d, 0, on_constant(d, TN_F32, LIST(d, reals->v.n),
				     reals->v.at));
	} else if (on_has_attr(d, "value_float")) {
		on_set(d, 0, on_scalar(d, TN_F32, on_real(d, "value_float", 0)));
	} else if (on_has_attr(d, "value_string")) {
		ints = LIST(d, on_string(d, on_text(d, "value_string", "")));
		on_set_elem(d, 0, on_cast_to(d, on_constant(d, TN_I64, none,
			ints.at), TN_I32), ONNX_STRING);
	} else if (on_has_attr(d, "value_strings")) {
		on_set_elem(d, 0, on_cast_to(d, on_const_ints(d, on_strings(d,
			"value_strings")), TN_I32), ONNX_STRING);
	} else {
		on_fail(d, "onnx.attr", "the kind of its value is not "
					"supported (sparse)");
	}
}

/* Checks a list of extents: none may be negative. */
static list extents(node *d, list s)
{
	for (int32_t i = 0; i < s.n; i++)
		if (s.at[i] < 0)
			on_fail(d, "onnx.shape", "a shape has the extent %lld",
				(long long)s.at[i]);
	if (s.n > TN_MAX_RANK)
		on_fail(d, "onnx.rank", "a shape has %d axes; at most 8 are "
			"possible", (int)s.n);
	return s;
}

void onnx_constant_of_shape(node *d)
{
	const onnx_tensor *t = on_tensor(d, "value");
	list shape = extents(d, on_ints(d, 0));
	int32_t one;

	if (t == NULL) {
		on_set_elem(d, 0, on_filled(d, TN_F32, shape, 0), 1);
		return;
	}
	one = tensor_const(d, t);
	if (on_numel(d, one) != 1)
		on_fail(d, "onnx.shape", "the value is not a single number");
	if (dtype_is_float(on_dt(d, one))) {
		double v = dtype_load_f64(
			on_dt(d, one), onnx_host(d->x, one), 0);

		on_set_elem(d, 0, on_filled(d, on_dt(d, one), shape, v),
			t->elem);
		return;
	}
	one = on_reshape(d, one, on_list_new(d, 0, 0));
	on_set_elem(d, 0, rowa(d, "broadcast_to", A(one), INTS("shape", shape)),
		t->elem);
}

void onnx_range(node *d)
{
	int32_t start = on_in(d, 0), delta = on_in(d, 2);
	tn_dtype t = on_dt(d, start);
	double from, to, step, n;
	int32_t v;

	from = on_host_real(d, 0);
	to = on_host_real(d, 1);
	step = on_host_real(d, 2);
	if (step == 0)
		on_fail(d, "onnx.attr", "delta is 0; accepted are other "
			"numbers");
	n = (to - from) / step;
	if (!(n < 1e12))
		on_fail(d, "onnx.size", "a range of %g numbers is too long", n);
	n = n > 0 ? n : 0;
	n = n > (double)(int64_t)n ? (double)(int64_t)n + 1 : n;
	v = rowa(d, "arange", NO_ARGS, INT("n", (int64_t)n), DTYPE("dtype", t));
	v = row(d, "mul", A(v, on_reshape(d, delta, on_list_new(d, 0, 0))));
	on_set(d, 0, row(d, "add", A(v, on_reshape(d, start,
						on_list_new(d, 0, 0)))));
}

void onnx_eye_like(node *d)
{
	int32_t x = on_in(d, 0);
	tn_dtype t = on_has_attr(d, "dtype")
		? on_elem_dtype(d, on_int(d, "dtype", 1))
		: on_dt(d, x);

	if (on_rank_of(d, x) != 2)
		on_fail(d, "onnx.shape", "the input is not a matrix");
	on_set(d, 0, rowa(d, "eye", NO_ARGS, INT("n", on_extent(d, x, 0)),
			     INT("m", on_extent(d, x, 1)),
			     INT("k", on_int(d, "k", 0)), DTYPE("dtype", t)));
}

/* ---- other shapes ---- */

static void reshape_to(node *d, list s, bool zero_is_zero)
{
	int32_t x = on_in(d, 0), open = -1;
	int64_t n = 1;

	for (int32_t i = 0; i < s.n; i++) {
		if (s.at[i] == 0 && !zero_is_zero && i < on_rank_of(d, x))
			s.at[i] = on_extent(d, x, i);
		if (s.at[i] == -1 && open < 0)
			open = i;
		else if (s.at[i] < 0 || !mul_ok(n, s.at[i], &n))
			on_fail(d, "onnx.shape", "the shape has an extent %lld",
				(long long)s.at[i]);
	}
	if (open >= 0) {
		if (n == 0 || on_numel(d, x) % n != 0)
			on_fail(d, "onnx.shape", "%lld elements are not a "
				"multiple of %lld",
				(long long)on_numel(d, x), (long long)n);
		s.at[open] = on_numel(d, x) / n;
	}
	s = extents(d, s);
	/*
	 * the model was exported for a batch of 1, and is built for another
	 * batch
	 */
	if (d->x->is_batched && open < 0 && s.n > 0 && s.at[0] == 1 &&
		on_rank_of(d, x) > 0 && on_numel(d, x) != n &&
		on_numel(d, x) == n * on_extent(d, x, 0))
		s.at[0] = on_extent(d, x, 0);
	on_set(d, 0, rowa(d, "reshape", A(x), INTS("shape", s)));
}

void onnx_reshape_attr(node *d)
{
	list s = on_list_new(d, 0, 0);

	on_list(d, "shape", &s);
	reshape_to(d, s, false);
}

void onnx_reshape(node *d)
{
	reshape_to(d, on_ints(d, 1), on_int(d, "allowzero", 0) != 0);
}

void onnx_flatten(node *d)
{
	int32_t x = on_in(d, 0), r = on_rank_of(d, x);
	int64_t axis = on_int(d, "axis", 1);

	axis = axis < 0 ? axis + r : axis;
	on_bound(d, "axis", axis, 0, r);
	on_set(d, 0, rowa(d, "flatten", A(x), INT("axis", axis)));
}

void onnx_transpose(node *d)
{
	int32_t x = on_in(d, 0), r = on_rank_of(d, x);
	list perm;

	if (!on_list(d, "perm", &perm)) {
		perm = on_list_new(d, r, 0);
		for (int32_t i = 0; i < r; i++)
			perm.at[i] = r - 1 - i;
	}
	on_set(d, 0, on_transpose(d, x, perm));
}

/*
 * Reads the axes, an attribute or, from opset 13 on, input 1. false: not given.
 */
static bool axes_of(node *d, list *axes)
{
	if (on_has(d, 1)) {
		*axes = on_ints(d, 1);
		return true;
	}
	return on_list(d, "axes", axes);
}

void onnx_squeeze(node *d)
{
	int32_t x = on_in(d, 0), r = on_rank_of(d, x);
	list axes, shape = on_list_new(d, r, 0);
	bool given = axes_of(d, &axes), drop[TN_MAX_RANK] = {false};

	for (int32_t i = 0; given && i < axes.n; i++)
		drop[on_axis(d, axes.at[i], r)] = true;
	shape.n = 0;
	for (int32_t i = 0; i < r; i++) {
		if (!given)
			drop[i] = on_extent(d, x, i) == 1;
		if (drop[i] && on_extent(d, x, i) != 1)
			on_fail(d, "onnx.shape", "axis %d has extent %lld, "
				"not 1",
				(int)i, (long long)on_extent(d, x, i));
		if (!drop[i])
			shape.at[shape.n++] = on_extent(d, x, i);
	}
	on_set(d, 0, rowa(d, "reshape", A(x), INTS("shape", shape)));
}

void onnx_unsqueeze(node *d)
{
	int32_t x = on_in(d, 0), k = 0, r;
	list axes = on_list_new(d, 0, 0), shape;
	bool is_new[TN_MAX_RANK] = {false};

	axes_of(d, &axes);
	r = on_rank_of(d, x) + axes.n;
	if (r > TN_MAX_RANK)
		on_fail(d, "onnx.rank", "a tensor would have %d axes; at most "
			"8 are possible", (int)r);
	for (int32_t i = 0; i < axes.n; i++) {
		int32_t axis = on_axis(d, axes.at[i], r);

		if (is_new[axis])
			on_fail(d, "onnx.axis", "axis %d occurs twice",
				(int)axis);
		is_new[axis] = true;
	}
	shape = on_list_new(d, r, 1);
	for (int32_t i = 0; i < r; i++)
		if (!is_new[i])
			shape.at[i] = on_extent(d, x, k++);
	on_set(d, 0, rowa(d, "reshape", A(x), INTS("shape", shape)));
}

void onnx_expand(node *d)
{
	int32_t x = on_in(d, 0), r = on_rank_of(d, x);
	list s = extents(d, on_ints(d, 1)), out;
	int32_t n = s.n > r ? s.n : r;

	out = on_list_new(d, n, 1);
	for (int32_t i = 0; i < n; i++) {
		int64_t p = i < n - r ? 1 : on_extent(d, x, i - (n - r));
		int64_t q = i < n - s.n ? 1 : s.at[i - (n - s.n)];

		if (p != q && p != 1 && q != 1)
			on_fail(d, "onnx.shape", "extents %lld and %lld do not "
				"broadcast",
				(long long)p, (long long)q);
		out.at[i] = p == 1 ? q : p;
	}
	on_set(d, 0, rowa(d, "broadcast_to", A(x), INTS("shape", out)));
}

/* ---- parts ---- */

void onnx_concat(node *d)
{
	int32_t *v = arena_array(d->x->a, int32_t, d->n_in + 1);
	int64_t axis = on_int(d, "axis", 1);

	if (d->op->text[0] == '\0' && !on_has_attr(d, "axis"))
		on_fail(d, "onnx.attr", "attribute axis is missing");
	for (int32_t i = 0; i < d->n_in; i++)
		v[i] = on_in(d, i);
	if (d->n_in == 0)
		on_fail(d, "onnx.input", "there is nothing to concatenate");
	on_set(d, 0, on_concat(d, d->n_in, v,
			     on_axis(d, axis, on_rank_of(d, v[0]))));
}

void onnx_split(node *d)
{
	int32_t x = on_in(d, 0);
	int32_t axis = on_axis(d, on_int(d, "axis", 0), on_rank_of(d, x));
	int64_t n = on_extent(d, x, axis), at = 0, part;
	list sizes;

	if (on_has(d, 1)) {
		sizes = on_ints(d, 1);
	} else if (!on_list(d, "split", &sizes)) {
		int64_t parts = on_int(d, "num_outputs", d->n_out);

		on_bound(d, "the number of parts", parts, 1, d->n_out);
		part = (n + parts - 1) / parts;
		sizes = on_list_new(d, (int32_t)parts, part);
		sizes.at[parts - 1] = n - part * (parts - 1);
	}
	if (sizes.n < d->n_out)
		on_fail(d, "onnx.shape", "%d sizes for %d parts", (int)sizes.n,
			(int)d->n_out);
	on_check_parts(d, sizes, n);
	for (int32_t i = 0; i < d->n_out; i++) {
		on_set(d, i, on_narrow(d, x, axis, at, sizes.at[i]));
		at += sizes.at[i];
	}
}

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/* Adds one axis of a slice; from, to and step as ONNX defines them. */
static void slice_axis(node *d, int64_t n, int64_t from, int64_t to,
	int64_t step, int64_t *start, int64_t *count)
{
	int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
	int64_t span;

	if (step == 0 || step == INT64_MIN)
		on_fail(d, "onnx.attr", "a step is %lld; it must not be 0, and "
			"must be greater than -2^63", (long long)step);
	from = clamp(from < 0 ? from + n : from, 0, high);
	/* the smallest number means "before the first element" */
	to = to < 0 && to >= -n ? to + n : to < 0 ? low : to;
	to = clamp(to, low, high);
	span = step > 0 ? to - from : from - to;
	step = step > 0 ? step : -step;
	*count = span <= 0 || n == 0 ? 0 : (span - 1) / step + 1;
	*start = *count > 0 ? from : 0;
}

static void slice(node *d, list from, list to, list axes, list steps)
{
	int32_t x = on_in(d, 0), r = on_rank_of(d, x);
	list start = on_list_new(d, axes.n, 0), count = on_list_new(d, axes.n, 0);

	if (from.n != axes.n || to.n != axes.n || steps.n != axes.n)
		on_fail(d, "onnx.shape", "starts, ends, axes and steps have "
					 "different lengths");
	for (int32_t i = 0; i < axes.n; i++) {
		axes.at[i] = on_axis(d, axes.at[i], r);
		slice_axis(d, on_extent(d, x, (int32_t)axes.at[i]), from.at[i],
			to.at[i], steps.at[i], &start.at[i], &count.at[i]);
		if (count.at[i] <= 1)
			steps.at[i] = 1;
	}
	on_set(d, 0, rowa(d, "slice", A(x), INTS("axes", axes),
			     INTS("start", start), INTS("count", count),
			     INTS("step", steps)));
}

void onnx_slice_attrs(node *d)
{
	list from = on_list_new(d, 0, 0), to = from, axes;

	on_list(d, "starts", &from);
	on_list(d, "ends", &to);
	if (!on_list(d, "axes", &axes))
		axes = on_list_iota(d, from.n);
	slice(d, from, to, axes, on_list_new(d, from.n, 1));
}

void onnx_slice(node *d)
{
	list from = on_ints(d, 1), to = on_ints(d, 2);
	list axes = on_has(d, 3) ? on_ints(d, 3) : on_list_iota(d, from.n);
	list steps = on_has(d, 4) ? on_ints(d, 4) : on_list_new(d, from.n, 1);

	slice(d, from, to, axes, steps);
}

/* ---- more elements ---- */

void onnx_tile(node *d)
{
	list reps = extents(d, on_ints(d, 1));

	if (reps.n != on_rank_of(d, on_in(d, 0)))
		on_fail(d, "onnx.shape", "%d repeats for %d axes", (int)reps.n,
			(int)on_rank_of(d, on_in(d, 0)));
	on_set(d, 0, rowa(d, "tile", A(on_in(d, 0)), INTS("reps", reps)));
}

static void pad(node *d, list pads, list axes, double value)
{
	static const struct {
		const char *mode, *row;
	} modes[] = {{"constant", "pad"}, {"reflect", "pad_reflect"},
		{"edge", "pad_edge"}, {"wrap", "pad_wrap"}};
	const char *mode = on_text(d, "mode", "constant"), *name = NULL;
	int32_t x = on_in(d, 0), r = on_rank_of(d, x);
	list lo = on_list_new(d, r, 0), hi = on_list_new(d, r, 0);

	if (pads.n != 2 * axes.n)
		on_fail(d, "onnx.shape", "%d pads for %d axes", (int)pads.n,
			(int)axes.n);
	for (int32_t i = 0; i < axes.n; i++) {
		int32_t axis = on_axis(d, axes.at[i], r);

		lo.at[axis] = pads.at[i];
		hi.at[axis] = pads.at[axes.n + i];
	}
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
		if (!strcmp(mode, modes[i].mode))
			name = modes[i].row;
	if (name == NULL)
		on_fail(d, "onnx.attr", "mode \"%.50s\" is not supported; "
			"accepted are constant, edge, reflect and wrap", mode);
	if (!strcmp(name, "pad"))
		x = rowa(d, name, A(x), INTS("lo", lo), INTS("hi", hi),
			REAL("value", value));
	else
		x = rowa(d, name, A(x), INTS("lo", lo), INTS("hi", hi));
	on_set(d, 0, x);
}

void onnx_pad_attrs(node *d)
{
	list pads = on_list_new(d, 0, 0);

	if (!on_list(d, "pads", &pads))
		on_list(d, "paddings", &pads);
	pad(d, pads, on_list_iota(d, on_rank_of(d, on_in(d, 0))),
		on_real(d, "value", 0));
}

void onnx_pad(node *d)
{
	double value = on_has(d, 2) ? on_host_real(d, 2) : 0;
	list axes = on_list_iota(d, on_rank_of(d, on_in(d, 0)));

	if (on_has(d, 3))
		axes = on_ints(d, 3);
	pad(d, on_ints(d, 1), axes, value);
}

/* Cuts off or pads both ends of an axis, by one more behind if that is odd. */
void onnx_center_crop_pad(node *d)
{
	int32_t x = on_in(d, 0), r = on_rank_of(d, x);
	list want = on_ints(d, 1), axes = on_list_iota(d, r);
	list lo = on_list_new(d, r, 0), hi = on_list_new(d, r, 0);

	on_list(d, "axes", &axes);
	if (want.n != axes.n)
		on_fail(d, "onnx.shape", "%d extents for %d axes", (int)want.n,
			(int)axes.n);
	for (int32_t i = 0; i < axes.n; i++) {
		int32_t a = on_axis(d, axes.at[i], r);
		int64_t have = on_extent(d, x, a), n = want.at[i];

		on_bound(d, "an extent", n, 0, INT64_C(1) << 40);
		if (n < have)
			x = on_narrow(d, x, a, (have - n) / 2, n);
		lo.at[a] = n > have ? (n - have) / 2 : 0;
		hi.at[a] = n > have ? n - have - lo.at[a] : 0;
	}
	on_set(d, 0, rowa(d, "pad", A(x), INTS("lo", lo), INTS("hi", hi)));
}

void onnx_depth_to_space(node *d)
{
	bool crd = !strcmp(on_text(d, "mode", "DCR"), "CRD");
	int64_t r = on_bound(d, "blocksize", on_int(d, "blocksize", 0), 1,
		1 << 20);

	on_set(d, 0, rowa(d, crd ? "pixel_shuffle" : "depth_to_space",
			     A(on_in(d, 0)), INT("r", r)));
}

void onnx_space_to_depth(node *d)
{
	const char *mode = on_text(d, "mode", "DCR");
	bool crd = !strcmp(mode, "CRD");
	int64_t r = on_bound(d, "blocksize", on_int(d, "blocksize", 0), 1,
		1 << 20);

	if (!crd && strcmp(mode, "DCR") != 0)
		on_fail(d, "onnx.attr", "mode is \"%.50s\"; accepted are DCR "
			"and CRD", mode);
	on_set(d, 0, rowa(d, crd ? "pixel_unshuffle" : "space_to_depth",
			     A(on_in(d, 0)), INT("r", r)));
}

void onnx_trilu(node *d)
{
	bool upper = on_int(d, "upper", 1) != 0;
	int64_t k = on_has(d, 1) ? on_host_int(d, 1) : 0;

	k = clamp(k, -(INT64_C(1) << 40), INT64_C(1) << 40);
	on_set(d, 0, rowa(d, upper ? "triu" : "tril", A(on_in(d, 0)),
			     INT("k", k)));
}
