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
	double wide; /* number of vectors that the widest value of the lanes needs */
	double work; /* operations of all equations */
	map *seen;   /* expression of a statement -> number in vars */
	VEC(loop_set) vars;
} estimate;

/* estimate_guard.c: the part of the iterations in which lo <= f < hi */
double estimate_inside(
	const estimate *w, const ix_form *f, int64_t lo, int64_t hi);
/* The part of n's iterations that its guards let pass. */
double estimate_needed(const estimate *w, const loop_node *n);
/* estimate_memory.c: bytes that a phase moves, by level */
void loop_estimate_memory(estimate *w, const loop_phase *ph);
/* .. of which those of small kernels lie near from the start */
void loop_estimate_residence(estimate *w, loop_estimate *out);

#endif
