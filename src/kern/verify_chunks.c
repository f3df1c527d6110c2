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
 * the chunks are.
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

static void add_term(struct address *d, struct term t)
{
	int64_t a, b;

	if (t.lo == t.hi) {
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

/* v = from + what lies in an interval, in steps */
static void offset(struct address *d, int64_t c, kern_val v,
	const kern_form *from, int64_t step, int nest)
{
	kern_kernel *k = d->v->k;
	const kern_form *rest =
		kern_form_sub(k, kern_form_term(k, 1, v), from);
	struct term t = {.lo = kern_least(&d->v->range, rest, INT64_MAX),
		.hi = kern_most(&d->v->range, rest, INT64_MIN)};
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
 * and the end is one interval. */
static const kern_form *begin(struct address *d, const kern_form *f, int nest)
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
		f = kern_form_sub(k, f, kern_form_term(k, 1, v));
		return begin(d, kern_form_add(k, f, s->lo), nest + 1);
	}
	return f;
}

static void one(struct address *d, kern_val v, int64_t c, int nest)
{
	kern_kernel *k = d->v->k;
	const kern_value *x = kern_at(k, v);
	const kern_stmt *s =
		v < d->v->range.n_loop ? d->v->range.loop[v] : NULL;

	if (is_digit(k, v, 0))
		add_term(d, (struct term){.factor = c,
			.lo = kern_least(&d->v->range, kern_form_term(k, 1, v),
				INT64_MAX),
			.hi = kern_most(&d->v->range, kern_form_term(k, 1, v),
				INT64_MIN),
			.digit = v,
			.part = kern_form_term(k, c, v)});
	else if (s != NULL)
		offset(d, c, v, begin(d, s->lo, 0),
			x->op == KERN_WALK && begin(d, s->lo, 0) == s->lo
				? s->step
				: 1,
			nest);
	else if (x->op == KERN_INDEX)
		take_apart(d, x->form[0], c, nest + 1);
	else if ((x->op == KERN_DIV || x->op == KERN_FLOOR) &&
		 kern_exact(k, x->form[0], x->num[0]) != NULL)
		take_apart(d, kern_exact(k, x->form[0], x->num[0]), c, nest + 1);
	else if (x->op == KERN_MIN || x->op == KERN_MAX || x->op == KERN_PICK)
		offset(d, c, v, x->form[x->form[0]->n == 0], 1, nest);
	else
		offset(d, c, v, kern_form_const(k, 0), 1, nest);
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

/* The conditions that held there are in force again. */
static void put_facts(struct kern_verifier *v, const struct kern_touch *t)
{
	v->range.fact.n = 0;
	for (int32_t i = 0; i < t->n_facts; i++)
		*vec_push(v->k->a, &v->range.fact) = t->facts[i];
}

static struct address *address(struct kern_verifier *v, const struct kern_touch *t)
{
	struct address *d = arena_make(v->a, struct address);

	d->v = v;
	d->ok = true;
	d->touch = t;
	put_facts(v, t);
	take_apart(d, t->at, 1, 0);
	for (int32_t i = 0; i < 2 && d->ok; i++)
		if (t->n[i] > 1)
			add_term(d, (struct term){.factor = t->step[i],
					    .hi = t->n[i] - 1});
	v->range.fact.n = 0;
	return d;
}

/* ---- the difference of two addresses, which is 0 ---- */

struct difference {
	const struct address *of[2];
	int32_t n;
	struct term t[2 * MAX_TERMS]; /* by factor, which is positive */
	int64_t c0;
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

/* Digits with the same factor in both are one term: how far they differ. */
static bool subtract(struct difference *d, const struct address *a,
	const struct address *b)
{
	bool used[MAX_TERMS] = {false};

	d->of[0] = a;
	d->of[1] = b;
	d->n = 0;
	d->c0 = a->c0 - b->c0;
	for (int32_t i = 0; i < a->n; i++) {
		struct term t = a->t[i];

		for (int32_t j = 0; j < b->n && t.digit != 0; j++)
			if (!used[j] && b->t[j].digit == t.digit &&
				b->t[j].factor == t.factor) {
				used[j] = true;
				t.lo = a->t[i].lo - b->t[j].hi;
				t.hi = a->t[i].hi - b->t[j].lo;
				t.side = -1;
				t.other = b->t[j].part;
				break;
			}
		if (t.side == 0)
			t.digit = 0; /* in one of both only */
		insert(d, t);
	}
	for (int32_t j = 0; j < b->n; j++)
		if (!used[j]) {
			struct term t = b->t[j];

			t.digit = 0;
			t.factor = -t.factor;
			t.side = 1;
			insert(d, t);
		}
	return d->n <= 2 * MAX_TERMS;
}

/* Terms from .. to - 1 and a constant: what they add up to. */
struct group {
	int32_t from, to;
	int64_t c0, lo, hi;
};

/* Digits that are known to be the same. */
struct same {
	int32_t n;
	kern_val at[3 * MAX_TERMS];
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
	int64_t lo = g->c0, hi = g->c0, least, most;
	struct kern_verifier *v = d->of[0]->v;

	for (int32_t side = 0; side < 2; side++) {
		const kern_form *f = sum_of(d, g, side, &lo, &hi);

		put_facts(v, d->of[side]->touch);
		least = kern_least(&v->range, f, INT64_MAX);
		most = kern_most(&v->range, f, INT64_MIN);
		v->range.fact.n = 0;
		if (least == INT64_MIN || most == INT64_MAX)
			return;
		lo += side == 0 ? least : -most;
		hi += side == 0 ? most : -least;
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
static bool never(const struct difference *d, struct group g, struct same *same)
{
	int64_t m = 0, t;

	if (!add_up(d, &g))
		return false;
	if (g.lo > 0 || g.hi < 0)
		return true;
	if (g.to - g.from == 1 && d->t[g.from].digit != 0) {
		if (g.c0 == 0)
			same->at[same->n++] = d->t[g.from].digit;
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
		return never(d, low, same) || never(d, high, same);
	}
	together(d, &g);
	return g.lo > 0 || g.hi < 0;
}

static bool is_same(
	struct kern_verifier *v, const struct same *s, kern_val x)
{
	const kern_form *f = kern_form_term(v->k, 1, x);
	int64_t lo = kern_least(&v->range, f, INT64_MAX);

	for (int32_t i = 0; i < s->n; i++)
		if (s->at[i] == x)
			return true;
	return lo != INT64_MIN && lo == kern_most(&v->range, f, INT64_MIN);
}

/* Is the remainder to this quotient the same, too? A quotient that is 0: any. */
static bool has_rest(
	struct kern_verifier *v, const struct same *s, const kern_value *x)
{
	for (int32_t j = 1; j < v->k->value.n; j++) {
		const kern_value *y = kern_at(v->k, j);

		if (y->op == KERN_MOD && y->form[0] == x->form[0] &&
			y->num[0] == x->num[0] && is_same(v, s, j))
			return true;
	}
	return false;
}

/* Does it give what it was made of: x a quotient or remainder of the chunk? */
static bool gives_whole(
	struct kern_verifier *v, const struct same *s, kern_val i)
{
	const kern_value *x = kern_at(v->k, i);

	if (!is_digit(v->k, i, 0) || x->op == KERN_CHUNK || !is_same(v, s, i))
		return false;
	return x->op == KERN_MOD
		       ? kern_is_inside(&v->range, x->form[0], 0, x->num[0])
		       : has_rest(v, s, x);
}

/* A quotient and its remainder give what was divided. */
static bool gives_chunk(struct kern_verifier *v, struct same *s, kern_val chunk)
{
	kern_kernel *k = v->k;
	bool more = true;

	while (more && !is_same(v, s, chunk)) {
		more = false;
		for (int32_t i = 1; i < k->value.n && !more; i++) {
			kern_val whole;

			if (!gives_whole(v, s, i))
				continue;
			whole = kern_at(k, i)->form[0]->t[0].v;
			more = !is_same(v, s, whole) &&
			       s->n < 3 * MAX_TERMS;
			if (more)
				s->at[s->n++] = whole;
		}
	}
	return is_same(v, s, chunk);
}

static void meet(struct kern_verifier *v, const struct kern_touch *w,
	const struct kern_touch *o, const struct address *a,
	const struct address *b)
{
	struct difference *d = arena_make(v->a, struct difference);
	struct same same = {.n = 0};

	if (a->ok && b->ok && subtract(d, a, b) &&
		(never(d, (struct group){0, d->n, d->c0, 0, 0}, &same) ||
			gives_chunk(v, &same, v->k->phase[v->phase].chunk)))
		return;
	v->s = w->s;
	kern_refuse(v, "race",
		o->write ? "two chunks may write the same element of %s here and in line %d"
			 : "a chunk may write an element of %s that another one reads in line %d",
		kern_access_text(v, w->array), o->s->line);
}

void kern_verify_chunks(struct kern_verifier *v)
{
	int32_t n = v->touch.n;
	struct address **d = arena_array(v->a, struct address *, n + 1);

	for (int32_t i = 0; i < n; i++) {
		const struct kern_touch *w = &v->touch.at[i];
		kern_space is = v->k->array.at[w->array].space;

		if (!w->write || is == KERN_LOCAL || is == KERN_STACK)
			continue;
		for (int32_t j = 0; j < n; j++) {
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
