/*
 * fake_local.h: what the files of the driver without a GPU share.
 */
#ifndef FAKE_LOCAL_H
#define FAKE_LOCAL_H

#include "fake_cuda.h"

#define EXPORT __attribute__((visibility("default")))
#define PAGE ((size_t)4096)
enum {
	OK = 0,
	INVALID = 1,
	NO_MEMORY = 2,
	NO_DEVICE = 100,
	BAD_DEVICE = 101,
	BAD_IMAGE = 200,
	NOT_FOUND = 500,
	NOT_READY = 600,
	BAD_CAPTURE = 901,
	BAD_UPDATE = 910,
	ILLEGAL = 700,
	NO_RESOURCES = 701,
	BAD_FILE = 301,
	MAX_PARAMS = 256,
	MAX_MAPS = 8
};

typedef unsigned long long address;
typedef int result;

typedef struct memory {
	struct memory *next;
	char *at;
	size_t n, mapped;
} memory;

typedef struct op {
	enum {
		PUT, GET, COPY, ROWS, FILL, LAUNCH, RECORD, WAIT, CALL,
		ASSIGN, IF, WHILE /* ASSIGN: a handle gets its first value */
	} kind;
	struct op *next;
	char *to;
	const char *from;
	size_t n, rows, to_step, from_step;
	int byte;
	fake_call *call;
	void *arg;
	fake_block *fn;
	unsigned grid, block, shared;
	size_t room; /* of the emulator */
	const int *bytes; /* of each of n_params */
	int n_params;
	uint64_t param[MAX_PARAMS]; /* one after the other */
	struct event *event;
	struct stream *of; /* WAIT: the stream that records the event .. */
	int64_t at;	   /* .. so many times */
	struct graph *body; /* IF, WHILE */
	uint64_t handle;    /* and ASSIGN */
} op;

typedef struct graph {
	op *first, **last;
	bool is_refused; /* what was recorded has failed */
	op *tail;	 /* of a graph that is made node by node */
	bool has_exec;	 /* .. and has been made an executable one */
} graph;

typedef struct stream {
	struct stream *next;
	op *first, **last;
	int64_t n_calls; /* in the queue */
	graph *recorded; /* or NULL */
} stream;

typedef struct event {
	stream *of; /* NULL: not recorded, or done */
	int64_t n;  /* records in queues */
	int64_t n_recorded, n_done; /* since it was made */
} event;

extern fake_cuda_state fake_state;

_Noreturn void fake_stop(const char *what);
/* A call of the user, one at a time; what it returns. */
result fake_enter(void);
result fake_leave(result r);
/* Runs the stream until the event is done; NULL: all of it. */
result fake_drain(stream *s, const event *until);
/* .. or until something waits for another process */
void fake_try(stream *s);
void fake_add_stream(stream *s);
void fake_drop_stream(stream *s);
result fake_queue(stream *s, const op *o);

typedef struct function {
	struct function *next;
	fake_block *fn;
	fake_memory *room;
	const int *n; /* params */
	const int *bytes; /* of each */
	int shared;   /* that were asked for */
} function;
/* What a launch is as an op; or why it is refused. */
result fake_launch(op *o, const function *f, const unsigned grid[3],
	const unsigned block[3], unsigned shared, void **params);
/* Is it memory of the device? */
bool fake_has(const void *p, size_t n);
void fake_run_op(op *o);

/* fake_stream.c: graphs, with the bodies in them */
void fake_append(graph *g, op *o);
op *fake_copy_op(const op *o);
void fake_free_op(op *o);
graph *fake_new_graph(void);

/* fake_cond.c: conditions */
void fake_set_condition(unsigned long long handle, unsigned value);
void fake_run_condition(const op *o);
/* Queues the first values of all handles. */
result fake_assign(stream *s, const graph *g);
void fake_check_bodies(const graph *g);

#endif
