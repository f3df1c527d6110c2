/*
 * pulse.c: heartbeats of a process.
 *
 * A process that computes, compiles or writes a file for minutes is not dead. A
 * separate thread gives heartbeats several times a second:
 *
 *     not in an operation   a heartbeat
 *     waits for others      a heartbeat only if a message has arrived since
 *
 * So a process that is killed or stopped gives none; and if all processes wait for
 * each other, none does. A process waits as long as any process gives heartbeats,
 * and fails when there was none for the time that patience sets.
 */
#include "comm/ring.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { BEAT_MS = 200 };

struct shard_pulse {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool ends;
	void (*beat)(void *arg);
	void *arg;
};

int64_t shard_pulse_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static struct timespec in_a_beat(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += BEAT_MS * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void *run(void *arg)
{
	shard_pulse *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->ends) {
		struct timespec end = in_a_beat();

		pthread_mutex_unlock(&p->lock);
		p->beat(p->arg);
		pthread_mutex_lock(&p->lock);
		if (!p->ends)
			pthread_cond_timedwait(&p->wake, &p->lock, &end);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static void release(shard_pulse *p)
{
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

shard_pulse *shard_pulse_start(env *e, void (*beat)(void *arg), void *arg)
{
	shard_pulse *p = calloc(1, sizeof *p);
	pthread_condattr_t clock;
	sigset_t all, before;
	int failed;

	if (p == NULL)
		env_fail(e, TN_ENOMEM, "memory", (loc){0},
			"no memory for a thread");
	p->beat = beat;
	p->arg = arg;
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&p->wake, &clock);
	pthread_condattr_destroy(&clock);
	/* signals are for the threads of the program */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&p->thread, NULL, run, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed != 0) {
		release(p);
		env_fail(e, TN_ENOMEM, "memory", (loc){0},
			"the thread that shows signs of life cannot be started");
	}
	return p;
}

void shard_pulse_stop(shard_pulse *p)
{
	if (p == NULL)
		return;
	pthread_mutex_lock(&p->lock);
	p->ends = true;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	pthread_join(p->thread, NULL);
	release(p);
}

bool shard_pulse_lives(shard_link *l, uint64_t *seen)
{
	uint64_t now = atomic_load_explicit(&l->progress, memory_order_relaxed);
	bool lives = now != *seen ||
		!atomic_load_explicit(&l->waits, memory_order_relaxed);

	*seen = now;
	return lives;
}

void shard_pulse_waits(shard_link *l, bool waits)
{
	atomic_store_explicit(&l->waits, waits, memory_order_relaxed);
}

void shard_pulse_came(shard_link *l)
{
	atomic_store_explicit(&l->progress,
		atomic_load_explicit(&l->progress, memory_order_relaxed) + 1,
		memory_order_relaxed);
}
