/*
 * push.c: schedules a scatter that is alone in its kernel. Initialisation and
 * updates become phases, so that both run on all threads: elements can be
 * initialised in any order, and updates with different values of a parallel
 * variable change different elements.
 *
 *   for n { init o } for j { for k { acc o } }   ->   phase 0, phase 1
 *
 * Where that leaves threads idle, chunks divide the elements instead: each walks all
 * updates and does those of its own elements, in their order. So the result has
 * the same bits, whatever the number of chunks.
 *
 *   block n by 64 parallel { for n { init o } for j { for k { acc o } } }
 */
#include "schedule/local.h"

static int64_t times(const loop_kernel *k, loop_set vars)
{
	int64_t n = 1;

	for (int32_t i = 0; i < k->n_vars; i++)
		if ((vars & BIT(i)) != 0 && !mul_ok(n, k->var[i].extent, &n))
			return INT64_MAX;
	return n;
}

/* The variable of the elements with the longest rows, by which they are divided;
 * -1: there is none. */
static int32_t row_var(const loop_kernel *k, const loop_eqn *e)
{
	int64_t step, most = 0;
	int32_t var = -1;
	const ix_form *row;

	for (int32_t i = 0; i < k->n_vars; i++)
		if ((loop_form_vars(e->start_at) & BIT(i)) != 0 &&
			loop_row_of(k, e, i, &row) &&
			ix_stride(e->start_at, i, k->var[i].extent, &step) &&
			step > most) {
			most = step;
			var = i;
		}
	return var;
}

/* Elements of a row that a vector takes, or as many as its lanes access at once. */
static int64_t taken_at_once(const loop_kernel *k)
{
	int32_t bytes = (int32_t)dtype_size(k->eqn[0].acc[0]);
	int32_t wide = k->machine->wide_bytes / bytes;

	return (int64_t)machine_lanes(k->machine, bytes) * (wide > 1 ? wide : 1);
}

/* Into how many chunks the elements are divided; 1: not at all */
static int64_t n_owners(loop_kernel *k, int32_t var)
{
	const loop_eqn *e = &k->eqn[0];
	int64_t least = k->machine->schedule.owner_updates;
	int64_t updates = times(k, e->reduced), threads = k->machine->threads;
	int64_t pieces = times(k, e->left), n, each = taken_at_once(k);

	pieces = (pieces + each - 1) / each;
	if (2 * pieces > threads) {
		loop_decide(k, DECIDE_OWNERS_PIECES, 0, -1, pieces, threads);
		return 1;
	}
	n = updates / least;
	if (n > threads / pieces)
		n = threads / pieces;
	if (n > k->var[var].extent)
		n = k->var[var].extent;
	if (n < 2)
		loop_decide(k, DECIDE_OWNERS_LITTLE, 0, -1, updates, 2 * least);
	return n;
}

/* Chunks divide the elements; false: they do not. */
static bool take_owners(loop_kernel *k)
{
	loop_phase *ph = &k->phase[0];
	int32_t var = row_var(k, &k->eqn[0]);
	int64_t n, step, lanes = machine_lanes(
		k->machine, (int32_t)dtype_size(k->eqn[0].acc[0]));
	loop_node *b;

	if (var < 0)
		loop_decide(k, DECIDE_OWNERS_ADDRESS, 0, -1, 0, 0);
	n = var < 0 ? 1 : n_owners(k, var);
	if (n < 2)
		return false;
	b = loop_node_new(k->a, LOOP_BLOCK);
	b->var = var;
	b->size = (k->var[var].extent + n - 1) / n;
	if (ix_stride(k->eqn[0].start_at, var, k->var[var].extent, &step) &&
		step == 1) /* its rows are elements: whole vectors */
		b->size = (b->size + lanes - 1) / lanes * lanes;
	if (b->size >= k->var[var].extent)
		return false;
	b->parallel = true;
	for (int32_t i = 0; i < ph->n_roots; i++)
		loop_node_adopt(k->a, b, ph->root[i]);
	ph->root[0] = b;
	ph->n_roots = 1;
	loop_decide(k, DECIDE_OWNERS_TAKEN, 0, -1,
		(k->var[var].extent + b->size - 1) / b->size, b->size);
	return true;
}

bool loop_push_owners(loop_kernel *k)
{
	bool alone = k->n_eqns == 1 && k->eqn[0].push;

	if (k->machine->schedule.owner_updates == INT64_MAX ||
		k->machine->unscheduled)
		return false;
	for (int32_t i = 0; i < k->n_eqns && !alone; i++)
		if (k->eqn[i].push)
			loop_decide(k, DECIDE_OWNERS_FUSED, i, -1, 0, 0);
	return alone && take_owners(k);
}

void loop_push_phases(loop_kernel *k)
{
	loop_phase all = k->phase[0];
	int32_t i;

	if (k->n_eqns != 1 || !k->eqn[0].push || all.n_roots != 2)
		return;
	for (i = 0; i < k->eqn[0].e->n_out; i++) {
		int32_t t = k->eqn[0].e->out[i];

		if (loop_param(k, t) < 0 ||
			k->s->tensor.at[t].dtype != k->eqn[0].acc[i])
			return;
	}
	for (i = 0; i < 2; i++)
		k->phase[i] = (loop_phase){.n_roots = 1, .root = all.root + i, .n_chunks = 1};
	k->n_phases = 2;
}
