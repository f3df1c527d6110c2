/*
 * range_reach.c: how large the values of forms can be, whatever holds: so it is known which
 * of them 64 bits hold.
 */
#include "kern/range.h"

/* An element of an array that holds indices of one check. */
static uint64_t reach_of_load(const kern_range *r, const kern_value *x)
{
	int32_t n = r->checked[x->at.array];
	const kern_check *c;
	uint64_t lo, hi;

	if (n < 1 || n > r->k->check.n)
		return KERN_BEYOND;
	c = &r->k->check.at[n - 1];
	lo = c->lo < 0 ? -(uint64_t)c->lo : (uint64_t)c->lo;
	hi = c->hi < 0 ? -(uint64_t)c->hi : (uint64_t)c->hi;
	return lo > hi ? lo : hi;
}

static uint64_t reach_of(const kern_range *r, kern_val v)
{
	const kern_value *x = kern_at(r->k, v);

	if (v < r->n_loop)
		return r->reach[v];
	if (x->op == KERN_LOAD)
		return reach_of_load(r, x);
	return x->form[0] != NULL ? kern_reach(r, x->form[0]) : KERN_BEYOND;
}

uint64_t kern_reach(const kern_range *r, const kern_form *f)
{
	uint64_t n = 0, c;

	if (r->reach == NULL || f == NULL)
		return 0;
	n = f->c0 < 0 ? -(uint64_t)f->c0 : (uint64_t)f->c0;
	for (int32_t i = 0; i < f->n && n < KERN_BEYOND; i++) {
		uint64_t x = reach_of(r, f->t[i].v);

		c = f->t[i].coef < 0 ? -(uint64_t)f->t[i].coef
				     : (uint64_t)f->t[i].coef;
		if (x > (KERN_BEYOND - n) / c)
			return KERN_BEYOND;
		n += c * x;
	}
	return n < KERN_BEYOND ? n : KERN_BEYOND;
}
