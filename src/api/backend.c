/*
 * backend.c: functions of a context that value/ calls: compile and run what was
 * recorded, give keys, move values between placements.
 */
#include "api/shard.h"
#include "interp/interp.h"

typedef struct compiled {
	ir_program *ir;	 /* interpreted */
	plan_exec *exec; /* or compiled */
	api_parted *parted; /* or the part of this process */
	int64_t n_copies, copied_bytes; /* in each run, because of writes */
	int32_t at; /* the call in which the interpreter failed */
} compiled;

static void count_copies(compiled *r, const plan *p)
{
	for (int32_t i = 0; i < p->launch.n; i++) {
		const fuse_kernel *k = p->launch.at[i].source;

		for (int32_t j = 0; j < k->n_eqns; j++) {
			const sys_eqn *e = &k->eqn[j].e;
			const sys_tensor *x = &p->s->tensor.at[e->out[0]];

			if (e->why == NULL)
				continue;
			r->n_copies++;
			r->copied_bytes += x->numel *
				(int64_t)dtype_size(x->dtype);
		}
	}
}

static void *compile_recorded(
	void *arg, arena *a, ir_program *p, tensor_placing *w)
{
	tn_context *c = arg;
	compiled *r = arena_make(a, compiled);
	compile_options o;
	compilation *m;

	r->ir = p;
	for (int32_t i = 0; i < p->value.n; i++)
		p->value.at[i].at = (loc){0};
	o = api_compile_options(c);
	m = compile_new(a, p, &o);
	compile_to(m, TN_LEVEL_PROGRAM);
	if (w != NULL)
		r->parted = api_shard_compile(c, a, m, w);
	if (r->parted != NULL || c->o.interp)
		return r;
	r->exec = api_compile(c, a, m);
	count_copies(r, m->plan);
	c->stats.bytes_plans += (int64_t)(m->plan->tensor_bytes +
		m->plan->scratch_bytes + m->plan->kept_bytes +
		m->plan->local_bytes *
			(size_t)run_pool_threads(api_pool(c)));
	return r;
}

static void run_recorded(void *arg, void *made, const void *const *in,
	const int64_t *version, void *const *out)
{
	tn_context *c = arg;
	compiled *r = made;
	double start = compile_clock_ms();

	if (r->parted != NULL)
		api_shard_run(c, r->parted, in, out);
	else if (r->exec != NULL)
		api_exec_run(c, r->exec, in, version, out);
	else
		interp_run_at(c->e, r->ir, in, out, &r->at);
	c->stats.run_ms += compile_clock_ms() - start;
	c->stats.n_inner_copies += r->n_copies;
	c->stats.inner_copied_bytes += r->copied_bytes;
}

/*
 * On a mesh the calls are unknown: the consequences of a failure must be the same
 * on all processes, and only one of them has seen it.
 */
static int32_t failed_calls(void *arg, void *made, const int32_t **call)
{
	const compiled *r = made;

	(void)arg;
	if (r->parted != NULL)
		return 0;
	if (r->exec != NULL)
		return plan_exec_failed(r->exec, call);
	*call = &r->at;
	return r->at >= 0;
}

static const char *host_row(void *arg, void *made)
{
	const compiled *r = made;

	(void)arg;
	return r->exec != NULL ? plan_exec_host_row(r->exec) : NULL;
}

/* A key depends on the seed and its number. */
static int64_t next_key(void *arg)
{
	tn_context *c = arg;
	uint64_t z[2] = {c->seed, c->n_keys++};

	return (int64_t)(hash_bytes(z, sizeof z, 0) >> 1);
}

tensors *api_tensors(tn_context *c)
{
	tensor_backend b = {c, compile_recorded, run_recorded, failed_calls,
		next_key, api_shard_bytes, api_shard_move, api_shard_carry,
		c->device, host_row, api_note_asked, interp_loop};

	if (c->t == NULL) {
		c->t = tensors_new(c->a, &b);
		tensors_limit(c->t, c->o.memory_limit);
		if (c->poison)
			tensors_poison(c->t);
		tensors_drop_rule(c->t, c->dropped);
	}
	return c->t;
}
