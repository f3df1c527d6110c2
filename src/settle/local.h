/*
 * local.h: private to settle/.
 *
 *   storage.c   versions of one memory; writes in place to internal storages
 *   wait.c      readers of elements that a write changes; the order
 *   keep.c      copies elements for readers that run after the write
 */
#ifndef SETTLE_LOCAL_H
#define SETTLE_LOCAL_H

#include "settle/settle.h"

#ifdef FUSE_MUTATE
#define rule_dropped(w, n) ((w)->o.mutate == (uint32_t)(n))
#else
#define rule_dropped(w, n) ((void)(w), false)
#endif

/* A conflict: reader reads elements of tensor that writer changes. */
typedef struct conflict {
	int32_t reader, tensor, writer;
} conflict;

/* The source that computes a tensor; -1: an input. */
static inline int32_t maker_of(const settled *w, int32_t tensor)
{
	return w->s->tensor.at[tensor].eqn;
}

/* ---- storage.c ---- */
void settle_own_storages(settled *w);

/* ---- wait.c ---- */

/* ---- keep.c ---- */

/* Is r, a read of the memory that u writes, allowed: only at the element written? */
bool settle_in_place(settled *w, const eqn_unit *u, const eqn_read *r);
/* Adds a copy of elements of tensor, and makes these readers read it. */
void settle_keep(settled *w, int32_t tensor, int32_t n, const int32_t *reader,
	const char *why);
/* Copies outputs that are overwritten later. */
void settle_outputs(settled *w);

#endif
