/*
 * link_threads.c: processes that are threads of one: for tests, and for a mesh
 * inside one program.
 *
 * Every ordered pair has a queue of messages, which are copied. Each message, and
 * each failure of a process, wakes the waiting processes. If a process closes its
 * link while another waits for it, that one fails.
 */
#define _GNU_SOURCE /* gettid, tgkill */
#include "comm/ring.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef struct message {
	struct message *next;
	char what[80];
	size_t n;
	max_align_t data[];
} message;

typedef struct request { /* of a receive */
	struct request *next;
	int64_t from;
	void *data;
	size_t n;
} request;

typedef struct member {
	shard_link link; /* first: a link is its member */
	shard_world *w;
	int64_t rank;
	bool closed;
	long thread; /* id of the thread; 0: unknown */
	uint64_t seen; /* its progress at the last check */
	shard_ring ring;
	request *first, **last;
	const char *at; /* the operation in which it waits */
} member;

struct shard_world {
	int64_t n, patience;
	int64_t sign; /* time of the last heartbeat */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool failed;
	char text[300];
	atomic_int_fast64_t warned; /* the greatest number */
	/* barrier and agree */
	int64_t arrived, turn;
	uint64_t value;
	bool differs, differed;
	member *of;
	message **queue; /* from * n + to: the oldest */
	void *block;	 /* memory of the ring; NULL */
};

static int64_t rank_of(shard_link *l)
{
	return ((member *)l)->rank;
}

static int64_t size_of(shard_link *l)
{
	return ((member *)l)->w->n;
}

static void fail_locked(shard_world *w, const char *text)
{
	if (!w->failed)
		snprintf(w->text, sizeof w->text, "%s", text);
	w->failed = true;
	pthread_cond_broadcast(&w->changed);
}

static void stop(shard_link *l, const char *text)
{
	shard_world *w = ((member *)l)->w;

	pthread_mutex_lock(&w->lock);
	fail_locked(w, text);
	pthread_mutex_unlock(&w->lock);
}

static void warn(shard_link *l, int64_t number)
{
	shard_world *w = ((member *)l)->w;

	pthread_mutex_lock(&w->lock);
	if (atomic_load(&w->warned) < number)
		atomic_store(&w->warned, number);
	pthread_mutex_unlock(&w->lock);
}

static bool warned(shard_link *l, int64_t number)
{
	return atomic_load(&((member *)l)->w->warned) >= number;
}

static void drop_requests(member *m)
{
	while (m->first != NULL) {
		request *r = m->first;

		m->first = r->next;
		free(r);
	}
	m->last = &m->first;
}

/* Releases the lock, and throws. */
static _Noreturn void leave(member *m, env *e)
{
	char text[300];

	drop_requests(m);
	snprintf(text, sizeof text, "%s", m->w->text);
	pthread_mutex_unlock(&m->w->lock);
	shard_pulse_waits(&m->link, false);
	env_fail(e, TN_EPEER, "shard.link", (loc){0}, "%s", text);
}

static message **oldest(shard_world *w, int64_t from, int64_t to)
{
	return &w->queue[from * w->n + to];
}

static void send_to(shard_link *l, env *e, int64_t to, const void *data,
	size_t n, const char *what)
{
	member *m = (member *)l;
	message *s = malloc(sizeof *s + n), **end;

	if (s == NULL)
		env_fail(e, TN_ENOMEM, "memory", (loc){0},
			"no memory for a message of %zu bytes", n);
	s->next = NULL;
	s->n = n;
	snprintf(s->what, sizeof s->what, "%s", what);
	if (n > 0)
		memcpy(s->data, data, n);
	pthread_mutex_lock(&m->w->lock);
	end = oldest(m->w, m->rank, to);
	while (*end != NULL)
		end = &(*end)->next;
	*end = s;
	pthread_cond_broadcast(&m->w->changed);
	pthread_mutex_unlock(&m->w->lock);
}

static void receive_from(shard_link *l, env *e, int64_t from, void *data,
	size_t n, const char *what)
{
	member *m = (member *)l;
	request *r = malloc(sizeof *r);

	(void)what;
	if (r == NULL)
		env_fail(e, TN_ENOMEM, "memory", (loc){0},
			"no memory for a request");
	*r = (request){.from = from, .data = data, .n = n};
	*m->last = r;
	m->last = &r->next;
}

/* ---- waiting ---- */

/* Does its thread run, or has it received a message? */
static bool lives(member *m)
{
	return !m->closed && m->thread != 0 &&
		syscall(SYS_tgkill, getpid(), m->thread, 0) == 0 &&
		shard_pulse_lives(&m->link, &m->seen);
}

static void enter(member *m)
{
	m->thread = syscall(SYS_gettid);
	shard_pulse_waits(&m->link, true);
}

/*
 * Waits for a change, at most a tenth of a second. began: start of the wait. false:
 * no process gave a heartbeat since then, for the time that patience sets.
 */
static bool sleep_some(shard_world *w, int64_t began)
{
	struct timespec t;
	int64_t now;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += 100000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	if (pthread_cond_timedwait(&w->changed, &w->lock, &t) != ETIMEDOUT)
		return true;
	now = shard_pulse_now();
	for (int64_t i = 0; i < w->n; i++)
		if (lives(&w->of[i]))
			w->sign = now;
	return now - (began > w->sign ? began : w->sign) <= w->patience;
}

static void give_up(shard_world *w, const member *m, const char *what,
	int64_t other, const char *why)
{
	char text[300];

	snprintf(text, sizeof text,
		"process %lld in %s waits for process %lld, which %s",
		(long long)m->rank, what, (long long)other, why);
	fail_locked(w, text);
}

/* the next message of the request's sender, taken; NULL: the world has failed */
static message *take(
	member *m, const request *r, const char *what, int64_t began)
{
	shard_world *w = m->w;
	message **q = oldest(w, r->from, m->rank), *s;
	char text[300];

	while (*q == NULL && !w->failed) {
		if (w->of[r->from].closed)
			give_up(w, m, what, r->from, "has ended");
		else if (!sleep_some(w, began) && *q == NULL)
			give_up(w, m, what, r->from, "sends nothing");
	}
	if (w->failed)
		return NULL;
	s = *q;
	*q = s->next;
	if (s->n == r->n && strncmp(s->what, what, sizeof s->what - 1) == 0)
		return s;
	snprintf(text, sizeof text,
		"process %lld expects %zu bytes in %s, process %lld sends %zu "
		"in %s",
		(long long)m->rank, r->n, what, (long long)r->from, s->n,
		s->what);
	free(s);
	fail_locked(w, text);
	return NULL;
}

static void wait_all(shard_link *l, env *e, const char *what)
{
	member *m = (member *)l;
	shard_world *w = m->w;
	int64_t began = shard_pulse_now();

	pthread_mutex_lock(&w->lock);
	enter(m);
	while (m->first != NULL) {
		request *r = m->first;
		message *s = take(m, r, what, began);

		if (s == NULL)
			leave(m, e);
		if (s->n > 0)
			memcpy(r->data, s->data, s->n);
		free(s);
		shard_pulse_came(&m->link);
		m->first = r->next;
		if (m->first == NULL)
			m->last = &m->first;
		free(r);
	}
	if (w->failed)
		leave(m, e);
	shard_pulse_waits(&m->link, false);
	pthread_mutex_unlock(&w->lock);
}

/* A barrier, with a value of each process. Holds the lock afterwards. */
static void meet(member *m, env *e, uint64_t value, const char *what)
{
	shard_world *w = m->w;
	int64_t turn, began = shard_pulse_now();

	pthread_mutex_lock(&w->lock);
	enter(m);
	turn = w->turn;
	if (w->arrived == 0) {
		w->value = value;
		w->differs = false;
	}
	w->differs |= w->value != value;
	if (++w->arrived == w->n) {
		w->arrived = 0;
		w->turn++;
		w->differed = w->differs;
		pthread_cond_broadcast(&w->changed);
	}
	m->at = what;
	while (w->turn == turn && !w->failed) {
		for (int64_t i = 0; i < w->n; i++)
			if (w->of[i].closed && w->turn == turn)
				give_up(w, m, what, i, "has ended");
		if (w->turn == turn && !w->failed && !sleep_some(w, began) &&
			w->turn == turn)
			for (int64_t i = 0; i < w->n; i++)
				if (w->of[i].at == NULL)
					give_up(w, m, what, i,
						"does not arrive");
	}
	m->at = NULL;
	if (w->turn == turn && w->failed)
		leave(m, e);
	shard_pulse_waits(&m->link, false);
}

static void barrier(shard_link *l, env *e, const char *what)
{
	member *m = (member *)l;

	meet(m, e, 0, what);
	pthread_mutex_unlock(&m->w->lock);
}

static void agree(shard_link *l, env *e, uint64_t value, const char *what)
{
	member *m = (member *)l;
	bool differed;

	meet(m, e, value, what);
	differed = m->w->differed;
	pthread_mutex_unlock(&m->w->lock);
	if (differed)
		env_fail(e, TN_EINVAL, "shard.differ", (loc){0},
			"%s is not the same on all processes (seen by process "
			"%lld)",
			what, (long long)m->rank);
}

static void broadcast(shard_link *l, env *e, int64_t from, void *data,
	size_t n, const char *what)
{
	member *m = (member *)l;

	if (m->rank != from)
		receive_from(l, e, from, data, n, what);
	for (int64_t i = 0; i < m->w->n && m->rank == from; i++)
		if (i != from)
			send_to(l, e, i, data, n, what);
	wait_all(l, e, what);
}

/* state: when it began; negative: the other, which had ended when last seen */
static void idle(shard_link *l, env *e, int64_t turn, int64_t *state,
	int64_t other, const char *what)
{
	member *m = (member *)l;
	shard_world *w = m->w;
	const struct timespec nap = {.tv_nsec = 50000};

	sched_yield();
	if (turn % 16 != 0)
		return;
	if (turn > 1000)
		nanosleep(&nap, NULL);
	pthread_mutex_lock(&w->lock);
	enter(m);
	if (!w->failed && other >= 0 && w->of[other].closed) {
		/* its messages may have arrived since the last check */
		if (*state == -1 - other)
			give_up(w, m, what, other, "has ended");
		*state = -1 - other;
	} else if (*state <= 0) {
		*state = shard_pulse_now() + 1;
	} else if (turn > 1000 && turn % 1600 == 0 && !sleep_some(w, *state)) {
		give_up(w, m, what, other, "sends nothing");
	}
	if (w->failed)
		leave(m, e);
	pthread_mutex_unlock(&w->lock);
}

static void set_patience(shard_link *l, int64_t milliseconds)
{
	member *m = (member *)l;

	pthread_mutex_lock(&m->w->lock);
	m->w->patience = milliseconds > 0 ? milliseconds : SHARD_PATIENCE;
	pthread_mutex_unlock(&m->w->lock);
}

static void close_link(shard_link *l)
{
	member *m = (member *)l;

	pthread_mutex_lock(&m->w->lock);
	drop_requests(m);
	m->closed = true;
	pthread_cond_broadcast(&m->w->changed);
	pthread_mutex_unlock(&m->w->lock);
}

shard_world *shard_world_new(int64_t n)
{
	shard_world *w = calloc(1, sizeof *w);
	char *shared = NULL;

	if (w == NULL)
		return NULL;
	w->n = n;
	w->patience = SHARD_PATIENCE;
	w->of = calloc((size_t)n, sizeof *w->of);
	w->queue = calloc((size_t)(n * n), sizeof *w->queue);
	if (w->of == NULL || w->queue == NULL) {
		free(w->of);
		free(w->queue);
		free(w);
		return NULL;
	}
	if (shard_ring_bytes(n) > 0)
		w->block = calloc(1, shard_ring_bytes(n) + 64);
	if (w->block != NULL) /* pages that are not used are never allocated */
		shared = (char *)w->block + (64 - (uintptr_t)w->block % 64);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	for (int64_t i = 0; i < n; i++) {
		w->of[i] = (member){.link = {.name = "threads",
					    .patience = set_patience,
					    .rank = rank_of,
					    .size = size_of,
					    .send = send_to,
					    .receive = receive_from,
					    .wait = wait_all,
					    .barrier = barrier,
					    .broadcast = broadcast,
					    .agree = agree,
					    .warn = warn,
					    .warned = warned,
					    .stop = stop,
					    .close = close_link,
					    .idle = idle},
			.w = w,
			.rank = i};
		w->of[i].last = &w->of[i].first;
		if (shared == NULL)
			continue; /* messages are used instead */
		w->of[i].ring = shard_ring_of(shared, i, n);
		w->of[i].link.ring = &w->of[i].ring;
	}
	return w;
}

shard_link *shard_world_link(shard_world *w, int64_t rank)
{
	return &w->of[rank].link;
}

void shard_world_enter(shard_link *l)
{
	member *m = (member *)l;

	pthread_mutex_lock(&m->w->lock);
	m->thread = syscall(SYS_gettid);
	pthread_mutex_unlock(&m->w->lock);
}

void shard_world_free(shard_world *w)
{
	if (w == NULL)
		return;
	for (int64_t i = 0; i < w->n * w->n; i++)
		while (w->queue[i] != NULL) {
			message *s = w->queue[i];

			w->queue[i] = s->next;
			free(s);
		}
	for (int64_t i = 0; i < w->n; i++)
		drop_requests(&w->of[i]);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
	free(w->block);
	free(w->queue);
	free(w->of);
	free(w);
}
