/*
 * planner.c: tn_program_plan_shards: finds the placements of a program with the
 * least cost on a mesh, which need not exist.
 */
#include "api/shard.h"

struct plan_call {
	tn_program *p;
	const tn_shard_wishes *w;
	char **out;
	double *seconds;
};

static void want_positive(tn_context *c, double v, const char *what)
{
	if (!(v > 0))
		env_fail(c->e, TN_EINVAL, "shard.plan", (loc){0},
			"the %s must be above 0", what);
}

static void propose(void *arg)
{
	struct plan_call *k = arg;
	tn_context *c = k->p->c;
	arena *a = arena_child(k->p->a);
	const tn_shard_wishes *w = k->w;
	shard_wishes own;
	shard_proposal *q;
	compile_options o;
	compilation *made;
	shard_plan *p;
	shard_mesh m;
	str s;

	api_want(c, w, "the struct of options");
	api_want(c, w->mesh, "the mesh");
	api_want_shapes(k->p);
	want_positive(c, w->memory, "memory");
	want_positive(c, w->link, "rate of the link");
	want_positive(c, w->flops, "rate of computing");
	own = (shard_wishes){w->memory, w->link, w->latency, w->flops,
		w->train};
	m = shard_mesh_parse(a, w->mesh);
	o = api_compile_options(c);
	made = compile_new(a, k->p->ir, &o);
	compile_to(made, TN_LEVEL_SYSTEM);
	p = shard_plan_new(a, made->system, &m);
	q = shard_propose(a, p, &own);
	if (q->bill.memory > w->memory)
		env_fail(c->e, TN_ERANGE, "shard.memory", (loc){0},
			"no placement fits: with mesh %s a process needs at "
			"least %.0f bytes, but the limit is %.0f",
			w->mesh, q->bill.memory, w->memory);
	s = str_new(a);
	shard_proposal_print(&s, p, q, &own, w->json);
	if (k->seconds != NULL)
		*k->seconds = q->bill.seconds;
	*k->out = api_text(c, &s);
	arena_free(a);
}

tn_status tn_program_plan_shards(char **out, double *seconds, tn_program *p,
	const tn_shard_wishes *w)
{
	if (p == NULL) {
		*out = NULL;
		return api_null("the program");
	}

	struct plan_call k = {p, w, out, seconds};

	*out = NULL;
	return api_call(p->c, propose, &k);
}
