/*
 * comm.h: the door of comm/: what passes between processes.
 *
 *   link     messages between processes: threads of one, or those of mpirun
 *   ring     moves through memory that all processes of a host share (ring.h)
 *   compare  do all have the same? Has any failed?
 *   fold     sums of what came
 */
#ifndef COMM_H
#define COMM_H

#include "base/base.h"

#include <stdatomic.h>

typedef struct shard_link shard_link;

/* elements from, from + 1, .. from + n - 1 */
typedef struct shard_run {
	int64_t from, n;
} shard_run;

/* far[i] = far[i] (+) next[i] for n elements */
typedef void shard_combine(void *arg, int64_t n, void *far, const void *next);
/* Elements that are moved. */
typedef struct shard_elems {
	size_t size; /* bytes of one */
	shard_combine *combine; /* parts of a result; NULL: there are none */
	void *arg;
	const char *what; /* for messages */
} shard_elems;

/* sums by a loop; NULL: there is none for it */
shard_combine *shard_fold(int32_t monoid, tn_dtype t);

/* ---- link: between processes (link_threads.c, link_mpi.c) ----------------- */

#define SHARD_PATIENCE 30000

typedef struct shard_ring shard_ring; /* ring.c */

enum { /* collectives of a library, as a yardstick */
	SHARD_RAW_ALL_GATHER,
	SHARD_RAW_ALL_REDUCE,
	SHARD_RAW_REDUCE_SCATTER,
	SHARD_RAW_ALL_TO_ALL
};

/*
 * What a process knows of the others. `what` names the operation under way, for
 * messages and for the check that both sides are in the same one: give it a
 * text that is the same on every process. All throw TN_EPEER [shard.link] on
 * every process, with the process and the operation, when one has ended, fails,
 * or is in another operation; or when no process has shown a sign of life for as
 * long as patience says. A process that is in no operation - it computes,
 * compiles, writes - shows them for as long as it lives; one that waits, only
 * when something comes (pulse.c).
 */
struct shard_link {
	const char *name; /* "threads", "mpi" */
	/* of this process, seen by whoever shows its signs of life */
	atomic_bool waits;		/* in an operation, for others */
	atomic_uint_fast32_t progress;	/* grows when something comes */
	/* milliseconds without a sign of life; 0: SHARD_PATIENCE */
	void (*patience)(shard_link *l, int64_t milliseconds);
	int64_t (*rank)(shard_link *l);
	int64_t (*size)(shard_link *l);
	/* data must stay until wait */
	void (*send)(shard_link *l, env *e, int64_t to, const void *data,
		size_t n, const char *what);
	void (*receive)(shard_link *l, env *e, int64_t from, void *data,
		size_t n, const char *what);
	/* until all sent and expected so far is there */
	void (*wait)(shard_link *l, env *e, const char *what);
	void (*barrier)(shard_link *l, env *e, const char *what);
	void (*broadcast)(shard_link *l, env *e, int64_t from, void *data,
		size_t n, const char *what);
	/* throws [shard.differ] on all unless all have the same value */
	void (*agree)(shard_link *l, env *e, uint64_t value, const char *what);
	/* ends the operations of all others with this text */
	void (*stop)(shard_link *l, const char *text);
	void (*close)(shard_link *l);
	/* a collective of the library behind it, n floats of each process; NULL:
	 * it has none */
	void (*raw)(shard_link *l, int32_t which, const void *in, void *out,
		int64_t n);
	/* memory that all processes share; NULL: there is none */
	shard_ring *ring;
	/* Turn `turn` of waiting there for another process. *state is 0 at
	 * first. Lets others have the processor; throws as wait does. */
	void (*idle)(shard_link *l, env *e, int64_t turn, int64_t *state,
		int64_t other, const char *what);
};

/*
 * By all processes (compare.c): throws [shard.differ] on all of them, unless all
 * have the same hash and words. The words are shown; what is behind the first 55
 * of them counts in the hash alone.
 */
void shard_compare(arena *a, shard_link *l, const char *what, uint64_t hash,
	const char *words);
/*
 * Has any failed? Then all throw what was thrown on the one that failed first:
 * the least `when`, the least process; -1: this one has not failed, and d does
 * not matter.
 */
void shard_fail_together(
	env *e, shard_link *l, int32_t when, const tn_diag *d, const char *what);

/* n processes in one, each a thread of its caller; freed after all are closed */
typedef struct shard_world shard_world;
shard_world *shard_world_new(int64_t n); /* NULL: no memory */
shard_link *shard_world_link(shard_world *w, int64_t rank);
/* The calling thread is the process, and lives as long as it. */
void shard_world_enter(shard_link *l);
void shard_world_free(shard_world *w);
/*
 * The processes that mpirun started; once in a process. patience as in the link.
 * Throws [shard.mpi] if no MPI library can be loaded. Close it before the
 * process ends.
 */
shard_link *shard_mpi_link(arena *a, int64_t patience);

#endif
