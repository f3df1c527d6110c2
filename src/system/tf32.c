/*
 * tf32.c: rounds the factors of products of matrices, as matrix instructions take them.
 *
 * Consumes a system, when the user asks for it; gives factors in f32 10 bits of fraction:
 *
 *   y[i,j] += x[i,k] * w[k,j]      ->      y[i,j] += tf32(x[i,k]) * tf32(w[k,j])
 *
 * The rounding stands in the equation, so everything below computes what is written. A
 * product of matrices has rows that only one factor walks, and columns that only the
 * other one does; sums of squares, and of other products of elements, keep all bits.
 * Factors of two bytes have no more bits.
 */
#include "system/local.h"

/* A value of two bytes, as f32. */
static bool is_short(const expr *e)
{
	return e->kind == EX_CAST && dtype_size(e->arg[0]->dtype) < sizeof(float);
}

/* Has each a left axis that the other lacks, and both a reduced one? */
static bool is_matrix(const sys_eqn *e, uint32_t x, uint32_t y)
{
	uint32_t left = (uint32_t)((UINT64_C(1) << e->n_left) - 1);

	return (x & y & ~left) != 0 && (x & ~y & left) != 0 && (y & ~x & left) != 0;
}

/* The term with rounded factors; e itself where it is no such product. */
static const expr *rounded(ir_system *s, const sys_eqn *q, const expr *e)
{
	const expr *arg[IR_MAX_ARGS] = {NULL};
	int32_t fn = ir_scalar_find("tf32", 4);
	const expr *x, *y;

	if (e->kind == EX_SELECT && ex_is_zero(e->arg[2]))
		return ex_select(s, e->arg[0], rounded(s, q, e->arg[1]), e->arg[2]);
	if (!ex_is_call(e, "mul") || e->dtype != TN_F32)
		return e;
	x = e->arg[0];
	y = e->arg[1];
	if (is_short(x) || is_short(y) ||
		!is_matrix(q, ex_axes(s, x, q->n_axes), ex_axes(s, y, q->n_axes)))
		return e;
	for (int32_t i = 0; i < 2; i++) {
		const expr *one[IR_MAX_ARGS] = {e->arg[i]};

		arg[i] = ex_is_call(e->arg[i], "tf32") ? e->arg[i] : ex_call(s, fn, one);
	}
	return ex_call(s, e->fn, arg);
}

void ir_round_factors(ir_system *s)
{
	for (int32_t i = 0; i < s->eqn.n; i++) {
		sys_eqn *e = &s->eqn.at[i];

		if (e->monoid == IR_SUM && e->n_out == 1 && e->opaque == NULL &&
			e->push == NULL && e->scan_axis < 0)
			e->body[0] = rounded(s, e, e->body[0]);
	}
}
