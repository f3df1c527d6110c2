/*
 * save.c: writes a model with new parameters.
 *
 *     initialiser w, new elements      the same tensor with the new elements
 *     node ConstantOfShape -> w        an initialiser w replaces the node
 *
 * Everything else is copied byte by byte from the mapped file, including
 * unknown fields; external data is embedded. The new file is renamed into its
 * name when it is complete.
 */
#include "onnx/head.h"
#include "onnx/put.h"

#include "file/disk.h"

#define MAX_BYTES ((size_t)INT32_MAX) /* of a protobuf message */

/* The bytes to write, in pieces; most of them point into the mapped file. */
typedef struct pieces {
	VEC(disk_part) part;
	size_t n_bytes;
} pieces;

typedef struct saver {
	arena *a;
	onnx_model *m;
	const onnx_new *new;
	int32_t n_new;
	map *number; /* name -> index in `new` */
	bool *used;
	onnx_resize *resize; /* NULL: shapes do not change */
	pieces out;
} saver;

static _Noreturn void fail(const saver *s, const char *rule, const char *fmt,
	const char *name)
{
	env_fail(arena_env(s->a), TN_EINVAL, rule, (loc){.file = s->m->file},
		"parameter \"%.200s\": %s", name, fmt);
}

/* ---- writing ---- */

static void add(saver *s, pieces *to, const void *data, size_t n)
{
	*vec_push(s->a, &to->part) = (disk_part){data, n};
	to->n_bytes += n;
	if (to->n_bytes > MAX_BYTES)
		env_fail(arena_env(s->a), TN_ENOMEM, "onnx.size",
			(loc){.file = s->m->file},
			"a model file cannot be larger than 2 GB");
}

/* Adds field `field` of a message: a TensorProto with raw elements. */
static void add_tensor(saver *s, uint32_t field, const char *name, int32_t elem,
	int32_t rank, const int64_t *shape, onnx_bytes data)
{
	str body = str_new(s->a), head = str_new(s->a);

	for (int32_t i = 0; i < rank; i++)
		put_int(&body, 1, shape[i]);
	put_int(&body, 2, elem);
	put_text(&body, 8, name);
	put_head(&body, 9, data.n);
	put_head(&head, field, body.n + data.n);
	add(s, &s->out, head.at, head.n);
	add(s, &s->out, body.at, body.n);
	add(s, &s->out, data.at, data.n);
}

/* ---- new parameters ---- */

static const onnx_new *new_of(saver *s, const char *name)
{
	int64_t i = map_get_str(s->number, name, -1);

	if (i < 0)
		return NULL;
	s->used[i] = true;
	return &s->new[i];
}

static void add_new(saver *s, const onnx_new *n, int32_t elem)
{
	const ir_type *t = &n->array.type;

	add_tensor(s, 5, n->name, elem, t->rank, t->shape, onnx_packed(s->a, &n->array.type, n->array.data));
}

/*
 * Checks that a new parameter has the old shape and an element type that is
 * held without conversion.
 */
static void check_same(saver *s, const onnx_new *n, const onnx_tensor *old)
{
	const ir_type *t = &n->array.type;
	tn_dtype held;
	bool same = onnx_elem_dtype(old->elem, &held) && held == t->dtype &&
		onnx_dtype_elem(held) == old->elem && t->rank == old->rank;

	for (int32_t i = 0; i < t->rank && same; i++)
		same = t->shape[i] == old->shape[i];
	if (!same)
		fail(s, "onnx.shape", "the model declares another type or "
				      "shape for it", n->name);
}

static void add_initialiser(saver *s, onnx_bytes whole, onnx_bytes message)
{
	onnx_reader r = {s->a, s->m->file, 0};
	const onnx_new *n;
	onnx_tensor t;

	onnx_read_tensor(&r, message, &t);
	n = new_of(s, t.name);
	if (n != NULL) {
		if (s->resize == NULL)
			check_same(s, n, &t);
		add_new(s, n, t.elem);
	} else if (t.is_external) {
		add_tensor(s, 5, t.name, t.elem, t.rank, t.shape,
			onnx_external(s->a, s->m, s->m->file, &t));
	} else {
		add(s, &s->out, whole.at, whole.n);
	}
}

/* Before IR version 4 each initialiser is an input, too. */
static void add_port(saver *s, const onnx_new *n)
{
	const ir_type *t = &n->array.type;
	str port = str_new(s->a);

	put_port(&port, 11, n->name, onnx_dtype_elem(t->dtype), t->rank,
		t->shape);
	add(s, &s->out, port.at, port.n);
}

/* Copies a node, unless its only result is replaced by a parameter. */
static void add_node(saver *s, onnx_bytes whole, onnx_bytes message)
{
	wire w = wire_of(s->a, s->m->file, message);
	const onnx_new *found = NULL;
	const char *name = "";
	int32_t n_out = 0;
	wire_field f;

	while (wire_next(&w, &f))
		if (f.number == 2) {
			const onnx_new *n;

			name = wire_text(&w, &f);
			n = new_of(s, name);
			found = n != NULL ? n : found;
			n_out++;
		}
	if (found == NULL) {
		add(s, &s->out, whole.at, whole.n);
		return;
	}
	if (n_out != 1)
		fail(s, "onnx.graph", "the node that makes it also makes "
				      "other values", found->name);
	add_new(s, found, onnx_dtype_elem(found->array.type.dtype));
	if (s->m->ir_version < 4)
		add_port(s, found);
}

/* A ValueInfoProto of the output, field 12. */
static void put_resized(str *to, const onnx_port *p, const onnx_resize *r)
{
	str dims = str_new(to->a), tensor = str_new(to->a);
	str type = str_new(to->a), port = str_new(to->a);

	for (int32_t i = 0; i < p->type.rank; i++) {
		str dim = str_new(to->a);
		int64_t n = p->type.dim[i];

		if (n >= 0)
			put_int(&dim, 1, r->n_written == 1 && n == r->old
						 ? r->new : n);
		else if (p->type.dim_name[i] != NULL)
			put_text(&dim, 2, p->type.dim_name[i]);
		put_part(&dims, 1, &dim);
	}
	put_int(&tensor, 1, p->type.elem);
	if (p->type.has_shape)
		put_part(&tensor, 2, &dims);
	put_part(&type, 1, &tensor);
	put_text(&port, 1, p->name);
	if (p->type.elem > 0)
		put_part(&port, 2, &type);
	put_part(to, 12, &port);
}

/* Copies an output, or an input that is an initialiser, with its new shape. */
static void add_resized(saver *s, uint32_t field, onnx_bytes whole,
	onnx_bytes message)
{
	wire w = wire_of(s->a, s->m->file, message);
	const onnx_new *n = NULL;
	wire_field f;

	while (wire_next(&w, &f))
		if (f.number == 1)
			n = new_of(s, wire_text(&w, &f));
	if (n != NULL) {
		add_port(s, n);
	} else if (field == 12) {
		const onnx_port *p =
			&s->m->graph.out.at[s->resize->n_written++];
		str port = str_new(s->a);

		put_resized(&port, p, s->resize);
		add(s, &s->out, port.at, port.n);
	} else {
		add(s, &s->out, whole.at, whole.n);
	}
}

/* ---- the file ---- */

static void add_graph(saver *s, onnx_bytes graph)
{
	wire w = wire_of(s->a, s->m->file, graph);
	const uint8_t *from = w.at;
	wire_field f;

	for (; wire_next(&w, &f); from = w.at) {
		onnx_bytes whole = {from, (size_t)(w.at - from)};

		if (f.number == 1)
			add_node(s, whole, wire_bytes(&w, &f));
		else if (f.number == 5)
			add_initialiser(s, whole, wire_bytes(&w, &f));
		else if (s->resize != NULL &&
			(f.number == 11 || f.number == 12))
			add_resized(s, f.number, whole, wire_bytes(&w, &f));
		else if (s->resize == NULL || f.number != 13)
			add(s, &s->out, whole.at, whole.n);
	}
}

/* The bytes of the whole model, in pieces. */
static pieces assemble(saver *s)
{
	wire w = wire_of(s->a, s->m->file, s->m->bytes);
	const uint8_t *from = w.at;
	pieces all = {0};
	wire_field f;

	s->number = map_new(s->a);
	s->used = arena_array(s->a, bool, s->n_new + 1);
	for (int32_t i = 0; i < s->n_new; i++)
		map_set_str(s->number, s->new[i].name, i);
	for (; wire_next(&w, &f); from = w.at) {
		str head = str_new(s->a);

		if (f.number != 7) {
			add(s, &all, from, (size_t)(w.at - from));
			continue;
		}
		s->out = (pieces){0};
		add_graph(s, wire_bytes(&w, &f));
		put_head(&head, 7, s->out.n_bytes);
		add(s, &all, head.at, head.n);
		for (int32_t i = 0; i < s->out.part.n; i++)
			add(s, &all, s->out.part.at[i].data,
				s->out.part.at[i].n_bytes);
	}
	for (int32_t i = 0; i < s->n_new; i++)
		if (!s->used[i])
			fail(s, "onnx.undefined", "the model has no "
				"initialiser or node of this name",
				s->new[i].name);
	return all;
}

void onnx_save(arena *a, onnx_model *m, const char *path, int32_t n,
	const onnx_new *new)
{
	saver s = {.a = a, .m = m, .new = new, .n_new = n};
	pieces all = assemble(&s);

	disk_replace(a, "onnx", path, all.part.at, all.part.n);
}

onnx_bytes onnx_resized(arena *a, onnx_model *m, int32_t n,
	const onnx_new *new, onnx_resize *resize)
{
	saver s = {.a = a, .m = m, .new = new, .n_new = n, .resize = resize};
	pieces all = assemble(&s);
	uint8_t *bytes = arena_alloc(a, all.n_bytes + 1, 1), *to = bytes;

	for (int32_t i = 0; i < all.part.n; i++) {
		memcpy(to, all.part.at[i].data, all.part.at[i].n_bytes);
		to += all.part.at[i].n_bytes;
	}
	return (onnx_bytes){bytes, all.n_bytes};
}
