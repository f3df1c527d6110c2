/*
 * fact.c: facts lo <= f < hi, what follows from them, and values that only the
 * analysis has.
 */
#include "kern/range.h"

enum { MAX_MADE = 4 }; /* quotients in quotients */

/* f with its last value replaced by g */
static const kern_form *with(
	kern_range *r, const kern_form *f, const kern_form *g)
{
	const kern_term *t = &f->t[f->n - 1];
	const kern_form *rest =
		kern_form_sub(r->k, f, kern_form_term(r->k, t->coef, t->v));

	return kern_form_add(
		r->k, rest, kern_form_scale(r->k, g, t->coef));
}

/*
 * What f >= lo says where f's last value is the smaller of two: with either of
 * them in its place it is no smaller. So with f < hi and the larger.
 */
static void derive(kern_range *r, const kern_form *f, int64_t lo, int64_t hi)
{
	const kern_term *t = &f->t[f->n - 1];
	const kern_value *x = kern_at(r->k, t->v);
	bool from_lo = (x->op == KERN_MIN) == (t->coef > 0);

	if ((x->op != KERN_MIN && x->op != KERN_MAX) ||
		(from_lo ? lo == INT64_MIN : hi == INT64_MAX))
		return;
	for (int32_t i = 0; i < 2; i++)
		kern_add_fact(r, with(r, f, x->form[i]), from_lo ? lo : INT64_MIN,
			from_lo ? INT64_MAX : hi);
}

void kern_add_fact(
	kern_range *r, const kern_form *f, int64_t lo, int64_t hi)
{
	if (f == NULL || r->fact.n >= KERN_MAX_FACTS)
		return;
	*vec_push(r->k->a, &r->fact) = (struct kern_fact){f, lo, hi, 0};
	if (f->n > 0)
		derive(r, f, lo, hi);
}

bool kern_is_never(const kern_range *r)
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

/* ---- values of the analysis ---- */

bool kern_is_of_form(const kern_value *x)
{
	return x->op == KERN_INDEX || x->op == KERN_DIV ||
	       x->op == KERN_FLOOR || x->op == KERN_MOD ||
	       x->op == KERN_CLAMP;
}

/* x of the number f */
static int64_t of_number(const kern_value *x, int64_t f)
{
	int64_t m = x->num[0];

	if (x->op == KERN_MOD)
		return floor_mod(f, m);
	if (x->op == KERN_CLAMP)
		return f < m ? m : f > x->num[1] ? x->num[1] : f;
	return floor_div(f, m);
}

/* (p div d) div m is p div d m */
static void divide_once(const kern_range *r, kern_value *v)
{
	const kern_form *f = v->form[0];
	const kern_value *x;
	int64_t n;

	if ((v->op != KERN_DIV && v->op != KERN_FLOOR) || f->n != 1 ||
		f->t[0].coef != 1 || f->c0 != 0)
		return;
	x = kern_at(r->k, f->t[0].v);
	if ((x->op != KERN_DIV && x->op != KERN_FLOOR) ||
		!mul_ok(x->num[0], v->num[0], &n))
		return;
	v->op = x->op;
	v->form[0] = x->form[0];
	v->num[0] = n;
}

const kern_form *kern_made(
	kern_range *r, const kern_value *x, const kern_form *form)
{
	kern_value v = {.op = x->op, .type = kern_i64()};
	int64_t c;

	v.form[0] = form;
	v.num[0] = x->num[0];
	v.num[1] = x->num[1];
	if (x->op == KERN_INDEX)
		return form;
	divide_once(r, &v);
	if (kern_form_is_const(form, &c))
		return kern_form_const(r->k, of_number(x, c));
	for (int32_t i = 1; i < r->n_loop + r->made.n; i++) {
		kern_val j = i < r->n_loop ? i : r->made.at[i - r->n_loop];
		const kern_value *y = kern_at(r->k, j);

		if (y->op == v.op && y->form[0] == v.form[0] &&
			y->num[0] == v.num[0] && y->num[1] == v.num[1] &&
			y->type.lanes == 1)
			return kern_form_term(r->k, 1, j);
	}
	*vec_push(r->k->a, &r->made) = kern_ins(r->k, &v);
	return kern_form_term(r->k, 1, r->made.at[r->made.n - 1]);
}

const kern_form *kern_first_made(
	kern_range *r, const kern_form *f, int32_t nest)
{
	const kern_form *sum = kern_form_const(r->k, f->c0);

	for (int32_t i = 0; i < f->n; i++) {
		const kern_term *t = &f->t[i];
		const kern_value *x = kern_at(r->k, t->v);
		const kern_form *g = kern_form_term(r->k, 1, t->v);

		if (kern_is_of_form(x) && x->op != KERN_INDEX && nest < MAX_MADE)
			g = kern_made(r, x,
				kern_first_made(r, x->form[0], nest + 1));
		sum = kern_form_add(
			r->k, sum, kern_form_scale(r->k, g, t->coef));
	}
	return sum;
}

const kern_form *kern_remainder(
	kern_range *r, const kern_form *f, int64_t m)
{
	kern_value x = {.op = KERN_MOD, .num = {m}};

	return kern_made(r, &x, f);
}

static bool loads(const kern_range *r, kern_val v, int32_t array,
	const kern_form *at)
{
	const kern_value *y = kern_at(r->k, v);

	return y->op == KERN_LOAD && y->at.array == array && y->at.at == at &&
	       y->type.lanes == 1 && y->at.mask == 0;
}

const kern_form *kern_loaded(
	kern_range *r, const kern_value *x, const kern_form *at)
{
	kern_value v = {.op = KERN_LOAD, .type = x->type};

	if (r->once == NULL || !r->once[x->at.array] || x->at.mask != 0)
		return NULL;
	for (kern_val i = 1; i < r->n_loop; i++)
		if (loads(r, i, x->at.array, at))
			return kern_form_term(r->k, 1, i);
	for (int32_t i = 0; i < r->made.n; i++)
		if (loads(r, r->made.at[i], x->at.array, at))
			return kern_form_term(r->k, 1, r->made.at[i]);
	v.at = kern_element(x->at.array, at);
	*vec_push(r->k->a, &r->made) = kern_ins(r->k, &v);
	return kern_form_term(r->k, 1, r->made.at[r->made.n - 1]);
}

kern_val kern_same_load(kern_range *r, kern_val v)
{
	const kern_value *x = kern_at(r->k, v);
	const kern_form *f = x->op == KERN_LOAD && x->type.lanes == 1
				     ? kern_loaded(r, x, x->at.at)
				     : NULL;

	return f == NULL ? v : f->t[0].v;
}
