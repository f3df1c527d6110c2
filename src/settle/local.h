/*
 * local.h: private to settle/.
 *
 *   storage.c   versions of one memory; which own storages take writes
 *   wait.c      who reads what a write changes; the order
 *   keep.c      copies of what cannot come first
 */
#ifndef SETTLE_LOCAL_H
#define SETTLE_LOCAL_H

#include "settle/settle.h"

#ifdef FUSE_MUTATE
#define rule_dropped(w, n) ((w)->o.mutate == (uint32_t)(n))
#else
#define rule_dropped(w, n) ((void)(w), false)
#endif

/* What stands in the way: reader sees elements of tensor that writer changes. */
typedef struct conflict {
	int32_t reader, tensor, writer;
} conflict;

/* the source that makes a tensor, -1 an input */
static inline int32_t maker_of(const settled *w, int32_t tensor)
{
	return w->s->tensor.at[tensor].eqn;
}

/* ---- storage.c ---- */
void settle_own_storages(settled *w);

/* ---- wait.c ---- */

/* A read of the memory that u writes, where u may: at its own place, once. */
bool settle_in_place(settled *w, const eqn_unit *u, const eqn_read *r);
/* Pairs and the order; on the way, who reads a copy. */
void settle_waits(settled *w);

/* ---- keep.c ---- */

/* Readers of tensor that must see a copy from here on: adds the copy. */
void settle_keep(settled *w, int32_t tensor, int32_t n, const int32_t *reader,
	const char *why);
/* What is returned, and overwritten later, is a copy. */
void settle_outputs(settled *w);

#endif
