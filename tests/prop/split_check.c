/*
 * split_check.c: programs as functions, called as they are and compiled.
 *
 *     split_check FILE.tn...
 *
 * What stands behind a line "# >>>" is not of the program: see golden.sh.
 * Inputs are arguments, params are parameters that both contexts keep. Three
 * steps each: the function, a write of the caller to what it got, a gradient,
 * an update of the parameters. Outputs, arguments, parameters and gradients
 * must be the same, in the interpreter and in compiled code; from the second
 * step on nothing is compiled.
 */
#include "tenon.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16, FIGURES = 4096, STEPS = 3 };

typedef struct side {
	tn_context *c;
	tn_program *p;
	tn_function *f;
	tn_tensor *param[MOST]; /* by input; NULL: an argument */
	bool compiled;
	bool has_params;
	int n;
	double at[FIGURES];
} side;

static tn_status body(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	side *s = user;
	tn_tensor *all[MOST];
	int32_t n = 0;

	(void)c;
	for (int32_t i = 0; i < tn_program_n_inputs(s->p); i++)
		all[i] = s->param[i] != NULL ? s->param[i] : in[n++];
	return tn_apply(s->p, tn_program_n_inputs(s->p), all,
		tn_program_n_outputs(s->p), out);
}

static void note(side *s, tn_tensor *x)
{
	float v[256];
	int64_t n = x == NULL ? 0 : tn_tensor_n_elems(x);

	if (n > 256 || (n > 0 && tn_tensor_dtype(x) != TN_F32))
		return;
	if (n > 0 && tn_read(x, v, (size_t)n * sizeof *v) < 0)
		return;
	if (s->n < FIGURES)
		s->at[s->n++] = n == 0 ? -77 : (double)n;
	for (int64_t i = 0; i < n && s->n < FIGURES; i++)
		s->at[s->n++] = (double)v[i];
}

static tn_tensor *make(side *s, const tn_value *v, int step)
{
	float x[256];

	for (int64_t i = 0; i < v->n_elems && i < 256; i++)
		x[i] = (float)sin((double)(i + 1) * 1.7 + step +
			(double)strlen(v->name));
	if (v->is_param)
		return tn_parameter(s->c, v->name, v->dtype, v->rank, v->shape,
			v->dtype == TN_F32 ? x : NULL);
	return tn_tensor_new(s->c, v->dtype, v->rank, v->shape,
		v->dtype == TN_F32 ? x : NULL);
}

static void one_step(side *s, int step)
{
	tn_tensor *in[MOST], *out[MOST], *loss = NULL;
	int32_t n_in = 0, n_out = tn_program_n_outputs(s->p);

	tn_scope_enter(s->c);
	for (int32_t i = 0; i < tn_program_n_inputs(s->p); i++) {
		const tn_value *v = tn_program_input(s->p, i);

		if (v->is_param)
			continue;
		in[n_in] = make(s, v, step);
		/* the second step is of another kind */
		if (v->dtype == TN_F32 && (step != 1 || !s->has_params))
			(void)tn_requires_grad(in[n_in]);
		n_in++;
	}
	if (s->compiled)
		(void)tn_function_call(s->f, in, out);
	else if (body(s->c, s, in, out) < 0)
		n_out = 0;
	for (int32_t i = 0; i < n_out; i++) {
		tn_tensor *x = tn_reduce_sum(tn_mul(out[i], tn_sin(out[i])),
			NULL, 0, false);

		loss = loss == NULL ? x : tn_add(loss, x);
	}
	/* the caller's writes come before the gradient, and do not matter */
	if (step == 2 && n_out > 0) {
		tn_no_grad_enter(s->c);
		for (int32_t i = 0; i < n_in; i++)
			if (tn_tensor_dtype(in[i]) == TN_F32)
				(void)tn_fill_(in[i], 0.25);
		tn_no_grad_leave(s->c);
	}
	if (loss != NULL)
		(void)tn_backward(loss, NULL);
	note(s, loss);
	for (int32_t i = 0; i < n_out; i++)
		note(s, out[i]);
	for (int32_t i = 0; i < n_in; i++) {
		note(s, in[i]);
		if (tn_tensor_dtype(in[i]) == TN_F32)
			note(s, tn_gradient(in[i]));
	}
	for (int32_t i = 0; i < tn_program_n_inputs(s->p); i++) {
		tn_tensor *g;

		if (s->param[i] == NULL)
			continue;
		g = tn_gradient(s->param[i]);
		note(s, g);
		note(s, s->param[i]);
		tn_no_grad_enter(s->c);
		if (g != NULL)
			(void)tn_copy_(s->param[i], tn_sub(s->param[i],
				tn_mul(g, tn_scalar(s->c, TN_F32, 0.01))));
		tn_no_grad_leave(s->c);
		tn_zero_grad(s->param[i]);
	}
	tn_scope_leave(s->c);
}

/* The text up to the line "# >>>"; freed by the caller. */
static char *read_program(const char *file)
{
	static const char end[] = "\n# >>>\n";
	char *text = calloc(1, 1 << 16), *mark;
	FILE *f = fopen(file, "r");

	if (text == NULL || f == NULL || fread(text, 1, (1 << 16) - 1, f) == 0)
		printf("%s: cannot be read\n", file);
	if (f != NULL)
		fclose(f);
	mark = text != NULL ? strstr(text, end) : NULL;
	if (mark != NULL)
		mark[1] = '\0';
	return text;
}

static bool start(side *s, const char *file, bool interp, bool compiled)
{
	tn_options o = TN_OPTIONS_INIT;
	int32_t n_args = 0;
	char *text = read_program(file);
	tn_status status;

	*s = (side){.compiled = compiled};
	o.interp = interp;
	o.threads = 1;
	if (text == NULL || tn_context_new(&s->c, &o) < 0) {
		free(text);
		return false;
	}
	status = tn_program_parse(&s->p, s->c, text, strlen(text), file);
	free(text);
	if (status < 0)
		return false;
	for (int32_t i = 0; i < tn_program_n_inputs(s->p); i++) {
		const tn_value *v = tn_program_input(s->p, i);

		if (i >= MOST || v->n_elems > 256)
			return false;
		if (v->is_param)
			s->param[i] = make(s, v, 0);
		else
			n_args++;
		s->has_params = s->has_params || v->is_param;
	}
	return tn_compile(&s->f, s->c, body, s, n_args,
		       tn_program_n_outputs(s->p), "program") >= 0;
}

static void stop(side *s)
{
	tn_function_free(s->f);
	tn_program_free(s->p);
	tn_context_free(s->c);
}

static bool same(const char *file, const side *x, const side *y)
{
	if (x->n != y->n || x->n == 0) {
		printf("%s: %d figures, compiled %d\n", file, x->n, y->n);
		return false;
	}
	for (int i = 0; i < x->n; i++)
		if (!(fabs(x->at[i] - y->at[i]) <=
			    1e-5 * (1 + fabs(x->at[i])))) {
			printf("%s: figure %d: %.8g, compiled %.8g\n", file, i,
				x->at[i], y->at[i]);
			return false;
		}
	return true;
}

static bool check(const char *file, bool interp)
{
	static side s[2];
	bool good = true;

	for (int i = 0; i < 2; i++) {
		good = start(&s[i], file, interp, i == 1) && good;
		for (int k = 0; good && k < STEPS; k++)
			one_step(&s[i], k);
		if (s[i].c != NULL && tn_context_status(s[i].c) < 0) {
			const tn_diag *d = tn_context_diag(s[i].c);

			printf("%s: %s: [%s] %s\n", file,
				i ? "compiled" : "plain", d->rule, d->text);
			good = false;
		}
	}
	good = good && same(file, &s[0], &s[1]);
	if (good && tn_function_n_recorded(s[1].f) > 2) {
		printf("%s: recorded %d times\n", file,
			(int)tn_function_n_recorded(s[1].f));
		good = false;
	}
	stop(&s[0]);
	stop(&s[1]);
	return good;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++)
		if (!check(argv[i], true) || !check(argv[i], false))
			failed++;
	printf("split_check: %d programs, %d failed\n", argc - 1, failed);
	return failed > 0 || argc < 2;
}
