/*
 * order.h: private to kern/: the state of the check that elements are written
 * before they are read.
 */
#ifndef KERN_ORDER_H
#define KERN_ORDER_H

#include "kern/verify.h"

/* What an integer or a condition may be: lo .. hi, both of them, too. */
struct kern_span {
	int64_t lo, hi;
};

#define KERN_ALL ((struct kern_span){INT64_MIN, INT64_MAX})

/* x + (lo .. hi) */
static inline struct kern_span kern_span_plus(
	struct kern_span x, int64_t lo, int64_t hi)
{
	struct kern_span s;

	return add_ok(x.lo, lo, &s.lo) && add_ok(x.hi, hi, &s.hi) ? s : KERN_ALL;
}

static inline bool kern_span_is_one(struct kern_span s)
{
	return s.lo == s.hi;
}

/* A read of elements lo .. hi of an array, of which some may not be written. */
struct kern_early {
	const kern_stmt *s;
	int32_t array;
	struct kern_span at;
};

/* By byte of some memory: has it been written? */
struct kern_bits {
	uint64_t *at;
	int64_t n;
};

/* A word of kern_bits, as it was before. */
struct kern_undo {
	uint64_t *at;
	uint64_t was;
};

/* A store of n lanes that certainly has been executed in the blocks around. */
struct kern_done {
	int32_t array, n;
	const kern_form *at;
	int64_t stride;
};

/* A loop that is walked as one iteration, whose bounds are known. */
struct kern_open {
	kern_val v;
	int64_t lo, step, trips;
};

enum { KERN_MOST_OPEN = 8 };

/* A store that such loops around it repeat: elements that are written behind them. */
struct kern_later {
	int32_t array, n, depth; /* depth: number of loops */
	int32_t outer; /* the outermost of them in o->open */
	int64_t at, stride;
	int64_t step[KERN_MOST_OPEN], trips[KERN_MOST_OPEN];
};

/* A register before a loop or a condition. */
struct kern_kept {
	uint64_t bad;
	const struct kern_early *early;
};

struct kern_order {
	struct kern_verifier *v;
	kern_kernel *k;
	arena *a;
	bool *tracked; /* by array: somebody reads it, and nobody else fills it */
	int32_t *depth;	 /* by array: loops around its declaration */
	bool *stores; /* by loop variable: the loop stores into tracked arrays
			 that live longer than one iteration */
	bool *data;	 /* by value: it follows from what is loaded */
	int64_t *first;	 /* by value: its first lane in cell */
	int32_t *n_cells; /* .. and its lanes; 0 of floats, which have none */
	struct kern_span *cell;
	uint64_t *bad; /* by value: lanes that may be of memory not written yet */
	const struct kern_early **early; /* by value: what was read too early */
	bool *named; /* by value: it has been computed where it is used */
	struct kern_bits scratch, local, *own; /* own: by array */
	VEC(struct kern_undo) undo;
	VEC(struct kern_done) done;
	VEC(struct kern_open) open;
	VEC(struct kern_later) later;
	int32_t base; /* those of o->open in front of it are outside of a condition,
		       * or a loop, of which little is known */
	int64_t writes; /* stores into tracked arrays */
	int64_t lost; /* .. of which it is not known what they write */
	VEC(kern_val) reg; /* the registers of the blocks around */
	VEC(struct kern_kept) kept; /* a stack: some rows of all registers */
	VEC(struct kern_span) spans; /* .. and their cells */
	const kern_stmt *s;
	/* what is read too early: statements do nothing more, until a loop that
	 * was looked at as a whole is walked step by step */
	const struct kern_early *fault;
	bool exact; /* loops are walked step by step */
	int64_t left; /* steps; less than 0: too many, nothing is known */
};

static inline bool kern_order_stops(const struct kern_order *o)
{
	return o->fault != NULL || o->left < 0;
}

/* order_memory.c */
void kern_order_room(struct kern_order *o);
/* Elements at.lo .. at.hi of the array: are they all written? Those that are not
 * inside are not accessed: bounds are verified. */
bool kern_order_is_set(
	const struct kern_order *o, int32_t array, struct kern_span at);
/* Element at, or one of them if there are several, gets a value; bad: of memory
 * that is not written; sure: the store is executed. */
void kern_order_put(struct kern_order *o, int32_t array, struct kern_span at,
	bool sure, const struct kern_early *bad);
/* n elements, which are certainly stored; they are at base, if it is known. */
void kern_order_write(struct kern_order *o, const kern_access *at,
	struct kern_span base, int32_t n);
/* Behind loops: what o->later has from `from` on is written, unless loops that are
 * still open repeat it. */
void kern_order_write_later(struct kern_order *o, int32_t from);
void kern_order_fill(struct kern_order *o, int32_t array, bool set);
void kern_order_forget_local(struct kern_order *o);
/* Takes back what was written since; keep_lost: not what was lost. */
void kern_order_undo(struct kern_order *o, int32_t n, bool keep_lost);

/* order_value.c */
struct kern_span kern_order_form(struct kern_order *o, const kern_form *f);
/* Computes the value of an instruction, unless it has been. */
void kern_order_take(struct kern_order *o, kern_val x);
void kern_order_value(struct kern_order *o, kern_val x);
struct kern_span kern_order_cell(
	const struct kern_order *o, kern_val x, int32_t lane);
uint64_t kern_order_lanes(int32_t n); /* bits 0 .. n - 1 */
/* Rows that are read: all of their elements must have been written. */
void kern_order_read_rows(struct kern_order *o, const kern_stmt *s,
	const kern_access *at, int64_t step, int64_t rows, int64_t width);

#endif
