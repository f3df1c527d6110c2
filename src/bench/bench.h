/*
 * bench.h: shared parts of `tenon bench`: the lines of results, and the
 * reference loops, with whose rates those of kernels are compared.
 */
#ifndef BENCH_H
#define BENCH_H

#include "cli/cli.h"

typedef struct bench_result {
	const char *bench, *name;
	double seconds;	       /* median of Tenon */
	double rate;	       /* bytes per second, or 0 */
	double flops;	       /* per second, or 0 */
	const char *reference; /* what it is compared with, or NULL */
	/* Tenon's rate divided by the reference's; higher is better */
	double ratio;
	double target;
	const char *skipped; /* the reason why it was not measured, or NULL */
} bench_result;

/* Prints the heading of the table, unless json. */
void bench_heading(bool json);
/* Prints a row of the table, or a JSON object. */
void bench_say(const bench_result *r, bool json);
double bench_median(double *v, int n); /* sorts v */

/* Removes a folder and the regular files in it. */
void bench_remove(const char *dir);

int bench_fused(tn_context *c, const char *only, int repeat, bool json);
int bench_compile(int repeat, bool json);
int bench_contract(const char *only, int repeat, bool json);
/* files ends with NULL; batch 0: measures batches 1 and 4 */
int bench_nets(const char *const *files, int repeat, int64_t batch, bool json);
/* measures a training step; batch 0: 4 */
int bench_nets_train(
	const char *const *files, int repeat, int64_t batch, bool json);
int bench_step(const char *only, int repeat, bool json);
int bench_shard(const char *only, int repeat, bool json);
int bench_train(const char *only, int repeat, bool json);
int bench_generate(const char *only, int repeat, bool json);
int bench_api(tn_context *c, int repeat, bool json);

/* device: its name; small: extents that emulated warps can take */
int bench_gpu_cases(const char *device, const char *only, bool small,
	int repeat, bool json);

/*
 * files ends with NULL; without files: the suite. seconds: time limit of all,
 * 0: none
 */
int bench_merges(const char *const *files, const char *only, int repeat,
	double seconds, bool json);
int bench_estimate(
	const char *const *files, const char *only, int repeat, bool json);

/* Measures the constants of the machine; only: a part of their names. */
int bench_machine_costs(
	tn_context *c, const char *only, int repeat, bool json);

/* ---- machine_loops.c ---- */

enum {
	BENCH_NEAR = 4096, /* floats of the arrays in the first cache: 16 KB */
	BENCH_OPS = 32,	   /* of the polynomial, for each element */
	BENCH_CHAIN = 8,   /* operations of an iteration of the clock's loop */
};

/* Walks n elements; what it computes is in o. */
typedef void bench_loop(float *o, const float *x, int64_t n);

/* A loop for each kind of instruction, by the width of vectors. */
typedef struct bench_loops {
	int32_t bytes;
	const char *cpu; /* the required feature of the CPU; NULL: none */
	bench_loop *scale, *poly, *load, *load_two, *load_far, *store,
		*store_two, *store_far, *chain, *both, *rows, *crowd;
	bench_loop *load_part, *store_part; /* NULL: it has no masks */
	/* of one element */
	bench_loop *scalar_poly, *scalar_load, *scalar_store, *window,
		*guarded, *clock;
} bench_loops;

/* Those for the widest vectors that this CPU has, up to so many bytes. */
const bench_loops *bench_loops_of(int32_t vector_bytes);

/* ---- programs of the suite: false, NULL: there are no more ---- */

enum { BENCH_CONTRACT_TEXT = 1200 };
bool bench_fused_text(int i, const char **name, const char **text);
bool bench_contract_text(int i, char *name, size_t n_name, char *text);
/*
 * The program of a training step, to be freed; NULL: failed, after a message.
 */
char *bench_step_text(int i);
const char *bench_step_name(int i);

/* ---- subject.c ---- */

/* A program whose kernels are measured, on one thread. */
typedef struct bench_subject {
	char name[64];
	const char *text, *file; /* one of them is set */
	const char *schedule;	 /* pinned; or NULL */
	const char *cache;
	tn_context *c;
	cli_model model;
	tn_program *p; /* compiled */
	cli_arrays *a;
	/* (n_kept inputs) original elements of arrays that a run changes */
	void **kept;
	int32_t n_kept;
} bench_subject;

/*
 * Parses the same program again, without compiling it; false: failed, after a
 * message.
 */
bool bench_subject_program(const bench_subject *s, tn_program **p);
typedef bool bench_visit(void *arg, bench_subject *s);
/*
 * Calls fn for each program of the suite, or of the files; false: one failed.
 */
bool bench_each_subject(const char *const *files, const char *only,
	bench_visit *visit, void *arg);

/*
 * Calls fn for one program; schedule: pinned, or NULL. false: it failed, after a
 * message.
 */
bool bench_one_text(const char *name, const char *text, const char *schedule,
	bench_visit *visit, void *arg);

uint64_t bench_hash(const char *text);

/* Kernels of a program, and the seconds of each in several runs. */
typedef struct bench_kernels {
	tn_program *p;
	int32_t n;
	int repeat;
	tn_kernel *at;
	double *before, *sample; /* (n), (n, repeat) */
} bench_kernels;
bool bench_kernels_new(bench_kernels *k, tn_program *p, int repeat);
void bench_kernels_free(bench_kernels *k);
bool bench_kernels_run(bench_kernels *k, const bench_subject *s, int i);
/* The time of kernel i, the least of its samples. */
double bench_kernels_least(const bench_kernels *k, int32_t i);

/* ---- gemm.c: matrix products of installed libraries ---- */

/* batch times o[m,n] = x[m,k] y[k,n] in f32; x and y as [k,m], [n,k] if turned */
typedef struct bench_product {
	int64_t batch, m, n, k;
	bool x_turned, y_turned;
} bench_product;

typedef struct bench_gemm bench_gemm;
bench_gemm *bench_gemm_at(int i); /* NULL: there are no more */
const char *bench_gemm_name(const bench_gemm *g);
bool bench_gemm_open(bench_gemm *g); /* false: it is not installed */
void bench_gemm_threads(bench_gemm *g, int n);
void bench_gemm_run(bench_gemm *g, const bench_product *p, const float *x,
	const float *y, float *o);
/*
 * The least seconds of so many products of n x n x n by each installed library, on
 * all CPUs; *best: the number of the fastest; it stays as it was if there is none.
 */
double bench_gemm_best(int64_t n, int runs, int *best);

/* ---- dnnl.c: convolutions of oneDNN, in layouts that it chooses ---- */

/* c x size x size in, f out; groups 1 or all */
typedef struct bench_conv_shape {
	int c, size, f, k, stride, lo, groups;
} bench_conv_shape;
typedef struct bench_conv bench_conv;
bench_conv *bench_conv_new(const bench_conv_shape *s); /* NULL: not installed */
void bench_conv_free(bench_conv *c);
void bench_conv_run(bench_conv *c);

/* ---- gpu_ref.c: the driver's copy, and cuBLAS ---- */

typedef struct bench_gpu bench_gpu;
bench_gpu *bench_gpu_open(tn_context *c); /* NULL: no CUDA device */
void bench_gpu_close(bench_gpu *g);
/*
 * Seconds of one of so many copies of bytes. All copies of one bench_gpu have as
 * many bytes as the first one, or fewer. false: it cannot be measured.
 */
bool bench_gpu_copy(bench_gpu *g, double bytes, int calls, double *seconds);
/* .. of products o[m,n] = x[m,k] y[k,n]; false: cuBLAS is not installed */
bool bench_gpu_product(bench_gpu *g, bool tf32, tn_tensor *x, tn_tensor *y,
	tn_tensor *o, int64_t m, int64_t n, int64_t k, int calls,
	double *seconds);

/* ---- ref.c: hand-written loops on pinned threads ---- */

/* Memory traffic: arrays that are read, and arrays that are written. */
typedef enum bench_traffic {
	BENCH_READ,	  /* sum of one array */
	BENCH_READ_WRITE, /* copy or scale */
	BENCH_READ2_WRITE /* triad */
} bench_traffic;

typedef struct bench_ref bench_ref;

/*
 * Makes arrays of n_floats each, and one thread per CPU (or n_threads, if > 0).
 */
bench_ref *bench_ref_new(int64_t n_floats, int n_threads);
void bench_ref_free(bench_ref *r);
/*
 * Tries each loop with this traffic once, and chooses the fastest; returns its
 * name.
 */
const char *bench_ref_choose(bench_ref *r, bench_traffic t);
/* Runs the chosen loop once; returns seconds. */
double bench_ref_run(bench_ref *r, bench_traffic t);
/* Bytes of a run; each array counts once. */
double bench_ref_bytes(const bench_ref *r, bench_traffic t);

#endif
