/*
 * verify_type.c: types of instructions: by the letters of kern_op.def, and of
 * scalar functions by the signatures of scalar.def.
 */
#include "kern/verify.h"

static int32_t width(kern_type t)
{
	return t.mask > 0 ? t.mask : (int32_t)dtype_size(t.dt);
}

/* What memory holds of `computed`. */
static bool holds(kern_type stored, kern_type computed)
{
	return stored.lanes == computed.lanes &&
	       (stored.dt == TN_U8 ? computed.dt == TN_BOOL
				   : dtype_is_narrow(stored.dt) &&
					     computed.dt == dtype_wide(stored.dt));
}

/* .. as many of them for each lane of the result as a dot multiplies? */
static bool is_dotted(const struct kern_verifier *v, const kern_value *x)
{
	kern_type a = kern_at(v->k, x->arg[0])->type;
	kern_type b = kern_at(v->k, x->arg[1])->type;
	int32_t n = kern_dot_terms(a.dt, b.dt);

	return n > 0 && a.mask == 0 && b.mask == 0 &&
	       a.lanes == n * x->type.lanes && b.lanes == a.lanes &&
	       x->type.dt == (dtype_is_float(a.dt) ? TN_F32 : TN_I32);
}

/* Does an argument of type t fit the letter, for the result r? */
static bool fits(char letter, kern_type t, kern_type r)
{
	switch (letter) {
	case 'X':
		return kern_same_type(t, r);
	case 'S':
		return t.lanes == 1 && t.dt == r.dt;
	case 'W':
		return t.lanes == r.lanes && !dtype_is_narrow(t.dt);
	case 'H':
		return holds(t, r);
	case 'C':
		return holds(r, t);
	case 'V':
		return t.lanes > 1;
	case 'D': /* see is_dotted */
		return t.lanes > 1 && t.mask == 0;
	case 'G':
		return t.dt == r.dt && t.mask == 0 && r.lanes % t.lanes == 0;
	case 'U':
		return t.dt == r.dt && t.mask == 0 && r.lanes == 2 * t.lanes;
	case 'B':
		return t.dt == TN_BOOL && t.lanes == 1;
	case 'M':
		return t.dt == TN_BOOL;
	case 'Q':
		return t.lanes == 1 && dtype_is_int(t.dt);
	default:
		return false;
	}
}

/* .. a result; x: the first argument */
static bool gives(char letter, kern_type t, kern_type x)
{
	switch (letter) {
	case 'X':
	case 'A':
		return true;
	case 'C':
		return !dtype_is_narrow(t.dt);
	case 'H':
		return holds(t, x);
	case 'E':
		return t.lanes == 1 && t.dt == x.dt && t.mask == 0;
	case 'V':
		return t.lanes > 1;
	case 'F':
		return t.dt == TN_F32 || t.dt == TN_F64;
	case 'Z':
		return t.dt == TN_F32 || t.dt == TN_I32;
	case 'R':
		return !dtype_is_narrow(t.dt) && t.dt != TN_BOOL;
	case 'N':
		return dtype_is_int(t.dt);
	case 'B':
		return t.dt == TN_BOOL && t.lanes == 1;
	case 'I':
		return t.lanes == 1 && (t.dt == TN_I64 || t.dt == TN_I32);
	case 'J':
		return t.dt == TN_I64 || t.dt == TN_I32;
	default:
		return false;
	}
}

static const char *name(const kern_value *x)
{
	return x->op == KERN_CALL ? ir_scalar_at(x->fn)->name
				  : kern_op_at(x->op)->name;
}

static _Noreturn void wrong(
	struct kern_verifier *v, const kern_value *x, int32_t arg)
{
	if (arg < 0)
		kern_refuse(v, "type", "%s cannot have a result of type %s here", name(x),
			kern_type_text(v->a, x->type));
	kern_refuse(v, "type", "argument %d of %s is %s, which does not fit its result of type %s",
		arg + 1, name(x),
		kern_type_text(v->a, kern_at(v->k, x->arg[arg])->type),
		kern_type_text(v->a, x->type));
}

/* F float, N number, I integer, B bool, O and T any */
static bool in_class(char letter, kern_type t)
{
	if (dtype_is_narrow(t.dt))
		return false;
	switch (letter) {
	case 'F':
		return dtype_is_float(t.dt);
	case 'N':
		return t.dt != TN_BOOL;
	case 'I':
		return dtype_is_int(t.dt);
	case 'B':
		return t.dt == TN_BOOL;
	default:
		return true;
	}
}

/* A condition for lanes of type t, or for all of them. */
static bool selects(kern_type c, kern_type t)
{
	return c.dt == TN_BOOL &&
	       (c.lanes == 1 || (c.lanes == t.lanes && c.mask == width(t)));
}

/*
 * Arguments whose letter is that of the last one have its type; a B in front
 * of others selects. The result is of that type, a condition of its width, or
 * (u01) a float.
 */
static void verify_call(struct kern_verifier *v, const kern_value *x)
{
	const ir_scalar *f = ir_scalar_at(x->fn);
	char last = f->sig[2 * (f->n_args - 1)], to = f->sig[2 * f->n_args];
	kern_type t = kern_at(v->k, x->arg[f->n_args - 1])->type, want = t;

	for (int32_t i = 0; i < f->n_args; i++) {
		char c = f->sig[2 * i];
		kern_type is = kern_at(v->k, x->arg[i])->type;

		if (c == last ? !kern_same_type(is, t) || !in_class(c, is)
			      : !selects(is, t))
			wrong(v, x, i);
	}
	if (to == 'B')
		want = kern_mask(width(t), t.lanes);
	else if (to != last)
		want.dt = x->type.dt;
	if (!kern_same_type(want, x->type) || !in_class(to, x->type))
		wrong(v, x, -1);
}

static void verify_load(struct kern_verifier *v, const kern_value *x)
{
	tn_dtype t = kern_stored(v->k->array.at[x->at.array].dtype);

	if (x->type.dt != t || x->type.mask != 0)
		kern_refuse(v, "type", "an element of %s is %s",
			kern_access_text(v, x->at.array),
			kern_type_text(v->a, kern_num(t, x->type.lanes)));
}

void kern_verify_type(struct kern_verifier *v, const kern_value *x)
{
	const char *t = kern_op_at(x->op)->types;
	kern_type first = x->arg[0] != 0 ? kern_at(v->k, x->arg[0])->type
					 : x->type;

	if (x->op == KERN_CALL) {
		verify_call(v, x);
		return;
	}
	for (int32_t i = 0; *t != '>'; t++, i++)
		if (!fits(*t, kern_at(v->k, x->arg[i])->type, x->type))
			wrong(v, x, i);
	if (!gives(t[1], x->type, first))
		wrong(v, x, -1);
	if (x->op == KERN_LOAD)
		verify_load(v, x);
	if (x->op == KERN_DOT && !is_dotted(v, x))
		kern_refuse(v, "type",
			"dot of %s and %s into %s: for each lane of its f32 it takes 2 bf16, of its i32 2 i16, or 4 u8 and 4 i8",
			kern_type_text(v->a, kern_at(v->k, x->arg[0])->type),
			kern_type_text(v->a, kern_at(v->k, x->arg[1])->type),
			kern_type_text(v->a, x->type));
	if (x->op == KERN_ROUND && (!dtype_is_narrow(x->dt) ||
					   x->type.dt != dtype_wide(x->dt)))
		kern_refuse(v, "type",
			"rounded needs the type that %s is computed in, which is %s",
			dtype_name(x->dt), dtype_name(dtype_wide(x->dt)));
}
