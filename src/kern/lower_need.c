/*
 * lower_need.c: restricts loops to iterations that do something.
 *
 * Consumes conditions that hold wherever a node does anything (loop_node.need);
 * produces a shorter interval of one of its variables, or an empty one:
 *
 *   sums over k of x[i, k] * y[k, j] where k <= i, in a tile of rows b .. e
 *     for %k = lo .. min(hi, e)
 *
 * For the other variables it uses their intervals (near: their current values),
 * so some remaining iterations may do nothing: bodies keep their guards.
 */
#include "kern/lower.h"

static bool is_walked(const loop_node *n, int32_t var)
{
	for (n = n->up; n != NULL; n = n->up)
		if (n->kind == LOOP_FOR && n->var == var)
			return true;
	return false;
}

/* The largest or smallest value of f without its terms of `but`. */
static form end_of(lowering *lw, const loop_node *n, const ix_form *f,
	int32_t but, bool largest)
{
	form s = lw_num(lw, f->c0);

	for (int32_t i = 0; i < f->n; i++) {
		int32_t v = f->t[i].atom->axis;
		int64_t c = f->t[i].coef;
		const struct span *p = &lw->span[v];
		form x;

		if (v == but)
			continue;
		if (n->near && is_walked(n, v))
			x = lw_var(lw, v);
		else if (largest == (c > 0))
			x = lw_addc(lw, p->hi, -1);
		else
			x = p->lo;
		s = lw_add(lw, s, lw_scale(lw, x, c));
	}
	return s;
}

/* Rounds an end of the interval to whole vectors from its start. */
static form in_lanes(
	lowering *lw, form lo, form at, int32_t lanes, bool up)
{
	form n;

	if (lanes <= 1)
		return at;
	n = lw_addc(lw, lw_sub(lw, at, lo), up ? lanes - 1 : 0);
	n = kern_div(lw->b, kern_max(lw->b, n, lw_num(lw, 0)), lanes);
	return lw_add(lw, lo, lw_scale(lw, n, lanes));
}

/* Restricts the interval to `from` .. `to`. */
static void cut_off(lowering *lw, const loop_node *n, int32_t var,
	form from, form to)
{
	struct span *s = &lw->span[var], old = *s;
	int32_t lanes = n->kind == LOOP_FOR ? n->lanes : 1;
	bool whole = lanes > 1 && old.len >= 0 && old.len % lanes == 0;

	*s = (struct span){old.lo, old.hi, -1, -1, -1,
		lanes > 1 ? old.mult : 1, whole ? lanes : 0, 0, 0, 0};
	if (from != NULL)
		s->lo = kern_max(lw->b, old.lo,
			in_lanes(lw, old.lo, from, lanes, false));
	else
		s->clo = old.clo;
	if (to != NULL)
		s->hi = kern_min(lw->b, old.hi,
			in_lanes(lw, old.lo, to, lanes, true));
}

/*
 * Restricts var by lo <= rest + stride * var < hi, for any rest in its range.
 */
static void narrow(lowering *lw, const loop_node *n, const ix_fact *f,
	int32_t var, int64_t stride)
{
	form min = end_of(lw, n, f->f, var, false);
	form max = end_of(lw, n, f->f, var, true);
	form from = NULL, to = NULL;

	if (stride > 0 && f->lo != INT64_MIN)
		from = lw_sub(lw, lw_num(lw, f->lo), max);
	if (stride > 0 && f->hi != INT64_MAX)
		to = lw_sub(lw, lw_num(lw, f->hi), min);
	if (stride < 0 && f->hi != INT64_MAX)
		from = lw_addc(lw, min, 1 - f->hi);
	if (stride < 0 && f->lo != INT64_MIN)
		to = lw_addc(lw, max, 1 - f->lo);
	cut_off(lw, n, var, from, to);
}

/* Can the fact hold for some values in the intervals? */
static val may_hold(lowering *lw, const loop_node *n, const ix_fact *f)
{
	val c = lw_bool(lw, true);

	if (f->hi != INT64_MAX)
		c = lw_inside(lw, end_of(lw, n, f->f, -1, false), INT64_MIN,
			f->hi);
	if (f->lo != INT64_MIN) {
		val d = lw_inside(lw, end_of(lw, n, f->f, -1, true), f->lo,
			INT64_MAX);

		c = f->hi == INT64_MAX ? d : lw_and(lw, c, d);
	}
	return c;
}

bool lw_open_need(lowering *lw, const loop_node *n, int32_t *open)
{
	val c = lw_bool(lw, true);
	bool on = true;

	*open = 0;
	for (int32_t i = 0; i < n->n_needs; i++) {
		val d = may_hold(lw, n, &n->need[i]);

		if (!lw_is_const(lw, d, &on) || !on)
			c = lw_and(lw, c, d);
	}
	if (lw_is_const(lw, c, &on))
		return on;
	lw_if(lw, c);
	*open = 1;
	return true;
}

/* Does a condition hold for all values in the intervals? false: it may not. */
val lw_always(lowering *lw, const loop_node *n, const expr *c)
{
	val all = lw_bool(lw, true);
	int64_t s;

	if (c->kind == EX_CALL && c->fn == lw->fn.and)
		return lw_and(lw, lw_always(lw, n, c->arg[0]), lw_always(lw, n, c->arg[1]));
	if (c->kind != EX_INSIDE || ix_has_fun(c->form))
		return lw_bool(lw, false);
	for (int32_t i = 0; i < c->form->n; i++) {
		const ix_atom *a = c->form->t[i].atom;

		if (a->kind != IX_DIGIT || !ix_stride(c->form, a->axis,
						 lw->k->var[a->axis].extent, &s))
			return lw_bool(lw, false);
	}
	if (c->lo != INT64_MIN)
		all = lw_inside(lw, end_of(lw, n, c->form, -1, false), c->lo, INT64_MAX);
	if (c->hi != INT64_MAX)
		all = lw_and(lw, all, lw_inside(lw, end_of(lw, n, c->form, -1, true),
					      INT64_MIN, c->hi));
	return all;
}

/* Makes the interval empty if the fact cannot hold. */
static void close(lowering *lw, const loop_node *n, const ix_fact *f,
	int32_t var)
{
	struct span *s = &lw->span[var];
	val c;

	if (f->hi == INT64_MAX && f->lo == INT64_MIN)
		return;
	c = may_hold(lw, n, f);
	s->hi = kern_pick(lw->b, c.id, s->hi, s->lo);
	s->chi = s->len = -1;
	s->whole = s->most = 0;
}

/* The variable of f whose interval can be restricted; -1: none. */
static int32_t narrowed(
	const lowering *lw, const loop_node *n, const ix_form *f, int64_t *stride)
{
	int32_t m = n->kind == LOOP_TILE ? n->n_sums : 1;

	if (n->kind == LOOP_STAGE)
		return -1;
	for (int32_t i = 0; i < m; i++) {
		int32_t v = n->kind == LOOP_TILE ? n->sum[i] : n->var;

		if (ix_stride(f, v, lw->k->var[v].extent, stride) &&
			(*stride == 1 || *stride == -1))
			return v;
	}
	return -1;
}

void lw_narrow_to_need(lowering *lw, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_needs; i++) {
		const ix_fact *f = &n->need[i];
		int64_t stride;
		int32_t v = narrowed(lw, n, f->f, &stride);

		if (v >= 0)
			narrow(lw, n, f, v, stride);
		else
			close(lw, n, f,
				n->kind == LOOP_TILE	? n->sum[0]
				: n->kind == LOOP_STAGE ? n->row_var
							: n->var);
	}
}
