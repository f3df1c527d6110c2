/*
 * estimate_term.c: what most of a kernel's time is estimated to be.
 */
#include "schedule/estimate.h"

loop_term loop_estimate_term(const loop_estimate *e)
{
	loop_term best = LOOP_TERM_LAUNCH;

	for (int32_t t = 0; t < LOOP_N_TERMS; t++)
		if (loop_estimate_part(e, (loop_term)t) >
			loop_estimate_part(e, best))
			best = (loop_term)t;
	return best;
}

const char *loop_term_name(loop_term t)
{
	static const char *const name[LOOP_N_TERMS] = {
		[LOOP_TERM_VECTOR] = "arithmetic",
		[LOOP_TERM_SCALAR] = "arithmetic without lanes",
		[LOOP_TERM_ACCESS] = "loads and stores",
		[LOOP_TERM_TILE] = "products in tiles",
		[LOOP_TERM_MEMORY] = "memory",
		[LOOP_TERM_LAUNCH] = "the launch",
	};

	return name[t];
}
