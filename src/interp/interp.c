/*
 * interp.c: evaluates programs, instances and equations.
 *
 * Every equation is a nest of loops over all its letters, the left ones
 * outermost; each iteration has a left index and a value:
 *
 *     o[i] += x[i, k]      for i: for k: acc[i] = combine(acc[i], x[i, k])
 *
 * Reductions are combined in f64 (integers in 64 bits), by the text of the
 * monoid's combination, and rounded to the result's dtype once, at the end.
 * `=` stores at once, so that a scan finds its earlier elements; the letter
 * of a scan runs in the direction that the scan reads from.
 */
#include "interp/local.h"

/* ---- combinations of monoids ---- */

/* The accumulators: one array of numbers per component of the monoid. */
typedef struct reduction {
	int32_t n;
	tn_dtype acc[IR_MAX_COMP], element[IR_MAX_COMP], out[IR_MAX_COMP];
	const expr *combine[IR_MAX_COMP];
	ir_number identity[IR_MAX_COMP], *at[IR_MAX_COMP];
	double (*plain)(double x, double y, double z); /* else NULL */
} reduction;

static tn_dtype widest(tn_dtype t)
{
	return dtype_is_float(t) ? TN_F64
	       : t == TN_BOOL || t == TN_U64 ? t
					     : TN_I64;
}

/* x0 x1 x2 are param 0 .. 2, y0 y1 y2 are 3 .. 5. Not rounded: acc is wide. */
static ir_number combine_eval(env *e, const expr *x, const ir_number *param)
{
	ir_number v[IR_MAX_ARGS] = {{0}};

	switch (x->kind) {
	case EX_CONST:
		return dtype_is_float(x->dtype) ? (ir_number){.f = x->c.f} :
						  (ir_number){.i = x->c.i};
	case EX_PARAM:
		return param[x->c.i];
	case EX_CALL:
		for (int32_t i = 0; i < x->n_args; i++)
			v[i] = combine_eval(e, x->arg[i], param);
		return ir_scalar_eval(x->fn, x->arg[x->n_args - 1]->dtype, v);
	case EX_SELECT:
		v[0] = combine_eval(e, x->arg[0], param);
		return combine_eval(e, x->arg[v[0].i != 0 ? 1 : 2], param);
	case EX_CAST:
		return ir_cast(x->dtype, x->arg[0]->dtype,
			combine_eval(e, x->arg[0], param));
	case EX_INDEX:
	case EX_READ:
	case EX_INSIDE:
		break;
	}
	env_bug(e, "interp.combine", "a combination reads a tensor");
}

/* f(x0, y0) of floats: sums, products, extremes */
static void find_plain(reduction *r)
{
	const expr *x = r->combine[0];

	if (r->n == 1 && r->acc[0] == TN_F64 && dtype_is_float(r->element[0]) &&
		x->kind == EX_CALL && x->n_args == 2 &&
		x->arg[0]->kind == EX_PARAM && x->arg[0]->c.i == 0 &&
		x->arg[1]->kind == EX_PARAM &&
		x->arg[1]->c.i == IR_MAX_COMP &&
		ir_scalar_at(x->fn)->g == NULL &&
		strchr(ir_scalar_at(x->fn)->sig, 'B') == NULL)
		r->plain = ir_scalar_at(x->fn)->f;
}

static reduction reduction_new(arena *a, const walk *w)
{
	const in_eqn *q = w->eqn;
	ir_system *s = ir_system_new(a, NULL);
	reduction r = {.n = ir_monoid_at(q->monoid)->n_comp};

	for (int32_t k = 0; k < r.n; k++) {
		r.element[k] = q->body[k]->dtype;
		r.out[k] = w->inst->tensor[q->out[k]].type.dtype;
		r.acc[k] = widest(r.out[k]);
	}
	for (int32_t k = 0; k < r.n; k++) {
		const expr *id = ir_identity(
			s, q->monoid, k, ir_wide(r.out[k]));

		r.combine[k] = ir_combine(s, q->monoid, k, r.acc);
		r.identity[k] = dtype_is_float(r.out[k]) ?
			(ir_number){.f = id->c.f} :
			(ir_number){.i = id->c.i};
	}
	find_plain(&r);
	return r;
}

static void reduction_add(env *e, reduction *r, int64_t place,
	const ir_number *value)
{
	ir_number param[2 * IR_MAX_COMP] = {{0}}, sum[IR_MAX_COMP];

	if (r->plain != NULL) {
		r->at[0][place].f = r->plain(r->at[0][place].f, value[0].f, 0);
		return;
	}
	for (int32_t k = 0; k < r->n; k++) {
		param[k] = r->at[k][place];
		param[IR_MAX_COMP + k] =
			cast_number(r->acc[k], r->element[k], value[k]);
	}
	for (int32_t k = 0; k < r->n; k++)
		sum[k] = combine_eval(e, r->combine[k], param);
	for (int32_t k = 0; k < r->n; k++)
		r->at[k][place] = sum[k];
}

static int64_t numel_of(const walk *w, int32_t tensor)
{
	const ir_type *t = &w->inst->tensor[tensor].type;

	return shape_numel(t->shape, t->rank);
}

/* ---- one equation ---- */

/* Sets all letters of the equation to their first value; false: no iterations. */
static bool first_instance(const walk *w)
{
	const in_eqn *q = w->eqn;

	for (int32_t i = 0; i < q->n_letters; i++) {
		int32_t l = q->letters[i];
		int64_t n = w->inst->letter[l].extent;

		if (n == 0)
			return false;
		w->letter[l] = q->is_scan && l == q->scan_letter &&
				q->scan_step < 0 ?
			n - 1 :
			0;
	}
	return true;
}

static bool next_instance(const walk *w)
{
	const in_eqn *q = w->eqn;

	for (int32_t i = q->n_letters - 1; i >= 0; i--) {
		int32_t l = q->letters[i];
		int64_t n = w->inst->letter[l].extent;

		if (q->is_scan && l == q->scan_letter && q->scan_step < 0) {
			if (--w->letter[l] >= 0)
				return true;
			w->letter[l] = n - 1;
		} else {
			if (++w->letter[l] < n)
				return true;
			w->letter[l] = 0;
		}
	}
	return false;
}

/* Finds the element that this iteration writes; false: it is skipped. */
static bool left_place(walk *w)
{
	const in_eqn *q = w->eqn;
	int32_t axis;

	if (walk_place(w, w->left, &w->pos, &axis))
		return true;
	if (!q->skip)
		walk_outside(w, w->left, axis);
	return false;
}

static void set(walk *w)
{
	const in_eqn *q = w->eqn;
	int32_t out = q->out[0];
	tn_dtype t = w->inst->tensor[out].type.dtype;

	if (!q->is_update) /* a write starts with the old elements */
		memset(w->tensor[out], 0,
			(size_t)numel_of(w, out) * dtype_size(t));
	if (!first_instance(w))
		return;
	do {
		if (left_place(w))
			store_number(t, w->tensor[out], w->pos,
				cast_number(t, q->body[0]->dtype,
					w->body[0]->eval(w, w->body[0])));
	} while (next_instance(w));
}

static void reduce(arena *a, walk *w)
{
	const in_eqn *q = w->eqn;
	reduction r = reduction_new(a, w);
	int64_t n = numel_of(w, q->out[0]);
	ir_number v[IR_MAX_COMP] = {{0}};

	for (int32_t k = 0; k < r.n; k++) {
		r.at[k] = arena_array(a, ir_number, n);
		for (int64_t i = 0; i < n; i++)
			r.at[k][i] = q->is_update ?
				load_number(r.out[k], w->tensor[q->out[k]], i) :
				r.identity[k];
	}
	if (first_instance(w)) {
		do {
			if (!left_place(w))
				continue;
			for (int32_t k = 0; k < r.n; k++)
				v[k] = w->body[k]->eval(w, w->body[k]);
			reduction_add(w->e, &r, w->pos, v);
		} while (next_instance(w));
	}
	for (int32_t k = 0; k < r.n; k++)
		for (int64_t i = 0; i < n; i++)
			store_number(r.out[k], w->tensor[q->out[k]], i,
				ir_cast(r.out[k], r.acc[k], r.at[k][i]));
}

/* ---- instances ---- */

typedef struct inst_job {
	env *e;
	const ir_inst *inst;
	void *const *tensor;
} inst_job;

static void run_equations(arena *a, const inst_job *j)
{
	walk w = {.e = j->e, .inst = j->inst, .tensor = j->tensor};

	w.letter = arena_array(a, int64_t, j->inst->n_letters);
	for (int32_t i = 0; i < j->inst->n_tensors; i++) {
		const in_tensor *t = &j->inst->tensor[i];

		if (t->next_of >= 0) /* operands are the first tensors */
			memcpy(j->tensor[i], j->tensor[t->next_of],
				(size_t)numel_of(&w, i) *
					dtype_size(t->type.dtype));
	}
	for (int32_t i = 0; i < j->inst->n_eqns; i++) {
		w.eqn = &j->inst->eqn[i];
		walk_prepare(a, &w);
		if (w.eqn->monoid == IR_SET)
			set(&w);
		else
			reduce(a, &w);
	}
}

static void run_opaque(arena *a, const inst_job *j)
{
	const ir_inst *inst = j->inst;
	int32_t n_in = 0, n_out = inst->n_results;
	ir_type *type = arena_array(a, ir_type, inst->n_tensors);
	const void **in = arena_array(a, const void *, inst->n_tensors);
	void **out = arena_array(a, void *, n_out);

	while (n_in < inst->n_tensors && inst->tensor[n_in].operand >= 0) {
		type[n_in] = inst->tensor[n_in].type;
		in[n_in] = j->tensor[n_in];
		n_in++;
	}
	for (int32_t i = 0; i < n_out; i++) {
		type[n_in + i] = inst->tensor[inst->result[i]].type;
		out[i] = j->tensor[inst->result[i]];
	}
	inst->opaque->run(j->e, inst->opaque, type, in, type + n_in, out,
		inst->opaque_attr);
}

static void run_inst(arena *a, void *arg)
{
	const inst_job *j = arg;

	if (j->inst->opaque != NULL)
		run_opaque(a, j);
	else
		run_equations(a, j);
}

void interp_inst(env *e, const ir_inst *inst, void *const *tensor)
{
	inst_job j = {e, inst, tensor};

	arena_run(e, run_inst, &j);
}

/* ---- programs ---- */

typedef struct program_job {
	env *e;
	const ir_program *p;
	const void *const *input;
	void *const *output;
	int32_t *at; /* the call that is evaluated */
} program_job;

/* Allocates at least one byte, so that addresses differ. */
static void *new_data(arena *a, const ir_type *t)
{
	size_t n = ir_type_bytes(t);

	return arena_alloc(a, n > 0 ? n : 1, 1);
}

typedef struct call_job {
	env *e;
	const ir_call *call;
	void **value;
} call_job;

/* The temporaries of a call are in an arena that ends with the call. */
static void run_call(arena *a, void *arg)
{
	const call_job *j = arg;
	const ir_inst *inst = j->call->inst;
	void **tensor = arena_array(a, void *, inst->n_tensors);

	for (int32_t i = 0; i < inst->n_tensors; i++) {
		const in_tensor *t = &inst->tensor[i];

		if (t->operand >= 0)
			tensor[i] = j->value[j->call->arg[t->operand]];
		else if (t->result >= 0)
			tensor[i] = j->value[j->call->result[t->result]];
		else
			tensor[i] = new_data(a, &t->type);
	}
	interp_inst(j->e, inst, tensor);
}

static void run_program(arena *a, void *arg)
{
	const program_job *j = arg;
	const ir_program *p = j->p;
	void **value = arena_array(a, void *, p->value.n);

	for (int32_t i = 0; i < p->value.n; i++)
		value[i] = new_data(a, &p->value.at[i].type);
	for (int32_t i = 0; i < p->input.n; i++)
		memcpy(value[p->input.at[i]], j->input[i],
			ir_type_bytes(&p->value.at[p->input.at[i]].type));
	for (int32_t i = 0; i < p->call.n; i++) {
		call_job call = {j->e, &p->call.at[i], value};

		*j->at = i;
		arena_run(j->e, run_call, &call);
	}
	*j->at = -1;
	for (int32_t i = 0; i < p->output.n; i++)
		memcpy(j->output[i], value[p->output.at[i]],
			ir_type_bytes(&p->value.at[p->output.at[i]].type));
	for (int32_t i = 0; i < p->input.n; i++) {
		int32_t v = p->input.at[i], newest = ir_program_newest(p, v);

		if (newest != v && p->value.at[v].is_param)
			memcpy((void *)(uintptr_t)j->input[i], value[newest],
				ir_type_bytes(&p->value.at[v].type));
	}
}

void interp_run_at(env *e, const ir_program *p, const void *const *input,
	void *const *output, int32_t *at)
{
	program_job j = {e, p, input, output, at};

	*at = -1;
	arena_run(e, run_program, &j);
}

void interp_run(env *e, const ir_program *p, const void *const *input,
	void *const *output)
{
	int32_t at;

	interp_run_at(e, p, input, output, &at);
}

/* ---- loops ---- */

typedef struct loop_job {
	env *e;
	const ir_loop *l;
	const ir_type *in_type, *out_type;
	const void *const *in;
	void *const *out;
} loop_job;

/* The bytes of one row. */
static size_t row_bytes(const ir_type *t)
{
	return ir_type_bytes(t) / (size_t)t->shape[0];
}

/* Is there another round? */
static bool goes_on(const loop_job *j)
{
	int32_t k = j->l->test - 1;

	return k < 0 || dtype_load_i64(j->out_type[k].dtype, j->out[k], 0) != 0;
}

/* interp_run reads all inputs before it writes outputs: a carried value stays in
 * its result. */
static void run_loop(arena *a, void *arg)
{
	const loop_job *j = arg;
	const ir_loop *l = j->l;
	int32_t n_in = l->body->input.n, n_out = l->body->output.n;
	const void **in = arena_array(a, const void *, n_in + 1);
	void **out = arena_array(a, void *, n_out + 1);

	for (int32_t i = 0; i < l->n_carried; i++)
		memcpy(j->out[i], j->in[i], ir_type_bytes(&j->out_type[i]));
	for (int64_t r = 0; r < l->n && goes_on(j); r++) {
		for (int32_t i = 0; i < n_in; i++)
			in[i] = i < l->n_carried ? j->out[i]
				: i < l->n_carried + l->n_rows
				? (const char *)j->in[i] +
					(size_t)r * row_bytes(&j->in_type[i])
				: j->in[i];
		for (int32_t i = 0; i < n_out; i++)
			out[i] = i < l->n_carried ? j->out[i]
				: (char *)j->out[i] +
					(size_t)r * row_bytes(&j->out_type[i]);
		interp_run(j->e, l->body, in, out);
	}
}

void interp_loop(env *e, const ir_opaque *self, const ir_type *in_type,
	const void *const *in, const ir_type *out_type, void *const *out,
	const int64_t *attr)
{
	loop_job j = {e, self->loop, in_type, out_type, in, out};

	(void)attr;
	arena_run(e, run_loop, &j);
}
