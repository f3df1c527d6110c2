/*
 * compile.c: compiles with the options, machine, C compiler and threads of a
 * context.
 */
#include "api/api.h"

run_jit *api_jit(tn_context *c)
{
	if (c->jit == NULL)
		c->jit = run_jit_new(c->a, c->o.cache_dir);
	return c->jit;
}

run_pool *api_pool(tn_context *c)
{
	if (c->pool == NULL)
		c->pool = run_pool_new(c->a, c->o.threads);
	return c->pool;
}

int32_t api_threads(tn_context *c)
{
	return c->device->is_host ? run_pool_threads(api_pool(c)) : 0;
}

compile_options api_compile_options(tn_context *c)
{
	compile_options o = compile_options_default(NULL);

	o.no_fusion = c->o.no_fusion;
	o.verify = c->o.verify;
	o.log = c->o.log;
	o.log_arg = c->o.log_arg;
	o.dump = c->dump;
	o.verify_kern = c->verify_kern;
	o.tf32 = c->o.tf32;
	o.settle = c->settle;
	o.plan.poison = c->poison;
	o.schedule = c->schedule;
	o.n_pinned = &c->stats.n_pinned;
	o.machine = c->machine;
	o.target = c->target;
	o.plan.max_units = c->foreign ? 1 : run_cores();
	return o;
}

const machine *api_machine(const run_target *t)
{
	return machine_of_c(t->vector_bytes, t->n_vector_registers,
		t->dot_int && t->dot_bf16 && t->tiles ? MACHINE_TILE_DOTS
		: t->dot_int && t->dot_bf16	      ? MACHINE_ALL_DOTS
		: t->dot_int			      ? MACHINE_INT_DOTS
						      : MACHINE_NO_DOTS);
}

/* Runs the passes up to a level; schedules need to know the C compiler. */
void api_compile_to(tn_context *c, compilation *m, tn_level level)
{
	if (level >= TN_LEVEL_SCHEDULE && m->o.machine == NULL) {
		const run_target *t = run_jit_target(api_jit(c));

		m->o.machine = api_machine(t);
	}
	compile_to(m, level);
}

struct libs {
	run_jit *jit;
	int32_t n;
	const char **text;
	run_lib **lib; /* by C text */
};

static int64_t hold(void *arg)
{
	struct libs *l = arg;

	return run_hold(l->jit, l->text, l->n, l->lib);
}

static void release(void *arg)
{
	struct libs *l = arg;

	run_release(l->n, l->lib);
}

static void find_function(void *arg, int32_t unit, const char *name, void *fn)
{
	struct libs *l = arg;

	run_symbol(l->jit, l->lib[unit], name, fn);
}

static void add_stats(tn_context *c, const compilation *m)
{
	tn_stats *s = &c->stats;

	s->n_programs++;
	s->bytes_kept_copies += (int64_t)m->plan->kept_bytes;
	s->n_kernels += m->plan->launch.n;
	for (int32_t i = 0; i < m->plan->kernel.n; i++)
		s->n_shared += m->plan->kernel.at[i].n_uses - 1;
	s->lower_ms += compile_level_ms(m, TN_LEVEL_SYSTEM);
	s->fuse_ms += compile_level_ms(m, TN_LEVEL_GROUPS);
	s->schedule_ms += compile_level_ms(m, TN_LEVEL_SCHEDULE);
	s->emit_ms += compile_level_ms(m, TN_LEVEL_KERN) +
		compile_level_ms(m, TN_LEVEL_PLAN);
}

/* ---- on a device with memory of its own ---- */

struct units {
	run_device *d;
	void **unit; /* by text */
};

static void find_on_device(void *arg, int32_t unit, const char *name, void *fn)
{
	struct units *u = arg;
	void *p = u->d->find(u->d, u->unit[unit], name);

	memcpy(fn, &p, sizeof p);
}

static plan_exec *compile_on_device(
	tn_context *c, arena *a, const plan *p)
{
	struct units *u = arena_make(a, struct units);
	const char **text = arena_array(a, const char *, p->unit.n + 1);

	u->d = c->device;
	u->unit = arena_array(a, void *, p->unit.n + 1);
	for (int32_t i = 0; i < p->unit.n; i++)
		text[i] = p->unit.at[i].c;
	u->d->load(u->d, text, p->unit.n, u->unit);
	return plan_exec_on(a, p, u->d, NULL, find_on_device, u);
}

/* ---- on the CPU ---- */

static plan_exec *compile_on_cpu(tn_context *c, arena *a, const plan *p)
{
	struct libs *l = arena_make(a, struct libs);
	plan_exec *x;

	l->jit = api_jit(c);
	l->n = p->unit.n;
	l->text = arena_array(a, const char *, l->n + 1);
	l->lib = arena_array(a, run_lib *, l->n + 1);
	for (int32_t i = 0; i < l->n; i++)
		l->text[i] = p->unit.at[i].c;
	run_compile(l->jit, l->text, l->n, l->lib);
	x = plan_exec_new(a, p, api_pool(c), find_function, l);
	plan_exec_code(x, &(plan_code){hold, release, l});
	return x;
}

/* Compiles the bodies of loops; as deep as loops are. */
static void add_bodies(tn_context *c, arena *a, compilation *m, plan_exec *x)
{
	for (int32_t i = 0; i < m->plan->launch.n; i++) {
		const ir_loop *l = plan_loop_of(m->plan, i);

		if (l != NULL)
			plan_exec_body(x, i,
				api_compile(c, a, compile_body(m, l)));
	}
}

plan_exec *api_compile(tn_context *c, arena *a, compilation *m)
{
	plan_exec *x;

	if (c->foreign)
		env_fail(c->e, TN_EINVAL, "device.target", (loc){0},
			"the kernels are made for %s, which the device %s is "
			"not: they can be explained, not run",
			c->machine->name, api_device_name(c));
	api_compile_to(c, m, TN_LEVEL_C);
	x = c->device->is_host ? compile_on_cpu(c, a, m->plan)
			       : compile_on_device(c, a, m->plan);
	add_bodies(c, a, m, x);
	add_stats(c, m);
	api_profile_add(c, m, x);
	return x;
}

struct counted {
	int64_t copied, host, asked;
};

static struct counted count_of(const plan_exec *x)
{
	const char *row, *why;

	return (struct counted){plan_exec_n_copied(x),
		plan_exec_n_host(x, &row), plan_exec_n_asked(x, &why)};
}

void api_note_asked(void *arg, const char *why)
{
	tn_context *c = arg;

	c->n_asked++;
	/* the text may be of a program, which ends earlier */
	if (c->asked == NULL || strcmp(c->asked, why) != 0)
		c->asked = arena_strdup(c->a, why);
}

static void count_run(tn_context *c, const plan_exec *x, struct counted before)
{
	struct counted now = count_of(x);
	const char *row, *why;

	c->stats.n_kept_copies += now.copied - before.copied;
	c->n_host += now.host - before.host;
	if (now.host > before.host && plan_exec_n_host(x, &row) > 0)
		c->host_row = row;
	if (now.asked > before.asked && plan_exec_n_asked(x, &why) > 0) {
		c->n_asked += now.asked - before.asked - 1;
		api_note_asked(c, why);
	}
}

void api_exec_run(tn_context *c, plan_exec *x, const void *const *in,
	const int64_t *version, void *const *out)
{
	struct counted before = count_of(x);

	plan_exec_run(x, in, version, out);
	count_run(c, x, before);
}

void api_exec_run_host(tn_context *c, plan_exec *x, const void *const *in,
	const int64_t *version, void *const *out)
{
	struct counted before = count_of(x);

	plan_exec_run_host(x, in, version, out);
	count_run(c, x, before);
}
