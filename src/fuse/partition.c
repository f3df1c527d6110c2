/*
 * partition.c: chooses which equations share a kernel.
 *
 * Consumes units in topological order; produces groups. Greedy: for each
 * equation, the groups that it may join are tried in a fixed order, with and
 * without substituting its producers, and the cheapest choice is taken. At the
 * end, groups that read a common tensor are merged while this reduces the cost.
 *
 *     t = exp(x); s = sum(t, 1); o = t / s   ->   {t}, {t, s}, {t, s, o}
 */
#include "fuse/inner.h"

#include <math.h>

enum {
	/* number of producers to substitute into an equation */
	MAX_INLINED = 4,
	/* depth of the result; IR_MAX_DEPTH is larger */
	MAX_INLINED_DEPTH = 100,
};

/* ---- readers ---- */

static void drop_reader(choice *c, int32_t tensor, int32_t source)
{
	int32_t n = 0;

	for (int32_t i = 0; i < c->readers[tensor].n; i++)
		if (c->readers[tensor].at[i] != source)
			c->readers[tensor].at[n++] = c->readers[tensor].at[i];
	c->readers[tensor].n = n;
}

static void add_reader(choice *c, int32_t tensor, int32_t source)
{
	for (int32_t i = 0; i < c->readers[tensor].n; i++)
		if (c->readers[tensor].at[i] == source)
			return;
	*vec_push(c->f->a, &c->readers[tensor]) = source;
}

/* Replaces the unit of `source` by u; NULL: it is not computed any more. */
static void change(choice *c, int32_t source, eqn_unit *u)
{
	const eqn_unit *old = c->f->unit[source];

	for (int32_t i = 0; old != NULL && i < old->n_reads; i++)
		drop_reader(c, old->read[i].tensor, source);
	for (int32_t i = 0; u != NULL && i < u->n_reads; i++)
		add_reader(c, u->read[i].tensor, source);
	c->f->unit[source] = u;
}

/* ---- candidates ---- */

typedef struct trial {
	int32_t n;
	fuse_group **group; /* groups to merge with the equation */
	double gain;	    /* seconds after - seconds before */
	double best;	    /* fuse_group */
	choice_verdict verdict; /* verdict on the set */
	/* refused because of its schedule, or of the order of groups */
	bool refused;
} trial;

static int32_t size_of(int32_t n, fuse_group *const *g)
{
	int32_t m = 0;

	for (int32_t i = 0; i < n; i++)
		m += g[i]->source.n;
	return m;
}

static choice_verdict verdict_of(
	choice *c, int32_t n, fuse_group *const *g, const eqn_unit *e)
{
	int32_t size = size_of(n, g) + (e != NULL);
	eqn_unit **unit;

	/* a group may have lost some members, but not this many */
	if (size > c->f->t->fusion.max_eqns + MAX_INLINED)
		return (choice_verdict){.seconds = INFINITY, .shared = 1};
	unit = arena_array(fuse_scratch(c->f), eqn_unit *, size + 1);
	return choice_judge(c, choice_members(c, n, g, e, unit), unit);
}

static double seconds_of(choice *c, fuse_group *g)
{
	return verdict_of(c, 1, &g, NULL).seconds;
}

static bool is_opaque(choice *c, const fuse_group *g)
{
	const eqn_unit *u = c->f->unit[g->source.at[0]];

	return u != NULL && u->e.opaque != NULL;
}

/* The change of cost of other groups, because e now reads other tensors. */
static double side_effects(choice *c, int32_t n_other, fuse_group *const *other,
	int32_t n, fuse_group *const *g)
{
	double change_of = 0;

	for (int32_t i = 0; i < n_other; i++) {
		bool merged = false;

		for (int32_t k = 0; k < n; k++)
			merged |= g[k] == other[i];
		if (!merged)
			change_of += seconds_of(c, other[i]) -
				     other[i]->seconds;
	}
	return change_of;
}

typedef struct contest {
	choice *c;
	const eqn_unit *e;
	/* groups whose cost depends on the current form of e */
	near_groups other;
	VEC(trial) all;	   /* in the order of trial */
	trial best;
	double most; /* gain: a trial with more is not scheduled */
} contest;

/*
 * Is the set worth a kernel? Sets that only share an input must share loops:
 * without that, a batch of kernels is as good.
 */
static bool is_worthwhile(const choice_verdict *v, bool siblings)
{
	return v->seconds < INFINITY && (!siblings || v->shared > 1);
}

/* Adds a merge to the candidates, with its bound. */
static void try(contest *w, int32_t n, fuse_group *const *g, bool siblings)
{
	choice *c = w->c;
	choice_verdict v;
	trial *t;

	for (int32_t i = 0; i < n; i++)
		if (is_opaque(c, g[i]))
			return;
	if (n > 0 && w->e->e.opaque != NULL)
		return;
	if (size_of(n, g) + 1 > c->f->t->fusion.max_eqns + MAX_INLINED)
		return;
	v = verdict_of(c, n, g, w->e);
	if (!is_worthwhile(&v, siblings))
		return;
	t = vec_push(fuse_scratch(c->f), &w->all);
	t->n = n;
	t->group = arena_copy(
		fuse_scratch(c->f), g, (size_t)n * sizeof *g);
	t->verdict = v;
	t->gain = v.seconds;
	for (int32_t i = 0; i < n; i++)
		t->gain -= g[i]->seconds;
	t->gain += side_effects(c, w->other.n, w->other.at, n, g);
}

/* Can the groups be one kernel, and is it, once scheduled, not slower? */
static bool is_accepted(contest *w, trial *t)
{
	fuse_quote quote = {.best = 0};

	if (!choice_may_merge(w->c, t->n, t->group, w->e, NULL) ||
		(t->n > 0 && !choice_pays(w->c, t->n, t->group, w->e,
				     &t->verdict, &quote)))
		return false;
	t->best = quote.best;
	return true;
}

/*
 * Picks the accepted trial with the least cost, of equal ones the first.
 * Scheduling costs far more than a bound, so trials are scheduled in the order
 * of their bounds, and the first accepted one is taken; none if the bounds of all
 * that are left are too high.
 */
static void pick(contest *w)
{
	for (;;) {
		trial *best = NULL;

		for (int32_t i = 0; i < w->all.n; i++) {
			trial *t = &w->all.at[i];

			if (!t->refused &&
				(best == NULL || t->gain < best->gain - 1e-15))
				best = t;
		}
		if (best == NULL || best->gain > w->most)
			return;
		best->refused = !is_accepted(w, best);
		if (best->refused)
			continue;
		w->best = *best;
		return;
	}
}

/*
 * Takes the kernel of these groups if it is accepted, before others are tried: no bound
 * knows what a kernel of squares is worth, or of scores and their weights, and a set with
 * something else may have no such schedule.
 */
static bool try_first(contest *w, const near_groups *q)
{
	trial *t;
	int32_t n = w->all.n;

	if (q->n == 0)
		return false;
	try(w, q->n, q->at, false);
	if (w->all.n == n)
		return false;
	t = &w->all.at[n];
	t->refused = t->gain > w->most || !is_accepted(w, t);
	if (!t->refused)
		w->best = *t;
	return !t->refused;
}

static void try_all(contest *w)
{
	near_groups p = near_producers(w->c, w->e), s = near_siblings(w->c, w->e);
	near_groups o = near_overwritten(w->c, w->e), r = near_scores(w->c, &p);
	near_groups q = near_squares(w->c, w->e), all = r;

	for (int32_t i = 0; i < p.n && r.n > 0; i++)
		near_add(w->c, &all, p.at[i]);
	if (try_first(w, &q) || (r.n < all.n && try_first(w, &r)))
		return;
	r = all;
	if (r.n > p.n && p.n > 1)
		try(w, r.n, r.at, false);
	if (p.n > 1)
		try(w, p.n, p.at, false);
	for (int32_t i = 0; i < p.n; i++)
		try(w, 1, &p.at[i], false);
	for (int32_t i = 0; i < o.n; i++)
		try(w, 1, &o.at[i], false);
	for (int32_t i = 0; i < s.n; i++)
		try(w, 1, &s.at[i], true);
	try(w, 0, NULL, false);
	pick(w);
}

/* ---- recompute ---- */

static int32_t deepest(const eqn_unit *e)
{
	int32_t depth = 0;

	for (int32_t k = 0; k < e->e.n_out; k++)
		if (e->e.body[k]->depth > depth)
			depth = e->e.body[k]->depth;
	return depth;
}

static bool may_inline(choice *c, const eqn_unit *p, const eqn_unit *e)
{
	fuse_state *f = c->f;
	/* scores and their maximum are one kernel, or three with their weights: a maximum
	 * that has computed its scores again is in neither */
	bool is_score = e->e.monoid == IR_MAX && c->readers[p->e.out[0]].n > 1;

	if (p->e.monoid != IR_SET || p->e.n_out != 1 || p->has_scan ||
		p->e.push != NULL || p->e.opaque != NULL ||
		e->e.opaque != NULL || p->flops > f->t->fusion.again_ops ||
		p->e.body[0]->depth + deepest(e) > MAX_INLINED_DEPTH ||
		p->n_reads > f->t->fusion.again_reads ||
		f->s->eqn.at[p->source].square > 0 || /* its readers are in its kernel */
		f->w->version[p->e.out[0]] >= 0 || is_score)
		return false;
	for (int32_t i = 0; i < p->n_reads; i++) {
		if (settle_is_destroyed(f->w, p->read[i].tensor))
			return false; /* a write may come in between */
		if (ix_form_depth(p->read[i].at) > FUSE_MAX_FLOORS)
			return false;
	}
	for (int32_t i = 0; i < e->n_reads; i++)
		if (e->read[i].tensor == p->e.out[0] && e->read[i].is_index)
			return false;
	return true;
}

/* The units of the chosen set; returns their number. */
static int32_t chosen(const contest *w, eqn_unit ***unit)
{
	const trial *b = &w->best;
	int32_t n = size_of(b->n, b->group) + 1;

	*unit = arena_array(fuse_scratch(w->c->f), eqn_unit *, n);
	return choice_members(w->c, b->n, b->group, w->e, *unit);
}

/* Do all loops of p and e belong to those that the chosen set shares? */
static bool is_covered(contest *w, const eqn_unit *p)
{
	choice *c = w->c;
	const trial *b = &w->best;
	int32_t n, at = -1;
	int64_t shared;
	eqn_unit **unit;

	for (int32_t i = 0; i < b->n; i++)
		if (c->of[p->source] == b->group[i])
			at = i;
	if (at < 0)
		return false;
	n = chosen(w, &unit);
	shared = choice_judge(c, n, unit).shared;
	return shared >= p->volume && shared >= w->e->volume;
}

/* Finds producers that are worth computing again inside e. */
static int32_t worth(contest *w, eqn_unit **out)
{
	choice *c = w->c;
	const eqn_unit *e = w->e;
	eqn_unit *both[MAX_INLINED + 1] = {c->f->unit[e->source]};
	int32_t n = 0;

	for (int32_t i = 0; i < e->n_reads && n < MAX_INLINED; i++) {
		int32_t m = fuse_maker(c->f, e->read[i].tensor);
		eqn_unit *p = m < 0 ? NULL : c->f->unit[m];
		bool again = false;

		for (int32_t k = 0; k < n; k++)
			again |= out[k] == p;
		if (p == NULL || again || m == e->source ||
			!may_inline(c, p, e) || is_covered(w, p))
			continue;
		both[n + 1] = p;
		if (fuse_apart_both(c->f, n + 2, both) ||
			fuse_apart_again(c->f, n + 2, both) ||
			fuse_apart_groups(c->f, n + 2, both))
			continue;
		out[n++] = p;
	}
	return n;
}

static eqn_unit *with_inlined(
	choice *c, const eqn_unit *e, int32_t n, eqn_unit *const *p)
{
	eqn_graph *g = c->f->g;
	sys_eqn made;

	for (int32_t i = 0; i < n; i++)
		eqn_replace(g, &p[i]->e);
	made = eqn_inline(g, &e->e);
	for (int32_t i = 0; i < n; i++)
		eqn_keep(g, &p[i]->e);
	return eqn_unit_new(g, &made, e->source);
}

/* ---- one equation ---- */

static void place(choice *c, const trial *t, int32_t source)
{
	fuse_state *f = c->f;
	eqn_unit *e = f->unit[source];
	int32_t n = size_of(t->n, t->group) + 1;
	eqn_unit **unit = arena_array(fuse_scratch(f), eqn_unit *, n);
	fuse_group *g = choice_merge(c, t->n, t->group, e);

	n = choice_members(c, t->n, t->group, e, unit);
	for (int32_t i = 0; i < n; i++) {
		*vec_push(f->a, &g->source) = unit[i]->source;
		c->of[unit[i]->source] = g;
	}
	g->seconds = choice_judge(c, n, unit).seconds;
	g->best = t->best;
}

/*
 * Is p not needed, because no unit reads its result, and it is not an output?
 */
static bool is_dead(choice *c, const eqn_unit *p)
{
	int32_t t = p->e.out[0];

	return !c->f->kept[t] && c->readers[t].n == 0;
}

/* Removes members from a group that are not needed any more. */
static void forget(choice *c, fuse_group *g)
{
	int32_t n = 0;

	for (int32_t i = 0; i < g->source.n; i++)
		if (c->f->unit[g->source.at[i]] != NULL)
			g->source.at[n++] = g->source.at[i];
		else
			c->of[g->source.at[i]] = NULL;
	g->source.n = n;
	if (n == 0 && g->place >= 0) {
		c->order.at[g->place] = NULL;
		g->place = -1;
	}
}

typedef struct swap {
	int32_t n;
	eqn_unit *p[MAX_INLINED]; /* producers that were substituted into e */
	bool dead[MAX_INLINED];
	eqn_unit *old, *made;
} swap;

static void do_swap(choice *c, swap *s)
{
	change(c, s->old->source, s->made);
	fuse_apart_in(c->f, s->made, s->n, s->p);
	for (int32_t i = 0; i < s->n; i++) {
		s->dead[i] = is_dead(c, s->p[i]);
		if (s->dead[i])
			change(c, s->p[i]->source, NULL);
	}
}

static void undo_swap(choice *c, const swap *s)
{
	for (int32_t i = s->n - 1; i >= 0; i--)
		if (s->dead[i])
			change(c, s->p[i]->source, s->p[i]);
	change(c, s->old->source, s->old);
	fuse_apart_out(c->f, s->made, s->n, s->p);
}

/* Groups whose cost changes when e reads what its producers read. */
static near_groups changed_by(choice *c, const swap *s)
{
	near_groups all = near_producers(c, s->made);

	for (int32_t i = 0; i < s->n; i++)
		near_add(c, &all, c->of[s->p[i]->source]);
	return all;
}

/* Updates the costs of groups after the form of e has been decided. */
static void decide(choice *c, const near_groups *all)
{
	for (int32_t i = 0; i < all->n; i++) {
		fuse_group *g = all->at[i];

		if (g->place < 0)
			continue;
		forget(c, g);
		g->best = 0; /* it was another set */
		if (g->source.n > 0)
			g->seconds = seconds_of(c, g);
	}
}

/* Costs that differ by no more are about equal. */
static double slack_of(const contest *w)
{
	return w->c->f->t->fusion.alike * w->best.verdict.seconds;
}

/* Iterations of the loops that the chosen set shares. */
static int64_t shared_by(contest *w)
{
	eqn_unit **unit;
	int32_t n = chosen(w, &unit);

	return choice_judge(w->c, n, unit).shared;
}

/* Number of elements in buffers of its kernel. */
static double buffered_by(contest *w)
{
	eqn_unit **unit;
	int32_t n = chosen(w, &unit);

	return w->e->e.opaque != NULL ? 0 : choice_buffered(w->c, n, unit);
}

/* 1: v shares more loops than w, or as many and buffers less; -1: w does; else 0. */
static int32_t compare_loops(contest *v, contest *w, swap *s)
{
	int64_t shared = shared_by(v);
	double buffered;

	undo_swap(v->c, s);
	shared -= shared_by(w);
	do_swap(v->c, s);
	if (shared != 0)
		return shared > 0 ? 1 : -1;
	buffered = buffered_by(v);
	undo_swap(v->c, s);
	buffered -= buffered_by(w);
	do_swap(v->c, s);
	return buffered < 0 ? 1 : buffered > 0 ? -1 : 0;
}

/*
 * Is v, with producers substituted into e, cheaper than w, or about as cheap
 * with more shared loops or fewer buffers? Called after the substitution.
 */
static bool is_better(contest *v, contest *w, swap *s)
{
	double slack = slack_of(w);
	int32_t by;

	if (v->best.gain < w->best.gain - slack)
		return true;
	if (v->best.gain > w->best.gain + slack)
		return false;
	by = compare_loops(v, w, s);
	if (by != 0)
		return by > 0;
	return v->best.gain < w->best.gain - 1e-6 * slack;
}

/*
 * Is v, with producers substituted into e, not slower than w by their
 * schedules? The bound does not know that e may lose its lanes if it computes
 * again what it reads through a transposition. Called after the substitution.
 */
static bool swap_pays(contest *v, contest *w, swap *s)
{
	choice *c = v->c;
	near_groups all = v->other;
	eqn_unit **unit;
	int32_t n = chosen(v, &unit);
	double now, old;

	if (c->f->price == NULL || w->e->e.opaque != NULL ||
		choice_is_one_nest(c->f->t, n, unit,
			choice_judge(c, n, unit).shared))
		return true;
	for (int32_t i = 0; i < v->best.n; i++)
		near_add(c, &all, v->best.group[i]);
	for (int32_t i = 0; i < w->best.n; i++)
		near_add(c, &all, w->best.group[i]);
	now = choice_ask_all(
		c, v->best.n, v->best.group, v->e, all.n, all.at);
	undo_swap(c, s);
	old = choice_ask_all(
		c, w->best.n, w->best.group, w->e, all.n, all.at);
	do_swap(c, s);
	return now <= c->f->t->fusion.most_lost * old;
}

static void choose(choice *c, int32_t source)
{
	fuse_state *f = c->f;
	contest w = {.c = c,
		.e = f->unit[source],
		.best.gain = INFINITY,
		.most = INFINITY};
	contest v = {.c = c, .best.gain = INFINITY};
	swap s = {.old = f->unit[source]};

	try_all(&w);
	s.n = worth(&w, s.p);
	if (s.n > 0) {
		s.made = with_inlined(c, s.old, s.n, s.p);
		do_swap(c, &s);
		v.e = s.made;
		v.other = changed_by(c, &s);
		v.most = w.best.gain + slack_of(&w); /* see is_better */
		try_all(&v);
		if (is_better(&v, &w, &s) && swap_pays(&v, &w, &s)) {
			for (int32_t i = 0; i < s.n; i++)
				f->copied[s.p[i]->source] |= !s.dead[i];
			place(c, &v.best, source);
			decide(c, &v.other);
			return;
		}
		undo_swap(c, &s);
	}
	place(c, &w.best, source);
}

/* ---- groups that read a common tensor ---- */

static bool try_pair(choice *c, fuse_group *g, fuse_group *h, bool siblings)
{
	fuse_group *two[2] = {g, h};
	trial t = {.n = 2, .group = two};
	eqn_unit **unit;
	fuse_group *made;
	choice_verdict both;
	fuse_quote quote;
	int32_t n;

	if (is_opaque(c, g) || is_opaque(c, h) ||
		size_of(2, two) > c->f->t->fusion.max_eqns)
		return false;
	both = verdict_of(c, 2, two, NULL);
	if (!is_worthwhile(&both, siblings) ||
		both.seconds >= g->seconds + h->seconds - 1e-15 ||
		!choice_may_merge(c, 2, two, NULL, NULL) ||
		!choice_pays(c, 2, two, NULL, &both, &quote))
		return false;
	unit = arena_array(fuse_scratch(c->f), eqn_unit *, size_of(2, two) + 1);
	made = choice_merge(c, 2, two, NULL);
	n = choice_members(c, t.n, t.group, NULL, unit);
	for (int32_t i = 0; i < n; i++) {
		*vec_push(c->f->a, &made->source) = unit[i]->source;
		c->of[unit[i]->source] = made;
	}
	made->seconds = both.seconds;
	made->best = quote.best;
	return true;
}

/*
 * The groups that touch a tensor: that of its producer, and those of its
 * readers.
 */
static near_groups touching(choice *c, int32_t tensor)
{
	int32_t m = fuse_maker(c->f, tensor);
	near_groups all = {0};

	if (m >= 0 && c->of[m] != NULL)
		near_add(c, &all, c->of[m]);
	for (int32_t i = 0; i < c->readers[tensor].n && all.n < 64; i++)
		near_add(c, &all, c->of[c->readers[tensor].at[i]]);
	return all;
}

static bool merge_around(choice *c, int32_t tensor)
{
	near_groups all = touching(c, tensor);
	int32_t m = fuse_maker(c->f, tensor);

	for (int32_t i = 0; i < all.n; i++)
		for (int32_t k = i + 1; k < all.n && k <= i + FUSE_MAX_TRIED; k++)
			if (try_pair(c, all.at[i], all.at[k],
				    m < 0 || c->of[m] != all.at[i]))
				return true;
	return false;
}

static bool merge_two(choice *c, int32_t p, int32_t u)
{
	fuse_group *g = p < 0 || c->f->unit[p] == NULL ? NULL : c->of[p];

	return g != NULL && g != c->of[u] && try_pair(c, g, c->of[u], false);
}

/*
 * Tries to merge the group of u with those of units that it reads from or
 * overwrites.
 */
static bool merge_edges(choice *c, const eqn_unit *u)
{
	const settled *q = c->f->w;
	bool merged = false;

	for (int32_t i = 0; i < u->n_reads; i++)
		merged |= merge_two(
			c, fuse_maker(c->f, u->read[i].tensor), u->source);
	for (int32_t i = 0; i < q->readers_of[u->source].n; i++)
		merged |= merge_two(c,
			q->wait.at[q->readers_of[u->source].at[i]].reader,
			u->source);
	return merged;
}

static void merge_all_edges(choice *c)
{
	bool merged = true;

	while (merged) {
		merged = false;
		for (int32_t i = 0; i < c->f->n_order; i++) {
			const eqn_unit *u = c->f->unit[c->f->order[i]];

			merged |= u != NULL && merge_edges(c, u);
			fuse_scratch_trim(c->f);
		}
	}
}

/*
 * Merges pairs until no merge gains, so that each remaining edge has a reason.
 * What is split in between may be merged with others, but not again.
 */
static void merge_pairs(choice *c)
{
	for (int32_t t = 0; t < c->f->s->tensor.n; t++) {
		while (merge_around(c, t))
			;
		fuse_scratch_trim(c->f);
	}
	merge_all_edges(c);
	if (c->f->price == NULL)
		return;
	for (int32_t i = 0; i < c->f->t->fusion.split_rounds; i++) {
		if (!choice_split(c))
			return;
		merge_all_edges(c);
	}
}

/* ---- the whole ---- */

static choice *choice_new(fuse_state *f)
{
	choice *c = arena_make(f->a, choice);
	int32_t n = f->s->eqn.n + 1, m = f->s->tensor.n + 1;

	c->f = f;
	c->stamp = 1;
	c->known = map_new(f->a);
	c->asked = map_new(f->a);
	c->cuts = map_new(f->a);
	c->counted = map_new(f->a);
	c->asking = arena_child(f->a);
	c->of = arena_array(f->a, fuse_group *, n);
	c->position = arena_array(f->a, int32_t, n);
	c->inside = arena_array(f->a, bool, n);
	c->readers = arena_alloc(f->a, (size_t)m, sizeof *c->readers);
	c->local = arena_array(f->a, int32_t, m);
	c->n_local = m;
	for (int32_t i = 0; i < m; i++)
		c->local[i] = -1;
	for (int32_t i = 0; i < f->n_order; i++) {
		const eqn_unit *u = f->unit[f->order[i]];

		c->position[f->order[i]] = i;
		for (int32_t k = 0; k < u->n_reads; k++)
			add_reader(c, u->read[k].tensor, u->source);
	}
	return c;
}

fuse_groups *fuse_choose(fuse_state *f, bool no_fusion, fuse_plan *p)
{
	fuse_groups *g = arena_make(f->a, fuse_groups);
	choice *c = choice_new(f);

	for (int32_t i = 0; i < f->n_order; i++) {
		trial alone = {0};

		if (no_fusion)
			place(c, &alone, f->order[i]);
		else
			choose(c, f->order[i]);
		fuse_scratch_trim(c->f);
	}
	if (!no_fusion)
		merge_pairs(c);
	for (int32_t i = 0; i < c->order.n; i++)
		if (c->order.at[i] != NULL)
			*vec_push(f->a, &g->at) = c->order.at[i];
	p->unexplained = c;
	return g;
}
