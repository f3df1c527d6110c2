/* estimate_local.h: private to estimate*.c: a walk over a scheduled tree. */
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
	} * range; /* by variable: what the loops inside walk */
	struct estimate_loop {
		int32_t var;
		double trips;
		bool unrolled; /* all iterations are written out */
		const loop_node *node;
	} loop[ESTIMATE_MAX_DEPTH]; /* around the node at hand */
	int32_t depth;
	double share; /* of what the loops around walk, this is done for */
	int32_t lanes, lane_var;
	double wide; /* vectors for the widest value of the lanes */
	double work; /* operations of all equations */
	map *seen;   /* expressions of a statement -> number in vars */
	VEC(loop_set) vars;
} estimate;

/* the part of n's iterations that its conditions let pass */
double estimate_needed(const estimate *w, const loop_node *n);
/* estimate_memory.c: bytes that a phase moves, by level */
void loop_estimate_memory(estimate *w, const loop_phase *ph);
/* .. of which those of small kernels lie near from the start */
void loop_estimate_residence(estimate *w, loop_estimate *out);

#endif
