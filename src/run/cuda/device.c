/*
 * device.c: one device: what is copied, filled and launched, on one stream.
 *
 * Copies between host and device go through staging memory, which the device
 * reads and writes by itself: a ring of slots, each with an event that says when
 * the last copy of the slot is done. So put returns as soon as its bytes are in
 * the ring.
 */
#include "run/cuda/local.h"

#include <stdio.h>

enum {
	LEAST_COMPUTE = 80,
	WARP = 32,
	BLOCK_WARPS = 4,
	LOCAL_BYTES = 256 << 20
};

/* ---- elements ---------------------------------------------------------- */

static cu_address address(const void *p)
{
	return (cu_address)(uintptr_t)p;
}

static size_t piece(size_t n)
{
	return n < CUDA_SLOT_BYTES ? n : CUDA_SLOT_BYTES;
}

static char *slot(const cuda_device *d, int32_t i)
{
	return d->stage + (size_t)i * CUDA_SLOT_BYTES;
}

/* Between enter and leave. */
static cu_result await_slot(cuda_device *d, int32_t i)
{
	cu_result r = d->l.event_query(d->idle[i]);

	if (r != CU_NOT_READY)
		return r;
	cuda_leave(d);
	cuda_await_peers(d);
	cuda_enter(d);
	return d->l.event_wait(d->idle[i]);
}

static void put(run_device *base, void *to, const void *host, size_t n)
{
	cuda_device *d = (cuda_device *)base;
	cu_result r = CU_OK;

	if (n == 0)
		return;
	cuda_flush(d);
	cuda_enter(d);
	for (size_t at = 0; r == CU_OK && at < n; at += CUDA_SLOT_BYTES) {
		int32_t i = d->slot++ % CUDA_SLOTS;
		size_t k = piece(n - at);

		d->slot %= CUDA_SLOTS;
		r = await_slot(d, i);
		if (r != CU_OK)
			break;
		memcpy(slot(d, i), (const char *)host + at, k);
		r = d->l.put(address(to) + at, slot(d, i), k, d->stream);
		if (r == CU_OK)
			r = d->l.event_record(d->idle[i], d->stream);
	}
	cuda_check(d, r, "cannot copy to the device", "");
	cuda_leave(d);
}

/* At most as many bytes as all slots have, from the first slot on. */
static cu_result get_some(cuda_device *d, char *host, cu_address from, size_t n)
{
	int32_t n_slots = 0;
	cu_result r = CU_OK;

	for (size_t at = 0; r == CU_OK && at < n; at += CUDA_SLOT_BYTES) {
		int32_t i = n_slots++;

		/* a copy to the device may still read the slot: the stream
		 * keeps the order */
		r = d->l.get(slot(d, i), from + at, piece(n - at), d->stream);
		if (r == CU_OK)
			r = d->l.event_record(d->idle[i], d->stream);
	}
	for (int32_t i = 0; r == CU_OK && i < n_slots; i++) {
		size_t at = (size_t)i * CUDA_SLOT_BYTES;

		r = d->l.event_wait(d->idle[i]);
		if (r == CU_OK)
			memcpy(host + at, slot(d, i), piece(n - at));
	}
	return r;
}

static void get(run_device *base, void *host, const void *from, size_t n)
{
	cuda_device *d = (cuda_device *)base;
	const size_t most = (size_t)CUDA_SLOTS * CUDA_SLOT_BYTES;
	cu_result r = CU_OK;

	if (n == 0)
		return;
	cuda_flush(d);
	cuda_await_peers(d);
	cuda_enter(d);
	for (size_t at = 0; r == CU_OK && at < n; at += most)
		r = get_some(d, (char *)host + at, address(from) + at,
			n - at < most ? n - at : most);
	cuda_check(d, r, "cannot copy from the device", "");
	d->n_launched = 0;
	cuda_leave(d);
}

static void copy(run_device *base, void *to, const void *from, size_t n)
{
	cuda_device *d = (cuda_device *)base;

	if (n == 0)
		return;
	if (d->noting != NULL) {
		cuda_note_copy(d, address(to), address(from), n);
		return;
	}
	cuda_enter(d);
	cuda_check(d, d->l.copy(address(to), address(from), n, d->stream),
		"cannot copy on the device", "");
	cuda_leave(d);
}

/* Steps of 2 GB and more are too long for the driver, and it reserves the right to
 * refuse others. */
static cu_result copy_as_rows(cuda_device *d, const cu_rows *r)
{
	cu_result ok = CU_INVALID;

	if (r->to.step <= INT32_MAX && r->from.step <= INT32_MAX)
		ok = d->l.copy_rows(r, d->stream);
	if (ok != CU_INVALID)
		return ok;
	ok = CU_OK;
	for (size_t i = 0; ok == CU_OK && i < r->rows; i++)
		ok = d->l.copy(r->to.at + i * r->to.step,
			r->from.at + i * r->from.step, r->n, d->stream);
	return ok;
}

static void copy_rows(run_device *base, void *to, size_t to_step,
	const void *from, size_t from_step, size_t n, size_t rows)
{
	cuda_device *d = (cuda_device *)base;
	cu_rows r = {.n = n, .rows = rows};

	if (n == 0 || rows == 0)
		return;
	if (rows == 1 || (to_step == n && from_step == n)) {
		copy(base, to, from, n * rows);
		return;
	}
	r.from.type = r.to.type = CU_OF_DEVICE;
	r.from.at = address(from);
	r.from.step = from_step;
	r.to.at = address(to);
	r.to.step = to_step;
	cuda_flush(d);
	cuda_enter(d);
	cuda_check(d, copy_as_rows(d, &r), "cannot copy rows on the device",
		"");
	cuda_leave(d);
}

static void fill(run_device *base, void *to, int byte, size_t n)
{
	cuda_device *d = (cuda_device *)base;

	if (n == 0)
		return;
	if (d->noting != NULL) {
		cuda_note_fill(d, address(to), byte, n);
		return;
	}
	cuda_enter(d);
	cuda_check(d,
		d->l.fill(address(to), (unsigned char)byte, n, d->stream),
		"cannot fill memory of the device", "");
	cuda_leave(d);
}

/* ---- launches ---------------------------------------------------------- */

enum { MORE_PARAMS = 5 }; /* behind those of the kernel */

/* Few warps are spread over all multiprocessors. */
static int32_t block_warps(const cuda_device *d, int64_t warps)
{
	int64_t n = warps / d->n_units;

	return n < 1 ? 1 : n > BLOCK_WARPS ? BLOCK_WARPS : (int32_t)n;
}

/* Names are copied: a program may end before it is known what it did. */
static void note_launch(cuda_device *d, const char *name)
{
	size_t n = strlen(name);

	if (n >= sizeof d->last_launch)
		n = sizeof d->last_launch - 1;
	memcpy(d->last_launch, name, n);
	d->last_launch[n] = '\0';
	d->n_all++;
	if (d->n_launched++ == 0)
		memcpy(d->first_launch, d->last_launch, n + 1);
}

static void add_arg(cuda_device *d, const void *at)
{
	*vec_push(d->a, &d->args) = (void *)(uintptr_t)at;
}

/* A block of so many warps for each chunk, or as many as there are workers;
 * returns the number of blocks. */
static int64_t blocks_of(const cuda_device *d, const run_launch *call,
	int32_t *warps)
{
	int64_t most = call->n_workers / call->warps, n;

	*warps = call->warps;
	n = call->n_chunks < most ? call->n_chunks : most;
	if (*warps > 1)
		return n;
	*warps = block_warps(d, n);
	return n / *warps;
}

/* Without being asked, the driver gives no more than this. */
enum { FREE_SHARED = 48 << 10 };
/* Matrices of which boxes are copied. */
enum { MAP_ELEMENT = 2, MAP_COLUMNS = 64, MAP_ALIGN = 16 };

/* What the driver says of the matrices of a launch. One that begins elsewhere than at a
 * multiple of 16 bytes is copied by elements: its description is not read. */
static cu_result describe(cuda_device *d, const run_launch *call)
{
	cu_result r = CU_OK;

	for (int32_t i = 0; i < call->n_maps && r == CU_OK; i++) {
		const run_map *m = &call->map[i];
		const uint64_t length[] = {(uint64_t)m->columns, (uint64_t)m->rows};
		const uint64_t step[] = {(uint64_t)m->columns * MAP_ELEMENT};
		const uint32_t box[] = {MAP_COLUMNS, (uint32_t)m->box};
		const uint32_t each[] = {1, 1};
		cu_map words = {0};

		if (address(m->at) % MAP_ALIGN == 0)
			r = d->l.describe(&words, CU_TWO_BYTES, 2, m->at, length, step,
				box, each, 0, CU_SWIZZLE_128, CU_READ_256, 0);
		for (int32_t w = 0; w < CU_MAP_WORDS; w++)
			*vec_push(d->a, &d->map) = words.word[w];
	}
	for (int32_t i = 0; i < call->n_maps && r == CU_OK; i++)
		add_arg(d, &d->map.at[CU_MAP_WORDS * i]);
	return r;
}

static void launch(run_device *base, const run_launch *call)
{
	cuda_device *d = (cuda_device *)base;
	int64_t first = 0, end = call->n_chunks, blocks;
	int32_t warps;
	cuda_grid g = {.fn = call->fn,
		.shared_bytes = (uint32_t)call->shared_bytes,
		.n_params = call->n_params + MORE_PARAMS,
		.n_maps = call->n_maps};
	cu_result r = CU_OK;

	if (end == 0)
		return;
	blocks = blocks_of(d, call, &warps);
	g.blocks = (uint32_t)blocks;
	g.threads = (uint32_t)(warps * WARP);
	d->args.n = 0;
	for (int32_t i = 0; i < call->n_params; i++)
		add_arg(d, &call->p[i]);
	add_arg(d, &call->scratch);
	add_arg(d, &call->locals);
	add_arg(d, &first);
	add_arg(d, &end);
	add_arg(d, &call->err);
	d->map.n = 0;
	vec_reserve(d->a, &d->map, CU_MAP_WORDS * call->n_maps);
	vec_reserve(d->a, &d->args, call->n_maps);
	note_launch(d, call->name);
	cuda_enter(d);
	cuda_check(d, describe(d, call), "cannot describe a matrix for", call->name);
	g.param = d->args.at;
	g.map = d->map.at;
	if (call->shared_bytes > FREE_SHARED)
		r = d->l.function_set(
			call->fn, CU_SHARED_BYTES, (int)call->shared_bytes);
	if (d->noting != NULL && r == CU_OK) {
		cuda_leave(d);
		cuda_note_launch(d, &g);
		return;
	}
	if (r == CU_OK)
		r = d->l.launch(g.fn, g.blocks, 1, 1, g.threads, 1, 1,
			g.shared_bytes, d->stream, d->args.at, NULL);
	cuda_check(d, r, "cannot launch", call->name);
	cuda_leave(d);
}

static void sync(run_device *base)
{
	cuda_device *d = (cuda_device *)base;

	if (d->context == NULL)
		return;
	cuda_flush(d);
	cuda_await_peers(d);
	cuda_enter(d);
	cuda_check(d, d->l.stream_wait(d->stream), "cannot wait for the device", "");
	d->n_launched = 0;
	cuda_leave(d);
}

/* ---- opening ----------------------------------------------------------- */

static void close_device(void *what)
{
	cuda_device *d = what;
	cu_context was;

	if (d->context == NULL)
		return;
	/* errors do not matter any more */
	if (d->l.push(d->context) == CU_OK) {
		cuda_peers_end(d);
		(void)d->l.stream_wait(d->stream);
		cuda_again_end(d);
		cuda_modules_end(d);
		cuda_memory_end(d);
		cuda_end(d);
		(void)d->l.pop(&was);
	}
	d->l.release(d->id);
	d->context = NULL;
}

static int attribute(const cu_library *l, int which, cu_device id)
{
	int value = 0;

	return l->attribute(&value, which, id) == CU_OK ? value : 0;
}

static int32_t compute_of(const cu_library *l, cu_device id)
{
	return 10 * attribute(l, CU_MAJOR, id) + attribute(l, CU_MINOR, id);
}

static const char *too_old(arena *a, int32_t compute)
{
	return arena_printf(a,
		"its compute capability is %d.%d, and accepted is 8.0 or later",
		compute / 10, compute % 10);
}

static int n_devices(const cu_library *l)
{
	int n = 0;

	return l->count(&n) == CU_OK ? n : 0;
}

static void find_card(cuda_device *d, int32_t number)
{
	int n = n_devices(&d->l);

	if (n == 0)
		env_fail(arena_env(d->a), TN_EINVAL, "cuda.device", (loc){0},
			"the driver %s finds no NVIDIA GPU", d->l.path);
	if (number >= n || d->l.device(&d->id, number) != CU_OK)
		env_fail(arena_env(d->a), TN_EINVAL, "cuda.device", (loc){0},
			"there is no device cuda:%d: the driver finds %d, so "
			"accepted is cuda:0%s%s",
			(int)number, n, n > 1 ? " .. " : "",
			n > 1 ? arena_printf(d->a, "cuda:%d", n - 1) : "");
	(void)d->l.device_name(d->name, sizeof d->name, d->id);
	d->compute = compute_of(&d->l, d->id);
	if (d->compute < LEAST_COMPUTE)
		env_fail(arena_env(d->a), TN_EINVAL, "cuda.compute", (loc){0},
			"cuda:%d (%s) cannot be used: %s", (int)number, d->name,
			too_old(d->a, d->compute));
	d->n_units = attribute(&d->l, CU_UNITS, d->id);
	d->n_units = d->n_units < 1 ? 1 : d->n_units;
	d->base.n_workers =
		attribute(&d->l, CU_UNIT_THREADS, d->id) / WARP * d->n_units;
	if (d->base.n_workers < 1)
		d->base.n_workers = 1;
}

static const run_stats *stats(run_device *base)
{
	return &((cuda_device *)base)->stats;
}

static void usage(run_device *base, run_usage *out)
{
	const cuda_device *d = (cuda_device *)base;

	*out = (run_usage){d->memory.in_use, d->memory.reserved, d->n_all,
		d->n_graphs};
}

run_device *cuda_open(arena *a, int32_t number, const char *cache_dir)
{
	cuda_device *d = arena_make(a, cuda_device);

	d->a = a;
	d->base = (run_device){.name = arena_printf(a, "cuda:%d", (int)number),
		.dl_type = 2,
		.number = number,
		.local_bytes = LOCAL_BYTES,
		.alloc = cuda_memory_alloc,
		.put = put,
		.get = get,
		.copy = copy,
		.fill = fill,
		.copy_rows = copy_rows,
		.load = cuda_load,
		.find = cuda_find,
		.launch = launch,
		.sync = sync,
		.begin = cuda_begin,
		.start = cuda_start,
		.finish = cuda_finish,
		.cancel = cuda_cancel,
		.no_repeat = cuda_no_repeat,
		.repeat = cuda_repeat,
		.repeated = cuda_repeated,
		.watch = cuda_watch,
		.stream = cuda_stream,
		.follow = cuda_follow,
		.lead = cuda_lead,
		.stats = stats,
		.usage = usage,
		.peers = &cuda_peers};
	cuda_load_driver(&d->l, a);
	find_card(d, number);
	cuda_load_nvrtc(&d->rtc, a, d->l.version_number);
	cuda_modules_open(d, cache_dir);
	arena_defer(a, close_device, d);
	return &d->base;
}

int32_t cuda_compute(const run_device *d)
{
	return ((const cuda_device *)d)->compute;
}

/* ---- looking ----------------------------------------------------------- */

struct look {
	arena *a;
	cu_library l;
	rtc_library rtc;
	nccl_library nccl;
};

static void look_driver(void *arg)
{
	struct look *k = arg;

	cuda_load_driver(&k->l, k->a);
}

static void look_nvrtc(void *arg)
{
	struct look *k = arg;

	cuda_load_nvrtc(&k->rtc, k->a, k->l.version_number);
}

static void look_nccl(void *arg)
{
	struct look *k = arg;

	cuda_load_nccl(&k->nccl, k->a);
}

static void look_card(const struct look *k, struct cuda_card *c, int i)
{
	cu_device id = 0;

	snprintf(c->name, sizeof c->name, "?");
	if (k->l.device(&id, i) != CU_OK) {
		c->refused = "the driver does not show it";
		return;
	}
	(void)k->l.device_name(c->name, sizeof c->name, id);
	(void)k->l.total(&c->bytes, id);
	c->compute = compute_of(&k->l, id);
	c->n_units = attribute(&k->l, CU_UNITS, id);
	if (c->compute < LEAST_COMPUTE)
		c->refused = too_old(k->a, c->compute);
}

void cuda_look(arena *a, cuda_found *out)
{
	struct look *k = arena_make(a, struct look);
	env *e = arena_env(a);

	k->a = a;
	*out = (cuda_found){.driver = "", .nvrtc = "", .nccl = "", .devrt = ""};
	if (env_run(e, look_driver, k) < 0) {
		out->missing = arena_strdup(a, env_diag(e)->text);
		return;
	}
	out->driver = k->l.path;
	out->driver_version = k->l.version_number;
	out->n = n_devices(&k->l);
	out->card = arena_array(a, struct cuda_card, out->n + 1);
	for (int i = 0; i < out->n; i++)
		look_card(k, &out->card[i], i);
	if (out->n == 0) {
		out->missing = arena_printf(
			a, "the driver %s finds no NVIDIA GPU", k->l.path);
		return;
	}
	if (env_run(e, look_nccl, k) < 0) {
		out->no_nccl = arena_strdup(a, env_diag(e)->text);
	} else {
		out->nccl = k->nccl.path;
		out->nccl_version = k->nccl.version_number;
	}
	if (env_run(e, look_nvrtc, k) < 0) {
		out->missing = arena_strdup(a, env_diag(e)->text);
		return;
	}
	out->nvrtc = k->rtc.path;
	out->nvrtc_version = k->rtc.version_number;
	out->devrt = cuda_find_devrt(&k->l, &k->rtc, a, &out->no_devrt);
}
