/*
 * reduce.c: transforms a question to another box.
 *
 * Consumes a problem: a form, a box, facts; produces an equivalent problem by
 * an exact change of axes, a bijection of the points that satisfy the facts:
 *
 *   bounds     a fact that bounds an axis makes the axis shorter
 *   split      i over [12], cut at 4:  i = 4*a + b over [3,4]
 *   fuse       4*a + b inside a floor, over [3,4]:  one axis F over [12],
 *              a = F div 4, b = F mod 4. This turns most floors into digits.
 *              (a + b) div 3 contains the same run, because 4 = 1 modulo 3
 */
#include "ix/local.h"

#include <stdlib.h>

void problem_init(problem *p, ix *x, arena *a, const ix_dom *d,
	const ix_form *f)
{
	if (d->box.n > IX_MAX_AXES)
		env_bug(arena_env(a), "ix", "a box of %d axes", d->box.n);
	memset(p, 0, sizeof *p);
	p->x = x;
	p->a = a;
	p->f = f;
	p->dom = *d;
}

/*
 * Removes facts that always hold; a fact that never holds makes the problem
 * empty.
 */
static void weed(problem *p)
{
	ix_dom box = {p->dom.box, 0, NULL};
	ix_fact *g = arena_array(p->a, ix_fact, p->dom.n_facts + 1);
	int32_t n = 0;

	for (int32_t i = 0; i < p->dom.n_facts; i++) {
		const ix_fact *old = &p->dom.facts[i];
		span s = ix_span(&box, old->f);

		if (s.min >= old->hi || s.max < old->lo)
			p->empty = true;
		if (s.min < old->lo || s.max >= old->hi)
			g[n++] = *old;
	}
	p->dom.facts = g;
	p->dom.n_facts = n;
}

/* Replaces each axis i by with[i], a form over the n new axes. */
static void exchange(problem *p, int32_t n, const int64_t *extent,
	const ix_form *const *with)
{
	ix_dom d = {{n, extent}, 0, NULL};
	ix_fact *g = arena_array(p->a, ix_fact, p->dom.n_facts + 1);
	const ix_box old = p->dom.box;

	p->f = ix_subst(p->x, &d, p->f, old.n, old.extent, with);
	for (int32_t i = 0; i < p->dom.n_facts; i++) {
		g[i] = p->dom.facts[i];
		g[i].f = ix_subst(p->x, &d, g[i].f, old.n, old.extent, with);
	}
	d.n_facts = p->dom.n_facts;
	d.facts = g;
	p->dom = d;
	weed(p);
}

void problem_assume(problem *p, const ix_form *f, int64_t lo, int64_t hi)
{
	int32_t n = p->dom.n_facts;
	ix_fact *g = arena_array(p->a, ix_fact, n + 1);

	if (n > 0)
		memcpy(g, p->dom.facts, (size_t)n * sizeof *g);
	g[n] = (ix_fact){f, lo, hi};
	p->dom.facts = g;
	p->dom.n_facts = n + 1;
}

/* ---- bounds ---- */

/* One pass over the facts; true: an axis became shorter. */
static bool window(problem *p)
{
	const ix_box *old = &p->dom.box;
	int64_t *extent = arena_array(p->a, int64_t, old->n + 1);
	int64_t *from = arena_array(p->a, int64_t, old->n + 1);
	const ix_form **with = arena_array(p->a, const ix_form *, old->n + 1);
	ix_dom d = {{old->n, extent}, 0, NULL};
	bool any = false;

	for (int32_t i = 0; i < old->n; i++) {
		span s = ix_span_axis(&p->dom, i);

		if (s.min > s.max) {
			p->empty = true;
			return false;
		}
		from[i] = (int64_t)s.min;
		extent[i] = (int64_t)(s.max - s.min + 1);
		any = any || extent[i] < old->extent[i];
	}
	if (!any)
		return false;
	for (int32_t i = 0; i < old->n; i++)
		with[i] = ix_addc(p->x, ix_axis(p->x, &d, i), from[i]);
	exchange(p, old->n, extent, with);
	return true;
}

void problem_windows(problem *p)
{
	weed(p);
	while (p->dom.n_facts > 0 && !p->empty && window(p))
		;
}

/* ---- split ---- */

typedef VEC(int64_t) cut_list;

static void collect_cuts(problem *p, const ix_form *f, cut_list *cut)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;

		if (a->kind != IX_DIGIT) {
			collect_cuts(p, a->f, cut);
			continue;
		}
		*vec_push(p->a, &cut[a->axis]) = a->lo;
		*vec_push(p->a, &cut[a->axis]) = a->hi;
	}
}

/* Keeps cuts that nest and divide the extent, from 1 on, without the extent. */
static void nest(arena *a, cut_list *c, int64_t extent)
{
	int32_t n = 0;
	int64_t last = 1;

	if (c->n == 0)
		return;
	*vec_push(a, c) = extent;
	qsort(c->at, (size_t)c->n, sizeof *c->at, ascending);
	for (int32_t i = 0; i < c->n; i++) {
		int64_t q = c->at[i];

		if (q <= last || q % last != 0 || extent % q != 0)
			continue;
		c->at[n++] = last; /* n <= i */
		last = q;
	}
	c->n = n;
}

void problem_split(problem *p)
{
	const ix_box *old = &p->dom.box;
	cut_list *cut = arena_array(p->a, cut_list, old->n + 1);
	const ix_form **with = arena_array(p->a, const ix_form *, old->n + 1);
	int64_t *extent;
	int32_t n = 0;
	ix_dom d = {{0, NULL}, 0, NULL};

	collect_cuts(p, p->f, cut);
	for (int32_t i = 0; i < p->dom.n_facts; i++)
		collect_cuts(p, p->dom.facts[i].f, cut);
	for (int32_t i = 0; i < old->n; i++) {
		nest(p->a, &cut[i], old->extent[i]);
		n += cut[i].n;
	}
	if (n > IX_MAX_AXES)
		return;
	extent = arena_array(p->a, int64_t, n + 1);
	d.box.n = n;
	d.box.extent = extent;
	n = 0;
	for (int32_t i = 0; i < old->n; i++) {
		for (int32_t k = 0; k < cut[i].n; k++)
			extent[n++] = (k + 1 < cut[i].n ? cut[i].at[k + 1] :
				old->extent[i]) / cut[i].at[k];
	}
	n = 0;
	for (int32_t i = 0; i < old->n; i++) {
		sum s;

		sum_init(&s, p->x, 0);
		for (int32_t k = 0; k < cut[i].n; k++, n++)
			sum_digit(&s, cut[i].at[k], n, 1, extent[n]);
		with[i] = sum_done(&s, &d.box);
	}
	exchange(p, d.box.n, extent, with);
}

/* ---- fuse ---- */

struct run {
	int32_t hi, lo; /* axes */
};

static bool whole_axis(const problem *p, const ix_atom *a)
{
	return a->kind == IX_DIGIT && a->lo == 1 &&
		a->hi == p->dom.box.extent[a->axis];
}

/*
 * Does the form contain two whole axes with c_i = c_j * extent_j? If den is not
 * 0, modulo den, because under a floor the difference can be moved out.
 */
static bool run_in(const problem *p, const ix_form *f, int64_t den,
	struct run *r)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;

		if (!whole_axis(p, a))
			continue;
		for (int32_t k = 0; k < f->n; k++) {
			const ix_atom *b = f->t[k].atom;
			int64_t numel;
			wide c;

			if (k == i || !whole_axis(p, b) ||
				!mul_ok(a->hi, b->hi, &numel))
				continue;
			c = (wide)f->t[k].coef * b->hi - f->t[i].coef;
			if (den > 0 ? c % den != 0 : c != 0)
				continue;
			*r = (struct run){a->axis, b->axis};
			return true;
		}
	}
	return false;
}

static bool run_inside(const problem *p, const ix_form *f, bool modulo,
	struct run *r)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;

		if (a->kind != IX_DIGIT &&
			(run_in(p, a->f, modulo ? a->den : 0, r) ||
				run_inside(p, a->f, modulo, r)))
			return true;
	}
	return false;
}

static bool find_run(const problem *p, bool modulo, struct run *r)
{
	bool found = run_inside(p, p->f, modulo, r);

	for (int32_t i = 0; i < p->dom.n_facts && !found; i++)
		found = run_in(p, p->dom.facts[i].f, 0, r) ||
			run_inside(p, p->dom.facts[i].f, modulo, r);
	return found;
}

bool problem_fuse(problem *p)
{
	const ix_box *old = &p->dom.box;
	int64_t *extent;
	const ix_form **with;
	struct run r;
	int32_t hi, lo;
	ix_dom d;

	if (!find_run(p, false, &r) && !find_run(p, true, &r))
		return false;
	hi = r.hi;
	lo = r.lo;
	extent = arena_array(p->a, int64_t, old->n);
	with = arena_array(p->a, const ix_form *, old->n);
	memcpy(extent, old->extent, (size_t)old->n * sizeof *extent);
	extent[hi] *= extent[lo];
	extent[lo] = 1;
	d = (ix_dom){{old->n, extent}, 0, NULL};
	for (int32_t i = 0; i < old->n; i++)
		with[i] = ix_axis(p->x, &d, i);
	with[lo] = ix_digit(p->x, &d, hi, 1, old->extent[lo]);
	with[hi] = ix_digit(p->x, &d, hi, old->extent[lo], extent[hi]);
	exchange(p, d.box.n, extent, with);
	return true;
}

/* ---- period ---- */

static int64_t lcm(int64_t a, int64_t b)
{
	int64_t r;

	return mul_ok(a / gcd_i64(a, b), b, &r) ? r : 0;
}

static int64_t atom_period(const ix_box *box, const ix_atom *a, int32_t axis,
	wide *drift)
{
	int64_t l, g, r;

	*drift = 0;
	if ((ix_atom_axes(a) >> axis & 1) == 0)
		return 1;
	if (a->kind == IX_DIGIT) {
		*drift = a->hi >= box->extent[axis];
		return *drift ? a->lo : a->hi;
	}
	if (a->kind != IX_FLOOR)
		return 0;
	l = ix_period(box, a->f, axis, drift);
	if (l == 0)
		return 0;
	g = gcd_i64(a->den, (int64_t)(*drift % a->den));
	if (!mul_ok(l, a->den / g, &r))
		return 0;
	*drift = *drift / g; /* is multiplied by den/g and divided by den */
	return r;
}

int64_t ix_period(const ix_box *box, const ix_form *f, int32_t axis,
	wide *drift)
{
	int64_t all = 1;
	wide d;

	for (int32_t i = 0; i < f->n && all != 0; i++) {
		int64_t l = atom_period(box, f->t[i].atom, axis, &d);

		all = l == 0 ? 0 : lcm(all, l);
	}
	*drift = 0;
	for (int32_t i = 0; i < f->n && all != 0; i++) {
		int64_t l = atom_period(box, f->t[i].atom, axis, &d);
		wide v;

		if (__builtin_mul_overflow(d, (wide)(all / l) * f->t[i].coef,
				&v) || __builtin_add_overflow(*drift, v, drift))
			return 0;
	}
	return all;
}
