/*
 * lower.c: a program's calls into one system of equations in pull form.
 *
 * Consumes instances; produces equations in order: each tensor has one equation;
 * an update computes the next version from the one before (init); equal equations
 * are merged; copies of whole tensors disappear; empty tensors have no equation;
 * and a sum over no elements is its identity. Names of operations are kept only
 * as labels.
 *
 *     t = add(x, y); o = reduce_sum(t, axes=[0])
 *     ->  t[i, j] = x[8*i + j] + y[8*i + j];  o[j] += t[8*i + j]
 */
#include "program/local.h"

/* ---- the box of an equation ---- */

static void make_box(leq *c)
{
	const in_eqn *q = c->q;

	c->n_axes = 0;
	for (int32_t i = 0; i < c->p->n_letters; i++)
		c->axis_of[i] = -1;
	for (int32_t i = 0; i < q->n_letters; i++) {
		int32_t l = q->letters[i];
		int64_t extent = c->p->letter[l].extent;

		if (extent == 1)
			continue;
		c->axis_of[l] = c->n_axes;
		c->extent[c->n_axes] = extent;
		c->axis[c->n_axes++] = (sys_axis){.extent = extent,
			.kind = AXIS_R,
			.name = c->p->letter[l].name};
	}
	c->dom = (ix_dom){.box = {.n = c->n_axes, .extent = c->extent}};
}

static void make_left(leq *c)
{
	const in_eqn *q = c->q;
	const ir_type *t = &c->p->tensor[q->out[0]].type;
	bool data = false;

	c->rank = t->rank;
	for (int32_t i = 0; i < c->rank; i++) {
		c->shape[i] = t->shape[i];
		c->left[i] = lower_form(c, &c->dom, q->left[i]);
		data = data || ix_has_fun(c->left[i]);
	}
	c->pos = data ? NULL
		      : ix_linearise(c->w->x, &c->dom, c->rank, c->shape,
				c->left);
}

static bool has_empty_letter(const leq *c)
{
	for (int32_t i = 0; i < c->q->n_letters; i++)
		if (c->p->letter[c->q->letters[i]].extent == 0)
			return true;
	return false;
}

/* ---- tensors and names ---- */

/* The value of the program for tensor t of the instance; -1: a temporary. */
static int32_t value_of(const leq *c, int32_t t)
{
	int32_t r = c->p->tensor[t].result;

	return r < 0 ? -1 : c->w->p->call.at[c->number].result[r];
}

/* Does a later equation of the instance update t? */
static bool is_updated(const leq *c, int32_t t)
{
	for (int32_t i = c->p->n_eqns - 1; i >= 0 && &c->p->eqn[i] > c->eqn; i--)
		if (c->p->eqn[i].out[0] == t)
			return true;
	return false;
}

static const char *tensor_name(const leq *c, int32_t t)
{
	int32_t v = value_of(c, t);
	const ir_call *call = &c->w->p->call.at[c->number];
	const char *name = c->p->tensor[t].name;

	if (v >= 0)
		name = c->w->p->value.at[v].name;
	else
		name = arena_printf(c->w->a, "%s.%s",
			c->w->p->value.at[call->result[0]].name, name);
	if (c->eqn != NULL && is_updated(c, t))
		name = arena_printf(c->w->a, "%s.old", name);
	return name;
}

static int32_t new_tensor(leq *c, int32_t t)
{
	const ir_type *type = &c->p->tensor[t].type;

	return ir_add_tensor(c->w->s, tensor_name(c, t), type->dtype,
		type->rank, type->shape);
}

static const char *label(const leq *c)
{
	const char *row = ir_row_name(c->p->row);

	if (c->p->n_eqns == 1)
		return row;
	return arena_printf(
		c->w->a, "%s.%s", row, c->p->tensor[c->q->out[0]].name);
}

/* ---- merging equal equations ---- */

static void add_i64(str *s, int64_t v)
{
	str_addn(s, (const char *)&v, sizeof v);
}

static str structure(leq *c, const sys_eqn *e)
{
	str k = str_new(c->w->a);

	add_i64(&k, e->monoid);
	add_i64(&k, e->n_left);
	for (int32_t i = 0; i < e->n_axes; i++)
		add_i64(&k, e->axis[i].extent);
	add_i64(&k, -1);
	add_i64(&k, e->push != NULL ? e->push->id : -1);
	for (int32_t i = 0; i < e->n_out; i++) {
		const ir_type *t = &c->p->tensor[c->q->out[i]].type;

		add_i64(&k, e->body[i]->id);
		add_i64(&k, e->init[i] != NULL ? e->init[i]->id : -1);
		add_i64(&k, t->dtype);
		for (int32_t d = 0; d < t->rank; d++)
			add_i64(&k, t->shape[d]);
	}
	return k;
}

static bool is_output(const leq *c, int32_t t)
{
	int32_t v = value_of(c, t);

	for (int32_t i = 0; v >= 0 && i < c->w->p->output.n; i++)
		if (c->w->p->output.at[i] == v)
			return true;
	return false;
}

static bool is_again(const ir_program *p, int32_t call)
{
	const ir_call *c = &p->call.at[call];

	return c->n_results > 0 && p->value.at[c->result[0]].again;
}

static bool is_apart(const leq *c, int32_t t)
{
	const ir_program *p = c->w->p;
	int32_t v = value_of(c, t);

	return is_again(p, c->number) ||
		(v >= 0 && p->value.at[v].apart);
}

/* A copy of a whole tensor: the value is its source. */
static bool is_copy(leq *c, const sys_eqn *e)
{
	const expr *b = e->body[0];
	const ir_type *t = &c->p->tensor[c->q->out[0]].type;
	const sys_tensor *from;

	if (e->monoid != IR_SET || b->kind != EX_READ ||
		c->p->tensor[c->q->out[0]].next_of >= 0 ||
		b->form != ir_left_number(c->w->s, e))
		return false;
	from = &c->w->s->tensor.at[b->tensor];
	if (from->numel != shape_numel(t->shape, t->rank) ||
		from->storage >= 0)
		return false;
	if (!is_output(c, c->q->out[0]))
		return true;
	return from->rank == t->rank &&
		memcmp(from->shape, t->shape,
			(size_t)t->rank * sizeof *t->shape) == 0;
}

/* Adds e, or finds an equal equation. */
static void add(leq *c, sys_eqn *e)
{
	bool keeps = c->p->tensor[c->q->out[0]].next_of < 0;
	str key = {0};
	int64_t found;

	if (!is_apart(c, c->q->out[0]) && is_copy(c, e)) {
		c->tensor[c->q->out[0]] = e->body[0]->tensor;
		return;
	}
	for (int32_t k = 0; k < e->n_out; k++)
		keeps = keeps && !is_apart(c, c->q->out[k]);
	if (keeps) {
		key = structure(c, e);
		found = map_get(c->w->merged, key.at, key.n, -1);
		if (found >= 0) {
			const sys_eqn *old = &c->w->s->eqn.at[found];

			for (int32_t k = 0; k < e->n_out; k++)
				c->tensor[c->q->out[k]] = old->out[k];
			return;
		}
	}
	for (int32_t k = 0; k < e->n_out; k++) {
		e->out[k] = new_tensor(c, c->q->out[k]);
		c->tensor[c->q->out[k]] = e->out[k];
	}
	found = ir_add_eqn(c->w->s, e);
	if (keeps)
		map_set(c->w->merged, key.at, key.n, found);
}

/* ---- bodies and versions ---- */

static void begin_eqn(leq *c, sys_eqn *e)
{
	const in_eqn *q = c->q;
	tn_dtype first = c->p->tensor[q->out[0]].type.dtype;

	*e = (sys_eqn){.monoid = q->monoid,
		.n_out = q->n_out,
		.label = label(c),
		.op = ir_row_name(c->p->row),
		.call = c->number,
		.scan_axis = -1};
	for (int32_t k = 0; k < q->n_out; k++)
		c->want[k] = q->monoid == IR_SET
			? first
			: ir_monoid_acc(q->monoid, k, first);
}

/* Makes the axes of the shape the left axes, if there are no letters. */
static void shape_axes(leq *c, sys_eqn *e)
{
	const ir_type *t = &c->p->tensor[c->q->out[0]].type;

	for (int32_t i = 0; i < t->rank; i++)
		if (t->shape[i] != 1)
			e->axis[e->n_axes++] = (sys_axis){
				.extent = t->shape[i],
				.kind = AXIS_P,
				.name = arena_printf(c->w->a, "i_%d", i)};
	e->n_left = e->n_axes;
}

/* A reduction over no elements: the identity, or the version before. */
static void lower_nothing(leq *c)
{
	ir_system *s = c->w->s;
	const in_eqn *q = c->q;
	in_eqn one = *q;

	if (q->is_update)
		return;
	for (int32_t k = 0; k < q->n_out; k++) {
		tn_dtype t = c->p->tensor[q->out[k]].type.dtype;
		leq part = *c;
		sys_eqn e;

		begin_eqn(c, &e);
		shape_axes(c, &e);
		e.monoid = IR_SET;
		e.n_out = 1;
		e.body[0] = ex_cast(s, t,
			ir_identity(s, q->monoid, k, c->want[k]));
		one.n_out = 1;
		one.out[0] = q->out[k];
		part.q = &one;
		add(&part, &e);
	}
}

static void set_init(leq *c, sys_eqn *e, int32_t old)
{
	ir_system *s = c->w->s;
	int64_t *numel = arena_array(c->w->a, int64_t, 1);
	ix_dom flat = {.box = {.n = 1, .extent = numel}};
	const ix_form *at;
	const expr *v;
	const sys_tensor *t = &s->tensor.at[old];

	*numel = t->numel;
	at = e->push != NULL ? ix_axis(c->w->x, &flat, 0) : ir_left_number(c->w->s, e);
	v = ex_read(s, old, at);
	if (t->eqn >= 0) {
		const sys_eqn *made = &s->eqn.at[t->eqn];

		if (made->monoid == IR_SET && made->body[0] != NULL &&
			made->body[0]->kind == EX_CONST)
			v = made->body[0];
	}
	v = ex_cast(s, c->want[0], v);
	if (v != ir_identity(s, e->monoid, 0, c->want[0]))
		e->init[0] = v;
}

/* The axes of a plain left side: its letters, then the others. */
static void plain_axes(leq *c, sys_eqn *e)
{
	e->n_axes = c->n_axes;
	e->n_left = c->pos->n;
	for (int32_t i = 0; i < c->n_axes; i++) {
		e->axis[i] = c->axis[i];
		e->axis[i].kind = i < e->n_left ? AXIS_P : AXIS_R;
	}
}

static void lower_scan(leq *c, sys_eqn *e)
{
	int32_t out = new_tensor(c, c->q->out[0]), axis;

	c->tensor[c->q->out[0]] = e->out[0] = out;
	e->body[0] = ex_cast(c->w->s, c->want[0],
		lower_expr(c, &c->dom, c->q->body[0]));
	if (!left_is_plain(c))
		lower_fail(c, "scan", "the left side of a scan must consist "
			"of letters");
	plain_axes(c, e);
	axis = c->axis_of[c->q->scan_letter];
	if (axis >= 0) {
		e->axis[axis].kind = AXIS_S;
		e->scan_axis = axis;
		e->scan_step = c->q->scan_step;
	}
	ir_add_eqn(c->w->s, e);
}

/*
 * A write whose indices cannot be solved for its letters. A tensor h has, for
 * each element, the number of the iteration that writes it, or -1.
 *
 *     h[j] max= number of (letters) where left == j
 *     o[j] = h[j] >= 0 ? v[h[j]] : old[j]
 */
static void write_by_search(leq *c, sys_eqn *e)
{
	ir_system *s = c->w->s;
	ix *x = c->w->x;
	const ir_type *t = &c->p->tensor[c->q->out[0]].type;
	const in_node *from = c->q->body[0];
	const ir_type *value = &c->p->tensor[from->tensor].type;
	const ix_form *at[IR_MAX_AXES], *own;
	int32_t old = c->tensor[c->q->out[0]];
	int32_t v = c->tensor[from->tensor], hit;
	tn_dtype wide = ir_wide(t->dtype);
	ix_dom d;
	const expr *h, *arg[2];

	for (int32_t i = 0; i < c->n_axes; i++)
		at[i] = ix_axis(x, &c->dom, i);
	e->monoid = IR_MAX;
	c->want[0] = TN_I64;
	e->body[0] = ex_index(
		s, ix_linearise(x, &c->dom, c->n_axes, c->extent, at));
	left_solve(c, e);
	hit = ir_add_tensor(s,
		arena_printf(c->w->a, "%s.place", tensor_name(c, c->q->out[0])),
		TN_I64, t->rank, t->shape);
	e->out[0] = hit;
	ir_add_eqn(s, e);
	begin_eqn(c, e);
	shape_axes(c, e);
	d = (ix_dom){.box = ir_eqn_box(s, e)};
	own = ir_left_number(c->w->s, e);
	h = ex_read(s, hit, own);
	arg[0] = h;
	arg[1] = ex_const_i(s, TN_I64, 0);
	e->body[0] = ex_select(s, ex_call(s, ir_scalar_find("ge", 2), arg),
		ex_cast(s, wide,
			ex_read(s, v,
				ix_clamp(x, &d,
					ix_fun(x, hit, own, INT64_MIN / 2,
						INT64_MAX / 2),
					0,
					shape_numel(value->shape,
						value->rank) - 1))),
		ex_cast(s, wide, ex_read(s, old, own)));
	e->body[0] = ex_cast(s, c->want[0], e->body[0]);
}

static void lower_eqn(leq *c)
{
	const in_eqn *q = c->q;
	const ir_type *t = &c->p->tensor[q->out[0]].type;
	int32_t old = c->tensor[q->out[0]];
	sys_eqn e;

	if (shape_numel(t->shape, t->rank) == 0) {
		for (int32_t k = 0; k < q->n_out && !q->is_update; k++)
			c->tensor[q->out[k]] = new_tensor(c, q->out[k]);
		return;
	}
	begin_eqn(c, &e);
	if (has_empty_letter(c)) {
		lower_nothing(c);
		return;
	}
	make_box(c);
	make_left(c);
	if (q->is_scan) {
		lower_scan(c, &e);
		return;
	}
	for (int32_t k = 0; k < q->n_out; k++)
		e.body[k] = ex_cast(c->w->s, c->want[k],
			lower_expr(c, &c->dom, q->body[k]));
	if (left_is_plain(c))
		plain_axes(c, &e);
	else
		left_solve(c, &e);
	prog_match(c, &e);
	if (q->monoid == IR_SET && e.n_axes > e.n_left)
		write_by_search(c, &e);
	if (q->is_update && q->monoid != IR_SET)
		set_init(c, &e, old);
	add(c, &e);
}

/* ---- calls ---- */

/*
 * The tensor in the shape that an opaque row needs. (For other rows a reshaped
 * copy is replaced by its source.)
 */
static int32_t in_shape(leq *c, int32_t t, const ir_type *want)
{
	lower *w = c->w;
	const sys_tensor *old = &w->s->tensor.at[t];
	int64_t numel = old->numel;
	sys_eqn e = {.monoid = IR_SET,
		.label = "copy",
		.op = "copy",
		.call = c->number,
		.n_out = 1,
		.scan_axis = -1};

	if (old->rank == want->rank &&
		memcmp(old->shape, want->shape,
			(size_t)want->rank * sizeof *want->shape) == 0)
		return t;
	if (numel > 1)
		e.axis[e.n_axes++] = (sys_axis){
			.extent = numel, .kind = AXIS_P, .name = "i"};
	e.n_left = e.n_axes;
	e.body[0] = ex_read(w->s, t, ir_left_number(w->s, &e));
	e.out[0] = ir_add_tensor(
		w->s, old->name, old->dtype, want->rank, want->shape);
	if (numel > 0)
		ir_add_eqn(w->s, &e);
	return e.out[0];
}

static void lower_opaque(leq *c)
{
	const ir_inst *p = c->p;
	lower *w = c->w;
	int32_t *in = arena_array(w->a, int32_t, p->n_tensors + 1), n = 0;
	sys_eqn e = {.monoid = IR_SET,
		.label = ir_row_name(p->row),
		.op = ir_row_name(p->row),
		.call = c->number,
		.scan_axis = -1,
		.opaque = p->opaque,
		.n_opaque_attr = p->n_opaque_attr,
		.opaque_attr = p->opaque_attr,
		.n_batch = p->n_batch,
		.batch = p->batch};

	for (int32_t i = 0; i < p->n_tensors; i++)
		if (p->tensor[i].operand >= 0)
			in[n++] = in_shape(
				c, c->tensor[i], &p->tensor[i].type);
	e.opaque_in = in;
	e.n_opaque_in = n;
	if (p->n_results > IR_MAX_OUT)
		lower_fail(c, "results", "more than %d results", IR_MAX_OUT);
	for (int32_t i = 0; i < p->n_results; i++) {
		e.out[e.n_out++] = new_tensor(c, p->result[i]);
		c->tensor[p->result[i]] = e.out[i];
	}
	ir_add_eqn(w->s, &e);
}

/* Writes rm' to the memory of rm, if that is the caller's and not written yet. */
static void share_storage(leq *c, int32_t t)
{
	int32_t operand = c->p->tensor[t].next_of;
	lower *w = c->w;
	sys_tensor *from, *to;

	if (operand < 0 || c->tensor[operand] == c->tensor[t])
		return;
	from = &w->s->tensor.at[c->tensor[operand]];
	to = &w->s->tensor.at[c->tensor[t]];
	if (from->storage < 0 && !from->is_input)
		return;
	if (from->storage < 0) {
		from->storage = w->n_storages++;
	} else {
		/* does another value overwrite it already? */
		for (int32_t i = c->tensor[operand] + 1; i < w->s->tensor.n;
			i++)
			if (w->s->tensor.at[i].storage == from->storage)
				return;
	}
	to->storage = from->storage;
}

static void lower_call(lower *w, int32_t number)
{
	const ir_call *call = &w->p->call.at[number];
	const ir_inst *p = call->inst;
	leq c = {.w = w, .p = p, .number = number, .at = call->at};
	int32_t first = w->s->eqn.n;

	c.tensor = arena_array(w->a, int32_t, p->n_tensors + 1);
	c.axis_of = arena_array(w->a, int32_t, p->n_letters + 1);
	for (int32_t i = 0; i < p->n_tensors; i++) {
		int32_t operand = p->tensor[i].operand >= 0
			? p->tensor[i].operand
			: p->tensor[i].next_of; /* x' starts as x */

		c.tensor[i] = operand >= 0 ? w->of_value[call->arg[operand]]
					   : -1;
	}
	if (p->opaque != NULL) {
		lower_opaque(&c);
	} else {
		for (int32_t i = 0; i < p->n_eqns; i++) {
			c.extent = arena_array(w->a, int64_t, IR_MAX_AXES);
			c.q = c.eqn = &p->eqn[i];
			lower_eqn(&c);
		}
	}
	for (int32_t i = 0; i < p->n_results; i++) {
		w->of_value[call->result[i]] = c.tensor[p->result[i]];
		share_storage(&c, p->result[i]);
	}
	if (!is_again(w->p, number))
		return;
	w->n_runs += number == 0 || !is_again(w->p, number - 1);
	for (int32_t i = first; i < w->s->eqn.n; i++)
		w->s->eqn.at[i].again = w->n_runs;
}

static void add_inputs(lower *w)
{
	for (int32_t i = 0; i < w->p->input.n; i++) {
		const ir_value *v = &w->p->value.at[w->p->input.at[i]];
		int32_t t = ir_add_tensor(w->s, v->name, v->type.dtype,
			v->type.rank, v->type.shape);

		w->s->tensor.at[t].is_input = true;
		w->s->tensor.at[t].steady = v->steady;
		*vec_push(w->a, &w->s->input) = t;
		w->of_value[w->p->input.at[i]] = t;
	}
}

/* store: the input whose memory it is stored in; -1: its own array */
static void add_output(lower *w, int32_t t, int32_t store)
{
	*vec_push(w->a, &w->s->output) = t;
	*vec_push(w->a, &w->s->store) = store;
	w->s->tensor.at[t].is_output = true;
}

ir_system *ir_lower_all(arena *a, ix *x, const ir_program *p)
{
	lower *w = arena_make(a, lower);

	*w = (lower){.a = a, .x = x, .e = arena_env(a), .p = p};
	w->s = ir_system_new(a, x);
	w->merged = map_new(a);
	w->of_value = arena_array(a, int32_t, p->value.n + 1);
	add_inputs(w);
	for (int32_t i = 0; i < p->call.n; i++)
		lower_call(w, i);
	for (int32_t i = 0; i < p->output.n; i++)
		add_output(w, w->of_value[p->output.at[i]], -1);
	for (int32_t i = 0; i < p->input.n; i++) {
		int32_t v = p->input.at[i], newest = ir_program_newest(p, v);

		if (newest != v && p->value.at[v].is_param)
			add_output(w, w->of_value[newest], i);
	}
	return w->s;
}

ir_system *ir_lower(arena *a, ix *x, const ir_program *p)
{
	return ir_prune(ir_lower_all(a, x, p));
}
