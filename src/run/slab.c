/*
 * slab.c: allocates the memory of kernels from the system.
 *
 * Zeroed, 64-byte aligned; from 4 MB on aligned to 2 MB, with a hint for huge pages.
 * What is smaller is there at once, which takes half of the time of a fault for each
 * page.
 * Without MAP_NORESERVE, so that a size that is not available fails here with a
 * message, and the process is not killed later.
 *
 *     run_slab(a, 100) -> 100 bytes at a multiple of 64, gone with the arena
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_POPULATE, madvise */
#include "run/private.h"

#include <errno.h>
#include <sys/mman.h>

#define HUGE_BYTES ((size_t)2 << 20)
#ifndef MAP_POPULATE
#define MAP_POPULATE 0
#endif

typedef struct mapping {
	void *at;
	size_t n_bytes;
} mapping;

static void unmap(void *what)
{
	mapping *m = what;

	if (m->at != MAP_FAILED)
		munmap(m->at, m->n_bytes);
}

static _Noreturn void fail(arena *a, size_t n_bytes, const char *why)
{
	env_fail(arena_env(a), TN_ENOMEM, "run.memory", (loc){0},
		"cannot allocate %zu bytes (%.1f GB) of memory: %s", n_bytes,
		(double)n_bytes / 1e9, why);
}

/* small ones share the arena's memory, which is aligned to 16 */
static void *small(arena *a, size_t n_bytes)
{
	uintptr_t p = (uintptr_t)arena_alloc(a, n_bytes + 63, 1);

	return (void *)((p + 63) / 64 * 64);
}

void *run_slab(arena *a, size_t n_bytes)
{
	size_t extra = n_bytes >= 2 * HUGE_BYTES ? HUGE_BYTES : 0;
	mapping *m;
	uintptr_t p;

	if (n_bytes < 65536)
		return small(a, n_bytes);
	if (n_bytes > (size_t)1 << 47)
		fail(a, n_bytes, "beyond the address space");
	m = arena_make(a, mapping);
	m->n_bytes = n_bytes + extra;
	m->at = MAP_FAILED;
	arena_defer(a, unmap, m);
	m->at = mmap(NULL, m->n_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | (extra ? 0 : MAP_POPULATE), -1,
		0);
	if (m->at == MAP_FAILED)
		fail(a, n_bytes, strerror(errno));
	arena_count(a, m->n_bytes);
	p = (uintptr_t)m->at;
	if (extra) {
		p = (p + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
#ifdef MADV_HUGEPAGE
		madvise((void *)p, n_bytes, MADV_HUGEPAGE);
#endif
	}
	return (void *)p;
}
