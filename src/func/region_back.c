/*
 * region_back.c: the backward of a region is a region.
 *
 * Consumes a region of which something has a gradient; produces the same with
 * what its backward reads as further results, and that backward. A body's own
 * backward is that of a trace (trace.c): its reads of operands, results and
 * middles are found where the region has them.
 *
 *     cond   the same condition over the backwards of both bodies; middles of
 *            one type share a result, since one branch alone has run
 *     loop   the same rounds in reverse: cotangents are carried; what differs
 *            from round to round was kept in rows; gradients of what every
 *            round reads are sums that are carried, too, or calls on rows
 *            behind the loop (back_sum.c)
 *     host   the function that was given for it
 *
 * What is kept of a loop: what is carried, before each round, if the body's
 * backward reads it; middles, a row each. Rows of inputs and outputs are there.
 */
#include "func/back.h"

/* ---- loops ---- */

/* The number of a result of the region, or -1. */
static int32_t result_with(const deriving *d, enum yield_kind kind, int32_t at)
{
	for (int32_t r = 0; r < d->f->n_known; r++)
		if (d->yield.at[r].kind == kind && d->yield.at[r].at[0] == at)
			return r;
	return -1;
}

static const t_region *loop_of(const deriving *d)
{
	return d->f->region;
}

/* The carried tensor that is result r of the body, or -1. */
static int32_t carried_as(const t_region *g, int32_t r)
{
	for (int32_t k = 0; k < g->n_carries; k++)
		if (g->carry[k].next == r)
			return k;
	return -1;
}

/* Adds a carried tensor to the backward, starting with operand `from`; -1: zeros. */
static t_value *carry(deriving *d, int32_t from, const ir_type *type)
{
	int32_t n = d->d.carry.n;

	*vec_push(d->t->a, &d->d.carry) = (t_carry){from, -1, -1, false};
	return back_fed(d, (t_feed){FEED_CARRY, n, 0}, type);
}

static t_value *row_in(
	deriving *d, enum side side, int32_t i, int32_t row, const ir_type *type)
{
	return back_fed(d, (t_feed){FEED_ROW, back_operand(d, side, i), row}, type);
}

/* Of carry k: its value before a round, or behind it. */
static t_value *state(deriving *d, int32_t k, int32_t row)
{
	const ir_type *y =
		&d->g->body[0]->out[loop_of(d)->carry[k].next]->type;
	ir_type rows = back_rows_type(d, y, d->g->n + 1);

	return row_in(d, OF_OUT,
		back_kept(d, (t_yield){YIELD_EACH, {k, -1}}, &rows), row, y);
}

static t_value *loop_seed(deriving *d, const t_trace *body, int32_t r)
{
	int32_t k = carried_as(loop_of(d), r);

	if (k >= 0)
		return back_fed(d, (t_feed){FEED_CARRY, d->cotangent[k], 0},
			&body->out[r]->type);
	return row_in(d, OF_SEED, result_with(d, YIELD_ROWS, r), 0,
		&body->out[r]->type);
}

static t_value *loop_operand(deriving *d, const t_trace *body, int32_t i)
{
	const t_feed *x = &loop_of(d)->feed[0][i];
	const ir_type *y = &body->in[i]->type;

	switch (x->kind) {
	case FEED_OPERAND:
	case FEED_KEY:
		break;
	case FEED_CARRY:
		return state(d, x->at, 0);
	case FEED_ROW:
		return row_in(d, OF_IN, x->at, x->row, y);
	}
	return back_fed(d, (t_feed){x->kind, back_operand(d, OF_IN, x->at), x->row}, y);
}

static t_value *loop_read(
	deriving *d, const t_trace *body, const t_back *b, int32_t k)
{
	int32_t r = b->from_out[k], at;
	ir_type rows;

	if (b->from_seed[k] >= 0)
		return loop_seed(d, body, b->from_seed[k]);
	if (b->from_in[k] >= 0)
		return loop_operand(d, body, b->from_in[k]);
	at = carried_as(loop_of(d), r);
	if (at >= 0)
		return state(d, at, 1);
	rows = back_rows_type(d, &body->out[r]->type, d->g->n);
	return row_in(d, OF_OUT,
		back_kept(d, (t_yield){YIELD_ROWS, {r, -1}}, &rows), 0,
		&body->out[r]->type);
}

/* The operand of the loop that is operand i of its body. */
static int32_t outer_operand(const deriving *d, int32_t i)
{
	const t_feed *x = &loop_of(d)->feed[0][i];

	return x->kind == FEED_CARRY ? loop_of(d)->carry[x->at].from : x->at;
}

/* A sum over the rounds, for operand i. */
static void add_up(deriving *d, int32_t i, int32_t kind, t_value *g)
{
	int32_t n = d->d.carry.n;
	t_value *sum = carry(d, -1, &g->type);

	d->d.carry.at[n].next = back_made(d, back_sum_of(d->t, sum, g));
	back_give(d, i, kind, (t_yield){YIELD_LAST, {n, -1}}, &g->type);
}

static void find_cotangents(deriving *d, const t_trace *body)
{
	const t_region *g = loop_of(d);
	const t_back *b = body->back.at[0];
	int32_t *at = arena_array(d->t->a, int32_t, g->n_carries + 1);

	d->cotangent = at;
	for (int32_t k = 0; k < g->n_carries; k++) {
		int32_t r = result_with(d, YIELD_LAST, k);
		const ir_type *y = &body->out[g->carry[k].next]->type;
		bool made = r >= 0 && t_is_made(d->f->out[r]), any = made;

		at[k] = -1;
		for (int32_t j = 0; b->trace != NULL && j < b->trace->n_out;
			j++) {
			const t_feed *x = &g->feed[0][b->of_in[j]];

			any |= b->kind[j] == BACK_OPERAND &&
				x->kind == FEED_CARRY && x->at == k;
		}
		if (!any || !dtype_is_float(y->dtype))
			continue;
		at[k] = d->d.carry.n;
		(void)carry(d, made ? back_operand(d, OF_SEED, r) : -1, y);
	}
}

/* The body's backward, call by call: what it makes, or NULL. */
static t_value **loop_back(deriving *d, const t_trace *body)
{
	const t_back *b = body->back.at[0];
	t_value **arg, **made;

	if (b->trace == NULL)
		return NULL;
	arg = arena_array(d->t->a, t_value *, b->trace->n_in + 1);
	made = arena_array(d->t->a, t_value *, b->trace->n_out + 1);
	for (int32_t k = 0; k < b->trace->n_in; k++)
		arg[k] = loop_read(d, body, b, k);
	t_trace_inline(d->t, b->trace, arg, made);
	return made;
}

static t_value *gradient(const t_back *b, t_value *const *back, int32_t i)
{
	for (int32_t j = 0; back != NULL && j < b->trace->n_out; j++)
		if (b->kind[j] == BACK_OPERAND && b->of_in[j] == i)
			return back[j];
	return NULL;
}

/* The cotangent of carry k after a round. */
static void end_cotangent(deriving *d, const t_trace *body,
	t_value *const *back, int32_t k, int32_t at)
{
	const t_region *g = loop_of(d);
	const t_carry *x = &g->carry[k];
	const t_value *out = body->out[x->next];
	t_value *next = NULL, *now;

	for (int32_t i = 0; i < body->n_in; i++)
		if (g->feed[0][i].kind == FEED_CARRY && g->feed[0][i].at == k)
			next = gradient(body->back.at[0], back, i);
	now = back_fed(d, (t_feed){FEED_CARRY, at, 0}, &out->type);
	if (next == NULL)
		next = back_zeros(d->t, &out->type);
	d->d.carry.at[at].next = back_made(d, next);
	if (x->from >= 0)
		back_give(d, x->from, BACK_OPERAND, (t_yield){YIELD_LAST, {at, -1}},
			&out->type);
	/* a leaf that the body makes: of the round before for those behind */
	if (x->in_place && out->tracked && !t_is_made(out))
		add_up(d, x->from, BACK_OLD_LEAF, now);
}

static void loop_body(void *arg)
{
	deriving *d = arg;
	const t_region *g = loop_of(d);
	const t_trace *body = d->g->body[0];
	const t_back *b = body->back.at[0];
	t_value **back;

	find_cotangents(d, body);
	back = loop_back(d, body);
	for (int32_t k = 0; k < g->n_carries; k++)
		if (d->cotangent[k] >= 0)
			end_cotangent(d, body, back, k, d->cotangent[k]);
	for (int32_t j = 0; back != NULL && j < b->trace->n_out; j++) {
		int32_t i = b->of_in[j];
		const t_feed *x = &g->feed[0][i];
		t_value *v = back[j];
		ir_type rows;

		if (b->kind[j] != BACK_OPERAND) {
			add_up(d, outer_operand(d, i), BACK_OLD_LEAF, v);
		} else if (x->kind == FEED_OPERAND) {
			if (!back_sum_rows(d, x->at, v))
				add_up(d, x->at, BACK_OPERAND, v);
		} else if (x->kind == FEED_ROW) {
			rows = back_rows_type(d, &v->type, d->g->n);
			back_give(d, x->at, BACK_OPERAND,
				(t_yield){YIELD_ROWS, {back_made(d, v), -1}},
				&rows);
		}
	}
}

/* Everything in it is a function of the rounds that were there. */
static void new_loop(deriving *d)
{
	static const ir_type count = {.dtype = TN_I64};

	d->g->body[0] = t_trace_tracked(d->t, d->g->body[0]);
	d->d.kind = REGION_LOOP;
	d->d.g.n = d->g->n;
	d->d.g.reverse = true;
	back_begin(d, 0);
	loop_body(d);
	back_end(d);
	if (d->g->test >= 0)
		d->d.g.count = back_operand(d, OF_OUT,
			back_kept(d, (t_yield){YIELD_COUNT, {-1, -1}}, &count));
}

/* ---- functions in C ---- */

static void new_host(deriving *d)
{
	const t_trace *f = d->f;

	d->d.kind = REGION_HOST;
	d->d.g.host = (t_host){d->g->host.back, NULL, d->g->host.arg};
	for (int32_t i = 0; i < f->n_in; i++)
		(void)back_operand(d, OF_IN, i);
	for (int32_t r = 0; r < f->n_known; r++)
		(void)back_operand(d, OF_OUT, r);
	for (int32_t r = 0; r < f->n_known; r++)
		if (dtype_is_float(f->out[r]->type.dtype))
			(void)back_operand(d, OF_SEED, r);
	for (int32_t i = 0; i < f->n_in; i++)
		if (dtype_is_float(f->in[i]->type.dtype))
			back_give(d, i, BACK_OPERAND,
				(t_yield){YIELD_BODY, {d->given.n, -1}},
				&f->in[i]->type);
}

/* ---- the whole ---- */

static const char *back_name(const deriving *d)
{
	return arena_printf(d->t->a, "%s backward", d->f->name);
}

static t_trace *make_region(deriving *d)
{
	return t_region_make(d->t, &d->d, back_name(d), false);
}

/* May result r be what the region was given? Rows and sums of them are new. */
static bool is_shared(const deriving *d, int32_t r)
{
	return r >= 0 && d->d.yield.at[r].kind != YIELD_ROWS &&
	       d->d.yield.at[r].kind != YIELD_EACH;
}

static t_back *new_back(deriving *d)
{
	arena *a = d->t->a;
	t_back *b = arena_make(a, t_back);
	int32_t n = d->seen.n;

	b->seeded = arena_array(a, bool, d->f->n_known + 1);
	if (d->given.n == 0)
		return b;
	b->trace = d->made_of != NULL ? d->made_of : make_region(d);
	b->from_in = arena_array(a, int32_t, n + 1);
	b->from_out = arena_array(a, int32_t, n + 1);
	b->from_seed = arena_array(a, int32_t, n + 1);
	for (int32_t k = 0; k < n; k++) {
		const seen *s = &d->seen.at[k];

		b->from_in[k] = s->side == OF_IN ? s->i : -1;
		b->from_out[k] = s->side == OF_OUT ? s->i : -1;
		b->from_seed[k] = s->side == OF_SEED ? s->i : -1;
	}
	b->of_in = arena_array(a, int32_t, d->given.n);
	b->kind = arena_alloc(a, (size_t)d->given.n, sizeof *b->kind);
	b->shared = arena_array(a, bool, d->given.n);
	for (int32_t k = 0; k < d->given.n; k++) {
		b->of_in[k] = d->given.at[k].of_in;
		b->kind[k] = d->given.at[k].kind;
		b->shared[k] = is_shared(d, d->given.at[k].result);
	}
	return b;
}

static t_region *copy_region(arena *a, const t_region *g)
{
	t_region *x = arena_make(a, t_region);

	*x = (t_region){.body = {g->body[0], g->body[1]},
		.feed = {g->feed[0], g->feed[1]},
		.n_carries = g->n_carries,
		.n = g->n,
		.count = g->count,
		.test = g->test,
		.reverse = g->reverse,
		.host = g->host};
	x->carry = arena_array(a, t_carry, g->n_carries + 1);
	for (int32_t k = 0; k < g->n_carries; k++)
		x->carry[k] = g->carry[k];
	return x;
}

/* Is the memory for the backward unbounded? */
static bool is_endless(const t_trace *f)
{
	return f->kind == REGION_LOOP && f->region->test >= 0 &&
	       f->region->n == 0;
}

static void derive(void *arg)
{
	deriving *d = arg;

	if (is_endless(d->f))
		return;
	switch (d->f->kind) {
	case REGION_LOOP:
		new_loop(d);
		break;
	case REGION_COND:
		back_cond(d);
		break;
	case REGION_HOST:
		new_host(d);
		break;
	case REGION_NONE:
	case REGION_BLOCKS:
		break;
	}
	if (d->sum.n > 0)
		d->made_of = back_with_sums(d, make_region(d), back_name(d));
}

static t_trace *tracked_copy(deriving *d, t_back *b)
{
	tensors *t = d->t;
	t_trace *g = arena_copy(t->a, d->f, sizeof *d->f);

	g->id = t->n_traces++;
	g->region = d->g;
	g->n_out = d->out.n;
	g->out = d->out.at;
	d->g->yield = d->yield.at;
	g->back.at = NULL;
	g->back.n = g->back.cap = 0;
	g->live.n = g->live.cap = 0;
	g->live.at = NULL;
	*vec_push(t->a, &g->back) = b;
	g->holds_in = arena_array(t->a, bool, g->n_in + 1);
	g->holds_out = arena_array(t->a, bool, g->n_out + 1);
	for (int32_t k = 0; b->trace != NULL && k < b->trace->n_in; k++) {
		if (b->from_in[k] >= 0)
			g->holds_in[b->from_in[k]] = true;
		if (b->from_out[k] >= 0)
			g->holds_out[b->from_out[k]] = true;
	}
	return g;
}

t_trace *t_region_tracked(tensors *t, t_trace *f)
{
	deriving d = {.t = t, .f = f, .g = copy_region(t->a, f->region)};
	t_capture *outside = t->capture;
	int64_t id = t->capture_id;
	tn_status s;

	for (int32_t r = 0; r < f->n_out; r++) {
		*vec_push(t->a, &d.out) = f->out[r];
		*vec_push(t->a, &d.yield) = f->region->yield[r];
	}
	t_draft_clear(&d.d);
	t->no_grad++;
	s = env_run(t->e, derive, &d);
	t->no_grad--;
	t->capture = outside;
	t->capture_id = id;
	if (s < 0)
		env_rethrow(t->e);
	f->tracked = tracked_copy(&d, new_back(&d));
	return f->tracked;
}

const t_back *t_region_back(tensors *t, const t_trace *f)
{
	if (is_endless(f))
		env_fail(t->e, TN_EINVAL, "while.rounds",
			t_here(t),
			"the loop has no bound on its rounds, so it has no "
			"gradient: give the largest number of rounds, or "
			"detach its results");
	return f->back.at[0]; /* of all results, with zeros for cotangents */
}
