/*
 * layout.h: the door of layout/: tensors that lie on several processes.
 *
 *   mesh     the processes as a grid with named axes, row-major
 *   layout   which process owns which elements: digits of the element number,
 *            some of them tagged with an axis of the mesh (layout.c, axes.c)
 *   plan     the layouts of all tensors of a system, and which process works
 *            out which part of each equation (place.c, propagate.c)
 *
 * Element e of a tensor has the row-major number e in the whole, global tensor.
 * A tag cuts one run of it into blocks:
 *
 *     value(e) = (e div lo) mod (hi / lo)      owner = value div block
 *
 *     x: f32[10,6] on mesh [4], axis 0 cut: lo 6, hi 60, block 3
 *     process 0 owns rows 0..2, 1: 3..5, 2: 6..8, 3: row 9
 *
 * Blocks may be seen wider than they are, when an equation needs them so: rows
 * 3..5 of a picture and, for a window of three, one on either side (a halo).
 * Tensors never lie that way, only copies of them.
 *
 * The block is stored and never computed again from an extent: x flattened is
 * the same layout, and process 3 still owns 6 elements. Because a tag speaks
 * of element numbers alone, every reshape of a tensor has its layout. What may
 * be asked is whether the part of each process is a box of the new axes.
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
	const char *name[SHARD_MAX_AXES]; /* NULL: none */
} shard_mesh;

/* processes of the mesh; throws [shard.mesh] when it is none */
int64_t shard_mesh_size(env *e, const shard_mesh *m);
/* place of a process on one axis */
int64_t shard_mesh_at(const shard_mesh *m, int64_t process, int32_t axis);

/* ---- layout -------------------------------------------------------------- */

typedef struct shard_tag {
	int32_t mesh;
	/* which part of the place c on that axis it is: (c div mult) mod count */
	int64_t mult, count;
	int64_t lo, hi; /* the run: (e div lo) mod (hi / lo) */
	int64_t block;	/* of values of the run; > 0 */
	int32_t within; /* the tag whose blocks are cut; -1: the whole run */
	/* of what a window reads: values in front of each block and behind it
	 * that its process has as well; less than 0: so many it has not */
	int64_t before, after;
} shard_tag;

typedef struct shard_layout {
	int64_t numel;
	int32_t n;
	shard_tag tag[SHARD_MAX_TAGS];
} shard_layout;

typedef struct shard_runs {
	int32_t n;
	const shard_run *at; /* ascending, apart from each other */
	int64_t elems;
} shard_runs;

/* every process has all elements */
shard_layout shard_replicated(int64_t numel);
/*
 * Axis `axis` of shape, cut along axis `mesh_axis`; or the blocks that an
 * earlier cut of it left, cut again. block 0: the least that is enough. Throws
 * [shard.axis] [shard.twice] [shard.block].
 */
void shard_cut(env *e, shard_layout *l, const shard_mesh *m, int32_t rank,
	const int64_t *shape, int32_t axis, int32_t mesh_axis, int64_t block);
/* number of the tag's block in which element e lies */
int64_t shard_block_of(const shard_layout *l, int32_t tag, int64_t e);
bool shard_owns(const shard_layout *l, const shard_mesh *m, int64_t process,
	int64_t e);
/* the elements of a process, in order of their numbers */
shard_runs shard_owned(arena *a, const shard_layout *l, const shard_mesh *m,
	int64_t process);
/* is every element on the same processes? */
bool shard_same(const shard_layout *a, const shard_layout *b);
/* "a_0 on 6:60 by 3" for explanations; "replicated" */
void shard_layout_print(str *s, const shard_layout *l, const shard_mesh *m);

/* ---- axes (axes.c) ------------------------------------------------------- */

/*
 * Is the part of every process a box of these axes (a set of places on each,
 * and all their combinations)? If not, *boundary is the product of inner
 * extents that the cut does not respect.
 */
bool shard_is_free(const shard_layout *l, int32_t rank, const int64_t *shape,
	int64_t *boundary);
/*
 * The layout of each axis by itself, over its places 0 .. extent - 1; numel is
 * the extent. false: it is not free, or a scalar that some do not have.
 */
bool shard_by_axis(const shard_layout *l, int32_t rank, const int64_t *shape,
	shard_layout *axis);
/* extents of the box that a process owns; false: it is not free */
bool shard_local_shape(const shard_layout *l, const shard_mesh *m,
	int64_t process, int32_t rank, const int64_t *shape, int64_t *local);

/* ---- plan (place.c, propagate.c) ----------------------------------------- */

/* How an equation is cut: each axis of its unit by itself. */
typedef struct shard_place {
	eqn_unit *unit;
	shard_layout *axis; /* by axis of the unit; numel is the extent */
	/* a read at an address from data, by those who own the element: bit m
	 * is axis m of the mesh; the tensor, -1: none */
	int32_t masked;
	uint32_t masks;
	/* of a scatter, cuts of its result that no axis walks: each process
	 * makes all instances, and keeps those that fall among its elements */
	shard_layout own;
	bool dead; /* it is a part of the write that read its result */
} shard_place;

typedef struct shard_state {
	shard_layout have;
	/* by axis of the mesh: the monoid whose parts the processes hold, -1 */
	int32_t partial[SHARD_MAX_AXES];
	bool fixed; /* as annotated: no cut is added */
	/* of an input: it comes in parts along these axes of the mesh */
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
	shard_place *eqn;    /* by equation of the system */
	shard_state *tensor; /* by tensor */
	VEC(shard_reason) why; /* each cut, in the order in which they came */
} shard_plan;

shard_plan *shard_plan_new(arena *a, ir_system *s, const shard_mesh *m);
/* as it was when it was new: nothing lies anywhere */
void shard_plan_reset(shard_plan *p);
/* what a tensor has; fixed: exactly this, else more cuts may be added */
void shard_annotate(
	shard_plan *p, int32_t tensor, const shard_layout *l, bool fixed);
/*
 * Cuts of tensors to equations and to other tensors, forwards and backwards,
 * until nothing more comes. What came first stays.
 */
void shard_propagate(shard_plan *p);
/*
 * When that is done: a sum in parts whose readers all need it cut along an axis
 * over which it is summed gets that cut, so that each process adds up only its
 * own.
 */
void shard_scatter_sums(shard_plan *p);
/* the layout that equation `eqn` needs of a tensor it reads */
shard_layout shard_needs(shard_plan *p, int32_t eqn, int32_t tensor);
/* what two readers can both work with */
shard_layout shard_common(const shard_layout *a, const shard_layout *b);
/* the layout in which it makes result k */
shard_layout shard_makes(shard_plan *p, int32_t eqn, int32_t k);
/* is the equation cut along this axis of the mesh, and one of its sums is? */
bool shard_is_partial(const shard_plan *p, int32_t eqn, int32_t mesh_axis);

/* ---- text (notation.c, explain.c) ------------------------------------------ */

/* "data=2,model=4"; throws [shard.mesh] */
shard_mesh shard_mesh_parse(arena *a, const char *text);
/*
 * "NAME=shard(0)@data,shard(1,BLOCK)@model", "NAME=parts(sum)@data",
 * "NAME=replicate": annotates the input or tensor of that name. Throws
 * [shard.place] [shard.axis] [shard.twice] [shard.block] [shard.op], and
 * [shard.conflict] when it has a place.
 */
void shard_place_parse(shard_plan *p, const char *text);
/* "data: axis 0 by 4 of 10, model: parts of a sum" */
void shard_place_print(str *s, const shard_layout *l, uint32_t parts,
	int32_t monoid, const shard_mesh *m, int32_t rank,
	const int64_t *shape);

/* ---- proposals (planner.c, planner_text.c) --------------------------------- */

typedef struct shard_wishes {
	double memory;	/* bytes of a process */
	double link;	/* bytes a second that a process receives */
	double latency; /* seconds of a message */
	double flops;	/* a second */
	bool train;	/* there is a backward behind it, and an optimiser */
} shard_wishes;

/* What one step costs the process that has most to do. */
typedef struct shard_bill {
	double flops, moved; /* bytes received */
	double inputs, states, values, memory; /* bytes; memory: of all */
	double link_seconds, seconds;
} shard_bill;

typedef struct shard_charge { /* a collective */
	const char *name, *of;
	uint32_t mask; /* axes of the mesh */
	int32_t n;
	double bytes; /* received by a process */
} shard_charge;
typedef VEC(shard_charge) shard_charges;

typedef struct shard_placed { /* inputs of one shape and name, but for digits */
	const char *name;
	int32_t tensor, n; /* the first of them; how many */
} shard_placed;

typedef struct shard_proposal {
	shard_bill bill;
	shard_charges charge;
	VEC(shard_placed) input;
	int32_t n_tried;
} shard_proposal;

/*
 * Where the inputs of a plan should lie: in p, propagated, when it returns.
 * What needs more memory than there is, is proposed when all do.
 */
shard_proposal *shard_propose(arena *a, shard_plan *p, const shard_wishes *w);
void shard_proposal_print(str *out, const shard_plan *p,
	const shard_proposal *q, const shard_wishes *w, bool json);

/* ---- the window of one process (window.c) -------------------------------- */

/* A run that is cut: the process has its values start .. start + n - 1. */
typedef struct shard_span {
	int32_t mesh; /* of the first cut */
	int64_t lo, hi, start, n;
} shard_span;
typedef struct shard_window {
	int64_t numel, elems; /* of all; of the process */
	int32_t n;
	shard_span span[SHARD_MAX_TAGS + 1]; /* ascending */
} shard_window;
shard_window shard_window_of(arena *a, const shard_layout *l,
	const shard_mesh *m, int64_t process);
/* place of element number g among those of the process, in their order */
const ix_form *shard_place_of(
	ix *x, const ix_dom *d, const shard_window *w, const ix_form *g);
/* and back */
const ix_form *shard_number_of(
	ix *x, const ix_dom *d, const shard_window *w, const ix_form *p);
/* value of span i at element number g */
const ix_form *shard_span_digit(ix *x, const ix_dom *d, const shard_window *w,
	int32_t i, const ix_form *g);

/* ---- the program of one process (localise.c, local_eqn.c) ----------------- */

/*
 * A plan, for one process: equations over the elements that it has, in phases,
 * and between them moves that all processes make together. Its arrays are
 * dense, in the order of the numbers of their elements. All processes have the
 * same phases, arrays and moves, with other extents.
 */
typedef struct shard_array {
	int32_t tensor; /* of the global system */
	tn_dtype dtype; /* of parts: that in which they are combined */
	shard_layout layout;
	int64_t elems;	/* of this process */
	int32_t phase;	/* from this one on it is there */
	int32_t input;	/* of the program; -1 */
	bool moved;	/* made by a move */
	bool is_parts;	/* along some axes of the mesh */
	bool crosses;	/* wanted outside of the phase that makes it */
	int32_t last;	/* phase that reads it last */
	int32_t memory; /* made in the memory of this array; -1: its own */
} shard_array;

typedef struct shard_transfer shard_transfer;
typedef struct shard_job {
	int32_t n, from[IR_MAX_COMP], to[IR_MAX_COMP];
	uint32_t mask; /* axes of the mesh along which they are parts */
	int32_t monoid;
	const char *name; /* "all-gather" */
	int32_t reader;	  /* the equation that wants it; -1: its own layout */
	shard_transfer *transfer;
} shard_job;

typedef struct shard_phase {
	VEC(shard_job) job; /* before its equations */
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
	int32_t last_check; /* phase behind which no index from data is looked at;
			     * -1: none is. The same on all processes */
} shard_program;

/* keep: by output of the system, NULL: all; of others only the layout counts */
shard_program *shard_localise(
	arena *a, shard_plan *p, int64_t process, const bool *keep);
/* out[k][i] = x[k][i] (+) y[k][i] for n elements; inputs x.., y.., outputs */
ir_system *shard_joiner(arena *a, int32_t monoid, int32_t n_comp,
	const tn_dtype *acc, int64_t n);
void shard_program_print(str *out, const shard_program *p);
/*
 * Where each tensor lies and why, and each move with the bytes that it sends:
 * by all processes, and by the one that sends most. As text or as JSON.
 */
void shard_explain(str *out, const shard_program *p, bool json);

/* ---- running the program of a process (exec.c) ---------------------------- */

typedef struct shard_exec shard_exec;
/* Who computes. */
typedef struct shard_runner {
	void *arg;
	void (*run)(void *arg, int32_t phase, const void *const *in,
		void *const *out);
	/* far[k] = far[k] (+) next[k], n elements of each component */
	void (*join)(void *arg, const shard_job *j, int64_t n,
		void *const *far, void *const *next);
} shard_runner;
shard_exec *shard_exec_new(arena *a, const shard_program *p);
size_t shard_exec_bytes(const shard_exec *x); /* of the slab it needs */
int64_t shard_exec_sent(const shard_exec *x); /* bytes, in each run */
/*
 * When an index is outside its tensor on one process, all go on to the end of
 * the last phase that looks at any, and there throw what the first one threw;
 * what is written in place is then as it was, and the link is whole.
 */
bool shard_exec_failed(const shard_exec *x); /* so, in the last run */
/* All processes together; l NULL: there is but one. in, out: by input and output
 * of the whole system; what ends in an input's memory is written there. */
void shard_exec_run(shard_exec *x, shard_link *l, const shard_runner *r,
	const void *const *in, void *const *out, void *slab);

/* ---- move: from one layout to another (move.c) ---------------------------- */

/*
 * The elements of a process lie densely in the order of their numbers. A move
 * is worked out by every process for itself, from layouts alone; nothing but
 * elements is sent, and each element at most once to each who lacks it.
 */
typedef struct shard_parcel {
	int64_t peer; /* process; the own one: a copy */
	int32_t n;
	const shard_run *run; /* in the sender's or the receiver's array */
	int64_t elems;
} shard_parcel;
typedef struct shard_move {
	int32_t n_send, n_receive;
	const shard_parcel *send, *receive; /* by peer; copies are in both */
	int64_t from_elems, to_elems;	    /* of this process */
	int64_t sent;			    /* elements that leave it */
} shard_move;

/* of process `rank`, with what all have and all need, by process */
shard_move shard_move_new(arena *a, const shard_mesh *m, int64_t rank,
	const shard_layout *from, const shard_runs *have,
	const shard_runs *need);
/* bytes by element: size */
void shard_move_run(arena *scratch, shard_link *l, const shard_move *v,
	size_t size, const void *from, void *to, const char *what);

/*
 * A move that is worked out once and run often: of `from` to `to`, as
 * shard_reshard. out has room for shard_transfer_elems.
 */
shard_transfer *shard_transfer_new(arena *a, const shard_mesh *m, int64_t rank,
	const shard_layout *from, uint32_t mask, const shard_layout *to,
	const char *what);
const char *shard_transfer_what(const shard_transfer *t);
int64_t shard_transfer_elems(const shard_transfer *t);
int64_t shard_transfer_sent(const shard_transfer *t); /* elements */
/* l: NULL will do on a mesh of one process */
void shard_transfer_run(const shard_transfer *t, arena *scratch, shard_link *l,
	const shard_elems *e, const void *data, void *out);
/*
 * Element data of `from` to `to`. mask: axes of the mesh along which each
 * process holds a part of the result (bit m: axis m), to be combined in the
 * order of the processes; 0: none. Returns the new local data. sent: bytes
 * that left this process; NULL: not asked.
 */
void *shard_reshard(arena *a, shard_link *l, const shard_mesh *m,
	const shard_layout *from, uint32_t mask, const shard_layout *to,
	const shard_elems *e, const void *data, int64_t *sent);
/* what is in x and not in y */
shard_runs shard_without(arena *a, const shard_runs *x, const shard_runs *y);
/* elements that have to be sent, by all processes together */
int64_t shard_least(arena *a, const shard_mesh *m, const shard_layout *from,
	uint32_t mask, const shard_layout *to);

/* A move of f32, measured by all processes together (measure.c). */
typedef struct shard_measure {
	const shard_layout *from, *to;
	uint32_t mask; /* parts of a sum along these axes of the mesh */
	int32_t repeat;
	/* of process 0, told to all; medians */
	const char *name;
	double seconds, raw_seconds; /* 0: the library has no such call */
	int64_t sent, least; /* bytes, by all */
} shard_measure;
void shard_measure_run(arena *a, shard_link *l, const shard_mesh *m,
	shard_measure *w);

/* "slice", "all-gather", "all-to-all", "reduce-scatter", "all-reduce", "nothing" */
const char *shard_move_name(const shard_mesh *m, const shard_layout *from,
	uint32_t mask, const shard_layout *to);

#endif
