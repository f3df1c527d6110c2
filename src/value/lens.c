/*
 * lens.c: what a tensor shows where it is read: its storage, or a copy in
 * another place, kept until the next version; and values moved between places.
 */
#include "value/node.h"

/* ---- moves, from device to device, or through the memory of the host ---- */

static size_t bytes_at(const tensors *t, const ir_type *type, int32_t place)
{
	return place == 0 ? ir_type_bytes(type)
			  : t->b.bytes(t->b.arg, place, type);
}

static void move(arena *a, void *arg)
{
	const t_exchange *x = arg;
	const tensor_backend *b = &x->t->b;
	size_t n_in = bytes_at(x->t, x->type, x->from);
	size_t n_out = bytes_at(x->t, x->type, x->to);
	bool get = !b->device->is_host && !x->in_is_host;
	bool put = !b->device->is_host && !x->out_is_host;
	void *in, *out;

	/* all processes ask, whatever their device is */
	if (!x->in_is_host && !x->out_is_host && b->carry != NULL &&
		b->carry(b->arg, x->type, x->from, x->in, x->to, x->out))
		return;
	in = get ? arena_alloc(a, n_in + 1, 1) : NULL;
	out = put ? arena_alloc(a, n_out + 1, 1) : x->out;
	if (get && n_in > 0)
		b->device->get(b->device, in, x->in, n_in);
	b->move(b->arg, x->type, x->from, get ? in : x->in, x->to, out);
	if (put && n_out > 0)
		t_put(x->t, x->out, out, n_out);
}

void t_exchange_run(const t_exchange *x)
{
	arena_run(x->t->e, move, (void *)(uintptr_t)x);
}

void t_move(tensors *t, t_value *v, int32_t to)
{
	t_buffer *b;

	if (v->where == to)
		return;
	b = t_buffer_new(t, t_room(t, v, to));
	/* a failure does not change v; b is freed by the next call */
	*vec_push(t->a, &t->made) = b;
	t_exchange_run(&(t_exchange){t, &v->type, v->where, v->buf->data, false,
		to, b->data, false});
	(void)vec_pop(&t->made);
	b->is_external = v->buf->is_external;
	t_buffer_drop(t, v->buf);
	v->buf = b;
	v->where = to;
}

void t_fetch(tensors *t, const t_value *v, void *to)
{
	size_t n = ir_type_bytes(&v->type);

	if (v->where != 0)
		t_exchange_run(&(t_exchange){t, &v->type, v->where,
			v->buf->data, false, 0, to, true});
	else if (n > 0 && t->b.device->is_host)
		memcpy(to, v->buf->data, n);
	else if (n > 0)
		t->b.device->get(t->b.device, to, v->buf->data, n);
}

const void *t_whole(tensors *t, const t_value *v)
{
	size_t n = ir_type_bytes(&v->type);

	if (v->where == 0 && t->b.device->is_host)
		return v->buf->data;
	t->whole.n = 0;
	if (n > INT32_MAX - 64)
		env_fail(t->e, TN_ENOMEM, "memory", t_here(t),
			"a value of %zu bytes is too large to be read at once",
			n);
	vec_reserve(t->a, &t->whole, (int32_t)n + 1);
	t_fetch(t, v, t->whole.at);
	return t->whole.at;
}

static void check_strict(const tensors *t, const tensor *x, const char *what)
{
	const t_storage *s = x->storage;

	if (t->strict && s->placed != x->lens)
		env_fail(t->e, TN_EINVAL, "shard.strict", t_here(t),
			"%s is in another placement than it is %s in, and "
			"strict mode allows no move",
			s->name != NULL ? s->name : "the tensor", what);
}

static void cache(t_storage *s, tensors *t, const t_value *cur,
	const tensor *x, t_value *copy)
{
	/* the copy before may be an operand of the current call */
	if (s->lens_copy != NULL) {
		*vec_push(t->a, &t->retired) = s->lens_copy;
		t_view_drop(t, s->lens_at);
	}
	t_value_keep(copy);
	s->lens_copy = copy;
	s->lens_of = cur->id;
	s->lens_at = x->lens_at;
	t_view_keep(s->lens_at);
	s->lens_place = x->lens;
	s->lens_no_grad = t->no_grad > 0;
}

void t_lens_retire(tensors *t)
{
	while (t->retired.n > 0)
		t_value_drop(t, vec_pop(&t->retired));
}

t_read t_read_through(tensors *t, const tensor *x)
{
	t_storage *s = x->storage;
	t_value *cur = t_cur(t, s);
	const ir_type *type = &cur->type;
	t_value *copy;

	if (x->lens == 0)
		return (t_read){cur, x->view, false, 0};
	if (s->lens_copy != NULL && t->capture == NULL &&
		s->lens_of == cur->id && s->lens_at == x->lens_at &&
		s->lens_place == x->lens &&
		s->lens_no_grad == (t->no_grad > 0))
		return (t_read){s->lens_copy, x->rel, false, 0};
	check_strict(t, x, "read");
	if (x->lens_at != NULL) {
		const ir_inst *p = x->lens_at->entry->inst;

		type = &p->tensor[p->result[0]].type;
	}
	copy = t_copy_of(t, cur, x->lens_at, type);
	copy->want = x->lens;
	if (t->capture == NULL)
		cache(s, t, cur, x, copy);
	t->stats.n_lens_reads++;
	t->stats.lens_read_bytes += (int64_t)ir_type_bytes(type);
	return (t_read){copy, x->rel, false, 0};
}

void t_write_through(tensors *t, const tensor *x)
{
	if (x->storage->parts)
		env_fail(t->e, TN_EINVAL, "shard.parts", t_here(t),
			"%s is stored as parts of a sum, and a write would "
			"change every part: write to tn_full of it",
			x->storage->name != NULL ? x->storage->name
						 : "the tensor");
	if (x->lens == 0)
		return;
	check_strict(t, x, "written");
	t->stats.n_write_backs++;
	t->stats.write_back_bytes += (int64_t)ir_type_bytes(&x->type);
}
