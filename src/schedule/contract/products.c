/*
 * products.c: schedules a kernel as products, if it contains some: splits loops
 * and joins axes where that makes more of them, cuts long sums, and then makes
 * tiles of the last phase.
 */
#include "schedule/contract/contract.h"

bool loop_contract(loop_kernel *k)
{
	contract c = {.k = k, .cut_sum = -1, .number = -1};
	bool tiled;

	for (int32_t i = 0; i < k->n_eqns; i++)
		if (k->eqn[i].push) {
			contract_decline(k, DECIDE_TILE_SCATTER, i, 0, 0);
			return false;
		}
	contract_split(k);
	c.slid = 1 + contract_slide(k);
	if (c.slid == 0) {
		contract_join(k);
		contract_join_sums(k);
		contract_cut(k);
	}
	c.phase = k->n_phases - 1;
	tiled = contract_phase(&c);
	for (int32_t p = 0; tiled && p < k->n_phases; p++)
		loop_decide(k, k->phase[p].n_chunks > 1 ? DECIDE_CHUNKS_TAKEN
							: DECIDE_CHUNKS_BLOCKS,
			p, -1, k->phase[p].n_chunks, 0);
	return tiled;
}
