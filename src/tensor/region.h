/*
 * region.h: private to tensor/: calls that are no single program.
 *
 *   intern.c       a recorded body as a trace: equal bodies are one trace
 *   region.c       conditions and calls of C: from bodies to a call
 *   region_loop.c  loops
 *   region_run.c   their evaluation
 *   blocks.c       evaluation of functions that have regions in them
 *   region_back.c  their backward: regions again
 *
 * A region is a trace whose results are not made by calls of its own but by
 * bodies, which are traces. So it is called, tracked, differentiated and put
 * into other functions like a compiled function:
 *
 *     cond(p, x, w)    operands p, x, w   bodies (x) -> y and (x, w) -> y
 *     scan(h, xs, w)   operands h, xs, w  body (h, xs[i], w) -> h, ys[i]
 */
#ifndef TENSOR_REGION_H
#define TENSOR_REGION_H

#include "tensor/capture.h"

typedef enum region_kind {
	REGION_BLOCKS, /* the calls of the trace itself, some of them regions */
	REGION_COND,   /* operand 0 says which of two bodies */
	REGION_LOOP,   /* one body, several times */
	REGION_HOST    /* a function in C on arrays */
} region_kind;

/* What operand j of a body is. */
typedef struct t_feed {
	enum feed_kind {
		FEED_OPERAND, /* operand `at` of the region */
		FEED_CARRY,   /* what is carried, number `at` */
		FEED_ROW,     /* row i + `row` of operand `at` */
		FEED_KEY      /* of random numbers: follows from operand `at` and i */
	} kind;
	int32_t at, row;
} t_feed;

/* What a loop hands from each round to the next. */
typedef struct t_carry {
	int32_t from; /* operand with its first value; -1: zeros */
	int32_t next; /* result of the body */
	int32_t pass; /* it becomes what carry `pass` was, unchanged; -1 */
	bool in_place; /* a storage that the body writes */
} t_carry;

/* What result r of a region is. */
typedef struct t_yield {
	enum yield_kind {
		YIELD_BODY, /* cond: result at[k] of body k; -1: of no interest,
			     * -2 - i: operand i as it is */
		YIELD_LAST, /* carry at[0] in the end */
		YIELD_ROWS, /* result at[0] of the body, a row for each round */
		YIELD_EACH, /* carry at[0] before each round, and in the end */
		YIELD_COUNT /* rounds */
	} kind;
	int32_t at[2];
} t_yield;

typedef struct t_host {
	tensor_host *fn, *back; /* back NULL: no gradient */
	void *arg;
} t_host;

typedef struct t_region {
	region_kind kind;
	t_trace *body[2]; /* LOOP: the second tests before the first round, NULL */
	t_feed *feed[2];
	int32_t n_carries;
	t_carry *carry;
	t_yield *yield;
	int64_t n;     /* rounds; with a test at most, 0: as many as it takes */
	int32_t count; /* operand that says how many rounds; -1 */
	int32_t test;  /* result of the body: once more? -1 */
	bool reverse;  /* the last row first */
	t_host host;
	/* of the run at hand; room is made by the first one */
	t_read *operand;	/* of the body's call */
	t_value **mine;		/* by operand or carry: kept here */
	t_value **then, **lent; /* by carry: the next one; what the call has */
	t_value **made, **list; /* by result; what is flushed */
	t_buffer **saved;	/* by operand: as it was, if it is written */
	t_buffer **rows;	/* by result */
	ir_type *type;		/* of functions in C */
	void **data;
	t_read *at; /* of blocks: by value */
} t_region;

/* A region while it is put together. */
typedef struct t_draft {
	t_region g;
	VEC(t_feed) feed[2];
	VEC(t_carry) carry;
	VEC(t_yield) yield;
	VEC(t_value *) op;  /* by operand: of that type, tracked or not */
	VEC(int32_t) next;  /* by operand: result that is its next version, -1 */
	VEC(t_slot *) slot; /* by operand: where leaves of it collect; NULL */
	VEC(ir_type) type;  /* by result */
	VEC(bool) made;	    /* by result: has a gradient through the body */
} t_draft;

/* Where a body gets an operand from. */
typedef struct t_origin {
	enum origin_kind {
		ORIGIN_ARG,	 /* argument i */
		ORIGIN_KNOWN,	 /* a storage that it knows */
		ORIGIN_GRADIENT, /* what was collected for that */
		ORIGIN_KEY,	 /* key i of random numbers */
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

/* A body that is being recorded, and what came out. */
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
	VEC(t_storage *) tracked; /* it leaves them with a gradient */
	t_trace *f;
	struct t_recorder *next; /* in the list of free ones */
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
void t_recorder_free(tensors *t, t_recorder *r); /* ends what is left */
/* From begin to end calls are the body's. */
void t_recorder_begin(tensors *t, t_recorder *r);
void t_recorder_end(tensors *t, t_recorder *r);
void t_recorder_drop(tensors *t, t_recorder *r); /* for another try */
/* A stand-in for argument i: a storage of its own. */
tensor *t_recorder_argument(tensors *t, t_recorder *r, const ir_type *type,
	bool tracked);
/* Storages that it writes become results; place of the first of them. */
void t_recorder_writes(tensors *t, t_recorder *r);
/* Results and calls as a trace: in r->f, r->from. */
void t_recorder_intern(tensors *t, t_recorder *r, const char *name);
/* An elementwise copy of what x shows, as a value. */
t_value *t_copy_of(tensors *t, t_value *v, t_view *w, const ir_type *type);
/* v if it can be a result as it is; else a copy. */
t_value *t_result_of(tensors *t, const t_recorder *r, const tensor *x);
bool t_same_views(const t_view *x, const t_view *y);
bool t_same_type(const ir_type *x, const ir_type *y);
const char *t_type_text(tensors *t, const ir_type *y);

/* The region of a draft as a trace; is_shared: equal ones are one. */
t_trace *t_region_make(
	tensors *t, t_draft *d, const char *name, bool is_shared);
void t_draft_clear(t_draft *d);

/* region.c */
/* Place of an origin among the operands at hand; adds it. */
int32_t t_operand_place(tensors *t, const t_origin *o);
/* The call, on operands as they are now: kept once for the caller. */
t_call *t_region_call(tensors *t, t_trace *f);
/* What it writes is written. */
void t_region_update(tensors *t, t_call *c, t_storage *s, int32_t result,
	bool is_leaf);

/* region_run.c: the operands of c are there; makes its results */
void t_region_run(tensors *t, t_call *c);
/*
 * The memory of operand i for a value of its own that may be written: it is
 * taken over where a write would, else copied. Kept once.
 */
t_value *t_take(tensors *t, t_call *c, int32_t i);
/* It failed: v has its memory back. */
void t_give_back(tensors *t, t_value *v, t_value *taken);
/* Result r of c gets the elements of v, which is dropped. */
void t_become(tensors *t, t_call *c, int32_t r, t_value *v, bool in_place);
bool t_is_asked(const t_call *c, int32_t r);

/* blocks.c */
void t_run_blocks(tensors *t, t_call *c);

/* region_back.c */
t_trace *t_region_tracked(tensors *t, t_trace *f);
const t_back *t_region_back(tensors *t, const t_trace *f);

#endif
