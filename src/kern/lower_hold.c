/*
 * lower_hold.c: keeps accumulators in registers while their loops run.
 *
 * Consumes a list of nodes of which one clears the accumulator of an equation
 * and later ones add to it. Its location may be memory - an element for each
 * lane of a vector loop, which other statements read later - but no statement
 * reads it before the last of these nodes. So until then it is a register, and
 * it is stored once.
 *
 *   start o; for (w < 3) { o = max(o, x[i + w]) }   ->
 *   var %h: f32x16 = start; for .. { set %h = max %h, .. } store o = %h
 *
 * C compilers do this for whole vectors, but not for parts of vectors, where
 * loading what was stored with a mask takes tens of cycles.
 */
#include "kern/lower.h"

/*
 * Does n contain additions to eqn? Sets *bad if a register cannot hold the
 * accumulator.
 */
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

/* Can the accumulator of this equation be a register? */
static bool may_hold(lowering *lw, int32_t eqn)
{
	const loop_eqn *e = &lw->k->eqn[eqn];

	if (e->push || e->stage || e->scan_var >= 0 || e->n_parts > 0 ||
		e->e->monoid == IR_SET)
		return false;
	for (int32_t i = 0; i < e->e->n_out; i++) {
		struct place_of p = lw_place_tensor(
			lw, e->e->out[i], e->start_at, false);

		if (p.array < 0 || p.dtype != e->acc[i] ||
			p.dtype == TN_BOOL || lw_computed(p.dtype) != p.dtype)
			return false;
	}
	return true;
}

int32_t lw_hold_until(
	lowering *lw, loop_node *const *list, int32_t n, int32_t at)
{
	int32_t eqn = list[at]->eqn, last = -1;
	bool bad = false, bad_yet = false;

	for (int32_t i = at + 1; i < n; i++)
		if (adds(list[i], eqn, &bad_yet) &&
			(loop_is_loop(list[i]) || list[i]->kind == LOOP_STMT)) {
			last = i;
			bad = bad_yet;
		}
	return last >= 0 && !bad && may_hold(lw, eqn) ? last : -1;
}

void lw_hold(lowering *lw, int32_t eqn, const val *start)
{
	struct hold h = {.eqn = eqn};

	for (int32_t i = 0; i < lw->k->eqn[eqn].e->n_out; i++) {
		val v = lw->lanes > 1 ? lw_to_lanes(lw, start[i]) : start[i];

		h.v[i] = lw_register(lw, v, v.id);
	}
	*vec_push(lw->a, &lw->hold) = h;
}

const val *lw_held(const lowering *lw, int32_t eqn)
{
	for (int32_t i = lw->hold.n - 1; i >= 0; i--)
		if (lw->hold.at[i].eqn == eqn)
			return lw->hold.at[i].v;
	return NULL;
}

void lw_let_go(lowering *lw, int32_t eqn)
{
	const loop_eqn *e = &lw->k->eqn[eqn];
	struct hold h = {.eqn = -1};
	int32_t m = 0;

	for (int32_t i = 0; i < lw->hold.n; i++)
		if (lw->hold.at[i].eqn == eqn)
			h = lw->hold.at[i];
		else
			lw->hold.at[m++] = lw->hold.at[i];
	lw->hold.n = m;
	for (int32_t i = 0; h.eqn >= 0 && i < e->e->n_out; i++) {
		struct place_of p = lw_place_tensor(
			lw, e->e->out[i], e->at, false);

		lw_store(lw, &p, h.v[i]);
	}
}
