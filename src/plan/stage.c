/*
 * stage.c: a run on a device with arrays of the host: inputs are copied to arrays
 * on the device, which stay there, results are copied back.
 */
#include "plan/exec.h"

struct array { /* on the device */
	void *at;
	size_t bytes;
	const void *from; /* of the last copy */
	int64_t version;  /* of the last copy; 0: unknown */
};

struct staged {
	struct array *in, *out;
	const void **in_at;
	void **out_at;
};

static struct array new_array(plan_exec *x, const sys_tensor *t)
{
	struct array r = {.bytes = (size_t)t->numel * dtype_size(t->dtype)};

	r.at = x->d->alloc(x->d, x->a, r.bytes);
	return r;
}

static struct staged *open_arrays(plan_exec *x)
{
	const ir_system *s = x->p->s;
	struct staged *g = arena_make(x->a, struct staged);

	g->in = arena_array(x->a, struct array, s->input.n + 1);
	g->out = arena_array(x->a, struct array, s->output.n + 1);
	g->in_at = arena_array(x->a, const void *, s->input.n + 1);
	g->out_at = arena_array(x->a, void *, s->output.n + 1);
	for (int32_t i = 0; i < s->input.n; i++) {
		g->in[i] = new_array(x, &s->tensor.at[s->input.at[i]]);
		g->in_at[i] = g->in[i].at;
	}
	for (int32_t i = 0; i < s->output.n; i++) {
		if (plan_store(s, i) >= 0)
			continue; /* it is stored in an input */
		g->out[i] = new_array(x, &s->tensor.at[s->output.at[i]]);
		g->out_at[i] = g->out[i].at;
	}
	return g;
}

static void put_inputs(
	plan_exec *x, const void *const *in, const int64_t *version)
{
	for (int32_t i = 0; i < x->p->s->input.n; i++) {
		struct array *k = &x->staged->in[i];
		int64_t v = version != NULL ? version[i] : 0;

		if (v != 0 && k->version == v && k->from == in[i])
			continue;
		k->version = 0; /* until it is there */
		x->d->put(x->d, k->at, in[i], k->bytes);
		k->version = v;
		k->from = in[i];
	}
}

static void get_outputs(plan_exec *x, const void *const *in, void *const *out)
{
	const ir_system *s = x->p->s;

	for (int32_t i = 0; i < s->output.n; i++) {
		int32_t store = plan_store(s, i);
		const struct array *k = store < 0 ? &x->staged->out[i]
						  : &x->staged->in[store];
		void *to = store < 0 ? out[i] : (void *)(uintptr_t)in[store];

		x->d->get(x->d, to, k->at, k->bytes);
	}
}

void plan_exec_run_host(plan_exec *x, const void *const *in,
	const int64_t *version, void *const *out)
{
	if (x->d->is_host) {
		plan_exec_run(x, in, version, out);
		return;
	}
	if (x->staged == NULL)
		x->staged = open_arrays(x);
	put_inputs(x, in, version);
	plan_exec_run(x, x->staged->in_at, version, x->staged->out_at);
	get_outputs(x, in, out);
}
