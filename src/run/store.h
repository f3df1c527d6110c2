/*
 * store.h: the cache of compiled kernels; private to run/ and the folders in it.
 */
#ifndef RUN_STORE_H
#define RUN_STORE_H

#include "run/run.h"

enum { FOLDER_ROOM = 4096 };

typedef struct store {
	arena *a;
	arena *tmp;	  /* of the compilation in progress, then cleared */
	const char *dir;  /* of the objects, absolute */
	int fd;		  /* the same, open */
	char dir_room[FOLDER_ROOM];
	const char *spare; /* NULL; where is worked when dir is full */
	bool is_private;  /* ours alone; removed at the end */
	bool keep;	  /* false: nothing is looked up (TENON_CACHE=off) */
	bool noexec;	  /* nothing in dir can be mapped as code */
	bool has_failure; /* dir contains a rejected source: do not remove it */
	int64_t limit_bytes;
	int64_t n_corrupt, n_evicted;
	uint32_t n_in_memory;
	char note[1024]; /* why it is not what was asked for, or empty */
} store;

/* ---- folder ---------------------------------------------------------- */

/*
 * Finds or makes the directory; dir as run_jit_new has it. Throws TN_EIO
 * [run.cache] when none can be.
 */
void folder_open(store *s, const char *dir);
/* Is it still ours alone? */
bool folder_holds(store *s);
/* Sees that dir is full: from here on work is done in `spare`. */
bool folder_is_full(store *s);
/* A new empty directory, for one batch of compilations. */
const char *store_workdir(store *s);
void remove_tree(const char *dir); /* one level of files, and dir */
bool write_all(int fd, const void *data, size_t n);
/* Only the first is kept. */
void store_note(store *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- store ----------------------------------------------------------- */

/* The environment, then folder_open. */
void store_open(store *s, arena *a, const char *dir);
/* "DIR/name", in tmp */
const char *store_path(const store *s, const char *name);
/* An object that was sealed and is whole? Damaged ones are removed. */
bool store_has(store *s, const char *name);
/* Appends the seal to the file and renames it into place. */
bool store_put(store *s, const char *file, const char *name);
/* Bytes of a sealed entry without its seal, or NULL; in all `limit` at most. */
char *store_read(
	store *s, arena *a, const char *name, size_t limit, size_t *n_bytes);
/* The file, in memory: what to load instead; NULL, or *fd is to be closed. */
const char *store_in_memory(store *s, const char *path, int *fd);
/* Removes oldest entries beyond the limit, and remains of dead processes. */
void store_trim(store *s);
/*
 * Claims the entry of this key until `a` ends; false: another process or thread
 * has claimed it. With `wait`, first waits until that one ends, fails, is found
 * stopped, or takes too long.
 */
bool store_claim(store *s, arena *a, const char *key, bool wait);
double now_ms(void); /* monotonic */
bool write_file(const char *path, const char *data, size_t n_bytes);
char *read_file(arena *a, const char *path, size_t limit, size_t *n_bytes);

#endif
