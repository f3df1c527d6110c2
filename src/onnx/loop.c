/*
 * loop.c: recurrences as loops: the body becomes a program of its own, which is
 * compiled once and run for each round.
 *
 *     h' = tanh(x[t] + h r'), 2000 steps     loop(h0, x, r) of one small program
 *
 * The body is built once, among the calls of the program, with placeholders for
 * what differs from round to round; then the calls between placeholders and
 * results are copied into the program of the body. What they read beside
 * placeholders is the same in every round, and an operand of the loop, so it is
 * computed once, before the first round.
 *
 *     level 0   weights, what is computed of them
 *     level 1   what depends on a placeholder of the loop
 *     level 2   .. of a loop in its body
 *
 * A loop is unrolled as long as that is the faster form, and where it has no
 * other: a shape depends on the round, what is carried changes its shape, a round
 * draws random numbers, or it has too many operands. The rounds of an unrolled
 * loop share one compilation with the calls around them.
 */
#include "onnx/ops.h"

#include "interp/interp.h"

/*
 * Loops of so few rounds are unrolled: their kernels join with those around them,
 * and for 4 steps of a small LSTM that gains more than a second, smaller program
 * saves.
 */
enum { SHORT = 4 };

typedef struct trial {
	node *d;
	const on_loop *l;
	int32_t *hole; /* placeholders: what is carried, rows */
	int32_t *made; /* results of the body */
	int32_t *out;
	arena *tmp;
	bool *taken; /* by call of the import's program: is it in the body? */
	VEC(int32_t) same; /* values that are the same in every round */
	VEC(int32_t) todo;
	map *seen; /* values -> 1 */
	int32_t *number; /* by value: its number in the body */
	ir_program *body;
} trial;

static _Noreturn void unroll(const trial *t, const char *why)
{
	on_fail(t->d, "onnx.round", "%s", why);
}

/* ---- placeholders ---- */

static int32_t add_hole(trial *t, const ir_type *type)
{
	onnx_import *x = t->d->x;
	int32_t v;

	if (shape_numel(type->shape, type->rank) == 0)
		unroll(t, "a value of a round has no elements");
	v = ir_program_input(x->p,
		arena_printf(x->a, "in%d", x->p->input.n), *type,
		(loc){.file = x->where});
	onnx_fact(x, v)->level = x->level;
	x->p->value.at[v].shown = NULL;
	return v;
}

static void build_body(trial *t)
{
	const on_loop *l = t->l;
	node *d = t->d;

	for (int32_t i = 0; i < l->n_carried + l->n_rows; i++) {
		ir_type type = *on_ty(d, l->in[i]);

		if (i >= l->n_carried) {
			type.rank--;
			memmove(type.shape, type.shape + 1,
				(size_t)type.rank * sizeof type.shape[0]);
		}
		t->hole[i] = add_hole(t, &type);
	}
	l->body(d, l->arg, t->hole, t->made);
	for (int32_t i = 0; i < l->n_carried; i++)
		if (!ir_type_same(on_ty(d, t->made[i]), on_ty(d, t->hole[i])))
			unroll(t, "what a loop carries changes its shape");
	for (int32_t i = l->n_carried; i < l->n_carried + l->n_out; i++)
		if (on_rank_of(d, t->made[i]) == TN_MAX_RANK ||
			on_numel(d, t->made[i]) == 0)
			unroll(t, "a row of a loop has too many axes, or no "
				  "elements");
}

/* ---- what is in the body ---- */

static void visit(trial *t, int32_t v)
{
	if (map_get(t->seen, &v, sizeof v, 0) != 0)
		return;
	map_set(t->seen, &v, sizeof v, 1);
	*vec_push(t->tmp, &t->todo) = v;
}

/*
 * Is the call in the body? Constants and views of what is the same in every round
 * are: they take no time there, and as operands they would need memory.
 */
static bool is_inside(trial *t, int32_t v)
{
	onnx_import *x = t->d->x;
	const fact *f = onnx_fact(x, v);
	int32_t c = x->p->value.at[v].call;

	if (c < 0 || f->is_carried || f->is_folded)
		return false;
	return f->level >= x->level || x->p->call.at[c].n_args == 0 ||
	       ir_inst_is_view(x->p->call.at[c].inst);
}

static bool is_hole(const trial *t, int32_t v)
{
	for (int32_t i = 0; i < t->l->n_carried + t->l->n_rows; i++)
		if (t->hole[i] == v)
			return true;
	return false;
}

static void find_calls(trial *t)
{
	onnx_import *x = t->d->x;

	t->seen = map_new(t->tmp);
	t->taken = arena_array(t->tmp, bool, x->p->call.n + 1);
	for (int32_t i = 0; i < t->l->n_carried + t->l->n_out; i++)
		visit(t, t->made[i]);
	while (t->todo.n > 0) {
		int32_t v = vec_pop(&t->todo), c = x->p->value.at[v].call;

		if (is_hole(t, v))
			continue;
		if (!is_inside(t, v)) {
			*vec_push(x->a, &t->same) = v;
			continue;
		}
		if (t->taken[c])
			continue;
		t->taken[c] = true;
		for (int32_t i = 0; i < x->p->call.at[c].n_args; i++)
			visit(t, x->p->call.at[c].arg[i]);
	}
}

/* ---- the program of the body ---- */

static void add_input(trial *t, int32_t v, char kind)
{
	const ir_program *p = t->d->x->p;

	t->number[v] = ir_program_input(t->body,
		arena_printf(t->d->x->a, "%c%d", kind, (int)t->body->input.n),
		p->value.at[v].type, p->value.at[v].at);
	t->body->value.at[t->number[v]].steady = kind == 'w';
}

/* A row that no call reads is not an operand. */
static bool is_read(const trial *t, int32_t row)
{
	return map_get(t->seen, &t->hole[row], sizeof t->hole[row], 0) != 0;
}

static void add_call(trial *t, const ir_call *c)
{
	int32_t *arg = arena_array(t->d->x->a, int32_t, c->n_args + 1);
	int32_t number;

	for (int32_t i = 0; i < c->n_args; i++)
		arg[i] = t->number[c->arg[i]];
	number = ir_program_inst(t->body, c->inst, c->n_args, arg, NULL, c->at);
	for (int32_t i = 0; i < c->n_results; i++)
		t->number[c->result[i]] = t->body->call.at[number].result[i];
}

static void make_body(trial *t)
{
	const ir_program *p = t->d->x->p;
	const on_loop *l = t->l;

	t->body = ir_program_new(t->d->x->a, p->table);
	t->number = arena_array(t->tmp, int32_t, p->value.n + 1);
	for (int32_t i = 0; i < l->n_carried; i++)
		add_input(t, t->hole[i], 's');
	for (int32_t i = l->n_carried; i < l->n_carried + l->n_rows; i++)
		if (is_read(t, i))
			add_input(t, t->hole[i], 'x');
	for (int32_t i = 0; i < t->same.n; i++)
		add_input(t, t->same.at[i], 'w');
	for (int32_t i = 0; i < p->call.n; i++)
		if (t->taken[i])
			add_call(t, &p->call.at[i]);
	for (int32_t i = 0; i < l->n_carried + l->n_out; i++)
		ir_program_output(t->body, t->number[t->made[i]]);
}

/* ---- the call ---- */

static void add_loop(trial *t)
{
	onnx_import *x = t->d->x;
	const on_loop *l = t->l;
	ir_loop *own = arena_make(x->a, ir_loop);
	int32_t n_arg = 0, number, *arg, level = 0;
	const ir_call *c;
	bool is_const = true;

	arg = arena_array(x->a, int32_t,
		l->n_carried + l->n_rows + t->same.n + 1);
	*own = (ir_loop){.body = t->body, .n = l->n,
		.n_carried = l->n_carried, .n_out = l->n_out,
		.n_same = t->same.n};
	for (int32_t i = 0; i < l->n_carried + l->n_rows; i++) {
		if (i >= l->n_carried && !is_read(t, i))
			continue;
		own->n_rows += i >= l->n_carried;
		arg[n_arg++] = l->in[i];
	}
	for (int32_t i = 0; i < t->same.n; i++)
		arg[n_arg++] = t->same.at[i];
	if (n_arg > IR_MAX_OPERANDS ||
		l->n_carried + l->n_out > IR_MAX_OUT)
		unroll(t, "a loop has too many operands or results");
	number = ir_program_loop(x->p, own, interp_loop, n_arg, arg, NULL,
		(loc){.file = x->where});
	c = &x->p->call.at[number];
	for (int32_t i = 0; i < n_arg; i++) {
		const fact *f = onnx_fact(x, arg[i]);

		is_const = is_const && f->is_const;
		level = f->level > level ? f->level : level;
	}
	for (int32_t i = 0; i < c->n_results; i++) {
		onnx_fact(x, c->result[i])->is_const = is_const;
		onnx_fact(x, c->result[i])->level = level;
		t->out[i] = c->result[i];
	}
}

static void try_loop(arena *tmp, void *arg)
{
	trial *t = arg;

	t->tmp = tmp;
	find_calls(t);
	make_body(t);
	add_loop(t);
}

static void try_body(void *arg)
{
	trial *t = arg;
	const onnx_import *x = t->d->x;
	uint64_t n_random = x->n_random;
	int32_t n_updates = x->update.n;

	build_body(t);
	if (x->n_random != n_random || x->update.n != n_updates)
		unroll(t, "a round draws random numbers or updates statistics");
	arena_run(x->e, try_loop, t);
}

bool on_loop_call(node *d, const on_loop *l, int32_t *out)
{
	onnx_import *x = d->x;
	trial t = {.d = d, .l = l, .out = out};
	int32_t depth = x->depth, n_updates = x->update.n;
	uint64_t n_random = x->n_random;
	const char *where = x->where;
	tn_status s;

	if (l->n <= SHORT || x->unrolled)
		return false;
	t.hole = arena_array(x->a, int32_t, l->n_carried + l->n_rows + 1);
	t.made = arena_array(x->a, int32_t, l->n_carried + l->n_out + 1);
	x->level++;
	s = env_run(x->e, try_body, &t);
	x->level--;
	if (s >= 0)
		return true;
	if (s == TN_ENOMEM || s == TN_EINTERNAL)
		env_rethrow(x->e);
	/* what is wrong with a body for other reasons is wrong unrolled, too */
	x->depth = depth;
	x->where = where;
	x->update.n = n_updates;
	x->n_random = n_random;
	return false;
}

/* ---- unrolled ---- */

void on_loop_run(node *d, const on_loop *l, int32_t *out)
{
	int32_t n_in = l->n_carried + l->n_rows, n_out = l->n_carried + l->n_out;
	int32_t *in = arena_array(d->x->a, int32_t, n_in + 1);
	int32_t **made, *y = arena_array(d->x->a, int32_t, n_out + 1);

	if (on_loop_call(d, l, out))
		return;
	made = arena_array(d->x->a, int32_t *, l->n_out + 1);
	for (int32_t i = 0; i < l->n_out; i++)
		made[i] = arena_array(d->x->a, int32_t, l->n + 1);
	memcpy(in, l->in, (size_t)l->n_carried * sizeof *in);
	for (int64_t r = 0; r < l->n; r++) {
		for (int32_t i = l->n_carried; i < n_in; i++)
			in[i] = rowa(d, "select", A(l->in[i]), INT("axis", 0),
				INT("index", r));
		l->body(d, l->arg, in, y);
		memcpy(in, y, (size_t)l->n_carried * sizeof *in);
		for (int32_t i = 0; i < l->n_out; i++)
			made[i][r] = y[l->n_carried + i];
	}
	memcpy(out, in, (size_t)l->n_carried * sizeof *in);
	for (int32_t i = 0; i < l->n_out; i++)
		out[l->n_carried + i] = on_stack(d, (int32_t)l->n, made[i], 0);
}
