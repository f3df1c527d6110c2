/*
 * intern.c: a recorded body as a trace; equal bodies are one trace.
 *
 * Consumes a capture that has ended and the values that are its results;
 * produces a trace and where its operands come from. The structure - rows,
 * who reads what through which views, gradients, leaves - is the key to the
 * trace that was made when the same was recorded before: then nothing is made,
 * and all that was recorded goes back to where it came from. So a condition or
 * a loop in plain code costs its recording each time, and no memory.
 *
 *     x * w, recorded with another x or w     the same trace
 */
#include "func/region.h"

struct t_regions *t_regions_of(tensors *t)
{
	if (t->regions == NULL) {
		t->regions = arena_make(t->a, struct t_regions);
		t->regions->number_of = map_new(t->a);
	}
	return t->regions;
}

/* ---- recording ---- */

t_recorder *t_recorder_new(tensors *t, int32_t n_in, int32_t n_out)
{
	struct t_regions *all = t_regions_of(t);
	t_recorder *r = all->spare;

	if (r != NULL)
		all->spare = r->next;
	else
		r = arena_make(t->a, t_recorder);
	if (r->room_in < n_in) {
		r->in = arena_array(t->a, tensor *, n_in);
		r->room_in = n_in;
	}
	if (r->room_out < n_out) {
		r->out = arena_array(t->a, tensor *, n_out);
		r->room_out = n_out;
	}
	r->is_open = r->is_full = false;
	r->f = NULL;
	return r;
}

void t_recorder_begin(tensors *t, t_recorder *r)
{
	t_capture was = r->c;

	capture_begin(t, &r->c, false);
	r->c.call = was.call; /* their memory */
	r->c.bound = was.bound;
	r->c.key = was.key;
	r->c.at = was.at;
	r->c.at.n = r->c.call.n = r->c.bound.n = r->c.key.n = 0;
	r->given.n = r->value.n = r->from.n = r->written.n = 0;
	r->n_args = 0;
	r->is_open = r->is_full = true;
}

void t_recorder_end(tensors *t, t_recorder *r)
{
	if (r->is_open)
		capture_end(t, &r->c);
	r->is_open = false;
}

void t_recorder_drop(tensors *t, t_recorder *r)
{
	t_recorder_end(t, r);
	if (!r->is_full)
		return;
	for (int32_t i = 0; i < r->value.n; i++)
		t_value_drop(t, r->value.at[i]);
	for (int32_t i = 0; i < r->c.key.n; i++)
		t_value_drop(t, r->c.key.at[i]);
	capture_drop(t, &r->c);
	r->value.n = 0;
	r->is_full = false;
}

void t_recorder_free(tensors *t, t_recorder *r)
{
	struct t_regions *all = t->regions;

	if (r == NULL)
		return;
	t_recorder_drop(t, r);
	r->next = all->spare;
	all->spare = r;
}

tensor *t_recorder_argument(
	tensors *t, t_recorder *r, const ir_type *type, bool tracked)
{
	t_value *v = t_value_new(t, type);
	t_storage *s;

	v->tracked = tracked;
	t_value_keep(v); /* by the storage and by the list */
	t_value_keep(v);
	s = t_storage_new(t, v);
	s->refs++;
	*vec_push(t->a, &r->c.bound) =
		(t_bound){.s = s, .first = v, .arg = r->n_args++};
	return t_handle_new(t, s, NULL, type);
}

static const t_bound *bound_of(const t_recorder *r, const t_storage *s)
{
	for (int32_t i = 0; i < r->c.bound.n; i++)
		if (r->c.bound.at[i].s == s)
			return &r->c.bound.at[i];
	return NULL;
}

t_value *t_result_of(tensors *t, const t_recorder *r, const tensor *x)
{
	t_value *v = t_cur(t, x->storage);
	const t_bound *b = bound_of(r, x->storage);

	if (x->view == NULL && (b == NULL || v == b->first))
		return v;
	return t_copy_of(t, v, x->view, &x->type);
}

void t_recorder_writes(tensors *t, t_recorder *r)
{
	for (int32_t i = 0; i < r->c.bound.n; i++) {
		const t_bound *b = &r->c.bound.at[i];

		if (b->arg >= 0)
			continue;
		if (b->grad_last != b->grad_first)
			env_fail(t->e, TN_EINVAL, "region.gradient",
				t_here(t),
				"a body of a region collects or forgets "
				"gradients of a tensor outside: take them with "
				"tn_grad, or collect them behind the region");
		if (b->last == b->first)
			continue;
		*vec_push(t->a, &r->written) = (t_written){i, r->value.n,
			b->last->slot != NULL && b->last->slot == b->s->slot &&
				(b->last->call == NULL ||
					!t_is_made(b->last))};
		t_value_keep(b->last);
		*vec_push(t->a, &r->value) = b->last;
	}
}

/* ---- the key ---- */

static void code(tensors *t, int32_t x)
{
	*vec_push(t->a, &t->regions->code) = x;
}

static void code_type(tensors *t, const ir_type *y)
{
	code(t, (int32_t)y->dtype);
	code(t, y->rank);
	for (int32_t i = 0; i < y->rank; i++) {
		code(t, (int32_t)(y->shape[i] & 0x7fffffff));
		code(t, (int32_t)(y->shape[i] >> 31));
	}
}

static void code_pointer(tensors *t, uintptr_t p)
{
	code(t, (int32_t)(p & 0x7fffffff));
	code(t, (int32_t)((uint64_t)p >> 31 & 0x7fffffff));
	code(t, (int32_t)((uint64_t)p >> 62));
}

static void code_slot(tensors *t, const t_slot *s)
{
	struct t_regions *all = t->regions;
	int32_t i = 0;

	while (s != NULL && i < all->slot.n && all->slot.at[i] != s)
		i++;
	if (s != NULL && i == all->slot.n)
		*vec_push(t->a, &all->slot) = (t_slot *)(uintptr_t)s;
	code(t, s == NULL ? -1 : i);
}

/* Number of a value; one that no call makes is an operand. */
static int32_t number_of(tensors *t, t_recorder *r, t_value *v)
{
	if (v->stamp == t->stamp)
		return v->number;
	v->stamp = t->stamp;
	v->number = -1 - r->given.n;
	*vec_push(t->a, &r->given) = v;
	return v->number;
}

static void code_read(tensors *t, t_recorder *r, const t_read *x)
{
	code(t, number_of(t, r, x->v));
	for (const t_view *w = x->view; w != NULL; w = w->parent) {
		code(t, w->entry->id);
		for (int32_t i = 0; i < w->n_extra; i++)
			code_read(t, r, &w->extra[i]);
	}
	code(t, -1);
}

static void code_call(tensors *t, t_recorder *r, const t_call *c, int32_t *n)
{
	code(t, c->entry != NULL   ? c->entry->id
			: c->trace != NULL ? -3 - c->trace->id
					   : -2);
	code(t, c->n_args + 2 * 65536 * c->tracked + 65536 * c->no_grad);
	for (int32_t i = 0; i < c->n_args; i++)
		code_read(t, r, &c->arg[i]);
	for (int32_t i = 0; i < c->n_results; i++) {
		t_value *v = c->result[i];

		(*n)++;
		if (v == NULL) {
			code(t, -2);
			continue;
		}
		v->stamp = t->stamp;
		v->number = *n;
		code(t, v->tracked + 2 * v->is_part + 4 * v->is_freed);
		code_slot(t, v->slot);
	}
}

static void make_key(tensors *t, t_recorder *r)
{
	int32_t n = 0;

	t->stamp++;
	t->regions->code.n = t->regions->slot.n = 0;
	code(t, 0);
	for (int32_t i = 0; i < r->c.bound.n; i++)
		(void)number_of(t, r, r->c.bound.at[i].first);
	for (int32_t k = 0; k < r->c.call.n; k++)
		code_call(t, r, r->c.call.at[k], &n);
	for (int32_t i = 0; i < r->value.n; i++)
		code(t, number_of(t, r, r->value.at[i]));
	code(t, r->written.n);
	for (int32_t i = 0; i < r->written.n; i++)
		code(t, r->written.at[i].in);
	for (int32_t i = 0; i < r->given.n; i++) {
		code_type(t, &r->given.at[i]->type);
		code(t, r->given.at[i]->tracked +
				2 * r->given.at[i]->is_freed);
		code_slot(t, r->given.at[i]->slot);
		code_slot(t, i < r->c.bound.n ? r->c.bound.at[i].s->slot : NULL);
	}
}

/* ---- the trace ---- */

static t_trace *new_trace(tensors *t, const t_recorder *r, const char *name)
{
	t_trace *f = arena_make(t->a, t_trace);

	f->id = t->n_traces++;
	f->name = name;
	f->n_in = r->given.n;
	f->in = arena_array(t->a, t_value *, f->n_in + 1);
	f->slot = arena_array(t->a, t_slot *, f->n_in + 1);
	f->next = arena_array(t->a, int32_t, f->n_in + 1);
	for (int32_t i = 0; i < f->n_in; i++) {
		f->in[i] = r->given.at[i];
		f->next[i] = -1;
		t_value_keep(f->in[i]);
	}
	for (int32_t i = 0; i < r->c.bound.n; i++) {
		f->slot[i] = r->c.bound.at[i].s->slot;
		if (f->slot[i] != NULL)
			f->slot[i]->refs++;
	}
	for (int32_t k = 0; k < r->c.call.n; k++) {
		r->c.call.at[k]->refs++;
		*vec_push(t->a, &f->call) = r->c.call.at[k];
		trace_note_region(f, r->c.call.at[k]);
	}
	f->at = arena_copy(t->a, r->c.at.at, (size_t)r->c.at.n * sizeof *f->at);
	f->n_out = f->n_known = r->value.n;
	f->out = arena_array(t->a, t_value *, f->n_out + 1);
	for (int32_t i = 0; i < f->n_out; i++) {
		f->out[i] = r->value.at[i];
		t_value_keep(f->out[i]);
	}
	for (int32_t i = 0; i < r->written.n; i++)
		f->next[r->written.at[i].in] = r->written.at[i].out;
	return f;
}

/* The trace with that key; NULL: there is none yet. */
static t_trace *known(tensors *t)
{
	struct t_regions *all = t->regions;
	int64_t i = map_get(all->number_of, all->code.at,
		(size_t)all->code.n * sizeof *all->code.at, -1);

	return i < 0 ? NULL : all->trace.at[i];
}

static void remember(tensors *t, t_trace *f)
{
	struct t_regions *all = t->regions;

	*vec_push(t->a, &all->trace) = f;
	map_set(all->number_of, all->code.at,
		(size_t)all->code.n * sizeof *all->code.at, all->trace.n - 1);
}

static t_origin origin_of(const t_recorder *r, int32_t i)
{
	t_value *v = r->given.at[i];

	if (i < r->c.bound.n) {
		const t_bound *b = &r->c.bound.at[i];

		return b->arg >= 0
			? (t_origin){ORIGIN_ARG, b->arg, NULL, NULL}
			: (t_origin){ORIGIN_KNOWN, 0, b->s, NULL};
	}
	for (int32_t k = 0; k < r->c.bound.n; k++)
		if (r->c.bound.at[k].grad_first == v)
			return (t_origin){ORIGIN_GRADIENT, 0,
				r->c.bound.at[k].s, NULL};
	for (int32_t k = 0; k < r->c.key.n; k++)
		if (r->c.key.at[k] == v)
			return (t_origin){ORIGIN_KEY, k, NULL, NULL};
	return (t_origin){ORIGIN_VALUE, 0, NULL, v};
}

void t_recorder_intern(tensors *t, t_recorder *r, const char *name)
{
	make_key(t, r);
	r->f = known(t);
	if (r->f == NULL) {
		r->f = new_trace(t, r, name);
		remember(t, r->f);
	}
	for (int32_t i = 0; i < r->given.n; i++)
		*vec_push(t->a, &r->from) = origin_of(r, i);
}

/* ---- regions ---- */

void t_draft_clear(t_draft *d)
{
	d->kind = REGION_NONE;
	d->g = (t_region){.count = -1, .test = -1};
	d->feed[0].n = d->feed[1].n = d->carry.n = d->yield.n = d->op.n = 0;
	d->next.n = d->slot.n = d->type.n = d->made.n = 0;
}

static void region_key(tensors *t, const t_draft *d)
{
	const t_region *g = &d->g;

	t->regions->code.n = t->regions->slot.n = 0;
	code(t, (int32_t)d->kind);
	code_pointer(t, (uintptr_t)g->host.fn);
	code_pointer(t, (uintptr_t)g->host.back);
	code_pointer(t, (uintptr_t)g->host.arg);
	for (int32_t k = 0; k < 2; k++) {
		code(t, g->body[k] == NULL ? -1 : g->body[k]->id);
		for (int32_t i = 0; i < d->feed[k].n; i++) {
			code(t, (int32_t)d->feed[k].at[i].kind);
			code(t, d->feed[k].at[i].at);
			code(t, d->feed[k].at[i].row);
		}
	}
	for (int32_t i = 0; i < d->carry.n; i++) {
		const t_carry *c = &d->carry.at[i];

		code(t, c->from);
		code(t, c->next);
		code(t, 2 * c->pass + c->in_place);
	}
	for (int32_t i = 0; i < d->yield.n; i++) {
		code(t, (int32_t)d->yield.at[i].kind);
		code(t, d->yield.at[i].at[0]);
		code(t, d->yield.at[i].at[1]);
		code(t, d->made.at[i]);
		code_type(t, &d->type.at[i]);
	}
	code(t, (int32_t)(g->n & 0x7fffffff));
	code(t, (int32_t)(g->n >> 31));
	code(t, g->count);
	code(t, 2 * g->test + g->reverse);
	for (int32_t i = 0; i < d->op.n; i++) {
		code_type(t, &d->op.at[i]->type);
		code(t, d->next.at[i]);
		code_slot(t, d->slot.at[i]);
	}
}

static t_region *copy_region(tensors *t, const t_draft *d)
{
	t_region *g = arena_copy(t->a, &d->g, sizeof d->g);

	for (int32_t k = 0; k < 2; k++) {
		g->feed[k] = arena_array(t->a, t_feed, d->feed[k].n + 1);
		for (int32_t i = 0; i < d->feed[k].n; i++)
			g->feed[k][i] = d->feed[k].at[i];
	}
	g->n_carries = d->carry.n;
	g->carry = arena_array(t->a, t_carry, d->carry.n + 1);
	for (int32_t i = 0; i < d->carry.n; i++)
		g->carry[i] = d->carry.at[i];
	g->yield = arena_array(t->a, t_yield, d->yield.n + 1);
	for (int32_t i = 0; i < d->yield.n; i++)
		g->yield[i] = d->yield.at[i];
	return g;
}

static t_value *stand_in(tensors *t, const ir_type *y, bool tracked)
{
	t_value *v = t_value_new(t, y);

	v->tracked = tracked;
	t_value_keep(v);
	return v;
}

t_trace *t_region_make(
	tensors *t, t_draft *d, const char *name, bool is_shared)
{
	t_trace *f;

	if (is_shared) {
		region_key(t, d);
		f = known(t);
		if (f != NULL)
			return f;
	}
	f = arena_make(t->a, t_trace);
	f->id = t->n_traces++;
	f->name = name;
	f->kind = d->kind;
	f->region = copy_region(t, d);
	f->n_in = d->op.n;
	f->in = arena_array(t->a, t_value *, f->n_in + 1);
	f->slot = arena_array(t->a, t_slot *, f->n_in + 1);
	f->next = arena_array(t->a, int32_t, f->n_in + 1);
	for (int32_t i = 0; i < f->n_in; i++) {
		f->in[i] = stand_in(
			t, &d->op.at[i]->type, d->op.at[i]->tracked);
		f->next[i] = d->next.at[i];
		f->slot[i] = d->slot.at[i];
		if (f->slot[i] != NULL)
			f->slot[i]->refs++;
	}
	f->n_out = f->n_known = d->yield.n;
	f->out = arena_array(t->a, t_value *, f->n_out + 1);
	for (int32_t i = 0; i < f->n_out; i++)
		f->out[i] = stand_in(t, &d->type.at[i], d->made.at[i]);
	if (is_shared)
		remember(t, f);
	return f;
}

bool t_same_type(const ir_type *x, const ir_type *y)
{
	return x->dtype == y->dtype && x->rank == y->rank &&
	       memcmp(x->shape, y->shape,
		       (size_t)x->rank * sizeof x->shape[0]) == 0;
}

const char *t_type_text(tensors *t, const ir_type *y)
{
	str s = str_new(t->a);

	ir_type_add(&s, y);
	return s.at;
}

/* Views at offsets that are data are never the same. */
bool t_same_views(const t_view *x, const t_view *y)
{
	for (; x != NULL && y != NULL; x = x->parent, y = y->parent)
		if (x->entry != y->entry || x->n_extra > 0 || y->n_extra > 0)
			return false;
	return x == NULL && y == NULL;
}
