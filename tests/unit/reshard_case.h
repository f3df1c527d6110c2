/*
 * reshard_case.h: a random move between layouts, and what a process does in it;
 * the same on threads (test_reshard.c) and under mpirun (test_mpi.c).
 */
#ifndef RESHARD_CASE_H
#define RESHARD_CASE_H

#include "unit.h"

#include "layout/layout.h"

#include <stdatomic.h>

enum { MAX_PROCESSES = 8 };

static inline uint64_t next(uint64_t *r)
{
	*r = *r * 6364136223846793005u + 1442695040888963407u;
	return *r >> 33;
}

static inline int64_t below(uint64_t *r, int64_t n)
{
	return (int64_t)(next(r) % (uint64_t)n);
}

struct trial {
	shard_mesh mesh;
	int64_t size;
	shard_layout from, to;
	uint32_t mask;
	atomic_llong sent;
	bool wrong[MAX_PROCESSES];
};

static inline shard_layout draw_layout(env *e, uint64_t *r, const shard_mesh *m,
	int32_t rank, const int64_t *shape, uint32_t leave)
{
	int64_t numel = 1;
	shard_layout l;

	for (int32_t k = 0; k < rank; k++)
		numel *= shape[k];
	l = shard_replicated(numel);
	for (int32_t i = 0; i < m->n; i++) {
		int32_t k = (int32_t)below(r, rank);
		int64_t n = shape[k], p = m->extent[i], block = 0;

		if (leave >> i & 1 || below(r, 3) == 0)
			continue;
		if (l.n == 0 && below(r, 2) == 0)
			block = (n + p - 1) / p + below(r, 2);
		shard_cut(e, &l, m, rank, shape, k, i, block);
	}
	return l;
}

/* f64 elements: their number, plus what each part adds */
static inline void sum(void *arg, int64_t n, void *far, const void *with)
{
	double *x = far;
	const double *y = with;

	(void)arg;
	for (int64_t i = 0; i < n; i++)
		x[i] += y[i];
}

static inline double part_of(const struct trial *t, int64_t p, int64_t e)
{
	return (double)(e + 1) * (t->mask == 0 ? 1 : (double)(p + 1));
}

static inline double whole(const struct trial *t, int64_t p, int64_t e)
{
	double v = 0;

	for (int64_t q = 0; q < t->size; q++) {
		bool same = true;

		for (int32_t k = 0; k < t->mesh.n; k++)
			same &= t->mask >> k & 1 ||
				shard_mesh_at(&t->mesh, p, k) ==
					shard_mesh_at(&t->mesh, q, k);
		if (same)
			v += part_of(t, q, e);
	}
	return t->mask == 0 ? part_of(t, 0, e) : v;
}

/* Moves elements once; returns the new local data. sent: gets the bytes that this
 * process sent; may be NULL. */
static inline void *reshard(arena *a, shard_link *l, const shard_mesh *m,
	const shard_layout *from, uint32_t mask, const shard_layout *to,
	const shard_elems *e, const void *data, int64_t *sent)
{
	arena *scratch = arena_child(a);
	int64_t n = shard_mesh_size(arena_env(a), m);
	shard_transfer *t;
	void *out;

	if (n != l->size(l))
		env_fail(arena_env(a), TN_EINVAL, "shard.mesh", (loc){0},
			"the mesh has %lld processes, but %lld are running",
			(long long)n, (long long)l->size(l));
	t = shard_transfer_new(
		scratch, m, l->rank(l), from, mask, to, e->what);
	out = arena_alloc(a, (size_t)shard_transfer_elems(t) + 1, e->size);
	shard_transfer_run(t, scratch, l, e, data, out);
	if (sent != NULL)
		*sent = shard_transfer_sent(t) * (int64_t)e->size;
	arena_free(scratch);
	return out;
}

static inline void one_move(arena *a, shard_link *l, void *arg)
{
	struct trial *t = arg;
	int64_t p = l->rank(l), sent = 0, at = 0;
	shard_runs own = shard_owned(a, &t->from, &t->mesh, p);
	shard_runs new = shard_owned(a, &t->to, &t->mesh, p);
	double *data = arena_array(a, double, own.elems + 1), *out;
	const shard_elems elems = {sizeof *data, sum, NULL, "a move"};

	for (int32_t i = 0; i < own.n; i++)
		for (int64_t e = 0; e < own.at[i].n; e++)
			data[at++] = part_of(t, p, own.at[i].from + e);
	out = reshard(a, l, &t->mesh, &t->from, t->mask, &t->to,
		&elems, data, &sent);
	atomic_fetch_add(&t->sent, sent);
	at = 0;
	for (int32_t i = 0; i < new.n; i++)
		for (int64_t e = 0; e < new.at[i].n; e++)
			t->wrong[p] |= out[at++] !=
				whole(t, t->mask == 0 ? 0 : p,
					new.at[i].from + e);
}

/*
 * Moves that are longer than a ring and wider than a cache, with a look at the
 * values and at the bytes; the whole of them in f32.
 */
static inline void long_moves(arena *a, shard_link *l, int64_t columns)
{
	static const struct {
		int32_t from, to; /* axis cut; -1 none */
		uint32_t mask;
	} cases[] = {{0, -1, 0}, {-1, -1, 1}, {-1, 0, 1}, {1, -1, 0}, {0, 1, 0},
		{-1, 1, 1}};
	shard_mesh m = {.n = 1, .extent = {l->size(l)}};
	int64_t shape[2] = {1023, columns};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		shard_layout from = shard_replicated(shape[0] * columns);
		shard_layout to = from;
		shard_measure w = {.from = &from, .to = &to, .repeat = 2,
			.mask = cases[i].mask};
		arena *some = arena_child(a);

		if (cases[i].from >= 0)
			shard_cut(arena_env(a), &from, &m, 2, shape,
				cases[i].from, 0, 0);
		if (cases[i].to >= 0)
			shard_cut(arena_env(a), &to, &m, 2, shape,
				cases[i].to, 0, 0);
		shard_measure_run(some, l, &m, &w);
		if (w.sent != w.least || w.seconds <= 0)
			env_fail(arena_env(a), TN_EINTERNAL, "test", (loc){0},
				"%s: %lld bytes, not %lld", w.name,
				(long long)w.sent, (long long)w.least);
		arena_free(some);
	}
}

/* at most so many processes; exactly `most` if that is 4 */
static inline void draw_trial(env *e, uint64_t *r, int64_t most, struct trial *t)
{
	*t = (struct trial){.mesh.n = 1 + (int32_t)below(r, 3)};
	int32_t rank = 1 + (int32_t)below(r, 3);
	int64_t shape[3], left = most;

	t->size = 1;
	for (int32_t k = 0; k < t->mesh.n; k++) {
		t->mesh.extent[k] = 1 + below(r, left < 4 ? left : 4);
		left /= t->mesh.extent[k];
		t->size *= t->mesh.extent[k];
	}
	for (int32_t k = 0; k < rank; k++)
		shape[k] = 1 + below(r, 9);
	if (below(r, 3) == 0)
		t->mask = (uint32_t)below(r, 1 << t->mesh.n);
	t->from = draw_layout(
		e, r, &t->mesh, rank, shape, t->mask);
	t->to = draw_layout(e, r, &t->mesh, rank, shape, 0);
	/* sums that differ from group to group stay in their group */
	for (int32_t k = 0; k < t->mesh.n && t->mask != 0; k++) {
		bool cut = t->mask >> k & 1;

		for (int32_t j = 0; j < t->from.n; j++)
			cut |= t->from.tag[j].mesh == k;
		if (!cut && t->mesh.extent[k] > 1)
			t->mask = 0;
	}
	if (t->mask != 0 && t->from.n > 0)
		t->to = t->from;
}

#endif
