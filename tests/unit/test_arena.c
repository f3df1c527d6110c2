/* arena.c: alignment, zeroes, order of release, and running out of memory. */
#include "unit.h"

static void allocates(arena *a, void *arg)
{
	uint32_t seed = 1;
	struct {
		unsigned char *at;
		size_t n;
	} block[600];

	(void)arg;
	for (size_t i = 0; i < 600; i++) {
		seed = seed * 1664525u + 1013904223u;
		block[i].n = seed >> 24;
		if (i % 50 == 49)
			block[i].n *= 1000;
		block[i].at = arena_alloc(a, block[i].n, 1);
		assert_int_equal((uintptr_t)block[i].at % 16, 0);
		for (size_t j = 0; j < block[i].n; j++)
			assert_int_equal(block[i].at[j], 0);
		memset(block[i].at, (int)(i % 251 + 1), block[i].n);
	}
	for (size_t i = 0; i < 600; i++)
		for (size_t j = 0; j < block[i].n; j++)
			assert_int_equal(block[i].at[j], i % 251 + 1);
	assert_true(arena_bytes(a) >= 600 * 100);
}

static void test_alloc(void **state)
{
	(void)state;
	assert_int_equal(unit_run(allocates, NULL, 0, NULL), TN_OK);
	unit_each_alloc_fails(allocates, NULL);
}

static void asks_too_much(arena *a, void *arg)
{
	arena_alloc(a, ((size_t *)arg)[0], ((size_t *)arg)[1]);
}

static void test_too_much(void **state)
{
	static size_t cases[][2] = {
		{SIZE_MAX, 1},
		{SIZE_MAX, SIZE_MAX},
		{SIZE_MAX / 2 + 2, 2},
		{SIZE_MAX - 7, 1},
		{(size_t)1 << 62, 1},
	};
	tn_diag d;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(
			unit_run(asks_too_much, cases[i], 0, &d), TN_ENOMEM);
	assert_non_null(strstr(d.text, "4611686018427387904 elements"));
}

static char order[16];

static void note(void *what)
{
	size_t n = strlen(order);

	order[n] = *(const char *)what;
	order[n + 1] = '\0';
}

static void defers(arena *a, void *arg)
{
	static char name[] = "abcdef";
	arena *child, *other;

	(void)arg;
	arena_defer(a, note, &name[0]);
	child = arena_child(a);
	other = arena_child(a);
	arena_defer(child, note, &name[1]);
	arena_defer(arena_child(child), note, &name[2]);
	arena_defer(other, note, &name[3]);
	arena_defer(other, note, &name[4]);
	arena_defer(a, note, &name[5]);
	arena_free(other); /* ed */
	arena_free(NULL);
}

static void test_defer(void **state)
{
	tn_status status = TN_ENOMEM;

	(void)state;
	order[0] = '\0';
	assert_int_equal(unit_run(defers, NULL, 0, NULL), TN_OK);
	assert_string_equal(order, "edcbfa");
	/* allocation 1 is the arena, 2 is for the first to be deferred */
	order[0] = '\0';
	assert_int_equal(unit_run(defers, NULL, 2, NULL), TN_ENOMEM);
	assert_string_equal(order, "a");
	/* whatever was handed over is released, once, also when memory ends */
	for (int64_t n = 1; status != TN_OK; n++) {
		order[0] = '\0';
		status = unit_run(defers, NULL, n, NULL);
		for (const char *c = order; *c != '\0'; c++)
			assert_null(strchr(c + 1, *c));
	}
}

static void copies(arena *a, void *arg)
{
	char *s;

	(void)arg;
	assert_string_equal(arena_strdup(a, "abc"), "abc");
	assert_string_equal(arena_strndup(a, "abcdef", 2), "ab");
	assert_string_equal(arena_strndup(a, NULL, 0), "");
	s = arena_copy(a, "xyz", 3);
	assert_memory_equal(s, "xyz", 3);
	assert_non_null(arena_copy(a, NULL, 0));
	s = arena_printf(a, "%s-%05d%*s", "n", 42, 5000, "");
	assert_int_equal(strlen(s), 5007);
	assert_memory_equal(s, "n-00042 ", 8);
	assert_string_equal(arena_printf(a, "%s", ""), "");
	assert_ptr_equal(arena_env(arena_child(a)), arena_env(a));
}

static void count_down(void *what)
{
	--*(int *)what;
}

/* What is asked for after arena_clear is zeroed, as ever. */
static void test_clear(void **state)
{
	env *e = env_new();
	arena *a = arena_new(e);
	int left = 2;

	(void)state;
	for (int round = 0; round < 3; round++) {
		size_t held;

		for (int i = 1; i < 200; i++) {
			unsigned char *p = arena_alloc(a, (size_t)i * 37, 1);

			for (int k = 0; k < i * 37; k++)
				assert_int_equal(p[k], 0);
			memset(p, 0xee, (size_t)i * 37);
		}
		if (round == 0) {
			arena_defer(a, count_down, &left);
			arena_defer(arena_child(a), count_down, &left);
		}
		held = arena_bytes(a);
		arena_clear(a);
		assert_int_equal(left, 0);
		assert_true(arena_bytes(a) <= held);
	}
	arena_clear(a); /* nothing in it: nothing happens */
	arena_free(a);
	env_free(e);
}

static void test_copy(void **state)
{
	(void)state;
	unit_each_alloc_fails(copies, NULL);
}

static void pushes(arena *a, void *arg)
{
	VEC(int64_t) v = {0};
	const int64_t *before;

	(void)arg;
	for (int32_t i = 0; i < 10000; i++)
		*vec_push(a, &v) = (int64_t)i * i;
	assert_int_equal(v.n, 10000);
	assert_true(v.cap < 40000);
	for (int32_t i = 0; i < v.n; i++)
		assert_int_equal(v.at[i], (int64_t)i * i);
	assert_int_equal(vec_pop(&v), (int64_t)9999 * 9999);
	assert_int_equal(v.n, 9999);
	vec_reserve(a, &v, 50000);
	assert_true(v.cap >= 59999);
	before = v.at;
	for (int32_t i = 0; i < 50000; i++)
		*vec_push(a, &v) = i;
	assert_ptr_equal(before, v.at);
	assert_int_equal(v.at[9998], (int64_t)9998 * 9998);
}

static void overgrows(arena *a, void *arg)
{
	int32_t cap = 0;

	(void)arg;
	vec_grow(a, NULL, INT32_MAX - 3, &cap, 1, 4);
}

static void test_vec(void **state)
{
	(void)state;
	unit_each_alloc_fails(pushes, NULL);
	assert_int_equal(unit_run(overgrows, NULL, 0, NULL), TN_ENOMEM);
}

static void count(void *what)
{
	++*(int *)what;
}

/* arg counts how often the arena of this run has been freed */
static void runs(arena *a, void *arg)
{
	arena_defer(a, count, arg);
	memset(arena_alloc(a, 1000, 1), 1, 1000);
}

static void throws(arena *a, void *arg)
{
	runs(a, arg);
	env_fail_source(arena_env(a), "tn.name", (loc){"x.tn", 1, 2}, "ab", 2,
		"thrown");
}

struct nested {
	void (*fn)(arena *a, void *arg);
	int n_freed;
};

static void run_nested(arena *a, void *arg)
{
	struct nested *n = arg;

	arena_run(arena_env(a), n->fn, &n->n_freed);
	assert_int_equal(n->n_freed, 1);
}

/* Freed on both ways out; what is thrown arrives whole. */
static void test_run(void **state)
{
	struct nested n = {runs, 0};
	tn_diag d;

	(void)state;
	assert_int_equal(unit_run(run_nested, &n, 0, &d), TN_OK);
	n = (struct nested){throws, 0};
	assert_int_equal(unit_run(run_nested, &n, 0, &d), TN_EINVAL);
	assert_int_equal(n.n_freed, 1);
	assert_string_equal(d.rule, "tn.name");
	assert_string_equal(d.text, "thrown");
	assert_string_equal(d.extra, "ab\n ^");
	assert_int_equal(d.column, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alloc),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_defer),
		cmocka_unit_test(test_clear),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_vec),
		cmocka_unit_test(test_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
