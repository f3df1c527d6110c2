/*
 * draw_options.c: the machine that a program is compiled for, and how.
 *
 * Vector widths, caches and costs change what kernels are made, never their
 * values.
 */
#include "prop.h"

compile_options draw_options(
	arena *a, const prop_case *c, const prop_options *po)
{
	static const int32_t bytes[] = {64, 32, 16, 64};
	rng r = rng_new(c->seed ^ UINT64_C(0xc0ffee), c->index);
	int32_t width = bytes[rng_below(&r, 4)];
	machine *m = arena_copy(a,
		po->warpgroups ? machine_find("cuda/sm_90a")
		: po->simt     ? machine_find("cuda/sm_90")
			       : machine_of_c(width, 16,
				    (machine_dots)rng_below(&r, MACHINE_N_DOTS)),
		sizeof *m);
	machine *pricing = arena_copy(
		a, machine_find(m->priced_as), sizeof *pricing);
	compile_options o = compile_options_default(m);

	o.pricing = pricing;
	o.verify = true;
	if (po->simt)
		o.target = &simt_warps;
	if (po->warpgroups) /* so few that no tile is made smaller for them */
		m->threads = 8;
	if (levels_are_broken())
		levels_break(&o);
	o.no_fusion = rng_percent(&r, 5);
	if (rng_percent(&r, 60))
		m->schedule.chunk_elems = INT64_C(1) << rng_range(&r, 2, 8);
	if (rng_percent(&r, 30)) {
		m->memory[MACHINE_L1].bytes = 1 << rng_range(&r, 8, 12);
		m->memory[MACHINE_L2].bytes = 1 << rng_range(&r, 10, 14);
	}
	if (rng_percent(&r, 20)) {
		m->schedule.stream_bytes = 1 << rng_range(&r, 6, 12);
		m->memory[MACHINE_L3].bytes = 0;
	}
	if (rng_percent(&r, 5))
		m->unscheduled = true;
	if (rng_percent(&r, 40)) { /* what to fuse must not matter */
		pricing->launch_s = rng_percent(&r, 50) ? 1e-9 : 1e-4;
		pricing->threads = (int32_t)rng_range(&r, 1, 16);
		pricing->memory[MACHINE_L2].bytes = 1 << rng_range(&r, 10, 20);
	}
	o.plan.apart = rng_percent(&r, po->asan ? 80 : 30);
	if (rng_percent(&r, 50))
		m->schedule.owner_updates = 1 << rng_range(&r, 0, 4);
	o.in_loop = rng_percent(&r, 40); /* as if it were the body of a loop */
	if (c->far && rng_percent(&r, 75)) {
		m->memory[MACHINE_L2].bytes = 1 << rng_range(&r, 9, 14);
		m->memory[MACHINE_L3].bytes = 1 << rng_range(&r, 10, 16);
		if (rng_percent(&r, 50)) /* rows that are long enough to be read side by side */
			m->schedule.abreast_bytes = 64;
	}
	return o;
}
