/*
 * few.c: products of few rows, or of one, by a y that comes from afar.
 *
 * Memory decides, not arithmetic. y is read once, where it lies: some of its lines side by
 * side, along long blocks of columns, while a tile has the sums of all rows in registers;
 * between two blocks of terms, sums wait in the second cache. Pieces of the sum are chunks,
 * if columns alone are too few (cut.c).
 */
#include "schedule/contract/contract.h"

bool contract_in_lanes(
	const contract *c, const contract_product *p, int64_t *step)
{
	loop_kernel *k = c->k;
	int64_t s, size = (int64_t)dtype_size(k->eqn[p->eqn].acc[0]);

	*step = 0;
	if (!contract_is_bare(p->y, k->eqn[p->eqn].acc[0]) ||
		!contract_adjoins(k, p->y->form, p->j) ||
		k->var[p->j].extent % p->lanes != 0 ||
		contract_extent(c, p->j) % p->lanes != 0 ||
		loop_param(k, p->y->tensor) < 0)
		return false;
	for (int32_t v = 0; v < k->n_vars; v++) {
		if ((p->sums & BIT(v)) == 0)
			continue;
		if (!ix_stride(p->y->form, v, k->var[v].extent, &s))
			return false;
		if (s * size > *step)
			*step = s * size;
	}
	return true;
}

/* Can one row read y once, where it lies, in long lines? It comes from afar. */
static bool may_read_once(const contract *c, contract_product *p)
{
	int64_t step;

	return p->i < 0 && p->columns == BIT(p->j) && p->sums == BIT(p->s) &&
	       (p->others == 0 || (c->number >= 0 && p->others == BIT(c->number))) &&
	       contract_in_lanes(c, p, &step) && contract_is_far(c, p);
}

void contract_find_lone(contract *c, contract_product *p)
{
	loop_set left = c->k->eqn[p->eqn].left;

	p->lone = p->few = false;
	/* of blocks of warps, each warp reads columns where they lie, in one of many chunks */
	if (c->k->machine->block.warps > 1)
		return;
	p->lone = (loop_expr_vars(c->k, p->x) & left) == 0 &&
		  contract_is_kept(c->k, p->y, left);
	if (!p->lone && contract_is_long(c->k, p->y, left))
		p->lone = p->few = may_read_once(c, p);
}

void contract_size_few(contract *c, contract_product *p)
{
	int64_t most = c->k->machine->vector_registers - 4, fit;
	int64_t terms = contract_extent(c, p->s);

	/* all of them at once, if registers have their sums of a vector, or some of them */
	if (p->i >= 0 && contract_extent(c, p->i) > p->tile &&
		contract_extent(c, p->i) <= most * c->k->machine->product.few_tiles)
		p->tile = contract_equal(contract_extent(c, p->i), most);
	fit = most / p->tile;
	p->vectors = (int32_t)(fit < c->k->machine->product.few_vectors
				       ? fit
				       : c->k->machine->product.few_vectors);
	while (p->vectors > 1 && contract_extent(c, p->j) <=
					 (int64_t)(p->vectors - 1) * p->lanes)
		p->vectors--;
	p->sum_block = contract_ceil(terms, contract_ceil(terms, c->k->machine->product.few_sums));
}

/*
 * Columns of a chunk of few rows. What comes from afar is read in long lines: as long as
 * the second cache holds the sums of all rows, and pieces of the sum make enough chunks.
 */
static int64_t columns_of_few(const contract *c, const contract_product *p)
{
	const machine *m = c->k->machine;
	int64_t n = c->k->var[p->j].extent, chunks = m->product.few_chunks, pieces;
	int64_t bytes = contract_factor_bytes(c, p), terms = 1;

	for (int32_t v = 0; v < c->k->n_vars; v++) {
		if ((p->rows & BIT(v)) != 0)
			bytes *= c->k->var[v].extent;
		if ((p->sums & BIT(v)) != 0)
			terms *= c->k->var[v].extent;
	}
	if (!contract_is_far(c, p))
		return contract_ceil(n, chunks);
	pieces = contract_ceil(n * bytes, m->memory[MACHINE_L2].bytes);
	terms /= m->product.least_piece;
	if (pieces < contract_ceil(chunks, terms > 0 ? terms : 1))
		pieces = contract_ceil(chunks, terms > 0 ? terms : 1);
	return contract_ceil(n, pieces < chunks ? pieces : chunks);
}

void contract_block_few(contract *c, const contract_product *p)
{
	int64_t panel = (int64_t)p->lanes * p->vectors;

	c->block[p->j] = panel * contract_ceil(columns_of_few(c, p), panel);
}

/* ---- sums in lanes: along.c ---- */

/* Is the factor what lies in memory along the sum, perhaps widened? */
static bool lies_along(const contract *c, const contract_product *p, const expr *f)
{
	if (f->kind == EX_CAST)
		f = f->arg[0];
	return f->kind == EX_READ && !ix_has_fun(f->form) && dtype_is_float(f->dtype) &&
	       f->dtype == c->k->s->tensor.at[f->tensor].dtype &&
	       loop_param(c->k, f->tensor) >= 0 && contract_adjoins(c->k, f->form, p->s);
}

/* Would tiles add up neighbours of this dtype at once? */
static bool has_dot(const machine *m, tn_dtype t)
{
	bool has = false;

	for (size_t i = 0; i < sizeof m->dot / sizeof *m->dot; i++)
		has |= m->dot[i].terms > 0 && m->dot[i].y == t;
	return has;
}

/*
 * Is y read again in each run, from beyond the second cache, in rows so long that several
 * are as fast as one? Where tiles would multiply it as it is, and not widened, it comes from
 * further away, for each row of x.
 */
static bool is_read_again(const contract *c, const contract_product *p)
{
	const loop_kernel *k = c->k;
	const expr *y = p->y->kind == EX_CAST ? p->y->arg[0] : p->y;
	const sys_tensor *t = &k->s->tensor.at[y->tensor];
	int64_t size = (int64_t)dtype_size(y->dtype), row = k->var[p->s].extent * size;
	int64_t caches = has_dot(k->machine, y->dtype) ? 2 * k->var[p->i].extent : 2;

	return !t->steady && !k->s->in_rounds &&
	       t->numel > caches * k->machine->memory[MACHINE_L2].bytes / size &&
	       (row >= k->machine->schedule.abreast_bytes ||
		       !loop_comes_from_afar(k, y->tensor));
}

/* Is it the only product of the kernel? Others are tiles, in whose blocks it would be. */
static bool is_only_one(loop_kernel *k)
{
	int32_t n = 0;

	for (int32_t i = 0; i < k->n_eqns; i++)
		n += contract_is_product(k, &k->eqn[i]);
	return n == 1;
}

bool contract_goes_along(const contract *c, const contract_product *p)
{
	loop_kernel *k = c->k;
	const machine *m = k->machine;
	bool along = m->block.warps == 1 && p->i >= 0 && c->number < 0 && c->cut_sum < 0 &&
		   k->var[p->i].extent <= m->product.along_rows && p->rows == BIT(p->i) &&
		   p->columns == BIT(p->j) && p->sums == BIT(p->s) && p->others == 0 &&
		   !p->begun && p->finish == NULL && p->n_needs == 0 && p->counted == NULL &&
		   k->var[p->s].extent >= (int64_t)p->lanes * m->schedule.sum_vectors &&
		   k->var[p->j].extent >= m->product.along_columns * m->product.few_chunks &&
		   lies_along(c, p, p->x) && lies_along(c, p, p->y) &&
		   is_read_again(c, p) && is_only_one(k);

	k->eqn[p->eqn].few_rows = along ? p->i + 1 : 0;
	return along;
}
