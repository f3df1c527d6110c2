/*
 * stage.c: copies inputs, tile by tile, into buffers.
 *
 * Transposes. The last loop of a chain walks the result; an input whose neighbours
 * are along another loop of the chain would be read in jumps. Both loops are cut
 * into tiles, and the tile of the input is copied by transposing small squares in
 * registers, so that memory is accessed only along lines.
 *
 *   for i { for j { o[i,j] = x[j,i] } }   ->
 *   block i { block j { stage x; for i { for j { o[i,j] = tile[i,j] } } } }
 *
 * On a machine with blocks of warps, the tile is an array that the warps share. They
 * copy its lines as they are in memory, and read it across. Its rows are padded, so
 * that the lanes of a warp find their elements in different banks (loop/locate.c):
 *
 *   block i by 32 { block j by 32 {
 *     for j by warp { for i lanes 32 { tile = x[j,i] } }
 *     for i by warp { for j lanes 32 { o[i,j] = tile } } } }
 *
 * Columns. A block of columns that several loop nests read is copied: the first
 * nest reads it, and the next ones find it in the cache, with dense rows. (In the
 * tensor, rows at a distance of a power of two share few cache sets.)
 *
 *   block j { for i { for j { max= x } } for i { for j { exp(x - m) } } }   ->
 *   block j { for i { for j { stage x; max= x } } for i { for j { .. } } }
 *
 * A stage is an equation "x = x": its buffer is placed as others, and reads of x
 * inside the current tile become reads of the buffer.
 */
#include "schedule/local.h"

/* Does `at` reach each element of the tensor once, row-major? */
bool loop_covers(
	const loop_kernel *k, int32_t tensor, const ix_form *at, loop_set vars)
{
	int64_t covered = 1;
	loop_set todo = vars;

	while (todo != 0) {
		loop_set before = todo;

		for (int32_t i = 0; i < k->n_vars; i++) {
			int64_t s;

			if ((todo & BIT(i)) == 0 ||
				!ix_stride(at, i, k->var[i].extent, &s) ||
				s != covered)
				continue;
			covered *= k->var[i].extent;
			todo &= ~BIT(i);
		}
		if (todo == before)
			return false;
	}
	return at->c0 == 0 && covered == k->s->tensor.at[tensor].numel;
}

/* ---- transposes ---- */

struct find_jump {
	loop_kernel *k;
	loop_set chain;
	int32_t j;
	int32_t i; /* result: the variable along which its elements are neighbours */
	int32_t tensor;
	const ix_form *at;
	bool shared; /* the tile is copied by the warps of a block */
};

static bool decline(
	loop_kernel *k, decide_kind why, int32_t tensor, int64_t a, int64_t b)
{
	loop_decide(k, why, tensor, -1, a, b);
	return false;
}

/* Can, and should, a tensor that is read across its lines be copied in squares? */
static bool may_turn(const struct find_jump *f, const struct loop_access *a,
	int64_t size, int64_t bytes)
{
	loop_kernel *k = f->k;

	if (!f->shared && size != 4 && size != 8)
		return decline(k, DECIDE_SQUARES_DTYPE, a->tensor, size, 0);
	if (bytes < k->machine->memory[MACHINE_L1].bytes)
		return decline(k, DECIDE_SQUARES_SMALL, a->tensor, bytes, 0);
	return loop_covers(k, a->tensor, a->at, loop_form_vars(a->at)) ||
	       decline(k, DECIDE_SQUARES_PART, a->tensor, 0, 0);
}

static void on_access(void *arg, const struct loop_access *a)
{
	struct find_jump *f = arg;
	const sys_tensor *t = &f->k->s->tensor.at[a->tensor];
	int64_t s, bytes = (int64_t)dtype_size(t->dtype);
	int32_t i, e, c;

	if (a->write || f->i >= 0 || loop_maker(f->k, a->tensor, &e, &c) ||
		!ix_stride(a->at, f->j, f->k->var[f->j].extent, &s) || s < 2)
		return;
	for (i = 0; i < f->k->n_vars; i++)
		if ((f->chain & BIT(i)) != 0 && i != f->j &&
			ix_stride(a->at, i, f->k->var[i].extent, &s) &&
			s == 1 && may_turn(f, a, bytes, t->numel * bytes)) {
			f->i = i;
			f->tensor = a->tensor;
			f->at = a->at;
		}
}

/* The phase that consists of n; -1: none does, or it has no blocks of warps. */
static int32_t phase_of_warps(const loop_kernel *k, const loop_node *n)
{
	for (int32_t p = 0; p < k->n_phases && k->machine->block.warps > 1; p++)
		if (k->phase[p].n_roots == 1 && k->phase[p].root[0] == n)
			return p;
	return -1;
}

/* A loop by warp over `row`, around one by lane over `line` that does what m does. */
static loop_node *rows_by_warp(
	loop_kernel *k, int32_t row, int32_t line, const loop_node *m)
{
	loop_node *cell = loop_node_copy(k->a, m), *n;

	cell->var = line;
	n = loop_node_for(k->a, row, cell);
	n->by_warp = true;
	return n;
}

/* Fills block b, in which a line of the tile is walked along i in memory, and along
 * f->j by the statements of m. */
static void fill_tile(loop_kernel *k, const struct find_jump *f, loop_node *b,
	const loop_node *m, int32_t square, int32_t phase)
{
	int32_t eqn = loop_add_stage(k, f->tensor, f->at);
	loop_node *stage = loop_node_new(
		k->a, phase >= 0 ? LOOP_STMT : LOOP_STAGE), *copy;

	stage->eqn = eqn;
	if (phase >= 0) {
		copy = loop_node_for(k->a, f->i, stage);
		copy->lanes = square;
		copy->unroll = 1;
		loop_node_adopt(k->a, b, rows_by_warp(k, f->j, f->i, copy));
		loop_node_adopt(k->a, b, rows_by_warp(k, f->i, f->j, m));
		k->phase[phase].warps = k->machine->block.warps;
		return;
	}
	stage->var = f->i;
	stage->lanes = square;
	loop_node_adopt(k->a, b, stage);
	loop_node_adopt(k->a, b,
		loop_node_for(k->a, f->i, loop_node_copy(k->a, m)));
}

static bool has_tiles(const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (has_tiles(n->child[i]))
			return true;
	return n->kind == LOOP_TILE;
}

/* Is n part of a nest with tiles of products, whose loops warps share? */
static bool is_by_tiles(const loop_node *n)
{
	while (n->up != NULL)
		n = n->up;
	return has_tiles(n);
}

/* n .. m: a chain of loops; the children of m are statements */
bool loop_stage_transpose(loop_kernel *k, loop_node *n, loop_node *m)
{
	int32_t phase = phase_of_warps(k, n);
	struct find_jump f = {k, 0, m->var, -1, -1, NULL, phase >= 0};
	loop_node *u, *b;
	int64_t side, size, square;

	for (u = n;; u = u->child[0]) {
		f.chain |= BIT(u->var);
		if (u == m)
			break;
	}
	if (n == m || k->n_eqns >= 63)
		return false;
	loop_each_access(k, m, on_access, &f);
	if (f.i < 0)
		return false;
	if (k->machine->block.warps > 1 && is_by_tiles(n))
		return decline(k, DECIDE_SQUARES_TILES, f.tensor, 0, 0);
	/* squares of whole vectors, for any number of lanes of the loop */
	size = (int64_t)dtype_size(k->s->tensor.at[f.tensor].dtype);
	square = machine_lanes(k->machine, (int32_t)size);
	if (k->var[f.i].extent < square || k->var[f.j].extent < square)
		return decline(k, DECIDE_SQUARES_SHORT, f.tensor,
			k->var[f.i].extent < k->var[f.j].extent
				? k->var[f.i].extent
				: k->var[f.j].extent,
			square);
	loop_decide(k, phase < 0 ? DECIDE_SQUARES_TAKEN : DECIDE_SQUARES_SHARED,
		f.tensor, -1, square, k->machine->block.warps);
	/* the variable moves down to the loop above m */
	for (u = n; u->var != f.i; u = u->child[0])
		;
	for (; u->child[0] != m; u = u->child[0])
		loop_node_take_var(u, u->child[0]);
	u->var = f.i;
	u->n_needs = 0;
	side = phase < 0 ? k->machine->schedule.turn_bytes / size : square;
	b = loop_node_new(k->a, LOOP_BLOCK);
	b->var = f.j;
	b->size = side;
	fill_tile(k, &f, b, m, (int32_t)square, phase);
	u->kind = LOOP_BLOCK;
	u->size = side;
	u->n_child = 0;
	loop_node_adopt(k->a, u, b);
	loop_link(k);
	return true;
}

/* ---- columns ---- */

struct column {
	loop_kernel *k;
	int32_t j;
	loop_set outer; /* the blocked variable and those of loops around it */
	int32_t n;
	struct {
		int32_t tensor, times;
		const ix_form *at;
		const loop_node *leaf;
	} at[8];
};

static void on_column(void *arg, const struct loop_access *a)
{
	struct column *c = arg;
	int32_t i, e, comp;
	int64_t s;

	if (a->write || loop_maker(c->k, a->tensor, &e, &comp) ||
		!ix_stride(a->at, c->j, c->k->var[c->j].extent, &s) ||
		s != 1 || c->n == 8 || a->leaf->kind != LOOP_STMT)
		return;
	for (i = 0; i < c->n; i++)
		if (c->at[i].tensor == a->tensor) {
			c->at[i].times += c->at[i].leaf->up != a->leaf->up;
			return;
		}
	if (!loop_covers(c->k, a->tensor, a->at, loop_form_vars(a->at)) ||
		loop_form_vars(a->at) == BIT(c->j))
		return;
	c->at[c->n].tensor = a->tensor;
	c->at[c->n].at = a->at;
	c->at[c->n].times = 1;
	c->at[c->n++].leaf = a->leaf;
}

/* Checks that readers find the copies of the stage. */
struct reads {
	loop_kernel *k;
	int32_t tensor;
	const ix_form *at;     /* the elements that are copied, */
	const loop_node *leaf; /* before this leaf, */
	const loop_node *block; /* in this block */
	bool late;
};

bool loop_is_below(const loop_node *n, const loop_node *top)
{
	while (n != NULL && n != top)
		n = n->up;
	return n == top;
}

/* A leaf that reads the tensor, as a number or as an index of something else. */
static void check_reader(struct reads *r, const loop_node *leaf)
{
	const loop_node *n = leaf->up;

	if (!loop_leaf_reads(r->k, leaf, r->tensor))
		return;
	while (!loop_is_below(r->leaf, n))
		n = n->up;
	/* in a loop with the stage: the same element, not a later one, and not as an
	 * index of something else */
	r->late |= !loop_is_below(leaf, r->block) || leaf->order < r->leaf->order ||
		   (n != r->block &&
			   !loop_leaf_reads_at(r->k, leaf, r->tensor, r->at));
}

static void check_readers(struct reads *r, const loop_node *n)
{
	if (!loop_is_loop(n))
		check_reader(r, n);
	for (int32_t i = 0; i < n->n_child; i++)
		check_readers(r, n->child[i]);
}

/*
 * A reader before the block, or of a row that is copied later, would find no
 * elements; a reader after the block would find only the last block.
 */
static bool is_read_late(loop_kernel *k, struct reads r)
{
	for (int32_t p = 0; p < k->n_phases; p++)
		for (int32_t i = 0; i < k->phase[p].n_roots; i++)
			check_readers(&r, k->phase[p].root[i]);
	return r.late;
}

/* Bytes of the copies of one column; the block is not cut yet. */
int64_t loop_stage_bytes(loop_kernel *k, const loop_node *block)
{
	struct column c = {.k = k, .j = block->var};
	int64_t sum = 0;
	int32_t i, v;

	loop_each_access(k, block, on_column, &c);
	for (i = 0; i < c.n; i++) {
		int64_t b = (int64_t)dtype_size(
			k->s->tensor.at[c.at[i].tensor].dtype);

		for (v = 0; v < k->n_vars; v++)
			if ((loop_form_vars(c.at[i].at) & BIT(v) &
				    ~loop_node_open(block)) != 0)
				b *= k->var[v].extent;
		sum += c.at[i].times > 1 ? b : 0;
	}
	return sum;
}

/* The innermost block around n by which elements at `at` are told apart: copies made
 * in n are of that block alone. */
static const loop_node *block_of_copies(const loop_node *n, const ix_form *at)
{
	while (n->kind != LOOP_BLOCK || (loop_form_vars(at) & BIT(n->var)) == 0)
		n = n->up;
	return n;
}

/* The statements of the block are already inside loops over its variable. */
void loop_stage_columns(loop_kernel *k, loop_node *block)
{
	struct column c = {.k = k, .j = block->var};
	int32_t i, v;

	loop_each_access(k, block, on_column, &c);
	for (i = 0; i < c.n; i++) {
		loop_node *up = c.at[i].leaf->up, **list, *stage;
		int64_t bytes = block->size *
				(int64_t)dtype_size(
					k->s->tensor.at[c.at[i].tensor].dtype);

		for (v = 0; v < k->n_vars; v++)
			if ((loop_form_vars(c.at[i].at) & BIT(v) &
				    ~loop_node_open(block)) != 0 &&
				v != c.j)
				bytes *= k->var[v].extent;
		if (c.at[i].times < 2 || k->n_eqns >= 63 ||
			(loop_form_vars(c.at[i].at) & ~loop_node_open(up)) != 0)
			continue;
		if (bytes > k->machine->memory[MACHINE_L2].bytes) {
			decline(k, DECIDE_KEEP_LARGE, c.at[i].tensor, bytes,
				k->machine->memory[MACHINE_L2].bytes);
			continue;
		}
		if (is_read_late(k, (struct reads){k, c.at[i].tensor, c.at[i].at,
					    c.at[i].leaf,
					    block_of_copies(up, c.at[i].at),
					    false})) {
			decline(k, DECIDE_KEEP_LATE, c.at[i].tensor, 0, 0);
			continue;
		}
		loop_decide(k, DECIDE_KEEP_TAKEN, c.at[i].tensor, -1, bytes, 0);
		stage = loop_node_new(k->a, LOOP_STMT);
		stage->eqn = loop_add_stage(k, c.at[i].tensor, c.at[i].at);
		list = arena_array(k->a, loop_node *, up->n_child + 1);
		list[0] = stage;
		memcpy(list + 1, up->child, (size_t)up->n_child * sizeof *list);
		up->child = list;
		up->n_child++;
	}
	loop_link(k);
}
