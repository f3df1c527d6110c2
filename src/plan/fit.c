/*
 * fit.c: places the tensors of the slab again, the largest first.
 *
 * Consumes locations whose first and last steps are known. Each tensor takes the
 * lowest offset at which it touches none of those before it that are used at the
 * same time. Step by step (locate.c) holes are left between tensors of different
 * sizes; here small ones go into what is left beside large ones:
 *
 *     a: 2 bytes, steps 0-1   b: 1, steps 1-2   c: 3, steps 2-3
 *     by step   a 0, b 2, c 3: 6 bytes          by size   c 0, a 0, b 3: 4 bytes
 *
 * Source: greedy by size; Pisarchyk, Lee, "Efficient memory management for deep
 * neural net inference", 2020, section 5.2.
 */
#include "plan/private.h"

#include <stdlib.h>

/* Beyond this the time, which is quadratic, is not worth it. */
enum { MOST_FITTED = 1 << 13 };

typedef struct piece {
	int32_t tensor, first, last;
	size_t bytes, offset;
} piece;

static int by_size(const void *x, const void *y)
{
	const piece *a = x, *b = y;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return a->tensor < b->tensor ? -1 : 1;
}

/* The pieces with memory of their own. */
static int32_t list(const plan *p, piece *all, size_t guard)
{
	int32_t n = 0;

	for (int32_t t = 0; t < p->s->tensor.n; t++) {
		const plan_location *at = &p->location[t];

		if (at->where != PLAN_SLAB)
			continue;
		all[n++] = (piece){.tensor = t,
			.first = at->first,
			.last = at->last,
			.bytes = plan_round_up(at->bytes + guard)};
	}
	return n;
}

/* Bytes that are in use at one time, at most. */
static size_t most_used(const plan *p, arena *a, int32_t n, const piece *all)
{
	size_t *begin = arena_array(a, size_t, p->step.n + 1);
	size_t *end = arena_array(a, size_t, p->step.n + 1);
	size_t now = 0, most = 0;

	for (int32_t i = 0; i < n; i++) {
		begin[all[i].first] += all[i].bytes;
		end[all[i].last] += all[i].bytes;
	}
	for (int32_t s = 0; s < p->step.n; s++) {
		now += begin[s];
		most = now > most ? now : most;
		now -= end[s];
	}
	return most;
}

/* Gives pieces 0 to n - 1 their offsets; returns where the slab ends. */
static size_t fit(arena *a, int32_t n, piece *all)
{
	piece **placed = arena_array(a, piece *, n + 1); /* by offset */
	size_t end = 0;

	for (int32_t i = 0; i < n; i++) {
		piece *x = &all[i];
		int32_t k;

		for (k = 0; k < i; k++) {
			const piece *q = placed[k];

			if (q->last < x->first || x->last < q->first)
				continue;
			if (q->offset >= x->offset + x->bytes)
				break;
			if (q->offset + q->bytes > x->offset)
				x->offset = q->offset + q->bytes;
		}
		for (k = i; k > 0 && placed[k - 1]->offset > x->offset; k--)
			placed[k] = placed[k - 1];
		placed[k] = x;
		if (x->offset + x->bytes > end)
			end = x->offset + x->bytes;
	}
	return end;
}

void plan_fit(plan *p, arena *a, size_t guard)
{
	piece *all = arena_array(a, piece, p->s->tensor.n + 1);
	int32_t n = list(p, all, guard);
	size_t end;

	if (n > MOST_FITTED || p->tensor_bytes <= most_used(p, a, n, all))
		return;
	qsort(all, (size_t)n, sizeof *all, by_size);
	end = fit(a, n, all);
	if (end >= p->tensor_bytes)
		return;
	p->tensor_bytes = end;
	for (int32_t i = 0; i < n; i++)
		p->location[all[i].tensor].offset = all[i].offset;
}
