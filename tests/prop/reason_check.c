/*
 * reason_check.c: every reason of a plan proved from the equations alone.
 *
 * Nothing here asks how the reason was found. Of a set that shares no loop all
 * loops are tried (reason_set.c); each end of a loop, a path and the figures of
 * a cost are looked at on their own.
 *
 *     {s, o}: s[i] += x[i,k]; o[i,j] = y[i,j] / s[j]: o at (0, 1) reads s[1],
 *     made by (1, k) for all k: neither i of o nor k of s goes through
 */
#include "reason_local.h"

#include <stdio.h>

/* ---- ends ---- */

static int32_t member(const checker *w, int32_t source)
{
	for (int32_t i = 0; i < w->n; i++)
		if (w->set[i]->source == source)
			return i;
	return -1;
}

static const eqn_read *read_of(const checker *w, const fuse_site *q)
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
		flat[0] = reason_value(w, c->e.push, y);
		y = flat;
	}
	for (int32_t i = 0; i < r->dom.n_facts; i++) {
		const ix_fact *f = &r->dom.facts[i];
		int64_t v = reason_value(w, f->f, y);

		if (v < f->lo || v >= f->hi)
			return false;
	}
	*out = reason_value(w, r->at, y);
	return true;
}

/* One read alone: its pairs. */
static link alone(checker *w, const fuse_site *q)
{
	const eqn_unit *c = w->unit[q->reader];
	const eqn_read *r = read_of(w, q);
	link l = {.p = member(w, q->writer),
		.c = member(w, q->reader),
		.is_write = q->is_write};

	if (r == NULL || l.p < 0 || l.c < 0)
		reason_wrong(w, "no such read");
	for (int32_t i = 0; i < 4 * POINTS; i++) {
		int64_t *y = reason_point(w, c, i), e;

		if (element_at(w, r, c, y, &e))
			reason_add_pair(w, &l, e, y);
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
			if (reason_digit(&d, l->pair.at[i].x) !=
				reason_digit(&d, l->pair.at[0].x))
				return reason_is_reduced(w->set[l->p], &d);
		return true;
	}
	if (r->in_init && c->e.push != NULL)
		return reason_is_reduced(c, &d);
	for (int32_t i = 0; i < POINTS && !ix_has_fun(r->at); i++) {
		int64_t *y = reason_point(w, c, i), a, b;
		int64_t n = e->hi / e->lo, old = reason_digit(&d, y);

		if (!element_at(w, r, c, y, &a))
			continue;
		y[e->axis] += (reason_below(w, n) - old) * e->lo;
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
			int64_t v = reason_digit(&d, writer ? q->x : q->y);
			int64_t u = reason_digit(o, writer ? q->y : q->x);

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
			reason_agree(l, writer ? &d : o, writer ? o : &d))
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
		!(u->contraction && reason_is_reduced(u, &d)))
		reason_wrong(w, "no contraction along this");
	if (e->why == FUSE_WHY_COMPLETION && u->e.push == NULL)
		reason_wrong(w, "no scatter");
	if (e->why == FUSE_WHY_REVERSED && !u->has_scan)
		reason_wrong(w, "no scan");
}

static void check_end(checker *w, const fuse_end *e)
{
	const eqn_unit *p;
	link l;

	if (e->read.reader < 0)
		reason_wrong(w, "no witness");
	if (e->read.reader == e->read.writer && e->read.at == NULL) {
		check_own(w, e);
		return;
	}
	p = w->unit[e->read.writer];
	l = alone(w, &e->read);
	if (e->read.is_write
			? !reason_destroys(w, p, w->unit[e->read.reader], e->read.tensor)
			: !reason_makes(p, e->read.tensor))
		reason_wrong(w, "another makes it");
	switch (e->why) {
	case FUSE_WHY_COMPLETION:
		if (e->other.reader >= 0) {
			p = w->unit[e->other.writer];
			if (!reason_makes(p, e->other.tensor) ||
				!comes_of(w, e->read.writer, e->other.writer, 0))
				reason_wrong(w, "it comes of something else");
		}
		if (!sums(p) || (!is_fixed(w, e, &l) &&
					(p->e.push == NULL ||
						has_partner(w, e, &l))))
			reason_wrong(w, "complete before");
		break;
	case FUSE_WHY_FREE:
		if (!is_fixed(w, e, &l))
			reason_wrong(w, "not the same everywhere");
		break;
	case FUSE_WHY_SHIFT:
		if (!e->read.in_init && !is_off(w, e, &l, 1))
			reason_wrong(w, "no shift");
		break;
	case FUSE_WHY_REVERSED:
		if (!e->read.in_init && !is_off(w, e, &l, -1))
			reason_wrong(w, "not backwards");
		break;
	case FUSE_WHY_OVERWRITE: /* the whole set was asked */
		break;
	case FUSE_WHY_MISALIGNED:
		if (e->is_cut || e->is_unproved)
			break;
		if (l.pair.n > 0 && has_partner(w, e, &l))
			reason_wrong(w, "it has a loop there");
		break;
	case FUSE_WHY_OPAQUE:
		if (!ix_has_fun(e->read.at))
			reason_wrong(w, "known when compiled");
		break;
	case FUSE_WHY_SEVERAL:
		if (e->other.reader < 0 ||
			(e->other.at == e->read.at &&
				e->other.writer == e->read.writer &&
				e->other.reader == e->read.reader) ||
			read_of(w, &e->other) == NULL)
			reason_wrong(w, "one read");
		break;
	case FUSE_WHY_CYCLE:
	case FUSE_WHY_COST:
	case FUSE_WHY_POLICY:
	case FUSE_WHY_APART:
	case FUSE_WHY_REQUEST:
		reason_wrong(w, "no such end");
	}
}

static void check_set(checker *w, reason_count *n)
{
	const fuse_reason *r = w->why;
	bool policy = false, unproved = false;

	for (int32_t i = 0; i < r->n_ends; i++)
		unproved |= r->end[i].is_unproved;
	reason_open(w, r->n_set, r->set);
	if (!reason_is_tied(w))
		reason_wrong(w, "the set is in parts");
	for (int32_t i = 0; i < r->n_set; i++)
		if (w->kernel[r->set[i]] != w->kernel[r->producer] &&
			w->kernel[r->set[i]] != w->kernel[r->consumer])
			reason_wrong(w, "not in these kernels");
	w->policy = true;
	if (!unproved && reason_has_loop(w, 0))
		reason_wrong(w, "there is a loop through all");
	for (int32_t i = 0; i < r->n_ends; i++) {
		policy |= r->end[i].why == FUSE_WHY_POLICY;
		check_end(w, &r->end[i]);
	}
	w->policy = false;
	if (!policy && !unproved && reason_has_loop(w, 0))
		reason_wrong(w, "a contraction stands in the way");
	n->sets += !unproved;
	n->unproved += unproved;
}

/* ---- the others ---- */

static bool depends(const checker *w, int32_t u, int32_t on)
{
	for (int32_t i = 0; i < w->unit[u]->n_reads; i++)
		if (reason_makes(w->unit[on], w->unit[u]->read[i].tensor))
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
		reason_wrong(w, "no path");
	for (int32_t i = 0; i + 1 < r->n_path; i++) {
		if (i % 2 == 0 && !depends(w, r->path[i + 1], r->path[i]))
			reason_wrong(w, "a step is missing");
		if (i % 2 == 1 && (w->kernel[r->path[i]] !=
					  w->kernel[r->path[i + 1]] ||
					  is_of_both(w, r->path[i])))
			reason_wrong(w, "the path stays inside");
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
		reason_wrong(w, "not what the kernels cost");
	if (sscanf(r->text,
		    "the merged kernel would take %lf us, the separate kernels "
		    "%lf us",
		    &a, &b) == 2) {
		if (a <= b || relative(b, 1e6 * apart) > 0.006 ||
			relative(a, 1e6 * r->fused) > 0.006)
			reason_wrong(w, "the figures say the opposite");
	} else if (strstr(r->text, "as much") == NULL) {
		reason_wrong(w, "no figures");
	}
}

static void check_policy(checker *w)
{
	const fuse_reason *r = w->why;
	int32_t n = w->kernel[r->producer]->n_eqns +
		    w->kernel[r->consumer]->n_eqns, m, most;

	if (sscanf(r->text,
		    "the merged kernel would have %d equations, and %d are "
		    "allowed",
		    &m, &most) == 2) {
		if (m != n || n <= w->p->machine->fusion.max_eqns ||
			most != w->p->machine->fusion.max_eqns)
			reason_wrong(w, "there is room");
		return;
	}
	if (sscanf(r->text,
		    "the loops of the merged kernel would have %d variables, "
		    "and %d are allowed",
		    &m, &most) == 2) {
		if (m <= most)
			reason_wrong(w, "there is room");
		return;
	}
	if (strstr(r->text, "share no loop") == NULL ||
		n <= w->p->machine->fusion.serial_volume)
		reason_wrong(w, "no policy");
}

/* Nothing that is no candidate for a tail leads from one to the other. */
static void check_apart(checker *w)
{
	const fuse_reason *r = w->why;
	bool *met = arena_array(w->a, bool, w->n_sources + 1), changed = true;
	int64_t all = 0;

	if (r->n_set != 2)
		reason_wrong(w, "no witness");
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
		reason_wrong(w, "something ties them");
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
		reason_wrong(w, "no witness");
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
		r->text = arena_printf(a, 
			"the merged kernel would take %.9g us, the separate "
			"kernels %.9g us",
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
