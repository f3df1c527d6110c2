/*
 * warpgroup.c: matrix instructions that several warps execute together.
 *
 * Consumes tiles whose sums warps hold, in loops by warp over their rows, with copies of
 * their factors that are made ahead. On a machine that has such instructions, the warps
 * of a warpgroup multiply rows of their own by the same columns, which the instruction
 * takes from the memory of the block, so that no warp loads them. For that the copy of
 * the columns has rows without gaps, of 128 or 256 bytes, in which pieces of 16 bytes
 * are in another order (kern_array): no two of those that are read at once are in the
 * same banks.
 *
 *   block i by 16 by warp { tile rows i by 16 .. matrix by 4 warps }
 *
 * All warps must come to the instruction, with all of its rows, columns and terms. Their
 * rows are loaded into registers; or, if a copy of them is such an array, too, the
 * instruction takes them from there (`in memory`). The estimate of all ways decides.
 */
#include "schedule/estimate.h"
#include "schedule/local.h"

enum { ROW = 64, MOST_COLUMNS = 128, MOST_TERMS = 64, TERMS = 16 };

/* Does a leaf below n, other than this one, read the tensor? */
static bool is_read_by_others(
	loop_kernel *k, const loop_node *n, const loop_node *tile, int32_t tensor)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (is_read_by_others(k, n->child[i], tile, tensor))
			return true;
	return !loop_is_loop(n) && n != tile && loop_leaf_reads(k, n, tensor);
}

/* The copy of rows or columns, ahead of the tile, which alone reads it; NULL: none. */
static const loop_buf *copy_of(loop_kernel *k, const loop_node *t, int32_t factor)
{
	const expr *y = t->factor[factor];
	const loop_buf *b;
	int32_t by, comp;

	if (y->kind != EX_READ || !loop_maker(k, y->tensor, &by, &comp) ||
		k->buf_of[by][comp] < 0)
		return NULL;
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			if (is_read_by_others(k, k->phase[p].root[i], t, y->tensor))
				return NULL;
	b = &k->buf[k->buf_of[by][comp]];
	return b->where == LOOP_LOCAL && b->stages > 1 && b->n_vars == 2 &&
			       b->group == 0 && b->panel == 0
		       ? b
		       : NULL;
}

/* Are its rows 128 bytes, or twice that if columns adjoin? */
static bool has_rows(const loop_kernel *k, const loop_node *t, const loop_buf *b)
{
	int64_t columns = (int64_t)t->lanes * t->unroll, terms;
	bool turned = b->var[1] != t->var; /* terms adjoin */

	if ((columns != ROW && columns != MOST_COLUMNS) ||
		b->var[turned] != t->sum[0] || b->var[!turned] != t->var ||
		b->extent[!turned] != columns)
		return false;
	terms = b->extent[turned];
	return terms % TERMS == 0 && terms <= MOST_TERMS && (!turned || terms == ROW) &&
	       k->var[t->sum[0]].extent % terms == 0 &&
	       loop_piece_of(k, t->up, t->sum[0]) == terms &&
	       loop_piece_of(k, t->up, t->var) == columns;
}

bool loop_may_take_rows(loop_kernel *k, const loop_node *t)
{
	const loop_buf *b = copy_of(k, t, 0);

	return b != NULL && t->size == k->machine->matrix.rows &&
	       b->var[0] == t->row_var && b->var[1] == t->sum[0] &&
	       b->extent[0] % LOOP_ROWS_TOGETHER == 0 && b->extent[1] == ROW;
}

/* Do all warps of the phase run this tile, equally often? */
static bool have_all(const loop_kernel *k, const loop_node *t, int32_t warps)
{
	const loop_node *w = t->up;
	int64_t rows;

	while (w != NULL && w->kind == LOOP_BLOCK && !w->by_warp)
		w = w->up;
	if (w == NULL || w->kind != LOOP_BLOCK || w->var != t->row_var ||
		w->size != t->size)
		return false;
	for (const loop_node *u = w; u != NULL; u = u->up)
		if (u->n_needs > 0 || u->n_clip > 0)
			return false;
	rows = loop_piece_of(k, w->up, t->row_var);
	return rows > 0 && rows % (t->size * warps) == 0;
}

bool loop_may_use_warpgroup(
	loop_kernel *k, int32_t phase, const loop_node *t)
{
	tn_dtype x = t->factor[0]->dtype;
	int32_t warps = k->phase[phase].warps;
	const loop_buf *b;

	if (!t->matrix || t->held == 0 || t->checked || t->within != NULL ||
		t->n_needs > 0 || t->n_clip > 0 || t->n_sums != 1 ||
		(x != TN_BF16 && x != TN_F16) || t->factor[1]->dtype != x ||
		warps == 0 || warps % k->machine->matrix.warps != 0)
		return false;
	b = copy_of(k, t, 1);
	return b != NULL && has_rows(k, t, b) && have_all(k, t, warps);
}

/* The estimate with such instructions; negative: they cannot be. */
static double tried(const loop_kernel *k, int32_t phase, const loop_node *t, bool in_memory)
{
	loop_node *n;
	loop_kernel *all = loop_copy_to_try(k, t->order, &n);
	double seconds;

	n->warps = k->machine->matrix.warps;
	n->in_memory = in_memory;
	seconds = loop_try(all);
	return loop_may_use_warpgroup(all, phase, n) &&
			       (!in_memory || loop_may_take_rows(all, n))
		       ? seconds
		       : -1;
}

static void decide(loop_kernel *k, int32_t phase, loop_node *t)
{
	loop_node *n;
	double alone = loop_try(loop_copy_to_try(k, t->order, &n));
	double with = tried(k, phase, t, false), in = tried(k, phase, t, true);

	if (with < 0) {
		loop_decide(k, DECIDE_WARPGROUP_SHAPE, t->eqn, -1, 0, 0);
		return;
	}
	t->in_memory = in >= 0 && in < with;
	with = t->in_memory ? in : with;
	if (with >= alone) {
		t->in_memory = false;
		loop_decide(k, DECIDE_WARPGROUP_COST, t->eqn, -1,
			(int64_t)((with - alone) * 1e9), 0);
		return;
	}
	t->warps = k->machine->matrix.warps;
	loop_decide(k, t->in_memory ? DECIDE_WARPGROUP_MEMORY : DECIDE_WARPGROUP_TAKEN,
		t->eqn, -1, t->warps, (int64_t)((alone - with) * 1e9));
}

static void visit(loop_kernel *k, int32_t phase, loop_node *n)
{
	if (n->kind == LOOP_TILE && n->matrix)
		decide(k, phase, n);
	for (int32_t i = 0; i < n->n_child; i++)
		visit(k, phase, n->child[i]);
}

void loop_use_warpgroups(loop_kernel *k)
{
	loop_link(k);
	if (k->machine->matrix.warps < 2)
		return;
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			visit(k, p, k->phase[p].root[i]);
}
