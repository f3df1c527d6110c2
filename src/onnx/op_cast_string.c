/*
 * op_cast_string.c: numbers as strings, and strings as numbers. Strings are known
 * when a program is built, like those of other operators that look at characters.
 *
 *     Cast([0.5, 1e20, -inf], to=string)       ["0.5", "1e+20", "-INF"]
 *     Cast(["3", "-7"], to=int32)              [3, -7]
 *     Cast(["1e-5", "+inf", "nan"], to=float)  [1e-5, inf, nan]
 *
 * A float has the fewest digits that read back to the same element of its type,
 * and a point or an exponent: plain from 1e-4 to 1e16, scientific beyond, as
 * NumPy writes it.
 */
#include "onnx/ops.h"
#include "onnx/quant.h"
#include "onnx/texts.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { MAX_STRINGS = 1 << 26, ROOM = 64, STEPS = 32 };

/* ---- numbers as strings ---- */

static double stored(tn_dtype t, double v)
{
	double room;

	dtype_store_f64(t, &room, 0, v);
	return dtype_load_f64(t, &room, 0);
}

/* Digits of a number that is neither 0 nor inf nor nan; returns its exponent. */
static int32_t digits_of(tn_dtype t, double v, char digit[ROOM], int32_t *n)
{
	char text[ROOM], *exponent;

	for (int32_t k = 0; k < 17; k++) {
		text_print(text, sizeof text, "%.*e", (int)k, fabs(v));
		if (stored(t, text_f64(text, NULL)) == fabs(v))
			break;
	}
	exponent = strchr(text, 'e');
	*n = 0;
	for (const char *c = text; c < exponent; c++)
		if (*c != '.')
			digit[(*n)++] = *c;
	return (int32_t)strtol(exponent + 1, NULL, 10);
}

/* "0.00125", "12.5", "1250.0" of the digits "125" */
static void put_plain(str *s, const char *digit, int32_t n, int32_t exponent)
{
	if (exponent < 0)
		str_add(s, "0.");
	for (int32_t i = exponent + 1; i < 0; i++)
		str_addc(s, '0');
	for (int32_t i = 0; i < n || i <= exponent + 1; i++) {
		if (i == exponent + 1 && exponent >= 0)
			str_addc(s, '.');
		str_addc(s, (char)(i < n ? digit[i] : '0'));
	}
}

static void put_real(str *s, tn_dtype t, double v)
{
	char digit[ROOM];
	int32_t n = 1, exponent = 0;

	if (isnan(v)) {
		str_add(s, "NaN");
		return;
	}
	if (signbit(v))
		str_addc(s, '-');
	if (isinf(v)) {
		str_add(s, "INF");
		return;
	}
	digit[0] = '0';
	if (fabs(v) > 0)
		exponent = digits_of(t, v, digit, &n);
	if (exponent >= -4 && exponent < 16) {
		put_plain(s, digit, n, exponent);
		return;
	}
	str_addc(s, digit[0]);
	if (n > 1) {
		str_addc(s, '.');
		str_addn(s, digit + 1, (size_t)n - 1);
	}
	str_printf(s, "e%c%02d", exponent < 0 ? '-' : '+', (int)abs(exponent));
}

int32_t string_of_numbers(node *d, int32_t i)
{
	int32_t x = on_in(d, i), *out;
	tn_dtype t = on_dt(d, x);
	int64_t n = on_numel(d, x);
	const void *data;
	str s;

	if (t == TN_BOOL)
		on_fail(d, "onnx.elem", "ONNX does not say which strings are "
			"bools");
	data = onnx_host(d->x, x);
	n = on_bound(d, "the number of strings", n, 0, MAX_STRINGS);
	texts_count(d, n * STEPS);
	out = arena_array(d->x->a, int32_t, n + 1);
	s = str_new(d->x->a);
	for (int64_t k = 0; k < n; k++) {
		s.n = 0;
		if (dtype_is_float(t))
			put_real(&s, t, dtype_load_f64(t, data, k));
		else if (t == TN_U64)
			str_printf(&s, "%" PRIu64, ((const uint64_t *)data)[k]);
		else
			str_printf(&s, "%" PRId64, dtype_load_i64(t, data, k));
		out[k] = onnx_string(d->x->m->strings, d->x->where,
			(onnx_bytes){(const uint8_t *)s.at, s.n});
	}
	return on_constant(d, TN_I32, on_shape_of(d, x), out);
}

/* ---- strings as numbers ---- */

static void not_number(const node *d, onnx_bytes text, tn_dtype t)
{
	on_fail(d, "onnx.string", "\"%.40s\" cannot be read as %s",
		(const char *)text.at, dtype_name(t));
}

/* Without case: inf, infinity, nan with a sign or none. */
static bool is_word(const char *at, double *v)
{
	static const struct {
		const char *word;
		double v;
	} words[] = {{"inf", INFINITY}, {"infinity", INFINITY}, {"nan", NAN}};
	bool minus = *at == '-';

	at += *at == '-' || *at == '+';
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		const char *w = words[i].word, *c = at;

		while (*w != '\0' && (*c == *w || *c == *w - 'a' + 'A')) {
			w++;
			c++;
		}
		if (*w == '\0' && *c == '\0') {
			*v = minus ? -words[i].v : words[i].v;
			return true;
		}
	}
	return false;
}

static double read_real(const node *d, onnx_bytes text, tn_dtype t)
{
	const char *at = (const char *)text.at;
	char *end;
	double v;

	if (is_word(at, &v))
		return v;
	/* not what strtod reads besides: blanks, and numbers of base 16 */
	if (text.n == 0 || strspn(at, "+-.0123456789eE") != text.n)
		not_number(d, text, t);
	v = text_f64(at, &end);
	if (end != at + text.n)
		not_number(d, text, t);
	return v;
}

static void read_whole(
	const node *d, onnx_bytes text, tn_dtype t, void *out, int64_t i)
{
	const char *at = (const char *)text.at;
	size_t sign = *at == '-' || *at == '+';
	bool minus = *at == '-';
	unsigned long long v;

	if (text.n == sign || strspn(at + sign, "0123456789") != text.n - sign)
		not_number(d, text, t);
	errno = 0;
	v = strtoull(at + sign, NULL, 10);
	if (errno != 0 || (minus && v > UINT64_C(1) << 63) ||
		(!minus && t != TN_U64 && v > INT64_MAX) ||
		(minus && t == TN_U64 && v > 0))
		not_number(d, text, t);
	if (t == TN_U64) {
		((uint64_t *)out)[i] = v;
		return;
	}
	dtype_store_i64(t, out, i, (int64_t)(minus ? 0 - v : v));
	if (dtype_load_i64(t, out, i) != (int64_t)(minus ? 0 - v : v))
		not_number(d, text, t);
}

int32_t numbers_of_string(node *d, int32_t i, tn_dtype to)
{
	texts x = texts_in(d, i);
	void *out;

	if (to == TN_BOOL)
		on_fail(d, "onnx.elem", "ONNX does not say which strings are "
			"bools");
	out = arena_alloc(d->x->a, (size_t)x.n + 1, dtype_size(to));
	for (int64_t k = 0; k < x.n; k++) {
		onnx_bytes text = text_at(d, &x, k);

		texts_count(d, STEPS);
		if (dtype_is_float(to))
			dtype_store_f64(to, out, k, read_real(d, text, to));
		else
			read_whole(d, text, to, out, k);
	}
	return on_constant(d, to, on_shape_of(d, on_in(d, i)), out);
}
