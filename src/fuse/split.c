/*
 * split.c: splits a kernel in two where its two parts are faster.
 *
 * Consumes the chosen groups; produces groups of which none has a cut that is
 * faster, by the estimate of the schedules, among those that are looked at.
 * A group grows by one merge at a time, and each of them may look good: the
 * kernel that comes of it is compared with the groups that it was made of, but
 * not with other ways to cut it.
 *
 *     {y, m}, r: {y, m, r} is as fast   but {y}, {m, r} is faster than both
 *
 * A cut is a part of the units that read nothing of the others. The cuts through
 * which the fewest elements pass are priced, but none through which more pass
 * than the kernel has in memory anyway: a kernel also saves memory. Equal sets
 * are cut alike, and once.
 */
#include "fuse/inner.h"

#include <math.h>

typedef struct cut {
	uint64_t first; /* units before the cut, by number */
	double passed;	/* elements that the others read of what these make */
} cut;

typedef struct split {
	choice *c;
	int32_t n;
	eqn_unit **unit;
	uint64_t *needs; /* by unit: those that it needs, and itself */
	double most;	 /* elements that may pass */
	VEC(cut) all;
} split;

#define UNIT(i) ((uint64_t)1 << (i))

/* ---- cuts ---- */

static uint64_t number_of(const split *s, int32_t source)
{
	for (int32_t i = 0; i < s->n; i++)
		if (s->unit[i]->source == source)
			return UNIT(i);
	return 0;
}

/* What each unit needs: producers, and the readers of what it overwrites. */
static void find_needs(split *s)
{
	fuse_state *f = s->c->f;

	for (int32_t i = 0; i < s->n; i++) {
		const eqn_unit *u = s->unit[i];
		uint64_t direct = 0;

		for (int32_t k = 0; k < u->n_reads; k++)
			direct |= number_of(
				s, fuse_maker(f, u->read[k].tensor));
		for (int32_t k = 0; k < f->w->readers_of[u->source].n; k++)
			direct |= number_of(s,
				f->w->wait.at[f->w->readers_of[u->source].at[k]]
					.reader);
		s->needs[i] = UNIT(i);
		for (int32_t k = 0; k < i; k++)
			if ((direct & UNIT(k)) != 0)
				s->needs[i] |= s->needs[k];
	}
}

/* Elements that pass from the units before the cut to those behind it. */
static double passed_by(const split *s, uint64_t first)
{
	const fuse_state *f = s->c->f;
	double sum = 0;

	for (int32_t i = 0; i < s->n; i++) {
		const eqn_unit *u = s->unit[i];

		for (int32_t k = 0; k < u->e.n_out && (first & UNIT(i)); k++) {
			int32_t t = u->e.out[k];
			bool passes = false;

			for (int32_t r = 0; r < s->c->readers[t].n; r++)
				passes |= (number_of(s, s->c->readers[t].at[r]) &
						  ~first) != 0;
			if (passes)
				sum += (double)f->s->tensor.at[t].numel;
		}
	}
	return sum;
}

/* Elements that the units read from outside, or that are seen there. */
static double in_memory(const split *s)
{
	choice *c = s->c;
	double sum = 0;

	for (int32_t i = 0; i < s->n; i++)
		c->inside[s->unit[i]->source] = true;
	for (int32_t i = 0; i < s->n; i++) {
		const eqn_unit *u = s->unit[i];

		for (int32_t k = 0; k < u->n_reads; k++) {
			int32_t t = u->read[k].tensor, m = fuse_maker(c->f, t);

			if (m < 0 || !c->inside[m])
				sum += (double)c->f->s->tensor.at[t].numel;
		}
		for (int32_t k = 0; k < u->e.n_out; k++)
			if (choice_sees(c, u->e.out[k]))
				sum += (double)c->f->s->tensor.at[u->e.out[k]]
					       .numel;
	}
	for (int32_t i = 0; i < s->n; i++)
		c->inside[s->unit[i]->source] = false;
	return sum;
}

/* Keeps the cuts that the fewest elements pass; of equal ones the first. */
static void add_cut(split *s, uint64_t first)
{
	uint64_t whole = UNIT(s->n - 1) | (UNIT(s->n - 1) - 1);
	int32_t at;
	cut made = {.first = first};

	if (first == whole)
		return;
	for (int32_t i = 0; i < s->all.n; i++)
		if (s->all.at[i].first == first)
			return;
	made.passed = passed_by(s, first);
	if (made.passed > s->most)
		return;
	at = s->all.n;
	if (at < s->c->f->t->fusion.cuts)
		(void)vec_push(fuse_scratch(s->c->f), &s->all);
	else if (s->all.at[--at].passed <= made.passed)
		return;
	for (; at > 0 && s->all.at[at - 1].passed > made.passed; at--)
		s->all.at[at] = s->all.at[at - 1];
	s->all.at[at] = made;
}

/* ---- prices ---- */

/* The units of the group on one side of the cut; returns their number. */
static int32_t side_of(
	const split *s, uint64_t first, bool before, eqn_unit **out)
{
	int32_t n = 0;

	for (int32_t i = 0; i < s->n; i++)
		if (((first & UNIT(i)) != 0) == before)
			out[n++] = s->unit[i];
	return n;
}

/* Does a schedule choose tiles for it? The bound of cost.c knows none. */
static bool has_products(const split *s)
{
	for (int32_t i = 0; i < s->n; i++)
		if (s->unit[i]->contraction)
			return true;
	return false;
}

/*
 * By how much are the two kernels faster than the one, with all threads or with
 * one? Where the bound of cost.c says that they are slower: with all threads and with
 * one. 0: they are slower with all threads by more than a merge may be. number: of the
 * cut, among those that are looked at.
 */
static double gain_of(const split *s, fuse_price now, int32_t number, choice_cut *out)
{
	choice *c = s->c;
	double most = now.seconds * c->f->t->fusion.most_lost;
	eqn_unit **unit = arena_array(fuse_scratch(c->f), eqn_unit *, s->n);
	double all, alone, bound = 0;
	bool contradicts;

	for (int32_t side = 0; side < 2; side++)
		bound += choice_judge(
			c, side_of(s, out->first, side == 0, unit), unit)
				 .seconds;
	if (isinf(bound)) /* a side is no kernel */
		return 0;
	/* it takes what rounds find near from the farthest memory */
	contradicts = bound > most && !c->f->s->in_rounds;
	if (contradicts && (number >= c->f->t->fusion.bound_cuts || !has_products(s)))
		return 0;
	if (contradicts)
		most = now.seconds / c->f->t->fusion.least_gain;
	for (int32_t side = 0; side < 2 && out->apart <= most; side++) {
		fuse_price p = choice_ask(c,
			side_of(s, out->first, side == 0, unit), unit,
			choice_sees);

		out->apart += p.seconds;
		out->alone += p.alone;
	}
	all = now.seconds / out->apart;
	alone = now.alone / out->alone;
	if (out->apart > most)
		return 0;
	if (contradicts)
		return all < alone ? all : alone;
	return all > alone ? all : alone;
}

static choice_cut find_cut(choice *c, int32_t n, eqn_unit **unit)
{
	split s = {.c = c, .n = n, .unit = unit};
	fuse_price now = choice_ask(c, n, unit, choice_sees);
	double most = c->f->t->fusion.least_gain;
	choice_cut best = {0};

	s.needs = arena_array(fuse_scratch(c->f), uint64_t, n);
	s.most = in_memory(&s);
	find_needs(&s);
	for (int32_t i = 0; i + 1 < n; i++)
		add_cut(&s, UNIT(i) | (UNIT(i) - 1));
	for (int32_t i = 0; i < n; i++)
		add_cut(&s, s.needs[i]);
	for (int32_t i = 0; i < s.all.n; i++) {
		choice_cut made = {.first = s.all.at[i].first};
		double gain = gain_of(&s, now, i, &made);

		if (gain >= most) {
			best = made;
			most = gain;
		}
	}
	return best;
}

/* ---- memo ---- */

/* The best cut of a set; first 0: it has none that is faster. */
static choice_cut cut_of(choice *c, int32_t n, eqn_unit **unit)
{
	int32_t *key;
	size_t n_bytes;
	int64_t found = choice_cut_at(c, n, unit, &key, &n_bytes);
	choice_cut made;

	if (found >= 0)
		return c->cut.at[found];
	made = find_cut(c, n, unit);
	map_set(c->cuts, key, n_bytes, c->cut.n);
	*vec_push(c->f->a, &c->cut) = made;
	c->n_cut += made.first != 0;
	return made;
}

/* ---- groups ---- */

/* Makes a group of some units, right behind `after` in the order. */
static fuse_group *group_behind(choice *c, fuse_group *after)
{
	fuse_group *g = arena_make(c->f->a, fuse_group), *moved = g;
	int32_t at = after->place + 1;

	while (at < c->order.n && c->order.at[at] != NULL) {
		fuse_group *next = c->order.at[at];

		c->order.at[at] = moved;
		moved->place = at++;
		moved = next;
	}
	if (at == c->order.n)
		(void)vec_push(c->f->a, &c->order);
	c->order.at[at] = moved;
	moved->place = at;
	return g;
}

static void fill(choice *c, fuse_group *g, int32_t n, eqn_unit *const *unit)
{
	g->source.n = 0;
	for (int32_t i = 0; i < n; i++) {
		*vec_push(c->f->a, &g->source) = unit[i]->source;
		c->of[unit[i]->source] = g;
	}
	g->seconds = choice_judge(c, n, unit).seconds;
	g->best = 0;
}

/* Returns the group behind the cut; NULL: it is not cut. */
static fuse_group *split_one(choice *c, fuse_group *g)
{
	arena *a = fuse_scratch(c->f);
	eqn_unit **unit = arena_array(a, eqn_unit *, g->source.n + 1);
	int32_t n = choice_members(c, 1, &g, NULL, unit);
	split s = {.c = c, .n = n, .unit = unit};
	eqn_unit **side;
	fuse_group *then;
	choice_cut best;

	if (n < 2 || n > c->f->t->fusion.max_eqns || unit[0]->e.opaque != NULL ||
		choice_is_one_nest(c->f->t, n, unit,
			choice_judge(c, n, unit).shared))
		return NULL;
	best = cut_of(c, n, unit);
	if (best.first == 0)
		return NULL;
	side = arena_array(a, eqn_unit *, n);
	then = group_behind(c, g);
	fill(c, g, side_of(&s, best.first, true, side), side);
	fill(c, then, side_of(&s, best.first, false, side), side);
	return then;
}

bool choice_split(choice *c)
{
	bool any = false;

	for (int32_t i = 0; i < c->order.n; i++) {
		bool again = c->order.at[i] != NULL &&
			     split_one(c, c->order.at[i]) != NULL;

		any |= again;
		i -= again; /* the part before the cut may have one, too */
		fuse_scratch_trim(c->f);
	}
	return any;
}
