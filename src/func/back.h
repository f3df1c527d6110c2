/*
 * back.h: the backward of a region while it is made; private to region_back.c,
 * back_body.c, back_cond.c and back_sum.c.
 */
#ifndef FUNC_BACK_H
#define FUNC_BACK_H

#include "func/region.h"

enum side { OF_IN, OF_OUT, OF_SEED };

/* An operand of the backward. */
typedef struct seen {
	enum side side;
	int32_t i;
} seen;

/* A gradient: of operand of_in of what it is the backward of. */
typedef struct given {
	int32_t of_in, kind;
	int32_t result; /* of the backward; -1 - k: sum k */
} given;

/* Operand `operand` of the backward, whole (row -1) or from this row on; or its
 * result, rows that the loop leaves; or an earlier sum; -1: it is not that. */
typedef struct row_from {
	int32_t operand, row, result, sum;
} row_from;

/* A gradient that is one call behind the backward of a loop: back_sum.c. */
typedef struct row_sum {
	t_entry *entry;
	int32_t n;
	row_from *from; /* by operand */
} row_sum;

/* Rows of a value of the body, for such calls. */
typedef struct left_row {
	const t_value *v;
	int32_t result; /* of the backward */
} left_row;

typedef struct deriving {
	tensors *t;
	t_trace *f; /* what it is the backward of */
	t_region *g;
	VEC(t_value *) out; /* results of f with what is kept */
	VEC(t_yield) yield;
	t_draft d; /* the backward */
	VEC(seen) seen;	  /* by operand of it */
	VEC(given) given; /* by gradient that it gives */
	VEC(row_sum) sum; /* gradients that are made behind it: back_sum.c */
	VEC(left_row) left;
	int64_t n_left;	  /* bytes of rows that these read, a round */
	t_trace *made_of; /* it with these; NULL: it has none */
	/* of the body that is recorded */
	t_capture c;
	int32_t arm;
	VEC(t_value *) in; /* its operands */
	VEC(t_value *) made;
	int32_t *cotangent; /* loop: by carry, the one that carries it; -1 */
	bool *wanted; /* cond: by 2 * operand + is a leaf: some branch gives it */
} deriving;


/* ---- back_body.c ---- */

t_value *back_sum_of(tensors *t, t_value *x, t_value *y);
t_value *back_zeros(tensors *t, const ir_type *y);
t_value *back_added(tensors *t, t_value *x, t_value *y);
int32_t back_operand(deriving *d, enum side side, int32_t i);
/* A further result of the region; one that is there already. */
int32_t back_kept(deriving *d, t_yield y, const ir_type *type);
ir_type back_rows_type(const deriving *d, const ir_type *row, int64_t n);
/* A new operand of the current body, with this source. */
t_value *back_fed(deriving *d, t_feed x, const ir_type *type);
/* The body's backward on what it reads; NULL: it has none. */
t_call *back_record(deriving *d, const t_trace *body,
	t_value *(*read)(deriving *d, const t_trace *body, const t_back *b,
		int32_t k));
void back_end(deriving *d);
void back_begin(deriving *d, int32_t arm);
/* Result of the backward: gradient or leaf of operand i, made so. */
void back_give(deriving *d, int32_t i, int32_t kind, t_yield y,
	const ir_type *type);
int32_t back_made(deriving *d, t_value *v);

/* ---- back_cond.c ---- */

void back_cond(deriving *d);

/* ---- back_sum.c ---- */

/*
 * The gradient v of operand i, a sum over the rounds, as one call on rows behind
 * the loop; false: it cannot be, or would keep more than it saves.
 */
bool back_sum_rows(deriving *d, int32_t i, const t_value *v);
/* The backward of the loop with these calls behind it. */
t_trace *back_with_sums(deriving *d, t_trace *loop, const char *name);

#endif
