/*
 * piece.c: the elements of one process, numbered by themselves.
 *
 * Consumes a layout and a process; produces forms from the global number of an
 * element to its position among those of the process, and back. Cuts are runs of
 * the number, so both are sums of digits:
 *
 *     f32[10,6], rows in blocks of 3, process 1:
 *         position(g) = ((g div 6) mod 10 - 3) * 6 + g mod 6
 *         number(p) = p + 18, once it is simplified
 *
 * Guarantees: positions are in the order of the numbers, without gaps.
 */
#include "layout/local.h"

static int64_t block_of(const shard_mesh *m, int64_t process, const shard_tag *t)
{
	return shard_mesh_at(m, process, t->mesh) / t->mult % t->count;
}

/*
 * What the cuts of one run, one inside the other, leave to the process. A cut
 * stands behind the one whose blocks it cuts.
 */
static void clip(const shard_layout *l, const shard_mesh *m, int64_t process,
	int32_t tag, shard_span *s)
{
	int64_t start[SHARD_MAX_TAGS], end[SHARD_MAX_TAGS];
	int64_t lo = 0, hi = s->hi / s->lo;

	for (int32_t i = tag; i < l->n; i++) {
		const shard_tag *t = &l->tag[i];
		int64_t from = 0, to = s->hi / s->lo;

		if (layout_top(l, i) != tag)
			continue;
		if (layout_is_wide(t)) { /* nothing is inside it */
			shard_run r = layout_wide_block(
				t, block_of(m, process, t));

			s->start = r.from;
			s->n = r.n;
			return;
		}
		if (t->within >= 0) {
			from = start[t->within];
			to = end[t->within];
		}
		start[i] = from + block_of(m, process, t) * t->block;
		end[i] = start[i] + t->block < to ? start[i] + t->block : to;
		if (start[i] > to)
			start[i] = end[i] = to;
		lo = start[i] > lo ? start[i] : lo;
		hi = end[i] < hi ? end[i] : hi;
	}
	s->start = lo;
	s->n = hi > lo ? hi - lo : 0;
}

static bool has_inner(const shard_layout *l, int32_t tag)
{
	for (int32_t i = 0; i < l->n; i++)
		if (l->tag[i].within == tag)
			return true;
	return false;
}

shard_piece shard_piece_of(arena *a, const shard_layout *l,
	const shard_mesh *m, int64_t process)
{
	shard_piece w = {.numel = l->numel, .elems = l->numel};
	int64_t before = 1;
	bool empty = false;

	for (int32_t i = 0; i < l->n && l->numel > 0; i++) {
		const shard_tag *t = &l->tag[i];
		shard_span s = {.mesh = t->mesh, .lo = t->lo, .hi = t->hi};
		int32_t k = w.n;

		if (t->within >= 0)
			continue;
		if (t->block >= t->hi / t->lo && !has_inner(l, i) &&
			!layout_is_wide(t)) {
			/* one process along the axis has all of it */
			if (block_of(m, process, t) != 0)
				empty = true;
			continue;
		}
		clip(l, m, process, i, &s);
		for (; k > 0 && w.span[k - 1].lo > s.lo; k--)
			w.span[k] = w.span[k - 1];
		w.span[k] = s;
		w.n++;
	}
	for (int32_t i = 0; i < w.n; i++) {
		if (w.span[i].lo % before != 0 || w.span[i].hi % w.span[i].lo)
			env_bug(arena_env(a), "shard.window",
				"the cuts %lld and %lld:%lld cross",
				(long long)before, (long long)w.span[i].lo,
				(long long)w.span[i].hi);
		before = w.span[i].hi;
	}
	if (l->numel % before != 0)
		env_bug(arena_env(a), "shard.window",
			"a cut of %lld in %lld elements", (long long)before,
			(long long)l->numel);
	for (int32_t i = 0; i < w.n; i++)
		w.elems = w.elems / (w.span[i].hi / w.span[i].lo) * w.span[i].n;
	if (empty)
		w.elems = 0;
	return w;
}

static const ix_form *digit(
	ix *x, const ix_dom *d, const ix_form *f, int64_t lo, int64_t hi)
{
	if (hi == lo)
		return ix_const(x, 0);
	if (lo > 1)
		f = ix_div(x, d, f, lo);
	return hi > 0 ? ix_mod(x, d, f, hi / lo) : f;
}

const ix_form *shard_span_digit(
	ix *x, const ix_dom *d, const shard_piece *w, int32_t i, const ix_form *g)
{
	const shard_span *s = &w->span[i];

	return digit(x, d, g, s->lo, s->hi == w->numel ? 0 : s->hi);
}

/* Sum of digits: of runs that are cut and of those between them. */
static const ix_form *renumber(ix *x, const ix_dom *d, const shard_piece *w,
	const ix_form *f, bool to_global)
{
	const ix_form *sum = ix_const(x, 0);
	int64_t from = 1, to = 1; /* stride of the run: in f, in the result */

	for (int32_t i = 0; i <= w->n; i++) {
		const shard_span *s = &w->span[i];
		int64_t before = i == 0 ? 1 : w->span[i - 1].hi, gap;
		bool last = i == w->n, top; /* no mod above */

		gap = (last ? w->numel : s->lo) / before;
		sum = ix_add(x, d, sum,
			ix_scale(x, digit(x, d, f, from, last ? 0 : from * gap),
				to));
		if (last)
			break;
		from *= gap;
		to *= gap;
		gap = to_global ? s->n : s->hi / s->lo;
		top = i == w->n - 1 && s->hi == w->numel;
		sum = ix_add(x, d, sum,
			ix_scale(x,
				ix_addc(x,
					digit(x, d, f, from,
						top ? 0 : from * gap),
					to_global ? s->start : -s->start),
				to));
		if (top)
			break;
		from *= gap;
		to *= to_global ? s->hi / s->lo : s->n;
	}
	return sum;
}

const ix_form *shard_index_of(
	ix *x, const ix_dom *d, const shard_piece *w, const ix_form *g)
{
	return w->n == 0 ? g : renumber(x, d, w, g, false);
}

const ix_form *shard_number_of(
	ix *x, const ix_dom *d, const shard_piece *w, const ix_form *p)
{
	return w->n == 0 ? p : renumber(x, d, w, p, true);
}
