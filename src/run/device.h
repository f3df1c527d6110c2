/*
 * device.h: where elements lie and kernels run: the CPU, or a device with memory
 * of its own.
 *
 *   d->put(d, x, host, n)     the device's memory gets n bytes of the host
 *   d->launch(d, &call)       runs one phase of a kernel
 *   d->get(d, host, y, n)     waits for what was launched, and copies back
 *
 * What is called here happens in the order of the calls, but perhaps later, on a
 * device that works beside the host: get and sync wait for it. Memory that alloc
 * returns belongs to an arena; if the device is not the CPU, then its address
 * means nothing to the host.
 *
 * All functions throw: TN_ENOMEM [device.memory] with the sizes, and then all is
 * as it was; TN_EIO [device.launch] a function could not be launched;
 * TN_EIO [device.lost] the device stopped, its memory is gone, and so it is with
 * every later call.
 */
#ifndef RUN_DEVICE_H
#define RUN_DEVICE_H

#include "run/run.h"

typedef struct run_device run_device;
typedef struct run_lists run_lists;

/* A matrix of two bytes an element, of which a phase copies boxes of 64 columns. */
typedef struct run_map {
	void *at;
	int64_t columns, rows;
	int32_t box; /* rows of a box */
} run_map;

/* One phase of a kernel: its chunks 0 .. n_chunks - 1. */
typedef struct run_launch {
	void *fn;	   /* of find */
	const char *name;  /* for messages */
	void *const *p;	   /* addresses of the params */
	int32_t n_params;
	const run_map *map; /* what the phase asks for behind all other params */
	int32_t n_maps;
	void *scratch;
	void *locals;	   /* local memory of each worker, one after the other */
	int64_t n_chunks;
	int32_t n_workers; /* so many have local memory; >= `warps` */
	/* that run a chunk together, and the bytes that they share; 1: a chunk
	 * is run by one worker */
	int32_t warps;
	size_t shared_bytes;
	/* in the device's memory: RUN_NO_ERROR, or the least number of a check
	 * that failed */
	void *err;
} run_launch;
enum { RUN_NO_ERROR = -1 };

/* What a device does again as long as a condition holds, without the host. */
typedef struct run_repeat {
	const void *test; /* it holds if one of n bytes there is not 0 */
	size_t n;
	/* of the device, 0 at first: how often it held; 1: it holds no more */
	int64_t *state;
	int64_t most; /* it holds so often, at most; 1: what follows is a branch */
} run_repeat;
enum {
	RUN_REPEAT_BYTES = 2 * sizeof(int64_t),
	RUN_REPEAT_DEPTH = 4,
	/* What is copied for it each time, at most: a few microseconds, as the host's
	 * answer takes (an estimate). */
	RUN_REPEAT_COPIES = 8 << 20
};

typedef struct run_usage {
	size_t bytes_used, bytes_reserved;
	int64_t n_launches, n_graphs;
} run_usage;

/* ---- what devices of several processes send each other ---- */

typedef struct run_message {
	int32_t peer; /* the other process */
	bool comes;   /* it is received; else sent */
	void *at;     /* in the memory of the device */
	size_t n;
} run_message;

/* What is called while a process waits for others. */
typedef struct run_wait {
	void *arg;
	/* turn: 0, 1 ..; computes: the device has not come to the exchange yet.
	 * Throws if the others are gone. */
	void (*idle)(void *arg, int64_t turn, bool computes);
	void (*done)(void *arg); /* it waits no more */
	/* what was exchanged is broken: the others are told */
	void (*stop)(void *arg, const char *text);
} run_wait;

enum { RUN_PEERS_ID = 128 };

/*
 * How they do: the same functions are called on all of them. All throw TN_EIO
 * [cuda.nccl] with the text of the library, find TN_EINVAL; and what run_wait
 * throws. Once one has thrown, on any process, only leave(d, true) may follow, on
 * all.
 */
typedef struct run_peers {
	/* Loads what is needed, and says its name and version. */
	const char *(*find)(run_device *d);
	/* A new name of the group, for join: made by one process. */
	void (*identify)(run_device *d, char id[RUN_PEERS_ID]);
	void (*join)(run_device *d, const char id[RUN_PEERS_ID], int32_t rank,
		int32_t n, const run_wait *w);
	/* The messages are moved after what was called before, and before what is
	 * called later; the host does not wait for them. Those between two
	 * processes are in the same order on both. */
	void (*exchange)(run_device *d, int32_t n, const run_message *m);
	/* broken: breaks off what is going on; else waits for it. Does not throw. */
	void (*leave)(run_device *d, bool broken);
} run_peers;

struct run_device {
	const char *name; /* "cpu", "cuda:0" */
	bool is_host;	  /* its memory is the host's */
	int32_t dl_type, number; /* as DLPack numbers devices */
	int32_t n_workers; /* that work at the same time, at most */
	size_t local_bytes; /* of all workers of one launch; of one it may be more */
	void *(*alloc)(run_device *d, arena *a, size_t n); /* lives like a */
	void (*put)(run_device *d, void *to, const void *host, size_t n);
	void (*get)(run_device *d, void *host, const void *from, size_t n);
	void (*copy)(run_device *d, void *to, const void *from, size_t n);
	void (*fill)(run_device *d, void *to, int byte, size_t n);
	/* Copies rows of n bytes, which begin every `step` bytes. NULL for the CPU. */
	void (*copy_rows)(run_device *d, void *to, size_t to_step,
		const void *from, size_t from_step, size_t n, size_t rows);
	/* Compiles what is new of n texts; unit[i] belongs to text[i]. The CPU has
	 * a run_jit instead: there load, find and launch are NULL. */
	void (*load)(run_device *d, const char *const *text, int32_t n,
		void **unit);
	void *(*find)(run_device *d, void *unit, const char *name);
	void (*launch)(run_device *d, const run_launch *call);
	void (*sync)(run_device *d);
	/* From begin to finish launches, fills and copies on the device are of one
	 * program: what is between two calls that the host waits for (get, put,
	 * sync, finish) happens as a whole, or fails and has not happened. *lists
	 * is the program's, NULL at first, and lives like a. start: what was called
	 * so far happens, without the host waiting for it; of a program that calls
	 * it very often, the later parts may happen in part and fail. cancel: after
	 * a failure, what has not happened does not. NULL for the CPU. */
	void (*begin)(run_device *d, arena *a, run_lists **lists);
	void (*start)(run_device *d);
	void (*finish)(run_device *d);
	void (*cancel)(run_device *d);
	/* What is called from repeat to repeated happens as long as the condition
	 * holds, which the device reads before each time. Between begin and finish;
	 * without what the host waits for; at most RUN_REPEAT_DEPTH within each other.
	 * no_repeat: why the device cannot, or NULL. watch: if one of n checks (err of
	 * a launch) has failed, then no condition with this state holds any more. NULL
	 * for the CPU. */
	const char *(*no_repeat)(run_device *d);
	void (*repeat)(run_device *d, const run_repeat *r);
	void (*repeated)(run_device *d);
	void (*watch)(run_device *d, const void *err, int32_t n, int64_t *state);
	/* The stream of the driver on which it works; its work waits for what another
	 * stream has to do (follow), or the other way (lead). NULL for the CPU. */
	void *(*stream)(run_device *d);
	void (*follow)(run_device *d, void *stream);
	void (*lead)(run_device *d, void *stream);
	const run_stats *(*stats)(run_device *d); /* NULL: those of the run_jit */
	void (*usage)(run_device *d, run_usage *out);	 /* NULL: not counted */
	const run_peers *peers; /* NULL: it has none */
};

/* The CPU: memory from run_slab. */
extern run_device run_cpu;

#endif
