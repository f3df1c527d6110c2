/*
 * lower_acc.c: reductions with several accumulators: over the lanes of a vector
 * loop, and over the parts of a split sum.
 *
 * A reduction over the variable of the lanes has several accumulators of one
 * vector each. In the end they are combined pairwise, then their lanes in
 * halves, then the result with the value accumulated before, always in this
 * order. Where unrolled loops inside walk several elements of the result - rows
 * abreast - each of them has its own.
 */
#include "kern/lower.h"

val lw_combine(lowering *lw, struct how h, int32_t comp, const val *x,
	const val *y)
{
	int32_t n = lw->memo.n, m = h.e->e->n_out;
	val v;

	for (int32_t i = 0; i < m; i++) {
		lw->param[i] = x[i];
		lw->param[IR_MAX_COMP + i] = y[i];
	}
	v = lw_ex(lw, (h.next ? ir_combine_next : ir_combine)(lw->s,
		h.e->e->monoid, comp, h.acc));
	lw->memo.n = n;
	return lw_cast(lw, v, h.acc[comp]);
}

struct place_of lw_target(lowering *lw, int32_t eqn, int32_t comp)
{
	const loop_eqn *e = &lw->k->eqn[eqn];

	return lw_place_tensor(lw, e->e->out[comp], e->at, false);
}

struct lane_acc *lw_find_acc(lowering *lw, int32_t eqn)
{
	for (int32_t i = lw->acc.n - 1; i >= 0 && lw->lanes > 1; i--)
		if (lw->acc.at[i].eqn == eqn)
			return &lw->acc.at[i];
	return NULL;
}

val lw_as_acc(lowering *lw, val v)
{
	return v.dt == TN_BOOL ? lw_to_mask(lw, v, lw_mask_bytes(lw))
			       : lw_to_lanes(lw, v);
}

/* Which accumulator the current iteration of all loops adds to. */
int32_t lw_acc_now(const lowering *lw, const struct lane_acc *l)
{
	int64_t at = l->turn;

	for (int32_t i = 0; i < l->n_vars; i++)
		at = at * l->walk[i].rows + lw->plus[l->walk[i].var];
	return (int32_t)at;
}

/* The loops between n and `loop` that walk elements of its result; schedule/ has
 * checked that they are unrolled, and how many there are. */
static void find_rows(const lowering *lw, const loop_node *loop,
	const loop_node *n, struct lane_acc *l)
{
	const loop_eqn *e = &lw->k->eqn[n->eqn];

	l->rows = 1;
	/* (`loop` may be a copy of the node in the tree) */
	for (const loop_node *u = n->up; u->var != loop->var || u->lanes <= 1;
		u = u->up) {
		if (u->kind != LOOP_FOR || (e->reduced >> u->var & 1) != 0)
			continue;
		l->walk[l->n_vars].var = u->var;
		l->walk[l->n_vars++].rows = (int32_t)lw->span[u->var].len;
		l->rows *= (int32_t)lw->span[u->var].len;
	}
}

/*
 * Finds the reductions over the loop's variable, whose results do not depend on
 * it.
 */
static void find_accs(
	lowering *lw, const loop_node *loop, const loop_node *n, int32_t unroll)
{
	if (n->kind == LOOP_STMT) {
		const loop_eqn *e = &lw->k->eqn[n->eqn];
		struct lane_acc l = {.eqn = n->eqn, .n = unroll, .turn = 0};

		if (e->e->monoid == IR_SET ||
			(e->reduced >> loop->var & 1) == 0)
			return;
		for (int32_t i = 0; i < e->e->n_out; i++)
			l.acc[i] = loop_lane_acc(lw->k, e, i);
		find_rows(lw, loop, n, &l);
		*vec_push(lw->a, &lw->acc) = l;
	}
	for (int32_t i = 0; i < n->n_child; i++)
		find_accs(lw, loop, n->child[i], unroll);
}

/* the lanes of the loop are set */
void lw_open_lane_accs(lowering *lw, const loop_node *loop, int32_t unroll)
{
	int32_t i = lw->acc.n;

	find_accs(lw, loop, loop, unroll);
	for (; i < lw->acc.n; i++) {
		struct lane_acc *l = &lw->acc.at[i];
		const loop_eqn *e = &lw->k->eqn[l->eqn];

		for (int32_t j = 0; j < e->e->n_out; j++) {
			val v = lw_as_acc(lw, lw_ex(lw,
				ir_identity(lw->s, e->e->monoid, j, l->acc[j])));

			l->v[j] = arena_array(lw->a, val, unroll * l->rows);
			for (int32_t u = 0; u < unroll * l->rows; u++)
				l->v[j][u] = lw_register(lw, v, v.id);
		}
	}
}

/* Combines y into x in every lane. */
static void fold(lowering *lw, struct how h, val *x, const val *y)
{
	val z[IR_MAX_COMP];

	for (int32_t i = 0; i < h.e->e->n_out; i++)
		z[i] = lw_combine(lw, h, i, x, y);
	for (int32_t i = 0; i < h.e->e->n_out; i++)
		x[i] = lw->lanes > 1 ? lw_as_acc(lw, z[i]) : z[i];
}

static val shuffled(lowering *lw, val x, int32_t half)
{
	int64_t list[KERN_MAX_LANES];

	for (int32_t i = 0; i < lw->lanes; i++)
		list[i] = (i + half) % lw->lanes;
	return lw_shuffle(lw, x, x, list);
}

/* Combines all accumulators of a row into the first one. */
static void fold_turns(lowering *lw, const struct lane_acc *l, struct how h,
	int32_t row, val *x)
{
	int32_t m = h.e->e->n_out;
	val y[IR_MAX_COMP];

	for (int32_t step = 1; step < l->n; step *= 2)
		for (int32_t u = 0; u + step < l->n; u += 2 * step) {
			int32_t at = u * l->rows + row;

			for (int32_t i = 0; i < m; i++) {
				x[i] = l->v[i][at];
				y[i] = l->v[i][at + step * l->rows];
			}
			fold(lw, h, x, y);
			for (int32_t i = 0; i < m; i++)
				lw_set(lw, l->v[i][at], x[i]);
		}
	for (int32_t i = 0; i < m; i++)
		x[i] = l->v[i][row];
}

static void close_row(lowering *lw, const struct lane_acc *l, int32_t row)
{
	const loop_eqn *e = &lw->k->eqn[l->eqn];
	struct how h = {e, l->acc, false};
	val x[IR_MAX_COMP], y[IR_MAX_COMP], old[IR_MAX_COMP];
	int32_t lanes = lw->lanes, m = e->e->n_out;

	fold_turns(lw, l, h, row, x);
	for (int32_t half = lanes / 2; half > 0; half /= 2) {
		for (int32_t i = 0; i < m; i++)
			y[i] = shuffled(lw, x[i], half);
		fold(lw, h, x, y);
	}
	lw->lanes = 1;
	for (int32_t i = 0; i < m; i++) {
		struct place_of p = lw_target(lw, l->eqn, i);

		y[i] = lw_lane_of(lw, x[i], lw_num(lw, 0));
		y[i] = lw_cast(lw, y[i], e->acc[i]);
		old[i] = lw_load(lw, &p, false);
	}
	h.acc = e->acc;
	fold(lw, h, old, y);
	for (int32_t i = 0; i < m; i++) {
		struct place_of p = lw_target(lw, l->eqn, i);

		lw_store(lw, &p, old[i]);
	}
	lw->lanes = lanes;
}

/* Closes walk i and those after it, of the rows that begin at `row`. */
static void close_rows(
	lowering *lw, const struct lane_acc *l, int32_t i, int32_t row)
{
	int32_t var;
	form v;

	if (i == l->n_vars) {
		close_row(lw, l, row);
		return;
	}
	var = l->walk[i].var;
	v = lw->var[var];
	lw->var[var] = lw->span[var].lo;
	for (int32_t r = 0; r < l->walk[i].rows; r++) {
		lw->plus[var] = r;
		close_rows(lw, l, i + 1, row * l->walk[i].rows + r);
	}
	lw->plus[var] = 0;
	lw->var[var] = v;
}

void lw_close_lane_accs(lowering *lw, int32_t first)
{
	for (int32_t i = first; i < lw->acc.n; i++)
		close_rows(lw, &lw->acc.at[i], 0, 0);
	lw->acc.n = first;
}

/* ---- parts of a split sum ---- */

static int32_t parts(lowering *lw, int32_t eqn, int32_t comp)
{
	const loop_eqn *e = &lw->k->eqn[eqn];
	int32_t *array = &lw->array_of_part[eqn * IR_MAX_COMP + comp];

	if (*array < 0)
		*array = kern_add_array(lw->b->k, KERN_SCRATCH,
			lw_computed(e->acc[comp]),
			e->n_parts * lw->s->tensor.at[e->e->out[comp]].numel,
			e->part_at[comp]);
	return *array;
}

/* The accessed elements of part `number`. */
static struct place_of place_part(
	lowering *lw, int32_t eqn, int32_t comp, form number)
{
	const loop_eqn *e = &lw->k->eqn[eqn];
	struct place_of p = {.param = -1,
		.at = e->at,
		.array = parts(lw, eqn, comp),
		.dtype = lw_computed(e->acc[comp])};

	p.plus = lw_scale(lw, number, lw->s->tensor.at[e->e->out[comp]].numel);
	lw_address(lw, &p);
	return p;
}

/* The number of the block of the split loop that contains n. */
static form part_number(
	lowering *lw, const loop_node *n, const loop_eqn *e)
{
	while (n->kind != LOOP_BLOCK ||
		(e->reduced & ((loop_set)1 << n->var)) == 0)
		n = n->up;
	return kern_div(lw->b, lw_block_at(lw, n->var, 0), n->size);
}

void lw_part(lowering *lw, const loop_node *n)
{
	const loop_eqn *e = &lw->k->eqn[n->eqn];

	for (int32_t i = 0; i < e->e->n_out; i++) {
		struct place_of from = lw_place_tensor(
			lw, e->e->out[i], e->at, false);
		struct place_of to = place_part(
			lw, n->eqn, i, part_number(lw, n, e));

		lw_store(lw, &to, lw_load(lw, &from, false));
	}
}

/* Combines the partial results of all blocks, from the first to the last. */
void lw_join(lowering *lw, const loop_node *n)
{
	const loop_eqn *e = &lw->k->eqn[n->eqn];
	val x[IR_MAX_COMP], y[IR_MAX_COMP], z[IR_MAX_COMP];
	struct marks marks;
	int32_t m = e->e->n_out;
	kern_val c;

	for (int32_t i = 0; i < m; i++) {
		const expr *f = e->init[i] != NULL
					? e->init[i]
					: ir_identity(lw->s, e->e->monoid, i,
						  e->acc[i]);

		x[i] = lw_cast(lw, lw_ex(lw, f), e->acc[i]);
		if (lw->lanes > 1)
			x[i] = lw_as_acc(lw, x[i]);
		x[i] = lw_register(lw, x[i], x[i].id);
	}
	c = lw_for(lw, lw_num(lw, 0), lw_num(lw, e->n_parts));
	marks = lw_mark(lw);
	for (int32_t i = 0; i < m; i++) {
		struct place_of from = place_part(
			lw, n->eqn, i, lw_form_of(lw, c));

		y[i] = lw_load(lw, &from, false);
	}
	for (int32_t i = 0; i < m; i++)
		z[i] = lw_combine(lw, (struct how){e, e->acc, false}, i, x, y);
	for (int32_t i = 0; i < m; i++)
		lw_set(lw, x[i], lw->lanes > 1 ? lw_as_acc(lw, z[i]) : z[i]);
	lw_release(lw, marks);
	lw_close(lw);
	for (int32_t i = 0; i < m; i++) {
		int32_t t = e->e->out[i];
		struct place_of to;

		if (loop_param(lw->k, t) < 0)
			continue; /* a component that is not read */
		to = lw_place_tensor(lw, t, e->at, true);
		lw_store(lw, &to,
			lw_cast(lw, x[i], lw->s->tensor.at[t].dtype));
	}
}
