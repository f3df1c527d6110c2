/*
 * arrays.c: the arrays of the program of one process.
 *
 * A tensor may have several arrays, one for each layout that an equation needs. An
 * array also serves layouts with more cuts, and equal layouts with different tags
 * (rows by 4, and fours of rows by 1). An array that nothing computes is moved or
 * copied from another one.
 */
#include "layout/local.h"

shard_array *locals_array(locals *b, int32_t array)
{
	return &b->out->array.at[array];
}

shard_phase *locals_phase(locals *b, int32_t phase)
{
	while (b->out->phase.n <= phase) {
		shard_phase *p = vec_push(b->a, &b->out->phase);

		*p = (shard_phase){.s = ir_system_new(b->a, b->x)};
	}
	return &b->out->phase.at[phase];
}

int32_t locals_new(locals *b, int32_t tensor, const shard_layout *l,
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
	locals_phase(b, phase);
	return b->out->array.n - 1;
}

/* ---- arrays as tensors of a phase ---- */

static int32_t add_tensor(locals *b, int32_t phase, int32_t array)
{
	shard_phase *p = locals_phase(b, phase);
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
	p = locals_phase(b, phase);
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

void locals_copy(locals *b, int32_t phase, int32_t from, int32_t to)
{
	ir_system *s = b->out->phase.at[phase].s;
	const shard_piece *v = &b->window.at[from], *o = &b->window.at[to];
	int64_t extent[1] = {o->elems};
	ix_dom d = {.box = {.n = 1, .extent = extent}};
	sys_eqn e = {.label = "copy",
		.op = "copy",
		.monoid = IR_SET,
		.n_out = 1,
		.scan_axis = -1};
	const ix_form *at;

	e.out[0] = locals_result(b, phase, to);
	if (o->elems == 0)
		return;
	if (o->elems > 1) {
		e.axis[0] = (sys_axis){
			.extent = o->elems, .kind = AXIS_P, .name = "i"};
		e.n_axes = e.n_left = 1;
	}
	at = shard_number_of(b->x, &d, o, ix_axis(b->x, &d, 0));
	at = shard_index_of(b->x, &d, v, at);
	e.body[0] = ex_cast(s, s->tensor.at[e.out[0]].dtype,
		ex_read(s, locals_tensor(b, phase, from), at));
	ir_add_eqn(s, &e);
}

/* ---- moves ---- */

void locals_job(locals *b, int32_t n, const int32_t *from,
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
	*vec_push(b->a, &locals_phase(b, y->phase)->job) = j;
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
	int32_t to = locals_new(
		b, y->tensor, l, y->dtype, can_move(b, from));

	locals_job(b, 1, &from, &to, 0, IR_SET, reader);
	return to;
}

/* ---- known arrays of a tensor ---- */

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

int32_t locals_kept(locals *b, int32_t tensor)
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
			locals_new(b, tensor, have, y->dtype, y->phase);
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
	return moved_to(b, locals_kept(b, tensor), &needs, eqn);
}

int32_t locals_operand(locals *b, int32_t eqn, int32_t operand)
{
	const shard_eqn *q = &b->p->eqn[eqn];
	int32_t tensor = q->unit->e.opaque_in[operand];
	bool windows = false;
	shard_layout l = layout_to_read(b->p, q, operand, &windows);
	int32_t exact = found_array(b, tensor, &l, true), from, phase;

	if (exact >= 0)
		return exact;
	from = locals_source(b, eqn, tensor);
	phase = locals_array(b, from)->phase;
	/* a move may have made it */
	exact = found_array(b, tensor, &l, true);
	if (exact >= 0)
		return exact;
	exact = locals_new(b, tensor, &l, locals_array(b, from)->dtype, phase);
	locals_copy(b, phase, from, exact);
	return exact;
}
