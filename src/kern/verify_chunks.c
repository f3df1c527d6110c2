/*
 * verify_chunks.c: no chunk of a phase writes what another one reads or writes.
 *
 * Each address is taken apart into digits of the chunk's number, and what lies
 * in a known interval:
 *
 *   chunk / 5 = q, chunk % 5 = r    for i = 32*r .. min(32*r + 32, 144)
 *   p0[144*q + i]                   144*q + 32*r + (0 .. 31)
 *
 * Two chunks meet in an element where the difference of two addresses is 0.
 * Terms are sorted by their factors; where what the small ones add up to is
 * less than what all larger factors are multiples of, both sums are 0. A digit
 * that is alone in its sum is then the same in both chunks. If all digits are,
 * the chunks are. The iterations of a loop by warp are compared in the same way:
 * there the digit is the number of the iteration, and what is defined in front of
 * the loop is one value for all warps.
 */
#include "kern/verify.h"

enum { MAX_TERMS = 64, MAX_NEST = 24 };

/* factor * (lo .. hi); digit: of the chunk's number, 0: anything */
struct term {
	int64_t factor, lo, hi;
	kern_val digit;
	/* the form that it is; NULL: lanes; of a digit of both: of the other, too */
	const kern_form *part, *other;
	int32_t side; /* of which address; -1: a digit of both */
};

struct address {
	struct kern_verifier *v;
	const struct kern_touch *touch;
	int32_t n;
	struct term t[MAX_TERMS];
	int64_t c0;
	bool ok;
};

/* Is it a digit of the chunk's number: made of it alone? */
static bool is_digit(const kern_kernel *k, kern_val v, int nest)
{
	const kern_value *x = kern_at(k, v);

	if (x->op == KERN_CHUNK)
		return true;
	if ((x->op != KERN_DIV && x->op != KERN_MOD && x->op != KERN_FLOOR) ||
		x->form[0]->n != 1 || nest > MAX_NEST ||
		x->form[0]->t[0].coef != 1 || x->type.lanes != 1)
		return false;
	return is_digit(k, x->form[0]->t[0].v, nest + 1);
}

/* Is it the same in all iterations of the loop by warp? Values are in order. */
static bool is_common(const struct kern_verifier *v, kern_val x)
{
	return v->by_warp != NULL &&
	       (x < v->by_warp->v || is_digit(v->k, x, 0));
}

static void add_term(struct address *d, struct term t)
{
	int64_t a, b;

	if (t.lo == t.hi && t.digit == 0) {
		d->ok &= mul_ok(t.factor, t.lo, &a) &&
			 add_ok(d->c0, a, &d->c0);
		return;
	}
	if (t.lo == INT64_MIN || t.hi == INT64_MAX || d->n == MAX_TERMS ||
		!mul_ok(t.factor, t.lo, &a) || !mul_ok(t.factor, t.hi, &b)) {
		d->ok = false;
		return;
	}
	d->t[d->n++] = t;
}

static void take_apart(struct address *d, const kern_form *f, int64_t c,
	int nest);

/* The one term is this form, too: conditions may speak of it, not of the term. */
static void same_as(struct address *d, struct term *t, const kern_form *f)
{
	int64_t lo = kern_least(&d->v->range, f, INT64_MAX);
	int64_t hi = kern_most(&d->v->range, f, INT64_MIN);

	t->part = f;
	if (t->factor < 1 || lo == INT64_MIN || hi == INT64_MAX)
		return;
	lo = -floor_div(-lo, t->factor);
	hi = floor_div(hi, t->factor);
	t->lo = lo > t->lo ? lo : t->lo;
	t->hi = hi < t->hi ? hi : t->hi;
}

/* v = from + what lies in an interval, in steps; whose number is this digit, if
 * it is not 0 */
static void offset(struct address *d, int64_t c, kern_val v,
	const kern_form *from, int64_t step, kern_val digit, int nest)
{
	kern_kernel *k = d->v->k;
	const kern_form *rest =
		kern_form_sub(k, kern_form_term(k, 1, v), from);
	struct term t = {.lo = kern_least(&d->v->range, rest, INT64_MAX),
		.hi = kern_most(&d->v->range, rest, INT64_MIN),
		.digit = digit};
	int64_t c0;
	int32_t n;

	if (t.lo == INT64_MIN || t.hi == INT64_MAX || t.hi < t.lo) {
		/* never reached, or not known */
		d->ok &= t.lo != INT64_MIN && t.hi != INT64_MAX;
		return;
	}
	t.lo = floor_div(t.lo, step);
	t.hi = floor_div(t.hi, step);
	d->ok &= mul_ok(c, step, &t.factor);
	t.part = kern_form_scale(k, rest, c);
	if (d->ok)
		add_term(d, t);
	c0 = d->c0;
	n = d->n;
	take_apart(d, from, c, nest + 1);
	if (t.lo == 0 && t.hi == 0 && d->ok && d->n == n + 1)
		same_as(d, &d->t[n],
			kern_form_addc(k, kern_form_term(k, c, v), c0 - d->c0));
}

/* Values behind loops become where those loops begin: what lies between them
 * and the end is one interval, of whole steps of all of these loops. */
static const kern_form *begin(
	struct address *d, const kern_form *f, int64_t *step, int nest)
{
	kern_kernel *k = d->v->k;

	for (int32_t i = 0; i < f->n && nest < MAX_NEST; i++) {
		kern_val v = f->t[i].v;
		const kern_stmt *s =
			v < d->v->range.n_loop ? d->v->range.loop[v] : NULL;

		if (s == NULL || kern_at(k, v)->op != KERN_AFTER)
			continue;
		if (f->t[i].coef != 1)
			return f;
		*step = gcd_i64(*step, s->step);
		f = kern_form_sub(k, f, kern_form_term(k, 1, v));
		return begin(d, kern_form_add(k, f, s->lo), step, nest + 1);
	}
	return f;
}

/* The variable of a loop, or its value behind it. */
static void walked(struct address *d, kern_val v, int64_t c, const kern_stmt *s,
	int nest)
{
	int64_t step = s->step;
	const kern_form *from = begin(d, s->lo, &step, 0);

	offset(d, c, v, from, step, s == d->v->by_warp ? v : 0, nest);
}

/* A condition lo <= v - digits < hi: those digits; 0: there is none. */
static const kern_form *behind_digits(struct address *d, kern_val v)
{
	kern_kernel *k = d->v->k;

	for (int32_t i = 0; i < d->v->range.fact.n; i++) {
		const struct kern_fact *a = &d->v->range.fact.at[i];
		bool own = false, digits = a->f->n > 1;

		for (int32_t j = 0; j < a->f->n; j++)
			if (a->f->t[j].v == v)
				own = a->f->t[j].coef == 1;
			else
				digits &= is_digit(k, a->f->t[j].v, 0);
		if (own && digits && a->lo != INT64_MIN && a->hi != INT64_MAX)
			return kern_form_sub(k, kern_form_term(k, 1, v), a->f);
	}
	return kern_form_const(k, 0);
}

static void one(struct address *d, kern_val v, int64_t c, int nest)
{
	kern_kernel *k = d->v->k;
	const kern_value *x = kern_at(k, v);
	const kern_stmt *s =
		v < d->v->range.n_loop ? d->v->range.loop[v] : NULL;

	if (is_common(d->v, v) || is_digit(k, v, 0))
		add_term(d, (struct term){.factor = c,
			.lo = kern_least(&d->v->range, kern_form_term(k, 1, v),
				INT64_MAX),
			.hi = kern_most(&d->v->range, kern_form_term(k, 1, v),
				INT64_MIN),
			.digit = v,
			.part = kern_form_term(k, c, v)});
	else if (s != NULL)
		walked(d, v, c, s, nest);
	else if (x->op == KERN_INDEX)
		take_apart(d, x->form[0], c, nest + 1);
	else if ((x->op == KERN_DIV || x->op == KERN_FLOOR) &&
		 kern_exact(k, x->form[0], x->num[0]) != NULL)
		take_apart(d, kern_exact(k, x->form[0], x->num[0]), c, nest + 1);
	else if (x->op == KERN_MIN || x->op == KERN_MAX || x->op == KERN_PICK)
		offset(d, c, v, x->form[x->form[0]->n == 0], 1, 0, nest);
	else
		offset(d, c, v, behind_digits(d, v), 1, 0, nest);
}

static void take_apart(struct address *d, const kern_form *f, int64_t c,
	int nest)
{
	int64_t p;

	d->ok &= nest < MAX_NEST && mul_ok(f->c0, c, &p) &&
		 add_ok(d->c0, p, &d->c0);
	for (int32_t i = 0; i < f->n && d->ok; i++) {
		d->ok &= mul_ok(f->t[i].coef, c, &p);
		if (d->ok)
			one(d, f->t[i].v, p, nest);
	}
}

/* The bounds of f where t stands: asked for once. */
static struct kern_bounds bounds_of(struct kern_verifier *v,
	const struct kern_touch *t, const kern_form *f)
{
	const void *key[2] = {f, t->facts};
	int64_t at = map_get(v->known, key, sizeof key, -1);
	struct kern_bounds *b;

	if (at >= 0)
		return v->bounds.at[at];
	kern_put_facts(v, t);
	at = v->bounds.n;
	b = vec_push(v->a, &v->bounds);
	b->least = kern_least(&v->range, f, INT64_MAX);
	b->most = kern_most(&v->range, f, INT64_MIN);
	v->range.fact.n = 0;
	map_set(v->known, key, sizeof key, at);
	return *b;
}

/*
 * c * (g div m) and k * g are (c + k * m) * (g div m) and k * (g mod m): what is
 * left of g is smaller than what its quotients are apart.
 */
static const kern_form *by_remainders(struct kern_verifier *v, const kern_form *f)
{
	kern_kernel *k = v->k;

	for (int32_t i = 0; i < f->n; i++) {
		const kern_value *x = kern_at(k, f->t[i].v);
		const kern_form *g = x->form[0];
		int32_t j = 0;

		if ((x->op != KERN_DIV && x->op != KERN_FLOOR) || g->n != 1 ||
			is_digit(k, f->t[i].v, 0))
			continue;
		while (j < f->n && f->t[j].v != g->t[0].v)
			j++;
		if (j == f->n || f->t[j].coef % g->t[0].coef != 0)
			continue;
		g = kern_form_sub(k, kern_remainder(&v->range, g, x->num[0]), g);
		g = kern_form_add(k, g,
			kern_form_term(k, x->num[0], f->t[i].v));
		return kern_form_add(k, f, kern_form_scale(k, g,
			f->t[j].coef / x->form[0]->t[0].coef));
	}
	return f;
}

static void add_lanes(struct address *d, const struct kern_touch *t)
{
	for (int32_t i = 0; i < 2 && d->ok; i++)
		if (t->n[i] > 1)
			add_term(d, (struct term){.factor = t->step[i],
					    .hi = t->n[i] - 1});
}

static struct address *address(struct kern_verifier *v, const struct kern_touch *t)
{
	struct address *d = arena_make(v->a, struct address);

	d->v = v;
	d->ok = true;
	d->touch = t;
	kern_put_facts(v, t);
	take_apart(d, by_remainders(v, t->at), 1, 0);
	add_lanes(d, t);
	v->range.fact.n = 0;
	return d;
}

static int64_t coef_of(const kern_form *f, kern_val v)
{
	for (int32_t i = 0; i < f->n; i++)
		if (f->t[i].v == v)
			return f->t[i].coef;
	return 0;
}

/* How often f has what a has besides digits: all of it as often; or 0. */
static int64_t times_in(const kern_kernel *k, const kern_form *f,
	const kern_form *a)
{
	int64_t times = 0;

	for (int32_t i = 0; i < a->n; i++) {
		int64_t c = coef_of(f, a->t[i].v);

		if (is_digit(k, a->t[i].v, 0))
			continue;
		if (c == 0 || c % a->t[i].coef != 0 ||
			(times != 0 && times != c / a->t[i].coef))
			return 0;
		times = c / a->t[i].coef;
	}
	return times;
}

/*
 * A condition lo <= f - digits < hi, where the address has f times a number, as
 * chunks that look for their elements of a scatter have it: these digits, and one
 * interval. NULL: there is none.
 */
static struct address *within(struct kern_verifier *v, const struct kern_touch *t)
{
	struct address *d = arena_make(v->a, struct address);
	const struct kern_fact *a = NULL;
	int64_t c = 0;

	*d = (struct address){.v = v, .ok = true, .touch = t};
	for (int32_t i = 0; i < t->n_facts && c == 0; i++) {
		a = &t->facts[i];
		if (!a->wraps && a->lo != INT64_MIN && a->hi != INT64_MAX &&
			a->f->n > 1)
			c = times_in(v->k, t->at, a->f);
	}
	if (c == 0)
		return NULL;
	kern_put_facts(v, t);
	take_apart(d, kern_form_sub(v->k, t->at, kern_form_scale(v->k, a->f, c)),
		1, 0);
	add_term(d, (struct term){.factor = c, .lo = a->lo, .hi = a->hi - 1,
			    .part = kern_form_scale(v->k, a->f, c)});
	add_lanes(d, t);
	v->range.fact.n = 0;
	return d;
}

/* ---- the difference of two addresses, which is 0 ---- */

/* Digits that are known to be the same. */
struct same {
	int32_t n;
	kern_val at[4 * MAX_TERMS];
};

struct difference {
	const struct address *of[2];
	int32_t n;
	struct term t[2 * MAX_TERMS]; /* by factor, which is positive */
	int64_t c0;
	struct same same; /* digits that are found to be the same */
};

static void insert(struct difference *d, struct term t)
{
	int32_t i = d->n++;
	int64_t lo = t.lo;

	if (t.factor < 0) {
		t.factor = -t.factor;
		t.lo = -t.hi;
		t.hi = -lo;
	}
	for (; i > 0 && d->t[i - 1].factor > t.factor; i--)
		d->t[i] = d->t[i - 1];
	d->t[i] = t;
}

/* What one address has and the other one has not. */
static bool insert_rest(struct difference *d, struct term t, int32_t side)
{
	int64_t c;

	if (t.lo == t.hi) {
		bool ok = mul_ok(t.factor, side == 0 ? t.lo : -t.lo, &c) &&
			  add_ok(d->c0, c, &d->c0);

		return ok;
	}
	t.digit = 0;
	t.side = side;
	if (side == 1)
		t.factor = -t.factor;
	insert(d, t);
	return true;
}

/* A digit of both: how far they differ. */
static bool insert_digit(
	struct difference *d, const struct term *a, const struct term *b)
{
	struct term t = *a;
	int64_t c;

	if (is_common(d->of[0]->v, t.digit))
		return true;
	t.lo = a->lo - b->hi;
	t.hi = a->hi - b->lo;
	t.side = -1;
	t.other = b->part;
	if (t.lo != t.hi) {
		insert(d, t);
		return true;
	}
	if (t.lo == 0)
		d->same.at[d->same.n++] = t.digit;
	return mul_ok(t.factor, t.lo, &c) && add_ok(d->c0, c, &d->c0);
}

/* Digits with the same factor in both are one term. */
static bool subtract(struct difference *d, const struct address *a,
	const struct address *b)
{
	bool used[MAX_TERMS] = {false}, ok = true;

	d->of[0] = a;
	d->of[1] = b;
	d->n = d->same.n = 0;
	d->c0 = a->c0 - b->c0;
	for (int32_t i = 0; i < a->n && ok; i++) {
		int32_t j = 0;

		while (j < b->n && (a->t[i].digit == 0 || used[j] ||
					   b->t[j].digit != a->t[i].digit ||
					   b->t[j].factor != a->t[i].factor))
			j++;
		if (j < b->n)
			used[j] = true;
		ok = j < b->n ? insert_digit(d, &a->t[i], &b->t[j])
			      : insert_rest(d, a->t[i], 0);
	}
	for (int32_t j = 0; j < b->n && ok; j++)
		ok = used[j] || insert_rest(d, b->t[j], 1);
	return ok;
}

/* Terms from .. to - 1 and a constant: what they add up to. */
struct group {
	int32_t from, to;
	int64_t c0, lo, hi;
};

static bool add_up(const struct difference *d, struct group *g)
{
	bool ok = true;

	g->lo = g->hi = g->c0;
	for (int32_t i = g->from; i < g->to && ok; i++) {
		int64_t a, b;

		ok = mul_ok(d->t[i].factor, d->t[i].lo, &a) &&
		     mul_ok(d->t[i].factor, d->t[i].hi, &b) &&
		     add_ok(g->lo, a, &g->lo) && add_ok(g->hi, b, &g->hi);
	}
	return ok;
}

/* What one address has of the terms, as a form; lanes go to lo and hi. */
static const kern_form *sum_of(const struct difference *d,
	const struct group *g, int32_t side, int64_t *lo, int64_t *hi)
{
	kern_kernel *k = d->of[0]->v->k;
	const kern_form *sum = kern_form_const(k, 0);

	for (int32_t i = g->from; i < g->to; i++) {
		const struct term *t = &d->t[i];

		if (t->part != NULL && (t->side == side || t->side < 0))
			sum = kern_form_add(k, sum,
				t->side < 0 && side == 1 ? t->other : t->part);
		if (t->part == NULL && side == 0) {
			*lo += t->factor * t->lo;
			*hi += t->factor * t->hi;
		}
	}
	return sum;
}

/*
 * Terms of one loop and of the one around it say more together: their forms
 * are added up, and the sum is asked for.
 */
static void together(const struct difference *d, struct group *g)
{
	int64_t lo = g->c0, hi = g->c0;
	struct kern_verifier *v = d->of[0]->v;

	for (int32_t side = 0; side < 2; side++) {
		const kern_form *f = sum_of(d, g, side, &lo, &hi);
		struct kern_bounds b =
			bounds_of(v, d->of[side]->touch, f);

		if (b.least == INT64_MIN || b.most == INT64_MAX)
			return;
		lo += side == 0 ? b.least : -b.most;
		hi += side == 0 ? b.most : -b.least;
	}
	g->lo = lo > g->lo ? lo : g->lo;
	g->hi = hi < g->hi ? hi : g->hi;
}

/* Does it lie within -m + 1 .. m - 1, less t * m? */
static bool is_below(
	const struct difference *d, struct group *g, int64_t m, int64_t *t)
{
	for (int32_t i = 0; i < 2; i++) {
		*t = floor_div(g->hi, m);
		if (g->lo - *t * m > -m)
			return true;
		if (i == 0)
			together(d, g);
	}
	return false;
}

/*
 * true: the terms and the constant are never 0 together. Else: the digits that
 * are the same where they are. What is less than all larger factors are
 * multiples of is 0 by itself.
 */
static bool never(struct difference *d, struct group g)
{
	int64_t m = 0, t;

	if (!add_up(d, &g))
		return false;
	if (g.lo <= 0 && g.hi >= 0 && g.to > g.from)
		together(d, &g);
	if (g.lo > 0 || g.hi < 0)
		return true;
	if (g.to - g.from == 1 && d->t[g.from].digit != 0) {
		if (g.c0 == 0)
			d->same.at[d->same.n++] = d->t[g.from].digit;
		return g.c0 % d->t[g.from].factor != 0;
	}
	for (int32_t i = g.to - 1; i > g.from; i--) {
		struct group low = {g.from, i, g.c0, 0, 0}, high = g;

		m = gcd_i64(m, d->t[i].factor);
		if (!add_up(d, &low) || !is_below(d, &low, m, &t))
			continue;
		low.c0 -= t * m;
		high.from = i;
		high.c0 = t * m;
		return never(d, low) || never(d, high);
	}
	return false;
}

/* floor(chunk / den) mod m; m 0: of any size */
struct digit {
	int64_t den, m;
};

/* v as such a digit; false: it is none */
static bool digit_of(const kern_kernel *k, kern_val v, struct digit *d)
{
	const kern_value *x = kern_at(k, v);
	int64_t n = x->num[0];

	if (x->op == KERN_CHUNK) {
		*d = (struct digit){1, 0};
		return true;
	}
	if (!is_digit(k, v, 0) || x->form[0]->c0 != 0 ||
		!digit_of(k, x->form[0]->t[0].v, d) || d->m % n != 0)
		return false;
	if (x->op == KERN_MOD)
		d->m = n;
	else
		d->m /= n;
	return x->op == KERN_MOD || mul_ok(d->den, n, &d->den);
}

/*
 * Digits that are the same give what the chunk's number is the same in: from
 * chunk mod 5 and (chunk / 5) mod 4 follows chunk mod 20, and so on.
 */
static bool gives_chunk(struct kern_verifier *v, const struct same *s)
{
	int64_t n = v->range.n_chunks, known = 1, next;
	bool more = true;

	for (int32_t i = 0; v->by_warp != NULL && i < s->n; i++)
		if (s->at[i] == v->by_warp->v)
			return true;
	if (v->by_warp != NULL)
		return false;
	while (more && known < n) {
		more = false;
		for (int32_t i = 0; i < s->n && known < n; i++) {
			struct digit d;

			if (!digit_of(v->k, s->at[i], &d) || known % d.den != 0)
				continue;
			if (d.m == 0 || !mul_ok(d.den, d.m, &next))
				next = n;
			more |= next > known;
			known = next > known ? next : known;
		}
	}
	return known >= n;
}

/* Digits that are in no address may be what conditions say, in both chunks. */
static void find_given(struct kern_verifier *v, struct difference *d)
{
	for (kern_val i = 1; i < v->k->value.n; i++) {
		const kern_form *f = kern_form_term(v->k, 1, i);
		struct kern_bounds a, b;

		if (!is_digit(v->k, i, 0) || d->same.n >= 4 * MAX_TERMS)
			continue;
		a = bounds_of(v, d->of[0]->touch, f);
		b = bounds_of(v, d->of[1]->touch, f);
		if (a.least == a.most && b.least == b.most &&
			a.least == b.least)
			d->same.at[d->same.n++] = i;
	}
}

/* Do they never meet, or are they of the same chunk where they do? */
static bool are_apart(struct kern_verifier *v, const struct address *a,
	const struct address *b)
{
	struct difference *d = arena_make(v->a, struct difference);

	if (!a->ok || !b->ok || !subtract(d, a, b))
		return false;
	if (never(d, (struct group){0, d->n, d->c0, 0, 0}) ||
		gives_chunk(v, &d->same))
		return true;
	find_given(v, d);
	return gives_chunk(v, &d->same);
}

/* The same, by what conditions say of whole addresses. */
static bool within_are_apart(struct kern_verifier *v,
	const struct kern_touch *w, const struct kern_touch *o,
	const struct address *a, const struct address *b)
{
	const struct address *x = within(v, w), *y = within(v, o);

	return (x != NULL || y != NULL) &&
	       are_apart(v, x != NULL ? x : a, y != NULL ? y : b);
}

/*
 * Lane l alone, where its mask has it; others may be loaded, but nobody looks
 * at them.
 */
static struct address *lane_of(
	struct kern_verifier *v, const struct kern_touch *t, int32_t l)
{
	struct kern_touch *one = arena_make(v->a, struct kern_touch);

	*one = *t;
	one->n[0] = 1;
	one->at = kern_form_addc(v->k, t->at, l * t->step[0]);
	if (t->mask != 0) {
		kern_put_facts(v, t);
		kern_assume(&v->range, t->mask, kern_form_const(v->k, l), true);
		one->n_facts = v->range.fact.n;
		one->facts = kern_verify_facts(v);
	}
	return kern_is_never(&v->range) ? NULL : address(v, one);
}

/* The same, lane by lane, if a mask says which there are. */
static bool lanes_are_apart(struct kern_verifier *v,
	const struct kern_touch *w, const struct kern_touch *o)
{
	const struct address *b[KERN_MAX_LANES];

	if ((w->mask == 0 && o->mask == 0) || w->n[1] > 1 || o->n[1] > 1)
		return false;
	for (int32_t i = 0; i < o->n[0]; i++)
		b[i] = lane_of(v, o, i);
	for (int32_t i = 0; i < w->n[0]; i++) {
		const struct address *a = lane_of(v, w, i);

		for (int32_t j = 0; j < o->n[0] && a != NULL; j++)
			if (b[j] != NULL && !are_apart(v, a, b[j]))
				return false;
	}
	return true;
}

static void meet(struct kern_verifier *v, const struct kern_touch *w,
	const struct kern_touch *o, const struct address *a,
	const struct address *b)
{
	if (are_apart(v, a, b) || within_are_apart(v, w, o, a, b) ||
		lanes_are_apart(v, w, o) || kern_elements_are_apart(v, w, o))
		return;
	v->s = w->s;
	if (v->by_warp != NULL)
		kern_refuse(v, "race",
			o->write ? "two warps may write the same element of %s here and in line %d"
				 : "a warp may write an element of %s that another one reads in line %d",
			kern_access_text(v, w->array), o->s->line);
	kern_refuse(v, "race",
		o->write ? "two chunks may write the same element of %s here and in line %d"
			 : "a chunk may write an element of %s that another one reads in line %d",
		kern_access_text(v, w->array), o->s->line);
}

/* Forgets accesses that differ from an earlier one in nothing but where they are. */
static void drop_equal(struct kern_verifier *v)
{
	map *seen = map_new(v->a);
	int32_t n = 0;

	for (int32_t i = 0; i < v->touch.n; i++) {
		const struct kern_touch *t = &v->touch.at[i];
		int64_t key[] = {t->array, t->write, (intptr_t)t->at, t->step[0],
			t->step[1], t->n[0], t->n[1], t->mask,
			(intptr_t)t->facts};

		if (map_get(seen, key, sizeof key, -1) >= 0)
			continue;
		map_set(seen, key, sizeof key, i);
		v->touch.at[n++] = *t;
	}
	v->touch.n = n;
}

/* Is memory of this space common to chunks, or to the warps of a block? */
static bool is_common_space(const struct kern_verifier *v, kern_space is)
{
	return is != KERN_STACK && (is != KERN_LOCAL || v->by_warp != NULL);
}

/* Compares each access that writes with all others, from the first one on. */
static void compare(struct kern_verifier *v, int32_t first)
{
	int32_t n = v->touch.n;
	struct address **d = arena_array(v->a, struct address *, n + 1);

	for (int32_t i = first; i < n; i++) {
		const struct kern_touch *w = &v->touch.at[i];
		kern_space is = v->k->array.at[w->array].space;

		if (!w->write || !is_common_space(v, is))
			continue;
		for (int32_t j = first; j < n; j++) {
			const struct kern_touch *o = &v->touch.at[j];

			if (!kern_arrays_overlap(v->k, w->array, o->array) ||
				(o->write && j < i))
				continue;
			if (d[i] == NULL)
				d[i] = address(v, w);
			if (d[j] == NULL)
				d[j] = address(v, o);
			meet(v, w, o, d[i], d[j]);
		}
	}
}

void kern_verify_chunks(struct kern_verifier *v)
{
	drop_equal(v);
	compare(v, 0);
}

/* The conditions that hold behind the loop are in force again at the end. */
void kern_verify_iterations(struct kern_verifier *v, int32_t first)
{
	const kern_stmt *s = v->s;
	int32_t n = v->range.fact.n;
	struct kern_fact *facts = arena_copy(
		v->a, v->range.fact.at, (size_t)n * sizeof *facts);

	compare(v, first);
	v->range.fact.n = 0;
	for (int32_t i = 0; i < n; i++)
		*vec_push(v->k->a, &v->range.fact) = facts[i];
	v->s = s;
}
