/*
 * reason_set.c: sets of equations, and whether a loop goes through all of one.
 *
 * Iterations are drawn; each read names an element, and an element the
 * iterations that make it. A loop that the set shares would be one digit for
 * each equation, equal at both ends of every such pair: all digits are tried.
 */
#include "reason_local.h"

_Noreturn void reason_wrong(checker *w, const char *what)
{
	env_fail(w->env, TN_EINVAL, "prop.reason", (loc){0}, "%s: (%s) %s",
		what, fuse_why_name(w->why->why), w->why->text);
}

/* ---- what an iteration touches ---- */

static const ix_atom *find_fun(const ix_form *f, int64_t fun)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom, *in;

		if (t->kind == IX_DIGIT)
			continue;
		if (t->kind == IX_FUN && t->fun == fun)
			return t;
		in = find_fun(t->f, fun);
		if (in != NULL)
			return in;
	}
	return NULL;
}

/* data: any value that it may have */
static int64_t draw(void *arg, int64_t fun, int64_t at)
{
	checker *w = arg;
	const ix_atom *t = find_fun(w->form, fun);
	uint64_t n = (uint64_t)(t->hi - t->lo);

	*vec_push(w->a, &w->seen) = (touch){(int32_t)fun, at};
	return t->lo + (int64_t)(prop_next(w->r) % n);
}

int64_t reason_value(checker *w, const ix_form *f, const int64_t *point)
{
	w->form = f;
	return ix_eval(f, point, draw, w);
}

/* 1, 0; -1: data says */
static int holds(checker *w, const expr *e, const int64_t *point)
{
	const char *name = e->kind == EX_CALL ? ir_scalar_at(e->fn)->name : "";
	int a, b;

	if (e->kind == EX_CONST)
		return e->c.i != 0;
	if (e->kind == EX_INSIDE && !ix_has_fun(e->form)) {
		int64_t v = reason_value(w, e->form, point);

		return v >= e->lo && v < e->hi;
	}
	if (strcmp(name, "not") == 0) {
		a = holds(w, e->arg[0], point);
		return a < 0 ? -1 : !a;
	}
	if (strcmp(name, "and") != 0 && strcmp(name, "or") != 0)
		return -1;
	a = holds(w, e->arg[0], point);
	b = holds(w, e->arg[1], point);
	if (strcmp(name, "and") == 0)
		return a == 0 || b == 0 ? 0 : a < 0 || b < 0 ? -1 : 1;
	return a == 1 || b == 1 ? 1 : a < 0 || b < 0 ? -1 : 0;
}

static void look(checker *w, const expr *e, const int64_t *point)
{
	int first = 0, last = e->n_args - 1;

	if (e->kind == EX_READ) {
		int64_t at = reason_value(w, e->form, point);

		*vec_push(w->a, &w->seen) = (touch){e->tensor, at};
	} else if (e->form != NULL) {
		(void)reason_value(w, e->form, point);
	}
	if (e->kind == EX_SELECT) {
		int yes = holds(w, e->arg[0], point);

		look(w, e->arg[0], point);
		first = yes == 0 ? 2 : 1;
		last = yes == 1 ? 1 : 2;
	}
	for (int i = first; i <= last; i++)
		look(w, e->arg[i], point);
}

static void look_all(checker *w, const eqn_unit *u, const int64_t *point)
{
	int64_t flat[1];

	w->seen.n = 0;
	if (u->e.push != NULL)
		flat[0] = reason_value(w, u->e.push, point);
	for (int32_t k = 0; k < u->e.n_out; k++) {
		if (u->e.body[k] != NULL)
			look(w, u->e.body[k], point);
		if (u->e.init[k] != NULL)
			look(w, u->e.init[k], u->e.push != NULL ? flat : point);
	}
}

/* ---- iterations ---- */

int64_t reason_below(checker *w, int64_t n)
{
	return (int64_t)(prop_next(w->r) % (uint64_t)n);
}

/* corners first, then any */
int64_t *reason_point(checker *w, const eqn_unit *u, int32_t i)
{
	int64_t *at = arena_array(w->a, int64_t, u->e.n_axes + 1);

	for (int32_t k = 0; k < u->e.n_axes; k++) {
		int64_t n = u->box.extent[k];

		at[k] = i == 0 ? 0 : i == 1 ? n - 1 : reason_below(w, n);
		if (i > 1 && prop_chance(w->r, 20))
			at[k] = prop_chance(w->r, 50) ? 0 : n - 1;
	}
	return at;
}

/* An iteration of u that makes the element; false: none was found. */
static bool draw_maker(
	checker *w, const eqn_unit *u, int64_t element, int64_t *x)
{
	int64_t n = 0, from;

	for (int32_t k = 0; k < u->e.n_axes; k++)
		x[k] = reason_below(w, u->box.extent[k]);
	if (u->e.push == NULL) {
		for (int32_t k = u->e.n_left - 1; k >= 0; k--) {
			x[k] = element % u->box.extent[k];
			element /= u->box.extent[k];
		}
		return true;
	}
	if (u->volume > SMALL)
		return false;
	from = reason_below(w, u->volume);
	for (n = 0; n < u->volume; n++) {
		int64_t rest = (from + n) % u->volume;

		for (int32_t k = u->e.n_axes - 1; k >= 0; k--) {
			x[k] = rest % u->box.extent[k];
			rest /= u->box.extent[k];
		}
		if (reason_value(w, u->e.push, x) == element)
			return true;
	}
	return false;
}

bool reason_makes(const eqn_unit *u, int32_t tensor)
{
	for (int32_t k = 0; k < u->e.n_out; k++)
		if (u->e.out[k] == tensor)
			return true;
	return false;
}

/* Does p overwrite what c reads of the tensor? */
bool reason_destroys(
	const checker *w, const eqn_unit *p, const eqn_unit *c, int32_t tensor)
{
	for (int32_t i = 0; i < w->p->wait.n; i++) {
		const settle_wait *q = &w->p->wait.at[i];

		if (q->writer == p->source && q->reader == c->source &&
			q->tensor == tensor)
			return true;
	}
	return false;
}

void reason_add_pair(checker *w, link *l, int64_t element, int64_t *y)
{
	const eqn_unit *p = w->set[l->p];

	if (element < 0 || element >= p->out_elems)
		return;
	for (int32_t k = 0; k < MAKERS; k++) {
		int64_t *x = arena_array(w->a, int64_t, p->e.n_axes + 1);

		if (draw_maker(w, p, element, x))
			*vec_push(w->a, &l->pair) = (pair){x, y};
	}
}

static void draw_pairs(checker *w, link *l)
{
	const eqn_unit *p = w->set[l->p], *c = w->set[l->c];

	for (int32_t i = 0; i < POINTS; i++) {
		int64_t *y = reason_point(w, c, i);
		int32_t n;

		look_all(w, c, y);
		n = w->seen.n;
		for (int32_t k = 0; k < n; k++) {
			touch t = w->seen.at[k];

			if (l->is_write ? reason_destroys(w, p, c, t.tensor)
					: reason_makes(p, t.tensor))
				reason_add_pair(w, l, t.at, y);
		}
	}
}

/* ---- digits ---- */

int64_t reason_digit(const eqn_digit *d, const int64_t *point)
{
	return point[d->axis] / d->lo % (d->hi / d->lo);
}

static void list_digits(checker *w, const eqn_unit *u, digits *out)
{
	for (int32_t k = 0; k < u->e.n_axes; k++) {
		int64_t n = u->box.extent[k];
		VEC(int64_t) cut = {0};

		if (u->e.axis[k].kind == AXIS_S) {
			*vec_push(w->a, &out->at) =
				(eqn_digit){.axis = k, .lo = 1, .hi = n};
			continue;
		}
		for (int64_t q = 1; q <= n / q; q++) {
			if (n % q != 0)
				continue;
			*vec_push(w->a, &cut) = q;
			if (q != n / q)
				*vec_push(w->a, &cut) = n / q;
		}
		for (int32_t i = 0; i < cut.n; i++)
			for (int32_t j = 0; j < cut.n; j++)
				if (cut.at[j] > cut.at[i] &&
					cut.at[j] % cut.at[i] == 0)
					*vec_push(w->a, &out->at) = (eqn_digit){
						.axis = k,
						.lo = cut.at[i],
						.hi = cut.at[j]};
	}
	if (out->at.n > MAX_DIGITS)
		reason_wrong(w, "too many digits");
}

bool reason_is_reduced(const eqn_unit *u, const eqn_digit *d)
{
	return d->axis >= u->e.n_left || u->stride[d->axis] == 0;
}

/* May the equation stand in a loop over its digit at all? */
static bool is_open(const checker *w, const eqn_unit *u, const eqn_digit *d)
{
	/* so small a part of an axis may agree by chance: 1 + i, halved, is i */
	if (d->hi / d->lo <= CHANCE &&
		(d->lo > 1 || d->hi < u->box.extent[d->axis]))
		return false;
	if (!reason_is_reduced(u, d))
		return true;
	return u->e.push == NULL && !(w->policy && u->contraction);
}

bool reason_agree(const link *l, const eqn_digit *d, const eqn_digit *e)
{
	for (int32_t i = 0; i < l->pair.n; i++)
		if (reason_digit(d, l->pair.at[i].x) !=
			reason_digit(e, l->pair.at[i].y))
			return false;
	return true;
}

static void find_agreeing(checker *w, link *l)
{
	const digits *p = &w->all[l->p], *c = &w->all[l->c];

	l->of = arena_alloc(w->a, (size_t)p->at.n + 1, sizeof *l->of);
	for (int32_t i = 0; i < p->at.n; i++) {
		const eqn_digit *d = &p->at.at[i];
		bool scan = l->p == l->c && !l->is_write &&
			    w->set[l->p]->e.axis[d->axis].kind == AXIS_S;

		for (int32_t j = 0; j < c->at.n; j++) {
			const eqn_digit *e = &c->at.at[j];

			if (scan ? i == j
				 : d->hi / d->lo == e->hi / e->lo &&
					   (l->p != l->c || i == j) &&
					   reason_agree(l, d, e))
				*vec_push(w->a, &l->of[i]) = j;
		}
	}
}

static bool in_list(const link *l, int32_t i, int32_t j)
{
	for (int32_t k = 0; k < l->of[i].n; k++)
		if (l->of[i].at[k] == j)
			return true;
	return false;
}

/* ---- sets ---- */

static bool reads_any(
	const checker *w, const eqn_unit *p, const eqn_unit *c, bool is_write)
{
	for (int32_t i = 0; i < c->n_reads; i++)
		if (is_write ? reason_destroys(w, p, c, c->read[i].tensor)
			     : reason_makes(p, c->read[i].tensor))
			return true;
	return false;
}

void reason_open(checker *w, int32_t n, const int32_t *source)
{
	w->n = n;
	w->set = arena_array(w->a, eqn_unit *, n + 1);
	w->all = arena_array(w->a, digits, n + 1);
	w->chosen = arena_array(w->a, int32_t, n + 1);
	w->link.n = 0;
	for (int32_t i = 0; i < n; i++) {
		w->set[i] = w->unit[source[i]];
		list_digits(w, w->set[i], &w->all[i]);
	}
	for (int32_t i = 0; i < n; i++)
		for (int32_t k = 0; k < n; k++)
			for (int32_t write = 0; write < 2; write++) {
				link *l;

				if (!reads_any(w, w->set[i], w->set[k],
					    write != 0) ||
					(write != 0 && i == k))
					continue;
				l = vec_push(w->a, &w->link);
				*l = (link){.p = i, .c = k, .is_write = write != 0};
				draw_pairs(w, l);
				find_agreeing(w, l);
			}
}

/* Do the chosen digits of members 0 .. n - 1 agree on all that ties them? */
static bool fits(const checker *w, int32_t n)
{
	int32_t step = 0;

	for (int32_t i = 0; i < w->link.n; i++) {
		const link *l = &w->link.at[i];

		if (l->p < n && l->c < n &&
			(l->p == n - 1 || l->c == n - 1) &&
			!in_list(l, w->chosen[l->p], w->chosen[l->c]))
			return false;
	}
	for (int32_t i = 0; i < n; i++) {
		const eqn_unit *u = w->set[i];
		const eqn_digit *d = &w->all[i].at.at[w->chosen[i]];

		if (u->e.axis[d->axis].kind != AXIS_S)
			continue;
		if (step != 0 && step != u->e.scan_step)
			return false;
		step = u->e.scan_step;
	}
	return true;
}

/* Is there a loop through all of the set? */
bool reason_has_loop(checker *w, int32_t n)
{
	if (n == w->n)
		return true;
	for (int32_t i = 0; i < w->all[n].at.n; i++) {
		w->chosen[n] = i;
		if (is_open(w, w->set[n], &w->all[n].at.at[i]) &&
			fits(w, n + 1) && reason_has_loop(w, n + 1))
			return true;
	}
	return false;
}

/* Are all of the set tied? */
bool reason_is_tied(const checker *w)
{
	bool *met = arena_array(w->a, bool, w->n + 1), changed = true;
	int32_t n = 0;

	met[0] = true;
	while (changed) {
		changed = false;
		for (int32_t i = 0; i < w->link.n; i++) {
			const link *l = &w->link.at[i];

			changed |= met[l->p] != met[l->c];
			if (met[l->p] || met[l->c])
				met[l->p] = met[l->c] = true;
		}
	}
	for (int32_t i = 0; i < w->n; i++)
		n += met[i];
	return n == w->n;
}
