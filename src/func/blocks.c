/*
 * blocks.c: evaluates a function that contains regions: its calls in order, as
 * blocks that are programs, with regions between them.
 *
 * Consumes a call of a trace whose operands are computed; records the calls of the
 * trace on them and flushes the results that are needed. Views of the caller's
 * operands are applied before those of the trace, as in program.c: writes change the
 * caller's value.
 *
 *     f(a): a.add_(1); while (..) { a.mul_(2) }; return a + w
 *     a1 = write(a, a + 1); a2 = loop(a1); y = a2 + w    two programs, a loop
 */
#include "func/region.h"

typedef struct blocks {
	tensors *t;
	t_call *c;
	const t_trace *f;
	t_region *g;
	int32_t n; /* values so far */
} blocks;

/* ---- values of the trace and those of the call ---- */

static t_read stands_for(blocks *b, const t_read *r);

/* The inner view on top of the caller's; kept once. */
static t_view *compose(blocks *b, t_view *outer, const t_view *inner)
{
	t_view *v;

	if (inner == NULL) {
		t_view_keep(outer);
		return outer;
	}
	v = t_view_new(b->t);
	v->entry = inner->entry;
	v->parent = compose(b, outer, inner->parent);
	v->n_extra = inner->n_extra;
	for (int32_t i = 0; i < inner->n_extra; i++) {
		t_read x = stands_for(b, &inner->extra[i]);

		v->extra[i] = t_read_of(x.v, x.view);
		t_view_drop(b->t, x.view);
	}
	return v;
}

static t_read stands_for(blocks *b, const t_read *r)
{
	t_read x = b->g->at[r->v->number];

	return (t_read){x.v, compose(b, x.view, r->view), false, 0};
}

/*
 * v is the next value of the trace; this reference does not need its elements. of: 1 +
 * the operand whose memory it uses.
 */
static void add_value(blocks *b, t_value *v, t_view *view, int32_t of)
{
	t_read *at = &b->g->at[b->n++];

	*at = t_read_of(v, view);
	at->window = of;
	t_read_end_data(b->t, at);
}

/* ---- calls ---- */

/*
 * Regions see whole values. What they write through the caller's view they
 * write to a copy, which is then written.
 */
static t_value *whole(blocks *b, const t_read *r)
{
	if (r->view == NULL)
		return r->v;
	return t_copy_of(b->t, r->v, r->view,
		&r->view->entry->inst->tensor[r->view->entry->inst->result[0]]
			 .type);
}

static void add_trace(blocks *b, const t_call *q, const t_read *operand)
{
	const t_trace *f = q->trace;
	t_call *made = t_record_trace(b->t, q->trace, operand);

	made->refs++;
	for (int32_t r = 0; r < q->n_results; r++) {
		t_value *v = made->result[r];
		const t_read *from = NULL;

		for (int32_t i = 0; i < q->n_args; i++)
			if (f->next[i] == r)
				from = &b->g->at[q->arg[i].v->number];
		if (from != NULL && from->view != NULL &&
			t_is_region(f))
			v = t_record_write(b->t,
				(t_read){from->v, from->view, false, 0},
				(t_read){v, NULL, false, 0});
		add_value(b, v, from != NULL ? from->view : NULL,
			from != NULL ? from->window : 0);
	}
	t_call_drop(b->t, made);
}

static void add_call(blocks *b, const t_call *q)
{
	tensors *t = b->t;
	bool is_region = q->trace != NULL && t_is_region(q->trace);
	t_read *operand = b->g->operand;
	t_call *made;

	for (int32_t i = 0; i < q->n_args; i++) {
		operand[i] = stands_for(b, &q->arg[i]);
		if (!is_region)
			continue;
		operand[i].v = whole(b, &operand[i]);
		t_view_drop(t, operand[i].view);
		operand[i].view = NULL;
	}
	if (q->trace != NULL) {
		add_trace(b, q, operand);
	} else if (q->entry != NULL) {
		made = t_record(t, q->entry, q->n_args, operand);
		for (int32_t r = 0; r < q->n_results; r++)
			add_value(b, made->result[r], NULL, 0);
	} else {
		const t_read *old = &b->g->at[q->arg[0].v->number];

		add_value(b, t_record_write(t, operand[0], operand[1]),
			old->view, old->window);
	}
	for (int32_t i = 0; i < q->n_args; i++)
		t_view_drop(t, operand[i].view);
}

static void add_operands(blocks *b)
{
	for (int32_t i = 0; i < b->f->n_in; i++) {
		const t_read *x = &b->c->arg[i];
		t_value *v = x->v;

		if (b->f->next[i] >= 0)
			v = t_take(b->t, b->c, i);
		else
			t_value_keep(v);
		b->f->in[i]->number = b->n;
		add_value(b, v, x->view, b->f->next[i] >= 0 ? i + 1 : 0);
		b->g->mine[i] = v; /* until all is recorded */
	}
}

static void add_calls(blocks *b)
{
	for (int32_t k = 0; k < b->f->call.n; k++) {
		const t_call *q = b->f->call.at[k];

		for (int32_t i = 0; i < q->n_results; i++)
			if (q->result[i] != NULL)
				q->result[i]->number = b->n + i;
		add_call(b, q);
	}
}

bool t_is_version(const t_trace *f, int32_t r)
{
	for (int32_t i = 0; i < f->n_in; i++)
		if (f->next[i] == r)
			return true;
	return false;
}

static void run(void *arg)
{
	blocks *b = arg;
	tensors *t = b->t;
	t_region *g = b->g;
	int32_t n = 0;

	add_operands(b);
	add_calls(b);
	for (int32_t r = 0; r < b->f->n_out; r++) {
		t_read x;

		if (!t_is_asked(b->c, r))
			continue;
		x = g->at[b->f->out[r]->number];
		g->made[r] = t_is_version(b->f, r) ? x.v : whole(b, &x);
		t_value_keep(g->made[r]);
		g->list[n++] = g->made[r];
	}
	for (int32_t i = 0; i < b->f->n_in; i++) {
		t_value_drop(t, g->mine[i]);
		g->mine[i] = NULL;
	}
	t_flush(t, g->list, n);
	for (int32_t i = 0; i < b->n; i++)
		t_read_drop(t, &g->at[i]);
	b->n = 0;
	for (int32_t r = 0; r < b->f->n_out; r++)
		if (g->made[r] != NULL) {
			t_value *v = g->made[r];

			g->made[r] = NULL;
			t_become(t, b->c, r, v, t_is_version(b->f, r));
		}
}

/* It failed: the newest version of an operand that has memory gives it back. */
static void undo(blocks *b)
{
	t_region *g = b->g;

	for (int32_t i = b->n - 1; i >= 0; i--) {
		const t_read *x = &g->at[i];

		if (x->window > 0 && x->v->buf != NULL)
			t_give_back(b->t, b->c->arg[x->window - 1].v, x->v);
	}
	for (int32_t i = 0; i < b->f->n_in; i++) {
		if (g->mine[i] != NULL)
			t_value_drop(b->t, g->mine[i]);
		g->mine[i] = NULL;
	}
	for (int32_t i = 0; i < b->n; i++)
		t_read_drop(b->t, &g->at[i]);
	for (int32_t r = 0; r < b->f->n_out; r++) {
		if (g->made[r] != NULL)
			t_value_drop(b->t, g->made[r]);
		g->made[r] = NULL;
	}
}

static void make_room(tensors *t, const t_trace *f)
{
	t_region *g = f->region;
	int32_t n = f->n_in, most = 0;

	if (g->at != NULL)
		return;
	for (int32_t k = 0; k < f->call.n; k++) {
		n += f->call.at[k]->n_results;
		if (f->call.at[k]->n_args > most)
			most = f->call.at[k]->n_args;
	}
	g->operand = arena_array(t->a, t_read, most + 1);
	g->mine = arena_array(t->a, t_value *, f->n_in + 1);
	g->made = arena_array(t->a, t_value *, f->n_out + 1);
	g->list = arena_array(t->a, t_value *, f->n_out + 1);
	g->at = arena_array(t->a, t_read, n + 1);
}

void t_run_blocks(tensors *t, t_call *c)
{
	blocks b = {.t = t, .c = c, .f = c->trace, .g = c->trace->region};
	tn_status s;

	make_room(t, b.f);
	t->running++;
	s = env_run(t->e, run, &b);
	if (s < 0)
		undo(&b);
	t->running--;
	if (s < 0)
		env_rethrow(t->e);
}
