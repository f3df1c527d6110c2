/*
 * opaque.c: the rows that have no index equations: C functions on whole, dense
 * tensors, found by the name of the row.
 *
 *   in     types and data, as the row declares them; attr: its attributes
 *          in order, axes normalised
 *   out    the function writes every element of every result
 *
 *     sort([3, NaN, 1, 3])          o [1, 3, 3, NaN]   k [2, 0, 3, 1]
 *     nonzero([0, 5])               k [[1], [-1]]      n 1
 *
 * All functions follow these rules: NaN is greater than every number and equal
 * to itself; -0 equals 0; of equal elements the one with the lower index is
 * first, in ascending and in descending order. Results whose size depends on
 * data have the largest possible size, and a count; after the counted elements,
 * indices are -1 and values 0.
 */
#include "notation/notation.h"

#include <math.h>

/* An element to compare. The dtype determines which member is used. */
typedef union key {
	double f;
	int64_t i;
} key;

/* A call. Its function allocates scratch memory in the arena that it gets. */
typedef struct job {
	const ir_type *in_type, *out_type;
	const void *const *in;
	void *const *out;
	const int64_t *attr;
} job;

/* ---- order ---- */

static bool is_less(tn_dtype t, key x, key y)
{
	if (t == TN_U64)
		return (uint64_t)x.i < (uint64_t)y.i;
	if (!dtype_is_float(t))
		return x.i < y.i;
	return x.f < y.f || (x.f == x.f && y.f != y.f);
}

static key load(tn_dtype t, const void *data, int64_t i)
{
	key k;

	if (dtype_is_float(t))
		k.f = dtype_load_f64(t, data, i);
	else
		k.i = dtype_load_i64(t, data, i);
	return k;
}

static void copy_element(tn_dtype t, void *to, int64_t i, const void *from,
	int64_t j)
{
	size_t n = dtype_size(t);

	memcpy((char *)to + (size_t)i * n, (const char *)from + (size_t)j * n,
		n);
}

typedef struct order {
	tn_dtype dtype;
	bool desc;
	int64_t n;
	key *at;	    /* (n) */
	int64_t *perm, *tmp; /* (n) */
} order;

static order order_new(arena *a, tn_dtype t, bool desc, int64_t n)
{
	order o = {.dtype = t, .desc = desc, .n = n};

	o.at = arena_array(a, key, n);
	o.perm = arena_array(a, int64_t, n);
	o.tmp = arena_array(a, int64_t, n);
	return o;
}

static bool is_before(const order *o, int64_t x, int64_t y)
{
	return o->desc ? is_less(o->dtype, o->at[y], o->at[x]) :
			 is_less(o->dtype, o->at[x], o->at[y]);
}

/* Sets perm to the stable order of at[], by a bottom-up merge sort. */
static void order_sort(order *o)
{
	for (int64_t i = 0; i < o->n; i++)
		o->perm[i] = i;
	for (int64_t run = 1; run < o->n; run *= 2) {
		for (int64_t lo = 0; lo < o->n; lo += 2 * run) {
			int64_t mid = lo + run < o->n ? lo + run : o->n;
			int64_t hi = mid + run < o->n ? mid + run : o->n;
			int64_t i = lo, j = mid;

			for (int64_t k = lo; k < hi; k++) {
				bool right = i == mid ||
					(j < hi && is_before(o, o->perm[j],
							   o->perm[i]));
				o->tmp[k] = o->perm[right ? j++ : i++];
			}
		}
		int64_t *t = o->perm;
		o->perm = o->tmp;
		o->tmp = t;
	}
}

/* ---- sort, argsort, topk ---- */

/*
 * Sorts each line along the axis; stores the first `count` elements in values
 * (may be NULL) and their indices in places.
 */
static void sort_lines(arena *a, const job *j, int64_t axis, bool desc,
	int64_t count, void *values, int64_t *places)
{
	const ir_type *t = &j->in_type[0];
	int64_t n = t->shape[axis], outer, inner;
	order o = order_new(a, t->dtype, desc, n);

	outer = shape_numel(t->shape, (int32_t)axis);
	inner = shape_numel(t->shape + axis + 1, t->rank - (int32_t)axis - 1);
	for (int64_t line = 0; line < outer * inner; line++) {
		int64_t row = line / inner, col = line % inner;
		int64_t from = row * n * inner + col;

		for (int64_t i = 0; i < n; i++)
			o.at[i] = load(t->dtype, j->in[0], from + i * inner);
		order_sort(&o);
		for (int64_t i = 0; i < count; i++) {
			int64_t to = (row * count + i) * inner + col;

			places[to] = o.perm[i];
			if (values != NULL)
				copy_element(t->dtype, values, to, j->in[0],
					from + o.perm[i] * inner);
		}
	}
}

static void run_sort(arena *a, void *arg)
{
	job *j = arg;
	int64_t axis = j->attr[0];

	sort_lines(a, j, axis, j->attr[1] != 0, j->in_type[0].shape[axis],
		j->out[0], j->out[1]);
}

static void run_argsort(arena *a, void *arg)
{
	job *j = arg;
	int64_t axis = j->attr[0];

	sort_lines(a, j, axis, j->attr[1] != 0, j->in_type[0].shape[axis], NULL,
		j->out[0]);
}

static void run_topk(arena *a, void *arg)
{
	job *j = arg;

	sort_lines(a, j, j->attr[0], j->attr[2] != 0, j->attr[1], j->out[0],
		j->out[1]);
}

/* ---- nonzero, unique ---- */

static void run_nonzero(arena *a, void *arg)
{
	const job *j = arg;
	const ir_type *t = &j->in_type[0];
	int64_t n = shape_numel(t->shape, t->rank), found = 0;
	int64_t *places = j->out[0]; /* (n, rank) */

	(void)a;

	for (int64_t i = 0; i < n; i++) {
		key k = load(t->dtype, j->in[0], i);
		int64_t rest = i;

		if (dtype_is_float(t->dtype) ? k.f == 0 : k.i == 0)
			continue;
		for (int32_t d = t->rank - 1; d >= 0; d--) {
			places[found * t->rank + d] = rest % t->shape[d];
			rest /= t->shape[d];
		}
		found++;
	}
	for (int64_t i = found * t->rank; i < n * t->rank; i++)
		places[i] = -1;
	*(int64_t *)j->out[1] = found;
}

static void run_unique(arena *a, void *arg)
{
	job *j = arg;
	const ir_type *t = &j->in_type[0];
	int64_t n = shape_numel(t->shape, t->rank), found = 0;
	int64_t *first = j->out[1], *inverse = j->out[2], *counts = j->out[3];
	order o = order_new(a, t->dtype, false, n);

	for (int64_t i = 0; i < n; i++)
		o.at[i] = load(t->dtype, j->in[0], i);
	order_sort(&o);
	for (int64_t i = 0; i < n; i++) {
		int64_t place = o.perm[i];

		if (i == 0 || is_before(&o, o.perm[i - 1], place)) {
			copy_element(t->dtype, j->out[0], found, j->in[0],
				place);
			first[found] = place;
			counts[found++] = 0;
		}
		inverse[place] = found - 1;
		counts[found - 1]++;
	}
	if (found < n)
		memset((char *)j->out[0] +
				(size_t)found * dtype_size(t->dtype),
			0, (size_t)(n - found) * dtype_size(t->dtype));
	for (int64_t i = found; i < n; i++) {
		first[i] = -1;
		counts[i] = 0;
	}
	*(int64_t *)j->out[4] = found;
}

/* ---- non_max_suppression (ONNX NonMaxSuppression) ---- */

typedef struct box {
	double y0, x0, y1, x1; /* y0 <= y1, x0 <= x1 */
} box;

/*
 * Loads box i, given as two opposite corners, or as centre and size; returns
 * its corners.
 */
static box load_box(tn_dtype t, const void *data, int64_t i, bool center)
{
	double v[4];
	box b;

	for (int32_t k = 0; k < 4; k++)
		v[k] = dtype_load_f64(t, data, 4 * i + k);
	if (center) /* x, y, width, height */
		return (box){v[1] - v[3] / 2, v[0] - v[2] / 2,
			v[1] + v[3] / 2, v[0] + v[2] / 2};
	b.y0 = v[0] < v[2] ? v[0] : v[2];
	b.y1 = v[0] < v[2] ? v[2] : v[0];
	b.x0 = v[1] < v[3] ? v[1] : v[3];
	b.x1 = v[1] < v[3] ? v[3] : v[1];
	return b;
}

/* Intersection over union; 0 if one of the boxes is empty. */
static double overlap(const box *p, const box *q)
{
	double h = (p->y1 < q->y1 ? p->y1 : q->y1) -
		(p->y0 > q->y0 ? p->y0 : q->y0);
	double w = (p->x1 < q->x1 ? p->x1 : q->x1) -
		(p->x0 > q->x0 ? p->x0 : q->x0);
	double both = (p->y1 - p->y0) * (p->x1 - p->x0) +
		(q->y1 - q->y0) * (q->x1 - q->x0);

	if (!(h > 0 && w > 0))
		return 0;
	return h * w / (both - h * w);
}

typedef struct nms {
	job *j;
	order by_score;
	box *at, *kept; /* (n) boxes of the batch; the kept boxes of a class */
	double iou, least;
	int64_t most, found;
} nms;

static void suppress_class(nms *s, int64_t batch, int64_t class)
{
	const ir_type *scores = &s->j->in_type[1]; /* (b, c, n) */
	int64_t n = scores->shape[2], n_kept = 0;
	int64_t *out = s->j->out[0];

	for (int64_t i = 0; i < n; i++)
		s->by_score.at[i].f = dtype_load_f64(scores->dtype,
			s->j->in[1], (batch * scores->shape[1] + class) * n + i);
	order_sort(&s->by_score);
	for (int64_t i = 0; i < n && n_kept < s->most; i++) {
		int64_t place = s->by_score.perm[i];
		bool falls = !(s->by_score.at[place].f > s->least);

		for (int64_t k = 0; k < n_kept && !falls; k++)
			falls = overlap(&s->kept[k], &s->at[place]) > s->iou;
		if (falls)
			continue;
		s->kept[n_kept++] = s->at[place];
		out[3 * s->found] = batch;
		out[3 * s->found + 1] = class;
		out[3 * s->found + 2] = place;
		s->found++;
	}
}

static void run_non_max_suppression(arena *a, void *arg)
{
	job *j = arg;
	const ir_type *boxes = &j->in_type[0]; /* (b, n, 4) */
	int64_t n = boxes->shape[1], n_classes = j->in_type[1].shape[1];
	nms s = {.j = j, .most = j->attr[0]};

	s.by_score = order_new(a, boxes->dtype, true, n);
	s.at = arena_array(a, box, n);
	s.kept = arena_array(a, box, n);
	s.iou = dtype_load_f64(boxes->dtype, j->in[2], 0);
	s.least = dtype_load_f64(boxes->dtype, j->in[3], 0);
	for (int64_t batch = 0; batch < boxes->shape[0]; batch++) {
		for (int64_t i = 0; i < n; i++)
			s.at[i] = load_box(boxes->dtype, j->in[0],
				batch * n + i, j->attr[1] != 0);
		for (int64_t class = 0; class < n_classes; class++)
			suppress_class(&s, batch, class);
	}
	for (int64_t i = 3 * s.found; i < 3 * j->out_type[0].shape[0]; i++)
		((int64_t *)j->out[0])[i] = -1;
	*(int64_t *)j->out[1] = s.found;
}

/* ---- det ---- */

/* Gaussian elimination with partial pivoting; overwrites m (n, n). */
static double determinant(double *m, int64_t n)
{
	double det = 1;

	for (int64_t k = 0; k < n; k++) {
		int64_t best = k;

		for (int64_t i = k + 1; i < n; i++)
			if (fabs(m[i * n + k]) > fabs(m[best * n + k]))
				best = i;
		if (best != k)
			det = -det;
		for (int64_t j = k; j < n && best != k; j++) {
			double t = m[k * n + j];

			m[k * n + j] = m[best * n + j];
			m[best * n + j] = t;
		}
		det *= m[k * n + k];
		if (m[k * n + k] == 0)
			return 0;
		for (int64_t i = k + 1; i < n; i++) {
			double f = m[i * n + k] / m[k * n + k];

			for (int64_t j = k + 1; j < n; j++)
				m[i * n + j] -= f * m[k * n + j];
		}
	}
	return det;
}

static void run_det(arena *a, void *arg)
{
	const job *j = arg;
	const ir_type *t = &j->in_type[0];
	int64_t n = t->shape[t->rank - 1];
	int64_t n_out = shape_numel(j->out_type[0].shape, j->out_type[0].rank);
	double *m = arena_array(a, double, n * n + 1);

	for (int64_t i = 0; i < n_out; i++) {
		for (int64_t k = 0; k < n * n; k++)
			m[k] = dtype_load_f64(t->dtype, j->in[0],
				i * n * n + k);
		dtype_store_f64(j->out_type[0].dtype, j->out[0], i,
			determinant(m, n));
	}
}

/* ---- bit_cast ---- */

static void run_bit_cast(arena *a, void *arg)
{
	const job *j = arg;
	const ir_type *t = &j->in_type[0];
	tn_dtype to = j->out_type[0].dtype;
	size_t n_in = dtype_size(t->dtype), n_out = dtype_size(to);
	size_t n = n_in < n_out ? n_in : n_out;

	(void)a;
	for (int64_t i = 0; i < shape_numel(t->shape, t->rank); i++) {
		unsigned char *o = (unsigned char *)j->out[0] + i * (int64_t)n_out;
		uint64_t bits = 0;

		/* the machine is little-endian, as files are */
		memcpy(&bits, (const char *)j->in[0] + i * (int64_t)n_in, n);
		if (to == TN_BOOL)
			*o = bits != 0;
		else if (dtype_bits(to) < 8 && dtype_is_int(to))
			dtype_store_i64(to, o, 0, (int64_t)bits);
		else if (dtype_bits(to) < 8)
			*o = (unsigned char)(bits & ((1u << dtype_bits(to)) - 1));
		else
			memcpy(o, &bits, n_out);
	}
}

/* ---- unique_slices ---- */

typedef struct slices {
	const job *j;
	int64_t n, outer, inner; /* (outer, n, inner) */
} slices;

static key slice_element(const slices *s, int64_t slice, int64_t i)
{
	int64_t row = i / s->inner, col = i % s->inner;

	return load(s->j->in_type[0].dtype, s->j->in[0],
		(row * s->n + slice) * s->inner + col);
}

/* Compares slices x and y element by element: -1, 0 or 1. */
static int compare_slices(const slices *s, int64_t x, int64_t y)
{
	tn_dtype t = s->j->in_type[0].dtype;

	for (int64_t i = 0; i < s->outer * s->inner; i++) {
		key p = slice_element(s, x, i), q = slice_element(s, y, i);

		if (is_less(t, p, q))
			return -1;
		if (is_less(t, q, p))
			return 1;
	}
	return 0;
}

/* Inserts each slice into the sorted list of those before it. */
static void run_unique_slices(arena *a, void *arg)
{
	const job *j = arg;
	const ir_type *t = &j->in_type[0];
	int64_t axis = j->attr[0], found = 0;
	int64_t *first = j->out[0], *inverse = j->out[1], *counts = j->out[2];
	slices s = {.j = j, .n = t->shape[axis]};
	int64_t *rank = arena_array(a, int64_t, s.n + 1);

	s.outer = shape_numel(t->shape, (int32_t)axis);
	s.inner = shape_numel(t->shape + axis + 1, t->rank - (int32_t)axis - 1);
	for (int64_t i = 0; i < s.n; i++) {
		int64_t lo = 0, hi = found;

		while (lo < hi) {
			int64_t mid = (lo + hi) / 2;

			if (compare_slices(&s, first[mid], i) < 0)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (lo == found || compare_slices(&s, first[lo], i) != 0) {
			for (int64_t k = found++; k > lo; k--) {
				first[k] = first[k - 1];
				counts[k] = counts[k - 1];
			}
			first[lo] = i;
			counts[lo] = 0;
		}
		counts[lo]++;
		rank[i] = first[lo];
	}
	for (int64_t i = 0; i < s.n; i++)
		for (int64_t k = 0; k < found; k++)
			if (first[k] == rank[i])
				inverse[i] = k;
	for (int64_t i = found; i < s.n; i++) {
		first[i] = -1;
		counts[i] = 0;
	}
	*(int64_t *)j->out[3] = found;
}

/* ---- the table ---- */

#define OPAQUE(name)                                                           \
	static void do_##name(env *e, const ir_opaque *self,                   \
		const ir_type *in_type, const void *const *in,                 \
		const ir_type *out_type, void *const *out,                     \
		const int64_t *attr)                                           \
	{                                                                      \
		job j = {in_type, out_type, in, out, attr};              \
                                                                               \
		(void)self;                                                    \
		arena_run(e, run_##name, &j);                               \
	}
OPAQUE(sort)
OPAQUE(argsort)
OPAQUE(topk)
OPAQUE(nonzero)
OPAQUE(unique)
OPAQUE(non_max_suppression)
OPAQUE(det)
OPAQUE(bit_cast)
OPAQUE(unique_slices)
#undef OPAQUE

static const ir_opaque table[] = {
	{"sort", do_sort, NULL},
	{"argsort", do_argsort, NULL},
	{"topk", do_topk, NULL},
	{"nonzero", do_nonzero, NULL},
	{"unique", do_unique, NULL},
	{"non_max_suppression", do_non_max_suppression, NULL},
	{"det", do_det, NULL},
	{"bit_cast", do_bit_cast, NULL},
	{"unique_slices", do_unique_slices, NULL},
};

const ir_opaque *ir_opaque_find(const char *name)
{
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}
