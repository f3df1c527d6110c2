/*
 * gpt.h: a small transformer on bytes, and sentences to learn: what gpt.c
 * trains by itself, and gpt_parallel.c on several processes. Embeddings, blocks
 * of causal attention and a gelu network behind layer norms, a head that shares
 * the table of the bytes.
 */
#ifndef GPT_H
#define GPT_H

#include <tenon.h>

#include <stdio.h>
#include <string.h>

enum { V = 128, B = 8, T = 40, C = 64, HEADS = 4, LAYERS = 2 };

/* ---- text ---- */

static inline uint64_t draw(uint64_t *state, uint64_t below)
{
	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (*state >> 33) % below;
}

/* n bytes of text, each a number below V. */
static inline void write_text(int64_t *to, int n, uint64_t seed)
{
	static const char *const who[] = {"Anna", "Ben", "Carla", "Dan", "Eve",
		"Fritz", "Gina", "Hugo"};
	static const char *const what[] = {"tea", "milk", "soup", "bread",
		"rice", "plums", "nuts", "cake"};
	char line[80];

	for (int i = 0; i < n;) {
		const char *s = who[draw(&seed, 8)], *o = what[draw(&seed, 8)];
		int m = snprintf(line, sizeof line,
			"%s likes %s, so %s gets %s.\n", s, o, s, o);

		for (int k = 0; k < m && i < n; k++)
			to[i++] = line[k];
	}
}

/* ids (B, T) and what follows each, next (B, T). */
static inline void batch(
	tn_context *c, uint64_t seed, tn_tensor **ids, tn_tensor **next)
{
	static int64_t text[T + 1], x[B * T], y[B * T];
	int64_t shape[] = {B, T};

	for (int i = 0; i < B; i++) {
		write_text(text, T + 1, seed * B + (uint64_t)i + 1);
		memcpy(&x[i * T], text, sizeof x[0] * T);
		memcpy(&y[i * T], text + 1, sizeof y[0] * T);
	}
	*ids = tn_tensor_new(c, TN_I64, 2, shape, x);
	*next = tn_tensor_new(c, TN_I64, 2, shape, y);
}

/* ---- model ---- */

typedef struct block {
	tn_layer *norm1, *attention, *norm2, *up, *down;
} block;

typedef struct gpt {
	tn_params *p;
	tn_layer *token, *place, *norm;
	block block[LAYERS];
} gpt;

static inline gpt gpt_new(tn_context *c)
{
	tn_nn_embedding_options eo = TN_NN_EMBEDDING_OPTIONS_INIT;
	tn_nn_attention_options ao = TN_NN_ATTENTION_OPTIONS_INIT;
	tn_nn_linear_options down = TN_NN_LINEAR_OPTIONS_INIT;
	gpt g = {NULL};

	if (tn_params_new(&g.p, c) < 0)
		return g;
	eo.deviation = 0.1;
	ao.causal = true;
	down.gain = 0.5; /* the sum of all blocks stays near 1 */
	g.token = tn_nn_embedding(g.p, "token", V, C, &eo);
	g.place = tn_nn_embedding(g.p, "place", T, C, &eo);
	for (int i = 0; i < LAYERS; i++) {
		block *b = &g.block[i];

		tn_params_enter(g.p, "block%d", i);
		b->norm1 = tn_nn_layer_norm(g.p, "norm1", C, NULL);
		b->attention = tn_nn_attention(g.p, "attention", C, HEADS, &ao);
		b->norm2 = tn_nn_layer_norm(g.p, "norm2", C, NULL);
		b->up = tn_nn_linear(g.p, "up", C, 4 * C, NULL);
		b->down = tn_nn_linear(g.p, "down", 4 * C, C, &down);
		tn_params_leave(g.p);
	}
	g.norm = tn_nn_layer_norm(g.p, "norm", C, NULL);
	return g;
}

/* ids (B, T) -> (B, T, V): what may follow, up to a constant */
static inline tn_tensor *gpt_run(const gpt *g, tn_tensor *ids)
{
	tn_context *c = tn_params_context(g->p);
	int64_t t[T], ts[] = {T};
	tn_tensor *x, *h;

	for (int i = 0; i < T; i++)
		t[i] = i;
	x = tn_nn_forward(g->place, tn_tensor_new(c, TN_I64, 1, ts, t));
	x = tn_add(tn_nn_forward(g->token, ids), x); /* (B, T, C) */
	for (int i = 0; i < LAYERS; i++) {
		const block *b = &g->block[i];

		h = tn_nn_forward(b->norm1, x); /* (B, T, C) */
		x = tn_add(x, tn_nn_forward(b->attention, h));
		h = tn_nn_forward(b->norm2, x);		  /* (B, T, C) */
		h = tn_gelu_tanh(tn_nn_forward(b->up, h)); /* (B, T, 4 C) */
		x = tn_add(x, tn_nn_forward(b->down, h)); /* (B, T, C) */
	}
	x = tn_nn_forward(g->norm, x);
	return tn_linear_nobias(x, tn_params_get(g->p, "token.weight"));
}

/* ids, next (B, T) -> the mean of -log p(next), in nats: () */
static inline tn_tensor *gpt_loss(
	const gpt *g, tn_tensor *ids, tn_tensor *next)
{
	int64_t flat[] = {B * T, V};

	return tn_cross_entropy(tn_reshape(gpt_run(g, ids), flat, 2),
		tn_reshape(next, flat, 1));
}

#endif
