/*
 * train.h: the parts of `tenon train` and `tenon generate`. They use only
 * tenon.h, and belong to the command, not to the library.
 *
 *     text.c        files and folders to bytes, batches of them
 *     bpe.c         bytes to tokens and back; bpe_file.c: the vocabulary
 *     gpt.c         the model
 *     write.c       generates text; decode.c: with kept keys and values
 *     place.c       placements on several processes
 *     checkpoint.c  saves and loads a training run as one file
 *
 * The diagnosis of a failure is in the context, as for calls on tensors.
 */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include <tenon.h>

typedef uint16_t train_token; /* below 256: a byte */

/* ---- config.c: the options of a run ---- */

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
	/* name of the option, and of the metadata in a checkpoint */
	const char *name;
	bool is_real;
	double lo, hi, start; /* lo <= v <= hi; start: the default */
	size_t at;	      /* in train_config */
	const char *const *word; /* names of the values, or NULL */
} train_field;

extern const char *const train_dtypes[]; /* ends with NULL */
tn_dtype train_config_dtype(const train_config *k);

extern const train_field train_fields[]; /* ends with a NULL name */
train_config train_config_new(void);
/*
 * Sets a field from text; returns 0, or -1 if the text is not a number in
 * range.
 */
int train_config_set(train_config *k, const train_field *f, const char *text);
/* Prints a field as text that gives the same value. */
void train_config_text(
	const train_config *k, const train_field *f, char *out, size_t n);
/*
 * Checks a configuration. errors [train.heads] [train.memory] too large for
 * this machine
 */
tn_status train_config_check(const train_config *k, tn_context *c);
/* The number of parameters, and the bytes of a step with all kept values. */
double train_config_params(const train_config *k);
double train_config_bytes(const train_config *k);

/* ---- bpe.c, bpe_file.c: vocabularies; NULL: each byte is a token ---- */

typedef struct train_bpe train_bpe;

/*
 * Learns a vocabulary of `vocab` tokens: 256 bytes and the most frequent pairs
 * of a text. errors [train.vocab] the text has too few pairs
 */
tn_status train_bpe_learn(train_bpe **out, tn_context *c, const uint8_t *text,
	size_t n, int64_t vocab);
/*
 * Reads a vocabulary. errors [train.vocab] it cannot be read, or is not a
 * vocabulary
 */
tn_status train_bpe_read(train_bpe **out, tn_context *c, const char *path);
/* Writes a vocabulary, by renaming a complete file. errors [train.vocab] */
tn_status train_bpe_write(
	const train_bpe *b, tn_context *c, const char *path);
void train_bpe_free(train_bpe *b);
int64_t train_bpe_vocab(const train_bpe *b);
uint64_t train_bpe_hash(const train_bpe *b); /* 0: bytes */
/* Encodes n bytes as at most n tokens in out; returns their number. */
size_t train_bpe_encode(
	const train_bpe *b, const uint8_t *text, size_t n, train_token *out);
/* The n bytes of a token. */
const uint8_t *train_bpe_bytes(const train_bpe *b, train_token t, size_t *n);

/* ---- utf8.c: text that arrives in pieces ---- */

/* Bytes of an incomplete character. */
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
/* Ends the text: writes the bytes that still wait; returns their number. */
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

/* The text. The last tenth of each file is only for validation. */
typedef struct train_text {
	train_bytes train, valid;
	train_tokens train_ids, valid_ids; /* of train_text_encode */
	/* of the whole text; texts with different hashes differ */
	uint64_t hash;
	int64_t n_files, n_skipped;
} train_text;

/*
 * Adds a file, or every text file in a folder and below it, ordered by name;
 * skips hidden files there, and files that contain a zero byte. errors
 * [train.text] unreadable, empty, or no text there
 */
tn_status train_text_add(train_text *t, tn_context *c, const char *path);
/* Adds the sources and documents of this program. */
tn_status train_text_add_default(train_text *t, tn_context *c);
/* Encodes the text with a vocabulary; NULL: bytes. */
tn_status train_text_encode(
	train_text *t, tn_context *c, const train_bpe *b);
/*
 * Checks the length of the text. errors [train.context] a context is longer
 * than the text
 */
tn_status train_text_check(
	const train_text *t, tn_context *c, const train_config *k);
/*
 * Batch i of the training, or part i of n of an evaluation: x, and the next
 * tokens y.
 */
void train_text_batch(const train_text *t, const train_config *k, int64_t i,
	int64_t *x, int64_t *y);
void train_text_valid(const train_text *t, const train_config *k, int64_t i,
	int64_t n, int64_t *x, int64_t *y);
void train_text_free(train_text *t);

/*
 * Lines; a NULL after each file, and another one at the end. Generated by
 * meson.
 */
extern const char *const train_default_text[];

/* ---- gpt.c ---- */

typedef struct train_gpt train_gpt;

/* owner: *out is the caller's, train_gpt_free */
tn_status train_gpt_new(train_gpt **out, tn_context *c, const train_config *k);
void train_gpt_free(train_gpt *g);
tn_params *train_gpt_params(const train_gpt *g);
/* ids (b, t) -> logits (b, t, vocab) */
tn_tensor *train_gpt_forward(const train_gpt *g, tn_tensor *ids);
/* The mean of -log p(next), in nats: (); next (b * t) */
tn_tensor *train_gpt_loss(
	const train_gpt *g, tn_tensor *ids, tn_tensor *next);

/* Options for the choice of the next token. */
typedef struct train_choice {
	double temperature; /* 0: always take the likeliest */
	int64_t top_k;	    /* choose among the likeliest k; 0: all */
	/* choose among the likeliest whose chances sum to top_p */
	double top_p;
	uint64_t seed;
	bool uncached; /* run the whole context for each token */
} train_choice;

/*
 * Appends n tokens to `text` (n_text > 0, with room for n more). Calls `say`
 * for each new token; it may be NULL.
 */
tn_status train_gpt_write(const train_gpt *g, const train_choice *how,
	train_token *text, size_t n_text, size_t n,
	void (*say)(void *arg, train_token token), void *arg);

/* ---- decode.c: scores of the next token, with kept keys and values ---- */

typedef struct train_decode train_decode;

/* owner: *out is the caller's, train_decode_free */
tn_status train_decode_new(train_decode **out, const train_gpt *g);
void train_decode_free(train_decode *d);
/* The next call reads another text; what is compiled stays. */
void train_decode_forget(train_decode *d);
/*
 * Scores of the token after n > 0 tokens of a text that grows from call to
 * call. Tokens of the previous call are not computed again.
 */
tn_status train_decode_scores(
	train_decode *d, const train_token *text, size_t n, float *score);

/* ---- place.c: placements for training on several processes ---- */

/*
 * Gives a tensor a placement by its name; "text" is a batch (b, t). Axes of the
 * mesh are data, sequence, model, states; errors [train.mesh] for others
 */
tn_status train_place(const tn_mesh *m, tn_tensor *x, const char *name);
tn_status train_place_all(const tn_mesh *m, const tn_params *p);

/* ---- checkpoint.c ---- */

/* The state of a run besides its tensors. */
typedef struct train_state {
	int64_t step; /* number of finished steps */
	double best;  /* least validation loss; INFINITY: none yet */
	uint64_t text, vocab; /* hashes of the text and of the vocabulary */
	bool unchecked; /* read from a file of an earlier version, which has
			 * no checksum: damage would not be seen */
} train_state;

/* All tensors of a checkpoint, by name: parameters and states. */
tn_status train_all_params(tn_params **out, const train_gpt *g,
	const tn_optimizer *o);

/*
 * Writes DIR/step-00000120.safetensors, the complete state, and removes older
 * ones except `keep` - 1. errors [safetensors.write]: older ones are kept
 */
tn_status train_checkpoint_write(tn_context *c, const char *dir,
	tn_params *all, const train_config *k, const train_state *s, int keep);
/* Writes DIR/best.safetensors: only the parameters, for generating. */
tn_status train_checkpoint_best(tn_context *c, const char *dir,
	tn_params *params, const train_config *k, const train_state *s);
/*
 * Reads the options in a checkpoint, and checks them like those of a command
 * line. Sets *whole if it has the states. errors [train.checkpoint] not a
 * checkpoint of tenon train [safetensors.*]
 *         [safetensors.checksum] a byte of it is not as it was written
 */
tn_status train_checkpoint_read(tn_context *c, const char *path,
	train_config *k, train_state *s, bool *whole);
#define TRAIN_VOCAB_FILE "tokenizer.json"
/*
 * Reads the vocabulary next to a checkpoint; *out is NULL if tokens are bytes.
 * errors [train.vocab] it is missing, or another one
 */
tn_status train_checkpoint_vocab(train_bpe **out, tn_context *c,
	const char *path, const train_config *k, const train_state *s);
/*
 * Finds the paths of the newest checkpoint in DIR and of the one before it; "":
 * there is none. Removes incomplete files of a killed run.
 */
tn_status train_checkpoint_find(tn_context *c, const char *dir, char *newest,
	char *before, size_t n);

#endif
