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

static tn_tensor *weight(
	tn_context *c, const char *name, int64_t in, int64_t out, uint64_t seed)
{
	int64_t shape[] = {in, out};
	float *w = malloc((size_t)(in * out) * sizeof *w);
	tn_tensor *t;

	if (w == NULL)
		return NULL;
	tn_fill_random(TN_F32, w, in * out, seed, 0, 0);
	for (int64_t i = 0; i < in * out; i++)
		w[i] *= sqrtf(3.0f / (float)in);
	t = tn_parameter(c, name, TN_F32, 2, shape, w);
	free(w);
	return t;
}

static tn_tensor *bias(tn_context *c, const char *name, int64_t n)
{
	return tn_parameter(c, name, TN_F32, 1, &n, NULL);
}

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
	tn_optimizer_options o = TN_OPTIMIZER_OPTIONS_INIT;
	tn_context *c = NULL;
	tn_optimizer *opt = NULL;
	tn_tensor *p[6];
	tn_stats first = {0}, last;
	double loss_value = INFINITY;

	o.lr = 0.01;
	if (tn_context_new(&c, NULL) < 0 ||
		tn_optimizer_new(&opt, c, "adamw", &o) < 0)
		return 1;
	p[0] = weight(c, "w1", 2, H, 1); /* (2, H) */
	p[1] = bias(c, "b1", H);
	p[2] = weight(c, "w2", H, H, 2); /* (H, H) */
	p[3] = bias(c, "b2", H);
	p[4] = weight(c, "w3", H, CLASSES, 3); /* (H, CLASSES) */
	p[5] = bias(c, "b3", CLASSES);
	for (int i = 0; i < 6; i++)
		tn_optimizer_add(opt, p[i]);
	for (int step = 0; step < steps; step++) {
		float points[2 * B];
		int64_t arms[B], xs[] = {B, 2}, ys[] = {B};
		tn_tensor *x, *y, *h, *loss;

		spirals(points, arms, 100 + (uint64_t)step);
		tn_scope_enter(c);
		x = tn_tensor_new(c, TN_F32, 2, xs, points); /* (B, 2) */
		y = tn_tensor_new(c, TN_I64, 1, ys, arms);   /* (B) */
		h = tn_relu(tn_add(tn_matmul(x, p[0]), p[1])); /* (B, H) */
		h = tn_relu(tn_add(tn_matmul(h, p[2]), p[3])); /* (B, H) */
		h = tn_add(tn_matmul(h, p[4]), p[5]); /* (B, CLASSES) */
		loss = tn_cross_entropy(h, y);	      /* () */
		tn_backward(loss, NULL);
		tn_optimizer_step(opt);
		tn_keep(loss);
		tn_scope_leave(c);
		tn_eval(p, 6); /* one program: forward, backward, update */
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
	tn_context_free(c);
	return loss_value < 0.1 ? 0 : 1;
}
