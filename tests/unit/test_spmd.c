/*
 * test_spmd.c: tensors on several processes through the public interface:
 * in-place cases 22 to 24 and writes through views of sharded storages, each by
 * one process and by several; what is sent; what is refused, on every process.
 */
#include "ranks.h"
#include "unit.h"

#include <math.h>
#include <string.h>

enum { MAX_OUT = 512, MAX_RANKS = 8 };

typedef struct trial {
	/* the program; m NULL: by one process */
	void (*run)(struct trial *t, tn_context *c, tn_mesh *m);
	int32_t n_axes;
	int64_t extent[3];
	bool alone;
	int32_t n[MAX_RANKS];
	double v[MAX_RANKS][MAX_OUT];
	tn_shard_stats s[MAX_RANKS];
} trial;

static void body(tn_context *c, int32_t process, void *arg)
{
	trial *t = arg;
	tn_mesh *m = t->alone ? NULL
			      : tn_mesh_new(c, t->n_axes, NULL, t->extent);

	if (!t->alone && m == NULL)
		return;
	t->run(t, c, m);
	tn_context_shard_stats(c, &t->s[process]);
}

static void look(trial *t, tn_tensor *x)
{
	int32_t p = tn_process(tn_tensor_context(x));
	int64_t n = tn_tensor_n_elems(x);

	if (t->n[p] + n > MAX_OUT)
		abort();
	if (tn_read(x, t->v[p] + t->n[p], (size_t)n * sizeof(double)) >= 0)
		t->n[p] += (int32_t)n;
}

static tn_tensor *param(
	tn_context *c, const char *name, int32_t rank, const int64_t *shape)
{
	double data[256];
	int64_t n = 1;

	for (int32_t i = 0; i < rank; i++)
		n *= shape[i];
	for (int64_t i = 0; i < n; i++)
		data[i] = 0.5 + (double)(i * 7 % 11);
	return tn_parameter(c, name, TN_F64, rank, shape, data);
}

static void shard(tn_tensor *x, tn_mesh *m, tn_placement a)
{
	tn_placement p[3] = {a, TN_REPLICATED, TN_REPLICATED};

	if (m != NULL)
		tn_shard(x, m, p);
}

static tn_tensor *seen(tn_tensor *x, tn_mesh *m, tn_placement a)
{
	tn_placement p[3] = {a, TN_REPLICATED, TN_REPLICATED};

	return m != NULL ? tn_reshard(x, m, p) : x;
}

#define ROWS ((tn_placement)TN_SHARDED(0))
#define COLUMNS ((tn_placement)TN_SHARDED(1))
#define WHOLE ((tn_placement)TN_REPLICATED)
#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

static trial *run_both(
	void (*run)(trial *, tn_context *, tn_mesh *), int64_t n, bool interp)
{
	static trial one, all; /* large */
	ranks_thread t[MAX_RANKS];

	one = (trial){.run = run, .alone = true};
	all = (trial){.run = run, .n_axes = 1, .extent = {n, 1, 1}};
	ranks_run(t, 1, interp, body, &one);
	assert_string_equal(t[0].text, "");
	ranks_run(t, (int32_t)n, interp, body, &all);
	for (int32_t p = 0; p < n; p++) {
		assert_string_equal(t[p].text, "");
		assert_int_equal(all.n[p], one.n[0]);
		assert_true(one.n[0] > 0);
		for (int32_t i = 0; i < one.n[0]; i++)
			assert_true(fabs(all.v[p][i] - one.v[0][i]) <=
				1e-12 * (1 + fabs(one.v[0][i])));
	}
	return &all;
}

static trial *both(void (*run)(trial *, tn_context *, tn_mesh *), int64_t n)
{
	return run_both(run, n, true);
}

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

/* ---- one process, and a fault in one ---- */

static void test_alone(void **state)
{
	const trial *t = both(from_columns, 1);

	(void)state;
	assert_int_equal(t->s[0].bytes_sent, 0);
	assert_int_equal(t->s[0].n_moves, 0);
}

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
		cmocka_unit_test(test_case_22),
		cmocka_unit_test(test_case_23),
		cmocka_unit_test(test_case_24),
		cmocka_unit_test(test_ten_more),
		cmocka_unit_test(test_compiled),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_alone),
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
