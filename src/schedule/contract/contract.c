/*
 * contract.c: turns sums of products into tiles of registers;
 * docs/contractions.md.
 *
 * Consumes the tree of a kernel in which some statements are sums of a product,
 * each with its own loops inside the outer loops. The outer loops are cut into
 * blocks, and the body of a block becomes a sequence of loop nests: one for
 * each product, and plain loops for statements before and after it.
 *
 *   for i { init m; for j { init; for k { acc } scale; max m } for j { .. } }
 *     ->
 *   block i {
 *     panels and tiles i x j, sum over k;  for i { for j { scale } }
 *     for i { init m; for j { max m } for j { .. } } }
 *
 * The outer loops are parallel in each statement, so statements may run block
 * by block, in their order; values between them are in buffers, which follow
 * from the tree. Sums run from the first to the last term for any tiles, and
 * tiles depend only on sizes and the target, so the bits of a result depend
 * neither on threads nor on blocks.
 */
#include "schedule/contract/contract.h"

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

/* Do partial sums overwrite what the terms read? */
static bool reads_itself(const loop_kernel *k, const loop_eqn *e)
{
	struct storage s = {k, k->s->tensor.at[e->e->out[0]].storage, false};

	if (s.of >= 0)
		loop_walk(k->a, e->body[0], on_storage, &s);
	return s.read;
}

static int32_t first_of(loop_set s)
{
	int32_t v = 0;

	while (v < 63 && (s & BIT(v)) == 0)
		v++;
	return v;
}

/* Declines the products inside a scan. */
static void decline_below(const contract *c, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		decline_below(c, n->child[i]);
	if (n->kind == LOOP_STMT && contract_is_sum(c->k, &c->k->eqn[n->eqn]))
		loop_decide(c->k, DECIDE_TILE_SCAN, n->eqn, -1, 0, 0);
}

/* Is the product excluded from tiles, by its loops or its memory? */
static bool is_barred(const contract *c, int32_t eqn)
{
	const loop_eqn *e = &c->k->eqn[eqn];
	loop_set outer = e->reduced & c->chain & ~c->mixed;

	if (reads_itself(c->k, e))
		loop_decide(c->k, DECIDE_TILE_SELF, eqn, -1, 0, 0);
	else if (outer != 0)
		loop_decide(c->k, DECIDE_TILE_OUTER, eqn, first_of(outer), 0, 0);
	else
		return false;
	return true;
}

/* Finds the products below n whose loops can be separated. */
static void find_products(contract *c, const loop_node *n)
{
	loop_eqn *e;

	if (loop_is_loop(n)) {
		if (n->kind != LOOP_FOR || n->backward ||
			c->k->var[n->var].kind == AXIS_S) {
			decline_below(c, n);
			return;
		}
		for (int32_t i = 0; i < n->n_child; i++)
			find_products(c, n->child[i]);
		return;
	}
	e = &c->k->eqn[n->eqn];
	if (n->kind != LOOP_STMT || !contract_is_product(c->k, e) ||
		is_barred(c, n->eqn))
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
 * Finds the loop below n that computes values over which later sums run, after
 * initialisations and before plain nests; NULL: none.
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

/*
 * Finds the sums of products below n that walk var, and the values that are
 * computed for each var.
 */
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

/* Finds the outer loops, down to the first one with several nodes. */
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
				(c->number < 0 || n->var != c->number)))
			return c->last != NULL;
		c->chain |= BIT(n->var);
		c->outer = c->last = n;
		if (n->n_child != 1) {
			find_mixed(c);
			return true;
		}
	}
}

/* ---- parts ---- */

/*
 * The product whose statement, under the loops of its sum, is all that is below
 * n; -1: none.
 */
static int32_t only_product(const contract *c, const loop_node *n)
{
	loop_set walked = 0;
	int32_t p;

	for (; loop_is_loop(n); n = n->child[0]) {
		if (n->n_child != 1)
			return -1;
		walked |= BIT(n->var);
	}
	p = n->kind == LOOP_STMT ? contract_product_of(c, n->eqn) : -1;
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
	int32_t now;	/* number of the current part of plain statements */
	int32_t *first; /* by equation: part of its first statement; -1: none */
};

enum { DROPPED = -1, WITH_ITS_STATEMENT = -2 };

/* on: a product whose elements are completed here, one by one; -1: none */
static int32_t leaf_stage(
	struct numbering *w, const loop_node *n, int32_t *on)
{
	const loop_eqn *e = &w->c->k->eqn[n->eqn];
	int32_t p = contract_product_of(w->c, n->eqn);

	if (n->kind == LOOP_INIT && !has_value(e))
		return p >= 0 ? DROPPED : WITH_ITS_STATEMENT;
	if (n->kind == LOOP_STMT && p >= 0) {
		w->c->product.at[p].stage = w->now + 1;
		w->now += 3;
		return w->now - 2;
	}
	if (n->kind == LOOP_STMT && w->c->online &&
		n->eqn == w->c->rows.max) { /* then the sums are rescaled */
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

/* Copies the statements of a part with their loops; NULL: there are none. */
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

/*
 * Puts `all` into a loop over each blocked variable, from the loop `from`
 * outwards.
 */
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

/* Adds loops over the blocked variables with the plain statements of a part. */
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

/* Does a product that clears and stores its own sums (contract_nest) begin here? */
static bool starts_itself(const contract *c, const loop_node *n)
{
	int32_t p = n->kind == LOOP_INIT ? contract_product_of(c, n->eqn) : -1;

	return p >= 0 && !c->product.at[p].begun;
}

/* Copies what is below n, but for the beginnings of such products; NULL: nothing else. */
static loop_node *without_starts(const contract *c, const loop_node *n)
{
	loop_node *out;

	if (!loop_is_loop(n))
		return starts_itself(c, n) ? NULL : loop_node_copy(c->k->a, n);
	out = arena_copy(c->k->a, n, sizeof *n);
	out->n_child = 0;
	for (int32_t i = 0; i < n->n_child; i++) {
		loop_node *m = without_starts(c, n->child[i]);

		if (m != NULL)
			loop_node_adopt(c->k->a, out, m);
	}
	return out->n_child > 0 ? out : NULL;
}

/*
 * Adds the statements before and after the mixed loop, whose blocks are in
 * `body`.
 */
static void put_outside(contract *c, loop_node *outer, loop_node *body)
{
	bool before = true;

	for (int32_t i = 0; i < c->outer->n_child; i++) {
		const loop_node *n = c->outer->child[i];
		loop_node *all, *copy;

		if (n == c->last) {
			loop_node_adopt(c->k->a, outer, body);
			for (int32_t j = 0; j < c->product.n; j++)
				contract_done(c, &c->product.at[j], outer);
			before = false;
			continue;
		}
		copy = before ? without_starts(c, n) : loop_node_copy(c->k->a, n);
		if (copy == NULL)
			continue;
		all = loop_node_new(c->k->a, LOOP_FOR);
		loop_node_adopt(c->k->a, all, copy);
		put_around(c, c->outer, all, outer);
	}
}

static void fill(contract *c, loop_node *body)
{
	bool behind = false; /* the last nest is that behind tile registers */

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
			int32_t n = body->n_child;

			put_plain(c, s, body);
			if (behind && n > 0 && body->n_child == n + 1)
				contract_join_behind(c, body);
			behind = false;
			continue;
		}
		gather_leaves(c, c->last, s + 1, p);
		if (c->by_rows)
			contract_rows_nest(c, p, body);
		else
			contract_nest(c, p, body);
		/* else it stays where sums can be in registers: hold_near.c */
		behind = p->tiled && p->behind.n > 0 && !c->by_rows;
		s++;
	}
}

/* Makes the loops over batches around the blocks. */
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

/*
 * Makes outer loops parallel, up to the largest number of chunks; returns their
 * number.
 */
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

/* Adds phases: one for each copy of a whole factor, then the loop nest. */
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

/* The state of a kernel, to restore if tiles are not worth it. */
struct before {
	loop_eqn *eqn;
	loop_node **root, *of_phase;
	int32_t n_changes, n_decisions;
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
		.n_decisions = k->decision.n,
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
	k->decision.n = b.n_decisions;
	loop_link(k);
}

static void say_tiles(const contract *c)
{
	for (int32_t i = 0; i < c->product.n; i++) {
		const contract_product *p = &c->product.at[i];

		loop_decide(c->k, DECIDE_TILE_TAKEN, p->eqn, -1, p->tile,
			(int64_t)p->lanes * p->vectors);
	}
}

/* The block of keys below n. */
static loop_node *keys_in(const contract *c, loop_node *n)
{
	loop_node *m = n->kind == LOOP_BLOCK && n->var == c->keys ? n : NULL;

	for (int32_t i = 0; i < n->n_child && m == NULL; i++)
		m = keys_in(c, n->child[i]);
	return m;
}

bool contract_phase(contract *of)
{
	contract c = *of;
	loop_kernel *k = c.k;
	loop_phase *ph;
	loop_node *body, *outer = NULL, *top;
	struct before b;

	if (!find_chain(&c)) {
		contract_decline(k, DECIDE_TILE_AROUND, -1, 0, 0);
		return false;
	}
	b = remember(&c);
	if (!c.at_once)
		contract_online(&c);
	c.block = arena_array(k->a, int64_t, k->n_vars + 1);
	find_products(&c, c.last);
	if (k->n_eqns + 3 * c.product.n >= k->machine->product.most_equations)
		contract_decline(k, DECIDE_TILE_MANY, -1, c.product.n,
			k->machine->product.most_equations);
	if (k->n_eqns + 3 * c.product.n >= k->machine->product.most_equations ||
		!contract_choose_blocks(&c)) {
		if (!c.by_keys)
			return false;
		go_back(&c, b); /* blocks of rows are only for products */
		c = *of;
		c.at_once = true;
		return contract_phase(&c);
	}
	say_tiles(&c);
	find_stages(&c);
	top = frame(&c, &outer);
	body = outer;
	if (c.mixed != 0)
		body = contract_block(
			&c, c.last->var, c.block[c.last->var], NULL);
	fill(&c, c.by_rows ? contract_rows_open(&c, outer, body) : body);
	if (c.mixed != 0)
		put_outside(&c, outer, body);
	if (c.by_rows && !contract_rows_close(&c))
		return false; /* only in a trial: products.c */
	ph = add_phases(&c, top);
	loop_link(k);
	ph->n_chunks = make_chunks(&c, top, outer);
	for (int32_t i = 0; i < c.plain.n; i++)
		loop_vectorise_nest(k, c.plain.at[i]);
	loop_link(k);
	if (c.by_rows) {
		contract_rows_need(&c, c.in_rows);
	} else { /* registers of warps are walked as a whole */
		loop_windows_abreast(k, false);
		loop_clip_all(k);
		loop_split_guards(k);
		loop_find_needs(k, ph->root[0]);
		if (c.by_keys)
			contract_rows_need(&c, keys_in(&c, ph->root[0]));
	}
	ph->tiles = true;
	return true;
}
