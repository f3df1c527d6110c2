/*
 * apply.c: calls a program on tensors: its calls are recorded as if the user had
 * made them, so it can be differentiated and trained.
 *
 *     in = inputs, then parameters      out = tn_apply(program, in)
 */
#include "api/api.h"

struct apply {
	const char *file;
	int32_t line;
	tn_program *p;
	int32_t n_in, n_out;
	tn_tensor *const *in;
	tn_tensor **out;
	bool wide; /* use f64 for all floats */
};

static tn_dtype widened(const struct apply *k, tn_dtype t)
{
	return k->wide && dtype_is_float(t) ? TN_F64 : t;
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

	if (k->in[i] == NULL || !tensor_is_valid(api_inner(k->in[i])))
		refuse(k, "tensor.handle", "the tensor that it is made from is "
			"invalid",
			k->p->in[i].name);
	got = tensor_type_of(api_inner(k->in[i]));
	if (got->dtype == widened(k, want->dtype) && got->rank == want->rank &&
		memcmp(got->shape, want->shape,
			(size_t)want->rank * sizeof *want->shape) == 0)
		return;
	s = str_new(k->p->a);
	str_printf(&s, "%s is ", k->p->in[i].name);
	ir_type_add(&s, want);
	str_printf(&s, " in the program; the tensor is %s",
		dtype_name(got->dtype));
	str_shape(&s, got->shape, got->rank);
	env_fail(k->p->c->e, TN_EINVAL, "apply.input",
		(loc){k->file, k->line, 0}, "%s", s.at);
}

/*
 * The row of that name in the context, whose text must be that of the program's
 * row. If there is none, defines the row of the program in the context.
 */
static const ir_row *row_of(const struct apply *k, const ir_call *c)
{
	const char *name = ir_row_name(c->row), *text = ir_row_text(c->row);
	ir_table *table = tensors_table(api_tensors(k->p->c));
	const ir_row *r = ir_table_find(table, name);

	if (r == NULL && ir_row_is_user(c->row))
		r = ir_table_define(table, text, strlen(text), c->at);
	if (r == NULL || c->inst->asked == NULL ||
		strcmp(ir_row_text(r), text) != 0)
		refuse(k, "apply.row",
			"a call of it cannot be recorded: the context has "
			"another row of that name, or none", name);
	return r;
}

static void record_calls(
	const struct apply *k, arena *a, const ir_program *p, tensor **value);

/* A loop of the program, while its rounds are recorded as a region. */
struct looping {
	const struct apply *k;
	arena *a;
	const ir_loop *l;
	tensor *const *same;
};

static void record_body(void *arg, tensor *const *in, tensor **out)
{
	const struct looping *j = arg;
	const ir_program *p = j->l->body;
	int32_t n = j->l->n_carried + j->l->n_rows;
	tensor **value = arena_array(j->a, tensor *, p->value.n + 1);

	for (int32_t i = 0; i < p->input.n; i++)
		value[p->input.at[i]] = i < n ? in[i] : j->same[i - n];
	record_calls(j->k, j->a, p, value);
	for (int32_t i = 0; i < p->output.n; i++)
		out[i] = value[p->output.at[i]];
}

/* Another round? The carried value says so. */
static void record_test(void *arg, tensor *const *in, tensor **out)
{
	const struct looping *j = arg;

	*out = in[j->l->test - 1];
}

static void record_loop(
	const struct apply *k, arena *a, const ir_call *c, tensor **value)
{
	tensors *t = api_tensors(k->p->c);
	const ir_loop *l = ir_loop_of(c->inst);
	tensor *arg[IR_MAX_OPERANDS], *out[IR_MAX_OUT];
	struct looping j = {k, a, l, arg + l->n_carried + l->n_rows};
	const tensor_loop loop = {.name = "loop",
		.body = record_body,
		.arg = &j,
		.test = l->test > 0 ? record_test : NULL,
		.test_arg = &j,
		.n = l->test > 0 && l->n == INT64_MAX ? 0 : l->n,
		.n_carried = l->n_carried,
		.n_rows = l->n_rows,
		.n_out = l->n_out};

	for (int32_t i = 0; i < c->n_args; i++)
		arg[i] = value[c->arg[i]];
	tensor_loop_call(t, &loop, arg, out);
	for (int32_t i = 0; i < c->n_results; i++)
		value[c->result[i]] = out[i];
}

static void record_call(
	const struct apply *k, arena *a, const ir_call *c, tensor **value)
{
	tensors *t = api_tensors(k->p->c);
	tensor *arg[IR_MAX_OPERANDS], *out[IR_MAX_PIECES];
	ir_attr *attr = arena_copy(
		a, c->attr, (size_t)c->n_attrs * sizeof *attr);
	int32_t n;

	if (c->n_args > IR_MAX_OPERANDS || c->n_results > IR_MAX_PIECES)
		refuse(k, "apply.row", "it has too many operands or results",
			ir_row_name(c->row));
	for (int32_t i = 0; i < c->n_args; i++)
		arg[i] = value[c->arg[i]];
	for (int32_t i = 0; i < c->n_attrs; i++)
		if (attr[i].kind == ATTR_DTYPE)
			attr[i].dtype = widened(k, attr[i].dtype);
	n = tensor_call(t, row_of(k, c), c->n_args, arg, c->n_attrs, attr,
		out, IR_MAX_PIECES);
	for (int32_t i = 0; i < n; i++)
		value[c->result[i]] = out[i];
}

/* The value that v is a view of, or v. */
static int32_t root_of(const ir_program *p, int32_t v)
{
	while (p->value.at[v].call >= 0 &&
		ir_inst_is_view(p->call.at[p->value.at[v].call].inst))
		v = p->call.at[p->value.at[v].call].arg[0];
	return v;
}

/* Is value v read by a call from number `from` on, or returned? */
static bool is_read(const ir_program *p, int32_t v, int32_t from)
{
	for (int32_t i = from; i < p->call.n; i++)
		for (int32_t k = 0; k < p->call.at[i].n_args; k++)
			if (p->call.at[i].arg[k] == v)
				return true;
	for (int32_t i = 0; i < p->output.n; i++)
		if (p->output.at[i] == v)
			return true;
	return false;
}

/*
 * Records a write. A tensor is always its newest version, so views of the version
 * before that the program still reads are copied first; unneeded copies cost
 * nothing.
 */
static void record_write(const struct apply *k, int32_t number, tensor **value)
{
	const ir_program *p = k->p->ir;
	const ir_call *c = &p->call.at[number];
	tensors *t = api_tensors(k->p->c);
	int32_t root = root_of(p, c->view);
	tensor *to = value[c->view], *whole = value[root];
	tensor *from = value[c->arg[1]];

	for (int32_t v = 0; v < p->value.n; v++) {
		tensor *old = value[v];

		if (old == NULL || root_of(p, v) != root ||
			!is_read(p, v, number + 1))
			continue;
		tensor_call(t, ir_table_find(tensors_table(t), "copy"), 1,
			&old, 0, NULL, &value[v], 1);
	}
	tensor_write(t, to, from);
	value[c->result[0]] = whole;
}

static void record_calls(
	const struct apply *k, arena *a, const ir_program *p, tensor **value)
{
	for (int32_t i = 0; i < p->call.n; i++) {
		const ir_call *c = &p->call.at[i];

		if (c->at.file != NULL)
			tensors_site(api_tensors(k->p->c), c->at.file,
				c->at.line);
		if (c->view >= 0) /* a body of a loop has no writes */
			record_write(k, i, value);
		else if (ir_loop_of(c->inst) != NULL)
			record_loop(k, a, c, value);
		else
			record_call(k, a, c, value);
	}
}

/* Is it a handle that was created here and is not an output yet? */
static bool is_ours(const struct apply *k, int32_t n, const tensor *x)
{
	for (int32_t i = 0; i < k->n_in; i++)
		if (api_inner(k->in[i]) == x)
			return false;
	for (int32_t i = 0; i < n; i++)
		if (api_inner(k->out[i]) == x)
			return false;
	return true;
}

struct scratch {
	struct apply *k;
	bool open; /* a scope was entered here */
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
		value[ir->input.at[i]] = api_inner(k->in[i]);
	}
	tensor_scope_enter(t);
	s->open = true;
	record_calls(k, a, ir, value);
	tensors_site(t, k->file, k->line);
	for (int32_t i = 0; i < ir->output.n; i++) {
		tensor *x = value[ir->output.at[i]];

		if (is_ours(k, i, x))
			tensor_keep(t, x);
		k->out[i] = api_outer(x);
	}
	tensor_scope_leave(t);
	s->open = false;
}

static void run(void *arg)
{
	struct scratch *s = arg;
	struct apply *k = s->k;

	tensors_site(api_tensors(k->p->c), k->file, k->line);
	api_want_shapes(k->p);
	if (k->n_in > 0)
		api_want(k->p->c, k->in, "the list of inputs");
	if (k->n_out > 0)
		api_want(k->p->c, k->out, "the list of outputs");
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

static tn_status apply(struct apply k)
{
	struct scratch s = {&k, false};
	tn_program *p = k.p;
	tn_status status = api_sticky(p->c, k.file, k.line, run, &s);

	if (status < 0) {
		if (s.open)
			(void)api_call(p->c, leave, api_tensors(p->c));
		for (int32_t i = 0; i < k.n_out && k.out != NULL; i++)
			k.out[i] = api_invalid(p->c);
	}
	return status;
}

tn_status tn_at_apply(const char *file, int32_t line, tn_program *p,
	int32_t n_in, tn_tensor *const *in, int32_t n_out, tn_tensor **out)
{
	if (p == NULL)
		return api_null("the program");
	return apply((struct apply){
		file, line, p, n_in, n_out, in, out, false});
}

tn_status api_apply_wide(tn_program *p, int32_t n_in, tn_tensor *const *in,
	int32_t n_out, tn_tensor **out)
{
	return apply((struct apply){NULL, 0, p, n_in, n_out, in, out, true});
}
