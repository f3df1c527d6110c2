/*
 * expr.c: the expressions of a system: interned, typed trees.
 *
 * Guarantees that equal trees are one pointer, that dtypes fit (else it throws
 * TN_EINTERNAL: programs of users are checked when a row is instantiated), and
 * that calls on constants are folded.
 *
 *     ex_call(s, add, {x[i], 0.5})    x[i] + 0.5, dtype f32
 *     ex_call(s, add, {0.25, 0.5})    0.75
 */
#include "system/local.h"

#include <math.h>

/* Identifies a node. It has no padding, because it is hashed as bytes. */
struct key {
	int32_t kind, dtype, tensor, fn;
	int32_t form, arg[IR_MAX_ARGS];
	int64_t lo, hi;
	uint64_t c;
};

static const expr *intern(ir_system *s, const expr *e)
{
	ex_table *t = ir_exprs(s);
	struct key k = {.kind = (int32_t)e->kind,
		.dtype = (int32_t)e->dtype,
		.tensor = e->tensor,
		.fn = e->fn,
		.form = e->form != NULL ? e->form->id : -1,
		.arg = {-1, -1, -1},
		.lo = e->lo,
		.hi = e->hi};
	int64_t found;
	expr *made;

	if (dtype_is_float(e->dtype))
		memcpy(&k.c, &e->c.f, sizeof k.c);
	else
		memcpy(&k.c, &e->c.i, sizeof k.c);
	for (int32_t i = 0; i < e->n_args; i++)
		k.arg[i] = e->arg[i]->id;
	found = map_get(t->index, &k, sizeof k, -1);
	if (found >= 0)
		return t->node.at[found];
	made = arena_copy(s->a, e, sizeof *e);
	made->id = t->node.n;
	made->depth = 1;
	for (int32_t i = 0; i < e->n_args; i++) {
		if (made->depth <= e->arg[i]->depth)
			made->depth = e->arg[i]->depth + 1;
		if (!add_ok(made->flops, e->arg[i]->flops, &made->flops))
			made->flops = INT64_MAX;
	}
	if (made->depth > IR_MAX_DEPTH)
		env_fail(arena_env(s->a), TN_EINVAL, "system.depth", (loc){0},
			"an expression is nested more than %d deep",
			IR_MAX_DEPTH);
	*vec_push(s->a, &t->node) = made;
	map_set(t->index, &k, sizeof k, made->id);
	return made;
}

static _Noreturn void wrong(ir_system *s, const char *where, const char *what)
{
	env_bug(arena_env(s->a), where, "%s", what);
}

const expr *ex_const_f(ir_system *s, tn_dtype t, double v)
{
	if (!dtype_is_float(t))
		wrong(s, "ex_const_f", "the dtype must be a float dtype");
	v = ir_round(t, v);
	if (v != v)
		v = (double)NAN;
	return intern(s, &(expr){.kind = EX_CONST, .dtype = t, .c.f = v});
}

const expr *ex_const_i(ir_system *s, tn_dtype t, int64_t v)
{
	if (dtype_is_float(t))
		wrong(s, "ex_const_i", "the dtype must not be a float dtype");
	return intern(s,
		&(expr){.kind = EX_CONST, .dtype = t, .c.i = ir_wrap(t, v)});
}

const expr *ex_index(ir_system *s, const ix_form *f)
{
	if (f->n == 0)
		return ex_const_i(s, TN_I64, f->c0);
	return intern(
		s, &(expr){.kind = EX_INDEX, .dtype = TN_I64, .form = f});
}

const expr *ex_read(ir_system *s, int32_t tensor, const ix_form *at)
{
	if (tensor < 0 || tensor >= s->tensor.n)
		wrong(s, "ex_read", "there is no such tensor");
	return intern(s, &(expr){.kind = EX_READ,
				.dtype = s->tensor.at[tensor].dtype,
				.tensor = tensor,
				.form = at});
}

static ir_number number(const expr *e)
{
	ir_number v = {0};

	if (dtype_is_float(e->dtype))
		v.f = e->c.f;
	else
		v.i = e->c.i;
	return v;
}

static const expr *constant(ir_system *s, tn_dtype t, ir_number v)
{
	return dtype_is_float(t) ? ex_const_f(s, t, v.f)
				 : ex_const_i(s, t, v.i);
}

const expr *ex_call(ir_system *s, int32_t fn, const expr *const *arg)
{
	const ir_scalar *row = ir_scalar_at(fn);
	tn_dtype dtype[IR_MAX_ARGS];
	expr e = {.kind = EX_CALL, .fn = fn, .n_args = row->n_args};
	bool folds = true;
	int32_t result;

	for (int32_t i = 0; i < row->n_args; i++) {
		e.arg[i] = arg[i];
		dtype[i] = arg[i]->dtype;
		folds = folds && arg[i]->kind == EX_CONST;
		if (dtype_is_narrow(dtype[i]))
			env_bug(arena_env(s->a), "ex_call",
				"%s computes on %s: cast to %s first",
				row->name, dtype_name(dtype[i]),
				dtype_name(dtype_wide(dtype[i])));
	}
	if (strcmp(row->sig, "B,T,T>T") == 0)
		return ex_select(s, arg[0], arg[1], arg[2]);
	result = ir_scalar_dtype(fn, dtype, row->n_args);
	if (result < 0)
		env_bug(arena_env(s->a), "ex_call", "%s does not take %s",
			row->name, dtype_name(dtype[0]));
	e.dtype = (tn_dtype)result;
	if (folds) {
		ir_number v[IR_MAX_ARGS];

		for (int32_t i = 0; i < row->n_args; i++)
			v[i] = number(arg[i]);
		return constant(s, e.dtype,
			ir_scalar_eval(fn, dtype[row->n_args - 1], v));
	}
	e.flops = ex_root(&e) != 0 ? 3 * ir_scalar_at(ir_scalar_find("sqrt", 4))->flops
				 : row->flops;
	return intern(s, &e);
}

int32_t ex_root(const expr *e)
{
	double n;

	if (e->kind != EX_CALL || !dtype_is_float(e->dtype) || e->n_args != 2 ||
		strchr(ir_scalar_at(e->fn)->laws, '^') == NULL ||
		e->arg[1]->kind != EX_CONST)
		return 0;
	n = 4 * e->arg[1]->c.f;
	return n == 1 || n == 2 || n == 3 || n == 6 || n == -2 ? (int32_t)n : 0;
}

const expr *ex_select(
	ir_system *s, const expr *c, const expr *a, const expr *b)
{
	if (c->dtype != TN_BOOL || a->dtype != b->dtype)
		wrong(s, "ex_select", "the condition or the branches do not fit");
	if (c->kind == EX_CONST)
		return c->c.i != 0 ? a : b;
	if (a == b)
		return a;
	return intern(s, &(expr){.kind = EX_SELECT,
				.dtype = a->dtype,
				.n_args = 3,
				.arg = {c, a, b},
				.flops = 1});
}

const expr *ex_inside(ir_system *s, const ix_form *f, int64_t lo, int64_t hi)
{
	if (lo >= hi)
		return ex_const_i(s, TN_BOOL, 0);
	if (f->n == 0)
		return ex_const_i(s, TN_BOOL, f->c0 >= lo && f->c0 < hi);
	return intern(s, &(expr){.kind = EX_INSIDE,
				.dtype = TN_BOOL,
				.form = f,
				.lo = lo,
				.hi = hi,
				.flops = 1});
}

const expr *ex_cast(ir_system *s, tn_dtype t, const expr *a)
{
	if (a->dtype == t)
		return a;
	if (a->kind == EX_CONST)
		return constant(s, t, ir_cast(t, a->dtype, number(a)));
	return intern(s, &(expr){.kind = EX_CAST,
				.dtype = t,
				.n_args = 1,
				.arg = {a},
				.flops = 1});
}

const expr *ex_uncast(const expr *e, tn_dtype t)
{
	while (e->kind == EX_CAST &&
		(e->dtype == t || e->dtype == dtype_wide(t)))
		e = e->arg[0];
	return e;
}

const expr *ex_param(ir_system *s, tn_dtype t, int32_t nth)
{
	return intern(
		s, &(expr){.kind = EX_PARAM, .dtype = t, .tensor = nth, .c.i = nth});
}

int64_t ex_flops(const expr *e)
{
	return e->flops;
}

/* ---- visiting ---- */

void ex_visit(ir_system *s)
{
	ex_table *t = ir_exprs(s);

	if (t->n_stamp < t->node.n) {
		int32_t n = 2 * t->node.n + 64;
		int32_t *more = arena_array(s->a, int32_t, n);

		if (t->n_stamp > 0)
			memcpy(more, t->stamp,
				(size_t)t->n_stamp * sizeof *more);
		t->stamp = more;
		t->n_stamp = n;
	}
	t->visit++;
}

bool ex_first(ir_system *s, const expr *e)
{
	ex_table *t = ir_exprs(s);

	if (t->stamp[e->id] == t->visit)
		return false;
	t->stamp[e->id] = t->visit;
	return true;
}

/* ---- reads ---- */

struct listing {
	ir_system *s;
	VEC(struct ex_read_item) item;
};

static void list_read(
	struct listing *l, int32_t tensor, const ix_form *at, bool is_index);

/* Data that a form reads. */
static void list_form(struct listing *l, const ix_form *f)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;

		switch (a->kind) {
		case IX_DIGIT:
			break;
		case IX_FLOOR:
		case IX_CLAMP:
			list_form(l, a->f);
			break;
		case IX_FUN:
			list_read(l, (int32_t)a->fun, a->f, true);
			break;
		}
	}
}

static void list_read(
	struct listing *l, int32_t tensor, const ix_form *at, bool is_index)
{
	for (int32_t i = 0; i < l->item.n; i++)
		if (l->item.at[i].tensor == tensor && l->item.at[i].at == at &&
			l->item.at[i].is_index == is_index)
			return;
	*vec_push(l->s->a, &l->item) = (struct ex_read_item){
		.tensor = tensor, .at = at, .is_index = is_index};
	list_form(l, at);
}

static void list_expr(struct listing *l, const expr *e)
{
	if (!ex_first(l->s, e))
		return;
	if (e->kind == EX_READ)
		list_read(l, e->tensor, e->form, false);
	else if (e->form != NULL)
		list_form(l, e->form);
	for (int32_t i = 0; i < e->n_args; i++)
		list_expr(l, e->arg[i]);
}

ex_reads ex_list_reads(ir_system *s, const expr *e)
{
	static const struct ex_read_item none;
	ex_table *t = ir_exprs(s);
	struct listing l = {.s = s};

	while (t->reads.n <= e->id)
		*vec_push(s->a, &t->reads) = (ex_reads){0};
	if (t->reads.at[e->id].at == NULL) {
		ex_visit(s);
		list_expr(&l, e);
		t->reads.at[e->id] = (ex_reads){
			.n = l.item.n, .at = l.item.n > 0 ? l.item.at : &none};
	}
	return t->reads.at[e->id];
}

/* ---- questions ---- */

bool ex_is_call(const expr *e, const char *name)
{
	return e->kind == EX_CALL && strcmp(ir_scalar_at(e->fn)->name, name) == 0;
}

bool ex_is_zero(const expr *e)
{
	return e->kind == EX_CONST &&
	       (dtype_is_float(e->dtype) ? e->c.f == 0 : e->c.i == 0);
}

uint32_t ex_axes(ir_system *s, const expr *e, int32_t n)
{
	ex_reads all = ex_list_reads(s, e);
	uint32_t axes = 0;

	for (int32_t i = 0; i < all.n; i++)
		for (int32_t a = 0; a < n; a++)
			axes |= ix_uses_axis(all.at[i].at, a) ? (uint32_t)1 << a : 0;
	return axes;
}
