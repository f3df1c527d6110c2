/*
 * lower_expr.c: lowers the nodes of an equation to expressions on index forms.
 *
 * Consumes in_node trees over letters; produces interned expressions over the
 * box of the equation. Reads get flat addresses that are proved to be inside
 * their tensor under the guards that hold: affine ones here; data by the range
 * that its atom states, which generated code checks. f16 and bf16 are widened
 * when they are read.
 *
 *     x[n, y*2 + k - 1] else 0
 *     ->  select(inside(2*y + k - 1, 0, 8), x[8*n + 2*y + k - 1], 0)
 */
#include "notation/lex.h"
#include "system/lower.h"

#include <stdio.h>

enum { MAX_POINTS = 1 << 18 }; /* largest number of points that are tested one by one */

void lower_fail(const leq *c, const char *what, const char *fmt, ...)
{
	const char *row = ir_row_name(c->p->row);
	char rule[64], text[600];
	va_list ap;

	va_start(ap, fmt);
	text_vprint(text, sizeof text, fmt, ap);
	va_end(ap);
	snprintf(rule, sizeof rule, "%s.%s", row, what);
	env_fail(c->w->e, TN_EINVAL, rule, c->at, "%s: %s", row, text);
}

/* ---- bounds of data ---- */

/* All values that an integer tensor may have as an index. */
static void wide_range(tn_dtype t, int64_t *lo, int64_t *hi)
{
	if (dtype_size(t) == 8) {
		*lo = -IX_MOST_DATA;
		*hi = IX_MOST_DATA;
		return;
	}
	*lo = ir_int_least(t);
	*hi = ir_int_greatest(t) + 1;
}

/* ---- inside, by looking at every point ---- */

static bool next_point(const ix_box *b, const bool *used, int64_t *point)
{
	for (int32_t i = b->n - 1; i >= 0; i--) {
		if (!used[i])
			continue;
		if (++point[i] < b->extent[i])
			return true;
		point[i] = 0;
	}
	return false;
}

static bool only_used(const ix_form *f, const ix_box *b, const bool *used)
{
	for (int32_t i = 0; i < b->n; i++)
		if (!used[i] && ix_uses_axis(f, i))
			return false;
	return !ix_has_fun(f);
}

/* Do the facts on these axes alone allow this point? */
static bool allowed(const ix_dom *d, const bool *used, const int64_t *point)
{
	for (int32_t i = 0; i < d->n_facts; i++) {
		const ix_fact *k = &d->facts[i];
		int64_t v;

		if (!only_used(k->f, &d->box, used))
			continue;
		v = ix_eval(k->f, point, NULL, NULL);
		if (v < k->lo || v >= k->hi)
			return false;
	}
	return true;
}

static bool inside_by_points(const ix_dom *d, const ix_form *f, int64_t n)
{
	bool used[IX_MAX_AXES] = {false};
	int64_t point[IX_MAX_AXES] = {0}, points = 1;

	if (ix_has_fun(f) || d->box.n > IX_MAX_AXES)
		return false;
	for (int32_t i = 0; i < d->box.n; i++) {
		used[i] = ix_uses_axis(f, i);
		if (used[i] && (!mul_ok(points, d->box.extent[i], &points) ||
				       points > MAX_POINTS))
			return false;
	}
	do {
		int64_t v = ix_eval(f, point, NULL, NULL);

		if ((v < 0 || v >= n) && allowed(d, used, point))
			return false;
	} while (next_point(&d->box, used, point));
	return true;
}

bool lower_is_inside(leq *c, const ix_dom *d, const ix_form *f, int64_t n)
{
	int64_t min, max;

	(void)c;
	ix_range(d, f, &min, &max);
	return (min >= 0 && max < n) || inside_by_points(d, f, n);
}

/* "i + 1": an index in the letters of the row */
static const char *form_text(leq *c, const ix_dom *d, const ix_form *f)
{
	const char *name[IR_MAX_AXES] = {NULL};
	str s = str_new(c->w->a);

	for (int32_t i = 0; i < c->n_axes; i++)
		name[i] = c->axis[i].name;
	ir_form_print(&s, c->w->s, f, &d->box, name);
	return s.n < 200 ? s.at : "made of many parts";
}

const ix_form *lower_inside(leq *c, const ix_dom *d, const ix_form *f,
	int64_t n, const char *tensor, int32_t axis)
{
	const ix_form *r;
	int64_t min, max;

	if (lower_is_inside(c, d, f, n))
		return f;
	r = ix_bound_data(c->w->x, d, f, n);
	if (r != NULL)
		return r;
	if (n == 0)
		lower_fail(c, tensor,
			"%s cannot be read: its axis %d has no elements", tensor,
			axis);
	ix_range(d, f, &min, &max);
	lower_fail(c, tensor,
		"index %d of %s, %s, may be %lld .. %lld, but its extent is "
		"%lld",
		axis, tensor, form_text(c, d, f), (long long)min,
		(long long)max, (long long)n);
}

/* ---- forms ---- */

static const ix_form *read_address(leq *c, const ix_dom *d, const in_node *n);

static const ix_form *data_form(leq *c, const ix_dom *d, const in_node *n)
{
	const ix_form *at = read_address(c, d, n);
	int64_t lo, hi;

	wide_range(c->p->tensor[n->tensor].type.dtype, &lo, &hi);
	if (n->hi > n->lo) { /* a view that data moves: no farther than it may */
		lo = n->lo > lo ? n->lo : lo;
		hi = n->hi < hi ? n->hi : hi;
	}
	return ix_fun(c->w->x, c->tensor[n->tensor], at, lo, hi);
}

/* f with one atom replaced, inside floors and clamps, too */
static const ix_form *replace_atom(leq *c, const ix_dom *d, const ix_form *f,
	const ix_atom *old, const ix_form *by)
{
	ix *x = c->w->x;
	const ix_form *sum = ix_const(x, f->c0), *part = by;

	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;

		if (a->kind == IX_DIGIT)
			part = ix_digit(x, d, a->axis, a->lo, a->hi);
		else if (a->kind == IX_FUN)
			part = a == old ? by :
				ix_fun(x, a->fun, a->f, a->lo, a->hi);
		else if (a->kind == IX_FLOOR)
			part = ix_div(x, d, replace_atom(c, d, a->f, old, by),
				a->den);
		else
			part = ix_clamp(x, d,
				replace_atom(c, d, a->f, old, by), a->lo,
				a->hi);
		sum = ix_add(x, d, sum, ix_scale(x, part, f->t[i].coef));
	}
	return sum;
}

/*
 * Generated code computes with 64 bits, so forms must not exceed 2^62. Clamps
 * data to guarantee this, independently of guards:
 *
 *     x[4 * ids[i]] else 0   ->   4 * ids[i in -2^60 .. 2^60]
 */
static const ix_form *tame(leq *c, const ix_dom *d, const ix_form *f)
{
	const ix_form *r = f;
	int64_t n = 0, min, max;

	if (!ix_has_fun(f)) {
		ix_range(d, f, &min, &max);
		if (min < -IX_MOST_DATA || max >= IX_MOST_DATA)
			lower_fail(c, "overflow",
				"an index, %s, goes beyond 2^62",
				form_text(c, d, f));
		return f;
	}
	for (int32_t i = 0; i < f->n; i++)
		n += f->t[i].atom->kind == IX_FUN;
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;
		int64_t k = f->t[i].coef, lo, hi;

		if (a->kind != IX_FUN)
			continue;
		if (k == INT64_MIN || !mul_ok(k > 0 ? k : -k, n, &k))
			k = INT64_MAX;
		hi = k > IX_MOST_DATA ? 1 : IX_MOST_DATA / k;
		lo = a->lo > -hi ? a->lo : -hi;
		hi = a->hi < hi ? a->hi : hi;
		if (lo >= hi || (lo == a->lo && hi == a->hi))
			continue;
		r = replace_atom(c, d, r, a,
			ix_fun(c->w->x, a->fun, a->f, lo, hi));
	}
	return r;
}

static const ix_form *pos_form(const leq *c)
{
	if (c->pos == NULL)
		lower_fail(c, "pos", "pos cannot be used where the left side "
			"has data in an index");
	return c->pos;
}

const ix_form *lower_form(leq *c, const ix_dom *d, const in_node *n)
{
	ix *x = c->w->x;
	const ix_form *a;

	switch (n->kind) {
	case IN_INT:
		return ix_const(x, n->i);
	case IN_LETTER:
		if (c->axis_of[n->i] < 0)
			return ix_const(x, 0);
		/* guards may leave one value: t in the last of two rows */
		return ix_simplify(x, d, ix_axis(x, d, c->axis_of[n->i]));
	case IN_ADD:
		a = lower_form(c, d, n->arg[0]);
		a = ix_add(x, d, a, lower_form(c, d, n->arg[1]));
		return tame(c, d, a);
	case IN_SUB:
		a = lower_form(c, d, n->arg[0]);
		a = ix_sub(x, d, a, lower_form(c, d, n->arg[1]));
		return tame(c, d, a);
	case IN_MUL:
		if (n->arg[0]->kind == IN_INT)
			a = ix_scale(x, lower_form(c, d, n->arg[1]),
				n->arg[0]->i);
		else
			a = ix_scale(x, lower_form(c, d, n->arg[0]),
				n->arg[1]->i);
		return tame(c, d, a);
	case IN_DIV:
		return ix_div(x, d, lower_form(c, d, n->arg[0]), n->arg[1]->i);
	case IN_MOD:
		return ix_mod(x, d, lower_form(c, d, n->arg[0]), n->arg[1]->i);
	case IN_CLAMP:
		if (n->i < 1) /* an index into no elements: the read fails */
			return ix_const(x, 0);
		return ix_clamp(
			x, d, lower_form(c, d, n->arg[0]), 0, n->i - 1);
	case IN_POS:
		return ix_simplify(x, d, pos_form(c));
	case IN_READ:
		return data_form(c, d, n);
	case IN_REAL:
	case IN_CALL:
	case IN_WHERE:
	case IN_ELSE:
	case IN_INSIDE:
	case IN_CAST:
	case IN_STOP:
		break;
	}
	env_bug(c->w->e, "lower_form", "no index");
}

/* ---- reads ---- */

static const ix_form *read_address(leq *c, const ix_dom *d, const in_node *n)
{
	const in_tensor *t = &c->p->tensor[n->tensor];
	const ix_form *at[TN_MAX_RANK];

	if (n->flat)
		return lower_form(c, d, n->index[0]);
	for (int32_t i = 0; i < n->n_index; i++)
		at[i] = lower_inside(c, d, lower_form(c, d, n->index[i]),
			t->type.shape[i], t->name, i);
	return ix_linearise(
		c->w->x, d, t->type.rank, t->type.shape, at);
}

static const expr *widen(leq *c, const expr *e)
{
	return ex_cast(c->w->s, ir_wide(e->dtype), e);
}

static const expr *lower_read(leq *c, const ix_dom *d, const in_node *n)
{
	const ir_type *t = &c->p->tensor[n->tensor].type;
	tn_dtype wide = ir_wide(t->dtype);
	const ix_form *at;

	/* no elements to read, under a condition on data that cannot hold */
	if (c->n_guards > 0 && shape_numel(t->shape, t->rank) == 0)
		return dtype_is_float(wide) ? ex_const_f(c->w->s, wide, 0)
					    : ex_const_i(c->w->s, wide, 0);
	at = read_address(c, d, n);
	return widen(c, ex_read(c->w->s, c->tensor[n->tensor], at));
}

const expr *lower_and(leq *c, const expr *a, const expr *b)
{
	const expr *arg[IR_MAX_ARGS] = {a, b};

	return ir_call_simple(c->w->s, ir_scalar_find("and", 3), arg);
}

static const expr *yes(leq *c)
{
	return ex_const_i(c->w->s, TN_BOOL, 1);
}

/* guard and "every read in n is inside"; d has the facts of guard */
static const expr *guard_all(
	leq *c, ix_dom *d, const expr *guard, const in_node *n);

/* the read n, after the reads in its indices */
static const expr *guard_read(
	leq *c, ix_dom *d, const expr *guard, const in_node *n)
{
	const in_tensor *t = &c->p->tensor[n->tensor];
	ir_system *s = c->w->s;

	for (int32_t i = 0; i < n->n_index && !n->flat; i++) {
		const ix_form *f;
		const expr *one;

		guard = guard_all(c, d, guard, n->index[i]);
		if (guard->kind == EX_CONST && guard->c.i == 0)
			return guard;
		f = lower_form(c, d, n->index[i]);
		one = lower_is_inside(c, d, f, t->type.shape[i])
			? yes(c)
			: ir_inside_simple(s, d, f, 0, t->type.shape[i]);
		*d = ir_dom_when(s, d, one, true);
		guard = lower_and(c, guard, one);
	}
	return guard;
}

static const expr *guard_all(
	leq *c, ix_dom *d, const expr *guard, const in_node *n)
{
	if (n == NULL || n->kind == IN_ELSE || n->kind == IN_INSIDE)
		return guard;
	if (n->kind == IN_READ)
		return guard_read(c, d, guard, n);
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		guard = guard_all(c, d, guard, n->arg[i]);
	return guard;
}

static const expr *lower_else(leq *c, const ix_dom *d, const in_node *n)
{
	ix_dom in = *d, out;
	const expr *guard = guard_all(c, &in, yes(c), n->arg[0]), *a, *b;

	if (guard->kind == EX_CONST)
		return guard->c.i != 0 ? lower_expr(c, d, n->arg[0])
				       : lower_expr(c, d, n->arg[1]);
	out = ir_dom_when(c->w->s, d, guard, false);
	c->n_guards++;
	a = lower_expr(c, &in, n->arg[0]);
	b = lower_expr(c, &out, n->arg[1]);
	c->n_guards--;
	return ex_select(c->w->s, guard, a, b);
}

static const expr *lower_where(leq *c, const ix_dom *d, const in_node *n)
{
	const expr *guard = lower_expr(c, d, n->arg[0]), *a, *b;
	ix_dom in, out;

	if (guard->kind == EX_CONST)
		return lower_expr(c, d, n->arg[guard->c.i != 0 ? 1 : 2]);
	in = ir_dom_when(c->w->s, d, guard, true);
	out = ir_dom_when(c->w->s, d, guard, false);
	c->n_guards++;
	a = lower_expr(c, &in, n->arg[1]);
	b = lower_expr(c, &out, n->arg[2]);
	c->n_guards--;
	return ex_select(c->w->s, guard, a, b);
}

/* ---- calls ---- */

/* Index arithmetic without data: it becomes a form. */
static bool is_affine(const in_node *n)
{
	if (n->kind == IN_INT || n->kind == IN_LETTER || n->kind == IN_POS)
		return n->dtype == TN_I64;
	if (n->kind < IN_ADD || n->kind > IN_CLAMP)
		return false;
	return is_affine(n->arg[0]) &&
		(n->kind == IN_CLAMP || is_affine(n->arg[1]));
}

/* a op b for index arithmetic: a range of a - b; NULL: not a comparison */
static const expr *compare(
	leq *c, const ix_dom *d, const lex_operator *op, const in_node *n)
{
	ir_system *s = c->w->s;
	const ix_form *f;
	int64_t min, max, lo, hi;
	const expr *e, *arg[IR_MAX_ARGS] = {0};
	bool ne = strcmp(op->symbol, "!=") == 0;

	f = lower_form(c, d, n->arg[0]);
	f = ix_sub(c->w->x, d, f, lower_form(c, d, n->arg[1]));
	ix_range(d, f, &min, &max);
	lo = min;
	hi = max < INT64_MAX ? max + 1 : max;
	if (op->symbol[0] == '<') {
		hi = op->symbol[1] == '=' ? 1 : 0;
	} else if (op->symbol[0] == '>') {
		lo = op->symbol[1] == '=' ? 0 : 1;
	} else { /* == and != */
		lo = 0;
		hi = 1;
	}
	e = ir_inside_simple(s, d, f, lo, hi);
	if (!ne)
		return e;
	arg[0] = e;
	return ex_call(s, ir_scalar_find("not", 3), arg);
}

static const expr *lower_call(leq *c, const ix_dom *d, const in_node *n)
{
	const ir_scalar *row = ir_scalar_at(n->fn);
	const lex_operator *op = lex_operator_of(row->name);
	const expr *arg[IR_MAX_ARGS] = {0};

	if (op != NULL && op->level == LEX_COMPARE && is_affine(n->arg[0]) &&
		is_affine(n->arg[1]))
		return compare(c, d, op, n);
	for (int32_t i = 0; i < row->n_args; i++)
		arg[i] = lower_expr(c, d, n->arg[i]);
	return ir_call_simple(c->w->s, n->fn, arg);
}

static const expr *lower_inside_test(
	leq *c, const ix_dom *d, const in_node *n)
{
	ix_dom in = *d;

	return guard_read(c, &in, yes(c), n->arg[0]);
}

const expr *lower_expr(leq *c, const ix_dom *d, const in_node *n)
{
	ir_system *s = c->w->s;
	const expr *e;

	switch (n->kind) {
	case IN_INT:
		return ex_const_i(s, ir_wide(n->dtype), n->i);
	case IN_REAL:
		return ex_const_f(s, ir_wide(n->dtype), n->f);
	case IN_LETTER:
	case IN_ADD:
	case IN_SUB:
	case IN_MUL:
	case IN_DIV:
	case IN_MOD:
	case IN_CLAMP:
	case IN_POS:
		return ex_index(s, lower_form(c, d, n));
	case IN_READ:
		return lower_read(c, d, n);
	case IN_CALL:
		return lower_call(c, d, n);
	case IN_WHERE:
		return lower_where(c, d, n);
	case IN_ELSE:
		return lower_else(c, d, n);
	case IN_INSIDE:
		return lower_inside_test(c, d, n);
	case IN_CAST:
		e = lower_expr(c, d, n->arg[0]);
		return widen(c, ex_cast(s, n->dtype, e));
	case IN_STOP:
		return lower_expr(c, d, n->arg[0]);
	}
	env_bug(c->w->e, "lower_expr", "unknown kind of node");
}
