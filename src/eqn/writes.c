/*
 * writes.c: finds the elements that a write changes.
 *
 * Consumes an equation; decides whether it leaves elements of the version before
 * unchanged, and whether a read only reads such elements.
 *
 *     x1[i] = inside(i, 0, 4) ? v[i] : x[i]     all but 0 .. 3 stay
 *     a read of x at i + 4, i < 4: disjoint      at 2*i: not
 *
 * The index of the read is substituted into the guard: if the result is false
 * everywhere, that is a proof. Without a proof, they count as overlapping.
 */
#include "eqn/eqn.h"

const ix_form *eqn_position(arena *a, ir_system *s, const sys_eqn *e, ix_dom *d)
{
	int64_t *extent = arena_array(a, int64_t, e->n_axes + 1);
	const ix_form *at[IR_MAX_AXES];

	for (int32_t i = 0; i < e->n_left; i++)
		extent[i] = e->axis[i].extent;
	d->box = (ix_box){.n = e->n_left, .extent = extent};
	for (int32_t i = 0; i < e->n_left; i++)
		at[i] = ix_axis(s->x, d, i);
	return ix_linearise(s->x, d, e->n_left, extent, at);
}

bool eqn_find_writes(arena *a, ir_system *s, const sys_eqn *e, eqn_writes *w)
{
	const expr *b;
	const ix_form *own;
	ix_dom left; /* the domain where no guard so far holds */
	tn_dtype t;

	*w = (eqn_writes){.old = -1};
	if (e->monoid != IR_SET || e->push != NULL || e->opaque != NULL ||
		e->n_out != 1 || e->n_axes > e->n_left || e->scan_axis >= 0)
		return false;
	t = s->tensor.at[e->out[0]].dtype;
	b = ex_uncast(e->body[0], t);
	own = eqn_position(a, s, e, &w->dom);
	left = w->dom;
	while (b->kind == EX_SELECT && w->n_guards < EQN_MAX_GUARDS) {
		w->guard[w->n_guards++] = b->arg[0];
		left = ir_dom_when(s, &left, b->arg[0], false);
		b = ex_uncast(b->arg[2], t);
		if (b->kind == EX_READ && s->tensor.at[b->tensor].dtype == t &&
			s->tensor.at[b->tensor].numel ==
				s->tensor.at[e->out[0]].numel &&
			ix_equal(s->x, &left, own, b->form) == IX_EQUAL) {
			w->old = b->tensor;
			return true;
		}
	}
	return false;
}

/* Is the guard false at every element that the read reads? */
static bool is_never(
	ir_system *s, const eqn_writes *w, const expr *guard, const eqn_read *r)
{
	const ix_form *at[IR_MAX_AXES];
	const expr *c;

	ix_delinearise(
		s->x, &r->dom, r->at, w->dom.box.n, w->dom.box.extent, at);
	c = ex_subst(s, &r->dom, guard, w->dom.box.n, w->dom.box.extent, at,
		NULL, NULL);
	return c->kind == EX_CONST && c->c.i == 0;
}

bool eqn_disjoint(ir_system *s, const eqn_writes *w, const eqn_read *r)
{
	/* unchanged elements must be in the same memory */
	if (w->old < 0 || r->is_index || w->dom.box.n == 0 ||
		s->tensor.at[w->old].storage !=
			s->tensor.at[r->tensor].storage)
		return false;
	for (int32_t i = 0; i < w->n_guards; i++)
		if (!is_never(s, w, w->guard[i], r))
			return false;
	return true;
}
