/*
 * shard_ranks.h: a planned program run by as many threads as its mesh has
 * processes, each with its own local program, over a link of threads.
 */
#ifndef SHARD_RANKS_H
#define SHARD_RANKS_H

#include "program/program.h"
#include "layout/layout.h"

typedef struct ranks_note {
	int32_t tensor; /* of the lowered system */
	shard_layout layout;
	bool fixed;
} ranks_note;

typedef struct ranks_case {
	ir_program *p;
	const shard_mesh *mesh;
	const void *const *in; /* whole inputs */
	int32_t n_notes;
	const ranks_note *note;
} ranks_case;

/* Whole outputs by number of the system's output; NULL: one failed, and said
 * why. sent: bytes that left processes are added to it. */
void **ranks_run(arena *a, const ranks_case *c, int64_t *sent);

#endif
