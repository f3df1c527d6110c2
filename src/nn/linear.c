/*
 * linear.c: linear layers (products with a matrix of weights) and embeddings
 * (rows of a table of weights).
 *
 *     x (.., in) -> (.., out)      ids (..) -> (.., width)
 */
#include "nn/local.h"

/* ---- linear ---- */

typedef struct linear {
	tn_layer layer;
	tn_tensor *w; /* (out, in) */
	tn_tensor *b; /* (out), or NULL */
} linear;

static tn_tensor *run_linear(
	const nn_site *at, const tn_layer *layer, tn_tensor *x)
{
	const linear *l = (const linear *)(const void *)layer;

	return NN_LINEAR(at, x, l->w, l->b);
}

tn_layer *tn_at_nn_linear(const char *file, int32_t line, tn_params *p,
	const char *name, int64_t in, int64_t out,
	const tn_nn_linear_options *options)
{
	static const tn_nn_linear_options defaults = TN_NN_LINEAR_OPTIONS_INIT;
	const tn_nn_linear_options *o = options != NULL ? options : &defaults;
	int64_t shape[] = {out, in};
	nn_making m = nn_begin((nn_site){file, line}, p, name, o->n_bytes,
		sizeof *o, sizeof(linear));
	linear *l = (linear *)(void *)m.layer;

	nn_want_extent(&m, "in", in);
	nn_want_extent(&m, "out", out);
	if (m.failed)
		return nn_end(&m);
	l->layer.run = run_linear;
	l->w = nn_weight(&m, "weight", o->dtype, 2, shape, o->gain);
	if (!o->no_bias)
		l->b = nn_vector(&m, "bias", o->dtype, out, 0);
	return nn_end(&m);
}

/* ---- embedding ---- */

typedef struct embedding {
	tn_layer layer;
	tn_tensor *w; /* (n, width) */
} embedding;

static tn_tensor *run_embedding(
	const nn_site *at, const tn_layer *layer, tn_tensor *x)
{
	const embedding *l = (const embedding *)(const void *)layer;

	return tn_at_embedding(at->file, at->line, x, l->w);
}

tn_layer *tn_at_nn_embedding(const char *file, int32_t line, tn_params *p,
	const char *name, int64_t n, int64_t width,
	const tn_nn_embedding_options *options)
{
	static const tn_nn_embedding_options defaults =
		TN_NN_EMBEDDING_OPTIONS_INIT;
	const tn_nn_embedding_options *o =
		options != NULL ? options : &defaults;
	int64_t shape[] = {n, width};
	nn_making m = nn_begin((nn_site){file, line}, p, name, o->n_bytes,
		sizeof *o, sizeof(embedding));
	embedding *l = (embedding *)(void *)m.layer;

	nn_want_extent(&m, "n", n);
	nn_want_extent(&m, "width", width);
	if (m.failed)
		return nn_end(&m);
	l->layer.run = run_embedding;
	l->w = nn_param(&m, "weight", o->dtype, 2, shape, true);
	if (!m.failed)
		m.failed = tn_at_init_normal(
				   file, line, l->w, 0, o->deviation) < 0;
	return nn_end(&m);
}
