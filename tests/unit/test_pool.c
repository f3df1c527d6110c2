/* pool and slab: every chunk once, any number of threads, sleep and wake. */
#include "unit.h"

#include "run/run.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N 5000

struct seen {
	_Atomic int32_t times[N];
	_Atomic int32_t bad;
	int32_t n_threads;
	int64_t n;
};

static void mark(void *arg, int64_t chunk, int32_t worker)
{
	struct seen *s = arg;

	if (chunk < 0 || chunk >= s->n || worker < 0 || worker >= s->n_threads)
		atomic_fetch_add(&s->bad, 1);
	else
		atomic_fetch_add(&s->times[chunk], 1);
}

static void once(run_pool *p, struct seen *s, int64_t n)
{
	int64_t i;

	for (i = 0; i < n; i++)
		atomic_store(&s->times[i], 0);
	s->n = n;
	s->n_threads = run_pool_threads(p);
	run_parallel(p, n, mark, s);
	for (i = 0; i < n; i++)
		assert_int_equal(atomic_load(&s->times[i]), 1);
	assert_int_equal(atomic_load(&s->bad), 0);
}

static void each_once(arena *a, void *arg)
{
	static const int32_t threads[] = {1, 2, 3, 8};
	struct seen *s = calloc(1, sizeof *s);
	size_t t;
	int64_t i;

	(void)arg;
	assert_non_null(s);
	for (t = 0; t < 4; t++) {
		run_pool *p = run_pool_new(a, threads[t]);

		assert_int_equal(run_pool_threads(p), threads[t]);
		for (i = 0; i < 40; i++)
			once(p, s, i);
		once(p, s, N);
	}
	free(s);
}

static void test_each_once(void **state)
{
	(void)state;
	assert_int_equal(unit_run(each_once, NULL, 0, NULL), TN_OK);
}

struct total {
	_Alignas(64) int64_t sum; /* of one thread, without atomics */
};

static void add(void *arg, int64_t chunk, int32_t worker)
{
	struct total *t = arg;

	t[worker].sum += chunk + 1;
}

/* small calls, one right after the other: plain memory must be seen */
static void many_calls(arena *a, void *arg)
{
	run_pool *p = run_pool_new(a, *(int32_t *)arg);
	struct total t[8];
	int64_t calls = 20000, i, sum = 0, want = 0;

	memset(t, 0, sizeof t);
	for (i = 0; i < calls; i++) {
		int64_t n = i % 7;

		run_parallel(p, n, add, t);
		want += n * (n + 1) / 2;
	}
	for (i = 0; i < 8; i++)
		sum += t[i].sum;
	assert_int_equal(sum, want);
}

static void test_many_calls(void **state)
{
	int32_t n;

	(void)state;
	for (n = 1; n <= 3; n++)
		assert_int_equal(unit_run(many_calls, &n, 0, NULL), TN_OK);
}

/* longer pauses than the workers spin: they sleep, and are woken */
static void pauses(arena *a, void *arg)
{
	run_pool *p = run_pool_new(a, 2);
	struct timespec gap = {0, 300000};
	struct total t[8];
	int i;

	(void)arg;
	memset(t, 0, sizeof t);
	for (i = 0; i < 200; i++) {
		run_parallel(p, 2, add, t);
		nanosleep(&gap, NULL);
	}
	assert_int_equal(t[0].sum + t[1].sum, 600);
}

static void test_pauses(void **state)
{
	(void)state;
	assert_int_equal(unit_run(pauses, NULL, 0, NULL), TN_OK);
}

static void both(void *arg, int64_t chunk, int32_t worker)
{
	_Atomic int32_t *here = arg;
	time_t end = time(NULL) + 20;

	(void)chunk;
	(void)worker;
	atomic_fetch_add(here, 1);
	while (atomic_load(here) < 2 && time(NULL) < end)
		;
}

/* two chunks do run at the same time */
static void really_parallel(arena *a, void *arg)
{
	run_pool *p = run_pool_new(a, 2);
	_Atomic int32_t here = 0;
	time_t start = time(NULL);

	(void)arg;
	run_parallel(p, 2, both, &here);
	assert_true(time(NULL) - start < 15);
}

static void test_parallel(void **state)
{
	(void)state;
	assert_int_equal(unit_run(really_parallel, NULL, 0, NULL), TN_OK);
}

/* a child process has no workers; its calls still get everything done */
static void forked(arena *a, void *arg)
{
	run_pool *p = run_pool_new(a, 4);
	struct total t[8];
	int status = 1;
	pid_t pid;

	(void)arg;
	memset(t, 0, sizeof t);
	run_parallel(p, 100, add, t);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		memset(t, 0, sizeof t);
		run_parallel(p, 100, add, t);
		_exit(t[0].sum == 5050 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_forked(void **state)
{
	(void)state;
	assert_int_equal(unit_run(forked, NULL, 0, NULL), TN_OK);
}

static void by_env(arena *a, void *arg)
{
	int32_t *n = arg;

	*n = run_pool_threads(run_pool_new(a, 0));
}

static void test_env(void **state)
{
	static const char *const bad[] = {"0", "-3", "two", "2x", "99999"};
	int32_t n = 0;
	tn_diag d;
	size_t i;

	(void)state;
	setenv("TENON_THREADS", "3", 1);
	assert_int_equal(unit_run(by_env, &n, 0, &d), TN_OK);
	assert_int_equal(n, 3);
	for (i = 0; i < sizeof bad / sizeof *bad; i++) {
		setenv("TENON_THREADS", bad[i], 1);
		assert_int_equal(unit_run(by_env, &n, 0, &d), TN_EINVAL);
		assert_string_equal(d.rule, "run.env");
		assert_non_null(strstr(d.text, bad[i]));
	}
	unsetenv("TENON_THREADS");
	assert_int_equal(unit_run(by_env, &n, 0, &d), TN_OK);
	assert_true(n >= 1);
}

static void slabs(arena *a, void *arg)
{
	static const size_t sizes[] = {0, 1, 100, 65535, 65536, 1 << 20,
		(4 << 20) - 1, 4 << 20, (9 << 20) + 5};
	size_t i;

	(void)arg;
	for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		char *p = run_slab(a, sizes[i]);

		assert_int_equal((uintptr_t)p % 64, 0);
		if (sizes[i] >= 4 << 20)
			assert_int_equal((uintptr_t)p % (2 << 20), 0);
		if (sizes[i] > 0) {
			assert_int_equal(p[0] | p[sizes[i] - 1], 0);
			memset(p, 1, sizes[i]);
		}
	}
}

static void too_large(arena *a, void *arg)
{
	run_slab(a, *(size_t *)arg);
}

static void test_slab(void **state)
{
	size_t n;
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(slabs, NULL, 0, &d), TN_OK);
	for (n = (size_t)1 << 47; n; n <<= 1) {
		assert_int_equal(unit_run(too_large, &n, 0, &d), TN_ENOMEM);
		assert_string_equal(d.rule, "run.memory");
	}
	n = SIZE_MAX;
	assert_int_equal(unit_run(too_large, &n, 0, &d), TN_ENOMEM);
}

static void test_no_memory(void **state)
{
	int32_t n = 3;

	(void)state;
	unit_each_alloc_fails(slabs, NULL);
	unit_each_alloc_fails(many_calls, &n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_once),
		cmocka_unit_test(test_many_calls),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_parallel),
		cmocka_unit_test(test_forked),
		cmocka_unit_test(test_env),
		cmocka_unit_test(test_slab),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
