/*
 * hold_near.c: sums of products stay in registers until what follows is computed.
 *
 * Consumes phases of tiles, on a machine whose cores run chunks alone. A tile stores
 * its sums, and loops behind all tiles of the chunk load them again, compute what
 * follows, and store that. Where the sums are complete in one tile, and little
 * follows on each, that is done while they are in registers:
 *
 *   block i by 8 { tile t }                block i by 8 {
 *   for i { for j lanes 16 {      ->         tile t held
 *     do add; do relu } }                    for i held t { for j lanes 16 held t {
 *                                              do add; do relu } } }
 *
 * The statements are written out for each register of a tile, so they must be short.
 * Blocks of warps hold their sums in another way: hold.c.
 */
#include "schedule/local.h"

/* ---- what may be held ---- */

static bool adds_up_in(const loop_kernel *k, const loop_node *t, const loop_node *n)
{
	const loop_eqn *e = &k->eqn[t->eqn];

	return (e->reduced & ~e->left & BIT(n->var)) != 0;
}

bool loop_may_hold_near(const loop_kernel *k, const loop_node *t)
{
	const loop_node *rows = t->up;
	bool whole = k->var[t->var].extent <= (int64_t)t->lanes * t->unroll;

	if (t->kind != LOOP_TILE || !t->start || t->checked || t->matrix ||
		t->tiled || t->finish != NULL || t->row_var < 0 || t->n_needs > 0 || rows == NULL ||
		rows->kind != LOOP_BLOCK || rows->var != t->row_var ||
		rows->size != t->size || rows->parallel)
		return false;
	for (const loop_node *n = rows; n != NULL; n = n->up) {
		if (adds_up_in(k, t, n) || n->kind == LOOP_SPAN || n->n_needs > 0)
			return false;
		whole |= n->kind == LOOP_BLOCK && n->var == t->var &&
			 n->size <= (int64_t)t->lanes * t->unroll;
	}
	return whole;
}

/* ---- what follows ---- */

/* The list of nodes in which the tile's nest stands, and its number there. */
struct nest {
	loop_node **list;
	int32_t *n;
	int32_t at;
	loop_set vars; /* of the loops of the nest */
};

/* Finds the list in which the next node reads the sums, inside of a chunk, and nothing
 * else does; false: it is not so. */
static bool find_reader(loop_kernel *k, loop_phase *ph, const loop_node *t, struct nest *out)
{
	loop_set vars = BIT(t->var);
	bool chunk = true;

	*out = (struct nest){0};
	for (const loop_node *n = t; n != NULL; n = n->up) {
		loop_node *up = n->up;
		loop_node **list = up == NULL ? ph->root : up->child;
		int32_t *count = up == NULL ? &ph->n_roots : &up->n_child, at = 0;

		while (at < *count && list[at] != n)
			at++;
		for (int32_t i = 0; i < *count; i++) {
			if (i == at || !loop_is_held_aside(k, list[i], t))
				continue;
			if (i != at + 1 || out->list != NULL || !chunk)
				return false;
			*out = (struct nest){list, count, at, vars};
		}
		if (up == NULL)
			break;
		vars |= BIT(up->var);
		chunk &= !up->parallel;
	}
	return out->list != NULL;
}

static bool other_phases_read(loop_kernel *k, const loop_phase *ph, const loop_node *t)
{
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; &k->phase[p] != ph && i < k->phase[p].n_roots; i++)
			if (loop_is_held_aside(k, k->phase[p].root[i], t))
				return true;
	return false;
}

/* Operations of the statements of an element; -1: there are others than statements
 * that set one. */
static int64_t ops_of(const loop_kernel *k, const loop_node *columns)
{
	int64_t ops = 0;

	for (int32_t i = 0; i < columns->n_child; i++) {
		const loop_node *n = columns->child[i];
		const loop_eqn *e = &k->eqn[n->eqn < 0 ? 0 : n->eqn];

		if (n->kind != LOOP_STMT || e->e->monoid != IR_SET ||
			e->scan_var >= 0 || e->push || e->stage || e->pack)
			return -1;
		for (int32_t j = 0; j < e->e->n_out; j++)
			ops += 1 + e->body[j]->flops;
	}
	return ops;
}

static bool reads_elsewhere(loop_kernel *k, const loop_node *columns, const loop_node *t)
{
	const loop_eqn *e = &k->eqn[t->eqn];

	for (int32_t i = 0; i < columns->n_child; i++)
		if (!loop_leaf_reads_at(k, columns->child[i], e->e->out[0], e->at))
			return true;
	return false;
}

/* The innermost of loops that walk what the nest walks, each element once, with the
 * lanes of the tile; NULL: n is something else. */
static loop_node *columns_of(loop_node *n, const loop_node *t, loop_set vars)
{
	loop_set seen = 0;

	while (n->kind == LOOP_FOR && n->n_needs == 0 && n->n_clip == 0 &&
		!n->backward && !n->parallel && (seen & BIT(n->var)) == 0) {
		seen |= BIT(n->var);
		if (n->n_child != 1 || !loop_is_loop(n->child[0]))
			return seen == vars && n->var == t->var &&
					       n->lanes == t->lanes
				       ? n
				       : NULL;
		if (n->lanes > 1)
			return NULL;
		n = n->child[0];
	}
	return NULL;
}

/* ---- the pass ---- */

/* Moves the statements of a reader behind the tile, into the block of its rows. */
static void move(loop_kernel *k, loop_node *t, struct nest *l, loop_node *columns)
{
	loop_node *rows = loop_node_for(k->a, t->row_var, columns);

	rows->held = columns->held = 1 + t->eqn;
	columns->unroll = 1;
	t->held = 1;
	loop_node_adopt(k->a, t->up, rows);
	for (int32_t i = l->at + 1; i + 1 < *l->n; i++)
		l->list[i] = l->list[i + 1];
	(*l->n)--;
	loop_link(k);
}

static void hold(loop_kernel *k, loop_phase *ph, loop_node *t)
{
	struct nest l = {0};
	loop_node *columns;
	int64_t ops, most = k->machine->schedule.long_ops;

	if (!loop_may_hold_near(k, t) || t->up->n_child != 1 ||
		loop_writes_input(k) ||
		loop_param(k, k->eqn[t->eqn].e->out[0]) >= 0) {
		loop_decide(k, DECIDE_HOLD_WHOLE, t->eqn, -1, 0, 0);
		return;
	}
	columns = find_reader(k, ph, t, &l) && !other_phases_read(k, ph, t)
			  ? columns_of(l.list[l.at + 1], t, l.vars)
			  : NULL;
	ops = columns != NULL ? ops_of(k, columns) : -1;
	if (ops < 0 || reads_elsewhere(k, columns, t)) {
		loop_decide(k, DECIDE_HOLD_READ, t->eqn, -1, 0, 0);
		return;
	}
	if (ops > most) {
		loop_decide(k, DECIDE_HOLD_OPS, t->eqn, -1, ops, most);
		return;
	}
	move(k, t, &l, columns);
	loop_decide(k, DECIDE_HOLD_TAKEN, t->eqn, -1, t->size,
		(int64_t)t->lanes * t->unroll);
}

static void hold_below(loop_kernel *k, loop_phase *ph, loop_node *n)
{
	if (n->kind == LOOP_TILE)
		hold(k, ph, n);
	for (int32_t i = 0; i < n->n_child; i++)
		hold_below(k, ph, n->child[i]);
}

void loop_hold_near(loop_kernel *k)
{
	loop_link(k);
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			hold_below(k, &k->phase[p], k->phase[p].root[i]);
}
