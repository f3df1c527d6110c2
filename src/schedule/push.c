/*
 * push.c: schedules a scatter that is alone in its kernel. Initialisation and
 * updates become phases, so that both run on all threads: elements can be
 * initialised in any order, and updates with different values of a parallel
 * variable change different elements.
 *
 *   for n { init o } for j { for k { acc o } }   ->   phase 0, phase 1
 */
#include "schedule/local.h"

void loop_push_phases(loop_kernel *k)
{
	loop_phase all = k->phase[0];
	int32_t i;

	if (k->n_eqns != 1 || !k->eqn[0].push || all.n_roots != 2)
		return;
	for (i = 0; i < k->eqn[0].e->n_out; i++) {
		int32_t t = k->eqn[0].e->out[i];

		if (loop_param(k, t) < 0 ||
			k->s->tensor.at[t].dtype != k->eqn[0].acc[i])
			return;
	}
	for (i = 0; i < 2; i++)
		k->phase[i] = (loop_phase){.n_roots = 1, .root = all.root + i, .n_chunks = 1};
	k->n_phases = 2;
}
