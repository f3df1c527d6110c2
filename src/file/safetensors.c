/*
 * safetensors.c: reads and writes named tensors in one file:
 *
 *     8 bytes   length of the header, little-endian
 *     header    {"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[2,3],
 *               "data_offsets":[0,24]},...}   and spaces
 *     data      offsets count from here
 *
 * Consumes untrusted files. The entries of the header are checked against the
 * size of the file and against each other before data is read: tensors must
 * follow each other without gaps, from the first byte of the data to the last,
 * and each must have the size of its shape. Source: the format's description by
 * its authors, github.com/huggingface/ safetensors, README "Format".
 */
#define _GNU_SOURCE /* memmem */
#include "base/sha256.h"
#include "file/disk.h"
#include "file/file.h"
#include "file/json.h"

#include <inttypes.h>
#include <stdlib.h>

enum { PREFIX = 8, MAX_HEADER = 100000000, ALIGNMENT = 8, CHUNK = 1 << 18 };

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { IS_SWAPPED = 0 };
#else
enum { IS_SWAPPED = 1 };
#endif

static const char metadata[] = "__metadata__";

/* Replaces the checksum in the text whose checksum is computed. */
static const char no_sum[] = "00000000000000000000000000000000"
			     "00000000000000000000000000000000";

/* By tn_dtype; NULL: the format does not have it. */
static const char *const dtypes[TN_N_DTYPES] = {
#define DTYPE(id, name, class, bits, wide, acc, lanes, npy, safetensors, ...)        \
	[TN_##id] = safetensors,
#include "base/dtype.def"
#undef DTYPE
};

/* A name for a message: quoted, and truncated if it is long. */
static const char *quoted(arena *a, const char *name)
{
	str s = str_new(a);
	size_t n = strlen(name), most = 60;

	if (n <= most) {
		str_json(&s, name);
		return s.at;
	}
	while (((unsigned char)name[most] & 0xc0) == 0x80)
		most--;
	str_json(&s, arena_strndup(a, name, most));
	str_add(&s, "...");
	return s.at;
}

/* ---- the header ---- */

typedef struct reading {
	json_text j;
	file_tensors *out;
	VEC(file_tensor) tensor;
	VEC(file_pair) pair;
	map *names;
	size_t n_data; /* bytes after the header */
} reading;

static _Noreturn void refuse(const reading *r, const char *rule,
	const char *name, const char *text)
{
	env_fail(arena_env(r->j.a), TN_EINVAL, rule, (loc){.file = r->j.path},
		"%s: %s", quoted(r->j.a, name), text);
}

static void take_dtype(reading *r, file_tensor *x)
{
	const char *name = json_string(&r->j, "the dtype, a string");
	str s;

	for (int32_t i = 0; i < TN_N_DTYPES; i++)
		if (dtypes[i] != NULL && strcmp(name, dtypes[i]) == 0) {
			x->dtype = (tn_dtype)i;
			return;
		}
	s = str_new(r->j.a);
	str_printf(&s, "dtype %s is not accepted; accepted are",
		quoted(r->j.a, name));
	for (int32_t i = 0; i < TN_N_DTYPES; i++)
		if (dtypes[i] != NULL)
			str_printf(&s, " %s", dtypes[i]);
	refuse(r, "safetensors.dtype", x->name, s.at);
}

static void take_shape(reading *r, file_tensor *x)
{
	json_want(&r->j, '[');
	if (json_take(&r->j, ']'))
		return;
	do {
		if (x->rank == TN_MAX_RANK)
			refuse(r, "safetensors.shape", x->name,
				"the shape has more than 8 axes");
		x->shape[x->rank++] = json_natural(&r->j, "an extent");
	} while (json_more(&r->j, ']'));
}

static void take_offsets(reading *r, int64_t *offset)
{
	json_want(&r->j, '[');
	offset[0] = json_natural(&r->j, "an offset");
	json_want(&r->j, ',');
	offset[1] = json_natural(&r->j, "an offset");
	json_want(&r->j, ']');
}

static void check_tensor(reading *r, file_tensor *x, const int64_t *offset)
{
	int64_t n = shape_numel(x->shape, x->rank);

	if (n < 0)
		refuse(r, "safetensors.shape", x->name,
			"the shape has more than 2^48 elements");
	x->n_bytes = (size_t)n * dtype_size(x->dtype);
	if (offset[1] < offset[0] ||
		(uint64_t)(offset[1] - offset[0]) != x->n_bytes)
		refuse(r, "safetensors.offsets", x->name,
			arena_printf(r->j.a,
				"data_offsets [%" PRId64 ", %" PRId64
				"] do not span the %zu bytes of the shape",
				offset[0], offset[1], x->n_bytes));
	x->from = (size_t)offset[0];
	if ((uint64_t)offset[1] > r->n_data)
		env_fail(arena_env(r->j.a), TN_EIO, "safetensors.truncated",
			(loc){.file = r->j.path},
			"%s ends at byte %" PRId64
			" of the data, but the file has only %zu",
			quoted(r->j.a, x->name), offset[1], r->n_data);
}

static void take_tensor(reading *r, const char *name)
{
	static const char *const keys[] = {"dtype", "shape", "data_offsets"};
	file_tensor *x = vec_push(r->j.a, &r->tensor);
	int64_t offset[2] = {0, 0};
	unsigned seen = 0;

	*x = (file_tensor){.name = name};
	r->j.inside = name;
	json_want(&r->j, '{');
	do {
		const char *key = json_string(&r->j, "a key");
		size_t k = 0;

		while (k < 3 && strcmp(key, keys[k]) != 0)
			k++;
		if (k == 3 || seen >> k & 1)
			json_fail(&r->j, "one of dtype, shape and "
					 "data_offsets, each once");
		seen |= 1u << k;
		json_want(&r->j, ':');
		if (k == 0)
			take_dtype(r, x);
		else if (k == 1)
			take_shape(r, x);
		else
			take_offsets(r, offset);
	} while (json_more(&r->j, '}'));
	if (seen != 7)
		json_fail(&r->j, "dtype, shape and data_offsets");
	r->j.inside = NULL;
	check_tensor(r, x, offset);
}

static void take_metadata(reading *r)
{
	map *keys = map_new(r->j.a);

	r->j.inside = metadata;
	json_want(&r->j, '{');
	if (!json_take(&r->j, '}'))
		do {
			file_pair *p = vec_push(r->j.a, &r->pair);

			p->key = json_string(&r->j, "a key");
			if (map_get_str(keys, p->key, 0))
				refuse(r, "safetensors.name", p->key,
					"this key appears twice in __metadata__");
			map_set_str(keys, p->key, 1);
			json_want(&r->j, ':');
			p->value = json_string(&r->j, "a string");
		} while (json_more(&r->j, '}'));
	r->j.inside = NULL;
}

static void take_header(reading *r)
{
	json_want(&r->j, '{');
	if (!json_take(&r->j, '}'))
		do {
			const char *name = json_string(&r->j, "a name");

			if (map_get_str(r->names, name, 0))
				refuse(r, "safetensors.name", name,
					"this name appears twice");
			map_set_str(r->names, name, 1);
			json_want(&r->j, ':');
			if (strcmp(name, metadata) == 0)
				take_metadata(r);
			else
				take_tensor(r, name);
		} while (json_more(&r->j, '}'));
	while (r->j.at < r->j.end && *r->j.at == ' ')
		r->j.at++;
	if (r->j.at != r->j.end)
		json_fail(&r->j, "the end");
}

static int by_place(const void *l, const void *r)
{
	const file_tensor *x = l, *y = r;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->n_bytes != y->n_bytes)
		return x->n_bytes < y->n_bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

/*
 * Checks that tensors follow each other without gaps, and that the last one
 * ends at the end of the file.
 */
static void check_places(reading *r)
{
	size_t at = 0;

	if (r->tensor.n > 1)
		qsort(r->tensor.at, (size_t)r->tensor.n, sizeof *r->tensor.at,
			by_place);
	for (int32_t i = 0; i < r->tensor.n; i++) {
		const file_tensor *x = &r->tensor.at[i];

		if (x->from != at)
			refuse(r, "safetensors.offsets", x->name,
				arena_printf(r->j.a,
					x->from < at
						? "its data starts at byte %zu,"
						  " within another's, which "
						  "ends at %zu"
						: "its data starts at byte %zu,"
						  " but what is before it ends "
						  "at %zu",
					x->from, at));
		at += x->n_bytes;
	}
	if (at != r->n_data)
		env_fail(arena_env(r->j.a), TN_EIO, "safetensors.size",
			(loc){.file = r->j.path},
			"the tensors have %zu bytes of data, but the file "
			"has %zu",
			at, r->n_data);
}

/* Reads the length of the header, and checks that it is within the file. */
static size_t header_length(
	env *e, const char *path, const unsigned char *bytes, size_t n_file)
{
	uint64_t n = 0;

	if (n_file < PREFIX)
		env_fail(e, TN_EIO, "safetensors.truncated",
			(loc){.file = path},
			"the file has %zu bytes; a .safetensors file starts "
			"with the 8 of its header's length",
			n_file);
	for (int i = PREFIX - 1; i >= 0; i--)
		n = n << 8 | bytes[i];
	if (n > MAX_HEADER)
		env_fail(e, TN_EINVAL, "safetensors.header",
			(loc){.file = path},
			"a header of %" PRIu64 " bytes; at most %d are "
			"accepted",
			n, MAX_HEADER);
	if (n > n_file - PREFIX)
		env_fail(e, TN_EIO, "safetensors.truncated",
			(loc){.file = path},
			"the file ends within its header of %" PRIu64 " bytes",
			n);
	return (size_t)n;
}

static void parse(arena *a, const char *path, const char *header,
	size_t n_header, size_t n_file, file_tensors *out)
{
	reading r = {.j = {a, "safetensors.json", path, NULL, header, header,
			     header + n_header},
		.out = out,
		.names = map_new(a),
		.n_data = n_file - PREFIX - n_header};

	take_header(&r);
	check_places(&r);
	for (int32_t i = 0; i < r.tensor.n; i++)
		r.tensor.at[i].from += PREFIX + n_header;
	*out = (file_tensors){.at = r.tensor.at,
		.n = r.tensor.n,
		.pair = r.pair.at,
		.n_pairs = r.pair.n,
		.path = path};
}

void file_tensors_open(arena *a, const char *path, file_tensors *out)
{
	disk_file *f = disk_open(a, "safetensors", path);
	unsigned char prefix[PREFIX] = {0};
	char *header;
	size_t n;

	disk_read(f, 0, prefix, f->n_bytes < PREFIX ? f->n_bytes : PREFIX);
	n = header_length(arena_env(a), path, prefix, f->n_bytes);
	header = arena_alloc(a, n, 1);
	disk_read(f, PREFIX, header, n);
	parse(a, path, header, n, f->n_bytes, out);
	out->file = f;
}

void file_tensors_read(const file_tensors *x, int32_t i, void *out)
{
	const file_tensor *t = &x->at[i];
	size_t size = dtype_size(t->dtype);
	unsigned char *p = out;

	disk_read(x->file, t->from, out, t->n_bytes);
	if (IS_SWAPPED)
		disk_swap(out, (int64_t)(t->n_bytes / size), size);
	if (t->dtype == TN_BOOL)
		for (size_t k = 0; k < t->n_bytes; k++)
			p[k] = p[k] != 0;
}

/* ---- the checksum ---- */

static const char *pair_value(const file_tensors *x, const char *key)
{
	for (int32_t i = 0; i < x->n_pairs; i++)
		if (strcmp(x->pair[i].key, key) == 0)
			return x->pair[i].value;
	return NULL;
}

static char *sum_in(char *header, size_t n);

/*
 * A copy of the header with no_sum instead of the checksum; sets *n to its
 * length.
 */
static char *head_without_sum(arena *a, const file_tensors *x, size_t *n)
{
	unsigned char prefix[PREFIX];
	char *head, *at;

	disk_read(x->file, 0, prefix, PREFIX);
	*n = PREFIX + header_length(arena_env(a), x->path, prefix,
			      x->file->n_bytes);
	head = arena_alloc(a, *n, 1);
	disk_read(x->file, 0, head, *n);
	at = sum_in(head, *n);
	if (at != NULL)
		memcpy(at, no_sum, HASH_HEX);
	return head;
}

bool file_tensors_check(arena *a, const file_tensors *x)
{
	const char *want = pair_value(x, FILE_SUM);
	arena *scratch;
	char *part, *head;
	size_t at;
	sha256 h;

	if (want == NULL || x->file == NULL)
		return false;
	scratch = arena_child(a);
	head = head_without_sum(scratch, x, &at);
	sha256_start(&h);
	sha256_add(&h, head, at);
	part = arena_alloc(scratch, CHUNK, 1);
	while (at < x->file->n_bytes) {
		size_t n = x->file->n_bytes - at;

		n = n < CHUNK ? n : CHUNK;
		disk_read(x->file, at, part, n);
		sha256_add(&h, part, n);
		at += n;
	}
	if (strcmp(sha256_hex(scratch, &h), want) != 0)
		env_fail(arena_env(a), TN_EIO, "safetensors.checksum",
			(loc){.file = x->path},
			"the file is damaged: its checksum does not match its "
			"bytes");
	arena_free(scratch);
	return true;
}

/* ---- writing ---- */

bool file_tensors_takes(const char *name)
{
	return strcmp(name, metadata) != 0 && json_is_utf8(name, strlen(name));
}

/* Refuses text that is not UTF-8, and a key that occurs twice. */
static void check_text(arena *a, const char *path, map *seen, const char *text)
{
	if (!json_is_utf8(text, strlen(text)))
		env_fail(arena_env(a), TN_EINVAL, "safetensors.name",
			(loc){.file = path},
			"name %d is not valid UTF-8", map_n(seen));
	if (map_get_str(seen, text, 0))
		env_fail(arena_env(a), TN_EINVAL, "safetensors.name",
			(loc){.file = path}, "%s: this name appears twice",
			quoted(a, text));
	map_set_str(seen, text, 1);
}

static int by_size_and_name(const void *l, const void *r)
{
	const file_tensor *x = l, *y = r;
	size_t m = dtype_size(x->dtype), n = dtype_size(y->dtype);

	return m != n ? (m > n ? -1 : 1) : strcmp(x->name, y->name);
}

static void add_metadata(
	str *s, const char *path, int32_t n, const file_pair *pair)
{
	map *seen = map_new(s->a);

	if (n == 0)
		return;
	str_printf(s, "\"%s\":{", metadata);
	for (int32_t i = 0; i < n; i++) {
		check_text(s->a, path, seen, pair[i].key);
		if (!json_is_utf8(pair[i].value, strlen(pair[i].value)))
			env_fail(arena_env(s->a), TN_EINVAL,
				"safetensors.name", (loc){.file = path},
				"the value of %s is not valid UTF-8",
				quoted(s->a, pair[i].key));
		str_add(s, i > 0 ? "," : "");
		str_json(s, pair[i].key);
		str_addc(s, ':');
		str_json(s, strcmp(pair[i].key, FILE_SUM) == 0 ? no_sum
							: pair[i].value);
	}
	str_addc(s, '}');
}

/* The digits of the checksum in a header; NULL: it has none. */
static char *sum_in(char *header, size_t n)
{
	static const char before[] = "\"" FILE_SUM "\":\"";
	char *p = memmem(header, n, before, sizeof before - 1);

	/* inside names and values, quotes are escaped */
	if (p == NULL ||
		(size_t)(header + n - p) < sizeof before - 1 + HASH_HEX + 1)
		return NULL;
	p += sizeof before - 1;
	return p[HASH_HEX] == '"' ? p : NULL;
}

static void set_sum(arena *a, str *header, const disk_part *part, int32_t n)
{
	char *at = sum_in(header->at, header->n);
	sha256 h;

	if (at == NULL)
		return;
	sha256_start(&h);
	for (int32_t i = 0; i < n; i++)
		sha256_add(&h, part[i].data, part[i].n_bytes);
	memcpy(at, sha256_hex(a, &h), HASH_HEX);
}

/* The length and the header for sorted tensors; sets their n_bytes. */
static str make_header(arena *a, const char *path, int32_t n, file_tensor *x,
	int32_t n_pairs, const file_pair *pair)
{
	str s = str_new(a);
	map *seen = map_new(a);
	size_t at = 0;

	map_set_str(seen, metadata, 1);
	str_addn(&s, "\0\0\0\0\0\0\0\0", PREFIX); /* length: below */
	str_addc(&s, '{');
	add_metadata(&s, path, n_pairs, pair);
	for (int32_t i = 0; i < n; i++) {
		int64_t n_elems = shape_numel(x[i].shape, x[i].rank);

		check_text(a, path, seen, x[i].name);
		if (n_elems < 0)
			env_fail(arena_env(a), TN_EINVAL, "safetensors.shape",
				(loc){.file = path},
				"%s: the shape is not one that a tensor can "
				"have",
				quoted(a, x[i].name));
		if (dtypes[x[i].dtype] == NULL)
			env_fail(arena_env(a), TN_EINVAL, "safetensors.dtype",
				(loc){.file = path},
				"%s: the format has no elements of type %s",
				quoted(a, x[i].name), dtype_name(x[i].dtype));
		x[i].n_bytes = (size_t)n_elems * dtype_size(x[i].dtype);
		str_add(&s, i > 0 || n_pairs > 0 ? "," : "");
		str_json(&s, x[i].name);
		str_printf(&s, ":{\"dtype\":\"%s\",\"shape\":",
			dtypes[x[i].dtype]);
		str_shape(&s, x[i].shape, x[i].rank);
		str_printf(&s, ",\"data_offsets\":[%zu,%zu]}", at,
			at + x[i].n_bytes);
		at += x[i].n_bytes;
	}
	str_addc(&s, '}');
	while (s.n % ALIGNMENT != 0)
		str_addc(&s, ' ');
	if (s.n - PREFIX > MAX_HEADER)
		env_fail(arena_env(a), TN_EINVAL, "safetensors.header",
			(loc){.file = path},
			"a header of %zu bytes; at most %d are accepted",
			s.n - PREFIX, MAX_HEADER);
	for (int i = 0; i < PREFIX; i++)
		s.at[i] = (char)((s.n - PREFIX) >> 8 * i & 0xff);
	return s;
}

/* The data as it is stored in the file. */
static const void *to_written(arena *a, const file_tensor *x)
{
	size_t size = dtype_size(x->dtype);
	void *copy;

	if (!IS_SWAPPED || x->n_bytes == 0)
		return x->data;
	copy = arena_copy(a, x->data, x->n_bytes);
	disk_swap(copy, (int64_t)(x->n_bytes / size), size);
	return copy;
}

void file_tensors_write(arena *a, const char *path, int32_t n,
	const file_tensor *x, int32_t n_pairs, const file_pair *pair)
{
	arena *scratch = arena_child(a);
	file_tensor *sorted = arena_array(scratch, file_tensor, n + 1);
	disk_part *part = arena_array(scratch, disk_part, n + 1);
	str header;

	if (n > 0)
		memcpy(sorted, x, (size_t)n * sizeof *x);
	if (n > 1)
		qsort(sorted, (size_t)n, sizeof *sorted, by_size_and_name);
	header = make_header(scratch, path, n, sorted, n_pairs, pair);
	part[0] = (disk_part){header.at, header.n};
	for (int32_t i = 0; i < n; i++)
		part[i + 1] = (disk_part){
			to_written(scratch, &sorted[i]), sorted[i].n_bytes};
	set_sum(scratch, &header, part, n + 1);
	disk_replace(scratch, "safetensors", path, part, n + 1);
	arena_free(scratch);
}
