/*
 * shard_carry.c: moves between the devices of a mesh, without the memory of the hosts.
 *
 *   carrier.c  what all processes do together     device->peers  what connects devices
 *   carry.c    what is sent, packed, added up     here: one is given to the other
 *
 * Sums are added up by kernels, which are compiled from the equations that the CPU
 * has for them, and kept: one for each number of elements and of parts.
 */
#include "api/shard.h"

#include <stdio.h>

/* What adds up partial results of one size. */
typedef struct adder {
	shard_sum s;
	plan_exec *exec;
	struct adder *next;
} adder;

typedef struct api_carrier {
	tn_context *c;
	shard_carrier carrier;
	shard_device device;
	adder *adders;
	VEC(run_message) message;
} api_carrier;

/* ---- what connects devices ---- */

static run_device *device_of(void *arg)
{
	return ((const api_carrier *)arg)->c->device;
}

static const char *find(void *arg)
{
	run_device *d = device_of(arg);

	return d->peers->find(d);
}

static void identify(void *arg, char id[SHARD_CARRIER_ID])
{
	_Static_assert((int)SHARD_CARRIER_ID == (int)RUN_PEERS_ID,
		"an id is handed on");
	run_device *d = device_of(arg);

	d->peers->identify(d, id);
}

static void idle(void *arg, int64_t turn, bool computes)
{
	shard_carrier_idle(&((api_carrier *)arg)->carrier, turn, computes);
}

static void done(void *arg)
{
	shard_carrier_done(&((api_carrier *)arg)->carrier);
}

static void stop(void *arg, const char *text)
{
	shard_link *l = api_link(((const api_carrier *)arg)->c);

	l->stop(l, text);
}

static void join(
	void *arg, const char id[SHARD_CARRIER_ID], int64_t rank, int64_t n)
{
	run_device *d = device_of(arg);
	const run_wait w = {arg, idle, done, stop};

	d->peers->join(d, id, (int32_t)rank, (int32_t)n, &w);
}

static void exchange(void *arg, int32_t n, const shard_load *load)
{
	api_carrier *k = arg;
	run_device *d = k->c->device;
	int64_t sent = 0;

	k->message.n = 0;
	for (int32_t i = 0; i < n; i++) {
		const shard_load *w = &load[i];

		*vec_push(k->c->a, &k->message) = (run_message){
			(int32_t)w->peer, w->comes, w->at, w->n};
		sent += w->comes ? 0 : (int64_t)w->n;
	}
	d->peers->exchange(d, n, k->message.at);
	api_shard_of(k->c)->bytes_carried += sent;
}

static void leave(void *arg, bool broken)
{
	run_device *d = device_of(arg);

	d->peers->leave(d, broken);
}

/* ---- sums ---- */

static bool is_same(const shard_sum *a, const shard_sum *b)
{
	return a->monoid == b->monoid && a->n_comp == b->n_comp &&
	       a->n_parts == b->n_parts && a->n == b->n &&
	       memcmp(a->acc, b->acc, (size_t)a->n_comp * sizeof *a->acc) == 0;
}

struct adder_call {
	api_carrier *k;
	const shard_sum *s;
};

static void make_adder(arena *a, void *arg)
{
	const struct adder_call *q = arg;
	const shard_sum *s = q->s;
	tn_context *c = q->k->c;
	compile_options o = api_compile_options(c);
	adder *w = arena_make(a, adder);
	compilation *m = compile_new_system(a,
		shard_joiner(a, s->monoid, s->n_comp, s->acc, s->n, s->n_parts),
		&o);

	w->s = *s;
	w->exec = api_compile(c, a, m);
	w->next = q->k->adders;
	q->k->adders = w;
}

static adder *adder_of(api_carrier *k, const shard_sum *s)
{
	struct adder_call q = {k, s};

	for (adder *w = k->adders; w != NULL; w = w->next)
		if (is_same(&w->s, s))
			return w;
	(void)arena_keep(k->c->a, make_adder, &q);
	return k->adders;
}

static void ready(void *arg, const shard_sum *s)
{
	(void)adder_of(arg, s);
}

static void add_up(
	void *arg, const shard_sum *s, void *const *part, void *const *sum)
{
	plan_exec_run(adder_of(arg, s)->exec,
		(const void *const *)(uintptr_t)part, NULL, sum);
}

static void *room(void *arg, arena *a, size_t n)
{
	run_device *d = device_of(arg);

	return d->alloc(d, a, n);
}

static void rows(void *arg, void *to, size_t to_step, const void *from,
	size_t from_step, size_t n, size_t count)
{
	run_device *d = device_of(arg);

	d->copy_rows(d, to, to_step, from, from_step, n, count);
}

/* ---- the mesh ---- */

struct lack_call {
	tn_context *c;
	tn_diag d;
	bool lacks;
};

static void ask(void *arg)
{
	const struct lack_call *k = arg;
	shard_link *l = api_link(k->c);

	shard_fail_together(
		k->c->e, l, k->lacks ? 0 : -1, &k->d, "the devices of a mesh");
}

/* Have all processes a device whose memory may be moved? */
static void agree(tn_context *c)
{
	api_shard *s = api_shard_of(c);
	struct lack_call k = {.c = c, .lacks = c->device->peers == NULL};

	k.d.status = TN_EINVAL;
	snprintf(k.d.rule, sizeof k.d.rule, "shard.devices");
	snprintf(k.d.text, sizeof k.d.text,
		"the device of process %lld is %s: tensors move through the "
		"memory of the hosts",
		(long long)api_shard_rank(c), c->device->name);
	s->has_devices = env_run(c->e, ask, &k) >= 0;
	if (s->has_devices)
		return;
	if (env_diag(c->e)->status == TN_EPEER)
		env_rethrow(c->e);
	s->lacks = arena_strdup(c->a, env_diag(c->e)->text);
}

static void make_carrier(arena *a, void *arg)
{
	tn_context *c = arg;
	api_carrier *k = arena_make(a, api_carrier);

	k->c = c;
	k->carrier = (shard_carrier){.arg = k,
		.find = find,
		.identify = identify,
		.join = join,
		.exchange = exchange,
		.leave = leave};
	k->device = (shard_device){.arg = k,
		.carrier = &k->carrier,
		.room = room,
		.rows = rows,
		.ready = ready,
		.sum = add_up};
	api_shard_of(c)->carrier = k;
}

const shard_device *api_shard_device(tn_context *c)
{
	api_shard *s = api_shard_of(c);

	if (s->link == NULL || s->link->size(s->link) == 1)
		return NULL;
	if (!s->asked)
		agree(c);
	s->asked = true;
	if (!s->has_devices)
		return NULL;
	if (s->carrier == NULL)
		(void)arena_keep(c->a, make_carrier, c);
	return shard_carrier_open(c->e, s->link, &s->carrier->carrier)
		       ? &s->carrier->device
		       : NULL;
}

const char *api_peers(const tn_context *c)
{
	const api_shard *s = c->shard;

	if (s == NULL || c->device->is_host)
		return "";
	if (s->lacks != NULL)
		return s->lacks;
	if (s->carrier == NULL)
		return "";
	if (s->carrier->carrier.state == SHARD_CARRIER_MISSING)
		return s->carrier->carrier.why;
	return s->carrier->carrier.name != NULL ? s->carrier->carrier.name : "";
}

void api_carrier_close(tn_context *c)
{
	if (c->shard != NULL && c->shard->carrier != NULL)
		shard_carrier_close(&c->shard->carrier->carrier);
}

/* ---- a value ---- */

struct carry_call {
	tn_context *c;
	const ir_type *type;
	int32_t from, to;
	const void *data;
	void *out;
	const shard_device *d;
};

/* The neutral element, on all but the first process along the axes of parts. */
static void put_empty(arena *a, const struct carry_call *k)
{
	tn_context *c = k->c;
	const api_placement *q = &api_shard_of(c)->placement.at[k->to];
	size_t n = (size_t)q->elems * dtype_size(k->type->dtype);
	void *host = arena_alloc(a, n + 1, 1);

	if (api_empty_parts(c, q, k->type->dtype, host) && n > 0)
		c->device->put(c->device, k->out, host, n);
}

static void carry(arena *a, void *arg)
{
	const struct carry_call *k = arg;
	tn_context *c = k->c;
	api_shard *s = api_shard_of(c);
	shard_transfer *t = api_value_transfer(c, a, k->type, k->from, k->to);
	shard_cargo cargo = {.n = 1,
		.dtype = {k->type->dtype},
		.monoid = s->placement.at[k->from].monoid,
		.from = {k->data},
		.to = {k->out}};
	int64_t sent = shard_transfer_sent(t);

	shard_transfer_carry(t, a, s->link, k->d, &cargo);
	if (s->placement.at[k->to].parts != 0)
		put_empty(a, k);
	s->n_moves += sent > 0;
	s->bytes_sent += sent * (int64_t)dtype_size(k->type->dtype);
}

bool api_shard_carry(void *arg, const ir_type *type, int32_t from,
	const void *data, int32_t to, void *out)
{
	tn_context *c = arg;
	struct carry_call k = {
		c, type, from, to, data, out, api_shard_device(c)};

	if (k.d == NULL)
		return false;
	arena_run(c->e, carry, &k);
	return true;
}
