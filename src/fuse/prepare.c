/*
 * prepare.c: prepares a system for partition.
 *
 * Consumes a system; produces a unit for every equation that is computed:
 *
 *   1  substitutes movements, constants and widened integers into their readers; an output that
 *      has the elements of another tensor in the same order becomes an alias
 *   2  drops equations that are no longer needed
 *   3  settles writes in place (settle.h): waits and copies
 *
 *     y = transpose(x); o = y + 1; return o, y   ->   o[i,j] = x[j,i] + 1; y[i,j] = x[j,i]
 */
#include "fuse/inner.h"

typedef struct prepare {
	fuse_state *f;
	VEC(sys_eqn *) e; /* by source: with movements substituted */
} prepare;

/* ---- constants ---- */

/*
 * Replaces the sum of an integer constant over axes on which nothing depends by a
 * product, while it is exact: the divisor of an average.
 */
static void fold_count(fuse_state *f, sys_eqn *e)
{
	const expr *b = e->body[0];
	int64_t n = 1, v;

	if (e->monoid != IR_SUM || e->push != NULL || e->init[0] != NULL ||
		b->kind != EX_CONST)
		return;
	for (int32_t i = e->n_left; i < e->n_axes; i++)
		if (!mul_ok(n, e->axis[i].extent, &n))
			return;
	if (dtype_is_float(b->dtype)) {
		v = b->c.f > -1024 && b->c.f < 1024 ? (int64_t)b->c.f : 0;
		if ((double)v != b->c.f || !mul_ok(v, n, &v) || v > 1 << 24 ||
			v < -(1 << 24))
			return;
		b = ex_const_f(f->s, b->dtype, (double)v);
	} else {
		if (!mul_ok(b->c.i, n, &v))
			return;
		b = ex_const_i(f->s, b->dtype, v);
	}
	if (b->dtype != f->s->tensor.at[e->out[0]].dtype)
		b = ex_cast(f->s, f->s->tensor.at[e->out[0]].dtype, b);
	e->monoid = IR_SET;
	e->n_axes = e->n_left;
	e->body[0] = b;
}

/* ---- movements ---- */

/* The tensor whose elements a movement has, all and in order; or -1. */
static int32_t same_as(fuse_state *f, const sys_eqn *e)
{
	const expr *b = e->body[0];
	ix_dom d = {0};
	const ix_form *own;

	if (!eqn_is_movement(e) || b->kind != EX_READ)
		return -1;
	if (f->s->tensor.at[b->tensor].numel !=
			f->s->tensor.at[e->out[0]].numel ||
		f->s->tensor.at[b->tensor].dtype !=
			f->s->tensor.at[e->out[0]].dtype)
		return -1;
	own = eqn_position(f->a, f->s, e, &d);
	if (ix_equal(f->s->x, &d, own, b->form) != IX_EQUAL)
		return -1;
	return b->tensor;
}

static bool same_shape(const fuse_state *f, int32_t x, int32_t y)
{
	const sys_tensor *s = &f->s->tensor.at[x], *t = &f->s->tensor.at[y];

	return s->rank == t->rank &&
		memcmp(s->shape, t->shape,
			(size_t)t->rank * sizeof *t->shape) == 0;
}

/* Is its address simple enough to substitute it into readers? */
static bool is_plain(const sys_eqn *e)
{
	const expr *b = e->body[0];

	return b->form == NULL || ix_form_depth(b->form) <= FUSE_MAX_FLOORS;
}

/* ---- integers that are only widened ---- */

enum { MOST_WIDENED = 2 }; /* tensors that are read */

/*
 * Is it a sum of casts and constants, whose integers have at most half of the bits
 * of the result? *n: how many tensors it reads.
 */
static bool is_widened(const ir_system *s, const expr *e, size_t size, int32_t *n)
{
	const char *fn = e->kind == EX_CALL ? ir_scalar_at(e->fn)->name : "";

	if (!dtype_is_int(e->dtype))
		return false;
	if (e->kind == EX_CONST)
		return true;
	if (e->kind == EX_READ)
		return ++*n <= MOST_WIDENED && !ix_has_fun(e->form) &&
		       2 * dtype_size(dtype_wide(e->dtype)) <= size;
	if (e->kind == EX_CAST)
		return dtype_is_int(e->arg[0]->dtype) &&
		       is_widened(s, e->arg[0], size, n);
	return (strcmp(fn, "add") == 0 || strcmp(fn, "sub") == 0) &&
	       is_widened(s, e->arg[0], size, n) &&
	       is_widened(s, e->arg[1], size, n);
}

/*
 * Does every reader read less memory if it computes this itself? A product then sees
 * how few bits its factors have.
 */
static bool is_widening(const ir_system *s, const sys_eqn *e)
{
	int32_t n = 0;

	return e->monoid == IR_SET && e->n_out == 1 && e->push == NULL &&
	       e->opaque == NULL && e->scan_step == 0 &&
	       e->n_axes == e->n_left && e->body[0]->kind != EX_CONST &&
	       is_widened(s, e->body[0],
		       dtype_size(s->tensor.at[e->out[0]].dtype), &n);
}

static void put_in(prepare *w)
{
	fuse_state *f = w->f;

	for (int32_t i = 0; i < f->s->eqn.n; i++) {
		sys_eqn *e = arena_make(f->a, sys_eqn);
		int32_t *in;

		*e = eqn_inline(f->g, &f->s->eqn.at[i]);
		*vec_push(f->a, &w->e) = e;
		if (e->opaque == NULL)
			fold_count(f, e);
		if (e->opaque == NULL) {
			if ((eqn_is_movement(e) && is_plain(e)) ||
				is_widening(f->s, e))
				eqn_replace(f->g, e);
			continue;
		}
		in = arena_copy(f->a, e->opaque_in,
			(size_t)e->n_opaque_in * sizeof *in);
		for (int32_t k = 0; k < e->n_opaque_in; k++) {
			int32_t maker = fuse_maker(f, in[k]);
			int32_t from = maker < 0 ? -1
						 : same_as(f, w->e.at[maker]);

			if (from >= 0 && same_shape(f, from, in[k]))
				in[k] = from;
		}
		e->opaque_in = in;
	}
	for (int32_t i = 0; i < w->e.n; i++)
		if (w->e.at[i]->opaque == NULL)
			eqn_keep(f->g, w->e.at[i]);
}

/* ---- what is needed ---- */

static void need(prepare *w, int32_t tensor, bool *live)
{
	int32_t i = fuse_maker(w->f, tensor);

	if (i >= 0)
		live[i] = true;
}

static void make_unit(prepare *w, int32_t i, bool *live)
{
	fuse_state *f = w->f;
	eqn_unit *u;

	if (!live[i])
		return;
	u = eqn_unit_new(f->g, w->e.at[i], i);
	f->unit[i] = u;
	for (int32_t k = 0; k < u->n_reads; k++)
		need(w, u->read[k].tensor, live);
	fuse_scratch_trim(f);
}

static void find_aliases(prepare *w)
{
	fuse_state *f = w->f;
	ir_system *s = f->s;

	for (int32_t i = 0; i < s->output.n; i++) {
		int32_t t = s->output.at[i], maker = fuse_maker(f, t), from;

		if (f->alias[t] >= 0) /* two outputs are equal */
			continue;
		f->kept[t] = true;
		if (maker < 0 || f->w->version[t] >= 0)
			continue;
		from = same_as(f, w->e.at[maker]);
		if (from < 0 || settle_is_destroyed(f->w, from))
			continue;
		f->alias[t] = from;
		f->kept[t] = false;
		f->kept[from] = true;
	}
}

/* If an opaque row reads the copy, it is computed: then it is the output. */
static void drop_made_aliases(prepare *w)
{
	fuse_state *f = w->f;

	for (int32_t i = 0; i < f->s->output.n; i++) {
		int32_t t = f->s->output.at[i], maker = fuse_maker(f, t);

		if (f->alias[t] >= 0 && f->unit[maker] != NULL) {
			f->alias[t] = -1;
			f->kept[t] = true;
		}
	}
}

static void make_units(prepare *w)
{
	fuse_state *f = w->f;
	bool *live = arena_array(f->a, bool, f->s->eqn.n + 1);

	for (int32_t i = 0; i < f->s->tensor.n; i++) {
		if (f->w->version[i] > 0 && !settle_is_destroyed(f->w, i))
			f->kept[i] = true; /* the final version of the storage */
		if (f->kept[i])
			need(w, i, live);
	}
	for (int32_t i = f->s->eqn.n - 1; i >= 0; i--)
		make_unit(w, i, live);
	drop_made_aliases(w);
}

void fuse_prepare(fuse_state *f, const settle_options *o)
{
	prepare w = {.f = f};
	int32_t room;

	f->w = settle_new(f->a, f->s, o);
	room = 2 * (f->s->tensor.n + f->s->eqn.n) + 2;
	f->g = f->w->g = eqn_graph_new(f->a, f->s);
	(void)fuse_scratch(f);
	f->unit = f->w->unit = arena_array(f->a, eqn_unit *, room);
	f->where = arena_array(f->a, int32_t, room);
	f->copied = arena_array(f->a, bool, room);
	f->kept = f->w->kept = arena_array(f->a, bool, room);
	f->alias = arena_array(f->a, int32_t, room);
	for (int32_t i = 0; i < room; i++)
		f->alias[i] = f->where[i] = -1;
	put_in(&w);
	find_aliases(&w);
	make_units(&w);
	settle_run(f->w);
	f->order = f->w->order;
	f->n_order = f->w->n_order;
	f->n_sources = f->s->eqn.n;
}
