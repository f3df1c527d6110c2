/*
 * estimate_guard.c: the part of the iterations around a node that its guards let
 * pass, by the intervals of the variables: over all blocks, because one block says
 * little. Of i < 1024 in blocks of 32, the first has 3 % of the j <= i, all have half.
 */
#include "schedule/estimate_local.h"

/* Bounds of f for variables in their intervals; false: unknown. */
static bool bounds_of(
	const estimate *w, const ix_form *f, int64_t *min, int64_t *max)
{
	*min = *max = f->c0;
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;
		int64_t lo, hi, c = f->t[i].coef;

		if (t->kind != IX_DIGIT)
			return false;
		if (t->lo == 1 && t->hi >= w->k->var[t->axis].extent) {
			lo = w->reach[t->axis].lo;
			hi = w->reach[t->axis].hi - 1;
		} else {
			lo = 0;
			hi = t->hi / t->lo - 1;
		}
		*min += c > 0 ? c * lo : c * hi;
		*max += c > 0 ? c * hi : c * lo;
	}
	return true;
}

double estimate_inside(
	const estimate *w, const ix_form *f, int64_t lo, int64_t hi)
{
	int64_t min, max;
	double n;

	if (!bounds_of(w, f, &min, &max))
		return 1;
	n = (double)(max - min) + 1;
	if (lo > min)
		min = lo;
	if (hi != INT64_MAX && hi - 1 < max)
		max = hi - 1;
	return max < min ? 0 : ((double)(max - min) + 1) / n;
}

double estimate_needed(const estimate *w, const loop_node *n)
{
	double part = 1;

	for (const loop_node *u = n->up; u != NULL; u = u->up)
		if (u->kind == LOOP_BLOCK && u->n_needs > 0)
			return 1; /* that counts for all of the block */
	for (int32_t i = 0; i < n->n_needs; i++) {
		double p = estimate_inside(
			w, n->need[i].f, n->need[i].lo, n->need[i].hi);

		part = p < part ? p : part;
	}
	return part;
}

bool estimate_is_guard(const estimate *w, const expr *e, estimate_guard *g)
{
	if (e->kind == EX_INSIDE) {
		double part = estimate_inside(w, e->form, e->lo, e->hi);

		g->vars |= loop_form_vars(e->form);
		g->part *= part;
		g->by_lane |= part < 1 && part > 0 &&
			      estimate_in_lanes(w, loop_form_vars(e->form));
		return true;
	}
	return e->kind == EX_CALL && e->dtype == TN_BOOL && e->arg[0] != NULL &&
	       e->arg[1] != NULL && estimate_is_guard(w, e->arg[0], g) &&
	       estimate_is_guard(w, e->arg[1], g);
}

/* Do the clips of the loops around say that it holds? */
static bool is_clipped(const estimate *w, const expr *e)
{
	for (int32_t i = 0; i < w->depth; i++)
		for (int32_t j = 0; j < w->loop[i].node->n_clip; j++) {
			const loop_clip *c = &w->loop[i].node->clip[j];

			if (c->f == e->form && c->lo == e->lo && c->hi == e->hi)
				return true;
		}
	return false;
}

/* Has it as many values as loops are written out, in all iterations of the others? Then
 * a compiler computes these once. */
static bool is_steady(const estimate *w, loop_set vars)
{
	for (int32_t i = 0; i < w->depth; i++)
		if ((vars & BIT(w->loop[i].var)) != 0 && !w->loop[i].unrolled &&
			w->loop[i].trips > 1)
			return false;
	return true;
}

bool estimate_is_free(const estimate *w, const expr *e, loop_set vars)
{
	return is_clipped(w, e) || is_steady(w, vars);
}
