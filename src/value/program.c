/*
 * program.c: the calls of a flush as one program.
 *
 * Consumes calls in order with their values numbered; produces an ir_program.
 * A call of a compiled function is put in: its own calls, on the values that
 * the caller gives. What it writes is then written to the caller's value
 * itself, through the view that the caller gave:
 *
 *     f(a): a.add_(1)        f(x[0:4])   ->   x1 = write(x[0:4], x[0:4] + 1)
 */
#include "value/node.h"

/* What stands before the view of a read: of a caller, and of its caller. */
typedef struct prefix {
	t_view *view;
	const struct prefix *outer;
} prefix;

typedef struct made {
	int32_t value; /* of the program; a whole version, if there is a prefix */
	const prefix *p;
} made;

typedef struct building {
	tensors *t;
	ir_program *p;
	int32_t *input;	  /* program value of each */
	VEC(made) result; /* the same of results, by number / 2 */
	VEC(int32_t) hint, at; /* values that are wanted somewhere: 1 + place */
	int32_t depth;	  /* functions in functions */
	int32_t todo;	  /* the call of t->todo that is put in */
	t_put_region *put;
	void *put_arg;
} building;

enum { MAX_DEPTH = 64 };

/* The program's call is one of the call that is put in. */
static int32_t made_by(building *b, int32_t call)
{
	*vec_push(b->t->a, &b->t->made_of) = (t_made_of){call, b->todo};
	return call;
}

static int32_t seen_through(
	building *b, int32_t value, const t_view *w, int32_t depth);

static int32_t before_view(building *b, int32_t value, const prefix *p)
{
	if (p == NULL)
		return value;
	return seen_through(b, before_view(b, value, p->outer), p->view, 0);
}

static made made_of(const building *b, const t_value *v)
{
	return v->number % 2
		? (made){b->input[v->number / 2], NULL}
		: b->result.at[v->number / 2];
}

static int32_t value_of(building *b, const t_value *v)
{
	made m = made_of(b, v);

	return before_view(b, m.value, m.p);
}

static int32_t read_value(building *b, const t_read *r, int32_t depth)
{
	if (r->window > 0)
		return b->input[r->window - 1];
	return seen_through(b, value_of(b, r->v), r->view, depth);
}

static int32_t seen_through(
	building *b, int32_t value, const t_view *w, int32_t depth)
{
	int32_t arg[1 + T_MAX_EXTRA];

	if (w == NULL)
		return value;
	if (depth > 200)
		env_fail(b->t->e, TN_EINVAL, "tensor.view", (loc){0},
			"this is a view of more than 200 views of views: use "
			"tn_copy on one of them");
	arg[0] = seen_through(b, value, w->parent, depth + 1);
	for (int32_t i = 0; i < w->n_extra; i++)
		arg[i + 1] = read_value(b, &w->extra[i], depth + 1);
	value = made_by(b, ir_program_inst(b->p, w->entry->inst,
				   1 + w->n_extra, arg, NULL, (loc){0}));
	return b->p->call.at[value].result[0];
}

/*
 * A value that can have a next version: a param, or what the program makes
 * itself. An input that is only read has none.
 */
static int32_t own_value(building *b, int32_t value)
{
	const ir_value *v = &b->p->value.at[value];
	int32_t call;

	if (v->next_version < 0 &&
		(v->is_param || (v->call >= 0 &&
			!ir_inst_is_view(b->p->call.at[v->call].inst))))
		return value;
	call = made_by(b, ir_program_call(b->p, "copy", 1, &value, 0, NULL,
				  NULL, (loc){0}));
	return b->p->call.at[call].result[0];
}

static void set(building *b, int32_t number, int32_t value)
{
	b->result.at[number] = (made){value, NULL};
}

static void add_write(building *b, const t_call *c, int32_t number)
{
	made old = made_of(b, c->arg[0].v);
	int32_t value = read_value(b, &c->arg[1], 0);
	int32_t root = own_value(b, old.value);
	int32_t view = seen_through(
		b, before_view(b, root, old.p), c->arg[0].view, 0);

	value = ir_program_write(b->p, view, value, NULL, (loc){0});
	made_by(b, b->p->value.at[value].call);
	b->result.at[number] = (made){value, old.p};
}

/*
 * A region: its operands are whole values; what it leaves in one is written there,
 * through the view that the caller gave.
 */
static void add_region(building *b, const t_call *c, int32_t number)
{
	const t_trace *f = c->trace;
	int32_t *operand = arena_array(b->p->a, int32_t, f->n_in + 1);
	int32_t *result = arena_array(b->p->a, int32_t, f->n_out + 1);

	for (int32_t i = 0; i < f->n_in; i++)
		operand[i] = read_value(b, &c->arg[i], 0);
	b->put(b->t, b->p, f, operand, result, b->put_arg);
	for (int32_t r = 0; r < f->n_out; r++)
		set(b, number + r, result[r]);
	for (int32_t i = 0; i < f->n_in; i++) {
		made old = made_of(b, c->arg[i].v);
		int32_t root, view;

		if (f->next[i] < 0)
			continue;
		root = own_value(b, old.value);
		view = seen_through(
			b, before_view(b, root, old.p), c->arg[i].view, 0);
		b->result.at[number + f->next[i]] = (made){
			ir_program_write(b->p, view, result[f->next[i]], NULL,
				(loc){0}),
			old.p};
	}
}

static void add_row(building *b, const t_call *c, int32_t number)
{
	int32_t *arg = arena_array(b->p->a, int32_t, c->n_args + 1), call;

	for (int32_t i = 0; i < c->n_args; i++)
		arg[i] = read_value(b, &c->arg[i], 0);
	call = made_by(b, ir_program_inst(b->p, c->entry->inst, c->n_args, arg,
				  NULL, (loc){0}));
	for (int32_t i = 0; i < c->n_results; i++)
		set(b, number + i, b->p->call.at[call].result[i]);
}

static void add_call(building *b, t_call *c, int32_t number);

/* Numbers for values inside a trace; places for what they will be. */
static void add_operands(building *b, const t_call *c)
{
	const t_trace *f = c->trace;
	made *m = arena_array(b->p->a, made, f->n_in + 1);

	for (int32_t i = 0; i < f->n_in; i++) {
		if (f->next[i] < 0) {
			m[i] = (made){read_value(b, &c->arg[i], 0), NULL};
			continue;
		}
		m[i] = made_of(b, c->arg[i].v);
		if (c->arg[i].view != NULL) {
			prefix *p = arena_make(b->p->a, prefix);

			*p = (prefix){c->arg[i].view, m[i].p};
			m[i].p = p;
		}
	}
	for (int32_t i = 0; i < f->n_in; i++) {
		f->in[i]->number = 2 * b->result.n;
		*vec_push(b->p->a, &b->result) = m[i];
	}
}

static void add_calls(building *b, const t_trace *f, int32_t from, int32_t to)
{
	for (int32_t k = from; k < to; k++) {
		t_call *q = f->call.at[k];
		int32_t first = b->result.n;

		for (int32_t i = 0; i < q->n_results; i++) {
			if (q->result[i] != NULL)
				q->result[i]->number = 2 * b->result.n;
			*vec_push(b->p->a, &b->result) = (made){-1, NULL};
		}
		add_call(b, q, first);
	}
}

/* Calls of a trace that are made again are put where they are needed. */
typedef struct sinking {
	building *b;
	const t_trace *f;
	map *maker; /* value -> number of its call */
	bool *is_made;
} sinking;

static void sink(sinking *s, int32_t k);

static void sink_read(sinking *s, const t_read *r)
{
	int32_t k = (int32_t)map_get(s->maker, &r->v, sizeof r->v, -1);

	if (k >= 0)
		sink(s, k);
	for (const t_view *w = r->view; w != NULL; w = w->parent)
		for (int32_t j = 0; j < w->n_extra; j++)
			sink_read(s, &w->extra[j]);
}

/* Adds call k, behind those that it reads. */
static void sink(sinking *s, int32_t k)
{
	const t_call *q = s->f->call.at[k];
	building *b = s->b;
	int32_t first;

	if (k < s->f->n_again && s->is_made[k])
		return;
	for (int32_t i = 0; i < q->n_args; i++)
		sink_read(s, &q->arg[i]);
	first = b->result.n;
	add_calls(b, s->f, k, k + 1);
	if (k >= s->f->n_again)
		return;
	s->is_made[k] = true;
	for (int32_t i = 0; i < q->n_results; i++) {
		int32_t v = b->result.at[first + i].value;

		if (v >= 0)
			b->p->value.at[v].again = true;
	}
}

static void add_sunk(building *b, const t_trace *f)
{
	sinking s = {b, f, map_new(b->p->a),
		arena_array(b->p->a, bool, f->n_again + 1)};

	for (int32_t k = 0; k < f->n_again; k++)
		for (int32_t i = 0; i < f->call.at[k]->n_results; i++) {
			t_value *v = f->call.at[k]->result[i];

			if (v != NULL)
				map_set(s.maker, &v, sizeof v, k);
		}
	for (int32_t k = f->n_again; k < f->call.n; k++)
		sink(&s, k);
	for (int32_t k = 0; k < f->n_again; k++) /* results themselves */
		sink(&s, k);
}

static void add_trace(building *b, const t_call *c, int32_t number)
{
	const t_trace *f = c->trace;
	int32_t *was = arena_array(b->p->a, int32_t, f->n_in + 1);

	if (t_is_region(f)) {
		add_region(b, c, number);
		return;
	}
	if (++b->depth > MAX_DEPTH)
		env_fail(b->t->e, TN_EINVAL, "compile.depth", (loc){0},
			"more than %d compiled functions call each other",
			MAX_DEPTH);
	for (int32_t i = 0; i < f->n_in; i++)
		was[i] = f->in[i]->number;
	add_operands(b, c);
	if (f->n_again > 0 && b->t->memory_limit >= 0)
		add_sunk(b, f);
	else
		add_calls(b, f, 0, f->call.n);
	for (int32_t i = 0; i < f->n_out; i++)
		set(b, number + i, value_of(b, f->out[i]));
	for (int32_t i = 0; i < f->n_in; i++) /* the caller's whole version */
		if (f->next[i] >= 0) {
			made m = made_of(b, f->out[f->next[i]]);

			if (c->arg[i].view != NULL)
				m.p = m.p->outer;
			b->result.at[number + f->next[i]] = m;
		}
	for (int32_t i = 0; i < f->n_in; i++)
		f->in[i]->number = was[i];
	b->depth--;
}

/* A value of its own, even if another is equal: it is to lie elsewhere. */
static void want(building *b, int32_t value, int32_t at)
{
	b->p->value.at[value].apart = true;
	*vec_push(b->p->a, &b->hint) = value;
	*vec_push(b->p->a, &b->at) = at;
}

static void add_call(building *b, t_call *c, int32_t number)
{
	if (c->trace != NULL)
		add_trace(b, c, number);
	else if (c->entry != NULL)
		add_row(b, c, number);
	else
		add_write(b, c, number);
	for (int32_t i = 0; b->t->placed && c->entry != NULL &&
		i < c->n_results;
		i++)
		if (c->result[i] != NULL && c->result[i]->want != 0)
			want(b, b->result.at[number + i].value,
				c->result[i]->want);
}

static bool is_same(const t_rounds *r, const t_value *v)
{
	for (int32_t i = 0; r != NULL && i < r->n; i++)
		if (r->same[i] == v)
			return true;
	return false;
}

/* Is it only read, and a parameter, or in rounds an operand of the loop? */
bool t_is_steady(const tensors *t, int32_t input)
{
	const t_value *v = t->input.at[input];

	if (t->base.at[input] != NULL)
		return false;
	return t->rounds != NULL ? is_same(t->rounds, v)
				 : v->buf->is_external && !v->buf->is_lent;
}

int64_t t_version_of(const tensors *t, int32_t input)
{
	const t_value *v = t->input.at[input];

	if (!v->buf->is_lent)
		return 1 + v->id;
	/* nobody writes to it while the loop runs */
	return is_same(t->rounds, v) ? -t->rounds->id : 0;
}

ir_program *t_program(tensors *t, arena *a)
{
	building b = {.t = t, .p = ir_program_new(a, t->table)};
	int32_t n = 0;

	t->made_of.n = 0;
	b.p->in_rounds = t->rounds != NULL;
	b.input = arena_array(a, int32_t, t->input.n + 1);
	for (int32_t k = 0; k < t->todo.n; k++)
		for (int32_t i = 0; i < t->todo.at[k]->n_results; i++)
			*vec_push(a, &b.result) = (made){-1, NULL};
	for (int32_t i = 0; i < t->input.n; i++) {
		const char *name = arena_printf(a, "x%d", (int)i);
		const ir_type *y = t->stretch.at[i].type;

		b.input[i] = t->base.at[i] != NULL
			? ir_program_param(b.p, name, *y, (loc){0})
			: ir_program_input(b.p, name, *y, (loc){0});
		b.p->value.at[b.input[i]].steady = t_is_steady(t, i);
	}
	for (int32_t k = 0; k < t->todo.n; k++) {
		b.todo = k;
		add_call(&b, t->todo.at[k], n);
		n += t->todo.at[k]->n_results;
	}
	t->want.n = 0;
	for (int32_t i = 0; i < t->output.n; i++) {
		ir_program_output(b.p, value_of(&b, t->output.at[i]));
		*vec_push(t->a, &t->want) = t->output.at[i]->place != NULL
			? 1
			: t->output.at[i]->want;
	}
	for (int32_t i = 0; i < b.hint.n; i++) {
		ir_program_output(b.p, b.hint.at[i]);
		*vec_push(t->a, &t->want) = b.at.at[i];
	}
	return b.p;
}

/* ---- a trace by itself ---- */

/* v is this value of the program from here on. */
static void is_now(building *b, t_value *v, int32_t value)
{
	v->number = 2 * b->result.n;
	*vec_push(b->p->a, &b->result) = (made){value, NULL};
}

static void add_forward(building *b, t_halves *h, const char *const *name)
{
	const t_trace *f = h->f;
	ir_program *p = h->p;

	for (int32_t i = 0; i < f->n_in; i++) {
		const ir_type *y = &f->in[i]->type;

		h->in[i] = f->next[i] >= 0
			? ir_program_param(p, name[i], *y, (loc){0})
			: ir_program_input(p, name[i], *y, (loc){0});
		is_now(b, f->in[i], h->in[i]);
	}
	h->forward = p->value.n;
	add_calls(b, f, 0, f->call.n);
	for (int32_t i = 0; i < f->n_out; i++)
		h->out[i] = value_of(b, f->out[i]);
}

static void add_backward(building *b, t_halves *h, const char *const *seed)
{
	const t_back *back = h->b;
	const t_trace *g = back->trace;
	ir_program *p = h->p;

	for (int32_t k = 0; k < g->n_in; k++)
		h->read[k] = back->from_in[k] >= 0 ? h->in[back->from_in[k]]
			: back->from_out[k] >= 0
			? h->out[back->from_out[k]]
			: ir_program_input(p, seed[k], g->in[k]->type, (loc){0});
	for (int32_t k = 0; k < g->n_in; k++)
		is_now(b, g->in[k], h->read[k]);
	h->again = p->value.n;
	add_calls(b, g, 0, g->n_again);
	h->backward = p->value.n;
	add_calls(b, g, g->n_again, g->call.n);
	for (int32_t i = 0; i < g->n_out; i++)
		h->grad[i] = value_of(b, g->out[i]);
}

void t_program_halves(tensors *t, arena *a, t_halves *h,
	const char *const *name, const char *const *seed)
{
	building b = {.t = t,
		.p = ir_program_new(a, t->table),
		.put = h->put,
		.put_arg = h->put_arg};

	t->made_of.n = 0;
	h->p = b.p;
	h->in = arena_array(a, int32_t, h->f->n_in + 1);
	h->out = arena_array(a, int32_t, h->f->n_out + 1);
	add_forward(&b, h, name);
	h->seed = h->again = h->backward = h->p->value.n;
	if (h->b != NULL) {
		h->read = arena_array(a, int32_t, h->b->trace->n_in + 1);
		h->grad = arena_array(a, int32_t, h->b->trace->n_out + 1);
		add_backward(&b, h, seed);
	}
	t->made_of.n = 0;
}

void t_program_body(tensors *t, ir_program *p, const t_trace *f,
	const int32_t *in, int32_t *out, t_put_region *put, void *put_arg)
{
	building b = {.t = t, .p = p, .put = put, .put_arg = put_arg};
	int32_t *was = arena_array(p->a, int32_t, f->n_in + 1);

	for (int32_t i = 0; i < f->n_in; i++) {
		was[i] = f->in[i]->number;
		is_now(&b, f->in[i], in[i]);
	}
	add_calls(&b, f, 0, f->call.n);
	for (int32_t i = 0; i < f->n_out; i++)
		out[i] = value_of(&b, f->out[i]);
	for (int32_t i = 0; i < f->n_in; i++)
		f->in[i]->number = was[i];
}

int32_t t_halves_seen(tensors *t, t_halves *h, int32_t value,
	const t_view *view)
{
	building b = {.t = t, .p = h->p};

	value = seen_through(&b, value, view, 0);
	t->made_of.n = 0;
	return value;
}

