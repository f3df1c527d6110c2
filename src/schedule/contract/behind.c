/*
 * behind.c: squares of sums are turned for what follows them.
 *
 *   tile columns j { .. }  for j { for i lanes { o[j,i] = f(sum[i,j]) } }   ->
 *   tile columns j { .. }  block j { turn sum  for j { for i lanes { .. } } }
 *
 * Where the columns of sums are in the lanes of their tile, and rows adjoin in the
 * results, what follows would gather each element from another row. Squares of the sums
 * are copied first (a stage), turned in registers. Of few rows, the first cache has
 * the lines of all while they are gathered.
 */
#include "schedule/contract/contract.h"

static bool is_behind(const contract_product *p, int32_t eqn)
{
	for (int32_t i = 0; i < p->behind.n; i++)
		if (p->behind.at[i]->eqn == eqn)
			return true;
	return false;
}

struct neighbours {
	const contract *c;
	const contract_product *p;
	bool rows, columns; /* adjoin in something in memory */
};

static void on_access(void *arg, const struct loop_access *a)
{
	struct neighbours *n = arg;
	loop_set both = BIT(n->p->i) | BIT(n->p->j);

	if ((loop_form_vars(a->at) & both) != both)
		return; /* one for each row, or each column */
	n->rows |= contract_adjoins(n->c->k, a->at, n->p->i);
	n->columns |= contract_adjoins(n->c->k, a->at, n->p->j);
}

/* Do rows of the tiles adjoin in the sums, and rows alone in the memory that is accessed
 * behind them? */
static bool rows_adjoin(const contract *c, const contract_product *p)
{
	struct neighbours n = {c, p, false, false};

	if (p->i < 0 || !contract_adjoins(c->k, c->k->eqn[p->eqn].at, p->i))
		return false;
	for (int32_t i = 0; i < p->behind.n; i++) {
		if (!contract_adjoins(c->k, c->k->eqn[p->behind.at[i]->eqn].at, p->i))
			return false;
		loop_each_access(c->k, p->behind.at[i], on_access, &n);
	}
	return n.rows && !n.columns;
}

/* Is the sum read only by what follows it, at its own elements? */
static bool is_read_behind(const contract *c, const contract_product *p)
{
	loop_kernel *k = c->k;
	const loop_eqn *e = &k->eqn[p->eqn];

	for (int32_t i = 0; i < k->n_eqns; i++) {
		loop_node leaf = {.kind = LOOP_STMT, .eqn = i};

		if (i != p->eqn && loop_leaf_reads(k, &leaf, e->e->out[0]) &&
			(!is_behind(p, i) ||
				!loop_leaf_reads_at(k, &leaf, e->e->out[0], e->at)))
			return false;
	}
	return true;
}

bool contract_turns_sums(const contract *c, const contract_product *p)
{
	const loop_kernel *k = c->k;
	const loop_eqn *e = &k->eqn[p->eqn];
	int64_t rows = p->i >= 0 ? contract_extent(c, p->i) : 0;
	int32_t t = e->e->out[0];
	int32_t lanes = machine_lanes(k->machine, (int32_t)dtype_size(e->acc[0]));

	if (k->machine->block.warps > 1 || !rows_adjoin(c, p) ||
		loop_param(k, t) >= 0 || (e->reduced & c->mixed) != 0 || c->online ||
		k->n_eqns >= 63 || lanes != p->lanes ||
		(dtype_size(e->acc[0]) != 4 && dtype_size(e->acc[0]) != 8) ||
		k->s->tensor.at[t].dtype != e->acc[0] ||
		!loop_covers(k, t, e->at, loop_form_vars(e->at)) ||
		!is_read_behind(c, p))
		return false;
	if (rows >= k->machine->product.turned_rows) {
		loop_decide(c->k, DECIDE_SQUARES_SUMS, t, -1, lanes, 0);
		return true;
	}
	loop_decide(c->k, DECIDE_SQUARES_FEW, t, -1, rows, k->machine->product.turned_rows);
	return false;
}

/* Columns whose squares are turned at a time. A vector that is read back while the
 * processor has not stored all squares that it is part of waits: so there are some. */
static int64_t turned_at_once(const contract *c, const contract_product *p)
{
	int64_t row = contract_extent(c, p->i) *
		      (int64_t)dtype_size(c->k->eqn[p->eqn].acc[0]);
	int64_t n = c->k->machine->product.turned_bytes / row / p->lanes;

	return (n > 1 ? n : 1) * p->lanes;
}

/* The loop over rows that do what follows the sums, in one over columns, which are turned
 * before. */
loop_node *contract_turned_columns(
	contract *c, const contract_product *p, loop_node *rows)
{
	loop_kernel *k = c->k;
	const loop_eqn *e = &k->eqn[p->eqn];
	int32_t eqn = loop_add_stage(k, e->e->out[0], e->at);
	loop_node *turn = contract_leaf(c, LOOP_STAGE, eqn);
	loop_node *block = contract_block(c, p->j, turned_at_once(c, p), turn);

	turn->var = p->j;
	turn->row_var = p->i;
	turn->lanes = p->lanes;
	loop_node_adopt(k->a, block, loop_node_for(k->a, p->j, rows));
	return block;
}
