/*
 * localise.c: the program of one process.
 *
 * Consumes a plan with layouts; produces phases of equations over the elements of
 * the process, and the moves between them. An equation is in the first phase in
 * which everything that it reads is available, so that independent moves are made
 * together:
 *
 *     backward of three layers, batches cut:   phase 0   all three gradients
 *                                              moves     three all-reduces
 *                                              phase 1   the optimiser
 *
 * If all versions of a storage are computed in
 * one phase, after every read of what they overwrite, they use its memory; else
 * the last one is copied.
 *
 * Guarantees: the arrays, phases and moves depend only on layouts, never on the
 * process.
 */
#include "layout/local.h"

/* ---- equations ---- */

static uint32_t mask_of(const locals *b, int32_t eqn)
{
	uint32_t mask = 0;

	for (int32_t m = 0; m < b->p->mesh->n; m++)
		if (b->p->mesh->extent[m] > 1 &&
			shard_is_partial(b->p, eqn, m))
			mask |= 1u << m;
	return mask;
}

/* Adds the moves that combine partial results; a copy converts the dtype. */
static void add_sums(locals *b, int32_t eqn, const int32_t *parts, uint32_t mask)
{
	const shard_eqn *q = &b->p->eqn[eqn];
	const sys_eqn *e = &q->unit->e;
	const shard_layout *have = &b->p->tensor[e->out[0]].have;
	int32_t monoid = q->masks != 0 ? IR_SUM : e->monoid;
	int32_t to[IR_MAX_COMP], phase = locals_array(b, parts[0])->phase + 1;

	for (int32_t k = 0; k < e->n_out; k++)
		to[k] = locals_new(b, e->out[k], have,
			locals_array(b, parts[k])->dtype, phase);
	locals_job(b, e->n_out, parts, to, mask, monoid, -1);
	for (int32_t k = 0; k < e->n_out; k++) {
		tn_dtype want = b->p->s->tensor.at[e->out[k]].dtype;

		b->made[e->out[k]] = to[k];
		if (locals_array(b, to[k])->dtype == want)
			continue;
		locals_array(b, to[k])->is_parts = true; /* equations cannot read it */
		b->made[e->out[k]] =
			locals_new(b, e->out[k], have, want, phase);
		locals_copy(b, phase, to[k], b->made[e->out[k]]);
	}
}

/* Can it find an index from data out of range, or fail otherwise? */
static bool may_fail(const eqn_unit *u)
{
	bool may = u->e.opaque != NULL ||
		(u->e.push != NULL && ix_has_fun(u->e.push));

	for (int32_t r = 0; r < u->n_reads; r++)
		may |= u->read[r].is_index || ix_has_fun(u->read[r].at);
	return may;
}

static void add_eqn(locals *b, int32_t eqn)
{
	const shard_eqn *q = &b->p->eqn[eqn];
	const sys_eqn *e = &q->unit->e;
	uint32_t mask = mask_of(b, eqn);
	int32_t phase = 0, out[IR_MAX_OUT];
	tn_dtype first = b->p->s->tensor.at[e->out[0]].dtype;
	int32_t monoid = q->masks != 0 ? IR_SUM : e->monoid;

	for (int32_t r = 0; r < q->unit->n_reads && e->opaque == NULL; r++) {
		int32_t t = q->unit->read[r].tensor, from;

		if (t == e->out[0])
			continue;
		from = locals_source(b, eqn, t);
		if (locals_array(b, from)->phase > phase)
			phase = locals_array(b, from)->phase;
	}
	for (int32_t i = 0; i < e->n_opaque_in; i++) {
		int32_t from = locals_operand(b, eqn, i);

		if (locals_array(b, from)->phase > phase)
			phase = locals_array(b, from)->phase;
	}
	for (int32_t k = 0; k < e->n_out; k++) {
		tn_dtype t = b->p->s->tensor.at[e->out[k]].dtype;
		shard_layout makes = shard_makes(b->p, eqn, k);

		if (mask != 0)
			t = ir_monoid_acc(monoid, k, first);
		out[k] = locals_new(b, e->out[k], &makes, t, phase);
		locals_array(b, out[k])->is_parts = mask != 0;
		b->made[e->out[k]] = out[k];
	}
	if (may_fail(q->unit) && phase > b->out->last_check)
		b->out->last_check = phase;
	locals_equation(b, eqn, phase, out, mask);
	if (mask != 0)
		add_sums(b, eqn, out, mask);
}

/* ---- inputs and outputs ---- */

static void add_inputs(locals *b)
{
	ir_system *s = b->p->s;

	b->out->input = arena_array(b->a, int32_t, s->input.n + 1);
	for (int32_t i = 0; i < s->input.n; i++) {
		int32_t t = s->input.at[i], to;
		const shard_state *h = &b->p->tensor[t];
		int32_t n = locals_new(
			b, t, &h->have, s->tensor.at[t].dtype, 0);

		b->out->input[i] = n;
		locals_array(b, n)->input = i;
		locals_array(b, n)->crosses = true;
		b->made[t] = b->kept[t] = n;
		if (h->parts == 0)
			continue;
		locals_array(b, n)->is_parts = true;
		to = locals_new(b, t, &h->have, s->tensor.at[t].dtype, 0);
		locals_job(b, 1, &n, &to, h->parts, h->parts_monoid, -1);
		b->made[t] = b->kept[t] = to;
	}
}

/* A tensor without elements has no equation. */
static int32_t output_array(locals *b, int32_t tensor)
{
	if (b->made[tensor] < 0)
		b->made[tensor] = locals_new(b, tensor,
			&b->p->tensor[tensor].have,
			b->p->s->tensor.at[tensor].dtype, 0);
	return locals_kept(b, tensor);
}

static bool ends_in(const ir_system *s, int32_t i)
{
	return i < s->store.n && s->store.at[i] >= 0;
}

/* Are all versions computed in one phase, after the last read of the input? */
static bool in_one_phase(locals *b, int32_t base, int32_t last)
{
	const ir_system *s = b->p->s;
	int32_t storage = s->tensor.at[last].storage;
	const shard_array *x, *y;

	if (storage < 0 || b->made[last] < 0 || b->p->tensor[base].parts != 0)
		return false;
	x = locals_array(b, b->made[base]);
	y = locals_array(b, b->made[last]);
	if (s->tensor.at[base].storage != storage || x->last > y->phase ||
		y->elems == 0)
		return false;
	for (int32_t t = 0; t < s->tensor.n; t++) {
		const shard_array *v;

		if (t == base || s->tensor.at[t].storage != storage)
			continue;
		v = locals_array(b, b->made[t]);
		if (v->phase != y->phase || v->moved || v->input >= 0 ||
			!shard_same(&v->layout, &x->layout))
			return false;
	}
	return true;
}

static void make_in_place(locals *b, int32_t output)
{
	const ir_system *s = b->p->s;
	int32_t last = s->output.at[output], storage;
	int32_t base = s->input.at[s->store.at[output]], t, in = -1;
	int32_t array = b->made[base], made = b->made[last];
	int32_t number = locals_array(b, made)->phase;
	shard_phase *p = locals_phase(b, number);

	(void)locals_tensor(b, number, array);
	storage = s->tensor.at[last].storage;
	for (t = 0; t < s->tensor.n; t++)
		if (b->made[t] >= 0 && s->tensor.at[t].storage == storage)
			p->s->tensor.at[t == base
					? locals_tensor(b, number, array)
					: locals_result(b, number, b->made[t])]
				.storage = storage;
	for (int32_t i = 0; i < p->in.n; i++)
		if (p->in.at[i] == array)
			in = i;
	t = locals_result(b, number, made);
	p->s->tensor.at[t].is_output = true;
	*vec_push(b->a, &p->s->output) = t;
	while (p->s->store.n < p->s->output.n - 1)
		*vec_push(b->a, &p->s->store) = -1;
	*vec_push(b->a, &p->s->store) = in;
	*vec_push(b->a, &p->out) = made;
	locals_array(b, made)->memory = array;
}

/* Makes arrays that other phases use results of their phases. */
static void add_results(locals *b)
{
	for (int32_t i = 0; i < b->out->array.n; i++) {
		const shard_array *y = locals_array(b, i);
		shard_phase *p = locals_phase(b, y->phase);
		int32_t t;

		if (!y->crosses || y->moved || y->input >= 0 ||
			y->memory >= 0 || y->elems == 0)
			continue;
		t = locals_result(b, y->phase, i);
		p->s->tensor.at[t].is_output = true;
		*vec_push(b->a, &p->s->output) = t;
		*vec_push(b->a, &p->out) = i;
	}
}

shard_program *shard_localise(
	arena *a, shard_plan *p, int64_t process, const bool *keep)
{
	locals *b = arena_make(a, locals);
	ir_system *s = p->s;
	shard_program *out = arena_make(a, shard_program);

	*b = (locals){.a = a, .p = p, .out = out, .x = s->x};
	*out = (shard_program){.p = p, .process = process, .last_check = -1};
	b->made = arena_array(a, int32_t, s->tensor.n + 1);
	b->kept = arena_array(a, int32_t, s->tensor.n + 1);
	b->tensor_of = map_new(a);
	for (int32_t t = 0; t < s->tensor.n; t++)
		b->made[t] = b->kept[t] = -1;
	add_inputs(b);
	for (int32_t t = 0; t < s->tensor.n; t++)
		if (!s->tensor.at[t].is_input && s->tensor.at[t].eqn < 0)
			(void)output_array(b, t);
	for (int32_t i = 0; i < s->eqn.n; i++)
		if (!p->eqn[i].dead)
			add_eqn(b, i);
	out->output = arena_array(a, int32_t, s->output.n + 1);
	for (int32_t i = 0; i < s->output.n; i++) {
		out->output[i] = -1;
		if (keep != NULL && !keep[i])
			continue;
		out->output[i] = output_array(b, s->output.at[i]);
		locals_array(b, out->output[i])->crosses = true;
	}
	for (int32_t i = 0; i < s->output.n; i++)
		if (out->output[i] >= 0 && ends_in(s, i) &&
			in_one_phase(b, s->input.at[s->store.at[i]],
				s->output.at[i]))
			make_in_place(b, i);
	add_results(b);
	for (int32_t i = 0; i < out->phase.n; i++)
		ir_system_verify(out->phase.at[i].s);
	return out;
}
