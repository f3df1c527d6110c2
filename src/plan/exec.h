/*
 * exec.h: a plan that can be run: private to the files of plan/ that run it.
 *
 *   exec.c    steps in order, on the threads of the CPU
 *   bound.c   where tensors are, which copies are kept, errors of indices
 *   device.c  what differs on a device with memory of its own
 *   stage.c   a run on a device, with arrays of the host
 */
#ifndef PLAN_EXEC_H
#define PLAN_EXEC_H

#include "plan/private.h"

typedef void kernel_fn(void *const *p, void *scratch, void *local,
	int64_t chunk, int64_t *err);

struct plan_rounds;
struct bound {
	const plan_launch *l;
	const c_kernel *code; /* NULL: opaque */
	union { /* by phase: a function of C, or of the device */
		kernel_fn *c;
		void *device;
	} fn[KERN_MAX_PHASES];
	void **p; /* params */
	char *scratch;
	int32_t n_workers; /* of a device */
	ir_type *type; /* opaque: of out[], then in[] */
	/* of a loop with a compiled body (loop.c); NULL: opaque->run does it */
	void (*run)(struct plan_rounds *r);
	struct plan_rounds *rounds;
	struct plan_exec *body; /* of that loop */
	/* of a loop with a test on a device: why the host reads the condition, and not
	 * the device; or NULL */
	const char *asks;
	/* by phase: the input that it copies; -1: none, or the copy is not kept */
	int32_t copies[KERN_MAX_PHASES];
	/* by phase: the array that the copy in scratch was made of, or NULL */
	const void *copied[KERN_MAX_PHASES];
	int64_t version[KERN_MAX_PHASES];
};

/* An entry of a parameter table that is an array of the caller. */
struct patch {
	void **slot;
	int32_t number;
	bool is_output;
};

struct cell { /* of one thread, on a separate cache line */
	int64_t err;
	char pad[56];
};

struct plan_exec {
	arena *a;
	const plan *p;
	run_device *d; /* where its memory is */
	run_pool *pool; /* NULL: the device runs functions */
	int32_t n_workers;
	char *slab;
	char *local; /* local_bytes for each thread */
	struct cell *cell;
	struct bound *bound;
	VEC(struct patch) patch;
	int64_t *first; /* room for the intervals of the widest step */
	const void *const *in; /* of the current run */
	const int64_t *version; /* of the current run */
	int64_t n_copied;
	void **out; /* by output, params included */
	plan_times *times; /* NULL: runs are not timed */
	plan_find *find;
	void *arg;
	plan_code code;
	int64_t age; /* the last result of code.hold */
	plan_undo *undo;
	arena *room; /* of the current run on a device: copies for the host */
	struct checks *checks; /* of a device (device.c) */
	bool inner; /* on a device: the body of a loop, run by the run around it */
	run_lists *lists; /* of a device: what runs do there */
	struct staged *staged; /* arrays for plan_exec_run_host (stage.c) */
};

/* ---- bound.c ----------------------------------------------------------- */

/* The address of a tensor; NULL if it is never in memory. */
void *plan_data_of(const plan_exec *x, int32_t tensor);
/* Elements that the host can read: those of the tensor, or a copy in x->room. */
const void *plan_host_data(plan_exec *x, int32_t tensor);
_Noreturn void plan_bad_index(plan_exec *x, const struct bound *b, int64_t n,
	bool is_kept);
int64_t plan_chunks_of(const plan_exec *x, const struct bound *b, int32_t phase);
void plan_note_copy(plan_exec *x, struct bound *b, int32_t phase);

/* ---- loop.c ------------------------------------------------------------ */

/* Before each round: sets what it reads and writes; false: there is none. */
typedef bool plan_round(void *arg, int64_t i);
typedef struct plan_runs {
	int64_t n;
	plan_round *before;
	void *arg;
	const void *const *in;
	const int64_t *version;
	void *const *out;
} plan_runs;
/* n runs, or fewer, one after another (exec.c). */
void plan_exec_runs(plan_exec *x, const plan_runs *r);

/* ---- device.c ---------------------------------------------------------- */

/* Memory for local buffers and results of checks. */
void plan_device_open(plan_exec *x);
void plan_device_begin(plan_exec *x);
/* Before step s: sees whether checks have failed that later steps must not
 * follow. s = number of steps: at the end. */
void plan_device_before(plan_exec *x, int32_t s);
void plan_device_step(plan_exec *x, const plan_step *step);
/* Sees whether checks have failed, in the body of a loop. */
void plan_device_look(plan_exec *x);
/* After failed checks of launches of x, and of bodies in it, conditions with this
 * state hold no more. */
void plan_device_watch(plan_exec *x, int64_t *state);
void plan_device_opaque(plan_exec *x, struct bound *b);
/* failed: nothing of the run may have happened. */
void plan_device_end(plan_exec *x, bool failed);

#endif
