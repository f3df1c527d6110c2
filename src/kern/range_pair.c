/*
 * range_pair.c: two quotients of one number, of which one divides further.
 *
 *   7 * (p / 427) - p / 61 = -(p / 61 mod 7)    -6 to 0
 *
 * By itself, each of them is known far less exactly. Indices of an outer product that is
 * padded by reflection are such.
 */
#include "kern/range.h"

static bool divides(const kern_value *x)
{
	return x->op == KERN_DIV || x->op == KERN_FLOOR;
}

/* f without the quotients of fine and coarse, if they are such a pair, but with what they
 * are at most; else NULL. */
static const kern_form *without(kern_range *r, const kern_form *f, const kern_term *fine,
	const kern_term *coarse)
{
	kern_kernel *k = r->k;
	const kern_value *x = kern_at(k, fine->v), *y = kern_at(k, coarse->v);
	int64_t n = y->num[0] / x->num[0], most = 0, times;
	const kern_form *more, *g;

	if (n < 2 || n * x->num[0] != y->num[0] || !mul_ok(fine->coef, -n, &times) ||
		times != coarse->coef || kern_reach(r, x->form[0]) >= KERN_BEYOND ||
		kern_reach(r, y->form[0]) >= KERN_BEYOND)
		return NULL;
	/* p of coarse = p of fine + m * more */
	more = kern_exact(k, kern_form_sub(k, y->form[0], x->form[0]), x->num[0]);
	if (more == NULL || (fine->coef > 0 && !mul_ok(fine->coef, n - 1, &most)))
		return NULL;
	g = kern_form_sub(k, f, kern_form_term(k, fine->coef, fine->v));
	g = kern_form_sub(k, g, kern_form_term(k, coarse->coef, coarse->v));
	g = kern_form_sub(k, g, kern_form_scale(k, more, fine->coef));
	return kern_form_addc(k, g, most);
}

const kern_form *kern_without_pair(kern_range *r, const kern_form *f)
{
	for (int32_t j = 0; j < f->n; j++) {
		const kern_value *x = kern_at(r->k, f->t[j].v);

		for (int32_t i = 0; divides(x) && i < f->n; i++) {
			const kern_value *y = kern_at(r->k, f->t[i].v);
			const kern_form *g = i != j && divides(y)
						     ? without(r, f, &f->t[j], &f->t[i])
						     : NULL;

			if (g != NULL)
				return g;
		}
	}
	return NULL;
}
