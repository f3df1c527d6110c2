/*
 * distribute.c: moves sums to separate loops, if that allows lanes.
 *
 * A loop whose body contains a short loop, such as a sliding window, gets lanes if
 * its iterations are independent. A sum over it of values of the body prevents
 * that; so the sum moves to a copy of the loops that it reduces, after them. The
 * values that it reads go through memory or a buffer in the cache.
 *
 *   for i { for j { init y; for k < 9 { acc y }  s = f(y)  m += s } }   ->
 *   for i { for j { init y; for k < 9 { acc y }  s = f(y) } }
 *   for i { for j { m += s } }
 *
 * No statement in these loops reads the sum, which is final only after them; so
 * its terms can be added after all values are computed.
 */
#include "schedule/lanes.h"

/* Bytes of the values that the sums of n's body read, for each iteration. */
static int64_t bytes_of_each(loop_kernel *k, const loop_node *n)
{
	int64_t sum = 0;

	for (int32_t i = 0; i < n->n_child; i++) {
		const loop_node *c = n->child[i];
		const loop_eqn *e;

		if (!loop_adds_up(k, c, n->var))
			continue;
		for (int32_t j = 0; j < k->n_eqns; j++) {
			e = &k->eqn[j];
			for (int32_t o = 0; o < e->e->n_out; o++)
				if (loop_leaf_reads(k, c, e->e->out[o]))
					sum += (int64_t)dtype_size(e->acc[o]);
		}
	}
	return sum;
}

/* The outermost loop around n that contains nothing else, that the sums of n
 * reduce, and whose values fit the cache. */
static loop_node *highest(loop_kernel *k, loop_node *n)
{
	int64_t bytes = bytes_of_each(k, n) * k->var[n->var].extent;
	int64_t fit = k->machine->memory[MACHINE_L2].bytes / 2;

	if (bytes > fit) {
		loop_decide(k, DECIDE_APART_LARGE, n->var, -1, bytes, fit);
		return NULL;
	}
	for (loop_node *u = n->up; u != NULL; n = u, u = u->up) {
		bool all = u->kind == LOOP_FOR && u->n_child == 1 &&
			   !u->backward && !u->parallel;

		for (const loop_node *m = n; all && loop_is_loop(m);
			m = m->child[m->n_child - 1])
			for (int32_t i = 0; i < m->n_child; i++)
				if (loop_adds_up(k, m->child[i], m->var))
					all &= loop_adds_up(k, m->child[i], u->var);
		if (!all || !mul_ok(bytes, k->var[u->var].extent, &bytes) ||
			bytes > fit)
			break;
	}
	return n;
}

/* A copy of the chain of loops from n to `last`, with only the sums of its body. */
static loop_node *chain_of_sums(
	loop_kernel *k, const loop_node *n, const loop_node *last)
{
	loop_node *c = arena_copy(k->a, n, sizeof *n);

	c->child = NULL;
	c->n_child = 0;
	if (n != last) {
		loop_node_adopt(k->a, c, chain_of_sums(k, n->child[0], last));
		return c;
	}
	for (int32_t i = 0; i < n->n_child; i++)
		if (loop_adds_up(k, n->child[i], n->var))
			loop_node_adopt(k->a, c, n->child[i]);
	return c;
}

static void drop_sums(loop_kernel *k, loop_node *n)
{
	int32_t m = 0;

	for (int32_t i = 0; i < n->n_child; i++)
		if (!loop_adds_up(k, n->child[i], n->var))
			n->child[m++] = n->child[i];
	n->n_child = m;
}

/* Inserts `made` after n among its siblings. */
static void put_behind(
	loop_kernel *k, loop_phase *ph, loop_node *n, loop_node *made)
{
	loop_node *up = n->up;
	loop_node **old = up == NULL ? ph->root : up->child;
	int32_t count = up == NULL ? ph->n_roots : up->n_child, m = 0;
	loop_node **list = arena_array(k->a, loop_node *, count + 1);

	for (int32_t i = 0; i < count; i++) {
		list[m++] = old[i];
		if (old[i] == n)
			list[m++] = made;
	}
	if (up == NULL) {
		ph->root = list;
		ph->n_roots = m;
	} else {
		up->child = list;
		up->n_child = m;
	}
}

/* Distributes one loop at or below n; false: there is none. */
static bool distribute(loop_kernel *k, loop_phase *ph, loop_node *n)
{
	loop_node *top, *sums;
	bool rest;

	for (int32_t i = 0; i < n->n_child; i++)
		if (distribute(k, ph, n->child[i]))
			return true;
	if (!loop_may_distribute(k, n))
		return false;
	top = highest(k, n);
	if (top == NULL)
		return false;
	loop_decide(k, DECIDE_APART_TAKEN, n->var, -1, loop_sums_of(k, n, &rest),
		bytes_of_each(k, n) * k->var[n->var].extent);
	sums = chain_of_sums(k, top, n);
	drop_sums(k, n);
	put_behind(k, ph, top, sums);
	return true;
}

void loop_distribute(loop_kernel *k)
{
	for (int32_t p = 0; p < k->n_phases; p++) {
		loop_phase *ph = &k->phase[p];

		for (int32_t i = 0; i < ph->n_roots && !ph->tiles; i++) {
			loop_link(k);
			while (distribute(k, ph, ph->root[i]))
				loop_link(k);
		}
	}
}
