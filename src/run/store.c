/*
 * store.c: the compiled objects in the cache.
 *
 * An entry is a file that was written under another name, sealed and renamed; so it
 * is complete, unless other programs damaged it. The seal is after the content, which
 * loaders ignore: "TENONSEAL", the size, the SHA-256.
 *
 * The directory may contain other files of the user. So only files whose whole names
 * have one of these forms are removed, counted or overwritten:
 *
 *     64 digits.so      64 digits.gpu        probe-64 digits
 *     claim-64 digits   failed-16 digits.c   failed-16 digits.cu
 *     tenon-added       tenon-work-6 characters/
 *
 * The entries are not listed after every compilation, because that would cost more
 * than the compilation. The size of tenon-added is the number of pages that all
 * processes have added since the last listing. A listing removes enough entries that
 * the limit holds until the next one.
 */
#define _GNU_SOURCE /* st_mtim, memfd_create */
#include "run/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "TENONS1\n"
#define SEAL_BYTES (8 + 8 + HASH_BYTES)
#define STALE_SECONDS 86400
#define ADDED "tenon-added"
#define PAGE 4096
#define CLAIM_MS 30000

/* ---- files ----------------------------------------------------------- */

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

static char *read_at(
	arena *a, int dir, const char *path, size_t limit, size_t *n_bytes)
{
	struct stat st;
	size_t n = 0;
	ssize_t r = 1;
	char *data;
	int fd;

	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return NULL;
	/* a file of the kernel's says that it has no bytes */
	if (S_ISREG(st.st_mode) && st.st_size > 0 &&
		(uint64_t)st.st_size < limit)
		limit = (size_t)st.st_size;
	data = arena_alloc(a, limit + 1, 1); /* may throw: nothing is open */
	fd = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
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

/* up to `limit` bytes, terminated; NULL if it cannot be read */
char *read_file(arena *a, const char *path, size_t limit, size_t *n_bytes)
{
	return read_at(a, AT_FDCWD, path, limit, n_bytes);
}

/* ---- opening --------------------------------------------------------- */

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
			"TENON_CACHE_MB is \"%s\": accepted is a number of "
			"megabytes, 0 to 2^30",
			v);
	return (int64_t)n << 20;
}

void store_open(store *s, arena *a, const char *dir)
{
	const char *v = getenv("TENON_CACHE");

	memset(s, 0, sizeof *s);
	s->a = a;
	s->tmp = arena_child(a);
	s->limit_bytes = limit_of_env(a);
	s->keep = !(v && strcmp(v, "off") == 0);
	if (v && *v && s->keep && strcmp(v, "on") != 0)
		env_fail(arena_env(a), TN_EINVAL, "run.env", (loc){0},
			"TENON_CACHE is \"%s\": accepted are on and off", v);
	s->keep = s->keep && !(dir && *dir == '\0');
	folder_open(s, dir);
}

const char *store_path(const store *s, const char *name)
{
	return arena_printf(s->tmp, "%s/%s", s->dir, name);
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

static int open_entry(const store *s, const char *name)
{
	return openat(s->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

bool store_has(store *s, const char *name)
{
	int fd = s->keep && folder_holds(s) ? open_entry(s, name) : -1;
	bool ok;

	if (fd < 0)
		return false;
	ok = is_sealed(fd);
	if (ok) {
		futimens(fd, NULL); /* used now: the last to be evicted */
	} else {
		unlinkat(s->fd, name, 0);
		s->n_corrupt++;
	}
	close(fd);
	return ok;
}

char *store_read(
	store *s, arena *a, const char *name, size_t limit, size_t *n_bytes)
{
	char *data;

	if (!store_has(s, name))
		return NULL;
	data = read_at(a, s->fd, name, limit, n_bytes);
	if (!data || *n_bytes < SEAL_BYTES)
		return NULL;
	*n_bytes -= SEAL_BYTES;
	data[*n_bytes] = 0;
	return data;
}

static void count_added(store *s, int64_t bytes)
{
	static const char zeros[256];
	int fd = openat(s->fd, ADDED,
		O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
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
	ok = close(fd) == 0 && ok && folder_holds(s) &&
		renameat(AT_FDCWD, file, s->fd, name) == 0;
	if (ok && s->keep && !s->is_private)
		count_added(s, st.st_size + SEAL_BYTES);
	return ok;
}

/*
 * A copy of an entry in memory, and a path to open it, if files of the directory
 * cannot be mapped as code. *fd is the copy, to be closed by the caller; NULL, and
 * -1: impossible.
 */
const char *store_in_memory(store *s, const char *path, int *fd)
{
	char buf[16384], slashes[2 * 32 + 1];
	uint32_t n = ++s->n_in_memory;
	int from = open(path, O_RDONLY | O_CLOEXEC), at = 0, i;
	ssize_t r = -1;

	*fd = from < 0 ? -1 : memfd_create("tenon", MFD_CLOEXEC);
	while (*fd >= 0 && (r = read_some(from, buf, sizeof buf)) > 0)
		if (!write_all(*fd, buf, (size_t)r))
			break;
	if (from >= 0)
		close(from);
	if (r != 0) {
		if (*fd >= 0)
			close(*fd);
		*fd = -1;
		return NULL;
	}
	/*
	 * a loader takes paths of one spelling for one file, and the number of
	 * a closed file returns: so each call spells it in another way
	 */
	for (i = 0; i < 32; i++, n >>= 1) {
		slashes[at++] = '/';
		if (n & 1)
			slashes[at++] = '.';
	}
	slashes[at] = '\0';
	return arena_printf(s->tmp, "/proc%s/self/fd/%d", slashes, *fd);
}

/* ---- claims ---------------------------------------------------------- */

typedef struct claim {
	const store *s;
	const char *name;
	int fd;
} claim;

/* Removes the file first: a process that waits for it then finds the entry. */
static void end_claim(void *what)
{
	claim *c = what;

	if (c->fd < 0)
		return;
	unlinkat(c->s->fd, c->name, 0);
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

/* Is the file open as fd still the one of this name? */
static bool is_named(const store *s, int fd, const char *name)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 &&
	       fstatat(s->fd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* The process whose claim this is: stopped by a signal (or a debugger)? */
static bool is_stopped(int fd)
{
	char text[512], path[64], *p;
	ssize_t n = pread(fd, text, 20, 0);
	int proc;

	if (n <= 0)
		return false;
	text[n] = '\0';
	snprintf(path, sizeof path, "/proc/%ld/stat", strtol(text, NULL, 10));
	proc = open(path, O_RDONLY | O_CLOEXEC);
	if (proc < 0)
		return false;
	n = read_some(proc, text, sizeof text - 1);
	close(proc);
	text[n > 0 ? n : 0] = '\0';
	p = strrchr(text, ')'); /* its name may have any characters */
	return p && p[1] == ' ' && (p[2] == 'T' || p[2] == 't');
}

typedef enum grip { HELD, BUSY, NONE } grip;

/* One try to have the claim. NONE: no claims can be made here. */
static grip try_claim(claim *c)
{
	char text[24];
	int n;

	c->fd = openat(c->s->fd, c->name,
		O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (c->fd < 0)
		return NONE;
	if (flock(c->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		/* who is stopped goes on without one, should it ever go on */
		if (is_stopped(c->fd) && is_named(c->s, c->fd, c->name))
			unlinkat(c->s->fd, c->name, 0);
	} else if (is_named(c->s, c->fd, c->name)) {
		n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
		/* on a full disk it stays empty: others then wait longer */
		(void)write_all(c->fd, text, (size_t)n);
		return HELD;
	}
	close(c->fd); /* another's, or one that has just ended */
	c->fd = -1;
	return BUSY;
}

bool store_claim(store *s, arena *a, const char *key, bool wait)
{
	claim *c = arena_make(a, claim);
	int32_t ms = 1;
	int64_t slept = 0;
	grip g;

	if (!s->keep || s->is_private)
		return true;
	*c = (claim){s, arena_printf(a, "claim-%s", key), -1};
	arena_defer(a, end_claim, c); /* before it is open: memory may end */
	do
		g = try_claim(c);
	while (g == BUSY && wait && pause_again(&ms, &slept));
	/* without one two may make the same: no harm */
	return g != BUSY || wait;
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

/* name: this, then n characters of a set, then that, and nothing else */
static bool has_form(const char *name, const char *begin, size_t n,
	const char *set, const char *end)
{
	size_t n_begin = strlen(begin);

	return strncmp(name, begin, n_begin) == 0 &&
	       strspn(name + n_begin, set) >= n &&
	       strcmp(name + n_begin + n, end) == 0;
}

#define HEX "0123456789abcdef"
#define DECIMAL "0123456789"
#define MKTEMP_SET                                                             \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" DECIMAL

static bool is_claim(const char *name)
{
	return has_form(name, "claim-", HASH_HEX, HEX, "");
}

/* Was the file certainly made by the cache, so that it may be removed? */
static bool is_entry(const char *name)
{
	return has_form(name, "", HASH_HEX, HEX, ".so") ||
	       has_form(name, "", HASH_HEX, HEX, ".gpu") ||
	       has_form(name, "probe-", HASH_HEX, HEX, "") ||
	       has_form(name, "failed-", 16, HEX, ".c") ||
	       has_form(name, "failed-", 16, HEX, ".cu");
}

/* Of those that compilations write into their directory? */
static bool is_work_file(const char *name)
{
	size_t n = strspn(name, DECIMAL);
	const char *end = name + n;

	if (n > 0)
		return !strcmp(end, ".c") || !strcmp(end, ".so") ||
		       !strcmp(end, ".err") || !strcmp(end, ".gpu") ||
		       !strcmp(end, ".cu");
	return !strcmp(name, "macros") || !strcmp(name, "errors") ||
	       !strcmp(name, "answer");
}

/* What is being listed: closed even if memory ends meanwhile. */
static void close_listing(void *what)
{
	DIR **d = what;

	if (*d)
		closedir(*d);
	*d = NULL;
}

static DIR **list(arena *a, int dir, const char *name)
{
	DIR **d = arena_make(a, DIR *);
	int fd;

	arena_defer(a, close_listing, d);
	fd = openat(dir, name,
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	*d = fd < 0 ? NULL : fdopendir(fd);
	if (fd >= 0 && !*d)
		close(fd);
	return d;
}

/* Left by a process that died; one with a foreign file in it stays whole. */
static void remove_work(store *s, const char *name)
{
	DIR **d = list(s->tmp, s->fd, name);
	struct dirent *e;
	bool ours = *d != NULL;

	while (ours && (e = readdir(*d)))
		ours = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		       is_work_file(e->d_name);
	close_listing(d);
	if (ours)
		remove_tree(store_path(s, name));
}

/* Bytes that may be added between two listings. */
static int64_t slack(const store *s)
{
	return s->limit_bytes / 16;
}

static bool is_due(store *s)
{
	struct stat st;

	return s->keep && !s->is_private && folder_holds(s) &&
	       fstatat(s->fd, ADDED, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_size * PAGE > slack(s);
}

static void sort_out(store *s, const char *name, entry *out)
{
	time_t now = time(NULL);
	struct stat st;
	bool stale;

	if (fstatat(s->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	stale = now - st.st_mtime > STALE_SECONDS;
	if (S_ISDIR(st.st_mode) && stale &&
		has_form(name, "tenon-work-", 6, MKTEMP_SET, ""))
		remove_work(s, name);
	if (S_ISREG(st.st_mode) && stale && is_claim(name))
		unlinkat(s->fd, name, 0);
	if (S_ISREG(st.st_mode) && is_entry(name))
		*out = (entry){name, st.st_size, st.st_mtim};
}

void store_trim(store *s)
{
	DIR **d;
	VEC(entry) v = {0};
	int64_t total = 0, most = s->limit_bytes - slack(s);
	struct dirent *e;
	int32_t i;

	if (!is_due(s))
		return;
	d = list(s->tmp, s->fd, ".");
	unlinkat(s->fd, ADDED, 0);
	while (*d && (e = readdir(*d))) {
		entry one = {0};

		sort_out(s, e->d_name, &one);
		if (!one.name)
			continue;
		one.name = arena_strdup(s->tmp, one.name);
		*vec_push(s->tmp, &v) = one;
		total += one.bytes;
	}
	close_listing(d);
	if (total > most)
		qsort(v.at, (size_t)v.n, sizeof *v.at, older);
	for (i = 0; i < v.n && total > most; i++)
		if (unlinkat(s->fd, v.at[i].name, 0) == 0) {
			total -= v.at[i].bytes;
			s->n_evicted++;
		}
}
