/*
 * function.c: compiled functions: variants and calls of them.
 *
 * A call looks up its variant by properties of its arguments (shapes, dtypes,
 * gradients, shared memory), or records the body. Then it is one call: its operands
 * are the current values of the arguments and of the storages that the body uses;
 * its results are the outputs, the next versions of storages that it writes, and
 * gradients that it collects.
 *
 *     f(a, b): a.add_(b); return a * w
 *     operands a, b, w; results a', a' * w; a's storage gets a'
 *
 * An argument is passed as a value, independent of its view: calls on eight batches
 * of one storage have one variant. Arguments that overlap, or share a storage that
 * the body uses, are passed as their whole storage, if one of them is written; then
 * the views are part of the variant.
 *
 * Source: docs/compile.md.
 */
#include "func/function.h"

static bool overlap(const tensor_function *f, const tensor *x, const tensor *y)
{
	t_seen a = {x->storage->cur, x->view}, b = {y->storage->cur, y->view};

	return f->t->dropped != TENSOR_RULE_OVERLAP && t_overlap(f->t, &a, &b);
}

/* ---- kinds ---- */

static void add_key(tensor_function *f, const void *data, size_t n)
{
	if (n == 0)
		return;
	vec_reserve(f->a, &f->key, (int32_t)n);
	memcpy(f->key.at + f->key.n, data, n);
	f->key.n += (int32_t)n;
}

static void add_int(tensor_function *f, int32_t v)
{
	add_key(f, &v, sizeof v);
}

static bool is_leaf(const t_storage *s)
{
	return s->cur->tracked && s->cur->slot != NULL &&
		s->cur->slot == s->slot;
}

static void add_type(tensor_function *f, const ir_type *y)
{
	add_int(f, (int32_t)y->dtype);
	add_int(f, y->rank);
	add_key(f, y->shape, (size_t)y->rank * sizeof y->shape[0]);
}

static int32_t first_on(tensor *const *in, int32_t i)
{
	for (int32_t k = 0; k < i; k++)
		if (in[k]->storage == in[i]->storage)
			return k;
	return i;
}

static int32_t known_number(const tensor_function *f, const t_storage *s)
{
	for (int32_t i = 0; i < f->known.n; i++)
		if (f->known.at[i] == s)
			return i;
	return -1;
}

static void make_key(tensor_function *f, tensor *const *in)
{
	f->key.n = 0;
	add_int(f, f->t->no_grad > 0);
	for (int32_t i = 0; i < f->n_in; i++) {
		const t_storage *s = in[i]->storage;
		bool whole = f->whole.at[i];

		add_type(f, &in[i]->type);
		add_int(f, s->cur->tracked + 2 * is_leaf(s) + 4 * whole +
				   8 * s->cur->is_freed);
		if (!whole)
			continue;
		add_int(f, first_on(in, i));
		add_int(f, known_number(f, s));
		add_type(f, &s->cur->type);
		for (const t_view *w = in[i]->view; w != NULL; w = w->parent)
			add_int(f, w->entry->id);
	}
}

static bool is_whole(const tensor_function *f, tensor *const *in, int32_t i)
{
	int32_t known = known_number(f, in[i]->storage);

	if (known >= 0 && f->t->dropped != TENSOR_RULE_KNOWN &&
		(f->writes.at[i] || f->known_writes.at[known]))
		return true;
	for (int32_t k = 0; k < f->n_in; k++) {
		int32_t n = f->writes.at[i] + f->writes.at[k];

		/* two writes are versions of one storage, even if they do not overlap */
		if (k != i && in[k]->storage == in[i]->storage &&
			(n == 2 || (n == 1 && overlap(f, in[i], in[k]))))
			return true;
	}
	return false;
}

/* Finds the arguments that are passed as their storage; true: this changed. */
static bool find_whole(tensor_function *f, tensor *const *in)
{
	bool changed = false;

	for (int32_t i = 0; i < f->n_in; i++) {
		bool whole = is_whole(f, in, i);

		changed |= whole != f->whole.at[i];
		f->whole.at[i] = whole;
	}
	return changed;
}

/* ---- recording ---- */

typedef struct recording {
	tensor_function *f;
	tensor *const *in;
	tensor **inside, **out;
	t_capture c;
	variant *made;
	int32_t scopes;
} recording;

/*
 * Argument i for the body: on a new storage; or on one for all arguments of one
 * storage; or on the storage itself, if the body uses it.
 */
static tensor *argument(recording *r, int32_t i)
{
	tensor_function *f = r->f;
	tensors *t = f->t;
	tensor *x = r->in[i];
	int32_t first = first_on(r->in, i);
	t_storage *s;

	if (!f->whole.at[i])
		return t_handle_new(t,
			capture_argument(t, x->storage, i, &x->type, false),
			NULL, &x->type);
	for (const t_view *w = x->view; w != NULL; w = w->parent)
		if (w->n_extra > 0)
			t_refuse(f, "compile.offset",
				"an argument at an offset that is data "
				"overlaps another argument that is written: "
				"pass a copy");
	while (!f->whole.at[first])
		first++;
	if (known_number(f, x->storage) >= 0)
		s = x->storage;
	else if (first < i)
		s = r->inside[first]->storage;
	else
		s = capture_argument(
			t, x->storage, i, &x->storage->cur->type, true);
	return t_handle_new(t, s, x->view, &x->type);
}

static void run_body(void *arg)
{
	recording *r = arg;
	tensor_function *f = r->f;
	const char *open;

	for (int32_t i = 0; i < f->n_in; i++)
		r->inside[i] = argument(r, i);
	f->body(f->arg, r->inside, r->out);
	open = capture_open(f->t, &r->c);
	if (open != NULL)
		t_refuse(f, "compile.scope",
			arena_printf(f->a, "the function %s", open));
	for (int32_t i = 0; i < f->n_out; i++) {
		if (r->out[i] == NULL || !tensor_is_valid(r->out[i]))
			t_refuse(f, "compile.output",
				arena_printf(f->a,
					"output %d is not a valid tensor: it "
					"was not set, or it was dropped",
					(int)i));
		(void)t_cur(f->t, r->out[i]->storage);
	}
}

static void make_variant(void *arg)
{
	recording *r = arg;

	r->made = variant_new(r->f, &r->c, r->out);
}

static void note_storages(tensor_function *f, const t_capture *c)
{
	for (int32_t i = 0; i < c->bound.n; i++) {
		const t_bound *b = &c->bound.at[i];
		bool written = b->last != b->first;
		int32_t n;

		if (b->arg >= 0 && b->is_whole)
			continue;
		if (b->arg >= 0) {
			f->writes.at[b->arg] |= written;
			continue;
		}
		n = known_number(f, b->s);
		if (n < 0) {
			n = f->known.n;
			*vec_push(f->a, &f->known) = b->s;
			*vec_push(f->a, &f->known_writes) = false;
			b->s->refs++;
		}
		f->known_writes.at[n] |= written;
	}
}

/* Records the body; NULL: the arguments need another variant. */
static variant *record(tensor_function *f, tensor *const *in)
{
	tensors *t = f->t;
	recording r = {.f = f,
		.in = in,
		.inside = arena_array(f->a, tensor *, f->n_in + 1),
		.out = arena_array(f->a, tensor *, f->n_out + 1)};
	int32_t no_grad = t->no_grad;
	tn_status s;
	bool again = false;

	capture_check_depth(t);
	tensor_scope_enter(t);
	r.scopes = t->scope.n;
	capture_begin(t, &r.c, false);
	f->n_traces++;
	f->is_recorded = true;
	s = env_run(t->e, run_body, &r);
	f->is_recorded = false;
	t->no_grad = no_grad;
	capture_end(t, &r.c);
	if (s >= 0) {
		note_storages(f, &r.c);
		again = find_whole(f, in);
	}
	if (s >= 0 && !again)
		s = env_run(t->e, make_variant, &r);
	while (t->scope.n >= r.scopes)
		tensor_scope_leave(t);
	if (r.made == NULL)
		capture_drop(t, &r.c);
	if (s < 0)
		env_rethrow(t->e);
	if (r.made != NULL)
		*vec_push(f->a, &f->variant) = r.made;
	return r.made;
}

/* ---- a call ---- */

static bool guards_hold(const tensors *t, const variant *v)
{
	if (t->dropped == TENSOR_RULE_GUARD)
		return true;
	for (int32_t i = 0; i < v->guard.n; i++) {
		const guard *g = &v->guard.at[i];

		if (g->s->cur->tracked != g->tracked ||
			g->s->cur->is_freed != g->freed ||
			is_leaf(g->s) != (g->leaf && g->tracked) ||
			(g->s->slot != NULL && g->s->slot->grad != NULL) !=
				g->grad)
			return false;
	}
	return true;
}

static void check_ranks(const tensor_function *f, tensor *const *in)
{
	for (int32_t i = 0; i < f->n_in && f->variant.n > 0; i++)
		if (f->rank[i] != in[i]->type.rank)
			t_refuse(f, "compile.rank",
				arena_printf(f->a,
					"argument %d has rank %d, and had %d in "
					"the first call: compile another "
					"function for it",
					(int)i, (int)in[i]->type.rank,
					(int)f->rank[i]));
}

variant *variant_find(tensor_function *f, tensor *const *in)
{
	if (f->is_recorded)
		t_refuse(f, "compile.recursion",
			"the body calls the function again, itself or through "
			"others, so the recording would not end; use tn_while "
			"or tn_scan for rounds, and plain C functions for a "
			"depth that C knows");
	for (int32_t i = 0; i < f->n_in; i++) {
		t_check(f->t, in[i]);
		t_renew(f->t, in[i]->storage);
	}
	for (int32_t i = 0; i < f->known.n; i++)
		t_renew(f->t, f->known.at[i]);
	check_ranks(f, in);
	for (int32_t i = 0; i < f->n_in && f->variant.n == 0; i++)
		f->rank[i] = in[i]->type.rank;
	(void)find_whole(f, in);
	/* each recording may find more storages that are written or used */
	for (int32_t round = 0; round < 4; round++) {
		make_key(f, in);
		for (int32_t i = 0; i < f->variant.n; i++) {
			variant *v = f->variant.at[i];

			if (v->n_key == (size_t)f->key.n &&
				memcmp(v->key, f->key.at, v->n_key) == 0 &&
				guards_hold(f->t, v))
				return v;
		}
		(void)record(f, in);
	}
	t_refuse(f, "compile.body",
		"the function records other calls each time, so it cannot be "
		"compiled");
}

static t_read operand(tensor_function *f, tensor *const *in, const source *s)
{
	tensors *t = f->t;

	switch (s->kind) {
	case FROM_ARG:
		return (t_read){t_cur(t, in[s->arg]->storage),
			in[s->arg]->view, false, 0};
	case FROM_STORAGE_OF:
		return (t_read){
			t_cur(t, in[s->arg]->storage), NULL, false, 0};
	case FROM_KNOWN:
		return (t_read){t_cur(t, s->s), NULL, false, 0};
	case FROM_GRADIENT:
		(void)t_cur(t, s->s);
		return (t_read){s->s->slot->grad, NULL, false, 0};
	case FROM_KEY:
		return (t_read){capture_key(t), NULL, false, 0};
	case FROM_VALUE:
	case FROM_BODY:
		break;
	}
	return (t_read){s->v, NULL, false, 0};
}

static t_storage *target(tensor *const *in, const source *s)
{
	return s->kind == FROM_KNOWN ? s->s : in[s->arg]->storage;
}

static void apply_updates(
	tensor_function *f, const variant *v, t_call *c, tensor *const *in)
{
	tensors *t = f->t;

	for (int32_t i = 0; i < v->write.n; i++) {
		const update *u = &v->write.at[i];
		t_storage *s = target(in, &u->to);
		t_value *next = c->result[u->out];

		t_value_keep(next);
		if (u->is_leaf)
			t_leaf(t, s, next);
		t_value_drop(t, s->cur);
		s->cur = next;
	}
	for (int32_t i = 0; i < v->grad.n; i++) {
		const update *u = &v->grad.at[i];
		t_slot *slot = t_slot_of(t, target(in, &u->to));
		t_value *g = u->out < 0 ? NULL : c->result[u->out];

		if (u->to.kind != FROM_KNOWN && g != NULL) {
			t_slot_add(t, slot, g);
			continue;
		}
		if (g != NULL)
			t_value_keep(g);
		for (int32_t k = 0; g != NULL && k < c->n_args; k++)
			if (c->arg[k].v == slot->grad)
				g->adds_to = k + 1;
		if (slot->grad != NULL)
			t_value_drop(t, slot->grad);
		slot->grad = g;
	}
}

static void make_outputs(tensor_function *f, const variant *v, t_call *c,
	tensor *const *in, tensor **out)
{
	tensors *t = f->t;

	for (int32_t i = 0; i < f->n_out; i++) {
		const output *o = &v->out[i];
		t_storage *s;
		t_view *view;

		if (o->from.kind == FROM_BODY && o->same < i) {
			s = out[o->same]->storage;
		} else if (o->from.kind == FROM_BODY) {
			t_value_keep(c->result[o->out]);
			s = t_storage_new(t, c->result[o->out]);
		} else {
			s = target(in, &o->from);
		}
		view = t_view_on(t,
			o->from.kind == FROM_ARG ? in[o->from.arg]->view
						 : NULL,
			o->view);
		out[i] = t_handle_new(t, s, view, &o->type);
		t_view_drop(t, view);
	}
}

static bool is_tracked(const tensor_function *f, const t_trace *g)
{
	bool any = false;

	for (int32_t i = 0; i < g->n_out; i++)
		any |= t_is_made(g->out[i]);
	for (int32_t i = 0; any && i < f->operand.n; i++)
		if (f->operand.at[i].v->tracked)
			return f->t->no_grad == 0;
	return false;
}

/* Middles that are leaves of operand i collect gradients in its slot. */
static void add_leaves(t_call *c, int32_t i)
{
	const t_trace *g = c->trace;

	for (int32_t r = g->n_known; r < g->n_out; r++) {
		t_value *v = c->result[r];

		if (v == NULL || v->slot != NULL || t_is_made(g->out[r]) ||
			g->out[r]->slot != g->slot[i])
			continue;
		v->slot = c->slot[i];
		v->slot->refs++;
		v->tracked = true;
	}
}

/* Adds the slots of leaves that the body makes of operands. */
static void add_slots(
	tensor_function *f, const variant *v, t_call *c, tensor *const *in)
{
	if (c->slot_room < c->n_args) {
		c->slot = arena_array(f->t->a, t_slot *, c->n_args);
		c->slot_room = c->n_args;
	}
	for (int32_t i = 0; i < v->write.n; i++) {
		const update *u = &v->write.at[i];

		for (int32_t k = 0; k < c->n_args; k++)
			if (c->trace->next[k] == u->out &&
				c->trace->slot[k] != NULL) {
				c->slot[k] = t_slot_of(
					f->t, target(in, &u->to));
				c->slot[k]->refs++;
				add_leaves(c, k);
			}
	}
}

void tensor_function_call(
	tensor_function *f, tensor *const *in, tensor **out)
{
	variant *v = variant_find(f, in);
	t_trace *g = v->trace;
	t_call *c;

	f->operand.n = 0;
	for (int32_t i = 0; i < g->n_in; i++) {
		t_read r = operand(f, in, &v->from[i]);

		*vec_push(f->a, &f->operand) = r;
	}
	if (is_tracked(f, g))
		g = t_trace_tracked(f->t, g);
	c = t_record_trace(f->t, g, f->operand.at);
	for (int32_t i = 0; i < g->n_in && f->t->capture == NULL; i++)
		if (v->from[i].kind == FROM_KEY) /* the call has a reference now */
			t_value_drop(f->t, f->operand.at[i].v);
	c->refs++; /* until its results are assigned */
	if (c->tracked)
		add_slots(f, v, c, in);
	make_outputs(f, v, c, in, out);
	apply_updates(f, v, c, in);
	t_call_drop(f->t, c);
}

/* ---- the whole ---- */

tensor_function *tensor_function_new(tensors *t, const char *name,
	int32_t n_in, int32_t n_out, tensor_body *body, void *arg)
{
	arena *a = arena_child(t->a);
	tensor_function *f = arena_make(a, tensor_function);

	*f = (tensor_function){.t = t,
		.a = a,
		.name = arena_strdup(t->a, name),
		.n_in = n_in,
		.n_out = n_out,
		.body = body,
		.arg = arg};
	f->rank = arena_array(a, int32_t, n_in + 1);
	for (int32_t i = 0; i < n_in; i++) {
		*vec_push(a, &f->whole) = false;
		*vec_push(a, &f->writes) = false;
	}
	return f;
}

void tensor_function_free(tensor_function *f)
{
	for (int32_t i = 0; i < f->known.n; i++)
		t_storage_drop(f->t, f->known.at[i]);
	arena_free(f->a);
}

int32_t tensor_function_n_traces(const tensor_function *f)
{
	return f->n_traces;
}
