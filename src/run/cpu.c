/*
 * cpu.c: the CPU as a device: memory of the process, copied at once. Kernels
 * are compiled by a run_jit and run by a run_pool.
 */
#include "run/device.h"

static void *alloc(run_device *d, arena *a, size_t n)
{
	(void)d;
	return run_slab(a, n);
}

static void copy(run_device *d, void *to, const void *from, size_t n)
{
	(void)d;
	if (n > 0)
		memcpy(to, from, n);
}

static void fill(run_device *d, void *to, int byte, size_t n)
{
	(void)d;
	if (n > 0)
		memset(to, byte, n);
}

static void sync(run_device *d)
{
	(void)d;
}

run_device run_cpu = {.name = "cpu",
	.is_host = true,
	.dl_type = 1,
	.alloc = alloc,
	.put = copy,
	.get = copy,
	.copy = copy,
	.fill = fill,
	.sync = sync};
