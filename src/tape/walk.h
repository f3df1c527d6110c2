/*
 * walk.h: private to tape/ and func/: what the files of tape/ share.
 *
 * In this order: no file calls one of a later line, as tools/house.py checks.
 *
 *   grad.c    which tensors have a gradient
 *   same.c    values of a compiled function that have the same elements
 *   chain.c   reads of a backward go to what is kept anyway
 *   again.c   what a backward computes once more
 *   backward.c  cotangents, from values to the values they depend on
 *   trace.c   the backward of recorded calls
 *   second.c  traces with gradients, for gradients of gradients
 */
#ifndef TAPE_WALK_H
#define TAPE_WALK_H

#include "tape/tape.h"
#include "value/node.h"

/* A copy of a trace in which these operands have a gradient. */
typedef struct t_live {
	const bool *tracked;
	t_trace *f;
} t_live;

static inline bool t_is_in(int32_t n, t_value *const *list, const t_value *v)
{
	for (int32_t i = 0; i < n; i++)
		if (list[i] == v)
			return true;
	return false;
}

/* same.c: another read in f with the elements of v, which is kept instead of v; or
 * v. reads: values that are kept in any case. */
t_read t_same_of(tensors *t, const t_trace *f, int32_t n_reads,
	t_value *const *reads, t_value *v);
/* Do gradients of `to`, from t_same_of, reach the same leaves as those of v? */
bool t_same_history(
	tensors *t, const t_trace *f, const t_value *v, const t_value *to);
/* chain.c: redirects reads of b to results that have the same elements: b->moved. */
void t_find_kept(tensors *t, const t_trace *f, t_back *b, t_value *const *seed);
/* again.c: recomputes in `back` values of f that it reads */
void t_make_again(
	tensors *t, const t_trace *f, t_trace *back, t_value *const *seed);

/*
 * backward.c: walks over the calls of a trace from cotangents of its results
 * (seed[], NULL: none) to those of its operands (grad[]), of the newest leaf made
 * of each operand (leaf[]) and of older ones (old[]). Does not fill slots.
 */
void t_walk_trace(tensors *t, const t_trace *f, t_value *const *seed,
	t_value **grad, t_value **leaf, t_value **old);

void t_slot_add(tensors *t, t_slot *s, t_value *g);

/* second.c: records the calls of f, on these operands; out: its results */
void t_trace_inline(
	tensors *t, t_trace *f, t_value *const *arg, t_value **out);

/* trace.c */
/* The trace with a backward for all its results; NULL: none is tracked. */
t_trace *t_trace_tracked(tensors *t, t_trace *f);
/* seeded: by result, with middles, which have cotangents in second gradients */
const t_back *t_back_of(tensors *t, t_trace *f, const bool *seeded);

/* The backward b of f as a trace that can be differentiated; NULL: impossible. */
t_trace *t_back_live(tensors *t, const t_trace *f, const t_back *b);

#endif
