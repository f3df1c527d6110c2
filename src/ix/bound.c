/*
 * bound.c: the range of data with which a form is inside of a tensor.
 *
 *     0 <= i + start[0] < 10, i < 4   ->   i + start[0 in 0..7]
 */
#include "ix/ix.h"

/* The only term with data: an element, or a floor of a form with one. */
static const ix_atom *only_data(const ix_form *f, int64_t *coef)
{
	const ix_atom *found = NULL;

	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;

		if (a->kind == IX_DIGIT ||
			(a->kind != IX_FUN && !ix_has_fun(a->f)))
			continue;
		/* two of them, or one inside a clamp, cannot be bounded */
		if (found != NULL || a->kind == IX_CLAMP)
			return NULL;
		found = a;
		*coef = f->t[i].coef;
	}
	return found;
}

static const ix_form *atom_form(ix *x, const ix_dom *d, const ix_atom *a)
{
	return a->kind == IX_FUN
		? ix_fun(x, a->fun, a->f, a->lo, a->hi)
		: ix_div(x, d, a->f, a->den);
}

const ix_form *ix_bound_data(
	ix *x, const ix_dom *d, const ix_form *f, int64_t n)
{
	int64_t coef = 0, min, max, lo, hi, low, high;
	const ix_atom *a = only_data(f, &coef);
	const ix_form *rest, *data;

	if (a == NULL || n == 0)
		return NULL;
	rest = ix_sub(x, d, f, ix_scale(x, atom_form(x, d, a), coef));
	ix_range(d, rest, &min, &max);
	if (min < -IX_MOST_DATA || max > IX_MOST_DATA)
		return NULL;
	/* -min <= coef * data <= n - 1 - max */
	if (coef > 0) {
		lo = -floor_div(min, coef);
		hi = floor_div(n - 1 - max, coef) + 1;
	} else {
		lo = -floor_div(n - 1 - max, -coef);
		hi = floor_div(min, -coef) + 1;
	}
	if (lo >= hi)
		return NULL;
	if (a->kind == IX_FUN) {
		data = ix_fun(x, a->fun, a->f, lo, hi);
	} else { /* lo <= g div m < hi: lo * m <= g < hi * m */
		if (!mul_ok(lo, a->den, &low) || !mul_ok(hi, a->den, &high))
			return NULL;
		data = ix_bound_data(x, d, ix_addc(x, a->f, -low), high - low);
		if (data == NULL)
			return NULL;
		data = ix_div(x, d, ix_addc(x, data, low), a->den);
	}
	return ix_add(x, d, rest, ix_scale(x, data, coef));
}
