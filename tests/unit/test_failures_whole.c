/*
 * A step that fails is undone whole, or stays whole: without memory, also while it is
 * recorded, without a compiler, and whoever is looked at first.
 */
#include "failing.h"

#include <limits.h>
#include <malloc.h>

/* ---- who is looked at first ---- */

/*
 * Whoever is looked at first sees that the step fails: its counters do not
 * count it, though they depend on nothing that does.
 */
static void counters(void **state)
{
	static const char *const names[] = {"counted", "sgd_momentum", "adamw",
		"in pieces", "then a region", "adamw, compiled",
		"in pieces, compiled"};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		net t = {.c = context(true)};
		int kind = 0;
		double was, is;

		while (strcmp(steps[kind].name, names[i]) != 0)
			kind++;
		t = net_new(t.c, kind, false);
		record(&t, kind, good[0]);
		was = t.o ? (double)tn_optimizer_steps(t.o) : tn_item(t.count);
		assert_true(t.o == NULL || was == 1);
		record(&t, kind, bad);
		is = t.o ? (double)tn_optimizer_steps(t.o) : tn_item(t.count);
		assert_int_equal(tn_context_status(t.c), TN_ERANGE);
		tn_context_clear(t.c);
		if (t.o == NULL)
			is = tn_item(t.count);
		if (is != was)
			fail_msg("%s: %g steps, not %g", names[i], is, was);
		record(&t, kind, good[1]);
		assert_true(t.o == NULL || tn_optimizer_steps(t.o) == 2);
		assert_int_equal(tn_context_status(t.c), TN_OK);
		net_free(&t);
		tn_context_free(t.c);
	}
}

/* ---- no memory, no compiler ---- */

static long n_calls, fail_at, fail_until;

static void *resize(void *arg, void *old, size_t n)
{
	(void)arg;
	if (n == 0) {
		free(old);
		return NULL;
	}
	n_calls++;
	return n_calls >= fail_at && n_calls < fail_until ? NULL
							   : realloc(old, n);
}

static int n_undone, n_waiting;

static bool is_same(const snapshot *x, const snapshot *y)
{
	return memcmp(x->at, y->at, sizeof x->at) == 0 &&
	       x->n_steps == y->n_steps;
}

/*
 * Allocation number n of the evaluation fails, and perhaps all behind it;
 * false: there are fewer. The step is undone whole, or still waits whole and
 * runs when it is looked at: it has not begun, or there was no memory left to
 * find out what it wrote.
 */
static bool without_memory(int kind, bool interp, long n, bool once,
	const snapshot *want)
{
	tn_options o = TN_OPTIONS_INIT;
	snapshot before, now;
	tn_context *c;
	tn_status s;
	net t;

	o.interp = interp;
	o.memory.resize = resize;
	fail_until = 0;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	t = net_new(c, kind, false);
	record(&t, kind, good[0]);
	take(&t, &before);
	tn_drop(t.loss);
	record(&t, kind, good[1]);
	n_calls = 0;
	fail_at = n;
	fail_until = once ? n + 1 : LONG_MAX;
	s = tn_eval(t.state, t.n_state);
	fail_until = 0;
	if (s < 0) {
		assert_int_equal(s, TN_ENOMEM);
		tn_context_clear(c);
		take(&t, &now);
		if (!is_same(&now, want)) {
			same(&now, &before, steps[kind].name,
				"without memory");
			record(&t, kind, good[1]);
			n_undone++;
		} else {
			n_waiting++;
		}
	}
	take(&t, &now);
	same(&now, want, steps[kind].name, "again with memory");
	net_free(&t);
	tn_context_free(c);
	return s < 0;
}

static void memory(void **state)
{
	static const char *const names[] = {"by hand", "counted", "adamw",
		"scan", "cond", "in pieces", "then a region",
		"pieces and back", "written first, compiled",
		"while, compiled", "in pieces, compiled"};
	snapshot want;
	net t;

	(void)state;
	for (int k = 0; k < N_STEPS; k++)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			if (strcmp(names[i], steps[k].name) != 0)
				continue;
			t = net_new(context(true), k, false);
			record(&t, k, good[0]);
			take(&t, &want);
			record(&t, k, good[1]);
			take(&t, &want);
			net_free(&t);
			tn_context_free(t.c);
			for (int once = 0; once < 2; once++) {
				long n = 1;

				n_undone = n_waiting = 0;
				while (without_memory(
					k, true, n, once, &want))
					n += 1 + n / 16;
				assert_true(n > 20);
				/* it is the rule, where there is memory */
				assert_true(!once ||
					n_undone > 4 * n_waiting);
			}
		}
}

/* ---- a step that is not recorded whole ---- */

enum { MANY = 120 };

typedef struct many {
	tn_context *c;
	tn_optimizer *o;
	tn_tensor *p[MANY];
} many;

static many many_new(tn_context *c)
{
	many m = {.c = c};

	assert_int_equal(tn_optimizer_new(&m.o, c, "adamw", NULL), TN_OK);
	for (int i = 0; i < MANY; i++) {
		m.p[i] = tn_parameter(c, "p", TN_F32, 1, (int64_t[]){WIDTH},
			start + i % WORDS);
		assert_int_equal(tn_optimizer_add(m.o, m.p[i]), TN_OK);
	}
	return m;
}

/* The sum of squares goes down. */
static void many_step(const many *m)
{
	tn_tensor *loss = f32(m->c, 0);

	tn_scope_enter(m->c);
	for (int i = 0; i < MANY; i++)
		loss = tn_add(loss, sum(tn_mul(m->p[i], m->p[i])));
	tn_backward(loss, NULL);
	tn_optimizer_step(m->o);
	tn_scope_leave(m->c);
}

static void many_take(const many *m, double *at)
{
	assert_int_equal(tn_eval(m->p, MANY), TN_OK);
	for (int i = 0; i < MANY; i++)
		at[i] = tn_item(sum(m->p[i]));
	at[MANY] = (double)tn_optimizer_steps(m->o);
	assert_int_equal(tn_context_status(m->c), TN_OK);
}

/* Allocation number n of the second step fails, and perhaps all behind it: nothing
 * of the step is left, and it can be taken again. False: there are fewer. */
static bool half_recorded(long n, bool once, const double *first, const double *second)
{
	tn_options o = TN_OPTIONS_INIT;
	double now[MANY + 1];
	bool failed;
	many m;

	o.interp = true;
	o.memory.resize = resize;
	fail_until = 0;
	assert_int_equal(tn_context_new(&m.c, &o), TN_OK);
	m = many_new(m.c);
	many_step(&m);
	many_take(&m, now);
	assert_memory_equal(now, first, sizeof now);
	assert_int_equal(tn_step_enter(m.c), TN_OK);
	n_calls = 0;
	fail_at = n;
	fail_until = once ? n + 1 : LONG_MAX;
	many_step(&m);
	fail_until = 0;
	failed = tn_context_status(m.c) < 0;
	assert_int_equal(tn_step_leave(m.c), TN_OK);
	if (failed) {
		assert_int_equal(tn_context_status(m.c), TN_ENOMEM);
		tn_context_clear(m.c);
		many_take(&m, now);
		assert_memory_equal(now, first, sizeof now);
		many_step(&m);
	}
	many_take(&m, now);
	assert_memory_equal(now, second, sizeof now);
	tn_optimizer_free(m.o);
	tn_context_free(m.c);
	return failed;
}

static void recording(void **state)
{
	double first[MANY + 1], second[MANY + 1];
	many m = many_new(context(true));

	(void)state;
	many_step(&m);
	many_take(&m, first);
	many_step(&m);
	many_take(&m, second);
	tn_optimizer_free(m.o);
	tn_context_free(m.c);
	for (int once = 0; once < 2; once++) {
		long n = 1;

		while (half_recorded(n, once, first, second))
			n++;
		assert_true(n > 8);
	}
}

/* Bytes that are not given back. */
static size_t n_live;

static void *counted_resize(void *arg, void *old, size_t n)
{
	size_t was = malloc_usable_size(old);
	void *p = n > 0 ? realloc(old, n) : NULL;

	(void)arg;
	if (n == 0)
		free(old);
	if (n == 0 || p != NULL)
		n_live += malloc_usable_size(p) - was;
	return p;
}

static void no_compiler(void **state)
{
	const char *was = getenv("TENON_CC");
	char *copy = was != NULL ? strdup(was) : NULL;
	tn_options o = TN_OPTIONS_INIT;
	snapshot before, now;
	size_t after_some = 0;
	tn_context *c;
	net t;

	(void)state;
	setenv("TENON_CC", "/bin/false", 1);
	o.cache_dir = "";
	o.memory.resize = counted_resize;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	t = net_new(c, 0, false);
	take(&t, &before);
	for (int i = 0; i < 12; i++) {
		record(&t, 0, good[i % 2]);
		tn_drop(t.loss);
		assert_int_equal(
			tn_eval(t.state, t.n_state), TN_ECOMPILE);
		tn_context_clear(c);
		take(&t, &now);
		same(&now, &before, "by hand", "without a compiler");
		assert_int_equal(tn_set_data(t.w, start, sizeof start), TN_OK);
		if (i == 3)
			after_some = n_live;
	}
	/* a program that was not compiled leaves nothing */
	assert_true(n_live < after_some + 4096);
	if (copy != NULL)
		setenv("TENON_CC", copy, 1);
	else
		unsetenv("TENON_CC");
	free(copy);
	net_free(&t);
	tn_context_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters),
		cmocka_unit_test(memory),
		cmocka_unit_test(recording),
		cmocka_unit_test(no_compiler),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
