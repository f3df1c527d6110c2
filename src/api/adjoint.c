/*
 * adjoint.c: prints the gradient of an operation: for each operand a row in the
 * notation, or the reason why it has no gradient.
 *
 *     // exp(x: f32[2]) -> o: f32[2]
 *     // the gradient of x, derived:
 *     op exp_grad_x(o[2], d_o[2]) -> gx {
 *       gx[i_0] += mul(d_o[i_0], o[i_0]) for i_0 < 2 }
 *
 * d_o is the cotangent of o. These rows are those that the library runs; they can
 * be used in programs as any other `op`.
 */
#include "api/api.h"

#include "grad/grad.h"

typedef struct ask {
	tn_context *c;
	const char *call;
	const tn_program *rows;
	bool json;
	char **out;
} ask;

typedef struct writer {
	arena *a;
	ir_table *t;
	const ir_inst *p;
	const char *op;
	bool json;
	str *out;
} writer;

/* ---- one operand ---- */

typedef struct derived {
	const writer *w;
	const in_tensor *x;
	uint64_t wanted;
	str row; /* empty: there is none */
} derived;

static void derive(void *arg)
{
	derived *d = arg;
	const writer *w = d->w;
	const grad_rule *g =
		grad_adjoint(w->a, w->t, w->p, d->wanted, UINT64_MAX);

	if (g != NULL && g->n_results > 0)
		ir_inst_print(&d->row, g->inst,
			arena_printf(w->a, "%s_grad_%s", w->op, d->x->name));
}

static bool has_float_result(const ir_inst *p)
{
	for (int32_t i = 0; i < p->n_results; i++)
		if (dtype_is_float(p->tensor[p->result[i]].type.dtype))
			return true;
	return false;
}

/* The reason why no adjoint was derived. */
static const char *reason(const writer *w)
{
	if (!has_float_result(w->p))
		return "no result of the row is a float";
	if (w->p->opaque != NULL && !ir_row_has_grad(w->p->row))
		return "the row is opaque, a function in C, and has no grad "
		       "block";
	if (ir_row_has_grad(w->p->row))
		return "the row's grad block adds nothing to it";
	return "results depend on it only through indices, conditions, "
	       "integers, stop(), or functions whose slope is 0";
}

/* The row of operand t; NULL: none, and *why is the reason. */
static const char *adjoint_of(const writer *w, const in_tensor *t,
	const char **why)
{
	derived d = {.w = w, .x = t, .row = str_new(w->a)};
	tn_status s;

	*why = NULL;
	if (!dtype_is_float(t->type.dtype)) {
		*why = "it is not a float";
		return NULL;
	}
	d.wanted = UINT64_C(1) << t->operand;
	s = env_run(arena_env(w->a), derive, &d);
	if (s == TN_ENOMEM || s == TN_EINTERNAL)
		env_rethrow(arena_env(w->a));
	if (s < 0)
		*why = arena_strdup(w->a, env_diag(arena_env(w->a))->text);
	else if (d.row.n == 0)
		*why = reason(w);
	return *why == NULL ? d.row.at : NULL;
}

/* ---- the whole ---- */

static void add_tensors(const writer *w, bool results)
{
	int32_t n = 0;

	for (int32_t i = 0; i < w->p->n_tensors; i++) {
		const in_tensor *t = &w->p->tensor[i];

		if ((results ? t->result : t->operand) < 0)
			continue;
		str_printf(w->out, "%s%s: ", n++ > 0 ? ", " : "", t->name);
		ir_type_add(w->out, &t->type);
	}
}

static const char *origin(const writer *w)
{
	return ir_row_has_grad(w->p->row) ? "from the row's grad block"
					  : "derived";
}

static void add_text(const writer *w)
{
	str_printf(w->out, "// %s(", w->op);
	add_tensors(w, false);
	for (int32_t i = 0; i < w->p->n_attrs; i++) {
		str_add(w->out, ", ");
		ir_attr_print(w->out, &w->p->attr[i]);
	}
	str_add(w->out, ") -> ");
	add_tensors(w, true);
	str_addc(w->out, '\n');
	for (int32_t i = 0; i < w->p->n_tensors; i++) {
		const in_tensor *t = &w->p->tensor[i];
		const char *why, *row;

		if (t->operand < 0)
			continue;
		row = adjoint_of(w, t, &why);
		if (row != NULL)
			str_printf(w->out, "// the gradient of %s, %s:\nop %s\n",
				t->name, origin(w), row);
		else
			str_printf(w->out, "// %s has no gradient: %s\n",
				t->name, why);
	}
}

static void json_member(const writer *w, const char *name, const char *text)
{
	str_printf(w->out, ", \"%s\": ", name);
	str_json(w->out, text);
}

static const char *type_text(const writer *w, const ir_type *y)
{
	str s = str_new(w->a);

	ir_type_add(&s, y);
	return s.at;
}

static void add_json(const writer *w)
{
	const char *comma = "";

	str_add(w->out, "{\"op\": ");
	str_json(w->out, w->op);
	json_member(w, "gradient", origin(w));
	str_add(w->out, ", \"operands\": [");
	for (int32_t i = 0; i < w->p->n_tensors; i++) {
		const in_tensor *t = &w->p->tensor[i];
		const char *why, *row;

		if (t->operand < 0)
			continue;
		row = adjoint_of(w, t, &why);
		str_printf(w->out, "%s{\"name\": ", comma);
		str_json(w->out, t->name);
		json_member(w, "type", type_text(w, &t->type));
		json_member(w, row != NULL ? "row" : "why",
			row != NULL ? row : why);
		str_addc(w->out, '}');
		comma = ", ";
	}
	str_add(w->out, "], \"results\": [");
	for (int32_t i = 0; i < w->p->n_results; i++) {
		const in_tensor *t = &w->p->tensor[w->p->result[i]];

		str_add(w->out, i > 0 ? ", {\"name\": " : "{\"name\": ");
		str_json(w->out, t->name);
		json_member(w, "type", type_text(w, &t->type));
		str_addc(w->out, '}');
	}
	str_add(w->out, "]}\n");
}

/* The first call of the row in a program, or NULL. */
static const ir_inst *called(const ask *k, const ir_row *r)
{
	const ir_program *p = k->rows != NULL ? k->rows->ir : NULL;

	for (int32_t i = 0; p != NULL && i < p->call.n; i++)
		if (p->call.at[i].row == r)
			return p->call.at[i].inst;
	return NULL;
}

static ir_table *table_of(const ask *k, arena *a)
{
	if (k->rows != NULL)
		return k->rows->ir->table;
	return k->c->t != NULL ? tensors_table(k->c->t) : ir_table_new(a);
}

static void find_call(const ask *k, writer *w)
{
	const ir_row *r;
	const ir_inst *p = ir_call_parse(
		w->a, w->t, k->call, strlen(k->call), &r);

	w->op = ir_row_name(r);
	if (p == NULL)
		p = called(k, r);
	if (p == NULL)
		p = ir_row_example(w->a, w->t, r);
	if (p == NULL)
		env_fail(k->c->e, TN_EINVAL, "adjoint.shapes", (loc){0},
			"%s: no shapes were found that fit it; say them, and "
			"its attributes, such as \"%s(f32[2,3], f32[3,4], "
			"axis=1)\"",
			w->op, w->op);
	w->p = p;
}

static void text_in(arena *a, void *arg)
{
	const ask *k = arg;
	str s = str_new(a);
	writer w = {.a = a, .t = table_of(k, a), .json = k->json, .out = &s};

	find_call(k, &w);
	if (k->json)
		add_json(&w);
	else
		add_text(&w);
	*k->out = api_text(k->c, &s);
}

static void text(void *arg)
{
	const ask *k = arg;

	api_want(k->c, k->call, "the call");
	if (k->rows != NULL)
		api_want_shapes(k->rows);
	arena_run(k->c->e, text_in, arg);
}

tn_status tn_ops_adjoint(char **out, tn_context *c, const char *call,
	const tn_program *rows, bool json)
{
	ask k = {c, call, rows, json, out};

	*out = NULL;
	return api_call(c, text, &k);
}
