/*
 * div.c: floor division, and the other operations that make an atom: clamp and
 * functions.
 *
 * Consumes a form; produces its quotient over a domain by these rules, in this
 * order, each of them exact:
 *
 *   range      all values in one block [k m, (k+1) m): k. Tried before
 *              anything is cut, because facts are about the uncut form
 *   multiples  of m are divided, and each coefficient keeps its remainder
 *   cut        c*digit, c | m, more than m/c values: the upper part is divided
 *   small      m = g*q, all of A divisible by g, B within one block of g:
 *              (A + B) div m = (A/g + k) div q. B empty: division by a gcd
 *   nested     (g + f div a) div m = (a*g + f) div (a*m)
 *   floor      an atom. Cuts that only m had made are undone, constant in
 *              [0, m), first weight (see normal.c) positive by
 *              -(f div m) = (m - 1 - f) div m
 *
 *     i < 24:          (8*i + j) div 32, j < 8   ->  i div 4
 *     i < 24:          (23 - i) div 6            ->  3 - i div 6
 *     fact 0<=j-1<6:   (6*i + j - 1) div 6       ->  i
 */
#include "ix/local.h"

static int64_t size(int64_t v)
{
	return v < 0 ? -v : v; /* never INT64_MIN: remainders of m < 2^63 */
}

/* Are all values in one block of m? Sets k to its number. */
static bool one_block(const ix_dom *d, wide c0, const part *p, int32_t n,
	int64_t m, int64_t *k)
{
	span s = ix_span_parts(d, c0, p, n);

	if (s.min < INT64_MIN || s.max > INT64_MAX)
		return false;
	*k = floor_div((int64_t)s.min, m);
	return *k == floor_div((int64_t)s.max, m);
}

static bool form_block(const ix_dom *d, const ix_form *f, int64_t m,
	int64_t *k)
{
	span s = ix_span(d, f);

	if (s.min < INT64_MIN || s.max > INT64_MAX)
		return false;
	*k = floor_div((int64_t)s.min, m);
	return *k == floor_div((int64_t)s.max, m);
}

/* Can f be computed in 64 bits, with room for a constant? */
static bool fits(const ix_dom *d, const ix_form *f)
{
	span s = ix_span(&(ix_dom){d->box, 0, NULL}, f);
	const wide most = INT64_MAX / 2;

	return s.min >= -most && s.max <= most;
}

/* Moves multiples of m to out, divided by m, and the other terms to rest. */
static void multiples(const ix_form *f, int64_t m, sum *out, sum *rest)
{
	out->c0 = floor_div(f->c0, m);
	rest->c0 = floor_mod(f->c0, m);
	for (int32_t i = 0; i < f->n; i++) {
		part p = part_of(&f->t[i]);

		if (p.coef % m == 0)
			sum_part(out, &p, p.coef / m);
		else
			sum_part(rest, &p, p.coef);
	}
}

/*
 * The position at which q cuts [lo, hi) so that a part can be divided; 0: none.
 */
static int64_t cut_at(const ix_box *box, const part *p, int64_t q)
{
	int64_t at;
	bool top = p->hi >= box->extent[p->axis];

	if (!mul_ok(p->lo, q, &at) || at >= p->hi)
		return 0;
	return top || p->hi % at == 0 ? at : 0;
}

/*
 * Reduces coefficients to remainders, and cuts digits. true: something changed.
 */
static bool reduce(const ix_box *box, int64_t m, sum *out, sum *rest)
{
	bool changed = false;

	for (int32_t i = 0; i < rest->n; i++) {
		part *p = &rest->at[i];
		int64_t c = p->coef % m, at;

		if (c != p->coef) {
			sum_part(out, p, p->coef / m);
			p->coef = c;
			changed = true;
		}
		if (!part_is_digit(p) || m % c != 0)
			continue;
		at = cut_at(box, p, m / size(c));
		if (at == 0)
			continue;
		sum_digit(out, c < 0 ? -1 : 1, p->axis, at, p->hi);
		p->hi = at;
		changed = true;
	}
	return changed;
}

/*
 * Divides the coefficients that are multiples of g by g; NULL: the other terms
 * may leave one block.
 */
static const ix_form *without_small(ix *x, const ix_dom *d, const ix_form *r,
	int64_t g)
{
	sum small, large;
	int64_t k;

	sum_init(&small, x, floor_mod(r->c0, g));
	sum_init(&large, x, floor_div(r->c0, g));
	for (int32_t i = 0; i < r->n; i++) {
		part p = part_of(&r->t[i]);

		if (p.coef % g == 0)
			sum_part(&large, &p, p.coef / g);
		else
			sum_part(&small, &p, p.coef);
	}
	if (small.n > 0) {
		if (!one_block(d, small.c0, small.at, small.n, g, &k))
			return NULL;
		large.c0 = ix_plus(x, large.c0, k);
	}
	return sum_done(&large, &d->box);
}

/*
 * Applies rule "small" with the largest possible g, which it returns; 1: none.
 */
static int64_t small_rule(ix *x, const ix_dom *d, const ix_form *r, int64_t m,
	const ix_form **out)
{
	int64_t below = m, best, all = m;

	for (int32_t i = 0; i < r->n; i++)
		all = gcd_i64(all, r->t[i].coef);
	do {
		best = all < below ? all : 1;
		for (int32_t i = 0; i < r->n; i++) {
			int64_t g = gcd_i64(m, r->t[i].coef);

			if (g < below && g > best)
				best = g;
		}
		if (best == 1)
			return 1;
		below = best;
		*out = without_small(x, d, r, best);
	} while (*out == NULL);
	return best;
}

/*
 * Replaces g + (f div a) by a*g + f; 0: no such term, or a number is too large.
 */
static int64_t nested_rule(ix *x, const ix_dom *d, const ix_form *r, int64_t m,
	const ix_form **out)
{
	const ix_atom *a = NULL;
	int64_t am, c;
	sum s;

	for (int32_t i = 0; i < r->n && a == NULL; i++)
		if (r->t[i].coef == 1 && r->t[i].atom->kind == IX_FLOOR)
			a = r->t[i].atom;
	if (a == NULL || !mul_ok(a->den, m, &am) || am > INT64_MAX / 4)
		return 0;
	for (int32_t i = 0; i < r->n; i++)
		if (!mul_ok(a->den, r->t[i].coef, &c) || size(c) >= am)
			return 0;
	sum_init(&s, x, 0);
	sum_form(&s, a->den, r);
	sum_atom(&s, ix_mul(x, -1, a->den), a);
	sum_form(&s, 1, a->f);
	*out = sum_done(&s, &d->box);
	return fits(d, *out) ? am : 0;
}

/* ---- the atom ---- */

/* Adds c times the part to rest. */
static void gather(const part *p, wide c, sum *rest)
{
	int32_t i;

	for (i = 0; i < rest->n && !part_same(&rest->at[i], p); i++)
		;
	if (i == rest->n) {
		sum_part(rest, p, ix_fit(rest->x, c));
		return;
	}
	c += rest->at[i].coef;
	if (c != 0)
		rest->at[i].coef = ix_fit(rest->x, c);
	else
		rest->at[i] = rest->at[--rest->n];
}

/*
 * Writes each digit as two unbounded ones, c*(v div lo) - c*hi/lo*(v div hi),
 * and moves those that m divides to out. This undoes each cut that only m had
 * made: i mod 4 + j becomes i + j if m = 4.
 */
static void uncut(const ix_box *box, const ix_form *r, int64_t m, sum *out,
	sum *rest)
{
	int32_t n = 0;

	for (int32_t i = 0; i < r->n; i++) {
		part p = part_of(&r->t[i]);
		int64_t c = p.coef % m, hi = p.hi;

		sum_part(out, &p, p.coef / m);
		if (part_is_digit(&p))
			p.hi = box->extent[p.axis];
		gather(&p, c, rest);
		if (part_is_digit(&p) && hi < p.hi) {
			int64_t ratio = hi / p.lo;

			p.lo = hi;
			gather(&p, -(wide)c * ratio, rest);
		}
	}
	for (int32_t i = 0; i < rest->n; i++) {
		const part *p = &rest->at[i];

		if (p->coef % m == 0)
			sum_part(out, p, p->coef / m);
		else
			rest->at[n++] = *p;
	}
	rest->n = n;
}

static bool before(const part *a, const part *b)
{
	if (part_is_digit(a) != part_is_digit(b))
		return part_is_digit(a);
	if (!part_is_digit(a))
		return a->atom->id < b->atom->id;
	return a->axis != b->axis ? a->axis < b->axis : a->lo < b->lo;
}

/* The sign that makes the first weight positive. */
static int64_t sign_of(const sum *s)
{
	const part *first = NULL;

	for (int32_t i = 0; i < s->n; i++) {
		const part *p = &s->at[i];

		if (first == NULL || before(p, first))
			first = p;
	}
	return first != NULL && first->coef < 0 ? -1 : 1;
}

/* Adds the atom r div m to out. */
static void floor_atom(ix *x, const ix_dom *d, const ix_form *r, int64_t m,
	sum *out)
{
	ix_atom key = {.kind = IX_FLOOR, .den = m};
	int64_t sign, k;
	sum rest, left;

	sum_init(&rest, x, r->c0);
	sum_init(&left, x, 0);
	uncut(&d->box, r, m, &left, &rest);
	sign = sign_of(&rest);
	if (sign < 0) {
		rest.c0 = m - 1 - rest.c0;
		for (int32_t i = 0; i < rest.n; i++)
			rest.at[i].coef = ix_mul(x, -1, rest.at[i].coef);
	}
	key.f = sum_done(&rest, &d->box);
	if (!fits(d, key.f)) { /* without its cut, a long axis does not fit */
		sum_atom(out, 1, ix_atom_of(x, &(ix_atom){.kind = IX_FLOOR,
			.den = m, .f = r}));
		return;
	}
	for (int32_t i = 0; i < left.n; i++)
		sum_part(out, &left.at[i], left.at[i].coef);
	if (form_block(d, key.f, m, &k))
		out->c0 = ix_plus(x, out->c0, sign * k);
	else
		sum_atom(out, sign, ix_atom_of(x, &key));
}

/* ---- the rules in order ---- */

static const ix_form *divide(ix *x, const ix_dom *d, const ix_form *f,
	int64_t m);

/*
 * Applies all rules but the first to the rest of multiples(). It terminates,
 * because "nested" removes a floor and "small" decreases m.
 */
static const ix_form *divide_rest(ix *x, const ix_dom *d, int64_t m, sum *out,
	sum *rest)
{
	const ix_form *r, *s = NULL;
	int64_t k;

	if (reduce(&d->box, m, out, rest) &&
		one_block(d, rest->c0, rest->at, rest->n, m, &k)) {
		out->c0 = ix_plus(x, out->c0, k);
		return sum_done(out, &d->box);
	}
	r = sum_done(rest, &d->box);
	k = small_rule(x, d, r, m, &s);
	if (k > 1) {
		sum_form(out, 1, divide(x, d, s, m / k));
		return sum_done(out, &d->box);
	}
	k = nested_rule(x, d, r, m, &s);
	if (k > 0)
		sum_form(out, 1, divide(x, d, s, k));
	else
		floor_atom(x, d, r, m, out);
	return sum_done(out, &d->box);
}

static const ix_form *divide(ix *x, const ix_dom *d, const ix_form *f,
	int64_t m)
{
	sum out, rest;
	int64_t k;

	if (m == 1)
		return f;
	if (f->n == 0)
		return ix_const(x, floor_div(f->c0, m));
	if (form_block(d, f, m, &k))
		return ix_const(x, k);
	sum_init(&out, x, 0);
	sum_init(&rest, x, 0);
	multiples(f, m, &out, &rest);
	if (rest.n == 0)
		return sum_done(&out, &d->box);
	if (out.n > 0 && one_block(d, rest.c0, rest.at, rest.n, m, &k)) {
		out.c0 = ix_plus(x, out.c0, k);
		return sum_done(&out, &d->box);
	}
	return divide_rest(x, d, m, &out, &rest);
}

const ix_form *ix_div(ix *x, const ix_dom *d, const ix_form *a, int64_t m)
{
	if (m < 1)
		env_bug(arena_env(ix_arena(x)), "ix_div", "division by %lld",
			(long long)m);
	return divide(x, d, a, m);
}

const ix_form *ix_mod(ix *x, const ix_dom *d, const ix_form *a, int64_t m)
{
	sum s;

	sum_init(&s, x, 0);
	sum_form(&s, 1, a);
	sum_form(&s, -m, ix_div(x, d, a, m));
	return sum_done(&s, &d->box);
}

/* ---- clamp, functions ---- */

static int64_t between(int64_t lo, int64_t v, int64_t hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

/*
 * Moves the constant and the sign out of the argument, tightens bounds that
 * cannot be reached, and joins a clamp of a clamp.
 */
const ix_form *ix_clamp(ix *x, const ix_dom *d, const ix_form *a, int64_t lo,
	int64_t hi)
{
	span s = ix_span(d, a);
	ix_atom key = {.kind = IX_CLAMP};
	const ix_atom *in;
	int64_t sign = 1;
	sum out;

	if (hi < lo || s.max <= lo)
		return ix_const(x, lo);
	if (s.min >= hi)
		return ix_const(x, hi);
	if (s.min >= lo && s.max <= hi)
		return a;
	lo = s.min > lo ? (int64_t)s.min : lo;
	hi = s.max < hi ? (int64_t)s.max : hi;
	key.lo = ix_fit(x, (wide)lo - a->c0);
	key.hi = ix_fit(x, (wide)hi - a->c0);
	key.f = ix_addc(x, a, ix_mul(x, -1, a->c0));
	if (a->t[0].coef < 0) {
		sign = -1;
		lo = ix_mul(x, -1, key.hi);
		key.hi = ix_mul(x, -1, key.lo);
		key.lo = lo;
		key.f = ix_scale(x, key.f, -1);
	}
	in = key.f->t[0].atom;
	sum_init(&out, x, a->c0);
	if (key.f->n == 1 && key.f->t[0].coef == 1 && in->kind == IX_CLAMP)
		sum_form(&out, sign, ix_clamp(x, d, in->f,
			between(key.lo, in->lo, key.hi),
			between(key.lo, in->hi, key.hi)));
	else
		sum_atom(&out, sign, ix_atom_of(x, &key));
	return sum_done(&out, &d->box);
}

const ix_form *ix_fun(ix *x, int64_t fun, const ix_form *arg, int64_t lo,
	int64_t hi)
{
	ix_atom key = {.kind = IX_FUN, .fun = fun, .f = arg, .lo = lo,
		.hi = hi};
	ix_term t = {1, NULL};

	t.atom = ix_atom_of(x, &key);
	return ix_form_of(x, 0, &t, 1);
}
