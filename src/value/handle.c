/*
 * handle.c: what a caller holds of a tensor: a number, not an address.
 *
 *     number = generation * 2^28 + slot     28 bits of slot, 36 of generation
 *
 * A slot belongs to the memory of one handle as long as the context lives. Each
 * time that memory becomes another handle, its generation is increased, so the slot
 * of a dropped number has another number, and the call is refused. Slots are in
 * chunks, in one table for the process, so a number determines its context. A chunk
 * is returned when its context ends; its next owner uses larger generations, so
 * numbers of a freed context are never valid again.
 *
 * Threads share only the table; a chunk is used by its owner. The numbers in it are
 * atomic, because any thread may look up an old number.
 */
#include "value/node.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
	SLOT_BITS = sizeof(uintptr_t) >= 8 ? 28 : 20,
	CHUNK_BITS = 10,
	IN_CHUNK = 1 << CHUNK_BITS,
	MAX_CHUNKS = 1 << (SLOT_BITS - CHUNK_BITS)
};

typedef struct slot {
	_Atomic uintptr_t number; /* of the live handle, or 0 */
	uintptr_t generation;	  /* of the last one */
	tensor *x;
} slot;

struct t_chunk {
	_Atomic uintptr_t first; /* smaller generations had other owners */
	_Atomic(tensors *) of;	 /* NULL: free */
	int32_t at;		 /* in the table */
	int32_t n;		 /* slots in use */
	struct t_chunk *next;	 /* of the same owner, or free */
	slot slot[IN_CHUNK];
};

static _Atomic(t_chunk *) table[MAX_CHUNKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int32_t n_chunks; /* these three under the lock */
static t_chunk *free_chunks;

/* The tensor of an invalid number, which every call refuses. */
static tensor nobody;

static t_chunk *more_chunks(void)
{
	t_chunk *k = n_chunks < MAX_CHUNKS ? calloc(1, sizeof *k) : NULL;

	if (k == NULL)
		return NULL;
	k->at = n_chunks;
	atomic_store(&k->first, 1);
	atomic_store(&table[n_chunks++], k);
	return k;
}

static t_chunk *new_chunk(tensors *t)
{
	t_chunk *k;

	pthread_mutex_lock(&lock);
	k = free_chunks;
	if (k != NULL)
		free_chunks = k->next;
	else
		k = more_chunks();
	pthread_mutex_unlock(&lock);
	if (k == NULL)
		env_fail(t->e, TN_ENOMEM, "memory",
			t_here(t),
			"no memory for more tensors");
	k->n = 0;
	k->next = t->chunks;
	atomic_store(&k->of, t);
	return t->chunks = k;
}

void t_handle_room(tensors *t, tensor *x)
{
	t_chunk *k = t->chunks;

	if (k == NULL || k->n == IN_CHUNK)
		k = new_chunk(t);
	x->slot = (uintptr_t)k->at << CHUNK_BITS | (uintptr_t)k->n;
	k->slot[k->n++].x = x;
}

static slot *slot_of(const tensor *x)
{
	t_chunk *k = atomic_load(&table[x->slot >> CHUNK_BITS]);

	return &k->slot[x->slot & (IN_CHUNK - 1)];
}

void t_handle_begin(tensor *x)
{
	slot *s = slot_of(x);
	const uintptr_t most = UINTPTR_MAX >> SLOT_BITS;

	s->generation = s->generation < most ? s->generation + 1 : 1;
	atomic_store_explicit(&s->number,
		s->generation << SLOT_BITS | x->slot, memory_order_relaxed);
}

void t_handle_end(const tensor *x)
{
	atomic_store_explicit(&slot_of(x)->number, 0, memory_order_relaxed);
}

tn_tensor *tensor_handle(const tensor *x)
{
	return (tn_tensor *)atomic_load_explicit(
		&slot_of(x)->number, memory_order_relaxed);
}

tensor *tensor_of_handle(const tn_tensor *h)
{
	uintptr_t number = (uintptr_t)h;
	uintptr_t at = number & (((uintptr_t)1 << SLOT_BITS) - 1);
	t_chunk *k = atomic_load_explicit(
		&table[at >> CHUNK_BITS], memory_order_acquire);
	tensors *of = k != NULL ? atomic_load(&k->of) : NULL;
	const slot *s;

	if (h == NULL)
		return NULL;
	if (of == NULL || number >> SLOT_BITS < atomic_load(&k->first))
		return &nobody;
	s = &k->slot[at & (IN_CHUNK - 1)];
	return atomic_load_explicit(&s->number, memory_order_relaxed) == number
		? s->x
		: &of->stale;
}

/* Makes its numbers invalid for ever. */
static void end_chunk(t_chunk *k)
{
	uintptr_t last = atomic_load(&k->first);

	for (int32_t i = 0; i < IN_CHUNK; i++)
		if (k->slot[i].generation > last)
			last = k->slot[i].generation;
	for (int32_t i = 0; i < IN_CHUNK; i++) {
		k->slot[i].generation = last;
		k->slot[i].x = NULL;
		atomic_store_explicit(
			&k->slot[i].number, 0, memory_order_relaxed);
	}
	atomic_store(&k->of, NULL);
	atomic_store(&k->first, last + 1);
}

static void end_chunks(void *arg)
{
	tensors *t = arg;

	pthread_mutex_lock(&lock);
	while (t->chunks != NULL) {
		t_chunk *k = t->chunks;

		t->chunks = k->next;
		end_chunk(k);
		k->next = free_chunks;
		free_chunks = k;
	}
	pthread_mutex_unlock(&lock);
}

void t_handles_new(tensors *t)
{
	arena_defer(t->a, end_chunks, t);
}

tensor *t_check(const tensors *t, const tensor *x)
{
	loc at = t_here(t);

	if (x == NULL)
		env_fail(t->e, TN_EINVAL, "tensor.handle", at,
			"a tensor is NULL");
	if (x->mark == TENSOR_DONATED)
		env_fail(t->e, TN_EINVAL, "tensor.donated", at,
			"a tensor is used whose memory was donated to a "
			"compiled function: donate a copy, or use the output");
	if (x->mark != TENSOR_LIVE)
		env_fail(t->e, TN_EINVAL, "tensor.handle", at,
			"a tensor is used that was dropped, or whose scope was "
			"left: tn_keep moves one out of its scope");
	if (x->of != t)
		env_fail(t->e, TN_EINVAL, "tensor.handle", at,
			"a tensor belongs to another context");
	return (tensor *)(uintptr_t)x;
}
