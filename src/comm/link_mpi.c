/*
 * link_mpi.c: processes started by mpirun.
 *
 * The MPI library is loaded when it is needed (mpi.c). Only point-to-point calls are
 * used. A small message with the name of the operation precedes each message, so
 * that two processes in different operations fail instead of exchanging wrong data.
 * Every wait is a poll, which also receives failures, and ends with an error if no
 * process gave a heartbeat for too long (pulse.c).
 *
 * Processes of one host share memory (ring.c), which has tensors and heartbeats.
 * Between hosts, a process that waits sends a question to the other, whose pulse
 * answers; if the library can be called by one thread only, nothing answers, and
 * only the time without messages counts.
 */
#include "comm/mpi.h"
#include "comm/ring.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { TAG_HEAD = 71, TAG_DATA, TAG_STOP, TAG_ASK, TAG_TELL, TAG_WARN };
enum { CHUNK = 1 << 30 }; /* bytes of one message: counts are int */
enum { THREADS_FUNNELED = 1, THREADS_MULTIPLE = 3, ASK_MS = 1000, MOST_LINKS = 1000 };

typedef struct head {
	char what[88];
	uint64_t n;
} head;

typedef struct pending {
	struct pending *next;
	mpi_handle request;
	head *owned; /* freed when it is done */
} pending;

typedef struct request {
	struct request *next;
	int64_t from;
	void *data;
	size_t n;
} request;

typedef struct mpi_link {
	shard_link link;
	mpi_api f;
	int64_t rank, size, patience;
	bool begun, failed, closed;
	int number; /* among the links that this process has had */
	int64_t warned; /* the greatest number that others have warned of */
	/* heartbeats */
	shard_pulse *pulse;
	uint64_t seen;
	atomic_int_fast64_t sign; /* time of the last heartbeat of any process */
	bool talks; /* the pulse may call the library */
	int64_t asked_at, n_asked;
	mpi_handle question_at;
	pending *sent;
	request *first, **last;
	shard_ring ring;
	void *shared; /* its memory */
} mpi_link;

/* ---- waiting ---- */

static void tell_all(mpi_link *m, int tag, const char *text, uint64_t number)
{
	for (int64_t i = 0; i < m->size; i++) {
		pending *w = i != m->rank ? calloc(1, sizeof *w) : NULL;

		if (w == NULL)
			continue;
		w->owned = calloc(1, sizeof *w->owned);
		if (w->owned == NULL) {
			free(w);
			continue;
		}
		snprintf(w->owned->what, sizeof w->owned->what, "%s", text);
		w->owned->n = number;
		mpi_post(&m->f, w->owned, sizeof *w->owned, i, tag, &w->request);
		w->next = m->sent;
		m->sent = w;
	}
}

static _Noreturn void leave(mpi_link *m, env *e, const char *text)
{
	if (!m->failed)
		tell_all(m, TAG_STOP, text, 0);
	m->failed = true;
	while (m->first != NULL) {
		request *r = m->first;

		m->first = r->next;
		free(r);
	}
	m->last = &m->first;
	shard_pulse_waits(&m->link, false);
	env_fail(e, TN_EPEER, "shard.link", (loc){0}, "%s", text);
}

/* Throws if another process has stopped with an error. */
static void listen(mpi_link *m, env *e)
{
	int64_t any = mpi_any(&m->f);
	head h = {{0}, 0};
	mpi_handle r = {NULL};

	if (!mpi_is_there(&m->f, any, TAG_STOP))
		return;
	mpi_expect(&m->f, &h, sizeof h, any, TAG_STOP, &r);
	while (!mpi_is_done(&m->f, &r))
		;
	h.what[sizeof h.what - 1] = '\0';
	m->failed = true;
	leave(m, e, h.what);
}

/* ---- signs of life ---- */

/* Receives an answer: the age of the last heartbeat that the other knows. */
static void hear_answer(mpi_link *m)
{
	int64_t any = mpi_any(&m->f);
	int64_t age = 0, at;
	mpi_handle r = {NULL};

	if (!mpi_is_there(&m->f, any, TAG_TELL))
		return;
	mpi_expect(&m->f, &age, sizeof age, any, TAG_TELL, &r);
	while (!mpi_is_done(&m->f, &r))
		;
	at = shard_pulse_now() - age;
	if (at > atomic_load(&m->sign))
		atomic_store(&m->sign, at);
}

/*
 * Asks the process that it waits for, and in turns all others, so that heartbeats
 * are soon known to all, for any chain of waiting processes.
 */
static void ask(mpi_link *m, int64_t other)
{
	int64_t now = shard_pulse_now();
	int64_t every = m->patience / 8 < ASK_MS ? m->patience / 8 : ASK_MS;

	if (!m->talks)
		return;
	hear_answer(m);
	if (now - m->asked_at < every ||
		(m->asked_at > 0 && !mpi_is_done(&m->f, &m->question_at)))
		return;
	m->asked_at = now;
	m->n_asked++;
	if (other < 0 || m->n_asked % 2 == 0)
		other = (m->rank + m->n_asked / 2) % m->size;
	if (other == m->rank)
		other = (m->rank + 1) % m->size;
	mpi_post(&m->f, &m->rank, sizeof m->rank, other, TAG_ASK,
		&m->question_at);
}

/* Answers one question, if there is any; the pulse does. */
static void answer(mpi_link *m)
{
	int64_t any = mpi_any(&m->f);
	int64_t from = 0, age;
	mpi_handle r = {NULL};
	const struct timespec nap = {.tv_nsec = 1000000};

	if (!mpi_is_there(&m->f, any, TAG_ASK))
		return;
	mpi_expect(&m->f, &from, sizeof from, any, TAG_ASK, &r);
	while (!mpi_is_done(&m->f, &r))
		nanosleep(&nap, NULL);
	age = shard_pulse_now() - atomic_load(&m->sign);
	mpi_post(&m->f, &age, sizeof age, from, TAG_TELL, &r);
	for (int32_t i = 0; i < 1000 && !mpi_is_done(&m->f, &r); i++)
		nanosleep(&nap, NULL);
}

/* Called several times a second by the thread of the pulse. */
static void beat(void *arg)
{
	mpi_link *m = arg;

	if (shard_pulse_lives(&m->link, &m->seen)) {
		atomic_store(&m->sign, shard_pulse_now());
		if (m->link.ring != NULL)
			shard_ring_sign(&m->ring, shard_pulse_now());
	}
	for (int64_t i = 0; i < m->size && m->talks; i++)
		answer(m);
}

/*
 * Called while waiting since `began` for the other (-1: unknown). Throws if the
 * other has ended, or no process gave a heartbeat for too long. *ended: the other
 * had ended at the last check, but its messages may have arrived since.
 */
static void look_out(mpi_link *m, env *e, int64_t began, int64_t other,
	bool *ended, const char *what)
{
	char text[sizeof((head *)0)->what];
	int64_t gone = -1, sign = atomic_load(&m->sign);

	shard_pulse_waits(&m->link, true);
	listen(m, e);
	ask(m, other);
	if (m->link.ring != NULL) {
		gone = shard_ring_gone(&m->ring, other);
		if (sign < shard_ring_last_sign(&m->ring))
			sign = shard_ring_last_sign(&m->ring);
	}
	if (gone >= 0 && *ended) {
		snprintf(text, sizeof text,
			"process %lld in %.30s: process %lld has ended",
			(long long)m->rank, what, (long long)gone);
		leave(m, e, text);
	}
	*ended = gone >= 0;
	if (shard_pulse_now() - (began > sign ? began : sign) <= m->patience)
		return;
	snprintf(text, sizeof text,
		"process %lld in %.30s: nothing from process %lld",
		(long long)m->rank, what, (long long)other);
	leave(m, e, text);
}

static void until_done(mpi_link *m, env *e, mpi_handle *r, int64_t other,
	const char *what)
{
	const struct timespec nap = {.tv_nsec = 50000};
	int64_t began = 0;
	bool ended = false;

	for (int64_t turn = 0; !mpi_is_done(&m->f, r); turn++) {
		if (turn < 1000)
			continue;
		if (began == 0)
			began = shard_pulse_now();
		look_out(m, e, began, other, &ended, what);
		/* yield the processor */
		if (turn > 5000)
			nanosleep(&nap, NULL);
	}
	shard_pulse_came(&m->link);
	shard_pulse_waits(&m->link, false);
}

static void take(mpi_link *m, env *e, const request *r, const char *what)
{
	char text[sizeof((head *)0)->what];
	head h = {{0}, 0};
	mpi_handle q = {NULL};

	mpi_expect(&m->f, &h, sizeof h, r->from, TAG_HEAD, &q);
	until_done(m, e, &q, r->from, what);
	h.what[sizeof h.what - 1] = '\0';
	if (h.n != r->n || strncmp(h.what, what, sizeof h.what - 1) != 0) {
		snprintf(text, sizeof text,
			"process %lld: %.22s, %zu bytes; process %lld: %.22s, "
			"%llu",
			(long long)m->rank, what, r->n, (long long)r->from,
			h.what, (unsigned long long)h.n);
		leave(m, e, text);
	}
	for (size_t at = 0; at < r->n; at += CHUNK) {
		size_t n = r->n - at < CHUNK ? r->n - at : CHUNK;

		mpi_expect(&m->f, (char *)r->data + at, n, r->from, TAG_DATA, &q);
		until_done(m, e, &q, r->from, what);
	}
}

/* ---- interface ---- */

static int64_t rank_of(shard_link *l)
{
	return ((mpi_link *)l)->rank;
}

static int64_t size_of(shard_link *l)
{
	return ((mpi_link *)l)->size;
}

static pending *new_pending(mpi_link *m, env *e)
{
	pending *w = calloc(1, sizeof *w);

	if (w == NULL)
		env_fail(e, TN_ENOMEM, "memory", (loc){0},
			"no memory for a message");
	w->next = m->sent;
	m->sent = w;
	return w;
}

static void send_to(shard_link *l, env *e, int64_t to, const void *data,
	size_t n, const char *what)
{
	mpi_link *m = (mpi_link *)l;
	pending *w = new_pending(m, e);

	w->owned = calloc(1, sizeof *w->owned);
	if (w->owned == NULL) {
		m->sent = w->next;
		free(w);
		env_fail(e, TN_ENOMEM, "memory", (loc){0},
			"no memory for a message");
	}
	snprintf(w->owned->what, sizeof w->owned->what, "%s", what);
	w->owned->n = n;
	mpi_post(&m->f, w->owned, sizeof *w->owned, to, TAG_HEAD, &w->request);
	for (size_t at = 0; at < n; at += CHUNK) {
		size_t some = n - at < CHUNK ? n - at : CHUNK;

		w = new_pending(m, e);
		mpi_post(&m->f, (const char *)data + at, some, to, TAG_DATA,
			&w->request);
	}
}

static void receive_from(shard_link *l, env *e, int64_t from, void *data,
	size_t n, const char *what)
{
	mpi_link *m = (mpi_link *)l;
	request *r = malloc(sizeof *r);

	(void)what;
	if (r == NULL)
		env_fail(e, TN_ENOMEM, "memory", (loc){0},
			"no memory for a request");
	*r = (request){.from = from, .data = data, .n = n};
	*m->last = r;
	m->last = &r->next;
}

static void wait_all(shard_link *l, env *e, const char *what)
{
	mpi_link *m = (mpi_link *)l;

	while (m->first != NULL) {
		request r = *m->first;

		take(m, e, &r, what);
		free(m->first);
		m->first = r.next;
		if (m->first == NULL)
			m->last = &m->first;
	}
	while (m->sent != NULL) {
		pending *w = m->sent;

		until_done(m, e, &w->request, -1, what);
		m->sent = w->next;
		free(w->owned);
		free(w);
	}
}

/* Process 0 receives all values, and tells all whether they are equal. */
static bool meet(mpi_link *m, env *e, uint64_t value, const char *what)
{
	shard_link *l = &m->link;
	uint64_t other = 0, same = 1;

	for (int64_t i = 1; i < m->size && m->rank == 0; i++) {
		receive_from(l, e, i, &other, sizeof other, what);
		wait_all(l, e, what);
		same &= other == value;
	}
	if (m->rank != 0) {
		send_to(l, e, 0, &value, sizeof value, what);
		receive_from(l, e, 0, &same, sizeof same, what);
	}
	for (int64_t i = 1; i < m->size && m->rank == 0; i++)
		send_to(l, e, i, &same, sizeof same, what);
	wait_all(l, e, what);
	return same != 0;
}

static void barrier(shard_link *l, env *e, const char *what)
{
	meet((mpi_link *)l, e, 0, what);
}

static void agree(shard_link *l, env *e, uint64_t value, const char *what)
{
	if (!meet((mpi_link *)l, e, value, what))
		env_fail(e, TN_EINVAL, "shard.differ", (loc){0},
			"%s is not the same on all processes (seen by process "
			"%lld)",
			what, (long long)rank_of(l));
}

static void broadcast(shard_link *l, env *e, int64_t from, void *data,
	size_t n, const char *what)
{
	mpi_link *m = (mpi_link *)l;

	if (m->rank != from)
		receive_from(l, e, from, data, n, what);
	for (int64_t i = 0; i < m->size && m->rank == from; i++)
		if (i != from)
			send_to(l, e, i, data, n, what);
	wait_all(l, e, what);
}

static void warn(shard_link *l, int64_t number)
{
	mpi_link *m = (mpi_link *)l;

	tell_all(m, TAG_WARN + m->number, "", (uint64_t)number);
}

static bool warned(shard_link *l, int64_t number)
{
	mpi_link *m = (mpi_link *)l;
	int64_t any = mpi_any(&m->f);

	while (mpi_is_there(&m->f, any, TAG_WARN + m->number)) {
		head h = {{0}, 0};
		mpi_handle r = {NULL};

		mpi_expect(&m->f, &h, sizeof h, any,
			TAG_WARN + m->number, &r);
		while (!mpi_is_done(&m->f, &r))
			;
		if (m->warned < (int64_t)h.n)
			m->warned = (int64_t)h.n;
	}
	return m->warned >= number;
}

static void stop(shard_link *l, const char *text)
{
	mpi_link *m = (mpi_link *)l;

	if (!m->failed)
		tell_all(m, TAG_STOP, text, 0);
	m->failed = true;
}

/* ---- shared memory ---- */

/* state: when it began to wait; negative: a process had ended then */
static void idle(shard_link *l, env *e, int64_t turn, int64_t *state,
	int64_t other, const char *what)
{
	const struct timespec nap = {.tv_nsec = 50000};
	mpi_link *m = (mpi_link *)l;
	bool ended = *state < 0;

	sched_yield();
	if (turn % 64 != 0)
		return;
	if (turn > 2000)
		nanosleep(&nap, NULL);
	if (*state == 0)
		*state = shard_pulse_now();
	look_out(m, e, ended ? -*state : *state, other, &ended, what);
	*state = ended ? -llabs(*state) : llabs(*state);
}

static void set_patience(shard_link *l, int64_t milliseconds)
{
	((mpi_link *)l)->patience =
		milliseconds > 0 ? milliseconds : SHARD_PATIENCE;
}

/* A text that is equal for processes that can share memory. */
static void describe_host(char *out, size_t n)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
	size_t at;

	memset(out, 0, n);
	if (f != NULL) {
		(void)!fread(out, 1, n / 2, f);
		fclose(f);
	}
	at = strlen(out);
	(void)!gethostname(out + at, n - at - 1);
}

static void *map_memory(const char *name, size_t n, bool is_new)
{
	int f = shm_open(name, is_new ? O_RDWR | O_CREAT | O_EXCL : O_RDWR,
		0600);
	void *at = MAP_FAILED;

	if (f < 0)
		return NULL;
	/* all of it now: what is missing later would end the process */
	if (!is_new || posix_fallocate(f, 0, (off_t)n) == 0)
		at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	close(f);
	return at == MAP_FAILED ? NULL : at;
}

static bool one_host(mpi_link *m, env *e, const char *what)
{
	char own[256], other[256];
	uint64_t same = 1;

	describe_host(own, sizeof own);
	for (int64_t i = 1; i < m->size && m->rank == 0; i++) {
		receive_from(&m->link, e, i, other, sizeof other, what);
		wait_all(&m->link, e, what);
		same &= memcmp(own, other, sizeof own) == 0;
	}
	if (m->rank != 0)
		send_to(&m->link, e, 0, own, sizeof own, what);
	broadcast(&m->link, e, 0, &same, sizeof same, what);
	return same != 0;
}

/* Sets up shared memory, if all are on one host; else messages are used. */
static void share_memory(mpi_link *m, arena *a, env *e)
{
	static const char what[] = "joining";
	size_t n = shard_ring_bytes(m->size);
	char name[64] = "";
	bool all, can_read;

	const char *want = getenv("TENON_SHARD_MEMORY");
	uint64_t off = want != NULL && strcmp(want, "off") == 0;

	if (n == 0)
		return;
	broadcast(&m->link, e, 0, &off, sizeof off, what);
	if (off != 0 || !one_host(m, e, what))
		return;
	if (m->rank == 0) {
		snprintf(name, sizeof name, "/tenon-%lld-%lld",
			(long long)getpid(), (long long)shard_pulse_now());
		m->shared = map_memory(name, n, true);
	}
	broadcast(&m->link, e, 0, name, sizeof name, what);
	if (m->rank != 0)
		m->shared = map_memory(name, n, false);
	if (m->shared != NULL) {
		m->ring = shard_ring_of(m->shared, m->rank, m->size);
		shard_ring_join(&m->ring);
	}
	all = meet(m, e, m->shared != NULL, what) && m->shared != NULL;
	if (m->rank == 0)
		shm_unlink(name);
	if (!all)
		return;
	m->ring.scratch = arena_alloc(a, 2 * m->ring.chunk, 1);
	m->link.ring = &m->ring;
	can_read = shard_ring_can_read(&m->ring);
	m->ring.direct = meet(m, e, can_read, what) && can_read;
}

/* n floats of each process; of MPI_Alltoall: all that it has */
static void raw(shard_link *l, int32_t which, const void *in, void *out,
	int64_t n)
{
	mpi_link *m = (mpi_link *)l;
	int k = (int)n;

	if (which == SHARD_RAW_ALL_TO_ALL)
		k /= (int)m->size;
	mpi_raw(&m->f, which, in, out, k);
}

/* Waits until the others have received the reason, before MPI_Abort. */
static void linger(mpi_link *m)
{
	const struct timespec nap = {.tv_nsec = 20000000};

	for (int32_t turn = 0; turn < 50; turn++) {
		for (pending *w = m->sent; w != NULL; w = w->next)
			if (w->owned != NULL)
				mpi_is_done(&m->f, &w->request);
		nanosleep(&nap, NULL);
	}
}

/*
 * The links of this process, those that it has had, and whether the first one began what MPI does: then
 * the last one ends it. MPI cannot begin again.
 */
static atomic_int n_links, n_made;
static atomic_bool started;

static void close_link(shard_link *l)
{
	mpi_link *m = (mpi_link *)l;

	if (m->closed)
		return;
	m->closed = true;
	shard_pulse_stop(m->pulse);
	m->pulse = NULL;
	if (m->link.ring != NULL)
		shard_ring_end(&m->ring);
	if (m->failed)
		linger(m);
	/* after a failure, other processes must not wait for ever */
	if (m->failed)
		mpi_quit(&m->f);
	else if (atomic_fetch_sub(&n_links, 1) == 1 && atomic_load(&started))
		m->f.finalize();
}

static void free_link(void *what)
{
	mpi_link *m = what;

	shard_pulse_stop(m->pulse);
	if (m->begun && !m->closed) /* it was not made to the end */
		atomic_fetch_sub(&n_links, 1);
	if (m->shared != NULL)
		munmap(m->shared, shard_ring_bytes(m->size));
	while (m->sent != NULL) {
		pending *w = m->sent;

		m->sent = w->next;
		free(w->owned);
		free(w);
	}
	while (m->first != NULL) {
		request *r = m->first;

		m->first = r->next;
		free(r);
	}
}

/* ---- joining ---- */

/* Did the launcher start all processes here? Then they may share memory. */
static bool is_local(void)
{
	const char *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
	const char *all = getenv("OMPI_COMM_WORLD_SIZE");
	const char *off = getenv("TENON_SHARD_MEMORY");

	if (here == NULL || all == NULL) {
		here = getenv("MPI_LOCALNRANKS");
		all = getenv("PMI_SIZE");
	}
	return here != NULL && all != NULL && strcmp(here, all) == 0 &&
		shard_ring_bytes(strtoll(all, NULL, 10)) > 0 &&
		(off == NULL || strcmp(off, "off") != 0);
}

/* If heartbeats are messages, two threads call the library. */
static void begin(mpi_link *m, env *e)
{
	int was = 0, ended = 0, threads = 0;

	m->f.finalized(&ended);
	if (ended != 0)
		env_fail(e, TN_EINVAL, "shard.mpi", (loc){0},
			"MPI has ended in this process, and cannot begin "
			"again: the last context that has joined must live "
			"until another one has");
	m->f.initialized(&was);
	if (was == 0) {
		m->f.init_thread(NULL, NULL,
			is_local() ? THREADS_FUNNELED : THREADS_MULTIPLE,
			&threads);
		atomic_store(&started, true);
	}
	atomic_fetch_add(&n_links, 1);
	m->number = atomic_fetch_add(&n_made, 1) % MOST_LINKS;
	m->begun = true;
	m->f.query_thread(&threads);
	m->talks = threads >= THREADS_MULTIPLE;
}

shard_link *shard_mpi_link(arena *a, int64_t patience)
{
	mpi_link *m = arena_make(a, mpi_link);

	mpi_load(arena_env(a), &m->f);
	m->last = &m->first;
	arena_defer(a, free_link, m);
	begin(m, arena_env(a));
	mpi_place(&m->f, &m->rank, &m->size);
	m->link = (shard_link){.name = "mpi",
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
		.raw = raw,
		.idle = idle};
	set_patience(&m->link, patience);
	share_memory(m, a, arena_env(a));
	/* shown in memory, or else asked for */
	m->talks = m->talks && m->link.ring == NULL;
	atomic_store(&m->sign, shard_pulse_now());
	m->pulse = shard_pulse_start(arena_env(a), beat, m);
	return &m->link;
}
