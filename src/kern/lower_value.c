/*
 * lower_value.c: conversions between the kinds of values.
 *
 * A value is a scalar, or has one element per lane of the enclosing vector
 * loop. A bool with lanes is a mask; f16 and bf16 exist only in memory: values
 * are f32.
 */
#include "kern/lower.h"

tn_dtype lw_stored(tn_dtype t)
{
	return t == TN_BOOL ? TN_U8 : t;
}

int32_t lw_mask_bytes(const lowering *lw)
{
	int32_t n = lw->k->machine->vector_bytes / lw->lanes;

	return n < 1 ? 1 : n > 8 ? 8 : n;
}

val lw_type(const lowering *lw, tn_dtype dt, int32_t lanes)
{
	return (val){0, dt, lanes,
		dt == TN_BOOL && lanes > 1 ? lw_mask_bytes(lw) : 0};
}

val lw_to_mask(lowering *lw, val v, int32_t bytes)
{
	val type = {0, TN_BOOL, lw->lanes, bytes};

	if (v.lanes == 1)
		return lw_op1(lw, KERN_SPLAT, type, v);
	return v.mask == bytes ? v : lw_op1(lw, KERN_CAST, type, v);
}

val lw_to_lanes(lowering *lw, val v)
{
	if (v.lanes == lw->lanes)
		return v;
	if (v.dt == TN_BOOL)
		return lw_to_mask(lw, v, lw_mask_bytes(lw));
	return lw_op1(lw, KERN_SPLAT, lw_type(lw, v.dt, lw->lanes), v);
}

val lw_cast(lowering *lw, val v, tn_dtype to)
{
	tn_dtype c = lw_computed(to);

	if (v.dt != c) {
		val type = {0, c, v.lanes, 0};

		if (v.lanes > 1 && v.dt == TN_BOOL)
			v = lw_to_mask(lw, v, (int32_t)dtype_size(c));
		else if (v.lanes > 1 && c == TN_BOOL)
			type.mask = (int32_t)dtype_size(v.dt);
		v = lw_op1(lw, KERN_CAST, type, v);
	}
	return to == c ? v : lw_round(lw, v, to);
}

val lw_widen(lowering *lw, val v, tn_dtype stored)
{
	tn_dtype c = lw_computed(stored);

	return c == v.dt ? v
			 : lw_op1(lw, KERN_WIDEN, lw_type(lw, c, v.lanes), v);
}

val lw_narrow(lowering *lw, val v, tn_dtype stored)
{
	tn_dtype s = lw_stored(stored);
	const kern_value *x = kern_at(lw->b->k, v.id);

	if (s != v.dt && x->op == KERN_ROUND && x->dt == s)
		v.id = x->arg[0]; /* what memory takes is rounded */
	x = kern_at(lw->b->k, v.id);
	if (s != v.dt && x->op == KERN_WIDEN && lw_keeps(s) &&
		kern_at(lw->b->k, x->arg[0])->type.dt == s)
		return (val){x->arg[0], s, v.lanes, 0}; /* .. and has it */
	return s == v.dt ? v
			 : lw_op1(lw, KERN_NARROW, lw_type(lw, s, v.lanes), v);
}
