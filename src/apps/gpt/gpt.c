/*
 * gpt.c: a transformer on tokens: embeddings, blocks of causal attention and of
 * a gelu network, each after a layer norm, and a head that shares the table of
 * the embeddings. The same as examples/gpt.c, but its sizes are data.
 *
 *     b: batch, t: context, w: width      ids (b, t) -> (b, t, vocab)
 */
#include "apps/gpt/gpt.h"

#include <math.h>
#include <stdlib.h>

tn_status train_gpt_new(train_gpt **out, tn_context *c, const train_config *k)
{
	tn_nn_embedding_options eo = TN_NN_EMBEDDING_OPTIONS_INIT;
	tn_nn_attention_options ao = TN_NN_ATTENTION_OPTIONS_INIT;
	tn_nn_linear_options up = TN_NN_LINEAR_OPTIONS_INIT, down = up;
	tn_nn_norm_options no = TN_NN_NORM_OPTIONS_INIT;
	tn_params *p;
	train_gpt *g;

	*out = NULL;
	if (tn_params_new(&p, c) < 0)
		return TN_ENOMEM;
	g = tn_params_alloc(p, sizeof *g);
	if (g != NULL)
		g->block = tn_params_alloc(
			p, (size_t)k->layers * sizeof *g->block);
	if (g == NULL || g->block == NULL) {
		tn_params_free(p);
		return tn_context_status(c);
	}
	g->p = p;
	g->k = *k;
	eo.dtype = ao.dtype = up.dtype = down.dtype = no.dtype =
		train_config_dtype(k);
	eo.deviation = 0.05;
	ao.causal = true;
	/* the blocks' outputs are added up */
	down.gain = 1 / sqrt(2 * (double)k->layers);
	tn_set_seed(c, (uint64_t)k->seed);
	g->token = tn_nn_embedding(p, "token", k->vocab, k->width, &eo);
	g->place = tn_nn_embedding(p, "place", k->context, k->width, &eo);
	for (int i = 0; i < (int)k->layers; i++) {
		block *b = &g->block[i];

		tn_params_enter(p, "block%d", i);
		b->norm1 = tn_nn_layer_norm(p, "norm1", k->width, &no);
		b->attention = tn_nn_attention(
			p, "attention", k->width, k->heads, &ao);
		b->norm2 = tn_nn_layer_norm(p, "norm2", k->width, &no);
		b->up = tn_nn_linear(p, "up", k->width, 4 * k->width, &up);
		b->down = tn_nn_linear(
			p, "down", 4 * k->width, k->width, &down);
		tn_params_leave(p);
	}
	g->norm = tn_nn_layer_norm(p, "norm", k->width, &no);
	*out = g;
	return tn_context_status(c);
}

void train_gpt_free(train_gpt *g)
{
	if (g != NULL)
		tn_params_free(g->p);
}

tn_params *train_gpt_params(const train_gpt *g)
{
	return g->p;
}

tn_tensor *train_gpt_forward(const train_gpt *g, tn_tensor *ids)
{
	tn_context *c = tn_params_context(g->p);
	bool training = tn_params_training(g->p);
	int64_t n = g->k.context, *t = malloc((size_t)n * sizeof *t);
	tn_tensor *x, *h;

	if (t == NULL) {
		tn_fail(c, TN_ENOMEM, "train.memory", "no memory");
		return NULL;
	}
	for (int64_t i = 0; i < n; i++)
		t[i] = i;
	x = tn_nn_forward(g->place, tn_tensor_new(c, TN_I64, 1, &n, t));
	free(t);
	x = tn_add(tn_nn_forward(g->token, ids), x); /* (b, t, w) */
	for (int64_t i = 0; i < g->k.layers; i++) {
		const block *b = &g->block[i];

		h = tn_nn_forward(b->norm1, x); /* (b, t, w) */
		h = tn_nn_forward(b->attention, h);
		x = tn_add(x, tn_nn_dropout(h, g->k.dropout, training));
		h = tn_nn_forward(b->norm2, x);		  /* (b, t, w) */
		h = tn_gelu_tanh(tn_nn_forward(b->up, h)); /* (b, t, 4 w) */
		h = tn_nn_forward(b->down, h);		  /* (b, t, w) */
		x = tn_add(x, tn_nn_dropout(h, g->k.dropout, training));
	}
	x = tn_nn_forward(g->norm, x);
	return tn_linear_nobias(x, tn_params_get(g->p, "token.weight"));
}

tn_tensor *train_gpt_loss(
	const train_gpt *g, tn_tensor *ids, tn_tensor *next)
{
	tn_tensor *x = train_gpt_forward(g, ids); /* (b, t, VOCAB) */
	int64_t flat[] = {tn_tensor_n_elems(next), g->k.vocab};

	x = tn_reshape(x, flat, 2);
	if (tn_tensor_dtype(x) == TN_BF16) /* logarithms are computed in f32 */
		x = tn_cast(x, TN_F32);
	return tn_cross_entropy(x, next);
}
