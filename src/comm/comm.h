/*
 * comm.h: interface of comm/: communication between processes.
 *
 *   link     messages between processes: threads of one, or those of mpirun
 *   ring     moves through memory that all processes of a host share (ring.h)
 *   compare  do all processes have the same value? has one failed?
 *   fold     adds received elements
 *   carrier  moves memory of devices, which the host does not see
 */
#ifndef COMM_H
#define COMM_H

#include "base/base.h"

#include <stdatomic.h>

typedef struct shard_link shard_link;

/* elements from .. from + n - 1 */
typedef struct shard_run {
	int64_t from, n;
} shard_run;

/* far[i] = far[i] (+) next[i] for n elements */
typedef void shard_combine(void *arg, int64_t n, void *far, const void *next);
/* The elements of a move. */
typedef struct shard_elems {
	size_t size; /* bytes of one */
	shard_combine *combine; /* for partial results; NULL: there are none */
	void *arg;
	const char *what; /* for messages */
} shard_elems;

/* The loop for a monoid and dtype; NULL: there is none. */
shard_combine *shard_fold(int32_t monoid, tn_dtype t);

/* ---- link: between processes (link_threads.c, link_mpi.c) ----------------- */

#define SHARD_PATIENCE 30000

typedef struct shard_ring shard_ring; /* ring.c */

enum { /* collectives of the MPI library, for comparison */
	SHARD_RAW_ALL_GATHER,
	SHARD_RAW_ALL_REDUCE,
	SHARD_RAW_REDUCE_SCATTER,
	SHARD_RAW_ALL_TO_ALL
};

/*
 * The connection of a process to the others. `what` names the operation, for
 * messages and to check that both sides are in the same one: pass the same text
 * on every process. All functions throw TN_EPEER [shard.link] on every process,
 * with the process and the operation, if a process has ended, has failed or is
 * in another operation; or if no process gave a heartbeat for the time that
 * patience sets. A process outside of operations (it computes, compiles, writes)
 * gives heartbeats as long as it lives; one that waits, only when a message
 * arrives (pulse.c).
 */
struct shard_link {
	const char *name; /* "threads", "mpi" */
	/* of this process, for the thread that gives its heartbeats */
	atomic_bool waits;		/* it waits for others in an operation */
	atomic_uint_fast32_t progress;	/* grows when a message arrives */
	/* milliseconds without a heartbeat; 0: SHARD_PATIENCE */
	void (*patience)(shard_link *l, int64_t milliseconds);
	int64_t (*rank)(shard_link *l);
	int64_t (*size)(shard_link *l);
	/* data must stay valid until wait */
	void (*send)(shard_link *l, env *e, int64_t to, const void *data,
		size_t n, const char *what);
	void (*receive)(shard_link *l, env *e, int64_t from, void *data,
		size_t n, const char *what);
	/* waits until all sends and receives so far are complete */
	void (*wait)(shard_link *l, env *e, const char *what);
	void (*barrier)(shard_link *l, env *e, const char *what);
	void (*broadcast)(shard_link *l, env *e, int64_t from, void *data,
		size_t n, const char *what);
	/* throws [shard.differ] on all processes unless all have the same value */
	void (*agree)(shard_link *l, env *e, uint64_t value, const char *what);
	/*
	 * Of something that all processes call, with its number: warn tells the
	 * others that this process has failed in it, or in a later one; warned: has
	 * another one? They do not wait, and the link can still be used.
	 */
	void (*warn)(shard_link *l, int64_t number);
	bool (*warned)(shard_link *l, int64_t number);
	/* makes the operations of all others fail with this text */
	void (*stop)(shard_link *l, const char *text);
	void (*close)(shard_link *l);
	/* a collective of the MPI library, with n floats of each process; NULL:
	 * there is none */
	void (*raw)(shard_link *l, int32_t which, const void *in, void *out,
		int64_t n);
	/* memory that all processes share, or NULL */
	shard_ring *ring;
	/* Iteration `turn` of a wait for process `other` in the ring; *state is 0
	 * at first. Yields the processor; throws as wait does. */
	void (*idle)(shard_link *l, env *e, int64_t turn, int64_t *state,
		int64_t other, const char *what);
};

/*
 * All processes call it (compare.c): throws [shard.differ] on all of them unless
 * all have the same hash and words. The message shows the words; those after the
 * first 55 are compared only by the hash.
 */
void shard_compare(arena *a, shard_link *l, const char *what, uint64_t hash,
	const char *words);
/*
 * All processes call it: if one has failed, all throw the diagnosis of the first
 * one that failed, which has the smallest `when`, then the smallest number.
 * when -1: this process has not failed; d is ignored.
 */
void shard_fail_together(
	env *e, shard_link *l, int32_t when, const tn_diag *d, const char *what);

/* ---- carrier: between devices (carrier.c) --------------------------------- */

/* Memory of a device that goes to another process, or comes from it. */
typedef struct shard_load {
	int64_t peer;
	bool comes;
	void *at;
	size_t n;
} shard_load;

enum { SHARD_CARRIER_ID = 128, SHARD_CARRIER_WHY = 1024 };

/*
 * Moves memory of devices between all processes of a link. Its functions throw what
 * they like; find: what is missing. While they wait for other processes they call
 * shard_carrier_idle, and shard_carrier_done in the end.
 */
typedef struct shard_carrier {
	void *arg;
	const char *(*find)(void *arg); /* "NCCL 2.28.9" */
	void (*identify)(void *arg, char id[SHARD_CARRIER_ID]);
	void (*join)(void *arg, const char id[SHARD_CARRIER_ID], int64_t rank,
		int64_t n);
	/* of loads between two processes, both have the same order */
	void (*exchange)(void *arg, int32_t n, const shard_load *load);
	/* broken: at once; else what is on its way arrives. Does not throw. */
	void (*leave)(void *arg, bool broken);
	/* of carrier.c */
	enum {
		SHARD_CARRIER_CLOSED,
		SHARD_CARRIER_OPEN,
		SHARD_CARRIER_MISSING
	} state;
	const char *name; /* what find said; or NULL */
	char why[SHARD_CARRIER_WHY]; /* it is MISSING */
	bool together; /* all processes have thrown the same, and can go on */
	env *e;
	shard_link *link;
	char what[88]; /* the last operation */
	int64_t n_calls, began, state_of_idle;
	bool is_calling;
} shard_carrier;

/* All processes call it: opens the carrier, unless it is open. false: one process
 * lacks something, which `why` says. */
bool shard_carrier_open(env *e, shard_link *l, shard_carrier *c);
/*
 * All processes call it, with an open carrier: calls fn(arg), which makes ready what
 * it needs and calls c->exchange, perhaps without loads. If it throws on one process,
 * all throw the same, the carrier is closed on all, and can be opened again if
 * c->together.
 */
void shard_carry(env *e, shard_link *l, shard_carrier *c, void (*fn)(void *arg),
	void *arg, const char *what);
void shard_carrier_close(shard_carrier *c);
/* turn: 0, 1 .. of a wait; computes: this process has work of its own. Throws if
 * another process is gone. */
void shard_carrier_idle(shard_carrier *c, int64_t turn, bool computes);
void shard_carrier_done(shard_carrier *c);

/* n processes that are threads of one; free it after all links are closed */
typedef struct shard_world shard_world;
shard_world *shard_world_new(int64_t n); /* NULL: no memory */
shard_link *shard_world_link(shard_world *w, int64_t rank);
/* The calling thread is the process until it ends. */
void shard_world_enter(shard_link *l);
void shard_world_free(shard_world *w);
/*
 * The link between the processes that mpirun started; call it once in a process,
 * and close it before the process ends. patience: see shard_link. Throws
 * [shard.mpi] if no MPI library can be loaded.
 */
shard_link *shard_mpi_link(arena *a, int64_t patience);

#endif
