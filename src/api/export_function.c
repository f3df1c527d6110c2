/*
 * export_function.c: tn_function_export_c: a call of a compiled function as C, such
 * as a step of training.
 */
#include "api/export.h"

#include "interp/interp.h"

struct call {
	api_export e;
	tn_function *f;
	tn_tensor *const *in;
};

static tensor *valid(tn_context *c, const tn_tensor *x, const char *what,
	int32_t i)
{
	tensor *t = api_inner(x);

	if (t == NULL || !tensor_is_valid(t) || tensor_owner(t) != c)
		env_fail(c->e, TN_EINVAL, "tensor.handle", (loc){0},
			"%s %d is not a tensor of this context", what, (int)i);
	return t;
}

/* Elements of an argument, dense, for the test. */
static const void *elements(struct call *k, tensor *x)
{
	size_t n = ir_type_bytes(tensor_type_of(x));
	void *copy = arena_alloc(k->e.a, n + 1, 1);

	tensor_read(api_tensors(k->e.c), x, copy, n);
	return copy;
}

static void set_test(struct call *k, tensor *const *arg,
	const tensor_step_program *s)
{
	int32_t n = s->p->input.n;
	const void **test = arena_array(k->e.a, const void *, n + 1);

	if (k->e.o.by == TN_EXPORT_BY_NOTHING)
		return;
	for (int32_t i = 0; i < n; i++) {
		int64_t *key;

		if (s->in[i].is_key) {
			key = arena_make(k->e.a, int64_t);
			*key = 1;
			test[i] = key;
			continue;
		}
		test[i] = s->in[i].arg >= 0 ? elements(k, arg[s->in[i].arg])
					    : s->in[i].data;
	}
	k->e.test = test;
}

static void set_inputs(struct call *k, const tensor_step_program *s)
{
	int32_t n = s->p->input.n;
	const void **data = arena_array(k->e.a, const void *, n + 1);
	bool *state = arena_array(k->e.a, bool, n + 1);

	for (int32_t i = 0; i < n; i++) {
		data[i] = s->in[i].data;
		state[i] = s->in[i].is_kept;
	}
	k->e.ir = s->p;
	k->e.data = data;
	k->e.state = state;
}

static void write_function(void *arg)
{
	struct call *k = arg;
	tn_function *f = k->f;
	tn_context *c = k->e.c;
	tensor *in[TN_MAX_FUNCTION_ARGS + 1];
	tensor_step_program s;
	tensor **kept;

	api_export_check(&k->e);
	k->e.a = arena_child(c->a);
	if (f->n_in > 0)
		api_want(c, k->in, "the list of arguments");
	for (int32_t i = 0; i < f->n_in; i++)
		in[i] = valid(c, k->in[i], "argument", i);
	kept = arena_array(k->e.a, tensor *, k->e.o.n_kept + 1);
	for (int32_t i = 0; i < k->e.o.n_kept; i++)
		kept[i] = valid(c, k->e.o.kept[i], "kept tensor", i);
	tensor_function_step(k->e.a, f->f, in,
		&(tensor_kept){k->e.o.n_kept, kept},
		&(tensor_step_names){k->e.o.in_names, k->e.o.out_names}, interp_loop,
		&s);
	set_inputs(k, &s);
	set_test(k, in, &s);
	api_export_write(&k->e);
}

tn_status tn_function_export_c(tn_function *f, tn_tensor *const *in,
	const char *dir, const tn_export_options *options)
{
	if (f == NULL)
		return api_null("the function");

	struct call k = {
		.e = {.c = f->c, .dir = dir, .options = options},
		.f = f,
		.in = in};
	tn_status s = api_call(f->c, write_function, &k);

	arena_free(k.e.a);
	return s;
}
