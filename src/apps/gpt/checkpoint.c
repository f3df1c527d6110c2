/*
 * checkpoint.c: saves a training run in one .safetensors file: parameters,
 * states of the optimiser, and the options of the run as metadata.
 *
 *     DIR/step-00000120.safetensors   to resume from; the last few are kept
 *     DIR/best.safetensors            the parameters of the best evaluation
 *
 * The file is written under another name and then renamed, so it is never
 * incomplete. The batches and dropout masks of later steps follow from the seed
 * and the step.
 */
#define _POSIX_C_SOURCE 200809L
#include "apps/gpt/train.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PAIRS = 24, VALUE_ROOM = 40, PATH_ROOM = 4096 };

#define KIND "tenon.train" /* the key that marks a checkpoint of tenon train */
#define WHOLE "3"	   /* values of the key: version and content */
#define WEIGHTS "3, parameters alone"
#define OLD_WHOLE "2" /* a checkpoint without a checksum */
#define OLD_WEIGHTS "2, parameters alone"
#define SUM "tenon.sha256" /* tn_params_save computes it */
#define SUFFIX ".safetensors"

tn_status train_all_params(
	tn_params **out, const train_gpt *g, const tn_optimizer *o)
{
	const tn_params *p = train_gpt_params(g);
	tn_context *c = tn_params_context(p);
	tn_status s = tn_params_new(out, c);

	for (int32_t i = 0; i < tn_params_n(p) && s >= 0; i++)
		s = tn_params_add(
			*out, tn_params_name(p, i), tn_params_at(p, i), false);
	if (s >= 0)
		s = tn_optimizer_add_states(o, *out);
	return s;
}

/* ---- writing ---- */

static tn_status save(tn_params *p, const char *path, const char *kind,
	const train_config *k, const train_state *s)
{
	char value[MAX_PAIRS][VALUE_ROOM];
	tn_pair pair[MAX_PAIRS];
	int32_t n = 0;

	pair[n++] = (tn_pair){KIND, kind};
	pair[n++] = (tn_pair){SUM, ""};
	for (const train_field *f = train_fields; f->name != NULL; f++) {
		train_config_text(k, f, value[n], VALUE_ROOM);
		pair[n] = (tn_pair){f->name, value[n]};
		n++;
	}
	snprintf(value[n], VALUE_ROOM, "%" PRId64, s->step);
	pair[n] = (tn_pair){"step", value[n]};
	n++;
	snprintf(value[n], VALUE_ROOM, "%.17g", s->best);
	pair[n] = (tn_pair){"best", value[n]};
	n++;
	snprintf(value[n], VALUE_ROOM, "%016" PRIx64, s->text);
	pair[n] = (tn_pair){"text", value[n]};
	n++;
	snprintf(value[n], VALUE_ROOM, "%016" PRIx64, s->vocab);
	pair[n] = (tn_pair){"tokenizer", value[n]};
	n++;
	return tn_params_save(p, path, pair, n);
}

/* The step in a name such as step-00000120.safetensors; -1: another name. */
static int64_t step_of(const char *name)
{
	char *end;
	int64_t step;

	if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9')
		return -1;
	step = strtoll(name + 5, &end, 10);
	return strcmp(end, SUFFIX) == 0 ? step : -1;
}

static bool is_left_over(const char *name)
{
	const char *dot = strstr(name, SUFFIX ".");
	size_t n = strlen(name);

	return strcmp(name, TRAIN_VOCAB_FILE ".tmp") == 0 ||
	       (dot != NULL && n > 4 && strcmp(name + n - 4, ".tmp") == 0 &&
	       (strncmp(name, "step-", 5) == 0 ||
		       strncmp(name, "best" SUFFIX, 4 + 12) == 0));
}

static void path_of_step(char *out, size_t n, const char *dir, int64_t step)
{
	snprintf(out, n, "%s/step-%08" PRId64 "%s", dir, step, SUFFIX);
}

/*
 * Lists the steps of all checkpoints in dir, newest first; -1: dir cannot be
 * read.
 */
static int list(const char *dir, int64_t *step, int room, bool clean)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	if (d == NULL)
		return -1;
	while ((e = readdir(d)) != NULL) {
		int64_t s = step_of(e->d_name);
		int at = n;

		if (clean && is_left_over(e->d_name))
			(void)unlinkat(dirfd(d), e->d_name, 0);
		if (s < 0)
			continue;
		for (; at > 0 && step[at - 1] < s; at--)
			if (at < room)
				step[at] = step[at - 1];
		if (at < room)
			step[at] = s;
		if (n < room)
			n++;
	}
	closedir(d);
	return n;
}

enum { MAX_LISTED = 256 };

tn_status train_checkpoint_write(tn_context *c, const char *dir,
	tn_params *all, const train_config *k, const train_state *s, int keep)
{
	int64_t step[MAX_LISTED];
	char path[PATH_ROOM];
	tn_status status;
	int n;

	path_of_step(path, sizeof path, dir, s->step);
	status = save(all, path, WHOLE, k, s);
	if (status < 0 || tn_process(c) != 0)
		return status;
	n = list(dir, step, MAX_LISTED, false);
	for (int i = keep; i < n; i++) {
		path_of_step(path, sizeof path, dir, step[i]);
		(void)unlink(path);
	}
	return TN_OK;
}

tn_status train_checkpoint_best(tn_context *c, const char *dir,
	tn_params *params, const train_config *k, const train_state *s)
{
	char path[PATH_ROOM];

	(void)c;
	snprintf(path, sizeof path, "%s/best%s", dir, SUFFIX);
	return save(params, path, WEIGHTS, k, s);
}

/* ---- reading ---- */

/* Looks up the metadata of key; *text is NULL if there is none. */
static tn_status find(
	tn_context *c, const char *path, const char *key, char **text)
{
	tn_status s = tn_safetensors_metadata(text, c, path, key);

	if (s < 0) {
		const tn_diag d = *tn_context_diag(c);

		return tn_at_fail(d.file[0] != '\0' ? d.file : path, d.line, c,
			s, d.rule, "%s", d.text);
	}
	return TN_OK;
}

/* For a file of the old version: checks its checksum if it has one. */
static tn_status look_for_sum(tn_context *c, const char *path, train_state *s)
{
	char *text = NULL;
	tn_status status = find(c, path, SUM, &text);

	s->unchecked = text == NULL;
	tn_text_free(text);
	return status;
}

/*
 * Copies the metadata of key to out, a text of at most n bytes; fails if there
 * is none.
 */
static tn_status word(tn_context *c, const char *path, const char *key,
	char *out, size_t n)
{
	char *text;

	if (find(c, path, key, &text) < 0)
		return tn_context_status(c);
	if (text == NULL)
		return tn_at_fail(path, 0, c, TN_EINVAL, "train.checkpoint",
			"this is not a checkpoint of tenon train: its "
			"metadata has no \"%s\"",
			key);
	snprintf(out, n, "%s", text);
	tn_text_free(text);
	return TN_OK;
}

static tn_status wrong(
	tn_context *c, const char *path, const char *key, const char *text)
{
	return tn_at_fail(path, 0, c, TN_EINVAL, "train.checkpoint",
		"its metadata says that \"%s\" is \"%s\", which is not "
		"possible", key,
		text);
}

/*
 * Reads the kind of the file, and verifies its checksum unless it is of the old
 * version.
 */
static tn_status kind_of(
	tn_context *c, const char *path, train_state *s, bool *whole)
{
	char kind[VALUE_ROOM], sum[80];

	if (word(c, path, KIND, kind, sizeof kind) < 0)
		return tn_context_status(c);
	s->unchecked = strcmp(kind, OLD_WHOLE) == 0 ||
		       strcmp(kind, OLD_WEIGHTS) == 0;
	*whole = strcmp(kind, WHOLE) == 0 || strcmp(kind, OLD_WHOLE) == 0;
	if (!*whole && !s->unchecked && strcmp(kind, WEIGHTS) != 0)
		return wrong(c, path, KIND, kind);
	/*
	 * the new version checks the sum if there is one, whatever the kind
	 * says
	 */
	return s->unchecked ? look_for_sum(c, path, s)
			    : word(c, path, SUM, sum, sizeof sum);
}

tn_status train_checkpoint_read(tn_context *c, const char *path,
	train_config *k, train_state *s, bool *whole)
{
	char text[VALUE_ROOM], *end;

	if (kind_of(c, path, s, whole) < 0)
		return tn_context_status(c);
	for (const train_field *f = train_fields; f->name != NULL; f++) {
		if (word(c, path, f->name, text, sizeof text) < 0)
			return tn_context_status(c);
		if (train_config_set(k, f, text) < 0)
			return wrong(c, path, f->name, text);
	}
	if (word(c, path, "step", text, sizeof text) < 0)
		return tn_context_status(c);
	s->step = strtoll(text, &end, 10);
	if (*end != '\0' || s->step < 0 || s->step > k->steps)
		return wrong(c, path, "step", text);
	if (word(c, path, "best", text, sizeof text) < 0)
		return tn_context_status(c);
	s->best = strtod(text, &end);
	if (*end != '\0' || isnan(s->best))
		return wrong(c, path, "best", text);
	if (word(c, path, "text", text, sizeof text) < 0)
		return tn_context_status(c);
	s->text = strtoull(text, &end, 16);
	if (*end != '\0')
		return wrong(c, path, "text", text);
	if (word(c, path, "tokenizer", text, sizeof text) < 0)
		return tn_context_status(c);
	s->vocab = strtoull(text, &end, 16);
	if (*end != '\0')
		return wrong(c, path, "tokenizer", text);
	return train_config_check(k, c);
}

tn_status train_checkpoint_vocab(train_bpe **out, tn_context *c,
	const char *path, const train_config *k, const train_state *s)
{
	const char *slash = strrchr(path, '/');
	char beside[PATH_ROOM];

	*out = NULL;
	if (k->vocab == 256)
		return TN_OK;
	snprintf(beside, sizeof beside, "%.*s" TRAIN_VOCAB_FILE,
		slash != NULL ? (int)(slash + 1 - path) : 0, path);
	if (train_bpe_read(out, c, beside) < 0)
		return tn_context_status(c);
	if (train_bpe_vocab(*out) == k->vocab &&
		train_bpe_hash(*out) == s->vocab)
		return TN_OK;
	train_bpe_free(*out);
	*out = NULL;
	return tn_at_fail(beside, 0, c, TN_EINVAL, "train.vocab",
		"this vocabulary is not the one of %s", path);
}

tn_status train_checkpoint_find(tn_context *c, const char *dir, char *newest,
	char *before, size_t n)
{
	int64_t step[2];
	int found = list(dir, step, 2, true);

	newest[0] = before[0] = '\0';
	if (found < 0 && errno != ENOENT)
		return tn_at_fail(dir, 0, c, TN_EIO, "train.folder",
			"cannot be read: %s", strerror(errno));
	if (found > 0)
		path_of_step(newest, n, dir, step[0]);
	if (found > 1)
		path_of_step(before, n, dir, step[1]);
	return TN_OK;
}
