/*
 * cuda_mesh.h: processes that are threads, each with a context on a CUDA device of
 * tests/fake; and what their devices send each other, by the NCCL of tests/fake.
 */
#ifndef TEST_CUDA_MESH_H
#define TEST_CUDA_MESH_H

#include "cuda.h"
#include "ranks.h"

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

static fake_nccl_state *nccl;
static fake_read *read_device;

static inline void *symbol_of(const char *path, const char *name)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	return lib != NULL ? dlsym(lib, name) : NULL;
}

static inline int begin_mesh(void **state)
{
	fake_nccl_state *(*get)(void);
	void *sym = symbol_of(FAKE_NCCL, "fake_nccl");

	if (begin(state) != 0 || sym == NULL)
		return -1;
	memcpy(&get, &sym, sizeof get);
	nccl = get();
	sym = symbol_of(FAKE_DRIVER, "fake_cuda_read");
	memcpy(&read_device, &sym, sizeof read_device);
	*nccl = (fake_nccl_state){0};
	setenv("TENON_DEVICE", "cuda", 1);
	return sym != NULL ? 0 : -1;
}

/* All that was taken from the driver and from NCCL has been returned. */
static inline int end_mesh(void **state)
{
	unsetenv("TENON_DEVICE");
	return nccl->n_comms == 0 ? end(state) : -1;
}

/* What is done between two of these, on all processes, is counted by itself. */
static inline void meet(tn_context *c)
{
	if (tn_device_wait(c) < 0 || tn_agree(c, "a meeting", "") < 0)
		return;
}

/* The part of this process, as it is on its device; returns its bytes. */
static inline size_t local_bits(tn_tensor *x, void *to, size_t room)
{
	tn_window w;

	if (tn_local(x, &w) < 0 || tn_device_wait(tn_tensor_context(x)) < 0)
		return 0;
	if (w.n_bytes > room)
		abort();
	if (w.n_bytes > 0)
		read_device(to, w.data, w.n_bytes);
	return w.n_bytes;
}

#endif
