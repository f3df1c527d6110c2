/*
 * train.h: what `tenon train` and `tenon generate` are made of, on tenon.h
 * alone; part of the command, not of the library.
 *
 *     text.c        files and folders to bytes, batches of them
 *     bpe.c         bytes to tokens and back; bpe_file.c: the vocabulary
 *     gpt.c         the model
 *     write.c       a text goes on; decode.c: with keys and values kept
 *     place.c       what each of several processes has
 *     checkpoint.c  all of a training run as one file, and back
 *
 * What fails has its diagnosis in the context, as calls on tensors have.
 */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include <tenon.h>

typedef uint16_t train_token; /* below 256: a byte */

/* ---- config.c: the numbers of a run ---- */

/* Everything that determines the bits of the result, besides text and version. */
typedef struct train_config {
	int64_t layers, heads, width, context; /* the model */
	int64_t batch, accumulate;	       /* batches of a step */
	int64_t steps, warmup, every;	       /* every: steps between evaluations */
	int64_t vocab;			       /* 256: bytes */
	int64_t seed, dtype;		       /* of train_dtypes */
	double lr, decay, clip, dropout;
} train_config;

typedef struct train_field {
	const char *name; /* of the option, and in a checkpoint */
	bool is_real;
	double lo, hi, start; /* lo <= v <= hi; start: unless said otherwise */
	size_t at;	      /* in train_config */
	const char *const *word; /* NULL; or what values are called */
} train_field;

extern const char *const train_dtypes[]; /* ends with NULL */
tn_dtype train_config_dtype(const train_config *k);

extern const train_field train_fields[]; /* ends with a NULL name */
train_config train_config_new(void);
/* The value of a field from text: 0, or -1 if it is not a number in range. */
int train_config_set(train_config *k, const train_field *f, const char *text);
/* The same as text that gives the same value. */
void train_config_text(
	const train_config *k, const train_field *f, char *out, size_t n);
/* errors [train.heads] [train.memory] it would not fit into this machine */
tn_status train_config_check(const train_config *k, tn_context *c);
/* Parameters, and bytes of a step with all it keeps. */
double train_config_params(const train_config *k);
double train_config_bytes(const train_config *k);

/* ---- bpe.c, bpe_file.c: bytes to tokens; NULL: each byte is one ---- */

typedef struct train_bpe train_bpe;

/*
 * 256 bytes and the most frequent pairs of a text, vocab in all.
 * errors [train.vocab] the text has not so many
 */
tn_status train_bpe_learn(train_bpe **out, tn_context *c, const uint8_t *text,
	size_t n, int64_t vocab);
/* errors [train.vocab] it cannot be read, or is not a vocabulary */
tn_status train_bpe_read(train_bpe **out, tn_context *c, const char *path);
/* Appears as a whole or not at all. errors [train.vocab] */
tn_status train_bpe_write(
	const train_bpe *b, tn_context *c, const char *path);
void train_bpe_free(train_bpe *b);
int64_t train_bpe_vocab(const train_bpe *b);
uint64_t train_bpe_hash(const train_bpe *b); /* 0: bytes */
/* Tokens of n bytes, at most n, in out: their number. */
size_t train_bpe_encode(
	const train_bpe *b, const uint8_t *text, size_t n, train_token *out);
/* The n bytes of a token. */
const uint8_t *train_bpe_bytes(const train_bpe *b, train_token t, size_t *n);

/* ---- utf8.c: text that comes in pieces ---- */

/* Bytes that wait until their character is whole. */
typedef struct train_utf8 {
	uint8_t at[4];
	int n;
} train_utf8;

/*
 * Adds a byte; returns n: the first n bytes of out (8) are complete characters.
 * Invalid bytes become `instead`, or do not change if that is NULL.
 */
size_t train_utf8_push(
	train_utf8 *u, uint8_t byte, const char *instead, char *out);
/* What still waits, at the end. */
size_t train_utf8_end(train_utf8 *u, const char *instead, char *out);

/* ---- text.c ---- */

typedef struct train_bytes {
	uint8_t *at;
	size_t n, cap;
} train_bytes;

typedef struct train_tokens {
	train_token *at;
	size_t n;
} train_tokens;

/* Of each file the last tenth is never learned from. */
typedef struct train_text {
	train_bytes train, valid;
	train_tokens train_ids, valid_ids; /* of train_text_encode */
	uint64_t hash; /* of all of it: another text has another one */
	int64_t n_files, n_skipped;
} train_text;

/*
 * A file, or every text file in and below a folder in the order of their
 * names; what is hidden, and what has a zero in it, is skipped there.
 * errors [train.text] unreadable, empty, or no text there
 */
tn_status train_text_add(train_text *t, tn_context *c, const char *path);
/* The sources and documents of this very program. */
tn_status train_text_add_default(train_text *t, tn_context *c);
/* The same as tokens, by a vocabulary; NULL: bytes. */
tn_status train_text_encode(
	train_text *t, tn_context *c, const train_bpe *b);
/* errors [train.context] a context is longer than the text */
tn_status train_text_check(
	const train_text *t, tn_context *c, const train_config *k);
/* Batch i of all, or part i of n of an evaluation: x, and y behind it. */
void train_text_batch(const train_text *t, const train_config *k, int64_t i,
	int64_t *x, int64_t *y);
void train_text_valid(const train_text *t, const train_config *k, int64_t i,
	int64_t n, int64_t *x, int64_t *y);
void train_text_free(train_text *t);

/* Lines, a NULL behind each file and another one at the end: made by meson. */
extern const char *const train_default_text[];

/* ---- gpt.c ---- */

typedef struct train_gpt train_gpt;

/* owner: *out is the caller's, train_gpt_free */
tn_status train_gpt_new(train_gpt **out, tn_context *c, const train_config *k);
void train_gpt_free(train_gpt *g);
tn_params *train_gpt_params(const train_gpt *g);
/* ids (b, t) -> (b, t, vocab): logarithms of chances, up to a constant */
tn_tensor *train_gpt_forward(const train_gpt *g, tn_tensor *ids);
/* The mean of -log p(next), in nats: (); next (b * t) */
tn_tensor *train_gpt_loss(
	const train_gpt *g, tn_tensor *ids, tn_tensor *next);

/* How the next token is chosen. */
typedef struct train_choice {
	double temperature; /* 0: always the likeliest */
	int64_t top_k;	    /* only the likeliest k; 0: any */
	double top_p;	    /* only the likeliest that p of all falls to */
	uint64_t seed;
	bool uncached; /* the whole context through the model for each token */
} train_choice;

/*
 * Writes the next n tokens after those of `text` (n_text > 0, room for n
 * more). say is called with each as it comes; NULL is fine.
 */
tn_status train_gpt_write(const train_gpt *g, const train_choice *how,
	train_token *text, size_t n_text, size_t n,
	void (*say)(void *arg, train_token token), void *arg);

/* ---- place.c: placements for training on several processes ---- */

/*
 * Places a tensor by its name: "text" is a batch (b, t). Axes of the mesh are
 * data, sequence, model, states; errors [train.mesh] for others
 */
tn_status train_place(const tn_mesh *m, tn_tensor *x, const char *name);
tn_status train_place_all(const tn_mesh *m, const tn_params *p);

/* ---- checkpoint.c ---- */

/* Where a run stands, besides its tensors. */
typedef struct train_state {
	int64_t step; /* done */
	double best;  /* least loss of validation; INFINITY: none yet */
	uint64_t text, vocab; /* hashes: another one is another one */
	bool unchecked; /* read from a file of an earlier version, which has
			 * no checksum: damage would not be seen */
} train_state;

/* Everything that a run goes on from: parameters and states by name. */
tn_status train_all_params(tn_params **out, const train_gpt *g,
	const tn_optimizer *o);

/*
 * DIR/step-00000120.safetensors: all of it; older ones but `keep` - 1 go.
 * errors [safetensors.write]: those that were there are still there
 */
tn_status train_checkpoint_write(tn_context *c, const char *dir,
	tn_params *all, const train_config *k, const train_state *s, int keep);
/* DIR/best.safetensors: the parameters alone, to generate with. */
tn_status train_checkpoint_best(tn_context *c, const char *dir,
	tn_params *params, const train_config *k, const train_state *s);
/*
 * The numbers of a file, checked like those of a command line. *whole: with
 * the states. errors [train.checkpoint] not one of ours   [safetensors.*]
 *         [safetensors.checksum] a byte of it is not as it was written
 */
tn_status train_checkpoint_read(tn_context *c, const char *path,
	train_config *k, train_state *s, bool *whole);
#define TRAIN_VOCAB_FILE "tokenizer.json"
/*
 * The vocabulary beside a checkpoint; *out NULL: its tokens are bytes.
 * errors [train.vocab] it is not there, or another one
 */
tn_status train_checkpoint_vocab(train_bpe **out, tn_context *c,
	const char *path, const train_config *k, const train_state *s);
/*
 * Path of the newest in DIR, and of the one before it; "": there is none.
 * What a killed run has left half written is removed.
 */
tn_status train_checkpoint_find(tn_context *c, const char *dir, char *newest,
	char *before, size_t n);

#endif
