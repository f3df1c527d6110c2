/*
 * body.c: gives the expressions of an equation their dtypes.
 *
 * Consumes row expressions; produces typed nodes. Literals, attributes, axis
 * values and extents are untyped: combined with each other they are index
 * arithmetic or constants; combined with a value they get its dtype.
 *
 *     x[i] * 2 + i      x f32   ->   add(mul(x[i], 2: f32), cast(i, f32))
 */
#include "notation/inst.h"


#include <math.h>

static typed untyped(const in_node *n)
{
	return (typed){.n = n};
}

static typed typed_of(const in_node *n)
{
	return (typed){.n = n, .is_typed = true};
}

bool inst_is_literal(typed v)
{
	return !v.is_typed && inst_is_const(v.n);
}

static _Noreturn void no_literal(inst *u, double v, tn_dtype t)
{
	str s = str_new(u->a);

	str_double(&s, v);
	inst_fail(u, "dtype", "%s is not a value of %s%s", s.at, dtype_name(t),
		inst_operands(u));
}

static const in_node *literal(inst *u, const in_node *n, tn_dtype t)
{
	in_node *r = inst_node(
		u, dtype_is_float(t) ? IN_REAL : IN_INT, t);
	double v = inst_f64(n);

	if (dtype_is_float(t)) {
		r->f = ir_round(t, v);
		return r;
	}
	r->i = n->i;
	if (n->kind == IN_REAL) {
		if (isinf(v)) {
			r->i = v < 0 ? ir_int_least(t) : ir_int_greatest(t);
			return r;
		}
		if (v != floor(v) || fabs(v) > 0x1p53)
			no_literal(u, v, t);
		r->i = (int64_t)v;
	}
	if (!ir_int_holds(t, r->i))
		no_literal(u, v, t);
	return r;
}

static const in_node *cast(inst *u, tn_dtype t, const in_node *n)
{
	in_node *r;

	if (n->dtype == t)
		return n;
	r = inst_node(u, IN_CAST, t);
	r->arg[0] = n;
	return r;
}

const in_node *inst_adapt(inst *u, typed v, tn_dtype t)
{
	if (v.is_typed)
		return v.n;
	if (inst_is_const(v.n))
		return literal(u, v.n, t);
	return cast(u, t, v.n);
}

/* The dtype of untyped values that are not combined with a typed one. */
static tn_dtype type_alone(inst *u, const typed *v, int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		if (!inst_is_literal(v[i]) && !v[i].is_typed)
			return TN_I64;
	if (!u->has_type)
		inst_fail(u, "dtype",
			"all values here are literals, so their dtype is not "
			"known: give it with a cast");
	return u->type;
}

/* Converts v[0..n-1] to a common dtype. */
static tn_dtype join(inst *u, typed *v, int32_t n)
{
	tn_dtype t = TN_F32;
	bool found = false;

	for (int32_t i = 0; i < n && !found; i++)
		if (v[i].is_typed) {
			t = v[i].n->dtype;
			found = true;
		}
	if (!found)
		t = type_alone(u, v, n);
	for (int32_t i = 0; i < n; i++) {
		if (v[i].is_typed && v[i].n->dtype != t)
			inst_fail(u, "dtype",
				"the dtypes %s and %s differ: cast one of the "
				"values%s",
				dtype_name(t), dtype_name(v[i].n->dtype),
				inst_operands(u));
		v[i] = typed_of(inst_adapt(u, v[i], t));
	}
	return t;
}

static const in_node *truth(inst *u, typed v, const char *what)
{
	if (!v.is_typed && v.n->kind == IN_INT &&
		(v.n->i == 0 || v.n->i == 1))
		return literal(u, v.n, TN_BOOL);
	if (!v.is_typed || v.n->dtype != TN_BOOL)
		inst_fail(u, "dtype", "%s needs a truth value, not %s%s", what,
			v.is_typed ? dtype_name(v.n->dtype) : "a number",
			inst_operands(u));
	return v.n;
}

/* ---- calls ---- */

static typed call_mixed(inst *u, int32_t fn, int32_t n, const typed *v)
{
	in_node *r = inst_node(u, IN_CALL, TN_F32);

	r->fn = fn;
	for (int32_t i = 0; i < n; i++) {
		if (v[i].is_typed && !dtype_is_int(v[i].n->dtype))
			inst_fail(u, "dtype", "%s needs integers, not %s%s",
				ir_scalar_at(fn)->name,
				dtype_name(v[i].n->dtype), inst_operands(u));
		r->arg[i] = v[i].is_typed
			? cast(u, TN_I64, v[i].n)
			: inst_adapt(u, v[i], TN_I64);
	}
	return typed_of(r);
}

/*
 * Converts arguments with the same letter of the signature to a common dtype.
 */
static void join_letter(inst *u, const ir_scalar *s, char letter, typed *v)
{
	typed same[IR_MAX_ARGS];
	int32_t n = 0;

	for (int32_t i = 0; i < s->n_args; i++)
		if (s->sig[2 * i] == letter)
			same[n++] = v[i];
	join(u, same, n);
	n = 0;
	for (int32_t i = 0; i < s->n_args; i++)
		if (s->sig[2 * i] == letter)
			v[i] = same[n++];
}

static typed call_fn(inst *u, int32_t fn, typed *v)
{
	const ir_scalar *s = ir_scalar_at(fn);
	tn_dtype t[IR_MAX_ARGS];
	int32_t result;
	in_node *r;

	if (s->g != NULL)
		return call_mixed(u, fn, s->n_args, v);
	for (int32_t i = 0; i < s->n_args; i++)
		if (s->sig[2 * i] == 'B')
			v[i] = typed_of(truth(u, v[i], s->name));
	for (int32_t i = 0; i < s->n_args; i++)
		if (!v[i].is_typed || i > 0)
			join_letter(u, s, s->sig[2 * i], v);
	for (int32_t i = 0; i < s->n_args; i++)
		t[i] = v[i].n->dtype;
	result = ir_scalar_dtype(fn, t, s->n_args);
	if (result < 0)
		inst_fail(u, "dtype", "%s (%s) does not take %s%s", s->name,
			s->sig, dtype_name(t[s->n_args - 1]), inst_operands(u));
	r = inst_node(u, IN_CALL, (tn_dtype)result);
	r->fn = fn;
	for (int32_t i = 0; i < s->n_args; i++)
		r->arg[i] = v[i].n;
	return typed_of(r);
}

static typed eval_scalar(inst *u, const row_node *e)
{
	int32_t fn = ir_scalar_find(e->name, strlen(e->name));
	typed v[IR_MAX_ARGS];
	bool constant = ir_scalar_at(fn)->g == NULL;

	for (int32_t i = 0; i < e->n; i++) {
		v[i] = inst_value(u, e->arg[i]);
		constant = constant && inst_is_literal(v[i]);
	}
	if (constant)
		return untyped(inst_single(u, e));
	return call_fn(u, fn, v);
}

/* cast(e, D) */
static tn_dtype target(inst *u, const row_node *d, const typed *v)
{
	int64_t i = map_get_str(u->word, d->name, -1);
	tn_dtype t = TN_F32;

	if (i >= 0 && u->symbol.at[i].kind == SYM_ATTR) {
		const symbol *s = inst_attr(u, &u->symbol.at[i]);

		if (!s->is_dtype)
			inst_fail(u, "dtype", "attribute %s is not a dtype",
				s->name);
		return s->dtype;
	}
	i = map_get_str(u->by_name, d->name, -1);
	if (i >= 0)
		return u->tensor.at[i].type.dtype;
	if (strcmp(d->name, "acc") == 0)
		return dtype_acc(v->is_typed
				? v->n->dtype
				: type_alone(u, v, 1));
	if (!dtype_parse(d->name, strlen(d->name), &t))
		inst_fail(u, "dtype", "%s is not a dtype", d->name);
	return t;
}

static typed eval_cast(inst *u, const row_node *e)
{
	typed v = inst_value(u, e->arg[0]);
	tn_dtype t = target(u, e->arg[1], &v);
	in_node *r;

	if (!inst_is_literal(v))
		return typed_of(cast(u, t, v.n));
	r = inst_node(u, dtype_is_float(t) ? IN_REAL : IN_INT, t);
	if (v.n->kind == IN_INT) {
		r->f = ir_round(t, (double)v.n->i);
		r->i = ir_wrap(t, v.n->i);
	} else if (!dtype_is_float(t) && isinf(v.n->f)) {
		return typed_of(literal(u, v.n, t));
	} else {
		ir_number w = ir_cast(t, TN_F64, (ir_number){.f = v.n->f});

		if (dtype_is_float(t))
			r->f = w.f;
		else
			r->i = w.i;
	}
	return typed_of(r);
}

static typed eval_inside(inst *u, const row_node *e)
{
	in_node *r = inst_node(u, IN_INSIDE, TN_BOOL);

	r->arg[0] = inst_read(u, e->arg[0]);
	return typed_of(r);
}

static typed eval_stop(inst *u, const row_node *e)
{
	typed v = inst_value(u, e->arg[0]);
	in_node *r;

	if (!v.is_typed)
		return v;
	r = inst_node(u, IN_STOP, v.n->dtype);
	r->arg[0] = v.n;
	return typed_of(r);
}

static typed eval_call(inst *u, const row_node *e)
{
	static const struct {
		const char *name;
		typed (*fn)(inst *u, const row_node *e);
	} own[] = {{"cast", eval_cast}, {"inside", eval_inside},
		{"stop", eval_stop}};

	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (strcmp(own[i].name, e->name) == 0)
			return own[i].fn(u, e);
	if (ir_scalar_find(e->name, strlen(e->name)) >= 0)
		return eval_scalar(u, e);
	return untyped(inst_single(u, e)); /* size, len, clamp */
}

/* ---- the rest ---- */

static bool is_const_bool(typed v, bool *value)
{
	if (v.n->kind != IN_INT || (v.is_typed && v.n->dtype != TN_BOOL))
		return false;
	*value = v.n->i != 0;
	return true;
}

static typed eval_logic(inst *u, const lex_operator *op, typed a, typed b)
{
	bool is_and = op->level == LEX_AND, value;
	typed v[2] = {a, b};

	for (int i = 0; i < 2; i++)
		if (is_const_bool(v[i], &value)) {
			truth(u, v[1 - i], op->symbol);
			return value == is_and ? v[1 - i] : v[i];
		}
	v[0] = typed_of(truth(u, a, op->symbol));
	v[1] = typed_of(truth(u, b, op->symbol));
	return call_fn(u, ir_scalar_find(op->fn, strlen(op->fn)), v);
}

static typed eval_binary(inst *u, const row_node *e)
{
	typed v[IR_MAX_ARGS] = {inst_value(u, e->arg[0]),
		inst_value(u, e->arg[1])};
	const lex_operator *op = e->op;

	if (op->level <= LEX_AND)
		return eval_logic(u, op, v[0], v[1]);
	if (!v[0].is_typed && !v[1].is_typed) {
		const in_node *n;
		bool real = v[0].n->kind == IN_REAL || v[1].n->kind == IN_REAL;

		if (!real || (inst_is_const(v[0].n) && inst_is_const(v[1].n))) {
			n = inst_binary(u, op, v[0].n, v[1].n);
			return n->kind == IN_CALL ? typed_of(n) : untyped(n);
		}
	}
	return call_fn(u, ir_scalar_find(op->fn, strlen(op->fn)), v);
}

static typed eval_neg(inst *u, const row_node *e)
{
	typed v[IR_MAX_ARGS] = {inst_value(u, e->arg[0])};

	if (v[0].is_typed)
		return call_fn(u, ir_scalar_find("neg", 3), v);
	if (v[0].n->kind == IN_REAL)
		return untyped(inst_real(u, -v[0].n->f));
	return untyped(inst_binary(u, lex_operator_of("sub"), inst_int(u, 0),
		v[0].n));
}

/* `where` and `else`: converts both branches to a common dtype. */
static typed branch(inst *u, in_kind kind, typed c, typed a, typed b)
{
	typed v[2] = {a, b};
	in_node *r;

	if (a.n->kind == IN_INSIDE && b.n->kind == IN_INT && !b.is_typed)
		v[1] = typed_of(literal(u, b.n, TN_BOOL));
	r = inst_node(u, kind, join(u, v, 2));
	if (kind == IN_WHERE) {
		r->arg[0] = c.n;
		r->arg[1] = v[0].n;
		r->arg[2] = v[1].n;
	} else {
		r->arg[0] = v[0].n;
		r->arg[1] = v[1].n;
	}
	return typed_of(r);
}

static typed eval_where(inst *u, const row_node *e)
{
	typed c = inst_value(u, e->arg[0]);
	bool value;

	if (is_const_bool(c, &value))
		return inst_value(u, e->arg[value ? 1 : 2]);
	c.n = truth(u, c, "where");
	return branch(u, IN_WHERE, c, inst_value(u, e->arg[1]),
		inst_value(u, e->arg[2]));
}

static typed eval_cond(inst *u, const row_node *e)
{
	return inst_value(u, e->arg[inst_const(u, e->arg[0]) != 0 ? 1 : 2]);
}

typed inst_value(inst *u, const row_node *e)
{
	const in_node *n;

	switch (e->kind) {
	case RN_READ:
		return typed_of(inst_read(u, e));
	case RN_NEG:
		return eval_neg(u, e);
	case RN_BINARY:
		return eval_binary(u, e);
	case RN_COND:
		return eval_cond(u, e);
	case RN_WHERE:
		return eval_where(u, e);
	case RN_ELSE:
		return branch(u, IN_ELSE, (typed){0},
			inst_value(u, e->arg[0]), inst_value(u, e->arg[1]));
	case RN_CALL:
		return eval_call(u, e);
	case RN_INT:
	case RN_REAL:
	case RN_NAME:
	case RN_PACK:
	case RN_SIZE:
	case RN_PICK:
	case RN_DROP:
	case RN_LIST:
		n = inst_single(u, e);
		return untyped(n);
	case RN_STAR:
	case RN_SKIP:
	case RN_TUPLE:
		break;
	}
	inst_fail(u, "value", "this is not a value: %.*s", e->at->n, e->at->at);
}
