/*
 * lower_expr.c: lowers expressions to straight-line values, each computed once
 * per block.
 *
 * Consumes interned exprs: one that was computed in this block, or in an outer
 * one, is not computed again. A select evaluates both sides; a read that is not
 * allowed on the side not taken is done under the condition. So no branch is
 * needed, and lanes may differ:
 *
 *   o = inside(i - 1) ? x[i - 1] : 0
 *     %1: bool = inside %i0 1 *
 *     %2: f32 = load p1[%i0 - 1] where %1
 *     %3: f32 = sel %1, %2, 0
 *
 * Of several tensors that are read under conditions that all lanes have in common, one
 * is: there branches are cheaper.
 */
#include "kern/lower.h"

#include <math.h>

struct seek {
	lowering *lw;
	bool unsafe;
};

/*
 * May an element that is read here be one that this iteration of the loops around has not
 * written? A tensor that is written where data says has its whole addresses, in an array of
 * this kernel, too; and an index is simplified by the condition that it stands under. In
 *
 *   a[i, x[i]] = ..;  b[i] = i >= 1 ? a[i, 0] : 0      i < 2
 *
 * a[i, 0] becomes a[1, 0], which is not there yet where i is 0.
 */
static bool is_partly_written(const lowering *lw, int32_t tensor)
{
	int32_t e, c;

	return loop_maker(lw->k, tensor, &e, &c) && lw->k->buf_of[e][c] >= 0 &&
	       lw->k->eqn[e].push;
}

static void unsafe_visit(void *arg, const expr *e)
{
	struct seek *s = arg;
	int64_t min, max;

	if (e->form == NULL || s->unsafe)
		return;
	s->unsafe = ix_has_fun(e->form);
	if (e->kind != EX_READ || s->unsafe)
		return;
	ix_range(s->lw->dom, e->form, &min, &max);
	s->unsafe = min < 0 || max >= s->lw->s->tensor.at[e->tensor].numel ||
		    is_partly_written(s->lw, e->tensor) ||
		    lw_may_race(s->lw, e->tensor, e->form);
}

/* Does e contain a read that is allowed only under the current guards? */
bool lw_is_unsafe(lowering *lw, const expr *e)
{
	int64_t known = lw->dom->n_facts > 0
				? 0
				: map_get(lw->unsafe, &e->id, sizeof e->id, 0);
	struct seek s = {lw, false};

	if (known != 0)
		return known == 2;
	loop_walk(lw->a, e, unsafe_visit, &s);
	if (lw->dom->n_facts == 0)
		map_set(lw->unsafe, &e->id, sizeof e->id, s.unsafe ? 2 : 1);
	return s.unsafe;
}

struct reader {
	int32_t tensor;
	bool found;
};

static void reads_visit(void *arg, const expr *e)
{
	struct reader *r = arg;

	r->found |= e->kind == EX_READ &&
		    (e->tensor == r->tensor || ix_has_fun(e->form));
}

/*
 * Forgets values that were read from a tensor, after a scan has stored to it.
 */
void lw_forget(lowering *lw, int32_t tensor)
{
	for (int32_t i = 0; i < lw->memo.n; i++) {
		struct reader r = {tensor, false};

		if (lw->memo.at[i].e == NULL)
			continue;
		loop_walk(lw->a, lw->memo.at[i].e, reads_visit, &r);
		if (r.found)
			lw->memo.at[i].e = NULL;
	}
	for (int32_t i = 0; i < lw->fun.n; i++)
		lw->fun.at[i].atom = NULL;
}

struct marks lw_mark(const lowering *lw)
{
	return (struct marks){lw->memo.n, lw->fun.n, lw->def.n, lw->facts.n,
		lw->digit.n};
}

void lw_release(lowering *lw, struct marks m)
{
	lw->memo.n = m.memo;
	lw->fun.n = m.fun;
	lw->def.n = m.def;
	lw->digit.n = m.digit;
	lw->facts.n = m.facts;
	lw->dom->n_facts = m.facts;
	lw->dom->facts = lw->facts.at;
}

static val read(lowering *lw, const expr *e)
{
	bool guarded = lw->path.n > 0 && lw_is_unsafe(lw, e);
	const val *known;
	struct place_of p;
	int32_t q, c;
	val v;

	/* a register has no address, but its index must be checked */
	lw_load_funs(lw, e->form);
	known = lw_stored_at(lw, e->tensor, e->form);
	if (known != NULL)
		return *known;
	p = lw_place_read(lw, e->tensor, e->form);
	v = lw_load(lw, &p, guarded || p.guarded);
	if (p.buf != NULL && loop_maker(lw->k, e->tensor, &q, &c) &&
		lw->k->eqn[q].acc[c] != e->dtype)
		/* rounded once, when it is complete */
		v = lw_cast(lw, v, e->dtype);
	return v;
}

static val inside(lowering *lw, const expr *e)
{
	int64_t min, max, lo = INT64_MIN, hi = INT64_MAX;
	val v, c, type, all = {0};

	ix_range(lw->dom, e->form, &min, &max);
	if (min >= e->lo && max < e->hi)
		return lw_bool(lw, true);
	if (max < e->lo || min >= e->hi)
		return lw_bool(lw, false);
	lo = min < e->lo ? e->lo : lo;
	hi = max >= e->hi ? e->hi : hi;
	v = lw_index(lw, e->form, lw_index_dtype(lw, e->form));
	if (v.lanes == 1)
		return lw_inside(lw, lw_form(lw, e->form, 0), lo, hi);
	type = (val){0, TN_BOOL, v.lanes, (int32_t)dtype_size(v.dt)};
	if (lo != INT64_MIN) {
		c = lw_to_lanes(lw, lw_const(lw, v.dt, 0, lo));
		all = lw_call2(lw, lw->fn.ge, type, v, c);
	}
	if (hi != INT64_MAX) {
		c = lw_to_lanes(lw, lw_const(lw, v.dt, 0, hi));
		c = lw_call2(lw, lw->fn.lt, type, v, c);
		all = all.id != 0 ? lw_and(lw, all, c) : c;
	}
	return all;
}

/*
 * Calls a scalar function: converts all arguments to lanes, and masks to the
 * width of the other arguments.
 */
/* A constant, in all lanes of x. */
static val splat(lowering *lw, val x, double f)
{
	val c = lw_const(lw, x.dt, f, 0);

	return x.lanes > 1 ? lw_to_lanes(lw, c) : c;
}

/*
 * A power of 1/4, 1/2, 3/4, 3/2 or -1/2 is made of square roots, which take a quarter of
 * the time: x^(3/4) = sqrt(x) sqrt(sqrt(x)). Of a finite number below 0 a root is NaN, as such
 * a power is; but a power of -inf is inf or 0, and one of -0 is that of 0.
 */
static val roots(lowering *lw, const expr *e)
{
	int32_t quarters = ex_root(e);
	val x = lw_ex(lw, e->arg[0]), type = {0, x.dt, x.lanes, 0}, r, is, of;

	r = lw_call(lw, lw->fn.sqrt, type, 1, &x);
	if (quarters == 1)
		r = lw_call(lw, lw->fn.sqrt, type, 1, &r);
	else if (quarters == 3)
		r = lw_call2(lw, lw->fn.mul, type, r,
			lw_call(lw, lw->fn.sqrt, type, 1, &r));
	else if (quarters == 6)
		r = lw_call2(lw, lw->fn.mul, type, x, r);
	if (quarters < 3) /* -0 + 0 is 0 */
		r = lw_call2(lw, lw->fn.add, type, r, splat(lw, x, 0));
	if (quarters < 0)
		r = lw_call2(lw, lw->fn.div, type, splat(lw, x, 1), r);
	is = (val){0, TN_BOOL, x.lanes,
		x.lanes > 1 ? (int32_t)dtype_size(x.dt) : 0};
	is = lw_call2(lw, lw->fn.eq, is, x, splat(lw, x, -INFINITY));
	of = splat(lw, x, quarters < 0 ? 0 : INFINITY);
	return lw_call(lw, lw->fn.sel, type, 3, (val[]){is, of, r});
}

static val call(lowering *lw, const expr *e)
{
	const ir_scalar *f = ir_scalar_at(e->fn);
	tn_dtype t = TN_BOOL;
	val x[IR_MAX_ARGS], type = {0, lw_computed(e->dtype), 1, 0};
	int32_t bytes = 0;
	bool on;

	if (ex_root(e) != 0)
		return roots(lw, e);
	for (int32_t i = 0; i < f->n_args; i++) {
		x[i] = lw_ex(lw, e->arg[i]);
		if (t == TN_BOOL)
			t = x[i].dt;
		if (x[i].lanes > 1)
			type.lanes = x[i].lanes;
		if (x[i].mask > bytes)
			bytes = x[i].mask;
	}
	if (e->fn == lw->fn.and && (lw_is_const(lw, x[0], &on) ||
					   lw_is_const(lw, x[1], &on)))
		return lw_and(lw, x[0], x[1]);
	if (t != TN_BOOL)
		bytes = (int32_t)dtype_size(t);
	for (int32_t i = 0; i < f->n_args && type.lanes > 1; i++)
		x[i] = x[i].dt == TN_BOOL ? lw_to_mask(lw, x[i], bytes)
					  : lw_to_lanes(lw, x[i]);
	if (type.lanes > 1 && type.dt == TN_BOOL)
		type.mask = bytes;
	/* a call of integers with a float result takes them as i64 */
	for (int32_t i = 0; i < f->n_args; i++)
		if (dtype_is_float(type.dt) && !dtype_is_float(t) &&
			f->emit[0] != '(')
			x[i] = lw_cast(lw, x[i], TN_I64);
	return lw_call(lw, e->fn, type, f->n_args, x);
}

/*
 * Lowers one side of a select. Values that were computed on this side are
 * forgotten after it, because the side may not be taken.
 */
static val side(lowering *lw, const expr *e, val c, const expr *cond,
	bool negated)
{
	int32_t n = lw->memo.n, nf = lw->fun.n, n_short = lw->n_short;
	ix_dom was = lw->path_dom;
	val v;

	lw->path_dom = ir_dom_when(lw->s, lw->path.n > 0 ? &was : lw->dom,
		cond, !negated);
	*vec_push(lw->a, &lw->path) = (struct path){c, negated};
	v = lw_ex(lw, e);
	lw->path.n--;
	lw->path_dom = was;
	lw->fun.n = nf;
	for (int32_t i = n; i < lw->memo.n; i++)
		if (lw->memo.at[i].e != NULL &&
			(lw->n_short > n_short ||
				lw_is_unsafe(lw, lw->memo.at[i].e)))
			lw->memo.at[i].e = NULL;
	return v;
}

val lw_side(lowering *lw, const expr *e, val c, const expr *all)
{
	ix_dom was = lw->path_dom;
	val v;

	if (c.id != 0)
		return side(lw, e, c, all, false);
	if (all == NULL)
		return lw_ex(lw, e);
	lw->path_dom = ir_dom_when(lw->s, lw->dom, all, true);
	v = lw_ex(lw, e);
	lw->path_dom = was;
	return v;
}

/* Is v what was loaded on the side of a select, from number `first` on, and 0 in all
 * other lanes? */
static bool is_zero_elsewhere(const lowering *lw, val v, int32_t first)
{
	const kern_value *x = kern_at(lw->b->k, v.id);
	kern_val r = x->op == KERN_WIDEN ? x->arg[0] : v.id;

	for (int32_t i = first; i < lw->loaded.n; i++)
		if (lw->loaded.at[i] == r)
			return true;
	return false;
}

/* The number whose bits are all 0, as those of lanes that nothing is loaded into */
static bool is_zero(const expr *e)
{
	return e->kind == EX_CONST && e->c.i == 0 && e->c.f == 0 &&
	       !signbit(e->c.f);
}

static val select_value(lowering *lw, const expr *e)
{
	val c = lw_ex(lw, e->arg[0]), x[3], type;
	int32_t first = lw->loaded.n;
	bool on;

	if (lw_is_const(lw, c, &on))
		return lw_ex(lw, e->arg[on ? 1 : 2]);
	x[1] = side(lw, e->arg[1], c, e->arg[0], false);
	if (is_zero(e->arg[2]) && x[1].dt == lw_computed(e->dtype) &&
		is_zero_elsewhere(lw, x[1], first))
		return x[1];
	x[2] = side(lw, e->arg[2], c, e->arg[0], true);
	type = (val){0, lw_computed(e->dtype), c.lanes, 0};
	for (int32_t i = 1; i < 3; i++)
		if (x[i].lanes > type.lanes)
			type.lanes = x[i].lanes;
	for (int32_t i = 1; i < 3 && type.lanes > 1; i++)
		x[i] = x[i].dt == TN_BOOL
			       ? lw_to_mask(lw, x[i], lw_mask_bytes(lw))
			       : lw_to_lanes(lw, x[i]);
	type.mask = x[1].mask;
	if (c.lanes > 1)
		c = lw_to_mask(lw, c,
			type.dt == TN_BOOL ? type.mask
					   : (int32_t)dtype_size(type.dt));
	x[0] = c;
	return lw_call(lw, lw->fn.sel, type, 3, x);
}

/* ---- one of several tensors ---- */

enum { LEAST_BRANCHES = 2, MOST_BRANCHES = 64 };

static void data_visit(void *arg, const expr *e)
{
	bool *found = arg;

	*found |= e->form != NULL && ix_has_fun(e->form);
}

/*
 * How many selects, one inside the other, read one of several tensors each, under
 * conditions that are the same in all lanes, such as those of a concat along another
 * axis? Not one side of another select: what bounds an address may be its condition, and
 * that of a branch, together.
 */
static int32_t n_branches(lowering *lw, const expr *e)
{
	loop_set lanes = lw->vvar >= 0 ? (loop_set)1 << lw->vvar : 0;
	bool data = false;
	int32_t n = 0;

	loop_walk(lw->a, e, data_visit, &data);
	if (data || e->dtype == TN_BOOL || lw->k->machine->lanes > 0 ||
		lw->path.n > 0)
		return 0;
	for (; e->kind == EX_SELECT && n < MOST_BRANCHES; e = e->arg[2], n++)
		if ((loop_expr_vars(lw->k, e->arg[0]) & lanes) != 0 ||
			(!lw_is_unsafe(lw, e->arg[1]) &&
				!lw_is_unsafe(lw, e->arg[2])))
			break;
	return n >= LEAST_BRANCHES ? n : 0;
}

/* Sets r to the value of e, n selects of which are branches. */
static void branch(lowering *lw, const expr *e, val r, int32_t n)
{
	struct marks m = lw_mark(lw);
	kern_stmt *s;
	bool on;
	val c;

	if (n == 0) {
		val v = lw_ex(lw, e);

		lw_set(lw, r, r.lanes > 1 ? lw_to_lanes(lw, v) : v);
		return;
	}
	c = lw_ex(lw, e->arg[0]);
	if (lw_is_const(lw, c, &on)) {
		branch(lw, e->arg[on ? 1 : 2], r, on ? 0 : n - 1);
		return;
	}
	s = kern_if(lw->b, c.id, false);
	branch(lw, e->arg[1], r, 0);
	lw_release(lw, m);
	kern_else(lw->b, s);
	branch(lw, e->arg[2], r, n - 1);
	lw_release(lw, m);
	kern_close(lw->b);
}

static val branches(lowering *lw, const expr *e, int32_t n)
{
	val r = lw_register(lw, lw_type(lw, lw_computed(e->dtype), lw->lanes), 0);

	branch(lw, e, r, n);
	return r;
}

val lw_ex(lowering *lw, const expr *e)
{
	val v = {0};
	int32_t n;

	for (int32_t i = lw->memo.n - 1; i >= 0; i--)
		if (lw->memo.at[i].e == e)
			return lw->memo.at[i].v;
	switch (e->kind) {
	case EX_CONST:
		return lw_const(lw, e->dtype, e->c.f, e->c.i);
	case EX_PARAM:
		return lw->param[e->c.i];
	case EX_INDEX:
		v = lw_index(lw, e->form, TN_I64);
		break;
	case EX_READ:
		v = read(lw, e);
		break;
	case EX_CALL:
		v = call(lw, e);
		break;
	case EX_SELECT:
		n = n_branches(lw, e);
		v = n > 0 ? branches(lw, e, n) : select_value(lw, e);
		break;
	case EX_INSIDE:
		lw_load_funs(lw, e->form);
		v = inside(lw, e);
		break;
	case EX_CAST:
		v = lw_cast(lw, lw_ex(lw, e->arg[0]), e->dtype);
		break;
	}
	*vec_push(lw->a, &lw->memo) = (struct memo){e, v};
	return v;
}
