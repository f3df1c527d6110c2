/*
 * back_body.c: what the backward of a region reads, and recording its bodies
 * (region_back.c).
 */
#include "func/back.h"

/* ---- small calls ---- */

t_value *back_sum_of(tensors *t, t_value *x, t_value *y)
{
	t_read arg[2] = {{x, NULL, false, 0}, {y, NULL, false, 0}};
	const ir_type *type[2] = {&x->type, &y->type};

	return t_record(
		t, t_entry_named(t, "add", 2, type, 0, NULL), 2, arg)
		->result[0];
}

t_value *back_zeros(tensors *t, const ir_type *y)
{
	ir_attr attr[] = {
		{.name = "shape",
			.kind = ATTR_INTS,
			.n = y->rank,
			.ints = y->shape},
		{.name = "value", .kind = ATTR_REAL, .f = 0},
		{.name = "dtype", .kind = ATTR_DTYPE, .dtype = y->dtype}};

	return t_record(
		t, t_entry_named(t, "fill", 0, NULL, 3, attr), 0, NULL)
		->result[0];
}

t_value *back_added(tensors *t, t_value *x, t_value *y)
{
	return x == NULL ? y : y == NULL ? x : back_sum_of(t, x, y);
}

/* ---- what the backward reads of the region ---- */

int32_t back_operand(deriving *d, enum side side, int32_t i)
{
	arena *a = d->t->a;

	for (int32_t k = 0; k < d->seen.n; k++)
		if (d->seen.at[k].side == side && d->seen.at[k].i == i)
			return k;
	*vec_push(a, &d->seen) = (seen){side, i};
	*vec_push(a, &d->d.op) =
		side == OF_IN ? d->f->in[i] : d->out.at[i];
	*vec_push(a, &d->d.next) = -1;
	*vec_push(a, &d->d.slot) = NULL;
	return d->seen.n - 1;
}

/* A further result of the region; one that is there already. */
int32_t back_kept(deriving *d, t_yield y, const ir_type *type)
{
	t_value *v;

	for (int32_t r = 0; r < d->yield.n; r++)
		if (d->yield.at[r].kind == y.kind &&
			d->yield.at[r].at[0] == y.at[0] &&
			d->yield.at[r].at[1] == y.at[1])
			return r;
	v = t_value_new(d->t, type);
	t_value_keep(v);
	*vec_push(d->t->a, &d->out) = v;
	*vec_push(d->t->a, &d->yield) = y;
	return d->yield.n - 1;
}

ir_type back_rows_type(const deriving *d, const ir_type *row, int64_t n)
{
	ir_type y = *row;

	if (y.rank == TN_MAX_RANK)
		env_fail(d->t->e, TN_EINVAL, "scan.rows",
			t_here(d->t),
			"%s: a gradient keeps a tensor with %d axes for every "
			"round: no room for one more axis", d->f->name,
			TN_MAX_RANK);
	memmove(y.shape + 1, y.shape, (size_t)y.rank * sizeof y.shape[0]);
	y.shape[0] = n;
	y.rank++;
	return y;
}

/* ---- the body of the backward ---- */

/* A new operand of the current body, with this source. */
t_value *back_fed(deriving *d, t_feed x, const ir_type *type)
{
	arena *a = d->t->a;
	t_value *v;

	for (int32_t i = 0; i < d->d.feed[d->arm].n; i++) {
		const t_feed *y = &d->d.feed[d->arm].at[i];

		if (y->kind == x.kind && y->at == x.at && y->row == x.row)
			return d->in.at[i];
	}
	v = t_value_new(d->t, type);
	t_value_keep(v);
	*vec_push(a, &d->in) = v;
	*vec_push(a, &d->d.feed[d->arm]) = x;
	return v;
}

/* The body's backward on what it reads; NULL: it has none. */
t_call *back_record(deriving *d, const t_trace *body,
	t_value *(*read)(deriving *d, const t_trace *body, const t_back *b,
		int32_t k))
{
	const t_back *b = body->back.at[0];
	t_read *arg;

	if (b->trace == NULL)
		return NULL;
	arg = arena_array(d->t->a, t_read, b->trace->n_in + 1);
	for (int32_t k = 0; k < b->trace->n_in; k++)
		arg[k] = (t_read){read(d, body, b, k), NULL, false, 0};
	return t_record_trace(d->t, b->trace, arg);
}

void back_end(deriving *d)
{
	t_trace *f;

	capture_end(d->t, &d->c);
	f = trace_new(d->t, &d->c, d->in.n, d->in.at, d->made.n, d->made.at,
		arena_printf(d->t->a, "%s backward", d->f->name));
	if (f->n_in != d->in.n)
		env_bug(d->t->e, "region.back",
			"the backward of %s reads what it is not given",
			d->f->name);
	d->d.g.body[d->arm] = f;
}

void back_begin(deriving *d, int32_t arm)
{
	d->arm = arm;
	d->in.n = d->made.n = 0;
	capture_begin(d->t, &d->c, true);
}

/* Result of the backward: gradient or leaf of operand i, made so. */
void back_give(deriving *d, int32_t i, int32_t kind, t_yield y,
	const ir_type *type)
{
	arena *a = d->t->a;

	*vec_push(a, &d->given) = (given){i, kind, d->d.yield.n};
	*vec_push(a, &d->d.yield) = y;
	*vec_push(a, &d->d.type) = *type;
	*vec_push(a, &d->d.made) = false;
}

int32_t back_made(deriving *d, t_value *v)
{
	t_value_keep(v);
	*vec_push(d->t->a, &d->made) = v;
	return d->made.n - 1;
}
