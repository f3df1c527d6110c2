/*
 * equal.c: decides whether two forms are equal on all points of a domain.
 *
 * Consumes two forms; produces a verdict. EQUAL and DIFFERENT are proofs,
 * UNKNOWN: no proof was found within the limits.
 *
 *     (4*i + j) div 6 - (2*(i div 3) + ...)     digits after fusing i and j
 *
 * D = a - b. Each element f[g] that is read becomes a new axis; elements with
 * equal arguments become one. Forms that are equal for all values of these axes
 * are equal for all functions.
 *
 * If D has only digits, its normal form decides, because it is canonical.
 * Otherwise, after the changes of axes of reduce.c, D is divided into parts
 * that share no axis, not even through a fact. D is constant iff each part is;
 * a part is constant iff it is constant on 0 .. L of each axis, where L is its
 * period there (the +1 is for the drift). Small boxes are walked point by
 * point. For larger ones a clamp gives three cases, each with a fact; then some
 * points are tried.
 */
#include "ix/local.h"

#include "base/random.h"

enum { WALK = 1 << 16, FEW_POINTS = 24, MANY_POINTS = 4096, CASES = 4 };

/* ---- points ---- */

static bool holds(const ix_dom *d, const int64_t *at)
{
	for (int32_t i = 0; i < d->n_facts; i++) {
		int64_t v = ix_eval(d->facts[i].f, at, NULL, NULL);

		if (v < d->facts[i].lo || v >= d->facts[i].hi)
			return false;
	}
	return true;
}

/* The k-th point to try; ends of axes are preferred. */
static void try_point(const ix_box *box, int64_t k, int64_t *at)
{
	for (int32_t i = 0; i < box->n; i++) {
		uint64_t r = base_mix64((uint64_t)k * IX_MAX_AXES +
			(uint64_t)i + 1);
		int64_t e = box->extent[i];

		switch (r & 7) {
		case 0:
			at[i] = 0;
			break;
		case 1:
			at[i] = e - 1;
			break;
		default:
			at[i] = (int64_t)((r >> 3) % (uint64_t)e);
			break;
		}
	}
}

/*
 * Is the value at one of n points of the domain not zero? There are no
 * functions.
 */
static bool refuted(const problem *p, int64_t n)
{
	int64_t at[IX_MAX_AXES];

	for (int64_t k = 0; k < n; k++) {
		try_point(&p->dom.box, k, at);
		if (ix_eval(p->f, at, NULL, NULL) != 0 && holds(&p->dom, at))
			return true;
	}
	return false;
}

/* ---- parts that share no axis ---- */

enum outcome { NO_POINT, ONE_VALUE, VALUES, TOO_LARGE };

/*
 * A part of D, and a box that is large enough to decide whether it is constant.
 */
struct piece {
	uint64_t axes;
	const ix_form *f;
	ix_dom dom; /* the facts of the part, with the box of D */
	int64_t count[IX_MAX_AXES];
	int64_t value;
};

static int32_t pieces(const problem *p, uint64_t *axes)
{
	int32_t n = 0, n_items = p->f->n + p->dom.n_facts;

	for (int32_t i = 0; i < n_items; i++) {
		uint64_t m = i < p->f->n ? ix_atom_axes(p->f->t[i].atom) :
			ix_form_axes(p->dom.facts[i - p->f->n].f);
		int32_t k = 0;

		for (int32_t j = 0; j < n; j++) {
			if ((axes[j] & m) != 0)
				m |= axes[j];
			else
				axes[k++] = axes[j];
		}
		axes[k] = m;
		n = k + 1;
	}
	return n;
}

/* Computes the box of a part; false: it has too many points to walk. */
static bool piece_box(struct piece *q)
{
	const ix_box *box = &q->dom.box;
	int64_t points = 1;
	wide drift;

	for (int32_t i = 0; i < box->n; i++) {
		int64_t l = 0;

		q->count[i] = 1;
		if ((q->axes >> i & 1) == 0)
			continue;
		if (q->dom.n_facts == 0)
			l = ix_period(box, q->f, i, &drift);
		q->count[i] = l > 0 && l < box->extent[i] ? l + 1 :
			box->extent[i];
		if (q->count[i] > WALK / points)
			return false;
		points *= q->count[i];
	}
	return true;
}

static void piece_init(const problem *p, uint64_t axes, struct piece *q)
{
	ix_term *t = arena_array(p->a, ix_term, p->f->n + 1);
	ix_fact *g = arena_array(p->a, ix_fact, p->dom.n_facts + 1);
	int32_t n = 0;

	q->axes = axes;
	q->dom = (ix_dom){p->dom.box, 0, g};
	for (int32_t i = 0; i < p->f->n; i++)
		if ((ix_atom_axes(p->f->t[i].atom) & ~axes) == 0)
			t[n++] = p->f->t[i];
	q->f = ix_form_of(p->x, 0, t, n);
	for (int32_t i = 0; i < p->dom.n_facts; i++)
		if ((ix_form_axes(p->dom.facts[i].f) & ~axes) == 0)
			g[q->dom.n_facts++] = p->dom.facts[i];
}

static enum outcome walk(struct piece *q)
{
	int64_t at[IX_MAX_AXES] = {0};
	enum outcome r = NO_POINT;
	int32_t i;

	if (ix_form_has(q->f) == 0 && q->dom.n_facts == 0 && q->f->n > 0)
		return VALUES; /* only digits: canonical */
	if (!piece_box(q))
		return TOO_LARGE;
	do {
		if (holds(&q->dom, at)) {
			int64_t v = ix_eval(q->f, at, NULL, NULL);

			if (r == ONE_VALUE && v != q->value)
				return VALUES;
			q->value = v;
			r = ONE_VALUE;
		}
		for (i = q->dom.box.n - 1; i >= 0; i--) {
			if (++at[i] < q->count[i])
				break;
			at[i] = 0;
		}
	} while (i >= 0);
	return r;
}

static ix_verdict by_pieces(const problem *p)
{
	uint64_t *axes = arena_array(p->a, uint64_t,
		p->f->n + p->dom.n_facts + 1);
	int32_t n = pieces(p, axes);
	uint64_t total = (uint64_t)p->f->c0;
	bool varies = false, unknown = false;

	for (int32_t i = 0; i < n; i++) {
		struct piece q;

		piece_init(p, axes[i], &q);
		switch (walk(&q)) {
		case NO_POINT:
			return IX_EQUAL;
		case ONE_VALUE:
			total += (uint64_t)q.value;
			break;
		case VALUES:
			varies = true;
			break;
		case TOO_LARGE:
			unknown = true;
			break;
		}
	}
	if (unknown)
		return IX_UNKNOWN;
	return varies || total != 0 ? IX_DIFFERENT : IX_EQUAL;
}

/* ---- the whole question ---- */

static ix_verdict zero(problem *p, int cases);

/* A clamp whose argument contains no clamp. */
static const ix_atom *some_clamp(const ix_form *f)
{
	if ((ix_form_has(f) & HAS_CLAMP) == 0)
		return NULL;
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;

		if ((ix_atom_has(a) & HAS_CLAMP) == 0)
			continue;
		if (a->kind == IX_CLAMP &&
			(ix_form_has(a->f) & HAS_CLAMP) == 0)
			return a;
		return some_clamp(a->f);
	}
	return NULL;
}

static ix_verdict by_cases(const problem *p, int cases)
{
	const ix_atom *a = cases > 0 ? some_clamp(p->f) : NULL;
	ix_verdict all = IX_EQUAL;

	if (a == NULL || a->hi == INT64_MAX)
		return IX_UNKNOWN;
	for (int k = 0; k < 3; k++) {
		problem q = *p;
		ix_verdict v;

		problem_assume(&q, a->f, k == 0 ? INT64_MIN :
			k == 1 ? a->lo : a->hi + 1,
			k == 0 ? a->lo : k == 1 ? a->hi + 1 : INT64_MAX);
		v = zero(&q, cases - 1);
		if (v == IX_DIFFERENT)
			return v;
		if (v == IX_UNKNOWN)
			all = v;
	}
	return all;
}

static bool decided(const problem *p, ix_verdict *v)
{
	if (p->empty || (p->f->n == 0 && p->f->c0 == 0)) {
		*v = IX_EQUAL;
		return true;
	}
	*v = IX_DIFFERENT;
	return p->dom.n_facts == 0 &&
		(p->f->n == 0 || ix_form_has(p->f) == 0);
}

/* Decides whether the form is zero. Functions have been replaced by axes. */
static ix_verdict zero(problem *p, int cases)
{
	ix_verdict v;
	problem split;

	problem_windows(p);
	if (decided(p, &v))
		return v;
	p->f = ix_simplify(p->x, &p->dom, p->f);
	if (decided(p, &v))
		return v;
	if (refuted(p, FEW_POINTS))
		return IX_DIFFERENT;
	problem_split(p);
	split = *p;
	while (!decided(p, &v) && problem_fuse(p))
		;
	if (decided(p, &v))
		return v;
	v = by_pieces(p);
	if (v == IX_UNKNOWN)
		v = by_pieces(&split);
	if (v == IX_UNKNOWN)
		v = by_cases(p, cases);
	if (v == IX_UNKNOWN && refuted(p, MANY_POINTS))
		v = IX_DIFFERENT;
	return v;
}

/* ---- functions ---- */

static const ix_form *without_functions(problem *p, int64_t *extent,
	const ix_form *f);

static bool fact_functions(const problem *p)
{
	for (int32_t i = 0; i < p->dom.n_facts; i++)
		if (ix_has_fun(p->dom.facts[i].f))
			return true;
	return false;
}

static int32_t class_of(problem *p, int64_t *extent, const ix_atom *a)
{
	const ix_form *at = without_functions(p, extent, a->f);
	int32_t n;

	if (at == NULL)
		return -1;
	for (int32_t i = 0; i < p->fun.n; i++) {
		const fun_class *c = &p->fun.at[i];
		ix_dom d = p->dom;

		if (fact_functions(p))
			d.n_facts = 0; /* facts are still over the old axes */
		if (c->fun != a->fun || c->lo != a->lo || c->hi != a->hi)
			continue;
		if (ix_equal(p->x, &d, c->at, at) == IX_EQUAL)
			return c->axis;
		p->twins = true;
	}
	n = p->dom.box.n;
	if (n == IX_MAX_AXES || (wide)a->hi - a->lo > INT64_MAX)
		return -1;
	extent[n] = a->hi - a->lo;
	p->dom.box.n++;
	*vec_push(p->a, &p->fun) = (fun_class){a->fun, a->lo, a->hi, at, n};
	return n;
}

static const ix_form *atom_without(problem *p, int64_t *extent,
	const ix_atom *a)
{
	ix_dom d;
	const ix_form *f;
	int32_t axis;

	if (a->kind == IX_FUN) {
		axis = class_of(p, extent, a);
		d = (ix_dom){p->dom.box, 0, NULL};
		return axis < 0 ? NULL :
			ix_addc(p->x, ix_axis(p->x, &d, axis), a->lo);
	}
	f = without_functions(p, extent, a->f);
	d = (ix_dom){p->dom.box, 0, NULL};
	if (f == NULL)
		return NULL;
	return a->kind == IX_FLOOR ? ix_div(p->x, &d, f, a->den) :
				     ix_clamp(p->x, &d, f, a->lo, a->hi);
}

static const ix_form *without_functions(problem *p, int64_t *extent,
	const ix_form *f)
{
	sum s;

	if (!ix_has_fun(f))
		return f;
	sum_init(&s, p->x, f->c0);
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;
		const ix_form *g;

		if ((ix_atom_has(a) & HAS_FUN) == 0) {
			sum_atom(&s, f->t[i].coef, a);
			continue;
		}
		g = atom_without(p, extent, a);
		if (g == NULL)
			return NULL;
		sum_form(&s, f->t[i].coef, g);
	}
	return sum_done(&s, &p->dom.box);
}

/*
 * New axes follow the old ones, so that forms without functions do not change.
 */
static bool functions_to_axes(problem *p)
{
	int64_t *extent = arena_array(p->a, int64_t, IX_MAX_AXES);
	ix_fact *g = arena_array(p->a, ix_fact, p->dom.n_facts + 1);

	if (!ix_has_fun(p->f) && !fact_functions(p))
		return true;
	memcpy(extent, p->dom.box.extent,
		(size_t)p->dom.box.n * sizeof *extent);
	p->dom.box.extent = extent;
	p->f = without_functions(p, extent, p->f);
	for (int32_t i = 0; i < p->dom.n_facts; i++) {
		g[i] = p->dom.facts[i];
		g[i].f = without_functions(p, extent, g[i].f);
		if (g[i].f == NULL)
			return false;
	}
	p->dom.facts = g;
	return p->f != NULL;
}

/* ---- functions that are read at two arguments ---- */

struct values {
	const problem *p;
	int64_t seed;
};

static int64_t some_value(void *arg, int64_t fun, int64_t at)
{
	const struct values *v = arg;

	for (int32_t i = 0; i < v->p->fun.n; i++) {
		const fun_class *c = &v->p->fun.at[i];
		uint64_t r;

		if (c->fun != fun)
			continue;
		r = base_mix64((uint64_t)at * 3 + (uint64_t)(fun + v->seed));
		return c->lo + (int64_t)(r % (uint64_t)(c->hi - c->lo));
	}
	return 0;
}

/* DIFFERENT needs one function that is consistent with all reads. */
static ix_verdict twins(const problem *p, const ix_dom *d, const ix_form *f)
{
	int64_t at[IX_MAX_AXES];

	for (int64_t k = 0; k < MANY_POINTS; k++) {
		struct values v = {p, k};
		bool in = true;

		try_point(&d->box, k, at);
		for (int32_t i = 0; i < d->n_facts && in; i++) {
			int64_t g = ix_eval(d->facts[i].f, at, some_value, &v);

			in = g >= d->facts[i].lo && g < d->facts[i].hi;
		}
		if (in && ix_eval(f, at, some_value, &v) != 0)
			return IX_DIFFERENT;
	}
	return IX_UNKNOWN;
}

ix_verdict ix_equal(ix *x, const ix_dom *d, const ix_form *a, const ix_form *b)
{
	const ix_form *f;
	ix_verdict v = IX_UNKNOWN;
	problem p;

	if (a == b)
		return IX_EQUAL;
	f = ix_sub(x, d, a, b);
	if (f->n == 0 && f->c0 == 0)
		return IX_EQUAL;
	if (d->n_facts == 0 && (f->n == 0 || ix_form_has(f) == 0))
		return IX_DIFFERENT;
	problem_init(&p, x, arena_child(ix_arena(x)), d, f);
	if (functions_to_axes(&p))
		v = zero(&p, CASES);
	if (v == IX_DIFFERENT && p.twins)
		v = twins(&p, d, f);
	arena_free(p.a);
	return v;
}
