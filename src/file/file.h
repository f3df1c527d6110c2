/*
 * file.h: interface of file/: tensors in files of other programs.
 *
 * Files are untrusted: every size is checked against the file before memory is
 * allocated, and errors have the path and say what is accepted.
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
 * Throws TN_EIO: [npy.open] cannot be opened, is not a file; [npy.read];
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

/* ---- npz: arrays by name ---- */

typedef struct file_named {
	int32_t n;
	const char **name;
	file_array *array;
} file_named;

/*
 * NumPy's archives of .npy files, stored or deflated.
 *
 * Throws TN_EIO: [npz.open] [npz.read] [npz.truncated]; [npz.magic] no archive;
 * [npz.directory] [npz.deflate] [npz.checksum] damaged; [npz.method] another
 * compression, encrypted; [npz.name] a file that is not NAME.npy; [npz.overlap]
 * members that share bytes; [npz.size] deflated ones of more than 4 GiB and 64
 * times the file in all; [npy.*].
 */
void file_npz_read(arena *a, const char *path, file_named *out);
void file_npz_parse(arena *a, const char *path, const void *bytes,
	size_t n_bytes, file_named *out);

/* ---- pictures ---- */

typedef struct file_picture {
	int64_t height, width;
	uint8_t *rgba; /* [height, width, 4] R G B A; in the arena */
} file_picture;

/*
 * The pixels of a file in memory: BMP, PNM (P1 to P6), and where their libraries
 * are installed JPEG, PNG, WebP, TIFF and JPEG 2000. Grey has R = G = B; samples
 * of more or fewer than 8 bits are scaled. false: it cannot be decoded: another
 * format, a kind of it that is not known (JPEG of CMYK), damage.
 *
 * Throws TN_EINVAL: [picture.library] the format's library is not installed,
 * which is named; [picture.size] more than 2^26 pixels.
 */
bool file_picture_parse(
	arena *a, const void *bytes, size_t n, file_picture *out);

/* ---- safetensors: named tensors in one file ---- */

typedef struct file_tensor {
	const char *name;
	tn_dtype dtype;
	int32_t rank;
	int64_t shape[TN_MAX_RANK];
	size_t from, n_bytes; /* where in the file its data lies, when read */
	const void *data;     /* when written; this machine's byte order */
} file_tensor;

typedef struct file_pair {
	const char *key, *value;
} file_pair;

typedef struct file_tensors {
	file_tensor *at; /* in the order of their data */
	int32_t n;
	file_pair *pair; /* what __metadata__ says, in the file's order */
	int32_t n_pairs;
	const char *path;
	const struct disk_file *file;
} file_tensors;

/*
 * The header of a file, every word of it checked before any data is looked at:
 * each tensor's bytes are those of its shape, and together they are the file.
 * Text is valid UTF-8 without NUL. The names of dtypes are those
 * of base/dtype.def. The file stays open as long as the arena lives.
 *
 * Throws TN_EIO: [safetensors.open], [safetensors.read],
 * [safetensors.truncated] fewer bytes than the header says,
 * [safetensors.size] more. TN_EINVAL: [safetensors.header] its length;
 * [safetensors.json] no header of this format; [safetensors.name] one that is
 * there twice; [safetensors.dtype]; [safetensors.shape] too large, more than
 * TN_MAX_RANK axes; [safetensors.offsets] not those of the shape, overlapping,
 * or with a gap.
 */
void file_tensors_open(arena *a, const char *path, file_tensors *out);

/* The key of metadata whose value is the SHA-256 of the file, computed with
 * 64 zeros in place of its digits. */
#define FILE_SUM "tenon.sha256"

/* Can a tensor of a file have this name? */
bool file_tensors_takes(const char *name);

/*
 * Reads the whole of an opened file; false: it has no checksum.
 * Throws TN_EIO [safetensors.checksum] when any byte is not as it was written.
 */
bool file_tensors_check(arena *a, const file_tensors *x);

/* Data of x->at[i], n_bytes of it; any byte but 0 of a BOOL becomes 1. */
void file_tensors_read(const file_tensors *x, int32_t i, void *out);

/*
 * Tensors by size of element, then by name, so that each is aligned; the same
 * tensors give the same bytes. A whole file or none, as file_npy_write. The
 * value of a pair FILE_SUM is computed, whatever it is here.
 * Throws TN_EIO [safetensors.write]; TN_EINVAL [safetensors.name] text that is
 * not UTF-8, or twice the same, or "__metadata__".
 */
void file_tensors_write(arena *a, const char *path, int32_t n,
	const file_tensor *x, int32_t n_pairs, const file_pair *pair);

#endif
