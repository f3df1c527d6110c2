/* conflict.h: private to conflict*.c: a search for the witness of a reason. */
#ifndef FUSE_CONFLICT_H
#define FUSE_CONFLICT_H

#include "fuse/inner.h"

typedef struct hunt {
	fuse_state *f;
	arena *a; /* scratch */
	int32_t n;
	eqn_unit **unit; /* the members that cannot be one kernel, without a tail */
	int32_t from, to; /* sources of the edge to explain */
	part_set *s;	 /* the current set */
	int32_t *digit;	 /* by member: its digit in the current loop, or -1 */
	const part_edge **via;
} hunt;

/* conflict_text.c: the ends of n loops as sentences */
const char *conflict_sentences(
	const hunt *h, int32_t n, const fuse_end *first);
const char *conflict_label(const hunt *h, int32_t source);

#endif
