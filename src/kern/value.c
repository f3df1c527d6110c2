/*
 * value.c: kernels, their arrays, forms and values.
 *
 * Forms and constants are interned, by their bytes: equal pointers are equal
 * forms.
 */
#include "kern/local.h"

#include <math.h>

static const kern_op_row rows[KERN_N_OPS] = {
#define KERN_OP(id, name, operands, types, flags, doc)                         \
	{name, operands, types, flags, doc},
#include "kern/kern_op.def"
#undef KERN_OP
};

const kern_op_row *kern_op_at(kern_op op)
{
	return &rows[op];
}

int32_t kern_dot_terms(tn_dtype x, tn_dtype y)
{
	if (x == y)
		return x == TN_BF16 || x == TN_I16 ? 2 : 0;
	return (x == TN_U8 && y == TN_I8) || (x == TN_I8 && y == TN_U8) ? 4 : 0;
}

static bool is_byte(tn_dtype t)
{
	return t == TN_U8 || t == TN_I8;
}

int32_t kern_tile_terms(tn_dtype x, tn_dtype y)
{
	return is_byte(x) && is_byte(y)		     ? 4
	       : x == TN_BF16 && y == TN_BF16 ? 2
					      : 0;
}

const kern_space_row *kern_space_at(kern_space s)
{
	static const kern_space_row spaces[] = {
		[KERN_PARAM] = {"param", 'p'},
		[KERN_SCRATCH] = {"scratch", 'q'},
		[KERN_LOCAL] = {"local", 'b'},
		[KERN_STACK] = {"array", 't'},
	};

	return &spaces[s];
}

const char *kern_type_text(arena *a, kern_type t)
{
	if (t.mask > 0)
		return arena_printf(a, "m%dx%d", t.mask, t.lanes);
	if (t.lanes > 1)
		return arena_printf(a, "%sx%d", dtype_name(t.dt), t.lanes);
	return dtype_name(t.dt);
}

kern_kernel *kern_new(arena *a, const char *name)
{
	kern_kernel *k = arena_make(a, kern_kernel);

	k->a = a;
	k->name = name;
	k->forms = map_new(a);
	k->consts = map_new(a);
	(void)vec_push(a, &k->value);
	k->value.at[0] = (kern_value){.op = KERN_NONE};
	return k;
}

_Noreturn void kern_bug(const kern_kernel *k, const char *what)
{
	env_bug(arena_env(k->a), "kern", "%s: %s", k->name, what);
}

int32_t kern_add_param(
	kern_kernel *k, tn_dtype t, int64_t elems, bool out, int32_t tensor)
{
	kern_array *r;

	if (k->array.n != k->n_params)
		kern_bug(k, "a param behind other arrays");
	r = vec_push(k->a, &k->array);
	*r = (kern_array){.space = KERN_PARAM,
		.number = k->n_params++,
		.dtype = t,
		.elems = elems,
		.out = out,
		.tensor = tensor};
	return k->array.n - 1;
}

int32_t kern_add_array(kern_kernel *k, kern_space space, tn_dtype t,
	int64_t elems, int64_t offset)
{
	kern_array *r = vec_push(k->a, &k->array);
	int32_t number = 0;

	for (int32_t i = 0; i + 1 < k->array.n; i++)
		number += k->array.at[i].space == space;
	*r = (kern_array){.space = space,
		.number = number,
		.dtype = t,
		.elems = elems,
		.offset = offset,
		.tensor = -1};
	return k->array.n - 1;
}

int32_t kern_add_check(kern_kernel *k, int32_t tensor, const char *name,
	int64_t lo, int64_t hi)
{
	for (int32_t i = 0; i < k->check.n; i++) {
		const kern_check *c = &k->check.at[i];

		if (c->tensor == tensor && c->lo == lo && c->hi == hi)
			return i + 1;
	}
	*vec_push(k->a, &k->check) = (kern_check){tensor, name, lo, hi};
	return k->check.n;
}

/* ---- forms ---- */

static const kern_form *intern(kern_kernel *k, const kern_form *f)
{
	size_t n = sizeof *f + (size_t)f->n * sizeof f->t[0];
	int64_t at = map_get(k->forms, f, n, 0);
	const kern_form *r;

	if (at != 0)
		return (const kern_form *)(intptr_t)at;
	r = arena_copy(k->a, f, n);
	map_set(k->forms, f, n, (int64_t)(intptr_t)r);
	return r;
}

/* room for n terms, all bytes 0: forms are compared by their bytes */
static kern_form *room(kern_kernel *k, int32_t n)
{
	return arena_alloc(
		k->a, 1, sizeof(kern_form) + (size_t)n * sizeof(kern_term));
}

static void add_term(kern_form *f, int64_t coef, kern_val v)
{
	if (coef == 0)
		return;
	f->t[f->n].coef = coef;
	f->t[f->n++].v = v;
}

const kern_form *kern_form_const(kern_kernel *k, int64_t c)
{
	kern_form f;

	memset(&f, 0, sizeof f);
	f.c0 = c;
	return intern(k, &f);
}

bool kern_form_is_const(const kern_form *f, int64_t *c)
{
	*c = f->c0;
	return f->n == 0;
}

bool kern_form_apart(const kern_form *lo, const kern_form *hi, int64_t *n)
{
	if (lo->n != hi->n)
		return false;
	for (int32_t i = 0; i < lo->n; i++)
		if (lo->t[i].v != hi->t[i].v || lo->t[i].coef != hi->t[i].coef)
			return false;
	return !__builtin_sub_overflow(hi->c0, lo->c0, n);
}

const kern_form *kern_form_term(kern_kernel *k, int64_t coef, kern_val v)
{
	kern_form *f = room(k, 1);

	add_term(f, coef, v);
	return intern(k, f);
}

void kern_row_and_column(kern_kernel *k, const kern_form *at, int64_t m,
	const kern_form **row, const kern_form **column)
{
	*row = kern_form_const(k, floor_div(at->c0, m));
	*column = kern_form_const(k, floor_mod(at->c0, m));
	for (int32_t i = 0; i < at->n; i++) {
		const kern_form **of = at->t[i].coef % m == 0 ? row : column;
		int64_t coef = at->t[i].coef / (of == row ? m : 1);

		*of = kern_form_add(k, *of, kern_form_term(k, coef, at->t[i].v));
	}
}

const kern_form *kern_form_of(kern_kernel *k, kern_val v)
{
	const kern_value *x = kern_at(k, v);

	if (x->op == KERN_CONST)
		return kern_form_const(k, x->c.i);
	if (x->op == KERN_INDEX && x->type.dt == TN_I64)
		return x->form[0];
	if (dtype_is_float(x->type.dt) || x->type.lanes != 1)
		kern_bug(k, "a form needs an integer");
	return kern_form_term(k, 1, v);
}

/* A number that nobody knows, or what is wrong. */
static const kern_form *beyond(kern_kernel *k)
{
	if (!k->verified)
		env_fail(arena_env(k->a), TN_ENOMEM, "kern.overflow", (loc){0},
			"%s: an address beyond 64 bits", k->name);
	return kern_form_term(k, 1,
		kern_ins(k, &(kern_value){
				    .op = KERN_NONE, .type = kern_i64()}));
}

/* a + c * b */
static const kern_form *sum(
	kern_kernel *k, const kern_form *a, const kern_form *b, int64_t c)
{
	kern_form *f = room(k, a->n + b->n);
	int32_t i = 0, j = 0;
	int64_t p;
	bool ok = mul_ok(b->c0, c, &p) && add_ok(a->c0, p, &f->c0);

	while (ok && (i < a->n || j < b->n)) {
		bool left = j == b->n || (i < a->n && a->t[i].v <= b->t[j].v);
		bool right = i == a->n || (j < b->n && b->t[j].v <= a->t[i].v);
		kern_val v = left ? a->t[i].v : b->t[j].v;
		int64_t coef = left ? a->t[i++].coef : 0;

		if (right)
			ok = mul_ok(b->t[j++].coef, c, &p) &&
			     add_ok(coef, p, &coef);
		add_term(f, coef, v);
	}
	return ok ? intern(k, f) : beyond(k);
}

const kern_form *kern_form_add(
	kern_kernel *k, const kern_form *a, const kern_form *b)
{
	return sum(k, a, b, 1);
}

const kern_form *kern_form_sub(
	kern_kernel *k, const kern_form *a, const kern_form *b)
{
	return sum(k, a, b, -1);
}

const kern_form *kern_form_scale(kern_kernel *k, const kern_form *a, int64_t c)
{
	return sum(k, kern_form_const(k, 0), a, c);
}

const kern_form *kern_form_addc(kern_kernel *k, const kern_form *a, int64_t c)
{
	return sum(k, a, kern_form_const(k, c), 1);
}

const kern_form *kern_exact(kern_kernel *k, const kern_form *f, int64_t m)
{
	const kern_form *g = kern_form_const(k, floor_div(f->c0, m));

	for (int32_t i = 0; i < f->n; i++) {
		if (f->t[i].coef % m != 0)
			return NULL;
		g = kern_form_add(k, g,
			kern_form_term(k, f->t[i].coef / m, f->t[i].v));
	}
	return g;
}

/* ---- values ---- */

kern_val kern_ins(kern_kernel *k, const kern_value *v)
{
	*vec_push(k->a, &k->value) = *v;
	return k->value.n - 1;
}

static kern_val constant(kern_kernel *k, const kern_value *v)
{
	int64_t key[2] = {v->type.dt, v->c.i}, at;

	at = map_get(k->consts, key, sizeof key, 0);
	if (at == 0) {
		at = kern_ins(k, v);
		map_set(k->consts, key, sizeof key, at);
	}
	return (kern_val)at;
}

kern_val kern_const_f(kern_kernel *k, tn_dtype t, double f)
{
	kern_value v = {.op = KERN_CONST, .type = kern_num(t, 1)};

	v.c.f = ir_round(t, f);
	if (v.c.f != v.c.f)
		v.c.f = (double)NAN; /* one constant, whatever its sign and payload */
	return constant(k, &v);
}

kern_val kern_const_i(kern_kernel *k, tn_dtype t, int64_t i)
{
	kern_value v = {.op = KERN_CONST, .type = kern_num(t, 1)};

	v.c.i = ir_wrap(t, i);
	return constant(k, &v);
}

kern_val kern_call(kern_kernel *k, int32_t fn, kern_type t, const kern_val *arg)
{
	kern_value v = {.op = KERN_CALL, .type = t, .fn = fn};

	for (int32_t i = 0; i < ir_scalar_at(fn)->n_args; i++)
		v.arg[i] = arg[i];
	return kern_ins(k, &v);
}

kern_val kern_unary(kern_kernel *k, kern_op op, kern_type t, kern_val x)
{
	return kern_ins(k, &(kern_value){.op = op, .type = t, .arg = {x}});
}

kern_val kern_lane(kern_kernel *k, kern_val x, const kern_form *lane)
{
	return kern_ins(k,
		&(kern_value){.op = KERN_LANE,
			.type = kern_num(kern_at(k, x)->type.dt, 1),
			.arg = {x},
			.form = {lane}});
}

kern_val kern_shuffle(
	kern_kernel *k, kern_val x, kern_val y, const int64_t *list)
{
	kern_type t = kern_at(k, x)->type;

	return kern_ins(k,
		&(kern_value){.op = KERN_SHUFFLE,
			.type = t,
			.arg = {x, y},
			.list = arena_copy(k->a, list,
				(size_t)t.lanes * sizeof *list)});
}

kern_val kern_lanes(kern_kernel *k, kern_type t, const int64_t *list)
{
	return kern_ins(k,
		&(kern_value){.op = KERN_LANES,
			.type = t,
			.list = arena_copy(k->a, list,
				(size_t)t.lanes * sizeof *list)});
}

kern_access kern_element(int32_t array, const kern_form *at)
{
	return (kern_access){.array = array, .at = at, .stride = 1};
}

kern_val kern_load(kern_kernel *k, kern_type t, const kern_access *at)
{
	return kern_ins(
		k, &(kern_value){.op = KERN_LOAD, .type = t, .at = *at});
}
