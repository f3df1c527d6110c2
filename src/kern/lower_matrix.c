/*
 * lower_matrix.c: lowers a tile whose products are done by matrix instructions.
 *
 * Consumes a TILE node of a machine that has them, whose rows, columns and terms are
 * multiples of theirs, and whose factors are reads of two bytes; produces
 *
 *   var %a0: f32x32 = zero; ..      four registers for eight columns
 *   take %a0, .. = o                unless the sums begin here
 *   for %k step 16 { mma bf16 %a0, .. of x, y }
 *   give o = %a0, ..
 */
#include "kern/lower.h"

/* How far the element for the next value of var is from x. */
static int64_t step_of(lowering *lw, int32_t tensor, const ix_form *at,
	int32_t var, const kern_form *x)
{
	struct place_of p;
	int64_t step;

	lw->plus[var] = 1;
	p = lw_place_tensor(lw, tensor, at, false);
	if (!kern_form_is_const(lw_sub(lw, lw_element(lw, &p, 0), x), &step))
		lw_bug(lw, "elements of a matrix have no distance:",
			lw->s->tensor.at[tensor].name);
	lw->plus[var] = 0;
	return step;
}

kern_access lw_rows(lowering *lw, int32_t tensor, const ix_form *at,
	int32_t row, int32_t along, int64_t *step)
{
	struct place_of p = lw_place_tensor(lw, tensor, at, false);
	kern_access x = kern_element(p.array, lw_element(lw, &p, 0));

	*step = step_of(lw, tensor, at, row, x.at);
	if (step_of(lw, tensor, at, along, x.at) != 1)
		lw_bug(lw, "elements of a row of a matrix do not adjoin:",
			lw->s->tensor.at[tensor].name);
	return x;
}

static void move_sums(struct tile *t, kern_kind kind, const kern_val *acc)
{
	kern_stmt s = {.acc = acc, .n_acc = KERN_MMA_EACH * t->vectors};

	s.at = lw_rows(t->lw, t->e->e->out[0], t->e->at, t->n->row_var,
		t->n->var, &s.n);
	kern_matrix(t->lw->b, kind, &s);
}

static void multiply(struct tile *t, const kern_val *acc)
{
	lowering *lw = t->lw;
	const expr *x = t->n->factor[0], *y = t->n->factor[1];
	int32_t sum = t->n->sum[0];
	kern_stmt loop = {.lo = lw->span[sum].lo,
		.hi = lw->span[sum].hi,
		.step = KERN_MMA_TERMS};
	kern_stmt s = {.acc = acc,
		.n_acc = KERN_MMA_EACH * t->vectors,
		.type = kern_num(x->dtype, 1)};

	lw->var[sum] = lw_form_of(lw, kern_for_as(lw->b, &loop, NULL));
	s.at = lw_rows(lw, x->tensor, x->form, t->n->row_var, sum, &s.n);
	s.from = lw_rows(lw, y->tensor, y->form, sum, t->n->var, &s.m);
	kern_matrix(lw->b, KERN_MMA, &s);
	lw_close(lw);
}

void lw_matrix(struct tile *t)
{
	lowering *lw = t->lw;
	kern_val *acc = arena_array(lw->a, kern_val, KERN_MMA_EACH * t->vectors);

	lw->lanes = 1;
	lw->vvar = -1;
	for (int32_t i = 0; i < KERN_MMA_EACH * t->vectors; i++)
		acc[i] = lw_register(lw, lw_type(lw, TN_F32, 32), 0).id;
	if (!t->n->start || !t->all_first) {
		if (t->n->start)
			lw_if(lw, lw_not(lw, t->first));
		move_sums(t, KERN_TAKE, acc);
		if (t->n->start)
			lw_close(lw);
	}
	multiply(t, acc);
	move_sums(t, KERN_GIVE, acc);
}
