/*
 * paths.h: random chains of view operations, and what they mean.
 *
 * A path starts at a row-major tensor and applies operations to views of it.
 * It means a function from coordinates of the last view to elements of the
 * tensor, on the points where no zero padding is read.
 */
#ifndef PROP_PATHS_H
#define PROP_PATHS_H

#include "ix/ix.h"

enum { PATH_RANK = 6, PATH_OPS = 16, PATH_FACTS = 2 * PATH_RANK * PATH_OPS };

enum path_kind {
	PATH_TRANSPOSE, /* out axis i is axis perm[i] */
	PATH_RESHAPE,
	PATH_SLICE,  /* axis: start + step*i */
	PATH_FLIP,   /* axis */
	PATH_PAD,    /* axis: i - start, zero outside */
	PATH_EDGE,   /* axis: clamp(i - start) */
	PATH_WINDOW, /* axis: y*step + k*dilation, k the next axis */
	PATH_KINDS,
};

typedef struct path_shape {
	int32_t rank;
	int64_t at[PATH_RANK];
} path_shape;

typedef struct path_op {
	enum path_kind kind;
	int32_t axis, perm[PATH_RANK];
	int64_t start, step, dilation;
	path_shape in, out;
} path_op;

typedef struct path {
	path_shape base;
	int32_t n;
	path_op op[PATH_OPS];
} path;

typedef struct draw {
	uint64_t seed, n;
} draw;

int64_t draw_below(draw *d, int64_t n);
bool draw_chance(draw *d, int64_t percent);

const path_shape *path_out(const path *p);
int64_t path_numel(const path_shape *s);

/* Two paths from one base to one shape, often equal. */
void path_pair(draw *d, path *a, path *b);

/* Address form; appends to facts, which has room for PATH_FACTS more. */
const ix_form *path_form(ix *x, const path *p, ix_fact *facts, int32_t *n);

/* Element at a point of the last view; false: zero padding. */
bool path_element(const path *p, const int64_t *point, int64_t *out);

void path_print(str *s, const path *p);

#endif
