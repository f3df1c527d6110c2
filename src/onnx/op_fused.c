/*
 * op_fused.c: several operators as one, as optimisers write them.
 *
 *     BiasGelu(x, b)                     gelu(x + b)
 *     SkipLayerNormalization(x, y, g, c) layer_norm(x + y, g, c)
 */
#include "onnx/fused.h"
#include "onnx/ops.h"
#include "onnx/quant.h"

/* What activations are named, their rows, and the row's attributes. */
static const struct activation {
	const char *name, *row, *attr[2];
	double otherwise[2];
} activations[] = {
	{"Relu", "relu", {NULL, NULL}, {0, 0}},
	{"Tanh", "tanh", {NULL, NULL}, {0, 0}},
	{"Sigmoid", "sigmoid", {NULL, NULL}, {0, 0}},
	{"HardSwish", "hard_swish", {NULL, NULL}, {0, 0}},
	{"LeakyRelu", "leaky_relu", {"alpha", NULL}, {0.01, 0}},
	{"HardSigmoid", "hard_sigmoid", {"alpha", "beta"}, {0.2, 0.5}},
	{"Clip", "clip", {"lo", "hi"}, {-3.4028234663852886e38,
						3.4028234663852886e38}},
};
enum { N_ACTIVATIONS = (int)(sizeof activations / sizeof *activations) };

int32_t fused_activation(node *d, int32_t x)
{
	const char *name = on_text(d, "activation", "");
	const wire_floats *of = on_reals(d, "activation_params");
	const struct activation *a = NULL;
	ir_attr attr[2];
	int32_t n = 0;

	for (int32_t i = 0; i < N_ACTIVATIONS; i++)
		if (!strcmp(activations[i].name, name))
			a = &activations[i];
	if (a == NULL && *name != '\0')
		on_fail(d, "onnx.attr", "activation %.50s is not supported",
			name);
	for (int32_t i = 0; i < 2; i++) {
		double v = on_real(d, i == 0 ? "activation_alpha"
					     : "activation_beta",
			a != NULL ? a->otherwise[i] : 0);

		if (of != NULL && i < of->v.n)
			v = (double)of->v.at[i];
		if (a != NULL && a->attr[i] != NULL)
			attr[n++] = (ir_attr)REAL(a->attr[i], v);
	}
	on_ignore(d, "activation_gamma");
	return a == NULL ? x : on_row(d, a->row, 1, &x, n, attr);
}

/* A form of Gelu after a bias that may be missing. */
void onnx_bias_gelu(node *d)
{
	int32_t x = on_in(d, 0);

	if (on_has(d, 1))
		x = row(d, "add", A(x, on_in(d, 1)));
	on_set(d, 0, row(d, d->op->text, A(x)));
}

void onnx_quick_gelu(node *d)
{
	int32_t x = on_in(d, 0), alpha;

	alpha = on_scalar(d, on_dt(d, x), on_real(d, "alpha", 1.702));
	on_set(d, 0, row(d, "mul", A(x, row(d, "sigmoid",
					       A(row(d, "mul", A(x, alpha)))))));
}

/* ---- sums, normalised ---- */

/* f16 and bf16 are computed in f32 */
static int32_t wide(node *d, int32_t i)
{
	int32_t x = on_in(d, i);

	return on_cast_to(d, x, dtype_acc(on_dt(d, x)));
}

/* v, what input i says, which must be as long as the last axis of x. */
static int32_t of_last(node *d, int32_t i, int32_t v, int32_t x)
{
	int32_t r = on_rank_of(d, x);

	if (on_rank_of(d, v) != 1 || r < 1 ||
		on_extent(d, v, 0) != on_extent(d, x, r - 1))
		on_fail(d, "onnx.shape", "input %d must have one axis, as long "
			"as the last one of what it scales or moves", (int)i);
	return v;
}

/* x normalised over its last axis, scaled by g, moved by c (-1: not). */
static int32_t layer_norm(node *d, int32_t x, int32_t g, int32_t c)
{
	if (c < 0)
		c = on_filled(d, on_dt(d, x), on_shape_of(d, g), 0);
	return rowa(d, "layer_norm", A(x, g, c), INT("k", 1),
		REAL("eps", on_real(d, "epsilon", 1e-12)));
}

/* Mean and reciprocal deviation over the last axis, or its root mean square. */
static void set_statistics(node *d, int32_t x, bool simple)
{
	list axes = LIST(d, on_rank_of(d, x) - 1);
	int32_t eps = on_scalar(d, on_dt(d, x), on_real(d, "epsilon", 1e-12));
	int32_t v;

	on_set(d, 1, rowa(d, "reduce_mean", A(x), INTS("axes", axes),
			     INT("keep", 1)));
	v = simple ? row(d, "mul", A(x, x)) : x;
	v = rowa(d, simple ? "reduce_mean" : "reduce_var", A(v),
		INTS("axes", axes), INT("keep", 1));
	on_set(d, 2, row(d, "rsqrt", A(row(d, "add", A(v, eps)))));
}

/* Input, skip and bias added; the text of the row says: without a mean. */
void onnx_skip_norm(node *d)
{
	bool simple = d->op->text[0] != '\0';
	int32_t x = on_in(d, 0), bias = simple ? 3 : 4, s, g, o;
	tn_dtype t = on_dt(d, x);
	list shape = on_shape_of(d, x);

	s = row(d, "add", A(wide(d, 0), wide(d, 1)));
	if (on_has(d, bias))
		s = row(d, "add", A(s, of_last(d, bias, wide(d, bias), s)));
	if (on_rank_of(d, s) != shape.n || on_numel(d, s) != on_numel(d, x))
		on_fail(d, "onnx.shape", "the second input is larger than the "
			"first");
	g = of_last(d, 2, wide(d, 2), s);
	if (simple)
		o = rowa(d, "rms_norm", A(s, g),
			REAL("eps", on_real(d, "epsilon", 1e-12)));
	else
		o = layer_norm(d, s, g,
			on_has(d, 3) ? of_last(d, 3, wide(d, 3), s) : -1);
	on_set(d, 0, on_cast_to(d, o, t));
	set_statistics(d, s, simple);
	on_set(d, 3, on_cast_to(d, s, t));
}

/* Input i as floats; the row's text says: of integers, by scales and zero points
 * that stand 6 and 11 inputs behind it. */
static int32_t table(node *d, int32_t i)
{
	return d->op->text[0] != '\0' ? quant_float(d, i, i + 6, i + 11)
				      : wide(d, i);
}

/* Rows of input i, a table, at ids. */
static int32_t rows_of(node *d, int32_t i, int32_t ids)
{
	int32_t x = table(d, i);

	return rowa(d, "take", A(x, on_wrap_index(d, ids, on_extent(d, x, 0))),
		INT("axis", 0));
}

/* Words, positions and segments, added and normalised. */
void onnx_embed_norm(node *d)
{
	bool is_quantised = d->op->text[0] != '\0';
	int32_t ids = on_in(d, 0), x, at, n, o;
	tn_dtype t = on_dt(d, on_in(d, is_quantised ? 8 : 2));
	list shape = on_shape_of(d, ids);

	if (shape.n != 2)
		on_fail(d, "onnx.shape", "input 0 must have 2 axes, and has %d",
			(int)shape.n);
	if (!is_quantised && on_has(d, 8))
		at = on_in(d, 8);
	else
		at = rowa(d, "iota", NO_ARGS, INTS("shape", LIST(d, 1,
							shape.at[1])),
			INT("axis", 1), DTYPE("dtype", TN_I64));
	x = row(d, "add", A(rows_of(d, 2, ids), rows_of(d, 3, at)));
	if (on_has(d, 4))
		x = row(d, "add", A(x, rows_of(d, 4, on_in(d, 1))));
	o = layer_norm(d, x, of_last(d, 5, table(d, 5), x),
		of_last(d, 6, table(d, 6), x));
	on_set(d, 0, on_cast_to(d, o, t));
	on_ignore(d, "mask_index_type");
	n = on_has(d, 7) ? rowa(d, "reduce_sum",
				   A(on_cast_to(d, on_in(d, 7), TN_I32)),
				   INTS("axes", LIST(d, 1)))
			 : on_filled(d, TN_I32, LIST(d, shape.at[0]), 0);
	on_set(d, 1, n);
	on_set(d, 2, on_cast_to(d, x, t));
}
