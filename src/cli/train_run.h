/*
 * train_run.h: a training run, as train.c and train_report.c see it.
 */
#ifndef CLI_TRAIN_RUN_H
#define CLI_TRAIN_RUN_H

#include "cli/cli.h"
#include "apps/gpt/train.h"

enum { PATH_ROOM = 4096, EARLY_SAMPLES = 7 };

/* What a step said. */
struct told {
	int64_t step;
	double loss, valid, rate;
};

typedef struct run {
	tn_context *c;
	train_config k;
	train_text text;
	train_bpe *bpe; /* NULL: tokens are bytes */
	int lock;	/* of the folder; -1: none */
	train_gpt *g;
	tn_optimizer *opt;
	tn_params *all;
	train_state s;
	const char *out;
	int64_t until; /* the last step to do now */
	int64_t *x, *y;
	int64_t keep, n_sample;
	bool json;
	char saved[PATH_ROOM]; /* the newest checkpoint; "": none */
	double busy, timed;    /* seconds in steps; and the number of these steps */
	double last;	       /* of the last one; 0: it compiled */
	const char *report, *trace; /* files to write at the end; or NULL */
	struct told *told; /* (n_told) what each step said, for the report */
	size_t n_told;
	char *wrote; /* the sample */
	int64_t patience; /* seconds; 0: as the environment says */
	struct { /* shorter ones on the way, for the report */
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
/* valid: NAN when it was not looked at */
void train_say_step(const run *r, double loss, double valid);
void train_bar(const run *r, double loss);
/* For the report; without memory it goes without. */
void train_keep_step(run *r, double loss, double valid);
int train_say_sample(run *r);
/*
 * For the report, some of the evaluations: what it writes by now. first: the
 * step that the run began after. Nothing is drawn that training draws from.
 */
int train_keep_sample(run *r, int64_t first);
/* Tokens a second so far. */
double train_rate(const run *r);
/* The folder for this run alone, until `lock` is closed. CLI_OK or said. */
int train_lock(run *r);
/* The files that were asked for. */
int train_report(run *r);

#endif
