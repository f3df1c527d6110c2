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
#include "shard/shard.h"

typedef struct sim_result {
	int64_t moved_bytes; /* between processes, sums included */
	int64_t local_reads;
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
