/*
 * change.c: changes of a kernel's variables and equations by schedules.
 *
 * Most schedules only change trees; some need other variables (a loop split by
 * residues, two short loops joined) or more equations (copies of factors, pieces
 * of a sum). Each such change is a function here: it checks its conditions,
 * changes all equations, and records the change in k->change, so that it can be
 * printed and applied again (text.c, text_parse.c). The caller changes the trees.
 */
#include "schedule/local.h"

enum { MOST_VARIABLES = 62, MOST_EQUATIONS = 63 };

loop_change *loop_changed(loop_kernel *k, loop_change_kind kind)
{
	loop_change *c = vec_push(k->a, &k->change);

	*c = (loop_change){.kind = kind, .var = -1, .other = -1, .eqn = -1};
	return c;
}

/* ---- variables ---- */

/* Adds a variable; the caller sets k->dom and substitutes. */
static int32_t add_variable(
	loop_kernel *k, int64_t extent, axis_kind kind, const char *name)
{
	int32_t n = k->n_vars;
	loop_var *var = arena_array(k->a, loop_var, n + 2);

	memcpy(var, k->var, (size_t)n * sizeof *var);
	var[n] = (loop_var){extent, kind,
		name != NULL ? name : arena_printf(k->a, "i_%d", n), NULL};
	k->var = var;
	k->n_vars = n + 1;
	return n;
}

static ix_dom box_of(const loop_kernel *k)
{
	int64_t *extent = arena_array(k->a, int64_t, k->n_vars + 1);

	for (int32_t v = 0; v < k->n_vars; v++)
		extent[v] = k->var[v].extent;
	return (ix_dom){{k->n_vars, extent}, 0, NULL};
}

/* Replaces each variable v by with[v] in all forms of all equations. */
struct over {
	loop_kernel *k;
	const ix_dom *dom;
	int32_t n;
	const int64_t *extent; /* before */
	const ix_form **with;
};

static struct over over_new(loop_kernel *k, const ix_dom *dom)
{
	struct over w = {k, dom, k->dom.box.n, k->dom.box.extent,
		arena_array(k->a, const ix_form *, k->dom.box.n + 1)};

	for (int32_t v = 0; v < w.n; v++)
		w.with[v] = ix_axis(k->s->x, dom, v);
	return w;
}

static const expr *put(const struct over *w, const expr *e)
{
	return e == NULL ? NULL
			 : ex_subst(w->k->s, w->dom, e, w->n, w->extent,
				   w->with, NULL, NULL);
}

static const ix_form *put_form(const struct over *w, const ix_form *f)
{
	return ix_subst(w->k->s->x, w->dom, f, w->n, w->extent, w->with);
}

static void put_eqn(const struct over *w, loop_eqn *e)
{
	bool same = e->start_at == e->at;

	for (int32_t i = 0; i < e->e->n_out; i++) {
		e->body[i] = put(w, e->body[i]);
		e->init[i] = put(w, e->init[i]);
	}
	e->at = put_form(w, e->at);
	e->start_at = same ? e->at : put_form(w, e->start_at);
}

static void put_slides(const struct over *w)
{
	for (int32_t v = 0; v < w->k->n_vars; v++)
		if (w->k->var[v].slide != NULL)
			w->k->var[v].slide = put_form(w, w->k->var[v].slide);
}

static void put_eqns(const struct over *w)
{
	for (int32_t i = 0; i < w->k->n_eqns; i++)
		put_eqn(w, &w->k->eqn[i]);
	put_slides(w);
}

/* ---- split ---- */

/* Can the statement have two loops instead of this one? */
static bool splits(const loop_kernel *k, const loop_eqn *e, int32_t v)
{
	int64_t s;

	return !e->push && !e->tail && e->scan_var != v &&
	       ((e->left & BIT(v)) == 0 ||
		       (ix_stride(e->at, v, k->var[v].extent, &s) && s > 0));
}

bool loop_change_split(loop_kernel *k, int32_t v, int64_t by)
{
	int64_t n = k->var[v].extent;
	struct over w;
	ix_dom dom;
	int32_t outer;

	if (by < 2 || n % by != 0 || n <= by || k->n_vars >= MOST_VARIABLES ||
		k->var[v].kind == AXIS_S)
		return false;
	for (int32_t i = 0; i < k->n_eqns; i++)
		if (!splits(k, &k->eqn[i], v))
			return false;
	outer = add_variable(k, n / by, k->var[v].kind, NULL);
	k->var[v].extent = by;
	dom = box_of(k);
	w = over_new(k, &dom);
	w.with[v] = ix_add(k->s->x, &dom, w.with[v],
		ix_scale(k->s->x, ix_axis(k->s->x, &dom, outer), by));
	put_eqns(&w);
	for (int32_t i = 0; i < k->n_eqns; i++) {
		loop_eqn *e = &k->eqn[i];

		if ((e->left & BIT(v)) != 0)
			e->left |= BIT(outer);
		if ((e->reduced & BIT(v)) != 0)
			e->reduced |= BIT(outer);
	}
	k->dom = dom;
	*loop_changed(k, LOOP_CHANGE_SPLIT) = (loop_change){.kind = LOOP_CHANGE_SPLIT,
		.var = v, .other = outer, .eqn = -1, .by = by};
	return true;
}

/* ---- join ---- */

/* Are both neighbours in its result, does it sum over both, or over neither? */
static bool stays_one(const loop_kernel *k, const loop_eqn *e, int32_t y, int32_t x)
{
	int64_t ny = k->var[y].extent, nx = k->var[x].extent, sy, sx;
	loop_set both = BIT(y) | BIT(x);

	if (e->push || e->scan_var == y || e->scan_var == x)
		return false;
	if ((e->reduced & both) != 0)
		return (e->reduced & both) == both && (e->left & both) == 0;
	if ((e->left & both) == 0)
		return true;
	return ix_stride(e->at, y, ny, &sy) && ix_stride(e->at, x, nx, &sx) &&
	       sx > 0 && sy == sx * nx;
}

bool loop_change_join(loop_kernel *k, int32_t y, int32_t x)
{
	loop_set both = BIT(y) | BIT(x);
	int64_t nx = k->var[x].extent, n;
	struct over w;
	ix_dom dom;
	int32_t z;

	if (y == x || k->n_vars >= MOST_VARIABLES ||
		k->var[y].kind == AXIS_S || k->var[x].kind != k->var[y].kind ||
		!mul_ok(k->var[y].extent, nx, &n))
		return false;
	for (int32_t i = 0; i < k->n_eqns; i++)
		if (!stays_one(k, &k->eqn[i], y, x))
			return false;
	z = add_variable(k, n, k->var[y].kind, NULL);
	dom = box_of(k);
	w = over_new(k, &dom);
	w.with[y] = ix_digit(k->s->x, &dom, z, nx, n);
	w.with[x] = ix_digit(k->s->x, &dom, z, 1, nx);
	put_eqns(&w);
	for (int32_t i = 0; i < k->n_eqns; i++) {
		loop_eqn *e = &k->eqn[i];

		if ((e->left & both) != 0)
			e->left = (e->left & ~both) | BIT(z);
		if ((e->reduced & both) != 0)
			e->reduced = (e->reduced & ~both) | BIT(z);
	}
	k->dom = dom;
	*loop_changed(k, LOOP_CHANGE_JOIN) = (loop_change){.kind = LOOP_CHANGE_JOIN,
		.var = y, .other = x, .eqn = -1};
	return true;
}

/* ---- keys ---- */

static loop_set renamed(loop_set s, loop_set keys, int32_t to)
{
	return (s & keys) != 0 ? (s & ~keys) | BIT(to) : s;
}

static bool is_one(loop_set s)
{
	return (s & (s - 1)) == 0;
}

bool loop_change_keys(loop_kernel *k, loop_set keys, int32_t to)
{
	struct over w;

	for (int32_t v = 0; v < k->n_vars; v++)
		if ((keys & BIT(v)) != 0 &&
			k->var[v].extent != k->var[to].extent)
			return false;
	for (int32_t i = 0; i < k->n_eqns; i++) {
		const loop_eqn *e = &k->eqn[i];

		if (e->push || e->scan_var >= 0 ||
			!is_one((e->left | e->reduced) & keys))
			return false;
	}
	w = over_new(k, &k->dom);
	for (int32_t v = 0; v < k->n_vars; v++)
		if ((keys & BIT(v)) != 0)
			w.with[v] = ix_axis(k->s->x, &k->dom, to);
	put_eqns(&w);
	for (int32_t i = 0; i < k->n_eqns; i++) {
		loop_eqn *e = &k->eqn[i];

		e->left = renamed(e->left, keys, to);
		e->reduced = renamed(e->reduced, keys, to);
	}
	*loop_changed(k, LOOP_CHANGE_KEYS) = (loop_change){.kind = LOOP_CHANGE_KEYS,
		.var = to, .other = -1, .eqn = -1, .vars = keys};
	return true;
}

/* ---- slide ---- */

/* Is it a sum of variables, each with a factor, that are no slides themselves? */
static bool is_linear(const loop_kernel *k, const ix_form *f)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind != IX_DIGIT || t->lo != 1 ||
			t->hi < k->var[t->axis].extent ||
			k->var[t->axis].kind == AXIS_S ||
			k->var[t->axis].slide != NULL)
			return false;
	}
	return f->n > 0;
}

bool loop_change_slide(loop_kernel *k, const ix_form *f)
{
	int64_t min, max;
	int32_t v;

	if (k->n_vars >= MOST_VARIABLES || !is_linear(k, f))
		return false;
	ix_range(&k->dom, f, &min, &max);
	if (min != 0 || max >= INT32_MAX)
		return false;
	v = add_variable(k, max + 1, AXIS_P, NULL);
	k->var[v].slide = f;
	k->dom = box_of(k);
	*loop_changed(k, LOOP_CHANGE_SLIDE) = (loop_change){.kind = LOOP_CHANGE_SLIDE,
		.var = v, .other = -1, .eqn = -1};
	return true;
}

/* ---- equations ---- */

/* Adds a private tensor, named by its equation, which is added next. */
static int32_t add_tensor(
	loop_kernel *k, const char *stem, tn_dtype t, int64_t numel)
{
	return ir_add_tensor(k->s, arena_printf(k->a, "%s.%d", stem, k->n_eqns),
		t, 1, &numel);
}

int32_t loop_add_eqn(loop_kernel *k)
{
	loop_eqn *all = arena_array(k->a, loop_eqn, k->n_eqns + 2);

	memcpy(all, k->eqn, (size_t)k->n_eqns * sizeof *all);
	k->eqn = all;
	all[k->n_eqns] = (loop_eqn){.scan_var = -1};
	return k->n_eqns++;
}

/* Adds an equation that sets a tensor to body. */
static int32_t add_set(loop_kernel *k, const char *label, int32_t tensor,
	const expr *body, const ix_form *at)
{
	sys_eqn *e = arena_make(k->a, sys_eqn);
	int32_t i = loop_add_eqn(k);
	loop_eqn *q = &k->eqn[i];

	e->label = label;
	e->monoid = IR_SET;
	e->n_out = 1;
	e->out[0] = tensor;
	e->scan_axis = -1;
	q->e = e;
	q->body[0] = body;
	q->acc[0] = k->s->tensor.at[tensor].dtype;
	q->at = q->start_at = at;
	return i;
}

/* slowest first */
static const ix_form *row_major(
	loop_kernel *k, int32_t n, const int32_t *var, int64_t *elems)
{
	const ix_form *f = ix_const(k->s->x, 0);

	*elems = 1;
	for (int32_t i = n - 1; i >= 0; i--) {
		f = ix_add(k->s->x, &k->dom, f,
			ix_scale(k->s->x, ix_axis(k->s->x, &k->dom, var[i]),
				*elems));
		if (!mul_ok(*elems, k->var[var[i]].extent, elems))
			env_fail(arena_env(k->a), TN_EINVAL, "ix.overflow",
				(loc){0}, "%s: a factor is too large", k->name);
	}
	return f;
}

int32_t loop_add_copy(
	loop_kernel *k, const expr *from, int32_t n, const int32_t *var)
{
	int64_t elems;
	const ix_form *at = row_major(k, n, var, &elems);
	int32_t i = add_set(k, "pack",
		add_tensor(k, "pack", from->dtype, elems), from, at);

	k->eqn[i].pack = true;
	k->eqn[i].left = loop_form_vars(at);
	loop_changed(k, LOOP_CHANGE_COPY)->eqn = i;
	return i;
}

int32_t loop_add_row(
	loop_kernel *k, const char *label, int32_t like, const expr *body)
{
	const loop_eqn *m = &k->eqn[like];
	int64_t n = k->s->tensor.at[m->e->out[0]].numel;
	int32_t i = add_set(k, label,
		add_tensor(k, label, body->dtype, n), body, m->at);

	k->eqn[i].pack = k->eqn[i].row = true;
	k->eqn[i].left = k->eqn[like].left;
	*loop_changed(k, LOOP_CHANGE_ROW) = (loop_change){.kind = LOOP_CHANGE_ROW,
		.var = -1, .other = like, .eqn = i};
	return i;
}

/* Adds an equation that copies the elements of a tensor at `at` into a buffer. */
int32_t loop_add_stage(loop_kernel *k, int32_t tensor, const ix_form *at)
{
	int32_t i = add_set(k, "stage", tensor, ex_read(k->s, tensor, at), at);

	k->eqn[i].stage = true;
	k->eqn[i].left = loop_form_vars(at);
	loop_changed(k, LOOP_CHANGE_KEEP)->eqn = i;
	return i;
}

/* ---- cut ---- */

/* Adds the equation of the pieces; the equation of the sum adds them up. */
static void add_part(loop_kernel *k, int32_t eqn, int32_t number)
{
	int32_t i = loop_add_eqn(k);
	loop_eqn *q = &k->eqn[eqn], *p = &k->eqn[i];
	sys_eqn *e = arena_make(k->a, sys_eqn);
	int64_t numel = k->s->tensor.at[q->e->out[0]].numel, elems;

	if (!mul_ok(numel, k->var[number].extent, &elems))
		env_fail(arena_env(k->a), TN_EINVAL, "ix.overflow", (loc){0},
			"%s: a sum in pieces is too large", k->name);
	*e = *q->e;
	e->label = "part";
	e->init[0] = NULL;
	*p = *q;
	k->n_eqns--; /* the name contains its number */
	e->out[0] = add_tensor(k, "part",
		dtype_is_int(q->acc[0]) ? k->s->tensor.at[e->out[0]].dtype
					: q->acc[0],
		elems);
	k->n_eqns++;
	p->e = e;
	p->pack = p->part = true;
	p->init[0] = NULL;
	p->left |= BIT(number);
	p->at = p->start_at = ix_add(k->s->x, &k->dom, q->at,
		ix_scale(k->s->x, ix_axis(k->s->x, &k->dom, number), numel));
	q->body[0] = ex_read(k->s, e->out[0], p->at);
	q->reduced = BIT(number);
}

/* A name that no variable has: "i_1_piece", "i_1_piece2", .. */
static const char *piece_name(const loop_kernel *k, int32_t v)
{
	const char *stem = arena_printf(k->a, "%s_piece", k->var[v].name);
	const char *name = stem;

	for (int32_t n = 2, i = 0; i < k->n_vars; i++)
		if (strcmp(k->var[i].name, name) == 0) {
			name = arena_printf(k->a, "%s%d", stem, n++);
			i = -1;
		}
	return name;
}

bool loop_change_cut(loop_kernel *k, int32_t eqn, int32_t v, int64_t by)
{
	const loop_eqn *e = &k->eqn[eqn];
	int64_t n = k->var[v].extent;
	int32_t number;

	if (k->n_eqns >= MOST_EQUATIONS || k->n_vars >= MOST_VARIABLES ||
		by < 1 || by >= n || (e->reduced & BIT(v)) == 0 || e->push ||
		e->tail || e->scan_var >= 0 || e->e->n_out != 1 ||
		e->e->monoid == IR_SET || e->stage || e->pack)
		return false;
	number = add_variable(k, (n + by - 1) / by, AXIS_R,
		piece_name(k, v));
	k->dom = box_of(k);
	add_part(k, eqn, number);
	*loop_changed(k, LOOP_CHANGE_CUT) = (loop_change){.kind = LOOP_CHANGE_CUT, .var = v,
		.other = number, .eqn = eqn, .by = by};
	return true;
}

/* ---- trials ---- */

static loop_node **trees(const loop_kernel *k, int32_t n, loop_node *const *root)
{
	loop_node **out = arena_array(k->a, loop_node *, n + 1);

	for (int32_t i = 0; i < n; i++)
		out[i] = loop_node_copy(k->a, root[i]);
	return out;
}

loop_kernel *loop_trial(const loop_kernel *k)
{
	loop_kernel *t = arena_copy(k->a, k, sizeof *k);

	for (int32_t p = 0; p < t->n_phases; p++)
		t->phase[p].root = trees(
			k, k->phase[p].n_roots, k->phase[p].root);
	t->root = trees(k, k->n_roots, k->root);
	t->eqn = arena_array(k->a, loop_eqn, k->n_eqns + 1);
	memcpy(t->eqn, k->eqn, (size_t)k->n_eqns * sizeof *t->eqn);
	memset(&t->decision, 0, sizeof t->decision);
	memset(&t->change, 0, sizeof t->change);
	loop_link(t);
	return t;
}
