/*
 * Regions of tensors (tn_while, tn_cond) whose test the device reads, on the driver of
 * tests/fake: the same bits as where the host reads it, and without waiting.
 */
#include "cuda.h"

enum { N = 6 };

typedef struct world {
	tn_context *c;
	tn_tensor *limit, *table, *ids, *cache;
} world;

/* ---- bodies ------------------------------------------------------------ */

static tn_status below(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	const world *w = user;

	(void)c;
	*out = tn_lt(tn_reduce_sum(in[0], NULL, 0, false), w->limit);
	return TN_OK;
}

static tn_status grow(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c, (void)user;
	out[0] = tn_add(tn_add(in[0], in[0]), tn_abs(in[1]));
	out[1] = tn_mul(in[1], tn_cos(in[0]));
	return TN_OK;
}

static tn_status doubled(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c, (void)user;
	out[0] = tn_add(in[0], in[0]);
	return TN_OK;
}

static tn_status cosine(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c, (void)user;
	out[0] = tn_cos(in[0]);
	return TN_OK;
}

/* A branch in each round. */
static tn_status grow_or_not(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	const world *w = user;

	(void)c;
	tn_cond(w->c, tn_lt(tn_reduce_sum(in[1], NULL, 0, false), w->limit),
		doubled, cosine, user, 1, &in[1], 1, &out[1]);
	out[0] = tn_add(tn_add(in[0], in[0]), tn_abs(out[1]));
	return TN_OK;
}

/* A row of a table, by an index from data, in each round. */
static tn_status look_up(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	const world *w = user;

	(void)c;
	out[0] = tn_add(
		in[0], tn_abs(tn_reduce_sum(tn_embedding(w->ids, w->table),
			       (int64_t[]){0}, 1, false)));
	out[1] = in[1];
	return TN_OK;
}

/* It writes what it knows. */
static tn_status cached(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	const world *w = user;

	(void)c;
	tn_add_(w->cache, in[1]);
	out[0] = tn_add(in[0], tn_abs(w->cache));
	out[1] = in[1];
	return TN_OK;
}

/* ---- one world --------------------------------------------------------- */

static tn_tensor *floats(tn_context *c, int32_t from, float step)
{
	const int64_t n = N;
	float data[N];

	for (int32_t i = 0; i < N; i++)
		data[i] = step * (float)((i + from) % 5 + 1);
	return tn_tensor_new(c, TN_F32, 1, &n, data);
}

static void begin_world(world *w, float limit)
{
	static const int64_t ids[3] = {1, 0, 3};
	const int64_t n = 3, shape[2] = {4, N};
	float table[4 * N];

	w->c = context_of_loops();
	for (int32_t i = 0; i < 4 * N; i++)
		table[i] = 0.25f * (float)(i % 7);
	w->limit = tn_tensor_new(w->c, TN_F32, 0, NULL, &limit);
	w->table = tn_tensor_new(w->c, TN_F32, 2, shape, table);
	w->ids = tn_tensor_new(w->c, TN_I64, 1, &n, ids);
	w->cache = floats(w->c, 0, 0.5f);
}

static void good(const world *w)
{
	if (tn_context_status(w->c) < 0)
		fail_msg("%s", tn_context_diag(w->c)->text);
}

/* Several loops, each with other memory, more than a program keeps graphs for. */
static void run_loops(world *w, tn_body *body, float *out)
{
	for (int32_t i = 0; i < 6; i++) {
		tn_tensor *in[2], *to[2];

		in[0] = floats(w->c, i, 0.25f);
		in[1] = floats(w->c, 2 * i, 0.125f);
		tn_while(w->c, below, body, w, 0, 2, in, to);
		good(w);
		assert_int_equal(tn_read(to[0], out, N * sizeof *out), TN_OK);
		assert_int_equal(
			tn_read(to[1], out + N, N * sizeof *out), TN_OK);
		out += 2 * N;
	}
}

static void check_loops(tn_body *body, float limit)
{
	static float device[6 * 2 * N], host[6 * 2 * N];
	tn_device_stats s;
	world w;

	begin_world(&w, limit);
	fake->n_rounds = 0;
	run_loops(&w, body, device);
	tn_context_device_stats(w.c, &s);
	assert_int_equal(s.n_asked, 0);
	assert_true(fake->n_rounds > 0 || limit < 0);
	tn_context_free(w.c);
	setenv("TENON_CUDADEVRT", "/nowhere", 1);
	fake->n_rounds = 0;
	begin_world(&w, limit);
	run_loops(&w, body, host);
	tn_context_device_stats(w.c, &s);
	assert_true(s.n_asked >= 6);
	assert_string_equal(s.asked,
		"/nowhere is not there: install it beside "
		"NVRTC or in /usr/local/cuda, or name it in TENON_CUDADEVRT");
	assert_int_equal(fake->n_rounds, 0);
	tn_context_free(w.c);
	setenv("TENON_CUDADEVRT", FAKE_DEVRT, 1);
	assert_memory_equal(device, host, sizeof device);
}

static void test_loops(void **state)
{
	(void)state;
	for (int32_t early = 0; early < 2; early++) {
		fake->early = early;
		check_loops(grow, 30);
		check_loops(grow, -1); /* without rounds */
		check_loops(grow_or_not, 40);
		check_loops(look_up, 50);
	}
}

/* ---- branches ---------------------------------------------------------- */

static void run_branches(world *w, float out[4][N])
{
	for (int32_t i = 0; i < 4; i++) {
		bool yes = i % 2 == 0;
		tn_tensor *x, *y, *p;

		tn_scope_enter(w->c);
		x = floats(w->c, i, 0.5f);
		p = tn_tensor_new(w->c, TN_BOOL, 0, NULL, &yes);
		tn_cond(w->c, p, doubled, cosine, w, 1, &x, 1, &y);
		y = tn_exp(y);
		good(w);
		assert_int_equal(tn_read(y, out[i], sizeof out[i]), TN_OK);
		tn_scope_leave(w->c);
	}
}

static void test_branches(void **state)
{
	float device[4][N], host[4][N];
	tn_device_stats s;
	int64_t before;
	world w;

	(void)state;
	begin_world(&w, 1);
	run_branches(&w, device);
	tn_context_device_stats(w.c, &s);
	assert_int_equal(s.n_asked, 0);
	assert_int_equal(fake->n_rounds, 4); /* one body each */
	assert_int_equal(fake->n_get, 4);    /* the results */
	tn_context_free(w.c);
	setenv("FAKE_CUDA_VERSION", "12060", 1);
	begin_world(&w, 1);
	tn_context_device_stats(w.c, &s);
	before = s.n_asked;
	run_branches(&w, host);
	tn_context_device_stats(w.c, &s);
	assert_int_equal(s.n_asked - before, 8); /* for each branch */
	tn_context_free(w.c);
	assert_memory_equal(device, host, sizeof device);
}

/* ---- what stays with the host, and what fails -------------------------- */

static void test_writes(void **state)
{
	static float out[6 * 2 * N];
	tn_device_stats s;
	world w;

	(void)state;
	begin_world(&w, 60);
	run_loops(&w, cached, out);
	tn_context_device_stats(w.c, &s);
	assert_true(s.n_asked >= 6);
	assert_string_equal(s.asked, "it writes to a tensor, in its memory");
	assert_int_equal(fake->n_rounds, 0);
	tn_context_free(w.c);
}

/* .. and what is too much to be copied. */
static void test_wide(void **state)
{
	enum { WIDE = 2200000 };
	static float data[WIDE];
	const int64_t n = WIDE;
	tn_tensor *x, *y, *p;
	tn_device_stats s;
	bool yes = true;
	float first[N];
	world w;

	(void)state;
	begin_world(&w, 1);
	for (int32_t i = 0; i < WIDE; i++)
		data[i] = 3;
	x = tn_tensor_new(w.c, TN_F32, 1, &n, data);
	p = tn_tensor_new(w.c, TN_BOOL, 0, NULL, &yes);
	tn_cond(w.c, p, doubled, cosine, &w, 1, &x, 1, &y);
	y = tn_narrow(y, 0, 7, N);
	good(&w);
	assert_int_equal(tn_read(y, first, sizeof first), TN_OK);
	assert_true(first[0] == 6 && first[N - 1] == 6);
	tn_context_device_stats(w.c, &s);
	assert_int_equal(s.n_asked, 1);
	assert_string_equal(s.asked,
		"it makes more than 8 MB, which takes longer to copy");
	tn_context_free(w.c);
}

/* All tensors are as they were; without the bad index all is right. */
static void test_index(void **state)
{
	static const int64_t bad[3] = {1, 4, 0}, right[3] = {1, 3, 0};
	const int64_t n = 3;
	float before[N], after[N];
	tn_tensor *in[2], *out[2];
	world w;

	(void)state;
	begin_world(&w, 50);
	tn_copy_(w.ids, tn_tensor_new(w.c, TN_I64, 1, &n, bad));
	assert_int_equal(tn_eval(&w.ids, 1), TN_OK);
	assert_int_equal(tn_read(w.cache, before, sizeof before), TN_OK);
	in[0] = floats(w.c, 0, 0.25f);
	in[1] = floats(w.c, 1, 0.25f);
	tn_scope_enter(w.c);
	tn_while(w.c, below, look_up, &w, 0, 2, in, out);
	tn_add_(w.cache, out[0]);
	assert_int_equal(tn_eval(&w.cache, 1), TN_ERANGE);
	assert_string_equal(tn_context_diag(w.c)->rule, "index.range");
	assert_int_equal(fake->n_rounds, 1);
	tn_context_clear(w.c);
	tn_scope_leave(w.c);
	assert_int_equal(tn_read(w.cache, after, sizeof after), TN_OK);
	assert_memory_equal(before, after, sizeof after);
	tn_copy_(w.ids, tn_tensor_new(w.c, TN_I64, 1, &n, right));
	tn_while(w.c, below, look_up, &w, 0, 2, in, out);
	good(&w);
	assert_int_equal(tn_read(out[0], after, sizeof after), TN_OK);
	assert_true(fake->n_rounds > 1);
	tn_context_free(w.c);
}

/* Whichever launch is refused: what the loop reads is as it was, and the next try is
 * right. */
static void test_launch(void **state)
{
	static float right[6 * 2 * N], out[6 * 2 * N];
	int32_t failed = 0;
	world w;

	(void)state;
	begin_world(&w, 30);
	run_loops(&w, grow, right);
	tn_context_free(w.c);
	for (int32_t i = 1; i < 60; i++) {
		tn_tensor *in[2], *to[2];
		float first[N];
		bool refused;

		begin_world(&w, 30);
		tn_scope_enter(w.c);
		in[0] = floats(w.c, 0, 0.25f);
		in[1] = floats(w.c, 0, 0.125f);
		tn_while(w.c, below, grow, &w, 0, 2, in, to);
		fake->fail_launch = i;
		refused = tn_eval(to, 2) < 0;
		fake->fail_launch = 0;
		if (refused)
			assert_string_equal(
				tn_context_diag(w.c)->rule, "device.launch");
		failed += refused;
		tn_context_clear(w.c);
		assert_int_equal(tn_read(in[0], first, sizeof first), TN_OK);
		assert_true(first[0] == 0.25f && first[4] == 1.25f);
		tn_scope_leave(w.c);
		run_loops(&w, grow, out);
		assert_memory_equal(right, out, sizeof out);
		tn_context_free(w.c);
		if (!refused)
			break;
	}
	assert_in_range(failed, 3, 58);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_loops, begin, end),
		cmocka_unit_test_setup_teardown(test_branches, begin, end),
		cmocka_unit_test_setup_teardown(test_writes, begin, end),
		cmocka_unit_test_setup_teardown(test_wide, begin, end),
		cmocka_unit_test_setup_teardown(test_index, begin, end),
		cmocka_unit_test_setup_teardown(test_launch, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
