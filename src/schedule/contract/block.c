/*
 * block.c: chooses the sizes of blocks around products: docs/contractions.md.
 *
 * Consumes the outer loops and the products inside them; produces the block
 * size of each loop, so that rows and panels stay in the caches and there are
 * enough chunks. Also decides which products are tiled: if one is not, a block
 * may be unnecessary.
 */
#include "schedule/contract/contract.h"

/* Bytes of all values per iteration of the blocked loops. */
static int64_t bytes_of_each(const contract *c, loop_set blocked)
{
	const loop_kernel *k = c->k;
	int64_t sum = 1;

	for (int32_t i = 0; i < k->n_eqns; i++) {
		const loop_eqn *e = &k->eqn[i];
		int64_t bytes = (int64_t)dtype_size(e->acc[0]);

		if ((loop_param(k, e->e->out[0]) >= 0 &&
			    contract_product_of(c, i) < 0) ||
			(c->mixed != 0 && (e->left & blocked) == 0))
			continue;
		for (int32_t v = 0; v < k->n_vars; v++)
			if ((e->left & ~c->chain & BIT(v)) != 0 &&
				!mul_ok(bytes, k->var[v].extent, &bytes))
				bytes = INT32_MAX;
		sum += bytes < INT32_MAX ? bytes : INT32_MAX;
	}
	return sum;
}

/* The shortest pieces of the variable: vectors, if tiles walk it; some of them, if one
 * row does, whose sums are to overlap. */
static int64_t shortest(const contract *c, int32_t v, int64_t lanes)
{
	const machine_product *m = &c->k->machine->product;
	int64_t least = 1;

	for (int32_t i = 0; i < c->product.n; i++) {
		const contract_product *p = &c->product.at[i];
		int64_t n = p->lone ? lanes * m->lone_vectors / 2 : lanes;

		if ((v == p->i || v == p->j) && n > least)
			least = n;
	}
	return least;
}

/* Number of iterations of these loops, limited to what matters. */
static int64_t chunks_of(const contract *c, loop_set these)
{
	int64_t n = 1;

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((these & BIT(v)) != 0 &&
			!mul_ok(n, c->k->var[v].extent, &n))
			return INT32_MAX;
	return n < INT32_MAX ? n : INT32_MAX;
}

/*
 * Sizes for several loop nests: the largest number of rows whose values fit the
 * second cache. The last variable has the lanes, so its pieces are longer, and
 * it is cut for more chunks only if the other variables give too few.
 */
static void block_several(contract *c, loop_set blocked)
{
	const loop_kernel *k = c->k;
	int64_t fit = k->machine->memory[MACHINE_L2].bytes / 4 *
		      (c->mixed != 0 ? k->machine->product.mixed_quarters
				     : k->machine->product.block_quarters) /
		      bytes_of_each(c, blocked);
	int64_t lanes = machine_lanes(k->machine, 4),
		most = k->machine->product.block_most;
	int64_t pieces = 1;
	loop_set free = c->chain & ~c->mixed; /* their iterations are chunks */

	for (int32_t v = 63; v >= 0; v--) {
		int64_t n, chunks, size, least;

		if (v >= k->n_vars || (blocked & BIT(v)) == 0)
			continue;
		n = k->var[v].extent;
		least = shortest(c, v, lanes);
		free &= ~BIT(v);
		/* loops that no tile walks gain little from long blocks */
		chunks = least > 1 ? pieces * chunks_of(c, free)
				   : chunks_of(c, free & ~blocked);
		size = fit < most ? fit : most;
		if (chunks < k->machine->product.block_chunks &&
			(c->mixed & BIT(v)) == 0 &&
			size > n * chunks / k->machine->product.block_chunks)
			size = contract_ceil(
				n * chunks, k->machine->product.block_chunks);
		if (size < least)
			size = least;
		else if (size > 2 * lanes && least > 1)
			size -= size % (2 * lanes);
		else if (size > lanes && least > 1) /* whole vectors */
			size = fit < 2 * lanes ? lanes : 2 * lanes;
		c->block[v] = size < n ? size : n;
		if ((c->mixed & BIT(v)) == 0)
			pieces *= contract_ceil(n, c->block[v]);
		fit /= c->block[v];
		most = k->machine->product.block_inner;
	}
}

/* The outer loops that no block walks. */
static loop_set loops_around(const contract *c)
{
	loop_set s = c->chain;

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if (c->block[v] > 0)
			s &= ~BIT(v);
	return s;
}

/*
 * Is x read where it lies, from beyond the second cache, in runs that end before
 * the next term of the sum? Then its lines are not asked for early, and come slowly.
 */
static bool is_read_in_jumps(const contract *c, const contract_product *p)
{
	const machine *m = c->k->machine;
	int64_t bytes = contract_factor_bytes(c, p), step;

	if (p->pack_x || p->turned || p->few || c->number >= 0 ||
		loop_param(c->k, p->x->tensor) < 0 ||
		!ix_stride(p->x->form, p->s, c->k->var[p->s].extent, &step) ||
		(step < 0 ? -step : step) * bytes <= m->product.line)
		return false;
	for (int32_t v = 0; v < c->k->n_vars; v++)
		if (((p->rows | p->sums) & BIT(v)) != 0 &&
			!mul_ok(bytes, c->k->var[v].extent, &bytes))
			return true;
	return bytes > m->memory[MACHINE_L2].bytes;
}

/*
 * Cuts rows and columns into enough chunks so that little is read again: x once for
 * each piece of columns, y is copied once for each piece of rows.
 */
static void block_jumps(contract *c, const contract_product *p)
{
	const machine *m = c->k->machine;
	int64_t chunks = contract_ceil(
		m->product.column_chunks, chunks_of(c, loops_around(c)));
	int64_t panel = (int64_t)p->lanes * p->vectors;
	int64_t rows = contract_ceil(c->k->var[p->i].extent, p->tile);
	int64_t columns = contract_ceil(c->k->var[p->j].extent, panel);
	int64_t least = contract_ceil(rows * p->tile, c->block[p->i]);
	bool windows = (p->sums & ~BIT(p->s)) != 0;
	double x = (double)(contract_factor_bytes(c, p) * rows * p->tile) *
		   m->hertz / m->memory[MACHINE_L3].bytes_per_s;
	double y = (windows ? m->fusion.copy_window_rows : m->fusion.copy_rows) *
		   m->cycles.fma / p->lanes * (double)(columns * panel);
	double best = 0;

	for (int64_t n = 1; n <= chunks && n <= columns; n++) {
		int64_t r = contract_ceil(chunks, n);
		double cost;

		if (r < least)
			r = least;
		if (r > rows)
			continue;
		cost = x * m->fusion.strided * (double)n + y * (double)r;
		if (best > 0 && cost >= best)
			continue;
		best = cost;
		c->block[p->i] = p->tile * contract_ceil(rows, r);
		c->block[p->j] = panel * contract_ceil(columns, n);
	}
}

/* The length of blocks of n, in whole pieces of `each`, if there are so many blocks. */
static int64_t of_blocks(int64_t n, int64_t each, int64_t blocks)
{
	return each * contract_ceil(contract_ceil(n, each), blocks);
}

/*
 * Sizes for tile registers: squares, as each block of terms comes to the core once for all
 * rows, and once for all columns, of a chunk; smaller ones where that leaves few chunks.
 */
static void block_tiles(const contract *c, const contract_product *p)
{
	const machine *m = c->k->machine;
	int64_t rows = c->k->var[p->i].extent, columns = c->k->var[p->j].extent;
	int64_t panel = (int64_t)p->lanes * p->vectors;
	int64_t above = contract_ceil(rows, m->tiles.block);
	int64_t beside = contract_ceil(columns, m->tiles.block);
	int64_t chunks = chunks_of(c, loops_around(c));

	while (chunks * above * beside < m->product.copied_chunks &&
		beside < contract_ceil(columns, panel))
		beside++;
	while (chunks * above * beside < m->product.copied_chunks &&
		above < contract_ceil(rows, p->tile))
		above++;
	c->block[p->i] = of_blocks(rows, p->tile, above);
	c->block[p->j] = of_blocks(columns, panel, beside);
}

/*
 * Sizes for a single product: rows that fit the second cache, and some panels
 * of columns. If rows are copied, blocks are as large as the number of chunks
 * allows, because each chunk copies them again.
 */
static void block_one(contract *c, const contract_product *p)
{
	const loop_kernel *k = c->k;
	int64_t panel = (int64_t)p->lanes * p->vectors, tiles, fit, pieces;
	int64_t size = contract_factor_bytes(c, p);
	int64_t m = k->var[p->i].extent, n = k->var[p->j].extent;

	fit = k->machine->memory[MACHINE_L2].bytes *
	      k->machine->product.panel_quarters / 4 /
	      (p->sum_block * size);
	if (fit < p->tile)
		fit = p->tile;
	tiles = contract_ceil(m, p->tile);
	pieces = contract_ceil(m, fit);
	if (p->panel_x > 0 && c->number < 0 && contract_rows_suffice(c, p) &&
		pieces < k->machine->product.copied_chunks)
		pieces = k->machine->product.copied_chunks;
	c->block[p->i] = p->tile * contract_ceil(tiles, pieces);
	tiles = contract_ceil(
		n, panel * contract_ceil(k->machine->product.column_chunks,
				   chunks_of(c, loops_around(c))));
	if (tiles > k->machine->product.chunk_panels)
		tiles = k->machine->product.chunk_panels;
	pieces = contract_ceil(k->machine->product.copied_chunks, pieces);
	if (c->number >= 0) /* pieces of the sum are chunks, too */
		tiles = k->machine->product.chunk_panels;
	else if (p->pack_x && !p->whole_x &&
		 tiles < contract_ceil(n, panel * pieces))
		tiles = contract_ceil(n, panel * pieces);
	c->block[p->j] = panel * tiles;
	if (k->machine->block.warps > 1 && !p->turned) { /* a tile for each warp */
		tiles = contract_ceil(m, p->tile);
		if (tiles > k->machine->block.warps)
			tiles = k->machine->block.warps;
		c->block[p->i] = p->tile * tiles;
		c->block[p->j] = panel;
	}
	if (p->tiled && !p->turned && c->number < 0)
		block_tiles(c, p);
	if (p->turned) { /* enough chunks, by rows if columns give too few */
		pieces = contract_ceil(k->machine->product.copied_chunks,
			contract_ceil(n, c->block[p->j]));
		c->block[p->i] = p->tile * contract_ceil(
			contract_ceil(m, p->tile), pieces);
	}
	if (p->few)
		contract_block_few(c, p);
}

/* Does the result have rows of neighbours that begin inside of lines? */
static bool has_torn_lines(const contract *c, const contract_product *p)
{
	const ix_form *at = c->k->eqn[p->eqn].at;
	int64_t size = contract_factor_bytes(c, p), step;

	/* processors bring lines in pairs */
	return ix_stride(at, p->j, c->k->var[p->j].extent, &step) && step == 1 &&
	       ix_stride(at, p->i, c->k->var[p->i].extent, &step) && step > 1 &&
	       step * size % (2 * c->k->machine->product.line) != 0;
}

/*
 * Chunks that divide columns share a line of the result in each row: two cores that
 * write it take it from each other. If that takes longer than copying the columns
 * once for each chunk, chunks divide the rows; what reads the result in this order
 * finds it in the caches of its core, too.
 */
static void block_rows(contract *c, const contract_product *p)
{
	const machine *m = c->k->machine;
	int64_t rows = contract_ceil(c->k->var[p->i].extent, p->tile);
	int64_t panel = (int64_t)p->lanes * p->vectors, pieces;
	int64_t columns = panel * contract_ceil(c->k->var[p->j].extent, panel);
	double copy = m->fusion.copy_rows * m->cycles.fma / p->lanes * (double)columns;
	double share = (double)(m->product.shared_cycles * c->k->var[p->i].extent);

	if (p->turned || p->few || p->pack_x || p->panel_x > 0 || c->number >= 0 ||
		m->block.warps > 1 || columns <= panel ||
		!contract_is_readable(c, p, p->y) ||
		!contract_adjoins(c->k, p->y->form, p->j) ||
		chunks_of(c, loops_around(c)) > 1 || !has_torn_lines(c, p))
		return;
	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((p->sums & BIT(v)) != 0)
			copy *= (double)c->k->var[v].extent;
	pieces = share < copy * m->product.column_chunks ? 1 + (int64_t)(share / copy)
							 : m->product.column_chunks;
	if (pieces > rows)
		pieces = rows;
	if (pieces < m->product.row_chunks) {
		loop_decide(c->k, DECIDE_DIVIDE_COLUMNS, p->eqn, -1,
			(int64_t)share, (int64_t)copy);
		return;
	}
	loop_decide(c->k, DECIDE_DIVIDE_ROWS, p->eqn, -1, (int64_t)share, (int64_t)copy);
	c->block[p->i] = p->tile * contract_ceil(rows, pieces);
	c->block[p->j] = c->k->var[p->j].extent;
}

/* Sizes for one row: chunks of whole panels. */
static void block_row(contract *c, const contract_product *p)
{
	int64_t panel = (int64_t)p->lanes * p->vectors;
	int64_t chunks = contract_ceil(c->k->machine->product.column_chunks,
		chunks_of(c, loops_around(c) & ~BIT(p->j)));

	c->block[p->j] = panel *
		contract_ceil(c->k->var[p->j].extent, panel * chunks);
}

static void block_lone(contract *c, const contract_product *p)
{
	if (p->few)
		contract_block_few(c, p);
	else
		block_row(c, p);
}

/* Variables of the outer loops that only one factor of a product walks. */
static loop_set to_block(const contract *c)
{
	loop_set s = c->mixed;

	for (int32_t i = 0; i < c->product.n; i++)
		s |= c->product.at[i].rows | c->product.at[i].columns;
	return s & c->chain;
}

static bool choose_products(contract *c)
{
	int32_t n;
	loop_set blocked = c->chain, old;

	do { /* a product that is declined may make a block unnecessary */
		n = c->product.n;
		old = blocked;
		for (int32_t v = 0; v < c->k->n_vars; v++)
			c->block[v] = (blocked & BIT(v)) != 0
					      ? c->k->var[v].extent
					      : 0;
		c->product.n = 0;
		for (int32_t i = 0; i < n; i++) {
			contract_product p = c->product.at[i];

			if (contract_classify(c, &p))
				c->product.at[c->product.n++] = p;
		}
		blocked = to_block(c);
	} while (c->product.n != n || blocked != old);
	return n > 0;
}

/*
 * If the longest loop of rows is short, columns would be copied, or read, for each
 * iteration of the other row loops: moves these inside, as far as the rows fit
 * the second cache.
 */
static bool take_rows_in(contract *c, const contract_product *p)
{
	loop_kernel *k = c->k;
	int64_t rows = k->var[p->i].extent;
	int64_t size = contract_factor_bytes(c, p);
	int64_t most = k->machine->memory[MACHINE_L2].bytes / 2 /
		       (p->sum_block * size);
	int64_t panels = contract_ceil(k->var[p->j].extent,
		(int64_t)p->lanes * p->vectors);
	bool any = false;

	if ((!p->pack_y && !p->few) || p->turned ||
		rows > k->machine->product.few_rows_longest)
		return false;
	for (int32_t v = k->n_vars - 1; v >= 0; v--) {
		if (v == p->i || (c->chain & BIT(v)) == 0 ||
			c->block[v] != 0 || !contract_walks_rows(k, p, v) ||
			!mul_ok(rows, k->var[v].extent, &rows))
			continue;
		if (rows > most ||
			panels * chunks_of(c, loops_around(c) & ~BIT(v)) <
				k->machine->product.copied_chunks)
			break;
		c->block[v] = k->var[v].extent;
		any = true;
	}
	return any;
}

/* Sizes for a product that stands alone; false: it has no tiles. */
static bool choose_alone(contract *c, contract_product *p)
{
	for (int32_t v = 0; v < c->k->n_vars; v++)
		if (v != p->i && v != p->j)
			c->block[v] = 0;
	if (!contract_classify(c, p))
		return false;
	if (p->lone) {
		contract_sizes(c, p);
		block_lone(c, p);
		return true;
	}
	contract_choose_dot(c, p);
	contract_turn(c, p);
	contract_sizes(c, p);
	if (take_rows_in(c, p)) {
		contract_classify(c, p);
		contract_sizes(c, p);
	}
	block_one(c, p);
	if (is_read_in_jumps(c, p))
		block_jumps(c, p);
	else
		block_rows(c, p);
	return true;
}

/* The part of the time in which this number of threads all compute, if n chunks go to
 * them in turn. */
static double busy(int64_t n, int64_t threads)
{
	return (double)n / (double)(contract_ceil(n, threads) * threads);
}

/*
 * The length of pieces of n rows, which `panels` panels meet each, and whose sums take
 * so many bytes: so that a part of the second cache holds the sums of a piece, and there
 * are about as many chunks as wanted, of equal length, and as many for each of two
 * threads, or four.
 */
static int64_t piece_of_rows(
	const contract *c, int64_t n, int64_t panels, int64_t bytes)
{
	const machine *m = c->k->machine;
	int64_t least = m->product.copied_chunks, size = 1, most;
	double best = 0;

	most = m->memory[MACHINE_L2].bytes / m->product.sums_part / bytes;
	most = most < 1 ? 1 : most < n ? most : n;
	if (least < panels * contract_ceil(n, most))
		least = panels * contract_ceil(n, most);
	for (int64_t s = most; s >= 1; s--) {
		int64_t pieces = contract_ceil(n, s), chunks = panels * pieces;
		double cost = (double)n / (double)(pieces * s) * busy(chunks, 2) *
			      busy(chunks, 4);

		if (best > 0 && chunks > 2 * least)
			break;
		if (chunks >= least && cost > best) {
			best = cost;
			size = s;
		}
	}
	return size;
}

/* Sizes for pixels and filters: all filters, if their weights fit the second cache, so
 * that one core reads a pixel; else, or if many tiles meet a panel of them, which then
 * stays in the first cache, a panel; and as many rows of pixels as leave enough chunks. */
static void choose_slide(contract *c, contract_product *p)
{
	loop_kernel *k = c->k;
	int64_t chunks, tiles, bytes; /* bytes: of the sums of a row */
	int32_t above = -1;

	for (int32_t v = 0; v < k->n_vars; v++)
		c->block[v] = v == p->i || v == p->j ? k->var[v].extent : 0;
	contract_slide_roles(c, p);
	contract_sizes(c, p);
	c->block[p->j] = k->var[p->j].extent;
	if (!contract_weights_fit(c, p) || contract_meets_tiles(c, p))
		c->block[p->j] = (int64_t)p->lanes * p->vectors;
	for (int32_t v = 0; v < k->n_vars; v++)
		if (contract_is_above(c, p, v))
			above = v;
	if (above >= 0)
		c->block[above] = k->var[above].extent;
	chunks = chunks_of(c, loops_around(c)) *
		 contract_ceil(k->var[p->j].extent, c->block[p->j]);
	tiles = contract_ceil(k->var[p->i].extent, p->tile);
	bytes = c->block[p->j] * (int64_t)dtype_size(k->eqn[p->eqn].acc[0]) *
		(above >= 0 ? k->var[p->i].extent : p->tile);
	if (above >= 0)
		c->block[above] = piece_of_rows(c, k->var[above].extent, chunks, bytes);
	else
		c->block[p->i] = p->tile * piece_of_rows(c, tiles, chunks, bytes);
	contract_slide_roles(c, p);
}

bool contract_choose_blocks(contract *c)
{
	contract_product *p = c->product.at;
	loop_set left;

	if (!choose_products(c))
		return false;
	left = c->k->eqn[p->eqn].left;
	if (contract_choose_rows(c))
		return true;
	if (c->product.n > 1 || c->mixed != 0 || (left & ~c->chain) != 0) {
		block_several(c, to_block(c) & ~(c->by_keys ? c->mixed : 0));
		if (c->by_keys)
			contract_online_block(c);
	} else if (p->slides) {
		choose_slide(c, p);
	} else if (!choose_alone(c, p)) { /* other loops of them stay outside */
		return false;
	}
	for (int32_t i = 0; i < c->product.n; i++)
		contract_sizes(c, &c->product.at[i]);
	return true;
}

int64_t contract_pieces(contract *c, contract_product *p)
{
	const loop_kernel *k = c->k;
	int64_t n = 1;

	contract_sizes(c, p);
	if (p->lone)
		block_lone(c, p);
	else
		block_one(c, p);
	for (int32_t v = 0; v < k->n_vars; v++)
		if ((k->eqn[p->eqn].left & BIT(v)) != 0 &&
			!mul_ok(n,
				contract_ceil(k->var[v].extent,
					v == p->i || v == p->j ? c->block[v]
							       : 1),
				&n))
			return INT64_MAX;
	return n;
}
