/*
 * tensor.h: the door of tensor/: what calls on tensors record, and how it is
 * evaluated.
 *
 *   value    element data, or the call that will make it. Never changes.
 *   storage  what a handle names: its newest value. A write gives it the next.
 *   view     movement rows between a storage and a handle; they cost nothing
 *   handle   (storage, view): always the newest value, seen through the view
 *
 *   y = tensor_call(t, add, x, z)      recorded; nothing runs
 *   tensor_read(t, y, ..)              flush: one program, compiled once
 *
 * A flush turns the calls that are needed into an ir_program whose inputs are
 * the values at hand; programs of equal structure are compiled once.
 */
#ifndef TENSOR_H
#define TENSOR_H

#include "program/program.h"

typedef struct tensors tensors; /* everything of one context */
typedef struct tensor tensor;	/* a handle */

/*
 * Where the values of a program lie when processes share them: a place is a
 * number that the backend knows; 0 is all of it on every process.
 */
typedef struct tensor_placing {
	const int32_t *in;   /* by input */
	int32_t n_want;
	const int32_t *want; /* by output: 1 + place; 0: wherever it is made */
	int32_t n_out;	     /* outputs from this one on only say where */
	int32_t *out;	     /* by output: filled in */
	uint64_t hash;	     /* of the structure */
} tensor_placing;

/* Who compiles and runs a program. */
typedef struct tensor_backend {
	void *arg;
	/* in arena a; throws. w NULL: everything is whole */
	void *(*compile)(void *arg, arena *a, ir_program *p, tensor_placing *w);
	/* version: by input, a name of its elements, of no others; 0: it has
	 * none, since somebody else may write there. What throws leaves params
	 * as they were */
	void (*run)(void *arg, void *compiled, const void *const *in,
		const int64_t *version, void *const *out);
	/* the calls of the program that the last run of it failed in; 0: they
	 * are not known. NULL: they never are */
	int32_t (*failed)(void *arg, void *compiled, const int32_t **call);
	int64_t (*key)(void *arg); /* the next one of random numbers */
	/* of the part that this process has; NULL: there is one process */
	size_t (*bytes)(void *arg, int32_t place, const ir_type *type);
	/* all processes together */
	void (*move)(void *arg, const ir_type *type, int32_t from,
		const void *data, int32_t to, void *out);
} tensor_backend;

tensors *tensors_new(arena *a, const tensor_backend *b);
ir_table *tensors_table(tensors *t);
/* For tests: memory that nobody wants any more is overwritten. */
void tensors_poison(tensors *t);
/* Rules of docs/compile.md that a test can drop. */
enum tensor_rule {
	TENSOR_RULE_VERSION = 1, /* a version is not one that a write followed */
	TENSOR_RULE_STORED,  /* what was written stands there until a write */
	TENSOR_RULE_OVERLAP, /* overlapping arguments are a kind of their own */
	TENSOR_RULE_KNOWN,   /* so is one in a storage that the body knows */
	TENSOR_RULE_OUTPUT,  /* outputs of one storage stay on one */
	TENSOR_RULE_LEAF,    /* what leaves inside collect goes to the storage */
	TENSOR_RULE_GUARD,   /* known tensors with and without gradients differ */
	/* of regions, from here on */
	TENSOR_RULE_TAKE,    /* memory is taken only from what nobody asks for */
	TENSOR_RULE_ROUNDS,  /* a body is recorded as it is in later rounds */
	TENSOR_RULE_BRANCH   /* outputs are storages only if both branches agree */
};
/* For tests: without that rule. */
void tensors_drop_rule(tensors *t, enum tensor_rule rule);
/* So much may be kept for gradients, if computing again helps; -1: any. */
void tensors_limit(tensors *t, int64_t bytes);

/* Where in the user's text a call stands; file is borrowed for ever. */
void tensors_site(tensors *t, const char *file, int32_t line);

/* ---- handles: all throw TN_EINVAL [tensor.handle] for what is none ---- */

/*
 * data NULL: zeros. is_external: a parameter, whose memory stays in place; a
 * leaf if it is a float, unless there is no gradient at the time.
 */
tensor *tensor_new(tensors *t, const ir_type *type, const void *data,
	bool is_external, const char *name);
/* memory of somebody else, aligned to its elements; release when not needed */
tensor *tensor_import(tensors *t, const ir_type *type, void *data,
	void (*release)(void *arg), void *arg);
void tensor_drop(tensors *t, tensor *x);
/* Dropped but for the handle, which says so when it is used. */
void tensor_give_away(tensors *t, tensor *x);
bool tensor_is_valid(const tensor *x);
bool tensor_is_invalid(const tensor *x); /* what a failed call gives */
tensor *tensor_invalid(tensors *t);
void *tensor_owner(const tensor *x); /* backend.arg; NULL: of nobody */
/*
 * What callers hold is a number that no other handle gets again. Of one that
 * was dropped, whose scope was left or whose context has ended: a tensor that
 * is not valid, which every call refuses. NULL: NULL.
 */
tn_tensor *tensor_handle(const tensor *x);
tensor *tensor_of_handle(const tn_tensor *h);
const ir_type *tensor_type_of(const tensor *x); /* of a valid one */
const char *tensor_name_of(const tensor *x);

/* ---- scopes ---- */

void tensor_scope_enter(tensors *t);
void tensor_scope_leave(tensors *t);
/* belongs to the scope around the innermost one from now on */
void tensor_keep(tensors *t, tensor *x);

/* ---- recording ---- */

/* A call of a row: out[] gets a handle per result; returns how many. */
int32_t tensor_call(tensors *t, const ir_row *row, int32_t n,
	tensor *const *x, int32_t n_attrs, const ir_attr *attr, tensor **out,
	int32_t n_out);
/* What x stands for becomes v, of the same shape and dtype. */
void tensor_write(tensors *t, tensor *x, tensor *v);
/*
 * The same with dense, row-major data and without a gradient, at once. False:
 * nothing has happened, since x is a part or not computed: then it must be a
 * write.
 */
bool tensor_set(tensors *t, tensor *x, const void *data, size_t n_bytes);

/* Between 1 and -1: writes that go back together when one of them fails. */
void tensor_step(tensors *t, int32_t step);

/* ---- evaluating ---- */

void tensor_eval(tensors *t, tensor *const *x, int32_t n);
/* dense and row-major; n_bytes must be its size */
void tensor_read(tensors *t, tensor *x, void *data, size_t n_bytes);
/* x dense and row-major, outside of all scopes: its own storage if it is that,
 * whose memory then stays in place; else a copy. */
tensor *tensor_share(tensors *t, tensor *x);
/* Data of the whole storage, valid until the next call on t. */
const void *tensor_data(tensors *t, tensor *x);

/* ---- places (place.c) ---- */

/*
 * The storage of x lies there from here on. Throws [shard.view] for a part or a
 * view that moves elements, [shard.conflict] when it lies elsewhere already,
 * [shard.inside] for what a function being compiled did not make.
 * parts: of a sum; it is not written to [shard.parts].
 */
void tensor_place(tensors *t, tensor *x, int32_t place, bool parts);
/* The same storage, read as a copy at another place; writes reach it. */
tensor *tensor_lens(tensors *t, tensor *x, int32_t place);
tensor *tensor_whole(tensors *t, tensor *x); /* a copy, all of it everywhere */
int32_t tensor_where(tensors *t, tensor *x); /* computes it */
/* The shape in which x is all of its storage, in order; NULL: it is a part, a
 * lens, or moves elements. And that of the storage. */
const ir_type *tensor_stored_as(tensors *t, const tensor *x);
const ir_type *tensor_storage_type(tensors *t, const tensor *x);
/* The elements of this process, of the whole storage. */
void *tensor_local(tensors *t, tensor *x);
void tensors_strict(tensors *t, bool strict); /* lenses throw [shard.strict] */

/* ---- gradients (backward.c) ---- */

/* x is a leaf from here on: gradients with respect to it are collected. */
void tensor_requires_grad(tensors *t, tensor *x);
/*
 * Adds to the gradient of every leaf that x was made from; seed NULL: 1, for
 * a single number. Unless keep, what is only needed for it is let go.
 */
void tensor_backward(tensors *t, tensor *x, tensor *seed, bool keep);
/* grad[i]: gradient of sum out * seed with respect to in[i]; has one itself */
void tensor_gradients(tensors *t, int32_t n, tensor *const *out,
	tensor *const *seed, int32_t m, tensor *const *in, tensor **grad);
tensor *tensor_grad(tensors *t, tensor *x); /* NULL: none was collected */
void tensor_zero_grad(tensors *t, tensor *x);
void tensor_no_grad(tensors *t, int32_t step); /* 1 enter, -1 leave */

/* ---- compiled functions (function.c) ---- */

/*
 * A function on tensors that is recorded once for each kind of arguments and
 * is one call from then on. body records its calls; what it reads of others is
 * looked up anew at each call; it throws.
 */
typedef struct tensor_function tensor_function;
typedef void tensor_body(void *arg, tensor *const *in, tensor **out);
tensor_function *tensor_function_new(tensors *t, const char *name,
	int32_t n_in, int32_t n_out, tensor_body *body, void *arg);
void tensor_function_free(tensor_function *f);
/* Throws TN_EINVAL [compile.donate] when somebody else sees such an argument. */
void tensor_function_check_donated(
	tensor_function *f, tensor *const *in, const bool *donated);
void tensor_function_take_donated(
	tensor_function *f, tensor *const *in, const bool *donated);
void tensor_function_call(
	tensor_function *f, tensor *const *in, tensor **out);
/* How often body was recorded. */
int32_t tensor_function_n_traces(const tensor_function *f);
/* Components, slots, middles of every kind of call so far. */
void tensor_function_print(str *out, const tensor_function *f);
void tensor_function_dot(str *out, const tensor_function *f);
/*
 * Forward and backward of the kind of call that came last, as one program.
 * Throws [compile.program] where there is no call yet, or a condition, a loop or
 * a function in C is in it.
 */
void tensor_function_program(str *out, const tensor_function *f);
/* data of a new key for random numbers; in a function: at each call */
tensor *tensor_random_key(tensors *t);

/* ---- regions (region.c, region_loop.c) ---- */

/*
 * One of two bodies, by a single truth value that is known when it is
 * evaluated. Both make outputs of the same shapes and dtypes. out[i] is a
 * storage that they know if it is the same in both, seen in the same way.
 */
void tensor_cond(tensors *t, tensor *pred, tensor_body *const body[2],
	void *const arg[2], tensor *const *in, int32_t n_out, tensor **out);

/*
 * Rounds of a body: body(carried, rows) gives what is carried to the next one,
 * and outputs, of which each round makes a row. What the body writes to what
 * is carried, or to tensors that it knows, is written in place.
 */
typedef struct tensor_loop {
	const char *name;
	tensor_body *test; /* of what is carried: once more? NULL: n rounds */
	tensor_body *body;
	void *test_arg, *arg;
	int64_t n; /* rounds; with a test at most, 0: any number, no gradient */
	int32_t n_carried, n_rows, n_out;
} tensor_loop;
enum { TENSOR_MAX_CARRIED = 256 };
/* in: what is carried, then rows [n, ..]; out: the same in the end, then [n, ..] */
void tensor_loop_call(tensors *t, const tensor_loop *l, tensor *const *in,
	tensor **out);

/* A function of the caller's on arrays; runs when a result is needed; throws. */
typedef void tensor_host(void *arg, int32_t n_in, const ir_type *in_type,
	const void *const *in, int32_t n_out, const ir_type *out_type,
	void *const *out);
/* back NULL: no gradient; else from in[], out[] and cotangents of out[] to
 * those of in[], all of them floats */
void tensor_host_call(tensors *t, tensor_host *fn, tensor_host *back, void *arg,
	int32_t n_in, tensor *const *in, int32_t n_out, const ir_type *type,
	tensor **out);

typedef struct tensor_stats {
	int64_t n_calls;       /* recorded */
	int64_t n_flushes;
	int64_t n_plan_hits, n_plan_misses;
	int64_t n_copies, copied_bytes; /* values kept that a write ended */
	int64_t bytes_live, bytes_peak, bytes_cached;
	int64_t bytes_kept; /* for gradients alone */
	int64_t n_again; /* calls made again for gradients */
	int64_t n_region_copies; /* branches that disagree about storages */
	int64_t n_values, n_tensors; /* alive */
	int64_t n_lens_reads, lens_read_bytes;	 /* copies at other places */
	int64_t n_write_backs, write_back_bytes; /* writes from other places */
} tensor_stats;
tensor_stats tensor_get_stats(const tensors *t);

#endif
