/*
 * fetch.c: prefetches what the next tiles of a product read.
 *
 * Columns. Where panels of columns were copied before, they follow each other in
 * memory. A panel meets one tile of rows after the other: the first of them waits for
 * memory, the others find the panel in a cache, and memory is idle. So each tile of
 * rows prefetches a part of the next panel: tile b of B begins at b/B of it, and takes
 * so many lines with each value of the first sum. A tile of one row prefetches terms
 * of its own. Few rows read columns where they lie, in lines that tiles walk one after
 * the other: each prefetches its lines further on, because a processor follows only so
 * many lines at a time, of which those of sums are some.
 *
 * Rows. Where they are read in place, those of the next tile: all lines of rows that
 * follow each other, or a line of each row, or of the row whose turn it is.
 *
 * Pixels. Rows that are neighbours in memory have each term in another line, which another
 * core has written, and no processor foresees them: the tile prefetches a line of each
 * term, where a tile further on reads it.
 *
 * Results. A tile of few terms that stores what it has prefetches, to write them, lines
 * that the next one stores. So does a loop behind tiles that stores short rows which lie
 * apart, as those of the filters of some pixels: a row further on.
 */
#include "loop/tree.h"
#include "schedule/local.h"

struct fetch {
	loop_kernel *k;
	const machine_product *m;
	loop_node *tile;
	const loop_node *rows; /* the block over tiles of rows */
	int32_t sum;
	int64_t terms; /* of the sum, in its block */
	/* of rows that meet a panel: how many, and which this is */
	int64_t n_tiles;
	const ix_form *number;
	const ix_form **with;
};

/* How many values of its variable the block n walks through. */
static int64_t walked(const loop_kernel *k, const loop_node *n)
{
	const loop_node *u = loop_block_around(n, n->var);

	return u != NULL ? u->size : k->var[n->var].extent;
}

static bool computes(const loop_node *n, int32_t eqn)
{
	if (n->kind == LOOP_STMT && n->eqn == eqn)
		return true;
	for (int32_t i = 0; i < n->n_child; i++)
		if (computes(n->child[i], eqn))
			return true;
	return false;
}

static const ix_form *axis(const struct fetch *f, int32_t var)
{
	return ix_axis(f->k->s->x, &f->k->dom, var);
}

static const ix_form *mod(const struct fetch *f, const ix_form *a, int64_t m)
{
	return ix_mod(f->k->s->x, &f->k->dom, a, m);
}

static const ix_form *quotient(const struct fetch *f, const ix_form *a, int64_t m)
{
	return ix_div(f->k->s->x, &f->k->dom, a, m);
}

static const ix_form *sum_of(
	const struct fetch *f, const ix_form *a, const ix_form *b)
{
	return ix_add(f->k->s->x, &f->k->dom, a, b);
}

static const ix_form *times(const struct fetch *f, const ix_form *a, int64_t n)
{
	return ix_scale(f->k->s->x, a, n);
}

static int64_t stride(const struct fetch *f, const ix_form *at, int32_t var)
{
	int64_t s;

	return ix_stride(at, var, f->k->var[var].extent, &s) ? s : INT64_MIN;
}

/* Prefetches n elements of a tensor, `step` apart, from `at` on, with the variables
 * as in f->with. */
static void add(struct fetch *f, int32_t tensor, const ix_form *at, int64_t n,
	int64_t step)
{
	loop_kernel *k = f->k;

	at = ix_subst(k->s->x, &k->dom, at, k->n_vars, k->dom.box.extent, f->with);
	loop_add_ahead(k, f->tile,
		(loop_ahead){tensor, at, false, n > 1 ? (int32_t)n : 0, n > 1 ? step : 0});
}

static void keep_vars(struct fetch *f)
{
	for (int32_t v = 0; v < f->k->n_vars; v++)
		f->with[v] = axis(f, v);
}

/* The read that a factor is, or that its copy is made from; NULL: another value.
 * *copy: the equation of the copy, or -1. */
static const expr *source(const loop_kernel *k, const expr *e, int32_t *copy)
{
	int32_t eqn, comp;

	*copy = -1;
	if (e->kind != EX_READ)
		return NULL;
	if (!loop_maker(k, e->tensor, &eqn, &comp))
		return e;
	if (!k->eqn[eqn].pack || k->eqn[eqn].part)
		return NULL;
	*copy = eqn;
	e = k->eqn[eqn].body[0];
	return e->kind == EX_READ ? e : NULL;
}

/* Does it come from memory, and not from the caches of the core? */
static bool is_far(const loop_kernel *k, const expr *read)
{
	const sys_tensor *t = &k->s->tensor.at[read->tensor];
	int64_t bytes = t->numel * (int64_t)dtype_size(t->dtype);
	int64_t near = k->machine->memory[MACHINE_L2].bytes;

	return bytes >= (t->steady ? near / k->machine->product.steady_part : 2 * near);
}

static int64_t ceil_of(int64_t n, int64_t by)
{
	return (n + by - 1) / by;
}

/* The loop whose next iteration has another panel, or another block of the sum. */
static const loop_node *next_panel(const struct fetch *f, const loop_node *from)
{
	for (; from != NULL; from = from->up)
		if (from->kind == LOOP_BLOCK &&
			(from->var == f->sum || from->var == f->tile->var) &&
			walked(f->k, from) > from->size)
			return from;
	return NULL;
}

/* Numbers the tiles of rows that meet a panel. */
static void number_tiles(struct fetch *f)
{
	const loop_kernel *k = f->k;

	f->n_tiles = 1;
	f->number = ix_const(k->s->x, 0);
	for (const loop_node *n = f->rows; n != NULL; n = n->up) {
		int64_t in = walked(k, n), size = n->kind == LOOP_BLOCK ? n->size : 1;
		const ix_form *at;

		if (n->kind == LOOP_SPAN)
			continue;
		if (n->var == f->tile->var || n->var == f->sum)
			break;
		at = quotient(f, mod(f, axis(f, n->var), in), size);
		f->number = sum_of(f, f->number, times(f, at, f->n_tiles));
		f->n_tiles *= ceil_of(in, size);
	}
}

/* Elements that a value of the first sum has in a panel of so many columns; 0: they
 * do not adjoin. */
static int64_t elements_of(const struct fetch *f, const expr *y, int64_t panel)
{
	const loop_node *n = f->tile;

	for (int32_t i = 1; i < n->n_sums; i++) {
		if (stride(f, y->form, n->sum[i]) > stride(f, y->form, f->sum))
			return 0;
		panel *= f->k->var[n->sum[i]].extent;
	}
	return panel;
}

/* Of a panel that was copied before, behind others: a part of the elements that
 * follow the block of the sum, or the panel. */
static void fetch_copied(struct fetch *f, const loop_node *next, const expr *y)
{
	const loop_kernel *k = f->k;
	loop_node *n = f->tile;
	int64_t size = (int64_t)dtype_size(y->dtype), each, from;
	int64_t panel = (int64_t)n->lanes * n->unroll, term = elements_of(f, y, panel);
	int32_t copy;

	source(k, y, &copy);
	if (k->eqn[copy].panel != panel || term == 0 || f->n_tiles < 2)
		return;
	from = next != NULL && next->var == f->sum ? next->size : k->var[f->sum].extent;
	each = ceil_of(term, f->n_tiles);
	if (each * size > f->m->line) /* whole lines */
		each = ceil_of(each * size, f->m->line) * f->m->line / size;
	if (each * size > LOOP_MAX_FETCH * f->m->line)
		return;
	n->lines = (int32_t)ceil_of(each * size, f->m->line);
	n->behind = sum_of(f, times(f, f->number, each * f->terms),
		times(f, mod(f, axis(f, f->sum), f->terms), each - term));
	n->behind = ix_addc(k->s->x, n->behind, from * term);
}

/* Of lines of y that tiles walk, one tile after the other: those of tiles to come. */
static void fetch_lines(struct fetch *f, const expr *y)
{
	const loop_node *n = f->tile->up;
	int64_t size = (int64_t)dtype_size(y->dtype);

	if (n->kind != LOOP_BLOCK || n->var != f->tile->var ||
		stride(f, y->form, n->var) != 1 || walked(f->k, n) <= n->size)
		return;
	f->tile->lines = (int32_t)ceil_of(n->size * size, f->m->line);
	f->tile->behind = ix_const(f->k->s->x, f->m->few_ahead * f->m->line / size);
}

/* Is the copy made in the chunk itself? */
static bool is_copied_here(const struct fetch *f, int32_t copy)
{
	for (const loop_node *u = f->rows; u != NULL; u = u->up)
		if (computes(u, copy))
			return true;
	return false;
}

static void fetch_columns(struct fetch *f)
{
	const loop_kernel *k = f->k;
	int32_t copy;
	const expr *y = f->tile->factor[1], *from = source(k, y, &copy);

	if (from == NULL || !is_far(k, from))
		return;
	if (copy < 0) {
		fetch_lines(f, y);
		return;
	}
	if (is_copied_here(f, copy)) /* in a cache */
		return;
	number_tiles(f);
	fetch_copied(f, next_panel(f, f->rows->up), y);
}

/* A tile of one row reads each element of the other factor once. */
static void fetch_terms(struct fetch *f)
{
	const loop_kernel *k = f->k;
	loop_node *n = f->tile;
	const expr *y = n->factor[1];
	int32_t copy;
	int64_t term = stride(f, y->form, f->sum);

	if (source(k, y, &copy) != NULL && copy < 0) {
		fetch_lines(f, y);
		return;
	}
	if (copy >= 0 && k->eqn[copy].panel > 0)
		term = elements_of(f, y, k->eqn[copy].panel);
	if (term <= 0)
		return;
	n->lines = (int32_t)ceil_of((int64_t)n->lanes * n->unroll *
			(int64_t)dtype_size(y->dtype),
		f->m->line);
	n->behind = ix_const(k->s->x, term * f->m->lone_ahead);
}

/* Do rows of terms follow each other in memory, and are all terms one block? */
static bool are_terms(const struct fetch *f, const expr *x)
{
	const loop_node *n = f->tile;
	int64_t all = 1;

	for (int32_t i = 0; i < n->n_sums; i++)
		all *= f->k->var[n->sum[i]].extent;
	return f->terms == f->k->var[f->sum].extent &&
	       stride(f, x->form, n->row_var) == all;
}

/* Sets the row to one of the next tile, and other sums than the first to 0. */
static void take_row(struct fetch *f, const ix_form *row)
{
	keep_vars(f);
	for (int32_t i = 1; i < f->tile->n_sums; i++)
		f->with[f->tile->sum[i]] = ix_const(f->k->s->x, 0);
	f->with[f->tile->row_var] = row;
}

static void fetch_rows(struct fetch *f)
{
	const loop_kernel *k = f->k;
	const loop_node *n = f->tile;
	const expr *x = n->factor[0];
	const ix_form *s = axis(f, f->sum);
	int64_t size = (int64_t)dtype_size(x->dtype), turns = 1;
	int64_t own = elements_of(f, x, 1), row = stride(f, x->form, n->row_var);
	int64_t lines = ceil_of(n->size * own * size, f->m->line);
	int32_t copy;

	if (x != source(k, x, &copy) || walked(k, f->rows) <= n->size || !is_far(k, x) ||
		own < 1 || own != stride(f, x->form, f->sum) || row < own ||
		lines > LOOP_MAX_FETCH)
		return;
	while (turns < n->size)
		turns *= 2;
	take_row(f, ix_addc(k->s->x, axis(f, n->row_var), n->size));
	if (are_terms(f, x)) {
		f->with[f->sum] = times(f, s, n->size);
		add(f, x->tensor, x->form, lines, f->m->line / size);
	} else if (own * n->unroll >= f->m->fetch_products) {
		for (int64_t at = 0; at < own * size; at += f->m->line)
			add(f, x->tensor, ix_addc(k->s->x, x->form, at / size),
				n->size, row);
	} else if (turns * own * size <= f->m->line) {
		take_row(f, sum_of(f, f->with[n->row_var], mod(f, s, turns)));
		add(f, x->tensor, x->form, 1, 0);
	}
}

static void fetch_pixels(struct fetch *f)
{
	loop_kernel *k = f->k;
	const loop_node *n = f->tile;
	const expr *x = n->factor[0];
	const sys_tensor *t;
	int64_t size, term;
	int32_t copy;

	if (source(k, x, &copy) == NULL || ix_has_fun(x->form))
		return;
	t = &k->s->tensor.at[x->tensor];
	size = (int64_t)dtype_size(t->dtype);
	term = stride(f, x->form, f->sum);
	number_tiles(f);
	if (stride(f, x->form, n->row_var) != 1 || term * size < f->m->line ||
		f->n_tiles < 2 || (copy >= 0 && is_copied_here(f, copy)))
		return;
	if (t->numel * size <= k->machine->memory[MACHINE_L1].bytes) {
		loop_decide(k, DECIDE_PIXELS_NEAR, n->eqn, -1, t->numel * size, 0);
		return;
	}
	keep_vars(f);
	for (int32_t i = 1; i < n->n_sums; i++) /* the last that it has of the term */
		f->with[n->sum[i]] = ix_const(k->s->x, k->var[n->sum[i]].extent - 1);
	add(f, x->tensor, ix_addc(k->s->x, x->form, f->m->pixels_ahead * n->size), 1, 0);
	loop_decide(k, DECIDE_PIXELS_TAKEN, n->eqn, -1, f->m->pixels_ahead * n->size, 0);
}

/* ---- results ---- */

static bool is_around(const loop_node *n, int32_t var)
{
	for (; n != NULL; n = n->up)
		if (n->var == var)
			return true;
	return false;
}

/* Does the equation store elements of what the tile computes, without other loops? */
static bool stores(const struct fetch *f, const loop_eqn *e)
{
	const loop_node *n = f->tile;
	loop_set own = ((loop_set)1 << n->row_var) | ((loop_set)1 << n->var);

	if (e->push || e->scan_var >= 0 || e->part || e->n_parts > 0 ||
		ix_has_fun(e->at) || (e->left & own) != own)
		return false;
	for (int32_t v = 0; v < f->k->n_vars; v++)
		if ((e->left >> v & 1) != 0 && (own >> v & 1) == 0 && !is_around(n, v))
			return false;
	return true;
}

static int64_t power_of_two(int64_t n)
{
	int64_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

/* Each value of the first sum takes a line of a row, or of all rows. */
static void fetch_result(struct fetch *f, int32_t out, const loop_eqn *e)
{
	loop_kernel *k = f->k;
	const loop_node *n = f->tile;
	int64_t size = (int64_t)dtype_size(k->s->tensor.at[k->param[out]].dtype);
	int64_t line = f->m->line / size, step = stride(f, e->at, n->row_var);
	int64_t lines = ceil_of((int64_t)n->lanes * n->unroll, line) + (step % line != 0);
	int64_t rows = power_of_two(n->size), all = 1;
	const ix_form *s = mod(f, axis(f, f->sum), f->terms);
	const ix_form *row = ix_addc(k->s->x, axis(f, n->row_var), n->size);

	for (int32_t i = 0; i < n->n_sums; i++)
		all *= k->var[n->sum[i]].extent;
	if (stride(f, e->at, n->var) != 1 || step < line)
		return;
	if (all > f->m->result_terms) {
		loop_decide(k, DECIDE_RESULTS_TERMS, n->eqn, -1, all, f->m->result_terms);
		return;
	}
	if (f->terms < lines) {
		loop_decide(k, DECIDE_RESULTS_FEW, n->eqn, -1, f->terms, lines);
		return;
	}
	loop_decide(k, DECIDE_RESULTS_TAKEN, n->eqn, -1, n->size, 0);
	keep_vars(f);
	if (f->terms >= rows * power_of_two(lines)) {
		row = sum_of(f, row, mod(f, s, rows));
		s = quotient(f, s, rows);
		lines = power_of_two(lines);
		rows = 1;
	} else {
		rows = n->size;
	}
	f->with[n->row_var] = row;
	f->with[n->var] = sum_of(f, axis(f, n->var), times(f, mod(f, s, lines), line));
	add(f, k->param[out], e->at, rows, rows > 1 ? step : 0);
}

/* Of a tile that stores what it has: lines of the result that the next one stores. A store
 * waits for a line as a load does, and sums of few terms leave no time for that. */
static void fetch_results(struct fetch *f)
{
	loop_kernel *k = f->k;

	for (int32_t i = 0; i < k->n_outputs; i++) {
		const sys_tensor *t = &k->s->tensor.at[k->param[i]];
		int64_t bytes = t->numel * (int64_t)dtype_size(t->dtype);
		int32_t eqn, comp;

		if (k->stream[i] || !loop_maker(k, k->param[i], &eqn, &comp) ||
			!stores(f, &k->eqn[eqn]))
			continue;
		if (bytes > k->machine->memory[MACHINE_L1].bytes)
			fetch_result(f, i, &k->eqn[eqn]);
		else
			loop_decide(k, DECIDE_RESULTS_NEAR, f->tile->eqn, -1, bytes, 0);
		return;
	}
}

/* ---- results of loops behind tiles ---- */

struct row {
	loop_kernel *k;
	loop_node *n;	/* the loop over lanes */
	int64_t extent; /* of a row */
};

/* Does a loop around, in one chunk, go on where a row ends, for long enough? */
static bool goes_on(const struct row *r, const ix_form *at, int64_t enough)
{
	int64_t s;

	for (const loop_node *u = r->n->up; u != NULL && !u->parallel; u = u->up)
		if (u->kind == LOOP_FOR &&
			ix_stride(at, u->var, r->k->var[u->var].extent, &s) && s > 0 &&
			s < 2 * r->extent && s * walked(r->k, u) >= enough)
			return true;
	return false;
}

static bool is_prefetched(const loop_node *n, int32_t tensor)
{
	for (int32_t i = 0; i < n->n_ahead; i++)
		if (n->ahead[i].tensor == tensor)
			return true;
	return false;
}

static void on_row(void *arg, const struct loop_access *a)
{
	struct row *r = arg;
	loop_kernel *k = r->k;
	const loop_node *n = r->n, *rows = n->up;
	const sys_tensor *t = &k->s->tensor.at[a->tensor];
	int64_t size = (int64_t)dtype_size(t->dtype), most = k->machine->schedule.ahead_bytes;
	int32_t out = loop_param(k, a->tensor);
	int64_t s;

	if (!a->write || out < 0 || k->stream[out] || ix_has_fun(a->at) ||
		r->extent * size > most || is_prefetched(n, a->tensor) ||
		!ix_stride(a->at, n->var, k->var[n->var].extent, &s) || s != 1 ||
		!ix_stride(a->at, rows->var, k->var[rows->var].extent, &s) ||
		s < k->machine->product.line / size)
		return;
	if (t->numel * size <= k->machine->memory[MACHINE_L1].bytes) {
		loop_decide(k, DECIDE_RESULTS_NEAR, a->leaf->eqn, -1, t->numel * size, 0);
		return;
	}
	if (r->extent * size < k->machine->product.result_row) { /* shares lines with others */
		loop_decide(k, DECIDE_RESULTS_SHORT, a->leaf->eqn, -1, r->extent * size,
			k->machine->product.result_row);
		return;
	}
	if (goes_on(r, a->at, most / size)) {
		loop_decide(k, DECIDE_RESULTS_FORESEEN, a->leaf->eqn, -1, r->extent, 0);
		return;
	}
	loop_decide(k, DECIDE_RESULTS_ROW, a->leaf->eqn, -1, most / (r->extent * size), 0);
	loop_add_ahead(k, r->n,
		(loop_ahead){.tensor = a->tensor,
			.at = ix_addc(k->s->x, a->at, s * (most / (r->extent * size)))});
}

/* What loops behind tiles store in rows that no processor foresees. */
static void fetch_rows_behind(loop_kernel *k, loop_node *n)
{
	struct row r = {.k = k, .n = n};

	for (int32_t i = 0; i < n->n_child; i++)
		fetch_rows_behind(k, n->child[i]);
	if (n->kind != LOOP_FOR || n->lanes <= 1 || n->held > 0 || n->up == NULL ||
		n->up->kind != LOOP_FOR || n->up->parallel)
		return;
	r.extent = walked(k, n);
	loop_each_access(k, n, on_row, &r);
}

/* ---- tiles ---- */

static bool find_tile(struct fetch *f, loop_kernel *k, loop_node *n)
{
	const loop_node *block;

	*f = (struct fetch){.k = k, .m = &k->machine->product, .tile = n};
	if (n->kind != LOOP_TILE || n->n_sums == 0 || n->dot != 0 || n->matrix)
		return false;
	f->sum = n->sum[0];
	f->rows = n->row_var >= 0 && k->machine->block.warps <= 1
			  ? loop_block_around(n, n->row_var)
			  : NULL;
	block = loop_block_around(n, f->sum);
	f->terms = block != NULL ? block->size : k->var[f->sum].extent;
	f->with = arena_array(k->a, const ix_form *, k->n_vars + 1);
	return true;
}

static void fetch(loop_kernel *k, loop_node *n, bool results)
{
	struct fetch f;
	bool plain = find_tile(&f, k, n);
	bool rows = plain && f.rows != NULL && f.rows->size == n->size;

	if (plain && n->row_var < 0 && !results)
		fetch_terms(&f);
	if (rows && results && n->held > 0)
		fetch_results(&f);
	if (rows && !results) {
		fetch_columns(&f);
		fetch_rows(&f);
		fetch_pixels(&f);
	}
	for (int32_t i = 0; i < n->n_child; i++)
		fetch(k, n->child[i], results);
}

static void fetch_all(loop_kernel *k, bool results)
{
	loop_link(k);
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			fetch(k, k->phase[p].root[i], results);
}

void loop_fetch_tiles(loop_kernel *k)
{
	fetch_all(k, false);
}

void loop_fetch_results(loop_kernel *k)
{
	fetch_all(k, true);
	for (int32_t p = 0; p < k->n_phases && k->machine->block.warps <= 1; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots && k->phase[p].tiles; i++)
			fetch_rows_behind(k, k->phase[p].root[i]);
}
