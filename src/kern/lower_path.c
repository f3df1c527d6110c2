/*
 * lower_path.c: the conditions under which an expression is evaluated, because it
 * is one side of selects.
 */
#include "kern/lower.h"

bool lw_path_mixed(const lowering *lw)
{
	for (int32_t i = 0; i < lw->path.n; i++)
		if (lw->path.at[i].c.lanes > 1)
			return true;
	return false;
}

static val with(lowering *lw, val all, val c)
{
	return all.id == 0 ? c : lw_and(lw, all, c);
}

static val condition(lowering *lw, const struct path *p, val c)
{
	return p->negated ? lw_not(lw, c) : c;
}

val lw_path(lowering *lw, kern_val lane)
{
	val all = {0, TN_BOOL, 1, 0};

	for (int32_t i = 0; i < lw->path.n; i++) {
		const struct path *p = &lw->path.at[i];
		val c = p->c;

		if (c.lanes > 1)
			c = lw_lane_of(lw, c,
				lane == 0 ? lw_num(lw, 0)
					  : lw_form_of(lw, lane));
		all = with(lw, all, condition(lw, p, c));
	}
	return all;
}

val lw_path_of_all(lowering *lw)
{
	val all = {0, TN_BOOL, 1, 0};

	for (int32_t i = 0; i < lw->path.n; i++)
		if (lw->path.at[i].c.lanes == 1)
			all = with(lw, all,
				condition(lw, &lw->path.at[i],
					lw->path.at[i].c));
	return all;
}

val lw_path_mask(lowering *lw, int32_t bytes)
{
	val all = {0, TN_BOOL, lw->lanes, bytes};

	for (int32_t i = 0; i < lw->path.n; i++) {
		const struct path *p = &lw->path.at[i];

		if (p->c.lanes > 1)
			all = with(lw, all,
				condition(lw, p,
					lw_to_mask(lw, p->c, bytes)));
	}
	return all;
}
