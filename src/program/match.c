/*
 * match.c: replaces an axis that a condition compares with data by the data.
 *
 * Consumes an equation whose body is the identity of its reduction unless
 * ids == n; produces the same without axis n, which is ids now. If n is an axis
 * of the result, that is push form; else reads at n become reads at ids.
 *
 *     m[n:30000, r:64] max= sel(ids[j] == index(n), u[64*j + r], -inf) for j:4096
 *     m{r + 64*at[j in -1..30000]}[r:64] max= sel(inside(at[j ..], 0, 30000), ..)
 *
 * Here at[j] is ids[j] where that is an element of axis n, else -1. So no index
 * is out of range, whatever ids are.
 */
#include "program/local.h"

/* ids[j] == index(n) + c0, where ids is any integer expression */
typedef struct match {
	int32_t axis;
	const expr *test, *data;
	int64_t c0;
} match;

typedef VEC(const expr *) exprs;

static void list_tests(lower *w, const expr *e, int32_t eq, exprs *found)
{
	if (!ex_first(w->s, e))
		return;
	if (e->kind == EX_CALL && e->fn == eq)
		*vec_push(w->a, found) = e;
	for (int32_t i = 0; i < e->n_args; i++)
		list_tests(w, e->arg[i], eq, found);
}

static const expr *without_casts(const expr *e)
{
	while (e->kind == EX_CAST && !dtype_is_float(e->dtype))
		e = e->arg[0];
	return e;
}

/* Is e the index of an axis, plus c0, without a loss in a cast? */
static int32_t axis_of(const sys_eqn *q, const expr *e, int64_t *c0)
{
	const expr *bare = without_casts(e);
	const ix_atom *a;

	if (bare->kind != EX_INDEX || bare->form->n != 1 ||
		bare->form->t[0].coef != 1)
		return -1;
	a = bare->form->t[0].atom;
	*c0 = bare->form->c0;
	if (a->kind != IX_DIGIT || a->lo != 1 ||
		a->hi < q->axis[a->axis].extent)
		return -1;
	for (const expr *c = e; c != bare; c = c->arg[0])
		if (c->dtype == TN_BOOL || *c0 < ir_int_least(c->dtype) ||
			*c0 > ir_int_greatest(c->dtype) -
					q->axis[a->axis].extent)
			return -1;
	return a->axis;
}

static bool uses_axis(const expr *e, int32_t axis)
{
	if (e->form != NULL && ix_uses_axis(e->form, axis))
		return true;
	for (int32_t i = 0; i < e->n_args; i++)
		if (uses_axis(e->arg[i], axis))
			return true;
	return false;
}

static double points(const sys_eqn *e, int32_t from, int32_t to)
{
	double n = 1;

	for (int32_t i = from; i < to; i++)
		n *= (double)e->axis[i].extent;
	return n;
}

/*
 * Does the equation have so many more points with the axis? A result is written
 * once in any case, so an axis of the result counts by what it reduces.
 */
static bool is_worth(const sys_eqn *e, int32_t axis)
{
	if (axis >= e->n_left)
		return e->axis[axis].extent > LEFT_MOST_MASKED;
	return e->n_out == 1 && e->axis[axis].extent > LEFT_MOST_MASKED &&
	       points(e, e->n_left, e->n_axes) > LEFT_MOST_MASKED;
}

static bool fits(leq *c, const sys_eqn *e, const expr *test, bool turned,
	match *m)
{
	lower *w = c->w;
	tn_dtype t = test->arg[0]->dtype;

	*m = (match){.test = test, .data = test->arg[turned ? 1 : 0]};
	if (dtype_is_float(t) || t == TN_BOOL ||
		ex_list_reads(w->s, m->data).n == 0)
		return false;
	m->axis = axis_of(e, test->arg[turned ? 0 : 1], &m->c0);
	if (m->axis < 0 || e->axis[m->axis].kind == AXIS_S ||
		!is_worth(e, m->axis) || uses_axis(m->data, m->axis))
		return false;
	for (int32_t k = 0; k < e->n_out; k++)
		if (ex_decided(w->s, e->body[k], test, false) !=
			ir_identity(w->s, e->monoid, k, c->want[k]))
			return false;
	return true;
}

static bool find_match(leq *c, const sys_eqn *e, match *m)
{
	exprs tests = {0};

	ex_visit(c->w->s);
	list_tests(c->w, e->body[0], ir_scalar_find("eq", 2), &tests);
	for (int32_t i = 0; i < tests.n; i++)
		for (int32_t turned = 0; turned < 2; turned++)
			if (fits(c, e, tests.at[i], turned == 1, m))
				return true;
	return false;
}

/* ---- the data as a tensor ---- */

static const expr *compare(lower *w, const char *fn, const expr *a, int64_t b)
{
	const expr *arg[IR_MAX_ARGS] = {a, ex_const_i(w->s, TN_I64, b)};

	return ex_call(w->s, ir_scalar_find(fn, strlen(fn)), arg);
}

/* at = data - c0 where that is an element of the axis, else -1 */
static const expr *place_of(leq *c, const sys_eqn *e, const match *m)
{
	ir_system *s = c->w->s;
	int64_t n = e->axis[m->axis].extent;
	const expr *v = ex_cast(s, TN_I64, m->data);
	const expr *arg[IR_MAX_ARGS] = {v, ex_const_i(s, TN_I64, m->c0)};
	const expr *in = lower_and(c, compare(c->w, "ge", v, m->c0),
		compare(c->w, "lt", v, m->c0 + n));

	if (m->c0 != 0)
		v = ex_call(s, ir_scalar_find("sub", 3), arg);
	return ex_select(s, in, v, ex_const_i(s, TN_I64, -1));
}

/*
 * The tensor of at, over the axes that the data uses; *flat: the element of the
 * point. -1: these are too many axes for a tensor.
 */
static int32_t place_tensor(
	leq *c, const sys_eqn *e, const match *m, const ix_form **flat)
{
	lower *w = c->w;
	ix_dom d = {.box = ir_eqn_box(w->s, e)}, own;
	const ix_form *with[IR_MAX_AXES], *at[IR_MAX_AXES];
	int64_t shape[TN_MAX_RANK];
	const expr *place = place_of(c, e, m);
	sys_eqn q = {.monoid = IR_SET,
		.n_out = 1,
		.label = e->label,
		.op = e->op,
		.call = e->call,
		.scan_axis = -1};
	str key = str_new(w->a);
	int64_t found;

	for (int32_t i = 0; i < e->n_axes; i++) {
		if (!uses_axis(place, i))
			continue;
		if (q.n_axes == TN_MAX_RANK)
			return -1;
		at[q.n_axes] = ix_axis(w->x, &d, i);
		shape[q.n_axes] = e->axis[i].extent;
		q.axis[q.n_axes] = e->axis[i];
		q.axis[q.n_axes++].kind = AXIS_P;
	}
	q.n_left = q.n_axes;
	*flat = ix_linearise(w->x, &d, q.n_axes, shape, at);
	own = (ix_dom){.box = ir_eqn_box(w->s, &q)};
	for (int32_t i = 0, n = 0; i < e->n_axes; i++)
		with[i] = uses_axis(place, i) ? ix_axis(w->x, &own, n++)
					      : ix_const(w->x, 0);
	q.body[0] = ex_subst(w->s, &own, place, e->n_axes, d.box.extent, with,
		NULL, NULL);
	str_printf(&key, "match %d", q.body[0]->id);
	for (int32_t i = 0; i < q.n_axes; i++)
		str_printf(&key, " %lld", (long long)shape[i]);
	found = map_get(w->merged, key.at, key.n, -1);
	if (found >= 0)
		return w->s->eqn.at[found].out[0];
	q.out[0] = ir_add_tensor(w->s, arena_printf(w->a, "%s.at",
		w->p->value.at[w->p->call.at[c->number].result[0]].name),
		TN_I64, q.n_axes, shape);
	found = ir_add_eqn(w->s, &q);
	map_set(w->merged, key.at, key.n, found);
	return q.out[0];
}

/* ---- replacing ---- */

/* e without the axis, which is ids; the old axes as forms over the new ones */
static void drop_axis(leq *c, sys_eqn *e, const match *m, int32_t place,
	const ix_form *flat, const ix_form **with, const ix_form **at)
{
	lower *w = c->w;
	ix_dom old = {.box = ir_eqn_box(w->s, e)}, d;
	int64_t n = e->axis[m->axis].extent;
	int32_t last = e->n_axes - 1;

	for (int32_t i = m->axis; i < last; i++)
		e->axis[i] = e->axis[i + 1];
	e->n_axes = last;
	e->n_left -= m->axis < e->n_left;
	d = (ix_dom){.box = ir_eqn_box(w->s, e)};
	for (int32_t i = 0; i <= last; i++)
		with[i] = i == m->axis
			? ix_const(w->x, 0)
			: ix_axis(w->x, &d, i - (i > m->axis));
	*at = ix_fun(w->x, place,
		ix_subst(w->x, &d, flat, last + 1, old.box.extent, with), -1, n);
	with[m->axis] = ix_clamp(w->x, &d, *at, 0, n - 1);
}

static bool replace(leq *c, sys_eqn *e, const match *m)
{
	lower *w = c->w;
	const ix_form *with[IR_MAX_AXES], *flat, *at, *push = e->push;
	ix_dom old = {.box = ir_eqn_box(w->s, e)}, d;
	int64_t n = e->axis[m->axis].extent;
	int32_t place = place_tensor(c, e, m, &flat);
	const expr *guard;

	if (place < 0)
		return false;
	if (push == NULL && m->axis < e->n_left)
		push = ir_left_number(w->s, e);
	drop_axis(c, e, m, place, flat, with, &at);
	d = (ix_dom){.box = ir_eqn_box(w->s, e)};
	guard = ex_inside(w->s, at, 0, n);
	if (push != NULL)
		e->push = ix_subst(
			w->x, &d, push, old.box.n, old.box.extent, with);
	for (int32_t k = 0; k < e->n_out; k++) {
		const expr *b = ex_decided(w->s, e->body[k], m->test, true);

		b = ex_subst(w->s, &d, b, old.box.n, old.box.extent, with, NULL,
			NULL);
		e->body[k] = ex_select(w->s, guard, b,
			ir_identity(w->s, e->monoid, k, c->want[k]));
	}
	return true;
}

void prog_match(leq *c, sys_eqn *e)
{
	match m;

	while (e->monoid != IR_SET && find_match(c, e, &m))
		if (!replace(c, e, &m))
			return;
}
