/*
 * carrier.c: memory of devices goes from process to process, while the link keeps the
 * processes together.
 *
 * A carrier connects the devices of all processes of a link. It is opened when
 * memory is first moved: if one process lacks what is needed, then all move through
 * the memory of their hosts, and can say why. Before an exchange has been called by
 * all, nothing tells a device that a peer will not come; so
 *
 *     each process begins its part of the exchange, with what it needs for it
 *       it fails: it warns the others, whose waiting ends (link->warn)
 *     all ask each other whether one has failed (shard_fail_together)
 *       then all break off, throw its error, and can open a carrier again
 *
 * What the processes do next is after the exchange in the order of each device.
 */
#include "comm/ring.h"

#include <stdio.h>

/* Who failed first, and who was only told so. */
enum { FAILED = 0, WARNED = 1, NOT_FAILED = -1 };
/* From then on, a process that has ended is missed; each is looked for in turn. */
enum { LOOK_MS = 1000, LOOK_TURNS = 64 };

typedef struct call {
	env *e;
	shard_link *l;
	shard_carrier *c;
	void (*fn)(void *arg);
	void *arg;
	const char *what;
	char id[SHARD_CARRIER_ID];
} call;

/* ---- waiting ----------------------------------------------------------- */

void shard_carrier_idle(shard_carrier *c, int64_t turn, bool computes)
{
	shard_link *l = c->link;
	int64_t now = shard_pulse_now(), other = -1;

	if (turn == 0) {
		c->began = now;
		c->state_of_idle = 0;
	}
	/* others may have done their part, and have ended */
	if (computes) {
		c->began = now;
		shard_pulse_waits(l, false);
		shard_pulse_came(l);
	}
	if (c->is_calling && l->warned(l, c->n_calls)) {
		shard_pulse_waits(l, false);
		env_fail(c->e, TN_EIO, "shard.carrier", (loc){0},
			"another process has failed in the same operation");
	}
	if (now - c->began > LOOK_MS)
		other = turn / LOOK_TURNS % l->size(l);
	if (other == l->rank(l))
		other = -1;
	l->idle(l, c->e, turn, &c->state_of_idle, other, c->what);
}

void shard_carrier_done(shard_carrier *c)
{
	shard_pulse_waits(c->link, false);
}

/* ---- together ---------------------------------------------------------- */

typedef struct asking {
	env *e;
	shard_link *l;
	int32_t when;
	const tn_diag *d;
	const char *what;
} asking;

static void ask(void *arg)
{
	const asking *k = arg;

	shard_fail_together(k->e, k->l, k->when, k->d, k->what);
}

/*
 * Calls fn(arg) on all processes; if it throws on one, all throw the same, and can go
 * on, unless it is TN_EPEER. waits: fn waits for other processes.
 */
static void together(
	call *k, void (*fn)(void *arg), void *arg, const char *what, bool waits)
{
	shard_carrier *c = k->c;
	env *e = k->e;
	tn_diag d;
	asking q = {e, k->l, NOT_FAILED, &d, what};

	c->e = e;
	c->link = k->l;
	snprintf(c->what, sizeof c->what, "%s", what);
	c->together = false;
	c->n_calls++;
	c->is_calling = waits;
	if (env_run(e, fn, arg) < 0) {
		d = *env_diag(e);
		snprintf(d.text, sizeof d.text, "process %lld: %.900s",
			(long long)k->l->rank(k->l), env_diag(e)->text);
		c->is_calling = false;
		if (d.status == TN_EPEER)
			env_rethrow(e);
		q.when = waits && k->l->warned(k->l, c->n_calls) ? WARNED
								 : FAILED;
		if (waits && q.when == FAILED)
			k->l->warn(k->l, c->n_calls);
	}
	c->is_calling = false;
	if (env_run(e, ask, &q) >= 0)
		return;
	/* until all know it, none may break off more than this */
	d = *env_diag(e);
	if (d.status != TN_EPEER)
		k->l->barrier(k->l, e, what);
	c->together = d.status != TN_EPEER;
	env_fail(e, d.status, d.rule, (loc){0}, "%s", d.text);
}

/* ---- opening ----------------------------------------------------------- */

static void find(void *arg)
{
	const call *k = arg;

	k->c->name = k->c->find(k->c->arg);
}

static void identify(void *arg)
{
	call *k = arg;

	if (k->l->rank(k->l) == 0)
		k->c->identify(k->c->arg, k->id);
}

static void join(void *arg)
{
	const call *k = arg;

	k->c->join(k->c->arg, k->id, k->l->rank(k->l), k->l->size(k->l));
}

static void open(void *arg)
{
	static const char what[] = "the connection of devices";
	call *k = arg;

	together(k, find, k, "the search for what connects devices", false);
	together(k, identify, k, what, false);
	k->l->broadcast(k->l, k->e, 0, k->id, sizeof k->id, what);
	together(k, join, k, what, true);
}

bool shard_carrier_open(env *e, shard_link *l, shard_carrier *c)
{
	call k = {.e = e, .l = l, .c = c};

	if (c->state != SHARD_CARRIER_CLOSED)
		return c->state == SHARD_CARRIER_OPEN;
	if (env_run(e, open, &k) >= 0) {
		c->state = SHARD_CARRIER_OPEN;
		return true;
	}
	c->leave(c->arg, true);
	if (!c->together)
		env_rethrow(e);
	c->state = SHARD_CARRIER_MISSING;
	snprintf(c->why, sizeof c->why, "%s", env_diag(e)->text);
	return false;
}

void shard_carrier_close(shard_carrier *c)
{
	if (c->state == SHARD_CARRIER_OPEN)
		c->leave(c->arg, false);
	c->state = SHARD_CARRIER_CLOSED;
}

/* ---- an exchange ------------------------------------------------------- */

static void carry(void *arg)
{
	call *k = arg;

	together(k, k->fn, k->arg, k->what, true);
}

void shard_carry(env *e, shard_link *l, shard_carrier *c, void (*fn)(void *arg),
	void *arg, const char *what)
{
	call k = {.e = e, .l = l, .c = c, .fn = fn, .arg = arg, .what = what};

	if (env_run(e, carry, &k) >= 0)
		return;
	c->leave(c->arg, true);
	c->state = SHARD_CARRIER_CLOSED;
	env_rethrow(e);
}
