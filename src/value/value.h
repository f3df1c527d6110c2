/*
 * value.h: interface of value/: records calls on tensors and evaluates them.
 *
 *   value    elements, or the call that will compute them; never changes
 *   storage  its newest value; a write replaces that by the next version
 *   view     movement rows between a storage and a handle; they cost nothing
 *   handle   (storage, view): the newest value of the storage, through the view
 *
 *   y = tensor_call(t, add, x, z)      recorded; nothing runs
 *   tensor_read(t, y, ..)              flush: one program, compiled once
 *
 * A flush turns the calls that are needed into an ir_program, whose inputs are
 * computed values. Programs of equal structure are compiled once.
 */
#ifndef VALUE_H
#define VALUE_H

#include "program/program.h"
#include "run/device.h"

typedef struct tensors tensors; /* everything of one context */
typedef struct tensor tensor;	/* a handle */

/*
 * Placements of the values of a program on a mesh of processes. A placement is a
 * number of the backend; 0: every process has all elements.
 */
typedef struct tensor_placing {
	const int32_t *in;   /* by input */
	int32_t n_want;
	const int32_t *want; /* by output: 1 + placement; 0: any */
	int32_t n_out;	     /* of later outputs only the placement is needed */
	int32_t *out;	     /* by output: filled in */
	uint64_t hash;	     /* of the structure */
} tensor_placing;

/* Compiles and runs programs. */
typedef struct tensor_backend {
	void *arg;
	/* compiles, in arena a; throws. w NULL: nothing is distributed */
	void *(*compile)(void *arg, arena *a, ir_program *p, tensor_placing *w);
	/* version[i] identifies the elements of input i; 0: unknown, because
	 * others may write to its memory. If it throws, params are as before */
	void (*run)(void *arg, void *compiled, const void *const *in,
		const int64_t *version, void *const *out);
	/* the calls of the program in which its last run failed; 0: unknown.
	 * NULL: always unknown */
	int32_t (*failed)(void *arg, void *compiled, const int32_t **call);
	int64_t (*key)(void *arg); /* the next key for random numbers */
	/* bytes of the part of this process; NULL: there is one process */
	size_t (*bytes)(void *arg, int32_t place, const ir_type *type);
	/* moves elements to another placement; all processes call it. The
	 * addresses are of the host's memory */
	void (*move)(void *arg, const ir_type *type, int32_t from,
		const void *data, int32_t to, void *out);
	/* the same with addresses of the device. false: nothing has happened, on
	 * any process, because there is no way from device to device */
	bool (*carry)(void *arg, const ir_type *type, int32_t from,
		const void *data, int32_t to, void *out);
	/* where elements lie: in, out and params of run are addresses there */
	run_device *device;
	/* A row in it that the host runs for a device; NULL: there is none. */
	const char *(*host_row)(void *arg, void *compiled);
	/* Notes that the host reads the test of a region, and why. */
	void (*note_asked)(void *arg, const char *why);
	/* runs loops that are not compiled */
	ir_loop_run *run_loop;
} tensor_backend;

ir_table *tensors_table(tensors *t);
/* For tests: memory that is freed is overwritten. */
void tensors_poison(tensors *t);
/* Rules of docs/compile.md that a test can drop. */
enum tensor_rule {
	TENSOR_RULE_VERSION = 1, /* a version that was overwritten is not the newest one */
	TENSOR_RULE_STORED,  /* a slot holds a version until the next write */
	TENSOR_RULE_OVERLAP, /* calls with overlapping arguments are a separate variant */
	TENSOR_RULE_KNOWN,   /* .. with an argument in a storage that the body uses */
	TENSOR_RULE_OUTPUT,  /* outputs that share a storage still share one */
	TENSOR_RULE_LEAF,    /* gradients of leaves inside reach the storage */
	TENSOR_RULE_GUARD,   /* tensors used with and without gradients: separate variants */
	/* rules of regions */
	TENSOR_RULE_TAKE,    /* memory is taken only from values that are not needed */
	TENSOR_RULE_ROUNDS,  /* a body is recorded as it is in later rounds */
	TENSOR_RULE_BRANCH   /* outputs are storages only if both branches agree */
};
/* For tests: drops a rule. */
void tensors_drop_rule(tensors *t, enum tensor_rule rule);
/* Limits the bytes kept for gradients, if recomputation allows; -1: no limit. */
void tensors_limit(tensors *t, int64_t bytes);

/* Gives back all memory that was imported; only freeing may follow. NULL is fine. */
void tensors_end(tensors *t);

/* The source line of the user's next calls; file must stay valid. */
void tensors_site(tensors *t, const char *file, int32_t line);

/* ---- handles: all throw TN_EINVAL [tensor.handle] for invalid ones ---- */

/*
 * data NULL: zeros. is_external: a parameter, whose address never changes; if it
 * is a float it is a leaf, except inside tensor_no_grad.
 */
tensor *tensor_new(tensors *t, const ir_type *type, const void *data,
	bool is_external, const char *name);
/* Uses memory of the caller, which lies on the device, aligned to its elements;
 * calls release at the end. */
tensor *tensor_import(tensors *t, const ir_type *type, void *data,
	void (*release)(void *arg), void *arg);
void tensor_drop(tensors *t, tensor *x);
/* Drops the tensor but not the handle, whose use is then an error. */
void tensor_give_away(tensors *t, tensor *x);
bool tensor_is_valid(const tensor *x);
bool tensor_is_invalid(const tensor *x); /* the result of a failed call */
tensor *tensor_invalid(tensors *t);
void *tensor_owner(const tensor *x); /* backend.arg, or NULL */
/*
 * Callers hold numbers of handles, which are never reused. tensor_of_handle of a
 * handle that was dropped, or whose scope or context has ended, is a tensor that
 * is not valid, which every call refuses. NULL: NULL.
 */
tn_tensor *tensor_handle(const tensor *x);
tensor *tensor_of_handle(const tn_tensor *h);
const ir_type *tensor_type_of(const tensor *x); /* of a valid one */
const char *tensor_name_of(const tensor *x);

/* ---- scopes ---- */

void tensor_scope_enter(tensors *t);
void tensor_scope_leave(tensors *t);
/* Moves x to the scope around the innermost one. */
void tensor_keep(tensors *t, tensor *x);

/* ---- recording ---- */

/* Calls a row: out[] gets a handle for each result; returns their number. */
int32_t tensor_call(tensors *t, const ir_row *row, int32_t n,
	tensor *const *x, int32_t n_attrs, const ir_attr *attr, tensor **out,
	int32_t n_out);
/* Writes v, of the same shape and dtype, to x. */
void tensor_write(tensors *t, tensor *x, tensor *v);
/*
 * Writes dense, row-major data to x at once, without a gradient. False: nothing
 * was done, because x is a part or not computed; then use tensor_write.
 */
bool tensor_set(tensors *t, tensor *x, const void *data, size_t n_bytes);

/* 1: begins, -1: ends a step: if one of its writes fails, all are undone. */
void tensor_step(tensors *t, int32_t step);
/* A call has failed: if it is in a step, the step is undone when it ends, unless the
 * host says that it goes on. */
void tensor_step_fails(tensors *t);
void tensor_step_goes_on(tensors *t);
/* A new key for random numbers; in a compiled function, a new one for each call. */
tensor *tensor_random_key(tensors *t);

/* ---- evaluating ---- */

void tensor_eval(tensors *t, tensor *const *x, int32_t n);
/* dense and row-major; n_bytes must be its size */
void tensor_read(tensors *t, tensor *x, void *data, size_t n_bytes);
/* A tensor equal to x, dense and row-major, outside of all scopes: x's storage
 * if that is dense, whose address then never changes; else a copy. */
tensor *tensor_share(tensors *t, tensor *x);
/* Data of the whole storage, valid until the next call on t; on a device with
 * memory of its own it is a copy. */
const void *tensor_data(tensors *t, tensor *x);
/* The same; a copy is in arena a. */
const void *tensor_data_in(tensors *t, tensor *x, arena *a);
/* Its address on the device, after all work on it is done. */
void *tensor_address(tensors *t, tensor *x);

/* ---- placements (place.c) ---- */

/*
 * Sets the placement of x's storage. Throws [shard.view] for a part or a view
 * that moves elements, [shard.conflict] if it has another placement, and
 * [shard.inside] for a tensor from outside the function being compiled.
 * parts: it holds partial sums, and cannot be written [shard.parts].
 */
void tensor_place(tensors *t, tensor *x, int32_t place, bool parts);
/* A lens: the storage of x, read as a copy with another placement; writes to it
 * change x. */
tensor *tensor_lens(tensors *t, tensor *x, int32_t place);
tensor *tensor_whole(tensors *t, tensor *x); /* a copy on every process */
int32_t tensor_where(tensors *t, tensor *x); /* its placement; evaluates x */
/* The type of x if it has all elements of its storage, in order; NULL: it is a
 * part, a lens, or moves elements. And the type of the storage. */
const ir_type *tensor_stored_as(tensors *t, const tensor *x);
const ir_type *tensor_storage_type(tensors *t, const tensor *x);
/* The elements of the storage that this process has. */
void *tensor_local(tensors *t, tensor *x);
void tensors_strict(tensors *t, bool strict); /* lenses throw [shard.strict] */

typedef struct tensor_stats {
	int64_t n_calls;       /* recorded */
	int64_t n_flushes;
	int64_t n_plan_hits, n_plan_misses;
	int64_t n_copies, copied_bytes; /* of values that a write would overwrite */
	int64_t bytes_live, bytes_peak, bytes_cached;
	int64_t bytes_kept; /* only for gradients */
	int64_t n_again; /* calls that were recomputed for gradients */
	int64_t n_values, n_tensors; /* live */
	int64_t n_lens_reads, lens_read_bytes;	 /* copies with other placements */
	int64_t n_write_backs, write_back_bytes; /* writes through lenses */
} tensor_stats;
tensor_stats tensor_get_stats(const tensors *t);

#endif
