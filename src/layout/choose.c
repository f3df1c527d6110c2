/*
 * choose.c: chooses one of several cuts of an equation along an axis of the mesh.
 *
 * Consumes an equation and its operands and results whose cuts conflict; produces
 * the cut that moves the fewest bytes to bring the operands into the layouts that
 * it needs, and its result into the layout that it has.
 *
 *     o[i,j] += x[i,k] * y[k,j]    x cut on i, y on j, both by mesh axis m:
 *     i   y is gathered: (p-1)/p of it         j   x is
 *
 * Bytes are those that one process receives.
 */
#include "layout/local.h"

/* Bytes of a process for a tensor with layout l, without its cut by mesh axis m. */
static double bytes_of(
	const shard_plan *p, int32_t tensor, const shard_layout *l, int32_t m)
{
	const sys_tensor *t = &p->s->tensor.at[tensor];
	double n = (double)t->numel * (double)dtype_size(t->dtype);

	for (int32_t i = 0; i < l->n; i++)
		if (l->tag[i].mesh != m)
			n /= (double)l->tag[i].count;
	return n;
}

/* Bytes to move from one layout to another, along axis m of the mesh. */
static double to_move(const shard_plan *p, int32_t tensor,
	const shard_layout *from, const shard_layout *to, int32_t m)
{
	double n = bytes_of(p, tensor, to, m);
	double k = (double)p->mesh->extent[m];
	int32_t i = layout_find(from, m), j = layout_find(to, m);

	if (i < 0)
		return 0;
	if (j < 0)
		return n * (k - 1) / k;
	if (layout_same_cut(&from->tag[i], &to->tag[j]))
		return 0;
	if (from->tag[i].within < 0 && to->tag[j].within < 0 &&
		from->tag[i].lo == to->tag[j].lo &&
		from->tag[i].hi == to->tag[j].hi)
		return n * (double)halo_moved(p->mesh, &from->tag[i],
				   &to->tag[j], false) /
			(double)(to->tag[j].hi / to->tag[j].lo);
	return n * (k - 1) / (k * k);
}

static double of_reads(shard_plan *p, int32_t eqn, int32_t m)
{
	const eqn_unit *u = p->eqn[eqn].unit;
	double sum = 0;

	for (int32_t r = 0; r < u->n_reads; r++) {
		int32_t t = u->read[r].tensor;
		bool again = false;
		shard_layout need;

		for (int32_t k = 0; k < r; k++)
			again |= u->read[k].tensor == t;
		if (again)
			continue;
		need = shard_needs(p, eqn, t);
		sum += to_move(p, t, &p->tensor[t].have, &need, m);
	}
	return sum;
}

static double of_results(shard_plan *p, int32_t eqn, int32_t m)
{
	const sys_eqn *e = &p->eqn[eqn].unit->e;
	bool parts = shard_is_partial(p, eqn, m);
	double sum = 0, k = (double)p->mesh->extent[m];

	for (int32_t i = 0; i < e->n_out; i++) {
		const shard_state *h = &p->tensor[e->out[i]];
		shard_layout made = shard_makes(p, eqn, i);
		double n = bytes_of(p, e->out[i], &made, m) * (k - 1) / k;

		if (parts)
			sum += layout_find(&h->have, m) >= 0 ? n : 2 * n;
		else if (h->fixed)
			sum += to_move(p, e->out[i], &made, &h->have, m);
	}
	return sum;
}

/* Bytes that a process receives for the equation with its cuts along m. */
static int64_t cost_of(shard_plan *p, int32_t eqn, int32_t m)
{
	return (int64_t)(of_reads(p, eqn, m) + of_results(p, eqn, m));
}

/* ---- candidates ---- */

static shard_layout *copy_axes(arena *a, const shard_eqn *q)
{
	int32_t n = q->unit->e.n_axes;
	shard_layout *to = arena_array(a, shard_layout, n + 1);

	memcpy(to, q->axis, (size_t)n * sizeof *to);
	return to;
}

static bool same_axes(
	const shard_eqn *q, const shard_layout *a, const shard_layout *b)
{
	for (int32_t i = 0; i < q->unit->e.n_axes; i++)
		if (!shard_same(&a[i], &b[i]))
			return false;
	return true;
}

/* Takes the cut of candidate i: a read, or (after the reads) a result. */
static bool take(shard_plan *p, shard_eqn *q, int32_t i, int32_t m)
{
	int32_t n = q->unit->n_reads;

	return i < n ? take_read(p, q, i, m)
		     : take_result(p, q, i - n, m);
}

static int32_t tensor_of(const shard_eqn *q, int32_t i)
{
	int32_t n = q->unit->n_reads;

	return i < n ? q->unit->read[i].tensor : q->unit->e.out[i - n];
}

const char *choose_cut(shard_plan *p, int32_t eqn, int32_t first, int32_t m,
	int32_t *from)
{
	shard_eqn *q = &p->eqn[eqn];
	arena *a = arena_child(p->a);
	shard_layout *before = copy_axes(a, q), *best, *at = q->axis;
	int32_t n = q->unit->n_reads + q->unit->e.n_out, loser = -1;
	int64_t least = 0, other = 0;
	str s;

	*from = tensor_of(q, first);
	if (!take(p, q, first, m)) {
		arena_free(a);
		return NULL;
	}
	best = copy_axes(a, q);
	for (int32_t i = first + 1; i < n; i++) {
		int32_t t = tensor_of(q, i);
		shard_layout *tried;
		int64_t cost;

		if (layout_find(&p->tensor[t].have, m) < 0 ||
			(i >= q->unit->n_reads && !p->tensor[t].fixed))
			continue;
		if (loser < 0)
			least = cost_of(p, eqn, m);
		memcpy(at, before, (size_t)q->unit->e.n_axes * sizeof *at);
		if (take(p, q, i, m) && !same_axes(q, at, best)) {
			cost = cost_of(p, eqn, m);
			tried = copy_axes(a, q);
			if (cost < least) {
				loser = *from;
				other = least;
				least = cost;
				best = tried;
				*from = t;
			} else if (loser < 0 || cost < other) {
				loser = t;
				other = cost;
			}
		}
		memcpy(at, best, (size_t)q->unit->e.n_axes * sizeof *at);
	}
	s = str_new(p->a);
	if (loser >= 0)
		str_printf(&s, ": %lld bytes to a process; as %s is: %lld",
			(long long)least, p->s->tensor.at[loser].name,
			(long long)other);
	arena_free(a);
	return s.n > 0 ? s.at : "";
}
