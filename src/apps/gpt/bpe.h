/*
 * bpe.h: shared by bpe.c and bpe_file.c.
 */
#ifndef TRAIN_BPE_H
#define TRAIN_BPE_H

#include "apps/gpt/train.h"

enum {
	BPE_VOCAB = 65536, /* a token is a uint16_t */
	/* largest number of bytes of a word, and so of a token */
	BPE_WORD = 64
};

/* Maps a pair of tokens to a number >= 0. */
typedef struct bpe_map {
	struct bpe_entry {
		uint32_t key;
		int64_t value; /* value + 1; 0: an empty slot */
	} *at;		       /* mask + 1, a power of two */
	size_t mask, n;
} bpe_map;

struct train_bpe {
	int32_t vocab;
	struct bpe_bytes {
		uint8_t at[BPE_WORD], n;
	} *bytes;	 /* (vocab) the bytes of each token */
	uint32_t *merge; /* (vocab) a << 16 | b, from 256 on */
	bpe_map map;	 /* pair -> token */
};

/* A vocabulary of only the bytes; NULL: out of memory. */
train_bpe *bpe_new(void);
/*
 * Adds a token, a pair of others; returns NULL, or the reason why it is
 * invalid.
 */
const char *bpe_add(train_bpe *b, int64_t left, int64_t right);
tn_status bpe_no_memory(tn_context *c);

#endif
