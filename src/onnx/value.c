/*
 * value.c: reads files with one value each (.pb), as in test data.
 *
 *     tensor(float)        TensorProto      one array
 *     seq(tensor(float))   SequenceProto    any number
 *     optional(...)        OptionalProto    none or one, or those of a sequence
 */
#include "onnx/model.h"

typedef struct values {
	onnx_reader r;
	onnx_strings *strings; /* NULL: values are not of a model */
	VEC(onnx_array) v;
} values;

static void read_value(values *x, onnx_bytes b, const onnx_type *type);

/* Adds a tensor. NumPy has no bfloat16, so test data has its bits as uint16. */
static void add_tensor(values *x, onnx_bytes b, const onnx_type *type)
{
	enum { UINT16 = 4, BFLOAT16 = 16 };
	onnx_tensor t;

	onnx_read_tensor(&x->r, b, &t);
	if (t.elem == UINT16 && type->elem == BFLOAT16)
		t.elem = BFLOAT16;
	*vec_push(x->r.a, &x->v) =
		onnx_value_array(x->r.a, x->strings, x->r.file, &t);
}

/*
 * Reads the parts of a sequence or optional; in both messages fields 3 and 5
 * are tensors and sequences.
 */
static void read_parts(values *x, onnx_bytes b, const onnx_type *of)
{
	wire w = wire_of(x->r.a, x->r.file, b);
	wire_field f;

	while (wire_next(&w, &f)) {
		if (f.number == 3 && of != NULL && of->kind == ONNX_TENSOR)
			add_tensor(x, wire_bytes(&w, &f), of);
		else if (f.number == 5 && of != NULL)
			read_value(x, wire_bytes(&w, &f), of);
		else if (f.number >= 3)
			env_fail(arena_env(x->r.a), TN_EINVAL, "onnx.value",
				(loc){.file = x->r.file},
				"its type or shape is not what the model "
				"declares");
	}
}

static void read_value(values *x, onnx_bytes b, const onnx_type *type)
{
	if (++x->r.depth > ONNX_MAX_DEPTH || type == NULL ||
		type->kind == ONNX_OTHER)
		env_fail(arena_env(x->r.a), TN_EINVAL, "onnx.value",
			(loc){.file = x->r.file},
			"values of this type are not supported");
	if (type->kind == ONNX_TENSOR)
		add_tensor(x, b, type);
	else
		read_parts(x, b, type->of);
	x->r.depth--;
}

const onnx_array *onnx_parse_value(arena *a, onnx_model *m, const char *name,
	const void *bytes, size_t n_bytes, const onnx_type *type, int32_t *n)
{
	values x = {.r = {a, name, 0},
		.strings = m != NULL ? m->strings : NULL};

	read_value(&x, (onnx_bytes){bytes, n_bytes}, type);
	*n = x.v.n;
	return x.v.at;
}

const onnx_array *onnx_read_value(arena *a, onnx_model *m, const char *path,
	const onnx_type *type, int32_t *n)
{
	onnx_bytes b = onnx_map_file(a, path);

	return onnx_parse_value(a, m, arena_strdup(a, path), b.at, b.n, type, n);
}

/* ---- models ---- */

static bool is_init(const map *names, const char *name)
{
	return map_get_str(names, name, 0) != 0;
}

onnx_model *onnx_parse(arena *a, const char *name, const char *folder,
	const void *bytes, size_t n)
{
	onnx_model *m = arena_make(a, onnx_model);
	map *init = map_new(a);

	m->a = a;
	m->file = arena_strdup(a, name);
	m->folder = folder != NULL ? arena_strdup(a, folder) : NULL;
	m->files = map_new(a);
	m->held = map_new(a);
	m->strings = onnx_strings_new(a);
	m->bytes = (onnx_bytes){bytes, n};
	onnx_read_model(m, m->bytes);
	for (int32_t i = 0; i < m->graph.init.n; i++)
		map_set_str(init, m->graph.init.at[i].name, 1);
	for (int32_t i = 0; i < m->graph.in.n; i++)
		if (!is_init(init, m->graph.in.at[i].name))
			*vec_push(a, &m->input) = m->graph.in.at[i];
	return m;
}

onnx_model *onnx_open(arena *a, const char *path)
{
	onnx_bytes b = onnx_map_file(a, path);
	const char *slash = strrchr(path, '/');
	const char *folder = ".";

	if (slash == path)
		folder = "/";
	else if (slash != NULL)
		folder = arena_strndup(a, path, (size_t)(slash - path));
	return onnx_parse(a, path, folder, b.at, b.n);
}

int32_t onnx_model_string(onnx_model *m, const void *text, size_t n_bytes)
{
	return onnx_string(m->strings, m->file, (onnx_bytes){text, n_bytes});
}

bool onnx_is_string(int32_t elem)
{
	return elem == ONNX_STRING;
}

int32_t onnx_n_strings(const onnx_model *m)
{
	return onnx_string_n(m->strings);
}

const char *onnx_text_of(const onnx_model *m, int32_t number, int64_t *n_bytes)
{
	onnx_bytes b = onnx_string_at(m->strings, number);

	*n_bytes = (int64_t)b.n;
	return (const char *)b.at;
}

int32_t onnx_n_inputs(const onnx_model *m)
{
	return m->input.n;
}

int32_t onnx_n_outputs(const onnx_model *m)
{
	return m->graph.out.n;
}

const onnx_port *onnx_input(const onnx_model *m, int32_t i)
{
	return &m->input.at[i];
}

const onnx_port *onnx_output(const onnx_model *m, int32_t i)
{
	return &m->graph.out.at[i];
}

bool onnx_port_dtype(const onnx_port *p, tn_dtype *out)
{
	return onnx_elem_dtype(p->type.elem, out);
}

void onnx_type_print(str *out, const onnx_type *t)
{
	if (t->kind == ONNX_OTHER) {
		str_add(out, "unsupported");
	} else if (t->kind != ONNX_TENSOR) {
		str_add(out, t->kind == ONNX_SEQUENCE ? "seq(" : "optional(");
		onnx_type_print(out, t->of);
		str_addc(out, ')');
	} else {
		str_printf(out, "tensor(%s)", onnx_elem_name(t->elem));
		if (!t->has_shape)
			return;
		str_addc(out, '[');
		for (int32_t i = 0; i < t->rank; i++) {
			str_add(out, i > 0 ? "," : "");
			if (t->dim[i] >= 0)
				str_printf(out, "%lld", (long long)t->dim[i]);
			else
				str_add(out, t->dim_name[i] != NULL
						? t->dim_name[i]
						: "?");
		}
		str_addc(out, ']');
	}
}
