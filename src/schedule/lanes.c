/*
 * lanes.c: which loop should have lanes: what vector.c and distribute.c ask.
 *
 * A loop is better than the loops in its body if its accesses jump less. It
 * qualifies if its iterations are independent, or would be once the sums over
 * it are in a loop of their own; whether they go there depends in turn on
 * whether the loop would have the lanes.
 */
#include "schedule/lanes.h"

bool loop_has_loops(const loop_node *n)
{
	int32_t i;

	for (i = 0; i < n->n_child; i++)
		if (loop_is_loop(n->child[i]))
			return true;
	return false;
}

/*
 * May a scatter have lanes along var? Iterations of a parallel variable update
 * different elements, which are all known to be in the tensor.
 */
static bool scatters_along(const loop_kernel *k, const loop_eqn *e, int32_t var)
{
	int64_t min, max;

	ix_range(&k->dom, e->at, &min, &max);
	return (e->left & BIT(var)) != 0 && min >= 0 &&
	       max < k->s->tensor.at[e->e->out[0]].numel;
}

bool loop_parallel_below(const loop_kernel *k, const loop_node *n, int32_t var)
{
	int32_t i;

	if (!loop_is_loop(n)) {
		const loop_eqn *e = &k->eqn[n->eqn];

		if (e->push)
			return n->kind == LOOP_STMT
				? scatters_along(k, e, var)
				: (loop_form_vars(e->start_at) & BIT(var)) != 0;
		return (e->left & BIT(var)) != 0 && e->scan_var != var;
	}
	for (i = 0; i < n->n_child; i++)
		if (!loop_parallel_below(k, n->child[i], var))
			return false;
	return true;
}

static bool may_move(const loop_kernel *k, const loop_node *n)
{
	return n->kind == LOOP_FOR && n->lanes <= 1 && n->unroll <= 1 &&
	       !n->parallel && !n->backward && n->n_clip == 0 &&
	       n->n_needs == 0 && n->twin == NULL &&
	       k->var[n->var].kind == AXIS_P;
}

bool loop_may_swap(const loop_kernel *k, const loop_node *n)
{
	return n->n_child == 1 && may_move(k, n) && may_move(k, n->child[0]) &&
	       loop_parallel_below(k, n, n->var) &&
	       loop_parallel_below(k, n->child[0], n->child[0]->var);
}

void loop_swap(loop_node *n)
{
	int32_t v = n->var;

	n->var = n->child[0]->var;
	n->child[0]->var = v;
}

/* May lanes share a scan: can they combine its elements, and are they threads, which
 * one after the other would leave idle? */
static bool scans_in_lanes(const loop_kernel *k, const loop_node *n)
{
	const loop_node *loop = n->up;
	int32_t var = k->eqn[n->eqn].scan_var;

	if (k->machine->block.warps <= 1 || loop->kind != LOOP_FOR ||
		loop->var != var || loop->n_clip > 0 || loop->n_needs > 0)
		return false;
	while ((loop = loop->up) != NULL) /* it is walked as a whole */
		if (loop->var == var)
			return false;
	return loop_scan_monoid(k, &k->eqn[n->eqn]) >= 0;
}

bool loop_lanes_allowed(const loop_kernel *k, const loop_node *n, int32_t var)
{
	int32_t i;

	if (!loop_is_loop(n))
		return (!k->eqn[n->eqn].push || n->kind != LOOP_STMT ||
			       scatters_along(k, &k->eqn[n->eqn], var)) &&
		       (k->eqn[n->eqn].scan_var != var ||
			       scans_in_lanes(k, n));
	for (i = 0; i < n->n_child; i++)
		if (!loop_lanes_allowed(k, n->child[i], var))
			return false;
	return true;
}

int32_t loop_lanes_for(loop_kernel *k, const loop_node *n)
{
	struct loop_widest w = {k, n->var, 1};
	int32_t lanes;

	loop_widest(&w, n);
	lanes = machine_lanes(k->machine, w.bytes);
	while (lanes > k->machine->schedule.least_lanes &&
		lanes > k->var[n->var].extent &&
		(lanes / 2 >= k->var[n->var].extent || !loop_may_part(k, n)))
		lanes /= 2; /* short rows use a part of a register */
	return lanes < 2 ? 1 : lanes;
}

bool loop_too_few(loop_kernel *k, const loop_node *n, int32_t lanes)
{
	int64_t ext = k->var[n->var].extent;

	return ext < lanes && (ext <= lanes / 2 || !loop_may_part(k, n));
}

int64_t loop_inside(const loop_kernel *k, const loop_node *n)
{
	int64_t most = 1;
	int32_t i;

	for (i = 0; i < n->n_child; i++) {
		const loop_node *c = n->child[i];
		int64_t w;

		if (!loop_is_loop(c))
			continue;
		w = loop_inside(k, c);
		if (c->kind == LOOP_FOR)
			w = w > INT64_MAX / k->var[c->var].extent
				    ? INT64_MAX
				    : w * k->var[c->var].extent;
		most = w > most ? w : most;
	}
	return most;
}

bool loop_is_small(const loop_kernel *k, const loop_node *n)
{
	return loop_inside(k, n) <= k->machine->schedule.small_inside;
}

/* The jumps if every innermost loop below had the lanes. */
static double jumps_inside(loop_kernel *k, const loop_node *n)
{
	double sum = 0;
	bool unit;
	int32_t i;

	if (!loop_has_loops(n) && n->kind == LOOP_FOR)
		return loop_jumps(k, n, n->var, &unit);
	for (i = 0; i < n->n_child; i++)
		if (loop_is_loop(n->child[i]))
			sum += jumps_inside(k, n->child[i]);
	return sum;
}

bool loop_adds_up(const loop_kernel *k, const loop_node *n, int32_t var)
{
	const loop_eqn *e = &k->eqn[n->eqn < 0 ? 0 : n->eqn];

	return n->kind == LOOP_STMT && (e->reduced & BIT(var)) != 0 &&
	       !e->push && e->scan_var < 0 && !e->stage && !e->pack;
}

int32_t loop_sums_of(loop_kernel *k, const loop_node *n, bool *rest)
{
	int32_t sums = 0;
	bool loops = false, free = true;

	for (int32_t i = 0; i < n->n_child; i++) {
		const loop_node *c = n->child[i];

		if (loop_adds_up(k, c, n->var)) {
			sums++;
			continue;
		}
		loops |= loop_is_loop(c);
		free &= loop_parallel_below(k, c, n->var);
	}
	*rest = loops && free;
	return sums;
}

bool loop_may_distribute(loop_kernel *k, const loop_node *n)
{
	bool rest;

	if (n->kind != LOOP_FOR || n->backward || n->lanes > 1 ||
		loop_sums_of(k, n, &rest) == 0 || !rest || !loop_is_small(k, n) ||
		!loop_wants_lanes(k, n))
		return false;
	if (loop_writes_input(k))
		loop_decide(k, DECIDE_APART_IN_PLACE, n->var, -1, 0, 0);
	return !loop_writes_input(k);
}

/*
 * Does n walk rows that can have lanes, with few iterations inside (pixels around
 * a sliding window), and with fewer jumps than lanes of var?
 */
static bool takes_lanes(loop_kernel *k, const loop_node *n, int32_t var)
{
	int64_t ext = k->var[n->var].extent;
	bool unit;

	return n->kind == LOOP_FOR && loop_has_loops(n) && !n->backward &&
	       ext >= (loop_may_part(k, n)
				      ? k->machine->schedule.least_lanes + 1
				      : machine_lanes(k->machine, 8)) &&
	       loop_is_small(k, n) &&
	       (loop_parallel_below(k, n, n->var) ||
		       loop_may_distribute(k, n)) &&
	       loop_jumps(k, n, n->var, &unit) < loop_jumps(k, n, var, &unit);
}

/* Do all innermost loops below n only add up? Threads are lanes of any sum. */
static bool adds_up(const loop_kernel *k, const loop_node *n)
{
	if (k->machine->block.warps > 1)
		return false;
	for (int32_t i = 0; i < n->n_child; i++)
		if (loop_is_loop(n->child[i])
				? !adds_up(k, n->child[i])
				: !loop_has_loops(n) && n->kind == LOOP_FOR &&
					  !loop_adds_up(k, n->child[i], n->var))
			return false;
	return true;
}

/* .. for any loop but that of var to have lanes; those of a sum would have to be added
 * up, too, for each element */
static bool too_short_inside(loop_kernel *k, const loop_node *n, int32_t var)
{
	int64_t least = machine_lanes(k->machine, 8);
	int64_t sum = 2 * k->machine->schedule.least_lanes;
	int32_t i;

	if (!loop_has_loops(n) && n->kind == LOOP_FOR)
		return k->var[n->var].extent <
		       (sum > least && adds_up(k, n) ? sum : least);
	for (i = 0; i < n->n_child; i++)
		if (loop_is_loop(n->child[i]) &&
			(takes_lanes(k, n->child[i], var) ||
				!too_short_inside(k, n->child[i], var)))
			return false;
	return true;
}

static bool has_lanes(const loop_node *n)
{
	if (n->lanes > 1)
		return true;
	for (int32_t i = 0; i < n->n_child; i++)
		if (has_lanes(n->child[i]))
			return true;
	return false;
}

/* Is there a loop below whose lanes jump less than those of top? */
static bool better_below(
	loop_kernel *k, const loop_node *n, const loop_node *top)
{
	bool unit;

	if (n != top && n->kind == LOOP_FOR &&
		loop_parallel_below(k, n, n->var) &&
		k->var[n->var].extent >= loop_lanes_for(k, n) &&
		loop_jumps(k, n, n->var, &unit) <
			loop_jumps(k, n, top->var, &unit))
		return true;
	for (int32_t i = 0; i < n->n_child; i++)
		if (loop_is_loop(n->child[i]) &&
			better_below(k, n->child[i], top))
			return true;
	return false;
}

/* Do all innermost loops below walk scans that no lanes can share, where lanes are
 * threads? Then those of a loop around are better, wherever they lie. */
static bool scans_alone(const loop_kernel *k, const loop_node *n)
{
	bool all = loop_has_loops(n);

	if (k->machine->block.warps <= 1)
		return false;
	if (!all)
		return n->kind == LOOP_FOR && !loop_lanes_allowed(k, n, n->var);
	for (int32_t i = 0; i < n->n_child; i++)
		if (loop_is_loop(n->child[i]))
			all &= scans_alone(k, n->child[i]);
	return all;
}

bool loop_wants_lanes(loop_kernel *k, const loop_node *n)
{
	bool unit;
	double here = loop_jumps(k, n, n->var, &unit), inside;
	int32_t lanes = loop_lanes_for(k, n);

	if (lanes < 2 || n->backward || loop_too_few(k, n, lanes) || has_lanes(n))
		return false;
	if (too_short_inside(k, n, n->var))
		return !better_below(k, n, n);
	inside = jumps_inside(k, n);
	return scans_alone(k, n) ||
	       (unit && (here < inside ||
				(here == inside && loop_is_small(k, n) &&
					adds_up(k, n) && !better_below(k, n, n))));
}
