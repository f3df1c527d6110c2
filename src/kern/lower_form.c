/*
 * lower_form.c: converts index forms to forms of kern, over the current values
 * of loop variables.
 *
 *   4*i + (j div 2) mod 3 + 1   ->   4*%i0 + %7 + 1, %7 = mod of div of %i1
 *
 * A variable of an unrolled loop is a value plus a constant, or a constant. In
 * a vector loop a form may be evaluated at a lane: the variable of the lanes is
 * then %i1 + %l. Indices from data are loaded, checked and clamped before:
 * lower_index.c.
 */
#include "kern/lower.h"

bool lw_is_per_lane(const lowering *lw, int32_t tensor)
{
	int32_t e, c;

	return lw->lanes > 1 && loop_maker(lw->k, tensor, &e, &c) && lw->k->buf_of[e][c] >= 0 &&
	       lw->k->buf[lw->k->buf_of[e][c]].lanes;
}

bool lw_data_varies(const lowering *lw, const ix_form *f)
{
	bool varies = false;

	for (int32_t i = 0; lw->lanes > 1 && i < f->n && !varies; i++) {
		const ix_atom *t = f->t[i].atom;

		varies = t->kind != IX_DIGIT &&
			 ((t->kind == IX_FUN && lw_is_per_lane(lw, (int32_t)t->fun)) ||
				 lw_data_varies(lw, t->f));
	}
	return varies;
}

bool lw_form_varies(const lowering *lw, const ix_form *f)
{
	return lw->lanes > 1 && ((loop_form_vars(f) >> lw->vvar & 1) != 0 ||
					lw_data_varies(lw, f));
}

form lw_var(lowering *lw, int32_t var)
{
	return lw_addc(lw, lw->var[var], lw->plus[var]);
}

static form var_at(lowering *lw, int32_t var, kern_val lane)
{
	form f = lw_var(lw, var);

	return lane != 0 && var == lw->vvar
		       ? lw_add(lw, f, lw_scale(lw, lw_form_of(lw, lane), lw->each))
		       : f;
}

/* An index from data, as loaded: lower_index.c. */
static form index_from_data(
	lowering *lw, const ix_atom *t, kern_val lane)
{
	for (int32_t i = lw->fun.n - 1; i >= 0; i--) {
		const struct memo_fun *m = &lw->fun.at[i];

		if (m->atom != t)
			continue;
		if (m->array < 0)
			return m->at;
		return lw_form_of(lw,
			lw_load_from(lw, m->array,
				lane == 0 ? lw_num(lw, 0)
					  : lw_form_of(lw, lane),
				lw_type(lw, TN_I64, 1), 0)
				.id);
	}
	lw_bug(lw, "a data index was not loaded", "");
}

static form atom_form(lowering *lw, const ix_atom *t, kern_val lane)
{
	int64_t min, max;
	form f;

	switch (t->kind) {
	case IX_DIGIT:
		f = var_at(lw, t->axis, lane);
		if (t->lo > 1)
			f = kern_div(lw->b, f, t->lo);
		if (t->hi < lw->dom->box.extent[t->axis])
			f = kern_mod(lw->b, f, t->hi / t->lo);
		return f;
	case IX_FLOOR:
		ix_range(lw->dom, t->f, &min, &max);
		f = lw_form(lw, t->f, lane);
		return min >= 0 ? kern_div(lw->b, f, t->den)
				: kern_floor(lw->b, f, t->den);
	case IX_CLAMP:
		return kern_clamp(lw->b, lw_form(lw, t->f, lane), t->lo, t->hi);
	case IX_FUN:
		return index_from_data(lw, t, lane);
	}
	lw_bug(lw, "unknown atom", "");
}

form lw_form(lowering *lw, const ix_form *f, kern_val lane)
{
	form s = lw_num(lw, f->c0);

	for (int32_t i = 0; i < f->n; i++)
		s = lw_add(lw, s,
			lw_scale(lw, atom_form(lw, f->t[i].atom, lane),
				f->t[i].coef));
	return s;
}

int32_t lw_block_level(const loop_node *n)
{
	int32_t level = 0;

	for (const loop_node *u = n->up; u != NULL; u = u->up)
		level += u->kind == LOOP_BLOCK && u->var == n->var;
	return level;
}

bool lw_is_unrolled(const lowering *lw, const loop_node *n)
{
	return n->lanes <= 1 && !n->backward && !n->by_warp &&
	       lw->span[n->var].len == n->unroll;
}

form lw_block_at(lowering *lw, int32_t var, int32_t level)
{
	for (int32_t i = lw->block.n - 1; i >= 0; i--)
		if (lw->block.at[i].var == var &&
			lw->block.at[i].level == level)
			return lw->block.at[i].from;
	lw_bug(lw, "a block is not open", lw->k->var[var].name);
}

form lw_start_of(lowering *lw, const loop_node *n, int32_t sum)
{
	for (n = n->up; n != NULL; n = n->up)
		if (n->kind == LOOP_BLOCK && n->var == sum && n->number >= 0)
			return lw_block_at(lw, sum, 0);
	return lw_num(lw, 0);
}

/*
 * The start of the innermost block of var that contains n; NULL: var is not
 * cut.
 */
static form piece_of(lowering *lw, const loop_node *n, int32_t var)
{
	while (n != NULL && (n->kind != LOOP_BLOCK || n->var != var))
		n = n->up;
	return n == NULL ? NULL : lw_block_at(lw, var, lw_block_level(n));
}

form lw_digits(lowering *lw, const loop_buf *b, const ix_form *const *digit,
	kern_val lane)
{
	form s = lw_num(lw, 0);

	for (int32_t i = 0; i < b->n_vars; i++) {
		form from = piece_of(lw, b->scope, b->var[i]);
		form t = lw_form(lw, digit[i], lane), d = t;

		if (from != NULL)
			d = lw_sub(lw, t, from);
		s = lw_add(lw, s, lw_scale(lw, d, b->stride[i]));
		if (b->panel > 0 && i == b->n_vars - 1)
			s = lw_add(lw, s,
				lw_scale(lw, kern_div(lw->b, d, b->panel),
					b->panel_step - b->panel * b->stride[i]));
	}
	return s;
}
