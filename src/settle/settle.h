/*
 * settle.h: the door of settle/: who waits for which write, and what is kept
 * of a version that is overwritten while it is still needed.
 *
 * Consumes units with their reads, and storages: tensors that are versions of
 * one memory. Produces pairs (reader, writer), copies of regions in front of
 * writes, and a topological order that respects both. Fusion must respect the
 * pairs; then any order and any merge is right (docs/aliasing.md).
 *
 *     a = x[0:4]; x1 = write(x[4:8], v)      disjoint: nobody waits
 *     a = x[4:8]; x1 = write(x[4:8], v)      the write waits for a
 *     x1 = write(x[4:8], v); a = x1 + x      x is read by who needs x1: its
 *                                            elements 4 .. 7 are copied first
 */
#ifndef SETTLE_H
#define SETTLE_H

#include "eqn/eqn.h"

/* Rules of docs/aliasing.md that the test build can drop. */
enum settle_rule {
	SETTLE_RULE_WAIT = 1,	/* a write waits for readers of what it changes */
	SETTLE_RULE_ALL,	/* readers of all older versions, not of the last */
	SETTLE_RULE_KEEP,	/* who cannot come first reads a copy */
	SETTLE_RULE_KEEP_FIRST,	/* the copy is made before the write */
	SETTLE_RULE_OWN,	/* a write reads what it changes at its own place */
	SETTLE_RULE_OVERLAP,	/* disjoint is what is proved to be */
	SETTLE_RULE_OUTPUT,	/* what is returned is a future read */
	SETTLE_RULE_REGION,	/* a copy has all elements that are still read */
	SETTLE_RULE_USED	/* an own storage takes a write only when nobody sees the version before */
};

/* The tensors of one memory, oldest first. */
typedef struct settle_storage {
	VEC(int32_t) tensor;
} settle_storage;

/* Source `reader` reads `tensor`; source `writer` changes what it sees. */
typedef struct settle_wait {
	int32_t reader, tensor, writer;
} settle_wait;

typedef struct settle_options {
	uint32_t mutate;  /* test build only: a rule that is dropped; 0 none */
	uint64_t shuffle; /* tests: a random topological order; 0 the smallest first */
	bool eager;	  /* tests: own storages take every write that they may */
} settle_options;

typedef struct settled {
	arena *a;
	env *env;
	ir_system *s;
	eqn_graph *g;
	settle_options o;
	/* the caller's, with room for as many equations and tensors again */
	eqn_unit **unit;  /* by source; NULL: not computed */
	bool *kept;	  /* by tensor: in memory whoever reads it */
	int32_t *version; /* by tensor: place in its storage, -1 none */
	int32_t n_storages;
	settle_storage *storage;
	const eqn_writes **window; /* by source, when it was asked for */
	VEC(settle_wait) wait;
	VEC(int32_t) *waits_of;   /* by reader: numbers in wait */
	VEC(int32_t) *readers_of; /* by writer */
	int32_t n_order, *order; /* live sources */
} settled;

/* Storages as the system has them; what is returned is copied where a later
 * version would end it. g, unit and kept are the caller's to fill. */
settled *settle_new(arena *a, ir_system *s, const settle_options *o);
/* Is there a later version in the same memory? */
bool settle_is_destroyed(const settled *w, int32_t tensor);
/*
 * Everything else, when unit and kept are filled: chooses storages for writes
 * to tensors that nobody outside sees, adds copies (equations "keep" at the
 * end of the system), pairs and order.
 */
void settle_run(settled *w);
/* Which part of its result a write in place walks, about; 1: all. */
double settle_share(settled *w, const eqn_unit *u);

#endif
