/*
 * lower_dot.c: lowers tiles whose vectors add up the products of neighbours along
 * the sum, and the copies of factors in which these adjoin.
 *
 * Consumes a TILE with `dot` terms. y is a copy in groups: for each column so many
 * terms side by side, 0 behind the last. A group of x is for all columns.
 *
 *   for %k step 2 {
 *     %y0: bf16x32 = load b0[..]; ..
 *     %x: bf16x2 = load p1[..]
 *     set %a0 = dot (repeat %x), %y0, %a0; ..
 *   }
 *
 * In tile registers, all terms of the innermost sum are one statement:
 *
 *   tiles b1[..] rows 64 of p1[..] rows 1024, b0[..] rows 64, 32 by 32 by 512
 *
 * Where factors are more than what is multiplied, (x + a) (y + b), sums of y and of
 * x are added up beside, and a * sum y + b * sum x + n a b is added in the end.
 */
#include "kern/lower.h"

struct dots {
	struct tile *t;
	tn_dtype dt[2]; /* of x, y */
	val *columns; /* sums of y, one for each vector; NULL: x is not less */
	val *rows; /* of x, one for each row, in all lanes; NULL: y is not less */
	/* adds so many terms, at the current values of all sums */
	void (*add)(const struct dots *d, int32_t terms);
};

static val factor_type(const struct dots *d, int32_t i, int32_t lanes)
{
	return (val){0, d->dt[i], lanes, 0};
}

/* Element of a factor, for the current variables. */
static kern_access element(const struct dots *d, int32_t i)
{
	lowering *lw = d->t->lw;
	const expr *f = d->t->n->factor[i];
	struct place_of p = lw_place_tensor(lw, f->tensor, f->form, false);

	return kern_element(p.array, lw_element(lw, &p, 0));
}

static void add(const struct dots *d, val acc, val x, val y)
{
	lw_set(d->t->lw, acc, lw_op3(d->t->lw, KERN_DOT, acc, x, y, acc));
}

/* Ones that are multiplied with the other factor. */
static val ones(const struct dots *d, int32_t i, int32_t lanes)
{
	lowering *lw = d->t->lw;

	return lw_op1(lw, KERN_SPLAT, factor_type(d, i, lanes),
		lw_const(lw, d->dt[i], 1, 1));
}

/* Vector v of a group of y, whose sums of columns are added up, too. */
static val group_of_columns(const struct dots *d, int32_t v)
{
	lowering *lw = d->t->lw;
	int32_t lanes = d->t->n->dot * lw->lanes;
	kern_access at;
	val y;

	lw_move_to(d->t, 0, v);
	at = element(d, 1);
	y = lw_load_at(lw, &at, factor_type(d, 1, lanes));
	if (d->columns != NULL)
		add(d, d->columns[v], ones(d, 0, lanes), y);
	return y;
}

/* A group of each factor, or the first terms of it. */
static void group(const struct dots *d, int32_t terms)
{
	struct tile *t = d->t;
	lowering *lw = t->lw;
	int32_t lanes = t->n->dot * lw->lanes;
	val *y = arena_array(lw->a, val, t->vectors), x;

	for (int32_t v = 0; v < t->vectors; v++)
		y[v] = group_of_columns(d, v);
	for (int32_t r = 0; r < t->rows; r++) {
		kern_access at;

		lw_move_to(t, r, 0);
		at = element(d, 0);
		at.part = terms < t->n->dot ? terms : 0;
		x = lw_load_at(lw, &at, factor_type(d, 0, t->n->dot));
		x = lw_op1(lw, KERN_REPEAT, factor_type(d, 0, lanes), x);
		for (int32_t v = 0; v < t->vectors; v++)
			add(d, lw_acc(t, r, v), x, y[v]);
	}
	lw_move_to(t, 0, 0);
}

/* The sums of columns alone. */
static void group_sums(const struct dots *d, int32_t terms)
{
	(void)terms;
	for (int32_t v = 0; v < d->t->vectors; v++)
		(void)group_of_columns(d, v);
	lw_move_to(d->t, 0, 0);
}

/* All terms of the innermost sum, in tile registers. */
static void in_registers(const struct dots *d, int32_t terms)
{
	lw_add_tiles(d->t, terms);
}

/* Walks the other sums. */
static void groups(void *arg, int32_t terms)
{
	const struct dots *d = arg;
	lowering *lw = d->t->lw;
	const loop_node *n = d->t->n;
	struct marks m = lw_mark(lw);

	kern_scope(lw->b);
	for (int32_t i = 1; i < n->n_sums; i++) {
		int32_t v = n->sum[i];

		lw->var[v] = lw_form_of(lw,
			lw_for(lw, lw->span[v].lo, lw->span[v].hi));
	}
	d->add(d, terms);
	lw_close_loops(lw, n->n_sums - 1);
	lw_release(lw, m);
	lw_close(lw);
}

static val *sums_beside(const struct dots *d, int32_t n, int64_t offset)
{
	lowering *lw = d->t->lw;
	val *s = offset == 0 ? NULL : arena_array(lw->a, val, n);

	for (int32_t i = 0; i < n && s != NULL; i++)
		s[i] = lw_register(lw,
			lw_type(lw, d->t->e->acc[0], lw->lanes), 0);
	return s;
}

/* As many terms as a vector has, of all rows. */
static void row_terms(void *arg, int32_t terms)
{
	const struct dots *d = arg;
	struct tile *t = d->t;
	lowering *lw = t->lw;
	int32_t lanes = t->n->dot * lw->lanes;

	kern_scope(lw->b);
	for (int32_t i = 1; i < t->n->n_sums; i++) {
		int32_t v = t->n->sum[i];

		lw->var[v] = lw_form_of(lw,
			lw_for(lw, lw->span[v].lo, lw->span[v].hi));
	}
	for (int32_t r = 0; r < t->rows; r++) {
		kern_access at;

		lw_move_to(t, r, 0);
		at = element(d, 0);
		at.part = terms < lanes ? terms : 0;
		add(d, d->rows[r], lw_load_at(lw, &at, factor_type(d, 0, lanes)),
			ones(d, 1, lanes));
	}
	lw_move_to(t, 0, 0);
	lw_close_loops(lw, t->n->n_sums - 1);
	lw_close(lw);
}

/* The sums of the rows of x: vectors along them, then their lanes. */
static void sum_rows(struct dots *d)
{
	lowering *lw = d->t->lw;
	int64_t list[KERN_MAX_LANES];

	lw_pieces(lw, d->t->n->sum[0], d->t->n->dot * lw->lanes, row_terms,
		d);
	for (int32_t half = lw->lanes / 2; half > 0; half /= 2) {
		for (int32_t i = 0; i < lw->lanes; i++)
			list[i] = (i + half) % lw->lanes;
		for (int32_t r = 0; r < d->t->rows; r++) {
			val x = d->rows[r];

			lw_set(lw, x,
				lw_call2(lw, lw->fn.add, x, x,
					lw_shuffle(lw, x, x, list)));
		}
	}
}

/* n a b, of all terms of this block. */
static val of_both(const struct dots *d)
{
	lowering *lw = d->t->lw;
	const loop_node *n = d->t->n;
	const struct span *s = &lw->span[n->sum[0]];
	form f = lw_scale(lw, lw_sub(lw, s->hi, s->lo),
		n->offset[0] * n->offset[1]);

	for (int32_t i = 1; i < n->n_sums; i++)
		f = lw_scale(lw, f, lw->k->var[n->sum[i]].extent);
	return lw_cast(lw, lw_index_val(lw, f, TN_I64), d->t->e->acc[0]);
}

static void times(const struct dots *d, val acc, int64_t by, val x)
{
	lowering *lw = d->t->lw;

	lw_set(lw, acc,
		lw_mad(lw, lw_to_lanes(lw, lw_const(lw, acc.dt, 0, by)), x, acc));
}

/* Adds what the factors are more than what was multiplied. */
static void correct(const struct dots *d)
{
	struct tile *t = d->t;
	lowering *lw = t->lw;
	val one = {0}, both = {0};

	if (d->columns != NULL && d->rows != NULL) {
		both = lw_to_lanes(lw, of_both(d));
		one = lw_to_lanes(lw, lw_const(lw, both.dt, 0, 1));
	}
	for (int32_t r = 0; r < t->rows; r++)
		for (int32_t v = 0; v < t->vectors; v++) {
			if (d->columns != NULL)
				times(d, lw_acc(t, r, v), t->n->offset[0],
					d->columns[v]);
			if (d->rows != NULL)
				times(d, lw_acc(t, r, v), t->n->offset[1],
					d->rows[r]);
			if (both.id != 0)
				lw_set(lw, lw_acc(t, r, v),
					lw_mad(lw, one, both, lw_acc(t, r, v)));
		}
}

/* As many terms as blocks of the innermost sum have. */
static int32_t longest(const struct tile *t)
{
	const struct span *s = &t->lw->span[t->n->sum[0]];
	int64_t len;

	if (!kern_form_is_const(lw_sub(t->lw, s->hi, s->lo), &len))
		len = s->len >= 0 ? s->len : s->most;
	return (int32_t)len;
}

void lw_dots(struct tile *t)
{
	const loop_node *n = t->n;
	struct dots d = {.t = t,
		.dt = {n->factor[0]->dtype, n->factor[1]->dtype}};

	d.columns = sums_beside(&d, t->vectors, n->offset[0]);
	d.rows = sums_beside(&d, t->rows, n->offset[1]);
	if (d.rows != NULL)
		sum_rows(&d);
	if (!n->tiled || d.columns != NULL) {
		d.add = n->tiled ? group_sums : group;
		lw_pieces(t->lw, n->sum[0], n->dot, groups, &d);
	}
	if (n->tiled) {
		d.add = in_registers;
		lw_begin_tiles(t);
		lw_pieces(t->lw, n->sum[0], longest(t), groups, &d);
		lw_end_tiles(t);
	}
	correct(&d);
}

/* ---- copies in groups ---- */

struct grouped {
	lowering *lw;
	const loop_node *n;
	const loop_eqn *e;
	int32_t terms; /* of the current group */
};

/* The columns of the vector as they lie in memory; false: they do not. */
static bool as_stored(const struct grouped *g, val *v)
{
	lowering *lw = g->lw;
	const expr *e = g->e->body[0];
	struct place_of p;

	if (e->kind != EX_READ || ix_has_fun(e->form))
		return false;
	p = lw_place_tensor(lw, e->tensor, e->form, false);
	if (p.buf != NULL || !p.affine || p.stride != 1)
		return false;
	*v = lw_load_from(lw, p.array, lw_element(lw, &p, 0),
		lw_type(lw, e->dtype, lw->lanes), lw_live(lw));
	return true;
}

/* Term r of the group, for the columns of the vector, as it is stored. */
static val term(const struct grouped *g, int32_t r)
{
	lowering *lw = g->lw;
	tn_dtype dt = g->e->acc[0];
	struct marks m = lw_mark(lw);
	val v;

	if (r >= g->terms)
		return lw_register(lw, lw_type(lw, dt, lw->lanes), 0);
	lw->plus[g->n->var] = r;
	if (!as_stored(g, &v)) {
		v = lw_cast(lw, lw_ex(lw, g->e->body[0]), dt);
		v = lw_narrow(lw, lw_to_lanes(lw, v), dt);
	}
	lw->plus[g->n->var] = 0;
	lw_release(lw, m);
	return v;
}

static val zip(const struct grouped *g, val x, val y)
{
	return lw_op3(g->lw, KERN_ZIP, (val){0, x.dt, 2 * x.lanes, 0}, x, y,
		(val){0});
}

/* Columns that fill a vector, or the first ones of it. */
static void columns(void *arg, int32_t n)
{
	const struct grouped *g = arg;
	lowering *lw = g->lw;
	struct place_of p;
	kern_access at;
	val *v = arena_array(lw->a, val, g->e->group);

	lw->dead = lw->lanes - n;
	kern_scope(lw->b);
	for (int32_t r = 0; r < g->e->group; r++)
		v[r] = term(g, r);
	lw->dead = 0;
	/* 0, 2 and 1, 3: their lanes in turn are 0, 1, 2, 3 */
	for (int32_t half = g->e->group / 2; half > 0; half /= 2)
		for (int32_t r = 0; r < half; r++)
			v[r] = zip(g, v[r], v[r + half]);
	p = lw_place_tensor(lw, g->e->e->out[0], g->e->at, false);
	at = kern_element(p.array, lw_element(lw, &p, 0));
	kern_store(lw->b, &at, v[0].id, false);
	lw_close(lw);
}

/* ---- columns whose terms adjoin: squares of groups are turned ---- */

struct square {
	const struct grouped *g;
	struct place_of from;
	int64_t to_step, from_step; /* between groups; between columns */
};

/* Does the factor lie so that groups can be moved as they are? */
static bool finds_squares(const struct grouped *g, struct square *q)
{
	lowering *lw = g->lw;
	const expr *e = g->e->body[0];
	const loop_buf *b;
	struct place_of to;
	int64_t s, bytes = (int64_t)dtype_size(g->e->acc[0]) * g->e->group;
	int32_t j = g->n->row_var, v = g->n->var;

	if (e->kind != EX_READ || ix_has_fun(e->form) || bytes != 4 ||
		!ix_stride(e->form, v, lw->k->var[v].extent, &s) || s != 1 ||
		!ix_stride(e->form, j, lw->k->var[j].extent, &q->from_step) ||
		q->from_step % g->e->group != 0 || q->from_step == 0)
		return false;
	to = lw_place_tensor(lw, g->e->e->out[0], g->e->at, false);
	b = to.buf;
	q->from = lw_place_tensor(lw, e->tensor, e->form, false);
	for (int32_t i = 0; i < b->n_vars; i++)
		if (b->var[i] == v)
			q->to_step = b->stride[i] * b->group;
	return q->from.buf == NULL && q->to_step > 0;
}

static void columns_of_square(void *arg, int32_t n)
{
	const struct square *q = arg;
	const struct grouped *g = q->g;
	struct grouped of = *g;
	lowering *lw = g->lw;
	struct place_of to = lw_place_tensor(
		lw, g->e->e->out[0], g->e->at, false);
	struct place_of in = lw_place_tensor(
		lw, g->e->body[0]->tensor, g->e->body[0]->form, false);
	form base = lw->var[g->n->var];
	kern_access at, from;

	if (n == g->n->lanes) {
		at = kern_element(to.array, lw_element(lw, &to, 0));
		from = kern_element(in.array, lw_element(lw, &in, 0));
		kern_turn(lw->b, &at, q->to_step, &from, q->from_step,
			kern_num(g->e->acc[0], g->n->lanes), g->e->group);
		return;
	}
	for (int32_t i = 0; i < g->n->lanes; i++) { /* some columns of each */
		lw->var[g->n->var] = lw_addc(lw, base, i * g->e->group);
		columns(&of, n);
	}
	lw->var[g->n->var] = base;
}

/* Groups for a square, or the terms behind the last of them. */
static void squares(void *arg, int32_t terms)
{
	struct square *q = arg;
	struct grouped g = *q->g;
	lowering *lw = g.lw;
	int32_t each = g.e->group, all = g.n->lanes * each;
	form base = lw->var[g.n->var];

	kern_scope(lw->b);
	if (terms == all) {
		lw_pieces(lw, g.n->row_var, g.n->lanes, columns_of_square, q);
	} else {
		for (int32_t i = 0; i < terms; i += each) {
			lw->var[g.n->var] = lw_addc(lw, base, i);
			g.terms = terms - i < each ? terms - i : each;
			lw_pieces(lw, g.n->row_var, g.n->lanes, columns, &g);
		}
		lw->var[g.n->var] = base;
	}
	lw_close(lw);
}

static void rows(void *arg, int32_t terms)
{
	struct grouped *g = arg;
	struct marks m = lw_mark(g->lw);

	g->terms = terms;
	kern_scope(g->lw->b);
	lw_pieces(g->lw, g->n->row_var, g->n->lanes, columns, g);
	lw_release(g->lw, m);
	lw_close(g->lw);
}

void lw_group(lowering *lw, const loop_node *n)
{
	struct grouped g = {lw, n, &lw->k->eqn[n->eqn],
		lw->k->eqn[n->eqn].group};
	struct square q = {.g = &g};
	int32_t open;

	if (!lw_open_need(lw, n, &open))
		return;
	lw->vvar = n->row_var;
	lw->lanes = n->lanes;
	if (finds_squares(&g, &q))
		lw_pieces(lw, n->var, g.e->group * n->lanes, squares, &q);
	else
		lw_pieces(lw, n->var, g.e->group, rows, &g);
	lw->lanes = 1;
	lw->vvar = -1;
	lw_close_loops(lw, open);
}
