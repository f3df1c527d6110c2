/*
 * keep.c: chooses the values that are kept for gradients; others are recomputed.
 *
 * Consumes the numbered calls of a flush; grad/cut.h chooses which of the values
 * that adjoints read are stored, and which are recomputed in the backward from
 * stored or available values. A recomputed value is not an output of the flush;
 * its call is kept, and keeps its operands.
 *
 *     z = add(m, b)    kept: z, for relu and for the adjoint of add
 *     h = relu(z)      read by the next matmul: relu(z) again
 *
 * Choices are memoised by the structure of the calls.
 */
#include "grad/cut.h"
#include "value/node.h"

enum { PLAIN, KEPT, AGAIN };

/* ---- work ---- */

static int64_t node_work(const in_node *n)
{
	int64_t w = 0;

	if (n == NULL)
		return 0;
	if (n->kind == IN_CALL)
		w = ir_scalar_at(n->fn)->flops;
	for (int32_t i = 0; i < IR_MAX_ARGS; i++)
		w += node_work(n->arg[i]);
	return w;
}

/* The work of all equations of the row; opaque rows count as a sort. */
static int64_t entry_work(t_entry *e)
{
	const ir_inst *p = e->inst;
	double sum = 1;

	if (e->work > 0)
		return e->work;
	for (int32_t i = 0; i < p->n_eqns; i++) {
		const in_eqn *q = &p->eqn[i];
		double points = 1;
		int64_t each = 1;

		for (int32_t k = 0; k < q->n_letters; k++)
			points *= (double)p->letter[q->letters[k]].extent;
		for (int32_t k = 0; k < ir_n_bodies(q); k++)
			each += node_work(q->body[k]);
		sum += points * (double)each;
	}
	for (int32_t i = 0; p->opaque != NULL && i < p->n_tensors; i++)
		sum += 32 * (double)ir_type_bytes(&p->tensor[i].type);
	e->work = sum < 1e15 ? (int64_t)sum : (int64_t)1e15;
	return e->work;
}

int64_t t_call_work(const t_call *c)
{
	if (c->n_args == 0 && c->entry == NULL)
		return 1;
	return c->entry != NULL ? entry_work(c->entry)
				: (int64_t)ir_type_bytes(&c->arg[0].v->type) / 4;
}

/* ---- what is asked ---- */

/* inputs first, then results */
static int32_t place_of(const tensors *t, const t_value *v)
{
	return v->number % 2 ? v->number / 2 : t->input.n + v->number / 2;
}

static bool any_read(tensors *t)
{
	for (int32_t k = 0; k < t->todo.n; k++) {
		const t_call *c = t->todo.at[k];

		if (!c->tracked || t_is_write(c))
			continue;
		for (int32_t i = 0; i < c->n_args; i++)
			if (t_tape_reads(t, c, i))
				return true;
		for (int32_t i = 0; i < c->n_results; i++)
			if (c->result[i] != NULL && c->result[i]->holds_self)
				return true;
	}
	return false;
}

/* Counts the references of these calls to the elements of each value. */
static int32_t count_values(tensors *t)
{
	int32_t n = t->input.n;

	for (int32_t k = 0; k < t->todo.n; k++)
		n += t->todo.at[k]->n_results;
	t->count.n = 0;
	for (int32_t i = 0; i < n; i++)
		*vec_push(t->a, &t->count) = 0;
	for (int32_t k = 0; k < t->todo.n; k++) {
		const t_call *c = t->todo.at[k];

		for (int32_t i = 0; i < c->n_args; i++)
			t->count.at[place_of(t, c->arg[i].v)]++;
		for (int32_t i = 0; i < c->n_results; i++)
			if (c->result[i] != NULL &&
				c->result[i]->holds_self &&
				!c->result[i]->again)
				t->count.at[place_of(t, c->result[i])]++;
	}
	return n;
}

/* Is it referenced elsewhere, so it is stored anyway? */
static bool is_there(const tensors *t, const t_value *v)
{
	return t_data(v) > t->count.at[place_of(t, v)];
}

/* Is it a leaf: all of it, or the elements that c writes? */
static bool is_leaf(const t_call *c, const t_value *v)
{
	return c->no_grad || (v->tracked && !t_has_history(v));
}

static void make_key(tensors *t, int64_t limit)
{
	t->code.n = 0;
	t_code(t, (int32_t)(limit & 0x7fffffff));
	t_code(t, (int32_t)(limit >> 31));
	for (int32_t i = 0; i < t->input.n; i++)
		t_code(t, is_there(t, t->input.at[i]));
	for (int32_t k = 0; k < t->todo.n; k++) {
		const t_call *c = t->todo.at[k];

		t_code(t, c->entry != NULL   ? c->entry->id
				: c->trace != NULL ? -3 - c->trace->id
						   : -2);
		for (int32_t i = 0; i < c->n_args; i++)
			t_code(t, 2 * place_of(t, c->arg[i].v) +
					t_tape_reads(t, c, i));
		for (int32_t i = 0; i < c->n_results; i++) {
			const t_value *v = c->result[i];

			t_code(t, v == NULL ? -1
					  : is_there(t, v) +
						2 * v->holds_self +
						4 * is_leaf(c, v));
		}
	}
}

/* ---- the choice ---- */

static void describe_call(
	tensors *t, arena *a, cut_value *value, const t_call *c, int32_t first)
{
	int32_t *source = arena_array(a, int32_t, c->n_args + 1);

	for (int32_t i = 0; i < c->n_args; i++) {
		source[i] = place_of(t, c->arg[i].v);
		if (t_tape_reads(t, c, i))
			value[source[i]].is_read = true;
	}
	for (int32_t i = 0; i < c->n_results; i++) {
		const t_value *v = c->result[i];

		if (v == NULL)
			continue;
		value[first + i] = (cut_value){
			.bytes = (int64_t)ir_type_bytes(&v->type),
			.work = t_call_work(c),
			.is_there = is_there(t, v),
			/* leaves and results of compiled functions are not recomputed */
			.is_fixed = is_leaf(c, v) || c->trace != NULL,
			.is_read = v->holds_self,
			.n_sources = c->n_args,
			.source = source};
	}
}

static const char *choose(tensors *t, int32_t n, int64_t limit)
{
	arena *a = arena_child(t->a);
	cut_value *value = arena_array(a, cut_value, n + 1);
	cut_options o = {T_BYTES_PER_WORK, limit};
	char *what = arena_array(t->a, char, n + 1);
	int32_t first = t->input.n;
	cut_result r;

	for (int32_t i = 0; i < t->input.n; i++)
		value[i] = (cut_value){
			.bytes = (int64_t)ir_type_bytes(&t->input.at[i]->type),
			.is_there = is_there(t, t->input.at[i]),
			.is_fixed = true};
	for (int32_t k = 0; k < t->todo.n; k++) {
		describe_call(t, a, value, t->todo.at[k], first);
		first += t->todo.at[k]->n_results;
	}
	r = cut_choose(a, n, value, &o);
	for (int32_t i = 0; i < n; i++)
		what[i] = r.again[i] ? AGAIN : r.keep[i] ? KEPT : PLAIN;
	arena_free(a);
	return what;
}

static const char *choice_of(tensors *t, int32_t n, int64_t limit)
{
	size_t bytes;
	int64_t found;

	make_key(t, limit);
	bytes = (size_t)t->code.n * sizeof *t->code.at;
	found = map_get(t->choice_of, t->code.at, bytes, -1);
	if (found < 0) {
		const char *what = choose(t, n, limit);

		found = t->choice.n;
		*vec_push(t->a, &t->choice) = what;
		map_set(t->choice_of, t->code.at, bytes, found);
	}
	return t->choice.at[found];
}

static void keep(tensors *t, t_value *v)
{
	if (v->is_kept)
		return;
	v->is_kept = true;
	t->stats.bytes_kept += (int64_t)ir_type_bytes(&v->type);
}

static void make_again(tensors *t, t_call *c, t_value *v)
{
	if (v->again) /* from a flush that failed */
		return;
	v->again = c->again = true;
	if (v->holds_self)
		t_data_drop(t, v);
}

bool t_keep_choose(tensors *t)
{
	int64_t limit = t->memory_limit;
	const char *what;
	int32_t n;
	bool any = false;

	if (!any_read(t))
		return false;
	n = count_values(t);
	if (limit >= 0)
		limit = limit > t->stats.bytes_kept
			? limit - t->stats.bytes_kept
			: 0;
	what = choice_of(t, n, limit);
	for (int32_t i = 0; i < t->input.n; i++)
		if (what[i] == KEPT)
			keep(t, t->input.at[i]);
	n = t->input.n;
	for (int32_t k = 0; k < t->todo.n; k++) {
		t_call *c = t->todo.at[k];

		for (int32_t i = 0; i < c->n_results; i++, n++) {
			if (what[n] == KEPT)
				keep(t, c->result[i]);
			if (what[n] != AGAIN)
				continue;
			make_again(t, c, c->result[i]);
			any = true;
		}
	}
	return any;
}

bool t_keep_holds(tensors *t, const t_call *c, int32_t arg)
{
	return (c->again || t_tape_reads(t, c, arg)) && !c->arg[arg].v->again;
}

void t_tape_hold(tensors *t, t_call *c)
{
	c->done = true;
	for (int32_t i = 0; i < c->n_args; i++)
		if (!t_keep_holds(t, c, i))
			t_read_end_data(t, &c->arg[i]);
}

void t_end_call(tensors *t, t_call *c)
{
	if (c->tracked || c->again)
		t_tape_hold(t, c);
	else
		t_finish(t, c);
}
