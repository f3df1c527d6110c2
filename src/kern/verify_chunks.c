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
	const kern_form *part; /* the form that it is; NULL: none, or a digit */
	int32_t side;	       /* of which address */
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
		x->type.lanes != 1)
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

/* v = from + what lies in an interval, in steps */
static void offset(struct address *d, int64_t c, kern_val v,
	const kern_form *from, int64_t step, int nest)
{
	kern_kernel *k = d->v->k;
	const kern_form *rest =
		kern_form_sub(k, kern_form_term(k, 1, v), from);
	struct term t = {.lo = kern_least(&d->v->range, rest, INT64_MAX),
		.hi = kern_most(&d->v->range, rest, INT64_MIN)};

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
	take_apart(d, from, c, nest + 1);
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
			.digit = v});
	else if (s != NULL)
		offset(d, c, v, begin(d, s->lo, 0),
			x->op == KERN_WALK && begin(d, s->lo, 0) == s->lo
				? s->step
				: 1,
			nest);
	else if (x->op == KERN_INDEX)
		take_apart(d, x->form[0], c, nest + 1);
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
				break;
			}
		if (t.digit != 0 && t.lo == a->t[i].lo)
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

/* A sum by itself: from .. to are its terms, c0 its constant. */
struct group {
	int32_t from, to;
	int64_t lo, hi, c0;
};

/* Digits that are known to be the same. */
struct same {
	int32_t n;
	kern_val at[3 * MAX_TERMS];
};

/* false: the sum cannot be 0 */
static bool close_group(
	const struct difference *d, const struct group *g, struct same *same)
{
	const struct term *t = &d->t[g->from];

	if (g->lo > 0 || g->hi < 0)
		return false;
	if (g->to != g->from + 1 || t->digit == 0)
		return true;
	if (g->c0 % t->factor != 0)
		return false;
	if (g->c0 == 0)
		same->at[same->n++] = t->digit;
	return true;
}

/*
 * Terms of one loop and of the one around it say more together: their forms
 * are added up, and the sum is asked for. false: nothing new is known.
 */
static bool together(const struct difference *d, struct group *g)
{
	int64_t lo[2] = {0}, hi[2] = {0}, old = g->hi - g->lo;
	int64_t rest_lo = g->c0, rest_hi = g->c0;
	struct kern_verifier *v = d->of[0]->v;

	for (int32_t side = 0; side < 2; side++) {
		const kern_form *sum = kern_form_const(v->k, 0);

		for (int32_t i = g->from; i < g->to; i++) {
			const struct term *t = &d->t[i];

			if (t->part != NULL && t->side == side)
				sum = kern_form_add(v->k, sum, t->part);
			else if (t->part == NULL && side == 0) {
				rest_lo += t->factor * t->lo;
				rest_hi += t->factor * t->hi;
			}
		}
		put_facts(v, d->of[side]->touch);
		lo[side] = kern_least(&v->range, sum, INT64_MAX);
		hi[side] = kern_most(&v->range, sum, INT64_MIN);
		v->range.fact.n = 0;
		if (lo[side] == INT64_MIN || hi[side] == INT64_MAX)
			return false;
	}
	lo[0] += rest_lo - hi[1];
	hi[0] += rest_hi - lo[1];
	g->lo = lo[0] > g->lo ? lo[0] : g->lo;
	g->hi = hi[0] < g->hi ? hi[0] : g->hi;
	return g->hi - g->lo < old;
}

/* Less than all factors from here on are multiples of: then it is 0. */
static bool is_apart(const struct group *g, int64_t m, int64_t *t)
{
	*t = floor_div(g->hi, m);
	return g->lo - *t * m > -m;
}

/* true: the difference cannot be 0. Else: the digits that are then the same. */
static bool never(const struct difference *d, struct same *same)
{
	struct group g = {0, 0, d->c0, d->c0, d->c0};

	same->n = 0;
	for (int32_t i = 0; i < d->n; i++) {
		int64_t m = 0, t, a, b;

		for (int32_t j = i; j < d->n; j++)
			m = gcd_i64(m, d->t[j].factor);
		g.to = i;
		if (is_apart(&g, m, &t) ||
			(together(d, &g) && is_apart(&g, m, &t))) {
			g.lo -= t * m;
			g.hi -= t * m;
			g.c0 -= t * m;
			if (!close_group(d, &g, same))
				return true;
			g = (struct group){i, i, t * m, t * m, t * m};
		}
		if (!mul_ok(d->t[i].factor, d->t[i].lo, &a) ||
			!mul_ok(d->t[i].factor, d->t[i].hi, &b) ||
			!add_ok(g.lo, a, &g.lo) || !add_ok(g.hi, b, &g.hi))
			return false;
	}
	g.to = d->n;
	(void)together(d, &g);
	return !close_group(d, &g, same);
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

/* A quotient and its remainder give what was divided. */
static bool gives_chunk(struct kern_verifier *v, struct same *s, kern_val chunk)
{
	kern_kernel *k = v->k;
	bool more = true;

	while (more && !is_same(v, s, chunk)) {
		more = false;
		for (int32_t i = 1; i < k->value.n; i++) {
			const kern_value *x = kern_at(k, i);
			kern_val whole;

			if ((x->op != KERN_DIV && x->op != KERN_FLOOR) ||
				!is_digit(k, i, 0) || !is_same(v, s, i))
				continue;
			whole = x->form[0]->t[0].v;
			for (int32_t j = 1;
				j < k->value.n && !is_same(v, s, whole); j++) {
				const kern_value *y = kern_at(k, j);

				if (y->op == KERN_MOD &&
					y->form[0] == x->form[0] &&
					y->num[0] == x->num[0] &&
					is_same(v, s, j)) {
					more = s->n < 3 * MAX_TERMS;
					if (more)
						s->at[s->n++] = whole;
				}
			}
		}
	}
	return is_same(v, s, chunk);
}

static void meet(struct kern_verifier *v, const struct kern_touch *w,
	const struct kern_touch *o, const struct address *a,
	const struct address *b)
{
	struct difference *d = arena_make(v->a, struct difference);
	struct same same;

	if (a->ok && b->ok && subtract(d, a, b) &&
		(never(d, &same) ||
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
