/*
 * loops_patterns.c: training loops with state that each step leaves for the next
 * one.
 */
#include "loops.h"

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

const pattern loops_patterns[] = {
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
const int32_t loops_n_patterns =
	(int32_t)(sizeof loops_patterns / sizeof loops_patterns[0]);
