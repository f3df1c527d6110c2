/*
 * lower_stages.c: lowers copies that go on while earlier pieces are computed with.
 *
 * Consumes the loops of a BLOCK node with stages that copy rows as they lie in
 * memory (schedule/stages.c); produces
 *
 *   for %i by warp { async b0[..] rows .. = p1[..] rows .. }
 *
 * for the stage of the buffer that is filled now, or, of a loop in bulk (schedule/bulk.c),
 *
 *   async b0[..] rows .. = p1[..] rows .. in bulk
 *
 * with all rows of the piece. lower_nest.c calls it for the
 * copies of a piece, and leaves them out where it lowers what computes with one.
 */
#include "kern/lower.h"

/* The length of its interval; 0: it has several. */
static int64_t length_of(lowering *lw, int32_t var)
{
	int64_t n = 0;

	return kern_form_is_const(
		       lw_sub(lw, lw->span[var].hi, lw->span[var].lo), &n)
		       ? n
		       : 0;
}

/* How many rows a warp copies at a time: as many as its lanes can, if there are
 * enough for all warps; rows 0: it is not known. */
static int64_t rows_at_once(
	const lowering *lw, int64_t rows, int64_t width, int64_t bytes)
{
	int64_t pieces = width * bytes / KERN_ASYNC_BYTES, n = 1;
	int32_t warps = lw->b->k->phase[lw->phase].warps;

	while (2 * n * pieces <= lw->k->machine->lanes &&
		rows % (2 * n) == 0 && rows / (2 * n) >= warps && rows > 0)
		n *= 2;
	return n;
}

/* for row by warp { for column in lanes { copy } } */
static void copy_rows(lowering *lw, const loop_node *n)
{
	const loop_node *in = n->child[0];
	const loop_eqn *e = &lw->k->eqn[in->child[0]->eqn];
	const expr *x = e->body[0];
	form row = lw->var[n->var], column = lw->var[in->var];
	struct marks m = lw_mark(lw);
	kern_stmt loop = {.lo = lw->span[n->var].lo,
		.hi = lw->span[n->var].hi,
		.by_warp = true};
	kern_stmt s = {.width = (int32_t)length_of(lw, in->var)};

	if (s.width == 0)
		lw_bug(lw, "rows that are copied have several lengths:",
			lw->k->var[in->var].name);

	s.bulk = n->bulk;
	loop.step = s.bulk ? length_of(lw, n->var)
			   : rows_at_once(lw, length_of(lw, n->var), s.width,
				     (int64_t)dtype_size(x->dtype));
	s.rows = (int32_t)loop.step;
	lw->var[n->var] = s.bulk
		? lw->span[n->var].lo
		: lw_form_of(lw, kern_for_as(lw->b, &loop, NULL));
	lw->var[in->var] = lw->span[in->var].lo;
	s.at = lw_rows(lw, e->e->out[0], e->at, n->var, in->var, &s.n);
	s.from = lw_rows(lw, x->tensor, x->form, n->var, in->var, &s.m);
	kern_async(lw->b, &s);
	if (!s.bulk)
		lw_close(lw);
	lw_release(lw, m);
	lw->var[n->var] = row;
	lw->var[in->var] = column;
}

bool lw_copies(lowering *lw, const loop_node *n)
{
	if (lw->only == LW_ALL)
		return false;
	if (lw->only == LW_OTHERS)
		return !loop_has_others(lw->k, n);
	if (!loop_has_copies(lw->k, n))
		return true;
	if (n->kind != LOOP_FOR || !n->by_warp)
		return false;
	copy_rows(lw, n);
	return true;
}
