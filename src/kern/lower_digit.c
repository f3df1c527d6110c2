/*
 * lower_digit.c: an index in each lane, computed for all lanes at once: its digits of
 * the variable that the lanes number, as vectors that later indices find again, and
 * what is the same distance apart in all lanes.
 */
#include "kern/lower.h"

/* The dtype of the values of f per lane: the shortest that holds them, and, in a
 * vector, gives masks of its elements. */
tn_dtype lw_index_dtype(lowering *lw, const ix_form *f)
{
	bool vector = lw->k->machine->lanes == 0;
	int64_t min, max;

	ix_range(lw->dom, f, &min, &max);
	return min < INT32_MIN || max > INT32_MAX ||
			       (vector && lw_mask_bytes(lw) > 4)
		       ? TN_I64
		       : TN_I32;
}

/* Is the atom a digit of the variable of the lanes, such as i / 56 % 56? */
static bool is_lane_digit(const lowering *lw, const ix_atom *t)
{
	return lw->lanes > 1 && t->kind == IX_DIGIT && t->axis == lw->vvar &&
	       (t->lo > 1 || t->hi < lw->dom->box.extent[t->axis]);
}

/* (f + l) div m, or mod m, for each lane l */
static val of_lanes(
	lowering *lw, kern_op op, form f, int64_t m, tn_dtype dt)
{
	kern_value v = {.op = op,
		.type = kern_num(dt, lw->lanes),
		.form = {f},
		.num = {m, INT64_MAX}};

	return (val){kern_let(lw->b, kern_ins(lw->b->k, &v)), dt, lw->lanes, 0};
}

/*
 * A digit, f div lo mod (hi / lo), computed as f div lo minus the higher
 * digits.
 */
static val made_digit(lowering *lw, const ix_atom *t, tn_dtype dt)
{
	form f = lw_var(lw, t->axis);
	val v, above, n;

	if (t->lo == 1)
		return of_lanes(lw, KERN_MOD, f, t->hi, dt);
	v = of_lanes(lw, KERN_DIV, f, t->lo, dt);
	if (t->hi >= lw->dom->box.extent[t->axis])
		return v;
	above = of_lanes(lw, KERN_DIV, f, t->hi, dt);
	n = lw_to_lanes(lw, lw_const(lw, dt, 0, t->hi / t->lo));
	return lw_call2(lw, lw->fn.sub, v, v,
		lw_call2(lw, lw->fn.mul, v, above, n));
}

static val lane_digit(lowering *lw, const ix_atom *t, tn_dtype dt)
{
	val v;

	for (int32_t i = lw->digit.n - 1; i >= 0; i--)
		if (lw->digit.at[i].atom == t && lw->digit.at[i].dt == dt)
			return lw->digit.at[i].v;
	v = made_digit(lw, t, dt);
	*vec_push(lw->a, &lw->digit) = (struct memo_digit){t, dt, v};
	return v;
}

void lw_lane_digits(lowering *lw, const ix_form *f)
{
	tn_dtype dt = lw_index_dtype(lw, f);

	for (int32_t i = 0; i < f->n; i++)
		if (is_lane_digit(lw, f->t[i].atom))
			(void)lane_digit(lw, f->t[i].atom, dt);
}

/* f without its digits of the lanes. */
static const ix_form *without_digits(lowering *lw, const ix_form *f)
{
	const ix_form *rest = f;

	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (is_lane_digit(lw, t))
			rest = ix_sub(lw->s->x, lw->dom, rest,
				ix_scale(lw->s->x,
					ix_digit(lw->s->x, lw->dom, t->axis,
						t->lo, t->hi),
					f->t[i].coef));
	}
	return rest;
}

/* Adds the digits of the lanes in f to v. */
static val with_digits(lowering *lw, const ix_form *f, val v)
{
	val type = {0, v.dt, v.lanes, 0};

	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;
		val d;

		if (!is_lane_digit(lw, t))
			continue;
		d = lane_digit(lw, t, v.dt);
		if (f->t[i].coef != 1)
			d = lw_call2(lw, lw->fn.mul, type, d,
				lw_to_lanes(lw, lw_const(lw, v.dt, 0,
							f->t[i].coef)));
		v = lw_call2(lw, lw->fn.add, type, v, d);
	}
	return v;
}

bool lw_index_in_vectors(lowering *lw, const ix_form *f)
{
	int64_t stride;

	return !ix_has_fun(f) && ix_stride(without_digits(lw, f), lw->vvar,
					 lw->k->var[lw->vvar].extent, &stride);
}

val lw_index_lanes(lowering *lw, const ix_form *f, tn_dtype dt)
{
	const ix_form *rest = without_digits(lw, f);
	int64_t stride = 0;

	(void)ix_stride(
		rest, lw->vvar, lw->k->var[lw->vvar].extent, &stride);
	return with_digits(lw, f,
		lw_lanes_of_form(lw, dt, lw_form(lw, rest, 0), stride));
}
