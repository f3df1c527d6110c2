/*
 * number.c: converts numbers to text and back, independently of the locale.
 *
 * If a host has called setlocale, strtod may stop at the point of 1.5, and
 * printf may write 0x1,8p+1. These functions use the locale "C", for this
 * thread and this call only. No other file reads or writes floating-point text,
 * as tools/numbers.sh checks.
 *
 *     text_f64("1.5", NULL) == 1.5        text_print(t, n, "%g", 1.5): "1.5"
 */
#include "base/base.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

/* The locale "C", created once; NULL: that failed. */
static locale_t plain(void)
{
	static locale_t made;
	locale_t have = __atomic_load_n(&made, __ATOMIC_ACQUIRE), none = NULL;

	if (have != NULL)
		return have;
	have = newlocale(LC_ALL_MASK, "C", NULL);
	if (have != NULL && !__atomic_compare_exchange_n(&made, &none, have,
				    false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		freelocale(have);
		have = none;
	}
	return have;
}

static locale_t enter(void)
{
	locale_t c = plain();

	return c != NULL ? uselocale(c) : NULL;
}

static void leave(locale_t old)
{
	if (old != NULL)
		uselocale(old);
}

double text_f64(const char *text, char **end)
{
	locale_t old = enter();
	double v = strtod(text, end);

	leave(old);
	return v;
}

int text_vprint(char *out, size_t n, const char *fmt, va_list ap)
{
	locale_t old = enter();
	int written = vsnprintf(out, n, fmt, ap);

	leave(old);
	return written;
}

int text_print(char *out, size_t n, const char *fmt, ...)
{
	va_list ap;
	int written;

	va_start(ap, fmt);
	written = text_vprint(out, n, fmt, ap);
	va_end(ap);
	return written;
}
