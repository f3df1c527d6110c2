/*
 * inside.c: whether a form lies between two bounds: by one condition on it, by its
 * range, by its values one by one, or because the conditions contradict each
 * other.
 */
#include "kern/range.h"

struct interval {
	int64_t lo, hi;
};

static bool is_in(void *arg, int64_t f, int64_t also)
{
	const struct interval *i = arg;

	(void)also;
	return f >= i->lo && (i->hi == INT64_MAX || f < i->hi);
}

/* Is there a condition in force that all the others rule out? */
static bool is_contradicted(kern_range *r)
{
	for (int32_t i = 0; i < r->fact.n; i++) {
		const struct kern_fact c = r->fact.at[i];

		if (c.wraps)
			continue;
		if ((c.lo != INT64_MIN && kern_most(r, c.f, c.lo - 1) < c.lo) ||
			(c.hi != INT64_MAX && kern_least(r, c.f, c.hi) >= c.hi))
			return true;
	}
	return false;
}

/* Does one condition on this very form, perhaps plus a number, say that? It does so
 * of what 64 bits hold, as addresses do. */
static bool is_said(kern_range *r, const kern_form *f, int64_t lo, int64_t hi)
{
	for (int32_t i = 0; i < r->fact.n; i++) {
		struct kern_fact c = r->fact.at[i];
		int64_t more, least, most_of;

		if (!kern_form_is_const(kern_form_sub(r->k, f, c.f), &more) ||
			c.lo == INT64_MIN || c.hi == INT64_MAX ||
			!add_ok(c.lo, more, &least) ||
			!add_ok(c.hi, more, &most_of))
			continue;
		if (least >= lo && most_of <= hi)
			return true;
	}
	return false;
}

bool kern_is_inside(kern_range *r, const kern_form *f, int64_t lo, int64_t hi)
{
	struct interval i = {lo, hi};

	if (kern_is_never(r) || is_said(r, f, lo, hi))
		return true;
	return ((lo == INT64_MIN || kern_least(r, f, lo) >= lo) &&
		       (hi == INT64_MAX || kern_most(r, f, hi - 1) < hi)) ||
	       kern_each(r, f, 0, is_in, &i) || is_contradicted(r) ||
	       kern_each_part(r, f, lo, hi);
}
