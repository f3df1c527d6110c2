/*
 * loop.c: calls of a program whose results a loop computes.
 *
 *     s, ys = loop(s0, xs, w)     body (s, x, w) -> s', y      3 rounds
 *
 *     s1, y0 = body(s0, xs[0], w);  s2, y1 = body(s1, xs[1], w);
 *     s, y2 = body(s2, xs[2], w);   ys = y0, y1, y2
 *
 * With a test, a carried value says before each round whether there is one.
 *
 * To every pass such a call is an opaque row: a function on whole, dense
 * tensors. The body is a program of its own, which is compiled once, whatever
 * the number of rounds.
 */
#include "program/local.h"

/* The type of n of them. */
static ir_type stacked(const ir_type *row, int64_t n)
{
	ir_type t = *row;

	t.rank++;
	memmove(t.shape + 1, row->shape, (size_t)row->rank * sizeof t.shape[0]);
	t.shape[0] = n;
	return t;
}

static const ir_type *input_type(const ir_loop *l, int32_t i)
{
	return &l->body->value.at[l->body->input.at[i]].type;
}

static const ir_type *output_type(const ir_loop *l, int32_t i)
{
	return &l->body->value.at[l->body->output.at[i]].type;
}

static _Noreturn void refuse(const ir_program *p, loc at, const char *what,
	int32_t number, const ir_type *is, const ir_type *wanted)
{
	str text = str_new(p->a);

	str_printf(&text, "%s %d of the loop is %s", what, (int)number,
		dtype_name(is->dtype));
	str_shape(&text, is->shape, is->rank);
	str_printf(&text, ", but the body needs %s", dtype_name(wanted->dtype));
	str_shape(&text, wanted->shape, wanted->rank);
	env_fail(arena_env(p->a), TN_EINVAL, "tn.loop", at, "%s", text.at);
}

static void check_counts(const ir_program *p, const ir_loop *l, int32_t n_args,
	loc at)
{
	int32_t n_in = l->n_carried + l->n_rows + l->n_same;
	env *e = arena_env(p->a);

	if (l->n < 1)
		env_fail(e, TN_EINVAL, "tn.loop", at,
			"a loop has at least one round, not %lld",
			(long long)l->n);
	if (l->body->input.n != n_in || n_args != n_in)
		env_fail(e, TN_EINVAL, "tn.loop", at,
			"the loop has %d operands, but its body %d inputs",
			(int)n_args, (int)l->body->input.n);
	if (n_in > IR_MAX_OPERANDS || l->body->output.n > IR_MAX_OUT)
		env_fail(e, TN_EINVAL, "tn.loop", at,
			"a loop has at most %d operands and %d results, not %d "
			"and %d", IR_MAX_OPERANDS, IR_MAX_OUT, (int)n_in,
			(int)l->body->output.n);
	if (l->n_out < 0 || l->body->output.n != l->n_carried + l->n_out ||
		l->body->output.n == 0)
		env_fail(e, TN_EINVAL, "tn.loop", at,
			"the body returns %d values, but carries %d",
			(int)l->body->output.n, (int)l->n_carried);
}

static void check_stacked(const ir_program *p, const ir_type *row, int64_t n,
	loc at)
{
	ir_type all;

	if (row->rank == TN_MAX_RANK)
		env_fail(arena_env(p->a), TN_EINVAL, "tn.loop", at,
			"rows of a loop have at most %d axes", TN_MAX_RANK - 1);
	all = stacked(row, n);
	if (shape_numel(all.shape, all.rank) < 0)
		env_fail(arena_env(p->a), TN_EINVAL, "tn.extent", at,
			"%lld rows of a loop have too many elements",
			(long long)n);
}

static void check_test(const ir_program *p, const ir_loop *l, loc at)
{
	const ir_type *t;

	if (l->test == 0)
		return;
	if (l->test < 0 || l->test > l->n_carried)
		env_fail(arena_env(p->a), TN_EINVAL, "tn.loop", at,
			"while=%d: the loop carries values 0 to %d",
			(int)l->test - 1, (int)l->n_carried - 1);
	t = input_type(l, l->test - 1);
	if (shape_numel(t->shape, t->rank) != 1 || dtype_is_float(t->dtype))
		env_fail(arena_env(p->a), TN_EINVAL, "tn.loop", at,
			"while=%d: that value must be one bool or integer",
			(int)l->test - 1);
	if (l->n_out > 0)
		env_fail(arena_env(p->a), TN_EINVAL, "tn.loop", at,
			"a loop with a test returns what it carries and no "
			"rows, because their number is not known: carry them");
}

static void check(const ir_program *p, const ir_loop *l, int32_t n_args,
	const int32_t *arg, loc at)
{
	check_counts(p, l, n_args, at);
	check_test(p, l, at);
	for (int32_t i = 0; i < l->n_carried; i++)
		if (!ir_type_same(input_type(l, i), output_type(l, i)))
			refuse(p, at, "returned value", i, output_type(l, i),
				input_type(l, i));
	for (int32_t i = 0; i < n_args; i++) {
		bool is_row = i >= l->n_carried && i < l->n_carried + l->n_rows;
		ir_type wanted = *input_type(l, i);

		if (is_row) {
			check_stacked(p, &wanted, l->n, at);
			wanted = stacked(&wanted, l->n);
		}
		if (!ir_type_same(&p->value.at[arg[i]].type, &wanted))
			refuse(p, at, "operand", i, &p->value.at[arg[i]].type,
				&wanted);
	}
	for (int32_t i = 0; i < l->n_out; i++)
		check_stacked(p, output_type(l, l->n_carried + i), l->n, at);
}

const ir_loop *ir_loop_of(const ir_inst *p)
{
	return p->opaque != NULL ? p->opaque->loop : NULL;
}

int64_t ir_inst_points(const ir_inst *inst, int64_t most)
{
	const ir_loop *l = ir_loop_of(inst);
	int64_t sum = 0, n;

	for (int32_t i = 0; i < inst->n_eqns; i++) {
		const in_eqn *q = &inst->eqn[i];

		n = 1;
		for (int32_t k = 0; k < q->n_letters; k++)
			if (!mul_ok(n, inst->letter[q->letters[k]].extent, &n))
				n = INT64_MAX;
		if (n > most - sum)
			return most + 1;
		sum += n;
	}
	for (int32_t i = 0; l != NULL && i < l->body->call.n; i++) {
		n = ir_inst_points(l->body->call.at[i].inst, most);
		if (!mul_ok(n, l->n, &n) || n > most - sum)
			return most + 1;
		sum += n;
	}
	return sum;
}

int32_t ir_program_loop(ir_program *p, const ir_loop *l, ir_loop_run *run,
	int32_t n_args, const int32_t *arg, const char *const *name, loc at)
{
	int32_t n_in = l->n_carried + l->n_rows + l->n_same;
	int32_t n_out = l->n_carried + l->n_out;
	ir_inst *inst = arena_make(p->a, ir_inst);
	ir_opaque *f = arena_make(p->a, ir_opaque);
	in_tensor *t;
	int32_t *result;

	check(p, l, n_args, arg, at);
	t = arena_array(p->a, in_tensor, n_in + n_out);
	result = arena_array(p->a, int32_t, n_out);
	*f = (ir_opaque){.name = "loop", .run = run, .loop = l};
	for (int32_t i = 0; i < n_in; i++) {
		bool is_row = i >= l->n_carried && i < l->n_carried + l->n_rows;
		const ir_type *one = input_type(l, i);

		t[i] = (in_tensor){l->body->value.at[l->body->input.at[i]].name,
			is_row ? stacked(one, l->n) : *one, i, -1, -1};
	}
	for (int32_t i = 0; i < n_out; i++) {
		const ir_type *one = output_type(l, i);

		result[i] = n_in + i;
		t[n_in + i] = (in_tensor){arena_printf(p->a, "out%d", (int)i),
			i < l->n_carried ? *one : stacked(one, l->n), -1, i, -1};
	}
	inst->row = ir_row_named(p->a, "loop");
	inst->n_tensors = n_in + n_out;
	inst->tensor = t;
	inst->n_results = n_out;
	inst->result = result;
	inst->opaque = f;
	return ir_program_inst(p, inst, n_in, arg, name, at);
}
