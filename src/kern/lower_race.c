/*
 * lower_race.c: which elements another chunk may write while this one reads them.
 *
 *   chunk 0: a[0 .. 7] = ..; b = a[0] + a[2] + .. + a[6]
 *   a[0 .. 7] may be loaded as a vector, a[7 .. 14] may not: chunk 1 writes it
 */
#include "kern/lower.h"

bool lw_may_race(const lowering *lw, int32_t tensor, const ix_form *but)
{
	const loop_kernel *k = lw->k;

	for (int32_t i = 0; i < k->n_eqns; i++)
		for (int32_t c = 0; lw->here[i] && c < k->eqn[i].e->n_out; c++) {
			int32_t b = k->buf_of[i][c], t = k->eqn[i].e->out[c];

			if (k->eqn[i].at != but &&
				(b < 0 || k->buf[b].where == LOOP_SCRATCH) &&
				(t == tensor ||
					ir_same_memory(lw->s, t, tensor)))
				return true;
		}
	return false;
}
