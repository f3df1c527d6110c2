/*
 * needs.c: the layouts that an equation with given cuts makes and needs.
 *
 *     s[i] += x[i,k], cut on i by mesh 0: makes s cut on its axis 0 by mesh 0, and
 *     needs x cut the same way
 */
#include "layout/local.h"

bool shard_is_partial(const shard_plan *p, int32_t eqn, int32_t mesh_axis)
{
	const shard_eqn *q = &p->eqn[eqn];
	const eqn_unit *u = q->unit;

	for (int32_t i = 0; i < u->e.n_axes; i++)
		if ((i >= u->e.n_left || u->stride[i] == 0) &&
			layout_uses(&q->axis[i], mesh_axis))
			return true;
	return q->masks >> mesh_axis & 1;
}

shard_layout shard_makes(shard_plan *p, int32_t eqn, int32_t k)
{
	const shard_eqn *q = &p->eqn[eqn];
	const eqn_unit *u = q->unit;
	shard_layout l = shard_replicated(u->out_elems);

	if (u->e.opaque != NULL)
		return batch_layout(p, q, u->e.n_opaque_in + k);
	for (int32_t a = 0; a < u->e.n_left; a++) {
		for (int32_t i = 0; i < q->axis[a].n; i++) {
			shard_tag t = q->axis[a].tag[i];

			if (u->stride[a] == 0)
				continue;
			t.lo *= u->stride[a];
			t.hi *= u->stride[a];
			if (t.within >= 0)
				t.within = layout_find(&l,
					q->axis[a].tag[t.within].mesh);
			layout_add(&l, t);
		}
	}
	for (int32_t i = 0; i < q->own.n; i++)
		layout_add(&l, q->own.tag[i]);
	return l;
}

/* Blocks of one run, seen wider or narrower by either: as wide as both. */
static bool see_both(shard_tag *t, const shard_tag *u)
{
	shard_tag a = *t, b = *u;

	a.before = a.after = b.before = b.after = 0;
	if (t->within >= 0 || u->within >= 0 || !layout_same_cut(&a, &b))
		return false;
	t->before = t->before > u->before ? t->before : u->before;
	t->after = t->after > u->after ? t->after : u->after;
	return true;
}

shard_layout shard_common(const shard_layout *a, const shard_layout *b)
{
	shard_layout l = shard_replicated(a->numel);

	for (int32_t i = 0; i < a->n; i++) {
		shard_tag t = a->tag[i];
		bool found = false;

		for (int32_t k = 0; k < b->n && !found; k++)
			found = layout_same_cut(&t, &b->tag[k]) ||
				see_both(&t, &b->tag[k]);
		if (t.within >= 0) {
			t.within = layout_find(&l, a->tag[t.within].mesh);
			found &= t.within >= 0;
		}
		/* what all see whole is not cut */
		if (found && (t.count > 1 || t.before < 0 || t.after < 0))
			layout_add(&l, t);
	}
	return l;
}

/* The part of a tensor that a process has by these cuts, about. */
static double share(const shard_layout *l)
{
	double s = 1;

	for (int32_t i = 0; i < l->n; i++) {
		const shard_tag *t = &l->tag[i];
		int64_t n = t->within < 0 ? t->hi / t->lo
					  : l->tag[t->within].block;
		int64_t has = t->block + t->before + t->after;

		s *= has < 0 ? 0 : has < n ? (double)has / (double)n : 1;
	}
	return s;
}

/* What all reads of the tensor can work with; *windows as in layout_to_read. */
static shard_layout reads_need(
	shard_plan *p, const shard_eqn *q, int32_t tensor, bool *windows)
{
	shard_layout l = shard_replicated(p->s->tensor.at[tensor].numel);
	bool may = *windows, first = true;

	*windows = false;
	for (int32_t r = 0; r < q->unit->n_reads; r++) {
		bool some = may;
		shard_layout one;

		if (q->unit->read[r].tensor != tensor)
			continue;
		one = layout_to_read(p, q, r, &some);
		l = first ? one : shard_common(&l, &one);
		first = false;
		*windows |= some;
	}
	return l;
}

shard_layout shard_needs(shard_plan *p, int32_t eqn, int32_t tensor)
{
	const shard_eqn *q = &p->eqn[eqn];
	bool windows = true, none = false;
	shard_layout l = reads_need(p, q, tensor, &windows);

	if (windows) { /* together they may be more than digits */
		shard_layout digits = reads_need(p, q, tensor, &none);

		if (share(&digits) <= share(&l))
			l = digits;
	}
	/* all of these cuts of the tensor are there, on one run, too */
	for (int32_t m = 0; m < p->mesh->n && q->masked == tensor; m++) {
		const shard_layout *have = &p->tensor[tensor].have;

		if (q->masks >> m & 1 && l.n < SHARD_MAX_TAGS)
			l.tag[l.n++] = have->tag[layout_find(have, m)];
	}
	return l;
}
