/*
 * head.c: changes the number of classes of a model.
 *
 *     ... -> Gemm(h, w [1000,512], b [1000]) -> Softmax -> y [N,1000]
 *     ... -> Gemm(h, w [10,512], b [10])     -> Softmax -> y [N,10]
 *
 * Walks back from the first output, over operators that keep the axis of
 * classes, to the last layer with weights. Its weights and bias are replaced by
 * new initialisers, drawn between +-1/sqrt(inputs of a class); constants of
 * Reshape that contain the number of classes, and the declared shape of the
 * output, are changed. Everything else is copied (save.c), and the result is
 * read as a new model.
 */
#include "onnx/head.h"

#include "base/random.h"

#include <math.h>

typedef enum part {
	PASSES, /* the classes of its result are those of its first input */
	SHAPES, /* the same, with the shape in its second input */
	BIAS,	/* a constant, one number for each class, is added */
	GEMM,
	MATMUL,
	CONV
} part;

static const struct {
	const char *op;
	part is;
} parts[] = {{"Softmax", PASSES}, {"LogSoftmax", PASSES},
	{"Sigmoid", PASSES}, {"Relu", PASSES}, {"Identity", PASSES},
	{"Dropout", PASSES}, {"Cast", PASSES}, {"Flatten", PASSES},
	{"Squeeze", PASSES}, {"Unsqueeze", PASSES},
	{"GlobalAveragePool", PASSES}, {"AveragePool", PASSES},
	{"GlobalMaxPool", PASSES}, {"MaxPool", PASSES},
	{"ReduceMean", PASSES}, {"Reshape", SHAPES}, {"Add", BIAS},
	{"Gemm", GEMM}, {"MatMul", MATMUL}, {"Conv", CONV}};

enum { MAX_NEW = 64 };

typedef struct head {
	arena *a;
	onnx_model *m;
	map *made_by; /* name -> node */
	map *init;    /* name -> initialiser */
	map *n_uses;  /* name -> number of nodes that read it */
	int64_t old, new;
	uint64_t seed;
	int32_t n;
	onnx_new out[MAX_NEW];
	const char *shape[MAX_NEW]; /* constants of Reshape after the layer */
	int32_t n_shapes;
	const char *bias;
} head;

static _Noreturn void refuse(const head *h, const char *what, const char *name)
{
	env_fail(arena_env(h->a), TN_EINVAL, "onnx.head",
		(loc){.file = h->m->file},
		"the number of classes cannot be changed: %s \"%.200s\"", what,
		name);
}

static void read_names(head *h)
{
	const onnx_graph *g = &h->m->graph;

	h->made_by = map_new(h->a);
	h->init = map_new(h->a);
	h->n_uses = map_new(h->a);
	for (int32_t i = 0; i < g->init.n; i++)
		map_set_str(h->init, g->init.at[i].name, i);
	for (int32_t i = 0; i < g->node.n; i++) {
		const onnx_node *n = &g->node.at[i];

		for (int32_t k = 0; k < n->out.n; k++)
			map_set_str(h->made_by, n->out.at[k], i);
		for (int32_t k = 0; k < n->in.n; k++)
			map_set_str(h->n_uses, n->in.at[k],
				map_get_str(h->n_uses, n->in.at[k], 0) + 1);
	}
}

static const onnx_node *maker(const head *h, const char *name)
{
	int64_t i = map_get_str(h->made_by, name, -1);

	return i < 0 ? NULL : &h->m->graph.node.at[i];
}

static int64_t int_attr(const onnx_node *n, const char *name, int64_t otherwise)
{
	for (int32_t i = 0; i < n->attr.n; i++)
		if (!strcmp(n->attr.at[i].name, name))
			return n->attr.at[i].i;
	return otherwise;
}

/* The elements of an initialiser, or NULL. */
static const onnx_array *constant(const head *h, const char *name)
{
	int64_t i = map_get_str(h->init, name, -1);
	onnx_array *x;

	if (i < 0)
		return NULL;
	x = arena_make(h->a, onnx_array);
	*x = onnx_tensor_array(
		h->a, h->m, h->m->file, &h->m->graph.init.at[i]);
	return x;
}

/*
 * The type of a weight: of an initialiser, or of a result of ConstantOfShape.
 */
static bool weight_type(const head *h, const char *name, ir_type *t)
{
	const onnx_array *x = constant(h, name), *shape;
	const onnx_node *n = maker(h, name);

	if (x != NULL) {
		*t = x->type;
		return true;
	}
	if (n == NULL || strcmp(n->op, "ConstantOfShape") != 0 || n->in.n < 1)
		return false;
	shape = constant(h, n->in.at[0]);
	if (shape == NULL || shape->type.dtype != TN_I64 ||
		shape->type.rank != 1 || shape->type.shape[0] > TN_MAX_RANK)
		return false;
	*t = (ir_type){.dtype = TN_F32, .rank = (int32_t)shape->type.shape[0]};
	for (int32_t i = 0; i < t->rank; i++)
		t->shape[i] = dtype_load_i64(TN_I64, shape->data, i);
	return shape_numel(t->shape, t->rank) > 0;
}

static void *replace(head *h, const char *name, const ir_type *t)
{
	int64_t n = shape_numel(t->shape, t->rank);
	void *data;

	if (h->n == MAX_NEW || n < 0 || n > INT64_C(1) << 31)
		refuse(h, "it is too large:", name);
	data = arena_alloc(h->a, (size_t)n + 1, dtype_size(t->dtype));
	h->out[h->n].name = name;
	h->out[h->n].array = (onnx_array){.type = *t, .data = data,
		.elem = onnx_dtype_elem(t->dtype)};
	h->n++;
	return data;
}

static void new_weight(head *h, const char *name, int32_t axis)
{
	ir_type t;
	void *data;
	int64_t n;
	double most;

	if (!weight_type(h, name, &t) || !dtype_is_float(t.dtype) ||
		axis >= t.rank || t.shape[axis] < 1)
		refuse(h, "the weights of the last layer are not a constant:",
			name);
	if (map_get_str(h->n_uses, name, 0) != 1)
		refuse(h, "another layer also uses the weights of the last "
			"layer:", name);
	h->old = t.shape[axis];
	t.shape[axis] = h->new;
	data = replace(h, name, &t);
	n = shape_numel(t.shape, t.rank);
	most = 1 / sqrt((double)n / (double)h->new);
	for (int64_t i = 0; i < n; i++)
		dtype_store_f64(t.dtype, data, i, most *
			(2 * (double)base_u01((int64_t)h->seed, i) - 1));
}

/*
 * Replaces a bias by zeros, one for each class. The axis of classes is the only
 * one whose extent is not 1.
 */
static void new_bias(head *h, const char *name)
{
	ir_type t;
	bool found = false;

	if (!weight_type(h, name, &t) || !dtype_is_float(t.dtype) ||
		map_get_str(h->n_uses, name, 0) != 1)
		refuse(h, "the bias of the last layer is not a constant of "
			"its own:", name);
	if (shape_numel(t.shape, t.rank) == 1)
		return; /* one number for all classes */
	for (int32_t i = 0; i < t.rank; i++)
		if (t.shape[i] == h->old && !found) {
			t.shape[i] = h->new;
			found = true;
		}
	if (!found || shape_numel(t.shape, t.rank) != h->new)
		refuse(h, "the bias of the last layer does not have one "
			"number for each class:", name);
	replace(h, name, &t);
}

static void new_shape(head *h, const char *name)
{
	const onnx_array *x = constant(h, name);
	int64_t n, *data;
	bool says = false;

	if (x == NULL || x->type.dtype != TN_I64)
		/*
		 * computed by the model: it follows by itself, or building
		 * fails
		 */
		return;
	n = shape_numel(x->type.shape, x->type.rank);
	for (int64_t i = 0; i < n; i++)
		says = says || dtype_load_i64(TN_I64, x->data, i) == h->old;
	if (!says)
		return;
	if (map_get_str(h->n_uses, name, 0) != 1)
		refuse(h, "a shape is also used elsewhere:", name);
	data = replace(h, name, &x->type);
	for (int64_t i = 0; i < n; i++) {
		data[i] = dtype_load_i64(TN_I64, x->data, i);
		if (data[i] == h->old)
			data[i] = h->new;
	}
}

/* Goes back by one operator; NULL: the operator was the layer. */
static const char *step(head *h, const char *name)
{
	const onnx_node *n = maker(h, name);
	size_t i = 0, n_parts = sizeof parts / sizeof *parts;
	ir_type t;
	bool second;

	while (n != NULL && i < n_parts && strcmp(parts[i].op, n->op) != 0)
		i++;
	if (n == NULL || i == n_parts || n->in.n < 1 ||
		(parts[i].is >= BIAS && n->in.n < 2))
		refuse(h, "there is no layer with weights before", name);
	switch (parts[i].is) {
	case PASSES:
		return n->in.at[0];
	case SHAPES:
		if (n->in.n > 1 && h->n_shapes < MAX_NEW)
			h->shape[h->n_shapes++] = n->in.at[1];
		return n->in.at[0];
	case BIAS:
		second = weight_type(h, n->in.at[1], &t);
		if (h->bias != NULL || (!second &&
			!weight_type(h, n->in.at[0], &t)))
			refuse(h, "a sum is not a bias:", name);
		h->bias = n->in.at[second];
		return n->in.at[!second];
	case GEMM:
		new_weight(h, n->in.at[1],
			int_attr(n, "transB", 0) != 0 ? 0 : 1);
		break;
	case MATMUL:
		if (!weight_type(h, n->in.at[1], &t) || t.rank != 2)
			refuse(h, "the weights of the last layer are not a "
				"matrix:", n->in.at[1]);
		new_weight(h, n->in.at[1], 1);
		break;
	case CONV:
		if (int_attr(n, "group", 1) != 1)
			refuse(h, "the last layer has groups:", name);
		new_weight(h, n->in.at[1], 0);
		break;
	}
	if (n->in.n > 2 && n->in.at[2][0] != '\0')
		new_bias(h, n->in.at[2]);
	return NULL;
}

onnx_model *onnx_classes(arena *a, onnx_model *m, int64_t n, uint64_t seed)
{
	head h = {.a = a, .m = m, .new = n, .seed = seed};
	const char *name;
	onnx_resize r = {.new = n};
	onnx_bytes bytes;

	if (n < 2 || n > 1 << 24)
		refuse(&h, "at least 2 classes are needed, not", "1");
	if (m->graph.out.n < 1)
		refuse(&h, "there is no output", "");
	for (int32_t i = 0; i < m->graph.out.n; i++)
		if (m->graph.out.at[i].type.kind != ONNX_TENSOR)
			refuse(&h, "an output is not a tensor:",
				m->graph.out.at[i].name);
	read_names(&h);
	name = m->graph.out.at[0].name;
	for (int32_t i = 0; name != NULL; i++) {
		if (i > m->graph.node.n)
			refuse(&h, "the nodes depend on each other in a cycle "
				"at", name);
		name = step(&h, name);
	}
	if (h.bias != NULL)
		new_bias(&h, h.bias);
	for (int32_t i = 0; i < h.n_shapes; i++)
		new_shape(&h, h.shape[i]);
	r.old = h.old;
	bytes = onnx_resized(a, m, h.n, h.out, &r);
	return onnx_parse(a, m->file, m->folder, bytes.at, bytes.n);
}
