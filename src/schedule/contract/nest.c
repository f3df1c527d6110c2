/*
 * nest.c: one product as tiles of registers.
 *
 * Consumes a product with the variables that no loop around it walks; the
 * index forms alone say what they do: columns adjoin in the result and walk
 * one factor (y), rows walk the other one, sums are reduced, what is left are
 * batches. Factors that are no bare reads, or lie badly, are made into copies
 * of a block: any expression, any strides, windows, guards.
 *
 *   t[i, j] += x[i, k] * y[k, j]   ->
 *   block k {                            as much of a sum as a panel holds
 *     X = x                              rows of the block, if need be
 *     block j {                          a panel: some vectors wide
 *       Y = y                            turned where y adjoins along k
 *       block i { TILE i x j, sum over k } } }
 */
#include "schedule/contract/contract.h"

/* ---- classes ---- */

struct forms {
	bool data; /* an index is read from memory */
};

static void on_expr(void *arg, const expr *e)
{
	struct forms *f = arg;

	f->data |= e->form != NULL && ix_has_fun(e->form);
}

/* A read of an element of the dtype of the sum, at a place that is known. */
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
	return c->k->machine->vector_bytes /
	       (int64_t)dtype_size(c->k->eqn[p->eqn].acc[0]);
}

/* How well the lanes walk v, which lies in factor f only. */
static int32_t rank_of(
	const contract *c, const contract_product *p, const expr *f, int32_t v)
{
	const loop_eqn *e = &c->k->eqn[p->eqn];
	int32_t r = 1;

	if (adjoins(c->k, e->at, v))
		r += 4;
	if (f->kind == EX_READ && adjoins(c->k, f->form, v))
		r += 2;
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

/* Of chain loops only those that are cut are inside the blocks. */
static loop_set walked_around(const contract *c)
{
	loop_set s = 0;

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((c->chain & BIT(v)) != 0 && c->block[v] == 0)
			s |= BIT(v);
	return s;
}

/* Sums in another dtype than the memory that they end in. */
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

/* A product that tiles cannot do, and why; false. */
static bool decline(const contract *c, const contract_product *p,
	decide_kind why, int64_t a, int64_t b)
{
	loop_decide(c->k, why, p->eqn, -1, a, b);
	return false;
}

/* Rows and sums that tiles are worth for? */
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
	int64_t widest = 0; /* of the columns that do not fill the lanes */

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
 * Pieces of one size, of half the most at least, if n has such a divisor: for
 * each other one the kernel has a text of its own. Else near-equal ones.
 */
static int64_t equal_or_near(int64_t n, int64_t most)
{
	for (int64_t d = most; d > 0 && d >= most / 2; d--)
		if (n % d == 0)
			return d;
	return near_equal(n, most);
}

/* May whole vectors of y be read where they are? step: bytes between rows. */
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
 * Rows a power of two apart share few sets of the first cache: those of a tile
 * would drive each other out.
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

/* May x, in memory, be copied as a whole, before all? */
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

/* Chunks that need the same of x: of what it does not walk. */
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
 * Few rows: y passes by once, some of its lines side by side, each as far as
 * the block goes; partial sums wait in the first cache.
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
			: 4 * c->k->machine->product.few_sums);
}

/* Is the factor of rows copied: it must be, or lies badly, or is to be? */
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

/* Equal tiles; a panel in the first caches. */
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
	/* accumulators, a row of the panel, one element of the other factor */
	fit = (m->vector_registers - 4) / 2;
	p->tile = equal_or_near(contract_extent(c, p->i), fit);
	fit = 2 * m->memory[MACHINE_L1].bytes / (panel * size) / rest;
	if (fit * rest < 64)
		fit = contract_ceil(64, rest);
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
	if (p->turned) { /* copies are made in front of all, or none */
		p->pack_y = p->few = false;
		p->whole_x = p->pack_x;
	}
}

/* ---- copies of factors ---- */

/* An equation that makes the copy; what reads it instead of the factor. */
static int32_t add_pack(contract *c, const expr *from, tn_dtype acc, int32_t n,
	const int32_t *var, const expr **read)
{
	loop_kernel *k = c->k;
	int32_t i;

	if (from->dtype != acc)
		from = ex_cast(k->s, acc, from);
	i = loop_add_copy(k, from, n, var);
	*read = ex_read(k->s, k->eqn[i].e->out[0], k->eqn[i].at);
	return i;
}

/* Variables of the factor inside the blocks: rows, sums, then the lanes'. */
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

/* Squares turned in registers: read along v, written along j. */
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
	       lanes * size == c->k->machine->vector_bytes;
}

/* The copy is asked for where something is needed of it. */
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
	bool digits; /* lanes are taken apart for a guard */
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
 * Where guards of y take columns apart, sums are walked inside the lanes, those
 * that guards ask about around the others: so what guards find out of a vector
 * of columns is found out once for all that it holds for.
 */
static loop_set sums_inside(const contract *c, const contract_product *p,
	const expr *y, int32_t j, loop_set *asked)
{
	struct guarded g = {c->k, 0, j, false};

	loop_walk(c->k->a, y, on_guard, &g);
	*asked = g.vars & p->sums;
	return g.digits ? p->sums : 0;
}

/* Loops around the copy of a factor: the last of the variables has the lanes. */
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

/* Y = y, in the body of a panel; y is read from it from now on. */
static void pack_y(contract *c, contract_product *p, loop_node *panel)
{
	loop_kernel *k = c->k;
	int32_t *var = arena_array(k->a, int32_t, k->n_vars + 1), n, eqn;
	loop_set in = loop_expr_vars(k, p->y) & (p->columns | p->sums);
	const expr *y = p->y;
	loop_node *copy;
	int64_t s;

	in = (in & p->sums) | BIT(p->j);
	n = order_vars(c, p, in, p->j, var);
	eqn = add_pack(c, y, k->eqn[p->eqn].acc[0], n, var, &p->y);
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
	put_needs(c, p, in, copy);
	loop_node_adopt(k->a, panel, copy);
}

/* X = x: all rows of the block. */
static void pack_x(contract *c, contract_product *p, loop_node *body)
{
	loop_kernel *k = c->k;
	int32_t *var = arena_array(k->a, int32_t, k->n_vars + 1), n, eqn;
	loop_set in = loop_expr_vars(k, p->x) & (p->rows | p->sums);
	loop_node *copy;

	n = order_vars(c, p, in, p->s, var);
	eqn = add_pack(c, p->x, k->eqn[p->eqn].acc[0], n, var, &p->x);
	copy = statement(c, LOOP_STMT, eqn);
	for (int32_t i = n - 1; i >= 0; i--)
		copy = loop_node_for(k->a, var[i], copy);
	put_needs(c, p, in & p->sums, copy);
	contract_put(c, body, copy);
}

/* What a factor reads, if it does nothing else; -1 */
static int32_t tensor_of(const expr *f)
{
	return f->kind == EX_READ ? f->tensor : -1;
}

/* All of a factor, in a phase of its own: `last` is what adjoins in the copy. */
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
	t->checked = p->inexact && dtype_is_float(c->k->eqn[p->eqn].acc[0]);
	t->size = p->tile;
	t->lanes = p->lanes;
	t->unroll = p->vectors;
	t->n_needs = p->n_needs;
	t->need = arena_copy(c->k->a, p->need, sizeof p->need);
	t->n_ahead = p->few || p->turned ? (int32_t)p->sum_block : 0;
	return t;
}

/* Around n, a loop over each of s. */
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

/* The finished elements, and what follows on each of them. */
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
	if (p->others != 0) { /* everything, for each batch */
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
