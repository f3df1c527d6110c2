/*
 * fuse_index.c: where in a private buffer of a kernel an element of its tensor is.
 */
#include "fuse_index.h"

/* The number of elements between neighbours along a variable. */
static int64_t stride_in(const fuse_kernel *k, const fuse_buf *b, int32_t var)
{
	for (int32_t i = 0; i < k->n_eqns; i++) {
		const fuse_eqn *e = &k->eqn[i];

		for (int32_t c = 0; c < e->e.n_out; c++) {
			if (e->e.out[c] != b->tensor)
				continue;
			for (int32_t t = 0; t < e->out_at->n; t++)
				if (e->out_at->t[t].atom->axis == var)
					return e->out_at->t[t].coef;
		}
	}
	return 1;
}

const ix_form *fuse_buf_index(fuse_plan *p, const fuse_kernel *k,
	const fuse_buf *b, const ix_form *at)
{
	ix *x = p->s->x;
	ix_dom d = {.box = {.n = k->n_vars, .extent = k->var_extent}};
	const ix_form *sum = ix_const(x, 0);

	for (int32_t i = 0; i < b->n_vars; i++) {
		int64_t extent = k->var[b->var[i]].extent;
		const ix_form *q = ix_div(
			x, &d, at, stride_in(k, b, b->var[i]));

		q = ix_mod(x, &d, q, extent);
		sum = ix_add(x, &d, ix_scale(x, sum, extent), q);
	}
	return sum;
}
