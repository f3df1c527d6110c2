/*
 * memory.c: the memory of a device.
 *
 * The driver gives out memory slowly, and in pieces of 2 MB; so it is asked for
 * segments, which are divided into blocks. A block that is freed joins its free
 * neighbours, and is reused: what was launched before on its elements runs before
 * whatever is launched on it later. Segments without a block in use are returned
 * when the driver has no more memory.
 */
#include "run/cuda/local.h"

#define ROUND ((size_t)256)
#define PIECE ((size_t)2 << 20)
#define SEGMENT ((size_t)32 << 20)

struct cuda_block {
	cuda_block *left, *right; /* neighbours in the segment; of spare ones the
				   * next is `right` */
	cuda_block *next, *before; /* of the list of all first blocks */
	cu_address at;
	size_t bytes;
	bool used;
};

/* What an arena owns. */
struct owned {
	cuda_device *d;
	cuda_block *b; /* NULL: nothing */
};

static size_t rounded(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

static void spare(cuda_memory *m, cuda_block *b)
{
	b->right = m->spare;
	m->spare = b;
}

/* Two nodes, so that nothing needs memory of the host later. */
static void reserve_nodes(cuda_device *d)
{
	cuda_memory *m = &d->memory;

	while (m->spare == NULL || m->spare->right == NULL) {
		cuda_block *b = arena_make(d->a, cuda_block);

		spare(m, b);
	}
}

static cuda_block *node(cuda_memory *m)
{
	cuda_block *b = m->spare;

	m->spare = b->right;
	*b = (cuda_block){0};
	return b;
}

/* ---- segments ---------------------------------------------------------- */

static void return_segment(cuda_device *d, cuda_block *b)
{
	cuda_memory *m = &d->memory;

	d->l.free(b->at);
	m->reserved -= b->bytes;
	if (b->before != NULL)
		b->before->next = b->next;
	else
		m->first = b->next;
	if (b->next != NULL)
		b->next->before = b->before;
	spare(m, b);
}

/* Returns segments without a block in use; between enter and leave. */
static void return_unused(cuda_device *d)
{
	cuda_block *next;

	for (cuda_block *b = d->memory.first; b != NULL; b = next) {
		next = b->next;
		if (!b->used && b->right == NULL)
			return_segment(d, b);
	}
}

static cu_result ask(cuda_device *d, size_t n, cu_address *at)
{
	cu_result r = d->l.alloc(at, n);

	if (r != CU_NO_MEMORY)
		return r;
	/* work that was launched may still use what is returned */
	cuda_leave(d);
	cuda_await_peers(d);
	cuda_enter(d);
	r = d->l.stream_wait(d->stream);
	if (r != CU_OK)
		return r;
	return_unused(d);
	return d->l.alloc(at, n);
}

static cuda_block *new_segment(cuda_device *d, size_t n)
{
	cuda_memory *m = &d->memory;
	size_t most = n < SEGMENT / 2 ? SEGMENT : rounded(n, PIECE);
	cu_address at = 0;
	cu_result r = d->l.alloc(&at, most);
	cuda_block *b;

	if (r == CU_NO_MEMORY) {
		most = n;
		r = ask(d, most, &at);
	}
	if (r != CU_OK) {
		size_t idle = 0, all = 0;

		if (r == CU_NO_MEMORY && d->l.info(&idle, &all) == CU_OK) {
			cuda_leave(d);
			env_fail(arena_env(d->a), TN_ENOMEM, "device.memory",
				(loc){0},
				"cannot allocate %zu bytes of the memory of "
				"%s: %zu of its %zu bytes are free, and this "
				"context uses %zu",
				n, d->base.name, idle, all, m->in_use);
		}
		cuda_check(d, r, "cannot allocate memory", "");
	}
	b = node(m);
	b->at = at;
	b->bytes = most;
	b->next = m->first;
	if (m->first != NULL)
		m->first->before = b;
	m->first = b;
	m->reserved += most;
	return b;
}

/* ---- blocks ------------------------------------------------------------ */

/* The smallest free block of n bytes at least, or NULL. */
static cuda_block *best(const cuda_memory *m, size_t n)
{
	cuda_block *found = NULL;

	for (cuda_block *s = m->first; s != NULL; s = s->next)
		for (cuda_block *b = s; b != NULL; b = b->right)
			if (!b->used && b->bytes >= n &&
				(found == NULL || b->bytes < found->bytes))
				found = b;
	return found;
}

static void split(cuda_memory *m, cuda_block *b, size_t n)
{
	cuda_block *rest;

	if (b->bytes == n)
		return;
	rest = node(m);
	rest->at = b->at + n;
	rest->bytes = b->bytes - n;
	rest->left = b;
	rest->right = b->right;
	if (b->right != NULL)
		b->right->left = rest;
	b->right = rest;
	b->bytes = n;
}

/* b takes the block to its right. */
static void join(cuda_memory *m, cuda_block *b)
{
	cuda_block *gone = b->right;

	b->bytes += gone->bytes;
	b->right = gone->right;
	if (b->right != NULL)
		b->right->left = b;
	spare(m, gone);
}

static void release(void *what)
{
	struct owned *o = what;
	cuda_memory *m = &o->d->memory;
	cuda_block *b = o->b;

	if (b == NULL)
		return;
	o->b = NULL;
	m->in_use -= b->bytes;
	b->used = false;
	if (b->right != NULL && !b->right->used)
		join(m, b);
	if (b->left != NULL && !b->left->used)
		join(m, b->left);
}

void *cuda_memory_alloc(run_device *base, arena *a, size_t n)
{
	cuda_device *d = (cuda_device *)base;
	cuda_memory *m = &d->memory;
	struct owned *o = arena_make(a, struct owned);
	cuda_block *b;

	if (n > SIZE_MAX / 2)
		env_fail(arena_env(a), TN_ENOMEM, "device.memory", (loc){0},
			"cannot allocate %zu bytes of the memory of %s", n,
			d->base.name);
	n = n == 0 ? ROUND : rounded(n, ROUND);
	o->d = d;
	o->b = NULL;
	arena_defer(a, release, o);
	reserve_nodes(d);
	b = best(m, n);
	if (b == NULL) {
		cuda_flush(d); /* it may be about memory that is returned now */
		cuda_enter(d);
		b = new_segment(d, n);
		cuda_leave(d);
	}
	split(m, b, n);
	b->used = true;
	m->in_use += n;
	o->b = b;
	return (void *)(uintptr_t)b->at;
}

void cuda_memory_end(cuda_device *d)
{
	while (d->memory.first != NULL) {
		cuda_block *b = d->memory.first;

		while (b->right != NULL)
			join(&d->memory, b);
		return_segment(d, b);
	}
}
