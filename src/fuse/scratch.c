/*
 * scratch.c: memory for what one step of the partition thinks of. It is emptied
 * again and again, so that it stays in a cache.
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
