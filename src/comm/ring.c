/*
 * ring.c: moves between processes that share memory.
 *
 * Consumes flows: elements to send, receive, add up or copy; runs all flows together,
 * a chunk of each in turn. Every ordered pair of processes has two lanes, each a
 * ring of a few chunks that stay in the cache of a core: elements go through them
 * from the sender's tensor to the receiver's, without other copies in memory.
 *
 *     all-reduce by 2    lane 0   sends the half that the other adds up, and adds
 *                                 up the other half as it arrives
 *                        lane 1   sends the sums while they are computed
 *
 * Contiguous elements that fit the caches are not copied twice: their address is
 * sent, and the receiver reads the memory of the sender, if the system allows it.
 *
 * Terms are added in the order of the processes, so bits do not depend on timing.
 *
 * Guarantees: a waiting process spins, then yields, then checks by the link whether
 * the others live; a message has the name of its operation, and both sides fail if
 * their operations differ.
 */
#define _GNU_SOURCE /* process_vm_readv */
#include "comm/ring.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { CHUNKS = 4, SPINS = 400, LONG_SPINS = 50000, LINE = 64, WHAT = 80, LANES = 2 };
enum { MOST_BYTES = 8 << 20, MOST_CHUNK = 1 << 18, LEAST_CHUNK = 1 << 12 };
/* from this size on, stores go past the caches */
enum { STREAM_BYTES = 32 << 20, DIRECT_BYTES = 8 << 10,
	DIRECT_SUM_BYTES = 1 << 20 };

typedef struct heading { /* of a message */
	char what[WHAT];
	uint64_t n;
	uint64_t address; /* of all elements, in the sender; 0: chunks follow */
} heading;

typedef struct identity { /* of a process */
	_Alignas(LINE) int64_t pid;
	uint64_t address; /* of memory that contains the same number */
	atomic_int_fast64_t sign; /* time of the last heartbeat */
	atomic_bool ended;
} identity;

typedef struct lane {
	_Alignas(LINE) atomic_uint_fast64_t made; /* chunks, so far */
	_Alignas(LINE) atomic_uint_fast64_t used;
	_Alignas(LINE) heading head[CHUNKS];
} lane;

static size_t chunk_of(int64_t n)
{
	size_t lanes = (size_t)(n * n) * LANES * CHUNKS;
	size_t chunk = MOST_CHUNK;

	while (chunk > LEAST_CHUNK && chunk * lanes > MOST_BYTES)
		chunk /= 2;
	return chunk;
}

static size_t lane_bytes(size_t chunk)
{
	return sizeof(lane) + CHUNKS * chunk;
}

size_t shard_ring_bytes(int64_t n)
{
	return n < 2 || n > SHARD_RING_MOST
		? 0
		: (size_t)(n * n) * LANES * lane_bytes(chunk_of(n)) +
			(size_t)n * sizeof(identity);
}

static identity *identity_at(const shard_ring *r, int64_t rank)
{
	size_t lanes = (size_t)(r->n * r->n) * LANES * lane_bytes(r->chunk);

	return (identity *)(void *)(r->memory + lanes) + rank;
}

shard_ring shard_ring_of(void *memory, int64_t rank, int64_t n)
{
	return (shard_ring){.memory = memory,
		.rank = rank,
		.n = n,
		.chunk = chunk_of(n),
		.spins = n <= sysconf(_SC_NPROCESSORS_ONLN) ? LONG_SPINS
							    : SPINS};
}

void shard_ring_join(shard_ring *r)
{
	identity *own = identity_at(r, r->rank);

	r->pid = (int64_t)getpid();
	own->pid = r->pid;
	own->address = (uint64_t)(uintptr_t)&r->pid;
}

void shard_ring_sign(const shard_ring *r, int64_t now)
{
	atomic_store_explicit(
		&identity_at(r, r->rank)->sign, now, memory_order_relaxed);
}

int64_t shard_ring_last_sign(const shard_ring *r)
{
	int64_t last = 0;

	for (int64_t p = 0; p < r->n; p++) {
		int64_t at = atomic_load_explicit(
			&identity_at(r, p)->sign, memory_order_relaxed);

		last = at > last ? at : last;
	}
	return last;
}

void shard_ring_end(const shard_ring *r)
{
	atomic_store(&identity_at(r, r->rank)->ended, true);
}

static bool read_memory(const shard_ring *r, int64_t from, uint64_t address,
	void *to, size_t n)
{
	while (n > 0) {
		struct iovec here = {to, n};
		struct iovec there = {(void *)(uintptr_t)address, n};
		ssize_t got = process_vm_readv(
			(pid_t)identity_at(r, from)->pid, &here, 1, &there, 1,
			0);

		if (got <= 0)
			return false;
		to = (char *)to + got;
		address += (uint64_t)got;
		n -= (size_t)got;
	}
	return true;
}

/* Does process p exist, with the number that it published? */
static bool is_there(const shard_ring *r, int64_t p)
{
	const identity *w = identity_at(r, p);
	int64_t pid = 0;

	return read_memory(r, p, w->address, &pid, sizeof pid) &&
		pid == w->pid;
}

bool shard_ring_can_read(const shard_ring *r)
{
	for (int64_t p = 0; p < r->n; p++)
		if (p != r->rank && !is_there(r, p))
			return false;
	return true;
}

int64_t shard_ring_gone(const shard_ring *r, int64_t other)
{
	if (other >= 0 && atomic_load(&identity_at(r, other)->ended))
		return other;
	for (int64_t p = 0; r->direct && p < r->n; p++)
		if (p != r->rank && !atomic_load(&identity_at(r, p)->ended) &&
			!is_there(r, p))
			return p;
	return -1;
}

static lane *lane_at(const shard_ring *r, int64_t from, int64_t to, int32_t k)
{
	size_t i = (size_t)((from * r->n + to) * LANES + k);

	return (lane *)(void *)(r->memory + i * lane_bytes(r->chunk));
}

static char *chunk_at(const shard_ring *r, lane *l, uint64_t number)
{
	return (char *)l + sizeof *l + number % CHUNKS * r->chunk;
}

/* ---- elements in runs ---- */

static void copy(char *to, const char *from, size_t n, bool stream)
{
#if defined(__SSE2__)
	size_t skip = (16 - (uintptr_t)to % 16) % 16;

	if (stream && n > 4096) {
		memcpy(to, from, skip);
		to += skip;
		from += skip;
		n -= skip;
		for (; n >= 64; n -= 64, to += 64, from += 64) {
			const __m128i *s = (const __m128i *)(const void *)from;
			__m128i *d = (__m128i *)(void *)to;
			__m128i a = _mm_loadu_si128(s);
			__m128i b = _mm_loadu_si128(s + 1);
			__m128i c = _mm_loadu_si128(s + 2);
			__m128i e = _mm_loadu_si128(s + 3);

			_mm_stream_si128(d, a);
			_mm_stream_si128(d + 1, b);
			_mm_stream_si128(d + 2, c);
			_mm_stream_si128(d + 3, e);
		}
	}
#else
	(void)stream;
#endif
	memcpy(to, from, n);
}

/* Copies to both; to `far` past the caches. */
static void copy_twice(char *near, char *far, const char *from, size_t n)
{
#if defined(__SSE2__)
	size_t skip = (16 - (uintptr_t)far % 16) % 16;

	skip = skip < n ? skip : n;
	memcpy(near, from, skip);
	memcpy(far, from, skip);
	near += skip;
	far += skip;
	from += skip;
	n -= skip;
	for (; n >= 64; n -= 64, near += 64, far += 64, from += 64) {
		const __m128i *s = (const __m128i *)(const void *)from;
		__m128i *d = (__m128i *)(void *)near;
		__m128i *f = (__m128i *)(void *)far;
		__m128i a = _mm_loadu_si128(s), b = _mm_loadu_si128(s + 1);
		__m128i c = _mm_loadu_si128(s + 2), e = _mm_loadu_si128(s + 3);

		__builtin_prefetch(from + 2048);
		_mm_storeu_si128(d, a);
		_mm_storeu_si128(d + 1, b);
		_mm_storeu_si128(d + 2, c);
		_mm_storeu_si128(d + 3, e);
		_mm_stream_si128(f, a);
		_mm_stream_si128(f + 1, b);
		_mm_stream_si128(f + 2, c);
		_mm_stream_si128(f + 3, e);
	}
#endif
	memcpy(near, from, n);
	memcpy(far, from, n);
}

/* The next contiguous elements, at most n; returns their address. */
static char *next_run(ring_strip *s, size_t size, int64_t *n)
{
	const shard_run *r = &s->run[s->k];
	char *at = s->base + (size_t)(r->from + s->done) * size;

	if (*n > r->n - s->done)
		*n = r->n - s->done;
	s->done += *n;
	if (s->done == r->n) {
		s->k++;
		s->done = 0;
	}
	return at;
}

static void gather(ring_strip *s, size_t size, int64_t n, char *to)
{
	while (n > 0) {
		int64_t some = n;
		const char *from = next_run(s, size, &some);

		memcpy(to, from, (size_t)some * size);
		to += (size_t)some * size;
		n -= some;
	}
}

static void scatter(
	ring_strip *s, size_t size, int64_t n, const char *from, bool stream)
{
	while (n > 0) {
		int64_t some = n;
		char *to = next_run(s, size, &some);

		copy(to, from, (size_t)some * size, stream);
		from += (size_t)some * size;
		n -= some;
	}
}

/* The index in the array after the last of the next n elements. */
static int64_t reach(const ring_strip *s, int64_t n)
{
	int64_t done = s->done;
	int32_t k = s->k;

	for (; n > s->run[k].n - done; k++) {
		n -= s->run[k].n - done;
		done = 0;
	}
	return s->run[k].from + done + n;
}

/* ---- chunks ---- */

typedef struct moving {
	const shard_ring *r;
	shard_link *l;
	env *e;
	const shard_elems *of;
	int64_t per_chunk; /* elements */
	bool stream, sums;
	char *scratch; /* of two chunks */
	char what[WHAT];
	int64_t other; /* a process that this one waits for */
} moving;

static bool has_room(lane *q)
{
	return atomic_load_explicit(&q->made, memory_order_relaxed) -
		atomic_load_explicit(&q->used, memory_order_acquire) < CHUNKS;
}

static bool has_chunk(lane *q)
{
	return atomic_load_explicit(&q->made, memory_order_acquire) !=
		atomic_load_explicit(&q->used, memory_order_relaxed);
}

static void head_chunk(const moving *m, lane *q, uint64_t number, int64_t n)
{
	heading *h = &q->head[number % CHUNKS];

	memcpy(h->what, m->what, WHAT);
	h->n = (uint64_t)n * m->of->size;
	h->address = 0;
}

static void check_head(const moving *m, lane *q, int64_t from, int64_t n)
{
	uint64_t number = atomic_load_explicit(&q->used, memory_order_relaxed);
	heading *at = &q->head[number % CHUNKS], h;
	size_t bytes = (size_t)n * m->of->size;
	char text[300];

	if (at->n == bytes && memcmp(at->what, m->what, WHAT) == 0)
		return;
	h = *at;
	h.what[WHAT - 1] = '\0';
	snprintf(text, sizeof text,
		"process %lld expects %zu bytes in %s, process %lld sends %llu "
		"in %s",
		(long long)m->r->rank, bytes, m->of->what, (long long)from,
		(unsigned long long)h.n, h.what);
	m->l->stop(m->l, text);
	env_fail(m->e, TN_EPEER, "shard.link", (loc){0}, "%s", text);
}

static const char *first_chunk(const moving *m, lane *q)
{
	return chunk_at(m->r, q,
		atomic_load_explicit(&q->used, memory_order_relaxed));
}

static const heading *first_head(const lane *q)
{
	return &q->head[atomic_load_explicit(&q->used, memory_order_relaxed) %
		CHUNKS];
}

static void let_go(lane *q)
{
	atomic_store_explicit(&q->used,
		atomic_load_explicit(&q->used, memory_order_relaxed) + 1,
		memory_order_release);
}

/* ---- flows ---- */

static bool is_ahead(const ring_flow *f, int64_t n)
{
	return f->behind == NULL || f->behind->at == f->behind->n ||
		reach(&f->from, n) <= f->behind->at;
}

/* Is its address sent, instead of its elements? */
static bool is_direct(const moving *m, const ring_flow *f)
{
	return m->r->direct && f->from.n == 1 && f->to.base == NULL &&
		(size_t)f->n * m->of->size >=
		(m->sums ? DIRECT_SUM_BYTES : DIRECT_BYTES);
}

/* Sends the address at first, then waits until the elements are read. */
static bool step_tell(moving *m, ring_flow *f, lane *q)
{
	uint64_t number = atomic_load_explicit(
		&q->made, memory_order_relaxed);
	const shard_run *run = f->from.run;

	if (f->told) {
		if (atomic_load_explicit(&q->used, memory_order_acquire) !=
			number)
			return false;
		f->at = f->n;
		return true;
	}
	if (!has_room(q) ||
		(f->behind != NULL && f->behind->at < f->behind->n))
		return false;
	head_chunk(m, q, number, f->n);
	q->head[number % CHUNKS].address =
		(uint64_t)(uintptr_t)(f->from.base +
			(size_t)run->from * m->of->size);
	atomic_store_explicit(&q->made, number + 1, memory_order_release);
	f->told = true;
	return true;
}

static bool step_send(moving *m, ring_flow *f, int64_t n)
{
	lane *q = lane_at(m->r, m->r->rank, f->peer, f->lane);
	uint64_t number;

	if (is_direct(m, f))
		return step_tell(m, f, q);
	if (!is_ahead(f, n) || !has_room(q))
		return false;
	number = atomic_load_explicit(&q->made, memory_order_relaxed);
	if (f->to.base != NULL) {
		char *from = next_run(&f->from, m->of->size, &n);

		copy_twice(chunk_at(m->r, q, number),
			next_run(&f->to, m->of->size, &n), from,
			(size_t)n * m->of->size);
	} else {
		gather(&f->from, m->of->size, n, chunk_at(m->r, q, number));
	}
	if (f->at == 0)
		head_chunk(m, q, number, f->n);
	atomic_store_explicit(&q->made, number + 1, memory_order_release);
	return true;
}

static void read_from(moving *m, int64_t p, uint64_t address, void *to,
	size_t n)
{
	if (read_memory(m->r, p, address, to, n))
		return;
	m->l->stop(m->l, "a process has ended");
	env_fail(m->e, TN_EPEER, "shard.link", (loc){0},
		"process %lld in %s: process %lld has ended",
		(long long)m->r->rank, m->of->what, (long long)p);
}

/* Reads all elements from the memory of the sender. */
static void fetch(moving *m, ring_flow *f, uint64_t address)
{
	size_t size = m->of->size;

	while (f->at < f->n) {
		int64_t some = f->n - f->at;
		char *to = next_run(&f->to, size, &some);

		read_from(m, f->peer, address, to, (size_t)some * size);
		address += (uint64_t)some * size;
		f->at += some;
	}
}

static bool step_take(moving *m, ring_flow *f, int64_t n)
{
	lane *q = lane_at(m->r, f->peer, m->r->rank, f->lane);

	if (!has_chunk(q))
		return false;
	if (f->at == 0)
		check_head(m, q, f->peer, f->n);
	if (f->at == 0 && first_head(q)->address != 0) {
		fetch(m, f, first_head(q)->address);
		let_go(q);
		return true;
	}
	scatter(&f->to, m->of->size, n, first_chunk(m, q), m->stream);
	let_go(q);
	return true;
}

static bool step_copy(moving *m, ring_flow *f, int64_t n)
{
	if (!is_ahead(f, n))
		return false;
	while (n > 0) {
		int64_t some = n;
		const char *from = next_run(&f->from, m->of->size, &some);

		scatter(&f->to, m->of->size, some, from, m->stream);
		n -= some;
	}
	return true;
}

/* Have the next parts of all members arrived? */
static bool all_are_there(moving *m, const ring_flow *f)
{
	for (int64_t i = 0; i < f->n_members; i++) {
		int64_t p = f->member[i];
		lane *q = lane_at(m->r, p, m->r->rank, f->lane);

		if (p == m->r->rank)
			continue;
		m->other = p;
		if (!has_chunk(q))
			return false;
		if (f->at > 0)
			continue;
		check_head(m, q, p, f->n);
		f->address[i] = first_head(q)->address;
	}
	return true;
}

/* The address of n elements of the part of member i, perhaps copied to `at`. */
static const char *part_of(moving *m, const ring_flow *f, int64_t i, int64_t n,
	char *at)
{
	size_t size = m->of->size;
	int64_t p = f->member[i];

	if (f->address[i] == 0)
		return first_chunk(m, lane_at(m->r, p, m->r->rank, f->lane));
	read_from(m, p, f->address[i] + (uint64_t)f->at * size, at,
		(size_t)n * size);
	return at;
}

/* Adds up a chunk, when all parts of it have arrived. */
static bool step_sum(moving *m, ring_flow *f, int64_t n)
{
	size_t size = m->of->size;
	int64_t some = n;
	const char *own;
	char *to = f->to.base + (size_t)f->at * size;

	if (!all_are_there(m, f))
		return false;
	if (f->from.done + n <= f->from.run[f->from.k].n) {
		own = next_run(&f->from, size, &some);
	} else {
		gather(&f->from, size, n, m->scratch);
		own = m->scratch;
	}
	for (int64_t i = 0; i < f->n_members; i++) {
		bool is_own = f->member[i] == m->r->rank;
		lane *q = lane_at(m->r, f->member[i], m->r->rank, f->lane);
		char *at = i == 0 ? to : m->scratch + m->r->chunk;
		const char *part = is_own ? own : part_of(m, f, i, n, at);

		if (i == 0 && part != to)
			memcpy(to, part, (size_t)n * size);
		else if (i > 0)
			m->of->combine(m->of->arg, n, to, part);
		if (!is_own && (f->address[i] == 0 || f->at + n == f->n))
			let_go(q);
	}
	return true;
}

static bool step(moving *m, ring_flow *f)
{
	int64_t n = f->n - f->at;
	bool moved = false;

	if (n == 0)
		return false;
	if (n > m->per_chunk)
		n = m->per_chunk;
	m->other = f->peer;
	switch (f->kind) {
	case RING_SEND:
		moved = step_send(m, f, n);
		break;
	case RING_TAKE:
		moved = step_take(m, f, n);
		break;
	case RING_COPY:
		moved = step_copy(m, f, n);
		break;
	case RING_SUM:
		moved = step_sum(m, f, n);
		break;
	}
	/* flows with addresses update `at` themselves */
	if (moved && !f->told && f->at < f->n)
		f->at += n;
	return moved;
}

static void relax(void)
{
#if defined(__SSE2__)
	_mm_pause();
#endif
}

bool shard_ring_streams(int64_t elems, size_t size)
{
	return (size_t)elems * size >= STREAM_BYTES;
}

void shard_ring_run(const shard_ring *r, arena *a, shard_link *l,
	const shard_elems *of, int64_t elems, int32_t n, ring_flow *flow)
{
	moving m = {.r = r, .l = l, .e = arena_env(a), .of = of, .other = -1};
	int64_t began = 0, turn = 0;
	int32_t left = 0;

	m.per_chunk = (int64_t)(r->chunk / of->size);
	m.stream = shard_ring_streams(elems, of->size);
	for (size_t i = 0; i < WHAT - 1 && of->what[i] != '\0'; i++)
		m.what[i] = of->what[i];
	for (int32_t i = 0; i < n; i++) {
		left += flow[i].n > 0;
		/* four rings of them at once in a cache */
		if (flow[i].kind != RING_SUM)
			continue;
		m.sums = true;
		m.per_chunk = (int64_t)(r->chunk / 2 / of->size);
		m.scratch = r->scratch != NULL
			? r->scratch
			: arena_alloc(a, 2 * r->chunk, 1);
	}
	while (left > 0) {
		bool any = false;

		for (int32_t i = 0; i < n; i++) {
			if (!step(&m, &flow[i]))
				continue;
			any = true;
			left -= flow[i].at == flow[i].n;
		}
		turn = any ? 0 : turn + 1;
		if (any)
			shard_pulse_came(l);
		if (any)
			began = 0;
		else if (turn < r->spins)
			relax();
		else
			l->idle(l, m.e, turn - r->spins, &began, m.other, of->what);
	}
	shard_pulse_waits(l, false);
#if defined(__SSE2__)
	_mm_sfence();
#endif
}
