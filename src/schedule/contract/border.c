/*
 * border.c: terms of a tile that are outside of an image are left out.
 *
 * A sliding window reaches beyond the border of its image, where elements are 0. If
 * the first factor is such an image and its pixels are rows of tiles (slide.c), a
 * clip leaves out the terms outside of one interval: the loop over rows of the window
 * walks those inside, and, where a tile has a whole row of pixels, the loop over the
 * window's columns is written out, each without the pixels that are outside there.
 *
 *   tile rows x by 7, sums c, h, w  clip(y + h - 1, 0, 7) clip(x + w - 1, 0, 7)
 *     ->
 *   for c { for 1 - y <= h < 8 - y { w = 0: rows 1 to 6; w = 1: all; w = 2: 0 to 5 } }
 *
 * With all of its borders clipped, an image is read where it lies, without a copy.
 */
#include "schedule/contract/contract.h"

static void take_borders(contract_image *m, const expr *c)
{
	if (c->kind == EX_CALL && strcmp(ir_scalar_at(c->fn)->name, "and") == 0) {
		take_borders(m, c->arg[0]);
		take_borders(m, c->arg[1]);
	} else if (c->kind == EX_INSIDE && m->n < CONTRACT_BORDERS &&
		   !ix_has_fun(c->form)) {
		m->border[m->n++] = c;
	} else {
		m->other = true;
	}
}

bool contract_find_image(const expr *x, contract_image *m)
{
	*m = (contract_image){0};
	if (x->kind == EX_SELECT && x->arg[2]->kind == EX_CONST &&
		dtype_is_float(x->dtype) && x->arg[2]->c.f == 0) {
		take_borders(m, x->arg[0]);
		x = x->arg[1];
	}
	m->read = x;
	return !m->other && x->kind == EX_READ && !ix_has_fun(x->form);
}

/* What a tile has. */
struct shape {
	loop_set sums, cut, open; /* cut: in blocks; open: walked around the tile */
	int32_t row, column;
	bool whole; /* a tile has all rows */
};

/* The sum that f walks step by step, if it is the only one; -1: there is none. */
static int32_t sum_of(const loop_kernel *k, const ix_form *f, loop_set sums)
{
	loop_set vars = loop_form_vars(f);
	int32_t found = -1;
	int64_t s;

	for (int32_t v = 0; v < k->n_vars; v++) {
		if ((vars & BIT(v)) == 0)
			continue;
		if (!ix_stride(f, v, k->var[v].extent, &s))
			return -1;
		if ((sums & BIT(v)) == 0)
			continue;
		if (found >= 0 || (s != 1 && s != -1))
			return -1;
		found = v;
	}
	return found;
}

static bool fits(const loop_kernel *k, const struct shape *t, const ix_form *f)
{
	int32_t v = sum_of(k, f, t->sums);
	loop_set others = loop_form_vars(f) & ~(v < 0 ? 0 : BIT(v));

	if (v < 0 || ix_has_fun(f) || (others & BIT(t->column)) != 0)
		return false;
	if (t->row < 0 || (others & BIT(t->row)) == 0)
		return (others & ~t->open) == 0;
	return others == BIT(t->row) && t->whole && (t->cut & BIT(v)) == 0 &&
	       k->var[v].extent <= k->machine->product.slide_columns;
}

/* Of how many terms, for some rows, is f outside? */
static int64_t n_outside(loop_kernel *k, const ix_form *f, int64_t lo, int64_t hi)
{
	int64_t min, max, n = 0;

	ix_range(&k->dom, f, &min, &max);
	n += min < lo ? lo - min : 0;
	n += max >= hi ? max - hi + 1 : 0;
	return n;
}

/* What the tiles of p will have. */
static struct shape shape_to_be(const loop_kernel *k, const contract_product *p)
{
	return (struct shape){.sums = p->sums, .cut = BIT(p->s), .row = p->i, .column = p->j,
		.open = k->eqn[p->eqn].left & ~BIT(p->i),
		.whole = k->var[p->i].extent <= contract_most_rows(k)};
}

bool contract_clips_all(
	const loop_kernel *k, const contract_product *p, const contract_image *m)
{
	struct shape t = shape_to_be(k, p);
	bool all = true;

	for (int32_t i = 0; i < m->n; i++)
		all &= fits(k, &t, m->border[i]->form);
	return all;
}

void contract_clip_image(
	loop_kernel *k, contract_product *p, const contract_image *m)
{
	struct shape t = shape_to_be(k, p);

	for (int32_t i = 0; i < m->n; i++) {
		const expr *b = m->border[i];
		int32_t v = sum_of(k, b->form, p->sums);

		if (!fits(k, &t, b->form))
			continue;
		p->clip[p->n_clip++] = (loop_clip){b->form, b->lo, b->hi, NULL, 0};
		loop_decide(k, DECIDE_CLIPS_TAKEN, v, p->eqn,
			n_outside(k, b->form, b->lo, b->hi), k->var[v].extent);
	}
}

/* What the tile has, in the tree. */
static struct shape shape_of(const loop_kernel *k, const loop_node *n)
{
	struct shape t = {.row = n->row_var, .column = n->var,
		.open = loop_node_open(n->up), .whole = true};

	for (int32_t i = 0; i < n->n_sums; i++)
		t.sums |= BIT(n->sum[i]);
	for (const loop_node *u = n->up; u != NULL; u = u->up) {
		if (u->kind == LOOP_FOR)
			continue;
		t.cut |= BIT(u->var);
		if (u->var == n->row_var)
			t.whole &= u->kind == LOOP_BLOCK &&
				   u->size >= k->var[u->var].extent;
	}
	return t;
}

bool contract_may_clip(const loop_kernel *k, const loop_node *n,
	const contract_image *m, const loop_clip *clip)
{
	struct shape t = shape_of(k, n);

	if (n->dot > 0 || n->matrix || n->held > 0 || !fits(k, &t, clip->f))
		return false;
	for (int32_t i = 0; i < m->n; i++)
		if (m->border[i]->form == clip->f && m->border[i]->lo == clip->lo &&
			m->border[i]->hi == clip->hi)
			return true;
	return false;
}

bool contract_all_clipped(const loop_node *n, const contract_image *m)
{
	int32_t left = m->n;

	for (int32_t i = 0; i < m->n; i++)
		for (int32_t j = 0; j < n->n_clip; j++)
			if (m->border[i]->form == n->clip[j].f &&
				m->border[i]->lo == n->clip[j].lo &&
				m->border[i]->hi == n->clip[j].hi) {
				left--;
				break;
			}
	return left == 0;
}
