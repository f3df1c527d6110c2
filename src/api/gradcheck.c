/*
 * gradcheck.c: compares the gradient of reverse mode, for each element of the
 * inputs, with central differences.
 *
 * Outputs are added up with random weights w: L = sum of w[i] * out[i]. The
 * gradient of L is compared with (L(x + h) - L(x - h)) / 2h, element by
 * element. The second order is the same, done to the gradients themselves.
 *
 * A function may have a kink, where the slope jumps (relu at 0). Then differences
 * to the left and to the right do not agree; such elements are counted and
 * skipped. A wrong gradient differs from slopes that agree.
 */
#include "api/gradcheck.h"

#include <math.h>

enum { ELEMS = 64, ROUNDINGS = 16 };

/* ---- failing, memory ---- */

typedef struct job {
	gradcheck *k;
	tn_diag d;
	size_t n, size;
	void *at;
} job;

static void throw_diag(void *arg)
{
	const job *j = arg;

	env_fail(j->k->c->e, j->d.status, j->d.rule,
		(loc){j->d.file[0] != '\0' ? j->d.file : NULL, j->d.line,
			j->d.column},
		"%s", j->d.text);
}

/* Turns a sticky failure of calls on tensors into one of this call. */
tn_status gradcheck_rethrow(gradcheck *k)
{
	job j = {.k = k, .d = *tn_context_diag(k->c)};

	tn_context_clear(k->c);
	return api_call(k->c, throw_diag, &j);
}

tn_status gradcheck_refuse(
	gradcheck *k, const char *rule, const char *fmt, ...)
{
	job j = {.k = k, .d = {.status = TN_EINVAL}};
	va_list ap;

	(void)text_print(j.d.rule, sizeof j.d.rule, "%s", rule);
	va_start(ap, fmt);
	(void)text_vprint(j.d.text, sizeof j.d.text, fmt, ap);
	va_end(ap);
	return api_call(k->c, throw_diag, &j);
}

static void take_room(void *arg)
{
	job *j = arg;

	if (j->k->a == NULL)
		j->k->a = arena_new(j->k->c->e);
	j->at = arena_alloc(j->k->a, j->n, j->size);
}

void *gradcheck_room(gradcheck *k, int64_t n, size_t size)
{
	job j = {.k = k, .n = (size_t)n + 1, .size = size};

	return api_call(k->c, take_room, &j) < 0 ? NULL : j.at;
}

/* ---- one evaluation ---- */

static int64_t numel(const tn_tensor *x)
{
	return tn_tensor_n_elems(x);
}

static tn_dtype dtype_of(const gradcheck *k, const gradcheck_input *in)
{
	return k->wide && in->x != NULL ? TN_F64 : in->type.dtype;
}

static tn_tensor *tensor_of(gradcheck *k, const gradcheck_input *in, void *buf)
{
	tn_dtype t = dtype_of(k, in);
	int64_t n = shape_numel(in->type.shape, in->type.rank);
	tn_tensor *x;

	if (in->x == NULL)
		return tn_tensor_new(k->c, t, in->type.rank, in->type.shape,
			in->data);
	for (int64_t i = 0; i < n; i++)
		tn_set_f64(t, buf, i, in->x[i]);
	x = tn_tensor_new(k->c, t, in->type.rank, in->type.shape, buf);
	tn_requires_grad(x);
	return x;
}

/* Draws weights of the outputs of one order, in [-1, 1) and not near 0. */
static bool make_weights(gradcheck *k, int order, int32_t n, tn_tensor *const *out)
{
	double **w = gradcheck_room(k, n, sizeof *w);

	for (int32_t i = 0; w != NULL && i < n; i++) {
		int64_t m = numel(out[i]);

		w[i] = gradcheck_room(k, m, sizeof **w);
		if (w[i] == NULL)
			return false;
		tn_fill_random(TN_F64, w[i], m,
			k->o.seed + 2 * (uint64_t)i + (uint64_t)order, 0, 0);
		for (int64_t e = 0; e < m; e++)
			w[i][e] = copysign(0.25 + 0.75 * fabs(w[i][e]),
				w[i][e]);
	}
	k->weight[order] = w;
	return w != NULL;
}

/* The loss: the weighted sum of all outputs. */
static tn_tensor *loss_of(gradcheck *k, int order, int32_t n, tn_tensor *const *out,
	void *buf)
{
	tn_tensor *sum = NULL;

	for (int32_t i = 0; i < n; i++) {
		tn_dtype t = tn_tensor_dtype(out[i]);
		tn_tensor *w, *one;

		for (int64_t e = 0; e < numel(out[i]); e++)
			tn_set_f64(t, buf, e, k->weight[order][i][e]);
		w = tn_tensor_new(k->c, t, tn_tensor_rank(out[i]),
			tn_tensor_shape(out[i]), buf);
		one = tn_cast(tn_reduce_sum(tn_mul(out[i], w), NULL, 0, false),
			TN_F64);
		sum = sum == NULL ? one : tn_add(sum, one);
	}
	return sum;
}

/* Gradients of the loss; zeros for an input that it does not depend on. */
static tn_status gradients(gradcheck *k, tn_tensor *loss, int32_t n,
	tn_tensor *const *x, tn_tensor **g)
{
	tn_status s = tn_grad(1, &loss, NULL, n, x, g);

	if (s >= 0 || strcmp(tn_context_diag(k->c)->rule, "grad.untracked") != 0)
		return s;
	tn_context_clear(k->c);
	for (int32_t i = 0; i < n; i++)
		g[i] = tn_tensor_new(k->c, tn_tensor_dtype(x[i]),
			tn_tensor_rank(x[i]), tn_tensor_shape(x[i]), NULL);
	return tn_context_status(k->c);
}

typedef struct evaluation {
	tn_tensor *in[TN_MAX_FUNCTION_ARGS], *x[TN_MAX_FUNCTION_ARGS];
	tn_tensor *out[TN_MAX_FUNCTION_ARGS], *g[TN_MAX_FUNCTION_ARGS];
	int32_t n_x, n_out; /* numbers of inputs and outputs that are floats */
	void *buf;
	int64_t room; /* of the buffer, in numbers of 8 bytes */
	double sum, size; /* the weighted sum of the outputs; and of their magnitudes */
} evaluation;

static tn_status call_body(gradcheck *k, evaluation *v)
{
	tn_status s = k->body(k->c, k->user, v->in, v->out);
	int32_t n = 0;

	if (s >= 0)
		s = tn_context_status(k->c);
	if (s < 0)
		return s;
	for (int32_t i = 0; i < k->n_out; i++) {
		if (!tn_is_valid(v->out[i]))
			return tn_fail(k->c, TN_EINVAL, "gradcheck.output",
				"output %d of the function is not a valid tensor",
				(int)i);
		if (dtype_is_float(tn_tensor_dtype(v->out[i])))
			v->out[n++] = v->out[i];
	}
	v->n_out = n;
	return TN_OK;
}

/* The buffer is large enough for every input and every output. */
static bool has_room(gradcheck *k, evaluation *v)
{
	int64_t most = 1;

	for (int32_t i = 0; i < k->n_in; i++) {
		int64_t n = shape_numel(
			k->in[i].type.shape, k->in[i].type.rank);

		most = n > most ? n : most;
	}
	for (int32_t i = 0; i < v->n_out; i++)
		most = numel(v->out[i]) > most ? numel(v->out[i]) : most;
	if (most > v->room) {
		v->buf = gradcheck_room(k, most, sizeof(double));
		v->room = most;
	}
	return v->buf != NULL;
}

static tn_status add_up(gradcheck *k, int order, evaluation *v)
{
	v->sum = v->size = 0;
	for (int32_t i = 0; i < v->n_out; i++) {
		tn_dtype t = tn_tensor_dtype(v->out[i]);
		int64_t n = numel(v->out[i]);
		tn_status s = tn_read(
			v->out[i], v->buf, (size_t)n * dtype_size(t));

		if (s < 0)
			return s;
		for (int64_t e = 0; e < n; e++) {
			double one = k->weight[order][i][e] *
				tn_get_f64(t, v->buf, e);

			v->sum += one;
			v->size += fabs(one);
		}
	}
	return TN_OK;
}

static tn_status read_gradients(gradcheck *k, evaluation *v)
{
	int32_t n = 0;

	for (int32_t i = 0; i < k->n_in; i++) {
		tn_dtype t;
		int64_t m;
		tn_status s;

		if (k->in[i].x == NULL)
			continue;
		t = tn_tensor_dtype(v->g[n]);
		m = numel(v->g[n]);
		s = tn_read(v->g[n++], v->buf, (size_t)m * dtype_size(t));
		if (s < 0)
			return s;
		for (int64_t e = 0; e < m; e++)
			k->grad[i][e] = tn_get_f64(t, v->buf, e);
	}
	return TN_OK;
}

/* order 0: the function; 1: its gradients are the outputs */
static tn_status run(gradcheck *k, int order, bool wants_grad, evaluation *v)
{
	tn_status s;

	v->n_x = v->n_out = 0;
	if (!has_room(k, v))
		return TN_ENOMEM;
	for (int32_t i = 0; i < k->n_in; i++) {
		v->in[i] = tensor_of(k, &k->in[i], v->buf);
		if (k->in[i].x == NULL)
			continue;
		v->x[v->n_x++] = v->in[i];
		v->in[i] = tn_copy(v->in[i]); /* the body may write it */
	}
	s = tn_context_status(k->c);
	if (s >= 0)
		s = call_body(k, v);
	for (int o = 0; s >= 0 && o <= order; o++) {
		bool last = o == order;

		if (!has_room(k, v) || (k->weight[o] == NULL &&
			!make_weights(k, o, v->n_out, v->out)))
			return TN_ENOMEM;
		if (last)
			s = add_up(k, o, v);
		if (s < 0 || v->n_out == 0 || (last && !wants_grad))
			continue;
		s = gradients(k, loss_of(k, o, v->n_out, v->out, v->buf),
			v->n_x, v->x, v->g);
		for (int32_t i = 0; !last && s >= 0 && i < v->n_x; i++)
			v->out[i] = v->g[i];
		v->n_out = last ? v->n_out : v->n_x;
	}
	return s >= 0 && wants_grad ? read_gradients(k, v) : s;
}

static tn_status evaluate(gradcheck *k, int order, bool wants_grad, evaluation *v)
{
	tn_status s;

	k->c->n_keys = k->n_keys;
	(void)tn_scope_enter(k->c);
	s = run(k, order, wants_grad, v);
	(void)tn_scope_leave(k->c);
	return s;
}

/* ---- one element ---- */

typedef struct slopes {
	double left, right, middle, noise;
} slopes;

/* The slopes at element e of input i, with a step of about h. */
static tn_status slopes_at(gradcheck *k, int order, int32_t i, int64_t e, double h,
	double here, evaluation *v, slopes *out)
{
	gradcheck_input *in = &k->in[i];
	double x = in->x[e], up, down, sum_up = 0, size = 0;
	tn_status s;
	double one = 0;

	/* steps as rounded by the dtype */
	tn_set_f64(dtype_of(k, in), &one, 0, x + h);
	up = tn_get_f64(dtype_of(k, in), &one, 0);
	tn_set_f64(dtype_of(k, in), &one, 0, x - h);
	down = tn_get_f64(dtype_of(k, in), &one, 0);
	in->x[e] = up;
	s = evaluate(k, order, false, v);
	if (s >= 0) {
		sum_up = v->sum;
		size = v->size;
		in->x[e] = down;
		s = evaluate(k, order, false, v);
	}
	in->x[e] = x;
	if (s < 0)
		return s;
	out->right = (sum_up - here) / (up - x);
	out->left = (here - v->sum) / (x - down);
	out->middle = (sum_up - v->sum) / (up - down);
	out->noise = ROUNDINGS * k->unit * (size + v->size) / (up - down);
	return TN_OK;
}

static double tolerance(const gradcheck *k, double g, const slopes *d)
{
	return k->o.atol + k->o.rtol * fmax(fabs(g), fabs(d->middle)) +
	       d->noise;
}

/* Their distance divided by the tolerance; NaN is equal only to NaN. */
static double excess(const gradcheck *k, double g, const slopes *d)
{
	if (isnan(g) || isnan(d->middle))
		return isnan(g) && isnan(d->middle) ? 0 : HUGE_VAL;
	if (g == d->middle)
		return 0;
	return fabs(g - d->middle) / tolerance(k, g, d);
}

static void note(gradcheck *k, int order, int32_t i, int64_t e, double g,
	const slopes *d)
{
	double far = excess(k, g, d);

	k->r.n_checked++;
	k->n_wrong += far > 1;
	if (k->r.n_checked > 1 && !(far > k->worst))
		return;
	k->worst = far;
	k->tolerance = tolerance(k, g, d);
	k->r.order = order + 1;
	k->r.input = i;
	k->r.index = e;
	k->r.gradient = g;
	k->r.difference = d->middle;
}

/*
 * The slopes of the two sides differ. If g is one of them, there is a kink within
 * the step; if they differ as much with a smaller step, the kink is the element.
 */
static tn_status is_kink(gradcheck *k, int order, int32_t i, int64_t e,
	double here, evaluation *v, const slopes *d, bool *is)
{
	double g = k->grad[i][e], near = tolerance(k, g, d);
	double h = k->o.eps * fmax(1, fabs(k->in[i].x[e])), apart;
	slopes smaller;
	tn_status s;

	*is = false;
	if (!(fabs(d->right - d->left) > near))
		return TN_OK;
	*is = fabs(g - d->left) <= near || fabs(g - d->right) <= near;
	if (*is)
		return TN_OK;
	s = slopes_at(k, order, i, e, h / 8, here, v, &smaller);
	if (s < 0)
		return s;
	apart = fabs(smaller.right - smaller.left);
	*is = apart > tolerance(k, g, &smaller) &&
		apart > 0.5 * fabs(d->right - d->left);
	return TN_OK;
}

static tn_status check_element(gradcheck *k, int order, int32_t i, int64_t e,
	double here, evaluation *v)
{
	double h = k->o.eps * fmax(1, fabs(k->in[i].x[e]));
	bool kink = false;
	slopes d;
	tn_status s = slopes_at(k, order, i, e, h, here, v, &d);

	if (s >= 0 && excess(k, k->grad[i][e], &d) > 1)
		s = is_kink(k, order, i, e, here, v, &d, &kink);
	if (s < 0)
		return s;
	if (kink)
		k->r.n_skipped++;
	else
		note(k, order, i, e, k->grad[i][e], &d);
	return TN_OK;
}

/* ---- all of them ---- */

static tn_status check_input(gradcheck *k, int order, int32_t i, double here,
	evaluation *v)
{
	int64_t n = shape_numel(k->in[i].type.shape, k->in[i].type.rank);
	int64_t most = k->o.n_elems < 0 ? n : k->o.n_elems;
	int64_t *pick = NULL;
	tn_status s = TN_OK;

	if (n > most) {
		pick = gradcheck_room(k, most, sizeof *pick);
		if (pick == NULL)
			return TN_ENOMEM;
		tn_fill_random(TN_I64, pick, most,
			k->o.seed + 7919u * (uint64_t)(i + 1), 0, n);
	}
	for (int64_t e = 0; s >= 0 && e < (n < most ? n : most); e++)
		s = check_element(k, order, i, pick != NULL ? pick[e] : e,
			here, v);
	return s;
}

static tn_status check_order(gradcheck *k, int order, evaluation *v)
{
	tn_status s = evaluate(k, order, true, v);
	double here = v->sum;

	if (s >= 0 && order == 0 && (v->n_x == 0 || v->n_out == 0))
		return gradcheck_refuse(k, "gradcheck.none", "there is nothing to check: "
			"%s", v->n_x == 0 ? "no input is a float"
					  : "no output is a float");
	for (int32_t i = 0; s >= 0 && i < k->n_in; i++)
		if (k->in[i].x != NULL && !k->in[i].skip)
			s = check_input(k, order, i, here, v);
	return s;
}

/* Chooses f64 if the function accepts it, else the dtypes of the inputs. */
static tn_status choose_dtype(gradcheck *k, evaluation *v)
{
	tn_status s;

	k->wide = true;
	s = evaluate(k, 0, false, v);
	if (s >= 0 || s == TN_ENOMEM)
		return s;
	tn_context_clear(k->c);
	k->wide = false;
	k->weight[0] = NULL;
	return evaluate(k, 0, false, v);
}

static void set_defaults(gradcheck *k)
{
	double unit = 0;

	for (int32_t i = 0; i < k->n_in; i++) {
		tn_dtype t;
		double u;

		if (k->in[i].x == NULL)
			continue;
		t = dtype_of(k, &k->in[i]);
		u = t == TN_F64	  ? 0x1p-53
			: t == TN_F32 ? 0x1p-24
			: t == TN_F16 ? 0x1p-11
				      : 0x1p-8; /* bf16 */
		if (u > unit) {
			unit = u;
			k->r.dtype = t;
		}
	}
	k->unit = unit > 0 ? unit : 0x1p-53;
	if (k->o.eps == 0)
		k->o.eps = k->unit <= 0x1p-53 ? 1e-5
			: k->unit <= 0x1p-24  ? 1e-2
					      : 0.125;
	if (k->o.rtol == 0)
		k->o.rtol = k->unit <= 0x1p-53 ? 1e-5
			: k->unit <= 0x1p-24   ? 1e-2
					       : 0.1;
	if (k->o.atol == 0)
		k->o.atol = 0.1 * k->o.rtol;
	if (k->o.n_elems == 0)
		k->o.n_elems = ELEMS;
	if (k->o.order == 0)
		k->o.order = 1;
	k->r.eps = k->o.eps;
}

/* "[1,2]" of element e */
static void place_text(char *out, size_t size, const ir_type *t, int64_t e)
{
	int64_t at[TN_MAX_RANK];
	size_t n = 0;

	for (int32_t i = t->rank - 1; i >= 0; i--) {
		at[i] = t->shape[i] > 0 ? e % t->shape[i] : 0;
		e = t->shape[i] > 0 ? e / t->shape[i] : 0;
	}
	out[n++] = '[';
	for (int32_t i = 0; i < t->rank && n + 24 < size; i++) {
		(void)text_print(out + n, size - n, "%s%lld", i > 0 ? "," : "",
			(long long)at[i]);
		n += strlen(out + n);
	}
	(void)text_print(out + n, size - n, "]");
}

static tn_status verdict(gradcheck *k)
{
	const gradcheck_input *in = &k->in[k->r.input];
	char place[200], name[80];

	if (k->r.n_checked == 0)
		return gradcheck_refuse(k, "gradcheck.none", "there is nothing to check: "
			"%s", k->r.n_skipped > 0
				? "at every element that was tried the "
				  "function has a kink"
				: "the inputs have no elements");
	if (k->n_wrong == 0)
		return TN_OK;
	place_text(place, sizeof place, &in->type, k->r.index);
	if (in->name != NULL)
		(void)text_print(name, sizeof name, "%.60s", in->name);
	else
		(void)text_print(name, sizeof name, "input %d",
			(int)k->r.input);
	return gradcheck_refuse(k, "gradcheck.differs",
		"the %sgradient with respect to %s is wrong: at element %s "
		"reverse mode gives %.9g, central differences give %.9g "
		"(in %s with steps of %.3g, where %.3g apart would be "
		"accepted); %lld of %lld elements that were tried differ",
		k->r.order == 2 ? "second-order " : "", name, place,
		k->r.gradient, k->r.difference, dtype_name(k->r.dtype),
		k->o.eps, k->tolerance, (long long)k->n_wrong,
		(long long)k->r.n_checked);
}

static tn_status check_all(gradcheck *k)
{
	evaluation *v = gradcheck_room(k, 1, sizeof *v);
	tn_status s;

	k->grad = gradcheck_room(k, k->n_in, sizeof *k->grad);
	if (v == NULL || k->grad == NULL)
		return TN_ENOMEM;
	for (int32_t i = 0; i < k->n_in; i++) {
		k->grad[i] = gradcheck_room(k, shape_numel(k->in[i].type.shape,
					     k->in[i].type.rank),
			sizeof **k->grad);
		if (k->grad[i] == NULL)
			return TN_ENOMEM;
	}
	s = choose_dtype(k, v);
	if (s >= 0) {
		set_defaults(k);
		s = check_order(k, 0, v);
	}
	if (s >= 0 && k->o.order > 1)
		s = check_order(k, 1, v);
	return s < 0 ? s : verdict(k);
}

tn_status gradcheck_run(gradcheck *k)
{
	tn_status s;

	k->n_keys = k->c->n_keys;
	s = check_all(k);
	k->c->n_keys = k->n_keys; /* restores the number of keys */
	return s < 0 && tn_context_status(k->c) < 0 ? gradcheck_rethrow(k) : s;
}
