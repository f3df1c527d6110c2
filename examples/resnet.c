/*
 * resnet.c: a small residual network tells noisy pictures of bars, crosses
 * and frames apart. Convolutions, batch norms with running statistics, a
 * strided block with a projection, global pooling. At the end it is asked
 * about new pictures, by the running statistics.
 *
 *     cc resnet.c -ltenon -lm && ./a.out [STEPS]
 *
 * Exits 0 when the loss has fallen below 0.2 and at least 9 of 10 new pictures
 * are told apart, else 1.
 */
#include <tenon.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 16, S = 12, CLASSES = 3, WIDTH = 16 };

typedef struct unit { /* convolution and batch norm */
	tn_layer *conv, *norm;
} unit;

static unit unit_new(tn_params *p, const char *name, int64_t in, int64_t out,
	int64_t k, int64_t stride)
{
	tn_nn_conv2d_options o = TN_NN_CONV2D_OPTIONS_INIT;
	unit u;

	o.stride[0] = o.stride[1] = stride;
	o.padding[0] = o.padding[1] = k / 2;
	o.no_bias = true; /* the norm has one */
	tn_params_enter(p, "%s", name);
	u.conv = tn_nn_conv2d(p, "conv", in, out, k, k, &o);
	u.norm = tn_nn_batch_norm(p, "norm", out, NULL);
	tn_params_leave(p);
	return u;
}

/* x (B, C, H, W) -> (B, F, H / stride, W / stride) */
static tn_tensor *unit_run(const unit *u, tn_tensor *x)
{
	return tn_nn_forward(u->norm, tn_nn_forward(u->conv, x));
}

typedef struct net {
	unit stem, a1, a2, b1, b2, skip;
	tn_layer *head;
} net;

static net net_new(tn_params *p)
{
	return (net){.stem = unit_new(p, "stem", 1, 8, 3, 1),
		.a1 = unit_new(p, "a.1", 8, 8, 3, 1),
		.a2 = unit_new(p, "a.2", 8, 8, 3, 1),
		.b1 = unit_new(p, "b.1", 8, WIDTH, 3, 2),
		.b2 = unit_new(p, "b.2", WIDTH, WIDTH, 3, 1),
		.skip = unit_new(p, "b.skip", 8, WIDTH, 1, 2),
		.head = tn_nn_linear(p, "head", WIDTH, CLASSES, NULL)};
}

/* x (B, 1, S, S) -> (B, CLASSES) */
static tn_tensor *net_run(const net *n, tn_tensor *x)
{
	int64_t flat[] = {B, WIDTH};
	tn_tensor *h, *r;

	h = tn_relu(unit_run(&n->stem, x)); /* (B, 8, S, S) */
	r = unit_run(&n->a2, tn_relu(unit_run(&n->a1, h)));
	h = tn_relu(tn_add(h, r)); /* (B, 8, S, S) */
	r = unit_run(&n->b2, tn_relu(unit_run(&n->b1, h)));
	h = tn_relu(tn_add(unit_run(&n->skip, h), r)); /* (B, 16, S/2, S/2) */
	h = tn_reshape(tn_global_avg_pool(h), flat, 2); /* (B, 16) */
	return tn_nn_forward(n->head, h);
}

/* Pictures x (B, 1, S, S) and what they show y (B). */
static void pictures(
	tn_context *c, uint64_t seed, tn_tensor **x, tn_tensor **y)
{
	static float xd[B * S * S];
	int64_t yd[B], xs[] = {B, 1, S, S}, ys[] = {B};
	float u[B];

	tn_fill_random(TN_F32, xd, B * S * S, seed, 0, 0);
	tn_fill_random(TN_F32, u, B, seed + 1, 0, 0);
	for (int i = 0; i < B; i++) {
		int at = 3 + (int)(2.9f * (u[i] + 1));

		yd[i] = i % CLASSES;
		for (int k = 0; k < S * S; k++) {
			int r = k / S, q = k % S;
			bool on = yd[i] == 0 ? r == at
				: yd[i] == 1 ? r == at || q == at
					     : r == 1 || q == 1 ||
						       r == at + 2 ||
						       q == at + 2;

			xd[i * S * S + k] =
				0.5f * xd[i * S * S + k] + (float)on;
		}
	}
	*x = tn_tensor_new(c, TN_F32, 4, xs, xd);
	*y = tn_tensor_new(c, TN_I64, 1, ys, yd);
}

/* The part of 10 batches of new pictures that is told apart, 0 to 1. */
static double test(tn_context *c, tn_params *p, const net *n)
{
	double right = 0;

	tn_params_set_training(p, false);
	tn_no_grad_enter(c);
	for (int i = 0; i < 10; i++) {
		tn_tensor *x, *y, *guess;

		tn_scope_enter(c);
		pictures(c, 5000 + 2 * (uint64_t)i, &x, &y);
		guess = tn_argmax(net_run(n, x), 1, false); /* (B) */
		right += tn_item(tn_reduce_mean(
			tn_cast(tn_eq(guess, y), TN_F32), NULL, 0, false));
		tn_scope_leave(c);
	}
	tn_no_grad_leave(c);
	tn_params_set_training(p, true);
	return right / 10;
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 120;
	tn_optimizer_options o = TN_OPTIMIZER_OPTIONS_INIT;
	tn_context *c = NULL;
	tn_optimizer *opt = NULL;
	tn_params *p = NULL;
	double value = INFINITY, right;
	net n;

	o.lr = 0.005;
	o.clip_norm = 5;
	if (tn_context_new(&c, NULL) < 0 || tn_params_new(&p, c) < 0 ||
		tn_optimizer_new(&opt, c, "adamw", &o) < 0)
		return 1;
	n = net_new(p);
	tn_optimizer_add_all(opt, p);
	for (int step = 0; step < steps; step++) {
		tn_tensor *x, *y, *loss;

		tn_scope_enter(c);
		pictures(c, 1000 + 2 * (uint64_t)step, &x, &y);
		loss = tn_cross_entropy(net_run(&n, x), y); /* () */
		tn_backward(loss, NULL);
		tn_optimizer_step(opt);
		tn_keep(loss);
		tn_scope_leave(c);
		tn_params_eval(p);
		value = tn_item(loss);
		tn_drop(loss);
		if (step % 20 == 0 || step == steps - 1)
			printf("step %3d  loss %.4f\n", step, value);
	}
	right = test(c, p, &n);
	printf("of new pictures %.1f%% are told apart\n", 100 * right);
	if (tn_context_status(c) != TN_OK)
		fprintf(stderr, "resnet: %s\n", tn_context_diag(c)->text);
	tn_optimizer_free(opt);
	tn_params_free(p);
	tn_context_free(c);
	return value < 0.2 && right >= 0.9 ? 0 : 1;
}
