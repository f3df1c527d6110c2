/*
 * disk.h: plain files as bytes, for every format: of file/, and of onnx/.
 *
 * What is wrong is thrown with the rule of the format that asks: format "npy"
 * gives [npy.open], [npy.read], [npy.truncated], [npy.write], all TN_EIO.
 */
#ifndef FILE_DISK_H
#define FILE_DISK_H

#include "base/base.h"

typedef struct disk_file {
	env *e;
	const char *format; /* borrowed */
	const char *path;   /* borrowed */
	size_t n_bytes;
	int fd;
} disk_file;

/* A plain file, opened; the arena closes it. Waits for no pipe. */
disk_file *disk_open(arena *a, const char *format, const char *path);
/* Throws unless all n bytes are there. */
void disk_read(const disk_file *f, size_t from, void *out, size_t n);

typedef struct disk_part {
	const void *data;
	size_t n_bytes;
} disk_part;

/*
 * The parts, one after the other, as the file `path`. They go to a new file
 * beside it, which takes the name only when they are on the disk: after a
 * throw path is what it was before, and nothing is left beside it.
 */
void disk_replace(arena *a, const char *format, const char *path,
	const disk_part *parts, int32_t n_parts);

/* n elements of `size` bytes, from one byte order to the other. */
void disk_swap(void *data, int64_t n, size_t size);

#endif
