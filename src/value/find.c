/*
 * find.c: the calls that wanted values depend on, in the order in which they
 * were recorded; with writes that may as well run now, and with all writes of a
 * step that is over.
 */
#include "value/node.h"

#include <stdlib.h>

static void want(tensors *t, t_value *v)
{
	if (v->buf != NULL)
		return;
	if (v->call == NULL || v->call->done)
		env_bug(t->e, "tensor.flush", "value %lld is lost",
			(long long)v->id);
	if (v->call->stamp == t->stamp)
		return;
	v->call->stamp = t->stamp;
	*vec_push(t->a, &t->stack) = v;
	*vec_push(t->a, &t->todo) = v->call;
}

static void want_read(tensors *t, const t_read *r)
{
	want(t, r->v);
	for (const t_view *w = r->view; w != NULL; w = w->parent)
		for (int32_t i = 0; i < w->n_extra; i++) {
			/* an offset is a value, perhaps through views */
			want(t, w->extra[i].v);
			for (const t_view *u = w->extra[i].view; u != NULL;
				u = u->parent)
				if (u->n_extra > 0 && !t->is_undoing)
					env_fail(t->e, TN_EINVAL,
						"tensor.offset", (loc){0},
						"the offset of this view is "
						"itself a view at an offset "
						"that is data: use tn_copy on "
						"it first");
		}
}

static int by_id(const void *x, const void *y)
{
	const t_call *const *l = x, *const *r = y;

	return (*l)->id < (*r)->id ? -1 : (*l)->id > (*r)->id;
}

void t_meet(tensors *t, t_value *v)
{
	if (v->stamp == t->stamp)
		return;
	v->stamp = t->stamp;
	v->inside = 0;
	v->base = -1;
	if (v->buf != NULL) {
		v->number = 2 * t->input.n + 1;
		*vec_push(t->a, &t->input) = v;
		*vec_push(t->a, &t->stretch) = (t_stretch){0, &v->type};
	}
}

static void close_calls(tensors *t)
{
	while (t->stack.n > 0) {
		const t_call *c = vec_pop(&t->stack)->call;

		for (int32_t i = 0; i < c->n_args; i++)
			want_read(t, &c->arg[i]);
	}
}

/* The write that waits for v, if it can run once v is computed. */
static t_call *next_write(tensors *t, const t_value *v)
{
	t_call *c = v != NULL ? v->writer : NULL;

	return c != NULL && !c->done && c->stamp != t->stamp &&
			c->result[0] != NULL && c->arg[0].v->buf != NULL
		? c
		: NULL;
}

/*
 * Adds writes of other results of these calls that replace values no longer needed:
 * moments of an optimiser are written to their storages when the parameters are
 * evaluated, instead of using more memory until later.
 */
static void pull_writes(tensors *t)
{
	int32_t n = t->todo.n;
	bool any = false;

	for (int32_t k = 0; k < n; k++)
		for (int32_t i = 0; i < t->todo.at[k]->n_results; i++)
			any = any || next_write(t, t->todo.at[k]->result[i]);
	if (!any)
		return;
	for (int32_t k = 0; k < n; k++)
		for (int32_t i = 0; i < t->todo.at[k]->n_args; i++) {
			t_meet(t, t->todo.at[k]->arg[i].v);
			t->todo.at[k]->arg[i].v->inside +=
				!t_tape_reads(t, t->todo.at[k], i);
		}
	for (int32_t k = 0; k < n; k++)
		for (int32_t i = 0; i < t->todo.at[k]->n_results; i++) {
			t_call *c = next_write(t, t->todo.at[k]->result[i]);

			if (c == NULL)
				continue;
			t_meet(t, c->arg[0].v);
			if (t_data(c->arg[0].v) == c->arg[0].v->inside + 1)
				want(t, c->result[0]);
		}
	close_calls(t);
	t->stamp++; /* count again */
}

/* Is it a write of a finished step that has a write among these calls? */
static bool is_of_whole_step(const tensors *t, const t_value *v)
{
	for (int32_t i = 0; i < t->whole_step.n; i++)
		if (t->whole_step.at[i] == v->call->step)
			return true;
	return false;
}

static void note_whole_steps(tensors *t, int32_t from)
{
	for (int32_t k = from; k < t->todo.n; k++) {
		const t_call *c = t->todo.at[k];
		bool is_new = c->step != 0 && c->step != t->step &&
			t_changes_any(c);

		for (int32_t i = 0; is_new && i < t->whole_step.n; i++)
			is_new = t->whole_step.at[i] != c->step;
		if (is_new)
			*vec_push(t->a, &t->whole_step) = c->step;
	}
}

/*
 * Adds all writes of a finished step, so that either all or none of them run. Steps
 * that earlier programs have begun are remembered.
 */
static void pull_steps(tensors *t)
{
	int32_t n = 0;

	note_whole_steps(t, 0);
	while (t->whole_step.n > n) {
		int32_t from = t->todo.n;

		n = t->whole_step.n;
		for (const t_storage *s = t->live; s != NULL; s = s->older) {
			t_value *v = s->is_lost ? NULL : s->cur, *before;

			for (; v != NULL; v = before) {
				before = t_version_before(v);
				if (before == NULL || !is_of_whole_step(t, v))
					continue;
				want(t, v);
				break;
			}
		}
		close_calls(t);
		note_whole_steps(t, from);
	}
}

void t_find_calls(tensors *t, t_value *const *v, int32_t n)
{
	t->stamp++;
	t->todo.n = t->stack.n = 0;
	for (int32_t i = 0; i < n; i++)
		want(t, v[i]);
	close_calls(t);
	if (t->running == 0)
		pull_steps(t);
	pull_writes(t);
	if (t->todo.n > 1)
		qsort(t->todo.at, (size_t)t->todo.n, sizeof *t->todo.at, by_id);
}
