/*
 * flush.c: evaluates values: makes a program of the calls that are needed, and runs
 * it.
 *
 * The program consists of the calls on which the requested values depend, in the
 * order of recording. Its inputs are computed values; its outputs are the values
 * that are still referenced. Its structure (instances, reads and their views,
 * outputs, memory that can be overwritten) is the key for a compiled program
 * (program.c).
 *
 * A write uses the memory of the version before it, if that is no longer needed;
 * else it makes a new value. If the memory's address must not change (parameters),
 * elements that are still needed are copied first. Reads are of values, which
 * never change, so both are exact.
 */
#include "value/node.h"

/* ---- numbers: inputs odd, results even ---- */

static void number_values(tensors *t)
{
	int32_t n = 0;

	t->input.n = t->stretch.n = 0;
	for (int32_t k = 0; k < t->todo.n; k++) {
		t_call *c = t->todo.at[k];

		for (int32_t i = 0; i < c->n_args; i++) {
			t_meet(t, c->arg[i].v);
			c->arg[i].v->inside += !t_keep_holds(t, c, i);
			for (const t_view *w = c->arg[i].view; w != NULL;
				w = w->parent)
				for (int32_t j = 0; j < w->n_extra; j++)
					t_meet(t, w->extra[j].v);
		}
		for (int32_t i = 0; i < c->n_results; i++, n++)
			if (c->result[i] != NULL) {
				t_meet(t, c->result[i]);
				c->result[i]->number = 2 * n;
			}
	}
}

/* Is it still needed after these calls? */
static bool is_wanted(const t_value *v)
{
	return v->data > v->inside;
}

/*
 * The input (number in t->input) whose memory a write of p uses: the write changes
 * that input, or a version in its memory; else -1.
 */
static int32_t base_of(tensors *t, t_value *p)
{
	const t_buffer *b = p->buf;
	int32_t i = p->number / 2;

	if (p->base >= 0)
		return t->base.at[p->base] == p ? p->base : -1;
	if (b == NULL || p->number % 2 == 0 || t->base.at[i] != NULL)
		return -1;
	/* two values never share memory that is written */
	return b->refs == 1 && (b->is_external || !is_wanted(p)) ? i : -1;
}

static void find_base(tensors *t, t_value *p, t_value *next)
{
	int32_t base = next == NULL ? -1 : base_of(t, p);

	if (base < 0)
		return;
	next->base = base;
	t->base.at[base] = next;
}

static void find_bases(tensors *t)
{
	t->base.n = 0;
	for (int32_t i = 0; i < t->input.n; i++)
		*vec_push(t->a, &t->base) = NULL;
	for (int32_t k = 0; k < t->todo.n; k++) {
		t_call *c = t->todo.at[k];

		if (t_is_write(c))
			find_base(t, c->arg[0].v, c->result[0]);
		for (int32_t i = 0; c->trace != NULL && i < c->n_args; i++)
			if (c->trace->next[i] >= 0)
				find_base(t, c->arg[i].v,
					c->result[c->trace->next[i]]);
	}
}

/* ---- stretches ---- */

/*
 * A read of consecutive computed elements becomes a separate input, so that the
 * program does not depend on where a batch of data begins.
 */
static void find_stretch(tensors *t, t_read *r)
{
	const t_value *v = r->v;
	const ir_type *type;
	int64_t from = 0;

	r->window = 0;
	if (r->view == NULL || v->buf == NULL || v->number % 2 == 0 ||
		v->where != 0 ||
		t->base.at[v->number / 2] != NULL)
		return;
	for (const t_view *w = r->view; w != NULL; w = w->parent) {
		if (!t_is_stretch(t, w->entry))
			return;
		from += w->entry->from;
	}
	type = &r->view->entry->inst
			->tensor[r->view->entry->inst->result[0]]
			.type;
	for (int32_t i = 0; i < t->input.n && r->window == 0; i++)
		if (t->input.at[i] == v && t->stretch.at[i].from == from &&
			t->stretch.at[i].type == type)
			r->window = i + 1;
	if (r->window > 0)
		return;
	*vec_push(t->a, &t->input) = r->v;
	*vec_push(t->a, &t->stretch) = (t_stretch){from, type};
	*vec_push(t->a, &t->base) = NULL;
	r->window = t->input.n;
}

static void find_stretches(tensors *t)
{
	for (int32_t k = 0; k < t->todo.n; k++) {
		t_call *c = t->todo.at[k];

		for (int32_t i = 0; i < c->n_args; i++) {
			c->arg[i].window = 0;
			if (!(t_is_write(c) && i == 0) &&
				(c->trace == NULL || c->trace->next[i] < 0))
				find_stretch(t, &c->arg[i]);
		}
	}
}

/* ---- the key ---- */

static void code_read(tensors *t, const t_read *r)
{
	if (r->window > 0) {
		t_code(t, 2 * r->window - 1);
		t_code(t, -1);
		return;
	}
	t_code(t, r->v->number);
	for (const t_view *w = r->view; w != NULL; w = w->parent) {
		t_code(t, w->entry->id);
		for (int32_t i = 0; i < w->n_extra; i++)
			code_read(t, &w->extra[i]);
	}
	t_code(t, -1);
}

static void code_type(tensors *t, const ir_type *y)
{
	t_code(t, (int32_t)y->dtype);
	t_code(t, y->rank);
	for (int32_t i = 0; i < y->rank; i++) {
		t_code(t, (int32_t)(y->shape[i] & 0x7fffffff));
		t_code(t, (int32_t)(y->shape[i] >> 31));
	}
}

static bool is_output(const t_call *c, int32_t i)
{
	const t_value *v = c->result[i];

	return v != NULL && is_wanted(v);
}

static bool ends_in_base(const tensors *t, const t_value *v)
{
	return v->base >= 0 && t->base.at[v->base] == v;
}

/* 1 + required placement; a value with fixed memory must be whole */
static int32_t wanted_at(const t_value *v)
{
	return v == NULL ? 0 : v->place != NULL ? 1 : v->want;
}

static void make_key(tensors *t)
{
	t->code.n = 0;
	t->output.n = 0;
	t_code(t, t->rounds != NULL);
	for (int32_t k = 0; k < t->todo.n; k++) {
		t_call *c = t->todo.at[k];

		t_code(t, c->entry != NULL ? c->entry->id
				: c->trace != NULL ? -3 - c->trace->id : -2);
		if (t_is_write(c))
			t_code(t, c->result[0] != NULL ? c->result[0]->base : -1);
		for (int32_t i = 0; i < c->n_args; i++)
			code_read(t, &c->arg[i]);
		for (int32_t i = 0; i < c->n_results; i++) {
			bool out = is_output(c, i) &&
				!ends_in_base(t, c->result[i]);

			t_code(t, out);
			if (t->placed)
				t_code(t, wanted_at(c->result[i]));
			if (out)
				*vec_push(t->a, &t->output) = c->result[i];
		}
	}
	for (int32_t i = 0; i < t->input.n; i++) {
		code_type(t, t->stretch.at[i].type);
		t_code(t, t->base.at[i] != NULL);
		t_code(t, t_is_steady(t, i));
		if (t->placed)
			t_code(t, t->input.at[i]->where);
	}
}

struct planning {
	tensors *t;
	t_plan made;
};

/* Compiles the program; finds the placements of its outputs, if there are any. */
static void make_plan(arena *a, void *arg)
{
	struct planning *k = arg;
	tensors *t = k->t;
	ir_program *p = t_program(t, a);
	tensor_placing w = {.n_out = t->output.n,
		.hash = hash_bytes(t->code.at,
			(size_t)t->code.n * sizeof *t->code.at, 0)};
	t_plan r = {0};

	if (t->placed) {
		t->in_place.n = 0;
		for (int32_t i = 0; i < t->input.n; i++)
			*vec_push(t->a, &t->in_place) = t->input.at[i]->where;
		w.in = t->in_place.at;
		w.n_want = t->want.n;
		w.want = t->want.at;
		r.where = w.out = arena_array(a, int32_t, t->want.n + 1);
	}
	r.n_made_of = t->made_of.n;
	r.made_of = arena_copy(a, t->made_of.at,
		(size_t)t->made_of.n * sizeof *t->made_of.at);
	r.compiled = t->b.compile(t->b.arg, a, p, t->placed ? &w : NULL);
	k->made = r;
}

static const t_plan *plan_of(tensors *t)
{
	size_t n = (size_t)t->code.n * sizeof *t->code.at;
	int64_t found = map_get(t->plan_of, t->code.at, n, -1);
	struct planning k = {.t = t};

	if (found >= 0) {
		t->stats.n_plan_hits++;
		return &t->plan.at[found];
	}
	t->stats.n_plan_misses++;
	vec_reserve(t->a, &t->plan, 1);
	(void)arena_keep(t->a, make_plan, &k);
	*vec_push(t->a, &t->plan) = k.made;
	map_set(t->plan_of, t->code.at, n, t->plan.n - 1);
	return &t->plan.at[t->plan.n - 1];
}

/* ---- running ---- */

/* Allocates outputs, and copies values that a write replaces but are needed. */
static void make_buffers(tensors *t, const int32_t *where)
{
	t->out.n = t->in.n = t->version.n = 0;
	for (int32_t i = 0; i < t->made.n; i++) /* left by a run that failed */
		t_buffer_drop(t, t->made.at[i]);
	t->made.n = 0;
	for (int32_t i = 0; i < t->output.n; i++) {
		size_t n = t_room(
			t, t->output.at[i], where != NULL ? where[i] : 0);

		t_buffer *b = t->output.at[i]->place != NULL
			? t->output.at[i]->place
			: t_buffer_new(t, n);

		*vec_push(t->a, &t->made) = b;
		t->output.at[i]->place = NULL;
		*vec_push(t->a, &t->out) = t->made.at[i]->data;
		/* an intermediate version: the next write overwrites it */
		if (t->output.at[i]->base >= 0)
			t_count_copy(t, t->output.at[i]);
	}
	for (int32_t i = 0; i < t->input.n; i++) {
		t_value *v = t->input.at[i];
		t_buffer *b;

		*vec_push(t->a, &t->in) = (char *)v->buf->data +
			(size_t)t->stretch.at[i].from *
				dtype_size(v->type.dtype);
		*vec_push(t->a, &t->version) = t_version_of(t, i);
		if (t->base.at[i] == NULL || !is_wanted(v))
			continue;
		b = t_buffer_new(t, t_room(t, v, v->where));
		t_copy(t, b->data, v->buf->data, t_room(t, v, v->where));
		*vec_push(t->a, &t->made) = b;
		if (t_data(v) > v->inside)
			t_count_copy(t, v);
	}
}

static void take_buffers(tensors *t, const int32_t *where)
{
	int32_t made = 0;

	for (int32_t i = 0; i < t->output.n; i++) {
		t->output.at[i]->buf = t->made.at[made++];
		t->output.at[i]->where = where != NULL ? where[i] : 0;
	}
	for (int32_t i = 0; i < t->input.n; i++) {
		t_value *v = t->input.at[i], *last = t->base.at[i];

		if (last == NULL)
			continue;
		last->buf = v->buf;
		last->where = v->where;
		v->buf = is_wanted(v) ? t->made.at[made++] : NULL;
	}
	t->made.n = 0;
}

/* t->todo as one program, which may be one of several */
static void run_program(tensors *t, bool is_last)
{
	bool is_part = t->journal.is_open && t->running == 0;
	const t_plan *plan;

	if (t->todo.n == 0)
		return;
	number_values(t);
	if (t_keep_choose(t)) {
		t->stamp++; /* new counts for the next evaluation */
		number_values(t);
	}
	if (is_part)
		t_journal_inputs(t, is_last);
	find_bases(t);
	find_stretches(t);
	make_key(t);
	t->stats.n_flushes++;
	plan = plan_of(t);
	make_buffers(t, plan->where);
	if (t->running == 0)
		t->ran = plan;
	t->b.run(t->b.arg, plan->compiled, t->in.at, t->version.at,
		t->out.at);
	take_buffers(t, plan->where);
	if (t->running == 0)
		t->ran = NULL;
	for (int32_t i = 0; i < t->todo.n; i++)
		if (is_part && !is_last)
			t_journal_add(t, t->todo.at[i]);
		else
			t_end_call(t, t->todo.at[i]);
}

static void check_whole(tensors *t, const t_call *c)
{
	for (int32_t i = 0; i < c->n_args; i++)
		if (c->arg[i].v->where != 0)
			env_fail(t->e, TN_EINVAL, "shard.region",
				t_here(t),
				"a condition or a loop reads a sharded "
				"tensor: give it tn_full of the tensor");
}

/* References to its results keep it alive. */
static void run_region(tensors *t, t_call *c, bool is_last)
{
	bool is_part = t->journal.is_open && t->running == 0;

	if (t->running == 0)
		t->region = c; /* for undo.c, if it fails */
	check_whole(t, c);
	if (is_part)
		t_journal_operands(t, c, is_last);
	t->functions->run_region(t, c);
	if (t->running == 0)
		t->region = NULL;
	if (is_part && !is_last)
		t_journal_add(t, c);
	else
		t_end_call(t, c);
}

static int32_t first_region(const tensors *t)
{
	int32_t k = 0;

	while (k < t->todo.n &&
		(t->todo.at[k]->trace == NULL ||
			t->todo.at[k]->trace->kind == REGION_NONE))
		k++;
	return k;
}

/*
 * Regions are not part of programs: needed calls that were recorded before a region
 * run before it.
 */
static void evaluate(tensors *t, t_value *const *v, int32_t n)
{
	t_find_calls(t, v, n);
	for (int32_t k; (k = first_region(t)) < t->todo.n; t_find_calls(t, v, n)) {
		t_call *c = t->todo.at[k];
		bool is_last = k == t->todo.n - 1;

		if (t->running == 0 && !t->journal.is_open)
			t_journal_begin(t);
		t->todo.n = k;
		run_program(t, false);
		t->todo.n = 0;
		run_region(t, c, is_last);
		if (is_last)
			return;
	}
	run_program(t, true);
}

struct wanted {
	tensors *t;
	t_value *const *v;
	int32_t n;
};

static void evaluate_all(void *arg)
{
	const struct wanted *w = arg;
	bool any = false;

	w->t->todo.n = w->t->whole_step.n = 0;
	for (int32_t i = 0; i < w->n; i++)
		any = any || w->v[i]->buf == NULL;
	if (!any)
		return;
	evaluate(w->t, w->v, w->n);
	if (w->t->journal.is_open)
		t_journal_end(w->t);
	w->t->evaluated = w->t->next_id;
}

void t_flush(tensors *t, t_value *const *v, int32_t n)
{
	if (t->capture != NULL)
		env_fail(t->e, TN_EINVAL, "compile.read",
			t_here(t),
			"the elements of a tensor are read inside a function "
			"that is being compiled, where they are not known yet: "
			"read it outside");
	if (t->running > 0) { /* part of an evaluation */
		evaluate(t, v, n);
		return;
	}
	if (env_run(t->e, evaluate_all, &(struct wanted){t, v, n}) >= 0)
		return;
	t_undo(t, v, n);
	env_rethrow(t->e);
}

/* ---- reading ---- */

void tensor_eval(tensors *t, tensor *const *x, int32_t n)
{
	t->asked.n = 0; /* reuse the array */
	for (int32_t i = 0; i < n; i++)
		*vec_push(t->a, &t->asked) = t_check(t, x[i])->storage->cur;
	t_flush(t, t->asked.at, n);
}

const void *tensor_data(tensors *t, tensor *x)
{
	t_check(t, x);
	t_flush(t, &x->storage->cur, 1);
	return t_whole(t, x->storage->cur);
}

const void *tensor_data_in(tensors *t, tensor *x, arena *a)
{
	const t_value *v;
	void *copy;

	if (t->b.device->is_host)
		return tensor_data(t, x);
	t_check(t, x);
	t_flush(t, &x->storage->cur, 1);
	v = x->storage->cur;
	copy = arena_alloc(a, ir_type_bytes(&v->type) + 1, 1);
	t_fetch(t, v, copy);
	return copy;
}

void *tensor_address(tensors *t, tensor *x)
{
	t_check(t, x);
	t_flush(t, &x->storage->cur, 1);
	t->b.device->sync(t->b.device);
	return x->storage->cur->buf->data;
}

void tensor_read(tensors *t, tensor *x, void *data, size_t n_bytes)
{
	loc at = t_here(t);
	tensor *copy = x;

	t_check(t, x);
	if (n_bytes != ir_type_bytes(&x->type))
		env_fail(t->e, TN_EINVAL, "tensor.size", at,
			"the tensor has %zu bytes, but the array has %zu",
			ir_type_bytes(&x->type), n_bytes);
	if (x->view != NULL || x->lens != 0)
		tensor_call(t, ir_table_find(t->table, "copy"), 1, &x, 0,
			NULL, &copy, 1);
	t_flush(t, &copy->storage->cur, 1);
	t_fetch(t, copy->storage->cur, data);
	if (copy != x)
		tensor_drop(t, copy);
}

tensor *tensor_share(tensors *t, tensor *x)
{
	tensor *y;

	t_check(t, x);
	if (x->view == NULL && x->storage->placed == 0 && x->lens == 0)
		y = t_handle_new(t, x->storage, NULL, &x->type);
	else
		tensor_call(t, ir_table_find(t->table, "copy"), 1, &x, 0, NULL,
			&y, 1);
	while (y->scope > 0)
		tensor_keep(t, y);
	tensor_eval(t, &y, 1);
	t_move(t, y->storage->cur, 0);
	y->storage->cur->buf->is_external = true;
	y->storage->cur->buf->is_lent = true;
	return y;
}
