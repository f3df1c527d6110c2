/*
 * region.c: conditions and functions in C, from bodies to a call.
 *
 * Both bodies of a condition are recorded each time; what they read of others
 * are operands of the call, what they write are next versions that it leaves:
 * written by one of them is written, perhaps.
 *
 *     cond(p, {w.add_(1); return w * x}, {return x})
 *     operands p, w, x    results: the output, w'
 *
 * An output that is the same storage in both bodies, seen in the same way, is
 * that storage; else the body in which it is one returns a copy. Then both are
 * recorded again, with that in mind.
 */
#include "func/region.h"

/* ---- calls ---- */

static t_value *operand_now(tensors *t, const t_origin *o)
{
	switch (o->kind) {
	case ORIGIN_KNOWN:
		return t_cur(t, o->s);
	case ORIGIN_GRADIENT:
		(void)t_cur(t, o->s);
		return o->s->slot->grad;
	case ORIGIN_KEY:
		return capture_key(t);
	case ORIGIN_ARG:
	case ORIGIN_VALUE:
		break;
	}
	return o->v;
}

int32_t t_operand_place(tensors *t, const t_origin *o)
{
	struct t_regions *all = t->regions;
	t_draft *d = &all->draft;

	for (int32_t i = 0; i < all->op.n; i++) {
		const t_origin *p = &all->op.at[i];

		if (p->kind == o->kind && p->i == o->i && p->s == o->s &&
			p->v == o->v)
			return i;
	}
	*vec_push(t->a, &all->op) = *o;
	*vec_push(t->a, &d->op) = operand_now(t, o);
	*vec_push(t->a, &d->next) = -1;
	*vec_push(t->a, &d->slot) = o->kind == ORIGIN_KNOWN ? o->s->slot : NULL;
	return d->op.n - 1;
}

static bool is_tracked(const tensors *t, const t_trace *f)
{
	const t_draft *d = &t->regions->draft;
	bool any = false;

	for (int32_t i = 0; i < f->n_out; i++)
		any |= f->out[i]->tracked;
	for (int32_t i = 0; any && i < d->op.n; i++)
		if (d->op.at[i]->tracked)
			return t->no_grad == 0;
	return false;
}

static void add_slots(tensors *t, t_call *c)
{
	const t_draft *d = &t->regions->draft;

	if (c->slot_room < c->n_args) {
		c->slot = arena_array(t->a, t_slot *, c->n_args);
		c->slot_room = c->n_args;
	}
	for (int32_t i = 0; i < c->n_args; i++)
		if (d->next.at[i] >= 0 && d->slot.at[i] != NULL) {
			c->slot[i] = d->slot.at[i];
			c->slot[i]->refs++;
		}
}

t_call *t_region_call(tensors *t, t_trace *f)
{
	struct t_regions *all = t->regions;
	int32_t n = all->draft.op.n;
	t_call *c;

	if (is_tracked(t, f))
		f = t_trace_tracked(t, f);
	t->operand.n = 0;
	for (int32_t i = 0; i < n; i++)
		*vec_push(t->a, &t->operand) =
			(t_read){all->draft.op.at[i], NULL, false, 0};
	c = t_record_trace(t, f, t->operand.at);
	c->refs++;
	if (c->tracked)
		add_slots(t, c);
	for (int32_t i = 0; i < n && t->capture == NULL; i++)
		if (all->op.at[i].kind == ORIGIN_KEY) /* the call's alone */
			t_value_drop(t, all->draft.op.at[i]);
	return c;
}

void t_region_update(
	tensors *t, t_call *c, t_storage *s, int32_t result, bool is_leaf)
{
	t_value *next = c->result[result];

	t_value_keep(next);
	if (is_leaf)
		t_leaf(t, s, next);
	t_value_drop(t, s->cur);
	s->cur = next;
}

/* ---- types and views ---- */

/* ---- conditions ---- */

typedef struct cond {
	tensors *t;
	tensor *pred;
	tensor_body *const *body;
	void *const *arg;
	tensor *const *in;
	int32_t n_out;
	tensor **out;
	t_recorder *r[2];
	int32_t scope; /* outside */
} cond;

static bool is_outside(const t_recorder *r, const t_storage *s)
{
	for (int32_t i = 0; i < r->c.bound.n; i++)
		if (r->c.bound.at[i].s == s)
			return true;
	return false;
}

/* The first output on its storage, of those that are no copies. */
static int32_t first_on(const t_recorder *r, const t_recorder *forced, int32_t i)
{
	for (int32_t k = 0; k < i; k++)
		if (r->out[k]->storage == r->out[i]->storage &&
			!forced->force.at[k])
			return k;
	return i;
}

static void record_body(cond *j, int32_t k)
{
	tensors *t = j->t;
	t_recorder *r = j->r[k];
	const char *open;

	tensor_scope_enter(t);
	t_recorder_begin(t, r);
	j->body[k](j->arg[k], j->in, r->out);
	open = capture_open(t, &r->c);
	if (open != NULL)
		env_fail(t->e, TN_EINVAL, "compile.scope", t_here(t),
			"a branch %s", open);
	for (int32_t i = 0; i < j->n_out; i++) {
		t_value *v;

		if (r->out[i] == NULL || !tensor_is_valid(r->out[i]))
			env_fail(t->e, TN_EINVAL, "cond.output", t_here(t),
				"output %d is not a valid tensor: it was not "
				"set, or it was dropped", (int)i);
		v = t_cur(t, r->out[i]->storage);
		if (j->r[0]->force.at[i])
			v = t_result_of(t, r, r->out[i]);
		else if (is_outside(r, r->out[i]->storage) ||
			first_on(r, j->r[0], i) < i)
			continue;
		t_value_keep(v);
		*vec_push(t->a, &r->value) = v;
	}
	t_recorder_end(t, r);
	t_recorder_writes(t, r);
}

/* Is output i the same in both branches, whatever the condition says? */
static bool agrees(cond *j, int32_t i)
{
	const t_recorder *r = j->r[0], *q = j->r[1];
	const tensor *x = r->out[i], *y = q->out[i];
	bool known = is_outside(r, x->storage);

	if (j->r[0]->force.at[i] || j->t->dropped == TENSOR_RULE_BRANCH)
		return true;
	if (known != is_outside(q, y->storage) ||
		!t_same_views(x->view, y->view))
		return false;
	if (known)
		return x->storage == y->storage;
	return first_on(r, r, i) == first_on(q, r, i) &&
		t_same_type(&x->storage->cur->type, &y->storage->cur->type);
}

static void check_shapes(cond *j)
{
	tensors *t = j->t;

	for (int32_t i = 0; i < j->n_out; i++) {
		const ir_type *x = &j->r[0]->out[i]->type;
		const ir_type *y = &j->r[1]->out[i]->type;

		if (!t_same_type(x, y))
			env_fail(t->e, TN_EINVAL, "cond.output", t_here(t),
				"output %d is %s in one branch and %s in the "
				"other", (int)i, t_type_text(t, x),
				t_type_text(t, y));
	}
}

static void record_bodies(cond *j)
{
	tensors *t = j->t;
	bool again = true;

	j->r[0]->force.n = 0;
	for (int32_t i = 0; i < j->n_out; i++)
		*vec_push(t->a, &j->r[0]->force) = false;
	while (again) {
		again = false;
		record_body(j, 0);
		record_body(j, 1);
		check_shapes(j);
		for (int32_t i = 0; i < j->n_out; i++)
			if (!agrees(j, i))
				again = j->r[0]->force.at[i] = true;
		if (!again)
			break;
		t_recorder_drop(t, j->r[0]);
		t_recorder_drop(t, j->r[1]);
		while (t->scope.n > j->scope)
			tensor_scope_leave(t);
	}
}

static t_value *truth(tensors *t, const tensor *x)
{
	t_value *v = t_cur(t, t_check(t, x)->storage);

	if (shape_numel(x->type.shape, x->type.rank) != 1 ||
		dtype_is_float(x->type.dtype))
		env_fail(t->e, TN_EINVAL, "cond.test", t_here(t),
			"the condition is %s, but it must be one bool or "
			"integer",
			t_type_text(t, &x->type));
	return x->view == NULL ? v : t_copy_of(t, v, x->view, &x->type);
}

/* Operands of body k: those of the call that it asks for. */
static void feed(cond *j, int32_t k)
{
	tensors *t = j->t;
	t_draft *d = &t->regions->draft;
	const t_recorder *r = j->r[k];

	for (int32_t i = 0; i < r->from.n; i++) {
		int32_t at = t_operand_place(t, &r->from.at[i]);

		*vec_push(t->a, &d->feed[k]) =
			(t_feed){FEED_OPERAND, at, 0};
	}
}

static const t_written *written_by(const t_recorder *r, const t_storage *s)
{
	for (int32_t i = 0; i < r->written.n; i++)
		if (r->c.bound.at[r->written.at[i].in].s == s)
			return &r->written.at[i];
	return NULL;
}

/* What a write of one branch or both makes of operand i, a storage. */
static void add_written(cond *j, int32_t i)
{
	tensors *t = j->t;
	struct t_regions *all = t->regions;
	t_draft *d = &all->draft;
	t_storage *s = all->op.at[i].s;
	bool leaf = true, made = false, any = false;
	t_yield y = {.kind = YIELD_BODY};

	for (int32_t k = 0; k < 2; k++) {
		const t_written *w = written_by(j->r[k], s);
		bool was_leaf = s->cur->tracked && s->cur->slot != NULL &&
			s->cur->slot == s->slot;

		y.at[k] = w != NULL ? w->out : -2 - i;
		any |= w != NULL;
		leaf &= w != NULL ? w->is_leaf : was_leaf;
		made |= w != NULL ? t_is_made(j->r[k]->f->out[w->out])
				  : s->cur->tracked;
	}
	if (!any)
		return;
	d->next.at[i] = d->yield.n;
	*vec_push(t->a, &d->yield) = y;
	*vec_push(t->a, &d->type) = d->op.at[i]->type;
	*vec_push(t->a, &d->made) = made && !leaf;
	*vec_push(t->a, &j->r[0]->force) = leaf; /* by operand, see update */
}

static void add_results(cond *j)
{
	tensors *t = j->t;
	t_draft *d = &t->regions->draft;
	const t_trace *f = j->r[0]->f, *g = j->r[1]->f;
	int32_t n = f->n_out - j->r[0]->written.n;

	for (int32_t i = 0; i < n; i++) {
		*vec_push(t->a, &d->yield) = (t_yield){YIELD_BODY, {i, i}};
		*vec_push(t->a, &d->type) = f->out[i]->type;
		*vec_push(t->a, &d->made) =
			t_is_made(f->out[i]) || t_is_made(g->out[i]);
	}
	for (int32_t i = 0; i < d->op.n; i++)
		if (t->regions->op.at[i].kind == ORIGIN_KNOWN)
			add_written(j, i);
}

/* Outputs as handles outside. */
static void make_outputs(cond *j, t_call *c)
{
	tensors *t = j->t;
	const t_recorder *r = j->r[0];
	int32_t n = 0;

	for (int32_t i = 0; i < j->n_out; i++) {
		const tensor *x = r->out[i];
		t_view *view = r->force.at[i] ? NULL : x->view;
		t_storage *s = x->storage;

		if (!r->force.at[i] && first_on(r, r, i) < i &&
			!is_outside(r, s)) {
			s = j->out[first_on(r, r, i)]->storage;
		} else if (r->force.at[i] || !is_outside(r, s)) {
			t_value_keep(c->result[n]);
			s = t_storage_new(t, c->result[n++]);
		}
		j->out[i] = t_handle_new(t, s, view, &x->type);
	}
	for (int32_t i = 0; i < j->n_out; i++)
		while (j->out[i]->scope > j->scope - 1)
			tensor_keep(t, j->out[i]);
}

static void cond_job(void *arg)
{
	cond *j = arg;
	tensors *t = j->t;
	struct t_regions *all = t_regions_of(t);
	t_draft *d = &all->draft;
	t_value *pred;
	t_call *c;
	int32_t leaf = j->n_out;

	capture_check_depth(t);
	record_bodies(j);
	t_recorder_intern(t, j->r[0], "cond");
	t_recorder_intern(t, j->r[1], "cond");
	t_draft_clear(d);
	all->op.n = 0;
	d->kind = REGION_COND;
	d->g.body[0] = j->r[0]->f;
	d->g.body[1] = j->r[1]->f;
	pred = truth(t, j->pred);
	(void)t_operand_place(
		t, &(t_origin){ORIGIN_VALUE, -1, NULL, pred});
	feed(j, 0);
	feed(j, 1);
	add_results(j);
	c = t_region_call(t, t_region_make(t, d, "cond", true));
	make_outputs(j, c);
	for (int32_t i = 0; i < d->op.n; i++)
		if (d->next.at[i] >= 0)
			t_region_update(t, c, all->op.at[i].s, d->next.at[i],
				j->r[0]->force.at[leaf++]);
	t_call_drop(t, c);
}

void tensor_cond(tensors *t, tensor *pred, tensor_body *const body[2],
	void *const arg[2], tensor *const *in, int32_t n_out, tensor **out)
{
	cond j = {t, pred, body, arg, in, n_out, out,
		{t_recorder_new(t, 0, n_out), NULL}, t->scope.n};
	int32_t no_grad = t->no_grad;
	tn_status s;

	j.r[1] = t_recorder_new(t, 0, n_out);
	s = env_run(t->e, cond_job, &j);
	t->no_grad = no_grad;
	t_recorder_free(t, j.r[1]); /* the inner one first */
	t_recorder_free(t, j.r[0]);
	while (t->scope.n > j.scope)
		tensor_scope_leave(t);
	if (s < 0)
		env_rethrow(t->e);
}

/* ---- functions in C ---- */

void tensor_host_call(tensors *t, tensor_host *fn, tensor_host *back, void *arg,
	int32_t n_in, tensor *const *in, int32_t n_out, const ir_type *type,
	tensor **out)
{
	struct t_regions *all = t_regions_of(t);
	t_draft *d = &all->draft;
	bool any = false;
	t_call *c;

	t_draft_clear(d);
	all->op.n = 0;
	d->kind = REGION_HOST;
	d->g.host = (t_host){fn, back, arg};
	for (int32_t i = 0; i < n_in; i++) {
		t_value *v;

		t_renew(t, t_check(t, in[i])->storage);
		v = t_cur(t, in[i]->storage);
		if (in[i]->view != NULL)
			v = t_copy_of(t, v, in[i]->view, &in[i]->type);
		any |= v->tracked;
		(void)t_operand_place(
			t, &(t_origin){ORIGIN_VALUE, i, NULL, v});
	}
	for (int32_t i = 0; i < n_out; i++) {
		*vec_push(t->a, &d->yield) = (t_yield){YIELD_BODY, {i, -1}};
		*vec_push(t->a, &d->type) = type[i];
		*vec_push(t->a, &d->made) = any && back != NULL &&
			dtype_is_float(type[i].dtype);
	}
	c = t_region_call(t, t_region_make(t, d, "host", true));
	for (int32_t i = 0; i < n_out; i++) {
		t_value_keep(c->result[i]);
		out[i] = t_handle_new(
			t, t_storage_new(t, c->result[i]), NULL, &type[i]);
	}
	t_call_drop(t, c);
}
