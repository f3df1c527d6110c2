/*
 * subscripts.c: where the elements of a buffer lie: its subscripts, and their strides.
 *
 * Consumes a buffer with its scope; its subscripts are the variables of its value that are
 * not walked at or above the scope, each with the extent of its innermost block. Their
 * order, and what lies between rows, follow from who reads them: vectors, banks of memory,
 * matrix instructions.
 */
#include "loop/tree.h"

static int64_t block_of(const loop_node *scope, int32_t var, int64_t extent)
{
	const loop_node *n;

	for (n = scope; n != NULL; n = n->up)
		if (n->kind == LOOP_BLOCK && n->var == var)
			return n->size < extent ? n->size : extent;
	return extent;
}

/* The variable of a vector loop below scope: its elements must be neighbours. */
static int32_t vector_var(const loop_node *n)
{
	int32_t i, v;

	if ((n->kind == LOOP_FOR || n->kind == LOOP_TILE) && n->lanes > 1)
		return n->var;
	for (i = 0; i < n->n_child; i++) {
		v = vector_var(n->child[i]);
		if (v >= 0)
			return v;
	}
	return -1;
}

/* .. of the loop that computes the value, or -1 */
static int32_t lanes_of_maker(const loop_node *n, int32_t eqn, int32_t lanes)
{
	int32_t v = -1;

	if ((n->kind == LOOP_FOR || n->kind == LOOP_TILE) && n->lanes > 1)
		lanes = n->var;
	if ((n->kind == LOOP_TILE || n->kind == LOOP_STMT) && n->eqn == eqn)
		return lanes;
	for (int32_t i = 0; i < n->n_child && v < 0; i++)
		v = lanes_of_maker(n->child[i], eqn, lanes);
	return v;
}

/* The tile by matrix instructions of which the equation copies a factor; NULL: none. */
static const loop_node *matrix_of(const loop_kernel *k, int32_t eqn)
{
	for (int32_t i = 0; i < k->n_eqns; i++) {
		const loop_node *t = loop_tile_of(k, i);

		for (int32_t f = 0; t != NULL && t->matrix && f < 2; f++)
			if (t->factor[f]->kind == EX_READ &&
				t->factor[f]->tensor == k->eqn[eqn].e->out[0])
				return t;
	}
	return NULL;
}

static void order_vars(loop_kernel *k, const loop_buf *b, int32_t *var)
{
	const loop_eqn *e = &k->eqn[b->eqn];
	int32_t i, j, fast = -1;
	/* copies whose order a product chose */
	bool fixed = e->group > 0 ||
		     (e->pack && (k->machine->block.warps > 1 ||
					 matrix_of(k, b->eqn) != NULL));

	if (b->scope != NULL && !fixed)
		fast = lanes_of_maker(b->scope, b->eqn, -1);
	if (b->scope != NULL && !fixed &&
		(fast < 0 || (e->left & BIT(fast)) == 0))
		fast = vector_var(b->scope);
	for (i = 1; i < b->n_vars; i++)
		for (j = i; j > 0; j--) {
			int64_t s, t;
			int32_t v = var[j];

			ix_stride(e->at, var[j - 1], 1, &s);
			ix_stride(e->at, v, 1, &t);
			if (v == fast || (var[j - 1] != fast && t <= s))
				break;
			var[j] = var[j - 1];
			var[j - 1] = v;
		}
}

/* Pads rows whose distance is a multiple of what one line of each set holds:
 * they would share one set of the cache. Rows that matrix instructions read at once are
 * padded to multiples of the bytes that they read at a time, and once more, so that
 * eight rows do not share banks of memory; where lanes read f32 (wide), four rows. */
static int64_t apart(const machine *m, tn_dtype t, int64_t row, bool at_once, bool wide)
{
	int64_t size = (int64_t)dtype_size(t), line = m->product.line / size;
	int64_t sets = m->memory[MACHINE_L1].bytes / m->product.ways / size;

	if (m->matrix.rows > 0 && (size <= 2 || at_once)) {
		int64_t each = m->matrix.pad_bytes / size;

		return each + (each - row % each) % each;
	}
	if (wide) {
		int64_t each = 2 * m->matrix.pad_bytes / size, all = 4 * each;

		return (all + each - row % all) % all;
	}
	return row % sets == 0 ? line : 0;
}

/* Elements of a row of a tile that warps share, of which the lanes read a column:
 * so many words that none of them is in the same bank as another. */
static int64_t odd_row(const machine *m, tn_dtype t, int64_t row)
{
	int64_t size = (int64_t)dtype_size(t), bank = m->block.bank_bytes;
	int64_t each = size > bank ? size : bank;

	while (bank > 0 && (row * size % bank != 0 || row * size / each % 2 == 0))
		row++;
	return row;
}

/* Does it copy the columns of a tile of several warps, or rows that they take from memory? */
static bool is_swizzled(const loop_kernel *k, const loop_node *t, int32_t eqn)
{
	for (int32_t f = t != NULL && t->in_memory ? 0 : 1; t != NULL && f < 2; f++)
		if (t->warps > 1 && t->factor[f]->kind == EX_READ &&
			t->factor[f]->tensor == k->eqn[eqn].e->out[0])
			return true;
	return false;
}

/* Elements between rows of a copy, along `last`. */
static int64_t padding(const loop_kernel *k, int32_t eqn, int32_t last, int64_t row)
{
	const loop_node *t = matrix_of(k, eqn);
	bool wide = t != NULL && k->eqn[eqn].acc[0] == TN_F32;

	if (is_swizzled(k, t, eqn))
		return 0;
	return apart(k->machine, k->eqn[eqn].acc[0], row,
		wide && t->factor[1]->dtype == TN_F32 && last == t->sum[0], wide);
}

/* The columns of a row: of a copy in groups whole vectors, as they are stored whole. */
static int64_t in_vectors(const loop_kernel *k, const loop_buf *b, int64_t n)
{
	int64_t lanes;

	if (b->group <= 1)
		return n;
	lanes = machine_lanes(k->machine,
		(int32_t)dtype_size(k->eqn[b->eqn].acc[0]) * b->group);
	return (n + lanes - 1) / lanes * lanes;
}

/* Do the lanes of a statement of eqn walk another variable than `fast`? */
static bool walks_another(const loop_node *n, int32_t eqn, int32_t fast)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (walks_another(n->child[i], eqn, fast))
			return true;
	return n->kind == LOOP_STMT && n->eqn == eqn && n->up != NULL &&
	       n->up->lanes > 1 && n->up->var != fast;
}

/* Do lanes have elements of one column of the rows, where banks matter? */
static bool is_across(const loop_kernel *k, const loop_buf *b, int32_t fast)
{
	const loop_eqn *e = &k->eqn[b->eqn];
	bool across = false;

	if (e->stage)
		return k->phase[b->phase].warps > 1;
	if (!e->pack || k->machine->block.warps < 2 || matrix_of(k, b->eqn) != NULL ||
		(int32_t)dtype_size(b->dtype) != k->machine->block.bank_bytes)
		return false;
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			across |= walks_another(k->phase[p].root[i], b->eqn, fast);
	return across;
}

void loop_subscripts(loop_kernel *k, loop_buf *b)
{
	loop_set left = k->eqn[b->eqn].left & ~loop_node_open(b->scope);
	int32_t *var = arena_array(k->a, int32_t, k->n_vars + 1), i;
	int64_t *extent = arena_array(k->a, int64_t, k->n_vars + 1);
	int64_t *stride = arena_array(k->a, int64_t, k->n_vars + 1);

	if (k->eqn[b->eqn].push) /* by element number */
		left = 0;
	for (i = 0; i < k->n_vars; i++)
		if ((left & BIT(i)) != 0)
			var[b->n_vars++] = i;
	order_vars(k, b, var);
	b->group = k->eqn[b->eqn].group;
	b->group_var = k->eqn[b->eqn].group_var;
	b->elems = 1;
	for (i = b->n_vars - 1; i >= 0; i--) {
		extent[i] = block_of(b->scope, var[i], k->var[var[i]].extent);
		if (b->group > 0 && i == b->n_vars - 1)
			b->elems = b->group;
		stride[i] = b->elems;
		if (b->group > 0 && var[i] == b->group_var) {
			stride[i] /= b->group;
			b->elems *= (extent[i] + b->group - 1) / b->group;
			continue;
		}
		if (i == b->n_vars - 1 && k->eqn[b->eqn].panel > 0)
			b->panel = k->eqn[b->eqn].panel;
		b->elems *= b->panel > 0 && i == b->n_vars - 1 ? b->panel
			    : i == b->n_vars - 1 ? in_vectors(k, b, extent[i])
						 : extent[i];
		if (i == b->n_vars - 1 && i > 0 && k->eqn[b->eqn].pack)
			b->elems += padding(k, b->eqn, var[i], b->elems);
		if (i == b->n_vars - 1 && i > 0 && is_across(k, b, var[i]))
			b->elems = odd_row(k->machine, b->dtype, b->elems);
	}
	if (b->panel > 0) {
		int64_t n = extent[b->n_vars - 1];

		b->panel_step = b->elems;
		b->elems *= (n + b->panel - 1) / b->panel;
	}
	if (b->n_vars > 0 && is_swizzled(k, matrix_of(k, b->eqn), b->eqn))
		b->swizzled = (int32_t)extent[b->n_vars - 1];
	if (k->eqn[b->eqn].push)
		b->elems =
			k->s->tensor.at[k->eqn[b->eqn].e->out[b->comp]].numel;
	b->var = var;
	b->extent = extent;
	b->stride = stride;
}
