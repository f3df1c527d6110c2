/*
 * train_net.h: an ONNX model, or a program, as a net that learns; shared by
 * train_onnx.c and export_train.c.
 */
#ifndef CLI_TRAIN_NET_H
#define CLI_TRAIN_NET_H

#include "cli/cli.h"

enum { TRAIN_MAX_INPUTS = 16 };

/* Options as text; NULL: not given. */
typedef struct train_words {
	const char *lr, *decay, *clip, *batch, *classes;
} train_words;

typedef struct train_net {
	/* options; start from TRAIN_NET_INIT */
	const char *file, *loss, *optimizer;
	cli_list freeze;
	tn_optimizer_options rule;
	int64_t batch, seed, classes; /* classes 0: those of the model */
	bool fresh;
	bool is_limited; /* the context has a limit of memory */
	train_words words; /* which of them were given */

	tn_context *c; /* set by the caller */
	tn_onnx *m;
	tn_program *p;
	/* of a program in .tn text, whose params are trained; m is NULL */
	bool is_text;
	const void *const *initial; /* by param, NULL: random; or NULL: all are */
	int32_t n_in; /* number of inputs of the model */
	bool has_key; /* one more input: a key for random numbers */
	int32_t n_params, n_trained;
	tn_tensor **param;
	bool *trained;
	int32_t *next; /* the parameter that each additional output updates */
	tn_optimizer *opt;
	/* the arguments of the step -> the loss, and outputs that are statistics;
	 * NULL: without a limit of memory, where it is part of the step */
	tn_function *forward;
	/* a batch of each input, the key if there is one, the targets -> the loss;
	 * updates the parameters */
	tn_function *step;
} train_net;

#define TRAIN_NET_INIT                                                         \
	{                                                                      \
		.loss = "cross_entropy", .optimizer = "adamw", .batch = 8,     \
		.rule = TN_OPTIMIZER_OPTIONS_INIT                              \
	}

/* Input i of the net, and param i. */
const tn_value *train_net_input(const train_net *t, int32_t i);
const tn_value *train_net_param(const train_net *t, int32_t i);
/* Reads the words, and checks the loss. -1, or an exit code after a message. */
int train_net_read(const cli_command *self, train_net *t);
/* All return false after a message. open: reads the model, whose shapes the caller
 * then sets. */
bool train_net_open(train_net *t);
bool train_net_build(train_net *t);
/* Makes the parameters and the step. */
bool train_net_params(train_net *t);
/* Frees all but the context and the options. */
void train_net_end(train_net *t);

#endif
