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
	MAX_PARAMS = 256
};

typedef unsigned long long address;
typedef int result;

typedef struct memory {
	struct memory *next;
	char *at;
	size_t n, mapped;
} memory;

typedef struct op {
	enum { PUT, GET, COPY, ROWS, FILL, LAUNCH, RECORD, WAIT, CALL } kind;
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
	uint64_t param[MAX_PARAMS];
	struct event *event;
	struct stream *of; /* WAIT: the stream that records the event .. */
	int64_t at;	   /* .. so many times */
} op;

typedef struct graph {
	op *first, **last;
	bool is_refused; /* what was recorded has failed */
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

#endif
