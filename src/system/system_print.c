/*
 * system_print.c: prints a system as text, which tests read back (tests/lib).
 *
 *     system {
 *       x: f32[4,8] input 0
 *       m: f32[4]
 *       o: f32[4,8]
 *       softmax.m softmax#0: m[i:4] max= x[8*i + j] for j:8
 *       softmax.o softmax#0: o[i:4, j:8] = exp(x[8*i + j] - m[i])
 *       return o
 *     }
 *
 * The index of a read is an element number. An index from data shows the range
 * that it must be in: x[8*ids[i in 0..4] + j].
 */
#include "notation/lex.h"
#include "system/local.h"

#include <stdio.h>
#include <stdlib.h>

struct printer {
	ir_system *s;
	str *out;
	const ix_box *box;
	const char *const *names;
};

/* ---- forms ---- */

/* also for INT64_MIN */
static uint64_t magnitude(int64_t v)
{
	return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

static void print_form(const struct printer *p, const ix_form *f);

static void axis_name(const struct printer *p, int32_t axis)
{
	if (p->names != NULL && p->names[axis] != NULL)
		str_add(p->out, p->names[axis]);
	else
		str_printf(p->out, "a_%d", axis);
}

static void print_digit(const struct printer *p, const ix_atom *a)
{
	int64_t extent = a->axis < p->box->n ? p->box->extent[a->axis] : a->hi;

	axis_name(p, a->axis);
	if (a->lo != 1)
		str_printf(p->out, "/%lld", (long long)a->lo);
	if (a->hi < extent)
		str_printf(p->out, "%%%lld", (long long)(a->hi / a->lo));
}

static bool is_bare(const struct printer *p, const ix_atom *a)
{
	if (a->kind != IX_DIGIT)
		return a->kind != IX_FLOOR;
	return a->lo == 1 && a->axis < p->box->n &&
		a->hi >= p->box->extent[a->axis];
}

static void print_atom(const struct printer *p, const ix_atom *a)
{
	switch (a->kind) {
	case IX_DIGIT:
		print_digit(p, a);
		break;
	case IX_FLOOR:
		str_addc(p->out, '(');
		print_form(p, a->f);
		str_printf(p->out, ")/%lld", (long long)a->den);
		break;
	case IX_CLAMP:
		str_add(p->out, "clamp(");
		print_form(p, a->f);
		str_printf(p->out, ", %lld, %lld)", (long long)a->lo,
			(long long)a->hi);
		break;
	case IX_FUN:
		str_printf(p->out, "%s[", p->s->tensor.at[a->fun].name);
		print_form(p, a->f);
		str_printf(p->out, " in %lld..%lld]", (long long)a->lo,
			(long long)a->hi);
		break;
	}
}

/*
 * The order of terms that are not digits is that in which their atoms were
 * created, which differs in a system that is read back. So they are printed in
 * the order of their texts. at[]: numbers of terms.
 */
static const int32_t *text_order(const struct printer *p, const ix_form *f)
{
	arena *a = p->out->a;
	int32_t *at = arena_array(a, int32_t, f->n + 1);
	const char **text = arena_array(a, const char *, f->n + 1);
	int32_t n_others = 0;

	for (int32_t i = 0; i < f->n; i++) {
		at[i] = i;
		n_others += f->t[i].atom->kind != IX_DIGIT;
	}
	for (int32_t i = 0; i < f->n && n_others > 1; i++) {
		str s = str_new(a);
		struct printer q = *p;
		int32_t k = i;

		if (f->t[i].atom->kind == IX_DIGIT)
			continue;
		q.out = &s;
		print_atom(&q, f->t[i].atom);
		text[i] = s.at;
		for (; k > 0 && text[at[k - 1]] != NULL &&
			strcmp(text[at[k - 1]], s.at) > 0;
			k--)
			at[k] = at[k - 1];
		at[k] = i;
	}
	return at;
}

static void print_form(const struct printer *p, const ix_form *f)
{
	const int32_t *at = text_order(p, f);

	for (int32_t i = 0; i < f->n; i++) {
		const ix_term *t = &f->t[at[i]];
		uint64_t k = magnitude(t->coef);
		bool bare = is_bare(p, t->atom);

		if (i > 0)
			str_add(p->out, t->coef < 0 ? " - " : " + ");
		else if (t->coef < 0)
			str_addc(p->out, '-');
		if (k != 1)
			str_printf(p->out, "%llu*", (unsigned long long)k);
		if (k != 1 && !bare)
			str_addc(p->out, '(');
		print_atom(p, t->atom);
		if (k != 1 && !bare)
			str_addc(p->out, ')');
	}
	if (f->n == 0)
		str_printf(p->out, "%lld", (long long)f->c0);
	else if (f->c0 != 0)
		str_printf(p->out, f->c0 < 0 ? " - %llu" : " + %llu",
			(unsigned long long)magnitude(f->c0));
}

/* ---- expressions ---- */

/* The shortest text that is read back as the same float. */
static void print_f32(str *out, double v)
{
	char text[40];

	if (v - v != 0) { /* inf, NaN */
		str_double(out, v);
		return;
	}
	for (int digits = 1; digits <= 9; digits++) {
		text_print(text, sizeof text, "%.*g", digits, v);
		if ((float)text_f64(text, NULL) == (float)v)
			break;
	}
	str_add(out, text);
}

static void print_const(const struct printer *p, const expr *e)
{
	if (e->dtype == TN_F32) {
		print_f32(p->out, e->c.f);
	} else if (e->dtype == TN_BOOL) {
		str_add(p->out, e->c.i != 0 ? "true" : "false");
	} else {
		str_printf(p->out, "%s(", dtype_name(e->dtype));
		if (dtype_is_float(e->dtype))
			str_double(p->out, e->c.f);
		else
			ir_add_int(p->out, e->dtype, e->c.i);
		str_addc(p->out, ')');
	}
}

static void print_expr(const struct printer *p, const expr *e, int32_t level);

static void print_args(
	const struct printer *p, const char *name, const expr *e)
{
	str_printf(p->out, "%s(", name);
	for (int32_t i = 0; i < e->n_args; i++) {
		if (i > 0)
			str_add(p->out, ", ");
		print_expr(p, e->arg[i], 0);
	}
	str_addc(p->out, ')');
}

/* level: of the operator around it; weaker operators get parentheses */
static void print_call(const struct printer *p, const expr *e, int32_t level)
{
	const char *name = ir_scalar_at(e->fn)->name;
	const lex_operator *op = lex_operator_of(name);

	if (op == NULL) {
		print_args(p, name, e);
		return;
	}
	if (op->level < level)
		str_addc(p->out, '(');
	/* comparisons cannot be chained */
	print_expr(p, e->arg[0],
		op->level == LEX_COMPARE ? op->level + 1 : op->level);
	str_printf(p->out, " %s ", op->symbol);
	print_expr(p, e->arg[1], op->level + 1);
	if (op->level < level)
		str_addc(p->out, ')');
}

static void print_expr(const struct printer *p, const expr *e, int32_t level)
{
	switch (e->kind) {
	case EX_CONST:
		print_const(p, e);
		break;
	case EX_INDEX:
		str_add(p->out, "index(");
		print_form(p, e->form);
		str_addc(p->out, ')');
		break;
	case EX_READ:
		str_printf(p->out, "%s[", p->s->tensor.at[e->tensor].name);
		print_form(p, e->form);
		str_addc(p->out, ']');
		break;
	case EX_CALL:
		print_call(p, e, level);
		break;
	case EX_SELECT:
		print_args(p, "sel", e);
		break;
	case EX_INSIDE:
		str_add(p->out, "inside(");
		print_form(p, e->form);
		str_printf(p->out, ", %lld, %lld)", (long long)e->lo,
			(long long)e->hi);
		break;
	case EX_CAST:
		str_add(p->out, "cast(");
		print_expr(p, e->arg[0], 0);
		str_printf(p->out, ", %s)", dtype_name(e->dtype));
		break;
	case EX_PARAM:
		str_printf(p->out, "%c%d",
			e->c.i < IR_MAX_COMP ? 'x' : 'y',
			(int)(e->c.i % IR_MAX_COMP));
		break;
	}
}

void ir_expr_print(str *out, ir_system *s, const expr *e, const ix_box *box,
	const char *const *names)
{
	print_expr(&(struct printer){.s = s,
			   .out = out,
			   .box = box,
			   .names = names},
		e, 0);
}

void ir_form_print(str *out, ir_system *s, const ix_form *f, const ix_box *box,
	const char *const *names)
{
	print_form(&(struct printer){.s = s,
			   .out = out,
			   .box = box,
			   .names = names},
		f);
}

/* ---- equations ---- */

static bool taken(const char *const *names, int32_t n, const char *name)
{
	for (int32_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* distinct names of the axes of an equation, for printing */
static const char **axis_names(ir_system *s, const sys_eqn *e)
{
	const char **names = arena_array(s->a, const char *, e->n_axes + 1);

	for (int32_t i = 0; i < e->n_axes; i++) {
		const char *name = e->axis[i].name;

		names[i] = name != NULL ? name : arena_printf(s->a, "a_%d", i);
		for (int32_t k = 2; taken(names, i, names[i]); k++)
			names[i] = arena_printf(
				s->a, "%s_%d", name != NULL ? name : "a", k);
	}
	return names;
}

static void print_axes(const struct printer *p, const sys_eqn *e, int32_t from,
	int32_t to)
{
	for (int32_t i = from; i < to; i++) {
		str_printf(p->out, "%s%s:%lld", i > from ? ", " : "",
			p->names[i], (long long)e->axis[i].extent);
		if (e->axis[i].kind == AXIS_S)
			str_add(p->out, e->scan_step > 0 ? " up" : " down");
	}
}

static void print_tuple(const struct printer *p, int32_t n,
	const expr *const *e)
{
	if (n > 1)
		str_addc(p->out, '(');
	for (int32_t k = 0; k < n; k++) {
		if (k > 0)
			str_add(p->out, ", ");
		print_expr(p, e[k], 0);
	}
	if (n > 1)
		str_addc(p->out, ')');
}

static void print_results(const struct printer *p, const sys_eqn *e)
{
	if (e->n_out > 1)
		str_addc(p->out, '(');
	for (int32_t k = 0; k < e->n_out; k++)
		str_printf(p->out, "%s%s", k > 0 ? ", " : "",
			p->s->tensor.at[e->out[k]].name);
	if (e->n_out > 1)
		str_addc(p->out, ')');
}

static void print_opaque(const struct printer *p, const sys_eqn *e)
{
	print_results(p, e);
	str_printf(p->out, " = opaque %s(", e->opaque->name);
	for (int32_t i = 0; i < e->n_opaque_in; i++)
		str_printf(p->out, "%s%s", i > 0 ? ", " : "",
			p->s->tensor.at[e->opaque_in[i]].name);
	for (int32_t i = 0; i < e->n_opaque_attr; i++)
		str_printf(p->out, "%s%lld", i == 0 ? "; " : ", ",
			(long long)e->opaque_attr[i]);
	for (int32_t b = 0; b < e->n_batch; b++) {
		int32_t n = e->n_opaque_in + e->n_out;

		str_add(p->out, b == 0 ? "; each (" : ", (");
		for (int32_t t = 0; t < n; t++)
			str_printf(p->out, "%s%d", t > 0 ? ", " : "",
				(int)e->batch[b * n + t]);
		str_addc(p->out, ')');
	}
	str_addc(p->out, ')');
}

void ir_eqn_print(str *out, ir_system *s, const sys_eqn *e)
{
	ix_box box = ir_eqn_box(s, e);
	struct printer p = {.s = s,
		.out = out,
		.box = &box,
		.names = axis_names(s, e)};

	if (e->opaque != NULL) {
		print_opaque(&p, e);
		return;
	}
	print_results(&p, e);
	if (e->push != NULL) {
		str_addc(out, '{');
		print_form(&p, e->push);
		str_addc(out, '}');
	}
	str_addc(out, '[');
	print_axes(&p, e, 0, e->n_left);
	str_printf(out, "] %s ",
		e->monoid == IR_SET ? "=" : ir_monoid_at(e->monoid)->token);
	print_tuple(&p, e->n_out, e->body);
	if (e->n_axes > e->n_left) {
		str_add(out, " for ");
		print_axes(&p, e, e->n_left, e->n_axes);
	}
	if (e->init[0] != NULL) {
		static const char *const at[] = {"at"};
		ix_box flat = {.n = 1,
			.extent = &s->tensor.at[e->out[0]].numel};

		if (e->push != NULL) {
			p.box = &flat;
			p.names = at;
		}
		str_add(out, " from ");
		print_tuple(&p, e->n_out, e->init);
	}
}

static void print_tensor(str *out, const ir_system *s, int32_t i)
{
	const sys_tensor *t = &s->tensor.at[i];

	str_printf(out, "  %s: %s", t->name, dtype_name(t->dtype));
	str_shape(out, t->shape, t->rank);
	for (int32_t k = 0; k < s->input.n; k++)
		if (s->input.at[k] == i) {
			str_printf(out, " input %d", k);
			break;
		}
	if (t->storage >= 0)
		str_printf(out, " storage %d", t->storage);
	str_addc(out, '\n');
}

void ir_system_print(str *out, ir_system *s)
{
	str_add(out, "system {\n");
	for (int32_t i = 0; i < s->tensor.n; i++)
		if (s->tensor.at[i].eqn >= 0 || s->tensor.at[i].is_input ||
			s->tensor.at[i].numel == 0)
			print_tensor(out, s, i); /* without tensors that schedules added */
	for (int32_t i = 0; i < s->eqn.n; i++) {
		const sys_eqn *e = &s->eqn.at[i];

		str_printf(out, "  %s %s#%d: ",
			e->label != NULL ? e->label : "_",
			e->op != NULL ? e->op : "_", e->call);
		ir_eqn_print(out, s, e);
		str_addc(out, '\n');
	}
	str_add(out, "  return");
	for (int32_t i = 0; i < s->output.n; i++)
		str_printf(out, "%s %s", i > 0 ? "," : "",
			s->tensor.at[s->output.at[i]].name);
	str_add(out, "\n}\n");
}
