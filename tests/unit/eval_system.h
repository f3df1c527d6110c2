/*
 * eval_system.h: the slow meaning of a system, for tests: every instance of
 * every equation, in order, on plain arrays; one point at a time.
 *
 *     void **data = eval_system(a, s, input);
 *     data[s->output.at[0]]             the first output, dense
 *
 * A read outside its tensor, or a data index outside the range that its atom
 * states, fails the test.
 */
#ifndef EVAL_SYSTEM_H
#define EVAL_SYSTEM_H

#include "unit.h"

#include "ir/ir.h"

struct eval_env {
	ir_system *s;
	void **data;
	const int64_t *point;
	const ir_number *param;
};

static inline int64_t eval_fun(void *arg, int64_t fun, int64_t at)
{
	struct eval_env *v = arg;
	const sys_tensor *t = &v->s->tensor.at[fun];

	assert_true(at >= 0 && at < t->numel);
	return dtype_load_i64(t->dtype, v->data[fun], at);
}

/* Are all data indices in f inside the ranges that their atoms state? */
static inline void eval_check(struct eval_env *v, const ix_form *f)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;
		int64_t k;

		if (a->f == NULL)
			continue;
		eval_check(v, a->f);
		if (a->kind != IX_FUN)
			continue;
		k = eval_fun(v, a->fun, ix_eval(a->f, v->point, eval_fun, v));
		assert_true(k >= a->lo && k < a->hi);
	}
}

static inline int64_t eval_form(struct eval_env *v, const ix_form *f)
{
	eval_check(v, f);
	return ix_eval(f, v->point, eval_fun, v);
}

static inline ir_number eval_load(const sys_tensor *t, void *data, int64_t at)
{
	ir_number r = {0};

	assert_non_null(data);
	assert_true(at >= 0 && at < t->numel);
	if (dtype_is_float(t->dtype))
		r.f = dtype_load_f64(t->dtype, data, at);
	else
		r.i = dtype_load_i64(t->dtype, data, at);
	return r;
}

static inline ir_number eval_expr(struct eval_env *v, const expr *e)
{
	ir_number r = {0}, arg[IR_MAX_ARGS] = {{0}};

	switch (e->kind) {
	case EX_CONST:
		if (dtype_is_float(e->dtype))
			r.f = e->c.f;
		else
			r.i = e->c.i;
		break;
	case EX_INDEX:
		r.i = eval_form(v, e->form);
		break;
	case EX_READ:
		r = eval_load(&v->s->tensor.at[e->tensor],
			v->data[e->tensor], eval_form(v, e->form));
		break;
	case EX_CALL:
		for (int32_t i = 0; i < e->n_args; i++)
			arg[i] = eval_expr(v, e->arg[i]);
		r = ir_scalar_eval(
			e->fn, e->arg[e->n_args - 1]->dtype, arg);
		if (dtype_is_float(e->dtype))
			r.f = ir_round(e->dtype, r.f);
		else
			r.i = ir_wrap(e->dtype, r.i);
		break;
	case EX_SELECT:
		arg[0] = eval_expr(v, e->arg[0]);
		r = eval_expr(v, e->arg[arg[0].i != 0 ? 1 : 2]);
		break;
	case EX_INSIDE:
		r.i = eval_form(v, e->form);
		r.i = r.i >= e->lo && r.i < e->hi;
		break;
	case EX_CAST:
		r = ir_cast(e->dtype, e->arg[0]->dtype,
			eval_expr(v, e->arg[0]));
		break;
	case EX_PARAM:
		r = v->param[e->c.i];
		break;
	}
	return r;
}

static inline void eval_store(
	const sys_tensor *t, void *data, int64_t at, tn_dtype from, ir_number r)
{
	r = ir_cast(t->dtype, from, r);
	assert_true(at >= 0 && at < t->numel);
	if (dtype_is_float(t->dtype))
		dtype_store_f64(t->dtype, data, at, r.f);
	else
		dtype_store_i64(t->dtype, data, at, r.i);
}

/* so far (+) next, in place; both have n components */
static inline void eval_combine(struct eval_env *v, const sys_eqn *e,
	const tn_dtype *acc, ir_number *far, const ir_number *next)
{
	ir_number param[2 * IR_MAX_COMP], r[IR_MAX_COMP];

	for (int32_t k = 0; k < e->n_out; k++) {
		param[k] = far[k];
		param[IR_MAX_COMP + k] = next[k];
	}
	v->param = param;
	for (int32_t k = 0; k < e->n_out; k++)
		r[k] = eval_expr(v, ir_combine(v->s, e->monoid, k, acc));
	v->param = NULL;
	for (int32_t k = 0; k < e->n_out; k++)
		far[k] = r[k];
}

static inline bool eval_next(
	int64_t *point, const sys_eqn *e, int32_t from, int32_t to)
{
	for (int32_t i = to - 1; i >= from; i--) {
		if (++point[i] < e->axis[i].extent)
			return true;
		point[i] = 0;
	}
	return false;
}

static inline void eval_acc(
	ir_system *s, const sys_eqn *e, tn_dtype *acc)
{
	for (int32_t k = 0; k < e->n_out; k++)
		acc[k] = e->monoid == IR_SET
			? s->tensor.at[e->out[0]].dtype
			: ir_monoid_acc(e->monoid, k,
				  s->tensor.at[e->out[0]].dtype);
}

static inline void eval_start(struct eval_env *v, const sys_eqn *e,
	const tn_dtype *acc, ir_number *r)
{
	for (int32_t k = 0; k < e->n_out; k++)
		r[k] = eval_expr(v, e->init[k] != NULL
				? e->init[k]
				: ir_identity(v->s, e->monoid, k, acc[k]));
}

static inline void eval_pull(
	struct eval_env *v, const sys_eqn *e, int64_t *point, int64_t at)
{
	ir_number r[IR_MAX_COMP], next[IR_MAX_COMP];
	tn_dtype acc[IR_MAX_COMP];

	eval_acc(v->s, e, acc);
	for (int32_t i = e->n_left; i < e->n_axes; i++)
		point[i] = 0;
	if (e->monoid == IR_SET) {
		r[0] = eval_expr(v, e->body[0]);
	} else {
		eval_start(v, e, acc, r);
		do {
			for (int32_t k = 0; k < e->n_out; k++)
				next[k] = eval_expr(v, e->body[k]);
			eval_combine(v, e, acc, r, next);
		} while (eval_next(point, e, e->n_left, e->n_axes));
	}
	for (int32_t k = 0; k < e->n_out; k++)
		eval_store(&v->s->tensor.at[e->out[k]], v->data[e->out[k]], at,
			acc[k], r[k]);
}

static inline void eval_push(
	struct eval_env *v, const sys_eqn *e, int64_t *point)
{
	int64_t numel = v->s->tensor.at[e->out[0]].numel;
	ir_number *sum = arena_array(v->s->a, ir_number, numel * e->n_out);
	ir_number next[IR_MAX_COMP];
	tn_dtype acc[IR_MAX_COMP];

	eval_acc(v->s, e, acc);
	for (int64_t at = 0; at < numel; at++) {
		point[0] = at;
		eval_start(v, e, acc, sum + at * e->n_out);
	}
	memset(point, 0, IR_MAX_AXES * sizeof *point);
	do {
		int64_t at = eval_form(v, e->push);

		assert_true(at >= 0 && at < numel);
		for (int32_t k = 0; k < e->n_out; k++)
			next[k] = eval_expr(v, e->body[k]);
		eval_combine(v, e, acc, sum + at * e->n_out, next);
	} while (eval_next(point, e, 0, e->n_axes));
	for (int64_t at = 0; at < numel; at++)
		for (int32_t k = 0; k < e->n_out; k++)
			eval_store(&v->s->tensor.at[e->out[k]],
				v->data[e->out[k]], at, acc[k],
				sum[at * e->n_out + k]);
}

static inline void eval_eqn(struct eval_env *v, const sys_eqn *e)
{
	int64_t point[IR_MAX_AXES] = {0}, at = 0, n = 1;

	v->point = point;
	if (e->push != NULL) {
		eval_push(v, e, point);
		return;
	}
	for (int32_t i = 0; i < e->n_left; i++)
		n *= e->axis[i].extent;
	/* a descending scan: all points backwards */
	if (e->scan_step < 0) {
		for (at = n - 1; at >= 0; at--) {
			int64_t rest = at;

			for (int32_t i = e->n_left - 1; i >= 0; i--) {
				point[i] = rest % e->axis[i].extent;
				rest /= e->axis[i].extent;
			}
			eval_pull(v, e, point, at);
		}
		return;
	}
	do
		eval_pull(v, e, point, at++);
	while (eval_next(point, e, 0, e->n_left));
}

/* One equation on data[] of all tensors. */
static inline void eval_one(ir_system *s, const sys_eqn *e, void **data)
{
	struct eval_env v = {.s = s, .data = data};

	if (e->opaque != NULL) {
		ir_type in[IR_MAX_OPERANDS], out[IR_MAX_OUT];
		const void *in_data[IR_MAX_OPERANDS];
		void *out_data[IR_MAX_OUT];

		for (int32_t i = 0; i < e->n_opaque_in + e->n_out; i++) {
			bool is_in = i < e->n_opaque_in;
			int32_t t = is_in ? e->opaque_in[i]
					  : e->out[i - e->n_opaque_in];
			ir_type type = {.dtype = s->tensor.at[t].dtype,
				.rank = s->tensor.at[t].rank};

			memcpy(type.shape, s->tensor.at[t].shape,
				sizeof type.shape);
			if (is_in) {
				in[i] = type;
				in_data[i] = data[t];
			} else {
				out[i - e->n_opaque_in] = type;
				out_data[i - e->n_opaque_in] = data[t];
			}
		}
		e->opaque->run(arena_env(s->a), in, in_data, out, out_data,
			e->opaque_attr);
		return;
	}
	eval_eqn(&v, e);
}

/* Data of all tensors; inputs are copied. */
static inline void **eval_system(
	arena *a, ir_system *s, const void *const *input)
{
	void **data = arena_array(a, void *, s->tensor.n + 1);

	for (int32_t i = 0; i < s->tensor.n; i++)
		data[i] = arena_alloc(a, (size_t)s->tensor.at[i].numel + 1,
			dtype_size(s->tensor.at[i].dtype));
	for (int32_t i = 0; i < s->input.n; i++) {
		const sys_tensor *t = &s->tensor.at[s->input.at[i]];

		memcpy(data[s->input.at[i]], input[i],
			(size_t)t->numel * dtype_size(t->dtype));
	}
	for (int32_t i = 0; i < s->eqn.n; i++)
		eval_one(s, &s->eqn.at[i], data);
	return data;
}

#endif
