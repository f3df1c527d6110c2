/*
 * custom_op.c: an operation of one's own, defined by its equation. Shape,
 * gradient, fusion and code follow from the one line; a grad block says what
 * to use instead where one knows better.
 *
 *     cc custom_op.c -ltenon -lm && ./a.out
 *
 * Fits swish(a * x + b) to data. Exits 0 when the loss is below 1e-4, else 1.
 */
#include <tenon.h>

#include <math.h>
#include <stdio.h>

enum { N = 256 };

static const char swish[] = /* its gradient is derived */
	"swish(x[i..]:float) -> o { o[i..] = x[i..] / (1 + exp(-x[i..])) }";
static const char line[] = /* its gradient is given */
	"line(x[i..]:float, a[]:float, b[]:float) -> o {"
	" o[i..] = a[] * x[i..] + b[]"
	" grad { ga[] += go[i..] * x[i..]; gb[] += go[i..] } }";

int main(void)
{
	tn_context *c = NULL;
	tn_optimizer *opt = NULL;
	tn_optimizer_options o = TN_OPTIMIZER_OPTIONS_INIT;
	float xs[N], ys[N];
	int64_t n = N;
	tn_tensor *a, *b, *x, *y;
	double loss_value = INFINITY;

	o.lr = 0.02;
	if (tn_context_new(&c, NULL) < 0 ||
		tn_optimizer_new(&opt, c, "adam", &o) < 0)
		return 1;
	tn_op_define(c, swish);
	tn_op_define(c, line);
	tn_fill_random(TN_F32, xs, N, 7, 0, 0);
	for (int i = 0; i < N; i++) {
		float t = 1.5f * xs[i] - 0.5f;

		ys[i] = t / (1 + expf(-t));
	}
	x = tn_tensor_new(c, TN_F32, 1, &n, xs); /* (N) */
	y = tn_tensor_new(c, TN_F32, 1, &n, ys); /* (N) */
	a = tn_parameter(c, "a", TN_F32, 0, NULL, NULL);
	b = tn_parameter(c, "b", TN_F32, 0, NULL, NULL);
	tn_optimizer_add(opt, a);
	tn_optimizer_add(opt, b);
	for (int step = 0; step < 600; step++) {
		tn_tensor *in[] = {x, a, b}, *t, *f, *loss;

		tn_scope_enter(c);
		tn_call(c, "line", 3, in, 0, NULL, 1, &t); /* (N) */
		tn_call(c, "swish", 1, &t, 0, NULL, 1, &f);  /* (N) */
		loss = tn_mse(f, y);			     /* () */
		tn_backward(loss, NULL);
		tn_optimizer_step(opt);
		tn_keep(loss);
		tn_scope_leave(c);
		loss_value = tn_item(loss);
		tn_drop(loss);
		if (step % 100 == 0)
			printf("step %3d  loss %.6f\n", step, loss_value);
	}
	printf("a %.3f (1.5)  b %.3f (-0.5)  loss %.2g\n", tn_item(a),
		tn_item(b), loss_value);
	if (tn_context_status(c) != TN_OK)
		fprintf(stderr, "custom_op: %s\n", tn_context_diag(c)->text);
	tn_optimizer_free(opt);
	tn_context_free(c);
	return loss_value < 1e-4 ? 0 : 1;
}
