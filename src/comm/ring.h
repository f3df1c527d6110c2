/* ring.h: moves through memory that all processes share. */
#ifndef COMM_RING_H
#define COMM_RING_H

#include "comm/comm.h"

#define SHARD_RING_MOST 32 /* processes */

/* bytes of the memory, all 0 at first, for n processes; 0: there is no ring */
size_t shard_ring_bytes(int64_t n);
struct shard_ring {
	char *memory;
	int64_t rank, n;
	size_t chunk;
	int64_t spins; /* before others have the processor */
	int64_t pid;
	char *scratch; /* of two chunks; NULL: it is made for each run */
	bool direct; /* processes may read each other's memory */
};
/* says who this process is; when all have, can it read all others' memory? */
void shard_ring_join(shard_ring *r);
bool shard_ring_can_read(const shard_ring *r);
shard_ring shard_ring_of(void *memory, int64_t rank, int64_t n);
/* Signs of life: that of this process; the last one of any, in milliseconds of
 * the clock of all. */
void shard_ring_sign(const shard_ring *r, int64_t now);
int64_t shard_ring_last_sign(const shard_ring *r);
/* This process has left the mesh. The other one, if it has, or any that died; -1
 * (what it sent before may be there). */
void shard_ring_end(const shard_ring *r);
int64_t shard_ring_gone(const shard_ring *r, int64_t other);

/* ---- pulse.c ------------------------------------------------------------- */

/* A thread that calls beat(arg) a few times a second, whatever the process does. */
typedef struct shard_pulse shard_pulse;
shard_pulse *shard_pulse_start(env *e, void (*beat)(void *arg), void *arg);
void shard_pulse_stop(shard_pulse *p); /* NULL: nothing */
/* milliseconds of a clock that all processes of a host share */
int64_t shard_pulse_now(void);
/* Has it worked, or has anything come, since the last call with *seen? */
bool shard_pulse_lives(shard_link *l, uint64_t *seen);
/* it waits in an operation from now on, or no more; something has come */
void shard_pulse_waits(shard_link *l, bool waits);
void shard_pulse_came(shard_link *l);

/* Elements of an array, and how far they have been walked. */
typedef struct ring_strip {
	char *base;
	int32_t n; /* runs */
	const shard_run *run;
	int32_t k; /* the run at hand */
	int64_t done; /* of it */
} ring_strip;

typedef struct ring_flow {
	enum { RING_SEND, RING_TAKE, RING_COPY, RING_SUM } kind;
	int32_t lane;
	int64_t peer;
	int64_t n, at; /* elements; of them so far */
	bool told; /* the receiver knows where it lies */
	/* RING_SEND to something: also a copy there, past any cache; both are
	 * one run */
	ring_strip from, to;
	/* a sum of which only what is there already may be read */
	const struct ring_flow *behind;
	/* RING_SUM: whose parts, in this order; to.base is dense */
	const int64_t *member;
	int64_t n_members;
	uint64_t *address; /* of the parts of those who tell it; 0: sent */
} ring_flow;

/* Is so much written past the caches? */
bool shard_ring_streams(int64_t elems, size_t size);
/* All flows; elems: of the whole, which says whether it fits a cache. */
void shard_ring_run(const shard_ring *r, arena *a, shard_link *l,
	const shard_elems *of, int64_t elems, int32_t n, ring_flow *flow);

#endif
