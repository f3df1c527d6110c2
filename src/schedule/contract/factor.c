/*
 * factor.c: finds the two factors of the terms of a sum.
 *
 * Consumes the body of an equation; produces x, y, and the epilogue of the sum
 * of x * y, from factors and guards that do not depend on the summed axes. A
 * term may have any number of factors; a guard of terms becomes part of a
 * factor.
 *
 *   o[i, j] += sel(k <= i, a[i, k], 0) * b[k, j] * exp(c[i, j]) for k
 *     x = sel(k <= i, a[i, k], 0)   y = b[k, j]   finish = sum * exp(c[i, j])
 */
#include "schedule/contract/contract.h"

enum { MAX_GUARDS = 4 };

/* May a read be outside of its tensor where no guard holds? */
struct outside {
	loop_kernel *k;
	const ix_dom *dom;
	bool found;
};

static void on_read(void *arg, const expr *e)
{
	struct outside *o = arg;
	int64_t min, max;

	if (e->kind != EX_READ)
		return;
	ix_range(o->dom, e->form, &min, &max);
	o->found |= min < 0 || max >= o->k->s->tensor.at[e->tensor].numel;
}

static bool needs_guard_in(loop_kernel *k, const ix_dom *dom, const expr *e)
{
	struct outside o = {k, dom, false};

	loop_walk(k->a, e, on_read, &o);
	return o.found;
}

static bool needs_guard(loop_kernel *k, const expr *e)
{
	return needs_guard_in(k, &k->dom, e);
}

static bool is_mul(const expr *e)
{
	return ex_is_call(e, "mul");
}

struct terms {
	loop_kernel *k;
	loop_set left, sums;
	int32_t mul; /* the scalar function mul */
	int32_t n, n_guards;
	const expr *at[CONTRACT_FACTORS], *guard[MAX_GUARDS];
	bool full;
};

/* Lists the factors of a product. */
static void flatten(struct terms *t, const expr *e)
{
	if (is_mul(e)) {
		t->mul = e->fn;
		flatten(t, e->arg[0]);
		flatten(t, e->arg[1]);
	} else if (t->n < CONTRACT_FACTORS) {
		t->at[t->n++] = e;
	} else {
		t->full = true;
	}
}

static const expr *times(struct terms *t, const expr *a, const expr *b)
{
	const expr *arg[IR_MAX_ARGS] = {a, b};

	return a == NULL ? b : ex_call(t->k->s, t->mul, arg);
}

static loop_set vars(struct terms *t, const expr *e, loop_set of)
{
	return loop_expr_vars(t->k, e) & of;
}

/*
 * Divides the factors that a sum walks into two products, by the axes of
 * factors a and b.
 */
static bool divide(struct terms *t, int32_t a, int32_t b, const expr **f)
{
	loop_set va = vars(t, t->at[a], t->left), v;
	loop_set vb = vars(t, t->at[b], t->left);

	if ((va & ~vb) == 0 || (vb & ~va) == 0)
		return false;
	f[0] = f[1] = NULL;
	for (int32_t i = 0; i < t->n; i++) {
		if (vars(t, t->at[i], t->sums) == 0)
			continue;
		v = vars(t, t->at[i], t->left);
		if (i == a || (i != b && (v & ~va) == 0))
			f[0] = times(t, f[0], t->at[i]);
		else if (i == b || (v & ~vb) == 0)
			f[1] = times(t, f[1], t->at[i]);
		else
			return false;
	}
	return true;
}

static bool divide_any(struct terms *t, const expr **f)
{
	for (int32_t a = 0; a < t->n; a++)
		for (int32_t b = a + 1; b < t->n; b++)
			if (vars(t, t->at[a], t->sums) != 0 &&
				vars(t, t->at[b], t->sums) != 0 &&
				divide(t, a, b, f))
				return true;
	return false;
}

/*
 * One row: a factor of which a loop keeps a copy, or which is read once, walks all axes,
 * the others only those of the sum, and of pieces of it.
 */
static bool divide_row(struct terms *t, const expr **f)
{
	loop_set both = 0;

	f[0] = f[1] = NULL;
	for (int32_t i = 0; i < t->n && f[1] == NULL; i++)
		if (vars(t, t->at[i], t->left) != 0 && vars(t, t->at[i], t->sums) != 0 &&
			(contract_is_kept(t->k, t->at[i], t->left) ||
				contract_is_long(t->k, t->at[i], t->left)))
			f[1] = t->at[i];
	if (f[1] == NULL)
		return false;
	if (!contract_is_kept(t->k, f[1], t->left))
		both = vars(t, f[1], t->left);
	for (int32_t i = 0; i < t->n; i++) {
		const expr *e = t->at[i];

		if (e == f[1] || vars(t, e, t->sums) == 0)
			continue;
		if ((vars(t, e, t->left) & ~both) != 0 ||
			(both != 0 && vars(t, e, t->left) == both))
			return false;
		f[0] = times(t, f[0], e);
	}
	return f[0] != NULL;
}

/* ---- guards ---- */

/*
 * Finds, for each variable of a tensor's producer, the matching one of a read.
 */
static bool match(loop_kernel *k, const loop_eqn *maker, const expr *read,
	const ix_form **with)
{
	const ix_form *at;

	for (int32_t v = 0; v < k->n_vars; v++) {
		int64_t s, t, ext = k->var[v].extent;
		int32_t to = v;

		if (!ix_stride(maker->at, v, ext, &s))
			return false;
		for (int32_t i = -1; i < k->n_vars && s != 0; i++) {
			to = i < 0 ? v : i;
			if (k->var[to].extent == ext &&
				ix_stride(read->form, to, ext, &t) && t == s)
				break;
		}
		with[v] = ix_axis(k->s->x, &k->dom, to);
	}
	at = ix_subst(k->s->x, &k->dom, maker->at, k->n_vars,
		k->dom.box.extent, with);
	return ix_equal(k->s->x, &k->dom, at, read->form) == IX_EQUAL;
}

/* Is the tensor that is read zero wherever the guard does not hold? */
static bool is_guarded(loop_kernel *k, const expr *read, const expr *c)
{
	int32_t q, comp;
	const ix_form **with = arena_array(
		k->a, const ix_form *, k->n_vars + 1), *f;
	const expr *b;

	if (read->kind != EX_READ || c->kind != EX_INSIDE ||
		!loop_maker(k, read->tensor, &q, &comp) ||
		(k->eqn[q].e->monoid != IR_SET &&
			k->eqn[q].e->monoid != IR_SUM) ||
		k->eqn[q].push || k->eqn[q].init[comp] != NULL)
		return false;
	b = k->eqn[q].body[comp];
	if (b->kind != EX_SELECT || b->arg[0]->kind != EX_INSIDE ||
		!ex_is_zero(b->arg[2]) || b->arg[0]->lo != c->lo ||
		b->arg[0]->hi != c->hi || ix_has_fun(c->form) ||
		(loop_form_vars(b->arg[0]->form) & ~k->eqn[q].left) != 0 ||
		!match(k, &k->eqn[q], read, with))
		return false;
	f = ix_subst(k->s->x, &k->dom, b->arg[0]->form, k->n_vars,
		k->dom.box.extent, with);
	return ix_equal(k->s->x, &k->dom, f, c->form) == IX_EQUAL;
}

/* Does a form of these values lie in the interval for at most half of them? */
static bool is_mostly_outside(const expr *c, int64_t min, int64_t max)
{
	int64_t lo = c->lo > min ? c->lo : min;
	int64_t hi = c->hi <= max ? c->hi : max + 1;

	return hi - lo <= (max - min + 1) / 2;
}

/*
 * Adds guards by which whole tiles are zero: between two long loops, or of one loop
 * that is not summed and mostly outside, such as that of the residues of a strided
 * window.
 */
static void add_needs(
	loop_kernel *k, loop_set sums, const expr *c, contract_terms *out)
{
	int64_t min, max;
	int32_t n = 0, n_long = 0;

	if (c->kind == EX_CALL &&
		strcmp(ir_scalar_at(c->fn)->name, "and") == 0) {
		add_needs(k, sums, c->arg[0], out);
		add_needs(k, sums, c->arg[1], out);
		return;
	}
	if (c->kind != EX_INSIDE || out->n_needs == CONTRACT_NEEDS)
		return;
	for (int32_t v = 0; v < k->n_vars; v++) {
		int64_t s;

		if ((loop_form_vars(c->form) & BIT(v)) == 0)
			continue;
		if (!ix_stride(c->form, v, k->var[v].extent, &s))
			return;
		n++;
		n_long += k->var[v].extent >= k->machine->product.least_need;
	}
	ix_range(&k->dom, c->form, &min, &max);
	if (ix_has_fun(c->form) || c->form->n != n)
		return;
	if (n == 1 ? (loop_form_vars(c->form) & sums) == 0 &&
				is_mostly_outside(c, min, max)
		   : n == 2 && n_long == 2)
		out->need[out->n_needs++] = (ix_fact){c->form,
			min >= c->lo ? INT64_MIN : c->lo,
			max < c->hi ? INT64_MAX : c->hi};
}

/* ---- a guard that both factors need ---- */

enum { MAX_PARTS = 8 };

struct parts { /* the parts of a conjunction */
	int32_t n, fn;
	const expr *at[MAX_PARTS];
	bool full;
};

static void take_apart(struct parts *p, const expr *c)
{
	if (c->kind == EX_CALL &&
		strcmp(ir_scalar_at(c->fn)->name, "and") == 0) {
		p->fn = c->fn;
		take_apart(p, c->arg[0]);
		take_apart(p, c->arg[1]);
	} else if (c->kind == EX_INSIDE && p->n < MAX_PARTS) {
		p->at[p->n++] = c;
	} else {
		p->full = true;
	}
}

/* Are all reads of f inside of their tensors where these parts hold? */
static bool is_safe(loop_kernel *k, const struct parts *p, unsigned set,
	const expr *f)
{
	ix_fact fact[MAX_PARTS];
	ix_dom dom = {k->dom.box, 0, fact};

	for (int32_t i = 0; i < p->n; i++)
		if ((set >> i & 1) != 0)
			fact[dom.n_facts++] = (ix_fact){
				p->at[i]->form, p->at[i]->lo, p->at[i]->hi};
	return !needs_guard_in(k, &dom, f);
}

static const expr *together(loop_kernel *k, const struct parts *p, unsigned set)
{
	const expr *c = NULL;

	for (int32_t i = 0; i < p->n; i++)
		if ((set >> i & 1) != 0) {
			const expr *arg[IR_MAX_ARGS] = {c, p->at[i]};

			c = c == NULL ? p->at[i] : ex_call(k->s, p->fn, arg);
		}
	return c;
}

/*
 * Distributes the parts of a guard: each factor gets the parts that its reads
 * need, and each part goes to at least one factor.
 */
static void share_out(loop_kernel *k, const expr *c, const expr *const *f,
	const expr **of)
{
	struct parts p = {.n = 0};
	unsigned all, set[2];

	of[0] = of[1] = c;
	take_apart(&p, c);
	all = (1u << p.n) - 1;
	if (p.full || p.n < 2 || !is_safe(k, &p, all, f[0]) ||
		!is_safe(k, &p, all, f[1]))
		return;
	for (int32_t i = 0; i < 2; i++) {
		set[i] = all;
		for (int32_t j = 0; j < p.n; j++)
			if (is_safe(k, &p, set[i] & ~(1u << j), f[i]))
				set[i] &= ~(1u << j);
	}
	set[0] |= all & ~set[1];
	for (int32_t i = 0; i < 2; i++)
		of[i] = set[i] == all ? c : together(k, &p, set[i]);
}

/*
 * Moves a guard to the factor that walks its axes, or to the finished sum if no
 * sum walks them. true: it became part of a factor.
 */
static bool guard(struct terms *t, const expr *c, const expr **f,
	const expr **finish)
{
	loop_kernel *k = t->k;
	loop_set v = loop_expr_vars(k, c);
	bool done = false;
	bool wanted[2] = {needs_guard(k, f[0]), needs_guard(k, f[1])};
	const expr *of[2] = {c, c};
	const expr *zero = dtype_is_float(f[0]->dtype)
				   ? ex_const_f(k->s, f[0]->dtype, 0)
				   : ex_const_i(k->s, f[0]->dtype, 0);

	if (!wanted[0] && !wanted[1] && (v & t->sums) == 0 &&
		dtype_is_float(f[0]->dtype)) {
		if (*finish == NULL)
			*finish = ex_param(k->s, f[0]->dtype, 0);
		*finish = ex_select(k->s, c, *finish, zero);
		return false;
	}
	if (wanted[0] && wanted[1])
		share_out(k, c, f, of);
	for (int32_t i = 0; i < 2; i++) {
		bool all = (v & ~loop_expr_vars(k, f[i])) == 0;

		if (wanted[i] || (all && !done) || (i == 1 && !done)) {
			if (of[i] != NULL && !is_guarded(k, f[i], of[i]))
				f[i] = ex_select(k->s, of[i], f[i], zero);
			done = true;
		}
	}
	return true;
}

/* Removes casts of integers and guards from the product. */
static const expr *bare_term(struct terms *t, const expr *b)
{
	for (;;)
		if (b->kind == EX_CAST && dtype_is_int(b->dtype) &&
			dtype_is_int(b->arg[0]->dtype)) {
			b = b->arg[0];
		} else if (b->kind == EX_SELECT && ex_is_zero(b->arg[2]) &&
			   t->n_guards < MAX_GUARDS) {
			t->guard[t->n_guards++] = b->arg[0];
			b = b->arg[1];
		} else {
			return b;
		}
}

static const expr *both(loop_kernel *k, const expr *a, const expr *b)
{
	const expr *arg[IR_MAX_ARGS] = {a, b};

	return ex_call(k->s, ir_scalar_find("and", 3), arg);
}

bool contract_factors(
	loop_kernel *k, const loop_eqn *e, contract_terms *out)
{
	struct terms t = {.k = k, .left = e->left, .sums = e->reduced};
	const expr *b = bare_term(&t, e->body[0]);

	const expr *scale = NULL;

	*out = (contract_terms){.why = DECIDE_N_KINDS};
	if (!is_mul(b))
		return false;
	flatten(&t, b);
	out->why = t.full ? DECIDE_TILE_FACTORS : DECIDE_TILE_DIVIDE;
	if (t.full || (!divide_any(&t, out->f) && !divide_row(&t, out->f)))
		return false;
	for (int32_t i = 0; i < t.n; i++)
		if (vars(&t, t.at[i], t.sums) == 0)
			scale = times(&t, scale, t.at[i]);
	if (scale != NULL) {
		out->why = DECIDE_TILE_SCALE;
		if (!dtype_is_float(b->dtype) || needs_guard(k, scale))
			return false;
		out->inexact = true;
		out->finish = times(&t, ex_param(k->s, b->dtype, 0), scale);
	}
	for (int32_t i = 0; i < t.n_guards; i++)
		add_needs(k, t.sums, t.guard[i], out);
	while (t.n_guards > 0) {
		const expr *c = t.guard[--t.n_guards];

		if (!guard(&t, c, out->f, &out->finish))
			continue;
		out->within = out->within != NULL ? both(k, out->within, c) : c;
		out->inexact = true;
	}
	if (out->finish != NULL)
		out->within = NULL;
	out->why = DECIDE_TILE_DTYPE;
	return out->f[0]->dtype == out->f[1]->dtype;
}

/*
 * Is the equation a sum of products? Integers wrap to the same sum in any
 * width, so a product may be accumulated in fewer bits than it is widened to,
 * but not in fewer than the result has.
 */
bool contract_is_product(loop_kernel *k, const loop_eqn *e)
{
	tn_dtype t = k->s->tensor.at[e->e->out[0]].dtype, acc = e->acc[0];
	contract_terms f;

	if (e->e->n_out != 1 || e->e->monoid != IR_SUM || e->push ||
		e->scan_var >= 0 || e->tail || !contract_factors(k, e, &f))
		return false;
	if (dtype_is_int(acc))
		return dtype_size(t) <= 4 &&
		       dtype_size(f.f[0]->dtype) >= dtype_size(t);
	return (acc == TN_F32 || acc == TN_F64) && f.f[0]->dtype == acc;
}
