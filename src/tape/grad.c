/*
 * grad.c: which tensors have a gradient, and what was collected of it.
 */
#include "tape/walk.h"
#include "value/capture.h"

void tensor_requires_grad(tensors *t, tensor *x)
{
	t_check(t, x);
	if (!dtype_is_float(x->type.dtype))
		env_fail(t->e, TN_EINVAL, "grad.dtype",
			t_here(t),
			"%s has no gradient: only f32, f64, f16 and bf16 "
			"tensors have one",
			dtype_name(x->type.dtype));
	if (!t_cur(t, x->storage)->tracked)
		t_leaf(t, x->storage, x->storage->cur);
}

tensor *tensor_grad(tensors *t, tensor *x)
{
	t_storage *of = t_check(t, x)->storage;
	t_slot *s = of->slot;
	t_value *g;

	(void)t_cur(t, of); /* binds it in the current recording */
	if (s == NULL || s->grad == NULL)
		return NULL;
	g = s->grad;
	t_value_keep(g);
	return t_handle_new(t, t_storage_new(t, g), x->view, &x->type);
}

void tensor_zero_grad(tensors *t, tensor *x)
{
	t_storage *of = t_check(t, x)->storage;
	t_slot *s = of->slot;

	(void)t_cur(t, of);
	if (s == NULL || s->grad == NULL)
		return;
	t_value_drop(t, s->grad);
	s->grad = NULL;
}

void tensor_no_grad(tensors *t, int32_t step)
{
	if (t->no_grad + step < (t->capture != NULL ? t->capture->no_grad : 0))
		env_fail(t->e, TN_EINVAL, "grad.scope",
			t_here(t),
			"tn_no_grad_leave without a tn_no_grad_enter");
	t->no_grad += step;
}
