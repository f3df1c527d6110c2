/*
 * journal.c: makes an evaluation of several programs atomic.
 *
 * Conditions and loops divide an evaluation into programs. If a later one fails,
 * earlier ones have run, and have written:
 *
 *     s1 = write(s, s + 1); y = cond(s1, ..); w1 = write(w, take(w, ids))
 *     ran: s1, y            fails: w1          so s1 and y become recorded calls
 *                                              again, and s keeps its elements
 *
 * For each program but the last, holds the values from before the evaluation, so
 * that writes do not overwrite their elements, and remembers the calls. On success
 * the calls end; on failure they are restored to the state before they ran. The
 * last program needs nothing: if it fails, its inputs are as before
 * (tensor_backend).
 */
#include "value/node.h"

void t_journal_begin(tensors *t)
{
	t->journal.is_open = true;
	t->journal.number++;
}

/* Holds v, which was computed before the evaluation, until the end. */
static void hold(tensors *t, t_value *v)
{
	t_read *r;

	if (v->buf == NULL || v->journal == t->journal.number)
		return;
	r = vec_push(t->a, &t->journal.held);
	v->journal = t->journal.number;
	v->held = t->journal.held.n;
	*r = t_read_of(v, NULL);
}

/* Ends to hold v. */
static void let_go(tensors *t, t_value *v)
{
	if (v->held == 0)
		return;
	t_read_end_data(t, &t->journal.held.at[v->held - 1]);
	v->held = 0;
}

void t_journal_inputs(tensors *t, bool is_last)
{
	if (!t->journal.is_open)
		return;
	for (int32_t i = 0; i < t->input.n; i++)
		if (is_last)
			let_go(t, t->input.at[i]);
		else
			hold(t, t->input.at[i]);
	vec_reserve(t->a, &t->journal.call, t->todo.n + 1);
}

void t_journal_operands(tensors *t, const t_call *c, bool is_last)
{
	for (int32_t i = 0; i < c->n_args; i++)
		if (is_last)
			let_go(t, c->arg[i].v);
		else
			hold(t, c->arg[i].v);
	vec_reserve(t->a, &t->journal.call, 1);
	vec_reserve(t->a, &t->journal.held, c->n_results + 1);
}

static bool is_host(const t_call *c)
{
	return c->trace != NULL && c->trace->kind == REGION_HOST;
}

void t_journal_add(tensors *t, t_call *c)
{
	if (is_host(c)) { /* a C function runs once: its results stay */
		for (int32_t i = 0; i < c->n_results; i++)
			if (c->result[i] != NULL)
				hold(t, c->result[i]);
		t_end_call(t, c);
		return;
	}
	c->refs++;
	*vec_push(t->a, &t->journal.call) = c;
	for (int32_t i = 0; i < c->n_results; i++)
		if (c->result[i] != NULL)
			c->result[i]->journal = t->journal.number;
	t_tape_hold(t, c);
}

static void end_held(tensors *t)
{
	while (t->journal.held.n > 0) {
		t_read r = vec_pop(&t->journal.held);

		r.v->held = 0;
		t_read_drop(t, &r);
	}
}

void t_journal_end(tensors *t)
{
	for (int32_t k = 0; k < t->journal.call.n; k++) {
		t_call *c = t->journal.call.at[k];

		if (!c->tracked && !c->again)
			t_finish(t, c);
		t_call_drop(t, c);
	}
	t->journal.call.n = 0;
	end_held(t);
	t->journal.is_open = false;
}

/* ---- back ---- */

/* The result of c that is the next version of operand i, or NULL. */
static t_value *version(const t_call *c, int32_t i)
{
	int32_t r = t_result_of_write(c, i);

	return r >= 0 ? c->result[r] : NULL;
}

/* Restores the call to the state before it ran. It allocates nothing: it cannot
 * fail. */
static void undo_call(tensors *t, t_call *c)
{
	for (int32_t i = 0; i < c->n_args; i++) {
		t_value *next = version(c, i);

		if (next != NULL)
			t_give_back(t, c->arg[i].v, next);
	}
	for (int32_t r = 0; r < c->n_results; r++)
		if (c->result[r] != NULL)
			t_elements_drop(t, c->result[r]);
	for (int32_t i = 0; i < c->n_args; i++)
		t_read_begin_data(&c->arg[i]);
	c->done = false;
}

void t_journal_undo(tensors *t)
{
	for (int32_t k = t->journal.call.n - 1; k >= 0; k--)
		undo_call(t, t->journal.call.at[k]);
	while (t->journal.call.n > 0)
		t_call_drop(t, vec_pop(&t->journal.call));
	end_held(t);
	t->journal.is_open = false;
}
