/*
 * tape.c: which calls have a gradient, and which elements are kept for it.
 *
 * A call is tracked if an operand is, and a result can have a gradient. A tracked
 * call is kept after it has run: it refers to its operands, but keeps only the
 * elements that its adjoint reads.
 *
 *     y = mul(x, w)    keeps x and w        y = add(x, w)    keeps nothing
 *     y = exp(x)       keeps y, not x
 */
#include "value/node.h"

/* ---- rules ---- */

static t_rule *derive(
	tensors *t, t_entry *e, uint64_t wanted, uint64_t seeded)
{
	t_rule *r = arena_make(t->a, t_rule);

	r->wanted = wanted;
	r->seeded = seeded;
	r->g = grad_adjoint(t->a, t->table, e->inst, wanted, seeded);
	if (r->g != NULL) {
		r->entry = t_entry_of(t, r->g->inst);
		for (int32_t k = 0; k < r->g->n_operands; k++) {
			const struct grad_operand *o = &r->g->operand[k];
			uint64_t bit = (uint64_t)1 << o->i;

			if (o->is_shape)
				continue;
			if (o->from == GRAD_OPERAND)
				r->reads_operand |= bit;
			else if (o->from == GRAD_RESULT)
				r->reads_result |= bit;
		}
	}
	*vec_push(t->a, &e->rule) = r;
	return r;
}

const t_rule *t_rule_of(
	tensors *t, t_entry *e, uint64_t wanted, uint64_t seeded)
{
	for (int32_t i = 0; i < e->rule.n; i++)
		if (e->rule.at[i]->wanted == wanted &&
			e->rule.at[i]->seeded == seeded)
			return e->rule.at[i];
	return derive(t, e, wanted, seeded);
}

static uint64_t wanted_of(const t_call *c)
{
	uint64_t bits = 0;

	for (int32_t i = 0; i < c->n_args && i < 64; i++)
		if (c->arg[i].v->tracked)
			bits |= (uint64_t)1 << i;
	return bits;
}

static const t_rule *whole_rule(tensors *t, const t_call *c)
{
	return t_rule_of(t, c->entry, wanted_of(c), ~UINT64_C(0));
}

/* ---- histories that have ended ---- */

bool t_overwrites(const t_call *c, int32_t i)
{
	const t_trace *f = c->trace;

	if (f == NULL)
		return t_is_write(c) && i == 0 && c->arg[0].view == NULL;
	for (int32_t k = 0; k < f->n_out; k++)
		if (f->out[k] == f->in[i])
			return false;
	for (int32_t k = 0; k < f->call.n; k++) {
		const t_call *q = f->call.at[k];

		for (int32_t j = 0; j < q->n_args; j++)
			if (q->arg[j].v == f->in[i] && !t_overwrites(q, j))
				return false;
	}
	return !t_is_region(f);
}

static bool cuts(tensors *t, const t_call *c, uint64_t bits);

/*
 * Marks, in the trace of c, what is made of operands in bits, which have no
 * history any more.
 */
static void mark_cut(tensors *t, const t_call *c, uint64_t bits, int64_t mark)
{
	const t_trace *f = c->trace;

	for (int32_t i = 0; i < f->n_in && i < 64; i++)
		if ((bits >> i & 1) != 0)
			f->in[i]->walk = mark;
	for (int32_t k = 0; k < f->call.n; k++) {
		const t_call *q = f->call.at[k];
		uint64_t from = 0;

		for (int32_t j = 0; j < q->n_args && j < 64; j++)
			if (q->arg[j].v->walk == mark && !t_overwrites(q, j))
				from |= (uint64_t)1 << j;
		if (from == 0 || (q->trace == NULL && !cuts(t, q, from)))
			continue;
		for (int32_t i = 0; i < q->n_results; i++)
			if (q->result[i] != NULL)
				q->result[i]->walk = mark;
	}
}

/* Would a gradient of a result of this row, or write, go on to the operands in bits? */
static bool cuts(tensors *t, const t_call *c, uint64_t bits)
{
	return c->entry == NULL ||
	       t_rule_of(t, c->entry, bits, ~UINT64_C(0))->g != NULL;
}

/*
 * What is made of a value whose history a backward has ended has none either: a
 * gradient of it would lack a part, and is refused.
 */
static void cut_results(tensors *t, t_call *c)
{
	int64_t mark = 0;
	uint64_t bits = 0;

	for (int32_t i = 0; c->trace != NULL && i < c->n_results; i++)
		c->result[i]->is_freed = c->trace->out[i]->is_freed;
	for (int32_t i = 0; i < c->n_args && i < 64; i++)
		if (c->arg[i].v->is_freed && !t_overwrites(c, i))
			bits |= (uint64_t)1 << i;
	if (bits == 0 || (c->trace == NULL && !cuts(t, c, bits)))
		return;
	/* in a walk the marks are its own: then each result counts */
	if (c->trace != NULL && t->walking == 0) {
		mark = ++t->n_walks;
		mark_cut(t, c, bits, mark);
	}
	for (int32_t i = 0; i < c->n_results; i++)
		if (!c->result[i]->tracked &&
			dtype_is_float(c->result[i]->type.dtype) &&
			(mark == 0 || c->trace->out[i]->walk == mark))
			c->result[i]->is_freed = true;
}

/* ---- tracking ---- */

void t_track(tensors *t, t_call *c)
{
	const t_rule *r = NULL;
	bool any = false, last = false;
	bool holds = c->trace != NULL && c->trace->holds_in != NULL;

	if (t->running > 0 || (t->no_grad > 0 && !holds))
		return;
	if (c->trace != NULL && !holds) { /* recorded without gradients */
		cut_results(t, c);
		return;
	}
	for (int32_t i = 0; i < c->n_args; i++) {
		any = any || c->arg[i].v->tracked;
		last = last || c->arg[i].v->is_last;
	}
	for (int32_t i = 0; last && c->trace == NULL && i < c->n_results; i++)
		c->result[i]->is_last = dtype_is_float(c->result[i]->type.dtype);
	if (any && c->entry != NULL)
		r = whole_rule(t, c);
	if (!any || (r != NULL && r->g == NULL)) {
		cut_results(t, c);
		return;
	}
	for (int32_t i = 0; i < c->n_results; i++)
		if (dtype_is_float(c->result[i]->type.dtype) &&
			(c->trace == NULL || t_is_made(c->trace->out[i])))
			c->tracked = c->result[i]->tracked = true;
	cut_results(t, c);
	for (int32_t i = 0; i < c->n_results; i++)
		if (c->tracked && (c->trace != NULL
				? c->trace->holds_out[i]
				: r != NULL &&
					(r->reads_result >> i & 1) != 0))
			t_self_hold(c->result[i]);
}

bool t_tape_reads(tensors *t, const t_call *c, int32_t arg)
{
	if (c->trace != NULL)
		return c->tracked && c->trace->holds_in[arg];
	return c->tracked && c->entry != NULL && arg < 64 &&
	       (whole_rule(t, c)->reads_operand >> arg & 1) != 0;
}

/* ---- leaves ---- */

t_slot *t_slot_of(tensors *t, t_storage *s)
{
	if (s->slot == NULL) {
		s->slot = t->slots;
		if (s->slot != NULL)
			t->slots = s->slot->next;
		else
			s->slot = arena_make(t->a, t_slot);
		*s->slot = (t_slot){.refs = 1};
	}
	return s->slot;
}

void t_leaf(tensors *t, t_storage *s, t_value *v)
{
	t_slot *slot = t_slot_of(t, s);

	slot->refs++;
	t_slot_drop(t, v->slot);
	v->slot = slot;
	v->tracked = true;
	v->is_last = false;
}

