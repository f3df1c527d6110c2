/*
 * cut.h: chooses the values of the forward that are kept for the backward; the
 * others are recomputed.
 *
 * Consumes a small graph: values in the order of computation, each with its size,
 * the work to compute it from its sources, whether it can be recomputed, and
 * whether the backward reads it. Finds by a minimum cut which values are kept:
 * every other one can be recomputed from kept and available values.
 *
 *     x -> exp -> y -> mul by x -> z; the backward reads x and y
 *     y is read but not kept: exp(x) again, if that is cheaper than y's bytes
 */
#ifndef GRAD_CUT_H
#define GRAD_CUT_H

#include "base/base.h"

typedef struct cut_value {
	int64_t bytes;
	int64_t work; /* to compute it from its sources; >= 0 */
	bool is_there; /* available anyway: inputs, parameters, outputs */
	bool is_fixed; /* cannot be recomputed: random numbers, overwritten sources */
	bool is_read;  /* by the backward */
	int32_t n_sources;
	const int32_t *source; /* values with smaller numbers */
} cut_value;

typedef struct cut_options {
	/* what a unit of work costs, in bytes kept; 0: only bytes count */
	double bytes_per_work;
	/* at most so many bytes are kept, if work can buy that; -1: no limit */
	int64_t limit;
} cut_options;

typedef struct cut_result {
	bool *keep;  /* by value: stored for the backward */
	bool *again; /* by value: computed again */
	int64_t bytes, work; /* of those */
	bool fits; /* the limit holds */
} cut_result;

/*
 * Least bytes kept + bytes_per_work * work done again. With a limit the price
 * of work falls until the bytes fit, or it is 0: then fits says whether they do.
 * There it is near the least only: equal values are kept at different prices.
 */
cut_result cut_choose(
	arena *a, int32_t n, const cut_value *value, const cut_options *o);

#endif
