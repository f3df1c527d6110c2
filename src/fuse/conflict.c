/*
 * conflict.c: finds a few equations that share no loop, and where each loop ends.
 *
 * Consumes members that cannot be one kernel; produces a small set of them,
 * connected by reads and overwrites, that share no loop, and for each digit of
 * one of them the read at which it ends:
 *
 *     s[i] += x[i,k]; o[i,j] = y[i,j] / s[j]
 *     {s, o}; i of s is j of o: a loop, unless o also reads s[i]:
 *     then i ends there, as o reads s at [j] and at [i]
 *
 * The set is minimal: an edge, or a set from which no member can be removed.
 */
#include "fuse/conflict.h"

/* ---- sets ---- */

/* Is it a single element, without loops? */
static bool is_single(const eqn_unit *u)
{
	return u->volume == 1;
}

static part_set *analysed(hunt *h, int32_t n, eqn_unit *const *unit)
{
	part_set *s = part_new(h->f, h->a, n, unit);

	part_refine(s);
	part_classes(h->f, s);
	return s;
}

static bool tied(const fuse_state *f, const eqn_unit *a, const eqn_unit *b)
{
	const settled *w = f->w;

	for (int32_t i = 0; i < b->n_reads; i++)
		if (fuse_maker(f, b->read[i].tensor) == a->source)
			return true;
	for (int32_t i = 0; i < w->waits_of[b->source].n; i++)
		if (w->wait.at[w->waits_of[b->source].at[i]].writer ==
			a->source)
			return true;
	return false;
}

/* Numbers the connected parts of a set; returns their number. */
static int32_t components(
	hunt *h, int32_t n, eqn_unit *const *unit, int32_t *of)
{
	int32_t count = 0;
	bool changed = true;

	for (int32_t i = 0; i < n; i++)
		of[i] = i;
	while (changed) {
		changed = false;
		for (int32_t i = 0; i < n; i++)
			for (int32_t k = 0; k < n; k++)
				if (of[i] < of[k] &&
					(tied(h->f, unit[i], unit[k]) ||
						tied(h->f, unit[k], unit[i]))) {
					of[k] = of[i];
					changed = true;
				}
	}
	for (int32_t i = 0; i < n; i++)
		count += of[i] == i;
	return count;
}

static bool is_one(hunt *h, int32_t n, eqn_unit *const *unit)
{
	return components(h, n, unit, arena_array(h->a, int32_t, n + 1)) == 1;
}

static bool clashes(hunt *h, int32_t n, eqn_unit *const *unit)
{
	int32_t loops = 0;

	for (int32_t i = 0; i < n; i++)
		loops += !is_single(unit[i]);
	return loops > 0 && analysed(h, n, unit)->class.n == 0;
}

/* Finds an edge whose two ends share no loop, first the one to explain. */
static int32_t find_pair(hunt *h, eqn_unit **out)
{
	for (int32_t pass = 0; pass < 2; pass++) {
		for (int32_t i = 0; i < h->n; i++) {
			for (int32_t k = 0; k < h->n; k++) {
				eqn_unit *two[2] = {h->unit[i], h->unit[k]};
				bool asked = two[0]->source == h->from &&
					     two[1]->source == h->to;

				if (i == k || asked != (pass == 0) ||
					is_single(two[1]) ||
					!tied(h->f, two[0], two[1]) ||
					!clashes(h, 2, two))
					continue;
				out[0] = h->unit[i < k ? i : k];
				out[1] = h->unit[i < k ? k : i];
				return 2;
			}
		}
	}
	return 0;
}

/* Removes members without which the rest still shares no loop. */
static int32_t shrink(hunt *h, int32_t n, eqn_unit **unit)
{
	eqn_unit **less = arena_array(h->a, eqn_unit *, n + 1);

	for (int32_t pass = 0; pass < 2; pass++) {
		for (int32_t i = n - 1; i >= 0 && n > 2; i--) {
			bool asked = unit[i]->source == h->from ||
				     unit[i]->source == h->to;
			int32_t m = 0;

			if (asked != (pass == 1))
				continue;
			for (int32_t k = 0; k < n; k++)
				if (k != i)
					less[m++] = unit[k];
			if (!is_one(h, m, less) || !clashes(h, m, less))
				continue;
			memcpy(unit, less, (size_t)m * sizeof *unit);
			n = m;
		}
	}
	return n;
}

/* Finds a connected part that shares no loop; 0: each shares one. */
static int32_t find_part(hunt *h, eqn_unit **out)
{
	int32_t *of = arena_array(h->a, int32_t, h->n + 1);
	int32_t count = components(h, h->n, h->unit, of);

	for (int32_t i = 0; i < h->n; i++) {
		int32_t n = 0;

		for (int32_t k = i; k < h->n; k++)
			if (of[k] == i)
				out[n++] = h->unit[k];
		if (n > 1 && (count == 1 || clashes(h, n, out)))
			return shrink(h, n, out);
	}
	return 0;
}

/* ---- where a digit ends ---- */

static bool reduces(const eqn_unit *u)
{
	return u->e.n_axes > u->e.n_left || u->e.push != NULL;
}

static bool uses(const ix_form *f, const eqn_digit *d)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind != IX_DIGIT ? uses(t->f, d)
					: t->axis == d->axis && t->lo < d->hi &&
						  t->hi > d->lo)
			return true;
	}
	return false;
}

static fuse_why of_verdict(eqn_verdict v, const eqn_unit *p)
{
	switch (v) {
	case EQN_FREE:
		return reduces(p) || p->has_scan ? FUSE_WHY_COMPLETION
						 : FUSE_WHY_FREE;
	case EQN_SHIFT:
		return FUSE_WHY_SHIFT;
	case EQN_REVERSED:
		return FUSE_WHY_REVERSED;
	case EQN_OPAQUE:
		return FUSE_WHY_OPAQUE;
	case EQN_RELATED:
	case EQN_MISALIGNED:
		break;
	}
	return FUSE_WHY_MISALIGNED;
}

static fuse_site place_of(const hunt *h, const part_edge *e)
{
	return (fuse_site){.writer = h->s->m.at[e->p].u->source,
		.reader = h->s->m.at[e->c].u->source,
		.tensor = e->e->read->tensor,
		.at = e->e->read->at,
		.is_write = e->is_write,
		.in_init = e->e->read->in_init};
}

static bool has_floor(const ix_form *f)
{
	for (int32_t i = 0; i < f->n; i++)
		if (f->t[i].atom->kind == IX_FLOOR)
			return true;
	return false;
}

/* Digit k of member m ends at edge e. */
static fuse_end end_of(const hunt *h, const part_edge *e, int32_t m, int32_t k,
	fuse_why why)
{
	const eqn_digit *d = &h->s->m.at[m].digit.at[k].d;
	bool floors = false;

	for (int32_t i = 0; i < e->e->n_x; i++)
		floors |= e->e->x[i] != NULL && has_floor(e->e->x[i]);
	return (fuse_end){.is_unproved = floors,
		.why = e->is_write ? FUSE_WHY_OVERWRITE : why,
		.read = place_of(h, e),
		.other.reader = -1,
		.eqn = h->s->m.at[m].u->source,
		.axis = d->axis,
		.lo = d->lo,
		.hi = d->hi};
}

static fuse_why why_of_writer(const hunt *h, const part_edge *e, int32_t k)
{
	const eqn_unit *p = h->s->m.at[e->p].u;
	eqn_digit d = h->s->m.at[e->p].digit.at[k].d;

	if (!part_is_left(p, &d))
		return FUSE_WHY_COMPLETION;
	return of_verdict(eqn_judge(h->f->g, e->e, d), p);
}

/* The reason why the writer has no digit that is digit k of the reader. */
static fuse_why why_of_reader(const hunt *h, const part_edge *e, int32_t k)
{
	const part_member *p = &h->s->m.at[e->p];
	eqn_digit of = h->s->m.at[e->c].digit.at[k].d;
	fuse_why why = FUSE_WHY_MISALIGNED;
	bool found = false;

	for (int32_t a = 0; a < e->e->n_x; a++) {
		if (e->e->x[a] == NULL)
			return reduces(p->u) ? FUSE_WHY_COMPLETION
					     : FUSE_WHY_OPAQUE;
		found |= uses(e->e->x[a], &of);
	}
	if (!found)
		return reduces(p->u) ? FUSE_WHY_COMPLETION : FUSE_WHY_FREE;
	found = false;
	for (int32_t i = 0; i < p->digit.n && !found; i++) {
		eqn_digit d = p->digit.at[i].d;
		const ix_form *q;

		if (!part_is_left(p->u, &d))
			continue;
		q = eqn_value(h->f->g, e->e, d);
		found = q != NULL && uses(q, &of);
		if (found)
			why = of_verdict(eqn_judge(h->f->g, e->e, d), p->u);
	}
	return why;
}

static int32_t pinned(const hunt *h, const part_edge *e, int32_t k)
{
	for (int32_t d = 0; d < h->s->m.at[e->c].digit.n; d++)
		if (part_agrees(h->f, h->s, e, k, d))
			return d;
	return -1;
}

/* Would it not end here if the reader's loop were not cut? */
static bool is_cut(const hunt *h, const part_edge *e, int32_t k)
{
	const part_member *p = &h->s->m.at[e->p];
	eqn_digit at;

	return part_is_left(p->u, &p->digit.at[k].d) &&
	       eqn_relate(h->f->g, e->e, p->digit.at[k].d, &at);
}

/* .. if the writer's, a scan, were cut? */
static bool writer_is_cut(const hunt *h, const part_edge *e, int32_t k)
{
	const part_member *p = &h->s->m.at[e->p];
	const eqn_digit *of = &h->s->m.at[e->c].digit.at[k].d;

	for (int32_t a = 0; a < p->u->e.n_left; a++) {
		eqn_digit at, d = {.axis = a, .lo = 1,
			.hi = p->u->box.extent[a]};

		if (part_is_left(p->u, &d) &&
			eqn_relate(h->f->g, e->e, d, &at) &&
			at.axis == of->axis && at.lo <= of->lo &&
			at.hi >= of->hi)
			return true;
	}
	return false;
}

typedef enum step { STAYS, MOVES, ENDS } step;

static step along(hunt *h, const part_edge *e, fuse_end *out)
{
	const part_member *p = &h->s->m.at[e->p];
	int32_t *dp = &h->digit[e->p], *dc = &h->digit[e->c], d;

	if (*dp >= 0) {
		if (e->p == e->c && !e->is_write &&
			p->u->e.axis[p->digit.at[*dp].d.axis].kind == AXIS_S)
			return STAYS;
		d = part_related(h->f, h->s, e, *dp);
		if (d < 0 && e->p != e->c)
			d = pinned(h, e, *dp);
		if (d < 0 || (e->p == e->c && !part_agrees(h->f, h->s, e, *dp,
							*dp))) {
			*out = end_of(h, e, e->p, *dp, why_of_writer(h, e, *dp));
			out->is_cut = is_cut(h, e, *dp);
			return ENDS;
		}
		if (*dc >= 0 && part_agrees(h->f, h->s, e, *dp, *dc))
			return STAYS;
		if (*dc >= 0) {
			const part_edge *o = h->via[e->c] != NULL
						     ? h->via[e->c]
						     : h->via[e->p];

			*out = end_of(h, e, e->p, *dp, FUSE_WHY_SEVERAL);
			out->other = place_of(h, o);
			return ENDS;
		}
		*dc = d;
		h->via[e->c] = e;
		return MOVES;
	}
	if (*dc < 0)
		return STAYS;
	for (int32_t k = 0; k < p->digit.n; k++) {
		if (!part_agrees(h->f, h->s, e, k, *dc))
			continue;
		*dp = k;
		h->via[e->p] = e;
		return MOVES;
	}
	*out = end_of(h, e, e->c, *dc, why_of_reader(h, e, *dc));
	out->is_cut = writer_is_cut(h, e, *dc);
	return ENDS;
}

/* All reads relate the digits, but their kinds exclude a shared loop. */
static void kind_end(hunt *h, fuse_end *out)
{
	int32_t scan = 0;

	for (int32_t m = 0; m < h->s->n; m++) {
		const eqn_unit *u = h->s->m.at[m].u;
		const eqn_digit *d;
		fuse_end e;

		if (h->digit[m] < 0) /* no read relates it */
			continue;
		d = &h->s->m.at[m].digit.at[h->digit[m]].d;
		e = (fuse_end){.eqn = u->source,
			.axis = d->axis,
			.lo = d->lo,
			.hi = d->hi,
			.read = {.writer = u->source, .reader = u->source,
				.tensor = u->e.out[0]},
			.other.reader = -1};
		if (u->e.axis[d->axis].kind == AXIS_S) {
			e.why = FUSE_WHY_REVERSED;
			if (scan == -u->e.scan_step)
				*out = e;
			scan = u->e.scan_step;
		} else if (!part_is_left(u, d)) {
			e.why = u->e.push != NULL ? FUSE_WHY_COMPLETION
						  : FUSE_WHY_POLICY;
			if (u->e.push != NULL || u->contraction)
				*out = e;
		}
	}
}

/* Where digit k of member r ends. */
static fuse_end trace(hunt *h, int32_t r, int32_t k)
{
	const eqn_digit *d = &h->s->m.at[r].digit.at[k].d;
	fuse_end out = {.why = FUSE_WHY_SEVERAL,
		.read.reader = -1,
		.other.reader = -1,
		.eqn = h->s->m.at[r].u->source,
		.axis = d->axis,
		.lo = d->lo,
		.hi = d->hi};
	bool moved = true;

	for (int32_t m = 0; m < h->s->n; m++) {
		h->digit[m] = -1;
		h->via[m] = NULL;
	}
	h->digit[r] = k;
	while (moved) {
		moved = false;
		for (int32_t i = 0; i < h->s->edge.n; i++) {
			step s = along(h, &h->s->edge.at[i], &out);

			if (s == ENDS)
				return out;
			moved |= s == MOVES;
		}
	}
	kind_end(h, &out);
	return out;
}

/*
 * All iterations need a single element. If it is computed from a reduction, that
 * reduction is the reason.
 */
static void find_origin(const hunt *h, fuse_end *e)
{
	const eqn_unit *u = h->f->unit[e->read.writer];
	bool moved = e->why == FUSE_WHY_FREE;

	if (!moved)
		return;
	while (moved && is_single(u) && !reduces(u)) {
		moved = false;
		for (int32_t k = 0; k < h->n && !moved; k++) {
			const eqn_unit *q = h->unit[k];

			for (int32_t i = 0; i < u->n_reads && !moved; i++) {
				if (fuse_maker(h->f, u->read[i].tensor) !=
					q->source)
					continue;
				e->other = (fuse_site){.writer = q->source,
					.reader = u->source,
					.tensor = u->read[i].tensor,
					.at = u->read[i].at};
				moved = true;
			}
			u = moved ? q : u;
		}
	}
	if (e->other.reader >= 0 && reduces(u))
		e->why = FUSE_WHY_COMPLETION;
	else
		e->other.reader = -1;
}

/* The member with the fewest digits, but at least one; -1: none. */
static int32_t reference(const part_set *s)
{
	int32_t best = -1;

	for (int32_t m = 0; m < s->n; m++)
		if (s->m.at[m].digit.n > 0 &&
			(best < 0 ||
				s->m.at[m].digit.n < s->m.at[best].digit.n))
			best = m;
	return best;
}

/* ---- all ---- */

static void fill(hunt *h, int32_t n, eqn_unit **set, fuse_reason *r)
{
	arena *a = h->f->a;
	int32_t m;

	h->s = analysed(h, n, set);
	h->digit = arena_array(h->a, int32_t, n + 1);
	h->via = arena_array(h->a, const part_edge *, n + 1);
	m = reference(h->s);
	if (m < 0) {
		r->why = FUSE_WHY_POLICY;
		r->text = arena_printf(a,
			"they share no loop, and only kernels of at most %lld "
			"elements do without one",
			(long long)h->f->t->fusion.serial_volume);
		return;
	}
	r->n_ends = h->s->m.at[m].digit.n;
	r->end = arena_array(a, fuse_end, r->n_ends + 1);
	for (int32_t i = 0; i < r->n_ends; i++) {
		r->end[i] = trace(h, m, i);
		if (r->end[i].read.reader >= 0)
			find_origin(h, &r->end[i]);
	}
	r->set = arena_array(a, int32_t, n + 1);
	r->set[r->n_set++] = set[m]->source;
	for (int32_t i = 0; i < n; i++)
		if (i != m)
			r->set[r->n_set++] = set[i]->source;
	r->why = r->end[0].why;
	r->text = conflict_sentences(h, r->n_ends, r->end);
}

static void apart(hunt *h, fuse_reason *r)
{
	int32_t *of = arena_array(h->a, int32_t, h->n + 1), other = -1;
	arena *a = h->f->a;

	(void)components(h, h->n, h->unit, of);
	for (int32_t i = 0; i < h->n; i++)
		if (of[i] != of[0] && other < 0)
			other = i;
	r->why = FUSE_WHY_APART;
	if (other < 0)
		return;
	r->n_set = 2;
	r->set = arena_array(a, int32_t, 2);
	r->set[0] = h->unit[0]->source;
	r->set[1] = h->unit[other]->source;
	r->text = arena_printf(a,
		"%s and %s would be in one kernel, and no read or overwrite "
		"connects their loops",
		conflict_label(h, r->set[0]), conflict_label(h, r->set[1]));
}

void fuse_conflict(choice *c, int32_t n, eqn_unit *const *unit, fuse_reason *r)
{
	hunt h = {.f = c->f, .a = fuse_scratch(c->f)};
	eqn_unit **set = arena_array(h.a, eqn_unit *, n + 1);
	bool *is_tail = arena_array(h.a, bool, n + 1);
	int32_t m;

	h.from = r->is_write ? r->consumer : r->producer;
	h.to = r->is_write ? r->producer : r->consumer;
	fuse_tail_longest(c->f, n, unit, is_tail);
	h.unit = arena_array(h.a, eqn_unit *, n + 1);
	for (int32_t i = 0; i < n; i++)
		if (!is_tail[i])
			h.unit[h.n++] = unit[i];
	m = find_pair(&h, set);
	if (m == 0)
		m = find_part(&h, set);
	if (m == 0)
		apart(&h, r);
	else
		fill(&h, m, set, r);
}
