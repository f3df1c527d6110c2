/*
 * stage.c: runs programs on arrays of any shape that they accept.
 *
 *   tn_onnx_load, tn_onnx_stage -> tn_program_run_arrays, run_arrays ...
 *
 * A model whose shapes follow from data becomes a program only when there is data:
 * onnx/ makes one for each combination of shapes, and this compiles and runs it. A
 * program of fixed shapes is run in the same way.
 */
#include "api/onnx.h"

#include "file/file.h"

/* An input of the caller's, or an output, that has strings; NULL: none has. */
static const char *strings_of(const onnx_program *o)
{
	for (int32_t i = 0; i < o->n_free; i++)
		if (onnx_is_string(o->input[i].elem))
			return o->input[i].name;
	for (int32_t i = 0; o->output != NULL && i < o->ir->output.n; i++)
		if (onnx_is_string(o->output[i].elem))
			return o->output[i].name;
	return NULL;
}

tn_program *api_onnx_program(tn_context *c, arena *a, const onnx_program *o)
{
	tn_program *p = arena_make(a, tn_program);
	int32_t n = o->ir->input.n;

	if (c->o.verify)
		ir_program_verify(o->ir);
	p->c = c;
	p->a = a;
	p->ir = o->ir;
	p->n_free = o->n_free;
	p->n_out = o->ir->output.n;
	p->bound = arena_array(a, const void *, n + 1);
	memcpy(p->bound, o->bound, (size_t)n * sizeof *p->bound);
	p->pinned = o->pinned;
	p->all = arena_array(a, const void *, n + 1);
	p->version = arena_array(a, int64_t, n + 1);
	for (int32_t i = p->n_free; i < n; i++) { /* constants of the model */
		p->version[i] = 1;
		p->ir->value.at[p->ir->input.at[i]].steady = true;
	}
	p->in = api_values(a, o->ir, o->ir->input.at, n);
	p->out = api_values(a, o->ir, o->ir->output.at, o->ir->output.n);
	for (int32_t i = 0; i < n; i++)
		p->in[i].name = o->input[i].name;
	for (int32_t i = 0; o->output != NULL && i < p->n_out; i++)
		p->out[i].name = o->output[i].name;
	p->strings = strings_of(o);
	if (p->strings != NULL) {
		bool *in = arena_array(a, bool, n + 1);
		bool *out = arena_array(a, bool, p->n_out + 1);

		for (int32_t i = 0; i < n; i++)
			in[i] = onnx_is_string(o->input[i].elem);
		for (int32_t i = 0; o->output != NULL && i < p->n_out; i++)
			out[i] = onnx_is_string(o->output[i].elem);
		p->in_strings = in;
		p->out_strings = out;
	}
	return p;
}

/* ---- shapes that follow from data ---- */

static void *make_stage(void *c, arena *a, const onnx_program *o)
{
	tn_program *p = api_onnx_program(c, a, o);

	p->lean = true;
	return p;
}

/* All inputs are given, with bound ones; none is pinned. */
static void run_stage(void *arg, void *made, const void *const *in,
	void *const *out)
{
	(void)arg;
	api_run(made, in, out);
}

/* Describes a port of the model; unknown extents are -1. */
static tn_value value_of(const tn_onnx_port *p)
{
	tn_value v = {.name = p->name, .dtype = p->dtype, .rank = p->rank,
		.n_elems = -1};

	memcpy(v.shape, p->shape, sizeof v.shape);
	return v;
}

void api_onnx_stage(void *arg)
{
	struct api_onnx_build *k = arg;
	tn_onnx *m = k->m;
	onnx_runner runner = {
		make_stage, run_stage, m->c, m->c->program_bytes};
	int32_t n_in = onnx_n_inputs(m->m), n_out = onnx_n_outputs(m->m);
	tn_program *p;

	if (k->a == NULL)
		k->a = arena_child(m->a);
	p = arena_make(k->a, tn_program);
	p->c = m->c;
	p->a = k->a;
	p->ir = ir_program_new(k->a, ir_table_new(k->a));
	p->staged = onnx_staged_new(k->a, m->m, m->fold_from, runner);
	p->n_free = n_in;
	p->n_out = n_out;
	p->in = arena_array(k->a, tn_value, n_in + 1);
	p->out = arena_array(k->a, tn_value, n_out + 1);
	for (int32_t i = 0; i < n_in; i++)
		p->in[i] = value_of(&m->in[i]);
	for (int32_t i = 0; i < n_out; i++)
		p->out[i] = value_of(&m->out[i]);
	k->p = p;
}

tn_status tn_onnx_stage(tn_program **out, tn_onnx *m)
{
	if (m == NULL) {
		*out = NULL;
		return api_null("the model");
	}

	struct api_onnx_build k = {.m = m};
	tn_status s;

	*out = NULL;
	s = api_call(m->c, api_onnx_stage, &k);
	if (s < 0)
		arena_free(k.a);
	else
		*out = k.p;
	return s;
}

bool tn_program_is_staged(const tn_program *p)
{
	if (p == NULL)
		return false;
	return p->staged != NULL;
}

struct arrays_call {
	tn_program *p;
	const tn_array *in;
	tn_array **out;
};

static onnx_array input_of(const tn_program *p, int32_t i, const tn_array *x)
{
	const tn_value *v = &p->in[i];
	onnx_array out = {.data = x->data};
	bool fits = x->rank == v->rank && x->dtype == v->dtype;

	if (tn_dtype_name(x->dtype) == NULL || x->rank < 0 ||
		x->rank > TN_MAX_RANK || shape_numel(x->shape, x->rank) < 0)
		env_fail(p->c->e, TN_EINVAL, "program.input", (loc){0},
			"the value for input %.200s is not an array", v->name);
	for (int32_t k = 0; fits && k < x->rank; k++)
		fits = v->shape[k] == x->shape[k] ||
		       (p->staged != NULL && v->shape[k] < 0);
	if (!fits && (p->staged == NULL || v->rank >= 0))
		env_fail(p->c->e, TN_EINVAL, "program.input", (loc){0},
			"the value for input %.200s has another type or shape "
			"than the program declares", v->name);
	if (shape_numel(x->shape, x->rank) > 0)
		api_want(p->c, x->data, v->name);
	out.type.dtype = x->dtype;
	out.type.rank = x->rank;
	memcpy(out.type.shape, x->shape, sizeof x->shape);
	return out;
}

/* Runs a program of fixed shapes; its outputs are those of a staged one. */
static void run_fixed(const struct arrays_call *k, arena *a,
	const onnx_array *in, onnx_array *y)
{
	const tn_program *p = k->p;
	const void **from = arena_array(a, const void *, p->n_free + 1);
	void **to = arena_array(a, void *, p->n_out + 1);

	for (int32_t i = 0; i < p->n_free; i++)
		from[i] = in[i].data;
	for (int32_t i = 0; i < p->n_out; i++) {
		y[i].type = p->ir->value.at[p->ir->output.at[i]].type;
		y[i].data = to[i] = arena_alloc(a, p->out[i].n_bytes + 1, 1);
	}
	api_run(k->p, from, to);
}

static void run_arrays(arena *a, void *arg)
{
	struct arrays_call *k = arg;
	tn_program *p = k->p;
	onnx_array *in = arena_array(a, onnx_array, p->n_free + 1);
	onnx_array *y = arena_array(a, onnx_array, p->n_out + 1);

	for (int32_t i = 0; i < p->n_free; i++)
		in[i] = input_of(p, i, &k->in[i]);
	if (p->staged != NULL)
		onnx_staged_run(p->staged, a, in, y);
	else
		run_fixed(k, a, in, y);
	for (int32_t i = 0; i < p->n_out; i++) {
		file_array f = {.dtype = y[i].type.dtype,
			.rank = y[i].type.rank,
			.data = (void *)(uintptr_t)y[i].data};

		memcpy(f.shape, y[i].type.shape, sizeof f.shape);
		k->out[i] = api_array_new(p->c, &f);
	}
}

static void call_arrays(void *arg)
{
	struct arrays_call *k = arg;

	if (k->p->n_free > 0)
		api_want(k->p->c, k->in, "in");
	arena_run(k->p->c->e, run_arrays, k);
}

tn_status tn_program_run_arrays(
	tn_program *p, const tn_array *in, tn_array **out)
{
	if (p == NULL)
		return api_null("the program");

	struct arrays_call k = {.p = p, .in = in, .out = out};
	tn_status s;

	for (int32_t i = 0; i < p->n_out; i++)
		out[i] = NULL;
	s = api_call(p->c, call_arrays, &k);
	for (int32_t i = 0; s < 0 && i < p->n_out; i++) {
		tn_array_free(out[i]);
		out[i] = NULL;
	}
	return s;
}

