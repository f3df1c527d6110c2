/*
 * run.h: private to kern/: the state of the interpreter.
 */
#ifndef KERN_RUN_H
#define KERN_RUN_H

#include "kern/local.h"

/* Bytes of memory, and what is known of each. */
struct kern_memory {
	uint8_t *at;
	int64_t n;
	bool *set; /* has been written; NULL: all */
	/* who wrote and read it in this phase: 1 + the chunk; 0: nobody; NULL:
	 * it is the worker's own */
	int32_t *writer, *reader;
};

struct kern_running {
	kern_kernel *k;
	arena *a;
	int64_t *first; /* by value: its lanes in cell */
	ir_number *cell;
	bool *named; /* by value: it has a definition */
	struct kern_memory *param, scratch, local, *stack; /* by array */
	int32_t chunk, n_chunks;
	int64_t err;
	uint64_t seed;
	const kern_stmt *s;
};

_Noreturn void kern_run_fail(struct kern_running *r, const char *what,
	int32_t array, int64_t at);
uint64_t kern_run_random(struct kern_running *r);

/* run_memory.c */
void kern_run_room(struct kern_running *r, void *const *param);
void kern_run_phase(struct kern_running *r); /* chunks know nothing yet */
void kern_run_poison(struct kern_running *r); /* the worker's own */
void kern_run_stack(struct kern_running *r, int32_t array, bool zero);
/* What nobody looks at: as far from right as can be. */
ir_number kern_run_nothing(tn_dtype t);
/* alone: not as a lane of a vector, of which perhaps nobody selects it */
ir_number kern_run_get(
	struct kern_running *r, int32_t array, int64_t i, bool alone);
/* It may be loaded, and is not looked at. */
void kern_run_reach(struct kern_running *r, int32_t array, int64_t i);
void kern_run_put(
	struct kern_running *r, int32_t array, int64_t i, ir_number v);

/* run_value.c */
int64_t kern_run_form(const struct kern_running *r, const kern_form *f);
/* The lanes of v: computed before, or now, into out. */
const ir_number *kern_run_value(
	struct kern_running *r, kern_val v, ir_number *out);
/* v's cells become what its instruction gives */
void kern_run_define(struct kern_running *r, kern_val v);

#endif
