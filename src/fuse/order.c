/*
 * order.c: maintains a topological order of the groups while they grow.
 *
 * Groups can be merged iff no path leaves them and comes back. Then the groups
 * that lead to them are moved in front of them, inside the range between the
 * first and the last of them; searches do not leave that range (after Pearce and
 * Kelly 2006).
 */
#include "fuse/inner.h"

typedef struct search {
	choice *c;
	int32_t lowest, highest; /* ends of the range */
	VEC(fuse_group *) met;	 /* groups that lead to the merged ones */
} search;

static void meet(search *w, int32_t source)
{
	fuse_group *g = source < 0 ? NULL : w->c->of[source];

	if (g == NULL || g->stamp == w->c->stamp || g->place < w->lowest)
		return;
	if (g->place > w->highest)
		w->highest = g->place;
	g->stamp = w->c->stamp;
	*vec_push(fuse_scratch(w->c->f), &w->met) = g;
}

/* Visits what must run before u: producers, and readers of what it overwrites. */
static void before(choice *c, const eqn_unit *u, search *w)
{
	fuse_state *f = c->f;

	if (u == NULL) /* substituted into its readers */
		return;
	for (int32_t k = 0; k < u->n_reads; k++)
		meet(w, fuse_maker(f, u->read[k].tensor));
	for (int32_t k = 0; k < f->w->readers_of[u->source].n; k++)
		meet(w, f->w->wait.at[f->w->readers_of[u->source].at[k]]
				.reader);
}

static bool among(int32_t n, fuse_group *const *g, const fuse_group *x)
{
	for (int32_t i = 0; i < n; i++)
		if (g[i] == x)
			return true;
	return false;
}

/*
 * Collects the groups in the range that lead to these. Returns NULL, or a group on
 * a path that comes back to one of these.
 */
static fuse_group *lead(
	search *w, int32_t n, fuse_group *const *g, const eqn_unit *e)
{
	choice *c = w->c;
	int32_t kept = 0;

	c->stamp++;
	for (int32_t i = 0; i < n; i++)
		for (int32_t k = 0; k < g[i]->source.n; k++)
			before(c, c->f->unit[g[i]->source.at[k]], w);
	if (e != NULL)
		before(c, e, w);
	/* edges between the groups to merge are allowed */
	for (int32_t i = 0; i < w->met.n; i++)
		if (!among(n, g, w->met.at[i]))
			w->met.at[kept++] = w->met.at[i];
	w->met.n = kept;
	for (int32_t i = 0; i < n; i++)
		g[i]->stamp = c->stamp - 1;
	for (int32_t i = 0; i < w->met.n; i++) {
		fuse_group *m = w->met.at[i];
		int32_t from = w->met.n;

		for (int32_t k = 0; k < m->source.n; k++)
			before(c, c->f->unit[m->source.at[k]], w);
		for (int32_t k = from; k < w->met.n; k++)
			if (among(n, g, w->met.at[k]))
				return m;
	}
	return NULL;
}

static void stretch(search *w, int32_t n, fuse_group *const *g)
{
	w->lowest = w->c->order.n;
	w->highest = -1;
	for (int32_t i = 0; i < n; i++) {
		if (g[i]->place < w->lowest)
			w->lowest = g[i]->place;
		if (g[i]->place > w->highest)
			w->highest = g[i]->place;
	}
}

bool choice_may_merge(choice *c, int32_t n, fuse_group *const *g,
	const eqn_unit *e, fuse_group **through)
{
	search w = {.c = c};
	fuse_group *m;

	if (n == 0 || rule_dropped(c->f, FUSE_RULE_ORDER))
		return true;
	stretch(&w, n, g);
	m = lead(&w, n, g, e);
	if (through != NULL)
		*through = m;
	return m == NULL;
}

fuse_group *choice_merge(
	choice *c, int32_t n, fuse_group *const *g, const eqn_unit *e)
{
	search w = {.c = c};
	fuse_group *made = arena_make(c->f->a, fuse_group), **now;
	int32_t at = 0, size;

	if (n == 0) {
		made->place = c->order.n;
		*vec_push(c->f->a, &c->order) = made;
		return made;
	}
	stretch(&w, n, g);
	(void)lead(&w, n, g, e);
	size = w.highest - w.lowest + 1;
	now = arena_array(fuse_scratch(c->f), fuse_group *, size);
	for (int32_t pass = 0; pass < 2; pass++) {
		for (int32_t i = w.lowest; i <= w.highest; i++) {
			fuse_group *o = c->order.at[i];

			if (o == NULL || among(n, g, o) ||
				(o->stamp == c->stamp) != (pass == 0))
				continue;
			now[at++] = o;
		}
		if (pass == 0)
			now[at++] = made;
	}
	for (int32_t i = 0; i < size; i++) {
		c->order.at[w.lowest + i] = i < at ? now[i] : NULL;
		if (i < at)
			now[i]->place = w.lowest + i;
	}
	for (int32_t i = 0; i < n; i++)
		g[i]->place = -1;
	return made;
}
