/*
 * region.c: conditions, loops and C functions of the host: calls func/.
 */
#include "api/api.h"

#include <stdlib.h>

/* A body of the user, which func/ calls. */
typedef struct side {
	tn_context *c;
	tn_body *fn;
	void *user;
	int32_t n_in, n_out;
} side;

static void record(void *arg, tensor *const *in, tensor **out)
{
	const side *b = arg;
	tn_status s = api_body(
		b->c, b->fn, b->user, b->n_in, in, b->n_out, out);

	if (s >= 0)
		s = tn_context_status(b->c);
	if (s >= 0)
		return;
	if (tn_context_status(b->c) < 0) { /* with its own diagnosis */
		tn_diag d = b->c->first;

		env_fail(b->c->e, d.status, d.rule, (loc){d.file, d.line, 0},
			"%s", d.text);
	}
	env_fail(b->c->e, s, "compile.body", (loc){0},
		"a body of a region returned %d", (int)s);
}

typedef struct job {
	tn_context *c;
	side then, otherwise; /* or body, test */
	tn_tensor *test;
	tensor_loop loop;
	int32_t n_in, n_out;
	tn_tensor *const *in;
	tn_tensor **out;
	tn_host *fn, *grad;
	void *user;
	const tn_array *type;
} job;

static void check(const job *j)
{
	if (j->n_in > 0)
		api_want(j->c, j->in, "the list of arguments");
	if (j->n_out > 0)
		api_want(j->c, j->out, "the list of outputs");
	for (int32_t i = 0; i < j->n_in; i++)
		if (j->in[i] == NULL ||
			!tensor_is_valid(api_inner(j->in[i])))
			env_fail(j->c->e, TN_EINVAL, "tensor.handle", (loc){0},
				"argument %d is not a valid tensor", (int)i);
	if (j->n_in < 0 || j->n_out < 0 || j->n_in > TN_MAX_FUNCTION_ARGS ||
		j->n_out > TN_MAX_FUNCTION_ARGS)
		env_fail(j->c->e, TN_EINVAL, "region.count", (loc){0},
			"a region can have at most %d arguments and outputs",
			TN_MAX_FUNCTION_ARGS);
}

tn_context *tn_here(tn_context *c, const char *file, int32_t line)
{
	if (c != NULL)
		c->here = (loc){.file = file, .line = line};
	return c;
}

static tn_status run(job *j, void (*fn)(void *))
{
	loc at;
	tn_status s;

	if (j->c == NULL)
		return api_null("the context");
	at = j->c->here;
	tensors_site(api_tensors(j->c), at.file, at.line);
	s = api_sticky(j->c, at.file, at.line, fn, j);
	for (int32_t i = 0; s < 0 && j->out != NULL && i < j->n_out; i++)
		j->out[i] = api_invalid(j->c);
	return s;
}

static tn_status refuse(const job *j, const char *text)
{
	loc at = j->c != NULL ? j->c->here : (loc){0};

	return tn_at_fail(at.file, at.line, j->c, TN_EINVAL, "region.body",
		"%s", text);
}

static void cond(void *arg)
{
	job *j = arg;
	tensor_body *const body[2] = {record, record};
	void *const with[2] = {&j->then, &j->otherwise};
	tensor *in[TN_MAX_FUNCTION_ARGS], *out[TN_MAX_FUNCTION_ARGS];

	check(j);
	api_inner_all(j->n_in, j->in, in);
	tensor_cond(api_tensors(j->c), api_inner(j->test), body, with, in,
		j->n_out, out);
	api_outer_all(j->n_out, out, j->out);
}

tn_status tn_at_cond(tn_context *c,
	tn_tensor *test, tn_body *then, tn_body *otherwise, void *user,
	int32_t n_in, tn_tensor *const *in, int32_t n_out, tn_tensor **out)
{
	job j = {.c = c,
		.then = {c, then, user, n_in, n_out},
		.otherwise = {c, otherwise, user, n_in, n_out},
		.test = test,
		.n_in = n_in,
		.n_out = n_out,
		.in = in,
		.out = out};

	if (then == NULL || otherwise == NULL)
		return refuse(&j, "a branch is NULL");
	return run(&j, cond);
}

static void loop(void *arg)
{
	job *j = arg;

	tensor *in[2 * TN_MAX_FUNCTION_ARGS], *out[2 * TN_MAX_FUNCTION_ARGS];

	check(j);
	api_inner_all(j->n_in, j->in, in);
	tensor_loop_call(api_tensors(j->c), &j->loop, in, out);
	api_outer_all(j->n_out, out, j->out);
}

tn_status tn_at_while(tn_context *c,
	tn_body *test, tn_body *body, void *user, int64_t rounds, int32_t n,
	tn_tensor *const *in, tn_tensor **out)
{
	job j = {.c = c,
		.then = {c, body, user, n, n},
		.otherwise = {c, test, user, n, 1},
		.n_in = n,
		.n_out = n,
		.in = in,
		.out = out};

	if (test == NULL || body == NULL || rounds < 0)
		return refuse(&j, rounds < 0 ? "the number of rounds is less "
			"than 0"
					     : "the test or the body is NULL");
	j.loop = (tensor_loop){.name = "while",
		.test = record,
		.body = record,
		.test_arg = &j.otherwise,
		.arg = &j.then,
		.n = rounds,
		.n_carried = n};
	return run(&j, loop);
}

tn_status tn_at_scan(tn_context *c,
	tn_body *body, void *user, int64_t rounds, int32_t n_carried,
	int32_t n_rows, tn_tensor *const *in, int32_t n_out, tn_tensor **out)
{
	job j = {.c = c,
		.in = in,
		.out = out};

	if (body == NULL || rounds < 0 || n_carried < 0 || n_rows < 0 ||
		n_out < 0 || n_carried > TN_MAX_FUNCTION_ARGS ||
		n_rows > TN_MAX_FUNCTION_ARGS || n_out > TN_MAX_FUNCTION_ARGS)
		return refuse(&j, "the body is NULL, or a number is less than "
				  "0 or more than TN_MAX_FUNCTION_ARGS");
	j.n_in = n_carried + n_rows;
	j.n_out = n_carried + n_out;
	j.then = (side){c, body, user, j.n_in, j.n_out};
	j.loop = (tensor_loop){.name = "scan",
		.body = record,
		.arg = &j.then,
		.n = rounds,
		.n_carried = n_carried,
		.n_rows = n_rows,
		.n_out = n_out};
	return run(&j, loop);
}

/* ---- functions in C ---- */

/* The data that a call needs when it runs; lives as long as the context. */
typedef struct host {
	tn_context *c;
	tn_host *fn, *grad;
	void *user;
	struct host *next;
} host;

static void describe(
	tn_array *a, int32_t n, const ir_type *type, void *const *data)
{
	for (int32_t i = 0; i < n; i++) {
		a[i] = (tn_array){.dtype = type[i].dtype,
			.rank = type[i].rank,
			.n_elems = shape_numel(type[i].shape, type[i].rank),
			.data = data[i]};
		memcpy(a[i].shape, type[i].shape, sizeof a[i].shape);
		a[i].n_bytes = (size_t)a[i].n_elems *
			dtype_size(type[i].dtype);
	}
}

static void run_host(const host *h, tn_host *fn, int32_t n_in,
	const ir_type *in_type, const void *const *in, int32_t n_out,
	const ir_type *out_type, void *const *out)
{
	tn_array a[3 * TN_MAX_FUNCTION_ARGS], b[TN_MAX_FUNCTION_ARGS];
	tn_status s;

	describe(a, n_in, in_type, (void *const *)(uintptr_t)in);
	describe(b, n_out, out_type, out);
	api_out(h->c);
	s = fn(h->user, n_in, a, n_out, b);
	api_back(h->c);
	if (s < 0)
		env_fail(h->c->e, s, "host.failed", (loc){0},
			"a function in C returned %d", (int)s);
}

static void forward(void *arg, int32_t n_in, const ir_type *in_type,
	const void *const *in, int32_t n_out, const ir_type *out_type,
	void *const *out)
{
	const host *h = arg;

	run_host(h, h->fn, n_in, in_type, in, n_out, out_type, out);
}

static void backward(void *arg, int32_t n_in, const ir_type *in_type,
	const void *const *in, int32_t n_out, const ir_type *out_type,
	void *const *out)
{
	const host *h = arg;

	run_host(h, h->grad, n_in, in_type, in, n_out, out_type, out);
}

/* Equal functions get the same node, so that calls have equal structures. */
static host *host_of(const job *j)
{
	host *h = j->c->hosts;

	while (h != NULL && (h->fn != j->fn || h->grad != j->grad ||
				    h->user != j->user))
		h = h->next;
	if (h != NULL)
		return h;
	h = arena_make(j->c->a, host);
	*h = (host){j->c, j->fn, j->grad, j->user, j->c->hosts};
	j->c->hosts = h;
	return h;
}

static void host_call(void *arg)
{
	job *j = arg;
	ir_type type[TN_MAX_FUNCTION_ARGS];
	tensor *in[TN_MAX_FUNCTION_ARGS], *out[TN_MAX_FUNCTION_ARGS];

	check(j);
	if (j->n_out > 0)
		api_want(j->c, j->type, "the list of types");
	api_inner_all(j->n_in, j->in, in);
	for (int32_t i = 0; i < j->n_out; i++) {
		const tn_array *a = &j->type[i];

		if (tn_dtype_name(a->dtype) == NULL || a->rank < 0 ||
			a->rank > TN_MAX_RANK ||
			shape_numel(a->shape, a->rank) < 0)
			env_fail(j->c->e, TN_EINVAL, "tensor.shape", (loc){0},
				"output %d: no such dtype or shape", (int)i);
		type[i] = (ir_type){.dtype = a->dtype, .rank = a->rank};
		memcpy(type[i].shape, a->shape,
			(size_t)a->rank * sizeof a->shape[0]);
	}
	tensor_host_call(api_tensors(j->c), forward,
		j->grad != NULL ? backward : NULL, host_of(j), j->n_in,
		in, j->n_out, type, out);
	api_outer_all(j->n_out, out, j->out);
}

tn_status tn_at_host_call(tn_context *c,
	tn_host *fn, tn_host *grad, void *user, int32_t n_in,
	tn_tensor *const *in, int32_t n_out, const tn_array *types,
	tn_tensor **out)
{
	job j = {.c = c,
		.n_in = n_in,
		.n_out = n_out,
		.in = in,
		.out = out,
		.fn = fn,
		.grad = grad,
		.user = user,
		.type = types};

	if (fn == NULL)
		return refuse(&j, "the function is NULL");
	return run(&j, host_call);
}
