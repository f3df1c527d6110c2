/*
 * train.h: what `tenon train` and `tenon generate` are made of, on tenon.h
 * alone; part of the command, not of the library.
 *
 *     text.c        files and folders to bytes, batches of them
 *     gpt.c         the model
 *     write.c       a text goes on; decode.c: with keys and values kept
 *     checkpoint.c  all of a training run as one file, and back
 *
 * What fails has its diagnosis in the context, as calls on tensors have.
 */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include <tenon.h>

enum { TRAIN_VOCAB = 256 }; /* a token is a byte */
typedef uint16_t train_token;

/* ---- config.c: the numbers of a run ---- */

/* All that decides which bits come out, the text and the version apart. */
typedef struct train_config {
	int64_t layers, heads, width, context; /* the model */
	int64_t batch, accumulate;	       /* batches of a step */
	int64_t steps, warmup, every;	       /* every: so many steps, look */
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
/* The value of a field from text: 0, or -1 when it is no number within range. */
int train_config_set(train_config *k, const train_field *f, const char *text);
/* The same as text that gives the same value. */
void train_config_text(
	const train_config *k, const train_field *f, char *out, size_t n);
/* errors [train.heads] [train.memory] it would not fit into this machine */
tn_status train_config_check(const train_config *k, tn_context *c);
/* Parameters, and bytes of a step with all it keeps. */
double train_config_params(const train_config *k);
double train_config_bytes(const train_config *k);

/* ---- text.c ---- */

typedef struct train_bytes {
	uint8_t *at;
	size_t n, cap;
} train_bytes;

/* Of each file the last tenth is never learned from. */
typedef struct train_text {
	train_bytes train, valid;
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
/* ids (b, t) -> (b, t, VOCAB): logarithms of chances, up to a constant */
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

/* ---- checkpoint.c ---- */

/* Where a run stands, besides its tensors. */
typedef struct train_state {
	int64_t step; /* done */
	double best;  /* least loss of validation; INFINITY: none yet */
	uint64_t text;
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
 */
tn_status train_checkpoint_read(tn_context *c, const char *path,
	train_config *k, train_state *s, bool *whole);
/*
 * Path of the newest in DIR, and of the one before it; "": there is none.
 * What a killed run has left half written is removed.
 */
tn_status train_checkpoint_find(tn_context *c, const char *dir, char *newest,
	char *before, size_t n);

#endif
