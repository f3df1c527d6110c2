/*
 * lower_tile.c: lowers a tile of a sum of products, accumulated in registers.
 *
 * Consumes a TILE node inside blocks of its variables; produces code that
 * clears or loads the accumulators, walks the block of the sum once, and stores
 * the tile. The body is unrolled over rows and vectors; shared operands are
 * loaded once.
 *
 *   var %a0: f32x16 = load o; ..
 *   for %k { set %a0 = mad %x, %y, %a0; .. }
 *   store o = %a0; ..
 *
 * Blocks begin at whole tiles, so there are few heights and widths, all known
 * (lower_sums.c): tiles at edges have their own code and are as fast. Only the
 * existing columns of the last vector are loaded and stored.
 */
#include "kern/lower.h"

/*
 * Adds the products. Each vector of y and each element of x is loaded only
 * once, which keeps C compilers fast.
 */
static void products(struct tile *t)
{
	lowering *lw = t->lw;
	struct marks m = lw_mark(lw);
	val *y = arena_array(lw->a, val, t->vectors);

	for (int32_t v = 0; v < t->vectors; v++) {
		lw_move_to(t, 0, v);
		y[v] = lw_to_lanes(lw, lw_ex(lw, t->n->factor[1]));
		lw_release(lw, m);
	}
	for (int32_t r = 0; r < t->rows; r++) {
		val x;

		lw_move_to(t, r, 0);
		x = lw_to_lanes(lw, lw_ex(lw, t->n->factor[0]));
		for (int32_t v = 0; v < t->vectors; v++)
			lw_set(lw, lw_acc(t, r, v),
				lw_mad(lw, x, y[v], lw_acc(t, r, v)));
		lw_release(lw, m);
	}
	lw_move_to(t, 0, 0);
}

/* Prefetches lines of the other factor that the next block of the sum reads. */
static void ahead(struct tile *t, int32_t row, int32_t vector)
{
	lowering *lw = t->lw;
	const expr *y = t->n->factor[1];
	struct place_of p;

	(void)vector;
	if (row > 0)
		return;
	lw->plus[t->n->sum[0]] = t->n->n_ahead;
	p = lw_place_tensor(lw, y->tensor, y->form, false);
	kern_prefetch(lw->b, p.array, lw_element(lw, &p, 0), false);
	lw->plus[t->n->sum[0]] = 0;
}

/* The first index of a sum, or of the current piece of a cut sum. */
static form start_of(lowering *lw, const loop_node *n, int32_t sum)
{
	for (n = n->up; n != NULL; n = n->up)
		if (n->kind == LOOP_BLOCK && n->var == sum && n->number >= 0)
			return lw_block_at(lw, sum, 0);
	return lw_num(lw, 0);
}

/*
 * Computes the condition that the current blocks are the first ones of all
 * sums.
 */
static void find_first(struct tile *t)
{
	lowering *lw = t->lw;

	t->all_first = true;
	for (int32_t i = 0; i < t->n->n_sums; i++) {
		form lo = lw->span[t->n->sum[i]].lo;
		form from = start_of(lw, t->n, t->n->sum[i]);
		val c;

		if (lw->span[t->n->sum[i]].clo == 0 || lo == from)
			continue;
		c = lw_equal(lw, lo, from);
		t->first = t->all_first ? c : lw_and(lw, t->first, c);
		t->all_first = false;
	}
}

/* Loads the accumulators, unless this is the first block of the sums. */
static void load_all(struct tile *t)
{
	lowering *lw = t->lw;

	if (t->n->start && t->all_first)
		return;
	if (t->n->start)
		lw_if(lw, lw_not(lw, t->first));
	lw_each(t, lw_load_acc);
	if (t->n->start)
		lw_close(lw);
}

/* Lowers the sums of a tile, and its stores or epilogue. */
static void sums(struct tile *t, int64_t columns)
{
	lowering *lw = t->lw;
	const loop_node *n = t->n;

	if (n->held > 0)
		lw_take_held(t);
	else
		lw_each(t, lw_declare_acc);
	if (n->finish == NULL && n->held == 0)
		load_all(t);
	if (n->dot > 0) {
		lw_dots(t);
	} else {
		lw_open_sums(t);
		if (n->n_ahead > 0)
			lw_each(t, ahead);
		products(t);
		lw_close_loops(lw, n->n_sums);
	}
	if (n->held > 0)
		return;
	if (n->finish != NULL)
		lw_finish(t, columns);
	else if (n->checked)
		lw_store_checked(t, columns);
	else
		lw_each(t, lw_store_acc);
}

/* Lowers a tile with the given numbers of rows and columns. */
static void variant(lowering *lw, const loop_node *n, int64_t rows,
	int64_t columns)
{
	struct tile t = {.lw = lw,
		.n = n,
		.e = &lw->k->eqn[n->eqn],
		.rows = (int32_t)rows,
		.vectors = (int32_t)((columns + n->lanes - 1) / n->lanes),
		.valid = (int32_t)((columns - 1) % n->lanes) + 1};
	struct marks m = lw_mark(lw);
	size_t n_vars = (size_t)lw->k->n_vars;
	struct span *old = arena_copy(lw->a, lw->span, n_vars * sizeof *old);
	form *var = arena_copy(lw->a, lw->var, n_vars * sizeof *var);
	bool skips;

	kern_scope(lw->b);
	t.acc = arena_array(lw->a, val, t.rows * t.vectors);
	find_first(&t);
	lw->var[n->var] = lw->span[n->var].lo;
	if (n->row_var >= 0)
		lw->var[n->row_var] = lw->span[n->row_var].lo;
	lw->vvar = n->var;
	lw->lanes = n->lanes;
	if (!n->matrix)
		lw_narrow_to_need(lw, n);
	skips = n->n_needs > 0 && !t.all_first && !n->matrix;
	if (skips) { /* there are no terms */
		const struct span *s = &lw->span[n->sum[0]];

		lw_if(lw, lw_call2(lw, lw->fn.or, lw_bool(lw, false),
				  lw_less(lw, s->lo, s->hi), t.first));
	}
	if (n->matrix)
		lw_matrix(&t);
	else
		sums(&t, columns);
	lw_close_loops(lw, skips);
	lw->lanes = 1;
	lw->vvar = -1;
	lw_release(lw, m);
	memcpy(lw->span, old, n_vars * sizeof *old);
	memcpy(lw->var, var, n_vars * sizeof *var);
	lw_close(lw);
}

struct tile_at {
	lowering *lw;
	const loop_node *n;
};

static void of_tile(void *arg, int64_t rows, int64_t columns)
{
	struct tile_at *t = arg;

	variant(t->lw, t->n, rows, columns);
}

void lw_tile(lowering *lw, const loop_node *n)
{
	struct tile_at t = {lw, n};

	lw_each_size(lw, n, n->row_var, n->var, of_tile, &t);
}
