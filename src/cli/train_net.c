/*
 * train_net.c: an ONNX model as a net that learns: which of its parameters are
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

bool train_net_open(train_net *t)
{
	bool logits = strcmp(t->loss, "cross_entropy") == 0;

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
	if (tn_onnx_build(&t->p, t->m) < 0 ||
		tn_optimizer_new(&t->opt, t->c, t->optimizer, &t->rule) < 0)
		return said(t);
	t->has_key = tn_program_n_inputs(t->p) > t->n_in;
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

/* in: a batch of each input, the key if there is one, the targets */
static tn_status record_step(
	tn_context *c, void *user, tn_tensor *const *in, tn_tensor **out)
{
	const train_net *t = user;
	int32_t n_in = t->n_in + t->has_key;
	int32_t n_out = tn_program_n_outputs(t->p), n_all = n_in + t->n_params;
	tn_tensor **x = cli_alloc((size_t)n_all, sizeof(tn_tensor *));
	tn_tensor **y = cli_alloc((size_t)n_out, sizeof(tn_tensor *));

	if (x == NULL || y == NULL)
		goto out;
	for (int32_t i = 0; i < n_in; i++)
		x[i] = in[i];
	for (int32_t i = 0; i < t->n_params; i++)
		x[n_in + i] = t->param[i];
	if (tn_apply(t->p, n_all, x, n_out, y) < 0)
		goto out;
	out[0] = loss_of(t, y[0], in[n_in]);
	tn_backward(out[0], NULL);
	tn_optimizer_step(t->opt);
	tn_no_grad_enter(c);
	for (int32_t i = 0; i < n_out; i++)
		if (t->next[i] >= 0)
			tn_copy_(t->param[t->next[i]], y[i]);
	tn_no_grad_leave(c);
out:
	free(x);
	free(y);
	return tn_context_status(c);
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
		if (!strcmp(tn_program_param(t->p, i)->name, name))
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
		t->next[i] = i < tn_onnx_n_outputs(t->m)
			? -1
			: find_param(t, tn_program_output(t->p, i)->name);
		if (t->next[i] >= 0)
			t->trained[t->next[i]] = false;
	}
	return true;
}

bool train_net_params(train_net *t)
{
	t->n_params = tn_program_n_params(t->p);
	t->param = cli_alloc((size_t)t->n_params + 1, sizeof(tn_tensor *));
	t->trained = cli_alloc((size_t)t->n_params + 1, sizeof *t->trained);
	if (t->param == NULL || t->trained == NULL)
		return false;
	for (int32_t i = 0; i < t->n_params; i++)
		t->trained[i] = !is_frozen(t, tn_program_param(t->p, i));
	if (!find_statistics(t))
		return false;
	for (int32_t i = 0; i < t->n_params; i++) {
		const tn_value *v = tn_program_param(t->p, i);
		const void *data = tn_program_param_data(t->p, i);

		if (!t->trained[i])
			tn_no_grad_enter(t->c);
		t->param[i] = tn_parameter(t->c, v->name, v->dtype, v->rank,
			v->shape, data);
		if (!t->trained[i])
			tn_no_grad_leave(t->c);
		else if (t->fresh && v->rank >= 2)
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
	return tn_compile(&t->step, t->c, record_step, t,
		       t->n_in + t->has_key + 1, 1, "step") >= 0 || said(t);
}

void train_net_end(train_net *t)
{
	tn_function_free(t->step);
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
