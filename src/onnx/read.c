/*
 * read.c: reads the messages of onnx.proto3, field by field, from untrusted
 * bytes.
 *
 *     bytes  ->  onnx_model { graph { node, init, in, out }, function, opset }
 *
 * Unknown fields are skipped. The only recursion is graph -> node -> attribute
 * -> graph and type -> type, bounded by ONNX_MAX_DEPTH. Field numbers are those
 * of onnx.proto3, IR version 8; they never change.
 */
#include "onnx/model.h"

typedef onnx_reader reader;

static _Noreturn void bad(const reader *r, const char *rule, const char *what)
{
	env_fail(arena_env(r->a), TN_EINVAL, rule, (loc){.file = r->file}, "%s",
		what);
}

static reader deeper(const reader *r)
{
	reader x = *r;

	if (++x.depth > ONNX_MAX_DEPTH)
		bad(r, "onnx.depth", "graphs or types are nested more than 32 "
				     "deep");
	return x;
}

/* ---- TensorProto ---- */

/* StringStringEntryProto of external_data */
static void read_external(const reader *r, onnx_bytes b, onnx_tensor *t)
{
	wire w = wire_of(r->a, r->file, b);
	const char *key = "", *value = "";
	wire_field f;
	int64_t v = 0;

	while (wire_next(&w, &f)) {
		if (f.number == 1)
			key = wire_text(&w, &f);
		else if (f.number == 2)
			value = wire_text(&w, &f);
	}
	if (!strcmp(key, "location")) {
		t->location = value;
		return;
	}
	if (strcmp(key, "offset") != 0 && strcmp(key, "length") != 0)
		return;
	for (const char *s = value; s == value || *s != '\0'; s++)
		if (*s < '0' || *s > '9' || !mul_ok(v, 10, &v) ||
			!add_ok(v, *s - '0', &v))
			bad(r, "onnx.external", "the offset or length of "
						"external data is not a number");
	*(key[0] == 'o' ? &t->offset : &t->length) = v;
}

static void set_shape(const reader *r, onnx_tensor *t, const wire_ints *dims)
{
	if (dims->v.n > TN_MAX_RANK)
		bad(r, "onnx.rank", "a tensor has more than 8 axes");
	t->rank = dims->v.n;
	for (int32_t i = 0; i < t->rank; i++)
		t->shape[i] = dims->v.at[i];
	if (shape_numel(t->shape, t->rank) < 0)
		env_fail(arena_env(r->a), TN_EINVAL, "onnx.size",
			(loc){.file = r->file},
			"tensor \"%.200s\" has a negative extent, or more than "
			"2^48 elements",
			t->name);
}

void onnx_read_tensor(const onnx_reader *r, onnx_bytes b, onnx_tensor *t)
{
	wire w = wire_of(r->a, r->file, b);
	wire_ints dims = {0};
	wire_field f;

	*t = (onnx_tensor){.name = "", .message = b, .length = -1};
	while (wire_next(&w, &f))
		switch (f.number) {
		case 1:
			wire_add_ints(&w, &f, &dims);
			break;
		case 2:
			t->elem = wire_int32(&w, &f);
			break;
		case 8:
			t->name = wire_text(&w, &f);
			break;
		case 9:
			t->raw = wire_bytes(&w, &f);
			t->has_raw = true;
			break;
		case 13:
			read_external(r, wire_bytes(&w, &f), t);
			break;
		case 14:
			t->is_external = wire_int(&w, &f) == 1;
			break;
		}
	set_shape(r, t, &dims);
}

/* ---- TypeProto, ValueInfoProto ---- */

static void read_dim(const reader *r, onnx_bytes b, onnx_type *t, int32_t i)
{
	wire w = wire_of(r->a, r->file, b);
	wire_field f;

	t->dim[i] = -1;
	while (wire_next(&w, &f)) {
		if (f.number == 1)
			t->dim[i] = wire_int(&w, &f);
		else if (f.number == 2)
			t->dim_name[i] = wire_text(&w, &f);
	}
	if (t->dim[i] < 0)
		t->dim[i] = -1;
}

static void read_shape(const reader *r, onnx_bytes b, onnx_type *t)
{
	wire w = wire_of(r->a, r->file, b);
	wire_field f;

	t->has_shape = true;
	t->rank = 0;
	while (wire_next(&w, &f)) {
		if (f.number != 1)
			continue;
		if (t->rank == TN_MAX_RANK)
			bad(r, "onnx.rank", "a tensor has more than 8 axes");
		read_dim(r, wire_bytes(&w, &f), t, t->rank);
		t->rank++;
	}
}

static void read_type(const reader *r, onnx_bytes b, onnx_type *t);

/* TypeProto.Tensor and .Sequence and .Optional: elem_type is field 1 */
static void read_tensor_type(const reader *r, onnx_bytes b, onnx_type *t)
{
	wire w = wire_of(r->a, r->file, b);
	wire_field f;

	t->kind = ONNX_TENSOR;
	while (wire_next(&w, &f)) {
		if (f.number == 1)
			t->elem = wire_int32(&w, &f);
		else if (f.number == 2)
			read_shape(r, wire_bytes(&w, &f), t);
	}
}

static void read_list_type(
	const reader *r, onnx_bytes b, onnx_type *t, onnx_kind kind)
{
	wire w = wire_of(r->a, r->file, b);
	onnx_type *of = arena_make(r->a, onnx_type);
	wire_field f;

	t->kind = kind;
	t->of = of;
	of->kind = ONNX_OTHER;
	while (wire_next(&w, &f))
		if (f.number == 1)
			read_type(r, wire_bytes(&w, &f), of);
}

static void read_type(const reader *r, onnx_bytes b, onnx_type *t)
{
	reader x = deeper(r);
	wire w = wire_of(r->a, r->file, b);
	wire_field f;

	t->kind = ONNX_OTHER;
	while (wire_next(&w, &f)) {
		if (f.number == 1)
			read_tensor_type(&x, wire_bytes(&w, &f), t);
		else if (f.number == 4)
			read_list_type(&x, wire_bytes(&w, &f), t,
				ONNX_SEQUENCE);
		else if (f.number == 9)
			read_list_type(&x, wire_bytes(&w, &f), t,
				ONNX_OPTIONAL);
	}
}

static void read_port(const reader *r, onnx_bytes b, onnx_port *p)
{
	wire w = wire_of(r->a, r->file, b);
	wire_field f;

	*p = (onnx_port){.name = "", .type = {.kind = ONNX_OTHER}};
	while (wire_next(&w, &f)) {
		if (f.number == 1)
			p->name = wire_text(&w, &f);
		else if (f.number == 2)
			read_type(r, wire_bytes(&w, &f), &p->type);
	}
}

/* ---- AttributeProto, NodeProto ---- */

static void read_graph(const reader *r, onnx_bytes b, onnx_graph *g);

/*
 * AttributeProto.AttributeType; up to 4, its numbers are those of
 * onnx_attr_type
 */
static onnx_attr_type type_of(int32_t number)
{
	static const onnx_attr_type types[] = {ONNX_ATTR_NONE, ONNX_ATTR_FLOAT,
		ONNX_ATTR_INT, ONNX_ATTR_STRING, ONNX_ATTR_TENSOR,
		ONNX_ATTR_GRAPH, ONNX_ATTR_FLOATS, ONNX_ATTR_INTS,
		ONNX_ATTR_STRINGS};

	return number >= 0 && number < (int32_t)(sizeof types / sizeof *types)
		? types[number]
		: ONNX_ATTR_OTHER;
}

static void read_attr_field(
	const reader *r, const wire *w, const wire_field *f, onnx_attr *x)
{
	onnx_tensor *t;
	onnx_graph *g;

	switch (f->number) {
	case 1:
		x->name = wire_text(w, f);
		break;
	case 2:
		x->f = wire_float(w, f);
		break;
	case 3:
		x->i = wire_int(w, f);
		break;
	case 4:
		/*
		 * bytes, which need not be text; the builder checks whether
		 * they are
		 */
		x->s = wire_text(w, f);
		break;
	case 5:
		t = arena_make(r->a, onnx_tensor);
		onnx_read_tensor(r, wire_bytes(w, f), t);
		x->t = t;
		break;
	case 6:
		g = arena_make(r->a, onnx_graph);
		read_graph(r, wire_bytes(w, f), g);
		x->g = g;
		break;
	case 7:
		wire_add_floats(w, f, &x->floats);
		break;
	case 8:
		wire_add_ints(w, f, &x->ints);
		break;
	case 9:
		*vec_push(r->a, &x->strings) = wire_text(w, f);
		break;
	case 20:
		x->type = type_of(wire_int32(w, f));
		break;
	case 21:
		x->ref = wire_text(w, f);
		break;
	}
}

/* Files of IR version 1 and 2 may leave the type out. */
static void guess_type(onnx_attr *x)
{
	if (x->type != ONNX_ATTR_NONE || x->ref != NULL)
		return;
	if (x->s != NULL)
		x->type = ONNX_ATTR_STRING;
	else if (x->t != NULL)
		x->type = ONNX_ATTR_TENSOR;
	else if (x->g != NULL)
		x->type = ONNX_ATTR_GRAPH;
	else if (x->floats.v.n > 0)
		x->type = ONNX_ATTR_FLOATS;
	else if (x->ints.v.n > 0)
		x->type = ONNX_ATTR_INTS;
	else if (x->strings.n > 0)
		x->type = ONNX_ATTR_STRINGS;
	else
		x->type = x->f != 0 ? ONNX_ATTR_FLOAT : ONNX_ATTR_INT;
}

static void read_attr(const reader *r, onnx_bytes b, onnx_attr *x)
{
	wire w = wire_of(r->a, r->file, b);
	wire_field f;

	*x = (onnx_attr){.name = ""};
	while (wire_next(&w, &f))
		read_attr_field(r, &w, &f, x);
	guess_type(x);
	if (x->s == NULL)
		x->s = "";
	if ((x->type == ONNX_ATTR_TENSOR && x->t == NULL) ||
		(x->type == ONNX_ATTR_GRAPH && x->g == NULL))
		bad(r, "onnx.attr", "an attribute has a type, but no value");
}

static void read_node(const reader *r, onnx_bytes b, onnx_node *n)
{
	wire w = wire_of(r->a, r->file, b);
	wire_field f;

	*n = (onnx_node){.name = "", .op = "", .domain = ""};
	while (wire_next(&w, &f))
		switch (f.number) {
		case 1:
			*vec_push(r->a, &n->in) = wire_text(&w, &f);
			break;
		case 2:
			*vec_push(r->a, &n->out) = wire_text(&w, &f);
			break;
		case 3:
			n->name = wire_text(&w, &f);
			break;
		case 4:
			n->op = wire_text(&w, &f);
			break;
		case 5:
			read_attr(r, wire_bytes(&w, &f),
				vec_push(r->a, &n->attr));
			break;
		case 7:
			n->domain = wire_text(&w, &f);
			break;
		}
	if (!strcmp(n->domain, "ai.onnx"))
		n->domain = "";
}

/* ---- GraphProto, FunctionProto, ModelProto ---- */

static void order_graph(const reader *r, onnx_graph *g)
{
	map *given = map_new(r->a);

	for (int32_t i = 0; i < g->in.n; i++)
		map_set_str(given, g->in.at[i].name, 1);
	for (int32_t i = 0; i < g->init.n; i++)
		map_set_str(given, g->init.at[i].name, 1);
	onnx_order(r->a, r->file, given, g->node.n, g->node.at);
}

static void read_graph(const reader *r, onnx_bytes b, onnx_graph *g)
{
	reader x = deeper(r);
	wire w = wire_of(r->a, r->file, b);
	wire_field f;

	*g = (onnx_graph){.name = ""};
	while (wire_next(&w, &f))
		switch (f.number) {
		case 1:
			read_node(&x, wire_bytes(&w, &f),
				vec_push(r->a, &g->node));
			break;
		case 2:
			g->name = wire_text(&w, &f);
			break;
		case 5:
			onnx_read_tensor(&x, wire_bytes(&w, &f),
				vec_push(r->a, &g->init));
			break;
		case 11:
			read_port(&x, wire_bytes(&w, &f),
				vec_push(r->a, &g->in));
			break;
		case 12:
			read_port(&x, wire_bytes(&w, &f),
				vec_push(r->a, &g->out));
			break;
		case 15:
			bad(r, "onnx.sparse",
				"sparse initialisers are not supported");
		}
	order_graph(r, g);
}

static void read_opset(const reader *r, onnx_bytes b, onnx_opset *o)
{
	wire w = wire_of(r->a, r->file, b);
	wire_field f;

	*o = (onnx_opset){.domain = ""};
	while (wire_next(&w, &f)) {
		if (f.number == 1)
			o->domain = wire_text(&w, &f);
		else if (f.number == 2)
			o->version = wire_int(&w, &f);
	}
	if (!strcmp(o->domain, "ai.onnx"))
		o->domain = "";
}

static void read_function(const reader *r, onnx_bytes b, onnx_function *x)
{
	wire w = wire_of(r->a, r->file, b);
	wire_field f;
	map *given;

	*x = (onnx_function){.name = "", .domain = ""};
	while (wire_next(&w, &f))
		switch (f.number) {
		case 1:
			x->name = wire_text(&w, &f);
			break;
		case 4:
			*vec_push(r->a, &x->in) = wire_text(&w, &f);
			break;
		case 5:
			*vec_push(r->a, &x->out) = wire_text(&w, &f);
			break;
		case 7:
			read_node(r, wire_bytes(&w, &f),
				vec_push(r->a, &x->node));
			break;
		case 9:
			read_opset(r, wire_bytes(&w, &f),
				vec_push(r->a, &x->opset));
			break;
		case 10:
			x->domain = wire_text(&w, &f);
			break;
		case 11:
			read_attr(r, wire_bytes(&w, &f),
				vec_push(r->a, &x->attr));
			break;
		}
	given = map_new(r->a);
	for (int32_t i = 0; i < x->in.n; i++)
		map_set_str(given, x->in.at[i], 1);
	onnx_order(r->a, r->file, given, x->node.n, x->node.at);
}

void onnx_read_model(onnx_model *m, onnx_bytes b)
{
	reader r = {m->a, m->file, 0};
	wire w = wire_of(m->a, m->file, b);
	bool has_graph = false;
	wire_field f;

	m->producer = "";
	while (wire_next(&w, &f))
		switch (f.number) {
		case 1:
			m->ir_version = wire_int(&w, &f);
			break;
		case 2:
			m->producer = wire_text(&w, &f);
			break;
		case 7:
			read_graph(&r, wire_bytes(&w, &f), &m->graph);
			has_graph = true;
			break;
		case 8:
			read_opset(&r, wire_bytes(&w, &f),
				vec_push(m->a, &m->opset));
			break;
		case 25:
			read_function(&r, wire_bytes(&w, &f),
				vec_push(m->a, &m->function));
			break;
		}
	if (!has_graph)
		bad(&r, "onnx.model", "the file has no graph, so it is not an "
				      "ONNX model");
}
