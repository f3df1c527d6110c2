/*
 * failing.h: training steps of many kinds that fail where an index is outside,
 * on a small net, and snapshots of all its state.
 */
#ifndef FAILING_H
#define FAILING_H

#include "unit.h"

#include <stdlib.h>

enum { WORDS = 5, WIDTH = 3, BATCH = 4, MAX_STATE = 16 };

typedef struct net {
	tn_context *c;
	tn_tensor *w, *head, *seen, *count; /* table, factors, mean, steps */
	tn_optimizer *o;
	tn_function *f;
	tn_tensor *state[MAX_STATE];
	int32_t n_state;
	tn_tensor *loss;
	bool plain; /* w and head are no parameters, but leaves */
} net;

static const float start[WORDS * WIDTH] = {.5F, -.25F, .125F, 1, 2, -1, .75F,
	-.5F, .25F, 3, -2, 1, .0625F, .375F, -.875F};
static const int64_t good[2][BATCH] = {{0, 3, 1, 3}, {4, 2, 0, 1}};
static const int64_t bad[BATCH] = {0, 3, 7, 1};

static tn_tensor *ids_of(tn_context *c, const int64_t *id)
{
	const int64_t n = BATCH;

	return tn_tensor_new(c, TN_I64, 1, &n, id);
}

static tn_tensor *f32(tn_context *c, double v)
{
	return tn_scalar(c, TN_F32, v);
}

static tn_tensor *sum(tn_tensor *x)
{
	return tn_reduce_sum(x, NULL, 0, false);
}

/* sum of squares of head * table[ids] - 1; a running mean on the way */
static tn_tensor *forward(net *t, tn_tensor *ids)
{
	const int64_t rows = 0;
	tn_tensor *x = tn_take(t->w, ids, 0), *y;

	tn_no_grad_enter(t->c);
	tn_copy_(t->seen, tn_add(tn_mul(t->seen, f32(t->c, 0.5)),
				  tn_reduce_mean(x, &rows, 1, false)));
	tn_no_grad_leave(t->c);
	y = tn_sub(tn_mul(x, t->head), f32(t->c, 1));
	return sum(tn_mul(y, y));
}

/* ---- steps ---- */

static tn_tensor *by_hand(net *t, tn_tensor *ids)
{
	tn_tensor *loss = forward(t, ids);

	tn_backward(loss, NULL);
	tn_no_grad_enter(t->c);
	tn_sub_(t->w, tn_mul(tn_gradient(t->w), f32(t->c, 0.125)));
	tn_sub_(t->head, tn_mul(tn_gradient(t->head), f32(t->c, 0.125)));
	tn_no_grad_leave(t->c);
	tn_zero_grad(t->w);
	tn_zero_grad(t->head);
	return loss;
}

/* The counter depends on nothing of it, but is of the step. */
static tn_tensor *counted(net *t, tn_tensor *ids)
{
	tn_tensor *loss;

	tn_step_enter(t->c);
	tn_no_grad_enter(t->c);
	tn_add_(t->count, f32(t->c, 1));
	tn_no_grad_leave(t->c);
	loss = by_hand(t, ids);
	tn_step_leave(t->c);
	return loss;
}

static tn_tensor *with_optimizer(net *t, tn_tensor *ids)
{
	tn_tensor *loss = forward(t, ids);

	tn_backward(loss, NULL);
	tn_optimizer_step(t->o);
	return loss;
}

/* Gradients are collected over steps, and stay. */
static tn_tensor *collecting(net *t, tn_tensor *ids)
{
	tn_tensor *loss = forward(t, ids);

	tn_backward(loss, NULL);
	return loss;
}

static tn_tensor *through_views(net *t, tn_tensor *ids)
{
	tn_tensor *x = tn_take(t->w, ids, 0), *part;

	tn_step_enter(t->c);
	tn_no_grad_enter(t->c);
	part = tn_narrow(t->w, 0, 1, BATCH);
	tn_add_(part, tn_mul(x, f32(t->c, 0.25)));
	tn_mul_(tn_select(t->w, 1, 2), f32(t->c, 0.5));
	tn_add_(t->head, tn_select(part, 0, 0));
	tn_no_grad_leave(t->c);
	tn_step_leave(t->c);
	return sum(x);
}

/* A row is written where the data says: the write itself has the index. */
static tn_tensor *at_offset(net *t, tn_tensor *ids)
{
	const int64_t one = 1;
	tn_tensor *at = tn_select(ids, 0, 2);
	tn_tensor *row = tn_dynamic_narrow(t->w, at, 0, one);

	tn_step_enter(t->c);
	tn_no_grad_enter(t->c);
	tn_mul_(t->head, f32(t->c, 0.5));
	tn_add_(t->seen, t->head);
	tn_copy_(row, tn_mul(row, f32(t->c, 0.5)));
	tn_add_(t->head, tn_select(t->w, 0, 0));
	tn_no_grad_leave(t->c);
	tn_step_leave(t->c);
	return sum(t->w);
}

/* Everything is written before the index is read: the rest must wait. */
static tn_tensor *written_first(net *t, tn_tensor *ids)
{
	tn_tensor *x;

	tn_step_enter(t->c);
	tn_no_grad_enter(t->c);
	tn_mul_(t->w, f32(t->c, 0.5));
	tn_add_(t->head, tn_reduce_sum(t->w, (int64_t[]){0}, 1, false));
	tn_add_(t->w, t->head);
	x = tn_take(t->w, ids, 0);
	tn_add_(t->seen, tn_reduce_sum(x, (int64_t[]){0}, 1, false));
	tn_sub_(t->w, t->seen);
	tn_no_grad_leave(t->c);
	tn_step_leave(t->c);
	return sum(x);
}

/* The index is computed: nobody knows it before it is used. */
static tn_tensor *computed(net *t, tn_tensor *ids)
{
	return written_first(t, tn_add(ids, ids_of(t->c, (int64_t[BATCH]){0})));
}

static tn_status add_row(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	net *t = user;
	tn_tensor *x = tn_take(t->w, in[1], 0);

	(void)c;
	tn_no_grad_enter(c);
	tn_add_(t->seen, x);
	tn_mul_(tn_select(t->w, 0, 1), t->seen);
	tn_no_grad_leave(c);
	out[0] = tn_add(in[0], x);
	return TN_OK;
}

static tn_tensor *scanned(net *t, tn_tensor *ids)
{
	tn_tensor *in[2] = {tn_mul(t->head, f32(t->c, 1)), ids}, *out[1];

	assert_int_equal(tn_scan(t->c, add_row, t, BATCH, 1, 1, in, 0, out),
		TN_OK);
	return sum(out[0]);
}

static tn_status is_low(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)user;
	out[0] = tn_lt(in[0], tn_scalar(c, TN_I64, BATCH));
	return TN_OK;
}

static tn_status one_more(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	net *t = user;
	tn_tensor *id = tn_take(in[1], in[0], 0);

	tn_no_grad_enter(c);
	tn_add_(t->seen, tn_take(t->w, id, 0));
	tn_mul_(tn_select(t->w, 0, 1), t->seen);
	tn_no_grad_leave(c);
	out[0] = tn_add(in[0], tn_scalar(c, TN_I64, 1));
	out[1] = in[1];
	return TN_OK;
}

static tn_tensor *looped(net *t, tn_tensor *ids)
{
	tn_tensor *in[2] = {tn_scalar(t->c, TN_I64, 0), ids}, *out[2];

	assert_int_equal(
		tn_while(t->c, is_low, one_more, t, 100, 2, in, out), TN_OK);
	return tn_cast(out[0], TN_F32);
}

static tn_status write_some(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	net *t = user;
	tn_tensor *x = tn_take(t->w, in[0], 0);

	tn_no_grad_enter(c);
	tn_mul_(t->head, f32(c, 0.5));
	tn_add_(tn_narrow(t->w, 0, 0, BATCH), x);
	tn_no_grad_leave(c);
	out[0] = sum(x);
	return TN_OK;
}

static tn_status write_none(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)user, (void)in;
	out[0] = f32(c, 0);
	return TN_OK;
}

static tn_tensor *decided(net *t, tn_tensor *ids)
{
	tn_tensor *out;

	assert_int_equal(tn_cond(t->c, tn_scalar(t->c, TN_BOOL, 1), write_some,
				 write_none, t, 1, &ids, 1, &out), TN_OK);
	return out;
}

/*
 * Several programs: what is written before the condition, by it and between it
 * and the loop has run when the index is seen.
 */
static tn_status halve(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	net *t = user;

	tn_no_grad_enter(c);
	tn_mul_(t->head, f32(c, 0.5));
	tn_add_(tn_narrow(t->w, 0, 0, 1), in[0]);
	tn_no_grad_leave(c);
	out[0] = tn_add(t->seen, in[0]);
	return TN_OK;
}

static tn_status leave(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	(void)c, (void)user;
	out[0] = tn_neg(in[0]);
	return TN_OK;
}

static tn_status add_twice(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	net *t = user;

	tn_no_grad_enter(c);
	tn_add_(t->seen, in[0]);
	tn_no_grad_leave(c);
	out[0] = tn_mul(in[0], f32(c, 0.5));
	return TN_OK;
}

static tn_status double_it(void *user, int32_t n_in, const tn_array *in,
	int32_t n_out, const tn_array *out)
{
	(void)user, (void)n_in, (void)n_out;
	for (int32_t i = 0; i < WIDTH; i++)
		((float *)out[0].data)[i] = 2 * ((const float *)in[0].data)[i];
	return TN_OK;
}

static tn_tensor *pieces(net *t)
{
	const tn_array row = {.dtype = TN_F32, .rank = 1, .shape = {WIDTH}};
	tn_tensor *out, *more;

	tn_add_(t->count, f32(t->c, 1));
	tn_add_(t->seen, tn_select(t->w, 0, 0));
	tn_mul_(t->w, f32(t->c, 0.5));
	more = tn_gt(sum(t->seen), f32(t->c, -1000));
	assert_int_equal(tn_cond(t->c, more, halve, leave, t, 1, &t->head, 1,
				 &out), TN_OK);
	tn_add_(t->head, out);
	tn_mul_(t->count, f32(t->c, 2));
	assert_int_equal(tn_scan(t->c, add_twice, t, 2, 1, 0, &t->head, 0,
				 &out), TN_OK);
	tn_add_(t->w, out);
	assert_int_equal(tn_host_call(t->c, double_it, NULL, t, 1, &t->head, 1,
				 &row, &out), TN_OK);
	return out;
}

static tn_tensor *in_pieces(net *t, tn_tensor *ids)
{
	tn_tensor *x, *out;

	tn_step_enter(t->c);
	tn_no_grad_enter(t->c);
	out = pieces(t);
	x = tn_take(t->w, ids, 0);
	tn_add_(t->seen, tn_add(out, tn_reduce_sum(x, (int64_t[]){0}, 1, false)));
	tn_no_grad_leave(t->c);
	tn_step_leave(t->c);
	return sum(x);
}

/* The last one is a region: it finds the index. */
static tn_tensor *then_region(net *t, tn_tensor *ids)
{
	tn_tensor *x;

	tn_step_enter(t->c);
	tn_no_grad_enter(t->c);
	tn_add_(t->head, pieces(t));
	x = scanned(t, ids);
	tn_no_grad_leave(t->c);
	tn_step_leave(t->c);
	return x;
}

/* The same with history: gradients of the step go back, too. */
static tn_tensor *pieces_and_back(net *t, tn_tensor *ids)
{
	tn_tensor *x, *out, *loss;

	tn_step_enter(t->c);
	tn_no_grad_enter(t->c);
	tn_add_(t->count, f32(t->c, 1));
	tn_no_grad_leave(t->c);
	x = tn_mul(t->head, f32(t->c, 2));
	assert_int_equal(tn_cond(t->c, tn_gt(sum(x), f32(t->c, 0)), leave,
				 halve, t, 1, &x, 1, &out), TN_OK);
	loss = tn_add(sum(tn_mul(out, out)), sum(tn_take(t->w, ids, 0)));
	tn_backward(loss, NULL);
	tn_no_grad_enter(t->c);
	tn_sub_(t->w, tn_mul(tn_gradient(t->w), f32(t->c, 0.125)));
	tn_sub_(t->head, tn_mul(tn_gradient(t->head), f32(t->c, 0.125)));
	tn_no_grad_leave(t->c);
	tn_zero_grad(t->head);
	tn_step_leave(t->c);
	return loss;
}

/* What a compiled function does: a counter, and then one of the others. */
typedef tn_tensor *step_fn(net *t, tn_tensor *ids);
static step_fn *inside;

static tn_status body(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	net *t = user;

	tn_no_grad_enter(c);
	tn_add_(t->count, f32(c, 1));
	tn_no_grad_leave(c);
	out[0] = inside(t, in[0]);
	return TN_OK;
}

static tn_tensor *call(net *t, tn_tensor *ids, step_fn *fn)
{
	tn_tensor *loss;

	inside = fn;
	if (t->f == NULL)
		assert_int_equal(
			tn_compile(&t->f, t->c, body, t, 1, 1, "step"), TN_OK);
	assert_int_equal(tn_function_call(t->f, &ids, &loss), TN_OK);
	return loss;
}

#define IN_FUNCTION(fn)                                                        \
	static tn_tensor *fn##_called(net *t, tn_tensor *ids)                  \
	{                                                                      \
		return call(t, ids, fn);                                       \
	}
IN_FUNCTION(by_hand)
IN_FUNCTION(with_optimizer)
IN_FUNCTION(collecting)
IN_FUNCTION(through_views)
IN_FUNCTION(at_offset)
IN_FUNCTION(written_first)
IN_FUNCTION(scanned)
IN_FUNCTION(looped)
IN_FUNCTION(decided)
IN_FUNCTION(in_pieces)
IN_FUNCTION(then_region)

static const struct {
	const char *name;
	step_fn *fn;
	const char *optimizer;
} steps[] = {
	{"by hand", by_hand, NULL},
	{"counted", counted, NULL},
	{"sgd_momentum", with_optimizer, "sgd_momentum"},
	{"adamw", with_optimizer, "adamw"},
	{"collecting", collecting, NULL},
	{"through views", through_views, NULL},
	{"at an offset", at_offset, NULL},
	{"written first", written_first, NULL},
	{"computed", computed, NULL},
	{"scan", scanned, NULL},
	{"while", looped, NULL},
	{"cond", decided, NULL},
	{"in pieces", in_pieces, NULL},
	{"then a region", then_region, NULL},
	{"pieces and back", pieces_and_back, NULL},
	{"by hand, compiled", by_hand_called, NULL},
	{"sgd_momentum, compiled", with_optimizer_called, "sgd_momentum"},
	{"adamw, compiled", with_optimizer_called, "adamw"},
	{"collecting, compiled", collecting_called, NULL},
	{"through views, compiled", through_views_called, NULL},
	{"at an offset, compiled", at_offset_called, NULL},
	{"written first, compiled", written_first_called, NULL},
	{"scan, compiled", scanned_called, NULL},
	{"while, compiled", looped_called, NULL},
	{"cond, compiled", decided_called, NULL},
	{"in pieces, compiled", in_pieces_called, NULL},
	{"then a region, compiled", then_region_called, NULL},
};
enum { N_STEPS = sizeof steps / sizeof *steps };

/* ---- a net ---- */

static tn_tensor *leaf(net *t, const char *name, int32_t rank)
{
	const int64_t shape[] = {WORDS, WIDTH};
	const int64_t *s = rank == 2 ? shape : shape + 1;
	tn_tensor *x;

	if (!t->plain)
		return tn_parameter(t->c, name, TN_F32, rank, s, start);
	x = tn_tensor_new(t->c, TN_F32, rank, s, start);
	tn_requires_grad(x);
	return x;
}

static net net_new(tn_context *c, int kind, bool plain)
{
	const int64_t width = WIDTH;
	tn_optimizer_options o = TN_OPTIMIZER_OPTIONS_INIT;
	net t = {.c = c, .plain = plain};
	tn_tensor *x;

	t.w = leaf(&t, "w", 2);
	t.head = leaf(&t, "head", 1);
	t.seen = tn_tensor_new(c, TN_F32, 1, &width, NULL);
	t.count = f32(c, 0);
	t.state[t.n_state++] = t.w;
	t.state[t.n_state++] = t.head;
	t.state[t.n_state++] = t.seen;
	t.state[t.n_state++] = t.count;
	if (steps[kind].optimizer == NULL)
		return t;
	o.lr = 0.125;
	o.clip_norm = 1;
	assert_int_equal(tn_optimizer_new(&t.o, c, steps[kind].optimizer, &o),
		TN_OK);
	assert_int_equal(tn_optimizer_add(t.o, t.w), TN_OK);
	assert_int_equal(tn_optimizer_add(t.o, t.head), TN_OK);
	for (int32_t i = 0; i < 2; i++)
		for (int32_t k = 0; k < 3; k++) {
			x = tn_optimizer_state(t.o, i, k);
			if (x != NULL)
				t.state[t.n_state++] = x;
		}
	return t;
}

static void net_free(net *t)
{
	tn_function_free(t->f);
	tn_optimizer_free(t->o);
}

static void record(net *t, int kind, const int64_t *ids)
{
	tn_scope_enter(t->c);
	t->loss = tn_keep(steps[kind].fn(t, ids_of(t->c, ids)));
	tn_scope_leave(t->c);
}

/* ---- what it is made of ---- */

typedef struct snapshot {
	float at[MAX_STATE + 2][WORDS * WIDTH];
	double n_steps;
} snapshot;

static void take(net *t, snapshot *s)
{
	memset(s, 0, sizeof *s);
	for (int32_t i = 0; i < t->n_state; i++)
		if (tn_read(t->state[i], s->at[i],
			    (size_t)tn_tensor_n_elems(t->state[i]) *
				    sizeof(float)) < 0)
			fail_msg("state %d cannot be read: [%s] %s", (int)i,
				tn_context_diag(t->c)->rule,
				tn_context_diag(t->c)->text);
	for (int32_t i = 0; i < 2; i++) {
		tn_tensor *g = tn_gradient(t->state[i]);

		if (g == NULL)
			continue;
		assert_int_equal(tn_read(g, s->at[MAX_STATE + i],
			(size_t)tn_tensor_n_elems(g) * sizeof(float)), TN_OK);
		tn_drop(g);
	}
	if (t->o != NULL)
		s->n_steps = (double)tn_optimizer_steps(t->o);
	assert_int_equal(tn_context_status(t->c), TN_OK);
}

static void same(const snapshot *x, const snapshot *y, const char *name,
	const char *what)
{
	if (x->n_steps != y->n_steps)
		fail_msg("%s, %s: %g steps, not %g", name, what, x->n_steps,
			y->n_steps);
	for (int i = 0; i < MAX_STATE + 2; i++)
		if (memcmp(x->at[i], y->at[i], sizeof x->at[i]) != 0)
			fail_msg("%s, %s: state %d is %g %g %g.., not %g %g "
				 "%g..", name, what, i, (double)x->at[i][0],
				(double)x->at[i][1], (double)x->at[i][2],
				(double)y->at[i][0], (double)y->at[i][1],
				(double)y->at[i][2]);
}

static tn_context *context(bool interp)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = interp;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

#endif
