/*
 * strings.c: the strings of a model, each once (strings.h).
 */
#include "onnx/strings.h"

/* All strings of a model. */
#define MAX_BYTES ((size_t)1 << 30)
enum { MAX_STRINGS = 1 << 26, MAX_LENGTH = 1 << 24 };

struct onnx_strings {
	arena *a;
	map *number;
	VEC(onnx_bytes) text;
	size_t n_bytes;
};

onnx_strings *onnx_strings_new(arena *a)
{
	onnx_strings *s = arena_make(a, onnx_strings);

	s->a = a;
	s->number = map_new(a);
	return s;
}

/*
 * Bytes of the character at p, of at most n bytes, or 0 if there is none: a byte
 * that is cut off or out of place, more bytes than it needs, half of a pair of
 * UTF-16, or beyond U+10FFFF.
 */
static size_t length_at(const uint8_t *p, size_t n)
{
	size_t len = p[0] < 0x80 ? 1
		: p[0] >= 0xc2 && p[0] < 0xe0 ? 2
		: p[0] >= 0xe0 && p[0] < 0xf0 ? 3
		: p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : 0;

	if (len == 0 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) ||
		(p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))
		return 0;
	return len;
}

static void want_utf8(const onnx_strings *s, const char *file, onnx_bytes text)
{
	for (size_t i = 0, n; i < text.n; i += n) {
		n = length_at(text.at + i, text.n - i);
		if (n == 0)
			env_fail(arena_env(s->a), TN_EINVAL, "onnx.string",
				(loc){.file = file}, "byte %zu of a string of "
				"%zu bytes is 0x%02x, which is not UTF-8 "
				"there", i, text.n,
				(unsigned)text.at[i]);
	}
}

int32_t onnx_string(onnx_strings *s, const char *file, onnx_bytes text)
{
	int64_t i;
	char *copy;

	if (text.n == 0)
		text.at = (const uint8_t *)"";
	i = map_get(s->number, text.at, text.n, -1);
	if (i >= 0)
		return (int32_t)i;
	want_utf8(s, file, text);
	if (text.n > MAX_LENGTH || text.n > MAX_BYTES - s->n_bytes || s->text.n == MAX_STRINGS)
		env_fail(arena_env(s->a), TN_EINVAL, "onnx.size",
			(loc){.file = file}, "a string may have 16 MB, and "
			"all strings of a model 1 GB; 2^26 may differ");
	copy = arena_alloc(s->a, text.n + 1, 1);
	memcpy(copy, text.at, text.n);
	s->n_bytes += text.n;
	map_set(s->number, text.at, text.n, s->text.n);
	*vec_push(s->a, &s->text) =
		(onnx_bytes){(const uint8_t *)copy, text.n};
	return s->text.n - 1;
}

int32_t onnx_string_n(const onnx_strings *s)
{
	return s->text.n;
}

onnx_bytes onnx_string_at(const onnx_strings *s, int32_t number)
{
	return s->text.at[number];
}

uint32_t onnx_utf8(const uint8_t **at)
{
	static const uint8_t first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	const uint8_t *p = *at;
	size_t n = length_at(p, 4);
	uint32_t c = p[0] & first[n];

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	*at = p + (n > 0 ? n : 1);
	return c;
}
