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
 * A tensor may have several arrays, one for each layout that an equation needs. An
 * array also serves layouts with more cuts, and equal layouts with different tags
 * (rows by 4, and fours of rows by 1). If all versions of a storage are computed in
 * one phase, after every read of what they overwrite, they use its memory; else
 * the last one is copied.
 *
 * Guarantees: the arrays, phases and moves depend only on layouts, never on the
 * process.
 */
#include "layout/local.h"

bool layout_holds(const shard_layout *a, const shard_layout *b)
{
	for (int32_t i = 0; i < a->n; i++) {
		bool found = false;

		for (int32_t k = 0; k < b->n; k++)
			found |= layout_same_cut(&a->tag[i], &b->tag[k]) &&
				(a->tag[i].within < 0) ==
					(b->tag[k].within < 0);
		if (!found)
			return false;
	}
	return true;
}

shard_array *locals_array(locals *b, int32_t array)
{
	return &b->out->array.at[array];
}

static shard_phase *phase_of(locals *b, int32_t phase)
{
	while (b->out->phase.n <= phase) {
		shard_phase *p = vec_push(b->a, &b->out->phase);

		*p = (shard_phase){.s = ir_system_new(b->a, b->x)};
	}
	return &b->out->phase.at[phase];
}

static int32_t new_array(locals *b, int32_t tensor, const shard_layout *l,
	tn_dtype dtype, int32_t phase)
{
	shard_piece *w = vec_push(b->a, &b->window);

	*w = shard_piece_of(b->a, l, b->p->mesh, b->out->process);
	*vec_push(b->a, &b->out->array) = (shard_array){.tensor = tensor,
		.dtype = dtype,
		.layout = *l,
		.elems = w->elems,
		.phase = phase,
		.input = -1,
		.last = -1,
		.memory = -1};
	phase_of(b, phase);
	return b->out->array.n - 1;
}

/* ---- arrays as tensors of a phase ---- */

static int32_t add_tensor(locals *b, int32_t phase, int32_t array)
{
	shard_phase *p = phase_of(b, phase);
	const shard_array *y = locals_array(b, array);
	const sys_tensor *t = &b->p->s->tensor.at[y->tensor];
	int32_t key[2] = {phase, array}, rank = t->rank, made;
	int64_t shape[TN_MAX_RANK], n;

	if (!shard_local_shape(&y->layout, b->p->mesh, b->out->process, rank,
		    t->shape, shape))
		rank = 0;
	n = shape_numel(shape, rank);
	if (n != y->elems) {
		rank = 1;
		shape[0] = y->elems;
	}
	made = ir_add_tensor(p->s, t->name, y->dtype, rank, shape);
	map_set(b->tensor_of, key, sizeof key, made);
	return made;
}

int32_t locals_tensor(locals *b, int32_t phase, int32_t array)
{
	int32_t key[2] = {phase, array};
	int64_t found = map_get(b->tensor_of, key, sizeof key, -1);
	shard_array *y = locals_array(b, array);
	shard_phase *p;
	int32_t t;

	if (y->last < phase)
		y->last = phase;
	if (found >= 0)
		return (int32_t)found;
	t = add_tensor(b, phase, array);
	p = phase_of(b, phase);
	p->s->tensor.at[t].is_input = true;
	*vec_push(b->a, &p->s->input) = t;
	*vec_push(b->a, &p->in) = array;
	locals_array(b, array)->crosses = true;
	return t;
}

int32_t locals_result(locals *b, int32_t phase, int32_t array)
{
	int32_t key[2] = {phase, array};
	int64_t found = map_get(b->tensor_of, key, sizeof key, -1);

	return found >= 0 ? (int32_t)found : add_tensor(b, phase, array);
}

/* ---- moves ---- */

/* Adds a move of from[], partial results along the mesh axes of mask. */
static void add_job(locals *b, int32_t n, const int32_t *from,
	const int32_t *to, uint32_t mask, int32_t monoid, int32_t reader)
{
	const shard_array *x = locals_array(b, from[0]);
	const shard_array *y = locals_array(b, to[0]);
	const char *name = b->p->s->tensor.at[x->tensor].name;
	shard_job j = {.n = n, .mask = mask, .monoid = monoid, .reader = reader};

	for (int32_t k = 0; k < n; k++) {
		j.from[k] = from[k];
		j.to[k] = to[k];
		locals_array(b, from[k])->crosses = true;
		locals_array(b, to[k])->crosses = true;
		locals_array(b, to[k])->moved = true;
	}
	j.name = shard_move_name(b->p->mesh, &x->layout, mask, &y->layout);
	j.transfer = shard_transfer_new(b->a, b->p->mesh, b->out->process,
		&x->layout, mask, &y->layout,
		arena_printf(b->a, "%s of %s", j.name, name));
	*vec_push(b->a, &phase_of(b, y->phase)->job) = j;
}

/* The first phase before which the array can be moved. */
static int32_t can_move(locals *b, int32_t array)
{
	const shard_array *y = locals_array(b, array);

	return y->input >= 0 || y->moved ? y->phase : y->phase + 1;
}

static int32_t moved_to(
	locals *b, int32_t from, const shard_layout *l, int32_t reader)
{
	const shard_array *y = locals_array(b, from);
	int32_t to = new_array(
		b, y->tensor, l, y->dtype, can_move(b, from));

	add_job(b, 1, &from, &to, 0, IR_SET, reader);
	return to;
}

/* ---- what there is of a tensor ---- */

static int32_t found_array(locals *b, int32_t tensor,
	const shard_layout *needs, bool exactly)
{
	int32_t best = -1;

	for (int32_t i = 0; i < b->out->array.n; i++) {
		const shard_array *y = locals_array(b, i);

		if (y->tensor == tensor && !y->is_parts &&
			layout_holds(&y->layout, needs) &&
			(!exactly || layout_holds(needs, &y->layout)) &&
			(best < 0 || y->phase < locals_array(b, best)->phase))
			best = i;
	}
	return best;
}

/* An array with the same elements by a layout with different tags. */
static int32_t equal_array(
	locals *b, int32_t tensor, const shard_layout *needs)
{
	for (int32_t i = 0; i < b->out->array.n; i++) {
		const shard_array *y = locals_array(b, i);

		if (y->tensor == tensor && !y->is_parts &&
			layout_equal(b->a, b->p->mesh, &y->layout, needs))
			return i;
	}
	return -1;
}

/* The array in the layout of the tensor itself. */
static int32_t kept_array(locals *b, int32_t tensor)
{
	const shard_layout *have = &b->p->tensor[tensor].have;
	int32_t from = b->kept[tensor];

	if (from >= 0)
		return from;
	from = b->made[tensor];
	if (shard_same(&locals_array(b, from)->layout, have) ||
		(!layout_holds(&locals_array(b, from)->layout, have) &&
			layout_equal(b->a, b->p->mesh,
				&locals_array(b, from)->layout, have))) {
		b->kept[tensor] = from;
	} else if (layout_holds(&locals_array(b, from)->layout, have)) {
		const shard_array *y = locals_array(b, from);

		b->kept[tensor] =
			new_array(b, tensor, have, y->dtype, y->phase);
		locals_copy(b, locals_array(b, from)->phase, from,
			b->kept[tensor]);
	} else {
		b->kept[tensor] = moved_to(b, from, have, -1);
	}
	return b->kept[tensor];
}

int32_t locals_source(locals *b, int32_t eqn, int32_t tensor)
{
	shard_layout needs = shard_needs(b->p, eqn, tensor);
	/* its array must have exactly the elements that the process owns */
	bool exactly = b->p->eqn[eqn].masked == tensor;
	int32_t from = found_array(b, tensor, &needs, exactly);

	if (from < 0 && !exactly)
		from = equal_array(b, tensor, &needs);
	if (from >= 0)
		return from;
	return moved_to(b, kept_array(b, tensor), &needs, eqn);
}

int32_t locals_operand(locals *b, int32_t eqn, int32_t operand)
{
	const shard_eqn *q = &b->p->eqn[eqn];
	int32_t tensor = q->unit->e.opaque_in[operand];
	bool windows = false;
	shard_layout l = place_to_read(b->p, q, operand, &windows);
	int32_t exact = found_array(b, tensor, &l, true), from, phase;

	if (exact >= 0)
		return exact;
	from = locals_source(b, eqn, tensor);
	phase = locals_array(b, from)->phase;
	/* a move may have made it */
	exact = found_array(b, tensor, &l, true);
	if (exact >= 0)
		return exact;
	exact = new_array(b, tensor, &l, locals_array(b, from)->dtype, phase);
	locals_copy(b, phase, from, exact);
	return exact;
}

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
		to[k] = new_array(b, e->out[k], have,
			locals_array(b, parts[k])->dtype, phase);
	add_job(b, e->n_out, parts, to, mask, monoid, -1);
	for (int32_t k = 0; k < e->n_out; k++) {
		tn_dtype want = b->p->s->tensor.at[e->out[k]].dtype;

		b->made[e->out[k]] = to[k];
		if (locals_array(b, to[k])->dtype == want)
			continue;
		locals_array(b, to[k])->is_parts = true; /* equations cannot read it */
		b->made[e->out[k]] =
			new_array(b, e->out[k], have, want, phase);
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
		out[k] = new_array(b, e->out[k], &makes, t, phase);
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
		int32_t n = new_array(
			b, t, &h->have, s->tensor.at[t].dtype, 0);

		b->out->input[i] = n;
		locals_array(b, n)->input = i;
		locals_array(b, n)->crosses = true;
		b->made[t] = b->kept[t] = n;
		if (h->parts == 0)
			continue;
		locals_array(b, n)->is_parts = true;
		to = new_array(b, t, &h->have, s->tensor.at[t].dtype, 0);
		add_job(b, 1, &n, &to, h->parts, h->parts_monoid, -1);
		b->made[t] = b->kept[t] = to;
	}
}

/* A tensor without elements has no equation. */
static int32_t output_array(locals *b, int32_t tensor)
{
	if (b->made[tensor] < 0)
		b->made[tensor] = new_array(b, tensor,
			&b->p->tensor[tensor].have,
			b->p->s->tensor.at[tensor].dtype, 0);
	return kept_array(b, tensor);
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
	shard_phase *p = phase_of(b, number);

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
		shard_phase *p = phase_of(b, y->phase);
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

/* ---- as text ---- */

static void print_array(str *s, const shard_program *p, int32_t array)
{
	const shard_array *y = &p->array.at[array];

	str_printf(s, "%s [", p->p->s->tensor.at[y->tensor].name);
	shard_layout_print(s, &y->layout, p->p->mesh);
	str_printf(s, "]%s", y->is_parts ? " in parts" : "");
}

void shard_program_print(str *out, const shard_program *p)
{
	for (int32_t i = 0; i < p->phase.n; i++) {
		const shard_phase *q = &p->phase.at[i];

		str_printf(out, "phase %d\n", (int)i);
		for (int32_t k = 0; k < q->job.n; k++) {
			const shard_job *j = &q->job.at[k];

			str_printf(out, "  %s: ", j->name);
			print_array(out, p, j->from[0]);
			str_add(out, " -> ");
			print_array(out, p, j->to[0]);
			str_printf(out, ", for %s\n", j->reader < 0
					? "its layout"
					: p->p->eqn[j->reader].unit->e.label);
		}
		for (int32_t k = 0; k < q->s->eqn.n; k++) {
			str_add(out, "  ");
			ir_eqn_print(out, q->s, &q->s->eqn.at[k]);
			str_add(out, "\n");
		}
	}
}
