/*
 * run_kernel.h: runs a verified kernel with the interpreter, if it is small: for
 * fuzz targets, each of which is one file.
 */
#ifndef RUN_KERNEL_H
#define RUN_KERNEL_H

#include "kern/kern.h"
#include "kern_run.h"
#include "kern/range.h"

/* More than that is verified only: elements of arrays, steps of loops. */
enum { MOST_ELEMS = 1 << 16, MOST_STEPS = 1 << 16 };

/* ---- is it small enough to run? ---- */

static int64_t sum(int64_t x, int64_t y)
{
	return x > MOST_STEPS - y ? MOST_STEPS + 1 : x + y;
}

static int64_t times(int64_t x, int64_t y)
{
	return y > 0 && x > MOST_STEPS / y ? MOST_STEPS + 1 : x * y;
}

/* At least the number of statements that b runs; more than MOST_STEPS: so many,
 * or nothing is known. */
static int64_t steps(kern_range *r, const kern_block *b)
{
	int64_t n = 1;

	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];
		int64_t trips = 1, lo, hi;

		if (s->kind == KERN_FOR) {
			lo = kern_least(r, s->lo, INT64_MAX);
			hi = kern_most(r, s->hi, INT64_MIN);
			if (lo == INT64_MIN || hi == INT64_MAX)
				return MOST_STEPS + 1;
			trips = hi <= lo ? 0 : (hi - lo - 1) / s->step + 1;
			kern_range_loop(r, s);
		}
		n = sum(n, times(trips, steps(r, &s->body)));
		n = sum(n, steps(r, &s->other));
	}
	return n;
}

static bool is_small_kernel(arena *a, kern_kernel *k)
{
	kern_range r = kern_range_new(k, a);
	int64_t n = 0, elems = 0;

	r.checked = arena_array(a, int32_t, k->array.n + 1);
	r.once = arena_array(a, bool, k->array.n + 1);
	r.lanes = arena_array(a, const kern_stmt *, k->value.n + 1);
	for (int32_t i = 0; i < k->array.n; i++) {
		if (k->array.at[i].elems > MOST_ELEMS)
			return false;
		elems += k->array.at[i].elems;
	}
	if (elems > MOST_ELEMS || k->scratch_bytes > MOST_ELEMS * 16 ||
		k->local_bytes > MOST_ELEMS * 16)
		return false;
	for (int32_t i = 0; i < k->n_phases; i++) {
		r.n_chunks = k->phase[i].n_chunks;
		n = sum(n, times(k->phase[i].n_chunks,
				   steps(&r, &k->phase[i].body)));
	}
	return n <= MOST_STEPS;
}

/* ---- running ---- */

/* Small numbers: sums of them are exact, and most are valid as indices. */
static void *filled(arena *a, const kern_array *r)
{
	size_t size = dtype_size(r->dtype);
	void *p = arena_alloc(a, (size_t)r->elems * size + 1, 16);

	for (int64_t i = 0; i < r->elems; i++) {
		int64_t x = (i * 7 + 3) % 11 % 4;

		if (r->dtype == TN_BOOL)
			x %= 2;
		else if (dtype_is_float(r->dtype))
			x -= 2;
		dtype_store_i64(r->dtype, p, i, x);
	}
	return p;
}

/* Runs k. Sets *param to the data of its params behind the run; returns the number
 * of the check that failed, or 0. Throws kern.run: see kern_run. */
static int64_t run_kernel(
	arena *a, kern_kernel *k, uint64_t seed, void ***param)
{
	void **p = arena_array(a, void *, k->n_params + 1);

	for (int32_t i = 0; i < k->n_params; i++)
		p[i] = filled(a, &k->array.at[i]);
	for (int32_t i = 0; i < k->n_params; i++)
		if (k->array.at[i].in > 0)
			p[i] = p[k->array.at[i].in - 1];
	*param = p;
	return kern_run(a, k, p, seed);
}

#endif
