/*
 * function_prop.h: the bodies of function_prop.c (function_body.c), and what
 * they and its two sides share.
 */
#ifndef FUNCTION_PROP_H
#define FUNCTION_PROP_H

#include "api/api.h"

enum { PARAMS = 3, ARGS = 3, OUTS = 2, POOL = 24, ELEMS = 6, BIG = 12 };

typedef struct dice {
	uint64_t state;
} dice;

uint64_t mix(uint64_t z);
int32_t below(dice *d, int32_t n);

/* One side: a context with its parameters. */
typedef struct side {
	tn_context *c;
	tn_tensor *param[PARAMS], *big; /* [2,3]; [4,3] */
	tn_tensor *at; /* an index, 0 but in steps that fail */
	int64_t n_failed;
	tn_function *f[2];
	bool compiled, regions; /* by tn_compile; by tn_cond ... or by if ... */
	bool with_regions;	/* there are conditions and loops at all */
	bool second;		/* the loss has the gradient's norm in it */
	bool says_no;		/* a second gradient was refused */
	struct body {
		struct side *of;
		uint64_t seed;
		int32_t number;
	} body[2];
} side;

extern const int64_t shape23[2], shape32[2], shape43[2], perm[2];

/* x as [2,3], whatever it is */
tn_tensor *as_matrix(tn_tensor *x);
/* A write to the whole or to a row of x, seen somehow. */
void write_to(dice *d, tn_tensor *x, tn_tensor *v);
/* Does what it writes depend on the index? */
bool has_index(const struct body *b);
/* The body with the number and the seed of `user`, a struct body. */
tn_body body;

#endif
