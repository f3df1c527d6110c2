/*
 * monoid.c: the table of reductions, compiled from monoid.def.
 */
#include "notation/notation.h"

#define UNWRAP(...) __VA_ARGS__
#define MONOID(name, token, comp, identity, combine, rescalable, doc)          \
	{#name, token, (int32_t)sizeof(comp) - 1, comp, {UNWRAP identity},     \
		{UNWRAP combine}, rescalable, doc},
static const ir_monoid table[] = {
#include "notation/monoid.def"
};
#undef MONOID
#undef UNWRAP

enum { N_MONOIDS = (int)(sizeof table / sizeof table[0]) };
_Static_assert(N_MONOIDS == IR_SOFTMAX + 1, "monoid.def and ir_monoid_id");

int32_t ir_monoid_n(void)
{
	return N_MONOIDS;
}

const ir_monoid *ir_monoid_at(int32_t monoid)
{
	return &table[monoid];
}

int32_t ir_monoid_find(const char *name, size_t n)
{
	for (int32_t i = 0; i < N_MONOIDS; i++)
		if (strlen(table[i].name) == n &&
			memcmp(table[i].name, name, n) == 0)
			return i;
	return -1;
}

tn_dtype ir_monoid_acc(int32_t monoid, int32_t comp, tn_dtype element)
{
	switch (table[monoid].comp[comp]) {
	case 'K':
		return TN_I64;
	case 'S':
	case 'A':
		return dtype_acc(element);
	default: /* T */
		return ir_wide(element);
	}
}

tn_dtype ir_monoid_result(int32_t monoid, int32_t comp, tn_dtype element)
{
	switch (table[monoid].comp[comp]) {
	case 'K':
		return TN_I64;
	case 'A':
		return dtype_acc(element);
	default: /* S, T */
		return element;
	}
}

int64_t ir_int_least(tn_dtype t)
{
	if (dtype_is_unsigned(t) || t == TN_BOOL)
		return 0;
	return (int64_t)(UINT64_MAX << (dtype_bits(t) - 1));
}

int64_t ir_int_greatest(tn_dtype t)
{
	if (dtype_is_unsigned(t))
		return (int64_t)(UINT64_MAX >> (64 - dtype_bits(t)));
	return t == TN_BOOL ? 1 : ~ir_int_least(t);
}

bool ir_int_holds(tn_dtype t, int64_t v)
{
	if (t == TN_U64)
		return v >= 0;
	return v >= ir_int_least(t) && v <= ir_int_greatest(t);
}

void ir_add_int(str *s, tn_dtype t, int64_t v)
{
	if (t == TN_U64)
		str_printf(s, "%llu", (unsigned long long)v);
	else
		str_printf(s, "%lld", (long long)v);
}
