/*
 * range_each.c: bounds a form by trying all values.
 *
 * The last resort of proofs: where bounds by forms are too wide, and loops and
 * chunks around are few, all their values are tried. Of the values that a form is
 * made of, a loop's variable is each of what it may be, and an index from data what
 * its check and conditions leave, in the order of their definitions; others are
 * computed as soon as they can be. A condition in force is looked at as soon as its
 * last value is known.
 *
 *     %1 = idiv %i0 + 13, 16      %i0 = 0: %1 = 0, form 13;  1: 0, 12;  ..
 */
#include "kern/range.h"

enum { MOST_VALUES = 40, MOST_STEPS = 1 << 17 };

struct each {
	kern_range *r;
	const kern_form *f;
	int32_t n;
	kern_val v[MOST_VALUES]; /* the needed values, in order */
	int64_t is[MOST_VALUES]; /* their current assignment */
	/* of an index from data: what its check and conditions leave of it */
	int64_t lo[MOST_VALUES], hi[MOST_VALUES];
	VEC(const struct kern_fact *) fact; /* by their last value */
	kern_val also; /* its value is reported, too; 0: none */
	kern_each_fn *fn;
	void *arg;
	int64_t left; /* remaining steps */
	bool ok;
};

static int32_t find(const struct each *e, kern_val v)
{
	v = kern_same_load(e->r, v);
	for (int32_t i = 0; i < e->n; i++)
		if (e->v[i] == v)
			return i;
	return -1;
}

static void want_form(struct each *e, const kern_form *f);

static const kern_stmt *loop_of(const struct each *e, kern_val v)
{
	return v < e->r->n_loop ? e->r->loop[v] : NULL;
}

/* The check that bounds a value from data; 0: none. */
static int32_t check_of(const struct each *e, const kern_value *x)
{
	int64_t n = x->op == KERN_CHECK ? x->num[0]
		    : x->op == KERN_LOAD && e->r->checked != NULL
			    ? e->r->checked[x->at.array]
			    : 0;

	return n < 1 || n > e->r->k->check.n ? 0 : (int32_t)n;
}

static int32_t last_of(const struct each *e, const kern_form *f)
{
	int32_t last = -1;

	for (int32_t i = 0; i < f->n; i++) {
		int32_t at = find(e, f->t[i].v);

		last = at > last ? at : last;
	}
	return last;
}

/* Is it computed from others? If not, each of what it may be is tried. */
static bool follows(const struct each *e, kern_val v)
{
	const kern_value *x = kern_at(e->r->k, v);

	return x->op != KERN_WALK && x->op != KERN_AFTER && x->op != KERN_CHUNK &&
	       check_of(e, x) == 0;
}

/*
 * Where v goes in the order of values: what is computed comes at once behind what it is
 * made of, so that it is computed as seldom as possible; what is tried keeps the order of
 * definitions.
 */
static int32_t place_for(const struct each *e, kern_val v)
{
	const kern_value *x = kern_at(e->r->k, v);
	int32_t at = 0;

	if (!follows(e, v)) {
		while (at < e->n && (follows(e, e->v[at]) || e->v[at] < v))
			at++;
		return at;
	}
	for (int32_t i = 0; i < 2 && x->form[i] != NULL; i++) {
		int32_t last = last_of(e, x->form[i]) + 1;

		at = last > at ? last : at;
	}
	return at;
}

static void want(struct each *e, kern_val load)
{
	kern_val v = kern_same_load(e->r, load);
	const kern_value *x = kern_at(e->r->k, v);
	const kern_stmt *s = loop_of(e, v);
	int32_t at;

	if (find(e, v) >= 0 || !e->ok)
		return;
	if (x->op == KERN_WALK || x->op == KERN_AFTER) {
		e->ok &= s != NULL;
		for (int32_t i = 0; i < 2 && e->ok; i++)
			want_form(e, i == 0 ? s->lo : s->hi);
	} else if (x->op == KERN_CHECK || x->op == KERN_LOAD) {
		e->ok &= check_of(e, x) > 0;
	} else if (x->op != KERN_CHUNK) {
		e->ok &= x->form[0] != NULL && x->type.lanes == 1;
		for (int32_t i = 0; i < 2 && e->ok; i++)
			want_form(e, x->form[i]);
	}
	if (!e->ok || e->n == MOST_VALUES) {
		e->ok = false;
		return;
	}
	at = place_for(e, v);
	for (int32_t i = e->n++; i > at; i--)
		e->v[i] = e->v[i - 1];
	e->v[at] = v;
}

static void want_form(struct each *e, const kern_form *f)
{
	for (int32_t i = 0; f != NULL && i < f->n && e->ok; i++)
		want(e, f->t[i].v);
}

/* Is it made of a value that is needed, also in quotients and in the bounds of
 * loops? */
static bool touches(const struct each *e, const kern_form *f, int32_t nest)
{
	bool some = false;

	for (int32_t i = 0; f != NULL && i < f->n && !some; i++) {
		const kern_value *x = kern_at(e->r->k, f->t[i].v);
		const kern_stmt *s = loop_of(e, f->t[i].v);

		some = find(e, f->t[i].v) >= 0;
		for (int32_t j = 0; j < 2 && nest < 4 && !some; j++)
			some = touches(e,
				s == NULL ? x->form[j]
				: j == 0  ? s->lo
					  : s->hi,
				nest + 1);
	}
	return some;
}

/* Are all values of the condition among the needed ones? */
static bool is_needed(const struct each *e, const kern_form *f)
{
	bool all = f->n > 0;

	for (int32_t i = 0; i < f->n; i++)
		all &= find(e, f->t[i].v) >= 0;
	return all;
}

static bool value_of(const struct each *e, const kern_form *f, int64_t *out)
{
	bool ok = true;
	int64_t p;

	*out = f->c0;
	for (int32_t i = 0; i < f->n && ok; i++)
		ok = mul_ok(f->t[i].coef, e->is[find(e, f->t[i].v)], &p) &&
		     add_ok(*out, p, out);
	return ok;
}

/* Do the conditions hold whose last value is number `at`? */
static bool holds(struct each *e, int32_t at)
{
	for (int32_t i = 0; i < e->fact.n; i++) {
		const struct kern_fact *c = e->fact.at[i];
		int64_t is;

		if (last_of(e, c->f) != at)
			continue;
		if (!value_of(e, c->f, &is))
			e->ok = false;
		else if (is < c->lo || (c->hi != INT64_MAX && is >= c->hi))
			return false;
	}
	return true;
}

static void give(struct each *e, int32_t at);

/* Assigns `is` to value number `at`. */
static void one(struct each *e, int32_t at, int64_t is)
{
	e->is[at] = is;
	if (--e->left < 0)
		e->ok = false;
	if (e->ok && holds(e, at))
		give(e, at + 1);
}

static void span(struct each *e, int32_t at, int64_t lo, int64_t hi,
	int64_t step)
{
	for (int64_t i = lo; i < hi && e->ok; i += step)
		one(e, at, i);
}

static void walk(struct each *e, int32_t at, const kern_stmt *s, bool after)
{
	int64_t lo, hi, n;

	e->ok &= value_of(e, s->lo, &lo) && value_of(e, s->hi, &hi) &&
		 add_ok(hi, s->step, &n) && lo > INT64_MIN / 4 &&
		 hi < INT64_MAX / 4 && s->step < INT64_MAX / 4;
	if (!e->ok)
		return;
	n = hi <= lo	? 0
	    : s->whole ? (hi - lo) / s->step
		       : (hi - lo + s->step - 1) / s->step;
	if (after)
		one(e, at, lo + n * s->step);
	else
		span(e, at, lo, lo + n * s->step, s->step);
}

/* Computes value number `at` from others. */
static void computed(struct each *e, int32_t at, const kern_value *x)
{
	int64_t f, g = 0, m = x->num[0];

	e->ok &= value_of(e, x->form[0], &f) &&
		 (x->form[1] == NULL || value_of(e, x->form[1], &g));
	if (!e->ok)
		return;
	if (x->op == KERN_PICK) {
		one(e, at, f);
		one(e, at, g);
		return;
	}
	if (x->op == KERN_DIV || x->op == KERN_FLOOR)
		f = floor_div(f, m);
	else if (x->op == KERN_MOD)
		f = floor_mod(f, m);
	else if (x->op == KERN_MIN)
		f = f < g ? f : g;
	else if (x->op == KERN_MAX)
		f = f > g ? f : g;
	else if (x->op == KERN_CLAMP)
		f = f < m ? m : f > x->num[1] ? x->num[1] : f;
	else
		e->ok &= x->op == KERN_INDEX;
	one(e, at, f);
}

/* What an index from data may be, by its check and the conditions in force. */
static void find_span(struct each *e, int32_t at)
{
	const kern_form *f = kern_form_term(e->r->k, 1, e->v[at]);

	e->lo[at] = kern_least(e->r, f, INT64_MAX);
	e->hi[at] = kern_most(e->r, f, INT64_MIN);
	if (e->lo[at] == INT64_MIN || e->hi[at] == INT64_MAX)
		e->ok = false;
}

static void give(struct each *e, int32_t at)
{
	const kern_value *x;
	int64_t f;

	if (at == e->n) {
		e->ok &= value_of(e, e->f, &f);
		if (e->ok)
			e->ok = e->fn(e->arg, f,
				e->also != 0 ? e->is[find(e, e->also)] : 0);
		return;
	}
	x = kern_at(e->r->k, e->v[at]);
	if (x->op == KERN_WALK || x->op == KERN_AFTER) {
		walk(e, at, loop_of(e, e->v[at]), x->op == KERN_AFTER);
	} else if (x->op == KERN_CHUNK) {
		span(e, at, 0, e->r->n_chunks, 1);
	} else if (check_of(e, x) > 0) {
		span(e, at, e->lo[at], e->hi[at] + 1, 1);
	} else {
		computed(e, at, x);
	}
}

/*
 * Takes the known conditions on needed values; if `more`, their other values
 * become needed, too, unless one of them cannot be told: from data, for example.
 */
static void take_facts(struct each *e, bool more)
{
	const kern_range *r = e->r;

	for (int32_t i = 0; more && i < r->fact.n; i++) {
		struct each with = *e;

		if (!touches(e, r->fact.at[i].f, 0))
			continue;
		want_form(&with, r->fact.at[i].f);
		if (with.ok)
			*e = with;
	}
	for (int32_t i = 0; i < r->fact.n; i++)
		if (is_needed(e, r->fact.at[i].f))
			*vec_push(r->k->a, &e->fact) = &r->fact.at[i];
}

bool kern_each(kern_range *r, const kern_form *f, kern_val also,
	kern_each_fn *fn, void *arg)
{
	for (int32_t more = 1; more >= 0; more--) {
		struct each e = {.r = r, .f = f, .also = also, .fn = fn,
			.arg = arg, .left = MOST_STEPS, .ok = true};

		if (also != 0)
			want(&e, also);
		want_form(&e, f);
		if (e.ok)
			take_facts(&e, more == 1);
		for (int32_t i = 0; i < e.n && e.ok; i++)
			if (check_of(&e, kern_at(r->k, e.v[i])) > 0)
				find_span(&e, i);
		if (e.ok)
			give(&e, 0);
		if (e.ok)
			return true;
	}
	return false;
}

/* ---- sums of parts that have nothing to do with each other ---- */

/* Are both made of some value? */
static bool share(kern_range *r, const kern_term *x, const kern_term *y)
{
	struct each a = {.r = r, .ok = true}, b = {.r = r, .ok = true};

	want(&a, x->v);
	want(&b, y->v);
	for (int32_t i = 0; i < b.n && a.ok; i++)
		if (find(&a, b.v[i]) >= 0)
			return true;
	return !a.ok || !b.ok;
}

struct least_most {
	int64_t least, most;
};

static bool widen(void *arg, int64_t f, int64_t also)
{
	struct least_most *m = arg;

	(void)also;
	m->least = f < m->least ? f : m->least;
	m->most = f > m->most ? f : m->most;
	return true;
}

/* The terms of f that the first of `left` has to do with, taken from there. */
static const kern_form *take_part(kern_range *r, const kern_form *f, bool *left)
{
	const kern_form *sum = kern_form_const(r->k, 0);
	bool taken[MOST_VALUES] = {false}, more = true, any = false;

	while (more) {
		more = false;
		for (int32_t i = 0; i < f->n; i++) {
			bool with = left[i] && !any;

			for (int32_t j = 0; j < f->n && left[i] && !with; j++)
				with = taken[j] && share(r, &f->t[i], &f->t[j]);
			if (!with)
				continue;
			taken[i] = more = any = true;
			left[i] = false;
			sum = kern_form_add(r->k, sum,
				kern_form_term(r->k, f->t[i].coef, f->t[i].v));
		}
	}
	return sum;
}

bool kern_each_part(kern_range *r, const kern_form *f, int64_t lo, int64_t hi)
{
	struct least_most all = {f->c0, f->c0};
	bool left[MOST_VALUES] = {false}, ok = f->n <= MOST_VALUES;

	for (int32_t i = 0; i < f->n && ok; i++)
		left[i] = true;
	for (int32_t i = 0; i < f->n && ok; i++) {
		struct least_most m = {INT64_MAX, INT64_MIN};

		if (!left[i])
			continue;
		ok = kern_each(r, take_part(r, f, left), 0, widen, &m) &&
		     m.least <= m.most &&
		     add_ok(all.least, m.least, &all.least) &&
		     add_ok(all.most, m.most, &all.most);
	}
	return ok && all.least >= lo && (hi == INT64_MAX || all.most < hi);
}
