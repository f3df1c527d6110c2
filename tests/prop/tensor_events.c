/*
 * tensor_events.c: what happens between the calls of tensor_prop.c: backwards in
 * the middle, steps of the parameters by their gradients, gradients that are
 * forgotten, elements that are set, values without their history, views whose
 * offset is data that changes, and evaluations of several tensors.
 */
#include "tensor_world.h"

#include "base/base.h"

#include <math.h>
#include <stdio.h>

bool said(world *w, const char *what, const char *allowed)
{
	const tn_diag *d = tn_context_diag(w->c);

	if (tn_context_status(w->c) >= 0)
		return false;
	if (strcmp(d->rule, allowed) != 0) {
		printf("%s: [%s] %s\n", what, d->rule, d->text);
		w->good = false;
	}
	tn_context_clear(w->c);
	return true;
}

/* Is there room for n more values that do not follow parameters? */
static bool fits(const world *w, int32_t n)
{
	return w->n_frozen + n <= FROZEN;
}

/* An element is written without a gradient: a new leaf of a parameter. */
static void settle_elem(world *w, const item *x, int32_t k, double value)
{
	double *to = &w->data[x->storage][x->at[k]];

	*to = value;
	freeze(w, to);
	if (x->storage == w->moved_storage && x->at[k] == w->moved_elem)
		*to += w->by;
}

/*
 * After a backward that ends the history: parameters are written, and all else
 * is let go.
 */
static void start_anew(world *w)
{
	for (int32_t i = w->n_params; i < w->n; i++) {
		if (w->c && !w->it[i].dropped)
			tn_drop(w->it[i].x);
		w->it[i].dropped = true;
	}
	if (w->c)
		tn_no_grad_enter(w->c);
	for (int32_t p = 0; p < w->n_params; p++) {
		const item *x = &w->it[p];

		for (int32_t k = 0; k < x->n; k++)
			settle_elem(w, x, k, 0.75 * elem(w, x, k));
		if (!w->c)
			continue;
		tn_scope_enter(w->c);
		tn_mul_(x->x, tn_scalar(w->c, TN_F64, 0.75));
		tn_scope_leave(w->c);
	}
	if (w->c)
		tn_no_grad_leave(w->c);
}

static int32_t params_size(const world *w)
{
	int32_t n = 0;

	for (int32_t p = 0; p < w->n_params; p++)
		n += w->it[p].n;
	return n;
}

/* A backward in the middle, of up to three tensors. */
static void collect(world *w, const item *first)
{
	tn_tensor *sum = NULL;
	int32_t n = 1 + (int32_t)below(w, 3);
	bool looks = below(w, 3) == 0;

	if (w->ends && !fits(w, params_size(w)))
		return;
	w->n_collected++;
	if (w->c)
		tn_scope_enter(w->c);
	for (int32_t i = 0; i < n; i++) {
		const item *x = i == 0 ? first : &w->it[below(w, w->n)];

		if (x->dropped || !is_f64(w, x))
			continue;
		for (int32_t k = 0; k < x->n; k++)
			w->collected += sin(elem(w, x, k));
		if (w->c) {
			tn_tensor *t = tn_reduce_sum(
				tn_sin(x->x), NULL, 0, false);

			sum = sum == NULL ? t : tn_add(sum, t);
		}
	}
	if (w->c && sum != NULL) {
		if (looks)
			(void)tn_item(sum);
		if (w->ends)
			(void)tn_backward(sum, NULL);
		else
			(void)tn_backward_keep(sum, NULL);
		(void)said(w, "a backward in the middle", "grad.untracked");
	}
	if (w->c)
		tn_scope_leave(w->c);
	if (w->ends)
		start_anew(w);
}

static void forget(world *w)
{
	int32_t p = (int32_t)below(w, w->n_params);

	w->n_forgotten++;
	w->forgotten[p] = w->collected;
	if (w->c)
		tn_zero_grad(w->it[p].x);
}

/* A step of a parameter by what was collected for it, or by nothing. */
static void descend(world *w)
{
	const item *x = &w->it[below(w, w->n_params)];
	double g[ELEMS] = {0};
	tn_tensor *t;

	if (!fits(w, x->n))
		return;
	if (w->c) {
		tn_no_grad_enter(w->c);
		tn_scope_enter(w->c);
		t = tn_gradient(x->x);
		if (t == NULL)
			tn_mul_(x->x, tn_scalar(w->c, TN_F64, 1));
		else if (tn_read(t, g, (size_t)x->n * sizeof *g) >= 0)
			tn_sub_(x->x, tn_mul(t, tn_scalar(w->c, TN_F64, 0.1)));
		tn_scope_leave(w->c);
		tn_no_grad_leave(w->c);
		(void)said(w, "a step", "");
	}
	for (int32_t k = 0; k < x->n; k++)
		settle_elem(w, x, k, elem(w, x, k) - 0.1 * g[k]);
}

static void set(world *w, const item *x)
{
	tn_dtype t = w->type[x->storage];
	double bytes[ELEMS] = {0}; /* of any type */

	if (x->repeats || !fits(w, x->n))
		return;
	w->n_set++;
	for (int32_t k = 0; k < x->n; k++) {
		/* which every type has */
		double v = (double)below(w, 2) + (dtype_is_float(t) ? 1 : 0);

		if (dtype_is_float(t))
			dtype_store_f64(t, bytes, k, v);
		else
			dtype_store_i64(t, bytes, k, (int64_t)v);
		settle_elem(w, x, k, v);
	}
	if (w->c && tn_set_data(x->x, bytes, (size_t)x->n * dtype_size(t)) < 0)
		(void)said(w, "set", "");
}

static void detach(world *w, const item *x)
{
	item *v;

	if (!fits(w, x->n))
		return;
	w->n_detached++;
	v = own(w, x);
	w->type[v->storage] = w->type[x->storage];
	for (int32_t k = 0; k < x->n; k++) {
		w->data[v->storage][k] = elem(w, x, k);
		freeze(w, &w->data[v->storage][k]);
	}
	if (w->c)
		v->x = tn_detach(x->x);
}

/* The offset of views changes; those that are there stay where they are. */
static void move_start(world *w, int64_t to)
{
	bool at_once = below(w, 2) == 0;

	w->starts_at = to;
	if (!w->c)
		return;
	if (at_once)
		tn_set_data(w->start, &to, sizeof to);
	else
		tn_fill_(w->start, (double)to);
}

static void moving_view(world *w, const item *x)
{
	int64_t outer = 1, inner = 1, n, count;
	int32_t axis, at = 0;
	item *v;

	if (x->rank == 0 || x->n == 0)
		return;
	axis = (int32_t)below(w, x->rank);
	n = x->shape[axis];
	count = 1 + below(w, n);
	if (w->starts_at > n - count || below(w, 2) == 0)
		move_start(w, below(w, n - count + 1));
	for (int32_t d = 0; d < axis; d++)
		outer *= x->shape[d];
	for (int32_t d = axis + 1; d < x->rank; d++)
		inner *= x->shape[d];
	w->n_moving++;
	v = fresh(w);
	v->rank = x->rank;
	memcpy(v->shape, x->shape, sizeof v->shape);
	v->shape[axis] = count;
	v->n = numel(v);
	v->storage = x->storage;
	v->repeats = x->repeats;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < count; i++)
			for (int64_t k = 0; k < inner; k++)
				v->at[at++] = x->at[(o * n + w->starts_at + i) *
						    inner + k];
	if (w->c)
		v->x = tn_dynamic_narrow(x->x, w->start, axis, count);
	if (below(w, 2) == 0)
		move_start(w, below(w, 4));
}

static void eval_several(world *w)
{
	tn_tensor *x[3];
	int32_t n = 0;

	for (int32_t i = 0; i < 3; i++) {
		const item *v = &w->it[below(w, w->n)];

		if (!v->dropped)
			x[n++] = v->x;
	}
	if (w->c && tn_eval(x, n) < 0)
		(void)said(w, "several", "");
}

void make_event(world *w, item *x)
{
	switch (below(w, 9)) {
	case 0:
	case 1:
		collect(w, x);
		break;
	case 2:
		forget(w);
		break;
	case 3:
		descend(w);
		break;
	case 4:
		set(w, x);
		break;
	case 5:
		detach(w, x);
		break;
	case 6:
		eval_several(w);
		break;
	default:
		moving_view(w, x);
		break;
	}
}
