/*
 * lower_left.c: solves left sides for their letters.
 *
 * Consumes an equation whose axes are its letters and whose left indices are
 * forms over them; produces pull form: one bare axis j for each index, and each
 * letter as a form of those (docs/notation.md, "Left sides"). Letters that are
 * not solved are reduced. With data on the left it produces push form.
 *
 *     o[2*d + k - 1] += x[d] * w[k]        d < 4, k < 3, o has 9 elements
 *     o[j] += x[(j - k + 1)/2] * w[k]      where (j - k + 1) % 2 == 0
 *                                          and 0 <= (j - k + 1)/2 < 4
 *
 * All forms are over one extended box: the letters, digits of letters that are
 * cut, then the new axes j. A solution is a form over that box.
 */
#include "system/lower.h"

#include <stdlib.h>

enum { MAX_EXT = IX_MAX_AXES };

struct solve {
	leq *c;
	ir_system *s;
	ix *x;
	ix_dom ext;
	int64_t extent[MAX_EXT];
	const char *name[MAX_EXT];
	const ix_form *sol[MAX_EXT]; /* NULL: not solved */
	bool is_free[MAX_EXT];	     /* is reduced */
	int32_t n_letters; /* letters and digits; then the j; then new letters */
	int32_t j_axis[TN_MAX_RANK]; /* -1: extent 1 */
	const expr *guard;
	bool is_compared; /* an index is not solved: it is compared with its j */
	/* sliding windows: A = c + k * v + ... was solved for v, so k * v + ... is
	 * j - c */
	int32_t n_windows;
	struct window {
		int32_t axis;
		int64_t k;
		const ix_form *a, *j;
	} window[TN_MAX_RANK];
};

bool left_is_plain(leq *c)
{
	int64_t stride = 1, numel = shape_numel(c->shape, c->rank);
	int32_t n_left = 0;
	bool seen[IR_MAX_AXES] = {false};

	if (c->pos == NULL || c->pos->c0 != 0)
		return false;
	for (int32_t i = 0; i < c->pos->n; i++) {
		const ix_atom *a = c->pos->t[i].atom;

		if (a->kind != IX_DIGIT || a->lo != 1 ||
			a->hi != c->extent[a->axis] || seen[a->axis])
			return false;
		seen[a->axis] = true;
		n_left++;
	}
	for (int32_t i = n_left - 1; i >= 0; i--) {
		bool found = false;

		for (int32_t k = 0; k < c->pos->n && !found; k++)
			found = c->pos->t[k].atom->axis == i &&
				c->pos->t[k].coef == stride;
		if (!found)
			return false;
		stride *= c->extent[i];
	}
	/* a letter that cancels out on the left (i - i) does not count */
	return stride == numel;
}

/* ---- the extended box ---- */

static int32_t add_axis(struct solve *v, const char *name, int64_t extent)
{
	if (v->ext.box.n >= MAX_EXT)
		lower_fail(v->c, "letters", "too many axes on the left side");
	v->name[v->ext.box.n] = name;
	v->extent[v->ext.box.n] = extent;
	return v->ext.box.n++;
}

static const ix_form *axis(struct solve *v, int32_t i)
{
	return ix_axis(v->x, &v->ext, i);
}

/* f with all solved letters replaced */
static const ix_form *solved(struct solve *v, const ix_form *f)
{
	const ix_form *with[MAX_EXT];

	for (int32_t i = 0; i < v->ext.box.n; i++)
		with[i] = v->sol[i] != NULL ? v->sol[i] : axis(v, i);
	return ix_subst(
		v->x, &v->ext, f, v->ext.box.n, v->extent, with);
}

static void set(struct solve *v, int32_t letter, const ix_form *f)
{
	v->sol[letter] = f;
	for (int32_t i = 0; i < v->ext.box.n; i++)
		if (i != letter && v->sol[i] != NULL)
			v->sol[i] = solved(v, v->sol[i]);
}

static void need(struct solve *v, const ix_form *f, int64_t lo, int64_t hi)
{
	v->guard = lower_and(v->c, v->guard,
		ir_inside_simple(v->s, &v->ext, f, lo, hi));
}

/* ---- letters that the left side cuts: x / r, x % r ---- */

static void collect_cuts(const ix_form *f, int32_t letter, int64_t extent,
	int64_t *cut, int32_t *n)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;

		if (a->kind != IX_DIGIT || a->axis != letter)
			continue;
		for (int side = 0; side < 2; side++) {
			int64_t at = side == 0 ? a->lo : a->hi;
			int32_t k = 0;

			if (at <= 1 || at >= extent || *n >= 8)
				continue;
			while (k < *n && cut[k] < at)
				k++;
			if (k < *n && cut[k] == at)
				continue;
			memmove(cut + k + 1, cut + k,
				(size_t)(*n - k) * sizeof *cut);
			cut[k] = at;
			++*n;
		}
	}
}

/* letter = sum of cut * digit, digits being new axes */
static void cut_letter(struct solve *v, int32_t letter)
{
	int64_t cut[10], extent = v->extent[letter], lo = 1;
	const ix_form *sum = ix_const(v->x, 0);
	int32_t n = 0;

	for (int32_t p = 0; p < v->c->rank; p++)
		collect_cuts(v->c->left[p], letter, extent, cut, &n);
	for (int32_t i = 1; i < n; i++)
		if (cut[i] % cut[i - 1] != 0)
			return;
	if (n == 0)
		return;
	for (int32_t i = 0; i <= n; i++) {
		int64_t hi = i < n ? cut[i] : extent;
		int32_t digit = add_axis(v, v->name[letter],
			hi / lo + (hi % lo != 0));

		sum = ix_add(v->x, &v->ext, sum,
			ix_scale(v->x, axis(v, digit), lo));
		lo = hi;
	}
	set(v, letter, sum);
	need(v, sum, 0, extent);
}

/* ---- positions ---- */

static bool is_letter(const struct solve *v, const ix_atom *a)
{
	return a->kind == IX_DIGIT && a->axis < v->n_letters && a->lo == 1 &&
		a->hi >= v->extent[a->axis] && v->sol[a->axis] == NULL &&
		!v->is_free[a->axis];
}

/* c, or sums of digits, each of which is less than the next coefficient */
static bool solve_digits(struct solve *v, int32_t p, const ix_form *a)
{
	const ix_form *j = axis(v, v->j_axis[p]);
	int64_t below = 1;
	bool done[MAX_EXT] = {false};

	if (a->c0 != 0 || a->n == 0 || a->n > MAX_EXT)
		return false;
	for (int32_t i = 0; i < a->n; i++)
		if (!is_letter(v, a->t[i].atom) || a->t[i].coef < 1)
			return false;
	/* the smallest first; they nest exactly, so that j determines them */
	for (int32_t round = 0; round < a->n; round++) {
		int32_t next = -1;

		for (int32_t i = 0; i < a->n; i++)
			if (!done[i] && a->t[i].coef == below)
				next = i;
		if (next < 0)
			return false;
		done[next] = true;
		below *= v->extent[a->t[next].atom->axis];
	}
	for (int32_t i = 0; i < a->n; i++) {
		int32_t letter = a->t[i].atom->axis;
		int64_t k = a->t[i].coef, e = v->extent[letter];
		const ix_form *f = ix_div(v->x, &v->ext, j, k);

		if (k * e < below)
			f = ix_mod(v->x, &v->ext, f, e);
		set(v, letter, f);
		if (a->n == 1) /* the index is this letter: take its name */
			v->name[v->j_axis[p]] = v->name[letter];
	}
	need(v, j, 0, below);
	return true;
}

/* Does a use the axis of term i in another atom, too? */
static bool is_entangled(const ix_form *a, int32_t i)
{
	for (int32_t k = 0; k < a->n; k++)
		if (k != i && a->t[k].atom->f != NULL &&
			ix_uses_axis(a->t[k].atom->f, a->t[i].atom->axis))
			return true;
	return false;
}

/* The letter to solve for: the one with the largest extent, then coefficient. */
static int32_t pick(const struct solve *v, const ix_form *a)
{
	int32_t best = -1;

	for (int32_t i = 0; i < a->n; i++) {
		int64_t e, b;

		if (!is_letter(v, a->t[i].atom) || is_entangled(a, i))
			continue;
		e = v->extent[a->t[i].atom->axis];
		b = best < 0 ? 0 : v->extent[a->t[best].atom->axis];
		if (e > b || (e == b && llabs(a->t[i].coef) >
						llabs(a->t[best].coef)))
			best = i;
	}
	return best;
}

static void free_letters(struct solve *v, const ix_form *f)
{
	for (int32_t i = 0; i < v->n_letters; i++)
		if (v->sol[i] == NULL && ix_uses_axis(f, i))
			v->is_free[i] = true;
}

/* The letter of a if that is the only axis that it uses; else -1. */
static int32_t only_letter(const struct solve *v, const ix_form *a)
{
	int32_t found = -1;

	if (ix_has_fun(a))
		return -1;
	for (int32_t i = 0; i < v->ext.box.n; i++) {
		if (!ix_uses_axis(a, i))
			continue;
		if (found >= 0 || i >= v->n_letters || v->is_free[i])
			return -1;
		found = i;
	}
	return found;
}

static int64_t value_at(const ix_form *a, int32_t letter, int64_t at)
{
	int64_t point[MAX_EXT] = {0};

	point[letter] = at;
	return ix_eval(a, point, NULL, NULL);
}

static bool same(struct solve *v, const ix_form *a, const ix_form *b)
{
	return ix_equal(v->x, &v->ext, a, b) == IX_EQUAL;
}

/* (v + c) % extent = j  ->  v := (j - c) % extent */
static bool solve_rotation(
	struct solve *v, int32_t letter, const ix_form *a, const ix_form *j)
{
	int64_t c = value_at(a, letter, 0), n = v->extent[letter];
	const ix_form *turned = ix_addc(v->x, axis(v, letter), c);

	if (!same(v, a, ix_mod(v->x, &v->ext, turned, n)))
		return false;
	need(v, j, 0, n);
	set(v, letter, ix_mod(v->x, &v->ext, ix_addc(v->x, j, -c), n));
	return true;
}

/*
 * (s*v + b) / m = j  ->  v := ceil((m*j - b) / s) + q, where q < ceil(m / s)
 * is a new letter that is reduced: resize.
 */
static bool solve_steps(
	struct solve *v, int32_t letter, const ix_form *a, const ix_form *j)
{
	int64_t m = 0, s, b, first = value_at(a, letter, 0);
	const ix_form *line, *f;

	for (int32_t i = 0; i < a->n; i++)
		if (a->t[i].atom->kind == IX_FLOOR && a->t[i].atom->den > m)
			m = a->t[i].atom->den;
	if (m < 2 || m > 64)
		return false;
	s = value_at(a, letter, m) - first;
	if (s < 1)
		return false;
	line = ix_scale(v->x, axis(v, letter), s);
	for (b = m * first; b < m * first + m; b++)
		if (same(v, a, ix_div(v->x, &v->ext,
				       ix_addc(v->x, line, b), m)))
			break;
	if (b == m * first + m)
		return false;
	f = ix_addc(v->x, ix_scale(v->x, j, m), s - 1 - b);
	f = ix_div(v->x, &v->ext, f, s);
	if (m > s) {
		int32_t q = add_axis(
			v, v->name[letter], m / s + (m % s != 0));

		v->is_free[q] = true;
		f = ix_add(v->x, &v->ext, f, axis(v, q));
	}
	need(v, f, 0, v->extent[letter]);
	set(v, letter, f);
	need(v, ix_sub(v->x, &v->ext, solved(v, a), j), 0, 1);
	return true;
}

/* x with m * x = 1 modulo s, or 0 */
static int64_t inverse_of(int64_t m, int64_t s)
{
	for (int64_t x = 1; x < s; x++)
		if (floor_mod(floor_mod(m, s) * x, s) == 1)
			return x;
	return 0;
}

/*
 * c + k*v + m*u = j, k > 1: j - c - m*u must be a multiple of k, which fixes the
 * residue of u. u := (j - c)/m mod k + k*q, where q is reduced instead of u.
 *
 *     2*v + u - 1 = j, u < 3    u := (j + 1) mod 2 + 2*q, q < 2
 */
static bool solve_residue(struct solve *v, const ix_form *rest, int32_t letter,
	int64_t k, const ix_form *a, const ix_form *j)
{
	int64_t m, inverse;
	const ix_form *from, *f;
	int32_t u, q;

	if (k < 2 || k > 16 || rest->n != 1 || !is_letter(v, rest->t[0].atom))
		return false;
	m = rest->t[0].coef;
	u = rest->t[0].atom->axis;
	inverse = inverse_of(m, k);
	if (inverse == 0 || u == letter)
		return false;
	q = add_axis(v, v->name[u], v->extent[u] / k + (v->extent[u] % k != 0));
	v->is_free[q] = true;
	from = ix_addc(v->x, j, -rest->c0);
	f = ix_mod(v->x, &v->ext, ix_scale(v->x, from, inverse), k);
	f = ix_add(v->x, &v->ext, f, ix_scale(v->x, axis(v, q), k));
	need(v, f, 0, v->extent[u]);
	set(v, u, f);
	f = ix_sub(v->x, &v->ext, from, ix_scale(v->x, f, m));
	f = ix_div(v->x, &v->ext, f, k);
	need(v, f, 0, v->extent[letter]);
	v->window[v->n_windows++] =
		(struct window){.axis = letter, .k = k, .a = a, .j = j};
	set(v, letter, f);
	return true;
}

/* c + k*v + rest = j  ->  v := (j - c - rest) / k */
static void solve_window(struct solve *v, const ix_form *a, const ix_form *j)
{
	int32_t best = pick(v, a), letter;
	const ix_form *rest, *num, *q;
	int64_t k;

	if (best < 0) {
		letter = only_letter(v, a);
		if (letter >= 0 && (solve_rotation(v, letter, a, j) ||
					   solve_steps(v, letter, a, j)))
			return;
		free_letters(v, a);
		need(v, ix_sub(v->x, &v->ext, a, j), 0, 1);
		v->is_compared = true;
		return;
	}
	k = a->t[best].coef;
	letter = a->t[best].atom->axis;
	rest = ix_sub(v->x, &v->ext, a,
		ix_scale(v->x, axis(v, letter), k));
	if (solve_residue(v, rest, letter, k, a, j))
		return;
	free_letters(v, rest);
	num = ix_sub(v->x, &v->ext, j, rest);
	if (k < 0)
		num = ix_scale(v->x, num, -1);
	if (llabs(k) > 1 && rest->n == 0) {
		int64_t r = floor_mod(rest->c0, llabs(k));

		need(v, ix_mod(v->x, &v->ext, j, llabs(k)), r, r + 1);
	} else if (llabs(k) > 1) {
		need(v, ix_mod(v->x, &v->ext, num, llabs(k)), 0, 1);
	}
	q = ix_div(v->x, &v->ext, num, llabs(k));
	need(v, q, 0, v->extent[letter]);
	v->window[v->n_windows++] =
		(struct window){.axis = letter, .k = k, .a = a, .j = j};
	set(v, letter, q);
}

static void solve_positions(struct solve *v)
{
	bool done[TN_MAX_RANK] = {false};

	for (int32_t p = 0; p < v->c->rank; p++)
		if (v->j_axis[p] >= 0)
			done[p] = solve_digits(
				v, p, solved(v, v->c->left[p]));
	for (int32_t p = 0; p < v->c->rank; p++) {
		const ix_form *a = solved(v, v->c->left[p]);

		if (!done[p])
			solve_window(v, a, v->j_axis[p] >= 0
					? axis(v, v->j_axis[p])
					: ix_const(v->x, 0));
	}
}

/*
 * Replaces a multiple of A in a form by a multiple of j, if that removes the
 * solved letter: else 2*((j + 1 - k)/2) + k - 1 would not be simplified to j.
 */
static const ix_form *windows_to_j(void *arg, const ix_form *f)
{
	struct solve *v = arg;

	for (int32_t w = 0; w < v->n_windows; w++) {
		const struct window *u = &v->window[w];
		int64_t coef = 0;
		const ix_form *r;

		for (int32_t i = 0; i < f->n; i++) {
			const ix_atom *a = f->t[i].atom;

			if (a->kind == IX_DIGIT && a->axis == u->axis &&
				a->lo == 1 && a->hi >= v->extent[u->axis])
				coef = f->t[i].coef;
		}
		if (coef == 0 || coef % u->k != 0)
			continue;
		r = ix_sub(v->x, &v->ext, f,
			ix_scale(v->x, u->a, coef / u->k));
		if (ix_uses_axis(r, u->axis))
			continue;
		f = ix_add(v->x, &v->ext, r,
			ix_scale(v->x, u->j, coef / u->k));
	}
	return f;
}

/* ---- putting it together ---- */

static void begin(struct solve *v, leq *c)
{
	v->c = c;
	v->s = c->w->s;
	v->x = c->w->x;
	v->guard = ex_const_i(v->s, TN_BOOL, 1);
	v->ext.box.extent = v->extent;
	for (int32_t i = 0; i < c->n_axes; i++)
		add_axis(v, c->axis[i].name, c->extent[i]);
	for (int32_t i = 0; i < c->n_axes; i++)
		cut_letter(v, i);
	v->n_letters = v->ext.box.n;
	for (int32_t p = 0; p < c->rank; p++)
		v->j_axis[p] = c->shape[p] > 1
			? add_axis(v, arena_printf(c->w->a, "j_%d", p),
				  c->shape[p])
			: -1;
}

/* Sets the axes of e: the j, then unsolved letters; maps extended -> new axes. */
static void new_axes(struct solve *v, sys_eqn *e, int32_t *to)
{
	e->n_axes = 0;
	for (int32_t i = 0; i < v->ext.box.n; i++)
		to[i] = -1;
	for (int32_t pass = 0; pass < 2; pass++) {
		for (int32_t i = 0; i < v->ext.box.n; i++) {
			bool reduced = i < v->n_letters || v->is_free[i];

			if (v->sol[i] != NULL || v->extent[i] == 1 ||
				reduced != (pass == 1))
				continue;
			if (e->n_axes >= IR_MAX_AXES)
				lower_fail(v->c, "letters",
					"more than %d axes", IR_MAX_AXES);
			to[i] = e->n_axes;
			e->axis[e->n_axes++] = (sys_axis){
				.extent = v->extent[i],
				.kind = pass == 0 ? AXIS_P : AXIS_R,
				.name = v->name[i]};
		}
		if (pass == 0)
			e->n_left = e->n_axes;
	}
}

static void check_set(struct solve *v, const sys_eqn *e)
{
	if (e->monoid != IR_SET || v->c->q->is_update)
		return;
	if (v->guard->kind != EX_CONST || v->guard->c.i == 0 ||
		e->n_axes > e->n_left)
		lower_fail(v->c, v->c->p->tensor[v->c->q->out[0]].name,
			"'=' does not make every element of %s exactly once",
			v->c->p->tensor[v->c->q->out[0]].name);
}

/* A write: an element that no letters reach is that of the version before. */
static const expr *or_as_before(struct solve *v, const expr *b)
{
	leq *c = v->c;
	const ix_form *at[TN_MAX_RANK];
	tn_dtype wide = ir_wide(b->dtype);
	const expr *old;

	for (int32_t p = 0; p < c->rank; p++)
		at[p] = v->j_axis[p] >= 0 ? axis(v, v->j_axis[p])
					  : ix_const(v->x, 0);
	old = ex_read(v->s, c->tensor[c->q->out[0]],
		ix_linearise(v->x, &v->ext, c->rank, c->shape, at));
	b = ex_select(v->s, v->guard, ex_cast(v->s, wide, b),
		ex_cast(v->s, wide, old));
	return ex_cast(v->s, c->want[0], b);
}

static const ix_form *plus_data(void *arg, const ix_form *f)
{
	const struct solve *v = arg;

	for (int32_t p = 0; p < v->c->rank; p++)
		if (v->j_axis[p] < 0 && ix_has_fun(v->c->left[p]))
			f = ix_add(v->x, &v->ext, f, v->c->left[p]);
	return f;
}

/*
 * Data that moves along an axis of one element is 0, and no j depends on it. The
 * reads have it, so that other data is found.
 */
static const expr *with_data(struct solve *v, const expr *b)
{
	for (int32_t p = 0; p < v->c->rank && !v->c->q->skip; p++)
		if (v->j_axis[p] < 0 && ix_has_fun(v->c->left[p]))
			return ex_map(v->s, b, plus_data, v, NULL);
	return b;
}

/*
 * Pull form compares each j with all letters of an index that is not solved, and
 * nearly all of these points are masked: the gradient of pad_reflect visits
 * 262 * 256 points for each of two axes, and has 262 letters. Push form visits
 * each letter once.
 */
static bool is_masked(const struct solve *v, const sys_eqn *e)
{
	double pull = 1, push = 1;

	for (int32_t i = 0; i < e->n_axes; i++)
		pull *= (double)e->axis[i].extent;
	for (int32_t i = 0; i < v->c->n_axes; i++)
		push *= (double)v->c->extent[i];
	return v->is_compared && pull > LEFT_MOST_MASKED * push;
}

/* NULL: push form is better. Sets the axes of e. */
static struct solve *solve_letters(leq *c, sys_eqn *e, int32_t *to)
{
	struct solve *v = arena_make(c->w->a, struct solve);

	for (int32_t p = 0; p < c->rank && !c->q->skip; p++)
		c->left[p] = lower_inside(c, &c->dom, c->left[p], c->shape[p],
			c->p->tensor[c->q->out[0]].name, p);
	begin(v, c);
	solve_positions(v);
	new_axes(v, e, to);
	return e->monoid != IR_SET && is_masked(v, e) ? NULL : v;
}

/* false: push form is better */
static bool solve_pull(leq *c, sys_eqn *e)
{
	const ix_form *with[MAX_EXT], *bare[MAX_EXT];
	int32_t to[MAX_EXT];
	struct solve *v = solve_letters(c, e, to);
	ix_dom d = {0};

	if (v == NULL)
		return false;
	check_set(v, e);
	d.box = ir_eqn_box(v->s, e);
	for (int32_t i = 0; i < v->ext.box.n; i++)
		bare[i] = to[i] >= 0 ? ix_axis(v->x, &d, to[i])
				     : ix_const(v->x, 0);
	for (int32_t i = 0; i < v->ext.box.n; i++)
		with[i] = v->sol[i] == NULL
			? bare[i]
			: ix_subst(v->x, &d, v->sol[i], v->ext.box.n,
				  v->extent, bare);
	for (int32_t k = 0; k < e->n_out; k++) {
		const expr *b = e->body[k];

		if (v->n_windows > 0)
			b = ex_map(v->s, b, windows_to_j, v, NULL);
		if (c->q->is_update)
			b = with_data(v, b);
		if (e->monoid != IR_SET)
			b = ex_select(v->s, v->guard, b,
				ir_identity(v->s, e->monoid, k, c->want[k]));
		else if (c->q->is_update && e->n_axes == e->n_left)
			b = or_as_before(v, b);
		e->body[k] = ex_subst(v->s, &d, b, v->ext.box.n, v->extent,
			with, NULL, NULL);
	}
	return true;
}

/* Is some index exactly axis i? */
static bool is_bare_axis(const leq *c, int32_t i)
{
	for (int32_t p = 0; p < c->rank; p++) {
		const ix_form *f = c->left[p];

		if (f->n == 1 && f->c0 == 0 && f->t[0].coef == 1 &&
			f->t[0].atom->kind == IX_DIGIT &&
			f->t[0].atom->axis == i && f->t[0].atom->lo == 1 &&
			f->t[0].atom->hi == c->extent[i])
			return true;
	}
	return false;
}

static void solve_push(leq *c, sys_eqn *e)
{
	ir_system *s = c->w->s;
	const expr *guard = ex_const_i(s, TN_BOOL, 1);
	const ix_form *at[TN_MAX_RANK], *with[IR_MAX_AXES];
	const char *name = c->p->tensor[c->q->out[0]].name;
	ix_dom d = {0};

	if (e->monoid == IR_SET)
		lower_fail(c, name,
			"the left side of '=' has data in an index: use += or "
			"another monoid, which says how equal indices combine");
	for (int32_t p = 0; p < c->rank; p++) {
		const ix_form *f = c->left[p];

		if (c->q->skip && !lower_is_inside(c, &c->dom, f, c->shape[p])) {
			guard = lower_and(c, guard,
				ir_inside_simple(s, &c->dom, f, 0,
					c->shape[p]));
			at[p] = ix_clamp(
				s->x, &c->dom, f, 0, c->shape[p] - 1);
		} else {
			at[p] = lower_inside(
				c, &c->dom, f, c->shape[p], name, p);
		}
	}
	e->push = ix_linearise(s->x, &c->dom, c->rank, c->shape, at);
	e->n_axes = 0;
	for (int32_t pass = 0; pass < 2; pass++) {
		for (int32_t i = 0; i < c->n_axes; i++) {
			if (is_bare_axis(c, i) != (pass == 0))
				continue;
			e->axis[e->n_axes] = c->axis[i];
			e->axis[e->n_axes++].kind = pass == 0 ? AXIS_P : AXIS_R;
		}
		if (pass == 0)
			e->n_left = e->n_axes;
	}
	d.box = ir_eqn_box(s, e);
	for (int32_t i = 0, left = 0, other = e->n_left; i < c->n_axes; i++)
		with[i] = ix_axis(s->x, &d,
			is_bare_axis(c, i) ? left++ : other++);
	e->push = ix_subst(s->x, &d, e->push, c->n_axes, c->extent, with);
	for (int32_t k = 0; k < e->n_out; k++)
		e->body[k] = ex_subst(s, &d,
			ex_select(s, guard, e->body[k],
				ir_identity(s, e->monoid, k, c->want[k])),
			c->n_axes, c->extent, with, NULL, NULL);
}

void left_solve(leq *c, sys_eqn *e)
{
	bool has_data = false;

	for (int32_t p = 0; p < c->rank; p++)
		has_data |= ix_has_fun(c->left[p]);
	/* a write is injective: data can only shift it */
	if ((has_data && e->monoid != IR_SET) || !solve_pull(c, e))
		solve_push(c, e);
}
