/*
 * reason.c: why an edge of the system was not fused.
 *
 * Consumes the chosen groups; produces one reason for each pair of equations
 * in different groups of which one reads what the other computes, or overwrites
 * what the other reads: the first obstacle to a merge, with its witness. The
 * merge is tried, and costs are those that were computed for it.
 *
 *     o reads t at [i, j] and at [j, i]: no shared loop fits both reads
 *     the merged kernel would take 405 us, the separate kernels 300 us
 */
#include "fuse/inner.h"

#include <math.h>

typedef struct why {
	choice *c;
	fuse_group *g, *h;
	fuse_reason r;
} why;

static const char *label(const choice *c, int32_t source)
{
	const char *text = c->f->unit[source]->e.label;

	return text != NULL ? text : "an equation";
}

/* ---- cost ---- */

/* Prints enough digits to show which is more. */
static void cost(why *w, double fused)
{
	double apart = w->g->seconds + w->h->seconds;
	arena *scratch = fuse_scratch(w->c->f);
	const char *a, *b;
	int digits = 3;

	do {
		a = arena_printf(scratch, "%.*g", digits, 1e6 * fused);
		b = arena_printf(scratch, "%.*g", digits, 1e6 * apart);
	} while (strcmp(a, b) == 0 && ++digits < 10);
	w->r.why = FUSE_WHY_COST;
	w->r.fused = fused;
	w->r.apart = apart;
	w->r.text = arena_printf(w->c->f->a,
		"the merged kernel would take %s us, the separate kernels %s%s "
		"us",
		a, digits == 10 ? "as much: " : "", b);
}

/* By the bound the merge is faster, by the estimate of its schedule it is not. */
static void lost(why *w, const fuse_quote *q)
{
	const machine_fusion *t = &w->c->f->t->fusion;
	bool alone = q->alone > 0 &&
		     q->fused.seconds <= t->most_lost * q->apart &&
		     q->fused.alone * q->apart > q->fused.seconds * q->alone;

	w->r.why = FUSE_WHY_COST;
	w->r.fused = alone ? q->fused.alone : q->fused.seconds;
	w->r.apart = alone ? q->alone : q->apart;
	w->r.text = arena_printf(w->c->f->a,
		"by their schedules, the merged kernel would take %.3g us%s, most of "
		"it for %s, and the separate kernels %.3g us",
		1e6 * w->r.fused, alone ? " on one thread" : "",
		q->fused.term, 1e6 * w->r.apart);
}

/* ---- cycles ---- */

/* How the search reached a group: `to` in it needs `from`. */
typedef struct entry {
	int32_t from, to;
	bool met;
} entry;

typedef struct chase {
	why *w;
	entry *at; /* by index of the group in the order */
} chase;

/* A source that u needs, in the two groups or reached from them; or -1. */
static int32_t needed(const chase *q, const eqn_unit *u, bool inside)
{
	const choice *c = q->w->c;
	const settled *s = c->f->w;
	int32_t n = u->n_reads + s->readers_of[u->source].n;

	for (int32_t i = 0; i < n; i++) {
		int32_t m = i < u->n_reads
				    ? fuse_maker(c->f, u->read[i].tensor)
				    : s->wait.at[s->readers_of[u->source]
							    .at[i - u->n_reads]]
					      .reader;
		const fuse_group *g = m < 0 || c->f->unit[m] == NULL ? NULL
								     : c->of[m];

		if (g == NULL || g == c->of[u->source])
			continue;
		if (g == q->w->g || g == q->w->h ? !inside : q->at[g->place].met)
			return m;
	}
	return -1;
}

/* Marks o if it needs a marked group; true: the path has come back. */
static bool visit(chase *q, const fuse_group *o)
{
	const choice *c = q->w->c;
	bool inside = o == q->w->g || o == q->w->h;

	for (int32_t i = 0; i < o->source.n; i++) {
		const eqn_unit *u = c->f->unit[o->source.at[i]];
		int32_t m = u == NULL ? -1 : needed(q, u, inside);

		if (m < 0)
			continue;
		q->at[o->place] = (entry){.from = m, .to = u->source,
			.met = !inside};
		return inside;
	}
	return false;
}

static void write_path(chase *q, const fuse_group *last)
{
	choice *c = q->w->c;
	fuse_reason *r = &q->w->r;
	arena *a = c->f->a;
	const entry *e = &q->at[last->place];
	str s = str_new(fuse_scratch(c->f));
	VEC(int32_t) back = {0};

	for (;;) {
		const fuse_group *g = c->of[e->from];

		*vec_push(fuse_scratch(c->f), &back) = e->to;
		*vec_push(fuse_scratch(c->f), &back) = e->from;
		if (g == q->w->g || g == q->w->h)
			break;
		e = &q->at[g->place];
	}
	r->why = FUSE_WHY_CYCLE;
	r->path = arena_array(a, int32_t, back.n);
	for (int32_t i = back.n - 1; i >= 0; i--) {
		int32_t u = back.at[i];

		if (r->n_path == 0 || u != r->path[r->n_path - 1])
			str_printf(&s, "%s%s", r->n_path > 0 ? " -> " : "",
				label(c, u));
		r->path[r->n_path++] = u;
	}
	r->text = arena_printf(
		a, "the merged kernel would depend on itself: %s", s.at);
}

/* Does a path leave the two groups and come back? */
static bool is_cycle(why *w)
{
	chase q = {.w = w,
		.at = arena_array(
			fuse_scratch(w->c->f), entry, w->c->order.n + 1)};
	int32_t a = w->g->place, b = w->h->place;

	for (int32_t i = a < b ? a : b; i <= (a < b ? b : a); i++) {
		const fuse_group *o = w->c->order.at[i];

		if (o == NULL || !visit(&q, o))
			continue;
		write_path(&q, o);
		return true;
	}
	return false;
}

/* ---- one edge ---- */

static void explain(why *w)
{
	choice *c = w->c;
	fuse_state *f = c->f;
	fuse_group *both[2] = {w->g, w->h};
	int32_t n = w->g->source.n + w->h->source.n, source = w->r.producer;
	int32_t n_vars;
	eqn_unit **unit = arena_array(fuse_scratch(f), eqn_unit *, n + 1);
	choice_verdict v;
	fuse_quote quote;

	if (f->unit[source]->e.opaque == NULL)
		source = w->r.consumer;
	if (f->unit[source]->e.opaque != NULL) {
		w->r.why = FUSE_WHY_OPAQUE;
		w->r.text = arena_printf(f->a, "%s is a C function that works on whole tensors",
			label(c, source));
		return;
	}
	n = choice_members(c, 2, both, NULL, unit);
	if (fuse_apart_both(f, n, unit)) {
		w->r.why = FUSE_WHY_REQUEST;
		w->r.text = "kept apart by request";
		return;
	}
	if (fuse_apart_again(f, n, unit)) {
		w->r.why = FUSE_WHY_POLICY;
		w->r.text = "one of them is computed again, so that its memory is free before: no kernel has it and what stands in front of it";
		return;
	}
	if (fuse_apart_groups(f, n, unit)) {
		w->r.why = FUSE_WHY_POLICY;
		w->r.text = "both compute a large value that is computed again rather than stored, each for its own readers";
		return;
	}
	if (choice_holds_much(c, n, unit)) {
		w->r.why = FUSE_WHY_POLICY;
		w->r.text = arena_printf(f->a,
			"memory is limited, and the merged kernel would have results of more than %g times its largest",
			f->t->fusion.most_held);
		return;
	}
	if (is_cycle(w))
		return;
	if (n > f->t->fusion.max_eqns) {
		w->r.why = FUSE_WHY_POLICY;
		w->r.text = arena_printf(f->a,
			"the merged kernel would have %d equations, and %d are allowed",
			n,
			f->t->fusion.max_eqns);
		return;
	}
	v = choice_judge(c, n, unit);
	n_vars = v.is_many ? choice_n_vars(c, n, unit) : 0;
	if (n_vars > 0) {
		w->r.why = FUSE_WHY_POLICY;
		w->r.text = arena_printf(f->a,
			"the loops of the merged kernel would have %d "
			"variables, and %d are allowed",
			n_vars, FUSE_MAX_VARS);
		return;
	}
	if (v.seconds < w->g->seconds + w->h->seconds &&
		!choice_pays(c, 2, both, NULL, &v, &quote))
		lost(w, &quote);
	else if (v.seconds < INFINITY)
		cost(w, v.seconds);
	else
		fuse_conflict(c, n, unit, &w->r);
}

static void give(choice *c, fuse_plan *p, fuse_reason r)
{
	why w = {.c = c,
		.g = c->of[r.producer],
		.h = c->of[r.consumer],
		.r = r};

	if (w.g == w.h)
		return;
	explain(&w);
	*vec_push(c->f->a, &p->reason) = w.r;
	fuse_scratch_trim(c->f);
}

static void edges_of(choice *c, fuse_plan *p, const eqn_unit *u)
{
	for (int32_t i = 0; i < u->n_reads; i++) {
		int32_t m = fuse_maker(c->f, u->read[i].tensor);
		bool again = false;

		if (m < 0 || m == u->source)
			continue;
		for (int32_t k = 0; k < i; k++)
			again |= fuse_maker(c->f, u->read[k].tensor) == m;
		if (!again)
			give(c, p,
				(fuse_reason){.producer = m,
					.consumer = u->source,
					.tensor = u->read[i].tensor});
	}
}

/* Does u read a result of source? Then that edge has a reason already. */
static bool reads_from(choice *c, const eqn_unit *u, int32_t source)
{
	for (int32_t i = 0; i < u->n_reads; i++)
		if (fuse_maker(c->f, u->read[i].tensor) == source)
			return true;
	return false;
}

/* Adds reasons for readers of what u overwrites. */
static void writes_of(choice *c, fuse_plan *p, const eqn_unit *u)
{
	const settled *q = c->f->w;

	for (int32_t i = 0; i < q->readers_of[u->source].n; i++) {
		const settle_wait *v =
			&q->wait.at[q->readers_of[u->source].at[i]];

		if (c->f->unit[v->reader] != NULL &&
			!reads_from(c, u, v->reader))
			give(c, p,
				(fuse_reason){.producer = v->reader,
					.consumer = u->source,
					.tensor = v->tensor,
					.is_write = true});
	}
}

static void find_all(void *arg)
{
	fuse_plan *p = arg;
	choice *c = p->unexplained;

	for (int32_t i = 0; i < c->f->n_order; i++) {
		const eqn_unit *u = c->f->unit[c->f->order[i]];

		if (u == NULL)
			continue;
		edges_of(c, p, u);
		writes_of(c, p, u);
	}
}

/* Removes the marks that a search leaves which ended with an error. */
static void forget_marks(choice *c)
{
	fuse_state *f = c->f;

	for (int32_t i = 0; i < f->n_sources; i++) {
		c->inside[i] = false;
		f->where[i] = -1;
	}
	for (int32_t i = 0; i < c->n_local; i++)
		c->local[i] = -1;
}

void fuse_explain(fuse_plan *p)
{
	choice *c = p->unexplained;
	tn_status status;
	fuse_state *f;
	ir_trial trial;

	if (c == NULL)
		return;
	f = c->f;
	trial = ir_trial_begin(f->s, fuse_scratch(f));
	status = env_run(f->env, find_all, p);
	ir_trial_end(f->s, &trial);
	arena_free(*f->scratch);
	*f->scratch = NULL;
	if (status == TN_OK) {
		p->unexplained = NULL;
		return;
	}
	p->reason.n = 0;
	forget_marks(c);
	env_rethrow(f->env);
}
