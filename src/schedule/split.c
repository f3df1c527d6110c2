/*
 * split.c: splits reductions that have too few independent pieces.
 *
 * The loops from the root that all statements share give independent pieces. If
 * these are few, and the next loop is reduced, by equations that no statement of
 * the kernel reads, the blocks of that loop become chunks: each stores partial
 * results in scratch, and a second phase combines them in order.
 *
 *   init s; for i < 16M { acc s }     ->
 *   phase 0: block i 65536 { init s; for i { acc s }; part s }
 *   phase 1: join s                      s = init (+) part 0 (+) part 1 ..
 *
 * The number of blocks depends only on sizes, and so do the bits of the result.
 * Where lanes are threads, and the loops around take them (columns), it is the
 * number with which the estimate is the least.
 */
#include "schedule/estimate.h"
#include "schedule/lanes.h"

/* The only loop of the list that is not a nest of INITs; -1: there are several. */
static int32_t the_loop(loop_node *const *list, int32_t n)
{
	int32_t i, at = -1;

	for (i = 0; i < n; i++) {
		const loop_node *c = list[i];

		while (loop_is_loop(c) && c->n_child == 1)
			c = c->child[0];
		if (c->kind == LOOP_INIT)
			continue;
		if (at >= 0 || !loop_is_loop(list[i]))
			return -1;
		at = i;
	}
	return at;
}

static loop_node *leaf_node(
	loop_kernel *k, loop_kind kind, int32_t eqn, loop_set todo)
{
	loop_node *top = loop_node_new(k->a, kind);
	int32_t i;

	top->eqn = eqn;
	for (i = k->n_vars - 1; i >= 0; i--)
		if ((todo & BIT(i)) != 0)
			top = loop_node_for(k->a, i, top);
	return top;
}

static int64_t partial_bytes(const loop_kernel *k, loop_set eqns)
{
	int64_t sum = 0;
	int32_t i, j;

	for (i = 0; i < k->n_eqns; i++)
		for (j = 0; i < 64 && (eqns & BIT(i)) != 0 &&
			    j < k->eqn[i].e->n_out;
			j++)
			sum += k->s->tensor.at[k->eqn[i].e->out[j]].numel *
			       (int64_t)dtype_size(k->eqn[i].acc[j]);
	return sum;
}

void loop_room_for_parts(loop_kernel *k)
{
	for (int32_t i = 0; i < k->n_eqns; i++) {
		loop_eqn *e = &k->eqn[i];

		for (int32_t j = 0; j < e->e->n_out && e->n_parts > 0; j++) {
			int64_t numel = k->s->tensor.at[e->e->out[j]].numel;

			k->scratch_bytes = (k->scratch_bytes + 63) &
					   ~(size_t)63;
			e->part_at[j] = (int64_t)k->scratch_bytes;
			k->scratch_bytes += (size_t)e->n_parts *
					    dtype_size(e->acc[j]) *
					    (size_t)numel;
		}
	}
}

/* Adds the phase that combines the partial results. */
static void second_phase(loop_kernel *k, loop_set eqns, int64_t n_parts)
{
	loop_phase *ph = &k->phase[k->n_phases++];
	int32_t i;

	*ph = (loop_phase){.n_chunks = 1,
		.root = arena_array(k->a, loop_node *, k->n_eqns + 1)};
	for (i = 0; i < k->n_eqns && i < 64; i++) {
		loop_eqn *e = &k->eqn[i];

		if ((eqns & BIT(i)) == 0)
			continue;
		e->n_parts = n_parts;
		ph->root[ph->n_roots++] = leaf_node(k, LOOP_JOIN, i, e->left);
	}
	loop_room_for_parts(k);
}

/*
 * Splits list[at], a loop over a reduced variable. The blocks stand around the list,
 * or around all loops (outside): then chunks with neighbouring numbers have
 * neighbouring columns, which are in the same pages of memory.
 */
static void split(loop_kernel *k, loop_phase *ph, loop_node *parent, int32_t at,
	loop_set eqns, int64_t size, bool outside)
{
	loop_node **list = parent == NULL ? ph->root : parent->child;
	int32_t n = parent == NULL ? ph->n_roots : parent->n_child, i;
	loop_node *b = loop_node_new(k->a, LOOP_BLOCK), *around = parent;
	int64_t ext = k->var[list[at]->var].extent;
	loop_set open = loop_node_open(parent);
	loop_node **all = arena_array(k->a, loop_node *, n + 65);

	b->var = list[at]->var;
	b->size = size;
	b->parallel = true;
	for (i = 0; i < n; i++)
		all[i] = list[i];
	for (i = 0; i < k->n_eqns && i < 64; i++)
		if ((eqns & BIT(i)) != 0)
			all[n++] = leaf_node(
				k, LOOP_PART, i, k->eqn[i].left & ~open);
	if (outside && parent != NULL) {
		parent->child = all;
		parent->n_child = n;
		loop_node_adopt(k->a, b, ph->root[0]);
		around = NULL;
	} else {
		b->child = all;
		b->n_child = n;
	}
	if (around == NULL) {
		ph->root[0] = b;
		ph->n_roots = 1;
	} else {
		around->child[0] = b;
		around->n_child = 1;
	}
	second_phase(k, eqns, (ext + size - 1) / size);
}

/* Sums are there, and nothing that blocks of them could share. */
static void say_little(loop_kernel *k, int64_t all)
{
	for (int32_t v = 0; v < k->n_vars; v++)
		for (int32_t i = 0; i < k->n_eqns; i++)
			if ((k->eqn[i].reduced & BIT(v)) != 0)
				loop_decide(k, DECIDE_PARTS_LITTLE, v, -1, all,
					2 * k->machine->schedule.chunk_elems);
}

/* Of the loops that are reduced below n. */
static void say_enough(loop_kernel *k, const loop_node *n, int64_t pieces)
{
	if (n->kind == LOOP_FOR && k->var[n->var].kind == AXIS_R)
		loop_decide(k, DECIDE_PARTS_PIECES, n->var, -1, pieces,
			k->machine->schedule.min_chunks);
	for (int32_t i = 0; i < n->n_child; i++)
		say_enough(k, n->child[i], pieces);
}

/* ---- where a sum is cut ---- */

struct cut {
	loop_phase *ph;
	loop_node *parent; /* of the loop that is reduced; NULL: it is a root */
	int32_t at;
	loop_set eqns;
	int64_t pieces; /* of the loops around */
	int64_t all;	/* elements of work */
	bool columns;	/* a loop around has the lanes, and they are threads */
};

static loop_node *reduced_of(const struct cut *c)
{
	return c->parent == NULL ? c->ph->root[c->at] : c->parent->child[c->at];
}

/* The independent pieces that a loop gives: vectors of its lanes, if a lane is a
 * thread and so alone is no piece of work. */
static int64_t pieces_of(loop_kernel *k, const loop_node *n, bool *columns)
{
	int64_t ext = k->var[n->var].extent, lanes;

	if (k->machine->block.warps <= 1 ||
		!loop_parallel_below(k, n, n->var) || !loop_wants_lanes(k, n))
		return ext;
	*columns = true;
	lanes = loop_lanes_for(k, n);
	return (ext + lanes - 1) / lanes;
}

/* Finds the loop over a sum that may be cut; false: there is none. */
static bool find(loop_kernel *k, struct cut *c)
{
	for (;;) {
		loop_node **list = c->parent == NULL ? c->ph->root
						     : c->parent->child;
		int32_t n = c->parent == NULL ? c->ph->n_roots
					      : c->parent->n_child;
		loop_node *l;

		c->at = the_loop(list, n);
		if (c->at < 0 || list[c->at]->kind != LOOP_FOR)
			return false;
		l = list[c->at];
		if (k->var[l->var].kind == AXIS_P && n == 1) {
			c->pieces *= pieces_of(k, l, &c->columns);
			c->parent = l;
			if (c->columns ||
				c->pieces < k->machine->schedule.min_chunks)
				continue;
			say_enough(k, l, c->pieces);
			return false;
		}
		if (loop_reducers(k, l, l->var, &c->eqns) && c->eqns != 0 &&
			k->var[l->var].kind != AXIS_S)
			return true;
		if (k->var[l->var].kind == AXIS_R)
			loop_decide(k, DECIDE_PARTS_READ, l->var, -1, 0, 0);
		return false;
	}
}

static int64_t most_parts(const loop_kernel *k, const struct cut *c)
{
	int64_t ext = k->var[reduced_of(c)->var].extent;
	int64_t n = c->all / k->machine->schedule.chunk_elems / c->pieces;
	/* partial results must be a small part of the bytes that are read */
	int64_t least = k->machine->schedule.least_part *
			partial_bytes(k, c->eqns);

	if (n > LOOP_MAX_CHUNKS)
		n = LOOP_MAX_CHUNKS;
	if (least > 0 && n > c->all / least)
		n = c->all / least;
	return n > ext ? ext : n;
}

static int64_t length_of_part(const loop_kernel *k, const struct cut *c, int64_t n)
{
	int64_t ext = k->var[reduced_of(c)->var].extent;

	return (ext + n - 1) / n;
}

static void cut_into(loop_kernel *k, const struct cut *c, int64_t n)
{
	split(k, c->ph, c->parent, c->at, c->eqns, length_of_part(k, c, n),
		c->columns);
}

static struct cut begin(loop_kernel *k)
{
	struct cut c = {.ph = &k->phase[k->n_phases - 1], .pieces = 1};

	for (int32_t i = 0; i < c.ph->n_roots; i++)
		c.all += loop_work(k, c.ph->root[i]);
	return c;
}

/* The seconds of the kernel with so many parts, as the passes behind make it. */
static double seconds_with(const loop_kernel *k, int64_t parts)
{
	loop_kernel *t = loop_trial(k);
	struct cut c = begin(t);
	loop_estimate e;

	if (parts > 1 && find(t, &c))
		cut_into(t, &c, parts);
	loop_vectorise(t);
	loop_parallel(t);
	loop_locate(t);
	loop_estimate_of(t, &e);
	return loop_estimate_seconds(&e, 0);
}

/* The number of parts with which the estimate is the least, at most `most`. */
static int64_t cheapest(loop_kernel *k, const struct cut *c, int64_t most)
{
	double least = seconds_with(k, 1);
	int64_t best = 1;

	for (int64_t n = 2; n <= most; n *= 2) {
		double s = seconds_with(k, n);

		if (s < least) {
			least = s;
			best = n;
		}
	}
	if (best == 1)
		loop_decide(k, DECIDE_PARTS_COST, reduced_of(c)->var, -1,
			c->pieces, 0);
	return best;
}

void loop_split_reductions(loop_kernel *k)
{
	struct cut c = begin(k);
	int64_t parts, size;
	int32_t var;

	loop_link(k);
	if (k->n_phases + 1 > LOOP_MAX_PHASES)
		return;
	if (c.all < 2 * k->machine->schedule.chunk_elems) {
		say_little(k, c.all);
		return;
	}
	if (!find(k, &c))
		return;
	var = reduced_of(&c)->var;
	parts = most_parts(k, &c);
	if (parts < 2) {
		loop_decide(k, DECIDE_PARTS_FEW, var, -1, c.all, c.pieces);
		return;
	}
	if (c.columns)
		parts = cheapest(k, &c, parts);
	if (parts < 2)
		return;
	size = length_of_part(k, &c, parts);
	loop_decide(k, DECIDE_PARTS_TAKEN, var, -1,
		(k->var[var].extent + size - 1) / size, 0);
	cut_into(k, &c, parts);
}
