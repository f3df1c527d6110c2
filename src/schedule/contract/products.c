/*
 * products.c: schedules a kernel as products, if it contains some: splits loops
 * and joins axes where that makes more of them, cuts long sums, and then makes
 * tiles of the last phase.
 */
#include "schedule/contract/contract.h"
#include "schedule/estimate.h"

#include <math.h>

static bool make_tiles(contract *c, bool all)
{
	loop_kernel *k = c->k;

	if (c->slid == 0) {
		contract_join(k, all);
		contract_join_sums(k);
		contract_cut(k);
	}
	c->phase = k->n_phases - 1;
	return contract_phase(c);
}

/* The seconds of the kernel with all loops joined, or only the last two. */
static double seconds_with(loop_kernel *k, bool all)
{
	ir_trial trial = ir_trial_begin(k->s, k->a);
	contract c = {.k = loop_trial(k), .cut_sum = -1, .number = -1};
	double s = INFINITY;
	bool tiled = false;
	loop_estimate e;

	if (!make_tiles(&c, all)) { /* pieces of a sum may be tiles */
		loop_vectorise(c.k);
		loop_parallel(c.k);
	}
	for (int32_t p = 0; p < c.k->n_phases; p++)
		tiled |= c.k->phase[p].tiles;
	if (tiled) {
		loop_locate(c.k);
		loop_estimate_of(c.k, &e);
		s = loop_estimate_seconds(&e, 0);
	}
	ir_trial_end(k->s, &trial);
	return s;
}

static bool is_all_better(loop_kernel *k)
{
	int32_t v = contract_joins_more(k);
	double all, two;

	if (v < 0)
		return false;
	all = seconds_with(k, true);
	two = seconds_with(k, false);
	if (all < INFINITY && all >= two)
		loop_decide(k, DECIDE_JOIN_COST, v, -1,
			(int64_t)((all - two) * 1e9), 0);
	return all < two;
}

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
	tiled = make_tiles(&c, c.slid == 0 && is_all_better(k));
	for (int32_t p = 0; tiled && p < k->n_phases; p++)
		loop_decide(k, k->phase[p].n_chunks > 1 ? DECIDE_CHUNKS_TAKEN
							: DECIDE_CHUNKS_BLOCKS,
			p, -1, k->phase[p].n_chunks, 0);
	return tiled;
}
