/*
 * hold.c: accumulators that stay in variables while their loops run.
 *
 * Consumes a list of nodes in which the accumulator of an equation is started,
 * and later ones that add to it. Its place may be memory - an element of each
 * lane of a vector loop, read by others later - but before the last of these
 * nodes nobody looks there: it is a variable until then, and stored once.
 *
 *   start o; for (w < 3) { o = max(o, x[i + w]) }   ->
 *   f32x16 h = start; for (w < 3) { h = max(h, x[i + w]) } o = h;
 *
 * A C compiler finds that out of whole vectors; of parts of vectors it does not,
 * and what was stored with a mask takes tens of cycles to be loaded again.
 */
#include "emit/local.h"

/* Does it add to eqn below n, in a way that a variable can follow? */
static bool adds(const loop_node *n, int32_t eqn, bool *bad)
{
	bool found = false;

	if (!loop_is_loop(n)) {
		*bad |= n->eqn == eqn && n->kind != LOOP_STMT;
		return n->eqn == eqn;
	}
	for (int32_t i = 0; i < n->n_child; i++)
		found |= adds(n->child[i], eqn, bad);
	*bad |= found && (n->lanes > 1 || n->n_needs > 0);
	return found;
}

/* May the accumulator of this equation be a variable? */
static bool may_hold(emitter *em, int32_t eqn)
{
	const loop_eqn *e = &em->k->eqn[eqn];

	if (e->push || e->stage || e->scan_var >= 0 || e->n_parts > 0 ||
		e->e->monoid == IR_SET)
		return false;
	for (int32_t i = 0; i < e->e->n_out; i++) {
		struct place_of p = em_place_tensor(
			em, e->e->out[i], e->start_at, false);

		if ((p.buf != NULL && p.buf->where == LOOP_REGISTER) ||
			p.dtype != e->acc[i] || p.dtype == TN_BOOL ||
			em_computed(p.dtype) != p.dtype)
			return false;
	}
	return true;
}

int32_t em_hold_until(
	emitter *em, loop_node *const *list, int32_t n, int32_t at)
{
	int32_t eqn = list[at]->eqn, last = -1;
	bool bad = false, bad_yet = false;

	for (int32_t i = at + 1; i < n; i++)
		if (adds(list[i], eqn, &bad_yet) &&
			(loop_is_loop(list[i]) || list[i]->kind == LOOP_STMT)) {
			last = i;
			bad = bad_yet;
		}
	return last >= 0 && !bad && may_hold(em, eqn) ? last : -1;
}

void em_hold(emitter *em, int32_t eqn, const val *start)
{
	struct hold h = {.eqn = eqn};

	for (int32_t i = 0; i < em->k->eqn[eqn].e->n_out; i++) {
		val v = em->lanes > 1 ? em_to_lanes(em, start[i]) : start[i];

		h.v[i] = v;
		h.v[i].t = em_fresh(em, "h");
		em_line(em, "%s %s = %s;", em_val_type(em, v), h.v[i].t, v.t);
	}
	*vec_push(em->a, &em->hold) = h;
}

const val *em_held(const emitter *em, int32_t eqn)
{
	for (int32_t i = em->hold.n - 1; i >= 0; i--)
		if (em->hold.at[i].eqn == eqn)
			return em->hold.at[i].v;
	return NULL;
}

void em_let_go(emitter *em, int32_t eqn)
{
	const loop_eqn *e = &em->k->eqn[eqn];
	struct hold h = {.eqn = -1};
	int32_t m = 0;

	for (int32_t i = 0; i < em->hold.n; i++)
		if (em->hold.at[i].eqn == eqn)
			h = em->hold.at[i];
		else
			em->hold.at[m++] = em->hold.at[i];
	em->hold.n = m;
	for (int32_t i = 0; h.eqn >= 0 && i < e->e->n_out; i++) {
		struct place_of p = em_place_tensor(
			em, e->e->out[i], e->at, false);

		em_store(em, &p, h.v[i]);
	}
}
