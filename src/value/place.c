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
#include "value/capture.h"

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
			env_fail(t->e, TN_EINVAL, "shard.view", t_here(t),
				"a view that moves elements cannot be given a "
				"placement: place its storage");
	if (n != shape_numel(y->shape, y->rank) || x->lens != 0)
		env_fail(t->e, TN_EINVAL, "shard.view", t_here(t),
			"a view of a part of a storage cannot be given a "
			"placement: place the whole storage");
}

void tensor_place(tensors *t, tensor *x, int32_t place, bool parts)
{
	t_storage *s = t_check(t, x)->storage;
	t_value *v;

	check_place(t, x);
	if (s->placed != 0 && s->placed != 1 + place)
		env_fail(t->e, TN_EINVAL, "shard.conflict", t_here(t),
			"%s has another placement already: tn_reshard makes a "
			"view of it in another placement",
			s->name != NULL ? s->name : "the tensor");
	t->placed = true;
	if (t->capture != NULL && s->bound != t->capture_id)
		env_fail(t->e, TN_EINVAL, "shard.inside", t_here(t),
			"a function that is being compiled cannot place a "
			"tensor from outside: place it before");
	v = t_cur(t, s);
	if (v->buf == NULL && (v->call == NULL || t_is_write(v->call) ||
				      v->call->done)) {
		if (t->capture != NULL)
			env_fail(t->e, TN_EINVAL, "shard.inside", t_here(t),
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
			env_fail(t->e, TN_EINVAL, "shard.conflict", t_here(t),
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
	if (!t->b.device->is_host)
		t->b.device->sync(t->b.device);
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

