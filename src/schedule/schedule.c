/*
 * schedule.c: from the MapExpr to phases that run fast; docs/schedule.md.
 *
 * Consumes a verified MapExpr and a machine; produces the phases with their
 * trees, chunks, lanes, buffers. Every number that decides is a size or comes
 * from the machine: the number of threads never does, so results do not either.
 */
#include "schedule/local.h"

/* The scan variables run from the end where an equation says so. */
static void set_backward(loop_kernel *k, loop_node *n)
{
	int32_t i;

	for (i = 0; i < k->n_eqns && n->kind == LOOP_FOR; i++)
		if (k->eqn[i].scan_var == n->var && k->eqn[i].reversed)
			n->backward = true;
	for (i = 0; i < n->n_child; i++)
		set_backward(k, n->child[i]);
}

static bool is_tail(const loop_kernel *k, const loop_node *n)
{
	while (loop_is_loop(n))
		n = n->child[0];
	return k->eqn[n->eqn].tail;
}

/* The roots of the tail, taken from the only phase there is. */
static int32_t take_tail(loop_kernel *k, loop_node **out)
{
	loop_phase *ph = &k->phase[0];
	int32_t n = 0, m = 0;

	for (int32_t i = 0; i < ph->n_roots; i++)
		if (is_tail(k, ph->root[i]))
			out[n++] = ph->root[i];
		else
			ph->root[m++] = ph->root[i];
	ph->n_roots = m;
	return n;
}

/* Behind everything: in the phase that joins partial results, or its own. */
static void put_tail(loop_kernel *k, int32_t n, loop_node *const *root)
{
	loop_phase *ph = &k->phase[k->n_phases - 1], *own;
	loop_node **all;

	if (n == 0)
		return;
	own = k->n_phases > 1 && ph->n_chunks == 1 ? ph
						   : &k->phase[k->n_phases++];
	if (own != ph)
		*own = (loop_phase){.n_chunks = 1};
	all = arena_array(k->a, loop_node *, own->n_roots + n);
	for (int32_t i = 0; i < own->n_roots; i++)
		all[i] = own->root[i];
	for (int32_t i = 0; i < n; i++)
		all[own->n_roots++] = root[i];
	own->root = all;
}

void loop_schedule(loop_kernel *k, const machine *m)
{
	loop_phase *ph = &k->phase[0];
	loop_node **tail = arena_array(k->a, loop_node *, k->n_roots + 1);
	int32_t i, n_tail;
	bool pushed;

	k->machine = m;
	k->n_phases = 1;
	ph->n_roots = k->n_roots;
	ph->n_chunks = 1;
	ph->root = arena_array(k->a, loop_node *, k->n_roots + 1);
	for (i = 0; i < k->n_roots; i++) {
		ph->root[i] = loop_node_copy(k->a, k->root[i]);
		set_backward(k, ph->root[i]);
	}
	k->stream = arena_array(k->a, bool, k->n_params + 1);
	n_tail = take_tail(k, tail);
	loop_push_phases(k);
	pushed = k->n_phases > 1;
	if (!m->unscheduled && !pushed && n_tail == 0 && loop_contract(k)) {
		loop_place(k);
		return;
	}
	if (!m->unscheduled) {
		if (!pushed) {
			loop_columns_to_rows(k);
			loop_split_reductions(k);
		}
		loop_distribute(k);
		loop_vectorise(k);
		loop_parallel(k);
		loop_clip_windows(k);
		loop_split_guards(k);
		loop_read_ahead(k);
	}
	put_tail(k, n_tail, tail);
	loop_place(k);
	loop_choose_streams(k);
}
