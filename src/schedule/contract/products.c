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

/* Does a tile keep its sums in registers of warps, below n? */
static bool holds_sums(const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (holds_sums(n->child[i]))
			return true;
	return n->kind == LOOP_TILE && n->held > 0;
}

/* Do blocks of warps run all phases in which they would? */
static bool are_dealt(const loop_kernel *k)
{
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			if (holds_sums(k->phase[p].root[i]) && k->phase[p].warps < 2)
				return false;
	return true;
}

/* The seconds of the kernel with all loops joined, or only the last two; *warps: those
 * that compute tiles, in the phase with fewest. */
static double seconds_with(loop_kernel *k, bool all, double *warps)
{
	ir_trial trial = ir_trial_begin(k->s, k->a);
	contract c = {.k = loop_trial(k), .cut_sum = -1, .number = -1};
	double s = INFINITY;
	bool tiled = false;
	loop_estimate e;

	*warps = INFINITY;

	if (!make_tiles(&c, all)) { /* pieces of a sum may be tiles */
		loop_vectorise(c.k);
		loop_parallel(c.k);
	}
	for (int32_t p = 0; p < c.k->n_phases; p++)
		tiled |= c.k->phase[p].tiles;
	if (tiled && k->machine->block.warps > 1)
		loop_hold_sums(c.k);
	if (tiled) {
		loop_locate(c.k);
		loop_deal_to_warps(c.k);
		loop_estimate_of(c.k, &e);
		if (are_dealt(c.k))
			s = loop_estimate_seconds(&e, 0);
	}
	for (int32_t p = 0; p < c.k->n_phases && tiled; p++)
		if (c.k->phase[p].tiles && e.phase[p].chunks < *warps)
			*warps = e.phase[p].chunks;
	ir_trial_end(k->s, &trial);
	return s;
}

static bool is_all_better(loop_kernel *k)
{
	int32_t v = contract_joins_more(k);
	double all, two, warps;

	if (v < 0)
		return false;
	all = seconds_with(k, true, &warps);
	two = seconds_with(k, false, &warps);
	if (all < INFINITY && all >= two)
		loop_decide(k, DECIDE_JOIN_COST, v, -1,
			(int64_t)((all - two) * 1e9), 0);
	return all < two;
}

/* The first product of the kernel; -1: none. */
static int32_t first_product(loop_kernel *k)
{
	for (int32_t i = 0; i < k->n_eqns; i++)
		if (contract_is_product(k, &k->eqn[i]))
			return i;
	return -1;
}

/* Where several products might be computed row by row, each warp having some: is that
 * impossible? */
static void choose_rows(loop_kernel *k, bool all)
{
	int32_t n = 0;
	double unused;

	for (int32_t i = 0; i < k->n_eqns; i++)
		n += contract_is_product(k, &k->eqn[i]);
	if (k->machine->block.warps > 1 && n > 1)
		k->no_rows = seconds_with(k, all, &unused) == INFINITY;
}

/*
 * Where a product has so few tiles that warps of the machine would be idle: halves the
 * tiles, and cuts the sum, as long as that is estimated to save time.
 */
static void choose_halves(loop_kernel *k, bool all)
{
	const machine *m = k->machine;
	int32_t of = first_product(k), best = 0;
	double warps, before, least, s, unused;

	if (m->block.warps == 1 || of < 0)
		return;
	before = least = seconds_with(k, all, &warps);
	if (warps >= m->threads)
		return;
	for (int32_t n = 1; n <= m->block.halvings; n++) {
		k->halved = n;
		s = seconds_with(k, all, &unused);
		if (s * m->fusion.least_gain < least) {
			least = s;
			best = n;
		}
	}
	k->halved = best;
	if (best > 0)
		loop_decide(k, DECIDE_HALVE_TAKEN, of, -1, best,
			(int64_t)((before - least) * 1e9));
	else
		loop_decide(k, DECIDE_HALVE_COST, of, -1, (int64_t)warps, m->threads);
	k->cuts = true;
	k->cuts = seconds_with(k, all, &unused) * m->fusion.least_gain < least;
}

bool loop_contract(loop_kernel *k)
{
	contract c = {.k = k, .cut_sum = -1, .number = -1};
	bool tiled, all;

	for (int32_t i = 0; i < k->n_eqns; i++)
		if (k->eqn[i].push) {
			contract_decline(k, DECIDE_TILE_SCATTER, i, 0, 0);
			return false;
		}
	contract_split(k);
	c.slid = 1 + contract_slide(k);
	all = c.slid == 0 && is_all_better(k);
	choose_rows(k, all);
	choose_halves(k, all);
	tiled = make_tiles(&c, all);
	for (int32_t p = 0; tiled && p < k->n_phases; p++)
		loop_decide(k, k->phase[p].n_chunks > 1 ? DECIDE_CHUNKS_TAKEN
							: DECIDE_CHUNKS_BLOCKS,
			p, -1, k->phase[p].n_chunks, 0);
	return tiled;
}
