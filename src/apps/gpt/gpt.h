/*
 * gpt.h: the model, shared by gpt.c, write.c and decode.c.
 */
#ifndef TRAIN_GPT_H
#define TRAIN_GPT_H

#include "apps/gpt/train.h"

typedef struct block {
	tn_layer *norm1, *attention, *norm2, *up, *down;
} block;

struct train_gpt {
	tn_params *p;
	train_config k;
	tn_layer *token, *place, *norm;
	block *block;
};

/* ---- decode.c: scores of the next token, with kept keys and values ---- */

typedef struct train_decode train_decode;

/* owner: *out is the caller's, train_decode_free */
tn_status train_decode_new(train_decode **out, const train_gpt *g);
void train_decode_free(train_decode *d);
/*
 * Scores of the token after n > 0 tokens of a text that grows from call to
 * call. Tokens of the previous call are not computed again.
 */
tn_status train_decode_scores(
	train_decode *d, const train_token *text, size_t n, float *score);

/*
 * The start of the context of n tokens. A full context moves by half its
 * length, so that kept keys can be used for the next half.
 */
size_t train_context_start(const train_gpt *g, size_t n);

#endif
