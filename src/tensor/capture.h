/*
 * capture.h: private to tensor/: recording that is kept instead of computed.
 *
 *   capture.c    what a function reads from outside, and what it leaves
 *   function.c   compiled functions: their traces, calls of them
 *   trace.c      the backward of a trace
 */
#ifndef TENSOR_CAPTURE_H
#define TENSOR_CAPTURE_H

#include "tensor/local.h"

/* A storage that the function reads or writes; its version while it is recorded. */
typedef struct t_bound {
	t_storage *s;
	t_value *was;	/* outside */
	t_value *first; /* stands for it inside */
	t_value *last;	/* newest inside; first: it was not written */
	t_value *grad_was, *grad_first, *grad_last; /* collected so far; NULL: nothing */
	int64_t bound_was;
	int32_t arg;   /* it stands for this argument; -1: for s itself */
	bool is_whole; /* for its storage */
} t_bound;

struct t_capture {
	t_capture *outer;
	int32_t depth; /* of recordings in each other: 1 */
	int64_t id;
	bool is_walk; /* values only: nothing is bound */
	VEC(t_call *) call;
	VEC(loc) at; /* of each */
	const char *file, *file_copy; /* the last one */
	VEC(t_bound) bound;
	VEC(t_value *) key; /* of random numbers: a new one for each call */
};

/* Throws [compile.depth] when one more recording would be too many. */
void capture_check_depth(const tensors *t);
void capture_begin(tensors *t, t_capture *c, bool is_walk);
/* A new storage inside that stands for argument number `arg`, of its own. */
t_storage *capture_argument(tensors *t, t_storage *outside, int32_t arg,
	const ir_type *type, bool is_whole);
/* A value for a new key: inside, one that each call gives anew. */
t_value *capture_key(tensors *t);
/* The storages are again what they were; last and grad_last are filled. */
void capture_end(tensors *t, t_capture *c);
/* After capture_end, when the calls are not kept. */
void capture_drop(tensors *t, t_capture *c);

/* trace.c: from calls and results to a trace: in[] are the values that calls
 * read and none of them makes; those in `given` come first, read or not. */
t_trace *trace_new(tensors *t, const t_capture *c, int32_t n_given,
	t_value *const *given, int32_t n_out, t_value *const *out,
	const char *name);

/* c is one of its calls: a trace with regions is run in blocks (region.h). */
void trace_note_region(tensors *t, t_trace *f, const t_call *c);

#endif
