/* local.h: private to layout/: cuts of equations. */
#ifndef SHARD_LOCAL_H
#define SHARD_LOCAL_H

#include "layout/layout.h"

/* A tag on an axis of an equation. */
typedef struct place_part {
	int32_t axis;
	shard_tag tag;
} place_part;

/* Does any tag of the layout belong to this axis of the mesh? */
bool layout_uses(const shard_layout *l, int32_t mesh_axis);
/* the tag of the axis of the mesh; -1 */
int32_t layout_find(const shard_layout *l, int32_t mesh_axis);
/* the same run in the same blocks by the same axis of the mesh */
bool layout_same_cut(const shard_tag *a, const shard_tag *b);
/* adds t where no other tag cuts the same run; false: one does */
bool layout_add(shard_layout *l, shard_tag t);
/* are blocks seen wider or narrower than they are? */
bool layout_is_wide(const shard_tag *t);
/* what is seen of one then, as values of the run */
shard_run layout_wide_block(const shard_tag *t, int64_t block);
/* the first cut of the run that tag i is within */
int32_t layout_top(const shard_layout *l, int32_t i);

bool place_uses(const shard_place *q, int32_t mesh_axis);
/* does a scatter start each element from the same one of what it reads here? */
bool place_is_init(const eqn_unit *u, const eqn_read *r);
/*
 * Tag i of what read number `read` reads, as parts of the equation's axes.
 * Returns their number, at most SHARD_MAX_TAGS; 0: it is none of these.
 */
int32_t place_from_read(shard_plan *p, const shard_place *q, int32_t read,
	const shard_layout *l, int32_t i, place_part *part);
/* the same of the result */
int32_t place_from_result(const shard_place *q, const shard_layout *l,
	int32_t mesh_axis, place_part *part);
/* All of them or none; all of one axis of the mesh. false: none. */
bool place_add(shard_place *q, const shard_mesh *m, int32_t n,
	const place_part *part);
/* ---- batch.c: opaque rows; t: number among operands, then results ---- */

/* the unit gets the axes of its row's batch */
void batch_axes(shard_plan *p, eqn_unit *u);
/* tag i of tensor t as parts of these axes; 0: it is none of these */
int32_t batch_from(shard_plan *p, const shard_place *q, int32_t t,
	const shard_layout *l, int32_t i, place_part *part);
/* tensor t as these axes are cut */
shard_layout batch_layout(
	const shard_plan *p, const shard_place *q, int32_t t);

/* ---- halo.c ---- */

/* What a window needs of its tensor where tag t cuts an axis; false: it is no
 * window along it. */
bool halo_needs(shard_plan *p, const eqn_unit *u, int32_t read, int32_t axis,
	const shard_tag *t, shard_tag *out);
/* .. and the axis that a cut of the tensor goes to */
bool halo_takes(shard_plan *p, const eqn_unit *u, int32_t read,
	const shard_tag *t, place_part *part);
/* The least part of the run of a tag that a read reaches, as one block that all
 * have; false: that is all of it, or it is not known. */
bool halo_part(shard_plan *p, const eqn_unit *u, int32_t read,
	const shard_tag *t, shard_tag *out);
/* Values of the run that processes see by tag `seen` and do not have by tag
 * `own`: of all; else of the one that lacks most. */
int64_t halo_moved(const shard_mesh *m, const shard_tag *own,
	const shard_tag *seen, bool all);
/* a cut as tensors may have it: each element on one process, and on one only */
shard_tag halo_without(const shard_tag *t);

/* What a read needs of its tensor; *windows: windows may stand where digits
 * would do, but bring more, and then: one does. */
shard_layout place_to_read(shard_plan *p, const shard_place *q, int32_t read,
	bool *windows);

/* are all cuts of a in b too? */
bool layout_holds(const shard_layout *a, const shard_layout *b);

/* does every process have the same elements by both, in whatever words? */
bool layout_equal(arena *a, const shard_mesh *m, const shard_layout *x,
	const shard_layout *y);

/* ---- propagate.c, choose.c ---- */

/* The cuts of mesh axis m of what a read reads, or of result k, to the axes of
 * the equation; false: they are none of these. */
bool take_read(shard_plan *p, shard_place *q, int32_t read, int32_t mesh);
bool take_result(shard_plan *p, shard_place *q, int32_t k, int32_t mesh);
/*
 * Those of read `first`, or of another one that costs less. NULL: none can be
 * taken; else what is to be said of the costs, and *from the tensor.
 */
const char *choose_cut(shard_plan *p, int32_t eqn, int32_t first, int32_t m,
	int32_t *from);
/* bytes that a process receives for the equation as it is cut along m */
int64_t choose_cost(shard_plan *p, int32_t eqn, int32_t m);

/* writes.c: elementwise equations become part of the writes that read them */
void writes_inline(shard_plan *p);

/* ---- localise.c, local_eqn.c ---- */

typedef struct locals {
	arena *a;
	shard_plan *p;
	shard_program *out;
	ix *x;
	VEC(shard_window) window; /* by array */
	int32_t *made;	/* by tensor: the array that its equation makes, -1 */
	int32_t *kept;	/* by tensor: the array of its layout; -1 not yet */
	map *tensor_of; /* (phase, array) -> tensor of the phase's system */
} locals;

shard_array *locals_array(locals *b, int32_t array);
/* the array as a tensor of a phase's system; an input, if nothing there makes it */
int32_t locals_tensor(locals *b, int32_t phase, int32_t array);
/* the same, when the phase makes it */
int32_t locals_result(locals *b, int32_t phase, int32_t array);
/* an array with all that equation eqn needs of a tensor */
int32_t locals_source(locals *b, int32_t eqn, int32_t tensor);
/* the same of the operand of an opaque row, and no more */
int32_t locals_operand(locals *b, int32_t eqn, int32_t operand);
/* equation eqn in a phase; out[k]: the arrays it makes */
void locals_equation(locals *b, int32_t eqn, int32_t phase,
	const int32_t *out, uint32_t mask);
/* array to = array from, element by element, in another layout or dtype */
void locals_copy(locals *b, int32_t phase, int32_t from, int32_t to);

#endif
