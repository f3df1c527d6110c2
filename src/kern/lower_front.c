/*
 * lower_front.c: hoists masks of lanes out of loops that do not change them,
 * such as the mask of a sliding window out of the loop over channels. C
 * compilers do not do this. In front of rows that are summed abreast they are
 * written once, as is the factor that all rows have, so the text is shorter.
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

struct rows {
	lowering *lw;
	loop_set rows;
};

static void read_in_front(void *arg, const expr *e)
{
	const struct rows *r = arg;
	val v;

	if (e->kind == EX_READ && !ix_has_fun(e->form) &&
		(loop_form_vars(e->form) & r->rows) == 0 && !lw_is_unsafe(r->lw, e)) {
		v = lw_ex(r->lw, e);
		if (v.lanes == 1 && dtype_is_float(v.dt))
			*vec_push(r->lw->a, &r->lw->memo) =
				(struct memo){e, lw_to_lanes(r->lw, v)};
	}
}

void lw_rows_in_front(lowering *lw, const loop_node *n)
{
	struct rows r = {lw, (loop_set)1 << n->var};
	const loop_node *leaf = n->child[0];
	struct place_of p;

	if (lw->lanes <= 1 || lw->path.n > 0 || n->n_child != 1 ||
		leaf->kind != LOOP_STMT || lw->k->eqn[leaf->eqn].e->monoid == IR_SET)
		return;
	p = lw_target(lw, leaf->eqn, 0);
	if (!lw_is_abreast(&p))
		return;
	lw_masks_in_front(lw, n, false);
	for (int32_t i = 0; i < lw->k->eqn[leaf->eqn].e->n_out; i++)
		loop_walk(lw->a, lw->k->eqn[leaf->eqn].body[i], read_in_front, &r);
}
