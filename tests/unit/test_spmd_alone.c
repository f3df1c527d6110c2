/*
 * test_spmd_alone.c: a mesh of one process that no launcher started: every
 * public call on shards works there as on many processes, and gives what a
 * program without a mesh gives.
 */
#include "unit.h"

#include <tenon.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

enum { N = 12 };

static void close_to(double a, double b)
{
	assert_true(fabs(a - b) <= 1e-12 * (1 + fabs(b)));
}

static const tn_placement whole[2] = {TN_REPLICATED, TN_REPLICATED};
static const tn_placement rows[2] = {TN_SHARDED(0), TN_REPLICATED};
static const tn_placement columns[2] = {TN_REPLICATED, TN_SHARDED(1)};
static const tn_placement both[2] = {TN_SHARDED_BY(0, 7), TN_SHARDED(0)};
static const tn_placement sums[2] = {TN_PARTS("sum"), TN_REPLICATED};

static tn_context *context(bool interp)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = interp;
	o.threads = 1;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

static tn_mesh *mesh(tn_context *c)
{
	const char *names[] = {"data", "model"};
	tn_mesh *m = tn_mesh_new(c, 2, names, SHAPE(1, 1));

	assert_non_null(m);
	return m;
}

static tn_tensor *weights(tn_context *c)
{
	double w[N];

	for (int32_t i = 0; i < N; i++)
		w[i] = 0.25 * i - 1;
	return tn_parameter(c, "w", TN_F64, 2, SHAPE(4, 3), w);
}

static void expect(tn_tensor *x, double scale, double add)
{
	double v[N];

	assert_int_equal(tn_read(x, v, sizeof v), TN_OK);
	for (int32_t i = 0; i < N; i++)
		close_to(v[i], scale * (0.25 * i - 1) + add);
}

/* Each placement, by each call that takes one, before and after a write. */
static void one_placement(const tn_placement *p, bool interp)
{
	tn_context *c = context(interp);
	tn_mesh *m = mesh(c);
	tn_tensor *w = weights(c), *x = tn_mul(w, w), *y;
	bool parts = p[0].kind == TN_PLACE_PARTS;
	tn_window v;
	char *text;

	assert_int_equal(tn_shard(w, m, p), TN_OK);
	assert_int_equal(tn_shard(x, m, p), TN_OK);
	expect(w, 1, 0);
	expect(tn_full(w), 1, 0);
	assert_int_equal(tn_eval(&x, 1), TN_OK);
	y = tn_reshard(w, m, parts ? whole : p);
	expect(y, 1, 0);
	expect(tn_transpose(tn_transpose(y, SHAPE(1, 0), 2), SHAPE(1, 0), 2),
		1, 0);
	tn_no_grad_enter(c);
	tn_add_(y, tn_scalar(c, TN_F64, 2));
	tn_no_grad_leave(c);
	expect(w, 1, 2);
	expect(y, 1, 2);
	assert_int_equal(tn_local(w, &v), TN_OK);
	assert_int_equal(v.n_elems, N);
	assert_true(v.is_box && v.shape[0] == 4 && v.shape[1] == 3);
	close_to(((double *)v.data)[N - 1], 0.25 * (N - 1) + 1);
	assert_int_equal(tn_placement_text(w, &text), TN_OK);
	assert_true(strlen(text) > 0);
	tn_text_free(text);
	assert_string_equal(tn_context_diag(c)->text, "");
	tn_context_free(c);
}

static void test_placements(void **state)
{
	const tn_placement *all[] = {whole, rows, columns, both, sums};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		/* parts are not written to */
		if (all[i] != sums)
			one_placement(all[i], true);
		if (all[i] != sums)
			one_placement(all[i], false);
	}
}

static void test_parts(void **state)
{
	(void)state;
	for (int32_t interp = 0; interp < 2; interp++) {
		tn_context *c = context(interp != 0);
		tn_mesh *m = mesh(c);
		tn_tensor *w = weights(c);

		assert_int_equal(tn_shard(w, m, sums), TN_OK);
		expect(w, 1, 0);
		expect(tn_full(w), 1, 0);
		expect(tn_reshard(w, m, rows), 1, 0);
		assert_string_equal(tn_context_diag(c)->text, "");
		tn_context_free(c);
	}
}

/* Three steps: losses, gradients, windows over a cut axis. */
static void train(bool on_mesh, bool interp, double *out)
{
	tn_context *c = context(interp);
	tn_mesh *m = on_mesh ? mesh(c) : NULL;
	tn_tensor *w = weights(c);

	if (on_mesh)
		assert_int_equal(tn_shard(w, m, rows), TN_OK);
	for (int32_t i = 0; i < 3; i++) {
		tn_tensor *a = tn_sin(tn_narrow(w, 0, 1, 3));
		tn_tensor *all[] = {a, w}, *b = tn_concat(all, 2, 0), *g;
		tn_tensor *y = tn_reduce_sum(
			tn_mul(b, b), SHAPE(0, 1), 2, false);

		tn_backward(y, NULL);
		g = tn_gradient(w);
		tn_no_grad_enter(c);
		tn_copy_(w, tn_sub(w, tn_mul(g, tn_scalar(c, TN_F64, 0.1))));
		tn_no_grad_leave(c);
		tn_zero_grad(w);
	}
	assert_int_equal(tn_read(w, out, N * sizeof *out), TN_OK);
	tn_context_free(c);
}

static void test_training(void **state)
{
	double one[N], all[N];

	(void)state;
	for (int32_t interp = 0; interp < 2; interp++) {
		train(false, interp != 0, one);
		train(true, interp != 0, all);
		for (int32_t i = 0; i < N; i++)
			close_to(one[i], all[i]);
	}
}

/* What is neither a tensor nor a placement: meshes, words, measures. */
static void test_rest(void **state)
{
	tn_context *c = context(true);
	tn_mesh *m = mesh(c);
	tn_move_time t;
	tn_shard_stats s;
	int64_t extent;
	int32_t word = 5;

	(void)state;
	assert_int_equal(tn_process(c), 0);
	assert_int_equal(tn_n_processes(c), 1);
	assert_ptr_equal(tn_mesh_parse(c, "data=1,model=1"), m);
	assert_string_equal(tn_mesh_axis(m, 1, &extent), "model");
	assert_int_equal(extent, 1);
	assert_null(tn_mesh_axis(m, 2, &extent));
	assert_int_equal(tn_broadcast(c, &word, sizeof word), TN_OK);
	assert_int_equal(word, 5);
	assert_int_equal(tn_shard_debug(c, true), TN_OK);
	assert_int_equal(tn_shard_strict(c, true), TN_OK);
	expect(weights(c), 1, 0);
	assert_int_equal(tn_mesh_measure(m, 4, 3, rows, columns, 2, &t), TN_OK);
	assert_int_equal(tn_mesh_measure(m, 4, 3, sums, whole, 2, &t), TN_OK);
	assert_int_equal(t.bytes_sent, 0);
	tn_context_shard_stats(c, &s);
	assert_int_equal(s.bytes_sent, 0);
	assert_int_equal(s.n_moves, 0);
	assert_ptr_equal(tn_mesh_new(c, 2,
		(const char *[]){"data", "model"}, SHAPE(-1, 1)), m);
	assert_null(tn_mesh_new(c, 1, NULL, SHAPE(2)));
	assert_string_equal(tn_context_diag(c)->rule, "shard.mesh");
	tn_context_free(c);
}

/* One extent may be left open, not two, nor one beside too many. */
static void test_open_extents(void **state)
{
	static const int64_t wrong[][2] = {{-1, -1}, {-2, 1}, {-1, 0}, {2, -1}};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		tn_context *c = context(true);

		assert_null(tn_mesh_new(c, 2, NULL, wrong[i]));
		assert_string_equal(tn_context_diag(c)->rule, "shard.mesh");
		tn_context_free(c);
	}
}

/* Names that no placement could be written with, and two that are one. */
static void test_names_of_axes(void **state)
{
	static const char *const cases[][2] = {{"a b", "c"}, {"", "c"},
		{"a", "b=2"}, {"a,b", "c"}, {"a@b", "c"}, {"a", "b%2"},
		{"a:", "c"}, {"\xc3\xa4", "c"}, {"a", "a"}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		tn_context *c = context(true);
		tn_mesh *m = tn_mesh_new(c, 2, cases[i], SHAPE(1, 1));

		if (m != NULL)
			fail_msg("%s, %s", cases[i][0], cases[i][1]);
		assert_string_equal(tn_context_diag(c)->rule, "shard.mesh");
		tn_context_clear(c);
		assert_non_null(tn_mesh_new(c, 2,
			(const char *[]){"a/2.x_", NULL}, SHAPE(1, 1)));
		assert_int_equal(tn_context_status(c), TN_OK);
		tn_context_free(c);
	}
}

static void test_patience(void **state)
{
	const double wrong[] = {-1, NAN, INFINITY, 1e12};
	tn_context *c = context(true);

	(void)state;
	assert_int_equal(tn_shard_patience(c, 0.0001), TN_OK);
	assert_non_null(mesh(c));
	assert_int_equal(tn_shard_patience(c, 0), TN_OK);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(tn_shard_patience(c, wrong[i]), TN_EINVAL);
		assert_string_equal(
			tn_context_diag(c)->rule, "shard.patience");
		tn_context_clear(c);
	}
	tn_context_free(c);
}

/* The environment is looked at where a context joins others. */
static void test_environment(void **state)
{
	const char *const text[] = {"x", "-3", "1e3", "7"};

	(void)state;
	for (int32_t i = 0; i < 4; i++) {
		tn_world *w = tn_world_new(1);
		tn_context *c = context(true);

		setenv("TENON_PEER_SECONDS", text[i], 1);
		assert_int_equal(
			tn_join(c, w, 0), i < 3 ? TN_EINVAL : TN_OK);
		assert_string_equal(tn_context_diag(c)->rule,
			i < 3 ? "shard.patience" : "");
		unsetenv("TENON_PEER_SECONDS");
		tn_context_free(c);
		tn_world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_placements),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_training),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_open_extents),
		cmocka_unit_test(test_names_of_axes),
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
