/*
 * train.c: `tenon train`: trains a GPT on a text.
 *
 *     tenon train --text book.txt --steps 500 --out model
 *
 *     step 50 of 500  loss 2.4170  validation 2.4503  21043 tokens/s
 *
 * Lines are printed on standard output, a progress bar on standard error if it
 * is a terminal.
 */
#define _POSIX_C_SOURCE 200809L
#include "cli/train_run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FIELDS = 24, N_VALID = 4 };

static volatile sig_atomic_t told_to_stop;

static void stop(int signal)
{
	told_to_stop = signal;
}

/* Was process 0 told to stop? All processes get its answer. */
static bool is_stopping(run *r)
{
	int32_t told = told_to_stop;

	if (r->mesh != NULL && tn_broadcast(r->c, &told, sizeof told) < 0)
		return true;
	told_to_stop = told;
	return told != 0;
}

/* ---- steps ---- */

static bool ok(const run *r)
{
	return tn_context_status(r->c) == TN_OK;
}

static tn_tensor *batch_loss(run *r)
{
	int64_t shape[] = {r->k.batch, r->k.context};
	int64_t flat[] = {r->k.batch * r->k.context};
	tn_tensor *x = tn_tensor_new(r->c, TN_I64, 2, shape, r->x);
	tn_tensor *y = tn_tensor_new(r->c, TN_I64, 2, shape, r->y);

	if (r->mesh != NULL && (train_place(r->mesh, x, "text") < 0 ||
				       train_place(r->mesh, y, "text") < 0))
		return NULL;
	return train_gpt_loss(r->g, x, tn_reshape(y, flat, 1));
}

/*
 * Records the loss of batch i of the next step, and its gradients. Gradients of
 * several batches are averaged.
 */
static tn_tensor *forward_backward(run *r, int64_t i)
{
	int64_t n = r->k.accumulate, batch = r->s.step * n + i;
	tn_tensor *loss;

	/* dropout masks depend only on the step and the batch */
	tn_set_seed(r->c, (uint64_t)r->k.seed * UINT64_C(0x9e3779b97f4a7c15) +
				  (uint64_t)batch + 1);
	train_text_batch(&r->text, &r->k, batch, r->x, r->y);
	loss = batch_loss(r);
	tn_backward(loss,
		n > 1 ? tn_scalar(r->c, tn_tensor_dtype(loss),
				1 / (double)n) : NULL);
	return loss;
}

static void update(run *r)
{
	tn_optimizer_set_lr(r->opt, tn_lr_cosine(r->s.step, r->k.warmup,
					    r->k.steps, r->k.lr,
					    0.1 * r->k.lr));
	tn_optimizer_step(r->opt);
}

/*
 * Evaluates the gradients so far, so that only one batch is in memory. Drops
 * the handles; the parameters keep the accumulated gradients.
 */
static void eval_gradients(run *r)
{
	tn_params *p = train_gpt_params(r->g);
	int32_t n = tn_params_n(p), m = 0;
	tn_tensor **g = malloc((size_t)n * sizeof(tn_tensor *));

	tn_scope_enter(r->c);
	for (int32_t i = 0; i < n && g != NULL; i++)
		if ((g[m] = tn_gradient(tn_params_at(p, i))) != NULL)
			m++;
	if (g != NULL)
		tn_eval(g, m);
	free(g);
	tn_scope_leave(r->c);
}

static double one_step(run *r)
{
	int64_t n = r->k.accumulate;
	double sum = 0;

	for (int64_t i = 0; i < n && ok(r); i++) {
		tn_tensor *loss;

		tn_scope_enter(r->c);
		loss = forward_backward(r, i);
		if (i + 1 == n)
			update(r);
		tn_keep(loss);
		tn_scope_leave(r->c);
		if (i + 1 == n)
			tn_params_eval(r->all);
		else
			eval_gradients(r);
		sum += tn_item(loss);
		tn_drop(loss);
	}
	r->s.step++;
	return sum / (double)n;
}

static double validate(run *r)
{
	double sum = 0;

	tn_params_set_training(train_gpt_params(r->g), false);
	for (int i = 0; i < N_VALID && ok(r); i++) {
		train_text_valid(&r->text, &r->k, i, N_VALID, r->x, r->y);
		tn_scope_enter(r->c);
		tn_no_grad_enter(r->c);
		sum += tn_item(batch_loss(r));
		tn_no_grad_leave(r->c);
		tn_scope_leave(r->c);
	}
	tn_params_set_training(train_gpt_params(r->g), true);
	return sum / N_VALID;
}

/* ---- a loss that is NaN or infinite ---- */

static bool is_finite(tn_tensor *x)
{
	int64_t n = tn_tensor_n_elems(x);
	tn_dtype t = tn_tensor_dtype(x);
	size_t n_bytes = (size_t)n * tn_dtype_bytes(t);
	void *v = malloc(n_bytes);
	bool all = v != NULL && tn_read(x, v, n_bytes) >= 0;

	for (int64_t i = 0; i < n && all; i++)
		all = isfinite(tn_get_f64(t, v, i));
	free(v);
	return all;
}

/* Repeats the step and counts the parameters whose gradients are not finite. */
static int bad_gradients(run *r, const char **first)
{
	tn_params *p = train_gpt_params(r->g);
	int n = 0;

	tn_scope_enter(r->c);
	for (int64_t i = 0; i < r->k.accumulate && ok(r); i++) {
		forward_backward(r, i);
		eval_gradients(r);
	}
	for (int32_t i = 0; i < tn_params_n(p) && ok(r); i++) {
		tn_tensor *g = tn_gradient(tn_params_at(p, i));

		if (g == NULL || is_finite(g))
			continue;
		if (n++ == 0)
			*first = tn_params_name(p, i);
	}
	update(r);
	tn_scope_leave(r->c);
	tn_params_eval(r->all);
	r->s.step++;
	return n;
}

/*
 * The step has already updated the parameters. Steps after a checkpoint can be
 * repeated with the same bits, so they are run again from the last checkpoint,
 * and their gradients are examined.
 */
static int diverged(run *r, double loss)
{
	int64_t step = r->s.step, from;
	const char *name = NULL;
	train_config k = r->k;
	bool whole;
	int n = 0;

	cli_progress("%s", "");
	cli_error(NULL, "train.diverged",
		"the loss is %s at step %" PRId64
		"; this step is not saved: the last checkpoint is %s",
		isnan(loss) ? "not a number" : "infinite", step, r->saved);
	if (train_checkpoint_read(r->c, r->saved, &k, &r->s, &whole) < 0 ||
		tn_params_load(r->all, r->saved, true) < 0)
		return CLI_FAILED;
	tn_optimizer_set_steps(r->opt, r->s.step);
	from = r->s.step;
	/* a bad validation loss is seen one step before bad gradients */
	while (n == 0 && r->s.step <= step && ok(r))
		n = bad_gradients(r, &name);
	if (n > 0)
		cli_note("the steps from %" PRId64 " on were repeated: at step %"
			 PRId64 " the gradients of %d parameters are not "
			 "finite, that of %s first; a smaller --lr may help",
			from + 1, r->s.step, n, name);
	return CLI_FAILED;
}

/* ---- the run ---- */

static bool save(run *r, double valid)
{
	char path[PATH_ROOM], before[PATH_ROOM];

	if (valid < r->s.best) {
		r->s.best = valid;
		if (train_checkpoint_best(r->c, r->out, train_gpt_params(r->g),
			    &r->k, &r->s) < 0)
			return false;
	}
	if (train_checkpoint_write(r->c, r->out, r->all, &r->k, &r->s,
		    (int)r->keep) < 0 ||
		train_checkpoint_find(
			r->c, r->out, path, before, sizeof path) < 0)
		return false;
	memcpy(r->saved, path, sizeof path);
	return true;
}

static bool watch(run *r)
{
	if (r->report != NULL)
		r->told = cli_alloc(
			(size_t)(r->until - r->s.step) + 1, sizeof *r->told);
	return (r->report == NULL && r->trace == NULL) ||
	       tn_profile_start(r->c) >= 0;
}

/* Prints and stores the results of a step; look: as for every --every steps. */
static bool after_step(
	run *r, double loss, double valid, bool look, int64_t first)
{
	train_keep_step(r, loss, valid);
	if (r->s.step == first + 1)
		train_say_devices(r);
	if (look || r->json || r->s.step == first + 1)
		train_say_step(r, loss, valid);
	else
		train_bar(r, loss);
	return !look ||
	       (save(r, valid) && train_keep_sample(r, first) == CLI_OK);
}

static int go(run *r)
{
	int64_t first = r->s.step;

	if (!watch(r))
		return CLI_FAILED;
	train_say_start(r);
	/*
	 * write a checkpoint before the first step, so that errors show early
	 */
	if (r->saved[0] == '\0' && !save(r, INFINITY))
		return CLI_FAILED;
	while (r->s.step < r->until) {
		double began = cli_now(), loss = one_step(r), valid = NAN;
		bool stopping = is_stopping(r);
		bool look = r->s.step % r->k.every == 0 || stopping ||
			    r->s.step == r->until;

		if (!ok(r))
			return CLI_FAILED;
		/* the first step includes compilation */
		if (r->s.step > first + 1) {
			r->last = cli_now() - began;
			r->busy += r->last;
			r->timed++;
		}
		if (look && isfinite(loss)) {
			cli_progress("validating");
			valid = validate(r);
			if (!ok(r))
				return CLI_FAILED;
		}
		if (!isfinite(loss) || (look && !isfinite(valid)))
			return diverged(r, isfinite(loss) ? valid : loss);
		if (!after_step(r, loss, valid, look, first))
			return CLI_FAILED;
		if (stopping) {
			cli_note("stopped after step %" PRId64
				 "; --resume continues",
				r->s.step);
			/* the exit code that shells use for a signal */
			return 128 + (int)told_to_stop;
		}
	}
	if (r->s.step == r->k.steps && r->n_sample > 0 &&
		train_say_sample(r) != CLI_OK)
		return CLI_FAILED;
	return train_report(r);
}

/* ---- beginning ---- */

/* Finds the checkpoint to resume from; "": a new run. */
static int where_from(run *r, const char *from, bool resume)
{
	char newest[PATH_ROOM], before[PATH_ROOM];

	if (mkdir(r->out, 0777) != 0 && errno != EEXIST)
		return cli_error(r->out, "train.folder", "cannot be made: %s",
			strerror(errno));
	if ((r->is_first && train_lock(r) != CLI_OK) ||
		train_checkpoint_find(
			r->c, r->out, newest, before, sizeof newest) < 0)
		return CLI_FAILED;
	if (from != NULL) {
		snprintf(r->saved, sizeof r->saved, "%s", from);
		return CLI_OK;
	}
	if (resume && newest[0] == '\0')
		return cli_error(r->out, "train.resume",
			"there is no checkpoint in this folder to continue from");
	if (!resume && newest[0] != '\0')
		return cli_error(r->out, "train.exists",
			"the folder has %s already: --resume continues from "
			"it, --out names another folder",
			strrchr(newest, '/') + 1);
	snprintf(r->saved, sizeof r->saved, "%s", newest);
	return CLI_OK;
}

/* The newest checkpoint cannot be read: prints why, and names an older one. */
static int bad_checkpoint(run *r)
{
	char newest[PATH_ROOM], before[PATH_ROOM];

	cli_diag(tn_context_diag(r->c));
	tn_context_clear(r->c);
	if (train_checkpoint_find(
		    r->c, r->out, newest, before, sizeof newest) >= 0 &&
		before[0] != '\0' && strcmp(newest, r->saved) == 0)
		cli_note("the checkpoint before it: --from %s", before);
	return CLI_FAILED;
}

/* Takes --steps, which may differ from that of the checkpoint. */
static bool take_steps(run *r, const train_field *f, const char *given)
{
	int64_t then = r->k.steps;

	train_config_set(&r->k, f, given);
	if (r->k.steps < r->s.step) {
		cli_error(r->saved, "train.resume", "the run has done %" PRId64
			" steps already, and --steps %s is less",
			r->s.step, given);
		return false;
	}
	if (r->k.steps != then && r->is_first)
		cli_note("the run was started for %" PRId64 " steps and continues "
			 "to step %" PRId64 ": the rate now falls until then",
			then, r->k.steps);
	return true;
}

/* Takes the options of the checkpoint; options that are given must be equal. */
static int take_config(run *r, const char *const *given)
{
	bool whole = false;

	if (train_checkpoint_read(r->c, r->saved, &r->k, &r->s, &whole) < 0)
		return bad_checkpoint(r);
	if (r->s.unchecked && r->is_first)
		cli_note("note: %s is of an earlier version and has no "
			 "checksum, so damage in it would not be noticed",
			r->saved);
	if (!whole)
		return cli_error(r->saved, "train.resume",
			"the file holds only parameters: `tenon generate` can "
			"use it, but training cannot continue from it");
	for (int i = 0; train_fields[i].name != NULL; i++) {
		train_config k = r->k;
		char now[40], then[40];

		if (given[i] == NULL)
			continue;
		if (strcmp(train_fields[i].name, "steps") == 0) {
			if (!take_steps(r, &train_fields[i], given[i]))
				return CLI_FAILED;
			continue;
		}
		train_config_set(&k, &train_fields[i], given[i]);
		train_config_text(&k, &train_fields[i], now, sizeof now);
		train_config_text(&r->k, &train_fields[i], then, sizeof then);
		if (strcmp(now, then) != 0)
			return cli_error(r->saved, "train.resume",
				"the run was started with --%s %s, not %s: a "
				"run continues with its own numbers",
				train_fields[i].name, then, given[i]);
	}
	return CLI_OK;
}

/*
 * Encodes the text with the vocabulary next to the checkpoint, or with a new
 * one.
 */
static int tokens(run *r)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof path, "%s/" TRAIN_VOCAB_FILE, r->out);
	if (r->saved[0] != '\0') {
		if (train_checkpoint_vocab(
			    &r->bpe, r->c, r->saved, &r->k, &r->s) < 0)
			return CLI_FAILED;
	} else if (r->k.vocab > 256) {
		cli_progress("learning a vocabulary");
		if (train_bpe_learn(&r->bpe, r->c, r->text.train.at,
			    r->text.train.n, r->k.vocab) < 0)
			return CLI_FAILED;
		r->s.vocab = train_bpe_hash(r->bpe);
		cli_progress("%s", "");
	}
	if (r->bpe != NULL && r->is_first && train_bpe_write(r->bpe, r->c, path) < 0)
		return CLI_FAILED;
	if (train_text_encode(&r->text, r->c, r->bpe) < 0 ||
		train_text_check(&r->text, r->c, &r->k) < 0)
		return CLI_FAILED;
	return CLI_OK;
}

static int read_text(run *r, const cli_list *paths)
{
	for (int i = 0; i < paths->n; i++)
		if (train_text_add(&r->text, r->c, paths->at[i]) < 0)
			return CLI_FAILED;
	if (paths->n == 0 && train_text_add_default(&r->text, r->c) < 0)
		return CLI_FAILED;
	if (r->text.n_skipped > 0)
		cli_note("%" PRId64 " files skipped: empty, or no text",
			r->text.n_skipped);
	if (r->saved[0] != '\0' && r->s.text != r->text.hash)
		return cli_error(r->saved, "train.resume",
			"the run was started with another text: give the same "
			"--text");
	r->s.text = r->text.hash;
	return tokens(r);
}

static int build(run *r)
{
	tn_optimizer_options o = TN_OPTIMIZER_OPTIONS_INIT;
	size_t n = (size_t)(r->k.batch * r->k.context);

	o.decay = r->k.decay;
	o.clip_norm = r->k.clip;
	r->x = cli_alloc(n, sizeof *r->x);
	r->y = cli_alloc(n, sizeof *r->y);
	if (r->x == NULL || r->y == NULL ||
		train_gpt_new(&r->g, r->c, &r->k) < 0 ||
		tn_optimizer_new(&r->opt, r->c, "adamw", &o) < 0 ||
		tn_optimizer_add_all(r->opt, train_gpt_params(r->g)) < 0 ||
		train_all_params(&r->all, r->g, r->opt) < 0)
		return CLI_FAILED;
	if (r->mesh != NULL &&
		(train_place_all(r->mesh, train_gpt_params(r->g)) < 0 ||
			train_place_all(r->mesh, r->all) < 0))
		return CLI_FAILED;
	if (r->saved[0] == '\0')
		return CLI_OK;
	tn_optimizer_set_steps(r->opt, r->s.step);
	return tn_params_load(r->all, r->saved, true) < 0 ? bad_checkpoint(r)
							  : CLI_OK;
}

/*
 * Joins the other processes of the mesh; only process 0 prints and writes
 * files.
 */
static bool join(run *r)
{
	if (r->mesh_text == NULL)
		return true;
	if (tn_shard_patience(r->c, (double)r->patience) < 0)
		return false;
	r->mesh = tn_at_mesh_parse(NULL, 0, r->c, r->mesh_text);
	if (r->mesh == NULL)
		return false;
	r->is_first = tn_process(r->c) == 0;
	if (r->is_first)
		return true;
	r->report = r->trace = NULL;
	return freopen("/dev/null", "w", stdout) != NULL;
}

static bool agree(run *r, const char *what, const char *text)
{
	return r->mesh == NULL || tn_agree(r->c, what, text) >= 0;
}

/* Checks that all processes of the mesh have equal options. */
static bool agree_options(run *r, const char *from, bool resume)
{
	char text[80];
	bool all = agree(r, "--resume", resume ? "given" : "not given") &&
		   agree(r, "--from", from != NULL ? from : "not given");

	for (const train_field *f = train_fields; f->name != NULL && all; f++) {
		char what[40];

		snprintf(what, sizeof what, "--%s", f->name);
		train_config_text(&r->k, f, text, sizeof text);
		all = agree(r, what, text);
	}
	snprintf(text, sizeof text, "%" PRId64, r->until);
	all = all && agree(r, "--until", text);
	snprintf(text, sizeof text, "%" PRId64, r->n_sample);
	all = all && agree(r, "--sample", text);
	return all;
}

/* Checks that all processes have read the same text. */
static bool agree_text(run *r)
{
	char text[80];

	snprintf(text, sizeof text, "%zu bytes (%016" PRIx64 ")",
		r->text.train.n + r->text.valid.n, r->text.hash);
	if (!agree(r, "--text", text))
		return false;
	snprintf(text, sizeof text, "%016" PRIx64, r->s.vocab);
	if (!agree(r, "the vocabulary", text))
		return false;
	snprintf(text, sizeof text, "step %" PRId64 " of %" PRId64, r->s.step,
		r->k.steps);
	return agree(r, "the checkpoint", text);
}

static int begin(run *r, const char *const *given, const cli_list *paths,
	const char *from, bool resume)
{
	int code = CLI_OK;

	if (!join(r) || !agree_options(r, from, resume))
		return CLI_FAILED;
	if ((r->report != NULL && !cli_can_write(r->report, "report.write")) ||
		(r->trace != NULL && !cli_can_write(r->trace, "file.write")))
		return CLI_FAILED;
	if (from == NULL && !resume && train_config_check(&r->k, r->c) < 0)
		return CLI_FAILED;
	code = where_from(r, from, resume);
	if (code == CLI_OK && r->saved[0] != '\0')
		code = take_config(r, given);
	if (code == CLI_OK)
		code = read_text(r, paths);
	if (code == CLI_OK && !agree_text(r))
		code = CLI_FAILED;
	if (code == CLI_OK)
		code = build(r);
	if (code == CLI_OK && (r->until == 0 || r->until > r->k.steps))
		r->until = r->k.steps;
	return code;
}

static void end(run *r)
{
	cli_progress("%s", "");
	if (r->c != NULL && !ok(r))
		cli_diag(tn_context_diag(r->c));
	tn_params_free(r->all);
	tn_optimizer_free(r->opt);
	train_gpt_free(r->g);
	train_text_free(&r->text);
	train_bpe_free(r->bpe);
	if (r->lock >= 0)
		close(r->lock);
	free(r->x);
	free(r->y);
	free(r->told);
	free(r->wrote);
	for (int i = 0; i < r->n_early; i++)
		free(r->early[i].text);
	cli_close(r->c);
}

/* Reads an integer from lo to hi; -1: invalid, and reported. */
static int64_t number(const cli_command *self, const char *name,
	const char *text, int64_t lo, int64_t hi)
{
	char *end;
	int64_t v;

	errno = 0;
	v = strtoll(text, &end, 10);
	if (end != text && *end == '\0' && errno == 0 && v >= lo && v <= hi)
		return v;
	cli_usage(self, "--%s: \"%s\" is not an integer from %" PRId64
			" to %" PRId64,
		name, text, lo, hi);
	return -1;
}

static int fields(const cli_command *self, run *r, const char *const *given)
{
	for (int i = 0; train_fields[i].name != NULL; i++) {
		const train_field *f = &train_fields[i];

		if (given[i] == NULL || train_config_set(&r->k, f, given[i]) >= 0)
			continue;
		if (f->word != NULL)
			return cli_usage(self,
				"--%s: \"%s\" is neither %s nor %s nor %s",
				f->name, given[i], f->word[0], f->word[1],
				f->word[2]);
		return cli_usage(self,
			"--%s: \"%s\" is not %s from %.10g to %.10g", f->name,
			given[i], f->is_real ? "a number" : "an integer",
			f->lo, f->hi);
	}
	return -1;
}

static int train(const cli_command *self, int argc, char **argv)
{
	const char *given[MAX_FIELDS] = {NULL}, *threads = "0", *until = "0";
	const char *from = NULL, *keep = "2", *sample = "400", *peer = "0";
	const char *schedule = NULL;
	cli_list paths = {cli_alloc((size_t)argc, sizeof *paths.at), 0};
	run r = {.k = train_config_new(), .s.best = INFINITY,
		.out = "tenon-model", .lock = -1, .is_first = true};
	tn_options o = TN_OPTIONS_INIT;
	bool resume = false;
	cli_option options[MAX_FIELDS + 17] = {{"text", .list = &paths},
		{"out", .value = &r.out}, {"resume", .flag = &resume},
		{"from", .value = &from}, {"until", .value = &until},
		{"keep", .value = &keep}, {"sample", .value = &sample},
		{"threads", .value = &threads}, {"interp", .flag = &o.interp},
		{"json", .flag = &r.json}, {"report", .value = &r.report},
		{"trace", .value = &r.trace}, {"mesh", .value = &r.mesh_text},
		{"peer-seconds", .value = &peer},
		{"schedule", .value = &schedule}, {"device", .value = &o.device}};
	int n = 16, code;

	for (int i = 0; train_fields[i].name != NULL; i++)
		options[n++] = (cli_option){
			train_fields[i].name, .value = &given[i]};
	if (paths.at == NULL)
		return CLI_FAILED;
	code = cli_args(self, argc, argv, options, NULL, 0);
	if (code < 0)
		code = fields(self, &r, given);
	if (code < 0 && ((o.threads = (int32_t)number(self, "threads", threads,
				  0, 4096)) < 0 ||
			(r.until = number(self, "until", until, 0,
				1000000000)) < 0 ||
			(r.keep = number(self, "keep", keep, 1, 200)) < 0 ||
			(r.n_sample = number(self, "sample", sample, 0,
				1000000)) < 0 ||
			(r.patience = number(self, "peer-seconds", peer, 0,
				31622400)) < 0))
		code = CLI_USAGE;
	if (code < 0)
		code = cli_pin(self, schedule);
	if (code < 0 && cli_context_new(&r.c, &o) < 0)
		code = cli_no_context();
	if (code < 0) {
		struct sigaction act = {.sa_handler = stop};

		sigemptyset(&act.sa_mask);
		sigaction(SIGINT, &act, NULL);
		sigaction(SIGTERM, &act, NULL);
		code = begin(&r, given, &paths, from, resume);
		if (code == CLI_OK)
			code = go(&r);
		end(&r);
		code = cli_pin_end(code);
	}
	free(paths.at);
	return code;
}

const cli_command cli_train = {
	"train",
	"train a small GPT on text, or an ONNX model",
	"usage: tenon train [OPTION]...\n"
	"\n"
	"Trains a small GPT on text. Prints the loss while it trains, and a sample\n"
	"at the end. The model does not learn from the last tenth of each file:\n"
	"the validation loss is computed on these tenths.\n"
	"\n"
	"  --text FILE|DIR  train on this file, or on all text files in this folder\n"
	"                   and below it; may be given several times (the source\n"
	"                   and the documents of this program)\n"
	"  --out DIR        write checkpoints to DIR (tenon-model)\n"
	"  --resume         continue from the newest checkpoint in DIR; give the\n"
	"                   same text. The result has the same bits as a run\n"
	"                   without a break\n"
	"  --from FILE      continue from this checkpoint\n"
	"  --until N        stop after step N; --resume continues later\n"
	"  --keep N         keep the last N checkpoints (2), and best.safetensors\n"
	"\n"
	"  --layers N --heads N --width N --context N\n"
	"                   sizes of the model (4 4 128 128)\n"
	"  --vocab N        number of tokens: 256 are the bytes, the others are\n"
	"                   the most frequent pairs of tokens in the text (256)\n"
	"  --batch N        sequences in a batch (16)\n"
	"  --accumulate N   add the gradients of N batches for each step (1)\n"
	"  --steps N        number of steps (300); with --resume, another number\n"
	"                   makes the run longer or shorter\n"
	"  --every N        evaluate, and write a checkpoint, every N steps (50)\n"
	"  --lr X           highest learning rate (0.002): the rate rises for\n"
	"                   --warmup steps (20), then falls as a cosine to a tenth\n"
	"  --decay X        weight decay (0.01)\n"
	"  --clip X         largest norm of the gradients (1)\n"
	"  --dropout P      probability that dropout sets an element to 0 (0)\n"
	"  --dtype T        type of weights and values: f32, f64 or bf16; with\n"
	"                   bf16, sums, master weights and moments are f32 (f32)\n"
	"  --seed N         seed for weights, batches and dropout (0)\n"
	"\n"
	"  --sample N       number of tokens to write at the end (400)\n"
	"  --threads N      number of threads, 0: one per CPU (0); the bits of the\n"
	"                   result do not depend on it\n"
	"  --device DEVICE  what runs the kernels: cpu, simt, cuda:0 .. (TENON_DEVICE,\n"
	"                   or cpu)\n"
	"  --interp         use the slow interpreter: only for tiny sizes\n"
	"  --schedule FILE  use the schedules in FILE for the program that has their\n"
	"                   kernels, such as the step; TENON_DUMP=schedule prints\n"
	"                   those of all programs\n"
	"  --mesh NAME=N,.. divide the work among the processes that mpirun -n N\n"
	"                   started, along these axes: data (the sequences of a\n"
	"                   batch), model (weights), sequence (positions in a\n"
	"                   sequence), states (data, and the optimiser's states);\n"
	"                   process 0 prints and writes files\n"
	"  --peer-seconds N end with an error when a process of the mesh shows no\n"
	"                   sign of life for N seconds\n"
	"                   (0: TENON_PEER_SECONDS, or 30)\n"
	"  --json           print one JSON object per line for every step\n"
	"  --report FILE    write a page for a browser: curves, times, each kernel\n"
	"                   as loops and as C, reasons against fusion\n"
	"  --trace FILE     write a trace of one step and its compilation, for\n"
	"                   Perfetto\n"
	"  --help           print this text\n",
	train,
};
