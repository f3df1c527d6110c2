/*
 * train_net.c: an ONNX model, or a program in text, as a net that learns: which of its parameters are
 * trained, its loss, and a step as a compiled function.
 *
 *     open -> the caller gives shapes -> build -> params -> net->step
 *
 * `tenon train MODEL.onnx` runs the step; `tenon export --c --train` writes it as C.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/train_net.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool said(const train_net *t)
{
	cli_diag(tn_context_diag(t->c));
	return false;
}

/* ---- inputs and params ---- */

/* Input number i of a text among its params, or among the others. */
static const tn_value *of_text(const train_net *t, bool is_param, int32_t i)
{
	for (int32_t k = 0; k < tn_program_n_inputs(t->p); k++) {
		const tn_value *v = tn_program_input(t->p, k);

		if (v->is_param == is_param && i-- == 0)
			return v;
	}
	return NULL;
}

const tn_value *train_net_input(const train_net *t, int32_t i)
{
	return t->is_text ? of_text(t, false, i) : tn_program_input(t->p, i);
}

const tn_value *train_net_param(const train_net *t, int32_t i)
{
	return t->is_text ? of_text(t, true, i) : tn_program_param(t->p, i);
}

static const void *initial_of(const train_net *t, int32_t i)
{
	if (!t->is_text)
		return tn_program_param_data(t->p, i);
	return t->initial != NULL ? t->initial[i] : NULL;
}

/* Examples are the rows of the first input. */
static bool open_text(train_net *t)
{
	const tn_value *x;
	int32_t n;

	if (tn_program_load(&t->p, t->c, t->file) < 0)
		return said(t);
	n = tn_program_n_inputs(t->p);
	for (int32_t i = 0; i < n; i++)
		t->n_in += !tn_program_input(t->p, i)->is_param;
	x = t->n_in > 0 ? of_text(t, false, 0) : NULL;
	if (x == NULL || t->n_in == n || t->n_in > TRAIN_MAX_INPUTS ||
		x->rank == 0 || x->shape[0] < 1) {
		cli_error(t->file, "train.input", "the program must have 1 to "
			"%d inputs, the first of which has an axis of "
			"examples, and a param", TRAIN_MAX_INPUTS);
		return false;
	}
	if (t->words.batch != NULL && t->batch != x->shape[0]) {
		cli_error(t->file, "train.batch", "the program is for a batch "
			"of %lld, the first axis of %s, not for %lld",
			(long long)x->shape[0], x->name, (long long)t->batch);
		return false;
	}
	t->batch = x->shape[0];
	return true;
}

bool train_net_open(train_net *t)
{
	bool logits = strcmp(t->loss, "cross_entropy") == 0;

	t->is_text = cli_ends_with(t->file, ".tn");
	if (t->is_text) {
		tn_set_seed(t->c, (uint64_t)t->seed);
		return open_text(t);
	}

	tn_set_seed(t->c, (uint64_t)t->seed);
	if (tn_onnx_open(&t->m, t->c, t->file) < 0 ||
		(t->classes > 0 && tn_onnx_classes(t->m, t->classes,
					   (uint64_t)t->seed) < 0))
		return said(t);
	t->n_in = tn_onnx_n_inputs(t->m);
	if (t->n_in == 0 || t->n_in > TRAIN_MAX_INPUTS) {
		cli_error(t->file, "train.input", "the model must have 1 to "
			"%d inputs", TRAIN_MAX_INPUTS);
		return false;
	}
	tn_onnx_fold(t->m, 1);
	tn_onnx_train(t->m, true, logits);
	return true;
}

bool train_net_build(train_net *t)
{
	if ((!t->is_text && tn_onnx_build(&t->p, t->m) < 0) ||
		tn_optimizer_new(&t->opt, t->c, t->optimizer, &t->rule) < 0)
		return said(t);
	t->has_key = !t->is_text && tn_program_n_inputs(t->p) > t->n_in;
	return true;
}

/* ---- a step ---- */

/* [b, k, 1, 1] -> [b, k]: logits with axes of extent 1 */
static tn_tensor *as_rows(tn_tensor *y, int64_t n)
{
	int64_t shape[2] = {n, tn_tensor_n_elems(y) / n};

	return tn_reshape(y, shape, 2);
}

static tn_tensor *loss_of(const train_net *t, tn_tensor *y, tn_tensor *want)
{
	int64_t n = tn_tensor_n_elems(y);

	if (!strcmp(t->loss, "cross_entropy")) {
		if (tn_tensor_n_elems(want) == t->batch)
			return tn_cross_entropy(as_rows(y, t->batch),
				tn_reshape(want, &t->batch, 1));
		return tn_cross_entropy_soft(
			as_rows(y, t->batch), as_rows(want, t->batch));
	}
	if (n == tn_tensor_n_elems(want))
		want = tn_reshape(want, tn_tensor_shape(y), tn_tensor_rank(y));
	return !strcmp(t->loss, "l1") ? tn_l1_loss(y, want)
				      : tn_mse(y, want);
}

/* What the program is called with: inputs, then parameters; in a text as they
 * stand. */
static void place_arguments(
	const train_net *t, tn_tensor *const *in, tn_tensor **x)
{
	int32_t n_in = t->n_in + t->has_key, n = n_in + t->n_params, k = 0;

	for (int32_t i = 0; i < n; i++) {
		bool is_param = t->is_text
			? tn_program_input(t->p, i)->is_param
			: i >= n_in;

		x[i] = is_param ? t->param[k++] : in[i - k];
	}
}

/* in: a batch of each input, the key if there is one, the targets; out: the loss,
 * then outputs that update parameters */
static tn_status record_forward(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	const train_net *t = user;
	int32_t n_in = t->n_in + t->has_key, n = 1;
	int32_t n_out = tn_program_n_outputs(t->p), n_all = n_in + t->n_params;
	tn_tensor **x = cli_alloc((size_t)n_all, sizeof(tn_tensor *));
	tn_tensor **y = cli_alloc((size_t)n_out, sizeof(tn_tensor *));

	if (x == NULL || y == NULL)
		goto out;
	place_arguments(t, in, x);
	if (tn_apply(t->p, n_all, x, n_out, y) < 0)
		goto out;
	out[0] = loss_of(t, y[0], in[n_in]);
	for (int32_t i = 0; i < n_out; i++)
		if (t->next[i] >= 0)
			out[n++] = y[i];
out:
	free(x);
	free(y);
	return tn_context_status(c);
}

static tn_status record_step(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	const train_net *t = user;
	int32_t n = 1;
	tn_tensor **y = cli_alloc((size_t)t->n_params + 1, sizeof(tn_tensor *));

	if (y == NULL)
		return tn_context_status(c);
	if (t->forward != NULL)
		tn_function_call(t->forward, in, y);
	else
		record_forward(c, user, in, y);
	out[0] = y[0];
	tn_backward(out[0], NULL);
	tn_optimizer_step(t->opt);
	tn_no_grad_enter(c);
	for (int32_t i = 0; i < tn_program_n_outputs(t->p); i++)
		if (t->next[i] >= 0)
			tn_copy_(t->param[t->next[i]], y[n++]);
	tn_no_grad_leave(c);
	free(y);
	return tn_context_status(c);
}

/* With a limit of memory, the backward of a function computes again what does not
 * fit: the forward is one. */
static bool compile_step(train_net *t)
{
	int32_t n_in = t->n_in + t->has_key + 1, n_out = 1;

	for (int32_t i = 0; i < tn_program_n_outputs(t->p); i++)
		n_out += t->next[i] >= 0;
	if (t->is_limited && tn_compile(&t->forward, t->c, record_forward, t,
				     n_in, n_out, "forward") < 0)
		return false;
	return tn_compile(&t->step, t->c, record_step, t, n_in, 1, "step") >= 0;
}

/* ---- parameters ---- */

static bool is_frozen(const train_net *t, const tn_value *v)
{
	if (v->rank == 0 || !tn_dtype_is_float(v->dtype))
		return true;
	for (int i = 0; i < t->freeze.n; i++)
		if (fnmatch(t->freeze.at[i], v->name, 0) == 0)
			return true;
	return false;
}

static int32_t find_param(const train_net *t, const char *name)
{
	for (int32_t i = 0; i < t->n_params; i++)
		if (!strcmp(train_net_param(t, i)->name, name))
			return i;
	return -1;
}

/*
 * Finds running statistics, which the network updates itself, and the optimiser
 * must not.
 */
static bool find_statistics(train_net *t)
{
	int32_t n = tn_program_n_outputs(t->p);

	t->next = cli_alloc((size_t)n + 1, sizeof *t->next);
	if (t->next == NULL)
		return false;
	for (int32_t i = 0; i < n; i++) {
		t->next[i] = t->is_text || i < tn_onnx_n_outputs(t->m)
			? -1
			: find_param(t, tn_program_output(t->p, i)->name);
		if (t->next[i] >= 0)
			t->trained[t->next[i]] = false;
	}
	return true;
}

bool train_net_params(train_net *t)
{
	t->n_params = t->is_text ? tn_program_n_inputs(t->p) - t->n_in
				 : tn_program_n_params(t->p);
	t->param = cli_alloc((size_t)t->n_params + 1, sizeof(tn_tensor *));
	t->trained = cli_alloc((size_t)t->n_params + 1, sizeof *t->trained);
	if (t->param == NULL || t->trained == NULL)
		return false;
	for (int32_t i = 0; i < t->n_params; i++)
		t->trained[i] = !is_frozen(t, train_net_param(t, i));
	if (!find_statistics(t))
		return false;
	for (int32_t i = 0; i < t->n_params; i++) {
		const tn_value *v = train_net_param(t, i);
		const void *data = initial_of(t, i);

		if (!t->trained[i])
			tn_no_grad_enter(t->c);
		t->param[i] = tn_parameter(t->c, v->name, v->dtype, v->rank,
			v->shape, data);
		if (!t->trained[i])
			tn_no_grad_leave(t->c);
		else if ((t->fresh || data == NULL) && v->rank >= 2)
			tn_init_kaiming_normal(t->param[i], sqrt(2));
		if (t->trained[i] && tn_optimizer_add(t->opt, t->param[i]) < 0)
			return said(t);
	}
	for (int32_t i = 0; i < t->n_params; i++)
		t->n_trained += t->trained[i];
	if (t->n_trained == 0) {
		cli_error(t->file, "train.frozen", "the model has no "
			"parameter left to train");
		return false;
	}
	if (tn_context_status(t->c) != TN_OK)
		return said(t);
	return compile_step(t) || said(t);
}

void train_net_end(train_net *t)
{
	tn_function_free(t->step);
	tn_function_free(t->forward);
	tn_optimizer_free(t->opt);
	tn_program_free(t->p);
	tn_onnx_free(t->m);
	free(t->param);
	free(t->trained);
	free(t->next);
}

/* ---- the command line ---- */

static bool real(const char *text, double *out)
{
	char *end = NULL;

	if (text == NULL)
		return true;
	*out = strtod(text, &end);
	return end != text && *end == '\0' && *out >= 0 && isfinite(*out);
}

int train_net_read(const cli_command *self, train_net *t)
{
	const train_words *w = &t->words;

	if (strcmp(t->loss, "cross_entropy") != 0 &&
		strcmp(t->loss, "mse") != 0 && strcmp(t->loss, "l1") != 0)
		return cli_usage(self, "--loss must be cross_entropy, mse or "
			"l1");
	if (!real(w->lr, &t->rule.lr) || !real(w->decay, &t->rule.decay) ||
		!real(w->clip, &t->rule.clip_norm))
		return cli_usage(self, "--lr, --decay and --clip must be "
				       "numbers of at least 0");
	if (!cli_whole(w->batch, 1, &t->batch) ||
		!cli_whole(w->classes, 2, &t->classes))
		return cli_usage(self, "--batch must be an integer of at least "
				       "1, --classes of at least 2");
	return -1;
}
