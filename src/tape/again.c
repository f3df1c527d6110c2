/*
 * again.c: what the backward of a compiled function makes again instead of
 * reading it.
 *
 * Consumes a forward and its recorded backward. With tn_options.memory_limit, a
 * minimum cut (grad/cut.h) chooses which of the values that cross are kept; the
 * calls of the others are put in front of the backward, and read what is kept
 * or there anyway: operands and results that no write of the body ends.
 * Constants are always made again, and without a limit nothing else: what is
 * kept is kept for one call, and its memory is planned.
 *
 *     h = relu(z); o = matmul(h, w)     kept: z; relu(z) again
 *
 * The price of work is that of calls that are not compiled: keep.c. The limit
 * is for each function.
 */
#include "grad/cut.h"
#include "tape/walk.h"

typedef struct choosing {
	tensors *t;
	const t_trace *f;
	t_trace *back;
	t_value *const *seed;
	arena *a;
	map *place; /* value -> number */
	VEC(t_value *) value;
	VEC(cut_value) cut;
} choosing;

static void add_value(choosing *k, t_value *v, const cut_value *what)
{
	map_set(k->place, &v, sizeof v, k->value.n);
	*vec_push(k->a, &k->value) = v;
	*vec_push(k->a, &k->cut) = *what;
}

static int32_t place_of(const choosing *k, const t_value *v)
{
	return (int32_t)map_get(k->place, &v, sizeof v, -1);
}

/* Does the caller have it when the call has run? */
static bool is_there(const choosing *k, const t_value *v)
{
	t_version next;

	return t_is_in(k->f->n_known, k->f->out, v) ||
		(t_is_in(k->f->n_in, k->f->in, v) &&
			!t_next_version(k->f, v, &next));
}

/* Values that a call reads, by their numbers. */
static int32_t *sources(choosing *k, const t_call *c, int32_t *n)
{
	VEC(int32_t) from = {0};

	for (int32_t i = 0; i < c->n_args; i++) {
		*vec_push(k->a, &from) = place_of(k, c->arg[i].v);
		for (const t_view *w = c->arg[i].view; w != NULL; w = w->parent)
			for (int32_t j = 0; j < w->n_extra; j++)
				*vec_push(k->a, &from) =
					place_of(k, w->extra[j].v);
	}
	*n = from.n;
	return from.at;
}

static void describe(choosing *k)
{
	const t_trace *f = k->f;

	for (int32_t i = 0; i < f->n_in; i++)
		add_value(k, f->in[i],
			&(cut_value){.bytes = (int64_t)ir_type_bytes(&f->in[i]->type),
				.is_there = is_there(k, f->in[i]),
				.is_fixed = true});
	for (int32_t q = 0; q < f->call.n; q++) {
		const t_call *c = f->call.at[q];
		cut_value what = {.work = t_call_work(c),
			.is_fixed = c->entry == NULL};

		what.source = sources(k, c, &what.n_sources);
		for (int32_t i = 0; i < c->n_results; i++) {
			t_value *v = c->result[i];

			if (v == NULL)
				continue;
			what.bytes = (int64_t)ir_type_bytes(&v->type);
			what.is_there = is_there(k, v);
			add_value(k, v, &what);
		}
	}
	for (int32_t i = 0; i < k->back->n_in; i++) {
		int32_t p = place_of(k, k->back->in[i]);

		if (p >= 0 && !t_is_in(f->n_out, k->seed, k->back->in[i]))
			k->cut.at[p].is_read = true;
	}
}

/* The calls that make a chosen value, in order; and their results. */
static void find_calls(choosing *k, const bool *again, t_calls *calls)
{
	for (int32_t q = 0; q < k->f->call.n; q++) {
		t_call *c = k->f->call.at[q];
		bool any = c->n_args == 0 && c->trace == NULL;

		for (int32_t i = 0; any && i < c->n_results; i++)
			any = c->result[i] != NULL &&
				k->cut.at[place_of(k, c->result[i])].is_read;
		for (int32_t i = 0; !any && i < c->n_results; i++)
			any = c->result[i] != NULL &&
				again[place_of(k, c->result[i])];
		if (any)
			*vec_push(k->t->a, calls) = c;
	}
}

static bool is_made(const t_calls *calls, const t_value *v)
{
	for (int32_t q = 0; q < calls->n; q++)
		for (int32_t i = 0; i < calls->at[q]->n_results; i++)
			if (calls->at[q]->result[i] == v)
				return true;
	return false;
}

/* In front of the backward; what they read are operands of it. */
static void put_in_front(choosing *k, const t_calls *calls)
{
	t_trace *back = k->back;
	tensors *t = k->t;
	VEC(t_value *) in = {0};
	VEC(t_call *) all = {0};
	VEC(loc) at = {0};

	for (int32_t i = 0; i < back->n_in; i++)
		if (!is_made(calls, back->in[i]))
			*vec_push(t->a, &in) = back->in[i];
	for (int32_t q = 0; q < calls->n; q++) {
		int32_t n, *from = sources(k, calls->at[q], &n);

		for (int32_t i = 0; i < n; i++) {
			t_value *v = k->value.at[from[i]];

			if (is_made(calls, v) || t_is_in(in.n, in.at, v))
				continue;
			t_value_keep(v);
			*vec_push(t->a, &in) = v;
		}
		*vec_push(t->a, &all) = calls->at[q];
		*vec_push(t->a, &at) = (loc){0};
	}
	for (int32_t q = 0; q < back->call.n; q++) {
		*vec_push(t->a, &all) = back->call.at[q];
		*vec_push(t->a, &at) = back->at[q];
	}
	back->in = in.at;
	back->n_in = in.n;
	back->slot = arena_array(t->a, t_slot *, in.n + 1);
	back->next = arena_array(t->a, int32_t, in.n + 1);
	for (int32_t i = 0; i < in.n; i++)
		back->next[i] = -1;
	back->at = at.at;
	back->call.n = 0;
	for (int32_t q = 0; q < all.n; q++)
		*vec_push(t->a, &back->call) = all.at[q];
	back->n_again = calls->n;
}

void t_make_again(
	tensors *t, const t_trace *f, t_trace *back, t_value *const *seed)
{
	choosing k = {.t = t, .f = f, .back = back, .seed = seed};
	cut_options o = {T_BYTES_PER_WORK, t->memory_limit};
	t_calls calls = {0};
	cut_result r;

	k.a = arena_child(t->a);
	k.place = map_new(k.a);
	describe(&k);
	if (t->memory_limit >= 0)
		r = cut_choose(k.a, k.value.n, k.cut.at, &o);
	else
		r.again = arena_array(k.a, bool, k.value.n + 1);
	find_calls(&k, r.again, &calls);
	if (calls.n > 0)
		put_in_front(&k, &calls);
	arena_free(k.a);
}
