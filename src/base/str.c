/*
 * str.c: text that grows in an arena. s.at is terminated at every moment and
 * holds s.n bytes before the terminator.
 *
 *     str s = str_new(a);
 *     str_add(&s, "x: f32");
 *     str_shape(&s, shape, 2);        "x: f32[2,3]"
 *
 * Nothing here depends on the locale of the process.
 */
#include "base/base.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* room for `more` bytes and the terminator */
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
	n = vsnprintf(s->at + s->n, s->cap - s->n, fmt, again);
	va_end(again);
	if (n < 0) {
		s->at[s->n] = '\0';
		return;
	}
	if ((size_t)n >= s->cap - s->n) {
		s->at[s->n] = '\0'; /* whole again, should memory run out */
		reserve(s, (size_t)n);
		vsnprintf(s->at + s->n, s->cap - s->n, fmt, ap);
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
 * 15 digits always survive the way text -> double -> text, so that a number
 * someone wrote with at most 15 comes back as written; 17 always survive
 * double -> text -> double. Subnormals have fewer digits and start at 1.
 */
void str_double(str *s, double v)
{
	char text[40];
	int digits = fabs(v) < 1e-300 ? 1 : 15;

	if (isnan(v) || isinf(v)) {
		str_add(s, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
		return;
	}
	for (; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	for (char *c = text; *c != '\0'; c++) /* the locale's decimal point */
		if (strchr("0123456789+-e", *c) != NULL)
			str_addc(s, *c);
		else if (c == text || strchr("0123456789", c[-1]) != NULL)
			str_addc(s, '.');
}

size_t parse_f64(const char *s, size_t n, double *out)
{
	const struct lconv *lc = localeconv();
	const char *point = lc->decimal_point;
	char text[400], *end;
	size_t i = 0, used = 0, at_point = n, n_point = strlen(point);

	/* [-+] digits [. digits] [e [-+] digits]: nothing else goes to strtod */
	if (i < n && (s[i] == '-' || s[i] == '+'))
		i++;
	for (size_t part = 0; part < 2; part++) {
		while (i < n && s[i] >= '0' && s[i] <= '9')
			i++, used++;
		if (part == 0 && i < n && s[i] == '.')
			at_point = i++;
		else
			break;
	}
	if (used == 0)
		return 0;
	if (i < n && (s[i] == 'e' || s[i] == 'E')) {
		size_t j = i + 1;

		if (j < n && (s[j] == '-' || s[j] == '+'))
			j++;
		if (j < n && s[j] >= '0' && s[j] <= '9') {
			while (j < n && s[j] >= '0' && s[j] <= '9')
				j++;
			i = j;
		}
	}
	if (i + n_point >= sizeof text)
		return 0;
	if (at_point >= i) {
		memcpy(text, s, i);
		text[i] = '\0';
	} else {
		memcpy(text, s, at_point);
		memcpy(text + at_point, point, n_point);
		memcpy(text + at_point + n_point, s + at_point + 1,
			i - at_point - 1);
		text[i - 1 + n_point] = '\0';
	}
	*out = strtod(text, &end);
	return i;
}
