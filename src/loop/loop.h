/*
 * loop.h: the door of loop/: the MapExpr of a kernel.
 *
 * A MapExpr is a tree of loops and statements in which every subscript is
 * solved: bodies are over the kernel's loop variables, reads and writes are
 * flat addresses over them, values that stay inside are in buffers whose
 * subscripts follow from the tree. It is self-contained: nothing of fuse/ is
 * asked again.
 *
 *   loop_build     fuse_kernel -> MapExpr       as design section 7 prints it
 *   loop_verify    every leaf under its loops, every read after its write
 *   loop_schedule  the same tree made fast: loop order, blocks, lanes, phases
 *
 * Loops. At every node each variable has an interval, at first its whole
 * extent. BLOCK cuts the interval into pieces of `size`; SPAN restricts it;
 * FOR walks it element by element. So a tile need not divide anything and
 * subscripts never change: they are over the variables.
 */
#ifndef LOOP_H
#define LOOP_H

#include "fuse/fuse.h"
#include "target/machine.h"

#define LOOP_MAX_PHASES 4
#define LOOP_MAX_CHUNKS 1024 /* of a split reduction */

typedef enum loop_kind {
	LOOP_FOR,
	LOOP_BLOCK,
	LOOP_SPAN,
	LOOP_INIT, /* accumulators of eqn := identity or init */
	LOOP_STMT, /* out = body, or out (+)= body */
	LOOP_DONE, /* memory := accumulators: the element is complete */
	LOOP_PART, /* scratch := accumulators of this block */
	LOOP_JOIN, /* memory := init (+) what all blocks left in scratch */
	LOOP_STAGE, /* copy of a tile of a tensor, transposed */
	LOOP_TILE,  /* eqn += products, row_var x var in registers */
	LOOP_SCALE  /* accumulators of eqn := finish of what they were */
} loop_kind;

/* Element `at` of a tensor in memory will be read: soon, or after this row. */
typedef struct loop_ahead {
	int32_t tensor;
	const ix_form *at; /* perhaps outside: then nothing happens */
	bool far;
} loop_ahead;

/*
 * A loop that only runs where lo <= f < hi, with f = rest + stride * var and
 * a stride of 1 or -1; rest may hold data.
 */
typedef struct loop_clip {
	const ix_form *f;
	int64_t lo, hi;
	const ix_form *rest;
	int64_t stride;
} loop_clip;

typedef struct loop_node loop_node;
struct loop_node {
	loop_kind kind;
	int32_t var;	/* FOR, BLOCK, SPAN */
	int32_t eqn;	/* INIT, STMT, DONE; STAGE: number of the stage */
	int64_t size;	/* BLOCK; TILE: rows */
	int32_t number; /* BLOCK: the variable that counts its pieces; -1 */
	int64_t lo, hi; /* SPAN */
	/* STAGE: turned against row_var; -1: what the loop around walks.
	 * TILE: size rows (of row_var; -1: one) by lanes * unroll columns (of
	 * var), summed over sum[], outermost first; of the product of factor[].
	 * finish: of a finished sum, its parameter 0; NULL: nothing. SCALE, too.
	 * start: sums that begin here begin with nothing. checked: where the
	 * result is no finite number, terms are added one by one */
	int32_t row_var, n_sums;
	const int32_t *sum;
	const expr *factor[2], *finish;
	bool start, checked;
	bool parallel;	/* each iteration may be a chunk; only outermost */
	bool backward;	/* FOR: from the last to the first */
	int32_t lanes;	/* FOR: elements at a time; 0 and 1: one */
	int32_t unroll; /* FOR: accumulators a reduction over it is spread on */
	int32_t n_ahead; /* FOR in lanes: asked for with every vector; STAGE:
			    with every square; TILE: steps of sum[0] that
			    factor[1], in memory, is asked for ahead */
	const loop_ahead *ahead;
	int32_t n_clip; /* FOR: where a write in place has its window */
	const loop_clip *clip;
	/* FOR, STAGE, TILE: nothing happens but where these hold, which are
	 * affine; INT64_MIN, INT64_MAX: no bound. near: for the values that loops around have now; else for any
	 * values in the blocks around */
	int32_t n_needs;
	const ix_fact *need;
	bool near;
	bool fills; /* FOR: outside, its statements set constants */
	int32_t n_child;
	loop_node **child;
	/* the same place in the first of the copies that SPANs made; else NULL */
	const loop_node *twin;
	loop_node *up; /* NULL at a root; set by loop_link */
	int32_t order; /* number in preorder; set by loop_link */
	int32_t line; /* of the text that it was read from; 0: none */
};

typedef struct loop_var {
	int64_t extent;
	axis_kind kind;
	const char *name; /* "i_0", in order of first occurrence in the tree */
} loop_var;

typedef uint64_t loop_set; /* of vars */

typedef struct loop_eqn {
	const sys_eqn *e; /* label, monoid, n_out, out[] */
	const expr *body[IR_MAX_COMP];
	const expr *init[IR_MAX_COMP]; /* NULL: identity */
	tn_dtype acc[IR_MAX_COMP]; /* of the accumulators; '=': the tensor's */
	/* flat address of the element made: of the left axes, or the push form */
	const ix_form *at;
	/* what INIT starts and DONE ends: the same element in pull form; in push
	 * form any element, by variables of its own */
	const ix_form *start_at;
	loop_set left, reduced;
	bool tail;	  /* runs once, when all that are not are complete */
	int32_t scan_var; /* -1 none */
	bool stage;	  /* copy of an input into a buffer */
	bool pack;	  /* factor of a product, made by the schedule */
	int64_t panel; /* of a copy: columns that lie together; 0: all */
	bool apart;	  /* its sums are not added up where they end */
	bool part;	  /* pieces of a sum, in scratch as it is in memory */
	bool push;	  /* scatter: elements are reached in no order */
	bool reversed;	  /* scan from the last to the first */
	int64_t n_parts;  /* of a split reduction; 0: not split */
	int64_t part_at[IR_MAX_COMP]; /* in scratch: [part][element] */
} loop_eqn;

typedef enum loop_where {
	LOOP_REGISTER, /* one value (one per lane inside a vector loop) */
	LOOP_LOCAL,    /* array of the worker */
	LOOP_SCRATCH,  /* array of the launch */
} loop_where;

/* Where a value lives that is not, or not yet, in memory. */
typedef struct loop_buf {
	int32_t eqn, comp; /* whose value; or stage, -1 */
	tn_dtype dtype;
	loop_where where;
	int32_t phase; /* where its scope is, when that is a whole phase */
	const loop_node
		*scope; /* lives in one iteration of it; NULL: the phase */
	bool lanes; /* scope is in a vector loop over one of its variables: a value per lane */
	int32_t n_vars;
	const int32_t *var; /* subscripts, slowest first */
	const int64_t
		*extent; /* of each in the buffer: of the innermost block */
	const int64_t *stride;
	/* of the last subscript: each run of so many has the rest of the buffer's
	 * order for itself, `panel_step` elements after the one before; 0: none */
	int64_t panel, panel_step;
	int64_t elems;
	int64_t offset; /* LOCAL, SCRATCH: in bytes */
} loop_buf;

/*
 * What a schedule changed of the equations, in order; all else that it decides
 * is in the trees. Read back, these are applied anew: see text_parse.c.
 */
typedef enum loop_change_kind {
	LOOP_CHANGE_SPLIT, /* var, of extent n, becomes a residue of `by`; other: n / by */
	LOOP_CHANGE_JOIN,  /* var and other, which follows it, become one new variable */
	LOOP_CHANGE_KEYS,  /* all of vars become var */
	LOOP_CHANGE_CUT,   /* sum of eqn over var in pieces of `by`, numbered by other */
	LOOP_CHANGE_COPY,  /* eqn copies an expression */
	LOOP_CHANGE_KEEP,  /* eqn copies elements of a tensor: a stage */
	LOOP_CHANGE_ROW    /* eqn has a value for each element that other makes */
} loop_change_kind;

typedef struct loop_change {
	loop_change_kind kind;
	int32_t var, other, eqn; /* -1: none */
	int64_t by;
	loop_set vars;
} loop_change;

/* What a pass of the schedule did, or did not, and why: schedule/decision.def. */
typedef struct loop_decision {
	int32_t kind;
	int32_t of, with; /* its subject and what else it names; -1: nothing */
	int64_t a, b;	  /* the figures that decided */
} loop_decision;

/* Which factors of products are copied. */
typedef enum loop_copies {
	LOOP_COPIES_CHOSEN, /* those that lie badly where they are */
	LOOP_COPIES_ROWS,   /* the factor of rows, too */
	LOOP_COPIES_NO_ROWS, /* not that one, if it can be read in place */
	LOOP_COPIES_BLOCKS, /* none as a whole, in a phase of its own */
	LOOP_COPIES_COLUMNS /* the factor of columns, too */
} loop_copies;

typedef struct loop_phase {
	int32_t n_roots;
	loop_node **root;
	int64_t n_chunks;
	bool tiles; /* of products: no other pass runs */
	/* 1 + the param that it copies into scratch, and does no more; 0 */
	int32_t copies;
} loop_phase;

typedef struct loop_kernel {
	arena *a;
	ir_system *s;
	const char *name;
	int32_t n_vars;
	loop_var *var;
	ix_dom dom; /* the box of the variables */
	int32_t n_eqns;
	loop_eqn *eqn;
	int32_t n_roots;
	loop_node **root;
	int32_t anchor; /* eqn */
	int32_t n_params; /* tensors in memory: outputs first, then inputs in order of first use */
	int32_t n_outputs;
	const int32_t *param;
	/* set by loop_schedule */
	VEC(loop_change) change;
	VEC(loop_decision) decision;
	loop_copies copies;
	const char *file; /* of the text */
	bool pinned; /* the trees were read from a text: DONE stands in them */
	const machine *machine;
	int32_t n_phases;
	loop_phase phase[LOOP_MAX_PHASES];
	int32_t n_bufs;
	loop_buf *buf;
	int32_t (
		*buf_of)[IR_MAX_COMP]; /* [eqn][comp], -1: directly in memory */
	size_t local_bytes, scratch_bytes;
	bool *stream; /* [param]: stores go past the caches */
} loop_kernel;

/* shape_cuts: loops along the axes of the shapes, for printing */
loop_kernel *loop_build(
	arena *a, ir_system *s, const fuse_kernel *k, bool shape_cuts);
void loop_verify(loop_kernel *k); /* throws TN_EINTERNAL */
/* indexes: the solved index of every argument too */
void loop_print(str *out, loop_kernel *k, bool indexes);

/* ---- what later levels ask ---- */

/* equation and component that make the tensor in this kernel; false: none */
bool loop_is_loop(const loop_node *n);	   /* FOR, BLOCK, SPAN: has children */
const char *loop_label(const loop_eqn *e); /* its label, its row, or "let" */
/* Its operations, "add_reduce_sum", for symbols; added to an empty out. */
void loop_name(str *out, const loop_kernel *k);
/* Do two of its tensors lie in one memory, which it writes? */
bool loop_writes_input(const loop_kernel *k);
bool loop_maker(
	const loop_kernel *k, int32_t tensor, int32_t *eqn, int32_t *comp);
int32_t loop_param(const loop_kernel *k, int32_t tensor); /* -1: private */
/* Digits of element `at` of the buffer's tensor, one per subscript. */
void loop_subscript(loop_kernel *k, const ix_dom *d, const loop_buf *b,
	const ix_form *at, const ix_form **digit);
/* Is element `at` of a staged tensor in the tile at hand? */
bool loop_is_staged(loop_kernel *k, const loop_buf *b, const ix_form *at);
/* Coefficient of var in f; false when f depends on it in another way. */
bool loop_stride(
	const ix_form *f, int32_t var, int64_t extent, int64_t *stride);
/* Of the accumulators, if no schedule says otherwise. */
tn_dtype loop_natural_acc(const loop_kernel *k, const loop_eqn *e, int32_t comp);
loop_set loop_form_vars(const ix_form *f);
loop_set loop_expr_vars(loop_kernel *k, const expr *e);
/* every expr below e once, arguments first; forms are not entered */
typedef void loop_visit(void *arg, const expr *e);
void loop_walk(arena *a, const expr *e, loop_visit *fn, void *arg);
static inline const loop_node *loop_first(const loop_node *n)
{
	return n != NULL && n->twin != NULL ? n->twin : n;
}
/* In what lanes that walk a reduced variable accumulate: indices in 32 bits
 * where they fit. */
tn_dtype loop_lane_acc(loop_kernel *k, const loop_eqn *e, int32_t comp);
/* May the last vector of n's lanes have some that nobody looks at? */
bool loop_may_part(loop_kernel *k, const loop_node *n);
void loop_link(loop_kernel *k); /* sets up, order of all trees */

#endif
