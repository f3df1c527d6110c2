/*
 * line.c: one line of a text, as far to the right as the blocks that are open.
 */
#include "target/c/text.h"

void c_line(printer *p, const char *fmt, ...)
{
	va_list ap;

	for (int32_t i = 0; i < p->depth; i++)
		str_addc(p->out, '\t');
	va_start(ap, fmt);
	str_vprintf(p->out, fmt, ap);
	va_end(ap);
	str_addc(p->out, '\n');
}
