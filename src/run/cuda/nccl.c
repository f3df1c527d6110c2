/*
 * nccl.c: memory goes from this device to those of other processes, by NCCL.
 *
 * NCCL only moves bytes here: sends and receives, which happen together on the stream
 * of the device. Nothing is added up by it, because the order of its sums is not
 * ours. Its calls do not wait, so that the host sees meanwhile whether the other
 * processes are still there:
 *
 *     find, identify, join      a group of all processes
 *     exchange, exchange ..     each between two events of the stream
 *     leave
 *
 * The host waits for the second event of the last exchange before it waits for
 * anything else that the device does (cuda_await_peers): a driver that waits cannot
 * notice that a process of the group has died. Until the first event is there, the
 * device computes, and that is a sign of life.
 */
#include "run/cuda/local.h"

#include <limits.h>
#include <time.h>

enum { SPINS = 2000, LEAVE_MS = 10000 };

typedef struct cuda_group {
	nccl_library l;
	const char *name;     /* NULL: not loaded yet */
	nccl_comm comm;	      /* NULL: it has not joined */
	cu_event begun, done; /* around the last exchange */
	bool pending;	      /* the host has not seen that it is done */
	run_wait wait;
} group;

/* ---- results ----------------------------------------------------------- */

static group *group_of(cuda_device *d)
{
	if (d->group == NULL)
		d->group = arena_make(d->a, group);
	return d->group;
}

/* "invalid usage: Duplicate GPU detected" */
static const char *reason(const cuda_device *d, nccl_result r)
{
	const group *g = d->group;
	const char *text = g->l.error_text(r), *why = "";

	if (g->comm != NULL)
		why = g->l.error_why(g->comm);
	return arena_printf(d->s.tmp, "%s%s%.300s", text != NULL ? text : "?",
		why != NULL && why[0] != '\0' ? ": " : "",
		why != NULL ? why : "");
}

/* Not between enter and leave. */
static _Noreturn void refuse(cuda_device *d, nccl_result r, const char *what)
{
	env_fail(arena_env(d->a), TN_EIO, "cuda.nccl", (loc){0},
		"%s: NCCL cannot %s: %s", d->base.name, what, reason(d, r));
}

static void rest(int64_t turn)
{
	const struct timespec nap = {.tv_nsec = 20000};

	if (turn > SPINS)
		nanosleep(&nap, NULL);
}

/* Waits for what a call has begun; between enter and leave, and so again. */
static nccl_result settle(cuda_device *d, nccl_result r)
{
	group *g = d->group;

	for (int64_t turn = 0; r == NCCL_GOES_ON; turn++) {
		cuda_leave(d);
		g->wait.idle(g->wait.arg, turn, false);
		rest(turn);
		cuda_enter(d);
		if (g->l.state(g->comm, &r) != NCCL_OK)
			return r != NCCL_GOES_ON ? r : INT_MAX;
	}
	return r;
}

/* ---- a group ----------------------------------------------------------- */

static const char *find(run_device *base)
{
	cuda_device *d = (cuda_device *)base;
	group *g = group_of(d);

	if (g->name != NULL)
		return g->name;
	cuda_load_nccl(&g->l, d->a);
	g->name = arena_printf(
		d->a, "NCCL %s", cuda_nccl_version(d->a, g->l.version_number));
	return g->name;
}

static void identify(run_device *base, char id[RUN_PEERS_ID])
{
	cuda_device *d = (cuda_device *)base;
	nccl_id own;
	nccl_result r;

	cuda_enter(d);
	r = d->group->l.identify(&own);
	cuda_leave(d);
	if (r != NCCL_OK)
		refuse(d, r, "begin");
	memcpy(id, own.bytes, sizeof own.bytes);
}

static void join(run_device *base, const char id[RUN_PEERS_ID], int32_t rank,
	int32_t n, const run_wait *w)
{
	cuda_device *d = (cuda_device *)base;
	group *g = d->group;
	nccl_config config = {
		.size = offsetof(nccl_config, waits) + sizeof config.waits,
		.magic = NCCL_CONFIG_MAGIC,
		.version = NCCL_CONFIG_VERSION};
	nccl_id own;
	nccl_result r;

	memcpy(own.bytes, id, sizeof own.bytes);
	g->wait = *w;
	cuda_enter(d);
	for (int32_t i = 0; i < 2; i++) {
		cu_event *e = i == 0 ? &g->begun : &g->done;

		if (*e == NULL)
			cuda_check(d, d->l.event_new(e, CU_NO_TIMES),
				"cannot make an event", "");
	}
	r = settle(d, g->l.join(&g->comm, n, own, rank, &config));
	cuda_leave(d);
	w->done(w->arg);
	if (r != NCCL_OK)
		refuse(d, r, "connect the devices of the processes");
}

/* ---- exchanges --------------------------------------------------------- */

static nccl_result issue(
	cuda_device *d, int32_t n, const run_message *m, const char **what)
{
	const group *g = d->group;
	nccl_result r = g->l.group_start(), end;

	*what = "begin an exchange";
	if (r != NCCL_OK)
		return r;
	for (int32_t i = 0; i < n && (r == NCCL_OK || r == NCCL_GOES_ON); i++) {
		*what = m[i].comes ? "receive" : "send";
		r = m[i].comes ? g->l.receive(m[i].at, m[i].n, NCCL_BYTES,
					 m[i].peer, g->comm, d->stream)
			       : g->l.send(m[i].at, m[i].n, NCCL_BYTES,
					 m[i].peer, g->comm, d->stream);
	}
	end = g->l.group_end();
	if (r != NCCL_OK && r != NCCL_GOES_ON)
		return r;
	*what = "exchange memory of devices";
	return end;
}

static void exchange(run_device *base, int32_t n, const run_message *m)
{
	cuda_device *d = (cuda_device *)base;
	group *g = d->group;
	const char *what;
	nccl_result r;

	if (n == 0)
		return;
	cuda_flush(d);
	cuda_enter(d);
	cuda_check(d, d->l.event_record(g->begun, d->stream),
		"cannot note an exchange", "");
	r = settle(d, issue(d, n, m, &what));
	if (r == NCCL_OK)
		cuda_check(d, d->l.event_record(g->done, d->stream),
			"cannot note an exchange", "");
	cuda_leave(d);
	g->wait.done(g->wait.arg);
	if (r != NCCL_OK)
		refuse(d, r, what);
	g->pending = true;
}

/* ---- waiting ----------------------------------------------------------- */

/* Is the last exchange done? *computes: it has not begun. */
static bool is_done(cuda_device *d, bool *computes, nccl_result *state)
{
	group *g = d->group;
	cu_result r;

	cuda_enter(d);
	r = d->l.event_query(g->done);
	if (r != CU_OK && r != CU_NOT_READY)
		cuda_check(d, r, "cannot wait for an exchange", "");
	*computes = d->l.event_query(g->begun) == CU_NOT_READY;
	*state = NCCL_OK;
	if (r != CU_OK && g->l.state(g->comm, state) != NCCL_OK)
		*state = INT_MAX;
	cuda_leave(d);
	return r == CU_OK;
}

static void await(void *arg)
{
	cuda_device *d = arg;
	group *g = d->group;
	nccl_result state;
	bool computes;

	for (int64_t turn = 0; !is_done(d, &computes, &state); turn++) {
		if (state != NCCL_OK && state != NCCL_GOES_ON)
			refuse(d, state, "finish an exchange");
		g->wait.idle(g->wait.arg, turn, computes);
		rest(turn);
	}
	g->pending = false;
	g->wait.done(g->wait.arg);
}

static void leave(run_device *base, bool broken);

void cuda_await_peers(cuda_device *d)
{
	group *g = d->group;
	env *e = arena_env(d->a);

	if (g == NULL || !g->pending || d->lost != NULL ||
		env_run(e, await, d) >= 0)
		return;
	leave(&d->base, true);
	if (env_diag(e)->status != TN_EPEER)
		g->wait.stop(g->wait.arg, env_diag(e)->text);
	env_rethrow(e);
}

/* ---- the end ----------------------------------------------------------- */

static int64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Nothing of it is on its way any more, in a time in which it should be so. */
static bool finish(const cuda_device *d)
{
	const group *g = d->group;
	nccl_result r = g->l.finish(g->comm);
	int64_t began = clock_ms();

	for (int64_t turn = 0; r == NCCL_GOES_ON; turn++) {
		if (clock_ms() - began > LEAVE_MS ||
			g->l.state(g->comm, &r) != NCCL_OK)
			return false;
		rest(turn);
	}
	return r == NCCL_OK;
}

/* The device's context is current. */
static void drop(cuda_device *d, bool broken)
{
	group *g = d->group;

	if (g->comm == NULL)
		return;
	if (broken || !finish(d))
		(void)g->l.abort(g->comm);
	else
		(void)g->l.free(g->comm);
	g->comm = NULL;
	g->pending = false;
}

static void leave(run_device *base, bool broken)
{
	cuda_device *d = (cuda_device *)base;
	group *g = d->group;

	if (g == NULL || g->comm == NULL || d->context == NULL)
		return;
	if (g->pending && !broken && env_run(arena_env(d->a), await, d) < 0)
		broken = true;
	/* of a lost device, too: NCCL has memory of the host and threads */
	if (d->l.push(d->context) != CU_OK)
		return;
	drop(d, broken);
	cuda_leave(d);
}

void cuda_peers_end(cuda_device *d)
{
	group *g = d->group;

	if (g == NULL)
		return;
	drop(d, g->pending);
	if (g->begun != NULL)
		d->l.event_free(g->begun);
	if (g->done != NULL)
		d->l.event_free(g->done);
	g->begun = g->done = NULL;
}

const run_peers cuda_peers = {find, identify, join, exchange, leave};
