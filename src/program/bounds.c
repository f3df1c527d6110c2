/*
 * bounds.c: checks a call of a row that the user wrote.
 *
 * Consumes an instance; throws the errors that lowering it would throw, above
 * all for a read or a write that may be outside its tensor. Code that uses an
 * instance without lowering it (views, copies) can then rely on its indices.
 *
 *     f(x[i]) -> o { o[i] = x[i + 1] }    on x f32[4]
 *     [f.x] index 0 of x, i + 1, may be 1 .. 4, but its extent is 4
 *
 * Built-in rows are not checked: their text contains the checks.
 */
#include "program/local.h"

struct checked {
	ir_table *t;
	const ir_inst *p;
	loc at;
};

static void lower_alone(arena *a, void *arg)
{
	const struct checked *c = arg;
	const ir_inst *p = c->p;
	ir_program *one = ir_program_new(a, c->t);
	int32_t *in = arena_array(a, int32_t, p->n_tensors + 1), n = 0;

	for (int32_t i = 0; i < p->n_tensors; i++)
		if (p->tensor[i].operand >= 0)
			in[n++] = ir_program_input(one,
				arena_printf(a, "in%d", (int)i),
				p->tensor[i].type, c->at);
	(void)ir_program_inst(one, p, n, in, NULL, c->at);
	(void)ir_lower(a, ix_new(a), one);
}

void ir_check_bounds(ir_table *t, env *e, const ir_inst *p, loc at)
{
	struct checked c = {t, p, at};

	if (p->opaque == NULL)
		arena_run(e, lower_alone, &c);
}
