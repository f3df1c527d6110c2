/*
 * assume.c: what conditions say of forms.
 *
 * Consumes a condition, or a lane of a mask; produces facts lo <= f < hi. Lanes
 * of integers are forms of the lane's number:
 *
 *     %2: i32x16 = splat %1          %1 = index %i0
 *     %3: i32x16 = lanes [-1, 0, 1 ..]
 *     %4: i32x16 = add %2, %3        lane l: %i0 + l - 1
 *     %6: m4x16 = ge %4, %5          .. >= 0
 */
#include "kern/range.h"

enum { MAX_NEST = 40, MAX_OTHER = 8 };

/* `inside` compares what 64 bits hold of the form. */
static void inside(kern_range *r, const kern_form *f, int64_t lo, int64_t hi)
{
	if (f == NULL || kern_reach(r, f) < KERN_BEYOND)
		kern_add_fact(r, f, lo, hi);
	else if (r->fact.n < KERN_MAX_FACTS)
		*vec_push(r->k->a, &r->fact) =
			(struct kern_fact){f, lo, hi, 1};
}

static const kern_form *form_of(
	kern_range *r, kern_val v, const kern_form *lane, int nest);

/* f with the variable of a loop replaced, in quotients and loads, too; NULL: it
 * has other values of an iteration */
static const kern_form *at_lane(kern_range *r, const kern_form *f,
	kern_val walk, const kern_form *lane, int nest)
{
	const kern_form *sum = kern_form_const(r->k, f->c0);

	for (int32_t i = 0; i < f->n; i++) {
		const kern_term *t = &f->t[i];
		const kern_value *x = kern_at(r->k, t->v);
		const kern_form *g = kern_form_term(r->k, 1, t->v), *of;

		if (t->v == walk) {
			g = lane;
		} else if (t->v > walk) {
			bool load = x->op == KERN_LOAD;

			of = x->type.lanes > 1 || nest == 4 ||
					     (!load && !kern_is_of_form(x))
				     ? NULL
				     : at_lane(r, load ? x->at.at : x->form[0],
					       walk, lane, nest + 1);
			g = of == NULL ? NULL
			    : load     ? kern_loaded(r, x, of)
				       : kern_made(r, x, of);
		}
		if (g == NULL)
			return NULL;
		sum = kern_form_add(
			r->k, sum, kern_form_scale(r->k, g, t->coef));
	}
	return sum;
}

/* A register whose lanes a loop has set: as that loop has it. */
static const kern_form *set_lane(
	kern_range *r, kern_val v, const kern_form *lane)
{
	const kern_stmt *s =
		r->lanes != NULL && v < r->n_loop ? r->lanes[v] : NULL;
	const kern_value *x;
	const kern_form *f;

	if (s == NULL)
		return NULL;
	x = kern_at(r->k, s->x);
	if (s->x < s->lo->t[0].v) /* one for all lanes */
		return form_of(r, s->x, NULL, 0);
	if (x->type.lanes != 1 || (x->op != KERN_LOAD && !kern_is_of_form(x)))
		return NULL;
	f = at_lane(r, x->op == KERN_LOAD ? x->at.at : x->form[0],
		s->lo->t[0].v, lane, 0);
	return f == NULL	     ? NULL
	       : x->op == KERN_LOAD ? kern_loaded(r, x, f)
				    : kern_made(r, x, f);
}

/* a, a + s, a + 2 * s .. */
static const kern_form *progression(
	kern_range *r, const kern_value *x, const kern_form *lane)
{
	int64_t s = x->list[1] - x->list[0], c;

	if (kern_form_is_const(lane, &c) && c >= 0 && c < x->type.lanes)
		return kern_form_const(r->k, x->list[c]);
	for (int32_t i = 2; i < x->type.lanes; i++)
		if (x->list[i] - x->list[i - 1] != s)
			return NULL;
	return kern_form_addc(
		r->k, kern_form_scale(r->k, lane, s), x->list[0]);
}

/* n, if y is the quotient of the same form by n times the divisor of x; else 0 */
static int64_t times_divided(const kern_value *x, const kern_value *y)
{
	bool both = (x->op == KERN_DIV || x->op == KERN_FLOOR) &&
		    (y->op == KERN_DIV || y->op == KERN_FLOOR);

	return both && x->form[0] == y->form[0] && y->num[0] > x->num[0] &&
			       y->num[0] % x->num[0] == 0
		       ? y->num[0] / x->num[0]
		       : 0;
}

/* q - n * (p div d n), q being p div d, is the digit q mod n, as addresses have it. */
static const kern_form *as_digits(kern_range *r, const kern_form *f)
{
	for (int32_t i = 0; i < f->n; i++)
		for (int32_t j = 0; j < f->n; j++) {
			const kern_term *t = &f->t[i], *u = &f->t[j];
			int64_t n = times_divided(kern_at(r->k, t->v),
				kern_at(r->k, u->v));
			int64_t c;

			if (n == 0 || !mul_ok(t->coef, -n, &c) || u->coef != c)
				continue;
			f = kern_form_sub(r->k, f, kern_form_term(r->k, c, u->v));
			f = kern_form_sub(
				r->k, f, kern_form_term(r->k, t->coef, t->v));
			return kern_form_add(r->k, f,
				kern_form_scale(r->k,
					kern_remainder(r,
						kern_form_term(r->k, 1, t->v), n),
					t->coef));
		}
	return f;
}

static const kern_form *call_form(kern_range *r, const kern_value *x,
	const kern_form *lane, int nest)
{
	const char *name = ir_scalar_at(x->fn)->name;
	const kern_form *f, *g;
	int64_t c;

	if (ir_scalar_at(x->fn)->n_args != 2)
		return NULL;
	f = form_of(r, x->arg[0], lane, nest + 1);
	g = form_of(r, x->arg[1], lane, nest + 1);
	if (f == NULL || g == NULL)
		return NULL;
	if (strcmp(name, "add") == 0)
		f = kern_form_add(r->k, f, g);
	else if (strcmp(name, "sub") == 0)
		f = kern_form_sub(r->k, f, g);
	else if (strcmp(name, "mul") == 0 && kern_form_is_const(g, &c))
		f = kern_form_scale(r->k, f, c);
	else
		return NULL;
	f = as_digits(r, f);
	/* 32 bits wrap, and 64 */
	if (x->type.dt == TN_I64)
		return kern_reach(r, f) < KERN_BEYOND ? f : NULL;
	return kern_is_inside(r, f, INT32_MIN, (int64_t)INT32_MAX + 1) ? f
								       : NULL;
}

/* An integer, or a lane of integers, as a form; NULL: it is none. */
static const kern_form *form_of(
	kern_range *r, kern_val v, const kern_form *lane, int nest)
{
	const kern_value *x = kern_at(r->k, v);
	bool in_lanes = x->type.lanes > 1;
	bool wraps = x->op == KERN_INDEX &&
		     kern_reach(r, x->form[0]) >= KERN_BEYOND;

	if (nest > MAX_NEST || (in_lanes && (lane == NULL || wraps)) ||
		(x->type.dt != TN_I64 && x->type.dt != TN_I32))
		return NULL;
	if (x->op == KERN_SPLAT)
		return form_of(r, x->arg[0], NULL, nest + 1);
	if (x->op == KERN_LANES)
		return progression(r, x, lane);
	if (x->op == KERN_CONST)
		return kern_form_const(r->k, x->c.i);
	if (x->op == KERN_CALL)
		return call_form(r, x, lane, nest);
	if (x->op == KERN_MULADD && in_lanes)
		return NULL;
	if (in_lanes && kern_is_of_form(x))
		return kern_made(r, x, kern_form_add(r->k, x->form[0], lane));
	if (in_lanes && x->op == KERN_REG)
		return set_lane(r, v, lane);
	if (in_lanes || x->op == KERN_REG)
		return NULL;
	return x->op == KERN_INDEX && !wraps ? x->form[0]
					     : kern_form_term(r->k, 1, v);
}

const kern_form *kern_lane_form(
	kern_range *r, kern_val v, const kern_form *lane)
{
	return form_of(r, v, lane, 0);
}

/* x CMP y, which holds or not: as x - y in an interval */
static void compare(kern_range *r, const kern_value *x, const kern_form *lane,
	bool holds, int nest)
{
	static const struct {
		const char *name;
		int64_t lo[2], hi[2]; /* where it does not hold, where it does */
	} rows[] = {
		{"lt", {0, INT64_MIN}, {INT64_MAX, 0}},
		{"le", {1, INT64_MIN}, {INT64_MAX, 1}},
		{"gt", {INT64_MIN, 1}, {1, INT64_MAX}},
		{"ge", {INT64_MIN, 0}, {0, INT64_MAX}},
		{"eq", {INT64_MIN, 0}, {INT64_MAX, 1}},
		{"ne", {0, INT64_MIN}, {1, INT64_MAX}},
	};
	const char *name = ir_scalar_at(x->fn)->name;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const kern_form *f, *g;

		if (strcmp(name, rows[i].name) != 0)
			continue;
		f = form_of(r, x->arg[0], lane, nest + 1);
		g = form_of(r, x->arg[1], lane, nest + 1);
		if (f != NULL && g != NULL)
			kern_add_fact(r, kern_form_sub(r->k, f, g), rows[i].lo[holds],
				rows[i].hi[holds]);
	}
}

/* Not lo <= f < hi: on one side of it, if the other one cannot be. */
static void outside(kern_range *r, const kern_form *f, int64_t lo, int64_t hi)
{
	if (hi != INT64_MAX && kern_is_inside(r, f, lo, INT64_MAX))
		kern_add_fact(r, f, hi, INT64_MAX);
	else if (lo != INT64_MIN && kern_is_inside(r, f, INT64_MIN, hi))
		kern_add_fact(r, f, INT64_MIN, lo);
}

static void assume(
	kern_range *r, kern_val c, const kern_form *lane, bool holds, int nest);

/* Can the condition not be so, by those in force? */
static bool cannot(kern_range *r, kern_val c, const kern_form *lane,
	bool holds, int nest)
{
	int32_t n = r->fact.n, m;
	bool never;

	assume(r, c, lane, holds, nest);
	m = r->fact.n;
	never = kern_is_never(r);
	r->fact.n = n;
	for (int32_t i = n; i < m && !never; i++) {
		struct kern_fact f = r->fact.at[i];

		never = !f.wraps && ((f.lo != INT64_MIN && kern_most(r, f.f, f.lo - 1) < f.lo) ||
			(f.hi != INT64_MAX && kern_least(r, f.f, f.hi) >= f.hi));
	}
	return never;
}

/* One of both is not so (`and`), or is (`or`): if it cannot be one, the other. */
static void assume_other(kern_range *r, const kern_value *x,
	const kern_form *lane, bool holds, int nest)
{
	for (int32_t i = 0; i < 2 && nest < MAX_OTHER; i++)
		if (cannot(r, x->arg[i], lane, holds, nest + 1))
			assume(r, x->arg[1 - i], lane, holds, nest + 1);
}

static void call(kern_range *r, const kern_value *x, const kern_form *lane,
	bool holds, int nest)
{
	const char *name = ir_scalar_at(x->fn)->name;
	bool both = (strcmp(name, "and") == 0 && holds) ||
		    (strcmp(name, "or") == 0 && !holds);

	if (both || strcmp(name, "not") == 0) {
		assume(r, x->arg[0], lane, both == holds, nest + 1);
		if (both)
			assume(r, x->arg[1], lane, holds, nest + 1);
	} else if (strcmp(name, "and") == 0 || strcmp(name, "or") == 0) {
		assume_other(r, x, lane, holds, nest);
	} else {
		compare(r, x, lane, holds, nest);
	}
}

static void assume(
	kern_range *r, kern_val c, const kern_form *lane, bool holds, int nest)
{
	const kern_value *x = kern_at(r->k, c);

	if (nest > MAX_NEST || x->type.dt != TN_BOOL)
		return;
	if (x->op == KERN_INSIDE) {
		if (holds)
			inside(r, x->form[0], x->num[0], x->num[1]);
		else if (kern_reach(r, x->form[0]) < KERN_BEYOND)
			outside(r, x->form[0], x->num[0], x->num[1]);
	} else if (x->op == KERN_CALL) {
		call(r, x, x->type.lanes > 1 ? lane : NULL, holds, nest);
	} else if (x->op == KERN_LANE) {
		assume(r, x->arg[0], x->form[0], holds, nest + 1);
	} else if (x->op == KERN_SPLAT) {
		assume(r, x->arg[0], NULL, holds, nest + 1);
	} else if (x->op == KERN_CAST &&
		   kern_at(r->k, x->arg[0])->type.dt == TN_BOOL) {
		assume(r, x->arg[0], lane, holds, nest + 1);
	} else if (x->op == KERN_CONST && (x->c.i != 0) != holds) {
		kern_add_fact(r, kern_form_const(r->k, 0), 1, INT64_MAX);
	} else if (x->op == KERN_LANES && lane != NULL) {
		const kern_form *f = progression(r, x, lane);
		int64_t v;

		/* a lane that never is: anything follows */
		if (f != NULL && kern_form_is_const(f, &v) &&
			(v != 0) != holds)
			kern_add_fact(r, kern_form_const(r->k, 0), 1, INT64_MAX);
	}
}

void kern_assume_loop(kern_range *r, const kern_stmt *s)
{
	if (s->lo->n > 0 || s->hi->n > 0)
		kern_add_fact(r, kern_form_sub(r->k, s->hi, s->lo),
			s->whole ? s->step : 1, INT64_MAX);
}

void kern_assume(
	kern_range *r, kern_val c, const kern_form *lane, bool holds)
{
	assume(r, c, lane, holds, 0);
}
