/*
 * turn.c: exchanges rows and columns of products of small images.
 *
 * Consumes a product whose columns, the 7 x 7 pixels of an image, do not fill
 * their vectors, while its rows, the channels, would. Rows and columns are
 * exchanged if the channels walk a steady input, weights, which is copied once
 * for all runs so that channels are contiguous (nest.c). Tiles are summed in a
 * buffer, because channels are not contiguous in the result, and then copied to
 * the result.
 *
 *   o[c, z:49] += w[c, k] * x[k, z]:  tiles of 14 channels x 32 pixels of 64  ->
 *   t[z, c] += x[k, z] * w'[k, c]:    tiles of 13 pixels x 32 channels, o[c, z] = t
 *
 * Rows and columns are exchanged, too, for few rows by a large factor whose columns
 * are far apart, weights with their outputs first: the few rows are turned, and not
 * that factor, which each chunk reads from one end to the other.
 *
 *   o[m:8, n] += x[m, k] * w[n, k]  ->  t[n, m] += w[n, k] * x'[k, m]
 */
#include "schedule/contract/contract.h"

/* The number of elements over these variables; false: too many. */
static bool is_small(const loop_kernel *k, loop_set vars, int64_t *n)
{
	*n = 1;
	for (int32_t v = 0; v < k->n_vars; v++)
		if ((vars & BIT(v)) != 0 && !mul_ok(*n, k->var[v].extent, n))
			return false;
	return *n <= k->machine->product.turn_copy;
}

static bool decline(const contract *c, const contract_product *p,
	decide_kind why, int64_t a, int64_t b)
{
	loop_decide(c->k, why, p->eqn, -1, a, b);
	return false;
}

/* Can the factors be copied in the other order, and is it worth the copy? */
static bool may_turn(const contract *c, const contract_product *p)
{
	loop_kernel *k = c->k;
	const machine_product *m = &k->machine->product;
	int64_t elems;

	if (!is_small(k, p->sums & loop_expr_vars(k, p->x), &elems))
		return decline(c, p, DECIDE_TURN_LARGE, 0, m->turn_copy);
	if (elems < m->turn_sum)
		return decline(c, p, DECIDE_TURN_SUM, elems, m->turn_sum);
	if (!is_small(k, loop_expr_vars(k, p->x), &elems) ||
		!is_small(k, loop_expr_vars(k, p->y), &elems))
		return decline(c, p, DECIDE_TURN_LARGE, 0, m->turn_copy);
	if ((loop_expr_vars(k, p->x) & ~(p->rows | p->sums)) != 0 ||
		!contract_is_steady(k, p, p->x) || !contract_reads_memory(k, p->y) ||
		k->n_phases + 2 > LOOP_MAX_PHASES)
		return decline(c, p, DECIDE_TURN_STEADY, 0, 0);
	return true;
}

/* Has the product nothing that ties rows and columns to their order? */
static bool is_plain(const contract_product *p)
{
	return !p->begun && p->n_needs == 0 && p->others == 0 &&
	       p->finish == NULL && p->rows == BIT(p->i) &&
	       p->columns == BIT(p->j);
}

/* Are there so few rows that one panel holds them, by a large y that is read along its
 * sums, where it lies? */
static bool is_few(const contract *c, const contract_product *p, int64_t most)
{
	loop_kernel *k = c->k;
	const machine *m = k->machine;

	return m->block.warps == 1 && k->var[p->i].extent <= most &&
	       contract_is_far(c, p) && is_plain(p) &&
	       k->n_phases + 2 <= LOOP_MAX_PHASES &&
	       contract_may_be_whole(c, p, p->x) &&
	       contract_is_readable(c, p, p->y) &&
	       loop_param(k, p->x->tensor) >= 0 &&
	       loop_param(k, p->y->tensor) >= 0 &&
	       contract_adjoins(k, p->y->form, p->s) &&
	       !contract_lies_badly(k, p->y, p->j, contract_most_rows(k),
		       contract_factor_bytes(c, p)) &&
	       (loop_expr_vars(k, p->x) & ~(p->rows | p->sums)) == 0;
}

static void exchange(contract_product *p)
{
	const contract_product old = *p;

	p->x = old.y;
	p->y = old.x;
	p->i = old.j;
	p->j = old.i;
	p->rows = old.columns;
	p->columns = old.rows;
	p->turned = true;
}

bool contract_turn(const contract *c, contract_product *p)
{
	loop_kernel *k = c->k;
	int64_t lanes = machine_lanes(
		k->machine, (int32_t)dtype_size(k->eqn[p->eqn].acc[0]));
	int64_t most = lanes * k->machine->product.turn_vectors;
	int64_t m, n, rows, columns;

	if (p->dot > 0 || c->number >= 0 || p->slides || p->i < 0)
		return p->slides;
	m = k->var[p->i].extent;
	n = k->var[p->j].extent;
	rows = contract_filled(m, lanes);
	columns = contract_filled(n, lanes);
	if (rows >= k->machine->product.full_lanes && is_few(c, p, most)) {
		loop_decide(k, DECIDE_TURN_FEW, p->eqn, -1, m, most);
		p->near = true;
		exchange(p);
		return true;
	}
	if (columns >= k->machine->product.full_lanes)
		return false;
	if (k->machine->block.warps > 1)
		return decline(c, p, DECIDE_TURN_WARPS, 0, 0);
	if (m < 2 * lanes || rows < columns + k->machine->product.turn_gain)
		return decline(c, p, DECIDE_TURN_FILLED, rows, columns);
	if (!is_plain(p))
		return decline(c, p, DECIDE_TURN_SHAPE, 0, 0);
	if (!may_turn(c, p))
		return false;
	loop_decide(k, DECIDE_TURN_TAKEN, p->eqn, -1, rows, columns);
	exchange(p);
	return true;
}
