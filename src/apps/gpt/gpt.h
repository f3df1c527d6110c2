/*
 * gpt.h: what gpt.c, write.c and decode.c know of the model.
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

/* ---- decode.c: what may follow, with keys and values kept ---- */

typedef struct train_decode train_decode;

/* owner: *out is the caller's, train_decode_free */
tn_status train_decode_new(train_decode **out, const train_gpt *g);
void train_decode_free(train_decode *d);
/*
 * Scores of what follows n > 0 tokens: the ones of a text that grows from call
 * to call. What was there at the call before is not computed again.
 */
tn_status train_decode_scores(
	train_decode *d, const train_token *text, size_t n, float *score);

/*
 * Where the context begins of n tokens: it moves on by half of it whenever it
 * is full, so that what is kept stays of use for the other half.
 */
size_t train_context_start(const train_gpt *g, size_t n);

#endif
