/*
 * cut.c: cuts long sums of products with few rows and columns.
 *
 * Consumes a kernel with a sum whose rows and columns give too few chunks. The
 * sum is cut into pieces, the chunks of an additional phase, which store their
 * tiles in scratch memory. The original statement adds the pieces from the
 * first to the last; later statements do not change.
 *
 *   for i, j { o = 0; for k < 65536 { o += x * y } p = max(o, 0) }     ->
 *   phase 0: block k 4096, c = k / 4096 {
 *              for i, j { part[c, i, j] = sum of x * y over the block } }
 *   phase 1: for i, j { o = 0; for c < 16 { o += part[c, i, j] } p = .. }
 *
 * Pieces, and so the bits of the result, depend only on sizes and the target.
 */
#include "schedule/contract/contract.h"

enum { MOST = 56 }; /* equations, variables */

/* ---- conditions ---- */

/*
 * The loops of the sum of eqn, if they contain only its statement; else NULL.
 */
static loop_node *sums_of(const loop_kernel *k, loop_node *n, int32_t eqn)
{
	loop_set walked = 0, reduced = k->eqn[eqn].reduced;
	loop_node *u = n;

	for (; u->kind == LOOP_FOR && u->n_child == 1; u = u->child[0])
		walked |= BIT(u->var);
	if (u->kind == LOOP_STMT && u->eqn == eqn && n != u &&
		walked == reduced)
		return n;
	for (int32_t i = 0; i < n->n_child; i++) {
		u = sums_of(k, n->child[i], eqn);
		if (u != NULL)
			return u;
	}
	return NULL;
}

static int64_t product_of_extents(const loop_kernel *k, loop_set s)
{
	int64_t n = 1;

	for (int32_t v = 0; v < k->n_vars; v++)
		if ((s & BIT(v)) != 0 && !mul_ok(n, k->var[v].extent, &n))
			return INT64_MAX;
	return n;
}

/*
 * Finds rows and columns as if the product were alone; false: it cannot be
 * tiled.
 */
static bool is_tiled(contract *c, contract_product *p)
{
	loop_kernel *k = c->k;

	c->chain = k->eqn[p->eqn].left;
	c->block = arena_array(k->a, int64_t, k->n_vars + 1);
	for (int32_t v = 0; v < k->n_vars; v++)
		c->block[v] = (c->chain & BIT(v)) != 0 ? k->var[v].extent : 0;
	if (!contract_classify(c, p))
		return false;
	for (int32_t v = 0; v < k->n_vars; v++)
		if (v != p->i && v != p->j)
			c->block[v] = 0;
	return contract_classify(c, p);
}

/* Records why the sum is not cut; returns 0. */
static int64_t decline(
	loop_kernel *k, decide_kind why, int32_t eqn, int64_t a, int64_t b)
{
	loop_decide(k, why, eqn, -1, a, b);
	return 0;
}

/* The length of the pieces of the sum; 0: it is not cut. */
static int64_t piece_of(loop_kernel *k, int32_t eqn, int32_t *sum)
{
	contract c = {.k = k, .cut_sum = -1, .number = -1};
	contract_product p = {.eqn = eqn};
	loop_set reduced = k->eqn[eqn].reduced;
	int64_t pieces, n, rest, most, work, lanes;

	if (!k->cuts)
		return decline(k, DECIDE_CUT_COST, eqn, 0, 0);
	if (!is_tiled(&c, &p) || (p.lone && !p.few) || contract_turn(&c, &p))
		return 0;
	pieces = contract_pieces(&c, &p);
	if (pieces >= k->machine->product.enough_pieces)
		return decline(k, DECIDE_CUT_PIECES, eqn, pieces,
			k->machine->product.enough_pieces);
	if (p.tiled) /* pieces would be added up by vectors */
		return decline(k, DECIDE_CUT_TILED, eqn, pieces, 0);
	c.number = k->n_vars; /* the number that the new variable will have */
	pieces = contract_pieces(&c, &p);
	*sum = p.s;
	n = k->var[p.s].extent;
	rest = product_of_extents(k, reduced & ~BIT(p.s));
	work = product_of_extents(k, reduced | k->eqn[eqn].left);
	if (work == INT64_MAX)
		return 0;
	most = contract_ceil(k->machine->product.cut_chunks, pieces);
	work /= k->machine->schedule.chunk_elems *
		k->machine->product.piece_chunks;
	most = most > work ? work : most;
	work = n * rest / k->machine->product.least_piece;
	most = most > work ? work : most;
	most = most > n ? n : most;
	if (most < 2)
		return decline(k, DECIDE_CUT_SHORT, eqn, n * rest, 0);
	most += most & 1; /* an odd number of pieces is bad for two threads */
	lanes = p.lanes;
	n = contract_ceil(n, most);
	return n > lanes ? contract_ceil(n, lanes) * lanes : n;
}

/* ---- the cut ---- */

/* Replaces the loops of the sum by a loop over the pieces. */
static void add_up(loop_kernel *k, loop_node *sums, int32_t eqn, int32_t number)
{
	loop_node *stmt = loop_node_new(k->a, LOOP_STMT);

	stmt->eqn = eqn;
	*sums = *loop_node_for(k->a, number, stmt);
}

/* Adds a phase before the existing one, which computes the pieces. */
static void add_phase(loop_kernel *k, const loop_node *sums, int32_t part,
	int32_t number, int32_t sum, int64_t size)
{
	int32_t at = k->n_phases - 1;
	loop_phase *ph = &k->phase[at];
	loop_node *n = loop_node_copy(k->a, sums), *u = n;
	loop_set left = k->eqn[part].left & ~BIT(number);
	contract c = {.k = k, .phase = at, .number = number,
		.cut_size = size, .cut_sum = sum};

	while (u->kind != LOOP_STMT)
		u = u->child[0];
	u->eqn = part;
	for (int32_t v = k->n_vars - 1; v >= 0; v--)
		if ((left & BIT(v)) != 0)
			n = loop_node_for(k->a, v, n);
	ph[1] = ph[0];
	k->n_phases++;
	*ph = (loop_phase){.n_roots = 1, .n_chunks = 1,
		.root = arena_array(k->a, loop_node *, 1)};
	ph->root[0] = loop_node_for(k->a, number, n);
	loop_link(k);
	if (!contract_phase(&c))
		env_fail(arena_env(k->a), TN_EINTERNAL, "loop.cut", (loc){0},
			"%s: pieces of a sum are not a product", k->name);
}

static loop_node *find_sums(
	const loop_kernel *k, loop_node *const *root, int32_t n, int32_t eqn)
{
	loop_node *u = NULL;

	for (int32_t i = 0; i < n && u == NULL; i++)
		u = sums_of(k, root[i], eqn);
	return u;
}

static bool is_parallel(const loop_kernel *k, loop_set s)
{
	for (int32_t v = 0; v < k->n_vars; v++)
		if ((s & BIT(v)) != 0 && k->var[v].kind == AXIS_S)
			return false;
	return true;
}

/*
 * Can the sum be cut? Its operands must exist before the kernel runs, and it
 * must not be inside a scan.
 */
static bool may_cut(loop_kernel *k, int32_t eqn)
{
	const loop_eqn *e = &k->eqn[eqn];

	if (contract_reads_memory(k, e->body[0]) && is_parallel(k, e->left))
		return true;
	decline(k, DECIDE_CUT_INSIDE, eqn, 0, 0);
	return false;
}

void contract_cut(loop_kernel *k)
{
	for (int32_t i = 0, n = k->n_eqns; i < n; i++) {
		const loop_eqn *e = &k->eqn[i];
		const loop_phase *ph = &k->phase[k->n_phases - 1];
		loop_node *sums, *here;
		int32_t part, number, v;
		int64_t size;
		tn_dtype acc;

		if (k->n_phases + 2 > LOOP_MAX_PHASES || k->n_eqns >= MOST ||
			k->n_vars >= MOST || !contract_is_product(k, e) ||
			!may_cut(k, i))
			continue;
		sums = find_sums(k, k->root, k->n_roots, i);
		here = find_sums(k, ph->root, ph->n_roots, i);
		if (sums == NULL || here == NULL)
			decline(k, DECIDE_CUT_LOOPS, i, 0, 0);
		acc = e->acc[0];
		if (dtype_is_int(acc)) /* integers wrap to the same result */
			k->eqn[i].acc[0] = TN_I32;
		size = sums != NULL && here != NULL ? piece_of(k, i, &v) : 0;
		if (size == 0) {
			k->eqn[i].acc[0] = acc;
			continue;
		}
		if (!loop_change_cut(k, i, v, size))
			continue;
		number = k->n_vars - 1;
		part = k->n_eqns - 1;
		add_up(k, sums, i, number);
		add_phase(k, here, part, number, v, size);
		add_up(k, here, i, number);
		loop_decide(k, DECIDE_CUT_TAKEN, i, -1, size,
			k->var[number].extent);
		loop_decide(k, DECIDE_TILE_PIECES, i, -1, 0, 0);
	}
	loop_link(k);
}
