/*
 * analyse.c: cuts the digits of a set of equations as its edges need it.
 *
 * Consumes units; produces a set whose members have, for each axis, a chain of
 * digits, such that each digit of a producer is a digit of its readers, if the
 * cuts nest:
 *
 *     t[24] read at 6i + j (4 x 6)   ->   t is cut at 6: digits (6,24) (1,6)
 *     t[24] read at 4k + l as well   ->   refused: 4 does not divide 6
 *
 * A refused cut leaves digits unrelated, which is always correct.
 */
#include "fuse/inner.h"

enum { MAX_CUTS = 64 };

/* ---- making sets ---- */

static void add_edge(part_set *s, int32_t p, int32_t c, eqn_edge *e, bool write)
{
	*vec_push(s->a, &s->edge) = (part_edge){
		.p = p, .c = c, .e = e, .is_write = write};
}

/* Adds edges of members that overwrite what read r of member c reads. */
static void add_writes(fuse_state *f, part_set *s, int32_t c, int32_t read)
{
	const eqn_unit *u = s->m.at[c].u;
	const settled *w = f->w;
	int32_t t = u->read[read].tensor;

	if (w->version[t] < 0 || rule_dropped(f, FUSE_RULE_WRITES))
		return;
	for (int32_t i = 0; i < w->waits_of[u->source].n; i++) {
		const settle_wait *q =
			&w->wait.at[w->waits_of[u->source].at[i]];
		int32_t at = f->where[q->writer];

		if (q->tensor == t && at >= 0 && at != c)
			add_edge(s, at, c,
				eqn_join(f->g, s->m.at[at].u, u, read), true);
	}
}

static void add_edges(fuse_state *f, part_set *s)
{
	for (int32_t c = 0; c < s->n; c++) {
		const eqn_unit *u = s->m.at[c].u;

		for (int32_t i = 0; i < u->n_reads; i++) {
			int32_t p = fuse_maker(f, u->read[i].tensor);

			if (p >= 0 && f->where[p] >= 0)
				add_edge(s, f->where[p], c,
					eqn_join(f->g, s->m.at[f->where[p]].u,
						u, i),
					false);
			add_writes(f, s, c, i);
		}
	}
}

/* Adds outside tensors that are read twice: their readers may share loops. */
static void add_outside(fuse_state *f, part_set *s)
{
	map *seen = map_new(s->a);
	VEC(int32_t) count = {0};

	for (int32_t pass = 0; pass < 2; pass++) {
		for (int32_t c = 0; c < s->n; c++) {
			const eqn_unit *u = s->m.at[c].u;

			for (int32_t i = 0; i < u->n_reads; i++) {
				int32_t t = u->read[i].tensor;
				int32_t p = fuse_maker(f, t);
				int64_t n;

				if (p >= 0 && f->where[p] >= 0)
					continue;
				n = map_get(seen, &t, sizeof t, -1);
				if (n < 0) {
					n = count.n;
					map_set(seen, &t, sizeof t, n);
					*vec_push(s->a, &count) = 0;
				}
				if (pass == 0) {
					count.at[n]++;
					continue;
				}
				if (count.at[n] == 1)
					continue;
				if (count.at[n] > 0) {
					part_member *m = vec_push(s->a, &s->m);

					*m = (part_member){
						.number = -1, .version = 1};
					*vec_push(
						s->a, &m->digit) = (part_digit){
						.d = {.lo = 1,
							.hi = f->s->tensor.at[t]
								      .numel},
						.var = -1};
					count.at[n] = 1 - s->m.n;
				}
				*vec_push(s->a, &s->soft) = (part_edge){
					.p = -count.at[n],
					.c = c,
					.e = eqn_join(f->g, NULL, u, i)};
			}
		}
	}
}

part_set *part_new(fuse_state *f, arena *a, int32_t n, eqn_unit *const *unit)
{
	part_set *s = arena_make(a, part_set);

	s->a = a;
	s->n = n;
	for (int32_t i = 0; i < n; i++) {
		part_member *m = vec_push(a, &s->m);

		*m = (part_member){
			.u = unit[i], .number = i, .version = 1};
		for (int32_t k = 0; k < unit[i]->e.n_axes; k++)
			*vec_push(a, &m->digit) = (part_digit){
				.d = {.axis = k,
					.lo = 1,
					.hi = unit[i]->box.extent[k]},
				.var = -1};
		f->where[unit[i]->source] = i;
	}
	add_edges(f, s);
	add_outside(f, s);
	for (int32_t i = 0; i < n; i++)
		f->where[unit[i]->source] = -1;
	return s;
}

part_set *part_sub(fuse_state *f, arena *a, const part_set *s, int32_t n,
	const int32_t *which)
{
	part_set *r = arena_make(a, part_set);
	int32_t *to = arena_array(a, int32_t, s->m.n + 1);

	r->a = a;
	r->n = n;
	for (int32_t i = 0; i < s->m.n; i++)
		to[i] = -1;
	for (int32_t i = 0; i < n; i++) {
		part_member *m = vec_push(a, &r->m);
		const part_member *old = &s->m.at[which[i]];

		*m = (part_member){.u = old->u,
			.number = old->number,
			.version = old->version};
		vec_reserve(a, &m->digit, old->digit.n);
		for (int32_t k = 0; k < old->digit.n; k++)
			*vec_push(a, &m->digit) = old->digit.at[k];
		to[which[i]] = i;
		f->where[old->u->source] = i;
	}
	for (int32_t i = 0; i < s->edge.n; i++) {
		const part_edge *e = &s->edge.at[i];

		if (to[e->p] < 0 || to[e->c] < 0)
			continue;
		*vec_push(r->a, &r->edge) = *e; /* with its done_* */
		r->edge.at[r->edge.n - 1].p = to[e->p];
		r->edge.at[r->edge.n - 1].c = to[e->c];
	}
	add_outside(f, r);
	for (int32_t i = 0; i < n; i++)
		f->where[r->m.at[i].u->source] = -1;
	return r;
}

/* ---- refinement ---- */

static int64_t extent_of(const part_member *m, int32_t axis)
{
	return m->u == NULL ? m->digit.at[0].d.hi : m->u->box.extent[axis];
}

/* 0: it does not fit 64 bits */
static int64_t lcm(int64_t a, int64_t b)
{
	int64_t r;

	return mul_ok(a / gcd_i64(a, b), b, &r) ? r : 0;
}

/*
 * Cuts an axis at q if that fits its chain; true: it is a new cut. If q does not
 * fit, *next is the smallest multiple that does.
 */
static bool cut_at(
	part_set *s, part_member *m, int32_t axis, int64_t q, int64_t *next)
{
	if (m->u != NULL && m->u->e.axis[axis].kind == AXIS_S)
		return false;
	for (int32_t i = 0; i < m->digit.n; i++) {
		part_digit *d = &m->digit.at[i];
		int64_t lo = d->d.lo;

		if (d->d.axis != axis || q <= lo || q >= d->d.hi)
			continue;
		if (q % lo != 0)
			*next = lcm(q, lo);
		else if (d->d.hi % q != 0)
			*next = lcm(q, d->d.hi);
		if (d->var >= 0 || *next > 0)
			return false;
		(void)vec_push(s->a, &m->digit);
		memmove(&m->digit.at[i + 1], &m->digit.at[i],
			(size_t)(m->digit.n - 1 - i) * sizeof *m->digit.at);
		m->digit.at[i].d.lo = q;
		m->digit.at[i + 1].d.hi = q;
		m->version++;
		return true;
	}
	return false;
}

/*
 * For two cuts that do not nest, cuts at their least common multiple: rows of 100
 * and of 150 of one tensor share blocks of 300.
 */
static bool cut(part_set *s, part_member *m, int32_t axis, int64_t q)
{
	int64_t next = 0;

	while (!cut_at(s, m, axis, q, &next)) {
		if (next <= q)
			return false;
		q = next;
		next = 0;
	}
	return true;
}

/* The cut points of an axis in [lo, hi]. */
static int32_t cuts_of(const part_member *m, int32_t axis, int64_t lo,
	int64_t hi, int64_t *out)
{
	int32_t n = 0;

	for (int32_t i = 0; i < m->digit.n && n + 2 < MAX_CUTS; i++) {
		const eqn_digit *d = &m->digit.at[i].d;

		if (d->axis != axis)
			continue;
		if (n == 0 && d->hi >= lo && d->hi <= hi)
			out[n++] = d->hi;
		if (d->lo >= lo && d->lo <= hi)
			out[n++] = d->lo;
	}
	return n;
}

/* One term k * digit(v, lo, hi) of coordinate a of p at a read of c. */
static bool refine_term(part_set *s, part_member *p, int32_t a, part_member *c,
	int64_t k, const ix_atom *t)
{
	int64_t q[MAX_CUTS], e = t->hi / t->lo, at, top;
	bool changed = false;
	int32_t n;

	changed |= cut(s, c, t->axis, t->lo);
	if (t->hi != extent_of(c, t->axis))
		changed |= cut(s, c, t->axis, t->hi);
	if (k <= 0)
		return changed;
	n = cuts_of(c, t->axis, t->lo, t->hi, q);
	for (int32_t i = 0; i < n; i++)
		if (q[i] % t->lo == 0 && mul_ok(k, q[i] / t->lo, &at))
			changed |= cut(s, p, a, at);
	if (!mul_ok(k, e, &top))
		return changed;
	n = cuts_of(p, a, k, top, q);
	for (int32_t i = 0; i < n; i++)
		if (q[i] > k && q[i] < top && q[i] % k == 0)
			changed |= cut(s, c, t->axis, t->lo * (q[i] / k));
	return changed;
}

/* Parts of equal length, concatenated: see eqn_relate_part. */
static bool refine_part(part_set *s, const part_member *p, int32_t a,
	part_member *c, const ix_form *f)
{
	int64_t n = extent_of(p, a), top;
	const ix_atom *t = f->n == 1 ? f->t[0].atom : NULL;

	if (p->u == NULL || t == NULL || t->kind != IX_DIGIT ||
		f->t[0].coef != 1 || f->c0 % n != 0 ||
		t->hi / t->lo <= n || !mul_ok(t->lo, n, &top))
		return false;
	return cut(s, c, t->axis, top);
}

static bool refine_edge(part_set *s, const part_edge *e)
{
	part_member *p = &s->m.at[e->p], *c = &s->m.at[e->c];
	bool changed = false;

	/* over the flat result of a scatter, which has no axes to cut */
	if (e->e->read->in_init && c->u->e.push != NULL)
		return false;
	for (int32_t a = 0; a < e->e->n_x; a++) {
		const ix_form *f = e->e->x[a];

		if (f == NULL)
			continue;
		changed |= s->parts && refine_part(s, p, a, c, f);
		for (int32_t i = 0; i < f->n; i++)
			if (f->t[i].atom->kind == IX_DIGIT)
				changed |= refine_term(
					s, p, a, c, f->t[i].coef, f->t[i].atom);
	}
	return changed;
}

/*
 * A shift does not change lower digits. Shifts are considered after all terms (in
 * 5*i + 4 - j, 4 is not a shift), and only if they nest: an offset of 512 is not
 * a row, and cutting rows of 768 at 1536 would cut their loops in pairs.
 */
static bool refine_shift(part_set *s, const part_edge *e)
{
	part_member *p = &s->m.at[e->p];
	bool changed = false;

	if (e->e->read->in_init && s->m.at[e->c].u->e.push != NULL)
		return false;
	for (int32_t a = 0; a < e->e->n_x; a++) {
		const ix_form *f = e->e->x[a];
		int64_t shift, next = 0;

		if (f == NULL || f->c0 == 0)
			continue;
		shift = gcd_i64(f->c0, extent_of(p, a));
		if (shift > 1)
			changed |= cut_at(s, p, a, shift, &next);
	}
	return changed;
}

/* Keeps the digits as cut by reads between members, if the set has a scan. */
static void keep_uncut(part_set *s)
{
	bool scan = false;

	for (int32_t i = 0; i < s->n; i++)
		scan |= s->m.at[i].u->has_scan;
	if (!scan || s->uncut != NULL || s->soft.n == 0)
		return;
	s->uncut = arena_alloc(s->a, (size_t)s->n, sizeof *s->uncut);
	for (int32_t i = 0; i < s->n; i++)
		for (int32_t k = 0; k < s->m.at[i].digit.n; k++)
			*vec_push(s->a, &s->uncut[i]) = s->m.at[i].digit.at[k];
}

/*
 * Refines by terms first, and by shifts when terms cut nothing more. The cuts of
 * an edge depend only on the digits of its members: an edge that cut nothing is
 * tried again only after they change.
 */
static bool refine_edges(part_set *s, int32_t n, part_edge *e)
{
	bool changed = false;

	for (int32_t i = 0; i < n; i++) {
		int32_t p = s->m.at[e[i].p].version;
		int32_t c = s->m.at[e[i].c].version;

		if (e[i].done_p == p && e[i].done_c == c)
			continue;
		if (refine_edge(s, &e[i])) {
			changed = true;
		} else {
			e[i].done_p = p;
			e[i].done_c = c;
		}
	}
	for (int32_t i = 0; i < n && !changed; i++) {
		int32_t p = s->m.at[e[i].p].version;

		if (e[i].done_shift == p)
			continue;
		changed = refine_shift(s, &e[i]);
		e[i].done_shift = changed ? 0 : p;
	}
	return changed;
}

void part_refine(part_set *s)
{
	bool changed = true;

	while (changed) {
		/* edges between members first: those of outside tensors must not prevent cuts */
		changed = refine_edges(s, s->edge.n, s->edge.at);
		if (changed)
			continue;
		keep_uncut(s);
		changed = refine_edges(s, s->soft.n, s->soft.at);
	}
}
