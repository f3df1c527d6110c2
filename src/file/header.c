/*
 * header.c: the header of an .npy file, which is a literal of Python:
 *
 *     \x93NUMPY 1 0 <length> {'descr': '<f4', 'fortran_order': False,
 *     'shape': (2, 3), }                                          \n
 *
 * Consumes untrusted bytes. The scanner accepts only this dictionary (three
 * keys in any order, no nesting), never reads past the length, and does not
 * recurse. Source: NumPy, numpy/lib/format.py, "Format Version 1.0" to "3.0".
 */
#include "file/header.h"

#include <inttypes.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { NATIVE = '<' };
#else
enum { NATIVE = '>' };
#endif

/* What stands behind the order of the bytes; NULL: NumPy does not have the type. */
static const char *const names[TN_N_DTYPES] = {
#define DTYPE(id, name, class, bits, wide, acc, lanes, npy, ...) [TN_##id] = npy,
#include "base/dtype.def"
#undef DTYPE
};

/* The rest of the dictionary. */
struct scan {
	env *e;
	const char *path;
	const char *at, *end;
};

static _Noreturn void bad_header(const struct scan *s, const char *what)
{
	env_fail(s->e, TN_EINVAL, "npy.header", (loc){.file = s->path},
		"expected %s in the header, which must be "
		"{'descr': ..., 'fortran_order': ..., 'shape': (...)}",
		what);
}

/* name: of the type, n bytes; NULL: it has several */
static _Noreturn void bad_type(const struct scan *s, const char *name, size_t n)
{
	char accepted[4 * TN_N_DTYPES + 1] = "";

	for (int32_t i = 0; i < TN_N_DTYPES; i++)
		if (names[i] != NULL) {
			strcat(accepted, " ");
			strcat(accepted, names[i]);
		}
	env_fail(s->e, TN_EINVAL, "npy.dtype", (loc){.file = s->path},
		"%s%.*s%s are not accepted; accepted are%s",
		name != NULL ? "elements of type '" : "structured elements",
		(int)(n < 40 ? n : 40), name != NULL ? name : "",
		name != NULL ? "'" : "", accepted);
}

static void skip_space(struct scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' ||
					 *s->at == '\t' || *s->at == '\r'))
		s->at++;
}

/* Skips blanks and, if it follows, the character; returns whether it did. */
static bool take(struct scan *s, char c)
{
	skip_space(s);
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static void expect(struct scan *s, char c)
{
	const char what[] = {'\'', c, '\'', '\0'};

	if (!take(s, c))
		bad_header(s, what);
}

static bool take_word(struct scan *s, const char *word)
{
	size_t n = strlen(word);

	skip_space(s);
	if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
		return false;
	s->at += n;
	return true;
}

/* Reads a string without escapes, in either kind of quotes; not terminated. */
static const char *take_string(struct scan *s, size_t *n, const char *what)
{
	const char *from, *to;
	char quote = '\'';

	if (!take(s, quote)) {
		quote = '"';
		if (!take(s, quote))
			bad_header(s, what);
	}
	from = s->at;
	to = memchr(from, quote, (size_t)(s->end - from));
	if (to == NULL || memchr(from, '\\', (size_t)(to - from)) != NULL)
		bad_header(s, what);
	*n = (size_t)(to - from);
	s->at = to + 1;
	return from;
}

/* '<f4', '|u1' ... */
static void take_descr(struct scan *s, npy_header *out)
{
	size_t n;
	int32_t i = 0;
	const char *name;

	skip_space(s);
	if (s->at < s->end && *s->at == '[')
		bad_type(s, NULL, 0);
	name = take_string(s, &n, "a dtype");
	while (i < TN_N_DTYPES && (n != 3 || names[i] == NULL ||
					  memcmp(name + 1, names[i], 2) != 0))
		i++;
	if (i == TN_N_DTYPES || strchr("<>=|", name[0]) == NULL ||
		name[0] == '\0' ||
		(name[0] == '|' && dtype_size((tn_dtype)i) > 1))
		bad_type(s, name, n);
	out->dtype = (tn_dtype)i;
	out->is_swapped = name[0] == (NATIVE == '<' ? '>' : '<');
}

static int64_t take_extent(struct scan *s)
{
	int64_t v = 0;
	const char *from;

	skip_space(s);
	if (s->at < s->end && *s->at == '-')
		env_fail(s->e, TN_EINVAL, "npy.shape", (loc){.file = s->path},
			"an extent of the shape is negative");
	for (from = s->at; s->at < s->end && *s->at >= '0' && *s->at <= '9';
		s->at++)
		if (!mul_ok(v, 10, &v) || !add_ok(v, *s->at - '0', &v))
			env_fail(s->e, TN_EINVAL, "npy.shape",
				(loc){.file = s->path},
				"an extent of the shape does not fit 64 bits");
	if (s->at == from)
		bad_header(s, "an extent");
	if (s->at < s->end && *s->at == 'L') /* written by Python 2 */
		s->at++;
	return v;
}

/* (), (3,), (2, 3), (2, 3,) */
static void take_shape(struct scan *s, npy_header *out)
{
	bool has_comma = false;

	expect(s, '(');
	out->rank = 0;
	while (!take(s, ')')) {
		if (out->rank > 0 && !has_comma)
			bad_header(s, "','");
		if (out->rank == TN_MAX_RANK)
			env_fail(s->e, TN_EINVAL, "npy.shape",
				(loc){.file = s->path},
				"the shape has more than %d axes", TN_MAX_RANK);
		out->shape[out->rank++] = take_extent(s);
		has_comma = take(s, ',');
	}
	if (out->rank == 1 && !has_comma)
		bad_header(s, "','");
}

static void take_dictionary(struct scan *s, npy_header *out)
{
	static const char *const keys[] = {"descr", "fortran_order", "shape"};
	unsigned seen = 0;

	expect(s, '{');
	while (!take(s, '}')) {
		size_t n, k;
		const char *key = take_string(s, &n, "a key");

		for (k = 0; k < 3; k++)
			if (strlen(keys[k]) == n &&
				memcmp(keys[k], key, n) == 0)
				break;
		if (k == 3 || seen >> k & 1)
			bad_header(s, "one of its three keys, each once");
		seen |= 1u << k;
		expect(s, ':');
		if (k == 0)
			take_descr(s, out);
		else if (k == 2)
			take_shape(s, out);
		else if (take_word(s, "True"))
			out->is_fortran = true;
		else if (!take_word(s, "False"))
			bad_header(s, "True or False");
		if (!take(s, ',')) {
			expect(s, '}');
			break;
		}
	}
	skip_space(s);
	if (s->at != s->end)
		bad_header(s, "the end");
	if (seen != 7)
		bad_header(s, "all three keys");
}

/* Reads the length of the dictionary, and returns its offset. */
static size_t read_prefix(env *e, const char *path, const unsigned char *bytes,
	size_t n_file, size_t *from)
{
	size_t n;

	if (n_file < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
		env_fail(e, TN_EINVAL, "npy.magic", (loc){.file = path},
			"this is not an .npy file: it does not start with "
			"\\x93NUMPY");
	if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
		env_fail(e, TN_EINVAL, "npy.version", (loc){.file = path},
			"version %d.%d of .npy is not known; accepted are 1.0, "
			"2.0 and 3.0",
			bytes[6], bytes[7]);
	n = bytes[8] | (size_t)bytes[9] << 8;
	*from = 10;
	if (bytes[6] > 1) {
		*from = 12;
		if (n_file >= 12)
			n |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
	}
	if (n > NPY_MAX_HEADER)
		env_fail(e, TN_EINVAL, "npy.header", (loc){.file = path},
			"a header of %zu bytes; at most %d are accepted", n,
			NPY_MAX_HEADER);
	if (n_file < *from || n > n_file - *from)
		env_fail(e, TN_EIO, "npy.truncated", (loc){.file = path},
			"the file ends within its header: it has %zu bytes",
			n_file);
	return n;
}

void npy_read_header(env *e, const char *path, const unsigned char *bytes,
	size_t n_have, size_t n_file, npy_header *out)
{
	size_t from, n = read_prefix(e, path, bytes, n_file, &from), n_data;
	struct scan s = {.e = e, .path = path};
	const char *text = (const char *)bytes;

	if (from + n > n_have)
		env_bug(e, "npy_read_header", "%zu bytes are too few for an "
			".npy file", n_have);
	memset(out, 0, sizeof *out);
	s.at = text + from;
	s.end = s.at + n;
	take_dictionary(&s, out);

	out->n_elems = shape_numel(out->shape, out->rank);
	if (out->n_elems < 0)
		env_fail(e, TN_EINVAL, "npy.shape", (loc){.file = path},
			"the shape has more than 2^48 elements");
	out->n_bytes = (size_t)out->n_elems * dtype_size(out->dtype);
	out->data_from = from + n;
	n_data = n_file - out->data_from;
	if (n_data < out->n_bytes)
		env_fail(e, TN_EIO, "npy.truncated", (loc){.file = path},
			"the shape takes %zu bytes of data, but the file has "
			"only %zu",
			out->n_bytes, n_data);
	if (n_data > out->n_bytes)
		env_fail(e, TN_EIO, "npy.size", (loc){.file = path},
			"the shape takes %zu bytes of data, but the file has "
			"%zu",
			out->n_bytes, n_data);
}

char *npy_make_header(
	arena *a, tn_dtype dtype, int32_t rank, const int64_t *shape, size_t *n)
{
	str s = str_new(a);

	str_addn(&s, "\x93NUMPY\1\0\0\0", 10); /* length: below */
	str_printf(&s, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
		dtype_size(dtype) == 1 ? '|' : NATIVE, names[dtype]);
	for (int32_t k = 0; k < rank; k++)
		str_printf(&s, "%s%" PRId64, k > 0 ? ", " : "", shape[k]);
	str_add(&s, rank == 1 ? ",), }" : "), }");
	while (s.n % 64 != 63) /* so that the data is aligned */
		str_addc(&s, ' ');
	str_addc(&s, '\n');
	s.at[8] = (char)((s.n - 10) & 0xff);
	s.at[9] = (char)((s.n - 10) >> 8);
	*n = s.n;
	return s.at;
}
