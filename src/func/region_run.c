/*
 * region_run.c: evaluates regions by calling bodies on values.
 *
 * Consumes a call whose operands are computed; computes its results. A call of a body
 * is flushed at once, so its program is compiled when it runs for the first time, and
 * then looked up. A storage that a body writes is meanwhile a private value in the
 * memory of the operand, so every round writes in place. Carried values alternate
 * between two buffers.
 *
 * Rows are computed in the memory of the whole result.
 */
#include "func/region.h"

/* ---- memory ---- */

/* Drops results of a body that are not needed. */
static void drop_unasked(tensors *t, t_call *c)
{
	for (int32_t r = 0; r < c->n_results; r++) {
		t_value *v = c->result[r];

		if (v == NULL || v->refs > 0)
			continue;
		t_value_keep(v);
		t_value_drop(t, v);
	}
}

/* Row i of a dense value, in its memory. */
static t_buffer *row_of(
	tensors *t, const t_buffer *b, int64_t i, const ir_type *row)
{
	size_t n = ir_type_bytes(row);

	return t_buffer_import(t, (char *)b->data + (size_t)i * n, n);
}

/* ---- room ---- */

typedef struct running {
	tensors *t;
	t_call *c;
	t_region *g;
	t_call *round; /* of a body, while it runs */
	int64_t i, n;  /* the current round, and the most */
} running;

static void make_room(tensors *t, const t_trace *f)
{
	t_region *g = f->region;
	int32_t n = f->n_in > g->n_carries ? f->n_in : g->n_carries;
	int32_t most = n;

	if (g->operand != NULL)
		return;
	for (int32_t k = 0; k < 2; k++)
		if (g->body[k] != NULL && g->body[k]->n_in > most)
			most = g->body[k]->n_in;
	g->operand = arena_array(t->a, t_read, most + 1);
	g->mine = arena_array(t->a, t_value *, n + 1);
	g->then = arena_array(t->a, t_value *, n + 1);
	g->lent = arena_array(t->a, t_value *, n + 1);
	g->made = arena_array(t->a, t_value *, f->n_out + 1);
	g->list = arena_array(t->a, t_value *, n + f->n_out + 2);
	g->rows = arena_array(t->a, t_buffer *, f->n_out + 1);
	g->rounds.same = arena_array(t->a, const t_value *, most + 1);
	g->type = arena_array(t->a, ir_type, f->n_in + f->n_out + 1);
	g->data = arena_array(t->a, void *, f->n_in + f->n_out + 1);
}

static bool is_true(tensors *t, const t_value *v)
{
	return t_load_i64(t, v) != 0;
}

static void end_value(tensors *t, t_value **v)
{
	if (*v != NULL)
		t_value_drop(t, *v);
	*v = NULL;
}

/* ---- conditions ---- */

static void take_operands(running *j)
{
	const t_trace *f = j->c->trace;

	for (int32_t i = 0; i < f->n_in; i++)
		if (f->next[i] >= 0)
			j->g->mine[i] = t_take(j->t, j->c, i);
}

/* The branch as a call; what it writes is the call's alone. */
static void record_arm(running *j, int32_t k)
{
	t_region *g = j->g;
	const t_trace *f = g->body[k];

	for (int32_t i = 0; i < f->n_in; i++) {
		int32_t at = g->feed[k][i].at;

		g->operand[i] = (t_read){g->mine[at] != NULL
				? g->mine[at]
				: j->c->arg[at].v,
			NULL, false, 0};
	}
	j->round = t_record_trace(j->t, g->body[k], g->operand);
	j->round->refs++;
	for (int32_t i = 0; i < f->n_in; i++)
		if (f->next[i] >= 0) {
			g->lent[g->feed[k][i].at] = g->operand[i].v;
			end_value(j->t, &g->mine[g->feed[k][i].at]);
		}
}

static void run_cond(void *arg)
{
	running *j = arg;
	tensors *t = j->t;
	t_region *g = j->g;
	t_call *c = j->c;
	int32_t k = is_true(t, c->arg[0].v) ? 0 : 1, n = 0;

	take_operands(j);
	record_arm(j, k);
	for (int32_t r = 0; r < c->n_results; r++) {
		int32_t at = g->yield[r].at[k];

		if (at < 0 || !t_is_asked(c, r))
			continue;
		g->made[r] = g->list[n++] = j->round->result[at];
		t_value_keep(g->made[r]);
	}
	drop_unasked(t, j->round);
	if (n > 0)
		t_flush(t, g->list, n);
	for (int32_t r = 0; r < c->n_results; r++) {
		int32_t at = g->yield[r].at[k];
		t_value *v = g->made[r];

		if (!t_is_asked(c, r))
			continue;
		g->made[r] = NULL;
		if (v == NULL && at <= -2) {
			v = g->mine[-2 - at];
			g->mine[-2 - at] = NULL;
		}
		if (v != NULL)
			t_become(t, c, r, v, t_is_version(c->trace, r));
		else /* of the other branch: nobody looks at it */
			t_settle_result(t, c->result[r],
				t_buffer_new(
					t, ir_type_bytes(&c->result[r]->type)));
	}
}

/* ---- loops ---- */

static void begin_loop(running *j)
{
	tensors *t = j->t;
	t_region *g = j->g;
	t_call *c = j->c;

	for (int32_t k = 0; k < g->n_carries; k++) {
		const t_carry *x = &g->carry[k];
		t_value *v;

		if (x->in_place) {
			g->mine[k] = t_take(t, c, x->from);
			continue;
		}
		v = x->from >= 0
			? c->arg[x->from].v
			: t_value_new(t, &g->body[0]->out[x->next]->type);
		t_value_keep(v);
		g->mine[k] = v;
		if (x->from < 0) {
			v->buf = t_buffer_new(t, ir_type_bytes(&v->type));
			t_zero(t, v->buf->data, ir_type_bytes(&v->type));
		}
	}
	for (int32_t r = 0; r < c->n_results; r++) {
		const t_yield *y = &g->yield[r];

		if (!t_is_asked(c, r) || (y->kind != YIELD_ROWS &&
				y->kind != YIELD_EACH))
			continue;
		g->rows[r] = t_buffer_new(t, ir_type_bytes(&c->result[r]->type));
		if (y->kind == YIELD_EACH)
			t_copy(t, g->rows[r]->data,
				g->mine[y->at[0]]->buf->data,
				ir_type_bytes(&g->mine[y->at[0]]->type));
	}
	j->n = g->n;
	if (g->test >= 0 && g->n == 0)
		j->n = INT64_MAX;
	if (g->count >= 0)
		j->n = t_load_i64(t, c->arg[g->count].v);
}

/* A new key for each round, from that of the loop. */
static t_value *key_of(running *j, const t_feed *x, const ir_type *type)
{
	t_value *v = t_value_new(j->t, type);
	int64_t z[3] = {t_load_i64(j->t, j->c->arg[x->at].v),
		j->g->reverse ? j->n - 1 - j->i : j->i, x->row};
	int64_t key = (int64_t)(hash_bytes(z, sizeof z, 0) >> 1);

	v->buf = t_buffer_new(j->t, sizeof key);
	t_put(j->t, v->buf->data, &key, sizeof key);
	return v;
}

static t_value *fed(running *j, const t_feed *x, const ir_type *type)
{
	int64_t row = j->g->reverse ? j->n - 1 - j->i : j->i;
	t_value *v;

	switch (x->kind) {
	case FEED_OPERAND:
		break;
	case FEED_CARRY:
		return j->g->mine[x->at];
	case FEED_ROW:
		v = t_value_new(j->t, type);
		v->buf = row_of(j->t, j->c->arg[x->at].v->buf, row + x->row,
			type);
		return v;
	case FEED_KEY:
		return key_of(j, x, type);
	}
	return j->c->arg[x->at].v;
}

static void record_round(running *j, int32_t k)
{
	t_region *g = j->g;
	t_trace *f = g->body[k];

	for (int32_t i = 0; i < f->n_in; i++)
		g->operand[i] = (t_read){
			fed(j, &g->feed[k][i], &f->in[i]->type), NULL, false,
			0};
	j->round = t_record_trace(j->t, f, g->operand);
	j->round->refs++;
}

static void end_round(running *j)
{
	t_call_drop(j->t, j->round);
	j->round = NULL;
}

/* Evaluates the test before the first round. */
static bool first_test(running *j)
{
	t_value *v;
	bool go;

	if (j->g->body[1] == NULL)
		return true;
	j->i = -1;
	record_round(j, 1);
	j->i = 0;
	v = j->round->result[0];
	t_value_keep(v);
	t_flush(j->t, &v, 1);
	go = is_true(j->t, v);
	t_value_drop(j->t, v);
	end_round(j);
	return go;
}

/* What the round makes, and where; what it was made of is the call's alone. */
static int32_t ask_for(running *j)
{
	tensors *t = j->t;
	t_region *g = j->g;
	t_call *c = j->c;
	int64_t row = g->reverse ? j->n - 1 - j->i : j->i;
	int32_t n = 0;

	for (int32_t k = 0; k < g->n_carries; k++) {
		const t_carry *x = &g->carry[k];

		g->then[k] = x->pass >= 0 ? g->mine[x->pass]
					  : j->round->result[x->next];
		t_value_keep(g->then[k]);
		if (x->pass < 0)
			g->list[n++] = g->then[k];
	}
	for (int32_t k = 0; k < g->n_carries; k++) {
		if (g->carry[k].in_place)
			g->lent[k] = g->mine[k];
		end_value(t, &g->mine[k]);
	}
	for (int32_t r = 0; r < c->n_results; r++) {
		const t_yield *y = &g->yield[r];
		t_value *v;

		if (g->rows[r] == NULL)
			continue;
		if (y->kind == YIELD_ROWS) {
			v = g->made[r] = g->list[n++] =
				j->round->result[y->at[0]];
			t_value_keep(v);
			v->place = row_of(t, g->rows[r], row, &v->type);
			continue;
		}
		v = g->then[y->at[0]];
		if (!g->carry[y->at[0]].in_place &&
			g->carry[y->at[0]].pass < 0)
			v->place = row_of(t, g->rows[r], row + 1, &v->type);
	}
	return n;
}

/* Carried values whose memory is elsewhere are put into their row. */
static void fill_rows(running *j)
{
	t_region *g = j->g;

	for (int32_t r = 0; r < j->c->n_results; r++) {
		const t_yield *y = &g->yield[r];
		const t_value *v;
		size_t bytes;
		char *to;

		if (g->rows[r] == NULL)
			continue;
		end_value(j->t, &g->made[r]);
		if (y->kind != YIELD_EACH)
			continue;
		v = g->then[y->at[0]];
		bytes = ir_type_bytes(&v->type);
		to = (char *)g->rows[r]->data + (size_t)(j->i + 1) * bytes;
		if (to != v->buf->data)
			t_copy(j->t, to, v->buf->data, bytes);
	}
}

static bool one_round(running *j)
{
	tensors *t = j->t;
	t_region *g = j->g;
	t_value *test = NULL;
	bool go = true;
	int32_t n;

	record_round(j, 0);
	n = ask_for(j);
	if (g->test >= 0) {
		test = g->list[n++] = j->round->result[g->test];
		t_value_keep(test);
	}
	drop_unasked(t, j->round);
	t_flush(t, g->list, n);
	end_round(j);
	fill_rows(j);
	for (int32_t k = 0; k < g->n_carries; k++) {
		g->mine[k] = g->then[k];
		g->then[k] = g->lent[k] = NULL;
	}
	if (test != NULL) {
		go = is_true(t, test);
		t_value_drop(t, test);
	}
	return go;
}

static void end_loop(running *j)
{
	tensors *t = j->t;
	t_region *g = j->g;
	t_call *c = j->c;

	for (int32_t r = 0; r < c->n_results; r++) {
		const t_yield *y = &g->yield[r];
		t_value *v;

		if (!t_is_asked(c, r))
			continue;
		switch (y->kind) {
		case YIELD_LAST:
			v = g->mine[y->at[0]];
			g->mine[y->at[0]] = NULL;
			t_become(t, c, r, v, g->carry[y->at[0]].in_place);
			break;
		case YIELD_ROWS:
		case YIELD_EACH:
			t_settle_result(t, c->result[r], g->rows[r]);
			g->rows[r] = NULL;
			break;
		case YIELD_COUNT:
			g->rows[r] = t_buffer_new(t, sizeof j->i);
			t_put(t, g->rows[r]->data, &j->i, sizeof j->i);
			t_settle_result(t, c->result[r], g->rows[r]);
			g->rows[r] = NULL;
			break;
		case YIELD_BODY:
			break;
		}
	}
}

/* What all rounds read, if there are several: copies of it can be kept. */
static void begin_rounds(running *j)
{
	t_region *g = j->g;

	g->rounds.n = 0;
	g->rounds.id = ++j->t->n_loops;
	for (int32_t i = 0; i < g->body[0]->n_in && g->n != 1; i++)
		if (g->feed[0][i].kind == FEED_OPERAND)
			g->rounds.same[g->rounds.n++] =
				j->c->arg[g->feed[0][i].at].v;
	j->t->rounds = &g->rounds;
}

static void run_loop(void *arg)
{
	running *j = arg;
	bool go;

	begin_loop(j);
	go = first_test(j);
	begin_rounds(j);
	while (j->i < j->n && go) {
		go = one_round(j);
		j->i++;
	}
	end_loop(j);
}

/* ---- functions in C ---- */

/* On a device with memory of its own, the function gets copies. */
static void copy_arrays(running *j, arena *a, bool back)
{
	t_region *g = j->g;
	run_device *d = j->t->b.device;
	int32_t n = j->c->n_args;

	for (int32_t i = 0; i < n && !back; i++) {
		size_t bytes = ir_type_bytes(&g->type[i]);

		g->data[i] = arena_alloc(a, bytes + 1, 1);
		d->get(d, g->data[i], j->c->arg[i].v->buf->data, bytes);
	}
	for (int32_t r = 0; r < j->c->n_results; r++) {
		size_t bytes = ir_type_bytes(&g->type[n + r]);

		if (back)
			d->put(d, g->rows[r]->data, g->data[n + r], bytes);
		else
			g->data[n + r] = arena_alloc(a, bytes + 1, 1);
	}
}

static void call_host(running *j)
{
	t_region *g = j->g;
	int32_t n = j->c->n_args;

	g->host.fn(g->host.arg, n, g->type, (const void *const *)g->data,
		j->c->n_results, g->type + n, g->data + n);
}

static void call_host_on_copies(arena *a, void *arg)
{
	running *j = arg;

	copy_arrays(j, a, false);
	call_host(j);
	copy_arrays(j, a, true);
}

static void run_host(void *arg)
{
	running *j = arg;
	t_region *g = j->g;
	t_call *c = j->c;
	int32_t n = c->n_args;

	for (int32_t i = 0; i < n; i++) {
		g->type[i] = c->arg[i].v->type;
		g->data[i] = c->arg[i].v->buf->data;
	}
	for (int32_t r = 0; r < c->n_results; r++) {
		g->type[n + r] = c->trace->out[r]->type;
		g->rows[r] = t_buffer_new(j->t, ir_type_bytes(&g->type[n + r]));
		g->data[n + r] = g->rows[r]->data;
	}
	if (j->t->b.device->is_host)
		call_host(j);
	else
		arena_run(j->t->e, call_host_on_copies, j);
	for (int32_t r = 0; r < c->n_results; r++) {
		if (!t_is_asked(c, r))
			continue;
		t_settle_result(j->t, c->result[r], g->rows[r]);
		g->rows[r] = NULL;
	}
}

/* ---- as a program ---- */

static void run_program(void *arg)
{
	running *j = arg;

	t_region_run_program(j->t, j->c);
}

/* ---- the whole ---- */

/* Cleans up; after a failure, written operands get their memory back. */
static void clean(running *j, bool failed)
{
	tensors *t = j->t;
	t_region *g = j->g;
	const t_trace *f = j->c->trace;
	int32_t n = f->n_in > g->n_carries ? f->n_in : g->n_carries;

	for (int32_t k = 0; k < n; k++) {
		bool is_loop = f->kind == REGION_LOOP;
		int32_t from = is_loop && k < g->n_carries
			? (g->carry[k].in_place ? g->carry[k].from : -1)
			: is_loop || k >= f->n_in ? -1
						  : k;
		t_value *v = g->lent[k] != NULL ? g->lent[k] : g->mine[k];

		if (failed && from >= 0 && f->next[from] >= 0 && v != NULL)
			t_give_back(t, j->c->arg[from].v, v);
		g->lent[k] = NULL;
		end_value(t, &g->mine[k]);
		end_value(t, &g->then[k]);
	}
	for (int32_t r = 0; r < f->n_out; r++) {
		end_value(t, &g->made[r]);
		if (g->rows[r] != NULL)
			t_buffer_drop(t, g->rows[r]);
		g->rows[r] = NULL;
	}
	if (j->round != NULL) {
		drop_unasked(t, j->round);
		end_round(j);
	}
}

/*
 * Several programs write what the region writes, and a later one may fail. Each
 * leaves its params as they were before it, but not as they were before the
 * region: the outermost one keeps a copy of what it writes in the memory that
 * it takes over.
 */
static bool may_fail_between(const t_trace *f)
{
	const t_region *g = f->region;

	return f->kind == REGION_LOOP || f->kind == REGION_BLOCKS ||
	       (f->kind == REGION_COND && (g->body[0]->kind != REGION_NONE ||
					       g->body[1]->kind != REGION_NONE));
}

static void save_operands(tensors *t, t_call *c)
{
	t_region *g = c->trace->region;

	if (g->saved == NULL)
		g->saved = arena_array(t->a, t_buffer *, c->trace->n_in + 1);
	for (int32_t i = 0; i < c->n_args; i++) {
		const t_value *v = c->arg[i].v;

		if (c->trace->next[i] < 0 || v->buf->refs > 1 ||
			t_is_wanted_beside(t, c, i))
			continue;
		g->saved[i] = t_buffer_new(t, ir_type_bytes(&v->type));
		t_copy(t, g->saved[i]->data, v->buf->data,
			ir_type_bytes(&v->type));
	}
}

static void end_saved(tensors *t, t_call *c, bool failed)
{
	t_region *g = c->trace->region;

	for (int32_t i = 0; g->saved != NULL && i < c->n_args; i++) {
		t_value *v = c->arg[i].v;
		t_buffer *b = g->saved[i];

		g->saved[i] = NULL;
		if (b == NULL)
			continue;
		if (failed && v->buf != NULL)
			t_copy(t, v->buf->data, b->data,
				ir_type_bytes(&v->type));
		if (failed && v->buf == NULL)
			v->buf = b;
		else
			t_buffer_drop(t, b);
	}
}

static void run_region(tensors *t, t_call *c);

struct region_call {
	tensors *t;
	t_call *c;
};

static void run_saved(void *arg)
{
	const struct region_call *r = arg;

	save_operands(r->t, r->c);
	run_region(r->t, r->c);
}

void t_region_run(tensors *t, t_call *c)
{
	struct region_call r = {t, c};
	tn_status s;

	if (c->trace->region == NULL)
		c->trace->region = arena_make(t->a, t_region); /* BLOCKS */
	if (t->running > 0 || !may_fail_between(c->trace)) {
		run_region(t, c);
		return;
	}
	s = env_run(t->e, run_saved, &r);
	end_saved(t, c, s < 0);
	if (s < 0)
		env_rethrow(t->e);
}

static void run_region(tensors *t, t_call *c)
{
	static void (*const run[])(void *) = {[REGION_COND] = run_cond,
		[REGION_LOOP] = run_loop,
		[REGION_HOST] = run_host};
	running j = {.t = t, .c = c, .g = c->trace->region};
	const t_rounds *around = t->rounds;
	void (*run_it)(void *) = run[c->trace->kind];
	tn_status s;

	t->rounds = NULL;
	if (c->trace->kind == REGION_BLOCKS) {
		t_run_blocks(t, c);
		t->rounds = around;
		return;
	}
	make_room(t, c->trace);
	if (t_region_is_program(t, c))
		run_it = run_program;
	t->running++;
	s = env_run(t->e, run_it, &j);
	clean(&j, s < 0);
	t->running--;
	t->rounds = around;
	if (s < 0)
		env_rethrow(t->e);
}
