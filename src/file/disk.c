/*
 * disk.c: opens and reads regular files, and replaces them as a whole.
 *
 *     disk_replace(a, "npy", "x.npy", parts, 2)
 *
 *     x.npy.77.0.tmp   written, synced, closed
 *     x.npy            the new file renamed; after an error the old one
 */
#include "file/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static _Noreturn void fail(env *e, const char *format, const char *what,
	const char *path, const char *why)
{
	char rule[40];

	snprintf(rule, sizeof rule, "%s.%s", format, what);
	env_fail(e, TN_EIO, rule, (loc){.file = path}, "%s", why);
}

static _Noreturn void fail_errno(env *e, const char *format, const char *what,
	const char *path, const char *text, int error)
{
	char why[128], whole[256];

	if (strerror_r(error, why, sizeof why) != 0)
		snprintf(why, sizeof why, "error %d", error);
	snprintf(whole, sizeof whole, "%s: %s", text, why);
	fail(e, format, what, path, whole);
}

/* ---- reading ---- */

static void close_file(void *what)
{
	const disk_file *f = what;

	close(f->fd);
}

disk_file *disk_open(arena *a, const char *format, const char *path)
{
	disk_file *f = arena_make(a, disk_file);
	struct stat st;

	f->e = arena_env(a);
	f->format = format;
	f->path = path;
	/* if this is a pipe, do not wait for its other end */
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f->fd < 0)
		fail_errno(f->e, format, "open", path, "cannot be opened",
			errno);
	arena_defer(a, close_file, f);
	if (fstat(f->fd, &st) != 0)
		fail_errno(f->e, format, "open", path, "cannot be opened",
			errno);
	if (!S_ISREG(st.st_mode) || st.st_size < 0)
		fail(f->e, format, "open", path, "this is not a plain file");
	f->n_bytes = (size_t)st.st_size;
	return f;
}

void disk_read(const disk_file *f, size_t from, void *out, size_t n)
{
	unsigned char *to = out;

	while (n > 0) {
		size_t most = n < 1 << 30 ? n : 1 << 30;
		ssize_t got = pread(f->fd, to, most, (off_t)from);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			fail_errno(f->e, f->format, "read", f->path,
				"cannot be read", errno);
		if (got == 0)
			fail(f->e, f->format, "truncated", f->path,
				"the file became shorter while it was read");
		to += got;
		from += (size_t)got;
		n -= (size_t)got;
	}
}

void disk_swap(void *data, int64_t n, size_t size)
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
 * ---- writing: only the last function throws, so that the file is always
 * closed and removed ----
 */

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

/*
 * Writes the rename to the disk. Errors are ignored: not every folder can be
 * synced.
 */
static void sync_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);

	if (fd < 0)
		return;
	(void)fsync(fd);
	close(fd);
}

/* Bytes that the temporary name adds to the name: two numbers. */
enum { TEMP_ROOM = 40 };

/*
 * Returns 0 or errno; after an error nothing has changed. temp: strlen(path) +
 * TEMP_ROOM.
 */
static int replace(const char *path, const char *folder, char *temp,
	const disk_part *parts, int32_t n_parts)
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
	for (int32_t i = 0; i < n_parts && error == 0; i++)
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

void disk_replace(arena *a, const char *format, const char *path,
	const disk_part *parts, int32_t n_parts)
{
	arena *scratch = arena_child(a);
	env *e = arena_env(a);
	const char *slash = strrchr(path, '/');
	struct stat st;
	char *temp, *folder;
	int error;

	/* do not replace a device or a folder */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		fail(e, format, "write", path,
			"there is something that is not a plain file");
	temp = arena_alloc(scratch, strlen(path) + TEMP_ROOM, 1);
	folder = slash == NULL ? arena_strdup(scratch, ".")
			       : arena_strndup(scratch, path,
					 (size_t)(slash - path) + 1);
	error = replace(path, folder, temp, parts, n_parts);
	if (error != 0)
		fail_errno(e, format, "write", path, "cannot be written",
			error);
	arena_free(scratch);
}
