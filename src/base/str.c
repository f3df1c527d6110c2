/*
 * str.c: text that grows in an arena. s.at is always terminated, and has s.n
 * bytes before the terminator.
 *
 *     str s = str_new(a);
 *     str_add(&s, "x: f32");
 *     str_shape(&s, shape, 2);        "x: f32[2,3]"
 *
 * Nothing here depends on the locale of the process.
 */
#include "base/base.h"

#include <inttypes.h>
#include <math.h>

/* Makes room for `more` bytes and the terminator. */
static void reserve(str *s, size_t more)
{
	size_t cap;
	char *at;

	if (more < s->cap - s->n)
		return;
	if (more > SIZE_MAX / 4 || s->cap > SIZE_MAX / 4)
		env_fail(arena_env(s->a), TN_ENOMEM, "memory", (loc){0},
			"a text of more than %zu bytes", SIZE_MAX / 4);
	cap = s->cap * 2;
	if (cap < s->n + more + 1)
		cap = s->n + more + 1;
	at = arena_alloc(s->a, cap, 1);
	memcpy(at, s->at, s->n);
	s->at = at;
	s->cap = cap;
}

str str_new(arena *a)
{
	str s = {.a = a, .cap = 32};

	s.at = arena_alloc(a, s.cap, 1);
	return s;
}

void str_addn(str *s, const char *text, size_t n)
{
	reserve(s, n);
	if (n > 0)
		memcpy(s->at + s->n, text, n);
	s->n += n;
	s->at[s->n] = '\0';
}

void str_add(str *s, const char *text)
{
	str_addn(s, text, strlen(text));
}

void str_addc(str *s, char c)
{
	str_addn(s, &c, 1);
}

void str_vprintf(str *s, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = text_vprint(s->at + s->n, s->cap - s->n, fmt, again);
	va_end(again);
	if (n < 0) {
		s->at[s->n] = '\0';
		return;
	}
	if ((size_t)n >= s->cap - s->n) {
		/* keeps the text terminated if memory runs out */
		s->at[s->n] = '\0';
		reserve(s, (size_t)n);
		text_vprint(s->at + s->n, s->cap - s->n, fmt, ap);
	}
	s->n += (size_t)n;
}

void str_printf(str *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	str_vprintf(s, fmt, ap);
	va_end(ap);
}

void str_shape(str *s, const int64_t *shape, int32_t rank)
{
	str_addc(s, '[');
	for (int32_t i = 0; i < rank; i++)
		str_printf(s, "%s%" PRId64, i > 0 ? "," : "", shape[i]);
	str_addc(s, ']');
}

void str_json(str *s, const char *text)
{
	static const char *const short_form[0x20] = {['\b'] = "\\b",
		['\f'] = "\\f",
		['\n'] = "\\n",
		['\r'] = "\\r",
		['\t'] = "\\t"};

	str_addc(s, '"');
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			str_addc(s, '\\');
		if (c >= 0x20 && c != 0x7f)
			str_addc(s, *text);
		else if (c < 0x20 && short_form[c] != NULL)
			str_add(s, short_form[c]);
		else
			str_printf(s, "\\u%04x", c);
	}
	str_addc(s, '"');
}

/*
 * Uses the fewest digits, from 15 on, that convert back to v. A number that was
 * written with at most 15 digits is printed as written; 17 digits always
 * suffice. Subnormals have fewer digits, so for them the search starts at 1.
 */
void str_double(str *s, double v)
{
	char text[40];
	int n_digits = fabs(v) < 1e-300 ? 1 : 15;

	if (isnan(v) || isinf(v)) {
		str_add(s, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
		return;
	}
	for (; n_digits <= 17; n_digits++) {
		text_print(text, sizeof text, "%.*g", n_digits, v);
		if (text_f64(text, NULL) == v)
			break;
	}
	str_add(s, text);
}
