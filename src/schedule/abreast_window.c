/*
 * abreast_window.c: rows of sliding windows are summed abreast.
 *
 * The windows of neighbouring rows overlap, and the factor of a depthwise
 * convolution is the same for all of them. Several rows at a time, each with sums
 * in a register of its own, load each element of the image once, and each element
 * of the factor:
 *
 *   for i { for j lanes 16 { init
 *     for a < 3 { for b < 3 { do } }
 *     rest } }                                                       ->
 *   block i by 4 { for j lanes 16 {
 *     for i unroll 4 { init }
 *     for a < 3 unroll 3 { for b < 3 unroll 3 { for i unroll 4 { do } } }
 *     for i unroll 4 { rest } } }
 *
 * At most so many rows as a quarter of the registers, of those that divide the rows
 * of all blocks, or all rows of a small image. Windows of rows near a border have terms
 * outside of the image, under conditions, and so they have blocks of their own; those
 * of large images, of which these are a small part, and of large windows are not written
 * out.
 */
#include "schedule/local.h"

enum { PIECES = 3 }; /* of the rows: those in the middle, and those near borders */
enum { MOST_UNROLLED = 16 }; /* iterations that a loop may write out (verify_lanes.c) */

/* The nest. */
struct nest {
	loop_node *rows, *lanes, *sum; /* sum: the outermost loop of the terms */
	const loop_node *term;
	int64_t terms; /* .. of the window, more if each of them is an expression */
	bool may_fit;  /* chunks may have other numbers of rows */
};

static bool is_plain(const loop_node *n)
{
	return n->kind == LOOP_FOR && !n->backward && !n->by_warp && !n->parallel &&
	       n->held == 0 && n->n_needs == 0 && n->n_clip == 0 && n->n_ahead == 0;
}

/* The loops over the terms: one in the other, with one statement. */
static bool find_terms(const loop_kernel *k, struct nest *w)
{
	const loop_node *n = w->sum;
	const expr *e;

	w->terms = 1;
	for (; loop_is_loop(n); n = n->child[0]) {
		if (!is_plain(n) || n->lanes > 1 || n->n_child != 1 ||
			k->var[n->var].extent > MOST_UNROLLED ||
			loop_length(k, n) != k->var[n->var].extent)
			return false;
		w->terms *= k->var[n->var].extent;
		if (w->terms > k->machine->schedule.image_terms)
			return false;
	}
	w->term = n;
	if (n->kind != LOOP_STMT)
		return false;
	e = k->eqn[n->eqn].body[0];
	if (e->kind == EX_SELECT)
		e = e->arg[1];
	if (e->flops > 1)
		w->terms *= e->flops; /* as much is written out */
	return true;
}

/* Is the leaf a statement without a sum of its own, in memory or in registers? */
static bool is_bare(const loop_kernel *k, const loop_node *n)
{
	const loop_eqn *e = &k->eqn[n->eqn];

	return n->kind == LOOP_STMT && e->e->monoid == IR_SET && !e->push &&
	       !e->stage && !e->pack && e->scan_var < 0;
}

static bool find(loop_kernel *k, loop_node *n, struct nest *w)
{
	const loop_eqn *e;

	if (!is_plain(n) || n->lanes > 1 || n->n_child != 1)
		return false;
	*w = (struct nest){.rows = n, .lanes = n->child[0]};
	if (!is_plain(w->lanes) || w->lanes->lanes <= 1 || w->lanes->unroll > 1 ||
		w->lanes->n_child < 2 || w->lanes->child[0]->kind != LOOP_INIT ||
		!loop_is_loop(w->lanes->child[1]))
		return false;
	w->sum = w->lanes->child[1];
	if (!find_terms(k, w) || w->term->eqn != w->lanes->child[0]->eqn)
		return false;
	for (int32_t i = 2; i < w->lanes->n_child; i++)
		if (!is_bare(k, w->lanes->child[i]))
			return false;
	e = &k->eqn[w->term->eqn];
	return e->e->monoid != IR_SET && e->e->n_out == 1 && !e->push &&
	       e->n_parts == 0 && e->scan_var < 0 &&
	       (e->reduced & (BIT(n->var) | BIT(w->lanes->var))) == 0 &&
	       (e->left & BIT(n->var)) != 0 && (e->left & BIT(w->lanes->var)) != 0 &&
	       loop_parallel_below(k, n, n->var);
}

struct overlap {
	loop_kernel *k;
	struct nest *w;
	int64_t step, extent; /* rows of the image from a window to the next; .. of one; or 0 */
	bool elsewhere;
};

/* Does a step along the rows lead as far as one or more along a sum, but not past it? */
static void on_read(void *arg, const expr *e)
{
	struct overlap *o = arg;
	const loop_kernel *k = o->k;
	int32_t row = o->w->rows->var, lane = o->w->lanes->var;
	int64_t s = 0, t;

	if (e->kind != EX_READ)
		return;
	/* elements that lanes gather are dearer than what rows share */
	o->elsewhere |= ix_has_fun(e->form) ||
			!ix_stride(e->form, lane, k->var[lane].extent, &s) ||
			s < 0 || s > 2;
	if (!ix_stride(e->form, row, k->var[row].extent, &s) || s == 0)
		return;
	for (const loop_node *n = o->w->sum; loop_is_loop(n); n = n->child[0]) {
		int64_t extent = k->var[n->var].extent;

		if (!ix_stride(e->form, n->var, extent, &t) || t == 0 ||
			s % t != 0 || s / t < 1 || s / t >= extent)
			continue;
		o->step = s / t;
		o->extent = extent;
	}
}

/* May blocks of so many rows stand in all blocks around? A parallel one, of which an
 * iteration is a chunk, may have another size where there are no products. */
static bool is_whole(
	const loop_kernel *k, const struct nest *w, int64_t rows)
{
	const loop_node *n = w->rows;

	if (k->var[n->var].extent % rows != 0)
		return false;
	for (const loop_node *u = n->up; u != NULL; u = u->up)
		if (u->var == n->var && (u->kind == LOOP_SPAN ||
			(u->kind == LOOP_BLOCK && u->size % rows != 0 &&
				(!u->parallel || !w->may_fit))))
			return false;
	return true;
}

/* Does a block of all rows stand in no other? Then which terms are outside of the image
 * is known where it is written out, and only its sums must be in registers. */
static int64_t whole_image(const loop_kernel *k, const struct nest *w)
{
	const machine *m = k->machine;
	int64_t rows = k->var[w->rows->var].extent;

	return rows * w->terms <= m->schedule.image_terms &&
			       rows <= m->vector_registers / m->schedule.image_part &&
			       loop_block_around(w->rows, w->rows->var) == NULL &&
			       is_whole(k, w, rows)
		       ? rows
		       : 0;
}

/* How many rows; 1: one is as good. */
static int64_t rows_of(loop_kernel *k, struct nest *w)
{
	const machine *m = k->machine;
	struct overlap o = {.k = k, .w = w};
	int64_t most = m->schedule.window_terms / w->terms, rows;

	loop_walk(k->a, k->eqn[w->term->eqn].body[0], on_read, &o);
	if (o.extent == 0 || o.elsewhere)
		return 1;
	if (most > m->vector_registers / m->schedule.window_part)
		most = m->vector_registers / m->schedule.window_part;
	if (most < 1)
		return 1;
	rows = whole_image(k, w);
	for (rows = rows > 1 ? rows : most; rows > 1 && !is_whole(k, w, rows); rows--)
		;
	if (rows < 2) {
		loop_decide(k, DECIDE_ABREAST_WHOLE, w->rows->var, w->term->eqn, most, 0);
	} else if (rows < k->var[w->rows->var].extent &&
		   (double)((rows - 1) * o.step + o.extent) >
		   (double)(rows * o.extent) * m->schedule.window_share) {
		loop_decide(k, DECIDE_ABREAST_SHARE, w->rows->var, w->term->eqn, rows, 0);
		rows = 1;
	} else {
		loop_decide(k, DECIDE_ABREAST_WINDOW, w->rows->var, w->term->eqn, rows, 0);
	}
	return rows;
}

/* Gives chunks whole blocks of rows: as many as they have, or the next number of which
 * all rows are a multiple. */
static void fit_chunks(loop_kernel *k, loop_phase *ph, const loop_node *n, int64_t rows)
{
	int64_t extent = k->var[n->var].extent;

	for (loop_node *u = n->up; u != NULL; u = u->up) {
		int64_t size = u->size / rows * rows, pieces;

		if (u->var != n->var || u->kind != LOOP_BLOCK || u->size % rows == 0)
			continue;
		pieces = (extent + u->size - 1) / u->size;
		while (size == 0 || extent % size != 0)
			size += rows;
		ph->n_chunks = ph->n_chunks / pieces * (extent / size);
		u->size = size;
	}
}

/* ---- the tree ---- */

static loop_node *each_row(loop_kernel *k, const struct nest *w, int64_t rows)
{
	loop_node *f = loop_node_new(k->a, LOOP_FOR);

	f->var = w->rows->var;
	f->unroll = (int32_t)rows;
	return f;
}

/* The loops over the terms, with the rows around the statement. */
static loop_node *terms_of(loop_kernel *k, const struct nest *w, int64_t rows)
{
	loop_node *sum = loop_node_copy(k->a, w->sum), *n = sum, *f;

	for (;; n = n->child[0]) {
		n->unroll = (int32_t)k->var[n->var].extent;
		if (!loop_is_loop(n->child[0]))
			break;
	}
	f = each_row(k, w, rows);
	loop_node_adopt(k->a, f, n->child[0]);
	n->child[0] = f;
	f->up = n;
	return sum;
}

static loop_node *abreast(loop_kernel *k, const struct nest *w, int64_t rows)
{
	loop_node *b = loop_node_new(k->a, LOOP_BLOCK), *f = each_row(k, w, rows);
	loop_node *lanes = arena_copy(k->a, w->lanes, sizeof *lanes);

	b->var = w->rows->var;
	b->size = rows;
	lanes->child = NULL;
	lanes->n_child = 0;
	loop_node_adopt(k->a, f, loop_node_copy(k->a, w->lanes->child[0]));
	loop_node_adopt(k->a, lanes, f);
	loop_node_adopt(k->a, lanes, terms_of(k, w, rows));
	f = each_row(k, w, rows);
	for (int32_t i = 2; i < w->lanes->n_child; i++)
		loop_node_adopt(k->a, f, loop_node_copy(k->a, w->lanes->child[i]));
	if (f->n_child > 0)
		loop_node_adopt(k->a, lanes, f);
	loop_node_adopt(k->a, b, lanes);
	return b;
}

struct border {
	loop_kernel *k;
	const struct nest *w;
	int64_t from, to; /* rows whose windows are inside of the image */
};

static void on_condition(void *arg, const expr *e)
{
	struct border *b = arg;
	ix *x = b->k->s->x;
	int32_t row = b->w->rows->var;
	int64_t s, min, max;

	if (e->kind != EX_INSIDE ||
		!ix_stride(e->form, row, b->k->var[row].extent, &s) || s < 1)
		return;
	ix_range(&b->k->dom,
		ix_sub(x, &b->k->dom, e->form,
			ix_scale(x, ix_axis(x, &b->k->dom, row), s)),
		&min, &max);
	if (-floor_div(min - e->lo, s) > b->from)
		b->from = -floor_div(min - e->lo, s);
	if (floor_div(e->hi - 1 - max, s) + 1 < b->to)
		b->to = floor_div(e->hi - 1 - max, s) + 1;
}

/* The nodes that replace the nest: one, or pieces of its rows. */
static int32_t pieces(
	loop_kernel *k, const struct nest *w, int64_t rows, loop_node **out)
{
	int64_t extent = k->var[w->rows->var].extent, at[PIECES + 1] = {0, 0, 0, extent};
	const machine_schedule *m = &k->machine->schedule;
	struct border b = {k, w, 0, extent};
	int32_t n = 0;

	loop_walk(k->a, k->eqn[w->term->eqn].body[0], on_condition, &b);
	at[1] = (b.from + rows - 1) / rows * rows;
	at[2] = b.to / rows * rows;
	out[0] = abreast(k, w, rows);
	if (at[1] >= at[2] || at[1] + extent - at[2] == 0)
		return 1;
	for (int32_t i = 0; i < PIECES; i++) {
		if (at[i] == at[i + 1])
			continue;
		out[n] = loop_node_new(k->a, LOOP_SPAN);
		out[n]->var = w->rows->var;
		out[n]->lo = at[i];
		out[n]->hi = at[i + 1];
		loop_node_adopt(k->a, out[n], abreast(k, w, rows));
		if (i != 1 && (at[i + 1] - at[i] > rows ||
			extent > rows * m->window_part ||
			rows * w->terms * 2 > m->window_terms))
			/* the block, its lanes, and in them the sum */
			out[n]->child[0]->child[0]->child[1]->unroll = 0;
		if (n > 0)
			loop_set_twins(out[n], out[0]);
		n++;
	}
	return n;
}

static int32_t take(loop_kernel *k, loop_phase *ph, bool may_fit,
	loop_node *const *list, int32_t n, loop_node ***out)
{
	loop_node **all = arena_array(k->a, loop_node *, PIECES * n + 1);
	int32_t m = 0;

	for (int32_t i = 0; i < n; i++) {
		struct nest w;
		int64_t rows;

		all[m++] = list[i];
		if (!loop_is_loop(list[i]))
			continue;
		if (!find(k, list[i], &w)) {
			list[i]->n_child = take(k, ph, may_fit, list[i]->child,
				list[i]->n_child, &list[i]->child);
			continue;
		}
		w.may_fit = may_fit;
		rows = rows_of(k, &w);
		if (rows < 2)
			continue;
		fit_chunks(k, ph, w.rows, rows);
		m += pieces(k, &w, rows, all + m - 1) - 1;
	}
	*out = all;
	return m;
}

void loop_windows_abreast(loop_kernel *k, bool may_fit)
{
	if (k->machine->lanes > 0)
		return;
	for (int32_t p = 0; p < k->n_phases; p++) {
		loop_phase *ph = &k->phase[p];

		if (ph->tiles)
			continue;
		loop_link(k);
		ph->n_roots = take(k, ph, may_fit, ph->root, ph->n_roots, &ph->root);
	}
	loop_link(k);
}
