/* lanes.h: private to lanes.c, vector.c, distribute.c: questions about loops. */
#ifndef LOOP_SCHEDULE_LANES_H
#define LOOP_SCHEDULE_LANES_H

#include "schedule/local.h"

bool loop_has_loops(const loop_node *n);
/* The number of lanes that a loop over n's variable gets; 1: none. */
int32_t loop_lanes_for(loop_kernel *k, const loop_node *n);
/* Are there too few elements for lanes, even if some lanes are unused? */
bool loop_too_few(loop_kernel *k, const loop_node *n, int32_t lanes);
/* The largest number of iterations of a statement in loops of n's body, and
 * whether it is small. */
int64_t loop_inside(const loop_kernel *k, const loop_node *n);
bool loop_is_small(const loop_kernel *k, const loop_node *n);
/* Are lanes of n better than lanes of the loops inside, because their accesses
 * jump less? */
bool loop_wants_lanes(loop_kernel *k, const loop_node *n);
/* Does the statement only add, over var, to a value that is read after the loop? */
bool loop_adds_up(const loop_kernel *k, const loop_node *n, int32_t var);
/* The number of statements of the body that add over n's variable; *rest: the
 * others are independent for its values, and contain a loop. */
int32_t loop_sums_of(loop_kernel *k, const loop_node *n, bool *rest);
/* Can the sums in n's body get separate loops, so that n can have lanes? */
bool loop_may_distribute(loop_kernel *k, const loop_node *n);

/* vector.c: the sum of the distances of all accesses below n for one step of var */
double loop_step_of(loop_kernel *k, const loop_node *n, int32_t var);

#endif
