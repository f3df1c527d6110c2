/* ring.h: moves through memory that all processes share. */
#ifndef COMM_RING_H
#define COMM_RING_H

#include "comm/comm.h"

#define SHARD_RING_MOST 32 /* processes */

/* Bytes of memory, zeroed, for a ring of n processes; 0: none is possible. */
size_t shard_ring_bytes(int64_t n);
struct shard_ring {
	char *memory;
	int64_t rank, n;
	size_t chunk;
	int64_t spins; /* before it yields the processor */
	int64_t pid;
	char *scratch; /* of two chunks; NULL: allocated in each run */
	bool direct; /* processes may read each other's memory */
};
/* Publishes the id of this process. Once all have: can this process read the
 * memory of all others? */
void shard_ring_join(shard_ring *r);
bool shard_ring_can_read(const shard_ring *r);
shard_ring shard_ring_of(void *memory, int64_t rank, int64_t n);
/* A heartbeat of this process; and the time of the last heartbeat of any, in
 * milliseconds of shard_pulse_now. */
void shard_ring_sign(const shard_ring *r, int64_t now);
int64_t shard_ring_last_sign(const shard_ring *r);
/* Notes that this process leaves the mesh. shard_ring_gone: `other` if it has
 * left, or a process that died, or -1; earlier messages may still be there. */
void shard_ring_end(const shard_ring *r);
int64_t shard_ring_gone(const shard_ring *r, int64_t other);

/* ---- pulse.c ------------------------------------------------------------- */

/* A thread that calls beat(arg) several times a second. */
typedef struct shard_pulse shard_pulse;
shard_pulse *shard_pulse_start(env *e, void (*beat)(void *arg), void *arg);
void shard_pulse_stop(shard_pulse *p); /* p may be NULL */
/* Milliseconds of a clock that is the same for all processes of a host. */
int64_t shard_pulse_now(void);
/* Has it worked, or received something, since the last call with *seen? */
bool shard_pulse_lives(shard_link *l, uint64_t *seen);
/* It begins or ends to wait in an operation; a message has arrived. */
void shard_pulse_waits(shard_link *l, bool waits);
void shard_pulse_came(shard_link *l);

/* Elements of an array, and the position of a walk over them. */
typedef struct ring_strip {
	char *base;
	int32_t n; /* runs */
	const shard_run *run;
	int32_t k; /* the current run */
	int64_t done; /* elements of it that are done */
} ring_strip;

typedef struct ring_flow {
	enum { RING_SEND, RING_TAKE, RING_COPY, RING_SUM } kind;
	int32_t lane;
	int64_t peer;
	int64_t n, at; /* elements; and those that are done */
	bool told; /* the receiver knows the address */
	/* RING_SEND with `to`: also copies to there, past the caches; both are
	 * one run */
	ring_strip from, to;
	/* the sum that this flow reads: only its finished elements are valid */
	const struct ring_flow *behind;
	/* RING_SUM: the processes whose parts are added, in order; to.base is dense */
	const int64_t *member;
	int64_t n_members;
	uint64_t *address; /* of the parts that can be read directly; 0: it is sent */
} ring_flow;

/* Are results of this size written past the caches? */
bool shard_ring_streams(int64_t elems, size_t size);
/* Runs all flows; elems: of the whole move, to decide whether it fits a cache. */
void shard_ring_run(const shard_ring *r, arena *a, shard_link *l,
	const shard_elems *of, int64_t elems, int32_t n, ring_flow *flow);

#endif
