/*
 * spmd_trial.h: a program run by one process and by several, which must compute
 * the same.
 */
#ifndef SPMD_TRIAL_H
#define SPMD_TRIAL_H

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

static inline void body(tn_context *c, int32_t process, void *arg)
{
	trial *t = arg;
	tn_mesh *m = t->alone ? NULL
			      : tn_mesh_new(c, t->n_axes, NULL, t->extent);

	if (!t->alone && m == NULL)
		return;
	t->run(t, c, m);
	tn_context_shard_stats(c, &t->s[process]);
}

static inline void look(trial *t, tn_tensor *x)
{
	int32_t p = tn_process(tn_tensor_context(x));
	int64_t n = tn_tensor_n_elems(x);

	if (t->n[p] + n > MAX_OUT)
		abort();
	if (tn_read(x, t->v[p] + t->n[p], (size_t)n * sizeof(double)) >= 0)
		t->n[p] += (int32_t)n;
}

static inline tn_tensor *param(
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

static inline void shard(tn_tensor *x, tn_mesh *m, tn_placement a)
{
	tn_placement p[3] = {a, TN_REPLICATED, TN_REPLICATED};

	if (m != NULL)
		tn_shard(x, m, p);
}

static inline tn_tensor *seen(tn_tensor *x, tn_mesh *m, tn_placement a)
{
	tn_placement p[3] = {a, TN_REPLICATED, TN_REPLICATED};

	return m != NULL ? tn_reshard(x, m, p) : x;
}

#define ROWS ((tn_placement)TN_SHARDED(0))
#define COLUMNS ((tn_placement)TN_SHARDED(1))
#define WHOLE ((tn_placement)TN_REPLICATED)
#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

static inline trial *run_both(
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

static inline trial *both(void (*run)(trial *, tn_context *, tn_mesh *), int64_t n)
{
	return run_both(run, n, true);
}

#endif
