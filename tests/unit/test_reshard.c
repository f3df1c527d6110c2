/*
 * test_reshard.c: moves between random layouts, by processes that are threads:
 * values, bytes against the least that must be sent, and what happens when a
 * process ends, does something else, or has other data.
 */
#include "unit.h"

#include "reshard_case.h"

#include <pthread.h>

#ifndef SHARD_ALL
#define SHARD_ALL 0
#endif

/* ---- processes ---- */

typedef void on_process(arena *a, shard_link *l, void *arg);

struct process {
	pthread_t thread;
	shard_link *link;
	on_process *fn;
	void *arg;
	env *e;
	arena *a;
	tn_status status;
};

static void enter(void *arg)
{
	struct process *p = arg;

	p->a = arena_new(p->e);
	p->fn(p->a, p->link, p->arg);
}

static void *run(void *arg)
{
	struct process *p = arg;

	p->status = env_run(p->e, enter, p);
	p->link->close(p->link);
	return NULL;
}

/* status and diagnosis of each; envs are freed by the caller's `done` */
static void run_all(int64_t n, int64_t patience, on_process *fn, void *arg,
	tn_status *status, tn_diag *diag)
{
	shard_world *w = shard_world_new(n);
	struct process p[MAX_PROCESSES] = {0};

	assert_non_null(w);
	shard_world_link(w, 0)->patience(shard_world_link(w, 0), patience);
	for (int64_t i = 0; i < n; i++) {
		p[i].link = shard_world_link(w, i);
		p[i].fn = fn;
		p[i].arg = arg;
		p[i].e = env_new();
		assert_int_equal(
			pthread_create(&p[i].thread, NULL, run, &p[i]), 0);
	}
	for (int64_t i = 0; i < n; i++) {
		assert_int_equal(pthread_join(p[i].thread, NULL), 0);
		status[i] = p[i].status;
		diag[i] = *env_diag(p[i].e);
		arena_free(p[i].a);
		env_free(p[i].e);
	}
	shard_world_free(w);
}

/* ---- random moves ---- */

/* What must be sent: whoever lacks an element gets it; of parts, all but one
 * are sent to where they are added up, once for all who need the sum. */
static int64_t least(const struct trial *t)
{
	int64_t n = 0;

	for (int64_t e = 0; e < t->from.numel; e++)
		for (int64_t p = 0; p < t->size; p++)
			n += shard_owns(&t->to, &t->mesh, p, e) &&
				!shard_owns(&t->from, &t->mesh, p, e);
	return n * (int64_t)sizeof(double);
}

static void random_moves(arena *a, void *arg)
{
	uint64_t r = *(uint64_t *)arg;
	int64_t moved = 0;

	for (int32_t i = 0; i < (SHARD_ALL ? 3000 : 150); i++) {
		struct trial t;
		tn_status status[MAX_PROCESSES];
		tn_diag diag[MAX_PROCESSES];

		draw_trial(arena_env(a), &r, DRAWN_PROCESSES, &t);
		run_all(t.size, 20000, one_move, &t, status, diag);
		for (int64_t p = 0; p < t.size; p++) {
			if (status[p] != TN_OK)
				print_message("%s\n", diag[p].text);
			assert_int_equal(status[p], TN_OK);
			assert_false(t.wrong[p]);
		}
		if (t.mask == 0)
			assert_int_equal(atomic_load(&t.sent), least(&t));
		moved += atomic_load(&t.sent);
	}
	assert_true(moved > 1000);
}

static void test_moves(void **state)
{
	uint64_t seed = 1;
	tn_diag d;

	(void)state;
	if (unit_run(random_moves, &seed, 0, &d) != TN_OK)
		fail_msg("%s", d.text);
}

/* Bytes of the usual collectives, exactly. */
static void test_bytes(void **state)
{
	static const struct {
		int32_t from, to; /* axis cut; -1 none */
		uint32_t mask;
		int64_t elems; /* sent by all, of 16 x 8 on 4 */
		const char *name;
	} cases[] = {
		{0, -1, 0, 3 * 128, "all-gather"},
		{-1, 0, 0, 0, "slice"},
		{0, 1, 0, 128 * 3 / 4, "all-to-all"},
		{0, 0, 0, 0, "nothing"},
		{-1, 0, 1, 3 * 128, "reduce-scatter"},
		{-1, -1, 1, 2 * 3 * 128, "all-reduce"},
	};
	int64_t shape[2] = {16, 8};
	env *e = env_new();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct trial t = {.mesh = {.n = 1, .extent = {4}},
			.size = 4,
			.mask = cases[i].mask};
		tn_status status[MAX_PROCESSES];
		tn_diag diag[MAX_PROCESSES];

		t.from = t.to = shard_replicated(128);
		if (cases[i].from >= 0)
			shard_cut(e, &t.from, &t.mesh, 2, shape, cases[i].from,
				0, 0);
		if (cases[i].to >= 0)
			shard_cut(e, &t.to, &t.mesh, 2, shape, cases[i].to, 0,
				0);
		assert_string_equal(shard_move_name(&t.mesh, &t.from, t.mask,
					    &t.to),
			cases[i].name);
		run_all(4, 20000, one_move, &t, status, diag);
		for (int64_t p = 0; p < 4; p++)
			assert_false(status[p] != TN_OK || t.wrong[p]);
		assert_int_equal(atomic_load(&t.sent),
			cases[i].elems * (int64_t)sizeof(double));
	}
	env_free(e);
}

/* More parts than are added up at once. */
static void test_many(void **state)
{
	static const int64_t n[] = {17, 20};
	int64_t shape[2] = {41, 3};
	env *e = env_new();

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct trial t = {.mesh = {.n = 1, .extent = {n[i / 2]}},
			.size = n[i / 2],
			.mask = 1};
		tn_status status[MAX_PROCESSES];
		tn_diag diag[MAX_PROCESSES];

		t.from = t.to = shard_replicated(41 * 3);
		if (i % 2 == 0)
			shard_cut(e, &t.to, &t.mesh, 2, shape, 0, 0, 0);
		run_all(t.size, 20000, one_move, &t, status, diag);
		for (int64_t p = 0; p < t.size; p++)
			assert_false(status[p] != TN_OK || t.wrong[p]);
	}
	env_free(e);
}

static void long_ones(arena *a, shard_link *l, void *arg)
{
	long_moves(a, l, *(int64_t *)arg);
}

/* In many chunks, by 2 and 3 processes, beyond a cache too. */
static void test_long(void **state)
{
	static const int64_t columns[] = {250, 250, 8300};
	static const int64_t n[] = {2, 3, 2};

	(void)state;
	for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
		int64_t c = columns[i];
		tn_status status[MAX_PROCESSES];
		tn_diag diag[MAX_PROCESSES];

		run_all(n[i], 20000, long_ones, &c, status, diag);
		for (int64_t p = 0; p < n[i]; p++)
			if (status[p] != TN_OK)
				fail_msg("%s", diag[p].text);
	}
}

/* ---- what goes wrong ---- */

/* Process 2 ends before a move; or it is in another one than the others. */
static void move_named(arena *a, shard_link *l, const char *what)
{
	shard_mesh m = {.n = 1, .extent = {4}};
	shard_layout from = shard_replicated(64), to = from;
	double data[64] = {0};
	const shard_elems elems = {sizeof *data, sum, NULL, what};
	int64_t shape[1] = {64};

	shard_cut(arena_env(a), &from, &m, 1, shape, 0, 0, 0);
	(void)reshard(a, l, &m, &from, 0, &to, &elems, data, NULL);
}

static void one_does_not_move(arena *a, shard_link *l, void *arg)
{
	(void)arg;
	if (l->rank(l) != 2)
		move_named(a, l, "the weights");
}

static void other_move(arena *a, shard_link *l, void *arg)
{
	(void)arg;
	move_named(a, l, l->rank(l) == 0 ? "sum of g" : "sum of h");
}

static void one_ends(arena *a, shard_link *l, void *arg)
{
	double x = 0;

	(void)arg;
	if (l->rank(l) != 2)
		l->broadcast(l, arena_env(a), 2, &x, sizeof x, "the weights");
}

static void one_throws(arena *a, shard_link *l, void *arg)
{
	(void)arg;
	if (l->rank(l) == 1) {
		l->stop(l, "process 1 has no memory");
		env_fail(arena_env(a), TN_ENOMEM, "memory", (loc){0}, "none");
	}
	l->barrier(l, arena_env(a), "step 3");
}

static void other_operation(arena *a, shard_link *l, void *arg)
{
	double x = 0;

	(void)arg;
	l->broadcast(l, arena_env(a), 0, &x, sizeof x,
		l->rank(l) == 0 ? "sum of g" : "sum of h");
}

static void other_size(arena *a, shard_link *l, void *arg)
{
	double x[2] = {0};

	(void)arg;
	l->broadcast(l, arena_env(a), 0, x,
		(l->rank(l) == 0 ? 1 : 2) * sizeof *x, "x");
}

static void other_program(arena *a, shard_link *l, void *arg)
{
	(void)arg;
	l->agree(l, arena_env(a), 7, "the mesh");
	l->agree(l, arena_env(a), l->rank(l) == 3 ? 5 : 6, "the program");
}

/* Longer than anybody's patience; but it works. */
static void one_is_slow(arena *a, shard_link *l, void *arg)
{
	const struct timespec t = {.tv_nsec = 900000000};

	(void)arg;
	shard_world_enter(l);
	l->barrier(l, arena_env(a), "the start");
	if (l->rank(l) == 1)
		nanosleep(&t, NULL);
	l->barrier(l, arena_env(a), "the first step");
	if (l->rank(l) == 2)
		nanosleep(&t, NULL);
	move_named(a, l, "what comes late");
}

static void test_slow(void **state)
{
	tn_status status[MAX_PROCESSES];
	tn_diag d[MAX_PROCESSES];

	(void)state;
	run_all(4, 300, one_is_slow, NULL, status, d);
	for (int32_t p = 0; p < 4; p++)
		assert_int_equal(status[p], TN_OK);
}

/* Process 0 lives, but does not come before the others have given up. */
static void one_is_missing(arena *a, shard_link *l, void *arg)
{
	char x;

	(void)arg;
	if (l->rank(l) == 0)
		l->receive(l, arena_env(a), 1, &x, 1, "something else");
	if (l->rank(l) == 0)
		l->wait(l, arena_env(a), "something else");
	l->barrier(l, arena_env(a), "step 4");
}

static const struct {
	on_process *fn;
	const char *rule, *text; /* of process 0 */
} failures[] = {
	{one_ends, "shard.link",
		"waits for process 2, which has ended"},
	{one_throws, "shard.link", "process 1 has no memory"},
	{other_operation, "shard.link", "process 0 sends 8 in sum of g"},
	{other_size, "shard.link", "expects 16 bytes in x"},
	{other_program, "shard.differ",
		"the program is not the same on all processes"},
	{one_is_missing, "shard.link", "waits for process"},
	{one_does_not_move, "shard.link",
		"waits for process 2, which has ended"},
	{other_move, "shard.link", "in sum of"},
};

static void test_failures(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
		tn_status status[MAX_PROCESSES];
		tn_diag d[MAX_PROCESSES];
		int32_t told = 0;

		run_all(4, i == 5 ? 300 : 20000, failures[i].fn, NULL, status, d);
		for (int32_t p = 0; p < 4; p++)
			told += status[p] == (i == 4 ? TN_EINVAL : TN_EPEER) &&
				strcmp(d[p].rule, failures[i].rule) == 0 &&
				strstr(d[p].text, failures[i].text) != NULL;
		assert_true(told >= (i == 2 || i == 3 ? 1 : 3));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
