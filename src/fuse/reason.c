/*
 * reason.c: why an edge of the system was not fused.
 *
 * Consumes the chosen groups; produces one reason for each pair of equations
 * in different groups of which one reads what the other makes, or overwrites
 * what the other reads: the first thing that stands in the way, with its
 * witness.
 *
 *     o reads t at [i, j] and at [j, i]
 *     fused 405 us, apart 300 us
 */
#include "fuse/inner.h"

#include <math.h>

typedef struct why {
	choice *c;
	fuse_plan *p;
	const eqn_unit *from, *to;
	int32_t tensor;
	fuse_group *g, *h;
} why;

static const char *label(const eqn_unit *u)
{
	return u->e.label != NULL ? u->e.label : "an equation";
}

static const char *name(const why *w, int32_t tensor)
{
	return w->p->s->tensor.at[tensor].name;
}

static void give(why *w, fuse_why kind, const char *text)
{
	*vec_push(w->c->f->a, &w->p->reason) = (fuse_reason){
		.producer = w->from->source,
		.consumer = w->to->source,
		.tensor = w->tensor,
		.why = kind,
		.text = text};
}

/* ---- witnesses ---- */

static const char *fun_name(void *arg, int64_t fun)
{
	const why *w = arg;

	return name(w, (int32_t)fun);
}

/* the coordinates of a read: [i, j] */
static const char *coordinates(why *w, const eqn_edge *e)
{
	str s = str_new(fuse_scratch(w->c->f));
	const char *letter[IR_MAX_AXES + 1] = {NULL};

	for (int32_t i = 0; i < e->c->e.n_axes; i++)
		letter[i] = e->c->e.axis[i].name;
	if (e->read->in_init && e->c->e.push != NULL)
		letter[0] = "n"; /* the flat result */
	str_addc(&s, '[');
	for (int32_t i = 0; i < e->n_x; i++) {
		if (i > 0)
			str_add(&s, ", ");
		if (e->x[i] == NULL)
			str_addc(&s, '?');
		else
			ix_print(&s, e->x[i], &e->read->dom.box, letter,
				fun_name, w);
	}
	str_addc(&s, ']');
	return s.at;
}

static eqn_edge *edge(why *w, int32_t read)
{
	return eqn_join(w->c->f->g, w->from, w->to, read);
}

static bool is_read(const why *w, int32_t i)
{
	const eqn_read *r = &w->to->read[i];

	for (int32_t k = 0; k < w->from->e.n_out; k++)
		if (w->from->e.out[k] == r->tensor)
			return true;
	return false;
}

/* Two reads that see a digit at different places. */
static bool several(why *w, eqn_digit d)
{
	arena *a = w->c->f->a;
	eqn_digit first = {0}, at;
	eqn_edge *one = NULL;

	for (int32_t i = 0; i < w->to->n_reads; i++) {
		if (!is_read(w, i) ||
			!eqn_relate(w->c->f->g, edge(w, i), d, &at))
			continue;
		if (one == NULL) {
			one = edge(w, i);
			first = at;
		} else if (at.axis != first.axis || at.lo != first.lo) {
			give(w, FUSE_WHY_SEVERAL,
				arena_printf(a, "%s reads %s at %s and at %s",
					label(w->to), name(w, w->tensor),
					coordinates(w, one),
					coordinates(w, edge(w, i))));
			return true;
		}
	}
	return false;
}

static void unrelated(why *w, eqn_edge *e, eqn_verdict v)
{
	arena *a = w->c->f->a;
	const char *to = label(w->to), *t = name(w, w->tensor);
	const char *at = coordinates(w, e);

	switch (v) {
	case EQN_RELATED:
	case EQN_FREE:
		if (w->from->e.n_axes > w->from->e.n_left)
			give(w, FUSE_WHY_COMPLETION,
				arena_printf(a,
					"%s is complete only after all of %s, "
					"which %s reads at %s",
					t, label(w->from), to, at));
		else
			give(w, FUSE_WHY_FREE,
				arena_printf(a,
					"%s reads %s at %s: it would be "
					"computed again in every iteration",
					to, t, at));
		break;
	case EQN_SHIFT:
		give(w, FUSE_WHY_SHIFT,
			arena_printf(a, "%s reads %s at %s: a neighbour", to, t,
				at));
		break;
	case EQN_REVERSED:
		give(w, FUSE_WHY_REVERSED,
			arena_printf(
				a, "%s reads %s backwards at %s", to, t, at));
		break;
	case EQN_MISALIGNED:
		give(w, FUSE_WHY_MISALIGNED,
			arena_printf(a,
				"%s reads %s at %s: cuts that do not nest", to,
				t, at));
		break;
	case EQN_OPAQUE:
		give(w, FUSE_WHY_OPAQUE,
			arena_printf(a,
				"%s reads %s at %s: known only at run time", to,
				t, at));
		break;
	}
}

/* The pair alone has no loop in common: the first digit that fails. */
static void first_failure(why *w, const part_set *s)
{
	const part_member *p = &s->m.at[0];
	eqn_edge *any = NULL;

	for (int32_t i = 0; i < p->digit.n; i++)
		if (part_is_left(w->from, &p->digit.at[i].d) &&
			several(w, p->digit.at[i].d))
			return;
	for (int32_t i = 0; i < p->digit.n; i++) {
		if (!part_is_left(w->from, &p->digit.at[i].d))
			continue;
		for (int32_t k = 0; k < w->to->n_reads; k++) {
			eqn_verdict v;

			if (!is_read(w, k))
				continue;
			any = edge(w, k);
			v = eqn_judge(w->c->f->g, any, p->digit.at[i].d);
			if (v == EQN_RELATED || v == EQN_FREE)
				continue;
			unrelated(w, any, v);
			return;
		}
	}
	for (int32_t k = 0; any == NULL && k < w->to->n_reads; k++)
		if (is_read(w, k))
			any = edge(w, k);
	if (any != NULL)
		unrelated(w, any, EQN_FREE);
}

/* ---- sets ---- */

static part_set *analysed(why *w, int32_t n, eqn_unit *const *unit)
{
	fuse_state *f = w->c->f;
	part_set *s = part_new(f, fuse_scratch(f), n, unit);

	part_refine(s);
	part_classes(f, s);
	return s;
}

/* Would there be loops in common if contractions, or writes, did not count? */
static bool without(why *w, part_set *s, bool writes)
{
	int32_t n = 0;

	if (writes) {
		for (int32_t i = 0; i < s->edge.n; i++)
			if (!s->edge.at[i].is_write)
				s->edge.at[n++] = s->edge.at[i];
		s->edge.n = n;
	} else {
		s->no_policy = true;
	}
	part_classes(w->c->f, s);
	return s->class.n > 0;
}

/* Where one loop of the producer's kernel is met along two digits. */
typedef struct meeting {
	const eqn_unit *to;
	eqn_edge *edge;
	eqn_digit at;
} meeting;

/* One read of what g makes, against what class k of g is to its reader. */
static bool meet(why *w, part_set *s, const part_class *k, int32_t m,
	const eqn_unit *c, int32_t read, meeting *old)
{
	arena *a = w->c->f->a;
	eqn_edge *e = eqn_join(w->c->f->g, s->m.at[m].u, c, read);
	eqn_digit d = s->m.at[m].digit.at[k->digit[m]].d, at;

	if (!part_is_left(s->m.at[m].u, &d) ||
		!eqn_relate(w->c->f->g, e, d, &at))
		return false;
	if (old->to == c && (old->at.axis != at.axis || old->at.lo != at.lo)) {
		give(w, FUSE_WHY_SEVERAL,
			arena_printf(a,
				"%s reads %s at %s and %s at %s, which one "
				"iteration makes",
				label(c), name(w, old->edge->read->tensor),
				coordinates(w, old->edge),
				name(w, e->read->tensor), coordinates(w, e)));
		return true;
	}
	if (old->to != c)
		*old = (meeting){.to = c, .edge = e, .at = at};
	return false;
}

static bool meets_twice(why *w)
{
	choice *c = w->c;
	int32_t n = w->g->source.n;
	eqn_unit **unit = arena_array(fuse_scratch(c->f), eqn_unit *, n + 1);
	part_set *s;

	n = choice_members(c, 1, &w->g, NULL, unit);
	s = analysed(w, n, unit);
	for (int32_t k = 0; k < s->class.n; k++) {
		for (int32_t i = 0; i < w->h->source.n; i++) {
			const eqn_unit *u = c->f->unit[w->h->source.at[i]];
			meeting old = {0};

			for (int32_t r = 0; u != NULL && r < u->n_reads; r++)
				for (int32_t m = 0; m < n; m++)
					if (fuse_maker(
						    c->f, u->read[r].tensor) ==
							unit[m]->source &&
						meet(w, s, &s->class.at[k], m,
							u, r, &old))
						return true;
		}
	}
	return false;
}

static void no_loop(why *w, part_set *s)
{
	arena *a = w->c->f->a;

	if (without(w, s, false))
		give(w, FUSE_WHY_POLICY,
			arena_printf(a,
				"a contraction reduces along what %s and %s "
				"share: it is to stay a whole product",
				label(w->from), label(w->to)));
	else if (without(w, s, true))
		give(w, FUSE_WHY_OVERWRITE,
			arena_printf(a,
				"what is read there is overwritten in another "
				"iteration of every loop that %s and %s share",
				label(w->from), label(w->to)));
	else if (!meets_twice(w))
		give(w, FUSE_WHY_SEVERAL,
			arena_printf(a,
				"the kernels of %s and %s walk what they share "
				"along different axes",
				label(w->from), label(w->to)));
}

static void explain(why *w)
{
	choice *c = w->c;
	arena *a = c->f->a;
	eqn_unit *two[2] = {
		c->f->unit[w->from->source], c->f->unit[w->to->source]};
	fuse_group *both[2] = {w->g, w->h}, *through = NULL;
	int32_t n = w->g->source.n + w->h->source.n;
	eqn_unit **unit = arena_array(fuse_scratch(c->f), eqn_unit *, n + 1);
	choice_verdict v;
	part_set *s;
	double t;

	if (two[0]->e.opaque != NULL || two[1]->e.opaque != NULL) {
		give(w, FUSE_WHY_OPAQUE,
			arena_printf(a, "%s works on whole tensors",
				label(two[two[0]->e.opaque == NULL])));
		return;
	}
	n = choice_members(c, 2, both, NULL, unit);
	v = choice_judge(c, n, unit);
	t = v.seconds;
	if (v.n_vars > 0) {
		give(w, FUSE_WHY_POLICY,
			arena_printf(a,
				"the kernel is full: its loops would have %d "
				"variables, %d are possible",
				v.n_vars, FUSE_MAX_VARS));
		return;
	}
	if (t < INFINITY && choice_may_merge(c, 2, both, NULL, &through)) {
		give(w, FUSE_WHY_COST,
			arena_printf(a, "fused %.3g us, apart %.3g us", 1e6 * t,
				1e6 * (w->g->seconds + w->h->seconds)));
		return;
	}
	s = analysed(w, 2, two);
	if (s->class.n == 0 && t == INFINITY) {
		if (without(w, s, false) || without(w, s, true))
			no_loop(w, analysed(w, 2, two));
		else
			first_failure(w, s);
		return;
	}
	if (!choice_may_merge(c, 2, both, NULL, &through)) {
		give(w, FUSE_WHY_CYCLE,
			arena_printf(a,
				"a path from %s to %s leaves the kernel "
				"through %s",
				label(w->from), label(w->to),
				label(c->f->unit[through->source.at[0]])));
		return;
	}
	if (n > c->f->t->max_eqns) {
		give(w, FUSE_WHY_POLICY,
			arena_printf(a, "the kernel is full: %d equations", n));
		return;
	}
	no_loop(w, analysed(w, n, unit));
}

static void edges_of(choice *c, fuse_plan *p, const eqn_unit *u)
{
	for (int32_t i = 0; i < u->n_reads; i++) {
		int32_t m = fuse_maker(c->f, u->read[i].tensor);
		why w = {.c = c, .p = p, .to = u, .tensor = u->read[i].tensor};
		bool again = false;

		if (m < 0 || m == u->source || c->of[m] == c->of[u->source])
			continue;
		for (int32_t k = 0; k < i; k++)
			again |= fuse_maker(c->f, u->read[k].tensor) == m;
		if (again)
			continue;
		w.from = c->f->unit[m];
		w.g = c->of[m];
		w.h = c->of[u->source];
		explain(&w);
	}
}

/* r reads what u destroys, in another kernel. */
static void write_apart(why *w, int32_t read)
{
	choice *c = w->c;
	fuse_group *both[2] = {w->g, w->h};
	int32_t n = w->g->source.n + w->h->source.n;
	eqn_unit **unit = arena_array(fuse_scratch(c->f), eqn_unit *, n + 1);
	eqn_edge *e = eqn_join(c->f->g, w->to, w->from, read);
	choice_verdict v;

	n = choice_members(c, 2, both, NULL, unit);
	v = choice_judge(c, n, unit);
	/* siblings without a loop in common are not tried, however small */
	if (v.seconds < INFINITY && v.shared > 1 &&
		choice_may_merge(c, 2, both, NULL, NULL))
		give(w, FUSE_WHY_COST,
			arena_printf(c->f->a, "fused %.3g us, apart %.3g us",
				1e6 * v.seconds,
				1e6 * (w->g->seconds + w->h->seconds)));
	else
		give(w, FUSE_WHY_OVERWRITE,
			arena_printf(c->f->a,
				"%s overwrites %s, which %s reads at %s",
				label(w->to), name(w, w->tensor),
				label(w->from), coordinates(w, e)));
}

/* Does u read what source makes? Then that edge has a reason already. */
static bool reads_from(choice *c, const eqn_unit *u, int32_t source)
{
	for (int32_t i = 0; i < u->n_reads; i++)
		if (fuse_maker(c->f, u->read[i].tensor) == source)
			return true;
	return false;
}

static void writes_of(choice *c, fuse_plan *p, const eqn_unit *u)
{
	const settled *q = c->f->w;

	for (int32_t i = 0; i < q->readers_of[u->source].n; i++) {
		const settle_wait *v =
			&q->wait.at[q->readers_of[u->source].at[i]];
		int32_t r = v->reader, read = 0;
		why w = {.c = c, .p = p, .to = u};

		if (c->f->unit[r] == NULL || c->of[r] == c->of[u->source] ||
			reads_from(c, u, r))
			continue;
		w.tensor = v->tensor;
		w.from = c->f->unit[r];
		w.g = c->of[r];
		w.h = c->of[u->source];
		while (read < w.from->n_reads &&
			w.from->read[read].tensor != v->tensor)
			read++;
		if (read < w.from->n_reads)
			write_apart(&w, read);
	}
}

void fuse_reasons(choice *c, fuse_plan *p)
{
	for (int32_t i = 0; i < c->f->n_order; i++) {
		const eqn_unit *u = c->f->unit[c->f->order[i]];

		if (u != NULL) {
			edges_of(c, p, u);
			writes_of(c, p, u);
		}
		fuse_scratch_trim(c->f);
	}
}
