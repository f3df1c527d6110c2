/*
 * tenon_shard.h: tensors that lie on several processes; part of tenon.h, which
 * includes it.
 *
 *     tn_mesh *m = tn_mesh_new(c, 2, (const char *[]){"data", "model"},
 *                              (int64_t[]){2, 2});
 *     tn_shard(w, m, (tn_placement[]){TN_REPLICATED, TN_SHARDED(0)});
 *
 * The program is the same on every process, and on one: every process makes
 * the same calls on tensors of whole shapes. What lies where is said of a few
 * tensors; the rest follows (docs/sharding.md).
 */
#ifndef TENON_SHARD_H
#define TENON_SHARD_H

/* ---- processes --------------------------------------------------------- */

/** Processes that are threads of one: for tests. */
typedef struct tn_world tn_world;

/**
 * A world of n processes; NULL: no memory, or n < 1.
 *
 * owner   the caller's: tn_world_free, after the contexts that joined it
 * since   0.1
 */
TN_API TN_MUST_USE tn_world *tn_world_new(int32_t n);
TN_API void tn_world_free(tn_world *w);

/**
 * The context is process `process` of a world; before its first mesh. Each has
 * a context and a thread of its own. A context that ends, or fails in what all
 * do together, ends the others' waiting: [shard.link], status TN_EPEER.
 *
 * errors  [shard.process] there is none of that number, or c is one already
 */
TN_API tn_status tn_join(tn_context *c, tn_world *w, int32_t process);
/**
 * The context is one of the processes that mpirun started. The MPI library is
 * loaded at run time. tn_mesh_new does it where a launcher has left its mark.
 *
 * errors  [shard.mpi] no MPI library can be loaded   [shard.process]
 */
TN_API tn_status tn_join_mpi(tn_context *c);
/**
 * Seconds that this process waits, in what all do together, while no process
 * shows a sign of life; before tn_join or the first mesh, too. One that
 * computes, compiles or writes a file shows signs all the time, however long
 * that takes; one that was killed or stopped shows none, and no process does
 * when each waits for another. 0: TENON_PEER_SECONDS, or 30. Then [shard.link]
 * with TN_EPEER, in all processes that can still be told.
 *
 * errors  TN_EINVAL: less than 0, more than a year, or not a number
 * since   0.1
 */
TN_API tn_status tn_shard_patience(tn_context *c, double seconds);
/** Number of this process, and of all: 0 and 1 without others. */
TN_API int32_t tn_process(const tn_context *c);
TN_API int32_t tn_n_processes(const tn_context *c);

/* ---- meshes and placements --------------------------------------------- */

/** The processes as a grid with named axes. */
typedef struct tn_mesh tn_mesh;

/**
 * The mesh of a context, row-major: the last axis walks neighbours. Where all
 * extents are 1 nothing is ever sent; one may be -1: the processes that are left.
 * A name: letters, digits, '_', '.', '/'. Made again, it is the same mesh.
 *
 * names   NULL, or NULL in it: "mesh_0", "mesh_1" ...
 * errors  NULL and [shard.mesh]: 1 to 6 axes, names of which no two are the
 *         same, extents of at least 1, as many processes as there are
 * owner   the context's
 * since   0.1
 */
#define tn_mesh_new(...) tn_at_mesh_new(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_mesh *tn_at_mesh_new(const char *file, int32_t line, tn_context *c,
	int32_t n_axes, const char *const *names, const int64_t *extents);

/** The same from text: "data=2,model=2". errors NULL and [shard.mesh] */
#define tn_mesh_parse(...) tn_at_mesh_parse(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_mesh *tn_at_mesh_parse(
	const char *file, int32_t line, tn_context *c, const char *text);

/** Name and extent of axis i of a mesh; NULL: it has none of that number. */
TN_API const char *tn_mesh_axis(const tn_mesh *m, int32_t i, int64_t *extent);
/**
 * What process 0 has in n_bytes at data, to all. Nothing without others.
 *
 * errors  TN_EPEER [shard.link] somebody has ended, or calls something else;
 *         TN_EINVAL [shard.differ] n_bytes is not the same on all
 * since   0.1
 */
TN_API tn_status tn_broadcast(tn_context *c, void *data, size_t n_bytes);

/**
 * Compares a text with that of all other processes: a rate, a seed, the hash of
 * a file. Nothing without others. Programs are compared so, too, each when it is
 * compiled.
 *
 * what    names it, the same on every process
 * errors  TN_EINVAL [shard.differ] on all processes, and no text is kept: says
 *         which of them have what   TN_EPEER [shard.link]
 * since   0.1
 */
TN_API tn_status tn_agree(tn_context *c, const char *what, const char *text);

typedef enum tn_placement_kind {
	TN_PLACE_WHOLE, /* every process along the axis has it all */
	TN_PLACE_SHARD, /* a block of places on a tensor's axis */
	TN_PLACE_PARTS	/* parts of a sum, a product, a maximum ... */
} tn_placement_kind;

/** What one axis of the mesh does to a tensor. */
typedef struct tn_placement {
	tn_placement_kind kind;
	int32_t axis;	/* TN_PLACE_SHARD; -1: the last, and so on */
	int64_t block;	/* places of a process; 0: the least that is enough */
	const char *op; /* TN_PLACE_PARTS: "sum", "prod", "max", "min" */
} tn_placement;

#define TN_REPLICATED                                                          \
	{                                                                      \
		TN_PLACE_WHOLE, 0, 0, NULL                                     \
	}
#define TN_SHARDED(axis)                                                       \
	{                                                                      \
		TN_PLACE_SHARD, axis, 0, NULL                                  \
	}
#define TN_SHARDED_BY(axis, block)                                             \
	{                                                                      \
		TN_PLACE_SHARD, axis, block, NULL                              \
	}
#define TN_PARTS(op)                                                           \
	{                                                                      \
		TN_PLACE_PARTS, 0, 0, op                                       \
	}

/**
 * Says where the storage of x lies: p has a placement for each axis of the
 * mesh. Two axes of the mesh may cut one axis of x: the second cuts the blocks
 * of the first. Blocks need not divide anything, and a process may have none.
 * What is computed already is moved; of what is not, it is kept in mind.
 *
 * errors  [shard.axis] [shard.block] too small   [shard.conflict] it was
 *         placed elsewhere before   [shard.view] x is a part, or a view that
 *         moves elements   [shard.op] [shard.inside] in a compiled function,
 *         of what it did not make   [shard.mesh] of another context
 * since   0.1
 */
#define tn_shard(...) tn_at_shard(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_shard(const char *file, int32_t line, tn_tensor *x,
	const tn_mesh *mesh, const tn_placement *p);

/**
 * x in another placement: a view of x's storage. Reading it, or a view of it,
 * makes a copy of the present version, once; writing to it writes to x, in the
 * placement of x. Both are counted. A view cannot be placed as parts of a sum
 * [shard.op].
 *
 * errors  as tn_shard; [shard.strict]
 * since   0.1
 */
#define tn_reshard(...) tn_at_reshard(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_reshard(const char *file, int32_t line, tn_tensor *x,
	const tn_mesh *mesh, const tn_placement *p);

/** A copy of x of which every process has all. */
#define tn_full(...) tn_at_full(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_tensor *tn_at_full(const char *file, int32_t line, tn_tensor *x);

/** The part of a tensor that this process has. */
typedef struct tn_window {
	/* in the order of the whole: what is written there is x. In the memory of
	 * the context's device, which has computed it */
	void *data;
	int64_t n_elems;
	size_t n_bytes;
	bool is_box; /* a range on each axis; else the rest is not filled in */
	int32_t rank;
	int64_t shape[TN_MAX_RANK], from[TN_MAX_RANK];
} tn_window;

/**
 * Computes x and shows its local part, until the next call on a tensor of the
 * context. Of copies every process must write the same.
 *
 * errors  [shard.view] x is a part, or moves elements
 * since   0.1
 */
#define tn_local(...) tn_at_local(__FILE__, __LINE__, __VA_ARGS__)
TN_API tn_status tn_at_local(
	const char *file, int32_t line, tn_tensor *x, tn_window *out);

/**
 * The placement of x as text: "data: axis 0 by 3 of 10, model: replicated".
 * Behind "NAME=" of an input of the same shape, tn_program_explain_shard takes
 * it. A reshape of a sharded tensor may lie in blocks of a part of an axis, or by
 * a part of an axis of the mesh; process p is its number on that axis:
 *
 * - "m/2%3: axis 0 by 1": blocks of 1, for (p / 2) % 3
 * - "m: axis 1/4%3 by 2": of the index i, blocks of 2 of (i / 4) % 3
 * - "n: axis 0 by 2 of each block of m": the blocks of m are cut again
 * - "elements: m on 2:20 by 4": no ranges of the axes; blocks of 4 of
 *   (e / 2) % (20 / 2), e the number of an element
 *
 * A text that begins with "view of " is of a part, or of a view that moves
 * elements. Such a view has no placement of its own, so none can be asked for:
 * behind "view of " stands the placement of the storage, by the axes of the
 * storage, for an input of the shape of the storage.
 *
 * owner   *out is the caller's: tn_text_free
 */
#define tn_placement_text(...)                                                 \
	tn_at_placement_text(__FILE__, __LINE__, __VA_ARGS__)
TN_API TN_MUST_USE tn_status tn_at_placement_text(
	const char *file, int32_t line, tn_tensor *x, char **out);

/**
 * A program on a mesh as text or JSON, without any processes: where each tensor
 * lies and why, and each move with its bytes and the reason for it.
 *
 * mesh    "data=2,model=2"
 * place   what tn_shard would say: "x=shard(0)@data,shard(1)@model", in blocks
 *         "x=shard(0,3)@data", "x=parts(sum)@data", "x=replicate"; inputs that
 *         are not named are whole, other tensors follow
 * errors  [shard.mesh] [shard.place] no such tensor, or not that form
 *         [shard.axis] [shard.block] [shard.twice] [shard.op]
 *         [shard.conflict] a tensor is named twice
 * owner   *out is the caller's: tn_text_free
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_program_explain_shard(char **out,
	tn_program *p, const char *mesh, const char *const *place,
	int32_t n_place, bool json);

/** From now on a read or write through tn_reshard that moves is an error. */
TN_API tn_status tn_shard_strict(tn_context *c, bool strict);
/**
 * From now on all processes compare what they are about to run, before each
 * program: [shard.differ] on all of them, instead of an operation that does
 * not match later.
 */
TN_API tn_status tn_shard_debug(tn_context *c, bool debug);

/** How long a move of f32 takes, by all processes of a mesh together. */
typedef struct tn_move_time {
	const char *name; /* "all-gather"; the library's */
	double seconds;	  /* median of process 0 */
	double mpi_seconds; /* of the MPI call that does the same, in turn with
			     * it; 0: there is none */
	int64_t bytes_sent; /* by all processes */
	int64_t bytes_least; /* what any way of doing it sends */
} tn_move_time;

/**
 * Moves rows x columns numbers from one placement to another, `repeat` times,
 * and looks at the result. Every process calls it, and all get the same.
 *
 * errors  as tn_shard
 * since   0.1
 */
#define tn_mesh_measure(...) tn_at_mesh_measure(__FILE__, __LINE__, __VA_ARGS__)
TN_API TN_MUST_USE tn_status tn_at_mesh_measure(const char *file, int32_t line,
	tn_mesh *mesh, int64_t rows, int64_t columns, const tn_placement *from,
	const tn_placement *to, int32_t repeat, tn_move_time *out);

/** What a mesh that need not be there is like, for tn_program_plan_shards. */
typedef struct tn_shard_wishes {
	const char *mesh; /* "data=8,model=4" */
	double memory;	  /* bytes of a process */
	double link;	  /* bytes a second that a process receives */
	double latency;	  /* seconds of a message */
	double flops;	  /* of a process, a second */
	bool train;	  /* with a backward, and AdamW's states */
	bool json;
} tn_shard_wishes;

/**
 * Where the inputs of a program should lie, found by cost, as text: placements,
 * moves, memory of a process, seconds of a step (seconds NULL: not asked).
 * Starts no process.
 *
 * errors  [shard.memory] nothing that was tried fits   [shard.mesh]
 * owner   *out is the caller's: tn_text_free
 * since   0.1
 */
TN_API TN_MUST_USE tn_status tn_program_plan_shards(char **out,
	double *seconds, tn_program *p, const tn_shard_wishes *w);

typedef struct tn_shard_stats {
	int64_t n_moves;    /* between processes, so far */
	int64_t bytes_sent; /* that left this process */
	int64_t n_reads, read_bytes;	   /* copies through tn_reshard */
	int64_t n_write_backs, write_back_bytes; /* writes through it */
} tn_shard_stats;
TN_API void tn_context_shard_stats(const tn_context *c, tn_shard_stats *out);

#endif
