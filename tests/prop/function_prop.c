/*
 * function_prop.c: random functions with parameters, views, writes and several
 * outputs, called as they are in one context and compiled in another.
 *
 *     function_prop [--seed S] [--first K] [--count N] [--compile EVERY]
 *                   [--drop RULE]
 *
 * Two functions that share parameters are called three steps each, on
 * arguments that may be views of one storage; the caller writes in between,
 * before it asks for gradients. Outputs, arguments, parameters and gradients
 * must be the same. With --drop one rule of docs/compile.md is not kept (enum
 * tensor_rule), and some program must fail. Every EVERY-th program runs in compiled code, the others
 * through the interpreter.
 */
#include "api.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARAMS = 3, ARGS = 3, OUTS = 2, POOL = 24, ELEMS = 6, BIG = 12 };

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

typedef struct dice {
	uint64_t state;
} dice;

static int32_t below(dice *d, int32_t n)
{
	d->state += UINT64_C(0x9e3779b97f4a7c15);
	return (int32_t)(mix(d->state) % (uint64_t)n);
}

/* One side: a context with its parameters. */
typedef struct side {
	tn_context *c;
	tn_tensor *param[PARAMS], *big; /* [2,3]; [4,3] */
	tn_function *f[2];
	bool compiled;
	struct body {
		struct side *of;
		uint64_t seed;
		int32_t number;
	} body[2];
} side;

/* ---- a body ---- */

static const int64_t shape23[2] = {2, 3}, shape32[2] = {3, 2},
	shape43[2] = {4, 3}, shape6[1] = {6}, axis1[1] = {1}, perm[2] = {1, 0};

/* x as [2,3], whatever it is */
static tn_tensor *as_matrix(tn_tensor *x)
{
	return tn_reshape(x, shape23, 2);
}

static tn_tensor *value_of(dice *d, tn_tensor *const *pool, int32_t n)
{
	tn_tensor *x = as_matrix(pool[below(d, n)]);
	tn_tensor *y = as_matrix(pool[below(d, n)]);

	switch (below(d, 7)) {
	case 0:
		return tn_add(x, y);
	case 1:
		return tn_tanh(tn_mul(x, y));
	case 2:
		return tn_sub(x, y);
	case 3:
		return tn_relu(x);
	case 4:
		return tn_sigmoid(x);
	case 5:
		return tn_softmax(x, 1);
	default:
		return tn_matmul(x,
			tn_tanh(tn_matmul(tn_transpose(y, perm, 2), x)));
	}
}

static tn_tensor *view_of(dice *d, tn_tensor *x)
{
	switch (below(d, 4)) {
	case 0:
		return tn_reshape(x, shape32, 2);
	case 1:
		return tn_transpose(as_matrix(x), perm, 2);
	case 2:
		return tn_flip(as_matrix(x), axis1, 1);
	default:
		return tn_reshape(x, shape6, 1);
	}
}

/* A write to the whole or to a row of x, seen somehow. */
static void write_to(dice *d, tn_tensor *x, tn_tensor *v)
{
	tn_tensor *to = as_matrix(x);

	if (below(d, 2) == 0) {
		int64_t row = below(d, 2);

		to = tn_narrow(to, 0, row, 1);
		v = tn_narrow(v, 0, below(d, 2), 1);
	}
	(void)tn_copy_(to, v);
}

static tn_status body(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out);

/* The second function calls the first one, in places. */
static tn_tensor *call_inside(
	const struct body *b, dice *d, tn_tensor *const *pool, int32_t n)
{
	tn_tensor *in[ARGS], *out[OUTS];
	side *s = b->of;

	for (int32_t i = 0; i < ARGS; i++)
		in[i] = as_matrix(pool[below(d, n)]);
	if (s->compiled)
		(void)tn_function_call(s->f[0], in, out);
	else
		(void)body(s->c, &s->body[0], in, out);
	return out[below(d, OUTS)];
}

static tn_status body(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	const struct body *b = user;
	dice d = {b->seed};
	tn_tensor *pool[POOL];
	int32_t n = 0, steps = 2 + below(&d, 6);

	(void)c;
	for (int32_t i = 0; i < ARGS; i++)
		pool[n++] = in[i];
	for (int32_t i = 0; i < PARAMS; i++)
		if (below(&d, 3) > 0)
			pool[n++] = b->of->param[i];
	if (below(&d, 2) == 0) /* known, and now and then with a gradient */
		pool[n++] = tn_narrow(b->of->big, 0, 1, 2);
	for (int32_t k = 0; k < steps; k++) {
		int32_t at = below(&d, n);

		switch (below(&d, 6)) {
		case 0:
			pool[n] = view_of(&d, pool[at]);
			n++;
			break;
		case 1:
			write_to(&d, pool[at], value_of(&d, pool, n));
			break;
		case 2: /* a statistic: no gradient */
			tn_no_grad_enter(c);
			(void)tn_copy_(b->of->param[below(&d, PARAMS)],
				value_of(&d, pool, n));
			tn_no_grad_leave(c);
			break;
		case 3:
			if (b->number == 1 && below(&d, 2) == 0) {
				pool[n] = call_inside(b, &d, pool, n);
				n++;
				break;
			}
			/* fall through */
		default:
			pool[n] = value_of(&d, pool, n);
			n++;
			break;
		}
	}
	for (int32_t i = 0; i < OUTS; i++)
		out[i] = below(&d, 2) == 0 ? pool[n - 1 - i]
					   : pool[below(&d, n)];
	return TN_OK;
}

/* ---- both sides ---- */

typedef struct figures {
	int32_t n;
	double at[4096];
} figures;

static void note(figures *g, tn_tensor *x)
{
	double v[BIG] = {0};
	int64_t n;

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

/* again: with arguments of the kinds of the step before */
static void one_step(side *s, dice *d, dice *args, bool again, figures *g)
{
	dice kinds = again ? *args : *d;
	int32_t which = below(&kinds, 2);
	tn_tensor *in[ARGS], *out[OUTS] = {NULL, NULL}, *loss;

	*args = again ? *args : *d;
	(void)below(d, 2);
	tn_scope_enter(s->c);
	if (again) /* but what the body may know has a gradient now */
		(void)tn_requires_grad(s->big);
	for (int32_t i = 0; i < ARGS; i++)
		in[i] = argument(s, &kinds);
	if (s->compiled)
		(void)tn_function_call(s->f[which], in, out);
	else if (body(s->c, &s->body[which], in, out) < 0)
		out[0] = out[1] = NULL;
	if (below(d, 3) == 0)
		note(g, out[1]);
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
	if (below(d, 4) > 0 && tn_context_status(s->c) >= 0 &&
		tn_backward_keep(loss, NULL) < 0 &&
		strcmp(tn_context_diag(s->c)->rule, "grad.untracked") == 0)
		tn_context_clear(s->c); /* on both sides */
	note(g, loss);
	for (int32_t i = 0; i < OUTS; i++)
		note(g, out[i]);
	for (int32_t i = 0; i < ARGS; i++) {
		note(g, in[i]);
		note(g, tn_gradient(in[i]));
	}
	for (int32_t i = 0; i < PARAMS; i++) {
		note(g, tn_gradient(s->param[i]));
		if (below(d, 2) == 0)
			tn_zero_grad(s->param[i]);
		note(g, s->param[i]);
	}
	for (int64_t i = 0; i < 4; i += 2) {
		tn_tensor *b = tn_gradient(s->big);

		note(g, b != NULL ? tn_narrow(b, 0, i, 2) : NULL);
	}
	tn_zero_grad(s->big);
	note(g, s->big);
	/* history ends here; large numbers are made small again */
	tn_no_grad_enter(s->c);
	for (int32_t i = 0; i < PARAMS; i++)
		(void)tn_copy_(s->param[i], tn_tanh(s->param[i]));
	(void)tn_copy_(s->big, tn_tanh(s->big));
	tn_no_grad_leave(s->c);
	tn_scope_leave(s->c);
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
	for (int32_t i = 0; i < 2; i++) {
		s->body[i] = (struct body){
			s, mix(seed + 77 + (uint64_t)i), i};
		s->f[i] = NULL;
		if (s->compiled &&
			tn_compile(&s->f[i], s->c, body, &s->body[i], ARGS,
				OUTS, "drawn") < 0)
			return;
	}
	for (int32_t k = 0; k < 6; k++)
		one_step(s, &d, &args, k > 0 && below(&d, 3) == 0, g);
	for (int32_t i = 0; i < 2; i++)
		tn_function_free(s->f[i]);
	for (int32_t i = 0; i < PARAMS; i++)
		tn_drop(s->param[i]);
	tn_drop(s->big);
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
			printf("figure %d: %.12g, compiled %.12g\n", i,
				x->at[i], y->at[i]);
			return false;
		}
	return true;
}

static bool one(uint64_t seed, bool interp, enum tensor_rule drop)
{
	static figures g[2];
	bool good = true;
	side s[2];

	memset(s, 0, sizeof s);
	for (int32_t i = 0; i < 2; i++) {
		tn_options o = TN_OPTIONS_INIT;

		o.interp = interp;
		o.threads = 1;
		if (tn_context_new(&s[i].c, &o) < 0)
			return false;
		s[i].c->dropped = drop;
		s[i].compiled = i == 1;
		run(&s[i], seed, &g[i]);
		if (tn_context_status(s[i].c) < 0) {
			const tn_diag *d = tn_context_diag(s[i].c);

			printf("%s: [%s] %s\n", i ? "compiled" : "plain",
				d->rule, d->text);
			good = false;
		}
	}
	good = good && same(&g[0], &g[1]);
	for (int32_t i = 0; i < 2; i++)
		tn_context_free(s[i].c);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	long first = 0, count = 200, every = 50, drop = 0, failed = 0;

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
	}
	for (long k = first; k < first + count && failed < (drop ? 1 : 5); k++) {
		if (!one((seed << 32) + (uint64_t)k, k % every != 0,
			    (enum tensor_rule)drop)) {
			printf("program %ld of seed %" PRIu64 "\n", k, seed);
			failed++;
		}
	}
	printf("%ld programs, %ld failed\n", count, failed);
	return drop ? failed == 0 : failed > 0;
}
