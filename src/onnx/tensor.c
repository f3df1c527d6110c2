/*
 * tensor.c: reads the elements of tensors of a model: in place if they are
 * aligned, else as copies.
 *
 *     raw_data            the elements, little endian
 *     float_data ...      numbers of the schema, narrowed to the element type
 *     external data       a part of a file in the model's folder
 *
 * The size of the elements is compared with the shape before memory is
 * allocated. The rows of dtype.def say which types there are.
 */
#define _XOPEN_SOURCE 700 /* realpath */
#include "onnx/model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct elem {
	int32_t number;
	const char *name;
	bool held; /* without conversion, as dtype */
	tn_dtype dtype;
	uint32_t bits;	/* in a file, packed */
	uint32_t field; /* field of TensorProto if the data is not raw */
} elems[] = {
#define DTYPE(id, name, class, bits, wide, acc, lanes, npy, safetensors, dlpack,    \
	number, elem, field)                                                   \
	{number, elem, true, TN_##id, bits, field},
#include "base/dtype.def"
#undef DTYPE
	{ONNX_STRING, "string", true, TN_I32, 0, 6}, /* strings.h */
	{14, "complex64", false, TN_U8, 64, 4},
	{15, "complex128", false, TN_U8, 128, 10},
};
enum { N_ELEMS = (int)(sizeof elems / sizeof elems[0]) };

static const struct elem *find(int32_t elem)
{
	for (int32_t i = 0; i < N_ELEMS; i++)
		if (elems[i].number == elem)
			return &elems[i];
	return NULL;
}

bool onnx_elem_dtype(int32_t elem, tn_dtype *out)
{
	const struct elem *x = find(elem);

	if (x == NULL || !x->held)
		return false;
	*out = x->dtype;
	return true;
}

int32_t onnx_dtype_elem(tn_dtype t)
{
	for (int32_t i = 0; i < N_ELEMS; i++)
		if (elems[i].held && elems[i].dtype == t)
			return elems[i].number;
	return 0;
}

const char *onnx_elem_name(int32_t elem)
{
	const struct elem *x = find(elem);

	return x != NULL ? x->name : "undefined";
}

/* ---- one tensor ---- */

typedef struct job {
	arena *a;
	onnx_model *m;
	onnx_strings *strings;
	const char *file;
	const onnx_tensor *t;
	const struct elem *elem;
	int64_t n;
} job;

static _Noreturn void fail(const job *j, const char *rule, const char *what)
{
	env_fail(arena_env(j->a), TN_EINVAL, rule, (loc){.file = j->file},
		"tensor \"%.200s\": %s", j->t->name, what);
}

static void want_count(const job *j, int64_t n)
{
	if (n != j->n)
		env_fail(arena_env(j->a), TN_EINVAL, "onnx.size",
			(loc){.file = j->file},
			"tensor \"%.200s\" has %lld elements, but its shape "
			"has %lld",
			j->t->name, (long long)n, (long long)j->n);
}

/* Bytes of n elements in a file; at most 2^48 elements have at most 128 bits. */
static int64_t packed_bytes(const struct elem *x, int64_t n)
{
	return (n * x->bits + 7) / 8;
}

/* Elements of fewer bits than a byte: the first is in the low bits. */
static const void *unpacked(const job *j, const uint8_t *at)
{
	int32_t bits = (int32_t)j->elem->bits, each = 8 / bits;
	uint8_t *out = arena_alloc(j->a, (size_t)j->n + 1, 1);

	for (int64_t i = 0; i < j->n; i++)
		dtype_store_i64(TN_U8, out, i,
			at[i / each] >> i % each * bits &
				((1 << bits) - 1));
	if (dtype_is_int(j->elem->dtype)) /* with its sign */
		for (int64_t i = 0; i < j->n; i++)
			dtype_store_i64(j->elem->dtype, out, i, out[i]);
	return out;
}

onnx_bytes onnx_packed(arena *a, const ir_type *t, const void *data)
{
	int64_t n = shape_numel(t->shape, t->rank);
	int32_t bits = dtype_bits(t->dtype), each = 8 / (bits < 8 ? bits : 8);
	const uint8_t *from = data;
	uint8_t *out;

	if (bits >= 8)
		return (onnx_bytes){data, ir_type_bytes(t)};
	out = arena_alloc(a, (size_t)(n / each) + 1, 1);
	memset(out, 0, (size_t)(n / each) + 1);
	for (int64_t i = 0; i < n; i++)
		out[i / each] |= (uint8_t)((from[i] & ((1 << bits) - 1))
					   << i % each * bits);
	return (onnx_bytes){out, (size_t)((n + each - 1) / each)};
}

/* In place, if they are aligned. */
static const void *from_raw(const job *j, onnx_bytes b)
{
	const struct elem *x = j->elem;
	size_t size = dtype_size(x->dtype);
	char *out;

	if (x->bits < 8) {
		if ((int64_t)b.n != packed_bytes(x, j->n))
			env_fail(arena_env(j->a), TN_EINVAL, "onnx.size",
				(loc){.file = j->file},
				"tensor \"%.200s\" has %zu bytes, but %lld "
				"elements of %s need %lld",
				j->t->name, b.n, (long long)j->n, x->name,
				(long long)packed_bytes(x, j->n));
		return unpacked(j, b.at);
	}
	if (b.n % size != 0)
		fail(j, "onnx.size", "its bytes are not a whole number of "
			"elements");
	want_count(j, (int64_t)(b.n / size));
	if (x->dtype != TN_BOOL && (uintptr_t)b.at % size == 0)
		return b.at;
	out = arena_alloc(j->a, (size_t)j->n + 1, size);
	if (x->dtype != TN_BOOL) {
		memcpy(out, b.at, b.n);
		return out;
	}
	for (int64_t i = 0; i < j->n; i++)
		out[i] = b.at[i] != 0;
	return out;
}

/* Each integer is a byte of packed elements. */
static const void *from_packed(const job *j, const wire_ints *from)
{
	uint8_t *bytes;

	if (from->v.n != packed_bytes(j->elem, j->n))
		want_count(j, from->v.n * 8 / (int64_t)j->elem->bits);
	bytes = arena_alloc(j->a, (size_t)from->v.n + 1, 1);
	for (int64_t i = 0; i < from->v.n; i++) {
		if (from->v.at[i] < -128 || from->v.at[i] > 255)
			fail(j, "onnx.range", "a value does not fit its type");
		bytes[i] = (uint8_t)from->v.at[i];
	}
	return unpacked(j, bytes);
}

/* int32_data holds the bits of floats, and all small integers. */
static const void *from_ints(const job *j, const wire_ints *from)
{
	tn_dtype t = j->elem->dtype;
	char *out;

	if (j->elem->bits < 8)
		return from_packed(j, from);
	want_count(j, from->v.n); /* before memory is allocated */
	out = arena_alloc(j->a, (size_t)j->n + 1, dtype_size(t));
	for (int64_t i = 0; i < j->n; i++) {
		int64_t v = from->v.at[i];

		if (dtype_is_float(t)) {
			dtype_store_i64(dtype_size(t) == 1 ? TN_U8 : TN_U16,
				out, i, v);
			continue;
		}
		if (ir_wrap(t, v) != v)
			fail(j, "onnx.range", "a value does not fit its type");
		dtype_store_i64(t, out, i, v);
	}
	return out;
}

static const void *from_fields(const job *j)
{
	wire w = wire_of(j->a, j->file, j->t->message);
	wire_ints ints = {0};
	wire_floats floats = {0};
	wire_doubles doubles = {0};
	wire_field f;

	while (wire_next(&w, &f)) {
		if (f.number != j->elem->field)
			continue;
		if (f.number == 4)
			wire_add_floats(&w, &f, &floats);
		else if (f.number == 10)
			wire_add_doubles(&w, &f, &doubles);
		else
			wire_add_ints(&w, &f, &ints);
	}
	if (j->elem->field == 4) {
		want_count(j, floats.v.n);
		return floats.v.n > 0 ? (const void *)floats.v.at
				      : arena_alloc(j->a, 1, 8);
	}
	if (j->elem->field == 10) {
		want_count(j, doubles.v.n);
		return doubles.v.n > 0 ? (const void *)doubles.v.at
				       : arena_alloc(j->a, 1, 8);
	}
	return from_ints(j, &ints);
}

/* Numbers of strings; each is a field. */
static const void *from_strings(const job *j)
{
	wire w = wire_of(j->a, j->file, j->t->message), again = w;
	wire_field f;
	int32_t *out;
	int64_t n = 0;

	if (j->t->is_external || j->t->has_raw || j->strings == NULL)
		fail(j, "onnx.string", "strings must be in string_data");
	while (wire_next(&w, &f))
		n += f.number == j->elem->field;
	want_count(j, n);
	out = arena_array(j->a, int32_t, n + 1);
	for (n = 0; wire_next(&again, &f);)
		if (f.number == j->elem->field)
			out[n++] = onnx_string(
				j->strings, j->file, wire_bytes(&again, &f));
	return out;
}

/* ---- external data ---- */

static void unmap(void *what)
{
	onnx_bytes *b = what;

	munmap((void *)(uintptr_t)b->at, b->n);
}

static void close_fd(void *what)
{
	close(*(int *)what);
}

struct mapping {
	const char *path;
	onnx_bytes *out;
	int fd;
};

static _Noreturn void no_file(arena *a, const char *path, const char *what)
{
	env_fail(arena_env(a), TN_EIO, "onnx.open", (loc){.file = path},
		"it cannot be %s: %s", what, strerror(errno));
}

/* Maps the file. Its descriptor is closed with the scratch arena. */
static void map_file(arena *scratch, void *arg)
{
	struct mapping *k = arg;
	struct stat st;

	k->fd = open(k->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (k->fd < 0)
		no_file(scratch, k->path, "opened");
	arena_defer(scratch, close_fd, &k->fd);
	if (fstat(k->fd, &st) < 0)
		no_file(scratch, k->path, "read");
	if (!S_ISREG(st.st_mode))
		env_fail(arena_env(scratch), TN_EIO, "onnx.open",
			(loc){.file = k->path}, "it is not a regular file");
	if (st.st_size == 0)
		return;
	k->out->at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE,
		k->fd, 0);
	if (k->out->at == MAP_FAILED) {
		k->out->at = NULL;
		no_file(scratch, k->path, "mapped");
	}
	k->out->n = (size_t)st.st_size;
}

onnx_bytes onnx_map_file(arena *a, const char *path)
{
	onnx_bytes *b = arena_make(a, onnx_bytes);
	struct mapping k = {.path = path, .out = b};

	arena_run(arena_env(a), map_file, &k);
	if (b->n > 0)
		arena_defer(a, unmap, b);
	return *b;
}

/*
 * Is the file in the model's folder or below it? The path may not be absolute
 * or contain "..", and its links may not lead elsewhere, as realpath tells.
 */
static bool is_inside(const char *location)
{
	const char *s = location;

	if (*s == '/' || *s == '\0' || strchr(s, '\\') != NULL)
		return false;
	while (s != NULL) {
		if (s[0] == '.' && s[1] == '.' && (s[2] == '/' || s[2] == '\0'))
			return false;
		s = strchr(s, '/');
		s = s != NULL ? s + 1 : NULL;
	}
	return true;
}

static void free_text(void *what)
{
	free(what);
}

struct where {
	const job *j;
	const char *path;
};

static void check_links(arena *scratch, void *arg)
{
	const struct where *k = arg;
	char *folder = realpath(k->j->m->folder, NULL), *file;
	size_t n;

	if (folder == NULL)
		no_file(scratch, k->j->m->folder, "found");
	arena_defer(scratch, free_text, folder);
	file = realpath(k->path, NULL);
	if (file == NULL)
		no_file(scratch, k->path, "found");
	arena_defer(scratch, free_text, file);
	n = strlen(folder);
	if (strncmp(folder, file, n) != 0 ||
		(file[n] != '/' && strcmp(folder, "/") != 0))
		fail(k->j, "onnx.external", "its external data is outside the "
					    "model's folder");
}

static onnx_bytes external(const job *j)
{
	const onnx_tensor *t = j->t;
	struct where k = {j, NULL};
	int64_t at, length;
	onnx_bytes b;

	if (j->m == NULL || j->m->folder == NULL)
		fail(j, "onnx.external", "external data is possible in model "
					 "files only");
	if (t->location == NULL || !is_inside(t->location))
		fail(j, "onnx.external", "the path of its external data must "
					 "stay inside the model's folder");
	at = map_get_str(j->m->files, t->location, -1);
	if (at < 0) {
		k.path = arena_printf(j->m->a, "%s/%s", j->m->folder,
			t->location);
		arena_run(arena_env(j->a), check_links, &k);
		b = onnx_map_file(j->m->a, k.path);
		at = j->m->mapped.n;
		*vec_push(j->m->a, &j->m->mapped) = b;
		map_set_str(j->m->files, t->location, at);
	}
	b = j->m->mapped.at[at];
	length = t->length >= 0 ? t->length : packed_bytes(j->elem, j->n);
	if (t->offset < 0 || (uint64_t)t->offset > b.n ||
		(uint64_t)length > b.n - (uint64_t)t->offset)
		fail(j, "onnx.external", "its external data is beyond the end "
					 "of the file");
	return (onnx_bytes){b.at + t->offset, (size_t)length};
}

onnx_bytes onnx_external(
	arena *a, onnx_model *m, const char *file, const onnx_tensor *t)
{
	job j = {.a = a, .m = m, .file = file, .t = t, .elem = find(t->elem)};

	if (j.elem == NULL || j.elem->bits == 0)
		fail(&j, "onnx.elem", "its elements have no size");
	j.n = shape_numel(t->shape, t->rank);
	return external(&j);
}

static onnx_array array_of(job j)
{
	const onnx_tensor *t = j.t;
	onnx_array x = {.elem = t->elem};

	j.elem = find(t->elem);
	if (j.elem == NULL || !j.elem->held)
		env_fail(arena_env(j.a), TN_EINVAL, "onnx.elem",
			(loc){.file = j.file},
			"tensor \"%.200s\" has elements of type %d (%s), which "
			"is not supported",
			t->name, (int)t->elem, onnx_elem_name(t->elem));
	x.type.dtype = j.elem->dtype;
	x.type.rank = t->rank;
	memcpy(x.type.shape, t->shape, sizeof x.type.shape);
	j.n = shape_numel(t->shape, t->rank);
	if (t->elem == ONNX_STRING)
		x.data = from_strings(&j);
	else if (t->is_external)
		x.data = from_raw(&j, external(&j));
	else if (t->has_raw)
		x.data = from_raw(&j, t->raw);
	else
		x.data = from_fields(&j);
	return x;
}

onnx_array onnx_tensor_array(
	arena *a, onnx_model *m, const char *file, const onnx_tensor *t)
{
	return array_of((job){.a = a, .m = m, .file = file, .t = t,
		.strings = m != NULL ? m->strings : NULL});
}

onnx_array onnx_value_array(
	arena *a, onnx_strings *s, const char *file, const onnx_tensor *t)
{
	return array_of((job){.a = a, .strings = s, .file = file, .t = t});
}

onnx_array onnx_model_array(
	onnx_model *m, const char *file, const onnx_tensor *t)
{
	int64_t at = map_get(m->held, &t, sizeof(onnx_tensor *), -1);
	onnx_array x;

	if (at >= 0)
		return m->array.at[at];
	x = onnx_tensor_array(m->a, m, file, t);
	map_set(m->held, &t, sizeof(onnx_tensor *), m->array.n);
	*vec_push(m->a, &m->array) = x;
	return x;
}
