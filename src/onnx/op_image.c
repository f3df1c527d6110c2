/*
 * op_image.c: resampling of images.
 *
 * Resize works axis by axis. The source elements of each result and their
 * weights depend only on sizes, so they are computed here, as a table for each
 * axis, for the row `resample`: o[y] += x[ids[y, k]] * w[y, k]. Mode nearest is
 * a `take`. RoiAlign computes positions from data, by several rows.
 */
#include "onnx/ops.h"

#include <math.h>

typedef struct resize {
	const char *mode, *where, *nearest;
	double cubic;
	bool exclude_outside, antialias;
	const double *roi; /* (2 * rank): starts, ends; or NULL */
} resize;

typedef struct axis_job {
	int32_t axis, rank;
	int64_t in, out;
	double scale;
} axis_job;

/* The coordinate in the input of element i of the result. */
static double source(const resize *r, const axis_job *j, int64_t i)
{
	/* the result's extent before it was rounded down */
	double n = (double)j->in, m = n * j->scale, at = (double)i;

	if (!strcmp(r->where, "align_corners"))
		return m <= 1 ? 0 : at * (n - 1) / (m - 1);
	if (!strcmp(r->where, "asymmetric"))
		return at / j->scale;
	if (!strcmp(r->where, "pytorch_half_pixel") && m <= 1)
		return 0;
	if (!strcmp(r->where, "half_pixel_symmetric")) {
		double adjust = (double)j->out / m, centre = n / 2;

		return centre * (1 - adjust) + (at + 0.5) / j->scale - 0.5;
	}
	if (!strcmp(r->where, "tf_crop_and_resize")) {
		double from = r->roi[j->axis], to = r->roi[j->rank + j->axis];

		return m > 1 ? from * (n - 1) +
				at * (to - from) * (n - 1) / (m - 1)
			     : 0.5 * (from + to) * (n - 1);
	}
	if (!strcmp(r->where, "tf_half_pixel_for_nn"))
		return (at + 0.5) / j->scale;
	return (at + 0.5) / j->scale - 0.5;
}

static int64_t inside(const axis_job *j, double at)
{
	double last = (double)j->in - 1;

	return (int64_t)(!(at > 0) ? 0 : at > last ? last : at);
}

static int32_t resize_nearest(
	node *d, const resize *r, const axis_job *j, int32_t x)
{
	list ids = on_list_new(d, (int32_t)j->out, 0);

	for (int32_t i = 0; i < ids.n; i++) {
		double at = source(r, j, i);

		if (!strcmp(r->nearest, "floor"))
			at = floor(at);
		else if (!strcmp(r->nearest, "ceil"))
			at = ceil(at);
		else if (!strcmp(r->nearest, "round_prefer_ceil"))
			at = floor(at + 0.5);
		else
			at = ceil(at - 0.5);
		ids.at[i] = inside(j, at);
	}
	return rowa(d, "take", A(x, on_const_ints(d, ids)), INT("axis", j->axis));
}

/* Keys's cubic kernel at distances 1+t, t, 1-t, 2-t. */
static void cubic_weights(double a, double t, double w[4])
{
	double u = 1 - t;

	w[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
	w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
	w[2] = ((a + 2) * u - (a + 3)) * u * u + 1;
	w[3] = ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a;
}

/* The weight of an element that is x away, of a kernel as wide as 2 or 4. */
static double weight_at(const resize *r, bool cubic, double x)
{
	double a = r->cubic;

	x = fabs(x);
	if (!cubic)
		return x < 1 ? 1 - x : 0;
	if (x <= 1)
		return ((a + 2) * x - (a + 3)) * x * x + 1;
	return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* n weights, for the elements at - first + k; wide: of the stretched kernel */
static void set_weights(const resize *r, bool cubic, double wide, double t,
	int64_t first, int64_t n, double *v)
{
	double sum = 0;

	if (wide == 1 && cubic) {
		cubic_weights(r->cubic, t, v);
	} else if (wide == 1) {
		v[0] = 1 - t;
		v[1] = t;
	}
	for (int64_t k = 0; wide < 1 && k < n; k++)
		sum += v[k] = weight_at(r, cubic,
			((double)(first + k) - t) * wide);
	for (int64_t k = 0; wide < 1 && k < n; k++)
		v[k] /= sum;
}

/*
 * Interpolates with two elements (linear) or four (cubic); antialias: the kernel
 * is stretched by what the axis shrinks.
 */
static int32_t resize_weighted(
	node *d, const resize *r, const axis_job *j, int32_t x)
{
	bool cubic = !strcmp(r->mode, "cubic");
	double wide = r->antialias && j->scale < 1 ? j->scale : 1;
	int64_t first = (int64_t)floor((cubic ? -2 : -1) / wide) + 1;
	int64_t taps = on_bound(d, "the number of elements for one result",
		2 - 2 * first, 1, 1 << 20);
	int32_t n = (int32_t)j->out;
	list shape = LIST(d, n, taps), ids;
	double *w;

	on_bound(d, "the number of all weights of an axis", taps * n, 1, 1 << 22);
	ids = on_list_new(d, (int32_t)(taps * n), 0);
	w = arena_array(d->x->a, double, n * taps + 1);
	for (int32_t i = 0; i < n; i++) {
		double at = source(r, j, i), sum = 0;
		double *v = w + i * taps;

		set_weights(r, cubic, wide, at - floor(at), first, taps, v);
		for (int64_t k = 0; k < taps; k++) {
			double p = floor(at) + (double)(first + k);

			if (r->exclude_outside &&
				(p < 0 || p > (double)j->in - 1))
				v[k] = 0;
			ids.at[i * taps + k] = inside(j, p);
			sum += v[k];
		}
		for (int64_t k = 0; k < taps && r->exclude_outside; k++)
			v[k] = sum != 0 ? v[k] / sum : 0;
	}
	return rowa(d, "resample",
		A(x, on_constant(d, TN_I64, shape, ids.at),
			on_const_real(d, on_dt(d, x), shape, w)),
		INT("axis", j->axis));
}

/* Sets positions outside of the image to extrapolation_value. */
static int32_t extrapolate(
	node *d, const resize *r, const axis_job *j, int32_t x)
{
	uint8_t *is = arena_array(d->x->a, uint8_t, j->out + 1);
	int32_t mask, v;

	for (int64_t i = 0; i < j->out; i++) {
		double at = source(r, j, i);

		is[i] = at < 0 || at > (double)j->in - 1;
	}
	mask = on_along(d, on_constant(d, TN_BOOL, LIST(d, j->out), is), j->axis,
		j->rank);
	v = on_scalar(d, on_dt(d, x), on_real(d, "extrapolation_value", 0));
	return row(d, "where", A(mask, v, x));
}

static const double *known_reals(node *d, int32_t i, int32_t *n)
{
	int32_t v = on_in(d, i);
	const void *data = onnx_host(d->x, v);
	double *out;

	*n = (int32_t)on_bound(d, "the length of an input", on_numel(d, v), 0,
		2 * TN_MAX_RANK);
	out = arena_array(d->x->a, double, *n + 1);
	for (int32_t k = 0; k < *n; k++)
		out[k] = dtype_load_f64(on_dt(d, v), data, k);
	return out;
}

/*
 * keep_aspect_ratio_policy: all axes get the scale of the one whose scale is the
 * smallest (not_larger) or the largest (not_smaller).
 */
static void keep_ratio(node *d, axis_job *j, int32_t rank, const list *axes)
{
	const char *policy = on_text(d, "keep_aspect_ratio_policy", "stretch");
	bool least = !strcmp(policy, "not_larger");
	double scale = 0;

	if (!strcmp(policy, "stretch"))
		return;
	if (!least && strcmp(policy, "not_smaller") != 0)
		on_fail(d, "onnx.attr", "keep_aspect_ratio_policy is \"%.50s\"; "
			"accepted are stretch, not_larger and not_smaller",
			policy);
	for (int32_t i = 0; i < axes->n; i++) {
		double s = j[on_axis(d, axes->at[i], rank)].scale;

		scale = i == 0 || (least ? s < scale : s > scale) ? s : scale;
	}
	for (int32_t i = 0; i < axes->n; i++) {
		axis_job *k = &j[on_axis(d, axes->at[i], rank)];
		double n = floor(scale * (double)k->in + 0.5);

		k->scale = scale;
		k->out = on_bound(d, "an extent",
			(int64_t)(n < 1e9 ? n : 1e9), 1, 1 << 20);
	}
}

/*
 * The scale and size of each axis, from the input or attribute `scales`, or
 * from `sizes`.
 */
static void sizes_of(node *d, axis_job *j, int32_t rank, const list *axes)
{
	int32_t x = on_in(d, 0), n = 0;
	int32_t at = d->n_in > 2 ? 2 : 1; /* opset 10 and Upsample: no roi */
	const double *scales = NULL;
	const wire_floats *attr = on_reals(d, "scales");
	list sizes = on_list_new(d, 0, 0);

	if (attr != NULL) {
		double *copy = arena_array(d->x->a, double, attr->v.n + 1);

		n = attr->v.n;
		for (int32_t i = 0; i < n; i++)
			copy[i] = (double)attr->v.at[i];
		scales = copy;
	} else if (on_has(d, at) && on_numel(d, on_in(d, at)) > 0) {
		scales = known_reals(d, at, &n);
	} else if (on_has(d, 3)) {
		sizes = on_ints(d, 3);
		n = sizes.n;
	}
	if (n != axes->n)
		on_fail(d, "onnx.shape", "%d scales or sizes for %d axes",
			(int)n, (int)axes->n);
	for (int32_t i = 0; i < rank; i++)
		j[i] = (axis_job){i, rank, on_extent(d, x, i), on_extent(d, x, i), 1};
	for (int32_t i = 0; i < n; i++) {
		axis_job *k = &j[on_axis(d, axes->at[i], rank)];

		if (scales != NULL) {
			k->scale = scales[i];
			if (!(k->scale > 0 && k->scale < 1e9))
				on_fail(d, "onnx.attr", "the scale of axis "
					"%d is %g; it must be positive "
					"and less than 1e9",
					(int)axes->at[i],
					k->scale);
			k->out = (int64_t)floor((double)k->in * k->scale);
		} else {
			k->out = sizes.at[i];
			k->scale = (double)k->out / (double)k->in;
		}
		on_bound(d, "an extent", k->out, 1, 1 << 20);
		on_bound(d, "an extent", k->in, 1, INT64_C(1) << 40);
	}
	if (scales == NULL)
		keep_ratio(d, j, rank, axes);
}

/* The starts and ends of tf_crop_and_resize, of all axes. */
static const double *roi_of(node *d, int32_t rank, const list *axes)
{
	int32_t n = 0;
	const double *given = known_reals(d, 1, &n);
	double *roi = arena_array(d->x->a, double, 2 * rank + 1);

	if (n != 2 * axes->n)
		on_fail(d, "onnx.shape", "%d numbers of roi for %d axes",
			(int)n, (int)axes->n);
	for (int32_t i = 0; i < rank; i++)
		roi[rank + i] = 1;
	for (int32_t i = 0; i < axes->n; i++) {
		int32_t at = on_axis(d, axes->at[i], rank);

		roi[at] = given[i];
		roi[rank + at] = given[axes->n + i];
	}
	return roi;
}

static void check_modes(const node *d, const resize *r)
{
	static const char *const where[] = {"half_pixel", "align_corners",
		"asymmetric", "pytorch_half_pixel", "half_pixel_symmetric",
		"tf_crop_and_resize", "tf_half_pixel_for_nn"};
	bool known = false;

	for (size_t i = 0; i < sizeof where / sizeof *where; i++)
		known = known || !strcmp(r->where, where[i]);
	if (!known)
		on_fail(d, "onnx.attr", "coordinate_transformation_mode "
			"\"%.50s\" is not supported", r->where);
	if (strcmp(r->mode, "nearest") != 0 && strcmp(r->mode, "linear") != 0 &&
		strcmp(r->mode, "cubic") != 0)
		on_fail(d, "onnx.attr", "mode \"%.50s\" is not supported; "
			"accepted are nearest, linear and cubic", r->mode);
}

void onnx_resize(node *d)
{
	bool old = d->opset < 11 || !strcmp(d->n->op, "Upsample");
	int32_t x = on_in(d, 0), rank = on_rank_of(d, x);
	axis_job jobs[TN_MAX_RANK];
	list axes = on_list_iota(d, rank);
	resize r = {.cubic = on_real(d, "cubic_coeff_a", -0.75)};

	r.mode = on_text(d, "mode", "nearest");
	r.where = on_text(d, "coordinate_transformation_mode",
		old ? "asymmetric" : "half_pixel");
	r.nearest = on_text(d, "nearest_mode",
		old ? "floor" : "round_prefer_floor");
	r.exclude_outside = on_int(d, "exclude_outside", 0) != 0;
	check_modes(d, &r);
	r.antialias = on_int(d, "antialias", 0) != 0;
	if (r.antialias && !strcmp(r.mode, "nearest"))
		on_fail(d, "onnx.attr", "mode nearest cannot have antialias; "
			"accepted are linear and cubic");
	on_ignore(d, "keep_aspect_ratio_policy");
	on_list(d, "axes", &axes);
	on_ignore(d, "extrapolation_value");
	if (!old)
		(void)on_has(d, 1); /* roi, which only one mode uses */
	if (!strcmp(r.where, "tf_crop_and_resize"))
		r.roi = roi_of(d, rank, &axes);
	sizes_of(d, jobs, rank, &axes);
	for (int32_t i = 0; i < rank; i++) {
		axis_job *j = &jobs[i];

		if (j->in == j->out && j->scale == 1 && r.roi == NULL)
			continue;
		x = !strcmp(r.mode, "nearest") ? resize_nearest(d, &r, j, x)
					       : resize_weighted(d, &r, j, x);
	}
	for (int32_t i = 0; i < rank && r.roi != NULL; i++)
		x = extrapolate(d, &r, &jobs[i], x);
	on_set(d, 0, row(d, "identity", A(x)));
}

/* ---- RoiAlign ---- */

typedef struct roi {
	node *d;
	int32_t x, batch, boxes; /* boxes (r, 4): x1, y1, x2, y2 */
	double scale, offset;
	bool aligned, max;
	/* per cell along an axis: the largest number of any box */
	int64_t samples;
	bool adaptive; /* each box has its own number of samples */
} roi;

/* The start and the size of boxes along an axis, from columns lo and lo + 2. */
static void roi_box(const roi *k, int32_t lo, int32_t *from, int32_t *size)
{
	node *d = k->d;
	tn_dtype t = on_dt(d, k->x);
	int32_t end[2];

	for (int32_t i = 0; i < 2; i++) {
		end[i] = on_narrow(d, k->boxes, 1, lo + 2 * i, 1);
		end[i] = on_two(d, "mul", end[i], on_scalar(d, t, k->scale));
		end[i] = on_two(d, "sub", end[i], on_scalar(d, t, k->offset));
	}
	*from = end[0];
	*size = on_two(d, "sub", end[1], end[0]);
	if (!k->aligned)
		*size = on_two(d, "max", *size, on_scalar(d, t, 1));
}

/* (r, 1): samples of a cell along an axis: its number of pixels, rounded up. */
static int32_t roi_own(const roi *k, int32_t lo, int64_t cells)
{
	node *d = k->d;
	int32_t from, size;

	roi_box(k, lo, &from, &size);
	size = on_two(d, "div", size, on_scalar(d, on_dt(d, size), (double)cells));
	return on_two(d, "max", row(d, "ceil", A(size)),
		on_scalar(d, on_dt(d, size), 1));
}

/* The largest number of samples of any box, which determines the shape. */
static int64_t roi_most(const roi *k, int64_t ph, int64_t pw)
{
	node *d = k->d;
	int32_t most = on_two(d, "max", roi_own(k, 1, ph), roi_own(k, 0, pw));

	if (on_extent(d, k->boxes, 0) == 0)
		return 1;
	most = on_cast_to(d, row(d, "reduce_max", A(most)), TN_I64);
	return on_host_ints(d, most).at[0];
}

/*
 * Positions of the samples of all cells, (r, cells * samples), as fractions of
 * the box. If a box has fewer samples than another, its last one is repeated,
 * with weight 0.
 */
static int32_t roi_parts(const roi *k, int32_t lo, int64_t cells, int32_t *weight)
{
	node *d = k->d;
	tn_dtype t = on_dt(d, k->x);
	int64_t m = cells * k->samples;
	double *cell = arena_array(d->x->a, double, m + 1);
	double *number = arena_array(d->x->a, double, m + 1);
	int32_t own = roi_own(k, lo, cells), at, has, one = on_scalar(d, t, 1);

	for (int64_t i = 0; i < m; i++) {
		cell[i] = (double)(i / k->samples);
		number[i] = (double)(i % k->samples);
	}
	at = on_const_real(d, t, LIST(d, 1, m), number);
	has = on_cast_to(d, on_two(d, "lt", at, own), t);
	*weight = k->max ? one : on_two(d, "div", has, own);
	at = on_two(d, "min", at, on_two(d, "sub", own, one));
	at = on_two(d, "div", on_two(d, "add", at, on_scalar(d, t, 0.5)), own);
	at = on_two(d, "add", on_const_real(d, t, LIST(d, 1, m), cell), at);
	return on_two(d, "div", at, on_scalar(d, t, (double)cells));
}

/*
 * Positions (r, cells * samples) along one axis, whose box is in columns `lo`
 * and lo + 2, and their weights, which are 0 outside of the image.
 */
static int32_t roi_places(
	const roi *k, int32_t lo, int64_t cells, int64_t n, int32_t *weight)
{
	node *d = k->d;
	int64_t m = cells * k->samples;
	tn_dtype t = on_dt(d, k->x);
	double *at = arena_array(d->x->a, double, m + 1);
	int32_t from, size, v, out;

	for (int64_t i = 0; i < m; i++)
		at[i] = ((double)i + 0.5) / (double)m;
	roi_box(k, lo, &from, &size);
	*weight = -1;
	v = k->adaptive ? roi_parts(k, lo, cells, weight)
			: on_const_real(d, t, LIST(d, 1, m), at);
	v = on_two(d, "add", from, on_two(d, "mul", size, v));
	out = row(d, "or", A(on_two(d, "lt", v, on_scalar(d, t, -1)),
				   on_two(d, "gt", v, on_scalar(d, t, (double)n))));
	out = on_cast_to(d, row(d, "not", A(out)), t);
	*weight = *weight < 0 ? out : on_two(d, "mul", out, *weight);
	v = on_two(d, "max", v, on_scalar(d, t, 0));
	return on_two(d, "min", v, on_scalar(d, t, (double)n - 1));
}

/* The two integer neighbours of positions (r, m), and their weights. */
static void roi_taps(const roi *k, int32_t v, int64_t n, int32_t in,
	int32_t *at, int32_t *w)
{
	node *d = k->d;
	tn_dtype t = on_dt(d, k->x);
	int32_t low = row(d, "floor", A(v)), f;

	f = on_two(d, "sub", v, low);
	w[0] = on_two(d, "mul", in, on_two(d, "sub", on_scalar(d, t, 1), f));
	w[1] = on_two(d, "mul", in, f);
	at[0] = on_cast_to(d, low, TN_I64);
	at[1] = on_two(d, "min", on_two(d, "add", at[0], on_scalar(d, TN_I64, 1)),
		on_scalar(d, TN_I64, (double)n - 1));
}

void onnx_roi_align(node *d)
{
	const char *way = on_text(d, "coordinate_transformation_mode",
		d->opset >= 16 ? "half_pixel" : "output_half_pixel");
	const char *mode = on_text(d, "mode", "avg");
	int64_t ph = on_int(d, "output_height", 1);
	int64_t pw = on_int(d, "output_width", 1), h, w, n;
	int32_t in, v[2][2], u[2][2], o = -1, y, x;
	roi k = {.d = d, .x = on_in(d, 0), .boxes = on_in(d, 1),
		.batch = on_cast_to(d, on_in(d, 2), TN_I64),
		.scale = on_real(d, "spatial_scale", 1)};

	k.aligned = !strcmp(way, "half_pixel");
	k.offset = k.aligned ? 0.5 : 0;
	k.max = !strcmp(mode, "max");
	k.samples = on_int(d, "sampling_ratio", 0);
	k.adaptive = k.samples == 0;
	if (on_rank_of(d, k.x) != 4 || on_rank_of(d, k.boxes) != 2 ||
		on_extent(d, k.boxes, 1) != 4)
		on_fail(d, "onnx.shape", "images (n, c, h, w) and boxes (r, 4) "
					 "are needed");
	on_bound(d, "output_height", ph, 1, 1 << 16);
	on_bound(d, "output_width", pw, 1, 1 << 16);
	if (k.adaptive)
		k.samples = roi_most(&k, ph, pw);
	on_bound(d, k.adaptive ? "the samples of a box" : "sampling_ratio",
		k.samples, 1, k.adaptive ? 4096 : 64);
	h = on_extent(d, k.x, 2);
	w = on_extent(d, k.x, 3);
	n = on_extent(d, k.boxes, 0);
	y = roi_places(&k, 1, ph, h, &in);
	roi_taps(&k, y, h, in, v[0], u[0]);
	x = roi_places(&k, 0, pw, w, &in);
	roi_taps(&k, x, w, in, v[1], u[1]);
	for (int32_t p = 0; p < 2; p++)
		for (int32_t q = 0; q < 2; q++) {
			int32_t s = row(d, "sample_boxes",
				A(k.x, k.batch, v[0][p], v[1][q], u[0][p],
					u[1][q]));

			o = o < 0 ? s : on_two(d, k.max ? "max" : "add", o, s);
		}
	o = on_reshape(d, o, LIST(d, n, on_extent(d, k.x, 1), ph, k.samples, pw,
				  k.samples));
	on_set(d, 0, rowa(d, k.max	      ? "reduce_max"
				: k.adaptive ? "reduce_sum"
					     : "reduce_mean",
			     A(o), INTS("axes", LIST(d, 3, 5))));
}

/* ---- MaxRoiPool ---- */

typedef struct cells {
	int32_t low, high; /* (r, cells) integer positions, high excluded */
} cells;

/*
 * Cuts boxes (columns lo and lo + 2 of rois, scaled and rounded) into n cells:
 * cell k goes from floor(k * size / n) to ceil((k + 1) * size / n), limited to
 * the image.
 */
static cells cut_boxes(
	node *d, int32_t rois, int32_t lo, double scale, int64_t n, int64_t most)
{
	tn_dtype t = on_dt(d, rois);
	double *k = arena_array(d->x->a, double, n + 1);
	int32_t from, size, at, one = on_scalar(d, t, 1), edge[2];

	for (int64_t i = 0; i < n; i++)
		k[i] = (double)i;
	from = on_two(d, "mul", on_narrow(d, rois, 1, lo, 1),
		on_scalar(d, t, scale));
	size = on_two(d, "mul", on_narrow(d, rois, 1, lo + 2, 1),
		on_scalar(d, t, scale));
	from = row(d, "round", A(from));
	size = on_two(d, "sub", row(d, "round", A(size)), from);
	size = on_two(d, "max", on_two(d, "add", size, one), one);
	size = on_two(d, "div", size, on_scalar(d, t, (double)n));
	at = on_const_real(d, t, LIST(d, 1, n), k);
	edge[0] = row(d, "floor", A(on_two(d, "mul", at, size)));
	edge[1] = row(d, "ceil", A(on_two(d, "mul", on_two(d, "add", at, one),
					     size)));
	for (int32_t i = 0; i < 2; i++) {
		edge[i] = on_two(d, "add", edge[i], from);
		edge[i] = on_two(d, "max", edge[i], on_scalar(d, t, 0));
		edge[i] = on_two(d, "min", edge[i],
			on_scalar(d, t, (double)most));
		edge[i] = on_cast_to(d, edge[i], TN_I64);
	}
	return (cells){edge[0], edge[1]};
}

void onnx_max_roi_pool(node *d)
{
	int32_t x = on_in(d, 0), rois = on_in(d, 1), batch;
	double scale = on_real(d, "spatial_scale", 1);
	cells y, z;
	list size;

	if (!on_list(d, "pooled_shape", &size) || size.n != 2)
		on_fail(d, "onnx.attr", "pooled_shape must have two numbers");
	if (on_rank_of(d, x) != 4 || on_rank_of(d, rois) != 2 ||
		on_extent(d, rois, 1) != 5)
		on_fail(d, "onnx.shape", "images (n, c, h, w) and regions "
					 "(r, 5) are needed");
	on_bound(d, "pooled_shape", size.at[0], 1, 1 << 12);
	on_bound(d, "pooled_shape", size.at[1], 1, 1 << 12);
	batch = on_cast_to(d, rowa(d, "select", A(rois), INT("axis", 1),
				      INT("index", 0)), TN_I64);
	y = cut_boxes(d, rois, 2, scale, size.at[0], on_extent(d, x, 2));
	z = cut_boxes(d, rois, 1, scale, size.at[1], on_extent(d, x, 3));
	on_set(d, 0, row(d, "max_boxes",
			     A(x, batch, y.low, y.high, z.low, z.high)));
}

/* ---- blocks and grids ---- */

/* [n, channels * block, blocks] as images, overlapping blocks added up */
void onnx_col2im(node *d)
{
	int32_t x = on_in(d, 0);
	list size = on_ints(d, 1), block = on_ints(d, 2), lo, hi, shape;
	list stride = on_list_new(d, size.n, 1), dil = stride, pads;
	int64_t n = 1, blocks = 1;

	pads = on_list_new(d, 2 * size.n, 0);
	on_list(d, "strides", &stride);
	on_list(d, "dilations", &dil);
	on_list(d, "pads", &pads);
	if (on_rank_of(d, x) != 3 || block.n != size.n || stride.n != size.n ||
		dil.n != size.n || pads.n != 2 * size.n || size.n < 1 ||
		size.n > TN_MAX_RANK / 2 - 1)
		on_fail(d, "onnx.shape", "columns (n, channels * block, blocks), "
			"and as many extents of images, blocks, strides and "
			"dilations are needed");
	lo = on_list_from(d, size.n, pads.at);
	hi = on_list_from(d, size.n, pads.at + size.n);
	shape = on_list_new(d, 2 + 2 * size.n, 0);
	for (int32_t i = 0; i < size.n; i++) {
		int64_t reach;

		on_bound(d, "an extent of the block", block.at[i], 1, 1 << 20);
		on_bound(d, "a stride", stride.at[i], 1, 1 << 20);
		on_bound(d, "a dilation", dil.at[i], 1, 1 << 20);
		on_bound(d, "an extent", size.at[i], 0, INT64_C(1) << 40);
		on_bound(d, "a pad", lo.at[i], 0, 1 << 20);
		on_bound(d, "a pad", hi.at[i], 0, 1 << 20);
		reach = dil.at[i] * (block.at[i] - 1) + 1;
		shape.at[2 + i] = block.at[i];
		shape.at[2 + size.n + i] = (size.at[i] + lo.at[i] + hi.at[i] -
			reach) / stride.at[i] + 1;
		n = n > INT64_C(1) << 40 ? n : n * block.at[i];
		on_bound(d, "the number of blocks along an axis",
			shape.at[2 + size.n + i], 1, INT64_C(1) << 40);
		if (!mul_ok(blocks, shape.at[2 + size.n + i], &blocks))
			blocks = INT64_MAX;
	}
	if (on_extent(d, x, 1) % n != 0 || on_extent(d, x, 2) != blocks)
		on_fail(d, "onnx.shape", "columns of %lld rows and %lld blocks: "
			"a block has %lld rows, and the image %lld blocks",
			(long long)on_extent(d, x, 1),
			(long long)on_extent(d, x, 2), (long long)n,
			(long long)blocks);
	shape.at[0] = on_extent(d, x, 0);
	shape.at[1] = on_extent(d, x, 1) / n;
	on_set(d, 0, rowa(d, "fold", A(on_reshape(d, x, shape)),
			     INTS("size", size), INTS("stride", stride),
			     INTS("dil", dil), INTS("lo", lo), INTS("hi", hi)));
}

/* The places of n pixels between -1 and 1: their centres, or from edge to edge. */
static int32_t places(node *d, tn_dtype t, int64_t n, bool corners)
{
	double half = n > 0 && !corners ? 1.0 / (double)n : 0;

	return rowa(d, "linspace", NO_ARGS, REAL("start", -1 + half),
		REAL("stop", 1 - half), INT("n", n), DTYPE("dtype", t));
}

/* theta (x, y, z, 1) of each pixel */
void onnx_affine_grid(node *d)
{
	int32_t theta = on_in(d, 0), at[4], base;
	list size = on_ints(d, 1), shape, out;
	int32_t n = size.n - 2;
	bool corners = on_int(d, "align_corners", 0) != 0;
	int64_t pixels = 1;

	if ((n != 2 && n != 3) || on_rank_of(d, theta) != 3 ||
		on_extent(d, theta, 1) != n || on_extent(d, theta, 2) != n + 1 ||
		on_extent(d, theta, 0) != size.at[0])
		on_fail(d, "onnx.shape", "matrices (n, 2, 3) and a size of 4 "
			"numbers, or (n, 3, 4) and of 5, are needed");
	shape = on_list_from(d, n, size.at + 2);
	for (int32_t i = 0; i < n; i++) {
		on_bound(d, "an extent", shape.at[i], 0, 1 << 20);
		pixels *= shape.at[i];
	}
	on_bound(d, "the number of pixels", pixels, 0, INT64_C(1) << 40);
	for (int32_t i = 0; i < n; i++) /* x is the last axis */
		at[i] = rowa(d, "along_axis",
			A(places(d, on_dt(d, theta), shape.at[n - 1 - i],
				corners)),
			INTS("shape", shape), INT("axis", n - 1 - i));
	at[n] = on_filled(d, on_dt(d, theta), shape, 1);
	for (int32_t i = 0; i <= n; i++)
		at[i] = on_reshape(d, at[i], LIST(d, pixels, 1));
	base = on_concat(d, n + 1, at, 1);
	out = on_list_new(d, n + 2, n);
	out.at[0] = size.at[0];
	memcpy(out.at + 1, shape.at, (size_t)n * sizeof *shape.at);
	on_set(d, 0, on_reshape(d, row(d, "matmul", A(base,
					on_move_axis(d, theta, 2, 1))), out));
}
