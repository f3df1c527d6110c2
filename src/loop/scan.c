/*
 * scan.c: what a scan does with the element before.
 *
 *   y[t] = x[t] + (y[t - 1] else 0)      a sum; the element before: y[t - 1]
 *   y[t] = x[t] + a[t] * (y[t - 1] else 0)   no monoid: a step depends on t
 *
 * Where the step is that of a monoid which gives the same in any grouping, lanes can
 * share its elements: integers, and what selects one of two floats. A sum of floats
 * is rounded at each step, and keeps its order.
 */
#include "loop/loop.h"

const ix_form *loop_scan_before(const loop_kernel *k, const loop_eqn *e)
{
	int64_t s;

	if (e->scan_var < 0 || e->push ||
		!ix_stride(e->at, e->scan_var, k->var[e->scan_var].extent, &s))
		return NULL;
	return ix_add(k->s->x, &k->dom, e->at,
		ix_const(k->s->x, e->reversed ? s : -s));
}

struct seen {
	int32_t tensor;
	const ix_form *at; /* where it may be read; NULL: nowhere */
	bool other, data;
};

static void on_read(void *arg, const expr *e)
{
	struct seen *s = arg;

	s->other |= e->kind == EX_READ && e->tensor == s->tensor &&
		    e->form != s->at;
	s->data |= e->form != NULL && ix_has_fun(e->form);
}

static bool reads_other(
	const loop_kernel *k, const expr *e, int32_t tensor, const ix_form *at)
{
	struct seen s = {.tensor = tensor, .at = at};

	if (e != NULL)
		loop_walk(k->a, e, on_read, &s);
	return s.other || (s.data && dtype_is_int(k->s->tensor.at[tensor].dtype));
}

/* Does the condition hold at all elements of the scan but the first? */
static bool holds_behind_first(
	const loop_kernel *k, const loop_eqn *e, const expr *c)
{
	int64_t n = k->var[e->scan_var].extent, s;

	if (c->kind != EX_INSIDE ||
		loop_form_vars(c->form) != (loop_set)1 << e->scan_var ||
		!ix_stride(c->form, e->scan_var, n, &s))
		return false;
	for (int64_t t = 1; t < n; t = t < n - 1 ? n - 1 : n)
		if (c->form->c0 + s * t < c->lo || c->form->c0 + s * t >= c->hi)
			return false;
	return true;
}

/* The element before, or, at the first element, what does not depend on it. */
static bool is_before(const loop_kernel *k, const loop_eqn *e, const expr *x)
{
	const ix_form *at = loop_scan_before(k, e);

	if (x->kind == EX_SELECT)
		return holds_behind_first(k, e, x->arg[0]) &&
		       is_before(k, e, x->arg[1]) &&
		       x->arg[1]->kind == EX_READ &&
		       !reads_other(k, x->arg[2], e->e->out[0], NULL);
	return x->kind == EX_READ && x->tensor == e->e->out[0] && x->form == at;
}

/* Do other equations read the scan's elements only as they are made? */
static bool is_read_as_made(const loop_kernel *k, const loop_eqn *e)
{
	for (int32_t i = 0; i < k->n_eqns; i++)
		for (int32_t j = 0; j < k->eqn[i].e->n_out; j++)
			if (k->eqn[i].e != e->e &&
				(reads_other(k, k->eqn[i].body[j],
					 e->e->out[0], e->at) ||
					reads_other(k, k->eqn[i].init[j],
						e->e->out[0], e->at)))
				return false;
	return true;
}

/* Is the result the same, however the elements are grouped? */
static bool groups_exactly(int32_t monoid, tn_dtype t)
{
	return dtype_is_int(t) || monoid == IR_MAX || monoid == IR_MIN;
}

/* The monoid whose operation is this function; -1: none. */
static int32_t monoid_of(const loop_kernel *k, int32_t fn, const tn_dtype *acc)
{
	for (int32_t m = IR_SUM; m <= IR_MIN; m++) {
		const expr *x = groups_exactly(m, acc[0])
					? ir_combine(k->s, m, 0, acc)
					: NULL;

		if (x != NULL && x->kind == EX_CALL && x->fn == fn &&
			x->arg[0]->kind == EX_PARAM &&
			x->arg[1]->kind == EX_PARAM)
			return m;
	}
	return -1;
}

int32_t loop_scan_monoid(const loop_kernel *k, const loop_eqn *e)
{
	const expr *x = e->body[0];
	tn_dtype t = k->s->tensor.at[e->e->out[0]].dtype;

	if (e->scan_var < 0 || e->reversed || e->push || e->e->n_out != 1 ||
		t == TN_BOOL || dtype_wide(t) != t || x->kind != EX_CALL ||
		x->dtype != t || x->arg[1] == NULL || x->arg[2] != NULL ||
		loop_writes_input(k) || !is_read_as_made(k, e))
		return -1;
	for (int32_t i = 0; i < 2; i++)
		if (is_before(k, e, x->arg[i]) &&
			!reads_other(k, x->arg[1 - i], e->e->out[0], NULL))
			return monoid_of(k, x->fn, &t);
	return -1;
}
