/*
 * estimate_window.c: estimates the cycles for which a processor waits for results.
 *
 * A processor starts operations of later iterations while it waits for those of
 * earlier ones, but it looks ahead only so far: over the work of some `window`
 * cycles. The operations of an iteration that wait for each other take `critical`
 * cycles. If that is more than the window, nothing is left to do for the
 * difference; where several iterations fit the window, they share it.
 *
 *   for i { r = 0  for k < 9 { r += x * w }  o = r / (1 + exp(-r)) }
 *   the sum has its value after 36 cycles, o after 72 more, for 30 cycles of work
 *
 * So two loops of short chains can be faster than one loop of a long chain.
 */
#include "schedule/estimate_local.h"

/* How many terms of the sum wait for each other in an iteration of the loop? */
static double steps_of(const estimate *w, const loop_eqn *e)
{
	double n = 1;

	for (int32_t i = w->depth - 1; i >= 0 && w->loop[i].unrolled; i--)
		if ((e->reduced & BIT(w->loop[i].var)) != 0)
			n *= w->loop[i].trips;
	return n;
}

/* Behind a sum along the lanes, its accumulators are added up, and then the halves
 * of their lanes, by a shuffle and an operation each. */
static double steps_behind(const estimate *w)
{
	double n = 0;

	for (int32_t i = 0; i < w->depth; i++)
		for (int32_t u = w->loop[i].node->unroll;
			u > 1 && w->loop[i].var == w->lane_var; u /= 2)
			n += 1;
	for (int32_t l = w->lanes; l > 1; l /= 2)
		n += 2;
	return n;
}

void estimate_ready(estimate *w, const loop_eqn *e, int32_t eqn)
{
	double chain = w->k->machine->cycles.chain, at = w->last_late;

	if (e->e->monoid != IR_SET)
		at += chain * steps_of(w, e);
	w->critical = at > w->critical ? at : w->critical;
	if (w->lanes > 1 && (e->reduced & BIT(w->lane_var)) != 0)
		at += chain * steps_behind(w);
	w->ready[eqn] = at;
	w->made[eqn] = w->n_made++;
}

double estimate_read(const estimate *w, int32_t tensor)
{
	int32_t eqn, comp;

	if (!loop_maker(w->k, tensor, &eqn, &comp) ||
		w->made[eqn] < w->made_outside)
		return 0;
	return w->ready[eqn];
}

static double cycles_of(const estimate *w)
{
	return w->out->vector_cycles + w->out->scalar_cycles +
	       w->k->machine->cycles.beside * w->out->access_cycles;
}

estimate_scope estimate_enter(estimate *w)
{
	estimate_scope outer = {w->critical, cycles_of(w), w->made_outside};

	w->critical = 0;
	w->made_outside = w->n_made;
	return outer;
}

void estimate_leave(estimate *w, estimate_scope outer, double times)
{
	double window = w->k->machine->cycles.window;
	double wait = w->critical - window;
	double work = times > 0 ? (cycles_of(w) - outer.cycles) / times : 0;

	if (wait > 0)
		w->out->wait_cycles += wait * times *
				       (work < window ? work / window : 1);
	w->critical = outer.critical;
	w->made_outside = outer.made_outside;
}

void estimate_scan(estimate *w, const loop_eqn *e, double times)
{
	double steps = 0;

	for (int32_t l = w->lanes; l > 1 && w->lane_var == e->scan_var; l /= 2)
		steps += 3; /* a shuffle, a choice, and an operation */
	w->out->vector_cycles +=
		times * steps * w->k->machine->cycles.vector_op;
}
