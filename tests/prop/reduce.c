/*
 * reduce.c: reductions of values with bounds, in whatever order.
 *
 * v is computed as the interpreter does, in 64 bits one after the other. The
 * bound holds for every order and grouping, with u the unit roundoff of the
 * accumulator in which compiled code works (f32 for f32, f16, bf16):
 *
 *   sum       e = sum e_i + n u sum (|x_i| + e_i); but 0 if all terms are exact
 *             multiples of one power of two q with sum |x_i| < q / u: then no
 *             order rounds; a product may be added before it is rounded, which
 *             differs by half of 2^-149 where it is subnormal
 *             of bf16, sums that are subnormal may be 0 at each term
 *   product   the product of (|x_i| + e_i) less that of |x_i|, plus n u of it
 *   welford   mean: (n + 4) u max |x|; m2: Chan, Golub, LeVeque 1983: by
 *             2 sqrt(n m2) times the error of the means, and n u m2
 *   others    the combination itself, evaluated on values with bounds: maxima
 *             and the like round nothing; the rescaling ones cost units each,
 *             and have no bound where a factor that another order or a longer
 *             type keeps is lost as 0, and something infinite times it,
 *             nor where a sum does not fit the accumulator on its way
 */
#include "prop.h"

#include <math.h>

/* What one result element has seen so far. */
typedef struct tally {
	shadow x[IR_MAX_COMP];
	int64_t n;	/* terms */
	double size;	/* sum |x|; product of |x| + e */
	double error;	/* sum e */
	double most;	/* max |x| of component 1 */
	double big, small; /* product: of all |x| > 1, of all |x| < 1 */
	int32_t lowest;	/* least exponent of a lowest set bit */
	int32_t bits;	/* of the odd parts, added up */
	double low_key, high_key; /* rescaling: the finite keys seen */
	bool infinite;	/* a term is */
	bool over;	/* rescaling: a sum was too large for the accumulator */
	bool wild;
} tally;

typedef struct reduction {
	const in_eqn *q;
	const ir_monoid *m;
	int32_t n;
	tn_dtype acc[IR_MAX_COMP], element[IR_MAX_COMP], out[IR_MAX_COMP];
	const expr *combine[IR_MAX_COMP];
	bool flushes; /* it reads bf16 */
	tally *at;
} reduction;

/* ---- floats as integers times powers of two ---- */

static int32_t lowest_bit(double v)
{
	int32_t k;
	int64_t m;

	if (v == 0 || !isfinite(v))
		return 2000;
	m = (int64_t)ldexp(frexp(fabs(v), &k), 53);
	return k - 53 + __builtin_ctzll((uint64_t)m);
}

static int32_t odd_bits(double v)
{
	/* ilogb of what is not finite is the end of int */
	if (!isfinite(v))
		return 5000;
	return v == 0 ? 0 : ilogb(v) - lowest_bit(v);
}

static double roundoff(tn_dtype out)
{
	return dtype_acc(out) == TN_F64 ? 0x1p-53 : 0x1p-24;
}

static double largest(tn_dtype out)
{
	return dtype_acc(out) == TN_F64 ? 1.7e308 : 3.4e38;
}

/* ---- combinations ---- */

static shadow combine_eval(env *e, const expr *x, const shadow *param)
{
	shadow v[IR_MAX_ARGS] = {{.e = 0}}, r = {.e = 0};

	switch (x->kind) {
	case EX_CONST:
		if (dtype_is_float(x->dtype))
			r.v.f = x->c.f;
		else
			r.v.i = x->c.i;
		return r;
	case EX_PARAM:
		return param[x->c.i];
	case EX_CALL:
		for (int32_t i = 0; i < x->n_args; i++)
			v[i] = combine_eval(e, x->arg[i], param);
		return shadow_call(x->fn, x->arg[x->n_args - 1]->dtype,
			x->dtype, false, v);
	case EX_SELECT:
		v[0] = combine_eval(e, x->arg[0], param);
		r = combine_eval(e, x->arg[v[0].v.i != 0 ? 1 : 2], param);
		if (v[0].e == 0)
			return r;
		return shadow_hull(x->dtype, r,
			combine_eval(e, x->arg[v[0].v.i != 0 ? 2 : 1], param));
	case EX_CAST:
		return shadow_cast(x->dtype, x->arg[0]->dtype,
			combine_eval(e, x->arg[0], param));
	case EX_INDEX:
	case EX_READ:
	case EX_INSIDE:
		break;
	}
	env_bug(e, "shadow.combine", "a combination reads a tensor");
}

/* Is exp of the least key less the greatest one 0, or a subnormal number? */
static bool loses_factor(const reduction *r, tally *t, const shadow *key)
{
	if (isfinite(key->v.f)) {
		t->low_key = fmin(t->low_key, key->v.f - key->e);
		t->high_key = fmax(t->high_key, key->v.f + key->e);
	}
	return t->high_key - t->low_key >
	       (dtype_acc(r->out[0]) == TN_F64 ? 708 : 87);
}

static void combine(walk *w, reduction *r, tally *t, const shadow *y)
{
	shadow param[2 * IR_MAX_COMP] = {{.e = 0}}, sum[IR_MAX_COMP];
	bool loses = r->m->rescalable && loses_factor(r, t, &y[0]);

	for (int32_t k = 0; k < r->n; k++) {
		param[k] = t->x[k];
		param[IR_MAX_COMP + k] = y[k];
	}
	for (int32_t k = 0; k < r->n; k++)
		sum[k] = combine_eval(w->e, r->combine[k], param);
	for (int32_t k = 0; k < r->n; k++) {
		t->x[k] = sum[k];
		t->over |= r->m->rescalable && k > 0 &&
			   fabs(sum[k].v.f) > largest(r->out[k]) / 2;
		/* a factor of less than 2^-126 has few bits, if any */
		if (r->m->rescalable && k > 0 && isfinite(sum[k].v.f))
			t->x[k].e += 16 * roundoff(r->out[k]) *
					fabs(sum[k].v.f) +
				0x1p-148 * (1 + fabs(y[k].v.f));
		else if (loses && k > 0)
			t->x[k].e = INFINITY;
	}
}

/* ---- one term ---- */

static void note(tally *t, tn_dtype dt, shadow y)
{
	double v = dtype_is_float(dt) ? fabs(y.v.f) : 0;
	int32_t low = lowest_bit(v);

	t->n++;
	if (isinf(y.e))
		t->wild = true;
	if (!isfinite(v))
		t->infinite = true;
	t->error += y.e;
	if (low < t->lowest)
		t->lowest = low;
	/* mantissas of 1.5 make 2.25: a bit more than both have behind the 1 */
	t->bits += odd_bits(v) + (odd_bits(v) > 0);
	if (v + y.e > t->most)
		t->most = v + y.e;
}

/* What the interpreter does, for float sums without looking up functions. */
static void add_term(walk *w, reduction *r, tally *t, const shadow *raw)
{
	shadow y[IR_MAX_COMP] = {{.e = 0}};
	bool is_float = dtype_is_float(r->acc[0]);
	double v;

	for (int32_t k = 0; k < r->n; k++)
		y[k] = shadow_cast(r->acc[k], r->element[k], raw[k]);
	if (r->q->monoid == IR_SUM && is_float) {
		note(t, r->acc[0], y[0]);
		t->size += fabs(y[0].v.f);
		t->x[0].v.f += y[0].v.f;
	} else if (r->q->monoid == IR_PROD && is_float) {
		note(t, r->acc[0], y[0]);
		v = fabs(y[0].v.f) + y[0].e;
		t->size *= v;
		if (v > 1)
			t->big *= v;
		else if (v > 0)
			t->small *= v;
		t->x[0].v.f *= y[0].v.f;
	} else if (r->q->monoid == IR_WELFORD) {
		note(t, r->acc[1], y[1]);
		if (y[0].e > 0 || y[0].v.f != 1 || y[2].v.f != 0)
			t->wild = true;
		for (int32_t k = 0; k < r->n; k++)
			y[k].e = 0;
		combine(w, r, t, y);
	} else {
		combine(w, r, t, y);
	}
}

/* ---- bounds at the end ---- */

static double sum_bound(const reduction *r, const tally *t)
{
	double u = roundoff(r->out[0]), lost = 0;

	if (r->flushes && t->lowest < -126)
		lost = 0x1p-126 * (double)t->n;
	else if (t->lowest < -126) /* a product is added before it is rounded */
		lost = 0x1p-150 * (double)t->n;
	if (t->wild)
		return INFINITY;
	if (t->infinite)
		return t->error > 0 ? INFINITY : 0;
	if (t->size + t->error > largest(r->out[0]) / 2)
		return INFINITY;
	if (t->error == 0 && lost == 0 && (t->n <= 1 || t->size == 0 ||
				     t->size < ldexp(1 / u, t->lowest)))
		return 0;
	return t->error + (double)t->n * u * (t->size + t->error) + lost +
	       0x1p-149;
}

static double product_bound(const reduction *r, const tally *t)
{
	double u = roundoff(r->out[0]), v = fabs(t->x[0].v.f);

	if (t->wild || t->big > largest(r->out[0]) / 2)
		return INFINITY;
	if (t->infinite)
		return INFINITY;
	if (t->error == 0 && t->small > 1e-30 && (t->n <= 1 || v == 0 ||
		    t->bits < (dtype_acc(r->out[0]) == TN_F64 ? 52 : 23)))
		return 0;
	return (t->size - v) + (double)t->n * u * t->size +
		(t->small < 1e-30 ? t->big * 0x1p-126 * (double)t->n : 0) +
		0x1p-149;
}

static void welford_bound(const reduction *r, tally *t)
{
	double u = roundoff(r->out[1]), n = (double)t->n;
	double m2 = t->x[2].v.f, mean;

	if (t->wild || t->infinite || t->most * t->most * n > 1e37) {
		for (int32_t k = 1; k < r->n; k++)
			t->x[k].e = INFINITY;
		if (t->wild)
			t->x[0].e = INFINITY;
		return;
	}
	if (t->n == 0)
		return;
	/* no element is further off than all of them together */
	mean = t->error + (n + 4) * u * t->most + 0x1p-126;
	t->x[1].e = mean;
	t->x[2].e = 2 * sqrt(n * m2) * (mean + t->error + 2 * u * t->most) +
		n * (mean + t->error) * (mean + t->error) +
		(n + 8) * u * m2 + 0x1p-126;
}

static void finish(const reduction *r, tally *t)
{
	bool is_float = dtype_is_float(r->acc[0]);

	if (r->q->monoid == IR_SUM && is_float)
		t->x[0].e = sum_bound(r, t);
	else if (r->q->monoid == IR_PROD && is_float)
		t->x[0].e = product_bound(r, t);
	else if (r->q->monoid == IR_WELFORD)
		welford_bound(r, t);
	for (int32_t k = 1; t->over && k < r->n; k++)
		t->x[k].e = INFINITY; /* infinity times a factor of 0 */
}

/* ---- the equation ---- */

static tn_dtype widest(tn_dtype t)
{
	return dtype_is_float(t) ? TN_F64 : t == TN_BOOL ? TN_BOOL : TN_I64;
}

static bool reads_bf16(const walk *w, const in_node *n)
{
	bool is = n != NULL && n->kind == IN_READ &&
		  w->inst->tensor[n->tensor].type.dtype == TN_BF16;

	for (int32_t i = 0; n != NULL && i < IR_MAX_ARGS && !is; i++)
		is = reads_bf16(w, n->arg[i]);
	return is;
}

static void begin(walk *w, reduction *r)
{
	const in_eqn *q = w->eqn;
	ir_system *s = ir_system_new(w->a, NULL);
	int64_t n = type_numel(&w->inst->tensor[q->out[0]].type);

	r->q = q;
	r->m = ir_monoid_at(q->monoid);
	r->n = r->m->n_comp;
	r->flushes = reads_bf16(w, q->body[0]);
	for (int32_t k = 0; k < r->n; k++) {
		r->element[k] = q->body[k]->dtype;
		r->out[k] = w->inst->tensor[q->out[k]].type.dtype;
		r->acc[k] = widest(r->out[k]);
	}
	r->at = arena_array(w->a, tally, n + 1);
	for (int32_t k = 0; k < r->n; k++) {
		tn_dtype t = r->out[k];
		const expr *id = ir_identity(s, q->monoid, k, ir_wide(t));

		r->combine[k] = ir_combine(s, q->monoid, k, r->acc);
		for (int64_t i = 0; i < n; i++) {
			shadow *x = &r->at[i].x[k];

			if (q->is_update)
				*x = shadow_cast(r->acc[k], t,
					w->tensor[q->out[k]][i]);
			else if (dtype_is_float(t))
				x->v.f = id->c.f;
			else
				x->v.i = id->c.i;
		}
	}
	for (int64_t i = 0; i < n; i++) {
		tally *t = &r->at[i];

		t->lowest = 2000;
		t->low_key = INFINITY;
		t->high_key = -INFINITY;
		t->big = t->small = t->size = 1;
		if (q->monoid == IR_SUM)
			t->size = 0;
		if (q->is_update) {
			note(t, r->acc[0], t->x[0]);
			t->size = fabs(t->x[0].v.f);
		}
	}
}

static void end(walk *w, reduction *r)
{
	int64_t n = type_numel(&w->inst->tensor[r->q->out[0]].type);

	for (int64_t i = 0; i < n; i++) {
		finish(r, &r->at[i]);
		for (int32_t k = 0; k < r->n; k++)
			w->tensor[r->q->out[k]][i] = shadow_cast(r->out[k],
				r->acc[k], r->at[i].x[k]);
	}
}

/* Where a term goes is not known: then everything may be anything. */
static void spoil(reduction *r, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		r->at[i].wild = true;
		for (int32_t k = 0; k < r->n; k++)
			r->at[i].x[k].e = INFINITY;
	}
}

/* The factors of a product: n of them; the products of all |x| > 1, all |x| < 1. */
typedef struct factors {
	int32_t n;
	double big, small;
	bool infinite;
} factors;

static bool is_mul(const in_node *n)
{
	return n->kind == IN_CALL && dtype_is_float(n->dtype) &&
	       strcmp(ir_scalar_at(n->fn)->name, "mul") == 0;
}

static void list_factors(walk *w, const in_node *n, factors *f)
{
	double v;

	if (is_mul(n)) {
		list_factors(w, n->arg[0], f);
		list_factors(w, n->arg[1], f);
		return;
	}
	v = fabs(shadow_eval(w, n).v.f);
	f->n++;
	f->infinite |= !isfinite(v);
	if (v > 1)
		f->big *= v;
	else if (v > 0)
		f->small *= v;
}

/* Three or more factors are multiplied in any order: what one order loses, by an
 * overflow or an underflow of a part, another one keeps. */
static double in_any_order(walk *w, const in_node *n)
{
	factors f = {0, 1, 1, false};
	double most = largest(n->dtype), least = n->dtype == TN_F64 ? 0x1p-1022 : 0x1p-126;

	w->maybe++; /* a guard may keep some from being read */
	list_factors(w, n, &f);
	w->maybe--;
	if (f.n < 3)
		return 0;
	if (f.big > most / 2 || (f.infinite && f.small < 2 * least))
		return INFINITY;
	return f.small < 2 * least ? f.big * least * f.n : 0;
}

/* Compiled code adds products that are not rounded before: by how much. */
static double unrounded(walk *w, const in_node *n, double rounded)
{
	shadow x, y;
	double e = 0, lost;

	if (n->kind == IN_ELSE && (n->arg[1]->kind == IN_INT ||
		n->arg[1]->kind == IN_REAL || n->arg[1]->kind == IN_CAST))
		n = n->arg[0]; /* inside, unless it is the other one: 0, or near it */
	else if (n->kind == IN_WHERE && (n->arg[2]->kind == IN_INT ||
		n->arg[2]->kind == IN_REAL || n->arg[2]->kind == IN_CAST))
		n = n->arg[1];
	if (!is_mul(n))
		return 0;
	lost = in_any_order(w, n);
	if (rounded == 0 || isnan(rounded) || isinf(lost))
		return lost;
	w->maybe++;
	x = shadow_eval(w, n->arg[0]);
	y = shadow_eval(w, n->arg[1]);
	w->maybe--;
	if (isinf(rounded)) /* by rounding alone? */
		return isfinite(x.v.f) && isfinite(y.v.f) ? INFINITY : 0;
	for (int32_t i = 0; i < 2 && e == 0; i++) /* factors of factors */
		e = unrounded(w, n->arg[i], (i == 0 ? x : y).v.f) != 0;
	return lost + (e != 0 || fma(x.v.f, y.v.f, -rounded) != 0
			? roundoff(n->dtype) * fabs(rounded)
			: 0);
}

void shadow_reduce(walk *w)
{
	const in_eqn *q = w->eqn;
	const ir_type *t = &w->inst->tensor[q->out[0]].type;
	reduction r = {0};
	bool spoilt = false;

	begin(w, &r);
	if (walk_first(w)) {
		do {
			shadow y[IR_MAX_COMP];
			int32_t where = shadow_place(w, t, q->left, &w->pos);

			spoilt = spoilt || where < 0;
			if (where != 0)
				continue;
			for (int32_t k = 0; k < r.n; k++)
				y[k] = shadow_eval(w, q->body[k]);
			if (q->monoid == IR_SUM)
				y[0].e += unrounded(w, q->body[0], y[0].v.f);
			add_term(w, &r, &r.at[w->pos], y);
		} while (walk_next(w));
	}
	end(w, &r);
	if (spoilt) {
		spoil(&r, type_numel(t));
		end(w, &r);
	}
}
