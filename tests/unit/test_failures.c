/*
 * Evaluations that fail: every tensor is then as it was before the step, can be
 * read and written, and the next step gives the same bits as if the bad one had
 * not been. Kinds of steps x who is looked at first, compiled and interpreted.
 */
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

/* The state can be written in every way, and is put back. */
static void write_all(net *t, const snapshot *s, const char *name)
{
	for (int32_t i = 0; i < t->n_state; i++) {
		tn_tensor *x = t->state[i];
		size_t n = (size_t)tn_tensor_n_elems(x) * sizeof(float);
		float got[WORDS * WIDTH];
		tn_status r = TN_OK;

		tn_scope_enter(t->c);
		tn_no_grad_enter(t->c);
		r = tn_fill_(x, 3);
		r = r < 0 ? r : tn_copy_(x, tn_mul(x, f32(t->c, 2)));
		r = r < 0 ? r : tn_read(x, got, n);
		if (r < 0 || got[0] != 6)
			fail_msg("%s: state %d cannot be written", name,
				(int)i);
		tn_no_grad_leave(t->c);
		tn_scope_leave(t->c);
		assert_int_equal(tn_set_data(x, s->at[i], n), TN_OK);
	}
}

/* ---- sequences ---- */

enum look { LOOK_LOSS, LOOK_ALL, LOOK_ONE, LOOK_LATER, N_LOOKS };

static tn_status look(net *t, int kind, enum look how)
{
	float got[WORDS * WIDTH];
	bool writes_w = strstr(steps[kind].name, "collecting") == NULL;

	switch (how) {
	case LOOK_LOSS:
		return tn_read(t->loss, got, sizeof *got);
	case LOOK_ALL:
		return tn_eval(t->state, t->n_state);
	case LOOK_ONE:
		return writes_w ? tn_read(t->w, got, sizeof got)
				: tn_eval(&t->seen, 1);
	case LOOK_LATER:
	case N_LOOKS:
		break;
	}
	return TN_ERANGE;
}

static void fails(net *t, tn_status s, const char *name)
{
	if (s != TN_ERANGE)
		fail_msg("%s: a bad index gives status %d", name, s);
	if (tn_context_status(t->c) < 0 &&
		strcmp(tn_context_diag(t->c)->rule, "index.range") != 0)
		fail_msg("%s: [%s] %s", name, tn_context_diag(t->c)->rule,
			tn_context_diag(t->c)->text);
	tn_context_clear(t->c);
}

/* What the bad step made fails each time, and only that. */
static void loss_fails(net *t, const char *name)
{
	float got;

	for (int i = 0; i < 2; i++)
		fails(t, tn_read(t->loss, &got, sizeof got), name);
}

static void sequence(int kind, enum look how, bool interp, bool plain)
{
	const char *name = steps[kind].name;
	tn_options o = TN_OPTIONS_INIT;
	snapshot want, before, now;
	tn_context *c;
	net t;

	o.interp = interp;
	for (int k = 0; k < 2; k++) {
		assert_int_equal(tn_context_new(&c, &o), TN_OK);
		t = net_new(c, kind, plain);
		record(&t, kind, good[0]);
		if (how != LOOK_LATER)
			take(&t, &before);
		tn_drop(t.loss);
		if (k == 1) {
			record(&t, kind, bad);
			fails(&t, look(&t, kind, how), name);
			loss_fails(&t, name);
			take(&t, &now);
			if (how != LOOK_LATER) {
				same(&now, &before, name, "after a bad step");
				write_all(&t, &before, name);
			}
			loss_fails(&t, name);
			if (how != LOOK_ONE)
				tn_drop(t.loss);
		}
		record(&t, kind, good[1]);
		if (k == 0)
			take(&t, &want);
		else
			take(&t, &now);
		net_free(&t);
		tn_context_free(c);
	}
	same(&now, &want, name, "good, bad, good");
}

static void sequences(bool interp, bool plain)
{
	for (int k = 0; k < N_STEPS; k++)
		for (int how = 0; how < N_LOOKS; how++)
			sequence(k, (enum look)how, interp, plain);
}

static void interpreted(void **state)
{
	(void)state;
	sequences(true, false);
	sequences(true, true);
}

static void compiled(void **state)
{
	(void)state;
	sequences(false, false);
}

static void compiled_plain(void **state)
{
	(void)state;
	sequences(false, true);
}

static tn_context *context(bool interp)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = interp;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

/* ---- no memory, no compiler ---- */

/*
 * The first allocation to fail. Under AddressSanitizer each block of an arena
 * is an allocation of its own, and a read makes some before it evaluates: a
 * step is then not begun, still waits, and runs whole when it is read next.
 */
#ifdef __SANITIZE_ADDRESS__
enum { FIRST = 64 };
#else
enum { FIRST = 1 };
#endif

static long n_calls, fail_at;

static void *resize(void *arg, void *old, size_t n)
{
	(void)arg;
	if (n == 0) {
		free(old);
		return NULL;
	}
	return ++n_calls == fail_at ? NULL : realloc(old, n);
}

/* Allocation number n of the evaluation fails; false: there are fewer. */
static bool without_memory(int kind, bool interp, long n, const snapshot *want)
{
	tn_options o = TN_OPTIONS_INIT;
	snapshot before, now;
	tn_context *c;
	tn_status s;
	net t;

	o.interp = interp;
	o.memory.resize = resize;
	fail_at = 0;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	t = net_new(c, kind, false);
	record(&t, kind, good[0]);
	take(&t, &before);
	tn_drop(t.loss);
	record(&t, kind, good[1]);
	n_calls = 0;
	fail_at = n;
	s = look(&t, kind, LOOK_ALL);
	fail_at = 0;
	if (s < 0) {
		assert_int_equal(s, TN_ENOMEM);
		tn_context_clear(c);
		take(&t, &now);
		same(&now, &before, steps[kind].name, "without memory");
		record(&t, kind, good[1]);
	}
	take(&t, &now);
	same(&now, want, steps[kind].name, "again with memory");
	net_free(&t);
	tn_context_free(c);
	return s < 0;
}

static void memory(void **state)
{
	static const char *const names[] = {"by hand", "adamw", "scan", "cond",
		"written first, compiled", "while, compiled"};
	snapshot want;
	net t;

	(void)state;
	for (int k = 0; k < N_STEPS; k++)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			long n = FIRST;

			if (strcmp(names[i], steps[k].name) != 0)
				continue;
			t = net_new(context(true), k, false);
			record(&t, k, good[0]);
			take(&t, &want);
			record(&t, k, good[1]);
			take(&t, &want);
			net_free(&t);
			tn_context_free(t.c);
			while (without_memory(k, true, n, &want))
				n += 1 + n / 16;
			assert_true(n > 20);
		}
}

static void no_compiler(void **state)
{
	const char *was = getenv("TENON_CC");
	char *copy = was != NULL ? strdup(was) : NULL;
	tn_options o = TN_OPTIONS_INIT;
	snapshot before, now;
	tn_context *c;
	net t;

	(void)state;
	setenv("TENON_CC", "/bin/false", 1);
	o.cache_dir = "";
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	t = net_new(c, 0, false);
	take(&t, &before);
	for (int i = 0; i < 2; i++) {
		record(&t, 0, good[i]);
		assert_int_equal(
			tn_eval(t.state, t.n_state), TN_ECOMPILE);
		tn_context_clear(c);
		take(&t, &now);
		same(&now, &before, "by hand", "without a compiler");
		assert_int_equal(tn_set_data(t.w, start, sizeof start), TN_OK);
	}
	if (copy != NULL)
		setenv("TENON_CC", copy, 1);
	else
		unsetenv("TENON_CC");
	free(copy);
	net_free(&t);
	tn_context_free(c);
}

/* ---- what has nothing to go back to ---- */

static void never_good(void **state)
{
	tn_context *c = context(true);
	tn_tensor *x = tn_tensor_new(c, TN_F32, 1, &(int64_t){3}, start), *y, *z;
	tn_tensor *id = tn_scalar(c, TN_I64, 9), *view;
	float got[3];

	(void)state;
	y = tn_take(x, id, 0);
	z = tn_add(x, y); /* no version of it is good */
	tn_add_(z, x);
	view = tn_narrow(z, 0, 1, 2);
	tn_copy_(x, z);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(tn_read(z, got, sizeof got), TN_ERANGE);
		assert_int_equal(tn_read(view, got, 8), TN_ERANGE);
		tn_context_clear(c);
	}
	assert_int_equal(tn_read(x, got, sizeof got), TN_OK);
	assert_memory_equal(got, start, sizeof got);
	/* until all of it is written */
	tn_fill_(view, 5);
	assert_int_equal(tn_read(z, got, sizeof got), TN_ERANGE);
	tn_context_clear(c);
	assert_int_equal(tn_fill_(z, 1), TN_OK);
	tn_fill_(view, 5);
	assert_int_equal(tn_read(z, got, sizeof got), TN_OK);
	assert_true(got[0] == 1 && got[1] == 5 && got[2] == 5);
	assert_int_equal(tn_set_data(z, start, sizeof got), TN_OK);
	assert_int_equal(tn_read(z, got, sizeof got), TN_OK);
	assert_memory_equal(got, start, sizeof got);
	assert_int_equal(tn_read(y, got, 4), TN_ERANGE);
	tn_context_free(c);
}

/* ---- writes to what repeats elements ---- */

static tn_status add_one(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	tn_tensor *x = user != NULL ? tn_narrow(in[0], 0, 0, 1) : in[0];

	tn_add_(x, f32(c, 1));
	out[0] = sum(in[0]);
	return TN_OK;
}

static tn_status outer(tn_context *c, void *user, tn_tensor *const *in,
	tn_tensor **out)
{
	tn_tensor *x = tn_transpose(in[0], ((int64_t[]){1, 0}), 2);

	(void)c;
	return tn_function_call(user, &x, out);
}

static void repeated(void **state)
{
	const int64_t shape[] = {2, 3};

	(void)state;
	for (int interp = 0; interp < 2; interp++) {
		tn_context *c = context(interp);
		tn_tensor *x = tn_tensor_new(c, TN_F32, 1, &shape[1], start);
		tn_tensor *all = tn_broadcast_to(x, shape, 2), *out;
		tn_tensor *whole = tn_tensor_new(c, TN_F32, 2, shape, start);
		tn_function *f[4];
		float got[3];

		assert_true(tn_compile(&f[0], c, add_one, NULL, 1, 1, "f") >= 0);
		assert_true(tn_compile(&f[1], c, outer, f[0], 1, 1, "g") >= 0);
		assert_true(tn_compile(&f[2], c, add_one, c, 1, 1, "h") >= 0);
		for (int k = 0; k < 2; k++)
			for (int i = 0; i < 2; i++) {
				assert_int_equal(tn_function_call(f[k], &all,
							 &out), TN_EINVAL);
				assert_string_equal(
					tn_context_diag(c)->rule,
					"write.repeats");
				tn_context_clear(c);
				assert_int_equal(tn_function_call(f[k], &whole,
							 &out), TN_OK);
			}
		assert_int_equal(tn_add_(all, f32(c, 1)), TN_EINVAL);
		tn_context_clear(c);
		assert_int_equal(tn_read(x, got, sizeof got), TN_OK);
		assert_memory_equal(got, start, sizeof got);
		/* one of the rows alone is no repetition */
		assert_int_equal(tn_function_call(f[2], &all, &out), TN_OK);
		assert_int_equal(tn_read(x, got, sizeof got), TN_OK);
		assert_true(got[0] == start[0] + 1);
		for (int k = 0; k < 3; k++)
			tn_function_free(f[k]);
		tn_context_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interpreted),
		cmocka_unit_test(compiled),
		cmocka_unit_test(compiled_plain),
		cmocka_unit_test(memory),
		cmocka_unit_test(no_compiler),
		cmocka_unit_test(never_good),
		cmocka_unit_test(repeated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
