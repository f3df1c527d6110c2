/* private.h: what the files of plan/ share. */
#ifndef PLAN_PRIVATE_H
#define PLAN_PRIVATE_H

#include "plan/plan.h"

/* The input in whose memory output i ends; -1: none. */
static inline int32_t plan_store(const ir_system *s, int32_t i)
{
	return i < s->store.n ? s->store.at[i] : -1;
}

/* Offsets in the slab start at multiples of this: a cache line. */
enum { PLAN_ALIGN = 64 };

/* Gives every tensor of the call list its place (place.c). */
void plan_place_all(plan *p, const plan_options *o);

static inline size_t plan_round_up(size_t n)
{
	return (n + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN;
}

/* The tensor that a phase copies into scratch, and does no more; -1: none */
static inline int32_t plan_copied(const plan_launch *l, int32_t phase)
{
	int32_t k = l->code->phase[phase].copies - 1;

	return k >= 0 ? l->tensor[k] : -1;
}

#endif
