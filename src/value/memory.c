/*
 * memory.c: nodes and buffers.
 *
 * Nodes count references, and return to a free list without any, so that a training
 * loop allocates nothing once it is warm. A free buffer is reused by the next value
 * of its size; the bytes of free buffers are limited by those in use.
 */
#include "value/capture.h"

enum { SPARE_BYTES = 64 << 20 }; /* free bytes that are always allowed */

static void add_live(tensors *t, int64_t bytes)
{
	t->stats.bytes_live += bytes;
	if (t->stats.bytes_live > t->stats.bytes_peak)
		t->stats.bytes_peak = t->stats.bytes_live;
}

/* ---- buffers ---- */

static t_buffer *buffer_node(tensors *t)
{
	t_buffer *b = t->spare;

	if (b == NULL)
		return arena_make(t->a, t_buffer);
	t->spare = b->next;
	memset(b, 0, sizeof *b);
	return b;
}

static void forget(tensors *t, t_buffer *b)
{
	t->n_owned -= b->own != NULL;
	arena_free(b->own);
	b->own = NULL;
	b->next = t->spare;
	t->spare = b;
}

struct allocation {
	tensors *t;
	arena *a;
	size_t bytes;
	void *at;
};

static void try_alloc(void *arg)
{
	struct allocation *k = arg;

	k->at = k->t->b.device->alloc(k->t->b.device, k->a, k->bytes);
}

static void forget_free(tensors *t)
{
	while (t->free.n > 0) {
		t_buffer *b = t->free.at[--t->free.n];

		t->stats.bytes_cached -= (int64_t)b->bytes;
		forget(t, b);
	}
}

/* A device has less memory than the host: before it is full, free buffers go. */
static void *allocated(tensors *t, arena *a, size_t bytes)
{
	struct allocation k = {t, a, bytes, NULL};

	if (t->b.device->is_host)
		return run_slab(a, bytes);
	if (env_run(t->e, try_alloc, &k) == TN_OK)
		return k.at;
	if (env_diag(t->e)->status != TN_ENOMEM || t->free.n == 0)
		env_rethrow(t->e);
	forget_free(t);
	try_alloc(&k);
	return k.at;
}

t_buffer *t_buffer_new(tensors *t, size_t bytes)
{
	t_buffer *b;
	size_t room = bytes == 0 ? 64 : (bytes + 63) / 64 * 64;

	for (int32_t i = t->free.n - 1; i >= 0; i--) {
		b = t->free.at[i];
		if (b->bytes != room)
			continue;
		t->free.at[i] = t->free.at[--t->free.n];
		t->stats.bytes_cached -= (int64_t)room;
		b->refs = 1;
		add_live(t, (int64_t)room);
		return b;
	}
	/* room in the free list, because a drop must not allocate */
	vec_reserve(t->a, &t->free, t->n_owned + 1 - t->free.n);
	b = buffer_node(t);
	b->own = arena_child(t->a);
	b->data = allocated(t, b->own, room);
	b->bytes = room;
	b->refs = 1;
	t->n_owned++;
	add_live(t, (int64_t)room);
	return b;
}

t_buffer *t_buffer_copy(tensors *t, const t_value *v)
{
	size_t n = t_room(t, v, v->where);
	t_buffer *b = t_buffer_new(t, n);

	t_copy(t, b->data, v->buf->data, n);
	return b;
}

void t_copy(tensors *t, void *to, const void *from, size_t n)
{
	t->b.device->copy(t->b.device, to, from, n);
}

void t_put(tensors *t, void *to, const void *host, size_t n)
{
	t->b.device->put(t->b.device, to, host, n);
}

void t_zero(tensors *t, void *to, size_t n)
{
	t->b.device->fill(t->b.device, to, 0, n);
}

int64_t t_load_i64(tensors *t, const t_value *v)
{
	int64_t room = 0;

	if (t->b.device->is_host)
		return dtype_load_i64(v->type.dtype, v->buf->data, 0);
	t->b.device->get(t->b.device, &room, v->buf->data,
		dtype_size(v->type.dtype));
	return dtype_load_i64(v->type.dtype, &room, 0);
}

void t_count_copy(tensors *t, const t_value *v)
{
	t->stats.n_copies++;
	t->stats.copied_bytes += (int64_t)ir_type_bytes(&v->type);
}

t_buffer *t_buffer_import(tensors *t, void *data, size_t bytes)
{
	t_buffer *b = buffer_node(t);

	b->data = data;
	b->bytes = bytes;
	b->refs = 1;
	b->is_external = b->is_lent = true;
	b->next = t->imported;
	if (b->next != NULL)
		b->next->before = b;
	t->imported = b;
	return b;
}

static void synced(void *arg)
{
	tensors *t = arg;

	t->b.device->sync(t->b.device);
}

/* Memory of others goes back when nothing that was launched still uses it. */
static void give_back(tensors *t, t_buffer *b)
{
	void (*release)(void *) = b->release;

	if (b->before != NULL)
		b->before->next = b->next;
	else
		t->imported = b->next;
	if (b->next != NULL)
		b->next->before = b->before;
	b->next = b->before = NULL;
	b->release = NULL;
	if (release == NULL)
		return;
	if (!t->b.device->is_host)
		(void)env_run(t->e, synced, t); /* a lost device uses nothing */
	release(b->release_arg);
}

void tensors_end(tensors *t)
{
	while (t != NULL && t->imported != NULL) {
		t->imported->is_ended = true;
		give_back(t, t->imported);
	}
}

void t_buffer_drop(tensors *t, t_buffer *b)
{
	int64_t most;

	if (b == NULL || --b->refs > 0)
		return;
	if (b->own == NULL) {
		if (!b->is_ended)
			give_back(t, b);
		forget(t, b);
		return;
	}
	b->is_external = b->is_lent = false;
	if (t->poison)
		t->b.device->fill(t->b.device, b->data, 0xa5, b->bytes);
	t->stats.bytes_live -= (int64_t)b->bytes;
	most = t->stats.bytes_live > SPARE_BYTES ? t->stats.bytes_live
						 : SPARE_BYTES;
	if (t->stats.bytes_cached + (int64_t)b->bytes > most) {
		forget(t, b);
		return;
	}
	*vec_push(t->a, &t->free) = b;
	t->stats.bytes_cached += (int64_t)b->bytes;
}

/* ---- values ---- */

t_value *t_value_new(tensors *t, const ir_type *type)
{
	t_value *v = t->values;

	if (v != NULL)
		t->values = v->next;
	else
		v = arena_make(t->a, t_value);
	*v = (t_value){.id = ++t->next_id, .type = *type};
	t->stats.n_values++;
	return v;
}

/* Is it referenced only by its call, so that both can be freed? */
static bool is_only_self(const t_value *v)
{
	return v->holds_self && v->refs == 1;
}

void t_value_keep(t_value *v)
{
	if (is_only_self(v))
		v->call->refs++;
	v->refs++;
	v->data++;
}

void t_elements_drop(tensors *t, t_value *v)
{
	if (v->is_kept)
		t->stats.bytes_kept -= (int64_t)ir_type_bytes(&v->type);
	v->is_kept = false;
	t_buffer_drop(t, v->buf);
	v->buf = NULL;
}

void t_data_drop(tensors *t, t_value *v)
{
	if (--v->data == 0)
		t_elements_drop(t, v);
}

static void value_forget(tensors *t, t_value *v)
{
	t_call *c = v->call;

	if (--v->refs > 0) {
		if (is_only_self(v))
			t_call_drop(t, c);
		return;
	}
	t_elements_drop(t, v);
	t_slot_drop(t, v->slot);
	v->slot = NULL;
	v->call = NULL;
	v->next = t->values;
	t->values = v;
	t->stats.n_values--;
	if (c != NULL) {
		c->result[v->result] = NULL;
		t_call_drop(t, c);
	}
}

void t_value_drop(tensors *t, t_value *v)
{
	t_data_drop(t, v);
	value_forget(t, v);
}

static void self_drop(tensors *t, t_value *v)
{
	v->holds_self = false;
	if (v->again) /* no elements */
		value_forget(t, v);
	else
		t_value_drop(t, v);
}

void t_self_hold(t_value *v)
{
	v->refs++;
	v->data++;
	v->holds_self = true;
	if (is_only_self(v))
		v->call->refs--;
}

void t_self_release(tensors *t, t_value *v)
{
	if (is_only_self(v))
		v->call->refs++;
	self_drop(t, v);
}

/* ---- calls ---- */

t_call *t_call_new(tensors *t, int32_t n_args, int32_t n_results)
{
	t_call *c = t->calls;
	t_read *arg;
	t_value **result;
	t_slot **slot;
	int32_t cap, room, slot_room;

	if (c != NULL)
		t->calls = c->next;
	else
		c = arena_make(t->a, t_call);
	arg = c->arg;
	cap = c->cap;
	if (cap < n_args) {
		cap = n_args < 4 ? 4 : n_args;
		arg = arena_array(t->a, t_read, cap);
	}
	result = c->result;
	slot = c->slot;
	slot_room = c->slot_room;
	room = c->room;
	if (room < n_results) {
		room = n_results < IR_MAX_OUT ? IR_MAX_OUT : n_results;
		result = arena_array(t->a, t_value *, room);
	}
	if (n_results > 0)
		memset(result, 0, (size_t)n_results * sizeof *result);
	*c = (t_call){.id = ++t->next_id,
		/* calls inside a function have no step; the call of the function has */
		.step = t->capture == NULL ? t->step : 0,
		.adjoint_of = t->walking,
		.arg = arg,
		.cap = cap,
		.result = result,
		.room = room,
		.slot = slot,
		.slot_room = slot_room,
		.n_results = n_results};
	return c;
}

/* Drops the operands: the results are computed, or not needed. */
static void let_go(tensors *t, t_call *c)
{
	int32_t n = c->n_args;

	for (int32_t i = 0; c->trace != NULL && i < n && i < c->slot_room; i++) {
		t_slot_drop(t, c->slot[i]);
		c->slot[i] = NULL;
	}
	c->n_args = 0;
	for (int32_t i = 0; i < c->n_results; i++) {
		t_value *v = c->result[i];

		if (v == NULL)
			continue;
		v->call = NULL; /* referenced only by the call */
		self_drop(t, v);
	}
	c->n_results = 0;
	if (t_is_write(c) && n > 1 && c->arg[1].v->writer == c)
		c->arg[1].v->writer = NULL;
	for (int32_t i = 0; i < n; i++)
		t_read_drop(t, &c->arg[i]);
}

/*
 * Dropping a long chain of calls must not recurse: calls to be freed are put in a
 * list.
 */
void t_call_drop(tensors *t, t_call *c)
{
	if (--c->refs > 0)
		return;
	c->next = t->dying;
	t->dying = c;
	if (t->is_dying)
		return;
	t->is_dying = true;
	while (t->dying != NULL) {
		c = t->dying;
		t->dying = c->next;
		let_go(t, c);
		c->next = t->calls;
		t->calls = c;
	}
	t->is_dying = false;
}

/* ---- views ---- */

t_view *t_view_new(tensors *t)
{
	t_view *v = t->views;

	if (v != NULL)
		t->views = v->next;
	else
		v = arena_make(t->a, t_view);
	*v = (t_view){.refs = 1};
	return v;
}

void t_view_keep(t_view *v)
{
	if (v != NULL)
		v->refs++;
}

void t_view_drop(tensors *t, t_view *v)
{
	while (v != NULL && --v->refs == 0) {
		t_view *up = v->parent;

		for (int32_t i = 0; i < v->n_extra; i++)
			t_read_drop(t, &v->extra[i]);
		v->next = t->views;
		t->views = v;
		v = up;
	}
}

t_read t_read_of(t_value *v, t_view *view)
{
	t_value_keep(v);
	t_view_keep(view);
	return (t_read){v, view, false, 0};
}

void t_read_drop(tensors *t, t_read *r)
{
	t_view_drop(t, r->view);
	if (r->no_data)
		value_forget(t, r->v);
	else
		t_value_drop(t, r->v);
}

void t_read_end_data(tensors *t, t_read *r)
{
	if (r->no_data)
		return;
	r->no_data = true;
	t_data_drop(t, r->v);
}

void t_read_begin_data(t_read *r)
{
	if (!r->no_data)
		return;
	r->no_data = false;
	r->v->data++;
}

/* ---- storages and handles ---- */

t_storage *t_storage_new(tensors *t, t_value *cur)
{
	t_storage *s = t->storages;

	if (s != NULL)
		t->storages = s->next;
	else
		s = arena_make(t->a, t_storage);
	*s = (t_storage){.refs = 0,
		.cur = cur,
		.bound = t->capture_id,
		.older = t->live};
	if (t->live != NULL)
		t->live->newer = s;
	t->live = s;
	return s;
}

static void lens_drop(tensors *t, t_storage *s)
{
	t_value *v = s->lens_copy;

	if (v == NULL)
		return;
	s->lens_copy = NULL;
	t_view_drop(t, s->lens_at);
	t_value_drop(t, v);
}

void t_storage_drop(tensors *t, t_storage *s)
{
	if (--s->refs > 0)
		return;
	if (s->older != NULL)
		s->older->newer = s->newer;
	if (s->newer != NULL)
		s->newer->older = s->older;
	else
		t->live = s->older;
	lens_drop(t, s);
	t_value_drop(t, s->cur);
	t_slot_drop(t, s->slot);
	s->next = t->storages;
	t->storages = s;
}

tensor *t_handle_new(
	tensors *t, t_storage *s, t_view *view, const ir_type *type)
{
	tensor *x = t->handles;
	tensor **newest = &t->scope.at[t->scope.n - 1];

	if (x != NULL) {
		t->handles = x->after;
	} else {
		x = arena_make(t->a, tensor);
		t_handle_room(t, x);
	}
	*x = (tensor){.mark = TENSOR_LIVE,
		.slot = x->slot,
		.of = t,
		.storage = s,
		.view = view,
		.type = *type,
		.scope = t->scope.n - 1,
		.before = *newest};
	if (*newest != NULL)
		(*newest)->after = x;
	*newest = x;
	s->refs++;
	t_view_keep(view);
	t_handle_begin(x);
	t->stats.n_tensors++;
	return x;
}

void t_slot_drop(tensors *t, t_slot *s)
{
	if (s == NULL || --s->refs > 0)
		return;
	if (s->grad != NULL)
		t_value_drop(t, s->grad);
	s->next = t->slots;
	t->slots = s;
}

size_t t_room(const tensors *t, const t_value *v, int32_t where)
{
	return where == 0 ? ir_type_bytes(&v->type)
			  : t->b.bytes(t->b.arg, where, &v->type);
}

void t_finish(tensors *t, t_call *c)
{
	c->refs++;
	for (int32_t i = 0; i < c->n_results; i++)
		if (c->result[i] != NULL) {
			c->result[i]->call = NULL;
			c->result[i] = NULL;
			c->refs--;
		}
	t_call_drop(t, c);
}

void t_give_back(tensors *t, t_value *v, t_value *taken)
{
	if (taken->buf == NULL || (v->buf != NULL && !taken->buf->is_external))
		return;
	if (v->buf != NULL) /* as it was */
		t_copy(t, taken->buf->data, v->buf->data,
			t_room(t, v, v->where));
	t_buffer_drop(t, v->buf);
	v->buf = taken->buf;
	taken->buf = NULL;
}
