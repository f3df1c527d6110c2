/*
 * unroll.c: short loops whose variable numbers lanes, to be unrolled as a whole.
 *
 *   for %l = 0 .. 8 unroll {
 *     %9: f32 = lane %7, %l
 *     set %r2[%l] = sin %9
 *   }
 *
 * Each iteration then takes and sets a lane that is known, and the vector stays in
 * a register; by a number that is not known, it would go through memory. A longer
 * body stays a loop: its text would be too long. So do many loops side by side, which
 * move the sums of a tile from and to memory: memory takes little of its time.
 */
#include "kern/local.h"

static bool is_variable(const kern_form *f, kern_val v)
{
	return f->n == 1 && f->c0 == 0 && f->t[0].coef == 1 && f->t[0].v == v;
}

/* Is it v that numbers lanes in the block? *n: its statements. */
static bool numbers_lanes(
	const kern_kernel *k, const kern_block *b, kern_val v, int64_t *n)
{
	bool found = false;

	for (int32_t i = 0; i < b->list.n; i++) {
		const kern_stmt *s = b->list.at[i];
		kern_val x = s->kind == KERN_LET ? s->v : s->x;

		*n += s->kind == KERN_FOR ? INT32_MAX : 1;
		if (s->kind == KERN_SET_LANE)
			found |= is_variable(s->lo, v);
		if (x != 0 && kern_at(k, x)->op == KERN_LANE)
			found |= is_variable(kern_at(k, x)->form[0], v);
		if (s->kind == KERN_IF)
			found |= numbers_lanes(k, &s->body, v, n) |
				 numbers_lanes(k, &s->other, v, n);
	}
	return found;
}

bool kern_may_unroll(const kern_stmt *s)
{
	int64_t lo = s->lo->c0, hi = s->hi->c0;

	return s->lo->n == 0 && s->hi->n == 0 && s->step == 1 && !s->by_warp &&
	       !s->by_lane && hi > lo &&
	       (uint64_t)hi - (uint64_t)lo <= KERN_MAX_LANES;
}

static void each_loop(
	kern_kernel *k, const kern_block *b, int32_t fewer, int32_t many)
{
	int32_t found = 0;

	for (int32_t i = 0; i < b->list.n; i++) {
		kern_stmt *s = b->list.at[i];
		int64_t n = 0;

		if (s->kind == KERN_FOR && kern_may_unroll(s))
			s->unroll = numbers_lanes(k, &s->body, s->v, &n) &&
				    n < fewer;
		found += s->unroll;
		each_loop(k, &s->body, fewer, many);
		each_loop(k, &s->other, fewer, many);
	}
	for (int32_t i = 0; i < b->list.n && found >= many; i++)
		b->list.at[i]->unroll = false;
}

void kern_unroll(kern_kernel *k, int32_t fewer, int32_t many)
{
	for (int32_t i = 0; i < k->n_phases; i++)
		each_loop(k, &k->phase[i].body, fewer, many);
}
