/*
 * split.c: `tenon explain --level=split` and `--level=grad`: treats a program
 * as a compiled function. Its inputs are the arguments; params, and the
 * parameters of a model, are captured; and floats have gradients.
 */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct split {
	tn_context *c;
	tn_program *p;
	/* of the program, the model's parameters included; arguments */
	int32_t n_in, n_args, n_out;
	/* by input, then by parameter; the inputs that are not params */
	tn_tensor **all, **arg, **out;
} split;

/* Input i, or a parameter of a model. */
static const tn_value *value_at(const split *s, int32_t i)
{
	int32_t n = tn_program_n_inputs(s->p);

	return i < n ? tn_program_input(s->p, i)
		     : tn_program_param(s->p, i - n);
}

static bool is_captured(const split *s, int32_t i)
{
	return i >= tn_program_n_inputs(s->p) || value_at(s, i)->is_param;
}

static tn_status body(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	split *s = user;
	tn_tensor **all = cli_alloc((size_t)s->n_in, sizeof *all);
	int32_t n = 0;
	tn_status status;

	(void)c;
	if (all == NULL)
		return TN_ENOMEM;
	for (int32_t i = 0; i < s->n_in; i++)
		all[i] = is_captured(s, i) ? s->all[i] : in[n++];
	status = tn_apply(s->p, s->n_in, all, s->n_out, out);
	free(all);
	return status;
}

static bool is_named(const cli_list *list, const char *name)
{
	for (int i = 0; i < list->n; i++)
		if (strcmp(list->at[i], name) == 0)
			return true;
	return false;
}

static bool make_inputs(const cli_command *self, split *s,
	const cli_list *no_grad)
{
	for (int i = 0; i < no_grad->n; i++) {
		int32_t k = 0;

		while (k < s->n_in &&
			strcmp(value_at(s, k)->name, no_grad->at[i]) != 0)
			k++;
		if (k == s->n_in) {
			(void)cli_usage(self, "--no-grad %s: the program has "
					      "no input or parameter of that name",
				no_grad->at[i]);
			return false;
		}
	}
	for (int32_t i = 0; i < s->n_in; i++) {
		const tn_value *v = value_at(s, i);
		bool without = is_named(no_grad, v->name);

		if (without)
			tn_no_grad_enter(s->c);
		s->all[i] = tn_parameter(
			s->c, v->name, v->dtype, v->rank, v->shape, NULL);
		if (without)
			tn_no_grad_leave(s->c);
		if (!is_captured(s, i))
			s->arg[s->n_args++] = s->all[i];
	}
	return true;
}

static int print(split *s, cli_split_as as, bool json)
{
	tn_function *f = NULL;
	char *text = NULL;
	int code = CLI_FAILED;

	if (tn_compile(&f, s->c, body, s, s->n_args, s->n_out, "program") < 0) {
		code = cli_error(NULL, "compile.size", "a function has at most "
			"%d arguments and outputs", TN_MAX_FUNCTION_ARGS);
	} else if (tn_function_call(f, s->arg, s->out) < 0 ||
		(as == CLI_SPLIT_PROGRAM
				? tn_function_program_text(&text, f)
				: tn_function_text(&text, f,
					  as == CLI_SPLIT_DOT)) < 0) {
		cli_diag(tn_context_diag(s->c));
	} else {
		if (json)
			cli_json_text(stdout, text);
		else
			fputs(text, stdout);
		if (json)
			fputc('\n', stdout);
		code = CLI_OK;
	}
	tn_text_free(text);
	tn_function_free(f);
	return code;
}

int cli_split(const cli_command *self, tn_context *c, tn_program *p,
	const cli_list *no_grad, cli_split_as as, bool json)
{
	split s = {.c = c,
		.p = p,
		.n_in = tn_program_n_inputs(p) + tn_program_n_params(p),
		.n_out = tn_program_n_outputs(p)};
	int code = CLI_FAILED;

	s.all = cli_alloc((size_t)s.n_in, sizeof *s.all);
	s.arg = cli_alloc((size_t)s.n_in, sizeof *s.arg);
	s.out = cli_alloc((size_t)s.n_out, sizeof *s.out);
	if (s.all != NULL && s.arg != NULL && s.out != NULL)
		code = make_inputs(self, &s, no_grad) ? print(&s, as, json)
						      : CLI_USAGE;
	free(s.all);
	free(s.arg);
	free(s.out);
	return code;
}
