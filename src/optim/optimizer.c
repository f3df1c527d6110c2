/*
 * optimizer.c: steps of gradient descent, written with the public interface
 * only.
 *
 * An optimiser is a row of the operation table (adamw, sgd, ...). Its operands
 * are the parameter p, the states, the gradient and the rates; its results are
 * the next p and states. All updates of a step are recorded together, so that
 * they share kernels, and are written in place. The values that change from
 * step to step, the learning rate and the number of steps, are in tensors, so
 * nothing is compiled again, and a step inside a compiled function is counted
 * in each call.
 *
 * A parameter of 16 bits has a master copy in f32 as one more state, and its
 * other states are f32, too, because updates are smaller than the distance
 * between neighbouring 16-bit numbers.
 *
 *     master  1.00012  -> 1.00024 -> ..      p = the nearest bf16: 1 -> 1 -> ..
 *
 * Where p is not the rounding of its master any more, the user has written to
 * p; there the master is set from p.
 */
#include <tenon.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STATES = 2 + 1, MAX_ATTRS = 5 }; /* including the master */
enum { MAX_NAME = 300 };

/* The fields of tn_optimizer_options that a row uses. */
typedef struct kind {
	const char *row;
	int32_t n_states;
	bool corrects; /* has operands c1, c2 after lr */
	const char *attr[MAX_ATTRS];
} kind;

static const kind kinds[] = {
	{"sgd", 0, false, {"decay"}},
	{"sgd_momentum", 1, false, {"momentum", "decay", "nesterov"}},
	{"adam", 2, true, {"beta1", "beta2", "eps", "decay"}},
	{"adamw", 2, true, {"beta1", "beta2", "eps", "decay"}},
	{"adagrad", 1, false, {"eps", "decay"}},
	{"rmsprop", 1, false, {"alpha", "eps", "decay"}},
	{"lamb", 2, true, {"beta1", "beta2", "eps", "decay"}},
};

typedef struct slot {
	tn_tensor *p, *state[MAX_STATES];
	int32_t n_states; /* including the master, which is the last */
} slot;

struct tn_optimizer {
	tn_context *c;
	const kind *kind;
	tn_optimizer_options o;
	tn_tensor *lr, *n_steps; /* f64, of rank 0 */
	int32_t n, cap;
	slot *slot;
};

static tn_status no_object(const char *what)
{
	return tn_at_fail(NULL, 0, NULL, TN_EINVAL, "api.null", "%s is NULL",
		what);
}

static tn_status no_memory(tn_context *c)
{
	return tn_at_fail(
		NULL, 0, c, TN_ENOMEM, "memory", "out of memory for an optimiser");
}

static bool has_master(const tn_tensor *p)
{
	tn_dtype t = tn_tensor_dtype(p);

	return t == TN_BF16 || t == TN_F16;
}

/* The dtype in which updates of p are computed. */
static tn_dtype wide(const tn_tensor *p)
{
	return has_master(p) ? TN_F32 : tn_tensor_dtype(p);
}

/* Makes a tensor of rank 0 that is kept and has no gradient. */
static tn_tensor *number(tn_context *c, const char *name, double value)
{
	tn_tensor *x = NULL;

	if (tn_no_grad_enter(c) < 0)
		return NULL;
	x = tn_parameter(c, name, TN_F64, 0, NULL, &value);
	(void)tn_no_grad_leave(c);
	return x;
}

/* Fails for an unknown name, and lists the known ones. */
static tn_status refuse_name(tn_context *c, const char *name)
{
	char all[200] = "";
	size_t n = 0;

	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		n += (size_t)snprintf(all + n, sizeof all - n, "%s%s",
			i > 0 ? ", " : "", kinds[i].row);
	return tn_at_fail(NULL, 0, c, TN_EINVAL, "optimizer.name",
		"there is no optimiser %.60s; accepted are %s", name, all);
}

tn_status tn_optimizer_new(tn_optimizer **out, tn_context *c, const char *name,
	const tn_optimizer_options *options)
{
	static const tn_optimizer_options defaults = TN_OPTIMIZER_OPTIONS_INIT;
	const kind *k = NULL;
	tn_optimizer *o;

	*out = NULL;
	if (c == NULL)
		return no_object("the context");
	if (name == NULL)
		return tn_at_fail(NULL, 0, c, TN_EINVAL, "optimizer.name",
			"the name of the optimiser is NULL");
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strcmp(kinds[i].row, name) == 0)
			k = &kinds[i];
	if (k == NULL)
		return refuse_name(c, name);
	if (options == NULL)
		options = &defaults;
	if (options->n_bytes != sizeof *options)
		return tn_at_fail(NULL, 0, c, TN_EINVAL, "optimizer.options",
			"the options have %zu bytes, not %zu: start from "
			"TN_OPTIMIZER_OPTIONS_INIT",
			options->n_bytes, sizeof *options);
	o = calloc(1, sizeof *o);
	if (o == NULL)
		return no_memory(c);
	o->c = c;
	o->kind = k;
	o->o = *options;
	o->lr = number(c, "lr", options->lr);
	o->n_steps = number(c, "steps", 0);
	if (!tn_is_valid(o->lr) || !tn_is_valid(o->n_steps)) {
		tn_optimizer_free(o);
		return tn_context_status(c) < 0 ? tn_context_status(c)
						: TN_ENOMEM;
	}
	*out = o;
	return TN_OK;
}

void tn_optimizer_free(tn_optimizer *o)
{
	if (o == NULL)
		return;

	tn_drop(o->lr);
	tn_drop(o->n_steps);
	for (int32_t i = 0; i < o->n; i++)
		for (int32_t k = 0; k < o->slot[i].n_states; k++)
			tn_drop(o->slot[i].state[k]);
	free(o->slot);
	free(o);
}

/* "w.state0", as they are saved; the i-th parameter may have no name. */
static void name_of_state(char name[MAX_NAME], const tn_optimizer *o, int32_t k)
{
	const char *of = tn_tensor_name(o->slot[o->n].p);
	char number[16];

	snprintf(number, sizeof number, "%d", (int)o->n);
	snprintf(name, MAX_NAME, "%s.state%d", of != NULL ? of : number,
		(int)k);
}

tn_status tn_optimizer_add(tn_optimizer *o, tn_tensor *p)
{
	if (o == NULL)
		return no_object("the optimiser");

	slot *s;

	if (!tn_is_valid(p) || tn_tensor_context(p) != o->c)
		return tn_at_fail(NULL, 0, o->c, TN_EINVAL, "tensor.handle",
			"a tensor to be optimised is not a tensor of this "
			"context");
	if (!tn_dtype_is_float(tn_tensor_dtype(p)))
		return tn_at_fail(NULL, 0, o->c, TN_EINVAL, "optimizer.dtype",
			"%s has no gradient: only floats can be optimised",
			tn_dtype_name(tn_tensor_dtype(p)));
	if (o->n == o->cap) {
		int32_t cap = o->cap == 0 ? 16 : 2 * o->cap;

		s = realloc(o->slot, (size_t)cap * sizeof *s);
		if (s == NULL)
			return no_memory(o->c);
		o->slot = s;
		o->cap = cap;
	}
	s = &o->slot[o->n];
	*s = (slot){.p = p, .n_states = o->kind->n_states + has_master(p)};
	tn_no_grad_enter(o->c);
	for (int32_t k = 0; k < s->n_states; k++) {
		char name[MAX_NAME];

		name_of_state(name, o, k);
		s->state[k] = tn_parameter(o->c, name, wide(p),
			tn_tensor_rank(p), tn_tensor_shape(p), NULL);
		if (!tn_is_valid(s->state[k])) {
			while (k-- > 0)
				tn_drop(s->state[k]);
			tn_no_grad_leave(o->c);
			return tn_context_status(o->c);
		}
	}
	tn_no_grad_leave(o->c);
	o->n++;
	return TN_OK;
}

tn_status tn_optimizer_add_all(tn_optimizer *o, const tn_params *p)
{
	if (o == NULL)
		return no_object("the optimiser");
	if (p == NULL)
		return no_object("the set of parameters");

	tn_status status = TN_OK;

	for (int32_t i = 0; i < tn_params_n(p) && status >= 0; i++) {
		tn_tensor *x = tn_params_at(p, i);
		bool is_new = tn_params_is_trained(p, i);

		for (int32_t k = 0; k < o->n; k++)
			is_new = is_new && o->slot[k].p != x;
		if (is_new)
			status = tn_optimizer_add(o, x);
	}
	return status;
}

void tn_optimizer_set_lr(tn_optimizer *o, double lr)
{
	if (o == NULL)
		return;

	o->o.lr = lr;
	(void)tn_set_data(o->lr, &lr, sizeof lr);
}

tn_tensor *tn_optimizer_rate(const tn_optimizer *o)
{
	if (o != NULL)
		return o->lr;
	(void)no_object("the optimiser");
	return NULL;
}

int64_t tn_optimizer_steps(const tn_optimizer *o)
{
	if (o == NULL)
		return 0;

	double n = tn_item(o->n_steps);

	if (isnan(n)) /* a failed step is not counted any more */
		n = tn_item(o->n_steps);
	return n >= 0 && n < 9e15 ? (int64_t)n : 0;
}

tn_tensor *tn_optimizer_state(const tn_optimizer *o, int32_t i, int32_t k)
{
	if (o == NULL)
		return NULL;
	return i >= 0 && i < o->n && k >= 0 && k < o->slot[i].n_states
		? o->slot[i].state[k]
		: NULL;
}

void tn_optimizer_set_steps(tn_optimizer *o, int64_t n)
{
	if (o == NULL)
		return;

	double v = (double)n;

	(void)tn_set_data(o->n_steps, &v, sizeof v);
}

tn_status tn_optimizer_add_states(const tn_optimizer *o, tn_params *p)
{
	if (o == NULL)
		return no_object("the optimiser");
	if (p == NULL)
		return no_object("the set of parameters");

	char number[16], state[16];
	tn_status s = TN_OK;

	for (int32_t i = 0; i < o->n && s >= 0; i++) {
		const char *name = tn_tensor_name(o->slot[i].p);

		snprintf(number, sizeof number, "%d", (int)i);
		s = tn_params_enter(p, "%s", name != NULL ? name : number);
		if (s < 0)
			return s;
		for (int32_t k = 0; k < o->slot[i].n_states && s >= 0; k++) {
			snprintf(state, sizeof state, "state%d", (int)k);
			s = tn_params_add(
				p, state, o->slot[i].state[k], false);
		}
		tn_params_leave(p);
	}
	return s;
}

/* ---- a step ---- */

static double choice(const tn_optimizer *o, const char *name)
{
	const struct {
		const char *name;
		double value;
	} all[] = {{"beta1", o->o.beta1}, {"beta2", o->o.beta2},
		{"eps", o->o.eps}, {"decay", o->o.decay},
		{"momentum", o->o.momentum}, {"alpha", o->o.alpha}};

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (strcmp(all[i].name, name) == 0)
			return all[i].value;
	return 0;
}

static int32_t attributes(const tn_optimizer *o, tn_attr *a)
{
	int32_t n = 0;

	for (; n < MAX_ATTRS && o->kind->attr[n] != NULL; n++) {
		const char *name = o->kind->attr[n];

		if (strcmp(name, "nesterov") == 0)
			a[n] = (tn_attr){.name = name,
				.kind = TN_ATTR_INT,
				.i = o->o.nesterov};
		else
			a[n] = (tn_attr){.name = name,
				.kind = TN_ATTR_REAL,
				.f = choice(o, name)};
	}
	return n;
}

/* The factor that limits the norm of all gradients. */
static tn_tensor *clipping(const tn_optimizer *o)
{
	tn_tensor *sum = NULL;

	for (int32_t i = 0; i < o->n; i++) {
		tn_tensor *g = tn_gradient(o->slot[i].p), *s;

		if (g == NULL)
			continue;
		if (has_master(g))
			g = tn_cast(g, wide(g));
		s = tn_reduce_sum(tn_mul(g, g), NULL, 0, false);
		sum = sum == NULL ? s : tn_add(sum, s);
	}
	return sum == NULL ? NULL : tn_clip_factor(sum, o->o.clip_norm);
}

/* Values that all updates of a step share, in f64; NULL: not needed. */
typedef struct shared {
	tn_tensor *factor, *c1, *c2;
} shared;

/* 1 / (1 - beta^n): corrects the bias of moments that start at zero. */
static tn_tensor *correction(tn_optimizer *o, double beta)
{
	tn_tensor *one = tn_scalar(o->c, TN_F64, 1);

	return tn_div(one,
		tn_sub(one, tn_pow(tn_scalar(o->c, TN_F64, beta), o->n_steps)));
}

/* The master where p is its rounding, else p. */
static tn_tensor *master_of(const tn_optimizer *o, const slot *s)
{
	tn_tensor *m = s->state[o->kind->n_states];

	return tn_where(tn_eq(tn_cast(m, tn_tensor_dtype(s->p)), s->p), m,
		tn_cast(s->p, TN_F32));
}

static tn_status update(tn_optimizer *o, slot *s, const shared *h)
{
	tn_tensor *in[3 + MAX_STATES + 2], *out[1 + MAX_STATES];
	tn_tensor *g = tn_gradient(s->p);
	tn_dtype t = wide(s->p);
	tn_attr attr[MAX_ATTRS];
	bool small = has_master(s->p);
	int32_t n = 0;
	tn_status status;

	if (g == NULL)
		return TN_OK;
	if (small)
		g = tn_cast(g, t);
	in[n++] = small ? master_of(o, s) : s->p;
	for (int32_t k = 0; k < o->kind->n_states; k++)
		in[n++] = s->state[k];
	in[n++] = h->factor != NULL ? tn_mul(g, h->factor) : g;
	in[n++] = tn_cast(o->lr, t);
	if (h->c1 != NULL) {
		in[n++] = tn_cast(h->c1, t);
		in[n++] = tn_cast(h->c2, t);
	}
	status = tn_call(o->c, o->kind->row, n, in, attributes(o, attr), attr,
		1 + o->kind->n_states, out);
	if (status >= 0 && small)
		status = tn_copy_(s->state[o->kind->n_states], out[0]);
	if (status >= 0)
		status = tn_copy_(s->p, small
				? tn_cast(out[0], tn_tensor_dtype(s->p))
				: out[0]);
	for (int32_t k = 0; k < o->kind->n_states && status >= 0; k++)
		status = tn_copy_(s->state[k], out[1 + k]);
	tn_zero_grad(s->p);
	return status;
}

/* A step that would fail in its middle is refused before it begins. */
static tn_status check_slots(const tn_optimizer *o)
{
	for (int32_t i = 0; i < o->n; i++) {
		bool all = tn_is_valid(o->slot[i].p);

		for (int32_t k = 0; k < o->slot[i].n_states; k++)
			all = all && tn_is_valid(o->slot[i].state[k]);
		if (!all)
			return tn_at_fail(NULL, 0, o->c, TN_EINVAL,
				"tensor.handle",
				"parameter %d of the optimiser, or a state of "
				"it, was dropped: make another optimiser "
				"without it", (int)i);
	}
	return TN_OK;
}

tn_status tn_optimizer_step(tn_optimizer *o)
{
	if (o == NULL)
		return no_object("the optimiser");

	tn_status s = check_slots(o);
	shared h = {0};

	if (s >= 0)
		s = tn_scope_enter(o->c);
	if (s < 0)
		return s;
	tn_no_grad_enter(o->c);
	tn_step_enter(o->c);
	s = tn_copy_(o->n_steps,
		tn_add(o->n_steps, tn_scalar(o->c, TN_F64, 1)));
	if (o->o.clip_norm > 0)
		h.factor = clipping(o);
	if (o->kind->corrects) {
		h.c1 = correction(o, o->o.beta1);
		h.c2 = correction(o, o->o.beta2);
	}
	/* in the order in which backward makes gradients, most often: what updates
	 * share is then computed with the first of them */
	for (int32_t i = o->n - 1; i >= 0 && s >= 0; i--)
		s = update(o, &o->slot[i], &h);
	tn_step_leave(o->c);
	tn_no_grad_leave(o->c);
	tn_scope_leave(o->c);
	return s;
}

/* ---- learning rates ---- */

double tn_lr_cosine(int64_t step, int64_t warmup, int64_t total, double lr,
	double least)
{
	double x;

	if (step < warmup)
		return lr * (double)(step + 1) / (double)warmup;
	if (step >= total || total <= warmup)
		return least;
	x = (double)(step - warmup) / (double)(total - warmup);
	return least + 0.5 * (lr - least) * (1 + cos(3.14159265358979323846 * x));
}
