/*
 * fuse_index.h: where in a private buffer of a kernel an element of its tensor is.
 */
#ifndef TEST_FUSE_INDEX_H
#define TEST_FUSE_INDEX_H

#include "fuse/fuse.h"

/* Subscript in a private buffer of element `at`, a flat address of the tensor
 * over the vars. */
const ix_form *fuse_buf_index(fuse_plan *p, const fuse_kernel *k,
	const fuse_buf *b, const ix_form *at);

#endif
