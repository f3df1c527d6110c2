/*
 * gradcheck_call.c: checks a function on tensors, or a program on arrays. A program
 * is recorded in f64, unless its constants prevent that.
 */
#include "api/gradcheck.h"

#include <math.h>

static bool are_good(const tn_gradcheck_options *o)
{
	return o->n_bytes == sizeof *o && o->order >= 0 && o->order <= 2 &&
	       o->eps >= 0 && o->rtol >= 0 && o->atol >= 0 &&
	       isfinite(o->eps) && isfinite(o->rtol) && isfinite(o->atol) &&
	       o->n_elems >= -1;
}

static tn_status set_options(gradcheck *k, const tn_gradcheck_options *o)
{
	const tn_gradcheck_options none = TN_GRADCHECK_OPTIONS_INIT;

	k->o = o != NULL ? *o : none;
	if (are_good(&k->o))
		return TN_OK;
	return gradcheck_refuse(k, "gradcheck.options", "the options do not "
		"begin with TN_GRADCHECK_OPTIONS_INIT, or: order is 1 or 2, "
		"n_elems is -1 or more, eps, rtol and atol are finite and not "
		"negative");
}

static tn_status set_inputs(gradcheck *k, int32_t n)
{
	k->in = gradcheck_room(k, n, sizeof *k->in);
	k->n_in = n;
	return k->in == NULL ? TN_ENOMEM : TN_OK;
}

/* Allocates memory for the elements of an input, whose type is set. */
static tn_status make_room(gradcheck *k, gradcheck_input *in)
{
	int64_t n = shape_numel(in->type.shape, in->type.rank);

	in->data = gradcheck_room(k, n, dtype_size(in->type.dtype));
	if (in->data != NULL && dtype_is_float(in->type.dtype))
		in->x = gradcheck_room(k, n, sizeof *in->x);
	return in->data == NULL || (dtype_is_float(in->type.dtype) &&
					   in->x == NULL)
		? TN_ENOMEM
		: TN_OK;
}

static void set_values(gradcheck_input *in)
{
	int64_t n = shape_numel(in->type.shape, in->type.rank);

	for (int64_t i = 0; in->x != NULL && i < n; i++)
		in->x[i] = tn_get_f64(in->type.dtype, in->data, i);
}

static tn_status end(gradcheck *k, tn_status s, tn_gradcheck_result *result)
{
	if (result != NULL)
		*result = k->r;
	arena_free(k->a);
	return s;
}

/* ---- functions ---- */

static tn_status read_tensor(gradcheck *k, int32_t i, tn_tensor *x)
{
	gradcheck_input *in = &k->in[i];
	tn_status s;

	if (!tn_is_valid(x))
		return gradcheck_refuse(k, "tensor.handle",
			"input %d is not a valid tensor", (int)i);
	in->name = tn_tensor_name(x);
	in->skip = k->o.skip != NULL && k->o.skip[i];
	in->type.dtype = tn_tensor_dtype(x);
	in->type.rank = tn_tensor_rank(x);
	if (in->type.rank > 0)
		memcpy(in->type.shape, tn_tensor_shape(x),
			(size_t)in->type.rank * sizeof in->type.shape[0]);
	if (make_room(k, in) < 0)
		return TN_ENOMEM;
	s = tn_read(x, in->data, (size_t)tn_tensor_n_elems(x) *
			dtype_size(in->type.dtype));
	if (s < 0)
		return gradcheck_rethrow(k);
	set_values(in);
	return TN_OK;
}

tn_status tn_gradcheck(tn_context *c, tn_body *body, void *user, int32_t n_in,
	tn_tensor *const *in, int32_t n_out, const tn_gradcheck_options *o,
	tn_gradcheck_result *result)
{
	gradcheck k = {.c = c, .body = body, .user = user, .n_out = n_out};
	tn_status s;

	if (c == NULL)
		return api_null("the context");
	if (tn_context_status(c) < 0) /* later calls would fail for this reason */
		return tn_context_status(c);
	if (body == NULL || (n_in > 0 && in == NULL))
		return gradcheck_refuse(&k, "api.null", "%s is NULL",
			body == NULL ? "the function" : "the list of inputs");
	if (n_in < 0 || n_out < 0 || n_in > TN_MAX_FUNCTION_ARGS ||
		n_out > TN_MAX_FUNCTION_ARGS)
		return gradcheck_refuse(&k, "gradcheck.count",
			"%d inputs and %d outputs: 0 to %d are possible",
			(int)n_in, (int)n_out, TN_MAX_FUNCTION_ARGS);
	s = set_options(&k, o);
	if (s >= 0)
		s = set_inputs(&k, n_in);
	for (int32_t i = 0; s >= 0 && i < n_in; i++)
		s = read_tensor(&k, i, in[i]);
	if (s >= 0)
		s = gradcheck_run(&k);
	return end(&k, s, result);
}

/* ---- programs ---- */

static tn_status apply(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	tn_program *p = user;
	int32_t n = p->ir->input.n;
	bool wide = false;

	(void)c;
	for (int32_t i = 0; i < n; i++)
		wide |= tn_tensor_dtype(in[i]) != p->in[i].dtype;
	return wide ? api_apply_wide(p, n, in, p->ir->output.n, out)
		    : tn_apply(p, n, in, p->ir->output.n, out);
}

/* Takes an array of the caller; arrays bound to the program are constants. */
static tn_status take_array(gradcheck *k, const tn_program *p, int32_t i,
	const void *const *inputs)
{
	const void *data = i < p->n_free ? inputs != NULL ? inputs[i] : NULL
					 : p->bound[i];
	gradcheck_input *in = &k->in[i];
	const tn_value *v = &p->in[i];

	if (data == NULL && v->n_elems > 0)
		return gradcheck_refuse(k, "api.null",
			"the array of input %s is NULL", v->name);
	in->name = v->name;
	in->type = p->ir->value.at[p->ir->input.at[i]].type;
	in->skip = i >= p->n_free || (k->o.skip != NULL && k->o.skip[i]);
	if (make_room(k, in) < 0)
		return TN_ENOMEM;
	if (v->n_bytes > 0)
		memcpy(in->data, data, v->n_bytes);
	set_values(in);
	return TN_OK;
}

static void want_shapes(void *arg)
{
	api_want_shapes(arg);
}

tn_status tn_program_gradcheck(tn_program *p, const void *const *inputs,
	const tn_gradcheck_options *o, tn_gradcheck_result *result)
{
	if (p == NULL)
		return api_null("the program");

	gradcheck k = {.c = p->c, .body = apply, .user = p};
	int32_t n_in, n_out;
	tn_status s;

	if (tn_context_status(p->c) < 0)
		return tn_context_status(p->c);
	s = api_call(p->c, want_shapes, p);
	if (s < 0)
		return s;
	n_in = p->ir->input.n;
	n_out = p->ir->output.n;
	if (n_in > TN_MAX_FUNCTION_ARGS || n_out > TN_MAX_FUNCTION_ARGS)
		return gradcheck_refuse(&k, "gradcheck.count",
			"%d inputs and %d outputs, parameters included: 0 to "
			"%d are possible", (int)n_in, (int)n_out,
			TN_MAX_FUNCTION_ARGS);
	k.n_out = n_out;
	s = set_options(&k, o);
	if (s >= 0)
		s = set_inputs(&k, n_in);
	for (int32_t i = 0; s >= 0 && i < n_in; i++)
		s = take_array(&k, p, i, inputs);
	if (s >= 0)
		s = gradcheck_run(&k);
	return end(&k, s, result);
}
