/*
 * capture.c: finds the storages that a function reads and writes.
 *
 * While a function is recorded, the first use of an outside storage gives it a new
 * version, which represents its value in later calls; writes follow that version.
 * At the end, the storages are restored, and the list has the first and the last
 * version of each inside.
 */
#include "value/capture.h"

enum { MAX_DEPTH = 64 }; /* nested bodies use the stack */

void capture_check_depth(const tensors *t)
{
	if (t->capture != NULL && t->capture->depth >= MAX_DEPTH)
		env_fail(t->e, TN_EINVAL, "compile.depth",
			t_here(t),
			"more than %d bodies of functions, conditions and loops "
			"are recorded inside each other: does one call itself "
			"without an end?",
			MAX_DEPTH);
}

void capture_begin(tensors *t, t_capture *c, bool is_walk)
{
	*c = (t_capture){.outer = t->capture,
		.depth = t->capture != NULL ? t->capture->depth + 1 : 1,
		.id = ++t->n_captures,
		.is_walk = is_walk,
		.scopes = t->scope.n,
		.steps = t->steps,
		.step = t->step,
		.no_grad = t->no_grad};
	t->capture = c;
	t->capture_id = c->id;
}

static t_value *stand_in(tensors *t, const ir_type *type)
{
	t_value *v = t_value_new(t, type);

	t_value_keep(v);
	return v;
}

static void bind_gradient(tensors *t, t_bound *b)
{
	t_slot *slot = b->s->slot;

	if (slot == NULL || slot->grad == NULL)
		return;
	b->grad_was = slot->grad;
	b->grad_first = stand_in(t, &slot->grad->type);
	t_value_keep(b->grad_first); /* references of the slot and of the list */
	slot->grad = b->grad_first;
}

t_value *t_cur(tensors *t, t_storage *s)
{
	t_capture *c = t->capture;
	t_bound *b;
	t_value *v;

	if (c == NULL || c->is_walk || s->bound == c->id)
		return s->cur;
	v = stand_in(t, &s->cur->type);
	if (s->cur->tracked && s->cur->slot != NULL && s->cur->slot == s->slot)
		t_leaf(t, s, v);
	v->tracked = s->cur->tracked;
	v->is_freed = s->cur->is_freed;
	b = vec_push(t->a, &c->bound);
	*b = (t_bound){.s = s,
		.was = s->cur,
		.first = v,
		.bound_was = s->bound,
		.arg = -1};
	t_value_keep(v); /* references of the storage and of the list */
	s->refs++;
	s->bound = c->id;
	s->cur = v;
	bind_gradient(t, b);
	return v;
}

t_storage *capture_argument(tensors *t, t_storage *outside, int32_t arg,
	const ir_type *type, bool is_whole)
{
	t_capture *c = t->capture;
	t_value *v = stand_in(t, type);
	t_storage *s = t_storage_new(t, v);

	t_value_keep(v);
	s->refs++;
	s->name = outside->name;
	v->tracked = outside->cur->tracked;
	v->is_freed = outside->cur->is_freed;
	if (v->tracked && outside->cur->slot != NULL &&
		outside->cur->slot == outside->slot)
		t_leaf(t, s, v);
	*vec_push(t->a, &c->bound) =
		(t_bound){.s = s, .first = v, .arg = arg, .is_whole = is_whole};
	return s;
}

t_value *capture_key(tensors *t)
{
	ir_type y = {.dtype = TN_I64};
	t_value *v = stand_in(t, &y);
	int64_t key;

	if (t->capture != NULL) {
		*vec_push(t->a, &t->capture->key) = v;
		return v;
	}
	key = t->b.key(t->b.arg);
	v->buf = t_buffer_new(t, sizeof key);
	t_put(t, v->buf->data, &key, sizeof key);
	return v;
}

tensor *tensor_random_key(tensors *t)
{
	t_value *v = capture_key(t);

	if (t->capture != NULL) /* the list has a reference, too */
		t_value_keep(v);
	return t_handle_new(t, t_storage_new(t, v), NULL, &v->type);
}

/* Copies the user's string, which may be freed before the recording. */
static const char *kept_file(tensors *t)
{
	if (t->file == NULL)
		return NULL;
	for (int32_t i = 0; i < t->files.n; i++)
		if (strcmp(t->files.at[i], t->file) == 0)
			return t->files.at[i];
	return *vec_push(t->a, &t->files) = arena_strdup(t->a, t->file);
}

void t_captured(tensors *t, t_call *call)
{
	t_capture *c = t->capture;

	if (c == NULL)
		return;
	call->refs++;
	*vec_push(t->a, &c->call) = call;
	if (t->file != c->file)
		c->file_copy = kept_file(t);
	c->file = t->file;
	*vec_push(t->a, &c->at) = (loc){.file = c->file_copy, .line = t->line};
}

static void release_gradient(tensors *t, t_bound *b)
{
	t_slot *slot = b->s->slot;

	b->grad_last = slot == NULL ? NULL : slot->grad;
	if (b->grad_last != NULL)
		t_value_keep(b->grad_last);
	if (b->arg >= 0 || slot == NULL)
		return;
	if (slot->grad != NULL)
		t_value_drop(t, slot->grad);
	slot->grad = b->grad_was;
}

const char *capture_open(const tensors *t, const t_capture *c)
{
	if (t->scope.n != c->scopes)
		return "must leave as many scopes as it enters";
	if (t->steps != c->steps)
		return "must leave as many steps as it enters: tn_step_leave";
	if (t->no_grad != c->no_grad)
		return "must call tn_no_grad_leave as often as "
		       "tn_no_grad_enter";
	return NULL;
}

void capture_end(tensors *t, t_capture *c)
{
	for (int32_t i = c->bound.n - 1; i >= 0; i--) {
		t_bound *b = &c->bound.at[i];

		b->last = b->s->cur;
		t_value_keep(b->last);
		release_gradient(t, b);
		if (b->arg >= 0)
			continue;
		t_value_drop(t, b->s->cur);
		b->s->cur = b->was;
		b->s->bound = b->bound_was;
	}
	t->steps = c->steps;
	t->step = c->step;
	t->capture = c->outer;
	t->capture_id = c->outer != NULL ? c->outer->id : 0;
}

void capture_drop(tensors *t, t_capture *c)
{
	for (int32_t i = 0; i < c->bound.n; i++) {
		t_bound *b = &c->bound.at[i];

		t_value_drop(t, b->first);
		t_value_drop(t, b->last);
		if (b->grad_first != NULL)
			t_value_drop(t, b->grad_first);
		if (b->grad_last != NULL)
			t_value_drop(t, b->grad_last);
		t_storage_drop(t, b->s);
	}
	for (int32_t i = 0; i < c->call.n; i++)
		t_call_drop(t, c->call.at[i]);
	c->bound.n = c->call.n = 0;
}

/* ---- traces ---- */

static void add_in(tensors *t, t_trace *f, t_value *v)
{
	if (v->stamp == t->stamp)
		return;
	v->stamp = t->stamp;
	f->in[f->n_in++] = v;
}

static int32_t count_reads(const t_capture *c)
{
	int32_t n = 0;

	for (int32_t k = 0; k < c->call.n; k++)
		for (int32_t i = 0; i < c->call.at[k]->n_args; i++, n++)
			for (const t_view *w = c->call.at[k]->arg[i].view;
				w != NULL; w = w->parent)
				n += w->n_extra;
	return n;
}

static void add_reads(tensors *t, t_trace *f, const t_call *c)
{
	for (int32_t i = 0; i < c->n_args; i++) {
		add_in(t, f, c->arg[i].v);
		for (const t_view *w = c->arg[i].view; w != NULL; w = w->parent)
			for (int32_t k = 0; k < w->n_extra; k++)
				add_in(t, f, w->extra[k].v);
	}
}

void trace_note_region(t_trace *f, const t_call *c)
{
	if (f->kind == REGION_NONE && c->trace != NULL &&
		c->trace->kind != REGION_NONE)
		f->kind = REGION_BLOCKS;
}

t_trace *trace_new(tensors *t, const t_capture *c, int32_t n_given,
	t_value *const *given, int32_t n_out, t_value *const *out,
	const char *name)
{
	t_trace *f = arena_make(t->a, t_trace);

	f->id = t->n_traces++;
	f->name = name;
	f->in = arena_array(
		t->a, t_value *, n_given + n_out + count_reads(c) + 1);
	t->stamp++;
	for (int32_t i = 0; i < n_given; i++)
		add_in(t, f, given[i]);
	for (int32_t k = 0; k < c->call.n; k++) {
		t_call *q = c->call.at[k];

		add_reads(t, f, q);
		for (int32_t i = 0; i < q->n_results; i++)
			if (q->result[i] != NULL)
				q->result[i]->stamp = t->stamp;
		*vec_push(t->a, &f->call) = q;
		trace_note_region(f, q);
	}
	f->at = arena_copy(t->a, c->at.at, (size_t)c->at.n * sizeof *f->at);
	for (int32_t i = 0; i < n_out; i++)
		add_in(t, f, out[i]);
	for (int32_t i = 0; i < f->n_in; i++)
		t_value_keep(f->in[i]);
	f->slot = arena_array(t->a, t_slot *, f->n_in + 1);
	f->next = arena_array(t->a, int32_t, f->n_in + 1);
	for (int32_t i = 0; i < f->n_in; i++)
		f->next[i] = -1;
	f->n_out = f->n_known = n_out;
	f->out = arena_array(t->a, t_value *, n_out + 1);
	for (int32_t i = 0; i < n_out; i++) {
		f->out[i] = out[i];
		t_value_keep(out[i]);
	}
	return f;
}
