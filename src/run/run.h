/*
 * run.h: interface of run/: compiles C texts and runs machine code.
 *
 *   jit    compiles C texts with the user's compiler, caches, loads
 *   pool   threads that share the chunks of one call
 *   slab   the aligned memory that kernels work in
 *
 * Knows nothing of tensors. Nothing here is global: a jit, a pool and a slab
 * belong to the arena that they were made in, and end with it.
 *
 *     run_jit *j = run_jit_new(a, NULL);
 *     run_lib *lib;
 *     const char *text = "double twice(double x) { return x + x; }";
 *     run_compile(j, &text, 1, &lib);
 *     double (*twice)(double);
 *     run_symbol(j, lib, "twice", &twice);
 */
#ifndef RUN_H
#define RUN_H

#include "base/base.h"

/* ---- jit ------------------------------------------------------------- */

typedef struct run_jit run_jit;
typedef struct run_lib run_lib; /* borrowed from the jit */

/*
 * Reads the environment; starts nothing yet.
 *   TENON_CC, CC      the compiler, split on spaces; else cc, gcc, clang
 *   TENON_TARGET      what code is made for (haswell); else this machine
 *   TENON_CACHE       off: nothing is looked up or kept
 *   TENON_CACHE_MB    size limit of the cache, 1024 when not given
 *   TENON_LOADED      compiled files loaded at a time, at most; when not given
 *                     a sixteenth of vm.max_map_count, 4096 at most
 *   XDG_CACHE_HOME, HOME   the cache is there, in tenon/
 * cache_dir: the directory of the cache; "": nothing is kept; NULL: as above.
 * Throws TN_EINVAL [run.env] for a value that cannot be.
 */
run_jit *run_jit_new(arena *a, const char *cache_dir);

/*
 * Compile and load n texts, each a shared object of its own, as many at once
 * as there are cores; lib[i] belongs to text[i]. What was compiled before, by
 * this process or another, is only loaded. The texts include no headers;
 * what they declare `extern` may be a function of libm.
 * Throws TN_ECOMPILE: [run.cc] no compiler, or it cannot compile at all;
 * [run.compile] it rejects a text: the message has its first lines and where
 * the text was kept; [run.load] the result cannot be loaded (TN_ENOMEM where
 * the process has as many memory mappings as it may).
 *
 * What is loaded by this call stays so until the next one; beyond the limit
 * others are unloaded then, but none that is held.
 */
void run_compile(run_jit *j, const char *const *text, int32_t n, run_lib **lib);

/*
 * Loads what was unloaded of lib[i], from text[i], and holds all of it until
 * run_release. Returns a number: while it is the same from call to call, the
 * functions are where they were. Throws as run_compile; then nothing is held.
 */
int64_t run_hold(
	run_jit *j, const char *const *text, int32_t n, run_lib *const *lib);
void run_release(int32_t n, run_lib *const *lib);

/* Stores the address of a function of the library in *(void (**)()) fn. */
void run_symbol(run_jit *j, run_lib *lib, const char *name, void *fn);

/* CPUs that this process may use: so many texts are compiled side by side. */
int32_t run_cores(void);

/* What the compiler makes code for. May start it once (then cached). */
typedef struct run_target {
	int32_t vector_bytes; /* widest vector register: 64, 32, 16; or 8 */
	int32_t n_vector_registers;
	bool fma;	   /* a*b+c is one fast instruction */
	bool f16;	   /* converts f16 in hardware */
	/* vectors that add up products of neighbours, of u8 and i8 and of i16;
	 * of bf16: machine_dot */
	bool dot_int, dot_bf16;
	bool tiles; /* tile registers, which the system lets this process use */
	char compiler[96]; /* "gcc 12.2.0" */
} run_target;
const run_target *run_jit_target(run_jit *j);

typedef struct run_stats {
	int64_t n_compiled;    /* compiler processes that made an object */
	int64_t n_disk_hits;   /* loaded from the cache directory */
	int64_t n_memory_hits; /* loaded before by this jit */
	int64_t n_corrupt;     /* cache entries thrown away as damaged */
	int64_t n_evicted;     /* cache entries removed for the size limit */
	int64_t n_loaded;      /* objects loaded now */
	int64_t n_unloaded;    /* for the limit of them */
	double compile_ms;     /* wall time in and around compilers */
	double load_ms;	       /* wall time of reading, checking and loading */
	const char *dir;       /* where objects are kept */
	const char *note;      /* why they are not where was asked; or NULL */
} run_stats;
const run_stats *run_jit_stats(run_jit *j);

/* ---- pool ------------------------------------------------------------ */

typedef struct run_pool run_pool;

/*
 * n_threads counts the caller; 0 means TENON_THREADS, or else the CPUs that
 * this process may use. Fewer are made when the system refuses; at least the
 * caller remains. Workers are pinned, one a CPU, if there are CPUs for all.
 * Throws TN_EINVAL [run.env] for a TENON_THREADS that is not a number.
 */
run_pool *run_pool_new(arena *a, int32_t n_threads);
int32_t run_pool_threads(const run_pool *p);

/*
 * Calls fn(arg, chunk, worker) once for each chunk of 0 .. n_chunks - 1, on any
 * thread and in any order, and returns when all are done. worker numbers the
 * thread, 0 .. run_pool_threads - 1, 0 being the caller: for memory of
 * each thread. Let sizes alone decide
 * n_chunks and the result cannot depend on the number of threads. One call
 * costs about half a microsecond; a chunk should be worth several.
 * One thread at a time may call it, and never from inside fn.
 */
void run_parallel(run_pool *p, int64_t n_chunks,
	void (*fn)(void *arg, int64_t chunk, int32_t worker), void *arg);

/* ---- slab ------------------------------------------------------------ */

/*
 * Zeroed memory, aligned to 64 bytes at least and to 2 MB (with a hint for
 * huge pages) when large; lives as long as the arena. Throws TN_ENOMEM
 * [run.memory] with the size asked for.
 */
void *run_slab(arena *a, size_t n_bytes);

#endif
