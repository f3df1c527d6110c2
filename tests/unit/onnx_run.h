/*
 * onnx_run.h: runs models of onnx_writer.h by the interpreter.
 */
#ifndef ONNX_RUN_H
#define ONNX_RUN_H

#include "onnx_model.h"

#include "interp/interp.h"

/* Values of inputs are texts as initialisers are: "float [2] 1 2". */
enum { MAX_IN = 8 };
typedef struct run_case {
	const char *model;
	const char *in[MAX_IN];
	const char *out; /* of output 0 */
} run_case;

static inline onnx_array parse_value(arena *a, const char *text)
{
	mk m = {a, arena_printf(a, "v %s", text), 0};
	pb t = mk_tensor(&m, false);
	onnx_type type = {.kind = ONNX_TENSOR};
	int32_t n;

	return onnx_parse_value(a, "value", t.s.at, t.s.n, &type, &n)[0];
}

static inline onnx_array run_import(arena *a, onnx_import *x, const onnx_array *in)
{
	onnx_program p = onnx_import_run(x);
	onnx_array out = {0};
	const void *data[64];
	void *to[8];

	ir_program_verify(p.ir);
	assert_true(p.ir->input.n <= 64 && p.ir->output.n <= 8);
	for (int32_t i = 0; i < p.ir->input.n; i++)
		data[i] = i < p.n_free ? in[i].data : p.bound[i];
	for (int32_t i = 0; i < p.ir->output.n; i++) {
		const ir_type *t = &p.ir->value.at[p.ir->output.at[i]].type;

		to[i] = arena_alloc(a,
			(size_t)shape_numel(t->shape, t->rank) + 1,
			dtype_size(t->dtype));
	}
	interp_run(arena_env(a), p.ir, data, to);
	out.type = p.ir->value.at[p.ir->output.at[0]].type;
	out.elem = p.output[0].elem;
	out.data = to[0];
	return out;
}

static inline onnx_array run_model(arena *a, const run_case *c, bool give)
{
	pb bytes = onnx_write(a, c->model);
	onnx_model *m = parse_model(a, &bytes, NULL);
	onnx_import *x = onnx_import_new(a, m);
	onnx_array in[MAX_IN];

	for (int32_t i = 0; i < MAX_IN && c->in[i] != NULL; i++) {
		in[i] = parse_value(a, c->in[i]);
		if (give)
			onnx_give(x, i, 1, &in[i]);
	}
	return run_import(a, x, in);
}

static inline onnx_array run_given(arena *a, const char *model, const onnx_array *in)
{
	pb bytes = onnx_write(a, model);
	onnx_model *m = parse_model(a, &bytes, NULL);

	return run_import(a, onnx_import_new(a, m), in);
}

#endif
