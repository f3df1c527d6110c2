/*
 * verify_warps.c: what a text may get wrong about blocks of warps; see warps.c.
 */
#include "schedule/verify.h"

static void check_leaf(struct sv *v, const loop_node *n, int32_t warps)
{
	int32_t dealt = 0;

	for (const loop_node *u = n->up; u != NULL; u = u->up)
		dealt += u->by_warp;
	if (warps > 1 && dealt != 1 &&
		(dealt > 0 || !loop_may_be_alike(v->k, n)))
		verify_fail(v, n, "warp",
			"%d loops by warp stand around %s; in a phase `by %d warps` it must be one",
			dealt, verify_eqn(v, n->eqn), warps);
	if (warps <= 1 && dealt > 0)
		verify_fail(v, n, "warp",
			"a loop by warp stands around %s: the line of the phase must say `by N warps`",
			verify_eqn(v, n->eqn));
}

/* Is n a block of the tile's rows, of which each warp has one? */
static bool has_one_each(const struct sv *v, const loop_node *n,
	const loop_node *tile, int32_t warps)
{
	return n != NULL && n->kind == LOOP_BLOCK && n->by_warp &&
	       n->var == tile->row_var && n->size == tile->size &&
	       loop_pieces(v->k, n) <= warps;
}

/* May the sums of t be held where it stands? */
static bool may_hold(const struct sv *v, const loop_node *t, int32_t warps)
{
	if (v->k->machine->block.warps <= 1)
		return loop_may_hold_near(v->k, t);
	return loop_may_hold(v->k, t) &&
	       has_one_each(v, loop_rows_around(v->k, t), t, warps);
}

/* Do these rows stand where the sums of the tile are in registers? */
static bool is_near(const struct sv *v, const loop_node *rows,
	const loop_node *tile, int32_t warps)
{
	if (v->k->machine->block.warps <= 1)
		return rows->up == tile->up && rows->child[0]->lanes == tile->lanes;
	return has_one_each(v, rows->up, tile, warps);
}

static void check_held(struct sv *v, const loop_node *t, int32_t warps)
{
	loop_kernel *k = v->k;

	if (!may_hold(v, t, warps) && k->machine->block.warps <= 1)
		verify_fail(v, t, "held",
			"the sums of this tile cannot be held: it needs \"start\", no \"checked\", no factor applied afterwards, all terms and all columns of its block, and a block of its rows around it");
	if (!may_hold(v, t, warps))
		verify_fail(v, t, "held",
			"the sums of this tile cannot be held: it needs \"start\", no \"checked\", all columns of its block, and a block of its rows by warp around it of which each warp has one at most");
	for (int32_t i = 0; i < v->leaf.n; i++)
		if (v->leaf.at[i].n != t && v->leaf.at[i].n->eqn == t->eqn &&
			v->leaf.at[i].n->kind == LOOP_TILE)
			verify_fail(v, t, "held",
				"%s has several tiles; sums that are held have one",
				verify_eqn(v, t->eqn));
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			if (loop_is_held_aside(k, k->phase[p].root[i], t))
				verify_fail(v, t, "held",
					"the sums of %s are held: what reads or stores them must stand in loops over its rows and columns that are \"held\", too, and take its own element",
					verify_eqn(v, t->eqn));
}

/* Does n, not the outer one of both, walk sums that are held? */
static bool is_walk(const struct sv *v, const loop_node *n, int32_t warps)
{
	const loop_node *t = loop_tile_of(v->k, n->held - 1), *rows = n;

	if (n->up != NULL && n->up->kind == LOOP_FOR && n->up->held == n->held)
		rows = n->up;
	return t != NULL && t->held > 0 && rows->n_child == 1 &&
	       rows->child[0]->held == n->held && loop_may_walk(v->k, rows, t) &&
	       is_near(v, rows, t, warps) &&
	       loop_length(v->k, rows->child[0]) <=
		       (int64_t)t->lanes * t->unroll;
}

static void check_warpgroup(struct sv *v, const loop_node *t, int32_t phase)
{
	int32_t warps = v->k->machine->matrix.warps;

	if (warps < 2 || t->warps != warps)
		verify_fail(v, t, "warp",
			warps < 2 ? "%s has no matrix instructions of several warps"
				  : "matrix instructions of %s are of one warp, or of %d",
			v->k->machine->name, warps);
	if (t->in_memory && !loop_may_take_rows(v->k, t))
		verify_fail(v, t, "warp",
			"this tile cannot take its rows from memory: they must be copied ahead, for it alone, in rows of 128 bytes whose terms adjoin, %d at a time",
			LOOP_ROWS_TOGETHER);
	if (!loop_may_use_warpgroup(v->k, phase, t))
		verify_fail(v, t, "warp",
			"this tile cannot be computed by %d warps together: it needs sums that are held, no \"checked\", no \"within\", no guards, factors that are both bf16 or both f16, columns that are copied ahead in whole rows of 128 or 256 bytes, and rows for all warps of the phase",
			warps);
}

static void check_nodes(struct sv *v, const loop_node *n, int32_t phase)
{
	int32_t warps = v->k->phase[phase].warps;

	if (!loop_is_loop(n))
		check_leaf(v, n, warps);
	else if (n->by_warp && !loop_may_deal(v->k, n))
		verify_fail(v, n, "warp",
			"the loop over %s cannot be dealt to warps: it needs iterations that are independent, no lanes, and no array that is kept inside it",
			verify_var(v, n->var));
	if (n->bulk && !loop_may_copy_in_bulk(v->k, n))
		verify_fail(v, n, "bulk",
			"the loop over %s cannot be a copy in bulk: on a machine that has such copies it needs whole rows of a swizzled array, eight or a multiple of eight, copied ahead from rows of a tensor that begin at multiples of 16 bytes",
			verify_var(v, n->var));
	if (n->stages > 1 && (warps <= 1 || !loop_may_stage(v->k, n)))
		verify_fail(v, n, "pieces",
			"the block over %s cannot have stages: it needs whole pieces, and loops by warp that copy whole rows of 16 bytes of a tensor that the kernel only reads, each of them once in a piece",
			verify_var(v, n->var));
	if (n->held > 0 && n->kind == LOOP_TILE)
		check_held(v, n, warps);
	if (n->warps > 0)
		check_warpgroup(v, n, phase);
	if (n->held > 0 && n->kind == LOOP_FOR && !is_walk(v, n, warps))
		verify_fail(v, n, "held",
			"this loop cannot walk the sums of %s as they are held: it and the one loop in it must be those of the rows and columns of a tile that is held, %s, with statements that add nothing up",
			verify_eqn(v, n->held - 1),
			v->k->machine->block.warps > 1
				? "in a block of its rows by warp"
				: "in the same block of its rows, with the same lanes");
	for (int32_t i = 0; i < n->n_child; i++)
		check_nodes(v, n->child[i], phase);
}

void verify_warps(struct sv *v)
{
	const loop_kernel *k = v->k;

	for (int32_t p = 0; p < k->n_phases; p++) {
		const loop_phase *ph = &k->phase[p];
		const loop_buf *b;

		for (int32_t i = 0; i < ph->n_roots; i++)
			check_nodes(v, ph->root[i], p);
		b = ph->warps > 1 ? loop_kept_by_all(k, p) : NULL;
		if (b != NULL)
			verify_fail(v, NULL, "warp",
				"%s is kept in a register from one loop by warp to the next",
				verify_eqn(v, b->eqn));
	}
}
