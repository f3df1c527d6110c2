/*
 * tensor.c: functions on tensors: calls value/ and tape/. Every call has the
 * user's file and line, runs inside env_run, and keeps the first failure in the
 * context.
 */
#include "api/tensor.h"

#include "api/api.h"

#include <math.h>
#include <stdio.h>

/* ---- calls ---- */

typedef struct call {
	tn_context *c;
	const char *file;
	int32_t line;
	void (*fn)(struct call *k);
	const ir_row *row;
	const char *name;
	int32_t number; /* number of the row; -1: by name */
	tn_tensor *const *in;
	int32_t n;
	const ir_attr *attr;
	int32_t n_attrs;
	tn_tensor **out;
	int32_t n_out;
	const ir_type *type;
	const void *data;
	void *to;
	size_t n_bytes;
	tn_tensor *const *seed, *const *with;
	bool in_place, is_parameter, keep;
} call;

static void enter(void *arg)
{
	call *k = arg;

	api_context_used(k->c);
	tensors_site(api_tensors(k->c), k->file, k->line);
	k->fn(k);
}

static tn_status go(call *k, void (*fn)(call *k))
{
	bool told = k->c != NULL;
	tn_status s;

	if (!told)
		k->c = api_context_recent(); /* there is no operand */
	if (k->c == NULL)
		return api_null("a tensor of the call, or its context,");
	k->fn = fn;
	s = api_sticky(k->c, k->file, k->line, enter, k);
	if (s < 0 && !told)
		api_say_nobodys(env_diag(k->c->e));
	return s;
}

/* The context of the operands, or NULL. */
static tn_context *context_of(tn_tensor *const *in, int32_t n)
{
	for (int32_t i = 0; i < n && in != NULL; i++)
		if (in[i] != NULL && tensor_owner(api_inner(in[i])) != NULL)
			return tensor_owner(api_inner(in[i]));
	return NULL;
}

/* Is an operand the result of a failed call? That call has the diagnosis. */
static bool follows_failure(const call *k)
{
	for (int32_t i = 0; i < k->n && k->in != NULL; i++) {
		if (k->in[i] == NULL || !tensor_is_invalid(api_inner(k->in[i])))
			continue;
		if (k->c == NULL || k->c->first.status == TN_OK)
			(void)tn_at_fail(k->file, k->line, k->c, TN_EINVAL,
				"tensor.handle", "operand %d is the result of "
				"a call that failed before tn_context_clear",
				(int)i);
		return true;
	}
	return false;
}

/* A call on these tensors, in their context. */
static call call_on(
	const char *file, int32_t line, tn_tensor *const *in, int32_t n)
{
	return (call){.c = context_of(in, n),
		.file = file,
		.line = line,
		.in = in,
		.n = n};
}

/* Calls fn, unless an operand is the result of a failed call. */
static tn_status go_on(call *k, void (*fn)(call *k))
{
	return follows_failure(k) ? TN_EINVAL : go(k, fn);
}

static _Noreturn void unknown_row(const call *k)
{
	arena *tmp = arena_child(k->c->a);
	char near[256];
	str s = str_new(tmp);

	ir_table_near(&s, tensors_table(k->c->t), k->name);
	snprintf(near, sizeof near, "%s", s.at);
	arena_free(tmp);
	env_fail(k->c->e, TN_EINVAL, "tn.unknown_op",
		(loc){k->file, k->line, 0}, "there is no operation %.60s%s",
		k->name, near);
}

/* Checks the arrays of a call and their lengths. */
static void check_lists(const call *k)
{
	api_check_lists(k->c, (loc){k->file, k->line, 0}, k->n, k->in,
		k->n_attrs, k->attr, k->n_out);
}

static void call_row(call *k, tensor **in)
{
	tensors *t = k->c->t;
	tensor *out[IR_MAX_PIECES];
	int32_t n;

	api_inner_all(k->n, k->in, in);
	if (k->number >= 0) {
		k->row = ir_table_at(tensors_table(t), k->number);
	} else {
		api_want(k->c, k->name, "the name of an operation");
		k->row = ir_table_find(tensors_table(t), k->name);
		if (k->row == NULL)
			unknown_row(k);
	}
	n = tensor_call(t, k->row, k->n, in, k->n_attrs, k->attr, out,
		k->n_out);
	if (k->in_place) {
		tensor_write(t, in[0], out[0]);
		tensor_drop(t, out[0]);
		return;
	}
	for (int32_t i = 0; i < n; i++)
		k->out[i] = api_outer(out[i]);
	k->n_out = n;
}

static void call_of_many(arena *a, void *arg)
{
	call *k = arg;

	call_row(k, arena_array(a, tensor *, k->n));
}

static void row_call(call *k)
{
	tensor *in[IR_MAX_OPERANDS];

	check_lists(k);
	if (k->n > IR_MAX_OPERANDS)
		arena_run(k->c->e, call_of_many, k);
	else
		call_row(k, in);
}

/* Sets the results of a failed call to invalid tensors, if their number is known. */
static void fail_results(const call *k)
{
	const tensor *x =
		k->n > 0 && k->in != NULL ? api_inner(k->in[0]) : NULL;
	int32_t n = 1;
	bool known = k->n_attrs >= 0;

	for (int32_t i = 0; i < k->n_attrs; i++)
		known = known && k->attr[i].n >= 0;
	if (known && k->c != NULL && k->c->t != NULL)
		n = ir_row_count_results(
			ir_table_at(tensors_table(k->c->t), k->number),
			x != NULL && tensor_is_valid(x) ? tensor_type_of(x)
							: NULL,
			k->n_attrs, k->attr);
	for (int32_t i = 0; i < n; i++)
		k->out[i] = api_invalid(k->c);
}

tn_status api_row_many(const char *file, int32_t line, tn_context *c,
	int32_t number, tn_tensor *const *in, int32_t n, const ir_attr *attr,
	int32_t n_attrs, tn_tensor **out)
{
	call k = {.c = c != NULL ? c : context_of(in, n),
		.file = file,
		.line = line,
		.number = number,
		.in = in,
		.n = n,
		.attr = attr,
		.n_attrs = n_attrs,
		.out = out,
		.n_out = IR_MAX_PIECES};
	tn_status s = go_on(&k, row_call);
	if (s < 0)
		fail_results(&k);
	return s;
}

tn_tensor *api_row(const char *file, int32_t line, tn_context *c,
	int32_t number, tn_tensor *const *in, int32_t n, const ir_attr *attr,
	int32_t n_attrs)
{
	tn_tensor *out[IR_MAX_OUT];

	(void)api_row_many(file, line, c, number, in, n, attr, n_attrs, out);
	return out[0];
}

tn_status api_row_in_place(const char *file, int32_t line, tn_context *c,
	int32_t number, tn_tensor *const *in, int32_t n, const ir_attr *attr,
	int32_t n_attrs)
{
	call k = {.c = c != NULL ? c : context_of(in, n),
		.file = file,
		.line = line,
		.number = number,
		.in = in,
		.n = n,
		.attr = attr,
		.n_attrs = n_attrs,
		.n_out = 1,
		.in_place = true};

	return go_on(&k, row_call);
}

/* ---- scopes, steps, stretches without gradients ---- */

static void scope(call *k)
{
	if (k->n_out > 0)
		tensor_scope_enter(k->c->t);
	else
		tensor_scope_leave(k->c->t);
}

static void step(call *k)
{
	tensor_step(k->c->t, k->n_out);
}

static void no_grad(call *k)
{
	tensor_no_grad(k->c->t, k->n_out);
}

/* Enters (1) or leaves (-1) a state. */
static tn_status nest(tn_context *c, void (*fn)(call *k), int32_t by)
{
	call k = {.c = c, .n_out = by};

	return go(&k, fn);
}

tn_status tn_scope_enter(tn_context *c)
{
	return nest(c, scope, 1);
}

tn_status tn_scope_leave(tn_context *c)
{
	return nest(c, scope, -1);
}

tn_status tn_step_enter(tn_context *c)
{
	return nest(c, step, 1);
}

tn_status tn_step_leave(tn_context *c)
{
	return nest(c, step, -1);
}

tn_status tn_no_grad_enter(tn_context *c)
{
	return nest(c, no_grad, 1);
}

tn_status tn_no_grad_leave(tn_context *c)
{
	return nest(c, no_grad, -1);
}

static void keep(call *k)
{
	tensor_keep(k->c->t, api_inner(k->in[0]));
}

tn_tensor *tn_keep(tn_tensor *x)
{
	call k = call_on(NULL, 0, &x, 1);

	(void)go_on(&k, keep);
	return x;
}

static void drop(call *k)
{
	tensor_drop(k->c->t, api_inner(k->in[0]));
}

void tn_drop(tn_tensor *x)
{
	call k = call_on(NULL, 0, &x, 1);

	if (x != NULL)
		(void)go_on(&k, drop);
}

/* ---- making and asking ---- */

static ir_type type_of(call *k, tn_dtype dtype, int32_t rank,
	const int64_t *shape)
{
	ir_type y = {.dtype = dtype, .rank = rank};
	loc at = {k->file, k->line, 0};

	if ((unsigned)dtype >= TN_N_DTYPES)
		env_fail(k->c->e, TN_EINVAL, "tensor.dtype", at,
			"%d is not a dtype: use one of tn_dtype, TN_F32 ..",
			(int)dtype);
	if (rank < 0 || rank > TN_MAX_RANK)
		env_fail(k->c->e, TN_EINVAL, "tensor.shape", at,
			"a tensor can have 0 to %d axes, but %d are asked for",
			TN_MAX_RANK,
			rank);
	if (rank > 0)
		api_want(k->c, shape, "the shape");
	for (int32_t i = 0; i < rank; i++) {
		y.shape[i] = shape[i];
		if (shape[i] < 0)
			env_fail(k->c->e, TN_EINVAL, "tensor.shape", at,
				"extent %lld of axis %d is negative",
				(long long)shape[i], i);
	}
	if (shape_numel(y.shape, rank) < 0)
		env_fail(k->c->e, TN_EINVAL, "tensor.shape", at,
			"the shape has more than 2^48 elements, which is the "
			"limit");
	return y;
}

static void make(call *k)
{
	ir_type y = type_of(
		k, k->type->dtype, k->type->rank, k->type->shape);

	k->out[0] = api_outer(tensor_new(
		k->c->t, &y, k->data, k->is_parameter, k->name));
}

static tn_tensor *made(call *k, tn_dtype dtype, int32_t rank,
	const int64_t *shape)
{
	ir_type y = {.dtype = dtype, .rank = rank};
	tn_tensor *out;

	if (shape == NULL && rank > 0)
		y.rank = TN_MAX_RANK + 1;
	for (int32_t i = 0; i < rank && i < TN_MAX_RANK && shape != NULL; i++)
		y.shape[i] = shape[i];
	k->type = &y;
	k->out = &out;
	return go(k, make) < 0 ? api_invalid(k->c) : out;
}

tn_tensor *tn_at_tensor_new(const char *file, int32_t line, tn_context *c,
	tn_dtype dtype, int32_t rank, const int64_t *shape, const void *data)
{
	call k = {.c = c, .file = file, .line = line, .data = data};

	return made(&k, dtype, rank, shape);
}

tn_tensor *tn_at_scalar(const char *file, int32_t line, tn_context *c,
	tn_dtype dtype, double value)
{
	int64_t data[2] = {0};
	fp_env host = fp_enter();

	if ((unsigned)dtype < TN_N_DTYPES)
		dtype_store_f64(dtype, data, 0, value);
	fp_leave(&host);
	return tn_at_tensor_new(file, line, c, dtype, 0, NULL, data);
}

tn_tensor *tn_at_parameter(const char *file, int32_t line, tn_context *c,
	const char *name, tn_dtype dtype, int32_t rank, const int64_t *shape,
	const void *data)
{
	call k = {.c = c,
		.file = file,
		.line = line,
		.data = data,
		.name = name,
		.is_parameter = true};

	return made(&k, dtype, rank, shape);
}

bool tn_is_valid(const tn_tensor *x)
{
	return x != NULL && tensor_is_valid(api_inner(x));
}

static const ir_type *seen_type(const tn_tensor *x)
{
	return tn_is_valid(x) ? tensor_type_of(api_inner(x)) : NULL;
}

tn_dtype tn_tensor_dtype(const tn_tensor *x)
{
	const ir_type *y = seen_type(x);

	return y != NULL ? y->dtype : TN_F32;
}

int32_t tn_tensor_rank(const tn_tensor *x)
{
	const ir_type *y = seen_type(x);

	return y != NULL ? y->rank : 0;
}

const int64_t *tn_tensor_shape(const tn_tensor *x)
{
	const ir_type *y = seen_type(x);

	return y != NULL ? y->shape : NULL;
}

int64_t tn_tensor_n_elems(const tn_tensor *x)
{
	const ir_type *y = seen_type(x);

	return y != NULL ? shape_numel(y->shape, y->rank) : 0;
}

tn_context *tn_tensor_context(const tn_tensor *x)
{
	return x != NULL ? tensor_owner(api_inner(x)) : NULL;
}

const char *tn_tensor_name(const tn_tensor *x)
{
	return tn_is_valid(x) ? tensor_name_of(api_inner(x)) : NULL;
}

/* ---- evaluating ---- */

static void read_elems(call *k)
{
	tensor_read(k->c->t, api_inner(k->in[0]), k->to, k->n_bytes);
}

tn_status tn_at_read(const char *file, int32_t line, tn_tensor *x, void *data,
	size_t n_bytes)
{
	call k = call_on(file, line, &x, 1);

	k.to = data;
	k.n_bytes = n_bytes;
	return go_on(&k, read_elems);
}

double tn_at_item(const char *file, int32_t line, tn_tensor *x)
{
	int64_t data[2] = {0};
	const ir_type *y = seen_type(x);

	if (y == NULL ||
		tn_at_read(file, line, x, data, dtype_size(y->dtype)) < 0)
		return (double)NAN;
	return dtype_load_f64(y->dtype, data, 0);
}

/* Room for n tensors, until the next call. */
static tensor **room(tn_context *c, int32_t n)
{
	c->room.n = 0;
	vec_reserve(c->a, &c->room, n + 1);
	return c->room.at;
}

static void eval(call *k)
{
	check_lists(k);
	tensor **x = room(k->c, k->n);

	api_inner_all(k->n, k->in, x);
	tensor_eval(k->c->t, x, k->n);
}

tn_status tn_at_eval(
	const char *file, int32_t line, tn_tensor *const *x, int32_t n)
{
	call k = call_on(file, line, x, n);

	if (n == 0)
		return TN_OK;
	return go_on(&k, eval);
}

/* ---- writes ---- */

static void copy(call *k)
{
	tensor_write(k->c->t, api_inner(k->in[0]), api_inner(k->in[1]));
}

tn_status tn_at_copy_(
	const char *file, int32_t line, tn_tensor *x, tn_tensor *v)
{
	tn_tensor *const in[] = {x, v};
	call k = call_on(file, line, in, 2);

	return go_on(&k, copy);
}

tn_status tn_at_fill_(
	const char *file, int32_t line, tn_tensor *x, double value)
{
	const ir_type *y = seen_type(x);
	tn_context *c = context_of(&x, 1);
	tn_attr a[3] = {{.name = "shape", .kind = TN_ATTR_INTS},
		{.name = "value", .kind = TN_ATTR_REAL, .f = value},
		{.name = "dtype", .kind = TN_ATTR_DTYPE}};
	tn_tensor *v = NULL;
	tn_status s;

	if (y == NULL) /* it has the diagnosis */
		return tn_at_copy_(file, line, x, x);
	a[0].ints = y->shape;
	a[0].n_ints = y->rank;
	a[2].dtype = y->dtype;
	s = tn_at_call(file, line, c, "fill", 0, NULL, 3, a, 1, &v);
	if (s < 0)
		return s;
	s = tn_at_copy_(file, line, x, v);
	tn_drop(v);
	return s;
}

tn_tensor *tn_at_detach(const char *file, int32_t line, tn_tensor *x)
{
	tn_context *c = context_of(&x, 1);
	tn_tensor *y = NULL;

	if (c != NULL && tn_no_grad_enter(c) < 0)
		return x;
	(void)tn_at_call(file, line, c, "copy", 1, &x, 0, NULL, 1, &y);
	if (c != NULL)
		(void)tn_no_grad_leave(c);
	return y;
}

static void set_data(call *k)
{
	if (k->n_bytes > 0)
		api_want(k->c, k->data, "the array");
	k->keep = tensor_set(k->c->t, api_inner(k->in[0]), k->data, k->n_bytes);
}

/* Writes a new tensor, if the memory cannot be set directly. */
static tn_status write_data(const call *k, tn_tensor *x)
{
	tn_tensor *v = tn_at_tensor_new(k->file, k->line, k->c,
		tn_tensor_dtype(x), tn_tensor_rank(x), tn_tensor_shape(x),
		k->data);
	tn_status s = tn_no_grad_enter(k->c);

	if (s < 0)
		return s;
	s = tn_at_copy_(k->file, k->line, x, v);
	tn_no_grad_leave(k->c);
	tn_drop(v);
	return s;
}

tn_status tn_at_set_data(const char *file, int32_t line, tn_tensor *x,
	const void *data, size_t n_bytes)
{
	call k = call_on(file, line, &x, 1);
	tn_status s;

	k.data = data;
	k.n_bytes = n_bytes;
	s = go_on(&k, set_data);
	return s >= 0 && !k.keep ? write_data(&k, x) : s;
}

/* ---- gradients ---- */

static void requires_grad(call *k)
{
	tensor_requires_grad(k->c->t, api_inner(k->in[0]));
}

tn_status tn_at_requires_grad(const char *file, int32_t line, tn_tensor *x)
{
	call k = call_on(file, line, &x, 1);

	return go_on(&k, requires_grad);
}

static void backward(call *k)
{
	tensor_backward(k->c->t, api_inner(k->in[0]),
		k->in[1] != NULL ? api_inner(k->in[1]) : NULL, k->keep);
}

tn_status tn_at_backward(const char *file, int32_t line, tn_tensor *x,
	tn_tensor *seed, bool keep)
{
	tn_tensor *const in[] = {x, seed};
	call k = call_on(file, line, in, 1);

	k.n = 2; /* the seed may be NULL, or the result of a failed call */
	k.keep = keep;
	return go_on(&k, backward);
}

static void gradients(call *k)
{
	check_lists(k);
	if (k->n_out > 0) {
		api_want(k->c, k->with, "the list of inputs");
		api_want(k->c, k->out, "the list of gradients");
	}
	tensor **out = room(k->c, 2 * (k->n + k->n_out));
	tensor **seed = out + k->n, **in = seed + k->n;
	tensor **grad = in + k->n_out;

	api_inner_all(k->n, k->in, out);
	if (k->seed != NULL)
		api_inner_all(k->n, k->seed, seed);
	api_inner_all(k->n_out, k->with, in);
	tensor_gradients(k->c->t, k->n, out, k->seed != NULL ? seed : NULL,
		k->n_out, in, grad);
	api_outer_all(k->n_out, grad, k->out);
}

tn_status tn_at_grad(const char *file, int32_t line, int32_t n_out,
	tn_tensor *const *out, tn_tensor *const *seeds, int32_t n_in,
	tn_tensor *const *in, tn_tensor **grads)
{
	call k = call_on(file, line, out, n_out);
	tn_status s;

	k.seed = seeds;
	k.with = in;
	k.n_out = n_in;
	k.out = grads;
	s = go_on(&k, gradients);
	for (int32_t i = 0; s < 0 && i < n_in; i++)
		grads[i] = api_invalid(k.c);
	return s;
}

static void gradient(call *k)
{
	tensor *g = tensor_grad(k->c->t, api_inner(k->in[0]));

	k->out[0] = g != NULL ? api_outer(g) : NULL;
}

tn_tensor *tn_gradient(tn_tensor *x)
{
	tn_tensor *g = NULL;
	call k = call_on(NULL, 0, &x, 1);

	k.out = &g;
	return go_on(&k, gradient) >= 0 ? g : NULL;
}

static void zero_grad(call *k)
{
	tensor_zero_grad(k->c->t, api_inner(k->in[0]));
}

void tn_zero_grad(tn_tensor *x)
{
	call k = call_on(NULL, 0, &x, 1);

	(void)go_on(&k, zero_grad);
}

/* ---- by name ---- */

static void define(call *k)
{
	api_want(k->c, k->name, "the text of the row");
	ir_table_define(tensors_table(k->c->t), k->name, strlen(k->name),
		(loc){k->file, k->line, 0});
}

tn_status tn_at_op_define(
	const char *file, int32_t line, tn_context *c, const char *row)
{
	call k = {.c = c, .file = file, .line = line};

	k.name = row;
	return go(&k, define);
}

tn_status tn_at_call(const char *file, int32_t line, tn_context *c,
	const char *op, int32_t n_in, tn_tensor *const *in, int32_t n_attrs,
	const tn_attr *attrs, int32_t n_out, tn_tensor **out)
{
	static const attr_kind kind[] = {ATTR_INT, ATTR_REAL, ATTR_INTS,
		ATTR_DTYPE, ATTR_STRING};
	ir_attr attr[API_MAX_ATTRS];
	call k = {.c = c,
		.file = file,
		.line = line,
		.name = op,
		.number = -1,
		.in = in,
		.n = n_in,
		.attr = attrs != NULL ? attr : NULL,
		.n_attrs = n_attrs,
		.out = out,
		.n_out = n_out};
	tn_status s;

	for (int32_t i = 0; i < n_attrs && i < API_MAX_ATTRS && attrs != NULL; i++)
		attr[i] = (ir_attr){.name = attrs[i].name,
			.kind = (unsigned)attrs[i].kind <= TN_ATTR_STRING
				? kind[attrs[i].kind]
				: API_UNKNOWN_KIND,
			.i = attrs[i].i,
			.f = attrs[i].f,
			.ints = attrs[i].ints,
			.n = attrs[i].n_ints,
			.dtype = attrs[i].dtype,
			.string = attrs[i].string};
	s = go_on(&k, row_call);
	for (int32_t i = 0; s < 0 && i < n_out; i++)
		out[i] = api_invalid(c);
	return s;
}
