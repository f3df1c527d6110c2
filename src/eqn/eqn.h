/*
 * eqn.h: the door of eqn/: equations joined, judged and solved.
 *
 *   unit   an equation as fusion works on it: substituted, coalesced, with
 *          the list of its reads, each in the guards it stands under
 *   edge   unit c reads what unit p makes: coordinate by coordinate of p, as
 *          forms over c's axes (join)
 *   judge  what becomes of one digit of p on an edge: a digit of c, or why not
 *   solve  every axis of a unit as a form over the loop variables of a kernel
 *   window which elements a write makes new
 *
 *   t[i,j] = exp(x[6i+j]);  s[j] += t[i,j]:   edge t -> s has X = (i, j);
 *   digit i of t is digit i of s, which is reduced; digit j of t is j of s.
 */
#ifndef EQN_H
#define EQN_H

#include "system/system.h"

/* One read, in the guards it stands under. */
typedef struct eqn_read {
	int32_t tensor;
	const ix_form *at; /* flat element number */
	ix_dom dom;	   /* the box of its place, and the guards in force */
	bool is_index;	   /* inside an index: data */
	bool in_init;	   /* in the initial value, over the left axes */
} eqn_read;

typedef struct eqn_unit {
	int32_t id;	/* dense in a graph */
	int32_t source; /* equation of the system it came from */
	sys_eqn e;	/* substituted and coalesced; ids are the system's */
	ix_box box;
	/*
	 * Left axis i is digit (stride, stride * extent) of the element number
	 * of the result. 0: it is not (an axis of a scatter that the address
	 * does not walk bare).
	 */
	const int64_t *stride;
	int64_t out_elems, volume, flops;
	int32_t n_reads;
	const eqn_read *read;
	struct eqn_edge **edge; /* by read: the edge joined last */
	/* a sum over an axis that two reads share, each with an axis of its own */
	bool contraction;
	bool has_scan;
	int32_t shape; /* equal numbers: equal but for the tensors they name */
	int32_t kin;   /* equal numbers: equal but for tensors and extents */
	int32_t n_names;
	const int32_t *name; /* the tensors it names: results, then operands as they first occur */
} eqn_unit;

typedef enum eqn_verdict {
	EQN_RELATED,
	EQN_FREE,	/* the coordinate does not depend on the reader's axes */
	EQN_SHIFT,	/* a digit plus a constant */
	EQN_REVERSED,	/* a digit walked downwards */
	EQN_MISALIGNED, /* several digits, or a part of one */
	EQN_OPAQUE	/* read from data */
} eqn_verdict;

/* A digit of an axis: (axis div lo) mod (hi / lo). */
typedef struct eqn_digit {
	int32_t axis;
	int64_t lo, hi;
} eqn_digit;

typedef struct eqn_memo {
	eqn_digit of;	    /* of p */
	const ix_form *q;   /* its value at the read, over c */
	bool related;
	eqn_digit at;	    /* of c */
} eqn_memo;

/* p NULL: a tensor from outside, as one axis of all its elements. */
typedef struct eqn_edge {
	const eqn_unit *p, *c;
	const eqn_read *read;
	int32_t n_x;
	const ix_form **x; /* coordinate of each left axis of p; NULL where stride is 0 */
	VEC(eqn_memo) memo;
} eqn_edge;

typedef struct eqn_graph {
	arena *a;
	arena *scratch; /* of one call; the owner may exchange it between calls */
	ir_system *s;
	VEC(eqn_unit *) unit;
	VEC(eqn_edge *) edge;
	map *edge_of;  /* (p, c, read) -> edge */
	map *shape_of; /* text of a unit without its tensors -> shape */
	map *kin_of;   /* and without its extents -> kin */
	/* by tensor: what replaces reads of it, or NULL */
	const sys_eqn **replace;
} eqn_graph;

/* ---- join ---- */

eqn_graph *eqn_graph_new(arena *a, ir_system *s);
/* e as it stands, as a unit; e is coalesced first */
eqn_unit *eqn_unit_new(eqn_graph *g, const sys_eqn *e, int32_t source);
/* the edge of read number `read` of c; p NULL: the tensor is from outside */
eqn_edge *eqn_join(eqn_graph *g, const eqn_unit *p, const eqn_unit *c,
	int32_t read);

/* ---- substitution ---- */

/* reads of out[0] of p become its right side until eqn_keep(p) */
void eqn_replace(eqn_graph *g, const sys_eqn *p);
void eqn_keep(eqn_graph *g, const sys_eqn *p);
/* e with all replacements made; reads inside indexes only where bare */
sys_eqn eqn_inline(eqn_graph *g, const sys_eqn *e);
/* can it be replaced without doing anything again: a movement or a constant? */
bool eqn_is_movement(const sys_eqn *e);
/* neighbouring axes that every form walks as one become one */
sys_eqn eqn_coalesce(eqn_graph *g, const sys_eqn *e);

/* ---- judge ---- */

/* Is digit d of p at this read exactly one digit of c? */
bool eqn_relate(eqn_graph *g, eqn_edge *e, eqn_digit d, eqn_digit *out);
/* .. or a digit of one of several parts that guards tell apart? */
bool eqn_relate_part(eqn_graph *g, eqn_edge *e, eqn_digit d, eqn_digit *out);
/* its value over c; NULL: not known */
const ix_form *eqn_value(eqn_graph *g, eqn_edge *e, eqn_digit d);
eqn_verdict eqn_judge(eqn_graph *g, eqn_edge *e, eqn_digit d);

/* ---- window ---- */

enum { EQN_MAX_GUARDS = 8 };

/* Of the elements of `old` those stay as they are at which no guard holds. */
typedef struct eqn_writes {
	int32_t old; /* the tensor before; -1: e may change every element */
	ix_dom dom;  /* the left axes */
	int32_t n_guards;
	const expr *guard[EQN_MAX_GUARDS]; /* each where those before fail */
} eqn_writes;

/* Does e leave elements of a tensor of its size as they are? fills w */
bool eqn_window(arena *a, ir_system *s, const sys_eqn *e, eqn_writes *w);
/* Proved: who writes w changes nothing that r, a read of its storage, sees. */
bool eqn_disjoint(ir_system *s, const eqn_writes *w, const eqn_read *r);
/* element number of the result at a point of the left axes; fills d */
const ix_form *eqn_position(
	arena *a, ir_system *s, const sys_eqn *e, ix_dom *d);

/* ---- solve ---- */

/* A digit of an equation and the loop variable that walks it. */
typedef struct eqn_solved {
	eqn_digit d;
	int32_t var;
} eqn_solved;
/* out[axis] = sum of var * lo; throws TN_EINTERNAL when digits are missing */
void eqn_solve(ir_system *s, const ix_dom *vars, const sys_eqn *e, int32_t n,
	const eqn_solved *at, const ix_form **out);

/*
 * Rows of keys that may be gone through block by block: rescale.c. kind: what
 * each statement does for a row of n_keys keys
 */
typedef enum eqn_row {
	EQN_ROW_BEFORE, /* nothing that follows from the row */
	EQN_ROW_KEY,	/* for each key, before the maximum is known */
	EQN_ROW_MAX,	/* of all keys */
	EQN_ROW_GIVEN,	/* what is subtracted, made of the maximum */
	EQN_ROW_WEIGHT, /* for each key: a function of what is left */
	EQN_ROW_SUM,	/* of all keys, linear in the weights */
	EQN_ROW_BEHIND	/* of what the row has left */
} eqn_row;
typedef struct eqn_stmt {
	int32_t monoid, out;
	const expr *body, *init;
	const ix_form *at; /* its element number, over the axes of dom */
	ix_dom dom;
	uint64_t reduced; /* axes */
	bool seen;	  /* by others than these statements */
} eqn_stmt;
typedef struct eqn_rows {
	int32_t max, given; /* statements; given -1: the maximum itself */
	int32_t fn;	    /* the function: of a sum it is the product */
	tn_dtype in;	    /* what it is computed in */
	int64_t n_keys;
	eqn_row *kind;
} eqn_rows;
/* u as such a statement, but for `seen`; false: it is of another kind */
bool eqn_as_stmt(ir_system *s, const eqn_unit *u, eqn_stmt *out);
/* statements in their order; false: they have no such row */
bool eqn_find_rows(
	arena *a, ir_system *s, int32_t n, const eqn_stmt *e, eqn_rows *out);

#endif
