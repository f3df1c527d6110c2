/*
 * npy.c: reads and writes .npy files; header.c knows their first lines.
 *
 *     bytes in the file, any order  ->  file_array in C order, and back
 *
 * Reading asks for memory only after the header agrees with the size of the
 * file. Writing never leaves a half-written file: the bytes go to a new file
 * beside it, which takes the name only when they are on the disk.
 */
#include "file/file.h"
#include "file/header.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static _Noreturn void fail_errno(
	env *e, const char *rule, const char *path, const char *what, int error)
{
	char why[128];

	if (strerror_r(error, why, sizeof why) != 0)
		snprintf(why, sizeof why, "error %d", error);
	env_fail(e, TN_EIO, rule, (loc){.file = path}, "%s: %s", what, why);
}

/* ---- reading ---- */

static void swap_bytes(void *data, int64_t n, size_t size)
{
	unsigned char *p = data;

	for (int64_t i = 0; i < n; i++, p += size)
		for (size_t k = 0; k < size / 2; k++) {
			unsigned char c = p[k];

			p[k] = p[size - 1 - k];
			p[size - 1 - k] = c;
		}
}

/*
 * out[i, j, k] (C order) = in[i, j, k] (Fortran order: the first axis is the
 * fastest). Walks the output; `from` follows in the input by strides.
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

/* raw: the data as it stands in the file; becomes out->data if it can. */
static void finish(
	arena *a, const npy_header *h, unsigned char *raw, file_array *out)
{
	if (h->is_swapped)
		swap_bytes(raw, h->n_elems, dtype_size(h->dtype));
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

struct open_file {
	env *e;
	const char *path;
	int fd;
};

static void close_file(void *what)
{
	const struct open_file *f = what;

	close(f->fd);
}

/* The arena closes it. Returns its size. */
static size_t open_plain(arena *a, const char *path, struct open_file **out)
{
	struct open_file *f = arena_make(a, struct open_file);
	struct stat st;

	f->e = arena_env(a);
	f->path = path;
	/* not to wait for the other end, should this be a pipe */
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f->fd < 0)
		fail_errno(f->e, "npy.open", path, "cannot be opened", errno);
	arena_defer(a, close_file, f);
	if (fstat(f->fd, &st) != 0)
		fail_errno(f->e, "npy.open", path, "cannot be opened", errno);
	if (!S_ISREG(st.st_mode) || st.st_size < 0)
		env_fail(f->e, TN_EIO, "npy.open", (loc){.file = path},
			"this is not a plain file");
	*out = f;
	return (size_t)st.st_size;
}

static void read_at(
	const struct open_file *f, size_t from, unsigned char *out, size_t n)
{
	while (n > 0) {
		size_t most = n < 1 << 30 ? n : 1 << 30;
		ssize_t got = pread(f->fd, out, most, (off_t)from);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			fail_errno(f->e, "npy.read", f->path, "cannot be read",
				errno);
		if (got == 0)
			env_fail(f->e, TN_EIO, "npy.truncated",
				(loc){.file = f->path},
				"the file became shorter while it was read");
		out += got;
		from += (size_t)got;
		n -= (size_t)got;
	}
}

void file_npy_read(arena *a, const char *path, file_array *out)
{
	arena *scratch = arena_child(a);
	struct open_file *f;
	size_t n_file = open_plain(scratch, path, &f), n_head;
	unsigned char *head, *raw;
	npy_header h;

	n_head = n_file < NPY_PREFIX + NPY_MAX_HEADER
			 ? n_file
			 : NPY_PREFIX + NPY_MAX_HEADER;
	head = arena_alloc(scratch, n_head, 1);
	read_at(f, 0, head, n_head);
	npy_read_header(arena_env(a), path, head, n_head, n_file, &h);
	raw = arena_alloc(needs_turning(&h) ? scratch : a, h.n_bytes, 1);
	read_at(f, h.data_from, raw, h.n_bytes);
	finish(a, &h, raw, out);
	arena_free(scratch);
}

/* ---- writing: no function here throws, so that the file is always closed
 * and removed ---- */

static bool write_all(int fd, const void *data, size_t n)
{
	const unsigned char *p = data;

	while (n > 0) {
		ssize_t done = write(fd, p, n < 1 << 30 ? n : 1 << 30);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return false;
		p += done;
		n -= (size_t)done;
	}
	return true;
}

/* The rename itself reaches the disk with the folder; not all can be synced. */
static void sync_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);

	if (fd < 0)
		return;
	(void)fsync(fd);
	close(fd);
}

/* What the name of the new file has beyond that of the old: two numbers. */
enum { TEMP_ROOM = 40 };

struct part {
	const void *data;
	size_t n_bytes;
};

/* 0, or errno; then nothing has changed. temp: strlen(path) + TEMP_ROOM. */
static int replace(const char *path, const char *folder, char *temp,
	const struct part *parts, int n_parts)
{
	size_t room = strlen(path) + TEMP_ROOM;
	int fd = -1, error = 0;

	for (int i = 0; i < 100 && fd < 0; i++) {
		snprintf(temp, room, "%s.%ld.%d.tmp", path, (long)getpid(), i);
		fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd < 0)
		return errno;
	for (int i = 0; i < n_parts && error == 0; i++)
		if (!write_all(fd, parts[i].data, parts[i].n_bytes))
			error = errno;
	if (error == 0 && fsync(fd) != 0)
		error = errno;
	if (close(fd) != 0 && error == 0)
		error = errno;
	if (error == 0 && rename(temp, path) != 0)
		error = errno;
	if (error != 0)
		unlink(temp);
	else
		sync_folder(folder);
	return error;
}

/* bf16 as f32; all else as it is */
static const void *to_written(arena *a, const file_array *x, int64_t n)
{
	float *wide;

	if (x->dtype != TN_BF16)
		return x->data;
	wide = arena_array(a, float, n);
	for (int64_t i = 0; i < n; i++)
		wide[i] = (float)dtype_load_f64(TN_BF16, x->data, i);
	return wide;
}

void file_npy_write(arena *a, const char *path, const file_array *x)
{
	arena *scratch = arena_child(a);
	env *e = arena_env(a);
	tn_dtype dtype = x->dtype == TN_BF16 ? TN_F32 : x->dtype;
	int64_t n = shape_numel(x->shape, x->rank);
	const char *slash = strrchr(path, '/');
	struct part parts[2];
	struct stat st;
	char *temp, *folder;
	int error;

	if (n < 0)
		env_fail(e, TN_EINVAL, "npy.shape", (loc){.file = path},
			"the shape is negative or has more than 2^48 elements");
	/* a device or a folder is not ours to replace */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		env_fail(e, TN_EIO, "npy.write", (loc){.file = path},
			"there is something that is not a plain file");
	parts[0].data = npy_make_header(
		scratch, dtype, x->rank, x->shape, &parts[0].n_bytes);
	parts[1].data = to_written(scratch, x, n);
	parts[1].n_bytes = (size_t)n * dtype_size(dtype);
	temp = arena_alloc(scratch, strlen(path) + TEMP_ROOM, 1);
	folder = slash == NULL ? arena_strdup(scratch, ".")
			       : arena_strndup(scratch, path,
					 (size_t)(slash - path) + 1);
	error = replace(path, folder, temp, parts, 2);
	if (error != 0)
		fail_errno(e, "npy.write", path, "cannot be written", error);
	arena_free(scratch);
}
