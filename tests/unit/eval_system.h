/*
 * eval_system.h: the slow meaning of a system (system/eval.c), for tests: every
 * instance of every equation, in order, on plain arrays; one point at a time.
 *
 *     void **data = eval_system(a, s, input);
 *     data[s->output.at[0]]             the first output, dense
 *
 * A read outside its tensor, or a data index outside the range that its atom
 * states, throws.
 */
#ifndef EVAL_SYSTEM_H
#define EVAL_SYSTEM_H

#include "unit.h"

#include "interp/interp.h"
#include "layout/layout.h"
#include "system/eval.h"

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
	eval_equations(a, s, data);
	return data;
}

/* The system of a program's text. */
static inline ir_system *eval_lowered(arena *a, const char *text, ir_program **p)
{
	*p = ir_program_parse(a, text, strlen(text), "t.tn", interp_loop);
	return ir_prune(ir_lower(a, ix_new(a), *p));
}

/* Data of all inputs, which are f32, between -size and size. */
static inline const void **eval_random(arena *a, const ir_program *p, float size)
{
	const void **input = arena_array(a, const void *, p->input.n + 1);
	uint32_t seed = 5;

	for (int32_t i = 0; i < p->input.n; i++) {
		const ir_type *t = &p->value.at[p->input.at[i]].type;
		int64_t n = shape_numel(t->shape, t->rank);
		float *x = arena_array(a, float, n + 1);

		for (int64_t k = 0; k < n; k++) {
			seed = seed * 1664525u + 1013904223u;
			x[k] = size * ((float)(int32_t)(seed >> 8) / 8388608.0f - 1);
		}
		input[i] = x;
	}
	return input;
}

#endif
