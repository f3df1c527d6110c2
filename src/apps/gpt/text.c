/*
 * text.c: reads files and folders as one text, and makes the batches of a step.
 *
 *     docs/    a.md (1000 bytes), b.md (500)
 *     train    900 bytes of a.md, 450 of b.md       valid 100, 50
 *
 * The tokens of a step depend only on the seed and the step, so a resumed run
 * needs no other state.
 */
#define _POSIX_C_SOURCE 200809L
#include "apps/gpt/train.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 32 };

static tn_status failed(
	tn_context *c, const char *path, const char *what, int error)
{
	char why[128] = "";

	if (error != 0 && strerror_r(error, why, sizeof why) != 0)
		snprintf(why, sizeof why, "error %d", error);
	return tn_at_fail(path, 0, c, error == ENOMEM ? TN_ENOMEM : TN_EIO,
		"train.text", "%s%s%s", what, error != 0 ? ": " : "", why);
}

static tn_status append(train_bytes *b, tn_context *c, const uint8_t *from,
	size_t n)
{
	if (n > b->cap - b->n) {
		size_t cap = 2 * b->cap + n;
		uint8_t *at = cap >= n ? realloc(b->at, cap) : NULL;

		if (at == NULL)
			return failed(c, NULL, "the text is too long", ENOMEM);
		b->at = at;
		b->cap = cap;
	}
	if (n > 0)
		memcpy(b->at + b->n, from, n);
	b->n += n;
	return TN_OK;
}

void train_text_free(train_text *t)
{
	free(t->train.at);
	free(t->valid.at);
	free(t->train_ids.at);
	free(t->valid_ids.at);
	memset(t, 0, sizeof *t);
}

/*
 * Adds the bytes of a file, and adds its length and bytes to the FNV-1a hash.
 */
static tn_status add_bytes(
	train_text *t, tn_context *c, const train_bytes *b)
{
	size_t n_valid = b->n / 10;
	uint64_t h = t->hash ^ b->n;
	tn_status s;

	for (size_t i = 0; i < b->n; i++)
		h = (h ^ b->at[i]) * UINT64_C(1099511628211);
	t->hash = h * UINT64_C(1099511628211) + 1;
	t->n_files++;
	s = append(&t->train, c, b->at, b->n - n_valid);
	if (s >= 0)
		s = append(&t->valid, c, b->at + b->n - n_valid, n_valid);
	return s;
}

/* ---- files ---- */

static tn_status read_all(
	train_bytes *b, tn_context *c, const char *path, int fd)
{
	uint8_t block[65536];
	ssize_t n;

	for (;;) {
		n = read(fd, block, sizeof block);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed(c, path, "cannot be read", errno);
		if (n == 0)
			return TN_OK;
		if (append(b, c, block, (size_t)n) < 0)
			return tn_context_status(c);
	}
}

static tn_status add_file(
	train_text *t, tn_context *c, const char *path, bool is_named)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	train_bytes b = {0};
	tn_status s;

	if (fd < 0)
		return failed(c, path, "cannot be opened", errno);
	s = read_all(&b, c, path, fd);
	close(fd);
	if (s >= 0 && is_named && b.n == 0)
		s = failed(c, path, "is empty", 0);
	else if (s >= 0 && !is_named &&
		 (b.n == 0 || memchr(b.at, 0, b.n) != NULL))
		t->n_skipped++;
	else if (s >= 0)
		s = add_bytes(t, c, &b);
	free(b.at);
	return s;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static tn_status add_folder(
	train_text *t, tn_context *c, const char *path, int depth);

/*
 * Adds a file or a folder. Links to folders are not followed, so there are no
 * cycles.
 */
static tn_status add_entry(train_text *t, tn_context *c, const char *folder,
	const char *name, int depth)
{
	size_t n = strlen(folder) + strlen(name) + 2;
	char *path = malloc(n);
	struct stat st, link;
	tn_status s = TN_OK;
	bool is_there;

	if (path == NULL)
		return failed(c, folder, "no memory", ENOMEM);
	snprintf(path, n, "%s/%s", folder, name);
	is_there = lstat(path, &link) == 0 && stat(path, &st) == 0;
	if (is_there && S_ISDIR(link.st_mode))
		s = add_folder(t, c, path, depth + 1);
	else if (is_there && S_ISREG(st.st_mode))
		s = add_file(t, c, path, false);
	else
		t->n_skipped++;
	free(path);
	return s;
}

static tn_status add_folder(
	train_text *t, tn_context *c, const char *path, int depth)
{
	struct dirent **list;
	tn_status s = TN_OK;
	int n;

	if (depth > MAX_DEPTH)
		return failed(c, path, "folders are nested too deep", 0);
	n = scandir(path, &list, is_shown, by_name);
	if (n < 0)
		return failed(c, path, "cannot be opened", errno);
	for (int i = 0; i < n; i++) {
		if (s >= 0)
			s = add_entry(t, c, path, list[i]->d_name, depth);
		free(list[i]);
	}
	free(list);
	return s;
}

tn_status train_text_add(train_text *t, tn_context *c, const char *path)
{
	int64_t n_before = t->n_files;
	struct stat st;
	tn_status s;

	if (stat(path, &st) != 0)
		return failed(c, path, "cannot be opened", errno);
	if (!S_ISDIR(st.st_mode))
		return add_file(t, c, path, true);
	s = add_folder(t, c, path, 0);
	if (s >= 0 && t->n_files == n_before)
		s = failed(c, path, "there is no text file in this folder", 0);
	return s;
}

tn_status train_text_add_default(train_text *t, tn_context *c)
{
	const char *const *line = train_default_text;
	train_bytes b = {0};
	tn_status s = TN_OK;

	for (; *line != NULL && s >= 0; line++) {
		b.n = 0;
		for (; *line != NULL && s >= 0; line++)
			s = append(&b, c, (const uint8_t *)*line,
				strlen(*line));
		if (s >= 0)
			s = add_bytes(t, c, &b);
	}
	free(b.at);
	return s;
}

/* ---- tokens ---- */

static bool encode(train_tokens *to, const train_bytes *from,
	const train_bpe *b)
{
	train_token *less;

	to->at = malloc((from->n + 1) * sizeof *to->at);
	if (to->at == NULL)
		return false;
	to->n = train_bpe_encode(b, from->at, from->n, to->at);
	less = realloc(to->at, (to->n + 1) * sizeof *to->at);
	if (less != NULL)
		to->at = less;
	return true;
}

tn_status train_text_encode(
	train_text *t, tn_context *c, const train_bpe *b)
{
	if (!encode(&t->train_ids, &t->train, b) ||
		!encode(&t->valid_ids, &t->valid, b))
		return failed(c, NULL, "the text is too long", ENOMEM);
	return TN_OK;
}

/* ---- batches ---- */

tn_status train_text_check(
	const train_text *t, tn_context *c, const train_config *k)
{
	size_t need = (size_t)k->context + 1;

	if (t->train_ids.n >= need && t->valid_ids.n >= need)
		return TN_OK;
	return tn_at_fail(NULL, 0, c, TN_EINVAL, "train.context",
		"the text is too short for a context of %" PRId64 ": it has %zu "
		"tokens to learn from and %zu to validate with, and needs at "
		"least %zu of each",
		k->context, t->train_ids.n, t->valid_ids.n, need);
}

/*
 * Fills row i of a batch: the tokens from `start` on, and the next token of
 * each.
 */
static void cut(const train_tokens *b, const train_config *k, int64_t i,
	int64_t start, int64_t *x, int64_t *y)
{
	for (int64_t j = 0; j < k->context; j++) {
		x[i * k->context + j] = b->at[start + j];
		y[i * k->context + j] = b->at[start + j + 1];
	}
}

void train_text_batch(const train_text *t, const train_config *k, int64_t i,
	int64_t *x, int64_t *y)
{
	for (int64_t r = 0; r < k->batch; r++) {
		int64_t start;

		/* each row of each batch has its own seed */
		tn_fill_random(TN_I64, &start, 1,
			(uint64_t)k->seed * UINT64_C(0x9e3779b97f4a7c15) +
				(uint64_t)(i * k->batch + r),
			0, (int64_t)t->train_ids.n - k->context);
		cut(&t->train_ids, k, r, start, x, y);
	}
}

/* Starts at equal distances, the same in every evaluation. */
void train_text_valid(const train_text *t, const train_config *k, int64_t i,
	int64_t n, int64_t *x, int64_t *y)
{
	int64_t room = (int64_t)t->valid_ids.n - k->context - 1;

	for (int64_t r = 0; r < k->batch; r++) {
		double at = (double)(i * k->batch + r) / (double)(n * k->batch);

		cut(&t->valid_ids, k, r, (int64_t)(at * (double)room), x, y);
	}
}
