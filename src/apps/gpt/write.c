/*
 * write.c: continues a text with a model: computes the score of each possible
 * next token (by decode.c, or by running the whole context for each token) and
 * chooses one.
 *
 *     scores  e 2.1  a 1.9  t -3 ..    temperature 0: e; 0.8: e, a, rarely t
 */
#include "apps/gpt/gpt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct chance {
	double p;
	train_token token;
} chance;

static int by_chance(const void *a, const void *b)
{
	const chance *x = a, *y = b;

	if (x->p != y->p)
		return x->p < y->p ? 1 : -1;
	return x->token - y->token;
}

/*
 * Fills `all` with the n candidates for the choice, sorted if the choice needs
 * an order.
 */
static int64_t likely(const train_choice *how, const float *score,
	int64_t vocab, chance *all)
{
	bool few = how->top_k > 0 && how->top_k < vocab;

	for (int64_t i = 0; i < vocab; i++)
		all[i] = (chance){score[i], (train_token)i};
	if (how->temperature <= 0) {
		for (int64_t i = 1; i < vocab; i++)
			if (all[i].p > all[0].p)
				all[0] = all[i];
		return 1;
	}
	if (few || how->top_p < 1)
		qsort(all, (size_t)vocab, sizeof all[0], by_chance);
	return few ? how->top_k : vocab;
}

/* Chooses a token by its score, with the random number u in [0, 1). */
static train_token choose(const train_choice *how, const float *score,
	int64_t vocab, chance *all, double u)
{
	int64_t n = likely(how, score, vocab, all);
	double sum = 0, so_far = 0, most = -INFINITY;

	if (n == 1)
		return all[0].token;
	for (int64_t i = 0; i < n; i++)
		most = all[i].p > most ? all[i].p : most;
	for (int64_t i = n; i-- > 0;) {
		all[i].p = exp((all[i].p - most) / how->temperature);
		sum += all[i].p;
	}
	/* keep the first tokens whose chances sum to top_p */
	if (how->top_p < 1)
		for (int64_t i = 0; i < n; i++) {
			so_far += all[i].p;
			if (so_far >= how->top_p * sum)
				n = i + 1;
		}
	u *= how->top_p < 1 ? so_far : sum;
	for (int64_t i = 0; i < n; i++) {
		u -= all[i].p;
		if (u < 0)
			return all[i].token;
	}
	return all[n - 1].token;
}

/* Computes the scores without a cache: runs the model on the whole context. */
static tn_status scores(const train_gpt *g, const train_token *text, size_t n,
	int64_t *ids, float *score)
{
	tn_context *c = tn_params_context(g->p);
	size_t start = train_context_start(g, n), seen = n - start;
	size_t v = (size_t)g->k.vocab;
	int64_t t = g->k.context, shape[] = {1, t};
	tn_tensor *x;
	tn_status s;

	memset(ids, 0, (size_t)t * sizeof *ids);
	for (size_t i = 0; i < seen; i++)
		ids[i] = text[start + i];
	tn_scope_enter(c);
	tn_no_grad_enter(c);
	x = train_gpt_forward(g, tn_tensor_new(c, TN_I64, 2, shape, ids));
	x = tn_cast(x, TN_F32);
	s = tn_read(x, score, (size_t)t * v * sizeof *score);
	tn_no_grad_leave(c);
	tn_scope_leave(c);
	if (s >= 0 && seen > 1)
		memmove(score, score + (seen - 1) * v,
			v * sizeof *score);
	return s;
}

/* Buffers that are used while a text is written. */
typedef struct desk {
	int64_t *ids; /* (context) */
	float *score; /* (vocab); uncached: (context, vocab) */
	chance *all;  /* (vocab) */
} desk;

static tn_status go_on(const train_gpt *g, const train_choice *how,
	const desk *w, train_token *text, size_t n_text, size_t n,
	void (*say)(void *arg, train_token token), void *arg)
{
	train_decode *d = NULL;
	tn_status s = how->uncached ? TN_OK : train_decode_new(&d, g);

	for (size_t i = n_text; i < n_text + n && s >= 0; i++) {
		double u;

		s = how->uncached
			? scores(g, text, i, w->ids, w->score)
			: train_decode_scores(d, text, i, w->score);
		if (s < 0)
			break;
		tn_fill_random(
			TN_F64, &u, 1, how->seed + (i - n_text), 0, 0);
		text[i] = choose(
			how, w->score, g->k.vocab, w->all, 0.5 * u + 0.5);
		if (say != NULL)
			say(arg, text[i]);
	}
	train_decode_free(d);
	return s;
}

tn_status train_gpt_write(const train_gpt *g, const train_choice *how,
	train_token *text, size_t n_text, size_t n,
	void (*say)(void *arg, train_token token), void *arg)
{
	size_t t = (size_t)g->k.context, v = (size_t)g->k.vocab;
	bool training = tn_params_training(g->p);
	desk w = {malloc(t * sizeof *w.ids),
		malloc((how->uncached ? t : 1) * v * sizeof *w.score),
		malloc(v * sizeof *w.all)};
	tn_status s;

	tn_params_set_training(g->p, false);
	if (w.ids != NULL && w.score != NULL && w.all != NULL)
		s = go_on(g, how, &w, text, n_text, n, say, arg);
	else
		s = tn_fail(tn_params_context(g->p), TN_ENOMEM, "train.memory",
			"no memory");
	tn_params_set_training(g->p, training);
	free(w.ids);
	free(w.score);
	free(w.all);
	return s;
}
