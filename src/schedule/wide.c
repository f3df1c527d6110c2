/*
 * wide.c: lanes that take several neighbours at once.
 *
 * Consumes trees whose lanes and chunks are chosen, on a machine that loads and
 * stores `wide_bytes` of a lane in one access. Where a loop has n vectors at a time,
 * lane l of vector u has element 32 u + l; in a wide loop it has element n l + u, so
 * that a lane has n neighbours:
 *
 *   for i < 4096 lanes 32 unroll 4 wide { .. }     lane 0: 0 1 2 3, lane 1: 4 5 6 7
 *
 * It changes which lane computes what, and so the order of sums over i, but no value.
 * Every access along i must go to neighbours and begin at a multiple of n elements;
 * kern/wide.c then joins the accesses. Elements behind the last n vectors are taken
 * as everywhere.
 */
#include "schedule/local.h"

struct look {
	const loop_kernel *k;
	const loop_node *n;
	int64_t by;	/* multiples of so many elements; 0: find `bytes` */
	int32_t bytes;	/* of the widest element that a lane takes */
	bool index;	/* something else depends on the index */
	bool data;	/* an index is data, of each element: each vector checks it */
	bool jumps;	/* an access does not go to neighbours, or begins anywhere */
};

static bool begins_at_multiple(const struct look *w, const ix_form *f)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_term *t = &f->t[i];

		if (t->coef % w->by != 0 &&
			(t->atom->kind != IX_DIGIT ||
				t->atom->axis != w->n->var))
			return false;
	}
	return f->c0 % w->by == 0;
}

/* Does an index from data depend on the loop? */
static bool data_varies(const ix_form *f, int32_t var)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind != IX_DIGIT &&
			(t->kind == IX_FUN
					? (loop_form_vars(t->f) & BIT(var)) != 0
					: data_varies(t->f, var)))
			return true;
	}
	return false;
}

static void see_access(struct look *w, int32_t tensor, const ix_form *f)
{
	int32_t bytes = (int32_t)dtype_size(w->k->s->tensor.at[tensor].dtype);
	int64_t s;

	w->data |= data_varies(f, w->n->var);
	if (!ix_stride(f, w->n->var, w->k->var[w->n->var].extent, &s) ||
		(s != 0 && s != 1))
		w->jumps = true;
	else if (s == 1 && bytes > w->bytes)
		w->bytes = bytes;
	if (!w->jumps && s == 1 && w->by > 0)
		w->jumps = !begins_at_multiple(w, f);
}

static void on_expr(void *arg, const expr *e)
{
	struct look *w = arg;

	if (e->kind == EX_READ)
		see_access(w, e->tensor, e->form);
	else if (e->kind == EX_SELECT ||
		 (e->form != NULL &&
			 (loop_form_vars(e->form) & BIT(w->n->var)) != 0))
		w->index = true;
}

static void see_leaf(struct look *w, const loop_node *n)
{
	const loop_eqn *e = &w->k->eqn[n->eqn];

	w->jumps |= n->kind != LOOP_STMT || e->push || e->stage ||
		    (e->pack && !e->part) || e->scan_var >= 0;
	for (int32_t i = 0; i < e->e->n_out && !w->jumps; i++) {
		loop_walk(w->k->a, e->body[i], on_expr, w);
		see_access(w, e->e->out[i], e->at);
	}
}

/* What a lane can take of the loop at once: elements; 0: none. */
static int64_t elements_of(const struct look *w)
{
	int64_t n = w->k->machine->wide_bytes / (w->bytes > 0 ? w->bytes : 1);

	return w->bytes == 0 ? 0 : n > w->k->machine->wide_elems
						? w->k->machine->wide_elems
						: n;
}

static void look_at(struct look *w)
{
	for (int32_t i = 0; i < w->n->n_child; i++)
		see_leaf(w, w->n->child[i]);
}

/* Do all pieces of the variable around n begin at a multiple of `by`? *len: what
 * the innermost of them has. */
static bool pieces_begin_at(
	const loop_kernel *k, const loop_node *n, int64_t by, int64_t *len)
{
	*len = k->var[n->var].extent;
	for (const loop_node *u = n->up; u != NULL; u = u->up) {
		if (u->var != n->var || (u->kind != LOOP_BLOCK && u->kind != LOOP_SPAN))
			continue;
		if ((u->kind == LOOP_BLOCK ? u->size : u->lo) % by != 0)
			return false;
		if (u->kind == LOOP_BLOCK && u->size < *len)
			*len = u->size;
	}
	return true;
}

static bool is_plain(const loop_kernel *k, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (loop_is_loop(n->child[i]))
			return false;
	return n->kind == LOOP_FOR && n->lanes > 1 &&
	       n->lanes == k->machine->lanes && !n->backward &&
	       n->n_clip == 0 && n->n_needs == 0;
}

bool loop_may_be_wide(const loop_kernel *k, const loop_node *n)
{
	struct look w = {k, n, n->unroll > 1 ? n->unroll : 1, 0, false, false, false};
	int64_t len;

	if (!is_plain(k, n) || n->unroll < 2 || (n->unroll & (n->unroll - 1)) != 0)
		return false;
	look_at(&w);
	return !w.index && !w.data && !w.jumps && w.bytes > 0 &&
	       n->unroll <= elements_of(&w) &&
	       pieces_begin_at(k, n, n->unroll, &len);
}

static void widen(loop_kernel *k, loop_node *n)
{
	struct look w = {k, n, 0, 0, false, false, false};
	int32_t first;
	int64_t len = 0, by;
	decide_kind why = DECIDE_WIDE_TAKEN;

	for (int32_t i = 0; i < n->n_child; i++)
		widen(k, n->child[i]);
	if (!is_plain(k, n) || n->n_child == 0)
		return;
	first = n->child[0]->eqn;
	look_at(&w);
	by = elements_of(&w);
	w.by = by;
	if (by > 1 && !w.jumps)
		look_at(&w);
	if (w.index)
		why = DECIDE_WIDE_INDEX;
	else if (w.data)
		why = DECIDE_WIDE_DATA;
	else if (w.jumps || by < 2 || !pieces_begin_at(k, n, by, &len))
		why = DECIDE_WIDE_APART;
	else if (len < by * n->lanes)
		why = DECIDE_WIDE_SHORT;
	loop_decide(k, why, n->var, first,
		why == DECIDE_WIDE_SHORT ? len : by,
		why == DECIDE_WIDE_SHORT ? by * n->lanes : w.bytes);
	if (why != DECIDE_WIDE_TAKEN)
		return;
	n->unroll = (int32_t)by;
	n->wide = true;
}

void loop_widen_accesses(loop_kernel *k)
{
	loop_link(k);
	for (int32_t p = 0; p < k->n_phases && k->machine->wide_bytes > 0; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			widen(k, k->phase[p].root[i]);
}
