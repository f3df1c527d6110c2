/*
 * function.h: private to func/: the parts of a compiled function.
 *
 *   function.c   variants of calls, recording, calls
 *   variant.c    makes a variant of a recording
 *   report.c     prints it
 *   step.c       a call of it as a program
 */
#ifndef FUNC_FUNCTION_H
#define FUNC_FUNCTION_H

#include "func/func.h"
#include "tape/walk.h"
#include "value/capture.h"

typedef enum source_kind {
	FROM_ARG,	 /* argument i */
	FROM_STORAGE_OF, /* the whole storage of argument i */
	FROM_KNOWN,	 /* a storage from outside that the body uses */
	FROM_GRADIENT,	 /* the gradient collected for it */
	FROM_KEY,	 /* a new key for random numbers */
	FROM_VALUE,	 /* a constant */
	FROM_BODY	 /* outputs: computed in the body */
} source_kind;

typedef struct source {
	source_kind kind;
	int32_t arg;
	t_storage *s; /* FROM_ARG: the storage of the recording */
	t_value *v;
} source;

/* Result `out` is the next version of `to`; -1: it is dropped. */
typedef struct update {
	source to;
	int32_t out;
	bool is_leaf;
} update;

typedef struct output {
	source from;
	int32_t out;	/* FROM_BODY: result */
	int32_t same;	/* the first output with the same storage */
	t_view *view;
	ir_type type;
} output;

/* The state, when the body was recorded, of a storage from outside. */
typedef struct guard {
	t_storage *s;
	bool tracked, freed, leaf, grad;
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
	int32_t *rank; /* of the arguments in the first call */
	tensor_body *body;
	void *arg;
	VEC(char) key;
	VEC(bool) whole, writes; /* by argument */
	VEC(t_storage *) known;
	VEC(bool) known_writes;
	VEC(variant *) variant;
	int32_t n_traces;
	bool is_recorded; /* its body is being recorded */
	VEC(t_read) operand; /* of the current call */
};

/* function.c: the variant of a call with these arguments; records it if there is
 * none yet. */
variant *variant_find(tensor_function *f, tensor *const *in);

/* variant.c */
variant *variant_new(
	tensor_function *f, const t_capture *c, tensor *const *out);

/* Fails with the name of the function. */
_Noreturn void t_refuse(
	const tensor_function *f, const char *rule, const char *text);

#endif
