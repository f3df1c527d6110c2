/*
 * shard_moved.c: how much of a tensor an equation's part on one process may get
 * from others. See shard_sim.h.
 *
 * Nothing of the halos of src/layout is asked here. The points of the part are
 * walked, and the places on each axis of the tensor noted at which a read
 * stands whose guards hold:
 *
 *     o[i] = x[i + 3] for i < 12, i in blocks of 3, x: 16 in blocks of 4
 *     process 1 reads 6, 7, 8; it has 4..7: it may get place 8, and no other
 *
 * From the first to the last of them is what may be moved to it; of an axis that is
 * not cut, all of it. Where a window's guards leave out a part of it (a padded
 * edge), or two reads stand side by side, an interval may be as much longer at
 * either end as the window is, or the reads are apart; and the last block of an
 * equation, which may be short, is seen as long as the others.
 *
 * A read is judged if it goes straight ahead: every axis of the equation walks
 * one axis of the tensor, or none. So do slices, the sides of a pad, operands of
 * a concat, neighbours and windows. Not judged, as more is moved there:
 *
 *  - an equation cut in pieces of an axis, or along two axes that walk one of the
 *    tensor, or by an axis of the mesh that cuts another one of the tensor;
 *  - two reads of one tensor that walk it along different axes;
 *  - guards of axes that do not all walk the same one (a causal mask), or none (the
 *    new axis of a stack);
 *  - a process that has no part of the equation, but gets whole operands.
 */
#include "shard_sim.h"
#include "system/eval.h"

typedef struct reader {
	shard_plan *p;
	const shard_eqn *q;
	const sys_tensor *t;
	int32_t tensor;
	eval_machine m;
	int64_t point[IR_MAX_AXES];
	/* by axis of the equation: the axis of the tensor that it walks, -1 */
	int32_t walks[IR_MAX_AXES];
	int64_t step[IR_MAX_AXES]; /* elements */
} reader;

static int64_t stride_of(const sys_tensor *t, int32_t k)
{
	return shape_numel(t->shape + k + 1, t->rank - k - 1);
}

/* ---- which reads are judged ---- */

/* the axis of the tensor along which places are `coef` elements apart; -1 */
static int32_t axis_of(const sys_tensor *t, int64_t coef, int64_t extent)
{
	for (int32_t k = 0; k < t->rank; k++) {
		int64_t in = stride_of(t, k);

		if (coef >= in)
			return coef % in == 0 &&
					coef / in * (extent - 1) < t->shape[k]
				? k
				: -1;
	}
	return -1;
}

/* Fills in, or compares, what the axes of the equation walk by this read. */
static bool take_walks(reader *d, const eqn_read *r, bool first)
{
	const eqn_unit *u = d->q->unit;
	int32_t n = 0;

	for (int32_t i = 0; i < r->at->n; i++) {
		const ix_atom *a = r->at->t[i].atom;
		int64_t step = r->at->t[i].coef;

		if (a->kind != IX_DIGIT || a->lo != 1 || step < 1 ||
			a->hi != u->box.extent[a->axis])
			return false;
		if (!first && d->step[a->axis] != step)
			return false;
		d->step[a->axis] = step;
		d->walks[a->axis] = axis_of(d->t, step, a->hi);
		if (d->walks[a->axis] < 0)
			return false;
	}
	for (int32_t i = 0; i < u->e.n_axes; i++)
		n += d->walks[i] >= 0;
	return n == r->at->n;
}

/* Do all axes that the guard relates walk the same axis of the tensor? */
static bool is_own_guard(const reader *d, const ix_fact *f)
{
	int32_t on = -2;

	for (int32_t i = 0; i < f->f->n; i++) {
		const ix_atom *a = f->f->t[i].atom;

		if (a->kind != IX_DIGIT || d->walks[a->axis] < 0 ||
			(on != -2 && on != d->walks[a->axis]))
			return false;
		on = d->walks[a->axis];
	}
	return true;
}

static bool is_straight(reader *d)
{
	const eqn_unit *u = d->q->unit;
	bool first = true;

	if (u->e.push != NULL || u->e.opaque != NULL ||
		d->q->masked == d->tensor)
		return false;
	for (int32_t r = 0; r < u->n_reads; r++) {
		if (u->read[r].tensor != d->tensor)
			continue;
		if (u->read[r].in_init || u->read[r].is_index ||
			!take_walks(d, &u->read[r], first))
			return false;
		first = false;
	}
	for (int32_t r = 0; r < u->n_reads; r++)
		for (int32_t i = 0; u->read[r].tensor == d->tensor &&
			i < u->read[r].dom.n_facts;
			i++)
			if (!is_own_guard(d, &u->read[r].dom.facts[i]))
				return false;
	return true;
}

/* Is the equation cut along whole axes, each on an axis of the tensor alone? */
static bool is_cut_plainly(const reader *d)
{
	bool cut[TN_MAX_RANK] = {0};

	for (int32_t a = 0; a < d->q->unit->e.n_axes; a++) {
		const shard_layout *l = &d->q->axis[a];

		for (int32_t i = 0; i < l->n; i++) {
			const shard_tag *t = &l->tag[i];

			if (t->within >= 0 || t->lo != 1 ||
				t->hi != d->q->unit->box.extent[a])
				return false;
		}
		if (l->n == 0 || d->walks[a] < 0)
			continue;
		if (cut[d->walks[a]])
			return false;
		cut[d->walks[a]] = true;
	}
	return true;
}

/* Is axis k of the tensor cut, by none that cuts the equation elsewhere? */
static bool is_narrow(const reader *d, int32_t k)
{
	const shard_layout *have = &d->p->tensor[d->tensor].have;
	int64_t lo = stride_of(d->t, k);

	for (int32_t i = 0; i < have->n; i++) {
		const shard_tag *t = &have->tag[i];
		bool elsewhere = false;

		for (int32_t a = 0; a < d->q->unit->e.n_axes; a++)
			for (int32_t n = 0; n < d->q->axis[a].n; n++)
				elsewhere |= d->walks[a] != k &&
					d->walks[a] >= 0 &&
					d->q->axis[a].tag[n].mesh == t->mesh;
		if (t->within < 0 && t->lo == lo &&
			t->hi == lo * d->t->shape[k] && !elsewhere)
			return true;
	}
	return false;
}

/* ---- what the part reads ---- */

/* a range of places on each axis of a tensor */
typedef struct range {
	int64_t lo[TN_MAX_RANK], hi[TN_MAX_RANK];
} range;

static bool in_range(const sys_tensor *t, const range *r, int64_t e)
{
	bool in = true;

	for (int32_t k = t->rank - 1; k >= 0; k--) {
		int64_t x = e % t->shape[k];

		e /= t->shape[k];
		in &= x >= r->lo[k] && x <= r->hi[k];
	}
	return in;
}

static void widen(const sys_tensor *t, range *r, int64_t e)
{
	for (int32_t k = t->rank - 1; k >= 0; k--) {
		int64_t x = e % t->shape[k];

		e /= t->shape[k];
		r->lo[k] = x < r->lo[k] ? x : r->lo[k];
		r->hi[k] = x > r->hi[k] ? x : r->hi[k];
	}
}

/* May the element be read at this point, whatever data says? */
static bool in_guards(reader *d, const eqn_read *r)
{
	for (int32_t i = 0; i < r->dom.n_facts; i++) {
		const ix_fact *f = &r->dom.facts[i];
		int64_t x = eval_form(&d->m, f->f);

		if (x < f->lo || x >= f->hi)
			return false;
	}
	return true;
}

/* Marks what is read at the points of the process, -1: at all, axes from `axis`
 * on; false: it has none. */
static bool mark(reader *d, int64_t process, int32_t axis, bool *seen)
{
	const eqn_unit *u = d->q->unit;
	bool any = false;

	if (axis < u->e.n_axes) {
		for (int64_t i = 0; i < u->box.extent[axis]; i++) {
			d->point[axis] = i;
			if (process < 0 || shard_owns(&d->q->axis[axis],
						   d->p->mesh, process, i))
				any |= mark(d, process, axis + 1, seen);
		}
		return any;
	}
	for (int32_t r = 0; r < u->n_reads; r++)
		if (u->read[r].tensor == d->tensor && in_guards(d, &u->read[r]))
			seen[eval_form(&d->m, u->read[r].at)] = true;
	return true;
}

/* How long the window on axis k is beside axis `ahead` that walks it, and how far
 * reads of it are apart; ahead -1: the one that is cut, 0 if none is. */
static int64_t slack_on(const reader *d, int32_t k, int32_t ahead)
{
	const eqn_unit *u = d->q->unit;
	int64_t slack = 0, least = INT64_MAX, most = INT64_MIN;
	bool cut = false;

	for (int32_t a = 0; a < u->e.n_axes; a++) {
		bool is_ahead = ahead < 0 ? d->q->axis[a].n > 0 : a == ahead;

		if (d->walks[a] != k)
			continue;
		cut |= is_ahead;
		if (!is_ahead)
			slack += d->step[a] / stride_of(d->t, k) *
				(u->box.extent[a] - 1);
	}
	for (int32_t r = 0; r < u->n_reads; r++)
		if (u->read[r].tensor == d->tensor) {
			int64_t c = u->read[r].at->c0;

			least = c < least ? c : least;
			most = c > most ? c : most;
		}
	return cut ? slack + (most - least) / stride_of(d->t, k) : 0;
}

/* The last block of a cut is seen as long as the others: places more on axis k. */
static int64_t short_on(const reader *d, int32_t k, int64_t process)
{
	const eqn_unit *u = d->q->unit;
	int64_t more = 0;

	for (int32_t a = 0; a < u->e.n_axes; a++) {
		const shard_layout *l = &d->q->axis[a];
		int64_t has = 0;

		if (d->walks[a] != k || l->n == 0)
			continue;
		for (int64_t i = 0; i < u->box.extent[a]; i++)
			has += shard_owns(l, d->p->mesh, process, i);
		more += (l->tag[0].block - has) * d->step[a] /
			stride_of(d->t, k);
	}
	return more;
}

static reader reader_of(shard_plan *p, int32_t eqn, int32_t tensor)
{
	reader d = {.p = p,
		.q = &p->eqn[eqn],
		.t = &p->s->tensor.at[tensor],
		.tensor = tensor};

	for (int32_t a = 0; a < IR_MAX_AXES; a++)
		d.walks[a] = -1;
	d.m = (eval_machine){.e = arena_env(p->a), .s = p->s};
	return d;
}

bool moved_count(shard_plan *p, const bool *had, const bool *got, sim_moved *m)
{
	reader d = reader_of(p, m->eqn, m->tensor);
	bool *seen, any = false;
	range box;

	d.m.point = d.point;
	if (!is_straight(&d) || !is_cut_plainly(&d))
		return false;
	seen = arena_array(p->a, bool, d.t->numel + 1);
	if (!mark(&d, m->process, 0, seen))
		return false;
	for (int32_t k = 0; k < d.t->rank; k++) {
		bool narrow = is_narrow(&d, k);

		box.lo[k] = narrow ? d.t->shape[k] : 0;
		box.hi[k] = narrow ? -1 : d.t->shape[k] - 1;
	}
	for (int64_t e = 0; e < d.t->numel; e++)
		if (seen[e]) {
			widen(d.t, &box, e);
			any = true;
		}
	for (int32_t k = 0; k < d.t->rank; k++) {
		int64_t slack = slack_on(&d, k, -1);

		if (!any && slack > 0) /* a window in front of the edge */
			return false;
		box.lo[k] -= slack;
		box.hi[k] += slack + short_on(&d, k, m->process);
	}
	for (int64_t e = 0; e < d.t->numel; e++) {
		if (had[e])
			continue;
		m->moved += got[e];
		m->wanted += got[e] && seen[e];
		m->most += in_range(d.t, &box, e);
	}
	return true;
}

bool moved_shifts(
	shard_plan *p, int32_t eqn, int32_t tensor, int32_t k, int64_t *most)
{
	reader d = reader_of(p, eqn, tensor);
	int64_t n = shard_mesh_size(arena_env(p->a), p->mesh), lo, hi, slack;
	int64_t more = 0;
	const eqn_unit *u = d.q->unit;
	int32_t ahead = -1;
	bool *seen;

	d.m.point = d.point;
	if (!is_straight(&d))
		return false;
	for (int32_t a = 0; a < u->e.n_left; a++)
		if (d.walks[a] == k) {
			if (ahead >= 0 || u->stride[a] == 0)
				return false;
			ahead = a;
		}
	if (ahead < 0 || u->e.axis[ahead].kind == AXIS_S ||
		u->box.extent[ahead] == d.t->shape[k])
		return false;
	slack = slack_on(&d, k, ahead);
	/* short beside what it walks */
	if (slack >= d.step[ahead] / stride_of(d.t, k) * u->box.extent[ahead])
		return false;
	seen = arena_array(p->a, bool, d.t->numel + 1);
	mark(&d, -1, 0, seen);
	lo = d.t->shape[k];
	hi = -1;
	for (int64_t e = 0; e < d.t->numel; e++) {
		int64_t x = e / stride_of(d.t, k) % d.t->shape[k];

		if (seen[e] && x < lo)
			lo = x;
		if (seen[e] && x > hi)
			hi = x;
	}
	/* each place once, a window's more at both ends of each block, and what
	 * the last block is short of */
	if (d.q->axis[ahead].n > 0) {
		int64_t block = d.q->axis[ahead].tag[0].block;

		more = (block - u->box.extent[ahead] % block) % block *
			d.step[ahead] / stride_of(d.t, k);
	}
	*most = hi < lo ? 0 : (hi - lo + 1 + 2 * n * slack + more) *
			(d.t->numel / d.t->shape[k]);
	return true;
}
