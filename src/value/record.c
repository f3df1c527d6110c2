/*
 * record.c: handles in scopes: calls on them, views, writes. Movement rows make
 * views of their first operand, not values.
 *
 *     v = transpose(x)      a handle on x's storage
 *     l, r = split(x)       two handles on x's storage
 *     write(v, y)           a new newest value of that storage
 */
#include "value/capture.h"

/* ---- handles ---- */

bool tensor_is_valid(const tensor *x)
{
	return x->mark == TENSOR_LIVE;
}

bool tensor_is_invalid(const tensor *x)
{
	return x->mark == TENSOR_INVALID;
}

tensor *tensor_invalid(tensors *t)
{
	return &t->invalid;
}

void *tensor_owner(const tensor *x)
{
	return x->of != NULL ? x->of->b.arg : NULL;
}

const ir_type *tensor_type_of(const tensor *x)
{
	return &x->type;
}

const char *tensor_name_of(const tensor *x)
{
	return x->storage->name;
}

static void unlink_handle(tensors *t, tensor *x)
{
	if (x->before != NULL)
		x->before->after = x->after;
	if (x->after != NULL)
		x->after->before = x->before;
	else
		t->scope.at[x->scope] = x->before;
}

void tensor_give_away(tensors *t, tensor *x)
{
	t_check(t, x);
	t_view_drop(t, x->view);
	t_view_drop(t, x->lens_at);
	t_view_drop(t, x->rel);
	t_storage_drop(t, x->storage);
	x->lens_at = x->rel = NULL;
	x->lens = 0;
	x->mark = TENSOR_DONATED;
	x->view = NULL;
	x->storage = NULL;
}

void tensor_drop(tensors *t, tensor *x)
{
	if (x->mark != TENSOR_DONATED)
		tensor_give_away(t, x);
	unlink_handle(t, x);
	t_handle_end(x);
	x->mark = 0;
	x->after = t->handles;
	t->handles = x;
	t->stats.n_tensors--;
}

void tensor_scope_enter(tensors *t)
{
	*vec_push(t->a, &t->scope) = NULL;
}

void tensor_scope_leave(tensors *t)
{
	if (t->scope.n <= 1 ||
		(t->capture != NULL && !t->capture->is_walk &&
			t->scope.n <= t->capture->scopes))
		env_fail(t->e, TN_EINVAL, "tensor.scope",
			t_here(t),
			"tn_scope_leave was called without a tn_scope_enter "
			"before it");
	while (t->scope.at[t->scope.n - 1] != NULL)
		tensor_drop(t, t->scope.at[t->scope.n - 1]);
	t->scope.n--;
}

void tensor_keep(tensors *t, tensor *x)
{
	t_check(t, x);
	/* what a body makes ends with it; parameters have elements of their own */
	if (x->scope == 0 || (t->capture != NULL && !t->capture->is_walk &&
				     x->scope == t->capture->scopes - 1 &&
				     !x->storage->is_external))
		return;
	unlink_handle(t, x);
	x->scope--;
	x->after = NULL;
	x->before = t->scope.at[x->scope];
	if (x->before != NULL)
		x->before->after = x;
	t->scope.at[x->scope] = x;
}

static tensor *handle_on(tensors *t, t_value *v)
{
	return t_handle_new(t, t_storage_new(t, v), NULL, &v->type);
}

tensor *tensor_new(tensors *t, const ir_type *type, const void *data,
	bool is_external, const char *name)
{
	t_buffer *b = t_buffer_new(t, ir_type_bytes(type));
	t_value *v = t_value_new(t, type);
	tensor *x;

	if (data != NULL)
		t_put(t, b->data, data, ir_type_bytes(type));
	else
		t_zero(t, b->data, ir_type_bytes(type));
	b->is_external = is_external;
	v->buf = b;
	t_value_keep(v);
	x = handle_on(t, v);
	x->storage->is_external = is_external;
	x->storage->name = name != NULL ? arena_strdup(t->a, name) : NULL;
	while (is_external && x->scope > 0)
		tensor_keep(t, x);
	if (is_external && dtype_is_float(type->dtype) && t->no_grad == 0)
		t_leaf(t, x->storage, v);
	return x;
}

tensor *tensor_import(tensors *t, const ir_type *type, void *data,
	void (*release)(void *arg), void *arg)
{
	t_buffer *b = t_buffer_import(t, data, ir_type_bytes(type));
	t_value *v = t_value_new(t, type);
	tensor *x;

	b->release = release;
	b->release_arg = arg;
	v->buf = b;
	t_value_keep(v);
	x = handle_on(t, v);
	x->storage->is_external = true;
	return x;
}

/* ---- calls ---- */

void t_renew(tensors *t, t_storage *s)
{
	if (!s->cur->is_freed || !s->is_external)
		return;
	s->cur->is_freed = false;
	t_leaf(t, s, s->cur);
}

static t_read read_of_handle(tensor *x)
{
	t_read r = t_read_through(x->of, x);

	return t_read_of(r.v, r.view);
}

/* The last row of w, applied to another view. */
static t_view *step_of(tensors *t, t_view *below, const t_view *w)
{
	t_view *v = t_view_new(t);

	v->entry = w->entry;
	v->parent = below;
	t_view_keep(below);
	v->n_extra = w->n_extra;
	for (int32_t i = 0; i < w->n_extra; i++)
		v->extra[i] = t_read_of(w->extra[i].v, w->extra[i].view);
	return v;
}

static tensor *make_view(
	tensors *t, t_entry *e, int32_t n, tensor *const *x)
{
	t_view *v = t_view_new(t);
	tensor *out;

	v->entry = e;
	v->parent = x[0]->view;
	t_view_keep(v->parent);
	v->n_extra = n - 1;
	for (int32_t i = 1; i < n; i++)
		v->extra[i - 1] = read_of_handle(x[i]);
	out = t_handle_new(t, x[0]->storage, v,
		&e->inst->tensor[e->inst->result[0]].type);
	if (x[0]->lens != 0) {
		out->lens = x[0]->lens;
		out->lens_at = x[0]->lens_at;
		t_view_keep(out->lens_at);
		out->rel = step_of(t, x[0]->rel, v);
	}
	t_view_drop(t, v);
	return out;
}

/* A call with too many operands: calls on parts of them, then a call that joins. */
typedef struct parted {
	tensors *t;
	const ir_row *row, *join;
	int32_t n, n_attrs, n_parts;
	tensor *const *x;
	const ir_attr *attr;
	tensor *part[IR_MAX_OPERANDS], **out;
} parted;

static void call_parts(void *arg)
{
	parted *p = arg;
	int32_t each = (p->n - 1) / IR_MAX_OPERANDS + 1;

	for (int32_t i = 0; i < p->n; i += each) {
		tensor_call(p->t, p->row, p->n - i < each ? p->n - i : each,
			p->x + i, p->n_attrs, p->attr, &p->part[p->n_parts],
			1);
		p->n_parts++;
	}
	tensor_call(p->t, p->join, p->n_parts, p->part, p->n_attrs, p->attr,
		p->out, 1);
}

static int32_t call_in_parts(parted *p)
{
	tn_status s = env_run(p->t->e, call_parts, p);

	for (int32_t i = 0; i < p->n_parts; i++)
		tensor_drop(p->t, p->part[i]);
	if (s != TN_OK)
		env_rethrow(p->t->e);
	return 1;
}

int32_t tensor_call(tensors *t, const ir_row *row, int32_t n,
	tensor *const *x, int32_t n_attrs, const ir_attr *attr, tensor **out,
	int32_t n_out)
{
	loc at = t_here(t);
	const ir_type *type[IR_MAX_OPERANDS];
	t_read arg[IR_MAX_OPERANDS];
	const ir_row *join = ir_row_join(t->table, row);
	t_entry *e;
	t_call *c;

	if (n > IR_MAX_OPERANDS && join != NULL)
		return call_in_parts(&(parted){.t = t, .row = row, .join = join,
			.n = n, .x = x, .n_attrs = n_attrs, .attr = attr,
			.out = out});
	if (n > IR_MAX_OPERANDS)
		env_fail(t->e, TN_EINVAL, "tensor.operands", at,
			"%s: %d operands are given; at most %d are possible",
			ir_row_name(row), n, IR_MAX_OPERANDS);
	for (int32_t i = 0; i < n; i++) {
		t_check(t, x[i]);
		type[i] = &x[i]->type;
		t_renew(t, x[i]->storage);
	}
	e = t_entry_find(t, row, n, type, n_attrs, attr);
	if (!e->is_view && n_out > IR_MAX_OUT)
		n_out = IR_MAX_OUT;
	if (e->inst->n_results > n_out)
		env_fail(t->e, TN_EINVAL, "tensor.results", at,
			"%s has %d results, but there is room for %d",
			ir_row_name(row),
			e->inst->n_results, n_out);
	if (e->is_view) {
		t->stats.n_calls++;
		for (int32_t r = 0; r < e->inst->n_results; r++)
			out[r] = make_view(t, t_entry_part(t, e, r), n, x);
		return e->inst->n_results;
	}
	t_lens_retire(t);
	for (int32_t i = 0; i < n; i++)
		arg[i] = t_read_through(t, x[i]);
	c = t_record(t, e, n, arg);
	for (int32_t i = 0; i < c->n_results; i++) {
		t_value_keep(c->result[i]);
		out[i] = handle_on(t, c->result[i]);
	}
	return c->n_results;
}

/* ---- writes ---- */

/* "operand x: f32[2,3]", "operand x: w f32[2,3]", "operand x: view f32[3] of w" */
static void add_operand(str *s, const char *operand, const tensor *x)
{
	const char *name = x->storage->name;
	bool is_view = x->view != NULL;

	str_printf(s, "operand %s: ", operand);
	if (is_view)
		str_add(s, "view ");
	else if (name != NULL)
		str_printf(s, "%s ", name);
	ir_type_add(s, &x->type);
	if (is_view && name != NULL)
		str_printf(s, " of %s", name);
}

struct misfit {
	tensors *t;
	const tensor *x, *v;
};

static void refuse_write(arena *a, void *arg)
{
	const struct misfit *m = arg;
	str s = str_new(a);

	add_operand(&s, "v", m->v);
	str_add(&s, " does not fit ");
	add_operand(&s, "x", m->x);
	env_fail(m->t->e, TN_EINVAL, "tensor.write",
		t_here(m->t),
		"write: %s: accepted is the same %s; %s", s.at,
		m->x->type.dtype != m->v->type.dtype ? "dtype" : "shape",
		m->x->type.dtype != m->v->type.dtype
			? "tn_cast changes it"
			: "tn_broadcast_to and tn_reshape change it");
}

/*
 * Is all of it a leaf of s? Then after a write without gradient, old and new
 * elements collect gradients in the same slot: the next version is a leaf again,
 * and a loop of such writes has no history.
 */
bool t_is_leaf(const t_storage *s, const t_value *v)
{
	return v->slot != NULL && v->slot == s->slot &&
	       (v->call == NULL || !t_is_made(v));
}

/* Is x a whole storage that failed and has no version before? */
static bool is_lost(const tensors *t, const tensor *x)
{
	return x->storage->is_lost && x->view == NULL && x->lens == 0 &&
	       t->capture == NULL && x->storage->cur->buf == NULL;
}

static t_value *copy_of(tensors *t, tensor *x)
{
	t_read r = t_read_through(t, x);

	return t_copy_of(t, r.v, r.view, &x->type);
}

void tensor_write(tensors *t, tensor *x, tensor *v)
{
	t_read to;
	t_value *next;

	t_check(t, x);
	t_check(t, v);
	if (!ir_type_same(&x->type, &v->type))
		arena_run(t->e, refuse_write, &(struct misfit){t, x, v});
	if (x->view != NULL)
		t_check_view(t, x->storage->cur, x->view, x->storage->name);
	t_renew(t, x->storage);
	t_renew(t, v->storage);
	t_write_through(t, x);
	to = (t_read){t_cur(t, x->storage), x->view, false, 0};
	next = is_lost(t, x) ? copy_of(t, v)
			     : t_record_write(t, to, t_read_through(t, v));
	x->storage->is_lost = false;
	next->want = x->storage->placed;
	t_value_keep(next);
	/* elements written without a gradient are a separate leaf */
	if (t->no_grad > 0 && to.v->tracked) {
		if (x->view == NULL || t_is_leaf(x->storage, to.v)) {
			next->call->tracked = false;
			t_leaf(t, x->storage, next);
		} else {
			next->call->no_grad = next->is_part = true;
			next->tracked = next->call->tracked = true;
			next->slot = t_slot_of(t, x->storage);
			next->slot->refs++;
		}
	}
	t_value_drop(t, x->storage->cur);
	x->storage->cur = next;
}

/*
 * Replaces the elements in memory; they are a new value. If the old value is still
 * needed, it is copied first.
 */
bool tensor_set(tensors *t, tensor *x, const void *data, size_t n_bytes)
{
	t_storage *s = t_check(t, x)->storage;
	t_value *v, *next;
	t_buffer *kept; /* a copy of the old elements, if they are needed */

	if (n_bytes != ir_type_bytes(&x->type))
		env_fail(t->e, TN_EINVAL, "tensor.size",
			t_here(t),
			"the tensor has %zu bytes, but the array has %zu",
			ir_type_bytes(&x->type), n_bytes);
	t_renew(t, s);
	v = s->cur;
	if (x->view != NULL || v->buf == NULL || v->buf->refs > 1)
		return false;
	kept = v->data > 1 ? t_buffer_copy(t, v) : NULL;
	if (kept != NULL)
		t_count_copy(t, v);
	next = t_value_new(t, &v->type);
	t_value_keep(next);
	if (v->tracked)
		t_leaf(t, s, next);
	next->buf = v->buf;
	next->where = v->where;
	v->buf = kept;
	if (next->where != 0)
		t_exchange_run(&(t_exchange){t, &next->type, 0, data, true,
			next->where, next->buf->data, false});
	else if (n_bytes > 0)
		t_put(t, next->buf->data, data, n_bytes);
	t_value_drop(t, v);
	s->cur = next;
	return true;
}

/* ---- the whole ---- */

void tensors_limit(tensors *t, int64_t bytes)
{
	t->memory_limit = bytes;
}

void tensors_drop_rule(tensors *t, enum tensor_rule rule)
{
	t->dropped = rule;
}

void tensors_poison(tensors *t)
{
	t->poison = true;
}

ir_table *tensors_table(tensors *t)
{
	return t->table;
}

void tensors_site(tensors *t, const char *file, int32_t line)
{
	t->file = file;
	t->line = line;
}

tensor_stats tensor_get_stats(const tensors *t)
{
	return t->stats;
}
