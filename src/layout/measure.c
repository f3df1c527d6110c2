/*
 * measure.c: measures the time and the bytes of a move.
 *
 * Consumes two layouts; produces the median time of a move between them, in turns
 * with the function of the MPI library that does the same, if there is one, and
 * the bytes; checks the values, too.
 *
 *     axis 0 on [2] -> replicated     ours, MPI_Allgather, ours, ...
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, madvise */
#include "layout/layout.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { BATCH_BYTES = 4 << 20, MOST_BATCH = 200, MOST_REPEAT = 99 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Memory like that of tensors: with large pages, if available. */
typedef struct mapping {
	void *at;
	size_t n;
} mapping;

static void unmap(void *what)
{
	mapping *m = what;

	if (m->at != MAP_FAILED)
		munmap(m->at, m->n);
}

static float *floats(arena *a, int64_t n)
{
	mapping *m = arena_make(a, mapping);
	const size_t page = (size_t)2 << 20;
	char *at;

	m->n = ((size_t)n * sizeof(float) + 2 * page) / page * page;
	m->at = mmap(NULL, m->n, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	arena_defer(a, unmap, m);
	if (m->at == MAP_FAILED)
		env_fail(arena_env(a), TN_ENOMEM, "memory", (loc){0},
			"no memory for %lld numbers", (long long)n);
	(void)madvise(m->at, m->n, MADV_HUGEPAGE);
	at = m->at;
	at += (page - (uintptr_t)at % page) % page;
	memset(at, 0, (size_t)n * sizeof(float));
	return (float *)(void *)at;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* ---- bytes ---- */

/* The least number of elements that all processes must send. */
static int64_t shard_least(arena *a, const shard_mesh *m, const shard_layout *from,
	uint32_t mask, const shard_layout *to)
{
	int64_t n = 1, least = 0;

	for (int32_t k = 0; k < m->n; k++)
		n *= m->extent[k];
	for (int64_t p = 0; p < n; p++) {
		arena *s = arena_child(a);
		shard_runs have = shard_owned(s, from, m, p);
		shard_runs need = shard_owned(s, to, m, p);
		bool first = true;

		for (int32_t k = 0; k < m->n; k++)
			first &= !(mask >> k & 1) ||
				shard_mesh_at(m, p, k) == 0;
		/* all parts but one are sent to the process that adds them up, and
		 * the sum to the others that need it */
		if (mask != 0)
			least += need.elems + have.elems -
				(first ? 2 * have.elems : 0);
		else
			least += shard_without(s, &need, &have).elems;
		arena_free(s);
	}
	return least;
}

/* ---- one move ---- */

typedef struct trial {
	arena *a;
	shard_link *l;
	shard_measure *w;
	const shard_transfer *t;
	shard_elems elems;
	float *in, *out, *raw_in, *raw_out;
	int64_t n_in, n_out, numel;
	int32_t raw;
} trial;

/* integers, so that sums are exact in any order */
static float part_of(int64_t e, int64_t p)
{
	return (float)(e % 251 + p);
}

static void fill(trial *t, const shard_mesh *m)
{
	int64_t p = t->l->rank(t->l), at = 0;
	shard_runs r = shard_owned(t->a, t->w->from, m, p);

	for (int32_t i = 0; i < r.n; i++)
		for (int64_t e = 0; e < r.at[i].n; e++)
			t->in[at++] = part_of(r.at[i].from + e,
				t->w->mask != 0 ? p : 0);
	for (int64_t i = 0; i < t->n_out; i++)
		t->out[i] = -1;
}

static bool is_right(const trial *t, const shard_mesh *m)
{
	int64_t me = t->l->rank(t->l), size = t->l->size(t->l), at = 0;
	shard_runs r = shard_owned(t->a, t->w->to, m, me);
	int64_t parts = 0, more = 0;

	for (int64_t p = 0; p < size && t->w->mask != 0; p++) {
		bool same = true;

		for (int32_t k = 0; k < m->n; k++)
			same &= t->w->mask >> k & 1 ||
				shard_mesh_at(m, p, k) ==
					shard_mesh_at(m, me, k);
		parts += same;
		more += same ? p : 0;
	}
	if (t->w->mask == 0)
		parts = 1;
	for (int32_t i = 0; i < r.n; i++)
		for (int64_t e = 0; e < r.at[i].n; e++, at++) {
			float one = part_of(r.at[i].from + e, 0);

			if (t->out[at] != one * (float)parts + (float)more)
				return false;
		}
	return true;
}

static double ours(trial *t, int32_t batch)
{
	double began;

	t->l->barrier(t->l, arena_env(t->a), "a measurement");
	began = now();
	for (int32_t i = 0; i < batch; i++) {
		arena *s = arena_child(t->a);

		shard_transfer_run(t->t, s, t->l, &t->elems, t->in, t->out);
		arena_free(s);
	}
	return (now() - began) / batch;
}

static double theirs(trial *t, int32_t batch)
{
	int64_t size = t->l->size(t->l);
	double began;

	t->l->barrier(t->l, arena_env(t->a), "a measurement");
	began = now();
	for (int32_t i = 0; i < batch; i++)
		t->l->raw(t->l, t->raw, t->raw_in, t->raw_out,
			t->raw == SHARD_RAW_ALL_REDUCE ? t->numel
						       : t->numel / size);
	return (now() - began) / batch;
}

/* The MPI function for the move; -1: there is none. */
static int32_t raw_of(const trial *t, const shard_mesh *m)
{
	static const char *const name[] = {"all-gather", "all-reduce",
		"reduce-scatter", "all-to-all"};
	int64_t size = t->l->size(t->l), even = t->numel / size;

	if (t->l->raw == NULL || m->n != 1)
		return -1;
	for (int32_t i = 0; i < 4; i++) {
		if (strcmp(name[i], t->w->name) != 0)
			continue;
		if (i == SHARD_RAW_ALL_REDUCE)
			return i;
		return t->numel % size == 0 &&
				(t->n_in == even || t->n_in == t->numel) &&
				(t->n_out == even || t->n_out == t->numel) &&
				(i != SHARD_RAW_ALL_TO_ALL ||
					even % size == 0)
			? i
			: -1;
	}
	return -1;
}

static void run(trial *t, const shard_mesh *m)
{
	double own[MOST_REPEAT], raw[MOST_REPEAT], both[2] = {0, 0};
	int32_t n = t->w->repeat < MOST_REPEAT ? t->w->repeat : MOST_REPEAT;
	int64_t batch = BATCH_BYTES / (t->numel * 4 + 1) + 1;

	if (batch > MOST_BATCH)
		batch = MOST_BATCH;
	fill(t, m);
	(void)ours(t, 1);
	if (!is_right(t, m))
		env_bug(arena_env(t->a), "shard.move", "%s: wrong values",
			t->w->name);
	if (t->raw >= 0)
		(void)theirs(t, 1);
	for (int32_t i = 0; i < n; i++) {
		own[i] = ours(t, (int32_t)batch);
		if (t->raw >= 0)
			raw[i] = theirs(t, (int32_t)batch);
	}
	qsort(own, (size_t)n, sizeof *own, ascending);
	both[0] = own[n / 2];
	if (t->raw >= 0) {
		qsort(raw, (size_t)n, sizeof *raw, ascending);
		both[1] = raw[n / 2];
	}
	/* process 0 sends its times to all */
	t->l->broadcast(t->l, arena_env(t->a), 0, both, sizeof both, "times");
	t->w->seconds = both[0];
	t->w->raw_seconds = both[1];
}

void shard_measure_run(arena *a, shard_link *l, const shard_mesh *m,
	shard_measure *w)
{
	trial *t = arena_make(a, trial);
	int64_t sent, size = l->size(l), rank = l->rank(l);

	*t = (trial){.a = a, .l = l, .w = w, .numel = w->from->numel};
	w->name = shard_move_name(m, w->from, w->mask, w->to);
	t->t = shard_transfer_new(
		a, m, rank, w->from, w->mask, w->to, w->name);
	t->elems = (shard_elems){.size = sizeof(float),
		.combine = shard_fold(IR_SUM, TN_F32),
		.what = w->name};
	t->n_in = shard_owned(a, w->from, m, rank).elems;
	t->n_out = shard_transfer_elems(t->t);
	t->in = floats(a, t->n_in);
	t->out = floats(a, t->n_out);
	t->raw = raw_of(t, m);
	if (t->raw >= 0) {
		t->raw_in = t->in;
		t->raw_out = floats(a, t->n_out);
	}
	w->sent = 0;
	for (int64_t p = 0; p < size; p++) {
		sent = shard_transfer_sent(t->t);
		l->broadcast(l, arena_env(a), p, &sent, sizeof sent, "bytes");
		w->sent += sent * (int64_t)sizeof(float);
	}
	w->least = shard_least(a, m, w->from, w->mask, w->to) *
		(int64_t)sizeof(float);
	run(t, m);
}
