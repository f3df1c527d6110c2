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

static bool is_free(const loop_node *n)
{
	return n->kind == LOOP_FOR && n->lanes <= 1 && n->unroll <= 1 && !n->parallel &&
	       !n->backward && n->n_clip == 0 && n->n_needs == 0;
}

/* The loop over rows of such a product, around that over columns alone; or NULL. */
static loop_node *rows_around(loop_kernel *k, loop_node *n)
{
	contract c = {.k = k, .cut_sum = -1, .number = -1};
	contract_product p = {.eqn = -1};
	const loop_node *leaf = n;

	while (loop_is_loop(leaf))
		leaf = leaf->child[0];
	p.eqn = leaf->eqn;
	if (!is_free(n) || n->n_child != 1 || !is_free(n->child[0]) ||
		!contract_is_product(k, &k->eqn[p.eqn]))
		return NULL;
	c.chain = k->eqn[p.eqn].left;
	c.block = arena_array(k->a, int64_t, k->n_vars + 1);
	for (int32_t v = 0; v < k->n_vars; v++)
		c.block[v] = (c.chain & BIT(v)) != 0 ? k->var[v].extent : 0;
	(void)contract_classify(&c, &p);
	return p.along && n->var == p.i && n->child[0]->var == p.j ? n : NULL;
}

void contract_put_rows_inside(loop_kernel *k)
{
	const loop_phase *ph = &k->phase[k->n_phases - 1];

	if (k->machine->block.warps > 1)
		return;
	for (int32_t i = 0; i < ph->n_roots; i++) {
		loop_node *n = rows_around(k, ph->root[i]);
		int32_t rows;

		if (n == NULL || !loop_parallel_below(k, n, n->var) ||
			!loop_parallel_below(k, n->child[0], n->child[0]->var))
			continue;
		rows = n->var;
		n->var = n->child[0]->var;
		n->child[0]->var = rows;
	}
}
