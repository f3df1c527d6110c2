/*
 * program.c: programs: named calls of rows on values in SSA form.
 *
 * Consumes calls one by one; checks each against its row (arity, attributes) and
 * instantiates it, so that all values have shapes. Guarantees: values have
 * distinct names, operands are defined before they are used, and every call has
 * its instance.
 *
 *     int32_t x = ir_program_input(p, "x", type, at);
 *     ir_program_call(p, "exp", 1, &x, 0, NULL, NULL, at);    v0 = exp(x)
 */
#include "program/local.h"

#include "notation/row.h"

static env *env_of(const ir_program *p)
{
	return arena_env(p->a);
}

ir_program *ir_program_new(arena *a, ir_table *t)
{
	ir_program *p = arena_make(a, ir_program);

	p->a = a;
	p->table = t;
	p->name = map_new(a);
	return p;
}

/* ---- values ---- */

int32_t prog_find_value(const ir_program *p, const char *name)
{
	return (int32_t)map_get_str(p->name, name, -1);
}

int32_t prog_add_value(ir_program *p, const char *name, ir_type type,
	int32_t call, int32_t result, loc at)
{
	int32_t value = p->value.n;
	int32_t old = name != NULL ? prog_find_value(p, name) : -1;

	if (old >= 0)
		env_fail(env_of(p), TN_EINVAL, "tn.duplicate", at,
			"%s is already defined in line %d; every value needs "
			"a name of its own",
			name, p->value.at[old].at.line);
	if (value == INT32_MAX - 1)
		env_fail(env_of(p), TN_ENOMEM, "tn.size", at,
			"a program has fewer than 2^31 values");
	if (name != NULL)
		name = arena_strdup(p->a, name);
	*vec_push(p->a, &p->value) = (ir_value){.name = name,
		.shown = name,
		.type = type,
		.call = call,
		.result = result,
		.next_version = -1,
		.at = at};
	if (name != NULL)
		map_set_str(p->name, name, value);
	return value;
}

void prog_name_value(ir_program *p, int32_t value)
{
	char *name;

	do
		name = arena_printf(p->a, "v%d", p->next_name++);
	while (prog_find_value(p, name) >= 0);
	p->value.at[value].name = name;
	map_set_str(p->name, name, value);
}

void ir_program_rename(ir_program *p, int32_t value, const char *name)
{
	if (prog_find_value(p, name) >= 0)
		return;
	name = arena_strdup(p->a, name);
	p->value.at[value].name = name;
	map_set_str(p->name, name, value);
}

static void check_type(const ir_program *p, const char *name,
	const ir_type *t, loc at)
{
	if (t->rank < 0 || t->rank > TN_MAX_RANK)
		env_fail(env_of(p), TN_EINVAL, "tn.rank", at,
			"%s has %d axes; at most %d are possible", name,
			t->rank, TN_MAX_RANK);
	for (int32_t i = 0; i < t->rank; i++)
		if (t->shape[i] < 0)
			env_fail(env_of(p), TN_EINVAL, "tn.extent", at,
				"extent %lld of %s is negative",
				(long long)t->shape[i], name);
	if (shape_numel(t->shape, t->rank) < 0)
		env_fail(env_of(p), TN_EINVAL, "tn.extent", at,
			"%s has more than 2^48 elements, which is the limit",
			name);
}

int32_t ir_program_input(ir_program *p, const char *name, ir_type type, loc at)
{
	int32_t value;

	check_type(p, name != NULL ? name : "an input", &type, at);
	value = prog_add_value(p, name, type, -1, 0, at);
	*vec_push(p->a, &p->input) = value;
	return value;
}

int32_t ir_program_param(ir_program *p, const char *name, ir_type type, loc at)
{
	int32_t value = ir_program_input(p, name, type, at);

	p->value.at[value].is_param = true;
	return value;
}

int32_t ir_program_newest(const ir_program *p, int32_t value)
{
	while (p->value.at[value].next_version >= 0)
		value = p->value.at[value].next_version;
	return value;
}

void ir_program_output(ir_program *p, int32_t value)
{
	if (value < 0 || value >= p->value.n)
		env_bug(env_of(p), "ir_program_output", "no value %d", value);
	*vec_push(p->a, &p->output) = value;
}

/* ---- finding rows ---- */

enum { NAME_CAP = 64, N_NEAREST = 3 };

/*
 * The number of letters to change, insert, delete or exchange with the next one;
 * names longer than NAME_CAP have the largest distance.
 */
static int32_t distance(const char *x, const char *y)
{
	size_t nx = strlen(x), ny = strlen(y);
	int32_t row[3][NAME_CAP + 1];

	if (nx > NAME_CAP || ny > NAME_CAP)
		return NAME_CAP;
	for (size_t j = 0; j <= ny; j++)
		row[0][j] = (int32_t)j;
	for (size_t i = 1; i <= nx; i++) {
		int32_t *now = row[i % 3];
		const int32_t *up = row[(i + 2) % 3], *two = row[(i + 1) % 3];

		now[0] = (int32_t)i;
		for (size_t j = 1; j <= ny; j++) {
			int32_t best = up[j - 1] + (x[i - 1] != y[j - 1]);

			if (up[j] + 1 < best)
				best = up[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && x[i - 1] == y[j - 2] &&
				x[i - 2] == y[j - 1] && two[j - 2] + 1 < best)
				best = two[j - 2] + 1;
			now[j] = best;
		}
	}
	return row[nx % 3][ny];
}

/* "; near: relu, prelu", or other advice */
void ir_table_near(str *s, const ir_table *t, const char *name)
{
	int32_t limit = (int32_t)strlen(name) / 3 + 1, n = 0;

	for (int32_t d = 1; d <= limit && n < N_NEAREST; d++) {
		for (int32_t i = 0; i < ir_table_n(t) && n < N_NEAREST; i++) {
			const char *row = ir_row_name(ir_table_at(t, i));

			if (distance(name, row) == d)
				str_printf(s, "%s%s", n++ == 0 ? "; near: " :
								 ", ",
					row);
		}
	}
	if (n == 0)
		str_add(s, "; `tenon ops` lists all operations");
}

const ir_row *prog_find_row(const ir_program *p, const char *name, loc at)
{
	const ir_row *r = ir_table_find(p->table, name);
	str s;

	if (r != NULL)
		return r;
	s = str_new(p->a);
	ir_table_near(&s, p->table, name);
	env_fail(env_of(p), TN_EINVAL, "tn.unknown_op", at,
		"there is no operation %.60s%s", name, s.at);
}

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
			env_fail(env_of(p), TN_EINVAL, "tn.arity", c->at,
				"%s takes at least one operand",
				ir_row_name(c->row));
		if (c->n_args < 1 || c->n_args > IR_MAX_OPERANDS)
			env_fail(env_of(p), TN_EINVAL, "tn.arity", c->at,
				"%s takes 1 to %d operands, not %d",
				ir_row_name(c->row), IR_MAX_OPERANDS,
				c->n_args);
		return;
	}
	for (; prog_operand(c->row, n) != NULL; n++)
		str_printf(&s, "%s%s", n > 0 ? ", " : "",
			prog_operand(c->row, n)->name);
	if (n != c->n_args)
		env_fail(env_of(p), TN_EINVAL, "tn.arity", c->at,
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
			env_fail(env_of(p), TN_EINVAL, "tn.attr", a->at,
				"%s has no attribute %.60s; accepted: %s", name,
				a->name, accepted(p, c->row));
		for (int32_t k = 0; k < i; k++)
			if (strcmp(c->attr[k].name, a->name) == 0)
				env_fail(env_of(p), TN_EINVAL, "tn.attr",
					a->at, "%s of %s is given twice",
					a->name, name);
		if (!adapt(a, q->kind))
			env_fail(env_of(p), TN_EINVAL, "tn.attr", a->at,
				"attribute %s of %s is of kind %s", a->name,
				name, q->kind);
	}
	for (int32_t i = 0; i < ir_row_n_params(c->row); i++) {
		const ir_param *q = ir_row_param(c->row, i);
		bool given = q->is_operand || q->default_text != NULL;

		for (int32_t k = 0; k < c->n_attrs && !given; k++)
			given = strcmp(c->attr[k].name, q->name) == 0;
		if (!given)
			env_fail(env_of(p), TN_EINVAL, "tn.attr", c->at,
				"%s needs attribute %s of kind %s", name,
				q->name, q->kind);
	}
}

/* ---- calls ---- */

static void check_names(const ir_program *p, const prog_call *c, int32_t n)
{
	if (c->n_names >= 0 && c->n_names != n)
		env_fail(env_of(p), TN_EINVAL, "tn.arity", c->at,
			"%s has %d result%s, not %d", ir_row_name(c->row), n,
			n == 1 ? "" : "s", c->n_names);
}

/* Adds the call and a value for each result. */
static void add_results(
	ir_program *p, ir_call *call, const char *const *name)
{
	int32_t n = call->inst->n_results, *result;

	result = arena_array(p->a, int32_t, n);
	for (int32_t i = 0; i < n; i++)
		result[i] = prog_add_value(p, name != NULL ? name[i] : NULL,
			call->inst->tensor[call->inst->result[i]].type,
			p->call.n, i, call->at);
	call->n_results = n;
	call->result = result;
	*vec_push(p->a, &p->call) = *call;
}

/* write(view, value): the result is a version of the view's root (view.c). */
static int32_t add_write(ir_program *p, const prog_call *c)
{
	if (c->n_args != 2 || c->n_attrs > 0 ||
		(c->n_names >= 0 && c->n_names != 1))
		env_fail(env_of(p), TN_EINVAL, "tn.arity", c->at,
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
			env_bug(env_of(p), "ir_program_call", "no value %d",
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
		ir_check_bounds(p->table, env_of(p), call.inst, c->at);
	check_names(p, c, call.inst->n_results);
	add_results(p, &call, c->name);
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
		add_results(p, &c, names);
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
		env_fail(env_of(p), TN_EINVAL, "tn.arity", c->at,
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

int32_t ir_program_inst(ir_program *p, const ir_inst *inst, int32_t n_args,
	const int32_t *arg, const char *const *name, loc at)
{
	ir_call call = {.row = inst->row,
		.n_args = n_args,
		.inst = inst,
		.view = -1,
		.at = at};
	int32_t number = p->call.n;

	/* by its name in the table, if it has one */
	if (inst->asked != NULL &&
		ir_table_find(p->table, ir_row_name(inst->asked)) ==
			inst->asked) {
		call.row = inst->asked;
		call.n_attrs = inst->n_attrs;
		call.attr = row_copy_attrs(p->a, inst->attr, inst->n_attrs);
	}
	call.arg = arena_copy(p->a, arg, (size_t)n_args * sizeof *arg);
	add_results(p, &call, name);
	for (int32_t i = 0; i < call.n_results && name == NULL; i++)
		prog_name_value(p, p->call.at[number].result[i]);
	return number;
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

/* ---- the verifier ---- */

static void want(const ir_program *p, bool holds, const char *what, int32_t i)
{
	if (!holds)
		env_bug(env_of(p), "ir_program_verify", "%s (number %d)", what,
			i);
}

static void verify_call(const ir_program *p, int32_t number, int32_t *defined)
{
	const ir_call *c = &p->call.at[number];

	/* a row that was built as text for these operands keeps the row's name */
	want(p, c->inst != NULL &&
			strcmp(ir_row_name(c->inst->row),
				ir_row_name(c->row)) == 0,
		"a call lacks an instance of its row", number);
	for (int32_t i = 0; i < c->n_args; i++) {
		want(p, c->arg[i] >= 0 && c->arg[i] < *defined,
			"a call reads a value that is defined later", number);
		want(p, ir_type_same(&p->value.at[c->arg[i]].type,
				&c->inst->tensor[i].type),
			"an operand differs from its instance", number);
	}
	want(p, c->n_results == c->inst->n_results,
		"the results differ from the instance", number);
	for (int32_t i = 0; i < c->n_results; i++) {
		const ir_value *v;

		while (*defined < p->value.n &&
			p->value.at[*defined].call == -1)
			++*defined;
		want(p, c->result[i] == *defined && *defined < p->value.n,
			"results are not numbered in order", number);
		v = &p->value.at[(*defined)++];
		want(p, v->call == number && v->result == i,
			"a value does not name its call", c->result[i]);
		want(p, ir_type_same(&v->type,
				&c->inst->tensor[c->inst->result[i]].type),
			"a result differs from its instance", number);
	}
	while (*defined < p->value.n && p->value.at[*defined].call == -1)
		++*defined;
}

void ir_program_verify(const ir_program *p)
{
	int32_t defined = 0;

	for (int32_t i = 0; i < p->value.n; i++) {
		const ir_value *v = &p->value.at[i];

		want(p, v->name != NULL, "a value has no name", i);
		want(p, prog_find_value(p, v->name) == i,
			"two values have the same name", i);
		want(p, shape_numel(v->type.shape, v->type.rank) >= 0,
			"a value is too large", i);
	}
	for (int32_t i = 0; i < p->input.n; i++)
		want(p, p->input.at[i] >= 0 && p->input.at[i] < p->value.n &&
				p->value.at[p->input.at[i]].call == -1,
			"an input is not a value, or a call computes it", i);
	while (defined < p->value.n && p->value.at[defined].call == -1)
		defined++;
	for (int32_t i = 0; i < p->call.n; i++)
		verify_call(p, i, &defined);
	want(p, defined == p->value.n, "no call computes a value", defined);
	for (int32_t i = 0; i < p->output.n; i++)
		want(p, p->output.at[i] >= 0 && p->output.at[i] < p->value.n,
			"an output is not a value", i);
}
