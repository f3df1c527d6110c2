/*
 * plan.h: the door of plan/: which function runs when, on which memory.
 *
 * Consumes kernels as C functions; produces a call list in which structurally
 * equal kernels are one function and independent small ones one step, a place
 * for every tensor, and at last something that runs. A run allocates nothing.
 *
 *   12 equal layers      ->  the kernels of one, called twelve times
 *   t1 dies before t2    ->  both at the same offset of one slab
 */
#ifndef PLAN_H
#define PLAN_H

#include "target/c/c.h"
#include "fuse/fuse.h"
#include "run/run.h"

typedef enum plan_where {
	PLAN_NOWHERE, /* has no elements, or never leaves a kernel */
	PLAN_INPUT,   /* array `number` of the caller */
	PLAN_OUTPUT,
	PLAN_SLAB /* `offset` bytes into the slab */
} plan_where;

typedef struct plan_place {
	plan_where where;
	int32_t number;
	size_t offset, bytes;
	int32_t first, last; /* steps: made in, last read in */
	int32_t version_of; /* the tensor in whose memory it is; -1: its own */
} plan_place;

/* One function in C (one per phase), used by one launch or many. */
typedef struct plan_kernel {
	const c_kernel *code;
	int32_t unit;	/* the C text that it stands in */
	int32_t n_uses; /* launches */
} plan_kernel;

typedef struct plan_launch {
	const fuse_kernel *source;
	int32_t kernel;	       /* -1: an opaque row, see eqn */
	const c_kernel *code; /* what runs, with chunks and scratch of this
				  * launch; NULL: opaque */
	const sys_eqn *eqn;    /* opaque: what is called */
	int32_t n_params;
	const int32_t *tensor; /* data of its params: tensors that have a place */
	int32_t n_checks;
	const c_check *check; /* with the tensors of this launch */
	size_t scratch_offset; /* behind the slab's tensors */
	bool keeps; /* copies of steady inputs in its scratch, from run to run */
	bool serial;	       /* too small to be worth waking threads */
} plan_launch;

/* Launches first .. first+n-1 run at the same time. */
typedef struct plan_step {
	int32_t first, n;
} plan_step;

/* At the end: output `number` gets the elements of `tensor`. */
typedef struct plan_copy {
	int32_t tensor, number;
} plan_copy;

typedef struct plan_unit {
	int32_t n; /* functions */
	const char *c; /* the whole text */
} plan_unit;

typedef struct plan {
	arena *a;
	ir_system *s;
	VEC(plan_kernel) kernel;
	VEC(plan_launch) launch;
	VEC(plan_step) step;
	VEC(plan_copy) copy;
	VEC(plan_unit) unit;
	plan_place *place;    /* by tensor */
	const int32_t *root;  /* by tensor: the one with the same elements */
	size_t tensor_bytes;  /* of the slab: tensors, */
	size_t scratch_bytes; /* then scratch of one step, */
	size_t kept_bytes;    /* then that of launches that keep copies, */
	size_t local_bytes;   /* then so much for every thread */
	bool poison;	      /* as in the options */
	size_t sum_bytes;     /* of all tensors in the slab, had none shared */
} plan;

typedef struct plan_options {
	int32_t max_units;  /* C texts, compiled side by side; 0: 1 */
	bool apart;	    /* no two tensors share bytes: for tests */
	bool poison;	    /* what is dead is overwritten: for tests */
	size_t guard_bytes; /* left unused behind every tensor: for tests */
} plan_options;

/* code[i] is what emit/ made of kernel i of the groups; NULL for opaque ones */
plan *plan_build(arena *a, fuse_plan *groups, const c_kernel *const *code,
	const plan_options *o);
void plan_verify(const plan *p); /* throws TN_EINTERNAL */
void plan_print(str *out, const plan *p, bool json);

/* ---- running --------------------------------------------------------- */

typedef struct plan_exec plan_exec;

/* Stores the address of a function of C text `unit` in *(void (**)()) fn. */
typedef void plan_find(void *arg, int32_t unit, const char *name, void *fn);

/*
 * Makes the slab and binds everything; in the arena, which also ends it. With
 * plan_exec_code find is called again later: arg lives as long.
 */
plan_exec *plan_exec_new(arena *a, const plan *p, run_pool *pool,
	plan_find *find, void *arg);

/* Who keeps functions loaded while they run. */
typedef struct plan_code {
	/* Before a run: loads them where they are not. While the number stays
	 * the same, they are where they were found. */
	int64_t (*hold)(void *arg);
	void (*release)(void *arg); /* after it, by an error too */
	void *arg;
} plan_code;
void plan_exec_code(plan_exec *x, const plan_code *code);

/* Wall time of launches, in seconds of a clock that only goes forward. */
typedef struct plan_times {
	int64_t n_runs;
	int32_t n_launches;
	double *total;	     /* of each launch, over all runs */
	double *begin, *end; /* of each launch in the last run */
} plan_times;

/*
 * Runs are timed from here on, in memory of the exec. A timed run makes the
 * launches of a step one after another, so that each has a time of its own.
 */
const plan_times *plan_exec_time(plan_exec *x);

/*
 * One run. version: by input, what its elements are called; never two of one
 * name in one exec. 0, and version NULL: nothing is known of them. Copies of a
 * steady input are made again when it lies elsewhere or has another name than
 * in the run that made them, or none.
 * Throws TN_ERANGE [index.range] when an index read from data is outside its
 * tensor. Whatever it throws, params are then as they were before.
 */
void plan_exec_run(plan_exec *x, const void *const *in,
	const int64_t *version, void *const *out);
/* Calls of the program that the last run failed in; 0: that is not known. */
int32_t plan_exec_failed(const plan_exec *x, const int32_t **call);
/* How many copies of steady inputs were made so far, in all runs. */
int64_t plan_exec_n_copied(const plan_exec *x);
/* Where the slab lies: for tests that look behind tensors. */
void *plan_exec_slab(const plan_exec *x);

#endif
