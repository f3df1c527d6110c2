/* private.h: what the files of plan/ share. */
#ifndef PLAN_PRIVATE_H
#define PLAN_PRIVATE_H

#include "plan/plan.h"

/* The input whose memory output i is stored in, or -1. */
static inline int32_t plan_store(const ir_system *s, int32_t i)
{
	return i < s->store.n ? s->store.at[i] : -1;
}

/* Offsets in the slab start at multiples of this: a cache line. */
enum { PLAN_ALIGN = 64 };

/* Gives every tensor of the launches its location (locate.c). */
void plan_locate(plan *p, const plan_options *o);
/* Gives those of the slab other offsets if it is smaller then; each takes so many bytes
 * more (fit.c). */
void plan_fit(plan *p, arena *a, size_t guard);

static inline size_t plan_round_up(size_t n)
{
	return (n + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN;
}

/* The phases that copy a steady input: bit i is phase i. locate.c */
uint32_t plan_keeping(const plan *p, const plan_launch *l);
/* The tensor that a phase copies into scratch, if it does nothing else; or -1 */
static inline int32_t plan_copied(const plan_launch *l, int32_t phase)
{
	int32_t k = l->code->phase[phase].copies - 1;

	return k >= 0 ? l->tensor[k] : -1;
}

/* undo.c: restores params if a run fails. */
typedef struct plan_undo plan_undo;
typedef struct plan_data { /* addresses in the current run */
	/* elements that the host can read; NULL: not in memory */
	const void *(*of)(void *arg, int32_t tensor);
	void *arg;
	const void *const *in;
} plan_data;
plan_undo *plan_undo_new(arena *a, const plan *p, run_device *d);
bool plan_undo_is_needed(const plan_undo *u);
void plan_undo_begin(plan_undo *u);
void plan_undo_step(plan_undo *u, int32_t step, const plan_data *d); /* before it */
void plan_undo_end(plan_undo *u, bool failed, const void *const *in);
/* Notes that check c failed; plan_undo_calls: the calls that read there. */
void plan_undo_blame(plan_undo *u, const c_check *c);
int32_t plan_undo_calls(const plan_undo *u, const int32_t **call);

/* The param whose memory tensor t uses, or -1. */
int32_t plan_param_of(const plan *p, int32_t t);

int32_t plan_n_outputs(const plan_launch *l); /* verify.c */

#endif
