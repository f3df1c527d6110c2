/*
 * range.h: private to kern/: what forms can be, by loops and conditions around.
 */
#ifndef KERN_RANGE_H
#define KERN_RANGE_H

#include "kern/local.h"

/*
 * lo <= f < hi; INT64_MIN, INT64_MAX: no bound. wraps: f is what 64 bits hold of
 * it, so that nothing follows for what it is made of.
 */
struct kern_fact {
	const kern_form *f;
	int64_t lo, hi, wraps;
};

typedef struct kern_range {
	kern_kernel *k;
	const kern_stmt **loop; /* by value: its FOR, of WALK and AFTER; else NULL */
	int32_t n_loop;
	int64_t n_chunks;
	VEC(struct kern_fact) fact;
	VEC(kern_val) made; /* values of this analysis alone: quotients of lanes */
	int32_t *checked; /* by array of a block: the check of all its values; 0 */
	/* by array of a block: one statement of that block, in which nobody reads
	 * it, writes it, and those behind it read it as it is then */
	bool *once;
	/* by register: the one statement that sets its lanes, all of them; NULL */
	const kern_stmt **lanes;
	/* by value: its absolute value is at most that, whatever holds; NULL: nothing
	 * is known to exceed 64 bits */
	uint64_t *reach;
	int64_t budget;
	int32_t patience; /* steps of a proof, in times of the usual ones, and one more */
	bool alone; /* a value by itself is asked for */
	bool data; /* a value from memory stood in the way */
} kern_range;

kern_range kern_range_new(kern_kernel *k, arena *a);
void kern_range_loop(kern_range *r, const kern_stmt *s); /* of s's values */

/* The largest value of f that is known; INT64_MAX: none. Stops at goal. */
int64_t kern_most(kern_range *r, const kern_form *f, int64_t goal);
int64_t kern_least(kern_range *r, const kern_form *f, int64_t goal);

/* Is f known to be a multiple of m? */
bool kern_is_multiple(kern_range *r, const kern_form *f, int64_t m);

/* ---- range_reach.c ---- */

/* The absolute value of f is at most that, whatever holds; larger ones than 64
 * bits hold are KERN_BEYOND. */
#define KERN_BEYOND (UINT64_C(1) << 63)
uint64_t kern_reach(const kern_range *r, const kern_form *f);

/* ---- range_pair.c ---- */

/* f with a bound in place of two values that are quotients of one number, of which one
 * divides further: at least f. NULL: there are none such. */
const kern_form *kern_without_pair(kern_range *r, const kern_form *f);

/* ---- fact.c ---- */

enum { KERN_MAX_FACTS = 400 };

/* Do the conditions contradict each other? Then nothing is done here. */
bool kern_is_never(const kern_range *r);
/* From here on lo <= f < hi, and what follows from it. */
void kern_add_fact(
	kern_range *r, const kern_form *f, int64_t lo, int64_t hi);
/* x of another form, a value of this analysis if the kernel has none */
const kern_form *kern_made(
	kern_range *r, const kern_value *x, const kern_form *form);
/* An integer that follows from one form and constants. */
bool kern_is_of_form(const kern_value *x);
/* f with the first value of those that are made alike for each of its values: what
 * conditions say of the lanes of a register is said of these. nest: 0 */
const kern_form *kern_first_made(
	kern_range *r, const kern_form *f, int32_t nest);
/* f mod m, likewise */
const kern_form *kern_remainder(
	kern_range *r, const kern_form *f, int64_t m);
/* The element of an array of a block that is written once: its first load, or one
 * that only this analysis has; NULL: it is written several times. */
const kern_form *kern_loaded(
	kern_range *r, const kern_value *x, const kern_form *at);
/* The first load of the same element of an array of a block; v: there is none. */
kern_val kern_same_load(kern_range *r, kern_val v);

/* ---- range_each.c ---- */

/*
 * Calls fn with each value of f that loops and conditions allow, and that of
 * `also` with it; perhaps with others, and with some several times. false: these
 * are too many, some cannot be told, or fn has said false.
 */
typedef bool kern_each_fn(void *arg, int64_t f, int64_t also);
bool kern_each(kern_range *r, const kern_form *f, kern_val also,
	kern_each_fn *fn, void *arg);

/* Is lo <= f < hi, by all values of each part of f that has nothing to do with the
 * others? */
bool kern_each_part(kern_range *r, const kern_form *f, int64_t lo, int64_t hi);

/* ---- inside.c ---- */

/* Is lo <= f < hi? */
bool kern_is_inside(kern_range *r, const kern_form *f, int64_t lo, int64_t hi);

/* ---- assume.c ---- */

/* An integer in lanes, in this lane, as a form; NULL: it is none. */
const kern_form *kern_lane_form(
	kern_range *r, kern_val v, const kern_form *lane);
/* What holds where the condition c does (or does not), of a mask in lane `lane`;
 * NULL: c has one lane. Facts are taken back by setting r->fact.n. */
void kern_assume(
	kern_range *r, kern_val c, const kern_form *lane, bool holds);
/* .. in an iteration of the loop: that there is one */
void kern_assume_loop(kern_range *r, const kern_stmt *s);

#endif
