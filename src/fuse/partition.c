/*
 * partition.c: which equations share a kernel.
 */
#include "fuse/inner.h"

static fuse_groups *each_alone(fuse_state *f)
{
	fuse_groups *g = arena_make(f->a, fuse_groups);

	for (int32_t i = 0; i < f->n_order; i++) {
		fuse_group *o = arena_make(f->a, fuse_group);

		*vec_push(f->a, &o->source) = f->order[i];
		*vec_push(f->a, &g->at) = o;
	}
	return g;
}

fuse_groups *fuse_choose(fuse_state *f, bool no_fusion)
{
	if (no_fusion)
		return each_alone(f);
	return each_alone(f);
}
