/*
 * op_qlinear.c: operators on numbers as integers with a scale and a zero point:
 * what the operator on floats makes of them, as integers again.
 *
 *     QLinearAdd(a, sa, za, b, sb, zb, sc, zc)
 *         round(((a - za) * sa + (b - zb) * sb) / sc) + zc
 */
#include "onnx/ops.h"
#include "onnx/quant.h"

/* A row on two operands; the result has the type of the first. */
void onnx_qlinear_binary(node *d)
{
	int32_t o = row(d, d->op->text, A(quant_float(d, 0, 1, 2),
					     quant_float(d, 3, 4, 5)));

	on_set(d, 0, quant_ints(d, o, 6, on_dt(d, on_in(d, 0))));
}

void onnx_qlinear_sigmoid(node *d)
{
	int32_t o = row(d, "sigmoid", A(quant_float(d, 0, 1, 2)));

	on_set(d, 0, quant_ints(d, o, 3, on_dt(d, on_in(d, 0))));
}

void onnx_qlinear_leaky_relu(node *d)
{
	int32_t o = rowa(d, "leaky_relu", A(quant_float(d, 0, 1, 2)),
		REAL("alpha", on_real(d, "alpha", 0.01)));

	on_set(d, 0, quant_ints(d, o, 3, on_dt(d, on_in(d, 0))));
}

/* Before opset 13 of ai.onnx over all axes from `axis` on, as one. */
void onnx_qlinear_softmax(node *d)
{
	int32_t x = quant_float(d, 0, 1, 2), r = on_rank_of(d, x);
	int32_t axis = on_axis(d, on_int(d, "axis", -1), r);
	list shape = on_shape_of(d, x);
	int64_t rows = 1, columns = 1;

	if (on_int(d, "opset", 13) < 13) {
		for (int32_t i = 0; i < r; i++)
			*(i < axis ? &rows : &columns) *= shape.at[i];
		x = on_reshape(d, x, LIST(d, rows, columns));
		axis = 1;
	}
	x = rowa(d, "softmax", A(x), INT("axis", axis));
	on_set(d, 0, quant_ints(d, on_reshape(d, x, shape), 3,
			     on_dt(d, on_in(d, 0))));
}

void onnx_qlinear_where(node *d)
{
	int32_t o = row(d, "where", A(on_in(d, 0), quant_float(d, 1, 2, 3),
					   quant_float(d, 4, 5, 6)));

	on_set(d, 0, quant_ints(d, o, 7, on_dt(d, on_in(d, 1))));
}

/* Scale and zero point of the result, then those of each part behind it. */
void onnx_qlinear_concat(node *d)
{
	int32_t n = (d->n_in - 2) / 3, *part, axis;

	if (d->n_in < 5 || (d->n_in - 2) % 3 != 0)
		on_fail(d, "onnx.input", "there are %d inputs; accepted are 2, "
			"then 3 for each part", (int)d->n_in);
	part = arena_array(d->x->a, int32_t, n);
	for (int32_t i = 0; i < n; i++)
		part[i] = quant_float(d, 3 * i + 2, 3 * i + 3, 3 * i + 4);
	axis = on_axis(d, on_int(d, "axis", 0), on_rank_of(d, part[0]));
	on_set(d, 0, quant_ints(d, on_concat(d, n, part, axis), 0,
			     on_dt(d, on_in(d, 1))));
}

/* ---- weights of few bits ---- */

/*
 * The numbers of 2, 4 or 8 bits that the bytes of the last axis hold, the first
 * one in the low bits.
 */
static int32_t unpacked(node *d, int32_t x, int64_t bits)
{
	int32_t n = (int32_t)(8 / bits), r = on_rank_of(d, x), part[4];
	int32_t mask = on_scalar(d, TN_U8, (double)((1 << bits) - 1));
	list shape = on_shape_of(d, x);

	if (on_dt(d, x) != TN_U8)
		on_fail(d, "onnx.elem", "packed weights have elements of type "
			"%s; accepted is uint8", dtype_name(on_dt(d, x)));
	if (n == 1)
		return x;
	for (int32_t i = 0; i < n; i++)
		part[i] = row(d, "bit_and",
			A(row(d, "shr", A(x, on_scalar(d, TN_U8,
						(double)(i * bits)))),
				mask));
	x = on_stack(d, n, part, r);
	shape.at[r - 1] *= n;
	return on_reshape(d, x, shape);
}

/* An input of these elements, in any shape. */
static int32_t shaped(node *d, int32_t i, list shape)
{
	int32_t x = on_in(d, i);
	int64_t n = shape_numel(shape.at, shape.n);

	if (on_numel(d, x) != n)
		on_fail(d, "onnx.shape", "input %d has %lld elements, not %lld",
			(int)i, (long long)on_numel(d, x), (long long)n);
	return on_reshape(d, x, shape);
}

/* Zero points [n, blocks, 1] as floats: packed bytes, or numbers. */
static int32_t block_zeros(node *d, int64_t n, int64_t blocks, int64_t bits)
{
	double middle = (double)(INT64_C(1) << (bits - 1));
	int32_t z;

	if (!on_has(d, 3))
		return on_scalar(d, TN_F32, middle);
	z = on_in(d, 3);
	if (on_dt(d, z) == TN_U8) {
		z = unpacked(d, shaped(d, 3, LIST(d, n, (blocks * bits + 7) / 8)),
			bits);
		z = on_narrow(d, z, 1, 0, blocks);
	}
	else
		z = shaped(d, 3, LIST(d, n, blocks));
	return on_cast_to(d, on_reshape(d, z, LIST(d, n, blocks, 1)), TN_F32);
}

/* Weights [N, K] in blocks of K, each with a scale and a zero point. */
void onnx_matmul_bits(node *d)
{
	const int64_t big = INT64_C(1) << 32;
	int64_t bits = on_int(d, "bits", 4), block, k, n, blocks;
	int32_t x = on_in(d, 0), w, s;
	tn_dtype t = on_dt(d, x);

	if (bits != 2 && bits != 4 && bits != 8)
		on_fail(d, "onnx.attr", "bits is %lld; accepted are 2, 4 and 8",
			(long long)bits);
	on_ignore(d, "accuracy_level"); /* the least; this is the most */
	on_bound(d, "weight_prepacked", on_int(d, "weight_prepacked", 0), 0, 0);
	block = on_bound(d, "block_size", on_int(d, "block_size", 0), 16, big);
	k = on_bound(d, "K", on_int(d, "K", 0), 1, big);
	n = on_bound(d, "N", on_int(d, "N", 0), 1, big);
	blocks = (k + block - 1) / block;
	if (block * bits % 8 != 0)
		on_fail(d, "onnx.attr", "block_size is %lld; accepted are "
			"powers of 2", (long long)block);
	w = shaped(d, 1, LIST(d, n, blocks, block * bits / 8));
	w = on_cast_to(d, unpacked(d, w, bits), TN_F32);
	s = on_cast_to(d, shaped(d, 2, LIST(d, n, blocks, 1)), TN_F32);
	w = row(d, "sub", A(w, block_zeros(d, n, blocks, bits)));
	w = on_reshape(d, row(d, "mul", A(w, s)), LIST(d, n, blocks * block));
	w = on_transpose(d, on_narrow(d, w, 1, 0, k), LIST(d, 1, 0));
	x = row(d, "matmul", A(on_cast_to(d, x, TN_F32), w));
	if (on_has(d, 5))
		x = row(d, "add", A(x, on_cast_to(d, on_in(d, 5), TN_F32)));
	on_set(d, 0, on_cast_to(d, x, t));
}
