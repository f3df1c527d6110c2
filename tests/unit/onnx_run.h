/*
 * onnx_run.h: runs models of onnx_writer.h by the interpreter.
 */
#ifndef ONNX_RUN_H
#define ONNX_RUN_H

#include "onnx_model.h"

#include "interp/interp.h"

#include <math.h>

/* Values of inputs are texts as initialisers are: "float [2] 1 2". */
enum { MAX_IN = 8 };
typedef struct run_case {
	const char *model;
	const char *in[MAX_IN];
	const char *out; /* of output 0 */
} run_case;

static inline onnx_array parse_value(arena *a, onnx_model *of, const char *text)
{
	mk m = {a, arena_printf(a, "v %s", text), 0};
	pb t = mk_tensor(&m, "init");
	onnx_type type = {.kind = ONNX_TENSOR};
	int32_t n;

	return onnx_parse_value(a, of, "value", t.s.at, t.s.n, &type, &n)[0];
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

/* *of: the model, which has the strings of values. */
static inline onnx_array run_model_of(
	arena *a, const run_case *c, bool give, onnx_model **of)
{
	pb bytes = onnx_write(a, c->model);
	onnx_model *m = *of = parse_model(a, &bytes, NULL);
	onnx_import *x = onnx_import_new(a, m);
	onnx_array in[MAX_IN];

	for (int32_t i = 0; i < MAX_IN && c->in[i] != NULL; i++) {
		in[i] = parse_value(a, m, c->in[i]);
		if (give)
			onnx_give(x, i, 1, &in[i]);
	}
	return run_import(a, x, in);
}

static inline onnx_array run_model(arena *a, const run_case *c, bool give)
{
	onnx_model *of;

	return run_model_of(a, c, give, &of);
}

static inline onnx_array run_given(arena *a, const char *model, const onnx_array *in)
{
	pb bytes = onnx_write(a, model);
	onnx_model *m = parse_model(a, &bytes, NULL);

	return run_import(a, onnx_import_new(a, m), in);
}

static inline void near(const onnx_array *got, int64_t i, double want)
{
	double v = dtype_load_f64(got->type.dtype, got->data, i);

	if (v != want && !(fabs(v - want) < 2e-6 * (1 + fabs(want)))) {
		print_error("element %lld is %g, not %g\n", (long long)i, v,
			want);
		fail();
	}
}

static inline void run_case_near(arena *a, void *arg)
{
	const run_case *c = arg;
	onnx_model *of;
	onnx_array got = run_model_of(a, c, true, &of), want;

	if (c->out[0] == '!')
		return;
	want = parse_value(a, of, c->out);
	assert_int_equal(got.elem, want.elem);
	assert_int_equal(got.type.rank, want.type.rank);
	for (int32_t i = 0; i < want.type.rank; i++)
		assert_int_equal(got.type.shape[i], want.type.shape[i]);
	for (int64_t i = 0; i < shape_numel(want.type.shape, want.type.rank);
		i++)
		near(&got, i, dtype_load_f64(want.type.dtype, want.data, i));
}

/* Runs each model and compares output 0; an out of "!RULE" is an error. */
static inline void check_runs(const run_case *at, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		run_case c = at[i];
		tn_diag d = {0};
		tn_status s = unit_run(run_case_near, &c, 0, &d);

		if (c.out[0] == '!') {
			if (s == TN_OK || strcmp(d.rule, c.out + 1) != 0)
				print_error("%s\n%s: %s\n", c.model, d.rule,
					d.text);
			assert_int_equal(s, TN_EINVAL);
			assert_string_equal(d.rule, c.out + 1);
		} else if (s != TN_OK) {
			print_error("%s\n%s: %s\n", c.model, d.rule, d.text);
			fail();
		}
	}
}

#endif
