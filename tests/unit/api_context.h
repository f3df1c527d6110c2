/*
 * api_context.h: what tests of public functions call them with.
 */
#ifndef API_CONTEXT_H
#define API_CONTEXT_H

#include <tenon.h>

#include <stdlib.h>

static inline tn_tensor *new_tensor(tn_context *c)
{
	static const float data[6] = {0.5f, 1, -1, 2, 3, 0.25f};
	const int64_t shape[] = {2, 3};

	return tn_tensor_new(c, TN_F32, 2, shape, data);
}

static inline tn_context *new_context(void)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = true;
	o.threads = 1;
	if (tn_context_new(&c, &o) < 0)
		exit(3);
	return c;
}

#endif
