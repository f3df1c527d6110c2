/*
 * gradcheck.h: private to api/: gradients against differences.
 *
 *   gradcheck.c       one check: what is evaluated, compared, said
 *   gradcheck_call.c  functions and programs to be checked
 */
#ifndef API_GRADCHECK_H
#define API_GRADCHECK_H

#include "api/api.h"

typedef struct gradcheck_input {
	const char *name; /* NULL: it has none */
	ir_type type;
	void *data; /* its elements, in its dtype */
	double *x;  /* the same of a float; NULL: it is none */
	bool skip;  /* not compared */
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
	bool wide;	/* floats are in f64 */
	double unit;	/* rounding of the least precise float */
	uint64_t n_keys; /* random numbers are the same each time */
	/* of each order: weights of its outputs; NULL until they are known */
	double **weight[2];
	double **grad; /* by input */
	double worst, tolerance; /* tolerance of the worst */
	int64_t n_wrong;
} gradcheck;

/* k is filled up to o; the verdict, and k->r. Takes nothing with it. */
tn_status gradcheck_run(gradcheck *k);
/* Zeroed, in k's arena; NULL: there is none, and that is the diagnosis. */
void *gradcheck_room(gradcheck *k, int64_t n, size_t size);
/* A failure of this call: it does not stay in the context. */
tn_status gradcheck_refuse(gradcheck *k, const char *rule, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* What has failed in a call on tensors is a failure of this one, not theirs. */
tn_status gradcheck_rethrow(gradcheck *k);

#endif
