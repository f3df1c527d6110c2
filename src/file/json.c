/*
 * json.c: reads tokens of JSON from untrusted bytes.
 *
 *     {"a\u0062": [3, 5]}     json_want '{'   json_string "ab"   json_want ':'
 *                             json_want '['   json_natural 3     json_more ..
 */
#include "file/json.h"

_Noreturn void json_fail(const json_text *j, const char *what)
{
	str s = str_new(j->a);

	if (j->inside != NULL) {
		str_add(&s, "in ");
		str_json(&s, j->inside);
		str_add(&s, ": ");
	}
	env_fail(arena_env(j->a), TN_EINVAL, j->rule, (loc){.file = j->path},
		"%.300sexpected %s at byte %zu of the header", s.at, what,
		(size_t)(j->at - j->from));
}

static void skip_space(json_text *j)
{
	while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' ||
					 *j->at == '\t' || *j->at == '\r'))
		j->at++;
}

bool json_take(json_text *j, char c)
{
	skip_space(j);
	if (j->at == j->end || *j->at != c)
		return false;
	j->at++;
	return true;
}

void json_want(json_text *j, char c)
{
	const char what[] = {'\'', c, '\'', '\0'};

	if (!json_take(j, c))
		json_fail(j, what);
}

bool json_more(json_text *j, char end)
{
	const char what[] = {'\'', ',', '\'', ' ', 'o', 'r', ' ', '\'', end,
		'\'', '\0'};

	if (json_take(j, end))
		return false;
	if (!json_take(j, ','))
		json_fail(j, what);
	return true;
}

/* ---- strings ---- */

/* Number of bytes of the code point at p; 0: not valid UTF-8. */
static size_t utf8_bytes(const unsigned char *p, size_t n)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} form[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800},
		{0xf8, 0xf0, 0x10000}};

	for (size_t k = 0; k < 4; k++) {
		uint32_t c = p[0] & (unsigned char)~form[k].mask;

		if ((p[0] & form[k].mask) != form[k].lead)
			continue;
		if (k >= n)
			return 0;
		for (size_t i = 1; i <= k; i++) {
			if ((p[i] & 0xc0) != 0x80)
				return 0;
			c = c << 6 | (p[i] & 0x3fu);
		}
		return c >= form[k].least && c <= 0x10ffff &&
				(c < 0xd800 || c > 0xdfff)
			? k + 1
			: 0;
	}
	return 0;
}

bool json_is_utf8(const char *text, size_t n)
{
	const unsigned char *p = (const unsigned char *)text;

	for (size_t i = 0, k; i < n; i += k) {
		k = utf8_bytes(p + i, n - i);
		if (k == 0)
			return false;
	}
	return true;
}

static void add_utf8(str *s, uint32_t c)
{
	if (c < 0x80) {
		str_addc(s, (char)c);
		return;
	}
	if (c < 0x800) {
		str_addc(s, (char)(0xc0 | c >> 6));
	} else if (c < 0x10000) {
		str_addc(s, (char)(0xe0 | c >> 12));
		str_addc(s, (char)(0x80 | (c >> 6 & 0x3f)));
	} else {
		str_addc(s, (char)(0xf0 | c >> 18));
		str_addc(s, (char)(0x80 | (c >> 12 & 0x3f)));
		str_addc(s, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	str_addc(s, (char)(0x80 | (c & 0x3f)));
}

static uint32_t hex4(json_text *j)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++, j->at++) {
		char c = j->at < j->end ? *j->at : '\0';

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint32_t)(c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			v = v << 4 | (uint32_t)(c - 'A' + 10);
		else
			json_fail(j, "four hexadecimal digits");
	}
	return v;
}

/*
 * Reads \uXXXX; a surrogate pair such as \uD83D\uDE00 is one code point, and
 * half a pair is an error.
 */
static void take_unicode(json_text *j, str *s)
{
	uint32_t c = hex4(j), low;

	if (c >= 0xd800 && c <= 0xdbff) {
		if (j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u')
			json_fail(j, "the second half of a surrogate pair");
		j->at += 2;
		low = hex4(j);
		if (low < 0xdc00 || low > 0xdfff)
			json_fail(j, "the second half of a surrogate pair");
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	} else if ((c >= 0xdc00 && c <= 0xdfff) || c == 0) {
		json_fail(j, "a valid character");
	}
	add_utf8(s, c);
}

static void take_escape(json_text *j, str *s)
{
	static const char name[] = "\"\\/bfnrt", is[] = "\"\\/\b\f\n\r\t";
	char c = j->at < j->end ? *j->at : '\0';
	const char *found = c != '\0' ? strchr(name, c) : NULL;

	if (c != 'u' && found == NULL)
		json_fail(j, "an escape of JSON");
	j->at++;
	if (c == 'u')
		take_unicode(j, s);
	else
		str_addc(s, is[found - name]);
}

char *json_string(json_text *j, const char *what)
{
	str s = str_new(j->a);

	if (!json_take(j, '"'))
		json_fail(j, what);
	for (;;) {
		size_t n;

		if (j->at == j->end)
			json_fail(j, "the end of a string");
		if (*j->at == '"')
			break;
		if (*j->at == '\\') {
			j->at++;
			take_escape(j, &s);
			continue;
		}
		n = utf8_bytes((const unsigned char *)j->at,
			(size_t)(j->end - j->at));
		if (n == 0 || (unsigned char)*j->at < 0x20)
			json_fail(j, "a valid character");
		str_addn(&s, j->at, n);
		j->at += n;
	}
	j->at++;
	return s.at;
}

int64_t json_natural(json_text *j, const char *what)
{
	const char *from;
	int64_t v = 0;

	skip_space(j);
	from = j->at;
	for (; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++)
		if (!mul_ok(v, 10, &v) || !add_ok(v, *j->at - '0', &v))
			json_fail(j, "a number below 2^63");
	if (j->at == from || (*from == '0' && j->at - from > 1))
		json_fail(j, what);
	return v;
}
