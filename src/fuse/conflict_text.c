/*
 * conflict_text.c: the ends of loops as sentences.
 *
 * Consumes ends that conflict.c has found; produces one sentence for each that
 * is different, with the user's names of equations, tensors and axes.
 *
 *     o reads t at [i + 1], which another iteration of f computes
 */
#include "fuse/conflict.h"

const char *conflict_label(const hunt *h, int32_t source)
{
	const char *text = h->f->unit[source]->e.label;

	return text != NULL ? text : "an equation";
}

static const char *name(const hunt *h, int32_t tensor)
{
	return h->f->s->tensor.at[tensor].name;
}

static const char *fun_name(void *arg, int64_t fun)
{
	const ir_system *s = arg;

	return s->tensor.at[fun].name;
}

static eqn_edge *edge_of(const hunt *h, const fuse_site *p)
{
	const eqn_unit *c = h->f->unit[p->reader];

	for (int32_t i = 0; i < c->n_reads; i++)
		if (c->read[i].tensor == p->tensor &&
			c->read[i].at == p->at &&
			c->read[i].in_init == p->in_init)
			return eqn_join(
				h->f->g, h->f->unit[p->writer], c, i);
	return NULL;
}

/* the coordinates of a read: [i, j] */
static const char *coordinates(const hunt *h, const fuse_site *p)
{
	const eqn_edge *e = edge_of(h, p);
	str s = str_new(h->a);
	const char *letter[IR_MAX_AXES + 1] = {NULL};

	if (e == NULL)
		return "[]";
	for (int32_t i = 0; i < e->c->e.n_axes; i++)
		letter[i] = e->c->e.axis[i].name;
	if (e->read->in_init && e->c->e.push != NULL)
		letter[0] = "n"; /* the element number of the result */
	str_addc(&s, '[');
	for (int32_t i = 0; i < e->n_x; i++) {
		if (i > 0)
			str_add(&s, ", ");
		if (e->x[i] == NULL)
			str_addc(&s, '?');
		else
			ix_print(&s, e->x[i], &e->read->dom.box, letter,
				fun_name, h->f->s);
	}
	str_addc(&s, ']');
	return s.at;
}

/* i, or a part of it */
static const char *digit_name(const hunt *h, const fuse_end *e)
{
	const eqn_unit *u = h->f->unit[e->eqn];
	const char *letter[IR_MAX_AXES + 1] = {NULL};
	ix_dom d = {.box = u->box};
	str s = str_new(h->a);

	for (int32_t i = 0; i < u->e.n_axes; i++)
		letter[i] = u->e.axis[i].name;
	ix_print(&s,
		ix_digit(h->f->s->x, &d, e->axis, e->lo, e->hi), &u->box,
		letter, NULL, NULL);
	return s.at;
}

/* "sum over i, j": the equation, and the axes that a final element needs */
static const char *whole_of(const hunt *h, const eqn_unit *u)
{
	str s = str_new(h->a);
	int32_t n = 0;

	for (int32_t i = 0; i < u->e.n_axes; i++)
		if (i >= u->e.n_left || u->e.axis[i].kind == AXIS_S ||
			(u->e.push != NULL && u->stride[i] == 0))
			str_printf(&s, "%s%s", n++ > 0 ? ", " : "",
				u->e.axis[i].name != NULL ? u->e.axis[i].name
							  : "an axis");
	return arena_printf(h->a, "%s%s%s", conflict_label(h, u->source),
		n > 0 ? " over " : "", n > 0 ? s.at : "");
}

static const char *completion(const hunt *h, const fuse_end *e)
{
	const fuse_site *r = &e->read, *o = &e->other;
	const char *at = coordinates(h, r);
	const char *c = conflict_label(h, r->reader);
	const char *t = name(h, r->tensor);

	if (r->writer == r->reader)
		return arena_printf(h->a,
			"%s is final only after all iterations of %s", t,
			whole_of(h, h->f->unit[r->writer]));
	if (o->reader >= 0)
		return arena_printf(h->a,
			"%s reads %s at %s, which is computed from %s; %s is "
			"final only after all iterations of %s",
			c, t, at, name(h, o->tensor), name(h, o->tensor),
			whole_of(h, h->f->unit[o->writer]));
	return arena_printf(h->a,
		"%s reads %s at %s, which is final only after all "
		"iterations of %s",
		c, t, at, whole_of(h, h->f->unit[r->writer]));
}

static const char *misaligned(const hunt *h, const fuse_end *e)
{
	const fuse_site *r = &e->read;
	const char *at = coordinates(h, r);
	const char *w = conflict_label(h, r->writer);
	const char *c = conflict_label(h, r->reader);
	const char *t = name(h, r->tensor);

	if (e->is_cut)
		return arena_printf(h->a,
			"%s reads %s at %s: the loop over this index is split "
			"in one of %s and %s, and stays whole in the other",
			c, t, at, w, c);
	if (e->is_unproved)
		return arena_printf(h->a,
			"%s reads %s at %s: no proof was found that %s and %s "
			"can share the loop over this index",
			c, t, at, w, c);
	return arena_printf(h->a,
		"%s reads %s at %s: no loop of %s runs in step with %s%s of %s",
		c, t, at, c, e->eqn == r->writer ? "the loop over " : "a loop",
		e->eqn == r->writer ? digit_name(h, e) : "", w);
}

static const char *overwrite(const hunt *h, const fuse_end *e)
{
	const fuse_site *r = &e->read, *o = &e->other;
	const char *at = coordinates(h, r);
	const char *w = conflict_label(h, r->writer);
	const char *c = conflict_label(h, r->reader);
	const char *t = name(h, r->tensor);

	if (o->reader >= 0)
		return arena_printf(h->a,
			"%s overwrites %s, which %s reads at %s, and "
			"%s reads %s at %s: no shared loop fits both reads",
			w, t, c, at, conflict_label(h, o->reader),
			name(h, o->tensor), coordinates(h, o));
	return arena_printf(h->a,
		"%s overwrites %s, which %s reads at %s in another iteration",
		w, t, c, at);
}

static const char *sentence(const hunt *h, const fuse_end *e)
{
	const fuse_site *r = &e->read, *o = &e->other;
	const char *at, *w, *c, *t;

	if (r->reader < 0)
		return arena_printf(h->a, "no loop runs through all of their equations");
	at = coordinates(h, r);
	w = conflict_label(h, r->writer);
	c = conflict_label(h, r->reader);
	t = name(h, r->tensor);
	switch (e->why) {
	case FUSE_WHY_SEVERAL:
		if (o->reader == r->reader && o->tensor == r->tensor)
			return arena_printf(h->a, 
				"%s reads %s at %s and at %s: no shared loop "
				"fits both reads",
				c, t, coordinates(h, o), at);
		return arena_printf(h->a,
			"%s reads %s of %s at %s, and %s reads %s of %s at "
			"%s: no shared loop fits both reads",
			conflict_label(h, o->reader), name(h, o->tensor),
			conflict_label(h, o->writer), coordinates(h, o), c, t, w, at);
	case FUSE_WHY_COMPLETION:
		return completion(h, e);
	case FUSE_WHY_FREE:
		if (e->eqn == r->writer)
			return arena_printf(h->a,
				"%s reads %s at %s, an element that one "
				"iteration of %s over %s computes",
				c, t, at, w, digit_name(h, e));
		return arena_printf(h->a,
			"%s reads %s of %s at %s, the same element in every "
			"iteration over %s",
			c, t, w, at, digit_name(h, e));
	case FUSE_WHY_SHIFT:
		return arena_printf(h->a,
			"%s reads %s at %s, which another iteration of %s "
			"computes",
			c, t, at, w);
	case FUSE_WHY_REVERSED:
		if (r->writer == r->reader)
			return arena_printf(h->a,
				"the scan %s runs in the opposite direction along %s",
				w,
				digit_name(h, e));
		return arena_printf(h->a, 
			"%s reads %s of %s in reverse order, at %s",
			c, t, w, at);
	case FUSE_WHY_MISALIGNED:
		return misaligned(h, e);
	case FUSE_WHY_OPAQUE:
		return arena_printf(h->a,
			"%s reads %s of %s at %s, an index that is known only "
			"at run time",
			c, t, w, at);
	case FUSE_WHY_OVERWRITE:
		return overwrite(h, e);
	case FUSE_WHY_POLICY:
		return arena_printf(h->a,
			"%s is a contraction over %s, and the sum of a "
			"contraction is not shared as an outer loop",
			w, digit_name(h, e));
	case FUSE_WHY_CYCLE:
	case FUSE_WHY_COST:
	case FUSE_WHY_APART:
	case FUSE_WHY_REQUEST:
		break;
	}
	return "";
}

/* The sentences of all different ends. */
const char *conflict_sentences(const hunt *h, int32_t n, const fuse_end *first)
{
	const char **text = arena_array(h->a, const char *, n + 1);
	int32_t m = 0;
	str s = str_new(h->a);

	for (int32_t i = 0; i < n; i++) {
		bool again = false;

		text[m] = sentence(h, &first[i]);
		for (int32_t k = 0; k < m; k++)
			again |= strcmp(text[k], text[m]) == 0;
		m += !again;
	}
	for (int32_t i = 0; i < m; i++)
		str_printf(&s, "%s%s", i > 0 ? "; " : "", text[i]);
	return arena_printf(h->f->a, "%s", s.at);
}
