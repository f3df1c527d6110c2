/*
 * train_run.h: the state of a training run, shared by train*.c.
 */
#ifndef CLI_TRAIN_RUN_H
#define CLI_TRAIN_RUN_H

#include "cli/cli.h"
#include "apps/gpt/train.h"

enum { PATH_ROOM = 4096, EARLY_SAMPLES = 7 };

/* The results of a step. */
struct told {
	int64_t step;
	double loss, valid, rate;
};

typedef struct run {
	tn_context *c;
	train_config k;
	train_text text;
	train_bpe *bpe; /* NULL: tokens are bytes */
	int lock;	/* descriptor of the folder's lock; -1: none */
	train_gpt *g;
	tn_optimizer *opt;
	tn_params *all;
	train_state s;
	const char *out;
	int64_t until; /* stop after this step */
	int64_t *x, *y;
	int64_t keep, n_sample;
	bool json;
	char saved[PATH_ROOM]; /* the newest checkpoint; "": none */
	double busy, timed;    /* seconds in steps; and the number of these steps */
	/* seconds of the last step; 0: it included compilation */
	double last;
	const char *report, *trace; /* files to write at the end; or NULL */
	struct told *told; /* (n_told) results of each step, for the report */
	size_t n_told;
	char *wrote; /* the sample */
	int64_t patience; /* seconds; 0: as the environment sets it */
	struct { /* shorter samples during the run, for the report */
		int64_t step;
		char *text;
	} early[EARLY_SAMPLES];
	int n_early;
	const char *mesh_text;
	tn_mesh *mesh; /* NULL: this process is alone */
	bool is_first; /* this process prints and writes files */
} run;

/* ---- train_say.c ---- */

void train_say_start(const run *r);
/* After the first step: do elements of a mesh go through the hosts? */
void train_say_devices(const run *r);
/* Prints a step. valid: NAN if it was not computed. */
void train_say_step(const run *r, double loss, double valid);
void train_bar(const run *r, double loss);
/* Stores a step for the report; if memory runs out, the report lacks it. */
void train_keep_step(run *r, double loss, double valid);
int train_say_sample(run *r);
/*
 * At some evaluations, generates a sample for the report. first: the step after
 * which the run began. Does not use random numbers of the training.
 */
int train_keep_sample(run *r, int64_t first);
/* Tokens per second so far. */
double train_rate(const run *r);
/*
 * Locks the folder for this run, until `lock` is closed. Returns CLI_OK, or an
 * exit code after a message.
 */
int train_lock(run *r);
/* Writes the files of --report and --trace. */
int train_report(run *r);

#endif
