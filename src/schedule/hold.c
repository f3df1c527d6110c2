/*
 * hold.c: sums of products that stay in registers of the warps.
 *
 * Consumes phases of tiles, on a machine that has blocks of warps. A tile whose sum
 * is cut into blocks would store its sums behind each of them, and load them in
 * front of the next one. Where each warp of a block has one tile at most, its
 * registers hold them from the first term to the last; and loops that read the sums
 * then walk rows and columns as the warp has them.
 *
 *   block i by 64 parallel {                   block i by 64 parallel {
 *     block k { copies                           block k { copies
 *       block i by 16 { tile t }}        ->        block i by 16 { tile t held }}
 *     for i { for j lanes 32 {                   block i by 16 {
 *       do gelu } } }                              for i held t { for j held t {
 *                                                    do gelu } } } }
 *
 * A result in memory is stored in such loops, too. What else reads the sums, such as
 * a sum along rows, keeps them in memory of the block.
 */
#include "schedule/local.h"

/* ---- what may be held ---- */

/* Does a loop walk terms of the sum, which are no piece of a cut one? */
static bool walks_sum(const loop_eqn *e, const loop_node *n)
{
	return n->number < 0 && (e->reduced & ~e->left & BIT(n->var)) != 0;
}

static bool is_sum_block(const loop_eqn *e, const loop_node *n)
{
	return n->kind == LOOP_BLOCK && !n->parallel && walks_sum(e, n);
}

/* The loop in which the sums of the tile begin and end: outside of the blocks of
 * its rows, columns and sums. NULL: the phase. */
static loop_node *scope_of(const loop_kernel *k, const loop_node *t)
{
	const loop_eqn *e = &k->eqn[t->eqn];
	loop_node *n = t->up->up->up;

	while (n != NULL && is_sum_block(e, n))
		n = n->up;
	return n;
}

/* Are all terms of the tile's sums added inside of its scope? A loop between two
 * blocks of the sum would begin other sums before these have ended. */
static bool ends_in_scope(const loop_kernel *k, const loop_node *t)
{
	for (const loop_node *n = scope_of(k, t); n != NULL; n = n->up)
		if (walks_sum(&k->eqn[t->eqn], n))
			return false;
	return true;
}

static bool is_columns(const loop_kernel *k, const loop_node *n, const loop_node *t)
{
	return n != NULL && n->kind == LOOP_BLOCK && n->var == t->var &&
	       n->size == (int64_t)t->lanes * t->unroll && !n->parallel &&
	       loop_pieces(k, n) == 1;
}

const loop_node *loop_rows_around(const loop_kernel *k, const loop_node *t)
{
	return is_columns(k, t->up, t) ? t->up->up : t->up;
}

/* Do all loops around n that walk terms of the sum cut it into blocks, one after the
 * other? Then it ends outside of the last of them. */
static bool only_cuts(const loop_kernel *k, const loop_node *n, const loop_eqn *e)
{
	for (; n != NULL; n = n->up)
		if (walks_sum(e, n) && !is_sum_block(e, n))
			return false;
	return loop_param(k, e->e->out[0]) < 0 || e->apart ||
	       k->s->tensor.at[e->e->out[0]].dtype != e->acc[0];
}

/* Does a warp have the rows, n, with all that belongs to them: contract/rows.c? Its
 * columns are then those of a block around them, or in them. */
static bool has_rows(const loop_kernel *k, const loop_node *n, const loop_node *t)
{
	return n->by_warp && t->matrix && n->n_child > 1 &&
	       (n != t->up ||
		       loop_length(k, &(loop_node){.var = t->var, .up = t->up}) <=
			       (int64_t)t->lanes * t->unroll) &&
	       only_cuts(k, n, &k->eqn[t->eqn]);
}

bool loop_may_hold(const loop_kernel *k, const loop_node *t)
{
	const loop_node *n;

	if (t->kind != LOOP_TILE || !t->start || (t->checked && !t->matrix) ||
		t->row_var < 0 || t->up == NULL)
		return false;
	n = loop_rows_around(k, t);
	if (n == NULL || n->kind != LOOP_BLOCK || n->var != t->row_var ||
		n->size != t->size || n->parallel ||
		loop_pieces(k, n) > k->machine->block.warps)
		return false;
	if (has_rows(k, n, t))
		return true;
	return n == t->up && n->n_child == 1 && is_columns(k, n->up, t) &&
	       ends_in_scope(k, t);
}

static bool is_plain(const loop_node *n, int32_t var)
{
	return n->kind == LOOP_FOR && n->var == var && n->n_needs == 0 &&
	       n->n_clip == 0 && !n->backward && !n->parallel;
}

static bool adds(const loop_kernel *k, const loop_node *leaf)
{
	const loop_eqn *e = &k->eqn[leaf->eqn];

	return leaf->kind == LOOP_STMT &&
	       (e->e->monoid != IR_SET || e->scan_var >= 0 || e->push ||
		       e->stage || e->pack);
}

/* Does the statement add up elements of a row, as warps have them? */
static bool adds_row(const loop_kernel *k, const loop_node *leaf, const loop_node *t)
{
	const loop_eqn *e = &k->eqn[leaf->eqn];

	return leaf->kind == LOOP_STMT && t->matrix && e->e->monoid != IR_SET &&
	       e->e->n_out == 1 && e->scan_var < 0 && !e->push && e->n_parts == 0 &&
	       e->reduced == BIT(t->var) && (e->left & BIT(t->row_var)) != 0 &&
	       e->acc[0] != TN_BOOL;
}

/* Is it part of a sum of one term: the gradient of what one equation reads? */
static bool adds_one(const loop_kernel *k, const loop_node *leaf, const loop_node *t)
{
	const loop_eqn *e = &k->eqn[leaf->eqn];

	return (leaf->kind == LOOP_STMT || leaf->kind == LOOP_INIT) && t->matrix &&
	       e->e->n_out == 1 && e->reduced == 0 && e->scan_var < 0 && !e->push &&
	       !e->stage && !e->pack && !e->tail;
}

/* .. or does it scale the sums, or copy what it makes of them? */
static bool may_change(const loop_kernel *k, const loop_node *leaf, const loop_node *t)
{
	const loop_eqn *e = &k->eqn[leaf->eqn];

	if (leaf->kind == LOOP_SCALE)
		return leaf->eqn == t->eqn && t->matrix;
	return adds_row(k, leaf, t) || adds_one(k, leaf, t) ||
	       (leaf->kind == LOOP_STMT && t->matrix && e->pack && !e->row && !e->part);
}

bool loop_may_walk(const loop_kernel *k, const loop_node *rows, const loop_node *t)
{
	const loop_node *columns = rows->n_child == 1 ? rows->child[0] : NULL;

	if (columns == NULL || !is_plain(rows, t->row_var) ||
		!is_plain(columns, t->var) || rows->lanes > 1)
		return false;
	for (int32_t i = 0; i < columns->n_child; i++) {
		const loop_node *n = columns->child[i];

		if (((n->kind != LOOP_STMT && n->kind != LOOP_DONE) || adds(k, n)) &&
			!may_change(k, n, t))
			return false;
	}
	return true;
}

/* Does a leaf below n read or store the sums of the tile? */
static bool touches(loop_kernel *k, const loop_node *n, const loop_node *t)
{
	int32_t made = k->eqn[t->eqn].e->out[0];

	for (int32_t i = 0; i < n->n_child; i++)
		if (touches(k, n->child[i], t))
			return true;
	return !loop_is_loop(n) && n != t &&
	       (n->eqn == t->eqn || loop_leaf_reads(k, n, made));
}

static bool reads_elsewhere(loop_kernel *k, const loop_node *n, const loop_node *t)
{
	const loop_eqn *e = &k->eqn[t->eqn];

	for (int32_t i = 0; i < n->n_child; i++)
		if (reads_elsewhere(k, n->child[i], t))
			return true;
	return !loop_is_loop(n) && n->kind != LOOP_DONE && n != t &&
	       !loop_leaf_reads_at(k, n, e->e->out[0], e->at);
}

/* What of n, outside of loops that walk the sums so, has to do with them? */
bool loop_is_held_aside(loop_kernel *k, const loop_node *n, const loop_node *t)
{
	const loop_node *of = n->held > 0 && n->kind == LOOP_FOR
				      ? loop_tile_of(k, n->held - 1)
				      : NULL;

	if (of != NULL && loop_same_sums(of, t))
		return reads_elsewhere(k, n, t);
	if (!loop_is_loop(n))
		return touches(k, n, t);
	for (int32_t i = 0; i < n->n_child; i++)
		if (loop_is_held_aside(k, n->child[i], t))
			return true;
	return false;
}

/* ---- the pass ---- */

static loop_node *walk(loop_kernel *k, const loop_node *t, loop_node *rows)
{
	loop_node *b = loop_node_new(k->a, LOOP_BLOCK);

	rows->held = rows->child[0]->held = 1 + t->eqn;
	b->var = t->row_var;
	b->size = t->size;
	loop_node_adopt(k->a, b, rows);
	return b;
}

/* for i { for j { done t } }, in a block of rows */
static loop_node *stores(loop_kernel *k, const loop_node *t)
{
	loop_node *done = loop_node_new(k->a, LOOP_DONE), *columns;

	done->eqn = t->eqn;
	columns = loop_node_for(k->a, t->var, done);
	loop_take_lanes(k, columns);
	return walk(k, t, loop_node_for(k->a, t->row_var, columns));
}

static bool stores_it(const loop_node *n, int32_t eqn)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (stores_it(n->child[i], eqn))
			return true;
	return n->kind == LOOP_DONE && n->eqn == eqn;
}

struct list {
	loop_node ***at;
	int32_t *n;
};

static void insert(loop_kernel *k, struct list l, int32_t at, loop_node *what)
{
	loop_node **out = arena_array(k->a, loop_node *, *l.n + 1);

	memcpy(out, *l.at, (size_t)at * sizeof *out);
	out[at] = what;
	memcpy(out + at + 1, *l.at + at, (size_t)(*l.n - at) * sizeof *out);
	*l.at = out;
	(*l.n)++;
}

/* Gives loops that read the sums their order; false: some cannot have it. */
static bool walk_readers(
	loop_kernel *k, struct list l, const loop_node *t, int32_t made)
{
	bool memory = loop_param(k, k->eqn[t->eqn].e->out[0]) >= 0, stored = false;

	for (int32_t i = made + 1; i < *l.n; i++) {
		loop_node *n = (*l.at)[i];

		stored |= stores_it(n, t->eqn);
		if (!loop_is_held_aside(k, n, t))
			continue;
		if (!loop_may_walk(k, n, t) || reads_elsewhere(k, n, t))
			return false;
		(*l.at)[i] = walk(k, t, n);
	}
	if (memory && !stored) {
		k->eqn[t->eqn].apart = true;
		insert(k, l, made + 1, stores(k, t));
	}
	return true;
}

/* Does eqn's tile t, below l.at[made], have its sums in registers from now on? */
static bool hold(loop_kernel *k, int32_t phase, loop_node *t)
{
	loop_node *scope = scope_of(k, t);
	loop_phase *ph = &k->phase[phase];
	struct list l = scope != NULL
				? (struct list){&scope->child, &scope->n_child}
				: (struct list){&ph->root, &ph->n_roots};
	int32_t made = 0;

	while (made < *l.n && !loop_is_below(t, (*l.at)[made]))
		made++;
	for (int32_t i = 0; i <= made; i++)
		if (loop_is_held_aside(k, (*l.at)[i], t))
			return false;
	t->held = 1;
	if (!walk_readers(k, l, t, made))
		return false;
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			if (loop_is_held_aside(k, k->phase[p].root[i], t))
				return false;
	return true;
}

static loop_node *tile_in(const loop_phase *ph, int32_t eqn)
{
	for (int32_t i = 0; i < ph->n_roots; i++) {
		loop_node *n = ph->root[i];
		const loop_kernel one = {.n_phases = 1,
			.phase = {{.n_roots = 1, .root = &n}}};
		const loop_node *t = loop_tile_of(&one, eqn);

		if (t != NULL)
			return (loop_node *)(uintptr_t)t;
	}
	return NULL;
}

static int32_t tiles_of(const loop_node *n, int32_t eqn)
{
	int32_t m = n->kind == LOOP_TILE && n->eqn == eqn;

	for (int32_t i = 0; i < n->n_child; i++)
		m += tiles_of(n->child[i], eqn);
	return m;
}

/* A copy of the kernel whose trees and equations can be changed. */
static loop_kernel *copy_of(const loop_kernel *k)
{
	loop_kernel *t = arena_copy(k->a, k, sizeof *k);

	memset(&t->decision, 0, sizeof t->decision);
	t->eqn = arena_copy(
		k->a, k->eqn, (size_t)(k->n_eqns + 1) * sizeof *k->eqn);
	for (int32_t p = 0; p < t->n_phases; p++) {
		loop_phase *ph = &t->phase[p];
		loop_node **root = arena_array(k->a, loop_node *, ph->n_roots + 1);

		for (int32_t i = 0; i < ph->n_roots; i++)
			root[i] = loop_node_copy(k->a, ph->root[i]);
		ph->root = root;
	}
	loop_link(t);
	return t;
}

/* Do blocks of warps run the phase? Locates its values for that. */
static bool is_dealt(const loop_kernel *k, int32_t phase)
{
	loop_kernel *t = copy_of(k);

	loop_locate(t);
	loop_deal_to_warps(t);
	return t->phase[phase].warps > 1;
}

static void decide(loop_kernel *k, int32_t phase, int32_t eqn)
{
	loop_kernel *t = copy_of(k);
	loop_node *tile = tile_in(&t->phase[phase], eqn);
	int32_t n = 0;

	if (tile->held > 0) { /* contract/rows.c */
		loop_decide(k, DECIDE_HOLD_TAKEN, eqn, -1, tile->size,
			(int64_t)tile->lanes * tile->unroll);
		return;
	}
	for (int32_t i = 0; i < t->phase[phase].n_roots; i++)
		n += tiles_of(t->phase[phase].root[i], eqn);
	if (n != 1 || !loop_may_hold(t, tile)) {
		loop_decide(k, DECIDE_HOLD_TILES, eqn, -1, 0, 0);
		return;
	}
	if (!hold(t, phase, tile)) {
		loop_decide(k, DECIDE_HOLD_READ, eqn, -1, 0, 0);
		return;
	}
	loop_link(t);
	if (!is_dealt(t, phase)) {
		loop_decide(k, DECIDE_HOLD_WARPS, eqn, -1, 0, 0);
		return;
	}
	memcpy(k->eqn, t->eqn, (size_t)k->n_eqns * sizeof *k->eqn);
	k->phase[phase] = t->phase[phase];
	loop_link(k);
	loop_decide(k, DECIDE_HOLD_TAKEN, eqn, -1, tile->size,
		(int64_t)tile->lanes * tile->unroll);
}

void loop_hold_sums(loop_kernel *k)
{
	loop_link(k);
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t e = 0; e < k->n_eqns; e++)
			if (tile_in(&k->phase[p], e) != NULL)
				decide(k, p, e);
}
