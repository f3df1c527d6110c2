/*
 * region_loop.c: records loops: a test and a body become a call.
 *
 * A carried tensor is a value: each round computes the next one, and the body has it
 * as a new tensor. If the body returns a carried tensor unchanged or writes to it, it
 * is the caller's tensor: a storage that has its last version after the loop, in its
 * memory. The body is recorded again when this is found, and when a carried tensor
 * has a gradient from the second round on.
 *
 *     while (t < n) { write(cache[:, t], k); t = t + 1 }
 *     carried t, cache   operands t, cache, k   results t, cache', rounds
 *
 * The test is part of the body, after its results; before the first round it is
 * evaluated separately.
 */
#include "func/region.h"

typedef struct looping {
	tensors *t;
	const tensor_loop *l;
	tensor *const *in;
	tensor **out;
	t_recorder *r[2]; /* body, test; force[k]: carried in place */
	int32_t scope;
	int32_t n_values, test; /* results of the body: carried; which tests */
} looping;

static _Noreturn void refuse(const looping *j, const char *rule, int32_t i,
	const char *what)
{
	env_fail(j->t->e, TN_EINVAL, rule, t_here(j->t), "%s: %s %d %s",
		j->l->name, i < j->l->n_carried ? "carried tensor" : "row",
		(int)(i < j->l->n_carried ? i : i - j->l->n_carried), what);
}

/* ---- bodies ---- */

static ir_type row_type(const looping *j, int32_t i)
{
	ir_type y = j->in[i]->type;

	if (y.rank < 1 || y.shape[0] != j->l->n)
		refuse(j, "scan.rows", i,
			"must have as many rows as the loop has rounds");
	y.rank--;
	memmove(y.shape, y.shape + 1, (size_t)y.rank * sizeof y.shape[0]);
	return y;
}

/* What a body sees: the caller's tensor, or one of its own. */
static void make_arguments(looping *j, t_recorder *r, const bool *tracked)
{
	tensors *t = j->t;
	int32_t n = j->l->n_carried;

	for (int32_t i = 0; i < n; i++) {
		const tensor *x = j->in[i];

		if (j->r[0]->force.at[i]) {
			r->in[i] = t_handle_new(
				t, x->storage, x->view, &x->type);
			r->n_args++; /* the numbers stay */
		} else {
			r->in[i] = t_recorder_argument(
				t, r, &x->type, tracked[i]);
		}
	}
	for (int32_t i = n; r == j->r[0] && i < n + j->l->n_rows; i++) {
		ir_type y = row_type(j, i);

		r->in[i] = t_recorder_argument(t, r, &y,
			t_cur(t, j->in[i]->storage)->tracked);
	}
}

static void add_value(looping *j, t_recorder *r, t_value *v)
{
	t_value_keep(v);
	*vec_push(j->t->a, &r->value) = v;
}

static void add_test(looping *j, t_recorder *r, tensor *const *carried)
{
	tensors *t = j->t;
	tensor *x = NULL;
	const char *open;

	j->l->test(j->l->test_arg, carried, &x);
	open = capture_open(t, &r->c);
	if (open != NULL)
		env_fail(t->e, TN_EINVAL, "compile.scope", t_here(t),
			"%s: the test %s", j->l->name, open);
	t_check(t, x);
	if (shape_numel(x->type.shape, x->type.rank) != 1 ||
		dtype_is_float(x->type.dtype))
		env_fail(t->e, TN_EINVAL, "while.test", t_here(t),
			"the test returns %s, but it must return one bool or "
			"integer",
			t_type_text(t, &x->type));
	add_value(j, r, t_result_of(t, r, x));
}

static void check_outputs(looping *j, const t_recorder *r)
{
	tensors *t = j->t;
	int32_t n = j->l->n_carried;

	for (int32_t i = 0; i < n + j->l->n_out; i++) {
		const ir_type *y;

		if (r->out[i] == NULL || !tensor_is_valid(r->out[i]))
			env_fail(t->e, TN_EINVAL, "loop.output", t_here(t),
				"%s: output %d is not a valid tensor: it was "
				"not set, or it was dropped",
				j->l->name, (int)i);
		(void)t_cur(t, r->out[i]->storage);
		if (i >= n)
			continue;
		y = &r->out[i]->type;
		if (!t_same_type(y, &j->in[i]->type))
			env_fail(t->e, TN_EINVAL, "loop.carried", t_here(t),
				"%s: carried tensor %d is %s, and %s after a "
				"round",
				j->l->name, (int)i,
				t_type_text(t, &j->in[i]->type),
				t_type_text(t, y));
	}
}

/* What is written is handed on, and rows are not written. */
static bool find_in_place(looping *j, t_recorder *r)
{
	int32_t n = j->l->n_carried, n_rows = j->l->n_rows;
	bool changed = false;

	for (int32_t i = 0; i < n + n_rows; i++) {
		const tensor *x = r->in[i], *y = i < n ? r->out[i] : NULL;
		bool same = y != NULL && x->storage == y->storage &&
			t_same_views(x->view, y->view);

		if (i < n && r->force.at[i]) {
			if (!same)
				refuse(j, "loop.carried", i,
					"is written by the body: the body "
					"must return the same tensor");
			continue;
		}
		for (int32_t k = 0; k < r->c.bound.n; k++) {
			const t_bound *b = &r->c.bound.at[k];

			if (b->s != x->storage || b->s->cur == b->first)
				continue;
			if (i >= n)
				refuse(j, "scan.rows", i,
					"is written by the body: write to the "
					"carried tensor itself, or return the "
					"new value");
			if (!same)
				refuse(j, "loop.carried", i,
					"is written by the body: the body "
					"must return the same tensor");
		}
		if (same)
			r->force.at[i] = changed = true;
	}
	return changed;
}

/*
 * Finds carried tensors that have a gradient from the second round on, or that are
 * leaves only before the first.
 */
static bool find_tracked(looping *j, t_recorder *r, bool *tracked)
{
	bool changed = false;

	for (int32_t i = 0, n = 0; i < j->l->n_carried; i++) {
		const t_value *v;

		if (r->force.at[i])
			continue;
		v = r->value.at[n++];
		if (tracked[i] || !t_is_made(v) ||
			!dtype_is_float(v->type.dtype))
			continue;
		tracked[i] = changed = true;
	}
	for (int32_t i = 0; i < r->c.bound.n &&
		j->t->dropped != TENSOR_RULE_ROUNDS; i++) {
		const t_bound *b = &r->c.bound.at[i];

		if (b->arg >= 0 || b->s->cur == b->first ||
			!b->s->cur->tracked ||
			(b->first->tracked &&
				(b->first->slot == NULL ||
					t_is_leaf(b->s, b->s->cur))))
			continue;
		*vec_push(j->t->a, &r->tracked) = b->s;
		changed = true;
	}
	return changed;
}

/* Records the body; false: it must be recorded again. */
static bool try_body(looping *j, bool *tracked)
{
	tensors *t = j->t;
	t_recorder *r = j->r[0];
	int32_t n = j->l->n_carried;
	const char *open;

	tensor_scope_enter(t);
	t_recorder_begin(t, r);
	for (int32_t i = 0; i < r->tracked.n; i++) {
		t_value *v = t_cur(t, r->tracked.at[i]);

		v->tracked = true;
		t_slot_drop(t, v->slot);
		v->slot = NULL;
	}
	make_arguments(j, r, tracked);
	j->l->body(j->l->arg, r->in, r->out);
	open = capture_open(t, &r->c);
	if (open != NULL)
		env_fail(t->e, TN_EINVAL, "compile.scope", t_here(t),
			"%s: the body %s", j->l->name, open);
	check_outputs(j, r);
	if (find_in_place(j, r))
		return false;
	for (int32_t i = 0; i < n + j->l->n_out; i++)
		if (i >= n || !r->force.at[i])
			add_value(j, r, t_result_of(t, r, r->out[i]));
	if (find_tracked(j, r, tracked))
		return false;
	j->test = -1;
	if (j->l->test != NULL) {
		j->test = r->value.n;
		add_test(j, r, r->out);
	}
	t_recorder_end(t, r);
	t_recorder_writes(t, r);
	return true;
}

static void record_body(looping *j)
{
	tensors *t = j->t;
	t_recorder *r = j->r[0];
	/* a scratch that lives as long as r */
	bool tracked[TENSOR_MAX_CARRIED] = {false};

	r->force.n = r->tracked.n = 0;
	for (int32_t i = 0; i < j->l->n_carried; i++) {
		*vec_push(t->a, &r->force) = false;
		tracked[i] = t_cur(t, j->in[i]->storage)->tracked;
	}
	while (!try_body(j, tracked)) {
		t_recorder_drop(t, r);
		while (t->scope.n > j->scope)
			tensor_scope_leave(t);
	}
}

static void record_test(looping *j)
{
	tensors *t = j->t;
	t_recorder *r = j->r[1];
	bool none[TENSOR_MAX_CARRIED] = {false};

	tensor_scope_enter(t);
	t_recorder_begin(t, r);
	make_arguments(j, r, none);
	add_test(j, r, r->in);
	t_recorder_end(t, r);
	t_recorder_writes(t, r);
	if (r->written.n > 0)
		env_fail(t->e, TN_EINVAL, "while.test", t_here(t),
			"the test of a loop must not write to a tensor");
}

/* ---- the region ---- */

/* Number among what is carried of each argument that is a value. */
static int32_t carry_of(const looping *j, int32_t arg)
{
	int32_t n = 0;

	for (int32_t i = 0; i < arg; i++)
		n += !j->r[0]->force.at[i];
	return n;
}

static t_value *value_now(tensors *t, const tensor *x)
{
	t_value *v = t_cur(t, x->storage);

	return x->view == NULL ? v : t_copy_of(t, v, x->view, &x->type);
}

/* Values that are carried, then rows: the first operands. */
static void add_arguments(looping *j)
{
	tensors *t = j->t;
	t_draft *d = &t->regions->draft;

	for (int32_t i = 0; i < j->l->n_carried + j->l->n_rows; i++) {
		t_carry c = {.next = d->carry.n, .pass = -1};

		if (i < j->l->n_carried && j->r[0]->force.at[i])
			continue;
		c.from = t_operand_place(t,
			&(t_origin){ORIGIN_VALUE, -1 - i, NULL,
				value_now(t, j->in[i])});
		if (i < j->l->n_carried)
			*vec_push(t->a, &d->carry) = c;
	}
}

/* It becomes what another one was: handed over, not computed. */
static void find_passes(looping *j)
{
	t_draft *d = &j->t->regions->draft;
	const t_trace *f = j->r[0]->f;

	for (int32_t k = 0; k < j->n_values; k++)
		for (int32_t i = 0; i < f->n_in; i++)
			if (f->in[i] == f->out[k] &&
				d->feed[0].at[i].kind == FEED_CARRY &&
				!d->carry.at[d->feed[0].at[i].at].in_place)
				d->carry.at[k].pass = d->feed[0].at[i].at;
}

static t_feed feed_of(looping *j, const t_recorder *r, int32_t i)
{
	tensors *t = j->t;
	t_draft *d = &t->regions->draft;
	const t_origin *o = &r->from.at[i];
	int32_t at;

	if (o->kind == ORIGIN_ARG && o->i < j->l->n_carried)
		return (t_feed){FEED_CARRY, carry_of(j, o->i), 0};
	if (o->kind == ORIGIN_ARG)
		return (t_feed){FEED_ROW,
			j->n_values + o->i - j->l->n_carried, 0};
	if (o->kind == ORIGIN_KEY) {
		at = t_operand_place(
			t, &(t_origin){ORIGIN_KEY, 0, NULL, NULL});
		return (t_feed){FEED_KEY, at, o->i};
	}
	at = t_operand_place(t, o);
	for (int32_t k = 0; k < d->carry.n; k++)
		if (d->carry.at[k].from == at && d->carry.at[k].in_place)
			return (t_feed){FEED_CARRY, k, 0};
	return (t_feed){FEED_OPERAND, at, 0};
}

/* Storages that the body writes are carried, too. */
static void add_storages(looping *j)
{
	tensors *t = j->t;
	t_draft *d = &t->regions->draft;
	const t_recorder *r = j->r[0];

	for (int32_t i = 0; i < r->written.n; i++) {
		const t_written *w = &r->written.at[i];

		*vec_push(t->a, &d->carry) = (t_carry){
			.from = t_operand_place(t, &r->from.at[w->in]),
			.next = w->out,
			.pass = -1,
			.in_place = true};
	}
}

static void add_result(
	looping *j, t_yield y, const ir_type *type, bool made)
{
	t_draft *d = &j->t->regions->draft;

	*vec_push(j->t->a, &d->yield) = y;
	*vec_push(j->t->a, &d->type) = *type;
	*vec_push(j->t->a, &d->made) = made;
}

static bool was_leaf(const t_storage *s)
{
	return s->cur->tracked && s->cur->slot != NULL &&
		s->cur->slot == s->slot;
}

/* Last values, rows of outputs, then the versions that storages end with. */
static void add_results(looping *j)
{
	tensors *t = j->t;
	t_draft *d = &t->regions->draft;
	const t_trace *f = j->r[0]->f;

	for (int32_t k = 0; k < j->n_values; k++)
		add_result(j, (t_yield){YIELD_LAST, {k, -1}}, &f->out[k]->type,
			d->op.at[d->carry.at[k].from]->tracked ||
				t_is_made(f->out[k]));
	for (int32_t i = 0; i < j->l->n_out; i++) {
		ir_type y = f->out[j->n_values + i]->type;

		if (y.rank == TN_MAX_RANK)
			env_fail(t->e, TN_EINVAL, "scan.rows", t_here(t),
				"%s: output %d has %d axes already",
				j->l->name, (int)i, TN_MAX_RANK);
		memmove(y.shape + 1, y.shape,
			(size_t)y.rank * sizeof y.shape[0]);
		y.shape[0] = j->l->n;
		y.rank++;
		add_result(j, (t_yield){YIELD_ROWS, {j->n_values + i, -1}}, &y,
			t_is_made(f->out[j->n_values + i]));
	}
	for (int32_t k = j->n_values; k < d->carry.n; k++) {
		const t_carry *c = &d->carry.at[k];
		t_written *w = &j->r[0]->written.at[k - j->n_values];
		bool perhaps = j->l->test != NULL || j->l->n == 0;

		/* with no round it is what it was */
		if (perhaps)
			w->is_leaf &= was_leaf(t->regions->op.at[c->from].s);
		d->next.at[c->from] = d->yield.n;
		add_result(j, (t_yield){YIELD_LAST, {k, -1}},
			&d->op.at[c->from]->type,
			t_is_made(f->out[c->next]) ||
				(d->op.at[c->from]->tracked && perhaps &&
					!w->is_leaf));
	}
}

static void make_outputs(looping *j, t_call *c)
{
	tensors *t = j->t;
	int32_t r = 0;

	for (int32_t i = 0; i < j->l->n_carried + j->l->n_out; i++) {
		bool is_value = i >= j->l->n_carried ||
			!j->r[0]->force.at[i];
		const tensor *x = i < j->l->n_carried ? j->in[i] : NULL;

		if (is_value) {
			t_value *v = c->result[r++];

			t_value_keep(v);
			j->out[i] = t_handle_new(
				t, t_storage_new(t, v), NULL, &v->type);
		} else {
			j->out[i] = t_handle_new(
				t, x->storage, x->view, &x->type);
		}
		while (j->out[i]->scope > j->scope - 1)
			tensor_keep(t, j->out[i]);
	}
}

static void loop_job(void *arg)
{
	looping *j = arg;
	tensors *t = j->t;
	struct t_regions *all = t_regions_of(t);
	t_draft *d = &all->draft;
	t_call *c;

	capture_check_depth(t);
	for (int32_t i = 0; i < j->l->n_carried + j->l->n_rows; i++)
		t_renew(t, t_check(t, j->in[i])->storage);
	record_body(j);
	if (j->l->test != NULL)
		record_test(j);
	j->n_values = carry_of(j, j->l->n_carried);
	t_recorder_intern(t, j->r[0], j->l->name);
	t_draft_clear(d);
	all->op.n = 0;
	d->kind = REGION_LOOP;
	d->g.body[0] = j->r[0]->f;
	d->g.n = j->l->n;
	d->g.test = j->test;
	add_arguments(j);
	add_storages(j);
	for (int32_t i = 0; i < j->r[0]->from.n; i++) {
		t_feed x = feed_of(j, j->r[0], i);

		*vec_push(t->a, &d->feed[0]) = x;
	}
	if (j->l->test != NULL) {
		t_recorder_intern(t, j->r[1], j->l->name);
		d->g.body[1] = j->r[1]->f;
		for (int32_t i = 0; i < j->r[1]->from.n; i++) {
			t_feed x = feed_of(j, j->r[1], i);

			*vec_push(t->a, &d->feed[1]) = x;
		}
	}
	find_passes(j);
	add_results(j);
	c = t_region_call(t, t_region_make(t, d, j->l->name, true));
	make_outputs(j, c);
	for (int32_t k = j->n_values, i = 0; k < d->carry.n; k++, i++) {
		int32_t op = d->carry.at[k].from;

		t_region_update(t, c, all->op.at[op].s, d->next.at[op],
			j->r[0]->written.at[i].is_leaf);
	}
	t_call_drop(t, c);
}

void tensor_loop_call(tensors *t, const tensor_loop *l, tensor *const *in,
	tensor **out)
{
	int32_t n = l->n_carried + l->n_rows, no_grad = t->no_grad;
	looping j = {.t = t, .l = l, .in = in, .out = out, .scope = t->scope.n};
	tn_status s;

	if (l->n_carried > TENSOR_MAX_CARRIED)
		env_fail(t->e, TN_EINVAL, "loop.carried", t_here(t),
			"%d tensors are carried; at most %d are possible",
			(int)l->n_carried, TENSOR_MAX_CARRIED);
	j.r[0] = t_recorder_new(t, n, l->n_carried + l->n_out);
	j.r[1] = l->test != NULL ? t_recorder_new(t, n, 0) : NULL;
	s = env_run(t->e, loop_job, &j);
	t->no_grad = no_grad;
	t_recorder_free(t, j.r[1]);
	t_recorder_free(t, j.r[0]);
	while (t->scope.n > j.scope)
		tensor_scope_leave(t);
	if (s < 0)
		env_rethrow(t->e);
}
