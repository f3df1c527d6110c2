/*
 * plan.h: interface of plan/: which function runs when, on which memory.
 *
 * Consumes kernels as C functions; produces a list of launches and a location
 * for each tensor, which can be run. Equal kernels become one function, and
 * small independent ones run in one step. A run allocates no memory.
 *
 *   12 equal layers             ->  the functions of one, called twelve times
 *   t1 is dead before t2 lives  ->  both at the same offset of one slab
 */
#ifndef PLAN_H
#define PLAN_H

#include "target/c/c.h"
#include "fuse/fuse.h"
#include "run/device.h"

typedef enum plan_where {
	PLAN_NOWHERE, /* no elements, or private to a kernel */
	PLAN_INPUT,   /* input array `number` of the caller */
	PLAN_OUTPUT,
	PLAN_SLAB /* at byte `offset` of the slab */
} plan_where;

typedef struct plan_location {
	plan_where where;
	int32_t number;
	size_t offset, bytes;
	int32_t first, last; /* liveness: steps that write it and read it last */
	int32_t version_of; /* the tensor whose memory it uses; -1: its own */
} plan_location;

/* A kernel in C (one function per phase), used by one or several launches. */
typedef struct plan_kernel {
	const c_kernel *code;
	int32_t unit;	/* the C text that contains it */
	int32_t n_uses; /* launches */
} plan_kernel;

typedef struct plan_launch {
	const fuse_kernel *source;
	int32_t kernel;	       /* -1: an opaque row */
	const c_kernel *code; /* the kernel, with the chunks and scratch of this
				  * launch; NULL: opaque */
	const sys_eqn *eqn;    /* opaque: the equation */
	int32_t n_params;
	const int32_t *tensor; /* its params: tensors that have a location */
	int32_t n_checks;
	const c_check *check; /* checks, of the tensors of this launch */
	size_t scratch_offset; /* after the tensors of the slab */
	const size_t *cell; /* .. of the code's cells, if it is in cells; else NULL */
	bool keeps; /* its scratch keeps copies of steady inputs from run to run */
	bool serial;	       /* too small for several threads */
} plan_launch;

/* Launches first .. first+n-1 run at the same time. */
typedef struct plan_step {
	int32_t first, n;
} plan_step;

/* At the end of a run, `tensor` is copied to output `number`. */
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
	const c_target *target;
	plan_location *location;    /* by tensor */
	const int32_t *root;  /* by tensor: the one with the same elements */
	size_t tensor_bytes;  /* the slab contains: tensors, */
	size_t scratch_bytes; /* then scratch of one step, */
	size_t kept_bytes;    /* then scratch of launches that keep copies, */
	size_t local_bytes;   /* then this for each thread */
	bool poison;	      /* as in the options */
	size_t sum_bytes;     /* of all tensors in the slab, if none shared memory */
} plan;

typedef struct plan_options {
	bool single;	    /* a C file for each kernel */
	int32_t max_units;  /* number of C texts, compiled in parallel; 0: 1 */
	bool apart;	    /* no two tensors share bytes: for tests */
	bool poison;	    /* dead buffers are overwritten: for tests */
	size_t guard_bytes; /* unused bytes after each tensor: for tests */
	const c_target *target; /* NULL: c_gnu */
} plan_options;

/* code[i] is the C of kernel i of the groups; NULL for opaque ones. */
plan *plan_build(arena *a, fuse_plan *groups, const c_kernel *const *code,
	const plan_options *o);
void plan_verify(const plan *p); /* throws TN_EINTERNAL */
void plan_print(str *out, const plan *p, bool json);

/* A param that is written before the last step that can fail: what is to be
 * copied before `step`, if a failed run is to leave it as it was. */
typedef struct plan_early {
	int32_t input, tensor, step; /* tensor: one of its size */
} plan_early;
const plan_early *plan_early_writes(arena *a, const plan *p, int32_t *n);

/* ---- running --------------------------------------------------------- */

typedef struct plan_exec plan_exec;

/* Stores the address of a function of C text `unit` in *(void (**)()) fn. */
typedef void plan_find(void *arg, int32_t unit, const char *name, void *fn);

/*
 * Allocates the slab and binds all functions. The arena owns it. With
 * plan_exec_code, find is called again later, so arg must live as long.
 */
plan_exec *plan_exec_new(arena *a, const plan *p, run_pool *pool,
	plan_find *find, void *arg);

/* The same on a device; pool: of the CPU, else NULL. In a run on a device with
 * memory of its own, in and out are addresses there. */
plan_exec *plan_exec_on(arena *a, const plan *p, run_device *d, run_pool *pool,
	plan_find *find, void *arg);

/* Keeps functions loaded while they run. */
typedef struct plan_code {
	/* Before a run: loads the functions that are not loaded. Their addresses
	 * change only when the number that it returns changes. */
	int64_t (*hold)(void *arg);
	void (*release)(void *arg); /* after a run, also after a failed one */
	void *arg;
} plan_code;
void plan_exec_code(plan_exec *x, const plan_code *code);

/*
 * Seconds of launches. In a pool of one thread totals are the time in which
 * this thread computed; else they are wall time, as begin and end always are.
 */
typedef struct plan_times {
	int64_t n_runs;
	int32_t n_launches;
	double *total;	     /* of each launch, over all runs */
	double *begin, *end; /* of each launch in the last run */
} plan_times;

/*
 * From here on, runs are timed; the exec owns the result. A timed run executes
 * the launches of a step one after another, to measure each of them.
 */
const plan_times *plan_exec_time(plan_exec *x);

/*
 * One run. version[i] identifies the elements of input i: equal numbers mean
 * equal elements, for the life of the exec; 0, and version NULL: unknown. Kept
 * copies of a steady input are made again if its address or its version differs
 * from that of the run that made them, or if its version is unknown.
 * Throws TN_ERANGE [index.range] if an index read from data is out of range.
 * After any error, params are as they were before the run.
 */
void plan_exec_run(plan_exec *x, const void *const *in,
	const int64_t *version, void *const *out);
/*
 * The same with arrays of the host, on any device: they are copied there and
 * back. An input whose address and version are those of the last run is there
 * already.
 */
void plan_exec_run_host(plan_exec *x, const void *const *in,
	const int64_t *version, void *const *out);
/* The loop that launch i is, or NULL; and its compiled body, on the same device:
 * without it, a loop runs as opaque rows do. */
const struct ir_loop *plan_loop_of(const plan *p, int32_t i);
void plan_exec_body(plan_exec *x, int32_t i, plan_exec *body);
/* Runs of opaque rows, which the host does for a device, and the name of the
 * last one; 0 and NULL: there was none. */
int64_t plan_exec_n_host(const plan_exec *x, const char **row);
/* Loops with a test that the host had to read on a device, in all runs, and why the
 * last one; 0 and NULL: there was none. */
int64_t plan_exec_n_asked(const plan_exec *x, const char **why);
/* A row that the host runs for a device; NULL: there is none. */
const char *plan_exec_host_row(const plan_exec *x);
/* The calls of the program in which the last run failed; 0: unknown. */
int32_t plan_exec_failed(const plan_exec *x, const int32_t **call);
/* The number of copies of steady inputs that all runs made. */
int64_t plan_exec_n_copied(const plan_exec *x);

#endif
