/*
 * region_back.c: gradients of regions.
 */
#include "tensor/region.h"

t_trace *t_region_tracked(tensors *t, t_trace *f)
{
	env_fail(t->e, TN_EINVAL, "region.tracked",
		(loc){.file = t->file, .line = t->line},
		"%s has no gradient: record it between tn_no_grad_enter and "
		"tn_no_grad_leave", f->name);
}
