/*
 * nn_set.h: contexts and sets of parameters of the tests of layers.
 */
#ifndef NN_SET_H
#define NN_SET_H

#include "unit.h"

enum { ROOM = 1024 }; /* elements of a tensor, at most */

static inline tn_context *context(bool interp)
{
	tn_options o = TN_OPTIONS_INIT;
	tn_context *c;

	o.interp = interp;
	assert_int_equal(tn_context_new(&c, &o), TN_OK);
	return c;
}

static inline tn_params *set(tn_context *c)
{
	tn_params *p;

	assert_int_equal(tn_params_new(&p, c), TN_OK);
	return p;
}

#endif
