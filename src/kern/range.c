/*
 * range.c: computes upper bounds of forms.
 *
 * The value of a form that was defined last is replaced by a bound of it, which
 * is a form of values defined earlier, until a number is left:
 *
 *   for i = b .. e   e = imin b + 32, 100       4*i + 3
 *     i <= e - 1     4*e - 1     e <= 100       399
 *
 * A value has several bounds: by its definition, and by the known conditions;
 * each is tried. For a minimum or maximum of two values, both are tried. All
 * bounds are sound; the best one found need not be exact.
 */
#include "kern/range.h"

enum { BUDGET = 20000, MAX_NEST = 60 };

kern_range kern_range_new(kern_kernel *k, arena *a)
{
	kern_range r = {.k = k, .n_loop = k->value.n};

	r.loop = arena_array(a, const kern_stmt *, k->value.n + 1);
	return r;
}

void kern_range_loop(kern_range *r, const kern_stmt *s)
{
	if (s->v < r->n_loop)
		r->loop[s->v] = s;
	if (s->after != 0 && s->after < r->n_loop)
		r->loop[s->after] = s;
}

static int64_t most(kern_range *r, const kern_form *f, int64_t goal, int nest);

static int64_t steps_of(const kern_range *r)
{
	return BUDGET * ((int64_t)r->patience + 1);
}

/* Replaces coef * v in f by coef * g / den; den divides coef. */
static const kern_form *replaced(kern_range *r, const kern_form *f,
	const kern_term *t, const kern_form *g, int64_t den)
{
	const kern_form *rest = kern_form_sub(
		r->k, f, kern_form_term(r->k, t->coef, t->v));

	return kern_form_add(
		r->k, rest, kern_form_scale(r->k, g, t->coef / den));
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

struct ask {
	kern_range *r;
	const kern_form *f;
	const kern_term *t; /* the last term of f */
	int64_t goal;
	int nest;
	int64_t best;
};

/* most(), of c times f; goal: of f */
static int64_t most_of_times(
	kern_range *r, const kern_form *f, int64_t c, int64_t goal, int nest)
{
	int64_t a;

	if (goal == INT64_MAX || !mul_ok(goal, c, &goal))
		goal = INT64_MIN;
	a = most(r, f, goal, nest);
	return a == INT64_MAX ? a : floor_div(a, c);
}

/*
 * Tries the bound g / den of the value: an upper bound, or a lower one if its
 * coefficient is negative. f is multiplied by what makes it whole: of 8*w - 15*q
 * with q = w / 2 twice is 16*w - 15*w.
 */
static void by(struct ask *q, const kern_form *g, int64_t den)
{
	int64_t c = (den < 0 ? -den : den) / gcd_i64(q->t->coef, den);
	kern_term t = *q->t;

	if (q->best <= q->goal || !mul_ok(t.coef, c, &t.coef))
		return;
	q->best = smaller(q->best,
		most_of_times(q->r,
			replaced(q->r, kern_form_scale(q->r->k, q->f, c), &t, g,
				den),
			c, q->goal, q->nest + 1));
}

/* Tries the case that the value is g or h. */
static void by_either(struct ask *q, const kern_form *g, const kern_form *h)
{
	int64_t a;

	if (q->best <= q->goal)
		return;
	a = most(q->r, replaced(q->r, q->f, q->t, g, 1), q->goal, q->nest + 1);
	if (a == INT64_MAX)
		return;
	q->best = smaller(q->best,
		larger(a, most(q->r, replaced(q->r, q->f, q->t, h, 1), q->goal,
				  q->nest + 1)));
}

static void by_const(struct ask *q, int64_t c)
{
	by(q, kern_form_const(q->r->k, c), 1);
}

/* Is f known to be a multiple of m? */
static bool is_multiple(kern_range *r, const kern_form *f, int64_t m, int nest)
{
	for (int32_t i = f->n - 1; i >= 0; i--) {
		const kern_term *t = &f->t[i];
		const kern_value *x = kern_at(r->k, t->v);
		const kern_stmt *s =
			t->v < r->n_loop ? r->loop[t->v] : NULL;

		if (t->coef % m == 0)
			continue;
		if (nest > 6)
			return false;
		if (x->op == KERN_MIN || x->op == KERN_MAX ||
			x->op == KERN_PICK)
			return is_multiple(r, replaced(r, f, t, x->form[0], 1),
				       m, nest + 1) &&
			       is_multiple(r, replaced(r, f, t, x->form[1], 1),
				       m, nest + 1);
		if (x->op == KERN_INDEX)
			return is_multiple(r, replaced(r, f, t, x->form[0], 1),
				m, nest + 1);
		if (s == NULL || (s->step * t->coef) % m != 0 || s->down ||
			s->step > INT32_MAX || t->coef > INT32_MAX)
			return false;
		return is_multiple(
			r, replaced(r, f, t, s->lo, 1), m, nest + 1);
	}
	return f->c0 % m == 0;
}

bool kern_is_multiple(kern_range *r, const kern_form *f, int64_t m)
{
	return is_multiple(r, f, m, 0);
}

/* Tries the bound that the value is a whole number of steps from a start. */
static void by_steps_from(
	struct ask *q, const kern_form *from, int64_t step)
{
	kern_range *r = q->r;
	int64_t c;

	if (q->best <= q->goal)
		return;
	r->alone = true;
	c = most(r, kern_form_sub(r->k, kern_form_term(r->k, 1, q->t->v), from),
		INT64_MIN, q->nest + 1);
	r->alone = false;
	if (c != INT64_MAX)
		by(q, kern_form_addc(r->k, from, floor_div(c, step) * step), 1);
}

/*
 * Tries bounds by the steps of a loop, from its start, and from numbers that
 * are whole steps away.
 */
static void by_steps(struct ask *q, const kern_stmt *s)
{
	kern_kernel *k = q->r->k;
	int64_t c0 = s->lo->c0;

	if (q->r->alone || q->t->coef < 0 || s->step < 2)
		return;
	by_steps_from(q, s->lo, s->step);
	if (s->lo->n > 0 && is_multiple(q->r, kern_form_addc(k, s->lo, -c0),
				    s->step, 0))
		by_steps_from(q, kern_form_const(k, c0), s->step);
}

static void by_loop(struct ask *q, const kern_stmt *s)
{
	kern_kernel *k = q->r->k;
	const kern_form *n = kern_form_sub(k, s->hi, s->lo);
	int64_t c;

	if (q->t->coef < 0) {
		by(q, s->lo, 1);
		return;
	}
	if (kern_form_is_const(n, &c))
		by(q, kern_form_addc(k, s->lo,
			      c <= 0 ? 0
			      : s->whole
				      ? (c - s->step) / s->step * s->step
				      : (c - 1) / s->step * s->step),
			1);
	else if (s->whole || is_multiple(q->r, n, s->step, 0))
		by(q, kern_form_addc(k, s->hi, -s->step), 1);
	else
		by(q, kern_form_addc(k, s->hi, -1), 1);
}

static void by_after(struct ask *q, const kern_stmt *s)
{
	kern_kernel *k = q->r->k;

	if (s->down)
		return;
	if (q->t->coef < 0) {
		by(q, s->lo, 1);
		by(q, kern_form_addc(k, s->hi, s->whole ? 1 - s->step : 0), 1);
	} else {
		by_either(q, s->lo,
			kern_form_addc(k, s->hi, s->whole ? 0 : s->step - 1));
	}
}

static bool divides(const kern_value *x)
{
	return x->op == KERN_DIV || x->op == KERN_FLOOR;
}

/* Is y the quotient f div m, of f = g div d perhaps as g div d m? */
static bool is_quotient(
	const kern_range *r, const kern_value *y, const kern_form *f, int64_t m)
{
	const kern_value *x;
	int64_t n;

	if (!divides(y))
		return false;
	if (y->form[0] == f && y->num[0] == m)
		return true;
	if (f->n != 1 || f->t[0].coef != 1 || f->c0 != 0)
		return false;
	x = kern_at(r->k, f->t[0].v);
	return divides(x) && x->form[0] == y->form[0] && mul_ok(x->num[0], m, &n) &&
	       n == y->num[0];
}

/* Tries the bound of quotients and remainders: m * (f div m) + f mod m = f. */
static void by_remainder(struct ask *q, const kern_value *x)
{
	const kern_form *f = q->f;

	for (int32_t i = 0; i < f->n; i++) {
		const kern_value *y = kern_at(q->r->k, f->t[i].v);
		bool first = x->op == KERN_MOD; /* x is the remainder, y the quotient */
		const kern_value *rest = first ? x : y;
		int64_t one = first ? q->t->coef : f->t[i].coef, many;
		const kern_form *g;

		if (rest->op != KERN_MOD || !mul_ok(one, rest->num[0], &many) ||
			many != (first ? f->t[i].coef : q->t->coef) ||
			!is_quotient(q->r, first ? y : x, rest->form[0], rest->num[0]))
			continue;
		g = kern_form_sub(q->r->k, f,
			kern_form_term(q->r->k, f->t[i].coef, f->t[i].v));
		g = kern_form_sub(q->r->k, g,
			kern_form_term(q->r->k, q->t->coef, q->t->v));
		g = kern_form_add(
			q->r->k, g, kern_form_scale(q->r->k, rest->form[0], one));
		q->best = smaller(q->best,
			most(q->r, g, q->goal, q->nest + 1));
		return;
	}
}

static void by_div(struct ask *q, const kern_value *x)
{
	kern_range *r = q->r;
	int64_t m = x->num[0], c;
	const kern_form *exact = kern_exact(r->k, x->form[0], m);

	if (exact != NULL) {
		by(q, exact, 1);
		return;
	}
	by_remainder(q, x);
	if (q->best <= q->goal)
		return;
	/* a number first: it is found soon, and most often suffices */
	c = q->t->coef > 0
		    ? most(r, x->form[0], INT64_MIN, q->nest + 1)
		    : most(r, kern_form_scale(r->k, x->form[0], -1), INT64_MIN,
			      q->nest + 1);
	if (c != INT64_MAX)
		by_const(q, floor_div(q->t->coef > 0 ? c : -c, m));
	by(q, q->t->coef > 0 ? x->form[0]
			     : kern_form_addc(r->k, x->form[0], 1 - m),
		m);
}

/* The greatest common divisor of m and the steps of f; 1: none. */
static int64_t common_step(kern_range *r, const kern_form *f, int64_t m)
{
	int64_t g = gcd_i64(m, f->c0), step;

	for (int32_t i = 0; i < f->n; i++) {
		const kern_stmt *s =
			f->t[i].v < r->n_loop ? r->loop[f->t[i].v] : NULL;

		if (!mul_ok(f->t[i].coef, s != NULL ? s->step : 1, &step))
			return 1;
		g = gcd_i64(g, step);
	}
	return g > 1 && is_multiple(r, f, g, 0) ? g : 1;
}

/* Is y the digit (f div d) mod n of f mod d n, which x is? */
static bool is_digit(const kern_range *r, const kern_value *y, const kern_value *x,
	int64_t *d)
{
	const kern_form *f = y->op == KERN_MOD ? y->form[0] : NULL;
	const kern_value *z = f != NULL && f->n == 1 && f->t[0].coef == 1 && f->c0 == 0
				      ? kern_at(r->k, f->t[0].v)
				      : NULL;
	int64_t n;

	if (z == NULL || (z->op != KERN_DIV && z->op != KERN_FLOOR) ||
		z->form[0] != x->form[0] || !mul_ok(z->num[0], y->num[0], &n))
		return false;
	*d = z->num[0];
	return n == x->num[0];
}

/* Tries two digits of the remainder, if a condition has the first of them. */
static void by_digits(struct ask *q, const kern_value *x)
{
	kern_range *r = q->r;

	for (int32_t i = 0; i < r->fact.n && q->best > q->goal; i++) {
		const kern_form *f = r->fact.at[i].f;

		for (int32_t j = 0; j < f->n; j++) {
			kern_val v = f->t[j].v;
			int64_t d;

			if (!is_digit(r, kern_at(r->k, v), x, &d))
				continue;
			by(q, kern_form_add(r->k, kern_form_term(r->k, d, v),
				      kern_remainder(r, x->form[0], d)),
				1);
			return;
		}
	}
}

static void by_mod(struct ask *q, const kern_value *x)
{
	int64_t g = common_step(q->r, x->form[0], x->num[0]);

	by_digits(q, x);
	by_remainder(q, x);
	by_const(q, q->t->coef > 0 ? x->num[0] - g : 0);
	if (q->t->coef > 0) /* a quotient of a nonnegative form */
		by(q, x->form[0], 1);
}

static void by_check(struct ask *q, int64_t n)
{
	const kern_kernel *k = q->r->k;

	if (n < 1 || n > k->check.n) {
		q->r->data = true;
		return;
	}
	by_const(q, q->t->coef > 0 ? k->check.at[n - 1].hi - 1
				   : k->check.at[n - 1].lo);
}

/* A case of a value: it is g where lo <= when < hi. */
struct kern_case {
	const kern_form *when, *g;
	int64_t lo, hi;
};

/* Tries the cases of a value, each with its condition. */
static void by_cases(struct ask *q, const struct kern_case *c, int32_t n)
{
	kern_range *r = q->r;
	int32_t facts = r->fact.n;
	int64_t best = INT64_MIN;

	if (q->best <= q->goal)
		return;
	for (int32_t i = 0; i < n && best < INT64_MAX; i++) {
		int64_t a;

		kern_add_fact(r, c[i].when, c[i].lo, c[i].hi);
		a = kern_is_never(r)
			    ? INT64_MIN
			    : most(r, replaced(r, q->f, q->t, c[i].g, 1),
				      q->goal, q->nest + 1);
		r->fact.n = facts;
		best = larger(best, a);
	}
	q->best = smaller(q->best, best);
}

static void by_min(struct ask *q, const kern_value *x)
{
	const kern_form *f = x->form[0], *g = x->form[1];
	const kern_form *less = kern_form_sub(q->r->k, f, g);
	bool min = x->op == KERN_MIN;

	if ((q->t->coef > 0) == min) {
		by(q, f, 1);
		by(q, g, 1);
	} else {
		by_either(q, f, g);
	}
	by_cases(q,
		(struct kern_case[]){{less, min ? f : g, INT64_MIN, 1},
			{less, min ? g : f, 0, INT64_MAX}},
		2);
}

static void by_clamp(struct ask *q, const kern_value *x)
{
	const kern_form *f = x->form[0];
	const kern_form *lo = kern_form_const(q->r->k, x->num[0]);
	const kern_form *hi = kern_form_const(q->r->k, x->num[1]);
	bool up = q->t->coef > 0;

	by(q, up ? hi : lo, 1);
	by_either(q, f, up ? lo : hi);
	by_cases(q,
		(struct kern_case[]){{f, lo, INT64_MIN, x->num[0]},
			{f, f, x->num[0], x->num[1] + 1},
			{f, hi, x->num[1], INT64_MAX}},
		3);
}

/* May f exceed 64 bits, for all that conditions say of its values? */
static bool may_wrap(struct ask *q, const kern_form *f)
{
	int64_t lo, hi;

	if (f == NULL || kern_reach(q->r, f) < KERN_BEYOND)
		return false;
	lo = hi = f->c0;
	for (int32_t i = 0; i < f->n; i++) {
		const kern_form *t = kern_form_term(q->r->k, 1, f->t[i].v);
		int64_t a = most(q->r, t, INT64_MIN, q->nest + 1), c;
		int64_t b = most(q->r, kern_form_scale(q->r->k, t, -1),
			INT64_MIN, q->nest + 1);

		c = f->t[i].coef;
		if (a == INT64_MAX || b == INT64_MAX || c == INT64_MIN ||
			!mul_ok(c < 0 ? -c : c, a, &a) ||
			!mul_ok(c < 0 ? -c : c, b, &b) ||
			!add_ok(hi, c < 0 ? b : a, &hi) ||
			!add_ok(lo, c < 0 ? -a : -b, &lo))
			return true;
	}
	return false;
}

/* May the last value be what is left of a form that exceeds 64 bits? */
static bool is_wrapped(struct ask *q)
{
	const kern_value *x = kern_at(q->r->k, q->t->v);

	if (!may_wrap(q, x->form[0]) && !may_wrap(q, x->form[1]))
		return false;
	q->r->data = true;
	return true;
}

/* The check of all indices in the array; 0: none. */
static int64_t check_of(const struct ask *q, int32_t array)
{
	return q->r->checked != NULL ? q->r->checked[array] : 0;
}

/* Tries bounds from the definition of the value. */
static void by_definition(struct ask *q)
{
	kern_val v = q->t->v;
	const kern_value *x = kern_at(q->r->k, v);
	const kern_stmt *s = v < q->r->n_loop ? q->r->loop[v] : NULL;

	switch (x->op) {
	case KERN_CHUNK:
		by_const(q, q->t->coef > 0 ? q->r->n_chunks - 1 : 0);
		break;
	case KERN_WALK:
		if (s != NULL)
			by_loop(q, s);
		break;
	case KERN_AFTER:
		if (s != NULL)
			by_after(q, s);
		break;
	case KERN_INDEX:
		by(q, x->form[0], 1);
		break;
	case KERN_DIV:
	case KERN_FLOOR:
		by_div(q, x);
		break;
	case KERN_MOD:
		by_mod(q, x);
		break;
	case KERN_MIN:
	case KERN_MAX:
		by_min(q, x);
		break;
	case KERN_CLAMP:
		by_clamp(q, x);
		break;
	case KERN_PICK:
		by_either(q, x->form[0], x->form[1]);
		break;
	case KERN_CHECK:
		by_check(q, x->num[0]);
		break;
	case KERN_LOAD:
		by_check(q, check_of(q, x->at.array));
		break;
	case KERN_NONE: /* an unknown number */
		break;
	case KERN_CONST:
	case KERN_REG:
	case KERN_CALL:
	case KERN_COPY:
	case KERN_MAD:
	case KERN_MULADD:
	case KERN_DOT:
	case KERN_REPEAT:
	case KERN_ZIP:
	case KERN_SPLAT:
	case KERN_LANE:
	case KERN_SHUFFLE:
	case KERN_LANES:
	case KERN_CAST:
	case KERN_WIDEN:
	case KERN_NARROW:
	case KERN_ROUND:
	case KERN_ANY:
	case KERN_INSIDE:
	case KERN_N_OPS:
		q->r->data = true;
		break;
	}
}

/* Tries a bound from a condition whose last value is the same. */
static void by_fact(struct ask *q, struct kern_fact fact)
{
	const kern_form *f = fact.f, *rest;
	kern_kernel *k = q->r->k;
	int64_t a, bound;
	bool up;

	if (f->n == 0 || f->t[f->n - 1].v != q->t->v || fact.wraps)
		return;
	a = f->t[f->n - 1].coef;
	up = (q->t->coef > 0) == (a > 0);
	bound = up ? fact.hi : fact.lo;
	if (bound == (up ? INT64_MAX : INT64_MIN))
		return;
	/* a * v = f - rest */
	rest = kern_form_sub(k, f, kern_form_term(k, a, q->t->v));
	rest = kern_form_sub(
		k, kern_form_const(k, up ? bound - 1 : bound), rest);
	by(q, rest, a);
	if (q->best <= q->goal || (a <= 1 && a >= -1))
		return;
	/* v is an integer, at most or at least rest / a */
	if (up)
		bound = most(q->r, rest, INT64_MIN, q->nest + 1);
	else
		bound = most(q->r, kern_form_scale(k, rest, -1), INT64_MIN,
			q->nest + 1);
	if (bound == INT64_MAX)
		return;
	if (q->t->coef > 0) /* an upper bound rest / a, or a lower one */
		by_const(q, floor_div(bound, a < 0 ? -a : a));
	else
		by_const(q, -floor_div(bound, a < 0 ? -a : a));
}

static int64_t most(kern_range *r, const kern_form *f, int64_t goal, int nest)
{
	struct ask q = {.r = r, .f = f, .goal = goal, .nest = nest,
		.best = INT64_MAX};
	bool wrapped;

	if (f->n == 0)
		return f->c0;
	if (--r->budget < 0 || nest > MAX_NEST)
		return INT64_MAX;
	q.t = &f->t[f->n - 1];
	wrapped = is_wrapped(&q);
	/* conditions are there for a reason: they suffice more often, and soon */
	for (int32_t i = r->fact.n - 1; i >= 0 && q.best > goal; i--)
		by_fact(&q, r->fact.at[i]);
	if (!wrapped && q.best > goal)
		by_definition(&q);
	if (q.t->v < r->n_loop && r->loop[q.t->v] != NULL)
		by_steps(&q, r->loop[q.t->v]);
	return q.best;
}

/* What belongs to x: the remainder to a quotient, the quotient to a remainder; one
 * that occurs in a known condition, if there is one. */
static const kern_form *other_of(kern_range *r, const kern_value *x)
{
	kern_value q = {.op = KERN_FLOOR, .num = {x->num[0]}};

	for (int32_t j = 0; j < r->fact.n; j++) {
		const kern_form *f = r->fact.at[j].f;

		for (int32_t i = 0; i < f->n && !r->fact.at[j].wraps; i++) {
			const kern_value *y = kern_at(r->k, f->t[i].v);

			if (y->form[0] == x->form[0] && y->num[0] == x->num[0] &&
				(divides(x) ? y->op == KERN_MOD : divides(y)))
				return kern_form_term(r->k, 1, f->t[i].v);
		}
	}
	return divides(x) ? kern_remainder(r, x->form[0], x->num[0])
			      : kern_made(r, &q, x->form[0]);
}

/*
 * Uses conditions on the quotient or the remainder v of a form: its last value in f
 * is replaced by m * quotient + remainder - the rest. With 0 <= p / 9 - k < 9,
 *
 *   p - 9*k = 9*(p / 9) + p % 9 - 9*k       0 .. 80
 */
static const kern_form *by_parts(kern_range *r, const kern_form *f, kern_val v)
{
	const kern_value *x = kern_at(r->k, v);
	const kern_form *g = x->form[0], *own = kern_form_term(r->k, 1, v), *parts;
	const kern_term *last;
	int64_t m = x->num[0];
	bool div = divides(x);

	if ((!div && x->op != KERN_MOD) || g->n == 0 ||
		kern_reach(r, g) >= KERN_BEYOND)
		return NULL;
	last = &g->t[g->n - 1];
	for (int32_t i = 0; i < f->n; i++) {
		const kern_term *t = &f->t[i];

		if (t->v != last->v || t->coef % last->coef != 0)
			continue;
		parts = other_of(r, x);
		parts = kern_form_add(r->k,
			kern_form_scale(r->k, div ? own : parts, m),
			div ? parts : own);
		parts = kern_form_sub(r->k, parts, g);
		return kern_form_add(r->k, f,
			kern_form_scale(r->k, parts, t->coef / last->coef));
	}
	return NULL;
}

/* A term of a known condition. */
struct said {
	int32_t fact, term;
};

/* Rewrites f by the next quotient or remainder, from *at on, that occurs in known
 * conditions. */
static const kern_form *rewritten(
	kern_range *r, const kern_form *f, struct said *at)
{
	for (; at->fact < r->fact.n; at->fact++, at->term = 0) {
		const struct kern_fact *fact = &r->fact.at[at->fact];

		while (at->term < fact->f->n && !fact->wraps) {
			const kern_form *h =
				by_parts(r, f, fact->f->t[at->term++].v);

			if (h != NULL)
				return h;
		}
	}
	return NULL;
}

/* Uses conditions on 2 * v by bounding 2 * f. */
static int64_t scaled(
	kern_range *r, const kern_form *f, int64_t goal, int64_t best)
{
	int64_t done = 1;

	for (int32_t i = 0; i < r->fact.n && best > goal; i++) {
		const kern_form *g = r->fact.at[i].f;
		int64_t a = g->n > 0 ? g->t[g->n - 1].coef : 1, want, m;

		a = a < 0 ? -a : a;
		if (r->fact.at[i].wraps || a == done || a < 2 || a > 64 || !mul_ok(goal, a, &want) ||
			!add_ok(want, a - 1, &want))
			continue;
		done = a;
		r->budget = steps_of(r);
		m = most(r, kern_form_scale(r->k, f, a), want, 0);
		if (m != INT64_MAX)
			best = smaller(best, floor_div(m, a));
	}
	return best;
}

/* .. where two values are quotients of one number; INT64_MAX: there are none such. */
static int64_t by_pair(kern_range *r, const kern_form *f, int64_t goal)
{
	const kern_form *g = kern_without_pair(r, f);
	int64_t step = 0, rest, best;

	if (g == NULL)
		return INT64_MAX;
	rest = g->c0;
	for (int32_t i = 0; i < g->n; i++)
		step = gcd_i64(step, g->t[i].coef);
	if (step == 0)
		return rest;
	/* what is left has steps of more than 1, perhaps */
	best = kern_most(r, kern_exact(r->k, kern_form_addc(r->k, g, -rest), step),
		goal == INT64_MIN || !add_ok(goal, -rest, &goal) ? INT64_MIN
								   : floor_div(goal, step));
	return best != INT64_MAX && mul_ok(best, step, &best) && add_ok(best, rest, &best)
		       ? best
		       : INT64_MAX;
}

int64_t kern_most(kern_range *r, const kern_form *f, int64_t goal)
{
	int64_t best;
	struct said at = {0, 0};

	r->budget = steps_of(r);
	best = most(r, f, goal, 0);
	if (best > goal)
		best = smaller(best, by_pair(r, f, goal));
	while (best > goal) {
		const kern_form *g = rewritten(r, f, &at);

		if (g == NULL)
			break;
		r->budget = steps_of(r);
		best = smaller(best, most(r, g, goal, 0));
	}
	return best > goal && r->fact.n > 0 ? scaled(r, f, goal, best) : best;
}

int64_t kern_least(kern_range *r, const kern_form *f, int64_t goal)
{
	int64_t m = kern_most(r, kern_form_scale(r->k, f, -1),
		goal == INT64_MAX || goal == INT64_MIN ? INT64_MIN : -goal);

	return m == INT64_MAX ? INT64_MIN : -m;
}
