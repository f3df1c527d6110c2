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

/*
 * The start of the context of n tokens. A full context moves by half its
 * length, so that kept keys can be used for the next half.
 */
size_t train_context_start(const train_gpt *g, size_t n);

#endif
