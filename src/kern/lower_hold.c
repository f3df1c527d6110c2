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
#include "loop/tree.h"

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

	if (e->push || e->stage || e->scan_var >= 0 || e->e->monoid == IR_SET)
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
	return last >= 0 && !bad && lw->k->eqn[eqn].n_parts == 0 &&
			       may_hold(lw, eqn)
		       ? last
		       : -1;
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

/* Does only child i of n have to do with what it adds up, one value in all of n's
 * iterations, in a register? */
static bool adds_alone(lowering *lw, const loop_node *n, int32_t i)
{
	int32_t eqn = n->child[i]->eqn;
	const loop_eqn *e = &lw->k->eqn[eqn];

	if (n->child[i]->kind != LOOP_STMT || (e->reduced >> n->var & 1) == 0 ||
		!may_hold(lw, eqn) || lw_held(lw, eqn) != NULL ||
		lw_find_acc(lw, eqn) != NULL)
		return false;
	for (int32_t k = 0; k < n->n_child; k++)
		for (int32_t j = 0; j < e->e->n_out; j++)
			if (k != i && (n->child[k]->eqn == eqn ||
				loop_leaf_reads(lw->k, n->child[k], e->e->out[j])))
				return false;
	return true;
}

int32_t lw_hold_sums(lowering *lw, const loop_node *n)
{
	int32_t first = lw->hold.n;
	val v[IR_MAX_COMP];

	for (int32_t i = 0; i < n->n_child; i++)
		if (loop_is_loop(n->child[i]))
			return first;
	for (int32_t i = 0; i < n->n_child; i++) {
		int32_t eqn = n->child[i]->eqn;

		if (!adds_alone(lw, n, i))
			continue;
		for (int32_t j = 0; j < lw->k->eqn[eqn].e->n_out; j++) {
			struct place_of p = lw_target(lw, eqn, j);

			v[j] = lw_load(lw, &p, false);
		}
		lw_hold(lw, eqn, v);
	}
	return first;
}

void lw_let_go_of(lowering *lw, int32_t first)
{
	while (lw->hold.n > first)
		lw_let_go(lw, lw->hold.at[first].eqn);
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
