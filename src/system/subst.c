/*
 * subst.c: substitution in expressions.
 *
 * Consumes an expression over one box; produces the same value over another,
 * with each axis replaced by a form, simplified under the guards on the way:
 *
 *     select(0 <= i-1 < 9, x[clamp(i-1)], 0)  with i := 1 + j, j < 9   ->   x[j]
 *
 * A node is rewritten once per context: results are memoised by node and by the
 * guards that hold.
 */
#include "system/local.h"

struct work {
	ir_system *s;
	int32_t n;
	const int64_t *old_extent;
	const ix_form *const *with; /* NULL: the box does not change */
	ex_swap *swap;
	void *arg;
	map *done;   /* (context, node) -> number in `made` */
	VEC(const expr *) made;
	int32_t n_contexts;
};

struct context {
	ix_dom dom;
	int32_t id;
};

/* The facts of a condition that holds: its conjuncts that are ranges. */
struct facts {
	arena *a;
	VEC(ix_fact) at;
};

static void add_fact(struct facts *f, const ix_form *form, int64_t lo, int64_t hi)
{
	*vec_push(f->a, &f->at) = (ix_fact){.f = form, .lo = lo, .hi = hi};
}

static void facts_when_true(struct facts *f, const expr *c)
{
	if (c->kind == EX_INSIDE) {
		add_fact(f, c->form, c->lo, c->hi);
	} else if (ex_is_call(c, "and")) {
		facts_when_true(f, c->arg[0]);
		facts_when_true(f, c->arg[1]);
	}
}

/* The negation of a range is a range if one bound always holds. */
static void facts_when_false(struct facts *f, const ix_dom *d, const expr *c)
{
	int64_t min, max;

	if (ex_is_call(c, "not")) {
		facts_when_true(f, c->arg[0]);
	} else if (ex_is_call(c, "or")) {
		facts_when_false(f, d, c->arg[0]);
		facts_when_false(f, d, c->arg[1]);
	} else if (c->kind == EX_INSIDE) {
		ix_range(d, c->form, &min, &max);
		if (min >= c->lo && max >= c->hi)
			add_fact(f, c->form, c->hi, max + 1);
		else if (max < c->hi && min < c->lo)
			add_fact(f, c->form, min, c->lo);
	}
}

ix_dom ir_dom_when(ir_system *s, const ix_dom *d, const expr *c, bool holds)
{
	struct facts f = {.a = s->a};
	ix_dom r = *d;

	if (!holds)
		facts_when_false(&f, d, c);
	else if (ex_is_call(c, "not"))
		facts_when_false(&f, d, c->arg[0]);
	else
		facts_when_true(&f, c);
	if (f.at.n == 0)
		return r;
	r.n_facts = d->n_facts + f.at.n;
	vec_reserve(s->a, &f.at, d->n_facts);
	for (int32_t i = 0; i < d->n_facts; i++)
		*vec_push(s->a, &f.at) = d->facts[i];
	r.facts = f.at.at;
	return r;
}

const expr *ir_inside_simple(ir_system *s, const ix_dom *d, const ix_form *f,
	int64_t lo, int64_t hi)
{
	int64_t min, max;

	if (lo >= hi)
		return ex_const_i(s, TN_BOOL, 0);
	ix_range(d, f, &min, &max);
	if (min >= lo && max < hi)
		return ex_const_i(s, TN_BOOL, 1);
	if (max < lo || min >= hi)
		return ex_const_i(s, TN_BOOL, 0);
	/* canonical form: a bound that always holds is replaced by the extreme value */
	return ex_inside(s, f, min >= lo ? min : lo, max < hi ? max + 1 : hi);
}

static const ix_form *form_in(
	struct work *w, const struct context *c, const ix_form *f)
{
	ix *x = w->s->x;

	if (w->with != NULL) {
		f = ix_subst(x, &c->dom, f, w->n, w->old_extent, w->with);
		if (c->dom.n_facts == 0)
			return f;
	}
	/* the forms that were substituted were simplified without these facts */
	return ix_simplify(x, &c->dom, f);
}

static const expr *rewrite(
	struct work *w, const struct context *c, const expr *e);

static const expr *rewrite_select(
	struct work *w, const struct context *c, const expr *e)
{
	const expr *cond = rewrite(w, c, e->arg[0]), *a, *b;
	struct context yes = *c, no = *c;

	if (cond->kind == EX_CONST)
		return rewrite(w, c, e->arg[cond->c.i != 0 ? 1 : 2]);
	yes.dom = ir_dom_when(w->s, &c->dom, cond, true);
	if (yes.dom.facts != c->dom.facts)
		yes.id = w->n_contexts++;
	no.dom = ir_dom_when(w->s, &c->dom, cond, false);
	if (no.dom.facts != c->dom.facts)
		no.id = w->n_contexts++;
	a = rewrite(w, &yes, e->arg[1]);
	b = rewrite(w, &no, e->arg[2]);
	return ex_select(w->s, cond, a, b);
}

/* The context of the right side of and (or): the left side is true (false). */
static struct context right_side(
	struct work *w, const struct context *c, const expr *e, const expr *left)
{
	struct context r = *c;
	bool is_and = ex_is_call(e, "and");

	if (!is_and && !ex_is_call(e, "or"))
		return r;
	r.dom = ir_dom_when(w->s, &c->dom, left, is_and);
	if (r.dom.facts != c->dom.facts)
		r.id = w->n_contexts++;
	return r;
}

static const expr *rewrite_call(
	struct work *w, const struct context *c, const expr *e)
{
	const expr *arg[IR_MAX_ARGS];
	struct context in = *c;

	for (int32_t i = 0; i < e->n_args; i++) {
		arg[i] = rewrite(w, &in, e->arg[i]);
		if (i == 0 && e->n_args == 2)
			in = right_side(w, c, e, arg[0]);
	}
	return ir_call_simple(w->s, e->fn, arg);
}

/* x to the power of 1, 2 or 3; NULL: another one, which takes longer than a product. */
static const expr *short_power(ir_system *s, const expr *x, const expr *y)
{
	int32_t mul = ir_scalar_find("mul", 3);
	const expr *r = x;
	double n;

	if (y->kind != EX_CONST)
		return NULL;
	n = dtype_is_float(y->dtype) ? y->c.f : (double)y->c.i;
	if (n != 1 && n != 2 && n != 3)
		return NULL;
	for (int32_t i = 1; i < (int32_t)n; i++)
		r = ex_call(s, mul, (const expr *const[]){r, x});
	return r;
}

/* Simplifies connectives with a constant operand or two equal operands, and powers. */
const expr *ir_call_simple(ir_system *s, int32_t fn, const expr *const *arg)
{
	const char *name = ir_scalar_at(fn)->name;
	bool is_and = strcmp(name, "and") == 0;
	const expr *r;

	if (is_and || strcmp(name, "or") == 0) {
		for (int32_t i = 0; i < 2; i++) {
			if (arg[i]->kind != EX_CONST)
				continue;
			if ((arg[i]->c.i != 0) == is_and)
				return arg[1 - i]; /* the neutral element */
			return arg[i];
		}
		if (arg[0] == arg[1])
			return arg[0];
	}
	if (strchr(ir_scalar_at(fn)->laws, '^') != NULL &&
		(r = short_power(s, arg[0], arg[1])) != NULL)
		return r;
	return ex_call(s, fn, arg);
}

static const expr *rewrite_node(
	struct work *w, const struct context *c, const expr *e)
{
	const expr *r, *other;

	switch (e->kind) {
	case EX_CONST:
	case EX_PARAM:
		return e;
	case EX_INDEX:
		return ex_index(w->s, form_in(w, c, e->form));
	case EX_READ:
		r = ex_read(w->s, e->tensor, form_in(w, c, e->form));
		if (w->swap == NULL)
			return r;
		other = w->swap(w->arg, r, &c->dom);
		return other != NULL ? other : r;
	case EX_CALL:
		return rewrite_call(w, c, e);
	case EX_SELECT:
		return rewrite_select(w, c, e);
	case EX_INSIDE:
		return ir_inside_simple(w->s, &c->dom,
			form_in(w, c, e->form), e->lo, e->hi);
	case EX_CAST:
		return ex_cast(w->s, e->dtype, rewrite(w, c, e->arg[0]));
	}
	return e;
}

static const expr *rewrite(
	struct work *w, const struct context *c, const expr *e)
{
	int32_t key[2] = {c->id, e->id};
	int64_t found;
	const expr *r;

	if (e->kind == EX_CONST || e->kind == EX_PARAM)
		return e;
	found = map_get(w->done, key, sizeof key, -1);
	if (found >= 0)
		return w->made.at[found];
	r = rewrite_node(w, c, e);
	map_set(w->done, key, sizeof key, w->made.n);
	*vec_push(w->s->a, &w->made) = r;
	return r;
}

const expr *ex_subst(ir_system *s, const ix_dom *d, const expr *e, int32_t n,
	const int64_t *old_extent, const ix_form *const *with, ex_swap *swap,
	void *arg)
{
	struct work w = {.s = s,
		.n = n,
		.old_extent = old_extent,
		.with = with,
		.swap = swap,
		.arg = arg,
		.done = map_new(s->a),
		.n_contexts = 1};
	struct context c = {.dom = *d};

	return rewrite(&w, &c, e);
}

/* ---- a condition that is known ---- */

struct decision {
	ir_system *s;
	const expr *what;
	bool truth;
	map *done; /* id -> number in made */
	VEC(const expr *) made;
};

static const expr *decide(struct decision *w, const expr *e)
{
	const expr *arg[IR_MAX_ARGS], *r;
	int64_t found;

	if (e == w->what)
		return ex_const_i(w->s, TN_BOOL, w->truth);
	if (e->kind != EX_CALL && e->kind != EX_SELECT && e->kind != EX_CAST)
		return e;
	found = map_get(w->done, &e->id, sizeof e->id, -1);
	if (found >= 0)
		return w->made.at[found];
	for (int32_t i = 0; i < e->n_args; i++)
		arg[i] = decide(w, e->arg[i]);
	r = e->kind == EX_CAST ? ex_cast(w->s, e->dtype, arg[0])
	  : e->kind == EX_SELECT ? ex_select(w->s, arg[0], arg[1], arg[2])
				 : ir_call_simple(w->s, e->fn, arg);
	map_set(w->done, &e->id, sizeof e->id, w->made.n);
	*vec_push(w->s->a, &w->made) = r;
	return r;
}

const expr *ex_decided(
	ir_system *s, const expr *e, const expr *what, bool truth)
{
	struct decision w = {.s = s,
		.what = what,
		.truth = truth,
		.done = map_new(s->a)};

	return decide(&w, e);
}
