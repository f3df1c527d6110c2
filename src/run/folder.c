/*
 * folder.c: finds the directory of compiled objects, and checks that it is safe.
 *
 * Code is loaded from it. So it must belong to the user and be closed to others
 * (0700), and others must not be able to replace it: each directory above it belongs
 * to the user or the system, and others cannot write to it, or cannot replace what
 * is there (the sticky bit of /tmp). The directory is opened once, and its files
 * through that descriptor, so that the checks hold for what is used.
 *
 * If the directory cannot be used, or is full, private temporary ones are used, and
 * the store's note says so.
 */
#define _GNU_SOURCE /* ST_NOEXEC */
#include "run/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Bytes that a compilation may write besides its object. */
#define ROOM_BYTES (256 << 10)

bool write_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n > 0) {
		ssize_t w = write(fd, p, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return false;
		p += w;
		n -= (size_t)w;
	}
	return true;
}

void remove_tree(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	if (d) {
		while ((e = readdir(d)))
			if (strcmp(e->d_name, ".") != 0 &&
				strcmp(e->d_name, "..") != 0)
				unlinkat(dirfd(d), e->d_name, 0);
		closedir(d);
	}
	rmdir(dir);
}

static void remove_dir(void *what)
{
	remove_tree(what);
}

/* ---- whose it is ----------------------------------------------------- */

/* NULL: it belongs to the user alone; else the reason */
static const char *not_ours(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return strerror(errno);
	if (st.st_uid != geteuid())
		return "it belongs to another user";
	if (st.st_mode & 077)
		return "other users have access to it (it must have mode 0700)";
	if (faccessat(fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0)
		return strerror(errno);
	return NULL;
}

/*
 * Checks that only the user and the system can replace dir; NULL: yes, else the
 * reason. The system is root, or the owner of / if root has no number (in user
 * namespaces). `dir` is absolute and without links.
 */
static const char *parents_open(arena *a, const char *dir)
{
	char *p = arena_strdup(a, dir), *s;
	struct stat top, st;

	if (stat("/", &top) != 0)
		return strerror(errno);
	for (s = strrchr(p, '/'); s; s = strrchr(p, '/')) {
		*s = 0;
		if (stat(*p ? p : "/", &st) != 0)
			return strerror(errno);
		if (st.st_uid != 0 && st.st_uid != geteuid() &&
			st.st_uid != top.st_uid)
			return arena_printf(a, "%s, above it, belongs to "
					       "another user",
				*p ? p : "/");
		if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX))
			return arena_printf(a, "every user can write in %s, "
					       "above it",
				*p ? p : "/");
	}
	return NULL;
}

/* mkdir -p; does not change existing directories. 0, or errno of the last. */
static int make_path(arena *a, const char *dir)
{
	char *p = arena_strdup(a, dir), *s;
	int error = 0;

	for (s = p + 1;; s++) {
		char was = *s;

		if (was && was != '/')
			continue;
		*s = 0;
		if (mkdir(p, 0700) == 0)
			error = 0;
		else if (error == 0 || errno != ENOENT)
			error = errno == EEXIST ? 0 : errno;
		*s = was;
		if (!was)
			return error;
	}
}

static void close_dir(void *what)
{
	store *s = what;

	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/* Uses dir, which is created if needed, for the store; NULL, or the reason why not. */
static const char *take_dir(store *s, const char *dir)
{
	const char *why;
	char *real;
	int error;

	error = make_path(s->tmp, dir);
	s->fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return "it is not a directory, or it is a link to one";
	if (s->fd < 0)
		return strerror(errno == ENOENT && error ? error : errno);
	real = realpath(dir, NULL);
	if (real && strlen(real) < FOLDER_ROOM)
		memcpy(s->dir_room, real, strlen(real) + 1);
	why = !real ? strerror(errno)
		: strlen(real) >= FOLDER_ROOM ? "its path is too long"
		: not_ours(s->fd);
	free(real);
	if (!why)
		why = parents_open(s->tmp, s->dir_room);
	if (why)
		close_dir(s);
	else
		s->dir = s->dir_room;
	return why;
}

bool folder_holds(store *s)
{
	const char *why = s->fd < 0 ? "it cannot be opened" : not_ours(s->fd);

	if (!why)
		return true;
	store_note(s, "the cache %s is not used any more: %s", s->dir, why);
	return false;
}

/* ---- private ones ---------------------------------------------------- */

/* Can ROOM_BYTES be written to a new file there? If not, errno is the reason. */
static bool has_room(const char *dir)
{
	static const char zeros[4096];
	char path[FOLDER_ROOM + 8];
	int fd, error, n = 0;

	snprintf(path, sizeof path, "%s/room", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	errno = 0;
	for (; n < ROOM_BYTES; n += (int)sizeof zeros)
		if (!write_all(fd, zeros, sizeof zeros))
			break;
	error = errno ? errno : ENOSPC;
	if (close(fd) != 0 && n >= ROOM_BYTES) {
		error = errno;
		n = 0;
	}
	unlink(path);
	errno = error;
	return n >= ROOM_BYTES;
}

/* A directory that this process made and removes. */
typedef struct own_dir {
	store *s;
	const char *path;
	int64_t pid;
} own_dir;

static void remove_own(void *what)
{
	own_dir *o = what;

	/* a forked child shares it, and must leave it to its parent */
	if (o->path && !o->s->has_failure && o->pid == getpid())
		remove_tree(o->path);
}

/* Can only the user and the system replace this directory? */
static bool is_safe(arena *a, const char *dir)
{
	char *real = arena_alloc(a, PATH_MAX, 1); /* parents_open may throw */

	return realpath(dir, real) != NULL && !parents_open(a, real);
}

/* NULL: impossible. Its removal is deferred before it is created, because memory may
 * run out in between. */
static const char *make_own(store *s)
{
	const char *tmp = getenv("TMPDIR");
	const char *base[] = {tmp && tmp[0] == '/' ? tmp : "/tmp", "/tmp",
		"/var/tmp", "/dev/shm"};
	own_dir *o = arena_make(s->a, own_dir);
	char *path[4];
	int i;

	for (i = 0; i < 4; i++)
		path[i] = arena_printf(s->a, "%s/tenon-XXXXXX", base[i]);
	*o = (own_dir){s, NULL, getpid()};
	arena_defer(s->a, remove_own, o);
	for (i = 0; i < 4; i++) {
		if (strlen(path[i]) >= FOLDER_ROOM || !mkdtemp(path[i]))
			continue;
		o->path = path[i]; /* from here on memory may end */
		if (is_safe(s->tmp, path[i]) && has_room(path[i]))
			return path[i];
		o->path = NULL;
		remove_tree(path[i]);
	}
	return NULL;
}

static const char *need_own(store *s)
{
	const char *tmp = getenv("TMPDIR"), *dir = make_own(s);

	if (!dir)
		env_fail(arena_env(s->a), TN_EIO, "run.cache", (loc){0},
			"there is no directory to compile in: none with free "
			"space can be made in %s, /tmp, /var/tmp or /dev/shm; "
			"set TMPDIR",
			tmp ? tmp : "TMPDIR");
	return dir;
}

static void open_private(store *s)
{
	s->is_private = true;
	s->dir = need_own(s);
	s->fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* ---- opening --------------------------------------------------------- */

void store_note(store *s, const char *fmt, ...)
{
	va_list ap;

	if (s->note[0])
		return; /* keep the first note */
	va_start(ap, fmt);
	text_vprint(s->note, sizeof s->note, fmt, ap);
	va_end(ap);
}

static const char *user_dir(arena *a)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (base && base[0] == '/')
		return arena_printf(a, "%s/tenon", base);
	if (home && home[0] == '/')
		return arena_printf(a, "%s/.cache/tenon", home);
	return NULL;
}

/* dir NULL: the user's directory, or a private one; else dir, or an error. */
static void open_kept(store *s, const char *dir)
{
	const char *path = dir ? dir : user_dir(s->tmp), *why;

	if (!path) {
		store_note(s, "there is no cache: neither XDG_CACHE_HOME nor "
			      "HOME names an absolute path");
		return;
	}
	why = take_dir(s, path);
	if (why && dir)
		env_fail(arena_env(s->a), TN_EIO, "run.cache",
			(loc){.file = arena_strdup(s->a, dir)},
			"it cannot be the cache: %s; the cache must be a "
			"directory that belongs to this user and that no "
			"other user can write or replace",
			why);
	if (why)
		store_note(s, "the cache %s is not used: %s; compiled kernels "
			      "are kept only until the process ends",
			path, why);
}

void folder_open(store *s, const char *dir)
{
	struct statvfs v;

	s->fd = -1;
	arena_defer(s->a, close_dir, s);
	if (s->keep)
		open_kept(s, dir);
	if (!s->dir)
		open_private(s);
	s->noexec = fstatvfs(s->fd, &v) == 0 && (v.f_flag & ST_NOEXEC);
}

/* ---- work ------------------------------------------------------------ */

bool folder_is_full(store *s)
{
	if (s->spare || has_room(s->dir))
		return false;
	store_note(s, "nothing can be written to the cache %s (%s): compiled "
		      "kernels are kept only until the process ends",
		s->dir, strerror(errno));
	s->spare = need_own(s);
	return true;
}

const char *store_workdir(store *s)
{
	const char *base;
	char *dir;

	(void)folder_is_full(s);
	base = s->spare ? s->spare : s->dir;
	dir = arena_printf(s->tmp, "%s/tenon-work-XXXXXX", base);
	arena_defer(s->tmp, remove_dir, dir);
	if (!mkdtemp(dir))
		env_fail(arena_env(s->a), TN_EIO, "run.cache", (loc){0},
			"cannot make a directory in %s: %s", base,
			strerror(errno));
	return dir;
}
