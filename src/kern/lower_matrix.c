/*
 * lower_matrix.c: lowers a tile whose products are done by matrix instructions.
 *
 * Consumes a TILE node of a machine that has them, whose factors are reads of two
 * bytes, or of one; produces
 *
 *   var %a0: f32x32 = zero; ..      four registers for eight columns
 *   take %a0, .. = o                unless the sums begin here
 *   for %k step 16 { mma bf16 %a0, .. of x, y }
 *   give o = %a0, ..
 *
 * Sums that are held are registers already, and stay there. At the ends of rows, columns and terms they take a part of what instructions take.
 */
#include "kern/lower.h"

int64_t lw_step_of(lowering *lw, int32_t tensor, const ix_form *at, int32_t var,
	int64_t by, const kern_form *x)
{
	struct place_of p;
	int64_t step;

	lw->plus[var] = by;
	p = lw_place_tensor(lw, tensor, at, false);
	if (!kern_form_is_const(lw_sub(lw, lw_element(lw, &p, 0), x), &step))
		lw_bug(lw, "elements of a factor have no distance:",
			lw->s->tensor.at[tensor].name);
	lw->plus[var] = 0;
	return step;
}

kern_access lw_rows(lowering *lw, int32_t tensor, const ix_form *at,
	int32_t row, int32_t along, int64_t *step)
{
	struct place_of p = lw_place_tensor(lw, tensor, at, false);
	kern_access x = kern_element(p.array, lw_element(lw, &p, 0));

	*step = lw_step_of(lw, tensor, at, row, 1, x.at);
	if (lw_step_of(lw, tensor, at, along, 1, x.at) != 1)
		lw_bug(lw, "elements of a row of a matrix do not adjoin:",
			lw->s->tensor.at[tensor].name);
	return x;
}

/* A factor whose elements adjoin along one of two variables; turned: along the
 * other one. */
static kern_access factor_of(lowering *lw, const expr *f, int32_t along,
	int32_t other, int64_t *step, bool *turned)
{
	struct place_of p = lw_place_tensor(lw, f->tensor, f->form, false);
	kern_access x = kern_element(p.array, lw_element(lw, &p, 0));

	*turned = lw_step_of(lw, f->tensor, f->form, along, 1, x.at) != 1;
	return lw_rows(lw, f->tensor, f->form, *turned ? along : other,
		*turned ? other : along, step);
}

/* What the instructions multiply: bytes with and without a sign are one kind. */
static tn_dtype factors_of(const struct tile *t)
{
	tn_dtype y = t->n->factor[1]->dtype;

	return dtype_is_int(y) ? TN_I8 : y;
}

/* Rows and columns of the tile: a part of what the registers have, or all of it. */
static void take_part(const struct tile *t, kern_stmt *s, int32_t terms)
{
	int32_t columns = KERN_MMA_COLUMNS * (t->vectors - 1) + t->valid;

	if (t->rows == KERN_MMA_ROWS && t->valid == KERN_MMA_COLUMNS &&
		terms == kern_mma_terms(factors_of(t)))
		return;
	s->rows = t->rows;
	s->width = columns;
	s->terms = terms;
}

static void move_sums(struct tile *t, kern_kind kind, const kern_val *acc)
{
	kern_stmt s = {.acc = acc, .n_acc = KERN_MMA_EACH * t->vectors};

	take_part(t, &s, kern_mma_terms(factors_of(t)));
	s.terms = 0;
	s.at = lw_rows(t->lw, t->e->e->out[0], t->e->at, t->n->row_var,
		t->n->var, &s.n);
	kern_matrix(t->lw->b, kind, &s);
}

struct products {
	struct tile *t;
	const kern_val *acc;
};

/* So many terms, from the current value of the sum's variable on. */
static void multiply(void *arg, int32_t terms)
{
	const struct products *of = arg;
	struct tile *t = of->t;
	lowering *lw = t->lw;
	const expr *x = t->n->factor[0], *y = t->n->factor[1];
	int32_t sum = t->n->sum[0];
	kern_stmt s = {.acc = of->acc,
		.n_acc = KERN_MMA_EACH * t->vectors,
		.type = kern_num(factors_of(t), 1)};

	if (t->n->warps > 0) {
		s.warps = t->n->warps;
		s.terms = terms;
	} else {
		take_part(t, &s, terms);
	}
	s.at = factor_of(lw, x, sum, t->n->row_var, &s.n, &s.at_turned);
	s.from = factor_of(lw, y, t->n->var, sum, &s.m, &s.from_turned);
	kern_matrix(lw->b, KERN_MMA, &s);
}

/* All terms of the piece, by several warps. */
static void all_at_once(struct products *of)
{
	lowering *lw = of->t->lw;
	int32_t sum = of->t->n->sum[0];
	const struct span *s = &lw->span[sum];
	form was = lw->var[sum];
	int64_t terms;

	if (!kern_form_is_const(lw_sub(lw, s->hi, s->lo), &terms))
		terms = s->len;
	lw->var[sum] = s->lo;
	multiply(of, (int32_t)terms);
	lw->var[sum] = was;
}

/* ---- sums that are not finite ---- */

/* Is a lane of x, which are 0 or NaN, NaN? */
static val is_any_nan(lowering *lw, val x)
{
	val zero = lw_op1(lw, KERN_SPLAT, x, lw_const(lw, TN_F32, 0, 0)), bad = x;

	bad.dt = TN_BOOL;
	bad.mask = (int32_t)dtype_size(TN_F32);
	bad = lw_call2(lw, lw->fn.ne, bad, x, zero);
	return lw_op1(lw, KERN_ANY, (val){0, TN_BOOL, 1, 0}, bad);
}

/* Is one of the sums not finite? */
static val are_bad(struct tile *t, const kern_val *acc)
{
	lowering *lw = t->lw;
	val sum = {acc[0], TN_F32, KERN_MMA_LANES, 0}, x = sum;

	for (int32_t i = 1; i < KERN_MMA_EACH * t->vectors; i++) {
		x.id = acc[i];
		sum = lw_call2(lw, lw->fn.add, sum, sum, x);
	}
	return is_any_nan(lw, lw_call2(lw, lw->fn.sub, sum, sum, sum));
}

struct again {
	struct tile *t;
	const kern_val *acc;
};

/*
 * The sum of the terms up to the end of this block, one by one: of all that the
 * register has, which begins where the sum does, or its piece if it is cut. Conditions
 * of all terms are then applied twice, which does not matter.
 */
static void add_again(void *arg, int32_t number, form lane)
{
	struct again *a = arg;
	lowering *lw = a->t->lw;
	int32_t sum = a->t->n->sum[0];
	struct marks m = lw_mark(lw);
	val one = lw_register(lw, lw_type(lw, TN_F32, 1), 0);
	bool piece = a->t->n->held == 0 && a->t->n->finish != NULL;
	form was = lw->var[sum], lo = lw_start_of(lw, a->t->n, sum);

	if (piece)
		lo = lw->span[sum].lo;
	lw->var[sum] = lw_form_of(lw, lw_for(lw, lo, lw->span[sum].hi));
	lw_set(lw, one,
		lw_call2(lw, lw->fn.add, one, one, lw_ex(lw, a->t->e->body[0])));
	lw_release(lw, m);
	lw_close(lw);
	lw->var[sum] = was;
	kern_set_lane(lw->b, a->acc[number], lane, one.id);
}

static void check_sums(struct tile *t, const kern_val *acc)
{
	struct again a = {t, acc};

	kern_if(t->lw->b, are_bad(t, acc).id, true);
	lw_each_lane(t->lw, t->n, t->vectors, add_again, &a);
	lw_close(t->lw);
}

/* ---- terms that count only under a condition ---- */

/* The factor as instructions multiply it: f32 is rounded, unless its parts are multiplied. */
static const expr *multiplied(lowering *lw, const loop_node *n, int32_t factor)
{
	const expr *arg[IR_MAX_ARGS] = {ex_cast(lw->s, TN_F32, n->factor[factor])};

	if (n->factor[1]->dtype != TN_F32)
		return arg[0];
	return ex_call(lw->s, ir_scalar_find("tf32", 4), arg);
}

/* Is an element of the second factor infinite or NaN? */
static val has_bad_terms(struct tile *t)
{
	lowering *lw = t->lw;
	const loop_node *n = t->n;
	const expr *y = multiplied(lw, n, 1);
	int32_t sum = n->sum[0], lanes = lw->k->machine->lanes;
	int64_t columns = (int64_t)KERN_MMA_COLUMNS * (t->vectors - 1) + t->valid;
	form at = lw->var[sum];
	struct marks m = lw_mark(lw);
	val all, x;

	lw->lanes = lanes;
	lw->vvar = n->var;
	all = lw_register(lw, lw_type(lw, TN_F32, lanes), 0);
	lw->var[sum] = lw_form_of(lw, lw_for(lw, lw->span[sum].lo, lw->span[sum].hi));
	for (int64_t i = 0; i < columns; i += lanes) {
		kern_scope(lw->b);
		lw->plus[n->var] = i;
		lw->dead = columns - i < lanes ? (int32_t)(lanes - columns + i) : 0;
		x = lw_to_lanes(lw, lw_ex(lw, y));
		x = lw_call2(lw, lw->fn.sub, x, x, x); /* 0, or NaN */
		lw_set(lw, all, lw_call2(lw, lw->fn.add, all, all, x));
		lw_release(lw, m);
		lw_close(lw);
	}
	lw_close(lw);
	lw->plus[n->var] = 0;
	lw->dead = 0;
	lw->lanes = 1;
	lw->vvar = -1;
	lw->var[sum] = at;
	return is_any_nan(lw, all);
}

/* Adds the terms of the piece that count, one by one. */
static void add_terms(void *arg, int32_t number, form lane)
{
	const struct again *a = arg;
	lowering *lw = a->t->lw;
	const loop_node *n = a->t->n;
	int32_t sum = n->sum[0];
	struct marks m = lw_mark(lw);
	form was = lw->var[sum];
	const expr *f[IR_MAX_ARGS] = {multiplied(lw, n, 0), multiplied(lw, n, 1)};
	const expr *term = ex_select(lw->s, n->within, ex_call(lw->s, lw->fn.mul, f),
		ex_const_f(lw->s, TN_F32, 0));
	val one = {a->acc[number], TN_F32, KERN_MMA_LANES, 0};

	one = lw_lane_of(lw, one, lane);
	one = lw_register(lw, one, one.id);
	lw->var[sum] = lw_form_of(lw, lw_for(lw, lw->span[sum].lo, lw->span[sum].hi));
	lw_set(lw, one, lw_call2(lw, lw->fn.add, one, one, lw_ex(lw, term)));
	lw_release(lw, m);
	lw_close(lw);
	lw->var[sum] = was;
	kern_set_lane(lw->b, a->acc[number], lane, one.id);
}

/* All terms; those for which a condition does not hold are 0 times the second factor,
 * which is 0 unless that is not finite. */
static void add_all(struct tile *t, const kern_val *acc)
{
	lowering *lw = t->lw;
	struct products all = {t, acc};
	struct again a = {t, acc};
	val bad, sure;
	kern_stmt *s;

	if (t->n->warps > 0) {
		all_at_once(&all);
		return;
	}
	if (t->n->within == NULL) {
		lw_pieces(lw, t->n->sum[0], kern_mma_terms(factors_of(t)), multiply, &all);
		return;
	}
	sure = lw_always(lw, t->n, t->n->within);
	bad = lw_register(lw, lw_type(lw, TN_BOOL, 1), 0);
	lw_if(lw, lw_not(lw, sure));
	lw_set(lw, bad, has_bad_terms(t));
	lw_close(lw);
	s = kern_if(lw->b, bad.id, true);
	lw_each_lane(lw, t->n, t->vectors, add_terms, &a);
	kern_else(lw->b, s);
	lw_pieces(lw, t->n->sum[0], kern_mma_terms(factors_of(t)), multiply, &all);
	lw_close(lw);
}

/* .. unless conditions of all terms hold for none of them. */
static void needed_terms(struct tile *t, const kern_val *acc)
{
	int32_t open;

	if (!lw_open_need(t->lw, t->n, &open))
		return;
	add_all(t, acc);
	if (t->n->checked)
		check_sums(t, acc);
	lw_close_loops(t->lw, open);
}

void lw_matrix(struct tile *t)
{
	lowering *lw = t->lw;
	kern_val *acc = arena_array(lw->a, kern_val, KERN_MMA_EACH * t->vectors);
	bool finish = t->n->finish != NULL;

	lw->lanes = 1;
	lw->vvar = -1;
	if (t->n->held > 0) {
		lw_take_matrix(t, acc);
		needed_terms(t, acc);
		return;
	}
	for (int32_t i = 0; i < KERN_MMA_EACH * t->vectors; i++)
		acc[i] = lw_register(lw,
			lw_type(lw, t->e->acc[0], KERN_MMA_LANES), 0).id;
	if (!finish && (!t->n->start || !t->all_first)) {
		if (t->n->start)
			lw_if(lw, lw_not(lw, t->first));
		move_sums(t, KERN_TAKE, acc);
		if (t->n->start)
			lw_close(lw);
	}
	needed_terms(t, acc);
	if (finish)
		lw_store_finished(t, acc);
	else
		move_sums(t, KERN_GIVE, acc);
}
