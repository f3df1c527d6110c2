/*
 * lower_fused.c: adds products to sums that stand abreast in registers
 * (schedule/abreast_window.c), by one instruction each. Outside of an image, where a
 * product is not added, a condition that all lanes share is a branch, and one
 * of which they differ selects between the sum before and after:
 *
 *   r += inside(row) and inside(column) ? x * w : 0   ->
 *   if inside(row) { r = inside(column) ? mad x, w, r : r }
 */
#include "kern/lower.h"

enum { MAX_CONDITIONS = 8 };

/* Of the statement: a sum of `x` times `y` where all conditions hold. */
struct product {
	const expr *x, *y, *all; /* all: the whole condition, or NULL */
	const expr *shared[MAX_CONDITIONS], *own[MAX_CONDITIONS];
	int32_t n_shared, n_own; /* conditions of all lanes, and of each */
};

static bool add_conditions(lowering *lw, struct product *p, const expr *c)
{
	loop_set lanes = lw->vvar >= 0 ? (loop_set)1 << lw->vvar : 0;
	bool own = (loop_expr_vars(lw->k, c) & lanes) != 0;

	if (c->kind == EX_CALL && c->fn == lw->fn.and)
		return add_conditions(lw, p, c->arg[0]) &&
		       add_conditions(lw, p, c->arg[1]);
	if (c->kind != EX_INSIDE || ix_has_fun(c->form) ||
		(own ? p->n_own : p->n_shared) == MAX_CONDITIONS)
		return false;
	if (own)
		p->own[p->n_own++] = c;
	else
		p->shared[p->n_shared++] = c;
	return true;
}

static bool find(lowering *lw, const loop_eqn *e, struct product *p)
{
	const expr *b = e->body[0];
	tn_dtype t = e->acc[0];

	*p = (struct product){0};
	if (e->e->monoid != IR_SUM || e->e->n_out != 1 ||
		(t != TN_F32 && t != TN_F64) || b->dtype != t)
		return false;
	if (b->kind == EX_SELECT) {
		p->all = b->arg[0];
		if (b->arg[2] != ir_identity(lw->s, IR_SUM, 0, t) ||
			!add_conditions(lw, p, p->all))
			return false;
		b = b->arg[1];
	}
	if (b->kind != EX_CALL || b->fn != lw->fn.mul || ex_root(b) != 0)
		return false;
	p->x = b->arg[0];
	p->y = b->arg[1];
	return true;
}

/* Opens branches for what all lanes share; -1: it never holds. */
static int32_t open_shared(lowering *lw, const struct product *p)
{
	int32_t n = 0;
	bool on;

	for (int32_t i = 0; i < p->n_shared; i++) {
		val c = lw_ex(lw, p->shared[i]);

		if (!lw_is_const(lw, c, &on)) {
			lw_if(lw, c);
			n++;
			continue;
		}
		if (!on) {
			lw_close_loops(lw, n);
			return -1;
		}
	}
	return n;
}

/* What holds where the lane adds something; id 0: every lane does. */
static val own_condition(lowering *lw, const struct product *p)
{
	val c = {0, TN_BOOL, 1, 0};
	bool on;

	for (int32_t i = 0; i < p->n_own; i++) {
		val x = lw_ex(lw, p->own[i]);

		if (lw_is_const(lw, x, &on) && on)
			continue;
		c = c.id == 0 ? x : lw_and(lw, c, x);
	}
	return c;
}

bool lw_adds_product(lowering *lw, const loop_node *n, const struct place_of *at)
{
	struct marks m = lw_mark(lw);
	struct product p;
	val c, x, y, z, sum;
	int32_t open;

	if (lw->path.n > 0 || !find(lw, &lw->k->eqn[n->eqn], &p))
		return false;
	open = open_shared(lw, &p);
	if (open < 0) {
		lw_release(lw, m);
		return true;
	}
	c = own_condition(lw, &p);
	x = lw_side(lw, p.x, c, p.all);
	y = lw_side(lw, p.y, c, p.all);
	sum = lw_load(lw, at, false);
	if (sum.lanes > 1) {
		x = lw_to_lanes(lw, x);
		y = lw_to_lanes(lw, y);
	}
	z = lw_mad(lw, x, y, sum);
	if (c.id != 0 && sum.lanes > 1 && c.lanes > 1)
		c = lw_to_mask(lw, c, (int32_t)dtype_size(sum.dt));
	if (c.id != 0)
		z = lw_call(lw, lw->fn.sel, sum, 3, (val[]){c, z, sum});
	lw_store(lw, at, z);
	lw_close_loops(lw, open);
	lw_release(lw, m);
	return true;
}
