/*
 * residues.c: an equation for each residue of an axis.
 *
 * Consumes a system. In the gradient of a strided convolution by its input, one factor
 * walks an axis of pixels by its quotient and the other one by its residue: even and
 * odd pixels have different weights, or none. Each residue becomes a sum of products of
 * its own, in which pixels are neighbours, and one equation puts the results together:
 *
 *   g[j] += d[(j + 1)/2 - k] * w[(j + 1)%2 + 2*k]      for j < 56, k < 2   ->
 *   p0[q] += d[q] * w[1]                               for q < 28
 *   p1[q] += d[q + 1 - k] * w[2*k]                     for q < 28, k < 2
 *   g[j] = sel(j%2 == 0, p0[j/2], p1[j/2])
 *
 * Terms that a residue does not have are left out, and so are residues without terms.
 */
#include "system/local.h"

enum { MOST_SPLITS = 3, MOST_PARTS = 64 };

struct parts {
	ir_system *s;
	const sys_eqn *e;
	int64_t most; /* residues of an axis */
	ix_dom dom;
	int32_t n; /* axes that are split, and into how many residues */
	int32_t axis[MOST_SPLITS];
	int64_t by[MOST_SPLITS];
	int32_t n_parts;
	sys_eqn *part; /* n_parts: their equations; n_axes 0: it has no terms */
};

/* ---- which axes ---- */

/* Reads and guards of an expression. */
typedef VEC(const expr *) places;

static void list_places(ir_system *s, const expr *e, places *out)
{
	if (!ex_first(s, e))
		return;
	if (e->kind == EX_READ || e->kind == EX_INSIDE)
		*vec_push(s->a, out) = e;
	for (int32_t i = 0; i < e->n_args; i++)
		list_places(s, e->arg[i], out);
}

static places places_of(ir_system *s, const expr *e)
{
	places p = {0};

	ex_visit(s);
	list_places(s, e, &p);
	return p;
}

/*
 * Does one factor walk the axis by quotients of `by`, so that it walks neighbours of one
 * residue, and something else, a factor or a guard, by residues alone? Where a guard
 * does, other residues have no terms, and the quotient may have been simplified.
 */
static bool helps(const struct parts *w, int32_t v, int64_t by)
{
	ir_system *s = w->s;
	int32_t n = w->dom.box.n, walk = 0, residue = 0, guard = 0;
	int64_t stride;
	bool plain = false;
	int64_t *extent = arena_array(s->a, int64_t, n + 1);
	const ix_form **with = arena_array(s->a, const ix_form *, n + 1);
	places p = places_of(s, w->e->body[0]);
	ix_dom d = {.box = {n + 1, extent}};

	for (int32_t i = 0; i < n; i++)
		extent[i] = w->dom.box.extent[i];
	extent[v] = by;
	extent[n] = w->dom.box.extent[v] / by;
	for (int32_t i = 0; i < n; i++)
		with[i] = ix_axis(s->x, &d, i);
	with[v] = ix_add(s->x, &d, with[v],
		ix_scale(s->x, ix_axis(s->x, &d, n), by));
	for (int32_t i = 0; i < p.n; i++) {
		const ix_form *f = p.at[i]->form, *g;

		if (!ix_uses_axis(f, v))
			continue;
		g = ix_subst(s->x, &d, f, n, w->dom.box.extent, with);
		if (!ix_uses_axis(g, n)) {
			residue++;
			guard += p.at[i]->kind == EX_INSIDE;
		} else if (p.at[i]->kind == EX_READ) {
			walk++;
			plain = ix_stride(
				f, v, w->dom.box.extent[v], &stride);
			if (!ix_stride(g, n, extent[n], &stride))
				return false;
		}
	}
	return walk == 1 && residue > 0 && (!plain || guard > 0);
}

/* Is it a sum of products of two reads, one of which has a left axis of its own? (The
 * other one has the pixels.) */
static bool is_product(const struct parts *w)
{
	const sys_eqn *e = w->e;
	const expr *read[2];
	bool own = false, both = false;
	int32_t n = 0;
	places p;

	if (e->monoid != IR_SUM || e->n_out != 1 || e->push != NULL ||
		e->opaque != NULL || e->init[0] != NULL || e->scan_axis >= 0)
		return false;
	p = places_of(w->s, e->body[0]);
	for (int32_t i = 0; i < p.n; i++) {
		if (p.at[i]->kind != EX_READ)
			continue;
		if (n == 2 || ix_has_fun(p.at[i]->form))
			return false;
		read[n++] = p.at[i];
	}
	for (int32_t a = 0; a < e->n_axes && n == 2; a++) {
		bool x = ix_uses_axis(read[0]->form, a);
		bool y = ix_uses_axis(read[1]->form, a);

		both |= a >= e->n_left && x && y;
		own |= a < e->n_left && x != y;
	}
	return n == 2 && both && own;
}

/* Finds the axes to split; false: there are none. */
static bool find_axes(struct parts *w)
{
	const sys_eqn *e = w->e;

	w->n_parts = 1;
	for (int32_t v = 0; v < e->n_left && w->n < MOST_SPLITS; v++)
		for (int64_t by = 2; by <= w->most; by++) {
			if (e->axis[v].extent % by != 0 ||
				e->axis[v].extent < 2 * by ||
				w->n_parts * by > MOST_PARTS || !helps(w, v, by))
				continue;
			w->axis[w->n] = v;
			w->by[w->n++] = by;
			w->n_parts *= (int32_t)by;
			break;
		}
	return w->n > 0;
}

/* ---- the parts ---- */

/* A box of the equation's axes, in which those of extent 1 are left out. */
struct box {
	sys_axis axis[IR_MAX_AXES];
	int64_t extent[IR_MAX_AXES], first[IR_MAX_AXES], step[IR_MAX_AXES];
};

/* Replaces axis i of the box `from` by first + step * an axis of p; see struct box. */
static const expr *put(ir_system *s, const ix_box *from, const expr *body,
	const struct box *b, int32_t n_left, sys_eqn *p)
{
	const ix_form **with = arena_array(s->a, const ix_form *, from->n + 1);
	int64_t *extent = arena_array(s->a, int64_t, from->n + 1);
	ix_dom d = {.box = {0, extent}};

	p->n_left = 0;
	for (int32_t i = 0; i < from->n; i++) {
		if (b->extent[i] < 2)
			continue;
		p->axis[d.box.n] = b->axis[i];
		p->axis[d.box.n].extent = extent[d.box.n] = b->extent[i];
		p->n_left += i < n_left;
		d.box.n++;
	}
	p->n_axes = d.box.n;
	for (int32_t i = 0, k = 0; i < from->n; i++) {
		with[i] = ix_const(s->x, b->first[i]);
		if (b->extent[i] < 2)
			continue;
		with[i] = ix_addc(s->x,
			ix_scale(s->x, ix_axis(s->x, &d, k++), b->step[i]),
			b->first[i]);
	}
	return ex_subst(s, &d, body, from->n, from->extent, with, NULL, NULL);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return a / b + (a % b > 0);
}

/* Restricts the range of a reduced axis to where the fact holds, if it is about nothing
 * else. */
static void restrict_to(const ix_fact *f, int32_t n_left, int64_t *first, int64_t *end)
{
	const ix_term *t = f->f->t;
	int64_t lo, hi;
	int32_t a;

	if (f->f->n != 1 || t->atom->kind != IX_DIGIT || t->atom->lo != 1 ||
		t->atom->axis < n_left || t->coef < 1)
		return;
	a = t->atom->axis;
	if (t->atom->hi < end[a])
		return; /* a digit of several */
	lo = ceil_div(f->lo - f->f->c0, t->coef);
	hi = ceil_div(f->hi - f->f->c0, t->coef);
	first[a] = lo > first[a] ? lo : first[a];
	end[a] = hi < end[a] ? hi : end[a];
}

/* Leaves out terms that are 0; false: all are. */
static bool trim(ir_system *s, sys_eqn *p)
{
	const expr *body = p->body[0];
	ix_box from = ir_eqn_box(s, p);
	ix_dom d = {.box = from};
	int64_t first[IR_MAX_AXES] = {0}, end[IR_MAX_AXES];
	struct box b = {0};

	if (ex_is_zero(body))
		return false;
	if (body->kind != EX_SELECT || !ex_is_zero(body->arg[2]))
		return true;
	for (int32_t i = 0; i < from.n; i++)
		end[i] = from.extent[i];
	d = ir_dom_when(s, &d, body->arg[0], true);
	for (int32_t i = 0; i < d.n_facts; i++)
		restrict_to(&d.facts[i], p->n_left, first, end);
	for (int32_t i = 0; i < from.n; i++) {
		if (end[i] <= first[i])
			return false;
		b.axis[i] = p->axis[i];
		b.extent[i] = end[i] - first[i];
		b.first[i] = first[i];
		b.step[i] = 1;
	}
	p->body[0] = put(s, &from, body, &b, p->n_left, p);
	return !ex_is_zero(p->body[0]);
}

/* Makes the equation of part `number`, whose digits are the residues; false: its sum
 * has one term. */
static bool make_part(struct parts *w, int32_t number)
{
	const sys_eqn *e = w->e;
	sys_eqn *p = &w->part[number];
	struct box b = {0};

	for (int32_t i = 0; i < e->n_axes; i++) {
		b.axis[i] = e->axis[i];
		b.extent[i] = e->axis[i].extent;
		b.first[i] = 0;
		b.step[i] = 1;
	}
	for (int32_t k = w->n - 1, rest = number; k >= 0; k--) {
		int32_t by = (int32_t)w->by[k];

		b.first[w->axis[k]] = rest % by;
		b.step[w->axis[k]] = by;
		b.extent[w->axis[k]] /= by;
		rest /= by;
	}
	*p = *e;
	p->label = arena_printf(w->s->a, "%s_r%d", e->label, number);
	p->body[0] = put(w->s, &w->dom.box, e->body[0], &b, e->n_left, p);
	if (!trim(w->s, p))
		p->n_axes = 0;
	return p->n_axes == 0 || p->n_axes > p->n_left;
}

/* Adds the equations of the parts, with their results. */
static void add_parts(struct parts *w)
{
	ir_system *s = w->s;
	const char *name = s->tensor.at[w->e->out[0]].name;
	tn_dtype t = s->tensor.at[w->e->out[0]].dtype;

	for (int32_t i = 0; i < w->n_parts; i++) {
		sys_eqn *p = &w->part[i];
		int64_t shape[IR_MAX_AXES];

		for (int32_t k = 0; k < p->n_left; k++)
			shape[k] = p->axis[k].extent;
		if (p->n_axes == 0)
			continue;
		p->out[0] = ir_add_tensor(s, arena_printf(s->a, "%s.r%d", name, i),
			t, p->n_left, shape);
		ir_add_eqn(s, p);
	}
}

/* ---- the whole ---- */

/* The element of part `number`; k: axes before k have their residues already. */
static const expr *element(
	const struct parts *w, int32_t k, int32_t number, const ix_dom *d,
	const ix_form *at)
{
	ir_system *s = w->s;
	const expr *r = NULL;
	tn_dtype of = s->tensor.at[w->e->out[0]].dtype, t = dtype_acc(of);

	if (dtype_is_int(of))
		t = of;
	if (k == w->n && w->part[number].n_axes > 0) {
		r = ex_read(s, w->part[number].out[0], at);
		return t == of ? r : ex_cast(s, t, r);
	}
	if (k == w->n)
		return dtype_is_float(t) ? ex_const_f(s, t, 0) : ex_const_i(s, t, 0);
	for (int32_t i = (int32_t)w->by[k] - 1; i >= 0; i--) {
		int32_t next = number * (int32_t)w->by[k] + i;
		const expr *one = element(w, k + 1, next, d, at);
		const ix_form *mod = ix_mod(s->x, d,
			ix_axis(s->x, d, w->axis[k]), w->by[k]);

		r = r == NULL || r == one
			    ? one
			    : ex_select(s, ir_inside_simple(s, d, mod, i, i + 1),
				      one, r);
	}
	return r;
}

static void add_whole(const struct parts *w)
{
	ir_system *s = w->s;
	sys_eqn e = *w->e;
	const ix_form *at[IR_MAX_AXES] = {0};
	int64_t shape[IR_MAX_AXES] = {0};
	ix_dom d;

	e.monoid = IR_SET;
	e.n_axes = e.n_left;
	d = (ix_dom){.box = ir_eqn_box(s, &e)};
	for (int32_t i = 0; i < e.n_left; i++) {
		at[i] = ix_axis(s->x, &d, i);
		shape[i] = e.axis[i].extent;
	}
	for (int32_t k = 0; k < w->n; k++) {
		at[w->axis[k]] = ix_div(s->x, &d, at[w->axis[k]], w->by[k]);
		shape[w->axis[k]] /= w->by[k];
	}
	e.body[0] = element(
		w, 0, 0, &d, ix_linearise(s->x, &d, e.n_left, shape, at));
	if (e.body[0]->dtype != s->tensor.at[e.out[0]].dtype)
		e.body[0] = ex_cast(s, s->tensor.at[e.out[0]].dtype, e.body[0]);
	ir_add_eqn(s, &e);
}

/* Finds the axes, and makes the equations of the parts; false: e stays as it is. */
static bool take_apart(struct parts *w, double least)
{
	const sys_eqn *e = w->e;
	double volume = 1;

	for (int32_t i = 0; i < e->n_axes; i++)
		volume *= (double)e->axis[i].extent;
	if (volume < least || !is_product(w))
		return false;
	w->dom = (ix_dom){.box = ir_eqn_box(w->s, e)};
	if (!find_axes(w))
		return false;
	w->part = arena_array(w->s->a, sys_eqn, w->n_parts);
	for (int32_t i = 0; i < w->n_parts; i++)
		if (!make_part(w, i))
			return false;
	return true;
}

void ir_residues(ir_system *s, int64_t most, double least)
{
	int32_t n = s->eqn.n;
	sys_eqn *old = arena_copy(s->a, s->eqn.at, (size_t)n * sizeof *old);

	s->eqn.n = 0;
	for (int32_t i = 0; i < n; i++) {
		struct parts w = {.s = s, .e = &old[i], .most = most};

		if (!take_apart(&w, least)) {
			ir_add_eqn(s, &old[i]);
			continue;
		}
		add_parts(&w);
		add_whole(&w);
	}
}
