/*
 * tail.c: finds the tail of a kernel, which runs after its loops.
 *
 * Consumes a set whose members share no loop; finds the members that are its
 * tail: they are small and no other member reads them, so they can run once,
 * after the others. The others must share a loop.
 *
 *   for b { .. z += l[b] }  o = z / 512        o is the tail
 *
 * A tail costs its arithmetic, not a launch.
 */
#include "fuse/inner.h"

/* Does w overwrite what u reads? */
static bool destroys(const fuse_state *f, const eqn_unit *w, const eqn_unit *u)
{
	const settled *q = f->w;

	for (int32_t i = 0; i < q->waits_of[u->source].n; i++)
		if (q->wait.at[q->waits_of[u->source].at[i]].writer ==
			w->source)
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

/* Marks up to `most` members from the end; returns the number of the others. */
static int32_t mark(fuse_state *f, int32_t n, eqn_unit *const *unit,
	int32_t most, bool *is_tail)
{
	int64_t volume = 0, all = 0, room;
	int32_t n_tail = 0;

	for (int32_t i = 0; i < n; i++) {
		is_tail[i] = false;
		all += unit[i]->volume;
	}
	room = all / f->t->fusion.tail_part < f->t->fusion.serial_volume
		       ? all / f->t->fusion.tail_part
		       : f->t->fusion.serial_volume;
	for (int32_t i = n - 1; i >= 0 && n_tail < most; i--) {
		const eqn_unit *u = unit[i];
		bool joins = false, needed = false;

		if (u->e.opaque != NULL || u->e.push != NULL ||
			volume + u->volume > room)
			continue;
		for (int32_t j = 0; j < n; j++) {
			bool reader = reads_from(unit[j], u);
			bool writer = destroys(f, unit[j], u);

			/* it reads a member, or the tail depends on it */
			joins |= reads_from(u, unit[j]) ||
				 (is_tail[j] && (reader || writer));
			needed |= !is_tail[j] && (reader || writer);
		}
		if (!joins || needed)
			continue;
		is_tail[i] = true;
		volume += u->volume;
		n_tail++;
	}
	return n - n_tail;
}

/* Does each member of the tail depend on the others, or does a member that
 * depends on them need it? */
static bool is_behind(fuse_state *f, int32_t n, eqn_unit *const *unit,
	const bool *is_tail)
{
	bool *behind = arena_array(fuse_scratch(f), bool, n);
	bool all = true, changed = true;

	for (int32_t i = 0; i < n; i++)
		for (int32_t j = 0; j < n; j++)
			behind[i] |= is_tail[i] && !is_tail[j] &&
				     reads_from(unit[i], unit[j]);
	while (changed) {
		changed = false;
		for (int32_t i = 0; i < n; i++) {
			bool now = behind[i];

			for (int32_t j = 0; j < n && is_tail[i]; j++)
				now |= behind[j] &&
				       (reads_from(unit[i], unit[j]) ||
					       reads_from(unit[j], unit[i]) ||
					       destroys(f, unit[j], unit[i]));
			changed |= now != behind[i];
			behind[i] = now;
		}
	}
	for (int32_t i = 0; i < n; i++)
		all &= behind[i] || !is_tail[i];
	return all;
}

part_set *fuse_part_of(fuse_state *f, int32_t n, eqn_unit *const *unit,
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

/*
 * Chooses the tail such that the others share most iterations, and of these the
 * shortest: else a sum of column sums would turn all of it into a sum by rows.
 */
int32_t fuse_tail(
	fuse_state *f, int32_t n, eqn_unit *const *unit, bool *is_tail)
{
	bool *now = arena_array(fuse_scratch(f), bool, n);
	int32_t last = n, n_main = 0;
	int64_t most_shared = 1;

	for (int32_t most = 1; most <= f->t->fusion.tail_eqns; most++) {
		int32_t left = mark(f, n, unit, most, now);
		int64_t shared = 1;
		part_set *s;

		if (left == last || left == 0)
			break; /* it cannot get better */
		last = left;
		if (!is_behind(f, n, unit, now))
			continue;
		s = fuse_part_of(f, n, unit, now, false);
		for (int32_t i = 0; i < s->class.n; i++)
			shared *= s->class.at[i].extent;
		if (shared <= most_shared)
			continue;
		most_shared = shared;
		n_main = left;
		memcpy(is_tail, now, (size_t)n * sizeof *now);
	}
	return n_main;
}

void fuse_tail_longest(
	fuse_state *f, int32_t n, eqn_unit *const *unit, bool *is_tail)
{
	(void)mark(f, n, unit, f->t->fusion.tail_eqns, is_tail);
}
