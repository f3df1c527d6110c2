/*
 * fuse_prop.h: random systems in pull form, their naive meaning, and an
 * interpreter of loop trees. All tensors are i64: arithmetic is exact and
 * sums may be taken in any order.
 */
#ifndef FUSE_PROP_H
#define FUSE_PROP_H

#include "fuse/fuse.h"

typedef struct prop_random {
	uint64_t state;
} prop_random;
uint64_t prop_next(prop_random *r);
int32_t prop_below(prop_random *r, int32_t n); /* 0 .. n-1 */
bool prop_chance(prop_random *r, int32_t percent);

/* n_ops operations on small tensors; writes: a third write through views */
ir_system *prop_system(arena *a, prop_random *r, int32_t n_ops, bool writes);

typedef struct prop_data {
	int64_t **at; /* by tensor: its elements */
} prop_data;

/* The equations one after the other, every instance. Inputs are filled. */
prop_data prop_naive(arena *a, ir_system *s);
int64_t prop_input(int32_t tensor, int64_t i, const sys_tensor *t);

/*
 * The plan's trees: parallel loops in random order, private tensors emptied
 * when their scope is entered, kernels in a random order that their tensors
 * allow. Throws "prop.run" on any read of what is not there, and when a
 * result differs from want.
 */
void prop_run(arena *a, fuse_plan *p, prop_random *r, const prop_data *want);

#endif
