/*
 * stages.c: copies of the next pieces of factors while this one is multiplied.
 *
 * Consumes phases of tiles, on a machine whose warps can copy into the memory of
 * their block and go on. A block whose iterations begin by copying pieces of inputs
 * gets stages: so many copies of each buffer, of which one is read while the others
 * are filled with what the next iterations read.
 *
 *   block k by 64 stages 2 {      lowered: copy piece 0 into buffer 0
 *     for i by warp { copy of x } ->       for each piece {
 *     for k by warp { copy of y }            wait for its copies
 *     block i by warp { tile } }             copy the next one into the other buffer
 *                                            the tile, of this buffer }
 *
 * Such a copy converts nothing, and moves whole rows of so many bytes, 16 at a
 * time. The buffers need more memory, so a block may be cut in half for it; the
 * estimate of both ways decides.
 */
#include "schedule/estimate.h"
#include "schedule/local.h"

/* ---- copies ---- */

int64_t loop_piece_of(const loop_kernel *k, const loop_node *n, int32_t var)
{
	int64_t len = k->var[var].extent, out = 0;
	const loop_node *u;

	for (u = n; u != NULL; u = u->up)
		if (u->kind == LOOP_SPAN && u->var == var)
			return 0;
		else if (u->kind == LOOP_BLOCK && u->var == var && out == 0)
			out = u->size;
	if (out == 0 || out >= len)
		return len;
	for (u = n; u != NULL; u = u->up)
		if (u->kind == LOOP_BLOCK && u->var == var &&
			(u->size % out != 0 || len % u->size != 0))
			return 0;
	return out;
}

/* Is f a sum of variables, of which `along` has the factor 1, and all others whole
 * multiples of `each`? */
static bool is_rows(
	const loop_kernel *k, const ix_form *f, int32_t along, int64_t each)
{
	int32_t n = 0;

	for (int32_t v = 0; v < k->n_vars; v++) {
		int64_t s;

		if ((loop_form_vars(f) & BIT(v)) == 0)
			continue;
		if (!ix_stride(f, v, k->var[v].extent, &s) ||
			(v == along ? s != 1 : s % each != 0))
			return false;
		n++;
	}
	return n == f->n && f->c0 % each == 0 &&
	       (loop_form_vars(f) & BIT(along)) != 0;
}

static bool is_plain(const loop_node *n)
{
	return n->kind == LOOP_FOR && n->n_child == 1 && n->n_needs == 0 &&
	       n->n_clip == 0 && !n->backward && !n->parallel;
}

bool loop_copies_rows(const loop_kernel *k, const loop_node *leaf)
{
	const loop_node *in = leaf->up, *row = in != NULL ? in->up : NULL;
	const loop_eqn *e = &k->eqn[leaf->eqn];
	const expr *x = e->body[0];
	const loop_buf *b;
	int64_t each, width;
	int32_t by, comp;

	if (row == NULL || !is_plain(in) || !is_plain(row) || row->lanes > 1 ||
		!row->by_warp || in->lanes < 2 || x->kind != EX_READ ||
		e->e->n_out != 1 || k->buf_of[leaf->eqn][0] < 0)
		return false;
	b = &k->buf[k->buf_of[leaf->eqn][0]];
	each = LOOP_ASYNC_BYTES / (int64_t)dtype_size(x->dtype);
	width = loop_piece_of(k, in, in->var);
	if (b->where != LOOP_LOCAL || b->panel > 0 || b->dtype != x->dtype ||
		dtype_size(x->dtype) < 2 || loop_maker(k, x->tensor, &by, &comp) ||
		loop_param(k, x->tensor) < 0 || width == 0 || width % each != 0 ||
		b->n_vars == 0 || b->var[b->n_vars - 1] != in->var)
		return false;
	for (int32_t i = 0; i + 1 < b->n_vars; i++)
		if (b->stride[i] % each != 0)
			return false;
	return is_rows(k, x->form, in->var, each);
}

/* ---- a block ---- */

/* Are all copies below n such ones, and no loop that copies and reads them repeats? */
static bool are_copies(const loop_kernel *k, const loop_node *n)
{
	if (!loop_has_copies(k, n))
		return true;
	if (!loop_is_loop(n))
		return loop_copies_rows(k, n);
	if (loop_has_others(k, n) &&
		(n->kind != LOOP_BLOCK || n->by_warp ||
			loop_piece_of(k, n->up, n->var) > n->size ||
			loop_piece_of(k, n, n->var) == 0))
		return false;
	for (int32_t i = 0; i < n->n_child; i++)
		if (!are_copies(k, n->child[i]))
			return false;
	return true;
}

static bool is_inner(const loop_node *n, int32_t var)
{
	for (n = n->up; n != NULL; n = n->up)
		if (n->var == var && n->kind != LOOP_TILE)
			return true;
	return false;
}

bool loop_may_stage(const loop_kernel *k, const loop_node *n)
{
	int64_t len = k->var[n->var].extent;

	if (n->kind != LOOP_BLOCK || n->parallel || n->by_warp ||
		n->number >= 0 || is_inner(n, n->var) || len % n->size != 0 ||
		loop_writes_input(k) || !loop_has_copies(k, n) ||
		!loop_has_others(k, n))
		return false;
	for (int32_t i = 0; i < n->n_child; i++)
		if (!are_copies(k, n->child[i]))
			return false;
	return true;
}

/* ---- the pass ---- */

static loop_node *node_of(loop_node *n, int32_t order)
{
	loop_node *m = n->order == order ? n : NULL;

	for (int32_t i = 0; i < n->n_child && m == NULL; i++)
		m = node_of(n->child[i], order);
	return m;
}

/* The outermost block of the phase that cuts a loop into pieces one after the
 * other, with copies in it. */
static loop_node *block_of(const loop_kernel *k, loop_node *n)
{
	loop_node *m = NULL;

	if (n->kind == LOOP_BLOCK && !n->parallel && !n->by_warp &&
		n->number < 0 && !is_inner(n, n->var) && loop_has_copies(k, n) && loop_has_others(k, n))
		return n;
	for (int32_t i = 0; i < n->n_child && m == NULL; i++)
		m = block_of(k, n->child[i]);
	return m;
}

loop_kernel *loop_copy_to_try(const loop_kernel *k, int32_t order, loop_node **node)
{
	loop_kernel *t = arena_copy(k->a, k, sizeof *k);

	memset(&t->decision, 0, sizeof t->decision);
	*node = NULL;
	for (int32_t p = 0; p < t->n_phases; p++) {
		loop_phase *ph = &t->phase[p];
		loop_node **root = arena_array(
			k->a, loop_node *, ph->n_roots + 1);

		for (int32_t i = 0; i < ph->n_roots; i++) {
			root[i] = loop_node_copy(k->a, ph->root[i]);
			if (*node == NULL)
				*node = node_of(root[i], order);
		}
		ph->root = root;
	}
	return t;
}

double loop_try(loop_kernel *t)
{
	loop_estimate e;

	loop_locate(t);
	loop_deal_to_warps(t);
	loop_estimate_of(t, &e);
	return loop_estimate_seconds(&e, 0);
}

/* The kernel with these stages, located, with its blocks of warps. */
static loop_kernel *tried(const loop_kernel *k, int32_t order, int32_t stages,
	int64_t size, loop_node **block, double *seconds)
{
	loop_kernel *t = loop_copy_to_try(k, order, block);

	(*block)->stages = stages;
	(*block)->size = size;
	*seconds = loop_try(t);
	return t;
}

/* Has a tile below n all of its columns in registers? */
static bool has_columns(const loop_node *n, int32_t var)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (has_columns(n->child[i], var))
			return true;
	return n->kind == LOOP_TILE && n->held > 0 && n->var == var;
}

/* The length of half a block; 0: it has no whole rows of what instructions take, or tiles
 * have all of it. */
static int64_t half_of(const loop_kernel *k, const loop_node *n)
{
	int64_t terms = k->machine->matrix.row_bytes / 2;

	return terms > 0 && n->size % (2 * terms) == 0 && !has_columns(n, n->var)
		       ? n->size / 2
		       : 0;
}

/* Decides about one block, without stages so far. */
static void decide(loop_kernel *k, int32_t phase, loop_node *n)
{
	int32_t order = n->order, stages = k->machine->block.stages;
	int64_t size[2] = {n->size, half_of(k, n)};
	loop_node *block;
	double alone, with;
	loop_kernel *t = tried(k, order, 0, n->size, &block, &alone);
	bool fits = false;

	if (t->phase[phase].warps < 2 || !loop_may_stage(t, block)) {
		loop_decide(k, DECIDE_STAGES_COPIES, phase, -1, 0, 0);
		return;
	}
	for (int32_t i = 0; i < 2 && !fits && size[i] > 0; i++) {
		t = tried(k, order, stages, size[i], &block, &with);
		fits = t->phase[phase].warps > 1 && loop_may_stage(t, block);
		if (!fits || with >= alone)
			continue;
		n->stages = stages;
		n->size = size[i];
	}
	if (!fits)
		loop_decide(k, DECIDE_STAGES_LARGE, phase, -1,
			(int64_t)t->local_bytes, k->machine->block.shared_bytes);
	else if (n->stages > 1)
		loop_decide(k, DECIDE_STAGES_TAKEN, phase, -1, n->size,
			(int64_t)((alone - with) * 1e9));
	else
		loop_decide(k, DECIDE_STAGES_COST, phase, -1,
			(int64_t)((with - alone) * 1e9), 0);
}

void loop_copy_ahead(loop_kernel *k)
{
	loop_link(k);
	if (k->machine->block.stages < 2)
		return;
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++) {
			loop_node *n = block_of(k, k->phase[p].root[i]);

			int64_t pieces = n == NULL
				? 1
				: (k->var[n->var].extent + n->size - 1) / n->size;

			if (!loop_has_copies(k, k->phase[p].root[i]))
				continue;
			if (pieces < k->machine->block.stages)
				loop_decide(k, DECIDE_STAGES_FEW, p, -1, pieces,
					k->machine->block.stages);
			else
				decide(k, p, n);
		}
}
