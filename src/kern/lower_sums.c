/*
 * lower_sums.c: the accumulators of a tile, the loops of its sums, and the numbers
 * of rows and columns that it can have; loops over pieces of a variable.
 */
#include "kern/lower.h"

enum { MAX_EXTENTS = 8 };

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

void lw_load_accs(struct tile *t)
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

/* The extents of pieces of at most `size` of intervals with these extents. */
static int32_t cut(int32_t n, int64_t *ext, int64_t size)
{
	int64_t out[MAX_EXTENTS];
	int32_t m = 0;

	for (int32_t i = 0; i < 2 * n; i++) {
		int64_t e = i < n ? (ext[i] >= size ? size : 0)
				  : ext[i - n] % size;
		bool known = e == 0;

		for (int32_t j = 0; j < m; j++)
			known |= out[j] == e;
		if (!known && m < MAX_EXTENTS)
			out[m++] = e;
	}
	memcpy(ext, out, (size_t)m * sizeof *ext);
	return m;
}

/* The possible extents of a tile along var, given its blocks. */
static int32_t extents(
	const lowering *lw, const loop_node *n, int32_t var, int64_t *out)
{
	const loop_node *block[MAX_EXTENTS];
	int32_t n_blocks = 0, m = 1;

	out[0] = var < 0 ? 1 : lw->k->var[var].extent;
	for (; n != NULL && var >= 0; n = n->up)
		if (n->kind == LOOP_BLOCK && n->var == var &&
			n_blocks < MAX_EXTENTS)
			block[n_blocks++] = n;
	while (n_blocks > 0)
		m = cut(m, out, block[--n_blocks]->size);
	return m;
}

static val extent_is(lowering *lw, int32_t var, int64_t n)
{
	const struct span *s = &lw->span[var];

	return lw_equal(lw, lw_sub(lw, s->hi, s->lo), lw_num(lw, n));
}

bool lw_has_sizes(const lowering *lw, const loop_node *n, int32_t row_var,
	int32_t var)
{
	int64_t rows[MAX_EXTENTS], columns[MAX_EXTENTS];

	return extents(lw, n, row_var, rows) > 1 ||
	       extents(lw, n, var, columns) > 1;
}

void lw_each_size(lowering *lw, const loop_node *n, int32_t row_var, int32_t var,
	of_size *fn, void *arg)
{
	int64_t rows[MAX_EXTENTS], columns[MAX_EXTENTS];
	int32_t n_rows = extents(lw, n, row_var, rows);
	int32_t n_columns = extents(lw, n, var, columns);

	for (int32_t r = 0; r < n_rows; r++)
		for (int32_t c = 0; c < n_columns; c++) {
			val is = lw_bool(lw, true);
			bool on = true;

			if (n_rows > 1)
				is = extent_is(lw, row_var, rows[r]);
			if (n_columns > 1)
				is = lw_and(lw, is,
					extent_is(lw, var, columns[c]));
			if (lw_is_const(lw, is, &on)) {
				if (on)
					fn(arg, rows[r], columns[c]);
				continue;
			}
			lw_if(lw, is);
			fn(arg, rows[r], columns[c]);
			lw_close(lw);
		}
}

/* The elements behind the last whole piece of so many. */
static void last_piece(lowering *lw, int32_t var, int64_t len, int64_t left,
	lw_piece *fn, void *arg)
{
	lw->var[var] = lw_addc(lw, lw->span[var].lo, len - left);
	fn(arg, (int32_t)left);
}

void lw_pieces(
	lowering *lw, int32_t var, int32_t each, lw_piece *fn, void *arg)
{
	const struct span *s = &lw->span[var];
	int64_t len, of[2] = {s->most, s->rest};
	kern_stmt loop = {.lo = s->lo, .hi = s->hi, .step = each};
	form was = lw->var[var];

	if (!kern_form_is_const(lw_sub(lw, s->hi, s->lo), &len))
		len = s->len;
	if (len >= 0)
		loop.hi = lw_addc(lw, s->lo, len - len % each);
	else
		loop.whole = s->most > 0 &&
			     (of[0] % each != 0 || of[1] % each != 0);
	if (len < 0 || len >= each) {
		lw->var[var] = lw_form_of(lw, kern_for_as(lw->b, &loop, NULL));
		fn(arg, each);
		lw_close(lw);
	}
	if (len >= 0 && len % each != 0) {
		last_piece(lw, var, len, len % each, fn, arg);
	}
	for (int32_t i = 0; i < 2 && loop.whole; i++) {
		if (of[i] % each == 0)
			continue;
		/* in all blocks; in the last of them, which is shorter */
		lw_if(lw, lw_equal(lw, lw_sub(lw, s->hi, s->lo),
				  lw_num(lw, of[i])));
		last_piece(lw, var, of[i], of[i] % each, fn, arg);
		lw_close(lw);
	}
	lw->var[var] = was;
}
