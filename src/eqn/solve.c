/*
 * solve.c: expresses axes of an equation as forms over the loop variables.
 *
 *     axis i of 24, digits (1,4) walked by v2 and (4,24) by v0:  i = 4*v0 + v2
 */
#include "eqn/eqn.h"

void eqn_solve(ir_system *s, const ix_dom *vars, const sys_eqn *e, int32_t n,
	const eqn_solved *at, const ix_form **out)
{
	ix *x = s->x;

	for (int32_t a = 0; a < e->n_axes; a++) {
		int64_t walked = 1;

		out[a] = ix_const(x, 0);
		for (int32_t i = 0; i < n; i++) {
			const eqn_digit *d = &at[i].d;

			if (d->axis != a)
				continue;
			walked *= d->hi / d->lo;
			out[a] = ix_add(x, vars, out[a],
				ix_scale(
					x, ix_axis(x, vars, at[i].var), d->lo));
		}
		if (walked != e->axis[a].extent)
			env_bug(arena_env(s->a), "eqn.solve",
				"%s: axis %d is not walked whole", e->label, a);
	}
}
