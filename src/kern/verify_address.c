/*
 * verify_address.c: takes the addresses of a kernel apart into digits of the
 * chunk's number, and what lies in a known interval:
 *
 *   chunk / 5 = q, chunk % 5 = r    for i = 32*r .. min(32*r + 32, 144)
 *   p0[144*q + i]                   144*q + 32*r + (0 .. 31)
 */
#include "kern/verify_address.h"

enum { MAX_NEST = 24 };

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

bool kern_is_digit(const kern_kernel *k, kern_val v)
{
	return is_digit(k, v, 0);
}

/* Values are in order. */
bool kern_is_common(const struct kern_verifier *v, kern_val x)
{
	return v->by_warp != NULL &&
	       (x < v->by_warp->v || kern_is_digit(v->k, x));
}

static void add_term(struct kern_address *d, struct kern_part t)
{
	int64_t a, b;

	if (t.lo == t.hi && t.digit == 0) {
		d->ok &= mul_ok(t.factor, t.lo, &a) &&
			 add_ok(d->c0, a, &d->c0);
		return;
	}
	if (t.lo == INT64_MIN || t.hi == INT64_MAX || d->n == KERN_MOST_TERMS ||
		!mul_ok(t.factor, t.lo, &a) || !mul_ok(t.factor, t.hi, &b)) {
		d->ok = false;
		return;
	}
	d->t[d->n++] = t;
}

static void take_apart(struct kern_address *d, const kern_form *f, int64_t c,
	int nest);

/* The one term is this form, too: conditions may speak of it, not of the term. */
static void same_as(struct kern_address *d, struct kern_part *t, const kern_form *f)
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

/* c * v, whose parts are those from n on: one interval, unless a part is a digit. */
static void as_interval(
	struct kern_address *d, int64_t c, kern_val v, int32_t n, int64_t c0)
{
	const kern_form *f = kern_form_term(d->v->k, 1, v);
	struct kern_part t = {.factor = c,
		.lo = kern_least(&d->v->range, f, INT64_MAX),
		.hi = kern_most(&d->v->range, f, INT64_MIN),
		.part = kern_form_term(d->v->k, c, v)};

	for (int32_t i = n; i < d->n; i++)
		if (d->t[i].digit != 0)
			return;
	if (t.lo == INT64_MIN || t.hi == INT64_MAX || t.hi < t.lo)
		return;
	d->n = n;
	d->c0 = c0;
	add_term(d, t);
}

/* v = from + what lies in an interval, in steps; whose number is this digit, if
 * it is not 0 */
static void offset(struct kern_address *d, int64_t c, kern_val v,
	const kern_form *from, int64_t step, kern_val digit, int nest)
{
	kern_kernel *k = d->v->k;
	const kern_form *rest =
		kern_form_sub(k, kern_form_term(k, 1, v), from);
	struct kern_part t = {.lo = kern_least(&d->v->range, rest, INT64_MAX),
		.hi = kern_most(&d->v->range, rest, INT64_MIN),
		.digit = digit};
	int64_t c0, c_before = d->c0;
	int32_t n, n_before = d->n;

	if (t.lo == INT64_MIN || t.hi == INT64_MAX || t.hi < t.lo) {
		d->never |= t.lo != INT64_MIN && t.hi != INT64_MAX;
		d->ok &= d->never;
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
	if (d->parts == KERN_WHOLE && d->ok)
		as_interval(d, c, v, n_before, c_before);
}

/* Values behind loops become where those loops begin: what lies between them
 * and the end is one interval, of whole steps of all of these loops. */
static const kern_form *begin(
	struct kern_address *d, const kern_form *f, int64_t *step, int nest)
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
static void walked(struct kern_address *d, kern_val v, int64_t c, const kern_stmt *s,
	int nest)
{
	int64_t step = s->step;
	const kern_form *from = begin(d, s->lo, &step, 0);

	offset(d, c, v, from, step, s == d->v->by_warp ? v : 0, nest);
}

/* A condition lo <= v - digits < hi: those digits; 0: there is none. */
static const kern_form *behind_digits(struct kern_address *d, kern_val v)
{
	kern_kernel *k = d->v->k;

	for (int32_t i = 0; i < d->v->range.fact.n; i++) {
		const struct kern_fact *a = &d->v->range.fact.at[i];
		bool own = false, digits = a->f->n > 1;

		for (int32_t j = 0; j < a->f->n; j++)
			if (a->f->t[j].v == v)
				own = a->f->t[j].coef == 1;
			else
				digits &= kern_is_digit(k, a->f->t[j].v);
		if (own && digits && a->lo != INT64_MIN && a->hi != INT64_MAX)
			return kern_form_sub(k, kern_form_term(k, 1, v), a->f);
	}
	return kern_form_const(k, 0);
}

/* The value of a minimum or maximum that it is an offset from: none that is a number. */
static int32_t nearest(const struct kern_address *d, const kern_value *x)
{
	return x->form[0]->n == 0 ||
	       (d->parts == KERN_OTHER && x->form[1]->n > 0);
}

static void one(struct kern_address *d, kern_val v, int64_t c, int nest)
{
	kern_kernel *k = d->v->k;
	const kern_value *x = kern_at(k, v);
	const kern_stmt *s =
		v < d->v->range.n_loop ? d->v->range.loop[v] : NULL;

	if (kern_is_common(d->v, v) || kern_is_digit(k, v))
		add_term(d, (struct kern_part){.factor = c,
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
		offset(d, c, v, x->form[nearest(d, x)], 1, 0, nest);
	else
		offset(d, c, v, behind_digits(d, v), 1, 0, nest);
}

static void take_apart(struct kern_address *d, const kern_form *f, int64_t c,
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
			kern_is_digit(k, f->t[i].v))
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

static void add_lanes(struct kern_address *d, const struct kern_touch *t)
{
	for (int32_t i = 0; i < 2 && d->ok; i++)
		if (t->n[i] > 1)
			add_term(d, (struct kern_part){.factor = t->step[i],
					    .hi = t->n[i] - 1});
}

struct kern_address *kern_address_of(
	struct kern_verifier *v, const struct kern_touch *t, enum kern_parts parts)
{
	struct kern_address *d = arena_make(v->a, struct kern_address);

	d->v = v;
	d->ok = true;
	d->parts = parts;
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

		if (kern_is_digit(k, a->t[i].v))
			continue;
		if (c == 0 || c % a->t[i].coef != 0 ||
			(times != 0 && times != c / a->t[i].coef))
			return 0;
		times = c / a->t[i].coef;
	}
	return times;
}

static bool has_digit(const kern_kernel *k, const kern_form *f)
{
	for (int32_t i = 0; i < f->n; i++)
		if (kern_is_digit(k, f->t[i].v))
			return true;
	return false;
}

/* A condition on something that the address has c times: one that speaks of the chunk's
 * digits, too, if there is such. NULL: there is none. */
static const struct kern_fact *where(
	const kern_kernel *k, const struct kern_touch *t, int64_t *c)
{
	for (int32_t digits = 1; digits >= 0; digits--)
		for (int32_t i = 0; i < t->n_facts; i++) {
			const struct kern_fact *a = &t->facts[i];

			if (a->wraps || a->lo == INT64_MIN || a->hi == INT64_MAX ||
				a->f->n < 2 || has_digit(k, a->f) != digits)
				continue;
			*c = times_in(k, t->at, a->f);
			if (*c != 0)
				return a;
		}
	return NULL;
}

struct kern_address *kern_address_within(
	struct kern_verifier *v, const struct kern_touch *t)
{
	struct kern_address *d = arena_make(v->a, struct kern_address);
	int64_t c = 0;
	const struct kern_fact *a = where(v->k, t, &c);

	*d = (struct kern_address){.v = v, .ok = true, .touch = t};
	if (a == NULL)
		return NULL;
	kern_put_facts(v, t);
	take_apart(d, kern_form_sub(v->k, t->at, kern_form_scale(v->k, a->f, c)),
		1, 0);
	add_term(d, (struct kern_part){.factor = c, .lo = a->lo, .hi = a->hi - 1,
			    .part = kern_form_scale(v->k, a->f, c)});
	add_lanes(d, t);
	v->range.fact.n = 0;
	return d;
}
