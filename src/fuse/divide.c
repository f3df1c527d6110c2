/*
 * divide.c: divides the members of a set into the loop nests of a tree.
 *
 * Consumes a set without further loops that all members share; produces groups
 * of members that share loops, in an order that their edges allow.
 *
 *     for i { m; s; o }, over j each   ->   {m}, {s}, {o}: m and s end before
 *     they are read
 *
 * The trees of similar sets ask for the same groups again and again, so the
 * number of iterations that members share is kept in a memo of bounded size.
 */
#include "fuse/inner.h"

/* Of the answers that are kept. */
enum { MEMO_BYTES = 1 << 20 };

typedef part_group group;

typedef struct grouping {
	fuse_state *f;
	arena *a;
	part_set *s;
	int32_t n_vars;
	part_groups at;
	int32_t *of; /* by member */
	int32_t *number; /* by member: that of the memo, if there is one */
	int32_t *key;	 /* scratch of shared() */
} grouping;

static bool has_free(const part_member *m)
{
	for (int32_t i = 0; i < m->digit.n; i++)
		if (m->digit.at[i].var < 0)
			return true;
	return false;
}

/*
 * Numbers the members by all on which the loops that they share depend: the unit,
 * its digits, and which digits the loops around walk together.
 */
static void number_members(grouping *w)
{
	const part_set *s = w->s;
	fuse_memo *m = w->f->memo;
	int32_t *number = arena_array(w->a, int32_t, w->n_vars + 1);
	int32_t n_vars = 0;

	if (m == NULL)
		return;
	if (m->shared == NULL || arena_bytes(m->a) > MEMO_BYTES) {
		arena_clear(m->a);
		m->shared = map_new(m->a);
		m->member = map_new(m->a);
	}
	w->number = arena_array(w->a, int32_t, s->n + 1);
	w->key = arena_array(w->a, int32_t, s->n + 1);
	for (int32_t i = 0; i < s->n; i++) {
		const part_member *p = &s->m.at[i];
		int64_t *key = arena_array(
			w->a, int64_t, 1 + 3 * p->digit.n);
		int32_t n = 0;

		key[n++] = p->u->id;
		for (int32_t k = 0; k < p->digit.n; k++) {
			const part_digit *d = &p->digit.at[k];
			int32_t var = d->var < 0 ? 0 : number[d->var];

			if (d->var >= 0 && var == 0)
				var = number[d->var] = ++n_vars;
			key[n++] = (int64_t)var << 32 | d->d.axis;
			key[n++] = d->d.lo;
			key[n++] = d->d.hi;
		}
		w->number[i] = map_number(m->member, key, (size_t)n * sizeof *key);
	}
}

/* Does the read depend on a left digit of m that no class has, nor a loop around? */
static bool has_own_left(const part_set *s, int32_t m, const ix_form *at)
{
	const part_member *p = &s->m.at[m];

	for (int32_t i = 0; i < p->digit.n; i++) {
		const part_digit *d = &p->digit.at[i];

		if (d->var < 0 && part_is_left(p->u, &d->d) &&
			part_class_of(s, m, i) < 0 && part_form_uses(at, &d->d))
			return true;
	}
	return false;
}

/*
 * Would a member add up along a shared loop, and read a tensor across its rows in
 * a loop inside? Scores of one query, s[j] += q[d] * k[j,d], with what computes q:
 *
 *     for d { q; for j { s[j] += q * k[j,d] } }   jumps from row to row
 *     for d { q[d] }; for j { for d { s[j] += q[d] * k[j,d] } }   walks rows
 */
static bool walks_across(const part_set *s)
{
	for (int32_t k = 0; k < s->class.n; k++)
		for (int32_t m = 0; m < s->n; m++) {
			const eqn_unit *u = s->m.at[m].u;
			const eqn_digit *d =
				&s->m.at[m].digit.at[s->class.at[k].digit[m]].d;

			if (part_is_left(u, d) || u->e.monoid == IR_SET)
				continue;
			for (int32_t i = 0; i < u->n_reads; i++) {
				const ix_term *t = part_fastest(u->read[i].at);

				if (t != NULL && t->atom->axis == d->axis &&
					t->atom->lo == d->lo &&
					has_own_left(s, m, u->read[i].at))
					return true;
			}
		}
	return false;
}

static int64_t analyse_shared(grouping *w, int32_t n, const int32_t *member)
{
	part_set *s = part_sub(w->f, w->a, w->s, n, member);
	int64_t product = 1;

	part_refine(s);
	part_classes(w->f, s);
	if (walks_across(s))
		return 1;
	for (int32_t i = 0; i < s->class.n; i++)
		product *= s->class.at[i].extent;
	return product;
}

/* The iterations of the further loops that these members share. */
static int64_t shared(grouping *w, int32_t n, const int32_t *member)
{
	fuse_memo *memo = w->f->memo;
	size_t n_bytes = (size_t)n * sizeof *w->key;
	int64_t product;

	for (int32_t i = 0; i < n; i++)
		if (!has_free(&w->s->m.at[member[i]]))
			return 1;
	if (memo == NULL)
		return analyse_shared(w, n, member);
	for (int32_t i = 0; i < n; i++)
		w->key[i] = w->number[member[i]];
	product = map_get(memo->shared, w->key, n_bytes, -1);
	if (product < 0) {
		product = analyse_shared(w, n, member);
		w->f->work->n_shared++;
		map_set(memo->shared, w->key, n_bytes, product);
	}
	return product;
}

static bool read_the_same(const eqn_unit *u, const eqn_unit *v)
{
	for (int32_t i = 0; i < u->n_reads; i++)
		for (int32_t k = 0; k < v->n_reads; k++)
			if (u->read[i].tensor == v->read[k].tensor)
				return true;
	return false;
}

/* Does an edge or a tensor that both read lead from these members to those?
 * Else no loop can be one of both: it takes no analysis to know. */
static bool are_tied(const grouping *w, const group *g, const group *h)
{
	const part_set *s = w->s;
	uint8_t *side = arena_array(w->a, uint8_t, s->n + 1);

	for (int32_t i = 0; i < g->member.n; i++)
		side[g->member.at[i]] = 1;
	for (int32_t i = 0; i < h->member.n; i++)
		side[h->member.at[i]] = 2;
	for (int32_t i = 0; i < s->edge.n; i++)
		if (side[s->edge.at[i].p] + side[s->edge.at[i].c] == 3)
			return true;
	for (int32_t i = 0; i < g->member.n; i++)
		for (int32_t k = 0; k < h->member.n; k++)
			if (read_the_same(s->m.at[g->member.at[i]].u,
				    s->m.at[h->member.at[k]].u))
				return true;
	return false;
}

/* The most that loops of the member can share: those that are not open. */
static int64_t free_volume(const part_member *m)
{
	int64_t n = 1;

	for (int32_t i = 0; i < m->digit.n; i++)
		if (m->digit.at[i].var < 0)
			n *= m->digit.at[i].d.hi / m->digit.at[i].d.lo;
	return n;
}

static void place(grouping *w, int32_t m)
{
	int32_t best = -1, from = 0;
	int64_t gain = 1, most = free_volume(&w->s->m.at[m]);
	group own = {0};

	*vec_push(w->a, &own.member) = m;

	for (int32_t i = 0; i < w->s->edge.n; i++) {
		const part_edge *e = &w->s->edge.at[i];
		int32_t first = e->is_write ? e->c : e->p;
		int32_t second = e->is_write ? e->p : e->c;

		if (second == m && first < m && w->of[first] > from)
			from = w->of[first];
	}
	for (int32_t g = from; g < w->at.n && gain < most; g++) {
		group *o = &w->at.at[g];
		int64_t now;

		if (!are_tied(w, o, &own))
			continue;
		*vec_push(w->a, &o->member) = m;
		now = shared(w, o->member.n, o->member.at);
		o->member.n--;
		if (now > gain) {
			gain = now;
			best = g;
		}
	}
	if (best < 0) {
		best = w->at.n;
		*vec_push(w->a, &w->at) = (group){0};
	}
	*vec_push(w->a, &w->at.at[best].member) = m;
	w->of[m] = best;
}

/* after[g * n + h]: some member of group g comes after one of group h */
static bool *group_order(grouping *w)
{
	int32_t n = w->at.n;
	bool *after = arena_array(w->a, bool, n *n + 1);

	for (int32_t i = 0; i < w->s->edge.n; i++) {
		const part_edge *e = &w->s->edge.at[i];
		int32_t first = w->of[e->is_write ? e->c : e->p];
		int32_t second = w->of[e->is_write ? e->p : e->c];

		if (first != second)
			after[second * n + first] = true;
	}
	return after;
}

/* Can group l run where k is (up), or k where l is? */
static bool may_move(
	const grouping *w, const bool *after, int32_t k, int32_t l, bool up)
{
	int32_t n = w->at.n;

	for (int32_t m = k + 1; m < l; m++) {
		if (w->at.at[m].gone)
			continue;
		if (up ? after[l * n + m] : after[m * n + k])
			return false;
	}
	return true;
}

/* Updates the order after group `from` was merged into `into`. */
static void take_over(bool *after, int32_t n, int32_t into, int32_t from)
{
	for (int32_t m = 0; m < n; m++) {
		after[into * n + m] |= after[from * n + m];
		after[m * n + into] |= after[m * n + from];
	}
	after[into * n + into] = false;
}

/* the members of k and l, in order */
static void unite(grouping *w, int32_t k, int32_t l, group *out)
{
	const group *p = &w->at.at[k], *q = &w->at.at[l];
	int32_t i = 0, j = 0;

	*out = (group){0};
	while (i < p->member.n || j < q->member.n) {
		bool first = j == q->member.n ||
			     (i < p->member.n &&
				     p->member.at[i] < q->member.at[j]);

		*vec_push(w->a, &out->member) =
			first ? p->member.at[i++] : q->member.at[j++];
	}
}

static bool group_free(const grouping *w, int32_t g)
{
	const group *o = &w->at.at[g];

	for (int32_t i = 0; i < o->member.n; i++)
		if (!has_free(&w->s->m.at[o->member.at[i]]))
			return false;
	return true;
}

static void merge_groups(grouping *w)
{
	bool *after = group_order(w);

	for (int32_t k = 0; k < w->at.n; k++) {
		for (int32_t l = k + 1; l < w->at.n; l++) {
			bool up, down;
			group both;

			if (w->at.at[k].gone || w->at.at[l].gone ||
				!group_free(w, k) || !group_free(w, l) ||
				!are_tied(w, &w->at.at[k], &w->at.at[l]))
				continue;
			up = may_move(w, after, k, l, true);
			down = !up && may_move(w, after, k, l, false);
			if (!up && !down)
				continue;
			unite(w, k, l, &both);
			if (shared(w, both.member.n, both.member.at) <= 1)
				continue;
			w->at.at[up ? k : l] = both;
			w->at.at[up ? l : k].gone = true;
			take_over(after, w->at.n, up ? k : l, up ? l : k);
		}
	}
}

part_groups part_divide(fuse_state *f, arena *a, part_set *s, int32_t n_vars)
{
	grouping w = {.f = f, .a = a, .s = s, .n_vars = n_vars};

	w.of = arena_array(a, int32_t, s->n);
	number_members(&w);
	for (int32_t m = 0; m < s->n; m++)
		place(&w, m);
	merge_groups(&w);
	return w.at;
}
