/*
 * why.c: gives the reason for each sum of products that is not tiled.
 *
 * Consumes a kernel for which tiles were tried; records a decision for each sum
 * of products without a tile. Most reasons are recorded where a product is
 * declined (contract.c, nest.c); this file has those of the whole kernel, and
 * of sums that were never considered.
 */
#include "schedule/contract/contract.h"

static const expr *bare(const expr *e)
{
	for (;;)
		if (e->kind == EX_CAST)
			e = e->arg[0];
		else if (e->kind == EX_SELECT && e->arg[2]->kind == EX_CONST)
			e = e->arg[1];
		else
			return e;
}

bool contract_is_sum(const loop_kernel *k, const loop_eqn *e)
{
	const expr *b;

	(void)k;
	if (e->e->n_out != 1 || e->e->monoid != IR_SUM || e->reduced == 0 ||
		e->stage || e->part)
		return false;
	b = bare(e->body[0]);
	return b->kind == EX_CALL &&
	       strcmp(ir_scalar_at(b->fn)->name, "mul") == 0;
}

void contract_decline(loop_kernel *k, decide_kind why, int32_t with, int64_t a,
	int64_t b)
{
	for (int32_t i = 0; i < k->n_eqns; i++)
		if (contract_is_sum(k, &k->eqn[i]) &&
			loop_decided(k, DECIDE_PASS_TILE, i) == NULL)
			loop_decide(k, why, i, with, a, b);
}

/*
 * The reason for a sum that contract_is_product refuses, or that no search
 * reached.
 */
static decide_kind why_none(loop_kernel *k, const loop_eqn *e)
{
	contract_terms t;

	if (e->scan_var >= 0)
		return DECIDE_TILE_SCAN;
	if (e->push)
		return DECIDE_TILE_SCATTER;
	if (e->tail)
		return DECIDE_TILE_TAIL;
	if (!contract_factors(k, e, &t))
		return t.why == DECIDE_N_KINDS ? DECIDE_TILE_DTYPE : t.why;
	return contract_is_product(k, e) ? DECIDE_TILE_AROUND
					 : DECIDE_TILE_DTYPE;
}

void contract_decline_rest(loop_kernel *k)
{
	for (int32_t i = 0; i < k->n_eqns; i++)
		if (contract_is_sum(k, &k->eqn[i]) &&
			loop_decided(k, DECIDE_PASS_TILE, i) == NULL)
			loop_decide(k, why_none(k, &k->eqn[i]), i, i, 0,
				CONTRACT_FACTORS);
}
