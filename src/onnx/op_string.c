/*
 * op_string.c: operators that look at the characters of strings. Their operands
 * must be known when a program is built, like those that decide shapes.
 *
 *     StringConcat(["a", "b"], "c")         ["ac", "bc"]
 *     StringSplit(["a b", "c"])             [["a", "b"], ["c", ""]], [2, 1]
 *     StringNormalizer(["Mo", "Tu"])        stop words dropped, cases changed
 */
#include "onnx/ops.h"
#include "onnx/texts.h"

enum { MAX_PARTS = 1 << 26 };
#define MAX_STEPS (INT64_C(1) << 31)

static onnx_strings *table(const node *d)
{
	return d->x->m->strings;
}

texts texts_in(node *d, int32_t i)
{
	int32_t v = on_in(d, i);
	texts t = {.n = on_numel(d, v)};

	if (on_elem(d, i) != ONNX_STRING)
		on_fail(d, "onnx.type", "input %d must be strings", (int)i);
	t.type = *on_ty(d, v);
	t.at = onnx_host(d->x, v);
	for (int64_t k = 0; k < t.n; k++)
		if (t.at[k] < 0 || t.at[k] >= onnx_string_n(table(d)))
			on_fail(d, "onnx.string", "element %lld of input %d is "
				"%lld, but the strings of the model have "
				"numbers below %lld", (long long)k, (int)i,
				(long long)t.at[k],
				(long long)onnx_string_n(table(d)));
	return t;
}

void texts_count(const node *d, int64_t steps)
{
	d->x->host_points += steps;
	if (d->x->host_points > MAX_STEPS)
		on_fail(d, "onnx.size", "the strings of all elements take more "
			"than 2^31 steps");
}

static onnx_bytes text_of(const node *d, int32_t number)
{
	onnx_bytes b = onnx_string_at(table(d), number);

	texts_count(d, (int64_t)b.n);
	return b;
}

onnx_bytes text_at(const node *d, const texts *t, int64_t i)
{
	return text_of(d, t->at[i]);
}

static int32_t number_of(const node *d, const void *at, size_t n)
{
	return onnx_string(table(d), d->x->where, (onnx_bytes){at, n});
}

static void set_strings(node *d, int32_t i, list shape, const int32_t *at)
{
	on_set_elem(d, i, on_constant(d, TN_I32, shape, at), ONNX_STRING);
}

/* ---- StringConcat ---- */

/* The element of t that stands at element i of a tensor of this shape. */
static int64_t broadcast_at(const texts *t, list shape, int64_t i)
{
	int64_t at = 0, stride = 1;

	for (int32_t k = shape.n - 1; k >= 0; k--) {
		int32_t own = k - (shape.n - t->type.rank);

		if (own >= 0 && t->type.shape[own] > 1)
			at += i % shape.at[k] * stride;
		if (own >= 0)
			stride *= t->type.shape[own];
		i /= shape.at[k];
	}
	return at;
}

static list broadcast_shape(node *d, const texts *x, const texts *y)
{
	int32_t r = x->type.rank > y->type.rank ? x->type.rank : y->type.rank;
	list shape = on_list_new(d, r, 1);

	for (int32_t k = 0; k < r; k++) {
		int32_t i = k - (r - x->type.rank), j = k - (r - y->type.rank);
		int64_t m = i >= 0 ? x->type.shape[i] : 1;
		int64_t n = j >= 0 ? y->type.shape[j] : 1;

		if (m != n && m != 1 && n != 1)
			on_fail(d, "onnx.shape", "axis %d has %lld elements in "
				"one operand and %lld in the other", (int)k,
				(long long)m, (long long)n);
		shape.at[k] = m == 1 ? n : m;
	}
	return shape;
}

void onnx_string_concat(node *d)
{
	texts x = texts_in(d, 0), y = texts_in(d, 1);
	list shape = broadcast_shape(d, &x, &y);
	int64_t n = on_bound(d, "the number of strings",
		shape_numel(shape.at, shape.n), 0, MAX_PARTS);
	int32_t *out = arena_array(d->x->a, int32_t, n + 1);
	arena *tmp = arena_child(d->x->a);
	str s = str_new(tmp);

	for (int64_t i = 0; i < n; i++) {
		onnx_bytes a = text_at(d, &x, broadcast_at(&x, shape, i));
		onnx_bytes b = text_at(d, &y, broadcast_at(&y, shape, i));

		s.n = 0;
		str_addn(&s, (const char *)a.at, a.n);
		str_addn(&s, (const char *)b.at, b.n);
		out[i] = number_of(d, s.at, s.n);
	}
	arena_free(tmp);
	set_strings(d, 0, shape, out);
}

/* ---- StringSplit ---- */

typedef struct parts {
	arena *a;
	VEC(int32_t) v; /* numbers of all parts, string by string */
} parts;

static bool is_blank(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static void add_part(node *d, parts *p, const uint8_t *at, size_t n)
{
	if (p->v.n == MAX_PARTS)
		on_fail(d, "onnx.size", "there are more than 2^26 parts");
	*vec_push(p->a, &p->v) = number_of(d, at, n);
}

/* At blanks, of which several are one; none is kept at the ends. */
static void split_at_blanks(node *d, parts *p, onnx_bytes s, int64_t most)
{
	const uint8_t *at = s.at, *end = s.at + s.n;

	for (int64_t k = 0;; k++) {
		const uint8_t *from;

		while (at < end && is_blank(*at))
			at++;
		from = at;
		while (at < end && (k == most || !is_blank(*at)))
			at++;
		if (at == from)
			return;
		while (k == most && at > from && is_blank(at[-1]))
			at--;
		add_part(d, p, from, (size_t)(at - from));
		if (k == most)
			return;
	}
}

static void split_at_text(
	node *d, parts *p, onnx_bytes s, const char *mark, int64_t most)
{
	size_t n = strlen(mark), from = 0;

	for (size_t i = 0; i + n <= s.n && most > 0;) {
		if (memcmp(s.at + i, mark, n) != 0) {
			i++;
			continue;
		}
		add_part(d, p, s.at + from, i - from);
		from = i += n;
		most--;
	}
	add_part(d, p, s.at + from, s.n - from);
}

void onnx_string_split(node *d)
{
	texts x = texts_in(d, 0);
	const char *mark = on_text(d, "delimiter", "");
	int64_t most = on_int(d, "maxsplit", INT64_MAX), widest = 0;
	int64_t *count = arena_array(d->x->a, int64_t, x.n + 1);
	int32_t *out, empty = number_of(d, "", 0), next = 0;
	list shape = on_shape_of(d, on_in(d, 0)), wide;
	parts p = {.a = arena_child(d->x->a)};

	if (x.type.rank == TN_MAX_RANK)
		on_fail(d, "onnx.rank", "the result has more than 8 axes");
	for (int64_t i = 0; i < x.n; i++) {
		int32_t before = p.v.n;

		if (mark[0] != '\0')
			split_at_text(d, &p, text_at(d, &x, i), mark,
				most < 0 ? INT64_MAX : most);
		else
			split_at_blanks(d, &p, text_at(d, &x, i),
				most < 0 ? INT64_MAX : most);
		count[i] = p.v.n - before;
		widest = count[i] > widest ? count[i] : widest;
	}
	if (widest > 0 && x.n > MAX_PARTS / widest)
		on_fail(d, "onnx.size", "the result has more than 2^26 strings");
	out = arena_array(d->x->a, int32_t, x.n * widest + 1);
	for (int64_t i = 0; i < x.n; i++)
		for (int64_t k = 0; k < widest; k++)
			out[i * widest + k] =
				k < count[i] ? p.v.at[next++] : empty;
	arena_free(p.a);
	wide = on_list_new(d, shape.n + 1, widest);
	for (int32_t i = 0; i < shape.n; i++)
		wide.at[i] = shape.at[i];
	set_strings(d, 0, wide, out);
	on_set(d, 1, on_constant(d, TN_I64, shape, count));
}

/* ---- StringNormalizer ---- */

/* Ranges of characters, in order. */
static const struct letters {
	uint32_t lo, hi;
	enum { NO_CASE, UPPER, LOWER, PAIRS, UNKNOWN } kind;
	int32_t to_other; /* UPPER, LOWER: this far to the other case */
} letters[] = {
	/* PAIRS: the first is upper case, the next one lower, and so on */
	{0, 0x40, NO_CASE, 0}, {0x41, 0x5a, UPPER, 32}, {0x5b, 0x60, NO_CASE, 0},
	{0x61, 0x7a, LOWER, -32}, {0x7b, 0xb4, NO_CASE, 0},
	{0xb5, 0xb5, LOWER, 0x39c - 0xb5}, {0xb6, 0xbf, NO_CASE, 0},
	{0xc0, 0xd6, UPPER, 32}, {0xd7, 0xd7, NO_CASE, 0},
	{0xd8, 0xde, UPPER, 32}, {0xdf, 0xdf, NO_CASE, 0},
	{0xe0, 0xf6, LOWER, -32}, {0xf7, 0xf7, NO_CASE, 0},
	{0xf8, 0xfe, LOWER, -32}, {0xff, 0xff, LOWER, 0x178 - 0xff},
	{0x100, 0x12f, PAIRS, 0}, {0x130, 0x131, UNKNOWN, 0},
	{0x132, 0x137, PAIRS, 0}, {0x138, 0x138, NO_CASE, 0},
	{0x139, 0x148, PAIRS, 0}, {0x149, 0x149, NO_CASE, 0},
	{0x14a, 0x177, PAIRS, 0}, {0x178, 0x178, UPPER, 0xff - 0x178},
	{0x179, 0x17e, PAIRS, 0}, {0x17f, 0x385, UNKNOWN, 0},
	{0x386, 0x386, UPPER, 38}, {0x387, 0x387, NO_CASE, 0},
	{0x388, 0x38a, UPPER, 37}, {0x38c, 0x38c, UPPER, 64},
	{0x38e, 0x38f, UPPER, 63}, {0x390, 0x390, NO_CASE, 0},
	{0x391, 0x3a1, UPPER, 32}, {0x3a3, 0x3ab, UPPER, 32},
	{0x3ac, 0x3ac, LOWER, -38}, {0x3ad, 0x3af, LOWER, -37},
	{0x3b0, 0x3b0, NO_CASE, 0}, {0x3b1, 0x3c1, LOWER, -32},
	{0x3c2, 0x3c2, LOWER, -31}, {0x3c3, 0x3cb, LOWER, -32},
	{0x3cc, 0x3cc, LOWER, -64}, {0x3cd, 0x3ce, LOWER, -63},
	{0x400, 0x40f, UPPER, 80}, {0x410, 0x42f, UPPER, 32},
	{0x430, 0x44f, LOWER, -32}, {0x450, 0x45f, LOWER, -80},
	{0x460, 0x481, PAIRS, 0}, {0x482, 0x489, NO_CASE, 0},
	{0x48a, 0x4bf, PAIRS, 0}, {0x4c0, 0x4c0, UPPER, 15},
	{0x4c1, 0x4ce, PAIRS, 0}, {0x4cf, 0x4cf, LOWER, -15},
	{0x4d0, 0x52f, PAIRS, 0}, {0x531, 0x556, UPPER, 48},
	{0x561, 0x586, LOWER, -48}, {0x590, 0x109f, NO_CASE, 0},
	{0x1100, 0x139f, NO_CASE, 0}, {0x1e00, 0x1e95, PAIRS, 0},
	{0x1ea0, 0x1eff, PAIRS, 0}, {0x2000, 0x20ff, NO_CASE, 0},
	{0x2190, 0x24b5, NO_CASE, 0}, {0x24ea, 0x2bff, NO_CASE, 0},
	{0x2e00, 0xa63f, NO_CASE, 0}, {0xac00, 0xff20, NO_CASE, 0},
	{0xff21, 0xff3a, UPPER, 32}, {0xff3b, 0xff40, NO_CASE, 0},
	{0xff41, 0xff5a, LOWER, -32}, {0xff5b, 0xffff, NO_CASE, 0},
	{0x1f000, 0x10ffff, NO_CASE, 0},
};
enum { N_LETTERS = (int)(sizeof letters / sizeof letters[0]) };

typedef enum change { AS_IT_IS, TO_UPPER, TO_LOWER } change;

/* The character in the other case, if it has one. */
static uint32_t in_case(const node *d, uint32_t c, change to)
{
	int32_t i = 0;
	const struct letters *l;

	while (i < N_LETTERS - 1 && c > letters[i].hi)
		i++;
	l = &letters[i];
	if (c < l->lo || l->kind == UNKNOWN)
		on_fail(d, "onnx.string", "the upper or lower case of character "
			"U+%04X is not known here: known are the alphabets of "
			"Latin, Greek, Cyrillic and Armenian, and scripts "
			"without cases", (unsigned)c);
	if (l->kind == PAIRS)
		return to == TO_LOWER ? c + ((c - l->lo) % 2 == 0)
				      : c - ((c - l->lo) % 2 == 1);
	if ((l->kind == UPPER && to == TO_LOWER) ||
		(l->kind == LOWER && to == TO_UPPER))
		return (uint32_t)((int32_t)c + l->to_other);
	return c;
}

static void put_utf8(str *s, uint32_t c)
{
	int32_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};

	str_addc(s, (char)(first[more] | c >> (6 * more)));
	for (int32_t i = more - 1; i >= 0; i--)
		str_addc(s, (char)(0x80 | ((c >> (6 * i)) & 0x3f)));
}

/* A string with its characters in that case; each stays one character. */
static int32_t changed(node *d, arena *a, int32_t number, change to)
{
	const uint8_t *at, *end;
	onnx_bytes from;
	str s;

	if (to == AS_IT_IS)
		return number;
	from = text_of(d, number);
	at = from.at;
	end = from.at + from.n;
	s = str_new(a);
	while (at < end)
		put_utf8(&s, in_case(d, onnx_utf8(&at), to));
	return number_of(d, s.at, s.n);
}

static change change_of(node *d)
{
	static const char *const other[] = {"tr", "az", "lt"};
	const char *action = on_text(d, "case_change_action", "NONE");
	const char *locale = on_text(d, "locale", "");

	for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
		if (strncmp(locale, other[i], 2) == 0 &&
			(locale[2] == '\0' || locale[2] == '_'))
			on_fail(d, "onnx.attr", "locale %.20s has letters "
				"whose cases differ from those of others: it "
				"is not supported", locale);
	if (!strcmp(action, "LOWER"))
		return TO_LOWER;
	if (!strcmp(action, "UPPER"))
		return TO_UPPER;
	if (strcmp(action, "NONE") != 0)
		on_fail(d, "onnx.attr", "case_change_action %.20s is not NONE, "
			"LOWER or UPPER", action);
	return AS_IT_IS;
}

void onnx_string_normalizer(node *d)
{
	texts x = texts_in(d, 0);
	change to = change_of(d), compare = TO_LOWER;
	int32_t n_stop = on_n_texts(d, "stopwords"), r = x.type.rank, n = 0;
	int32_t *out = arena_array(d->x->a, int32_t, x.n + 2);
	arena *tmp = arena_child(d->x->a);
	map *stop = map_new(tmp);
	list shape;

	if (r < 1 || r > 2 || (r == 2 && x.type.shape[0] != 1))
		on_fail(d, "onnx.shape", "the strings must be [C] or [1,C]");
	if (on_int(d, "is_case_sensitive", 0) != 0 || n_stop == 0)
		compare = AS_IT_IS;
	for (int32_t i = 0; i < n_stop; i++) {
		int32_t word = changed(d, tmp,
			on_string(d, on_text_at(d, "stopwords", i)), compare);

		map_set(stop, &word, sizeof word, 1);
	}
	for (int64_t i = 0; i < x.n; i++) {
		int32_t key = changed(d, tmp, x.at[i], compare);

		if (map_get(stop, &key, sizeof key, 0) == 0)
			out[n++] = changed(d, tmp, x.at[i], to);
	}
	arena_free(tmp);
	if (n == 0)
		out[n++] = number_of(d, "", 0);
	shape = on_list_new(d, r, 1);
	shape.at[r - 1] = n;
	set_strings(d, 0, shape, out);
}
