/*
 * classes.c: finds the loops that the members of a set can share.
 *
 * Consumes a refined set; produces P: the classes of digits, one digit of each
 * member, that every read of every edge relates. At value v of such a loop, a
 * reader needs only results that its producers compute at v, so iterations are
 * independent: they can run in any order and on any thread.
 *
 *     s[i] += x[i,k]; o[i,j] = y[i,j] / s[i]   ->   P = { {s.i, o.i} }
 *
 * k is reduced, and elements of s have only its left axes: a reduced digit of a
 * producer is never related, so a reduction is final before its reader runs.
 */
#include "fuse/inner.h"

/* ---- union-find over (member, digit) ---- */

typedef struct finder {
	part_set *s;
	int32_t n, *up;
	int32_t *next;	 /* the digits of a class are a ring */
	int32_t *member; /* by digit */
	int32_t *marked, n_clashes; /* by member: the last clash that marked it */
} finder;

static int32_t find(finder *f, int32_t i)
{
	while (f->up[i] != i) {
		f->up[i] = f->up[f->up[i]];
		i = f->up[i];
	}
	return i;
}

static void join(finder *f, int32_t a, int32_t b)
{
	int32_t next;

	a = find(f, a);
	b = find(f, b);
	if (a == b)
		return;
	/* the smaller number leads, so that results do not depend on addresses */
	if (a < b)
		f->up[b] = a;
	else
		f->up[a] = b;
	next = f->next[a];
	f->next[a] = f->next[b];
	f->next[b] = next;
}

static int32_t digit_at(const part_member *m, const eqn_digit *d)
{
	for (int32_t i = 0; i < m->digit.n; i++) {
		const eqn_digit *e = &m->digit.at[i].d;

		if (e->axis == d->axis && e->lo == d->lo && e->hi == d->hi)
			return i;
	}
	return -1;
}

/*
 * Does the read use one value of the digit, and do the guards restrict digit k of
 * c to the same value?
 */
static bool is_pinned(fuse_state *f, part_set *s, const part_edge *e, int32_t i,
	int32_t k)
{
	const part_member *c = &s->m.at[e->c];
	const eqn_digit *p = &s->m.at[e->p].digit.at[i].d;
	const eqn_digit *d = &c->digit.at[k].d;
	const ix_dom *dom = &e->e->read->dom;
	const ix_form *q;
	int64_t min, max;

	if (s->m.at[e->p].u == NULL ||
		!part_is_left(s->m.at[e->p].u, p) || dom->n_facts == 0 || p->hi / p->lo != d->hi / d->lo ||
		(e->e->read->in_init &&
			(c->u->e.push != NULL || d->axis >= c->u->e.n_left)))
		return false;
	q = eqn_value(f->g, e->e, *p);
	if (q == NULL || q->n > 0)
		return false;
	ix_range(dom, ix_digit(f->s->x, dom, d->axis, d->lo, d->hi), &min,
		&max);
	return min == max && min == q->c0;
}

int32_t part_related(
	fuse_state *f, part_set *s, const part_edge *e, int32_t i)
{
	const part_member *p = &s->m.at[e->p];
	eqn_digit at;

	if (p->u != NULL && !part_is_left(p->u, &p->digit.at[i].d))
		return -1;
	if (eqn_relate(f->g, e->e, p->digit.at[i].d, &at))
		return digit_at(&s->m.at[e->c], &at);
	if (s->parts && eqn_relate_part(f->g, e->e, p->digit.at[i].d, &at))
		return digit_at(&s->m.at[e->c], &at);
	return -1;
}

bool part_agrees(fuse_state *f, part_set *s, const part_edge *e, int32_t i,
	int32_t k)
{
	return part_related(f, s, e, i) == k || is_pinned(f, s, e, i, k);
}

/* Have all digits of a class that extent, and different members than those that
 * this clash has marked? Marks them. */
static bool is_apart(finder *f, int32_t first, int64_t *extent, bool mark)
{
	const part_set *s = f->s;
	int32_t i = first;

	do {
		int32_t at = f->member[i];

		if (at < s->n) { /* outside tensors do not count */
			const part_member *m = &s->m.at[at];
			const eqn_digit *d = &m->digit.at[i - m->first].d;

			if (*extent != 0 && *extent != d->hi / d->lo)
				return false;
			*extent = d->hi / d->lo;
			if (mark)
				f->marked[at] = f->n_clashes;
			else if (f->marked[at] == f->n_clashes)
				return false;
		}
		i = f->next[i];
	} while (i != first);
	return true;
}

/* Would the union put two digits of a member, or two extents, in one class? */
static bool clash(finder *f, int32_t a, int32_t b)
{
	int64_t extent = 0;

	a = find(f, a);
	b = find(f, b);
	if (a == b)
		return true;
	f->n_clashes++;
	return !is_apart(f, a, &extent, true) ||
		!is_apart(f, b, &extent, false);
}

static void join_fixed(finder *f)
{
	part_set *s = f->s;

	for (int32_t i = 0; i < s->m.at[0].digit.n; i++) {
		int32_t var = s->m.at[0].digit.at[i].var;

		for (int32_t m = 1; var >= 0 && m < s->n; m++) {
			const part_member *q = &s->m.at[m];

			for (int32_t k = 0; k < q->digit.n; k++)
				if (q->digit.at[k].var == var)
					join(f, s->m.at[0].first + i,
						q->first + k);
		}
	}
}

/* Unites digits that guards fix; of several such axes only one. */
static void unite_pinned(fuse_state *f, finder *u)
{
	part_set *s = u->s;

	for (int32_t i = 0; i < s->edge.n; i++) {
		const part_edge *e = &s->edge.at[i];
		const part_member *p = &s->m.at[e->p], *c = &s->m.at[e->c];

		if (e->e->read->dom.n_facts == 0 || e->p == e->c)
			continue;
		for (int32_t k = 0; k < p->digit.n; k++)
			for (int32_t d = 0; d < c->digit.n; d++)
				if (find(u, p->first + k) !=
						find(u, c->first + d) &&
					is_pinned(f, s, e, k, d) &&
					!clash(u, p->first + k, c->first + d))
					join(u, p->first + k, c->first + d);
	}
}

static void unite(fuse_state *f, finder *u)
{
	part_set *s = u->s;

	if (!rule_dropped(f, FUSE_RULE_OUTER))
		join_fixed(u);
	for (int32_t i = 0; i < s->edge.n; i++) {
		const part_edge *e = &s->edge.at[i];
		const part_member *p = &s->m.at[e->p], *c = &s->m.at[e->c];

		for (int32_t k = 0; k < p->digit.n; k++) {
			int32_t d = part_related(f, s, e, k);

			if (d >= 0)
				join(u, p->first + k, c->first + d);
		}
	}
	unite_pinned(f, u);
	for (int32_t i = 0; i < s->soft.n; i++) {
		const part_edge *e = &s->soft.at[i];
		const part_member *p = &s->m.at[e->p], *c = &s->m.at[e->c];

		for (int32_t k = 0; k < p->digit.n; k++) {
			int32_t d = part_related(f, s, e, k);

			if (d >= 0 && !clash(u, p->first + k, c->first + d))
				join(u, p->first + k, c->first + d);
		}
	}
}

/* ---- the check ---- */

/* Does the edge relate the class? This is the test of legality. */
static bool edge_holds(
	fuse_state *f, part_set *s, const part_edge *e, const part_class *k)
{
	const part_member *p = &s->m.at[e->p];
	const eqn_digit *d = &p->digit.at[k->digit[e->p]].d;

	/* a scan reads its earlier results, in the order of the loop */
	if (e->p == e->c && !e->is_write &&
		p->u->e.axis[d->axis].kind == AXIS_S)
		return true;
	return part_agrees(f, s, e, k->digit[e->p], k->digit[e->c]);
}

/*
 * Sets the kind of the loop. false: scans in opposite directions; or a
 * contraction is reduced along it, which must stay one product instead of a sum
 * of outer products.
 */
static bool set_kind(part_set *s, part_class *k)
{
	bool reduced = false, scan = false, contracted = false;

	for (int32_t i = 0; i < s->n; i++) {
		const eqn_unit *u = s->m.at[i].u;
		const eqn_digit *d = &s->m.at[i].digit.at[k->digit[i]].d;

		if (u->e.axis[d->axis].kind == AXIS_S) {
			if (scan && k->step != u->e.scan_step)
				return false;
			scan = true;
			k->step = u->e.scan_step;
		} else if (!part_is_left(u, d)) {
			if (u->e.push != NULL)
				return false;
			reduced = true;
			contracted |= u->contraction;
		}
	}
	k->kind = scan ? AXIS_S : reduced ? AXIS_R : AXIS_P;
	return s->no_policy || !contracted || s->n == 1;
}

static bool class_holds(fuse_state *f, part_set *s, part_class *k)
{
	if (!set_kind(s, k))
		return false;
	for (int32_t i = 0; i < s->edge.n; i++) {
		if (rule_dropped(f, FUSE_RULE_READS))
			break;
		if (!edge_holds(f, s, &s->edge.at[i], k))
			return false;
	}
	return true;
}

/* Picks the digit of each member in the class of root; false: one has none. */
static bool pick(fuse_state *f, finder *u, int32_t root, part_class *k)
{
	part_set *s = u->s;
	bool is_new = false;

	for (int32_t i = 0; i < s->n; i++) {
		const part_member *m = &s->m.at[i];

		k->digit[i] = -1;
		for (int32_t j = 0; j < m->digit.n; j++) {
			if (find(u, m->first + j) != root)
				continue;
			if (m->digit.at[j].var >= 0 &&
				!rule_dropped(f, FUSE_RULE_OUTER))
				return false; /* an outer loop walks it already */
			is_new |= m->digit.at[j].var < 0;
			if (k->digit[i] < 0)
				k->digit[i] = j;
		}
		if (k->digit[i] < 0)
			return false;
	}
	return is_new;
}

static void find_classes(fuse_state *f, part_set *s)
{
	finder u = {.s = s};
	bool *done;

	s->class.n = 0;
	for (int32_t i = 0; i < s->m.n; i++) {
		s->m.at[i].first = u.n;
		u.n += s->m.at[i].digit.n;
	}
	u.up = arena_array(s->a, int32_t, u.n + 1);
	u.next = arena_array(s->a, int32_t, u.n + 1);
	u.member = arena_array(s->a, int32_t, u.n + 1);
	u.marked = arena_array(s->a, int32_t, s->m.n + 1);
	done = arena_array(s->a, bool, u.n + 1);
	for (int32_t i = 0; i < u.n; i++)
		u.up[i] = u.next[i] = i;
	for (int32_t i = 0; i < s->m.n; i++)
		for (int32_t k = 0; k < s->m.at[i].digit.n; k++)
			u.member[s->m.at[i].first + k] = i;
	unite(f, &u);
	for (int32_t i = 0; i < s->m.at[0].digit.n; i++) {
		int32_t root = find(&u, s->m.at[0].first + i);
		const eqn_digit *d = &s->m.at[0].digit.at[i].d;
		part_class k = {.extent = d->hi / d->lo};

		if (done[root])
			continue;
		done[root] = true;
		k.digit = arena_array(s->a, int32_t, s->n);
		if (pick(f, &u, root, &k) && class_holds(f, s, &k))
			*vec_push(s->a, &s->class) = k;
	}
}

/*
 * A scan is never cut. If cuts that only relate reads of outside tensors separate
 * it from its producers, undoes these cuts.
 */
static void take_back_cuts(fuse_state *f, part_set *s)
{
	for (int32_t i = 0; i < s->n; i++) {
		s->m.at[i].digit.n = 0;
		s->m.at[i].version++;
	}
	for (int32_t i = 0; i < s->n; i++)
		for (int32_t k = 0; k < s->uncut[i].n; k++)
			*vec_push(s->a, &s->m.at[i].digit) =
				s->uncut[i].at[k];
	s->soft.n = 0;
	s->uncut = NULL;
	find_classes(f, s);
}

/* Are all digits free, and do guards of some reader separate parts? */
static bool may_have_parts(const part_set *s)
{
	bool guarded = false;

	for (int32_t i = 0; i < s->edge.n; i++)
		guarded |= s->edge.at[i].e->read->dom.n_facts > 0;
	for (int32_t i = 0; i < s->n && guarded; i++)
		for (int32_t k = 0; k < s->m.at[i].digit.n; k++)
			guarded &= s->m.at[i].digit.at[k].var < 0;
	return guarded;
}

void part_classes(fuse_state *f, part_set *s)
{
	find_classes(f, s);
	if (s->class.n == 0 && s->uncut != NULL)
		take_back_cuts(f, s);
	/* last resort: one loop walks concatenated parts side by side */
	if (s->class.n > 0 || s->parts || !may_have_parts(s))
		return;
	s->parts = true;
	for (int32_t i = 0; i < s->n; i++)
		s->m.at[i].version++; /* edges may cut more now */
	part_refine(s);
	find_classes(f, s);
}

/* ---- questions ---- */

int32_t part_class_of(const part_set *s, int32_t m, int32_t digit)
{
	for (int32_t i = 0; i < s->class.n; i++)
		if (s->class.at[i].digit[m] == digit)
			return i;
	return -1;
}

bool part_form_uses(const ix_form *f, const eqn_digit *d)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind != IX_DIGIT) {
			if (part_form_uses(t->f, d))
				return true;
			continue;
		}
		if (t->axis == d->axis && t->lo < d->hi && t->hi > d->lo)
			return true;
	}
	return false;
}

const ix_term *part_fastest(const ix_form *at)
{
	const ix_term *best = NULL;

	for (int32_t i = 0; i < at->n; i++)
		if (at->t[i].atom->kind == IX_DIGIT && at->t[i].coef > 0 &&
			(best == NULL || at->t[i].coef < best->coef))
			best = &at->t[i];
	return best;
}

/* ---- loops ---- */

/* The member with the largest box, which determines the order of the loops. */
static int32_t reference(const part_set *s)
{
	int32_t best = 0;

	for (int32_t i = 1; i < s->n; i++)
		if (s->m.at[i].u->volume > s->m.at[best].u->volume)
			best = i;
	return best;
}

/* parallel loops are outermost, then scans, then loops that a member reduces */
static int32_t rank(const part_set *s, const part_class *k)
{
	bool reduced = false;

	if (k->kind == AXIS_P)
		return 0;
	for (int32_t i = 0; i < s->n; i++)
		reduced |= !part_is_left(
			s->m.at[i].u, &s->m.at[i].digit.at[k->digit[i]].d);
	return reduced ? 2 : 1;
}

static void sort_classes(part_set *s)
{
	int32_t ref = reference(s);

	for (int32_t i = 1; i < s->class.n; i++) {
		part_class k = s->class.at[i];
		int32_t j = i;

		while (j > 0) {
			const part_class *o = &s->class.at[j - 1];
			int32_t by = rank(s, o) - rank(s, &k);

			if (by < 0 || (by == 0 && o->digit[ref] < k.digit[ref]))
				break;
			s->class.at[j] = *o;
			j--;
		}
		s->class.at[j] = k;
	}
}

static bool one_axis(
	const part_set *s, const part_class *a, const part_class *b)
{
	if (a->kind == AXIS_S || b->kind == AXIS_S || rank(s, a) != rank(s, b))
		return false;
	for (int32_t i = 0; i < s->n; i++) {
		const part_member *m = &s->m.at[i];
		const eqn_digit *p = &m->digit.at[a->digit[i]].d;
		const eqn_digit *q = &m->digit.at[b->digit[i]].d;

		if (p->axis != q->axis || p->lo != q->hi)
			return false;
	}
	return true;
}

/* Joins b to a, digit by digit. */
static void take(part_set *s, part_class *a, const part_class *b)
{
	a->extent *= b->extent;
	for (int32_t i = 0; i < s->n; i++) {
		part_member *m = &s->m.at[i];
		int32_t at = b->digit[i];

		m->digit.at[a->digit[i]].d.lo = m->digit.at[at].d.lo;
		memmove(&m->digit.at[at], &m->digit.at[at + 1],
			(size_t)(m->digit.n - at - 1) * sizeof *m->digit.at);
		m->digit.n--;
		m->version++;
		for (int32_t k = 0; k < s->class.n; k++)
			if (s->class.at[k].digit[i] > at)
				s->class.at[k].digit[i]--;
	}
}

void part_join(part_set *s)
{
	sort_classes(s);
	for (int32_t i = 0; i + 1 < s->class.n;) {
		if (!one_axis(s, &s->class.at[i], &s->class.at[i + 1])) {
			i++;
			continue;
		}
		take(s, &s->class.at[i], &s->class.at[i + 1]);
		for (int32_t k = i + 1; k + 1 < s->class.n; k++)
			s->class.at[k] = s->class.at[k + 1];
		s->class.n--;
	}
}
