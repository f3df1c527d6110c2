/*
 * fill.c: data of inputs, from the seed alone.
 *
 * Floats by the style of the program (see prop.h). Integers that are used as
 * indices lie in the range that every read accepts; where the program is to
 * fail, one of them does not.
 */
#include "prop.h"

#include <math.h>

/* Multiples of 1/4 that bf16 holds: no sum or product of a few rounds. */
static double exact(rng *r, int32_t kind)
{
	switch (kind) {
	case 0:
		return (double)rng_range(r, -16, 16) / 4;
	case 1:
		return (double)rng_range(r, -3, 3);
	case 2:
		return (double)rng_range(r, 0, 1);
	case 3:
		return (double)rng_range(r, 1, 16) / 4;
	}
	return (double)rng_range(r, -2, 2) / 4;
}

static double general(rng *r, int32_t kind)
{
	double u = (double)(rng_next(r) >> 11) * 0x1p-53;

	switch (kind) {
	case 0:
		return 2 * u - 1;
	case 1:
		return 8 * u - 4;
	case 2:
		return u;
	case 3:
		return 0.1 + 2 * u;
	}
	return (u - 0.5) * 0.01;
}

static double special(rng *r)
{
	static const double list[] = {INFINITY, -INFINITY, NAN, -0.0, 0, 1e30,
		-1e30, 1e-40, 65504, 1e-7};

	return list[rng_below(r, (int64_t)(sizeof list / sizeof *list))];
}

static void fill_floats(rng *r, const ir_type *t, void *data, prop_style s)
{
	int64_t n = type_numel(t);
	int32_t kind = (int32_t)rng_below(r, 5);
	bool specials = s == STYLE_SPECIAL && rng_percent(r, 60);

	for (int64_t i = 0; i < n; i++) {
		double v = s == STYLE_GENERAL ? general(r, kind)
					      : exact(r, kind);

		if (specials && rng_percent(r, 6))
			v = special(r);
		dtype_store_f64(t->dtype, data, i, v);
	}
}

static void fill_ints(rng *r, const ir_type *t, void *data, int64_t lo,
	int64_t hi, bool outside)
{
	int64_t n = type_numel(t);

	if (lo >= hi) {
		lo = dtype_is_unsigned(t->dtype) || t->dtype == TN_BOOL ? 0 : -4;
		hi = t->dtype == TN_BOOL ? 2 : 9;
		outside = false;
	}
	for (int64_t i = 0; i < n; i++)
		dtype_store_i64(t->dtype, data, i, rng_range(r, lo, hi - 1));
	if (outside && n > 0)
		dtype_store_i64(t->dtype, data, rng_below(r, n),
			rng_percent(r, 50) || dtype_is_unsigned(t->dtype) ? hi
									 : lo - 1);
}

void fill_inputs(arena *a, prop_case *c, const int64_t *lo, const int64_t *hi)
{
	rng r = rng_new(c->seed ^ UINT64_C(0x5bd1e995), c->index);
	int32_t n = c->p->input.n;

	c->in = arena_array(a, void *, n + 1);
	for (int32_t i = 0; i < n; i++) {
		const ir_type *t = &c->p->value.at[c->p->input.at[i]].type;

		c->in[i] = arena_alloc(a, type_bytes(t) + 1, 1);
		if (dtype_is_float(t->dtype))
			fill_floats(&r, t, c->in[i], c->style);
		else
			fill_ints(&r, t, c->in[i], lo[i], hi[i],
				c->out_of_range && rng_percent(&r, 70));
	}
}
