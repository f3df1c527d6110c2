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
	} * range; /* by variable: the interval that the loops inside walk .. */
	struct estimate_range *reach; /* .. in all blocks together */
	struct estimate_loop {
		int32_t var;
		double trips;
		double rest; /* elements behind the last whole vector */
		bool unrolled; /* completely */
		bool is_long;  /* .. and one iteration has more values than registers hold */
		const loop_node *node;
	} loop[ESTIMATE_MAX_DEPTH]; /* around the current node */
	int32_t depth;
	double share; /* part of the iterations around that guards let pass */
	int32_t lanes, lane_var;
	int32_t warps; /* of the block that runs a chunk */
	bool copies;   /* of the statement: estimate_copies */
	bool abreast;  /* of the statement: estimate_is_abreast */
	bool staged;   /* copies here go on while warps compute */
	bool dealt;    /* the current node is in a loop by warp */
	double wide; /* number of vectors that the widest value of the lanes needs */
	double work; /* operations of all equations */
	double all;  /* bytes of the tensors that the kernel touches */
	int32_t home; /* the level where they are before it runs .. */
	bool cold; /* .. but for inputs, which come from the farthest */
	bool *kept; /* by equation: a copy of an input, and as far */
	map *seen;   /* expression of a statement -> number in vars, late */
	VEC(loop_set) vars;
	/* Cycles from the start of an iteration of the loop around until .. */
	VEC(double) late; /* .. the expression has its value */
	double last_late; /* .. the expression that was visited last has */
	double *ready;	  /* .. the equation has, by equation .. */
	int64_t *made;	  /* .. whose statement was walked as the made-th */
	double critical;  /* .. all statements of the loop have */
	int64_t n_made, made_outside; /* statements walked; before the loop */
} estimate;

/* Does the equation copy a tensor from memory into one that warps share? (A copy in
 * caches is priced as the reads of its elements.) */
static inline bool estimate_copies(const estimate *w, const loop_eqn *e)
{
	return e->stage && w->warps > 1;
}

/* The elements that a block, or a loop in it, has of the variable; -1: one. */
static inline double estimate_length(const estimate *w, int32_t var)
{
	return var < 0 ? 1 : (double)(w->range[var].hi - w->range[var].lo);
}
static inline double estimate_whole(double n) /* rounded up */
{
	int64_t i = (int64_t)n;

	return (double)i < n ? (double)i + 1 : (double)i;
}

/* estimate_abreast.c: do sums of the equation stand abreast in registers, here in a loop
 * over them? .. the part of its loads of element f that these sums do not share */
bool estimate_is_abreast(const estimate *w, int32_t eqn);
double estimate_shared(const estimate *w, const ix_form *f);
/* estimate_tile.c: the cycles of the tile, each time it is run */
double estimate_tile(const estimate *w, const loop_node *n);

/* estimate_guard.c: the part of the iterations in which lo <= f < hi */
double estimate_inside(
	const estimate *w, const ix_form *f, int64_t lo, int64_t hi);
/* Conditions on indices, all of which must hold. */
typedef struct estimate_guard {
	loop_set vars;
	double part;  /* part of the iterations in which they hold */
	bool by_lane; /* a condition that can fail differs between lanes */
} estimate_guard;
/* Adds the conditions that e has on indices; false: e is another condition. */
bool estimate_is_guard(const estimate *w, const expr *e, estimate_guard *g);
/* Is the condition known, or the same in all iterations of a chunk? */
bool estimate_is_free(const estimate *w, const expr *e, loop_set vars);
static inline bool estimate_in_lanes(const estimate *w, loop_set vars)
{
	return w->lanes > 1 && (vars & BIT(w->lane_var)) != 0;
}
/* The part of n's iterations that its guards let pass. */
double estimate_needed(const estimate *w, const loop_node *n);
/* estimate_window.c: the cycles until a statement has its value, and those for
 * which the processor waits because it looks only so far ahead */
void estimate_ready(estimate *w, const loop_eqn *e, int32_t eqn);
double estimate_read(const estimate *w, int32_t tensor);
/* Adds what lanes take to combine the elements of a scan. */
void estimate_scan(estimate *w, const loop_eqn *e, double times);
/* State of the loop around, while the walk is in a loop inside. */
typedef struct estimate_scope {
	double critical, cycles;
	int64_t made_outside;
} estimate_scope;
estimate_scope estimate_enter(estimate *w);
void estimate_leave(estimate *w, estimate_scope outer, double times);
/* estimate_memory.c: where tensors are before the kernel runs; operations */
void loop_estimate_homes(estimate *w);
/* Does the phase do nothing but copy an input, once for all runs? */
bool estimate_keeps(const loop_kernel *k, const loop_phase *p);
/* Do the lanes find their elements of a buffer in different banks? */
bool estimate_own_banks(const estimate *w, const loop_buf *b);
/* Adds the bytes of n partial results that are stored or loaded. */
void estimate_parts(estimate *w, const loop_eqn *e, double n);
/* .. bytes that a phase moves, by level */
void loop_estimate_memory(estimate *w, const loop_phase *ph);

#endif
