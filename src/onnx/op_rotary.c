/*
 * op_rotary.c: rotary positions.
 *
 *     RotaryEmbedding(x, cos, sin)   [x1 cos - x2 sin, x1 sin + x2 cos]
 */
#include "onnx/attention.h"
#include "onnx/ops.h"

/* The cosines or sines of each position, with an axis of 1 for the heads. */
static int32_t turns(node *d, int32_t i, bool flat)
{
	int32_t c = on_in(d, i);

	if (on_has(d, 3)) {
		int32_t ids = on_in(d, 3);

		if (on_rank_of(d, c) != 2 || on_rank_of(d, ids) != 2)
			on_fail(d, "onnx.shape", "position_ids and input %d must "
				"have 2 axes each", (int)i);
		c = rowa(d, "take", A(c, on_wrap_index(d, ids,
						      on_extent(d, c, 0))),
			INT("axis", 0));
	}
	if (on_rank_of(d, c) != 3)
		on_fail(d, "onnx.shape", "input %d must have 3 axes (batch, "
			"position, half of the size), or position_ids is needed",
			(int)i);
	return on_unsqueeze(d, c, flat ? 2 : 1);
}

/* Half p of what is rotated, of n elements each. */
static int32_t half(node *d, int32_t x, int64_t n, bool pairs, int64_t p)
{
	const int64_t *e = on_ty(d, x)->shape;

	if (!pairs)
		return on_narrow(d, x, 3, p * n, n);
	x = on_reshape(d, on_narrow(d, x, 3, 0, 2 * n),
		LIST(d, e[0], e[1], e[2], n, 2));
	return on_drop_axis(d, on_narrow(d, x, 4, p, 1), 4);
}

int32_t rotary_turn(node *d, int32_t x, int32_t c, int32_t s, bool pairs)
{
	int64_t size = on_extent(d, x, 3), n = on_extent(d, c, 3);
	const int64_t *e;
	int32_t part[2], x1, x2, o;

	if (2 * n > size || on_extent(d, s, 3) != n)
		on_fail(d, "onnx.shape", "%lld elements cannot be turned by "
			"%lld cosines and %lld sines", (long long)size,
			(long long)n, (long long)on_extent(d, s, 3));
	x1 = half(d, x, n, pairs, 0);
	x2 = half(d, x, n, pairs, 1);
	part[0] = row(d, "sub", A(row(d, "mul", A(x1, c)),
				    row(d, "mul", A(x2, s))));
	part[1] = row(d, "add", A(row(d, "mul", A(x1, s)),
				    row(d, "mul", A(x2, c))));
	if (pairs) {
		part[0] = on_unsqueeze(d, part[0], 4);
		part[1] = on_unsqueeze(d, part[1], 4);
		e = on_ty(d, x)->shape;
		o = on_reshape(d, on_concat(d, 2, part, 4),
			LIST(d, e[0], e[1], e[2], 2 * n));
	} else {
		o = on_concat(d, 2, part, 3);
	}
	if (2 * n < size)
		o = on_concat(d, 2, (int32_t[]){o, on_narrow(d, x, 3, 2 * n,
							size - 2 * n)},
			3);
	return o;
}

/* x with an axis for its heads, [batch, positions, heads, size] */
static int32_t split(node *d, int32_t x, int64_t heads)
{
	const int64_t *e = on_ty(d, x)->shape;

	if (heads < 1 || e[2] % heads != 0)
		on_fail(d, "onnx.attr", "num_heads is %lld: it must divide the "
			"%lld elements of a position",
			(long long)heads, (long long)e[2]);
	return on_reshape(d, x, LIST(d, e[0], e[1], heads, e[2] / heads));
}

static bool is_flat(node *d, int32_t x)
{
	int32_t r = on_rank_of(d, x);

	if (r != 3 && r != 4)
		on_fail(d, "onnx.shape", "the input must have 3 or 4 axes, and "
			"has %d", (int)r);
	return r == 3;
}

void onnx_rotary_embedding(node *d)
{
	int32_t x = on_in(d, 0), c, s;
	tn_dtype t = on_dt(d, x);
	list shape = on_shape_of(d, x);
	bool flat = is_flat(d, x), pairs = on_int(d, "interleaved", 0) != 0;
	int64_t heads = on_int(d, "num_heads", 0), size, n;

	if (flat)
		x = split(d, x, heads);
	size = on_extent(d, x, 3);
	n = on_int(d, "rotary_embedding_dim", 0);
	n = on_bound(d, "rotary_embedding_dim", n == 0 ? size : n, 0, size) / 2;
	c = turns(d, 1, flat);
	s = turns(d, 2, flat);
	if (on_extent(d, c, 3) != n || on_extent(d, s, 3) != n)
		on_fail(d, "onnx.shape", "%lld elements are rotated in pairs: "
			"cosines and sines must have %lld each",
			2 * (long long)n, (long long)n);
	x = rotary_turn(d, x, c, s, pairs);
	on_set(d, 0, on_cast_to(d, on_reshape(d, x, shape), t));
}

/* Rows of table i, [positions, n], at places [batch, positions] */
int32_t rotary_rows(node *d, int32_t i, int32_t at)
{
	int32_t table = on_in(d, i);

	if (on_rank_of(d, table) != 2)
		on_fail(d, "onnx.shape", "input %d must have 2 axes (position, "
			"half of the size)", (int)i);
	return rowa(d, "take", A(table, on_wrap_index(d, at,
						 on_extent(d, table, 0))),
		INT("axis", 0));
}

/* Input 1, a place for each of n positions, or one number, where they begin. */
static int32_t places(node *d, int64_t n)
{
	int32_t at = on_in(d, 1), step;

	if (on_rank_of(d, at) == 1 && on_numel(d, at) == 1) {
		step = rowa(d, "iota", NO_ARGS, INTS("shape", LIST(d, 1, n)),
			INT("axis", 1), DTYPE("dtype", on_dt(d, at)));
		at = row(d, "add", A(step, at));
	}
	if (on_rank_of(d, at) != 2)
		on_fail(d, "onnx.shape", "position_ids must be one number, or "
			"have 2 axes");
	return at;
}

/* Refuses what would turn otherwise. */
static void check_turn(node *d, int64_t n)
{
	int64_t size = on_int(d, "rotary_embedding_dim", 0);
	double scale = on_real(d, "scale", 1);

	on_bound(d, "is_packed_batching", on_int(d, "is_packed_batching", 0), 0,
		0);
	if (scale != 1)
		on_fail(d, "onnx.attr", "scale is %g; accepted is 1", scale);
	if (size != 0)
		on_bound(d, "half of rotary_embedding_dim", size / 2, n, n);
}

/* com.microsoft: positions come second, and the tables behind them. */
void onnx_rotary_at(node *d)
{
	int32_t x = on_in(d, 0), at, c, s;
	tn_dtype t = on_dt(d, x);
	list shape = on_shape_of(d, x);
	bool flat = is_flat(d, x), pairs = on_int(d, "interleaved", 0) != 0;
	int64_t heads = on_int(d, "num_heads", 0), n;

	at = places(d, shape.at[flat ? 1 : 2]);
	c = on_unsqueeze(d, rotary_rows(d, 2, at), flat ? 2 : 1);
	s = on_unsqueeze(d, rotary_rows(d, 3, at), flat ? 2 : 1);
	n = on_extent(d, c, 3);
	check_turn(d, n);
	if (heads == 0 && n > 0)
		heads = shape.at[flat ? 2 : 3] / (2 * n);
	if (flat)
		x = split(d, x, heads);
	x = rotary_turn(d, x, c, s, pairs);
	on_set(d, 0, on_cast_to(d, on_reshape(d, x, shape), t));
}
