/*
 * mlp.c: a network of three layers learns which spiral a point belongs to.
 *
 *     cc mlp.c -ltenon -lm && ./a.out [STEPS]
 *
 * Exits 0 when the loss has fallen below 0.1, else 1.
 */
#include <tenon.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 96, H = 64, CLASSES = 3 };

/* Points x (B, 2) on three arms, their arms y (B). */
static void spirals(float *x, int64_t *y, uint64_t seed)
{
	float u[2 * B];

	tn_fill_random(TN_F32, u, 2 * B, seed, 0, 0);
	for (int i = 0; i < B; i++) {
		float r = 0.5f * (u[2 * i] + 1);
		float a = 4 * r + 2.0944f * (float)(i % CLASSES) +
			0.1f * u[2 * i + 1];

		y[i] = i % CLASSES;
		x[2 * i] = r * cosf(a);
		x[2 * i + 1] = r * sinf(a);
	}
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 1500;
	tn_context *c = NULL;
	tn_optimizer *opt = NULL;
	tn_params *p = NULL;
	tn_layer *in, *hidden, *out;
	tn_stats first = {0}, last;
	double loss_value = INFINITY;

	if (tn_context_new(&c, NULL) < 0 || tn_params_new(&p, c) < 0 ||
		tn_optimizer_new(&opt, c, "adamw", NULL) < 0)
		return 1;
	in = tn_nn_linear(p, "in", 2, H, NULL);
	hidden = tn_nn_linear(p, "hidden", H, H, NULL);
	out = tn_nn_linear(p, "out", H, CLASSES, NULL);
	tn_optimizer_add_all(opt, p);
	for (int step = 0; step < steps; step++) {
		float points[2 * B];
		int64_t arms[B], xs[] = {B, 2}, ys[] = {B};
		tn_tensor *x, *y, *h, *loss;

		spirals(points, arms, 100 + (uint64_t)step);
		tn_scope_enter(c);
		x = tn_tensor_new(c, TN_F32, 2, xs, points); /* (B, 2) */
		y = tn_tensor_new(c, TN_I64, 1, ys, arms);   /* (B) */
		h = tn_relu(tn_nn_forward(in, x));	     /* (B, H) */
		h = tn_relu(tn_nn_forward(hidden, h));	     /* (B, H) */
		h = tn_nn_forward(out, h);    /* (B, CLASSES) */
		loss = tn_cross_entropy(h, y); /* () */
		tn_backward(loss, NULL);
		tn_optimizer_set_lr(
			opt, tn_lr_cosine(step, 50, steps, 0.01, 1e-4));
		tn_optimizer_step(opt);
		tn_keep(loss);
		tn_scope_leave(c);
		tn_params_eval(p); /* one program: forward, backward, update */
		loss_value = tn_item(loss);
		tn_drop(loss);
		if (step % 250 == 0 || step == steps - 1)
			printf("step %4d  loss %.4f\n", step, loss_value);
		if (step == 1)
			tn_context_stats(c, &first);
	}
	tn_context_stats(c, &last);
	if (tn_context_status(c) != TN_OK)
		fprintf(stderr, "mlp: %s\n", tn_context_diag(c)->text);
	printf("compiled after step 1: %lld programs; memory of values: %lld "
	       "bytes after step 1, %lld at the end\n",
		(long long)(last.n_plan_misses - first.n_plan_misses),
		(long long)first.bytes_live, (long long)last.bytes_live);
	tn_optimizer_free(opt);
	tn_params_free(p);
	tn_context_free(c);
	return loss_value < 0.1 ? 0 : 1;
}
