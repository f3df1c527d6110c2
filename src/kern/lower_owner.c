/*
 * lower_owner.c: scatters in blocks of their elements: an update is done by the
 * chunk that has its element. A warp asks that of 32 updates at a time, lane by
 * lane, and then does those that it found, in their order:
 *
 *   for %i = 0 .. 65536 step 32 {
 *     for %l = 0 .. 32 by lane { set %r[%l] = inside -64*chunk + ids[%i + %l], 0, 64 }
 *     if any %r { for %l = 0 .. 32 { if lane %r, %l { update %i + %l } } }
 *   }
 */
#include "kern/lower.h"

val lw_owned(lowering *lw, const loop_node *leaf, kern_val lane)
{
	const loop_eqn *e = &lw->k->eqn[leaf->eqn];
	const ix_form *row;
	val all = {0};

	for (const loop_node *u = leaf->up; u != NULL; u = u->up) {
		form from;
		val in;

		if (u->kind != LOOP_BLOCK ||
			!loop_row_of(lw->k, e, u->var, &row))
			continue;
		lw_load_funs(lw, row);
		from = lw_block_at(lw, u->var, lw_block_level(u));
		in = lw_inside(lw, lw_sub(lw, lw_form(lw, row, lane), from), 0,
			u->size);
		all = all.id == 0 ? in : lw_and(lw, all, in);
	}
	return all;
}

/* Do the rows of the leaf's updates, by which blocks around n divide them, change
 * with n's variable, and with no loop inside? */
static bool rows_change(lowering *lw, const loop_node *n, const loop_node *leaf)
{
	const loop_eqn *e = &lw->k->eqn[leaf->eqn];
	loop_set vars = 0;
	const ix_form *row;

	for (const loop_node *u = n->up; u != NULL; u = u->up)
		if (u->kind == LOOP_BLOCK && loop_row_of(lw->k, e, u->var, &row))
			vars |= loop_form_vars(row);
	for (const loop_node *u = leaf->up; u != n; u = u->up)
		if (u->kind != LOOP_FOR || (vars >> u->var & 1) != 0)
			return false;
	return (vars >> n->var & 1) != 0;
}

const loop_node *lw_searched(lowering *lw, const loop_node *n)
{
	const loop_node *leaf = n;

	while (loop_is_loop(leaf) && leaf->n_child == 1)
		leaf = leaf->child[0];
	return leaf->kind == LOOP_STMT && lw->k->eqn[leaf->eqn].push &&
			       lw->k->machine->lanes > 0 && lw->lanes == 1 &&
			       lw->path.n == 0 && !n->backward && !n->by_warp &&
			       lw->span[n->var].len >= lw->k->machine->lanes &&
			       rows_change(lw, n, leaf)
		       ? leaf
		       : NULL;
}

val lw_search(lowering *lw, const loop_node *n, const loop_node *leaf)
{
	struct marks m = lw_mark(lw);
	val found, all;
	kern_val l;

	lw->lanes = lw->k->machine->lanes;
	lw->vvar = n->var;
	found = lw_register(lw, lw_type(lw, TN_I32, lw->lanes), 0);
	lw_load_funs(lw, lw->k->eqn[leaf->eqn].at);
	l = lw_for_lanes(lw, lw->lanes);
	lw_set_lane(lw, found, l, lw_cast(lw, lw_owned(lw, leaf, l), TN_I32));
	lw_close(lw);
	all = lw_cast(lw, found, TN_BOOL);
	lw->lanes = 1;
	lw->vvar = -1;
	lw_release(lw, m);
	return all;
}
