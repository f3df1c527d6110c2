/*
 * lower_sums.c: the accumulators of a tile, and the loops of its sums.
 */
#include "kern/lower.h"

val lw_acc(const struct tile *t, int32_t row, int32_t vector)
{
	return t->acc[row * t->vectors + vector];
}

void lw_move_to(struct tile *t, int32_t row, int32_t vector)
{
	if (t->n->row_var >= 0)
		t->lw->plus[t->n->row_var] = row;
	t->lw->plus[t->n->var] = (int64_t)vector * t->lw->lanes;
}

void lw_each(struct tile *t, of_each *fn)
{
	for (int32_t r = 0; r < t->rows; r++)
		for (int32_t v = 0; v < t->vectors; v++) {
			lw_move_to(t, r, v);
			fn(t, r, v);
		}
	lw_move_to(t, 0, 0);
}

static struct place_of out(struct tile *t)
{
	return lw_place_tensor(t->lw, t->e->e->out[0], t->e->at, false);
}

static int32_t dead_lanes(const struct tile *t, int32_t vector)
{
	return vector == t->vectors - 1 ? t->lw->lanes - t->valid : 0;
}

void lw_declare_acc(struct tile *t, int32_t row, int32_t vector)
{
	t->acc[row * t->vectors + vector] = lw_register(t->lw,
		lw_type(t->lw, t->e->acc[0], t->lw->lanes), 0);
}

void lw_load_acc(struct tile *t, int32_t row, int32_t vector)
{
	lowering *lw = t->lw;
	struct place_of p = out(t);

	lw->dead = dead_lanes(t, vector);
	lw_set(lw, lw_acc(t, row, vector), lw_load(lw, &p, false));
	lw->dead = 0;
}

void lw_store_acc(struct tile *t, int32_t row, int32_t vector)
{
	lowering *lw = t->lw;
	struct place_of p = out(t);

	lw->dead = dead_lanes(t, vector);
	lw_store(lw, &p, lw_acc(t, row, vector));
	lw->dead = 0;
}

void lw_open_sums(struct tile *t)
{
	lowering *lw = t->lw;

	for (int32_t i = 0; i < t->n->n_sums; i++) {
		int32_t v = t->n->sum[i];

		lw->var[v] = lw_form_of(lw,
			lw_for(lw, lw->span[v].lo, lw->span[v].hi));
	}
}

void lw_close_loops(lowering *lw, int32_t n)
{
	for (; n > 0; n--)
		lw_close(lw);
}
