/*
 * target.c: the machine as the cost model sees it, and scratch memory.
 *
 * All constants of the cost model stand here. They were measured on one
 * reference machine (AVX-512, 2 MB of L2 for each core), and are not those of
 * the one that happens to compile: the same program is partitioned alike
 * everywhere, so that results have the same bits for any number of threads,
 * and printed plans can be compared.
 */
#include "fuse/inner.h"

/* Small enough to stay in a cache. */
enum { SCRATCH_BYTES = 1 << 18 };

fuse_target fuse_target_host(void)
{
	return (fuse_target){
		.bytes_per_s = 13e9,
		.flops_per_s = 40e9, /* exp: 12 flops, 0.3 ns */
		.contract_per_s = 150e9,
		.plain_contract_per_s = 8e9,
		.launch_s = 2e-6,
		.cores = 8,
		.l2_bytes = 1 << 20, /* half of it: the other is other data's */
		.max_eqns = 64,
		.contract_tile = 1,
		.serial_volume = 4096,
	};
}

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
