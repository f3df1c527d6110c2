/*
 * npz.c: .npz files: a ZIP archive with a .npy file for each array, stored or
 * deflated (NumPy's savez and savez_compressed).
 *
 *     end record -> directory -> for each NAME.npy: its bytes -> npy.c
 *
 * Members are found by the directory at the end; every offset and size in it is
 * checked against the file. A byte of DEFLATE decodes to at most 1032 bytes,
 * which bounds the memory that a damaged size can request; members may not
 * share bytes, and the total size of all deflated ones is bounded, too.
 * Checksums are verified.
 */
#include "file/disk.h"
#include "file/file.h"
#include "file/inflate.h"

#include <stdlib.h>

enum {
	END_BYTES = 22,
	ENTRY_BYTES = 46,
	LOCAL_BYTES = 30,
	MAX_COMMENT = 65535,
	MAX_RATIO = 1032
};
/*
 * All arrays together may not exceed both of these: a number of bytes, and a
 * multiple of the size of the file.
 */
#define MAX_INFLATED (UINT64_C(4) << 30)
#define MAX_GROWTH 64

typedef struct archive {
	arena *a; /* owns the arrays */
	env *e;
	const char *path;
	const uint8_t *at;
	size_t n;
} archive;

typedef struct member {
	const char *name;
	uint32_t method, crc;
	uint64_t packed, size, local;
	uint64_t from; /* offset of its bytes, after the header at local */
} member;

static _Noreturn void bad(
	const archive *z, const char *rule, const char *name, const char *what)
{
	env_fail(z->e, TN_EIO, rule, (loc){.file = z->path}, "%s%s%.200s",
		what, name[0] != '\0' ? ": " : "", name);
}

/* The little-endian number of n bytes at `from`. */
static uint64_t number(const archive *z, uint64_t from, int n)
{
	uint64_t v = 0;

	if (from > z->n || (uint64_t)n > z->n - from)
		bad(z, "npz.truncated", "", "the directory of the archive ends "
			"too early");
	for (int i = 0; i < n; i++)
		v |= (uint64_t)z->at[from + (uint64_t)i] << (8 * i);
	return v;
}

static uint32_t crc32_of(const uint8_t *at, size_t n)
{
	uint32_t table[16], crc = UINT32_MAX;

	for (uint32_t i = 0; i < 16; i++) {
		table[i] = i;
		for (int k = 0; k < 4; k++)
			table[i] = table[i] >> 1 ^
				(table[i] & 1 ? UINT32_C(0xedb88320) : 0);
	}
	for (size_t i = 0; i < n; i++) {
		crc ^= at[i];
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

/*
 * Searches for the end record from the end, because it ends with a comment of
 * unknown length.
 */
static uint64_t find_end(const archive *z)
{
	uint64_t least = z->n > END_BYTES + MAX_COMMENT
		? z->n - END_BYTES - MAX_COMMENT
		: 0;

	if (z->n >= END_BYTES)
		for (uint64_t at = z->n - END_BYTES + 1; at-- > least;)
			if (number(z, at, 4) == 0x06054b50 &&
				number(z, at + 20, 2) == z->n - at - END_BYTES)
				return at;
	bad(z, "npz.magic", "", "this is not an .npz file");
}

/*
 * Reads 64-bit sizes, which follow the name if the 32-bit fields are all ones.
 */
static void wide_sizes(
	const archive *z, uint64_t from, uint64_t n, member *m)
{
	uint64_t end = from + n;

	while (from + 4 <= end) {
		uint64_t id = number(z, from, 2), size = number(z, from + 2, 2);
		uint64_t *field[] = {&m->size, &m->packed, &m->local};
		uint64_t at = from + 4;

		from = at + size;
		for (int i = 0; i < 3 && id == 1; i++)
			if (*field[i] == UINT32_MAX && at + 8 <= from) {
				*field[i] = number(z, at, 8);
				at += 8;
			}
	}
}

/* Reads the entry of the directory at *at, and advances *at to the next one. */
static member read_entry(const archive *z, uint64_t *at)
{
	uint64_t from = *at, n_name, n_extra;
	member m = {0};

	if (number(z, from, 4) != 0x02014b50)
		bad(z, "npz.directory", "", "the directory of the archive is "
			"damaged");
	if (number(z, from + 8, 2) & 1)
		bad(z, "npz.method", "", "a member is encrypted, which is not "
			"supported");
	m.method = (uint32_t)number(z, from + 10, 2);
	m.crc = (uint32_t)number(z, from + 16, 4);
	m.packed = number(z, from + 20, 4);
	m.size = number(z, from + 24, 4);
	m.local = number(z, from + 42, 4);
	n_name = number(z, from + 28, 2);
	n_extra = number(z, from + 30, 2);
	*at = from + ENTRY_BYTES + n_name + n_extra + number(z, from + 32, 2);
	from += ENTRY_BYTES;
	if (n_name + n_extra > z->n - from)
		bad(z, "npz.truncated", "", "the directory of the archive ends "
			"too early");
	if (memchr(z->at + from, 0, (size_t)n_name) != NULL)
		bad(z, "npz.directory", "", "a name contains a byte 0");
	m.name = arena_strndup(
		z->a, (const char *)z->at + from, (size_t)n_name);
	wide_sizes(z, from + n_name, n_extra, &m);
	return m;
}

static void find_bytes(const archive *z, member *m)
{
	if (number(z, m->local, 4) != 0x04034b50)
		bad(z, "npz.directory", m->name, "a member is not where the "
			"directory says");
	m->from = m->local + LOCAL_BYTES + number(z, m->local + 26, 2) +
		number(z, m->local + 28, 2);
	if (m->from > z->n || m->packed > z->n - m->from)
		bad(z, "npz.truncated", m->name, "a member ends too early");
	if (m->method == 8 && m->size / MAX_RATIO > m->packed)
		bad(z, "npz.deflate", m->name, "the size of a member is wrong");
}

static int by_place(const void *x, const void *y)
{
	const member *p = *(member *const *)x, *q = *(member *const *)y;

	return (p->local > q->local) - (p->local < q->local);
}

/*
 * Checks that members do not overlap each other or the directory: otherwise a
 * small file could decode to any amount of data.
 */
static void check_all(
	const archive *z, uint64_t n, member *m, uint64_t directory)
{
	arena *scratch = arena_child(z->a);
	member **in = arena_array(scratch, member *, n + 1);
	uint64_t total = 0;

	for (uint64_t i = 0; i < n; i++) {
		find_bytes(z, &m[i]);
		in[i] = &m[i];
		if (m[i].method != 8)
			continue;
		/* cannot overflow: each is at most 1032 times the file */
		total += m[i].size;
		if (total > MAX_INFLATED && total / MAX_GROWTH > z->n)
			bad(z, "npz.size", m[i].name,
				"with it, the arrays are more than 4 GiB and "
				"64 times the file: store them without "
				"compression");
	}
	qsort(in, (size_t)n, sizeof *in, by_place);
	for (uint64_t i = 0; i < n; i++)
		if (in[i]->from + in[i]->packed >
			(i + 1 < n ? in[i + 1]->local : directory))
			bad(z, "npz.overlap", in[i]->name,
				"it shares bytes with another part");
	arena_free(scratch);
}

static void read_member(const archive *z, const member *m, file_array *out)
{
	arena *scratch = arena_child(z->a);
	const uint8_t *bytes = z->at + m->from;

	if (m->method == 8) {
		uint8_t *whole = arena_alloc(scratch, (size_t)m->size + 1, 1);

		inflate_all(z->e, z->path, bytes, (size_t)m->packed, whole,
			(size_t)m->size);
		bytes = whole;
	} else if (m->method != 0) {
		bad(z, "npz.method", m->name,
			"a member is compressed by a method other than deflate");
	} else if (m->size != m->packed) {
		bad(z, "npz.directory", m->name, "the directory and the member "
			"disagree about its size");
	}
	if (crc32_of(bytes, (size_t)m->size) != m->crc)
		bad(z, "npz.checksum", m->name, "the checksum of a member is "
			"wrong: the file is damaged");
	file_npy_parse(z->a, z->path, bytes, (size_t)m->size, out);
	arena_free(scratch);
}

/* "x.npy" -> "x" */
static const char *array_name(const archive *z, const char *name)
{
	size_t n = strlen(name);

	if (n < 4 || strcmp(name + n - 4, ".npy") != 0)
		bad(z, "npz.name", name, "a member is not an .npy file");
	return arena_strndup(z->a, name, n - 4);
}

void file_npz_parse(arena *a, const char *path, const void *bytes,
	size_t n_bytes, file_named *out)
{
	archive z = {a, arena_env(a), path, bytes, n_bytes};
	uint64_t end = find_end(&z), at = number(&z, end + 16, 4);
	uint64_t n = number(&z, end + 10, 2), directory;
	member *m;

	if ((n == UINT16_MAX || at == UINT32_MAX) && end >= 20 &&
		number(&z, end - 20, 4) == 0x07064b50) {
		uint64_t wide = number(&z, end - 12, 8);

		if (number(&z, wide, 4) != 0x06064b50)
			bad(&z, "npz.directory", "", "the end record of the "
				"archive is damaged");
		n = number(&z, wide + 32, 8);
		at = number(&z, wide + 48, 8);
	}
	if (n > n_bytes / ENTRY_BYTES)
		bad(&z, "npz.directory", "", "the archive has more arrays than "
			"fit into memory");
	out->n = (int32_t)n;
	out->name = arena_array(a, const char *, n + 1);
	out->array = arena_array(a, file_array, n + 1);
	m = arena_array(a, member, n + 1);
	directory = at;
	for (uint64_t i = 0; i < n; i++) {
		m[i] = read_entry(&z, &at);
		out->name[i] = array_name(&z, m[i].name);
	}
	check_all(&z, n, m, directory);
	for (uint64_t i = 0; i < n; i++)
		read_member(&z, &m[i], &out->array[i]);
}

void file_npz_read(arena *a, const char *path, file_named *out)
{
	arena *scratch = arena_child(a);
	const disk_file *f = disk_open(scratch, "npz", path);
	uint8_t *bytes = arena_alloc(scratch, f->n_bytes + 1, 1);

	disk_read(f, 0, bytes, f->n_bytes);
	file_npz_parse(a, path, bytes, f->n_bytes, out);
	arena_free(scratch);
}
