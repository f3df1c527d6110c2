/*
 * norm.c: layer norm, root-mean-square norm and batch norm.
 *
 *     layer, rms   x (.., n), statistics of each row
 *     batch        x (n, channels, ..), statistics of each channel: of the
 *                  batch in training, where the running ones follow; else
 *                  those
 */
#include "nn/local.h"

typedef struct norm {
	tn_layer layer;
	double eps, momentum;
	tn_tensor *w, *b;     /* (n) or (channels) */
	tn_tensor *mean, *var; /* (channels), batch norm's */
} norm;

static tn_tensor *run_layer(
	const nn_site *at, const tn_layer *layer, tn_tensor *x)
{
	const norm *l = (const norm *)(const void *)layer;

	return tn_at_layer_norm(
		at->file, at->line, x, l->w, l->b, 1, l->eps);
}

static tn_tensor *run_rms(
	const nn_site *at, const tn_layer *layer, tn_tensor *x)
{
	const norm *l = (const norm *)(const void *)layer;

	return tn_at_rms_norm(at->file, at->line, x, l->w, l->eps);
}

static tn_tensor *run_batch(
	const nn_site *at, const tn_layer *layer, tn_tensor *x)
{
	const norm *l = (const norm *)(const void *)layer;
	tn_tensor *out[3] = {NULL, NULL, NULL}; /* x', mean', var' */

	if (!tn_params_training(layer->p))
		return tn_at_batch_norm_infer(at->file, at->line, x, l->w,
			l->b, l->mean, l->var, l->eps);
	if (tn_at_batch_norm(at->file, at->line, x, l->w, l->b, l->mean,
		    l->var, l->eps, l->momentum, out) < 0)
		return NULL;
	if (tn_no_grad_enter(tn_params_context(layer->p)) < 0)
		return NULL;
	tn_at_copy_(at->file, at->line, l->mean, out[1]);
	tn_at_copy_(at->file, at->line, l->var, out[2]);
	tn_no_grad_leave(tn_params_context(layer->p));
	tn_drop(out[1]);
	tn_drop(out[2]);
	return out[0];
}

/* Makes a norm with its weight; the constructor of each kind sets the rest. */
static norm *make(nn_making *m, int64_t n, const char *what,
	const tn_nn_norm_options *o,
	tn_tensor *(*run)(const nn_site *, const tn_layer *, tn_tensor *))
{
	norm *l = (norm *)(void *)m->layer;

	nn_want_extent(m, what, n);
	if (m->failed)
		return NULL;
	l->layer.run = run;
	l->eps = o->eps;
	l->momentum = o->momentum;
	l->w = nn_vector(m, "weight", o->dtype, n, 1);
	return l;
}

static const tn_nn_norm_options defaults = TN_NN_NORM_OPTIONS_INIT;

tn_layer *tn_at_nn_layer_norm(const char *file, int32_t line, tn_params *p,
	const char *name, int64_t n, const tn_nn_norm_options *options)
{
	const tn_nn_norm_options *o = options != NULL ? options : &defaults;
	nn_making m = nn_begin((nn_site){file, line}, p, name, o->n_bytes,
		sizeof *o, sizeof(norm));
	norm *l = make(&m, n, "n", o, run_layer);

	if (l != NULL)
		l->b = nn_vector(&m, "bias", o->dtype, n, 0);
	return nn_end(&m);
}

tn_layer *tn_at_nn_rms_norm(const char *file, int32_t line, tn_params *p,
	const char *name, int64_t n, const tn_nn_norm_options *options)
{
	const tn_nn_norm_options *o = options != NULL ? options : &defaults;
	nn_making m = nn_begin((nn_site){file, line}, p, name, o->n_bytes,
		sizeof *o, sizeof(norm));

	(void)make(&m, n, "n", o, run_rms);
	return nn_end(&m);
}

tn_layer *tn_at_nn_batch_norm(const char *file, int32_t line, tn_params *p,
	const char *name, int64_t channels, const tn_nn_norm_options *options)
{
	const tn_nn_norm_options *o = options != NULL ? options : &defaults;
	nn_making m = nn_begin((nn_site){file, line}, p, name, o->n_bytes,
		sizeof *o, sizeof(norm));
	norm *l = make(&m, channels, "channels", o, run_batch);

	if (l == NULL)
		return nn_end(&m);
	l->b = nn_vector(&m, "bias", o->dtype, channels, 0);
	l->mean = nn_param(
		&m, "running_mean", o->dtype, 1, &channels, false);
	l->var = nn_param(&m, "running_var", o->dtype, 1, &channels, false);
	if (!m.failed)
		m.failed = tn_at_init_constant(file, line, l->var, 1) < 0;
	return nn_end(&m);
}
