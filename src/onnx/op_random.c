/*
 * op_random.c: random numbers, which are pure functions of a key and an element
 * number, and the optimisers of ai.onnx.preview.training, one step each.
 *
 * The key is the node's seed, or else its number in the model, so a model
 * always gives the same numbers. They differ from those of other
 * implementations.
 */
#include "onnx/ops.h"

#include <math.h>

static int32_t key_of(node *d)
{
	int64_t *key = on_list_new(d, 1, (int64_t)++d->x->n_random).at;
	float seed;
	int32_t bits;

	if (on_has_attr(d, "seed")) {
		seed = (float)on_real(d, "seed", 0);
		memcpy(&bits, &seed, sizeof bits);
		*key = bits;
	}
	return on_constant(d, TN_I64, on_list_new(d, 0, 0), key);
}

void onnx_random(node *d)
{
	bool uniform = !strncmp(d->op->text, "uniform", 7);
	bool like = strstr(d->op->text, "like") != NULL;
	tn_dtype t = TN_F32;
	list shape;
	double p, q;
	int32_t v;

	if (like) {
		shape = on_shape_of(d, on_in(d, 0));
		if (dtype_is_float(on_dt(d, on_in(d, 0))))
			t = on_dt(d, on_in(d, 0));
	} else if (!on_list(d, "shape", &shape)) {
		on_fail(d, "onnx.attr", "attribute shape is missing");
	}
	if (on_has_attr(d, "dtype"))
		t = on_elem_dtype(d, on_int(d, "dtype", 1));
	p = on_real(d, uniform ? "low" : "mean", 0);
	q = on_real(d, uniform ? "high" : "scale", 1);
	if (uniform) {
		v = rowa(d, "uniform", A(key_of(d)), INTS("shape", shape),
			REAL("lo", p), REAL("hi", q), DTYPE("dtype", t));
	} else {
		v = rowa(d, "normal", A(key_of(d)), INTS("shape", shape),
			DTYPE("dtype", t));
		v = row(d, "mul", A(v, on_scalar(d, t, q)));
		v = row(d, "add", A(v, on_scalar(d, t, p)));
	}
	on_set_elem(d, 0, v, onnx_dtype_elem(t));
}

void onnx_bernoulli(node *d)
{
	int32_t p = on_in(d, 0), v = row(d, "bernoulli", A(key_of(d), p));
	tn_dtype t = on_has_attr(d, "dtype")
		? on_elem_dtype(d, on_int(d, "dtype", 1))
		: on_dt(d, p);

	on_set_elem(d, 0, on_cast_to(d, v, t), onnx_dtype_elem(t));
}

/* Draws classes from rows of unnormalised log probabilities. */
void onnx_multinomial(node *d)
{
	int32_t x = on_in(d, 0), v;
	int64_t n = on_bound(d, "sample_size", on_int(d, "sample_size", 1), 1,
		1 << 20);
	tn_dtype t = on_elem_dtype(d, on_int(d, "dtype", 6));
	list shape = on_shape_of(d, x);

	if (shape.n != 2)
		on_fail(d, "onnx.shape", "the input is not a matrix");
	v = rowa(d, "broadcast_to", A(on_unsqueeze(d, x, 1)),
		INTS("shape", LIST(d, shape.at[0], n, shape.at[1])));
	v = row(d, "categorical", A(key_of(d), v));
	on_set_elem(d, 0, on_cast_to(d, v, t), onnx_dtype_elem(t));
}

/* ---- optimisers: R, T, then groups of tensors: x.., g.., state.. ---- */

static int32_t times(node *d, double v, int32_t x)
{
	return on_two(d, "mul", x, on_scalar(d, on_dt(d, x), v));
}

/* Number of tensors in a group; each group has one for each parameter. */
static int32_t group_size(node *d, int32_t n_groups)
{
	if (d->n_in < 2 + n_groups || (d->n_in - 2) % n_groups != 0)
		on_fail(d, "onnx.input", "the %d inputs cannot be divided "
			"into %d groups",
			(int)d->n_in, (int)n_groups);
	return (d->n_in - 2) / n_groups;
}

/* The gradient, with the derivative of the regularisation added. */
static int32_t regular(node *d, int32_t x, int32_t g)
{
	return on_two(d, "add", g, times(d, on_real(d, "norm_coefficient", 0), x));
}

void onnx_adagrad(node *d)
{
	int32_t n = group_size(d, 3), rate;
	double t = (double)on_host_int(d, 1);

	rate = times(d, 1 / (1 + t * on_real(d, "decay_factor", 0)),
		on_in(d, 0));
	for (int32_t i = 0; i < n; i++) {
		int32_t x = on_in(d, 2 + i), h = on_in(d, 2 + 2 * n + i), s;
		int32_t g = regular(d, x, on_in(d, 2 + n + i));

		h = on_two(d, "add", h, on_two(d, "mul", g, g));
		s = on_two(d, "add", row(d, "sqrt", A(h)),
			on_scalar(d, on_dt(d, x), on_real(d, "epsilon", 0)));
		s = on_two(d, "mul", rate, on_two(d, "div", g, s));
		on_set(d, i, on_two(d, "sub", x, s));
		on_set(d, n + i, h);
	}
}

void onnx_adam(node *d)
{
	int32_t n = group_size(d, 4), rate = on_in(d, 0);
	double t = (double)on_host_int(d, 1);
	double alpha = on_real(d, "alpha", 0.9);
	double beta = on_real(d, "beta", 0.999);
	double post = on_real(d, "norm_coefficient_post", 0);

	if (t > 0)
		rate = times(d, sqrt(1 - pow(beta, t)) / (1 - pow(alpha, t)),
			rate);
	for (int32_t i = 0; i < n; i++) {
		int32_t x = on_in(d, 2 + i), s;
		int32_t g = regular(d, x, on_in(d, 2 + n + i));
		int32_t v = times(d, alpha, on_in(d, 2 + 2 * n + i));
		int32_t h = times(d, beta, on_in(d, 2 + 3 * n + i));

		v = on_two(d, "add", v, times(d, 1 - alpha, g));
		h = on_two(d, "add", h, times(d, 1 - beta, on_two(d, "mul", g, g)));
		s = on_two(d, "add", row(d, "sqrt", A(h)),
			on_scalar(d, on_dt(d, x), on_real(d, "epsilon", 1e-2)));
		s = on_two(d, "mul", rate, on_two(d, "div", v, s));
		on_set(d, i, times(d, 1 - post, on_two(d, "sub", x, s)));
		on_set(d, n + i, v);
		on_set(d, 2 * n + i, h);
	}
}

void onnx_momentum(node *d)
{
	bool nesterov = !strcmp(on_text(d, "mode", "standard"), "nesterov");
	int32_t n = group_size(d, 3);
	double alpha = on_real(d, "alpha", 0), beta = on_real(d, "beta", 1);

	if (on_host_int(d, 1) == 0)
		beta = 1;
	for (int32_t i = 0; i < n; i++) {
		int32_t x = on_in(d, 2 + i), s;
		int32_t g = regular(d, x, on_in(d, 2 + n + i));
		int32_t v = times(d, alpha, on_in(d, 2 + 2 * n + i));

		v = on_two(d, "add", v, times(d, beta, g));
		s = nesterov ? on_two(d, "add", g, times(d, alpha, v)) : v;
		on_set(d, i, on_two(d, "sub", x,
				     on_two(d, "mul", on_in(d, 0), s)));
		on_set(d, n + i, v);
	}
}
