/*
 * estimate_abreast.c: how often sums that stand abreast in registers load what they
 * share.
 *
 * Loops that are written out inside of the lanes walk the terms and the rows. An element
 * that several rows have is loaded once: one that no row walks, and one of a sliding
 * window, which the next row has at an earlier term.
 *
 *   for a < 3 unroll 3 { for b < 3 unroll 3 { for i unroll 4 { s += x[i + a, j + b] * w[a, b] } } }
 *   w: 9 loads for 4 rows;  x: 6 rows of 3 terms, of 4 * 9
 */
#include "schedule/estimate_local.h"

bool estimate_is_abreast(const estimate *w, int32_t eqn)
{
	int32_t at = w->k->buf_of[eqn][0];
	const loop_buf *b = at < 0 ? NULL : &w->k->buf[at];

	return b != NULL && b->where == LOOP_REGISTER && b->elems > 1 && w->depth > 0 &&
	       w->loop[w->depth - 1].unrolled;
}

/* The part of the elements that the rows have, of all that they and the terms of the
 * sum would have apart; s: elements from a row to the next one. */
static double part_of(const estimate *w, const ix_form *f, int64_t s)
{
	const struct estimate_loop *rows = &w->loop[w->depth - 1];
	double part = 1;

	for (int32_t i = w->depth - 2; i >= 0 && w->loop[i].unrolled; i--) {
		const struct estimate_loop *l = &w->loop[i];
		double both = l->trips * rows->trips, each;
		int64_t t;

		if (!ix_stride(f, l->var, w->k->var[l->var].extent, &t) || t == 0 ||
			s % t != 0 || s / t < 1)
			continue;
		each = (double)(s / t) < l->trips ? (double)(s / t) : l->trips;
		each = ((rows->trips - 1) * each + l->trips) / both;
		part = each < part ? each : part;
	}
	return part;
}

double estimate_shared(const estimate *w, const ix_form *f)
{
	const struct estimate_loop *rows = &w->loop[w->depth - 1];
	int64_t s;

	if (!ix_stride(f, rows->var, w->k->var[rows->var].extent, &s))
		return 1;
	return s == 0 ? 1 / rows->trips : part_of(w, f, s < 0 ? -s : s);
}
