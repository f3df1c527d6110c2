/*
 * nest.c: makes the loop nest of one product, with tiles of registers.
 *
 * Consumes a product with the variables that no outer loop walks, and
 * classifies them by index forms: columns are contiguous in the result and walk
 * one factor (y), rows walk the other one, sums are reduced, the others are
 * batches. A factor that is not a bare read, or that has an unsuitable memory
 * order, is copied block by block: it may be any expression, with any strides,
 * sliding windows and guards.
 *
 *   t[i, j] += x[i, k] * y[k, j]   ->
 *   block k {                            a part of the sum that fits a panel
 *     X = x                              rows of the block, if need be
 *     block j {                          a panel: some vectors wide
 *       Y = y                            transposed if y is contiguous along k
 *       block i { TILE i x j, sum over k } } }
 */
#include "schedule/contract/contract.h"

/* ---- classes ---- */

static int64_t lanes_of(const contract *c, const contract_product *p)
{
	size_t size = dtype_size(c->k->eqn[p->eqn].acc[0]);

	return machine_lanes(c->k->machine, (int32_t)size);
}

struct rows {
	const loop_kernel *k;
	int32_t v;
	bool adjoin;
};

static void on_row(void *arg, const expr *e)
{
	struct rows *r = arg;

	if (e->kind == EX_READ && (loop_form_vars(e->form) & BIT(r->v)) != 0)
		r->adjoin &= contract_adjoins(r->k, e->form, r->v);
}

/*
 * How suitable is v, which only factor f walks, for the lanes? A factor that is
 * not a bare read, such as a window of an image with a border, is copied by
 * whole vectors if what it reads is contiguous along v.
 */
static int32_t rank_of(
	const contract *c, const contract_product *p, const expr *f, int32_t v)
{
	const loop_eqn *e = &c->k->eqn[p->eqn];
	struct rows of = {c->k, v, true};
	int32_t r = 1;

	if (contract_adjoins(c->k, e->at, v))
		r += 4;
	loop_walk(c->k->a, f, on_row, &of);
	if (of.adjoin)
		r += f->kind == EX_READ ? 2 : 1;
	return r;
}

static int32_t longest(const contract *c, loop_set s)
{
	int32_t best = -1;

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((s & BIT(v)) != 0 &&
			(best < 0 || contract_extent(c, v) >
					     contract_extent(c, best)))
			best = v;
	return best;
}

static int64_t elements(const contract *c, loop_set s)
{
	int64_t n = 1;

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((s & BIT(v)) != 0 && !mul_ok(n, contract_extent(c, v), &n))
			return INT64_MAX;
	return n;
}

/* The outer loops that are not cut, which stay outside of the blocks. */
static loop_set walked_around(const contract *c)
{
	loop_set s = 0;

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((c->chain & BIT(v)) != 0 && c->block[v] == 0)
			s |= BIT(v);
	return s;
}

static bool is_mixed(const contract *c, const contract_product *p)
{
	return (c->k->eqn[p->eqn].reduced & c->mixed) != 0;
}

/* Records why the product cannot be tiled; returns false. */
static bool decline(const contract *c, const contract_product *p,
	decide_kind why, int64_t a, int64_t b)
{
	loop_decide(c->k, why, p->eqn, -1, a, b);
	return false;
}

/* Are rows and sums long enough for tiles? */
static bool is_enough(
	const contract *c, contract_product *p, const loop_set *walked)
{
	const machine_product *m = &c->k->machine->product;
	int64_t rows = elements(c, p->rows), sums = elements(c, p->sums);
	/* a copy of each factor may be a phase */
	int32_t phases = c->k->n_phases + c->product.n;

	if (p->i < 0 && !p->lone)
		return decline(c, p, DECIDE_TILE_NO_ROWS, 0, 0);
	if ((p->sums & walked[0] & walked[1]) == 0)
		return decline(c, p, DECIDE_TILE_NO_SUM, 0, 0);
	if (lanes_of(c, p) < 2)
		return decline(c, p, DECIDE_TILE_VECTOR, 0, 0);
	if (p->lone && !p->few && phases >= LOOP_MAX_PHASES)
		return decline(c, p, DECIDE_TILE_PHASES, phases + 1,
			LOOP_MAX_PHASES);
	if (rows < m->least_rows && !p->lone)
		return decline(c, p, DECIDE_TILE_ROWS, rows, m->least_rows);
	if (sums < m->least_sum)
		return decline(c, p, DECIDE_TILE_SUMS, sums, m->least_sum);
	if (contract_goes_along(c, p))
		return decline(c, p, DECIDE_TILE_ALONG, rows, m->along_rows);
	return true;
}

/* Do its sums begin in front of the blocks of a mixed loop? A result is rescaled between
 * blocks of keys, which reads it, and the first block may be left out; elsewhere what is
 * read of sums that have not begun is dropped. */
static bool begins_before(const contract *c, const contract_product *p)
{
	int32_t made = c->k->eqn[p->eqn].e->out[0];

	return is_mixed(c, p) &&
	       (contract_lies_apart(c, p) || (c->by_keys && p->n_needs > 0) ||
		       (c->online && loop_param(c->k, made) >= 0));
}

/* Exchanges rows and columns: sums read values of a row along its keys. */
static void put_keys_in_columns(contract_product *p)
{
	const expr *f = p->x;
	loop_set v = p->rows;
	int32_t i = p->i;

	p->x = p->y;
	p->y = f;
	p->rows = p->columns;
	p->columns = v;
	p->i = p->j;
	p->j = i;
}

bool contract_classify(contract *c, contract_product *p)
{
	loop_kernel *k = c->k;
	const loop_eqn *e = &k->eqn[p->eqn];
	contract_terms t;
	const expr **f = t.f;
	loop_set out = walked_around(c), left = e->left & ~out, v[2];
	int32_t best = 0;
	/* the longest axis of columns that does not fill the lanes */
	int64_t widest = 0;

	if (c->slid == 1 + p->eqn)
		return contract_slide_roles(c, p);
	p->j = -1;
	if (!contract_factors(k, e, &t))
		return decline(c, p, t.why, 0, CONTRACT_FACTORS);
	p->dot = 0;
	p->tiled = false;
	p->finish = t.finish;
	p->inexact = t.inexact;
	p->within = NULL;
	p->counted = t.within;
	p->n_needs = t.n_needs;
	p->begun |= begins_before(c, p);
	memcpy(p->need, t.need, sizeof p->need);
	v[0] = loop_expr_vars(k, f[0]) & ~out;
	v[1] = loop_expr_vars(k, f[1]) & ~out;
	for (int32_t i = 0; i < k->n_vars; i++)
		for (int32_t n = 0; n < 2; n++) {
			int32_t r;

			if ((left & v[n] & ~v[1 - n] & BIT(i)) == 0)
				continue;
			if (contract_extent(c, i) < lanes_of(c, p)) {
				if (contract_extent(c, i) > widest)
					widest = contract_extent(c, i);
				continue;
			}
			r = rank_of(c, p, f[n], i);
			if (r < best ||
				(r == best && contract_extent(c, i) <=
						      contract_extent(c, p->j)))
				continue;
			best = r;
			p->j = i;
			p->y = f[n];
			p->x = f[1 - n];
		}
	if (p->j < 0)
		return decline(c, p, widest > 0 ? DECIDE_TILE_COLUMNS
						: DECIDE_TILE_NO_COLUMNS,
			widest, lanes_of(c, p));
	best = p->y == f[1];
	p->rows = left & v[1 - best] & ~v[best];
	p->columns = left & v[best] & ~v[1 - best];
	p->others = left & ~p->rows & ~p->columns;
	p->sums = e->reduced;
	p->i = longest(c, p->rows);
	if (c->by_keys && p->i == c->keys && p->rows == BIT(p->i) &&
		contract_extent(c, p->i) >= lanes_of(c, p))
		put_keys_in_columns(p);
	p->s = longest(c, p->sums);
	p->lanes = (int32_t)lanes_of(c, p);
	contract_find_lone(c, p);
	return is_enough(c, p, v);
}

/* ---- sizes ---- */

static int64_t near_equal(int64_t n, int64_t most)
{
	return contract_ceil(n, contract_ceil(n, most));
}

/* The lines at a distance of so many bytes that the sets of a cache hold. */
static int64_t lines_held(const machine *m, machine_level of, int64_t step)
{
	int64_t line = m->product.line, ways = m->product.ways;
	int64_t sets = m->memory[of].bytes / (line * ways);

	return ways * (sets / gcd_i64(step / line, sets));
}

bool contract_lies_badly(
	const loop_kernel *k, const expr *x, int32_t along, int64_t rows, int64_t size)
{
	const machine *m = k->machine;
	int64_t s;

	if (!ix_stride(x->form, along, k->var[along].extent, &s) ||
		s * size % m->product.line != 0 || s == 0)
		return false;
	return rows > lines_held(m, MACHINE_L1, s * size) / m->product.ways *
			      (m->product.ways - 1);
}

/*
 * Do rows of y, so many bytes apart, share few sets of the caches, so that what x
 * leaves of the second one does not hold a panel, and each tile brings its lines
 * again? Is that more than a copy costs?
 */
static bool comes_again(
	const contract *c, const contract_product *p, int64_t step)
{
	const machine *m = c->k->machine;
	int64_t tiles = contract_ceil(elements(c, p->rows), p->tile);
	double again = (double)(tiles * m->product.line) * m->hertz /
		       m->memory[MACHINE_L3].bytes_per_s;
	double copy = m->fusion.copy_rows * m->cycles.fma * p->vectors;

	return step > 0 && step % m->product.line == 0 &&
	       p->sum_block > lines_held(m, MACHINE_L2, step) / 4 *
				      (4 - m->product.panel_quarters) &&
	       again > copy;
}

/* Do the terms of a row, so many bytes apart, share few sets of the second cache, so
 * that what x has of it does not hold those of a block? */
static bool crowds_sets(const machine *m, int64_t terms, int64_t step)
{
	return step % m->product.line == 0 &&
	       terms > lines_held(m, MACHINE_L2, step) / 4 *
			       m->product.panel_quarters;
}

/*
 * Do the terms of a tile lie so far apart that their lines are gone from the first
 * cache before the next tile reads their other elements, and most of what comes there
 * is read in vain, for each panel of columns? Or are they gone from the second one?
 */
static bool wastes_lines(
	const contract *c, const contract_product *p, int64_t size)
{
	const machine *m = c->k->machine;
	int64_t s, i, line = m->product.line, terms = p->sum_block, lines;
	int64_t rest = elements(c, p->sums) / contract_extent(c, p->s);
	/* all chunks share a copy of the whole */
	int64_t columns = contract_may_be_whole(c, p, p->x) ? c->k->var[p->j].extent
						   : contract_extent(c, p->j);

	if (!ix_stride(p->x->form, p->s, c->k->var[p->s].extent, &s) ||
		!ix_stride(p->x->form, p->i, c->k->var[p->i].extent, &i) ||
		(s < 0 ? -s : s) * size < line || p->sum_block <= 0)
		return false;
	lines = contract_ceil(p->tile * (i < 0 ? -i : i) * size, line);
	return columns > 2 * p->lanes * p->vectors &&
	       (crowds_sets(m, terms, (s < 0 ? -s : s) * size) ||
		       (lines * line >= m->product.thin * p->tile * rest * size &&
			       lines * line > m->memory[MACHINE_L1].bytes / terms));
}

/*
 * The width of panels in which x is copied if its rows adjoin in memory; 0: the
 * terms of a row are to adjoin.
 */
static int64_t panel_of_rows(const contract *c, const contract_product *p)
{
	int64_t lanes = p->lanes;

	if (!p->pack_x || p->turned || p->dot > 0 || p->x->kind != EX_READ ||
		ix_has_fun(p->x->form) || contract_extent(c, p->i) < lanes ||
		!contract_adjoins(c->k, p->x->form, p->i))
		return 0;
	return p->tile / gcd_i64(p->tile, lanes) * lanes;
}

/*
 * Do blocks of rows that fill what x has of the second cache make half of the chunks
 * wanted? Then blocks half as long make all of them, each has all columns, and copies
 * its rows once.
 */
bool contract_rows_suffice(const contract *c, const contract_product *p)
{
	const machine *m = c->k->machine;
	int64_t bytes = p->sum_block * contract_factor_bytes(c, p);

	return mul_ok(bytes, c->k->var[p->i].extent, &bytes) &&
	       bytes / m->product.copied_chunks * 2 >=
		       m->memory[MACHINE_L2].bytes / 4 *
			       m->product.panel_quarters;
}

bool contract_is_readable(
	const contract *c, const contract_product *p, const expr *of)
{
	int32_t eqn, comp;

	if (!contract_is_bare(of,
		    p->dot > 0 ? of->dtype : c->k->eqn[p->eqn].acc[0]))
		return false;
	/* what this kernel makes is kept as it is computed with */
	return p->dot == 0 || (contract_adjoins(c->k, of->form, p->s) &&
				      loop_param(c->k, of->tensor) >= 0 &&
				      !loop_maker(c->k, of->tensor, &eqn, &comp));
}

/*
 * Is the factor of rows copied, because it must be, because of its memory
 * order, or by choice?
 */
static bool copies_rows(
	const contract *c, const contract_product *p, int64_t size)
{
	loop_kernel *k = c->k;

	if (!contract_is_readable(c, p, p->x))
		return true;
	if (loop_param(k, p->x->tensor) < 0 ||
		k->copies == LOOP_COPIES_NO_ROWS)
		return false;
	/* a tile register takes a line of each row, which comes once for a panel */
	return k->copies == LOOP_COPIES_ROWS ||
	       (!p->tiled && contract_lies_badly(k, p->x, p->i, p->tile, size)) || wastes_lines(c, p, size);
}

/*
 * Sizes for a block of warps: both factors are copied into memory that it shares,
 * some terms of the sum at a time.
 */
static void size_shared(contract *c, contract_product *p, int64_t rest)
{
	const machine_block *m = &c->k->machine->block;
	int64_t terms = m->sum_terms, most = p->tile;

	if (c->k->halved > 0) /* first of columns, then of rows */
		p->vectors = 1;
	for (int32_t i = 1; i < c->k->halved && most / 2 >= m->least_rows; i++)
		most /= 2;
	p->tile = near_equal(contract_extent(c, p->i), most);
	p->sum_block = near_equal(contract_extent(c, p->s),
		terms > rest ? terms / rest : 1);
	p->pack_x = c->k->copies != LOOP_COPIES_NO_ROWS ||
		    !contract_is_bare(p->x, c->k->eqn[p->eqn].acc[0]);
	p->pack_y = true;
	p->whole_x = p->few = false;
	contract_choose_matrix(c, p);
}

/* Sizes for one row: as many vectors as registers hold, of panels that are copied
 * once; what is read is far away, and so it is prefetched. */
static void size_lone(contract *c, contract_product *p)
{
	int64_t most = c->k->machine->product.lone_vectors;

	p->vectors = (int32_t)near_equal(
		contract_ceil(contract_extent(c, p->j), p->lanes), most);
	p->tile = 1;
	p->sum_block = contract_extent(c, p->s);
	p->pack_x = !contract_is_readable(c, p, p->x);
	p->panel_x = 0;
	p->whole_x = p->pack_y = false;
	if (p->few)
		contract_size_few(c, p);
}

/*
 * Values of the first sum whose panel fits the first caches; each has `rest` terms.
 * Panels of sliding windows are copied for each block of rows, or met by each of many
 * tiles: they should not leave the first cache, nor should few rows that meet many panels.
 */
static int64_t terms_at_once(const contract *c, const contract_product *p, int64_t rest)
{
	const machine *m = c->k->machine;
	int64_t size = contract_factor_bytes(c, p), near = m->memory[MACHINE_L1].bytes;
	int64_t panel = (int64_t)p->lanes * p->vectors, n = 2 * near;

	if (p->tiled) /* it is read as fast as it comes from the first cache, as rows are */
		n = near / m->tiles.near_part;
	else if (rest > 1 && p->dot == 0 && (!p->turned || contract_meets_tiles(c, p)))
		n = near * m->product.window_quarters / 4;
	n = n / (panel * size) / rest;
	if (p->turned && contract_ceil(c->k->var[p->j].extent, panel) >=
				 m->product.copied_chunks) { /* all rows in a chunk */
		int64_t both = panel + elements(c, p->rows);

		both = near / (both * size) / rest;
		n = both * rest >= m->product.least_fit ? both : n;
	}
	return n * rest < m->product.least_fit ? contract_ceil(m->product.least_fit, rest)
					       : n;
}

/*
 * Are panels read with all terms of the sum? Those that are kept come with prefetches,
 * and those that a chunk has copied take little of the second cache, so it is enough that
 * it holds all rows; then sums are never stored between blocks, and what follows is
 * computed on them in registers.
 */
static bool takes_all_terms(const contract *c, const contract_product *p, int64_t rest)
{
	const machine *m = c->k->machine;
	int64_t bytes = contract_factor_bytes(c, p);
	int64_t panel = bytes * p->lanes * p->vectors;
	bool small = mul_ok(panel, contract_extent(c, p->s), &panel) &&
		     panel <= m->memory[MACHINE_L2].bytes / m->product.all_part;

	return rest == 1 && !p->turned && !p->slides && p->dot == 0 &&
	       (small || contract_keeps_columns(c, p)) &&
	       mul_ok(bytes, elements(c, p->rows), &bytes) &&
	       mul_ok(bytes, contract_extent(c, p->s), &bytes) &&
	       bytes <= m->memory[MACHINE_L2].bytes * m->product.panel_quarters / 4;
}

/* Does y come from afar, and as slowly in panels as where it lies: from beyond all
 * caches, or because a row of a panel is a single line, where lines come in pairs? */
static bool is_dear_to_copy(const contract *c, const contract_product *p)
{
	const machine *m = c->k->machine;
	int64_t panel = contract_factor_bytes(c, p) * p->lanes * p->vectors;

	return contract_is_far(c, p) &&
	       (panel <= m->product.line ||
		       contract_bytes_of_y(c, p) > m->memory[MACHINE_L3].bytes);
}

static int64_t whole_groups(int64_t n, int64_t group)
{
	return contract_ceil(n, group) * group;
}

/* May the last tile of rows be lower than the others? 13 of 49 pixels, not 7; 13 of 64
 * rows, not 8, if the product is worth the time in which code of two heights is compiled.
 * Sums of few terms store as long as they compute, in whole tiles. */
static bool may_be_uneven(const contract *c, const contract_product *p)
{
	const machine *m = c->k->machine;
	int64_t work = elements(c, p->rows), terms = elements(c, p->sums);

	if (p->turned || p->dot > 0 || m->block.warps > 1)
		return p->turned;
	return contract_extent(c, p->i) >= m->product.uneven_rows &&
	       terms > m->product.result_terms &&
	       (!mul_ok(work, terms, &work) ||
		       !mul_ok(work, elements(c, p->columns | p->others), &work) ||
		       work >= m->product.uneven_work);
}

/* Chooses tiles, equal ones if they are high, and panels that fit the first caches. */
void contract_sizes(contract *c, contract_product *p)
{
	const machine *m = c->k->machine;
	int64_t size;
	int64_t rest = elements(c, p->sums) / contract_extent(c, p->s), fit;
	int64_t near; /* bytes */
	bool in_lanes;

	p->lanes = (int32_t)lanes_of(c, p);
	if (p->lone) {
		size_lone(c, p);
		return;
	}
	p->vectors = contract_extent(c, p->j) > p->lanes ? 2 : 1;
	contract_choose_dot(c, p);
	contract_choose_tiles(c, p);
	size = contract_factor_bytes(c, p);
	fit = p->dot > 0 ? contract_dot_rows(c, p) : contract_most_rows(c->k);
	p->tile = contract_equal(contract_extent(c, p->i), fit);
	if (p->tile < fit * m->product.tile_quarters / 4 && may_be_uneven(c, p))
		p->tile = near_equal(contract_extent(c, p->i), fit);
	if (m->block.warps > 1 && !p->turned) {
		size_shared(c, p, rest);
		return;
	}
	p->sum_block = takes_all_terms(c, p, rest)
			       ? contract_extent(c, p->s)
			       : near_equal(contract_extent(c, p->s),
					 terms_at_once(c, p, rest));
	if (p->dot > 0 && contract_adds_blocks(c, p))
		p->sum_block = contract_extent(c, p->s);
	else if (p->dot > 0 && p->sum_block > m->product.block_most &&
		!contract_guards_tiles(p->n_needs, p->need, p->sums))
		p->sum_block = m->product.block_most; /* many are left out as a whole */
	else if (p->dot > 0) /* blocks begin at whole groups, of whole instructions */
		p->sum_block = whole_groups(p->sum_block,
			p->tiled ? p->dot * m->tiles.rows : p->dot);
	p->pack_x = copies_rows(c, p, size);
	p->panel_x = panel_of_rows(c, p);
	p->whole_x = p->pack_x && c->number < 0 &&
		     c->k->copies != LOOP_COPIES_BLOCKS &&
		     contract_may_be_whole(c, p, p->x) &&
		     (p->panel_x == 0 || !contract_rows_suffice(c, p));
	in_lanes = p->dot == 0 && contract_in_lanes(c, p, &fit);
	near = m->memory[MACHINE_L1].bytes / m->product.near_part;
	p->few = in_lanes && fit > near && rest == 1 && !contract_keeps_columns(c, p) &&
		 elements(c, p->rows) <= (is_dear_to_copy(c, p)
						 ? m->product.few_rows_far
						 : m->product.few_rows);
	p->pack_y = !in_lanes ||
		    (!p->few && (fit > near || comes_again(c, p, fit))) ||
		    contract_keeps_columns(c, p) ||
		    c->k->copies == LOOP_COPIES_COLUMNS;
	p->few = p->few && !p->pack_y;
	if (p->few)
		contract_size_few(c, p);
	if (p->turned) { /* copies are made before all chunks, or not at all */
		p->pack_y = p->few = false;
		p->whole_x = p->pack_x = p->pack_x && !p->slides;
	}
}

/* ---- the nest ---- */

loop_node *contract_tile(contract *c, const contract_product *p)
{
	loop_node *t = contract_leaf(c, LOOP_TILE, p->eqn);
	int32_t *sum = arena_array(c->k->a, int32_t, c->k->n_vars + 1);

	t->row_var = p->i;
	t->var = p->j;
	sum[t->n_sums++] = p->s;
	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((p->sums & BIT(v)) != 0 && v != p->s)
			sum[t->n_sums++] = v;
	t->sum = sum;
	t->factor[0] = p->x;
	t->factor[1] = p->y;
	t->start = !p->begun;
	t->finish = p->finish;
	t->matrix = p->matrix;
	t->dot = p->dot;
	t->tiled = p->tiled;
	memcpy(t->offset, p->offset, sizeof t->offset);
	t->checked = ((p->inexact && p->within == NULL) || p->wide_x) &&
		     dtype_is_float(c->k->eqn[p->eqn].acc[0]);
	if (!p->tiled || !p->inexact)
		t->within = p->within;
	else if (t->checked) /* integers have no infinities: 0 is 0 times anything */
		t->within = p->counted;
	t->size = p->tile;
	t->lanes = p->lanes;
	t->unroll = p->vectors;
	t->n_needs = p->n_needs;
	t->need = arena_copy(c->k->a, p->need, sizeof p->need);
	t->n_clip = p->n_clip;
	t->clip = arena_copy(c->k->a, p->clip, sizeof p->clip);
	return t;
}

/* Puts n into a loop over each variable of s. */
static loop_node *around(contract *c, loop_set s, loop_node *n)
{
	for (int32_t v = c->k->n_vars - 1; v >= 0; v--)
		if ((s & BIT(v)) != 0)
			n = loop_node_for(c->k->a, v, n);
	return n;
}

/* Puts n into the loops over rows, a tile's at a time. */
static loop_node *rows_of(contract *c, const contract_product *p, loop_node *n)
{
	return around(c, p->rows & ~BIT(p->i),
		contract_block(c, p->i, p->tile, n));
}

/*
 * Would tiles add to sums of the result whose columns are far apart, once for each
 * block of terms? They are added up in a buffer instead, and stored once.
 */
static bool adds_far(const contract *c, const contract_product *p)
{
	const loop_kernel *k = c->k;
	const loop_eqn *e = &k->eqn[p->eqn];

	return k->machine->block.warps == 1 && !p->begun && c->number < 0 &&
	       !c->online && !is_mixed(c, p) && p->dot == 0 && !p->slides &&
	       loop_param(k, e->e->out[0]) >= 0 && !contract_adjoins(k, e->at, p->j);
}

/* The innermost loop of what stores results: neighbours, if there are any. */
static int32_t last_behind(const contract *c, const contract_product *p)
{
	const loop_eqn *e = &c->k->eqn[p->eqn];

	return p->turned || (p->apart && contract_adjoins(c->k, e->at, p->i)) ? p->i
									     : p->j;
}

void contract_done(contract *c, const contract_product *p, loop_node *body)
{
	loop_set v = c->k->eqn[p->eqn].left;

	for (int32_t i = 0; i < c->k->n_vars; i++)
		if ((c->chain & BIT(i)) != 0 && c->block[i] == 0)
			v &= ~BIT(i);
	if (is_mixed(c, p) && contract_lies_apart(c, p))
		contract_put(c, body,
			around(c, v & ~BIT(p->j),
				loop_node_for(c->k->a, p->j,
					contract_leaf(c, LOOP_DONE, p->eqn))));
}

/* Adds the statements that store the finished elements, and the epilogue. */
static void put_behind(contract *c, const contract_product *p, loop_node *body)
{
	loop_set all = p->rows | p->columns | p->others, rows = 0;
	int32_t last = last_behind(c, p);
	loop_node *j = loop_node_for(c->k->a, last, NULL);

	if (contract_lies_apart(c, p) && !is_mixed(c, p))
		loop_node_adopt(
			c->k->a, j, contract_leaf(c, LOOP_DONE, p->eqn));
	for (int32_t i = 0; i < p->behind.n; i++)
		loop_node_adopt(c->k->a, j, p->behind.at[i]);
	if (j->n_child == 0)
		return;
	if (contract_turns_sums(c, p)) {
		rows = (p->rows | p->others) & ~BIT(p->i);
		j->var = p->i;
		loop_take_lanes(c->k, j);
		j = contract_turned_columns(c, p, j);
		loop_node_adopt(c->k->a, body,
			around(c, rows, around(c, p->columns & ~BIT(p->j), j)));
		return;
	}
	if (!p->slides) {
		contract_put(c, body, around(c, all & ~BIT(last), j));
		return;
	}
	/* filters adjoin in the sums: all of a row of pixels, then the next row */
	rows = p->rows & ~BIT(last);
	loop_take_lanes(c->k, j);
	loop_node_adopt(c->k->a, body,
		around(c, rows, around(c, all & ~rows & ~BIT(last), j)));
}

static void say_copy(
	const contract *c, const contract_product *p, const expr *f, bool copied)
{
	loop_decide(c->k, copied ? DECIDE_COPY_TAKEN : DECIDE_COPY_IN_PLACE,
		p->eqn, contract_tensor_of(f), 0, 0);
}

void contract_nest(contract *c, contract_product *p, loop_node *body)
{
	loop_kernel *k = c->k;
	loop_node *panel = contract_block(
		c, p->j, (int64_t)p->lanes * p->vectors, NULL);
	loop_node *sums = body, *inner, *outer;
	bool once;

	outer = around(c, p->others, panel);
	if (p->others != 0) { /* for each batch */
		for (sums = outer; sums->child[0] != panel;)
			sums = sums->child[0];
		sums->n_child = 0;
		loop_node_adopt(k->a, body, outer);
	}
	if (p->sum_block < contract_extent(c, p->s)) {
		p->apart = adds_far(c, p);
		inner = contract_block(c, p->s, p->sum_block, NULL);
		loop_node_adopt(k->a, sums, inner);
		sums = inner;
	}
	once = contract_copies_columns(c, p);
	k->eqn[p->eqn].apart = p->turned || p->apart;
	if (p->turned || (p->lone && !p->few) || once) {
		contract_pack_whole(c, p, &p->y, p->j);
		k->eqn[k->n_eqns - 1].panel = (int64_t)p->lanes * p->vectors;
	}
	if (p->slides) {
		contract_pack_image(c, p);
	} else if (p->whole_x && (p->turned || p->panel_x > 0 || contract_is_shared(c, p->x)) &&
		c->k->n_phases + c->before.n + 1 <= LOOP_MAX_PHASES) {
		if (p->panel_x > 0)
			contract_pack_panels(c, p);
		else
			contract_pack_whole(
				c, p, &p->x, p->turned ? p->i : p->s);
	} else {
		say_copy(c, p, p->x, p->pack_x);
		if (p->pack_x)
			contract_pack_x(c, p, sums);
	}
	if (!p->turned && (!p->lone || p->few) && !once)
		say_copy(c, p, p->y, p->pack_y);
	if (p->pack_y && !once)
		contract_pack_y(c, p, panel);
	inner = contract_tile(c, p);
	outer = panel;
	if (p->few && !p->lone) /* lines of y are walked once for each tile's rows */
		outer = rows_of(c, p, outer);
	else if (!p->lone)
		inner = rows_of(c, p, inner);
	loop_node_adopt(k->a, panel, inner);
	loop_node_adopt(
		k->a, sums, around(c, p->columns & ~BIT(p->j), outer));
	put_behind(c, p, body);
}
