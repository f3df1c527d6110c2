/*
 * export.c: writes a program as an ONNX model of opset 20.
 *
 *     y = reduce_sum(x, axes=[1])  ->  node ReduceSum(x, [1]) keepdims=0
 *
 * The table gives for a row the equivalent operator, and for each attribute of
 * the row an attribute of the operator, or an input of integers. A row or an
 * attribute that is not in the table is refused. Bound inputs become
 * initialisers.
 */
#include "onnx/export.h"
#include "onnx/put.h"

#include "file/disk.h"
#include "interp/interp.h"

enum { OPSET = 20, IR_VERSION = 9, MAX_ATTRS = 6, MAX_VALUE = 1 << 20 };

typedef enum place {
	AS_INT,
	AS_REAL,
	AS_INTS,
	AS_WINDOW, /* ints, one for each spatial axis */
	AS_LO,	   /* the same, as the first half of pads */
	AS_HI,	   /* the same, as the second half */
	AS_DTYPE,
	AS_INPUT,  /* ints, as one more input */
	AS_AXES,   /* the same; to ONNX an empty list means all axes */
	AS_ONLY	   /* not written: the value must be `otherwise` */
} place;

typedef struct attr_map {
	const char *row, *onnx;
	place at;
	bool always; /* if the call does not give it, `otherwise` is written */
	double otherwise;
} attr_map;

typedef struct op_map {
	const char *row, *op;
	attr_map attr[MAX_ATTRS];
	int32_t rank; /* of the first operand; 0: any */
	/* the operator has its two inputs in the opposite order */
	bool turned;
	bool floats; /* the operator takes floats only: i32 goes through f64 */
} op_map;

#define OP(row_, op_) {.row = (row_), .op = (op_)}
#define OPA(row_, op_, ...)                                                  \
	{                                                                    \
		.row = (row_), .op = (op_), .attr = { __VA_ARGS__ }          \
	}
/* an attribute; an attribute that is always written */
#define TO(row_, onnx_, at_) {.row = (row_), .onnx = (onnx_), .at = (at_)}
#define ALWAYS(row_, onnx_, at_, v) {(row_), (onnx_), (at_), true, (v)}
#define REDUCE                                                               \
	ALWAYS("keep", "keepdims", AS_INT, 0), TO("axes", "", AS_AXES)
#define AXIS(v) ALWAYS("axis", "axis", AS_INT, v)
#define ALPHA(v) ALWAYS("alpha", "alpha", AS_REAL, v)
#define EPSILON ALWAYS("eps", "epsilon", AS_REAL, 1e-5)
#define WINDOWS                                                              \
	TO("stride", "strides", AS_WINDOW), TO("dil", "dilations", AS_WINDOW), \
		ALWAYS("lo", "pads", AS_LO, 0), ALWAYS("hi", "pads", AS_HI, 0)

static const op_map table[] = {
	OP("add", "Add"), OP("sub", "Sub"), OP("mul", "Mul"),
	OP("div", "Div"), OP("pow", "Pow"), OP("max", "Max"),
	OP("min", "Min"), OP("eq", "Equal"), OP("lt", "Less"),
	OP("le", "LessOrEqual"), OP("gt", "Greater"),
	OP("ge", "GreaterOrEqual"), OP("and", "And"), OP("or", "Or"),
	OP("xor", "Xor"), OP("not", "Not"), OP("where", "Where"),
	OP("identity", "Identity"), OP("copy", "Identity"),
	OP("stop_gradient", "Identity"), OP("abs", "Abs"), OP("neg", "Neg"),
	OP("exp", "Exp"), OP("log", "Log"), OP("sqrt", "Sqrt"),
	OP("recip", "Reciprocal"), OP("sin", "Sin"), OP("cos", "Cos"),
	OP("tan", "Tan"), OP("asin", "Asin"), OP("acos", "Acos"),
	OP("atan", "Atan"), OP("sinh", "Sinh"), OP("cosh", "Cosh"),
	OP("tanh", "Tanh"), OP("asinh", "Asinh"), OP("acosh", "Acosh"),
	OP("atanh", "Atanh"), OP("floor", "Floor"), OP("ceil", "Ceil"),
	OP("round", "Round"), OP("sign", "Sign"), OP("erf", "Erf"),
	OP("isnan", "IsNaN"), OP("sigmoid", "Sigmoid"), OP("relu", "Relu"),
	OP("softplus", "Softplus"), OP("softsign", "Softsign"),
	OP("gelu", "Gelu"), OP("mish", "Mish"), OP("hard_swish", "HardSwish"),
	OP("selu", "Selu"), OP("matmul", "MatMul"), OP("matvec", "MatMul"),
	OP("dot", "MatMul"),
	OPA("elu", "Elu", ALPHA(1)), OPA("celu", "Celu", ALPHA(1)),
	OPA("leaky_relu", "LeakyRelu", ALPHA(0.01)),
	OPA("thresholded_relu", "ThresholdedRelu", ALPHA(1)),
	OPA("hard_sigmoid", "HardSigmoid", ALPHA(0.2),
		ALWAYS("beta", "beta", AS_REAL, 0.5)),
	OPA("cast", "Cast", TO("to", "to", AS_DTYPE)),
	OPA("reduce_sum", "ReduceSum", REDUCE),
	OPA("reduce_prod", "ReduceProd", REDUCE),
	OPA("reduce_max", "ReduceMax", REDUCE),
	OPA("reduce_min", "ReduceMin", REDUCE),
	OPA("reduce_mean", "ReduceMean", REDUCE),
	OPA("reduce_l1", "ReduceL1", REDUCE),
	OPA("reduce_l2", "ReduceL2", REDUCE),
	OPA("reduce_sumsq", "ReduceSumSquare", REDUCE),
	OPA("reduce_logsum", "ReduceLogSum", REDUCE),
	OPA("logsumexp", "ReduceLogSumExp", REDUCE),
	OPA("argmax", "ArgMax", AXIS(0), ALWAYS("keep", "keepdims", AS_INT, 0)),
	OPA("argmin", "ArgMin", AXIS(0), ALWAYS("keep", "keepdims", AS_INT, 0)),
	OPA("softmax", "Softmax", AXIS(-1)),
	OPA("log_softmax", "LogSoftmax", AXIS(-1)),
	OPA("concat", "Concat", AXIS(0)),
	OPA("reshape", "Reshape", TO("shape", "", AS_INPUT),
		ALWAYS("", "allowzero", AS_INT, 1)),
	OPA("broadcast_to", "Expand", TO("shape", "", AS_INPUT)),
	OPA("tile", "Tile", TO("reps", "", AS_INPUT)),
	OPA("transpose", "Transpose", TO("perm", "perm", AS_INTS)),
	OPA("flatten", "Flatten", AXIS(1)),
	OPA("squeeze", "Squeeze", TO("axes", "", AS_INPUT)),
	OPA("unsqueeze", "Unsqueeze", ALWAYS("axis", "", AS_INPUT, 0)),
	OPA("take", "Gather", AXIS(0)),
	OPA("take_along", "GatherElements", AXIS(0)),
	{.row = "embedding", .op = "Gather", .turned = true},
	{.row = "linear", .op = "Gemm", .rank = 2,
		.attr = {ALWAYS("", "transB", AS_INT, 1)}},
	{.row = "linear_nobias", .op = "Gemm", .rank = 2,
		.attr = {ALWAYS("", "transB", AS_INT, 1)}},
	{.row = "conv", .op = "Conv", .floats = true,
		.attr = {TO("groups", "group", AS_INT), WINDOWS}},
	OPA("max_pool", "MaxPool", TO("kernel", "kernel_shape", AS_WINDOW),
		WINDOWS),
	OPA("avg_pool", "AveragePool", TO("kernel", "kernel_shape", AS_WINDOW),
		WINDOWS),
	OPA("avg_pool_padded", "AveragePool",
		TO("kernel", "kernel_shape", AS_WINDOW), WINDOWS,
		ALWAYS("", "count_include_pad", AS_INT, 1)),
	{.row = "conv_transpose", .op = "ConvTranspose", .floats = true,
		.attr = {TO("groups", "group", AS_INT), WINDOWS}},
	OPA("local_response_norm", "LRN", TO("size", "size", AS_INT),
		ALWAYS("alpha", "alpha", AS_REAL, 1e-4),
		ALWAYS("beta", "beta", AS_REAL, 0.75),
		ALWAYS("bias", "bias", AS_REAL, 1)),
	OP("isinf", "IsInf"), OP("bit_and", "BitwiseAnd"),
	OP("bit_or", "BitwiseOr"), OP("bit_xor", "BitwiseXor"),
	OP("bit_not", "BitwiseNot"),
	OPA("layer_norm", "LayerNormalization", EPSILON,
		{"k", "", AS_ONLY, false, 1}),
	OPA("batch_norm_infer", "BatchNormalization", EPSILON),
	OPA("instance_norm", "InstanceNormalization", EPSILON),
};

/*
 * The entry of the table for the call; NULL: no single operator is equivalent.
 */
static const op_map *find(const exporter *x)
{
	const char *name = ir_row_name(x->call->row);
	const ir_call *c = x->call;

	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const op_map *m = &table[i];

		if (!strcmp(m->row, name) && c->n_results == 1 &&
			(m->rank == 0 || x->p->value.at[c->arg[0]].type.rank ==
						 m->rank))
			return m;
	}
	return NULL;
}

/* ---- initialisers ---- */

static const char *add_ints(exporter *x, int32_t n, const int64_t *v)
{
	const ir_type t = {.dtype = TN_I64, .rank = 1, .shape = {n}};

	return export_const(x, &t, v);
}

/* A call without operands is a constant: the interpreter computes it. */
static void add_value(exporter *x)
{
	const ir_inst *inst = x->call->inst;
	void **tensor = arena_array(x->a, void *, inst->n_tensors + 1);

	for (int32_t i = 0; i < inst->n_tensors; i++) {
		const ir_type *t = &inst->tensor[i].type;
		int64_t n = shape_numel(t->shape, t->rank);

		if (n > MAX_VALUE)
			export_refuse(x, "export.size",
				"it has more than 2^20 elements", "");
		tensor[i] = arena_alloc(
			x->a, (size_t)n + 1, dtype_size(t->dtype));
	}
	interp_inst(arena_env(x->a), inst, tensor);
	for (int32_t i = 0; i < inst->n_results; i++)
		export_tensor(x, export_name(x, x->call->result[i]),
			&inst->tensor[inst->result[i]].type,
			tensor[inst->result[i]]);
}

/* ---- attributes ---- */

/*
 * The integers of an attribute; if n is not 0, a single one is repeated n
 * times.
 */
static int32_t ints_of(const exporter *x, const attr_map *m, const ir_attr *a,
	int32_t n, int64_t *out)
{
	int32_t k = n > 0 ? n : 1;

	if (n > TN_MAX_RANK || n < 0)
		export_refuse(x, "export.attr", "ONNX needs axes here", m->row);
	if (a == NULL || a->kind == ATTR_INT) {
		for (int32_t i = 0; i < k; i++)
			out[i] = a != NULL ? a->i : (int64_t)m->otherwise;
		return k;
	}
	if (a->kind != ATTR_INTS || a->n > TN_MAX_RANK || (n > 0 && a->n != n))
		export_refuse(x, "export.attr", "there is not one integer for "
			"each axis",
			a->name);
	for (int32_t i = 0; i < a->n; i++)
		out[i] = a->ints[i];
	return a->n;
}

static int32_t n_windows(const exporter *x)
{
	int32_t n = x->p->value.at[x->call->arg[0]].type.rank - 2;

	if (n < 1)
		export_refuse(x, "export.row", "ONNX has sliding windows only "
					       "for inputs with at least 3 "
					       "axes", "");
	for (int32_t i = 0; i < x->call->n_args; i++) {
		const ir_type *t = &x->p->value.at[x->call->arg[i]].type;

		if (shape_numel(t->shape, t->rank) == 0)
			export_refuse(x, "export.row",
				"ONNX has no sliding windows without elements",
				"");
	}
	return n;
}

static void add_attr(exporter *x, const attr_map *m, const ir_attr *a)
{
	int64_t v[TN_MAX_RANK] = {0};
	int32_t n;

	switch (m->at) {
	case AS_INT:
		ints_of(x, m, a, 0, v);
		export_attr_int(x, m->onnx, v[0]);
		return;
	case AS_REAL:
		export_attr_real(x, m->onnx, a == NULL ? m->otherwise
			: a->kind == ATTR_INT ? (double)a->i : a->f);
		return;
	case AS_INTS:
		n = ints_of(x, m, a, 0, v);
		export_attr_ints(x, m->onnx, n, v);
		return;
	case AS_WINDOW:
		n = ints_of(x, m, a, n_windows(x), v);
		for (int32_t i = 0; i < n; i++)
			if (v[i] < 1)
				export_refuse(x, "export.attr",
					"a number is less than 1", m->row);
		export_attr_ints(x, m->onnx, n, v);
		return;
	case AS_LO:
		n = ints_of(x, m, a, n_windows(x), v);
		memcpy(x->pads, v, (size_t)n * sizeof *v);
		return;
	case AS_HI:
		n = ints_of(x, m, a, n_windows(x), v);
		memcpy(x->pads + n, v, (size_t)n * sizeof *v);
		export_attr_ints(x, m->onnx, 2 * n, x->pads);
		return;
	case AS_DTYPE:
		export_attr_int(x, m->onnx, onnx_dtype_elem(a->dtype));
		return;
	case AS_INPUT:
	case AS_AXES:
		n = ints_of(x, m, a, 0, v);
		if (n == 0 && m->at == AS_AXES)
			export_refuse(x, "export.attr", "in ONNX an empty "
				"list of axes means all axes", a->name);
		put_text(&x->node, 1, add_ints(x, n, v));
		return;
	case AS_ONLY:
		ints_of(x, m, a, 0, v);
		if (v[0] != (int64_t)m->otherwise)
			export_refuse(x, "export.attr", "ONNX has this value only "
						 "as its default", a->name);
		return;
	}
}

static void check_attrs(const exporter *x, const op_map *m)
{
	for (int32_t i = 0; i < x->call->n_attrs; i++) {
		bool known = false;

		for (int32_t k = 0; k < MAX_ATTRS && m->attr[k].row != NULL; k++)
			known = known ||
				!strcmp(m->attr[k].row, x->call->attr[i].name);
		if (!known)
			export_refuse(x, "export.attr", "the ONNX operator "
				"has no attribute for it",
				x->call->attr[i].name);
	}
}

/* ---- loops ---- */

static void add_call(exporter *x);
static void add_port(exporter *x, uint32_t field, const char *name,
	const ir_type *t);
static void add_outputs(exporter *x);

/*
 * Names in the graph of a body: what is the same in every round has its name
 * outside; others must differ from all names there.
 */
static const char **names_of(exporter *x, const ir_loop *l)
{
	const ir_program *p = l->body;
	const char **name = arena_array(x->a, const char *, p->value.n + 1);
	int32_t number = x->n_made++, first = l->n_carried + l->n_rows;

	for (int32_t v = 0; v < p->value.n; v++)
		name[v] = arena_printf(x->a, "loop.%d.%s", (int)number,
			p->value.at[v].name);
	for (int32_t i = first; i < p->input.n; i++)
		name[p->input.at[i]] = export_name(x, x->call->arg[i]);
	return name;
}

static str body_of(exporter *x, const ir_loop *l)
{
	exporter body = *x;

	body.p = l->body;
	body.name = names_of(x, l);
	body.n_made = x->n_made;
	body.graph = str_new(x->a);
	for (int32_t i = 0; i < l->body->call.n; i++) {
		body.call = &l->body->call.at[i];
		add_call(&body);
	}
	put_text(&body.graph, 2, "body");
	for (int32_t i = 0; i < l->n_carried + l->n_rows; i++) {
		int32_t v = l->body->input.at[i];

		add_port(&body, 11, body.name[v], &l->body->value.at[v].type);
	}
	if (l->n_rows == 0)
		add_port(&body, 11, arena_printf(x->a, "round.%d",
			(int)body.n_made), &(ir_type){.dtype = TN_I64});
	add_outputs(&body);
	x->n_made = body.n_made;
	return body.graph;
}

/* Scan; it needs rows, so a loop without any gets zeros. */
static void add_loop(exporter *x)
{
	const ir_call *c = x->call;
	const ir_loop *l = ir_loop_of(c->inst);
	const ir_type none = {.dtype = TN_I64, .rank = 1, .shape = {l->n}};
	str attr = str_new(x->a), body = body_of(x, l);

	x->node = str_new(x->a);
	for (int32_t i = 0; i < l->n_carried + l->n_rows; i++)
		put_text(&x->node, 1, export_name(x, c->arg[i]));
	if (l->n_rows == 0)
		put_text(&x->node, 1, export_const(x, &none,
			arena_alloc(x->a, ir_type_bytes(&none), 1)));
	for (int32_t i = 0; i < c->n_results; i++)
		put_text(&x->node, 2, export_name(x, c->result[i]));
	put_text(&x->node, 4, "Scan");
	export_attr_int(x, "num_scan_inputs", l->n_rows > 0 ? l->n_rows : 1);
	put_text(&attr, 1, "body");
	put_part(&attr, 6, &body);
	put_int(&attr, 20, 5);
	put_part(&x->node, 5, &attr);
	put_part(&x->graph, 1, &x->node);
}

/* ---- nodes ---- */

static void add_cast(exporter *x, const char *from, const char *to, tn_dtype t)
{
	x->node = str_new(x->a);
	put_text(&x->node, 1, from);
	put_text(&x->node, 2, to);
	put_text(&x->node, 4, "Cast");
	export_attr_int(x, "to", onnx_dtype_elem(t));
	put_part(&x->graph, 1, &x->node);
}

/* A name that no value of a program has. */
static const char *made_name(exporter *x)
{
	return arena_printf(x->a, "made.%d", (int)x->n_made++);
}

/*
 * Names of the operands; of i32 for an operator that takes floats only, which is
 * exact in f64, those of casts.
 */
static const char **operand_names(exporter *x, const op_map *m)
{
	const ir_call *c = x->call;
	const char **name = arena_array(x->a, const char *, c->n_args + 1);

	for (int32_t i = 0; i < c->n_args; i++) {
		tn_dtype t = x->p->value.at[c->arg[i]].type.dtype;

		name[i] = export_name(x, c->arg[i]);
		if (!m->floats || dtype_is_float(t))
			continue;
		if (t != TN_I32)
			export_refuse(x, "export.dtype", "ONNX has the operator "
				"for floats only, and for i32 through f64; the "
				"operand is", dtype_name(t));
		name[i] = made_name(x);
		add_cast(x, export_name(x, c->arg[i]), name[i], TN_F64);
	}
	return name;
}

/* One operator of ONNX. */
static void add_node(exporter *x, const op_map *m)
{
	const ir_call *c = x->call;
	const char **in = operand_names(x, m), *out;
	const char *result = export_name(x, c->result[0]);
	bool cast = m->floats &&
		!dtype_is_float(x->p->value.at[c->result[0]].type.dtype);

	out = cast ? made_name(x) : result;
	x->node = str_new(x->a);
	for (int32_t i = 0; i < c->n_args; i++)
		put_text(&x->node, 1, in[m->turned ? c->n_args - 1 - i : i]);
	for (int32_t i = 0; i < MAX_ATTRS && m->attr[i].row != NULL; i++) {
		const ir_attr *a = export_attr(x, m->attr[i].row);

		if (a != NULL || m->attr[i].always)
			add_attr(x, &m->attr[i], a);
	}
	put_text(&x->node, 2, out);
	put_text(&x->node, 4, m->op);
	put_part(&x->graph, 1, &x->node);
	if (cast)
		add_cast(x, out, result, TN_I32);
}

static void add_call(exporter *x)
{
	const ir_call *c = x->call;
	const op_map *m;

	if (c->view >= 0)
		export_refuse(x, "export.row", "a graph of ONNX cannot "
					"contain writes to its values", "");
	if (c->n_args == 0) {
		add_value(x);
		return;
	}
	if (ir_loop_of(c->inst) != NULL) {
		add_loop(x);
		return;
	}
	m = find(x);
	if (m == NULL) {
		const char *text = export_text_of(x);

		if (text == NULL)
			export_refuse(x, "export.row",
				"ONNX has no operator for it", "");
		export_run_text(x, text);
		return;
	}
	check_attrs(x, m);
	add_node(x, m);
}

static void add_port(exporter *x, uint32_t field, const char *name,
	const ir_type *t)
{
	put_port(&x->graph, field, name, onnx_dtype_elem(t->dtype), t->rank,
		t->shape);
}

/*
 * Adds the outputs. An output that is an input, or that occurs twice, is copied
 * under another name.
 */
static void add_outputs(exporter *x)
{
	for (int32_t i = 0; i < x->p->output.n; i++) {
		int32_t v = x->p->output.at[i];
		const char *name = export_name(x, v);
		bool again = x->p->value.at[v].call < 0;

		for (int32_t k = 0; k < i; k++)
			again = again || x->p->output.at[k] == v;
		if (again) {
			str node = str_new(x->a);

			put_text(&node, 1, name);
			name = arena_printf(x->a, "%s.%d", name, (int)i);
			put_text(&node, 2, name);
			put_text(&node, 4, "Identity");
			put_part(&x->graph, 1, &node);
		}
		add_port(x, 12, name, &x->p->value.at[v].type);
	}
}

/* Opset 20 moves elements of a byte and less, and casts some; it does not compute
 * with them. */
static void check_types(arena *a, const ir_program *p)
{
	for (int32_t i = 0; i < p->value.n; i++) {
		const ir_value *v = &p->value.at[i];
		tn_dtype t = v->type.dtype;

		if (dtype_wide(t) != t && dtype_bits(t) <= 8)
			env_fail(arena_env(a), TN_EINVAL, "export.dtype", v->at,
				"%.100s has elements of type %s; the operators "
				"of opset %d compute with %s at least",
				v->name, dtype_name(t), (int)OPSET,
				dtype_name(dtype_wide(t)));
	}
}

void onnx_export(arena *a, const ir_program *p, int32_t n_free,
	const void *const *bound, const char *path)
{
	exporter x = {.a = a, .p = p, .path = path, .graph = str_new(a)};
	str model = str_new(a), opset = str_new(a);
	disk_part part;

	check_types(a, p);
	for (int32_t i = 0; i < p->call.n; i++) {
		x.call = &p->call.at[i];
		add_call(&x);
	}
	put_text(&x.graph, 2, "program");
	for (int32_t i = 0; i < p->input.n; i++) {
		const ir_value *v = &p->value.at[p->input.at[i]];

		if (i < n_free)
			add_port(&x, 11, v->name, &v->type);
		else
			export_tensor(&x, v->name, &v->type, bound[i]);
	}
	add_outputs(&x);
	put_int(&model, 1, IR_VERSION);
	put_text(&model, 2, "tenon");
	put_part(&model, 7, &x.graph);
	put_text(&opset, 1, "");
	put_int(&opset, 2, OPSET);
	put_part(&model, 8, &opset);
	if (model.n > (size_t)INT32_MAX)
		env_fail(arena_env(a), TN_ENOMEM, "onnx.size",
			(loc){.file = path},
			"a model file cannot be larger than 2 GB");
	part = (disk_part){model.at, model.n};
	disk_replace(a, "onnx", path, &part, 1);
}
