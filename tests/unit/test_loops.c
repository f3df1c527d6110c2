/*
 * test_loops.c: training loops as people write them, with state that each step
 * leaves for the next one: in plain calls, with the forward compiled, and with
 * the whole step compiled; with and without memory for gradients; with state in
 * tensors and in parameters. After each of six steps everything has the same
 * bits in all of them.
 */
#include "tenon.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#ifndef LOOPS_INTERP
#define LOOPS_INTERP true
#endif

/* rounding: fused kernels sum in other orders */
#ifndef LOOPS_FUSED
#define LOOPS_FUSED false
#endif

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

/* ---- small calls ---- */

static tn_tensor *number(loop *l, double v)
{
	return tn_scalar(l->c, TN_F32, v);
}

static tn_tensor *scaled(loop *l, tn_tensor *x, double by)
{
	return tn_mul(x, number(l, by));
}

static tn_tensor *mean(tn_tensor *x)
{
	return tn_reduce_mean(x, NULL, 0, false);
}

static tn_tensor *sum(tn_tensor *x)
{
	return tn_reduce_sum(x, NULL, 0, false);
}

static tn_tensor *error_of(tn_tensor *x, tn_tensor *y)
{
	return mean(tn_square(tn_sub(x, y)));
}

static tn_tensor *turned(tn_tensor *x)
{
	static const int64_t perm[2] = {1, 0};

	return tn_transpose(x, perm, 2);
}

/* x = a x + b y, without a gradient */
static void mix(loop *l, tn_tensor *x, double a, tn_tensor *y, double b)
{
	tn_no_grad_enter(l->c);
	tn_copy_(x, tn_add(scaled(l, x, a), scaled(l, y, b)));
	tn_no_grad_leave(l->c);
}

static void put(loop *l, tn_tensor *x, tn_tensor *y)
{
	tn_no_grad_enter(l->c);
	tn_copy_(x, y);
	tn_no_grad_leave(l->c);
}

static void fill(float *v, int32_t n, int32_t seed)
{
	for (int32_t i = 0; i < n; i++)
		v[i] = (float)sin(1.3 * i + 0.7 * seed + 0.1);
}

static tn_tensor *trained(loop *l, int32_t rank, const int64_t *shape)
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

static tn_tensor *state(loop *l, tn_dtype t, int32_t rank,
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

static void zeros(loop *l, int32_t rank, const int64_t *shape)
{
	state(l, TN_F32, rank, shape, NULL);
}

static void one_number(loop *l, float v)
{
	state(l, TN_F32, 0, NULL, &v);
}

static void counter(loop *l)
{
	state(l, TN_I64, 0, NULL, NULL);
}

static void count(loop *l, tn_tensor *n)
{
	put(l, n, tn_add(n, tn_scalar(l->c, TN_I64, 1)));
}

static tn_tensor *as_float(tn_tensor *x)
{
	return tn_cast(x, TN_F32);
}

/* w = w - rate grad, for all */
static void descend(loop *l, tn_tensor *rate)
{
	for (int32_t i = 0; i < l->n_w; i++) {
		put(l, l->w[i],
			tn_sub(l->w[i], tn_mul(rate, tn_gradient(l->w[i]))));
		tn_zero_grad(l->w[i]);
	}
}

static void sgd(loop *l, tn_tensor *loss)
{
	tn_backward(loss, NULL);
	descend(l, number(l, 0.1));
}

/* ---- forwards and updates ---- */

static void one_weight(loop *l)
{
	trained(l, 2, nn);
}

static tn_tensor *line(loop *l, tn_tensor *const *in)
{
	return error_of(tn_matmul(in[0], l->w[0]), in[1]);
}

static void weight_and_mean(loop *l)
{
	trained(l, 2, nn);
	zeros(l, 2, nn);
}

static tn_tensor *average(loop *l, tn_tensor *const *in)
{
	mix(l, l->b[0], 0.9, l->w[0], 0.1);
	return line(l, in);
}

/* the largest input so far, which scales the next ones */
static void make_maximum(loop *l)
{
	trained(l, 2, nn);
	one_number(l, 0.5f);
}

static tn_tensor *maximum(loop *l, tn_tensor *const *in)
{
	tn_tensor *most = tn_reduce_max(tn_abs(in[0]), NULL, 0, false);

	put(l, l->b[0], tn_max(l->b[0], most));
	return error_of(
		tn_matmul(tn_div(in[0], l->b[0]), l->w[0]), in[1]);
}

static void make_rnn(loop *l)
{
	trained(l, 2, nn);
	trained(l, 2, nn);
	zeros(l, 2, bn);
}

static tn_tensor *cell(loop *l, tn_tensor *x, tn_tensor *h)
{
	return tn_tanh(tn_add(
		tn_matmul(x, l->w[0]), tn_matmul(h, l->w[1])));
}

static tn_tensor *rnn(loop *l, tn_tensor *const *in)
{
	tn_tensor *h = cell(l, in[0], l->b[0]);

	put(l, l->b[0], h);
	return error_of(h, in[1]);
}

/* a few cells with a gradient between them, none to the step before */
static tn_tensor *truncated(loop *l, tn_tensor *const *in)
{
	tn_tensor *h = tn_detach(l->b[0]), *loss = NULL;

	for (int32_t i = 0; i < 3; i++) {
		tn_tensor *e;

		h = cell(l, tn_mul(in[0], number(l, 1 + i)), h);
		e = error_of(h, in[1]);
		loss = loss == NULL ? e : tn_add(loss, e);
	}
	tn_copy_(l->b[0], tn_detach(h));
	return loss;
}

static void make_counter(loop *l)
{
	trained(l, 2, nn);
	counter(l);
}

static tn_tensor *counted(loop *l, tn_tensor *const *in)
{
	count(l, l->b[0]);
	return tn_div(line(l, in), as_float(l->b[0]));
}

static void make_norm(loop *l)
{
	trained(l, 1, n_);
	zeros(l, 1, n_);
	zeros(l, 1, n_);
}

static tn_tensor *batch_norm(loop *l, tn_tensor *const *in)
{
	static const int64_t first[1] = {0};
	tn_tensor *m = tn_reduce_mean(in[0], first, 1, false);
	tn_tensor *d = tn_sub(in[0], m);
	tn_tensor *v = tn_reduce_mean(tn_square(d), first, 1, false);
	tn_tensor *y = tn_mul(
		tn_mul(d, tn_rsqrt(tn_add(v, number(l, 1e-3)))), l->w[0]);

	mix(l, l->b[0], 0.9, m, 0.1);
	mix(l, l->b[1], 0.9, v, 0.1);
	return error_of(y, in[1]);
}

/* momentum: v = 0.9 v + g; w = w - 0.1 v */
static void momentum(loop *l, tn_tensor *loss)
{
	tn_backward(loss, NULL);
	mix(l, l->b[0], 0.9, tn_gradient(l->w[0]), 1);
	mix(l, l->w[0], 1, l->b[0], -0.1);
	tn_zero_grad(l->w[0]);
}

static void make_adam(loop *l)
{
	trained(l, 2, nn);
	zeros(l, 2, nn);
	zeros(l, 2, nn);
	counter(l);
}

static tn_tensor *unbiased(loop *l, tn_tensor *m, double beta)
{
	tn_tensor *p = tn_pow(number(l, beta), as_float(l->b[2]));

	return tn_div(m, tn_sub(number(l, 1), p));
}

static void adam(loop *l, tn_tensor *loss)
{
	tn_tensor *w = l->w[0], *g, *m = l->b[0], *v = l->b[1], *by;

	tn_grad(1, &loss, NULL, 1, &w, &g);
	mix(l, m, 0.9, g, 0.1);
	mix(l, v, 0.99, tn_square(g), 0.01);
	count(l, l->b[2]);
	by = tn_div(unbiased(l, m, 0.9),
		tn_add(tn_sqrt(unbiased(l, v, 0.99)), number(l, 1e-6)));
	mix(l, w, 1, by, -0.05);
}

/* an update at each third step, by the sum of three gradients */
static void accumulate(loop *l, tn_tensor *loss)
{
	tn_backward(loss, NULL);
	if (l->step % 3 == 2)
		descend(l, number(l, 0.1 / 3));
}

static void make_two(loop *l)
{
	trained(l, 2, nn);
	trained(l, 1, n_);
}

static tn_tensor *affine(loop *l, tn_tensor *const *in)
{
	return error_of(
		tn_add(tn_matmul(in[0], l->w[0]), l->w[1]), in[1]);
}

static tn_tensor *squares(loop *l)
{
	tn_tensor *s = NULL;

	for (int32_t i = 0; i < l->n_w; i++) {
		tn_tensor *q = sum(tn_square(tn_gradient(l->w[i])));

		s = s == NULL ? q : tn_add(s, q);
	}
	return s;
}

static void clip(loop *l, tn_tensor *loss)
{
	tn_tensor *norm;

	tn_backward(loss, NULL);
	tn_no_grad_enter(l->c);
	norm = tn_sqrt(squares(l));
	tn_no_grad_leave(l->c);
	descend(l, tn_div(number(l, 0.1), tn_max(norm, number(l, 0.5))));
}

/* ---- a scaled loss: steps whose gradient overflows are left out ---- */

static void make_scale(loop *l)
{
	trained(l, 2, nn);
	one_number(l, 3e38f); /* the first ones overflow */
	counter(l);
}

static tn_tensor *scaled_loss(loop *l, tn_tensor *const *in)
{
	return tn_mul(line(l, in), l->b[0]);
}

static tn_status take_step(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	loop *l = user;

	(void)c;
	(void)out;
	put(l, l->w[0], tn_sub(l->w[0], tn_div(in[0], l->b[0])));
	count(l, l->b[1]);
	return TN_OK;
}

static tn_status skip_step(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	loop *l = user;

	(void)c;
	(void)in;
	(void)out;
	put(l, l->b[0], scaled(l, l->b[0], 1e-5));
	return TN_OK;
}

static void scale(loop *l, tn_tensor *loss)
{
	tn_tensor *w = l->w[0], *g;

	tn_grad(1, &loss, NULL, 1, &w, &g);
	tn_cond(l->c, tn_reduce_all(tn_isfinite(g), NULL, 0, false), take_step,
		skip_step, l, 1, &g, 0, NULL);
}

/* ---- other forwards ---- */

static tn_tensor *tied(loop *l, tn_tensor *const *in)
{
	tn_tensor *h = tn_tanh(tn_matmul(in[0], l->w[0]));

	return error_of(tn_matmul(h, turned(l->w[0])), in[1]);
}

/* a network's copy of two steps ago makes the targets */
static void make_target(loop *l)
{
	float v[N * N];

	trained(l, 2, nn);
	fill(v, N * N, 5);
	state(l, TN_F32, 2, nn, v);
	counter(l);
}

static tn_status copy_weights(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	loop *l = user;

	(void)c;
	(void)in;
	(void)out;
	put(l, l->b[0], l->w[0]);
	return TN_OK;
}

static tn_status nothing(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c;
	(void)user;
	(void)in;
	(void)out;
	return TN_OK;
}

static tn_tensor *target(loop *l, tn_tensor *const *in)
{
	tn_tensor *even = tn_eq(tn_mod(l->b[1], tn_scalar(l->c, TN_I64, 2)),
		tn_scalar(l->c, TN_I64, 0));
	tn_tensor *want;

	tn_cond(l->c, even, copy_weights, nothing, l, 0, NULL, 0, NULL);
	count(l, l->b[1]);
	want = tn_add(in[1],
		scaled(l, tn_detach(tn_matmul(in[1], l->b[0])), 0.9));
	return error_of(tn_matmul(in[0], l->w[0]), want);
}

/* a ring of three batches, of which the newest takes the place of the oldest */
static void make_ring(loop *l)
{
	static const int64_t shape[3] = {3, B, N};

	trained(l, 2, nn);
	zeros(l, 3, shape);
	counter(l);
}

static tn_tensor *ring(loop *l, tn_tensor *const *in)
{
	static const int64_t one[3] = {1, B, N}, first[1] = {0};
	tn_tensor *at = tn_dynamic_narrow(l->b[0], l->b[1], 0, 1);

	put(l, at, tn_reshape(in[0], one, 3));
	put(l, l->b[1],
		tn_mod(tn_add(l->b[1], tn_scalar(l->c, TN_I64, 1)),
			tn_scalar(l->c, TN_I64, 3)));
	return error_of(tn_matmul(tn_reduce_sum(l->b[0], first, 1, false),
				l->w[0]), in[1]);
}

static tn_status blend(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	loop *l = user;

	(void)c;
	mix(l, l->b[0], 0.8, l->w[0], 0.2);
	out[0] = tn_tanh(in[0]);
	return TN_OK;
}

static tn_status leave(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)c;
	(void)user;
	out[0] = tn_square(in[0]);
	return TN_OK;
}

static tn_tensor *blended(loop *l, tn_tensor *const *in)
{
	tn_tensor *y = tn_matmul(in[0], l->w[0]);

	tn_cond(l->c, tn_gt(sum(in[0]), number(l, 0)), blend, leave, l, 1, &y,
		1, &y);
	return error_of(y, in[1]);
}

/* rows one by one, with a hidden state and a mean of all rows so far */
static void make_scan(loop *l)
{
	trained(l, 2, nn);
	zeros(l, 1, n_);
	zeros(l, 1, n_);
}

static tn_status row(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	static const int64_t one[2] = {1, N};
	loop *l = user;
	tn_tensor *h = tn_add(in[0], in[1]);

	(void)c;
	h = tn_tanh(tn_reshape(
		tn_matmul(tn_reshape(h, one, 2), l->w[0]), n_, 1));
	mix(l, l->b[1], 0.7, in[1], 0.3);
	out[0] = h;
	out[1] = tn_add(h, l->b[1]);
	return TN_OK;
}

static tn_tensor *scanned(loop *l, tn_tensor *const *in)
{
	tn_tensor *arg[2] = {l->b[0], in[0]}, *out[2];

	tn_scan(l->c, row, l, B, 1, 1, arg, 1, out);
	put(l, l->b[0], out[0]);
	return error_of(out[1], in[1]);
}

/* a rate that falls at each step */
static void make_rate(loop *l)
{
	trained(l, 2, nn);
	one_number(l, 0.2f);
}

static void falling(loop *l, tn_tensor *loss)
{
	tn_backward(loss, NULL);
	descend(l, l->b[0]);
	tn_no_grad_enter(l->c);
	tn_mul_(l->b[0], number(l, 0.7));
	tn_no_grad_leave(l->c);
}

/* a weight over its largest singular value, found by one more round a step */
static void make_spectral(loop *l)
{
	static const float u[N] = {0.6f, 0.8f, 0.1f};

	trained(l, 2, nn);
	state(l, TN_F32, 1, n_, u);
}

static tn_tensor *unit(tn_tensor *x)
{
	return tn_div(x, tn_sqrt(sum(tn_square(x))));
}

static tn_tensor *spectral(loop *l, tn_tensor *const *in)
{
	static const int64_t col[2] = {N, 1};
	tn_tensor *w = l->w[0], *u = l->b[0], *v, *s;

	tn_no_grad_enter(l->c);
	v = unit(tn_matmul(turned(w), tn_reshape(u, col, 2)));
	tn_copy_(u, tn_reshape(unit(tn_matmul(w, v)), n_, 1));
	tn_no_grad_leave(l->c);
	s = sum(tn_mul(tn_reshape(u, col, 2), tn_matmul(w, v)));
	return error_of(tn_matmul(in[0], tn_div(w, s)), in[1]);
}

/* the upper row of a table is the mean, the lower one the last input */
static void make_table(loop *l)
{
	static const int64_t shape[2] = {2, N};

	trained(l, 2, nn);
	zeros(l, 2, shape);
}

static tn_tensor *table(loop *l, tn_tensor *const *in)
{
	static const int64_t first[1] = {0};
	tn_tensor *m = tn_reduce_mean(in[0], first, 1, false);
	tn_tensor *y = tn_matmul(in[0], l->w[0]);

	mix(l, tn_select(l->b[0], 0, 0), 0.5, m, 0.5);
	put(l, tn_select(l->b[0], 0, 1), m);
	y = tn_mul(y, tn_select(l->b[0], 0, 0));
	return error_of(y, in[1]);
}

/* the same state written twice in a step, and read between and behind */
static tn_tensor *twice(loop *l, tn_tensor *const *in)
{
	tn_tensor *y = tn_matmul(in[0], l->w[0]), *z;

	put(l, l->b[0], l->w[0]);
	z = tn_matmul(y, l->b[0]);
	mix(l, l->b[0], 0.5, l->w[0], 0.5);
	return error_of(tn_matmul(tn_tanh(z), l->b[0]), in[1]);
}

/* two networks, of which one is the slow mean of the other and its teacher */
static tn_tensor *teacher(loop *l, tn_tensor *const *in)
{
	tn_tensor *want;

	tn_no_grad_enter(l->c);
	want = tn_tanh(tn_matmul(in[1], l->b[0]));
	tn_no_grad_leave(l->c);
	mix(l, l->b[0], 0.75, l->w[0], 0.25);
	return error_of(tn_tanh(tn_matmul(in[0], l->w[0])), want);
}

/* weights that the forward itself keeps in bounds */
static tn_tensor *bounded(loop *l, tn_tensor *const *in)
{
	put(l, l->w[0], tn_clip(l->w[0], -0.7, 0.7));
	return line(l, in);
}

/* a second loss of these weights, whose gradient comes first */
static void second_loss(loop *l, tn_tensor *loss)
{
	tn_backward(sum(tn_square(l->w[0])), NULL);
	sgd(l, loss);
}

/* a row that is padding stays zero */
static tn_tensor *padded(loop *l, tn_tensor *const *in)
{
	tn_no_grad_enter(l->c);
	tn_fill_(tn_select(l->w[0], 0, 1), 0);
	tn_no_grad_leave(l->c);
	return line(l, in);
}

/* state that is written with a gradient, and wholly anew at each step */
static tn_tensor *written(loop *l, tn_tensor *const *in)
{
	tn_copy_(l->b[0], tn_tanh(cell(l, in[0], in[1])));
	return error_of(l->b[0], in[1]);
}

static tn_status below(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	(void)user;
	out[0] = tn_lt(in[0], tn_scalar(c, TN_I64, 3));
	return TN_OK;
}

static tn_status add_up(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	loop *l = user;

	mix(l, l->b[0], 0.5, in[1], 0.5);
	out[0] = tn_add(in[0], tn_scalar(c, TN_I64, 1));
	out[1] = tn_tanh(tn_matmul(in[1], l->w[0]));
	return TN_OK;
}

static void make_rounds(loop *l)
{
	trained(l, 2, nn);
	zeros(l, 2, bn);
}

static tn_tensor *rounds(loop *l, tn_tensor *const *in)
{
	tn_tensor *arg[2] = {tn_scalar(l->c, TN_I64, 0), in[0]}, *out[2];

	tn_while(l->c, below, add_up, l, 3, 2, arg, out);
	return error_of(tn_add(out[1], l->b[0]), in[1]);
}

static const pattern patterns[] = {
	{"moving average of a parameter", weight_and_mean, average, NULL,
		false},
	{"running maximum", make_maximum, maximum, NULL, false},
	{"recurrent state", make_rnn, rnn, NULL, false},
	{"truncated backward through time", make_rnn, truncated, NULL, false},
	{"step counter", make_counter, counted, NULL, false},
	{"batch normalisation", make_norm, batch_norm, NULL, false},
	{"momentum by hand", weight_and_mean, line, momentum, false},
	{"adam by hand", make_adam, line, adam, false},
	{"accumulated gradients", one_weight, line, accumulate, true},
	{"clipping by the global norm", make_two, affine, clip, false},
	{"loss scale with skipped steps", make_scale, scaled_loss, scale,
		false},
	{"tied weights", one_weight, tied, NULL, false},
	{"target network", make_target, target, NULL, false},
	{"ring of batches", make_ring, ring, NULL, false},
	{"moving average in a branch", weight_and_mean, blended, NULL, false},
	{"state in a scan", make_scan, scanned, NULL, false},
	{"rate that falls", make_rate, line, falling, false},
	{"spectral norm", make_spectral, spectral, NULL, false},
	{"rows of a table", make_table, table, NULL, false},
	{"state written twice", weight_and_mean, twice, NULL, false},
	{"mean teacher", weight_and_mean, teacher, NULL, false},
	{"state with a gradient", make_rnn, written, NULL, false},
	{"weights in bounds", one_weight, bounded, NULL, false},
	{"weights in bounds, two losses", one_weight, bounded, second_loss,
		false},
	{"a row of padding", one_weight, padded, NULL, false},
	{"a row of padding, two losses", one_weight, padded, second_loss,
		false},
	{"state in a while loop", make_rounds, rounds, NULL, false},
};
enum { N_PATTERNS = sizeof patterns / sizeof patterns[0] };

/* ---- runs ---- */

typedef struct record {
	double at[MAX_RECORD];
	int32_t n, step[STEPS]; /* where each one ends */
} record;

static tn_status body(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	loop *l = user;

	(void)c;
	out[0] = l->p->forward(l, in);
	if (l->how.how == WHOLE)
		(l->p->update != NULL ? l->p->update : sgd)(l, out[0]);
	return TN_OK;
}

static const char *text_of(setting s)
{
	static const char *const how[] = {
		"plain", "forward compiled", "compiled whole"};
	static char text[64];

	(void)snprintf(text, sizeof text, "%s%s%s", how[s.how],
		s.limited ? ", limited" : "",
		s.parameters ? ", in parameters" : "");
	return text;
}

static void note(record *r, tn_tensor *x)
{
	tn_dtype t = tn_tensor_dtype(x);
	int32_t n = (int32_t)tn_tensor_n_elems(x);
	double data[3 * B * N];

	assert_true(r->n + n <= MAX_RECORD && n <= 3 * B * N);
	(void)tn_read(x, data, (size_t)n * tn_dtype_bytes(t));
	for (int32_t i = 0; i < n; i++)
		r->at[r->n++] = tn_get_f64(t, data, i);
}

static void one_step(loop *l, tn_function *f, record *r)
{
	float x[B * N], y[B * N];
	tn_tensor *in[2], *loss;

	tn_scope_enter(l->c);
	fill(x, B * N, l->step);
	fill(y, B * N, 9 + 2 * l->step);
	in[0] = tn_tensor_new(l->c, TN_F32, 2, bn, x);
	in[1] = tn_tensor_new(l->c, TN_F32, 2, bn, y);
	if (f == NULL)
		(void)body(l->c, l, in, &loss);
	else
		(void)tn_function_call(f, in, &loss);
	if (l->how.how != WHOLE)
		(l->p->update != NULL ? l->p->update : sgd)(l, loss);
	if (tn_context_status(l->c) < 0)
		fail_msg("%s, step %d, %s: [%s] %s", l->p->name,
			(int)l->step + 1, text_of(l->how),
			tn_context_diag(l->c)->rule,
			tn_context_diag(l->c)->text);
	note(r, loss);
	for (int32_t i = 0; i < l->n_w; i++)
		note(r, l->w[i]);
	for (int32_t i = 0; i < l->n_b; i++)
		note(r, l->b[i]);
	assert_int_equal(tn_context_status(l->c), TN_OK);
	tn_scope_leave(l->c);
	r->step[l->step] = r->n;
}

static void run(const pattern *p, setting how, record *r)
{
	loop l = {.p = p, .how = how};
	tn_options o = TN_OPTIONS_INIT;
	tn_function *f = NULL;

	o.interp = LOOPS_INTERP;
	o.no_fusion = !LOOPS_FUSED;
	o.threads = 1;
	o.memory_limit = how.limited ? 0 : -1;
	r->n = 0;
	assert_int_equal(tn_context_new(&l.c, &o), TN_OK);
	p->make(&l);
	if (how.how != PLAIN)
		assert_int_equal(tn_compile(&f, l.c, body, &l, 2, 1, p->name),
			TN_OK);
	for (l.step = 0; l.step < STEPS; l.step++)
		one_step(&l, f, r);
	if (f != NULL)
		assert_true(tn_function_n_recorded(f) <= 3);
	tn_function_free(f);
	tn_context_free(l.c);
}

static bool is_same(double x, double y)
{
	return memcmp(&x, &y, sizeof x) == 0 ||
	       (LOOPS_FUSED && fabs(x - y) <= 1e-4 * (1 + fabs(y)));
}

static void check_same(const pattern *p, setting how, const record *want)
{
	static record got;
	int32_t k = 0;

	run(p, how, &got);
	assert_int_equal(got.n, want->n);
	for (int32_t i = 0; i < got.n; i++) {
		while (i >= got.step[k])
			k++;
		if (!is_same(got.at[i], want->at[i]))
			fail_msg("%s, %s, step %d, element %d: %.9g, %.9g",
				p->name, text_of(how), (int)k + 1,
				(int)(i - (k > 0 ? got.step[k - 1] : 0)),
				got.at[i], want->at[i]);
	}
}

/* Do the steps do anything: is no step's record that of the one before? */
static void check_moves(const pattern *p, const record *r)
{
	for (int32_t k = 1; k < STEPS; k++) {
		int32_t n = r->step[0], at = r->step[k - 1];

		if (memcmp(r->at + at, r->at + at - n,
			    (size_t)n * sizeof *r->at) == 0)
			fail_msg("%s: step %d changes nothing", p->name,
				(int)k + 1);
	}
}

static void loops_agree(void **unused)
{
	static record want;

	(void)unused;
	for (int32_t k = 0; k < N_PATTERNS; k++) {
		const pattern *p = &patterns[k];

		run(p, (setting){PLAIN, false, false}, &want);
		check_moves(p, &want);
		for (int32_t i = 1; i < 12; i++) {
			setting how = {(mode)(i % 3), i / 3 % 2 != 0, i >= 6};

			if (how.how != WHOLE || !p->is_by_c)
				check_same(p, how, &want);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
