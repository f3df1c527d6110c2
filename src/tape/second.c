/*
 * second.c: a trace once more, with gradients: for gradients of gradients.
 *
 * The backward of a compiled function is recorded without a gradient: most are
 * never differentiated. When a walk is to be differentiated itself (tn_grad),
 * the backward's calls are recorded again, on operands that have a gradient:
 * a trace that is tracked, kept and differentiated like any other.
 *
 *     f: y = tanh(x * w)    back: (x, w, y, dy) -> dx, dw
 *     live: the same with gradients to x, w, y and dy; that of y joins what
 *     else arrives at y, and goes through f
 */
#include "tape/walk.h"
#include "value/capture.h"

typedef struct replay {
	tensors *t;
	t_trace *f;
	const bool *tracked; /* by operand */
	map *number;	     /* value of f -> number in made */
	arena *a;	     /* of the map */
	VEC(t_value *) made;
	t_capture c;
} replay;

static void stands_for(replay *p, const t_value *v, t_value *by)
{
	map_set(p->number, &v, sizeof v, p->made.n);
	*vec_push(p->a, &p->made) = by;
}

static t_value *made_of(const replay *p, const t_value *v)
{
	int64_t i = map_get(p->number, &v, sizeof v, -1);

	if (i < 0)
		env_bug(p->t->e, "second.replay",
			"%s reads what neither it nor its caller makes",
			p->f->name);
	return p->made.at[i];
}

static t_read read_again(replay *p, const t_read *r);

/* The same view, at offsets of the new values; kept once. */
static t_view *view_again(replay *p, t_view *w)
{
	t_view *v;

	if (w == NULL)
		return NULL;
	v = t_view_new(p->t);
	v->entry = w->entry;
	v->parent = view_again(p, w->parent);
	v->n_extra = w->n_extra;
	for (int32_t i = 0; i < w->n_extra; i++) {
		t_read x = read_again(p, &w->extra[i]);

		v->extra[i] = t_read_of(x.v, x.view);
		t_view_drop(p->t, x.view);
	}
	return v;
}

static t_read read_again(replay *p, const t_read *r)
{
	return (t_read){made_of(p, r->v), view_again(p, r->view), false, 0};
}

static t_trace *trace_live(tensors *t, t_trace *f, const bool *tracked);

/* The trace of a call inside, as it is on these operands. */
static t_trace *trace_on(replay *p, t_trace *f, const t_read *arg)
{
	tensors *t = p->t;
	bool *tracked = arena_array(t->a, bool, f->n_in + 1), any = false;

	for (int32_t i = 0; i < f->n_in; i++)
		any |= tracked[i] = arg[i].v->tracked;
	if (!any || f->holds_in != NULL)
		return f;
	return t_trace_tracked(t, trace_live(t, f, tracked));
}

static void call_again(replay *p, const t_call *q)
{
	tensors *t = p->t;
	t_read *arg = arena_array(p->a, t_read, q->n_args + 1);
	t_value *const *result;
	t_value *next;

	for (int32_t i = 0; i < q->n_args; i++)
		arg[i] = read_again(p, &q->arg[i]);
	if (q->trace != NULL) {
		result = t_record_trace(t, trace_on(p, q->trace, arg), arg)
				 ->result;
	} else if (q->entry != NULL) {
		result = t_record(t, q->entry, q->n_args, arg)->result;
	} else {
		next = t_record_write(t, arg[0], arg[1]);
		result = &next;
	}
	for (int32_t i = 0; i < q->n_results; i++)
		if (q->result[i] != NULL)
			stands_for(p, q->result[i], result[i]);
	for (int32_t i = 0; i < q->n_args; i++)
		t_view_drop(t, arg[i].view);
}

static void record(void *arg)
{
	replay *p = arg;

	for (int32_t i = 0; i < p->f->n_in; i++) {
		t_value *v = t_value_new(p->t, &p->f->in[i]->type);

		v->tracked = p->tracked[i];
		t_value_keep(v);
		stands_for(p, p->f->in[i], v);
	}
	for (int32_t k = 0; k < p->f->call.n; k++)
		call_again(p, p->f->call.at[k]);
}

static t_trace *new_live(replay *p)
{
	t_trace *f = p->f;
	t_value **out = arena_array(p->a, t_value *, f->n_out + 1);

	for (int32_t i = 0; i < f->n_out; i++)
		out[i] = made_of(p, f->out[i]);
	return trace_new(p->t, &p->c, f->n_in, p->made.at, f->n_out, out,
		f->name);
}

/* second.c: f recorded again; tracked: the operands that have a gradient */
static t_trace *trace_live(tensors *t, t_trace *f, const bool *tracked)
{
	replay p = {.t = t, .f = f, .tracked = tracked};
	int32_t no_grad = t->no_grad;
	t_live *live;
	tn_status s;

	for (int32_t i = 0; i < f->live.n; i++)
		if (memcmp(f->live.at[i]->tracked, tracked,
			    (size_t)f->n_in) == 0)
			return f->live.at[i]->f;
	p.a = arena_child(t->a);
	p.number = map_new(p.a);
	capture_begin(t, &p.c, true);
	t->no_grad = 0;
	s = env_run(t->e, record, &p);
	t->no_grad = no_grad;
	capture_end(t, &p.c);
	if (s < 0) {
		capture_drop(t, &p.c);
		for (int32_t i = 0; i < f->n_in && i < p.made.n; i++)
			t_value_drop(t, p.made.at[i]);
		arena_free(p.a);
		env_rethrow(t->e);
	}
	live = arena_make(t->a, t_live);
	live->tracked = arena_copy(t->a, tracked, (size_t)f->n_in);
	live->f = new_live(&p);
	arena_free(p.a);
	*vec_push(t->a, &f->live) = live;
	return live->f;
}

void t_trace_inline(tensors *t, t_trace *f, t_value *const *arg, t_value **out)
{
	replay p = {.t = t, .f = f, .a = arena_child(t->a)};

	p.number = map_new(p.a);
	for (int32_t i = 0; i < f->n_in; i++)
		stands_for(&p, f->in[i], arg[i]);
	for (int32_t k = 0; k < f->call.n; k++)
		call_again(&p, f->call.at[k]);
	for (int32_t i = 0; i < f->n_out; i++)
		out[i] = made_of(&p, f->out[i]);
	arena_free(p.a);
}

/* Is there a call in it that has no gradient itself? */
static bool has_last(const t_trace *f)
{
	bool any = f->is_last || f->kind != REGION_NONE;

	for (int32_t k = 0; k < f->call.n && !any; k++)
		any = f->call.at[k]->trace != NULL &&
			has_last(f->call.at[k]->trace);
	return any;
}

t_trace *t_back_live(tensors *t, const t_trace *f, const t_back *b)
{
	t_trace *back = b->trace;
	bool *tracked;

	if (b->live == NULL) /* of a region */
		return NULL;
	if (*b->live != NULL)
		return *b->live;
	if (has_last(back))
		return NULL;
	tracked = arena_array(t->a, bool, back->n_in + 1);
	for (int32_t k = 0; k < back->n_in; k++)
		tracked[k] = dtype_is_float(back->in[k]->type.dtype) &&
			(b->from_in[k] >= 0 ? f->in[b->from_in[k]]->tracked
				: b->from_out[k] >= 0
				? f->out[b->from_out[k]]->tracked
				: true);
	*b->live = t_trace_tracked(t, trace_live(t, back, tracked));
	return *b->live;
}
