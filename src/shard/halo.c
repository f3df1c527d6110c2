/*
 * halo.c: windows: reads whose place on an axis of a tensor is an axis of the
 * equation times a step, and something small beside it.
 *
 * Consumes a read with the guards in force, and a cut of an axis of the
 * equation; produces the blocks of the tensor's axis that are read, with the
 * values in front of them and behind them that are read as well.
 *
 *     o[y] += x[2y + k - 1] for k < 3, inside 0 <= 2y + k - 1 < 10
 *     y in blocks of 2:  x in blocks of 4, 1 before, 0 behind
 *
 * Guarantees: whoever has that part of the axis has every element that the
 * guards let it read. A slice is a window of one place.
 */
#include "shard/local.h"

/* Place of the read on axis k of its tensor, as the guards have it. */
static const ix_form *place_on(shard_plan *p, const eqn_read *r, int32_t k,
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

/* The step with which a whole axis walks it; 0: it does not, or other than
 * straight ahead. */
static int64_t step_of(const eqn_unit *u, const ix_form *f, int32_t axis)
{
	int64_t step = 0;

	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;

		if (a->kind != IX_DIGIT || a->lo != 1 ||
			a->hi != u->box.extent[a->axis])
			return 0;
		if (a->axis == axis)
			step = f->t[i].coef;
	}
	return step > 0 ? step : 0;
}

static bool may_walk(const ix_form *f, int32_t axis)
{
	for (int32_t i = 0; i < f->n; i++)
		if (f->t[i].atom->kind != IX_DIGIT ||
			f->t[i].atom->axis == axis)
			return true;
	return false;
}

/* Least and largest of what stands beside step * axis. */
static void beside(shard_plan *p, const eqn_read *r, const ix_form *f,
	int32_t axis, int64_t step, int64_t *min, int64_t *max)
{
	ix *x = p->s->x;
	ix_dom box = {.box = r->dom.box};

	f = ix_sub(x, &box, f, ix_scale(x, ix_axis(x, &box, axis), step));
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

	if (!is_plain(u, r) || t->within >= 0 || t->lo != 1 ||
		t->hi != u->box.extent[axis])
		return false;
	for (int32_t k = 0; k < x->rank; k++) {
		int64_t stride, step, min, max;
		const ix_form *f = place_on(p, r, k, &stride);

		if (f == NULL)
			return false;
		step = step_of(u, f, axis);
		if (step == 0) {
			/* it may not walk another one in some other way */
			if (may_walk(f, axis))
				return false;
			continue;
		}
		if (found || !mul_ok(t->block, step, &out->block))
			return false;
		beside(p, r, f, axis, step, &min, &max);
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

bool halo_takes(shard_plan *p, const eqn_unit *u, int32_t read,
	const shard_tag *t, place_part *part)
{
	const eqn_read *r = &u->read[read];
	const sys_tensor *x = &p->s->tensor.at[r->tensor];
	int64_t most = 0;

	if (!is_plain(u, r) || t->within >= 0)
		return false;
	for (int32_t k = 0; k < x->rank; k++) {
		int64_t stride, step, min, max, n;
		const ix_form *f = place_on(p, r, k, &stride);

		if (f == NULL || t->lo != stride ||
			t->hi != stride * x->shape[k])
			continue;
		for (int32_t a = 0; a < u->e.n_left; a++) {
			step = u->stride[a] > 0 ? step_of(u, f, a) : 0;
			n = u->box.extent[a];
			if (step == 0 || n <= most)
				continue;
			beside(p, r, f, a, step, &min, &max);
			/* short beside the axis, as windows are */
			if (min == max || max - min >= n * step)
				continue;
			most = n;
			part->axis = a;
			part->tag = *t;
			part->tag.lo = 1;
			part->tag.hi = n;
			part->tag.block = (t->block + step - 1) / step;
			if (part->tag.block < (n + t->count - 1) / t->count)
				part->tag.block = (n + t->count - 1) / t->count;
		}
	}
	return most > 0;
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
