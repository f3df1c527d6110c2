/*
 * subst.c: rewrites forms: simplified by facts, over another box, as indices of
 * a shape.
 *
 * Consumes forms over an old box; produces forms in normal form over the new
 * domain. Each atom is rebuilt from its new argument, so all rules of div.c are
 * applied again.
 *
 *     f = i div 3 over [12], i := 4*a + b over [3,4]     (4*a + b) div 3
 *     f = i mod 4 over [8], fact 4 <= i < 8              i - 4
 *     f = 4*a + b over [3,4] in the shape [2,6]          (f div 6, f mod 6)
 */
#include "ix/local.h"

struct with {
	int32_t n;
	const int64_t *extent;
	const ix_form *const *form; /* NULL: keep the axes, only simplify */
};

static const ix_form *form_with(ix *x, const ix_dom *d, const ix_form *f,
	const struct with *w);

/* ---- simplification of a digit by facts ---- */

/*
 * If v stays within one run of hi, the mod can be dropped: (v div lo) mod
 * (hi/lo) = v div lo - hi/lo * k where v div hi = k
 */
static void digit_here(const ix_dom *d, int64_t c, const ix_atom *a, sum *s)
{
	int64_t extent = d->box.extent[a->axis];
	part p = part_digit(c, a->axis, a->lo, a->hi);
	span v, u;

	if (d->n_facts == 0) {
		sum_part(s, &p, c);
		return;
	}
	u = ix_span_parts(d, 0, &p, 1);
	if (u.min == u.max) {
		s->c0 = ix_fit(s->x, u.min + s->c0);
		return;
	}
	v = ix_span_axis(d, a->axis);
	if (a->hi < extent && v.min <= v.max &&
		v.min / a->hi == v.max / a->hi) {
		wide k = v.min / a->hi * (a->hi / a->lo);

		s->c0 = ix_fit(s->x, s->c0 - k * c);
		p.hi = extent;
	}
	sum_part(s, &p, c);
}

/* ---- a digit of a form ---- */

/*
 * A digit of a form. The remainder is computed first, because it is small, and
 * c times the quotient may be too large.
 */
static void digit_with(ix *x, const ix_dom *d, int64_t c, const ix_atom *a,
	const struct with *w, sum *s)
{
	const ix_form *v = w->form[a->axis], *q;
	int64_t m = a->hi / a->lo;

	if (a->lo >= w->extent[a->axis])
		return;
	q = ix_div(x, d, v, a->lo);
	if (a->hi < w->extent[a->axis]) {
		sum r;

		sum_init(&r, x, 0);
		sum_form(&r, 1, q);
		sum_form(&r, -m, ix_div(x, d, v, a->hi));
		q = sum_done(&r, &d->box);
	}
	sum_form(s, c, q);
}

static const ix_form *atom_with(ix *x, const ix_dom *d, const ix_atom *a,
	const struct with *w)
{
	const ix_form *r = ix_memo_get(x, a), *f;

	if (r != NULL)
		return r;
	f = form_with(x, d, a->f, w);
	if (a->kind == IX_FLOOR)
		r = ix_div(x, d, f, a->den);
	else if (a->kind == IX_CLAMP)
		r = ix_clamp(x, d, f, a->lo, a->hi);
	else
		r = ix_fun(x, a->fun, f, a->lo, a->hi);
	ix_memo_set(x, a, r);
	return r;
}

/*
 * Does f contain a function that has only one possible value? Such a form is
 * not treated as a constant, because generated code checks the value.
 */
static bool has_checked(const ix_form *f)
{
	if (!ix_has_fun(f))
		return false;
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;

		if (a->kind == IX_FUN && a->hi - 1 == a->lo)
			return true;
		if (a->kind == IX_FLOOR && has_checked(a->f))
			return true;
	}
	return false;
}

static const ix_form *form_with(ix *x, const ix_dom *d, const ix_form *f,
	const struct with *w)
{
	const ix_form *r;
	sum s;

	sum_init(&s, x, f->c0);
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;
		int64_t c = f->t[i].coef;

		if (a->kind != IX_DIGIT)
			sum_form(&s, c, atom_with(x, d, a, w));
		else if (w->form == NULL)
			digit_here(d, c, a, &s);
		else
			digit_with(x, d, c, a, w, &s);
	}
	r = sum_done(&s, &d->box);
	if (d->n_facts > 0 || (ix_form_has(r) & (HAS_FLOOR | HAS_CLAMP)) != 0) {
		span v = ix_span(d, r);

		if (v.min == v.max && !has_checked(r))
			return ix_const(x, ix_fit(x, v.min));
	}
	return r;
}

const ix_form *ix_simplify(ix *x, const ix_dom *d, const ix_form *f)
{
	struct with w = {d->box.n, d->box.extent, NULL};
	const ix_form *r;

	if (d->n_facts == 0 && ix_form_has(f) == 0)
		return f;
	ix_memo_begin(x);
	r = form_with(x, d, f, &w);
	ix_memo_end(x);
	return r;
}

const ix_form *ix_subst(ix *x, const ix_dom *d, const ix_form *f, int32_t n,
	const int64_t *old_extent, const ix_form *const *with)
{
	struct with w = {n, old_extent, with};
	const ix_form *r;

	if (f->n == 0)
		return f;
	if (n < 64 && ix_form_axes(f) >> n != 0)
		env_bug(arena_env(ix_arena(x)), "ix_subst",
			"the form uses axes beyond the %d given", n);
	ix_memo_begin(x);
	r = form_with(x, d, f, &w);
	ix_memo_end(x);
	return r;
}

/* ---- linear addresses ---- */

const ix_form *ix_linearise(ix *x, const ix_dom *d, int32_t rank,
	const int64_t *shape, const ix_form *const *at)
{
	int64_t stride = 1;
	sum s;

	sum_init(&s, x, 0);
	for (int32_t i = rank - 1; i >= 0; i--) {
		if (shape[i] == 0)
			return ix_const(x, 0);
		sum_form(&s, stride, at[i]);
		stride = ix_mul(x, stride, shape[i]);
	}
	return sum_done(&s, &d->box);
}

/*
 * Works from the innermost axis outwards. The outermost axis longer than 1
 * needs no mod, because f is in range.
 */
void ix_delinearise(ix *x, const ix_dom *d, const ix_form *f, int32_t rank,
	const int64_t *shape, const ix_form **out)
{
	const ix_form *q = f, *up;
	int64_t stride = 1;
	int32_t outer = rank;
	bool none = false;

	for (int32_t i = rank - 1; i >= 0; i--) {
		outer = shape[i] > 1 ? i : outer;
		none = none || shape[i] == 0;
	}
	for (int32_t i = rank - 1; i >= 0; i--) {
		sum s;

		if (none || shape[i] == 1 || i < outer) {
			out[i] = ix_const(x, 0);
			continue;
		}
		if (i == outer) {
			out[i] = q;
			continue;
		}
		stride = ix_mul(x, stride, shape[i]);
		up = ix_div(x, d, f, stride);
		sum_init(&s, x, 0);
		sum_form(&s, 1, q);
		sum_form(&s, ix_mul(x, -1, shape[i]), up);
		out[i] = sum_done(&s, &d->box);
		q = up;
	}
}
