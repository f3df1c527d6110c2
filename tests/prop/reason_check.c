/*
 * reason_check.c: every reason of a plan proved from the equations alone.
 *
 * Nothing here asks how the reason was found. Iterations of the equations are
 * drawn; each read names an element, and an element the iterations that make
 * it. A loop that a set shares would be one digit for each equation, equal at
 * both ends of every such pair: all digits are tried.
 *
 *     {s, o}: s[i] += x[i,k]; o[i,j] = y[i,j] / s[j]: o at (0, 1) reads s[1],
 *     made by (1, k) for all k: neither i of o nor k of s goes through
 */
#include "reason_check.h"

#include <stdio.h>

enum {
	POINTS = 150,	  /* iterations drawn for an edge */
	MAKERS = 3,	  /* iterations that make an element, of those */
	CHANCE = 3,	  /* iterations of a part of an axis */
	SMALL = 5000,	  /* boxes that are walked to find who makes one */
	MAX_DIGITS = 4000 /* of one equation */
};

typedef struct touch {
	int32_t tensor;
	int64_t at;
} touch;

typedef struct digits {
	VEC(eqn_digit) at;
} digits;

/* c at y reads, or p at x makes or overwrites it. */
typedef struct pair {
	int64_t *x, *y;
} pair;

typedef struct link {
	int32_t p, c; /* members */
	bool is_write;
	VEC(pair) pair;
	VEC(int32_t) * of; /* by digit of p: those of c that agree */
} link;

typedef struct checker {
	arena *a;
	env *env;
	fuse_plan *p;
	prop_random *r;
	const fuse_reason *why;
	eqn_graph *g;
	const fuse_kernel **kernel; /* by source */
	eqn_unit **unit;	    /* by source */
	int32_t n_sources;
	const ix_form *form; /* under evaluation */
	VEC(touch) seen;
	/* a set */
	int32_t n;
	eqn_unit **set;
	digits *all;
	VEC(link) link;
	int32_t *chosen;
	bool policy; /* contractions may not be cut where they reduce */
} checker;

static _Noreturn void wrong(checker *w, const char *what)
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

static int64_t value(checker *w, const ix_form *f, const int64_t *point)
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
		int64_t v = value(w, e->form, point);

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
		int64_t at = value(w, e->form, point);

		*vec_push(w->a, &w->seen) = (touch){e->tensor, at};
	} else if (e->form != NULL) {
		(void)value(w, e->form, point);
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
		flat[0] = value(w, u->e.push, point);
	for (int32_t k = 0; k < u->e.n_out; k++) {
		if (u->e.body[k] != NULL)
			look(w, u->e.body[k], point);
		if (u->e.init[k] != NULL)
			look(w, u->e.init[k], u->e.push != NULL ? flat : point);
	}
}

/* ---- iterations ---- */

static int64_t below(checker *w, int64_t n)
{
	return (int64_t)(prop_next(w->r) % (uint64_t)n);
}

/* corners first, then any */
static int64_t *draw_point(checker *w, const eqn_unit *u, int32_t i)
{
	int64_t *at = arena_array(w->a, int64_t, u->e.n_axes + 1);

	for (int32_t k = 0; k < u->e.n_axes; k++) {
		int64_t n = u->box.extent[k];

		at[k] = i == 0 ? 0 : i == 1 ? n - 1 : below(w, n);
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
		x[k] = below(w, u->box.extent[k]);
	if (u->e.push == NULL) {
		for (int32_t k = u->e.n_left - 1; k >= 0; k--) {
			x[k] = element % u->box.extent[k];
			element /= u->box.extent[k];
		}
		return true;
	}
	if (u->volume > SMALL)
		return false;
	from = below(w, u->volume);
	for (n = 0; n < u->volume; n++) {
		int64_t rest = (from + n) % u->volume;

		for (int32_t k = u->e.n_axes - 1; k >= 0; k--) {
			x[k] = rest % u->box.extent[k];
			rest /= u->box.extent[k];
		}
		if (value(w, u->e.push, x) == element)
			return true;
	}
	return false;
}

static bool makes(const eqn_unit *u, int32_t tensor)
{
	for (int32_t k = 0; k < u->e.n_out; k++)
		if (u->e.out[k] == tensor)
			return true;
	return false;
}

/* Does p overwrite what c reads of the tensor? */
static bool destroys(
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

static void add_pair(checker *w, link *l, int64_t element, int64_t *y)
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
		int64_t *y = draw_point(w, c, i);
		int32_t n;

		look_all(w, c, y);
		n = w->seen.n;
		for (int32_t k = 0; k < n; k++) {
			touch t = w->seen.at[k];

			if (l->is_write ? destroys(w, p, c, t.tensor)
					: makes(p, t.tensor))
				add_pair(w, l, t.at, y);
		}
	}
}

/* ---- digits ---- */

static int64_t digit_of(const eqn_digit *d, const int64_t *point)
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
		wrong(w, "too many digits");
}

static bool is_reduced(const eqn_unit *u, const eqn_digit *d)
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
	if (!is_reduced(u, d))
		return true;
	return u->e.push == NULL && !(w->policy && u->contraction);
}

static bool agree(const link *l, const eqn_digit *d, const eqn_digit *e)
{
	for (int32_t i = 0; i < l->pair.n; i++)
		if (digit_of(d, l->pair.at[i].x) !=
			digit_of(e, l->pair.at[i].y))
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
					   agree(l, d, e))
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
		if (is_write ? destroys(w, p, c, c->read[i].tensor)
			     : makes(p, c->read[i].tensor))
			return true;
	return false;
}

static void open_set(checker *w, int32_t n, const int32_t *source)
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
static bool has_loop(checker *w, int32_t n)
{
	if (n == w->n)
		return true;
	for (int32_t i = 0; i < w->all[n].at.n; i++) {
		w->chosen[n] = i;
		if (is_open(w, w->set[n], &w->all[n].at.at[i]) &&
			fits(w, n + 1) && has_loop(w, n + 1))
			return true;
	}
	return false;
}

/* Are all of the set tied? */
static bool is_tied(const checker *w)
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

/* ---- ends ---- */

static int32_t member(const checker *w, int32_t source)
{
	for (int32_t i = 0; i < w->n; i++)
		if (w->set[i]->source == source)
			return i;
	return -1;
}

static const eqn_read *read_of(const checker *w, const fuse_place *q)
{
	const eqn_unit *c = w->unit[q->reader];

	for (int32_t i = 0; i < c->n_reads; i++)
		if (c->read[i].tensor == q->tensor &&
			c->read[i].at == q->at &&
			c->read[i].in_init == q->in_init)
			return &c->read[i];
	return NULL;
}

/* The element that the read names at y; false: guards forbid it there. */
static bool element_at(checker *w, const eqn_read *r, const eqn_unit *c,
	const int64_t *y, int64_t *out)
{
	int64_t flat[1];

	if (r->in_init && c->e.push != NULL) {
		flat[0] = value(w, c->e.push, y);
		y = flat;
	}
	for (int32_t i = 0; i < r->dom.n_facts; i++) {
		const ix_fact *f = &r->dom.facts[i];
		int64_t v = value(w, f->f, y);

		if (v < f->lo || v >= f->hi)
			return false;
	}
	*out = value(w, r->at, y);
	return true;
}

/* One read alone: its pairs. */
static link alone(checker *w, const fuse_place *q)
{
	const eqn_unit *c = w->unit[q->reader];
	const eqn_read *r = read_of(w, q);
	link l = {.p = member(w, q->writer),
		.c = member(w, q->reader),
		.is_write = q->is_write};

	if (r == NULL || l.p < 0 || l.c < 0)
		wrong(w, "no such read");
	for (int32_t i = 0; i < 4 * POINTS; i++) {
		int64_t *y = draw_point(w, c, i), e;

		if (element_at(w, r, c, y, &e))
			add_pair(w, &l, e, y);
	}
	return l;
}

static bool sums(const eqn_unit *u)
{
	return u->e.push != NULL || u->has_scan || u->e.n_axes > u->e.n_left;
}

/* The read does not see the digit of the reader, or sees one of the writer. */
static bool is_fixed(checker *w, const fuse_end *e, const link *l)
{
	const eqn_unit *c = w->set[l->c];
	const eqn_read *r = read_of(w, &e->read);
	eqn_digit d = {.axis = e->axis, .lo = e->lo, .hi = e->hi};

	if (e->eqn == w->set[l->p]->source) {
		for (int32_t i = 1; i < l->pair.n; i++)
			if (digit_of(&d, l->pair.at[i].x) !=
				digit_of(&d, l->pair.at[0].x))
				return is_reduced(w->set[l->p], &d);
		return true;
	}
	if (r->in_init && c->e.push != NULL)
		return is_reduced(c, &d);
	for (int32_t i = 0; i < POINTS && !ix_has_fun(r->at); i++) {
		int64_t *y = draw_point(w, c, i), a, b;
		int64_t n = e->hi / e->lo, old = digit_of(&d, y);

		if (!element_at(w, r, c, y, &a))
			continue;
		y[e->axis] += (below(w, n) - old) * e->lo;
		if (element_at(w, r, c, y, &b) && a != b)
			return false;
	}
	return true;
}

/* Is digit d here, times sign, a digit there and a constant? */
static bool is_off(checker *w, const fuse_end *e, const link *l, int sign)
{
	bool writer = e->eqn == w->set[l->p]->source;
	const digits *other = &w->all[writer ? l->c : l->p];
	eqn_digit d = {.axis = e->axis, .lo = e->lo, .hi = e->hi};

	for (int32_t k = 0; k < other->at.n; k++) {
		const eqn_digit *o = &other->at.at[k];
		int64_t by = 0;
		bool same = true;

		for (int32_t i = 0; i < l->pair.n && same; i++) {
			const pair *q = &l->pair.at[i];
			int64_t v = digit_of(&d, writer ? q->x : q->y);
			int64_t u = digit_of(o, writer ? q->y : q->x);

			same = i == 0 || v - sign * u == by;
			by = v - sign * u;
		}
		if (same && (sign < 0 || by != 0 ||
				    o->hi / o->lo != d.hi / d.lo))
			return true;
	}
	return false;
}

static bool has_partner(checker *w, const fuse_end *e, const link *l)
{
	bool writer = e->eqn == w->set[l->p]->source;
	const digits *other = &w->all[writer ? l->c : l->p];
	eqn_digit d = {.axis = e->axis, .lo = e->lo, .hi = e->hi};

	for (int32_t k = 0; k < other->at.n; k++) {
		const eqn_digit *o = &other->at.at[k];

		if (o->hi / o->lo == d.hi / d.lo && d.hi / d.lo > CHANCE &&
			agree(l, writer ? &d : o, writer ? o : &d))
			return true;
	}
	return false;
}

/* Does u need what from makes, through others? */
static bool comes_of(
	const checker *w, int32_t u, int32_t from, int32_t depth)
{
	if (u == from)
		return true;
	for (int32_t i = 0; depth < 64 && i < w->unit[u]->n_reads; i++) {
		int32_t m = w->p->s->tensor.at[w->unit[u]->read[i].tensor].eqn;

		if (m >= 0 && m != u && w->unit[m] != NULL &&
			comes_of(w, m, from, depth + 1))
			return true;
	}
	return false;
}

static void check_own(checker *w, const fuse_end *e)
{
	const eqn_unit *u = w->unit[e->eqn];
	eqn_digit d = {.axis = e->axis, .lo = e->lo, .hi = e->hi};

	if (e->why == FUSE_WHY_POLICY &&
		!(u->contraction && is_reduced(u, &d)))
		wrong(w, "no contraction along this");
	if (e->why == FUSE_WHY_COMPLETION && u->e.push == NULL)
		wrong(w, "no scatter");
	if (e->why == FUSE_WHY_REVERSED && !u->has_scan)
		wrong(w, "no scan");
}

static void check_end(checker *w, const fuse_end *e)
{
	const eqn_unit *p;
	link l;

	if (e->read.reader < 0)
		wrong(w, "no witness");
	if (e->read.reader == e->read.writer && e->read.at == NULL) {
		check_own(w, e);
		return;
	}
	p = w->unit[e->read.writer];
	l = alone(w, &e->read);
	if (e->read.is_write
			? !destroys(w, p, w->unit[e->read.reader], e->read.tensor)
			: !makes(p, e->read.tensor))
		wrong(w, "another makes it");
	switch (e->why) {
	case FUSE_WHY_COMPLETION:
		if (e->other.reader >= 0) {
			p = w->unit[e->other.writer];
			if (!makes(p, e->other.tensor) ||
				!comes_of(w, e->read.writer, e->other.writer, 0))
				wrong(w, "it comes of something else");
		}
		if (!sums(p) || (!is_fixed(w, e, &l) &&
					(p->e.push == NULL ||
						has_partner(w, e, &l))))
			wrong(w, "complete before");
		break;
	case FUSE_WHY_FREE:
		if (!is_fixed(w, e, &l))
			wrong(w, "not the same everywhere");
		break;
	case FUSE_WHY_SHIFT:
		if (!e->read.in_init && !is_off(w, e, &l, 1))
			wrong(w, "no shift");
		break;
	case FUSE_WHY_REVERSED:
		if (!e->read.in_init && !is_off(w, e, &l, -1))
			wrong(w, "not backwards");
		break;
	case FUSE_WHY_OVERWRITE: /* the whole set was asked */
		break;
	case FUSE_WHY_MISALIGNED:
		if (e->is_cut || e->is_unproved)
			break;
		if (l.pair.n > 0 && has_partner(w, e, &l))
			wrong(w, "it has a loop there");
		break;
	case FUSE_WHY_OPAQUE:
		if (!ix_has_fun(e->read.at))
			wrong(w, "known when compiled");
		break;
	case FUSE_WHY_SEVERAL:
		if (e->other.reader < 0 ||
			(e->other.at == e->read.at &&
				e->other.writer == e->read.writer &&
				e->other.reader == e->read.reader) ||
			read_of(w, &e->other) == NULL)
			wrong(w, "one read");
		break;
	case FUSE_WHY_CYCLE:
	case FUSE_WHY_COST:
	case FUSE_WHY_POLICY:
	case FUSE_WHY_APART:
		wrong(w, "no such end");
	}
}

static void check_set(checker *w, reason_count *n)
{
	const fuse_reason *r = w->why;
	bool policy = false, unproved = false;

	for (int32_t i = 0; i < r->n_ends; i++)
		unproved |= r->end[i].is_unproved;
	open_set(w, r->n_set, r->set);
	if (!is_tied(w))
		wrong(w, "the set is in parts");
	for (int32_t i = 0; i < r->n_set; i++)
		if (w->kernel[r->set[i]] != w->kernel[r->producer] &&
			w->kernel[r->set[i]] != w->kernel[r->consumer])
			wrong(w, "not in these kernels");
	w->policy = true;
	if (!unproved && has_loop(w, 0))
		wrong(w, "there is a loop through all");
	for (int32_t i = 0; i < r->n_ends; i++) {
		policy |= r->end[i].why == FUSE_WHY_POLICY;
		check_end(w, &r->end[i]);
	}
	w->policy = false;
	if (!policy && !unproved && has_loop(w, 0))
		wrong(w, "a contraction stands in the way");
	n->sets += !unproved;
	n->unproved += unproved;
}

/* ---- the others ---- */

static bool depends(const checker *w, int32_t u, int32_t on)
{
	for (int32_t i = 0; i < w->unit[u]->n_reads; i++)
		if (makes(w->unit[on], w->unit[u]->read[i].tensor))
			return true;
	for (int32_t i = 0; i < w->p->wait.n; i++)
		if (w->p->wait.at[i].writer == u &&
			w->p->wait.at[i].reader == on)
			return true;
	return false;
}

static bool is_of_both(const checker *w, int32_t u)
{
	return w->kernel[u] == w->kernel[w->why->producer] ||
	       w->kernel[u] == w->kernel[w->why->consumer];
}

static void check_cycle(checker *w)
{
	const fuse_reason *r = w->why;

	if (r->n_path < 4 || !is_of_both(w, r->path[0]) ||
		!is_of_both(w, r->path[r->n_path - 1]))
		wrong(w, "no path");
	for (int32_t i = 0; i + 1 < r->n_path; i++) {
		if (i % 2 == 0 && !depends(w, r->path[i + 1], r->path[i]))
			wrong(w, "a step is missing");
		if (i % 2 == 1 && (w->kernel[r->path[i]] !=
					  w->kernel[r->path[i + 1]] ||
					  is_of_both(w, r->path[i])))
			wrong(w, "the path stays inside");
	}
}

static double relative(double a, double b)
{
	return (a > b ? a - b : b - a) / b;
}

static void check_cost(checker *w)
{
	const fuse_reason *r = w->why;
	double apart = w->kernel[r->producer]->seconds +
		       w->kernel[r->consumer]->seconds;
	double a, b;

	if (relative(apart, r->apart) > 1e-9)
		wrong(w, "not what the kernels cost");
	if (sscanf(r->text, "fused %lf us, apart %lf us", &a, &b) == 2) {
		if (a <= b || relative(b, 1e6 * apart) > 0.006 ||
			relative(a, 1e6 * r->fused) > 0.006)
			wrong(w, "the figures say the opposite");
	} else if (strstr(r->text, "as much") == NULL) {
		wrong(w, "no figures");
	}
}

static void check_policy(checker *w)
{
	const fuse_reason *r = w->why;
	int32_t n = w->kernel[r->producer]->n_eqns +
		    w->kernel[r->consumer]->n_eqns, m, most;

	if (sscanf(r->text, "the kernel would have %d equations, of %d at most",
		    &m, &most) == 2) {
		if (m != n || n <= w->p->target.max_eqns ||
			most != w->p->target.max_eqns)
			wrong(w, "there is room");
		return;
	}
	if (sscanf(r->text,
		    "the kernel is full: its loops would have %d variables, "
		    "%d are possible",
		    &m, &most) == 2) {
		if (m <= most)
			wrong(w, "there is room");
		return;
	}
	if (strstr(r->text, "single elements") == NULL ||
		n <= w->p->target.serial_volume)
		wrong(w, "no policy");
}

/* Nothing that is no candidate for a tail leads from one to the other. */
static void check_apart(checker *w)
{
	const fuse_reason *r = w->why;
	bool *met = arena_array(w->a, bool, w->n_sources + 1), changed = true;
	int64_t all = 0;

	if (r->n_set != 2)
		wrong(w, "no witness");
	for (int32_t i = 0; i < w->n_sources; i++)
		if (w->unit[i] != NULL && is_of_both(w, i))
			all += w->unit[i]->volume;
	met[r->set[0]] = true;
	while (changed) {
		changed = false;
		for (int32_t i = 0; i < w->n_sources; i++)
			for (int32_t k = 0; k < w->n_sources; k++) {
				if (met[i] || !met[k] || w->unit[i] == NULL ||
					!is_of_both(w, i) ||
					w->unit[i]->volume <= all / 8 ||
					(!depends(w, i, k) && !depends(w, k, i)))
					continue;
				met[i] = changed = true;
			}
	}
	if (met[r->set[1]])
		wrong(w, "something ties them");
}

static void check(checker *w, reason_count *n)
{
	const fuse_reason *r = w->why;

	n->by_why[r->why]++;
	if (r->n_ends > 0)
		check_set(w, n);
	else if (r->why == FUSE_WHY_CYCLE)
		check_cycle(w);
	else if (r->why == FUSE_WHY_COST)
		check_cost(w);
	else if (r->why == FUSE_WHY_POLICY)
		check_policy(w);
	else if (r->why == FUSE_WHY_APART)
		check_apart(w);
	else if (r->why != FUSE_WHY_OPAQUE ||
		 (w->unit[r->producer]->e.opaque == NULL &&
			 w->unit[r->consumer]->e.opaque == NULL))
		wrong(w, "no witness");
}

static checker open_plan(arena *a, fuse_plan *p, prop_random *r)
{
	checker w = {.a = a,
		.env = arena_env(a),
		.p = p,
		.r = r,
		.n_sources = p->s->eqn.n,
		.g = eqn_graph_new(a, p->s)};

	w.kernel = arena_array(a, const fuse_kernel *, w.n_sources + 1);
	w.unit = arena_array(a, eqn_unit *, w.n_sources + 1);
	for (int32_t i = 0; i < p->kernel.n; i++) {
		const fuse_kernel *k = p->kernel.at[i];

		for (int32_t e = 0; e < k->n_eqns; e++) {
			int32_t s = k->eqn[e].source;

			w.kernel[s] = k;
			w.unit[s] = eqn_unit_new(w.g, &k->eqn[e].e, s);
		}
	}
	return w;
}

void reason_check(arena *a, fuse_plan *p, prop_random *r, reason_count *n)
{
	checker w = open_plan(a, p, r);

	for (int32_t i = 0; i < p->reason.n; i++) {
		w.why = &p->reason.at[i];
		check(&w, n);
	}
}

void reason_check_one(arena *a, fuse_plan *p, prop_random *r,
	const fuse_reason *why, reason_count *n)
{
	checker w = open_plan(a, p, r);

	w.why = why;
	check(&w, n);
}

bool reason_lie(arena *a, fuse_reason *r)
{
	fuse_end *e = r->end;

	if (r->why == FUSE_WHY_COST && r->n_ends == 0) {
		r->text = arena_printf(a, "fused %.9g us, apart %.9g us",
			1e6 * r->apart, 1e6 * r->fused);
		return r->fused > r->apart * (1 + 1e-8);
	}
	if (r->why == FUSE_WHY_CYCLE) {
		r->n_path -= 2;
		return true;
	}
	if (r->n_ends == 0 || e->read.at == NULL || e->is_unproved ||
		e->read.in_init || e->other.reader >= 0)
		return false;
	if (e->why == FUSE_WHY_FREE)
		e->why = FUSE_WHY_COMPLETION;
	else if (e->why == FUSE_WHY_COMPLETION)
		e->why = FUSE_WHY_OPAQUE;
	else if (e->why == FUSE_WHY_SHIFT)
		e->why = FUSE_WHY_FREE;
	else if (e->why == FUSE_WHY_REVERSED)
		e->why = FUSE_WHY_OPAQUE;
	else
		return false;
	return !ix_has_fun(e->read.at);
}
