/*
 * eval.c: evaluates a system, one point at a time.
 *
 * Consumes equations and arrays; produces the values of their results, slowly and
 * without compiling. Elements are loaded by a function of the caller, which can
 * check that a process has them.
 *
 *     o[i] = x[9 - i] + 1     eval: 10 loads, 10 stores
 */
#include "system/eval.h"

typedef eval_machine machine;

/* ---- expressions ---- */

static int64_t data_index(void *arg, int64_t fun, int64_t at)
{
	machine *m = arg;

	return m->load(m->arg, (int32_t)fun, at).i;
}

/* Are data indices inside the ranges that their atoms state? */
static void check_ranges(machine *m, const ix_form *f)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;
		int64_t k;

		if (t->f == NULL)
			continue;
		check_ranges(m, t->f);
		if (t->kind != IX_FUN)
			continue;
		k = data_index(m, t->fun,
			ix_eval(t->f, m->point, data_index, m));
		if (k < t->lo || k >= t->hi)
			env_fail(m->e, TN_ERANGE, "index.range", (loc){0},
				"%s: index %lld is outside %lld .. %lld",
				m->label, (long long)k, (long long)t->lo,
				(long long)t->hi - 1);
	}
}

int64_t eval_form(machine *m, const ix_form *f)
{
	check_ranges(m, f);
	return ix_eval(f, m->point, data_index, m);
}

ir_number eval_value(machine *m, const expr *e)
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
		r.i = eval_form(m, e->form);
		break;
	case EX_READ:
		r = m->load(m->arg, e->tensor, eval_form(m, e->form));
		break;
	case EX_CALL:
		for (int32_t i = 0; i < e->n_args; i++)
			arg[i] = eval_value(m, e->arg[i]);
		r = ir_scalar_eval(
			e->fn, e->arg[e->n_args - 1]->dtype, arg);
		if (dtype_is_float(e->dtype))
			r.f = ir_round(e->dtype, r.f);
		else
			r.i = ir_wrap(e->dtype, r.i);
		break;
	case EX_SELECT:
		arg[0] = eval_value(m, e->arg[0]);
		r = eval_value(m, e->arg[arg[0].i != 0 ? 1 : 2]);
		break;
	case EX_INSIDE:
		r.i = eval_form(m, e->form);
		r.i = r.i >= e->lo && r.i < e->hi;
		break;
	case EX_CAST:
		r = ir_cast(e->dtype, e->arg[0]->dtype,
			eval_value(m, e->arg[0]));
		break;
	case EX_PARAM:
		r = m->param[e->c.i];
		break;
	}
	return r;
}

/* The expressions of combine[]; one machine mostly asks for the same ones. */
static void parse_combine(
	machine *m, int32_t monoid, int32_t n, const tn_dtype *acc)
{
	if (m->n_combine == n && m->monoid == monoid &&
		memcmp(m->acc, acc, (size_t)n * sizeof *acc) == 0)
		return;
	for (int32_t k = 0; k < n; k++)
		m->combine[k] = ir_combine(m->s, monoid, k, acc);
	memcpy(m->acc, acc, (size_t)n * sizeof *acc);
	m->monoid = monoid;
	m->n_combine = n;
}

void eval_combine(machine *m, int32_t monoid, int32_t n, const tn_dtype *acc,
	ir_number *far, const ir_number *next)
{
	ir_number param[2 * IR_MAX_COMP], r[IR_MAX_COMP];

	for (int32_t k = 0; k < n; k++) {
		param[k] = far[k];
		param[IR_MAX_COMP + k] = next[k];
	}
	parse_combine(m, monoid, n, acc);
	m->param = param;
	for (int32_t k = 0; k < n; k++)
		r[k] = eval_value(m, m->combine[k]);
	m->param = NULL;
	memcpy(far, r, (size_t)n * sizeof *r);
}

/* ---- systems ---- */

ir_number eval_load(tn_dtype t, const void *data, int64_t at)
{
	ir_number r = {0};

	if (dtype_is_float(t))
		r.f = dtype_load_f64(t, data, at);
	else
		r.i = dtype_load_i64(t, data, at);
	return r;
}

void eval_store(tn_dtype t, void *data, int64_t at, ir_number r)
{
	if (dtype_is_float(t))
		dtype_store_f64(t, data, at, r.f);
	else
		dtype_store_i64(t, data, at, r.i);
}

typedef struct whole {
	machine m;
	arena *scratch;
	void *const *data; /* by tensor */
} whole;

static ir_number load(void *arg, int32_t tensor, int64_t at)
{
	whole *w = arg;
	const sys_tensor *t = &w->m.s->tensor.at[tensor];

	if (at < 0 || at >= t->numel)
		env_bug(w->m.e, "shard.eval", "%s reads element %lld of %s",
			w->m.label, (long long)at, t->name);
	return eval_load(t->dtype, w->data[tensor], at);
}

static bool step(const sys_eqn *e, int64_t *point)
{
	for (int32_t i = e->n_axes - 1; i >= 0; i--) {
		if (++point[i] < e->axis[i].extent)
			return true;
		point[i] = 0;
	}
	return false;
}

static void run_opaque(whole *w, const sys_eqn *e)
{
	ir_type type[IR_MAX_OPERANDS + IR_MAX_OUT];
	const void *in[IR_MAX_OPERANDS];
	void *out[IR_MAX_OUT];

	for (int32_t i = 0; i < e->n_opaque_in + e->n_out; i++) {
		bool is_in = i < e->n_opaque_in;
		int32_t t = is_in ? e->opaque_in[i]
				  : e->out[i - e->n_opaque_in];
		const sys_tensor *st = &w->m.s->tensor.at[t];

		type[i] = (ir_type){.dtype = st->dtype, .rank = st->rank};
		memcpy(type[i].shape, st->shape, sizeof st->shape);
		if (is_in)
			in[i] = w->data[t];
		else
			out[i - e->n_opaque_in] = w->data[t];
	}
	e->opaque->run(w->m.e, e->opaque, type, in, type + e->n_opaque_in, out,
		e->opaque_attr);
}

/* Sums are computed in the dtype of the accumulator, and rounded at the end. */
static void run_eqn(whole *w, const sys_eqn *e)
{
	ir_system *s = w->m.s;
	int64_t numel = s->tensor.at[e->out[0]].numel;
	int64_t point[IR_MAX_AXES] = {0}, turned[IR_MAX_AXES];
	ir_number *sum = NULL, next[IR_MAX_COMP];
	tn_dtype acc[IR_MAX_COMP], first = s->tensor.at[e->out[0]].dtype;
	int32_t n = e->n_out;

	w->m.label = e->label;
	if (e->opaque != NULL) {
		run_opaque(w, e);
		return;
	}
	w->m.point = turned;
	if (e->monoid != IR_SET)
		sum = arena_array(w->scratch, ir_number, numel * n);
	for (int64_t x = 0; sum != NULL && x < numel; x++) {
		int64_t rest = x;

		turned[0] = x;
		for (int32_t i = e->n_left - 1; e->push == NULL && i >= 0; i--) {
			turned[i] = rest % e->axis[i].extent;
			rest /= e->axis[i].extent;
		}
		for (int32_t k = 0; k < n; k++) {
			acc[k] = ir_monoid_acc(e->monoid, k, first);
			sum[x * n + k] = eval_value(&w->m, e->init[k] != NULL
					? e->init[k]
					: ir_identity(s, e->monoid, k, acc[k]));
		}
	}
	do {
		int64_t at = 0;

		memcpy(turned, point, sizeof turned);
		if (e->scan_step < 0)
			turned[e->scan_axis] = e->axis[e->scan_axis].extent -
				1 - point[e->scan_axis];
		for (int32_t i = 0; i < e->n_left; i++)
			at = at * e->axis[i].extent + turned[i];
		if (e->push != NULL)
			at = eval_form(&w->m, e->push);
		if (at < 0 || at >= numel)
			env_bug(w->m.e, "shard.eval", "%s writes element %lld",
				e->label, (long long)at);
		for (int32_t k = 0; k < n; k++)
			next[k] = eval_value(&w->m, e->body[k]);
		if (sum == NULL)
			eval_store(
				first, w->data[e->out[0]], at, next[0]);
		else
			eval_combine(&w->m, e->monoid, n, acc, sum + at * n,
				next);
	} while (step(e, point));
	for (int64_t x = 0; sum != NULL && x < numel; x++)
		for (int32_t k = 0; k < n; k++) {
			tn_dtype t = s->tensor.at[e->out[k]].dtype;

			eval_store(t, w->data[e->out[k]], x,
				ir_cast(t, acc[k], sum[x * n + k]));
		}
}

void eval_equation(
	arena *scratch, ir_system *s, const sys_eqn *e, void *const *data)
{
	whole w = {.scratch = scratch, .data = data};

	w.m = (machine){.e = arena_env(scratch), .s = s, .load = load,
		.arg = &w};
	run_eqn(&w, e);
}

void eval_equations(arena *scratch, ir_system *s, void *const *data)
{
	for (int32_t i = 0; i < s->eqn.n; i++)
		eval_equation(scratch, s, &s->eqn.at[i], data);
}
