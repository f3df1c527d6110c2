/*
 * gradcheck.h: private to api/: compares gradients with finite differences.
 *
 *   gradcheck.c       one check: evaluates, compares, reports
 *   gradcheck_call.c  checks of functions and of programs
 */
#ifndef API_GRADCHECK_H
#define API_GRADCHECK_H

#include "api/api.h"

typedef struct gradcheck_input {
	const char *name; /* or NULL */
	ir_type type;
	void *data; /* its elements, in its dtype */
	double *x;  /* the same in f64; NULL: it is not a float */
	bool skip;  /* do not compare it */
} gradcheck_input;

typedef struct gradcheck {
	tn_context *c;
	arena *a;
	tn_body *body;
	void *user;
	int32_t n_in, n_out;
	gradcheck_input *in;
	tn_gradcheck_options o;
	tn_gradcheck_result r;
	bool wide;	/* all floats are in f64 */
	double unit;	/* rounding error of the least precise float */
	uint64_t n_keys; /* number of keys, so that random numbers repeat */
	/* by order: weights of its outputs; NULL until they are drawn */
	double **weight[2];
	double **grad; /* by input */
	double worst, tolerance; /* tolerance of the worst */
	int64_t n_wrong;
} gradcheck;

/* k is filled up to o. Returns the verdict and fills k->r. */
tn_status gradcheck_run(gradcheck *k);
/* Zeroed memory in k's arena; NULL: there is none, with a diagnosis. */
void *gradcheck_room(gradcheck *k, int64_t n, size_t size);
/* Fails; the failure is not sticky in the context. */
tn_status gradcheck_refuse(gradcheck *k, const char *rule, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Turns a sticky failure of calls on tensors into one of this call. */
tn_status gradcheck_rethrow(gradcheck *k);

#endif
