/*
 * op_conv.c: convolutions and pooling, with any number of spatial axes.
 *
 * The rows take padding lo and hi per axis; auto_pad and ceil_mode become such
 * paddings here, since all extents are known.
 *
 *     Conv(x, w, b, pads=[1,1,1,1])   add(conv(x, w, lo=[1,1], hi=[1,1]), b)
 */
#include "onnx/fused.h"
#include "onnx/ops.h"
#include "onnx/quant.h"

#include <math.h>

typedef struct window {
	int32_t n; /* axes */
	list kernel, stride, dil, lo, hi; /* (n) */
	/* hi without what ceil_mode adds, which counts as nothing */
	list end;
} window;

static list attr_list(node *d, const char *name, int32_t n, int64_t otherwise)
{
	list l;

	if (!on_list(d, name, &l))
		return on_list_new(d, n, otherwise);
	if (l.n != n)
		on_fail(d, "onnx.attr", "%s has %d numbers for %d axes", name,
			(int)l.n, (int)n);
	return l;
}

/* Checks that extents are small enough for the arithmetic on them. */
static void check_window(const node *d, const window *w)
{
	const int64_t big = INT64_C(1) << 40;

	for (int32_t i = 0; i < w->n; i++) {
		on_bound(d, "an extent of the kernel", w->kernel.at[i], 1, big);
		on_bound(d, "a stride", w->stride.at[i], 1, big);
		on_bound(d, "a dilation", w->dil.at[i], 1, INT64_C(1) << 20);
		on_bound(d, "a padding", w->lo.at[i], -big, big);
		on_bound(d, "a padding", w->hi.at[i], -big, big);
	}
}

static int64_t reach(const window *w, int32_t i)
{
	return w->dil.at[i] * (w->kernel.at[i] - 1) + 1;
}

/*
 * auto_pad SAME: one result per stride; an odd element of padding is at the end
 * (upper) or at the start.
 */
static void pad_same(window *w, int32_t i, int64_t n, bool upper)
{
	int64_t out = (n + w->stride.at[i] - 1) / w->stride.at[i];
	int64_t pad = (out - 1) * w->stride.at[i] + reach(w, i) - n;

	pad = pad > 0 ? pad : 0;
	w->lo.at[i] = upper ? pad / 2 : pad - pad / 2;
	w->hi.at[i] = pad - w->lo.at[i];
}

/* ceil_mode: an incomplete last sliding window counts if it begins inside. */
static void pad_ceil(window *w, int32_t i, int64_t n)
{
	int64_t s = w->stride.at[i], span, out;

	span = n + w->lo.at[i] + w->hi.at[i] - reach(w, i);
	if (span < 0)
		return;
	out = (span + s - 1) / s + 1;
	if ((out - 1) * s >= n + w->lo.at[i])
		out--;
	w->hi.at[i] = (out - 1) * s + reach(w, i) - n - w->lo.at[i];
}

/*
 * kernel: the extents if there is no attribute; if its n is 0, the attribute
 * must be given
 */
static window window_of(node *d, int32_t x, list kernel)
{
	const char *mode = on_text(d, "auto_pad", "NOTSET");
	window w = {.n = on_rank_of(d, x) - 2};
	list pads;

	if (w.n < 0)
		on_fail(d, "onnx.shape", "the input has %d axes, but at least "
			"2 are needed", (int)on_rank_of(d, x));
	if (!on_list(d, "kernel_shape", &w.kernel))
		w.kernel = kernel;
	if (w.kernel.n != w.n)
		on_fail(d, "onnx.attr", "kernel_shape has %d numbers for %d "
			"axes", (int)w.kernel.n, (int)w.n);
	w.stride = attr_list(d, "strides", w.n, 1);
	w.dil = attr_list(d, "dilations", w.n, 1);
	pads = attr_list(d, "pads", 2 * w.n, 0);
	w.lo = on_list_from(d, w.n, pads.at);
	w.hi = on_list_from(d, w.n, pads.at + w.n);
	check_window(d, &w);
	for (int32_t i = 0; i < w.n; i++) {
		int64_t n = on_extent(d, x, i + 2);

		if (!strcmp(mode, "SAME_UPPER"))
			pad_same(&w, i, n, true);
		else if (!strcmp(mode, "SAME_LOWER"))
			pad_same(&w, i, n, false);
		else if (!strcmp(mode, "VALID"))
			w.lo.at[i] = w.hi.at[i] = 0;
	}
	w.end = on_list_from(d, w.n, w.hi.at);
	for (int32_t i = 0; i < w.n; i++) {
		int64_t n = on_extent(d, x, i + 2);

		if (on_int(d, "ceil_mode", 0) != 0)
			pad_ceil(&w, i, n);
	}
	return w;
}

static list kernel_of(node *d, int32_t w)
{
	int32_t n = on_rank_of(d, w) - 2;

	if (n < 0)
		on_fail(d, "onnx.shape", "the weights have %d axes",
			(int)on_rank_of(d, w));
	return on_list_from(d, n, on_ty(d, w)->shape + 2);
}

/* Reshapes a number per channel, (c), to broadcast with (n, c, d..). */
static int32_t per_channel(node *d, int32_t v, int32_t like)
{
	return on_rank_of(d, v) == 1 && on_numel(d, v) > 1
		? on_along(d, v, 1, on_rank_of(d, like))
		: on_reshape(d, v, on_list_new(d, 0, 0));
}

static int32_t channels_first(node *d, int32_t x, bool last)
{
	return last ? on_move_axis(d, x, on_rank_of(d, x) - 1, 1) : x;
}

static int32_t channels_last(node *d, int32_t x, bool last)
{
	return last ? on_move_axis(d, x, 1, on_rank_of(d, x) - 1) : x;
}

static int32_t conv(node *d, int32_t x, int32_t w)
{
	window k = window_of(d, x, kernel_of(d, w));

	return rowa(d, "conv", A(x, w), INT("groups", on_int(d, "group", 1)),
		INTS("stride", k.stride), INTS("dil", k.dil), INTS("lo", k.lo),
		INTS("hi", k.hi));
}

static int32_t conv_and_bias(node *d)
{
	int32_t o = conv(d, on_in(d, 0), on_in(d, 1));

	return on_has(d, 2)
		? row(d, "add", A(o, per_channel(d, on_in(d, 2), o))) : o;
}

void onnx_conv(node *d)
{
	on_set(d, 0, conv_and_bias(d));
}

/* Plus a tensor of the result's shape, then an activation. */
void onnx_fused_conv(node *d)
{
	int32_t o = conv_and_bias(d);

	if (on_has(d, 3))
		o = row(d, "add", A(o, on_in(d, 3)));
	on_set(d, 0, fused_activation(d, o));
}

void onnx_conv_integer(node *d)
{
	on_set(d, 0, conv(d, quant_centred(d, 0, 2, 1),
			     quant_centred(d, 1, 3, 0)));
}

void onnx_qlinear_conv(node *d)
{
	bool last = d->op->text[0] != '\0' && on_int(d, "channels_last", 0) != 0;
	int32_t x = quant_centred(d, 0, 2, 1), w = quant_centred(d, 3, 5, 0), o;

	o = conv(d, channels_first(d, x, last), w);
	if (on_has(d, 8))
		o = row(d, "add", A(o, per_channel(d, on_in(d, 8), o)));
	o = quant_rescale(d, o, quant_scale(d, 1),
		quant_param(d, 4, 1, on_rank_of(d, o), on_extent(d, w, 0)), 6);
	on_set(d, 0, channels_last(d, o, last));
}

/* Computes the padding from output_shape, or from auto_pad SAME. */
static void pad_transposed(node *d, window *k, int32_t x)
{
	const char *mode = on_text(d, "auto_pad", "NOTSET");
	list extra = attr_list(d, "output_padding", k->n, 0), out;
	bool same = !strncmp(mode, "SAME_", 5);
	bool upper = !strcmp(mode, "SAME_UPPER");
	bool given = on_list(d, "output_shape", &out);

	if (given && out.n < k->n)
		on_fail(d, "onnx.attr", "output_shape has too few numbers");
	for (int32_t i = 0; i < k->n; i++) {
		int64_t n = on_extent(d, x, i + 2), want, pad;

		if (given || same) {
			want = given ? out.at[out.n - k->n + i]
				     : n * k->stride.at[i];
			pad = k->stride.at[i] * (n - 1) + extra.at[i] +
				reach(k, i) -
				on_bound(d, "an extent of output_shape", want,
					0, INT64_C(1) << 40);
			/* a missing part is missing at the end */
			k->lo.at[i] = pad < 0 ? 0
				: upper	      ? pad / 2
					      : pad - pad / 2;
			k->hi.at[i] = pad - k->lo.at[i];
		}
		k->hi.at[i] -= on_bound(d, "output_padding", extra.at[i], 0,
			INT64_C(1) << 40);
	}
}

void onnx_conv_transpose(node *d)
{
	int32_t x = on_in(d, 0), w = on_in(d, 1), o;
	window k = window_of(d, x, kernel_of(d, w));

	pad_transposed(d, &k, x);
	o = rowa(d, "conv_transpose", A(x, w),
		INT("groups", on_int(d, "group", 1)), INTS("stride", k.stride),
		INTS("dil", k.dil), INTS("lo", k.lo), INTS("hi", k.hi));
	if (on_has(d, 2))
		o = row(d, "add", A(o, per_channel(d, on_in(d, 2), o)));
	on_set(d, 0, o);
}

/* ---- pooling ---- */

/* The input with its padding, where a window reaches behind that; else x. */
static int32_t with_padding(node *d, int32_t x, window *k)
{
	list lo = on_list_new(d, k->n + 2, 0), hi = on_list_new(d, k->n + 2, 0);
	bool behind = false;

	for (int32_t i = 0; i < k->n; i++) {
		lo.at[i + 2] = k->lo.at[i];
		hi.at[i + 2] = k->end.at[i];
		behind |= k->hi.at[i] > k->end.at[i];
	}
	if (!behind)
		return x;
	for (int32_t i = 0; i < k->n; i++) {
		k->lo.at[i] = 0;
		k->hi.at[i] -= k->end.at[i];
	}
	return rowa(d, "pad", A(x), INTS("lo", lo), INTS("hi", hi));
}

static int32_t average(node *d, int32_t x)
{
	int32_t all = x;
	window k = window_of(d, x, on_list_new(d, 0, 0));
	bool padded = on_int(d, "count_include_pad", 0) != 0;

	if (padded)
		all = with_padding(d, x, &k);
	padded &= all == x;
	x = all;
	return rowa(d, padded ? "avg_pool_padded" : "avg_pool", A(x),
		INTS("kernel", k.kernel), INTS("stride", k.stride),
		INTS("dil", k.dil), INTS("lo", k.lo), INTS("hi", k.hi));
}

void onnx_average_pool(node *d)
{
	on_set(d, 0, average(d, on_in(d, 0)));
}

void onnx_lp_pool(node *d)
{
	int32_t x = on_in(d, 0);
	window k = window_of(d, x, on_list_new(d, 0, 0));

	on_set(d, 0, rowa(d, "lp_pool", A(x), INTS("kernel", k.kernel),
			     REAL("p", (double)on_int(d, "p", 2)),
			     INTS("stride", k.stride), INTS("dil", k.dil),
			     INTS("lo", k.lo), INTS("hi", k.hi)));
}

/* All axes but the first two, for a reduction that keeps axes. */
static list spatial(node *d, int32_t x)
{
	list axes = on_list_iota(d, on_rank_of(d, x) - 2);

	for (int32_t i = 0; i < axes.n; i++)
		axes.at[i] += 2;
	return axes;
}

void onnx_global_pool(node *d)
{
	int32_t x = on_in(d, 0);

	on_bound(d, "the number of axes", on_rank_of(d, x), 2, TN_MAX_RANK);
	on_set(d, 0, rowa(d, d->op->text, A(x), INTS("axes", spatial(d, x)),
			     INT("keep", 1)));
}

/* The mean of windows, or of all places, of numbers as integers. */
void onnx_qlinear_pool(node *d)
{
	bool last = on_int(d, "channels_last", 0) != 0;
	int32_t x = channels_first(d, quant_float(d, 0, 1, 2), last), o;

	on_bound(d, "the number of axes", on_rank_of(d, x), 2, TN_MAX_RANK);
	if (d->op->text[0] != '\0')
		o = rowa(d, "reduce_mean", A(x), INTS("axes", spatial(d, x)),
			INT("keep", 1));
	else
		o = average(d, x);
	on_set(d, 0, quant_ints(d, channels_last(d, o, last), 3,
			     on_dt(d, on_in(d, 0))));
}

void onnx_global_lp_pool(node *d)
{
	int32_t x = on_in(d, 0);

	on_bound(d, "the number of axes", on_rank_of(d, x), 2, TN_MAX_RANK);
	on_set(d, 0, rowa(d, "reduce_lp", A(x),
			     REAL("p", (double)on_int(d, "p", 2)),
			     INTS("axes", spatial(d, x)), INT("keep", 1)));
}

/*
 * The index in x of the maximum of each sliding window: argmax over the
 * unfolded windows gives the element within its window, and its digits give the
 * index in x.
 */
static int32_t max_places(node *d, int32_t x, const window *k)
{
	int32_t r = on_rank_of(d, x), at, sum = -1;
	list lo = on_list_new(d, r, 0), hi = on_list_new(d, r, 0), shape, out;
	bool columns = on_int(d, "storage_order", 0) != 0;
	int64_t size = 1, inner = 1, stride = 1;

	for (int32_t i = 0; i < k->n; i++) {
		lo.at[i + 2] = k->lo.at[i];
		hi.at[i + 2] = k->hi.at[i];
		size *= k->kernel.at[i];
	}
	at = rowa(d, "pad", A(x), INTS("lo", lo), INTS("hi", hi),
		REAL("value", -(double)INFINITY));
	at = rowa(d, "unfold", A(at), INTS("kernel", k->kernel),
		INTS("stride", k->stride), INTS("dil", k->dil));
	shape = on_shape_of(d, at); /* n, c, k.., y.. */
	out = on_list_new(d, r, 0);
	for (int32_t i = 0; i < r; i++)
		out.at[i] = i < 2 ? shape.at[i] : shape.at[i + k->n];
	shape = on_list_new(d, r + 1, size);
	for (int32_t i = 0; i < r; i++)
		shape.at[i < 2 ? i : i + 1] = out.at[i];
	at = rowa(d, "argmax", A(on_reshape(d, at, shape)), INT("axis", 2));
	for (int32_t i = r - 1; i >= 0; i--) {
		/*
		 * column-major storage: the spatial axes are in reverse order
		 */
		int32_t axis = i >= 2 && columns ? r + 1 - i : i, p;

		p = rowa(d, "iota", NO_ARGS, INTS("shape", out),
			INT("axis", axis), DTYPE("dtype", TN_I64));
		if (axis >= 2) {
			int32_t s = axis - 2, q;

			inner = 1;
			for (int32_t j = s + 1; j < k->n; j++)
				inner *= k->kernel.at[j];
			q = row(d, "div", A(at, on_scalar(d, TN_I64,
							 (double)inner)));
			q = row(d, "mod", A(q, on_scalar(d, TN_I64,
					  (double)k->kernel.at[s])));
			q = row(d, "mul", A(q, on_scalar(d, TN_I64,
					  (double)k->dil.at[s])));
			p = row(d, "mul", A(p, on_scalar(d, TN_I64,
					  (double)k->stride.at[s])));
			p = row(d, "add", A(p, q));
			p = row(d, "sub", A(p, on_scalar(d, TN_I64,
					  (double)k->lo.at[s])));
		}
		p = row(d, "mul", A(p, on_scalar(d, TN_I64, (double)stride)));
		sum = sum < 0 ? p : row(d, "add", A(sum, p));
		stride *= on_extent(d, x, axis);
	}
	return sum;
}

void onnx_max_pool(node *d)
{
	int32_t x = on_in(d, 0);
	window k = window_of(d, x, on_list_new(d, 0, 0));

	on_set(d, 0, rowa(d, "max_pool", A(x), INTS("kernel", k.kernel),
			     INTS("stride", k.stride), INTS("dil", k.dil),
			     INTS("lo", k.lo), INTS("hi", k.hi)));
	on_ignore(d, "storage_order"); /* of the indices */
	if (on_wants(d, 1))
		on_set_elem(d, 1, max_places(d, x, &k),
			onnx_dtype_elem(TN_I64));
}

/*
 * Scatters each element to its index in a tensor of zeros. Indices are
 * row-major in the shape before pooling, which output_shape may enlarge.
 */
void onnx_max_unpool(node *d)
{
	int32_t x = on_in(d, 0), at = on_in(d, 1), o;
	window k = window_of(d, x, on_list_new(d, 0, 0));
	list shape = on_shape_of(d, x), whole;
	int64_t n;

	for (int32_t i = 0; i < k.n; i++)
		shape.at[i + 2] = (shape.at[i + 2] - 1) * k.stride.at[i] +
			k.kernel.at[i] - k.lo.at[i] - k.hi.at[i];
	n = shape_numel(shape.at, shape.n);
	if (n < 0)
		on_fail(d, "onnx.shape", "the result has too many elements");
	whole = LIST(d, n);
	o = row(d, "scatter_set",
		A(on_filled(d, on_dt(d, x), whole, 0),
			on_reshape(d, at, LIST(d, on_numel(d, at))),
			on_reshape(d, x, LIST(d, on_numel(d, x)))));
	o = on_reshape(d, o, shape);
	if (on_has(d, 2)) {
		list want = on_ints(d, 2), lo = on_list_new(d, shape.n, 0);

		if (want.n != shape.n)
			on_fail(d, "onnx.shape", "output_shape has %d numbers "
				"for %d axes", (int)want.n, (int)shape.n);
		for (int32_t i = 0; i < want.n; i++)
			want.at[i] = on_bound(d, "an extent of output_shape",
				want.at[i], 0, INT64_C(1) << 40) - shape.at[i];
		o = rowa(d, "pad", A(o), INTS("lo", lo), INTS("hi", want));
	}
	on_set(d, 0, o);
}
