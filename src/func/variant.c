/*
 * variant.c: makes a variant of the recording of a function.
 *
 * Consumes a capture that has ended and the outputs of the body; produces the trace,
 * the sources of its operands, and the uses of its results: next versions, collected
 * gradients, outputs. An output on an outside storage is that storage through a
 * view, and not a separate result.
 */
#include "func/function.h"

_Noreturn void t_refuse(
	const tensor_function *f, const char *rule, const char *text)
{
	env_fail(f->t->e, TN_EINVAL, rule,
		t_here(f->t), "%s: %s",
		f->name, text);
}

typedef VEC(t_value *) values;

static int32_t place_in(arena *a, values *list, t_value *v)
{
	for (int32_t i = 0; i < list->n; i++)
		if (list->at[i] == v)
			return i;
	*vec_push(a, list) = v;
	return list->n - 1;
}

static source source_of_bound(const t_bound *b)
{
	if (b->arg >= 0)
		return (source){b->is_whole ? FROM_STORAGE_OF : FROM_ARG,
			b->arg, b->s, NULL};
	return (source){FROM_KNOWN, 0, b->s, NULL};
}

static source source_of(const t_capture *c, t_value *v)
{
	for (int32_t i = 0; i < c->bound.n; i++) {
		const t_bound *b = &c->bound.at[i];

		if (b->first == v)
			return source_of_bound(b);
		if (b->grad_first == v)
			return (source){FROM_GRADIENT, 0, b->s, NULL};
	}
	for (int32_t i = 0; i < c->key.n; i++)
		if (c->key.at[i] == v)
			return (source){FROM_KEY, 0, NULL, NULL};
	return (source){FROM_VALUE, 0, NULL, v};
}

static const t_bound *bound_of(const t_capture *c, const t_storage *s)
{
	for (int32_t i = 0; i < c->bound.n; i++)
		if (c->bound.at[i].s == s)
			return &c->bound.at[i];
	return NULL;
}

/* ---- results ---- */

static void add_updates(
	variant *v, tensor_function *f, const t_capture *c, values *result)
{
	for (int32_t i = 0; i < c->bound.n; i++) {
		const t_bound *b = &c->bound.at[i];
		source to = source_of_bound(b);

		if (b->last != b->first)
			*vec_push(f->a, &v->write) = (update){to,
				place_in(f->a, result, b->last),
				b->last->slot != NULL &&
					b->last->slot == b->s->slot &&
					(b->last->call == NULL ||
						!t_is_made(b->last))};
	}
	for (int32_t i = 0; i < c->bound.n; i++) {
		const t_bound *b = &c->bound.at[i];

		if (b->grad_last != b->grad_first)
			*vec_push(f->a, &v->grad) = (update){
				source_of_bound(b),
				b->grad_last == NULL
					? -1
					: place_in(f->a, result, b->grad_last),
				false};
	}
}

static void add_outputs(variant *v, tensor_function *f, const t_capture *c,
	tensor *const *out, values *result)
{
	v->out = arena_array(f->a, output, f->n_out + 1);
	for (int32_t i = 0; i < f->n_out; i++) {
		const t_bound *b = bound_of(c, out[i]->storage);
		output *o = &v->out[i];

		*o = (output){.view = out[i]->view,
			.type = out[i]->type,
			.same = i,
			.out = -1};
		t_view_keep(o->view);
		for (const t_view *w = o->view; w != NULL; w = w->parent)
			if (w->n_extra > 0)
				t_refuse(f, "compile.output",
					"the function returns a view at an "
					"offset that is data: return tn_copy "
					"of it");
		for (int32_t k = i - 1; k >= 0; k--)
			if (out[k]->storage == out[i]->storage &&
				f->t->dropped != TENSOR_RULE_OUTPUT)
				o->same = k;
		if (b != NULL) {
			o->from = source_of_bound(b);
			continue;
		}
		o->from = (source){FROM_BODY, 0, NULL, NULL};
		o->out = place_in(f->a, result, out[i]->storage->cur);
	}
}

/* Checks that every output depends on a value that can change. */
static void check_outputs(
	const tensor_function *f, const variant *v, tensor *const *out)
{
	tensors *t = f->t;

	t->stamp++;
	for (int32_t i = 0; i < v->trace->n_in; i++)
		if (v->from[i].kind != FROM_VALUE)
			v->trace->in[i]->stamp = t->stamp;
	for (int32_t k = 0; k < v->trace->call.n; k++) {
		t_call *c = v->trace->call.at[k];
		bool any = false;

		for (int32_t i = 0; i < c->n_args; i++)
			any |= c->arg[i].v->stamp == t->stamp;
		for (int32_t i = 0; any && i < c->n_results; i++)
			if (c->result[i] != NULL)
				c->result[i]->stamp = t->stamp;
	}
	for (int32_t i = 0; i < f->n_out; i++)
		if (v->out[i].from.kind == FROM_BODY &&
			out[i]->storage->cur->stamp != t->stamp)
			t_refuse(f, "compile.output",
				arena_printf(f->a,
					"output %d is a constant: it depends "
					"on no argument and on no tensor that "
					"can change",
					(int)i));
}

/* ---- the whole ---- */

variant *variant_new(
	tensor_function *f, const t_capture *c, tensor *const *out)
{
	variant *v = arena_make(f->a, variant);
	values given = {0}, result = {0};

	for (int32_t i = 0; i < c->bound.n; i++) {
		const t_bound *b = &c->bound.at[i];

		(void)place_in(f->a, &given, b->first);
		if (b->arg < 0)
			*vec_push(f->a, &v->guard) = (guard){b->s,
				b->was->tracked, b->was->is_freed,
				b->was->slot != NULL &&
					b->was->slot == b->s->slot,
				b->grad_was != NULL};
	}
	add_outputs(v, f, c, out, &result);
	add_updates(v, f, c, &result);
	v->trace = trace_new(f->t, c, given.n, given.at, result.n, result.at,
		f->name);
	v->from = arena_array(f->a, source, v->trace->n_in + 1);
	for (int32_t i = 0; i < v->trace->n_in; i++)
		v->from[i] = source_of(c, v->trace->in[i]);
	for (int32_t i = 0; i < c->bound.n; i++) {
		const t_bound *b = &c->bound.at[i];

		v->trace->slot[i] = b->s->slot;
		if (b->s->slot != NULL)
			b->s->slot->refs++;
		if (b->last != b->first)
			v->trace->next[i] = place_in(f->a, &result, b->last);
	}
	v->key = arena_copy(f->a, f->key.at, (size_t)f->key.n);
	v->n_key = (size_t)f->key.n;
	check_outputs(f, v, out);
	return v;
}
