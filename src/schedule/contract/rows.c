/*
 * rows.c: rows of keys that one warp of a block computes, from their scores to their
 * sums.
 *
 * Consumes a kernel whose rows are processed in blocks of keys (online.c), on a machine
 * that has blocks of warps and matrix instructions, if each of its products either makes
 * a value for each key, or adds up along the keys. Each warp has as many rows as an
 * instruction; what belongs to them stays in its registers, as the instruction has it,
 * or in memory of the block that only this warp accesses:
 *
 *   for i by warp { copy of q }
 *   block i by 16 by warp { for i lanes { init m; init z } }
 *   block u by 32 {
 *     for u by warp { copy of k }  for u by warp { copy of v }
 *     block i by 16 by warp {
 *       for i lanes { was = m }
 *       tile s held
 *       for i held s { for u held s { a; m max= a } }
 *       for i lanes { f = exp(was - m); scale z }
 *       for i held w { for e held w { scale w } }
 *       for i held s { for u held s { p; z += p; copy of p } }
 *       tile w held } }
 *   block i by 16 by warp { for i held w { for e held w { o = w / z } } }
 */
#include "schedule/contract/contract.h"

/* ---- sizes ---- */

static bool is_scores(const contract *c, const contract_product *p)
{
	return p->j == c->keys;
}

/* Is p a product of the row and of keys, or along the keys, and nothing else? */
static bool has_roles(const contract *c, const contract_product *p, int32_t row)
{
	const loop_eqn *e = &c->k->eqn[p->eqn];
	bool kept = loop_param(c->k, e->e->out[0]) >= 0;

	return p->i == row && p->rows == BIT(row) && p->others == 0 &&
	       p->columns == BIT(p->j) && p->sums == BIT(p->s) &&
	       !p->begun && !p->wide_x && (!p->inexact || p->within != NULL) &&
	       (is_scores(c, p) ? !kept : p->s == c->keys && p->finish == NULL) &&
	       e->e->n_out == 1;
}

/* The bytes of the copy of so many rows, of n elements, as instructions read it
 * (loop/locate.c). */
static int64_t copy_bytes(const contract *c, int64_t rows, int64_t n, tn_dtype t)
{
	int64_t pad = c->k->machine->matrix.pad_bytes;

	n = contract_ceil(n * (int64_t)dtype_size(t), pad) * pad + pad;
	return rows * n + loop_slack(c->k->machine) + c->k->machine->product.line;
}

/* e with the variable `to` in place of `from`. */
static const expr *renamed(const contract *c, const expr *e, int32_t from, int32_t to)
{
	const loop_kernel *k = c->k;
	const ix_form **with = arena_array(k->a, const ix_form *, k->n_vars + 1);

	for (int32_t i = 0; i < k->n_vars; i++)
		with[i] = ix_axis(k->s->x, &k->dom, i == from ? to : i);
	return ex_subst(k->s, &k->dom, e, k->n_vars, k->dom.box.extent, with, NULL, NULL);
}

/* The product of scores whose copy of a factor p can read: the same elements, its columns
 * being the terms of the scores. Their factors are those of instructions. NULL: none. */
static const contract_product *shares(const contract *c, const contract_product *p,
	const expr *y)
{
	for (int32_t i = 0; i < c->product.n && !is_scores(c, p); i++) {
		const contract_product *q = &c->product.at[i];

		if (is_scores(c, q) && c->k->var[q->s].extent == c->k->var[p->j].extent &&
			q->taken[1] == p->taken[1] && q->from_y != NULL &&
			renamed(c, q->from_y, q->s, p->j) == y)
			return q;
	}
	return NULL;
}

/* Bytes of the block's memory if it has so many keys at a time. */
static int64_t bytes_with(const contract *c, int32_t row, int64_t keys)
{
	const loop_kernel *k = c->k;
	int64_t rows = c->block[row], stages = k->machine->block.stages;
	int64_t each = rows * (int64_t)dtype_size(TN_F32) + k->machine->product.line;
	int64_t all = 2 * (each + loop_slack(k->machine)); /* was, rescale */

	for (int32_t i = 0; i < c->product.n; i++) {
		const contract_product *p = &c->product.at[i];
		int64_t n = k->var[is_scores(c, p) ? p->s : p->j].extent;

		if (shares(c, p, p->y) == NULL)
			all += stages * copy_bytes(c, keys, n, p->taken[1]);
		all += copy_bytes(c, rows, is_scores(c, p) ? n : keys, p->taken[0]);
	}
	for (int32_t i = 0; i < k->n_eqns; i++)
		if (k->eqn[i].left == c->row_vars)
			all += each;
	return all;
}

static void set_sizes(contract *c, contract_product *p)
{
	const machine_matrix *m = &c->k->machine->matrix;

	p->tile = m->rows;
	p->lanes = m->columns;
	p->vectors = (int32_t)contract_ceil(contract_extent(c, p->j), m->columns);
	p->sum_block = contract_extent(c, p->s);
	p->pack_x = p->pack_y = true;
	contract_use_matrix(c->k, p);
	p->turned = p->apart = p->near = p->slides = p->lone = p->few = false;
	p->whole_x = p->tiled = false;
	p->panel_x = p->dot = 0;
}

static bool classify(contract *c, contract_product *p)
{
	const loop_eqn *e = &c->k->eqn[p->eqn];
	contract_terms t;

	if (!contract_classify(c, p) || !contract_factors(c->k, e, &t))
		return false;
	p->begun = e->init[0] != NULL; /* registers begin as 0 */
	p->within = t.within;
	p->from_y = p->y;
	return true;
}

/* Finds the roles of all products in these blocks; false: some are not such. */
static bool classify_all(contract *c, int32_t row)
{
	const machine *m = c->k->machine;
	bool scores = false, sums = false;

	for (int32_t i = 0; i < c->product.n; i++) {
		contract_product *p = &c->product.at[i];

		if (!classify(c, p) || !contract_takes_matrix(c->k, p) ||
			!has_roles(c, p, row) ||
			c->k->var[p->j == c->keys ? p->s : p->j].extent >
				m->block.matrix_columns)
			return false;
		scores |= is_scores(c, p);
		sums |= !is_scores(c, p);
	}
	return scores && sums;
}

/* Sets the blocks of rows and of keys, and all tiles; false: they do not fit. */
static bool set_blocks(contract *c, int32_t row)
{
	const machine *m = c->k->machine;
	int64_t rows = c->k->var[row].extent, warps;
	int64_t step = m->block.least_columns, n = m->block.matrix_columns;

	warps = contract_ceil(rows, m->matrix.rows);
	if (warps > m->block.warps)
		warps = m->block.warps;
	for (int32_t v = 0; v < c->k->n_vars; v++)
		c->block[v] = 0;
	c->block[c->keys] = step;
	for (;; warps /= 2) { /* fewer rows need less memory */
		c->block[row] = warps * m->matrix.rows;
		if (warps < 2 || !classify_all(c, row))
			return false;
		if (bytes_with(c, row, step) <= m->block.shared_bytes)
			break;
	}
	while (n > step && bytes_with(c, row, n) > m->block.shared_bytes)
		n -= step;
	while (n > step && c->rows.n_keys % n != 0) /* pieces of one length are copied ahead */
		n -= step;
	c->block[c->keys] = n;
	for (int32_t i = 0; i < c->product.n; i++) {
		loop_eqn *e = &c->k->eqn[c->product.at[i].eqn];

		set_sizes(c, &c->product.at[i]);
		e->apart |= loop_param(c->k, e->e->out[0]) >= 0 &&
			    c->k->s->tensor.at[e->e->out[0]].dtype == e->acc[0];
	}
	return true;
}

bool contract_choose_rows(contract *c)
{
	loop_kernel *k = c->k;
	int32_t n = c->product.n, said = k->decision.n, row = -1;
	int64_t *block = arena_copy(k->a, c->block, (size_t)k->n_vars * sizeof *block);
	contract_product *p = arena_copy(k->a, c->product.at, (size_t)n * sizeof *p);

	if (!c->by_keys || k->no_rows || c->number >= 0 || k->machine->block.warps == 1 ||
		k->machine->matrix.rows == 0)
		return false;
	for (int32_t i = 0; i < n; i++)
		if (p[i].j == c->keys || p[i].i == c->keys)
			row = p[i].j == c->keys ? p[i].i : p[i].j;
	c->by_rows = row >= 0 && set_blocks(c, row);
	k->decision.n = said;
	loop_decide(k, c->by_rows ? DECIDE_OWN_TAKEN : DECIDE_OWN_SHAPE,
		c->rows.max >= 0 ? c->rows.max : p[0].eqn, -1,
		k->machine->matrix.rows, c->by_rows ? c->block[c->keys] : 0);
	for (int32_t i = 0; c->by_rows && i < n; i++)
		loop_decide(k, DECIDE_MATRIX_TAKEN, c->product.at[i].eqn, -1,
			k->machine->matrix.rows,
			contract_terms_at_once(k, c->product.at[i].taken[1]));
	if (c->by_rows)
		return true;
	memcpy(c->block, block, (size_t)k->n_vars * sizeof *block);
	memcpy(c->product.at, p, (size_t)n * sizeof *p);
	return false;
}

/* ---- the tree ---- */

static int32_t row_of(const contract *c)
{
	return c->product.at[0].i;
}

static loop_node *block_of_rows(contract *c)
{
	loop_node *b = contract_block(c, row_of(c), c->k->machine->matrix.rows, NULL);

	b->by_warp = true;
	return b;
}

/* Does a statement of n read the sums of p, or finish them? */
static bool reads_of(loop_kernel *k, const loop_node *n, const contract_product *p)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (n->child[i]->eqn == p->eqn ||
			loop_leaf_reads(k, n->child[i], k->eqn[p->eqn].e->out[0]))
			return true;
	return false;
}

/* The product of which n walks the columns: the one whose sums it has to do with, if there
 * are several. */
static const contract_product *walked(const contract *c, const loop_node *n)
{
	const contract_product *one = NULL;

	for (int32_t i = 0; i < c->product.n; i++) {
		const contract_product *p = &c->product.at[i];

		if (p->j == n->var && (one == NULL || reads_of(c->k, n, p)))
			one = p;
	}
	return one;
}

static bool has_loops(const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (loop_is_loop(n->child[i]))
			return true;
	return false;
}

/* Gives a nest over rows, and columns of a product, its lanes; false: it is none. */
static bool spread(const contract *c, loop_node *n)
{
	loop_node *in = n->n_child == 1 ? n->child[0] : NULL;
	const contract_product *p;

	if (n->kind != LOOP_FOR || n->var != row_of(c))
		return false;
	if (!has_loops(n)) {
		n->lanes = c->k->machine->matrix.rows;
		n->unroll = 1;
		return true;
	}
	p = in != NULL && in->kind == LOOP_FOR ? walked(c, in) : NULL;
	if (p == NULL || has_loops(in))
		return false;
	n->held = in->held = 1 + p->eqn;
	in->lanes = c->k->machine->lanes;
	in->unroll = 1;
	return true;
}

static bool is_scaled(const loop_node *columns)
{
	for (int32_t i = 0; i < columns->n_child; i++)
		if (columns->child[i]->kind == LOOP_SCALE)
			return true;
	return false;
}

/* Does a statement of b read what a adds up? */
static bool reads_sums(loop_kernel *k, const loop_node *a, const loop_node *b)
{
	for (int32_t i = 0; i < a->n_child; i++) {
		const loop_eqn *e = &k->eqn[a->child[i]->eqn];

		for (int32_t j = 0; j < b->n_child && e->reduced != 0; j++)
			if (loop_leaf_reads(k, b->child[j], e->e->out[0]))
				return true;
	}
	return false;
}

/* Do they walk the same columns, b those of the tile of a or of none in particular? */
static bool may_share(const contract *c, const loop_node *a, const loop_node *b)
{
	const loop_node *in = b->child[0];
	const contract_product *p = walked(c, in);

	return a->child[0]->var == in->var &&
	       (a->held == b->held || p == NULL || !reads_of(c->k, in, p));
}

/* Two neighbouring nests over the same elements become one. */
static void join_walks(contract *c, loop_node *list)
{
	int32_t n = 0;

	for (int32_t i = 0; i < list->n_child; i++) {
		loop_node *b = list->child[i], *a = n > 0 ? list->child[n - 1] : b;

		if (n == 0 || b->held == 0 || b->kind != LOOP_FOR ||
			a->kind != LOOP_FOR || a->held == 0 ||
			!may_share(c, a, b) || is_scaled(a->child[0]) || is_scaled(b->child[0]) ||
			reads_sums(c->k, a->child[0], b->child[0])) {
			list->child[n++] = b;
			continue;
		}
		for (int32_t j = 0; j < b->child[0]->n_child; j++)
			loop_node_adopt(c->k->a, a->child[0], b->child[0]->child[j]);
	}
	list->n_child = n;
}

void contract_rows_nest(contract *c, contract_product *p, loop_node *in)
{
	const contract_product *of = shares(c, p, p->y);
	loop_node *t, *j = loop_node_for(c->k->a, p->j, NULL);

	if (is_scores(c, p))
		contract_pack_x(c, p, c->around_keys);
	else
		contract_pack_x(c, p, in);
	if (of != NULL)
		p->y = renamed(c, of->y, of->s, p->j);
	else
		contract_pack_y(c, p, c->of_keys);
	t = contract_tile(c, p);
	t->held = 1;
	if (!is_scores(c, p))
		t = contract_block(c, p->j, (int64_t)p->lanes * p->vectors, t);
	loop_node_adopt(c->k->a, in, t);
	for (int32_t i = 0; i < p->behind.n; i++)
		loop_node_adopt(c->k->a, j, p->behind.at[i]);
	if (j->n_child > 0)
		loop_node_adopt(c->k->a, in, loop_node_for(c->k->a, row_of(c), j));
}

loop_node *contract_rows_open(contract *c, loop_node *outer, loop_node *keys)
{
	c->around_keys = outer;
	c->of_keys = keys;
	c->in_rows = block_of_rows(c);
	return c->in_rows;
}

/* Puts the nests of n's list into a block of rows, but for copies and the keys. */
static bool wrap(contract *c, loop_node *n)
{
	loop_node **list = n->child, *rows = NULL;
	int32_t count = n->n_child;
	bool ok = true;

	n->child = NULL;
	n->n_child = 0;
	for (int32_t i = 0; i < count; i++) {
		if (list[i] == c->of_keys || loop_has_copies(c->k, list[i])) {
			loop_node_adopt(c->k->a, n, list[i]);
			rows = NULL;
			continue;
		}
		if (rows == NULL) {
			rows = block_of_rows(c);
			loop_node_adopt(c->k->a, n, rows);
		}
		ok = ok && spread(c, list[i]);
		loop_node_adopt(c->k->a, rows, list[i]);
	}
	return ok;
}

bool contract_rows_close(contract *c)
{
	loop_node *in = c->in_rows;
	bool ok = true;

	for (int32_t i = 0; i < in->n_child; i++)
		ok = ok && (in->child[i]->held > 0 || in->child[i]->kind == LOOP_TILE ||
				   in->child[i]->kind == LOOP_BLOCK ||
				   spread(c, in->child[i]));
	join_walks(c, in);
	loop_node_adopt(c->k->a, c->of_keys, in);
	c->plain.n = 0;
	return ok && wrap(c, c->around_keys);
}

void contract_rows_need(contract *c, loop_node *block)
{
	ix_fact *need = arena_make(c->k->a, ix_fact);

	if (!loop_rows_need(c->k, block, need))
		return;
	block->need = need;
	block->n_needs = 1;
}
