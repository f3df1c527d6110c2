/* local.h: private to layout/: cuts of equations. */
#ifndef SHARD_LOCAL_H
#define SHARD_LOCAL_H

#include "layout/layout.h"
#include "comm/ring.h"

/* A tag on an axis of an equation. */
typedef struct cut_part {
	int32_t axis;
	shard_tag tag;
} cut_part;

/* Does a tag of the layout use this axis of the mesh? */
bool layout_uses(const shard_layout *l, int32_t mesh_axis);
/* The tag that uses the axis of the mesh, or -1. */
int32_t layout_find(const shard_layout *l, int32_t mesh_axis);
/* Do both cut the same run into the same blocks by the same axis of the mesh? */
bool layout_same_cut(const shard_tag *a, const shard_tag *b);
/* Adds t; false: another tag cuts the same run. */
bool layout_add(shard_layout *l, shard_tag t);
/* Has it a halo (wider or narrower blocks)? */
bool layout_is_wide(const shard_tag *t);
/* The values of the run in a block with its halo. */
shard_run layout_wide_block(const shard_tag *t, int64_t block);
/* The outermost tag of the cuts that contain tag i. */
int32_t layout_top(const shard_layout *l, int32_t i);

bool eqn_is_cut_by(const shard_eqn *q, int32_t mesh_axis);
/* Is r the initial value of a scatter, read at the element that it initialises? */
bool eqn_reads_init(const eqn_unit *u, const eqn_read *r);
/* ---- batch.c: opaque rows; t: number among operands, then results ---- */

/* Gives the unit the axes of its row's batch. */
void batch_axes(shard_plan *p, eqn_unit *u);
/* Translates tag i of tensor t into parts of these axes; 0: impossible. */
int32_t batch_from(shard_plan *p, const shard_eqn *q, int32_t t,
	const shard_layout *l, int32_t i, cut_part *part);
/* The layout of tensor t that follows from the cuts of these axes. */
shard_layout batch_layout(
	const shard_plan *p, const shard_eqn *q, int32_t t);

/* ---- halo.c ---- */

/* The tag, with halo, that a sliding window needs where tag t cuts an axis;
 * false: the read is not a sliding window along it. */
bool halo_needs(shard_plan *p, const eqn_unit *u, int32_t read, int32_t axis,
	const shard_tag *t, shard_tag *out);
/* .. and the axis of the equation that a cut of the tensor becomes. */
bool halo_takes(shard_plan *p, const eqn_unit *u, int32_t read,
	const shard_tag *t, cut_part *part);
/* The part of the run of a tag that a read reaches, as one block on all
 * processes; false: it reaches all, or it is unknown. */
bool halo_part(shard_plan *p, const eqn_unit *u, int32_t read,
	const shard_tag *t, shard_tag *out);
/* The number of values of the run that processes have by tag `seen` and not by
 * tag `own`: of all processes, or (!all) of the one with the most. */
int64_t halo_moved(const shard_mesh *m, const shard_tag *own,
	const shard_tag *seen, bool all);
/* The tag without its halo: each element on exactly one process. */
shard_tag halo_without(const shard_tag *t);

/* The layout that a read needs of its tensor. *windows: on entry, may sliding
 * windows be used where digits also serve, but move more? on return: was one? */
shard_layout layout_to_read(shard_plan *p, const shard_eqn *q, int32_t read,
	bool *windows);

/* Does b have all cuts of a? */
bool layout_holds(const shard_layout *a, const shard_layout *b);

/* Does every process have the same elements in both layouts? */
bool layout_equal(arena *a, const shard_mesh *m, const shard_layout *x,
	const shard_layout *y);

/* Transfers the cuts by mesh axis m of the tensor that a read reads, or of result
 * k, to the axes of the equation; false: impossible. */
bool take_read(shard_plan *p, shard_eqn *q, int32_t read, int32_t mesh);
bool take_result(shard_plan *p, shard_eqn *q, int32_t k, int32_t mesh);

/* ---- choose.c ---- */

/*
 * Takes the cuts of read `first`, or of another one that costs less. NULL: none
 * can be taken; else a text about the costs; *from is the tensor.
 */
const char *choose_cut(shard_plan *p, int32_t eqn, int32_t first, int32_t m,
	int32_t *from);

/* ---- move.c ---- */

struct shard_transfer {
	int64_t rank, size;
	shard_move v;
	/* for sums: what this process sends to each of its group, and adds up */
	bool sums;
	int64_t n_adds;
	bool *member;	   /* by process */
	shard_parcel *give; /* by process; elems 0: none */
	int64_t sent;	   /* elements that this process sends */
	/* does any process send parts of sums, or then elements? */
	bool sends_parts, sends;
	const char *what;
	/* for rings: buffers */
	ring_flow *flow;
	int64_t *order;
	uint64_t *address;
};

/* The parcel of the result in which this process can add up; NULL: there is none. */
const shard_parcel *transfer_sums_in_place(const shard_transfer *t);

/* writes.c: substitutes elementwise equations into the writes that read them. */
void writes_inline(shard_plan *p);

/* ---- arrays.c ---- */

typedef struct locals {
	arena *a;
	shard_plan *p;
	shard_program *out;
	ix *x;
	VEC(shard_piece) window; /* by array */
	int32_t *made;	/* by tensor: the array that its equation computes, or -1 */
	int32_t *kept;	/* by tensor: the array of its layout; -1: none yet */
	map *tensor_of; /* (phase, array) -> tensor of the phase's system */
} locals;

shard_array *locals_array(locals *b, int32_t array);
shard_phase *locals_phase(locals *b, int32_t phase);
/* A new array for a tensor with this layout, from this phase on. */
int32_t locals_new(locals *b, int32_t tensor, const shard_layout *l,
	tn_dtype dtype, int32_t phase);
/* Adds a move of from[], partial results along the mesh axes of mask. */
void locals_job(locals *b, int32_t n, const int32_t *from, const int32_t *to,
	uint32_t mask, int32_t monoid, int32_t reader);
/* The array in the layout of the tensor itself. */
int32_t locals_kept(locals *b, int32_t tensor);
/* Copies array `from` to `to`, which has another layout or dtype. */
void locals_copy(locals *b, int32_t phase, int32_t from, int32_t to);
/* The tensor of an array in the system of a phase; an input, unless an equation
 * of the phase computes it. */
int32_t locals_tensor(locals *b, int32_t phase, int32_t array);
/* The same for an array that the phase computes. */
int32_t locals_result(locals *b, int32_t phase, int32_t array);
/* An array with the elements of a tensor that equation eqn needs. */
int32_t locals_source(locals *b, int32_t eqn, int32_t tensor);
/* The same for an operand of an opaque row, without other elements. */
int32_t locals_operand(locals *b, int32_t eqn, int32_t operand);

/* ---- local_eqn.c ---- */

/* Adds equation eqn to a phase; out[k]: the arrays that it computes. */
void locals_equation(locals *b, int32_t eqn, int32_t phase,
	const int32_t *out, uint32_t mask);

#endif
