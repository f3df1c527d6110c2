/*
 * decode_texts.c: one decoder reads text after text: each has the scores, bit by bit,
 * that a decoder of its own gives it, also behind a longer text and behind one that has
 * the same beginning.
 */
#include "apps/gpt/train.h"

#include <stdio.h>
#include <string.h>
#include <tenon.h>

enum { VOCAB = 256, MOST = 40 };

/* Scores of the token after n tokens of text number `which`. */
static bool scores(train_decode *d, int which, size_t n, float *out)
{
	train_token text[MOST];

	for (int i = 0; i < MOST; i++) /* texts 0 and 1 begin with the same token */
		text[i] = (train_token)((i * (17 + which) + (which > 1) * 5) % VOCAB);
	return train_decode_scores(d, text, n, out) >= 0;
}

/* The texts of one decoder, in turn. */
static bool agree(const train_gpt *g)
{
	static const struct {
		int text;
		size_t n;
	} turn[] = {{0, 33}, {1, 7}, {2, 40}, {0, 33}, {0, 1}, {1, 20}};
	train_decode *d = NULL, *own;
	bool ok = train_decode_new(&d, g) >= 0;

	for (size_t i = 0; i < sizeof turn / sizeof *turn && ok; i++) {
		float x[VOCAB], y[VOCAB];

		own = NULL;
		train_decode_forget(d);
		ok = scores(d, turn[i].text, turn[i].n, x) &&
			train_decode_new(&own, g) >= 0 &&
			scores(own, turn[i].text, turn[i].n, y);
		train_decode_free(own);
		if (ok && memcmp(x, y, sizeof x) != 0) {
			fprintf(stderr, "decode_texts: text %d, %d tokens, in turn "
				"%d: other scores\n", turn[i].text,
				(int)turn[i].n, (int)i);
			ok = false;
		}
	}
	train_decode_free(d);
	return ok;
}

int main(void)
{
	train_config k = train_config_new();
	tn_context *c = NULL;
	train_gpt *g = NULL;
	bool ok;

	k.layers = 2;
	k.heads = 2;
	k.width = 32;
	k.context = 48;
	k.vocab = VOCAB;
	k.batch = 1;
	if (tn_context_new(&c, NULL) < 0)
		return 2;
	ok = train_config_check(&k, c) >= 0 && train_gpt_new(&g, c, &k) >= 0;
	if (ok)
		tn_params_set_training(train_gpt_params(g), false);
	ok = ok && agree(g);
	train_gpt_free(g);
	if (tn_context_status(c) != TN_OK)
		fprintf(stderr, "decode_texts: %s\n", tn_context_diag(c)->text);
	tn_context_free(c);
	return ok ? 0 : 1;
}
