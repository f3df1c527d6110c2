/*
 * value.c: values in C and conversions between their kinds.
 *
 * A value is one, or one per lane of the vector loop around. A bool in lanes
 * is a mask of 0 and -1 in signed integers of `mask` bytes; a single bool is
 * an int, 0 or 1. f16 and bf16 exist in memory only: values are f32.
 */
#include "emit/local.h"

#include <inttypes.h>

tn_dtype em_computed(tn_dtype t)
{
	return t == TN_F16 || t == TN_BF16 ? TN_F32 : t;
}

tn_dtype em_int_of(int32_t bytes)
{
	return bytes == 1   ? TN_I8
	       : bytes == 2 ? TN_I16
	       : bytes == 4 ? TN_I32
			    : TN_I64;
}

int32_t em_mask_bytes(const emitter *em)
{
	int32_t n = em->k->machine->vector_bytes / em->lanes;

	return n < 1 ? 1 : n > 8 ? 8 : n;
}

const char *em_mask_type(emitter *em, int32_t bytes)
{
	return em_type(em, em_int_of(bytes), em->lanes);
}

const char *em_val_type(emitter *em, val v)
{
	if (v.dt != TN_BOOL)
		return em_type(em, v.dt, v.lanes);
	return v.lanes > 1 ? em_mask_type(em, v.mask) : "int";
}

val em_val_of(const char *t, tn_dtype dt)
{
	return (val){t, dt, 1, 0};
}

val em_name_val(emitter *em, val v)
{
	const char *n = em_fresh(em, "t");

	em_line(em, "const %s %s = %s;", em_val_type(em, v), n, v.t);
	v.t = n;
	return v;
}

val em_literal(emitter *em, tn_dtype dt, double f, int64_t i)
{
	str s = str_new(em->a);

	dt = em_computed(dt);
	if (dtype_is_float(dt)) {
		const char *suffix = dt == TN_F32 ? "f" : "";

		if (dt == TN_F32)
			f = (double)(float)f;
		if (f != f)
			str_printf(&s, "__builtin_nan%s(\"\")", suffix);
		else if (f - f != 0)
			str_printf(&s, "%s__builtin_inf%s()%s",
				f < 0 ? "(-" : "", suffix, f < 0 ? ")" : "");
		else
			str_printf(&s, __builtin_signbit(f) ? "(%a%s)" : "%a%s",
				f, suffix);
	} else if (dt == TN_BOOL) {
		str_add(&s, i != 0 ? "1" : "0");
	} else if (i == INT64_MIN) {
		str_add(&s, "(-9223372036854775807LL - 1)");
	} else {
		str_printf(&s, "((%s)%" PRId64 ")", em_type(em, dt, 1), i);
	}
	return em_val_of(s.at, dt);
}

val em_to_mask(emitter *em, val v, int32_t bytes)
{
	if (v.lanes == 1) {
		tn_dtype t = em_int_of(bytes);

		v.t = arena_printf(em->a, "%s((%s)-(%s))",
			em_use(em, "splat", t, em->lanes), em_type(em, t, 1),
			v.t);
		v.lanes = em->lanes;
		v.mask = bytes;
		return em_name_val(em, v);
	}
	if (v.mask == bytes)
		return v;
	v.mask = bytes;
	v.t = arena_printf(em->a, "__builtin_convertvector(%s, %s)", v.t,
		em_mask_type(em, bytes));
	return em_name_val(em, v);
}

val em_to_lanes(emitter *em, val v)
{
	if (v.lanes == em->lanes)
		return v;
	if (v.dt == TN_BOOL)
		return em_to_mask(em, v, em_mask_bytes(em));
	v.t = arena_printf(
		em->a, "%s(%s)", em_use(em, "splat", v.dt, em->lanes), v.t);
	v.lanes = em->lanes;
	return em_name_val(em, v);
}

static val from_bool(emitter *em, val v, tn_dtype to)
{
	tn_dtype t = em_int_of((int32_t)dtype_size(to));

	if (v.lanes == 1) {
		v.t = arena_printf(em->a, "(%s)%s", em_type(em, to, 1), v.t);
		v.dt = to;
		return em_name_val(em, v);
	}
	v = em_to_mask(em, v, (int32_t)dtype_size(t));
	v.t = arena_printf(em->a, "-%s", v.t);
	v.dt = t;
	v.mask = 0;
	v = em_name_val(em, v);
	if (t == to)
		return v;
	v.t = arena_printf(em->a, "__builtin_convertvector(%s, %s)", v.t,
		em_type(em, to, em->lanes));
	v.dt = to;
	return em_name_val(em, v);
}

static val to_bool(emitter *em, val v)
{
	if (v.lanes > 1)
		v.mask = (int32_t)dtype_size(v.dt);
	v.dt = TN_BOOL;
	v.t = arena_printf(em->a, "(%s != 0)", v.t);
	return em_name_val(em, v);
}

/* Rounds to f16 or bf16 and back: the value as it would be stored. */
static val rounded(emitter *em, val v, tn_dtype to)
{
	const char *h = to == TN_F16 ? "f16" : "bf16";
	const char *there = em_use(
		em, arena_printf(em->a, "%s_from_f32", h), TN_F32, v.lanes);
	const char *back = em_use(
		em, arena_printf(em->a, "f32_from_%s", h), TN_F32, v.lanes);

	v.t = arena_printf(em->a, "%s(%s(%s))", back, there, v.t);
	return em_name_val(em, v);
}

/* The integer nearest below in magnitude; NaN gives 0, ends are ends. */
static val float_to_int(emitter *em, val v, tn_dtype to)
{
	const char *f = em_own(em, arena_printf(em->a, "%s_from_%s",
					   dtype_name(to), dtype_name(v.dt)));
	const char *n;

	if (v.lanes == 1) {
		v.t = arena_printf(em->a, "%s(%s)", f, v.t);
		v.dt = to;
		return em_name_val(em, v);
	}
	n = em_fresh(em, "t");
	em_line(em, "%s %s = { 0 };", em_type(em, to, v.lanes), n);
	em_line(em, "for (int l = 0; l < %d; l++)", v.lanes);
	em_line(em, "	%s[l] = %s(%s[l]);", n, f, v.t);
	v.t = n;
	v.dt = to;
	return v;
}

val em_cast(emitter *em, val v, tn_dtype to)
{
	tn_dtype c = em_computed(to);

	if (v.dt != c) {
		if (v.dt == TN_BOOL) {
			v = from_bool(em, v, c);
		} else if (c == TN_BOOL) {
			v = to_bool(em, v);
		} else if (dtype_is_float(v.dt) && !dtype_is_float(c)) {
			v = float_to_int(em, v, c);
		} else {
			v.t = v.lanes > 1
				      ? arena_printf(em->a,
						"__builtin_convertvector(%s, "
						"%s)",
						v.t, em_type(em, c, v.lanes))
				      : arena_printf(em->a, "(%s)%s",
						em_type(em, c, 1), v.t);
			v.dt = c;
			v = em_name_val(em, v);
		}
	}
	return to == c ? v : rounded(em, v, to);
}
