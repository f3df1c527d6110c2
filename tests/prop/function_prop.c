/*
 * function_prop.c: random functions with parameters, views, writes and several
 * outputs, called as they are in one context and compiled in another.
 *
 *     function_prop [--seed S] [--first K] [--count N] [--compile EVERY]
 *                   [--regions 1] [--second 1] [--drop RULE]
 *
 * With regions: conditions on data, loops whose rounds depend on data, scans;
 * as if and for in one context; as regions in compiled functions, and in
 * functions that are not, in the other.
 *
 * Two functions that share parameters are called three steps each, on
 * arguments that may be views of one storage; the caller writes in between,
 * before it asks for gradients. Outputs, arguments, parameters and gradients
 * must be the same. Between the steps of one side alone there are others that fail,
 * since an index that the body knows is outside: they must leave nothing. With --drop one rule of docs/compile.md is not kept (enum
 * tensor_rule), and some program must fail. Every EVERY-th program runs in compiled code, the others
 * through the interpreter.
 */
#include "function_prop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct figures {
	int32_t n;
	double at[4096];
	const char *what[4096];
} figures;

static void note(figures *g, const char *what, tn_tensor *x)
{
	double v[BIG] = {0};
	int64_t n;

	for (int32_t i = g->n; i < g->n + BIG && i < 4096; i++)
		g->what[i] = what;
	if (x == NULL) { /* no gradient, or one of zeros */
		for (int32_t i = 0; i < ELEMS && g->n < 4096; i++)
			g->at[g->n++] = 0;
		return;
	}
	n = tn_tensor_n_elems(x);
	if (n > BIG || n < 0 || tn_read(x, v, (size_t)n * sizeof *v) < 0)
		return;
	for (int64_t i = 0; i < n && g->n < 4096; i++)
		g->at[g->n++] = v[i];
}

static tn_tensor *fresh(side *s, dice *d, bool grad)
{
	double v[ELEMS];
	tn_tensor *x;

	for (int32_t i = 0; i < ELEMS; i++)
		v[i] = 0.1 * (below(d, 21) - 10);
	x = tn_tensor_new(s->c, TN_F64, 2, shape23, v);
	if (grad)
		(void)tn_requires_grad(x);
	return x;
}

static tn_tensor *argument(side *s, dice *d)
{
	switch (below(d, 5)) {
	case 0: /* of one storage: they overlap, touch, or do not */
		return tn_narrow(s->big, 0, below(d, 3), 2);
	case 1:
		return tn_transpose(tn_reshape(tn_narrow(s->big, 0,
					   below(d, 3), 2),
					   shape32, 2),
			perm, 2);
	case 2:
		return s->param[below(d, PARAMS)];
	case 3:
		return fresh(s, d, true);
	default:
		return fresh(s, d, false);
	}
}

/*
 * The loss and some of the norm of its gradient with respect to tensors that
 * the functions do not see: arguments are made from them.
 */
static tn_tensor *with_norm(
	side *s, tn_tensor *loss, tn_tensor *const *by, figures *f)
{
	tn_tensor *g[ARGS];

	if (tn_grad(1, &loss, NULL, ARGS, by, g) < 0) {
		if (strcmp(tn_context_diag(s->c)->rule, "grad.untracked") == 0)
			tn_context_clear(s->c); /* on both sides */
		return loss;
	}
	for (int32_t i = 0; i < ARGS; i++)
		note(f, "first gradient", g[i]);
	for (int32_t i = 0; i < ARGS; i++)
		loss = tn_add(loss,
			tn_mul(tn_reduce_sum(tn_square(g[i]), NULL, 0, false),
				tn_scalar(s->c, TN_F64, 0.01)));
	return loss;
}

static void note_all(side *s, dice *d, tn_tensor *const *in,
	tn_tensor *const *by, tn_tensor *const *out, figures *g)
{
	tn_tensor *big;

	for (int32_t i = 0; i < OUTS; i++)
		note(g, "output", out[i]);
	for (int32_t i = 0; i < ARGS; i++) {
		note(g, "argument", in[i]);
		note(g, "gradient of an argument", tn_gradient(in[i]));
		if (s->second)
			note(g, "second gradient", tn_gradient(by[i]));
	}
	for (int32_t i = 0; i < PARAMS; i++) {
		note(g, "gradient of a parameter", tn_gradient(s->param[i]));
		if (below(d, 2) == 0)
			tn_zero_grad(s->param[i]);
		note(g, "parameter", s->param[i]);
	}
	big = tn_gradient(s->big);
	for (int64_t i = 0; i < 4; i += 2)
		note(g, "gradient of the arguments' storage",
			big != NULL ? tn_narrow(big, 0, i, 2) : NULL);
	tn_zero_grad(s->big);
	note(g, "storage of arguments", s->big);
}

/* again: with arguments of the kinds of the step before */
static void one_step(side *s, dice *d, dice *args, bool again, figures *g)
{
	dice kinds = again ? *args : *d;
	int32_t which = below(&kinds, 2);
	tn_tensor *in[ARGS], *out[OUTS] = {NULL, NULL}, *loss, *by[ARGS];

	*args = again ? *args : *d;
	(void)below(d, 2);
	tn_scope_enter(s->c);
	if (again) /* but what the body may know has a gradient now */
		(void)tn_requires_grad(s->big);
	for (int32_t i = 0; i < ARGS; i++)
		in[i] = argument(s, &kinds);
	for (int32_t i = 0; s->second && i < ARGS; i++) {
		by[i] = fresh(s, &kinds, true);
		in[i] = tn_add(in[i], by[i]);
	}
	if (s->compiled)
		(void)tn_function_call(s->f[which], in, out);
	else if (body(s->c, &s->body[which], in, out) < 0)
		out[0] = out[1] = NULL;
	if (below(d, 3) == 0)
		note(g, "output, before", out[1]);
	if (below(d, 3) == 0) /* the caller writes before the gradient */
		write_to(d, s->param[below(d, PARAMS)], as_matrix(out[0]));
	if (below(d, 4) == 0)
		write_to(d, in[below(d, ARGS)], fresh(s, d, false));
	if (below(d, 4) == 0) /* of which the other output may be a view */
		write_to(d, out[0], fresh(s, d, false));
	loss = tn_reduce_sum(tn_mul(as_matrix(out[0]), as_matrix(out[0])),
		NULL, 0, false);
	if (below(d, 2) == 0)
		loss = tn_add(loss,
			tn_reduce_sum(tn_sin(out[1]), NULL, 0, false));
	if (s->second && tn_context_status(s->c) >= 0)
		loss = with_norm(s, loss, by, g);
	if (below(d, 4) > 0 && tn_context_status(s->c) >= 0 &&
		tn_backward_keep(loss, NULL) < 0) {
		const char *rule = tn_context_diag(s->c)->rule;

		s->says_no |= strcmp(rule, "grad.second") == 0;
		if (s->says_no || strcmp(rule, "grad.untracked") == 0)
			tn_context_clear(s->c); /* on both sides */
	}
	note(g, "loss", loss);
	note_all(s, d, in, by, out, g);
	/* history ends here; large numbers are made small again */
	tn_no_grad_enter(s->c);
	for (int32_t i = 0; i < PARAMS; i++)
		(void)tn_copy_(s->param[i], tn_tanh(s->param[i]));
	(void)tn_copy_(s->big, tn_tanh(s->big));
	tn_no_grad_leave(s->c);
	tn_scope_leave(s->c);
}

/*
 * Calls with an index outside, on one side alone: of a compiled function, or of
 * several programs with regions between them.
 */
static void failing_step(side *s, dice d)
{
	int32_t which = below(&d, 2), look = below(&d, 3);
	bool differentiate = below(&d, 2) == 0;
	tn_tensor *in[ARGS], *out[OUTS] = {NULL, NULL}, *loss;
	tn_status status;

	if (!has_index(&s->body[which]) || tn_context_status(s->c) < 0)
		return;
	s->n_failed++;
	(void)tn_set_data(s->at, &(int64_t){99}, sizeof(int64_t));
	tn_scope_enter(s->c);
	tn_step_enter(s->c);
	for (int32_t i = 0; i < ARGS; i++)
		in[i] = argument(s, &d);
	if (s->compiled)
		(void)tn_function_call(s->f[which], in, out);
	else
		(void)body(s->c, &s->body[which], in, out);
	loss = tn_reduce_sum(tn_mul(as_matrix(out[0]), as_matrix(out[0])),
		NULL, 0, false);
	if (differentiate && tn_context_status(s->c) >= 0 &&
		tn_backward_keep(loss, NULL) < 0 &&
		strcmp(tn_context_diag(s->c)->rule, "grad.untracked") == 0)
		tn_context_clear(s->c);
	tn_step_leave(s->c);
	status = look > 0 ? tn_eval(&s->param[0], 1)
			  : tn_eval(((tn_tensor *[]){s->param[2], s->big,
					   s->param[0]}), 3);
	if (status == TN_ERANGE &&
		strcmp(tn_context_diag(s->c)->rule, "index.range") == 0)
		tn_context_clear(s->c);
	else if (status >= 0)
		(void)tn_fail(s->c, TN_EINTERNAL, "prop.failing",
			"an index is outside, and the step runs");
	tn_scope_leave(s->c);
	(void)tn_set_data(s->at, &(int64_t){0}, sizeof(int64_t));
}

static void run(side *s, uint64_t seed, figures *g)
{
	dice d = {seed}, args = d;
	double v[BIG];

	g->n = 0;
	for (int32_t i = 0; i < PARAMS; i++) {
		for (int32_t k = 0; k < ELEMS; k++)
			v[k] = 0.1 * (below(&d, 21) - 10);
		s->param[i] = tn_parameter(
			s->c, "p", TN_F64, 2, shape23, v);
	}
	for (int32_t k = 0; k < BIG; k++)
		v[k] = 0.1 * (below(&d, 21) - 10);
	s->big = tn_tensor_new(s->c, TN_F64, 2, shape43, v);
	s->at = tn_tensor_new(s->c, TN_I64, 0, NULL, NULL);
	if (s->with_regions) /* what a branch may write it may give a gradient */
		(void)tn_requires_grad(s->big);
	for (int32_t i = 0; i < 2; i++) {
		s->body[i] = (struct body){
			s, mix(seed + 77 + (uint64_t)i), i};
		s->f[i] = NULL;
		if (s->compiled &&
			tn_compile(&s->f[i], s->c, body, &s->body[i], ARGS,
				OUTS, "drawn") < 0)
			return;
	}
	for (int32_t k = 0; k < 6; k++) {
		if (s->regions && seed % 2 == 0)
			failing_step(s, (dice){mix(seed + (uint64_t)k)});
		one_step(s, &d, &args, k > 0 && below(&d, 3) == 0, g);
	}
	for (int32_t i = 0; i < 2; i++)
		tn_function_free(s->f[i]);
	for (int32_t i = 0; i < PARAMS; i++)
		tn_drop(s->param[i]);
	tn_drop(s->big);
	tn_drop(s->at);
}

static bool same(const figures *x, const figures *y)
{
	if (x->n != y->n) {
		printf("%d figures, compiled %d\n", x->n, y->n);
		return false;
	}
	for (int32_t i = 0; i < x->n; i++)
		if (!(fabs(x->at[i] - y->at[i]) <=
			    1e-9 * (1 + fabs(x->at[i]))) &&
			!(isnan(x->at[i]) && isnan(y->at[i]))) {
			printf("figure %d, %s: %.12g, compiled %.12g\n", i,
				x->what[i], x->at[i], y->at[i]);
			return false;
		}
	return true;
}

static int64_t n_refused; /* second gradients, in compiled functions */
static int64_t n_failing[2]; /* steps: in functions; of several programs */

static bool one(
	uint64_t seed, bool interp, enum tensor_rule drop, bool regions, bool second)
{
	static figures g[2];
	bool good = true;
	side s[2];

	memset(s, 0, sizeof s);
	for (int32_t i = 0; i < 2; i++) {
		tn_options o = TN_OPTIONS_INIT;

		o.interp = interp;
		if (i == 1 && seed % 3 == 0) /* as little as can be is kept */
			o.memory_limit = 0;
		o.threads = 1;
		if (tn_context_new(&s[i].c, &o) < 0)
			return false;
		s[i].c->dropped = drop;
		s[i].compiled = i == 1 && (!regions || seed % 4 != 0);
		s[i].regions = i == 1;
		s[i].with_regions = regions;
		s[i].second = second;
		run(&s[i], seed, &g[i]);
		if (tn_context_status(s[i].c) < 0) {
			const tn_diag *d = tn_context_diag(s[i].c);

			printf("%s: [%s] %s\n", i ? "compiled" : "plain",
				d->rule, d->text);
			good = false;
		}
	}
	n_refused += s[1].says_no;
	n_failing[!s[1].compiled] += s[1].n_failed;
	good = good && !s[0].says_no && (s[1].says_no || same(&g[0], &g[1]));
	for (int32_t i = 0; i < 2; i++)
		tn_context_free(s[i].c);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	long first = 0, count = 200, every = 50, drop = 0, regions = 0, second = 0;
	long failed = 0;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--first") == 0)
			first = strtol(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--count") == 0)
			count = strtol(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--drop") == 0)
			drop = strtol(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--compile") == 0)
			every = strtol(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--regions") == 0)
			regions = strtol(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--second") == 0)
			second = strtol(argv[i + 1], NULL, 10);
	}
	for (long k = first; k < first + count && failed < (drop ? 1 : 5); k++) {
		if (!one((seed << 32) + (uint64_t)k, k % every != 0,
			    (enum tensor_rule)drop, regions != 0,
			    second != 0)) {
			printf("program %ld of seed %" PRIu64 "\n", k, seed);
			failed++;
		}
	}
	if (second != 0)
		printf("%" PRId64 " programs whose second gradient was "
		       "refused\n", n_refused);
	printf("%" PRId64 " steps that fail in compiled functions, %" PRId64
	       " outside of them\n", n_failing[0], n_failing[1]);
	printf("%ld programs, %ld failed\n", count, failed);
	if (!drop && count >= 100 && (n_failing[0] == 0 ||
				(regions != 0 && n_failing[1] == 0))) {
		printf("something was never drawn\n");
		return 1;
	}
	return drop ? failed == 0 : failed > 0;
}
