/*
 * c.h: interface of target/c/: prints kern as C.
 *
 * A kernel becomes one C function per phase (a reduction that is split has two:
 * partial sums, then their combination). A phase is run for chunk = 0 ..
 * n_chunks-1 in any order, on any thread, all chunks of a phase before the
 * next phase. Chunks depend on sizes only.
 *
 *   void NAME(void *const *p, void *scratch, void *local, int64_t chunk, int64_t *err);
 *
 * p: data of the kernel's params, in order. scratch: scratch_bytes shared by
 * all phases and chunks of one launch. local: local_bytes of the worker that
 * runs the chunk. *err is set to 1 + the number of the offending read (see
 * c_kernel.check) when an index read from data is outside; the element is
 * then clamped, memory is never left.
 *
 *   print.c   functions and statements    value.c   instructions
 *   lanes.c   vectors, lane by lane             rarely.c  what is a function of its own
 *   math.c    the prelude: helpers that the text calls, from math*.def
 *   dot.c     sums of products of neighbours   tiles.c   .. in tile registers
 *   unit.c    translation units
 *   words.c   what GNU C and C99 call by different names
 *   cells.c   the pieces of scratch
 */
#ifndef TARGET_C_H
#define TARGET_C_H

#include "kern/kern.h"

/* A param as a matrix of two bytes an element, of which copies in bulk take boxes of 64
 * columns: their description is a param of the phase, behind all others. */
typedef struct c_map {
	int32_t param;
	int64_t columns, rows;
	int32_t box; /* rows of a box */
} c_map;

typedef struct c_phase {
	const char *fn; /* C function */
	int64_t n_chunks;
	/* 1 + the param that it copies into scratch, and does no more: as long
	 * as that stays as it is, it need not run again. 0: something else */
	int32_t copies;
	/* of the block that runs a chunk; on a CPU one thread does */
	int32_t warps;
	const bool *uses; /* by param: does it read or write it? */
	int32_t n_maps; /* of C: none */
	const c_map *map;
} c_phase;

/* Bytes of scratch that no array outside of them overlaps. */
typedef struct c_cell {
	size_t offset, bytes;
	uint32_t written; /* bit i: phase i writes it */
} c_cell;

typedef struct c_check {
	int32_t tensor; /* the index tensor */
	int64_t lo, hi; /* accepted: lo <= v < hi */
} c_check;

typedef struct c_kernel {
	const char *c; /* C text of its functions, without the prelude */
	/* how long a compiler takes for it, as characters of text without loops */
	int64_t work;
	int32_t n_phases;
	c_phase phase[KERN_MAX_PHASES];
	int32_t n_params;
	const int32_t *param; /* tensors of the system; outputs first */
	int32_t n_outputs;
	size_t scratch_bytes, local_bytes;
	int32_t n_cells; /* of scratch, by rising offset */
	const c_cell *cell;
	bool in_cells; /* cell i is at p[n_params + i]; else `scratch` holds all */
	/* that the warps of a block share, in phases of several warps */
	size_t shared_bytes;
	int32_t n_checks;
	const c_check *check;
	int64_t bytes, flops; /* moved and done, by the equations: for reports */
	bool serial; /* so little work that only the calling thread runs it */
	/* helpers of the prelude that it needs, for c_unit */
	const void *needs;
} c_kernel;

/* What makes text of kernels. */
typedef struct c_target {
	const char *name; /* "c" */
	c_kernel *(*print)(arena *a, const kern_kernel *k);
	/* a translation unit of n kernels */
	void (*unit)(str *out, const c_kernel *const *k, int32_t n);
	/* what a negative *err of a function means, and the line of the unit
	 * where it happened; NULL: there is none */
	const char *(*failure)(int64_t err, int64_t *line);
} c_target;
extern const c_target c_gnu; /* c_print, c_unit */
/* The same for a file that is exported, and defines KERNEL: functions begin with it. */
extern const c_target c_apart;
/* The same two, with a*b + c in two roundings whatever the machine has. */
extern const c_target c_unfused, c_apart_unfused;
/* c_apart_unfused as C99 without extensions, for machines of one lane. */
extern const c_target c_apart_plain;

/* The C of a kernel. Kernels of equal text are one function, whatever their
 * tensors are called. */
c_kernel *c_print(arena *a, const kern_kernel *k);

/* One translation unit: the helpers that the kernels need, then the kernels. */
void c_unit(str *out, const c_kernel *const *k, int32_t n);

#endif
