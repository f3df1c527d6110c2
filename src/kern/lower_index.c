/*
 * lower_index.c: indices as values, scalar or per lane, and indices from data,
 * which are checked and clamped before the expression that uses them.
 */
#include "kern/lower.h"

/* The value of f in each lane. */
static val by_lane(lowering *lw, const ix_form *f, tn_dtype dt)
{
	val n = lw_register(lw, lw_type(lw, dt, lw->lanes), 0);
	kern_val l = lw_for_lanes(lw, lw->lanes);

	lw_set_lane(lw, n, l, lw_index_val(lw, lw_form(lw, f, l), dt));
	lw_close(lw);
	return n;
}

val lw_index(lowering *lw, const ix_form *f, tn_dtype dt)
{
	lw_load_funs(lw, f);
	if (!lw_form_varies(lw, f) && !(ix_has_fun(f) && lw->lanes > 1))
		return lw_index_val(lw, lw_form(lw, f, 0), TN_I64);
	return lw_index_in_vectors(lw, f) ? lw_index_lanes(lw, f, dt)
					  : by_lane(lw, f, dt);
}

/* ---- indices from data ---- */

enum { MAX_JOINED = 8 }; /* depth of the conditions looked into */

static val with(lowering *lw, val all, val c, bool negated)
{
	return lw_and(lw, all, negated ? lw_not(lw, c) : c);
}

/* all, and what the comparison says of a number to which lanes add constants, if some
 * lane holds:  5 + (0 .. 3) + n >= 7   n + 8 >= 7 */
static val with_reached(lowering *lw, val all, const kern_value *x)
{
	kern_kernel *k = lw->b->k;
	const kern_value *sum = kern_at(k, x->arg[0]), *to = kern_at(k, x->arg[1]);
	const kern_value *n, *lanes;
	bool least = x->fn == lw->fn.ge;
	kern_val first;
	int64_t far;
	form f;

	if ((!least && x->fn != lw->fn.lt) || sum->op != KERN_CALL ||
		sum->fn != lw->fn.add || !dtype_is_int(sum->type.dt) ||
		to->op != KERN_SPLAT ||
		kern_at(k, to->arg[0])->op != KERN_CONST)
		return all;
	n = kern_at(k, sum->arg[0]);
	lanes = kern_at(k, sum->arg[1]);
	if (n->op != KERN_SPLAT || lanes->op != KERN_LANES)
		return all;
	first = n->arg[0];
	far = lanes->list[0];
	for (int32_t l = 1; l < lanes->type.lanes; l++)
		if (least ? lanes->list[l] > far : lanes->list[l] < far)
			far = lanes->list[l];
	n = kern_at(k, n->arg[0]);
	if (n->op != KERN_INDEX && n->type.dt != TN_I64)
		return all;
	/* an index of 32 bits is what it is made of: none exceeds them */
	f = n->op == KERN_INDEX ? n->form[0] : lw_form_of(lw, first);
	f = lw_addc(lw, f, far);
	to = kern_at(k, to->arg[0]);
	return with(lw, all,
		lw_inside(lw, f, least ? to->c.i : INT64_MIN,
			least ? INT64_MAX : to->c.i),
		false);
}

/*
 * all, and what a condition of the lanes says of all of them at once, where some lane
 * holds: the splats that it joins by `and` (by `or`, if it is negated), and how far
 * lanes reach.
 */
static val with_uniform(
	lowering *lw, val all, kern_val c, bool negated, int nest)
{
	const kern_value *x = kern_at(lw->b->k, c);
	kern_val arg[2] = {x->arg[0], x->arg[1]};

	if (x->op == KERN_SPLAT)
		return with(lw, all, (val){arg[0], TN_BOOL, 1, 0}, negated);
	if (x->op != KERN_CALL || nest >= MAX_JOINED)
		return all;
	if (x->fn == (negated ? lw->fn.or : lw->fn.and))
		for (int32_t i = 0; i < 2; i++)
			all = with_uniform(lw, all, arg[i], negated, nest + 1);
	return negated ? all : with_reached(lw, all, x);
}

/*
 * Does some lane take this branch? Used if lanes differ. What holds for all lanes
 * or for none is said besides the loop over lanes: nobody who reads the text finds
 * it in that loop's result, and the bounds of a load may rest on it.
 */
static val some_lane(lowering *lw)
{
	val any = lw_register(lw, lw_type(lw, TN_BOOL, 1), 0), all = any;
	kern_val l = lw_for_lanes(lw, lw->lanes);

	lw_set(lw, any,
		lw_call2(lw, lw->fn.or, any, any, lw_path(lw, l)));
	lw_close(lw);
	for (int32_t i = 0; i < lw->path.n; i++) {
		const struct path *p = &lw->path.at[i];

		if (p->c.lanes == 1)
			all = with(lw, all, p->c, p->negated);
		else
			all = with_uniform(lw, all, p->c.id, p->negated, 0);
	}
	return all;
}

struct fun {
	const ix_atom *t;
	bool lanes;	  /* one index for each lane */
	/* its value, if it was stored in this block; NULL: it is in memory */
	const val *known;
	struct place_of p;
	bool guarded;
	/*
	 * guarded: the condition of the read; id 0: that of the path, per lane
	 */
	val when;
	int32_t check;
	/* a result that is kept with more bits: its index has those of the tensor */
	bool wrapped;
	tn_dtype dtype;
};

/* The index as loaded, checked and clamped to its bounds. */
static val checked(lowering *lw, const struct fun *f, kern_val lane)
{
	val when = f->when, v;

	if (f->guarded && when.id == 0)
		when = lw_path(lw, lane);
	if (f->known != NULL && f->known->lanes > 1)
		v = lw_lane_of(lw, *f->known,
			f->lanes ? lw_form_of(lw, lane) : lw_num(lw, 0));
	else if (f->known != NULL)
		v = *f->known;
	else
		v = lw_widen(lw,
			lw_load_scalar(lw, &f->p, f->lanes ? lane : 0,
				f->guarded ? &when : NULL),
			f->p.dtype);
	if (f->wrapped)
		v = lw_cast(lw, v, f->dtype);
	if (f->guarded)
		v = lw_call(lw, lw->fn.sel, lw_type(lw, TN_I64, 1), 3,
			(val[]){when, lw_cast(lw, v, TN_I64),
				lw_const(lw, TN_I64, 0, f->t->lo)});
	return (val){kern_checked(lw->b, v.id, f->check), TN_I64, 1, 0};
}

/*
 * Loads and checks an index from data. If it does not depend on the lane it
 * stays a scalar, even if only some lanes need it, because addresses use it for
 * all lanes.
 */
static void load_fun(lowering *lw, const ix_atom *t)
{
	struct fun f = {.t = t,
		.lanes = lw_form_varies(lw, t->f) ||
			 lw_is_per_lane(lw, (int32_t)t->fun),
		.guarded = lw->path.n > 0};
	struct memo_fun m = {t, NULL, -1};
	int32_t e, comp, tensor = (int32_t)t->fun;

	for (int32_t i = 0; i < lw->fun.n; i++)
		if (lw->fun.at[i].atom == t)
			return;
	lw_load_funs(lw, t->f);
	f.known = lw_stored_at(lw, tensor, t->f);
	/* copies of inputs serve reads along a loop, not indices */
	f.dtype = lw->s->tensor.at[tensor].dtype;
	if (f.known == NULL) {
		bool made = loop_maker(lw->k, tensor, &e, &comp);

		f.p = lw_place_tensor(
			lw, tensor, t->f, made && lw->k->eqn[e].stage);
		f.wrapped = made && f.p.buf != NULL &&
			    lw->k->eqn[e].acc[comp] != f.dtype;
	}
	f.check = kern_add_check(lw->b->k, tensor,
		lw->s->tensor.at[tensor].name, t->lo, t->hi);
	if (f.lanes) {
		kern_val l;

		m.array = kern_stack(lw->b, TN_I64, lw->lanes, false);
		l = lw_for_lanes(lw, lw->lanes);
		lw_store_to(lw, m.array, lw_form_of(lw, l),
			checked(lw, &f, l), 0);
		lw_close(lw);
	} else {
		if (f.guarded && lw_path_mixed(lw))
			f.when = some_lane(lw);
		m.at = lw_form_of(lw, checked(lw, &f, 0).id);
	}
	*vec_push(lw->a, &lw->fun) = m;
}

void lw_load_funs(lowering *lw, const ix_form *f)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind == IX_FUN)
			load_fun(lw, t);
		else if (t->kind != IX_DIGIT)
			lw_load_funs(lw, t->f);
	}
}

/* ---- in front of loops ---- */

/* Is the tensor an input that nothing in the kernel writes? */
static bool is_constant(const lowering *lw, int32_t tensor)
{
	const kern_kernel *k = lw->b->k;
	int32_t at = loop_param(lw->k, tensor);

	if (at < lw->k->n_outputs || k->shared)
		return false;
	for (int32_t i = 0; i < k->n_outputs; i++)
		if (k->array.at[i].in == at + 1)
			return false;
	return true;
}

struct hoist {
	lowering *lw;
	int32_t var; /* of the loop */
	map *seen;   /* expressions */
};

static void hoist_form(const struct hoist *h, const ix_form *f)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *t = f->t[i].atom;

		if (t->kind == IX_FUN && !ix_has_fun(t->f) &&
			(loop_form_vars(t->f) >> h->var & 1) == 0 &&
			is_constant(h->lw, (int32_t)t->fun))
			load_fun(h->lw, t);
	}
}

/* Not what stands behind a condition: only there is its index inside of bounds. */
static void hoist_expr(const struct hoist *h, const expr *e)
{
	if (e->kind == EX_SELECT ||
		map_get(h->seen, &e->id, sizeof e->id, 0) != 0)
		return;
	map_set(h->seen, &e->id, sizeof e->id, 1);
	if (e->form != NULL)
		hoist_form(h, e->form);
	for (int32_t i = 0; i < IR_MAX_ARGS && e->arg[i] != NULL; i++)
		hoist_expr(h, e->arg[i]);
}

static void find_data(void *arg, const expr *e)
{
	*(bool *)arg |= e->form != NULL && ix_has_fun(e->form);
}

/* Does an address of the equation depend on data? */
static bool has_data(lowering *lw, int32_t eqn)
{
	const loop_eqn *e = &lw->k->eqn[eqn];
	int64_t known = map_get(lw->data, &eqn, sizeof eqn, 0);
	bool found = ix_has_fun(e->at);

	if (known != 0)
		return known == 2;
	for (int32_t i = 0; i < e->e->n_out; i++)
		loop_walk(lw->a, e->body[i], find_data, &found);
	map_set(lw->data, &eqn, sizeof eqn, found ? 2 : 1);
	return found;
}

static void hoist_eqn(lowering *lw, int32_t eqn, int32_t var)
{
	const loop_eqn *e = &lw->k->eqn[eqn];
	struct hoist h = {lw, var, map_new(lw->a)};

	for (int32_t i = 0; i < e->e->n_out; i++)
		hoist_expr(&h, e->body[i]);
	hoist_form(&h, e->at);
}

/*
 * Loads the indices from data that do not depend on the loop n in front of it, so
 * that its body, which may stand there for several vectors, has them once.
 */
void lw_hoist_funs(lowering *lw, const loop_node *n)
{
	for (int32_t i = 0; i < n->n_child && lw->path.n == 0; i++) {
		const loop_node *c = n->child[i];

		if (c->kind == LOOP_STMT && !lw->k->eqn[c->eqn].stage &&
			has_data(lw, c->eqn))
			hoist_eqn(lw, c->eqn, n->var);
	}
}
