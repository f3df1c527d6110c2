/*
 * lower_rows.c: lowers reductions along the rows of registers that warps hold, as matrix
 * instructions have them: a lane has elements of two rows, and four lanes share a row.
 *
 * Consumes two nested loops over rows and columns (lower_held.c) with statements that
 * add up along the columns. Each lane combines its elements of a row in a register, the
 * four lanes of a row exchange them, in a fixed order, and one of them combines the
 * result with what was accumulated before:
 *
 *   var %a: f32x32 = identity; var %b ..      for the two rows of a lane
 *   for %l by lane { setlane %a, %l = combine %a, .. }
 *   %a = combine %a, shuffle %a by 1; then by 2
 *   for %l by lane { if %l mod 4 == 0 { store o = combine o, %a } }
 */
#include "kern/lower.h"

enum { SHARE = KERN_MMA_COLUMNS / 2 }; /* lanes of a row */

int32_t lw_open_inside(lowering *lw, int32_t var, int64_t most)
{
	const struct span *s = &lw->span[var];
	int64_t len;

	if (kern_form_is_const(lw_sub(lw, s->hi, s->lo), &len) && len >= most)
		return 0;
	lw_if(lw, lw_less(lw, lw->var[var], s->hi));
	return 1;
}

void lw_open_rows(lowering *lw, const loop_node *columns)
{
	int32_t lanes = lw->lanes;

	lw->lanes = KERN_MMA_LANES;
	for (int32_t i = 0; i < columns->n_child; i++) {
		const loop_node *n = columns->child[i];
		const loop_eqn *e = &lw->k->eqn[n->eqn];
		struct row_acc *r;

		if (n->kind != LOOP_STMT || e->e->monoid == IR_SET || e->reduced == 0)
			continue;
		r = vec_push(lw->a, &lw->rows);
		r->eqn = n->eqn;
		for (int32_t h = 0; h < 2; h++) {
			val v = lw_to_lanes(lw,
				lw_ex(lw, ir_identity(lw->s, e->e->monoid, 0, e->acc[0])));

			r->v[h] = lw_register(lw, v, v.id);
		}
	}
	lw->lanes = lanes;
}

bool lw_adds_row(lowering *lw, const loop_node *n)
{
	const loop_eqn *e = &lw->k->eqn[n->eqn];
	struct how h = {e, e->acc, false};
	const val *acc = NULL;
	val x, y, z;

	for (int32_t i = 0; i < lw->rows.n; i++)
		if (lw->rows.at[i].eqn == n->eqn)
			acc = &lw->rows.at[i].v[lw->number / 2 % 2];
	if (acc == NULL)
		return false;
	y = lw_cast(lw, lw_ex(lw, e->body[0]), e->acc[0]);
	x = lw_lane_of(lw, *acc, lw->of_lane);
	z = lw_combine(lw, h, 0, &x, &y);
	kern_set_lane(lw->b, acc->id, lw->of_lane, z.id);
	return true;
}

/* Every lane of a row has what all of them have. */
static void exchange(lowering *lw, const struct row_acc *r, val acc)
{
	const loop_eqn *e = &lw->k->eqn[r->eqn];
	struct how h = {e, e->acc, false};
	int32_t lanes = lw->lanes;
	int64_t list[KERN_MAX_LANES];

	lw->lanes = KERN_MMA_LANES;
	for (int32_t d = 1; d < SHARE; d *= 2) {
		val x = lw_op1(lw, KERN_COPY, acc, acc), y;

		for (int32_t i = 0; i < KERN_MMA_LANES; i++)
			list[i] = i ^ d;
		y = lw_shuffle(lw, x, x, list);
		lw_set(lw, acc, lw_as_acc(lw, lw_combine(lw, h, 0, &x, &y)));
	}
	lw->lanes = lanes;
}

/* What one row of lane l has, in addition to what was accumulated before. */
static void store(lowering *lw, const struct row_acc *r, int32_t half, form l)
{
	const loop_eqn *e = &lw->k->eqn[r->eqn];
	struct how h = {e, e->acc, false};
	struct marks m = lw_mark(lw);
	struct place_of p = lw_target(lw, r->eqn, 0);
	val y = lw_cast(lw, lw_lane_of(lw, r->v[half], l), e->acc[0]);
	val x = lw_load(lw, &p, false);

	lw_store(lw, &p, lw_combine(lw, h, 0, &x, &y));
	lw_release(lw, m);
}

void lw_close_rows(lowering *lw, const loop_node *tile, int32_t first)
{
	int32_t row = tile->row_var;
	form l, r;

	if (lw->rows.n == first)
		return;
	for (int32_t i = first; i < lw->rows.n; i++)
		for (int32_t h = 0; h < 2; h++)
			exchange(lw, &lw->rows.at[i], lw->rows.at[i].v[h]);
	l = lw_form_of(lw, lw_for_lanes(lw, KERN_MMA_LANES));
	lw_if(lw, lw_equal(lw, kern_mod(lw->b, l, SHARE), lw_num(lw, 0)));
	r = kern_div(lw->b, l, SHARE);
	for (int32_t h = 0; h < 2; h++) {
		int32_t open;

		kern_scope(lw->b);
		lw->var[row] = lw_add(lw, lw->span[row].lo,
			lw_addc(lw, r, KERN_MMA_ROWS / 2 * h));
		open = lw_open_inside(lw, row, KERN_MMA_ROWS);
		for (int32_t i = first; i < lw->rows.n; i++)
			store(lw, &lw->rows.at[i], h, l);
		lw_close_loops(lw, open + 1);
	}
	lw_close_loops(lw, 2);
	lw->var[row] = lw->span[row].lo;
	lw->rows.n = first;
}
