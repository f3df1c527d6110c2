/*
 * same.c: values of a trace that have the same elements.
 *
 * A version that was written whole has the elements of what was written, a
 * copy those of what it is a copy of, and a call those of an earlier call of
 * the same row on the same operands. What the backward reads of such values is
 * read of one of them, so that it is kept once.
 *
 *     m' = write(m, a); b = m' * a; m'' = ..    reads of m' are reads of a
 *
 * Consumes the recorded backward, changes its reads in place: chain.c then
 * looks for places where they are kept anyway.
 */
#include "tape/walk.h"

enum { MAX_DEPTH = 4 }; /* of operands that are compared by what makes them */

typedef struct same {
	tensors *t;
	const t_trace *f;
} same;

/* The call of the trace that makes v; NULL: an operand. */
static t_call *maker(const same *s, const t_value *v)
{
	return v->stamp == s->t->stamp ? NULL : v->call;
}

static bool is_plain(const t_view *w)
{
	for (; w != NULL; w = w->parent)
		if (w->n_extra > 0)
			return false;
	return true;
}

/* What v has the elements of, in their places; NULL: of nothing else. */
static const t_read *source(const same *s, const t_value *v)
{
	const t_call *c = maker(s, v);

	if (c == NULL || c->trace != NULL)
		return NULL;
	if (c->entry != NULL && ir_inst_is_copy(c->entry->inst))
		return &c->arg[0];
	if (c->entry == NULL && c->arg[0].view == NULL &&
		ir_type_same(&c->arg[0].v->type, &v->type))
		return &c->arg[1];
	return NULL;
}

static bool are_same(const same *s, t_value *x, t_value *y, int32_t depth);

static bool same_views(const t_view *x, const t_view *y)
{
	for (; x != NULL && y != NULL && x != y; x = x->parent, y = y->parent)
		if (x->entry != y->entry || x->n_extra > 0 || y->n_extra > 0)
			return false;
	return x == y;
}

static bool same_calls(
	const same *s, const t_call *c, const t_call *q, int32_t depth)
{
	if (c == q)
		return true;
	if (c->entry == NULL || c->entry != q->entry || c->n_args != q->n_args)
		return false;
	for (int32_t i = 0; i < c->n_args; i++)
		if (!same_views(c->arg[i].view, q->arg[i].view) ||
			!are_same(s, c->arg[i].v, q->arg[i].v, depth - 1))
			return false;
	return true;
}

/* The last value behind versions and copies that are all of it. */
static t_value *behind(const same *s, t_value *v)
{
	const t_read *r;

	while ((r = source(s, v)) != NULL && r->view == NULL)
		v = r->v;
	return v;
}

static bool are_same(const same *s, t_value *x, t_value *y, int32_t depth)
{
	const t_call *c, *q;

	x = behind(s, x);
	y = behind(s, y);
	if (x == y)
		return true;
	c = maker(s, x);
	q = maker(s, y);
	return depth > 0 && c != NULL && q != NULL && x->result == y->result &&
		same_calls(s, c, q, depth);
}

/* The first value of the trace that is the same as v, which it may be. */
static t_value *first_same(const same *s, t_value *v)
{
	const t_call *c;

	v = behind(s, v);
	c = maker(s, v);
	if (c == NULL || c->entry == NULL)
		return v;
	for (int32_t k = 0; k < s->f->call.n; k++) {
		const t_call *q = s->f->call.at[k];

		if (q == c)
			break;
		if (q->entry == c->entry && q->result[v->result] != NULL &&
			same_calls(s, c, q, MAX_DEPTH))
			return q->result[v->result];
	}
	return v;
}

/* Is v there without being kept: does the caller have it, or is it a constant? */
static bool is_free(const same *s, const t_value *v)
{
	const t_call *c = maker(s, v);
	t_version next;

	return t_is_in(s->f->n_known, s->f->out, v) ||
		(c == NULL ? !t_next_version(s->f, v, &next)
			   : c->n_args == 0 && c->trace == NULL);
}

t_read t_same_of(tensors *t, const t_trace *f, int32_t n_reads,
	t_value *const *reads, t_value *v)
{
	const same s = {t, f};
	const t_read *r;
	t_value *u, *below;

	t->stamp++;
	for (int32_t i = 0; i < f->n_in; i++)
		f->in[i]->stamp = t->stamp;
	u = first_same(&s, v);
	r = source(&s, u);
	/* a part of something larger: if that is there in any case */
	if (r == NULL || !is_plain(r->view))
		return (t_read){u, NULL, false, 0};
	below = first_same(&s, r->v);
	if (!is_free(&s, below) && !t_is_in(n_reads, reads, below))
		return (t_read){u, NULL, false, 0};
	return (t_read){below, r->view, false, 0};
}

static bool is_through(const t_call *c)
{
	return c->tracked && !c->no_grad;
}

bool t_same_history(
	tensors *t, const t_trace *f, const t_value *v, const t_value *to)
{
	const same s = {t, f};
	const t_read *r;
	const t_call *c, *q;

	if (!v->tracked || !to->tracked)
		return v->tracked == to->tracked;
	t->stamp++;
	for (int32_t i = 0; i < f->n_in; i++)
		f->in[i]->stamp = t->stamp;
	while (v != to && (r = source(&s, v)) != NULL) {
		if (!is_through(v->call))
			return false;
		v = r->v;
	}
	if (v == to)
		return true;
	c = maker(&s, v);
	q = maker(&s, to);
	if (c == NULL || q == NULL || !is_through(c) || !is_through(q) ||
		c->entry == NULL || c->entry != q->entry)
		return false;
	for (int32_t i = 0; i < c->n_args; i++)
		if (c->arg[i].v != q->arg[i].v)
			return false;
	return true;
}
