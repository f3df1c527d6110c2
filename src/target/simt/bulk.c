/* bulk.c: copies in bulk on emulated warps; it stands behind matrix.c. */
/*
 * Boxes of a matrix of two bytes an element, which the host has described, into swizzled
 * arrays. The first thread of the block begins a copy, and it ends where that thread waits
 * for its group; until then it is under way, late or early, as other copies. A box that is
 * not inside of the matrix would be filled up with zeros: no kernel asks for that.
 */
#define BULK_MAP const struct bulk_map
SIMT_USED static struct bulk_map simt_bulk_map(
	const void *base, simt_int columns, simt_int rows, int box)
{
	return (struct bulk_map){ .kind = SIMT_BULK_MAP, .base = (simt_word)base,
		.columns = (simt_word)columns, .rows = (simt_word)rows,
		.step = 2 * (simt_word)columns, .box_columns = 64,
		.box_rows = (simt_word)box, .size = 2 };
}
SIMT_USED static int simt_is_first(const struct simt_warp *w)
{
	return w->number == 0 && w->lane == 0;
}
/* Row i of the box c of a copy, 16 bytes at a time: p is in the array, q in the matrix. */
SIMT_USED static char *simt_bulk_to(const struct simt_bulk *c, int i, int box, int piece)
{
	const simt_word p = (simt_word)(c->to - c->block->shared) +
		(simt_word)box * c->next + 128 * (simt_word)i + 16 * (simt_word)piece;

	return c->block->shared + (p ^ (p >> 3 & 0x70));
}
SIMT_USED static const char *simt_bulk_from(
	const struct simt_bulk *c, int i, int box, int piece)
{
	return (const char *)c->map.base + ((simt_word)c->y + (simt_word)i) * c->map.step +
		2 * (simt_word)c->x + 128 * (simt_word)box + 16 * (simt_word)piece;
}
SIMT_USED static void simt_bulk_each(struct simt_bulk *c, int begins)
{
	struct simt_block *b = c->block;
	int i, box, piece;

	for (box = 0; box < c->boxes; box++)
		for (i = 0; i < (int)c->map.box_rows; i++)
			for (piece = 0; piece < 8; piece++) {
				char *to = simt_bulk_to(c, i, box, piece);
				const char *from = simt_bulk_from(c, i, box, piece);
				const simt_word in = (simt_word)(to - b->shared);

				if (!begins)
					__builtin_memset(b->under_way + in / 4, 0, 4);
				if (!begins && b->late)
					__builtin_memcpy(to, from, 16);
				simt_touch(from, 16, 0, c->line);
				simt_touch(to, 16, 1, c->line);
				if (!begins)
					continue;
				__builtin_memset(b->under_way + in / 4, 1, 4);
				if (b->late)
					__builtin_memset(to, 255, 16);
				else
					__builtin_memcpy(to, from, 16);
			}
}
/* Is it a box of a matrix as the device copies it, to a place for eight rows? */
SIMT_USED static int simt_bulk_fits(const struct simt_bulk *c)
{
	const struct bulk_map *m = &c->map;
	const simt_word in = (simt_word)(c->to - c->block->shared);
	const simt_word bytes = (simt_word)c->boxes * m->box_rows * 128;

	return m->kind == SIMT_BULK_MAP && m->size == 2 && m->base % 16 == 0 &&
		m->step % 16 == 0 && m->box_columns == 64 && m->box_rows >= 8 &&
		m->box_rows <= 256 && c->x >= 0 && c->y >= 0 &&
		(simt_word)c->x + 64 * (simt_word)c->boxes <= m->columns &&
		(simt_word)c->y + m->box_rows <= m->rows && in % 1024 == 0 &&
		c->next % 1024 == 0 && in < c->block->n_shared &&
		c->block->n_shared - in >= bytes;
}
/* Rows of a swizzled array, from element `at` on. */
struct simt_place {
	__UINT16_TYPE__ *array;
	simt_int at, elems;
	int row;
};
SIMT_USED static void simt_copy_each(const struct simt_place *to,
	const __UINT16_TYPE__ *from, simt_int m, int rows, simt_int line)
{
	struct simt_warp *w = simt_now;
	int i;

	for (i = 32 * w->number + w->lane; i < rows * to->row; i += 32 * w->block->n) {
		__UINT16_TYPE__ *p =
			to->array + simt_swizzled(to->at + i, to->row, to->elems);
		const __UINT16_TYPE__ *q = from + m * (i / to->row) + i % to->row;

		simt_touch(q, 2, 0, line);
		simt_touch(p, 2, 1, line);
		w->copied[w->lane] = 1;
		*p = *q;
	}
}
SIMT_CALLED static void simt_copy_bulk(int wide, const struct bulk_map *map,
	struct simt_place to, int x, int y, const __UINT16_TYPE__ *from, simt_int m,
	int rows, simt_int line)
{
	struct simt_warp *w = simt_now;
	struct simt_block *b = w->block;
	struct simt_bulk *c = &b->bulk[b->n_bulk];

	if (!wide)
		simt_copy_each(&to, from, m, rows, line);
	if (!wide || !simt_is_first(w))
		return;
	if (b->n_bulk == SIMT_BULKS) {
		simt_fail(b, line, SIMT_BAD_BULK);
		return;
	}
	*c = (struct simt_bulk){ b, *map, (char *)(to.array + to.at / to.row * 64),
		128 * (simt_word)(to.elems / to.row), x, y, to.row / 64, w->group[0],
		line };
	if (!simt_bulk_fits(c) || c->map.box_rows != (simt_word)rows) {
		simt_fail(b, line, SIMT_BAD_BULK);
		return;
	}
	simt_bulk_each(c, 1);
	b->n_bulk++;
}
SIMT_CALLED static void simt_bulk_wait(int n)
{
	struct simt_warp *w = simt_now;
	struct simt_block *b = w->block;
	int i, left = 0;

	simt_copy_wait(n);
	if (!simt_is_first(w))
		return;
	if (w->group[0] - b->bulk_met > (unsigned)n)
		b->bulk_met = w->group[0] - (unsigned)n;
	for (i = 0; i < b->n_bulk; i++)
		if (w->group[0] - b->bulk[i].group > (unsigned)n)
			simt_bulk_each(&b->bulk[i], 0);
		else
			b->bulk[left++] = b->bulk[i];
	b->n_bulk = left;
}
SIMT_CALLED static void simt_bulk_commit(simt_int line)
{
	struct simt_warp *w = simt_now;

	w->group[w->lane]++;
	if (simt_is_first(w) && w->group[0] - w->block->bulk_met > SIMT_BULK_GROUPS)
		simt_fail(w->block, line, SIMT_BAD_BULK);
}
#define BULK_OPEN(memory) ((void)(memory))
#define COPY_BULK(wide, map, array, at, elems, row, x, y, from, m, rows) \
	simt_copy_bulk((wide), &(map), (struct simt_place){ (array), (at), (elems), (row) }, \
		(int)(x), (int)(y), (from), (m), (rows), __LINE__)
#define BULK_COMMIT() simt_bulk_commit(__LINE__)
#define BULK_WAIT(n) simt_bulk_wait(n)
