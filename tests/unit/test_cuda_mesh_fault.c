/*
 * test_cuda_mesh_fault.c: devices of a mesh that nothing connects, calls of NCCL that
 * fail, and processes that end: all processes are told, none waits for ever, and what
 * was there before is there afterwards. Processes are threads, on tests/fake.
 */
#include "cuda_mesh.h"

#include <stddef.h>

enum { N = 3, ROWS = 7, COLUMNS = 6, ELEMS = ROWS * COLUMNS };

static const tn_placement rows[1] = {TN_SHARDED(0)};
static const tn_placement columns[1] = {TN_SHARDED(1)};

static tn_mesh *mesh(tn_context *c)
{
	return tn_mesh_new(c, 1, NULL, SHAPE(N));
}

static tn_tensor *numbers(tn_context *c)
{
	float v[ELEMS];

	for (int32_t i = 0; i < ELEMS; i++)
		v[i] = (float)(i - 20);
	return tn_tensor_new(c, TN_F32, 2, SHAPE(ROWS, COLUMNS), v);
}

static tn_tensor *in_rows(tn_context *c, tn_mesh *m)
{
	tn_tensor *x = numbers(c);

	tn_shard(x, m, rows);
	tn_eval(&x, 1);
	return x;
}

/* Is it `factor` times the numbers? */
static bool is_right(tn_tensor *x, float factor)
{
	float v[ELEMS];
	bool right = tn_read(x, v, sizeof v) >= 0;

	for (int32_t i = 0; i < ELEMS && right; i++)
		right = v[i] == factor * (float)(i - 20);
	return right;
}

/* From rows to columns, by a program. */
static tn_tensor *turned(tn_tensor *x, tn_mesh *m)
{
	tn_tensor *y = tn_neg(tn_reshard(x, m, columns));

	tn_eval(&y, 1);
	return y;
}

typedef struct seen {
	tn_status status[N];
	char rule[N][64], text[N][1024], peers[N][1100];
	bool right[N], later[N], on_cpu[N];
	tn_device_stats s[N];
} seen;

static void note(seen *k, tn_context *c, int32_t p)
{
	const tn_diag *d = tn_context_diag(c);

	k->status[p] = tn_context_status(c);
	snprintf(k->rule[p], sizeof k->rule[p], "%s", d->rule);
	snprintf(k->text[p], sizeof k->text[p], "%s", d->text);
}

static void note_stats(seen *k, tn_context *c, int32_t p)
{
	tn_context_device_stats(c, &k->s[p]);
	k->on_cpu[p] = strcmp(k->s[p].name, "cpu") == 0;
	snprintf(k->peers[p], sizeof k->peers[p], "%s", k->s[p].peers);
}

/* ---- nothing connects them ---- */

static void move_once(tn_context *c, int32_t p, void *arg)
{
	seen *k = arg;
	tn_mesh *m = mesh(c);
	tn_tensor *x = in_rows(c, m), *y = turned(x, m);

	k->right[p] = is_right(x, 1) && is_right(y, -1);
	note(k, c, p);
	note_stats(k, c, p);
}

static const struct {
	const char *variable, *value, *text;
} missing[] = {
	{"TENON_NCCL", "/nowhere/libnccl.so.2",
		"process 0: NCCL is not found; looked for: "
		"/nowhere/libnccl.so.2 (not there)"},
	{"TENON_NCCL", FAKE_NCCL_LACKS, "has no ncclGetLastError"},
	{"FAKE_NCCL_VERSION", "21604", "version 2.16.4 is too old"},
};

static void expect_hosts(const char *text)
{
	static seen k; /* large */
	ranks_thread t[N];

	memset(&k, 0, sizeof k);
	ranks_run(t, N, false, move_once, &k);
	for (int32_t p = 0; p < N; p++) {
		assert_string_equal(k.text[p], "");
		assert_true(k.right[p]);
		assert_int_equal(k.s[p].bytes_to_peers, 0);
		if (k.on_cpu[p])
			continue;
		assert_true(k.s[p].bytes_by_host > 0);
		if (strstr(k.peers[p], text) == NULL)
			fail_msg("no \"%s\" in: %s", text, k.peers[p]);
	}
}

static void test_missing(void **state)
{
	for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
		assert_int_equal(begin_mesh(state), 0);
		setenv(missing[i].variable, missing[i].value, 1);
		expect_hosts(missing[i].text);
		assert_int_equal(nccl->n_joins, 0);
	}
}

static void test_refused(void **state)
{
	(void)state;
	nccl->fail_id = 1;
	expect_hosts(
		"process 0: cuda:0: NCCL cannot begin: fake: system error");
	assert_int_equal(nccl->n_joins, 0);
	nccl->fail_join = 2;
	expect_hosts(
		"NCCL cannot connect the devices of the processes: fake: ");
	assert_int_equal(nccl->n_joins, N);
	assert_int_equal(nccl->n_aborts, N);
}

/* One process has no device of its own. */
static void test_mixed(void **state)
{
	static const char *const devices[N] = {"cuda", "cpu", "cuda"};

	(void)state;
	ranks_devices = devices;
	expect_hosts("the device of process 1 is cpu: tensors move through the "
		     "memory of the hosts");
	ranks_devices = NULL;
	assert_int_equal(nccl->n_joins, 0);
}

static void test_list(void **state)
{
	tn_context *c = context_on("cpu");
	char *text;

	(void)state;
	assert_int_equal(tn_devices_text(&text, c, false), TN_OK);
	assert_non_null(strstr(text, "libfake_nccl.so, version 2.28.9"));
	tn_text_free(text);
	setenv("TENON_NCCL", FAKE_NCCL_LACKS, 1);
	assert_int_equal(tn_devices_text(&text, c, false), TN_OK);
	assert_non_null(strstr(text, "NCCL     not there: processes of a mesh "
				     "move tensors through the memory of their "
				     "hosts: NCCL is not found; looked for: "));
	assert_non_null(strstr(text, "has no ncclGetLastError"));
	tn_text_free(text);
	assert_int_equal(tn_devices_text(&text, c, true), TN_OK);
	assert_non_null(strstr(text, "\"nccl\":\"\",\"nccl_version\":0,"
				     "\"nccl_missing\":\"NCCL is not found; "));
	tn_text_free(text);
	setenv("TENON_NCCL", FAKE_NCCL, 1);
	assert_int_equal(tn_devices_text(&text, c, true), TN_OK);
	assert_non_null(
		strstr(text, "libfake_nccl.so\",\"nccl_version\":22809"));
	tn_text_free(text);
	tn_context_free(c);
}

/* ---- a call fails ---- */

static void fail_then_move(tn_context *c, int32_t p, void *arg)
{
	seen *k = arg;
	tn_mesh *m = mesh(c);
	tn_tensor *x = in_rows(c, m), *y = turned(x, m), *z;

	note(k, c, p);
	tn_context_clear(c);
	/* what there was is there, and what was not computed still can be */
	k->right[p] = is_right(x, 1);
	z = turned(x, m);
	k->later[p] = is_right(z, -1) && is_right(y, -1);
	tn_context_clear(c);
	/* a value that is placed elsewhere */
	z = tn_neg(x);
	tn_eval(&z, 1);
	tn_shard(z, m, columns);
	k->later[p] &= is_right(z, -1) && tn_context_status(c) >= 0;
	note_stats(k, c, p);
}

static const struct {
	size_t at;
	const char *text;
} calls[] = {
	{offsetof(fake_nccl_state, fail_send),
		"cuda:0: NCCL cannot send: fake: system error: the cable is "
		"cut"},
	{offsetof(fake_nccl_state, fail_receive),
		"cuda:0: NCCL cannot receive: fake: internal error"},
	{offsetof(fake_nccl_state, fail_group),
		"cuda:0: NCCL cannot exchange memory of devices: fake: "
		"internal "
		"error"},
};

static void expect_failure(const seen *k, const char *rule, const char *text)
{
	for (int32_t p = 0; p < N; p++) {
		assert_string_equal(k->rule[p], rule);
		assert_string_equal(k->text[p], k->text[0]);
		if (strstr(k->text[p], text) == NULL)
			fail_msg("no \"%s\" in: %s", text, k->text[p]);
		assert_true(k->right[p]);
		assert_true(k->later[p]);
		assert_true(k->s[p].bytes_to_peers > 0);
	}
}

static void test_calls(void **state)
{
	static seen k; /* large */
	ranks_thread t[N];

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		const int64_t second = 2;

		assert_int_equal(begin_mesh(state), 0);
		memset(&k, 0, sizeof k);
		memcpy((char *)nccl + calls[i].at, &second, sizeof second);
		ranks_run(t, N, false, fail_then_move, &k);
		expect_failure(&k, "cuda.nccl", calls[i].text);
		assert_int_equal(nccl->n_aborts, N);
		assert_int_equal(nccl->n_joins, 2 * N);
	}
}

/* A value that is placed elsewhere stays where it is. */
static void fail_value(tn_context *c, int32_t p, void *arg)
{
	seen *k = arg;
	tn_mesh *m = mesh(c);
	tn_tensor *x = in_rows(c, m), *y = tn_neg(x);

	tn_eval(&y, 1);
	meet(c);
	if (p == 0)
		nccl->fail_send = 1;
	meet(c);
	tn_shard(y, m, columns);
	note(k, c, p);
	tn_context_clear(c);
	k->right[p] = is_right(y, -1);
	tn_shard(y, m, columns);
	k->later[p] = is_right(y, -1) && tn_context_status(c) >= 0;
	note_stats(k, c, p);
}

static void test_value(void **state)
{
	static seen k; /* large */
	ranks_thread t[N];

	(void)state;
	memset(&k, 0, sizeof k);
	ranks_run(t, N, false, fail_value, &k);
	expect_failure(&k, "cuda.nccl", "NCCL cannot send");
}

/* Memory of the device is full where elements would be received. */
static void fill_memory(tn_context *c, int32_t p, void *arg)
{
	enum { WIDE = 3 << 20 };
	seen *k = arg;
	tn_mesh *m = mesh(c);
	tn_tensor *x = in_rows(c, m), *y;
	tn_tensor *wide = tn_tensor_new(c, TN_F32, 2, SHAPE(N, WIDE), NULL);

	tn_shard(wide, m, rows);
	tn_eval(&wide, 1);
	meet(c);
	if (p == 0)
		fake->bytes = fake->in_use;
	meet(c);
	y = tn_neg(wide);
	tn_shard(y, m, columns);
	tn_eval(&y, 1);
	note(k, c, p);
	tn_context_clear(c);
	meet(c);
	if (p == 0)
		fake->bytes = (size_t)1 << 32;
	meet(c);
	k->right[p] = is_right(x, 1);
	k->later[p] = is_right(turned(x, m), -1);
	note_stats(k, c, p);
}

static void test_memory(void **state)
{
	static seen k; /* large */
	ranks_thread t[N];

	(void)state;
	memset(&k, 0, sizeof k);
	ranks_run(t, N, false, fill_memory, &k);
	for (int32_t p = 0; p < N; p++)
		assert_true(strcmp(k.rule[p], "device.memory") == 0 ||
			    strcmp(k.rule[p], "shard.link") == 0);
}

/* ---- a process that is not there ---- */

static void one_leaves(tn_context *c, int32_t p, void *arg)
{
	seen *k = arg;
	tn_mesh *m = mesh(c);
	tn_tensor *x = in_rows(c, m);

	(void)turned(x, m);
	if (p == 1)
		return;
	(void)turned(tn_exp(x), m);
	note(k, c, p);
}

/* A launch on one process is refused, before its move. */
static void one_fails(tn_context *c, int32_t p, void *arg)
{
	seen *k = arg;
	tn_mesh *m = mesh(c);
	tn_tensor *x = in_rows(c, m), *y;

	(void)turned(x, m);
	meet(c);
	if (p == 1)
		fake->fail_launch = 1;
	y = tn_reshard(tn_exp(x), m, columns);
	y = tn_neg(y);
	tn_eval(&y, 1);
	note(k, c, p);
}

/* It has sent, and what it sent never arrives. */
static void one_is_held(tn_context *c, int32_t p, void *arg)
{
	seen *k = arg;
	tn_mesh *m = mesh(c);
	tn_tensor *x = in_rows(c, m);

	(void)turned(x, m);
	tn_shard_patience(c, 1.5);
	meet(c);
	if (p == 1)
		nccl->hold = 1;
	meet(c);
	k->right[p] = is_right(turned(in_rows(c, m), m), -1);
	note(k, c, p);
}

/* .. or NCCL finds out by itself. */
static void one_is_lost(tn_context *c, int32_t p, void *arg)
{
	seen *k = arg;
	tn_mesh *m = mesh(c);
	tn_tensor *x = in_rows(c, m);

	(void)turned(x, m);
	meet(c);
	if (p == 1)
		nccl->lose = 1;
	meet(c);
	k->right[p] = is_right(turned(in_rows(c, m), m), -1);
	note(k, c, p);
}

static const struct {
	ranks_body *body;
	const char *rule; /* of one process; of the others it is shard.link */
	const char *text;
} gone[] = {
	{one_leaves, "", "process 1, which has ended"},
	{one_fails, "device.launch", "cannot launch"},
	{one_is_held, "shard.link", "sends nothing"},
	{one_is_lost, "cuda.nccl",
		"NCCL cannot finish an exchange: fake: "
		"remote error"},
};

static void test_gone(void **state)
{
	static seen k; /* large */
	ranks_thread t[N];

	for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
		int32_t n_own = 0, n_told = 0;

		assert_int_equal(begin_mesh(state), 0);
		memset(&k, 0, sizeof k);
		ranks_run(t, N, false, gone[i].body, &k);
		for (int32_t p = 0; p < N; p++) {
			bool told = strcmp(k.rule[p], "shard.link") == 0;

			assert_false(k.right[p]);
			n_told += told;
			n_own += !told && strcmp(k.rule[p], gone[i].rule) == 0;
			if (k.rule[p][0] != '\0' &&
				strstr(k.text[p], gone[i].text) == NULL)
				fail_msg("%d: no \"%s\" in: %s", (int)i,
					gone[i].text, k.text[p]);
		}
		assert_int_equal(n_own + n_told, N);
		assert_true(n_told >= N - 1);
		assert_int_equal(nccl->n_comms, 0);
	}
}

/* ---- what was written before ---- */

static tn_status write_then_move(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	tn_add_(user, in[0]);
	out[0] = tn_reduce_sum(tn_mul(user, in[0]), SHAPE(0), 1, false);
	return tn_context_status(c);
}

/* Memory that the program has written before: the mesh ends. */
static void fail_late(tn_context *c, int32_t p, void *arg)
{
	seen *k = arg;
	tn_mesh *m = mesh(c);
	tn_tensor *x = in_rows(c, m), *w = in_rows(c, m), *y;
	tn_function *f;

	if (tn_compile(&f, c, write_then_move, w, 1, 1, "f") < 0)
		return;
	meet(c);
	if (p == 0)
		nccl->fail_send = 1;
	meet(c);
	(void)!tn_function_call(f, &x, &y);
	tn_eval(&y, 1);
	note(k, c, p);
	tn_context_clear(c);
	k->right[p] = is_right(turned(x, m), -1);
	k->later[p] = strcmp(tn_context_diag(c)->rule, "shard.link") == 0;
	tn_function_free(f);
}

static void test_late(void **state)
{
	static seen k; /* large */
	ranks_thread t[N];

	(void)state;
	memset(&k, 0, sizeof k);
	ranks_run(t, N, false, fail_late, &k);
	for (int32_t p = 0; p < N; p++) {
		assert_string_equal(k.rule[p], "cuda.nccl");
		assert_string_equal(k.text[p], k.text[0]);
		assert_false(k.right[p]);
		assert_true(k.later[p]);
	}
}

/* ---- sequences ---- */

/* Two meshes of the same processes, and tensors that are dropped at once. */
static void in_turn(tn_context *c, int32_t p, void *arg)
{
	seen *k = arg;
	tn_mesh *m = mesh(c);
	tn_mesh *w = tn_mesh_new(c, 2, NULL, SHAPE(1, N));
	const tn_placement cut[2] = {TN_REPLICATED, TN_SHARDED(1)};
	tn_tensor *x = in_rows(c, m), *z = numbers(c);

	tn_shard(z, w, cut);
	k->right[p] = true;
	for (int32_t i = 0; i < 4; i++) {
		tn_tensor *y = turned(x, m), *u;
		const tn_placement across[2] = {TN_REPLICATED, TN_SHARDED(0)};

		u = tn_neg(tn_reshard(z, w, across));
		tn_eval(&u, 1);
		tn_drop(y); /* while elements may be on their way */
		y = numbers(c);
		k->right[p] &= is_right(u, -1) && is_right(y, 1);
		tn_drop(u);
		tn_drop(y);
	}
	note(k, c, p);
	note_stats(k, c, p);
}

static void test_in_turn(void **state)
{
	static seen k; /* large */
	ranks_thread t[N];

	(void)state;
	/* twice: contexts are closed and opened */
	for (int32_t i = 1; i <= 2; i++) {
		memset(&k, 0, sizeof k);
		ranks_run(t, N, false, in_turn, &k);
		for (int32_t p = 0; p < N; p++) {
			assert_string_equal(k.text[p], "");
			assert_true(k.right[p]);
			assert_true(k.s[p].bytes_to_peers > 0);
		}
		assert_int_equal(nccl->n_joins, N * i);
		assert_int_equal(nccl->n_aborts, 0);
		assert_int_equal(nccl->n_comms, 0);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_mesh, end_mesh)
	const struct CMUnitTest tests[] = {
		TEST(test_missing),
		TEST(test_refused),
		TEST(test_mixed),
		TEST(test_list),
		TEST(test_calls),
		TEST(test_value),
		TEST(test_memory),
		TEST(test_gone),
		TEST(test_late),
		TEST(test_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
