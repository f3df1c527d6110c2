/* local.h: private to target/cuda/. */
#ifndef TARGET_CUDA_LOCAL_H
#define TARGET_CUDA_LOCAL_H

#include "target/c/text.h"
#include "target/cuda/cuda.h"

enum { SPREAD_LANES = 6 }; /* log2 of the lanes of a warp, and 1 */

/* A kernel, as one thread sees it. */
typedef struct spread {
	const kern_kernel *wide; /* the kernel: types have its lanes */
	kern_kernel *narrow;	 /* the same values, of one lane */
	/* by log2 of the lanes: the value "number of this thread's lane"; 0: no
	 * vector has so many lanes */
	kern_val lane[SPREAD_LANES];
	/* [value] it says only where no mask is needed: a thread asks its own */
	bool *idle;
	const kern_stmt **own; /* [value] the loop by lane whose variable it is */
	/* [array] so many registers of each thread are the array; 0: memory is */
	int32_t *cells;
	map *sync; /* statements in front of which the lanes meet, by address */
} spread;

/* spread.c */
spread *spread_new(arena *a, const kern_kernel *k);
/* The array of this space with the next number behind that of `last`; -1: the
 * first; there is none. Lists of arrays have no order. */
int32_t spread_next(const kern_kernel *k, kern_space space, int32_t last);
/* The lanes of a loop by lane: those of its vectors, of which each part of the warp
 * has one, or the whole warp. */
int32_t spread_by_lane(const spread *s, const kern_stmt *loop);
/* The loop by lane whose variable f has, or NULL */
const kern_stmt *spread_own(const spread *s, const kern_form *f);
kern_val spread_lane(const spread *s, int32_t lanes);
/* The name of the number of this thread in vectors of so many lanes. */
const char *cuda_lane(printer *p, int32_t lanes);
/* The element of this thread's lane, of an access by vectors of so many. */
kern_access spread_access(
	const spread *s, const kern_access *at, int32_t lanes);

/* matrix.c: products of matrices; an array that is swizzled, an element's number in it,
 * its elements and those of a row */
void cuda_matrix(printer *p, const kern_stmt *s);
const char *cuda_swizzled(printer *p, const kern_access *at);

/* bulk.c: what the host says of params of which a phase copies boxes: its last params */
enum { CUDA_BULK_ALIGN = 8, CUDA_BULK_BYTES = 64 }; /* of barriers, in shared memory */
bool cuda_has_maps(const kern_block *b);
int32_t cuda_maps(arena *a, const kern_kernel *k, const kern_phase *p, const c_map **out);
const char *cuda_map_name(arena *a, const c_map *m);
/* Where the barriers are in the memory of the block. */
size_t cuda_bulk_offset(const kern_kernel *k);
void cuda_bulk(printer *p, const kern_stmt *s);

/* own.c */
void spread_find_own_arrays(arena *a, spread *s);
/* The cell of this thread, of an array that is registers. */
const char *spread_own_cell(printer *p, const spread *s, const kern_access *at);

/* sync.c: finds the statements where the lanes must meet: before it reads, or
 * before it writes. */
typedef enum spread_sync { SYNC_READ = 1, SYNC_WRITE = 2 } spread_sync;
void spread_find_syncs(arena *a, spread *s);
bool spread_has_sync(const spread *s, const kern_stmt *st, spread_sync when);

#endif
