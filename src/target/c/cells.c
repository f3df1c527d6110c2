/*
 * cells.c: the pieces of a kernel's scratch, for callers that give each piece a
 * place of its own: copies of constants in read-only memory, the rest elsewhere.
 *
 *     pack.2: bytes 0 .. 4096, by phase 0      cell 0
 *     part.0: bytes 4096 .. 4160, by phase 1   cell 1
 *     part.1: bytes 4128 .. 4192, by phase 2   cell 1: they overlap
 *
 * And which arrays the statements of a block name.
 */
#include "target/c/text.h"

static void mark(const kern_block *b, uint32_t phase, uint32_t *written)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];
		kern_accessed t[KERN_MOST_ACCESSED];

		for (int32_t j = kern_accesses(s, t) - 1; j >= 0; j--)
			if (t[j].writes)
				written[t[j].at->array] |= UINT32_C(1) << phase;
		mark(&s->body, phase, written);
		mark(&s->other, phase, written);
	}
}

static size_t end_of(const kern_array *r)
{
	return (size_t)r->offset + (size_t)r->elems * dtype_size(r->dtype);
}

/* Adds the array to the cells, which are sorted and do not overlap. */
static void add(c_cell *cell, int32_t *n, const c_cell *more)
{
	c_cell all = *more;
	int32_t first = 0, last;

	while (first < *n &&
		cell[first].offset + cell[first].bytes <= all.offset)
		first++;
	for (last = first; last < *n &&
		cell[last].offset < all.offset + all.bytes; last++) {
		size_t end = cell[last].offset + cell[last].bytes;

		if (end < all.offset + all.bytes)
			end = all.offset + all.bytes;
		if (cell[last].offset < all.offset)
			all.offset = cell[last].offset;
		all.bytes = end - all.offset;
		all.written |= cell[last].written;
	}
	memmove(&cell[first + 1], &cell[last],
		(size_t)(*n - last) * sizeof *cell);
	cell[first] = all;
	*n += 1 - (last - first);
}

void c_find_cells(arena *a, const kern_kernel *k, c_kernel *out)
{
	uint32_t *written = arena_array(a, uint32_t, k->array.n + 1);
	c_cell *cell = arena_array(a, c_cell, k->array.n + 2);

	for (int32_t i = 0; i < k->n_phases; i++)
		mark(&k->phase[i].body, (uint32_t)i, written);
	for (int32_t i = 0; i < k->array.n; i++) {
		const kern_array *r = &k->array.at[i];

		if (r->space == KERN_SCRATCH && r->elems > 0)
			add(cell, &out->n_cells,
				&(c_cell){(size_t)r->offset,
					end_of(r) - (size_t)r->offset,
					written[i]});
	}
	out->cell = cell;
}

static void use_value(const printer *p, kern_val v, bool *used)
{
	if (kern_at(p->k, v)->op == KERN_LOAD)
		used[kern_at(p->k, v)->at.array] = true;
}

void c_find_used(const printer *p, const kern_block *b, bool *used)
{
	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];
		kern_accessed t[KERN_MOST_ACCESSED];

		if (s->kind == KERN_LET)
			use_value(p, s->v, used);
		use_value(p, s->x, used);
		for (int32_t j = kern_accesses(s, t) - 1; j >= 0; j--)
			used[t[j].at->array] = true;
		c_find_used(p, &s->body, used);
		c_find_used(p, &s->other, used);
	}
}
