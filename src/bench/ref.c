/*
 * ref.c: hand-written loops with which generated kernels are compared: sum,
 * copy, scale and triad over large arrays, with plain and with streaming
 * stores, on pinned threads. The fastest loop with the right number of reads
 * and writes is the reference.
 *
 * Streaming stores exist for x86-64, with vectors of 64 and 32 bytes, if the
 * CPU has them; on other machines there are only the plain loops.
 */
#define _GNU_SOURCE
#include "bench/bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 256, N_TRAFFIC = 3 };

/* Elements lo .. hi-1 of out = f(x, y); a sum is returned instead. */
typedef float loop_fn(float *out, const float *x, const float *y, int64_t lo,
	int64_t hi);

typedef struct loop {
	const char *name;
	bench_traffic traffic;
	loop_fn *fn;
	const char *cpu; /* the required feature of the CPU; NULL: none */
} loop;

struct bench_ref {
	int64_t n;
	float *out, *x, *y;
	const loop *chosen[N_TRAFFIC];
	const loop *now;
	int n_threads;
	pthread_t thread[MAX_THREADS];
	int n_started;
	pthread_barrier_t start, done;
	bool stop;
	struct {
		bench_ref *r;
		int number;
		float sum;
		/* times of the loop, without waking the thread */
		double start, end;
		/* padding: threads do not share a cache line */
		char line[64];
	} self[MAX_THREADS];
};

/*
 * The four loops for vectors of BYTES bytes. STORE(pointer, value) is a plain
 * or a streaming store. Arrays and chunk borders are aligned to 64 bytes.
 */
#define LOOPS(SUFFIX, TARGET, BYTES, STORE)                                    \
	TARGET static float copy_##SUFFIX(float *out, const float *x,          \
		const float *y, int64_t lo, int64_t hi)                        \
	{                                                                      \
		typedef float vec __attribute__((vector_size(BYTES)));         \
		enum { LANES = BYTES / 4 };                                    \
                                                                               \
		(void)y;                                                       \
		for (int64_t i = lo; i < hi; i += LANES)                       \
			STORE((vec *)(void *)(out + i),                        \
				*(const vec *)(const void *)(x + i));          \
		__sync_synchronize();                                          \
		return 0;                                                      \
	}                                                                      \
	TARGET static float scale_##SUFFIX(float *out, const float *x,         \
		const float *y, int64_t lo, int64_t hi)                        \
	{                                                                      \
		typedef float vec __attribute__((vector_size(BYTES)));         \
		enum { LANES = BYTES / 4 };                                    \
                                                                               \
		(void)y;                                                       \
		for (int64_t i = lo; i < hi; i += LANES)                       \
			STORE((vec *)(void *)(out + i),                        \
				*(const vec *)(const void *)(x + i) * 1.5f);   \
		__sync_synchronize();                                          \
		return 0;                                                      \
	}                                                                      \
	TARGET static float triad_##SUFFIX(float *out, const float *x,         \
		const float *y, int64_t lo, int64_t hi)                        \
	{                                                                      \
		typedef float vec __attribute__((vector_size(BYTES)));         \
		enum { LANES = BYTES / 4 };                                    \
                                                                               \
		for (int64_t i = lo; i < hi; i += LANES)                       \
			STORE((vec *)(void *)(out + i),                        \
				*(const vec *)(const void *)(x + i) * 1.5f +   \
					*(const vec *)(const void *)(y + i));  \
		__sync_synchronize();                                          \
		return 0;                                                      \
	}

#define SUM(SUFFIX, TARGET, BYTES)                                             \
	TARGET static float sum_##SUFFIX(float *out, const float *x,           \
		const float *y, int64_t lo, int64_t hi)                        \
	{                                                                      \
		typedef float vec __attribute__((vector_size(BYTES)));         \
		enum { LANES = BYTES / 4 };                                    \
		vec a = {0}, b = {0}, c = {0}, d = {0};                        \
		float s = 0;                                                   \
		int64_t i = lo;                                                \
                                                                               \
		(void)out;                                                     \
		(void)y;                                                       \
		for (; i + 4 * LANES <= hi; i += 4 * LANES) {                  \
			const vec *v = (const vec *)(const void *)(x + i);     \
                                                                               \
			a += v[0];                                             \
			b += v[1];                                             \
			c += v[2];                                             \
			d += v[3];                                             \
		}                                                              \
		for (; i < hi; i++)                                            \
			s += x[i];                                             \
		a += b + c + d;                                                \
		for (int k = 0; k < LANES; k++)                                \
			s += a[k];                                             \
		return s;                                                      \
	}

#define PLAIN_STORE(p, v) (*(p) = (v))
#define NO_TARGET

LOOPS(plain, NO_TARGET, 16, PLAIN_STORE)
SUM(plain, NO_TARGET, 16)

#if defined(__x86_64__)
#define AVX __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,prefer-vector-width=512")))
#if defined(__clang__)
#define STREAM_32(p, v) __builtin_nontemporal_store((v), (p))
#define STREAM_64(p, v) __builtin_nontemporal_store((v), (p))
#else
#define STREAM_32(p, v) __builtin_ia32_movntps256((float *)(p), (v))
#define STREAM_64(p, v) __builtin_ia32_movntps512((float *)(p), (v))
#endif
LOOPS(avx, AVX, 32, PLAIN_STORE)
LOOPS(avx_stream, AVX, 32, STREAM_32)
SUM(avx, AVX, 32)
LOOPS(avx512, AVX512, 64, PLAIN_STORE)
LOOPS(avx512_stream, AVX512, 64, STREAM_64)
SUM(avx512, AVX512, 64)
#endif

static const loop loops[] = {
	{"sum", BENCH_READ, sum_plain, NULL},
	{"copy", BENCH_READ_WRITE, copy_plain, NULL},
	{"scale", BENCH_READ_WRITE, scale_plain, NULL},
	{"triad", BENCH_READ2_WRITE, triad_plain, NULL},
#if defined(__x86_64__)
	{"sum", BENCH_READ, sum_avx, "avx2"},
	{"copy", BENCH_READ_WRITE, copy_avx, "avx2"},
	{"scale", BENCH_READ_WRITE, scale_avx, "avx2"},
	{"triad", BENCH_READ2_WRITE, triad_avx, "avx2"},
	{"copy_stream", BENCH_READ_WRITE, copy_avx_stream, "avx2"},
	{"scale_stream", BENCH_READ_WRITE, scale_avx_stream, "avx2"},
	{"triad_stream", BENCH_READ2_WRITE, triad_avx_stream, "avx2"},
	{"sum", BENCH_READ, sum_avx512, "avx512f"},
	{"copy", BENCH_READ_WRITE, copy_avx512, "avx512f"},
	{"scale", BENCH_READ_WRITE, scale_avx512, "avx512f"},
	{"triad", BENCH_READ2_WRITE, triad_avx512, "avx512f"},
	{"copy_stream", BENCH_READ_WRITE, copy_avx512_stream, "avx512f"},
	{"scale_stream", BENCH_READ_WRITE, scale_avx512_stream, "avx512f"},
	{"triad_stream", BENCH_READ2_WRITE, triad_avx512_stream, "avx512f"},
#endif
};
enum { N_LOOPS = sizeof loops / sizeof loops[0] };

static bool cpu_has(const char *what)
{
	if (what == NULL)
		return true;
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (!strcmp(what, "avx2"))
		return __builtin_cpu_supports("avx2");
	if (!strcmp(what, "avx512f"))
		return __builtin_cpu_supports("avx512f");
#endif
	return false;
}

/* Pins the thread to CPU `number` of those that this process may use. */
static void pin(int number)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof all, &all) != 0)
		return;
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && number-- == 0) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			sched_setaffinity(0, sizeof one, &one);
			return;
		}
}

static void *work(void *arg)
{
	bench_ref *r = *(bench_ref **)arg;
	int number = (int)((size_t)((char *)arg - (char *)r->self) /
		sizeof r->self[0]);
	int64_t blocks = r->n / 16;
	int64_t lo = blocks * number / r->n_threads * 16;
	int64_t hi = blocks * (number + 1) / r->n_threads * 16;

	pin(number);
	for (;;) {
		pthread_barrier_wait(&r->start);
		if (r->stop)
			return NULL;
		r->self[number].start = cli_now();
		r->self[number].sum = r->now->fn(r->out, r->x, r->y, lo, hi);
		r->self[number].end = cli_now();
		pthread_barrier_wait(&r->done);
	}
}

static int cpus(void)
{
	cpu_set_t all;
	int n = 1;

	if (sched_getaffinity(0, sizeof all, &all) == 0)
		n = CPU_COUNT(&all);
	return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
}

static float *array(int64_t n)
{
	void *p = NULL;

	if (posix_memalign(&p, (size_t)2 << 20, (size_t)n * sizeof(float)))
		return NULL;
	for (int64_t i = 0; i < n; i++)
		((float *)p)[i] = (float)(i % 7) * 0.25f;
	return p;
}

bench_ref *bench_ref_new(int64_t n_floats, int n_threads)
{
	bench_ref *r = cli_alloc(1, sizeof *r);

	if (r == NULL)
		return NULL;
	memset(r, 0, sizeof *r);
	r->n = (n_floats + 15) / 16 * 16;
	r->n_threads = n_threads > 0 && n_threads <= MAX_THREADS ? n_threads
								  : cpus();
	r->out = array(r->n);
	r->x = array(r->n);
	r->y = array(r->n);
	pthread_barrier_init(&r->start, NULL, (unsigned)r->n_threads + 1);
	pthread_barrier_init(&r->done, NULL, (unsigned)r->n_threads + 1);
	for (int i = 0; i < r->n_threads && r->y != NULL; i++) {
		r->self[i].r = r;
		r->self[i].number = i;
		if (pthread_create(&r->thread[i], NULL, work, &r->self[i]))
			break;
		r->n_started++;
	}
	if (r->out == NULL || r->x == NULL || r->n_started < r->n_threads) {
		cli_error(NULL, "run.memory",
			"no memory or threads for the reference loops");
		bench_ref_free(r);
		return NULL;
	}
	return r;
}

void bench_ref_free(bench_ref *r)
{
	if (r == NULL)
		return;
	if (r->n_started == r->n_threads) {
		r->stop = true;
		pthread_barrier_wait(&r->start);
		for (int i = 0; i < r->n_started; i++)
			pthread_join(r->thread[i], NULL);
	} else { /* some threads could not be started: the others wait */
		for (int i = 0; i < r->n_started; i++) {
			pthread_cancel(r->thread[i]);
			pthread_detach(r->thread[i]);
		}
	}
	free(r->out);
	free(r->x);
	free(r->y);
	if (r->n_started == r->n_threads)
		free(r);
}

static double timed(bench_ref *r, const loop *l)
{
	double start, end;

	r->now = l;
	pthread_barrier_wait(&r->start);
	pthread_barrier_wait(&r->done);
	start = r->self[0].start;
	end = r->self[0].end;
	for (int i = 1; i < r->n_threads; i++) {
		if (r->self[i].start < start)
			start = r->self[i].start;
		if (r->self[i].end > end)
			end = r->self[i].end;
	}
	return end - start;
}

const char *bench_ref_choose(bench_ref *r, bench_traffic t)
{
	double best = 0;

	if (r->chosen[t] != NULL)
		return r->chosen[t]->name;
	for (int i = 0; i < N_LOOPS; i++) {
		double v[5];

		if (loops[i].traffic != t || !cpu_has(loops[i].cpu))
			continue;
		timed(r, &loops[i]);
		for (int k = 0; k < 5; k++)
			v[k] = timed(r, &loops[i]);
		v[0] = bench_median(v, 5);
		if (r->chosen[t] == NULL || v[0] < best) {
			best = v[0];
			r->chosen[t] = &loops[i];
		}
	}
	return r->chosen[t]->name;
}

double bench_ref_run(bench_ref *r, bench_traffic t)
{
	bench_ref_choose(r, t);
	return timed(r, r->chosen[t]);
}

double bench_ref_bytes(const bench_ref *r, bench_traffic t)
{
	static const double arrays[N_TRAFFIC] = {1, 2, 3};

	return arrays[t] * (double)r->n * (double)sizeof(float);
}
