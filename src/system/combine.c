/*
 * combine.c: combination and identity of a reduction as expressions of a
 * system.
 *
 *     ir_combine(s, IR_MAX, 0, (tn_dtype[]){TN_F32})   max($0, $3)
 *     ir_identity(s, IR_MAX, 0, TN_I8)                 -128
 */
#include "system/local.h"

#include <math.h>

const expr *ir_identity(
	ir_system *s, int32_t monoid, int32_t comp, tn_dtype acc)
{
	double v = text_f64(ir_monoid_at(monoid)->identity[comp], NULL);

	if (dtype_is_float(acc))
		return ex_const_f(s, acc, v);
	if (isinf(v))
		return ex_const_i(s, acc,
			v < 0 ? ir_int_least(acc) : ir_int_greatest(acc));
	return ex_const_i(s, acc, (int64_t)v);
}

const expr *ir_combine(
	ir_system *s, int32_t monoid, int32_t comp, const tn_dtype *acc)
{
	const ir_monoid *m = ir_monoid_at(monoid);
	const char *text = m->combine[comp];

	return sys_parse_params(s, text, strlen(text), m->n_comp, acc);
}

const expr *ir_combine_next(
	ir_system *s, int32_t monoid, int32_t comp, const tn_dtype *acc)
{
	const ir_monoid *m = ir_monoid_at(monoid);
	const expr *e = ir_combine(s, monoid, comp, acc);

	for (int32_t i = 0; i < m->n_comp; i++) {
		const char *less = arena_printf(s->a, "y%d < x%d", i, i);
		const char *some = arena_printf(s->a, "y%d >= 0", i);

		if (m->comp[i] != 'K')
			continue;
		e = ex_decided(s, e, sys_parse_params(s, less, strlen(less),
			m->n_comp, acc), false);
		e = ex_decided(s, e, sys_parse_params(s, some, strlen(some),
			m->n_comp, acc), true);
	}
	return e;
}
