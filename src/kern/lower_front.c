/*
 * lower_front.c: hoists masks of lanes out of loops that do not change them,
 * such as the mask of a sliding window out of the loop over channels. C
 * compilers do not do this.
 */
#include "kern/lower.h"

struct invariants {
	lowering *lw;
	loop_set inner; /* the inner loops */
	bool digits;	/* only digits of the lanes */
};

static void hoist(void *arg, const expr *e)
{
	const struct invariants *h = arg;
	lowering *lw = h->lw;

	if (e->kind != EX_INSIDE || ix_has_fun(e->form) ||
		!lw_form_varies(lw, e->form))
		return;
	lw_lane_digits(lw, e->form);
	if (!h->digits && (loop_form_vars(e->form) & h->inner) == 0)
		(void)lw_ex(lw, e);
}

static void hoist_below(struct invariants h, const loop_node *n)
{
	if (n->kind == LOOP_FOR || n->kind == LOOP_BLOCK)
		h.inner |= (loop_set)1 << n->var;
	if (n->kind == LOOP_STMT) {
		const loop_eqn *e = &h.lw->k->eqn[n->eqn];

		for (int32_t i = 0; i < e->e->n_out; i++)
			loop_walk(h.lw->a, e->body[i], hoist, &h);
	}
	for (int32_t i = 0; i < n->n_child && n->kind != LOOP_TILE; i++)
		hoist_below(h, n->child[i]);
}

void lw_masks_in_front(lowering *lw, const loop_node *n, bool digits)
{
	if (lw->lanes > 1 && lw->path.n == 0)
		hoist_below((struct invariants){lw, 0, digits}, n);
}
