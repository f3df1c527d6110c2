/*
 * export_train.c: `tenon export --c DIR --train`: writes a step of training as C.
 *
 *     tenon export --c net --train --batch 8 net.onnx
 *     tenon export --c net --train net.tn        its params are trained
 *         net_step(&net, in_x, in_y, out_loss)
 *
 * The step is the one that tenon train makes; its test has random inputs and
 * targets, or inputs from files.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/train_net.h"

#include <stdlib.h>
#include <string.h>

bool cli_export_c_step(const cli_export_c *e, tn_context *c, tn_function *step,
	tn_optimizer *opt, tn_tensor *const *in, const char *const *names)
{
	static const char *const out[] = {"loss"};
	tn_tensor *rate = tn_optimizer_rate(opt);
	tn_export_options o = e->o;

	o.in_names = names;
	o.out_names = out;
	o.kept = &rate;
	o.n_kept = 1;
	if (e->is_measured)
		o.by = TN_EXPORT_BY_NOTHING;
	if (tn_context_status(c) >= 0 &&
		tn_function_export_c(step, in, e->is_measured ? NULL : e->dir,
			&o) >= 0)
		return true;
	cli_diag(tn_context_diag(c));
	return false;
}

/* ---- memory against work ---- */

enum { CURVE = 4 };

/* The sizes of the step with this limit; an exit code. */
static int measure(const cli_export_c *e, int64_t limit, tn_export_size *size,
	int (*once)(void *arg, const cli_export_c *e), void *arg)
{
	cli_export_c one = *e;

	one.memory_limit = limit;
	one.is_measured = true;
	one.o.size = size;
	return once(arg, &one);
}

int cli_export_c_curve(const cli_export_c *e,
	int (*once)(void *arg, const cli_export_c *e), void *arg)
{
	tn_export_size all[CURVE] = {0}, other[CURVE];
	cli_export_c last = *e;
	int64_t most;
	int code = measure(e, -1, &all[0], once, arg);

	/* what is not the state is there for one step */
	most = all[0].arena_bytes - all[0].state_bytes;
	for (int i = 1; i < CURVE && code == CLI_OK; i++)
		code = measure(e, i + 1 < CURVE ? most >> i : 0, &all[i], once,
			arg);
	if (code != CLI_OK)
		return code;
	last.o.n_others = 0;
	for (int i = 0; i < CURVE; i++)
		if (all[i].memory_limit != e->memory_limit)
			other[last.o.n_others++] = all[i];
	last.o.others = other;
	return once(arg, &last);
}

/* A batch, then the other dimensions of the command line. */
static bool set_dims(const train_net *n, const cli_list *dims)
{
	if (n->is_text && dims->n > 0) {
		cli_error(n->file, "onnx.dim", "--dim is for ONNX models");
		return false;
	}
	for (int32_t i = 0; !n->is_text && i < n->n_in; i++) {
		const tn_onnx_port *p = tn_onnx_input(n->m, i);
		size_t room = strlen(p->name) + 8;
		char *dim = p->rank > 0 ? cli_alloc(room, 1) : NULL;
		bool ok;

		if (p->rank <= 0)
			continue;
		if (dim == NULL)
			return false;
		snprintf(dim, room, "%s[0]", p->name);
		ok = tn_onnx_bind_dim(n->m, dim, n->batch) >= 0;
		free(dim);
		if (!ok) {
			cli_diag(tn_context_diag(n->c));
			return false;
		}
	}
	for (int i = 0; i < dims->n; i++)
		if (!cli_onnx_dim(n->m, n->c, dims->at[i]))
			return false;
	return true;
}

/* Classes of a cross entropy, else what the first output should be. */
static tn_tensor *targets(const train_net *n, uint64_t seed)
{
	const tn_value *out = tn_program_output(n->p, 0);
	bool classes = strcmp(n->loss, "cross_entropy") == 0;
	int64_t n_elems = classes ? n->batch : out->n_elems;
	int64_t n_classes = out->n_elems / n->batch;
	tn_tensor *y = NULL;
	void *data;

	if (out->n_elems == 0 || out->n_elems % n->batch != 0 ||
		(classes && n_classes < 2)) {
		cli_error(n->file, "train.data", "the first output of the model "
			"has %lld elements for a batch of %lld, so there are "
			"no targets of a loss",
			(long long)out->n_elems, (long long)n->batch);
		return NULL;
	}
	data = cli_alloc((size_t)n_elems, 8);
	if (data == NULL)
		return NULL;
	tn_fill_random(classes ? TN_I64 : out->dtype, data, n_elems, seed, 0,
		n_classes);
	if (classes)
		y = tn_tensor_new(n->c, TN_I64, 1, &n->batch, data);
	else
		y = tn_tensor_new(
			n->c, out->dtype, out->rank, out->shape, data);
	free(data);
	return y;
}

/* Arrays of the command line: of inputs, and in a text of params. */
static cli_arrays *arrays_of(const train_net *n, const cli_export_c *e)
{
	const cli_model m = {.program = n->p};

	return cli_arrays_new(n->c, &m, &e->input, e->first, false);
}

/* The params' arrays that were given; the others are NULL. */
static const void **given_params(const train_net *n, const cli_arrays *a)
{
	const void **data = cli_alloc((size_t)a->n_in + 1, sizeof *data);
	int32_t k = 0;

	for (int32_t i = 0; data != NULL && i < a->n_in; i++)
		if (tn_program_input(n->p, i)->is_param)
			data[k++] = a->own[i] == NULL ? a->in[i] : NULL;
	return data;
}

static bool write_step(
	const train_net *n, const cli_export_c *e, const cli_arrays *a)
{
	const char *name[TRAIN_MAX_INPUTS + 2];
	tn_tensor *in[TRAIN_MAX_INPUTS + 2];
	int32_t n_in = n->n_in + n->has_key, k = 0;

	for (int32_t i = 0; i < a->n_in && k < n_in; i++) {
		const tn_value *v = tn_program_input(n->p, i);

		if (n->is_text && v->is_param)
			continue;
		name[k] = k < n->n_in ? v->name : "key";
		in[k++] = tn_tensor_new(
			n->c, v->dtype, v->rank, v->shape, a->in[i]);
	}
	name[n_in] = "y";
	in[n_in] = targets(n, e->first + 77);
	return in[n_in] != NULL &&
		cli_export_c_step(e, n->c, n->step, n->opt, in, name);
}

static bool make_and_write(train_net *n, const cli_export_c *e)
{
	cli_arrays *a = arrays_of(n, e);
	const void **given = NULL;
	bool ok = a != NULL;

	if (ok && n->is_text) {
		n->initial = given = given_params(n, a);
		ok = given != NULL;
	}
	ok = ok && train_net_params(n) && write_step(n, e, a);
	free(given);
	cli_arrays_free(a);
	return ok;
}

struct train_job {
	const train_net *net;
	const cli_list *dims;
};

static int once(void *arg, const cli_export_c *e)
{
	const struct train_job *j = arg;
	train_net n = *j->net;
	bool ok;

	if (cli_export_c_context(e, &n.c) < 0)
		return cli_no_context();
	n.is_limited = e->memory_limit >= 0;
	ok = train_net_open(&n) && set_dims(&n, j->dims) &&
		train_net_build(&n) && make_and_write(&n, e);
	train_net_end(&n);
	cli_close(n.c);
	return ok ? CLI_OK : CLI_FAILED;
}

int cli_export_train(
	train_net *n, const cli_export_c *e, const cli_list *dims)
{
	struct train_job j = {n, dims};

	return cli_export_c_curve(e, once, &j);
}
