/*
 * A training step in which allocation number 1, 2, 3, ... fails: each time a
 * clean error, nothing leaks, and what could be freed is.
 */
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

static long n_calls, fail_at, n_alive;

static void *resize(void *arg, void *old, size_t n)
{
	void *p;

	(void)arg;
	if (n == 0) {
		n_alive -= old != NULL;
		free(old);
		return NULL;
	}
	if (++n_calls == fail_at)
		return NULL;
	p = realloc(old, n);
	n_alive += old == NULL && p != NULL;
	return p;
}

/* early: the loss is looked at before its gradient is asked for */
static tn_status steps(tn_context *c, bool early)
{
	static const float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	int64_t ws[] = {2, 3}, xs[] = {4, 2};
	tn_optimizer *o;
	tn_tensor *w, *x, *loss;
	tn_status s;
	float got;

	if (tn_optimizer_new(&o, c, "adamw", NULL) < 0)
		return TN_ENOMEM;
	w = tn_parameter(c, "w", TN_F32, 2, ws, data);
	s = tn_optimizer_add(o, w);
	for (int i = 0; i < 2 && s >= 0; i++) {
		tn_scope_enter(c);
		tn_scope_enter(c);
		x = tn_tensor_new(c, TN_F32, 2, xs, data);
		loss = tn_keep(tn_reduce_sum(
			tn_tanh(tn_matmul(x, w)), NULL, 0, false));
		tn_scope_leave(c);
		if (early)
			tn_read(loss, &got, sizeof got);
		tn_backward(loss, NULL);
		tn_optimizer_step(o);
		tn_keep(loss);
		tn_scope_leave(c);
		tn_read(loss, &got, sizeof got);
		tn_drop(loss);
		tn_eval(&w, 1);
		s = tn_context_status(c);
	}
	s = tn_context_status(c);
	tn_optimizer_free(o);
	return s;
}

static tn_status train(tn_context *c)
{
	return steps(c, false);
}

static tn_status train_early(tn_context *c)
{
	return steps(c, true);
}

static char path[] = "/tmp/tenon_nomem_XXXXXX";

/* Layers, a step, to a file and back. */
static tn_status layers(tn_context *c)
{
	static const float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	int64_t xs[] = {4, 2};
	tn_optimizer *o = NULL;
	tn_params *p;
	tn_layer *fc, *norm;
	tn_tensor *x;
	tn_status s = tn_params_new(&p, c);

	if (s < 0)
		return s;
	fc = tn_nn_linear(p, "fc", 2, 3, NULL);
	norm = tn_nn_batch_norm(p, "norm", 3, NULL);
	if (tn_optimizer_new(&o, c, "sgd", NULL) >= 0 &&
		tn_optimizer_add_all(o, p) >= 0) {
		tn_scope_enter(c);
		x = tn_tensor_new(c, TN_F32, 2, xs, data);
		x = tn_nn_forward(norm, tn_nn_forward(fc, x));
		tn_backward(tn_reduce_sum(tn_square(x), NULL, 0, false), NULL);
		tn_optimizer_step(o);
		tn_scope_leave(c);
		tn_params_eval(p);
		tn_params_save(p, path, NULL, 0);
		tn_params_load(p, path, true);
	}
	s = tn_context_status(c);
	tn_optimizer_free(o);
	tn_params_free(p);
	return s;
}

static void fail_each(tn_status (*task)(tn_context *c))
{
	tn_options o = TN_OPTIONS_INIT;
	tn_status s = TN_ENOMEM;
	long n = 0;

	o.interp = true; /* the C compiler is another process */
	o.memory.resize = resize;
	o.memory_limit = 0; /* what can be made again is */
	/* all of the first 200; under ASan there are thousands */
	while (s != TN_OK && n < 100000) {
		tn_context *c = NULL;

		n_calls = n_alive = 0;
		n += 1 + n / 200;
		fail_at = n;
		s = tn_context_new(&c, &o);
		if (s == TN_OK)
			s = task(c);
		if (s != TN_OK)
			assert_int_equal(s, TN_ENOMEM);
		tn_context_free(c);
		if (n_alive != 0)
			fail_msg("%ld blocks are left behind when allocation "
				 "%ld fails",
				n_alive, n);
	}
	assert_int_equal(s, TN_OK);
	assert_true(n > 20); /* it did allocate */
}

static void each_allocation_fails(void **state)
{
	(void)state;
	fail_each(train);
	fail_each(train_early);
}

static void each_allocation_of_layers_fails(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	fail_each(layers);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_fails),
		cmocka_unit_test(each_allocation_of_layers_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
