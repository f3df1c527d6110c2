/*
 * undo.c: restores tensors after an evaluation has failed.
 *
 * Values never change, so computed values are still valid: the backend restores the
 * memory of params (plan/undo.c), and recorded calls are still recorded. But
 * storages have versions that can never be computed. They are set back:
 *
 *     y = take(w, ids)          fails: an index is out of range
 *     w1 = write(w, w - g(y))   depends on it: the storage of w is at w again
 *     s1 = write(s, s + 1)      does not: stays, unless it is of the same step
 *
 * An evaluation of several programs is first undone as a whole (journal.c).
 *
 * If an index is out of range, the calls that failed are known: those that read
 * with it, and those that a walk recorded for their gradient. For other failures
 * they are all calls of the evaluation that were recorded since the last one that
 * did not fail; if there are none, all calls of it.
 *
 * All writes of a step (tn_step_enter) that have not run are undone together, and also
 * if a call fails while the step is being recorded, so that some of them are missing. A
 * storage whose first value depends on a failed call cannot be restored: reading it
 * fails each time, until all of it is written.
 */
#include "value/capture.h"

#include <stdlib.h>

static int by_number(const void *x, const void *y)
{
	const int64_t *l = x, *r = y;

	return *l < *r ? -1 : *l > *r;
}

/* ---- which calls failed ---- */

static void blame(tensors *t, const t_call *c)
{
	if (t->blamed.n == 0 || t->blamed.at[t->blamed.n - 1] != c->id)
		*vec_push(t->a, &t->blamed) = c->id;
	if (c->step != 0)
		*vec_push(t->a, &t->bad_step) = c->step;
}

/* Finds the recorded calls of the calls of the program that failed. */
static bool blame_known(tensors *t)
{
	const int32_t *call = NULL;
	bool of_data = env_diag(t->e)->status == TN_ERANGE;
	int32_t n = of_data && t->ran != NULL && t->b.failed != NULL
		? t->b.failed(t->b.arg, t->ran->compiled, &call)
		: 0;
	bool any = false;

	for (int32_t i = 0; i < n; i++)
		for (int32_t k = 0; k < t->ran->n_made_of; k++) {
			const t_made_of *m = &t->ran->made_of[k];

			if (m->call != call[i] || m->todo >= t->todo.n)
				continue;
			blame(t, t->todo.at[m->todo]);
			any = true;
		}
	return any;
}

static void blame_recent(tensors *t)
{
	for (int32_t k = 0; k < t->todo.n; k++) {
		const t_call *c = t->todo.at[k];

		if (c->id > t->evaluated && !t_is_write(c) &&
			(c->n_args > 0 || c->trace != NULL))
			blame(t, c);
	}
	for (int32_t k = 0; k < t->todo.n && t->blamed.n == 0; k++)
		blame(t, t->todo.at[k]);
}

/* The values whose evaluation failed. */
struct failed {
	tensors *t;
	t_value *const *v;
	int32_t n;
};

static void find_blamed(const struct failed *f)
{
	tensors *t = f->t;

	t->blamed.n = t->bad_step.n = 0;
	if (t->region != NULL && env_diag(t->e)->status != TN_ENOMEM) {
		blame(t, t->region);
	} else if (!blame_known(t)) {
		t_find_calls(t, f->v, f->n); /* the evaluation may not have reached some calls */
		blame_recent(t);
	}
	if (t->blamed.n > 1)
		qsort(t->blamed.at, (size_t)t->blamed.n,
			sizeof *t->blamed.at, by_number);
}

/* ---- what is made of them ---- */

static bool is_of_bad_step(const tensors *t, const t_call *c)
{
	for (int32_t i = 0; i < t->bad_step.n; i++)
		if (t->bad_step.at[i] == c->step)
			return true;
	return false;
}

static bool is_blamed(const tensors *t, const t_call *c)
{
	if (t->blamed.n > 0 &&
		(bsearch(&c->id, t->blamed.at, (size_t)t->blamed.n,
			 sizeof c->id, by_number) != NULL ||
			bsearch(&c->adjoint_of, t->blamed.at,
				(size_t)t->blamed.n, sizeof c->id,
				by_number) != NULL))
		return true;
	return t_changes_any(c) && is_of_bad_step(t, c);
}

static void push(tensors *t, const t_value *v)
{
	t_call *c = t_maker(v);

	if (c != NULL && c->judged != t->judging)
		*vec_push(t->a, &t->judge) = c;
}

static bool is_bad(const tensors *t, const t_value *v)
{
	const t_call *c = t_maker(v);

	return c != NULL && c->judged == t->judging && c->is_bad;
}

/* Calls fn for every value that c reads, until it returns true. */
static bool any_read(tensors *t, const t_call *c,
	bool (*fn)(tensors *t, const t_value *v))
{
	for (int32_t i = 0; i < c->n_args; i++) {
		if (fn(t, c->arg[i].v))
			return true;
		for (const t_view *w = c->arg[i].view; w != NULL; w = w->parent)
			for (int32_t k = 0; k < w->n_extra; k++)
				if (fn(t, w->extra[k].v))
					return true;
	}
	return false;
}

static bool push_read(tensors *t, const t_value *v)
{
	push(t, v);
	return false;
}

static bool bad_read(tensors *t, const t_value *v)
{
	return is_bad(t, v);
}

/* Operands are judged before the calls that read them. */
static bool is_made_of_it(tensors *t, const t_value *v)
{
	t->judge.n = 0;
	push(t, v);
	while (t->judge.n > 0) {
		t_call *c = t->judge.at[t->judge.n - 1];

		if (c->judged != t->judging) {
			c->judged = t->judging;
			c->is_bad = is_blamed(t, c);
			if (!c->is_bad)
				any_read(t, c, push_read);
			continue;
		}
		c->is_bad = c->is_bad || any_read(t, c, bad_read);
		(void)vec_pop(&t->judge);
	}
	return is_bad(t, v);
}

/* ---- back ---- */

static void note_step(tensors *t, const t_value *v)
{
	int64_t step = t_maker(v)->step;

	for (int32_t i = 0; i < t->bad_step.n; i++)
		if (t->bad_step.at[i] == step)
			return;
	if (step != 0)
		*vec_push(t->a, &t->bad_step) = step;
}

/* The newest version that does not depend on a failed call, or NULL. */
static t_value *good_version(tensors *t, const t_storage *s)
{
	t_value *v = s->cur;

	while (v != NULL && is_made_of_it(t, v)) {
		note_step(t, v);
		v = t_version_before(v);
	}
	return v;
}

/* What was collected before this was added; NULL if it is unknown. */
static t_value *gradient_before(const t_value *g)
{
	return g->adds_to > 0 ? t_maker(g)->arg[g->adds_to - 1].v : NULL;
}

static t_value *good_gradient(tensors *t, const t_slot *slot)
{
	t_value *g = slot->grad;

	while (g != NULL && t_maker(g) != NULL &&
		(is_made_of_it(t, g) || is_of_bad_step(t, t_maker(g))))
		g = gradient_before(g);
	return g;
}

/* Judges every version that may have to be undone; changes nothing. */
static void judge(void *arg)
{
	const struct failed *f = arg;
	tensors *t = f->t;
	int32_t n;

	find_blamed(f);
	do { /* a write may belong to a step with other writes */
		n = t->bad_step.n;
		t->judging++;
		for (const t_storage *s = t->live; s != NULL; s = s->older) {
			(void)good_version(t, s);
			if (s->slot != NULL)
				(void)good_gradient(t, s->slot);
		}
	} while (t->bad_step.n > n);
}

static void set_back(tensors *t, t_value **at, t_value *v)
{
	t_value *was = *at;

	if (v == was)
		return;
	if (v != NULL)
		t_value_keep(v);
	*at = v;
	t_value_drop(t, was);
}

/* Sets a storage back. All versions are judged, so nothing is allocated. */
static void undo_storage(tensors *t, t_storage *s)
{
	t_value *v = good_version(t, s);

	s->is_lost = v == NULL;
	if (v != NULL)
		set_back(t, &s->cur, v);
}

void t_undo(tensors *t, t_value *const *v, int32_t n)
{
	struct failed f = {t, v, n};

	if (t->journal.is_open)
		t_journal_undo(t);
	t->is_undoing = true;
	/* without memory, everything stays recorded, and can be tried again */
	if (env_run(t->e, judge, &f) >= 0)
		for (t_storage *s = t->live; s != NULL; s = s->older) {
			undo_storage(t, s);
			if (s->slot != NULL)
				set_back(t, &s->slot->grad,
					good_gradient(t, s->slot));
		}
	t->is_undoing = false;
	while (t->made.n > 0)
		t_buffer_drop(t, vec_pop(&t->made));
	t->region = NULL;
	t->ran = NULL;
}

/* ---- a step that was not recorded whole ---- */

static bool is_of_step(const tensors *t, const t_value *v)
{
	const t_call *c = t_maker(v);

	return c != NULL && c->step == t->step;
}

/* Its writes are the newest ones, and nothing is allocated to find them. */
static void undo_recorded(tensors *t)
{
	for (t_storage *s = t->live; s != NULL; s = s->older) {
		t_value *v = s->cur, *g = s->slot != NULL ? s->slot->grad : NULL;

		while (v != NULL && is_of_step(t, v) &&
			t_changes_any(t_maker(v)))
			v = t_version_before(v);
		if (v != NULL)
			set_back(t, &s->cur, v);
		if (g == NULL)
			continue;
		while (g != NULL && is_of_step(t, g))
			g = gradient_before(g);
		set_back(t, &s->slot->grad, g);
	}
}

void tensor_step_fails(tensors *t)
{
	t->step_fails = t->step != 0;
}

void tensor_step_goes_on(tensors *t)
{
	t->step_fails = false;
}

void tensor_step(tensors *t, int32_t step)
{
	if (t->steps + step < (t->capture != NULL ? t->capture->steps : 0))
		env_fail(t->e, TN_EINVAL, "step.scope",
			t_here(t),
			"tn_step_leave without a tn_step_enter");
	if (t->steps == 0)
		t->step = ++t->n_steps;
	t->steps += step;
	if (t->steps > 0)
		return;
	if (t->step_fails && t->capture == NULL)
		undo_recorded(t);
	t->step_fails = false;
	t->step = 0;
}
