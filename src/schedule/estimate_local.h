/* estimate_local.h: private to estimate*.c: the state of a walk over a tree. */
#ifndef SCHEDULE_ESTIMATE_LOCAL_H
#define SCHEDULE_ESTIMATE_LOCAL_H

#include "schedule/estimate.h"
#include "schedule/local.h"

enum { ESTIMATE_MAX_DEPTH = 128 };

typedef struct estimate {
	arena *a;
	loop_kernel *k;
	loop_phase_cost *out;
	struct estimate_range {
		int64_t lo, hi;
	} * range; /* by variable: the interval that the loops inside walk */
	struct estimate_loop {
		int32_t var;
		double trips;
		double rest; /* elements behind the last whole vector */
		bool unrolled; /* completely */
		const loop_node *node;
	} loop[ESTIMATE_MAX_DEPTH]; /* around the current node */
	int32_t depth;
	double share; /* part of the iterations around that guards let pass */
	int32_t lanes, lane_var;
	int32_t warps; /* of the block that runs a chunk */
	bool staged;   /* copies here go on while warps compute */
	bool dealt;    /* the current node is in a loop by warp */
	double wide; /* number of vectors that the widest value of the lanes needs */
	double work; /* operations of all equations */
	double all;  /* bytes of the tensors that the kernel touches */
	int32_t home; /* the level where they are before it runs .. */
	bool cold; /* .. but for inputs, which come from the farthest */
	bool *kept; /* by equation: a copy of an input, and as far */
	map *seen;   /* expression of a statement -> number in vars */
	VEC(loop_set) vars;
} estimate;

/* estimate_guard.c: the part of the iterations in which lo <= f < hi */
double estimate_inside(
	const estimate *w, const ix_form *f, int64_t lo, int64_t hi);
/* The part of n's iterations that its guards let pass. */
double estimate_needed(const estimate *w, const loop_node *n);
/* estimate_memory.c: where tensors are before the kernel runs */
void loop_estimate_homes(estimate *w);
/* Does the phase do nothing but copy an input, once for all runs? */
bool estimate_keeps(const loop_kernel *k, const loop_phase *p);
/* .. bytes that a phase moves, by level */
void loop_estimate_memory(estimate *w, const loop_phase *ph);

#endif
