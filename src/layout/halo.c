/*
 * halo.c: sliding windows: reads whose index on an axis of a tensor is an axis of
 * the equation times a step, plus a small offset.
 *
 * Consumes a read with its guards, and a cut of an axis of the equation; produces
 * the blocks of the tensor's axis that are read, with the halo before and after
 * them.
 *
 *     o[y] += x[2y + k - 1] for k < 3, inside 0 <= 2y + k - 1 < 10
 *     y in blocks of 2:  x in blocks of 4, 1 before, 0 after
 *
 * Guarantees: a process that has this part of the axis has every element that the
 * guards let it read. A slice is a sliding window of extent 1; so are the sides of
 * a pad, the reads of a concat, and the neighbours of a difference.
 *
 *     o[i] = x[i + 3] for i < 12, x: 16 in blocks of 4
 *     i in blocks of 3:  rows 3..5, 6..8, 9..11, 12..14: three of them move
 *
 * An equation that is not cut along the run of its tensor, and reads only a part of
 * the run, needs only that part: one block on all processes.
 */
#include "layout/local.h"

/* The index of the read on axis k of its tensor, simplified by the guards. */
static const ix_form *index_on(shard_plan *p, const eqn_read *r, int32_t k,
	int64_t *stride)
{
	const sys_tensor *t = &p->s->tensor.at[r->tensor];
	int64_t n = 1;

	for (int32_t i = t->rank - 1; i > k; i--)
		n *= t->shape[i];
	*stride = n;
	if (n == 0 || t->shape[k] == 0)
		return NULL;
	return ix_mod(p->s->x, &r->dom, ix_div(p->s->x, &r->dom, r->at, n),
		t->shape[k]);
}

/* The step with which the digit of an axis from lo up occurs in f; 0: it does not
 * occur, or not linearly with a positive step. */
static int64_t step_of(
	const eqn_unit *u, const ix_form *f, int32_t axis, int64_t lo)
{
	int64_t step = 0;

	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;

		if (a->kind != IX_DIGIT)
			return 0;
		if (a->axis != axis || a->hi <= lo)
			continue;
		if (a->lo != lo || a->hi != u->box.extent[axis])
			return 0;
		step = f->t[i].coef;
	}
	return step > 0 ? step : 0;
}

static bool may_walk(const ix_form *f, int32_t axis, int64_t lo)
{
	for (int32_t i = 0; i < f->n; i++)
		if (f->t[i].atom->kind != IX_DIGIT ||
			(f->t[i].atom->axis == axis && f->t[i].atom->hi > lo))
			return true;
	return false;
}

/* The range of f - step * (axis div lo). */
static void beside(shard_plan *p, const eqn_read *r, const ix_form *f,
	int32_t axis, int64_t lo, int64_t step, int64_t *min, int64_t *max)
{
	ix *x = p->s->x;
	ix_dom box = {.box = r->dom.box};
	const ix_form *walks = ix_div(x, &box, ix_axis(x, &box, axis), lo);

	f = ix_sub(x, &box, f, ix_scale(x, walks, step));
	ix_range(&box, f, min, max);
}

static bool is_plain(const eqn_unit *u, const eqn_read *r)
{
	return u->e.push == NULL && u->e.opaque == NULL && !r->in_init &&
	       !r->is_index && !ix_has_fun(r->at);
}

bool halo_needs(shard_plan *p, const eqn_unit *u, int32_t read, int32_t axis,
	const shard_tag *t, shard_tag *out)
{
	const eqn_read *r = &u->read[read];
	const sys_tensor *x = &p->s->tensor.at[r->tensor];
	bool found = false;

	if (!is_plain(u, r) || t->within >= 0 ||
		t->hi != u->box.extent[axis])
		return false;
	for (int32_t k = 0; k < x->rank; k++) {
		int64_t stride, step, min, max;
		const ix_form *f = index_on(p, r, k, &stride);

		if (f == NULL)
			return false;
		step = step_of(u, f, axis, t->lo);
		if (step == 0) {
			/* no other index of the read may depend on it */
			if (may_walk(f, axis, t->lo))
				return false;
			continue;
		}
		if (found || !mul_ok(t->block, step, &out->block))
			return false;
		beside(p, r, f, axis, t->lo, step, &min, &max);
		found = true;
		*out = (shard_tag){.mesh = t->mesh,
			.mult = t->mult,
			.count = t->count,
			.lo = stride,
			.hi = stride * x->shape[k],
			.block = out->block,
			.within = -1,
			.before = -min,
			.after = max - (step - 1)};
	}
	return found;
}

int64_t halo_moved(
	const shard_mesh *m, const shard_tag *own, const shard_tag *seen, bool all)
{
	int64_t sum = 0, most = 0;

	for (int64_t c = 0; c < m->extent[own->mesh]; c++) {
		shard_tag t = *own;
		shard_run has = layout_wide_block(
			&t, c / own->mult % own->count);
		shard_run r = layout_wide_block(
			seen, c / seen->mult % seen->count);
		int64_t lo = r.from > has.from ? r.from : has.from;
		int64_t hi = r.from + r.n < has.from + has.n
			? r.from + r.n
			: has.from + has.n;
		int64_t n = r.n - (hi > lo ? hi - lo : 0);

		sum += n;
		most = n > most ? n : most;
	}
	return all ? sum : most;
}

/* The rows that are moved if the axis is cut into blocks of this size; -1: the
 * blocks do not cover it. */
static int64_t moved_by(const shard_plan *p, const shard_tag *own, int64_t n,
	int64_t block, int64_t step, int64_t min, int64_t max)
{
	shard_tag seen = *own;

	if (block < (n + own->count - 1) / own->count ||
		!mul_ok(block, step, &seen.block))
		return -1;
	seen.before = -min;
	seen.after = max - (step - 1);
	return halo_moved(p->mesh, own, &seen, true);
}

/*
 * The block for an axis of extent n that walks the cut run: that of the tensor, or
 * equal ones, whichever moves fewer rows.
 */
static int64_t best_block(const shard_plan *p, const shard_tag *own, int64_t n,
	int64_t step, int64_t min, int64_t max)
{
	int64_t equal = (n + own->count - 1) / own->count;
	int64_t same = (own->block + step - 1) / step, moved;

	same = same < n ? same : n; /* at most the axis */
	moved = moved_by(p, own, n, same, step, min, max);
	if (moved < 0 || moved_by(p, own, n, equal, step, min, max) < moved)
		return equal;
	return same;
}

/* The digit of axis a that walks the run t, as a cut; false: there is none. */
static bool walks(shard_plan *p, const eqn_unit *u, const eqn_read *r,
	const ix_form *f, int32_t a, const shard_tag *t, shard_tag *out)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *q = f->t[i].atom;
		int64_t step, min, max, n;

		if (q->kind != IX_DIGIT || q->axis != a ||
			q->hi != u->box.extent[a])
			continue;
		step = step_of(u, f, a, q->lo);
		n = q->hi / q->lo;
		if (step == 0 || q->hi % q->lo != 0)
			return false;
		beside(p, r, f, a, q->lo, step, &min, &max);
		/* the offset must be smaller than the axis, as in sliding windows and slices */
		if (max - min >= n * step)
			return false;
		*out = *t;
		out->lo = q->lo;
		out->hi = q->hi;
		out->block = best_block(p, t, n, step, min, max);
		return true;
	}
	return false;
}

bool halo_takes(shard_plan *p, const eqn_unit *u, int32_t read,
	const shard_tag *t, cut_part *part)
{
	const eqn_read *r = &u->read[read];
	const sys_tensor *x = &p->s->tensor.at[r->tensor];
	int64_t most = 0;

	if (!is_plain(u, r) || t->within >= 0)
		return false;
	for (int32_t k = 0; k < x->rank; k++) {
		int64_t stride;
		const ix_form *f = index_on(p, r, k, &stride);

		if (f == NULL || t->lo != stride ||
			t->hi != stride * x->shape[k])
			continue;
		for (int32_t a = 0; a < u->e.n_left; a++) {
			shard_tag cut;

			if (u->stride[a] == 0 ||
				!walks(p, u, r, f, a, t, &cut) ||
				cut.hi / cut.lo <= most)
				continue;
			most = cut.hi / cut.lo;
			*part = (cut_part){a, cut};
		}
	}
	return most > 0;
}

bool halo_part(shard_plan *p, const eqn_unit *u, int32_t read,
	const shard_tag *t, shard_tag *out)
{
	const eqn_read *r = &u->read[read];
	const sys_tensor *x = &p->s->tensor.at[r->tensor];
	int64_t n = t->hi / t->lo, min, max;
	const ix_form *f;

	if (u->e.push != NULL || u->e.opaque != NULL || r->in_init ||
		ix_has_fun(r->at) || t->within >= 0 || x->numel == 0)
		return false;
	f = ix_mod(p->s->x, &r->dom, ix_div(p->s->x, &r->dom, r->at, t->lo), n);
	ix_range(&r->dom, f, &min, &max);
	if (min < 0 || max >= n || max < min || max - min == n - 1)
		return false;
	*out = *t;
	out->mult = out->count = 1;
	out->block = n;
	out->before = -min;
	out->after = max + 1 - n;
	return true;
}

shard_tag halo_without(const shard_tag *t)
{
	shard_tag r = *t;
	int64_t n = t->hi / t->lo;

	r.before = r.after = 0;
	if (r.block < (n + t->count - 1) / t->count)
		r.block = (n + t->count - 1) / t->count;
	return r;
}
