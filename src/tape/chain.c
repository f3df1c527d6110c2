/*
 * chain.c: versions of one storage inside a trace, and what the backward reads
 * of them.
 *
 * A value that the backward reads and that is not there any more when the call
 * has run would be kept as a result of its own. It is not, if a result has the
 * same elements: what a later version of the storage left alone, or what was
 * written somewhere and stands there still.
 *
 *     m1 = 0.9*m + 0.1*x;  m' = write(m, m1)    reads of m1: reads of m'
 *     v' = write(v[4:8], y)                     reads of v[0:4]: of v'
 *
 * Consumes the recorded backward, changes its reads in place.
 * Source: docs/compile.md.
 */
#include "tape/walk.h"

typedef struct moving {
	tensors *t;
	const t_trace *f;
	t_back *b;
	const t_value *v;
	t_value *to;
	t_view *through; /* NULL: as it was */
	const t_call *store; /* that wrote v where it is */
} moving;

static bool is_result(const t_trace *f, const t_value *v)
{
	for (int32_t i = 0; i < f->n_known; i++)
		if (f->out[i] == v)
			return true;
	return false;
}

/* Is it an operand of a view, or a result? Those are not moved. */
static bool is_bound(const t_trace *back, const t_value *v)
{
	for (int32_t i = 0; i < back->n_out; i++)
		if (back->out[i] == v)
			return true;
	for (int32_t k = 0; k < back->call.n; k++)
		for (int32_t i = 0; i < back->call.at[k]->n_args; i++)
			for (const t_view *w = back->call.at[k]->arg[i].view;
				w != NULL; w = w->parent)
				for (int32_t j = 0; j < w->n_extra; j++)
					if (w->extra[j].v == v)
						return true;
	return false;
}

/* Does the backward read nothing of v that this write makes new? */
static bool leaves_reads(const moving *m, const t_version *write)
{
	const t_trace *back = m->b->trace;
	t_seen where = {m->v, write->view};

	for (int32_t k = 0; k < back->call.n; k++)
		for (int32_t i = 0; i < back->call.at[k]->n_args; i++) {
			const t_read *r = &back->call.at[k]->arg[i];
			t_seen what = {m->v, r->view};

			if (r->v == m->v && t_overlap(m->t, &what, &where))
				return false;
		}
	return true;
}

/* A later version, a result, that has what is read of v. */
static bool find_later(moving *m)
{
	const t_value *v = m->v;
	t_version next;

	m->through = NULL;
	m->to = NULL;
	while (t_next_version(m->f, v, &next) &&
		(m->t->dropped == TENSOR_RULE_VERSION ||
			leaves_reads(m, &next)))
		v = m->to = next.next;
	return m->to != NULL && is_result(m->f, m->to);
}

/* A result that has v written in it. */
static bool find_stored(moving *m)
{
	for (int32_t k = 0; k < m->f->call.n; k++) {
		const t_call *c = m->f->call.at[k];
		t_seen where = {NULL, NULL};
		t_version next;
		bool stands = true;

		if (!t_is_write(c) || c->arg[1].v != m->v ||
			c->arg[1].view != NULL)
			continue;
		where = (t_seen){c->arg[0].v, c->arg[0].view};
		for (const t_view *w = where.view; w != NULL; w = w->parent)
			stands = stands && w->n_extra == 0;
		if (!stands || !ir_type_same(t_seen_type(&where), &m->v->type))
			continue;
		m->to = c->result[0];
		m->store = c;
		m->through = c->arg[0].view;
		while (stands && t_next_version(m->f, m->to, &next)) {
			t_seen other = {m->to, next.view};

			stands = m->t->dropped == TENSOR_RULE_STORED ||
				!t_overlap(m->t, &where, &other);
			m->to = next.next;
		}
		if (stands && is_result(m->f, m->to))
			return true;
	}
	return false;
}

static void move_reads(const moving *m)
{
	const t_trace *back = m->b->trace;

	for (int32_t k = 0; k < back->call.n; k++)
		for (int32_t i = 0; i < back->call.at[k]->n_args; i++) {
			t_read *r = &back->call.at[k]->arg[i], old = *r;
			t_view *w;

			if (r->v != m->v)
				continue;
			w = t_view_on(m->t, m->through, r->view);
			*r = t_read_of(m->to, w);
			t_view_drop(m->t, w);
			t_read_drop(m->t, &old);
		}
}

/* Reads of operand i of the backward go to a place that is kept anyway. */
static void find_place_of(const moving *about, int32_t i, t_value *const *seed)
{
	t_trace *back = about->b->trace;
	moving m = *about;
	bool stored;

	m.v = back->in[i];
	if (t_is_in(m.f->n_out, seed, m.v) || is_result(m.f, m.v) ||
		is_bound(back, m.v))
		return;
	stored = !find_later(&m);
	if (stored && !find_stored(&m))
		return;
	if (stored) /* written without a gradient: elements alone */
		m.b->trace->is_last |= m.v->tracked
			? !m.store->tracked || m.store->no_grad
			: m.to->tracked;
	move_reads(&m);
	*vec_push(m.t->a, &m.b->moved) =
		(t_moved){back->in[i], m.to, stored};
	t_value_keep(m.to); /* the list of operands has it now */
	back->in[i] = m.to;
}

/* What would be kept as two values of the same elements is kept as one. */
static void find_same(const moving *about, int32_t i, t_value *const *seed)
{
	t_trace *back = about->b->trace;
	moving m = *about;
	t_read r;

	m.v = back->in[i];
	if (t_is_in(m.f->n_out, seed, m.v) || is_result(m.f, m.v) ||
		t_is_in(m.f->n_in, m.f->in, m.v) || is_bound(back, m.v))
		return;
	r = t_same_of(m.t, m.f, back->n_in, back->in, back->in[i]);
	if (r.v == m.v)
		return;
	m.b->trace->is_last |= !t_same_history(m.t, m.f, m.v, r.v);
	m.to = r.v;
	m.through = r.view;
	move_reads(&m);
	t_value_keep(m.to);
	back->in[i] = m.to;
}

static void forget_twice(t_trace *back)
{
	int32_t left = 0;

	for (int32_t i = 0; i < back->n_in; i++)
		if (!t_is_in(left, back->in, back->in[i]))
			back->in[left++] = back->in[i];
	back->n_in = left;
}

void t_find_kept(
	tensors *t, const t_trace *f, t_back *b, t_value *const *seed)
{
	const moving m = {.t = t, .f = f, .b = b};
	t_trace *back = b->trace;

	for (int32_t i = 0; i < back->n_in; i++)
		find_place_of(&m, i, seed);
	for (int32_t i = 0; i < back->n_in; i++)
		find_same(&m, i, seed);
	forget_twice(back);
	for (int32_t i = 0; i < back->n_in; i++)
		find_place_of(&m, i, seed);
	forget_twice(back);
}
