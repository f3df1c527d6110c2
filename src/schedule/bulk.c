/*
 * bulk.c: copies of whole pieces by one instruction.
 *
 * Consumes phases whose copies are made ahead (stages.c), located and dealt to warps. On
 * a machine that has such instructions, a copy into a swizzled array is begun by one
 * thread for all rows of a piece, instead of 16 bytes of a row by each lane of all warps:
 * the device is told once, by the host, how rows lie in the tensor.
 *
 *   for k by warp { for j lanes 32 { copy } } -> for k in bulk { for j lanes 32 { copy } }
 *
 * For that, what lies between two rows must be the same everywhere: the tensor is a
 * matrix of rows of that length, and a piece is a box in it. The estimate decides.
 */
#include "schedule/estimate.h"
#include "schedule/local.h"

/* Of a tensor as a matrix whose rows are `row` elements: do the boxes of a copy, which
 * take elements along `along`, never reach over the end of a row? */
static bool are_in_rows(
	const loop_kernel *k, const ix_form *f, int32_t along, int64_t row)
{
	int64_t most = floor_mod(f->c0, row);
	bool has = false;

	for (int32_t v = 0; v < k->n_vars; v++) {
		int64_t s, reach;

		if ((loop_form_vars(f) & BIT(v)) == 0)
			continue;
		if (!ix_stride(f, v, k->var[v].extent, &s))
			return false;
		has |= v == along && s == 1;
		if (s % row == 0)
			continue;
		if (s < 0 || !mul_ok(s, k->var[v].extent - 1, &reach) ||
			!add_ok(most, reach, &most))
			return false;
	}
	return has && most < row;
}

bool loop_may_copy_in_bulk(const loop_kernel *k, const loop_node *n)
{
	const loop_node *in = n->kind == LOOP_FOR && n->n_child == 1 ? n->child[0] : NULL;
	const loop_node *leaf = in != NULL && in->n_child == 1 ? in->child[0] : NULL;
	const loop_buf *b;
	const expr *x;
	int64_t rows, row;

	if (k->machine->block.bulk_rows == 0 || leaf == NULL || loop_is_loop(leaf) ||
		!loop_copies_rows(k, leaf))
		return false;
	b = &k->buf[k->buf_of[leaf->eqn][0]];
	x = k->eqn[leaf->eqn].body[0];
	rows = loop_piece_of(k, n, n->var);
	return b->stages > 1 && b->swizzled > 0 && b->n_vars == 2 &&
	       b->var[0] == n->var && rows > 0 && rows % k->machine->block.bulk_each == 0 &&
	       rows <= k->machine->block.bulk_rows &&
	       loop_piece_of(k, in, in->var) == b->swizzled &&
	       ix_stride(x->form, n->var, k->var[n->var].extent, &row) && row > 0 &&
	       row <= INT32_MAX && k->s->tensor.at[x->tensor].numel / row <= INT32_MAX &&
	       row * (int64_t)dtype_size(x->dtype) % LOOP_ASYNC_BYTES == 0 &&
	       k->s->tensor.at[x->tensor].numel % row == 0 &&
	       are_in_rows(k, x->form, in->var, row);
}

/* ---- the pass ---- */

static double seconds(loop_kernel *k)
{
	loop_estimate e;

	loop_estimate_of(k, &e);
	return loop_estimate_seconds(&e, 0);
}

static void decide(loop_kernel *k, loop_node *n)
{
	int32_t eqn = n->child[0]->child[0]->eqn;
	double alone = seconds(k), with;

	if (!loop_may_copy_in_bulk(k, n)) {
		loop_decide(k, DECIDE_BULK_SHAPE, eqn, -1, 0, 0);
		return;
	}
	n->bulk = true;
	with = seconds(k);
	n->bulk = with < alone;
	if (n->bulk)
		loop_decide(k, DECIDE_BULK_TAKEN, eqn, -1,
			(int64_t)((alone - with) * 1e9), 0);
	else
		loop_decide(k, DECIDE_BULK_COST, eqn, -1,
			(int64_t)((with - alone) * 1e9), 0);
}

static void visit(loop_kernel *k, loop_node *n, bool staged)
{
	staged |= n->kind == LOOP_BLOCK && n->stages > 1;
	if (staged && n->by_warp && n->n_child == 1 && n->child[0]->n_child == 1 &&
		!loop_is_loop(n->child[0]->child[0]) &&
		loop_copies_rows(k, n->child[0]->child[0])) {
		decide(k, n);
		return;
	}
	for (int32_t i = 0; i < n->n_child; i++)
		visit(k, n->child[i], staged);
}

void loop_copy_in_bulk(loop_kernel *k)
{
	loop_link(k);
	if (k->machine->block.bulk_rows == 0)
		return;
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			visit(k, k->phase[p].root[i], false);
}
