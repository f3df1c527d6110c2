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
#include "api/api.h"

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
	tn_tensor *at; /* an index, 0 but in steps that fail */
	int64_t n_failed;
	tn_function *f[2];
	bool compiled, regions; /* by tn_compile; by tn_cond ... or by if ... */
	bool with_regions;	/* there are conditions and loops at all */
	bool second;		/* the loss has the gradient's norm in it */
	bool says_no;		/* a second gradient was refused */
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

/* ---- conditions and loops ---- */

enum { ROUNDS = 3 };
static const int64_t shape323[3] = {ROUNDS, 2, 3};

typedef struct piece {
	const struct body *b;
	uint64_t seed[2]; /* of bodies, or of the body and the test */
	tn_tensor *const *pool;
	int32_t n, free, depth; /* the first `free` may be written */
	tn_tensor *same[2]; /* what branches return: it may be one */
	double limit;
} piece;

static tn_tensor *region(const struct body *b, dice *d,
	tn_tensor *const *pool, int32_t n, int32_t n_free, int32_t depth);

/*
 * Calls on what is known and on n_in tensors, of which the first is not to be
 * written; makes one.
 */
static tn_tensor *run_piece(
	const piece *p, uint64_t seed, tn_tensor *const *in, int32_t n_in)
{
	dice d = {seed};
	tn_context *c = p->b->of->c;
	tn_tensor *pool[POOL];
	int32_t n = 0, first, steps = 1 + below(&d, 3);

	for (int32_t i = 0; i < p->n && n < POOL / 2; i++)
		pool[n++] = p->pool[i];
	first = n;
	for (int32_t i = 0; i < n_in; i++)
		pool[n++] = in[i];
	for (int32_t k = 0; k < steps; k++) {
		/* values that are handed in are not written */
		int32_t at = below(&d, p->free < first ? p->free : first);

		switch (below(&d, 5)) {
		case 0:
			write_to(&d, view_of(&d, pool[at]),
				value_of(&d, pool, n));
			break;
		case 1:
			tn_no_grad_enter(c);
			(void)tn_copy_(p->b->of->param[below(&d, PARAMS)],
				value_of(&d, pool, n));
			tn_no_grad_leave(c);
			break;
		case 2:
			if (p->depth < 2) {
				pool[n] = region(p->b, &d, pool, n,
					p->free < first ? p->free : first,
					p->depth + 1);
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
	/* what is new and what was handed in is likely */
	return tn_tanh(tn_add(as_matrix(pool[n - 1]),
		value_of(&d, pool + first - 1, n - first + 1)));
}

static tn_status branch(const piece *p, int32_t k, tn_tensor **out)
{
	out[0] = run_piece(p, p->seed[k], NULL, 0);
	out[1] = p->b->of->regions || p->same[0] == p->same[1]
		? p->same[k]
		: tn_copy(p->same[k]);
	return TN_OK;
}

static tn_status then(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	(void)in;
	return branch(user, 0, out);
}

static tn_status otherwise(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	(void)in;
	return branch(user, 1, out);
}

static tn_tensor *is_small(const piece *p, tn_tensor *x)
{
	tn_tensor *y = as_matrix(x);

	return tn_lt(tn_reduce_sum(tn_mul(y, y), NULL, 0, false),
		tn_scalar(p->b->of->c, TN_F64, p->limit));
}

/* Carried: a value, and a storage that may be written. */
static tn_status body_of_loop(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	const piece *p = user;
	dice d = {p->seed[1]};

	(void)c;
	out[0] = run_piece(p, p->seed[0], in, 2);
	out[1] = in[1];
	if (below(&d, 2) == 0)
		write_to(&d, in[1], out[0]);
	return TN_OK;
}

static tn_status test_of_loop(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c;
	out[0] = is_small(user, in[0]);
	return TN_OK;
}

/* Carried: a value; a row; out: the value, and an output for each round. */
static tn_status body_of_scan(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	const piece *p = user;
	dice d = {p->seed[1]};

	(void)c;
	out[0] = run_piece(p, p->seed[0], in, 2);
	out[1] = value_of(&d, (tn_tensor *const[3]){in[0], in[1], out[0]}, 3);
	return TN_OK;
}

static tn_tensor *run_while(const piece *p, tn_tensor *x, tn_tensor *y)
{
	tn_context *c = p->b->of->c;
	piece q = *p;
	tn_tensor *in[2] = {x, y}, *out[2] = {NULL, NULL}, *go;

	if (p->b->of->regions) {
		(void)tn_while(c, test_of_loop, body_of_loop, &q, ROUNDS, 2, in,
			out);
		return out[0];
	}
	in[0] = tn_copy(x); /* a value */
	for (int32_t i = 0; i < ROUNDS; i++) {
		(void)test_of_loop(c, &q, in, &go);
		if (tn_item(go) == 0)
			break;
		(void)body_of_loop(c, &q, in, out);
		in[0] = out[0];
	}
	return in[0];
}

static tn_tensor *run_scan(const piece *p, tn_tensor *x, tn_tensor *rows)
{
	static const int64_t all[1] = {0};
	tn_context *c = p->b->of->c;
	piece q = *p;
	tn_tensor *in[2] = {x, rows}, *out[2] = {NULL, NULL}, *sum = NULL;

	if (p->b->of->regions) {
		(void)tn_scan(c, body_of_scan, &q, ROUNDS, 1, 1, in, 1, out);
		return tn_sub(out[0], tn_reduce_sum(out[1], all, 1, false));
	}
	in[0] = tn_copy(x);
	rows = tn_copy(rows); /* as they are before the first round */
	for (int32_t i = 0; i < ROUNDS; i++) {
		in[1] = tn_select(rows, 0, i);
		(void)body_of_scan(c, &q, in, out);
		in[0] = out[0];
		sum = sum == NULL ? out[1] : tn_add(sum, out[1]);
	}
	return tn_sub(in[0], sum);
}

static tn_tensor *run_cond(const piece *p, tn_tensor *x, bool which)
{
	piece q = *p;
	tn_tensor *out[2] = {NULL, NULL};

	if (p->b->of->regions)
		(void)tn_cond(p->b->of->c, is_small(p, x), then, otherwise, &q,
			0, NULL, 2, out);
	else
		(void)branch(&q, tn_item(is_small(p, x)) != 0 ? 0 : 1, out);
	return out[which];
}

static tn_tensor *region(const struct body *b, dice *d,
	tn_tensor *const *pool, int32_t n, int32_t n_free, int32_t depth)
{
	piece p = {.b = b, .pool = pool, .n = n, .free = n_free,
		.depth = depth};
	tn_tensor *x, *rows, *part[2];

	p.seed[0] = mix(d->state + 1);
	p.seed[1] = mix(d->state + 2);
	p.limit = 0.5 * (1 + below(d, 4));
	p.same[0] = p.same[1] = pool[below(d, n)];
	if (below(d, 2) == 0) { /* then the region makes copies */
		int32_t i = below(d, PARAMS);

		p.same[0] = b->of->param[i];
		p.same[1] = b->of->param[(i + 1) % PARAMS];
	}
	x = as_matrix(pool[below(d, n)]);
	switch (below(d, 3)) {
	case 0:
		return run_cond(&p, x, below(d, 2));
	case 1:
		return run_while(&p, x, as_matrix(pool[below(d, n_free)]));
	default:
		part[0] = tn_mul(x, as_matrix(pool[below(d, n)]));
		part[1] = b->of->big;
		rows = tn_reshape(tn_concat(part, 2, 0), shape323, 3);
		return run_scan(&p, x, rows);
	}
}

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

/* Does what it writes depend on the index? */
static bool has_index(const struct body *b)
{
	return mix(b->seed) % 2 == 0;
}

static void add_indexed(side *s)
{
	const int64_t n = ELEMS;

	tn_no_grad_enter(s->c);
	(void)tn_add_(s->param[0],
		tn_mul(tn_take(tn_reshape(s->param[1], &n, 1), s->at, 0),
			tn_scalar(s->c, TN_F64, 0.125)));
	tn_no_grad_leave(s->c);
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
		case 4:
			if (b->of->with_regions) {
				pool[n] = region(b, &d, pool, n, n, 0);
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
	if (has_index(b))
		add_indexed(b->of);
	for (int32_t i = 0; i < OUTS; i++)
		out[i] = below(&d, 2) == 0 ? pool[n - 1 - i]
					   : pool[below(&d, n)];
	return TN_OK;
}

/* ---- both sides ---- */

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
