/*
 * program_print.c: prints a program as .tn text, which the parser reads back:
 * rows of the user, then inputs and calls in the order of values. Instances
 * whose rows are not in the table are printed as rows before the program:
 * `op matmul_grad(...) -> ... { ... }`.
 *
 *     program {
 *       x: f32[2,3]
 *       t = reduce_sum(x, axes=[0])
 *       return t
 *     }
 *
 * The body of a loop is printed in braces behind its call (loop.c).
 */
#include "program/program.h"

void ir_attr_print(str *out, const ir_attr *a)
{
	str_printf(out, "%s=", a->name);
	switch (a->kind) {
	case ATTR_INT:
		str_printf(out, "%lld", (long long)a->i);
		break;
	case ATTR_REAL:
		str_double(out, a->f);
		break;
	case ATTR_INTS:
		str_shape(out, a->ints, a->n);
		break;
	case ATTR_DTYPE:
		str_add(out, dtype_name(a->dtype));
		break;
	case ATTR_STRING:
		str_printf(out, "\"%s\"", a->string);
		break;
	}
}

/* Rows that are printed here, of the program and of the bodies of its loops. */
typedef struct naming {
	arena *a;
	const ir_table *table;
	VEC(const char *) all;
	map *of_text, *of_inst; /* to a number in all */
	map *taken;
} naming;

/* A name that no row has, of the table or of this text. */
static const char *free_name(const naming *m, const char *from)
{
	const char *name = from;
	int32_t number = 0;

	while (ir_table_find(m->table, name) != NULL ||
		map_get_str(m->taken, name, 0) != 0)
		name = arena_printf(m->a, "%s_%d", from, (int)++number);
	map_set_str(m->taken, name, 1);
	return name;
}

/* Equal instances become one row. */
static void print_row(str *out, naming *m, const ir_call *c)
{
	const char *own = ir_row_name(c->row);
	str text = str_new(m->a);
	int64_t found;

	if (c->view >= 0 || ir_table_find(m->table, own) == c->row)
		return;
	ir_inst_print(&text, c->inst, own);
	found = map_get(m->of_text, text.at, text.n, -1);
	map_set(m->of_inst, &c->inst, sizeof c->inst,
		found >= 0 ? found : m->all.n);
	if (found >= 0)
		return;
	map_set(m->of_text, text.at, text.n, m->all.n);
	*vec_push(m->a, &m->all) = free_name(m, own);
	str_add(out, "op ");
	ir_inst_print(out, c->inst, m->all.at[m->all.n - 1]);
	str_addc(out, '\n');
}

static void print_rows(str *out, naming *m, const ir_program *p)
{
	for (int32_t i = 0; i < p->call.n; i++) {
		const ir_loop *l = ir_loop_of(p->call.at[i].inst);

		if (l != NULL)
			print_rows(out, m, l->body);
		else
			print_row(out, m, &p->call.at[i]);
	}
}

typedef struct printing {
	str *out;
	const naming *m;
	ir_note *note;
	void *arg;
	int32_t depth; /* of indentation */
} printing;

static void indent(const printing *x)
{
	for (int32_t i = 0; i < x->depth; i++)
		str_add(x->out, "  ");
}

static void print_names(str *out, const ir_program *p, const int32_t *value,
	int32_t n)
{
	for (int32_t i = 0; i < n; i++)
		str_printf(out, "%s%s", i > 0 ? ", " : "",
			p->value.at[value[i]].name);
}

static void print_call(const printing *x, const ir_program *p, const ir_call *c)
{
	int64_t made = map_get(x->m->of_inst, &c->inst, sizeof c->inst, -1);
	str *out = x->out;

	indent(x);
	print_names(out, p, c->result, c->n_results);
	str_printf(out, " = %s(", made >= 0 && c->view < 0
		? x->m->all.at[made] : ir_row_name(c->row));
	if (c->view >= 0) { /* a write: see view.c */
		str_printf(out, "%s, %s)\n", p->value.at[c->view].name,
			p->value.at[c->arg[1]].name);
		return;
	}
	print_names(out, p, c->arg, c->n_args);
	for (int32_t i = 0; i < c->n_attrs; i++) {
		if (c->n_args + i > 0)
			str_add(out, ", ");
		ir_attr_print(out, &c->attr[i]);
	}
	str_add(out, ")\n");
}

static void print_body(const printing *x, const ir_program *p,
	const ir_loop *l);

static void print_loop(const printing *x, const ir_program *p, const ir_call *c,
	const ir_loop *l)
{
	printing inner = *x;

	inner.note = NULL;
	inner.depth++;
	indent(x);
	print_names(x->out, p, c->result, c->n_results);
	str_add(x->out, " = loop(");
	print_names(x->out, p, c->arg, c->n_args);
	str_printf(x->out, "%srounds=%lld", c->n_args > 0 ? ", " : "",
		(long long)l->n);
	if (l->test > 0)
		str_printf(x->out, ", while=%d", (int)l->test - 1);
	str_add(x->out, ") {\n");
	print_body(&inner, l->body, l);
	indent(x);
	str_add(x->out, "}\n");
}

/* The word before an input of a program, or of the body of a loop. */
static const char *word_of(const ir_program *p, const ir_loop *l, int32_t value)
{
	int32_t i = 0;

	if (l == NULL)
		return p->value.at[value].is_param ? "param " : "";
	while (p->input.at[i] != value)
		i++;
	return i < l->n_carried			   ? "carried "
		: i < l->n_carried + l->n_rows ? "row "
					       : "";
}

/* l: the loop whose body it is, or NULL */
static void print_body(const printing *x, const ir_program *p, const ir_loop *l)
{
	for (int32_t i = 0; i < p->value.n; i++) {
		const ir_value *v = &p->value.at[i];
		const ir_call *c = v->call >= 0 ? &p->call.at[v->call] : NULL;

		if (x->note != NULL && v->result == 0)
			x->note(x->arg, x->out, i);
		if (c != NULL && v->result != 0)
			continue;
		if (c != NULL && ir_loop_of(c->inst) != NULL) {
			print_loop(x, p, c, ir_loop_of(c->inst));
			continue;
		}
		if (c != NULL) {
			print_call(x, p, c);
			continue;
		}
		indent(x);
		str_printf(x->out, "%s%s: %s", word_of(p, l, i), v->name,
			dtype_name(v->type.dtype));
		str_shape(x->out, v->type.shape, v->type.rank);
		str_addc(x->out, '\n');
	}
	indent(x);
	str_add(x->out, "return ");
	print_names(x->out, p, p->output.at, p->output.n);
	str_addc(x->out, '\n');
}

void ir_program_print(str *out, const ir_program *p)
{
	ir_program_print_notes(out, p, NULL, NULL);
}

void ir_program_print_notes(
	str *out, const ir_program *p, ir_note *note, void *arg)
{
	naming m = {.a = p->a, .table = p->table, .of_text = map_new(p->a),
		.of_inst = map_new(p->a), .taken = map_new(p->a)};
	printing x = {out, &m, note, arg, 1};

	for (int32_t i = 0; i < ir_table_n(p->table); i++)
		if (ir_table_is_user(p->table, i))
			str_printf(out, "op %s\n",
				ir_row_text(ir_table_at(p->table, i)));
	print_rows(out, &m, p);
	str_add(out, "program {\n");
	print_body(&x, p, NULL);
	str_add(out, "}\n");
}
