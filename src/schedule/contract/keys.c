/*
 * keys.c: rows of values that sums walk and no cache holds, without a maximum.
 *
 * Consumes a kernel in which each row has values for many keys, and sums of products
 * along the keys: the gradients of attention, or a product between two others. If a few
 * rows of these values do not fit the cache, everything that walks the keys moves into one
 * loop over them, which is processed block by block (online.c does it where a row has a
 * maximum, and sums must be scaled):
 *
 *   for t { for u { s = q * k; p = f(s) } for d { o; for u { o += p * k } } }      ->
 *   block t { o; block u { s = q * k; p = f(s); o += p * k } }
 */
#include "schedule/contract/contract.h"

struct keys {
	contract *c;
	loop_set rows; /* the loops around the keys */
	int32_t *var; /* by equation: the variable of its keys; -1: it has none */
	loop_set all; /* variables of keys */
};

static bool is_kind(const contract *c, int32_t eqn, eqn_row kind)
{
	return c->rows.kind[eqn] == kind;
}

static bool is_plain(const loop_eqn *e)
{
	return e->e->n_out == 1 && !e->push && !e->tail && !e->stage && !e->pack &&
	       e->scan_var < 0;
}

/* The variable of the set; -1: it does not have exactly one. */
static int32_t only_of(loop_set s)
{
	int32_t v = 0;

	if (s == 0 || (s & (s - 1)) != 0)
		return -1;
	while ((s & BIT(v)) == 0)
		v++;
	return v;
}

/* Is form f, of a statement whose keys are v, the number of what equation m makes of the
 * same row, its keys being `of`? */
static bool is_aligned(const contract *c, const ix_form *f, int32_t v, int32_t m, int32_t of)
{
	const loop_kernel *k = c->k;
	const ix_form **with = arena_array(k->a, const ix_form *, k->n_vars + 1);

	if (k->var[v].extent != k->var[of].extent || ix_has_fun(f))
		return false;
	for (int32_t i = 0; i < k->n_vars; i++)
		with[i] = ix_axis(k->s->x, &k->dom, i == v ? of : i);
	return ix_subst(k->s->x, &k->dom, f, k->n_vars, k->dom.box.extent, with) ==
	       k->eqn[m].at;
}

/* Visits what a statement computes its elements from. */
static void walk(
	const contract *c, int32_t eqn, void (*on)(void *, const expr *), void *arg)
{
	const loop_eqn *e = &c->k->eqn[eqn];

	loop_walk(c->k->a, e->body[0], on, arg);
	if (e->init[0] != NULL)
		loop_walk(c->k->a, e->init[0], on, arg);
}

static void mark(struct keys *w, int32_t eqn, int32_t v);

struct reader {
	struct keys *w;
	int32_t eqn, v;
};

/* Marks what makes a value for each key that a statement reads. */
static void on_read(void *arg, const expr *e)
{
	const struct reader *r = arg;
	const contract *c = r->w->c;
	int32_t m, comp, of;

	if (e->kind != EX_READ || !loop_maker(c->k, e->tensor, &m, &comp) || m == r->eqn)
		return;
	of = only_of(c->k->eqn[m].left & ~r->w->rows);
	if (of >= 0 && is_aligned(c, e->form, r->v, m, of))
		mark(r->w, m, of);
}

static void mark_reads(struct keys *w, int32_t eqn, int32_t v)
{
	struct reader r = {w, eqn, v};

	walk(w->c, eqn, on_read, &r);
}

static void mark(struct keys *w, int32_t eqn, int32_t v)
{
	if (is_kind(w->c, eqn, EQN_ROW_KEY))
		return;
	w->c->rows.kind[eqn] = EQN_ROW_KEY;
	w->var[eqn] = v;
	w->all |= BIT(v);
	mark_reads(w, eqn, v);
}

struct kinds {
	const struct keys *w;
	int32_t v; /* the variable of the reader's keys; -1: it has none */
	bool keys, sums, other;
};

static void on_kind(void *arg, const expr *e)
{
	struct kinds *r = arg;
	const contract *c = r->w->c;
	int32_t m, comp;

	if (e->kind != EX_READ || !loop_maker(c->k, e->tensor, &m, &comp))
		return;
	r->sums |= is_kind(c, m, EQN_ROW_SUM) || is_kind(c, m, EQN_ROW_BEHIND);
	if (!is_kind(c, m, EQN_ROW_KEY))
		return;
	r->keys = true;
	r->other |= r->v < 0 || !is_aligned(c, e->form, r->v, m, r->w->var[m]);
}

/* Finds the kind of a statement that is no value of the keys; false: it fits none. */
static bool kind_of(struct keys *w, int32_t eqn)
{
	contract *c = w->c;
	const loop_eqn *e = &c->k->eqn[eqn];
	struct kinds r = {.w = w, .v = w->var[eqn]};

	if (r.v < 0)
		r.v = only_of(e->reduced);
	walk(c, eqn, on_kind, &r);
	if (is_kind(c, eqn, EQN_ROW_KEY))
		return !r.sums && !r.other;
	if (r.keys) {
		c->rows.kind[eqn] = EQN_ROW_SUM;
		w->all |= e->reduced;
		return !r.sums && !r.other && e->init[0] == NULL &&
		       (w->rows & ~e->left) == 0 && contract_is_product(c->k, e);
	}
	if (r.sums)
		c->rows.kind[eqn] = EQN_ROW_BEHIND;
	return !contract_is_product(c->k, e);
}

/* Does the statement add up products along keys that the kernel has values for? */
static void find_from(struct keys *w, int32_t eqn)
{
	const contract *c = w->c;
	int32_t v = only_of(c->k->eqn[eqn].reduced);

	if (v >= 0 && (w->rows & BIT(v)) == 0 &&
		contract_is_product(c->k, &c->k->eqn[eqn]))
		mark_reads(w, eqn, v);
}

/* Finds the values of keys and the sums, and their variables; false: there are none. */
static bool find(struct keys *w)
{
	contract *c = w->c;
	loop_kernel *k = c->k;
	bool product = false;

	for (int32_t i = 0; i < k->n_eqns; i++) {
		w->var[i] = -1;
		if (!is_plain(&k->eqn[i]))
			return false;
	}
	for (int32_t i = 0; i < k->n_eqns; i++)
		find_from(w, i);
	for (int32_t i = 0; i < k->n_eqns; i++) {
		if (!kind_of(w, i))
			return false;
		product |= is_kind(c, i, EQN_ROW_KEY) &&
			   contract_is_product(k, &k->eqn[i]);
	}
	for (int32_t i = 0; i < k->n_eqns; i++)
		if ((is_kind(c, i, EQN_ROW_BEFORE) || is_kind(c, i, EQN_ROW_BEHIND)) &&
			((k->eqn[i].left | k->eqn[i].reduced) & w->all) != 0)
			return false;
	return product;
}

bool contract_find_keys(contract *c)
{
	loop_kernel *k = c->k;
	struct keys w = {.c = c, .rows = c->chain & ~c->mixed,
		.var = arena_array(k->a, int32_t, k->n_eqns + 1)};

	c->rows = (eqn_rows){.max = -1, .given = -1,
		.kind = arena_array(k->a, eqn_row, k->n_eqns + 1)};
	memset(c->rows.kind, 0, (size_t)k->n_eqns * sizeof *c->rows.kind);
	c->row_vars = w.rows;
	if (!find(&w) || w.all == 0 || (c->mixed != 0 && w.all != c->mixed))
		return false;
	c->all_keys = w.all;
	for (int32_t v = k->n_vars - 1; v >= 0; v--)
		if ((w.all & BIT(v)) != 0)
			c->keys = v;
	c->rows.n_keys = k->var[c->keys].extent;
	return true;
}
