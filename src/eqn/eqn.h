/*
 * eqn.h: interface of eqn/: relations between equations.
 *
 *   unit   an equation in the form that fusion works on: substituted, coalesced,
 *          with the list of its reads and their guards
 *   edge   unit c reads what unit p computes: the coordinates of p as forms
 *          over c's axes (join)
 *   judge  which digit of c a digit of p is on an edge, or why there is none
 *   solve  expresses each axis of a unit over the loop variables of a kernel
 *   writes which elements a write changes
 *
 *   t[i,j] = exp(x[6i+j]);  s[j] += t[i,j]:   edge t -> s has X = (i, j);
 *   digit i of t is digit i of s, which is reduced; digit j of t is j of s.
 */
#ifndef EQN_H
#define EQN_H

#include "system/system.h"

/* A read and its guards. */
typedef struct eqn_read {
	int32_t tensor;
	const ix_form *at; /* flat element number */
	ix_dom dom;	   /* the box over which it is evaluated, and its guards */
	bool is_index;	   /* its value is part of an index */
	bool in_init;	   /* it is in the initial value, over the left axes */
} eqn_read;

typedef struct eqn_unit {
	int32_t id;	/* dense in a graph */
	int32_t source; /* the equation of the system that it came from */
	sys_eqn e;	/* substituted and coalesced; its id is that in the system */
	ix_box box;
	/*
	 * Left axis i is digit (stride, stride * extent) of the element number
	 * of the result; 0: it is not a digit (in a scatter).
	 */
	const int64_t *stride;
	int64_t out_elems, volume, flops;
	int32_t n_reads;
	const eqn_read *read;
	struct eqn_edge **edge; /* by read: the last edge that was joined */
	/* a sum over an axis that two reads share, if each also has another axis */
	bool contraction;
	bool has_scan;
	int32_t shape; /* units with equal numbers differ only in tensors */
	int32_t kin;   /* units with equal numbers differ only in tensors and extents */
	int32_t n_names;
	const int32_t *name; /* its tensors: results, then operands in order of first occurrence */
} eqn_unit;

typedef enum eqn_verdict {
	EQN_RELATED,
	EQN_FREE,	/* it does not depend on the reader's axes */
	EQN_SHIFT,	/* a digit plus a constant */
	EQN_REVERSED,	/* a constant minus a digit */
	EQN_MISALIGNED, /* several digits, or a part of one */
	EQN_OPAQUE	/* it depends on data */
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

/* p NULL: an outside tensor, as one axis of all its elements. */
typedef struct eqn_edge {
	const eqn_unit *p, *c;
	const eqn_read *read;
	int32_t n_x;
	const ix_form **x; /* coordinate of each left axis of p; NULL where stride is 0 */
	VEC(eqn_memo) memo;
} eqn_edge;

typedef struct eqn_graph {
	arena *a;
	arena *scratch; /* for one call; the owner may replace it between calls */
	ir_system *s;
	VEC(eqn_unit *) unit;
	VEC(eqn_edge *) edge;
	map *edge_of;  /* (p, c, read) -> edge */
	map *shape_of; /* text of a unit without tensors -> shape */
	map *kin_of;   /* text without tensors and extents -> kin */
	/* by tensor: the equation that replaces reads of it, or NULL */
	const sys_eqn **replace;
} eqn_graph;

/* ---- join ---- */

eqn_graph *eqn_graph_new(arena *a, ir_system *s);
/* The unit of e, which is coalesced first. */
eqn_unit *eqn_unit_new(eqn_graph *g, const sys_eqn *e, int32_t source);
/* The edge of read number `read` of c; p NULL: the tensor is an outside one. */
eqn_edge *eqn_join(eqn_graph *g, const eqn_unit *p, const eqn_unit *c,
	int32_t read);

/* ---- substitution ---- */

/* Until eqn_keep(p), eqn_inline replaces reads of out[0] of p by its body. */
void eqn_replace(eqn_graph *g, const sys_eqn *p);
void eqn_keep(eqn_graph *g, const sys_eqn *p);
/* e with all replacements; inside indices, only reads that are bare. */
sys_eqn eqn_inline(eqn_graph *g, const sys_eqn *e);
/* Is it a movement or a constant, which costs nothing when it is repeated? */
bool eqn_is_movement(const sys_eqn *e);
/* Joins neighbouring axes that occur only as one digit. */
sys_eqn eqn_coalesce(eqn_graph *g, const sys_eqn *e);

/* ---- judge ---- */

/* Is digit d of p at this read exactly one digit of c? */
bool eqn_relate(eqn_graph *g, eqn_edge *e, eqn_digit d, eqn_digit *out);
/* .. or a digit of c in one of several parts, which guards separate? */
bool eqn_relate_part(eqn_graph *g, eqn_edge *e, eqn_digit d, eqn_digit *out);
/* The value of digit d over c; NULL: unknown. */
const ix_form *eqn_value(eqn_graph *g, eqn_edge *e, eqn_digit d);
eqn_verdict eqn_judge(eqn_graph *g, eqn_edge *e, eqn_digit d);

/* ---- writes ---- */

enum { EQN_MAX_GUARDS = 8 };

/* Elements of `old` at which no guard holds do not change. */
typedef struct eqn_writes {
	int32_t old; /* the version before; -1: e may change every element */
	ix_dom dom;  /* the left axes */
	int32_t n_guards;
	const expr *guard[EQN_MAX_GUARDS]; /* each is evaluated where those before are false */
} eqn_writes;

/* Fills w; false: e may change all elements. */
bool eqn_find_writes(arena *a, ir_system *s, const sys_eqn *e, eqn_writes *w);
/* Is it proved that a write of w does not change what r, a read of its storage,
 * reads? */
bool eqn_disjoint(ir_system *s, const eqn_writes *w, const eqn_read *r);
/* The element number of the result over the left axes; fills their domain d. */
const ix_form *eqn_position(
	arena *a, ir_system *s, const sys_eqn *e, ix_dom *d);

/* ---- solve ---- */

/* A digit of an equation and the loop variable that walks it. */
typedef struct eqn_solved {
	eqn_digit d;
	int32_t var;
} eqn_solved;
/* out[axis] = sum of var * lo; throws TN_EINTERNAL if digits are missing. */
void eqn_solve(ir_system *s, const ix_dom *vars, const sys_eqn *e, int32_t n,
	const eqn_solved *at, const ix_form **out);

/*
 * Rows of keys that can be processed block by block: rescale.c. kind: what a
 * statement computes for a row of n_keys keys.
 */
typedef enum eqn_row {
	EQN_ROW_BEFORE, /* a value that does not depend on the row */
	EQN_ROW_KEY,	/* a value for each key, without the maximum */
	EQN_ROW_MAX,	/* the maximum of all keys */
	EQN_ROW_GIVEN,	/* the value to subtract, computed from the maximum */
	EQN_ROW_WEIGHT, /* for each key: a function of the difference */
	EQN_ROW_SUM,	/* a sum over all keys, linear in the weights */
	EQN_ROW_BEHIND	/* a value computed from results of the row */
} eqn_row;
typedef struct eqn_stmt {
	int32_t monoid, out;
	const expr *body, *init;
	const ix_form *at; /* its element number, over the axes of dom */
	ix_dom dom;
	uint64_t reduced; /* axes */
	bool seen;	  /* read by other statements */
} eqn_stmt;
typedef struct eqn_rows {
	int32_t max, given; /* statements; given -1: the maximum itself */
	int32_t fn;	    /* the function, which maps a sum to a product (exp) */
	tn_dtype in;	    /* the dtype it is computed in */
	int64_t n_keys;
	eqn_row *kind;
} eqn_rows;
/* Describes u as such a statement, without `seen`; false: impossible. */
bool eqn_as_stmt(ir_system *s, const eqn_unit *u, eqn_stmt *out);
/* Finds the row in statements in order; false: they have none. */
bool eqn_find_rows(
	arena *a, ir_system *s, int32_t n, const eqn_stmt *e, eqn_rows *out);
/* quotient.c: the system in which weights of such rows, of at least so many keys, are
 * not divided by their sum before they are summed up; s itself if there are none. */
ir_system *eqn_divide_sums(ir_system *s, int64_t least);

#endif
