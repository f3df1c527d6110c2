/*
 * normal.c: makes the normal form of sums.
 *
 * Consumes parts in any order; produces a form whose terms are sorted, whose
 * atoms differ, and whose digits are canonical: sums of digits that are equal
 * as functions on the box become the same form.
 *
 *     4*(i div 4) + i mod 4                        ->  i
 *     i mod 4 + 3*(i mod 6) - i mod 4              ->  3*(i mod 6)
 *
 * Method: digit(axis, lo, hi) = F(lo) - hi/lo * F(hi) with F(p) = axis div p.
 * The F(p) with p < extent are linearly independent (proof: F(p) is the first
 * of them to jump at p; consider the smallest p with a weight). So the weights
 * of the F determine the function, and any fixed construction from them is
 * canonical. If the p nest, each dividing the next, they become the digits
 * between neighbours; a weight of zero at p joins two neighbours. If they do
 * not nest, digits that end exactly are taken out until the others nest; no new
 * cuts are made. (A factor may then start or end digits: ix_scale does not
 * change them. A difference is still exact.)
 */
#include "ix/local.h"

#include <stdlib.h>

/* ---- parts ---- */

bool part_same(const part *a, const part *b)
{
	if (a->atom != NULL || b->atom != NULL)
		return a->atom == b->atom;
	return a->axis == b->axis && a->lo == b->lo && a->hi == b->hi;
}

part part_digit(int64_t coef, int32_t axis, int64_t lo, int64_t hi)
{
	return (part){.coef = coef, .axis = axis, .lo = lo, .hi = hi};
}

part part_of(const ix_term *t)
{
	const ix_atom *a = t->atom;

	if (a->kind == IX_DIGIT)
		return part_digit(t->coef, a->axis, a->lo, a->hi);
	return (part){.coef = t->coef, .atom = a};
}

static int three(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int order(const void *l, const void *r)
{
	const part *a = l, *b = r;
	int c;

	if (part_is_digit(a) != part_is_digit(b))
		return part_is_digit(a) ? -1 : 1;
	if (!part_is_digit(a))
		return three(a->atom->id, b->atom->id);
	c = three(a->axis, b->axis);
	if (c == 0)
		c = three(b->lo, a->lo);
	if (c == 0)
		c = three(b->hi, a->hi);
	return c;
}

static void sort(part *p, int32_t n)
{
	if (n > 16) {
		qsort(p, (size_t)n, sizeof *p, order);
		return;
	}
	for (int32_t i = 1; i < n; i++) {
		part v = p[i];
		int32_t k = i;

		for (; k > 0 && order(&v, &p[k - 1]) < 0; k--)
			p[k] = p[k - 1];
		p[k] = v;
	}
}

/* ---- the digits of one axis ---- */

/* Adds w to the weight at p, and keeps the list sorted. */
static bool weigh(struct weight *w, int32_t *n, int64_t p, wide v)
{
	int32_t k = *n;

	while (k > 0 && w[k - 1].p > p)
		k--;
	if (k > 0 && w[k - 1].p == p)
		return !__builtin_add_overflow(w[k - 1].w, v, &w[k - 1].w);
	memmove(w + k + 1, w + k, (size_t)(*n - k) * sizeof *w);
	w[k].p = p;
	w[k].w = v;
	++*n;
	return true;
}

static int32_t drop_zeros(struct weight *w, int32_t n)
{
	int32_t k = 0;

	for (int32_t i = 0; i < n; i++)
		if (w[i].w != 0)
			w[k++] = w[i];
	return k;
}

static bool nests(const struct weight *w, int32_t n)
{
	for (int32_t i = 1; i < n; i++)
		if (w[i].p % w[i - 1].p != 0)
			return false;
	return true;
}

static bool emit(part *out, int32_t *n, wide c, int32_t axis, int64_t lo,
	int64_t hi)
{
	if (c < INT64_MIN || c > INT64_MAX)
		return false;
	out[(*n)++] = part_digit((int64_t)c, axis, lo, hi);
	return true;
}

/*
 * Takes out a digit [p, q) whose end cancels the weight of q, and whose start
 * does not exceed that of p.
 */
static bool take_closed(struct weight *w, int32_t *n, int32_t axis, part *out,
	int32_t *n_out)
{
	for (int32_t i = 0; i < *n; i++) {
		for (int32_t k = i + 1; k < *n; k++) {
			int64_t r = w[k].p / w[i].p;
			wide c = -w[k].w / r;

			if (w[k].p % w[i].p != 0 || w[k].w % r != 0 ||
				(c < 0) != (w[i].w < 0) ||
				(c < 0 ? c < w[i].w : c > w[i].w))
				continue;
			if (!emit(out, n_out, c, axis, w[i].p, w[k].p))
				return false;
			w[i].w -= c;
			w[k].w = 0;
			*n = drop_zeros(w, *n);
			return true;
		}
	}
	return false;
}

/* Converts weights to digits; false: a coefficient is too large. */
static bool digits_of(struct weight *w, int32_t n, int32_t axis,
	int64_t extent, part *out, int32_t *n_out)
{
	wide c = 0;

	while (!nests(w, n))
		if (!take_closed(w, &n, axis, out, n_out))
			break;
	if (!nests(w, n)) { /* keep them, as unbounded digits */
		for (int32_t i = 0; i < n; i++)
			if (!emit(out, n_out, w[i].w, axis, w[i].p, extent))
				return false;
		return true;
	}
	for (int32_t i = 0; i < n; i++) {
		wide up = 0;

		if (i > 0 && __builtin_mul_overflow(c,
				(wide)(w[i].p / w[i - 1].p), &up))
			return false;
		if (__builtin_add_overflow(up, w[i].w, &c))
			return false;
		if (c != 0 && !emit(out, n_out, c, axis, w[i].p,
				i + 1 < n ? w[i + 1].p : extent))
			return false;
	}
	return true;
}

static bool normal_axis(const ix_box *box, const part *in, int32_t n, part *out,
	int32_t *n_out, struct weight *w)
{
	int64_t extent = box->extent[in->axis];
	int32_t n_w = 0, from = *n_out;

	if (n == 1 && in->lo < extent && in->hi <= extent) {
		out[(*n_out)++] = *in;
		return true;
	}
	for (int32_t i = 0; i < n; i++) {
		const part *p = &in[i];

		if (p->lo < extent && !weigh(w, &n_w, p->lo, p->coef))
			return false;
		if (p->hi < extent && !weigh(w, &n_w, p->hi,
				-(wide)p->coef * (p->hi / p->lo)))
			return false;
	}
	if (!digits_of(w, drop_zeros(w, n_w), in->axis, extent, out, n_out))
		return false;
	sort(out + from, *n_out - from);
	return true;
}

/* ---- all axes ---- */

static bool normal_atom(const part *in, int32_t n, part *out, int32_t *n_out)
{
	wide c = 0;

	for (int32_t i = 0; i < n; i++)
		c += in[i].coef;
	if (c < INT64_MIN || c > INT64_MAX)
		return false;
	if (c != 0) {
		out[*n_out] = *in;
		out[(*n_out)++].coef = (int64_t)c;
	}
	return true;
}

static int32_t run_of(const part *p, int32_t n)
{
	int32_t k = 1;

	while (k < n && part_is_digit(&p[k]) == part_is_digit(p) &&
		(part_is_digit(p) ? p[k].axis == p->axis :
				    p[k].atom == p->atom))
		k++;
	return k;
}

int32_t ix_normal(const ix_box *box, const part *in, int32_t n, part *out,
	struct weight *w)
{
	/*
	 * The parts are sorted in the upper half. The first i parts give at
	 * most 2 i parts, and an axis is read before it is overwritten.
	 */
	part *own = out + n;
	int32_t n_out = 0, k;

	memcpy(own, in, (size_t)n * sizeof *in);
	sort(own, n);
	for (int32_t i = 0; i < n; i += k) {
		part *run = own + i;

		k = run_of(run, n - i);
		if (!part_is_digit(run)) {
			if (!normal_atom(run, k, out, &n_out))
				return -1;
			continue;
		}
		if (!normal_axis(box, run, k, out, &n_out, w))
			return -1;
	}
	return n_out;
}

/* ---- sums ---- */

void sum_init(sum *s, ix *x, int64_t c0)
{
	s->x = x;
	s->c0 = c0;
	s->n = 0;
	s->cap = SUM_FEW;
	s->at = s->few;
}

static void sum_room(sum *s, int32_t more)
{
	int32_t cap = s->cap;
	part *p;

	if (s->n + more <= cap)
		return;
	while (cap < s->n + more)
		cap *= 2;
	p = arena_array(ix_arena(s->x), part, cap);
	memcpy(p, s->at, (size_t)s->n * sizeof *p);
	s->at = p;
	s->cap = cap;
}

void sum_part(sum *s, const part *p, int64_t coef)
{
	if (coef == 0)
		return;
	sum_room(s, 1);
	s->at[s->n] = *p;
	s->at[s->n++].coef = coef;
}

void sum_digit(sum *s, int64_t coef, int32_t axis, int64_t lo, int64_t hi)
{
	part p = part_digit(coef, axis, lo, hi);

	sum_part(s, &p, coef);
}

void sum_atom(sum *s, int64_t coef, const ix_atom *a)
{
	ix_term t = {coef, a};
	part p = part_of(&t);

	sum_part(s, &p, coef);
}

void sum_form(sum *s, int64_t k, const ix_form *f)
{
	if (k == 0)
		return;
	s->c0 = ix_plus(s->x, s->c0, ix_mul(s->x, k, f->c0));
	sum_room(s, f->n);
	for (int32_t i = 0; i < f->n; i++) {
		s->at[s->n] = part_of(&f->t[i]);
		s->at[s->n++].coef = ix_mul(s->x, k, f->t[i].coef);
	}
}

static const ix_form *intern(ix *x, int64_t c0, const part *p, int32_t n,
	ix_term *t)
{
	for (int32_t i = 0; i < n; i++) {
		t[i].coef = p[i].coef;
		t[i].atom = p[i].atom;
		if (part_is_digit(&p[i]))
			t[i].atom = ix_atom_of(x, &(ix_atom){.kind = IX_DIGIT,
				.axis = p[i].axis, .lo = p[i].lo,
				.hi = p[i].hi});
	}
	return ix_form_of(x, c0, t, n);
}

const ix_form *sum_done(sum *s, const ix_box *box)
{
	part few[2 * SUM_FEW], *out = few;
	struct weight few_w[2 * SUM_FEW], *w = few_w;
	ix_term few_t[2 * SUM_FEW], *t = few_t;
	int32_t n;

	if (s->n > SUM_FEW) {
		arena *a = ix_arena(s->x);

		out = arena_array(a, part, 2 * s->n);
		w = arena_array(a, struct weight, 2 * s->n);
		t = arena_array(a, ix_term, 2 * s->n);
	}
	n = ix_normal(box, s->at, s->n, out, w);
	if (n < 0)
		ix_overflow(s->x);
	return intern(s->x, s->c0, out, n, t);
}

/* ---- building ---- */

const ix_form *ix_digit(ix *x, const ix_dom *d, int32_t axis, int64_t lo,
	int64_t hi)
{
	int64_t extent;
	sum s;

	if (axis < 0 || axis >= d->box.n || lo < 1 || hi < lo)
		env_bug(arena_env(ix_arena(x)), "ix_digit",
			"axis %d of %d, cut at %lld and %lld", axis, d->box.n,
			(long long)lo, (long long)hi);
	extent = d->box.extent[axis];
	if (hi < extent && hi % lo != 0)
		env_bug(arena_env(ix_arena(x)), "ix_digit",
			"%lld does not divide %lld", (long long)lo,
			(long long)hi);
	sum_init(&s, x, 0);
	if (lo < extent && lo < hi)
		sum_digit(&s, 1, axis, lo, hi < extent ? hi : extent);
	return sum_done(&s, &d->box);
}

const ix_form *ix_axis(ix *x, const ix_dom *d, int32_t axis)
{
	if (axis < 0 || axis >= d->box.n)
		env_bug(arena_env(ix_arena(x)), "ix_axis", "axis %d of %d",
			axis, d->box.n);
	return ix_digit(x, d, axis, 1, d->box.extent[axis]);
}

static const ix_form *add(ix *x, const ix_dom *d, const ix_form *a, int64_t k,
	const ix_form *b)
{
	sum s;

	if (b->n == 0)
		return ix_addc(x, a, ix_mul(x, k, b->c0));
	sum_init(&s, x, 0);
	sum_form(&s, 1, a);
	sum_form(&s, k, b);
	return sum_done(&s, &d->box);
}

const ix_form *ix_add(ix *x, const ix_dom *d, const ix_form *a,
	const ix_form *b)
{
	return a->n == 0 ? ix_addc(x, b, a->c0) : add(x, d, a, 1, b);
}

const ix_form *ix_sub(ix *x, const ix_dom *d, const ix_form *a,
	const ix_form *b)
{
	return a == b ? ix_const(x, 0) : add(x, d, a, -1, b);
}

const ix_form *ix_addc(ix *x, const ix_form *a, int64_t c)
{
	return c == 0 ? a :
			ix_form_of(x, ix_plus(x, a->c0, c), a->t, a->n);
}

/* A factor keeps the normal form, because it does not change cuts. */
const ix_form *ix_scale(ix *x, const ix_form *a, int64_t k)
{
	ix_term few[SUM_FEW], *t = few;
	int32_t n = k == 0 ? 0 : a->n;

	if (k == 1)
		return a;
	if (n > SUM_FEW)
		t = arena_array(ix_arena(x), ix_term, n);
	for (int32_t i = 0; i < n; i++) {
		t[i].coef = ix_mul(x, k, a->t[i].coef);
		t[i].atom = a->t[i].atom;
	}
	return ix_form_of(x, ix_mul(x, k, a->c0), t, n);
}
