/*
 * tensor_views.c: random views, each beside its model: where its elements are.
 */
#include "tensor_world.h"

static void walk(const item *v, const int64_t *stride, int64_t start,
	int32_t *from)
{
	int64_t i[4] = {0};

	for (int32_t k = 0; k < numel(v); k++) {
		int64_t at = start;

		for (int32_t d = 0; d < v->rank; d++)
			at += i[d] * stride[d];
		from[k] = (int32_t)at;
		for (int32_t d = v->rank - 1; d >= 0; d--) {
			if (++i[d] < v->shape[d])
				break;
			i[d] = 0;
		}
	}
}

static void strides(const item *v, int64_t *s)
{
	int64_t n = 1;

	for (int32_t d = v->rank - 1; d >= 0; d--) {
		s[d] = n;
		n *= v->shape[d];
	}
}

/* Pieces of an axis, or its slices without it: views all of them. */
static void make_pieces(world *w, const item *x, bool is_split)
{
	int32_t axis = x->rank > 0 ? (int32_t)below(w, x->rank) : 0, n;
	int64_t s[4], stride[4], sizes[3], extent = x->shape[axis], start = 0;
	tn_tensor *out[3];

	if (x->rank == 0 || (!is_split && extent > 3))
		return;
	strides(x, s);
	n = is_split ? 1 + (int32_t)below(w, 3) : (int32_t)extent;
	for (int32_t i = 0; i < n; i++) { /* the last one is the rest */
		sizes[i] = !is_split ? 1 : i == n - 1
			? extent - start
			: below(w, extent - start + 1);
		start += sizes[i];
	}
	if (is_split)
		for (int32_t i = 0; i < n; i++)
			if (sizes[i] == 0) /* there is nothing to compare */
				return;
	if (w->c && is_split)
		tn_split(x->x, axis, sizes, n, 0, out);
	else if (w->c)
		tn_unbind(x->x, axis, out);
	start = 0;
	for (int32_t i = 0; i < n; i++) {
		item *v = fresh(w);
		int32_t from[ELEMS], rank = 0;

		for (int32_t d = 0; d < x->rank; d++) {
			if (d == axis && !is_split)
				continue;
			v->shape[rank] = d == axis ? sizes[i] : x->shape[d];
			stride[rank++] = s[d];
		}
		v->rank = rank;
		v->n = numel(v);
		walk(v, stride, start * s[axis], from);
		v->storage = x->storage;
		v->repeats = x->repeats;
		for (int32_t k = 0; k < v->n; k++)
			v->at[k] = x->at[from[k]];
		v->x = w->c ? out[i] : NULL;
		start += sizes[i];
		w->n_views++;
		w->n_pieces++;
	}
}

/* Where the elements of a view are: at start, by a stride an axis. */
typedef struct places {
	int64_t s[4]; /* strides of what is viewed */
	int64_t stride[4], start;
} places;

static void slice(world *w, const item *x, item *v, places *p)
{
	int64_t from[4], n[4], step[4];

	for (int32_t d = 0; d < x->rank; d++) {
		from[d] = below(w, x->shape[d]);
		step[d] = below(w, 4) == 0 ? -1 : 1 + below(w, 2);
		n[d] = 1 + below(w, step[d] > 0
			? (x->shape[d] - 1 - from[d]) / step[d] + 1
			: from[d] + 1);
		v->shape[d] = n[d];
		p->start += from[d] * p->s[d];
		p->stride[d] = p->s[d] * step[d];
	}
	if (w->c)
		v->x = tn_slice(x->x, NULL, 0, from, x->rank, n, x->rank, step,
			x->rank);
}

/* rotated axes */
static void transpose(world *w, const item *x, item *v, places *p)
{
	int64_t perm[4];

	for (int32_t d = 0; d < x->rank; d++) {
		perm[d] = (d + 1) % x->rank;
		v->shape[d] = x->shape[perm[d]];
		p->stride[d] = p->s[perm[d]];
	}
	if (w->c)
		v->x = tn_transpose(x->x, perm, x->rank);
}

static void reshape(world *w, const item *x, item *v, places *p)
{
	v->rank = 1 + (int32_t)below(w, 2);
	v->shape[0] = x->n;
	if (v->rank == 2) {
		int64_t e = 1 + below(w, x->n);

		while (x->n % e != 0)
			e--;
		v->shape[0] = e;
		v->shape[1] = x->n / e;
	}
	strides(v, p->stride);
	if (w->c)
		v->x = tn_reshape(x->x, v->shape, v->rank);
}

static void diagonal(world *w, const item *x, item *v, places *p)
{
	v->rank = x->rank - 1;
	v->shape[v->rank - 1] = x->shape[v->rank - 1] < x->shape[v->rank]
		? x->shape[v->rank - 1]
		: x->shape[v->rank];
	p->stride[v->rank - 1] = p->s[v->rank - 1] + p->s[v->rank];
	if (w->c)
		v->x = tn_diagonal(x->x, 0);
}

static void expand(world *w, const item *x, item *v, places *p)
{
	v->rank = x->rank + 1;
	memcpy(v->shape + 1, x->shape, 3 * sizeof *v->shape);
	memmove(p->stride + 1, p->s, 3 * sizeof *p->stride);
	v->shape[0] = 2;
	p->stride[0] = 0;
	v->repeats = true;
	if (w->c)
		v->x = tn_broadcast_to(x->x, v->shape, v->rank);
}

/* of the first axis */
static void flip(world *w, const item *x, item *v, places *p)
{
	const int64_t axis = 0;

	p->start = (x->shape[0] - 1) * p->s[0];
	p->stride[0] = -p->s[0];
	if (w->c)
		v->x = tn_flip(x->x, &axis, 1);
}

void make_view(world *w, const item *x)
{
	static void (*const make[])(
		world *, const item *, item *, places *) = {
		slice, transpose, reshape, diagonal, expand, flip};
	int32_t kind = (int32_t)below(w, 8), from[ELEMS];
	places p = {.start = 0};
	item *v;

	if (kind > 5) {
		make_pieces(w, x, kind == 6);
		return;
	}
	if ((kind == 3 && x->rank < 2) ||
		(kind == 4 && (x->rank > 3 || x->n > ELEMS / 2)) ||
		(x->rank == 0 && kind != 2 && kind != 4))
		return;
	v = fresh(w);
	w->n_views++;
	strides(x, p.s);
	v->rank = x->rank;
	memcpy(v->shape, x->shape, sizeof v->shape);
	memcpy(p.stride, p.s, (size_t)x->rank * sizeof *p.s);
	make[kind](w, x, v, &p);
	walk(v, p.stride, p.start, from);
	v->n = numel(v);
	v->storage = x->storage;
	v->repeats = v->repeats || x->repeats;
	for (int32_t k = 0; k < v->n; k++)
		v->at[k] = x->at[from[k]];
}
