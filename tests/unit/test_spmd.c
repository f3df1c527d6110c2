/*
 * test_spmd.c: tensors on several processes through the public interface:
 * in-place cases 22 to 24 and writes through views of sharded storages, each by
 * one process and by several; what is sent; what is refused, on every process.
 */
#include "spmd_trial.h"

/* ---- in-place cases 22 to 24 ---- */

static void case_22(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 2, SHAPE(10, 3));
	tn_tensor *v;

	shard(x, m, ROWS);
	v = tn_reshape(x, SHAPE(2, 5, 3), 3);
	tn_add_(v, tn_scalar(c, TN_F64, 1));
	tn_eval(&x, 1);
	if (m != NULL && tn_process(c) == 0) {
		tn_shard_stats s;

		tn_context_shard_stats(c, &s);
		t->s[7].bytes_sent = s.bytes_sent; /* before it is read */
	}
	look(t, x);
	look(t, v);
}

static void test_case_22(void **state)
{
	const trial *t = both(case_22, 4);

	(void)state;
	/* no view, whatever the blocks are, costs traffic */
	assert_int_equal(t->s[7].bytes_sent, 0);
	both(case_22, 3);
	both(case_22, 7);
}

static void case_23(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 2, SHAPE(10, 3));
	tn_tensor *y, *v;

	shard(x, m, ROWS);
	y = seen(x, m, WHOLE);
	v = tn_narrow(y, 0, 2, 5);
	look(t, y);
	tn_copy_(v, tn_mul(v, v));
	look(t, x);
	look(t, y);
	look(t, v);
}

static void test_case_23(void **state)
{
	const trial *t = both(case_23, 4);

	(void)state;
	for (int32_t p = 0; p < 4; p++) {
		assert_int_equal(t->s[p].n_write_backs, 1);
		assert_int_equal(t->s[p].write_back_bytes, 5 * 3 * 8);
		/* the version before, and the one behind the write */
		assert_int_equal(t->s[p].n_reads, 2);
	}
}

static void case_24(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *rm = param(c, "rm", 1, SHAPE(6));
	tn_tensor *rv = param(c, "rv", 1, SHAPE(6));
	tn_tensor *g = param(c, "g", 1, SHAPE(6));
	tn_tensor *b = param(c, "b", 1, SHAPE(6));
	tn_tensor *x = param(c, "x", 2, SHAPE(5, 6)), *out[3];

	shard(rm, m, ROWS);
	shard(rv, m, ROWS);
	for (int32_t i = 0; i < 3; i++) {
		tn_batch_norm(x, g, b, rm, rv, 1e-5, 0.1, out);
		tn_copy_(rm, out[1]);
		tn_copy_(rv, out[2]);
		look(t, tn_reduce_sum(out[0], SHAPE(0), 1, false));
		look(t, seen(rm, m, WHOLE));
		tn_copy_(x, tn_sin(tn_add(x, out[0])));
	}
	look(t, rm);
	look(t, rv);
	if (m != NULL) {
		tn_window w;

		if (tn_local(rm, &w) < 0)
			abort();
		t->s[4 + tn_process(c)].n_reads = w.n_elems;
	}
}

static void test_case_24(void **state)
{
	const trial *t = both(case_24, 4);

	(void)state;
	/* the statistics stay where they were: 2 2 2 0 */
	assert_int_equal(t->s[4].n_reads, 2);
	assert_int_equal(t->s[6].n_reads, 2);
	assert_int_equal(t->s[7].n_reads, 0);
}

/* ---- ten more: writes through views of sharded storages ---- */

static void transposed(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 2, SHAPE(7, 4));

	shard(x, m, COLUMNS);
	tn_mul_(tn_transpose(x, SHAPE(1, 0), 2), tn_scalar(c, TN_F64, 3));
	look(t, x);
}

static void diagonal(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 2, SHAPE(5, 5));

	shard(x, m, ROWS);
	tn_fill_(tn_diagonal(x, 0), 0);
	look(t, x);
}

static void stretch(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 1, SHAPE(23));

	shard(x, m, ROWS);
	/* across three blocks, reading the elements behind it */
	tn_copy_(tn_narrow(x, 0, 3, 15), tn_narrow(x, 0, 6, 15));
	look(t, x);
}

static void overlapping(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 1, SHAPE(12)), *a;

	shard(x, m, ROWS);
	a = tn_narrow(x, 0, 0, 8);
	tn_add_(tn_narrow(x, 0, 4, 8), a);
	tn_add_(a, tn_narrow(x, 0, 4, 8));
	look(t, x);
	look(t, a);
}

static void flipped(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 2, SHAPE(9, 2));

	shard(x, m, ROWS);
	tn_copy_(tn_flip(x, SHAPE(0), 1), tn_sin(x));
	look(t, x);
}

static void flattened(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 3, SHAPE(3, 2, 5));
	tn_tensor *y = param(c, "y", 1, SHAPE(30));

	shard(x, m, COLUMNS);
	shard(y, m, ROWS);
	tn_copy_(tn_reshape(x, SHAPE(30), 1), y);
	tn_mul_(y, tn_reshape(x, SHAPE(30), 1));
	look(t, x);
	look(t, y);
}

static void from_columns(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 2, SHAPE(6, 5)), *y;

	shard(x, m, ROWS);
	y = seen(x, m, COLUMNS);
	tn_add_(tn_narrow(y, 1, 1, 3), tn_scalar(c, TN_F64, 2));
	tn_mul_(y, y);
	look(t, tn_reduce_sum(x, SHAPE(1), 1, false));
	look(t, tn_reduce_sum(y, SHAPE(0), 1, false));
}

static void saved(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 2, SHAPE(6, 3)), *y;

	shard(x, m, ROWS);
	y = tn_reduce_sum(tn_mul(x, tn_sin(x)), SHAPE(0, 1), 2, false);
	/* what the backward reads is the version before the write */
	tn_no_grad_enter(c);
	tn_fill_(tn_narrow(seen(x, m, WHOLE), 0, 1, 3), 7);
	tn_no_grad_leave(c);
	tn_backward(y, NULL);
	look(t, tn_gradient(x));
	look(t, x);
}

static void optimizer(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *w = param(c, "w", 2, SHAPE(4, 5));
	tn_tensor *v = param(c, "v", 2, SHAPE(4, 5));
	tn_tensor *x = param(c, "x", 2, SHAPE(7, 4));

	shard(v, m, COLUMNS); /* state in parts, weights everywhere */
	shard(x, m, ROWS);
	for (int32_t i = 0; i < 3; i++) {
		tn_tensor *y = tn_sin(tn_matmul(x, w)), *g;

		tn_backward(tn_reduce_sum(y, SHAPE(0, 1), 2, false), NULL);
		g = tn_gradient(w);
		tn_no_grad_enter(c);
		tn_copy_(v, tn_add(tn_mul(v, tn_scalar(c, TN_F64, 0.5)), g));
		tn_copy_(w, tn_sub(w, tn_mul(v, tn_scalar(c, TN_F64, 0.01))));
		tn_no_grad_leave(c);
		tn_zero_grad(w);
		look(t, w);
	}
	look(t, v);
}

static tn_status half_of_it(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	tn_add_(tn_narrow(user, 0, 1, 4), tn_narrow(in[0], 0, 2, 4));
	out[0] = tn_reduce_sum(tn_mul(user, in[0]), SHAPE(0), 1, false);
	return tn_context_status(c);
}

static void in_a_function(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 1, SHAPE(9));
	tn_tensor *y = param(c, "y", 1, SHAPE(9)), *out;
	tn_function *f;

	shard(x, m, ROWS);
	shard(y, m, ROWS);
	if (tn_compile(&f, c, half_of_it, x, 1, 1, "f") < 0)
		return;
	for (int32_t i = 0; i < 3; i++) {
		tn_function_call(f, &y, &out);
		look(t, out);
		look(t, x);
	}
	tn_function_free(f);
}

static void test_ten_more(void **state)
{
	static void (*const each[])(trial *, tn_context *, tn_mesh *) = {
		transposed, diagonal, stretch, overlapping, flipped, flattened,
		from_columns, saved, optimizer, in_a_function};

	(void)state;
	for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
		for (int64_t n = 1; n <= 8; n += i % 2 == 0 ? 3 : 2)
			both(each[i], n);
}

/* The same kernels as of one process, on fewer elements. */
static void test_compiled(void **state)
{
	(void)state;
	run_both(case_22, 4, false);
	run_both(optimizer, 2, false);
}

/* ---- parts ---- */

static void parts(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 2, SHAPE(3, 4));

	shard(x, m, (tn_placement)TN_PARTS("sum"));
	look(t, x);
	look(t, tn_sin(x));
	look(t, seen(tn_mul(x, x), m, ROWS));
}

static void test_parts(void **state)
{
	(void)state;
	both(parts, 3);
}

/* ---- what is refused, on every process ---- */

static void refused(void (*run)(trial *, tn_context *, tn_mesh *),
	int64_t extent, int32_t n, const char *rule)
{
	ranks_thread t[MAX_RANKS];
	static trial x;

	x = (trial){.run = run, .n_axes = 1, .extent = {extent}};
	ranks_run(t, n, true, body, &x);
	for (int32_t i = 0; i < n; i++)
		assert_string_equal(t[i].rule, rule);
}

static void bad_axis(trial *t, tn_context *c, tn_mesh *m)
{
	(void)t;
	shard(param(c, "x", 1, SHAPE(6)), m, COLUMNS);
}

static void bad_block(trial *t, tn_context *c, tn_mesh *m)
{
	(void)t;
	shard(param(c, "x", 1, SHAPE(6)), m,
		(tn_placement)TN_SHARDED_BY(0, 1));
}

static void bad_twice(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 2, SHAPE(6, 6));

	(void)t;
	shard(x, m, ROWS);
	shard(x, m, COLUMNS);
}

static void bad_parts(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 1, SHAPE(6));

	(void)t;
	shard(x, m, (tn_placement)TN_PARTS("sum"));
	tn_copy_(x, tn_sin(x));
}

static void bad_op(trial *t, tn_context *c, tn_mesh *m)
{
	(void)t;
	shard(param(c, "x", 1, SHAPE(6)), m, (tn_placement)TN_PARTS("mean"));
}

static void bad_view(trial *t, tn_context *c, tn_mesh *m)
{
	(void)t;
	shard(tn_narrow(param(c, "x", 1, SHAPE(6)), 0, 1, 3), m, ROWS);
}

static void strict(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 1, SHAPE(6));

	(void)t;
	shard(x, m, ROWS);
	tn_shard_strict(c, true);
	look(t, seen(x, m, ROWS)); /* where it lies: nothing moves */
	tn_add_(seen(x, m, WHOLE), tn_scalar(c, TN_F64, 1));
}

static void different(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 1, SHAPE(6));

	tn_shard_debug(c, true);
	shard(x, m, ROWS);
	look(t, tn_process(c) == 1 ? tn_sin(x) : tn_exp(x));
}

static tn_status twice(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)user;
	out[0] = tn_add(in[0], in[0]);
	return tn_context_status(c);
}

static void region(trial *t, tn_context *c, tn_mesh *m)
{
	tn_tensor *x = param(c, "x", 1, SHAPE(6)), *y;

	shard(x, m, ROWS);
	if (tn_cond(c, tn_scalar(c, TN_BOOL, 1), twice, twice, NULL, 1, &x, 1,
		    &y) >= 0)
		look(t, y);
}

static void test_refused(void **state)
{
	(void)state;
	refused(bad_axis, 3, 3, "shard.axis");
	refused(bad_axis, 4, 3, "shard.mesh");
	refused(bad_axis, 0, 2, "shard.mesh");
	refused(bad_block, 3, 3, "shard.block");
	refused(bad_twice, 3, 3, "shard.conflict");
	refused(bad_parts, 3, 3, "shard.parts");
	refused(bad_op, 3, 3, "shard.op");
	refused(bad_view, 3, 3, "shard.view");
	refused(strict, 3, 3, "shard.strict");
	refused(different, 3, 3, "shard.differ");
	refused(region, 2, 2, "shard.region");
}

/* ---- one process ---- */

static void test_alone(void **state)
{
	const trial *t = both(from_columns, 1);

	(void)state;
	assert_int_equal(t->s[0].bytes_sent, 0);
	assert_int_equal(t->s[0].n_moves, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_case_22),
		cmocka_unit_test(test_case_23),
		cmocka_unit_test(test_case_24),
		cmocka_unit_test(test_ten_more),
		cmocka_unit_test(test_compiled),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
