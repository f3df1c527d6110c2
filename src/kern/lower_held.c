/*
 * lower_held.c: lowers sums that the warps of a block hold in registers until the
 * last term is added, and the loops that walk them then.
 *
 * Consumes the buffers of tiles with `held`, and the two nested loops over rows and
 * columns that read them; produces, for sums as matrix instructions have them,
 *
 *   var %a0: f32x32 = zero by warp; ..     where the sums begin
 *   for %i by warp {
 *     for %l = 0 .. 32 by lane {
 *       %r = idiv %l, 4; %c = imod %l, 4
 *       %x0 = lane %a0, %l; statements for row %r, column 2 %c
 *       %x1 = lane %a1, %l; statements for row %r, column 2 %c + 1; .. } }
 *
 * and for those of other tiles the statements for each row and vector of columns.
 */
#include "kern/lower.h"

static const loop_node *tile_of(const lowering *lw, int32_t buf)
{
	return loop_tile_of(lw->k, lw->k->buf[buf].held - 1);
}

/* Registers that have the sums of the tile. */
static int32_t count_of(const loop_node *tile)
{
	return tile->matrix ? KERN_MMA_EACH * tile->unroll
			    : (int32_t)tile->size * tile->unroll;
}

void lw_declare_held(lowering *lw, int32_t buf)
{
	const loop_node *t = tile_of(lw, buf);
	int32_t lanes = t->matrix ? KERN_MMA_LANES : t->lanes;
	val *v = arena_array(lw->a, val, count_of(t));

	for (int32_t i = 0; i < count_of(t); i++) {
		v[i] = lw_type(lw, lw->k->buf[buf].dtype, lanes);
		v[i].id = lw->k->machine->block.warps > 1 && lw->dealt == 0
				? kern_var_by_warp(lw->b,
					  kern_num(v[i].dt, v[i].lanes))
				: kern_var(lw->b, kern_num(v[i].dt, v[i].lanes), 0);
	}
	lw->sums[buf] = v;
}

void lw_take_held(struct tile *t)
{
	lowering *lw = t->lw;
	const val *v = lw->sums[lw->k->buf_of[t->n->eqn][0]];

	for (int32_t r = 0; r < t->rows; r++)
		for (int32_t i = 0; i < t->vectors; i++)
			t->acc[r * t->vectors + i] = v[r * t->n->unroll + i];
}

void lw_take_matrix(struct tile *t, kern_val *acc)
{
	lowering *lw = t->lw;
	const val *v = lw->sums[lw->k->buf_of[t->n->eqn][0]];

	for (int32_t i = 0; i < KERN_MMA_EACH * t->vectors; i++)
		acc[i] = v[i].id;
}

/* ---- the loops that walk them ---- */

struct held {
	lowering *lw;
	const loop_node *rows, *columns, *tile;
	of_held *body;
};

/* What is applied to a complete sum. */
static val finished(lowering *lw, const expr *finish, val sum)
{
	int32_t memo = lw->memo.n;

	if (finish == NULL)
		return sum;
	lw->param[0] = sum;
	sum = lw_ex(lw, finish);
	lw->memo.n = memo;
	return lw->lanes > 1 ? lw_to_lanes(lw, sum) : sum;
}

/* The statements for one of the registers, or for a lane of it. */
static void statements(struct held *h, int32_t number, const form *lane)
{
	lowering *lw = h->lw;
	struct marks m = lw_mark(lw);

	for (int32_t i = 0; i < lw->k->n_bufs; i++) {
		const loop_buf *b = &lw->k->buf[i];
		val sum;

		if (b->where != LOOP_HELD || lw->sums[i] == NULL ||
			!loop_same_sums(tile_of(lw, i), h->tile))
			continue;
		sum = lw->sums[i][number];
		if (lane != NULL)
			sum = lw_lane_of(lw, sum, *lane);
		lw->reg[i][0] = b->held == 1 + b->eqn
				     ? finished(lw, tile_of(lw, i)->finish, sum)
				     : sum;
	}
	lw->number = number;
	lw->of_lane = lane != NULL ? *lane : NULL;
	h->body(lw, h->rows);
	lw->of_lane = NULL;
	lw_release(lw, m);
}

void lw_each_lane(lowering *lw, const loop_node *tile, int32_t vectors,
	of_lane *fn, void *arg)
{
	int32_t row = tile->row_var, column = tile->var;
	form l, r, c;

	l = lw_form_of(lw, lw_for_lanes(lw, KERN_MMA_LANES));
	r = kern_div(lw->b, l, KERN_MMA_COLUMNS / 2);
	c = lw_scale(lw, kern_mod(lw->b, l, KERN_MMA_COLUMNS / 2), 2);
	for (int32_t i = 0; i < KERN_MMA_EACH * vectors; i++) {
		int32_t down = KERN_MMA_ROWS / 2 * (i / 2 % 2), open;
		int32_t right = KERN_MMA_COLUMNS * (i / KERN_MMA_EACH) + i % 2;

		kern_scope(lw->b);
		lw->var[row] = lw_add(lw, lw->span[row].lo, lw_addc(lw, r, down));
		lw->var[column] = lw_add(
			lw, lw->span[column].lo, lw_addc(lw, c, right));
		open = lw_open_inside(lw, row, KERN_MMA_ROWS);
		open += lw_open_inside(
			lw, column, (int64_t)KERN_MMA_COLUMNS * vectors);
		fn(arg, i, l);
		lw_close_loops(lw, open + 1);
	}
	lw_close(lw);
	lw->var[row] = lw->span[row].lo;
	lw->var[column] = lw->span[column].lo;
}

static void of_register(void *arg, int32_t number, form lane)
{
	statements(arg, number, &lane);
}

/* One of the sums of a tile that nobody holds. */
struct summed {
	struct tile *t;
	const kern_val *acc;
};

static void store_sum(void *arg, int32_t number, form lane)
{
	struct summed *s = arg;
	lowering *lw = s->t->lw;
	struct marks m = lw_mark(lw);
	struct place_of p = lw_place_tensor(
		lw, s->t->e->e->out[0], s->t->e->at, false);
	val sum = lw_type(lw, s->t->e->acc[0], KERN_MMA_LANES), later, old;

	sum.id = s->acc[number];
	sum = finished(lw, s->t->n->finish, lw_lane_of(lw, sum, lane));
	if (!s->t->n->start || !s->t->all_first) {
		later = s->t->n->start ? lw_not(lw, s->t->first)
				       : lw_bool(lw, true);
		old = lw_load_scalar(
			lw, &p, 0, s->t->n->start ? &later : NULL);
		sum = lw_call2(lw, lw->fn.add, sum, sum, old);
	}
	lw_store(lw, &p, sum);
	lw_release(lw, m);
}

void lw_store_finished(struct tile *t, const kern_val *acc)
{
	struct summed s = {t, acc};

	lw_each_lane(t->lw, t->n, t->vectors, store_sum, &s);
}

static void by_vector(void *arg, int64_t rows, int64_t columns)
{
	struct held *h = arg;
	lowering *lw = h->lw;
	const loop_node *t = h->tile;

	kern_scope(lw->b);
	lw->vvar = t->var;
	lw->lanes = t->lanes;
	for (int32_t r = 0; r < rows; r++)
		for (int32_t v = 0; (int64_t)v * t->lanes < columns; v++) {
			int64_t left = columns - (int64_t)v * t->lanes;

			kern_scope(lw->b);
			lw->var[t->row_var] = lw->span[t->row_var].lo;
			lw->var[t->var] = lw->span[t->var].lo;
			lw->plus[t->row_var] = r;
			lw->plus[t->var] = (int64_t)v * t->lanes;
			lw->dead = left < t->lanes ? t->lanes - (int32_t)left : 0;
			statements(h, r * t->unroll + v, NULL);
			lw_close(lw);
		}
	lw->plus[t->row_var] = lw->plus[t->var] = 0;
	lw->dead = 0;
	lw->lanes = 1;
	lw->vvar = -1;
	lw_close(lw);
}

void lw_walk_held(lowering *lw, const loop_node *n, of_held *body)
{
	struct held h = {lw, n, n->child[0],
		loop_tile_of(lw->k, n->held - 1), body};
	struct marks m = lw_mark(lw);
	size_t n_vars = (size_t)lw->k->n_vars;
	form *var = arena_copy(lw->a, lw->var, n_vars * sizeof *var);

	if (h.tile->matrix) {
		int32_t first = lw->rows.n;

		kern_scope(lw->b);
		lw_open_rows(lw, h.columns);
		lw_each_lane(lw, h.tile, h.tile->unroll, of_register, &h);
		lw_close_rows(lw, h.tile, first);
		lw_close(lw);
	} else
		lw_each_size(lw, h.columns, n->var, h.columns->var, by_vector, &h);
	memcpy(lw->var, var, n_vars * sizeof *var);
	lw_release(lw, m);
}
