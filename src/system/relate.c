/*
 * relate.c: reads of one equation as elements of another one.
 *
 *   y[i, j] += p[64*i + j] for j;  p[a, b] = f(a, b)    axes of p: i, j of y
 */
#include "system/local.h"

bool ir_read_axes(ir_system *s, const sys_eqn *e, const ix_form *at, const sys_eqn *q,
	int32_t *axis)
{
	ix_dom d = {.box = ir_eqn_box(s, e)};

	for (int32_t i = q->n_left - 1; i >= 0; i--) {
		const ix_form *f = ix_mod(s->x, &d, at, q->axis[i].extent);
		int32_t a = 0;

		while (a < e->n_axes && (e->axis[a].extent != q->axis[i].extent ||
						f != ix_axis(s->x, &d, a)))
			a++;
		if (a == e->n_axes)
			return false;
		axis[i] = a;
		at = ix_div(s->x, &d, at, q->axis[i].extent);
	}
	return true;
}

const expr *ir_at_number(ir_system *s, const sys_eqn *q, const expr *e, const ix_dom *d,
	const ix_form *number)
{
	const ix_form *with[IR_MAX_AXES];
	ix_box box = ir_eqn_box(s, q);

	for (int32_t i = q->n_axes - 1; i >= 0; i--) {
		with[i] = ix_mod(s->x, d, number, q->axis[i].extent);
		number = ix_div(s->x, d, number, q->axis[i].extent);
	}
	return ex_subst(s, d, e, q->n_axes, box.extent, with, NULL, NULL);
}
