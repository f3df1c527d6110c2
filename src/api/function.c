/*
 * function.c: compiled functions: calls func/.
 */
#include "api/api.h"

#include <stdlib.h>

typedef struct job {
	tn_function *f;
	const char *name;
	tn_tensor *const *in;
	tn_tensor **out;
	const bool *donated; /* NULL: none */
	str text;
	bool dot, program;
} job;

/* func/ calls this for the body; a failure of the body fails the recording. */
static void record(void *arg, tensor *const *in, tensor **out)
{
	tn_function *f = arg;
	tn_context *c = f->c;
	tn_status s = api_body(
		c, f->body, f->user, f->n_in, in, f->n_out, out);

	if (s >= 0)
		s = tn_context_status(c);
	if (s >= 0)
		return;
	if (tn_context_status(c) < 0) { /* with its own diagnosis */
		tn_diag d = c->first;

		env_fail(c->e, d.status, d.rule, (loc){d.file, d.line, 0}, "%s",
			d.text);
	}
	env_fail(c->e, s, "compile.body", (loc){0},
		"the function that is compiled returned %d", (int)s);
}

static void make(void *arg)
{
	job *j = arg;
	tn_function *f = j->f;

	f->f = tensor_function_new(api_tensors(f->c),
		j->name != NULL ? j->name : "function", f->n_in, f->n_out,
		record, f);
}

tn_status tn_compile(tn_function **out, tn_context *c, tn_body *body,
	void *user, int32_t n_in, int32_t n_out, const char *name)
{
	job j = {.name = name};
	tn_status s;

	*out = NULL;
	if (c == NULL)
		return api_null("the context");
	if (body == NULL)
		return tn_at_fail(NULL, 0, c, TN_EINVAL, "compile.body",
			"the body of the function is NULL");
	if (n_in < 0 || n_out < 0 || n_in > TN_MAX_FUNCTION_ARGS ||
		n_out > TN_MAX_FUNCTION_ARGS)
		return tn_at_fail(NULL, 0, c, TN_EINVAL, "compile.count",
			"%d arguments and %d outputs: 0 to %d are possible",
			(int)n_in, (int)n_out, TN_MAX_FUNCTION_ARGS);
	j.f = calloc(1, sizeof *j.f);
	if (j.f == NULL)
		return tn_at_fail(NULL, 0, c, TN_ENOMEM, "memory",
			"out of memory for a function");
	*j.f = (tn_function){.c = c,
		.body = body,
		.user = user,
		.n_in = n_in,
		.n_out = n_out};
	s = api_call(c, make, &j);
	if (s < 0)
		free(j.f);
	else
		*out = j.f;
	return s;
}

static void release(void *arg)
{
	tensor_function_free(((job *)arg)->f->f);
}

void tn_function_free(tn_function *f)
{
	job j = {.f = f};

	if (f == NULL)
		return;
	f->ends = true;
	if (f->n_calls > 0) /* its own body ends it */
		return;
	(void)api_call(f->c, release, &j);
	free(f);
}

static void call(void *arg)
{
	job *j = arg;
	tn_function *f = j->f;
	tensor *in[TN_MAX_FUNCTION_ARGS], *out[TN_MAX_FUNCTION_ARGS];

	if (f->n_in > 0)
		api_want(f->c, j->in, "the list of arguments");
	api_inner_all(f->n_in, j->in, in);
	for (int32_t i = 0; i < f->n_in; i++)
		if (in[i] == NULL || tensor_is_invalid(in[i]))
			env_fail(f->c->e, TN_EINVAL, "tensor.handle", (loc){0},
				"argument %d is not a valid tensor", (int)i);
	if (j->donated != NULL)
		tensor_function_check_donated(f->f, in, j->donated);
	tensor_function_call(f->f, in, out);
	if (j->donated != NULL)
		tensor_function_take_donated(f->f, in, j->donated);
	api_outer_all(f->n_out, out, j->out);
}

tn_status tn_at_function_call(const char *file, int32_t line, tn_function *f,
	tn_tensor *const *in, tn_tensor **out)
{
	if (f == NULL)
		return api_null("the function");
	return tn_at_function_donate(file, line, f, in, NULL, out);
}

tn_status tn_at_function_donate(const char *file, int32_t line, tn_function *f,
	tn_tensor *const *in, const bool *donated, tn_tensor **out)
{
	if (f == NULL)
		return api_null("the function");

	job j = {.f = f, .in = in, .donated = donated, .out = out};
	tn_status s;

	tensors_site(api_tensors(f->c), file, line);
	f->n_calls++;
	s = api_sticky(f->c, file, line, call, &j);
	f->n_calls--;
	for (int32_t i = 0; s < 0 && i < f->n_out; i++)
		out[i] = api_invalid(f->c);
	if (f->ends)
		tn_function_free(f);
	return s;
}

static void print_in(arena *a, void *arg)
{
	job *j = arg;

	j->text = str_new(a);
	if (j->program)
		tensor_function_program(&j->text, j->f->f);
	else if (j->dot)
		tensor_function_dot(&j->text, j->f->f);
	else
		tensor_function_print(&j->text, j->f->f);
	j->name = api_text(j->f->c, &j->text);
}

static void print(void *arg)
{
	job *j = arg;

	arena_run(j->f->c->e, print_in, j);
}

tn_status tn_function_text(char **out, tn_function *f, bool dot)
{
	if (f == NULL) {
		*out = NULL;
		return api_null("the function");
	}

	job j = {.f = f, .dot = dot};
	tn_status s = api_call(f->c, print, &j);

	*out = s < 0 ? NULL : (char *)(uintptr_t)j.name;
	return s;
}

tn_status tn_function_program_text(char **out, tn_function *f)
{
	if (f == NULL) {
		*out = NULL;
		return api_null("the function");
	}

	job j = {.f = f, .program = true};
	tn_status s = api_call(f->c, print, &j);

	*out = s < 0 ? NULL : (char *)(uintptr_t)j.name;
	return s;
}

typedef struct key_job {
	tn_context *c;
	tn_tensor *key;
} key_job;

static void random_key(void *arg)
{
	key_job *j = arg;

	j->key = api_outer(tensor_random_key(api_tensors(j->c)));
}

tn_tensor *tn_at_random_key(const char *file, int32_t line, tn_context *c)
{
	key_job j = {.c = c};

	if (api_sticky(c, file, line, random_key, &j) < 0)
		return api_invalid(c);
	return j.key;
}

int64_t tn_function_n_recorded(const tn_function *f)
{
	if (f == NULL)
		return 0;
	return tensor_function_n_traces(f->f);
}
