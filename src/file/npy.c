/*
 * npy.c: reads and writes .npy files; header.c reads and writes their headers.
 *
 *     bytes in the file, any order  ->  file_array in C order, and back
 *
 * Reading allocates memory only after the header has been compared with the
 * size of the file. Writing never leaves an incomplete file (disk.c).
 */
#include "file/disk.h"
#include "file/file.h"
#include "file/header.h"

/* ---- reading ---- */

/*
 * out[i, j, k] (C order) = in[i, j, k] (Fortran order: the first axis is the
 * fastest). Walks the output; `from` is the offset of the same element in the
 * input.
 */
static void to_c_order(void *out, const void *in, const npy_header *h)
{
	size_t size = dtype_size(h->dtype), from = 0;
	size_t stride[TN_MAX_RANK];
	int64_t at[TN_MAX_RANK] = {0};
	unsigned char *o = out;
	const unsigned char *p = in;

	for (int32_t k = 0; k < h->rank; k++)
		stride[k] = k == 0 ? size
				   : stride[k - 1] * (size_t)h->shape[k - 1];
	for (int64_t n = 0; n < h->n_elems; n++, o += size) {
		memcpy(o, p + from, size);
		for (int32_t k = h->rank - 1; k >= 0; k--) {
			from += stride[k];
			if (++at[k] < h->shape[k])
				break;
			from -= stride[k] * (size_t)h->shape[k];
			at[k] = 0;
		}
	}
}

static bool needs_turning(const npy_header *h)
{
	return h->is_fortran && h->rank > 1;
}

/*
 * Converts the data of the file, raw; uses it in place as out->data if
 * possible.
 */
static void finish(
	arena *a, const npy_header *h, unsigned char *raw, file_array *out)
{
	if (h->is_swapped)
		disk_swap(raw, h->n_elems, dtype_size(h->dtype));
	if (h->dtype == TN_BOOL)
		for (int64_t i = 0; i < h->n_elems; i++)
			raw[i] = raw[i] != 0;
	out->data = raw;
	if (needs_turning(h)) {
		out->data = arena_alloc(a, h->n_bytes, 1);
		to_c_order(out->data, raw, h);
	}
	out->dtype = h->dtype;
	out->rank = h->rank;
	memcpy(out->shape, h->shape, sizeof out->shape);
}

void file_npy_parse(arena *a, const char *name, const void *bytes,
	size_t n_bytes, file_array *out)
{
	const unsigned char *p = bytes;
	npy_header h;

	npy_read_header(arena_env(a), name, p, n_bytes, n_bytes, &h);
	finish(a, &h, arena_copy(a, p + h.data_from, h.n_bytes), out);
}

void file_npy_read(arena *a, const char *path, file_array *out)
{
	arena *scratch = arena_child(a);
	const disk_file *f = disk_open(scratch, "npy", path);
	size_t n_file = f->n_bytes, n_head;
	unsigned char *head, *raw;
	npy_header h;

	n_head = n_file < NPY_PREFIX + NPY_MAX_HEADER
			 ? n_file
			 : NPY_PREFIX + NPY_MAX_HEADER;
	head = arena_alloc(scratch, n_head, 1);
	disk_read(f, 0, head, n_head);
	npy_read_header(arena_env(a), path, head, n_head, n_file, &h);
	raw = arena_alloc(needs_turning(&h) ? scratch : a, h.n_bytes, 1);
	disk_read(f, h.data_from, raw, h.n_bytes);
	finish(a, &h, raw, out);
	arena_free(scratch);
}

/* ---- writing ---- */

/* The type to write: bf16, which NumPy does not have, is written as f32 .. */
static tn_dtype written(tn_dtype t)
{
	return t == TN_F16 ? t : dtype_wide(t);
}

/* The data to write: in that type. */
static const void *to_written(arena *a, const file_array *x, int64_t n)
{
	tn_dtype t = written(x->dtype);
	void *wide;

	if (t == x->dtype)
		return x->data;
	wide = arena_alloc(a, (size_t)n + 1, dtype_size(t));
	for (int64_t i = 0; i < n; i++)
		dtype_store_f64(
			t, wide, i, dtype_load_f64(x->dtype, x->data, i));
	return wide;
}

void file_npy_write(arena *a, const char *path, const file_array *x)
{
	arena *scratch = arena_child(a);
	env *e = arena_env(a);
	tn_dtype dtype = written(x->dtype);
	int64_t n = shape_numel(x->shape, x->rank);
	disk_part parts[2];

	if (n < 0)
		env_fail(e, TN_EINVAL, "npy.shape", (loc){.file = path},
			"the shape is negative or has more than 2^48 elements");
	parts[0].data = npy_make_header(
		scratch, dtype, x->rank, x->shape, &parts[0].n_bytes);
	parts[1].data = to_written(scratch, x, n);
	parts[1].n_bytes = (size_t)n * dtype_size(dtype);
	disk_replace(scratch, "npy", path, parts, 2);
	arena_free(scratch);
}
