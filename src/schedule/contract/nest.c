/*
 * nest.c: makes the loop nest of one product, with tiles of registers.
 *
 * Consumes a product with the variables that no outer loop walks, and
 * classifies them by index forms: columns are contiguous in the result and walk
 * one factor (y), rows walk the other one, sums are reduced, the others are
 * batches. A factor that is not a bare read, or that has an unsuitable memory
 * order, is copied block by block: it may be any expression, with any strides,
 * sliding windows and guards.
 *
 *   t[i, j] += x[i, k] * y[k, j]   ->
 *   block k {                            a part of the sum that fits a panel
 *     X = x                              rows of the block, if need be
 *     block j {                          a panel: some vectors wide
 *       Y = y                            transposed if y is contiguous along k
 *       block i { TILE i x j, sum over k } } }
 */
#include "schedule/contract/contract.h"

/* ---- classes ---- */

struct forms {
	bool data; /* an index is data */
};

static void on_expr(void *arg, const expr *e)
{
	struct forms *f = arg;

	f->data |= e->form != NULL && ix_has_fun(e->form);
}

/* Is it a bare read of the dtype of the sum, at an index that is not data? */
static bool is_bare(loop_kernel *k, const expr *e, tn_dtype acc)
{
	struct forms f = {false};

	if (e->kind != EX_READ || e->dtype != acc)
		return false;
	loop_walk(k->a, e, on_expr, &f);
	return !f.data;
}

static bool adjoins(const loop_kernel *k, const ix_form *f, int32_t v)
{
	int64_t s;

	return loop_stride(f, v, k->var[v].extent, &s) && s == 1;
}

static int64_t lanes_of(const contract *c, const contract_product *p)
{
	size_t size = dtype_size(c->k->eqn[p->eqn].acc[0]);

	return machine_lanes(c->k->machine, (int32_t)size);
}

struct rows {
	const loop_kernel *k;
	int32_t v;
	bool adjoin;
};

static void on_row(void *arg, const expr *e)
{
	struct rows *r = arg;

	if (e->kind == EX_READ && (loop_form_vars(e->form) & BIT(r->v)) != 0)
		r->adjoin &= adjoins(r->k, e->form, r->v);
}

/*
 * How suitable is v, which only factor f walks, for the lanes? A factor that is
 * not a bare read, such as a window of an image with a border, is copied by
 * whole vectors if what it reads is contiguous along v.
 */
static int32_t rank_of(
	const contract *c, const contract_product *p, const expr *f, int32_t v)
{
	const loop_eqn *e = &c->k->eqn[p->eqn];
	struct rows of = {c->k, v, true};
	int32_t r = 1;

	if (adjoins(c->k, e->at, v))
		r += 4;
	loop_walk(c->k->a, f, on_row, &of);
	if (of.adjoin)
		r += f->kind == EX_READ ? 2 : 1;
	return r;
}

static int32_t longest(const contract *c, loop_set s)
{
	int32_t best = -1;

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((s & BIT(v)) != 0 &&
			(best < 0 || contract_extent(c, v) >
					     contract_extent(c, best)))
			best = v;
	return best;
}

static int64_t elements(const contract *c, loop_set s)
{
	int64_t n = 1;

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((s & BIT(v)) != 0 && !mul_ok(n, contract_extent(c, v), &n))
			return INT64_MAX;
	return n;
}

/* The outer loops that are not cut, which stay outside of the blocks. */
static loop_set walked_around(const contract *c)
{
	loop_set s = 0;

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((c->chain & BIT(v)) != 0 && c->block[v] == 0)
			s |= BIT(v);
	return s;
}

/* Do the sums have another dtype than the memory of the result? */
static bool lies_apart(const contract *c, const contract_product *p)
{
	const loop_eqn *e = &c->k->eqn[p->eqn];
	int32_t t = e->e->out[0];

	return loop_param(c->k, t) >= 0 &&
	       (p->turned || c->k->s->tensor.at[t].dtype != e->acc[0]);
}

static bool is_mixed(const contract *c, const contract_product *p)
{
	return (c->k->eqn[p->eqn].reduced & c->mixed) != 0;
}

/* Records why the product cannot be tiled; returns false. */
static bool decline(const contract *c, const contract_product *p,
	decide_kind why, int64_t a, int64_t b)
{
	loop_decide(c->k, why, p->eqn, -1, a, b);
	return false;
}

/* Are rows and sums long enough for tiles? */
static bool is_enough(
	const contract *c, const contract_product *p, const loop_set *walked)
{
	const machine_product *m = &c->k->machine->product;
	int64_t rows = elements(c, p->rows), sums = elements(c, p->sums);

	if (p->i < 0)
		return decline(c, p, DECIDE_TILE_NO_ROWS, 0, 0);
	if ((p->sums & walked[0] & walked[1]) == 0)
		return decline(c, p, DECIDE_TILE_NO_SUM, 0, 0);
	if (lanes_of(c, p) < 2)
		return decline(c, p, DECIDE_TILE_VECTOR, 0, 0);
	if (rows < m->least_rows)
		return decline(c, p, DECIDE_TILE_ROWS, rows, m->least_rows);
	if (sums < m->least_sum)
		return decline(c, p, DECIDE_TILE_SUMS, sums, m->least_sum);
	return true;
}

bool contract_classify(contract *c, contract_product *p)
{
	loop_kernel *k = c->k;
	const loop_eqn *e = &k->eqn[p->eqn];
	contract_terms t;
	const expr **f = t.f;
	loop_set out = walked_around(c), left = e->left & ~out, v[2];
	int32_t best = 0;
	/* the longest axis of columns that does not fill the lanes */
	int64_t widest = 0;

	p->j = -1;
	if (!contract_factors(k, e, &t))
		return decline(c, p, t.why, 0, CONTRACT_FACTORS);
	p->finish = t.finish;
	p->inexact = t.inexact;
	p->begun |= is_mixed(c, p) && lies_apart(c, p);
	p->n_needs = t.n_needs;
	memcpy(p->need, t.need, sizeof p->need);
	v[0] = loop_expr_vars(k, f[0]) & ~out;
	v[1] = loop_expr_vars(k, f[1]) & ~out;
	for (int32_t i = 0; i < k->n_vars; i++)
		for (int32_t n = 0; n < 2; n++) {
			int32_t r;

			if ((left & v[n] & ~v[1 - n] & BIT(i)) == 0)
				continue;
			if (contract_extent(c, i) < lanes_of(c, p)) {
				if (contract_extent(c, i) > widest)
					widest = contract_extent(c, i);
				continue;
			}
			r = rank_of(c, p, f[n], i);
			if (r < best ||
				(r == best && contract_extent(c, i) <=
						      contract_extent(c, p->j)))
				continue;
			best = r;
			p->j = i;
			p->y = f[n];
			p->x = f[1 - n];
		}
	if (p->j < 0)
		return decline(c, p, widest > 0 ? DECIDE_TILE_COLUMNS
						: DECIDE_TILE_NO_COLUMNS,
			widest, lanes_of(c, p));
	best = p->y == f[1];
	p->rows = left & v[1 - best] & ~v[best];
	p->columns = left & v[best] & ~v[1 - best];
	p->others = left & ~p->rows & ~p->columns;
	p->sums = e->reduced;
	p->i = longest(c, p->rows);
	p->s = longest(c, p->sums);
	return is_enough(c, p, v);
}

/* ---- sizes ---- */

static int64_t near_equal(int64_t n, int64_t most)
{
	return contract_ceil(n, contract_ceil(n, most));
}

/*
 * The length of pieces of n: a divisor of n of at least half of `most`, if
 * there is one, because each different length needs its own code; else pieces
 * of nearly equal length.
 */
static int64_t equal_or_near(int64_t n, int64_t most)
{
	for (int64_t d = most; d > 0 && d >= most / 2; d--)
		if (n % d == 0)
			return d;
	return near_equal(n, most);
}

/*
 * Can whole vectors of y be read in place? Sets step to the bytes between rows.
 */
static bool is_in_lanes(
	const contract *c, const contract_product *p, int64_t *step)
{
	loop_kernel *k = c->k;
	int64_t s, size = (int64_t)dtype_size(k->eqn[p->eqn].acc[0]);

	*step = 0;
	if (!is_bare(k, p->y, k->eqn[p->eqn].acc[0]) ||
		!adjoins(k, p->y->form, p->j) ||
		k->var[p->j].extent % p->lanes != 0 ||
		contract_extent(c, p->j) % p->lanes != 0 ||
		loop_param(k, p->y->tensor) < 0)
		return false;
	for (int32_t v = 0; v < k->n_vars; v++) {
		if ((p->sums & BIT(v)) == 0)
			continue;
		if (!loop_stride(p->y->form, v, k->var[v].extent, &s))
			return false;
		if (s * size > *step)
			*step = s * size;
	}
	return true;
}

/*
 * Do rows share few sets of the first cache, because their distance is a
 * multiple of a large power of two? Then the rows of a tile would evict each
 * other.
 */
static bool lies_badly(
	const contract *c, const contract_product *p, int64_t size)
{
	int64_t s, sets = c->k->machine->memory[MACHINE_L1].bytes /
			  (c->k->machine->product.line *
				  c->k->machine->product.ways);

	if (!loop_stride(p->x->form, p->i, c->k->var[p->i].extent, &s) ||
		s * size % c->k->machine->product.line != 0 || s == 0)
		return false;
	return p->tile >
	       (c->k->machine->product.ways - 1) * sets /
		       gcd_i64(s * size / c->k->machine->product.line, sets);
}

/* Can all of x be copied before the product? */
static bool may_be_whole(
	const contract *c, const contract_product *p, int64_t size)
{
	loop_kernel *k = c->k;
	loop_set in = loop_expr_vars(k, p->x);
	int64_t n = size;
	int32_t eqn, comp;

	if (!is_bare(k, p->x, k->eqn[p->eqn].acc[0]) || p->n_needs > 0 ||
		loop_maker(k, p->x->tensor, &eqn, &comp))
		return false;
	for (int32_t v = 0; v < k->n_vars; v++)
		if ((in & BIT(v)) != 0 && !mul_ok(n, k->var[v].extent, &n))
			return false;
	return n <= k->machine->product.max_whole;
}

/* Do several chunks need the same part of x? */
static bool is_shared(const contract *c, const contract_product *p)
{
	loop_set others = c->chain & ~loop_expr_vars(c->k, p->x);

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((others & BIT(v)) != 0 &&
			(c->block[v] > 0 ? c->block[v] : 1) <
				c->k->var[v].extent)
			return true;
	return false;
}

/*
 * Sizes for few rows: y is read once, some of its lines side by side along the
 * whole block; partial sums stay in the first cache.
 */
static void size_few(contract *c, contract_product *p)
{
	int64_t fit = (c->k->machine->vector_registers - 4) / p->tile;

	p->vectors = (int32_t)(fit < c->k->machine->product.few_vectors
				       ? fit
				       : c->k->machine->product.few_vectors);
	while (p->vectors > 1 && contract_extent(c, p->j) <=
					 (int64_t)(p->vectors - 1) * p->lanes)
		p->vectors--;
	p->sum_block = near_equal(contract_extent(c, p->s),
		elements(c, p->rows) <= c->k->machine->product.few_rows / 2
			? c->k->machine->product.few_sums
			: c->k->machine->product.long_sums *
				  c->k->machine->product.few_sums);
}

/*
 * Is the factor of rows copied, because it must be, because of its memory
 * order, or by choice?
 */
static bool copies_rows(
	const contract *c, const contract_product *p, int64_t size)
{
	loop_kernel *k = c->k;

	if (!is_bare(k, p->x, k->eqn[p->eqn].acc[0]))
		return true;
	if (loop_param(k, p->x->tensor) < 0 ||
		k->copies == LOOP_COPIES_NO_ROWS)
		return false;
	return k->copies == LOOP_COPIES_ROWS || lies_badly(c, p, size);
}

/*
 * Sizes for a block of warps: both factors are copied into memory that it shares,
 * some terms of the sum at a time.
 */
static void size_shared(contract *c, contract_product *p, int64_t rest)
{
	int64_t terms = c->k->machine->block.sum_terms;

	p->sum_block = near_equal(contract_extent(c, p->s),
		terms > rest ? terms / rest : 1);
	p->pack_x = c->k->copies != LOOP_COPIES_NO_ROWS ||
		    !is_bare(c->k, p->x, c->k->eqn[p->eqn].acc[0]);
	p->pack_y = true;
	p->whole_x = p->few = false;
	contract_choose_matrix(c, p);
}

/* Chooses equal tiles, and panels that fit the first caches. */
void contract_sizes(contract *c, contract_product *p)
{
	const machine *m = c->k->machine;
	int64_t size = (int64_t)dtype_size(c->k->eqn[p->eqn].acc[0]), panel;
	int64_t rest = elements(c, p->sums) / contract_extent(c, p->s), fit;
	int64_t near; /* bytes */
	bool in_lanes;

	p->lanes = (int32_t)lanes_of(c, p);
	p->vectors = contract_extent(c, p->j) > p->lanes ? 2 : 1;
	panel = (int64_t)p->lanes * p->vectors;
	/* registers: accumulators, a row of the panel, an element of the rest */
	fit = (m->vector_registers - 4) / 2;
	p->tile = equal_or_near(contract_extent(c, p->i), fit);
	if (m->block.warps > 1 && !p->turned) {
		size_shared(c, p, rest);
		return;
	}
	fit = 2 * m->memory[MACHINE_L1].bytes / (panel * size) / rest;
	if (fit * rest < m->product.least_fit)
		fit = contract_ceil(m->product.least_fit, rest);
	p->sum_block = near_equal(contract_extent(c, p->s), fit);
	p->pack_x = copies_rows(c, p, size);
	p->whole_x = p->pack_x && c->number < 0 &&
		     c->k->copies != LOOP_COPIES_BLOCKS &&
		     may_be_whole(c, p, size);
	in_lanes = is_in_lanes(c, p, &fit);
	near = m->memory[MACHINE_L1].bytes / m->product.near_part;
	p->few = in_lanes && fit > near &&
		 elements(c, p->rows) <= c->k->machine->product.few_rows &&
		 rest == 1;
	p->pack_y = !in_lanes || (fit > near && !p->few) ||
		    c->k->copies == LOOP_COPIES_COLUMNS;
	p->few = p->few && !p->pack_y;
	if (p->few)
		size_few(c, p);
	if (p->turned) { /* copies are made before all chunks, or not at all */
		p->pack_y = p->few = false;
		p->whole_x = p->pack_x;
	}
}

/* ---- copies of factors ---- */

/*
 * Adds an equation that copies the factor, which is then replaced by a read of
 * the copy.
 */
static int32_t add_pack(contract *c, const expr *from, tn_dtype acc, int32_t n,
	const int32_t *var, const expr **read)
{
	loop_kernel *k = c->k;
	int32_t i;

	if (from->dtype != acc) /* a factor of matrix instructions stays */
		from = dtype_size(acc) < dtype_size(from->dtype)
			       ? from->arg[0]
			       : ex_cast(k->s, acc, from);
	i = loop_add_copy(k, from, n, var);
	*read = ex_read(k->s, k->eqn[i].e->out[0], k->eqn[i].at);
	return i;
}

/* The dtype of a copy: that of the sum, or what matrix instructions take. */
static tn_dtype packed(
	const contract *c, const contract_product *p, const expr *of)
{
	bool as_read = p->matrix && (of != p->x || !p->wide_x);

	return as_read ? of->arg[0]->dtype : c->k->eqn[p->eqn].acc[0];
}

/*
 * Orders the factor's variables inside the blocks: rows, sums, then that of the
 * lanes.
 */
static int32_t order_vars(const contract *c, const contract_product *p,
	loop_set in, int32_t last, int32_t *var)
{
	int32_t n = 0;

	for (int32_t pass = 0; pass < 2; pass++)
		for (int32_t v = 0; v < c->k->n_vars; v++)
			if ((in & BIT(v)) != 0 && v != last &&
				((p->sums & BIT(v)) != 0) == (pass == 1))
				var[n++] = v;
	if (last >= 0 && (in & BIT(last)) != 0)
		var[n++] = last;
	return n;
}

static loop_node *statement(contract *c, loop_kind kind, int32_t eqn)
{
	loop_node *n = loop_node_new(c->k->a, kind);

	n->eqn = eqn;
	return n;
}

/* Transposes squares in registers: reads along v, writes along j. */
static loop_node *turned(
	contract *c, const contract_product *p, int32_t eqn, int32_t v)
{
	loop_node *s = statement(c, LOOP_STAGE, eqn);

	s->var = v;
	s->row_var = p->j;
	s->lanes = p->lanes;
	return s;
}

static bool may_turn(const contract *c, const expr *y, int32_t lanes)
{
	int64_t size = (int64_t)dtype_size(y->dtype);

	return y->kind == EX_READ && loop_param(c->k, y->tensor) >= 0 &&
	       !ix_has_fun(y->form) && (size == 4 || size == 8) &&
	       lanes == machine_lanes(c->k->machine, (int32_t)size);
}

/* Restricts the copy to the elements that are needed. */
static void put_needs(contract *c, const contract_product *p, loop_set in,
	loop_node *copy)
{
	for (int32_t i = 0; i < p->n_needs; i++) {
		loop_set v = loop_form_vars(p->need[i].f) & in;
		loop_node *at = copy, *n;
		ix_fact *list;

		if (v == 0)
			continue;
		for (n = copy; n->n_child == 1; n = n->child[0])
			if (n->kind == LOOP_FOR && (v & p->sums & BIT(n->var)))
				at = n;
		list = arena_array(c->k->a, ix_fact, at->n_needs + 1);
		for (int32_t k = 0; k < at->n_needs; k++)
			list[k] = at->need[k];
		list[at->n_needs++] = p->need[i];
		at->need = list;
	}
}

struct guarded {
	loop_kernel *k;
	loop_set vars;
	int32_t j;
	bool digits; /* a guard uses digits of the variable of the lanes */
};

static void on_form(void *arg, const expr *e)
{
	struct guarded *g = arg;
	int64_t s;

	g->digits |= e->form != NULL &&
		     !loop_stride(e->form, g->j, g->k->var[g->j].extent, &s);
}

static void on_guard(void *arg, const expr *e)
{
	struct guarded *g = arg;

	if (e->kind != EX_SELECT)
		return;
	g->vars |= loop_expr_vars(g->k, e->arg[0]);
	loop_walk(g->k->a, e->arg[0], on_form, g);
}

/*
 * If guards of y use digits of columns, the sums are walked inside the lanes,
 * and those that guards depend on outside of the others: so a mask of a vector
 * of columns is computed once for all iterations for which it holds. Returns
 * the sums inside the lanes; *asked: those of the guards.
 */
static loop_set sums_inside(const contract *c, const contract_product *p,
	const expr *y, int32_t j, loop_set *asked)
{
	struct guarded g = {c->k, 0, j, false};

	loop_walk(c->k->a, y, on_guard, &g);
	*asked = g.vars & p->sums;
	return g.digits ? p->sums : 0;
}

/* Makes the loops of the copy of a factor; the last variable has the lanes. */
static loop_node *in_rows(contract *c, const contract_product *p,
	const expr *of, int32_t eqn, int32_t n, const int32_t *var)
{
	arena *a = c->k->a;
	loop_set asked, inside = sums_inside(c, p, of, var[n - 1], &asked);
	loop_node *copy = statement(c, LOOP_STMT, eqn);

	for (int32_t pass = 0; pass < 2; pass++)
		for (int32_t i = n - 2; i >= 0; i--)
			if ((inside & BIT(var[i])) != 0 &&
				((asked & BIT(var[i])) != 0) == (pass == 1))
				copy = loop_node_for(a, var[i], copy);
	copy = loop_node_for(a, var[n - 1], copy);
	loop_take_lanes(c->k, copy);
	for (int32_t i = n - 2; i >= 0; i--)
		if ((inside & BIT(var[i])) == 0)
			copy = loop_node_for(a, var[i], copy);
	return copy;
}

/* Copies y in the body of a panel; later reads of y use the copy. */
static void pack_y(contract *c, contract_product *p, loop_node *panel)
{
	loop_kernel *k = c->k;
	int32_t *var = arena_array(k->a, int32_t, k->n_vars + 1), n, eqn;
	loop_set in = loop_expr_vars(k, p->y) & (p->columns | p->sums);
	const expr *y = p->y;
	loop_node *copy;
	int64_t s;

	in = (in & p->sums) | BIT(p->j);
	n = order_vars(c, p, in, contract_last_of(c, p, y, p->j, p->s), var);
	eqn = add_pack(c, y, packed(c, p, y), n, var, &p->y);
	if (y->dtype == k->eqn[p->eqn].acc[0] && may_turn(c, y, p->lanes) &&
		 !adjoins(k, y->form, p->j))
		for (int32_t i = n - 2; i >= 0; i--)
			if (adjoins(k, y->form, var[i]) &&
				contract_extent(c, var[i]) >= p->lanes &&
				loop_stride(y->form, p->j,
					k->var[p->j].extent, &s)) {
				int32_t v = var[i];

				copy = turned(c, p, eqn, v);
				for (i = n - 2; i >= 0; i--)
					if (var[i] != v)
						copy = loop_node_for(
							k->a, var[i], copy);
				put_needs(c, p, in, copy);
				loop_node_adopt(k->a, panel, copy);
				return;
			}
	copy = in_rows(c, p, y, eqn, n, var);
	if (!p->matrix) /* instructions take whole pieces */
		put_needs(c, p, in, copy);
	loop_node_adopt(k->a, panel, copy);
}

/* Copies all rows of x in the block. */
static void pack_x(contract *c, contract_product *p, loop_node *body)
{
	loop_kernel *k = c->k;
	int32_t *var = arena_array(k->a, int32_t, k->n_vars + 1), n, eqn;
	loop_set in = loop_expr_vars(k, p->x) & (p->rows | p->sums);
	loop_node *copy;

	n = order_vars(c, p, in, contract_last_of(c, p, p->x, p->s, p->i), var);
	eqn = add_pack(c, p->x, packed(c, p, p->x), n, var, &p->x);
	if (p->matrix) { /* whose rows have lanes */
		loop_node_adopt(k->a, body, in_rows(c, p, p->x, eqn, n, var));
		return;
	}
	copy = statement(c, LOOP_STMT, eqn);
	for (int32_t i = n - 1; i >= 0; i--)
		copy = loop_node_for(k->a, var[i], copy);
	put_needs(c, p, in & p->sums, copy);
	contract_put(c, body, copy);
}

/* The tensor of a factor that is a bare read; else -1. */
static int32_t tensor_of(const expr *f)
{
	return f->kind == EX_READ ? f->tensor : -1;
}

/*
 * Copies a whole factor, in a separate phase; `last` is the variable that is
 * contiguous in the copy.
 */
static void pack_whole(contract *c, const contract_product *p, const expr **f,
	int32_t last)
{
	loop_kernel *k = c->k;
	int32_t *var = arena_array(k->a, int32_t, k->n_vars + 1), n, eqn;
	const expr *of = *f;
	bool is_read = of->kind == EX_READ;
	loop_node *copy, *top;
	int64_t ext;

	n = order_vars(c, p, loop_expr_vars(k, of), last, var);
	eqn = add_pack(c, of, k->eqn[p->eqn].acc[0], n, var, f);
	ext = k->var[var[0]].extent;
	top = contract_block(c, var[0],
		contract_ceil(ext, c->k->machine->product.copy_chunks), NULL);
	top->parallel = true;
	if (is_read) {
		copy = statement(c, LOOP_STMT, eqn);
		for (int32_t i = n - 1; i >= 0; i--)
			copy = loop_node_for(k->a, var[i], copy);
		contract_put(c, top, copy);
	} else {
		loop_node_adopt(k->a, top, in_rows(c, p, of, eqn, n, var));
	}
	loop_decide(k, DECIDE_COPY_WHOLE, p->eqn, tensor_of(of), 0, 0);
	*vec_push(k->a, &c->before) = top;
	*vec_push(k->a, &c->before_of) = is_read ? of->tensor : -1;
}

/* ---- the nest ---- */

static loop_node *tile(contract *c, const contract_product *p)
{
	loop_node *t = statement(c, LOOP_TILE, p->eqn);
	int32_t *sum = arena_array(c->k->a, int32_t, c->k->n_vars + 1);

	t->row_var = p->i;
	t->var = p->j;
	sum[t->n_sums++] = p->s;
	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((p->sums & BIT(v)) != 0 && v != p->s)
			sum[t->n_sums++] = v;
	t->sum = sum;
	t->factor[0] = p->x;
	t->factor[1] = p->y;
	t->start = !p->begun;
	t->finish = p->finish;
	t->matrix = p->matrix;
	t->checked = (p->inexact || p->wide_x) && dtype_is_float(c->k->eqn[p->eqn].acc[0]);
	t->size = p->tile;
	t->lanes = p->lanes;
	t->unroll = p->vectors;
	t->n_needs = p->n_needs;
	t->need = arena_copy(c->k->a, p->need, sizeof p->need);
	t->n_ahead = p->few || p->turned ? (int32_t)p->sum_block : 0;
	return t;
}

/* Puts n into a loop over each variable of s. */
static loop_node *around(contract *c, loop_set s, loop_node *n)
{
	for (int32_t v = c->k->n_vars - 1; v >= 0; v--)
		if ((s & BIT(v)) != 0)
			n = loop_node_for(c->k->a, v, n);
	return n;
}

void contract_done(contract *c, const contract_product *p, loop_node *body)
{
	loop_set v = c->k->eqn[p->eqn].left;

	for (int32_t i = 0; i < c->k->n_vars; i++)
		if ((c->chain & BIT(i)) != 0 && c->block[i] == 0)
			v &= ~BIT(i);
	if (is_mixed(c, p) && lies_apart(c, p))
		contract_put(c, body,
			around(c, v & ~BIT(p->j),
				loop_node_for(c->k->a, p->j,
					statement(c, LOOP_DONE, p->eqn))));
}

/* Adds the statements that store the finished elements, and the epilogue. */
static void put_behind(contract *c, const contract_product *p, loop_node *body)
{
	int32_t last = p->turned ? p->i : p->j;
	loop_node *j = loop_node_for(c->k->a, last, NULL);

	if (lies_apart(c, p) && !is_mixed(c, p))
		loop_node_adopt(
			c->k->a, j, statement(c, LOOP_DONE, p->eqn));
	for (int32_t i = 0; i < p->behind.n; i++)
		loop_node_adopt(c->k->a, j, p->behind.at[i]);
	if (j->n_child > 0)
		contract_put(c, body,
			around(c, (p->rows | p->columns | p->others) &
					  ~BIT(last), j));
}

static void say_copy(
	const contract *c, const contract_product *p, const expr *f, bool copied)
{
	loop_decide(c->k, copied ? DECIDE_COPY_TAKEN : DECIDE_COPY_IN_PLACE,
		p->eqn, tensor_of(f), 0, 0);
}

void contract_nest(contract *c, contract_product *p, loop_node *body)
{
	loop_kernel *k = c->k;
	loop_node *panel = contract_block(
		c, p->j, (int64_t)p->lanes * p->vectors, NULL);
	loop_node *sums = body, *inner, *outer;

	outer = around(c, p->others, panel);
	if (p->others != 0) { /* for each batch */
		for (sums = outer; sums->child[0] != panel;)
			sums = sums->child[0];
		sums->n_child = 0;
		loop_node_adopt(k->a, body, outer);
	}
	if (p->sum_block < contract_extent(c, p->s)) {
		inner = contract_block(c, p->s, p->sum_block, NULL);
		loop_node_adopt(k->a, sums, inner);
		sums = inner;
	}
	if (p->turned) {
		k->eqn[p->eqn].apart = true;
		pack_whole(c, p, &p->y, p->j);
		k->eqn[k->n_eqns - 1].panel = (int64_t)p->lanes * p->vectors;
	}
	if (p->whole_x && (p->turned || is_shared(c, p)) &&
		c->k->n_phases + c->before.n + 1 <= LOOP_MAX_PHASES)
		pack_whole(c, p, &p->x, p->turned ? p->i : p->s);
	else {
		say_copy(c, p, p->x, p->pack_x);
		if (p->pack_x)
			pack_x(c, p, sums);
	}
	if (!p->turned)
		say_copy(c, p, p->y, p->pack_y);
	if (p->pack_y)
		pack_y(c, p, panel);
	inner = contract_block(c, p->i, p->tile, tile(c, p));
	loop_node_adopt(
		k->a, panel, around(c, p->rows & ~BIT(p->i), inner));
	loop_node_adopt(
		k->a, sums, around(c, p->columns & ~BIT(p->j), panel));
	put_behind(c, p, body);
}
