/*
 * online.c: processes rows of keys that do not fit the cache block by block.
 *
 * Consumes a kernel in which a row has a maximum, weights that depend on it,
 * and sums that are linear in the weights (eqn_find_rows). If a few rows of the
 * values for each key do not fit the second cache, everything that walks the
 * keys moves into one loop over them, which is processed block by block. When a
 * block increases the maximum, the sums so far are multiplied by the factor by
 * which the earlier weights decrease. (Milakov, Gimelshein 2018.)
 *
 *   for t { m; for u { s; m max= s } for u { p = exp(s - m); z += p }
 *           for e { w; for u { w += p * v } o = w / z } }           ->
 *   block t { m; z; w; block u {
 *       s; was = m; m max= s; f = exp(was - m); z *= f; w *= f;
 *       p = exp(s - m); z += p; w += p * v }
 *     o = w / z }
 *
 * If there were no terms before, or only terms of weight zero, the sums are
 * cleared.
 */
#include "schedule/contract/contract.h"

/* ---- finding rows that are too long ---- */

static bool list_statements(contract *c, int32_t n, eqn_stmt *e)
{
	loop_kernel *k = c->k;

	for (int32_t i = 0; i < n; i++) {
		const loop_eqn *q = &k->eqn[i];

		if (q->e->n_out != 1 || q->push || q->tail || q->stage ||
			q->pack || q->scan_var >= 0)
			return false;
		e[i] = (eqn_stmt){.monoid = q->e->monoid,
			.out = q->e->out[0],
			.body = q->body[0],
			.init = q->init[0],
			.at = q->at,
			.dom = k->dom,
			.reduced = q->reduced,
			.seen = loop_param(k, q->e->out[0]) >= 0};
	}
	return true;
}

static bool is_kind(const contract *c, int32_t eqn, eqn_row kind)
{
	return c->rows.kind[eqn] == kind;
}

/* The variable that walks the keys of a statement; -1: not a single one. */
static int32_t keys_of(const contract *c, int32_t eqn)
{
	const loop_kernel *k = c->k;
	const loop_eqn *e = &k->eqn[eqn];
	bool sums = is_kind(c, eqn, EQN_ROW_MAX) ||
		    is_kind(c, eqn, EQN_ROW_SUM);
	loop_set in = sums ? e->reduced : e->left;
	int64_t s;

	for (int32_t v = 0; v < k->n_vars; v++)
		if ((in & BIT(v)) != 0 &&
			k->var[v].extent == c->rows.n_keys &&
			(sums ? in == BIT(v)
			      : ix_stride(e->at, v, c->rows.n_keys, &s) &&
					 s == 1))
			return v;
	return -1;
}

static bool walks_keys(const contract *c, int32_t eqn)
{
	return is_kind(c, eqn, EQN_ROW_KEY) || is_kind(c, eqn, EQN_ROW_MAX) ||
	       is_kind(c, eqn, EQN_ROW_WEIGHT) || is_kind(c, eqn, EQN_ROW_SUM);
}

struct row_reads {
	const contract *c;
	bool elsewhere; /* not a value of this row */
};

static void on_read(void *arg, const expr *e)
{
	struct row_reads *r = arg;
	const loop_kernel *k = r->c->k;
	int32_t eqn, comp;

	if (e->kind == EX_READ && loop_maker(k, e->tensor, &eqn, &comp) &&
		(is_kind(r->c, eqn, EQN_ROW_MAX) ||
			is_kind(r->c, eqn, EQN_ROW_GIVEN)))
		r->elsewhere |= e->form != k->eqn[r->c->rows.max].at;
}

static bool reads_elsewhere(const contract *c, int32_t eqn)
{
	struct row_reads r = {c, false};

	loop_walk(c->k->a, c->k->eqn[eqn].body[0], on_read, &r);
	return r.elsewhere;
}

/* All variables of the keys; 0: the kernel does not have this form. */
static loop_set find_keys(const contract *c)
{
	const loop_kernel *k = c->k;
	loop_set rows = k->eqn[c->rows.max].left, keys = 0;
	bool product = false;

	if ((rows & ~c->chain) != 0)
		return 0;
	for (int32_t i = 0; i < k->n_eqns; i++) {
		int32_t v;

		if (is_kind(c, i, EQN_ROW_GIVEN) && k->eqn[i].left != rows)
			return 0;
		if (!walks_keys(c, i) && !is_kind(c, i, EQN_ROW_GIVEN))
			continue;
		if (reads_elsewhere(c, i))
			return 0;
		if (is_kind(c, i, EQN_ROW_GIVEN))
			continue;
		v = keys_of(c, i);
		if (v < 0 || (c->chain & BIT(v)) != 0 ||
			(rows & ~k->eqn[i].left) != 0)
			return 0;
		keys |= BIT(v);
		product |= is_kind(c, i, EQN_ROW_SUM) &&
			   contract_is_product(c->k, &k->eqn[i]);
	}
	/* what else walks the keys stays in loops of its own */
	for (int32_t i = 0; i < k->n_eqns; i++)
		if (!walks_keys(c, i) && !is_kind(c, i, EQN_ROW_GIVEN) &&
			((k->eqn[i].left | k->eqn[i].reduced) & keys) != 0)
			return 0;
	return product ? keys : 0;
}

/* Bytes of the values of a row for each key. */
static int64_t bytes_of_key(const contract *c)
{
	int64_t n = 0;

	for (int32_t i = 0; i < c->k->n_eqns; i++)
		if ((is_kind(c, i, EQN_ROW_KEY) ||
			    is_kind(c, i, EQN_ROW_WEIGHT)) &&
			loop_param(c->k, c->k->eqn[i].e->out[0]) < 0)
			n += (int64_t)dtype_size(c->k->eqn[i].acc[0]);
	return n;
}

/* Will tile registers multiply values of the keys? */
static bool has_tiles(const contract *c)
{
	loop_kernel *k = c->k;
	contract_terms t;

	for (int32_t i = 0; i < k->n_eqns && k->machine->tiles.rows > 0; i++)
		if (is_kind(c, i, EQN_ROW_KEY) && contract_is_product(k, &k->eqn[i]) &&
			contract_factors(k, &k->eqn[i], &t) &&
			contract_narrow(k, t.f[0], TN_BF16, 0) != NULL &&
			contract_narrow(k, t.f[1], TN_BF16, 0) != NULL)
			return true;
	return false;
}

/* Do blocks of keys save more than they cost: sums that are scaled for each? Whole rows
 * leave few of them to a block, each of which copies all keys for tile registers. */
static bool is_too_long(const contract *c)
{
	const machine *m = c->k->machine;
	double row = (double)c->rows.n_keys * (double)bytes_of_key(c);

	if (c->rows.max < 0)
		return machine_is_long_plain(m, row);
	return machine_is_long(m, has_tiles(c) ? row * m->tiles.long_parts : row);
}

/* Finds a row with a maximum, and sets what contract_find_keys sets. */
static bool find_row(contract *c)
{
	loop_kernel *k = c->k;
	eqn_stmt *e = arena_array(k->a, eqn_stmt, k->n_eqns + 1);

	if (!list_statements(c, k->n_eqns, e) ||
		!eqn_find_rows(k->a, k->s, k->n_eqns, e, &c->rows))
		return false;
	c->all_keys = find_keys(c);
	c->row_vars = k->eqn[c->rows.max].left;
	c->keys = keys_of(c, c->rows.max);
	return c->all_keys != 0;
}

/* ---- one variable for all keys ---- */

static void rename_loops(loop_node *n, loop_set keys, int32_t to)
{
	if (n->kind == LOOP_FOR && (keys & BIT(n->var)) != 0)
		n->var = to;
	for (int32_t i = 0; i < n->n_child; i++)
		rename_loops(n->child[i], keys, to);
}

static bool rename_keys(contract *c, loop_set keys, int32_t to)
{
	loop_kernel *k = c->k;

	if (!loop_change_keys(k, keys, to))
		return false;
	for (int32_t i = 0; i < k->n_roots; i++)
		rename_loops(k->root[i], keys, to);
	rename_loops(k->phase[c->phase].root[0], keys, to);
	return true;
}

/* ---- the tree ---- */

enum place { IN_FRONT, FIRST, SECOND, AFTER, APART };

static enum place place_of(const contract *c, const loop_node *leaf)
{
	switch (c->rows.kind[leaf->eqn]) {
	case EQN_ROW_BEFORE:
		return IN_FRONT;
	case EQN_ROW_KEY:
		return FIRST;
	case EQN_ROW_MAX:
		return leaf->kind == LOOP_INIT ? IN_FRONT : FIRST;
	case EQN_ROW_GIVEN:
		return APART;
	case EQN_ROW_WEIGHT:
		return SECOND;
	case EQN_ROW_SUM:
		return leaf->kind == LOOP_INIT ? IN_FRONT : SECOND;
	case EQN_ROW_BEHIND:
		return AFTER;
	}
	return AFTER;
}

/* Copies the part of n that belongs to `where`, inside the loops over keys. */
static void take(const contract *c, const loop_node *n, enum place where,
	loop_node *to)
{
	arena *a = c->k->a;

	for (int32_t i = 0; i < n->n_child; i++) {
		const loop_node *o = n->child[i];
		loop_node *copy;

		if (!loop_is_loop(o)) {
			if (place_of(c, o) == where)
				loop_node_adopt(a, to, loop_node_copy(a, o));
			continue;
		}
		if (o->var == c->keys) {
			take(c, o, where, to);
			continue;
		}
		copy = arena_copy(a, o, sizeof *o);
		copy->n_child = 0;
		take(c, o, where, copy);
		if (copy->n_child > 0)
			loop_node_adopt(a, to, copy);
	}
}

static void build(contract *c)
{
	loop_node *keys = loop_node_for(c->k->a, c->keys, NULL);
	loop_node *all = c->last, old = *all;

	all->n_child = 0;
	take(c, &old, IN_FRONT, all);
	take(c, &old, FIRST, keys);
	take(c, &old, SECOND, keys);
	loop_node_adopt(c->k->a, all, keys);
	take(c, &old, AFTER, all);
	c->outer = all;
	c->last = keys;
	c->chain |= BIT(c->keys);
	c->mixed = BIT(c->keys);
}

void contract_online(contract *c)
{
	bool max;

	if (c->number >= 0 || c->last->n_child < 2)
		return;
	if (c->mixed != 0) { /* one loop has all keys already */
		c->by_keys = contract_find_keys(c);
		return;
	}
	max = find_row(c);
	if ((!max && !contract_find_keys(c)) || !is_too_long(c) ||
		!rename_keys(c, c->all_keys, c->keys))
		return;
	c->by_keys = true;
	c->online = max;
	build(c);
	loop_link(c->k);
}

/*
 * Chooses the number of keys in a block, so that its values for some rows take
 * a part of the cache.
 */
void contract_online_block(contract *c)
{
	const loop_kernel *k = c->k;
	int64_t rows = 1, lanes = 2 * machine_lanes(k->machine, 4), n;
	int64_t bytes = bytes_of_key(c);

	if (bytes == 0) /* they are all results, which pass through the cache, too */
		bytes = (int64_t)sizeof(float);
	for (int32_t v = 0; v < k->n_vars; v++)
		if ((c->row_vars & BIT(v)) != 0 && c->block[v] > 0)
			rows *= c->block[v];
	n = k->machine->memory[MACHINE_L2].bytes /
	    k->machine->product.keys_part * k->machine->product.keys_parts /
	    (rows * bytes);
	n = n > lanes ? n / lanes * lanes : lanes;
	c->block[c->keys] = n < c->rows.n_keys ? n : c->rows.n_keys;
}

/* ---- rescaling ---- */

static const expr *read_row(contract *c, int32_t eqn)
{
	return ex_read(
		c->k->s, c->k->eqn[eqn].e->out[0], c->k->eqn[c->rows.max].at);
}

struct before {
	contract *c;
	int32_t was;
};

static const expr *as_it_was(void *arg, const expr *read, const ix_dom *d)
{
	struct before *b = arg;
	const loop_eqn *m = &b->c->k->eqn[b->c->rows.max];

	(void)d;
	return read->tensor == m->e->out[0] ? read_row(b->c, b->was) : NULL;
}

static const expr *call(
	ir_system *s, const char *name, const expr *x, const expr *y)
{
	const expr *arg[IR_MAX_ARGS] = {x, y};

	return ex_call(s, ir_scalar_find(name, strlen(name)), arg);
}

/* Has the row had no terms before? Then its sums are cleared. */
static const expr *is_new(contract *c, int32_t was)
{
	loop_kernel *k = c->k;
	const expr *m = read_row(c, was);

	if (m->dtype != k->eqn[c->rows.max].acc[0])
		m = ex_cast(k->s, k->eqn[c->rows.max].acc[0], m);
	return call(k->s, "eq", m, ir_identity(k->s, IR_MAX, 0, m->dtype));
}

/* f(old maximum - new maximum), the factor of the sums */
const expr *contract_online_factor(contract *c, int32_t was)
{
	loop_kernel *k = c->k;
	const expr *now = read_row(c, c->rows.given), *old = read_row(c, was);
	const expr *arg[IR_MAX_ARGS] = {NULL};
	const ix_form **same = arena_array(
		k->a, const ix_form *, k->n_vars + 1);
	struct before b = {c, was};

	for (int32_t v = 0; v < k->n_vars; v++)
		same[v] = ix_axis(k->s->x, &k->dom, v);
	if (c->rows.given != c->rows.max)
		old = ex_subst(k->s, &k->dom, k->eqn[c->rows.given].body[0],
			k->n_vars, k->dom.box.extent, same, as_it_was, &b);
	if (old->dtype != c->rows.in) {
		old = ex_cast(k->s, c->rows.in, old);
		now = ex_cast(k->s, c->rows.in, now);
	}
	arg[0] = call(k->s, "sub", old, now);
	return ex_call(k->s, c->rows.fn, arg);
}

static loop_node *leaf(contract *c, loop_kind kind, int32_t eqn)
{
	loop_node *n = loop_node_new(c->k->a, kind);

	n->eqn = eqn;
	return n;
}

/* Puts n into a loop over each of its blocked variables. */
static void put_over(contract *c, loop_set left, loop_node *n, loop_node *body)
{
	loop_node *all = NULL;

	for (int32_t v = c->k->n_vars - 1; v >= 0; v--) {
		bool around = (c->chain & BIT(v)) != 0 && c->block[v] == 0;

		if ((left & BIT(v)) == 0 || around)
			continue;
		if (all == NULL) {
			all = n;
			n->kind = LOOP_FOR;
			n->var = v;
		} else {
			all = loop_node_for(c->k->a, v, all);
		}
	}
	for (int32_t i = 0; all == NULL && i < n->n_child; i++)
		contract_put(c, body, n->child[i]);
	if (all != NULL)
		contract_put(c, body, all);
}

/* Stores each row's maximum before the block. */
void contract_online_open(contract *c, loop_node *body)
{
	loop_node *n = loop_node_new(c->k->a, LOOP_FOR);

	c->was = loop_add_row(c->k, "was", c->rows.max, read_row(c, c->rows.max));
	loop_node_adopt(c->k->a, n, leaf(c, LOOP_STMT, c->was));
	put_over(c, c->k->eqn[c->rows.max].left, n, body);
}

/* The rescaled sum, as an expression of the old sum, parameter 0. */
const expr *contract_online_scaled(
	contract *c, int32_t was, int32_t by, int32_t eqn)
{
	ir_system *s = c->k->s;
	tn_dtype acc = c->k->eqn[eqn].acc[0];
	const expr *f = read_row(c, by);

	if (f->dtype != acc)
		f = ex_cast(s, acc, f);
	return ex_select(s, is_new(c, was), ex_const_f(s, acc, 0),
		call(s, "mul", ex_param(s, acc, 0), f));
}

const expr *contract_online_was(contract *c)
{
	return read_row(c, c->rows.max);
}

/*
 * Finds the rows of a kernel whose keys are already one variable: sets c->rows
 * and c->keys.
 */
bool contract_online_find(contract *c)
{
	eqn_stmt *e = arena_array(c->k->a, eqn_stmt, c->k->n_eqns + 1);
	int32_t n = 0;

	/* equations of the kernel precede those of the schedule */
	while (n < c->k->n_eqns && !c->k->eqn[n].pack && !c->k->eqn[n].stage)
		n++;
	if (!list_statements(c, n, e) ||
		!eqn_find_rows(c->k->a, c->k->s, n, e, &c->rows))
		return false;
	c->keys = keys_of(c, c->rows.max);
	return c->keys >= 0;
}

void contract_online_scale(contract *c, loop_node *body)
{
	loop_kernel *k = c->k;
	loop_node *n = loop_node_new(k->a, LOOP_FOR);
	int32_t by = loop_add_row(
		k, "rescale", c->rows.max, contract_online_factor(c, c->was));

	if (c->rows.given != c->rows.max)
		loop_node_adopt(k->a, n, leaf(c, LOOP_STMT, c->rows.given));
	loop_node_adopt(k->a, n, leaf(c, LOOP_STMT, by));
	put_over(c, k->eqn[c->rows.max].left, n, body);
	for (int32_t i = 0; i < by; i++) {
		loop_node *s;

		if (i >= c->was || !is_kind(c, i, EQN_ROW_SUM))
			continue;
		s = leaf(c, LOOP_SCALE, i);
		s->finish = contract_online_scaled(c, c->was, by, i);
		n = loop_node_new(k->a, LOOP_FOR);
		loop_node_adopt(k->a, n, s);
		put_over(c, k->eqn[i].left, n, body);
	}
}
