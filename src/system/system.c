/*
 * system.c: systems: tensors and equations in pull form; their verifier.
 *
 * ir_system_verify checks what system.h says of sys_tensor and sys_eqn; it throws
 * TN_EINTERNAL and names the equation.
 */
#include "system/local.h"

ir_system *ir_system_new(arena *a, ix *x)
{
	ir_system *s = arena_make(a, ir_system);
	ex_table *t = arena_make(a, ex_table);

	s->a = a;
	s->x = x;
	s->intern = t;
	s->n_caller_storages = -1;
	t->index = map_new(a);
	t->name = map_new(a);
	return s;
}

static const char *unique(ir_system *s, const char *name)
{
	ex_table *t = ir_exprs(s);
	int64_t used = map_get_str(t->name, name, 0);
	const char *r = name;

	while (used > 0) {
		r = arena_printf(s->a, "%s_%lld", name, (long long)++used);
		if (map_get_str(t->name, r, 0) != 0)
			continue;
		map_set_str(t->name, name, used);
		break;
	}
	map_set_str(t->name, r, 1);
	return r == name ? arena_strdup(s->a, r) : r;
}

enum { TRIAL_ROOM = 64 };

ir_trial ir_trial_begin(ir_system *s, arena *a)
{
	ex_table *t = ir_exprs(s);
	ir_trial r = {.n_tensors = s->tensor.n, .name = t->name};

	/* grow the list once, not in each trial */
	for (int32_t i = 0; i < TRIAL_ROOM; i++)
		vec_push(s->a, &s->tensor);
	s->tensor.n = r.n_tensors;
	t->name = map_new(a);
	return r;
}

void ir_trial_end(ir_system *s, const ir_trial *t)
{
	ir_exprs(s)->name = t->name;
	s->tensor.n = t->n_tensors;
}

int32_t ir_add_tensor(ir_system *s, const char *name, tn_dtype t, int32_t rank,
	const int64_t *shape)
{
	sys_tensor *st;
	const char *own = unique(s, name);
	int64_t numel = shape_numel(shape, rank);

	if (rank > TN_MAX_RANK || numel < 0)
		env_fail(arena_env(s->a), TN_EINVAL, "system.shape", (loc){0},
			"%s: rank %d is more than %d, or its elements are more "
			"than 2^48",
			name, rank, TN_MAX_RANK);
	st = vec_push(s->a, &s->tensor);
	*st = (sys_tensor){.name = own,
		.dtype = t,
		.rank = rank,
		.numel = numel,
		.eqn = -1,
		.storage = -1};
	for (int32_t i = 0; i < rank; i++)
		st->shape[i] = shape[i];
	return s->tensor.n - 1;
}

/* Is e a view of another tensor? */
static bool ir_eqn_is_view(ir_system *s, const sys_eqn *e)
{
	ix_dom d = {.box = ir_eqn_box(s, e)};
	const expr *b = e->body[0];

	if (e->monoid != IR_SET || e->n_out != 1 || e->opaque != NULL ||
		e->push != NULL || e->n_axes != e->n_left || b == NULL ||
		b->kind != EX_READ || b->tensor == e->out[0] ||
		ix_has_fun(b->form))
		return false;
	return ix_injective(s->x, &d, b->form) == IX_EQUAL;
}

int32_t ir_add_eqn(ir_system *s, const sys_eqn *e)
{
	sys_eqn *made = vec_push(s->a, &s->eqn);

	*made = *e;
	made->id = s->eqn.n - 1;
	for (int32_t k = 0; k < e->n_out; k++) {
		s->tensor.at[e->out[k]].eqn = made->id;
		s->tensor.at[e->out[k]].comp = k;
	}
	made->is_view = ir_eqn_is_view(s, made);
	return made->id;
}

ix_box ir_eqn_box(ir_system *s, const sys_eqn *e)
{
	int64_t *extent = arena_array(s->a, int64_t, e->n_axes);

	for (int32_t i = 0; i < e->n_axes; i++)
		extent[i] = e->axis[i].extent;
	return (ix_box){.n = e->n_axes, .extent = extent};
}

const ix_form *ir_left_number(ir_system *s, const sys_eqn *e)
{
	const ix_form *at[IR_MAX_AXES];
	ix_dom d = {.box = ir_eqn_box(s, e)};

	for (int32_t i = 0; i < e->n_left; i++)
		at[i] = ix_axis(s->x, &d, i);
	return ix_linearise(s->x, &d, e->n_left, d.box.extent, at);
}

int32_t ir_place_of_storage(const ir_system *s, int32_t t)
{
	int32_t storage = s->tensor.at[t].storage;

	for (int32_t i = 0; i < s->store.n && storage >= 0; i++) {
		int32_t in = s->store.at[i];

		if (in >= 0 && s->tensor.at[s->input.at[in]].storage == storage)
			return in;
	}
	return -1;
}

bool ir_in_place(const ir_system *s, int32_t t)
{
	int32_t storage = s->tensor.at[t].storage;

	if (storage < 0)
		return false;
	return (s->n_caller_storages >= 0 &&
		       storage >= s->n_caller_storages) ||
		ir_place_of_storage(s, t) >= 0;
}

bool ir_same_memory(const ir_system *s, int32_t a, int32_t b)
{
	return a != b && s->tensor.at[a].storage >= 0 &&
	       s->tensor.at[a].storage == s->tensor.at[b].storage &&
	       ir_in_place(s, a);
}

/* ---- the verifier ---- */

struct check {
	ir_system *s;
	const sys_eqn *e;
	int32_t n_axes; /* of the current expression */
	tn_status status;
};

static _Noreturn void broken(const struct check *c, const char *what)
{
	env *e = arena_env(c->s->a);

	if (c->e == NULL)
		env_fail(e, c->status, "system.verify", (loc){0}, "%s", what);
	env_fail(e, c->status, "system.verify", (loc){0},
		"equation %d (%s): %s", c->e->id,
		c->e->label != NULL ? c->e->label : "?", what);
}

static void need(const struct check *c, bool holds, const char *what)
{
	if (!holds)
		broken(c, what);
}

/* Fails if equation e cannot read this tensor. */
static void check_source(const struct check *c, int32_t tensor)
{
	const sys_tensor *t;

	need(c, tensor >= 0 && tensor < c->s->tensor.n, "it reads a tensor that does not exist");
	t = &c->s->tensor.at[tensor];
	need(c, t->eqn < 0 ? t->is_input || t->numel == 0
			   : t->eqn < c->e->id ||
				(t->eqn == c->e->id && c->e->scan_axis >= 0),
		"it reads a tensor that a later equation computes");
}

static void check_form(const struct check *c, const ix_form *f)
{
	for (int32_t i = 0; i < f->n; i++) {
		const ix_atom *a = f->t[i].atom;

		switch (a->kind) {
		case IX_DIGIT:
			need(c, a->axis >= 0 && a->axis < c->n_axes,
				"an index contains an axis that the equation lacks");
			need(c, a->hi <= c->e->axis[a->axis].extent ||
					c->e->push != NULL,
				"a digit exceeds the extent of its axis");
			break;
		case IX_FLOOR:
		case IX_CLAMP:
			check_form(c, a->f);
			break;
		case IX_FUN:
			check_source(c, (int32_t)a->fun);
			check_form(c, a->f);
			break;
		}
	}
}

static void check_expr(const struct check *c, const expr *e)
{
	if (!ex_first(c->s, e))
		return;
	need(c, e->kind != EX_PARAM, "a parameter of a combination is outside of it");
	if (e->kind == EX_READ) {
		check_source(c, e->tensor);
		need(c, e->dtype == c->s->tensor.at[e->tensor].dtype,
			"a read has another dtype than its tensor");
	}
	if (e->form != NULL)
		check_form(c, e->form);
	for (int32_t i = 0; i < e->n_args; i++)
		check_expr(c, e->arg[i]);
}

static void check_axes(const struct check *c)
{
	const sys_eqn *e = c->e;
	int64_t elems = 1;
	int32_t n_scan = 0;

	need(c, e->n_axes >= e->n_left && e->n_left >= 0 &&
			e->n_axes <= IR_MAX_AXES,
		"its numbers of axes are impossible");
	for (int32_t i = 0; i < e->n_axes; i++) {
		need(c, e->axis[i].extent >= 1, "an axis has no elements");
		need(c, (e->axis[i].kind == AXIS_R) == (i >= e->n_left),
			"axes of the left side must be first, and only they can be P or S");
		n_scan += e->axis[i].kind == AXIS_S;
		if (i < e->n_left)
			need(c, mul_ok(elems, e->axis[i].extent, &elems),
				"its result has 2^63 elements or more");
	}
	need(c, n_scan == (e->scan_axis >= 0) &&
			(e->scan_axis < 0 ||
				(e->scan_axis < e->n_left &&
					e->axis[e->scan_axis].kind ==
						AXIS_S)),
		"scan_axis must be the only axis of kind S");
	need(c, (e->scan_step == 0) == (e->scan_axis < 0),
		"scan_step must be 1 or -1 with a scan axis, and else 0");
	if (e->push == NULL)
		need(c, elems == c->s->tensor.at[e->out[0]].numel,
			"the axes of the left side have another number of elements than the "
			"result");
}

/* An axis of the batch is an axis of every tensor, with the same extent. */
static void check_batch(const struct check *c)
{
	const sys_eqn *e = c->e;
	int32_t n = e->n_opaque_in + e->n_out;

	for (int32_t i = 0; i < e->n_batch * n; i++) {
		int32_t t = i % n, b = i / n, axis = e->batch[i];
		const sys_tensor *x = &c->s->tensor.at[t < e->n_opaque_in
				? e->opaque_in[t]
				: e->out[t - e->n_opaque_in]];
		const sys_tensor *first = &c->s->tensor.at[e->n_opaque_in > 0
				? e->opaque_in[0]
				: e->out[0]];

		need(c, axis >= 0 && axis < x->rank &&
				x->shape[axis] ==
					first->shape[e->batch[b * n]],
			"an axis of the batch is not in every tensor with one extent");
		for (int32_t k = 0; k < b; k++)
			need(c, e->batch[k * n + t] != axis,
				"two axes of the batch are one axis of a tensor");
	}
}

static void check_eqn(struct check *c)
{
	const sys_eqn *e = c->e;
	ir_system *s = c->s;
	tn_dtype first;

	need(c, e->n_out >= 1 &&
			e->n_out <= (e->opaque != NULL ? IR_MAX_OUT
						       : IR_MAX_COMP),
		"it has no result, or too many");
	for (int32_t k = 0; k < e->n_out; k++) {
		need(c, e->out[k] >= 0 && e->out[k] < s->tensor.n,
			"a result is not a tensor");
		need(c, s->tensor.at[e->out[k]].eqn == e->id &&
				s->tensor.at[e->out[k]].comp == k,
			"another equation computes the same tensor");
	}
	if (e->opaque != NULL) {
		for (int32_t i = 0; i < e->n_opaque_in; i++)
			check_source(c, e->opaque_in[i]);
		check_batch(c);
		return;
	}
	check_axes(c);
	need(c, e->monoid == IR_SET
			? e->n_out == 1
			: e->n_out == ir_monoid_at(e->monoid)->n_comp,
		"it has another number of results than its monoid has components");
	need(c, e->monoid != IR_SET || e->n_left == e->n_axes,
		"'=' cannot have axes that are not on the left side");
	first = s->tensor.at[e->out[0]].dtype;
	ex_visit(s);
	for (int32_t k = 0; k < e->n_out; k++) {
		tn_dtype want = e->monoid == IR_SET
			? first
			: ir_monoid_acc(e->monoid, k, first);

		need(c, e->body[k] != NULL && e->body[k]->dtype == want,
			"the body has another dtype than its accumulator");
		need(c, e->init[k] == NULL || e->init[k]->dtype == want,
			"the initial value has another dtype than its accumulator");
		c->n_axes = e->n_axes;
		check_expr(c, e->body[k]);
	}
	if (e->push != NULL)
		check_form(c, e->push);
	ex_visit(s);
	for (int32_t k = 0; k < e->n_out; k++) {
		c->n_axes = e->push != NULL ? 1 : e->n_left;
		if (e->init[k] != NULL)
			check_expr(c, e->init[k]);
	}
	need(c, e->is_view == ir_eqn_is_view(s, e), "is_view does not say whether it is a view");
}

static void check_tensor(const struct check *c, const sys_tensor *t)
{
	need(c, t->rank >= 0 && t->rank <= TN_MAX_RANK, "a tensor has an impossible rank");
	need(c, t->numel == shape_numel(t->shape, t->rank),
		"numel of a tensor is not the product of its shape");
	need(c, !t->is_input || t->eqn < 0, "an equation computes an input");
	need(c, t->eqn < c->s->eqn.n, "the equation of a tensor does not exist");
	need(c, t->eqn >= 0 || t->is_input || t->numel == 0,
		"no equation computes a tensor");
}

void ir_system_verify(ir_system *s)
{
	sys_check(s, TN_EINTERNAL);
}

void sys_check(ir_system *s, tn_status status)
{
	struct check c = {.s = s, .status = status};
	map *names = map_new(s->a);

	for (int32_t i = 0; i < s->tensor.n; i++) {
		const sys_tensor *t = &s->tensor.at[i];

		check_tensor(&c, t);
		need(&c, map_get_str(names, t->name, -1) < 0,
			"two tensors have the same name");
		map_set_str(names, t->name, i);
	}
	for (int32_t i = 0; i < s->input.n; i++)
		need(&c, s->tensor.at[s->input.at[i]].is_input,
			"a tensor of the list of inputs is not marked as an input");
	for (int32_t i = 0; i < s->output.n; i++)
		need(&c, s->tensor.at[s->output.at[i]].is_output,
			"a tensor of the list of outputs is not marked as an output");
	for (int32_t i = 0; i < s->eqn.n; i++) {
		c.e = &s->eqn.at[i];
		need(&c, c.e->id == i, "its id is not its number");
		check_eqn(&c);
	}
}
