/*
 * function.h: private to tensor/: what a compiled function is made of.
 *
 *   function.c   kinds of arguments, recording, calls
 *   variant.c    from a recording to a variant
 *   report.c     as text
 */
#ifndef TENSOR_FUNCTION_H
#define TENSOR_FUNCTION_H

#include "tensor/capture.h"

typedef enum source_kind {
	FROM_ARG,	 /* argument i, seen as it is */
	FROM_STORAGE_OF, /* the whole storage of argument i */
	FROM_KNOWN,	 /* a storage that the body knows */
	FROM_GRADIENT,	 /* what was collected for it */
	FROM_KEY,	 /* a new key of random numbers */
	FROM_VALUE,	 /* a constant */
	FROM_BODY	 /* outputs: made in the body */
} source_kind;

typedef struct source {
	source_kind kind;
	int32_t arg;
	t_storage *s; /* FROM_ARG: as the body saw it */
	t_value *v;
} source;

/* The next version of what `to` is: result `out`; -1: none, forgotten. */
typedef struct update {
	source to;
	int32_t out;
	bool is_leaf;
} update;

typedef struct output {
	source from;
	int32_t out;	/* FROM_BODY: result */
	int32_t same;	/* the first output on that storage */
	t_view *view;
	ir_type type;
} output;

/* What a storage that the body knows was when it was recorded. */
typedef struct guard {
	t_storage *s;
	bool tracked, leaf, grad;
} guard;

typedef struct variant {
	const char *key;
	size_t n_key;
	t_trace *trace;
	source *from; /* by operand of the trace */
	VEC(update) write, grad;
	VEC(guard) guard;
	output *out;
} variant;

struct tensor_function {
	tensors *t;
	arena *a;
	const char *name;
	int32_t n_in, n_out;
	int32_t *rank; /* of the arguments of the first call */
	tensor_body *body;
	void *arg;
	VEC(char) key;
	VEC(bool) whole, writes; /* by argument */
	VEC(t_storage *) known;
	VEC(bool) known_writes;
	VEC(variant *) variant;
	int32_t n_traces;
	bool is_recorded; /* its body runs now */
	VEC(t_read) operand; /* of the call at hand */
};

/* variant.c */
variant *variant_new(
	tensor_function *f, const t_capture *c, tensor *const *out);

#endif
