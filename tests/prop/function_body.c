/*
 * function_body.c: the random bodies of function_prop.c: views, writes,
 * statistics, and regions.
 */
#include "function_prop.h"

uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

int32_t below(dice *d, int32_t n)
{
	d->state += UINT64_C(0x9e3779b97f4a7c15);
	return (int32_t)(mix(d->state) % (uint64_t)n);
}
/* ---- a body ---- */

const int64_t shape23[2] = {2, 3}, shape32[2] = {3, 2}, shape43[2] = {4, 3},
	perm[2] = {1, 0};
static const int64_t shape6[1] = {6}, axis1[1] = {1};

tn_tensor *as_matrix(tn_tensor *x)
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

void write_to(dice *d, tn_tensor *x, tn_tensor *v)
{
	tn_tensor *to = as_matrix(x);

	if (below(d, 2) == 0) {
		int64_t row = below(d, 2);

		to = tn_narrow(to, 0, row, 1);
		v = tn_narrow(v, 0, below(d, 2), 1);
	}
	(void)tn_copy_(to, v);
}

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

bool has_index(const struct body *b)
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

tn_status body(tn_context *c, void *user, tn_tensor *const *in,
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
