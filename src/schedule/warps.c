/*
 * warps.c: deals the loops of a phase to the warps of a block.
 *
 * Consumes phases of tiles with their locations, on a machine that has blocks of
 * warps (rows: row_warps.c). A loop around statements whose iterations do not depend
 * on each other is walked by warp: iteration n by warp n mod the number of warps.
 * Every statement of tiles stands in exactly one such loop, so none is run twice; arrays of the worker become
 * memory that the block shares, so no value may be kept in a register from one
 * such loop to the next, and none in an array within one. Where the warps must
 * wait for each other follows from what they access (kern/barrier.c).
 *
 *   block k {                               all warps
 *     for i by warp { copy of a row of x }
 *     for k by warp { copy of a row of y }
 *     block i by warp { tile } }
 */
#include "schedule/local.h"

static bool holds(const loop_node *n, loop_kind kind)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (holds(n->child[i], kind))
			return true;
	return n->kind == kind;
}

/* Is the piece of a sum that e makes that of top, or of a block inside that holds
 * the same piece of the variable? */
static bool is_of_piece(
	const loop_eqn *e, const loop_node *leaf, const loop_node *top)
{
	for (const loop_node *u = leaf->up; u != top->up; u = u->up)
		if (u->kind == LOOP_BLOCK && u->var == top->var &&
			u->size == top->size && u->number >= 0 &&
			(e->left & BIT(u->number)) != 0)
			return true;
	return false;
}

/* Is each iteration of top independent in each statement below n? */
static bool are_apart(
	const loop_kernel *k, const loop_node *n, const loop_node *top)
{
	const loop_eqn *e;

	for (int32_t i = 0; i < n->n_child; i++)
		if (!are_apart(k, n->child[i], top))
			return false;
	if (loop_is_loop(n))
		return true;
	e = &k->eqn[n->eqn];
	return !e->push && e->scan_var != top->var &&
	       ((e->left & BIT(top->var)) != 0 || is_of_piece(e, n, top)) &&
	       n->kind != LOOP_PART && n->kind != LOOP_JOIN;
}

/* Is n, or the loop that it is a copy of, at or around the scope of b? */
static bool is_around(const loop_node *n, const loop_buf *b)
{
	return b->scope != NULL && (loop_is_below(b->scope, n) ||
					   loop_is_below(b->scope, loop_first(n)));
}

static bool keeps_array(const loop_kernel *k, const loop_node *n)
{
	for (int32_t i = 0; i < k->n_bufs; i++)
		if (k->buf[i].where == LOOP_LOCAL && is_around(n, &k->buf[i]))
			return true;
	return false;
}

bool loop_may_deal(const loop_kernel *k, const loop_node *n)
{
	return (n->kind == LOOP_FOR || n->kind == LOOP_BLOCK) && !n->parallel &&
	       !n->backward && n->lanes <= 1 && n->n_clip == 0 &&
	       are_apart(k, n, n) && !keeps_array(k, n);
}

int64_t loop_length(const loop_kernel *k, const loop_node *n)
{
	int64_t len = k->var[n->var].extent;

	for (const loop_node *u = n->up; u != NULL; u = u->up)
		if (u->kind == LOOP_BLOCK && u->var == n->var && u->size < len)
			len = u->size;
	return len;
}

int64_t loop_pieces(const loop_kernel *k, const loop_node *n)
{
	int64_t size = n->kind == LOOP_BLOCK ? n->size : 1;

	return (loop_length(k, n) + size - 1) / size;
}

/*
 * Deals loops at and below n, as far out as it is allowed; false: a statement
 * is left. *most: the iterations of a loop around a tile, at most.
 */
static bool deal(const loop_kernel *k, loop_node *n, int64_t *most)
{
	if (!loop_is_loop(n))
		return false;
	if (loop_may_deal(k, n)) {
		n->by_warp = true;
		if (holds(n, LOOP_TILE) && loop_pieces(k, n) > *most)
			*most = loop_pieces(k, n);
		return true;
	}
	for (int32_t i = 0; i < n->n_child; i++)
		if (!deal(k, n->child[i], most))
			return false;
	return true;
}

static void take_back(loop_node *n)
{
	n->by_warp = false;
	for (int32_t i = 0; i < n->n_child; i++)
		take_back(n->child[i]);
}

static const loop_node *root_of(const loop_node *n)
{
	while (n->up != NULL)
		n = n->up;
	return n;
}

static bool is_in_phase(const loop_kernel *k, const loop_buf *b, int32_t phase)
{
	const loop_phase *ph = &k->phase[phase];

	if (b->scope == NULL)
		return b->phase == phase;
	for (int32_t i = 0; i < ph->n_roots; i++)
		if (root_of(b->scope) == ph->root[i])
			return true;
	return false;
}

/* Does a loop by warp at or below n hold a statement of eqn? dealt: n stands in
 * one. */
static bool is_dealt(const loop_node *n, int32_t eqn, bool dealt)
{
	dealt |= n->by_warp;
	for (int32_t i = 0; i < n->n_child; i++)
		if (is_dealt(n->child[i], eqn, dealt))
			return true;
	return dealt && !loop_is_loop(n) && n->eqn == eqn;
}

static bool is_dealt_in(const loop_phase *ph, int32_t eqn)
{
	for (int32_t i = 0; i < ph->n_roots; i++)
		if (is_dealt(ph->root[i], eqn, false))
			return true;
	return false;
}

bool loop_may_be_alike(const loop_kernel *k, const loop_node *n)
{
	const loop_eqn *e = &k->eqn[n->eqn];

	return (n->kind == LOOP_INIT || n->kind == LOOP_STMT ||
		       n->kind == LOOP_DONE) &&
	       !e->push && !e->stage && !e->pack && e->scan_var < 0 &&
	       e->n_parts == 0;
}

const loop_buf *loop_kept_by_all(const loop_kernel *k, int32_t phase)
{
	for (int32_t i = 0; i < k->n_bufs; i++) {
		const loop_buf *b = &k->buf[i];
		const loop_node *u = b->scope;

		if (b->where != LOOP_REGISTER || !is_in_phase(k, b, phase))
			continue;
		while (u != NULL && !u->by_warp)
			u = u->up;
		if (u == NULL && is_dealt_in(&k->phase[phase], b->eqn))
			return b;
	}
	return NULL;
}

static void decline(
	loop_kernel *k, int32_t phase, decide_kind why, int64_t a, int64_t b)
{
	for (int32_t i = 0; i < k->phase[phase].n_roots; i++)
		take_back(k->phase[phase].root[i]);
	k->phase[phase].warps = 0;
	loop_decide(k, why, phase, -1, a, b);
}

static void give(loop_kernel *k, int32_t phase)
{
	loop_phase *ph = &k->phase[phase];
	const machine *m = k->machine;
	bool all = true, tiles = false;
	int64_t most = 0;
	int32_t warps = m->block.warps;

	for (int32_t i = 0; i < ph->n_roots; i++)
		tiles |= holds(ph->root[i], LOOP_TILE);
	if (!tiles)
		return;
	for (int32_t i = 0; i < ph->n_roots && all; i++)
		all = deal(k, ph->root[i], &most);
	while (warps > 1 && warps / 2 >= most)
		warps /= 2;
	if (!all || loop_kept_by_all(k, phase) != NULL)
		decline(k, phase, DECIDE_WARPS_LOOPS, 0, 0);
	else if (k->local_bytes > (size_t)m->block.shared_bytes)
		decline(k, phase, DECIDE_WARPS_LARGE, (int64_t)k->local_bytes,
			m->block.shared_bytes);
	else if (warps < 2)
		decline(k, phase, DECIDE_WARPS_FEW, most, 0);
	else {
		ph->warps = warps;
		loop_decide(k, DECIDE_WARPS_TAKEN, phase, -1, warps,
			(int64_t)k->local_bytes);
	}
}

void loop_deal_to_warps(loop_kernel *k)
{
	loop_link(k);
	for (int32_t p = 0; p < k->n_phases && k->machine->block.warps > 1; p++)
		give(k, p);
}
