/*
 * local_eqn.c: the part of an equation that one process computes.
 *
 * Consumes a planned equation; produces the same over the axes of the process, on
 * its arrays. Every index is first the global one, then mapped to the array and
 * simplified, so that offsets cancel.
 *
 *     o[i,j] = x[6i+j] + y[j]     rows 3..5 of process 1, y whole
 *     global i = i' + 3, x at 6i' + 18 + j, which is 6i' + j in the array
 *
 * A sum over a part of an axis is a partial sum: it has the dtype of the
 * accumulator, and only the first process adds the initial value. Random numbers
 * are functions of global indices, so that all processes compute the same.
 */
#include "layout/local.h"

enum { MAX_DEPTH = 500 };

typedef struct walk {
	locals *b;
	const shard_eqn *q;
	ir_system *s;
	int32_t eqn, phase;
	const int32_t *out; /* arrays */
	/* axes of the equation as forms over the axes of the process */
	int32_t n;
	int64_t extent[IR_MAX_AXES];
	const ix_form *with[IR_MAX_AXES];
} walk;

/* A domain, and the expressions that were rewritten in it. */
typedef struct scope {
	ix_dom d;
	map *done;
	VEC(const expr *) made;
} scope;

static const ix_form *form(walk *w, const ix_dom *d, const ix_form *f,
	int32_t depth);

/* Element g of a tensor: the tensor of the phase, and the index in it. */
static const ix_form *local_index(walk *w, const ix_dom *d, int32_t tensor,
	const ix_form *g, int32_t *local)
{
	const sys_eqn *e = &w->q->unit->e;
	int32_t array = tensor == e->out[0] ? w->out[0]
					    : locals_source(w->b, w->eqn, tensor);
	const shard_piece *v = &w->b->window.at[array];

	*local = tensor == e->out[0] ? locals_result(w->b, w->phase, array)
				     : locals_tensor(w->b, w->phase, array);
	if (v->elems == 0)
		return ix_const(w->b->x, 0);
	return shard_index_of(w->b->x, d, v, g);
}

static const ix_form *term(walk *w, const ix_dom *d, const ix_atom *t,
	int32_t depth)
{
	ix *x = w->b->x;
	const ix_form *f = NULL;
	int32_t local;

	switch (t->kind) {
	case IX_DIGIT:
		f = ix_div(x, d, w->with[t->axis], t->lo);
		if (t->hi < w->extent[t->axis])
			f = ix_mod(x, d, f, t->hi / t->lo);
		break;
	case IX_FLOOR:
		f = ix_div(x, d, form(w, d, t->f, depth), t->den);
		break;
	case IX_CLAMP:
		f = ix_clamp(x, d, form(w, d, t->f, depth), t->lo, t->hi);
		break;
	case IX_FUN:
		f = local_index(w, d, (int32_t)t->fun, form(w, d, t->f, depth),
			&local);
		f = ix_fun(x, local, f, t->lo, t->hi);
		break;
	}
	return f;
}

static const ix_form *form(
	walk *w, const ix_dom *d, const ix_form *f, int32_t depth)
{
	ix *x = w->b->x;
	const ix_form *sum;

	if (depth > MAX_DEPTH)
		env_bug(arena_env(w->b->a), "shard.local", "form too deep");
	if (!ix_has_fun(f))
		return ix_subst(x, d, f, w->n, w->extent, w->with);
	sum = ix_const(x, f->c0);
	for (int32_t i = 0; i < f->n; i++)
		sum = ix_add(x, d, sum,
			ix_scale(x, term(w, d, f->t[i].atom, depth + 1),
				f->t[i].coef));
	return sum;
}

/* Elements of other processes are 0, or -0 if that is the neutral element. */
static const expr *masked(walk *w, const ix_dom *d, const ix_form *g,
	const shard_piece *v, const expr *read)
{
	ir_system *s = w->s;
	tn_dtype t = read->dtype;
	tn_dtype wide = dtype_wide(t);
	const expr *zero = dtype_is_float(wide) ? ex_const_f(s, wide, -0.0)
						: ex_const_i(s, wide, 0);

	if (v->elems == 0)
		return zero;
	read = ex_cast(s, wide, read);
	for (int32_t i = 0; i < v->n; i++) {
		const shard_span *p = &v->span[i];

		if (!(w->q->masks >> p->mesh & 1))
			continue;
		read = ex_select(s,
			ex_inside(s, shard_span_digit(w->b->x, d, v, i, g),
				p->start, p->start + p->n),
			read, zero);
	}
	return read;
}

static const expr *read_of(walk *w, const ix_dom *d, const expr *e)
{
	int32_t local;
	const ix_form *g = form(w, d, e->form, 0);
	const ix_form *at = local_index(w, d, e->tensor, g, &local);
	const expr *r = ex_read(w->s, local, at);

	if (e->tensor != w->q->masked)
		return r;
	return masked(w, d, g,
		&w->b->window.at[locals_source(w->b, w->eqn, e->tensor)], r);
}

static scope scope_of(walk *w, const ix_dom *d)
{
	return (scope){.d = *d, .done = map_new(w->b->a)};
}

static const expr *rewrite(walk *w, scope *c, const expr *e, int32_t depth);

static const expr *branch(walk *w, scope *c, const expr *cond, bool holds,
	const expr *e, int32_t depth)
{
	ix_dom d = ir_dom_when(w->s, &c->d, cond, holds);
	scope in;

	if (d.facts == c->d.facts)
		return rewrite(w, c, e, depth);
	in = scope_of(w, &d);
	return rewrite(w, &in, e, depth);
}

static const expr *rewrite(walk *w, scope *c, const expr *e, int32_t depth)
{
	ir_system *s = w->s;
	int64_t found = map_get(c->done, &e->id, sizeof e->id, -1);
	const expr *arg[IR_MAX_ARGS] = {NULL}, *r = NULL;

	if (found >= 0)
		return c->made.at[found];
	if (depth > MAX_DEPTH)
		env_bug(arena_env(w->b->a), "shard.local",
			"expression too deep");
	for (int32_t i = 0; i < e->n_args && e->kind != EX_SELECT; i++)
		arg[i] = rewrite(w, c, e->arg[i], depth + 1);
	switch (e->kind) {
	case EX_CONST:
		r = dtype_is_float(e->dtype) ? ex_const_f(s, e->dtype, e->c.f)
					     : ex_const_i(s, e->dtype, e->c.i);
		break;
	case EX_PARAM:
		r = ex_param(s, e->dtype, (int32_t)e->c.i);
		break;
	case EX_INDEX:
		r = ex_index(s, form(w, &c->d, e->form, 0));
		break;
	case EX_READ:
		r = read_of(w, &c->d, e);
		break;
	case EX_CALL:
		r = ex_call(s, e->fn, arg);
		break;
	case EX_SELECT:
		arg[0] = rewrite(w, c, e->arg[0], depth + 1);
		r = ex_select(s, arg[0],
			branch(w, c, arg[0], true, e->arg[1], depth + 1),
			branch(w, c, arg[0], false, e->arg[2], depth + 1));
		break;
	case EX_INSIDE:
		r = ex_inside(s, form(w, &c->d, e->form, 0), e->lo, e->hi);
		break;
	case EX_CAST:
		r = ex_cast(s, e->dtype, arg[0]);
		break;
	}
	map_set(c->done, &e->id, sizeof e->id, c->made.n);
	*vec_push(w->b->a, &c->made) = r;
	return r;
}

static const expr *over(walk *w, const ix_dom *d, const expr *e, tn_dtype want)
{
	scope c = scope_of(w, d);

	e = rewrite(w, &c, e, 0);
	return e->dtype == want ? e : ex_cast(w->s, want, e);
}

/* ---- axes ---- */

/*
 * The axes of the process; false: one has no elements; *left: it is an axis of the
 * result.
 */
static bool axes(walk *w, const sys_eqn *from, sys_eqn *to, bool *left)
{
	locals *b = w->b;
	const shard_eqn *q = w->q;
	shard_piece v[IR_MAX_AXES];
	int64_t extent[IR_MAX_AXES];
	int32_t at[IR_MAX_AXES];
	ix_dom d = {.box = {.extent = extent}};

	to->n_axes = to->n_left = 0;
	to->scan_axis = -1;
	w->n = from->n_axes;
	for (int32_t i = 0; i < from->n_axes; i++) {
		v[i] = shard_piece_of(
			b->a, &q->axis[i], b->p->mesh, b->out->process);
		w->extent[i] = from->axis[i].extent;
		*left = i < from->n_left;
		if (v[i].elems == 0)
			return false;
		at[i] = -1;
		if (v[i].elems == 1 && i != from->scan_axis)
			continue;
		at[i] = to->n_axes;
		if (i == from->scan_axis)
			to->scan_axis = at[i];
		extent[at[i]] = v[i].elems;
		to->axis[at[i]] = from->axis[i];
		to->axis[at[i]].extent = v[i].elems;
		to->n_axes++;
		to->n_left += i < from->n_left;
	}
	d.box.n = to->n_axes;
	for (int32_t i = 0; i < from->n_axes; i++)
		w->with[i] = shard_number_of(b->x, &d, &v[i],
			at[i] < 0 ? ix_const(b->x, 0)
				  : ix_axis(b->x, &d, at[i]));
	return true;
}

/* the axis over the elements of the result that the process has */
static void flat_axis(walk *w, ix_dom *d, int64_t *extent)
{
	const shard_piece *v = &w->b->window.at[w->out[0]];

	*extent = v->elems;
	*d = (ix_dom){.box = {.n = 1, .extent = extent}};
	w->n = 1;
	w->extent[0] = v->numel;
	w->with[0] = shard_number_of(
		w->b->x, d, v, ix_axis(w->b->x, d, 0));
}

/* ---- equations ---- */

static bool brings_init(const locals *b, uint32_t mask)
{
	for (int32_t m = 0; m < b->p->mesh->n; m++)
		if (mask >> m & 1 &&
			shard_mesh_at(b->p->mesh, b->out->process, m) != 0)
			return false;
	return true;
}

/* This process adds no terms: the initial value, or the neutral element. */
static void nothing(walk *w, const sys_eqn *from, bool init)
{
	for (int32_t k = 0; k < from->n_out; k++) {
		int32_t t = locals_result(w->b, w->phase, w->out[k]);
		tn_dtype out = w->s->tensor.at[t].dtype;
		sys_eqn e = {.label = from->label,
			.op = from->op,
			.call = from->call,
			.monoid = IR_SET,
			.n_out = 1,
			.out = {t},
			.scan_axis = -1};
		int64_t extent[1], whole = w->b->window.at[w->out[k]].elems;
		const expr *v;
		ix_dom d;

		flat_axis(w, &d, extent);
		if (whole > 1) {
			e.axis[0] = (sys_axis){
				.extent = whole, .kind = AXIS_P, .name = "i"};
			e.n_axes = e.n_left = 1;
		}
		v = ir_identity(w->s, from->monoid, k,
			ir_monoid_acc(from->monoid, k, w->b->p->s->tensor
					.at[from->out[0]].dtype));
		if (init && from->init[k] != NULL && from->push != NULL) {
			v = over(w, &d, from->init[k], from->init[k]->dtype);
		} else if (init && from->init[k] != NULL) {
			const ix_form *g = w->with[0], *at[IR_MAX_AXES];
			int64_t shape[IR_MAX_AXES];

			for (int32_t i = 0; i < from->n_left; i++)
				shape[i] = from->axis[i].extent;
			ix_delinearise(w->b->x, &d, g, from->n_left, shape, at);
			w->n = from->n_left;
			memcpy(w->extent, shape, sizeof shape);
			memcpy(w->with, at, sizeof at);
			v = over(w, &d, from->init[k], from->init[k]->dtype);
		}
		e.body[0] = ex_cast(w->s, out, v);
		ir_add_eqn(w->s, &e);
	}
}

/* The C function, on the part of the batch that the process has. */
static void opaque(walk *w, const sys_eqn *from)
{
	sys_eqn e = *from;
	int32_t *in = arena_array(w->b->a, int32_t, from->n_opaque_in + 1);

	for (int32_t i = 0; i < from->n_opaque_in; i++)
		in[i] = locals_tensor(w->b, w->phase,
			locals_operand(w->b, w->eqn, i));
	for (int32_t k = 0; k < from->n_out; k++)
		e.out[k] = locals_result(w->b, w->phase, w->out[k]);
	e.opaque_in = in;
	e.n_axes = e.n_left = 0;
	ir_add_eqn(w->s, &e);
}

static void init_of(walk *w, const sys_eqn *from, sys_eqn *e, const ix_dom *d,
	int32_t k, tn_dtype want)
{
	int64_t extent[1];
	ix_dom left = *d;

	if (e->init[k] == NULL)
		return;
	if (from->push != NULL) {
		walk flat = *w;

		flat_axis(&flat, &left, extent);
		e->init[k] = over(&flat, &left, from->init[k], want);
		return;
	}
	left.box.n = e->n_left;
	e->init[k] = over(w, &left, from->init[k], want);
}

/* The neutral element: -0 for sums, because 0 would change -0 to 0. */
static const expr *leaves(ir_system *s, int32_t monoid, int32_t k, tn_dtype acc)
{
	return monoid == IR_SUM && dtype_is_float(acc)
		? ex_const_f(s, acc, -0.0)
		: ir_identity(s, monoid, k, acc);
}

/*
 * The address of a scatter as an index of the array. A term for an element of
 * another process adds the neutral element to some element of this one.
 *
 *     o[ids[j]] += u[j], rows 3..5: o'[clamp(ids[j], 3, 5) - 3] +=
 *     sel(inside(ids[j], 3, 6), u[j], -0)
 */
static void push(walk *w, const ix_dom *d, const sys_eqn *from, sys_eqn *e)
{
	ix *x = w->b->x;
	const shard_piece *v = &w->b->window.at[w->out[0]];
	const ix_form *g = form(w, d, from->push, 0), *at = g;

	for (int32_t i = 0; i < v->n; i++) {
		const shard_span *p = &v->span[i];
		int64_t last = p->start + p->n - 1;
		const ix_form *digit;

		if (!layout_uses(&w->q->own, p->mesh))
			continue;
		digit = shard_span_digit(x, d, v, i, g);
		at = ix_add(x, d, at,
			ix_scale(x,
				ix_sub(x, d,
					ix_clamp(x, d, digit, p->start, last),
					digit),
				p->lo));
		for (int32_t k = 0; k < e->n_out; k++)
			e->body[k] = ex_select(w->s,
				ex_inside(w->s, digit, p->start, last + 1),
				e->body[k],
				leaves(w->s, e->monoid, k,
					e->body[k]->dtype));
	}
	e->push = shard_index_of(x, d, v, at);
}

void locals_equation(locals *b, int32_t eqn, int32_t phase,
	const int32_t *out, uint32_t mask)
{
	const shard_eqn *q = &b->p->eqn[eqn];
	const sys_eqn *from = &q->unit->e;
	walk w = {.b = b,
		.q = q,
		.s = b->out->phase.at[phase].s,
		.eqn = eqn,
		.phase = phase,
		.out = out};
	sys_eqn e = *from;
	bool init = brings_init(b, mask), left;
	tn_dtype first;
	ix_dom d;

	if (from->opaque != NULL) {
		/* has it no part of the batch? */
		if (from->n_axes == 0 || b->window.at[out[0]].elems > 0)
			opaque(&w, from);
		return;
	}
	if (b->window.at[out[0]].elems == 0)
		return;
	if (!axes(&w, from, &e, &left)) {
		if (from->push != NULL || !left)
			nothing(&w, from, init);
		return;
	}
	d = (ix_dom){.box = ir_eqn_box(w.s, &e)};
	for (int32_t k = 0; k < e.n_out; k++)
		e.out[k] = locals_result(b, phase, out[k]);
	first = w.s->tensor.at[e.out[0]].dtype;
	for (int32_t k = 0; k < e.n_out; k++) {
		tn_dtype want = e.monoid == IR_SET
			? first
			: ir_monoid_acc(e.monoid, k, first);

		e.body[k] = over(&w, &d, from->body[k], want);
		if (!init)
			e.init[k] = NULL;
		init_of(&w, from, &e, &d, k, want);
	}
	if (from->push != NULL)
		push(&w, &d, from, &e);
	ir_add_eqn(w.s, &e);
}

/* ---- joining parts ---- */

static const expr *with_params(
	ir_system *s, const expr *e, const expr *const *param, int32_t depth)
{
	const expr *arg[IR_MAX_ARGS] = {NULL};

	if (depth > MAX_DEPTH)
		env_bug(arena_env(s->a), "shard.local", "expression too deep");
	if (e->kind == EX_PARAM)
		return param[e->c.i];
	for (int32_t i = 0; i < e->n_args; i++)
		arg[i] = with_params(s, e->arg[i], param, depth + 1);
	if (e->kind == EX_CALL)
		return ex_call(s, e->fn, arg);
	if (e->kind == EX_SELECT)
		return ex_select(s, arg[0], arg[1], arg[2]);
	if (e->kind == EX_CAST)
		return ex_cast(s, e->dtype, arg[0]);
	return e;
}

/* One element of a tensor of the joiner: they are all alike. */
static const expr *joined(ir_system *s, const ix_dom *d, int32_t t)
{
	return ex_read(s, t, ix_axis(s->x, d, 0));
}

/* out[k] = what param has, joined */
static void join_two(ir_system *s, int32_t monoid, int32_t n_comp,
	const tn_dtype *acc, int64_t n, const expr *const *param, int32_t *out)
{
	for (int32_t k = 0; k < n_comp; k++) {
		sys_eqn e = {.label = ir_monoid_at(monoid)->name,
			.op = ir_monoid_at(monoid)->name,
			.monoid = IR_SET,
			.n_out = 1,
			.n_axes = 1,
			.n_left = 1,
			.axis = {{.extent = n, .kind = AXIS_P, .name = "i"}},
			.scan_axis = -1};

		out[k] = e.out[0] = ir_add_tensor(s, "o", acc[k], 1, &n);
		e.body[0] = ex_cast(s, acc[k],
			with_params(s, ir_combine(s, monoid, k, acc), param, 0));
		ir_add_eqn(s, &e);
	}
}

ir_system *shard_joiner(arena *a, int32_t monoid, int32_t n_comp,
	const tn_dtype *acc, int64_t n, int32_t n_parts)
{
	ir_system *s = ir_system_new(a, ix_new(a));
	ix_dom d = {.box = {.n = 1, .extent = &n}};
	const expr *param[2 * IR_MAX_COMP] = {NULL};
	int32_t far[IR_MAX_COMP];

	for (int32_t i = 0; i < n_parts * n_comp; i++) {
		int32_t t = ir_add_tensor(s,
			arena_printf(a, "x%d_%d", (int)(i / n_comp),
				(int)(i % n_comp)),
			acc[i % n_comp], 1, &n);

		s->tensor.at[t].is_input = true;
		*vec_push(a, &s->input) = t;
	}
	for (int32_t k = 0; k < n_comp; k++)
		far[k] = s->input.at[k];
	for (int32_t i = 1; i < n_parts; i++) {
		for (int32_t k = 0; k < n_comp; k++) {
			param[k] = joined(s, &d, far[k]);
			param[IR_MAX_COMP + k] =
				joined(s, &d, s->input.at[i * n_comp + k]);
		}
		join_two(s, monoid, n_comp, acc, n, param, far);
	}
	for (int32_t k = 0; k < n_comp; k++) {
		s->tensor.at[far[k]].is_output = true;
		*vec_push(a, &s->output) = far[k];
	}
	return s;
}
