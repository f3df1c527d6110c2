/*
 * resnet.c: a small residual network tells noisy pictures of bars, crosses
 * and frames apart. Convolutions, batch norms with running statistics, a
 * strided block with a projection, global pooling.
 *
 *     cc resnet.c -ltenon -lm && ./a.out [STEPS]
 *
 * Exits 0 when the loss has fallen below 0.2, else 1.
 */
#include <tenon.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 16, S = 12, CLASSES = 3, MAX_PARAMS = 64 };

static tn_context *c;
static tn_optimizer *opt;
static tn_tensor *param[MAX_PARAMS];
static int n_params;

/* A parameter that is trained, drawn with a deviation of 1 / sqrt(fan in). */
static tn_tensor *weight(int32_t rank, const int64_t *shape, int64_t fan)
{
	int64_t n = 1;
	float *w;
	tn_tensor *t;

	for (int32_t i = 0; i < rank; i++)
		n *= shape[i];
	w = malloc((size_t)n * sizeof *w);
	if (w == NULL)
		return NULL;
	tn_fill_random(TN_F32, w, n, (uint64_t)n_params + 1, 0, 0);
	for (int64_t i = 0; i < n; i++)
		w[i] *= sqrtf(3.0f / (float)fan);
	t = tn_parameter(c, NULL, TN_F32, rank, shape, w);
	free(w);
	tn_optimizer_add(opt, t);
	return param[n_params++] = t;
}

/* A vector that starts at a constant; trained or a statistic. */
static tn_tensor *vector(int64_t n, float value, bool trained)
{
	tn_tensor *t = tn_parameter(c, NULL, TN_F32, 1, &n, NULL);

	tn_no_grad_enter(c);
	tn_fill_(t, (double)value);
	tn_no_grad_leave(c);
	if (trained) {
		tn_optimizer_add(opt, t);
		param[n_params++] = t;
	}
	return t;
}

typedef struct unit { /* convolution and batch norm */
	tn_tensor *w, *g, *b, *mean, *var;
	int64_t stride, pad;
} unit;

static unit unit_new(int64_t in, int64_t out, int64_t k, int64_t stride)
{
	unit u = {.stride = stride, .pad = k / 2};
	int64_t shape[] = {out, in, k, k};

	u.w = weight(4, shape, in * k * k);
	u.g = vector(out, 1, true);
	u.b = vector(out, 0, true);
	u.mean = vector(out, 0, false);
	u.var = vector(out, 1, false);
	return u;
}

/* x (B, C, H, W) -> (B, F, H / stride, W / stride) */
static tn_tensor *unit_run(const unit *u, tn_tensor *x)
{
	int64_t s[] = {u->stride, u->stride}, p[] = {u->pad, u->pad};
	tn_tensor *out[3];

	x = tn_conv(x, u->w, 1, s, 2, NULL, 0, p, 2, p, 2);
	tn_batch_norm(x, u->g, u->b, u->mean, u->var, 1e-5, 0.1, out);
	tn_no_grad_enter(c);
	tn_copy_(u->mean, out[1]); /* written where they stand */
	tn_copy_(u->var, out[2]);
	tn_no_grad_leave(c);
	return out[0];
}

/* Pictures x (B, 1, S, S) and what they show y (B). */
static void pictures(float *x, int64_t *y, uint64_t seed)
{
	float u[B];

	tn_fill_random(TN_F32, x, B * S * S, seed, 0, 0);
	tn_fill_random(TN_F32, u, B, seed + 1, 0, 0);
	for (int i = 0; i < B; i++) {
		int at = 3 + (int)(2.9f * (u[i] + 1));

		y[i] = i % CLASSES;
		for (int k = 0; k < S * S; k++) {
			int r = k / S, q = k % S;
			bool on = y[i] == 0 ? r == at
				: y[i] == 1 ? r == at || q == at
					    : r == 1 || q == 1 || r == at + 2 ||
						      q == at + 2;

			x[i * S * S + k] = 0.5f * x[i * S * S + k] + (float)on;
		}
	}
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 120;
	tn_optimizer_options o = TN_OPTIMIZER_OPTIONS_INIT;
	unit stem, a1, a2, b1, b2, skip;
	tn_tensor *head, *bias;
	int64_t hs[] = {16, CLASSES};
	double value = INFINITY;

	o.lr = 0.005;
	o.clip_norm = 5;
	if (tn_context_new(&c, NULL) < 0 ||
		tn_optimizer_new(&opt, c, "adamw", &o) < 0)
		return 1;
	stem = unit_new(1, 8, 3, 1);
	a1 = unit_new(8, 8, 3, 1);
	a2 = unit_new(8, 8, 3, 1);
	b1 = unit_new(8, 16, 3, 2);
	b2 = unit_new(16, 16, 3, 1);
	skip = unit_new(8, 16, 1, 2);
	head = weight(2, hs, 16);
	bias = vector(CLASSES, 0, true);
	for (int step = 0; step < steps; step++) {
		static float xd[B * S * S];
		int64_t yd[B], xs[] = {B, 1, S, S}, ys[] = {B}, flat[] = {B, 16};
		tn_tensor *x, *y, *h, *r, *loss;

		pictures(xd, yd, 1000 + 2 * (uint64_t)step);
		tn_scope_enter(c);
		x = tn_tensor_new(c, TN_F32, 4, xs, xd); /* (B, 1, S, S) */
		y = tn_tensor_new(c, TN_I64, 1, ys, yd); /* (B) */
		h = tn_relu(unit_run(&stem, x));	 /* (B, 8, S, S) */
		r = unit_run(&a2, tn_relu(unit_run(&a1, h)));
		h = tn_relu(tn_add(h, r)); /* (B, 8, S, S) */
		r = unit_run(&b2, tn_relu(unit_run(&b1, h)));
		h = tn_relu(tn_add(unit_run(&skip, h), r)); /* (B, 16, S/2, S/2) */
		h = tn_reshape(tn_global_avg_pool(h), flat, 2); /* (B, 16) */
		loss = tn_cross_entropy(
			tn_add(tn_matmul(h, head), bias), y); /* () */
		tn_backward(loss, NULL);
		tn_optimizer_step(opt);
		tn_keep(loss);
		tn_scope_leave(c);
		tn_eval(param, n_params);
		value = tn_item(loss);
		tn_drop(loss);
		if (step % 20 == 0 || step == steps - 1)
			printf("step %3d  loss %.4f\n", step, value);
	}
	if (tn_context_status(c) != TN_OK)
		fprintf(stderr, "resnet: %s\n", tn_context_diag(c)->text);
	tn_optimizer_free(opt);
	tn_context_free(c);
	return value < 0.2 ? 0 : 1;
}
