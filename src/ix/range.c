/*
 * range.c: computes bounds of a form over a box with facts.
 *
 * Consumes parts in normal form; produces inclusive, sound bounds, which are
 * exact for sums of digits over a box: axes are independent of each other, and
 * the digits of an axis are walked from the most significant one, with states
 * that tell whether they are still equal to those of either end.
 *
 *     i < 4, j < 3:    3*i + j                          0 .. 11
 *     i < 10:          i mod 4 - 4*(i div 4)            -8 .. 3
 *     2 <= i + j < 5:  2*i + 2*j + 1                    5 .. 9
 *     0 <= i + k - 1 < 4, 0 <= j + l - 1 < 4:
 *                      4*i + 4*k + j + l - 5            0 .. 15
 *     x - 6*(x div 6)  for any x                        0 .. 5
 *
 * The last line is a remainder, for which there is no atom: k*f - k*m*(f div m)
 * + rest is in k*[0, m-1] + rest.
 *
 * Allocates no memory: of a form with many terms the bounds of the parts are
 * added.
 */
#include "ix/local.h"

/*
 * Limits: parts that are treated together; levels of nested floors; levels at
 * which facts about a whole form are tried; atoms that are examined for one
 * question, counted each time, which bounds the total work.
 */
enum { FINE = 24, DEEP = 24, FACTS_DEEP = 3, ATOMS = 500 };

/* The state of one call. */
struct ask {
	const ix_dom *d;
	int32_t atoms; /* number of atoms that may still be examined */
};

static span all_values(struct ask *q, wide c0, const part *p, int32_t n,
	int depth);

/* ---- arithmetic on spans ---- */

static const span anything = {-WIDE_MAX, WIDE_MAX};

static wide held(wide v)
{
	return v > WIDE_MAX ? WIDE_MAX : v < -WIDE_MAX ? -WIDE_MAX : v;
}

/* |v| <= 2^96 and any k: no overflow */
static wide times(wide v, wide k)
{
	wide r;

	if (__builtin_mul_overflow(v, k, &r))
		return (v < 0) == (k < 0) ? WIDE_MAX : -WIDE_MAX;
	return held(r);
}

static span span_times(span s, wide k)
{
	wide a = times(s.min, k), b = times(s.max, k);

	return k < 0 ? (span){b, a} : (span){a, b};
}

static span span_plus(span a, span b)
{
	/* an unknown end remains unknown */
	wide min = a.min <= -WIDE_MAX || b.min <= -WIDE_MAX ?
		-WIDE_MAX : held(a.min + b.min);
	wide max = a.max >= WIDE_MAX || b.max >= WIDE_MAX ?
		WIDE_MAX : held(a.max + b.max);

	return (span){min, max};
}

static wide wide_floor(wide a, wide m)
{
	int64_t n = (int64_t)a, k = (int64_t)m;

	if (n != a || k != m) /* rare; a division costs ten times as much */
		return a / m - (a % m < 0);
	return n / k - (n % k < 0);
}

static span span_div(span s, int64_t m)
{
	if (s.min > -WIDE_MAX)
		s.min = wide_floor(s.min, m);
	if (s.max < WIDE_MAX)
		s.max = wide_floor(s.max, m);
	return s;
}

/*
 * The intersection. If it is empty, the domain has no points, and any result is
 * correct.
 */
static span span_both(span a, span b)
{
	span s = {a.min > b.min ? a.min : b.min, a.max < b.max ? a.max : b.max};

	return s.min <= s.max ? s : a;
}

static span fact_span(const ix_fact *g)
{
	return (span){g->lo, (wide)g->hi - 1};
}

/* ---- one axis ---- */

/* Bounds of an atom, from the box only. */
static span free_values(const ix_dom *d, const ix_atom *a)
{
	int64_t extent;

	if (a->kind == IX_FUN)
		return (span){a->lo, (wide)a->hi - 1};
	if (a->kind != IX_DIGIT)
		return anything;
	extent = d->box.extent[a->axis];
	return (span){0, a->hi >= extent ? (extent - 1) / a->lo
					 : a->hi / a->lo - 1};
}

/*
 * The coefficient of the whole axis in the fact; 0: it does not occur. *rest:
 * bounds of the other terms.
 */
static int64_t with_axis(
	const ix_dom *d, const ix_fact *g, int32_t axis, span *rest)
{
	int64_t c = 0;
	int32_t at = -1;

	for (int32_t i = 0; i < g->f->n; i++) {
		const ix_atom *a = g->f->t[i].atom;

		if (a->kind == IX_DIGIT && a->axis == axis && a->lo == 1 &&
			a->hi == d->box.extent[axis])
			at = i;
	}
	if (at < 0)
		return 0;
	c = g->f->t[at].coef;
	*rest = (span){g->f->c0, g->f->c0};
	for (int32_t i = 0; i < g->f->n; i++)
		if (i != at)
			*rest = span_plus(*rest,
				span_times(free_values(d, g->f->t[i].atom),
					g->f->t[i].coef));
	return c;
}

/* Solves s.min <= c*v + c0 <= s.max for v; min > max: no solution. */
static span solve(span s, wide c, wide c0)
{
	wide lo = s.min - c0, hi = s.max - c0;

	if (c < 0) {
		wide t = -lo;

		lo = -hi;
		hi = t;
		c = -c;
	}
	return (span){-wide_floor(-lo, c), wide_floor(hi, c)};
}

span ix_span_axis(const ix_dom *d, int32_t axis)
{
	span s = {0, d->box.extent[axis] - 1};

	for (int32_t i = 0; i < d->n_facts; i++) {
		span rest = {0, 0}, v = fact_span(&d->facts[i]);
		int64_t c = with_axis(d, &d->facts[i], axis, &rest);

		if (c == 0 || rest.min <= -WIDE_MAX || rest.max >= WIDE_MAX)
			continue;
		v.min -= rest.max;
		v.max -= rest.min;
		v = solve(v, c, 0);
		s.min = v.min > s.min ? v.min : s.min;
		s.max = v.max < s.max ? v.max : s.max;
	}
	return s;
}

/* Intersects s with bounds from facts about this part only. */
static span part_facts(const ix_dom *d, const part *p, span s)
{
	for (int32_t i = 0; i < d->n_facts; i++) {
		const ix_fact *g = &d->facts[i];
		part q;

		if (g->f->n != 1)
			continue;
		q = part_of(&g->f->t[0]);
		if (part_same(&q, p))
			s = span_both(s, solve(fact_span(g), q.coef,
				g->f->c0));
	}
	return s;
}

/* Values of (v div lo) mod (hi/lo) for v in s; top: no mod. */
static span digit_values(const part *p, bool top, span s)
{
	int64_t u = (int64_t)s.min / p->lo, v = (int64_t)s.max / p->lo, m;

	if (top)
		return (span){u, v};
	m = p->hi / p->lo;
	if (u / m == v / m)
		return (span){u % m, v % m};
	return (span){0, m - 1};
}

/* One level of the walk: a digit with coefficient c. */
struct level {
	/* a, b: digits of both ends; e: number of values of the digit */
	wide c, a, b, e;
};

/* best[l][h]: largest sum so far; l, h: still equal to the end below, above */
static void walk(const struct level *t, wide best[2][2])
{
	wide next[2][2] = {{-WIDE_MAX, -WIDE_MAX}, {-WIDE_MAX, -WIDE_MAX}};

	for (int s = 0; s < 4; s++) {
		int l = s >> 1, h = s & 1;
		wide lo = l ? t->a : 0, hi = h ? t->b : t->e - 1;
		wide at[4] = {lo, lo + 1, hi - 1, hi};

		if (best[l][h] <= -WIDE_MAX)
			continue;
		for (int k = 0; k < 4; k++) {
			int tl = l && at[k] == lo, th = h && at[k] == hi;
			wide v = best[l][h] + times(at[k], t->c);

			if (at[k] < lo || at[k] > hi)
				continue;
			if (v > next[tl][th])
				next[tl][th] = v;
		}
	}
	memcpy(best, next, sizeof next);
}

/*
 * The largest sum of sign*coef*digit over v in s; p: digits of one axis, whose
 * cuts nest.
 */
static wide chain_max(int64_t extent, const part *p, int32_t n, span s,
	int sign)
{
	wide best[2][2] = {{-WIDE_MAX, -WIDE_MAX}, {-WIDE_MAX, 0}};
	int64_t above = extent, a = (int64_t)s.min, b = (int64_t)s.max;
	wide max = -WIDE_MAX;

	for (int32_t i = 0; i < n; i++) {
		struct level t;

		if (p[i].hi < above) { /* the digit between has no term */
			t = (struct level){0, a / p[i].hi, b / p[i].hi,
				above == extent ? extent : above / p[i].hi};
			if (above != extent) {
				t.a = a % above / p[i].hi;
				t.b = b % above / p[i].hi;
			}
			walk(&t, best);
		}
		t = (struct level){(wide)p[i].coef * sign, a / p[i].lo,
			b / p[i].lo, extent};
		if (p[i].hi < extent) {
			t.a = a % p[i].hi / p[i].lo;
			t.b = b % p[i].hi / p[i].lo;
			t.e = p[i].hi / p[i].lo;
		}
		walk(&t, best);
		above = p[i].lo;
	}
	for (int s4 = 0; s4 < 4; s4++)
		if (best[s4 >> 1][s4 & 1] > max)
			max = best[s4 >> 1][s4 & 1];
	return max;
}

static bool chain(const part *p, int32_t n, int64_t extent)
{
	for (int32_t i = 0; i < n; i++) {
		int64_t above = i > 0 ? p[i - 1].lo : extent;

		if (i > 0 ? above % p[i].hi != 0 : p[i].hi != extent &&
				p[i].hi > extent)
			return false;
	}
	return true;
}

/* Bounds by trying all values, if there are few. Cuts need not nest. */
static span each_value(const part *p, int32_t n, int64_t extent, span s)
{
	span r = {WIDE_MAX, -WIDE_MAX};

	for (int64_t v = (int64_t)s.min; v <= (int64_t)s.max; v++) {
		wide u = 0;

		for (int32_t i = 0; i < n; i++)
			u += (wide)p[i].coef * (p[i].hi >= extent ?
				v / p[i].lo : v % p[i].hi / p[i].lo);
		if (u < r.min)
			r.min = u;
		if (u > r.max)
			r.max = u;
	}
	return r;
}

static span axis_values(const ix_dom *d, const part *p, int32_t n)
{
	int64_t extent = d->box.extent[p->axis];
	span s = {0, extent - 1}, each = {0, 0}, r;

	if (d->n_facts > 0) {
		r = ix_span_axis(d, p->axis);
		if (r.min <= r.max)
			s = r;
	}
	if (n == 1) {
		each = digit_values(p, p->hi >= extent, s);
		return span_times(part_facts(d, p, each), p->coef);
	}
	for (int32_t i = 0; i < n; i++) {
		r = digit_values(&p[i], p[i].hi >= extent, s);
		each = span_plus(each, span_times(part_facts(d, &p[i], r),
			p[i].coef));
	}
	if (chain(p, n, extent))
		r = (span){-chain_max(extent, p, n, s, -1),
			chain_max(extent, p, n, s, 1)};
	else if (s.max - s.min < 64)
		r = each_value(p, n, extent, s);
	else
		return each;
	return span_both(r, each);
}

/* ---- other atoms ---- */

static span form_values(struct ask *q, const ix_form *f, int depth)
{
	part p[FINE];
	span s = {f->c0, f->c0};

	if (f->n <= FINE) {
		for (int32_t i = 0; i < f->n; i++)
			p[i] = part_of(&f->t[i]);
		return all_values(q, f->c0, p, f->n, depth);
	}
	for (int32_t i = 0; i < f->n; i++) {
		p[0] = part_of(&f->t[i]);
		s = span_plus(s, all_values(q, 0, p, 1, depth));
	}
	return s;
}

static span atom_values(struct ask *q, const ix_atom *a, int depth)
{
	span s;

	if (a->kind == IX_FUN)
		return (span){a->lo, (wide)a->hi - 1};
	s = depth >= DEEP || q->atoms-- <= 0 ? anything :
		form_values(q, a->f, depth + 1);
	if (a->kind == IX_FLOOR)
		return span_div(s, a->den);
	if (s.max > a->hi)
		s.max = a->hi;
	if (s.min < a->lo)
		s.min = a->lo;
	if (s.max < a->lo)
		s.max = a->lo;
	if (s.min > a->hi)
		s.min = a->hi;
	return s;
}

/* Adds the bounds of each axis and each other atom. */
static span plain(struct ask *q, const part *p, int32_t n, int depth)
{
	span s = {0, 0};
	int32_t k;

	for (int32_t i = 0; i < n; i += k) {
		span v;

		for (k = 1; part_is_digit(&p[i]) && i + k < n &&
			part_is_digit(&p[i + k]) && p[i + k].axis == p[i].axis;
			k++)
			;
		if (part_is_digit(&p[i])) {
			s = span_plus(s, axis_values(q->d, p + i, k));
			continue;
		}
		v = part_facts(q->d, &p[i], atom_values(q, p[i].atom, depth));
		s = span_plus(s, span_times(v, p[i].coef));
	}
	return s;
}

/* Computes j*p - k*f in normal form, in out; -1: too long or too large. */
static int32_t less(const ix_dom *d, int64_t j, const part *p, int32_t n,
	wide k, const ix_form *f, part *out)
{
	part in[2 * FINE];
	struct weight w[4 * FINE];

	if (n + f->n > 2 * FINE || k <= INT64_MIN || k > INT64_MAX)
		return -1;
	memcpy(in, p, (size_t)n * sizeof *p);
	for (int32_t i = 0; i < n; i++)
		if (!mul_ok(p[i].coef, j, &in[i].coef))
			return -1;
	for (int32_t i = 0; i < f->n; i++) {
		in[n + i] = part_of(&f->t[i]);
		if (!mul_ok(in[n + i].coef, (int64_t)-k, &in[n + i].coef))
			return -1;
	}
	return ix_normal(&d->box, in, n + f->n, out, w);
}

static span with_facts(struct ask *q, const part *p, int32_t n, int32_t from,
	span s, int depth);

/*
 * Uses one fact for the whole form: j*parts = k*g + h; bounds of g from the
 * fact, and of h with the later facts.
 *
 *     x, y < 4, 0 <= 3*(x + 4*y) + z < 30:    x + 4*y    0 .. 9
 */
static span with_fact(struct ask *q, const part *p, int32_t n,
	int32_t fact, span s, int depth)
{
	const ix_fact *g = &q->d->facts[fact];
	part out[4 * FINE], first = {0};
	span v = fact_span(g);
	int64_t j, k, both;
	int32_t i, n_out;

	if (g->f->n < 2)
		return s; /* part_facts has used it */
	for (i = 0; i < n * g->f->n; i++) { /* an atom that both contain */
		first = part_of(&g->f->t[i / n]);
		if (part_same(&p[i % n], &first))
			break;
	}
	if (i == n * g->f->n)
		return s;
	j = first.coef;
	k = p[i % n].coef;
	if (j == INT64_MIN || k == INT64_MIN)
		return s;
	k = j < 0 ? -k : k;
	j = j < 0 ? -j : j;
	both = gcd_i64(j, k);
	n_out = less(q->d, j / both, p, n, k / both, g->f, out);
	if (n_out < 0 || (n_out > n && n_out > g->f->n))
		return s;
	v.min -= g->f->c0;
	v.max -= g->f->c0;
	v = span_plus(span_times(v, k / both),
		with_facts(q, out, n_out, fact + 1,
			plain(q, out, n_out, depth), depth));
	both = j / both;
	if (v.min > -WIDE_MAX)
		v.min = -wide_floor(-v.min, both);
	if (v.max < WIDE_MAX)
		v.max = wide_floor(v.max, both);
	return span_both(s, v);
}

static span with_facts(struct ask *q, const part *p, int32_t n, int32_t from,
	span s, int depth)
{
	for (int32_t i = from; i < q->d->n_facts && q->atoms > 0; i++) {
		q->atoms--;
		s = with_fact(q, p, n, i, s, depth);
	}
	return s;
}

/* Removes remainders k*(f mod m) from p, and returns their bounds. */
static span remainders(struct ask *q, part *p, int32_t *n)
{
	part out[4 * FINE];
	span s = {0, 0};

	for (int32_t i = 0; i < *n;) {
		const ix_atom *a = p[i].atom;
		wide k = a == NULL || a->kind != IX_FLOOR ? 1 :
			-((wide)p[i].coef / a->den);
		part rest[FINE];
		int32_t n_out, n_rest = 0;

		if (a == NULL || a->kind != IX_FLOOR || k == 0 ||
			p[i].coef % a->den != 0) {
			i++;
			continue;
		}
		for (int32_t j = 0; j < *n; j++)
			if (j != i)
				rest[n_rest++] = p[j];
		n_out = less(q->d, 1, rest, n_rest, k, a->f, out);
		if (n_out < 0 || n_out > n_rest) {
			i++;
			continue;
		}
		s = span_plus(s, span_times((span){-(wide)a->f->c0,
			(wide)a->den - 1 - a->f->c0}, k));
		memcpy(p, out, (size_t)n_out * sizeof *p);
		*n = n_out;
		i = 0;
	}
	return s;
}

static span all_values(struct ask *q, wide c0, const part *p, int32_t n,
	int depth)
{
	part own[FINE];
	span base = {c0, c0}, s;
	int32_t n_own = n;

	if (n > FINE)
		return span_plus(base, plain(q, p, n, depth));
	memcpy(own, p, (size_t)n * sizeof *p);
	s = remainders(q, own, &n_own);
	s = span_plus(s, plain(q, own, n_own, depth));
	if (n_own < n)
		s = span_both(s, plain(q, p, n, depth));
	if (depth < FACTS_DEEP)
		s = with_facts(q, p, n, 0, s, depth);
	return span_plus(base, s);
}

span ix_span_parts(const ix_dom *d, wide c0, const part *p, int32_t n)
{
	struct ask q = {d, ATOMS};

	return all_values(&q, c0, p, n, 0);
}

span ix_span(const ix_dom *d, const ix_form *f)
{
	struct ask q = {d, ATOMS};

	return form_values(&q, f, 0);
}

void ix_range(const ix_dom *d, const ix_form *f, int64_t *min, int64_t *max)
{
	span s = ix_span(d, f);

	*min = s.min < INT64_MIN ? INT64_MIN : s.min > INT64_MAX ? INT64_MAX :
		(int64_t)s.min;
	*max = s.max > INT64_MAX ? INT64_MAX : s.max < INT64_MIN ? INT64_MIN :
		(int64_t)s.max;
}
