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

/* Names of rows that are printed here, by call; NULL: the row's own. */
typedef struct naming {
	const ir_program *p;
	const char **of_call;
	map *text, *name; /* of the rows that are printed already */
} naming;

/* A name that no row has, of the table or of this text. */
static const char *free_name(const naming *m, const char *from)
{
	const char *name = from;
	int32_t number = 0;

	while (ir_table_find(m->p->table, name) != NULL ||
		map_get_str(m->name, name, 0) != 0)
		name = arena_printf(m->p->a, "%s_%d", from, (int)++number);
	map_set_str(m->name, name, 1);
	return name;
}

/* Equal instances become one row. */
static void print_row(str *out, naming *m, int32_t call)
{
	const ir_call *c = &m->p->call.at[call];
	const char *own = ir_row_name(c->row);
	str text = str_new(m->p->a);
	int64_t found;

	if (c->view >= 0 || ir_table_find(m->p->table, own) == c->row ||
		ir_loop_of(c->inst) != NULL)
		return;
	ir_inst_print(&text, c->inst, own);
	found = map_get(m->text, text.at, text.n, -1);
	if (found >= 0) {
		m->of_call[call] = m->of_call[found];
		return;
	}
	map_set(m->text, text.at, text.n, call);
	m->of_call[call] = free_name(m, own);
	str_add(out, "op ");
	ir_inst_print(out, c->inst, m->of_call[call]);
	str_addc(out, '\n');
}

static void print_call(
	str *out, const ir_program *p, const ir_call *c, const char *row)
{
	str_add(out, "  ");
	for (int32_t i = 0; i < c->n_results; i++)
		str_printf(out, "%s%s", i > 0 ? ", " : "",
			p->value.at[c->result[i]].name);
	str_printf(out, " = %s(", row != NULL ? row : ir_row_name(c->row));
	if (c->view >= 0) { /* a write: see view.c */
		str_printf(out, "%s, %s)\n", p->value.at[c->view].name,
			p->value.at[c->arg[1]].name);
		return;
	}
	for (int32_t i = 0; i < c->n_args; i++)
		str_printf(out, "%s%s", i > 0 ? ", " : "",
			p->value.at[c->arg[i]].name);
	for (int32_t i = 0; i < c->n_attrs; i++) {
		if (c->n_args + i > 0)
			str_add(out, ", ");
		ir_attr_print(out, &c->attr[i]);
	}
	str_add(out, ")\n");
}

/* The body of a loop, as comments: the text of a program cannot contain loops. */
static void print_body(str *out, const ir_program *p, const ir_loop *l)
{
	str text = str_new(p->a);

	str_printf(out, "  // %lld rounds, %d carried, %d rows in, %d rows out:\n",
		(long long)l->n, (int)l->n_carried, (int)l->n_rows,
		(int)l->n_out);
	ir_program_print(&text, l->body);
	for (char *line = text.at; *line != '\0';) {
		size_t n = strcspn(line, "\n");

		str_add(out, "  //   ");
		str_addn(out, line, n);
		str_addc(out, '\n');
		line += n + (line[n] == '\n');
	}
}

static void print_value(
	str *out, const ir_program *p, const ir_value *v, const naming *m)
{
	if (v->call >= 0) {
		const ir_call *c = &p->call.at[v->call];

		if (v->result == 0 && ir_loop_of(c->inst) != NULL)
			print_body(out, p, ir_loop_of(c->inst));
		if (v->result == 0)
			print_call(out, p, c, m->of_call[v->call]);
		return;
	}
	str_printf(out, "  %s%s: %s", v->is_param ? "param " : "", v->name, dtype_name(v->type.dtype));
	str_shape(out, v->type.shape, v->type.rank);
	str_addc(out, '\n');
}

void ir_program_print(str *out, const ir_program *p)
{
	ir_program_print_notes(out, p, NULL, NULL);
}

void ir_program_print_notes(
	str *out, const ir_program *p, ir_note *note, void *arg)
{
	naming m = {.p = p,
		.of_call = arena_array(p->a, const char *, p->call.n + 1),
		.text = map_new(p->a),
		.name = map_new(p->a)};

	for (int32_t i = 0; i < ir_table_n(p->table); i++)
		if (ir_table_is_user(p->table, i))
			str_printf(out, "op %s\n",
				ir_row_text(ir_table_at(p->table, i)));
	for (int32_t i = 0; i < p->call.n; i++)
		print_row(out, &m, i);
	str_add(out, "program {\n");
	for (int32_t i = 0; i < p->value.n; i++) {
		if (note != NULL && p->value.at[i].result == 0)
			note(arg, out, i);
		print_value(out, p, &p->value.at[i], &m);
	}
	str_add(out, "  return ");
	for (int32_t i = 0; i < p->output.n; i++)
		str_printf(out, "%s%s", i > 0 ? ", " : "",
			p->value.at[p->output.at[i]].name);
	str_add(out, "\n}\n");
}
