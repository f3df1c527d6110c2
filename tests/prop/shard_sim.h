/*
 * shard_sim.h: a system worked out by the processes of a mesh, in turn, in one
 * process: the oracle of plans.
 *
 * Each process has arrays of its own in which only those elements exist that
 * its layout gives it; it works out only its part of each equation, and an
 * element that it reads and does not have is an error.
 */
#ifndef SHARD_SIM_H
#define SHARD_SIM_H

#include "program/program.h"
#include "layout/layout.h"

/*
 * What an equation's part on one process got of one tensor from others, beside
 * what it may read of it (shard_moved.c).
 */
typedef struct sim_moved {
	int32_t eqn, tensor;
	int64_t process;
	int64_t moved;	/* elements that it did not have */
	int64_t wanted; /* of those, the ones that the guards let it read */
	int64_t most;	/* what it may get: intervals around what it reads */
} sim_moved;

/*
 * Fills in the counts for the tensor of which the process had, then got
 * elements. false: nothing is promised of what such a read moves.
 */
bool moved_count(shard_plan *p, const bool *had, const bool *got, sim_moved *m);
/*
 * Does one axis of the equation, of another extent, walk axis k of the tensor
 * straight ahead, as in a slice, a pad, a concat or a window? Then, where that
 * axis is all that is cut, the equation is cut with it: *most is what all
 * processes together may get.
 */
bool moved_shifts(
	shard_plan *p, int32_t eqn, int32_t tensor, int32_t k, int64_t *most);

typedef struct sim_result {
	int64_t moved_bytes; /* between processes, sums included */
	int64_t local_reads;
	VEC(sim_moved) moved; /* of sim_run */
} sim_result;

/*
 * input[i]: the whole input i. Returns the whole data of every tensor, put
 * together from those who have it; checks that all of them have the same.
 * Throws TN_EINTERNAL [shard.sim].
 */
void **sim_run(arena *a, shard_plan *p, const void *const *input,
	sim_result *r);
/* the same by one process */
void **sim_whole(arena *a, ir_system *s, const void *const *input);
/*
 * The gradient of a program's first call, as a program: its operands and the
 * cotangent of its first result to the cotangents of the operands.
 */
ir_program *sim_gradient(arena *a, const ir_program *f);

#endif
