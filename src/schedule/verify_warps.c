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

static void check_nodes(struct sv *v, const loop_node *n, int32_t warps)
{
	if (!loop_is_loop(n))
		check_leaf(v, n, warps);
	else if (n->by_warp && !loop_may_deal(v->k, n))
		verify_fail(v, n, "warp",
			"the loop over %s cannot be dealt to warps: it needs iterations that are independent, no lanes, and no array that is kept inside it",
			verify_var(v, n->var));
	if (n->stages > 1 && (warps <= 1 || !loop_may_stage(v->k, n)))
		verify_fail(v, n, "pieces",
			"the block over %s cannot have stages: it needs whole pieces, and loops by warp that copy whole rows of 16 bytes of a tensor that the kernel only reads, each of them once in a piece",
			verify_var(v, n->var));
	for (int32_t i = 0; i < n->n_child; i++)
		check_nodes(v, n->child[i], warps);
}

void verify_warps(struct sv *v)
{
	const loop_kernel *k = v->k;

	for (int32_t p = 0; p < k->n_phases; p++) {
		const loop_phase *ph = &k->phase[p];
		const loop_buf *b;

		for (int32_t i = 0; i < ph->n_roots; i++)
			check_nodes(v, ph->root[i], ph->warps);
		b = ph->warps > 1 ? loop_kept_by_all(k, p) : NULL;
		if (b != NULL)
			verify_fail(v, NULL, "warp",
				"%s is kept in a register from one loop by warp to the next",
				verify_eqn(v, b->eqn));
	}
}
