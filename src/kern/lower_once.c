/*
 * lower_once.c: stores of what all warps of a block compute alike: one of them is
 * enough.
 *
 *   for %i27 = 0 .. 1 by warp { store p0[chunk] = %r0 }
 */
#include "kern/lower.h"

void lw_store(lowering *lw, const struct place_of *p, val v)
{
	bool alike = lw->b->k->phase[lw->phase].warps > 1 && lw->dealt == 0;
	bool reg = p->buf != NULL && (p->buf->where == LOOP_REGISTER ||
					     p->buf->where == LOOP_HELD);
	kern_stmt first = {.step = 1, .by_warp = true};
	struct marks m = lw_mark(lw);

	if (!alike || reg) {
		lw_put(lw, p, v);
		return;
	}
	first.lo = lw_num(lw, 0);
	first.hi = lw_num(lw, 1);
	kern_for_as(lw->b, &first, NULL);
	lw_put(lw, p, v);
	lw_close(lw);
	lw_release(lw, m);
}
