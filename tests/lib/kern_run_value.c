/*
 * kern_run_value.c: evaluates instructions, lane by lane. Floats are computed as
 * doubles and rounded to their dtype; functions are those of scalar.def.
 */
#include "kern_run_local.h"

#include <math.h>

/* An i64 of one lane: the first cell. */
static int64_t integer(const struct kern_running *r, kern_val v)
{
	return r->cell[r->first[v]].i;
}

int64_t kern_run_form(const struct kern_running *r, const kern_form *f)
{
	uint64_t s = (uint64_t)f->c0;

	for (int32_t i = 0; i < f->n; i++)
		s += (uint64_t)f->t[i].coef * (uint64_t)integer(r, f->t[i].v);
	return (int64_t)s;
}

static ir_number rounded(tn_dtype t, ir_number v)
{
	if (dtype_is_float(t))
		v.f = ir_round(t, v.f);
	else
		v.i = ir_wrap(t, v.i);
	return v;
}

struct lanes {
	const ir_number *at;
	int32_t n;
	tn_dtype dt;
};

static ir_number lane(struct lanes x, int32_t l)
{
	return x.at[x.n > 1 ? l : 0];
}

static ir_number mad(tn_dtype t, ir_number x, ir_number y, ir_number z)
{
	ir_number v = {0};

	if (t == TN_F32)
		v.f = (double)fmaf((float)x.f, (float)y.f, (float)z.f);
	else if (t == TN_F64)
		v.f = fma(x.f, y.f, z.f);
	else
		v.i = ir_wrap(t, (int64_t)((uint64_t)x.i * (uint64_t)y.i +
					   (uint64_t)z.i));
	return v;
}

/* A subnormal number is 0, with its sign. */
static float flushed(float x)
{
	return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}

/* Lane l of z + the products of n neighbours of x and y. */
static ir_number dot(
	tn_dtype t, struct lanes x, struct lanes y, ir_number z, int32_t l)
{
	int32_t n = kern_dot_terms(x.dt, y.dt);
	float s = flushed((float)z.f);
	uint64_t sum = (uint64_t)z.i;

	for (int32_t i = n - 1; i >= 0; i--)
		if (t == TN_F32)
			s = flushed(fmaf(flushed((float)lane(x, n * l + i).f),
				flushed((float)lane(y, n * l + i).f), s));
		else
			sum += (uint64_t)lane(x, n * l + i).i *
			       (uint64_t)lane(y, n * l + i).i;
	z.f = (double)s;
	if (t != TN_F32)
		z.i = ir_wrap(t, (int64_t)sum);
	return z;
}

/* f + l, divided */
static int64_t quotient(
	const struct kern_running *r, const kern_value *x, int32_t l)
{
	int64_t f = kern_run_form(r, x->form[0]) + l;

	if (x->op == KERN_INDEX)
		return f;
	return x->op == KERN_MOD ? floor_mod(f, x->num[0])
				 : floor_div(f, x->num[0]);
}

static int64_t chosen(const struct kern_running *r, const kern_value *x)
{
	int64_t f = kern_run_form(r, x->form[0]), g;

	if (x->op == KERN_CLAMP)
		return f < x->num[0] ? x->num[0] : f > x->num[1] ? x->num[1] : f;
	if (x->op == KERN_INSIDE)
		return f >= x->num[0] && (x->num[1] == INT64_MAX || f < x->num[1]);
	g = kern_run_form(r, x->form[1]);
	if (x->op == KERN_PICK)
		return integer(r, x->arg[0]) != 0 ? f : g;
	return (f < g) == (x->op == KERN_MIN) ? f : g;
}

static int64_t checked(struct kern_running *r, const kern_value *x, int64_t i)
{
	const kern_check *c = &r->k->check.at[x->num[0] - 1];

	if (i >= c->lo && i < c->hi)
		return i;
	r->err = x->num[0];
	return i < c->lo ? c->lo : c->hi - 1;
}

static void load(struct kern_running *r, const kern_value *x, ir_number *out)
{
	const kern_access *at = &x->at;
	int64_t first = kern_run_form(r, at->at);
	int32_t n = at->part > 0 ? at->part : x->type.lanes;
	const ir_number *mask = NULL;
	bool whole = at->whole != 0 && integer(r, at->whole) != 0;
	const ir_number *by = at->by == 0 ? NULL : &r->cell[r->first[at->by]];

	if (at->mask != 0 && kern_at(r->k, at->mask)->type.lanes > 1)
		mask = &r->cell[r->first[at->mask]];
	else if (at->mask != 0 && integer(r, at->mask) == 0)
		n = 0;
	for (int32_t l = 0; l < x->type.lanes; l++) {
		if (l >= n)
			out[l] = (ir_number){0};
		else if (mask == NULL || mask[l].i != 0)
			out[l] = kern_run_get(r, at->array,
				first + (by != NULL ? by[l].i : at->stride * l),
				x->type.lanes == 1);
		else
			out[l] = kern_run_nothing(x->type.dt);
	}
	/* all lanes can be loaded: they are inside the array */
	for (int32_t l = 0; l < n && mask != NULL && whole; l++)
		kern_run_reach(r, at->array, first + at->stride * l);
}

static ir_number call(const struct kern_running *r, const kern_value *x,
	const struct lanes *a, int32_t l)
{
	int32_t n = ir_scalar_at(x->fn)->n_args;
	ir_number v[KERN_MAX_ARGS] = {{0}};

	(void)r;
	for (int32_t i = 0; i < n; i++)
		v[i] = lane(a[i], l);
	return rounded(x->type.dt, ir_scalar_eval(x->fn, a[n - 1].dt, v));
}

/* Lane l of an instruction without side effects. */
static ir_number pure(const struct kern_running *r, const kern_value *x,
	const struct lanes *a, int32_t l)
{
	ir_number v = {0};

	switch (x->op) {
	case KERN_CALL:
		return call(r, x, a, l);
	case KERN_COPY:
	case KERN_SPLAT:
		return lane(a[0], l);
	case KERN_MAD:
	case KERN_MULADD:
		return mad(x->type.dt, lane(a[0], l), lane(a[1], l),
			lane(a[2], l));
	case KERN_DOT:
		return dot(x->type.dt, a[0], a[1], lane(a[2], l), l);
	case KERN_REPEAT:
		return lane(a[0], l % a[0].n);
	case KERN_ZIP:
		return lane(a[l % 2], l / 2);
	case KERN_LANE:
		return a[0].at[kern_run_form(r, x->form[0])];
	case KERN_SHUFFLE:
		return x->list[l] < x->type.lanes
			       ? a[0].at[x->list[l]]
			       : a[1].at[x->list[l] - x->type.lanes];
	case KERN_LANES:
		v.i = x->list[l];
		if (dtype_is_float(x->type.dt))
			v.f = (double)x->list[l];
		return v;
	case KERN_CAST:
	case KERN_WIDEN:
	case KERN_NARROW:
		return rounded(
			x->type.dt, ir_cast(x->type.dt, a[0].dt, lane(a[0], l)));
	case KERN_ROUND:
		return rounded(x->dt, lane(a[0], l));
	case KERN_ANY:
		for (int32_t i = 0; i < a[0].n; i++)
			v.i |= a[0].at[i].i != 0;
		return v;
	case KERN_INDEX:
	case KERN_DIV:
	case KERN_FLOOR:
	case KERN_MOD:
		v.i = ir_wrap(x->type.dt, quotient(r, x, l));
		return v;
	case KERN_MIN:
	case KERN_MAX:
	case KERN_CLAMP:
	case KERN_PICK:
	case KERN_INSIDE:
		v.i = ir_wrap(x->type.dt, chosen(r, x));
		return v;
	case KERN_NONE:
	case KERN_CONST:
	case KERN_CHUNK:
	case KERN_WALK:
	case KERN_AFTER:
	case KERN_REG:
	case KERN_CHECK:
	case KERN_LOAD:
	case KERN_N_OPS:
		break;
	}
	return v;
}

static void compute(struct kern_running *r, const kern_value *x, ir_number *out)
{
	struct lanes a[KERN_MAX_ARGS] = {{NULL, 0, TN_F32}};

	for (int32_t i = 0; i < KERN_MAX_ARGS && x->arg[i] != 0; i++) {
		const kern_value *y = kern_at(r->k, x->arg[i]);

		a[i] = (struct lanes){kern_run_lanes(r, x->arg[i]),
			y->type.lanes, y->type.dt};
	}
	if (x->op == KERN_LOAD) {
		load(r, x, out);
		return;
	}
	if (x->op == KERN_CHECK) {
		out[0].i = checked(r, x, a[0].at[0].i);
		return;
	}
	for (int32_t l = 0; l < x->type.lanes; l++)
		out[l] = pure(r, x, a, l);
}

ir_number *kern_run_lanes(struct kern_running *r, kern_val v)
{
	int64_t warp = r->own[v] && r->warp > 0 ? r->warp - 1 : 0;

	return &r->cell[r->first[v] + warp * kern_at(r->k, v)->type.lanes];
}

const ir_number *kern_run_value(
	struct kern_running *r, kern_val v, ir_number *out)
{
	const kern_value *x = kern_at(r->k, v);

	if (r->named[v])
		return kern_run_lanes(r, v);
	compute(r, x, out);
	return out;
}

void kern_run_define(struct kern_running *r, kern_val v)
{
	ir_number out[KERN_MAX_LANES];

	compute(r, kern_at(r->k, v), out);
	memcpy(&r->cell[r->first[v]], out,
		(size_t)kern_at(r->k, v)->type.lanes * sizeof *out);
}
