/*
 * place.c: values with placements on a mesh of processes.
 *
 * A placement is a number of the backend; 0: every process has the whole value. A
 * computed value has a placement (where); for a value that is not computed, one may
 * be required (want: 1 + placement).
 *
 *     tensor_place(x, 3)      x's storage has placement 3 from here on
 *     y = tensor_lens(x, 0)   the same storage, read as a copy with placement 0
 *     write(y[0:2], v)        writes x
 *
 * A lens refers to a storage. A read through it makes a copy of the current version,
 * which is kept until the next version.
 */
#include "tensor/region.h"

static loc here(const tensors *t)
{
	return (loc){.file = t->file, .line = t->line};
}

size_t t_room(const tensors *t, const t_value *v, int32_t where)
{
	return where == 0 ? t_bytes(&v->type)
			  : t->b.bytes(t->b.arg, where, &v->type);
}

void t_move(tensors *t, t_value *v, int32_t to)
{
	t_buffer *b;

	if (v->where == to)
		return;
	b = t_buffer_new(t, t_room(t, v, to));
	/* a failure does not change v; b is freed by the next call */
	*vec_push(t->a, &t->made) = b;
	t->b.move(t->b.arg, &v->type, v->where, v->buf->data, to, b->data);
	(void)vec_pop(&t->made);
	b->is_external = v->buf->is_external;
	t_buffer_drop(t, v->buf);
	v->buf = b;
	v->where = to;
}

const void *t_whole(tensors *t, const t_value *v)
{
	size_t n = t_bytes(&v->type);

	if (v->where == 0)
		return v->buf->data;
	t->whole.n = 0;
	if (n > INT32_MAX - 64)
		env_fail(t->e, TN_ENOMEM, "memory", here(t),
			"a value of %zu bytes is too large to be read at once",
			n);
	vec_reserve(t->a, &t->whole, (int32_t)n + 1);
	t->b.move(t->b.arg, &v->type, v->where, v->buf->data, 0, t->whole.at);
	return t->whole.at;
}

/* ---- where a storage lies ---- */

const ir_type *tensor_storage_type(tensors *t, const tensor *x)
{
	return &t_check(t, x)->storage->cur->type;
}

const ir_type *tensor_stored_as(tensors *t, const tensor *x)
{
	const ir_type *y = tensor_storage_type(t, x);

	for (const t_view *w = x->view; w != NULL; w = w->parent)
		if (!t_is_stretch(t, w->entry) || w->entry->from != 0)
			return NULL;
	return x->lens == 0 && shape_numel(x->type.shape, x->type.rank) ==
			shape_numel(y->shape, y->rank)
		? &x->type
		: NULL;
}

static void check_place(tensors *t, const tensor *x)
{
	int64_t n = shape_numel(x->type.shape, x->type.rank);
	const ir_type *y = &x->storage->cur->type;

	for (const t_view *w = x->view; w != NULL; w = w->parent)
		if (!t_is_stretch(t, w->entry) || w->entry->from != 0)
			env_fail(t->e, TN_EINVAL, "shard.view", here(t),
				"a view that moves elements cannot be given a "
				"placement: place its storage");
	if (n != shape_numel(y->shape, y->rank) || x->lens != 0)
		env_fail(t->e, TN_EINVAL, "shard.view", here(t),
			"a view of a part of a storage cannot be given a "
			"placement: place the whole storage");
}

void tensor_place(tensors *t, tensor *x, int32_t place, bool parts)
{
	t_storage *s = t_check(t, x)->storage;
	t_value *v;

	check_place(t, x);
	if (s->placed != 0 && s->placed != 1 + place)
		env_fail(t->e, TN_EINVAL, "shard.conflict", here(t),
			"%s has another placement already: tn_reshard makes a "
			"view of it in another placement",
			s->name != NULL ? s->name : "the tensor");
	t->placed = true;
	if (t->capture != NULL && s->bound != t->capture_id)
		env_fail(t->e, TN_EINVAL, "shard.inside", here(t),
			"a function that is being compiled cannot place a "
			"tensor from outside: place it before");
	v = t_cur(t, s);
	if (v->buf == NULL && (v->call == NULL || t_is_write(v->call) ||
				      v->call->done)) {
		if (t->capture != NULL)
			env_fail(t->e, TN_EINVAL, "shard.inside", here(t),
				"a function that is being compiled cannot "
				"place its argument, or a tensor that it has "
				"written");
		t_flush(t, &v, 1);
		v = s->cur;
	}
	if (v->buf != NULL) {
		t_move(t, v, place);
	} else {
		if (v->want != 0 && v->want != 1 + place)
			env_fail(t->e, TN_EINVAL, "shard.conflict", here(t),
				"the tensor has another placement already");
		v->want = 1 + place;
	}
	s->placed = 1 + place;
	s->parts = parts;
}

int32_t tensor_where(tensors *t, tensor *x)
{
	t_value *v;

	t_check(t, x);
	t_flush(t, &x->storage->cur, 1);
	v = x->storage->cur;
	return v->where;
}

void *tensor_local(tensors *t, tensor *x)
{
	t_check(t, x);
	check_place(t, x);
	t_flush(t, &x->storage->cur, 1);
	return x->storage->cur->buf->data;
}

/* ---- lenses ---- */

tensor *tensor_lens(tensors *t, tensor *x, int32_t place)
{
	tensor *y;

	t_check(t, x);
	t->placed = true;
	y = t_handle_new(t, x->storage, x->view, &x->type);
	y->lens = 1 + place;
	y->lens_at = x->view;
	t_view_keep(y->lens_at);
	return y;
}

tensor *tensor_whole(tensors *t, tensor *x)
{
	tensor *y;

	t_check(t, x);
	tensor_call(t, ir_table_find(t->table, "copy"), 1, &x, 0, NULL, &y, 1);
	if (t->placed)
		y->storage->cur->want = 1;
	return y;
}

void tensors_strict(tensors *t, bool strict)
{
	t->strict = strict;
}

static void check_strict(const tensors *t, const tensor *x, const char *what)
{
	const t_storage *s = x->storage;

	if (t->strict && s->placed != x->lens)
		env_fail(t->e, TN_EINVAL, "shard.strict", here(t),
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

void t_lens_drop(tensors *t, t_storage *s)
{
	t_value *v = s->lens_copy;

	if (v == NULL)
		return;
	s->lens_copy = NULL;
	t_view_drop(t, s->lens_at);
	t_value_drop(t, v);
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
	t->stats.lens_read_bytes += (int64_t)t_bytes(type);
	return (t_read){copy, x->rel, false, 0};
}

void t_write_through(tensors *t, const tensor *x)
{
	if (x->storage->parts)
		env_fail(t->e, TN_EINVAL, "shard.parts", here(t),
			"%s is stored as parts of a sum, and a write would "
			"change every part: write to tn_full of it",
			x->storage->name != NULL ? x->storage->name
						 : "the tensor");
	if (x->lens == 0)
		return;
	check_strict(t, x, "written");
	t->stats.n_write_backs++;
	t->stats.write_back_bytes += (int64_t)t_bytes(&x->type);
}
