/*
 * contract.c: sums of products as tiles of registers; docs/contractions.md.
 *
 * Consumes the tree of a kernel that is one sum of a product, with what is
 * done to each complete element behind it. The classes of its axes follow
 * from the index forms alone: the columns adjoin in the result and in one
 * factor, the rows are walked by the other factor only, the rest of the left
 * axes are batches. Where the forms are not of this kind nothing is changed.
 *
 *   for i { for j { init; for k { acc }; rest } }   ->
 *   block i { block j {                                a chunk
 *     for i { for j { init } }
 *     block k { block j { stage y; block i { TILE i x j, sum over k } } }
 *     for i { for j { rest } } } }
 *
 * Sums run from the first k to the last whatever the tiles are, and tiles
 * follow from sizes and the target: the bits of a result depend on neither
 * threads nor blocks.
 */
#include "loop/local.h"

enum {
	LEAST_ROWS = 4,	    /* fewer: memory decides, not arithmetic */
	LEAST_SUM = 8,
	COLUMN_CHUNKS = 16, /* pieces of the columns, where there are many */
	CHUNK_PANELS = 4    /* panels of columns in a chunk, at most */
};

struct contract {
	loop_kernel *k;
	int32_t eqn;
	int32_t i, j, sum;	  /* variables: rows, columns, summed */
	loop_set chain;
	loop_node *last;	  /* the innermost of the loops around all */
	const expr *y;		  /* the read that columns walk */
	int32_t n_y;
	bool bad, x;		  /* x: a read walks rows and the sum */
	int32_t lanes, vectors;
	int64_t rows, row_chunk, column_chunk, sum_block;
};

static void on_expr(void *arg, const expr *e)
{
	struct contract *c = arg;
	loop_set v;
	int32_t q, comp;

	if (e->form != NULL && ix_has_fun(e->form))
		c->bad = true;
	if (e->kind != EX_READ)
		return;
	v = loop_form_vars(e->form);
	if (loop_maker(c->k, e->tensor, &q, &comp))
		c->bad = true;
	if ((v & BIT(c->j)) != 0) {
		c->y = e;
		c->n_y++;
	} else if ((v & BIT(c->sum)) != 0) {
		c->x = true;
	}
}

static void on_rows(void *arg, const expr *e)
{
	loop_set *v = arg;

	if (e->kind == EX_READ)
		*v |= loop_form_vars(e->form);
}

/* Variable of the chain that adjoins in the result; -1 none. */
static int32_t columns_of(const struct contract *c)
{
	for (int32_t v = 0; v < c->k->n_vars; v++) {
		int64_t s;

		if ((c->chain & BIT(v)) != 0 &&
			loop_stride(c->k->eqn[c->eqn].at, v,
				c->k->var[v].extent, &s) &&
			s == 1)
			return v;
	}
	return -1;
}

/* The longest variable that y does not walk. */
static int32_t rows_of(const struct contract *c, loop_set read)
{
	loop_set may = c->chain & read & ~loop_form_vars(c->y->form);
	int32_t best = -1;

	for (int32_t v = 0; v < c->k->n_vars; v++)
		if ((may & BIT(v)) != 0 &&
			(best < 0 || c->k->var[v].extent >
						c->k->var[best].extent))
			best = v;
	return best;
}

static bool is_product(const loop_eqn *e)
{
	const expr *b = e->body[0];

	return e->e->n_out == 1 && e->e->monoid == IR_SUM && !e->push &&
	       e->scan_var < 0 && !e->tail && b->kind == EX_CALL &&
	       strcmp(ir_scalar_at(b->fn)->name, "mul") == 0 &&
	       (e->acc[0] == TN_F32 || e->acc[0] == TN_F64) &&
	       b->dtype == e->acc[0];
}

/* The tree: loops around { init, the sum, statements }. */
static bool find_tree(struct contract *c)
{
	loop_kernel *k = c->k;
	loop_node *n = k->phase[0].root[0], *r;

	if (k->phase[0].n_roots != 1)
		return false;
	for (;; n = n->child[0]) {
		if (n->kind != LOOP_FOR || k->var[n->var].kind != AXIS_P ||
			n->backward)
			return false;
		c->chain |= BIT(n->var);
		if (n->n_child != 1 || n->child[0]->kind != LOOP_FOR)
			break;
	}
	if (n->n_child < 2 || n->child[0]->kind != LOOP_INIT)
		return false;
	c->last = n;
	c->eqn = n->child[0]->eqn;
	r = n->child[1];
	if (r->kind != LOOP_FOR || r->n_child != 1 || r->backward ||
		r->child[0]->kind != LOOP_STMT || r->child[0]->eqn != c->eqn)
		return false;
	c->sum = r->var;
	for (int32_t i = 2; i < n->n_child; i++)
		if (n->child[i]->kind != LOOP_STMT ||
			k->eqn[n->child[i]->eqn].e->monoid != IR_SET ||
			k->eqn[n->child[i]->eqn].scan_var >= 0)
			return false;
	return true;
}

static bool classify(struct contract *c)
{
	loop_kernel *k = c->k;
	const loop_eqn *e = &k->eqn[c->eqn];
	loop_set read = 0, v;

	if (!is_product(e) ||
		k->s->tensor.at[e->e->out[0]].dtype != e->acc[0])
		return false;
	c->j = columns_of(c);
	if (c->j < 0)
		return false;
	loop_walk(k->a, e->body[0], on_expr, c);
	if (c->bad || !c->x || c->n_y != 1)
		return false;
	v = loop_form_vars(c->y->form);
	if (c->y->dtype != e->acc[0] || (v & BIT(c->sum)) == 0 ||
		!loop_covers(k, c->y->tensor, c->y->form, v))
		return false;
	loop_walk(k->a, e->body[0], on_rows, &read);
	c->i = rows_of(c, read);
	return c->i >= 0;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Near-equal tiles; blocks of the caches: panel and rows in the first, all
 * rows of a chunk in the second. */
static bool choose_sizes(struct contract *c)
{
	const loop_target *t = &c->k->target;
	int64_t size = (int64_t)dtype_size(c->k->eqn[c->eqn].acc[0]);
	int64_t m = c->k->var[c->i].extent, n = c->k->var[c->j].extent;
	int64_t sum = c->k->var[c->sum].extent, panel, fit, tiles;

	c->lanes = (int32_t)(t->vector_bytes / size);
	if (c->lanes < 2 || n < c->lanes || m < LEAST_ROWS || sum < LEAST_SUM)
		return false;
	c->vectors = n > c->lanes ? 2 : 1;
	panel = (int64_t)c->lanes * c->vectors;
	/* accumulators, a row of the panel, one element of the other factor */
	fit = (t->n_vector_registers - 4) / 2;
	c->rows = ceil_div(m, ceil_div(m, fit));
	fit = most(2 * t->l1_bytes / (panel * size), 64);
	c->sum_block = ceil_div(sum, ceil_div(sum, fit));
	fit = most(t->l2_bytes * 3 / 4 / (c->sum_block * size), c->rows);
	tiles = ceil_div(m, c->rows);
	c->row_chunk = c->rows * ceil_div(tiles, ceil_div(m, fit));
	tiles = ceil_div(n, panel * COLUMN_CHUNKS);
	c->column_chunk = panel * (tiles < CHUNK_PANELS ? tiles : CHUNK_PANELS);
	return true;
}

static loop_node *block(
	struct contract *c, int32_t var, int64_t size, loop_node *child)
{
	loop_node *b = loop_node_new(c->k->a, LOOP_BLOCK);

	b->var = var;
	b->size = size;
	if (child != NULL)
		loop_node_adopt(c->k->a, b, child);
	return b;
}

/* for i { for j { statements } }, the columns in lanes */
static loop_node *elements(
	struct contract *c, int32_t n, loop_node *const *stmt)
{
	loop_node *j = loop_node_for(c->k->a, c->j, NULL);

	for (int32_t i = 0; i < n; i++)
		loop_node_adopt(c->k->a, j, stmt[i]);
	loop_take_lanes(c->k, j);
	return loop_node_for(c->k->a, c->i, j);
}

/* The copy of a panel: row by row, or turned where it adjoins along k. */
static void add_panel(struct contract *c, loop_node *panel)
{
	loop_kernel *k = c->k;
	loop_node *stage;
	int64_t s;

	loop_stride(c->y->form, c->sum, k->var[c->sum].extent, &s);
	stage = loop_node_new(k->a, s == 1 ? LOOP_STAGE : LOOP_STMT);
	stage->eqn = loop_add_stage(k, c->y->tensor, c->y->form);
	if (s == 1) {
		stage->var = c->sum;
		stage->lanes = c->lanes;
		loop_node_adopt(k->a, panel, stage);
		return;
	}
	stage = loop_node_for(k->a, c->j, stage);
	loop_stride(c->y->form, c->j, k->var[c->j].extent, &s);
	if (s == 1)
		loop_take_lanes(k, stage);
	loop_node_adopt(k->a, panel, loop_node_for(k->a, c->sum, stage));
}

static loop_node *tile(const struct contract *c)
{
	loop_node *t = loop_node_new(c->k->a, LOOP_TILE);

	t->eqn = c->eqn;
	t->row_var = c->i;
	t->var = c->j;
	t->sum_var = c->sum;
	t->size = c->rows;
	t->lanes = c->lanes;
	t->unroll = c->vectors;
	return t;
}

/* A chunk of the result: what block j, inside block i, holds. */
static void fill_chunk(struct contract *c, loop_node *chunk)
{
	loop_kernel *k = c->k;
	loop_node *panel =
		block(c, c->j, (int64_t)c->lanes * c->vectors, NULL);

	loop_node_adopt(k->a, chunk, elements(c, 1, c->last->child));
	add_panel(c, panel);
	loop_node_adopt(k->a, panel, block(c, c->i, c->rows, tile(c)));
	loop_node_adopt(k->a, chunk, block(c, c->sum, c->sum_block, panel));
	if (c->last->n_child > 2)
		loop_node_adopt(k->a, chunk,
			elements(c, c->last->n_child - 2, c->last->child + 2));
}

static int64_t pieces(const struct contract *c, int32_t var, int64_t size)
{
	return ceil_div(c->k->var[var].extent, size);
}

/* Loops over batches around the blocks; chunks as far as there may be. */
static void build(struct contract *c)
{
	loop_kernel *k = c->k;
	loop_node *columns = block(c, c->j, c->column_chunk, NULL);
	loop_node *top = block(c, c->i, c->row_chunk, columns), *n;
	int64_t chunks = 1, size;

	fill_chunk(c, columns);
	for (int32_t v = k->n_vars - 1; v >= 0; v--)
		if ((c->chain & BIT(v)) != 0 && v != c->i && v != c->j)
			top = loop_node_for(k->a, v, top);
	for (n = top;; n = n->child[0]) {
		size = pieces(c, n->var, n->kind == LOOP_FOR ? 1 : n->size);
		if (chunks > k->target.max_chunks / size)
			break;
		chunks *= size;
		n->parallel = true;
		if (n == columns)
			break;
	}
	k->phase[0].root[0] = top;
	k->phase[0].n_chunks = chunks;
	loop_link(k);
}

bool loop_contract(loop_kernel *k)
{
	struct contract c = {.k = k};

	if (loop_writes_input(k) || k->n_eqns >= 63 || !find_tree(&c) || !classify(&c) ||
		!choose_sizes(&c))
		return false;
	build(&c);
	return true;
}
