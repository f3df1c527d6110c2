/*
 * pool.c: threads that share the chunks of one call.
 *
 * Every thread owns a range of the chunks, always the same part, so that the next
 * call finds its data in the caches; a thread that has finished its range takes
 * chunks of others. A range is one atomic word
 *
 *     epoch : 24 | next : 20 | end : 20
 *
 * and a chunk is claimed by a compare-and-swap on it. The epoch differs between
 * calls, so a late thread fails to claim instead of claiming a chunk of another
 * call. A call is over when all chunks are done: it does not wait for sleeping or
 * missing threads (after fork, for example), whose ranges are taken by others.
 *
 * Threads wait until `go` changes: they spin for about 100 us, then sleep.
 */
#define _GNU_SOURCE /* affinity */
#include "run/private.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__linux__) && !defined(RUN_NO_FUTEX)
#include <linux/futex.h>
#include <sys/syscall.h>
#define HAVE_FUTEX 1
#else
#define HAVE_FUTEX 0
#endif

#define MAX_THREADS 1024
#define MAX_CHUNKS ((1 << 20) - 1) /* of one round */
#define SPIN_MS 0.1

typedef struct worker {
	_Alignas(64) _Atomic uint64_t range;
	run_pool *pool;
	pthread_t thread;
	int32_t index; /* 0 is the caller */
	int32_t cpu;   /* -1: not pinned */
} worker;

struct run_pool {
	/* the current call; constant from the first claim to the last chunk */
	void (*fn)(void *arg, int64_t chunk, int32_t thread);
	void *arg;
	int64_t first; /* chunk number of the round's chunk 0 */

	_Alignas(64) _Atomic int64_t done;
	_Alignas(64) _Atomic uint32_t go; /* changes when a call begins */
	_Atomic uint32_t asleep;
	_Atomic bool stop;
	_Alignas(64) worker *worker;
	int32_t n;
	uint32_t epoch;
	double spin_ms;
	pid_t pid;
	pthread_mutex_t mutex; /* without futex */
	pthread_cond_t cond;
};

/* ---- waiting --------------------------------------------------------- */

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

#if HAVE_FUTEX
static void sleep_while(run_pool *p, uint32_t seen)
{
	syscall(SYS_futex, &p->go, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void wake(run_pool *p, int32_t n)
{
	syscall(SYS_futex, &p->go, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}
#else
static void sleep_while(run_pool *p, uint32_t seen)
{
	pthread_mutex_lock(&p->mutex);
	while (atomic_load(&p->go) == seen)
		pthread_cond_wait(&p->cond, &p->mutex);
	pthread_mutex_unlock(&p->mutex);
}

static void wake(run_pool *p, int32_t n)
{
	(void)n;
	pthread_mutex_lock(&p->mutex);
	pthread_cond_broadcast(&p->cond);
	pthread_mutex_unlock(&p->mutex);
}
#endif

static bool spin_while(run_pool *p, uint32_t seen)
{
	double end = 0;
	int i;

	if (p->spin_ms <= 0)
		return false;
	for (;;) {
		for (i = 0; i < 64; i++) {
			if (atomic_load_explicit(
				    &p->go, memory_order_acquire) != seen)
				return true;
			pause_cpu();
		}
		if (end == 0)
			end = now_ms() + p->spin_ms;
		else if (now_ms() > end)
			return false;
	}
}

static void wait_for_work(run_pool *p, uint32_t seen)
{
	if (spin_while(p, seen))
		return;
	atomic_fetch_add(&p->asleep, 1);
	if (atomic_load(&p->go) == seen)
		sleep_while(p, seen);
	atomic_fetch_sub(&p->asleep, 1);
}

static void announce(run_pool *p, int32_t n_useful)
{
	atomic_fetch_add(&p->go, 1);
	if (atomic_load(&p->asleep) > 0)
		wake(p, n_useful);
}

/* ---- chunks ---------------------------------------------------------- */

static uint64_t range_word(uint32_t epoch, int64_t next, int64_t end)
{
	return (uint64_t)epoch << 40 | (uint64_t)next << 20 | (uint64_t)end;
}

/* a chunk of the range, or -1 */
static int64_t claim(worker *w)
{
	uint64_t r = atomic_load_explicit(&w->range, memory_order_acquire);

	for (;;) {
		uint64_t next = r >> 20 & MAX_CHUNKS, end = r & MAX_CHUNKS;

		if (next == end)
			return -1;
		if (atomic_compare_exchange_weak_explicit(&w->range, &r,
			    r + (UINT64_C(1) << 20), memory_order_acq_rel,
			    memory_order_acquire))
			return (int64_t)next;
	}
}

/* Runs chunks of its range, then of the others in turn. */
static void work(run_pool *p, int32_t self)
{
	int32_t i;

	for (i = 0; i < p->n; i++) {
		worker *w = &p->worker[(self + i) % p->n];
		int64_t chunk;

		while ((chunk = claim(w)) >= 0) {
			p->fn(p->arg, p->first + chunk, self);
			atomic_fetch_add_explicit(
				&p->done, 1, memory_order_release);
		}
	}
}

static void wait_for_done(run_pool *p, int64_t n)
{
	int32_t i = 0;

	while (atomic_load_explicit(&p->done, memory_order_acquire) < n) {
		pause_cpu();
		if (p->spin_ms <= 0 || ++i > 4000)
			sched_yield();
	}
}

static void round_of(run_pool *p, int64_t n)
{
	int64_t i;

	atomic_store_explicit(&p->done, 0, memory_order_relaxed);
	p->epoch = (p->epoch + 1) & 0xffffff;
	for (i = 0; i < p->n; i++)
		atomic_store_explicit(&p->worker[i].range,
			range_word(p->epoch, n * i / p->n, n * (i + 1) / p->n),
			memory_order_release);
	announce(p, (int32_t)(n < p->n ? n : p->n) - 1);
	work(p, 0);
	wait_for_done(p, n);
}

void run_parallel(run_pool *p, int64_t n_chunks,
	void (*fn)(void *arg, int64_t chunk, int32_t thread), void *arg)
{
	int64_t i;

	if (p->n == 1 || n_chunks <= 1) {
		for (i = 0; i < n_chunks; i++)
			fn(arg, i, 0);
		return;
	}
	p->fn = fn;
	p->arg = arg;
	for (i = 0; i < n_chunks; i += MAX_CHUNKS) {
		p->first = i;
		round_of(p,
			n_chunks - i < MAX_CHUNKS ? n_chunks - i : MAX_CHUNKS);
	}
}

/* ---- birth and death ------------------------------------------------- */

static void *live(void *what)
{
	worker *w = what;
	run_pool *p = w->pool;
	uint32_t seen = 0;

	(void)fp_enter(); /* a thread starts in the environment of the host */
	if (w->cpu >= 0) {
		cpu_set_t one;

		CPU_ZERO(&one);
		CPU_SET((size_t)w->cpu, &one);
		pthread_setaffinity_np(pthread_self(), sizeof one, &one);
	}
	for (;;) {
		uint32_t now = atomic_load(&p->go);

		if (now == seen) {
			wait_for_work(p, seen);
			continue;
		}
		seen = now;
		if (atomic_load(&p->stop))
			return NULL;
		work(p, w->index);
	}
}

static void stop(void *what)
{
	run_pool *p = what;
	int32_t i;

	atomic_store(&p->stop, true);
	announce(p, p->n);
	if (getpid() == p->pid) /* a forked child has no threads */
		for (i = 1; i < p->n; i++)
			pthread_join(p->worker[i].thread, NULL);
	pthread_cond_destroy(&p->cond);
	pthread_mutex_destroy(&p->mutex);
}

static int32_t n_threads_of_env(arena *a, int32_t n_cpus)
{
	const char *v = getenv("TENON_THREADS");
	char *end;
	long n;

	if (!v || !*v)
		return n_cpus;
	errno = 0;
	n = strtol(v, &end, 10);
	if (*end || errno || n < 1 || n > MAX_THREADS)
		env_fail(arena_env(a), TN_EINVAL, "run.env", (loc){0},
			"TENON_THREADS is \"%s\": accepted is a number of "
			"threads, 1 to %d",
			v, MAX_THREADS);
	return (int32_t)n;
}

/* The CPUs that this process may use, the caller's first; returns their number. */
static int32_t list_cpus(int32_t *cpu)
{
	int32_t n = 0, i, here = sched_getcpu();
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return 0;
	if (here >= 0 && here < CPU_SETSIZE && CPU_ISSET((size_t)here, &set))
		cpu[n++] = here;
	for (i = 0; i < CPU_SETSIZE && n < MAX_THREADS; i++)
		if (CPU_ISSET((size_t)i, &set) && i != here)
			cpu[n++] = i;
	return n;
}

/* Starts as many threads as the system allows; signals are for other threads. */
static void start_workers(run_pool *p, int32_t n)
{
	sigset_t all, old;
	int32_t i;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	for (i = 1; i < n; i++)
		if (pthread_create(&p->worker[i].thread, NULL, live,
			    &p->worker[i]) != 0)
			break;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	/* those that started saw n = 1, found no work, and read it again
	 * only after the next announcement */
	p->n = i;
}

run_pool *run_pool_new(arena *a, int32_t n_threads)
{
	int32_t *cpu = arena_array(a, int32_t, MAX_THREADS);
	int32_t n_cpus = list_cpus(cpu), i;
	int32_t n = n_threads > 0 ? n_threads : 0;
	run_pool *p = run_slab(a, sizeof *p);

	if (n == 0)
		n = n_threads_of_env(a, n_cpus > 0 ? n_cpus : 1);
	if (n > MAX_THREADS)
		n = MAX_THREADS;
	p->worker = run_slab(a, (size_t)n * sizeof *p->worker);
	for (i = 0; i < n; i++)
		p->worker[i] = (worker){.pool = p,
			.index = i,
			.cpu = n <= n_cpus ? cpu[i] : -1};
	p->n = 1;
	p->pid = getpid();
	p->spin_ms = n <= n_cpus ? SPIN_MS : 0;
	pthread_mutex_init(&p->mutex, NULL);
	pthread_cond_init(&p->cond, NULL);
	arena_defer(a, stop, p);
	start_workers(p, n);
	return p;
}

int32_t run_pool_threads(const run_pool *p)
{
	return p->n;
}
