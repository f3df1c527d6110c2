/*
 * arena.c: memory that is freed together, and growing arrays in it.
 *
 *     arena *a = arena_new(e);
 *     int64_t *shape = arena_array(a, int64_t, rank);
 *     arena_free(a);          runs deferred functions, then frees all memory
 *
 * The size of chunks doubles from 4 KiB to 1 MiB. The system gives them zeroed,
 * and memory is not reused within an arena, so zeroed memory is free. A request
 * larger than the next chunk gets its own chunk; with AddressSanitizer every
 * request does, so that overruns are found.
 */
#include "base/env.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define EACH_ALONE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EACH_ALONE 1
#endif
#endif
#ifndef EACH_ALONE
#define EACH_ALONE 0
#endif

enum { ALIGN = 16, FIRST = 4 << 10, LARGEST = 1 << 20 };

struct chunk {
	struct chunk *next;
	size_t n_bytes; /* of data */
	_Alignas(ALIGN) unsigned char data[];
};

struct deferred {
	struct deferred *next;
	void (*fn)(void *what);
	void *what;
};

struct arena {
	env *e;
	struct chunk *chunks; /* newest first */
	unsigned char *at;    /* free in the chunk that is being filled */
	size_t n_free, next_bytes, held_bytes;
	struct deferred *deferred;	     /* last deferred first */
	arena *parent, *child, *prev, *next; /* next, prev: siblings */
};

static _Noreturn void fail_memory(env *e, size_t n, size_t size)
{
	env_fail(e, TN_ENOMEM, "memory", (loc){0},
		"out of memory: %zu elements of %zu bytes were asked for", n,
		size);
}

static arena *try_new(env *e)
{
	arena *a = env_calloc(e, sizeof *a);

	if (a != NULL) {
		a->e = e;
		a->next_bytes = FIRST;
	}
	return a;
}

arena *arena_new(env *e)
{
	arena *a = try_new(e);

	if (a == NULL)
		fail_memory(e, 1, sizeof *a);
	return a;
}

struct running {
	env *e;
	arena *a;
	void (*fn)(arena *a, void *arg);
	void *arg;
};

static void running_start(void *p)
{
	struct running *r = p;

	r->fn(r->a, r->arg);
}

void arena_run(env *e, void (*fn)(arena *a, void *arg), void *arg)
{
	struct running r = {e, arena_new(e), fn, arg};
	tn_status status = env_run(e, running_start, &r);

	arena_free(r.a);
	if (status != TN_OK)
		env_rethrow(e);
}

arena *arena_keep(arena *parent, void (*fn)(arena *a, void *arg), void *arg)
{
	struct running r = {parent->e, arena_child(parent), fn, arg};

	if (env_run(parent->e, running_start, &r) < 0) {
		arena_free(r.a);
		env_rethrow(parent->e);
	}
	return r.a;
}

arena *arena_child(arena *parent)
{
	arena *a = arena_new(parent->e);

	a->parent = parent;
	a->next = parent->child;
	if (a->next != NULL)
		a->next->prev = a;
	parent->child = a;
	return a;
}

static void unlink_child(arena *a)
{
	if (a->next != NULL)
		a->next->prev = a->prev;
	if (a->prev != NULL)
		a->prev->next = a->next;
	else if (a->parent != NULL)
		a->parent->child = a->next;
}

/*
 * Frees child arenas, recursively; nesting follows that of passes, so the depth
 * is small.
 */
static void drop_owned(arena *a)
{
	while (a->child != NULL)
		arena_free(a->child);
	while (a->deferred != NULL) {
		struct deferred *d = a->deferred;

		a->deferred = d->next; /* fn may defer more functions */
		d->fn(d->what);
	}
}

/* Frees all chunks but `kept`, which may be NULL. */
static void drop_chunks(arena *a, struct chunk *kept)
{
	struct chunk *c, *next;

	for (c = a->chunks; c != NULL; c = next) {
		next = c->next;
		if (c != kept)
			env_release(a->e, c);
	}
	a->chunks = kept;
}

void arena_clear(arena *a)
{
	struct chunk *c = a->chunks;

	drop_owned(a);
	/*
	 * the current chunk is the one that contains `at`, or that ends there
	 */
	while (c != NULL && (a->at < c->data || a->at > c->data + c->n_bytes ||
				    a->n_free != (size_t)(c->data +
							 c->n_bytes - a->at)))
		c = c->next;
	drop_chunks(a, c);
	a->held_bytes = 0;
	if (c == NULL) {
		a->at = NULL;
		a->n_free = 0;
		return;
	}
	memset(c->data, 0, c->n_bytes - a->n_free);
	c->next = NULL;
	a->at = c->data;
	a->n_free = c->n_bytes;
	a->held_bytes = c->n_bytes;
}

void arena_free(arena *a)
{
	if (a == NULL)
		return;
	drop_owned(a);
	drop_chunks(a, NULL);
	unlink_child(a);
	env_release(a->e, a);
}

env *arena_env(const arena *a)
{
	return a->e;
}

size_t arena_bytes(const arena *a)
{
	size_t n = a->held_bytes;

	for (const arena *c = a->child; c != NULL; c = c->next)
		n += arena_bytes(c);
	return n;
}

void arena_count(arena *a, size_t n)
{
	a->held_bytes += n;
}

/* A new chunk of n_bytes of data in the list, or NULL. */
static struct chunk *try_chunk(arena *a, size_t n_bytes)
{
	struct chunk *c;

	if (n_bytes > SIZE_MAX / 2)
		return NULL;
	c = env_calloc(a->e, sizeof *c + n_bytes);
	if (c == NULL)
		return NULL;
	c->n_bytes = n_bytes;
	c->next = a->chunks;
	a->chunks = c;
	a->held_bytes += n_bytes;
	return c;
}

static void *try_alloc(arena *a, size_t n, size_t size)
{
	size_t n_bytes, need;
	struct chunk *c;
	void *p;

	if (__builtin_mul_overflow(n, size, &n_bytes) ||
		n_bytes > SIZE_MAX - ALIGN)
		return NULL;
	need = n_bytes == 0 ? ALIGN
			    : (n_bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (EACH_ALONE || need > a->next_bytes / 4) {
		/*
		 * use the current chunk if the request fits, else a chunk of
		 * its own
		 */
		if (!EACH_ALONE && need <= a->n_free)
			goto take;
		c = try_chunk(a, EACH_ALONE ? n_bytes : need);
		return c != NULL ? c->data : NULL;
	}
	if (need > a->n_free) {
		c = try_chunk(a, a->next_bytes);
		if (c == NULL)
			return NULL;
		a->at = c->data;
		a->n_free = c->n_bytes;
		if (a->next_bytes < LARGEST)
			a->next_bytes *= 2;
	}
take:
	p = a->at;
	a->at += need;
	a->n_free -= need;
	return p;
}

void *arena_alloc(arena *a, size_t n, size_t size)
{
	void *p = try_alloc(a, n, size);

	if (p == NULL)
		fail_memory(a->e, n, size);
	return p;
}

void *arena_copy(arena *a, const void *data, size_t n_bytes)
{
	void *p = arena_alloc(a, n_bytes, 1);

	if (n_bytes > 0)
		memcpy(p, data, n_bytes);
	return p;
}

char *arena_strdup(arena *a, const char *s)
{
	return arena_copy(a, s, strlen(s) + 1);
}

char *arena_strndup(arena *a, const char *s, size_t n)
{
	char *p;

	if (n == SIZE_MAX)
		fail_memory(a->e, n, 1);
	p = arena_alloc(a, n + 1, 1);
	if (n > 0)
		memcpy(p, s, n);
	return p;
}

char *arena_printf(arena *a, const char *fmt, ...)
{
	va_list ap, again;
	char *p = NULL;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = text_vprint(NULL, 0, fmt, ap);
	if (n >= 0)
		p = try_alloc(a, (size_t)n + 1, 1);
	if (p != NULL)
		text_vprint(p, (size_t)n + 1, fmt, again);
	va_end(again);
	va_end(ap);
	if (p == NULL)
		fail_memory(a->e, (size_t)(n < 0 ? 0 : n) + 1, 1);
	return p;
}

void arena_defer(arena *a, void (*fn)(void *what), void *what)
{
	struct deferred *d = try_alloc(a, 1, sizeof *d);

	if (d == NULL) {
		/* the resource was handed over, so it must be released here */
		fn(what);
		fail_memory(a->e, 1, sizeof *d);
	}
	d->fn = fn;
	d->what = what;
	d->next = a->deferred;
	a->deferred = d;
}

void *vec_grow(
	arena *a, void *at, int32_t n, int32_t *cap, size_t size, int32_t more)
{
	int64_t need = (int64_t)n + more, room = *cap;
	void *p;

	if (need <= room)
		return at;
	if (need > INT32_MAX)
		fail_memory(a->e, (size_t)need, size);
	room = room < 4 ? 8 : room * 2;
	if (room < need)
		room = need;
	if (room > INT32_MAX)
		room = INT32_MAX;
	p = arena_alloc(a, (size_t)room, size);
	if (n > 0)
		memcpy(p, at, (size_t)n * size);
	*cap = (int32_t)room;
	return p;
}
