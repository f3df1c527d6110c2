/*
 * prune.c: removes what no output needs.
 *
 * Consumes a system; produces one with the equations on which outputs depend and
 * their tensors, renumbered in order. All inputs stay, because callers pass them by
 * number. A system without dead parts is returned unchanged.
 */
#include "system/lower.h"

struct mapping {
	ir_system *s;
	form_map *map;
	void *arg;
	const int32_t *tensor;
	map *done; /* old id -> number in made */
	VEC(const expr *) made;
};

static const expr *map_expr(struct mapping *m, const expr *e);

static const expr *map_node(struct mapping *m, const expr *e)
{
	const ix_form *f = e->form != NULL ? m->map(m->arg, e->form) : NULL;
	const expr *arg[IR_MAX_ARGS] = {0};

	for (int32_t i = 0; i < e->n_args; i++)
		arg[i] = map_expr(m, e->arg[i]);
	switch (e->kind) {
	case EX_CONST:
		return dtype_is_float(e->dtype)
			? ex_const_f(m->s, e->dtype, e->c.f)
			: ex_const_i(m->s, e->dtype, e->c.i);
	case EX_INDEX:
		return ex_index(m->s, f);
	case EX_READ:
		return ex_read(m->s,
			m->tensor != NULL ? m->tensor[e->tensor] : e->tensor,
			f);
	case EX_CALL:
		return ex_call(m->s, e->fn, arg);
	case EX_SELECT:
		return ex_select(m->s, arg[0], arg[1], arg[2]);
	case EX_INSIDE:
		return ex_inside(m->s, f, e->lo, e->hi);
	case EX_CAST:
		return ex_cast(m->s, e->dtype, arg[0]);
	case EX_PARAM:
		return ex_param(m->s, e->dtype, (int32_t)e->c.i);
	}
	return e;
}

static const expr *map_expr(struct mapping *m, const expr *e)
{
	int64_t found = map_get(m->done, &e->id, sizeof e->id, -1);
	const expr *r;

	if (found >= 0)
		return m->made.at[found];
	r = map_node(m, e);
	map_set(m->done, &e->id, sizeof e->id, m->made.n);
	*vec_push(m->s->a, &m->made) = r;
	return r;
}

const expr *ex_map(ir_system *s, const expr *e, form_map *fm, void *arg,
	const int32_t *tensor)
{
	struct mapping m = {.s = s,
		.map = fm,
		.arg = arg,
		.tensor = tensor,
		.done = map_new(s->a)};

	return map_expr(&m, e);
}

/* ---- forms whose data has new numbers ---- */

struct renumber {
	ix *x;
	ix_dom dom;
	const int32_t *tensor;
};

static const ix_form *renumber_form(void *arg, const ix_form *f);

static const ix_form *renumber_atom(struct renumber *r, const ix_atom *a)
{
	const ix_form *f = a->f != NULL ? renumber_form(r, a->f) : NULL;

	switch (a->kind) {
	case IX_DIGIT:
		return ix_digit(r->x, &r->dom, a->axis, a->lo, a->hi);
	case IX_FLOOR:
		return ix_div(r->x, &r->dom, f, a->den);
	case IX_CLAMP:
		return ix_clamp(r->x, &r->dom, f, a->lo, a->hi);
	case IX_FUN:
		return ix_fun(r->x, r->tensor[a->fun], f, a->lo, a->hi);
	}
	return f;
}

static const ix_form *renumber_form(void *arg, const ix_form *f)
{
	struct renumber *r = arg;
	const ix_form *sum;

	if (!ix_has_fun(f))
		return f;
	sum = ix_const(r->x, f->c0);
	for (int32_t i = 0; i < f->n; i++)
		sum = ix_add(r->x, &r->dom, sum,
			ix_scale(r->x, renumber_atom(r, f->t[i].atom),
				f->t[i].coef));
	return sum;
}

/* ---- the system ---- */

static void mark_reads(ir_system *s, const expr *e, bool *live)
{
	ex_reads r;

	if (e == NULL)
		return;
	r = ex_list_reads(s, e);
	for (int32_t i = 0; i < r.n; i++)
		live[r.at[i].tensor] = true;
}

static bool is_live(const sys_eqn *e, const bool *live)
{
	for (int32_t k = 0; k < e->n_out; k++)
		if (live[e->out[k]])
			return true;
	return false;
}

static void mark_eqn(ir_system *s, const sys_eqn *e, bool *live)
{
	for (int32_t k = 0; k < e->n_out; k++)
		live[e->out[k]] = true;
	for (int32_t i = 0; i < e->n_opaque_in; i++)
		live[e->opaque_in[i]] = true;
	for (int32_t k = 0; k < e->n_out && e->opaque == NULL; k++) {
		mark_reads(s, e->body[k], live);
		mark_reads(s, e->init[k], live);
	}
	if (e->push != NULL)
		mark_reads(s, ex_index(s, e->push), live);
}

static void copy_eqn(
	ir_system *to, ir_system *from, const sys_eqn *old, const int32_t *number)
{
	struct renumber r = {.x = to->x, .tensor = number};
	sys_eqn e = *old;
	int64_t numel = from->tensor.at[old->out[0]].numel;

	for (int32_t k = 0; k < e.n_out; k++)
		e.out[k] = number[old->out[k]];
	if (e.opaque != NULL) {
		int32_t *in = arena_array(to->a, int32_t, e.n_opaque_in);

		for (int32_t i = 0; i < e.n_opaque_in; i++)
			in[i] = number[old->opaque_in[i]];
		e.opaque_in = in;
		ir_add_eqn(to, &e);
		return;
	}
	r.dom.box = ir_eqn_box(to, old);
	for (int32_t k = 0; k < e.n_out; k++)
		e.body[k] = ex_map(to, old->body[k], renumber_form, &r, number);
	if (e.push != NULL) {
		e.push = renumber_form(&r, old->push);
		r.dom.box = (ix_box){.n = 1,
			.extent = arena_copy(to->a, &numel, sizeof numel)};
	}
	for (int32_t k = 0; k < e.n_out; k++)
		if (old->init[k] != NULL)
			e.init[k] = ex_map(
				to, old->init[k], renumber_form, &r, number);
	ir_add_eqn(to, &e);
}

const expr *ex_renumber(ir_system *s, const ix_dom *d, const expr *e,
	const int32_t *tensor)
{
	struct renumber r = {.x = s->x, .dom = *d, .tensor = tensor};

	return ex_map(s, e, renumber_form, &r, tensor);
}

const ix_form *ir_renumber(ir_system *s, const ix_dom *d, const ix_form *f,
	const int32_t *tensor)
{
	struct renumber r = {.x = s->x, .dom = *d, .tensor = tensor};

	return renumber_form(&r, f);
}

static void copy_tensors(
	ir_system *to, ir_system *from, const bool *live, int32_t *number)
{
	for (int32_t i = 0; i < from->tensor.n; i++) {
		const sys_tensor *t = &from->tensor.at[i];
		sys_tensor *made;

		number[i] = -1;
		if (!live[i])
			continue;
		number[i] = ir_add_tensor(
			to, t->name, t->dtype, t->rank, t->shape);
		made = &to->tensor.at[number[i]];
		made->is_input = t->is_input;
		made->steady = t->steady;
		made->is_output = t->is_output;
		made->storage = t->storage;
	}
	for (int32_t i = 0; i < from->input.n; i++)
		*vec_push(to->a, &to->input) = number[from->input.at[i]];
	for (int32_t i = 0; i < from->output.n; i++)
		*vec_push(to->a, &to->output) = number[from->output.at[i]];
	for (int32_t i = 0; i < from->store.n; i++)
		*vec_push(to->a, &to->store) = from->store.at[i];
}

ir_system *ir_prune(ir_system *s)
{
	bool *live = arena_array(s->a, bool, s->tensor.n + 1);
	int32_t *number = arena_array(s->a, int32_t, s->tensor.n + 1);
	bool all = true;
	ir_system *to;

	for (int32_t i = 0; i < s->input.n; i++)
		live[s->input.at[i]] = true;
	for (int32_t i = 0; i < s->output.n; i++)
		live[s->output.at[i]] = true;
	for (int32_t i = s->eqn.n - 1; i >= 0; i--)
		if (is_live(&s->eqn.at[i], live))
			mark_eqn(s, &s->eqn.at[i], live);
	for (int32_t i = 0; i < s->tensor.n; i++)
		all = all && live[i];
	if (all)
		return s;
	to = ir_system_new(s->a, s->x);
	copy_tensors(to, s, live, number);
	for (int32_t i = 0; i < s->eqn.n; i++)
		if (is_live(&s->eqn.at[i], live))
			copy_eqn(to, s, &s->eqn.at[i], number);
	return to;
}
