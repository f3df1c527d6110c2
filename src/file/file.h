/*
 * file.h: the door of file/: tensors in files of other programs.
 *
 * Files are hostile: every size is checked against the file before memory is
 * asked for, and what is wrong is thrown with the path and what is accepted.
 *
 *     file_array x;
 *     file_npy_read(a, "x.npy", &x);     x.dtype TN_F32, x.shape [2,3]
 *     file_npy_write(a, "y.npy", &x);
 */
#ifndef FILE_H
#define FILE_H

#include "base/base.h"

typedef struct file_array {
	tn_dtype dtype;
	int32_t rank;
	int64_t shape[TN_MAX_RANK];
	void *data; /* C order, this machine's byte order, aligned to 16 */
} file_array;

/*
 * NumPy's format, versions 1.0 to 3.0, either byte order, C or Fortran order
 * (which is turned into C order); dtypes f2 f4 f8 i1 i2 i4 i8 u1 b1. Any byte
 * but 0 of a b1 is true, and becomes 1.
 *
 * Throws TN_EIO: [npy.open] cannot be opened, is no plain file; [npy.read];
 * [npy.truncated] fewer bytes than the shape says, [npy.size] more.
 * TN_EINVAL: [npy.magic] not this format; [npy.version]; [npy.header] no
 * dictionary of descr, fortran_order and shape; [npy.dtype]; [npy.shape]
 * negative, too large, more than TN_MAX_RANK axes.
 */
void file_npy_read(arena *a, const char *path, file_array *out);

/* The same from n_bytes in memory; name is for messages. */
void file_npy_parse(arena *a, const char *name, const void *bytes,
	size_t n_bytes, file_array *out);

/*
 * Version 1.0, C order. bf16, which the format cannot name, is written as f4.
 * Written under another name beside it, synced and renamed: after a throw
 * (TN_EIO [npy.write]) path is what it was before.
 */
void file_npy_write(arena *a, const char *path, const file_array *x);

#endif
