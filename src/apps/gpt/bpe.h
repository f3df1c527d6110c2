/*
 * bpe.h: what bpe.c and bpe_file.c share.
 */
#ifndef TRAIN_BPE_H
#define TRAIN_BPE_H

#include "apps/gpt/train.h"

enum {
	BPE_VOCAB = 65536, /* a token is a uint16_t */
	BPE_WORD = 64	   /* bytes of a word at most, so of a token */
};

/* A pair of tokens to a number >= 0. */
typedef struct bpe_map {
	struct bpe_entry {
		uint32_t key;
		int64_t value; /* and 1 more; 0: an empty place */
	} *at;		       /* mask + 1, a power of two */
	size_t mask, n;
} bpe_map;

struct train_bpe {
	int32_t vocab;
	struct bpe_bytes {
		uint8_t at[BPE_WORD], n;
	} *bytes;	 /* (vocab) what each token is */
	uint32_t *merge; /* (vocab) a << 16 | b, from 256 on */
	bpe_map map;	 /* and back */
};

/* The bytes alone; NULL: no memory. */
train_bpe *bpe_new(void);
/* One more token, a pair of others: NULL, or what is wrong with it. */
const char *bpe_add(train_bpe *b, int64_t left, int64_t right);
tn_status bpe_no_memory(tn_context *c);

#endif
