/*
 * profile.c: the programs of a profile: those that were compiled since it began.
 * Each program has an arena and may end before the context: then it removes itself
 * from the list. profile_text.c prints the profile.
 */
#include "api/profile.h"

static void start(void *arg)
{
	tn_context *c = arg;
	struct api_profile *p;

	if (c->profile != NULL)
		return;
	p = arena_make(c->a, struct api_profile);
	p->last = &p->first;
	p->began = 1e-3 * compile_clock_ms();
	c->profile = p;
}

tn_status tn_profile_start(tn_context *c)
{
	return api_call(c, start, c);
}

static void leave(void *arg)
{
	profile_entry *e = arg;
	profile_entry **at = &e->of->first;

	while (*at != NULL && *at != e)
		at = &(*at)->next;
	if (*at == NULL)
		return;
	*at = e->next;
	if (e->of->last == &e->next)
		e->of->last = at;
}

void api_profile_add(tn_context *c, compilation *m, plan_exec *x)
{
	profile_entry *e;

	if (c->profile == NULL)
		return;
	e = arena_make(m->a, profile_entry);
	e->of = c->profile;
	e->m = m;
	e->t = plan_exec_time(x);
	e->compiled = 1e-3 * compile_clock_ms();
	*e->of->last = e;
	e->of->last = &e->next;
	arena_defer(m->a, leave, e);
}

const plan_times *api_profile_times(const tn_program *p)
{
	const struct api_profile *all = p->c->profile;

	for (const profile_entry *e = all != NULL ? all->first : NULL; e != NULL;
		e = e->next)
		if (e->m == p->made)
			return e->t;
	return NULL;
}
