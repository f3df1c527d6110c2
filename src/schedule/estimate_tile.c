/*
 * estimate_tile.c: estimates the cycles of the tiles of a block: so many rows by so many
 * vectors in registers, for each term of their sums a load of each and a product of each
 * pair.
 */
#include "schedule/estimate_local.h"

/* The last block of columns has a part of a vector more than its length says: of 56 in
 * blocks of 32, vectors of 16, there are 4 and not 3.5. */
static double partial_columns(const estimate *w, const loop_node *n)
{
	const loop_node *b = loop_block_around(n, n->var), *around;
	double all, full, rest;

	if (b == NULL)
		return 1;
	around = loop_block_around(b, n->var);
	all = around != NULL ? (double)around->size : (double)w->k->var[n->var].extent;
	full = (double)(int64_t)(all / (double)b->size);
	rest = all - full * (double)b->size;
	if (rest <= 0 || full < 1)
		return 1;
	return (full * estimate_whole((double)b->size / n->lanes) + estimate_whole(rest / n->lanes)) /
	       (all / (double)b->size * estimate_whole((double)b->size / n->lanes));
}

/* A tile, rows by columns in registers: bound by products or by their loads. */
double estimate_tile(const estimate *w, const loop_node *n)
{
	const machine_cycles *c = &w->k->machine->cycles;
	const machine_matrix *m = &w->k->machine->matrix;
	double rows = n->row_var < 0 ? 1 : estimate_length(w, n->row_var);
	double columns = estimate_length(w, n->var), steps = 1, vectors, most, each;
	double height = rows < (double)n->size ? rows : (double)n->size;
	double tiles = estimate_whole(rows / (double)n->size), start, group = n->dot;
	double more = 0; /* sums of the factors beside */

	for (int32_t i = 0; i < n->n_sums; i++)
		steps *= estimate_length(w, n->sum[i]);
	for (int32_t i = 0; i < n->n_clip; i++)
		steps *= loop_clip_part(w->k, &n->clip[i]);
	vectors = estimate_whole(columns / n->lanes);
	most = (double)n->unroll < vectors ? (double)n->unroll : vectors;
	tiles *= estimate_whole(vectors / most);
	if (n->dot > 0) {
		more = (n->offset[0] != 0 ? most : 0) +
		       (n->offset[1] != 0 ? height / n->lanes : 0);
		steps = steps / estimate_length(w, n->sum[0]) *
			estimate_whole(estimate_length(w, n->sum[0]) / group);
	}
	each = (n->dot > 0 ? c->dot : c->fma) * (height * most + more);
	if (each < c->tile_load * (height + most))
		each = c->tile_load * (height + most);
	if (each < c->chain)
		each = c->chain;
	if (n->tiled) {
		double begins = steps / estimate_whole(estimate_length(w, n->sum[0]) / group);

		each = machine_tile_cycles(w->k->machine, height, most,
			       steps / begins) * begins / steps;
	}
	if (n->matrix)
		each = ((n->warps > 0 ? m->warps_cycles : m->cycles) * most -
			       (n->in_memory ? m->rows_cycles : 0)) *
		       (double)dtype_size(n->factor[1]->dtype) / m->row_bytes *
		       (loop_has_parts(n) ? 3 : 1);
	if (w->warps < 2) /* its factors are not in memory that warps share */
		each *= w->k->machine->block.alone;
	start = n->held > 0 ? 0 : c->tile_start * height * most;
	tiles *= partial_columns(w, n);
	return tiles * estimate_needed(w, n) * (steps * each + start);
}
