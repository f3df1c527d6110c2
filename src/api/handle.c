/*
 * handle.c: converts handles of callers to tensors of value/, and back.
 */
#include "api/api.h"

tensor *api_inner(const tn_tensor *x)
{
	return tensor_of_handle(x);
}

tn_tensor *api_outer(const tensor *x)
{
	return tensor_handle(x);
}

void api_inner_all(int32_t n, tn_tensor *const *x, tensor **out)
{
	for (int32_t i = 0; i < n; i++)
		out[i] = api_inner(x[i]);
}

void api_outer_all(int32_t n, tensor *const *x, tn_tensor **out)
{
	for (int32_t i = 0; i < n; i++)
		out[i] = api_outer(x[i]);
}

tn_tensor *api_invalid(tn_context *c)
{
	return c != NULL && c->t != NULL ? api_outer(tensor_invalid(c->t))
					 : NULL;
}

tn_status api_body(tn_context *c, tn_body *fn, void *user, int32_t n_in,
	tensor *const *in, int32_t n_out, tensor **out)
{
	tn_tensor *x[2 * TN_MAX_FUNCTION_ARGS];
	tn_tensor *y[2 * TN_MAX_FUNCTION_ARGS] = {NULL};
	tn_status s;

	api_outer_all(n_in, in, x);
	api_out(c);
	s = fn(c, user, x, y);
	api_back(c);
	api_inner_all(n_out, y, out);
	for (int32_t i = 0; i < n_out && s >= 0; i++)
		if (out[i] != NULL && tensor_is_valid(out[i]) &&
			tensor_owner(out[i]) != c)
			env_fail(c->e, TN_EINVAL, "tensor.handle", (loc){0},
				"output %d of a body belongs to another "
				"context", (int)i);
	return s;
}
