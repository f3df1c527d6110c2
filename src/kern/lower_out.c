/*
 * lower_out.c: functions that add values and statements of kern, for the
 * lowering.
 */
#include "kern/lower.h"

_Noreturn void lw_bug(lowering *lw, const char *what, const char *name)
{
	env_bug(arena_env(lw->a), "kern", "%s: %s %s", lw->k->name, what, name);
}

static kern_type type_of(val v)
{
	return (kern_type){v.dt, v.lanes, v.mask};
}

static val named(lowering *lw, kern_val id)
{
	kern_val v = kern_let(lw->b, id);
	kern_type t = kern_at(lw->b->k, v)->type;

	return (val){v, t.dt, t.lanes, t.mask};
}

/* ---- values ---- */

val lw_const(lowering *lw, tn_dtype dt, double f, int64_t i)
{
	kern_kernel *k = lw->b->k;

	dt = lw_computed(dt);
	return (val){dtype_is_float(dt) ? kern_const_f(k, dt, f)
					: kern_const_i(k, dt, i),
		dt, 1, 0};
}

val lw_bool(lowering *lw, bool on)
{
	return lw_const(lw, TN_BOOL, 0, on);
}

bool lw_is_const(lowering *lw, val c, bool *on)
{
	const kern_value *v = kern_at(lw->b->k, c.id);

	if (v->op != KERN_CONST || c.dt != TN_BOOL)
		return false;
	*on = v->c.i != 0;
	return true;
}

val lw_call(lowering *lw, int32_t fn, val type, int32_t n, const val *x)
{
	kern_val arg[KERN_MAX_ARGS] = {0};

	for (int32_t i = 0; i < n; i++)
		arg[i] = x[i].id;
	return named(lw, kern_call(lw->b->k, fn, type_of(type), arg));
}

val lw_call2(lowering *lw, int32_t fn, val type, val x, val y)
{
	return lw_call(lw, fn, type, 2, (val[]){x, y});
}

val lw_op1(lowering *lw, kern_op op, val type, val x)
{
	return named(lw, kern_unary(lw->b->k, op, type_of(type), x.id));
}

val lw_mad(lowering *lw, val x, val y, val z)
{
	kern_value v = {.op = KERN_MAD, .type = type_of(z)};

	v.arg[0] = x.id;
	v.arg[1] = y.id;
	v.arg[2] = z.id;
	if (!dtype_is_float(z.dt))
		v.op = KERN_MULADD;
	return named(lw, kern_ins(lw->b->k, &v));
}

val lw_op3(lowering *lw, kern_op op, val type, val x, val y, val z)
{
	kern_value v = {.op = op, .type = type_of(type)};

	v.arg[0] = x.id;
	v.arg[1] = y.id;
	v.arg[2] = z.id;
	return named(lw, kern_ins(lw->b->k, &v));
}

tn_dtype lw_computed(tn_dtype t)
{
	return dtype_wide(t);
}

bool lw_keeps(tn_dtype t)
{
	return dtype_size(t) > 1;
}

enum { MAX_NEST = 8 };

/* Is it a value that memory of this dtype has, or one of several, or 0? */
static bool is_one_of(const lowering *lw, kern_val v, tn_dtype t, int nest)
{
	const kern_value *x = kern_at(lw->b->k, v);

	if (nest > MAX_NEST)
		return false;
	if (x->op == KERN_WIDEN)
		return lw_keeps(t) &&
		       kern_at(lw->b->k, x->arg[0])->type.dt == t;
	if (x->op == KERN_ROUND)
		return x->dt == t;
	if (x->op == KERN_CONST)
		return dtype_is_float(x->type.dt) ? x->c.f == 0 : x->c.i == 0;
	if (x->op == KERN_SPLAT)
		return is_one_of(lw, x->arg[0], t, nest + 1);
	return x->op == KERN_CALL && x->fn == lw->fn.sel &&
	       is_one_of(lw, x->arg[1], t, nest + 1) &&
	       is_one_of(lw, x->arg[2], t, nest + 1);
}

val lw_round(lowering *lw, val v, tn_dtype to)
{
	kern_value r = {.op = KERN_ROUND, .type = type_of(v), .dt = to};

	if (is_one_of(lw, v.id, to, 0))
		return v;
	r.arg[0] = v.id;
	return named(lw, kern_ins(lw->b->k, &r));
}

val lw_shuffle(lowering *lw, val x, val y, const int64_t *lane)
{
	return named(lw, kern_shuffle(lw->b->k, x.id, y.id, lane));
}

val lw_lane_of(lowering *lw, val v, form lane)
{
	return named(lw, kern_lane(lw->b->k, v.id, lane));
}

static val lanes(lowering *lw, val type, const int64_t *list)
{
	return named(lw, kern_lanes(lw->b->k, type_of(type), list));
}

val lw_first_lanes(lowering *lw, int32_t bytes, int32_t n)
{
	int64_t list[KERN_MAX_LANES];

	for (int32_t l = 0; l < lw->lanes; l++)
		list[l] = l < n;
	return lanes(lw, (val){0, TN_BOOL, lw->lanes, bytes}, list);
}

val lw_load_at(lowering *lw, const kern_access *at, val type)
{
	return named(lw, kern_load(lw->b->k, type_of(type), at));
}

int32_t lw_as_part(const lowering *lw, int32_t live)
{
	return live > 0 && live < lw->lanes ? live : 0;
}

val lw_load_from(lowering *lw, int32_t array, form at, val type, int32_t live)
{
	kern_access x = kern_element(array, at);

	x.part = type.lanes > 1 ? lw_as_part(lw, live) : 0;
	return lw_load_at(lw, &x, type);
}

void lw_store_to(lowering *lw, int32_t array, form at, val v, int32_t live)
{
	kern_access x = kern_element(array, at);

	x.part = v.lanes > 1 ? lw_as_part(lw, live) : 0;
	kern_store(lw->b, &x, v.id, false);
}

val lw_and(lowering *lw, val x, val y)
{
	bool on;

	if (lw_is_const(lw, x, &on))
		return on ? y : x;
	if (lw_is_const(lw, y, &on))
		return on ? x : y;
	return lw_call2(lw, lw->fn.and, x, x, y);
}

val lw_not(lowering *lw, val x)
{
	return lw_call(lw, lw->fn.not, x, 1, &x);
}

/* ---- integers from forms ---- */

val lw_index_val(lowering *lw, form f, tn_dtype dt)
{
	return (val){kern_index(lw->b, f, dt), dt, 1, 0};
}

val lw_lanes_of_form(lowering *lw, tn_dtype dt, form f, int64_t stride)
{
	stride *= lw->each;
	val type = {0, dt, lw->lanes, 0};
	val v = lw_op1(lw, KERN_SPLAT, type, lw_index_val(lw, f, dt));
	int64_t list[KERN_MAX_LANES];

	if (stride == 0)
		return v;
	for (int32_t l = 0; l < lw->lanes; l++)
		list[l] = stride * l;
	return lw_call2(lw, lw->fn.add, type, v, lanes(lw, type, list));
}

val lw_inside(lowering *lw, form f, int64_t lo, int64_t hi)
{
	return (val){kern_inside(lw->b, f, lo, hi), TN_BOOL, 1, 0};
}

/* Compares forms, by the bounds of their difference without its constant. */
val lw_less(lowering *lw, form f, form g)
{
	form d = lw_sub(lw, f, g);

	return lw_inside(lw, lw_addc(lw, d, -d->c0), INT64_MIN, -d->c0);
}

val lw_equal(lowering *lw, form f, form g)
{
	form d = lw_sub(lw, f, g);

	return lw_inside(lw, lw_addc(lw, d, -d->c0), -d->c0, 1 - d->c0);
}

/* ---- statements ---- */

val lw_register(lowering *lw, val type, kern_val start)
{
	type.id = kern_var(lw->b, type_of(type), start);
	return type;
}

void lw_set(lowering *lw, val reg, val v)
{
	kern_set(lw->b, reg.id, v.id);
}

void lw_set_lane(lowering *lw, val reg, kern_val lane, val v)
{
	kern_set_lane(lw->b, reg.id, lw_form_of(lw, lane), v.id);
}

kern_val lw_for(lowering *lw, form lo, form hi)
{
	return kern_for(lw->b, lo, hi, 1, TN_I64);
}

kern_val lw_for_lanes(lowering *lw, int64_t n)
{
	return lw_for(lw, lw_num(lw, 0), lw_num(lw, n));
}

void lw_if(lowering *lw, val c)
{
	(void)kern_if(lw->b, c.id, false);
}

void lw_close(lowering *lw)
{
	kern_close(lw->b);
}
