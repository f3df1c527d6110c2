/*
 * shard_tensor.c: tensors on several processes: their placements, lenses with other
 * placements, and the part of this process.
 */
#include "api/shard.h"

struct tensor_call {
	tn_context *c;
	loc at;
	tn_tensor *x, *y;
	const tn_mesh *mesh;
	const tn_placement *p;
	tn_window *window;
	char **text;
	bool on;
};

/* The context of a tensor; NULL: it is invalid, or the result of a failed call. */
static tn_context *context_of(const tn_tensor *x)
{
	return x == NULL || tensor_is_invalid(api_inner(x)) ? NULL
							: tensor_owner(api_inner(x));
}

static api_placement place_of(tn_context *c, loc at, const ir_type *y,
	const tn_mesh *mesh, const tn_placement *p)
{
	int64_t n = shape_numel(y->shape, y->rank);
	api_placement r = {.mesh = mesh, .l = shard_replicated(n), .monoid = IR_SUM};

	if (mesh == NULL || p == NULL || mesh->c != c)
		env_fail(c->e, TN_EINVAL, "shard.mesh", at,
			"the mesh is NULL or of another context, or there are "
			"no placements");
	for (int32_t m = 0; m < mesh->m.n; m++) {
		int32_t axis = p[m].axis < 0 ? p[m].axis + y->rank : p[m].axis;
		int32_t op;

		if (p[m].kind == TN_PLACE_WHOLE)
			continue;
		if (p[m].kind == TN_PLACE_SHARD) {
			shard_cut(c->e, &r.l, &mesh->m, y->rank, y->shape, axis,
				m, p[m].block);
			continue;
		}
		op = p[m].op == NULL
			? -1
			: ir_monoid_find(p[m].op, strlen(p[m].op));
		if (op < 0 || ir_monoid_at(op)->n_comp != 1 ||
			(r.parts != 0 && op != r.monoid) ||
			dtype_size(y->dtype) < 4)
			env_fail(c->e, TN_EINVAL, "shard.op", at,
				"parts must be of sum, prod, max or min, and "
				"of a dtype of 4 bytes or more, not %s of %s",
				p[m].op != NULL ? p[m].op : "NULL",
				dtype_name(y->dtype));
		r.monoid = op;
		/* along an axis of one process, a part is the whole */
		if (mesh->m.extent[m] > 1)
			r.parts |= 1u << m;
	}
	return r;
}

static void shard_it(void *arg)
{
	const struct tensor_call *k = arg;
	api_placement p;

	tensors_site(api_tensors(k->c), k->at.file, k->at.line);
	if (!tensor_is_valid(api_inner(k->x)))
		tensor_place(k->c->t, api_inner(k->x), 0, false);
	p = place_of(k->c, k->at, tensor_type_of(api_inner(k->x)), k->mesh, k->p);
	tensor_place(k->c->t, api_inner(k->x), api_placement_number(k->c, &p),
		p.parts != 0);
}

tn_status tn_at_shard(const char *file, int32_t line, tn_tensor *x,
	const tn_mesh *mesh, const tn_placement *p)
{
	struct tensor_call k = {.c = context_of(x), .at = {.file = file, .line = line},
		.x = x, .mesh = mesh, .p = p};

	return k.c == NULL ? api_null("the tensor")
			   : api_sticky(k.c, file, line, shard_it, &k);
}

static void reshard(void *arg)
{
	struct tensor_call *k = arg;
	api_placement p;

	tensors_site(api_tensors(k->c), k->at.file, k->at.line);
	if (!tensor_is_valid(api_inner(k->x)))
		(void)tensor_lens(k->c->t, api_inner(k->x), 0);
	p = place_of(k->c, k->at, tensor_type_of(api_inner(k->x)), k->mesh, k->p);
	if (p.parts != 0)
		env_fail(k->c->e, TN_EINVAL, "shard.op", k->at,
			"a view cannot be placed as parts of a sum");
	k->y = api_outer(tensor_lens(
		k->c->t, api_inner(k->x), api_placement_number(k->c, &p)));
}

tn_tensor *tn_at_reshard(const char *file, int32_t line, tn_tensor *x,
	const tn_mesh *mesh, const tn_placement *p)
{
	struct tensor_call k = {.c = context_of(x), .at = {.file = file, .line = line},
		.x = x, .mesh = mesh, .p = p};

	if (k.c == NULL) {
		(void)api_null("the tensor");
		return x;
	}
	if (api_sticky(k.c, file, line, reshard, &k) < 0)
		return api_invalid(k.c);
	return k.y;
}

static void full(void *arg)
{
	struct tensor_call *k = arg;

	tensors_site(api_tensors(k->c), k->at.file, k->at.line);
	k->y = api_outer(tensor_whole(k->c->t, api_inner(k->x)));
}

tn_tensor *tn_at_full(const char *file, int32_t line, tn_tensor *x)
{
	struct tensor_call k = {
		.c = context_of(x), .at = {.file = file, .line = line}, .x = x};

	if (k.c == NULL) {
		(void)api_null("the tensor");
		return x;
	}
	if (api_sticky(k.c, file, line, full, &k) < 0)
		return api_invalid(k.c);
	return k.y;
}

static void window(void *arg)
{
	const struct tensor_call *k = arg;
	tn_window *w = k->window;
	const ir_type *y;
	const api_placement *p;
	shard_layout axis[TN_MAX_RANK];

	api_want(k->c, w, "the struct for the local part");
	tensors_site(api_tensors(k->c), k->at.file, k->at.line);
	w->data = tensor_local(k->c->t, api_inner(k->x));
	p = &api_shard_of(k->c)->placement.at[tensor_where(k->c->t, api_inner(k->x))];
	y = tensor_type_of(api_inner(k->x));
	w->n_elems = p->mesh != NULL ? p->elems
				     : shape_numel(y->shape, y->rank);
	w->n_bytes = (size_t)w->n_elems * dtype_size(y->dtype);
	w->rank = y->rank;
	w->is_box = true;
	for (int32_t i = 0; i < y->rank; i++) {
		w->shape[i] = y->shape[i];
		w->from[i] = 0;
	}
	if (p->mesh == NULL)
		return;
	w->is_box = shard_by_axis(&p->l, y->rank, y->shape, axis);
	for (int32_t i = 0; i < y->rank && w->is_box; i++) {
		arena *a = arena_child(k->c->a);
		shard_runs r = shard_owned(
			a, &axis[i], &p->mesh->m, api_shard_rank(k->c));

		w->is_box = r.n <= 1;
		w->from[i] = r.n > 0 ? r.at[0].from : 0;
		w->shape[i] = r.elems;
		arena_free(a);
	}
}

tn_status tn_at_local(
	const char *file, int32_t line, tn_tensor *x, tn_window *out)
{
	struct tensor_call k = {.c = context_of(x), .at = {.file = file, .line = line},
		.x = x, .window = out};

	return k.c == NULL ? api_null("the tensor")
			   : api_sticky(k.c, file, line, window, &k);
}

static void text(void *arg)
{
	const struct tensor_call *k = arg;
	str s = str_new(arena_child(k->c->a));
	const ir_type *y;
	const api_placement *p;

	tensors_site(api_tensors(k->c), k->at.file, k->at.line);
	p = &api_shard_of(k->c)->placement.at[tensor_where(k->c->t, api_inner(k->x))];
	y = tensor_stored_as(k->c->t, api_inner(k->x));
	/* for a part, or a view that moves elements: the placement of its storage */
	if (y == NULL) {
		str_add(&s, "view of ");
		y = tensor_storage_type(k->c->t, api_inner(k->x));
	}
	if (p->mesh == NULL)
		str_add(&s, "replicated");
	else
		shard_placement_print(&s, &p->l, p->parts, p->monoid, &p->mesh->m,
			y->rank, y->shape);
	*k->text = api_text(k->c, &s);
	arena_free(s.a);
}

tn_status tn_at_placement_text(
	const char *file, int32_t line, tn_tensor *x, char **out)
{
	struct tensor_call k = {.c = context_of(x), .at = {.file = file, .line = line},
		.x = x, .text = out};

	*out = NULL;
	return k.c == NULL ? api_null("the tensor")
			   : api_sticky(k.c, file, line, text, &k);
}

static void set_strict(void *arg)
{
	const struct tensor_call *k = arg;

	tensors_strict(api_tensors(k->c), k->on);
}

tn_status tn_shard_strict(tn_context *c, bool strict)
{
	struct tensor_call k = {.c = c, .on = strict};

	return api_sticky(c, NULL, 0, set_strict, &k);
}

static void set_debug(void *arg)
{
	const struct tensor_call *k = arg;

	api_shard_of(k->c)->debug = k->on;
}

tn_status tn_shard_debug(tn_context *c, bool debug)
{
	struct tensor_call k = {.c = c, .on = debug};

	return api_sticky(c, NULL, 0, set_debug, &k);
}

void tn_context_shard_stats(const tn_context *c, tn_shard_stats *out)
{
	if (c == NULL)
		return;

	*out = (tn_shard_stats){0};
	if (c->shard != NULL) {
		out->n_moves = c->shard->n_moves;
		out->bytes_sent = c->shard->bytes_sent;
	}
	if (c->t != NULL) {
		tensor_stats s = tensor_get_stats(c->t);

		out->n_reads = s.n_lens_reads;
		out->read_bytes = s.lens_read_bytes;
		out->n_write_backs = s.n_write_backs;
		out->write_back_bytes = s.write_back_bytes;
	}
}
