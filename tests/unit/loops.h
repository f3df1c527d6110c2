/*
 * loops.h: training loops as people write them (loops_patterns.c), which
 * test_loops.c runs in several ways.
 */
#ifndef LOOPS_H
#define LOOPS_H

#include "tenon.h"

#include <math.h>

enum { STEPS = 6, B = 4, N = 3, MAX_STATE = 6, MAX_RECORD = 1 << 12 };

static const int64_t bn[2] = {B, N}, nn[2] = {N, N}, n_[1] = {N};

typedef enum mode { PLAIN, FORWARD, WHOLE } mode;

typedef struct setting {
	mode how;
	bool limited;	 /* nothing may be kept for gradients */
	bool parameters; /* state has memory that stays in place */
} setting;

typedef struct loop {
	tn_context *c;
	const struct pattern *p;
	setting how;
	tn_tensor *w[2], *b[MAX_STATE]; /* trained; state */
	int32_t n_w, n_b;
	int32_t step;
} loop;

typedef struct pattern {
	const char *name;
	void (*make)(loop *l);
	/* of in[0] (B, N) and in[1] (B, N): the loss */
	tn_tensor *(*forward)(loop *l, tn_tensor *const *in);
	void (*update)(loop *l, tn_tensor *loss); /* NULL: backward, sgd */
	bool is_by_c; /* C decides at each step: it is not compiled whole */
} pattern;

extern const pattern loops_patterns[];
extern const int32_t loops_n_patterns;

/* ---- small calls ---- */

static inline tn_tensor *number(loop *l, double v)
{
	return tn_scalar(l->c, TN_F32, v);
}

static inline tn_tensor *scaled(loop *l, tn_tensor *x, double by)
{
	return tn_mul(x, number(l, by));
}

static inline tn_tensor *mean(tn_tensor *x)
{
	return tn_reduce_mean(x, NULL, 0, false);
}

static inline tn_tensor *sum(tn_tensor *x)
{
	return tn_reduce_sum(x, NULL, 0, false);
}

static inline tn_tensor *error_of(tn_tensor *x, tn_tensor *y)
{
	return mean(tn_square(tn_sub(x, y)));
}

static inline tn_tensor *turned(tn_tensor *x)
{
	static const int64_t perm[2] = {1, 0};

	return tn_transpose(x, perm, 2);
}

/* x = a x + b y, without a gradient */
static inline void mix(loop *l, tn_tensor *x, double a, tn_tensor *y, double b)
{
	tn_no_grad_enter(l->c);
	tn_copy_(x, tn_add(scaled(l, x, a), scaled(l, y, b)));
	tn_no_grad_leave(l->c);
}

static inline void put(loop *l, tn_tensor *x, tn_tensor *y)
{
	tn_no_grad_enter(l->c);
	tn_copy_(x, y);
	tn_no_grad_leave(l->c);
}

static inline void fill(float *v, int32_t n, int32_t seed)
{
	for (int32_t i = 0; i < n; i++)
		v[i] = (float)sin(1.3 * i + 0.7 * seed + 0.1);
}

static inline tn_tensor *trained(loop *l, int32_t rank, const int64_t *shape)
{
	float v[B * N];
	tn_tensor *x;

	fill(v, B * N, 5 + l->n_w);
	x = l->how.parameters
		? tn_parameter(l->c, "w", TN_F32, rank, shape, v)
		: tn_tensor_new(l->c, TN_F32, rank, shape, v);
	tn_requires_grad(x);
	return l->w[l->n_w++] = x;
}

static inline tn_tensor *state(loop *l, tn_dtype t, int32_t rank,
	const int64_t *shape, const void *data)
{
	tn_tensor *x;

	tn_no_grad_enter(l->c);
	x = l->how.parameters
		? tn_parameter(l->c, "state", t, rank, shape, data)
		: tn_tensor_new(l->c, t, rank, shape, data);
	tn_no_grad_leave(l->c);
	return l->b[l->n_b++] = x;
}

static inline void zeros(loop *l, int32_t rank, const int64_t *shape)
{
	state(l, TN_F32, rank, shape, NULL);
}

static inline void one_number(loop *l, float v)
{
	state(l, TN_F32, 0, NULL, &v);
}

static inline void counter(loop *l)
{
	state(l, TN_I64, 0, NULL, NULL);
}

static inline void count(loop *l, tn_tensor *n)
{
	put(l, n, tn_add(n, tn_scalar(l->c, TN_I64, 1)));
}

static inline tn_tensor *as_float(tn_tensor *x)
{
	return tn_cast(x, TN_F32);
}

/* w = w - rate grad, for all */
static inline void descend(loop *l, tn_tensor *rate)
{
	for (int32_t i = 0; i < l->n_w; i++) {
		put(l, l->w[i],
			tn_sub(l->w[i], tn_mul(rate, tn_gradient(l->w[i]))));
		tn_zero_grad(l->w[i]);
	}
}

static inline void sgd(loop *l, tn_tensor *loss)
{
	tn_backward(loss, NULL);
	descend(l, number(l, 0.1));
}

#endif
