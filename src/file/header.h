/* header.h: the head of an .npy file; private to file/. */
#ifndef FILE_HEADER_H
#define FILE_HEADER_H

#include "base/base.h"

enum {
	NPY_PREFIX = 12,	/* magic, version, length: 10 bytes in 1.0 */
	NPY_MAX_HEADER = 65536, /* bytes of the dictionary */
};

typedef struct npy_header {
	tn_dtype dtype;
	bool is_swapped; /* in the other byte order */
	bool is_fortran;
	int32_t rank;
	int64_t shape[TN_MAX_RANK];
	int64_t n_elems;
	size_t n_bytes;	  /* of the data */
	size_t data_from; /* where in the file it starts */
} npy_header;

/*
 * Reads the head from the first n_have bytes of a file of n_file bytes; n_have
 * is n_file or at least NPY_PREFIX + NPY_MAX_HEADER. Throws all that file.h
 * names; afterwards data_from + n_bytes == n_file.
 */
void npy_read_header(env *e, const char *path, const unsigned char *bytes,
	size_t n_have, size_t n_file, npy_header *out);

/* The head of a file of this type and shape, of n bytes. */
char *npy_make_header(arena *a, tn_dtype dtype, int32_t rank,
	const int64_t *shape, size_t *n);

#endif
