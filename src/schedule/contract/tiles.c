/*
 * tiles.c: chooses the products whose sums of neighbours are added up in tile
 * registers of the machine.
 *
 * Consumes a product of narrow factors (dot.c), whose copy of columns has the groups
 * that these registers take; a row of the other factor has its terms side by side,
 * too. An instruction takes 16 groups of 16 rows and 16 columns, so a tile of 32 rows
 * by two vectors has four of them for two registers of each factor. Few rows, and
 * short sums, take longer so than with vectors.
 */
#include "schedule/contract/contract.h"

/* Groups of a sum, and how often its tile is begun: in each round of the other sums. */
static int64_t begins_of(const contract *c, const contract_product *p)
{
	int64_t n = 1;

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((p->sums & BIT(v)) != 0 && v != p->s &&
			!mul_ok(n, contract_extent(c, v), &n))
			return INT32_MAX;
	return n;
}

static bool takes(tn_dtype t)
{
	return t == TN_BF16 || dtype_size(t) == 1;
}

void contract_choose_tiles(const contract *c, contract_product *p)
{
	loop_kernel *k = c->k;
	const machine *m = k->machine;
	int64_t rows = contract_extent(c, p->i), some, begins;
	double groups, by_vectors, by_tiles;

	p->tiled = false;
	if (m->tiles.rows == 0 || p->dot == 0)
		return;
	contract_use_tiles(p, false);
	if (!takes(p->x->dtype) || !takes(p->y->dtype)) {
		loop_decide(k, DECIDE_TILES_DTYPE, p->eqn, -1, 0, 0);
		return;
	}
	some = contract_dot_rows(c, p);
	some = rows < some ? rows : some;
	groups = (double)contract_ceil(contract_extent(c, p->s), p->dot);
	begins = begins_of(c, p);
	/* in equal tiles of all rows */
	by_vectors = machine_dot_cycles(m, (double)some, p->vectors,
			     groups * (double)begins) *
		     (double)rows / (double)some;
	some = rows < 2 * m->tiles.rows ? rows : 2 * m->tiles.rows;
	by_tiles = machine_tile_cycles(m, (double)some, p->vectors, groups) *
		   (double)begins * (double)rows / (double)some;
	if (by_tiles >= by_vectors) {
		loop_decide(k, DECIDE_TILES_CYCLES, p->eqn, -1, (int64_t)by_tiles,
			(int64_t)by_vectors);
		return;
	}
	contract_use_tiles(p, true);
	loop_decide(k, DECIDE_TILES_TAKEN, p->eqn, -1, 2 * m->tiles.rows,
		p->dot * m->tiles.rows);
}
