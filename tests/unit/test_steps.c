/*
 * Ten thousand steps of training without tn_compile: resident memory stays
 * where it is, and nothing is compiled after the first steps.
 */
#include "unit.h"

#include <stdio.h>
#include <unistd.h>

enum { B = 8, IN = 6, H = 16, CLASSES = 3, STEPS = 10000, WARM = 1000 };

typedef struct net {
	tn_context *c;
	tn_optimizer *opt;
	tn_tensor *p[4];
} net;

/* Pages of this process that are in memory, without those of files. */
static long resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long all = 0, here = 0, files = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld %ld %ld", &all, &here, &files), 3);
	fclose(f);
	return here - files;
}

static void open_net(net *m)
{
	static const int64_t shape[4][2] = {
		{IN, H}, {H}, {H, CLASSES}, {CLASSES}};
	tn_optimizer_options o = TN_OPTIMIZER_OPTIONS_INIT;
	float w[IN * H];

	o.clip_norm = 1;
	assert_int_equal(tn_context_new(&m->c, NULL), TN_OK);
	assert_int_equal(tn_optimizer_new(&m->opt, m->c, "adamw", &o), TN_OK);
	for (int i = 0; i < 4; i++) {
		tn_fill_random(TN_F32, w, IN * H, (uint64_t)i + 1, 0, 0);
		m->p[i] = tn_parameter(m->c, "p", TN_F32, i % 2 ? 1 : 2,
			shape[i], w);
		tn_optimizer_add(m->opt, m->p[i]);
	}
}

/* loss_first: it is looked at before its gradient is asked for. */
static double step(const net *m, int number, bool loss_first)
{
	const int64_t xs[] = {B, IN}, ys[] = {B};
	float x[B * IN];
	int64_t y[B];
	tn_tensor *h, *loss;
	double value = 0;

	tn_fill_random(TN_F32, x, B * IN, 100 + (uint64_t)number, 0, 0);
	for (int i = 0; i < B; i++)
		y[i] = x[IN * i] > 0.3f ? 2 : x[IN * i + 1] > 0;
	tn_optimizer_set_lr(m->opt,
		tn_lr_cosine(number, 100, STEPS, 0.01, 0.0001));
	tn_scope_enter(m->c);
	h = tn_tensor_new(m->c, TN_F32, 2, xs, x); /* (B, IN) */
	h = tn_gelu(tn_add(tn_matmul(h, m->p[0]), m->p[1])); /* (B, H) */
	h = tn_dropout(h, tn_random_key(m->c), 0.1);
	h = tn_add(tn_matmul(h, m->p[2]), m->p[3]); /* (B, CLASSES) */
	loss = tn_cross_entropy(h, tn_tensor_new(m->c, TN_I64, 1, ys, y));
	if (loss_first)
		value = tn_item(loss);
	tn_backward(loss, NULL);
	tn_optimizer_step(m->opt);
	tn_keep(loss);
	tn_scope_leave(m->c);
	assert_int_equal(tn_eval(m->p, 4), TN_OK);
	if (!loss_first)
		value = tn_item(loss);
	tn_drop(loss);
	return value;
}

static void many_steps(bool loss_first)
{
	net m;
	tn_stats first = {0}, last;
	double early = 0, late = 0;
	long warm = 0, end;

	open_net(&m);
	for (int i = 0; i < STEPS; i++) {
		double v = step(&m, i, loss_first);

		*(i < WARM ? &early : &late) += v;
		if (i == 1) /* the second step is like all that follow */
			tn_context_stats(m.c, &first);
		if (i == WARM)
			warm = resident();
	}
	end = resident();
	tn_context_stats(m.c, &last);
	printf("%d steps: %lld programs after step 1: %lld; resident %ld kB "
	       "after %d steps, %ld kB at the end; loss %.3f, then %.3f\n",
		STEPS, (long long)first.n_plan_misses,
		(long long)(last.n_plan_misses - first.n_plan_misses),
		warm * (sysconf(_SC_PAGESIZE) / 1024), WARM,
		end * (sysconf(_SC_PAGESIZE) / 1024), early / WARM,
		late / (STEPS - WARM));
	assert_int_equal(tn_context_status(m.c), TN_OK);
	assert_int_equal(last.n_plan_misses, first.n_plan_misses);
	assert_int_equal(last.n_compiled, first.n_compiled);
	assert_int_equal(last.bytes_live, first.bytes_live);
	assert_int_equal(last.bytes_peak, first.bytes_peak);
	assert_int_equal(last.n_tensors, first.n_tensors);
	/* 8 bytes of every step would be 18 pages */
	assert_true(end - warm < 16);
	assert_true(late / (STEPS - WARM) < 0.7 * early / WARM);
	tn_optimizer_free(m.opt);
	tn_context_free(m.c);
}

static void in_one_program(void **state)
{
	(void)state;
	many_steps(false);
}

static void loss_before_gradient(void **state)
{
	(void)state;
	many_steps(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_one_program),
		cmocka_unit_test(loss_before_gradient),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
