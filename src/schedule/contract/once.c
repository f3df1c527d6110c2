/*
 * once.c: which factors are copied once, before all chunks.
 *
 * A phase of its own copies them then; if the factor is a steady input, the copy is kept
 * from run to run. Panels of columns are read from one end to the other, while a panel
 * where the factor lies is one or two lines of each row, each in a page of its own.
 */
#include "schedule/contract/contract.h"

/* Does a guard outside which all terms are 0 depend on these loops? */
static bool has_needs_of(const contract_product *p, loop_set s)
{
	for (int32_t i = 0; i < p->n_needs; i++)
		if ((loop_form_vars(p->need[i].f) & s) != 0)
			return true;
	return false;
}

bool contract_may_be_whole(
	const contract *c, const contract_product *p, const expr *of)
{
	loop_kernel *k = c->k;
	loop_set in = loop_expr_vars(k, of);
	int64_t n = contract_factor_bytes(c, p);
	int32_t eqn, comp;

	if (!contract_is_bare(of, p->dot > 0 ? of->dtype : k->eqn[p->eqn].acc[0]) ||
		has_needs_of(p, in) || loop_maker(k, of->tensor, &eqn, &comp))
		return false;
	for (int32_t v = 0; v < k->n_vars; v++)
		if ((in & BIT(v)) != 0 && !mul_ok(n, k->var[v].extent, &n))
			return false;
	return n <= k->machine->product.max_whole;
}

bool contract_is_shared(const contract *c, const expr *of)
{
	loop_set others = c->chain & ~loop_expr_vars(c->k, of);

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((others & BIT(v)) != 0 &&
			(c->block[v] > 0 ? c->block[v] : 1) <
				c->k->var[v].extent)
			return true;
	return false;
}

/* Is memory read along what adjoins? Copies in groups turn squares. */
static bool is_read_along(const contract *c, const contract_product *p)
{
	return contract_adjoins(c->k, p->y->form, p->j) ||
	       (p->dot > 0 && contract_adjoins(c->k, p->y->form, p->s));
}

/* Can panels of columns be copied once, before all chunks? */
static bool may_copy_columns(const contract *c, const contract_product *p)
{
	return !p->turned && !p->matrix &&
	       c->k->machine->block.warps == 1 && c->number < 0 &&
	       c->k->copies != LOOP_COPIES_BLOCKS &&
	       loop_param(c->k, p->y->tensor) >= 0 &&
	       contract_may_be_whole(c, p, p->y) &&
	       is_read_along(c, p) &&
	       c->k->n_phases + c->before.n + 1 <= LOOP_MAX_PHASES;
}

/* Are rows of y longer than those of a panel, so that a panel jumps where y lies? Or
 * are its terms in another order than instructions take them? */
static bool is_wide(const contract *c, const contract_product *p)
{
	int64_t step, panel = (int64_t)p->lanes * p->vectors;

	return p->dot > 0 ||
	       !ix_stride(p->y->form, p->s, c->k->var[p->s].extent, &step) ||
	       step > panel || step < 0;
}

bool contract_keeps_columns(const contract *c, const contract_product *p)
{
	return p->i >= 0 && contract_extent(c, p->i) > 1 &&
	       contract_is_steady(c->k, p, p->y) && is_wide(c, p) &&
	       may_copy_columns(c, p);
}

bool contract_copies_columns(const contract *c, const contract_product *p)
{
	return p->pack_y && may_copy_columns(c, p) &&
	       (((p->tiled || (c->product.n <= 1 && p->dot == 0)) &&
			contract_is_shared(c, p->y)) ||
		       contract_keeps_columns(c, p));
}
