/*
 * verify_warps.c: what statements may do in a phase whose chunks are run by
 * blocks of warps.
 *
 * A loop "by warp" deals its iterations to the warps of the block; every other
 * statement is run by all of them alike. So memory may be written in such loops
 * only, registers that all warps have may not be set there, and what each warp
 * has of its own, an array of a block, belongs into the loop. A register `by warp` is
 * one for each of them: iteration n of each such loop has the n-th one.
 */
#include "kern/verify.h"

static bool by_warps(const struct kern_verifier *v)
{
	return v->k->phase[v->phase].warps > 1;
}

void kern_open_warps(struct kern_verifier *v, const kern_stmt *s)
{
	if (!by_warps(v))
		kern_refuse(v, "warp",
			"a loop by warp must stand in a phase of chunks `by N warps`");
	if (v->by_warp != NULL)
		kern_refuse(v, "warp",
			"a loop by warp stands in another one: the warps of the block are dealt out once");
	if (s->down || s->after != 0)
		kern_refuse(v, "loop",
			"a loop by warp must run up, without `after`");
	v->by_warp = s;
	v->first_touch = v->touch.n;
}

void kern_close_warps(struct kern_verifier *v)
{
	kern_verify_iterations(v, v->first_touch);
	v->by_warp = NULL;
}

void kern_verify_effect(struct kern_verifier *v)
{
	if (by_warps(v) && v->by_warp == NULL)
		kern_refuse(v, "warp",
			"all warps of the block would do this: it must stand in a loop `by warp`");
}

void kern_verify_set(struct kern_verifier *v, kern_val reg)
{
	if (v->by_warp != NULL && !v->of_warp[reg] && !v->each_warp[reg])
		kern_refuse(v, "warp",
			"the warps would set this register to different values: it must be declared in the loop `by warp`");
}

void kern_verify_each_warp(struct kern_verifier *v)
{
	if (!by_warps(v) || v->by_warp != NULL)
		kern_refuse(v, "warp",
			"a register `by warp` must be declared in a phase `by N warps`, in no loop `by warp`");
}

void kern_verify_own(struct kern_verifier *v)
{
	const kern_stmt *s = v->by_warp;
	int64_t most, warps = v->k->phase[v->phase].warps;

	if (s != NULL && mul_ok(warps, s->step, &most) &&
		kern_most(&v->range, kern_form_sub(v->k, s->hi, s->lo), most) <=
			most)
		return;
	kern_refuse(v, "warp",
		"each of the %d warps has this register: it must be used in a loop `by warp` of at most so many iterations",
		(int)warps);
}

void kern_verify_barrier(struct kern_verifier *v)
{
	if (!by_warps(v) || v->by_warp != NULL)
		kern_refuse(v, "warp",
			"a %s must stand where all warps of a block come: in a phase `by N warps`, in no loop `by warp`",
			v->s->kind == KERN_BARRIER  ? "barrier"
			: v->s->kind == KERN_COMMIT ? "commit"
			: v->s->kind == KERN_ASYNC  ? "copy in bulk"
						    : "wait");
}
