/*
 * along.c: few rows by a large matrix whose outputs come first, y[j, k]: both factors lie
 * along the sum.
 *
 * Tiles have columns in their lanes, so they would copy all of y, turned. Sums in lanes
 * read it once, where it lies, as those of one row do: the loop over the rows goes into that
 * over the columns, of which some are abreast (abreast.c), so that each vector of y
 * meets all rows.
 *
 *   for i { for j { init; for k { do }; done } }   ->
 *   for j { for i { init; for k { do }; done } }
 */
#include "schedule/contract/contract.h"

/* The few rows of the product below n, if its sums have lanes; else 0. */
static int32_t few_rows(const loop_kernel *k, const loop_node *n)
{
	while (loop_is_loop(n))
		n = n->child[0];
	return k->eqn[n->eqn].few_rows;
}

void contract_put_rows_inside(loop_kernel *k)
{
	const loop_phase *ph = &k->phase[k->n_phases - 1];

	for (int32_t i = 0; i < ph->n_roots; i++) {
		loop_node *n = ph->root[i];

		if (loop_is_loop(n) && n->var == few_rows(k, n) - 1 && loop_may_swap(k, n))
			loop_swap(n);
	}
}
