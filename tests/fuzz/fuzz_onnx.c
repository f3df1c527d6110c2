/*
 * fuzz_onnx.c: any bytes as an ONNX model. Either it is refused with a rule and
 * a sentence, or it becomes a program that the verifier accepts; and a model
 * that is small enough runs on zeros without a fault. With FUZZ_TEXT the bytes
 * are a model's text (onnx_writer.h): changes of it are no damage that the wire
 * format shows, and reach the operators.
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
	bool runs;
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
				onnx_set_dim(x, arena_printf(a, "%s[%d]",
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
	in->runs = true;
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
	m = onnx_parse(in->a, "fuzz.onnx", NULL, in->bytes, in->n);
	s = str_new(in->a);
	onnx_info(&s, m, true);
	x = onnx_import_new(in->a, m);
	set_dims(x, m, in->a);
	p = onnx_import_run(x);
	ir_program_verify(p.ir);
	if (is_small(p.ir))
		run(in, &p);
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
	if (status != TN_OK) {
		const tn_diag *d = env_diag(in.e);

		check(status != TN_EINTERNAL);
		check(d->rule[0] != '\0' && d->text[0] != '\0');
	}
	arena_free(in.a);
	env_free(in.e);
	free(copy);
	return 0;
}
