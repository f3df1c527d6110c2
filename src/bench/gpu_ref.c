/*
 * gpu_ref.c: what `tenon bench gpu` compares with on a CUDA device: the driver's
 * copy, and the products of cuBLAS if it is installed. Both are loaded when they
 * are measured. TENON_CUDA_DRIVER names the driver, as for devices, and
 * TENON_CUBLAS another libcublas.
 */
#include "bench/bench.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

typedef unsigned long long address;

/* values of cuda.h, library_types.h and cublas_api.h */
enum {
	DL_CUDA = 2,
	OWN_STREAM = 1,
	AS_IS = 0,
	ELEMS_F32 = 0,
	ELEMS_F16 = 2,
	ELEMS_BF16 = 14,
	SUMS_F32 = 68,
	SUMS_TF32 = 77,
	ANY_KERNEL = -1
};

struct bench_gpu {
	void *driver, *cublas;
	int device; /* number */
	void *context, *stream, *handle;
	address from, to; /* of the copy */
	double bytes;	  /* of each of them */
	int (*push)(void *context);
	int (*pop)(void **context);
	int (*release)(int device);
	int (*alloc)(address *at, size_t n);
	int (*free)(address at);
	int (*fill)(address at, unsigned char byte, size_t n, void *stream);
	int (*copy)(address to, address from, size_t n, void *stream);
	int (*wait)(void *stream);
	int (*end_stream)(void *stream);
	int (*end)(void *handle);
	int (*gemm)(void *handle, int turn_a, int turn_b, int m, int n, int k,
		const void *alpha, const void *a, int type_a, int lda,
		const void *b, int type_b, int ldb, const void *beta, void *c,
		int type_c, int ldc, int sums, int kernel);
};

/* POSIX requires this form of cast. */
#define FIND(to, lib, name) ((*(void **)&(to) = dlsym((lib), (name))) != NULL)

static bool find_driver(bench_gpu *g)
{
	const char *name = getenv("TENON_CUDA_DRIVER");

	g->driver = dlopen(name != NULL ? name : "libcuda.so.1", RTLD_NOW);
	return g->driver != NULL && FIND(g->push, g->driver, "cuCtxPushCurrent_v2") &&
	       FIND(g->pop, g->driver, "cuCtxPopCurrent_v2") &&
	       FIND(g->release, g->driver, "cuDevicePrimaryCtxRelease_v2") &&
	       FIND(g->alloc, g->driver, "cuMemAlloc_v2") &&
	       FIND(g->free, g->driver, "cuMemFree_v2") &&
	       FIND(g->fill, g->driver, "cuMemsetD8Async") &&
	       FIND(g->copy, g->driver, "cuMemcpyDtoDAsync_v2") &&
	       FIND(g->wait, g->driver, "cuStreamSynchronize") &&
	       FIND(g->end_stream, g->driver, "cuStreamDestroy_v2");
}

/* A stream in the context that Tenon has, too. */
static bool begin(bench_gpu *g)
{
	int (*device)(int *device, int number);
	int (*retain)(void **context, int device);
	int (*stream)(void **stream, unsigned flags);
	int id = 0;

	if (!FIND(device, g->driver, "cuDeviceGet") ||
		!FIND(retain, g->driver, "cuDevicePrimaryCtxRetain") ||
		!FIND(stream, g->driver, "cuStreamCreate") ||
		device(&id, g->device) != 0 || retain(&g->context, id) != 0)
		return false;
	g->device = id;
	if (g->push(g->context) != 0) {
		(void)g->release(id);
		g->context = NULL;
		return false;
	}
	return stream(&g->stream, OWN_STREAM) == 0;
}

static void begin_cublas(bench_gpu *g)
{
	static const char *const names[] = {
		"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
	const char *name = getenv("TENON_CUBLAS");
	int (*create)(void **handle);
	int (*set)(void *handle, void *stream);

	if (name != NULL)
		g->cublas = dlopen(name, RTLD_NOW);
	for (int i = 0; name == NULL && i < 3 && g->cublas == NULL; i++)
		g->cublas = dlopen(names[i], RTLD_NOW);
	if (g->cublas == NULL || !FIND(create, g->cublas, "cublasCreate_v2") ||
		!FIND(set, g->cublas, "cublasSetStream_v2") ||
		!FIND(g->end, g->cublas, "cublasDestroy_v2") ||
		!FIND(g->gemm, g->cublas, "cublasGemmEx") ||
		create(&g->handle) != 0) {
		g->handle = NULL;
		return;
	}
	if (set(g->handle, g->stream) != 0) {
		(void)g->end(g->handle);
		g->handle = NULL;
	}
}

/* The device of a context, as DLPack numbers them. */
static tn_dl_device device_of(tn_context *c)
{
	tn_tensor *x = tn_scalar(c, TN_F32, 0);
	tn_dl_device d = {0};
	tn_dl_managed *m;

	if (tn_dlpack_export(x, &m) >= 0) {
		d = m->tensor.device;
		m->deleter(m);
	}
	tn_drop(x);
	return d;
}

bench_gpu *bench_gpu_open(tn_context *c)
{
	tn_dl_device d = device_of(c);
	bench_gpu *g;

	if (d.type != DL_CUDA)
		return NULL;
	g = cli_alloc(1, sizeof *g);
	if (g == NULL)
		return NULL;
	*g = (bench_gpu){.device = d.id};
	if (!find_driver(g) || !begin(g)) {
		bench_gpu_close(g);
		return NULL;
	}
	begin_cublas(g);
	return g;
}

void bench_gpu_close(bench_gpu *g)
{
	void *was;

	if (g == NULL)
		return;
	if (g->handle != NULL)
		(void)g->end(g->handle);
	if (g->from != 0)
		(void)g->free(g->from);
	if (g->to != 0)
		(void)g->free(g->to);
	if (g->stream != NULL)
		(void)g->end_stream(g->stream);
	if (g->context != NULL) {
		(void)g->pop(&was);
		(void)g->release(g->device);
	}
	/* the libraries stay: they may have threads */
	free(g);
}

bool bench_gpu_copy(bench_gpu *g, double bytes, int calls, double *seconds)
{
	size_t n = ((size_t)bytes + 15) / 16 * 16;
	double start;

	if (g->to == 0) {
		if (g->alloc(&g->from, n) != 0 || g->alloc(&g->to, n) != 0 ||
			g->fill(g->from, 0x5a, n, g->stream) != 0)
			return false;
		g->bytes = bytes;
	}
	if (bytes > g->bytes || g->wait(g->stream) != 0)
		return false;
	start = cli_now();
	for (int i = 0; i < calls; i++)
		if (g->copy(g->to, g->from, n, g->stream) != 0)
			return false;
	if (g->wait(g->stream) != 0)
		return false;
	*seconds = (cli_now() - start) / calls;
	return true;
}

static int elems(tn_dtype t)
{
	return t == TN_F32 ? ELEMS_F32 : t == TN_F16 ? ELEMS_F16 : ELEMS_BF16;
}

/* cuBLAS has columns where we have rows: o' = y' x'. */
static bool products(bench_gpu *g, tn_dtype t, bool tf32, tn_dl_managed *const m[3],
	const int64_t e[3], int calls, double *seconds)
{
	const float one = 1, zero = 0;
	int rows = (int)e[0], columns = (int)e[1], terms = (int)e[2];
	double start;

	if (g->wait(g->stream) != 0)
		return false;
	start = cli_now();
	for (int i = 0; i < calls; i++)
		if (g->gemm(g->handle, AS_IS, AS_IS, columns, rows, terms, &one,
			    m[1]->tensor.data, elems(t), columns,
			    m[0]->tensor.data, elems(t), terms, &zero,
			    m[2]->tensor.data, elems(t), columns,
			    tf32 ? SUMS_TF32 : SUMS_F32,
			    ANY_KERNEL) != 0)
			return false;
	if (g->wait(g->stream) != 0)
		return false;
	*seconds = (cli_now() - start) / calls;
	return true;
}

bool bench_gpu_product(bench_gpu *g, bool tf32, tn_tensor *x, tn_tensor *y,
	tn_tensor *o, int64_t m, int64_t n, int64_t k, int calls,
	double *seconds)
{
	const int64_t e[3] = {m, n, k};
	tn_tensor *all[3] = {x, y, o};
	tn_dl_managed *at[3];
	int32_t i = 0;
	bool good = g->handle != NULL && m <= INT_MAX && n <= INT_MAX &&
		k <= INT_MAX;

	while (good && i < 3) {
		good = tn_dlpack_export(all[i], &at[i]) >= 0;
		i += good;
	}
	good = good && products(g, tn_tensor_dtype(x), tf32, at, e, calls, seconds);
	while (i > 0) {
		i--;
		at[i]->deleter(at[i]);
	}
	return good;
}
