/*
 * near.c: the groups that an equation may join.
 *
 * Consumes an equation and the groups so far; produces lists in a fixed order: groups
 * that compute what it reads, that read what it reads, or what it overwrites.
 */
#include "fuse/inner.h"

void near_add(choice *c, near_groups *all, fuse_group *g)
{
	for (int32_t i = 0; i < all->n; i++)
		if (all->at[i] == g)
			return;
	*vec_push(fuse_scratch(c->f), all) = g;
}

near_groups near_producers(choice *c, const eqn_unit *e)
{
	near_groups all = {0};

	for (int32_t i = 0; i < e->n_reads; i++) {
		int32_t m = fuse_maker(c->f, e->read[i].tensor);

		if (m >= 0 && m != e->source && c->f->unit[m] != NULL)
			near_add(c, &all, c->of[m]);
	}
	return all;
}

/* The latest groups that read what e reads. */
near_groups near_siblings(choice *c, const eqn_unit *e)
{
	near_groups all = {0};

	for (int32_t i = 0; i < e->n_reads; i++) {
		int32_t t = e->read[i].tensor, n = 0;

		for (int32_t k = c->readers[t].n - 1; k >= 0; k--) {
			fuse_group *g = c->of[c->readers[t].at[k]];

			if (g == NULL)
				continue;
			if (all.n == FUSE_MAX_TRIED || n++ == FUSE_MAX_TRIED)
				break;
			near_add(c, &all, g);
		}
	}
	return all;
}

/* Groups that read what e overwrites. */
near_groups near_overwritten(choice *c, const eqn_unit *e)
{
	const settled *q = c->f->w;
	near_groups all = {0};

	for (int32_t i = 0; i < q->readers_of[e->source].n; i++) {
		int32_t r = q->wait.at[q->readers_of[e->source].at[i]].reader;

		if (c->f->unit[r] != NULL && c->of[r] != NULL)
			near_add(c, &all, c->of[r]);
	}
	return all;
}

/*
 * The groups among these that compute a maximum, and those that these read for it: scores,
 * of which each is a product, the maximum of a row, and sums of its weights are one kernel
 * or three, and two of them would gain nothing.
 */
near_groups near_scores(choice *c, const near_groups *p)
{
	near_groups all = {0};

	for (int32_t i = 0; i < p->n; i++)
		for (int32_t k = 0; k < p->at[i]->source.n; k++) {
			const eqn_unit *u = c->f->unit[p->at[i]->source.at[k]];
			near_groups of;

			if (u == NULL || u->e.monoid != IR_MAX)
				continue;
			near_add(c, &all, p->at[i]);
			of = near_producers(c, u);
			for (int32_t j = 0; j < of.n; j++)
				near_add(c, &all, of.at[j]);
		}
	return all;
}

/* ---- squares ---- */

/* The number of the squares that e makes or reads (recompute.c); 0: none. */
static int32_t square_of(choice *c, const eqn_unit *e)
{
	int32_t n = c->f->s->eqn.at[e->source].square;

	for (int32_t i = 0; i < e->n_reads && n == 0; i++) {
		int32_t m = fuse_maker(c->f, e->read[i].tensor);

		n = m < 0 ? 0 : c->f->s->eqn.at[m].square;
	}
	return n;
}

static bool has_any(const near_groups *all, const near_groups *of)
{
	for (int32_t i = 0; i < all->n; i++)
		for (int32_t k = 0; k < of->n; k++)
			if (all->at[i] == of->at[k])
				return true;
	return false;
}

/* Adds groups of what a square reads that are made of what reads such squares: a value of
 * a row's maximum. */
static void add_between(choice *c, const eqn_unit *u, near_groups *all)
{
	near_groups from = near_producers(c, u);

	for (int32_t i = 0; i < from.n; i++)
		for (int32_t k = 0; k < from.at[i]->source.n; k++) {
			const eqn_unit *p = c->f->unit[from.at[i]->source.at[k]];
			near_groups of = {0};

			if (p != NULL)
				of = near_producers(c, p);
			if (has_any(all, &of))
				near_add(c, all, from.at[i]);
		}
}

near_groups near_squares(choice *c, const eqn_unit *e)
{
	near_groups all = {0};
	int32_t number = square_of(c, e);

	for (int32_t i = 0; i < c->f->s->eqn.n && number > 0; i++) {
		const eqn_unit *u = c->f->unit[i];

		if (u == NULL || c->of[i] == NULL || u == e ||
			sys_other_group(number, c->f->s->eqn.at[i].square))
			continue;
		if (square_of(c, u) == number)
			near_add(c, &all, c->of[i]);
	}
	for (int32_t i = 0; i < c->f->s->eqn.n && number > 0; i++)
		if (c->f->unit[i] != NULL && c->of[i] != NULL &&
			c->f->s->eqn.at[i].square == number)
			add_between(c, c->f->unit[i], &all);
	return all;
}
