/*
 * kernels.c: the kernels of a compiled program, one by one: code, measured and
 * predicted time; the merges that made them, and pairs that are kept apart.
 *
 *     tn_program_set_apart(p, "s", "o")   no kernel computes both
 *     tn_program_kernel(&k, p, 0)         k.seconds, k.predicted
 *     tn_machine_cost(&m, c, 0)           what the prediction is made of
 */
#include "api/api.h"

/* ---- pairs ---- */

struct apart_call {
	tn_program *p;
	const char *first, *then;
};

static void set_apart(void *arg)
{
	const struct apart_call *k = arg;
	tn_program *p = k->p;

	if (p->made != NULL)
		env_fail(p->c->e, TN_EINVAL, "groups.late", (loc){0},
			"the program is compiled already: say what to keep "
			"apart right behind tn_program_parse or "
			"tn_program_load");
	p->single = true;
	if (k->first == NULL && k->then == NULL)
		return;
	api_want(p->c, k->first, "first");
	api_want(p->c, k->then, "then");
	if (p->apart.n == FUSE_MAX_PAIRS)
		env_fail(p->c->e, TN_EINVAL, "groups.pairs", (loc){0},
			"at most %d pairs can be kept apart", FUSE_MAX_PAIRS);
	*vec_push(p->a, &p->apart) = (compile_pair){
		arena_strdup(p->a, k->first), arena_strdup(p->a, k->then)};
}

tn_status tn_program_set_apart(
	tn_program *p, const char *first, const char *then)
{
	if (p == NULL)
		return api_null("the program");

	struct apart_call k = {p, first, then};

	return api_call(p->c, set_apart, &k);
}

/* ---- kernels ---- */

/* NULL: it is not compiled, or has no kernels of its own. */
static const plan *plan_of(const tn_program *p)
{
	return p == NULL || p->made == NULL ? NULL : p->made->plan;
}

int32_t tn_program_n_kernels(const tn_program *p)
{
	const plan *made = plan_of(p);

	return made == NULL ? 0 : made->launch.n;
}

struct kernel_call {
	tn_program *p;
	int32_t i;
	tn_kernel *out;
};

static void kernel(void *arg)
{
	const struct kernel_call *k = arg;
	tn_program *p = k->p;
	const plan_times *t = api_profile_times(p);
	const plan_launch *l;

	api_want(p->c, k->out, "the kernel");
	if (k->i < 0 || k->i >= tn_program_n_kernels(p))
		env_fail(p->c->e, TN_EINVAL, "kernels.number", (loc){0},
			"there is no kernel %d: the program has %d%s",
			(int)k->i, (int)tn_program_n_kernels(p),
			p->ready ? "" : ", because it is not compiled");
	l = &p->made->plan->launch.at[k->i];
	*k->out = (tn_kernel){.name = l->source->name,
		.predicted = compile_predicted(
			p->made, l->source->id, api_threads(p->c)),
		.term = compile_term(p->made, l->source->id)};
	if (t != NULL) {
		k->out->runs = t->n_runs;
		k->out->seconds = t->total[k->i];
	}
	if (l->code != NULL) {
		k->out->code = l->code->c;
		k->out->bytes = l->code->bytes;
		k->out->flops = l->code->flops;
	}
}

tn_status tn_program_kernel(tn_kernel *out, tn_program *p, int32_t i)
{
	if (p == NULL)
		return api_null("the program");

	struct kernel_call k = {p, i, out};

	return api_call(p->c, kernel, &k);
}

/* ---- merges ---- */

int32_t tn_program_n_merges(const tn_program *p)
{
	return plan_of(p) == NULL ? 0 : p->made->groups->merge.n;
}

struct merge_call {
	tn_program *p;
	int32_t i;
	tn_merge *out;
};

static const char *result_of(const compilation *m, int32_t eqn)
{
	return m->system->tensor.at[m->system->eqn.at[eqn].out[0]].name;
}

static void merge(void *arg)
{
	const struct merge_call *k = arg;
	tn_program *p = k->p;
	const fuse_merge *m;

	api_want(p->c, k->out, "the merge");
	if (k->i < 0 || k->i >= tn_program_n_merges(p))
		env_fail(p->c->e, TN_EINVAL, "merges.number", (loc){0},
			"there is no merge %d: the program has %d%s", (int)k->i,
			(int)tn_program_n_merges(p),
			p->ready ? "" : ", because it is not compiled");
	m = &p->made->groups->merge.at[k->i];
	*k->out = (tn_merge){.first = result_of(p->made, m->first),
		.then = result_of(p->made, m->then),
		.kernel = m->kernel,
		.at = {m->at[0], m->at[1]}};
}

tn_status tn_program_merge(tn_merge *out, tn_program *p, int32_t i)
{
	if (p == NULL)
		return api_null("the program");

	struct merge_call k = {p, i, out};

	return api_call(p->c, merge, &k);
}

/* ---- the machine ---- */

int32_t tn_machine_n_costs(void)
{
	machine_fact f;
	int32_t n = 0;

	while (machine_fact_at(machine_at(0), n, &f))
		n++;
	return n;
}

struct cost_call {
	tn_context *c;
	int32_t i;
	tn_cost *out;
};

static void cost(void *arg)
{
	const struct cost_call *k = arg;
	const run_target *t = run_jit_target(api_jit(k->c));
	const machine *m = api_machine(t);
	machine_fact f;

	api_want(k->c, k->out, "the constant");
	if (!machine_fact_at(m, k->i, &f))
		env_fail(k->c->e, TN_EINVAL, "machine.cost", (loc){0},
			"there is no constant %d: the machine has %d",
			(int)k->i, (int)tn_machine_n_costs());
	*k->out = (tn_cost){m->name, m->vector_bytes, f.name, f.unit, f.from,
		f.value};
}

tn_status tn_machine_cost(tn_cost *out, tn_context *c, int32_t i)
{
	if (c == NULL)
		return api_null("the context");

	struct cost_call k = {c, i, out};

	return api_call(c, cost, &k);
}
