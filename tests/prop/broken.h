/*
 * broken.h: equations that are made wrong on purpose, so that tests see that
 * something is found.
 */
#ifndef BROKEN_H
#define BROKEN_H

#include "system/system.h"

/* The value less 1, if it is a float. */
static void broken_value(ir_system *s, const expr **body)
{
	const expr *arg[2] = {*body, NULL};

	if ((*body)->dtype != TN_F32 && (*body)->dtype != TN_F64)
		return;
	arg[1] = ex_const_f(s, (*body)->dtype, 1);
	*body = ex_call(s, ir_scalar_find("sub", 3), arg);
}

static void broken_equation(ir_system *s, sys_eqn *e)
{
	if (e->monoid == IR_SET && e->opaque == NULL && !e->is_view)
		broken_value(s, &e->body[0]);
}

#endif
