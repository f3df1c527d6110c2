/*
 * contract.c: sums of products as tiles of registers; docs/contractions.md.
 *
 * Consumes the tree of a kernel in which some statements are sums of a
 * product, each with loops of its own inside the loops around everything.
 * Those are cut into blocks, and the body of a block becomes a row of nests:
 * each product by itself, what is made before it and after it as plain loops.
 *
 *   for i { init m; for j { init; for k { acc } scale; max m } for j { .. } }
 *     ->
 *   block i {
 *     panels and tiles i x j, sum over k;  for i { for j { scale } }
 *     for i { init m; for j { max m } for j { .. } } }
 *
 * The loops around everything are parallel in each statement below them, so
 * statements may run block by block, in their order; values between them are
 * in buffers, which follow from the tree. Sums run from the first to the last
 * whatever the tiles are, and tiles follow from sizes and the target: the bits
 * of a result depend on neither threads nor blocks.
 */
#include "schedule/contract/contract.h"

int64_t contract_ceil(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

int64_t contract_extent(const contract *c, int32_t var)
{
	int64_t n = c->k->var[var].extent, b = c->block[var];

	if (var == c->cut_sum)
		n = c->cut_size;
	return b > 0 && b < n ? b : n;
}

loop_node *contract_block(
	contract *c, int32_t var, int64_t size, loop_node *child)
{
	loop_node *b = loop_node_new(c->k->a, LOOP_BLOCK);

	b->var = var;
	b->size = size;
	if (child != NULL)
		loop_node_adopt(c->k->a, b, child);
	return b;
}

/* ---- products ---- */

struct storage {
	const loop_kernel *k;
	int32_t of;
	bool read;
};

static void on_storage(void *arg, const expr *e)
{
	struct storage *s = arg;

	s->read |= e->kind == EX_READ &&
		   s->k->s->tensor.at[e->tensor].storage == s->of;
}

/* Partial sums would destroy what the terms read. */
static bool reads_itself(const loop_kernel *k, const loop_eqn *e)
{
	struct storage s = {k, k->s->tensor.at[e->e->out[0]].storage, false};

	if (s.of >= 0)
		loop_walk(k->a, e->body[0], on_storage, &s);
	return s.read;
}

/* Leaves below n whose loops may be taken apart. */
static void find_products(contract *c, const loop_node *n)
{
	loop_eqn *e;

	if (loop_is_loop(n)) {
		if (n->kind != LOOP_FOR || n->backward ||
			c->k->var[n->var].kind == AXIS_S)
			return;
		for (int32_t i = 0; i < n->n_child; i++)
			find_products(c, n->child[i]);
		return;
	}
	e = &c->k->eqn[n->eqn];
	if (n->kind != LOOP_STMT || !contract_is_product(c->k, e) ||
		reads_itself(c->k, e) ||
		(e->reduced & c->chain & ~c->mixed) != 0)
		return;
	if (dtype_is_int(e->acc[0]))
		e->acc[0] = TN_I32;
	*vec_push(c->k->a, &c->product) = (contract_product){
		.eqn = n->eqn, .begun = e->init[0] != NULL};
}

static bool has_product(const contract *c, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (has_product(c, n->child[i]))
			return true;
	return n->kind == LOOP_STMT &&
	       contract_is_product(c->k, &c->k->eqn[n->eqn]);
}

static bool only_starts(const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (!only_starts(n->child[i]))
			return false;
	return loop_is_loop(n) || n->kind == LOOP_INIT;
}

/*
 * Below n, behind starts of what it adds up and before plain nests, the loop
 * that makes what some sums walk; NULL: there is none.
 */
static loop_node *mixed_loop(const contract *c, const loop_node *n)
{
	loop_node *m = NULL;

	for (int32_t i = 0; i < n->n_child; i++) {
		loop_node *o = n->child[i];

		if (m == NULL && only_starts(o))
			continue;
		if (m == NULL && o->kind == LOOP_FOR && !o->backward &&
			c->k->var[o->var].kind == AXIS_R)
			m = o;
		else if (m == NULL || has_product(c, o))
			return NULL;
	}
	return m;
}

/* Sums of products below n that walk var; what is made for each var. */
static void sides_of(
	const contract *c, const loop_node *n, int32_t var, bool *sums, bool *made)
{
	const loop_eqn *e = &c->k->eqn[n->eqn < 0 ? 0 : n->eqn];

	for (int32_t i = 0; i < n->n_child; i++)
		sides_of(c, n->child[i], var, sums, made);
	if (n->kind != LOOP_STMT)
		return;
	*made |= (e->left & BIT(var)) != 0;
	*sums |= (e->reduced & BIT(var)) != 0 && contract_is_product(c->k, e);
}

static void find_mixed(contract *c)
{
	loop_node *m = mixed_loop(c, c->last);
	bool sums = false, made = false;

	if (m != NULL)
		sides_of(c, m, m->var, &sums, &made);
	if (!sums || !made)
		return;
	c->last = m;
	c->chain |= BIT(m->var);
	c->mixed = BIT(m->var);
}

/* The loops around everything: down to the first that holds several nodes. */
static bool find_chain(contract *c)
{
	loop_kernel *k = c->k;
	const loop_phase *ph = &k->phase[c->phase];
	loop_node *n = ph->root[0];

	if (ph->n_roots != 1)
		return false;
	c->top = n;
	for (;; n = n->child[0]) {
		if (n->kind != LOOP_FOR || n->backward ||
			(k->var[n->var].kind != AXIS_P &&
				n->var != c->number))
			return c->last != NULL;
		c->chain |= BIT(n->var);
		c->outer = c->last = n;
		if (n->n_child != 1) {
			find_mixed(c);
			return true;
		}
	}
}

static int32_t product_of(const contract *c, int32_t eqn)
{
	for (int32_t i = 0; i < c->product.n; i++)
		if (c->product.at[i].eqn == eqn)
			return i;
	return -1;
}

/* ---- blocks ---- */

/* Bytes that the values of one element of the blocked loops take. */
static int64_t bytes_of_each(const contract *c, loop_set blocked)
{
	const loop_kernel *k = c->k;
	int64_t sum = 1;

	for (int32_t i = 0; i < k->n_eqns; i++) {
		const loop_eqn *e = &k->eqn[i];
		int64_t bytes = (int64_t)dtype_size(e->acc[0]);

		if ((loop_param(k, e->e->out[0]) >= 0 &&
			    product_of(c, i) < 0) ||
			(c->mixed != 0 && (e->left & blocked) == 0))
			continue;
		for (int32_t v = 0; v < k->n_vars; v++)
			if ((e->left & ~c->chain & BIT(v)) != 0 &&
				!mul_ok(bytes, k->var[v].extent, &bytes))
				bytes = INT32_MAX;
		sum += bytes < INT32_MAX ? bytes : INT32_MAX;
	}
	return sum;
}

/* Is it walked by the tiles of a product? */
static bool in_tiles(const contract *c, int32_t v)
{
	for (int32_t i = 0; i < c->product.n; i++)
		if (v == c->product.at[i].i || v == c->product.at[i].j)
			return true;
	return false;
}

/* Iterations of these loops, as far as it matters. */
static int64_t chunks_of(const contract *c, loop_set these)
{
	int64_t n = 1;

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((these & BIT(v)) != 0 &&
			!mul_ok(n, c->k->var[v].extent, &n))
			return INT32_MAX;
	return n < INT32_MAX ? n : INT32_MAX;
}

/*
 * Of several nests: as many rows as leave their values in the second cache.
 * The last variable, which takes the lanes, is the longer piece, and is cut
 * for the sake of chunks only where those before it make too few.
 */
static void block_several(contract *c, loop_set blocked)
{
	const loop_kernel *k = c->k;
	int64_t fit = k->machine->memory[MACHINE_L2].bytes / 4 *
		      (c->mixed != 0 ? 3 : 2) / bytes_of_each(c, blocked);
	int64_t lanes = k->machine->vector_bytes / 4,
		most = k->machine->product.block_most;
	int64_t pieces = 1;
	loop_set free = c->chain & ~c->mixed; /* their iterations are chunks */

	for (int32_t v = k->n_vars - 1; v >= 0; v--) {
		int64_t n = k->var[v].extent, chunks, size;
		int64_t least = in_tiles(c, v) ? lanes : 1;

		if ((blocked & BIT(v)) == 0)
			continue;
		free &= ~BIT(v);
		/* what no tile runs along gains little from long blocks */
		chunks = least > 1 ? pieces * chunks_of(c, free)
				   : chunks_of(c, free & ~blocked);
		size = fit < most ? fit : most;
		if (chunks < k->machine->product.block_chunks &&
			(c->mixed & BIT(v)) == 0 &&
			size > n * chunks / k->machine->product.block_chunks)
			size = contract_ceil(
				n * chunks, k->machine->product.block_chunks);
		if (size > 2 * lanes && least > 1)
			size -= size % (2 * lanes);
		else if (size > lanes && least > 1) /* whole vectors */
			size = fit < 2 * lanes ? lanes : 2 * lanes;
		else if (size < least)
			size = least;
		c->block[v] = size < n ? size : n;
		if ((c->mixed & BIT(v)) == 0)
			pieces *= contract_ceil(n, c->block[v]);
		fit /= c->block[v];
		most = k->machine->product.block_most / 4;
	}
}

/* What no block walks. */
static loop_set loops_around(const contract *c)
{
	loop_set s = c->chain;

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if (c->block[v] > 0)
			s &= ~BIT(v);
	return s;
}

/*
 * Of one product alone: rows in the second cache, some panels of columns; where
 * rows are copied, as many as leave some chunks, for each copies them again.
 */
static void block_one(contract *c, const contract_product *p)
{
	const loop_kernel *k = c->k;
	int64_t panel = (int64_t)p->lanes * p->vectors, tiles, fit, pieces;
	int64_t size = (int64_t)dtype_size(k->eqn[p->eqn].acc[0]);
	int64_t m = k->var[p->i].extent, n = k->var[p->j].extent;

	fit = k->machine->memory[MACHINE_L2].bytes * 3 / 4 /
	      (p->sum_block * size);
	if (fit < p->tile)
		fit = p->tile;
	tiles = contract_ceil(m, p->tile);
	pieces = contract_ceil(m, fit);
	c->block[p->i] = p->tile * contract_ceil(tiles, pieces);
	tiles = contract_ceil(
		n, panel * contract_ceil(k->machine->product.column_chunks,
				   chunks_of(c, loops_around(c))));
	if (tiles > k->machine->product.chunk_panels)
		tiles = k->machine->product.chunk_panels;
	pieces = contract_ceil(k->machine->product.copied_chunks, pieces);
	if (c->number >= 0) /* pieces of the sum are chunks, too */
		tiles = k->machine->product.chunk_panels;
	else if (p->pack_x && !p->whole_x &&
		 tiles < contract_ceil(n, panel * pieces))
		tiles = contract_ceil(n, panel * pieces);
	c->block[p->j] = panel * tiles;
	if (p->turned) { /* some chunks, if not of columns, of rows */
		pieces = contract_ceil(k->machine->product.copied_chunks,
			contract_ceil(n, c->block[p->j]));
		c->block[p->i] = p->tile * contract_ceil(
			contract_ceil(m, p->tile), pieces);
	}
	if (p->few) { /* long lines of y, and sums that fit the first cache */
		fit = k->machine->memory[MACHINE_L1].bytes / (m * size);
		if (fit > n / k->machine->product.few_chunks)
			fit = n / k->machine->product.few_chunks;
		c->block[p->j] = panel * (fit > panel ? fit / panel : 1);
	}
}

/* Variables of the chain that lie in one factor of a product only. */
static loop_set to_block(const contract *c)
{
	loop_set s = c->mixed;

	for (int32_t i = 0; i < c->product.n; i++)
		s |= c->product.at[i].rows | c->product.at[i].columns;
	return s & c->chain;
}

static bool choose_products(contract *c)
{
	int32_t n;
	loop_set blocked = c->chain, old;

	do { /* a product that goes may take a block with it */
		n = c->product.n;
		old = blocked;
		for (int32_t v = 0; v < c->k->n_vars; v++)
			c->block[v] = (blocked & BIT(v)) != 0
					      ? c->k->var[v].extent
					      : 0;
		c->product.n = 0;
		for (int32_t i = 0; i < n; i++) {
			contract_product p = c->product.at[i];

			if (contract_classify(c, &p))
				c->product.at[c->product.n++] = p;
		}
		blocked = to_block(c);
	} while (c->product.n != n || blocked != old);
	return n > 0;
}

/* Is it one of the factor of rows alone? */
static bool walks_rows(loop_kernel *k, const contract_product *p, int32_t v)
{
	return (loop_expr_vars(k, p->x) & BIT(v)) != 0 &&
	       (loop_expr_vars(k, p->y) & BIT(v)) == 0 &&
	       (k->eqn[p->eqn].left & BIT(v)) != 0;
}

/*
 * Few rows in the longest loop of them would copy the columns for each iteration
 * of the others: these go inside, as many as leave the rows in the second cache.
 */
static bool take_rows_in(contract *c, const contract_product *p)
{
	loop_kernel *k = c->k;
	int64_t rows = k->var[p->i].extent;
	int64_t size = (int64_t)dtype_size(k->eqn[p->eqn].acc[0]);
	int64_t most = k->machine->memory[MACHINE_L2].bytes / 2 /
		       (p->sum_block * size);
	int64_t panels = contract_ceil(k->var[p->j].extent,
		(int64_t)p->lanes * p->vectors);
	bool any = false;

	if (!p->pack_y || p->turned ||
		rows > k->machine->product.few_rows_longest)
		return false;
	for (int32_t v = k->n_vars - 1; v >= 0; v--) {
		if (v == p->i || (c->chain & BIT(v)) == 0 ||
			c->block[v] != 0 || !walks_rows(k, p, v) ||
			!mul_ok(rows, k->var[v].extent, &rows))
			continue;
		if (rows > most ||
			panels * chunks_of(c, loops_around(c) & ~BIT(v)) <
				k->machine->product.copied_chunks)
			break;
		c->block[v] = k->var[v].extent;
		any = true;
	}
	return any;
}

static bool choose_blocks(contract *c)
{
	contract_product *p = c->product.at;
	loop_set left;

	if (!choose_products(c))
		return false;
	left = c->k->eqn[p->eqn].left;
	if (c->product.n > 1 || c->mixed != 0 || (left & ~c->chain) != 0) {
		block_several(c, to_block(c) & ~(c->online ? c->mixed : 0));
		if (c->online)
			contract_online_block(c);
	} else { /* rows and columns beyond the longest are loops around */
		for (int32_t v = 0; v < c->k->n_vars; v++)
			if (v != p->i && v != p->j)
				c->block[v] = 0;
		if (!contract_classify(c, p))
			return false;
		contract_turn(c, p);
		contract_sizes(c, p);
		if (take_rows_in(c, p)) {
			contract_classify(c, p);
			contract_sizes(c, p);
		}
		block_one(c, p);
	}
	for (int32_t i = 0; i < c->product.n; i++)
		contract_sizes(c, &c->product.at[i]);
	return true;
}

/* ---- stages ---- */

/* Is there one leaf below, the statement of a product, under its own sums? */
static int32_t only_product(const contract *c, const loop_node *n)
{
	loop_set walked = 0;
	int32_t p;

	for (; loop_is_loop(n); n = n->child[0]) {
		if (n->n_child != 1)
			return -1;
		walked |= BIT(n->var);
	}
	p = n->kind == LOOP_STMT ? product_of(c, n->eqn) : -1;
	return p >= 0 && c->k->eqn[n->eqn].reduced == walked ? p : -1;
}

static bool has_value(const loop_eqn *e)
{
	for (int32_t i = 0; i < e->e->n_out; i++)
		if (e->init[i] != NULL)
			return true;
	return false;
}

struct numbering {
	contract *c;
	int32_t now;	/* number of the stage of plain statements */
	int32_t *first; /* by equation: stage of its first statement; -1 */
};

enum { DROPPED = -1, WITH_ITS_STATEMENT = -2 };

/* on: a product whose elements are complete here, one by one; -1 none */
static int32_t leaf_stage(
	struct numbering *w, const loop_node *n, int32_t *on)
{
	const loop_eqn *e = &w->c->k->eqn[n->eqn];
	int32_t p = product_of(w->c, n->eqn);

	if (n->kind == LOOP_INIT && !has_value(e))
		return p >= 0 ? DROPPED : WITH_ITS_STATEMENT;
	if (n->kind == LOOP_STMT && p >= 0) {
		w->c->product.at[p].stage = w->now + 1;
		w->now += 3;
		return w->now - 2;
	}
	if (n->kind == LOOP_STMT && w->c->online &&
		n->eqn == w->c->rows.max) { /* then sums are scaled */
		w->c->scale_stage = w->now + 1;
		w->now += 2;
		*on = -1;
		return w->now - 2;
	}
	if (*on >= 0 && e->reduced == 0 && e->scan_var < 0 && !e->push)
		return w->now - 1;
	*on = -1;
	return w->now;
}

static void number_stages(struct numbering *w, const loop_node *list)
{
	int32_t on = -1;

	for (int32_t i = 0; i < list->n_child; i++) {
		const loop_node *n = list->child[i];
		int32_t s;

		if (loop_is_loop(n)) {
			number_stages(w, n);
			on = only_product(w->c, n);
			continue;
		}
		w->c->stage[n->order] = s = leaf_stage(w, n, &on);
		if (n->kind == LOOP_STMT && w->first[n->eqn] < 0)
			w->first[n->eqn] = s;
	}
}

static void settle_inits(struct numbering *w, const loop_node *n)
{
	int32_t *s = &w->c->stage[n->order];

	if (!loop_is_loop(n) && *s == WITH_ITS_STATEMENT)
		*s = w->first[n->eqn];
	for (int32_t i = 0; i < n->n_child; i++)
		settle_inits(w, n->child[i]);
}

static int32_t count_nodes(const loop_node *n)
{
	int32_t m = 1;

	for (int32_t i = 0; i < n->n_child; i++)
		m += count_nodes(n->child[i]);
	return m;
}

static void find_stages(contract *c)
{
	struct numbering w = {.c = c};
	arena *a = c->k->a;

	loop_link(c->k);
	c->stage = arena_array(a, int32_t, c->top->order + count_nodes(c->top));
	w.first = arena_array(a, int32_t, c->k->n_eqns + 1);
	for (int32_t i = 0; i < c->k->n_eqns; i++)
		w.first[i] = -1;
	number_stages(&w, c->last);
	settle_inits(&w, c->last);
	c->n_stages = w.now + 1;
}

/* ---- the tree ---- */

/* The statements of a stage with the loops around them; NULL: none. */
static loop_node *copy_stage(contract *c, const loop_node *n, int32_t stage)
{
	loop_node *out;

	if (!loop_is_loop(n))
		return c->stage[n->order] == stage ? loop_node_copy(c->k->a, n)
						   : NULL;
	out = arena_copy(c->k->a, n, sizeof *n);
	out->n_child = 0;
	for (int32_t i = 0; i < n->n_child; i++) {
		loop_node *m = copy_stage(c, n->child[i], stage);

		if (m != NULL)
			loop_node_adopt(c->k->a, out, m);
	}
	return out->n_child > 0 ? out : NULL;
}

static void gather_leaves(
	contract *c, loop_node *n, int32_t stage, contract_product *p)
{
	if (!loop_is_loop(n) && c->stage[n->order] == stage)
		*vec_push(c->k->a, &p->behind) = loop_node_copy(c->k->a, n);
	for (int32_t i = 0; i < n->n_child; i++)
		gather_leaves(c, n->child[i], stage, p);
}

void contract_put(contract *c, loop_node *body, loop_node *nest)
{
	loop_node_adopt(c->k->a, body, nest);
	*vec_push(c->k->a, &c->plain) = nest;
}

/* What all holds, for each blocked variable of the loops from `from` up. */
static void put_around(contract *c, const loop_node *from, loop_node *all,
	loop_node *body)
{
	for (const loop_node *u = from;; u = u->up) {
		if (c->block[u->var] > 0) {
			if (all->var >= 0)
				all = loop_node_for(c->k->a, u->var, all);
			all->var = u->var;
		}
		if (u == c->top)
			break;
	}
	if (all->var >= 0)
		contract_put(c, body, all);
	for (int32_t i = 0; all->var < 0 && i < all->n_child; i++)
		contract_put(c, body, all->child[i]);
}

/* for each blocked variable of the chain { statements } */
static void put_plain(contract *c, int32_t stage, loop_node *body)
{
	loop_node *n = copy_stage(c, c->last, stage), *all;

	if (n == NULL)
		return;
	all = loop_node_new(c->k->a, LOOP_FOR);
	all->child = n->child;
	all->n_child = n->n_child;
	put_around(c, c->last, all, body);
}

/* Does the product begin with nothing, and end as it is? See contract_nest. */
static bool starts_itself(const contract *c, const loop_node *n)
{
	int32_t p;

	while (loop_is_loop(n))
		n = n->child[0];
	p = product_of(c, n->eqn);
	return p >= 0 && !c->product.at[p].begun;
}

/* Around the mixed loop, its blocks in `body`: what starts, what follows. */
static void put_outside(contract *c, loop_node *outer, loop_node *body)
{
	bool before = true;

	for (int32_t i = 0; i < c->outer->n_child; i++) {
		const loop_node *n = c->outer->child[i];
		loop_node *all;

		if (n == c->last) {
			loop_node_adopt(c->k->a, outer, body);
			for (int32_t j = 0; j < c->product.n; j++)
				contract_done(c, &c->product.at[j], outer);
			before = false;
			continue;
		}
		if (before && starts_itself(c, n))
			continue;
		all = loop_node_new(c->k->a, LOOP_FOR);
		loop_node_adopt(c->k->a, all, loop_node_copy(c->k->a, n));
		put_around(c, c->outer, all, outer);
	}
}

static void fill(contract *c, loop_node *body)
{
	if (c->online)
		contract_online_open(c, body);
	for (int32_t s = 0; s < c->n_stages; s++) {
		contract_product *p = NULL;

		for (int32_t i = 0; i < c->product.n; i++)
			if (c->product.at[i].stage == s)
				p = &c->product.at[i];
		if (c->online && s == c->scale_stage)
			contract_online_scale(c, body);
		if (p == NULL) {
			put_plain(c, s, body);
			continue;
		}
		gather_leaves(c, c->last, s + 1, p);
		contract_nest(c, p, body);
		s++;
	}
}

/* Loops over batches around the blocks. */
static loop_node *frame(contract *c, loop_node **body)
{
	loop_node *top = NULL;

	for (int32_t pass = 0; pass < 2; pass++)
		for (loop_node *u = c->last;; u = u->up) {
			bool cut = c->block[u->var] > 0;

			if ((c->mixed & BIT(u->var)) != 0)
				continue;
			if (cut && pass == 0) {
				top = contract_block(c, u->var,
					c->block[u->var], top);
			} else if (u->var == c->number && pass == 1) {
				top = contract_block(c, c->cut_sum,
					c->cut_size, top);
				top->number = c->number;
			} else if (!cut && pass == 1)
				top = loop_node_for(c->k->a, u->var, top);
			if (*body == NULL)
				*body = top;
			if (u == c->top)
				break;
		}
	return top;
}

/* Chunks, as far as there may be. */
static int64_t make_chunks(const contract *c, loop_node *n, const loop_node *in)
{
	int64_t chunks = 1;

	for (;; n = n->child[0]) {
		int64_t ext = c->k->var[n->var].extent;
		int64_t size = n->kind == LOOP_FOR
				       ? ext
				       : contract_ceil(ext, n->size);

		if (chunks > c->k->machine->schedule.max_chunks / size)
			break;
		chunks *= size;
		n->parallel = true;
		if (n == in)
			break;
	}
	return chunks;
}

/* Copies of whole factors, each a phase, then the nest. */
static loop_phase *add_phases(contract *c, loop_node *top)
{
	loop_kernel *k = c->k;
	loop_phase *ph = &k->phase[c->phase];
	int32_t n = c->before.n;

	for (int32_t i = k->n_phases - 1; i >= c->phase; i--)
		k->phase[i + n] = k->phase[i];
	k->n_phases += n;
	for (int32_t i = 0; i < n; i++, ph++) {
		loop_node *b = c->before.at[i];

		*ph = (loop_phase){.n_roots = 1,
			.root = arena_array(k->a, loop_node *, k->n_roots + 1),
			.n_chunks = contract_ceil(
				k->var[b->var].extent, b->size),
			.tiles = true,
			.copies = c->before_of.at[i] < 0
					  ? 0
					  : 1 + loop_param(k,
							c->before_of.at[i])};
		ph->root[0] = b;
	}
	ph->root[0] = top;
	return ph;
}

int64_t contract_pieces(contract *c, contract_product *p)
{
	const loop_kernel *k = c->k;
	int64_t n = 1;

	contract_sizes(c, p);
	block_one(c, p);
	for (int32_t v = 0; v < k->n_vars; v++)
		if ((k->eqn[p->eqn].left & BIT(v)) != 0 &&
			!mul_ok(n,
				contract_ceil(k->var[v].extent,
					v == p->i || v == p->j ? c->block[v]
							       : 1),
				&n))
			return INT64_MAX;
	return n;
}

/* A kernel's equations and trees, to return to. */
struct before {
	loop_eqn *eqn;
	loop_node **root, *of_phase;
	int32_t n_changes;
};

static struct before remember(const contract *c)
{
	const loop_kernel *k = c->k;
	struct before b = {
		.eqn = arena_array(k->a, loop_eqn, k->n_eqns + 1),
		.root = arena_array(k->a, loop_node *, k->n_roots + 1),
		.of_phase = loop_node_copy(
			k->a, k->phase[c->phase].root[0]),
		.n_changes = k->change.n,
	};

	memcpy(b.eqn, k->eqn, (size_t)k->n_eqns * sizeof *b.eqn);
	for (int32_t i = 0; i < k->n_roots; i++)
		b.root[i] = loop_node_copy(k->a, k->root[i]);
	return b;
}

static void go_back(const contract *c, struct before b)
{
	loop_kernel *k = c->k;

	memcpy(k->eqn, b.eqn, (size_t)k->n_eqns * sizeof *b.eqn);
	memcpy(k->root, b.root, (size_t)k->n_roots * sizeof *b.root);
	k->phase[c->phase].root[0] = b.of_phase;
	k->change.n = b.n_changes;
	loop_link(k);
}

bool contract_phase(contract *of)
{
	contract c = *of;
	loop_kernel *k = c.k;
	loop_phase *ph;
	loop_node *body, *outer = NULL, *top;
	struct before b;

	if (!find_chain(&c))
		return false;
	b = remember(&c);
	if (!c.at_once)
		contract_online(&c);
	c.block = arena_array(k->a, int64_t, k->n_vars + 1);
	find_products(&c, c.last);
	if (k->n_eqns + 3 * c.product.n >= 60 || !choose_blocks(&c)) {
		if (!c.online)
			return false;
		go_back(&c, b); /* rows in blocks are for products only */
		c = *of;
		c.at_once = true;
		return contract_phase(&c);
	}
	find_stages(&c);
	top = frame(&c, &outer);
	body = outer;
	if (c.mixed != 0)
		body = contract_block(
			&c, c.last->var, c.block[c.last->var], NULL);
	fill(&c, body);
	if (c.mixed != 0)
		put_outside(&c, outer, body);
	ph = add_phases(&c, top);
	loop_link(k);
	ph->n_chunks = make_chunks(&c, top, outer);
	for (int32_t i = 0; i < c.plain.n; i++)
		loop_vectorise_nest(k, c.plain.at[i]);
	loop_link(k);
	loop_split_guards(k);
	loop_find_needs(k, ph->root[0]);
	ph->tiles = true;
	return true;
}

bool loop_contract(loop_kernel *k)
{
	contract c = {.k = k, .cut_sum = -1, .number = -1};

	for (int32_t i = 0; i < k->n_eqns; i++)
		if (k->eqn[i].push)
			return false;
	contract_split(k);
	contract_join(k);
	contract_cut(k);
	c.phase = k->n_phases - 1;
	return contract_phase(&c);
}
