/*
 * undo.c: restores the caller's params if a run fails.
 *
 * Most writes are last in a program: after every kernel that can find an index
 * out of range. If a param is written earlier,
 *
 *     step 2 writes p        step 5 reads x[ids]
 *
 * the indices that are used later are tested first. If all are in range, nothing
 * is copied. Else, or if they are not computed yet, or an opaque row may run out
 * of memory later, p is copied before step 2, and copied back if a later step
 * fails.
 *
 * It also finds the calls of the program to which a bad index belongs: all that
 * read with that index, whichever kernel found it first.
 */
#include "plan/private.h"

/* A param that is written before the last step that can fail. */
struct saved {
	int32_t input, tensor, step;
	void *room; /* for the copy */
	void *copy; /* NULL: not copied in this run */
};

struct plan_undo {
	arena *a;
	const plan *p;
	run_device *d;
	arena *room; /* of the current run; NULL: nothing was copied */
	VEC(struct saved) saved;
	VEC(int32_t) call; /* the calls that failed */
};

static bool may_fail(const plan *p, int32_t step)
{
	const plan_step *s = &p->step.at[step];

	for (int32_t i = s->first; i < s->first + s->n; i++)
		if (p->launch.at[i].kernel < 0 || p->launch.at[i].n_checks > 0)
			return true;
	return false;
}

int32_t plan_param_of(const plan *p, int32_t t)
{
	const plan_location *at = &p->location[t];

	return at->where == PLAN_OUTPUT && at->first >= 0 && at->bytes > 0
		? plan_store(p->s, at->number)
		: -1;
}

const plan_early *plan_early_writes(arena *a, const plan *p, int32_t *n)
{
	plan_early *out = arena_array(a, plan_early, p->s->input.n + 1);
	int32_t last = p->step.n - 1, i;

	*n = 0;
	while (last >= 0 && !may_fail(p, last))
		last--;
	for (int32_t t = 0; t < p->s->tensor.n; t++) {
		int32_t input = plan_param_of(p, t), step = p->location[t].first;

		if (input < 0 || step > last)
			continue;
		for (i = 0; i < *n && out[i].input != input; i++)
			;
		if (i == *n)
			out[(*n)++] = (plan_early){input, t, step};
		else if (step < out[i].step)
			out[i].step = step;
	}
	return out;
}

plan_undo *plan_undo_new(arena *a, const plan *p, run_device *d)
{
	plan_undo *u = arena_make(a, plan_undo);
	const plan_early *early;
	int32_t n;

	u->a = a;
	u->p = p;
	u->d = d;
	early = plan_early_writes(a, p, &n);
	for (int32_t i = 0; i < n; i++)
		*vec_push(a, &u->saved) = (struct saved){early[i].input,
			early[i].tensor, early[i].step, NULL, NULL};
	return u;
}

bool plan_undo_is_needed(const plan_undo *u)
{
	return u->saved.n > 0;
}

/* ---- will the rest fail? ---- */

static bool is_inside(const plan *p, const plan_data *d, int32_t step,
	const c_check *c)
{
	int32_t root = p->root[c->tensor];
	const plan_location *at = &p->location[root];
	const sys_tensor *t = &p->s->tensor.at[root];
	const void *data = d->of(d->arg, root);

	if (data == NULL || (at->where != PLAN_INPUT && at->first >= step))
		return false;
	for (int64_t i = 0; i < t->numel; i++) {
		int64_t v = dtype_load_i64(t->dtype, data, i);

		if (v < c->lo || v >= c->hi)
			return false;
	}
	return true;
}

/* Will all steps from this one on succeed? */
static bool will_run(const plan *p, const plan_data *d, int32_t step)
{
	for (int32_t i = p->step.at[step].first; i < p->launch.n; i++) {
		const plan_launch *l = &p->launch.at[i];

		if (l->kernel < 0)
			return false;
		for (int32_t k = 0; k < l->n_checks; k++)
			if (!is_inside(p, d, step, &l->check[k]))
				return false;
	}
	return true;
}

/* ---- a run ---- */

void plan_undo_begin(plan_undo *u)
{
	u->call.n = 0;
	for (int32_t i = 0; i < u->saved.n; i++)
		u->saved.at[i].copy = NULL;
}

static void *copied(plan_undo *u, const void *from, size_t n)
{
	void *to = u->d->alloc(u->d, u->room, n);

	u->d->copy(u->d, to, from, n);
	return to;
}

void plan_undo_step(plan_undo *u, int32_t step, const plan_data *d)
{
	bool any = false;

	for (int32_t i = 0; i < u->saved.n; i++)
		any = any || u->saved.at[i].step == step;
	/* on a device, a launch can be refused, too */
	if (!any || (u->d->is_host && will_run(u->p, d, step)))
		return;
	if (u->room == NULL)
		u->room = arena_child(u->a);
	for (int32_t i = 0; i < u->saved.n; i++) {
		struct saved *k = &u->saved.at[i];

		if (k->step == step)
			k->room = copied(u, d->in[k->input],
				u->p->location[k->tensor].bytes);
	}
	/* if that is refused, then there is no copy, and nothing was written */
	if (!u->d->is_host)
		u->d->start(u->d);
	for (int32_t i = 0; i < u->saved.n; i++)
		if (u->saved.at[i].step == step)
			u->saved.at[i].copy = u->saved.at[i].room;
}

void plan_undo_end(plan_undo *u, bool failed, const void *const *in)
{
	for (int32_t i = 0; failed && i < u->saved.n; i++) {
		const struct saved *k = &u->saved.at[i];

		if (k->copy != NULL)
			u->d->copy(u->d, (void *)(uintptr_t)in[k->input],
				k->copy, u->p->location[k->tensor].bytes);
	}
	/* copies on a device take no room of the host */
	if (u->room != NULL && !u->d->is_host) {
		arena_clear(u->room);
		return;
	}
	arena_free(u->room);
	u->room = NULL;
}

/* ---- which calls ---- */

/* The tensor that t is a view of, through bare reads. */
static int32_t shown_by(const plan *p, int32_t t)
{
	const ir_system *s = p->s;
	int32_t q = s->tensor.at[t].eqn;

	while (q >= 0 && s->eqn.at[q].n_out == 1 &&
		s->eqn.at[q].monoid == IR_SET && s->eqn.at[q].body[0] != NULL &&
		s->eqn.at[q].body[0]->kind == EX_READ) {
		t = s->eqn.at[q].body[0]->tensor;
		q = s->tensor.at[t].eqn;
	}
	return p->root[t];
}

static bool reads_at(const plan *p, const ix_form *f, const c_check *c)
{
	for (int32_t i = 0; f != NULL && i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;

		if (a->kind == IX_FUN && a->lo == c->lo && a->hi == c->hi &&
			shown_by(p, (int32_t)a->fun) ==
				shown_by(p, c->tensor))
			return true;
		if (a->f != NULL && reads_at(p, a->f, c))
			return true;
	}
	return false;
}

static bool is_indexed(const plan *p, const sys_eqn *e, const c_check *c)
{
	bool any = reads_at(p, e->push, c);

	for (int32_t k = 0; k < e->n_out && k < IR_MAX_COMP && !any; k++) {
		ex_reads reads = {0};

		if (e->body[k] != NULL)
			reads = ex_list_reads(p->s, e->body[k]);
		for (int32_t j = 0; j < reads.n && !any; j++)
			any = reads_at(p, reads.at[j].at, c);
	}
	return any;
}

void plan_undo_blame(plan_undo *u, const c_check *c)
{
	const ir_system *s = u->p->s;

	for (int32_t i = 0; i < s->eqn.n; i++)
		if (is_indexed(u->p, &s->eqn.at[i], c))
			*vec_push(u->a, &u->call) = s->eqn.at[i].call;
}

int32_t plan_undo_calls(const plan_undo *u, const int32_t **call)
{
	*call = u->call.at;
	return u->call.n;
}
