/*
 * lower_tiles.c: lowers tiles that are added up in tile registers.
 *
 * Consumes a TILE of neighbours (lower_dot.c) that is `tiled`. Before and behind the
 * statement its sums are in memory: where the result is, if the columns adjoin there and
 * are stored as they are added up; else in an array of the tile.
 *
 *   tiles b1[..] rows 64 of p1[..] rows 1024, b0[..] rows 64, 32 by 32 by 512 zero %first
 */
#include "kern/lower.h"

/* The sums as the result has them: those of the tile, and no more. */
static bool finds_result(struct tile *t)
{
	lowering *lw = t->lw;
	const loop_node *n = t->n;
	struct place_of p, next;
	int64_t step = 0;

	if (n->finish != NULL || (n->checked && !t->sure) || n->offset[0] != 0 ||
		n->offset[1] != 0 || t->valid < n->lanes)
		return false;
	p = lw_place_tensor(lw, t->e->e->out[0], t->e->at, false);
	if (p.array < 0 || !p.affine || p.stride != 1 ||
		lw->b->k->array.at[p.array].dtype != t->e->acc[0])
		return false;
	t->sums = kern_element(p.array, lw_element(lw, &p, 0));
	lw_move_to(t, 1, 0);
	next = lw_place_tensor(lw, t->e->e->out[0], t->e->at, false);
	if (!kern_form_apart(t->sums.at, lw_element(lw, &next, 0), &step))
		step = 0;
	lw_move_to(t, 0, 0);
	t->sums_step = step;
	return step >= (int64_t)t->vectors * n->lanes;
}

/* Stores zeros in all sums. */
static void clear(struct tile *t)
{
	lowering *lw = t->lw;
	val zero = lw_to_lanes(lw, lw_const(lw, t->e->acc[0], 0, 0));

	for (int32_t r = 0; r < t->rows; r++)
		for (int32_t v = 0; v < t->vectors; v++)
			lw_store_to(lw, t->sums.array,
				lw_addc(lw, t->sums.at, r * t->sums_step +
								(int64_t)v * lw->lanes),
				zero, 0);
}

/*
 * Where sums begin, the statement does not read them; if it may not come, or comes several
 * times, zeros are stored before. always: they begin here whatever the block is.
 */
static void begin(struct tile *t, bool always)
{
	lowering *lw = t->lw;
	bool once = t->n->n_needs == 0 && t->n->n_sums == 1;

	always |= t->all_first;
	if (once) {
		t->begins = always ? lw_bool(lw, true) : t->first;
		return;
	}
	if (!always)
		lw_if(lw, t->first);
	clear(t);
	lw_close_loops(lw, !always);
}

static void use_array(struct tile *t)
{
	t->array = kern_stack(t->lw->b, t->e->acc[0],
		(int64_t)t->rows * t->vectors * t->lw->lanes, false);
	t->sums = kern_element(t->array, lw_num(t->lw, 0));
	t->sums_step = (int64_t)t->vectors * t->lw->lanes;
}

bool lw_tiles_in_memory(struct tile *t)
{
	const loop_node *n = t->n;

	if (n->offset[0] != 0 || n->offset[1] != 0)
		return false;
	if (n->finish != NULL) {
		use_array(t);
		begin(t, true);
		return true;
	}
	if (!finds_result(t))
		return false;
	if (n->start)
		begin(t, false);
	return true;
}

static void put(struct tile *t, int32_t row, int32_t vector)
{
	int64_t i = (int64_t)row * t->vectors + vector;

	lw_store_to(t->lw, t->sums.array, lw_num(t->lw, i * t->lw->lanes),
		t->acc[i], 0);
}

static void take(struct tile *t, int32_t row, int32_t vector)
{
	int64_t i = (int64_t)row * t->vectors + vector;

	lw_set(t->lw, t->acc[i],
		lw_load_from(t->lw, t->sums.array,
			lw_num(t->lw, i * t->lw->lanes),
			lw_type(t->lw, t->e->acc[0], t->lw->lanes), 0));
}

void lw_begin_tiles(struct tile *t)
{
	if (t->in_memory)
		return;
	use_array(t);
	lw_each(t, put);
}

void lw_end_tiles(struct tile *t)
{
	if (t->in_memory)
		return;
	lw_each(t, take);
	t->array = 0;
}

void lw_add_tiles(struct tile *t, int32_t terms)
{
	const loop_node *n = t->n;
	const expr *x = n->factor[0], *y = n->factor[1];
	struct place_of p = lw_place_tensor(t->lw, y->tensor, y->form, false);
	kern_stmt s = {.x = t->begins.id, .rows = t->rows,
		.width = t->vectors * n->lanes, .terms = terms};

	s.to = t->sums;
	s.l = t->sums_step;
	s.at = lw_rows(t->lw, x->tensor, x->form, n->row_var, n->sum[0], &s.n);
	s.from = kern_element(p.array, lw_element(t->lw, &p, 0));
	s.m = lw_step_of(t->lw, y->tensor, y->form, n->sum[0], n->dot, s.from.at);
	kern_matrix(t->lw->b, KERN_TILES, &s);
}
