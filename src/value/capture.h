/*
 * capture.h: private to value/, tape/ and func/: recording the body of a function:
 * which storages it reads and writes.
 */
#ifndef VALUE_CAPTURE_H
#define VALUE_CAPTURE_H

#include "value/node.h"

/* A storage that the function reads or writes, and its versions. */
typedef struct t_bound {
	t_storage *s;
	t_value *was;	/* outside */
	t_value *first; /* the value that replaces it inside */
	t_value *last;	/* newest version inside; first if it was not written */
	t_value *grad_was, *grad_first, *grad_last; /* the same for its gradient, or NULL */
	int64_t bound_was;
	int32_t arg;   /* it replaces this argument; -1: s itself */
	bool is_whole; /* .. the whole storage of the argument */
} t_bound;

struct t_capture {
	t_capture *outer;
	int32_t depth; /* of nested recordings; the outermost has 1 */
	int64_t id;
	bool is_walk; /* of values only: it binds no storages */
	int32_t scopes, steps, no_grad; /* that are open when it begins */
	int64_t step;
	VEC(t_call *) call;
	VEC(loc) at; /* of each call */
	const char *file, *file_copy; /* the last one */
	VEC(t_bound) bound;
	VEC(t_value *) key; /* keys for random numbers: new ones for each call */
};

/* Throws [compile.depth] if recordings are nested too deep. */
void capture_check_depth(const tensors *t);
void capture_begin(tensors *t, t_capture *c, bool is_walk);
/* A new storage inside that replaces argument number `arg`. */
t_storage *capture_argument(tensors *t, t_storage *outside, int32_t arg,
	const ir_type *type, bool is_whole);
/* A value for a new key; inside a recording, each call supplies a new one. */
t_value *capture_key(tensors *t);
/* What was entered and not left since it began: NULL, or what must not be so. */
const char *capture_open(const tensors *t, const t_capture *c);
/* Restores the storages and the step; fills last and grad_last. */
void capture_end(tensors *t, t_capture *c);
/* After capture_end, if the calls are not needed. */
void capture_drop(tensors *t, t_capture *c);

/* Makes a trace of calls and results. Its in[] are the values in
 * `given`, then the other values that calls read and that no call computes. */
t_trace *trace_new(tensors *t, const t_capture *c, int32_t n_given,
	t_value *const *given, int32_t n_out, t_value *const *out,
	const char *name);

/* Notes that c is one of its calls: a trace with regions runs in blocks
 * (func/region.h). */
void trace_note_region(t_trace *f, const t_call *c);

#endif
