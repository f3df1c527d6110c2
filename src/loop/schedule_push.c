/*
 * schedule_push.c: scatter. Elements are reached in no order, so the whole
 * tensor is initialised in a phase before, and converted in a phase behind if
 * its accumulators have another dtype.
 *
 *   o[n] = x[n]; o[ids[j]] += u[j]   ->   phase 0: init o    phase 1: acc o
 */
#include "loop/local.h"

static bool drop_init(loop_kernel *k, loop_node *n)
{
	int32_t i, m = 0;

	if (n->kind == LOOP_INIT)
		return k->eqn[n->eqn].push;
	if (!loop_is_loop(n))
		return false;
	for (i = 0; i < n->n_child; i++)
		if (!drop_init(k, n->child[i]))
			n->child[m++] = n->child[i];
	n->n_child = m;
	return m == 0;
}

/* A phase that stores what was accumulated in another dtype. */
static void ends(loop_kernel *k)
{
	loop_phase *ph = &k->phase[2];
	int32_t i, j;

	*ph = (loop_phase){0, arena_array(k->a, loop_node *, k->n_eqns + 1), 1};
	for (i = 0; i < k->n_eqns; i++) {
		const loop_eqn *e = &k->eqn[i];
		bool other = false;

		for (j = 0; j < e->e->n_out; j++)
			other |= loop_param(k, e->e->out[j]) >= 0 &&
				 e->acc[j] !=
					 k->s->tensor.at[e->e->out[j]].dtype;
		if (!e->push || !other)
			continue;
		ph->root[ph->n_roots] = loop_node_new(k->a, LOOP_DONE);
		ph->root[ph->n_roots++]->eqn = i;
	}
	if (ph->n_roots > 0)
		k->n_phases = 3;
}

void loop_push_phases(loop_kernel *k)
{
	loop_phase *main = &k->phase[0], *init;
	int32_t i, n = 0;

	for (i = 0; i < k->n_eqns; i++)
		n += k->eqn[i].push;
	if (n == 0)
		return;
	for (i = n = 0; i < main->n_roots; i++)
		if (!drop_init(k, main->root[i]))
			main->root[n++] = main->root[i];
	main->n_roots = n;
	k->phase[1] = k->phase[0];
	init = &k->phase[0];
	*init = (loop_phase){0, arena_array(k->a, loop_node *, k->n_eqns), 1};
	for (i = 0; i < k->n_eqns; i++)
		if (k->eqn[i].push) {
			init->root[init->n_roots] = loop_node_new(
				k->a, LOOP_INIT);
			init->root[init->n_roots++]->eqn = i;
		}
	k->n_phases = 2;
	ends(k);
}
