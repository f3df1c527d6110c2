/*
 * tail.c: what little comes after the loops of a kernel.
 *
 * Consumes a set whose members have no loop in common; tells which of them
 * are its tail: small, read by no other member, so that they can run once
 * when the others are complete. The others must share a loop.
 *
 *   for b { .. z += l[b] }  o = z / 512        o is the tail
 *
 * A tail costs its arithmetic, not a launch.
 */
#include "fuse/inner.h"

#include <math.h>

enum {
	LONGEST = 8, /* members of a tail */
	LITTLE = 8   /* a tail is at most this part of all */
};

/* Would the tail read what a member before it has changed? */
static bool reads_destroyed(const fuse_state *f, const eqn_unit *u, int32_t n,
	eqn_unit *const *unit)
{
	const settled *w = f->w;

	for (int32_t i = 0; i < w->waits_of[u->source].n; i++)
		for (int32_t j = 0; j < n; j++)
			if (w->wait.at[w->waits_of[u->source].at[i]].writer ==
				unit[j]->source)
				return true;
	return false;
}

static bool reads_from(const eqn_unit *u, const eqn_unit *maker)
{
	for (int32_t i = 0; i < u->n_reads; i++)
		for (int32_t k = 0; k < maker->e.n_out; k++)
			if (u->read[i].tensor == maker->e.out[k])
				return true;
	return false;
}

/* Marks up to `most` members from the end; how many are left. */
static int32_t mark(fuse_state *f, int32_t n, eqn_unit *const *unit,
	int32_t most, bool *is_tail)
{
	int64_t volume = 0, all = 0, room;
	int32_t n_tail = 0;

	for (int32_t i = 0; i < n; i++) {
		is_tail[i] = false;
		all += unit[i]->volume;
	}
	room = all / LITTLE < f->t->serial_volume ? all / LITTLE
						  : f->t->serial_volume;
	for (int32_t i = n - 1; i >= 0 && n_tail < most; i--) {
		const eqn_unit *u = unit[i];
		bool reads = false, needed = false;

		for (int32_t j = 0; j < n; j++) {
			reads |= j < i && reads_from(u, unit[j]);
			needed |= j > i && !is_tail[j] &&
				  reads_from(unit[j], u);
		}
		if (!reads || needed || u->e.opaque != NULL ||
			u->e.push != NULL ||
			volume + u->volume > room ||
			reads_destroyed(f, u, n, unit))
			continue;
		is_tail[i] = true;
		volume += u->volume;
		n_tail++;
	}
	return n - n_tail;
}

static part_set *part_of(fuse_state *f, int32_t n, eqn_unit *const *unit,
	const bool *is_tail, bool tail)
{
	eqn_unit **u = arena_array(fuse_scratch(f), eqn_unit *, n);
	int32_t m = 0;
	part_set *s;

	for (int32_t i = 0; i < n; i++)
		if (is_tail[i] == tail)
			u[m++] = unit[i];
	s = part_new(f, fuse_scratch(f), m, u);
	part_refine(s);
	part_classes(f, s);
	return s;
}

/* The shortest tail without which the others share a loop. */
int32_t fuse_tail(
	fuse_state *f, int32_t n, eqn_unit *const *unit, bool *is_tail)
{
	int32_t n_main = n;

	for (int32_t most = 1; most <= LONGEST; most++) {
		int32_t left = mark(f, n, unit, most, is_tail);

		if (left == n_main || left == 0)
			return 0; /* no more to be had */
		n_main = left;
		if (part_of(f, n, unit, is_tail, false)->class.n > 0)
			return n_main;
	}
	return 0;
}

double fuse_tail_seconds(fuse_state *f, int32_t n, eqn_unit *const *unit,
	fuse_sees *sees, void *arg, int64_t *shared)
{
	bool *is_tail = arena_array(fuse_scratch(f), bool, n);
	part_set *main;

	if (fuse_tail(f, n, unit, is_tail) == 0)
		return INFINITY;
	main = part_of(f, n, unit, is_tail, false);
	for (int32_t i = 0; i < main->class.n; i++)
		*shared *= main->class.at[i].extent;
	return fuse_seconds(f, main, sees, arg) - f->t->launch_s +
	       fuse_seconds(f, part_of(f, n, unit, is_tail, true), sees, arg);
}
