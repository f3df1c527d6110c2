/*
 * loop.h: interface of loop/: the MapExpr of a kernel.
 *
 * A MapExpr is a tree of loops and statements in which every subscript is
 * solved: bodies are over the loop variables of the kernel, and so are the flat
 * addresses of reads and writes. Private values are in buffers, whose subscripts
 * follow from the tree. A MapExpr is complete: later passes do not need fuse/.
 *
 *   loop_build     fuse_kernel -> MapExpr
 *   loop_verify    every leaf is inside its loops, every read after its write
 *   loop_schedule  optimises the tree: loop order, blocks, lanes, phases
 *
 * Loops. At each node, each variable has an interval, at first its whole
 * extent. BLOCK divides the interval into pieces of `size`; SPAN restricts it;
 * FOR walks it element by element. So the size of a tile need not divide an
 * extent, and subscripts, which are over the variables, never change.
 */
#ifndef LOOP_H
#define LOOP_H

#include "fuse/fuse.h"
#include "target/machine.h"

#define LOOP_MAX_PHASES 8
#define LOOP_MAX_WARPS 32 /* of a block */
#define LOOP_MAX_STAGES 4 /* of a buffer */
#define LOOP_MAX_FETCH 64 /* prefetches of a tile for a value of the first sum */
#define LOOP_MAX_CHUNKS 1024 /* of a reduction that is split */

typedef enum loop_kind {
	LOOP_FOR,
	LOOP_BLOCK,
	LOOP_SPAN,
	LOOP_INIT, /* accumulators of eqn = identity or init */
	LOOP_STMT, /* out = body, or out (+)= body */
	LOOP_DONE, /* memory = accumulators, which are final */
	LOOP_PART, /* scratch = accumulators of this block */
	LOOP_JOIN, /* memory = init (+) the partial results of all blocks in scratch */
	LOOP_STAGE, /* copy of a tile of a tensor, transposed */
	LOOP_TILE,  /* eqn += products, row_var x var in registers */
	LOOP_SCALE  /* accumulators of eqn = finish(accumulators) */
} loop_kind;

/* A prefetch of element `at` of a tensor in memory, which is read soon, or (far)
 * after this row; of a tile: of `n` elements, `step` apart. */
typedef struct loop_ahead {
	int32_t tensor;
	const ix_form *at; /* has no effect if it is outside the tensor */
	bool far;
	int32_t n; /* 0: one */
	int64_t step;
} loop_ahead;

/*
 * Restricts a loop to lo <= f < hi, with f = rest + stride * var and a stride
 * of 1 or -1; rest may contain data.
 */
typedef struct loop_clip {
	const ix_form *f;
	int64_t lo, hi;
	const ix_form *rest;
	int64_t stride;
} loop_clip;

/* Rows abreast: iterations of loops inside a loop in lanes that walk elements of a
 * sum along it, and the number of such loops, at most. */
enum { LOOP_MAX_ABREAST = 16, LOOP_MAX_WALKS = 4 };

typedef struct loop_node loop_node;
struct loop_node {
	loop_kind kind;
	int32_t var;	/* FOR, BLOCK, SPAN */
	int32_t eqn;	/* INIT, STMT, DONE; STAGE: number of the stage */
	int64_t size;	/* BLOCK; TILE: rows */
	int32_t number; /* BLOCK: the variable that numbers its pieces, or -1 */
	int64_t lo, hi; /* SPAN */
	/* STAGE: transposed against row_var; -1: the variable of the loop around.
	 * TILE: size rows (of row_var; -1: one row) by lanes * unroll columns (of
	 * var): the sum over sum[], outermost first, of factor[0] * factor[1].
	 * TILE, SCALE: finish is applied to a final sum, its parameter 0, if not
	 * NULL. start: clears the accumulators before the first term. checked:
	 * if a result is not finite, its terms are added again one by one */
	int32_t row_var, n_sums;
	const int32_t *sum;
	const expr *factor[2], *finish;
	bool start, checked;
	/* TILE of matrix instructions whose sums are held: a term counts only where
	 * this holds, also if the second factor is infinite or NaN there; NULL: all do,
	 * or `checked` sees to it */
	const expr *within;
	/* TILE: products by matrix instructions of the machine: factors are
	 * reads of two bytes; lanes: the columns of an instruction */
	bool matrix;
	/* TILE: .. which so many warps of a block execute together, each for rows of its
	 * own, with the same columns, which lie in swizzled rows; 0: each alone */
	int32_t warps;
	bool in_memory; /* .. and take their rows from such rows, not from registers */
	/* TILE: its sums stay in registers of the warps until the last term is
	 * added. FOR: 1 + the equation of such a tile, for two nested loops over
	 * its rows and columns, which a warp walks as it has the sums. 0: no */
	int32_t held;
	/* TILE: a vector adds up the products of so many neighbours along sum[0]
	 * (machine_dot); factors are as they lie in memory, in fewer bits than the
	 * sums, and less than those of the equation by offset[]. 0: it does not */
	int32_t dot;
	int64_t offset[2];
	bool tiled; /* .. in tile registers (machine_tiles), of many such groups */
	bool parallel;	/* each iteration is a chunk; outermost loops only */
	/* FOR, BLOCK: iterations are dealt to the warps of the block in turn */
	bool by_warp;
	/* FOR by warp: instead, all iterations are one copy that a thread begins */
	bool bulk;
	/* BLOCK: so many pieces are in buffers at a time, of which one is computed
	 * with while the others are copied; 0: one, which is copied first */
	int32_t stages;
	bool backward;	/* FOR: from the last to the first */
	int32_t lanes;	/* FOR: elements of a vector; 0 and 1: scalar */
	int32_t unroll; /* FOR: number of accumulators of a reduction over it */
	/* FOR in lanes: a lane has `unroll` neighbours, not one of each vector */
	bool wide;
	int32_t n_ahead; /* FOR in lanes: prefetches for each vector; STAGE: for
			    each square; TILE: with each value of sum[0] */
	const loop_ahead *ahead;
	/* TILE: with each value of sum[0], prefetches `lines` lines of memory from the
	 * element on that is so many behind the first one of factor[1]; lines 0: none */
	int32_t lines;
	const ix_form *behind;
	/* FOR: restricts it to the elements that a write in place changes, or to terms
	 * that count. TILE: leaves out the terms outside of these intervals, for all
	 * rows or for some (contract/border.c); `rest` and `stride` are not used */
	int32_t n_clip;
	const loop_clip *clip;
	/* FOR, STAGE, TILE: guards: nothing is done where these affine conditions
	 * do not hold; INT64_MIN, INT64_MAX: no bound. near: they are tested with
	 * the current values of the loops around; else: they must hold for some
	 * values in the blocks around */
	int32_t n_needs;
	const ix_fact *need;
	bool near;
	bool fills; /* FOR: outside the guard, its statements store constants */
	int32_t n_child;
	loop_node **child;
	/* the same node in the first of the copies that SPANs made, or NULL */
	const loop_node *twin;
	loop_node *up; /* NULL at a root; set by loop_link */
	int32_t order; /* number in preorder; set by loop_link */
	int32_t line; /* in the text that it was read from, or 0 */
};

typedef struct loop_var {
	int64_t extent;
	axis_kind kind;
	const char *name; /* "i_0", in order of first occurrence in the tree */
	/* of where a sliding window reads: the form over other variables whose
	 * values, from 0 on, it has; else NULL */
	const ix_form *slide;
} loop_var;

typedef uint64_t loop_set; /* of vars */

typedef struct loop_eqn {
	const sys_eqn *e; /* use only label, monoid, n_out, out[] */
	const expr *body[IR_MAX_COMP];
	const expr *init[IR_MAX_COMP]; /* NULL: identity */
	tn_dtype acc[IR_MAX_COMP]; /* of the accumulators; for '=', of the tensor */
	/* flat address of the element that it computes: over the left axes, or the
	 * push form */
	const ix_form *at;
	/* the element that INIT clears and DONE stores: in pull form the same; in
	 * push form any element, over separate variables */
	const ix_form *start_at;
	loop_set left, reduced;
	bool tail;	  /* runs once, after all equations outside the tail */
	int32_t scan_var; /* or -1 */
	bool stage;	  /* copy of an input into a buffer */
	bool pack;	  /* copy of a factor of a product, added by the schedule */
	int64_t panel; /* of a copy: number of columns of a panel; 0: all */
	/* of a copy for dots, which is kept in its own dtype: so many neighbours along
	 * `group_var` lie side by side, for each of its last subscript, and 0 behind
	 * the last of them; 1: all of them do, it is the last. 0: no such copy */
	int32_t group, group_var;
	/* of a product of few rows whose sums have lanes: 1 + the variable of rows; else 0 */
	int32_t few_rows;
	bool apart;	  /* its accumulators are not in the result's memory */
	bool row; /* one value for each row of keys, added by the schedule */
	bool part;	  /* partial sums in scratch, laid out as in memory */
	bool push;	  /* scatter: elements are updated in any order */
	bool reversed;	  /* a scan from the last element to the first */
	int64_t n_parts;  /* of a reduction that is split; else 0 */
	int64_t part_at[IR_MAX_COMP]; /* offset in scratch of its [part][element] */
} loop_eqn;

typedef enum loop_where {
	/* one value (inside a vector loop, one per lane), or one for each iteration of
	 * loops that are written out */
	LOOP_REGISTER,
	LOOP_HELD,     /* registers of the warps, as a tile has its sums */
	LOOP_LOCAL,    /* array of the thread */
	LOOP_SCRATCH,  /* array of the launch */
} loop_where;

/* Location of a value that is not, or not yet, in memory. */
/* Bytes of which swizzled buffers begin at multiples: eight rows of 128 bytes. */
enum { LOOP_SWIZZLED = 1024 };

typedef struct loop_buf {
	int32_t eqn, comp; /* the value of this equation; or a stage, -1 */
	tn_dtype dtype;
	loop_where where;
	int32_t phase; /* its scope, if that is a whole phase */
	const loop_node
		*scope; /* it is valid for one iteration of this; NULL: the phase */
	bool lanes; /* scope is in a vector loop over one of its variables: one value per lane */
	int32_t n_vars;
	const int32_t *var; /* subscripts, slowest first */
	const int64_t
		*extent; /* of each subscript: of the innermost block */
	const int64_t *stride;
	/* the last subscript is divided into panels of this number; each panel
	 * starts `panel_step` elements after the one before. 0: no panels */
	int64_t panel, panel_step;
	/* elements of a row whose pieces of 16 bytes are in another order, as matrix
	 * instructions of several warps take them (kern_array); 0: as they are counted */
	int32_t swizzled;
	/* so many elements along this subscript adjoin, those of the last subscript
	 * are so far apart; accesses begin at the first of them. 0: no groups */
	int32_t group, group_var;
	int64_t elems;
	int32_t held;	/* HELD: 1 + the tile as whose sums warps have it */
	int32_t stages; /* so many such buffers, `stage_bytes` apart */
	int64_t stage_bytes;
	int64_t offset; /* LOCAL, SCRATCH: in bytes */
} loop_buf;

/*
 * A change of the equations that a schedule made. Everything else that it
 * decides is in the trees. text_parse.c applies the changes of a text again.
 */
typedef enum loop_change_kind {
	LOOP_CHANGE_SPLIT, /* var, of extent n, becomes other * by + var; other has n / by */
	LOOP_CHANGE_JOIN,  /* var and its neighbour `other` become one new variable */
	LOOP_CHANGE_KEYS,  /* all of vars are replaced by var */
	LOOP_CHANGE_SLIDE, /* var has the values of its slide, for copies */
	LOOP_CHANGE_CUT,   /* the sum of eqn over var is cut into pieces of `by`, numbered by other */
	LOOP_CHANGE_COPY,  /* eqn copies an expression */
	LOOP_CHANGE_KEEP,  /* eqn copies elements of a tensor into a stage */
	LOOP_CHANGE_ROW    /* eqn has a value for each element of equation other */
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
	LOOP_COPIES_CHOSEN, /* those that are read with jumps */
	LOOP_COPIES_ROWS,   /* the factor of rows, too */
	LOOP_COPIES_NO_ROWS, /* not that one, if it can be read in place */
	LOOP_COPIES_BLOCKS, /* only blocks, never a whole factor in a separate phase */
	LOOP_COPIES_COLUMNS /* the factor of columns, too */
} loop_copies;

typedef struct loop_phase {
	int32_t n_roots;
	loop_node **root;
	int64_t n_chunks;
	int32_t warps; /* of the block that runs a chunk; 0 and 1: no block */
	bool tiles; /* it consists of tiles of products: no other pass changes it */
	/* 1 + the param that this phase copies into scratch, if it does nothing
	 * else; else 0 */
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
	int32_t n_params; /* tensors in memory: outputs, then inputs in order of first use */
	int32_t n_outputs;
	const int32_t *param;
	/* set by loop_schedule */
	VEC(loop_change) change;
	VEC(loop_decision) decision;
	const char *file; /* of the text of its schedule */
	bool pinned; /* the trees were read from a text, with their DONE nodes */
	const machine *machine;
	int32_t n_phases;
	loop_phase phase[LOOP_MAX_PHASES];
	int32_t n_bufs;
	loop_copies copies;
	/* for blocks of warps: how often tiles are halved, and whether sums may be cut,
	 * so that there are enough of them */
	int32_t halved;
	bool cuts;
	bool no_rows; /* .. and that no warp has rows with all that belongs to them */
	loop_buf *buf;
	int32_t (
		*buf_of)[IR_MAX_COMP]; /* [eqn][comp], -1: directly in memory */
	size_t local_bytes, scratch_bytes;
	bool *stream; /* [param]: stores go past the caches */
} loop_kernel;

/* shape_cuts: one loop for each axis of the shapes, for printing */
loop_kernel *loop_build(
	arena *a, ir_system *s, const fuse_kernel *k, bool shape_cuts);
void loop_verify(loop_kernel *k); /* throws TN_EINTERNAL */
/* indexes: also prints the solved index of every argument */
void loop_print(str *out, loop_kernel *k, bool indexes);

/* ---- queries for later levels ---- */

bool loop_is_loop(const loop_node *n);	   /* FOR, BLOCK, SPAN: has children */
const char *loop_label(const loop_eqn *e); /* its label, its row, or "let" */
/* Its operations, "add_reduce_sum", for symbols; added to an empty out. */
void loop_name(str *out, const loop_kernel *k);
/* Does it write memory that two of its tensors share? */
bool loop_writes_input(const loop_kernel *k);
/* The equation and component that compute the tensor in this kernel; false:
 * it is not computed here. */
bool loop_maker(
	const loop_kernel *k, int32_t tensor, int32_t *eqn, int32_t *comp);
int32_t loop_param(const loop_kernel *k, int32_t tensor); /* -1: private */
/* The stage that copies elements of a value which this kernel computes; -1: none. What
 * reads the value reads that copy. */
int32_t loop_kept(const loop_kernel *k, int32_t tensor);
/* Bytes of a copy behind its last row, in which vectors may start. */
int64_t loop_slack(const machine *m);
/* The subscripts in the buffer of element `at` of its tensor. */
void loop_subscript(loop_kernel *k, const ix_dom *d, const loop_buf *b,
	const ix_form *at, const ix_form **digit);
/* Is element `at` of a staged tensor in the current tile? */
bool loop_is_staged(loop_kernel *k, const loop_buf *b, const ix_form *at);
/*
 * Can the elements of a scatter be divided along var? *row gets the value of var
 * whose elements an update changes: one of a block of var changes none outside.
 */
bool loop_row_of(
	const loop_kernel *k, const loop_eqn *e, int32_t var, const ix_form **row);
/* The dtype of the accumulators, unless a schedule changes it. */
tn_dtype loop_natural_acc(const loop_kernel *k, const loop_eqn *e, int32_t comp);
/* scan.c: the element before, as the scan's equation reads it; NULL: unknown */
const ix_form *loop_scan_before(const loop_kernel *k, const loop_eqn *e);
/* The monoid by which each element of a scan follows from the one before, if that
 * is all that it is used for, and any grouping gives the same; -1: none. */
int32_t loop_scan_monoid(const loop_kernel *k, const loop_eqn *e);
loop_set loop_form_vars(const ix_form *f);
loop_set loop_expr_vars(loop_kernel *k, const expr *e);
/* Visits each expression below e once, arguments first, without forms. */
typedef void loop_visit(void *arg, const expr *e);
void loop_walk(arena *a, const expr *e, loop_visit *fn, void *arg);
/* Is each iteration of the loop, in each piece of the blocks around it, written out? Its
 * first twin has no fewer. */
bool loop_is_written_out(const loop_kernel *k, const loop_node *n);
/* Does n, or a node in it, set values that stand abreast in registers? */
bool loop_has_abreast(const loop_kernel *k, const loop_node *n);
static inline const loop_node *loop_first(const loop_node *n)
{
	return n != NULL && n->twin != NULL ? n->twin : n;
}
/* The dtype of accumulators in lanes along a reduced variable: 32 bits for
 * indices that fit. */
tn_dtype loop_lane_acc(loop_kernel *k, const loop_eqn *e, int32_t comp);
/* May the last vector of n have lanes that are not used? */
bool loop_may_part(loop_kernel *k, const loop_node *n);
/* Are rows of a tile of matrix instructions f32, of which they take parts? */
bool loop_has_parts(const loop_node *n);
/* The tile that computes the equation; NULL: none does. */
const loop_node *loop_tile_of(const loop_kernel *k, int32_t eqn);
/* Do the warps have the sums of both tiles in the same way? */
bool loop_same_sums(const loop_node *a, const loop_node *b);
/* Is a copy of a factor made at or below n, and is something else done? */
bool loop_has_copies(const loop_kernel *k, const loop_node *n);
bool loop_has_others(const loop_kernel *k, const loop_node *n);
void loop_link(loop_kernel *k); /* sets up and order in all trees */

#endif
