/*
 * fake_driver.c: libcuda.so without a GPU: see fake_cuda.h.
 */
#define _GNU_SOURCE
#include "fake_local.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

fake_cuda_state fake_state;
typedef struct module {
	void *handle;
} module;

static memory *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread void *current[16];
static __thread int depth;
static char contexts[16];
static unsigned seed = 1;

EXPORT fake_cuda_state *fake_cuda(void)
{
	return &fake_state;
}

_Noreturn void fake_stop(const char *what)
{
	fprintf(stderr, "fake driver: %s\n", what);
	abort();
}

static int64_t setting(const char *name, int64_t other)
{
	const char *v = getenv(name);

	return v != NULL && *v != '\0' ? strtoll(v, NULL, 10) : other;
}

/* ---- memory ------------------------------------------------------------ */

static memory *find(const void *p, size_t n)
{
	for (memory *m = all; m != NULL; m = m->next)
		if ((const char *)p >= m->at && (const char *)p + n <= m->at + m->n)
			return m;
	return NULL;
}

/* It takes long: only for what accesses elements. */
static void open_memory(bool open)
{
	static bool is_open;

	if (open == is_open)
		return;
	is_open = open;
	for (memory *m = all; m != NULL; m = m->next)
		if (mprotect(m->at, m->mapped - PAGE,
			    open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0)
			fake_stop("mprotect");
}

EXPORT void fake_cuda_read(void *to, const void *from, size_t n)
{
	pthread_mutex_lock(&lock);
	if (find(from, n) == NULL)
		fake_stop("what is read is not memory of the device");
	open_memory(true);
	memcpy(to, from, n);
	open_memory(false);
	pthread_mutex_unlock(&lock);
}

/* ---- what is queued ---------------------------------------------------- */

static void run_kernel(const op *o)
{
	unsigned *order = malloc(o->grid * sizeof *order);
	char *room = malloc(o->room);
	_Alignas(64) char at[8 * MAX_PARAMS + 64 * MAX_MAPS], *to = at;
	const char *from = (const char *)o->param;
	void *params[MAX_PARAMS];

	for (unsigned i = 0; i < o->grid; i++) {
		unsigned k = 0;

		seed = seed * 1664525u + 1013904223u;
		k = (seed >> 8) % (i + 1);
		order[i] = order[k];
		order[k] = i;
	}
	for (int i = 0; i < o->n_params; i++) {
		if (o->bytes[i] > 8) /* as the emulator's compiler aligns it */
			to += -(uintptr_t)to % 64;
		params[i] = to;
		memcpy(to, from, (size_t)o->bytes[i]);
		to += o->bytes[i];
		from += o->bytes[i];
	}
	for (unsigned i = 0; i < o->grid; i++) {
		int64_t failed = o->fn(o->grid, o->block / 32, order[i],
			o->shared, params, room);

		if (failed != 0) {
			fprintf(stderr, "fake driver: failure %lld\n",
				(long long)failed);
			fake_stop("a race, or lanes that do not meet: simt_failure");
		}
	}
	fake_state.n_blocks += o->grid;
	free(order);
	free(room);
}

static bool run_first(stream *s);

static bool await_event(const op *o)
{
	while (o->event->n_done < o->at && o->of->first != NULL)
		if (!run_first(o->of))
			return false;
	if (o->event->n_done < o->at)
		fake_stop("a stream waits for what is not queued");
	return true;
}

/* false: it waits for another process. */
static bool run_op(op *o)
{
	if (fake_state.is_broken && o->kind != RECORD && o->kind != WAIT)
		return true;
	if (o->kind != CALL && o->kind != RECORD && o->kind != WAIT)
		open_memory(true);
	switch (o->kind) {
	case CALL:
		return o->call(o->arg);
	case ROWS:
		for (size_t i = 0; i < o->rows; i++)
			memcpy(o->to + i * o->to_step, o->from + i * o->from_step,
				o->n);
		break;
	case PUT:
	case GET:
	case COPY:
		memmove(o->to, o->from, o->n);
		break;
	case FILL:
		memset(o->to, o->byte, o->n);
		break;
	case LAUNCH:
		if (fake_state.fault > 0 && --fake_state.fault == 0) {
			fake_state.is_broken = true;
			break;
		}
		run_kernel(o);
		break;
	case RECORD:
		o->event->n_done++;
		if (--o->event->n == 0)
			o->event->of = NULL;
		break;
	case WAIT:
		return await_event(o);
	case ASSIGN:
		fake_set_condition(o->handle, (unsigned)o->byte);
		break;
	case IF:
	case WHILE:
		fake_run_condition(o);
		break;
	}
	return true;
}

void fake_run_op(op *o)
{
	(void)run_op(o);
}

bool fake_has(const void *p, size_t n)
{
	return find(p, n) != NULL;
}

static bool run_first(stream *s)
{
	op *o = s->first;

	if (!run_op(o))
		return false;
	s->first = o->next;
	if (s->first == NULL)
		s->last = &s->first;
	s->n_calls -= o->kind == CALL;
	fake_free_op(o);
	return true;
}

/* What it waits for needs the lock, too. */
static void let_others(void)
{
	const struct timespec nap = {.tv_nsec = 500000};

	open_memory(false);
	pthread_mutex_unlock(&lock);
	nanosleep(&nap, NULL);
	pthread_mutex_lock(&lock);
}

/* Runs the stream until the event is done; NULL: all of it. */
result fake_drain(stream *s, const event *until)
{
	while (s->first != NULL && (until == NULL || until->n > 0))
		if (!run_first(s))
			let_others();
	open_memory(false);
	return fake_state.is_broken ? ILLEGAL : OK;
}

void fake_try(stream *s)
{
	while (s->first != NULL && run_first(s))
		;
	open_memory(false);
}

/* ---- what other processes wait for ------------------------------------- */

static stream *streams;

void fake_add_stream(stream *s)
{
	s->next = streams;
	streams = s;
}

void fake_drop_stream(stream *s)
{
	for (stream **p = &streams; *p != NULL; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			return;
		}
}

/* A stream in whose queue a call waits goes on by itself, up to that. */
static void *go_on(void *arg)
{
	const struct timespec nap = {.tv_nsec = 1000000};

	(void)arg;
	for (;;) {
		pthread_mutex_lock(&lock);
		for (stream *s = streams; s != NULL; s = s->next) {
			while (s->n_calls > 0 && run_first(s))
				;
			open_memory(false);
		}
		pthread_mutex_unlock(&lock);
		nanosleep(&nap, NULL);
	}
	return NULL;
}

EXPORT void fake_cuda_open(void)
{
	open_memory(true);
}

EXPORT result fake_cuda_call(stream *s, fake_call *call, void *arg)
{
	static bool goes_on;
	pthread_t id;
	result r = fake_enter();

	if (s->recorded != NULL)
		fake_stop("what waits for another process is recorded");
	if (!goes_on && (pthread_create(&id, NULL, go_on, NULL) != 0 ||
				pthread_detach(id) != 0))
		fake_stop("pthread_create");
	goes_on = true;
	if (r == OK) {
		s->n_calls++;
		r = fake_queue(s, &(op){.kind = CALL, .call = call, .arg = arg});
	}
	return fake_leave(r);
}

result fake_queue(stream *s, const op *o)
{
	op *copy = fake_copy_op(o);

	if (s->recorded != NULL) {
		fake_append(s->recorded, copy);
		fake_state.n_captured++;
		return OK;
	}
	*s->last = copy;
	s->last = &copy->next;
	if (fake_state.early)
		fake_try(s);
	return fake_state.early && fake_state.is_broken ? ILLEGAL : OK;
}

result fake_enter(void)
{
	if (depth == 0)
		fake_stop("a call without a current context");
	pthread_mutex_lock(&lock);
	return fake_state.is_broken ? ILLEGAL : OK;
}

result fake_leave(result r)
{
	pthread_mutex_unlock(&lock);
	return r;
}

/* ---- cuda.h: the whole ------------------------------------------------- */

EXPORT result cuInit(unsigned flags)
{
	static bool is_read;

	(void)flags;
	if (!is_read) {
		fake_state.early = setting("FAKE_CUDA_EARLY", 0) != 0;
		fake_state.bytes = (size_t)setting("FAKE_CUDA_BYTES", 1ll << 32);
		fake_state.fail_launch = setting("FAKE_CUDA_FAIL_LAUNCH", 0);
		fake_state.fault = setting("FAKE_CUDA_FAULT", 0);
	}
	is_read = true;
	return setting("FAKE_CUDA_DEVICES", 1) > 0 ? OK : NO_DEVICE;
}

EXPORT result cuDriverGetVersion(int *version)
{
	*version = (int)setting("FAKE_CUDA_VERSION", 12080);
	return OK;
}

static const struct {
	result r;
	const char *name, *text;
} errors[] = {
	{INVALID, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device"},
	{BAD_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{BAD_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	{NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{BAD_FILE, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
	{ILLEGAL, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access"},
	{NO_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
		"too many resources requested for launch"},
};

static int which(result r)
{
	for (int i = 0; i < (int)(sizeof errors / sizeof *errors); i++)
		if (errors[i].r == r)
			return i;
	return -1;
}

EXPORT result cuGetErrorName(result r, const char **name)
{
	int i = which(r);

	*name = i < 0 ? NULL : errors[i].name;
	return i < 0 ? INVALID : OK;
}

EXPORT result cuGetErrorString(result r, const char **text)
{
	int i = which(r);

	*text = i < 0 ? NULL : errors[i].text;
	return i < 0 ? INVALID : OK;
}

EXPORT result cuDeviceGetCount(int *n)
{
	*n = (int)setting("FAKE_CUDA_DEVICES", 1);
	return OK;
}

EXPORT result cuDeviceGet(int *device, int number)
{
	*device = number;
	return number >= 0 && number < setting("FAKE_CUDA_DEVICES", 1)
		? OK
		: BAD_DEVICE;
}

EXPORT result cuDeviceGetName(char *name, int n, int device)
{
	snprintf(name, (size_t)n, "Emulated GPU %d", device);
	return OK;
}

EXPORT result cuDeviceGetAttribute(int *value, int what, int device)
{
	int compute = (int)setting("FAKE_CUDA_COMPUTE", 90);

	(void)device;
	*value = what == 75 ? compute / 10
		: what == 76 ? compute % 10
		: what == 16 ? 2
		: what == 39 ? 128
			     : 0;
	return *value != 0 || what == 76 ? OK : INVALID;
}

EXPORT result cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	(void)device;
	*bytes = (size_t)setting("FAKE_CUDA_BYTES", 1ll << 32);
	return OK;
}

EXPORT result cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = &contexts[device];
	pthread_mutex_lock(&lock);
	fake_state.n_contexts++;
	pthread_mutex_unlock(&lock);
	return fake_state.is_broken ? ILLEGAL : OK;
}

EXPORT result cuDevicePrimaryCtxRelease_v2(int device)
{
	(void)device;
	pthread_mutex_lock(&lock);
	fake_state.n_contexts--;
	pthread_mutex_unlock(&lock);
	return OK;
}

EXPORT result cuCtxPushCurrent_v2(void *context)
{
	if (depth == 16)
		fake_stop("too many contexts are pushed");
	current[depth++] = context;
	return OK;
}

EXPORT result cuCtxPopCurrent_v2(void **context)
{
	if (depth == 0)
		fake_stop("no context is pushed");
	*context = current[--depth];
	return OK;
}

/* ---- memory ------------------------------------------------------------ */

EXPORT result cuMemGetInfo_v2(size_t *unused, size_t *total)
{
	result r = fake_enter();

	*unused = fake_state.bytes - fake_state.in_use;
	*total = fake_state.bytes;
	return fake_leave(r);
}

EXPORT result cuMemAlloc_v2(address *at, size_t n)
{
	result r = fake_enter();
	memory *m;

	if (r != OK || n == 0)
		return fake_leave(r != OK ? r : INVALID);
	if (n > fake_state.bytes - fake_state.in_use)
		return fake_leave(NO_MEMORY);
	m = calloc(1, sizeof *m);
	m->n = n;
	m->mapped = (n + PAGE - 1) / PAGE * PAGE + PAGE;
	m->at = mmap(NULL, m->mapped, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m->at == MAP_FAILED)
		fake_stop("mmap");
	memset(m->at, 0xcb, n);
	mprotect(m->at, m->mapped, PROT_NONE);
	m->next = all;
	all = m;
	fake_state.in_use += n;
	fake_state.n_memory++;
	*at = (address)(uintptr_t)m->at;
	return fake_leave(OK);
}

EXPORT result cuMemFree_v2(address at)
{
	result r = fake_enter();

	for (memory **m = &all; *m != NULL; m = &(*m)->next)
		if ((address)(uintptr_t)(*m)->at == at) {
			memory *gone = *m;

			*m = gone->next;
			fake_state.in_use -= gone->n;
			fake_state.n_memory--;
			munmap(gone->at, gone->mapped);
			free(gone);
			return fake_leave(r);
		}
	fake_stop("memory is freed that is not the device's");
}

EXPORT result cuMemHostAlloc(void **at, size_t n, unsigned flags)
{
	result r = fake_enter();

	(void)flags;
	*at = malloc(n);
	fake_state.n_pinned++;
	return fake_leave(r);
}

EXPORT result cuMemFreeHost(void *at)
{
	result r = fake_enter();

	free(at);
	fake_state.n_pinned--;
	return fake_leave(r);
}

/* Does a copy in the queue read this memory of the host? */
static bool is_read(const stream *s, const char *at, size_t n)
{
	for (const op *o = s->first; o != NULL; o = o->next)
		if (o->kind == PUT && o->from < at + n && at < o->from + o->n)
			return true;
	return false;
}

static result move(stream *s, int kind, char *to, const char *from, size_t n)
{
	result r = fake_enter();

	if (r != OK)
		return fake_leave(r);
	if (s->recorded != NULL && kind != COPY)
		fake_stop("a copy from or to the host is recorded");
	if ((kind == PUT || kind == COPY) && find(to, n) == NULL)
		fake_stop("a copy to what is not memory of the device");
	if ((kind == GET || kind == COPY) && find(from, n) == NULL)
		fake_stop("a copy from what is not memory of the device");
	if ((kind == PUT && find(from, n)) || (kind == GET && find(to, n)))
		fake_stop("memory of the device is used as memory of the host");
	fake_state.n_put += kind == PUT;
	fake_state.n_get += kind == GET;
	if (kind == GET && !is_read(s, to, n))
		memset(to, 0xdb, n); /* until the host waits */
	return fake_leave(fake_queue(s, &(op){.kind = kind, .to = to, .from = from, .n = n}));
}

EXPORT result cuMemcpyHtoDAsync_v2(
	address to, const void *from, size_t n, stream *s)
{
	return move(s, PUT, (char *)(uintptr_t)to, from, n);
}

EXPORT result cuMemcpyDtoHAsync_v2(void *to, address from, size_t n, stream *s)
{
	return move(s, GET, to, (const char *)(uintptr_t)from, n);
}

EXPORT result cuMemcpyDtoDAsync_v2(
	address to, address from, size_t n, stream *s)
{
	return move(s, COPY, (char *)(uintptr_t)to,
		(const char *)(uintptr_t)from, n);
}

/* What the driver calls CUDA_MEMCPY2D. */
struct rows {
	struct rows_end {
		size_t x, y;
		int type;
		void *host;
		address at;
		void *array;
		size_t step;
	} from, to;
	size_t n, rows;
};

EXPORT result cuMemcpy2DAsync_v2(const struct rows *w, stream *s)
{
	result r = fake_enter();
	char *to = (char *)(uintptr_t)w->to.at;
	const char *from = (const char *)(uintptr_t)w->from.at;

	if (r != OK)
		return fake_leave(r);
	if (fake_state.refuses_rows || w->from.type != 2 || w->to.type != 2 || w->from.x != 0 ||
		w->from.y != 0 || w->to.x != 0 || w->to.y != 0 || w->n == 0 ||
		w->rows == 0 || w->from.step < w->n || w->to.step < w->n ||
		w->from.step > INT32_MAX || w->to.step > INT32_MAX)
		return fake_leave(INVALID);
	if (find(to, (w->rows - 1) * w->to.step + w->n) == NULL ||
		find(from, (w->rows - 1) * w->from.step + w->n) == NULL)
		fake_stop("rows that are not memory of the device");
	return fake_leave(fake_queue(s, &(op){.kind = ROWS, .to = to,
		.from = from, .n = w->n, .rows = w->rows,
		.to_step = w->to.step, .from_step = w->from.step}));
}

EXPORT result cuMemsetD8Async(
	address to, unsigned char byte, size_t n, stream *s)
{
	result r = fake_enter();

	if (r != OK)
		return fake_leave(r);
	if (find((char *)(uintptr_t)to, n) == NULL)
		fake_stop("what is filled is not memory of the device");
	return fake_leave(fake_queue(s, &(op){.kind = FILL, .to = (char *)(uintptr_t)to,
				      .byte = byte, .n = n}));
}

/* ---- modules and launches ---------------------------------------------- */

/* What a kernel calls to set a condition. */
static void bind_condition(void *handle)
{
	void (*set)(unsigned long long, unsigned) = fake_set_condition;
	void *at = dlsym(handle, "fake_set_condition");

	if (at != NULL)
		memcpy(at, &set, sizeof set);
}

EXPORT result cuModuleLoadData(module **m, const void *image)
{
	result r = fake_enter();
	const char *bytes = image;
	uint64_t n;
	static long long number;
	char path[64];
	FILE *f;

	if (r != OK || memcmp(bytes, FAKE_MAGIC, 8) != 0)
		return fake_leave(r != OK ? r : BAD_IMAGE);
	memcpy(&n, bytes + 8, 8);
	/* a name of its own: the loader takes equal names for one library */
	snprintf(path, sizeof path, "/tmp/fake-module-%d-%lld.so", (int)getpid(),
		number++);
	f = fopen(path, "wb");
	if (f == NULL || fwrite(bytes + 16, 1, n, f) != n || fclose(f) != 0)
		fake_stop("a module cannot be written");
	*m = calloc(1, sizeof **m);
	(*m)->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	if ((*m)->handle == NULL)
		fake_stop(dlerror());
	bind_condition((*m)->handle);
	fake_state.n_modules++;
	fake_state.n_loaded++;
	return fake_leave(OK);
}

EXPORT result cuModuleUnload(module *m)
{
	result r = fake_enter();

	dlclose(m->handle);
	free(m);
	fake_state.n_loaded--;
	return fake_leave(r);
}

static function *functions;

EXPORT result cuModuleGetFunction(
	function **f, module *m, const char *name)
{
	result r = fake_enter();
	void *at = dlsym(m->handle, name);
	char n[512];

	if (r != OK || at == NULL)
		return fake_leave(r != OK ? r : NOT_FOUND);
	*f = calloc(1, sizeof **f);
	memcpy(&(*f)->fn, &at, sizeof at);
	at = dlsym(m->handle, "fake_memory");
	memcpy(&(*f)->room, &at, sizeof at);
	snprintf(n, sizeof n, "fake_n_%s", name);
	(*f)->n = dlsym(m->handle, n);
	snprintf(n, sizeof n, "fake_bytes_%s", name);
	(*f)->bytes = dlsym(m->handle, n);
	(*f)->next = functions;
	functions = *f;
	return fake_leave(OK);
}

EXPORT result cuFuncSetAttribute(function *f, int which, int value)
{
	result r = fake_enter();

	if (r != OK || which != 8 || value < 0 || value > 227 << 10)
		return fake_leave(r != OK ? r : INVALID);
	f->shared = value;
	return fake_leave(OK);
}

result fake_launch(op *o, const function *f, const unsigned grid[3],
	const unsigned block[3], unsigned shared, void **params)
{
	if (fake_state.fail_launch > 0 && --fake_state.fail_launch == 0)
		return NO_RESOURCES;
	if (grid[0] == 0 || grid[1] != 1 || grid[2] != 1 || block[0] % 32 != 0 ||
		block[0] == 0 || block[0] > 1024 || block[1] != 1 ||
		block[2] != 1 ||
		(shared > 48 << 10 && (int)shared > f->shared))
		return INVALID;
	*o = (op){.kind = LAUNCH, .fn = f->fn, .grid = grid[0],
		.block = block[0], .shared = shared,
		.room = f->room(block[0] / 32, shared)};
	o->n_params = *f->n;
	o->bytes = f->bytes;
	for (int i = 0, at = 0, maps = 0; i < *f->n; i++) {
		maps += f->bytes[i] > 8;
		if (i == MAX_PARAMS || at + f->bytes[i] > (int)sizeof o->param ||
			maps > MAX_MAPS)
			fake_stop("too many params");
		memcpy((char *)o->param + at, params[i], (size_t)f->bytes[i]);
		at += f->bytes[i];
	}
	fake_state.n_launches++;
	return OK;
}

/* What the emulator reads: struct bulk_map of target/simt. */
EXPORT result cuTensorMapEncodeTiled(uint64_t map[16], int element, uint32_t axes,
	void *at, const uint64_t *length, const uint64_t *step, const uint32_t *box,
	const uint32_t *each, int order, int swizzle, int ahead, int outside)
{
	enum { TWO_BYTES = 1, SWIZZLE_128 = 3, READ_256 = 3 };
	const uint64_t words[16] = {0x6b6c7562, (uintptr_t)at, length[0], length[1],
		step[0], box[0], box[1], 2};
	result r = fake_enter();

	if (r != OK || element != TWO_BYTES || axes != 2 || (uintptr_t)map % 64 != 0 ||
		(uintptr_t)at % 16 != 0 || length[0] == 0 || length[1] == 0 ||
		(length[0] | length[1]) >> 32 != 0 || step[0] % 16 != 0 ||
		step[0] < 2 * length[0] || step[0] >> 40 != 0 || box[0] != 64 ||
		box[1] == 0 || box[1] > 256 || each[0] != 1 || each[1] != 1 ||
		order != 0 || swizzle != SWIZZLE_128 || ahead > READ_256 || outside != 0)
		return fake_leave(r != OK ? r : INVALID);
	if (!fake_has(at, step[0] * length[1]))
		fake_stop("what is described is not memory of the device");
	if (fake_state.fail_describe > 0 && --fake_state.fail_describe == 0)
		return fake_leave(INVALID);
	fake_state.n_described++;
	memcpy(map, words, sizeof words);
	return fake_leave(OK);
}

#ifndef FAKE_LACKS
EXPORT result cuLaunchKernel(function *f, unsigned grid, unsigned grid_y,
	unsigned grid_z, unsigned block, unsigned block_y, unsigned block_z,
	unsigned shared, stream *s, void **params, void **extra)
{
	const unsigned g[3] = {grid, grid_y, grid_z};
	const unsigned b[3] = {block, block_y, block_z};
	result r = fake_enter();
	op o;

	if (r != OK || extra != NULL)
		return fake_leave(r != OK ? r : INVALID);
	r = fake_launch(&o, f, g, b, shared, params);
	if (r == NO_RESOURCES && s->recorded != NULL)
		s->recorded->is_refused = true;
	return fake_leave(r != OK ? r : fake_queue(s, &o));
}
#endif
