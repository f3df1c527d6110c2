/* local.h: private to loop/: the passes of the schedule, in their order. */
#ifndef LOOP_LOCAL_H
#define LOOP_LOCAL_H

#include "loop/loop.h"

#define BIT(v) ((loop_set)1 << (v))

/* nodes */
loop_node *node_new(arena *a, loop_kind kind);
loop_node *node_for(arena *a, int32_t var, loop_node *child);
void node_adopt(arena *a, loop_node *n, loop_node *child); /* at the end */
loop_node *node_copy(arena *a, const loop_node *n); /* whole tree */
loop_set node_open(const loop_node *n); /* vars walked by FOR at and above */

/* place.c: DONE nodes, buffers, their scopes and offsets */
void place(loop_kernel *k);

/* access.c */
struct access {
	int32_t tensor;
	const ix_form *at;
	bool write;
	const loop_node *leaf;
};
typedef void access_visit(void *arg, const struct access *a);
/* memory accesses of the statements at and below n */
void each_access(loop_kernel *k, const loop_node *n, access_visit *fn,
	void *arg);
/* accesses below n that jump when var runs, each as often as it is done;
 * unit: some access walks adjoining elements */
double jumps(loop_kernel *k, const loop_node *n, int32_t var, bool *unit);
struct widest {
	loop_kernel *k;
	int32_t var, bytes;
};
void widest(struct widest *w, const loop_node *n);

/* schedule_*.c, in the order in which loop_schedule calls them */
void push_phases(loop_kernel *k);
void vectorise(loop_kernel *k);
void parallel(loop_kernel *k);
int64_t work(const loop_kernel *k, const loop_node *n);

#endif
