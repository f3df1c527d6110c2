/*
 * parallel.c: divides outer loops into chunks.
 *
 * Of the loops from the root to the first that is reduced, scanned or has
 * siblings, the last is cut such that a chunk has at least chunk_elems elements of
 * work; each iteration of those above it is a chunk.
 *
 *   for i < 8192 { for j < 1024 { .. } }   ->   block i 32: chunk = 32 rows
 */
#include "schedule/local.h"

/* Elements of work below n, over all iterations of all loops. */
int64_t loop_work(const loop_kernel *k, const loop_node *n)
{
	int64_t sum = 0;
	int32_t i;

	if (!loop_is_loop(n))
		return 1;
	for (i = 0; i < n->n_child; i++)
		sum += loop_work(k, n->child[i]);
	if (n->kind != LOOP_FOR)
		return sum;
	return sum > INT64_MAX / k->var[n->var].extent
		       ? INT64_MAX
		       : sum * k->var[n->var].extent;
}

static loop_node *block(loop_kernel *k, loop_node *n, int64_t size)
{
	loop_node *b = loop_node_new(k->a, LOOP_BLOCK);

	b->var = n->var;
	b->size = size;
	b->parallel = true;
	loop_node_adopt(k->a, b, n);
	return b;
}

/* The length of a block of n's variable; 1: each iteration is a chunk. */
static int64_t chunk_size(
	const loop_kernel *k, const loop_node *n, int64_t n_chunks)
{
	int64_t ext = k->var[n->var].extent, work = loop_work(k, n);
	int64_t each = work > ext ? work / ext : 1, size;
	int64_t most = k->machine->schedule.max_chunks / n_chunks;

	if (each < 1)
		each = 1;
	size = (k->machine->schedule.chunk_elems + each - 1) / each;
	if (size * most < ext)
		size = (ext + most - 1) / most;
	if (n->lanes > 1) { /* whole vectors, with equal alignment */
		int64_t step = (int64_t)n->lanes * n->unroll;

		size = (size + step - 1) / step * step;
	}
	return size;
}

/* Is a reduction further down cut into chunks already? */
static bool is_cut_inside(const loop_node *n)
{
	while (n->n_child == 1) {
		n = n->child[0];
		if (n->parallel)
			return true;
	}
	return false;
}

/*
 * Divides the chain of loops at *at into chunks; returns their number. A loop
 * above a reduction that is cut cannot be a block: each of its iterations is a
 * chunk, or it is complete in every chunk.
 */
static int64_t spread(loop_kernel *k, loop_node **at)
{
	int64_t n_chunks = 1, all = loop_work(k, *at);

	for (;;) {
		loop_node *n = *at;
		int64_t size, ext;

		if (n->kind != LOOP_FOR && n->kind != LOOP_BLOCK)
			break;
		ext = k->var[n->var].extent;
		if (n->parallel) { /* chosen already, by split.c */
			n_chunks *= (ext + n->size - 1) / n->size;
		} else if (is_cut_inside(n)) {
			n->parallel = n->kind == LOOP_FOR && n->lanes <= 1 &&
				      k->var[n->var].kind == AXIS_P &&
				      ext <= k->machine->schedule.max_chunks /
						      n_chunks;
			n_chunks *= n->parallel ? ext : 1;
		} else if (k->var[n->var].kind != AXIS_P ||
			   n_chunks >= k->machine->schedule.max_chunks) {
			break;
		} else if (n->kind == LOOP_BLOCK) {
			if (n_chunks * ((ext + n->size - 1) / n->size) >
				k->machine->schedule.max_chunks)
				break;
			n->parallel = true;
			n_chunks *= (ext + n->size - 1) / n->size;
			if (all / n_chunks <=
				k->machine->schedule.large_block *
					k->machine->schedule.chunk_elems)
				break;
		} else {
			size = chunk_size(k, n, n_chunks);
			if (size >= ext)
				break;
			if (size > 1 || n->lanes > 1) {
				*at = block(k, n, size);
				n_chunks *= (ext + size - 1) / size;
				break;
			}
			n->parallel = true;
			n_chunks *= ext;
		}
		if (n->n_child != 1)
			break;
		at = &n->child[0];
	}
	return n_chunks;
}

static void say_chunks(loop_kernel *k, int32_t p)
{
	const loop_phase *ph = &k->phase[p];
	const loop_node *n = ph->root[0];

	if (ph->n_chunks > 1)
		loop_decide(k, DECIDE_CHUNKS_TAKEN, p, -1, ph->n_chunks, 0);
	else if (ph->n_roots != 1)
		loop_decide(k, DECIDE_CHUNKS_ROOTS, p, -1, ph->n_roots, 0);
	else if (!loop_is_loop(n))
		loop_decide(k, DECIDE_CHUNKS_NONE, p, -1, 0, 0);
	else if (k->var[n->var].kind != AXIS_P)
		loop_decide(k, DECIDE_CHUNKS_LOOP, p, n->var, 0, 0);
	else
		loop_decide(k, DECIDE_CHUNKS_LITTLE, p, -1, loop_work(k, n),
			k->machine->schedule.chunk_elems);
}

void loop_parallel(loop_kernel *k)
{
	int32_t p;

	for (p = 0; p < k->n_phases; p++) {
		loop_phase *ph = &k->phase[p];

		if (ph->tiles)
			continue;
		ph->n_chunks = 1;
		if (ph->n_roots == 1)
			ph->n_chunks = spread(k, &ph->root[0]);
		say_chunks(k, p);
	}
}
