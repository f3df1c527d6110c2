/*
 * target.c: the machine as the cost model sees it, and scratch memory.
 *
 * All constants of the cost model stand here. They are those of a reference
 * machine, not of the one that happens to compile: the same program is
 * partitioned alike everywhere, so that results have the same bits for any
 * number of threads, and printed plans can be compared.
 */
#include "fuse/inner.h"

fuse_target fuse_target_host(void)
{
	return (fuse_target){
		.bytes_per_s = 13e9,
		.flops_per_s = 8e9,
		.contract_per_s = 60e9,
		.launch_s = 5e-6,
		.cores = 8,
		.l2_bytes = 1 << 20,
		.max_eqns = 64,
		.serial_volume = 4096,
	};
}

struct fuse_pool {
	arena *now;
};

static void pool_free(void *what)
{
	struct fuse_pool *p = what;

	arena_free(p->now);
	p->now = NULL;
}

arena *fuse_scratch(fuse_state *f)
{
	if (f->pool == NULL) {
		f->pool = arena_make(f->a, struct fuse_pool);
		arena_defer(f->a, pool_free, f->pool);
	}
	if (f->pool->now == NULL)
		f->pool->now = arena_new(f->env);
	return f->pool->now;
}

void fuse_scratch_reset(fuse_state *f)
{
	if (f->pool != NULL)
		pool_free(f->pool);
}
