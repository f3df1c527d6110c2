/*
 * test_mpi.c: the same moves by four real processes, under mpirun; and how
 * they end when one of them ends, stops or does something else. Skipped, with
 * the reason, where there is no MPI.
 */
#include "reshard_case.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N_PROCESSES = 4, SKIP = 77, PATIENCE_MS = 1500 };

/* ---- one of the four ---- */

static void moves(arena *a, shard_link *l)
{
	uint64_t r = 5;

	for (int32_t i = 0; i < 60; i++) {
		struct trial t;

		do
			draw_trial(arena_env(a), &r, l->size(l), &t);
		while (t.size != l->size(l));
		one_move(a, l, &t);
		if (t.wrong[l->rank(l)])
			env_bug(arena_env(a), "test", "move %d is wrong", i);
	}
	l->agree(l, arena_env(a), r, "the number of draws");
}

static void large(arena *a, shard_link *l)
{
	struct trial t = {.mesh = {.n = 1, .extent = {l->size(l)}},
		.size = l->size(l)};
	int64_t shape[2] = {1000, 301};

	t.from = t.to = shard_replicated(shape[0] * shape[1]);
	shard_cut(arena_env(a), &t.from, &t.mesh, 2, shape, 0, 0, 0);
	shard_cut(arena_env(a), &t.to, &t.mesh, 2, shape, 1, 0, 0);
	one_move(a, l, &t);
	if (t.wrong[l->rank(l)])
		env_bug(arena_env(a), "test", "the large move is wrong");
}

/* Through rings where there are any: who has most is late. */
static void move_slowly(arena *a, shard_link *l)
{
	struct trial t = {.mesh = {.n = 1, .extent = {l->size(l)}},
		.size = l->size(l)};
	int64_t shape[2] = {40, 30};

	t.from = t.to = shard_replicated(shape[0] * shape[1]);
	shard_cut(arena_env(a), &t.from, &t.mesh, 2, shape, 0, 0, 0);
	if (l->rank(l) == 2)
		sleep(PATIENCE_MS * 2 / 1000 + 1);
	one_move(a, l, &t);
	if (t.wrong[l->rank(l)])
		env_bug(arena_env(a), "test", "the late move is wrong");
}

/* Through rings, and out of each other's memory. */
static void longer(arena *a, shard_link *l)
{
	long_moves(a, l, 250);
	long_moves(a, l, 4001);
}

static void one_dies(arena *a, shard_link *l)
{
	l->barrier(l, arena_env(a), "the start");
	if (l->rank(l) == 2)
		_exit(3);
	l->barrier(l, arena_env(a), "step 2");
}

static void one_stops(arena *a, shard_link *l)
{
	if (l->rank(l) == 1) {
		l->stop(l, "process 1 has no memory in step 7");
		env_fail(arena_env(a), TN_ENOMEM, "memory", (loc){0}, "none");
	}
	l->barrier(l, arena_env(a), "step 7");
}

static void one_differs(arena *a, shard_link *l)
{
	double x = 0;

	l->broadcast(l, arena_env(a), 0, &x, sizeof x,
		l->rank(l) == 3 ? "sum of h" : "sum of g");
	l->barrier(l, arena_env(a), "after it");
}

static void other_program(arena *a, shard_link *l)
{
	l->agree(l, arena_env(a), l->rank(l) == 3 ? 5 : 6, "the program");
}

/* Computes, or writes to a slow disk, for longer than the others' patience. */
static void one_is_slow(arena *a, shard_link *l)
{
	l->barrier(l, arena_env(a), "the start");
	if (l->rank(l) == 1)
		sleep(PATIENCE_MS * 2 / 1000 + 1);
	l->barrier(l, arena_env(a), "after a long step");
	move_slowly(a, l);
	l->barrier(l, arena_env(a), "the end");
}

/* It lives no more, and cannot say so. */
static void one_is_stopped(arena *a, shard_link *l)
{
	l->barrier(l, arena_env(a), "the start");
	if (l->rank(l) == 1)
		raise(SIGSTOP);
	l->barrier(l, arena_env(a), "step 9");
}

/* All live, and each waits for another. */
static void all_wait(arena *a, shard_link *l)
{
	double x = 0;

	l->barrier(l, arena_env(a), "the start");
	l->receive(l, arena_env(a), (l->rank(l) + 1) % l->size(l), &x, sizeof x,
		"a word");
	l->wait(l, arena_env(a), "a word");
}

/* A process that joins again after its only link has ended is told why not. */
static void joins_again(arena *a, shard_link *l)
{
	l->barrier(l, arena_env(a), "the start");
	l->close(l);
	(void)shard_mpi_link(a, PATIENCE_MS);
}

/* Two links live at the same time; the second outlives the first. */
static void two_links(arena *a, shard_link *l)
{
	shard_link *second = shard_mpi_link(a, PATIENCE_MS);

	moves(a, l);
	moves(a, second);
	l->close(l);
	moves(a, second);
	second->close(second);
}

static const struct {
	const char *name;
	void (*fn)(arena *a, shard_link *l);
	const char *text; /* among what is printed; NULL: all is well */
	bool by_messages;
} jobs[] = {
	{"moves", moves, NULL, false},
	{"large", large, NULL, false},
	{"longer", longer, NULL, false},
	{"dies", one_dies, "", false},
	{"stops", one_stops, "process 1 has no memory in step 7", false},
	{"differs", one_differs, "process 3: sum of h", false},
	{"program", other_program, "the program is not the same", false},
	{"again", joins_again, "MPI has ended in this process", false},
	{"two", two_links, NULL, false},
	{"two_sent", two_links, NULL, true},
	{"slow", one_is_slow, NULL, false},
	{"slow_sent", one_is_slow, NULL, true},
	{"stopped", one_is_stopped, "status -7", false},
	{"stopped_sent", one_is_stopped, "status -7", true},
	{"waits", all_wait, "in a word: nothing from process", false},
	{"waits_sent", all_wait, "in a word: nothing from process", true},
};
enum { N_JOBS = sizeof jobs / sizeof *jobs };

struct child {
	env *e;
	int32_t job;
	shard_link *l;
};

static void child_job(arena *a, void *arg)
{
	struct child *c = arg;

	c->l = shard_mpi_link(a, PATIENCE_MS);
	jobs[c->job].fn(a, c->l);
	c->l->close(c->l);
}

static void child_enter(void *arg)
{
	struct child *c = arg;
	arena *a = arena_new(c->e);

	/* not freed when it throws: the link is told first */
	child_job(a, c);
	arena_free(a);
}

static int child(const char *name)
{
	struct child c = {.e = env_new()};

	while (c.job < N_JOBS && strcmp(jobs[c.job].name, name) != 0)
		c.job++;
	if (c.e == NULL || c.job == N_JOBS)
		return 2;
	if (env_run(c.e, child_enter, &c) == TN_OK) {
		env_free(c.e);
		return 0;
	}
	fprintf(stderr, "%s (status %d)\n", env_diag(c.e)->text,
		(int)env_diag(c.e)->status);
	fflush(stderr);
	if (c.l != NULL)
		c.l->close(c.l);
	return 1;
}

/* ---- the test ---- */

static char self[4000];

/* of another MPI library, where the user says so */
static const char *launcher(void)
{
	const char *own = getenv("TENON_MPIRUN");

	return own != NULL ? own : "mpirun";
}

static void each_job(void **state)
{
	int32_t i = *(int32_t *)*state;
	static char out[100000];
	char command[5000];
	size_t n;
	FILE *f;
	int status;

	snprintf(command, sizeof command, "TENON_SHARD_MEMORY=%s timeout 50 %s -n %d %s %s 2>&1",
		jobs[i].by_messages ? "off" : "on", launcher(), N_PROCESSES, self, jobs[i].name);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(out, 1, sizeof out - 1, f);
	out[n] = '\0';
	status = pclose(f);
	if ((status == 0) != (jobs[i].text == NULL))
		print_message("%s", out);
	assert_int_equal(status == 0, jobs[i].text == NULL);
	/* 124: the time was up, they hung */
	assert_int_not_equal(status >> 8, 124);
	if (jobs[i].text != NULL && strstr(out, jobs[i].text) == NULL)
		fail_msg("no \"%s\" in: %s", jobs[i].text, out);
}

int main(int argc, char **argv)
{
	static int32_t number[N_JOBS];
	struct CMUnitTest tests[N_JOBS];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (argc > 1)
		return child(argv[1]);
	if (n <= 0 || (getenv("TENON_MPIRUN") == NULL &&
			      system("command -v mpirun >/dev/null 2>&1") != 0)) {
		printf("skipped: mpirun is not installed\n");
		return SKIP;
	}
	/* as root in a container, with fewer processors than processes */
	setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
	setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
	setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
	for (int32_t i = 0; i < N_JOBS; i++) {
		number[i] = i;
		tests[i] = (struct CMUnitTest){.name = jobs[i].name,
			.test_func = each_job,
			.initial_state = &number[i]};
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
