/*
 * gemm.c: matrix products of installed libraries.
 *
 * The libraries are optional, and loaded when they are measured: OpenBLAS and
 * BLIS by the C interface of BLAS, oneDNN by its dnnl_sgemm. All matrices are
 * row-major.
 */
#include "bench/bench.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROW_MAJOR = 101, AS_IS = 111, TURNED = 112 };

typedef void sgemm_fn(int order, int ta, int tb, int m, int n, int k,
	float alpha, const float *a, int lda, const float *b, int ldb,
	float beta, float *c, int ldc);
typedef void sgemv_fn(int order, int ta, int m, int n, float alpha,
	const float *a, int lda, const float *x, int incx, float beta,
	float *y, int incy);
typedef int dnnl_fn(char ta, char tb, int64_t m, int64_t n, int64_t k,
	float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
	float beta, float *c, int64_t ldc);
typedef void threads_fn(int n);
typedef void long_threads_fn(int64_t n);

struct bench_gemm {
	const char *name;
	const char *file[3];
	const char *threads; /* function that sets the number of threads */
	bool threads_long;
	void *lib;
	sgemm_fn *sgemm;
	sgemv_fn *sgemv;
	dnnl_fn *dnnl;
	bool tried;
};

/* Finds a function in a library; POSIX requires this form of cast. */
#define FIND(to, lib, name) (*(void **)&(to) = dlsym((lib), (name)))

/* Library number i; NULL: there are no more. */
bench_gemm *bench_gemm_at(int i)
{
	static bench_gemm all[] = {
		{.name = "openblas",
			.file = {"libopenblas.so.0", "libopenblas.so"},
			.threads = "openblas_set_num_threads"},
		{.name = "onednn",
			.file = {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"},
			.threads = "omp_set_num_threads"},
		{.name = "blis",
			.file = {"libblis.so.4", "libblis.so"},
			.threads = "bli_thread_set_num_threads",
			.threads_long = true},
	};

	return i < (int)(sizeof all / sizeof *all) ? &all[i] : NULL;
}

const char *bench_gemm_name(const bench_gemm *g)
{
	return g->name;
}

bool bench_gemm_open(bench_gemm *g)
{
	if (g->tried)
		return g->sgemm != NULL || g->dnnl != NULL;
	g->tried = true;
	for (int i = 0; i < 3 && g->lib == NULL && g->file[i] != NULL; i++)
		g->lib = dlopen(g->file[i], RTLD_NOW | RTLD_LOCAL);
	if (g->lib == NULL)
		return false;
	FIND(g->dnnl, g->lib, "dnnl_sgemm");
	if (g->dnnl == NULL) {
		FIND(g->sgemm, g->lib, "cblas_sgemm");
		FIND(g->sgemv, g->lib, "cblas_sgemv");
	}
	return g->sgemm != NULL || g->dnnl != NULL;
}

void bench_gemm_threads(bench_gemm *g, int n)
{
	threads_fn *set;
	long_threads_fn *set_long;

	if (g->threads_long) {
		FIND(set_long, g->lib, g->threads);
		if (set_long != NULL)
			set_long(n);
		return;
	}
	FIND(set, g->lib, g->threads);
	if (set != NULL)
		set(n);
}

void bench_gemm_run(bench_gemm *g, const bench_product *p, const float *x,
	const float *y, float *o)
{
	int m = (int)p->m, n = (int)p->n, k = (int)p->k;
	int lda = p->x_turned ? m : k, ldb = p->y_turned ? k : n;

	for (int64_t b = 0; b < p->batch; b++) {
		if (g->dnnl != NULL)
			(void)g->dnnl(p->x_turned ? 'T' : 'N',
				p->y_turned ? 'T' : 'N', m, n, k, 1, x, lda, y,
				ldb, 0, o, n);
		else if (m == 1 && g->sgemv != NULL)
			g->sgemv(ROW_MAJOR, p->y_turned ? AS_IS : TURNED,
				p->y_turned ? n : k, p->y_turned ? k : n, 1, y,
				ldb, x, 1, 0, o, 1);
		else
			g->sgemm(ROW_MAJOR, p->x_turned ? TURNED : AS_IS,
				p->y_turned ? TURNED : AS_IS, m, n, k, 1, x,
				lda, y, ldb, 0, o, n);
		x += p->m * p->k;
		y += p->k * p->n;
		o += p->m * p->n;
	}
}

double bench_gemm_best(int64_t n, int runs, int *best)
{
	const bench_product p = {1, n, n, n, false, false};
	int cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	float *x = cli_alloc(3 * (size_t)(n * n), sizeof *x);
	double least = 0;
	bench_gemm *g;

	tn_fill_random(TN_F32, x, x != NULL ? 2 * n * n : 0, 1, 0, 0);
	for (int i = 0; x != NULL && (g = bench_gemm_at(i)) != NULL; i++) {
		if (!bench_gemm_open(g))
			continue;
		bench_gemm_threads(g, cpus);
		for (int k = 0; k < runs; k++) {
			double at = cli_now(), seconds;

			bench_gemm_run(g, &p, x, x + n * n, x + 2 * n * n);
			seconds = cli_now() - at;
			if (least == 0 || seconds < least) {
				least = seconds;
				*best = i;
			}
		}
	}
	free(x);
	return least;
}
