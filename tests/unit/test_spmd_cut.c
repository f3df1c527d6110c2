/*
 * test_spmd_cut.c: tensors that are cut: a fault on one process, what a process
 * sees of its part, sliding windows and scatters over cut rows, files.
 */
#include "spmd_trial.h"

/* ---- a fault on one process ---- */

static void fault(trial *t, tn_context *c, tn_mesh *m)
{
	int64_t ids[4] = {0, 1, 2, tn_process(c) == 1 ? 9 : 3};
	tn_tensor *x = param(c, "x", 2, SHAPE(6, 2));
	tn_tensor *k = tn_tensor_new(c, TN_I64, 1, SHAPE(4), ids);

	shard(x, m, COLUMNS);
	look(t, tn_take(x, k, 0));
}

static void test_fault(void **state)
{
	ranks_thread t[3];
	static trial x;

	(void)state;
	x = (trial){.run = fault, .n_axes = 1, .extent = {3}};
	ranks_run(t, 3, true, body, &x);
	assert_string_equal(t[1].rule, "index.range");
	for (int32_t i = 0; i < 3; i++)
		assert_true(t[i].status < 0);
}

static void described(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 2, SHAPE(10, 6));
	tn_window w;
	char *text;

	shard(x, m, ROWS);
	if (tn_placement_text(x, &text) < 0 || tn_local(x, &w) < 0)
		abort();
	t->n[tn_process(c)] = strcmp(text, "mesh_0: axis 0 by 3 of 10") == 0 &&
			w.is_box && w.rank == 2 && w.shape[1] == 6 &&
			w.from[0] == 3 * tn_process(c) &&
			w.n_bytes == (size_t)w.shape[0] * 48
		? (int32_t)w.shape[0]
		: -1;
	tn_text_free(text);
	/* what is written there is written to x */
	for (int64_t i = 0; i < w.n_elems; i++)
		((double *)w.data)[i] = (double)(tn_process(c) * 100 + i);
	if (tn_read(x, t->v[tn_process(c)], 480) < 0)
		abort();
}

static void test_window(void **state)
{
	ranks_thread t[4];
	static trial x;

	(void)state;
	x = (trial){.run = described, .n_axes = 1, .extent = {4}};
	ranks_run(t, 4, true, body, &x);
	for (int32_t i = 0; i < 4; i++) {
		assert_string_equal(t[i].text, "");
		assert_int_equal(x.n[i], i < 3 ? 3 : 1);
		assert_true(x.v[i][0] == 0 && x.v[i][19] == 101 &&
			x.v[i][59] == 305);
	}
}

/* ---- windows over rows that are cut ---- */

static tn_tensor *conv(tn_tensor *x, tn_tensor *w, int64_t stride, int64_t pad)
{
	return tn_conv(x, w, 1, SHAPE(stride, 1), 2, NULL, 0, SHAPE(pad, 0), 2,
		SHAPE(pad, 0), 2);
}

static void halo(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 4, SHAPE(1, 2, 10, 5)), *a, *b;
	tn_tensor *w = param(c, "w", 4, SHAPE(3, 2, 3, 2));
	tn_tensor *v = param(c, "v", 4, SHAPE(2, 3, 4, 1));

	shard(x, m, (tn_placement)TN_SHARDED(2));
	a = conv(x, w, 1, 1);
	tn_eval(&a, 1);
	if (m != NULL && tn_process(c) == 1) {
		tn_shard_stats s;

		tn_context_shard_stats(c, &s);
		t->s[7].bytes_sent = s.bytes_sent;
	}
	b = conv(a, v, 2, 0); /* rows 2y .. 2y + 3 */
	look(t, a);
	look(t, b);
	look(t, tn_max_pool(a, SHAPE(3, 1), 2, SHAPE(2, 1), 2, NULL, 0,
			SHAPE(1, 0), 2, NULL, 0));
	look(t, tn_add(tn_narrow(a, 2, 3, 5), tn_narrow(a, 2, 4, 5)));
	tn_backward(tn_reduce_sum(tn_mul(b, b), SHAPE(0, 1, 2, 3), 4, false),
		NULL);
	look(t, tn_gradient(x));
	look(t, tn_gradient(w));
	look(t, tn_gradient(v));
}

static void test_halo(void **state)
{
	const trial *t = both(halo, 4);

	(void)state;
	/* rows 3..5: one of them to either side, of two channels by five */
	assert_int_equal(t->s[7].bytes_sent, 2 * 2 * 5 * 8);
	both(halo, 3);
	both(halo, 7); /* some have one row, some none */
}

/* ---- opaque rows: what is cut along their batch stays where it is ---- */

static void batches(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 2, SHAPE(5, 6)), *s[2], *k[2], *d;
	tn_tensor *all[5];

	shard(x, m, ROWS);
	tn_sort(x, -1, true, s);
	tn_topk(x, 1, 2, true, k);
	d = tn_det(param(c, "a", 3, SHAPE(5, 2, 2)));
	all[0] = s[0];
	all[1] = s[1];
	all[2] = k[0];
	all[3] = k[1];
	all[4] = seen(d, m, ROWS); /* cut by who reads it */
	tn_eval(all, 5);
	if (m != NULL)
		tn_context_shard_stats(c, &t->s[4 + tn_process(c)]);
	for (int32_t i = 0; i < 5; i++)
		look(t, tn_cast(all[i], TN_F64));
	tn_sort(x, 0, false, s); /* along the cut */
	look(t, s[0]);
	tn_backward(tn_reduce_sum(tn_mul(k[0], k[0]), SHAPE(0, 1), 2, false),
		NULL);
	look(t, tn_gradient(x));
}

static void test_batches(void **state)
{
	(void)state;
	/* by 4, the last one has no row */
	for (int32_t i = 0; i < 6; i++) {
		const trial *t = run_both(batches, 2 + i / 2, i % 2 != 0);

		for (int32_t p = 0; p < 2 + i / 2; p++)
			assert_int_equal(t->s[4 + p].bytes_sent, 0);
	}
}

/* ---- scatters into rows that are cut: each keeps what is its own ---- */

static tn_tensor *indices(tn_context *c, const char *name, int64_t past)
{
	int64_t at[4] = {4, 0, 4, past};

	return tn_parameter(c, name, TN_I64, 1, SHAPE(4), at);
}

static void scatters(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 2, SHAPE(5, 3)), *all[3];
	tn_tensor *u = param(c, "u", 2, SHAPE(4, 3));
	tn_tensor *ids = indices(c, "ids", 1);

	shard(x, m, ROWS);
	all[0] = tn_scatter_add(x, ids, u);
	all[1] = tn_scatter_set(x, ids, u);
	all[2] = tn_index_add(tn_mul(x, x), ids, tn_neg(u), 0);
	tn_eval(all, 3);
	if (m != NULL && tn_process(c) < 4)
		tn_context_shard_stats(c, &t->s[4 + tn_process(c)]);
	for (int32_t i = 0; i < 3; i++)
		look(t, all[i]);
	tn_backward(tn_reduce_sum(tn_mul(all[0], all[0]), SHAPE(0, 1), 2,
			    false), NULL);
	look(t, tn_gradient(x));
	look(t, tn_gradient(u));
}

/* All have the error, also those whose rows are but one. */
static void scatters_outside(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 2, SHAPE(5, 3)), *y;

	shard(x, m, ROWS);
	y = tn_scatter_add(x, indices(c, "ids", 5), param(c, "u", 2,
			SHAPE(4, 3)));
	look(t, y);
}

static void test_scatters(void **state)
{
	static trial x;
	ranks_thread r[MAX_RANKS];

	(void)state;
	for (int32_t i = 0; i < 8; i++) {
		int32_t n = 2 + i / 2;
		const trial *t = run_both(scatters, n, i % 2 != 0);

		for (int32_t p = 0; p < n && n <= 4; p++)
			assert_int_equal(t->s[4 + p].bytes_sent, 0);
		x = (trial){.run = scatters_outside, .n_axes = 1,
			.extent = {n}};
		ranks_run(r, n, i % 2 != 0, body, &x);
		for (int32_t p = 0; p < n; p++)
			assert_string_equal(r[p].rule, "index.range");
	}
}

/* ---- files and words for all ---- */

static const char *const path = "test_spmd.safetensors";

/* Saved in one placement, loaded into another; the first process writes. */
static void in_files(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 2, SHAPE(10, 6)), *y;
	tn_params *p, *q;
	double one = 1;
	int32_t word = 7 + tn_process(c);

	shard(x, m, ROWS);
	tn_add_(x, tn_scalar(c, TN_F64, 1));
	y = tn_parameter(c, "x", TN_F64, 2, SHAPE(10, 6), NULL);
	shard(y, m, COLUMNS);
	if (tn_params_new(&p, c) < 0 || tn_params_new(&q, c) < 0 ||
		tn_params_add(p, "x", x, false) < 0 ||
		tn_params_add(q, "x", y, false) < 0)
		abort();
	if (tn_params_save(p, path, NULL, 0) >= 0 &&
		tn_params_load(q, path, true) >= 0)
		look(t, y);
	if (tn_broadcast(c, &word, sizeof word) < 0)
		one = 0;
	look(t, tn_scalar(c, TN_F64, one + word));
	tn_params_free(p);
	tn_params_free(q);
}

static void unwritable(trial *t, tn_context *c, tn_mesh *m)
{
	tn_params *p;

	(void)t;
	(void)m;
	if (tn_params_new(&p, c) < 0 ||
		tn_params_add(p, "x", param(c, "x", 1, SHAPE(6)), false) < 0 ||
		tn_params_save(p, "no/such/folder", NULL, 0) >= 0)
		abort();
	tn_params_free(p);
}

static void test_files(void **state)
{
	ranks_thread t[3];
	static trial x;

	(void)state;
	both(in_files, 3);
	remove(path);
	x = (trial){.run = unwritable, .n_axes = 1, .extent = {3}};
	ranks_run(t, 3, true, body, &x);
	for (int32_t i = 0; i < 3; i++)
		assert_string_equal(t[i].rule,
			i == 0 ? "safetensors.write" : "shard.first");
}

static void named(tn_context *c, int32_t process, void *arg)
{
	int64_t *extent = arg;
	tn_mesh *m = tn_mesh_parse(c, "data=2,model=1");

	if (m == NULL || process != 0)
		return;
	if (strcmp(tn_mesh_axis(m, 0, &extent[0]), "data") == 0 &&
		strcmp(tn_mesh_axis(m, 1, &extent[1]), "model") == 0 &&
		tn_mesh_axis(m, 2, &extent[2]) == NULL)
		extent[2] = 3;
}

static void test_names(void **state)
{
	ranks_thread t[3];
	int64_t extent[3] = {0};

	(void)state;
	ranks_run(t, 2, true, named, extent);
	assert_string_equal(t[0].text, "");
	assert_true(extent[0] == 2 && extent[1] == 1 && extent[2] == 3);
	ranks_run(t, 3, true, named, extent);
	for (int32_t i = 0; i < 3; i++) {
		assert_string_equal(t[i].rule, "shard.mesh");
		assert_string_equal(t[i].text,
			"the mesh has 2 processes, but 3 are running: start "
			"with mpirun -n 2");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fault),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_halo),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_scatters),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
