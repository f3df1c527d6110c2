/*
 * reason_local.h: what the files of reason_check share: iterations of the
 * equations of a set, what they touch, and the digits that agree on it.
 */
#ifndef REASON_LOCAL_H
#define REASON_LOCAL_H

#include "reason_check.h"

enum {
	POINTS = 150,	  /* iterations drawn for an edge */
	MAKERS = 3,	  /* iterations that make an element, of those */
	CHANCE = 3,	  /* iterations of a part of an axis */
	SMALL = 5000,	  /* boxes that are walked to find who makes one */
	MAX_DIGITS = 4000 /* of one equation */
};

typedef struct touch {
	int32_t tensor;
	int64_t at;
} touch;

typedef struct digits {
	VEC(eqn_digit) at;
} digits;

/* c at y reads, or p at x makes or overwrites it. */
typedef struct pair {
	int64_t *x, *y;
} pair;

typedef struct link {
	int32_t p, c; /* members */
	bool is_write;
	VEC(pair) pair;
	VEC(int32_t) * of; /* by digit of p: those of c that agree */
} link;

typedef struct checker {
	arena *a;
	env *env;
	fuse_plan *p;
	prop_random *r;
	const fuse_reason *why;
	eqn_graph *g;
	const fuse_kernel **kernel; /* by source */
	eqn_unit **unit;	    /* by source */
	int32_t n_sources;
	const ix_form *form; /* under evaluation */
	VEC(touch) seen;
	/* a set */
	int32_t n;
	eqn_unit **set;
	digits *all;
	VEC(link) link;
	int32_t *chosen;
	bool policy; /* contractions may not be cut where they reduce */
} checker;

/* ---- reason_set.c ---- */

/* throws: the reason at hand is false */
_Noreturn void reason_wrong(checker *w, const char *what);
/* of a form at a point: data is drawn, and noted as read */
int64_t reason_value(checker *w, const ix_form *f, const int64_t *point);
int64_t reason_below(checker *w, int64_t n);
/* the i-th iteration: corners first */
int64_t *reason_point(checker *w, const eqn_unit *u, int32_t i);
bool reason_makes(const eqn_unit *u, int32_t tensor);
bool reason_destroys(
	const checker *w, const eqn_unit *p, const eqn_unit *c, int32_t tensor);
/* iterations of the link's writer that make what its reader reads at y */
void reason_add_pair(checker *w, link *l, int64_t element, int64_t *y);
int64_t reason_digit(const eqn_digit *d, const int64_t *point);
bool reason_is_reduced(const eqn_unit *u, const eqn_digit *d);
bool reason_agree(const link *l, const eqn_digit *d, const eqn_digit *e);
/* the set at hand, with its links and digits */
void reason_open(checker *w, int32_t n, const int32_t *source);
/* a loop through all, members 0 .. n - 1 being chosen */
bool reason_has_loop(checker *w, int32_t n);
bool reason_is_tied(const checker *w);

#endif
