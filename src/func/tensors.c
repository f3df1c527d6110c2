/*
 * tensors.c: a set of tensors, and what compiled functions and regions do for
 * the values below them.
 */
#include "func/region.h"

static const t_functions functions = {.run_region = t_region_run,
	.region_tracked = t_region_tracked,
	.region_back = t_region_back,
	.back_of = t_back_of,
	.back_live = t_back_live};

tensors *tensors_new(arena *a, const tensor_backend *b)
{
	tensors *t = arena_make(a, tensors);

	t->a = a;
	t->e = arena_env(a);
	t->b = *b;
	t->functions = &functions;
	t->table = ir_table_new(a);
	t->entry_of = map_new(a);
	t->plan_of = map_new(a);
	t->choice_of = map_new(a);
	t->memory_limit = -1;
	t->writable = map_new(a);
	*vec_push(a, &t->scope) = NULL;
	t->invalid = (tensor){.mark = TENSOR_INVALID, .of = t};
	t->stale = (tensor){.of = t};
	t_handles_new(t);
	t_handle_room(t, &t->invalid); /* the last call that can fail */
	t_handle_begin(&t->invalid);
	return t;
}
