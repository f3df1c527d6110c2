/*
 * settle.h: interface of settle/: which write must wait for which reader, and
 * which elements are copied before they are overwritten.
 *
 * Consumes units with their reads, and storages: tensors that are versions of
 * one memory. Produces pairs (reader, writer), copies of regions before writes,
 * and a topological order that respects both. Any order and any fusion that
 * respects the pairs is correct (docs/aliasing.md).
 *
 *     a = x[0:4]; x1 = write(x[4:8], v)      disjoint: the write need not wait
 *     a = x[4:8]; x1 = write(x[4:8], v)      the write waits for a
 *     x1 = write(x[4:8], v); a = x1 + x      a needs x1 and reads x: elements
 *                                            4 .. 7 of x are copied first
 */
#ifndef SETTLE_H
#define SETTLE_H

#include "eqn/eqn.h"

/* Rules of docs/aliasing.md that the test build can drop. */
enum settle_rule {
	SETTLE_RULE_WAIT = 1,	/* a write waits for readers of elements that it changes */
	SETTLE_RULE_ALL,	/* .. of all older versions, not only of the last */
	SETTLE_RULE_KEEP,	/* a reader that cannot run before the write reads a copy */
	SETTLE_RULE_KEEP_FIRST,	/* the copy is made before the write */
	SETTLE_RULE_OWN,	/* a write reads the old version at the element that it writes */
	SETTLE_RULE_OVERLAP,	/* regions overlap unless they are proved to be disjoint */
	SETTLE_RULE_OUTPUT,	/* an output is read at the end */
	SETTLE_RULE_REGION,	/* a copy has all elements that are still read */
	SETTLE_RULE_USED	/* a write uses an internal storage in place only if the version
				 * before is not read later */
};

/* The tensors of one memory, oldest first. */
typedef struct settle_storage {
	VEC(int32_t) tensor;
} settle_storage;

/* Source `reader` reads elements of `tensor` that source `writer` changes. */
typedef struct settle_wait {
	int32_t reader, tensor, writer;
} settle_wait;

typedef struct settle_options {
	uint32_t mutate;  /* test build only: drops this rule; 0: none */
	uint64_t shuffle; /* tests: seed of a random topological order; 0: smallest number first */
	bool eager;	  /* tests: internal storages take every write that they can */
} settle_options;

typedef struct settled {
	arena *a;
	env *env;
	ir_system *s;
	eqn_graph *g;
	settle_options o;
	/* filled by the caller, with room for twice the equations and tensors */
	eqn_unit **unit;  /* by source; NULL: not computed */
	bool *kept;	  /* by tensor: is always in memory */
	int32_t *version; /* by tensor: index in its storage, or -1 */
	int32_t n_storages;
	settle_storage *storage;
	const eqn_writes **writes; /* by source; NULL: not computed yet */
	VEC(settle_wait) wait;
	VEC(int32_t) *waits_of;   /* by reader: numbers in wait */
	VEC(int32_t) *readers_of; /* by writer */
	int32_t n_order, *order; /* live sources */
} settled;

/* Finds the storages of the system; copies outputs that a later version would
 * overwrite. The caller then fills g, unit and kept. */
settled *settle_new(arena *a, ir_system *s, const settle_options *o);
/* Is there a later version in the same memory? */
static inline bool settle_is_destroyed(const settled *w, int32_t tensor)
{
	int32_t v = w->version[tensor];

	return v >= 0 &&
		v + 1 < w->storage[w->s->tensor.at[tensor].storage].tensor.n;
}
/*
 * Everything else: chooses storages for writes to internal tensors, adds copies
 * (equations "keep" at the end of the system), pairs and the order.
 */
void settle_run(settled *w);
/* The part of its result that a write in place walks, roughly; 1: all. */
double settle_share(settled *w, const eqn_unit *u);

#endif
