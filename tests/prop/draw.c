/*
 * draw.c: random programs, drawn from the op table.
 *
 * A program is a handful of calls. For each, a row is taken from the table;
 * for each of its operands an earlier value that its pattern and dtype class
 * accept (so that chains and fan-out arise), or a new input of a shape drawn
 * to fit. What the row refuses is drawn again. No operation is known here by
 * name but those of draw_row: another row that joins the table is tested from then on.
 */
#include "prop.h"
#include <string.h>

enum {
	MAX_CALLS = 12,
	TRIES = 60,	    /* per call */
	MAX_ELEMS = 6000,   /* of a tensor, */
	MAX_LARGE = 120000, /* in a large program */
	MAX_COST = 40000,   /* instances of a call */
	MAX_COST_LARGE = 400000,
	MAX_COST_ALL = 800000
};

typedef struct draft {
	arena *a;
	ir_table *t;
	prop_case *c;
	rng r;
	bool large;
	int32_t n_new; /* inputs so far, for their names */
	row_count *count;
	tn_dtype dtype; /* what floats of this program mostly are */
} draft;

/* A call about to be made. */
typedef struct attempt {
	draft *d;
	const ir_row *row;
	bindings b;
	bool has_num; /* the dtype of num and float operands is fixed */
	tn_dtype num;
	int32_t n;
	int32_t arg[IR_MAX_OPERANDS]; /* values; -1: a new input of type[] */
	ir_type type[IR_MAX_OPERANDS];
	int32_t n_attrs;
	ir_attr attr[16];
	ir_inst *inst;
} attempt;

int64_t type_numel(const ir_type *t)
{
	return shape_numel(t->shape, t->rank);
}

size_t type_bytes(const ir_type *t)
{
	return (size_t)type_numel(t) * dtype_size(t->dtype);
}

int64_t inst_cost(const ir_inst *inst)
{
	int64_t cost = 0;

	for (int32_t i = 0; i < inst->n_eqns; i++) {
		const in_eqn *q = &inst->eqn[i];
		int64_t n = 1;

		for (int32_t k = 0; k < q->n_letters; k++)
			if (!mul_ok(n, inst->letter[q->letters[k]].extent, &n))
				return INT64_MAX / 2;
		if (!add_ok(cost, n, &cost))
			return INT64_MAX / 2;
	}
	return cost;
}

/* ---- dtypes ---- */

static tn_dtype draw_float(draft *d)
{
	tn_dtype t = TN_I8;

	if (rng_percent(&d->r, 70))
		return d->dtype;
	if (rng_percent(&d->r, 50))
		return TN_F32;
	while (!dtype_is_float(t))
		t = (tn_dtype)rng_below(&d->r, TN_N_DTYPES);
	return t;
}

static tn_dtype draw_int(draft *d)
{
	static const tn_dtype ints[] = {TN_I64, TN_I64, TN_I64, TN_I32, TN_I32};
	tn_dtype t = TN_F32;

	if (rng_percent(&d->r, 60))
		return ints[rng_below(&d->r, 5)];
	while (!dtype_is_int(t))
		t = (tn_dtype)rng_below(&d->r, TN_N_DTYPES);
	return t;
}

static bool fits_class(const attempt *t, const char *class, tn_dtype have)
{
	switch (class[0]) {
	case 'f':
		return dtype_is_float(have) && (!t->has_num || t->num == have);
	case 'n':
		return have != TN_BOOL && (!t->has_num || t->num == have);
	case 'i':
		return dtype_is_int(have);
	case 'b':
		return have == TN_BOOL;
	}
	return true;
}

static tn_dtype draw_dtype(attempt *t, const char *class)
{
	draft *d = t->d;

	switch (class[0]) {
	case 'f':
		return t->has_num && dtype_is_float(t->num) ? t->num
							    : draw_float(d);
	case 'n':
		if (t->has_num)
			return t->num;
		return rng_percent(&d->r, 75) ? draw_float(d) : draw_int(d);
	case 'i':
		return draw_int(d);
	case 'b':
		return TN_BOOL;
	}
	if (t->has_num && rng_percent(&d->r, 90))
		return t->num;
	if (rng_percent(&d->r, 70))
		return draw_float(d);
	return rng_percent(&d->r, 60) ? draw_int(d) : TN_BOOL;
}

static void took(attempt *t, const char *class, tn_dtype have)
{
	if (class[0] == 'f' || class[0] == 'n' || class[0] == '\0') {
		t->has_num = true;
		t->num = have;
	}
}

/* ---- operands ---- */

/* Values tried for an operand: recent ones first, mostly. */
static bool reuse(attempt *t, const ir_param *q, const pattern *p)
{
	const ir_program *prog = t->d->c->p;
	rng *r = &t->d->r;

	for (int32_t tries = 0; prog->value.n > 0 && tries < 6; tries++) {
		int32_t n = prog->value.n, v = (int32_t)rng_below(r, n);
		const ir_type *type;
		bindings old = t->b;

		if (n > 4 && rng_percent(r, 50))
			v = n - 1 - (int32_t)rng_below(r, 4);
		type = &prog->value.at[v].type;
		if (!fits_class(t, q->dtype_class, type->dtype))
			continue;
		/* what indexes is an input, so that it can be in range */
		if (q->dtype_class[0] == 'i' && prog->value.at[v].call >= 0 &&
			!rng_percent(r, 15))
			continue;
		if (pattern_fit(p, &t->b, type)) {
			t->arg[t->n] = v;
			t->type[t->n++] = *type;
			return true;
		}
		t->b = old;
	}
	return false;
}

static bool draw_operand(attempt *t, const ir_param *q)
{
	const pattern *p = pattern_parse(t->d->a, q->pattern);
	ir_type *type = &t->type[t->n];
	int64_t most = t->d->large ? MAX_LARGE : MAX_ELEMS;

	if (p == NULL || t->n == IR_MAX_OPERANDS)
		return false;
	if (rng_percent(&t->d->r, 80) && reuse(t, q, p)) {
		took(t, q->dtype_class, t->type[t->n - 1].dtype);
		return true;
	}
	if (!pattern_draw(p, &t->b, type) || type_numel(type) > most)
		return false;
	type->dtype = draw_dtype(t, q->dtype_class);
	took(t, q->dtype_class, type->dtype);
	t->arg[t->n++] = -1;
	return true;
}

/* Operands of a row that takes any number: alike, but for one axis at most. */
static bool draw_alike(attempt *t)
{
	const pattern *any = pattern_parse(t->d->a, "i..");
	static const ir_param q = {.dtype_class = ""};
	rng *r = &t->d->r;
	int32_t n = (int32_t)rng_range(r, 1, 4), axis = -1;
	bool differ = rng_percent(r, 40);

	if (!reuse(t, &q, any)) {
		if (!pattern_draw(any, &t->b, &t->type[0]))
			return false;
		t->type[0].dtype = draw_float(t->d);
		t->arg[t->n++] = -1;
	}
	if (t->type[0].rank > 0)
		axis = (int32_t)rng_below(r, t->type[0].rank);
	for (int32_t i = 1; i < n; i++, t->n++) {
		t->type[i] = t->type[0];
		if (differ && axis >= 0)
			t->type[i].shape[axis] = draw_extent(&t->b);
		t->arg[i] = rng_percent(r, 30) && !differ ? t->arg[0] : -1;
		if (rng_percent(r, 10) && t->arg[i] < 0)
			pattern_draw(any, &t->b, &t->type[i]);
	}
	if (axis >= 0)
		bindings_add(&t->b, "=axis")->e[0] = axis;
	return true;
}

/* ---- calls ---- */

static void instantiate(void *arg)
{
	attempt *t = arg;

	t->inst = ir_instantiate(t->d->a, t->d->t, t->row, t->n, t->type,
		NULL, t->n_attrs, t->attr, (loc){0});
}

static bool affordable(const attempt *t)
{
	int64_t most = t->d->large ? MAX_LARGE : MAX_ELEMS;
	int64_t cost = inst_cost(t->inst);

	for (int32_t i = 0; i < t->inst->n_tensors; i++)
		if (type_numel(&t->inst->tensor[i].type) > most)
			return false;
	return cost <= (t->d->large ? MAX_COST_LARGE : MAX_COST) &&
		t->d->c->cost + cost <= MAX_COST_ALL;
}

static bool draw_call(draft *d, const ir_row *row, attempt *t)
{
	*t = (attempt){.d = d, .row = row};
	t->b.a = d->a;
	t->b.r = &d->r;
	if (d->large && rng_percent(&d->r, 40))
		t->b.large = rng_percent(&d->r, 50)
			? rng_range(&d->r, 1000, 100000)
			: INT64_C(1) << rng_range(&d->r, 8, 16);
	if (ir_row_is_variadic(row)) {
		if (!draw_alike(t))
			return false;
	} else {
		for (int32_t i = 0; i < ir_row_n_params(row); i++)
			if (ir_row_param(row, i)->is_operand &&
				!draw_operand(t, ir_row_param(row, i)))
				return false;
	}
	draw_attrs(d->a, &t->b, row, t->n, t->type, &t->n_attrs, t->attr);
	return env_run(arena_env(d->a), instantiate, t) == TN_OK &&
		affordable(t);
}

/* A write may fail where its row does not: it wants a newest version. */
static void make_call(void *arg)
{
	attempt *t = arg;
	draft *d = t->d;

	for (int32_t i = 0; i < t->n; i++)
		if (t->arg[i] < 0)
			t->arg[i] = ir_program_input(d->c->p,
				arena_printf(d->a, "x%d", d->n_new++),
				t->type[i], (loc){0});
	ir_program_call(d->c->p, ir_row_name(t->row), t->n, t->arg, t->n_attrs,
		t->attr, NULL, (loc){0});
	d->c->cost += inst_cost(t->inst);
}

/* Does it read what an earlier call made? */
static bool is_linked(const attempt *t)
{
	for (int32_t i = 0; i < t->n; i++)
		if (t->arg[i] >= 0 &&
			t->d->c->p->value.at[t->arg[i]].call >= 0)
			return true;
	return false;
}

/*
 * A row of the table. Rows that came after the seeds that tests name would give
 * these seeds other programs: those here are drawn as parts of others, of softmax
 * and attention, and checked alone by the tests of rows.
 */
int32_t draw_row(rng *r, const ir_table *t)
{
	static const char *const later[] = {"exp_weight"};
	int32_t n_later = (int32_t)(sizeof later / sizeof later[0]);
	int32_t n = (int32_t)rng_below(r, ir_table_n(t) - n_later);

	for (int32_t i = 0; i < ir_table_n(t); i++) {
		bool is_later = false;

		for (int32_t k = 0; k < n_later; k++)
			is_later |= strcmp(ir_row_name(ir_table_at(t, i)), later[k]) == 0;
		if (!is_later && n-- == 0)
			return i;
	}
	return 0;
}

static void add_call(draft *d)
{
	attempt *t = arena_make(d->a, attempt);
	bool link = d->c->p->call.n > 0 && rng_percent(&d->r, 75);

	for (int32_t tries = 0; tries < 20; tries++) {
		int32_t n = draw_row(&d->r, d->t);
		const ir_row *row = ir_table_at(d->t, n);

		for (int32_t k = 0; k < TRIES / 4; k++) {
			if (d->count != NULL)
				d->count[n].tried++;
			if (!draw_call(d, row, t) || (link && !is_linked(t)))
				continue;
			if (env_run(arena_env(d->a), make_call, t) != TN_OK)
				continue;
			if (d->count != NULL)
				d->count[n].made++;
			return;
		}
	}
}

/* All that nobody reads, some others, an input now and then, one twice. */
static void draw_outputs(draft *d)
{
	ir_program *p = d->c->p;
	bool *read = arena_array(d->a, bool, p->value.n + 1);

	for (int32_t i = 0; i < p->call.n; i++)
		for (int32_t k = 0; k < p->call.at[i].n_args; k++)
			read[p->call.at[i].arg[k]] = true;
	for (int32_t i = 0; i < p->value.n; i++) {
		bool is_input = p->value.at[i].call < 0;

		if (is_input ? rng_percent(&d->r, 2)
			     : !read[i] || d->c->all_outputs ||
				    rng_percent(&d->r, 15))
			ir_program_output(p, i);
	}
	if (p->output.n > 0 && rng_percent(&d->r, 3))
		ir_program_output(p, p->output.at[0]);
}

prop_case *draw_case(arena *a, ir_table *t, uint64_t seed, uint64_t index,
	row_count *counts)
{
	prop_case *c = arena_make(a, prop_case);
	draft d = {.a = a, .t = t, .c = c, .r = rng_new(seed, index),
		.count = counts};
	int64_t style = rng_below(&d.r, 100);
	int32_t n = (int32_t)rng_range(&d.r, 1, rng_percent(&d.r, 30) ? 3 : MAX_CALLS);

	c->seed = seed;
	c->index = index;
	c->style = style < 60 ? STYLE_EXACT :
		style < 85    ? STYLE_GENERAL :
				STYLE_SPECIAL;
	c->p = ir_program_new(a, t);
	c->out_of_range = rng_percent(&d.r, 4);
	c->all_outputs = c->out_of_range || rng_percent(&d.r, 6);
	d.large = rng_percent(&d.r, 6);
	d.dtype = TN_F32;
	d.dtype = draw_float(&d);
	for (int32_t i = 0; i < n; i++)
		add_call(&d);
	draw_outputs(&d);
	return c;
}

prop_case *draw_one_call(
	arena *a, ir_table *t, int32_t row, uint64_t seed, uint64_t index)
{
	prop_case *c = arena_make(a, prop_case);
	draft d = {.a = a,
		.t = t,
		.c = c,
		.r = rng_new(seed ^ (uint64_t)row << 32, index),
		.dtype = TN_F64};
	attempt *x = arena_make(a, attempt);

	*c = (prop_case){.seed = seed,
		.index = index,
		.style = rng_percent(&d.r, 70) ? STYLE_GENERAL : STYLE_EXACT,
		.p = ir_program_new(a, t)};
	for (int32_t tries = 0; tries < TRIES && c->p->call.n == 0; tries++)
		if (draw_call(&d, ir_table_at(t, row), x))
			env_run(arena_env(a), make_call, x);
	return c->p->call.n > 0 ? c : NULL;
}
