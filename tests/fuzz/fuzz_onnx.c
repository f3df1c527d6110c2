/*
 * fuzz_onnx.c: any bytes as an ONNX model. Either it is refused with a rule and
 * a sentence, or it becomes a program that the verifier accepts; and a model
 * that is small enough runs on zeros without a fault, in stages where values of
 * its inputs decide shapes. With FUZZ_TEXT the bytes are a model's text
 * (onnx_writer.h): changes of it are no damage that the wire format shows, and
 * reach the operators.
 */
#include "fuzz.h"

#include "interp/interp.h"
#include "onnx/onnx.h"

#include <stdlib.h>

#ifdef FUZZ_TEXT
#include "../unit/onnx_writer.h"
#endif

enum { MAX_ELEMS = 1 << 14, MAX_CALLS = 200 };

struct input {
	env *e;
	arena *a;
	const uint8_t *bytes;
	size_t n;
	onnx_model *m;
};

static void check(bool holds)
{
	if (!holds)
		__builtin_trap();
}

/* Every named dimension has 2 elements, and so has every axis without a name. */
static void set_dims(onnx_import *x, const onnx_model *m, arena *a)
{
	for (int32_t i = 0; i < onnx_n_inputs(m); i++) {
		const onnx_port *p = onnx_input(m, i);

		for (int32_t k = 0; k < p->type.rank; k++)
			if (p->type.dim[k] < 0)
				onnx_bind_dim(x, arena_printf(a, "%s[%d]",
							p->name, (int)k), 2);
	}
}

static size_t bytes_of(const ir_type *t)
{
	return (size_t)shape_numel(t->shape, t->rank) * dtype_size(t->dtype);
}

static bool is_small(const ir_program *p)
{
	if (p->call.n > MAX_CALLS)
		return false;
	for (int32_t i = 0; i < p->value.n; i++)
		if (shape_numel(p->value.at[i].type.shape,
			    p->value.at[i].type.rank) > MAX_ELEMS)
			return false;
	/* what a call computes is not more than its tensors squared */
	for (int32_t i = 0; i < p->call.n; i++) {
		const ir_inst *inst = p->call.at[i].inst;

		for (int32_t k = 0; k < inst->n_eqns; k++) {
			int64_t n = 1;

			for (int32_t l = 0; l < inst->eqn[k].n_letters; l++)
				if (!mul_ok(n, inst->letter[inst->eqn[k]
							.letters[l]].extent,
					    &n) || n > 1 << 18)
					return false;
		}
	}
	return true;
}

static void run(struct input *in, const onnx_program *p)
{
	const void **from = arena_array(in->a, const void *, p->ir->input.n + 1);
	void **to = arena_array(in->a, void *, p->ir->output.n + 1);

	for (int32_t i = 0; i < p->ir->input.n; i++)
		from[i] = i < p->n_free
			? arena_alloc(in->a, bytes_of(&p->ir->value
				.at[p->ir->input.at[i]].type) + 1, 1)
			: p->bound[i];
	for (int32_t i = 0; i < p->ir->output.n; i++)
		to[i] = arena_alloc(in->a, bytes_of(&p->ir->value
			.at[p->ir->output.at[i]].type) + 1, 1);
	interp_run(in->e, p->ir, from, to);
}

static void builds(void *arg)
{
	struct input *in = arg;
	onnx_model *m;
	onnx_import *x;
	onnx_program p;
	str s;

	in->a = arena_new(in->e);
#ifdef FUZZ_TEXT
	{
		pb model = onnx_write(in->a, arena_strndup(in->a,
					(const char *)in->bytes, in->n));

		in->bytes = (const uint8_t *)model.s.at;
		in->n = model.s.n;
	}
#endif
	m = in->m = onnx_parse(in->a, "fuzz.onnx", NULL, in->bytes, in->n);
	s = str_new(in->a);
	onnx_info(&s, m, onnx_import_new(in->a, m), true);
	x = onnx_import_new(in->a, m);
	set_dims(x, m, in->a);
	p = onnx_import_run(x);
	ir_program_verify(p.ir);
	if (is_small(p.ir))
		run(in, &p);
}

/* ---- in stages ---- */

static void *make(void *arg, arena *a, const onnx_program *p)
{
	onnx_program *own = arena_make(a, onnx_program);

	if (!is_small(p->ir))
		env_fail(arg, TN_ENOMEM, "fuzz.size", (loc){0}, "too large");
	ir_program_verify(p->ir);
	*own = *p;
	return own;
}

static void run_made(
	void *arg, void *made, const void *const *in, void *const *out)
{
	const onnx_program *p = made;

	interp_run(arg, p->ir, in, out);
}

/* 0, 1, 2, 0, 1, 2 ... of the shape that the model says, 2 where it does not */
static bool make_array(struct input *in, const onnx_port *p, onnx_array *out)
{
	ir_type *t = &out->type;
	void *data;

	if (p->type.kind != ONNX_TENSOR || !p->type.has_shape ||
		!onnx_port_dtype(p, &t->dtype))
		return false;
	t->rank = p->type.rank;
	for (int32_t k = 0; k < t->rank; k++)
		t->shape[k] = p->type.dim[k] < 0 ? 2 : p->type.dim[k];
	if (shape_numel(t->shape, t->rank) < 0 ||
		shape_numel(t->shape, t->rank) > MAX_ELEMS)
		return false;
	data = arena_alloc(in->a, bytes_of(t) + 1, 1);
	for (int64_t i = 0; i < shape_numel(t->shape, t->rank); i++)
		dtype_store_f64(t->dtype, data, i, (double)(i % 3));
	out->data = data;
	return true;
}

static void stages(void *arg)
{
	struct input *in = arg;
	int32_t n = onnx_n_inputs(in->m);
	onnx_array *x = arena_array(in->a, onnx_array, n + 1);
	onnx_array *y = arena_array(in->a, onnx_array, onnx_n_outputs(in->m) + 1);
	onnx_staged *s = onnx_staged_new(
		in->a, in->m, 0,
		(onnx_runner){make, run_made, in->e, 1 << 20});

	for (int32_t i = 0; i < n; i++)
		if (!make_array(in, onnx_input(in->m, i), &x[i]))
			return;
	for (int round = 0; round < 2; round++)
		onnx_staged_run(s, in->a, x, y);
}

static void check_diag(tn_status status, const env *e)
{
	if (status == TN_OK)
		return;
	check(status != TN_EINTERNAL);
	check(env_diag(e)->rule[0] != '\0' && env_diag(e)->text[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	/* in a block of its own size, so that ASan sees an overrun */
	uint8_t *copy = malloc(n > 0 ? n : 1);
	struct input in = {.e = env_new(), .bytes = copy, .n = n};
	tn_status status;

	check(in.e != NULL && copy != NULL);
	if (n > 0)
		memcpy(copy, bytes, n);
	status = env_run(in.e, builds, &in);
	check_diag(status, in.e);
	if (status != TN_OK && in.m != NULL &&
		strcmp(env_diag(in.e)->rule, "onnx.value") == 0)
		check_diag(env_run(in.e, stages, &in), in.e);
	arena_free(in.a);
	env_free(in.e);
	free(copy);
	return 0;
}
