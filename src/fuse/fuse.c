/*
 * fuse.c: runs the passes of fusion.
 *
 * Consumes a system in pull form; produces a plan: kernels in topological
 * order, each with its loop tree, and a reason for every edge not fused.
 */
#include "fuse/inner.h"

/* Small enough to stay in a cache. */
enum { SCRATCH_BYTES = 1 << 18 };

arena *fuse_scratch(fuse_state *f)
{
	if (*f->scratch == NULL)
		*f->scratch = arena_child(f->a);
	if (f->g != NULL)
		f->g->scratch = *f->scratch;
	return *f->scratch;
}

void fuse_scratch_reset(fuse_state *f)
{
	if (*f->scratch != NULL)
		arena_clear(*f->scratch);
}

void fuse_scratch_trim(fuse_state *f)
{
	if (*f->scratch != NULL && arena_bytes(*f->scratch) > SCRATCH_BYTES)
		fuse_scratch_reset(f);
}

fuse_plan *fuse_partition(
	arena *a, ir_system *s, const machine *m, const fuse_options *o)
{
	fuse_plan *p = arena_make(a, fuse_plan);
	fuse_state f = {.a = a,
		.env = arena_env(a),
		.s = s,
		.t = m != NULL ? m : machine_at(0)};
	bool alone = o != NULL && o->no_fusion;
	fuse_groups *g;

	f.scratch = arena_make(a, arena *);
	p->s = s;
	p->machine = f.t;
	f.mutate = o == NULL ? 0 : o->mutate;
	f.price = o == NULL ? NULL : o->price;
	fuse_prepare(&f, o == NULL ? NULL : &o->settle);
	fuse_apart_new(&f, o);
	for (int32_t i = 0; i < f.w->wait.n; i++)
		*vec_push(a, &p->wait) = f.w->wait.at[i];
	g = fuse_choose(&f, alone, p);
	fuse_finish(&f, g, p, !alone);
	/* room for tensors that schedules add: copies of factors of products */
	p->alias = arena_array(a, int32_t, s->tensor.n + 2 * s->eqn.n + 1);
	for (int32_t i = 0; i < s->tensor.n + 2 * s->eqn.n + 1; i++)
		p->alias[i] = i < s->tensor.n ? f.alias[i] : -1;
	arena_free(*f.scratch);
	return p;
}
