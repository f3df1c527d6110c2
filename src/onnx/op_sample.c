/*
 * op_sample.c: pixels and voxels at places that are computed from data.
 *
 *     GridSample(x, grid)              sums of sample_pixels(x, i, j) * weight
 *     DeformConv(x, w, offset, mask)   the same for the taps of a kernel, times
 *                                      the mask, and a matrix product with w
 */
#include "onnx/ops.h"

enum { MAX_AXES = 3 };

/* ---- places and pixels ---- */

typedef struct grid {
	node *d;
	int32_t n; /* spatial axes: 2 or 3 */
	int32_t x; /* (n, c, h, w) or (n, c, d, h, w) */
	bool align;
	char padding; /* z zeros, b border, r reflection */
} grid;

static int32_t num(const grid *g, int32_t like, double v)
{
	return on_scalar(g->d, on_dt(g->d, like), v);
}

/* Maps -1 .. 1 to positions 0 .. n - 1. */
static int32_t place_of(const grid *g, int32_t v, int64_t n)
{
	double m = (double)n;

	v = on_two(g->d, "add", v, num(g, v, 1));
	if (g->align)
		return on_two(g->d, "mul", v, num(g, v, (m - 1) / 2));
	v = on_two(g->d, "mul", v, num(g, v, m / 2));
	return on_two(g->d, "sub", v, num(g, v, 0.5));
}

/* Reflects v at lo and hi until it is between them. */
static int32_t reflect(const grid *g, int32_t v, double lo, double hi)
{
	double range = hi - lo;

	if (range <= 0)
		return on_two(g->d, "mul", v, num(g, v, 0));
	v = row(g->d, "abs", A(on_two(g->d, "sub", v, num(g, v, lo))));
	v = on_two(g->d, "mod", v, num(g, v, 2 * range));
	v = on_two(g->d, "min", v,
		on_two(g->d, "sub", num(g, v, 2 * range), v));
	return on_two(g->d, "add", v, num(g, v, lo));
}

static int32_t clip_to(const grid *g, int32_t v, int64_t n)
{
	v = on_two(g->d, "max", v, num(g, v, 0));
	return on_two(g->d, "min", v, num(g, v, (double)n - 1));
}

/* Applies the padding mode to a position; mode zeros leaves it as it is. */
static int32_t padded(const grid *g, int32_t v, int64_t n)
{
	if (g->padding == 'r' && g->align)
		v = reflect(g, v, 0, (double)n - 1);
	else if (g->padding == 'r')
		v = reflect(g, v, -0.5, (double)n - 0.5);
	return g->padding != 'z' ? clip_to(g, v, n) : v;
}

/* Voxels at integer positions; the slices of a volume lie below each other. */
static int32_t voxels(const grid *g, const int32_t *at)
{
	node *d = g->d;
	list e = on_shape_of(d, at[0]), o;
	const int64_t *s = on_ty(d, g->x)->shape;
	int32_t i = at[0], j = at[1], k, x, in;

	i = on_two(d, "max", i, num(g, i, -1));
	i = on_two(d, "min", i, num(g, i, (double)s[2]));
	i = on_two(d, "add", j, on_two(d, "mul", i, num(g, i, (double)s[3])));
	in = on_two(d, "and", on_two(d, "ge", j, num(g, j, 0)),
		on_two(d, "lt", j, num(g, j, (double)s[3])));
	i = row(d, "where", A(in, i, num(g, i, -1)));
	i = on_reshape(d, i, LIST(d, e.at[0], e.at[1] * e.at[2], e.at[3]));
	k = on_reshape(d, at[2], LIST(d, e.at[0], e.at[1] * e.at[2], e.at[3]));
	x = on_reshape(d, g->x, LIST(d, s[0], s[1], s[2] * s[3], s[4]));
	x = row(d, "sample_pixels", A(x, i, k));
	o = LIST(d, e.at[0], s[1], e.at[1], e.at[2], e.at[3]);
	return on_reshape(d, x, o);
}

/* Pixels at integer positions (as floats) (n, places..), 0 outside: (n, c,
 * places..) */
static int32_t pixels(const grid *g, const int32_t *at)
{
	node *d = g->d;
	int32_t p[MAX_AXES];

	for (int32_t k = 0; k < g->n; k++)
		p[k] = on_cast_to(d, padded(g, at[k], on_extent(d, g->x, 2 + k)),
			TN_I64);
	return g->n == 3 ? voxels(g, p)
			 : row(d, "sample_pixels", A(g->x, p[0], p[1]));
}

/* What is taken along an axis for each place: n elements, and their weights. */
typedef struct taps {
	int32_t n, at[4], w[4];
} taps;

/* The sum over all combinations of taps, by the products of their weights. */
static int32_t weighted(const grid *g, const taps *t)
{
	node *d = g->d;
	int32_t sum = -1, all = 1;

	for (int32_t k = 0; k < g->n; k++)
		all *= t[k].n;
	for (int32_t c = 0; c < all; c++) {
		int32_t at[MAX_AXES] = {0}, w = -1, rest = c, v;

		for (int32_t k = g->n - 1; k >= 0; k--) {
			at[k] = rest % t[k].n;
			rest /= t[k].n;
		}
		for (int32_t k = 0; k < g->n; k++) {
			v = t[k].w[at[k]];
			w = w < 0 ? v : on_two(d, "mul", w, v);
			at[k] = t[k].at[at[k]];
		}
		v = on_two(d, "mul", pixels(g, at), on_unsqueeze(d, w, 1));
		sum = sum < 0 ? v : on_two(d, "add", sum, v);
	}
	return sum;
}

/* The integer positions on both sides of v, and their weights. */
static taps linear_taps(const grid *g, int32_t v)
{
	node *d = g->d;
	taps t = {.n = 2};

	t.at[0] = row(d, "floor", A(v));
	t.at[1] = on_two(d, "add", t.at[0], num(g, v, 1));
	t.w[1] = on_two(d, "sub", v, t.at[0]);
	t.w[0] = on_two(d, "sub", num(g, v, 1), t.w[1]);
	return t;
}

/* c3 t^3 + c2 t^2 + c1 t + c0 */
static int32_t cubic_poly(const grid *g, int32_t t, const double c[4])
{
	int32_t v = num(g, t, c[3]);

	for (int32_t k = 2; k >= 0; k--)
		v = on_two(g->d, "add", on_two(g->d, "mul", v, t), num(g, t, c[k]));
	return v;
}

static taps cubic_taps(const grid *g, int32_t v)
{
	/* Keys's cubic kernel with a = -0.75, as polynomials in the fraction */
	static const double c[4][4] = {{0, -0.75, 1.5, -0.75},
		{1, 0, -2.25, 1.25}, {0, 0.75, 1.5, -1.25}, {0, 0, -0.75, 0.75}};
	node *d = g->d;
	int32_t low = row(d, "floor", A(v)), part = on_two(d, "sub", v, low);
	taps t = {.n = 4};

	for (int32_t k = 0; k < 4; k++) {
		t.at[k] = on_two(d, "add", low, num(g, v, k - 1));
		t.w[k] = cubic_poly(g, part, c[k]);
	}
	return t;
}

/* ---- GridSample ---- */

void onnx_grid_sample(node *d)
{
	const char *mode = on_text(d, "mode", "bilinear");
	const char *padding = on_text(d, "padding_mode", "zeros");
	int32_t x = on_in(d, 0), at = on_in(d, 1), r = on_rank_of(d, x);
	bool cubic = !strcmp(mode, "bicubic") || !strcmp(mode, "cubic");
	bool linear = !strcmp(mode, "bilinear") || !strcmp(mode, "linear");
	int32_t place[MAX_AXES];
	taps t[MAX_AXES];
	grid g = {d, r - 2, x, on_int(d, "align_corners", 0) != 0, padding[0]};

	if ((r != 4 && r != 5) || on_rank_of(d, at) != r ||
		on_extent(d, at, r - 1) != r - 2 ||
		on_extent(d, at, 0) != on_extent(d, x, 0))
		on_fail(d, "onnx.shape", "images (n, c, h, w) and points (n, "
			"y, x, 2), or volumes (n, c, d, h, w) and points (n, z, "
			"y, x, 3), are needed");
	if (!cubic && !linear && strcmp(mode, "nearest") != 0)
		on_fail(d, "onnx.attr", "mode \"%.50s\" is not supported; "
			"accepted are nearest, linear (bilinear) and cubic "
			"(bicubic)", mode);
	if (strcmp(padding, "zeros") != 0 && strcmp(padding, "border") != 0 &&
		strcmp(padding, "reflection") != 0)
		on_fail(d, "onnx.attr", "padding_mode \"%.50s\" is not "
			"supported; accepted are zeros, border and reflection",
			padding);
	at = on_cast_to(d, at, on_dt(d, x));
	for (int32_t k = g.n - 1; k >= 0; k--) { /* x is the last axis */
		place[k] = place_of(&g, rowa(d, "select", A(at), INT("axis", r - 1),
					 INT("index", g.n - 1 - k)),
			on_extent(d, x, 2 + k));
		/* cubic reflects the elements that it takes, not the place */
		if (!cubic)
			place[k] = padded(&g, place[k], on_extent(d, x, 2 + k));
		if (cubic)
			t[k] = cubic_taps(&g, place[k]);
		else if (linear)
			t[k] = linear_taps(&g, place[k]);
		else
			place[k] = row(d, "round", A(place[k]));
	}
	on_set(d, 0, cubic || linear ? weighted(&g, t) : pixels(&g, place));
}

/* ---- DeformConv ---- */

struct deform {
	node *d;
	int64_t n, channels, groups, offsets; /* offsets: groups of offsets */
	int64_t size[2], kernel[2], out[2];   /* rows, columns */
	int64_t taps, places;		      /* of a kernel; of the result */
	list stride, dil, pads;
};

static list numbers(struct deform *k, const char *name, int32_t n, int64_t v)
{
	node *d = k->d;
	list l;

	if (!on_list(d, name, &l))
		return on_list_new(d, n, v);
	if (l.n != n)
		on_fail(d, "onnx.attr", "%s has %d numbers; it must have %d",
			name, (int)l.n, (int)n);
	for (int32_t i = 0; i < n; i++)
		on_bound(d, name, l.at[i], v, 1 << 20);
	return l;
}

/* An input must have the shape [n, offsets * per, rows, columns]. */
static int32_t of_places(struct deform *k, int32_t i, int64_t per)
{
	node *d = k->d;
	int32_t v = on_in(d, i);
	list want = LIST(d, k->n, k->offsets * per, k->out[0], k->out[1]);

	if (on_rank_of(d, v) != 4 || memcmp(on_ty(d, v)->shape, want.at,
					     4 * sizeof *want.at) != 0)
		on_fail(d, "onnx.shape", "input %d must have the shape "
			"[%lld,%lld,%lld,%lld]", (int)i, (long long)want.at[0],
			(long long)want.at[1], (long long)want.at[2],
			(long long)want.at[3]);
	return v;
}

static void find_kernel(struct deform *k, const int64_t *x, const int64_t *w)
{
	node *d = k->d;
	list given = LIST(d, w[2], w[3]);

	k->n = x[0];
	k->channels = x[1];
	k->groups = on_bound(d, "group", on_int(d, "group", 1), 1, 1 << 20);
	k->offsets = on_bound(d, "offset_group", on_int(d, "offset_group", 1), 1,
		1 << 20);
	k->stride = numbers(k, "strides", 2, 1);
	k->dil = numbers(k, "dilations", 2, 1);
	k->pads = numbers(k, "pads", 4, 0);
	if (x[1] % k->offsets != 0 || x[1] % k->groups != 0 ||
		w[0] % k->groups != 0 || w[1] != x[1] / k->groups)
		on_fail(d, "onnx.shape", "%lld channels in %lld groups and %lld "
			"groups of offsets do not fit weights "
			"[%lld,%lld,%lld,%lld]",
			(long long)x[1], (long long)k->groups,
			(long long)k->offsets, (long long)w[0], (long long)w[1],
			(long long)w[2], (long long)w[3]);
	if (on_list(d, "kernel_shape", &given) &&
		(given.n != 2 || given.at[0] != w[2] || given.at[1] != w[3]))
		on_fail(d, "onnx.attr", "kernel_shape must be that of the "
			"weights, [%lld,%lld]", (long long)w[2],
			(long long)w[3]);
	k->taps = k->places = 1;
	for (int32_t i = 0; i < 2; i++) {
		int64_t span;

		k->size[i] = x[2 + i];
		k->kernel[i] = on_bound(d, "an extent of the kernel", w[2 + i],
			1, 1 << 12);
		span = k->size[i] + k->pads.at[i] + k->pads.at[2 + i] -
			k->dil.at[i] * (k->kernel[i] - 1) - 1;
		k->out[i] = on_bound(d, "an extent of the result", span < 0 ? 0
				: span / k->stride.at[i] + 1, 1, 1 << 20);
		k->taps *= k->kernel[i];
		k->places *= k->out[i];
	}
	on_bound(d, "the number of places", k->places, 1, 1 << 24);
}

/* Where axis i is read, of each tap and place: [n * offsets, taps, places]. */
static int32_t read_at(struct deform *k, int32_t offset, int32_t i)
{
	node *d = k->d;
	tn_dtype t = on_dt(d, offset);
	double *tap = arena_array(d->x->a, double, k->taps + 1);
	double *place = arena_array(d->x->a, double, k->places + 1);
	int64_t inner = i == 0 ? k->kernel[1] : 1;
	int64_t below = i == 0 ? k->out[1] : 1;
	int32_t at;

	for (int64_t p = 0; p < k->taps; p++)
		tap[p] = (double)(p / inner % k->kernel[i] * k->dil.at[i]);
	for (int64_t p = 0; p < k->places; p++)
		place[p] = (double)(p / below % k->out[i] * k->stride.at[i] -
				    k->pads.at[i]);
	at = on_two(d, "add", on_const_real(d, t, LIST(d, k->taps, 1), tap),
		on_const_real(d, t, LIST(d, k->places), place));
	return on_two(d, "add", rowa(d, "select", A(offset), INT("axis", 2),
				  INT("index", i)), at);
}

void onnx_deform_conv(node *d)
{
	struct deform k = {.d = d};
	int32_t x = on_in(d, 0), w = on_in(d, 1), offset, o;
	tn_dtype out = on_dt(d, x), t = out == TN_F64 ? TN_F64 : TN_F32;
	grid g = {.d = d, .n = 2, .padding = 'z'};
	taps at[2];
	int64_t depth, results;

	if (on_rank_of(d, x) != 4 || on_rank_of(d, w) != 4)
		on_fail(d, "onnx.shape", "images (n, c, h, w) and weights "
			"(results, c / group, rows, columns) are needed");
	find_kernel(&k, on_ty(d, x)->shape, on_ty(d, w)->shape);
	offset = on_cast_to(d, of_places(&k, 2, 2 * k.taps), t);
	offset = on_reshape(d, offset, LIST(d, k.n * k.offsets, k.taps, 2,
					    k.places));
	g.x = on_reshape(d, on_cast_to(d, x, t), LIST(d, k.n * k.offsets,
			k.channels / k.offsets, k.size[0], k.size[1]));
	for (int32_t i = 0; i < 2; i++)
		at[i] = linear_taps(&g, read_at(&k, offset, i));
	o = weighted(&g, at);
	if (on_has(d, 4))
		o = on_two(d, "mul", o,
			on_reshape(d, on_cast_to(d, of_places(&k, 4, k.taps), t),
				LIST(d, k.n * k.offsets, 1, k.taps, k.places)));
	depth = k.channels / k.groups * k.taps;
	results = on_extent(d, w, 0);
	o = on_reshape(d, o, LIST(d, k.n, k.groups, depth, k.places));
	w = on_reshape(d, on_cast_to(d, w, t), LIST(d, k.groups,
					       results / k.groups, depth));
	o = on_reshape(d, on_two(d, "matmul", w, o),
		LIST(d, k.n, results, k.out[0], k.out[1]));
	if (on_has(d, 3)) {
		int32_t b = on_cast_to(d, on_in(d, 3), t);

		if (on_rank_of(d, b) != 1 || on_numel(d, b) != results)
			on_fail(d, "onnx.shape", "the bias must have %lld "
				"numbers", (long long)results);
		o = on_two(d, "add", o, on_along(d, b, 1, 4));
	}
	on_set(d, 0, on_cast_to(d, o, out));
}
