/*
 * store.c: the directory of compiled objects.
 *
 * An entry is a file that was written elsewhere in the directory, sealed and
 * renamed into place; so it is whole, or damaged by others. The seal follows
 * the content, where loaders do not look: "TENONSEAL", its size, its SHA-256.
 * The directory must be ours alone (0700): code is loaded from it. If it
 * cannot be had, a private temporary one serves this process.
 *
 * What all entries take is not counted after every compilation, which would
 * cost more than the compilation where there are many. Of the file "added" the
 * size counts: a byte for every page that was put since the last listing, by
 * whichever process. A listing leaves as much room below the limit as may be
 * added before the next one.
 */
#define _GNU_SOURCE /* st_mtim */
#include "run/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "TENONS1\n"
#define SEAL_BYTES (8 + 8 + HASH_BYTES)
#define STALE_SECONDS 86400
#define ADDED "added"
#define PAGE 4096
#define CLAIM_MS 120000

/* ---- files ----------------------------------------------------------- */

static bool write_all(int fd, const void *data, size_t n)
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

static ssize_t read_some(int fd, void *data, size_t n)
{
	ssize_t r;

	do
		r = read(fd, data, n);
	while (r < 0 && errno == EINTR);
	return r;
}

bool write_file(const char *path, const char *data, size_t n_bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool ok;

	if (fd < 0)
		return false;
	ok = write_all(fd, data, n_bytes);
	return (close(fd) == 0) && ok;
}

/* up to `limit` bytes, terminated; NULL if it cannot be read */
char *read_file(arena *a, const char *path, size_t limit, size_t *n_bytes)
{
	char *data = arena_alloc(a, limit + 1, 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t r = 1;

	if (fd < 0)
		return NULL;
	while (n < limit && r > 0) {
		r = read_some(fd, data + n, limit - n);
		n += r > 0 ? (size_t)r : 0;
	}
	close(fd);
	*n_bytes = n;
	return r < 0 ? NULL : data;
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

/* ---- the directory --------------------------------------------------- */

static bool is_ours_alone(const char *dir)
{
	struct stat st;

	return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid() && (st.st_mode & 077) == 0 &&
	       access(dir, R_OK | W_OK | X_OK) == 0;
}

/* mkdir -p; what exists is left as it is */
static void make_path(arena *a, const char *dir)
{
	char *p = arena_strdup(a, dir), *s;

	for (s = p + 1; *s; s++)
		if (*s == '/') {
			*s = 0;
			mkdir(p, 0700);
			*s = '/';
		}
	mkdir(p, 0700);
}

static const char *user_dir(arena *a)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const char *dir;

	if (base && base[0] == '/')
		dir = arena_printf(a, "%s/tenon", base);
	else if (home && home[0] == '/')
		dir = arena_printf(a, "%s/.cache/tenon", home);
	else
		return NULL;
	make_path(a, dir);
	return is_ours_alone(dir) ? dir : NULL;
}

static void remove_private(void *what)
{
	store *s = what;

	/* a forked child shares it, and must leave it to its parent */
	if (!s->has_failure && s->pid == getpid())
		remove_tree(s->dir);
}

/* Deferred before it is made: should memory end in between, it is removed. */
static void open_private(store *s)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = arena_printf(
		s->a, "%s/tenon-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
	char *last = arena_strdup(s->a, "/tmp/tenon-XXXXXX");

	s->is_private = true;
	s->pid = getpid();
	s->dir = dir;
	arena_defer(s->a, remove_private, s);
	if (mkdtemp(dir))
		return;
	s->dir = last;
	if (!mkdtemp(last))
		env_fail(arena_env(s->a), TN_EIO, "run.cache", (loc){0},
			"no directory to compile in: neither the cache nor a "
			"temporary one in %s can be made (%s); set "
			"XDG_CACHE_HOME or TMPDIR",
			tmp ? tmp : "/tmp", strerror(errno));
}

static int64_t limit_of_env(arena *a)
{
	const char *v = getenv("TENON_CACHE_MB");
	char *end;
	long n;

	if (!v || !*v)
		v = "1024";
	errno = 0;
	n = strtol(v, &end, 10);
	if (*end || errno || n < 0 || n > 1 << 30)
		env_fail(arena_env(a), TN_EINVAL, "run.env", (loc){0},
			"TENON_CACHE_MB is \"%s\": a number of megabytes is "
			"accepted, 0 to 2^30",
			v);
	return (int64_t)n << 20;
}

/* A directory of the caller's choice: made, and refused unless ours alone. */
static const char *chosen_dir(arena *a, const char *dir)
{
	dir = arena_strdup(a, dir);
	make_path(a, dir);
	if (!is_ours_alone(dir))
		env_fail(arena_env(a), TN_EIO, "run.cache", (loc){.file = dir},
			"it cannot be the cache: wanted is a directory that "
			"belongs to this user and that no other can write");
	return dir;
}

void store_open(store *s, arena *a, const char *dir)
{
	const char *v = getenv("TENON_CACHE");

	memset(s, 0, sizeof *s);
	s->a = a;
	s->limit_bytes = limit_of_env(a);
	s->keep = !(v && strcmp(v, "off") == 0);
	if (v && *v && s->keep && strcmp(v, "on") != 0)
		env_fail(arena_env(a), TN_EINVAL, "run.env", (loc){0},
			"TENON_CACHE is \"%s\": on and off are accepted", v);
	s->keep = s->keep && !(dir && *dir == '\0');
	if (s->keep)
		s->dir = dir ? chosen_dir(a, dir) : user_dir(a);
	if (!s->dir)
		open_private(s);
}

const char *store_path(const store *s, const char *name)
{
	return arena_printf(s->a, "%s/%s", s->dir, name);
}

static void remove_dir(void *what)
{
	remove_tree(what);
}

const char *store_workdir(store *s)
{
	char *dir = arena_printf(s->a, "%s/work-XXXXXX", s->dir);

	arena_defer(s->a, remove_dir, dir);
	if (!mkdtemp(dir))
		env_fail(arena_env(s->a), TN_EIO, "run.cache", (loc){0},
			"cannot make a directory in %s: %s", s->dir,
			strerror(errno));
	return dir;
}

/* ---- entries --------------------------------------------------------- */

static void put_u64(uint8_t *p, uint64_t v)
{
	int i;

	for (i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

/* hash of the first n bytes of fd; false if they are not all there */
static bool hash_content(int fd, uint64_t n, uint8_t digest[HASH_BYTES])
{
	uint8_t buf[16384];
	sha256 h;

	sha256_start(&h);
	while (n > 0) {
		ssize_t r = read_some(
			fd, buf, n < sizeof buf ? (size_t)n : sizeof buf);

		if (r <= 0)
			return false;
		sha256_add(&h, buf, (size_t)r);
		n -= (uint64_t)r;
	}
	sha256_end(&h, digest);
	return true;
}

static bool make_seal(int fd, uint64_t n, uint8_t seal[SEAL_BYTES])
{
	memcpy(seal, MAGIC, 8);
	put_u64(seal + 8, n);
	return hash_content(fd, n, seal + 16);
}

static bool is_sealed(int fd)
{
	uint8_t want[SEAL_BYTES], have[SEAL_BYTES];
	struct stat st;
	uint64_t n;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
		st.st_size < SEAL_BYTES)
		return false;
	n = (uint64_t)st.st_size - SEAL_BYTES;
	return make_seal(fd, n, want) &&
	       read_some(fd, have, SEAL_BYTES) == SEAL_BYTES &&
	       memcmp(want, have, SEAL_BYTES) == 0;
}

bool store_has(store *s, const char *name)
{
	const char *path = store_path(s, name);
	int fd = s->keep ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	bool ok;

	if (fd < 0)
		return false;
	ok = is_sealed(fd);
	if (ok) {
		futimens(fd, NULL); /* used now: the last to be evicted */
	} else {
		unlink(path);
		s->n_corrupt++;
	}
	close(fd);
	return ok;
}

char *store_read(store *s, const char *name, size_t *n_bytes)
{
	char *data;

	if (!store_has(s, name))
		return NULL;
	data = read_file(s->a, store_path(s, name), 1 << 20, n_bytes);
	if (!data || *n_bytes < SEAL_BYTES)
		return NULL;
	*n_bytes -= SEAL_BYTES;
	data[*n_bytes] = 0;
	return data;
}

static void count_added(store *s, int64_t bytes)
{
	static const char zeros[256];
	int fd = open(store_path(s, ADDED),
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int64_t pages = (bytes + PAGE - 1) / PAGE;

	if (fd < 0)
		return;
	for (; pages > 0; pages -= (int64_t)sizeof zeros)
		write_all(fd, zeros, pages < (int64_t)sizeof zeros
				? (size_t)pages
				: sizeof zeros);
	close(fd);
}

bool store_put(store *s, const char *file, const char *name)
{
	int fd = open(file, O_RDWR | O_APPEND | O_CLOEXEC);
	uint8_t seal[SEAL_BYTES];
	struct stat st;
	bool ok;

	if (fd < 0)
		return false;
	ok = fstat(fd, &st) == 0 && make_seal(fd, (uint64_t)st.st_size, seal) &&
	     write_all(fd, seal, SEAL_BYTES);
	ok = close(fd) == 0 && ok &&
		rename(file, store_path(s, name)) == 0;
	if (ok && s->keep && !s->is_private)
		count_added(s, st.st_size + SEAL_BYTES);
	return ok;
}

/* ---- claims ---------------------------------------------------------- */

typedef struct claim {
	const char *path;
	int fd;
} claim;

/* The file goes first: who waits with it open finds the entry when it looks. */
static void end_claim(void *what)
{
	claim *c = what;

	if (c->fd < 0)
		return;
	unlink(c->path);
	flock(c->fd, LOCK_UN); /* a forked child may have it open too */
	close(c->fd);
}

/* Sleeps longer each time; false: long enough altogether. */
static bool pause_again(int32_t *ms, int64_t *slept)
{
	struct timespec t = {0, *ms * 1000000L};

	nanosleep(&t, NULL);
	*slept += *ms;
	*ms = *ms < 16 ? 2 * *ms : *ms;
	return *slept < CLAIM_MS;
}

bool store_claim(store *s, arena *a, const char *name, bool wait)
{
	claim *c = arena_make(a, claim);
	int32_t ms = 1;
	int64_t slept = 0;
	bool taken;

	if (!s->keep || s->is_private)
		return true;
	c->path = arena_printf(a, "%s/claim-%s", s->dir, name);
	c->fd = -1;
	arena_defer(a, end_claim, c); /* before it is open: memory may end */
	c->fd = open(c->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (c->fd < 0)
		return true; /* then two may make it: no harm */
	do
		taken = flock(c->fd, LOCK_EX | LOCK_NB) != 0 &&
			errno == EWOULDBLOCK;
	while (taken && wait && pause_again(&ms, &slept));
	if (!taken)
		return true;
	close(c->fd);
	c->fd = -1;
	return wait;
}

/* ---- trimming -------------------------------------------------------- */

typedef struct entry {
	const char *name;
	int64_t bytes;
	struct timespec used;
} entry;

static int older(const void *p, const void *q)
{
	const entry *a = p, *b = q;

	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	if (a->used.tv_nsec != b->used.tv_nsec)
		return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* The directory being listed: closed even if memory ends meanwhile. */
static void close_listing(void *what)
{
	DIR **d = what;

	if (*d)
		closedir(*d);
	*d = NULL;
}

/* Bytes that may be added between two listings. */
static int64_t slack(const store *s)
{
	return s->limit_bytes / 16;
}

static bool is_due(const store *s)
{
	struct stat st;

	return s->keep && !s->is_private &&
		stat(store_path(s, ADDED), &st) == 0 &&
		st.st_size * PAGE > slack(s);
}

void store_trim(store *s)
{
	DIR **d;
	VEC(entry) v = {0};
	time_t now = time(NULL);
	int64_t total = 0, most = s->limit_bytes - slack(s);
	struct dirent *e;
	struct stat st;
	int32_t i;

	if (!is_due(s))
		return;
	d = arena_make(s->a, DIR *);
	arena_defer(s->a, close_listing, d);
	*d = opendir(s->dir);
	unlink(store_path(s, ADDED));
	while (*d && (e = readdir(*d))) {
		if (fstatat(dirfd(*d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISDIR(st.st_mode) && !strncmp(e->d_name, "work-", 5) &&
			now - st.st_mtime > STALE_SECONDS)
			remove_tree(store_path(s, e->d_name));
		if (!S_ISREG(st.st_mode))
			continue;
		*vec_push(s->a, &v) = (entry){
			arena_strdup(s->a, e->d_name), st.st_size, st.st_mtim};
		total += st.st_size;
	}
	close_listing(d);
	if (total > most)
		qsort(v.at, (size_t)v.n, sizeof *v.at, older);
	for (i = 0; i < v.n && total > most; i++)
		if (unlink(store_path(s, v.at[i].name)) == 0) {
			total -= v.at[i].bytes;
			s->n_evicted++;
		}
}
