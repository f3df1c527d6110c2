/*
 * abreast.c: several rows are read at a time.
 *
 * A sum along a row, in lanes, reads one stream of memory, and its lanes are added up
 * before the next row begins. Memory gives more to several streams, a factor that
 * all rows have is loaded once for them, and the ends of rows overlap:
 *
 *   for i { init; for k lanes 8 unroll 4 { do }; done }   ->
 *   block i by 8 {
 *     for i unroll 8 { init }
 *     for k lanes 8 { for i unroll 8 { do } }
 *     for i { done } }
 *
 * Two to four rows of a product, `f`, that all read the same stream, are taken together in each
 * of these loops, around the loop over i (contract/along.c):
 *
 *   for i { for f { init; for k lanes 8 { do }; done } }   ->
 *   block i by 4 {
 *     for f unroll { for i unroll 4 { init } }
 *     for k lanes 8 { for f unroll { for i unroll 4 { do } } } .. }
 *
 * Rows that are left, where there are any, are blocks of one row. A row that its
 * iteration reads again is nearer in memory, and so it is left alone. Rows shorter
 * than a page that come from beyond all caches are read one by one, too: hardware
 * that prefetches follows one stream in a page.
 */
#include "schedule/estimate.h"
#include "schedule/local.h"

/* The children of a loop over rows. */
struct row {
	loop_node *n;
	loop_node *few; /* the loop over rows of the other factor in it, or NULL */
	loop_node *along; /* the loop with lanes; the `before` children before it start sums */
	int32_t before;
};

static bool is_plain(const loop_node *n)
{
	return n->kind == LOOP_FOR && !n->backward && !n->by_warp &&
	       !n->parallel && n->held == 0 && n->n_needs == 0 &&
	       n->n_clip == 0 && n->n_ahead == 0;
}

/* Finds its parts; false: it has others. */
static bool find_parts(loop_node *n, struct row *out)
{
	*out = (struct row){.n = n};
	if (!is_plain(n) || n->lanes > 1)
		return false;
	for (int32_t i = 0; i < n->n_child; i++) {
		loop_node *c = n->child[i];

		if (out->along == NULL && c->kind == LOOP_INIT)
			out->before++;
		else if (out->along == NULL && is_plain(c) && c->lanes > 1)
			out->along = c;
		else if (out->along == NULL || loop_is_loop(c))
			return false;
	}
	return out->along != NULL;
}

/* .. or those of the loop over few rows in it. */
static bool find(const loop_kernel *k, loop_node *n, struct row *out)
{
	loop_node *f = n->n_child == 1 ? n->child[0] : NULL;

	if (f == NULL || !is_plain(n) || n->lanes > 1 || !is_plain(f) ||
		k->var[f->var].extent > k->machine->product.along_rows ||
		loop_length(k, f) != k->var[f->var].extent)
		return find_parts(n, out);
	if (!find_parts(f, out))
		return false;
	out->few = f;
	out->n = n;
	return true;
}

/* Accumulators that one row needs; 0: something other than such sums is done, and
 * values for them are made. */
static int32_t sums_of(const loop_kernel *k, const loop_node *along)
{
	int32_t n = 0;

	for (int32_t i = 0; i < along->n_child; i++) {
		const loop_node *c = along->child[i];
		const loop_eqn *e = &k->eqn[c->eqn];

		if (c->kind != LOOP_STMT || e->scan_var >= 0 || e->push)
			return 0;
		if ((e->reduced & BIT(along->var)) != 0)
			n += e->e->n_out;
		else if (e->e->monoid != IR_SET ||
			 loop_param(k, e->e->out[0]) >= 0)
			return 0;
	}
	return n;
}

struct reads {
	loop_kernel *k;
	int32_t row, along, few; /* few: a variable, or -1 */
	int64_t bytes; /* of a tensor whose rows are streams of their own, at most */
	int64_t far_row; /* of a row of an input in far memory, at most */
};

static int64_t bytes_of(const loop_kernel *k, int32_t tensor)
{
	const sys_tensor *t = &k->s->tensor.at[tensor];

	return t->numel * (int64_t)dtype_size(t->dtype);
}

bool loop_comes_from_afar(const loop_kernel *k, int32_t tensor)
{
	return k->s->tensor.at[tensor].is_input && !k->s->in_rounds &&
	       loop_input_bytes(k) >
		       (double)k->machine->memory[MACHINE_L3].bytes;
}

static void on_access(void *arg, const struct loop_access *a)
{
	struct reads *r = arg;
	const loop_kernel *k = r->k;
	int64_t s, jump, row = k->var[r->along].extent;

	if (a->write || a->leaf->kind != LOOP_STMT || ix_has_fun(a->at) ||
		(r->few >= 0 && (loop_form_vars(a->at) & BIT(r->few)) != 0))
		return;
	if (!ix_stride(a->at, r->along, row, &s) || s != 1 ||
		!ix_stride(a->at, r->row, k->var[r->row].extent, &jump) ||
		(jump < row && -jump < row))
		return;
	if (bytes_of(k, a->tensor) > r->bytes)
		r->bytes = bytes_of(k, a->tensor);
	row *= (int64_t)dtype_size(k->s->tensor.at[a->tensor].dtype);
	if (row > r->far_row && loop_comes_from_afar(k, a->tensor))
		r->far_row = row;
}

/* How many rows; 1: one is as good. */
static int32_t rows_of(loop_kernel *k, const struct row *w)
{
	const machine_schedule *m = &k->machine->schedule;
	int32_t sums = sums_of(k, w->along), rows = m->rows_abreast, most = rows;
	int32_t var = w->n->var, first = w->along->child[0]->eqn;
	struct reads r = {k, var, w->along->var, w->few != NULL ? w->few->var : -1, 0, 0};

	if (w->few != NULL && rows > 1) {
		sums *= (int32_t)k->var[w->few->var].extent;
		rows = k->machine->product.along_columns;
		most = k->machine->vector_registers / 2;
	}

	loop_each_access(k, w->along, on_access, &r);
	if (sums == 0 || rows < 2 || r.bytes == 0 ||
		!loop_parallel_below(k, w->n, var))
		return 1;
	if (r.bytes <= k->machine->memory[MACHINE_L1].bytes) {
		loop_decide(k, DECIDE_ABREAST_NEAR, var, first, r.bytes,
			k->machine->memory[MACHINE_L1].bytes);
		return 1;
	}
	while (rows > 1 && (rows * sums > most ||
				   rows > loop_length(k, w->n)))
		rows /= 2;
	if (k->var[w->along->var].extent <
		(int64_t)w->along->lanes * m->sum_vectors) {
		loop_decide(k, DECIDE_ABREAST_SHORT, var, first,
			k->var[w->along->var].extent, 0);
		return 1;
	}
	if (loop_flops(k, w->along) > m->abreast_ops) {
		loop_decide(k, DECIDE_ABREAST_OPS, var, first,
			loop_flops(k, w->along), m->abreast_ops);
		return 1;
	}
	if (r.far_row > 0 && r.far_row < m->abreast_bytes) {
		loop_decide(k, DECIDE_ABREAST_FAR, var, first, r.far_row,
			m->abreast_bytes);
		return 1;
	}
	if (2 * sums > most)
		loop_decide(k, DECIDE_ABREAST_FEW, var, first, sums, most);
	return rows;
}

int32_t loop_rows_at_once(loop_kernel *k, loop_node *n)
{
	struct row w;

	return loop_is_loop(n) && find(k, n, &w) ? rows_of(k, &w) : 1;
}

/* Puts a loop over the rows of a block into `to`, behind a loop over the few rows if there
 * is one; returns the inner one. */
static loop_node *each_row(
	loop_kernel *k, const struct row *w, int32_t rows, loop_node *to)
{
	loop_node *f = loop_node_new(k->a, LOOP_FOR), *few;

	if (w->few != NULL) {
		few = loop_node_new(k->a, LOOP_FOR);
		few->var = w->few->var;
		few->unroll = rows > 0 ? (int32_t)k->var[few->var].extent : 0;
		loop_node_adopt(k->a, to, few);
		to = few;
	}
	f->var = w->n->var;
	f->unroll = rows;
	loop_node_adopt(k->a, to, f);
	return f;
}

static loop_node *abreast(loop_kernel *k, const struct row *w, int32_t rows)
{
	loop_node *b = loop_node_new(k->a, LOOP_BLOCK);
	loop_node *along = arena_copy(k->a, w->along, sizeof *along), *in;
	const loop_node *from = w->few != NULL ? w->few : w->n;

	b->var = w->n->var;
	b->size = rows;
	along->child = NULL;
	along->n_child = 0;
	if (rows > 1)
		along->unroll = 1;
	in = each_row(k, w, rows, b);
	for (int32_t i = 0; i < w->before; i++)
		loop_node_adopt(k->a, in, from->child[i]);
	in = each_row(k, w, rows, along);
	for (int32_t i = 0; i < w->along->n_child; i++)
		loop_node_adopt(k->a, in, w->along->child[i]);
	loop_node_adopt(k->a, b, along);
	if (w->before + 1 < from->n_child) {
		in = each_row(k, w, 0, b);
		for (int32_t i = w->before + 1; i < from->n_child; i++)
			loop_node_adopt(k->a, in, from->child[i]);
	}
	return b;
}

/* Do all blocks around cut the variable into pieces of whole blocks of rows, and are
 * there enough of these beside the rows that are left? */
static bool is_whole(const loop_kernel *k, const loop_node *n, int32_t rows)
{
	int64_t ext = k->var[n->var].extent;

	if (ext % rows != 0 && ext / rows < rows)
		return false;
	for (const loop_node *u = n->up; u != NULL; u = u->up)
		if (u->var == n->var && (u->kind == LOOP_SPAN ||
			(u->kind == LOOP_BLOCK && u->size % rows != 0)))
			return false;
	return true;
}

static loop_node *span(loop_kernel *k, const struct row *w, int64_t lo, int64_t hi,
	loop_node *child)
{
	loop_node *s = loop_node_new(k->a, LOOP_SPAN);

	s->var = w->n->var;
	s->lo = lo;
	s->hi = hi;
	loop_node_adopt(k->a, s, child);
	return s;
}

/* The loop in a tree that replaces w->n: one node, or two. */
static int32_t replacement(
	loop_kernel *k, const struct row *w, int32_t rows, loop_node **out)
{
	int64_t ext = k->var[w->n->var].extent, rest = ext % rows;

	out[0] = abreast(k, w, rows);
	if (rest == 0)
		return 1;
	out[0] = span(k, w, 0, ext - rest, out[0]);
	out[1] = span(k, w, ext - rest, ext,
		loop_node_copy(k->a, abreast(k, w, 1)));
	loop_set_twins(out[1], out[0]);
	return 2;
}

/* The nodes in list with those that take several rows at a time. */
static int32_t take(
	loop_kernel *k, loop_node *const *list, int32_t n, loop_node ***out)
{
	loop_node **all = arena_array(k->a, loop_node *, 2 * n + 1);
	int32_t m = 0;

	for (int32_t i = 0; i < n; i++) {
		loop_node *c = list[i];
		struct row w;
		int32_t rows = 1, n_rows;

		if (loop_is_loop(c) && find(k, c, &w))
			rows = rows_of(k, &w);
		if (loop_is_loop(c) && (!find(k, c, &w) || (w.few != NULL && rows < 2)))
			c->n_child = take(k, c->child, c->n_child, &c->child);
		n_rows = rows;
		while (rows > 1 && !is_whole(k, c, rows))
			rows /= 2;
		if (rows < 2) {
			if (n_rows > 1)
				loop_decide(k, DECIDE_ABREAST_WHOLE, c->var,
					w.along->child[0]->eqn,
					loop_length(k, c), 0);
			all[m++] = c;
			continue;
		}
		loop_decide(k, DECIDE_ABREAST_TAKEN, c->var,
			w.along->child[0]->eqn, rows, 0);
		m += replacement(k, &w, rows, all + m);
	}
	*out = all;
	return m;
}

void loop_rows_abreast(loop_kernel *k)
{
	for (int32_t p = 0; p < k->n_phases; p++) {
		loop_phase *ph = &k->phase[p];

		if (ph->tiles)
			continue;
		loop_link(k);
		ph->n_roots = take(k, ph->root, ph->n_roots, &ph->root);
	}
}
