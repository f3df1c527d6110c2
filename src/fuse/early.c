/*
 * early.c: groups that run before their turn, because memory is free after them.
 *
 * Consumes groups in an order, and is told while they are sorted which of them are
 * ready and which have run. It finds those that are the last to read a tensor and
 * take no memory themselves: what they make is in arrays of the caller, as in the
 * update of a parameter, which stands at the end of a program.
 *
 *     d2  g2 = d2*x2  d1  g1 = d1*x1  w2 -= g2  w1 -= g1
 *     d2  g2 = d2*x2  w2 -= g2  d1  g1 = d1*x1  w1 -= g1      g2 ends before g1 begins
 *
 * At no time more is in use than in the order without this: what moves takes
 * nothing, and what it reads ends earlier. A run that fails restores what it has
 * written to the caller (plan/undo.c), so nothing moves before a group that may find
 * an index out of range.
 */
#include "fuse/inner.h"

typedef VEC(int32_t) numbers;

/* Groups with one leader count as one: "it" is a leader here. */
struct fuse_early {
	fuse_state *f;
	int32_t n;
	bool *idle;	  /* it takes no memory */
	bool *fails;	  /* it may find an index out of range */
	bool *done;	  /* it has run */
	numbers *reads;	  /* it: tensors of other groups in memory of their own */
	numbers *readers; /* by tensor: groups other than its maker */
	int32_t *left;	  /* by tensor: readers that have not run */
	int32_t failing;  /* the first that may fail and has not run */
	numbers found;
	int32_t n_taken; /* of found */
};

static bool is_callers(const fuse_state *f, int32_t tensor)
{
	return f->kept[tensor] || ir_place_of_storage(f->s, tensor) >= 0;
}

static void note_reads(fuse_early *x, const eqn_unit *u, int32_t it,
	const int32_t *maker)
{
	if (u->e.opaque != NULL)
		x->fails[it] = true;
	for (int32_t k = 0; k < u->n_reads; k++) {
		int32_t t = u->read[k].tensor;
		numbers *r = &x->readers[t];

		if (u->read[k].is_index)
			x->fails[it] = true;
		if (maker[t] < 0 || maker[t] == it || is_callers(x->f, t) ||
			(r->n > 0 && r->at[r->n - 1] == it))
			continue;
		*vec_push(x->f->a, r) = it;
		*vec_push(x->f->a, &x->reads[it]) = t;
		x->left[t]++;
	}
}

static bool takes(const fuse_early *x, const eqn_unit *u)
{
	for (int32_t k = 0; k < u->e.n_out; k++) {
		int32_t t = u->e.out[k];

		if (!is_callers(x->f, t) && (x->readers[t].n > 0 ||
						   ir_in_place(x->f->s, t)))
			return true;
	}
	return false;
}

static void note_groups(
	fuse_early *x, const fuse_groups *g, const int32_t *leader)
{
	fuse_state *f = x->f;
	int32_t *head = arena_array(f->a, int32_t, x->n + 1);
	int32_t *next = arena_array(f->a, int32_t, x->n + 1);
	int32_t *maker = arena_array(f->a, int32_t, f->s->tensor.n + 1);

	for (int32_t t = 0; t < f->s->tensor.n; t++)
		maker[t] = -1;
	for (int32_t i = x->n - 1; i >= 0; i--) {
		const fuse_group *o = g->at.at[i];

		next[i] = head[leader[i]];
		head[leader[i]] = i + 1;
		for (int32_t k = 0; k < o->source.n; k++) {
			const eqn_unit *u = f->unit[o->source.at[k]];

			for (int32_t c = 0; c < u->e.n_out; c++)
				maker[u->e.out[c]] = leader[i];
		}
	}
	/* the groups of a leader one after the other */
	for (int32_t it = 0; it < x->n; it++)
		for (int32_t i = head[it]; i > 0; i = next[i - 1])
			for (int32_t k = 0; k < g->at.at[i - 1]->source.n; k++)
				note_reads(x, f->unit[g->at.at[i - 1]->source.at[k]],
					it, maker);
	for (int32_t it = 0; it < x->n; it++) {
		x->idle[it] = true;
		for (int32_t i = head[it]; i > 0; i = next[i - 1])
			for (int32_t k = 0; k < g->at.at[i - 1]->source.n; k++)
				x->idle[it] = x->idle[it] && !takes(x,
					f->unit[g->at.at[i - 1]->source.at[k]]);
	}
}

fuse_early *fuse_early_new(
	fuse_state *f, const fuse_groups *g, const int32_t *leader)
{
	fuse_early *x = arena_make(f->a, fuse_early);
	size_t room = (size_t)g->at.n + 1;

	x->f = f;
	x->n = g->at.n;
	x->idle = arena_array(f->a, bool, room);
	x->fails = arena_array(f->a, bool, room);
	x->done = arena_array(f->a, bool, room);
	x->reads = arena_alloc(f->a, room, sizeof *x->reads);
	x->readers = arena_alloc(
		f->a, (size_t)f->s->tensor.n + 1, sizeof *x->readers);
	x->left = arena_array(f->a, int32_t, f->s->tensor.n + 1);
	note_groups(x, g, leader);
	return x;
}

void fuse_early_ready(fuse_early *x, int32_t it)
{
	for (int32_t i = 0; i < x->reads[it].n && x->idle[it]; i++)
		if (x->left[x->reads[it].at[i]] == 1) {
			*vec_push(x->f->a, &x->found) = it;
			return;
		}
}

/* What is read by one other group only may end with it. */
void fuse_early_ran(fuse_early *x, int32_t it)
{
	x->done[it] = true;
	for (int32_t i = 0; i < x->reads[it].n; i++) {
		int32_t t = x->reads[it].at[i];

		if (--x->left[t] != 1)
			continue;
		for (int32_t k = 0; k < x->readers[t].n; k++) {
			int32_t other = x->readers[t].at[k];

			if (!x->done[other] && x->idle[other])
				*vec_push(x->f->a, &x->found) = other;
		}
	}
}

int32_t fuse_early_next(fuse_early *x, const bool *ready)
{
	while (x->failing < x->n &&
		(x->done[x->failing] || !x->fails[x->failing]))
		x->failing++;
	while (x->n_taken < x->found.n) {
		int32_t it = x->found.at[x->n_taken++];

		if (ready[it] && it < x->failing)
			return it;
	}
	return -1;
}
