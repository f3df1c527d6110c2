/*
 * subst.c: substitutes equations into each other, and joins axes.
 *
 * Replacement: a read of p.out in c becomes the body of p, with p's axes replaced
 * by the coordinates of the element read, simplified under the guards there:
 *
 *     t[i,j] = exp(x[6i+j]);  o[k] = t[k] + 1      ->   o[k] = exp(x[k]) + 1
 *
 * Coalescing: neighbours a, b of one kind become one axis when every form of
 * the equation has coef(a) = coef(b) * extent(b), or neither:
 *
 *     o[i,j] = x[6i+j] * y[6i+j]                   ->   o[k] = x[k] * y[k]
 */
#include "eqn/local.h"

enum { MAX_DEPTH = 500 };

/* The box of an equation, its axes; of an initial value, the left axes. */
ix_box eqn_box(arena *a, const sys_eqn *e)
{
	int64_t *extent = arena_array(a, int64_t, e->n_axes + 1);

	for (int32_t i = 0; i < e->n_axes; i++)
		extent[i] = e->axis[i].extent;
	return (ix_box){.n = e->n_axes, .extent = extent};
}

ix_box eqn_init_box(eqn_graph *g, const sys_eqn *e)
{
	ix_box b = eqn_box(g->a, e);
	int64_t *all;

	b.n = e->n_left;
	if (e->push == NULL)
		return b;
	all = arena_array(g->a, int64_t, 1);
	*all = g->s->tensor.at[e->out[0]].numel;
	return (ix_box){.n = 1, .extent = all};
}

/* ---- replacement ---- */

bool eqn_is_movement(const sys_eqn *e)
{
	const expr *b = e->body[0];

	if (e->monoid != IR_SET || e->n_out != 1 || e->push != NULL ||
		e->opaque != NULL || e->scan_step != 0 ||
		e->n_axes != e->n_left)
		return false;
	if (b->kind == EX_CAST && b->arg[0]->kind == EX_INDEX)
		b = b->arg[0];
	if (b->kind == EX_CONST || b->kind == EX_INDEX)
		return b->form == NULL || !ix_has_fun(b->form);
	return b->kind == EX_READ && !ix_has_fun(b->form);
}

void eqn_replace(eqn_graph *g, const sys_eqn *p)
{
	g->replace[p->out[0]] = p;
}

void eqn_keep(eqn_graph *g, const sys_eqn *p)
{
	g->replace[p->out[0]] = NULL;
}

/* The coordinates of element `at` of the result of p. */
static void coordinates(eqn_graph *g, const sys_eqn *p, const ix_dom *d,
	const ix_form *at, int64_t *extent, const ix_form **with)
{
	for (int32_t i = 0; i < p->n_axes; i++)
		extent[i] = p->axis[i].extent;
	ix_delinearise(g->s->x, d, at, p->n_left, extent, with);
}

static bool is_checked(const eqn_graph *g, const ix_atom *t)
{
	int32_t bits = 8 * (int32_t)dtype_size(g->s->tensor.at[t->fun].dtype);
	int64_t all = (int64_t)1 << (bits < 50 ? bits : 50);

	return t->lo > -all && t->hi < all && t->hi - t->lo < all;
}

/* Does `in` load the data of atom f, with the check of its bounds? */
static bool loads(ir_system *s, const expr *in, const ix_atom *t)
{
	ex_reads r = ex_list_reads(s, in);

	for (int32_t i = 0; i < r.n; i++)
		if (r.at[i].is_index && r.at[i].tensor == t->fun &&
			r.at[i].at == t->f)
			return true;
	return false;
}

/*
 * Does e still check all indices that f checks? A check is lost if the element
 * read does not depend on the index: along an axis of extent 1 of a tensor that
 * was broadcast.
 */
static bool checks(const eqn_graph *g, const ix_form *f, const expr *e)
{
	if (!ix_has_fun(f))
		return true;
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind == IX_FUN && is_checked(g, t) &&
			!loads(g->s, e, t))
			return false;
		if (t->kind != IX_DIGIT && !checks(g, t->f, e))
			return false;
	}
	return true;
}

static const expr *swap_read(void *arg, const expr *read, const ix_dom *d)
{
	eqn_graph *g = arg;
	const sys_eqn *p = g->replace[read->tensor];
	int64_t extent[IR_MAX_AXES];
	const ix_form *with[IR_MAX_AXES];
	const expr *e;

	if (p == NULL)
		return NULL;
	coordinates(g, p, d, read->form, extent, with);
	e = ex_subst(g->s, d, p->body[0], p->n_axes, extent, with, NULL, NULL);
	if (e->dtype != read->dtype)
		e = ex_cast(g->s, read->dtype, e);
	return checks(g, read->form, e) ? e : NULL;
}

/* Replaces fun atoms of index tensors that are movements by atoms of the source. */
static const ix_form *form_without(
	eqn_graph *g, const ix_dom *d, const ix_form *f, int32_t depth);

static const ix_form *fun_without(
	eqn_graph *g, const ix_dom *d, const ix_atom *t, int32_t depth)
{
	const sys_eqn *p = g->replace[t->fun];
	ix *x = g->s->x;
	const ix_form *at = form_without(g, d, t->f, depth), *from;
	int64_t extent[IR_MAX_AXES];
	const ix_form *with[IR_MAX_AXES];

	if (p == NULL || p->body[0]->kind != EX_READ)
		return ix_fun(x, t->fun, at, t->lo, t->hi);
	coordinates(g, p, d, at, extent, with);
	from = ix_subst(x, d, p->body[0]->form, p->n_axes, extent, with);
	if (!checks(g, at, ex_index(g->s, from)))
		return ix_fun(x, t->fun, at, t->lo, t->hi);
	return ix_fun(x, p->body[0]->tensor, from, t->lo, t->hi);
}

static const ix_form *form_without(
	eqn_graph *g, const ix_dom *d, const ix_form *f, int32_t depth)
{
	ix *x = g->s->x;
	const ix_form *sum = ix_const(x, f->c0), *part = NULL;

	if (!ix_has_fun(f))
		return f;
	if (depth > MAX_DEPTH)
		env_bug(arena_env(g->a), "eqn.subst", "form too deep");
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		switch (t->kind) {
		case IX_DIGIT:
			part = ix_digit(x, d, t->axis, t->lo, t->hi);
			break;
		case IX_FLOOR:
			part = ix_div(x, d, form_without(g, d, t->f, depth + 1),
				t->den);
			break;
		case IX_CLAMP:
			part = ix_clamp(x, d,
				form_without(g, d, t->f, depth + 1), t->lo,
				t->hi);
			break;
		case IX_FUN:
			part = fun_without(g, d, t, depth + 1);
			break;
		}
		sum = ix_add(x, d, sum, ix_scale(x, part, f->t[i].coef));
	}
	return sum;
}

typedef struct forms {
	eqn_graph *g;
	ix_dom dom;
	map *done;
	VEC(const expr *) made;
} forms;

static const expr *expr_without(forms *w, const expr *e, int32_t depth)
{
	ir_system *s = w->g->s;
	int64_t found = map_get(w->done, &e->id, sizeof e->id, -1);
	const expr *arg[IR_MAX_ARGS] = {NULL}, *r = e;
	const ix_form *f = NULL;

	if (found >= 0)
		return w->made.at[found];
	if (depth > MAX_DEPTH)
		env_bug(arena_env(w->g->a), "eqn.subst", "expression too deep");
	if (e->form != NULL)
		f = form_without(w->g, &w->dom, e->form, 0);
	for (int32_t i = 0; i < e->n_args; i++)
		arg[i] = expr_without(w, e->arg[i], depth + 1);
	switch (e->kind) {
	case EX_CONST:
	case EX_PARAM:
		break;
	case EX_INDEX:
		r = ex_index(s, f);
		break;
	case EX_READ:
		r = ex_read(s, e->tensor, f);
		break;
	case EX_CALL:
		r = ex_call(s, e->fn, arg);
		break;
	case EX_SELECT:
		r = ex_select(s, arg[0], arg[1], arg[2]);
		break;
	case EX_INSIDE:
		r = ex_inside(s, f, e->lo, e->hi);
		break;
	case EX_CAST:
		r = ex_cast(s, e->dtype, arg[0]);
		break;
	}
	map_set(w->done, &e->id, sizeof e->id, w->made.n);
	*vec_push(w->g->scratch, &w->made) = r;
	return r;
}

/* Lists the reads of an expression that are to be replaced. */
static void wanted(eqn_graph *g, const expr *e, bool *plain, bool *index)
{
	ex_reads r = ex_list_reads(g->s, e);

	for (int32_t i = 0; i < r.n; i++) {
		if (g->replace[r.at[i].tensor] == NULL)
			continue;
		if (r.at[i].is_index)
			*index = true;
		else
			*plain = true;
	}
}

static const expr *inlined(eqn_graph *g, ix_box box, const expr *e)
{
	ix_dom d = {.box = box};
	bool plain = false, index = false;
	const ix_form *with[IR_MAX_AXES];

	wanted(g, e, &plain, &index);
	if (index) {
		forms w = {.g = g, .dom = d, .done = map_new(g->scratch)};

		e = expr_without(&w, e, 0);
	}
	if (!plain)
		return e;
	for (int32_t i = 0; i < box.n; i++)
		with[i] = ix_axis(g->s->x, &d, i);
	return ex_subst(g->s, &d, e, box.n, box.extent, with, swap_read, g);
}

/*
 * A read of a tensor may be inside an index and not bare: then it is not replaced,
 * and the caller sees it in the reads of the result.
 */
sys_eqn eqn_inline(eqn_graph *g, const sys_eqn *e)
{
	sys_eqn r = *e;
	ix_box box = eqn_box(g->a, e), init = eqn_init_box(g, e);
	ix_dom d = {.box = box};

	for (int32_t k = 0; k < e->n_out; k++) {
		if (e->body[k] != NULL)
			r.body[k] = inlined(g, box, e->body[k]);
		if (e->init[k] != NULL)
			r.init[k] = inlined(g, init, e->init[k]);
	}
	if (e->push != NULL)
		r.push = form_without(g, &d, e->push, 0);
	r.is_view = e->is_view && r.body[0]->kind == EX_READ;
	return r;
}

/* ---- coalescing ---- */

typedef struct joins {
	const sys_eqn *e;
	bool bad[IR_MAX_AXES]; /* axis i does not join with i + 1 */
	map *seen;
} joins;

static void ask_form(joins *w, const ix_form *f, int32_t n_axes, int32_t depth)
{
	int64_t coef[IR_MAX_AXES] = {0};

	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind != IX_DIGIT) {
			if (depth < MAX_DEPTH)
				ask_form(w, t->f, n_axes, depth + 1);
			continue;
		}
		if (t->lo != 1 || t->hi != w->e->axis[t->axis].extent) {
			w->bad[t->axis] = true; /* cut */
			if (t->axis > 0)
				w->bad[t->axis - 1] = true;
			continue;
		}
		coef[t->axis] = f->t[i].coef;
	}
	for (int32_t a = 0; a + 1 < n_axes; a++) {
		int64_t want;

		if (!mul_ok(coef[a + 1], w->e->axis[a + 1].extent, &want) ||
			coef[a] != want)
			w->bad[a] = true;
	}
}

static void ask_expr(joins *w, const expr *e, int32_t n_axes, int32_t depth)
{
	if (map_get(w->seen, &e->id, sizeof e->id, 0) != 0)
		return;
	map_set(w->seen, &e->id, sizeof e->id, 1);
	if (e->form != NULL)
		ask_form(w, e->form, n_axes, 0);
	for (int32_t i = 0; i < e->n_args && depth < MAX_DEPTH; i++)
		ask_expr(w, e->arg[i], n_axes, depth + 1);
}

/* Finds the neighbours that can be joined; false: none. */
static bool find_joins(arena *scratch, joins *w)
{
	const sys_eqn *e = w->e;
	bool any = false;

	for (int32_t k = 0; k < e->n_out; k++) {
		if (e->body[k] != NULL) {
			w->seen = map_new(scratch);
			ask_expr(w, e->body[k], e->n_axes, 0);
		}
		if (e->init[k] != NULL && e->push == NULL) {
			w->seen = map_new(scratch);
			ask_expr(w, e->init[k], e->n_left, 0);
		}
	}
	if (e->push != NULL)
		ask_form(w, e->push, e->n_axes, 0);
	for (int32_t i = 0; i + 1 < e->n_axes; i++) {
		w->bad[i] |= e->axis[i].kind != e->axis[i + 1].kind ||
			     e->axis[i].kind == AXIS_S || i + 1 == e->n_left;
		any |= !w->bad[i];
	}
	return any;
}

static const expr *over(ir_system *s, const ix_dom *d, const expr *e, int32_t n,
	const int64_t *old, const ix_form *const *with)
{
	return e == NULL ? NULL : ex_subst(s, d, e, n, old, with, NULL, NULL);
}

static const char *joined_name(ir_system *s, const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a == NULL ? b : a;
	return arena_printf(s->a, "%s%s", a, b);
}

static bool coalesce_once(eqn_graph *g, const sys_eqn *e, sys_eqn *out)
{
	ir_system *s = g->s;
	joins w = {.e = e};
	sys_eqn r = *e;
	int32_t to[IR_MAX_AXES];
	const ix_form *with[IR_MAX_AXES];
	int64_t old[IR_MAX_AXES], *extent, inner = 1;
	ix_dom d, init;

	if (e->n_axes < 2 || e->opaque != NULL || !find_joins(g->scratch, &w))
		return false;
	r.n_axes = 0;
	for (int32_t i = 0; i < e->n_axes; i++) {
		old[i] = e->axis[i].extent;
		if (i > 0 && !w.bad[i - 1]) {
			sys_axis *a = &r.axis[r.n_axes - 1];

			a->extent *= old[i];
			a->name = joined_name(s, a->name, e->axis[i].name);
		} else {
			r.axis[r.n_axes++] = e->axis[i];
		}
		to[i] = r.n_axes - 1;
	}
	r.n_left = e->n_left == 0 ? 0 : to[e->n_left - 1] + 1;
	for (int32_t i = 0; i < e->n_axes; i++)
		if (i == e->scan_axis)
			r.scan_axis = to[i];
	extent = arena_array(s->a, int64_t, r.n_axes);
	for (int32_t i = 0; i < r.n_axes; i++)
		extent[i] = r.axis[i].extent;
	d = (ix_dom){.box = {.n = r.n_axes, .extent = extent}};
	init = (ix_dom){.box = {.n = r.n_left, .extent = extent}};
	for (int32_t i = e->n_axes - 1; i >= 0; i--) {
		if (i + 1 == e->n_axes || to[i] != to[i + 1])
			inner = 1;
		with[i] = ix_digit(s->x, &d, to[i], inner, inner * old[i]);
		inner *= old[i];
	}
	for (int32_t k = 0; k < e->n_out; k++) {
		r.body[k] = over(s, &d, e->body[k], e->n_axes, old, with);
		if (e->push == NULL)
			r.init[k] = over(
				s, &init, e->init[k], e->n_left, old, with);
	}
	if (e->push != NULL)
		r.push = ix_subst(s->x, &d, e->push, e->n_axes, old, with);
	*out = r;
	return true;
}

/* Repeats: a join may remove a guard that prevented another join. */
sys_eqn eqn_coalesce(eqn_graph *g, const sys_eqn *e)
{
	sys_eqn r = *e, next;

	while (coalesce_once(g, &r, &next))
		r = next;
	return r;
}
