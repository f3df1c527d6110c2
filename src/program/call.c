/*
 * call.c: calls of rows in a program.
 *
 * Checks a call against its row (arity, attributes) and instantiates the row, so
 * that all results have shapes; the call of a row with `_` behind its name writes
 * its first operand.
 */
#include "program/local.h"

#include "notation/row.h"

/* ---- operands and attributes against the row ---- */

const ir_param *prog_operand(const ir_row *r, int32_t k)
{
	for (int32_t i = 0; i < ir_row_n_params(r); i++)
		if (ir_row_param(r, i)->is_operand && k-- == 0)
			return ir_row_param(r, i);
	return NULL;
}

static void check_arity(const ir_program *p, const prog_call *c)
{
	str s = str_new(p->a);
	int32_t n = 0;

	if (ir_row_is_variadic(c->row)) {
		if (c->n_args < 1 && ir_row_join(p->table, c->row) != NULL)
			env_fail(arena_env(p->a), TN_EINVAL, "tn.arity", c->at,
				"%s takes at least one operand",
				ir_row_name(c->row));
		if (c->n_args < 1 || c->n_args > IR_MAX_OPERANDS)
			env_fail(arena_env(p->a), TN_EINVAL, "tn.arity", c->at,
				"%s takes 1 to %d operands, not %d",
				ir_row_name(c->row), IR_MAX_OPERANDS,
				c->n_args);
		return;
	}
	for (; prog_operand(c->row, n) != NULL; n++)
		str_printf(&s, "%s%s", n > 0 ? ", " : "",
			prog_operand(c->row, n)->name);
	if (n != c->n_args)
		env_fail(arena_env(p->a), TN_EINVAL, "tn.arity", c->at,
			"%s takes %d operand%s (%s), not %d",
			ir_row_name(c->row), n, n == 1 ? "" : "s", s.at,
			c->n_args);
}

static const ir_param *find_attr_param(const ir_row *r, const char *name)
{
	for (int32_t i = 0; i < ir_row_n_params(r); i++) {
		const ir_param *q = ir_row_param(r, i);

		if (!q->is_operand && strcmp(q->name, name) == 0)
			return q;
	}
	return NULL;
}

/* "axis: axis, keep: flag"; "none" */
static const char *accepted(const ir_program *p, const ir_row *r)
{
	str s = str_new(p->a);

	for (int32_t i = 0; i < ir_row_n_params(r); i++) {
		const ir_param *q = ir_row_param(r, i);

		if (!q->is_operand)
			str_printf(&s, "%s%s: %s", s.n > 0 ? ", " : "",
				q->name, q->kind);
	}
	return s.n > 0 ? s.at : "none";
}

/*
 * Converts an attribute to the kind of the row: an integer can be given for a
 * list (for all axes) or for a real.
 */
static bool adapt(ir_attr *a, const char *kind)
{
	static const struct {
		const char *row; /* kind in the row, without "@axes" */
		attr_kind is, also;
	} kinds[] = {
		{"int", ATTR_INT, ATTR_INT},
		{"flag", ATTR_INT, ATTR_INT},
		{"axis", ATTR_INT, ATTR_INT},
		{"real", ATTR_REAL, ATTR_INT},
		{"ints", ATTR_INTS, ATTR_INT},
		{"axes", ATTR_INTS, ATTR_INT},
		{"mask", ATTR_INTS, ATTR_INT},
		{"perm", ATTR_INTS, ATTR_INT},
		{"dtype", ATTR_DTYPE, ATTR_DTYPE},
		{"string", ATTR_STRING, ATTR_STRING},
	};

	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		size_t n = strlen(kinds[i].row);

		if (strncmp(kind, kinds[i].row, n) != 0 ||
			(kind[n] != '\0' && kind[n] != '@'))
			continue;
		if (a->kind != kinds[i].is && a->kind != kinds[i].also)
			return false;
		if (kinds[i].is == ATTR_REAL && a->kind == ATTR_INT) {
			a->kind = ATTR_REAL;
			a->f = (double)a->i;
		}
		return strcmp(kind, "flag") != 0 || a->i == 0 || a->i == 1;
	}
	return true; /* the row checks other kinds */
}

static void check_attrs(const ir_program *p, const prog_call *c)
{
	const char *name = ir_row_name(c->row);

	for (int32_t i = 0; i < c->n_attrs; i++) {
		ir_attr *a = &c->attr[i];
		const ir_param *q = find_attr_param(c->row, a->name);

		if (q == NULL)
			env_fail(arena_env(p->a), TN_EINVAL, "tn.attr", a->at,
				"%s has no attribute %.60s; accepted: %s", name,
				a->name, accepted(p, c->row));
		for (int32_t k = 0; k < i; k++)
			if (strcmp(c->attr[k].name, a->name) == 0)
				env_fail(arena_env(p->a), TN_EINVAL, "tn.attr",
					a->at, "%s of %s is given twice",
					a->name, name);
		if (!adapt(a, q->kind))
			env_fail(arena_env(p->a), TN_EINVAL, "tn.attr", a->at,
				"attribute %s of %s is of kind %s", a->name,
				name, q->kind);
	}
	for (int32_t i = 0; i < ir_row_n_params(c->row); i++) {
		const ir_param *q = ir_row_param(c->row, i);
		bool given = q->is_operand || q->default_text != NULL;

		for (int32_t k = 0; k < c->n_attrs && !given; k++)
			given = strcmp(c->attr[k].name, q->name) == 0;
		if (!given)
			env_fail(arena_env(p->a), TN_EINVAL, "tn.attr", c->at,
				"%s needs attribute %s of kind %s", name,
				q->name, q->kind);
	}
}

/* ---- calls ---- */

static void check_names(const ir_program *p, const prog_call *c, int32_t n)
{
	if (c->n_names >= 0 && c->n_names != n)
		env_fail(arena_env(p->a), TN_EINVAL, "tn.arity", c->at,
			"%s has %d result%s, not %d", ir_row_name(c->row), n,
			n == 1 ? "" : "s", c->n_names);
}

/* write(view, value): the result is a version of the view's root (view.c). */
static int32_t add_write(ir_program *p, const prog_call *c)
{
	if (c->n_args != 2 || c->n_attrs > 0 ||
		(c->n_names >= 0 && c->n_names != 1))
		env_fail(arena_env(p->a), TN_EINVAL, "tn.arity", c->at,
			"write takes a view and a value and has one result, "
			"the next version of what is written");
	ir_program_write(p, c->arg[0], c->arg[1],
		c->name != NULL ? c->name[0] : NULL, c->at);
	return p->call.n - 1;
}

/* concat(x0 .. x199)  ->  concat(concat(x0 .. x49), concat(x50 ..), ..) */
static int32_t add_in_parts(ir_program *p, const prog_call *c, const ir_row *join)
{
	int32_t each = (c->n_args - 1) / IR_MAX_OPERANDS + 1, n = 0;
	int32_t part[IR_MAX_OPERANDS], all;
	prog_call of = *c, whole = *c;

	of.n_names = -1;
	of.name = NULL;
	for (int32_t i = 0; i < c->n_args; i += each) {
		of.arg = c->arg + i;
		of.n_args = c->n_args - i < each ? c->n_args - i : each;
		all = prog_add_call(p, &of);
		part[n++] = p->call.at[all].result[0];
	}
	whole.row = join;
	whole.arg = part;
	whole.n_args = n;
	return prog_add_call(p, &whole);
}

int32_t prog_add_call(ir_program *p, const prog_call *c)
{
	const ir_row *join = ir_row_join(p->table, c->row);
	ir_type *type = arena_array(p->a, ir_type, c->n_args);
	const char **shown = arena_array(p->a, const char *, c->n_args + 1);
	ir_call call = {.row = c->row,
		.n_args = c->n_args,
		.n_attrs = c->n_attrs,
		.view = -1,
		.at = c->at};
	int32_t number = p->call.n;

	if (prog_is_write(c->row))
		return add_write(p, c);
	if (c->n_args > IR_MAX_OPERANDS && join != NULL)
		return add_in_parts(p, c, join);
	check_arity(p, c);
	check_attrs(p, c);
	for (int32_t i = 0; i < c->n_args; i++) {
		if (c->arg[i] < 0 || c->arg[i] >= p->value.n)
			env_bug(arena_env(p->a), "ir_program_call", "no value %d",
				c->arg[i]);
		type[i] = p->value.at[c->arg[i]].type;
		shown[i] = p->value.at[c->arg[i]].shown;
	}
	call.arg = arena_copy(p->a, c->arg,
		(size_t)c->n_args * sizeof(int32_t));
	call.attr = row_copy_attrs(p->a, c->attr, c->n_attrs);
	call.inst = ir_instantiate(p->a, p->table, c->row, c->n_args, type,
		shown, c->n_attrs, call.attr, c->at);
	if (ir_row_is_user(c->row))
		ir_check_bounds(p->table, arena_env(p->a), call.inst, c->at);
	check_names(p, c, call.inst->n_results);
	prog_add_results(p, &call, c->name);
	return number;
}

/* Applies to value v the views between `root` and `view`. */
static int32_t view_again(
	ir_program *p, int32_t view, int32_t v, const char *name, loc at)
{
	VEC(int32_t) up = {0};

	while (p->value.at[view].call >= 0 &&
		ir_inst_is_view(p->call.at[p->value.at[view].call].inst)) {
		*vec_push(p->a, &up) = view;
		view = p->call.at[p->value.at[view].call].arg[0];
	}
	for (int32_t i = up.n - 1; i >= 0; i--) {
		ir_value of = p->value.at[up.at[i]];
		ir_call c = p->call.at[of.call];
		int32_t *arg = arena_copy(
			p->a, c.arg, (size_t)c.n_args * sizeof *arg);
		const char **names = arena_array(
			p->a, const char *, c.n_results);

		arg[0] = v;
		c.arg = arg;
		c.at = at;
		names[of.result] = i == 0 ? name : NULL;
		prog_add_results(p, &c, names);
		for (int32_t r = 0; r < c.n_results; r++)
			if (p->value.at[c.result[r]].name == NULL)
				prog_name_value(p, c.result[r]);
		v = c.result[of.result];
	}
	return v;
}

void prog_add_in_place(ir_program *p, const prog_call *c)
{
	const char **name = arena_array(p->a, const char *, c->n_names + 1);
	prog_call plain = *c;
	bool is_whole;
	int32_t made, next;

	if (c->n_args == 0)
		env_fail(arena_env(p->a), TN_EINVAL, "tn.arity", c->at,
			"%s_ has no operand that it could write",
			ir_row_name(c->row));
	memcpy(name, c->name, (size_t)c->n_names * sizeof *name);
	name[0] = NULL;
	plain.name = name;
	made = prog_add_call(p, &plain);
	made = p->call.at[made].result[0];
	prog_name_value(p, made);
	is_whole = p->value.at[c->arg[0]].call < 0 ||
		!ir_inst_is_view(
			p->call.at[p->value.at[c->arg[0]].call].inst);
	next = ir_program_write(p, c->arg[0], made,
		is_whole ? c->name[0] : NULL, c->at);
	if (!is_whole)
		(void)view_again(p, c->arg[0], next, c->name[0], c->at);
}

int32_t ir_program_call(ir_program *p, const char *row, int32_t n_args,
	const int32_t *arg, int32_t n_attrs, const ir_attr *attr,
	const char *const *result_name, loc at)
{
	prog_call c = {.row = prog_find_row(p, row, at),
		.n_args = n_args,
		.arg = arg,
		.n_attrs = n_attrs,
		.name = result_name,
		.n_names = -1,
		.at = at};
	int32_t first = p->value.n, number;

	c.attr = arena_copy(p->a, attr, (size_t)n_attrs * sizeof *attr);
	number = prog_add_call(p, &c);
	for (; first < p->value.n; first++)
		if (p->value.at[first].name == NULL)
			prog_name_value(p, first);
	return number;
}
