/*
 * region.h: private to func/: calls that are not a single program.
 *
 *   intern.c       makes a trace of a recorded body; equal bodies are one trace
 *   region.c       records conditions and calls of C functions
 *   region_loop.c  records loops
 *   region_run.c   evaluates them
 *   region_device.c  .. as programs of a device
 *   blocks.c       evaluates functions that contain regions
 *   region_back.c  their backward, which consists of regions (back.h)
 *
 * A region is a trace whose results are not computed by calls but by bodies, which
 * are traces. So it is called, tracked, differentiated and used in other functions
 * like a compiled function:
 *
 *     cond(p, x, w)    operands p, x, w   bodies (x) -> y and (x, w) -> y
 *     scan(h, xs, w)   operands h, xs, w  body (h, xs[i], w) -> h, ys[i]
 */
#ifndef FUNC_REGION_H
#define FUNC_REGION_H

#include "func/func.h"
#include "tape/walk.h"
#include "value/capture.h"

/* The source of an operand of a body. */
typedef struct t_feed {
	enum feed_kind {
		FEED_OPERAND, /* operand `at` of the region */
		FEED_CARRY,   /* carried tensor number `at` */
		FEED_ROW,     /* row i + `row` of operand `at` */
		FEED_KEY      /* a key for random numbers, of operand `at` and i */
	} kind;
	int32_t at, row;
} t_feed;

/* A tensor that a loop carries from each round to the next. */
typedef struct t_carry {
	int32_t from; /* operand with its first value; -1: zeros */
	int32_t next; /* result of the body */
	int32_t pass; /* it becomes the value of carry `pass` in this round; or -1 */
	bool in_place; /* the body writes this storage */
} t_carry;

/* The source of a result of a region. */
typedef struct t_yield {
	enum yield_kind {
		YIELD_BODY, /* cond: result at[k] of body k; -1: not needed;
			     * -2 - i: operand i */
		YIELD_LAST, /* carry at[0] at the end */
		YIELD_ROWS, /* result at[0] of the body, a row for each round */
		YIELD_EACH, /* carry at[0] before each round, and at the end */
		YIELD_COUNT /* the number of rounds */
	} kind;
	int32_t at[2];
} t_yield;

typedef struct t_host {
	tensor_host *fn, *back; /* back NULL: no gradient */
	void *arg;
} t_host;

typedef struct t_region {
	t_trace *body[2]; /* LOOP: the second, or NULL, tests before the first round */
	t_feed *feed[2];
	int32_t n_carries;
	t_carry *carry;
	t_yield *yield;
	int64_t n;     /* rounds; with a test, the most; 0: no limit */
	int32_t count; /* operand with the number of rounds, or -1 */
	int32_t test;  /* result of the body: another round? or -1 */
	bool reverse;  /* from the last row to the first */
	t_host host;
	/* of the current run; the first run allocates them */
	t_read *operand;	/* of the body's call */
	t_value **mine;		/* by operand or carry: its value here */
	t_value **then, **lent; /* by carry: the next value; the value of the call */
	t_value **made, **list; /* by result; values to flush */
	t_buffer **saved;	/* by operand: a copy from before, if it is written */
	t_buffer **rows;	/* by result */
	ir_type *type;		/* of functions in C */
	void **data;
	t_rounds rounds; /* of loops */
	t_read *at; /* of blocks: by value */
	void *program; /* that does it on a device (region_device.c); NULL: none yet */
	const char *asks; /* why there is none; NULL: it was not tried, or there is */
} t_region;

/* A region under construction. */
typedef struct t_draft {
	region_kind kind;
	t_region g;
	VEC(t_feed) feed[2];
	VEC(t_carry) carry;
	VEC(t_yield) yield;
	VEC(t_value *) op;  /* by operand: a value of its type, tracked or not */
	VEC(int32_t) next;  /* by operand: the result that is its next version, or -1 */
	VEC(t_slot *) slot; /* by operand: collects gradients of leaves of it; or NULL */
	VEC(ir_type) type;  /* by result */
	VEC(bool) made;	    /* by result: has a gradient through the body */
} t_draft;

/* The origin of an operand of a body. */
typedef struct t_origin {
	enum origin_kind {
		ORIGIN_ARG,	 /* argument i */
		ORIGIN_KNOWN,	 /* a storage from outside */
		ORIGIN_GRADIENT, /* the gradient collected for it */
		ORIGIN_KEY,	 /* key i for random numbers */
		ORIGIN_VALUE
	} kind;
	int32_t i;
	t_storage *s;
	t_value *v;
} t_origin;

/* Operand `in` of a body is a storage, and result `out` its next version. */
typedef struct t_written {
	int32_t in, out;
	bool is_leaf;
} t_written;

/* The recording of a body, and its result. */
typedef struct t_recorder {
	t_capture c;
	bool is_open, is_full;
	int32_t n_args;
	tensor **in, **out; /* handles */
	int32_t room_in, room_out;
	VEC(t_value *) given, value; /* operands, results of the trace */
	VEC(t_origin) from;	     /* by operand */
	VEC(t_written) written;
	VEC(bool) force; /* by output: see region.c */
	VEC(t_storage *) tracked; /* storages that have a gradient afterwards */
	t_trace *f;
	struct t_recorder *next; /* in the free list */
} t_recorder;

struct t_regions {
	map *number_of; /* structure -> number of a trace */
	VEC(t_trace *) trace;
	t_recorder *spare;
	VEC(int32_t) code;
	VEC(t_slot *) slot;
	t_draft draft;
	VEC(t_origin) op; /* by operand of the draft */
};

/* intern.c */
struct t_regions *t_regions_of(tensors *t);
t_recorder *t_recorder_new(tensors *t, int32_t n_in, int32_t n_out);
void t_recorder_free(tensors *t, t_recorder *r); /* ends an open recording */
/* Calls between begin and end are recorded in the body. */
void t_recorder_begin(tensors *t, t_recorder *r);
void t_recorder_end(tensors *t, t_recorder *r);
void t_recorder_drop(tensors *t, t_recorder *r); /* to record again */
/* A new storage that replaces argument i. */
tensor *t_recorder_argument(tensors *t, t_recorder *r, const ir_type *type,
	bool tracked);
/* Makes the storages that it writes results. */
void t_recorder_writes(tensors *t, t_recorder *r);
/* Makes a trace of results and calls: r->f, r->from. */
void t_recorder_intern(tensors *t, t_recorder *r, const char *name);
/* The value of x if it can be a result; else a copy. */
t_value *t_result_of(tensors *t, const t_recorder *r, const tensor *x);
bool t_same_views(const t_view *x, const t_view *y);
bool t_same_type(const ir_type *x, const ir_type *y);
const char *t_type_text(tensors *t, const ir_type *y);

/* Makes a trace of a draft; is_shared: equal ones are one trace. */
t_trace *t_region_make(
	tensors *t, t_draft *d, const char *name, bool is_shared);
void t_draft_clear(t_draft *d);

/* region.c */
/* The index of an origin among the operands of the draft; adds it if needed. */
int32_t t_operand_place(tensors *t, const t_origin *o);
/* Records the call on the current operands; adds a reference for the caller. */
t_call *t_region_call(tensors *t, t_trace *f);
/* Updates storage s by a result of the call. */
void t_region_update(tensors *t, t_call *c, t_storage *s, int32_t result,
	bool is_leaf);

/* region_run.c: computes the results of c, whose operands are computed */
void t_region_run(tensors *t, t_call *c);
/* region_device.c: is it a program of the device? If not, it notes why. */
bool t_region_is_program(tensors *t, t_call *c);
void t_region_run_program(tensors *t, t_call *c);
/*
 * A value that can be written, with the elements of operand i: it uses the memory
 * of the operand if a write could, else a copy. Adds a reference.
 */
t_value *t_take(tensors *t, t_call *c, int32_t i);
/* Gives result r of c the elements of v, and drops v. */
void t_become(tensors *t, t_call *c, int32_t r, t_value *v, bool in_place);
bool t_is_asked(const t_call *c, int32_t r);
/* Are the elements of operand i needed by anybody but this call? */
bool t_is_wanted_beside(tensors *t, const t_call *c, int32_t i);
/* Result `to` is in b, or in the memory that waits for it. */
void t_settle_result(tensors *t, t_value *to, t_buffer *b);

/* blocks.c */
void t_run_blocks(tensors *t, t_call *c);

/* region_back.c */
t_trace *t_region_tracked(tensors *t, t_trace *f);
const t_back *t_region_back(tensors *t, const t_trace *f);

/* blocks.c: is result r the next version of an operand? */
bool t_is_version(const t_trace *f, int32_t r);

#endif
