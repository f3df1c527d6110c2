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

/* Is each clip that depends on rows so in this one? */
static bool is_inside(struct tile *t, int32_t row)
{
	const loop_node *n = t->n;
	lowering *lw = t->lw;

	lw_move_to(t, row, 0);
	for (int32_t i = 0; i < n->n_clip; i++) {
		const loop_clip *c = &n->clip[i];
		int64_t at;

		if (n->row_var < 0 || (loop_form_vars(c->f) >> n->row_var & 1) == 0)
			continue;
		if (!kern_form_is_const(lw_form(lw, c->f, 0), &at))
			lw_bug(lw, "a clip of rows is not known in", loop_label(t->e));
		if (at < c->lo || at >= c->hi)
			return false;
	}
	return true;
}

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

		if (!is_inside(t, r))
			continue;
		x = lw_to_lanes(lw, lw_ex(lw, t->n->factor[0]));
		for (int32_t v = 0; v < t->vectors; v++)
			lw_set(lw, lw_acc(t, r, v),
				lw_mad(lw, x, y[v], lw_acc(t, r, v)));
		lw_release(lw, m);
	}
	lw_move_to(t, 0, 0);
}

/* Prefetches lines of memory behind what a value of the first sum reads. */
static void lines(const struct tile *t)
{
	lowering *lw = t->lw;
	const expr *y = t->n->factor[1];
	struct place_of p = lw_place_tensor(lw, y->tensor, y->form, false);
	form at = lw_add(lw, lw_element(lw, &p, 0), lw_form(lw, t->n->behind, 0));
	int64_t line = lw->k->machine->product.line / (int64_t)dtype_size(p.dtype);

	for (int32_t i = 0; i < t->n->lines; i++)
		kern_prefetch(lw->b, p.array, lw_addc(lw, at, i * line), false);
}

/* Prefetches what tiles behind this one read, in the loop over the first sum. */
static void fetch(struct tile *t)
{
	lowering *lw = t->lw;
	const loop_node *n = t->n;
	form *now = arena_copy(lw->a, lw->var, (size_t)lw->k->n_vars * sizeof *now);

	for (int32_t i = 1; i < n->n_sums; i++)
		lw->var[n->sum[i]] = lw->span[n->sum[i]].lo;
	if (n->lines > 0)
		lines(t);
	for (int32_t i = 0; i < n->n_ahead; i++) {
		const loop_ahead *a = &n->ahead[i];
		struct place_of p = lw_place_tensor(lw, a->tensor, a->at, false);
		form at;

		if (p.array < 0) /* a register, too: the memory is meant */
			p = lw_place_tensor(lw, a->tensor, a->at, true);
		at = lw_element(lw, &p, 0);
		kern_prefetch(lw->b, p.array, at, a->far);
		for (int32_t k = 1; k < a->n; k++)
			kern_prefetch(lw->b, p.array,
				lw_addc(lw, at, k * a->step), a->far);
	}
	memcpy(lw->var, now, (size_t)lw->k->n_vars * sizeof *now);
}

/* ---- the loops of sums ---- */

/* Does a clip ask for the iterations of this sum one by one, for each row? */
static bool is_written_out(const loop_node *n, int32_t sum)
{
	for (int32_t i = 0; i < n->n_clip; i++) {
		loop_set vars = loop_form_vars(n->clip[i].f);

		if (n->row_var >= 0 && (vars >> sum & 1) != 0 &&
			(vars >> n->row_var & 1) != 0)
			return true;
	}
	return false;
}

/* The iterations of a sum that its clips have: lo .. hi - 1 at most. */
static void clip_sum(struct tile *t, int32_t sum, form *lo, form *hi)
{
	lowering *lw = t->lw;

	lw->var[sum] = lw_num(lw, 0);
	for (int32_t i = 0; i < t->n->n_clip; i++) {
		const loop_clip *c = &t->n->clip[i];
		form rest, from, to;
		int64_t s;

		if ((loop_form_vars(c->f) >> sum & 1) == 0 ||
			!ix_stride(c->f, sum, lw->k->var[sum].extent, &s))
			continue;
		rest = lw_form(lw, c->f, 0);
		if (s > 0) { /* c->lo - rest <= sum < c->hi - rest */
			from = lw_sub(lw, lw_num(lw, c->lo), rest);
			to = lw_sub(lw, lw_num(lw, c->hi), rest);
		} else { /* rest - c->hi < sum <= rest - c->lo */
			from = lw_addc(lw, rest, 1 - c->hi);
			to = lw_addc(lw, rest, 1 - c->lo);
		}
		*lo = kern_max(lw->b, *lo, from);
		*hi = kern_min(lw->b, *hi, to);
	}
}

/* Do the sums leave no registers for the pixels of a row, which the iterations of a
 * sum that is written out have in common? */
static bool is_full(const struct tile *t)
{
	return t->rows * (t->vectors + 1) + t->vectors >
	       t->lw->k->machine->vector_registers;
}

/* A sum that is written out: opens a condition for each of its clips that all rows have
 * in common; returns their number. */
static int32_t open_clips(struct tile *t, int32_t sum)
{
	lowering *lw = t->lw;
	int32_t opened = 0;

	for (int32_t i = 0; i < t->n->n_clip; i++) {
		const loop_clip *c = &t->n->clip[i];
		loop_set vars = loop_form_vars(c->f);

		if ((vars >> sum & 1) == 0 || (vars >> t->n->row_var & 1) != 0)
			continue;
		lw_if(lw, lw_inside(lw, lw_form(lw, c->f, 0), c->lo, c->hi));
		opened++;
	}
	return opened;
}

static void sums_from(struct tile *t, int32_t i)
{
	lowering *lw = t->lw;
	int32_t v = i < t->n->n_sums ? t->n->sum[i] : -1;
	form lo, hi;

	if (v < 0) {
		products(t);
		return;
	}
	if (is_written_out(t->n, v)) {
		struct marks m = lw_mark(lw);

		for (int64_t j = 0; j < lw->k->var[v].extent; j++) {
			int32_t opened;

			kern_scope(lw->b);
			lw->var[v] = lw_num(lw, j);
			if (i == 0)
				fetch(t);
			if (j > 0 && is_full(t))
				kern_reload(lw->b);
			opened = open_clips(t, v);
			sums_from(t, i + 1);
			lw_release(lw, m);
			lw_close_loops(lw, opened);
			lw_close(lw);
		}
		return;
	}
	lo = lw->span[v].lo;
	hi = lw->span[v].hi;
	clip_sum(t, v, &lo, &hi);
	lw->var[v] = lw_form_of(lw, lw_for(lw, lo, hi));
	if (i == 0)
		fetch(t);
	sums_from(t, i + 1);
	lw_close(lw);
}

/* ---- */

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
		form from = lw_start_of(lw, t->n, t->n->sum[i]);
		val c;

		if (lw->span[t->n->sum[i]].clo == 0 || lo == from)
			continue;
		c = lw_equal(lw, lo, from);
		t->first = t->all_first ? c : lw_and(lw, t->first, c);
		t->all_first = false;
	}
}

/* All terms, unless conditions of all of them hold for none. */
static void needed_dots(struct tile *t)
{
	int32_t open;

	if (!lw_open_need(t->lw, t->n, &open))
		return;
	lw_dots(t);
	lw_close_loops(t->lw, open);
}

/* Lowers the sums of a tile, and its stores or epilogue. */
static void all_sums(struct tile *t, int64_t columns)
{
	const loop_node *n = t->n;

	t->in_memory = n->tiled && lw_tiles_in_memory(t);
	if (t->in_memory) {
		needed_dots(t);
		if (n->finish != NULL)
			lw_finish(t, columns);
		return;
	}
	if (n->held > 0)
		lw_take_held(t);
	else
		lw_each(t, lw_declare_acc);
	if (n->finish == NULL && n->held == 0)
		lw_load_accs(t);
	if (n->dot > 0) {
		needed_dots(t);
	} else {
		sums_from(t, 0);
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

/* .. once without a check, where all terms of this tile count, and once with it. */
static void sums(struct tile *t, int64_t columns)
{
	lowering *lw = t->lw;
	const loop_node *n = t->n;
	struct marks m = lw_mark(lw);
	struct tile all = *t;
	val sure;
	bool on;

	if (!n->tiled || n->within == NULL || n->finish != NULL) {
		all_sums(t, columns);
		return;
	}
	sure = lw_always(lw, n, n->within);
	all.sure = true;
	if (lw_is_const(lw, sure, &on)) {
		all_sums(on ? &all : t, columns);
		return;
	}
	lw_if(lw, sure);
	all_sums(&all, columns);
	lw_release(lw, m);
	lw_close(lw);
	lw_if(lw, lw_not(lw, sure));
	all_sums(t, columns);
	lw_release(lw, m);
	lw_close(lw);
}

/* What a tile's code restricts, and puts back. */
struct kept {
	struct marks m;
	struct span *span;
	form *var;
};

/*
 * Opens the code of a tile, or of what is done for tiles of all sizes. True: inside
 * a condition that it has terms.
 */
static bool open_tile(struct tile *t, struct kept *k)
{
	lowering *lw = t->lw;
	const loop_node *n = t->n;
	size_t n_vars = (size_t)lw->k->n_vars;

	k->m = lw_mark(lw);
	k->span = arena_copy(lw->a, lw->span, n_vars * sizeof *k->span);
	k->var = arena_copy(lw->a, lw->var, n_vars * sizeof *k->var);
	kern_scope(lw->b);
	find_first(t);
	lw->var[n->var] = lw->span[n->var].lo;
	if (n->row_var >= 0)
		lw->var[n->row_var] = lw->span[n->row_var].lo;
	lw->vvar = n->var;
	lw->lanes = n->lanes;
	if (n->matrix || n->dot > 0) /* all of its terms, or none */
		return false;
	lw_find_last(t);
	lw_narrow_to_need(lw, n);
	if (n->n_needs == 0 || t->all_first)
		return false;
	lw_if(lw, lw_call2(lw, lw->fn.or, lw_bool(lw, false),
			  lw_less(lw, lw->span[n->sum[0]].lo,
				  lw->span[n->sum[0]].hi),
			  t->first));
	return true;
}

static void close_tile(struct tile *t, const struct kept *k, bool skips)
{
	lowering *lw = t->lw;
	size_t n_vars = (size_t)lw->k->n_vars;

	lw_close_loops(lw, skips);
	lw->lanes = 1;
	lw->vvar = -1;
	lw_release(lw, k->m);
	memcpy(lw->span, k->span, n_vars * sizeof *k->span);
	memcpy(lw->var, k->var, n_vars * sizeof *k->var);
	lw_close(lw);
}

static struct tile tile_of(lowering *lw, const loop_node *n)
{
	return (struct tile){.lw = lw, .n = n, .e = &lw->k->eqn[n->eqn]};
}

struct tile_at {
	lowering *lw;
	const loop_node *n;
	val again; /* see struct tile */
};

/* Lowers a tile with the given numbers of rows and columns. */
static void of_tile(void *arg, int64_t rows, int64_t columns)
{
	const struct tile_at *at = arg;
	const loop_node *n = at->n;
	struct tile t = tile_of(at->lw, n);
	struct kept k;
	bool skips;

	t.again = at->again;
	t.rows = (int32_t)rows;
	t.vectors = (int32_t)((columns + n->lanes - 1) / n->lanes);
	t.valid = (int32_t)((columns - 1) % n->lanes) + 1;
	t.acc = arena_array(at->lw->a, val, t.rows * t.vectors);
	skips = open_tile(&t, &k);
	if (n->matrix)
		lw_matrix(&t);
	else
		sums(&t, columns);
	close_tile(&t, &k, skips);
}

/*
 * The code that computes a checked tile term by term is long: tiles of several
 * sizes share it.
 */
static bool shares_check(const lowering *lw, const loop_node *n)
{
	return n->checked && n->finish == NULL && n->held == 0 && !n->matrix &&
	       lw_has_sizes(lw, n, n->row_var, n->var);
}

void lw_tile(lowering *lw, const loop_node *n)
{
	struct tile_at at = {.lw = lw, .n = n};
	struct tile t = tile_of(lw, n);
	struct kept k;
	bool skips;

	if (!shares_check(lw, n)) {
		lw_each_size(lw, n, n->row_var, n->var, of_tile, &at);
		return;
	}
	at.again = lw_register(lw, lw_type(lw, TN_BOOL, 1), 0);
	lw_each_size(lw, n, n->row_var, n->var, of_tile, &at);
	t.again = at.again;
	skips = open_tile(&t, &k);
	lw_again(&t);
	close_tile(&t, &k, skips);
}
