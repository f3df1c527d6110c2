/*
 * fake_nccl.c: libnccl.so without a GPU: see fake_cuda.h.
 *
 * A group of processes is a folder. A message is a file in it, which the receiver
 * removes; then the send is done. What a group of calls does happens in the order
 * of the stream of the fake driver, when the two processes of each message have
 * called it: until then the state is "in progress", for ever if one does not come.
 */
#define _GNU_SOURCE
#include "fake_cuda.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum {
	OK,
	SYSTEM = 2,
	INTERNAL = 3,
	ARGUMENT = 4,
	USAGE = 5,
	REMOTE = 6,
	GOES_ON = 7
};
enum { MOST_RANKS = 64, MOST_CALLS = 256, ID = 128 };

typedef int result;
typedef struct stream stream;
typedef struct id {
	char bytes[ID];
} id;

typedef struct message {
	bool comes, is_sent, is_done;
	void *at;
	size_t n;
	int peer;
	int64_t number;
} message;

typedef struct comm {
	struct comm *next; /* of all that there were: queues still have them */
	char folder[ID];
	int rank, n;
	bool joined, aborted;
	result state;
	char why[160];
	int64_t sent[MOST_RANKS], received[MOST_RANKS];
	bool knows[MOST_RANKS]; /* is connected to it */
	struct group *waiting;	/* for others to call it */
} comm;

typedef struct group {
	comm *c;
	stream *s;
	int n;
	bool began, lost;
	message m[MOST_CALLS];
} group;

extern result fake_cuda_call(stream *s, fake_call *call, void *arg);
extern void fake_cuda_open(void);

static fake_nccl_state counts;
static comm *all_comms;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread group *open_group;
static __thread int depth;
static __thread result failure; /* of a call in the group */
static __thread char last_text[160];

static _Noreturn void stop(const char *what)
{
	fprintf(stderr, "fake NCCL: %s\n", what);
	abort();
}

/* "send 3" */
static void read_settings(void)
{
	static bool is_read;
	const char *v = getenv("FAKE_NCCL_FAIL");
	long long n = 0;
	char word[20] = "";

	if (!is_read && v != NULL && sscanf(v, "%19s %lld", word, &n) == 2) {
		if (strcmp(word, "send") == 0)
			counts.fail_send = n;
		else if (strcmp(word, "join") == 0)
			counts.fail_join = n;
		else if (strcmp(word, "hold") == 0)
			counts.hold = n;
		else
			stop("FAKE_NCCL_FAIL");
	}
	is_read = true;
}

EXPORT fake_nccl_state *fake_nccl(void)
{
	return &counts;
}

static bool fails(int64_t *n)
{
	bool now;

	pthread_mutex_lock(&lock);
	read_settings();
	now = *n > 0 && --*n == 0;
	pthread_mutex_unlock(&lock);
	return now;
}

static void count(int64_t *n, int64_t more)
{
	pthread_mutex_lock(&lock);
	*n += more;
	pthread_mutex_unlock(&lock);
}

/* ---- files ------------------------------------------------------------- */

static void name_file(char *path, const comm *c, const char *what, int64_t a,
	int64_t b, int64_t number)
{
	snprintf(path, 2 * ID, "%s/%s-%lld-%lld-%lld", c->folder, what,
		(long long)a, (long long)b, (long long)number);
}

static void put_file(const comm *c, const char *what, int64_t a, int64_t b,
	int64_t number, const void *data, size_t n)
{
	char path[2 * ID], before[2 * ID + 8];
	FILE *f;

	name_file(path, c, what, a, b, number);
	snprintf(before, sizeof before, "%s.part", path);
	f = fopen(before, "wb");
	if (f == NULL || fwrite(data, 1, n, f) != n || fclose(f) != 0 ||
		rename(before, path) != 0)
		stop("a file cannot be written");
}

static bool is_there(
	const comm *c, const char *what, int64_t a, int64_t b, int64_t number)
{
	char path[2 * ID];

	name_file(path, c, what, a, b, number);
	return access(path, F_OK) == 0;
}

static bool take_file(
	const comm *c, int64_t from, int64_t number, void *data, size_t n)
{
	char path[2 * ID];
	struct stat s;
	FILE *f;

	name_file(path, c, "message", from, c->rank, number);
	f = fopen(path, "rb");
	if (f == NULL)
		return false;
	fake_cuda_open();
	if (fstat(fileno(f), &s) != 0 || (size_t)s.st_size != n)
		stop("a message has another number of bytes than is expected");
	if (fread(data, 1, n, f) != n)
		stop("a message cannot be read");
	fclose(f);
	unlink(path);
	return true;
}

static void empty_folder(const comm *c)
{
	DIR *d = opendir(c->folder);

	for (struct dirent *f; d != NULL && (f = readdir(d)) != NULL;)
		if (f->d_name[0] != '.')
			(void)unlinkat(dirfd(d), f->d_name, 0);
	if (d != NULL)
		closedir(d);
	(void)rmdir(c->folder);
}

/* The last one to leave clears up. */
static void drop_files(const comm *c)
{
	char path[2 * ID];

	for (int p = 0; p < c->n; p++) {
		name_file(path, c, "knows", c->rank, p, 0);
		unlink(path);
	}
	put_file(c, "left", c->rank, 0, 0, "", 0);
	for (int p = 0; p < c->n; p++)
		if (!is_there(c, "left", p, 0, 0))
			return;
	empty_folder(c);
}

/* ---- what there is ----------------------------------------------------- */

EXPORT result ncclGetVersion(int *version)
{
	const char *v = getenv("FAKE_NCCL_VERSION");

	*version = v != NULL ? atoi(v) : 22809;
	return OK;
}

EXPORT const char *ncclGetErrorString(result r)
{
	return r == OK	       ? "no error"
	       : r == SYSTEM   ? "fake: system error"
	       : r == INTERNAL ? "fake: internal error"
	       : r == ARGUMENT ? "fake: invalid argument"
	       : r == USAGE    ? "fake: invalid usage"
	       : r == REMOTE   ? "fake: remote error"
			       : "fake: unknown result";
}

#ifndef FAKE_LACKS
EXPORT const char *ncclGetLastError(comm *c)
{
	return last_text[0] != '\0' ? last_text : c != NULL ? c->why : "";
}
#endif

EXPORT result ncclGetUniqueId(id *out)
{
	static int64_t n;
	const char *folder = getenv("FAKE_NCCL_FOLDER");

	if (fails(&counts.fail_id))
		return SYSTEM;
	memset(out, 0, sizeof *out);
	pthread_mutex_lock(&lock);
	snprintf(out->bytes, ID, "%.80s/fake-nccl-%d-%lld",
		folder != NULL ? folder : "/tmp", (int)getpid(),
		(long long)n++);
	pthread_mutex_unlock(&lock);
	if (mkdir(out->bytes, 0700) != 0)
		stop("a folder cannot be made");
	return OK;
}

/* As of version 2.14. */
struct config {
	size_t size;
	unsigned magic, version;
	int blocking;
};

EXPORT result ncclCommInitRankConfig(
	comm **out, int n, id name, int rank, struct config *config)
{
	comm *c;

	last_text[0] = '\0';
	if (config->size < 20 || config->magic != 0xcafebeef ||
		config->version < 21400 || config->blocking != 0)
		return ARGUMENT;
	if (n > MOST_RANKS || rank < 0 || rank >= n)
		return ARGUMENT;
	c = calloc(1, sizeof *c);
	memcpy(c->folder, name.bytes, ID);
	c->rank = rank;
	c->n = n;
	pthread_mutex_lock(&lock);
	c->next = all_comms;
	all_comms = c;
	pthread_mutex_unlock(&lock);
	c->state = GOES_ON;
	count(&counts.n_joins, 1);
	count(&counts.n_comms, 1);
	*out = c;
	if (fails(&counts.fail_join)) {
		put_file(c, "failed", 0, 0, 0, "", 0);
		snprintf(c->why, sizeof c->why, "two ranks on one device");
		c->state = USAGE;
		return USAGE;
	}
	put_file(c, "joined", rank, 0, 0, "", 0);
	return GOES_ON;
}

static void go_on(comm *c);

EXPORT result ncclCommGetAsyncError(comm *c, result *r)
{
	if (c->state == GOES_ON)
		go_on(c);
	*r = c->state;
	return OK;
}

static void drop(comm *c)
{
	drop_files(c);
	free(c->waiting);
	c->waiting = NULL;
	count(&counts.n_comms, -1);
}

EXPORT result ncclCommFinalize(comm *c)
{
	return c->state == OK ? OK : USAGE;
}

EXPORT result ncclCommDestroy(comm *c)
{
	drop(c);
	return OK;
}

EXPORT result ncclCommAbort(comm *c)
{
	__atomic_store_n(&c->aborted, true, __ATOMIC_SEQ_CST);
	count(&counts.n_aborts, 1);
	drop(c);
	return OK;
}

/* ---- groups of calls --------------------------------------------------- */

/* Called by the driver in the order of the stream; true: all is done. */
static bool run_group(void *arg)
{
	group *g = arg;
	comm *c = g->c;
	bool all = true;

	if (__atomic_load_n(&c->aborted, __ATOMIC_SEQ_CST)) {
		free(g);
		return true;
	}
	if (!g->began && fails(&counts.lose)) {
		g->lost = true;
		c->state = REMOTE;
	}
	if (!g->began && fails(&counts.hold))
		g->lost = true;
	g->began = true;
	for (int i = 0; i < g->n && !g->lost; i++) {
		message *m = &g->m[i];

		if (!m->comes && !m->is_sent)
			fake_cuda_open();
		if (!m->comes && !m->is_sent)
			put_file(c, "message", c->rank, m->peer, m->number,
				m->at, m->n);
		m->is_sent = true;
		if (!m->is_done)
			m->is_done = m->comes ? take_file(c, m->peer, m->number,
							m->at, m->n)
					      : !is_there(c, "message", c->rank,
							m->peer, m->number);
		all &= m->is_done;
	}
	all &= !g->lost;
	if (all)
		free(g);
	return all;
}

static bool is_connected(comm *c, const group *g)
{
	bool all = true;

	for (int i = 0; i < g->n; i++) {
		int p = g->m[i].peer;

		if (c->knows[p])
			continue;
		if (!is_there(c, "knows", c->rank, p, 0))
			put_file(c, "knows", c->rank, p, 0, "", 0);
		c->knows[p] = is_there(c, "knows", p, c->rank, 0);
		all &= c->knows[p];
	}
	return all;
}

static void go_on(comm *c)
{
	group *g = c->waiting;
	bool all = true;

	if (is_there(c, "failed", 0, 0, 0)) {
		snprintf(c->why, sizeof c->why, "a peer has failed");
		c->state = REMOTE;
		return;
	}
	for (int p = 0; p < c->n && !c->joined; p++)
		all &= is_there(c, "joined", p, 0, 0);
	c->joined |= all;
	if (!c->joined || (g != NULL && !is_connected(c, g)))
		return;
	c->waiting = NULL;
	c->state = OK;
	if (g != NULL && fake_cuda_call(g->s, run_group, g) != 0)
		c->state = INTERNAL;
}

EXPORT result ncclGroupStart(void)
{
	if (depth++ > 0)
		return OK;
	open_group = calloc(1, sizeof *open_group);
	failure = OK;
	last_text[0] = '\0';
	return OK;
}

static result add(
	bool comes, void *at, size_t n, int dtype, int peer, comm *c, stream *s)
{
	group *g = open_group;

	if (depth == 0)
		stop("a call outside of a group");
	if (dtype != 0 || peer < 0 || peer >= c->n || peer == c->rank ||
		n == 0 || c->state != OK ||
		(g->c != NULL && (g->c != c || g->s != s)) ||
		g->n == MOST_CALLS)
		return failure = ARGUMENT;
	g->c = c;
	g->s = s;
	g->m[g->n++] = (message){.comes = comes,
		.at = at,
		.n = n,
		.peer = peer,
		.number = comes ? c->received[peer]++ : c->sent[peer]++};
	count(comes ? &counts.n_receives : &counts.n_sends, 1);
	count(&counts.n_bytes, comes ? 0 : (int64_t)n);
	return OK;
}

EXPORT result ncclSend(
	const void *from, size_t n, int dtype, int peer, comm *c, stream *s)
{
	if (fails(&counts.fail_send)) {
		snprintf(last_text, sizeof last_text, "the cable is cut");
		return failure = SYSTEM;
	}
	return add(false, (void *)(uintptr_t)from, n, dtype, peer, c, s);
}

EXPORT result ncclRecv(
	void *to, size_t n, int dtype, int peer, comm *c, stream *s)
{
	if (fails(&counts.fail_receive))
		return failure = INTERNAL;
	return add(true, to, n, dtype, peer, c, s);
}

EXPORT result ncclGroupEnd(void)
{
	group *g = open_group;

	if (--depth > 0)
		return OK;
	open_group = NULL;
	count(&counts.n_groups, 1);
	pthread_mutex_lock(&lock);
	if (counts.most_in_group < g->n)
		counts.most_in_group = g->n;
	pthread_mutex_unlock(&lock);
	if (failure == OK && fails(&counts.fail_group))
		failure = INTERNAL;
	if (failure != OK || g->n == 0) {
		free(g);
		return failure;
	}
	if (g->c->waiting != NULL)
		stop("a group is called while another one goes on");
	g->c->waiting = g;
	g->c->state = GOES_ON;
	return GOES_ON;
}
