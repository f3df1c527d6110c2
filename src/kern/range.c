/*
 * range.c: the largest value that a form can have.
 *
 * The value of a form that was defined last is replaced by a bound of it, which
 * is a form of values defined earlier, until a number is left:
 *
 *   for i = b .. e   e = imin b + 32, 100       4*i + 3
 *     i <= e - 1     4*e - 1     e <= 100       399
 *
 * A value has several bounds: by its definition, and by the conditions in
 * force; each is tried. Where a value is the smaller or the larger of two, both
 * are looked at. All bounds are sound; the best found need not be exact.
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

/* f with coef * v replaced by coef * g / den, for den | coef */
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
	const kern_term *t; /* the last of f */
	int64_t goal;
	int nest;
	int64_t best;
};

/* The value is at most g / den, or at least where its coefficient is < 0. */
static void by(struct ask *q, const kern_form *g, int64_t den)
{
	if (q->best <= q->goal || q->t->coef % den != 0)
		return;
	q->best = smaller(q->best,
		most(q->r, replaced(q->r, q->f, q->t, g, den), q->goal,
			q->nest + 1));
}

/* .. is one of both */
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

/* What f is a multiple of, but for its constant; 0: f is constant. */
static int64_t common(const kern_range *r, const kern_form *f, int depth)
{
	int64_t g = 0;

	for (int32_t i = 0; i < f->n; i++) {
		kern_val v = f->t[i].v;
		int64_t c = f->t[i].coef, in = 1;
		const kern_stmt *s = v < r->n_loop ? r->loop[v] : NULL;

		if (s != NULL && depth < 4 && s->v == v && !s->down) {
			in = gcd_i64(s->step, common(r, s->lo, depth + 1));
			in = gcd_i64(in, s->lo->c0);
		}
		if (!mul_ok(c, in, &c))
			c = 1;
		g = gcd_i64(g, c);
	}
	return g;
}

static void by_loop(struct ask *q, const kern_stmt *s)
{
	kern_kernel *k = q->r->k;
	const kern_form *n = kern_form_sub(k, s->hi, s->lo);
	int64_t g = gcd_i64(common(q->r, n, 0), n->c0), c;

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
	else if (s->whole || g % s->step == 0)
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

/* m * (f div m) + f mod m is f */
static void by_remainder(struct ask *q, const kern_value *x)
{
	const kern_form *f = q->f;

	for (int32_t i = 0; i < f->n; i++) {
		const kern_value *y = kern_at(q->r->k, f->t[i].v);
		bool div = y->op == KERN_DIV || y->op == KERN_FLOOR;
		bool pair = x->op == KERN_MOD
				    ? div && f->t[i].coef ==
						     q->t->coef * x->num[0]
				    : y->op == KERN_MOD &&
					      q->t->coef == f->t[i].coef *
								    x->num[0];
		const kern_form *g;

		if (!pair || y->form[0] != x->form[0] ||
			y->num[0] != x->num[0])
			continue;
		g = kern_form_sub(q->r->k, f,
			kern_form_term(q->r->k, f->t[i].coef, f->t[i].v));
		g = kern_form_sub(q->r->k, g,
			kern_form_term(q->r->k, q->t->coef, q->t->v));
		g = kern_form_add(q->r->k, g,
			kern_form_scale(q->r->k, x->form[0],
				x->op == KERN_MOD ? q->t->coef : f->t[i].coef));
		q->best = smaller(q->best,
			most(q->r, g, q->goal, q->nest + 1));
		return;
	}
}

static void by_div(struct ask *q, const kern_value *x)
{
	kern_range *r = q->r;
	int64_t m = x->num[0], c;

	by_remainder(q, x);
	by(q, q->t->coef > 0 ? x->form[0]
			     : kern_form_addc(r->k, x->form[0], 1 - m),
		m);
	if (q->best <= q->goal)
		return;
	c = q->t->coef > 0
		    ? most(r, x->form[0], INT64_MIN, q->nest + 1)
		    : most(r, kern_form_scale(r->k, x->form[0], -1), INT64_MIN,
			      q->nest + 1);
	if (c != INT64_MAX)
		by_const(q, floor_div(q->t->coef > 0 ? c : -c, m));
}

static void by_mod(struct ask *q, const kern_value *x)
{
	by_remainder(q, x);
	by_const(q, q->t->coef > 0 ? x->num[0] - 1 : 0);
	if (q->t->coef > 0) /* .. of what is not negative */
		by(q, x->form[0], 1);
}

static void by_check(struct ask *q, const kern_value *x)
{
	const kern_kernel *k = q->r->k;
	int64_t n = x->num[0];

	if (n < 1 || n > k->check.n)
		return;
	by_const(q, q->t->coef > 0 ? k->check.at[n - 1].hi - 1
				   : k->check.at[n - 1].lo);
}

/* Bounds of the value by what it is. */
static void by_definition(struct ask *q)
{
	kern_val v = q->t->v;
	const kern_value *x = kern_at(q->r->k, v);
	const kern_stmt *s = v < q->r->n_loop ? q->r->loop[v] : NULL;
	bool up = q->t->coef > 0;

	switch (x->op) {
	case KERN_CHUNK:
		by_const(q, up ? q->r->n_chunks - 1 : 0);
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
		if (up != (x->op == KERN_MIN)) {
			by_either(q, x->form[0], x->form[1]);
			break;
		}
		by(q, x->form[0], 1);
		by(q, x->form[1], 1);
		break;
	case KERN_CLAMP:
		by_const(q, up ? x->num[1] : x->num[0]);
		by_either(q, x->form[0],
			kern_form_const(q->r->k, up ? x->num[0] : x->num[1]));
		break;
	case KERN_PICK:
		by_either(q, x->form[0], x->form[1]);
		break;
	case KERN_CHECK:
		by_check(q, x);
		break;
	case KERN_NONE:
	case KERN_CONST:
	case KERN_REG:
	case KERN_CALL:
	case KERN_COPY:
	case KERN_MAD:
	case KERN_MULADD:
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
	case KERN_LOAD:
	case KERN_N_OPS:
		q->r->data = true;
		break;
	}
}

/* Bounds of the value by a condition in which it is the last one, too. */
static void by_fact(struct ask *q, const struct kern_fact *fact)
{
	const kern_form *f = fact->f, *rest;
	int64_t a, bound;
	bool up;

	if (f->n == 0 || f->t[f->n - 1].v != q->t->v)
		return;
	a = f->t[f->n - 1].coef;
	up = (q->t->coef > 0) == (a > 0);
	bound = up ? fact->hi : fact->lo;
	if (bound == (up ? INT64_MAX : INT64_MIN) || q->t->coef % a != 0)
		return;
	/* a * v = f - rest */
	rest = kern_form_sub(q->r->k, f, kern_form_term(q->r->k, a, q->t->v));
	by(q, kern_form_sub(q->r->k,
		      kern_form_const(q->r->k, up ? bound - 1 : bound), rest),
		a);
}

static int64_t most(kern_range *r, const kern_form *f, int64_t goal, int nest)
{
	struct ask q = {.r = r, .f = f, .goal = goal, .nest = nest,
		.best = INT64_MAX};

	if (f->n == 0)
		return f->c0;
	if (--r->budget < 0 || nest > MAX_NEST)
		return INT64_MAX;
	q.t = &f->t[f->n - 1];
	by_definition(&q);
	for (int32_t i = r->fact.n - 1; i >= 0 && q.best > goal; i--)
		by_fact(&q, &r->fact.at[i]);
	return q.best;
}

/*
 * Conditions on quotients and remainders of a form say something of the form:
 * its last value, in f, is replaced by m * quotient + remainder - the rest.
 */
static const kern_form *by_parts(
	kern_range *r, const kern_form *f, const kern_value *x, kern_val div,
	kern_val mod)
{
	const kern_form *g = x->form[0], *parts;
	const kern_term *last;

	if (g->n == 0)
		return NULL;
	last = &g->t[g->n - 1];
	for (int32_t i = 0; i < f->n; i++) {
		const kern_term *t = &f->t[i];

		if (t->v != last->v || t->coef % last->coef != 0)
			continue;
		parts = kern_form_add(r->k,
			kern_form_term(r->k, x->num[0], div),
			kern_form_term(r->k, 1, mod));
		parts = kern_form_sub(r->k, parts, g);
		return kern_form_add(r->k, f,
			kern_form_scale(r->k, parts, t->coef / last->coef));
	}
	return NULL;
}

/* The remainder to the quotient x in a condition in force; 0: none. */
static kern_val remainder_of(const kern_range *r, const kern_value *x)
{
	for (int32_t j = 0; j < r->fact.n; j++) {
		const kern_form *f = r->fact.at[j].f;

		for (int32_t i = 0; i < f->n; i++) {
			const kern_value *y = kern_at(r->k, f->t[i].v);

			if (y->op == KERN_MOD && y->form[0] == x->form[0] &&
				y->num[0] == x->num[0])
				return f->t[i].v;
		}
	}
	return 0;
}

/* f by the next quotient, from *at on, that conditions in force speak of. */
static const kern_form *rewritten(kern_range *r, const kern_form *f, int32_t *at)
{
	for (; *at < r->fact.n; ++*at) {
		const kern_form *g = r->fact.at[*at].f;

		for (int32_t i = 0; i < g->n; i++) {
			const kern_value *x = kern_at(r->k, g->t[i].v);
			kern_val mod;
			const kern_form *h;

			if (x->op != KERN_DIV && x->op != KERN_FLOOR)
				continue;
			mod = remainder_of(r, x);
			h = mod == 0 ? NULL
				     : by_parts(r, f, x, g->t[i].v, mod);
			if (h != NULL) {
				++*at;
				return h;
			}
		}
	}
	return NULL;
}

int64_t kern_most(kern_range *r, const kern_form *f, int64_t goal)
{
	int64_t best;
	int32_t at = 0;

	r->budget = BUDGET;
	best = most(r, f, goal, 0);
	while (best > goal) {
		const kern_form *g = rewritten(r, f, &at);

		if (g == NULL)
			break;
		r->budget = BUDGET;
		best = smaller(best, most(r, g, goal, 0));
	}
	return best;
}

int64_t kern_least(kern_range *r, const kern_form *f, int64_t goal)
{
	int64_t m = kern_most(r, kern_form_scale(r->k, f, -1),
		goal == INT64_MAX || goal == INT64_MIN ? INT64_MIN : -goal);

	return m == INT64_MAX ? INT64_MIN : -m;
}

/* Conditions that cannot all hold: nothing is done here. */
static bool is_never(const kern_range *r)
{
	for (int32_t i = 0; i < r->fact.n; i++) {
		const struct kern_fact *f = &r->fact.at[i];

		if (f->f->n == 0 && (f->f->c0 < f->lo ||
					    (f->hi != INT64_MAX &&
						    f->f->c0 >= f->hi)))
			return true;
	}
	return false;
}

bool kern_is_inside(kern_range *r, const kern_form *f, int64_t lo, int64_t hi)
{
	if (is_never(r))
		return true;
	return (lo == INT64_MIN || kern_least(r, f, lo) >= lo) &&
	       (hi == INT64_MAX || kern_most(r, f, hi - 1) < hi);
}
