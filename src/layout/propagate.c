/*
 * propagate.c: from the layouts of a few tensors to those of all.
 *
 * Consumes a system and annotations; produces for every equation how its axes
 * are cut, and for every tensor where it lies. Nothing is known here of any
 * operation: a cut passes through a read or it does not (cut.c).
 *
 *   forwards   what a tensor has goes to the equations that read it; cuts of
 *              left axes to the result; a cut of a reduced axis makes the
 *              result partial
 *   backwards  what the result has goes to the equation, and from there to
 *              what it reads
 *
 *     s[i] += x[i,k], x cut on i by mesh 0 and on k by mesh 1:
 *     s cut on i by mesh 0, partial sums over mesh 1
 *
 * A read at an address from data needs its whole tensor; unless it stands alone
 * in its equation: then each process reads what it owns, and zero elsewhere,
 * and the result is a partial sum.
 *
 * Where cuts of what an equation reads and writes do not go together, it takes
 * that which moves the fewest bytes (choose.c).
 *
 * Guarantees: an equation uses an axis of the mesh once; the process that
 * computes an instance gets all that it reads (shard_needs). Two passes over the system
 * until nothing changes: cuts are only added, so it ends.
 */
#include "layout/local.h"

void shard_plan_reset(shard_plan *p)
{
	for (int32_t i = 0; i < p->s->eqn.n; i++) {
		shard_eqn *q = &p->eqn[i];

		q->masked = -1;
		q->masks = 0;
		q->own = shard_replicated(q->unit->out_elems);
		for (int32_t k = 0; k < q->unit->e.n_axes; k++)
			q->axis[k] = shard_replicated(q->unit->box.extent[k]);
	}
	for (int32_t i = 0; i < p->s->tensor.n; i++) {
		shard_state *t = &p->tensor[i];

		*t = (shard_state){
			.have = shard_replicated(p->s->tensor.at[i].numel)};
		for (int32_t k = 0; k < SHARD_MAX_AXES; k++)
			t->partial[k] = -1;
	}
	p->why.n = 0;
}

shard_plan *shard_plan_new(arena *a, ir_system *s, const shard_mesh *m)
{
	shard_plan *p = arena_make(a, shard_plan);

	shard_mesh_size(arena_env(a), m);
	p->a = a;
	p->s = s;
	p->mesh = m;
	p->graph = eqn_graph_new(a, s);
	p->eqn = arena_array(a, shard_eqn, s->eqn.n + 1);
	p->tensor = arena_array(a, shard_state, s->tensor.n + 1);
	for (int32_t i = 0; i < s->eqn.n; i++) {
		shard_eqn *q = &p->eqn[i];

		q->unit = eqn_unit_new(p->graph, &s->eqn.at[i], i);
		q->masked = -1;
	}
	writes_inline(p);
	for (int32_t i = 0; i < s->eqn.n; i++) {
		if (s->eqn.at[i].opaque != NULL)
			batch_axes(p, p->eqn[i].unit);
		p->eqn[i].axis = arena_array(a, shard_layout,
			p->eqn[i].unit->e.n_axes + 1);
	}
	shard_plan_reset(p);
	return p;
}

void shard_annotate(
	shard_plan *p, int32_t tensor, const shard_layout *l, bool fixed)
{
	shard_state *t = &p->tensor[tensor];

	if (l->numel != t->have.numel)
		env_fail(arena_env(p->a), TN_EINVAL, "shard.layout", (loc){0},
			"the layout is for %lld elements, but %s has %lld",
			(long long)l->numel, p->s->tensor.at[tensor].name,
			(long long)t->have.numel);
	t->have = *l;
	t->fixed = fixed;
}

static void note(shard_plan *p, const shard_eqn *q, int32_t mesh,
	int32_t from, const char *cost)
{
	str s = str_new(p->a);

	str_printf(&s, "%s: ", q->unit->e.label);
	if (p->mesh->name[mesh] != NULL)
		str_add(&s, p->mesh->name[mesh]);
	else
		str_printf(&s, "mesh_%d", mesh);
	if (q->masks >> mesh & 1)
		str_add(&s, " reads what each owns");
	if (layout_uses(&q->own, mesh))
		str_add(&s, " keeps what each owns");
	for (int32_t i = 0; i < q->unit->e.n_axes; i++) {
		if (!layout_uses(&q->axis[i], mesh))
			continue;
		str_printf(&s, " cuts %s", q->unit->e.axis[i].name != NULL
				? q->unit->e.axis[i].name
				: "an axis");
	}
	str_printf(&s, ", as %s is%s", p->s->tensor.at[from].name, cost);
	*vec_push(p->a, &p->why) =
		(shard_reason){(int32_t)(q - p->eqn), s.at};
}

/* ---- reads at addresses from data ---- */

/* Is the whole right side the read at hand, so that a zero can stand for it? */
static bool stands_alone(const eqn_unit *u, int32_t read)
{
	const eqn_read *r = &u->read[read];

	if (u->e.push != NULL || u->e.opaque != NULL || r->is_index ||
		r->in_init || u->e.n_out != 1 || u->e.init[0] != NULL)
		return false;
	if (u->e.monoid != IR_SET && u->e.monoid != IR_SUM)
		return false;
	if (u->e.body[0]->kind != EX_READ || u->e.body[0]->form != r->at ||
		u->e.body[0]->tensor != r->tensor)
		return false;
	for (int32_t i = 0; i < u->n_reads; i++)
		if (i != read && u->read[i].tensor == r->tensor)
			return false;
	return true;
}

static bool mask(shard_plan *p, shard_eqn *q, int32_t read, int32_t tag)
{
	const eqn_unit *u = q->unit;
	int32_t tensor = u->read[read].tensor;
	const shard_tag *t = &p->tensor[tensor].have.tag[tag];
	eqn_digit d = {.axis = 0, .lo = t->lo, .hi = t->hi};

	if (t->within >= 0 || t->mult != 1 ||
		t->count < p->mesh->extent[t->mesh] || !stands_alone(u, read) ||
		p->s->tensor.at[u->e.out[0]].dtype == TN_BOOL)
		return false;
	if (eqn_judge(p->graph, eqn_join(p->graph, NULL, u, read), d) !=
		EQN_OPAQUE)
		return false;
	q->masked = tensor;
	q->masks |= 1u << t->mesh;
	return true;
}

/* ---- scatters to addresses from data ---- */

/* Do two runs of one number lie apart, one above the other? */
static bool apart(int64_t lo, int64_t hi, int64_t lo2, int64_t hi2)
{
	return lo % hi2 == 0 || lo2 % hi == 0;
}

/* The cut of a tensor as large as the result by mesh axis m, as one of what is
 * pushed; false: axes of the equation walk it, or it is not whole. */
static bool take_own(
	shard_plan *p, shard_eqn *q, const shard_layout *l, int32_t m)
{
	const eqn_unit *u = q->unit;
	int32_t tag = layout_find(l, m);
	const shard_tag *t = &l->tag[tag];

	if (tag < 0 || u->e.push == NULL || u->e.monoid == IR_SET ||
		l->numel != u->out_elems || t->within >= 0 || t->mult != 1 ||
		t->count < p->mesh->extent[m] || l->numel % t->hi != 0)
		return false;
	for (int32_t i = 0; i < u->e.n_left; i++) {
		int64_t k = u->stride[i];

		if (k > 0 && !apart(t->lo, t->hi, k, k * u->box.extent[i]))
			return false;
	}
	for (int32_t i = 0; i < q->own.n; i++)
		if (!apart(t->lo, t->hi, q->own.tag[i].lo, q->own.tag[i].hi))
			return false;
	return layout_add(&q->own, *t);
}

static bool take_init(shard_plan *p, shard_eqn *q)
{
	const eqn_unit *u = q->unit;
	bool changed = false;

	for (int32_t r = 0; r < u->n_reads; r++)
		for (int32_t m = 0; m < p->mesh->n; m++) {
			int32_t t = u->read[r].tensor;

			if (!eqn_reads_init(u, &u->read[r]) ||
				eqn_is_cut_by(q, m) ||
				!take_own(p, q, &p->tensor[t].have, m))
				continue;
			note(p, q, m, t, "");
			changed = true;
		}
	return changed;
}

/* ---- one equation ---- */

static bool take_reads(shard_plan *p, shard_eqn *q, bool data)
{
	const eqn_unit *u = q->unit;
	bool changed = false;

	for (int32_t r = 0; r < u->n_reads; r++) {
		int32_t tensor = u->read[r].tensor;
		const shard_layout *l = &p->tensor[tensor].have;

		for (int32_t i = 0; i < l->n; i++) {
			int32_t mesh = l->tag[i].mesh;

			const char *cost = "";

			if (eqn_is_cut_by(q, mesh))
				continue;
			if (!data)
				cost = choose_cut(p, (int32_t)(q - p->eqn), r,
					mesh, &tensor);
			else if (!mask(p, q, r, i))
				continue;
			if (cost == NULL)
				continue;
			note(p, q, mesh, tensor, cost);
			changed = true;
		}
	}
	return changed;
}

static bool give_tensor(shard_plan *p, int32_t tensor, const shard_layout *l)
{
	shard_state *t = &p->tensor[tensor];
	uint32_t before = 0;
	bool changed = false;

	if (t->fixed)
		return false;
	for (int32_t i = 0; i < t->have.n; i++)
		before |= 1u << t->have.tag[i].mesh;
	for (int32_t i = 0; i < l->n; i++) {
		shard_tag g = l->tag[i];

		if (before >> g.mesh & 1 || t->partial[g.mesh] >= 0)
			continue;
		if (g.within >= 0) {
			const shard_tag *outer = &l->tag[g.within];

			g.within = layout_find(&t->have, outer->mesh);
			if (g.within < 0 ||
				!layout_same_cut(
					outer, &t->have.tag[g.within]))
				continue;
		}
		if (g.within < 0)
			g = halo_without(&g);
		changed |= layout_add(&t->have, g);
	}
	return changed;
}

static bool take_results(shard_plan *p, shard_eqn *q)
{
	bool changed = false;

	for (int32_t k = 0; k < q->unit->e.n_out; k++)
		for (int32_t m = 0; m < p->mesh->n; m++) {
			int32_t t = q->unit->e.out[k];

			if (eqn_is_cut_by(q, m) ||
				(!take_result(p, q, k, m) &&
					!take_own(p, q, &p->tensor[t].have, m)))
				continue;
			note(p, q, m, t, "");
			changed = true;
		}
	return changed;
}

static bool forwards(shard_plan *p, int32_t eqn)
{
	shard_eqn *q = &p->eqn[eqn];
	bool changed = take_reads(p, q, false);

	changed |= take_reads(p, q, true);
	changed |= take_init(p, q);
	for (int32_t k = 0; k < q->unit->e.n_out; k++) {
		shard_state *t = &p->tensor[q->unit->e.out[k]];
		shard_layout made = shard_makes(p, eqn, k);

		for (int32_t m = 0; m < p->mesh->n; m++)
			if (shard_is_partial(p, eqn, m))
				t->partial[m] = q->masks >> m & 1
					? IR_SUM
					: q->unit->e.monoid;
		changed |= give_tensor(p, q->unit->e.out[k], &made);
	}
	return changed;
}

static bool backwards(shard_plan *p, int32_t eqn)
{
	shard_eqn *q = &p->eqn[eqn];
	bool changed = take_results(p, q);

	for (int32_t r = 0; r < q->unit->n_reads; r++) {
		int32_t tensor = q->unit->read[r].tensor;
		shard_layout l = shard_needs(p, eqn, tensor);

		changed |= give_tensor(p, tensor, &l);
	}
	return changed;
}

void shard_propagate(shard_plan *p)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (int32_t i = 0; i < p->s->eqn.n; i++)
			if (!p->eqn[i].dead)
				changed |= forwards(p, i);
		for (int32_t i = p->s->eqn.n - 1; i >= 0; i--)
			if (!p->eqn[i].dead)
				changed |= backwards(p, i);
	}
}

/* ---- partial sums ---- */

/* Is each value of the run in one block? A window needs more, or fewer. */
static bool is_whole(const shard_tag *t)
{
	shard_tag r = halo_without(t);

	return layout_same_cut(t, &r);
}

/* The cut along axis m of the mesh that all readers of a tensor need; is it? */
static bool all_need(shard_plan *p, int32_t tensor, int32_t m, shard_tag *out)
{
	bool any = false;

	for (int32_t i = p->s->tensor.at[tensor].eqn + 1; i < p->s->eqn.n; i++) {
		const eqn_unit *u = p->eqn[i].unit;
		bool reads = false;
		shard_layout l;
		int32_t k;

		for (int32_t r = 0; r < u->n_reads; r++)
			reads |= u->read[r].tensor == tensor;
		for (int32_t r = 0; r < u->e.n_opaque_in; r++)
			reads |= u->e.opaque_in[r] == tensor;
		if (!reads || p->eqn[i].dead)
			continue;
		l = shard_needs(p, i, tensor);
		k = layout_find(&l, m);
		if (k < 0 || l.tag[k].within >= 0 || !is_whole(&l.tag[k]) ||
			(any && !layout_same_cut(out, &l.tag[k])))
			return false;
		*out = l.tag[k];
		any = true;
	}
	return any;
}

void shard_scatter_sums(shard_plan *p)
{
	for (int32_t t = 0; t < p->s->tensor.n; t++) {
		shard_state *h = &p->tensor[t];
		int32_t eqn = p->s->tensor.at[t].eqn;
		shard_tag tag;

		for (int32_t m = 0; m < p->mesh->n && eqn >= 0 &&
			!p->eqn[eqn].dead;
			m++)
			if (!h->fixed && shard_is_partial(p, eqn, m) &&
				layout_find(&h->have, m) < 0 &&
				all_need(p, t, m, &tag))
				(void)layout_add(&h->have, tag);
	}
}
