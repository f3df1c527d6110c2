/*
 * lower_leaf.c: lowers statements: initialise, compute and store, accumulate,
 * complete.
 */
#include "kern/lower.h"

void lw_comment(lowering *lw, const loop_node *n)
{
	const char *l = loop_label(&lw->k->eqn[n->eqn]), *p;
	str s = str_new(lw->a);

	for (p = l; *p != '\0'; p++)
		str_addc(&s,
			(*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
					(*p >= '0' && *p <= '9') || *p == '.'
				? *p
				: '_');
	str_add(&s,
		n->kind == LOOP_INIT	? ", start"
		: n->kind == LOOP_DONE	? ", end"
		: n->kind == LOOP_PART	? ", this part"
		: n->kind == LOOP_JOIN	? ", all parts"
		: n->kind == LOOP_SCALE ? ", scaled"
					: "");
	kern_note(lw->b, s.at);
}

static void set(lowering *lw, const loop_node *n)
{
	const loop_eqn *e = &lw->k->eqn[n->eqn];
	val v[IR_MAX_COMP];

	for (int32_t i = 0; i < e->e->n_out; i++) {
		struct place_of m;

		if (e->stage) {
			lw_load_funs(lw, e->at);
			m = lw_place_tensor(lw, e->e->out[i], e->at, true);
			v[i] = lw_load(lw, &m, false);
			continue;
		}
		if (lw_scans_in_lanes(lw, e)) {
			v[i] = lw_scan_lanes(lw, n->eqn);
			continue;
		}
		v[i] = lw_cast(lw, lw_ex(lw, e->body[i]),
			lw->s->tensor.at[e->e->out[i]].dtype);
	}
	for (int32_t i = 0; i < e->e->n_out; i++) {
		struct place_of p = lw_target(lw, n->eqn, i);
		bool reg = p.array < 0;

		if (!reg || lw->named[p.n_buf])
			lw_store(lw, &p, v[i]);
		if (e->scan_var >= 0) {
			lw_forget(lw, e->e->out[i]);
			lw_made(lw, n->eqn, i, v[i]);
		}
		*vec_push(lw->a, &lw->def) = (struct def){
			e->e->out[i], reg ? NULL : e->at, v[i]};
	}
}

/* holds: the accumulator is in a register from here on */
void lw_init(lowering *lw, const loop_node *n, bool holds)
{
	const loop_eqn *e = &lw->k->eqn[n->eqn];
	val v[IR_MAX_COMP];

	lw_comment(lw, n);
	for (int32_t i = 0; i < e->e->n_out; i++) {
		const expr *x = e->init[i] != NULL && e->n_parts == 0
					? e->init[i]
					: ir_identity(lw->s, e->e->monoid, i,
						  e->acc[i]);

		v[i] = lw_cast(lw, lw_ex(lw, x), e->acc[i]);
	}
	if (holds)
		lw_hold(lw, n->eqn, v);
	for (int32_t i = 0; !holds && i < e->e->n_out; i++) {
		struct place_of p = lw_place_tensor(
			lw, e->e->out[i], e->start_at, false);

		lw_store(lw, &p, v[i]);
	}
}

/* Are elements accumulated in the order of their indices? */
static bool in_order(const lowering *lw, const loop_node *n, bool fresh)
{
	const loop_eqn *e = &lw->k->eqn[n->eqn];
	int32_t v = __builtin_ctzll(e->reduced | (loop_set)1 << 63);
	int64_t s;

	if (e->push || e->scan_var >= 0 || e->reduced != (loop_set)1 << v)
		return false;
	for (int32_t i = 0; i < e->e->n_out; i++) {
		if (e->init[i] != NULL && !fresh)
			return false;
		if (ir_monoid_at(e->e->monoid)->comp[i] == 'K' &&
			(e->body[i]->kind != EX_INDEX ||
				ix_has_fun(e->body[i]->form) ||
				!ix_stride(e->body[i]->form, v,
					lw->k->var[v].extent, &s) ||
				s < 1))
			return false;
	}
	for (const loop_node *u = n->up; u != NULL; u = u->up)
		if (u->var == v && u->backward)
			return false;
	return true;
}

/*
 * For a scatter: opens the condition that the element is inside of the tensor,
 * unless this is certain, and in the blocks of elements around.
 */
static bool open_push(lowering *lw, const loop_node *n, const loop_eqn *e)
{
	int64_t min, max, numel = lw->s->tensor.at[e->e->out[0]].numel;
	val c = {0}, owned;

	lw_load_funs(lw, e->at);
	ix_range(lw->dom, e->at, &min, &max);
	if (min < 0 || max >= numel)
		c = lw_inside(lw, lw_form(lw, e->at, 0), 0, numel);
	owned = lw_owned(lw, n, 0);
	if (owned.id != 0)
		c = c.id == 0 ? owned : lw_and(lw, c, owned);
	if (c.id == 0)
		return false;
	lw_if(lw, c);
	return true;
}

static void accumulate(lowering *lw, const loop_node *n)
{
	const loop_eqn *e = &lw->k->eqn[n->eqn];
	struct lane_acc *l = lw_find_acc(lw, n->eqn);
	const val *held = lw_held(lw, n->eqn);
	struct how h = {e, l != NULL ? l->acc : e->acc,
		in_order(lw, n, l != NULL)};
	struct place_of p[IR_MAX_COMP];
	val x[IR_MAX_COMP], y[IR_MAX_COMP], z[IR_MAX_COMP];
	struct marks marks;
	bool open = e->push && open_push(lw, n, e);
	int32_t m = e->e->n_out;

	if (l == NULL && held == NULL && m == 1) {
		p[0] = lw_target(lw, n->eqn, 0);
		if (lw_is_abreast(&p[0]) && lw_adds_product(lw, n, &p[0]))
			return;
	}
	marks = lw_mark(lw);
	for (int32_t i = 0; i < m; i++)
		y[i] = lw_cast(lw,
			h.acc[i] == e->acc[i]
				? lw_ex(lw, e->body[i])
				: lw_index(lw, e->body[i]->form, h.acc[i]),
			h.acc[i]);
	for (int32_t i = 0; i < m; i++) {
		if (l == NULL && held == NULL)
			p[i] = lw_target(lw, n->eqn, i);
		x[i] = l != NULL      ? l->v[i][lw_acc_now(lw, l)]
		       : held != NULL ? held[i]
				      : lw_load(lw, &p[i], false);
	}
	for (int32_t i = 0; i < m; i++)
		z[i] = lw_combine(lw, h, i, x, y);
	for (int32_t i = 0; i < m; i++) {
		if (l == NULL && held == NULL)
			lw_store(lw, &p[i], z[i]);
		else
			lw_set(lw, x[i],
				lw->lanes > 1 ? lw_as_acc(lw, z[i]) : z[i]);
	}
	if (open) {
		lw_close(lw);
		lw_release(lw, marks);
	}
}

static void done(lowering *lw, const loop_node *n)
{
	const loop_eqn *e = &lw->k->eqn[n->eqn];

	for (int32_t i = 0; i < e->e->n_out; i++) {
		int32_t t = e->e->out[i];
		struct place_of from, to;

		if (lw->k->buf_of[n->eqn][i] < 0 || loop_param(lw->k, t) < 0)
			continue;
		from = lw_place_tensor(lw, t, e->start_at, false);
		to = lw_place_tensor(lw, t, e->start_at, true);
		lw_store(lw, &to,
			lw_cast(lw, lw_load(lw, &from, false),
				lw->s->tensor.at[t].dtype));
	}
}

static void scale(lowering *lw, const loop_node *n)
{
	const loop_eqn *e = &lw->k->eqn[n->eqn];
	struct place_of p = lw_target(lw, n->eqn, 0);
	int32_t memo = lw->memo.n;

	lw->param[0] = lw_load(lw, &p, false);
	lw_store(lw, &p, lw_cast(lw, lw_ex(lw, n->finish), e->acc[0]));
	lw->memo.n = memo;
}

void lw_leaf(lowering *lw, const loop_node *n)
{
	if (n->kind != LOOP_INIT)
		lw_comment(lw, n);
	switch (n->kind) {
	case LOOP_INIT:
		lw_init(lw, n, false);
		break;
	case LOOP_DONE:
		done(lw, n);
		break;
	case LOOP_STMT:
		if (lw->k->eqn[n->eqn].e->monoid == IR_SET)
			set(lw, n);
		else if (!lw_adds_row(lw, n))
			accumulate(lw, n);
		break;
	case LOOP_PART:
		lw_part(lw, n);
		break;
	case LOOP_JOIN:
		lw_join(lw, n);
		break;
	case LOOP_SCALE:
		scale(lw, n);
		break;
	case LOOP_STAGE:
		if (lw->k->eqn[n->eqn].group > 1)
			lw_group(lw, n);
		else
			lw_transpose(lw, n);
		break;
	case LOOP_TILE:
		lw_tile(lw, n);
		break;
	case LOOP_FOR:
	case LOOP_BLOCK:
	case LOOP_SPAN:
		lw_bug(lw, "no statement", "");
	}
}
