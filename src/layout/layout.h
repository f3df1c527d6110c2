/*
 * layout.h: interface of layout/: tensors that are distributed over processes.
 *
 *   mesh     the processes as a grid with named axes, row-major
 *   layout   which process owns which elements: digits of the element number,
 *            some of them tagged with an axis of the mesh (layout.c, axes.c)
 *   plan     the layouts of all tensors of a system, and which process computes
 *            which part of each equation (cut.c, propagate.c)
 *
 * Element e of a tensor has element number e in the whole (global) tensor. A tag
 * cuts one digit ("run") of e into blocks:
 *
 *     value(e) = (e div lo) mod (hi / lo)      owner = value div block
 *
 *     x: f32[10,6] on mesh [4], axis 0 cut: lo 6, hi 60, block 3
 *     process 0 owns rows 0..2, 1: 3..5, 2: 6..8, 3: row 9
 *
 * An equation may need wider blocks: rows 3..5 of a picture and, for a sliding
 * window of three, one row on either side (a halo). Only copies of tensors have
 * such blocks, never tensors.
 *
 * The size of the block is stored, not computed again from an extent: x
 * flattened has the same layout, and process 3 still owns 6 elements. Because a
 * tag refers only to element numbers, a reshape keeps the layout; but the part
 * of a process need not be a box of the new axes.
 */
#ifndef LAYOUT_H
#define LAYOUT_H

#include "comm/comm.h"
#include "eqn/eqn.h"

#define SHARD_MAX_AXES 6 /* of a mesh */
#define SHARD_MAX_TAGS 16

/* ---- mesh ---------------------------------------------------------------- */

typedef struct shard_mesh {
	int32_t n;
	int64_t extent[SHARD_MAX_AXES]; /* each >= 1 */
	const char *name[SHARD_MAX_AXES]; /* or NULL */
} shard_mesh;

/* Number of processes; throws [shard.mesh] if the mesh is invalid. */
int64_t shard_mesh_size(env *e, const shard_mesh *m);
/* Coordinate of a process on one axis. */
int64_t shard_mesh_at(const shard_mesh *m, int64_t process, int32_t axis);

/* ---- layout -------------------------------------------------------------- */

typedef struct shard_tag {
	int32_t mesh;
	/* the digit of the coordinate c on that axis: (c div mult) mod count */
	int64_t mult, count;
	int64_t lo, hi; /* the run: (e div lo) mod (hi / lo) */
	int64_t block;	/* of values of the run; > 0 */
	int32_t within; /* the tag whose blocks this one cuts; -1: the whole run */
	/* halo: values before and after each block that its process also has;
	 * negative: that many values at the ends it lacks */
	int64_t before, after;
} shard_tag;

typedef struct shard_layout {
	int64_t numel;
	int32_t n;
	shard_tag tag[SHARD_MAX_TAGS];
} shard_layout;

typedef struct shard_runs {
	int32_t n;
	const shard_run *at; /* ascending, with gaps between them */
	int64_t elems;
} shard_runs;

/* Every process has all elements. */
shard_layout shard_replicated(int64_t numel);
/*
 * Cuts axis `axis` of shape along `mesh_axis` of the mesh; if it is cut already,
 * cuts its blocks again. block 0: the smallest possible. Throws [shard.axis]
 * [shard.twice] [shard.block].
 */
void shard_cut(env *e, shard_layout *l, const shard_mesh *m, int32_t rank,
	const int64_t *shape, int32_t axis, int32_t mesh_axis, int64_t block);
/* The number of the tag's block that contains element e. */
bool shard_owns(const shard_layout *l, const shard_mesh *m, int64_t process,
	int64_t e);
/* The elements of a process, in ascending order. */
shard_runs shard_owned(arena *a, const shard_layout *l, const shard_mesh *m,
	int64_t process);
/* Is every element on the same processes in both? */
bool shard_same(const shard_layout *a, const shard_layout *b);
/* "a_0 on 6:60 by 3", or "replicated", for explanations. */
void shard_layout_print(str *s, const shard_layout *l, const shard_mesh *m);

/* ---- axes (axes.c) ------------------------------------------------------- */

/*
 * Is the part of every process a box of these axes (a set of indices on each
 * axis, and all their combinations)? If not, *boundary is the product of inner
 * extents that the cut does not respect.
 */
bool shard_is_free(const shard_layout *l, int32_t rank, const int64_t *shape,
	int64_t *boundary);
/*
 * The layout of each axis, over its indices 0 .. extent - 1; numel is the
 * extent. false: it is not free, or a scalar that some processes lack.
 */
bool shard_by_axis(const shard_layout *l, int32_t rank, const int64_t *shape,
	shard_layout *axis);
/* Extents of the box that a process owns; false: the layout is not free. */
bool shard_local_shape(const shard_layout *l, const shard_mesh *m,
	int64_t process, int32_t rank, const int64_t *shape, int64_t *local);

/* ---- plan (cut.c, needs.c, propagate.c) ----------------------------------------- */

/* How an equation is cut: the layout of each axis of its unit. */
typedef struct shard_eqn {
	eqn_unit *unit;
	shard_layout *axis; /* by axis of the unit; numel is the extent */
	/* a tensor that is read at an index from data, where only the owner of an
	 * element reads it, or -1; masks: bit m: along axis m of the mesh */
	int32_t masked;
	uint32_t masks;
	/* a scatter: cuts of its result that are not cuts of an axis: each process
	 * computes all terms, and adds those that are for its elements */
	shard_layout own;
	bool dead; /* it was merged into the write that reads its result */
} shard_eqn;

typedef struct shard_state {
	shard_layout have;
	/* by axis of the mesh: the monoid if the processes hold partial results;
	 * else -1 */
	int32_t partial[SHARD_MAX_AXES];
	bool fixed; /* exactly as annotated: no cut is added */
	/* an input: it holds partial results along these axes of the mesh */
	uint32_t parts;
	int32_t parts_monoid;
} shard_state;

/* Why an equation is cut. */
typedef struct shard_reason {
	int32_t eqn;
	const char *text;
} shard_reason;

typedef struct shard_plan {
	arena *a;
	ir_system *s;
	const shard_mesh *mesh;
	eqn_graph *graph;
	shard_eqn *eqn;    /* by equation of the system */
	shard_state *tensor; /* by tensor */
	VEC(shard_reason) why; /* each cut, in the order in which they were made */
} shard_plan;

shard_plan *shard_plan_new(arena *a, ir_system *s, const shard_mesh *m);
/* Resets the plan: no tensor has a layout. */
void shard_plan_reset(shard_plan *p);
/* Sets the layout of a tensor; if not fixed, more cuts may be added. */
void shard_annotate(
	shard_plan *p, int32_t tensor, const shard_layout *l, bool fixed);
/*
 * Propagates cuts from tensors to equations and to other tensors, forwards and
 * backwards, until nothing changes. A cut that was made is not changed.
 */
void shard_propagate(shard_plan *p);
/*
 * After shard_propagate: if all readers of a sum in parts need it cut along the
 * axis of the mesh over which it is in parts, cuts it so (reduce-scatter instead
 * of all-reduce).
 */
void shard_scatter_sums(shard_plan *p);
/* The layout that equation `eqn` needs of a tensor that it reads. */
shard_layout shard_needs(shard_plan *p, int32_t eqn, int32_t tensor);
/* A layout that contains what both readers need. */
shard_layout shard_common(const shard_layout *a, const shard_layout *b);
/* The layout in which the equation computes result k. */
shard_layout shard_makes(shard_plan *p, int32_t eqn, int32_t k);
/* Is a sum of the equation cut along this axis of the mesh? */
bool shard_is_partial(const shard_plan *p, int32_t eqn, int32_t mesh_axis);

/* ---- text (notation.c, explain.c) ------------------------------------------ */

/* Can placements name an axis of a mesh so? */
bool shard_is_axis_name(const char *text);
/* "data=2,model=4"; throws [shard.mesh] */
shard_mesh shard_mesh_parse(arena *a, const char *text);
/*
 * "NAME=shard(0)@data,shard(1,BLOCK)@model", "NAME=parts(sum)@data",
 * "NAME=replicate": sets the placement of the input or tensor of that name.
 * Throws [shard.place] [shard.axis] [shard.twice] [shard.block] [shard.op], and
 * [shard.conflict] if it has a placement.
 */
void shard_placement_parse(shard_plan *p, const char *text);
/* "data: axis 0 by 4 of 10, model: parts of a sum" */
void shard_placement_print(str *s, const shard_layout *l, uint32_t parts,
	int32_t monoid, const shard_mesh *m, int32_t rank,
	const int64_t *shape);

/* ---- proposals (planner.c, planner_text.c) --------------------------------- */

typedef struct shard_wishes {
	double memory;	/* bytes of a process */
	double link;	/* bytes a second that a process receives */
	double latency; /* seconds of a message */
	double flops;	/* a second */
	bool train;	/* also count a backward pass and an optimiser */
} shard_wishes;

/* The cost of one step for the process with the most work. */
typedef struct shard_bill {
	double flops, moved; /* bytes received */
	double inputs, states, values, memory; /* bytes; memory: the sum */
	double link_seconds, seconds;
} shard_bill;

typedef struct shard_charge { /* a collective */
	const char *name, *of;
	uint32_t mask; /* axes of the mesh */
	int32_t n;
	double bytes; /* received by a process */
} shard_charge;
typedef VEC(shard_charge) shard_charges;

typedef struct shard_placed { /* inputs of one shape whose names differ in digits */
	const char *name;
	int32_t tensor, n; /* the first of them; their number */
} shard_placed;

typedef struct shard_proposal {
	shard_bill bill;
	shard_charges charge;
	VEC(shard_placed) input;
	int32_t n_tried;
} shard_proposal;

/*
 * Proposes layouts for the inputs of a plan; on return they are in p, propagated.
 * A proposal needs more memory than there is only if all do.
 */
shard_proposal *shard_propose(arena *a, shard_plan *p, const shard_wishes *w);
void shard_proposal_print(str *out, const shard_plan *p,
	const shard_proposal *q, const shard_wishes *w, bool json);

/* ---- the elements of one process (piece.c) ------------------------------- */

/* A run that is cut; the process has its values start .. start + n - 1. */
typedef struct shard_span {
	int32_t mesh; /* of the first cut */
	int64_t lo, hi, start, n;
} shard_span;
typedef struct shard_piece {
	int64_t numel, elems; /* of the tensor; of the process */
	int32_t n;
	shard_span span[SHARD_MAX_TAGS + 1]; /* ascending */
} shard_piece;
shard_piece shard_piece_of(arena *a, const shard_layout *l,
	const shard_mesh *m, int64_t process);
/* The index of element number g among the elements of the process. */
const ix_form *shard_index_of(
	ix *x, const ix_dom *d, const shard_piece *w, const ix_form *g);
/* The inverse. */
const ix_form *shard_number_of(
	ix *x, const ix_dom *d, const shard_piece *w, const ix_form *p);
/* The value of span i at element number g. */
const ix_form *shard_span_digit(ix *x, const ix_dom *d, const shard_piece *w,
	int32_t i, const ix_form *g);

/* ---- the program of one process (localise.c, local_eqn.c) ----------------- */

/*
 * A plan for one process: phases of equations over the elements that it has, and
 * moves between phases, which all processes make together. Arrays are dense, in
 * order of element numbers. All processes have the same phases, arrays and
 * moves, with different extents.
 */
typedef struct shard_array {
	int32_t tensor; /* of the global system */
	tn_dtype dtype; /* of partial results: that of the accumulator */
	shard_layout layout;
	int64_t elems;	/* of this process */
	int32_t phase;	/* the first phase in which it exists */
	int32_t input;	/* number of the input of the program, or -1 */
	bool moved;	/* the result of a move */
	bool is_parts;	/* partial results along some axes of the mesh */
	bool crosses;	/* it is read outside of the phase that computes it */
	int32_t last;	/* phase that reads it last */
	int32_t memory; /* the array whose memory it uses; -1: its own */
} shard_array;

typedef struct shard_transfer shard_transfer;
typedef struct shard_job {
	int32_t n, from[IR_MAX_COMP], to[IR_MAX_COMP];
	uint32_t mask; /* axes of the mesh along which they are partial results */
	int32_t monoid;
	const char *name; /* "all-gather" */
	int32_t reader;	  /* the equation that needs it; -1: the layout of the tensor */
	shard_transfer *transfer;
} shard_job;

typedef struct shard_phase {
	VEC(shard_job) job; /* moves before its equations */
	ir_system *s;
	VEC(int32_t) in, out; /* arrays; of the system's inputs and outputs */
} shard_phase;

typedef struct shard_program {
	shard_plan *p;
	int64_t process;
	VEC(shard_array) array;
	VEC(shard_phase) phase;
	int32_t *input;	 /* by input of the system: array */
	int32_t *output; /* by output: array; -1: not kept */
	int32_t last_check; /* the last phase that uses an index from data, or -1;
			     * the same on all processes */
} shard_program;

/* keep: by output, NULL: all; only the layout of other outputs is determined. */
shard_program *shard_localise(
	arena *a, shard_plan *p, int64_t process, const bool *keep);
/* out[k][i] = x[k][i] (+) y[k][i] (+) .. of n elements, with n_parts operands;
 * inputs x.., y.., outputs */
ir_system *shard_joiner(arena *a, int32_t monoid, int32_t n_comp,
	const tn_dtype *acc, int64_t n, int32_t n_parts);
/*
 * Prints the layout of each tensor and the reason, and each move with the bytes
 * that all processes send, and the one that sends most; as text or JSON.
 */
void shard_explain(str *out, const shard_program *p, bool json);

/* ---- running the program of a process (exec.c) ---------------------------- */

typedef struct shard_exec shard_exec;
/* Computes the phases. */
typedef struct shard_runner {
	void *arg;
	void (*run)(void *arg, int32_t phase, const void *const *in,
		void *const *out);
	/* far[k] = far[k] (+) next[k], n elements of each component */
	void (*join)(void *arg, const shard_job *j, int64_t n,
		void *const *far, void *const *next);
	/* arrays are in memory that only these three access, and `run`; NULL: in
	 * the host's. What get returns has been computed. */
	void (*get)(void *arg, void *host, const void *from, size_t n);
	void (*put)(void *arg, void *to, const void *host, size_t n);
	void (*copy)(void *arg, void *to, const void *from, size_t n);
	/* arrays are on a device, and moves do not go through the host; or NULL */
	const struct shard_device *device;
} shard_runner;
shard_exec *shard_exec_new(arena *a, const shard_program *p);
size_t shard_exec_bytes(const shard_exec *x); /* of the slab it needs */
int64_t shard_exec_sent(const shard_exec *x); /* bytes, in each run */
/*
 * If an index is out of range on one process, all continue to the end of the
 * last phase that uses indices from data, and throw the diagnosis of the first
 * one there. Tensors that are written in place are then as they were before, and
 * the link can still be used. shard_exec_failed: did the last run fail so?
 */
bool shard_exec_failed(const shard_exec *x);
/* All processes call it; l NULL: there is only one. in, out: by input and output
 * of the whole system; an output that is stored into an input is written there. */
void shard_exec_run(shard_exec *x, shard_link *l, const shard_runner *r,
	const void *const *in, void *const *out, void *slab);

/* ---- move: from one layout to another (move.c) ---------------------------- */

/*
 * Arrays are dense, in order of element numbers. Each process computes its part
 * of a move from the layouts; only elements are sent, and each element at most
 * once to each process that lacks it.
 */
typedef struct shard_parcel {
	int64_t peer; /* process; if it is this one: a copy */
	int32_t n;
	const shard_run *run; /* in the sender's or the receiver's array */
	int64_t elems;
	/* the same as rows at a distance */
	int32_t n_rows;
	const struct shard_rows {
		int64_t from, n, step, count;
	} *rows;
} shard_parcel;
typedef struct shard_move {
	int32_t n_send, n_receive;
	const shard_parcel *send, *receive; /* by peer; copies are in both */
	int64_t to_elems;		    /* of this process */
	int64_t sent;			    /* elements that this process sends */
} shard_move;

/*
 * A move of elements from layout `from` to `to`, which is computed once and run
 * often. mask: axes of the mesh (bit m: axis m) along which each process holds a
 * partial result; they are combined in the order of the processes. out has room
 * for shard_transfer_elems.
 */
shard_transfer *shard_transfer_new(arena *a, const shard_mesh *m, int64_t rank,
	const shard_layout *from, uint32_t mask, const shard_layout *to,
	const char *what);
const char *shard_transfer_what(const shard_transfer *t);
int64_t shard_transfer_elems(const shard_transfer *t);
int64_t shard_transfer_sent(const shard_transfer *t); /* elements */
/* l may be NULL on a mesh of one process. */
void shard_transfer_run(const shard_transfer *t, arena *scratch, shard_link *l,
	const shard_elems *e, const void *data, void *out);
/* Partial results that are added up. */
typedef struct shard_sum {
	int32_t monoid, n_comp, n_parts;
	tn_dtype acc[IR_MAX_COMP];
	int64_t n;
} shard_sum;
/*
 * The same on devices, whose memory the host does not see (carry.c). Each component
 * of the elements has an array of its own. Partial results are added up by the device,
 * so that their bits are those of a move between hosts.
 */
typedef struct shard_device {
	void *arg;
	shard_carrier *carrier; /* open */
	void *(*room)(void *arg, arena *a, size_t n); /* lives like a */
	/* rows of n bytes, which begin every `step` bytes */
	void (*rows)(void *arg, void *to, size_t to_step, const void *from,
		size_t from_step, size_t n, size_t rows);
	/* sum[k] = part[k] (+) part[n_comp + k] (+) .., in this order, of n
	 * elements; ready: compiles what that needs */
	void (*ready)(void *arg, const shard_sum *s);
	void (*sum)(void *arg, const shard_sum *s, void *const *part,
		void *const *sum);
} shard_device;
typedef struct shard_cargo {
	int32_t n; /* components */
	tn_dtype dtype[IR_MAX_COMP];
	int32_t monoid;
	const void *from[IR_MAX_COMP];
	void *to[IR_MAX_COMP];
} shard_cargo;
/* All processes call it. scratch also has what it allocates on the device. Throws as
 * shard_carry. */
void shard_transfer_carry(const shard_transfer *t, arena *scratch,
	shard_link *l, const shard_device *d, const shard_cargo *c);
/* Does any process send anything? */
bool shard_transfer_is_sent(const shard_transfer *t);
/* The elements of x that are not in y. */
shard_runs shard_without(arena *a, const shard_runs *x, const shard_runs *y);

/* A move of f32 that all processes measure together (measure.c). */
typedef struct shard_measure {
	const shard_layout *from, *to;
	uint32_t mask; /* partial sums along these axes of the mesh */
	int32_t repeat;
	/* medians of process 0, the same on all */
	const char *name;
	double seconds, raw_seconds; /* raw_seconds 0: MPI has no such function */
	int64_t sent, least; /* bytes, of all processes */
} shard_measure;
void shard_measure_run(arena *a, shard_link *l, const shard_mesh *m,
	shard_measure *w);

/* "slice", "all-gather", "all-to-all", "reduce-scatter", "all-reduce", "nothing" */
const char *shard_move_name(const shard_mesh *m, const shard_layout *from,
	uint32_t mask, const shard_layout *to);

#endif
