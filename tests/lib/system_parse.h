/*
 * system_parse.h: systems from the text that ir_system_print prints, for tests.
 */
#ifndef SYSTEM_PARSE_H
#define SYSTEM_PARSE_H

#include "system/system.h"

/* parse(print(s)) prints the same; throws system.* with a caret */
ir_system *ir_system_parse(arena *a, ix *x, const char *text, size_t n,
	const char *file);

#endif
