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
		return n->kind == LOOP_JOIN ? k->eqn[n->eqn].n_parts : 1;
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

/* Of so many iterations, each in `others` chunks, those of a warp, if all warps of the
 * machine have some: they wait for memory, each for its own. */
static int64_t share_of(const loop_kernel *k, int64_t ext, int64_t others)
{
	int64_t warps = k->machine->threads / others;

	if (k->machine->block.warps == 1)
		return INT64_MAX;
	return warps > 1 ? (ext + warps - 1) / warps : ext;
}

/* The length of a block of n's variable, whose iterations are in `inside` chunks
 * each; 1: each iteration is a chunk. */
static int64_t chunk_size(
	loop_kernel *k, loop_node *n, int64_t n_chunks, int64_t inside)
{
	int64_t ext = k->var[n->var].extent, work = loop_work(k, n) / inside;
	int64_t each = work > ext ? work / ext : 1, size;
	int64_t most = k->machine->schedule.max_chunks / n_chunks / inside;

	if (each < 1)
		each = 1;
	if (most < 1)
		most = 1;
	size = (k->machine->schedule.chunk_elems + each - 1) / each;
	if (size > share_of(k, ext, n_chunks * inside))
		size = share_of(k, ext, n_chunks * inside);
	if (size * most < ext)
		size = (ext + most - 1) / most;
	if (n->lanes > 1) { /* whole vectors, with equal alignment */
		int64_t step = (int64_t)n->lanes * n->unroll;

		size = (size + step - 1) / step * step;
	} else { /* whole blocks of rows, if enough chunks are left */
		int64_t rows = loop_rows_at_once(k, n);

		rows = (size + rows - 1) / rows * rows;
		if (rows <= share_of(k, ext, n_chunks * inside) &&
			(rows * k->machine->schedule.min_chunks <= ext || rows < 2 * size))
			size = rows;
	}
	return size;
}

/* The chunks into which a reduction further down is cut already; 0: none. */
static int64_t cut_inside(const loop_kernel *k, const loop_node *n)
{
	while (n->n_child == 1) {
		n = n->child[0];
		if (n->parallel)
			return (k->var[n->var].extent + n->size - 1) / n->size;
	}
	return 0;
}

/*
 * Of a loop n above a reduction that is cut: each of its iterations is a chunk, or
 * blocks of its lanes are, or it is complete in every chunk. Returns the number of
 * pieces.
 */
static int64_t spread_above(
	loop_kernel *k, loop_node **at, int64_t n_chunks, int64_t inside)
{
	loop_node *n = *at;
	int64_t ext = k->var[n->var].extent, size;

	if (n->kind != LOOP_FOR || k->var[n->var].kind != AXIS_P)
		return 1;
	if (n->lanes <= 1) {
		n->parallel =
			ext <= k->machine->schedule.max_chunks / n_chunks;
		return n->parallel ? ext : 1;
	}
	size = chunk_size(k, n, n_chunks, inside);
	if (size >= ext)
		return 1;
	*at = block(k, n, size);
	return (ext + size - 1) / size;
}

/* Makes chunks of the blocks of n, or of several of them where there are too many;
 * returns their number, 1 if there is no room for more. */
static int64_t spread_blocks(loop_kernel *k, loop_node **at, int64_t n_chunks)
{
	loop_node *n = *at;
	int64_t ext = k->var[n->var].extent, each = 1;
	int64_t most = k->machine->schedule.max_chunks / n_chunks;
	int64_t pieces = (ext + n->size - 1) / n->size;

	if (pieces > most && k->machine->block.warps > 1 && most > 1)
		each = (pieces + most - 1) / most;
	else if (pieces > most)
		return 1;
	if (each > 1)
		*at = block(k, n, each * n->size);
	else
		n->parallel = true;
	return (pieces + each - 1) / each;
}

/* The work of a chunk that is not divided further; warps: those of its block. */
static int64_t enough_work(const loop_kernel *k, int32_t warps)
{
	return k->machine->schedule.chunk_elems *
	       (warps > 1 ? 1 : k->machine->schedule.large_block);
}

/* Divides the chain of loops at *at into chunks; returns their number. */
static int64_t spread(loop_kernel *k, loop_node **at, int32_t warps)
{
	int64_t n_chunks = 1, all = loop_work(k, *at), inside;

	for (;;) {
		loop_node *n = *at;
		int64_t size, ext;

		if (n->kind != LOOP_FOR && n->kind != LOOP_BLOCK)
			break;
		ext = k->var[n->var].extent;
		if (n->parallel) { /* chosen already, by split.c */
			n_chunks *= (ext + n->size - 1) / n->size;
		} else if ((inside = cut_inside(k, n)) > 0) {
			n_chunks *= spread_above(k, at, n_chunks, inside);
		} else if (k->var[n->var].kind != AXIS_P ||
			   n_chunks >= k->machine->schedule.max_chunks) {
			break;
		} else if (n->kind == LOOP_BLOCK) {
			n_chunks *= spread_blocks(k, at, n_chunks);
			if (!n->parallel || all / n_chunks <= enough_work(k, warps))
				break;
		} else {
			size = chunk_size(k, n, n_chunks, 1);
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
			ph->n_chunks = spread(k, &ph->root[0], ph->warps);
		say_chunks(k, p);
	}
}
