/*
 * gpt.c: a transformer on bytes: embeddings, blocks of causal attention and a
 * gelu network behind layer norms, a head that shares the table of the bytes.
 * The same as examples/gpt.c, with its sizes as data; and writing with it.
 *
 *     b: batch, t: context, w: width      ids (b, t) -> (b, t, 256)
 */
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct block {
	tn_layer *norm1, *attention, *norm2, *up, *down;
} block;

struct train_gpt {
	tn_params *p;
	train_config k;
	tn_layer *token, *place, *norm;
	block *block;
};

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
	down.gain = 1 / sqrt(2 * (double)k->layers); /* blocks add up */
	tn_set_seed(c, (uint64_t)k->seed);
	g->token = tn_nn_embedding(p, "token", TRAIN_VOCAB, k->width, &eo);
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
	int64_t flat[] = {tn_tensor_n_elems(next), TRAIN_VOCAB};

	return tn_cross_entropy(tn_reshape(x, flat, 2), next);
}

/* ---- writing ---- */

typedef struct chance {
	double p;
	int byte;
} chance;

static int by_chance(const void *a, const void *b)
{
	const chance *x = a, *y = b;

	if (x->p != y->p)
		return x->p < y->p ? 1 : -1;
	return x->byte - y->byte;
}

/* A byte by its score; u in [0, 1) decides. */
static uint8_t choose(const train_choice *how, const float *score, double u)
{
	chance all[TRAIN_VOCAB];
	double sum = 0, so_far = 0;
	int n = TRAIN_VOCAB;

	for (int i = 0; i < TRAIN_VOCAB; i++)
		all[i] = (chance){score[i], i};
	qsort(all, TRAIN_VOCAB, sizeof all[0], by_chance);
	if (how->temperature <= 0)
		return (uint8_t)all[0].byte;
	if (how->top_k > 0 && how->top_k < n)
		n = (int)how->top_k;
	for (int i = n; i-- > 0;) {
		all[i].p = exp((all[i].p - all[0].p) / how->temperature);
		sum += all[i].p;
	}
	for (int i = 0; i < n; i++) { /* the first few that are top_p of all */
		so_far += all[i].p;
		if (so_far >= how->top_p * sum)
			n = i + 1;
	}
	u *= so_far;
	for (int i = 0; i < n; i++) {
		u -= all[i].p;
		if (u < 0)
			return (uint8_t)all[i].byte;
	}
	return (uint8_t)all[n - 1].byte;
}

/* What follows the last bytes of text, as far as a context goes. */
static tn_status scores(const train_gpt *g, const uint8_t *text, size_t n,
	int64_t *ids, float *score)
{
	tn_context *c = tn_params_context(g->p);
	int64_t t = g->k.context, shape[] = {1, t};
	int64_t seen = n < (size_t)t ? (int64_t)n : t;
	tn_tensor *x;
	tn_status s;

	for (int64_t i = 0; i < t; i++)
		ids[i] = i < seen ? text[n - (size_t)seen + (size_t)i] : 0;
	tn_scope_enter(c);
	tn_no_grad_enter(c);
	x = train_gpt_forward(g, tn_tensor_new(c, TN_I64, 2, shape, ids));
	x = tn_cast(x, TN_F32);
	s = tn_read(x, score, (size_t)t * TRAIN_VOCAB * sizeof *score);
	tn_no_grad_leave(c);
	tn_scope_leave(c);
	if (s >= 0 && seen > 1)
		memmove(score, score + (seen - 1) * TRAIN_VOCAB,
			TRAIN_VOCAB * sizeof *score);
	return s;
}

tn_status train_gpt_write(const train_gpt *g, const train_choice *how,
	uint8_t *text, size_t n_text, size_t n,
	void (*say)(void *arg, uint8_t byte), void *arg)
{
	tn_context *c = tn_params_context(g->p);
	size_t t = (size_t)g->k.context;
	int64_t *ids = malloc(t * sizeof *ids);
	float *score = malloc(t * TRAIN_VOCAB * sizeof *score);
	bool training = tn_params_training(g->p);
	tn_status s = TN_OK;

	if (ids == NULL || score == NULL)
		s = tn_fail(c, TN_ENOMEM, "train.memory", "no memory");
	tn_params_set_training(g->p, false);
	for (size_t i = 0; i < n && s >= 0; i++) {
		double u;

		s = scores(g, text, n_text + i, ids, score);
		tn_fill_random(TN_F64, &u, 1, how->seed + i, 0, 0);
		if (s >= 0) {
			text[n_text + i] = choose(how, score, 0.5 * u + 0.5);
			if (say != NULL)
				say(arg, text[n_text + i]);
		}
	}
	tn_params_set_training(g->p, training);
	free(ids);
	free(score);
	return s;
}
