/*
 * inject.c: decides whether a form takes a value twice.
 *
 * Consumes a form over a domain; produces a verdict.
 *
 *     3*i + j   j < 3      EQUAL: yes         i + j     DIFFERENT: no
 *     i mod 4   i < 8      DIFFERENT          2*i + 3*j, j < 2: EQUAL
 *
 * Digits: two points with the same value differ by signed digits s with sum c*s
 * = 0, |s| < extent. From the largest coefficient down, the range and the gcd
 * of the remaining terms allow few s, usually only 0: the mixed-radix argument.
 * If cuts do not divide the extent, the two points are constructed: positive s
 * in one, negative in the other, and zero elsewhere, which is the smallest
 * choice; then the axis decides. Floors: axes are fused (reduce.c), else a
 * small box is walked.
 */
#include "ix/local.h"

#include <stdlib.h>

enum { WALK = 1 << 16, STEPS = 200000, DIGITS = 64 };

struct digits {
	const ix_box *box;
	int32_t n;
	part p[DIGITS];	     /* by |coef|, largest first */
	wide e[DIGITS];	     /* values */
	/* largest absolute value of the sum of p[k ..] */
	wide reach[DIGITS + 1];
	wide gcd[DIGITS + 1];
	int64_t s[DIGITS]; /* signed digits so far */
	int64_t steps;
};

static wide mag(wide v)
{
	return v < 0 ? -v : v;
}

static int largest_first(const void *l, const void *r)
{
	const part *a = l, *b = r;
	wide x = mag(a->coef), y = mag(b->coef);

	if (x != y)
		return x < y ? 1 : -1;
	if (a->axis != b->axis)
		return a->axis < b->axis ? -1 : 1;
	return (a->lo > b->lo) - (a->lo < b->lo);
}

/*
 * Do the digits of the form distinguish all points of each axis? UNKNOWN: the
 * cuts of an axis do not nest.
 */
static ix_verdict covers(const ix_box *box, const ix_form *f)
{
	ix_verdict all = IX_EQUAL;
	int32_t i = 0;

	for (int32_t axis = 0; axis < box->n; axis++) {
		int64_t above = box->extent[axis];

		for (; i < f->n && f->t[i].atom->axis == axis; i++) {
			const ix_atom *a = f->t[i].atom;

			if (a->hi > above || above % a->hi != 0)
				return IX_UNKNOWN;
			if (a->hi < above)
				all = IX_DIFFERENT;
			above = a->lo;
		}
		if (above > 1)
			all = IX_DIFFERENT;
	}
	return all;
}

static wide wide_gcd(wide a, wide b)
{
	while (b != 0) {
		wide r = a % b;

		a = b;
		b = r;
	}
	return mag(a);
}

static void digits_init(struct digits *g, const ix_box *box, const ix_form *f)
{
	memset(g, 0, sizeof *g);
	g->box = box;
	g->n = f->n;
	for (int32_t i = 0; i < f->n; i++)
		g->p[i] = part_of(&f->t[i]);
	qsort(g->p, (size_t)g->n, sizeof *g->p, largest_first);
	for (int32_t i = g->n - 1; i >= 0; i--) {
		const part *p = &g->p[i];

		g->e[i] = ((wide)p->hi + p->lo - 1) / p->lo;
		g->reach[i] = g->reach[i + 1] + mag(p->coef) * (g->e[i] - 1);
		g->gcd[i] = wide_gcd(g->gcd[i + 1], p->coef);
	}
}

/* Are the two points of these signed digits in the box? */
static bool real(const struct digits *g)
{
	for (int32_t axis = 0; axis < g->box->n; axis++) {
		wide a = 0, b = 0;

		for (int32_t i = 0; i < g->n; i++) {
			if (g->p[i].axis != axis)
				continue;
			if (g->s[i] > 0)
				a += (wide)g->s[i] * g->p[i].lo;
			else
				b -= (wide)g->s[i] * g->p[i].lo;
		}
		if (a >= g->box->extent[axis] || b >= g->box->extent[axis])
			return false;
	}
	return true;
}

static wide wide_floor(wide a, wide m)
{
	return a / m - (a % m < 0);
}

/*
 * Searches for signed digits k .. n-1 that make t zero, not all of them zero.
 * DIFFERENT: found; EQUAL: there are none; UNKNOWN: too many steps.
 */
static ix_verdict search(struct digits *g, int32_t k, wide t, bool any)
{
	wide c, r, from, to;
	ix_verdict v;

	if (mag(t) > g->reach[k] ||
		(g->gcd[k] == 0 ? t != 0 : t % g->gcd[k] != 0))
		return IX_EQUAL;
	if (k == g->n)
		return any && real(g) ? IX_DIFFERENT : IX_EQUAL;
	c = mag(g->p[k].coef);
	r = g->reach[k + 1];
	from = -wide_floor(r + t, c);
	to = wide_floor(r - t, c);
	from = from < 1 - g->e[k] ? 1 - g->e[k] : from;
	to = to > g->e[k] - 1 ? g->e[k] - 1 : to;
	if (!any && from < 0)
		/* the first one that is not zero is positive, by symmetry */
		from = 0;
	for (wide s = from; s <= to; s++) {
		if (++g->steps > STEPS)
			return IX_UNKNOWN;
		g->s[k] = (int64_t)(g->p[k].coef < 0 ? -s : s);
		v = search(g, k + 1, t + c * s, any || s != 0);
		if (v != IX_EQUAL)
			return v;
	}
	return IX_EQUAL;
}

static ix_verdict by_digits(arena *a, const ix_box *box, const ix_form *f)
{
	ix_verdict v = covers(box, f);
	struct digits *g;

	if (v != IX_EQUAL || f->n > DIGITS)
		return v == IX_EQUAL ? IX_UNKNOWN : v;
	g = arena_make(a, struct digits);
	digits_init(g, box, f);
	return search(g, 0, 0, false);
}

/* Decides for a small box by sorting all its values. */
static ix_verdict by_walk(const problem *p)
{
	const ix_box *box = &p->dom.box;
	int64_t at[IX_MAX_AXES] = {0}, points = 1, n = 0, *v;
	int32_t i;

	for (i = 0; i < box->n; i++) {
		if (box->extent[i] > WALK / points)
			return IX_UNKNOWN;
		points *= box->extent[i];
	}
	v = arena_array(p->a, int64_t, points);
	do {
		bool in = true;

		for (i = 0; i < p->dom.n_facts && in; i++) {
			const ix_fact *g = &p->dom.facts[i];
			int64_t u = ix_eval(g->f, at, NULL, NULL);

			in = u >= g->lo && u < g->hi;
		}
		if (in)
			v[n++] = ix_eval(p->f, at, NULL, NULL);
		for (i = box->n - 1; i >= 0; i--) {
			if (++at[i] < box->extent[i])
				break;
			at[i] = 0;
		}
	} while (i >= 0);
	qsort(v, (size_t)n, sizeof *v, ascending);
	for (int64_t k = 1; k < n; k++)
		if (v[k] == v[k - 1])
			return IX_DIFFERENT;
	return IX_EQUAL;
}

/*
 * Are there more points than values between the bounds? Then a value occurs
 * twice, for any functions.
 */
static bool crowded(const ix_dom *d, const ix_form *f)
{
	span s = ix_span(d, f);
	wide points = 1;

	for (int32_t i = 0; i < d->box.n && points < WIDE_MAX; i++)
		points *= d->box.extent[i];
	return d->n_facts == 0 && points > s.max - s.min + 1;
}

static ix_verdict injective(problem *p)
{
	ix_verdict v = IX_UNKNOWN;
	problem q;

	problem_windows(p);
	if (p->empty)
		return IX_EQUAL;
	if (ix_form_has(p->f) == 0)
		v = by_digits(p->a, &p->dom.box, p->f);
	if (v == IX_EQUAL || (v == IX_DIFFERENT && p->dom.n_facts == 0))
		return v;
	if (crowded(&p->dom, p->f))
		return IX_DIFFERENT;
	v = by_walk(p);
	if (v != IX_UNKNOWN)
		return v;
	for (int32_t i = 0; i < p->dom.box.n; i++) {
		uint64_t used = ix_form_axes(p->f);

		for (int32_t k = 0; k < p->dom.n_facts; k++)
			used |= ix_form_axes(p->dom.facts[k].f);
		/*
		 * facts do not depend on this axis: if they hold at a point,
		 * they hold at its neighbours
		 */
		if (p->dom.box.extent[i] > 1 && (used >> i & 1) == 0)
			return p->dom.n_facts == 0 ? IX_DIFFERENT : IX_UNKNOWN;
	}
	q = *p;
	problem_split(&q);
	while (ix_form_has(q.f) != 0 && problem_fuse(&q))
		;
	if (ix_form_has(q.f) == 0)
		v = by_digits(q.a, &q.dom.box, q.f);
	return v == IX_DIFFERENT && q.dom.n_facts > 0 ? IX_UNKNOWN : v;
}

ix_verdict ix_injective(ix *x, const ix_dom *d, const ix_form *f)
{
	ix_verdict v = IX_UNKNOWN;
	problem p;

	if (ix_has_fun(f))
		return crowded(d, f) ? IX_DIFFERENT : IX_UNKNOWN;
	for (int32_t i = 0; i < d->n_facts; i++)
		if (ix_has_fun(d->facts[i].f))
			return crowded(d, f) ? IX_DIFFERENT : IX_UNKNOWN;
	problem_init(&p, x, arena_child(ix_arena(x)), d, f);
	v = injective(&p);
	arena_free(p.a);
	return v;
}
