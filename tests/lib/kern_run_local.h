/*
 * kern_run_local.h: the state of the interpreter of kern.
 */
#ifndef KERN_RUN_LOCAL_H
#define KERN_RUN_LOCAL_H

#include "kern/local.h"
#include "kern_run.h"

/* Warps are numbered from 1; 0: all of them. */
struct kern_touched {
	int32_t written, read; /* the number of the barrier before */
	int32_t writer, reader;
};

/* Bytes of memory, and the state of each. */
struct kern_memory {
	uint8_t *at;
	int64_t n;
	bool *set; /* it has been written; NULL: all have */
	bool *moves; /* a copy is writing it; NULL: none ever does */
	/* 1 + the chunk that wrote and read it in this phase, or 0; NULL: memory
	 * of the thread */
	int32_t *writer, *reader;
	/* since which barrier, and by which warp, it was written and read */
	struct kern_touched *by_warp;
};

/* An element that a warp copies until a wait. */
struct kern_moving {
	const kern_stmt *s;
	int64_t to, from;
	int32_t warp, group; /* the groups that were ended before it was begun */
};

struct kern_running {
	kern_kernel *k;
	arena *a;
	int64_t *first; /* by value: its first lane in cell */
	bool *own; /* by value: each warp has it, one behind the other */
	ir_number *cell;
	bool *named; /* by value: has it a `let`, loop or phase? */
	struct kern_memory *param, scratch, local, *stack; /* by array */
	int32_t chunk, n_chunks;
	int32_t warps, warp; /* of the block; the one that runs, 0: all do */
	int32_t barrier;     /* its number, from 1 */
	VEC(struct kern_moving) moving;
	int32_t group; /* of copies: the number of those that were ended */
	int64_t err;
	uint64_t seed;
	const kern_stmt *s;
};

_Noreturn void kern_run_fail(struct kern_running *r, const char *what,
	int32_t array, int64_t at);
uint64_t kern_run_random(struct kern_running *r);

/* kern_run_memory.c */
void kern_run_room(struct kern_running *r, void *const *param);
void kern_run_phase(struct kern_running *r); /* clears writers and readers */
void kern_run_poison(struct kern_running *r); /* memory of the thread */
void kern_run_stack(struct kern_running *r, int32_t array, bool zero);
/* A value for lanes that must not be used: obviously wrong. */
ir_number kern_run_nothing(tn_dtype t);
/* alone: it is certainly used; else it may be a lane that is not selected */
ir_number kern_run_get(
	struct kern_running *r, int32_t array, int64_t i, bool alone);
/* Checks that element i may be loaded, without using it. */
void kern_run_reach(struct kern_running *r, int32_t array, int64_t i);
void kern_run_put(
	struct kern_running *r, int32_t array, int64_t i, ir_number v);

/* The bytes of element i of local memory are under way, or not any more: they have
 * no value, and any other access is an error. */
void kern_run_move(struct kern_running *r, int32_t array, int64_t i, bool moves);

/* kern_run_value.c */
int64_t kern_run_form(const struct kern_running *r, const kern_form *f);
/* The lanes of v; if they are not computed yet, computes them into out. */
/* The lanes of a value that is in its cells: of the warp that runs, if each has it. */
ir_number *kern_run_lanes(struct kern_running *r, kern_val v);
const ir_number *kern_run_value(
	struct kern_running *r, kern_val v, ir_number *out);
/* Evaluates the instruction v into its cells. */
void kern_run_define(struct kern_running *r, kern_val v);

#endif
