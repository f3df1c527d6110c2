/*
 * op_matrix.c: products of matrices and of quantised matrices.
 *
 *     Gemm(a, b, c, transB=1, alpha=2)   add(mul(matmul(a, b'), 2), c)
 *     MatMulInteger(a, b, za, zb)        matmul(i32(a) - za, i32(b) - zb)
 */
#include "onnx/fused.h"
#include "onnx/ops.h"
#include "onnx/quant.h"

int32_t on_product(node *d, int32_t x, int32_t y)
{
	bool left = on_rank_of(d, x) == 1, right = on_rank_of(d, y) == 1;
	int32_t o;

	if (left)
		x = on_unsqueeze(d, x, 0);
	if (right)
		y = on_unsqueeze(d, y, 1);
	o = row(d, "matmul", A(x, y));
	if (left)
		o = on_drop_axis(d, o, on_rank_of(d, o) - 2);
	if (right)
		o = on_drop_axis(d, o, on_rank_of(d, o) - 1);
	return o;
}

void onnx_matmul(node *d)
{
	on_set(d, 0, on_product(d, on_in(d, 0), on_in(d, 1)));
}

static int32_t turned(node *d, int32_t x, const char *attr)
{
	if (on_rank_of(d, x) != 2)
		on_fail(d, "onnx.shape", "an operand has %d axes, not 2",
			(int)on_rank_of(d, x));
	return on_int(d, attr, 0) != 0 ? on_transpose(d, x, LIST(d, 1, 0)) : x;
}

static int32_t scaled(node *d, int32_t x, double by)
{
	return by == 1 ? x : row(d, "mul", A(x, on_scalar(d, on_dt(d, x), by)));
}

/* alpha * x y + beta * c, either matrix perhaps transposed */
static int32_t gemm(node *d)
{
	int32_t x = turned(d, on_in(d, 0), "transA");
	int32_t y = turned(d, on_in(d, 1), "transB");
	double beta = on_real(d, "beta", 1);
	int32_t o = row(d, "matmul", A(x, y));

	on_ignore(d, "broadcast"); /* always done, as from opset 7 on */
	o = scaled(d, o, on_real(d, "alpha", 1));
	if (on_has(d, 2))
		o = row(d, "add", A(o, scaled(d, on_in(d, 2), beta)));
	return o;
}

void onnx_gemm(node *d)
{
	on_set(d, 0, gemm(d));
}

void onnx_fused_gemm(node *d)
{
	on_set(d, 0, fused_activation(d, gemm(d)));
}

/*
 * The matrix of an operand: with `batch` its first axis is the rows, those that
 * were between are in front; with `trans` rows and columns are exchanged.
 */
static int32_t laid_out(node *d, int32_t x, const char *trans, const char *batch)
{
	int32_t r = on_rank_of(d, x);

	if (on_int(d, batch, 0) != 0 && r > 2)
		x = on_move_axis(d, x, 0, r - 2);
	return on_int(d, trans, 0) != 0 && r > 1
		? on_move_axis(d, x, r - 1, r - 2) : x;
}

void onnx_fused_matmul(node *d)
{
	int32_t x = laid_out(d, on_in(d, 0), "transA", "transBatchA");
	int32_t y = laid_out(d, on_in(d, 1), "transB", "transBatchB");

	on_set(d, 0, scaled(d, on_product(d, x, y), on_real(d, "alpha", 1)));
}

void onnx_einsum(node *d)
{
	const char *equation = on_text(d, "equation", "");
	int32_t *v = arena_array(d->x->a, int32_t, d->n_in + 1);
	str s = str_new(d->x->a);

	for (int32_t i = 0; i < d->n_in; i++)
		v[i] = on_in(d, i);
	for (; *equation != '\0'; equation++)
		if (*equation != ' ')
			str_addc(&s, *equation);
	on_set(d, 0, rowa(d, "einsum", VALUES(d->n_in, v),
			     TEXT("equation", s.at)));
}

/* ---- quantised ---- */

void onnx_matmul_integer(node *d)
{
	int32_t x = quant_centred(d, 0, 2, -2), y = quant_centred(d, 1, 3, -1);

	on_set(d, 0, on_product(d, x, y));
}

void onnx_qlinear_matmul(node *d)
{
	int32_t x = on_in(d, 0), y = on_in(d, 3), sum, r;

	sum = on_product(d, quant_centred(d, 0, 2, -2),
		quant_centred(d, 3, 5, -1));
	r = on_rank_of(d, sum);
	on_set(d, 0, quant_rescale(d, sum,
			     quant_along(d, 1, x, -2, r),
			     quant_along(d, 4, y, -1, r), 6));
}

/*
 * Integers, each with a scale and perhaps a zero point; the bias has the scale
 * of the product. Without a scale of the result its numbers.
 */
void onnx_qgemm(node *d)
{
	bool tb = on_int(d, "transB", 0) != 0;
	int32_t x = quant_centred(d, 0, 2, TN_MAX_RANK), s, o;
	int32_t y = quant_centred(d, 3, 5, tb ? 0 : 1);

	x = turned(d, x, "transA");
	o = row(d, "matmul", A(x, turned(d, y, "transB")));
	if (on_has(d, 6))
		o = row(d, "add", A(o, on_in(d, 6)));
	s = quant_param(d, 4, 1, 2, on_extent(d, o, 1));
	s = scaled(d, s, on_real(d, "alpha", 1));
	if (on_has(d, 7))
		o = quant_rescale(d, o, quant_scale(d, 1), s, 7);
	else
		o = quant_scaled(d, o, quant_scale(d, 1), s);
	on_set(d, 0, o);
}

/* An operand of floats is quantised here. */
void onnx_dynamic_matmul(node *d)
{
	int32_t y = on_in(d, 1), o;
	struct quantised q;

	quant_dynamic(d, on_in(d, 0), &q);
	o = on_product(d, quant_less(d, q.ints, q.zero),
		quant_centred(d, 1, 3, -1));
	o = quant_scaled(d, o, q.scale,
		quant_along(d, 2, y, -1, on_rank_of(d, o)));
	if (on_has(d, 4))
		o = row(d, "add", A(o, on_in(d, 4)));
	on_set(d, 0, o);
}

void onnx_matmul_integer_to_float(node *d)
{
	int32_t y = on_in(d, 1), o;

	o = on_product(d, quant_centred(d, 0, 4, TN_MAX_RANK),
		quant_centred(d, 1, 5, -1));
	o = quant_scaled(d, o, quant_scale(d, 2),
		quant_along(d, 3, y, -1, on_rank_of(d, o)));
	if (on_has(d, 6))
		o = row(d, "add", A(o, on_in(d, 6)));
	on_set(d, 0, o);
}
