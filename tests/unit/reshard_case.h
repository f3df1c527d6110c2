/*
 * reshard_case.h: a random move between layouts, and what a process does in it;
 * the same on threads (test_reshard.c) and under mpirun (test_mpi.c). Each move is
 * also made as between devices (layout/carry.c), by a carrier that sends messages.
 */
#ifndef RESHARD_CASE_H
#define RESHARD_CASE_H

#include "unit.h"

#include "layout/layout.h"

#include <stdatomic.h>

enum { MAX_PROCESSES = 20, DRAWN_PROCESSES = 8 };

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

/* ---- as between devices ---- */

struct ground { /* memory that only these functions access */
	arena *a;
	shard_link *l;
	int64_t sent;
	bool is_ready; /* what adds up */
};

static inline const char *ground_find(void *arg)
{
	(void)arg;
	return "messages";
}

static inline void ground_identify(void *arg, char id[SHARD_CARRIER_ID])
{
	(void)arg;
	memset(id, 7, SHARD_CARRIER_ID);
}

static inline void ground_join(
	void *arg, const char id[SHARD_CARRIER_ID], int64_t rank, int64_t n)
{
	const struct ground *g = arg;

	if (id[5] != 7 || rank != g->l->rank(g->l) || n != g->l->size(g->l))
		env_bug(arena_env(g->a), "test", "another group");
}

static inline void ground_exchange(void *arg, int32_t n, const shard_load *load)
{
	struct ground *g = arg;
	env *e = arena_env(g->a);

	for (int32_t i = 0; i < n; i++) {
		const shard_load *w = &load[i];

		if (w->comes) {
			g->l->receive(g->l, e, w->peer, w->at, w->n, "a load");
			continue;
		}
		g->l->send(g->l, e, w->peer, w->at, w->n, "a load");
		g->sent += (int64_t)w->n;
	}
	g->l->wait(g->l, e, "a load");
}

static inline void ground_leave(void *arg, bool broken)
{
	(void)arg;
	(void)broken;
}

static inline void *ground_room(void *arg, arena *a, size_t n)
{
	(void)arg;
	return memset(arena_alloc(a, n + 1, 1), 0xcb, n + 1);
}

static inline void ground_rows(void *arg, void *to, size_t to_step,
	const void *from, size_t from_step, size_t n, size_t rows)
{
	(void)arg;
	for (size_t i = 0; i < rows; i++)
		memcpy((char *)to + i * to_step,
			(const char *)from + i * from_step, n);
}

static inline void ground_ready(void *arg, const shard_sum *s)
{
	(void)s;
	((struct ground *)arg)->is_ready = true;
}

static inline void ground_sum(
	void *arg, const shard_sum *s, void *const *part, void *const *out)
{
	const struct ground *g = arg;

	if (!g->is_ready)
		env_bug(arena_env(g->a), "test", "nothing is ready");
	for (int32_t k = 0; k < s->n_comp; k++) {
		memcpy(out[k], part[k], (size_t)s->n * sizeof(double));
		for (int32_t i = 1; i < s->n_parts; i++)
			sum(NULL, s->n, out[k], part[i * s->n_comp + k]);
	}
}

/* Two components, of which the second is three times the first; are both right? */
static inline bool carried(arena *a, shard_link *l, const struct trial *t,
	const double *data, int64_t n, const double *right)
{
	struct ground g = {.a = a, .l = l};
	shard_carrier c = {.arg = &g,
		.find = ground_find,
		.identify = ground_identify,
		.join = ground_join,
		.exchange = ground_exchange,
		.leave = ground_leave};
	const shard_device d = {.arg = &g,
		.carrier = &c,
		.room = ground_room,
		.rows = ground_rows,
		.ready = ground_ready,
		.sum = ground_sum};
	shard_transfer *m = shard_transfer_new(
		a, &t->mesh, l->rank(l), &t->from, t->mask, &t->to, "a move");
	int64_t n_out = shard_transfer_elems(m);
	double *more = arena_array(a, double, n + 1);
	double *out[2] = {arena_array(a, double, n_out + 1),
		arena_array(a, double, n_out + 1)};
	const shard_cargo cargo = {.n = 2,
		.dtype = {TN_F64, TN_F64},
		.from = {data, more},
		.to = {out[0], out[1]}};
	bool ok = l->size(l) == 1 || shard_carrier_open(arena_env(a), l, &c);

	for (int64_t i = 0; i < n; i++)
		more[i] = 3 * data[i];
	shard_transfer_carry(m, a, l, &d, &cargo);
	shard_carrier_close(&c);
	for (int64_t i = 0; i < n_out; i++)
		ok &= out[0][i] == right[i] && out[1][i] == 3 * right[i];
	return ok &&
		g.sent == 2 * shard_transfer_sent(m) * (int64_t)sizeof(double);
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
	t->wrong[p] |= !carried(a, l, t, data, own.elems, out);
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
