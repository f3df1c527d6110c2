/*
 * host.c: the program that an import builds, and the elements of its values
 * that are known.
 *
 *     y = add(c, 1), c known  ->  onnx_host(y) runs the interpreter on it
 *
 * Evaluates values on demand, each once, without recursion. An import needs
 * only values that determine shapes, which are small; limits on bytes and on
 * points stop a hostile model.
 */
#include "onnx/stage.h"

#include "interp/interp.h"

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
enum { MAX_CALLS = 1 << 12 };
#else
enum { MAX_CALLS = 1 << 16 }; /* about 6 KB each */
#endif
#define MAX_HOST_BYTES ((size_t)1 << 31)
#define MAX_HOST_POINTS ((int64_t)1 << 31) /* of all equations */
/*
 * Limits of folding, about two seconds of work; values beyond them stay in the
 * program.
 */
#define MAX_FOLD_BYTES ((size_t)1 << 30)
#define MAX_FOLD_POINTS ((int64_t)1 << 26)

fact *onnx_fact(onnx_import *x, int32_t v)
{
	while (x->fact.n < x->p->value.n)
		*vec_push(x->a, &x->fact) = (fact){0};
	return &x->fact.at[v];
}

static loc place(const onnx_import *x)
{
	return (loc){.file = x->where};
}

int32_t onnx_free(onnx_import *x, const char *name, const onnx_array *known,
	const ir_type *t)
{
	int32_t v = ir_program_input(x->p,
		arena_printf(x->a, "in%d", x->p->input.n), *t, place(x));
	fact *f = onnx_fact(x, v);

	f->is_free = true;
	f->label = x->p->value.at[v].shown = name;
	f->data = known != NULL ? known->data : NULL;
	return v;
}

/*
 * A key of random numbers, which differs in each call: computed from the key of
 * the model, an input, and a running number.
 */
int32_t onnx_train_key(onnx_import *x)
{
	const ir_type scalar = {.dtype = TN_I64};
	int64_t *number = arena_array(x->a, int64_t, 1);
	int32_t arg[2];

	if (x->key < 0)
		x->key = onnx_free(x, "tenon.key", NULL, &scalar);
	*number = 1000003; /* so that successive keys differ in many bits */
	arg[0] = x->key;
	arg[1] = onnx_const(x, &scalar, number);
	arg[0] = onnx_call(x, "mul", 2, arg, 0, NULL);
	number = arena_array(x->a, int64_t, 1);
	*number = (int64_t)++x->n_random;
	arg[1] = onnx_const(x, &scalar, number);
	return onnx_call(x, "add", 2, arg, 0, NULL);
}

/* Can the elements be a fill in the program, instead of a bound array? */
static bool as_fill(const ir_type *t, const void *data, double *v)
{
	int64_t i;

	if (shape_numel(t->shape, t->rank) != 1)
		return false;
	if (dtype_is_float(t->dtype)) {
		*v = dtype_load_f64(t->dtype, data, 0);
		return true;
	}
	i = dtype_load_i64(t->dtype, data, 0);
	*v = (double)i;
	return i > -(INT64_C(1) << 53) && i < INT64_C(1) << 53;
}

int32_t onnx_const(onnx_import *x, const ir_type *t, const void *data)
{
	double value;
	int32_t v;
	fact *f;

	if (as_fill(t, data, &value)) {
		const ir_attr attr[] = {
			{.name = "shape", .kind = ATTR_INTS, .n = t->rank,
				.ints = t->shape},
			{.name = "value", .kind = ATTR_REAL, .f = value},
			{.name = "dtype", .kind = ATTR_DTYPE,
				.dtype = t->dtype}};

		v = onnx_call(x, "fill", 0, NULL, 3, attr);
	} else {
		v = ir_program_input(x->p,
			arena_printf(x->a, "in%d", x->p->input.n), *t,
			place(x));
		x->p->value.at[v].shown = NULL; /* until the model names it */
	}
	f = onnx_fact(x, v);
	f->is_const = true;
	f->data = data;
	return v;
}

int32_t onnx_call(onnx_import *x, const char *name, int32_t n,
	const int32_t *arg, int32_t n_attrs, const ir_attr *attr)
{
	bool is_const = true;
	const ir_call *c;
	int32_t number, level = 0;
	ir_attr *own;

	if (x->p->call.n >= MAX_CALLS)
		env_fail(x->e, TN_ENOMEM, "onnx.size", place(x),
			"the model would have more than %d calls", MAX_CALLS);
	own = arena_array(x->a, ir_attr, n_attrs + 1);
	for (int32_t i = 0; i < n_attrs; i++)
		own[i] = attr[i];
	number = ir_program_call(
		x->p, name, n, arg, n_attrs, own, NULL, place(x));
	c = &x->p->call.at[number];
	for (int32_t i = 0; i < n; i++)
		is_const = is_const && onnx_fact(x, arg[i])->is_const;
	for (int32_t i = 0; i < n; i++)
		if (onnx_fact(x, arg[i])->level > level)
			level = onnx_fact(x, arg[i])->level;
	for (int32_t i = 0; i < c->n_results; i++) {
		onnx_fact(x, c->result[i])->is_const = is_const;
		onnx_fact(x, c->result[i])->level = level;
	}
	return c->n_results > 0 ? c->result[0] : -1;
}

/* ---- evaluation ---- */

typedef struct job {
	onnx_import *x;
	const ir_call *c;
} job;

static void *host_alloc(onnx_import *x, arena *a, const ir_type *t)
{
	size_t n = ir_type_bytes(t);

	x->host_bytes += n;
	if (x->host_bytes > MAX_HOST_BYTES || x->host_bytes < n)
		env_fail(x->e, TN_ENOMEM, "onnx.size", place(x),
			"the values that decide shapes are larger than %zu MB",
			MAX_HOST_BYTES >> 20);
	return arena_alloc(a, n + 1, 1);
}

/*
 * Is each element of the call equal, because it has no operand and its value
 * has no letter? Sets *value. false: this is not known.
 */
static bool is_uniform(const ir_inst *inst, double *value)
{
	const in_node *b;

	if (inst->n_eqns != 1 || inst->n_tensors != 1 ||
		inst->eqn[0].monoid != IR_SET)
		return false;
	b = inst->eqn[0].body[0];
	while (b->kind == IN_CAST)
		b = b->arg[0];
	if (b->kind != IN_REAL && b->kind != IN_INT)
		return false;
	*value = b->kind == IN_REAL ? b->f : (double)b->i;
	return dtype_is_float(inst->tensor[0].type.dtype);
}

static void fill_with(const ir_type *t, char *data, double value)
{
	size_t n = ir_type_bytes(t), done = dtype_size(t->dtype);

	if (n == 0)
		return;
	dtype_store_f64(t->dtype, data, 0, value);
	for (; done < n; done *= 2)
		memcpy(data + done, data, done < n - done ? done : n - done);
}

static void check_points(const job *j)
{
	int64_t n = ir_inst_points(j->c->inst, MAX_HOST_POINTS);

	if (n > MAX_HOST_POINTS - j->x->host_points)
		env_fail(j->x->e, TN_ENOMEM, "onnx.size", place(j->x),
			"the values that decide shapes take more than 2^31 "
			"operations to compute");
	j->x->host_points += n;
}

static void evaluate(arena *scratch, void *arg)
{
	const job *j = arg;
	const ir_inst *inst = j->c->inst;
	void **tensor = arena_array(scratch, void *, inst->n_tensors + 1);
	double value;
	size_t kept;

	if (is_uniform(inst, &value)) {
		const ir_type *t = &inst->tensor[0].type;
		char *data = host_alloc(j->x, j->x->a, t);

		fill_with(t, data, value);
		onnx_fact(j->x, j->c->result[0])->data = data;
		return;
	}
	check_points(j);
	for (int32_t i = 0; i < inst->n_tensors; i++) {
		const in_tensor *t = &inst->tensor[i];

		if (t->operand >= 0)
			tensor[i] = (void *)(uintptr_t)onnx_fact(
				j->x, j->c->arg[t->operand])
					    ->data;
		else if (t->result >= 0)
			tensor[i] = host_alloc(j->x, j->x->a, &t->type);
	}
	kept = j->x->host_bytes;
	for (int32_t i = 0; i < inst->n_tensors; i++)
		if (inst->tensor[i].operand < 0 && inst->tensor[i].result < 0)
			tensor[i] = host_alloc(
				j->x, scratch, &inst->tensor[i].type);
	interp_inst(j->x->e, inst, tensor);
	j->x->host_bytes = kept;
	for (int32_t i = 0; i < inst->n_results; i++)
		onnx_fact(j->x, j->c->result[i])->data =
			tensor[inst->result[i]];
}

static _Noreturn void not_given(const onnx_import *x, const fact *f)
{
	env_fail(x->e, TN_EINVAL, "onnx.value", place(x),
		"a shape depends on the values of input \"%.200s\": they must "
		"be given before the model becomes a program",
		f->label != NULL ? f->label : "?");
}

/* Are the elements of v known? If not, pushes the values that they need. */
static bool is_ready(onnx_import *x, int32_t v)
{
	fact *f = onnx_fact(x, v);
	const ir_value *value = &x->p->value.at[v];
	const ir_call *c;
	bool ready = true;

	if (f->data != NULL) {
		f->is_pinned = f->is_free;
		return true;
	}
	if (value->call < 0)
		not_given(x, f);
	c = &x->p->call.at[value->call];
	for (int32_t i = 0; i < c->n_args; i++) {
		fact *g = onnx_fact(x, c->arg[i]);

		if (g->data == NULL) {
			*vec_push(x->a, &x->stack) = c->arg[i];
			ready = false;
		} else {
			g->is_pinned = g->is_free;
		}
	}
	if (ready) {
		job j = {x, c};

		arena_run(x->e, evaluate, &j);
	}
	return ready;
}

const void *onnx_host(onnx_import *x, int32_t v)
{
	if (onnx_fact(x, v)->level > 0)
		env_fail(x->e, TN_EINVAL, "onnx.round", place(x),
			"a shape depends on the round of a loop");
	if (x->path != NULL && !onnx_fact(x, v)->is_const)
		return x->decide(x, v);
	x->stack.n = 0;
	*vec_push(x->a, &x->stack) = v;
	while (x->stack.n > 0) {
		int32_t n = x->stack.n;

		if (is_ready(x, x->stack.at[n - 1]))
			x->stack.n = n - 1;
	}
	return onnx_fact(x, v)->data;
}

/* ---- the remaining program ---- */

/* "conv1/W:0" -> "conv1_W_0": a valid name in .tn, distinct from all others */
static const char *clean_name(
	arena *a, const map *taken, const char *label, int32_t number)
{
	size_t n = strlen(label) < 60 ? strlen(label) : 60;
	char *s = arena_printf(a, "_%.60s", label);
	bool digit = label[0] >= '0' && label[0] <= '9';
	/* keywords of the .tn language */
	static const char *const words[] = {
		"program", "op", "return", "inf", "nan", "true", "false",
		"param"};
	char *name = digit || n == 0 ? s : s + 1;
	bool is_word = false;

	for (char *c = name; *c != '\0'; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
			    (*c >= '0' && *c <= '9')))
			*c = '_';
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		is_word = is_word || !strcmp(name, words[i]);
	if (is_word || map_get_str(taken, name, -1) >= 0)
		return arena_printf(a, "%s_n%d", name, (int)number);
	return name;
}

typedef struct pruner {
	onnx_import *x;
	ir_program *p;
	int32_t *number; /* by value of x->p: its number in p, or -1 */
	map *taken;
} pruner;

static const char *name_of(pruner *q, int32_t v)
{
	const fact *f = onnx_fact(q->x, v);
	const char *name = clean_name(q->x->a, q->taken,
		f->label != NULL ? f->label : q->x->p->value.at[v].name, v);

	while (map_get_str(q->taken, name, -1) >= 0)
		name = arena_printf(q->x->a, "%s_", name);
	map_set_str(q->taken, name, 1);
	return name;
}

/* Is a result of the call read, and not bound? */
static bool is_needed(onnx_import *x, const ir_call *c)
{
	for (int32_t k = 0; k < c->n_results; k++) {
		const fact *f = onnx_fact(x, c->result[k]);

		if (f->is_live && !f->is_folded && !f->is_carried)
			return true;
	}
	return false;
}

static void mark_live(onnx_import *x, int32_t n_out, const int32_t *out)
{
	for (int32_t i = 0; i < x->p->value.n; i++)
		onnx_fact(x, i)->is_live = false;
	for (int32_t i = 0; i < n_out; i++)
		onnx_fact(x, out[i])->is_live = true;
	for (int32_t i = x->p->call.n - 1; i >= 0; i--) {
		const ir_call *c = &x->p->call.at[i];

		for (int32_t k = 0; k < c->n_args && is_needed(x, c); k++)
			onnx_fact(x, c->arg[k])->is_live = true;
	}
}

/*
 * Can the call be replaced by a constant? Only values that the model names
 * become parameters: not a weight that a builder has transposed, but the
 * weight.
 */
static bool is_foldable(onnx_import *x, const ir_call *c)
{
	const fact *f;

	if (c->n_results == 0)
		return true;
	f = onnx_fact(x, c->result[0]);
	return f->is_const && f->label != NULL;
}

/* The cost of computing a value: of its call and of its operands. */
typedef struct cost {
	int64_t points;
	size_t bytes;
} cost;

static cost cost_of(const onnx_import *x, const ir_call *c, const cost *of)
{
	cost sum = {0, 0};
	double value;

	if (!is_uniform(c->inst, &value))
		sum.points = ir_inst_points(c->inst, MAX_HOST_POINTS);
	for (int32_t k = 0; k < c->n_results; k++)
		sum.bytes += ir_type_bytes(&x->p->value.at[c->result[k]].type);
	for (int32_t k = 0; k < c->n_args; k++) {
		sum.points += of[c->arg[k]].points;
		sum.bytes += of[c->arg[k]].bytes;
	}
	if (sum.points > MAX_FOLD_POINTS)
		sum.points = MAX_FOLD_POINTS + 1;
	if (sum.bytes > MAX_FOLD_BYTES)
		sum.bytes = MAX_FOLD_BYTES + 1;
	return sum;
}

/* Costs by value; a call that two operands share counts twice. */
static const cost *find_costs(onnx_import *x)
{
	cost *of = arena_array(x->a, cost, x->p->value.n + 1);

	for (int32_t i = 0; i < x->p->call.n; i++) {
		const ir_call *c = &x->p->call.at[i];
		cost all = cost_of(x, c, of);

		for (int32_t k = 0; k < c->n_results; k++)
			if (onnx_fact(x, c->result[k])->data == NULL)
				of[c->result[k]] = all;
	}
	return of;
}

static bool is_cheap(const onnx_import *x, cost c)
{
	return x->host_points + c.points <= MAX_FOLD_POINTS &&
	       x->host_bytes + c.bytes <= MAX_FOLD_BYTES;
}

/*
 * Folds large values that do not depend on inputs of the model, but are read by
 * calls that do: computes them once, now, and makes them parameters. Values
 * that take long are left in the program, and are computed in each run.
 */
static void fold(onnx_import *x)
{
	const cost *of = find_costs(x);

	for (int32_t i = 0; i < x->p->call.n; i++) {
		const ir_call *c = &x->p->call.at[i];

		if (is_foldable(x, c) || !is_needed(x, c))
			continue;
		for (int32_t k = 0; k < c->n_args; k++) {
			int32_t v = c->arg[k];
			const ir_value *value = &x->p->value.at[v];

			if (!onnx_fact(x, v)->is_const || value->call < 0 ||
				onnx_fact(x, v)->label == NULL ||
				!dtype_is_float(value->type.dtype) ||
				shape_numel(value->type.shape,
					value->type.rank) < x->fold_from ||
				!is_cheap(x, of[v]))
				continue;
			onnx_host(x, v);
			onnx_fact(x, v)->is_folded = true;
		}
	}
}

static void add_call(pruner *q, const ir_call *c)
{
	arena *a = q->x->a;
	int32_t *arg = arena_array(a, int32_t, c->n_args + 1);
	const char **name = arena_array(a, const char *, c->n_results + 1);
	int32_t number;

	for (int32_t i = 0; i < c->n_args; i++)
		arg[i] = q->number[c->arg[i]];
	for (int32_t i = 0; i < c->n_results; i++)
		name[i] = name_of(q, c->result[i]);
	number = ir_program_inst(q->p, c->inst, c->n_args, arg, name, c->at);
	for (int32_t i = 0; i < c->n_results; i++)
		if (q->number[c->result[i]] < 0)
			q->number[c->result[i]] =
				q->p->call.at[number].result[i];
}

/* Arrays with room for all inputs that the program can have. */
typedef struct inputs {
	int32_t n;
	onnx_value *value;
	const void **bound;
	bool *pinned;
	int32_t *of;
} inputs;

static void add_input(pruner *q, inputs *in, int32_t v)
{
	const fact *f = onnx_fact(q->x, v);
	ir_type type = q->x->p->value.at[v].type;
	const char *name = name_of(q, v);

	q->number[v] = ir_program_input(q->p, name, type, place(q->x));
	in->value[in->n].name = f->label != NULL ? f->label : name;
	in->value[in->n].elem =
		f->elem != 0 ? f->elem : onnx_dtype_elem(type.dtype);
	in->of[in->n] = v;
	in->bound[in->n] = f->data;
	in->pinned[in->n++] =
		f->is_free && f->is_pinned && q->x->path == NULL;
}

/*
 * Adds all inputs of the caller first, used or not; then results of earlier
 * stages; then bound values.
 */
static void add_inputs(pruner *q, onnx_program *out)
{
	onnx_import *x = q->x;
	int32_t n = x->p->value.n;
	inputs in = {.value = arena_array(x->a, onnx_value, n + 1)};

	in.bound = arena_array(x->a, const void *, n + 1);
	in.pinned = arena_array(x->a, bool, n + 1);
	in.of = arena_array(x->a, int32_t, n + 1);
	for (int32_t v = 0; v < n; v++)
		if (onnx_fact(x, v)->is_free)
			add_input(q, &in, v);
	for (int32_t v = 0; v < n; v++)
		if (onnx_fact(x, v)->is_carried && onnx_fact(x, v)->is_live)
			add_input(q, &in, v);
	out->n_free = in.n;
	for (int32_t v = 0; v < n; v++) {
		const fact *f = onnx_fact(x, v);

		if (!f->is_free && !f->is_carried && f->is_live &&
			(f->is_folded || x->p->value.at[v].call < 0))
			add_input(q, &in, v);
	}
	out->input = in.value;
	out->bound = in.bound;
	out->pinned = in.pinned;
	out->of = in.of;
}

onnx_program onnx_prune(
	onnx_import *x, int32_t n_out, const int32_t *out, onnx_value *output)
{
	pruner q = {.x = x};
	onnx_program r = {.output = output};

	q.p = r.ir = ir_program_new(x->a, x->p->table);
	q.taken = map_new(x->a);
	q.number = arena_array(x->a, int32_t, x->p->value.n + 1);
	for (int32_t i = 0; i < x->p->value.n; i++)
		q.number[i] = -1;
	mark_live(x, n_out, out);
	if (x->fold_from > 0) {
		fold(x);
		mark_live(x, n_out, out);
	}
	add_inputs(&q, &r);
	for (int32_t i = 0; i < x->p->call.n; i++)
		if (is_needed(x, &x->p->call.at[i]))
			add_call(&q, &x->p->call.at[i]);
	for (int32_t i = 0; i < n_out; i++)
		ir_program_output(r.ir, q.number[out[i]]);
	return r;
}
