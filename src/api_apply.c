/*
 * api_apply.c: a program as calls on tensors: what was read from a file is
 * recorded like any other code, so it can be differentiated and trained.
 *
 *     in = inputs, then parameters      out = tn_apply(program, in)
 */
#include "api.h"

struct apply {
	const char *file;
	int32_t line;
	tn_program *p;
	int32_t n_in, n_out;
	tn_tensor *const *in;
	tn_tensor **out;
};

static tensor *inner(tn_tensor *x)
{
	return (tensor *)(void *)x;
}

static _Noreturn void refuse(const struct apply *k, const char *rule,
	const char *what, const char *name)
{
	env_fail(k->p->c->e, TN_EINVAL, rule, (loc){k->file, k->line, 0},
		"%s: %s", name, what);
}

static void check_input(const struct apply *k, int32_t i)
{
	const ir_program *ir = k->p->ir;
	const ir_type *want = &ir->value.at[ir->input.at[i]].type, *got;
	str s;

	if (k->in[i] == NULL || !tensor_is_valid(inner(k->in[i])))
		refuse(k, "tensor.handle", "its tensor is invalid",
			k->p->in[i].name);
	got = tensor_type_of(inner(k->in[i]));
	if (got->dtype == want->dtype && got->rank == want->rank &&
		memcmp(got->shape, want->shape,
			(size_t)want->rank * sizeof *want->shape) == 0)
		return;
	s = str_new(k->p->a);
	str_printf(&s, "%s is ", k->p->in[i].name);
	str_add(&s, dtype_name(want->dtype));
	str_shape(&s, want->shape, want->rank);
	str_printf(&s, " in the program; the tensor is %s",
		dtype_name(got->dtype));
	str_shape(&s, got->shape, got->rank);
	env_fail(k->p->c->e, TN_EINVAL, "apply.input",
		(loc){k->file, k->line, 0}, "%s", s.at);
}

/* The context's row of the name; it must say what the program's says. */
static const ir_row *row_of(const struct apply *k, const ir_call *c)
{
	const char *name = ir_row_name(c->row);
	const ir_row *r =
		ir_table_find(tensors_table(api_tensors(k->p->c)), name);

	if (r == NULL || c->view >= 0 || c->inst->asked == NULL ||
		strcmp(ir_row_text(r), ir_row_text(c->row)) != 0)
		refuse(k, "apply.row", "a call of it cannot be recorded: it "
				       "writes, or is no row of the context's "
				       "table", name);
	return r;
}

static void record_call(const struct apply *k, const ir_call *c, tensor **value)
{
	tensors *t = api_tensors(k->p->c);
	tensor *arg[IR_MAX_OPERANDS], *out[IR_MAX_OUT];
	int32_t n;

	if (c->n_args > IR_MAX_OPERANDS || c->n_results > IR_MAX_OUT)
		refuse(k, "apply.row", "it has too many operands or results",
			ir_row_name(c->row));
	for (int32_t i = 0; i < c->n_args; i++)
		arg[i] = value[c->arg[i]];
	n = tensor_call(t, row_of(k, c), c->n_args, arg, c->n_attrs, c->attr,
		out, IR_MAX_OUT);
	for (int32_t i = 0; i < n; i++)
		value[c->result[i]] = out[i];
}

struct scratch {
	struct apply *k;
	bool open; /* a scope of ours is */
};

static void record(arena *a, void *arg)
{
	struct scratch *s = arg;
	struct apply *k = s->k;
	const ir_program *ir = k->p->ir;
	tensors *t = api_tensors(k->p->c);
	tensor **value = arena_array(a, tensor *, ir->value.n + 1);

	for (int32_t i = 0; i < ir->input.n; i++) {
		check_input(k, i);
		value[ir->input.at[i]] = inner(k->in[i]);
	}
	tensor_scope_enter(t);
	s->open = true;
	for (int32_t i = 0; i < ir->call.n; i++)
		record_call(k, &ir->call.at[i], value);
	for (int32_t i = 0; i < ir->output.n; i++) {
		tensor *x = value[ir->output.at[i]];

		bool ours = ir->value.at[ir->output.at[i]].call >= 0;

		for (int32_t j = 0; j < i && ours; j++)
			ours = ir->output.at[j] != ir->output.at[i];
		if (ours)
			tensor_keep(t, x);
		k->out[i] = (tn_tensor *)(void *)x;
	}
	tensor_scope_leave(t);
	s->open = false;
}

static void run(void *arg)
{
	struct scratch *s = arg;
	struct apply *k = s->k;

	tensors_site(api_tensors(k->p->c), k->file, k->line);
	if (k->n_in != k->p->ir->input.n || k->n_out != k->p->ir->output.n)
		env_fail(k->p->c->e, TN_EINVAL, "apply.count",
			(loc){k->file, k->line, 0},
			"%d inputs and %d outputs are given; the program has "
			"%d, parameters included, and %d",
			(int)k->n_in, (int)k->n_out, (int)k->p->ir->input.n,
			(int)k->p->ir->output.n);
	arena_run(k->p->c->e, record, s);
}

static void leave(void *arg)
{
	tensor_scope_leave(arg);
}

tn_status tn_at_apply(const char *file, int32_t line, tn_program *p,
	int32_t n_in, tn_tensor *const *in, int32_t n_out, tn_tensor **out)
{
	struct apply k = {file, line, p, n_in, n_out, in, out};
	struct scratch s = {&k, false};
	tn_status status = api_sticky(p->c, file, line, run, &s);

	if (status < 0) {
		if (s.open)
			(void)api_call(p->c, leave, api_tensors(p->c));
		for (int32_t i = 0; i < n_out; i++)
			out[i] = (tn_tensor *)(void *)tensor_invalid(
				api_tensors(p->c));
	}
	return status;
}
