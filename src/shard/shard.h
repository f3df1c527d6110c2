/*
 * shard.h: the door of shard/: tensors that lie on several processes.
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
 * The block is stored and never computed again from an extent: x flattened is
 * the same layout, and process 3 still owns 6 elements. Because a tag speaks
 * of element numbers alone, every reshape of a tensor has its layout. What may
 * be asked is whether the part of each process is a box of the new axes.
 */
#ifndef SHARD_H
#define SHARD_H

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
} shard_tag;

typedef struct shard_layout {
	int64_t numel;
	int32_t n;
	shard_tag tag[SHARD_MAX_TAGS];
} shard_layout;

/* elements from, from + 1, .. from + n - 1 */
typedef struct shard_run {
	int64_t from, n;
} shard_run;
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
} shard_place;

typedef struct shard_state {
	shard_layout have;
	/* by axis of the mesh: the monoid whose parts the processes hold, -1 */
	int32_t partial[SHARD_MAX_AXES];
	bool fixed; /* as annotated: no cut is added */
} shard_state;

typedef struct shard_plan {
	arena *a;
	ir_system *s;
	const shard_mesh *mesh;
	eqn_graph *graph;
	shard_place *eqn;    /* by equation of the system */
	shard_state *tensor; /* by tensor */
	VEC(const char *) why; /* each cut of an equation, in the order in which they came */
} shard_plan;

shard_plan *shard_plan_new(arena *a, ir_system *s, const shard_mesh *m);
/* what a tensor has; fixed: exactly this, else more cuts may be added */
void shard_annotate(
	shard_plan *p, int32_t tensor, const shard_layout *l, bool fixed);
/*
 * Cuts of tensors to equations and to other tensors, forwards and backwards,
 * until nothing more comes. What came first stays.
 */
void shard_propagate(shard_plan *p);
/* the layout that equation `eqn` needs of a tensor it reads */
shard_layout shard_needs(shard_plan *p, int32_t eqn, int32_t tensor);
/* what two readers can both work with */
shard_layout shard_common(const shard_layout *a, const shard_layout *b);
/* the layout in which it makes its results */
shard_layout shard_makes(shard_plan *p, int32_t eqn);
/* is the equation cut along this axis of the mesh, and one of its sums is? */
bool shard_is_partial(const shard_plan *p, int32_t eqn, int32_t mesh_axis);

#endif
