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

#endif
