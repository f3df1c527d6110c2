/*
 * program.c: programs: named calls of rows on values in SSA form.
 *
 * Guarantees: values have distinct names, operands are defined before they are
 * used, and every call has its instance.
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

/* ---- calls ---- */

void prog_add_results(
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
	prog_add_results(p, &call, name);
	for (int32_t i = 0; i < call.n_results && name == NULL; i++)
		prog_name_value(p, p->call.at[number].result[i]);
	return number;
}

bool prog_is_write(const ir_row *r)
{
	return !ir_row_is_user(r) && strcmp(ir_row_name(r), "write") == 0;
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
