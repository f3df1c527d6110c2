/*
 * lower_scan.c: scans. Their last element is a register: it is not loaded from the
 * memory that it was just stored in. Where a scan has lanes, they combine their
 * elements in log2(lanes) steps, always in this order:
 *
 *   %p = sel(first lane, %carry, identity)
 *   %v = x[t ..] + %p
 *   %v = %v + (%v, 1 lane away; then 2, 4 ..; identity where there is none)
 *   set %carry = lane %v, 31
 */
#include "kern/lower.h"

static struct carry *carry_of(lowering *lw, int32_t eqn, int32_t comp)
{
	for (int32_t i = lw->carry.n - 1; i >= 0; i--)
		if (lw->carry.at[i].eqn == eqn && lw->carry.at[i].comp == comp)
			return &lw->carry.at[i];
	return NULL;
}

struct reader {
	int32_t tensor;
	const ix_form *at;
	bool found;
};

static void on_read(void *arg, const expr *e)
{
	struct reader *r = arg;

	r->found |= e->kind == EX_READ && e->tensor == r->tensor &&
		    e->form == r->at;
}

/* Does the loop walk the whole scan, from its first element on? */
static bool is_whole(const loop_node *n)
{
	for (const loop_node *u = n->up; u != NULL; u = u->up)
		if (u->var == n->var)
			return false;
	return n->n_clip == 0 && n->n_needs == 0 && !n->by_warp;
}

static void open_scan(lowering *lw, int32_t eqn)
{
	const loop_eqn *e = &lw->k->eqn[eqn];
	const ix_form *before = loop_scan_before(lw->k, e);

	for (int32_t i = 0; i < e->e->n_out && before != NULL; i++) {
		struct reader r = {e->e->out[i], before, false};
		tn_dtype t = lw->s->tensor.at[r.tensor].dtype;

		for (int32_t j = 0; j < e->e->n_out; j++)
			loop_walk(lw->a, e->body[j], on_read, &r);
		if (!r.found || t == TN_BOOL || carry_of(lw, eqn, i) != NULL)
			continue;
		*vec_push(lw->a, &lw->carry) = (struct carry){.eqn = eqn,
			.comp = i,
			.before = before,
			.reg = lw_register(lw,
				lw_type(lw, lw_computed(t), lw->lanes), 0)};
	}
}

void lw_open_scans(lowering *lw, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child && is_whole(n); i++) {
		const loop_node *c = n->child[i];

		if (c->kind == LOOP_STMT && lw->k->eqn[c->eqn].scan_var == n->var)
			open_scan(lw, c->eqn);
	}
}

static bool is_in(const loop_node *n, int32_t eqn)
{
	for (int32_t i = 0; i < n->n_child; i++)
		if (n->child[i]->kind == LOOP_STMT && n->child[i]->eqn == eqn)
			return true;
	return false;
}

void lw_enter_scans(lowering *lw, const loop_node *n)
{
	for (int32_t i = 0; i < lw->carry.n; i++) {
		const struct carry *c = &lw->carry.at[i];

		if (is_in(n, c->eqn))
			*vec_push(lw->a, &lw->def) = (struct def){
				lw->k->eqn[c->eqn].e->out[c->comp], c->before,
				c->reg};
	}
}

void lw_leave_scans(lowering *lw, const loop_node *n)
{
	for (int32_t i = 0; i < lw->carry.n; i++) {
		struct carry *c = &lw->carry.at[i];

		if (is_in(n, c->eqn))
			lw_set(lw, c->reg, c->reg.lanes > 1
						   ? lw_to_lanes(lw, c->last)
						   : c->last);
	}
}

void lw_made(lowering *lw, int32_t eqn, int32_t comp, val v)
{
	struct carry *c = carry_of(lw, eqn, comp);

	if (c != NULL)
		c->last = v;
}

/* ---- in lanes ---- */

static val chosen(lowering *lw, int32_t n, val x, val y)
{
	val m = lw_first_lanes(lw, (int32_t)dtype_size(x.dt), n);

	return lw_call(lw, lw->fn.sel, x, 3, (val[]){m, x, y});
}

static val combined(lowering *lw, int32_t monoid, val x, val y)
{
	int32_t n = lw->memo.n;
	tn_dtype t = x.dt;
	val v;

	lw->param[0] = x;
	lw->param[IR_MAX_COMP] = y;
	v = lw_ex(lw, ir_combine(lw->s, monoid, 0, &t));
	lw->memo.n = n;
	return lw_to_lanes(lw, v);
}

bool lw_scans_in_lanes(const lowering *lw, const loop_eqn *e)
{
	return lw->lanes > 1 && e->scan_var >= 0 && e->scan_var == lw->vvar;
}

val lw_scan_lanes(lowering *lw, int32_t eqn)
{
	const loop_eqn *e = &lw->k->eqn[eqn];
	struct carry *c = carry_of(lw, eqn, 0);
	int32_t monoid = loop_scan_monoid(lw->k, e), n_def = lw->def.n;
	val one, v;

	if (c == NULL || monoid < 0)
		lw_bug(lw, "no scan in lanes", loop_label(e));
	one = lw_to_lanes(lw,
		lw_ex(lw, ir_identity(lw->s, monoid, 0, c->reg.dt)));
	*vec_push(lw->a, &lw->def) = (struct def){e->e->out[0], c->before,
		chosen(lw, 1, lw_to_lanes(lw, c->reg), one)};
	v = lw_to_lanes(lw, lw_cast(lw, lw_ex(lw, e->body[0]), c->reg.dt));
	lw->def.n = n_def;
	for (int32_t d = 1; d < lw->lanes; d *= 2) {
		int64_t list[KERN_MAX_LANES];

		for (int32_t l = 0; l < lw->lanes; l++)
			list[l] = (l + lw->lanes - d) % lw->lanes;
		v = combined(lw, monoid,
			chosen(lw, d, one, lw_shuffle(lw, v, v, list)), v);
	}
	lw_set(lw, c->reg, lw_lane_of(lw, v, lw_num(lw, lw->lanes - 1)));
	return v;
}
